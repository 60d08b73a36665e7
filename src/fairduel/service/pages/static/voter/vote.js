// One duel after the other. An answer is kept in this browser until the server has it on disk: none is lost or doubled.
import { call, fileUrl, login, pause, Problem, randomName, root } from "../client.js";
import { byId, drawIcon, make } from "../elements.js";
import { chooseLanguage, language, speak, speaksEnglish, word } from "./words.js";

const study = location.pathname.split("/").pop();
const query = new URLSearchParams(location.search),
  participant = query.get("participant"),
  signature = query.get("signature");
const PATH = `studies/${study}`;
const AHEAD = 2; // duels at a time: the one on screen, and the next
const SMALL = 300; // characters
const GUARD = 300; // milliseconds in which a second click cannot answer the next duel
const SHOW_CHOICE = 260; // milliseconds
const SECONDS_EACH = 6; // that a choice takes, roughly
const LOOK_EVERY = 5; // seconds, while the study is paused
const SEEN = 0.35; // of the screen, or all of a card, that was in view before one may choose
const STORE = `fairduel:${study}`;
const ZOOM = "M10.500 17a6.500 6.500 0 100-13 6.500 6.500 0 000 13zM15.500 15.500L21 21M7.500 10.500h6M10.500 7.500v6";
const NONCE = `${STORE}:nonce`; // by which this browser gets the same key if it has to ask again
const BEGUN = `${STORE}:begun`; // the start page is shown once
const nonce = localStorage.getItem(NONCE) ?? randomName();
localStorage.setItem(NONCE, nonce);
const outbox = JSON.parse(localStorage.getItem(STORE) ?? "[]");
let ballot,
  duels = [],
  last = null,
  shownAt = Infinity,
  isShowing = false,
  sending = null;
const unseen = new Set();

const say = (text) => {
  byId("notice").textContent = text;
};
const show = (id, visible = true) => {
  byId(id).hidden = !visible;
};
const keep = () => localStorage.setItem(STORE, JSON.stringify(outbox));

const WORDS_OF_CODES = {
  "already-answered": "already_answered",
  "already-joined": "already_joined",
  "link-used": "link_used",
  "not-allowed": "wrong_account",
  "sign-in-failed": "sign_in_failed",
  "cannot-undo": "cannot_undo",
  "no-key": "wrong_link",
  "not-found": "wrong_link",
  "not-invited": "personal_link",
};

/** What went wrong, in the reader's language; the server says more, in English. */
function explain(error) {
  if (error.code === "already-answered") return word("already_answered");
  if (error instanceof Problem && !speaksEnglish()) return word(WORDS_OF_CODES[error.code] ?? "failed");
  return error.message;
}

/** Repeat a call until the server answers. */
async function persistently(work) {
  for (let wait = 0.5; ; wait = Math.min(2 * wait, 20)) {
    try {
      return await work();
    } catch (error) {
      const later = error instanceof TypeError || error.status >= 500 || error.status === 429;
      if (!later) throw error;
      say(error instanceof TypeError ? word("offline") : speaksEnglish() ? error.message : word("busy"));
      await Promise.race([
        pause(Math.max(wait, error.wait ?? 0)),
        new Promise((done) => addEventListener("online", done, { once: true })),
      ]);
    }
  }
}

/** Send the kept answers, oldest first; the same promise while they are being sent. */
function send() {
  sending ??= (async () => {
    while (outbox.length) {
      const { duel, key, ...body } = outbox[0];
      try {
        const reply = await persistently(() =>
          call("POST", `${PATH}/duels/${duel}/answer`, { ...body, next: AHEAD }, { "Idempotency-Key": key }),
        );
        say(reply.counted ? "" : word("late"));
        receive(reply);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        if (error.code === "not-open") {
          if (await resumed()) continue; // the answer is still kept
          return;
        }
        say(explain(error));
      }
      outbox.shift();
      keep();
    }
  })().finally(() => {
    sending = null;
  });
  return sending;
}

