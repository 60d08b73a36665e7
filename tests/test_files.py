"""Files that are written whole or not at all."""

import os
import stat

import pytest

from fairduel import RCDB, BadInputError
from fairduel.files import write_atomically


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


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(BadInputError, match=r"cannot write .*: No such file"):
        write_atomically(tmp_path / "nowhere" / "file", b"")
