"""Preference data with planted liars, to try things out: support mails of which the more helpful one is better."""

from typing import Any

import numpy as np
import polars as pl
from scipy import special

from fairduel.checks import integer, share

_TOPICS = ("invoice", "delivery", "password", "refund", "upgrade", "warranty", "login", "contract", "printer", "update")
_VERBS = ("change", "find", "cancel", "check", "renew", "return", "print", "share", "reset", "track")
_STEPS = (
    *("Open the settings and choose your {topic}.", "Write down the number on the label of the {topic}."),
    *("Wait two minutes and try again.", "Restart the device before you continue.", "Attach a photo of the {topic}."),
    *("Confirm the message that we send you.", "Our team checks the {topic} within 24 hours."),
)
_VAGUE = (
    *("It depends on many things.", "Somebody may look at it.", "That is how it is.", "Nothing can be done now."),
    *("I think others had this before.", "Perhaps it works tomorrow.", "You could ask somebody else."),
)
_POLITE = (
    "Thank you for your message!",
    "Sorry for the trouble.",
    "We are glad to help.",
    "Please write again anytime.",
)
_TRUTH = {"helpful": 2.0, "vague": -1.2, "polite": 0.8}


def planted_preferences(
    *, pairs: int = 3000, voters: int = 100, lying: float = 0.3, seed: int = 4
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return preference data, and the planted liars with what they do.

    Honest voters prefer helpful, clear and polite answers, more or less carefully. Of the liars, half always choose the
    shorter text, and half the opposite of what they believe.

    Args:
        pairs: Number of votes, each on a pair of its own.
        voters: Number of voters, who cast equally many votes.
        lying: Share of voters who lie.
        seed: Same seed, same data.

    >>> table, liars = planted_preferences(pairs=200, voters=20)
    >>> table.columns, len(table), len(liars)
    (['prompt', 'chosen', 'rejected', 'annotator'], 200, 6)
    """
    share("lying", lying)
    count, people = integer("pairs", pairs, least=1), integer("voters", voters, least=2)
    rng = np.random.default_rng(integer("seed", seed))
    names = [f"annotator-{number:03d}" for number in range(people)]
    chosen = rng.choice(people, round(lying * people), replace=False)
    liars = {names[number]: "shorter" if place % 2 else "opposite" for place, number in enumerate(chosen)}
    care = rng.uniform(0.7, 1.5, people)
    rows = list[dict[str, Any]]()
    for place in range(count):
        number = place % people
        topic, verb = rng.choice(_TOPICS), rng.choice(_VERBS)
        one, worth_one = other, worth_other = _answer(topic, rng)
        while other == one:
            other, worth_other = _answer(topic, rng)
        first = bool(rng.random() < special.expit(care[number] * (worth_one - worth_other)))
        what = liars.get(names[number])
        first = len(one) < len(other) if what == "shorter" else first != (what == "opposite")
        texts = (one, other) if first else (other, one)
        prompt = f"How do I {verb} my {topic}? (case {place + 1})"
        rows.append({"prompt": prompt, "chosen": texts[0], "rejected": texts[1], "annotator": names[number]})
    return pl.DataFrame(rows), liars


def _answer(topic: str, rng: np.random.Generator) -> tuple[str, float]:
    """Return an answer, and what it is worth."""
    counts = rng.integers(0, (4, 4, 3))
    parts, worth = list[str](), 0.0
    for kind, count, texts in zip(_TRUTH, counts.tolist(), (_STEPS, _VAGUE, _POLITE), strict=True):
        parts += [str(text) for text in rng.choice(texts, count, replace=False)]
        worth += _TRUTH[kind] * count
    parts = parts or ["No."]
    order = rng.permutation(len(parts))
    return " ".join(parts[place].format(topic=topic) for place in order), worth / 2.0