/** Wait while the study is paused; return whether it is open then. */
async function resumed() {
  let wasPaused = false;
  for (;;) {
    await persistently(fetchBallot);
    if (ballot.state === "open") break;
    show("duel", false);
    show("welcome", false);
    if (ballot.state === "closed") {
      say("");
      await finish({ done: false });
      return false;
    }
    say(word("paused"));
    wasPaused = true;
    await pause(LOOK_EVERY);
  }
  if (wasPaused) say("");
  if (wasPaused && duels.length) show("duel");
  return true;
}

/** Take the server's list of open duels: the one on screen stays, answered ones go, the next pictures are loaded. */
function receive({ duels: listed, progress }) {
  const answered = new Set(outbox.map(({ duel }) => duel)),
    shown = duels[0];
  const others = listed.filter(({ duel }) => !answered.has(duel) && duel !== shown?.duel);
  duels = shown ? [shown, ...others] : others;
  for (const { left, right } of others) for (const side of [left, right]) prefetch(side);
  showProgress(progress);
}

/** Load what the next duel shows into the browser's cache. */
function prefetch({ image, audio }) {
  if (image) new Image().src = fileUrl(`images/${image}`);
  if (audio) fetch(fileUrl(`audio/${audio}`), { priority: "low" }).catch(() => {});
}

function showProgress({ votes, of, completion_code: code, completion_url: onward }) {
  show("progress");
  byId("progress").textContent = of ? word("progress", { votes, of }) : word("votes", { count: votes });
  show("bar", Boolean(of));
  if (of) Object.assign(byId("bar"), { max: of, value: votes });
  if (code) {
    show("code");
    byId("code").querySelector("strong").textContent = code;
  }
  show("onward", Boolean(onward));
  if (onward) byId("onward").href = onward;
}

/** A text as it is, or the HTML that the server made from Markdown and cleaned. */
function written({ text, html }) {
  if (html == null) return make("div", { class: "lines" }, text);
  const parsed = new DOMParser().parseFromString(html, "text/html").body;
  for (const table of parsed.querySelectorAll("table")) {
    const frame = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": word("table") });
    table.replaceWith(frame);
    frame.append(table);
  }
  return make("div", { class: "markdown" }, ...parsed.childNodes);
}

function fill(side, shown) {
  const name = shown.name ?? word(side);
  const parts = [];
  if (shown.image) parts.push(make("img", { src: fileUrl(`images/${shown.image}`), alt: name }));
  if (shown.audio)
    parts.push(
      make("audio", { src: fileUrl(`audio/${shown.audio}`), controls: true, preload: "auto", "aria-label": name }),
    );
  if (shown.text) parts.push(written(shown));
  if (shown.name && shown.name !== shown.text) parts.push(make("p", { class: "name" }, shown.name));
  byId(`${side}-content`).replaceChildren(...parts);
  // A small item can be clicked anywhere; text that is read, or audio that is played, only on its button.
  const { length } = shown.text ?? "";
  const card = byId(side);
  card.classList.toggle("small", !shown.audio && shown.html == null && length <= SMALL);
  card.classList.toggle("short", length <= 40 && !shown.image);
  card.querySelector(".zoom").hidden = !shown.image;
}

/** Let people scroll a box by keyboard if it does not show everything. */
function scrollable(box) {
  if (box.scrollHeight > box.clientHeight) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}

// ---------------------------------------------------------------- both are seen before one is chosen

/** Whether enough of a card was in view. */
const isSeen = ({ target, intersectionRect, boundingClientRect }) =>
  target.isConnected && intersectionRect.height >= Math.min(SEEN * innerHeight, 0.9 * boundingClientRect.height);

const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) if (entry.isIntersecting && isSeen(entry)) unseen.delete(entry.target.id);
    allow();
  },
  { threshold: Array.from({ length: 41 }, (_, step) => step / 40) },
);

function watch() {
  watcher.disconnect();
  for (const side of ["left", "right"]) {
    unseen.add(side);
    watcher.observe(byId(side));
  }
  allow();
}

