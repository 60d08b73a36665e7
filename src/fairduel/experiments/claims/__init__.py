"""The paper's claims as a checklist: each one measured, with an interval and a verdict."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import joblib

from fairduel.experiments.claims.beyond import beyond_claims
from fairduel.experiments.claims.figures import figure_claims
from fairduel.experiments.claims.lower_bound import lower_bound_claims
from fairduel.experiments.claims.proofs import proof_claims
from fairduel.experiments.claims.theorems import theorem_claims
from fairduel.experiments.claims.verdict import BEYOND, Claim, Evidence, Status, Verdict
from fairduel.experiments.proof_audit import Audit, audit
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.simulation import Cell, Storage, missing_seeds, run_cells

__all__ = ["BEYOND", "Claim", "Status", "Verdict", "all_claims", "count_runs", "verify"]


def all_claims() -> list[Claim]:
    """Return every claim: about the figures, the proofs and theorems, the lower bounds, and beyond the paper."""
    return [*figure_claims(), *proof_claims(), *theorem_claims(), *lower_bound_claims(), *beyond_claims()]


def verify(
    store: Storage, seeds: Sequence[int], *, jobs: int = 1, progress: Callable[[int], None] = lambda _: None
) -> list[Verdict]:
    """Run what is missing and judge every claim.

    Args:
        store: Where finished runs are kept.
        seeds: The seeds, all below the tuning seeds; claims whose runs take long use only the first of them.
        jobs: Number of runs at a time.
        progress: Called with the number of runs just finished.
    """
    refuse_tuning_seeds(seeds)
    claims = all_claims()
    for count, cells in _by_count(claims, seeds).items():
        run_cells(cells, seeds[:count], store, jobs=jobs, progress=progress)
    audited = _audits(claims, seeds, jobs, progress)
    return [verdict for claim in claims for verdict in _judge(claim, store, claim.seeds(seeds), audited)]


def _judge(claim: Claim, store: Storage, seeds: Sequence[int], audited: Mapping[str, Sequence[Audit]]) -> list[Verdict]:
    """Judge a claim, and add the number of runs per cell to its verdicts."""
    runs = "" if claim.one_in == 1 else f"; {len(seeds)} runs per cell"
    return [
        replace(verdict, measured=verdict.measured + runs, numbers={"runs_per_cell": len(seeds), **verdict.numbers})
        for verdict in claim.judge(Evidence(store, seeds, audited))
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
    return len(missing) + len(_audit_calls(claims, seeds))


def _by_count(claims: Iterable[Claim], seeds: Sequence[int]) -> dict[int, list[Cell]]:
    """Group the cells by the number of seeds they need."""
    by_count: dict[int, list[Cell]] = {}
    for claim in claims:
        by_count.setdefault(len(claim.seeds(seeds)), []).extend(claim.cells)
    return by_count


def _audit_calls(claims: Iterable[Claim], seeds: Sequence[int]) -> list[tuple[Cell, int]]:
    """Return the runs to audit, each once."""
    calls = {(cell.key, seed): cell for claim in claims for cell in claim.audited for seed in claim.seeds(seeds)}
    return [(cell, seed) for (_, seed), cell in calls.items()]


def _audits(
    claims: Iterable[Claim], seeds: Sequence[int], jobs: int, progress: Callable[[int], None]
) -> dict[str, list[Audit]]:
    calls = _audit_calls(claims, seeds)
    found: dict[str, list[Audit]] = {}
    runs = joblib.Parallel(n_jobs=jobs, backend="threading", return_as="generator")(
        joblib.delayed(audit)(cell, seed) for cell, seed in calls
    )
    for (cell, _), done in zip(calls, runs, strict=True):
        found.setdefault(cell.key, []).append(done)
        progress(1)
    return found
