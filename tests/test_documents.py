"""Every Python example in the documents runs, and every link inside the project leads somewhere."""

import re
from pathlib import Path

import pytest

import fairduel

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
def test_python_examples_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(block, str(path), "exec"), names)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_within_the_project_lead_somewhere(path):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_the_citation_names_this_version():
    assert f"version: {fairduel.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {fairduel.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
