"""Turn the tables that other tools write into tables with two items and a winner.

A shape knows a table by its columns. Its function takes the table, and the table's columns by normalised name (``Winner
ID`` is ``winner_id``); it returns the table with columns added, and which of them have which role. Where a record holds
several votes, it returns one row per vote (:func:`one_row_per_vote`). ``SHAPES`` lists the shapes, in the order in
which they are tried; a table with two items and a winner needs none.
"""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from typing import Any, NamedTuple

import polars as pl

from fairduel.votes.reading.ballots import by_best_and_worst, by_rank
from fairduel.votes.reading.fields import (
    TEXT_PAIRS,
    Columns,
    field,
    find_columns,
    numbers,
    objects,
    plain_names,
    truth,
)
from fairduel.votes.reading.records import FAULT, LINE

ROW = "\x00row"
"""Column with the place of each row among the rows of the file, from 0."""
UNANSWERED = "not answered"
"""The reason why a record without an answer is set aside."""
PROMPT_OF = " (prompt)"
"""What follows the name of a column of messages in that of what was asked in them."""
_NO_SIDES = (
    "the file does not say which item was shown first, so a preference for one side cannot be tested: winners are "
    "listed as first items."
)


class Shaped(NamedTuple):
    """A table with two items and a winner."""

    frame: pl.DataFrame
    roles: dict[str, str | None]
    """Columns of the roles that the shape knows; the others are found by name."""
    sides_known: bool = True
    """Whether the first item is the one that was shown first."""
    guesses: Sequence[str] = ()
    """A sentence about each guess."""


class Shape(NamedTuple):
    """How to know a table, and what to do with it."""

    needs: Sequence[str]
    """Normalised names of the columns by which the table is known; ``*`` stands for anything."""
    convert: Callable[[pl.DataFrame, Mapping[str, str]], Shaped]
    uses: Sequence[str] | None = ()
    """Further columns that ``convert`` reads if they are there; None: all."""


def shape_of(names: Sequence[str], given: Columns, file: str) -> Shape | None:
    """Return the shape of a table with these columns; None if it names two items and a winner, or is unknown.

    >>> shape_of(["winner", "loser"], {}, "votes.csv").needs, shape_of(["left", "right", "winner"], {}, "votes.csv")
    (('winner', 'loser'), None)
    """
    here = {role: column for role, column in given.items() if column is None or column in names}
    if {"first", "second", "winner"} <= set(find_columns(names, here, file, complete=False)):
        return None
    plain = plain_names(names)
    return next(
        (s for s in SHAPES if all(any(fnmatch(name, pattern) for name in plain) for pattern in s.needs)),
        None,
    )


def columns_of(shape: Shape, names: Sequence[str]) -> list[str]:
    """Return the columns that a shape reads."""
    plain = plain_names(names)
    return list(names) if shape.uses is None else [plain[n] for n in (*shape.needs, *shape.uses) if n in plain]


