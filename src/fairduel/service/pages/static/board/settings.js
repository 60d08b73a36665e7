// Settings of a study that runs, and copies of it.
import { call } from "../client.js";
import { make } from "../elements.js";
import { settingsFields } from "./fields.js";
import { paragraphs, section, toast } from "./parts.js";

const VOTERS_PAGE = "The voters’ page";

/** The tab of a study; `changed` gets the study after a change, `go` opens another one. */
export function settingsTab(study, { doing, changed, go }) {
  const path = `studies/${study.study}`;
  const settings = settingsFields("set", study, ({ fixed }) => !fixed);
  const forms = settings.groups.map(({ title, inside }) =>
    make(
      "section",
      { class: "card" },
      make("h2", {}, title),
      make("div", { class: "form" }, ...inside),
      title === VOTERS_PAGE &&
        make(
          "p",
          {},
          make("a", { href: study.links.vote, target: "_blank", rel: "noopener" }, "Look at the voters’ page"),
        ),
    ),
  );
  const form = make(
    "form",
    { novalidate: true },
    ...forms,
    make("div", { class: "row save" }, make("button", { class: "main" }, "Save the settings")),
  );
  form.addEventListener(
    "submit",
    doing(async () => {
      settings.showProblems([]);
      const wrong = [...form.elements].find((each) => !each.checkValidity());
      if (wrong) return wrong.reportValidity();
      changed(await call("PATCH", path, await settings.values(true)));
      settings.saved();
      return toast("The settings are saved.");
    }, settings),
  );
  const copied = make(
    "select",
    { id: "clone" },
    make("option", { value: "" }, "without votes"),
    make("option", { value: "votes" }, "with its votes"),
  );
  const copy = make(
    "form",
    {},
    make("label", { for: "clone" }, "Copy the study"),
    make("div", { class: "row" }, copied, make("button", {}, "Copy")),
  );
  copy.addEventListener(
    "submit",
    doing(async () => {
      await go((await call("POST", `${path}/clone`, { votes: copied.value === "votes" })).study);
      toast("This is the copy.");
    }),
  );
  const fixed = {
    link: "anyone with the link",
    invitation: "people you invite",
    participant: "participants whose links you sign",
    platform: "people from a crowd platform",
    openid: "people who sign in",
    email: "people who get a link by e-mail",
  }[study.access];
  return make(
    "div",
    {},
    form,
    section(
      "Copy",
      ...paragraphs([
        `Who may vote (${fixed}), the items, and whether pairs repeat were settled when the study was made. ` +
          "A copy starts with the same.",
      ]),
      copy,
    ),
  );
}
