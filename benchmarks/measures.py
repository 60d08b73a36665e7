"""How time and memory are measured."""

import time
from collections.abc import Callable
from pathlib import Path


def seconds(call: Callable[[], object], times: int = 3) -> float:
    """The shortest of a few runs: the least disturbed."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return min(taken)


def peak_memory() -> float:
    """GiB that this process has held at most; ru_maxrss would count what its parent held too."""
    return int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmHWM:")[1].split()[0]) / 2**20
