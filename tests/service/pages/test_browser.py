"""A whole study in a real Chromium: polls from pictures, votes by keyboard, bad networks, and what operators see."""

import io
import re
from contextlib import closing, contextmanager

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

from fairduel.service.api.app import create_app
from fairduel.service.commands import team
from fairduel.service.local import serving
from fairduel.service.service import Service
from helpers.waiting import wait_for

SIZES = [(1280, "light"), (390, "light"), (1280, "dark"), (390, "dark")]


@contextmanager
def serve(folder):
    """Run a server; yields its address, an operator's client, and the service."""
    with closing(Service(folder / "store")) as service:
        key = service.ledger.run(team.ensure_operator)
        with serving(create_app(service)) as url, httpx.Client(base_url=f"{url}/api/") as operator:
            operator.headers["Authorization"], operator.key = f"Bearer {key}", key
            yield f"{url}/", operator, service


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a server, and an operator's client."""
    with serve(tmp_path_factory.mktemp("service")) as (address, operator, _):
        yield address, operator


def study(operator, **settings):
    body = {"question": "Which is better?", "items": [{"name": name} for name in ("tea", "milk", "juice", "water")]}
    made = operator.post("studies", json={**body, "show_names": True, **settings})
    made.raise_for_status()
    return made.json()["study"]


def votes(operator, name):
    counts = operator.get(f"studies/{name}").raise_for_status().json()["counts"]
    return counts["votes"]


@contextmanager
def tab(browser, **settings):
    with browser.new_context(**settings) as context:
        page = context.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        assert errors == []


def ready(page):
    """Wait until the duel on screen can be answered."""
    page.locator("#duel[data-ready]").wait_for()


def press(page, key):
    """Press a key once the duel can be answered."""
    ready(page)
    page.keyboard.press(key)


def progress(page, text):
    page.wait_for_function("(text) => document.getElementById('progress').textContent === text", arg=text)


def assert_accessible(page):
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []


def open_study(page, address, operator, name, tab_name="overview"):
    """Open a tab of a study as its operator."""
    page.goto(f"{address}?study={name}&tab={tab_name}#{operator.key}")
    page.locator(f".tabs [aria-current='page'][href$='{tab_name}']").wait_for()


def open_voter(page, name):
    """Unfold a voter in the list, and return their entry."""
    entry = page.locator(".voters > li", has_text=name)
    entry.wait_for()
    if entry.locator("details[open]").count() == 0:
        entry.locator("summary").click()
    return entry


def set_aside(page, name, label):
    """Set a voter aside after seeing what that would do; it is shown afterwards too."""
    open_voter(page, name).get_by_role("button", name="Set aside").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(f"Without {label}").wait_for(timeout=60_000)
    assert_accessible(page)
    dialog.get_by_role("button", name="Set aside").click()
    page.get_by_text(f"{name} ({label}) is set aside.").wait_for()
    page.get_by_role("button", name="Count again").wait_for()
    page.locator(".aftermath").get_by_text(f"Without {label}").wait_for()


def erase(page, name, label):
    """Erase what is personal about a voter."""
    open_voter(page, name).get_by_role("button", name=f"Erase personal data of {name} ({label})").click()
    assert_accessible(page)
    page.get_by_role("dialog").get_by_role("button", name="Erase personal data").click()
    page.get_by_text("Their personal data are erased").wait_for()
    page.locator(".voters > li", has_text=label).wait_for()
    page.locator(".voters > li", has_text=name).wait_for(state="detached")


def test_a_voter_votes_by_keyboard_with_ties_skips_and_undo(server, browser):
    address, operator = server
    name = study(operator, votes_per_voter=4, completion_code="C0FFEE", comments=True)
    with tab(browser) as page:
        page.goto(f"{address}vote/{name}")
        page.click("#start")
        progress(page, "0 of 4")
        assert {page.inner_text("#left .lines"), page.inner_text("#right .lines")} <= {"tea", "milk", "juice", "water"}
        for count, key in enumerate(("ArrowLeft", "ArrowRight", "ArrowDown"), start=1):
            press(page, key)
            progress(page, f"{count} of 4")
        press(page, "s")
        assert votes(operator, name) == 3
        ready(page)
        before = {page.inner_text("#left .lines"), page.inner_text("#right .lines")}
        press(page, "ArrowLeft")
        page.get_by_text("C0FFEE").wait_for()
        page.get_by_text("Thank you.").wait_for()
        page.click("#undo-last")
        progress(page, "3 of 4")
        assert {page.inner_text("#left .lines"), page.inner_text("#right .lines")} == before
        page.fill("#comment", "I changed my mind")
        page.focus("#question")
        press(page, "ArrowRight")
        page.get_by_text("C0FFEE").wait_for()
        receipt = page.text_content("#receipt code")
        assert operator.get(f"receipts/{receipt}").json()["valid"] is True
    assert votes(operator, name) == 4
    assert "I changed my mind" in operator.get(f"studies/{name}/exports/comments.csv").text


