// Data of a study: downloads, and votes that were cast elsewhere.
import { call, fileUrl } from "../client.js";
import { make } from "../elements.js";
import { paragraphs, section, toast } from "./parts.js";

const FORMATS = { csv: "CSV", jsonl: "JSONL", parquet: "Parquet" };
const TABLES = {
  votes: ["Votes", "every vote that counts, with its voter and time"],
  duels: ["Duels", "every duel, also those without an answer"],
  ranking: ["Ranking", "the table of results"],
  comments: ["Comments", "what voters wrote"],
  voters: ["Voters", "voters with the evidence on them"],
  trl: ["Preferences (TRL)", "prompt, chosen and rejected, for TRL’s trainers"],
  log: ["Log", "everything that happened, with the hashes that verify it"],
};

/** Links to files of a study. */
export function downloads(study, names) {
  return section(
    "Download",
    make(
      "ul",
      { class: "downloads" },
      ...names.map((name) =>
        make(
          "li",
          {},
          make("span", {}, make("strong", {}, TABLES[name][0]), make("span", { class: "soft" }, TABLES[name][1])),
          make(
            "span",
            { class: "row" },
            ...Object.entries(FORMATS).map(([format, called]) =>
              make(
                "a",
                {
                  href: fileUrl(`studies/${study}/exports/${name}.${format}`),
                  download: true,
                  "aria-label": `${TABLES[name][0]} as ${called}`,
                },
                called,
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

/** The tab of a study. */
export function dataTab(study, { doing }) {
  const file = make("input", {
    id: "import",
    type: "file",
    required: true,
    accept: ".csv,.tsv,.json,.jsonl,.ndjson,.parquet",
  });
  const form = make(
    "form",
    {},
    make("label", { for: "import" }, "An export, or any vote file"),
    make("div", { class: "row" }, file, make("button", {}, "Import")),
  );
  form.addEventListener(
    "submit",
    doing(async () => {
      const [chosen] = file.files;
      toast(`Importing ${chosen.name} …`, "busy");
      const { counts } = await call(
        "POST",
        `studies/${study.study}/import?name=${encodeURIComponent(chosen.name)}`,
        chosen,
        {
          "Content-Type": "application/octet-stream",
        },
      );
      file.value = "";
      toast(`${counts.imported} of ${counts.votes} votes are imported now.`);
    }),
  );
  return make(
    "div",
    {},
    downloads(study.study, ["votes", "duels", "ranking", "comments", "voters", "trl", "log"]),
    section(
      "Add votes that were cast elsewhere",
      ...paragraphs([
        "All votes of the file are added, or none; the same votes are refused a second time. Voting waits meanwhile.",
      ]),
      form,
    ),
  );
}
