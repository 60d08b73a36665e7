// Studies for operators: make one, share it, watch it, act on it.
import { byId, call, login, make, Problem, root } from "./client.js";
import { manipulation } from "./cost.js";
import { drawGold } from "./gold.js";
import { drawItems } from "./items.js";
import { manage } from "./manage.js";
import { modelForm } from "./models.js";
import { newStudy } from "./newstudy.js";
import { redTeam } from "./redteam.js";
import { drawResults, downloads, fetchResults, folded, follow, paragraphs, redraw, section, table } from "./results.js";
import { askErase, askSetAside } from "./voterdialogs.js";

const view = byId("view"), notice = byId("notice");
const say = (text) => { notice.textContent = text; };
const when = (seconds) => new Date(1000 * seconds).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
const called = ({ name, participant, label, kind }) => (kind === "model" ? `${name ?? label} (model)` : name ?? participant ? `${name ?? participant} (${label})` : label);
const who = (row) => `${called(row)}${row.imported ? " (imported)" : ""}`;
const FIRST_VOTERS = 12; // the others are folded
let events = null;

/** Run a button's work; say what went wrong. */
const doing = (work) => async (event) => {
  event?.preventDefault();
  try { say(""); await work(event); } catch (error) { say(explain(error)); }
};
const explain = (error) => (error instanceof Problem && error.errors.length ? `${error.message} ${error.errors.map(({ field, problem }) => `${field}: ${problem}`).join("; ")}` : error instanceof TypeError ? "The service cannot be reached." : error.message);
const button = (text, work, attributes = {}) => make("button", { type: "button", onclick: doing(work), ...attributes }, text);

function title(text) {
  byId("title").textContent = document.title = text;
  byId("title").focus();
}

function go(study) {
  history.pushState(null, "", study ? `?study=${study}` : location.pathname);
  return route();
}

async function route() {
  events?.close();
  events = null;
  const study = new URLSearchParams(location.search).get("study");
  await (study ? showStudy(study) : showStudies());
}

// ---------------------------------------------------------------- all studies

async function showStudies() {
  const { studies } = await call("GET", "studies");
  title("Studies");
  const rows = studies.map((each) => [
    make("a", { href: `?study=${each.study}`, onclick: doing(() => go(each.study)) }, each.title || each.question),
    state(each.state), `${each.items}`, split(each.votes, each.model_votes), split(each.voters, each.models), when(each.created)]);
  const columns = [{ name: "Study", text: true }, { name: "State", text: true }, { name: "Items" }, { name: "Votes" }, { name: "Voters" }, { name: "Made" }];
  view.replaceChildren(...(studies.length ? [table(columns, rows)] : paragraphs(["There is no study yet. Make one below."])), newStudy({ doing, say, made: (study) => go(study.study) }));
}

const split = (all, models) => (models ? `${all - models} + ${models} by models` : `${all}`);
const state = (name) => make("span", { class: `state ${name}` }, name);

function field(id, label, input) {
  input.id = id;
  return [make("label", { for: id }, label), input];
}

// ---------------------------------------------------------------- one study