def test_a_double_click_is_one_vote_and_a_reload_shows_the_same_duel(server, browser):
    address, operator = server
    name = study(operator)
    with tab(browser) as page:
        page.goto(f"{address}vote/{name}")
        page.click("#start")
        progress(page, "0 votes")
        ready(page)
        page.dblclick("#left")
        progress(page, "1 vote")
        ready(page)
        shown = page.inner_text(".sides")
        page.reload()
        progress(page, "1 vote")
        assert page.inner_text(".sides") == shown
        with page.context.new_page() as second:
            second.goto(page.url)
            progress(second, "1 vote")
            assert second.inner_text(".sides") == shown
            press(second, "ArrowLeft")
            progress(second, "2 votes")
        press(page, "ArrowRight")
        page.get_by_text("already answered").wait_for()
    assert votes(operator, name) == 2


def test_votes_cast_offline_are_sent_once_later(server, browser):
    address, operator = server
    name = study(operator)
    with tab(browser) as page:
        page.goto(f"{address}vote/{name}")
        page.click("#start")
        progress(page, "0 votes")
        page.context.set_offline(True)
        press(page, "ArrowLeft")
        page.get_by_text("You are offline").wait_for()
        assert votes(operator, name) == 0
        page.context.set_offline(False)
        progress(page, "1 vote")
        lost = []
        page.route(
            "**/answer", lambda route: (lost.append(route.fetch()), route.abort()) if not lost else route.continue_()
        )
        press(page, "ArrowRight")  # the server gets it, but its reply is lost
        progress(page, "2 votes")
        assert len(lost) == 1
    assert votes(operator, name) == 2


def assert_read_only(browser, link):
    """Open an observer's link: it shows the results, and nothing can be changed."""
    with tab(browser) as observer:
        observer.goto(link)
        observer.get_by_role("heading", name="Ranking", exact=True).wait_for()
        assert observer.get_by_role("button").count() == 0
        assert_accessible(observer)


def written(folder):
    """Write three pictures."""
    for colour in ("red", "green", "blue"):
        content = io.BytesIO()
        Image.new("RGB", (64, 48), colour).save(content, "PNG")
        (folder / f"{colour}.png").write_bytes(content.getvalue())
    return sorted(folder.glob("*.png"))


def make_by_pictures(page, address, operator, folder):
    """Make a study with pictures on the page, and invite three people; return its name and their links."""
    page.goto(f"{address}#{operator.key}")
    page.get_by_role("heading", name="Studies", exact=True).wait_for()
    assert operator.key not in page.url
    page.goto(f"{address}?new")
    page.get_by_role("heading", name="New study").wait_for()
    page.fill("#question", "Which colour?")
    page.get_by_role("tab", name="Pictures or sounds").click()
    page.set_input_files("#pictures", written(folder))
    page.locator(".preview-sides img").nth(1).wait_for()
    page.get_by_text("Trust", exact=True).click()
    page.select_option("#new-access", "invitation")
    page.click("text=Make the study")
    page.get_by_role("heading", name="Which colour?").wait_for()
    page.get_by_role("button", name="Share").click()
    page.fill("#names", "Ann\nBob\nEve")
    page.click("text=Make invitations")
    page.get_by_role("heading", name="Invitations").wait_for()
    links = page.locator(".made li .link").all_inner_texts()
    assert_accessible(page)
    page.get_by_role("button", name="Close").click()
    return re.search(r"study=([^&]+)", page.url)[1], links


