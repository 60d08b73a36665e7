// One duel after the other. An answer is kept in this browser until the server has it on disk, so none is lost or doubled.
import { byId, call, login, make, pause, Problem, randomName, root } from "./client.js";

const study = location.pathname.split("/").pop();
const participant = new URLSearchParams(location.search).get("participant");
const PATH = `studies/${study}`;
const AHEAD = 2; // duels at a time: the one on screen, and the next
const SMALL = 300; // characters
const GUARD = 300; // milliseconds in which a second click cannot answer the next duel
const box = `fairduel:${study}`;
const outbox = JSON.parse(localStorage.getItem(box) ?? "[]");
let ballot, duels = [], last = null, shownAt = 0, sending = null;

const say = (text) => { byId("notice").textContent = text; };
const show = (id, visible = true) => { byId(id).hidden = !visible; };
const keep = () => localStorage.setItem(box, JSON.stringify(outbox));

/** Repeat a call until the server answers. */
async function persistently(work) {
  for (let wait = 0.5; ; wait = Math.min(2 * wait, 20)) {
    try {
      return await work();
    } catch (error) {
      const later = error instanceof TypeError || (error.status >= 500) || error.status === 429;
      if (!later) throw error;
      say(error instanceof TypeError ? "You are offline. Your votes are kept here, and sent when you are back." : error.message);
      await Promise.race([pause(Math.max(wait, error.wait ?? 0)), new Promise((done) => addEventListener("online", done, { once: true }))]);
    }
  }
}

/** Send the kept answers, oldest first; the same promise while they are being sent. */
function send() {
  sending ??= (async () => {
    while (outbox.length) {
      const { duel, key, ...body } = outbox[0];
      try {
        const reply = await persistently(() => call("POST", `${PATH}/duels/${duel}/answer`, { ...body, next: AHEAD }, { "Idempotency-Key": key }));
        say(reply.counted ? "" : "That answer came too late to count.");
        receive(reply);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        say(error.code === "already-answered" ? "This duel was already answered, perhaps in another tab." : error.message);
      }
      outbox.shift();
      keep();
    }
  })().finally(() => { sending = null; });
  return sending;
}

/** Take the server's list of open duels: the one on screen stays, answered ones go, and the next pictures are loaded. */
function receive({ duels: listed, progress }) {
  const answered = new Set(outbox.map((answer) => answer.duel)), shown = duels[0];
  const others = listed.filter(({ duel }) => !answered.has(duel) && duel !== shown?.duel);
  duels = shown ? [shown, ...others] : others;
  for (const { left, right } of others) for (const shown of [left, right]) prefetch(shown);
  showProgress(progress);
}

const fileUrl = (kind, id) => new URL(`api/${kind}/${id}`, root).href;

/** Load what the next duel shows into the browser's cache. */
function prefetch({ image, audio }) {
  if (image) new Image().src = fileUrl("images", image);
  if (audio) fetch(fileUrl("audio", audio), { priority: "low" }).catch(() => {});
}

function showProgress({ votes, of, completion_code: code }) {
  show("progress");
  byId("progress").textContent = of ? `${votes} of ${of}` : votes === 1 ? "1 vote" : `${votes} votes`;
  show("bar", Boolean(of));
  if (of) Object.assign(byId("bar"), { max: of, value: votes });
  if (code) { show("code"); byId("code").querySelector("strong").textContent = code; }
}

/** A text as it is, or the HTML that the server made from Markdown and cleaned. */
function written({ text, html }) {
  if (html == null) return make("div", { class: "lines" }, text);
  const parsed = new DOMParser().parseFromString(html, "text/html").body;
  for (const table of parsed.querySelectorAll("table")) {
    const frame = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" });
    table.replaceWith(frame);
    frame.append(table);
  }
  return make("div", { class: "markdown" }, ...parsed.childNodes);
}

function fill(side, shown) {
  const name = shown.name ?? (side === "left" ? "Left" : "Right");
  const parts = [];
  if (shown.image) parts.push(make("img", { src: fileUrl("images", shown.image), alt: name }));
  if (shown.audio) parts.push(make("audio", { src: fileUrl("audio", shown.audio), controls: true, preload: "auto", "aria-label": name }));
  if (shown.text) parts.push(written(shown));
  if (shown.name && shown.name !== shown.text) parts.push(make("p", { class: "name" }, shown.name));
  byId(`${side}-content`).replaceChildren(...parts);
  // A small item can be clicked anywhere; text that is read, or audio that is played, only on its button.
  byId(side).classList.toggle("small", !shown.audio && shown.html == null && (shown.text ?? "").length <= SMALL);
}