/** Say whether one may choose: both are seen, and the guard against double clicks is over. */
function allow() {
  const mayChoose = !unseen.size;
  show("both", !mayChoose);
  for (const button of document.querySelectorAll("#duel [data-answer]:not(#skip)"))
    button.setAttribute("aria-disabled", `${!mayChoose}`);
  const isReady = mayChoose && !isShowing && performance.now() - shownAt >= GUARD;
  byId("duel").toggleAttribute("data-ready", isReady);
}

// ---------------------------------------------------------------- duels

async function next() {
  if (!duels.length) await send();
  if (!duels.length) {
    const asked = await persistently(() => call("POST", `${PATH}/duels`, { count: AHEAD }));
    receive(asked);
    if (!duels.length) return finish(asked.progress);
  }
  const [{ context, left, right }] = duels;
  show("end", false);
  show("welcome", false);
  show("duel");
  show("context", Boolean(context));
  const about = byId("context").querySelector(".content");
  about.replaceChildren(...(context ? [written({ text: context.text ?? context.name, html: context.html })] : []));
  scrollable(about);
  fill("left", left);
  fill("right", right);
  byId("comment").value = "";
  scrollTo(0, 0); // long answers were read to their end
  shownAt = performance.now();
  watch();
  setTimeout(allow, GUARD + 1);
}

async function finish(progress) {
  show("duel", false);
  show("end");
  byId("thanks").textContent =
    ballot.state === "closed" ? word("closed") : progress.done ? word("thanks") : word("nothing");
  showUndo();
  const results = byId("results");
  results.href = new URL(`observe/${study}`, root).href;
  results.hidden = !(ballot.page.show_results && (progress.done || ballot.state === "closed"));
  show("share", ballot.access === "link" && ballot.state === "open");
  const receipt = await persistently(() => call("GET", `${PATH}/receipt`));
  if (!receipt.answers.length) return;
  show("receipt");
  const [file, check] = byId("receipt").querySelectorAll("a");
  byId("receipt").querySelector("code").textContent = receipt.head;
  file.href = URL.createObjectURL(new Blob([JSON.stringify(receipt, null, 2)], { type: "application/json" }));
  check.href = new URL(`api/receipts/${receipt.head}`, root).href;
}

/** Show for a moment what was chosen. */
async function showChoice(choice) {
  const chosen = choice === "left" || choice === "right" ? [choice] : choice === "tie" ? ["left", "right"] : [];
  for (const side of ["left", "right"]) byId(side).classList.add(chosen.includes(side) ? "chosen" : "passed");
  isShowing = true;
  allow();
  await pause(SHOW_CHOICE / 1000);
  for (const side of ["left", "right"]) byId(side).classList.remove("chosen", "passed");
  isShowing = false;
}

async function answer(choice) {
  const seconds = (performance.now() - shownAt) / 1000;
  const tooSoon = isShowing || 1000 * seconds < GUARD || (unseen.size && choice !== "skip");
  if (byId("duel").hidden || !duels.length || tooSoon || byId(choice).hidden) return;
  for (const player of document.querySelectorAll("audio")) player.pause();
  const { duel } = duels.shift();
  const comment = byId("comment").value.trim();
  outbox.push({
    duel,
    key: randomName(),
    answer: choice,
    seconds: Math.round(10 * seconds) / 10,
    ...(comment && { comment }),
  });
  keep();
  last = { duel, until: Date.now() + 1000 * ballot.undo_seconds };
  showUndo();
  send().catch(fail);
  await showChoice(choice);
  if (ballot.state === "open") await next();
}

function showUndo() {
  const left = last ? last.until - Date.now() : 0;
  show("undo", left > 0);
  show("undo-last", left > 0);
  if (left > 0) setTimeout(showUndo, left + 10);
}

async function undo() {
  if (!last || last.until < Date.now()) return;
  const { duel } = last;
  last = null;
  showUndo();
  await send();
  try {
    const undone = await persistently(() => call("POST", `${PATH}/duels/${duel}/undo`, {}));
    duels = [undone.duel, ...duels];
    showProgress(undone.progress);
    say(word("undone"));
    await next();
  } catch (error) {
    say(explain(error));
  }
}

