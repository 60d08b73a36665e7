// A study's results, as one can publish them: read-only, for observers, and for voters if the study shows them.
import { call, login } from "../client.js";
import { byId, make } from "../elements.js";
import { answerCard, rankingList, thumb } from "./answer.js";
import { downloads } from "./data.js";
import { courseCharts } from "./overview.js";
import { chooseLanguage, language, speak, word } from "../voter/words.js";
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

const STATE_WORDS = { "too early": "too_early", tie: "tie", leads: "leads", won: "won" };

/** What voters see, in their language: the verdict, the order, and how sure it is. */
function forVoters(about, { verdicts, ranking, counts }) {
  const count = new Intl.NumberFormat(language()),
    share = new Intl.NumberFormat(language(), { style: "percent" });
  const items = new Map(about.items.map((item) => [item.name, item]));
  const headline = ({ state, leader, items: tied }) =>
    make(
      "h2",
      { class: "headline", dir: "auto" },
      word(STATE_WORDS[state], { item: leader ?? "" }) + (state === "tie" ? `: ${tied.join(" = ")}` : ""),
    );
  const row = ({ rank, item, best }) =>
    make(
      "li",
      {},
      make("span", { class: "rank" }, count.format(rank)),
      thumb(items.get(item)),
      make("span", { class: "item-name" }, make("span", { class: "name", dir: "auto" }, item)),
      make(
        "span",
        { class: "best" },
        make("progress", { max: "1", value: `${best}`, "aria-label": word("chance") }),
        make("span", { class: "value" }, best > 0 && best < 0.005 ? `< ${share.format(0.01)}` : share.format(best)),
      ),
    );
  const group = (verdict) => {
    const own = verdicts.length > 1 ? ranking.filter((each) => each.group === verdict.group) : ranking;
    return make(
      "section",
      { class: "card" },
      headline(verdict),
      own.length > 0 && make("p", { class: "soft" }, word("about_chance")),
      make("ol", { class: "ranking brief", "aria-label": word("ranking") }, ...own.map(row)),
    );
  };
  const [votes, voters] = [counts.votes, counts.voters].map((number_) => ({ count: number_ }));
  return [
    ...(verdicts.length ? verdicts : [{ state: "too early" }]).map(group),
    make("p", { class: "soft" }, word("votes_of", { votes: word("votes", votes), voters: word("voters", voters) })),
  ];
}

async function open() {
  await login();
  const about = await call("GET", `studies/${study}`);
  const isVoter = about.gold === null && !(await call("GET", "session").catch(() => null));
  const name = about.title || about.question;
  document.title = name;
  if (isVoter) await speak(chooseLanguage(about.page.language), about.page.words);
  const results = make("div", { class: "result" });
  view.replaceChildren(
    make(
      "header",
      { class: "result-head" },
      make("h1", { id: "title", dir: "auto" }, name),
      about.title && about.title !== about.question && make("p", { class: "soft", dir: "auto" }, about.question),
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
      if (isVoter) {
        redraw(results, ...forVoters(about, found));
        return true;
      }
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
