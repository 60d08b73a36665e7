// The first tab of a study: the answer, whether someone cheats, the ranking, and how it came about.
import { make } from "../elements.js";
import { answerCard, progress, rankingList } from "./answer.js";
import { figure, lines, timeline } from "./charts.js";
import { counted, folded, icon, number, paragraphs, percent, redraw, rough, section, table } from "./parts.js";

/** Votes and voters; people and language models separately if there are models. */
export const cast = ({ votes, voters, models, model_votes: theirs }) =>
  models
    ? {
        "Votes of people": number.format(votes - theirs),
        "Votes of models": number.format(theirs),
        People: number.format(voters - models),
        Models: number.format(models),
      }
    : { Votes: number.format(votes), Voters: number.format(voters) };

const FEW = 0.05; // a chance of being the best that a line must have had to be named
const MOST_NAMED = 5;

const tiles = (values) =>
  make(
    "dl",
    { class: "tiles card" },
    ...Object.entries(values).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))),
  );

/** Whether someone cheats, as far as the votes show: {kind, headline, about}. */
export function integrity({ access }, { voters, joins }, { balance, counts, basis }) {
  const flagged = voters.filter((each) => each.flagged && !each.set_aside),
    aside = voters.filter((each) => each.set_aside),
    tested = voters.filter((each) => each.flagged != null);
  const set = aside.length ? ` ${counted(aside.length, "voter")} ${aside.length === 1 ? "is" : "are"} set aside.` : "";
  const isOpen = access === "link" || access === "platform"; // else nobody votes twice
  const crowded = joins.filter((each) => isOpen && each.in_a_minute >= 10);
  if (flagged.length)
    return {
      kind: "is-bad",
      headline: `${counted(flagged.length, "voter")} ${flagged.length === 1 ? "looks" : "look"} unusual`,
      about: `That may be another taste, or false votes; the ranking gives them less weight.${set}`,
    };
  if (balance.alarm) return { kind: "is-bad", headline: "One side wins too often", about: `${balance.sentence}${set}` };
  if (crowded.length)
    return {
      kind: "is-unsure",
      headline: "Many voters joined from one address",
      about: `Up to ${number.format(Math.max(...crowded.map((each) => each.in_a_minute)))} within a minute.${set}`,
    };
  const camp = voters.filter((each) => each.camp && !each.set_aside),
    camps = [...new Set(camp.map((each) => each.camp))];
  if (camp.length)
    return {
      kind: "is-unsure",
      headline: `${counted(camp.length, "voter")} ${camp.length === 1 ? "votes" : "vote"} as a camp`,
      about:
        `${camps.length === 1 ? "Camp" : "Camps"}: ${camps.join("; ")}. ` +
        `They may be fans, another audience, or false accounts.${set}`,
    };
  if (basis !== "all votes")
    return {
      kind: "is-unsure",
      headline: "Some votes look unusual",
      about: `A group of voters differs, or two answered alike; the ranking gives them less weight.${set}`,
    };
  if (!tested.length)
    return {
      kind: "is-unsure",
      headline: counts.votes ? "Nobody is checked yet" : "No votes yet",
      about: `The check starts with the ranking.${set}`,
    };
  return {
    kind: "is-good",
    headline: "Nobody looks unusual",
    about: `${counted(tested.length, "voter")} checked.${set} Careful liars may escape the check.`,
  };
}

function integrityCard(found, link) {
  return make(
    "a",
    { class: `integrity card ${found.kind}`, ...link },
    icon(found.kind === "is-good" ? "shield" : found.kind === "is-bad" ? "warning" : "people"),
    make("span", {}, make("strong", {}, found.headline), make("span", {}, found.about)),
  );
}

/** How the verdict came about: both charts, for one group of items. */
export function courseCharts({ course, verdicts }) {
  if (course.length < 2 || verdicts.length !== 1) return [];
  const names = Object.keys(course.at(-1).best);
  const best = names.map((name, place) => {
    const points = course.map(({ votes, best: known }) => ({ x: votes, y: known[name] ?? 0 }));
    return { name, points, faint: place > 1 && (place >= MOST_NAMED || points.every(({ y }) => y < FEW)) };
  });
  const share = (point) => progress({ ...point, can_stop: point.state === "won" });
  const evidence = [{ name: "Evidence", points: course.map((point) => ({ x: point.votes, y: share(point) })) }];
  const stop = course.find(({ state }) => state === "won");
  const lasts = course.at(-1).state === "won";
  const mark = stop && lasts && { x: stop.votes, name: "enough evidence" };
  return [
    figure("Chance of being the best", lines({ series: best, most: 1, say: percent, mark }), {
      about: "How likely each item was to be the best, after the first votes, with the weights that votes have today.",
      columns: [{ name: "Votes" }, ...names.map((name) => ({ name }))],
      rows: course.map(({ votes, best: known }) => [
        number.format(votes),
        ...names.map((name) => percent(known[name] ?? null)),
      ]),
    }),
    figure(
      "Evidence towards stopping",
      lines({ series: evidence, most: 1.1, say: percent, line: { y: 1, name: "stop here" } }),
      {
        about: stop
          ? `There was enough evidence after ${number.format(stop.votes)} votes` + (lasts ? "." : ", but not any more.")
          : "At 100%, the leader has won, no matter how often you look.",
        columns: [{ name: "Votes" }, { name: "Evidence (log E)" }, { name: "Needed" }, { name: "Share" }],
        rows: course.map((point) => [
          number.format(point.votes),
          rough.format(point.evidence),
          rough.format(point.bar),
          percent(share(point)),
        ]),
      },
    ),
  ];
}

