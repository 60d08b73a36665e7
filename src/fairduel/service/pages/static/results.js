// The results of a study, as operators and observers see them; drawn again whenever the server says that they changed.
import { call, make, root } from "./client.js";
import { modelResults } from "./models.js";

const SVG = "http://www.w3.org/2000/svg";
const number = new Intl.NumberFormat("en"), rough = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
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

const FEW = 4; // columns that fit on a phone

/** A table whose rows become cards on phones, unless it is narrow; cells are text or elements. Columns of buttons are not printed. */
export function table(columns, rows, marked = () => "", stacked = columns.length > FEW) {
  const cells = (row) => row.map((cell, place) => {
    const text = [columns[place].text && "text", columns[place].buttons && "buttons"].filter(Boolean).join(" ");
    return place === 0 ? make("th", { scope: "row", class: "text" }, cell)
      : make("td", { class: text, "data-label": columns[place].name }, cell ?? "–");
  });
  return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" },
    make("table", { class: stacked ? "stacked" : null },
      make("thead", {}, make("tr", {}, ...columns.map(({ name, text, buttons }, place) =>
        make("th", { scope: "col", class: `${text || place === 0 ? "text" : ""} ${buttons ? "buttons" : ""}`.trim() || null }, name)))),
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

function ranking(standings, certificates = []) {
  const least = Math.min(0, ...standings.map((each) => each.score_low));
  const most = Math.max(0, ...standings.map((each) => each.score_high));
  const groups = new Set(standings.map((each) => each.group)).size > 1;
  const proven = new Map(certificates.map((each) => [each.item, each.votes_proven - 1]));
  const columns = [{ name: "Item", text: true }, ...(groups ? [{ name: "Group", text: true }] : []), { name: "Rank" }, { name: "May be" },
    { name: "Best" }, { name: "Score and its 95% interval", text: true }, { name: "Score" }, { name: "Votes" }, { name: "Won" }, ...(certificates.length ? [{ name: "Survives false votes" }] : [])];
  const rows = standings.map((each) => [each.item, ...(groups ? [each.group] : []), `${each.rank}`, range(each), percent(each.best),
    interval(each, least, most), signed(each.score), number.format(Math.round(each.games)), each.games ? percent(each.win_rate) : "–",
    ...(certificates.length ? [proven.has(each.item) ? number.format(proven.get(each.item)) : "–"] : [])]);
  return table(columns, rows, (place) => (standings[place].rank_low === 1 ? "marked" : ""));
}

/** What few people need, folded; if it was open in an element that is drawn again, it stays open. */
export function folded(element, title, children) {
  if (!children.length) return [];
  const open = [...element.querySelectorAll("details[open] > summary")].some((each) => each.textContent === title);
  return [make("details", { open }, make("summary", {}, title), ...children)];
}

/** The answer, whether to stop, and how safe it is, as one box. */
function conclusion(results) {
  const stop = results.stopping.map(({ can_stop: can, sentence }) => make("li", { class: can ? "good" : null }, sentence));
  const firsts = results.certificates.filter(({ rank }) => rank === 1).slice(0, 3);
  return make("ul", { class: "conclusion" }, make("li", { class: "answer" }, results.needs ?? results.sentence), ...stop,
    ...firsts.map(({ sentence }) => make("li", {}, sentence)));
}

function numbers({ counts, ranking: [first], stopping: [race] }) {
  const needed = race == null ? null : race.can_stop ? "0: you can stop" : race.needed == null ? "too many" : `≈ ${rough.format(race.needed)}`;
  return tiles({
    ...cast(counts),
    ...(first ? { [`${first.item} is the best`]: percent(first.best) } : {}), ...(needed ? { "Votes still needed": needed } : {}),
    ...(counts.imported && { "Imported votes": number.format(counts.imported) }),
    Skipped: number.format(counts.skips), "Open duels": number.format(counts.open),
  });
}

function duels({ agent, balance }) {
  const columns = [{ name: "Pair", text: true }, { name: `Of the last ${agent.lately} duels` }, { name: "Order settled" }];
  const settled = (known) => (known == null ? "–" : known ? "yes" : "not yet");
  const rows = agent.pairs.map((pair) => [`${pair.one} – ${pair.other}`, `${pair.duels}`, settled(pair.settled)]);
  return section("How duels are chosen", ...paragraphs([agent.sentence, ...agent.sentences]),
    make("p", { class: balance.alarm ? "alarm" : null }, balance.sentence), ...(rows.length ? [table(columns, rows)] : []));
}

function activity(bars) {
  const most = Math.max(...bars.map((bar) => bar.votes), 1), width = 1000 / bars.length, { seconds } = bars[0];
  const time = (at) => new Date(1000 * at).toLocaleString([], { dateStyle: "medium", timeStyle: seconds < 60 ? "medium" : "short" });
  const end = bars.at(-1).from + seconds;
  const [size, unit] = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]].find(([each]) => seconds % each === 0);
  const span = seconds === size ? unit : `${seconds / size} ${unit}s`;
  return make("figure", {},
    draw("svg", { class: "activity", viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": `Votes over time, at most ${most} per ${span}` },
      ...bars.map((bar, place) => draw("rect", { x: place * width, width: Math.max(0.85 * width, 0.5), y: 100 - (100 * bar.votes) / most, height: (100 * bar.votes) / most }))),
    make("figcaption", { class: "ends" }, make("span", {}, time(bars[0].from)), make("span", {}, `one bar per ${span}, at most ${number.format(most)} votes`), make("span", {}, time(end))));
}

const tiles = (values) => make("dl", { class: "tiles" },
  ...Object.entries(values).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));

