"""The paper's claims as a checklist: each one measured, with its figure, its interval and a verdict."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import joblib

from fairduel.experiments.claims.beyond import beyond_claims
from fairduel.experiments.claims.figures import figure_claims
from fairduel.experiments.claims.lower_bound import lower_bound_claims
from fairduel.experiments.claims.proofs import proof_claims
from fairduel.experiments.claims.theorems import theorem_claims
from fairduel.experiments.claims.verdict import BEYOND, Claim, Evidence, Status, Verdict, tally
from fairduel.experiments.proof_audit import Audit, audit
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.simulation import Cell, Storage, missing_seeds, run_cells

__all__ = ["BEYOND", "Claim", "Status", "Verdict", "all_claims", "count_runs", "tally", "verify"]


def all_claims() -> list[Claim]:
    """Every claim: what the figures show, what the theorems promise, and what the paper leaves open."""
    return [*figure_claims(), *proof_claims(), *theorem_claims(), *lower_bound_claims(), *beyond_claims()]


def verify(
    store: Storage, seeds: Sequence[int], *, jobs: int = 1, progress: Callable[[int], None] = lambda _: None
) -> list[Verdict]:
    """Run what is missing and judge every claim."""
    refuse_tuning_seeds(seeds)
    claims = all_claims()
    for count, cells in _by_count(claims, seeds).items():
        run_cells(cells, seeds[:count], store, jobs=jobs, progress=progress)
    audited = _audits(claims, seeds, jobs, progress)
    return [verdict for claim in claims for verdict in _judge(claim, store, claim.seeds(seeds), audited)]


def _judge(claim: Claim, store: Storage, seeds: Sequence[int], audited: Mapping[str, Sequence[Audit]]) -> list[Verdict]:
    """The verdicts on a claim, each with how many runs per cell it rests on."""
    runs = "" if claim.one_in == 1 else f"; {len(seeds)} runs per cell"
    return [
        replace(verdict, measured=verdict.measured + runs, numbers={"runs_per_cell": len(seeds), **verdict.numbers})
        for verdict in claim.judge(Evidence(store, seeds, audited))
    ]


def count_runs(store: Storage, seeds: Sequence[int]) -> int:
    """How many runs :func:`verify` has yet to make."""
    claims = all_claims()
    missing = {
        (key, seed)
        for count, cells in _by_count(claims, seeds).items()
        for key, left in missing_seeds(store, cells, seeds[:count]).items()
        for seed in left
    }
    return len(missing) + len(_audit_calls(claims, seeds))


def _by_count(claims: Iterable[Claim], seeds: Sequence[int]) -> dict[int, list[Cell]]:
    """The cells by how many of the seeds they need."""
    by_count: dict[int, list[Cell]] = {}
    for claim in claims:
        by_count.setdefault(len(claim.seeds(seeds)), []).extend(claim.cells)
    return by_count


def _audit_calls(claims: Iterable[Claim], seeds: Sequence[int]) -> list[tuple[Cell, int]]:
    """Which runs are audited, each once."""
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
