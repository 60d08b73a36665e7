// A study's results, as one can publish them: read-only, for observers, and for voters if the study shows them.
import { call, login } from "../client.js";
import { byId, make } from "../elements.js";
import { answerCard, rankingList, thumb } from "./answer.js";
import { downloads } from "./data.js";
import { courseCharts } from "./overview.js";
import { fetchResults, folded, follow, number, paragraphs, redraw, when } from "./parts.js";

const study = location.pathname.split("/").pop();
const view = byId("view");

function podium(about, { ranking, verdicts }) {
  if (verdicts.length !== 1 || ranking.length < 3) return null;
  const [verdict] = verdicts;
  if (verdict.state === "too early" || (verdict.state === "tie" && verdict.items.length > 3)) return null;
  const items = new Map(about.items.map((item) => [item.name, item]));
  const tied = (standing) => verdict.state === "tie" && verdict.items.includes(standing.item);
  const place = (standing, at) =>
    make(
      "li",
      { class: `place${at + 1}${tied(standing) ? " tied" : ""}` },
      thumb(items.get(standing.item), "large"),
      make("strong", {}, standing.item),
      make("span", { class: "step" }, tied(standing) ? "=" : `${standing.rank}`),
    );
  return make("ol", { class: "podium card" }, ...ranking.slice(0, 3).map(place));
}

function method(results) {
  return folded(
    "Method",
    ...paragraphs([
      "People saw two items at a time and chose. Scores are log-odds against an average item, by a Bradley–Terry " +
        "model of the recorded votes; " +
        "their lines are 95% intervals. The verdict stays valid no matter how often one looks.",
      results.basis === "all votes"
        ? "All votes count equally."
        : "Each vote counts as far as an audit of the voters trusts who cast it.",
      results.balance.sentence,
      ...results.notes,
      ...results.details,
    ]),
  );
}

async function open() {
  await login();
  const about = await call("GET", `studies/${study}`);
  const isVoter = about.gold === null && !(await call("GET", "session").catch(() => null));
  const name = about.title || about.question;
  document.title = name;
  const results = make("div", { class: "result" });
  view.replaceChildren(
    make(
      "header",
      { class: "result-head" },
      make("h1", { id: "title" }, name),
      about.title && about.title !== about.question && make("p", { class: "soft" }, about.question),
    ),
    results,
    ...(isVoter ? [] : [downloads(study, ["votes", "duels", "ranking"])]),
  );
  let notice = null;
  follow(study, async () => {
    try {
      const found = await fetchResults(study);
      notice?.remove();
      notice = null;
      redraw(
        results,
        answerCard(about, found, true),
        podium(about, found),
        found.ranking.length > 0 &&
          make("section", { class: "card" }, make("h2", {}, "Ranking"), rankingList(about, found)),
        make("div", { class: "charts" }, ...courseCharts(found)),
        make(
          "section",
          { class: "card" },
          make(
            "p",
            { class: "soft" },
            `${number.format(found.counts.votes)} votes of ${number.format(found.counts.voters)} voters ` +
              `on ${number.format(about.items.length)} items` +
              (found.computed ? `, as of ${when(found.computed)}.` : "."),
          ),
          method(found),
        ),
      );
      return true;
    } catch (error) {
      notice ??= view.appendChild(make("p", { class: "bad", role: "alert" }, error.message));
      return false;
    }
  });
}

open().catch((error) => {
  const wrong = error.status === 401 || error.status === 404;
  view.replaceChildren(
    make("h1", { id: "title" }, "No results to see here"),
    make(
      "p",
      { role: "alert" },
      wrong ? "This link is wrong or no longer valid: ask the operator for a new one." : error.message,
    ),
  );
});
