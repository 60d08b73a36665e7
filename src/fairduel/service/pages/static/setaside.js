// Set a voter aside, or count them again: what that does is shown before it is confirmed, and afterwards.
import { make } from "./client.js";
import { compute, rankTable } from "./jobs.js";
import { paragraphs } from "./results.js";

const COLUMNS = [["Rank with them", "before"], ["Without them", "after"]];

/** Ask in a dialog; `confirm` does it. `aftermath` is an element that keeps what was shown. */
export function askSetAside(study, voter, name, isAside, confirm, aftermath) {
  const action = isAside ? "Count again" : "Set aside";
  const status = make("p", { class: "soft", role: "status" }), found = make("div");
  const doIt = make("button", { type: "button", class: "main" }, action), cancel = make("button", { type: "button" }, "Cancel");
  const about = isAside ? "Their votes will count again." : "Their votes are kept, but no longer count. A flag accuses a person: look at the evidence first.";
  const dialog = make("dialog", { "aria-labelledby": "ask-title" }, make("h2", { id: "ask-title" }, `${action}: ${name}?`), make("p", {}, about), status, found,
    make("div", { class: "row" }, doIt, cancel));
  const close = () => { dialog.close(); dialog.remove(); };
  dialog.addEventListener("cancel", () => dialog.remove());
  cancel.addEventListener("click", close);
  doIt.addEventListener("click", async () => {
    doIt.disabled = true;
    try {
      await confirm();
      const done = make("p", {}, make("strong", {}, isAside ? `${name} counts again.` : `${name} is set aside.`));
      close();
      aftermath.replaceChildren(done, status, found);
    } catch (error) { status.textContent = error.message; doIt.disabled = false; }
  });
  document.body.append(dialog);
  dialog.showModal();
  compute(study, `voters/${voter}/effect`, {}, (text) => { status.textContent = text; })
    .then(({ result }) => found.replaceChildren(make("p", { class: "answer" }, result.sentence), ...paragraphs(result.details), rankTable(result.ranking, COLUMNS)))
    .catch((error) => { status.textContent = error.message; });
}
