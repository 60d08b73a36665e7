"""The cache of machine code follows the sources, callees included, and is kept where that is possible."""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import fairduel
from fairduel.core.compiling import _compiled_sources, _lock_between_processes, _locked, _opened
from helpers.waiting import wait_for

PACKAGE = Path(fairduel.__file__).parent

CODE = """
import numpy as np
from fairduel.core.likelihood import loss, problem_of
from fairduel.core.links import LOGISTIC, potential
one = np.array([1.0])
print(abs(potential(0, 1.0, 0.5) - loss(0.5 * one, problem_of(one[:, None], one, 0 * one, 0.0, LOGISTIC))) < 1e-9)
"""


def test_a_changed_function_reaches_the_compiled_ones_that_call_it(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "fairduel", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["PYTHONPATH"] = str(tmp_path)

    def agree():
        command = [sys.executable, "-c", CODE]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert agree() == "True"
    links = tmp_path / "fairduel" / "core" / "links.py"
    source = links.read_text(encoding="utf-8")
    assert "return (max(z, 0.0)" in source
    links.write_text(source.replace("return (max(z, 0.0)", "return 100.0 + (max(z, 0.0)"), encoding="utf-8")
    assert agree() == "True"


def names_read_by_compiled_functions(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and {"compiled", "inlined"} & {
            getattr(d, "id", "") for d in node.decorator_list
        }:
            body = [inner for statement in node.body for inner in ast.walk(statement)]
            yield from (inner.id for inner in body if isinstance(inner, ast.Name))


def test_compiled_functions_read_nothing_from_files_that_the_cache_does_not_follow():
    followed = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in _compiled_sources()}
    seen = 0
    for path in _compiled_sources():
        tree = ast.parse(path.read_bytes())
        read = set(names_read_by_compiled_functions(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("fairduel"):
                used = read & {alias.asname or alias.name for alias in node.names}
                assert not used or node.module in followed, (path, node.module, used)
                seen += len(used)
    assert seen > 30


# ---------------------------------------------------------------------- the notice

NOTICE = "fairduel is compiling its numerical code for this machine"


def compile_probability(folder, first="pass"):
    """What a process prints on stderr that needs one small compiled function, cached in ``folder``."""
    code = f"from fairduel.core.links import LOGISTIC; {first}; LOGISTIC.probability(0.0); LOGISTIC.slope(0.0)"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr


def test_compiling_is_announced_once_and_loading_from_the_cache_is_not(tmp_path):
    assert compile_probability(tmp_path).count(NOTICE) == 1
    assert compile_probability(tmp_path) == ""


@pytest.mark.parametrize(
    "first",
    [
        "import logging; logging.getLogger('fairduel').setLevel('ERROR')",
        "from fairduel.core.compiling import skip_compile_notice; skip_compile_notice()",
    ],
)
def test_the_notice_can_be_silenced(tmp_path, first):
    assert compile_probability(tmp_path, first) == ""


# ---------------------------------------------------------------------- processes that start together

COUNT = """
import sys, time
from pathlib import Path
from fairduel.core.compiling import telling
from fairduel.core.links import LOGISTIC
counts = [0]
Path(sys.argv[1]).touch()
while not Path(sys.argv[2]).exists():
    time.sleep(0.001)
with telling(counts.append):
    LOGISTIC.probability(0.0), LOGISTIC.slope(0.0)
print(counts[-1])
"""


def functions_compiled(folder, processes):
    """How many functions each of these processes compiled, all of which start at the same moment."""
    folder.mkdir()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", COUNT, str(folder / f"ready{one}"), str(folder / "go")],
            env=os.environ | {"NUMBA_CACHE_DIR": str(folder)}, stdout=subprocess.PIPE, text=True,
        )
        for one in range(processes)
    ]  # fmt: skip
    wait_for(lambda: len(list(folder.glob("ready*"))) == processes)
    (folder / "go").touch()
    return [int(process.communicate()[0]) for process in started]


def test_processes_that_start_together_compile_each_function_once(tmp_path):
    (alone,) = functions_compiled(tmp_path / "one", 1)
    assert alone > 1
    assert sum(functions_compiled(tmp_path / "three", 3)) == alone


def test_a_lock_whose_owner_is_suspended_is_not_waited_for_for_ever(tmp_path):
    take = (
        "import sys, time; from pathlib import Path; from fairduel.core.compiling import _lock_between_processes\n"
        "with _lock_between_processes(Path(sys.argv[1]), 7): print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", take, str(tmp_path / "locks")], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        file = _opened(tmp_path / "locks", os.getpid())
        assert not _locked(file, 7)
        assert _locked(file, 8)
        with _lock_between_processes(tmp_path / "locks", 7, patience=0.05):
            pass
        owner.kill()


# ---------------------------------------------------------------------- where nothing can be written

IMPORT = """
import os, sys
import fairduel.core.links, numba
numba.njit(lambda x: x + 1.0)(1.0)  # from here on all is loaded that only the starter of the tests may be able to read
for name in [name for name in sys.modules if name.startswith("fairduel")]:
    del sys.modules[name]
folder, user = sys.argv[1], int(sys.argv[2])
if user:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    del os.environ["HOME"]
sys.path.insert(0, folder)
import fairduel.core.links
assert fairduel.__file__.startswith(folder), fairduel.__file__
print(fairduel.core.links.potential(0, 1.0, 0.0) > 0.69)
"""
STRANGER = 54321
"""A user id that nobody has."""


@pytest.fixture
def sealed():
    """A folder that everybody can enter, and a copy of the package in it that nobody can change."""
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(PACKAGE, folder / "sealed" / "fairduel", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "home").mkdir()
    (folder / "tmp").mkdir()
    for path in folder.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    folder.chmod(0o755)
    (folder / "tmp").chmod(0o1777)
    yield folder
    for path in folder.rglob("*"):
        path.chmod(0o755)
    shutil.rmtree(folder)


def import_sealed(folder):
    """Import it as a user without a home, or with a home that cannot be written to."""
    user = STRANGER if os.getuid() == 0 else 0
    unset = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = str(PACKAGE.parent)
    command = [sys.executable, "-c", IMPORT, str(folder / "sealed"), str(user)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"
    return done.stderr, folder / "tmp" / f"fairduel-{user or os.getuid()}"


def test_without_a_place_for_it_compiled_code_is_kept_in_a_private_temporary_folder(sealed):
    warned, temporary = import_sealed(sealed)
    assert warned.count("UserWarning") == 1
    assert f"cannot write its compiled code to {sealed}" in warned
    assert f"uses {temporary} for now; set NUMBA_CACHE_DIR" in warned
    assert temporary.stat().st_mode & 0o777 == 0o700
    assert list(temporary.rglob("*.nbc"))


def test_a_temporary_folder_that_others_can_write_to_is_not_used(sealed):
    (sealed / "tmp" / f"fairduel-{STRANGER if os.getuid() == 0 else os.getuid()}").mkdir(mode=0o755)
    warned, temporary = import_sealed(sealed)
    assert "will compile again in every process; set NUMBA_CACHE_DIR" in warned
    assert not list(temporary.rglob("*"))
