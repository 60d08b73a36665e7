"""Votes that were cast elsewhere, as a starting point: record them, or copy those of another study."""

import hashlib
import re
from typing import NamedTuple

from sqlalchemy import select

from fairduel.service.commands.operating import MOST_VOTERS, change_item, create_study, find_study
from fairduel.service.events import schema
from fairduel.service.events.kinds import Answered, DuelIssued, GoldChanged, Imported, VoterChanged, VoterJoined
from fairduel.service.events.ledger import Ledger
from fairduel.service.events.log import canonical
from fairduel.service.events.state import StudyState
from fairduel.service.keys import first_is_left, new_id
from fairduel.service.problems import Problem
from fairduel.service.study.learner import Proposal
from fairduel.service.study.study import NewStudy
from fairduel.words import printable

MOST_VOTES = 20_000
"""Votes of one import, which the server records in one go."""
ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
"""The file types that strangers may send; others can unpack to far more than their size."""
IMPORT_KEY = "import-"
"""How the idempotency keys of imported votes begin."""
_NUMBERED = re.compile(r" \(voter \d+\)$")


class CastVote(NamedTuple):
    """A vote that was cast elsewhere."""

    left: int
    right: int
    answer: str
    voter: str
    context: int | None
    cast_at: float | None
    """Seconds since 1970, if known."""
    seconds: float | None
    """How long the voter took, if known."""


class Import(NamedTuple):
    """Votes to import, in their order."""

    votes: list[CastVote]
    set_aside: frozenset[str] = frozenset()
    """Voters whose votes do not count."""
    models: frozenset[str] = frozenset()
    """Voters that are language models."""
    sides_known: bool = True

    @property
    def digest(self) -> str:
        """The hash of the content, which does not depend on the file's format."""
        return hashlib.sha256(canonical([self.votes, sorted(self.set_aside), sorted(self.models)]).encode()).hexdigest()


def votes_of_study(ledger: Ledger, study: StudyState) -> Import:
    """Return the votes of a study, with "voter 1", "voter 2", … in place of names."""
    duels = schema.duels.c
    query = select(schema.duels).where(duels.study == study.study, duels.status == "voted", ~duels.gold)
    labels = study.labels
    found = [
        CastVote(
            row.first if row.first_is_left else row.second,
            row.second if row.first_is_left else row.first,
            row.answer,
            labels[row.voter],
            row.context,
            row.answered_at,
            row.seconds,
        )
        for row in ledger.connection().execute(query.order_by(duels.answered))
    ]
    models = frozenset(labels[model.voter] for model in study.models)
    return Import(found, frozenset(labels[voter] for voter in study.set_aside), models)


def import_votes(ledger: Ledger, study: str, imported: Import) -> tuple[StudyState, bool]:
    """Record votes that were cast elsewhere, all or none; return the study, and whether the learner must be refolded.

    Each voter of the file becomes a voter of the study without a key, who is marked as imported. Each vote becomes
    a duel that was given to the agent, and its answer.
    """
    found = find_study(ledger, study)
    _check_size(imported)
    votes, digest = imported.votes, imported.digest
    if digest in found.imports:
        raise Problem(409, "already-imported", "These votes are already in the study; nothing was changed.")
    names = dict.fromkeys(vote.voter for vote in votes)
    if len(found.voters) + len(names) > MOST_VOTERS:
        raise Problem(409, "too-many", "This study cannot have that many voters.")
    ids = {name: new_id() for name in names}
    for name, voter in ids.items():
        shown, is_model = printable(name)[:200], name in imported.models
        joined = VoterJoined(voter, _NUMBERED.sub("", shown) if is_model else None, imported=True)
        ledger.append_personal(study, joined, name=None if is_model else shown)
        if name in imported.set_aside:
            ledger.append(study, VoterChanged(voter, set_aside=True))
    for number, vote in enumerate(votes):
        _record(ledger, found, ids[vote.voter], vote, f"{IMPORT_KEY}{number}", sides_known=imported.sides_known)
    ledger.append(study, Imported(digest, len(votes), len(names)))
    return found, bool(imported.set_aside)


def _check_size(imported: Import) -> None:
    if not 0 < len(imported.votes) <= MOST_VOTES:
        raise Problem(422, "invalid", f"1 to {MOST_VOTES:,} votes can be imported; these are {len(imported.votes):,}.")


def create_with_votes(
    ledger: Ledger, about: NewStudy, imported: Import | None, *, is_copy: bool = False
) -> tuple[StudyState, bool]:
    """Create a study, perhaps with votes to begin with; see :func:`import_votes`."""
    if imported is not None:
        _check_size(imported)
    made = create_study(ledger, about, is_copy=is_copy)
    return (made, False) if imported is None else import_votes(ledger, made.study, imported)


def _record(ledger: Ledger, study: StudyState, voter: str, vote: CastVote, key: str, *, sides_known: bool) -> None:
    duel, now = new_id(), ledger.now()
    if study.is_apart(study.voters[voter]):
        proposal = Proposal(vote.context, vote.left, vote.right, weight=0.0, declined=False)
    else:
        proposal = study.learner.propose_given(vote.context, vote.left, vote.right)
    is_left, answer = proposal.first == vote.left, vote.answer
    if not sides_known and first_is_left(ledger.secret, voter, duel) != is_left:
        is_left, answer = not is_left, {"left": "right", "right": "left"}.get(answer, answer)
    deadline = now + study.about.duel_seconds
    ledger.append(study.study, DuelIssued.of(proposal, duel, voter, first_is_left=is_left, deadline=deadline))
    here = study.voters[voter]
    progress = {"answered": here.votes + 1, "votes": here.votes + 1, "of": None, "done": False}
    ledger.append(
        study.study,
        Answered(
            duel,
            voter,
            answer,
            here.open[duel].winner(answer),
            key,
            vote.seconds,
            settles=None,
            final=True,
            progress=progress,
            cast_at=vote.cast_at,
        ),
    )


def clone_study(ledger: Ledger, study: str, title: str | None, *, votes: bool) -> tuple[StudyState, bool]:
    """Create a study like another one, open and perhaps with its votes; see :func:`import_votes`."""
    found = find_study(ledger, study)
    name = title if title is not None else f"Copy of {found.about.title or found.about.question}"[:200]
    about = found.about.model_copy(update={"title": name, "state": "open", "archived": False})
    made, refold = create_with_votes(ledger, about, votes_of_study(ledger, found) if votes else None, is_copy=True)
    for item in range(len(found.enabled)):
        change_item(ledger, made.study, item, found.item_settings(item))
    if found.gold.answers:
        ledger.append(made.study, GoldChanged.of(found.gold))
    return made, refold
