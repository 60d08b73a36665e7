"""Markdown, audio, study files and imports in a real Chromium: nothing runs, nothing is fetched from elsewhere."""

import io
import re

import pytest
from PIL import Image

from helpers import sounds
from service.pages.test_browser import (
    assert_accessible,
    open_study,
    press,
    progress,
    ready,
    server,  # noqa: F401
    tab,
    votes,
    wait_for,
)
from service.study.test_content import MALICIOUS


def upload(operator, content):
    reply = operator.post("audio", content=content, headers={"Content-Type": "audio/wav"})
    return reply.raise_for_status().json()["audio"]


def scroll_through(page):
    """Look at both items, as one must before one chooses."""
    for side in ("left", "right"):
        page.locator(f"#{side}-content").evaluate("each => each.scrollIntoView()")
    ready(page)


@pytest.mark.parametrize(("width", "colours"), [(1280, "light"), (390, "dark")])
def test_a_study_with_markdown_and_audio(server, browser, width, colours):  # noqa: F811
    address, operator = server
    text = "# Title\n\n### Part\n\n- **one**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nx = 1\n```\n\n" + "word " * 1000
    items = [
        {"name": f"voice {n}", "audio": upload(operator, sounds.wav(pitch=200.0 + 50 * n)), "text": text}
        for n in range(3)
    ]
    study = {"question": "Which is clearer?", "items": items, "format": "markdown", "show_names": True}
    name = operator.post("studies", json=study).raise_for_status().json()["study"]
    with tab(browser, viewport={"width": width, "height": 844}, color_scheme=colours) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}vote/{name}")
        page.click("#start")
        progress(page, "0 votes")
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        for side in ("left", "right"):
            page.wait_for_function(f"() => document.querySelector('#{side} audio').readyState >= 2")
            assert page.evaluate(f"document.querySelector('#{side} audio').paused")  # it never plays by itself
            assert page.locator(f"#{side} .markdown h3").all_inner_texts() == ["Title", "Part"]
        wait_for(lambda: len({url for url in asked if "/api/audio/" in url}) == 3)  # the next duel's too
        scroll_through(page)
        page.locator("#left audio").focus()
        press(page, "ArrowLeft")  # the player's key
        press(page, "ArrowRight")
        page.locator("#left .markdown p").last.click()  # reading is not voting
        assert votes(operator, name) == 0
        page.evaluate("document.querySelector('#left audio').play()")
        assert page.locator("#left .choose").is_visible()
        ready(page)
        page.click("#left .choose")
        progress(page, "1 vote")
        page.wait_for_function("() => scrollY === 0")
        scroll_through(page)
        page.focus("#question")
        press(page, "ArrowRight")
        progress(page, "2 votes")
    assert votes(operator, name) == 2


def test_malicious_markdown_does_nothing(server, browser):  # noqa: F811
    address, operator = server
    everything = "\n\n".join(MALICIOUS)
    items = [{"name": "all", "text": everything}, {"name": "again", "text": f"> {everything}"}]
    context = {"name": "prompt", "text": everything, "contents": {"all": everything, "again": f"- {everything}"}}
    for settings in ({}, {"contexts": [context]}, {"format": "text"}):
        body = {
            "question": MALICIOUS[0],
            "instructions": MALICIOUS[1],
            "items": items,
            "format": "markdown",
            **settings,
        }
        name = operator.post("studies", json=body).raise_for_status().json()["study"]
        with tab(browser) as page:
            elsewhere, blocked = [], []
            page.on("request", lambda request, to=elsewhere: request.url.startswith(address) or to.append(request.url))
            page.on("console", lambda message, to=blocked: to.append(message.text))
            page.goto(f"{address}vote/{name}")
            page.click("#start")
            progress(page, "0 votes")
            shown = page.inner_text("#left .content")
            assert "window.pwned = 1" in shown
            assert page.evaluate("window.pwned") is None
            kinds = (
                "script, style, iframe, object, img, a, form, input, svg, link, base, meta, audio, [style], [onerror]"
            )
            assert page.locator(f".content :is({kinds})").count() == 0
            assert elsewhere == []
            assert blocked == []  # nothing got so far that the policy had to stop it
            open_study(page, address, operator, name, "settings")
            assert page.evaluate("window.pwned") is None
            assert elsewhere == []


