"""The fingerprint of a run's code: any edit of code changes it, and no edit of comments and docstrings."""

import ast
import shutil
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import fairduel
from fairduel import BadInputError
from fairduel.simulation import Cell
from fairduel.simulation.fingerprint import _own_closure, _read_source, code_digest

PACKAGE = Path(fairduel.__file__).parent


@pytest.fixture
def package(tmp_path):
    """A copy of fairduel's source, to be edited."""
    folder = tmp_path / "fairduel"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def digest(package):
    _own_closure.cache_clear()  # a process reads fairduel's own source once
    return code_digest(package=package)


def edited(path, before, after):
    source = path.read_text(encoding="utf-8")
    assert source.count(before) == 1, before
    path.write_text(source.replace(before, after), encoding="utf-8")


def functions(path):
    """The first line of the body of each function in a file, and how far it is indented."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            has_docstring = ast.get_docstring(node, clean=False) is not None and len(node.body) > 1
            statement = node.body[1] if has_docstring else node.body[0]
            first = min([statement, *getattr(statement, "decorator_list", [])], key=lambda each: each.lineno)
            if first.lineno > node.lineno:  # not all on one line
                yield node.name, first.lineno, statement.col_offset


def paths_of_a_run(package):
    for name in sorted(_own_closure(package)[0]):
        place = package.joinpath(*name.split(".")[1:])
        yield place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


# ---------------------------------------------------------------------- fairduel's own code


def test_an_edit_of_any_function_changes_it(package):
    unedited = digest(package)
    assert unedited == code_digest()
    count = 0
    for path in paths_of_a_run(package):
        source = path.read_text(encoding="utf-8")
        lines, own = source.splitlines(keepends=True), _read_source(source.encode()).digest
        for name, line, indent in functions(path):
            changed = "".join([*lines[: line - 1], " " * indent + "_edited = 1\n", *lines[line - 1 :]])
            assert _read_source(changed.encode()).digest != own, (path, name)
            count += 1
        path.write_text(source + "_edited = 1\n", encoding="utf-8")
        assert digest(package) != unedited, path  # because the file's own changes
        path.write_text(source, encoding="utf-8")
    assert count > 400
    assert digest(package) == unedited


def test_an_edit_of_comments_and_docstrings_does_not(package):
    unedited = digest(package)
    for path in paths_of_a_run(package):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        lines = source.splitlines(keepends=True)
        docstrings = [
            node.lineno - 1
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ]
        for line in docstrings:
            lines[line] = lines[line].replace('"""', '"""Another word. ', 1)
        path.write_text(
            "# Another comment.\n\n" + "".join(lines) + "\n# And one more.\n'A new one.'\n", encoding="utf-8"
        )
        assert path.read_text(encoding="utf-8").count("Another word.") == len(docstrings) > 0
    assert digest(package) == unedited


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("votes/ranking/bradley_terry.py", "TINY_RIDGE = ", "TINY_RIDGE = 1000 * "),
        ("simulation/cell.py", "(_BUDGETS, self.budget)", "(_BUDGETS, 2 * self.budget)"),
    ],
)
def test_an_edit_that_once_went_unseen_changes_it(package, file, before, after):
    unedited = digest(package)
    edited(package / file, before, after)
    assert digest(package) != unedited


def test_all_code_that_runs_execute_is_covered(tmp_path):
    """Every function that is called in the course of runs, compiled or not, is in a module of the fingerprint."""
    (tmp_path / "votes.csv").write_text("item_a,item_b,winner\n" + "x,y,a\nx,z,a\ny,z,b\nx,y,b\n" * 3)
    (tmp_path / "features.csv").write_text("item,f1,f2\nx,1,0\ny,0,1\nz,0.5,0.5\n")
    cells = [
        Cell("rcdb", "misleading", 3, 30),
        Cell("colstim", "hiding", 3, 30, world="fresh"),
        Cell("rcdb-s", "greedy", 3, 30, agent_settings={"constrained": True}),
        Cell("maxinp", "adversarial", 3, 30, world="replay", world_settings={"path": str(tmp_path)}),
        Cell("vacdb", "random", 3, 30, world="hard-corrupted"),
        Cell("fgts", "none", 0, 30),
        Cell("wiwr", "greedy", 3, 30, world="preferences"),
        Cell("cobe", "swap", 3, 30, world="linear"),
        Cell("barbar", "bury", 3, 30, world="arms"),
    ]
    files = set()

    def note(frame, event, _):
        if event == "call":
            files.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        for cell in cells:
            cell.run(0).record()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    called = {Path(file) for file in files if Path(file).is_relative_to(PACKAGE)}
    assert len(called) > 25
    assert called <= set(paths_of_a_run(PACKAGE))


def test_code_that_no_run_executes_is_not_covered():
    covered = sorted(_own_closure(PACKAGE)[0])
    for part in (
        "testing",
        "cli",
        "report",
        "experiments",
        "simulation.parallel",
        "simulation.storage",
        "votes.voters",
    ):
        assert not [name for name in covered if f"{name}.".startswith(f"fairduel.{part}.")], part


# ---------------------------------------------------------------------- a user's own code

AGENT = """
from {helper} import favourite

