"""What the agent asks lately, and how certain the order of these pairs is."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, exists, select

from fairduel.service import schema
from fairduel.service.imports import IMPORT_KEY
from fairduel.votes.ranking import Ranking
from fairduel.votes.words import counted_noun, listed, shortened

_LATELY = 50  # duels
_MOST_SHOWN, _MOST_NAMED = 8, 3  # pairs
Json = dict[str, Any]


def asking(connection: Connection, study: str, items: Sequence[str], ranking: Ranking | None) -> Json:
    """Describe the pairs of the last duels that the agent chose.

    Args:
        connection: Where to read duels.
        study: Id of the study.
        items: Names of its items.
        ranking: Its ranking, if there is one.

    Returns:
        JSON values: ``lately`` (how many duels), ``pairs`` (the most frequent, each with its ``duels`` and whether its
        order is ``settled``; null if unknown) and ``sentences``.
    """
    duels, answers = schema.duels.c, schema.answers.c
    imported = exists().where(answers.duel == duels.duel, answers.key.startswith(IMPORT_KEY))
    query = select(duels.first, duels.second).where(
        duels.study == study,
        duels.repeats.is_(None),
        duels.weight > 0.0,  # neither gold duels nor those of language models that are kept apart
        ~imported,
    )
    rows = connection.execute(query.order_by(duels.issued.desc()).limit(_LATELY)).all()
    pairs = Counter(tuple(sorted((items[row.first], items[row.second]))) for row in rows)
    common = sorted(pairs.items(), key=lambda entry: (-entry[1], entry[0]))
    shown = [
        {
            "one": one,
            "other": other,
            "duels": count,
            "settled": None if ranking is None else ranking.tells_apart(one, other),
        }
        for (one, other), count in common[:_MOST_SHOWN]
    ]
    return {"lately": len(rows), "pairs": shown, "sentences": _sentences(common, len(rows), ranking)}


def _sentences(common: list[tuple[tuple[str, ...], int]], total: int, ranking: Ranking | None) -> list[str]:
    if not total:
        return []
    named = [f"{count} compared {' with '.join(pair)}" for pair, count in common[:_MOST_NAMED]]
    sentences = [f"Of the last {counted_noun(total, 'duel')}, {listed(named)}."]
    if ranking is None:
        return sentences
    first = [each.item for each in ranking.standings if each.component == 1 and each.rank_low == 1]
    if len(first) == 1:
        with_leader = sum(count for pair, count in common if first[0] in pair)
        return [*sentences, f"Only {first[0]} can still be the best; {with_leader} of them compared it with others."]
    among = sum(count for pair, count in common if set(pair) <= set(first))
    open_order = sum(count for pair, count in common if not ranking.tells_apart(*pair))
    return [
        *sentences,
        f"{among} of them were between items that can still be the best ({shortened(first)}), and {open_order} between "
        "items whose order is not settled: more votes help most there.",
    ]