def test_an_operator_polls_with_pictures_invites_and_sees_what_the_api_says(server, browser, tmp_path):
    address, operator = server
    with tab(browser) as page:
        name, links = make_by_pictures(page, address, operator, tmp_path)
        assert len(links) == 3
        with tab(browser) as stranger:
            stranger.goto(f"{address}vote/{name}")
            stranger.get_by_text("personal link").wait_for()
        for link in links[:2]:
            with tab(browser) as voter:
                voter.goto(link)
                voter.get_by_role("button", name="Start").click()
                progress(voter, "0 votes")
                voter.wait_for_function("() => document.querySelector('#left img').naturalWidth === 64")
                for count in range(1, 4):
                    press(voter, "ArrowLeft")
                    progress(voter, "1 vote" if count == 1 else f"{count} votes")
        overview = page.locator(".panels")

        def page_and_api_agree():
            found = operator.get(f"studies/{name}/results").json()
            shown = overview.locator(".ranking .name").all_inner_texts(), page.locator(".tiles dd").first.inner_text()
            expected = [each["item"] for each in found["ranking"]], str(found["counts"]["votes"])
            said = [text for each in found["verdicts"] for text in (each["headline"], *each["details"])]
            card = page.locator(".answer").text_content() if said else ""
            return said and not found["stale"] and shown == expected and all(text in card for text in said)

        wait_for(page_and_api_agree, 15.0)
        assert overview.locator(".ranking img").count() == 3
        page.get_by_role("link", name="Voters", exact=True).click()
        for change in (set_aside, erase):
            change(page, "Ann", "voter 1")
        page.get_by_role("button", name="Share").click()
        page.get_by_text("Results for others").click()
        page.get_by_role("button", name="Link for observers").click()
        page.get_by_role("heading", name="Link for observers").wait_for()
        assert_read_only(browser, page.locator(".made .link").last.inner_text())
        page.keyboard.press("Escape")
        page.get_by_label("More", exact=True).click()
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("Voting is paused.").wait_for()
        page.locator("h1 .chip.paused").wait_for()
    for link, said in ((links[2], "Voting is paused"), (links[0], "This invitation was already used")):
        with tab(browser) as voter:
            voter.goto(link)
            voter.get_by_text(said).wait_for()


def test_a_browser_works_before_it_joins_and_goes_on_after_a_pause(server, browser):
    """A challenge is solved in a worker, as the strict content policy allows; one that is too old is replaced."""
    address, operator = server
    name = study(operator, proof_of_work=12)
    with tab(browser) as page:
        replies = []
        page.on("response", lambda reply: reply.url.endswith("/voters") and replies.append(reply.status))
        page.clock.install()
        page.goto(f"{address}vote/{name}")
        page.locator("#start").wait_for()
        operator.patch(f"studies/{name}", json={"proof_of_work": 10}).raise_for_status()
        page.click("#start")
        progress(page, "0 votes")
        assert replies == [409, 201]
        page.clock.resume()
        press(page, "ArrowLeft")
        progress(page, "1 vote")
        operator.patch(f"studies/{name}", json={"state": "paused"}).raise_for_status()
        press(page, "ArrowLeft")
        page.get_by_text("Voting is paused.").wait_for()
        assert page.locator("#duel").is_hidden()
        operator.patch(f"studies/{name}", json={"state": "open"}).raise_for_status()
        page.clock.fast_forward(20_000)
        progress(page, "2 votes")  # the vote that was cast meanwhile counts
        press(page, "ArrowLeft")
        progress(page, "3 votes")


def test_signed_links_are_made_on_the_page_and_joins_are_shown(server, browser):
    address, operator = server
    signed, name = study(operator, access="participant"), study(operator)
    with tab(browser) as page:
        open_study(page, address, operator, signed)
        page.get_by_role("button", name="Share").click()
        page.fill("#names", "p-1\np-2")
        page.click("text=Sign links")
        page.get_by_role("heading", name="Signed links").wait_for()
        link = page.locator(".made li .link").first.inner_text()
        with tab(browser) as voter:
            voter.goto(link)
            voter.click("#start")
            progress(voter, "0 votes")
        with tab(browser) as voter:
            voter.goto(link.replace("p-1", "p-2"))
            voter.click("#start")
            voter.get_by_text("This link is not signed").wait_for()
        for _ in range(2):
            operator.post(f"studies/{name}/voters", json={}, headers={"Authorization": ""}).raise_for_status()
        open_study(page, address, operator, name, "voters")
        page.get_by_role("heading", name="Voters from one address").wait_for()
        page.get_by_text("One person can vote many times").first.wait_for()


