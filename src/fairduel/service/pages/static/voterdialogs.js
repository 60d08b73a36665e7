// What is asked before a voter is set aside, counted again, or forgotten.
import { make } from "./client.js";
import { compute, rankTable } from "./jobs.js";
import { paragraphs } from "./results.js";

const COLUMNS = [["Rank with them", "before"], ["Without them", "after"]];

/** Ask in a dialog whether to do something; `confirm` does it. Returns elements for what is said meanwhile and found. */
function ask(action, name, about, confirm) {
  const status = make("p", { class: "soft", role: "status" }), found = make("div");
  const doIt = make("button", { type: "button", class: "main" }, action), cancel = make("button", { type: "button" }, "Cancel");
  const dialog = make("dialog", { "aria-labelledby": "ask-title" }, make("h2", { id: "ask-title" }, `${action}: ${name}?`), make("p", {}, about), status, found,
    make("div", { class: "row" }, doIt, cancel));
  const close = () => { dialog.close(); dialog.remove(); };
  dialog.addEventListener("cancel", () => dialog.remove());
  cancel.addEventListener("click", close);
  doIt.addEventListener("click", async () => {
    doIt.disabled = true;
    try {
      await confirm();
      close();
    } catch (error) { status.textContent = error.message; doIt.disabled = false; }
  });
  document.body.append(dialog);
  dialog.showModal();
  return { status, found };
}

/** Ask whether to set a voter aside, or to count them again: what that does is shown before, and in `aftermath` afterwards. */
export function askSetAside(study, voter, name, isAside, confirm, aftermath) {
  const about = isAside ? "Their votes will count again." : "Their votes are kept, but no longer count. A flag accuses a person: look at the evidence first.";
  const { status, found } = ask(isAside ? "Count again" : "Set aside", name, about, async () => {
    await confirm();
    aftermath.replaceChildren(make("p", {}, make("strong", {}, isAside ? `${name} counts again.` : `${name} is set aside.`)), status, found);
  });
  compute(study, `voters/${voter}/effect`, {}, (text) => { status.textContent = text; })
    .then(({ result }) => found.replaceChildren(make("p", { class: "answer" }, result.sentence), ...paragraphs(result.details), rankTable(result.ranking, COLUMNS)))
    .catch((error) => { status.textContent = error.message; });
}

/** Ask whether to erase what is personal about a voter. */
export function askErase(name, confirm, aftermath) {
  ask("Erase personal data", name, "Their name, participant id and comments are deleted for good. Their votes stay, and the log still verifies.", async () => {
    await confirm();
    aftermath.replaceChildren(make("p", {}, make("strong", {}, "Their personal data are erased; their votes stay.")));
  });
}