/** Let people scroll a box by keyboard if it does not show everything. */
function scrollable(box) {
  if (box.scrollHeight > box.clientHeight) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}

async function next() {
  if (!duels.length) await send();
  if (!duels.length) {
    const asked = await persistently(() => call("POST", `${PATH}/duels`, { count: AHEAD }));
    receive(asked);
    if (!duels.length) return finish(asked.progress);
  }
  const [{ context, left, right }] = duels;
  show("end", false);
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
}

async function finish(progress) {
  show("duel", false);
  show("end");
  byId("thanks").textContent = progress.done ? "Thank you. You have answered everything." : "There is nothing to compare right now.";
  showUndo();
  const receipt = await persistently(() => call("GET", `${PATH}/receipt`));
  if (!receipt.answers.length) return;
  show("receipt");
  const [file, check] = byId("receipt").querySelectorAll("a");
  byId("receipt").querySelector("code").textContent = receipt.head;
  file.href = URL.createObjectURL(new Blob([JSON.stringify(receipt, null, 2)], { type: "application/json" }));
  check.href = new URL(`api/receipts/${receipt.head}`, root).href;
}

async function answer(choice) {
  const seconds = (performance.now() - shownAt) / 1000;
  if (byId("duel").hidden || !duels.length || 1000 * seconds < GUARD || byId(choice).hidden) return;
  for (const player of document.querySelectorAll("audio")) player.pause();
  const { duel } = duels.shift();
  const comment = byId("comment").value.trim();
  outbox.push({ duel, key: randomName(), answer: choice, seconds: Math.round(10 * seconds) / 10, ...(comment && { comment }) });
  keep();
  last = { duel, until: Date.now() + 1000 * ballot.undo_seconds };
  showUndo();
  send().catch(fail);
  await next();
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
    say("Undone. Please choose again.");
    await next();
  } catch (error) {
    say(error.message);
  }
}

function fail(error) {
  show("duel", false);
  if (!byId("question").dataset.loaded) byId("question").textContent = "You cannot vote here";
  say(error.message);
}

async function begin() {
  show("start", false);
  if (!ballot.joined) await call("POST", `${PATH}/voters`, participant ? { participant } : {});
  await send();
  byId("question").focus();
  await next();
}

async function open() {
  await login();
  ballot = await persistently(() => call("GET", `${PATH}/ballot`));
  byId("question").textContent = ballot.question;
  byId("question").dataset.loaded = "yes";
  document.title = ballot.title || ballot.question;
  say("");
  show("instructions", Boolean(ballot.instructions));
  byId("instructions").textContent = ballot.instructions ?? "";
  show("tie", ballot.ties);
  show("skip", ballot.skips);
  show("comment-line", ballot.comments);
  if (ballot.state !== "open") return say(ballot.state === "paused" ? "Voting is paused. Please come back later." : "Voting has ended.");
  if (!ballot.joined && ballot.access === "invitation") return say("Please use the personal link that you were sent.");
  if (!ballot.joined && ballot.access === "participant" && !participant) return say("Please use the link of the platform that sent you.");
  if (ballot.joined) await begin();
  else show("start");
}

const KEYS = { ArrowLeft: "left", ArrowRight: "right", ArrowDown: "tie", s: "skip", S: "skip" };
addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("#comment, audio")) return;
  if (event.key in KEYS) answer(KEYS[event.key]).catch(fail);
  else if (event.key.toLowerCase() === "z") undo().catch(fail);
  else return;
  event.preventDefault();
});
for (const button of document.querySelectorAll("[data-answer]")) button.addEventListener("click", () => answer(button.dataset.answer).catch(fail));
for (const id of ["undo", "undo-last"]) byId(id).addEventListener("click", () => undo().catch(fail));
byId("duel").addEventListener("submit", (event) => event.preventDefault());
byId("start").addEventListener("click", () => begin().catch(fail));
open().catch(fail);