async function showStudy(id) {
  let study = await call("GET", `studies/${id}`);
  const { jobs } = await call("GET", `studies/${id}/jobs`);
  title(study.title || study.question);
  const head = make("div"), results = make("div"), voters = make("div"), items = make("div"), invited = make("div"), gold = make("div"), aftermath = make("div");
  const change = (fields) => async () => { study = await call("PATCH", `studies/${id}`, fields); drawHead(); };

  function drawHead() {
    const link = new URL(study.links.vote, root).href;
    const others = { open: [["Pause", "paused"], ["Close", "closed"]], paused: [["Resume", "open"], ["Close", "closed"]], closed: [["Open again", "open"]] }[study.state];
    head.replaceChildren(
      make("p", {}, make("span", { class: "screen" }, make("a", { href: ".", onclick: doing(() => go(null)) }, "All studies"), " · "), state(study.state), study.title && study.title !== study.question ? ` ${study.question}` : ""),
      make("div", { class: "row screen" }, make("span", { class: "link" }, link),
        button("Copy the link", async () => { await navigator.clipboard.writeText(link); say("Copied."); }),
        ...others.map(([text, to]) => button(text, change({ state: to }))),
        button("Link for observers", async () => { const made = await call("POST", `studies/${id}/observers`, {}); drawLinks("Link for observers (shown once)", [made]); })));
  }

  function drawLinks(what, made) {
    invited.replaceChildren(section(what, ...made.map(({ name, link, text }) => make("p", { class: "link" }, name ? `${name}: ` : "", text ?? new URL(link, root).href))));
  }

  function drawSettings(changed) {
    study = changed;
    drawItems(items, study, doing, drawSettings);
    drawGold(gold, study, doing, drawSettings);
  }

  async function drawVoters() {
    const { voters: rows, votes } = await call("GET", `studies/${id}/voters`);
    const columns = [{ name: "Voter", text: true }, { name: "Votes" }, { name: "Skips" }, { name: "Agrees with others" }, { name: "Seconds per vote" }, { name: "Known answers", text: true }, { name: "Evidence", text: true }, { name: "Change", text: true, buttons: true }];
    const percent = (share) => (share == null ? null : `${Math.round(100 * share)}%`);
    const cells = rows.slice(0, 200).map((row) => [who(row), `${row.votes}`, `${row.skips}`,
      row.agreement == null ? null : `${percent(row.agreement)} (${percent(row.agreement_low)}–${percent(row.agreement_high)})`,
      row.seconds_per_vote == null ? null : row.seconds_per_vote.toFixed(1),
      row.gold ? `${row.gold}${row.learned || row.set_aside || row.kind === "model" ? "" : "; the agent does not learn these votes now"}` : null,
      row.flagged ? make("span", {}, make("strong", { class: "bad" }, "Unusual: "), row.why) : row.why || (row.flagged == null ? "not tested" : "not flagged"),
      make("span", { class: "row" },
        button(row.set_aside ? "Count again" : "Set aside", () => askSetAside(id, row.voter, who(row), row.set_aside, async () => { await call("PATCH", `studies/${id}/voters/${row.voter}`, { set_aside: !row.set_aside }); await drawVoters(); }, aftermath), { "data-voter": row.voter }),
        ...(row.kind === "model" ? [] : [button("Erase …", () => askErase(who(row), async () => { await call("DELETE", `studies/${id}/voters/${row.voter}/personal`); await drawVoters(); }, aftermath), { "aria-label": `Erase personal data of ${who(row)}`, "data-voter": `erase ${row.voter}` })]))]);
    const more = rows.length > 200 ? [`${rows.length - 200} more voters are in the download.`] : [];
    const list = (from, to) => table(columns, cells.slice(from, to), (place) => (rows[from + place].set_aside ? "aside" : rows[from + place].flagged ? "marked" : ""));
    const focused = voters.contains(document.activeElement) ? document.activeElement.dataset.voter : null;
    redraw(voters, section("Voters",
      ...paragraphs([rows.length ? `Evidence rests on ${votes} votes. It is statistics, not proof: an honest person with another taste can look unusual. Setting someone aside keeps their votes, but they no longer count.` : "Nobody has voted yet."]), aftermath,
      ...(rows.length ? [list(0, FIRST_VOTERS)] : []),
      ...folded(voters, "Everyone else", rows.length > FIRST_VOTERS ? [list(FIRST_VOTERS, 200), ...paragraphs(more)] : [])));
    if (focused) voters.querySelector(`[data-voter="${focused}"]`)?.focus();
  }

  function invitation() {
    const names = make("textarea", { placeholder: "Ann\nBob" });
    const form = make("form", {}, ...field("names", "Invite people by name, one per line: each gets a personal link", names), make("p", {}, make("button", {}, "Make invitations")));
    form.addEventListener("submit", doing(async () => {
      const made = await call("POST", `studies/${id}/invitations`, { names: names.value.split("\n").map((name) => name.trim()).filter(Boolean) });
      drawLinks("Invitations (shown once: send each person their link)", made.invitations);
      invited.scrollIntoView();
    }));
    return form;
  }

  const team = redTeam(study, jobs);
  const modelKeys = (made) => drawLinks("Keys of language models (shown once)", made.map(({ name, key }) => ({ name, text: key })));
  view.replaceChildren(head, invited, results, voters, invitation(), modelForm(study, doing, modelKeys), gold, manipulation(study, jobs), team.element, items, manage(study, { doing, say, go, changed: (now) => { study = now; title(study.title || study.question); drawHead(); } }), downloads(id, ["votes", "duels", "comments", "voters", "ranking", "trl", "log"]));
  drawHead();
  drawSettings(study);
  let drawnAt = "";
  let lost = false; // only what was said here is taken back, not the answer to a button
  events = follow(id, async () => {
    try {
      const found = await fetchResults(id);
      drawResults(results, found);
      team.suggest(found.ranking);
      const at = `${found.position} ${found.computed}`;
      if (at !== drawnAt) await drawVoters();
      drawnAt = at;
      if (lost) say("");
      lost = false;
    } catch (error) {
      lost = true;
      say(explain(error));
    }
  });
}

// ---------------------------------------------------------------- start

async function open() {
  await login();
  const { scope } = await call("GET", "session");
  if (scope !== "operator") throw new Problem(401, { detail: "This page is for operators." }, 1);
  byId("login").hidden = true;
  await route();
}

function refuse(error) {
  byId("login").hidden = error.status !== 401;
  title("fairduel");
  say(error.status === 401 ? "" : explain(error));
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  call("POST", "session", { key: byId("key").value.trim() }).then(open).catch((error) => { refuse(error); say(error.status === 401 ? "This key is not known." : explain(error)); });
});
addEventListener("popstate", () => route().catch((error) => say(explain(error))));
open().catch(refuse);
