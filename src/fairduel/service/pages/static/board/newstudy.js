// The form for a new study: texts, pictures or sounds, prompts and answers, or a file; with a preview of a duel.
import { call } from "../client.js";
import { make } from "../elements.js";
import { settingsFields } from "./fields.js";
import { paragraphs, toast } from "./parts.js";

const ENDING = /\.([^.]*)$/;
const KINDS = {
  toml: "study",
  csv: "table",
  wav: "audio",
  mp3: "audio",
  ogg: "audio",
  opus: "audio",
  flac: "audio",
  m4a: "audio",
  png: "images",
  jpg: "images",
  jpeg: "images",
  webp: "images",
  gif: "images",
};
const TYPES = { audio: "audio/*", images: "image/*" };
const kindOf = (file) => KINDS[ENDING.exec(file.name)?.[1].toLowerCase()] ?? "other";
const nameOf = (file) => file.name.replace(ENDING, "");

const lines = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** Send images and audio; return the name, kind and id of each. */
async function upload(files) {
  const sent = [];
  for (const file of files) {
    const route = kindOf(file);
    if (!(route in TYPES)) continue;
    toast(`Sending ${file.name} …`, "busy");
    const reply = await call("POST", route, file, { "Content-Type": TYPES[route] });
    const kind = TYPES[route].split("/")[0];
    sent.push({ name: file.name, kind, id: reply[kind] });
  }
  return sent;
}

/** Return what a study file is sent as: of several files, the TOML file, or else the only table. */
async function fromFiles(files) {
  const tables = files.filter((file) => kindOf(file) === "table");
  const main = files.find((file) => kindOf(file) === "study") ?? (tables.length === 1 ? tables[0] : null);
  if (!main) throw new Error("Choose one study file (.toml), or one table (.csv), and the files that it names.");
  const media = Object.fromEntries((await upload(files)).map(({ name, id }) => [name, id]));
  const texts = Object.fromEntries(await Promise.all(tables.map(async (file) => [file.name, await file.text()])));
  return { file: main.name, text: await main.text(), tables: texts, media, isWhole: kindOf(main) === "study" };
}

/** Rows of a CSV text, well enough for a preview; the server reads it exactly. */
function csvRows(text) {
  const rows = [[""]];
  let quoted = false;
  for (const letter of text.replaceAll("\r", "")) {
    const row = rows.at(-1);
    if (letter === '"') quoted = !quoted;
    else if (!quoted && letter === ",") row.push("");
    else if (!quoted && letter === "\n") rows.push([""]);
    else row[row.length - 1] += letter;
  }
  return rows.filter((row) => row.some(Boolean));
}

