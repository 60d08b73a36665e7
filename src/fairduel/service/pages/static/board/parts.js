// Building blocks of the operators' and observers' pages.
import { call, pause, root } from "../client.js";
import { byId, drawIcon, make } from "../elements.js";

const ICONS = {
  won: "M4 12.5l5 5L20 6.5",
  leads: "M4 17l6-6 4 4 6-8M14 7h6v6",
  tie: "M5 9h14M5 15h14",
  "too early": "M7 3h10M7 21h10M8 3c0 5 8 6 8 9s-8 4-8 9M16 3c0 5-8 6-8 9s8 4 8 9",
  share: "M12 15V3M7 8l5-5 5 5M5 13v7h14v-7",
  more: "M5 12h.010M12 12h.010M19 12h.010",
  shield: "M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6z",
  warning: "M12 4L2.5 20h19zM12 10v4M12 17h.01",
  people:
    "M9 11a3.5 3.5 0 100-7 3.5 3.5 0 000 7zM2.5 20c.5-4 3-6 6.5-6s6 2 6.5 6" +
    "M16 4.5a3.5 3.5 0 010 6.5M18 14.5c2 1 3 3 3.5 5.5",
  sound: "M4 10v4h4l5 4V6L8 10zM16.500 9a4 4 0 010 6",
};

export const icon = (name) => drawIcon(ICONS[name]);

export const section = (title, ...children) => make("section", { class: "card" }, make("h2", {}, title), ...children);

export const paragraphs = (texts) => texts.map((text) => make("p", {}, text));

export const number = new Intl.NumberFormat("en"),
  rough = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** A probability in words that are never surer than it is. */
export const percent = (share) =>
  share == null
    ? "–"
    : share >= 0.995 && share < 1
      ? "> 99%"
      : share <= 0.005 && share > 0
        ? "< 1%"
        : `${Math.round(100 * share)}%`;

export const capital = (text) => text[0].toUpperCase() + text.slice(1);

export const counted = (count, noun, nouns = `${noun}s`) => `${number.format(count)} ${count === 1 ? noun : nouns}`;

export const when = (seconds) =>
  new Date(1000 * seconds).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

/** A labelled field of a form: its label, an optional hint, and the input or select. */
export function field(id, label, input, hint) {
  input.id = id;
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return [
    make("label", { for: id }, label),
    ...(hint ? [make("p", { class: "hint soft", id: `${id}-hint` }, hint)] : []),
    input,
  ];
}

/** The same as one element, to stand beside others. */
export const labelled = (...given) => make("div", { class: "field" }, ...field(...given));

export const choice = (entries) =>
  make("select", {}, ...entries.map(([value, text]) => make("option", { value }, text)));

/** A table; cells are text or elements. */
export function table(columns, rows, marked = () => "") {
  const kind = ({ text }, place) => (text || place === 0 ? "text" : null);
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" },
    make(
      "table",
      {},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          ...columns.map((each, at) =>
            make("th", { scope: "col", title: each.title, class: kind(each, at) }, each.name),
          ),
        ),
      ),
      make(
        "tbody",
        {},
        ...rows.map((row, place) =>
          make(
            "tr",
            { class: marked(place) || null },
            ...row.map((cell, at) =>
              at === 0
                ? make("th", { scope: "row", class: "text" }, cell)
                : make("td", { class: kind(columns[at], at) }, cell ?? "–"),
            ),
          ),
        ),
      ),
    ),
  );
}

/** A link back. */
export const trail = (text, onclick) => make("p", { class: "trail" }, make("a", { href: ".", onclick }, text));

/** What few people need, folded. */
export const folded = (title, ...children) =>
  make("details", { class: "fold" }, make("summary", {}, title), ...children);

/**
 * Replace what an element shows; whoever was on its n-th control stays there, and what was open stays open.
 * Elements are the same if their attribute `data-key`, or else their place, is.
 */
