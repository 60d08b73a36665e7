"""Files that are written whole or not at all."""

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairduel import RCDB, BadInputError
from fairduel.files import write_atomically

SIZE = 300_000


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("given", [0o600, 0o640, 0o666, 0o400])
def test_a_file_keeps_its_mode_and_a_new_one_has_that_of_the_umask(tmp_path, given):
    path = tmp_path / "file"
    write_atomically(path, b"one")
    assert mode(path) == 0o640
    path.chmod(given)
    write_atomically(path, b"two")
    assert (path.read_bytes(), mode(path)) == (b"two", given)
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_agent_stays_private(tmp_path):
    path = tmp_path / "agent.npz"
    agent = RCDB(dimension=2, norm_bound=1.0, flip_budget=1, horizon=10, seed=0)
    agent.save(path)
    path.chmod(0o600)
    agent.save(path)
    assert mode(path) == 0o600


def test_a_missing_folder_is_one_sentence(tmp_path):
    with pytest.raises(BadInputError, match=r"cannot write .*: No such file"):
        write_atomically(tmp_path / "nowhere" / "file", b"")


def test_threads_may_write_and_read_the_same_file_at_once(tmp_path):
    path, done = tmp_path / "file", threading.Event()
    path.write_bytes(b"0" * SIZE)

    def write(number):
        for _ in range(50):
            write_atomically(path, str(number).encode() * SIZE)

    def read():
        found = set()
        while not done.is_set():
            content = path.read_bytes()
            found.add((len(content), len(set(content))))
        return found

    with ThreadPoolExecutor(9) as threads:
        readers = [threads.submit(read) for _ in range(3)]
        writers = [threads.submit(write, number) for number in range(1, 7)]
        try:
            for writer in writers:
                writer.result()
        finally:
            done.set()
        assert set.union(*(reader.result() for reader in readers)) == {(SIZE, 1)}  # all from one writer
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
