"""Every kind of report in a real Chromium: nothing overflows, is clipped, unreadable or missing."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from fairduel import __version__
from fairduel.report import drawing
from fairduel.report.drawing import image
from fairduel.report.research.curves import Point, SweepMeans, draw_means
from fairduel.report.votes.ranking_page import draw_win_matrix
from helpers.reports import REPORTS

SITE = Path(__file__).parents[2] / "site"
CHECKS = Path(__file__).with_name("page_checks.js").read_text(encoding="utf-8")
A4 = 703  # CSS pixels of 186 mm: A4 without its margins
MODES = [(width, colours, "screen") for width in (1280, 390) for colours in ("light", "dark")] + [
    (A4, "light", "print"),
    (A4, "dark", "print"),
]


@pytest.fixture(scope="module")
def tab(browser):
    with browser.new_page() as page:
        yield page


def problems(tab):
    """Return what is wrong with the open page, in every mode."""
    found = []
    for width, colours, media in MODES:
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(media=media, color_scheme=colours)
        found += [f"{width} px, {colours}, {media}: {problem}" for problem in tab.evaluate(CHECKS)]
    text = tab.inner_text("body")
    if not re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", text) or f"fairduel {__version__}" not in text:
        found.append("no date or no version")
    return found


def clipped(tab, svg):
    """Return the labels of a figure that lie outside of it, or are not numbers."""
    tab.emulate_media(media="screen", color_scheme="light")
    tab.set_content(svg[svg.index("<svg") :])
    outside = tab.evaluate(
        """() => {
            const page = document.querySelector("svg").getBoundingClientRect();
            return [...document.querySelectorAll("g[id^=text_]")].filter(text => {
                const box = text.getBoundingClientRect();
                return box.left < page.left || box.right > page.right || box.top < page.top || box.bottom > page.bottom;
            }).map(text => text.id);
        }"""
    )
    return outside + re.findall(r"<!-- .*\bnan\b.*-->", svg)


@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_fits_every_screen_and_page(kind, tab, tmp_path):
    tab.goto(REPORTS[kind](tmp_path).as_uri())
    assert problems(tab) == []
    figures = sorted(tmp_path.glob("*.svg"))
    assert {figure.stem: clipped(tab, figure.read_text()) for figure in figures} == {f.stem: [] for f in figures}
    for figure in figures:
        assert figure.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert figure.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    for table in tmp_path.glob("table-*.csv"):
        assert table.with_suffix(".tex").read_text().count(r"\\") == len(table.read_text().splitlines())


def test_a_figure_of_a_sweep_is_not_clipped(tab):
    names = ["a_rather_long_module_name:WithALongAgentName", "rcdb"]
    points = [Point(panel, name, name, x, 5.0, math.nan, 1) for panel in "ab" for name in names for x in names]
    means = SweepMeans(points, mixed=[], x_label="agent", y_label="final regret (mean ± standard error)")
    assert clipped(tab, image(draw_means(means), "svg").decode()) == []


def test_characters_without_a_font_are_not_clipped(tab, monkeypatch):
    monkeypatch.setattr(drawing, "_glyphs", lambda: frozenset(range(0x2100)))
    names = ["\u4e2d" * 12, "\U0001f9ea\u6587" * 5, "plain"]
    svg = image(draw_win_matrix(names, np.ones((3, 3)) - np.eye(3)), "svg").decode()
    assert f">{names[0]}</text>" in svg
    assert clipped(tab, svg) == []


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return REPORTS["stress"](tmp_path_factory.mktemp("good")).read_text()


@pytest.mark.parametrize(
    ("place", "planted", "words"),
    [
        ("<footer>", "<footer><table><tr><td>" + "<td>wide " * 300 + "</table>", "wider than the page"),
        ("<footer>", '<footer><p style="white-space: nowrap">' + "long " * 400 + "</p>", "wider than the page"),
        ("<footer>", '<footer><pre style="width: 3em; overflow: hidden">Uncompromising</pre>', "clipped"),
        ("<figure>", '<figure style="margin-left: -40px">', "outside the page"),
        ("<footer>", "<footer><p>0.5 ± nan</p>", "nan"),
        ("<footer>", '<footer><p style="color: #333">Dark on dark</p>', "contrast"),
        ('class="conclusion"', "", "no conclusion"),
        (" UTC", "", "no date"),
        ("data:image/svg+xml;base64,", "data:image/svg+xml;base64,AAAA", "broken"),
    ],
)
def test_the_checks_find_what_is_planted(good, place, planted, words, tab):
    tab.set_content(good)
    assert problems(tab) == []
    assert place in good
    tab.set_content(good.replace(place, planted))
    assert any(words in problem for problem in problems(tab))


def test_a_clipped_label_is_found(tab, tmp_path):
    REPORTS["stress"](tmp_path)
    svg = (tmp_path / "stress.svg").read_text()
    assert clipped(tab, svg) == []
    assert clipped(tab, re.sub(r'viewBox="0 0', 'viewBox="40 0', svg, count=1))


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_of_the_documentation_scrolls_sideways(width, tab):
    pages = sorted(SITE.rglob("*.html"))
    if not pages:
        pytest.skip("the documentation is not built: make docs")
    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(media="screen", color_scheme="light")
    too_wide = []
    for page in pages:
        tab.goto(page.as_uri())
        if tab.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            too_wide.append(str(page.relative_to(SITE)))
    assert too_wide == []