/** Return the form; `doing` wraps what a button does, and `made` is called with the new study. */
export function newStudy({ doing, made }) {
  const question = make("input", {
    id: "question",
    maxlength: "500",
    placeholder: "Which is better?",
    autocomplete: "off",
  });
  const items = make("textarea", { id: "items", rows: "7", placeholder: "tea\nmilk\njuice" });
  const answers = make("textarea", {
    id: "answers",
    rows: "7",
    placeholder: "prompt,model A,model B\nWhat is tea?,A drink.,A leaf.",
  });
  const format = make(
    "select",
    { id: "format" },
    make("option", { value: "text" }, "as they are"),
    make("option", { value: "markdown" }, "as Markdown"),
  );
  const pictures = make("input", {
    id: "pictures",
    type: "file",
    multiple: true,
    accept: "image/png,image/jpeg,image/webp,image/gif,audio/*",
  });
  const files = make("input", { id: "study-file", type: "file", multiple: true, accept: ".toml,.csv,image/*,audio/*" });
  const problem = make("p", { class: "problem", id: "items-problem", role: "alert", hidden: true });
  const more = settingsFields("new", {}, ({ name }) => name !== "question");
  more.input("platform").addEventListener("input", ({ target }) => {
    if (target.value) more.input("access").value = "platform";
  });
  let kept = []; // pictures and sounds, chosen at once or one after the other
  const chosen = make("ul", { class: "chosen" });

  const hint = (text) => make("p", { class: "hint soft" }, text);
  const panels = {
    texts: ["Texts", [make("label", { for: "items" }, "Items, one per line"), items]],
    media: [
      "Pictures or sounds",
      [
        make("label", { for: "pictures" }, "Files, one per item"),
        hint("Choose them, or drop them anywhere on this form."),
        pictures,
        chosen,
      ],
    ],
    answers: [
      "Prompts and answers",
      [
        make("label", { for: "answers" }, "Prompts and answers, as CSV"),
        hint("A column “prompt”, and one column of answers per model; an empty cell is no answer."),
        answers,
      ],
    ],
    file: [
      "A file",
      [
        make("label", { for: "study-file" }, "Study file"),
        hint(
          "A .toml file with everything, or a .csv table of items or answers, together with the files that it names.",
        ),
        files,
      ],
    ],
  };
  const tabs = Object.entries(panels).map(([name, [text]]) =>
    make(
      "button",
      { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, onclick: () => open(name) },
      text,
    ),
  );
  const bodies = Object.entries(panels).map(([name, [, children]]) =>
    make("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}` }, ...children),
  );
  let kind = "texts";
  function open(name, focus = false) {
    kind = name;
    for (const [place, tab] of tabs.entries()) {
      const isOpen = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", `${isOpen}`);
      tab.tabIndex = isOpen ? 0 : -1;
      bodies[place].hidden = !isOpen;
      if (isOpen && focus) tab.focus();
    }
    problem.hidden = true;
    preview();
  }
  const names = Object.keys(panels);
  const bar = make("div", { class: "segments", role: "tablist", "aria-label": "What is compared" }, ...tabs);
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) open(names[(names.indexOf(kind) + step + names.length) % names.length], true);
  });

  function keep(added) {
    for (const file of added) if (!kept.some((each) => each.name === file.name)) kept.push(file);
    chosen.replaceChildren(
      ...kept.map((file) =>
        make(
          "li",
          {},
          nameOf(file),
          make(
            "button",
            {
              type: "button",
              class: "plain",
              "aria-label": `Remove ${file.name}`,
              onclick: () => {
                kept = kept.filter((each) => each !== file);
                keep([]);
              },
            },
            "×",
          ),
        ),
      ),
    );
    preview();
  }
  pictures.addEventListener("change", () => {
    keep(pictures.files);
    pictures.value = "";
  });

  // ------------------------------------------------------------ preview

  const shown = make("div", { class: "preview-duel" });
  const face = async (file) => {
    if (kindOf(file) === "audio") return make("span", {}, `♪ ${nameOf(file)}`);
    const bytes = new Uint8Array(await file.slice(0, 3_000_000).arrayBuffer());
    let text = "";
    for (let at = 0; at < bytes.length; at += 32_768) text += String.fromCharCode(...bytes.subarray(at, at + 32_768));
    return make("img", { src: `data:${file.type};base64,${btoa(text)}`, alt: nameOf(file) });
  };
  async function sides() {
    if (kind === "texts") return [null, ...lines(items.value).slice(0, 2)];
    if (kind === "media") return [null, ...(await Promise.all(kept.slice(0, 2).map(face)))];
    if (kind === "answers") {
      const [head = [], first = []] = csvRows(answers.value);
      const at = head.findIndex((name) => name.trim().toLowerCase() === "prompt");
      const cells = first.filter((cell, place) => place !== at && cell.trim());
      return [first[at] ?? null, ...cells.slice(0, 2)];
    }
    return [null];
  }
  let drawn = 0;
  async function preview() {
    const turn = ++drawn;
    const [context, ...pair] = await sides();
    if (turn !== drawn) return;
    const examples = kind === "media" ? ["a picture", "another"] : ["one", "another"];
    shown.replaceChildren(
      make("p", { class: "preview-question" }, question.value.trim() || question.placeholder),
      ...(context ? [make("p", { class: "preview-context" }, context)] : []),
      make(
        "div",
        { class: "preview-sides" },
        ...[0, 1].map((place) => make("div", { class: pair[place] ? null : "soft" }, pair[place] ?? examples[place])),
      ),
      ...(kind === "file" ? paragraphs(["The server reads the file once the study is made."]) : []),
    );
  }
  for (const each of [question, items, answers]) each.addEventListener("input", preview);

  // ------------------------------------------------------------ making it

  const need = (is, text) => {
    if (!is) throw new Error(text);
  };
  async function create() {
    const { question: _, ...given } = await more.values();
    const settings = { question: question.value.trim() || question.placeholder, format: format.value, ...given };
    if (kind === "texts" || kind === "media") {
      const named = lines(items.value);
      const count = kind === "texts" ? named.length : kept.length;
      need(count > 1, kind === "texts" ? "Write at least two items, one per line." : "Choose at least two files.");
      const sent = kind === "media" ? await upload(kept) : [];
      const list =
        kind === "texts"
          ? named.map((name) => ({ name }))
          : sent.map(({ name, kind: what, id }) => ({ name: name.replace(ENDING, ""), [what]: id }));
      return call("POST", "studies", { ...settings, items: list });
    }
    need(kind !== "answers" || answers.value.trim(), "Paste a table of prompts and answers.");
    need(kind !== "file" || files.files.length, "Choose a study file.");
    const { isWhole, ...body } =
      kind === "answers" ? { file: "answers.csv", text: answers.value } : await fromFiles([...files.files]);
    if (isWhole) return call("POST", "study-files", body); // it has its own settings
    return call("POST", "study-files", { ...body, settings });
  }

  const form = make(
    "form",
    { class: "new-study", novalidate: true },
    make(
      "div",
      { class: "card" },
      make("label", { for: "question" }, "Question"),
      question,
      bar,
      ...bodies,
      problem,
      make("label", { for: "format" }, "Show texts"),
      format,
      ...more.groups.map(({ title, inside }) =>
        make(
          "details",
          { class: "fold" },
          make("summary", {}, title === "Question" ? "Title and instructions" : title),
          make("div", { class: "form" }, ...inside),
        ),
      ),
      make("p", { class: "row" }, make("button", { class: "main" }, "Make the study")),
    ),
    make("aside", { class: "card preview", "aria-label": "Preview" }, make("h2", {}, "What voters see"), shown),
  );
  form.addEventListener(
    "submit",
    doing(
      async () => {
        problem.hidden = true;
        more.showProblems([]);
        const wrong = [...form.elements].find((each) => !each.checkValidity());
        if (wrong) {
          const fold = wrong.closest("details");
          if (fold) fold.open = true;
          wrong.reportValidity();
          return;
        }
        const study = await create();
        await made(study);
        toast(study.state === "paused" ? "The study is made, and paused." : "The study is open.");
      },
      {
        showProblems: (errors) => more.showProblems(errors),
        showRest: (text) => {
          problem.textContent = text;
          problem.hidden = false;
          problem.scrollIntoView({ block: "center" });
        },
      },
    ),
  );
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    form.classList.add("dropping");
  });
  form.addEventListener(
    "dragleave",
    (event) => (event.relatedTarget && form.contains(event.relatedTarget)) || form.classList.remove("dropping"),
  );
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("dropping");
    const dropped = [...event.dataTransfer.files];
    if (!dropped.length) return;
    if (dropped.some((file) => ["study", "table"].includes(kindOf(file)))) {
      files.files = event.dataTransfer.files;
      open("file");
    } else {
      keep(dropped.filter((file) => kindOf(file) in TYPES));
      open("media");
    }
  });
  open("texts");
  return form;
}