def test_an_operator_makes_studies_from_files_renames_copies_and_imports(server, browser, tmp_path):  # noqa: F811
    address, operator = server
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(buffer, "PNG")
    (tmp_path / "red.png").write_bytes(buffer.getvalue())
    (tmp_path / "low.wav").write_bytes(sounds.wav())
    (tmp_path / "items.csv").write_text("name,image,audio\nred,red.png,\nlow,,low.wav\n")
    (tmp_path / "study.toml").write_text('question = "Which of these?"\nitems = "items.csv"\n')
    (tmp_path / "votes.csv").write_text("first,second,winner,voter\nred,low,first,Ann\nlow,red,tie,Bob\n")
    with tab(browser) as page:
        page.goto(f"{address}?new#{operator.key}")
        page.get_by_role("tab", name="A file").click()
        page.set_input_files("#study-file", [tmp_path / "votes.csv", tmp_path / "items.csv"])
        page.click("text=Make the study")
        page.locator("#items-problem", has_text="Choose one study file").wait_for()
        files = ["study.toml", "items.csv", "red.png", "low.wav"]
        page.set_input_files("#study-file", [tmp_path / name for name in files])
        page.click("text=Make the study")
        page.get_by_role("heading", name="Which of these?").wait_for()
        name = re.search(r"study=([^&]+)", page.url)[1]
        made = operator.get(f"studies/{name}").json()
        assert made["items"][0]["image"]
        assert made["items"][1]["audio"]
        page.get_by_role("link", name="Settings").click()
        page.fill("#set-title", "Sounds and sights")
        page.get_by_role("button", name="Save the settings").click()
        page.get_by_role("heading", name="Sounds and sights").wait_for()
        page.get_by_role("link", name="Data").click()
        page.set_input_files("#import", tmp_path / "votes.csv")
        page.get_by_role("button", name="Import", exact=True).click()
        page.get_by_text("2 of 2 votes are imported now.").wait_for()
        page.set_input_files("#import", tmp_path / "votes.csv")
        page.get_by_role("button", name="Import", exact=True).click()
        page.get_by_text("already in the study").wait_for()
        page.get_by_role("link", name="Voters", exact=True).click()
        page.locator(".voters > li", has_text="Ann (voter 1) (imported)").wait_for()
        page.get_by_role("link", name="Settings").click()
        page.select_option("#clone", "votes")
        page.get_by_role("button", name="Copy", exact=True).click()
        page.get_by_role("heading", name="Copy of Sounds and sights").wait_for()
        copy = re.search(r"study=([^&]+)", page.url)[1]
        assert operator.get(f"studies/{copy}").json()["counts"]["imported"] == 2


def test_prompts_and_answers_become_contexts(server, browser):  # noqa: F811
    address, operator = server
    with tab(browser) as page:
        page.goto(f"{address}?new#{operator.key}")
        page.get_by_role("tab", name="Prompts and answers").click()
        page.fill("#answers", "prompt,A,B\nWhy?,Because.,**So.**\n")
        page.locator(".preview-context", has_text="Why?").wait_for()
        page.select_option("#format", "markdown")
        page.fill("#question", "Which answer?")
        page.click("text=Make the study")
        page.get_by_role("heading", name="Which answer?").wait_for()
        name = re.search(r"study=([^&]+)", page.url)[1]
        assert operator.get(f"studies/{name}").json()["contexts"][0]["contents"] == {"A": "Because.", "B": "**So.**"}
