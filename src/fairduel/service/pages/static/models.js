// Language models as voters: their results beside people's, and their keys.
import { call, make } from "./client.js";
import { paragraphs, section } from "./results.js";

/** What models voted, if they are kept apart; `ranking` draws standings. */
export function modelResults({ models }, ranking) {
  if (!models) return [];
  const count = `${models.votes} ${models.votes === 1 ? "vote" : "votes"} of ${models.voters} ${models.voters === 1 ? "model" : "models"}; not learned, and not in the ranking of people's votes.`;
  return [section("Language models, apart from people", ...paragraphs([count, models.sentence, ...models.agreement.map(({ sentence }) => sentence)]),
    ...(models.ranking.length ? [ranking(models.ranking)] : []))];
}

/** A form that adds models as voters and shows their keys once. */
export function modelForm(study, run, show) {
  const names = make("input", { id: "model-names", required: true, maxlength: "200", placeholder: "gpt-x" });
  const counted = study.models === "counted" ? "In this study their votes count like people's." : "In this study their votes are kept apart from people's.";
  const form = make("form", {}, make("label", { for: "model-names" }, `Add a language model as a voter, with a key of its own. ${counted}`),
    make("div", { class: "row" }, names, make("button", {}, "Add the model")));
  form.addEventListener("submit", run(async () => {
    const { invitations } = await call("POST", `studies/${study.study}/invitations`, { kind: "model", names: [names.value.trim()] });
    names.value = "";
    show(invitations);
  }));
  return form;
}
