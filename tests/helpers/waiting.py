"""Wait for something that happens elsewhere, and where it may happen."""

import socket
import time


def wait_for(condition, seconds=120.0):
    """Return what a condition finds once it finds something, also on a machine with much else to do."""
    give_up = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.02)
    return found


def free_port():
    """Return a port of this machine where nothing listens yet."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
