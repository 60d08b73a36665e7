"""Wait for something that happens elsewhere."""

import time


def wait_for(condition, seconds=20.0):
    """Return what a condition finds once it finds something."""
    give_up = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.02)
    return found
