// The settings of a study, each declared once: for a new study and for one that runs.
import { call, fileUrl, root } from "../client.js";
import { make } from "../elements.js";

const LANGUAGES = [
  ["auto", "the voter’s language"],
  ["en", "English"],
  ["de", "Deutsch"],
  ["fr", "Français"],
  ["es", "Español"],
  ["ar", "العربية"],
  ["zh", "中文"],
];

/**
 * `name` is that of the API, with a dot for what is inside another field; `fixed` settings cannot be changed later.
 * Kinds: text, area, list, number, time, check, choice, picture, colour, words, numbers (words with any values).
 */
const GROUPS = [
  {
    title: "Question",
    fields: [
      { name: "question", label: "Question", kind: "text", most: 500, required: true },
      {
        name: "title",
        label: "Title",
        kind: "text",
        most: 200,
        hint: "For you and for observers; the question if empty.",
      },
      { name: "instructions", label: "Instructions", kind: "area", hint: "Voters read them before they start." },
    ],
  },
  {
    title: "Voting",
    fields: [
      {
        name: "votes_per_voter",
        label: "Votes per voter",
        kind: "number",
        least: 1,
        most: 100_000,
        hint: "Empty: no limit.",
      },
      {
        name: "undo_seconds",
        label: "Seconds in which a voter can undo",
        kind: "number",
        least: 0,
        most: 3600,
        usual: 60,
      },
      {
        name: "duel_seconds",
        label: "Seconds until an unanswered duel expires",
        kind: "number",
        least: 1,
        most: 2_592_000,
        usual: 3600,
      },
      {
        name: "least_views",
        label: "Duels of each item before the agent chooses freely",
        kind: "number",
        least: 0,
        most: 100_000,
        usual: 0,
      },
      { name: "ties", label: "Voters may answer “equal”", kind: "check", usual: true },
      { name: "skips", label: "Voters may skip a duel", kind: "check", usual: true },
      { name: "comments", label: "Voters may write a comment", kind: "check" },
      { name: "show_names", label: "Show the items’ names", kind: "check" },
      { name: "repeat_pairs", label: "Voters may get a pair twice", kind: "check", fixed: true },
    ],
  },
  {
    title: "Beginning and end",
    fields: [
      {
        name: "state",
        label: "Voting begins",
        kind: "choice",
        fixed: true,
        options: [
          ["open", "at once"],
          ["paused", "when I resume it"],
        ],
      },
      { name: "opens", label: "Open at", kind: "time", hint: "It is paused until then. Empty: you open it." },
      { name: "closes", label: "Close at", kind: "time", hint: "Empty: you close it." },
      {
        name: "stop_at_votes",
        label: "Close at this many votes",
        kind: "number",
        least: 1,
        most: 10_000_000,
        hint: "Empty: never.",
      },
      { name: "stop_when_decided", label: "Close once there is a winner", kind: "check" },
      {
        name: "completion_url",
        label: "Where voters go once they have answered everything",
        kind: "text",
        most: 1000,
        hint: "An https address.",
        orNull: true,
      },
      {
        name: "completion_code",
        label: "Completion code",
        kind: "text",
        most: 200,
        hint: "Voters see it once they have answered everything.",
        orNull: true,
      },
    ],
  },
  {
    title: "Trust",
    fields: [
      {
        name: "access",
        label: "Who may vote",
        kind: "choice",
        fixed: true,
        options: [
          ["link", "anyone with the link"],
          ["invitation", "people I invite"],
          ["participant", "participants whose links I sign"],
          ["openid", "people who sign in at an account provider"],
          ["email", "people who get a link by e-mail"],
          ["platform", "a crowd platform (unsigned participant id in the link)"],
        ],
        hint:
          "With a link for everyone, and on a platform that does not sign its links, one person can vote many times. " +
          "Invitations and signed links prevent that. Signing in makes one voter of one account.",
      },
      {
        name: "email_domains",
        label: "Only accounts with an address at",
        kind: "list",
        fixed: true,
        hint: "One domain per line, such as example.org, for those who sign in. Empty: any.",
      },
      { name: "keep_email", label: "Show me the addresses of those who sign in", kind: "check", fixed: true },
      {
        name: "platform",
        label: "Crowd platform",
        kind: "choice",
        fixed: true,
        orNull: true,
        options: [
          ["", "none, or another"],
          ["prolific", "Prolific"],
          ["mturk", "Mechanical Turk"],
        ],
      },
      {
        name: "proof_of_work",
        label: "What a browser has to compute before it joins",
        kind: "choice",
        number: true,
        options: [
          ["0", "nothing"],
          ["18", "about a second"],
          ["21", "about ten seconds"],
        ],
        hint: "It makes many voters costly.",
      },
      {
        name: "false_votes",
        label: "Votes that may be false, beyond those set aside",
        kind: "number",
        least: 0,
        most: 1_000_000,
        usual: 0,
        hint: "The verdict allows for them.",
      },
      {
        name: "models",
        label: "Votes of language models",
        kind: "choice",
        fixed: true,
        options: [
          ["apart", "are ranked apart from people’s"],
          ["counted", "count like people’s"],
        ],
      },
      {
        name: "keep_personal_days",
        label: "Days after closing until personal data are erased",
        kind: "number",
        least: 0,
        most: 36_500,
        hint: "Names, ids, addresses and comments. Empty: never.",
      },
      {
        name: "allowed_origins",
        label: "Web sites that may show the voters’ page",
        kind: "list",
        hint: "One per line, such as https://blog.example.org.",
      },
      {
        name: "agent",
        label: "Agent that chooses the duels",
        kind: "text",
        most: 100,
        usual: "sceptic",
        required: true,
        fixed: true,
      },
      {
        name: "agent_settings",
        label: "Settings of the agent",
        kind: "numbers",
        fixed: true,
        hint: "One per line, such as “allowance = 2”.",
      },
      {
        name: "seed",
        label: "Seed of the agent",
        kind: "number",
        least: 0,
        most: 2_147_483_647,
        usual: 0,
        fixed: true,
      },
    ],
  },
  {
    title: "The voters’ page",
    fields: [
      { name: "page.host", label: "Who asks", kind: "text", most: 200, hint: "Your name, or that of your group." },
      { name: "page.logo", label: "Logo", kind: "picture" },
      { name: "page.colour", label: "Colour", kind: "colour", usual: "#0b62a3" },
      { name: "page.language", label: "Language", kind: "choice", options: LANGUAGES },
      {
        name: "page.consent",
        label: "Consent",
        kind: "area",
        hint: "Voters tick this sentence before they start; empty: nobody is asked.",
      },
      {
        name: "page.privacy",
        label: "Privacy",
        kind: "area",
        hint: "What is stored and for how long; empty: a sentence about what is stored.",
      },
      { name: "page.show_results", label: "Voters see the results once they have finished", kind: "check" },
      {
        name: "page.words",
        label: "Your own words",
        kind: "words",
        hint: "One text per line, such as “equal = Both are fine”.",
        more: ["static/words/en.json", "All texts by their names"],
      },
    ],
  },
];

