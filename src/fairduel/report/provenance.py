"""Where a report comes from: command, date, versions and git commit."""

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fairduel.simulation import versions

_ROOT = Path(__file__).parents[3]


def provenance(command: str, seeds: Sequence[int] = ()) -> dict[str, str]:
    """Return how a report was made, as text by name."""
    packages = dict(versions())
    found = {
        "Command": command,
        "Date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "fairduel": packages.pop("fairduel"),
    }
    if commit := _commit(_ROOT):
        found["Git commit"] = commit
    if seeds:
        found["Runs"] = runs_text(seeds)
    found["Software"] = ", ".join(f"{name} {version}" for name, version in packages.items())
    return found


def runs_text(seeds: Sequence[int]) -> str:
    """Return the number of runs and their seeds.

    >>> runs_text(range(10)), runs_text([3])
    ('10 runs (seeds 0–9)', '1 run (seed 3)')
    """
    if len(seeds) == 1:
        return f"1 run (seed {seeds[0]:,})"
    return f"{len(seeds):,} runs (seeds {min(seeds):,}–{max(seeds):,})"


def _commit(root: Path) -> str:
    """Return the commit that the package runs from; empty unless ``root`` is a git checkout."""
    if not (root / ".git").exists():  # a worktree has a file there
        return ""
    try:
        commit = _git(root, "rev-parse", "--short=10", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "src")
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{commit} with uncommitted changes" if changed else commit


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()  # noqa: S603