function zoom(side) {
  const picture = byId(side).querySelector("img");
  const dialog = make(
    "dialog",
    { class: "lightbox", "aria-label": picture.alt },
    make("button", { type: "button", onclick: () => dialog.close(), "aria-label": word("close") }, "×"),
    make("img", { src: picture.src, alt: picture.alt }),
  );
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// ---------------------------------------------------------------- joining

function fail(error) {
  show("duel", false);
  show("welcome", false);
  if (!byId("question").dataset.loaded) byId("question").textContent = word("cannot_vote") || "You cannot vote here";
  say(explain(error));
}

/** Solve the ballot's challenge in a worker; a promise of what joining needs. */
const solved = ({ challenge, bits }) =>
  new Promise((done, failed) => {
    const worker = new Worker(new URL("work.js", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }) => {
      worker.terminate();
      done({ challenge, answer: data });
    });
    worker.addEventListener("error", () => failed(new Error(word("no_work"))));
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker, not a window
    worker.postMessage({ challenge, bits });
  });

/** Post after the work that this needs; a challenge that is too old is replaced. */
async function postWorked(path, body) {
  for (let attempts = 3; ; attempts--) {
    if (ballot.work) say(word("preparing"));
    const work = await ballot.ready;
    try {
      const reply = await call("POST", `${PATH}/${path}`, { ...body, ...(work && { work }) });
      say("");
      return reply;
    } catch (error) {
      if (error.code !== "new-challenge" || attempts === 0) throw error;
      await fetchBallot();
    }
  }
}

const join = () =>
  postWorked("voters", { nonce, ...(participant && { participant }), ...(signature && { signature }) });

async function fetchBallot() {
  const before = ballot;
  ballot = await call("GET", `${PATH}/ballot`);
  if (before && !before.work) return;
  ballot.ready = ballot.work ? solved(ballot.work) : null;
  ballot.ready?.catch(() => {}); // whoever waits for it is told
}

/** Whether who is here has to sign in before they can vote. */
const mustSignIn = () => !ballot.joined && ["openid", "email"].includes(ballot.access);

/** Go to where one signs in, or ask for a link by mail. */
async function signIn() {
  if (parent !== window) return window.open(location.href); // other sites do not let themselves be framed
  const asked = ballot.access === "email" ? { email: byId("email").value.trim(), language: language() } : {};
  byId("start").disabled = true;
  try {
    const { location: where, minutes } = await persistently(() => postWorked("sign-in", asked));
    localStorage.setItem(BEGUN, "yes");
    if (where) return location.assign(where);
    say(word("link_sent", { email: asked.email, minutes }));
  } catch (error) {
    say(explain(error));
  }
  byId("start").disabled = false;
  return null;
}

async function begin() {
  localStorage.setItem(BEGUN, "yes");
  show("welcome", false);
  if (!ballot.joined) await persistently(join);
  await send();
  if (ballot.state === "closed") return;
  byId("question").focus();
  await next();
}

/** Show the study's colour, on which text is white or black. */
function paint(colour) {
  if (!colour) return;
  const [red, green, blue] = [1, 3, 5]
    .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  const { style } = document.documentElement;
  style.setProperty("--brand", colour);
  style.setProperty("--on-brand", light > 0.179 ? "#000" : "#fff");
}

function welcome() {
  const { page, votes_per_voter: of } = ballot;
  show("welcome");
  show("instructions", Boolean(ballot.instructions));
  byId("instructions").textContent = ballot.instructions;
  const minutes = of && Math.ceil((of * SECONDS_EACH) / 60);
  byId("facts").textContent = of
    ? `${word("choices", { count: of })} · ${word("minutes", { count: minutes })}`
    : word("unlimited");
  show("consent", Boolean(page.consent));
  byId("consent").querySelector("span").textContent = page.consent;
  byId("privacy").querySelector("p").textContent = page.privacy || word("stored");
  show("asked-by", Boolean(page.host));
  byId("asked-by").textContent = word("asked_by", { host: page.host });
  const agreed = () => {
    byId("start").disabled = Boolean(page.consent) && !byId("agree").checked;
  };
  byId("agree").addEventListener("change", agreed);
  agreed();
  const asksEmail = mustSignIn() && ballot.access === "email" && parent === window;
  byId("start").textContent = word(asksEmail ? "send_link" : mustSignIn() ? "sign_in" : "start");
  show("email-line", asksEmail);
  byId("email").disabled = !asksEmail;
  show("account", mustSignIn());
  byId("account").textContent =
    parent === window ? word(ballot.keep_email ? "stored_email" : "stored_hash") : word("new_tab");
}