const get = (values, name) => name.split(".").reduce((inside, part) => inside?.[part], values);
function set(values, name, value) {
  const parts = name.split("."),
    last = parts.pop();
  let inside = values;
  for (const part of parts) inside = inside[part] ??= {};
  inside[last] = value;
}

const wordLines = (words) =>
  Object.entries(words ?? {})
    .map(([name, text]) => `${name} = ${text}`)
    .join("\n");
const readWords = (text) =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.trim())
      .map((line) => line.split(/\s*=\s*(.*)/s).slice(0, 2))
      .map(([name, value]) => [name.trim(), value ?? ""]),
  );

/** The same with numbers, truth values and null in place of the words for them. */
const readNumbers = (text) =>
  Object.fromEntries(
    Object.entries(readWords(text)).map(([name, value]) => {
      try {
        return [name, JSON.parse(value)];
      } catch {
        return [name, value];
      }
    }),
  );

/** The input of a field, how to read it, and how to fill it. */
const KINDS = {
  text: ({ most, required }) => {
    const input = make("input", { maxlength: most, required, autocomplete: "off" });
    return { input, read: () => input.value.trim(), fill: (value) => (input.value = value ?? "") };
  },
  area: () => {
    const input = make("textarea", { rows: "3" });
    return { input, read: () => input.value.trim(), fill: (value) => (input.value = value ?? "") };
  },
  numbers: () => {
    const input = make("textarea", { rows: "2", spellcheck: "false" });
    return { input, read: () => readNumbers(input.value), fill: (value) => (input.value = wordLines(value)) };
  },
  words: () => {
    const input = make("textarea", { rows: "3", spellcheck: "false" });
    return { input, read: () => readWords(input.value), fill: (value) => (input.value = wordLines(value)) };
  },
  list: () => {
    const input = make("textarea", { rows: "2", spellcheck: "false" });
    return {
      input,
      read: () => input.value.split(/\s+/).filter(Boolean),
      fill: (value) => (input.value = (value ?? []).join("\n")),
    };
  },
  time: () => {
    const input = make("input", { type: "datetime-local" });
    const inZone = (at) => new Date(1000 * at - 60_000 * new Date(1000 * at).getTimezoneOffset());
    return {
      input,
      read: () => (input.value ? new Date(input.value).getTime() / 1000 : null),
      fill: (value) => (input.value = value == null ? "" : inZone(value).toISOString().slice(0, 16)),
    };
  },
  number: ({ least, most, usual }) => {
    const input = make("input", { type: "number", min: least, max: most, required: usual != null });
    return {
      input,
      read: () => (input.value === "" ? null : Number(input.value)),
      fill: (value) => (input.value = value ?? ""),
    };
  },
  check: () => {
    const input = make("input", { type: "checkbox" });
    return { input, read: () => input.checked, fill: (value) => (input.checked = Boolean(value)) };
  },
  choice: ({ options, number }) => {
    const input = make("select", {}, ...options.map(([value, text]) => make("option", { value }, text)));
    const fill = (value) => {
      const text = `${value ?? options[0][0]}`;
      if (![...input.options].some((each) => each.value === text)) input.append(make("option", { value: text }, text));
      input.value = text;
    };
    return { input, read: () => (number ? Number(input.value) : input.value), fill };
  },
  colour: ({ usual }) => {
    const input = make("input", { type: "color" });
    return {
      input,
      read: () => (input.value === usual ? null : input.value),
      fill: (value) => (input.value = value ?? usual),
    };
  },
  picture: () => {
    let image = null;
    const input = make("input", { type: "file", accept: "image/png,image/jpeg,image/webp,image/gif" });
    const shown = make("span", { class: "row" });
    const fill = (value) => {
      image = value ?? null;
      shown.replaceChildren(
        ...(image
          ? [
              make("img", { class: "logo", src: fileUrl(`images/${image}/small`), alt: "" }),
              make("button", { type: "button", onclick: () => fill(null) }, "Remove"),
            ]
          : []),
      );
    };
    const send = async () => {
      const [file] = input.files;
      if (!file) return;
      ({ image } = await call("POST", "images", file, { "Content-Type": "image/*" }));
      input.value = "";
      fill(image);
    };
    return { input, after: shown, send, read: () => image, fill };
  },
};

