// What the server computes in the background: red team, cost of manipulation, and the ranking without a voter.
import { call, pause } from "../client.js";
import { make } from "../elements.js";
import { counted, labelled, number, openDialog, paragraphs, section, table, toast, when } from "./parts.js";

const LOOK_EVERY = 0.7; // seconds

/** Start a job and wait for it; `tell` gets a sentence about how far it is. Throws if it fails. */
async function compute(study, path, body, tell) {
  let job = await call("POST", `studies/${study}/${path}`, body);
  while (job.state === "waiting" || job.state === "running") {
    const percent = Math.round(100 * job.progress);
    tell(job.state === "waiting" ? "Waiting for another computation …" : `Computing … ${percent}%`);
    await pause(LOOK_EVERY);
    job = await call("GET", `studies/${study}/jobs/${job.job}`);
  }
  tell("");
  if (job.state === "failed") throw new Error(job.problem);
  return job;
}

const shown = (rank) => (rank == null ? "–" : `${rank}`);

/** A table of ranks before and after; `columns` are pairs of a heading and a row's key. */
function rankTable(rows, columns) {
  const moved = (row) => row.before !== row.after;
  return table(
    [{ name: "Item", text: true }, ...columns.map(([name]) => ({ name })), { name: "Change" }],
    rows.map((row) => [row.item, ...columns.map(([, key]) => shown(row[key])), change(row)]),
    (place) => (moved(rows[place]) ? "marked" : ""),
  );
}

function change({ before, after }) {
  if (before === after) return "–";
  if (before == null || after == null) return "new";
  return before > after ? `▲ ${before - after}` : `▼ ${after - before}`;
}

/** A form whose fields stand side by side, and a line that says how far its work is. */
function tool(fields, action, work, style = "main") {
  const status = make("p", { class: "soft", role: "status" }),
    result = make("div"),
    submit = make("button", { class: style }, action);
  const form = make("form", { class: "fields" }, ...fields, submit);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await work((text) => {
        status.textContent = text;
      }, result);
    } catch (error) {
      status.textContent = error.message;
    }
    submit.disabled = false;
  });
  return { form, status, result };
}

const CAMPAIGNS = [
  { name: "Votes per account", text: true },
  { name: "Accounts, not reported" },
  { name: "Votes" },
  { name: "Of them false" },
  { name: "Tactic", text: true },
  { name: "Accounts without the audit" },
];

/** The section of a study and what brings it up to date; `jobs` are those that the server remembers. */
export function manipulation(study, jobs) {
  const limit = make("input", {
    type: "number",
    min: "1",
    max: "100000",
    placeholder: "no limit",
    value: study.votes_per_voter,
  });
  const limiting = tool(
    [labelled("limit", "Answers per voter", limit)],
    "Change the limit",
    async () => {
      await call("PATCH", `studies/${study.study}`, { votes_per_voter: Number(limit.value) || null });
      searching.form.requestSubmit();
    },
    "",
  );
  const accounts = make("input", {
    type: "number",
    min: "1",
    max: "100",
    placeholder: study.access === "invitation" ? "not yet voted" : "100",
  });
  const searching = tool([labelled("accounts", "False accounts at most", accounts)], "Search", async (tell, place) =>
    drawCampaigns(place, await compute(study.study, "cost", { voters: Number(accounts.value) || null }, tell)),
  );
  const last = jobs.find((job) => job.kind === "cost" && job.result);
  if (last) drawCampaigns(searching.result, last);
  return section(
    "What manipulation would cost",
    ...paragraphs([
      "The fewest false accounts found that make the runner-up first, within this study's limits, without the audit " +
        "reporting any of them. It takes up to some minutes, at low priority.",
    ]),
    make("div", { class: "fields" }, limiting.form, searching.form),
    limiting.status,
    searching.status,
    searching.result,
  );
}

function drawCampaigns(place, { result, created }) {
  const rows = result.rows.map((row) => [
    `up to ${row.most_votes_each}`,
    ...[row.accounts, row.votes, row.false_votes].map((value) => value?.toLocaleString("en")),
    row.tactic,
    row.accounts_without_audit?.toLocaleString("en"),
  ]);
  place.replaceChildren(
    make("p", { class: "finding" }, result.sentence),
    ...paragraphs(result.details),
    ...(rows.length ? [table(CAMPAIGNS, rows)] : []),
    make("p", { class: "soft" }, [...result.searched, `Asked ${when(created)}.`].join(" ")),
  );
}

const WITH_LIARS = [
  ["Rank without liars", "before"],
  ["With liars", "after"],
  ["With liars, all votes alike", "unchecked"],
];

