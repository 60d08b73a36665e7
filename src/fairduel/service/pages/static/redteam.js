// Red team: simulated liars vote in a copy of the study, and both rankings are compared.
import { make } from "./client.js";
import { compute, labelled, rankTable, tool } from "./jobs.js";
import { paragraphs, section } from "./results.js";

const ATTACKS = [
  ["promote", "vote for an item, else honestly"], ["demote", "vote against an item, else honestly"],
  ["half-honest", "vote for an item half of the time"], ["omnipresent", "vote for an item and whatever lifts it"],
  ["inverters", "vote against the ranking"], ["random votes", "vote at random"]];
const AIMLESS = ["inverters", "random votes"];
const COLUMNS = [["Rank without liars", "before"], ["With liars", "after"], ["With liars, all votes alike", "unchecked"]];

/** The section of a study, and what suggests the runner-up of a ranking; `jobs` are those that the server remembers. */
export function redTeam(study, jobs) {
  const count = (value, least, most) => make("input", { type: "number", min: `${least}`, max: `${most}`, value: `${value}`, required: true });
  const option = ([value, text]) => make("option", { value }, text);
  const each = study.votes_per_voter ?? 1000;
  const liars = count(10, 1, 500), votes = count(Math.min(20, each), 1, each), honest = count(10, 0, 500), seed = count(0, 0, 2147483647);
  const attack = make("select", {}, ...ATTACKS.map(option));
  const item = make("select", {}, ...study.items.map(({ name }) => option([name, name])));
  let chosen = false;
  item.addEventListener("change", () => { chosen = true; });
  attack.addEventListener("change", () => { item.disabled = AIMLESS.includes(attack.value); });
  const fields = [labelled("liars", "Liars", liars), labelled("liar-votes", "Votes each", votes), labelled("attack", "They", attack),
    labelled("pushed", "Item", item), labelled("honest", "Honest newcomers", honest), labelled("seed", "Seed", seed)];
  const { form, status, result } = tool(fields, "Run", async (tell, place) => {
    const aimless = AIMLESS.includes(attack.value);
    const plan = { attack: attack.value, item: aimless ? null : item.value, liars: Number(liars.value), votes_each: Number(votes.value), honest: Number(honest.value), seed: Number(seed.value) };
    draw(place, (await compute(study.study, "red-team", plan, tell)).result);
  });
  const last = jobs.find((job) => job.kind === "red-team" && job.result);
  if (last) draw(result, last.result);
  const element = section("Red team", ...paragraphs(["Simulated liars vote in a copy of this study, on duels that its agent chooses. The study itself does not change."]), form, status, result);
  return { element, suggest: (ranking) => { if (!chosen && ranking[1]) item.value = ranking[1].item; } };
}

function draw(place, found) {
  const { votes, plan } = found;
  const flagged = found.flagged.slice(0, 20).map((each) => make("li", {}, make("strong", {}, each.voter), each.liar ? ": " : " (honest): ", each.why));
  place.replaceChildren(
    make("p", { class: "answer" }, found.sentence),
    ...paragraphs(found.details),
    rankTable(found.ranking, COLUMNS),
    ...(flagged.length ? [make("details", {}, make("summary", {}, `Who was caught, and why (${found.flagged.length})`), make("ul", {}, ...flagged))] : []),
    make("p", { class: "soft" }, `A copy of ${votes.recorded} votes, ${votes.liars} more by liars and ${votes.honest} by honest newcomers; seed ${plan.seed}. Real liars may be cleverer.`));
}
