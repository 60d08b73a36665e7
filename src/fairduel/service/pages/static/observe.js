// A study's results for observers: read-only.
import { byId, call, login, make } from "./client.js";
import { drawResults, downloads, fetchResults, follow } from "./results.js";

const study = location.pathname.split("/").pop();
const notice = byId("notice");

async function open() {
  await login();
  const { title, question } = await call("GET", `studies/${study}`);
  byId("title").textContent = document.title = title || question;
  const results = make("div");
  byId("view").append(...(title && title !== question ? [make("p", { class: "question" }, question)] : []), results, downloads(study, ["votes", "duels", "ranking"]));
  follow(study, async () => {
    try { drawResults(results, await fetchResults(study)); notice.textContent = ""; } catch (error) { notice.textContent = error.message; }
  });
}

open().catch((error) => {
  byId("title").textContent = "No results to see here";
  notice.textContent = error.status === 401 || error.status === 404 ? "This link is wrong or no longer valid: ask the operator for a new one." : error.message;
});
