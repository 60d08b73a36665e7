// Studies for operators: make one, share it, watch it, act on it.
import { call, login, Problem } from "../client.js";
import { byId, make } from "../elements.js";
import { newStudy } from "./newstudy.js";
import { counted, icon, number, section, toast, trail, when } from "./parts.js";
import { showStudy, stateChip } from "./study.js";

const view = byId("view");
let shown = null;

const explain = (error) => (error instanceof TypeError ? "The service cannot be reached." : error.message);
const listed = (errors) => errors.map(({ field, problem }) => `${field ? `${field}: ` : ""}${problem}.`).join(" ");

/** Run a button's work and say what went wrong: beside the `fields`, if it is about them, or else in a toast. */
const doing =
  (work, fields = null) =>
  async (event) => {
    event?.preventDefault();
    try {
      await work(event);
    } catch (error) {
      const problems = error instanceof Problem ? error.errors : [];
      const rest = fields ? fields.showProblems(problems) : problems;
      if (problems.length && !rest.length) return toast("Please correct the marked field.", "bad");
      const text = rest.length ? listed(rest) : explain(error);
      fields?.showRest?.(text);
      toast(text, "bad");
    }
    return null;
  };

const title = (text) => {
  document.title = text;
};

async function show(address) {
  history.pushState(null, "", address);
  await route();
  byId("title")?.focus();
  scrollTo(0, 0);
}

const go = (study) => show(study ? `?study=${study}` : location.pathname);

async function route() {
  const query = new URLSearchParams(location.search),
    study = query.get("study");
  if (shown && shown.id === study) {
    shown.openTab();
    return;
  }
  shown?.close();
  shown = null;
  if (study) shown = await showStudy(view, study, { doing, explain, go, title });
  else if (query.has("new")) showForm();
  else await showStudies();
}

const heading = (text) => make("h1", { id: "title", tabindex: "-1" }, text);
const form = () => newStudy({ doing, made: (study) => go(study.study) });

function showForm() {
  title("New study");
  view.replaceChildren(
    make(
      "div",
      { class: "list-head" },
      make(
        "div",
        {},
        trail(
          "All studies",
          doing(() => go(null)),
        ),
        heading("New study"),
      ),
    ),
    form(),
  );
}

const decided = (group, leader) =>
  (group ? `Group ${group}: ` : "") + (leader ? `${leader} has won` : group ? "a tie" : "A tie");
const inNumbers = ({ votes, model_votes: theirs, voters, models }) =>
  models
    ? `${counted(votes - theirs, "vote")} of ${counted(voters - models, "person", "people")}, ` +
      `${number.format(theirs)} of ${counted(models, "model")}`
    : `${counted(votes, "vote")} of ${counted(voters, "voter")}`;

async function showStudies() {
  const { studies } = await call("GET", "studies");
  title("Studies");
  const card = (each) =>
    make(
      "li",
      {},
      make(
        "a",
        { class: "card study", href: `?study=${each.study}`, onclick: doing(() => go(each.study)) },
        make("strong", {}, each.title || each.question),
        stateChip(each.archived ? "archived" : each.state),
        ...each.decided.map(({ group, leader }) =>
          make(
            "span",
            { class: `decided${leader ? "" : " tie"}` },
            icon(leader ? "won" : "tie"),
            decided(group, leader),
          ),
        ),
        make("span", { class: "soft" }, `${counted(each.items, "item")} · made ${when(each.created)}`),
        make("span", { class: "numbers" }, inNumbers(each)),
      ),
    );
  view.replaceChildren(
    make(
      "div",
      { class: "list-head" },
      heading("Studies"),
      studies.length > 0 &&
        make("a", { class: "button main", href: "?new", onclick: doing(() => show("?new")) }, "New study"),
    ),
    ...(studies.length
      ? [make("ul", { class: "studies" }, ...studies.map(card))]
      : [
          section(
            "No study yet",
            make(
              "p",
              {},
              "A study asks one question: people see two things at a time and choose. Make the first one below.",
            ),
          ),
          form(),
        ]),
  );
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
  const unknown = error.status === 404;
  view.replaceChildren(heading(unknown ? "There is no such study" : "Your studies"));
  if (unknown)
    view.append(
      make("p", {}, "It was deleted, or the address is wrong."),
      trail(
        "All studies",
        doing(() => go(null)),
      ),
    );
  else if (error.status !== 401) toast(explain(error), "bad");
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  call("POST", "session", { key: byId("key").value.trim() })
    .then(open)
    .catch((error) => {
      refuse(error);
      toast(error.status === 401 ? "This key is not known." : explain(error), "bad");
    });
});
addEventListener("popstate", () => route().catch((error) => toast(explain(error), "bad")));
open().catch(refuse);