def one_row_per_vote(
    frame: pl.DataFrame, votes: Sequence[tuple[int, Mapping[str, Any]]], kept: Sequence[str] = ()
) -> pl.DataFrame:
    """Return a table with a row for each vote, given the place of its record in ``frame``, and its values.

    The columns ``kept`` of the record stay. What is wrong with a record is wrong with its votes.
    """
    places = [place for place, _ in votes]
    names = dict.fromkeys(name for _, values in votes for name in values)
    new = [pl.Series(name, [_text(v.get(name)) for _, v in votes], dtype=pl.String) for name in names]
    rows = frame if ROW in frame.columns else frame.with_row_index(ROW)
    result = rows.select(name for name in (*kept, LINE, ROW) if name in rows.columns)[places].with_columns(new)
    if FAULT not in frame.columns:
        return result
    return result.with_columns(pl.coalesce(frame[FAULT][places], *(c for c in new if c.name == FAULT)).alias(FAULT))


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def one_hot(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """Kaggle: one of winner_model_a, winner_model_b and winner_tie is 1."""
    names = [column[f"winner_{word}"] for word in ("model_a", "model_b", "tie")]
    first, second, tie = (truth(frame[name]) for name in names)
    title = ", ".join(names)
    single = first.cast(pl.Int8) + second.cast(pl.Int8) + tie.cast(pl.Int8) == 1
    words = pl.when(first & single).then(pl.lit("first")).when(second & single).then(pl.lit("second"))
    winner = words.when(tie & single).then(pl.lit("tie")).alias(title)
    return Shaped(frame.with_columns(winner), {"winner": title})


def scored(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """Sports: an outcome of 1 is a win of the first competitor, 0 one of the second, 0.5 a draw."""
    name = column["outcome"]
    points, text = pl.Series(numbers(frame[name])), frame[name].cast(pl.String)
    words = pl.when(points == 1.0).then(pl.lit("first")).when(points == 0.0).then(pl.lit("second"))
    winner = words.when(points == 0.5).then(pl.lit("tie")).otherwise(text).alias(name)
    roles = {"first": column["competitor_1"], "second": column["competitor_2"], "winner": name}
    return Shaped(frame.with_columns(winner), dict(roles))


def named_winner(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """compar:IA: the name of the chosen model, or both are equal."""
    name = column["chosen_model_name"]
    roles: dict[str, str | None] = {"first": column["model_a_name"], "second": column["model_b_name"], "winner": name}
    if "both_equal" in column:
        roles["winner"] = title = f"{name}, {column['both_equal']}"
        equal = truth(frame[column["both_equal"]])
        frame = frame.with_columns(pl.when(equal).then(pl.lit("tie")).otherwise(pl.col(name)).alias(title))
    return Shaped(frame, roles)


def winner_and_loser(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """gavel, All Our Ideas and others: a column with the winner and one with the loser."""
    won, lost = (column.get(f"{who}_id") or column[who] for who in ("winner", "loser"))
    roles: dict[str, str | None] = {}
    if {"winner_text", "loser_text"} <= set(column):  # All Our Ideas, where a prompt is a pair of items
        roles["context"] = None
        texts = column["winner_text"], column["loser_text"]
        pairs = [
            frame.select(pl.col(i).alias("id"), pl.col(t).alias("text"))
            for i, t in zip((won, lost), texts, strict=True)
        ]
        both = pl.concat(pairs, how="vertical_relaxed").unique()
        if both["id"].n_unique() == both["text"].n_unique() == len(both):
            won, lost = texts
    if not {"left_choice_id", "right_choice_id", "winner_id"} <= set(column):
        return _won_by_the_first(frame, roles, won, lost)
    left, right = column["left_choice_id"], column["right_choice_id"]
    winner, on_left, on_right = (frame[name].cast(pl.String) for name in (column["winner_id"], left, right))
    on_the_left = winner == on_left
    names = f"{left}: {won} or {lost}", f"{right}: {won} or {lost}", f"{won}, {left}"
    one, other = pl.col(won), pl.col(lost)
    frame = frame.with_columns(
        pl.when(on_the_left).then(one).otherwise(other).alias(names[0]),
        pl.when(on_the_left).then(other).otherwise(one).alias(names[1]),
        pl.when(on_the_left).then(pl.lit("first")).when(winner == on_right).then(pl.lit("second")).alias(names[2]),
    )
    return Shaped(frame, {**roles, **dict(zip(("first", "second", "winner"), names, strict=True))})


def _won_by_the_first(frame: pl.DataFrame, roles: Columns, first: str, second: str, *guesses: str) -> Shaped:
    title = f"{first} over {second}"
    known = {**roles, "first": first, "second": second, "winner": title}
    return Shaped(frame.with_columns(pl.lit("first").alias(title)), known, False, (_NO_SIDES, *guesses))


def chosen_model(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """TRL with the models that wrote the answers."""
    return _won_by_the_first(frame, _prompt(column), column["chosen_model"], column["rejected_model"])


def chosen_text(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """TRL: the chosen and the rejected answer, as text or as a list of messages."""
    names = column["chosen"], column["rejected"]
    chosen, rejected = (objects(frame[name]) for name in names)
    answers = [
        pl.Series(name, [_last_message(value) for value in values], dtype=pl.String)
        for name, values in zip(names, (chosen, rejected), strict=True)
    ]
    roles, guess = _prompt(column), f"the items are the texts in {names[0]} and {names[1]}, each an item of its own."
    if not roles and any(isinstance(value, list) for value in chosen):
        roles = {"context": f"{names[0]}{PROMPT_OF}"}
        before = ["\n".join(map(_message, v[:-1])) if isinstance(v, list) else None for v in chosen]
        answers.append(pl.Series(roles["context"], before, dtype=pl.String))
    return _won_by_the_first(frame.with_columns(answers), roles, *names, guess)


def graded(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """HelpSteer: how much better the second answer is, from −3 to 3; 0 is a tie."""
    name = column.get("preference_strength") or column["overall_preference"]
    grade = pl.Series(numbers(frame[name])).fill_nan(None)  # NaN would be the largest
    words = pl.when(grade < 0.0).then(pl.lit("first")).when(grade > 0.0).then(pl.lit("second"))
    winner = words.when(grade == 0.0).then(pl.lit("tie")).otherwise(frame[name].cast(pl.String)).alias(name)
    answers = next(pair for pair in TEXT_PAIRS if set(pair) <= set(column))
    roles = {"first": column[answers[0]], "second": column[answers[1]], "winner": name}
    return Shaped(frame.with_columns(winner), {**roles, **_prompt(column)})


def rated(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """Two answers with a rating each: the higher one wins."""
    pairs = [(f"{kind}_{one}", f"{kind}_{other}") for kind in ("rating", "score") for one, other in ("ab", "12")]
    names = next([column[name] for name in pair] for pair in pairs if set(pair) <= set(column))
    title = f"{names[0]}, {names[1]}"
    one, other = (pl.Series(numbers(frame[name])).fill_nan(None) for name in names)
    words = pl.when(one > other).then(pl.lit("first")).when(one < other).then(pl.lit("second"))
    winner = words.when(one == other).then(pl.lit("tie")).alias(title)
    answers = next(pair for pair in TEXT_PAIRS if set(pair) <= set(column))
    roles = {"first": column[answers[0]], "second": column[answers[1]], "winner": title}
    return Shaped(frame.with_columns(winner), {**roles, **_prompt(column)})


_BETTER = re.compile(r"(?i)\b([ab])-is-")


def annotated(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """MultiPref: two completions, and lists of what people said about them."""
    lists = [name for plain, name in column.items() if plain.endswith("_annotations")]
    kept = [name for name in frame.columns if name not in lists]
    told = zip(*(objects(frame[name]) for name in lists), strict=True)
    votes = list[tuple[int, dict[str, Any]]]()
    for place, answers in enumerate(told):
        everyone = list(itertools.chain.from_iterable(map(_mappings, answers)))
        if not everyone:
            votes.append((place, {"overall_pref": None, "evaluator": None, FAULT: UNANSWERED}))
        for each in everyone:
            said = _text(each.get("overall_pref")) or ""
            side = _BETTER.search(said)
            winner = {"a": "first", "b": "second"}[side[1].lower()] if side else said.lower()
            votes.append((place, {"overall_pref": winner, "evaluator": each.get("evaluator")}))
    roles = {"first": column["completion_a"], "second": column["completion_b"]}
    return Shaped(
        one_row_per_vote(frame, votes, kept),
        {**roles, "winner": "overall_pref", "voter": "evaluator", **_prompt(column)},
    )


def _prompt(column: Mapping[str, str]) -> dict[str, str | None]:
    return {"context": column["prompt"]} if "prompt" in column else {}


def _message(value: Any) -> str:
    return _text(value.get("content")) or "" if isinstance(value, Mapping) else str(value)


def _last_message(value: Any) -> str | None:
    return (_message(value[-1]) if value else None) if isinstance(value, list) else _text(value)


def summaries(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """OpenAI's TL;DR comparisons: two summaries, each with its policy, and the index of the better one."""
    names = [f"{column['summaries']}[{place}].policy" for place in (0, 1)]
    pairs = [_mappings(value) for value in objects(frame[column["summaries"]])]
    policies = [
        pl.Series(
            name,
            [_text(p[place].get("policy")) if len(p) == 2 else None for p in pairs],
            dtype=pl.String,
        )
        for place, name in enumerate(names)
    ]
    choice = frame[column["choice"]].cast(pl.String)
    words = choice.replace_strict({"0": "first", "1": "second"}, default=choice).alias(column["choice"])
    frame, roles = frame.with_columns(*policies, words), {"first": names[0], "second": names[1]}
    if "info" in column:
        post = field(frame, f"{column['info']}.id", "the file")
        roles["context"] = post.name
        frame = frame.with_columns(post)
    return Shaped(frame, {**roles, "winner": column["choice"]})


def ranked(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """WMT: each row ranks up to five systems."""
    return _ballots(frame, column, by_rank(frame, column), {"voter": column.get("judgeid")})


def best_and_worst(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """Best–worst scaling: the best and the worst of the items of each row."""
    return _ballots(frame, column, by_best_and_worst(frame, column), {"context": "ballot"})


def _ballots(
    frame: pl.DataFrame,
    column: Mapping[str, str],
    votes: list[tuple[int, dict[str, Any]]],
    roles: dict[str, str | None],
) -> Shaped:
    guess = (
        f"{len(frame):,} ballots were read as {len(votes):,} votes, one per pair of items that a ballot puts in order."
    )
    table = one_row_per_vote(frame, votes, [*column.values()])
    known = {role: name for role, name in roles.items() if name}
    return Shaped(table, {"first": "first", "second": "second", "winner": "winner", **known}, False, (guess,))


def label_studio(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """Label Studio's JSON: tasks with their data, and annotations with pairwise results."""
    winner, voter, time = (f"{column['annotations']}.{name}" for name in ("result", "completed_by", "created_at"))
    votes = list[tuple[int, dict[str, Any]]]()
    tasks = zip(objects(frame[column["data"]]), objects(frame[column["annotations"]]), strict=True)
    for place, (data, annotations) in enumerate(tasks):
        known = data if isinstance(data, Mapping) else {}
        for each in _mappings(annotations) or [{"was_cancelled": True}]:
            person = each.get("completed_by")
            told = {voter: person.get("email") or person.get("id") if isinstance(person, Mapping) else person}
            told |= {**known, time: each.get("created_at")}
            if each.get("was_cancelled"):
                votes.append((place, {**told, winner: None, FAULT: UNANSWERED}))
                continue
            results = _mappings(each.get("result"))
            pairwise = [result for result in results if result.get("type") == "pairwise"]
            chosen = [_selected(result) for result in pairwise or results]
            votes += [(place, {**told, winner: side}) for side in chosen if side] or [(place, {**told, winner: None})]
    return Shaped(one_row_per_vote(frame, votes), {"winner": winner, "voter": voter, "time": time})


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _selected(result: Any) -> str | None:
    """Return the side that a result of Label Studio selects, or the choice that it makes."""
    if isinstance(result, list):
        return _selected(result[0]) if len(result) == 1 else None
    if not isinstance(result, Mapping):
        return _text(result)
    value = result.get("value", result)
    if not isinstance(value, Mapping):
        return None
    chosen = value.get("selected") or value.get("choices")
    return _text(chosen[0] if isinstance(chosen, list) and chosen else chosen or None)


def label_studio_min(frame: pl.DataFrame, column: Mapping[str, str]) -> Shaped:
    """Label Studio's JSON-MIN: the data of a task, the answer under the name of its control, and who gave it."""
    sides = {"left", "right"}
    answers = dict[str, pl.Series]()
    for name in frame.columns:
        if name in (FAULT, LINE, ROW):
            continue
        values = [_selected(value) for value in objects(frame[name])]
        if set(values) - {None} and set(values) - {None} <= sides:
            answers[name] = pl.Series(name, values, dtype=pl.String)
    if len(answers) != 1:
        return Shaped(frame, {})
    [(name, answer)] = answers.items()
    guess = f"the winner was read from column {name}, the only one with left and right."
    return Shaped(frame.with_columns(answer), {"winner": name, "voter": column["annotator"]}, guesses=(guess,))


def argilla(frame: pl.DataFrame, _: Mapping[str, str]) -> Shaped:
    """Argilla 2: for every question, lists of responses, of who gave them and of their status."""
    questions = [name.removesuffix(".responses") for name in frame.columns if name.endswith(".responses")]
    votes, voter = dict[tuple[int, str], dict[str, Any]](), "responses.users"
    for question in questions:
        values, users, status = (
            objects(frame[name]) if name in frame.columns else [None] * len(frame)
            for name in (f"{question}.responses", f"{question}.responses.users", f"{question}.responses.status")
        )
        for place, given in enumerate(values):
            answers = given if isinstance(given, list) else []
            for number, answer in enumerate(answers):
                user = str(_entry(users[place], number))
                vote = votes.setdefault((place, user), {voter: _entry(users[place], number)})
                submitted = _entry(status[place], number) in (None, "submitted")
                vote[question] = answer
                vote.update({} if submitted else {FAULT: UNANSWERED})
            if not answers:
                votes.setdefault((place, ""), {FAULT: UNANSWERED})
    kept = [name for name in frame.columns if ".responses" not in name]
    roles = {"voter": voter, **({"winner": questions[0]} if len(questions) == 1 else {})}
    rows = one_row_per_vote(frame, [(place, vote) for (place, _), vote in votes.items()], kept)
    return Shaped(rows, dict(roles))


def _entry(values: Any, number: int) -> Any:
    return values[number] if isinstance(values, list) and number < len(values) else None


SHAPES = [
    Shape(("winner_model_a", "winner_model_b", "winner_tie"), one_hot),
    Shape(("competitor_1", "competitor_2", "outcome"), scored),
    Shape(("model_a_name", "model_b_name", "chosen_model_name"), named_winner, ("both_equal",)),
    Shape(("chosen_model", "rejected_model"), chosen_model, ("prompt",)),
    Shape(("chosen", "rejected"), chosen_text, ("prompt",)),
    Shape(("response_1", "response_2", "preference_strength"), graded, ("prompt",)),
    Shape(("response1", "response2", "overall_preference"), graded, ("context",)),
    *(
        Shape((f"{texts}_{one}", f"{texts}_{other}", f"{kind}_{one}", f"{kind}_{other}"), rated, ("prompt",))
        for texts in ("response", "answer", "completion")
        for kind in ("rating", "score")
        for one, other in ("ab", "12")
    ),
    Shape(("completion_a", "completion_b", "*_worker_annotations"), annotated, None),
    Shape(("summaries", "choice"), summaries, ("info",)),
    Shape(("annotations", "data"), label_studio),
    Shape(("*.responses", "*.responses.users"), argilla, None),
    Shape(("annotator", "lead_time", "created_at"), label_studio_min, None),
    Shape(("system1id", "system2id", "system1rank", "system2rank"), ranked, None),
    Shape(("best", "worst", "*1", "*2"), best_and_worst, None),
    Shape(("winner", "loser"), winner_and_loser),
    Shape(
        ("winner_id", "loser_id"), winner_and_loser, ("winner_text", "loser_text", "left_choice_id", "right_choice_id")
    ),
]
"""The shapes that are known by their columns, in the order in which they are tried."""
