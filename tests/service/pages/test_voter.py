"""The voters' page in a real Chromium: its beginning, the reader's language, long texts, and how a choice looks."""

import json

import pytest

from fairduel.service.study.study import catalogue
from service.pages.test_browser import (
    assert_accessible,
    press,
    progress,
    ready,
    server,  # noqa: F401
    study,
    tab,
    votes,
    wait_for,
)


def test_the_start_page_says_who_asks_and_waits_for_consent(server, browser):  # noqa: F811
    address, operator = server
    words = {"host": "The harbour", "consent": "I am an adult.", "privacy": "Nothing is kept.", "colour": "#0a7a55"}
    name = study(operator, instructions="Look first.\nThen choose.", votes_per_voter=20, page=words)
    with tab(browser) as page:
        page.goto(f"{address}vote/{name}")
        start = page.get_by_role("button", name="Start")
        assert start.is_disabled()
        shown = page.inner_text(".stage")
        for text in (
            "The harbour asks",
            "Which is better?",
            "Look first.\nThen choose.",
            "20 choices",
            "about 2 minutes",
        ):
            assert text in shown
        box = page.locator("#welcome").bounding_box()
        height = page.evaluate("innerHeight")
        assert 0.25 * height < box["y"] + box["height"] / 2 < 0.75 * height  # in the middle
        assert start.evaluate("(each) => getComputedStyle(each).backgroundColor") == "rgb(10, 122, 85)"
        page.get_by_text("Privacy").click()
        page.get_by_text("Nothing is kept.").wait_for()
        page.get_by_label("I am an adult.").check()
        start.click()
        progress(page, "0 of 20")
        page.reload()  # whoever has begun goes on
        progress(page, "0 of 20")
        assert page.locator("#welcome").is_hidden()


@pytest.mark.parametrize(
    ("reader", "wanted", "language", "direction"),
    [
        ("de-AT", "auto", "de", "ltr"),
        ("fr", "auto", "fr", "ltr"),
        ("es-MX", "auto", "es", "ltr"),
        ("zh-CN", "auto", "zh", "ltr"),
        ("ar", "auto", "ar", "rtl"),
        ("sv", "auto", "en", "ltr"),
        ("de", "ar", "ar", "rtl"),  # the study's language comes first
    ],
)
def test_people_read_their_language(server, browser, reader, wanted, language, direction):  # noqa: F811
    address, operator = server
    own = {"equal": "½"}
    name = study(operator, votes_per_voter=2, page={"language": wanted, "words": own})
    words = catalogue(language)
    with tab(browser, locale=reader, viewport={"width": 390, "height": 844}) as page:
        page.goto(f"{address}vote/{name}")
        page.get_by_role("button", name=words["start"], exact=True).click()
        progress(page, words["progress"].format(votes=0, of=2))
        said = page.evaluate("() => [document.documentElement.lang, document.documentElement.dir]")
        assert said == [language, direction]
        assert page.locator("#tie").inner_text() == "½"  # the study's own word
        assert page.locator("#skip").inner_text() == words["skip"]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert_accessible(page)
        left = page.inner_text("#left .lines")
        press(page, "ArrowLeft")  # the left item stands on the left, also where people read from the right
        progress(page, words["progress"].format(votes=1, of=2))
        press(page, "ArrowDown")
        page.get_by_text(words["thanks"]).wait_for()
    first, second = map(json.loads, operator.get(f"studies/{name}/exports/votes.jsonl").text.splitlines())
    assert (first[first["winner"]], second["winner"]) == (left, "tie")


def test_nobody_chooses_on_a_phone_before_both_long_texts_were_in_view(server, browser):  # noqa: F811
    address, operator = server
    items = [{"name": f"{number}", "text": f"{number} " + "word " * 600} for number in range(3)]
    name = study(operator, items=items, show_names=False)
    with tab(browser, viewport={"width": 390, "height": 844}) as page:
        page.goto(f"{address}vote/{name}")
        page.click("#start")
        page.get_by_text("Look at both before you choose.").wait_for()
        button = page.locator("#left .choose")
        assert button.get_attribute("aria-disabled") == "true"
        page.wait_for_timeout(400)
        button.click(force=True)
        page.keyboard.press("ArrowRight")
        assert votes(operator, name) == 0
        page.locator("#right-content").evaluate("(each) => each.scrollIntoView()")
        ready(page)
        page.locator("#right .choose").click()
        wait_for(lambda: votes(operator, name) == 1)
        page.wait_for_function("() => scrollY === 0")


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_choice_is_seen_and_moves_only_if_people_like_that(server, browser, motion):  # noqa: F811
    address, operator = server
    name = study(operator)
    with tab(browser, reduced_motion=motion) as page:
        page.goto(f"{address}vote/{name}")
        page.click("#start")
        ready(page)
        page.evaluate(  # it is shown for a quarter of a second
            """() => new MutationObserver(() => {
                if (document.querySelector("#left.chosen"))
                    document.body.dataset.seen = [
                        getComputedStyle(document.querySelector("#left")).transitionDuration !== "0s",
                        document.querySelectorAll("#right.passed").length,
                    ].join(" ");
            }).observe(document.querySelector(".sides"), { attributes: true, subtree: true })"""
        )
        page.locator("#left .choose").click()
        page.locator(f"body[data-seen='{'true' if motion == 'no-preference' else 'false'} 1']").wait_for(timeout=5000)
        ready(page)
        assert page.locator(".chosen, .passed").count() == 0
        # the card is the button, Equal stands between the cards, Skip is a link below them
        card, button = page.locator("#left").bounding_box(), page.locator("#left .choose").bounding_box()
        assert button["width"] * button["height"] >= 0.98 * card["width"] * card["height"]
        tie, right = page.locator("#tie").bounding_box(), page.locator("#right").bounding_box()
        assert card["x"] + card["width"] <= tie["x"] < tie["x"] + tie["width"] <= right["x"]
        assert page.locator("#skip").evaluate("(each) => getComputedStyle(each).textDecorationLine") == "underline"


def test_the_keys_are_those_that_the_study_allows(server, browser):  # noqa: F811
    address, operator = server
    for ties, said in ((True, "Choose with ← and →; ↓ means equal."), (False, "Choose with ← and →.")):
        name = study(operator, ties=ties)
        with tab(browser) as page:
            page.goto(f"{address}vote/{name}")
            page.click("#start")
            ready(page)
            assert page.locator(".keys:visible").all_inner_texts() == [said]
            assert page.locator("#tie").is_visible() == ties
