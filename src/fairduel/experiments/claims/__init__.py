"""The paper's claims as a checklist: each one measured, with an interval and a verdict."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import joblib

from fairduel.experiments.claims.beyond import beyond_claims
from fairduel.experiments.claims.claim import BEYOND, OURS, Claim, Judgement, Status, StoredRuns
from fairduel.experiments.claims.inequalities import Inequalities, check_proof
from fairduel.experiments.claims.lower_bound import lower_bound_claims
from fairduel.experiments.claims.ours import our_claims
from fairduel.experiments.claims.paper_figures import figure_claims
from fairduel.experiments.claims.proofs import proof_claims
from fairduel.experiments.claims.theorems import theorem_claims
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.simulation import Cell, Storage, missing_seeds, run_cells

__all__ = [
    "GROUPS",
    "Claim",
    "ClaimGroup",
    "Judgement",
    "Status",
    "all_claims",
    "count_runs",
    "verify",
    "verify_conclusions",
]


class ClaimGroup(NamedTuple):
    """Verdicts that are counted together and share a table."""

    title: str
    counted: str
    """How the conclusion counts them."""
    about: str

    def chosen(self, verdicts: Iterable[Judgement]) -> list[Judgement]:
        """Return the verdicts of this group."""
        return [verdict for verdict in verdicts if _GROUP_OF.get(verdict.source, GROUPS[0]) == self]


GROUPS = (
    ClaimGroup("Claims of the paper", "claims of the paper", ""),
    ClaimGroup(
        "Beyond the paper", "claims beyond the paper", "What the paper does not claim, but readers will ask about."
    ),
    ClaimGroup(
        "Ours",
        "claims of ours",
        "What we claim of our own agent and in the README. Sceptic's constants and the pre-tuned ones were searched on "
        "problems like the leaderboard's tuning half; the claims use its held-out half.",
    ),
)
_GROUP_OF = {BEYOND: GROUPS[1], OURS: GROUPS[2]}


def all_claims() -> list[Claim]:
    """Return every claim: about the figures, the proofs and theorems, the lower bounds, beyond the paper, and ours."""
    paper = [*figure_claims(), *proof_claims(), *theorem_claims(), *lower_bound_claims()]
    return [*paper, *beyond_claims(), *our_claims()]


def verify(
    store: Storage, seeds: Sequence[int], *, jobs: int = 1, progress: Callable[[int], None] = lambda _: None
) -> list[Judgement]:
    """Run what is missing and judge every claim; those whose runs take long use only the first seeds."""
    refuse_tuning_seeds(seeds)
    claims = all_claims()
    for count, cells in _by_count(claims, seeds).items():
        run_cells(cells, seeds[:count], store, jobs=jobs, progress=progress)
    checked = _check_proofs(claims, seeds, jobs, progress)
    return [verdict for claim in claims for verdict in _judge(claim, store, claim.seeds(seeds), checked)]


def _judge(
    claim: Claim, store: Storage, seeds: Sequence[int], checked: Mapping[str, Sequence[Inequalities]]
) -> list[Judgement]:
    """Judge a claim, and add the number of runs per cell to its verdicts."""
    runs = "" if claim.one_in == 1 else f"; {len(seeds)} runs per cell"
    return [
        replace(verdict, measured=verdict.measured + runs, numbers={"runs_per_cell": len(seeds), **verdict.numbers})
        for verdict in claim.judge(StoredRuns(store, seeds, checked))
    ]


def count_runs(store: Storage, seeds: Sequence[int]) -> int:
    """Return how many runs :func:`verify` still needs."""
    claims = all_claims()
    missing = {
        (key, seed)
        for count, cells in _by_count(claims, seeds).items()
        for key, left in missing_seeds(store, cells, seeds[:count]).items()
        for seed in left
    }
    return len(missing) + len(_proof_runs(claims, seeds))


def _by_count(claims: Iterable[Claim], seeds: Sequence[int]) -> dict[int, list[Cell]]:
    """Group the cells by the number of seeds they need."""
    by_count: dict[int, list[Cell]] = {}
    for claim in claims:
        by_count.setdefault(len(claim.seeds(seeds)), []).extend(claim.cells)
    return by_count


def _proof_runs(claims: Iterable[Claim], seeds: Sequence[int]) -> list[tuple[Cell, int]]:
    """Return the runs to check, each once."""
    calls = {(cell.key, seed): cell for claim in claims for cell in claim.checked for seed in claim.seeds(seeds)}
    return [(cell, seed) for (_, seed), cell in calls.items()]


def _check_proofs(
    claims: Iterable[Claim], seeds: Sequence[int], jobs: int, progress: Callable[[int], None]
) -> dict[str, list[Inequalities]]:
    calls = _proof_runs(claims, seeds)
    found: dict[str, list[Inequalities]] = {}
    runs = joblib.Parallel(n_jobs=jobs, backend="threading", return_as="generator")(
        joblib.delayed(check_proof)(cell, seed) for cell, seed in calls
    )
    for (cell, _), done in zip(calls, runs, strict=True):
        found.setdefault(cell.key, []).append(done)
        progress(1)
    return found


def verify_conclusions(verdicts: Sequence[Judgement]) -> list[str]:
    """State how many claims hold, and which do not, in one or two sentences per item."""
    found = []
    for group in GROUPS:
        chosen = group.chosen(verdicts)
        if not chosen:
            continue
        count = Counter(verdict.status for verdict in chosen)
        rest: tuple[Status, ...] = ("does not hold", "undecided", "cannot fail")
        counts = ", ".join(f"{status}: {count[status]}" for status in rest if count[status])
        found.append(f"{count['holds']} of {len(chosen)} {group.counted} hold" + (f" ({counts})." if counts else "."))
        found += [f"Does not hold: {each.claim}." for each in chosen if each.status == "does not hold"]
    return found