/**
 * Make inputs for settings.
 * @param chosen which groups, and which of their fields, as a function of the field
 * @param values where the values are now, such as the study of the API
 */
export function settingsFields(prefix, values, chosen) {
  const known = [];
  const groups = GROUPS.map(({ title, fields }) => {
    const inside = fields.filter(chosen).map((about) => {
      const { input, after, ...more } = KINDS[about.kind](about);
      const id = `${prefix}-${about.name.replaceAll(/[._]/g, "-")}`;
      input.id = id;
      more.fill(get(values, about.name) ?? about.usual);
      const problem = make("p", { class: "problem", id: `${id}-problem`, hidden: true });
      const [file, called] = about.more ?? [];
      const link = file && make("a", { href: new URL(file, root).href, target: "_blank", rel: "noopener" }, called);
      const hint = about.hint && make("p", { class: "hint soft", id: `${id}-hint` }, about.hint, link && " ", link);
      input.setAttribute("aria-describedby", [hint && `${id}-hint`, `${id}-problem`].filter(Boolean).join(" "));
      known.push({ about, input, problem, ...more, before: JSON.stringify(more.read()) });
      const label = make("label", { for: id }, about.label);
      return about.kind === "check"
        ? make("div", { class: "field check" }, input, label, hint, problem)
        : make("div", { class: `field ${about.kind}` }, label, hint, input, after, problem);
    });
    return { title, inside };
  }).filter(({ inside }) => inside.length);

  return {
    groups,
    input: (name) => known.find(({ about }) => about.name === name).input,
    /** Send pictures, and return the values of the fields, or of those that were changed. */
    async values(changedOnly = false) {
      const found = {},
        changed = new Set();
      for (const { about, read, send, before } of known) {
        await send?.();
        const value = about.orNull && read() === "" ? null : read();
        set(found, about.name, value);
        if (JSON.stringify(read()) !== before) changed.add(about.name.split(".")[0]);
      }
      if (!changedOnly) return found;
      return Object.fromEntries(Object.entries(found).filter(([name]) => changed.has(name)));
    },
    /** Take what the fields show as unchanged. */
    saved() {
      for (const each of known) each.before = JSON.stringify(each.read());
    },
    /** Show what the server said about fields beside them; return the problems of other fields. */
    showProblems(errors) {
      for (const { input, problem } of known) {
        problem.hidden = true;
        input.removeAttribute("aria-invalid");
      }
      const rest = errors.filter(({ field, problem: text }) => {
        const hit = known.find(({ about }) => field === about.name || field.startsWith(`${about.name}.`));
        if (!hit) return true;
        hit.problem.textContent = text;
        hit.problem.hidden = false;
        hit.input.setAttribute("aria-invalid", "true");
        return false;
      });
      const first = known.find(({ problem }) => !problem.hidden);
      for (let fold = first?.input.closest("details"); fold; fold = fold.parentElement.closest("details"))
        fold.open = true;
      first?.input.focus();
      return rest;
    },
  };
}
