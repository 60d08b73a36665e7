"""Time and memory measurements."""

import time
from collections.abc import Callable
from pathlib import Path


def seconds(call: Callable[[], object], times: int = 3) -> float:
    """Return the shortest time of a few calls, the least disturbed one."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return min(taken)


def peak_memory() -> float:
    """Return the peak memory of this process in GiB; ru_maxrss would include that of its parent."""
    return int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmHWM:")[1].split()[0]) / 2**20