class Pairs:
    def __init__(self, dimension):
        pass

    def ask(self, actions):
        from {late} import other
        return favourite(), other()

    def tell(self, pair, outcome):
        pass
"""


@pytest.fixture
def users(tmp_path, monkeypatch):
    """Write modules of a user's own; their names are new, because Python loads a module once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    mark = f"of_{tmp_path.name}"

    def write(name, text):
        path = tmp_path / f"{name.replace('MARK', mark)}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text.replace("MARK", mark)))
        return path

    write.name = lambda name: name.replace("MARK", mark)
    return write


def test_it_follows_the_imports_of_a_users_agent(users):
    agent = users("agent_MARK", AGENT.format(helper="helper_MARK", late="late_MARK"))
    helper = users("helper_MARK", "from deep_MARK import ONE\n\ndef favourite():\n    return ONE\n")
    late = users("late_MARK", "def other():\n    return 2\n")
    deep = users("deep_MARK", "import math\nONE = 1\n")
    unrelated = users("unrelated_MARK", "")
    cell = {"agent": f"{agent.stem}:Pairs", "attack": "greedy", "budget": 2, "horizon": 5}
    before = Cell(**cell).key
    for path in (agent, helper, late, deep):
        source = path.read_text()
        path.write_text(source + "\n# another thought\n")
        assert Cell(**cell).key == before
        path.write_text(source + "\nANOTHER = 1\n")
        assert Cell(**cell).key != before
        path.write_text(source)
        assert Cell(**cell).key == before
    unrelated.write_text("ANOTHER = 1")
    assert Cell(**cell).key == before


def test_it_follows_relative_imports_and_packages(users):
    init = users("pack_MARK/__init__", "from . import settings\n")
    settings = users("pack_MARK/settings", "ONE = 1\n")
    agents = users("pack_MARK/agents", "from .tools import deeper\nfrom . import late\nfrom .settings import ONE\n")
    late = users("pack_MARK/late", "")
    users("pack_MARK/tools/__init__", "")
    deeper = users("pack_MARK/tools/deeper", "from ..far import TWO\n")
    far = users("pack_MARK/far", "TWO = 2\n")
    name = users.name("pack_MARK.agents")
    before = code_digest([name])
    for path in (init, settings, agents, late, deeper, far):
        source = path.read_text()
        path.write_text(source + "\nANOTHER = 1\n")
        assert code_digest([name]) != before, path
        path.write_text(source)
    assert code_digest([name]) == before


def test_an_installed_package_counts_by_source_if_it_is_the_users_and_by_version_if_not(tmp_path, monkeypatch):
    site = tmp_path / "site-packages"
    name = f"library_of_{tmp_path.name}"
    for package, text in ((f"users_{name}", f"import {name}\nfrom users_{name} import part\n"), (name, "")):
        (site / package).mkdir(parents=True)
        (site / package / "__init__.py").write_text(text)
        (site / package / "part.py").write_text("")
    metadata = site / f"{name}-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(site))
    before = code_digest([f"users_{name}"])
    (site / name / "part.py").write_text("ANOTHER = 1")
    assert code_digest([f"users_{name}"]) == before
    (site / f"users_{name}" / "part.py").write_text("ANOTHER = 1")
    assert code_digest([f"users_{name}"]) != before


def test_an_agent_held_by_another_counts(users):
    base = users("base_MARK", "class Base:\n    pass\n")
    cell = {"agent": "cobe", "attack": "swap", "budget": 2, "horizon": 5, "world": "linear"}
    cell["agent_settings"] = {"base": f"{base.stem}:Base"}
    before = Cell(**cell).key
    base.write_text("class Base:\n    ANOTHER = 1\n")
    assert Cell(**cell).key != before


def test_code_without_a_source_file_is_refused(users):
    module = type(sys)(users.name("made_MARK"))
    module.Agent = type("Agent", (), {})
    sys.modules[module.__name__] = module
    try:
        with pytest.raises(BadInputError, match=r"no source file.*\.py"):
            _ = Cell(f"{module.__name__}:Agent", "greedy", 2, 5).key
    finally:
        del sys.modules[module.__name__]
