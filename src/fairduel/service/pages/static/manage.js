// Rename or copy a study, and add votes that were cast elsewhere.
import { call, make } from "./client.js";
import { section } from "./results.js";

/**
 * Return the section.
 * @param study the study as the server describes it
 * @param doing wraps what a button does, to say what went wrong
 * @param changed is called with the study after a change
 * @param go opens another study
 */
export function manage(study, { doing, say, changed, go }) {
  const path = `studies/${study.study}`;
  const form = (label, input, text, work) => {
    const made = make("form", { class: "line" }, make("label", { for: input.id }, label), make("div", { class: "row" }, input, make("button", {}, text)));
    made.addEventListener("submit", doing(work));
    return made;
  };
  const title = make("input", { id: "rename", maxlength: "200", size: "40", value: study.title, placeholder: study.question });
  const file = make("input", { id: "import", type: "file", required: true, accept: ".csv,.tsv,.json,.jsonl,.ndjson,.parquet" });
  const copied = make("select", { id: "clone" }, make("option", { value: "" }, "without votes"), make("option", { value: "votes" }, "with its votes"));
  return section("Manage",
    form("Title", title, "Rename", async () => { changed(await call("PATCH", path, { title: title.value.trim() })); say("Renamed."); }),
    form("Copy the study", copied, "Copy", async () => { await go((await call("POST", `${path}/clone`, { votes: copied.value === "votes" })).study); say("This is the copy."); }),
    form("Add votes that were cast elsewhere: an export, or any vote file", file, "Import", async () => {
      const [chosen] = file.files;
      say(`Importing ${chosen.name} …`);
      const { counts } = await call("POST", `${path}/import?name=${encodeURIComponent(chosen.name)}`, chosen, { "Content-Type": "application/octet-stream" });
      file.value = "";
      say(`${counts.imported} of ${counts.votes} votes are imported now.`);
    }));
}
