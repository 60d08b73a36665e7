// Voters: who votes how, as a map and as a list to search, with the evidence on each, and what to do about them.
import { call } from "../client.js";
import { make } from "../elements.js";
import { bars, figure, voterMap } from "./charts.js";
import { integrity } from "./overview.js";
import { askErase, askSetAside, askSetSeveralAside } from "./lab.js";
import { choice, counted, number, paragraphs, percent, redraw, rough, section, table, when } from "./parts.js";
import { AGAIN, made } from "./share.js";

const AT_ONCE = 25; // rows
const SUREST = 6; // log10 of the evidence that fills the bar
const called = ({ name, participant, label, kind }) =>
  kind === "model" ? `${name ?? label} (model)` : (name ?? participant) ? `${name ?? participant} (${label})` : label;
export const who = (row) => `${called(row)}${row.imported ? " (imported)" : ""}`;

const FILTERS = [
  ["all", "Everyone", () => true],
  ["unusual", "Unusual", (row) => row.flagged],
  ["camp", "In a camp", (row) => row.camp],
  ["aside", "Set aside", (row) => row.set_aside],
  ["gold", "Failed known answers", (row) => row.gold_of > row.gold_right],
  ["models", "Language models", (row) => row.kind === "model"],
];
const ORDERS = [
  ["evidence", "Most evidence first", null], // the server's order
  ["votes", "Most votes first", (one, other) => other.votes - one.votes],
  ["agreement", "Least agreement first", (one, other) => (one.agreement ?? 2) - (other.agreement ?? 2)],
  ["joined", "Newest first", (one, other) => other.joined - one.joined],
  ["name", "By name", (one, other) => who(one).localeCompare(who(other))],
];

const meter = (share, text, kind, title) =>
  make(
    "span",
    { class: `measure ${kind}`, title },
    make("progress", { max: "1", value: `${share}`, "aria-hidden": "true" }),
    make("span", { class: "value" }, text || make("span", { class: "unseen" }, "none")),
  );

function evidence(row) {
  if (row.set_aside) return make("span", { class: "chip" }, "set aside");
  const log = row.log10_evidence;
  if (log == null) return make("span", { class: "soft" }, "not tested");
  const share = Math.max(0, Math.min(log / SUREST, 1));
  const text = log < 0.5 ? "" : log > 9 ? "1 in over 10⁹" : `1 in ${rough.format(Math.round(10 ** log))}`;
  const title = "An honest voter looks as unusual as this with at most that probability.";
  return meter(share, text, row.flagged ? "is-bad" : "plain", title);
}

const agreement = (row) =>
  row.agreement == null
    ? make("span", { class: "soft" }, "–")
    : meter(row.agreement, percent(row.agreement), "plain", "How often they agree with everyone else");

/** What is known about a voter, as facts. */
function facts(row) {
  const range = `${percent(row.agreement)} (${percent(row.agreement_low)} to ${percent(row.agreement_high)})`;
  const gold =
    row.gold +
    (row.learned || row.set_aside || row.kind === "model" ? "" : "; the agent does not learn these votes now");
  const known = {
    Skips: number.format(row.skips),
    "Agrees with others": row.agreement != null && range,
    "Seconds per vote":
      row.seconds_per_vote != null && `${row.seconds_per_vote.toFixed(1)}${row.hasty ? " (hasty)" : ""}`,
    "Known answers": row.gold && gold,
    Camp: row.camp && `${row.camp} (${percent(row.camp_probability)})`,
    "Votes most for": row.target,
    Address: row.address,
    Joined: when(row.joined),
  };
  return make(
    "dl",
    { class: "facts" },
    ...Object.entries(known).flatMap(([name, value]) =>
      value
        ? [make("div", { class: `${value}`.length > 30 ? "long" : null }, make("dt", {}, name), make("dd", {}, value))]
        : [],
    ),
  );
}

