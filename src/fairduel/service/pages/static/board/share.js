// Sharing a study: its link, a QR code, personal links, and links for observers.
import { call, root } from "../client.js";
import { make } from "../elements.js";
import { settingsFields } from "./fields.js";
import { copyable, field, folded, openDialog, paragraphs, toast } from "./parts.js";

export const AGAIN =
  "One person can vote many times: every browser, and every private window, counts as another voter. " +
  "Invite people, or sign their links, where that matters";

export const voteLink = (study) => new URL(study.links.vote, root).href;

/** An image of the QR code of an address, with a link that saves it. */
export function qrCode(address, name) {
  const image = make("img", { class: "qr", alt: "QR code of the link", width: "200", height: "200" });
  const save = make("a", { download: `${name}.svg` }, "Save the QR code");
  call("POST", "qr", { text: address })
    .then(({ svg }) => {
      image.src = save.href = `data:image/svg+xml,${encodeURIComponent(svg)}`;
    })
    .catch(() => image.remove());
  return make("div", { class: "qr-code" }, image, save);
}

/** Links that were made, each shown once; they can be copied all at once. */
export function made(title, links) {
  const all = links.map(({ name, text }) => (name ? `${name}\t${text}` : text)).join("\n");
  return make(
    "div",
    { class: "made" },
    make("h3", {}, title),
    make(
      "ul",
      {},
      ...links.map(({ name, text }) =>
        make("li", {}, name && make("strong", {}, `${name}: `), make("span", { class: "link" }, text)),
      ),
    ),
    links.length > 1 && copyable(all, "Copy all", `${links.length} links copied.`),
  );
}

const absolute = (links) => links.map(({ name, link }) => ({ name, text: new URL(link, root).href }));

/** A form that makes a personal link for each line, and shows them. */
function inviting(study, doing) {
  const place = make("div");
  const signs = study.access === "participant";
  const names = make("textarea", {
    rows: "4",
    required: true,
    placeholder: signs ? "participant-1\nparticipant-2" : "Ann\nBob",
  });
  const once = make("input", { id: "one-time", type: "checkbox", checked: true });
  const form = make(
    "form",
    {},
    ...field(
      "names",
      signs
        ? "Participants by their id, one per line: each gets a signed link"
        : "Invite people by name, one per line: each gets a personal link",
      names,
    ),
    !signs &&
      make(
        "p",
        {},
        make("label", { class: "inline" }, once, " Each link works only in the first browser that opens it"),
      ),
    make("p", {}, make("button", { class: "main" }, signs ? "Sign links" : "Make invitations")),
  );
  form.addEventListener(
    "submit",
    doing(async () => {
      const given = names.value
        .split("\n")
        .map((name) => name.trim())
        .filter(Boolean);
      const path = `studies/${study.study}`;
      if (signs) {
        const { links } = await call("POST", `${path}/participants`, { participants: given });
        place.replaceChildren(
          made("Signed links", absolute(links.map(({ participant, link }) => ({ name: participant, link })))),
        );
      } else {
        const { invitations } = await call("POST", `${path}/invitations`, { names: given, one_time: once.checked });
        place.replaceChildren(made("Invitations (shown once: send each person their link)", absolute(invitations)));
      }
      names.value = "";
    }),
  );
  return make("div", {}, form, place);
}

/** The lines that show a study on another site, and a form with the sites that may. */
function embedding(study, doing, changed) {
  const script = new URL("static/embed.js", root).href;
  const sites = settingsFields("embed", study, ({ name }) => name === "allowed_origins");
  const form = make(
    "form",
    {},
    ...sites.groups.flatMap(({ inside }) => inside),
    make("p", {}, make("button", {}, "Allow these sites")),
  );
  form.addEventListener(
    "submit",
    doing(async () => {
      sites.showProblems([]);
      changed(await call("PATCH", `studies/${study.study}`, await sites.values()));
      toast("The sites are saved.");
    }, sites),
  );
  return [
    copyable(
      `<script src="${script}" data-study="${study.study}" async></script>`,
      "Copy the code",
      "The code is copied.",
    ),
    form,
  ];
}

/** Open the dialog. `changed` gets the study after a change. */
export function share(study, doing, changed) {
  const link = voteLink(study);
  const observers = make("div");
  const isOpen = study.access === "link",
    isPersonal = ["invitation", "participant"].includes(study.access);
  const observe = async () => {
    const reply = await call("POST", `studies/${study.study}/observers`, {});
    observers.replaceChildren(made("Link for observers (shown once)", absolute([reply])));
  };
  const revoke = async () => {
    await call("DELETE", `studies/${study.study}/observers`);
    observers.replaceChildren(...paragraphs(["All links for observers have stopped working."]));
  };
  const wait = {
    paused: "The study is paused: voters see that, and their page continues when you resume it.",
    closed: "The study is closed: nobody can vote.",
  }[study.state];
  const about = {
    link: `${AGAIN}; the tab Voters shows from where they come.`,
    openid: "One account is one voter.",
    email: "One address is one voter.",
    platform: "Your platform adds the participant’s id: send people to this link with ?participant=ID.",
  }[study.access];
  openDialog(
    "Share",
    wait && make("p", { class: "unsure" }, wait),
    !isPersonal &&
      make(
        "div",
        { class: "sharing" },
        make(
          "div",
          {},
          make("h3", {}, "Link for voters"),
          copyable(link, "Copy the link", "The link is copied."),
          make("p", { class: "soft" }, about),
          make("p", {}, make("a", { href: link, target: "_blank", rel: "noopener" }, "Open the voters’ page")),
        ),
        qrCode(link, "voters"),
      ),
    isOpen ? folded("Personal links", inviting(study, doing)) : isPersonal && inviting(study, doing),
    folded(
      "Results for others",
      ...paragraphs(["Observers see the results, and can change nothing."]),
      make(
        "p",
        { class: "row" },
        make("button", { type: "button", onclick: doing(observe) }, "Link for observers"),
        make("button", { type: "button", class: "plain", onclick: doing(revoke) }, "Stop all such links"),
      ),
      observers,
    ),
    folded("On your own site", ...embedding(study, doing, changed)),
  );
}
