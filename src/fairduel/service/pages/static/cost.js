// The cost of manipulation under the study's limits, and the limit itself.
import { call, make } from "./client.js";
import { compute, labelled, tool } from "./jobs.js";
import { paragraphs, section, table } from "./results.js";

const COLUMNS = [{ name: "Votes per account", text: true }, { name: "Accounts, unnoticed" }, { name: "Votes" }, { name: "Of them false" }, { name: "Tactic", text: true }, { name: "Accounts without the audit" }];

/** The section of a study and what brings it up to date; `jobs` are those that the server remembers. */
export function manipulation(study, jobs) {
  const limit = make("input", { type: "number", min: "1", max: "100000", placeholder: "no limit", value: study.votes_per_voter });
  const limiting = tool([labelled("limit", "Answers per voter", limit)], "Change the limit", async () => {
    await call("PATCH", `studies/${study.study}`, { votes_per_voter: Number(limit.value) || null });
    searching.form.requestSubmit();
  }, "");
  const accounts = make("input", { type: "number", min: "1", max: "100", placeholder: study.access === "invitation" ? "not yet voted" : "100" });
  const searching = tool([labelled("accounts", "False accounts at most", accounts)], "Search",
    async (tell, place) => draw(place, await compute(study.study, "cost", { voters: Number(accounts.value) || null }, tell)));
  const last = jobs.find((job) => job.kind === "cost" && job.result);
  if (last) draw(searching.result, last);
  return section("What manipulation would cost",
    ...paragraphs(["The fewest false accounts found that make the runner-up first, within this study's limits and unnoticed by the audit. It takes up to some minutes, at low priority."]),
    make("div", { class: "fields" }, limiting.form, searching.form), limiting.status, searching.status, searching.result);
}

function draw(place, { result, created }) {
  const rows = result.rows.map((row) => [`up to ${row.most_votes_each}`, ...[row.accounts, row.votes, row.false_votes].map((value) => value?.toLocaleString("en")), row.tactic, row.accounts_without_audit?.toLocaleString("en")]);
  const at = new Date(1000 * created).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  place.replaceChildren(
    make("p", { class: "answer" }, result.sentence), ...paragraphs(result.details),
    ...(rows.length ? [table(COLUMNS, rows)] : []),
    make("p", { class: "soft" }, [...result.searched, `Asked ${at}.`].join(" ")));
}