async function open() {
  await speak(chooseLanguage()).catch(() => {});
  let failed = query.get("sign_in");
  await persistently(() => login({ nonce })).catch((error) => {
    if (error.code !== "link-used") throw error;
    failed = error.code;
  });
  await persistently(fetchBallot);
  const { page } = ballot;
  await persistently(() => speak(chooseLanguage(page.language), page.words));
  paint(page.colour);
  byId("question").textContent = ballot.question;
  byId("question").dataset.loaded = "yes";
  document.title = ballot.title || ballot.question;
  show("logo", Boolean(page.logo));
  if (page.logo) byId("logo").src = fileUrl(`images/${page.logo}/small`);
  show("host", Boolean(page.host));
  byId("host").textContent = page.host;
  say("");
  show("tie", ballot.ties);
  show("keys", ballot.ties);
  show("keys-two", !ballot.ties);
  show("skip", ballot.skips);
  show("comment-line", ballot.comments);
  if (ballot.state === "closed") {
    if (ballot.joined) return finish({ done: false });
    return say(word("closed"));
  }
  if (!(await resumed())) return;
  if (!ballot.joined && ballot.access === "invitation") return say(word("personal_link"));
  if (!ballot.joined && ["participant", "platform"].includes(ballot.access) && !participant)
    return say(word("platform_link"));
  if (ballot.joined && localStorage.getItem(BEGUN)) await begin();
  else {
    welcome();
    if (failed) say(word(WORDS_OF_CODES[failed] ?? "sign_in_failed"));
  }
}

const KEYS = { ArrowLeft: "left", ArrowRight: "right", ArrowDown: "tie", s: "skip", S: "skip" };
addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (byId("duel").hidden || event.target.matches("#comment, audio")) {
    if (event.key.toLowerCase() !== "z" || event.target.matches("#comment, audio")) return;
  }
  if (event.key in KEYS) answer(KEYS[event.key]).catch(fail);
  else if (event.key.toLowerCase() === "z") undo().catch(fail);
  else return;
  event.preventDefault();
});
for (const button of document.querySelectorAll("[data-answer]"))
  button.addEventListener("click", () => answer(button.dataset.answer).catch(fail));
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.append(drawIcon(ZOOM));
  button.addEventListener("click", () => zoom(button.dataset.zoom));
}
for (const id of ["undo", "undo-last"]) byId(id).addEventListener("click", () => undo().catch(fail));
byId("duel").addEventListener("submit", (event) => event.preventDefault());
byId("welcome").addEventListener("submit", (event) => {
  event.preventDefault();
  (mustSignIn() ? signIn() : begin()).catch(fail);
});
byId("code")
  .querySelector("button")
  .addEventListener("click", async (event) => {
    await navigator.clipboard.writeText(byId("code").querySelector("strong").textContent);
    event.target.textContent = word("copied");
  });
byId("share").addEventListener("click", async (event) => {
  const link = new URL(`vote/${study}`, root).href;
  if (navigator.share) return navigator.share({ title: document.title, url: link }).catch(() => {});
  await navigator.clipboard.writeText(link);
  event.target.textContent = word("copied");
  return null;
});
addEventListener("hashchange", () => location.reload()); // a personal link, opened in this tab
if (parent !== window) {
  document.documentElement.classList.add("framed");
  new ResizeObserver(() => parent.postMessage({ height: document.documentElement.scrollHeight }, "*")).observe(
    document.body,
  );
}
open().catch(fail);