/** The section of a study, and what suggests the runner-up of a ranking; `jobs` are those that the server remembers. */
export function redTeam(study, jobs, tactics) {
  const count = (value, least, most) =>
    make("input", { type: "number", min: `${least}`, max: `${most}`, value: `${value}`, required: true });
  const option = ([value, text]) => make("option", { value }, text);
  const each = study.votes_per_voter ?? 1000;
  const liars = count(10, 1, 500),
    votes = count(Math.min(20, each), 1, each),
    honest = count(10, 0, 500),
    seed = count(0, 0, 2147483647);
  const attack = make(
    "select",
    {},
    ...tactics.map(({ name, how }) => option([name, `vote ${how.replace("{item}", "an item")}`])),
  );
  attack.value = "promote";
  const needsItem = () => tactics.find(({ name }) => name === attack.value).needs_item;
  const item = make("select", {}, ...study.items.map(({ name }) => option([name, name])));
  let chosen = false;
  item.addEventListener("change", () => {
    chosen = true;
  });
  attack.addEventListener("change", () => {
    item.disabled = !needsItem();
  });
  const fields = [
    labelled("liars", "Liars", liars),
    labelled("liar-votes", "Votes each", votes),
    labelled("attack", "They", attack),
    labelled("pushed", "Item", item),
    labelled("honest", "Honest newcomers", honest),
    labelled("seed", "Seed", seed),
  ];
  const { form, status, result } = tool(fields, "Run", async (tell, place) => {
    const plan = {
      attack: attack.value,
      item: needsItem() ? item.value : null,
      liars: Number(liars.value),
      votes_each: Number(votes.value),
      honest: Number(honest.value),
      seed: Number(seed.value),
    };
    drawAttack(place, (await compute(study.study, "red-team", plan, tell)).result);
  });
  const last = jobs.find((job) => job.kind === "red-team" && job.result);
  if (last) drawAttack(result, last.result);
  const element = section(
    "Red team",
    ...paragraphs([
      "Simulated liars vote in a copy of this study, on duels that its agent chooses; where their " +
        "tactic says nothing, they are honest. The study itself does not change.",
    ]),
    form,
    status,
    result,
  );
  return {
    element,
    suggest: (ranking) => {
      if (!chosen && ranking[1]) item.value = ranking[1].item;
    },
  };
}

function drawAttack(place, found) {
  const { votes, plan } = found;
  const flagged = found.flagged
    .slice(0, 20)
    .map((each) => make("li", {}, make("strong", {}, each.voter), each.liar ? ": " : " (honest): ", each.why));
  place.replaceChildren(
    make("p", { class: "finding" }, found.sentence),
    ...paragraphs(found.details),
    rankTable(found.ranking, WITH_LIARS),
    ...(flagged.length
      ? [
          make(
            "details",
            {},
            make("summary", {}, `Who was caught, and why (${found.flagged.length})`),
            make("ul", {}, ...flagged),
          ),
        ]
      : []),
    make(
      "p",
      { class: "soft" },
      `A copy of ${counted(votes.recorded, "vote")}, ${number.format(votes.liars)} more by liars and ` +
        `${number.format(votes.honest)} by honest newcomers; ` +
        `seed ${plan.seed}. Real liars may be cleverer.`,
    ),
  );
}

const WITH_VOTER = [
  ["Rank with them", "before"],
  ["Without them", "after"],
];

/** Ask in a dialog whether to do something; `confirm` does it. Return elements for what is said and found meanwhile. */
export function ask(action, title, about, confirm) {
  const status = make("p", { class: "soft", role: "status" }),
    found = make("div");
  const doIt = make("button", { type: "button", class: "main" }, action),
    cancel = make("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const dialog = openDialog(
    title,
    make("p", {}, about),
    status,
    found,
    make("div", { class: "row end" }, cancel, doIt),
  );
  doIt.addEventListener("click", async () => {
    doIt.disabled = true;
    try {
      await confirm();
      dialog.close();
    } catch (error) {
      status.textContent = error.message;
      doIt.disabled = false;
    }
  });
  return { status, found };
}

/** Ask whether to set a voter aside or count them again. Its effect is shown before, and in `aftermath` afterwards. */
export function askSetAside(study, voter, name, isAside, confirm, aftermath) {
  const about = isAside
    ? "Their votes will count again."
    : "Their votes are kept, but no longer count. A flag accuses a person: look at the evidence first.";
  const action = isAside ? "Count again" : "Set aside";
  const { status, found } = ask(action, `${action}: ${name}?`, about, async () => {
    await confirm();
    toast(isAside ? `${name} counts again.` : `${name} is set aside.`);
    aftermath.replaceChildren(status, found);
  });
  compute(study, `voters/${voter}/effect`, {}, (text) => {
    status.textContent = text;
  })
    .then(({ result }) =>
      found.replaceChildren(
        make("p", { class: "finding" }, result.sentence),
        ...paragraphs(result.details),
        rankTable(result.ranking, WITH_VOTER),
      ),
    )
    .catch((error) => {
      status.textContent = error.message;
    });
}

const NAMED = 8; // of many voters

/** The same for several voters at once; what that does to the ranking is seen afterwards. */
export function askSetSeveralAside(names, aside, confirm) {
  const first = names.slice(0, NAMED).join(", ") + (names.length > NAMED ? ` and ${names.length - NAMED} others` : "");
  const count = `${names.length} voter${names.length === 1 ? "" : "s"}`;
  const action = aside ? "Set aside" : "Count again";
  const about = aside
    ? `${first}. Their votes are kept, but no longer count, and you can count them again. ` +
      "A flag accuses a person: look at the evidence first."
    : `${first}. Their votes will count again.`;
  ask(action, `${action}: ${count}?`, about, async () => {
    await confirm();
    toast(aside ? `${count} set aside.` : `${count} counted again.`);
  });
}

/** Ask whether to erase what is personal about a voter. */
export function askErase(name, confirm, aftermath) {
  const about =
    "Their name, participant id and comments are deleted for good. Their votes stay, and the log still verifies.";
  ask("Erase personal data", `Erase personal data: ${name}?`, about, async () => {
    await confirm();
    aftermath.replaceChildren();
    toast("Their personal data are erased; their votes stay.");
  });
}
