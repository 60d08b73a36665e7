// One study: its head, its tabs, and what keeps them up to date.
import { call } from "../client.js";
import { make } from "../elements.js";
import { dataTab } from "./data.js";
import { itemsTab } from "./items.js";
import { ask, manipulation, redTeam } from "./lab.js";
import { drawOverview } from "./overview.js";
import { copyable, fetchResults, follow, icon, redraw, toast, trail } from "./parts.js";
import { settingsTab } from "./settings.js";
import { qrCode, share, voteLink } from "./share.js";
import { votersTab } from "./voters.js";

const TABS = {
  overview: "Overview",
  items: "Items",
  voters: "Voters",
  lab: "Attack lab",
  settings: "Settings",
  data: "Data",
};
const MOVES = {
  open: [
    ["Pause", "paused", "Voting is paused. Voters’ pages continue when you resume it."],
    ["Close", "closed", "Voting is closed."],
  ],
  paused: [
    ["Resume", "open", "Voting goes on."],
    ["Close", "closed", "Voting is closed."],
  ],
  closed: [["Open again", "open", "Voting goes on."]],
};

export const stateChip = (name) => make("span", { class: `chip ${name}` }, name);

/** A menu of buttons that opens below its button, and closes when it is left. */
function menu(entries) {
  const list = make("div", { class: "menu-list" }, ...entries);
  const fold = make("details", { class: "menu" }, make("summary", { "aria-label": "More" }, icon("more")), list);
  list.addEventListener("click", () => (fold.open = false));
  fold.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !fold.contains(event.relatedTarget)) fold.open = false;
  });
  addEventListener("pointerdown", (event) => {
    if (!fold.contains(event.target)) fold.open = false;
  });
  fold.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    fold.open = false;
    fold.querySelector("summary").focus();
  });
  return fold;
}

/** What an operator sees before anyone voted; `invite` opens the dialog with personal links. */
function emptyState(study, invite) {
  const link = voteLink(study);
  const isOpen = !["invitation", "participant"].includes(study.access);
  const step = (title, text) => make("li", {}, make("strong", {}, title), " ", text);
  return make(
    "section",
    { class: "card empty" },
    make(
      "div",
      {},
      make("h2", {}, "Ready for the first vote"),
      ...(isOpen
        ? [copyable(link, "Copy the link", "The link is copied.")]
        : [
            make("p", {}, "Only people with a personal link can vote."),
            make("p", {}, make("button", { type: "button", class: "main", onclick: invite }, "Make personal links")),
          ]),
      study.access === "link" &&
        make("p", {}, make("a", { class: "button", href: link, target: "_blank", rel: "noopener" }, "Try it yourself")),
      make(
        "ol",
        { class: "steps" },
        step("Share", isOpen ? "the link, or show the QR code." : "personal links."),
        step("Watch", "the answer appear here; the page updates itself."),
        step("Stop", "when the card says that you can."),
      ),
    ),
    isOpen && qrCode(link, "voters"),
  );
}

/**
 * Show a study; return what stops keeping it up to date.
 * @param tools doing (wraps what a button does), explain (an error in a sentence), go (opens a study or all)
 */
