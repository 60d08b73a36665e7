// The items of a study for operators: how often each was shown, and how often it is to be.
import { call, make } from "./client.js";
import { paragraphs, section, table } from "./results.js";

/** Draw the section into an element; `run` wraps work of buttons, `changed` gets the changed study. */
export function drawItems(element, study, run, changed) {
  const patch = (path, fields) => run(async () => changed(await call("PATCH", `studies/${study.study}${path}`, fields())));
  const button = (text, item, fields) => make("button", { type: "button", "aria-label": `${text}: ${item.name}`, onclick: patch(`/items/${item.number}`, () => fields) }, text);
  const views = (item) => {
    const input = make("input", { type: "number", min: "0", max: "100000", value: item.least_views, placeholder: `${study.least_views}`, "aria-label": `Show ${item.name} at least so often` });
    input.addEventListener("change", patch(`/items/${item.number}`, () => ({ least_views: input.value === "" ? null : Number(input.value) })));
    return input;
  };
  const columns = [{ name: "Item", text: true }, { name: "Shown" }, { name: "At least", text: true, buttons: true }, { name: "Priority", text: true, buttons: true }, { name: "Change", text: true, buttons: true }];
  const rows = study.items.map((item) => [item.name, `${item.shown}`, views(item),
    button(item.priority ? "Ask as usual" : "Ask more often", item, { priority: !item.priority }),
    button(item.enabled ? "Leave out" : "Bring back", item, { enabled: !item.enabled })]);
  const least = make("input", { id: "least-views", type: "number", min: "0", max: "100000", value: study.least_views, required: true });
  const form = make("form", {}, make("label", { for: "least-views" }, "Show each item at least so often before the agent chooses freely"), make("div", { class: "row" }, least, make("button", {}, "Save")));
  form.addEventListener("submit", patch("", () => ({ least_views: Number(least.value) })));
  const what = "An item left out is not shown again; its votes stay. An item that is asked more often is in every other duel.";
  const focused = element.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  element.replaceChildren(section("Items", ...paragraphs([what]), form, table(columns, rows, (place) => (study.items[place].enabled ? (study.items[place].priority ? "marked" : "") : "aside"))));
  if (focused) [...element.querySelectorAll("[aria-label]")].find((each) => each.getAttribute("aria-label").endsWith(focused.split(": ").pop()))?.focus();
}
