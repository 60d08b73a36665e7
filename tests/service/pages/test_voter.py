"""The voters' page in a real Chromium: its beginning, the reader's language, long texts, and how a choice looks."""

import json
import re

import pytest

from fairduel.service.notices import MailServer
from fairduel.service.sign_in import Provider, SignIn
from fairduel.service.study.study import catalogue
from helpers.accounts import CREDENTIALS, account_provider, mail_server
from service.pages.test_browser import (
    assert_accessible,
    press,
    progress,
    ready,
    serve,
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


@pytest.mark.parametrize(("language", "direction"), [("ar", "rtl"), ("fr", "ltr")])
def test_voters_see_the_results_in_their_language(server, browser, language, direction):  # noqa: F811
    address, operator = server
    name = study(operator, votes_per_voter=1, page={"show_results": True, "words": {"chance": "C"}}, title="١٢٣")
    words = catalogue(language)
    cast = ["left,right,winner,voter"] + [
        f"tea,{other},tea,v{n}" for n in range(4) for other in ("milk", "juice", "water")
    ]
    kind = {"Content-Type": "application/octet-stream"}
    operator.post(f"studies/{name}/import?name=votes.csv", content="\n".join(cast), headers=kind).raise_for_status()
    with tab(browser, locale=language, viewport={"width": 390, "height": 844}) as page:
        page.goto(f"{address}vote/{name}")
        page.locator("#start").click()
        press(page, "ArrowLeft")
        page.get_by_role("link", name=words["results"]).click()
        page.locator(".brief > li").first.wait_for(timeout=120_000)
        assert page.locator("html").get_attribute("dir") == direction
        assert page.locator("html").get_attribute("lang") == language
        results = operator.get(f"studies/{name}/results").json()
        found, (verdict,) = results["ranking"], results["verdicts"]
        texts = {"too early": "too_early", "won": "won", "leads": "leads", "tie": "tie"}
        headline = words[texts[verdict["state"]]].replace("{item}", verdict["leader"] or "")
        assert page.locator(".headline").inner_text().startswith(headline)
        assert page.locator(".brief .name").all_inner_texts() == [each["item"] for each in found]
        assert page.locator(".brief .name").first.bounding_box()["height"] < 40  # on one line, also on a phone
        bars = page.locator(".brief progress").evaluate_all("(all) => all.map((each) => each.value)")
        assert bars == pytest.approx([each["best"] for each in found], abs=1e-6)
        assert page.locator(".brief progress").first.get_attribute("aria-label") == "C"  # the study's own word
        said = page.inner_text("body")
        for text in [each["item"] for each in found]:
            said = said.replace(text, "")
        assert re.findall("score|rank|best|early", said) == []  # nothing is left in English
        assert_accessible(page)


@pytest.fixture(scope="module")
def signing(tmp_path_factory):
    """A server where voters sign in; the address, an operator's client, the provider, and what was mailed."""
    with (
        account_provider() as provider,
        mail_server() as (smtp, box),
        serve(tmp_path_factory.mktemp("signing")) as (address, operator, service),
    ):
        issuer = provider.url.replace("http://", f"http://{CREDENTIALS}@")
        service.offer(SignIn(address, Provider(issuer), MailServer(smtp)))
        yield address, operator, provider, box


def test_a_voter_signs_in_with_an_account(signing, browser):
    address, operator, provider, _ = signing
    name = study(operator, access="openid", page={"consent": "I agree."})
    for width, scheme in ((390, "light"), (1280, "dark")):  # two devices of one person
        with tab(browser, viewport={"width": width, "height": 844}, color_scheme=scheme) as page:
            page.goto(f"{address}vote/{name}")
            start = page.get_by_role("button", name="Sign in to vote")
            start.wait_for()
            assert start.is_disabled()
            page.locator("#account").wait_for()
            assert "not your name or address" in page.inner_text("#account")
            assert_accessible(page)
            page.get_by_label("I agree.").check()
            start.click()
            press(page, "ArrowLeft")
            ready(page)
            assert page.url == f"{address}vote/{name}"  # the key is not in the address any more
            page.reload()
            ready(page)
    wait_for(lambda: votes(operator, name) == 2)
    assert len(operator.get(f"studies/{name}/voters").json()["voters"]) == 1
    provider.forge = lambda *_: "no.such.token"
    with tab(browser, locale="de") as page:
        page.goto(f"{address}vote/{name}")
        page.get_by_label("I agree.").check()
        page.get_by_role("button", name="Zum Abstimmen anmelden").click()
        page.get_by_text("Sie sind nicht angemeldet.").wait_for()
        page.get_by_role("button", name="Zum Abstimmen anmelden").wait_for()
        assert_accessible(page)


def test_a_voter_gets_a_link_by_mail(signing, browser):
    address, operator, _, box = signing
    name = study(operator, access="email", keep_email=True)
    with tab(browser, locale="ar") as page:
        page.goto(f"{address}vote/{name}")
        words = catalogue("ar")
        page.locator("#account").wait_for()
        assert page.inner_text("#account") == words["stored_email"]
        page.get_by_label(words["email"]).fill("ann")
        page.keyboard.press("Enter")  # the browser says that this is no address
        assert page.locator("#email:invalid").count() == 1
        page.get_by_label(words["email"]).fill("ann@example.org")
        page.keyboard.press("Enter")
        page.get_by_text(words["link_sent"].replace("{email}", "ann@example.org").replace("{minutes}", "15")).wait_for()
        assert_accessible(page)
        (link,) = wait_for(box.links)
        page.goto(link)
        ready(page)
    with tab(browser) as page:
        page.goto(link)
        page.get_by_text("This link was used, or is too old").wait_for()
        page.get_by_role("button", name="Send me a link").wait_for()
    (voter,) = operator.get(f"studies/{name}/voters").json()["voters"]
    assert voter["name"] == "ann@example.org"
