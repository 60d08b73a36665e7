// Items: who beat whom, how often each was shown, what is asked more or less often, and known answers.
import { call } from "../client.js";
import { make } from "../elements.js";
import { thumb } from "./answer.js";
import { bars, figure, heatMap } from "./charts.js";
import { choice, labelled, number, paragraphs, redraw, section, table, toast } from "./parts.js";

const MOST_BARS = 20,
  FIRST = 100;

function beatsChart({ items, wins }) {
  const rows = items.map((name, row) => [
    name,
    ...items.map((_, column) =>
      row === column
        ? "–"
        : `${number.format(wins[row][column])} of ${number.format(wins[row][column] + wins[column][row])}`,
    ),
  ]);
  return figure("Who beat whom", heatMap({ items, wins }), {
    about:
      "How often the item of a row won against that of a column; a tie is half a win. " +
      "Orange won less than half, blue more.",
    columns: [{ name: "Item" }, ...items.map((name) => ({ name, text: true }))],
    rows,
  });
}

function shownChart({ items, counts }) {
  const shown = items.toSorted((one, other) => other.shown - one.shown).slice(0, MOST_BARS);
  return figure(
    "Duels per item",
    bars(
      shown.map(({ name, shown: value }) => ({ name, value })),
      "duels",
    ),
    {
      about:
        "How often each item was compared. The agent asks most where the order is open." +
        (counts.imported ? " Imported votes are included." : ""),
      columns: [{ name: "Item" }, { name: "Duels" }],
      rows: items.map(({ name, shown: count }) => [name, number.format(count)]),
    },
  );
}

/** The tab of a study; `changed` gets the study after a change. */
export function itemsTab(study, { doing, changed }) {
  const charts = make("div", { class: "charts" }),
    list = make("div"),
    gold = make("div");

  const patch = (path, fields, said) =>
    doing(async () => {
      changed(await call("PATCH", `studies/${study.study}${path}`, fields()));
      toast(said);
    });

  function row(item) {
    const views = make("input", {
      type: "number",
      min: "0",
      max: "100000",
      value: item.least_views,
      placeholder: `${study.least_views}`,
      "aria-label": `Show ${item.name} at least this often`,
      "data-key": `views ${item.number}`,
    });
    const path = `/items/${item.number}`;
    views.addEventListener(
      "change",
      patch(path, () => ({ least_views: views.value === "" ? null : Number(views.value) }), "Saved."),
    );
    const button = (text, fields, said) =>
      make(
        "button",
        {
          type: "button",
          "aria-label": `${text}: ${item.name}`,
          onclick: patch(path, () => fields, said),
          "data-key": `${Object.keys(fields)} ${item.number}`,
        },
        text,
      );
    return make(
      "li",
      { class: item.enabled ? null : "aside" },
      thumb(item),
      make("span", { class: "name" }, item.name, item.priority && make("span", { class: "chip" }, "asked more often")),
      make("span", { class: "soft" }, `shown ${number.format(item.shown)} times`),
      make("label", { class: "inline" }, "at least ", views),
      make(
        "span",
        { class: "row" },
        button(item.priority ? "Ask as usual" : "Ask more often", { priority: !item.priority }, "Saved."),
        item.enabled
          ? button("Leave out", { enabled: false }, `${item.name} is not shown again.`)
          : button("Bring back", { enabled: true }, `${item.name} is shown again.`),
      ),
    );
  }

  function drawStudy(now) {
    study = now;
    redraw(
      list,
      section(
        "Items",
        ...paragraphs([
          "An item left out is not shown again; its votes stay. An item that is asked more often is in " +
            "every other duel. " +
            "“At least” is how often it is shown before the agent chooses freely.",
        ]),
        make("ul", { class: "items" }, ...study.items.slice(0, FIRST).map(row)),
        study.items.length > FIRST &&
          make(
            "p",
            {},
            `The other ${number.format(study.items.length - FIRST)} items can be changed through the HTTP interface.`,
          ),
      ),
    );
    redraw(gold, goldSection(study, doing, changed));
  }

  return {
    element: make("div", {}, charts, list, gold),
    drawStudy,
    draw: (results, now) =>
      redraw(
        charts,
        results.beats.items.length > 1 && beatsChart(results.beats),
        now.counts.issued > 0 && shownChart(now),
      ),
  };
}

const GOLD =
  "A gold duel shows two items of which you know the better one. Voters cannot tell it from another " +
  "duel. Their answers to gold duels are not ranked; they show who answers carelessly or falsely, and the agent " +
  "stops learning from those who are wrong too often. Nobody is set aside by this.";

function goldSection(study, doing, changed) {
  const { answers, first, every } = study.gold,
    names = study.items.map(({ name }) => name),
    contexts = study.contexts.map(({ name }) => name);
  const save = (gold, said) =>
    doing(async () => {
      changed(await call("PUT", `studies/${study.study}/gold`, gold()));
      toast(said);
    });
  const pairs = (list) => list.map((name) => [name, name]);
  const winner = choice(pairs(names)),
    loser = choice(pairs(names)),
    context = choice(pairs(contexts));
  loser.value = names[1];
  const start = make("input", { type: "number", min: "1", max: "1000", value: first, required: true });
  const often = make("input", { type: "number", min: "2", max: "1000", value: every, required: true });
  const columns = [
    { name: "Better", text: true },
    { name: "Worse", text: true },
    ...(contexts.length ? [{ name: "Context", text: true }] : []),
    { name: "Change", text: true },
  ];
  const rows = answers.map((each, place) => [
    each.winner,
    each.loser,
    ...(contexts.length ? [each.context] : []),
    make(
      "button",
      {
        type: "button",
        "aria-label": `Remove ${each.winner} before ${each.loser}`,
        onclick: save(() => ({ first, every, answers: answers.filter((_, other) => other !== place) }), "Removed."),
      },
      "Remove",
    ),
  ]);
  const form = make(
    "form",
    { class: "fields" },
    labelled("gold-winner", "Better item", winner),
    labelled("gold-loser", "Worse item", loser),
    ...(contexts.length ? [labelled("gold-context", "Context", context)] : []),
    make("button", {}, "Add this known answer"),
  );
  const added = () => ({ winner: winner.value, loser: loser.value, context: contexts.length ? context.value : null });
  form.addEventListener(
    "submit",
    save(() => ({ first, every, answers: [...answers, added()] }), "Added."),
  );
  const pace = make(
    "form",
    { class: "fields" },
    labelled("gold-first", "First gold duel within a voter’s first", start),
    labelled("gold-every", "Then one duel in", often),
    make("button", {}, "Save how often"),
  );
  pace.addEventListener(
    "submit",
    save(() => ({ answers, first: Number(start.value), every: Number(often.value) }), "Saved."),
  );
  return section(
    "Gold duels",
    ...paragraphs([GOLD]),
    ...(answers.length ? [table(columns, rows)] : paragraphs(["There are no known answers yet."])),
    form,
    pace,
  );
}