export async function showStudy(view, id, { doing, explain, go, title }) {
  let study = await call("GET", `studies/${id}`);
  const [{ jobs }, { tactics }] = await Promise.all([call("GET", `studies/${id}/jobs`), call("GET", "tactics")]);
  const head = make("div", { class: "study-head" }),
    overview = make("div", {}, make("p", { class: "card soft", role: "status" }, "Loading …"));
  const changed = (now) => {
    study = now;
    drawHead();
    items.drawStudy(study);
  };
  const sharing = () => share(study, doing, changed);
  const items = itemsTab(study, { doing, changed });
  const voters = votersTab(study, { doing });
  const team = redTeam(study, jobs, tactics);
  const panels = {
    overview,
    items: items.element,
    voters: voters.element,
    lab: make("div", {}, manipulation(study, jobs), team.element),
    settings: settingsTab(study, { doing, changed, go }),
    data: dataTab(study, { doing }),
  };
  const nav = make("nav", { class: "tabs", "aria-label": "Study" });
  const links = Object.entries(TABS).map(([name, text]) =>
    make("a", { href: `?study=${id}&tab=${name}`, onclick: (event) => choose(event, name) }, text),
  );
  nav.append(...links);

  function choose(event, name) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.pushState(null, "", `?study=${id}&tab=${name}`);
    openTab();
    view.querySelector(".panels").focus({ preventScroll: true });
  }

  function openTab() {
    const wanted = new URLSearchParams(location.search).get("tab");
    const now = wanted in TABS ? wanted : "overview";
    for (const [place, name] of Object.keys(TABS).entries()) {
      panels[name].hidden = name !== now;
      if (name === now) {
        links[place].setAttribute("aria-current", "page");
        nav.scrollLeft = links[place].offsetLeft - 16;
      } else links[place].removeAttribute("aria-current");
    }
    scrollTo(0, 0);
  }

  function drawHead() {
    title(study.title || study.question);
    const moves = MOVES[study.state].map(([text, to, said]) =>
      make(
        "button",
        {
          type: "button",
          onclick: doing(async () => {
            changed(await call("PATCH", `studies/${id}`, { state: to }));
            toast(said);
          }),
        },
        text,
      ),
    );
    const archive = make(
      "button",
      {
        type: "button",
        onclick: doing(async () => {
          changed(await call("PATCH", `studies/${id}`, { archived: !study.archived }));
          toast(study.archived ? "It is archived: last in the list of studies." : "It is no longer archived.");
        }),
      },
      study.archived ? "Bring back from the archive" : "Archive",
    );
    const remove = make(
      "button",
      {
        type: "button",
        class: "bad",
        onclick: () =>
          ask(
            "Delete the study",
            `Delete “${study.title || study.question}”?`,
            "Its votes and voters are gone for good. Only hashes stay, so that the log still verifies.",
            async () => {
              await call("DELETE", `studies/${id}`);
              await go(null);
              toast("The study is deleted.");
            },
          ),
      },
      "Delete …",
    );
    redraw(
      head,
      make(
        "div",
        { class: "names" },
        trail(
          "All studies",
          doing(() => go(null)),
        ),
        make("h1", { id: "title", tabindex: "-1" }, study.title || study.question, " ", stateChip(study.state)),
        study.title && study.title !== study.question && make("p", { class: "soft" }, study.question),
      ),
      make(
        "div",
        { class: "row actions screen" },
        make(
          "button",
          { type: "button", class: "main", onclick: sharing, "data-key": "share" },
          icon("share"),
          "Share",
        ),
        menu([...moves, archive, remove]),
      ),
    );
  }

  const toVoters = {
    href: `?study=${id}&tab=voters`,
    onclick: (event) => choose(event, "voters"),
    "data-key": "integrity",
  };
  let lost = null;
  async function refresh() {
    try {
      const [results, reply, now] = await Promise.all([
        fetchResults(id),
        call("GET", `studies/${id}/voters`),
        call("GET", `studies/${id}`),
      ]);
      const shown = { ...results, counts: now.counts };
      if (now.state !== study.state) changed(now);
      if (now.counts.votes || now.counts.skips || results.ranking.length)
        drawOverview(overview, study, shown, reply, toVoters);
      else if (!overview.querySelector(".empty")) redraw(overview, emptyState(study, sharing));
      items.draw(shown, now);
      voters.draw(reply, shown);
      team.suggest(results.ranking);
      lost?.remove();
      lost = null;
      return true;
    } catch (error) {
      lost ??= toast(explain(error), "busy");
      return false;
    }
  }
  voters.onChange(refresh);

  view.replaceChildren(
    head,
    make("div", { class: "sided" }, nav, make("div", { class: "panels", tabindex: "-1" }, ...Object.values(panels))),
  );
  drawHead();
  items.drawStudy(study);
  openTab();
  const events = follow(id, refresh);
  return { close: () => events.close(), openTab, id };
}
