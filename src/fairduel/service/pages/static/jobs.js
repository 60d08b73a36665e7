// Jobs that the server computes in the background, and the two rankings that most of them compare.
import { call, make, pause } from "./client.js";
import { table } from "./results.js";

const LOOK_EVERY = 0.7; // seconds

/** Start a job and wait for it; `tell` gets a sentence about how far it is. Throws if it fails. */
export async function compute(study, path, body, tell) {
  let job = await call("POST", `studies/${study}/${path}`, body);
  while (job.state === "waiting" || job.state === "running") {
    tell(job.state === "waiting" ? "Waiting for another computation …" : `Computing … ${Math.round(100 * job.progress)}%`);
    await pause(LOOK_EVERY);
    job = await call("GET", `studies/${study}/jobs/${job.job}`);
  }
  tell("");
  if (job.state === "failed") throw new Error(job.problem);
  return job;
}

const shown = (rank) => (rank == null ? "–" : `${rank}`);

/** A table of ranks before and after; `columns` are pairs of a heading and a row's key. */
export function rankTable(rows, columns) {
  const moved = (row) => row.before !== row.after;
  return table([{ name: "Item", text: true }, ...columns.map(([name]) => ({ name })), { name: "Change" }],
    rows.map((row) => [row.item, ...columns.map(([, key]) => shown(row[key])), change(row)]), (place) => (moved(rows[place]) ? "marked" : ""), false);
}

function change({ before, after }) {
  if (before === after) return "–";
  if (before == null || after == null) return "new";
  return before > after ? `▲ ${before - after}` : `▼ ${after - before}`;
}

/** Fields of a form: a label, and an input or select below it. */
export function labelled(id, label, input) {
  input.id = id;
  return make("div", { class: "field" }, make("label", { for: id }, label), input);
}

/** A form whose fields stand side by side, and a line that says how far its work is. */
export function tool(fields, action, work, style = "main") {
  const status = make("p", { class: "soft", role: "status" }), result = make("div"), submit = make("button", { class: style }, action);
  const form = make("form", { class: "fields" }, ...fields, submit);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try { await work((text) => { status.textContent = text; }, result); }
    catch (error) { status.textContent = error.message; }
    submit.disabled = false;
  });
  return { form, status, result };
}