/** The tab of a study; returns its element and what draws it. */
export function votersTab(study, { doing }) {
  const head = make("div"),
    aftermath = make("div", { class: "aftermath" }),
    list = make("ol", { class: "voters" }),
    found = make("span", { class: "soft", role: "status" }),
    every = make("button", { type: "button", class: "plain" }, "Select them all"),
    bulk = make("div", { class: "bulk row", hidden: true }),
    joins = make("div"),
    more = make("button", { type: "button", hidden: true }, "Show more");
  const search = make("input", {
    id: "search",
    type: "search",
    placeholder: "Name, id, address or evidence",
    autocomplete: "off",
  });
  const filter = choice(FILTERS.map(([name, text]) => [name, text])),
    order = choice(ORDERS.map(([name, text]) => [name, text]));
  Object.assign(filter, { id: "voter-filter" });
  Object.assign(order, { id: "voter-order" });
  let rows = [],
    matching = [],
    shown = AT_ONCE;
  const chosen = new Set();
  const id = study.study;
  const change = (voter, aside) => call("PATCH", `studies/${id}/voters/${voter}`, { set_aside: aside });
  let refresh = async () => {};

  const setAside = (row) => () =>
    askSetAside(
      id,
      row.voter,
      who(row),
      row.set_aside,
      async () => {
        await change(row.voter, !row.set_aside);
        await refresh();
      },
      aftermath,
    );
  const erase = (row) => () =>
    askErase(
      who(row),
      async () => {
        await call("DELETE", `studies/${id}/voters/${row.voter}/personal`);
        await refresh();
      },
      aftermath,
    );

  const entry = (row) =>
    make(
      "li",
      { class: row.set_aside ? "aside" : row.flagged ? "flagged" : null, "data-voter": row.voter },
      make("input", {
        type: "checkbox",
        "aria-label": `Select ${who(row)}`,
        "data-key": `select ${row.voter}`,
        checked: chosen.has(row.voter),
        onchange: (event) => {
          chosen[event.target.checked ? "add" : "delete"](row.voter);
          drawBulk();
        },
      }),
      make(
        "details",
        { "data-key": row.voter },
        make(
          "summary",
          { "data-key": `open ${row.voter}` },
          make(
            "span",
            { class: "name" },
            who(row),
            row.flagged && !row.set_aside && make("span", { class: "chip bad" }, "unusual"),
            row.camp && make("span", { class: "chip" }, row.camp),
          ),
          make("span", { class: "votes" }, counted(row.votes, "vote")),
          make("span", { class: "agrees" }, agreement(row)),
          make("span", { class: "evidence" }, evidence(row)),
        ),
        row.why && make("p", {}, make("strong", { class: "bad" }, row.flagged ? "Unusual: " : ""), row.why),
        facts(row),
        make(
          "p",
          { class: "row" },
          make(
            "button",
            { type: "button", onclick: doing(setAside(row)), "data-key": `aside ${row.voter}` },
            row.set_aside ? "Count again" : "Set aside",
          ),
          row.kind !== "model" &&
            make(
              "button",
              {
                type: "button",
                class: "plain",
                onclick: doing(erase(row)),
                "data-key": `erase ${row.voter}`,
                "aria-label": `Erase personal data of ${who(row)}`,
              },
              "Erase …",
            ),
        ),
      ),
    );

  function drawList() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (row) => [who(row), row.participant, row.address, row.why, row.camp].join(" ").toLowerCase();
    const keep = FILTERS.find(([name]) => name === filter.value)[2];
    matching = rows.filter((row) => keep(row) && words.every((word) => text(row).includes(word)));
    const compare = ORDERS.find(([name]) => name === order.value)[2];
    if (compare) matching.sort(compare);
    found.textContent =
      matching.length === rows.length
        ? counted(rows.length, "voter")
        : `${number.format(matching.length)} of ${counted(rows.length, "voter")}`;
    more.hidden = matching.length <= shown;
    every.hidden = !matching.length;
    redraw(list, ...matching.slice(0, shown).map(entry));
  }

  function drawBulk() {
    const those = rows.filter(({ voter }) => chosen.has(voter));
    bulk.hidden = !those.length;
    const several = (aside) => () =>
      askSetSeveralAside(those.map(who), aside, async () => {
        for (const { voter } of those) await change(voter, aside);
        chosen.clear();
        await refresh();
      });
    bulk.replaceChildren(
      make("strong", {}, `${counted(those.length, "voter")} selected`),
      make("button", { type: "button", onclick: several(true) }, "Set all aside"),
      make("button", { type: "button", onclick: several(false) }, "Count all again"),
      make(
        "button",
        {
          type: "button",
          class: "plain",
          onclick: () => {
            chosen.clear();
            drawList();
            drawBulk();
          },
        },
        "Clear",
      ),
    );
  }

  const find = (row) => {
    search.value = row.label;
    filter.value = "all";
    shown = AT_ONCE;
    drawList();
    const place = list.querySelector(`[data-voter="${row.voter}"] details`);
    if (place) place.open = true;
    place?.scrollIntoView({ block: "center" });
    place?.querySelector("summary").focus({ preventScroll: true });
  };

  for (const each of [search, filter, order])
    each.addEventListener("input", () => {
      shown = AT_ONCE;
      drawList();
    });
  every.addEventListener("click", () => {
    for (const { voter } of matching) chosen.add(voter);
    drawList();
    drawBulk();
  });
  more.addEventListener("click", () => {
    shown += 4 * AT_ONCE;
    drawList();
  });

  function draw(reply, results) {
    rows = reply.voters;
    for (const voter of chosen) if (!rows.some((row) => row.voter === voter)) chosen.delete(voter);
    const state = integrity(study, reply, results);
    redraw(
      head,
      make(
        "section",
        { class: `card ${state.kind}` },
        make("h2", {}, state.headline),
        ...paragraphs([
          state.about,
          rows.length
            ? `Evidence rests on ${counted(reply.votes, "vote")}. It is statistics, not proof: ` +
              "an honest person with another taste " +
              "can look unusual. Setting someone aside keeps their votes, but they no longer count."
            : "Nobody has voted yet.",
        ]),
      ),
      make("div", { class: "charts" }, mapOf(rows, find), funnelOf(reply)),
    );
    everyone.hidden = !rows.length;
    drawList();
    drawBulk();
    redraw(joins, ...joinsTable(study, reply.joins));
  }

  const everyone = section(
    "Everyone",
    aftermath,
    make(
      "div",
      { class: "tools" },
      make("label", { for: "search" }, "Search", search),
      make("label", { for: "voter-filter" }, "Show", filter),
      make("label", { for: "voter-order" }, "Order", order),
    ),
    make("p", { class: "row" }, found, every),
    bulk,
    make(
      "p",
      { class: "voters-head soft", "aria-hidden": "true" },
      ...["Voter", "Votes", "Agrees with others", "How unusual"].map((name) => make("span", {}, name)),
    ),
    list,
    more,
  );
  return {
    element: make("div", {}, head, everyone, joins, section("Language models", ...modelForm(study, doing))),
    draw,
    onChange: (work) => {
      refresh = work;
    },
  };
}

