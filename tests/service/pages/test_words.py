"""The catalogue of what voters read, and how large the pages are."""

import json
import re
from pathlib import Path

import pytest

from fairduel.service import pages
from fairduel.service.study.study import NewStudy, catalogue

STATIC = Path(pages.__file__).parent / "static"
LANGUAGES = sorted(path.stem for path in (STATIC / "words").glob("*.json"))
ENGLISH = catalogue("en")
PLURALS = {"ar": {"zero", "one", "two", "few", "many", "other"}, "zh": {"other"}}


def forms(text):
    return text.values() if isinstance(text, dict) else [text]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text_with_the_same_values(language):
    found = catalogue(language)
    assert list(found) == list(ENGLISH)
    for name, text in found.items():
        wanted = {value for form in forms(ENGLISH[name]) for value in re.findall(r"\{\w+\}", form)}
        used = {value for form in forms(text) for value in re.findall(r"\{\w+\}", form)}
        assert used == wanted, name
        assert isinstance(text, dict) == isinstance(ENGLISH[name], dict), name
        if isinstance(text, dict):
            assert set(text) == PLURALS.get(language, {"one", "other"})


def test_the_page_says_nothing_that_is_not_in_the_catalogue():
    page = (STATIC.parent / "vote.html").read_text(encoding="utf-8")
    scripts = (STATIC / "voter" / "vote.js", STATIC / "board" / "observe.js")
    script = "".join(each.read_text(encoding="utf-8") for each in scripts)
    service = STATIC.parents[1]
    mails = (service / "sign_in.py").read_text(encoding="utf-8")
    used = set(re.findall(r'data-(?:word|label)="(\w+)"', page)) | set(re.findall(r'word\("(\w+)"', script))
    assert used - set(ENGLISH) == set()
    unused = set(ENGLISH) - used - {"left", "right"}
    assert {name for name in unused if f'"{name}"' not in script + mails} == set()
    assert sorted(LANGUAGES) == sorted(
        re.findall(r'"(\w\w)"', (STATIC / "voter" / "words.js").read_text().split("]")[0])
    )


def test_a_study_may_replace_texts_that_exist():
    about = {"question": "?", "items": [{"name": "a"}, {"name": "b"}]}
    assert NewStudy(**about, page={"words": {"equal": "Both"}}).page.words == {"equal": "Both"}
    with pytest.raises(ValueError, match="equals"):
        NewStudy(**about, page={"words": {"equals": "Both"}})


def size(*paths):
    report = Path(pages.__file__).parents[2] / "report" / "templates" / "style.css"
    return sum(path.stat().st_size for path in (report, *(STATIC / each for each in paths)))


def test_the_pages_are_small():
    """Bytes of a first load without pictures, not compressed."""
    shared = ["pages.css", "client.js", "elements.js", "icon.svg"]
    most = max(len(json.dumps(catalogue(name), ensure_ascii=False).encode()) for name in LANGUAGES)
    voter = [path.relative_to(STATIC) for path in (STATIC / "voter").iterdir()]
    assert size(*shared, *voter) + most + (STATIC.parent / "vote.html").stat().st_size < 60_000
    board = [path.relative_to(STATIC) for path in (STATIC / "board").iterdir()]
    assert size(*shared, *board) < 400_000
