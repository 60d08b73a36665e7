// Charts as SVG: with tooltips, by mouse and by arrow keys, and with their numbers as a table.
import { draw, make } from "../elements.js";
import { number, percent, table } from "./parts.js";

const isNarrow = () => matchMedia("(max-width: 640px)").matches;

/** The attributes of a chart that is shown in this size, or smaller where there is less space. */
const sized = (width, height) => ({ class: "plot", width, height, viewBox: `0 0 ${width} ${height}` });

const COLOURS = 6; // as in the style sheet

/** The tooltip that all charts share. */
const tip = make("div", { class: "tip", role: "status", hidden: true });

function showTip(mark) {
  if (!mark) {
    tip.hidden = true;
    return;
  }
  if (!tip.isConnected) document.body.append(tip);
  tip.textContent = mark.dataset.tip;
  tip.hidden = false;
  const box = mark.getBoundingClientRect();
  const left = box.left + box.width / 2 - tip.offsetWidth / 2;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8))}px`;
  const above = box.top - tip.offsetHeight - 8;
  tip.style.top = `${above < 8 ? box.bottom + 8 : above}px`;
}

/** Let people go through the marks of a chart, in their order, with arrow keys; Enter does what a click does. */
function withTips(svg) {
  const marks = [...svg.querySelectorAll("[data-tip]")];
  let at = -1;
  const go = (to) => {
    marks[at]?.classList.remove("at");
    at = to;
    marks[at]?.classList.add("at");
    showTip(marks[at]);
  };
  svg.addEventListener("pointerover", (event) => showTip(event.target.closest("[data-tip]")));
  svg.addEventListener("pointerleave", () => showTip(null));
  svg.addEventListener("blur", () => go(-1));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) go((at + step + marks.length) % marks.length);
    else if (event.key === "Escape") go(-1);
    else if (event.key === "Enter") marks[at]?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    else return;
    event.preventDefault();
  });
  return svg;
}

/** A chart with its title, what it says in a sentence, and its numbers. */
export function figure(title, svg, { about, columns, rows }) {
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("role", "img");
  svg.setAttribute(
    "aria-label",
    `${title}. ${about} Arrow keys go through the values; they are also below as a table.`,
  );
  return make(
    "figure",
    { class: "card chart" },
    make("h2", {}, title),
    make("p", { class: "soft" }, about),
    withTips(svg),
    make(
      "details",
      { class: "fold", "data-key": title },
      make("summary", { "aria-label": `${title}: the numbers` }, "Numbers"),
      table(columns, rows),
    ),
  );
}

/** Round steps that divide a range; there are at least two. */
function ticks(most, count = 4) {
  const rawStep = most / count || 1;
  const size = 10 ** Math.floor(Math.log10(rawStep));
  const steps = [1, 2, 5, 10].map((each) => each * size);
  const step = steps.find((each) => each >= rawStep && each <= most) ?? steps.findLast((each) => each <= most);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, place) => place * step);
}

/** Move labels apart that would overlap, from the top down. */
function apart(labels, height, bottom) {
  const sorted = labels.toSorted((one, other) => one.y - other.y);
  for (const [place, each] of sorted.entries()) if (place) each.y = Math.max(each.y, sorted[place - 1].y + height);
  let limit = bottom;
  for (const each of sorted.toReversed()) {
    each.y = Math.min(each.y, limit);
    limit = each.y - height;
  }
}

/**
 * Lines over the number of votes.
 * @param series lines as {name, points: [{x, y}], faint}; their names are at their ends, faint ones share one
 * @param most the highest value of the axis
 * @param say how a value is written
 * @param line a level to reach, as {y, name}
 * @param mark a number of votes to point out, as {x, name}
 */
export function lines({ series, most, say, line, mark, unit = "votes" }) {
  const width = isNarrow() ? 350 : 460,
    height = 230,
    left = 44,
    right = width - (series.length > 1 ? 116 : 24),
    top = 14,
    bottom = height - 34;
  const last = Math.max(...series.flatMap(({ points }) => points.map(({ x }) => x)), 1);
  const x = (value) => left + ((right - left) * value) / last,
    y = (value) => bottom - ((bottom - top) * Math.max(0, Math.min(value, most))) / most;
  const tone = ({ faint }, place) => (faint ? "faint" : `c${place % COLOURS}`);
  const faint = series.filter((each) => each.faint);
  const ends = series
    .map((each, place) => ({ name: each.name, tone: tone(each, place), y: y(each.points.at(-1).y), faint: each.faint }))
    .filter((each) => !each.faint);
  if (faint.length)
    ends.push({ name: faint.length > 1 ? "others" : faint[0].name, tone: "faint", y: y(faint[0].points.at(-1).y) });
  apart(ends, 15, bottom);
  return draw(
    "svg",
    sized(width, height),
    ...ticks(most).map((value) =>
      draw(
        "g",
        {},
        draw("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }),
        draw("text", { x: left - 8, y: y(value) + 4, class: "end" }, say(value)),
      ),
    ),
    ...ticks(last, isNarrow() ? 3 : 5).map((value) =>
      draw("text", { x: x(value), y: bottom + 18, class: "middle" }, number.format(value)),
    ),
    draw("text", { x: right, y: height - 2, class: "end" }, unit),
    line &&
      draw(
        "g",
        { class: "level" },
        draw("line", { x1: left, x2: right, y1: y(line.y), y2: y(line.y) }),
        draw("text", { x: left + 6, y: y(line.y) - 6 }, line.name),
      ),
    mark &&
      draw(
        "g",
        { class: "level" },
        draw("line", { x1: x(mark.x), x2: x(mark.x), y1: top, y2: bottom }),
        draw(
          "text",
          {
            x: x(mark.x) + (2 * mark.x > last ? -6 : 6),
            y: y(0.5 * most) - 6,
            class: 2 * mark.x > last ? "end" : null,
          },
          mark.name,
        ),
      ),
    ...series.flatMap(({ name, points, ...each }, place) => [
      draw("polyline", {
        class: `line ${tone(each, place)}`,
        points: points.map((point) => `${x(point.x)},${y(point.y)}`).join(" "),
      }),
      ...points.map((point) =>
        draw("circle", {
          class: `dot ${tone(each, place)}`,
          cx: x(point.x),
          cy: y(point.y),
          r: 3.5,
          "data-tip": `${name}: ${say(point.y)} after ${number.format(point.x)} ${unit}`,
        }),
      ),
    ]),
    ...(series.length > 1
      ? ends.map(({ name, tone: colour, y: at }) =>
          draw("text", { x: right + 8, y: at + 4, class: `name ${colour}` }, cut(name, 12)),
        )
      : []),
  );
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Who beat whom: rows won against columns. */
export function heatMap({ items, wins }) {
  const label = isNarrow() ? 82 : 130,
    size = isNarrow() ? Math.max(22, Math.min(44, 268 / items.length)) : Math.max(30, Math.min(52, 480 / items.length)),
    head = 26,
    width = label + items.length * size + 2;
  const cell = (row, column) => {
    const won = wins[row][column],
      of = won + wins[column][row];
    if (row === column || !of) return draw("rect", { class: "none", ...place(row, column) });
    const share = won / of;
    const level =
      share === 0.5 ? "even" : `${share > 0.5 ? "up" : "down"}${Math.min(4, Math.ceil(Math.abs(share - 0.5) * 8))}`;
    return draw(
      "g",
      { "data-tip": `${items[row]} won ${number.format(won)} of ${number.format(of)} against ${items[column]}` },
      draw("rect", { class: `heat ${level}`, ...place(row, column) }),
      size >= 30 &&
        draw(
          "text",
          { class: `middle on ${level}`, x: label + (column + 0.5) * size, y: head + (row + 0.5) * size + 4 },
          percent(share).replace(/[<>] /, ""),
        ),
    );
  };
  const place = (row, column) => ({
    x: label + column * size + 1,
    y: head + row * size + 1,
    width: size - 2,
    height: size - 2,
    rx: 3,
  });
  return draw(
    "svg",
    sized(width, head + items.length * size + 2),
    ...items.map((name, at) =>
      draw(
        "text",
        { class: "middle", x: label + (at + 0.5) * size, y: head - 8 },
        items.length > 1 ? `${at + 1}` : name,
      ),
    ),
    ...items.flatMap((name, row) => [
      draw(
        "text",
        { class: "end", x: label - 8, y: head + (row + 0.5) * size + 4 },
        `${cut(name, isNarrow() ? 8 : 14)} ${row + 1}`,
      ),
      ...items.map((_, column) => cell(row, column)),
    ]),
  );
}

const APART = 7; // pixels between voters who would cover each other
const MOST_APART = 15; // voters side by side
const CAMP_SHAPES = [
  "M-4.500 0a4.500 4.500 0 109 0a4.500 4.500 0 10-9 0",
  "M-4 -4h8v8h-8z",
  "M0 -5l5 9h-10z",
  "M0 -5.500l5.500 5.500l-5.500 5.500l-5.500 -5.500z",
];

/**
 * Voters as points: how often each agrees with everyone else, against the number of votes.
 * @param voters as {name, votes, agreement, flagged, aside, camp (a number, or -1)}
 * @param choose is called with the place of the voter who is clicked
 */
export function voterMap(voters, choose) {
  const width = isNarrow() ? 350 : 460,
    height = 260,
    left = 48,
    right = width - 16,
    top = 12,
    bottom = height - 36;
  const most = Math.max(...voters.map(({ votes }) => votes), 10);
  const x = (votes) => left + ((right - 36 - left) * Math.log1p(votes)) / Math.log1p(most),
    y = (share) => bottom - (bottom - top) * share;
  const taken = new Map();
  /** The place of a voter: beside those who are already there. */
  const placed = ({ votes, agreement }) => {
    const spot = `${Math.round(x(votes) / APART)} ${Math.round(y(agreement) / APART)}`;
    const before = taken.get(spot) ?? 0;
    taken.set(spot, before + 1);
    const step = Math.ceil((before % MOST_APART) / 2) * (before % 2 ? -1 : 1);
    return `translate(${Math.max(left + 4, Math.min(x(votes) + APART * step, right - 4))} ${y(agreement)})`;
  };
  const round = [0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000].filter((each) => x(each) < x(most) - 30);
  const steps = [...round, most];
  return draw(
    "svg",
    sized(width, height),
    ...[0, 0.25, 0.5, 0.75, 1].map((share) =>
      draw(
        "g",
        {},
        draw("line", { class: share === 0.5 ? "grid half" : "grid", x1: left, x2: right, y1: y(share), y2: y(share) }),
        draw("text", { class: "end", x: left - 8, y: y(share) + 4 }, `${100 * share}%`),
      ),
    ),
    ...steps.map((each) => draw("text", { class: "middle", x: x(each), y: bottom + 18 }, number.format(each))),
    draw("text", { class: "end", x: right, y: height - 3 }, "votes"),
    ...voters.map(({ name, votes, agreement, flagged, aside, camp }, place) =>
      draw("path", {
        transform: placed({ votes, agreement }),
        class: `voter ${aside ? "aside" : flagged ? "flagged" : camp >= 0 ? `c${(camp + 1) % COLOURS}` : "c0"}`,
        d: CAMP_SHAPES[(camp + 1) % CAMP_SHAPES.length],
        "data-tip":
          `${name}: agrees in ${percent(agreement)} of ${number.format(votes)} votes` +
          (aside ? ", set aside" : flagged ? ", unusual" : ""),
        onclick: () => choose(place),
      }),
    ),
  );
}

/** Bars of numbers, one below the other. */
export function bars(rows, noun) {
  const texts = rows.map(({ value, share }) => number.format(value) + (share == null ? "" : ` (${percent(share)})`));
  const width = isNarrow() ? 350 : 460,
    label = isNarrow() ? 100 : 130,
    space = 16 + 7 * Math.max(...texts.map(({ length }) => length)), // beside the longest bar
    step = 26,
    most = Math.max(...rows.map(({ value }) => value), 1);
  return draw(
    "svg",
    sized(width, rows.length * step + 4),
    ...rows.flatMap(({ name, value }, place) => {
      const length = ((width - label - space) * value) / most;
      return [
        draw("text", { class: "end", x: label - 8, y: place * step + 17 }, cut(name, isNarrow() ? 13 : 17)),
        draw("rect", {
          class: "bar",
          x: label,
          y: place * step + 4,
          width: Math.max(length, 1),
          height: step - 8,
          rx: 3,
          "data-tip": `${name}: ${number.format(value)} ${noun}`,
        }),
        draw("text", { x: label + length + 6, y: place * step + 17 }, texts[place]),
      ];
    }),
  );
}

/** Votes over time, one column per stretch of time. */
export function timeline(stretches, span) {
  const width = isNarrow() ? 350 : 460,
    height = 150,
    bottom = height - 26,
    most = Math.max(...stretches.map(({ votes }) => votes), 1),
    step = (width - 44) / stretches.length;
  const { seconds } = stretches[0];
  const time = (at) =>
    new Date(1000 * at).toLocaleString([], { dateStyle: "medium", timeStyle: seconds < 60 ? "medium" : "short" });
  return draw(
    "svg",
    sized(width, height),
    ...ticks(most, 2).map((value) => {
      const y = bottom - ((bottom - 10) * value) / most;
      return draw(
        "g",
        {},
        draw("line", { class: "grid", x1: 40, x2: width - 4, y1: y, y2: y }),
        draw("text", { class: "end", x: 34, y: y + 4 }, number.format(value)),
      );
    }),
    ...stretches.map(({ from, votes }, place) =>
      draw("rect", {
        class: "bar",
        x: 40 + place * step + 0.1 * step,
        width: Math.max(0.8 * step, 0.5),
        y: bottom - ((bottom - 10) * votes) / most,
        height: Math.max(((bottom - 10) * votes) / most, 0.5),
        "data-tip": `${number.format(votes)} votes in the ${span} from ${time(from)}`,
      }),
    ),
    draw("text", { x: 40, y: height - 4 }, time(stretches[0].from)),
    stretches.length > 1 &&
      draw("text", { class: "end", x: width - 4, y: height - 4 }, time(stretches.at(-1).from + seconds)),
  );
}