def cast(address, name, voters, each, prefers):
    """Let people vote, who prefer the item that ``prefers`` ranks higher."""
    for number in range(voters):
        with httpx.Client(base_url=f"{address}api/studies/{name}/") as voter:
            voter.post("voters", json={}).raise_for_status()
            for vote in range(each):
                duel = voter.post("duels", json={}).json()["duels"][0]
                given = "left" if prefers(duel["left"]["text"]) > prefers(duel["right"]["text"]) else "right"
                headers = {"Idempotency-Key": f"{number}-{vote}"}
                voter.post(f"duels/{duel['duel']}/answer", json={"answer": given}, headers=headers).raise_for_status()


def test_an_operator_runs_a_red_team_and_changes_a_limit_by_keyboard(server, browser):
    address, operator = server
    name = study(operator, repeat_pairs=True, undo_seconds=0)
    cast(address, name, 4, 10, str)
    before = operator.get(f"studies/{name}/results").json()["counts"]
    with tab(browser) as page:
        open_study(page, address, operator, name, "lab")
        form = page.locator("section", has=page.get_by_role("heading", name="Red team"))
        form.get_by_label("Liars", exact=True).fill("3")
        form.get_by_label("Votes each").fill("4")
        form.get_by_label("Item").select_option("juice")
        form.get_by_label("Honest newcomers").fill("0")
        form.get_by_label("Seed").focus()
        page.keyboard.press("Enter")
        form.get_by_text("With 3 liars who vote 4 times each for juice").wait_for(timeout=60_000)
        job = operator.get(f"studies/{name}/jobs").json()["jobs"][0]
        form.get_by_text(job["result"]["sentence"]).wait_for()
        assert form.locator("tbody th").all_inner_texts() == [row["item"] for row in job["result"]["ranking"]]
        cost = page.locator("section", has=page.get_by_role("heading", name="What manipulation would cost"))
        cost.get_by_label("False accounts at most").fill("4")
        cost.get_by_label("Answers per voter").fill("2")
        page.keyboard.press("Enter")
        cost.get_by_text("Each may vote 2 times.").wait_for(timeout=60_000)
        assert operator.get(f"studies/{name}").json()["votes_per_voter"] == 2
        assert_accessible(page)
        page.reload()
        page.get_by_text(job["result"]["sentence"]).wait_for()
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.emulate_media(media="print")
        assert page.get_by_role("button").count() == 0
    assert operator.get(f"studies/{name}/results").json()["counts"] == before


@pytest.mark.parametrize("width", [1280, 390])
def test_an_operator_sets_up_gold_duels_items_and_a_model(server, browser, width):
    address, operator = server
    name = study(operator, undo_seconds=0)
    with tab(browser, viewport={"width": width, "height": 844}) as page:
        open_study(page, address, operator, name, "items")
        page.select_option("#gold-winner", "milk")
        page.select_option("#gold-loser", "tea")
        page.click("text=Add this known answer")
        page.get_by_role("button", name="Remove milk before tea").wait_for()
        page.fill("#gold-first", "1")
        page.click("text=Save how often")
        page.get_by_role("button", name="Ask more often: water").click()
        page.get_by_role("button", name="Ask as usual: water").wait_for()
        assert_accessible(page)
        page.get_by_role("link", name="Settings").click()
        page.fill("#set-least-views", "2")
        page.get_by_role("button", name="Save the settings").click()
        page.get_by_text("The settings are saved.").wait_for()
        assert operator.get(f"studies/{name}").json()["least_views"] == 2
        page.get_by_role("link", name="Voters", exact=True).click()
        page.fill("#model-names", "gpt-x")
        page.click("text=Add the model")
        key = page.locator(".made .link").first.inner_text()
        with tab(browser) as voter:
            voter.goto(f"{address}vote/{name}")
            voter.click("#start")
            progress(voter, "0 votes")
            assert {voter.inner_text("#left .lines"), voter.inner_text("#right .lines")} == {"milk", "tea"}
            is_right = voter.inner_text("#left .lines") == "milk"
            for count in range(1, 7):
                press(voter, "ArrowLeft")
                progress(voter, "1 vote" if count == 1 else f"{count} votes")
        with httpx.Client(base_url=operator.base_url, headers={"Authorization": f"Bearer {key}"}) as model:
            while duels := model.post(f"studies/{name}/duels", json={}).json()["duels"]:
                path = f"studies/{name}/duels/{duels[0]['duel']}/answer"
                model.post(path, json={"answer": "left"}, headers={"Idempotency-Key": "k"}).raise_for_status()
        entry = open_voter(page, "voter 2")
        entry.get_by_text(f"{int(is_right)} of 1 known answers right").wait_for()
        page.locator(".voters > li", has_text="gpt-x (model)").wait_for()
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.get_by_role("link", name="Overview").click()
        page.get_by_role("heading", name="Language models, apart from people").wait_for()
        assert operator.get(f"studies/{name}").json()["gold"]["first"] == 1