/** Replace what an element shows; whoever was on its n-th link, table or fold stays there. */
export function redraw(element, ...children) {
  const places = () => [...element.querySelectorAll("a, summary, [tabindex]")];
  const place = places().indexOf(document.activeElement);
  element.replaceChildren(...children);
  places()[place]?.focus({ preventScroll: true });
}

/** Votes and voters; people and language models separately if there are models. */
const cast = ({ votes, voters, models, model_votes: theirs }) => (models
  ? { "Votes of people": number.format(votes - theirs), "Votes of models": number.format(theirs), People: number.format(voters - models), Models: number.format(models) }
  : { Votes: number.format(votes), Voters: number.format(voters) });

/** Why a winner can be announced although the poll should not stop yet. */
const oneLook = ({ ranking: [first], stopping }) => (first?.rank_high === 1 && stopping.some((race) => !race.can_stop)
  ? ["This holds for one look at these votes, if all are true. The stopping rule above also allows for looking at any time and for some false votes."] : []);

/** Draw the results into an element. */
export function drawResults(element, results) {
  const notes = [...results.notes, ...(results.stale ? ["Newer votes are being added to these results."] : [])];
  const safety = results.certificates.filter(({ rank }) => rank !== 1).map(({ sentence }) => sentence);
  redraw(element,
    conclusion(results),
    numbers(results),
    ...(results.ranking.length ? [section(results.basis === "all votes" ? "Ranking" : "Ranking after the audit", ranking(results.ranking, results.certificates), ...paragraphs(notes),
      ...folded(element, "How certain this is", paragraphs(results.details)), ...folded(element, "What it would take to change each rank", paragraphs(safety)))] : []),
    ...modelResults(results, ranking),
    ...(results.advice.length ? [section("What to do", ...paragraphs([...results.advice, ...oneLook(results)]))] : []),
    ...(results.activity.length ? [section("Votes over time", activity(results.activity))] : []),
    duels(results),
  );
}

const LABELS = { trl: "Preferences (TRL)" };

export function downloads(study, tables) {
  return make("section", { class: "screen" }, make("h2", {}, "Download"), ...tables.map((name) => make("p", {}, `${LABELS[name] ?? name[0].toUpperCase() + name.slice(1)}: `,
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
