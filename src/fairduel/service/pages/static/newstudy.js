// The form for a new study: items or prompts filled in, or a study file with the files that it names.
import { call, make } from "./client.js";
import { section } from "./results.js";

const FIELDS = { text: { maxlength: "200", size: "50" }, number: { type: "number", min: "1", max: "100000" } };
const ENDING = /\.([^.]*)$/;
const KINDS = { toml: "study", csv: "table", wav: "audio", mp3: "audio", ogg: "audio", opus: "audio", flac: "audio", m4a: "audio", png: "images", jpg: "images", jpeg: "images", webp: "images", gif: "images" };
const TYPES = { audio: "audio/*", images: "image/*" };
const kindOf = (file) => KINDS[ENDING.exec(file.name)?.[1].toLowerCase()] ?? "other";

function field(id, label, input, hint) {
  input.id = id;
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return [make("label", { for: id }, label), ...(hint ? [make("p", { class: "hint soft", id: `${id}-hint` }, hint)] : []), input];
}

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** Send images and audio; return their ids by file name. */
async function upload(files, say) {
  const sent = { images: {}, audio: {} };
  for (const file of files) {
    const kind = kindOf(file);
    if (!(kind in sent)) continue;
    say(`Sending ${file.name} …`);
    const reply = await call("POST", kind, file, { "Content-Type": TYPES[kind] });
    sent[kind][file.name] = reply.image ?? reply.audio;
  }
  return sent;
}

/** Make the study that a file describes; of several files, the TOML file, or else the only table. */
async function fromFiles(files, settings, say) {
  const tables = files.filter((file) => kindOf(file) === "table");
  const main = files.find((file) => kindOf(file) === "study") ?? (tables.length === 1 ? tables[0] : null);
  if (!main) throw new Error("Choose one study file (.toml), or one table (.csv), and the files that it names.");
  const sent = await upload(files, say);
  const texts = Object.fromEntries(await Promise.all(tables.map(async (file) => [file.name, await file.text()])));
  return call("POST", "study-files", { file: main.name, text: await main.text(), tables: texts, ...sent, settings: kindOf(main) === "study" ? {} : settings });
}

/** Make the study of what was filled in. */
async function filledIn({ items, answers, files, settings }, say) {
  if (answers) {
    return call("POST", "study-files", { file: "answers.csv", text: answers, settings });
  }
  const { images, audio } = await upload(files, say);
  const named = (kind, ids) => Object.entries(ids).map(([name, id]) => ({ name: name.replace(ENDING, ""), [kind]: id }));
  return call("POST", "studies", { ...settings, items: [...lines(items).map((name) => ({ name })), ...named("image", images), ...named("audio", audio)] });
}

/**
 * Return the form.
 * @param doing wraps what a button does, to say what went wrong
 * @param say tells how far it is
 * @param made is called with the new study
 */
export function newStudy({ doing, say, made }) {
  const choice = (entries) => make("select", {}, ...entries.map(([value, text]) => make("option", { value }, text)));
  const question = make("input", { ...FIELDS.text, maxlength: "500", placeholder: "Which is better?" });
  const items = make("textarea", { placeholder: "tea\nmilk\njuice" });
  const pictures = make("input", { type: "file", accept: "image/png,image/jpeg,image/webp,image/gif,audio/*", multiple: true });
  const answers = make("textarea", { placeholder: "prompt,model A,model B\nWhat is tea?,A drink.,A leaf." });
  const format = choice([["text", "as they are"], ["markdown", "as Markdown"]]);
  const access = choice([["link", "anyone with the link"], ["invitation", "people I invite"], ["participant", "a crowd platform (participant id in the link)"]]);
  const votes = make("input", FIELDS.number);
  const files = make("input", { type: "file", multiple: true, accept: ".toml,.csv,image/*,audio/*" });
  const form = make("form", {},
    ...field("question", "Question", question),
    ...field("items", "Items, one per line", items),
    ...field("pictures", "Or pictures or audio files", pictures),
    ...field("answers", "Or prompts and answers, as CSV", answers, "A column “prompt”, and one column of answers per model; an empty cell is no answer."),
    ...field("format", "Show texts", format),
    ...field("access", "Who may vote", access),
    ...field("votes", "Answers per voter (empty: no limit)", votes),
    ...field("study-file", "Or choose a study file", files, "A .toml file with everything, or a .csv table of items or answers, together with the files that it names."),
    make("p", {}, make("button", { class: "main" }, "Make the study")));
  form.addEventListener("submit", doing(async () => {
    const settings = { question: question.value.trim() || question.placeholder, access: access.value, format: format.value, votes_per_voter: Number(votes.value) || null };
    const study = files.files.length ? await fromFiles([...files.files], settings, say)
      : await filledIn({ items: items.value, answers: answers.value.trim() && answers.value, files: [...pictures.files], settings }, say);
    await made(study);
    say("The study is open.");
  }));
  return section("New study", form);
}