function activityChart(stretches) {
  const { seconds } = stretches[0];
  const [size, unit] = [
    [86400, "day"],
    [3600, "hour"],
    [60, "minute"],
    [1, "second"],
  ].find(([each]) => seconds % each === 0);
  const span = seconds === size ? unit : `${seconds / size} ${unit}s`;
  return figure("Votes over time", timeline(stretches, span), {
    about: `One column per ${span}.`,
    columns: [{ name: "From" }, { name: "Votes" }],
    rows: stretches.map(({ from, votes }) => [new Date(1000 * from).toLocaleString(), number.format(votes)]),
  });
}

function howChosen({ agent, balance }) {
  const columns = [
    { name: "Pair", text: true },
    { name: `Of the last ${agent.lately} duels` },
    { name: "Order settled" },
  ];
  const settled = (known) => (known == null ? "–" : known ? "yes" : "not yet");
  const rows = agent.pairs.map((pair) => [`${pair.one} – ${pair.other}`, `${pair.duels}`, settled(pair.settled)]);
  return make(
    "section",
    { class: "card chart" },
    make("h2", {}, "How duels are chosen"),
    ...paragraphs([agent.sentence, ...agent.sentences]),
    make("p", { class: balance.alarm ? "alarm" : null }, balance.sentence),
    rows.length > 0 && folded("The pairs", table(columns, rows)),
  );
}

/** What models voted, if they are kept apart. */
function modelResults(study, { models }) {
  if (!models) return [];
  const count =
    `${counted(models.votes, "vote")} of ${counted(models.voters, "model")}; ` +
    "not learned, and not in the ranking of people’s votes.";
  return [
    section(
      "Language models, apart from people",
      ...paragraphs([count, models.sentence, ...models.agreement.map(({ sentence }) => sentence)]),
      models.ranking.length > 0 && rankingList(study, models),
    ),
  ];
}

/** The parts of the results that observers may publish too, without the answer card. */
function rankingSection(study, results) {
  const safety = results.certificates.filter(({ rank }) => rank !== 1).map(({ sentence }) => sentence);
  const basis = results.basis === "all votes" ? [] : ["Each vote counts as far as the audit trusts its voter."];
  return section(
    "Ranking",
    ...paragraphs(basis),
    rankingList(study, results),
    make("div", { class: "soft notes" }, ...paragraphs(results.notes)),
    results.details.length > 0 && folded("How certain this is", ...paragraphs(results.details)),
    safety.length > 0 && folded("What it would take to change each rank", ...paragraphs(safety)),
  );
}

/** Draw the tab; `voters` is the API's reply, `toVoters` the attributes of a link to them. */
export function drawOverview(element, study, results, voters, toVoters) {
  const { counts } = results;
  const { seconds_per_vote: seconds, joined, finished } = voters.funnel;
  redraw(
    element,
    make(
      "div",
      { class: "top" },
      answerCard(study, results),
      integrityCard(integrity(study, voters, results), toVoters),
      tiles({
        ...cast(counts),
        ...(counts.imported > 0 && {
          Imported: counts.imported < counts.votes ? number.format(counts.imported) : "all",
        }),
        ...(seconds != null && { "Seconds per vote": rough.format(seconds) }),
        ...(finished != null && joined > 0 && { Finished: `${number.format(finished)} of ${number.format(joined)}` }),
        ...(counts.skips > 0 && { Skipped: number.format(counts.skips) }),
        ...(counts.open > 0 && { "Being answered": number.format(counts.open) }),
      }),
    ),
    results.advice.length > 0 &&
      make(
        "section",
        { class: "card advice" },
        make("h2", {}, "What to do"),
        make("ul", {}, ...results.advice.map((each) => make("li", {}, each))),
      ),
    results.ranking.length > 0 && rankingSection(study, results),
    make(
      "div",
      { class: "charts" },
      ...courseCharts(results),
      results.activity.length > 0 && activityChart(results.activity),
      results.computed !== null && howChosen(results),
    ),
    ...modelResults(study, results),
  );
}