function mapOf(rows, find) {
  const placed = rows.filter((row) => row.agreement != null);
  if (!placed.length) return null;
  const camps = [...new Set(placed.map(({ camp }) => camp).filter(Boolean))].toSorted();
  const points = placed.map((row) => ({
    name: who(row),
    votes: row.votes,
    agreement: row.agreement,
    flagged: row.flagged,
    aside: row.set_aside,
    camp: camps.indexOf(row.camp),
  }));
  const of = camps.length ? ` Shapes and colours are camps: ${camps.join(", ")}.` : "";
  return figure(
    "How voters agree",
    voterMap(points, (place) => find(placed[place])),
    {
      about:
        "A point per voter: how often they agree with everyone else, by their number of votes; red is unusual." +
        `${of} A click shows the evidence.`,
      columns: [{ name: "Voter" }, { name: "Votes" }, { name: "Agrees" }, { name: "Camp", text: true }],
      rows: placed.map((row) => [who(row), number.format(row.votes), percent(row.agreement), row.camp]),
    },
  );
}

function funnelOf({ funnel, opened }) {
  if (!funnel.joined && !opened) return null;
  const { joined, voted, finished, seconds_per_vote: seconds } = funnel;
  const steps = [
    ...(opened >= joined ? [{ name: "Opened", value: opened, share: null }] : []),
    { name: "Joined", value: joined, share: null },
    { name: "Voted", value: voted, share: joined ? voted / joined : null },
    ...(finished == null ? [] : [{ name: "Finished", value: finished, share: joined ? finished / joined : null }]),
  ];
  const pace = seconds == null ? "" : ` They take ${rough.format(seconds)} seconds per vote (median).`;
  return figure("How far people come", bars(steps, "people"), {
    about:
      `Since the server started, the page was opened ${counted(opened, "time")} by browsers that had not joined.` +
      pace,
    columns: [{ name: "Step" }, { name: "People" }, { name: "Of those who joined" }],
    rows: steps.map(({ name, value, share }) => [name, number.format(value), share == null ? "–" : percent(share)]),
  });
}

/** What adds a model as a voter, and shows its key once. */
function modelForm(study, doing) {
  const names = make("input", { id: "model-names", required: true, maxlength: "200", placeholder: "gpt-x" }),
    keys = make("div");
  const counts = study.models === "counted" ? "count like people’s" : "are kept apart from people’s";
  const form = make(
    "form",
    {},
    make("label", { for: "model-names" }, "Name of the model"),
    make("div", { class: "row" }, names, make("button", {}, "Add the model")),
    keys,
  );
  form.addEventListener(
    "submit",
    doing(async () => {
      const { invitations } = await call("POST", `studies/${study.study}/invitations`, {
        kind: "model",
        names: [names.value.trim()],
      });
      names.value = "";
      keys.replaceChildren(
        made(
          "Keys of language models (shown once)",
          invitations.map(({ name, key }) => ({ name, text: key })),
        ),
      );
    }),
  );
  return [...paragraphs([`A language model votes with a key of its own. In this study its votes ${counts}.`]), form];
}

/** The addresses from which several voters joined; nothing if there are none. */
function joinsTable(study, joins) {
  if (!joins.length) return [];
  const columns = [
    { name: "Address", text: true },
    { name: "Voters" },
    { name: "Most in a minute" },
    { name: "Votes" },
    { name: "First", text: true },
    { name: "Last", text: true },
  ];
  const rows = joins
    .slice(0, 20)
    .map((each) => [
      each.address,
      `${each.voters}`,
      `${each.in_a_minute}`,
      `${each.votes}`,
      when(each.first),
      when(each.last),
    ]);
  return [
    section(
      "Voters from one address",
      ...paragraphs([
        ...(study.access === "link" ? [`${AGAIN}.`] : []),
        "A school or an office may share an address, so many voters from one address prove nothing. " +
          "Addresses are shown as pseudonyms.",
      ]),
      table(columns, rows),
    ),
  ];
}
