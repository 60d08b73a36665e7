// What voters read, in their language: one catalogue per language, and a study's own words.
import { root } from "../client.js";

export const LANGUAGES = ["en", "de", "fr", "es", "ar", "zh"];
const RIGHT_TO_LEFT = new Set(["ar"]);
let words = {},
  plurals = new Intl.PluralRules("en"),
  current = "";

/** The language to use: the study's, or else the first of the reader's that there is. */
export function chooseLanguage(wanted = "auto") {
  const given = [new URLSearchParams(location.search).get("lang"), wanted, ...navigator.languages];
  const known = given.map((each) => each?.split("-")[0]).filter((each) => LANGUAGES.includes(each));
  return known[0] ?? "en";
}

/** Load a language, put the study's own words in place of its, and say everything on the page in it. */
export async function speak(name, own = {}) {
  if (name !== current || Object.keys(own).length) {
    const reply = await fetch(new URL(`static/words/${name}.json`, root));
    words = { ...(await reply.json()), ...own };
    plurals = new Intl.PluralRules(name);
    current = name;
  }
  document.documentElement.lang = name;
  document.documentElement.dir = RIGHT_TO_LEFT.has(name) ? "rtl" : "ltr";
  for (const each of document.querySelectorAll("[data-word]")) each.textContent = word(each.dataset.word);
  for (const each of document.querySelectorAll("[data-label]"))
    each.setAttribute("aria-label", word(each.dataset.label));
}

/** A text of the catalogue with values in place of {names}; `count` also chooses singular or plural. */
export function word(name, values = {}) {
  const found = words[name] ?? "";
  const text = typeof found === "string" ? found : (found[plurals.select(values.count)] ?? found.other);
  return text.replaceAll(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
}

export const speaksEnglish = () => current === "en";
export const language = () => current;
