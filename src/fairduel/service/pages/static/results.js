// The results of a study, as operators and observers see them; drawn again whenever the server says that they changed.
import { call, make, root } from "./client.js";
import { modelResults } from "./models.js";

const SVG = "http://www.w3.org/2000/svg";
const number = new Intl.NumberFormat("en");
const percent = (share) => (share >= 0.995 ? "> 99%" : share <= 0.005 ? "< 1%" : `${Math.round(100 * share)}%`);
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);

function draw(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const section = (title, ...children) => make("section", {}, make("h2", {}, title), ...children);
export const paragraphs = (texts) => texts.map((text) => make("p", {}, text));

/** A table whose rows become cards on phones; cells are text or elements. */
export function table(columns, rows, marked = () => "") {
  const cells = (row) => row.map((cell, place) => {
    const text = columns[place].text ? "text" : "";
    return place === 0 ? make("th", { scope: "row", class: "text" }, cell)
      : make("td", { class: text, "data-label": columns[place].name }, cell ?? "–");
  });
  return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" },
    make("table", { class: "stacked" },
      make("thead", {}, make("tr", {}, ...columns.map(({ name, text }, place) =>
        make("th", { scope: "col", class: text || place === 0 ? "text" : "" }, name)))),
      make("tbody", {}, ...rows.map((row, place) => make("tr", { class: marked(place) || null }, ...cells(row))))));
}

const range = ({ rank_low: low, rank_high: high }) => (low === high ? `${low}` : `${low}–${high}`);

function interval(standing, least, most) {
  const place = (score) => (100 * (score - least)) / (most - least || 1);
  const label = `${signed(standing.score)}, from ${signed(standing.score_low)} to ${signed(standing.score_high)}`;
  return draw("svg", { class: "ranges", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": label },
    draw("line", { class: "zero", x1: place(0), x2: place(0), y1: 0, y2: 10 }),
    draw("line", { x1: place(standing.score_low), x2: place(standing.score_high), y1: 5, y2: 5 }),
    draw("rect", { x: place(standing.score) - 0.7, width: 1.4, y: 1.5, height: 7, fill: "var(--link)" }));
}

function ranking(standings) {
  const least = Math.min(0, ...standings.map((each) => each.score_low));
  const most = Math.max(0, ...standings.map((each) => each.score_high));
  const groups = new Set(standings.map((each) => each.group)).size > 1;
  const columns = [{ name: "Item", text: true }, ...(groups ? [{ name: "Group", text: true }] : []), { name: "Rank" },
    { name: "May be" }, { name: "Best" }, { name: "Score and its 95% interval", text: true }, { name: "Score" }, { name: "Votes" }, { name: "Won" }];
  const rows = standings.map((each) => [each.item, ...(groups ? [each.group] : []), `${each.rank}`, range(each), percent(each.best),
    interval(each, least, most), signed(each.score), number.format(Math.round(each.games)), each.games ? percent(each.win_rate) : "–"]);
  return table(columns, rows, (place) => (standings[place].rank_low === 1 ? "marked" : ""));
}

function activity(bars) {
  const most = Math.max(...bars.map((bar) => bar.votes), 1), width = 1000 / bars.length;
  const time = (seconds) => new Date(1000 * seconds).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
  const end = bars.at(-1).from + bars.at(-1).seconds;
  const label = `Votes over time, at most ${most} per bar`;
  return draw("svg", { class: "activity", viewBox: "0 0 1000 140", preserveAspectRatio: "xMinYMid", role: "img", "aria-label": label },
    ...bars.map((bar, place) => draw("rect", { x: place * width + 0.5, width: Math.max(width - 1, 0.5), y: 118 - (104 * bar.votes) / most, height: (104 * bar.votes) / most })),
    draw("text", { x: 0, y: 136 }, time(bars[0].from)), draw("text", { x: 1000, y: 136, "text-anchor": "end" }, time(end)),
    draw("text", { x: 0, y: 10 }, `${most} votes`));
}

const tiles = (values) => make("dl", { class: "tiles" },
  ...Object.entries(values).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));

/** Votes and voters; people and language models separately if there are models. */
const cast = ({ votes, voters, models, model_votes: theirs }) => (models
  ? { "Votes of people": number.format(votes - theirs), "Votes of models": number.format(theirs), People: number.format(voters - models), Models: number.format(models) }
  : { Votes: number.format(votes), Voters: number.format(voters) });

/** Draw the results into an element. */
export function drawResults(element, results) {
  const { counts } = results;
  const answer = results.needs ?? results.sentence;
  const notes = [...results.notes, ...(results.stale ? ["Newer votes are being added to these results."] : [])];
  element.replaceChildren(
    make("p", { class: "answer" }, answer),
    ...paragraphs(results.stopping.map(({ sentence }) => sentence)),
    tiles({ ...cast(counts), Skipped: number.format(counts.skips), "Waiting for an answer": number.format(counts.open) }),
    ...(results.ranking.length ? [section(results.basis === "all votes" ? "Ranking" : "Ranking after the audit", ...paragraphs(results.details), ranking(results.ranking), ...paragraphs(notes))] : []),
    ...modelResults(results, ranking),
    ...(results.advice.length ? [section("What to do", ...paragraphs(results.advice))] : []),
    ...(results.certificates.length ? [section("What it would take to change the winner", ...paragraphs(results.certificates.map(({ sentence }) => sentence)))] : []),
    ...(results.activity.length ? [section("Votes over time", activity(results.activity))] : []),
    section("How duels are chosen", ...paragraphs([results.agent.sentence, results.balance.sentence])),
  );
  if (results.balance.alarm) element.lastElementChild.lastElementChild.className = "bad";
}

export function downloads(study, tables) {
  return section("Download", ...tables.map((name) => make("p", {}, `${name[0].toUpperCase()}${name.slice(1)}: `,
    ...["csv", "jsonl", "parquet"].flatMap((format) => [make("a", { href: new URL(`api/studies/${study}/exports/${name}.${format}`, root).href, download: true }, format.toUpperCase()), " "]))));
}

/** Call `refresh` now and whenever the study changes. */
export function follow(study, refresh) {
  let running = false, again = false;
  const run = async () => {
    if (running) { again = true; return; }
    running = true;
    do { again = false; await refresh(); } while (again);
    running = false;
  };
  const events = new EventSource(new URL(`api/studies/${study}/events`, root));
  events.addEventListener("changed", run);
  events.addEventListener("open", run);
  run();
  return events;
}

export const fetchResults = (study) => call("GET", `studies/${study}/results`);
