"""Every Python example in the documents runs, and every link and code name in them leads somewhere."""

import ast
import contextlib
import functools
import importlib
import inspect
import re
from pathlib import Path

import pytest

import fairduel
from helpers.documents import DOCUMENTS, ROOT, blocks, page_name, write_files

PACKAGE = Path(fairduel.__file__).parent
MOST_WORDS = 29_700  # with an example, and when to use it, on each page of an algorithm


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if "```python" in path.read_text()], ids=page_name)
def test_python_examples_run_and_print_what_the_page_says(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_files(path, tmp_path)
    names: dict[str, object] = {}
    for block in blocks(path):
        if block.language == "python":
            capsys.readouterr()
            exec(compile(block.text, str(path), "exec"), names)
        elif block.language == "output":
            assert capsys.readouterr().out == block.text


@pytest.mark.parametrize("path", DOCUMENTS, ids=page_name)
def test_links_within_the_project_lead_somewhere(path):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


PAPER_TO_CODE = (ROOT / "docs" / "benchmarks" / "paper-to-code.md").read_text(encoding="utf-8")
NAMES = sorted(
    {
        name
        for line in PAPER_TO_CODE.splitlines()
        if line.startswith("|")
        for name in re.findall(r"`([A-Za-z_][\w.]*\.\w+)(?:\([^`]*\))?`", line.rstrip("| ").rsplit(" | ", 1)[-1])
    }
)
PARENTS = [
    "fairduel",
    "fairduel.agents",
    "fairduel.core",
    "fairduel.experiments",
    "fairduel.agents.parts",
    *(f"fairduel.agents.{name}" for name in ("parts.agent", "parts.contextual", "rcdb", "rcdbs")),
]


def _member(parent, name):
    if inspect.ismodule(parent):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(f"{parent.__name__}.{name}")  # also where a function has the same name
    declared = getattr(parent, "__dataclass_fields__", {})
    return declared[name] if name in declared else getattr(parent, name)


def _exists(parent, name):
    try:
        functools.reduce(_member, name.split("."), importlib.import_module(parent))
    except AttributeError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_every_code_name_of_the_paper_exists(name):
    assert any(_exists(parent, name) for parent in PARENTS)


def test_code_names_are_found_and_a_wrong_one_is_noticed():
    assert len(NAMES) > 80
    assert not any(_exists(parent, "selection.no_such_rule") for parent in PARENTS)


def _imported(path):
    """The modules and folders directly below the package that a file imports from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairduel."):
            yield node.module.split(".")[1]


def test_imports_point_down_the_table_of_contributing():
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("| folder or file |")[1]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `") and "beside" not in line]
    place = {name: i for i, row in enumerate(rows) for name in re.findall(r"`(\w+)(?:\.py|/)`", row)}
    upward = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in PACKAGE.rglob("*.py")
        if path.parent != PACKAGE or path.stem != "__init__"
        for name in _imported(path)
        if place[path.relative_to(PACKAGE).parts[0].removesuffix(".py")] > place[name]
    ]
    assert upward == []


def test_the_citation_names_this_version():
    assert f"version: {fairduel.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {fairduel.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_documents_are_short():
    """Words with a letter or a digit, code included; the API reference is generated, and recipes are run by tests."""
    readers = [path for path in DOCUMENTS if path.parent.name != "api" and path.name != "CONTRIBUTING.md"]
    pages = [path.read_text(encoding="utf-8") for path in readers]
    assert sum(len(re.findall(r"\S*\w\S*", page)) for page in pages) <= MOST_WORDS


def test_people_are_they():
    sources = [*DOCUMENTS, *PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.html")]
    gendered = re.compile(r"\b(he|him|his|himself|she|her|hers|herself)\b(?!, (Gu|Zhou))(?! 20\d\d)", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sources
        for line in path.read_text(encoding="utf-8").splitlines()
        if gendered.search(re.sub(r"Jiafan He|He, Jiafan", "", line))
    ]
    assert found == []
