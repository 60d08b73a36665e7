// The answer of a study: its verdict as a card, and its ranking. Operators and observers see the same.
import { fileUrl } from "../client.js";
import { draw, make } from "../elements.js";
import { capital, icon, number, paragraphs, percent, rough } from "./parts.js";

const STATES = { "too early": "Too early to say", tie: "A tie", leads: "A leader", won: "A winner" };
const FIRST = 25; // items that are shown at once
const FACES = 3; // of tied items

/** A small picture of an item, or else its first letter; `item` is as the study lists it. */
export function thumb(item, size = "small") {
  if (item?.image)
    return make("img", {
      class: `thumb ${size}`,
      src: fileUrl(`images/${item.image}${size === "small" ? "/small" : ""}`),
      alt: "",
    });
  const face = item?.audio ? icon("sound") : ([...(item?.name ?? "?")][0] ?? "?").toUpperCase();
  const tint = [...(item?.name ?? "")].reduce((sum, letter) => sum + letter.codePointAt(0), 0) % 6;
  return make("span", { class: `thumb ${size} letter c${tint}`, "aria-hidden": "true" }, face);
}

const byName = (study) => new Map(study.items.map((item) => [item.name, item]));

/** How far the evidence is, from 0 to 1, where an item has won. */
export const progress = ({ evidence, bar, can_stop: won }) => (won ? 1 : Math.max(0, Math.min(evidence / bar, 0.99)));

/** Votes still needed, in words. */
function needed({ can_stop: won, state, votes_low: low, votes_high: high, missing }, isClosed = false) {
  if (won) return isClosed ? "You can announce it." : "You can stop.";
  if (state === "tie")
    return low === null
      ? "Call it a tie, or collect more votes."
      : `Call it a tie, or collect ${rough.format(low)} votes or more.`;
  if (low === null) return missing || "Nobody can say yet how many more votes it takes.";
  if (high === null) return `At least ${rough.format(low)} more votes.`;
  return low === high
    ? `About ${rough.format(low)} more votes.`
    : `${rough.format(low)} to ${rough.format(high)} more votes.`;
}

/** The card that answers who leads and whether to stop. `study` has the pictures. */
export function answerCard(study, { needs, verdicts, counts, stale, computed }, isPublished = false) {
  const [first, ...others] = verdicts;
  if (!first) {
    const waiting = computed === null && counts.votes > 0;
    return make(
      "section",
      { class: "answer card early", "aria-label": "Answer" },
      make("div", { class: "face state" }, icon("too early")),
      make(
        "div",
        { class: "said" },
        make("p", { class: "badge" }, icon("too early"), waiting ? "Working it out" : STATES["too early"]),
        make("h2", { class: "headline" }, needs ?? "There is nothing to compare yet."),
      ),
    );
  }
  const items = byName(study);
  const kind = first.state.replace("too ", "");
  const faces = first.leader ? [first.leader] : first.state === "tie" ? first.items.slice(0, FACES) : [];
  const pictured = faces.map((name) => items.get(name)).filter((item) => item?.image);
  const share = progress(first);
  const details = first.details.slice(0, -1),
    assumes = first.details.at(-1);
  const reason = details.find((each) => !each.startsWith("Tiers"));
  const rest = details.filter((each) => each !== reason);
  const label = first.can_stop
    ? "All the evidence that a winner needs"
    : `${Math.round(100 * share)}% of the evidence that a winner needs`;
  return make(
    "section",
    { class: `answer card ${kind}`, "aria-label": "Answer" },
    pictured.length
      ? make("div", { class: `face of${pictured.length}` }, ...pictured.map((item) => thumb(item, "large")))
      : make("div", { class: "face state" }, icon(first.state)),
    make(
      "div",
      { class: "said" },
      make(
        "p",
        { class: "badge" },
        icon(first.state),
        STATES[first.state],
        stale && make("span", { class: "soft" }, "updating …"),
      ),
      make("h2", { class: "headline" }, isPublished ? first.headline.replace(", so you can stop", "") : first.headline),
      reason && make("p", { class: "reason" }, reason),
    ),
    !(isPublished && (first.can_stop || first.state === "tie")) &&
      make(
        "div",
        { class: "stopping" },
        make("progress", { max: "1", value: `${share}`, "aria-label": "Progress towards stopping" }),
        make(
          "p",
          {},
          make("span", {}, label),
          !isPublished && make("strong", {}, needed(first, study.state === "closed")),
        ),
      ),
    make(
      "details",
      { class: "fold why" },
      make("summary", {}, "Why, and what this assumes"),
      ...paragraphs([...rest, assumes]),
    ),
    ...(others.length
      ? [
          make(
            "ul",
            { class: "groups" },
            ...others.slice(0, 5).map(({ headline, state }) => make("li", {}, icon(state), headline)),
          ),
        ]
      : []),
    others.length > 5 && make("p", { class: "soft" }, `${others.length - 5} more groups are in the ranking.`),
  );
}

