// Gold duels for operators: known answers that test voters.
import { call, make } from "./client.js";
import { paragraphs, section, table } from "./results.js";

const EXPLANATION = "A gold duel shows two items of which you know the better one. Voters cannot tell it from another duel. Their answers to gold duels are not ranked; they show who answers carelessly or falsely, and the agent stops learning from those who are wrong too often. Nobody is set aside by this.";

const options = (names) => names.map((name) => make("option", { value: name }, name));
const labelled = (id, text, input) => { input.id = id; return make("p", {}, make("label", { for: id }, text), input); };

/** Draw the section into an element; `run` wraps work of buttons, `changed` gets the changed study. */
export function drawGold(element, study, run, changed) {
  const { answers, first, every } = study.gold, names = study.items.map(({ name }) => name), contexts = study.contexts.map(({ name }) => name);
  const save = (gold) => run(async () => changed(await call("PUT", `studies/${study.study}/gold`, gold())));
  const winner = make("select", {}, ...options(names)), loser = make("select", {}, ...options(names));
  const context = make("select", {}, ...options(contexts));
  loser.value = names[1];
  const start = make("input", { type: "number", min: "1", max: "1000", value: first, required: true });
  const often = make("input", { type: "number", min: "2", max: "1000", value: every, required: true });
  const columns = [{ name: "Better", text: true }, { name: "Worse", text: true }, ...(contexts.length ? [{ name: "Context", text: true }] : []), { name: "Change", text: true, buttons: true }];
  const rows = answers.map((each, place) => [each.winner, each.loser, ...(contexts.length ? [each.context] : []),
    make("button", { type: "button", "aria-label": `Remove ${each.winner} before ${each.loser}`, onclick: save(() => ({ first, every, answers: answers.filter((_, other) => other !== place) })) }, "Remove")]);
  const form = make("form", {},
    make("div", { class: "row fields" }, labelled("gold-winner", "Better item", winner), labelled("gold-loser", "Worse item", loser),
      ...(contexts.length ? [labelled("gold-context", "Context", context)] : []), make("p", {}, make("button", {}, "Add this known answer"))));
  form.addEventListener("submit", save(() => ({ first, every, answers: [...answers, { winner: winner.value, loser: loser.value, context: contexts.length ? context.value : null }] })));
  const pace = make("form", {}, make("div", { class: "row fields" }, labelled("gold-first", "First gold duel within a voter's first", start),
    labelled("gold-every", "Then one duel in", often), make("p", {}, make("button", {}, "Save how often"))));
  pace.addEventListener("submit", save(() => ({ answers, first: Number(start.value), every: Number(often.value) })));
  element.replaceChildren(section("Gold duels", ...paragraphs([EXPLANATION]), ...(answers.length ? [table(columns, rows)] : paragraphs(["There are no known answers yet."])), form, pace));
}