export function redraw(element, ...children) {
  const all = () => [...element.querySelectorAll("a, button, input, select, summary, [tabindex]")];
  const name = (each, place) => each.dataset.key ?? `${place}`;
  const controls = all();
  const place = controls.indexOf(document.activeElement);
  const focused = place < 0 ? null : name(controls[place], place);
  const folds = (open) => [...element.querySelectorAll(`details${open}`)];
  const title = (fold) => fold.dataset.key ?? fold.querySelector("summary").textContent;
  const open = new Set(folds("[open]").map(title));
  element.replaceChildren(...children.filter((child) => child != null && child !== false));
  for (const fold of folds("")) if (open.has(title(fold))) fold.open = true;
  if (focused != null)
    all()
      .find((each, at) => name(each, at) === focused)
      ?.focus({ preventScroll: true });
}

// ---------------------------------------------------------------- messages and dialogs

const SHOWN = 6000; // milliseconds

/** Show a message where the eye is; an error stays until it is dismissed. */
export function toast(text, kind = "done") {
  const place = byId("toasts") ?? document.body.appendChild(make("div", { id: "toasts" }));
  // A dialog is above everything else, so messages go into it while it is open.
  (document.querySelector("dialog[open]") ?? document.body).append(place);
  const close = make("button", { type: "button", "aria-label": "Dismiss", onclick: () => note.remove() }, "×");
  const note = make(
    "div",
    { class: `toast ${kind}`, role: kind === "bad" ? "alert" : "status" },
    kind === "bad" ? icon("warning") : icon("won"),
    make("span", {}, text),
    close,
  );
  if (kind !== "busy") for (const other of place.querySelectorAll(".toast.busy, .toast.bad")) other.remove();
  place.append(note);
  if (kind === "done") setTimeout(() => note.remove(), SHOWN);
  return note;
}

/** Open a dialog, and remove it once it is closed. */
export function openDialog(title, ...children) {
  const dialog = make(
    "dialog",
    { "aria-labelledby": "dialog-title" },
    make(
      "header",
      { class: "row" },
      make("h2", { id: "dialog-title", tabindex: "-1" }, title),
      make("button", { type: "button", class: "plain", "aria-label": "Close", onclick: () => dialog.close() }, "×"),
    ),
    ...children,
  );
  dialog.addEventListener("close", () => {
    const toasts = dialog.querySelector("#toasts");
    if (toasts) document.body.append(toasts);
    dialog.remove();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // beside it
  document.body.append(dialog);
  dialog.showModal();
  byId("dialog-title").focus();
  return dialog;
}

/** A text with a button that copies it. */
export function copyable(text, name = "Copy", copied = "Copied.") {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      toast(copied);
    } catch {
      getSelection().selectAllChildren(shown); // without https, browsers let nobody but the user copy
      toast("Press Ctrl+C to copy.", "busy");
    }
  };
  const shown = make("span", { class: "link" }, text);
  return make("div", { class: "copyable" }, shown, make("button", { type: "button", onclick: copy }, name));
}

// ---------------------------------------------------------------- what changes

const RETRY_AFTER = 3; // seconds

/** Call `refresh` now and whenever the study changes, and again if it returns false: then it did not succeed. */
export function follow(study, refresh) {
  let hasBegun = false,
    running = false,
    again = false;
  const run = async () => {
    hasBegun = true;
    if (running) {
      again = true;
      return;
    }
    running = true;
    do {
      again = false;
      if ((await refresh()) === false && events.readyState !== EventSource.CLOSED) {
        await pause(RETRY_AFTER);
        again = true;
      }
    } while (again);
    running = false;
  };
  const events = new EventSource(new URL(`api/studies/${study}/events`, root));
  events.addEventListener("changed", run); // the server sends one at once, and after each lost connection
  events.addEventListener("error", () => hasBegun || run());
  return events;
}

export const fetchResults = (study) => call("GET", `studies/${study}/results`);