// ---------------------------------------------------------------- ranking

function interval(standing, label, least, most) {
  const place = (score) => (100 * (score - least)) / (most - least || 1);
  return draw(
    "svg",
    {
      class: "ranges",
      viewBox: "0 0 100 10",
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `Score ${label}`,
    },
    draw("line", { class: "zero", x1: place(0), x2: place(0), y1: 0, y2: 10 }),
    draw("line", { x1: place(standing.score_low), x2: place(standing.score_high), y1: 5, y2: 5 }),
    draw("rect", { x: place(standing.score) - 0.8, width: 1.6, y: 1, height: 8 }),
  );
}

/** The ranking: a row per item with its picture, interval and chance; a click shows the other columns. */
export function rankingList(study, { ranking, table: { columns, rows } }) {
  const items = byName(study);
  const least = Math.min(0, ...ranking.map((each) => each.score_low));
  const most = Math.max(0, ...ranking.map((each) => each.score_high));
  const column = (name) => columns.findIndex((each) => each.name === name);
  const several = new Set(ranking.map(({ group }) => group)).size > 1;
  const row = (standing, place) => {
    const text = rows[place][column("interval")] ?? "";
    return make(
      "li",
      { class: standing.candidate ? "candidate" : null },
      make(
        "details",
        { "data-key": `rank ${standing.group} ${standing.item}` },
        make(
          "summary",
          {},
          make("span", { class: "rank" }, `${standing.rank}`),
          thumb(items.get(standing.item)),
          make(
            "span",
            { class: "item-name" },
            make("span", { class: "name" }, standing.item),
            several && make("span", { class: "soft" }, `group ${standing.group}`),
          ),
          make("span", { class: "range" }, interval(standing, text, least, most)),
          make(
            "span",
            { class: "best" },
            make("progress", { max: "1", value: `${standing.best}`, "aria-hidden": "true" }),
            make("span", { class: "value", title: "Probability of being the best" }, percent(standing.best)),
          ),
        ),
        make(
          "dl",
          { class: "facts" },
          ...columns.flatMap(({ heading, meaning }, at) =>
            at === 0
              ? []
              : [
                  make(
                    "div",
                    {},
                    make("dt", { title: `${capital(meaning)}.` }, capital(heading)),
                    make("dd", {}, rows[place][at]),
                  ),
                ],
          ),
        ),
      ),
    );
  };
  const list = make("ol", { class: "ranking" }, ...ranking.slice(0, FIRST).map(row));
  const more =
    ranking.length > FIRST &&
    make(
      "button",
      {
        type: "button",
        onclick: (event) => {
          list.append(...ranking.slice(FIRST).map((each, place) => row(each, FIRST + place)));
          event.target.remove();
        },
      },
      `Show all ${number.format(ranking.length)}`,
    );
  return make(
    "div",
    {},
    make(
      "p",
      { class: "ranking-head soft", "aria-hidden": "true" },
      make("span", {}, "Item"),
      make("span", {}, "Score, with its 95% interval"),
      make("span", {}, "Chance of being the best"),
    ),
    list,
    more,
  );
}