def test_wrong_links_say_so(server, browser):
    address, operator = server
    with tab(browser) as page:
        page.goto(f"{address}vote/nothing")
        page.get_by_role("heading", name="You cannot vote here").wait_for()
        page.goto(f"{address}observe/{study(operator)}#wrong")
        page.get_by_text("wrong or no longer valid").wait_for()
        page.goto(f"{address}#wrong")
        page.get_by_label("Operator key").wait_for()
        page.fill("#key", operator.key)
        page.click("text=Open")
        page.get_by_role("heading", name="Studies", exact=True).wait_for()
        page.goto(f"{address}?study=nothing")
        page.get_by_role("heading", name="There is no such study").wait_for()
        page.get_by_role("link", name="All studies").click()
        page.get_by_role("link", name="New study").click()
        page.get_by_role("heading", name="New study").wait_for()
        page.go_back()
        page.get_by_role("heading", name="Studies", exact=True).wait_for()


def test_markup_in_names_and_texts_is_shown_as_text(server, browser):
    address, operator = server
    attack = "<img src=nowhere onerror='window.attacked = 1'><script>window.attacked = 1</script>"
    items = [{"name": attack}, {"name": "plain", "text": f"{attack} text"}]
    words = {"host": attack, "consent": attack, "privacy": attack, "words": {"start": attack}}
    name = study(operator, items=items, title=attack, question=attack, instructions=attack, page=words)
    with tab(browser) as page:
        page.goto(f"{address}vote/{name}")
        page.locator("#agree").check()
        page.click("#start")
        progress(page, "0 votes")
        assert {page.inner_text("#left .lines"), page.inner_text("#right .lines")} == {attack, f"{attack} text"}
        press(page, "ArrowLeft")
        wait_for(lambda: votes(operator, name) == 1)
        for there in (f"vote/{name}", f"?study={name}#{operator.key}"):
            page.goto(address + there)
            page.get_by_text(attack).first.wait_for()
            assert page.evaluate("window.attacked === undefined && !document.querySelector('img[src=nowhere]')")


@pytest.mark.parametrize(("width", "colours"), SIZES)
def test_pages_are_accessible_and_fit_the_screen(server, browser, width, colours):
    address, operator = server
    about = {"host": "The harbour", "consent": "I agree.", "colour": "#f2c230"}
    name = study(operator, instructions="Choose the one you like.", comments=True, page=about)
    with tab(browser, viewport={"width": width, "height": 844}, color_scheme=colours) as page:

        def check():
            assert_accessible(page)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

        page.goto(f"{address}vote/{name}")
        page.locator("#start").wait_for()
        page.locator("#agree").check()
        check()
        page.click("#start")
        progress(page, "0 votes")
        ready(page)
        check()
        for count in range(1, 6):
            press(page, "ArrowLeft")
            progress(page, "1 vote" if count == 1 else f"{count} votes")
        wait_for(lambda: operator.get(f"studies/{name}/results").json()["ranking"])
        open_study(page, address, operator, name)
        page.get_by_role("heading", name="Ranking", exact=True).wait_for()
        page.wait_for_function(  # who leads, may I stop, does someone cheat: without scrolling
            """() => [".answer .badge", ".answer .headline", ".stopping p", ".integrity strong"].every((each) => {
                const box = document.querySelector(each)?.getBoundingClientRect();
                return box && box.height > 0 && box.bottom <= Math.min(innerHeight, 800);
            })"""
        )
        check()
        for each in ("Items", "Voters", "Attack lab", "Settings", "Data"):
            page.get_by_role("link", name=each, exact=True).click()
            check()
        for there, heading in (("", "Studies"), ("?new", "New study")):
            page.goto(address + there)
            page.get_by_role("heading", name=heading, exact=True).wait_for()
            check()
