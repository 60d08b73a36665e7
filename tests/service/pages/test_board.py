"""The operators' pages in a real Chromium: charts show the API's numbers, and a thousand voters can be searched."""

import io
import re
from datetime import UTC, datetime

import httpx
import numpy as np
import pytest
from PIL import Image

from fairduel.service.study.study import FirstSettings, VoterPage
from helpers.qr import read_qr
from service.pages.test_browser import (
    assert_accessible,
    cast,
    open_study,
    server,  # noqa: F401
    study,
    tab,
    votes,
    wait_for,
)

FIGURES = """() => Object.fromEntries(
[...document.querySelectorAll(".panels > :not([hidden]) figure")].map((figure) => [
    figure.querySelector("h2").textContent,
    {
        rows: [...figure.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent)),
        tips: [...figure.querySelectorAll("[data-tip]")].map((mark) => mark.dataset.tip),
        sizes: [...figure.querySelectorAll("rect[data-tip]")].map((mark) => [
            Number(mark.getAttribute("width")), Number(mark.getAttribute("height")),
        ]),
        heights: [...figure.querySelectorAll("circle[data-tip]")].map((mark) => Number(mark.getAttribute("cy"))),
        places: [...figure.querySelectorAll("path[data-tip]")].map((mark) =>
            Number(/ (\\S+)\\)/.exec(mark.getAttribute("transform"))[1])),
        label: figure.querySelector("svg").getAttribute("aria-label"),
    },
]))"""


def percent(share):
    """Return a probability as the pages write it: never surer than it is."""
    if share is None:
        return "–"
    if 0.995 <= share < 1:
        return "> 99%"
    return "< 1%" if 0 < share <= 0.005 else f"{int(100 * share + 0.5)}%"


def significant(value):
    return float(f"{value:.3g}")


def number(text):
    return float(text.replace(",", ""))


def assert_proportional(lengths, values):
    """The largest length is that of the largest value, and so on, apart from the least width of a bar."""
    lengths, values = np.array(lengths), np.array(values)
    assert lengths == pytest.approx(np.maximum(lengths.max() * values / values.max(), 1.0), abs=0.51)


def assert_linear(heights, values):
    """Heights on the screen fall linearly with the values."""
    slope, offset = np.polyfit(values, heights, 1)
    assert slope < 0
    assert np.polyval([slope, offset], values) == pytest.approx(heights, abs=0.1)


def assert_overview(page, found):
    page.get_by_role("heading", name="Evidence towards stopping").wait_for()
    shown = page.evaluate(FIGURES)
    course = found["course"]
    names = list(course[-1]["best"])
    best, chances = shown["Chance of being the best"], [[each["best"][name] for name in names] for each in course]
    assert best["rows"] == [
        [f"{each['votes']:,}", *map(percent, row)] for each, row in zip(course, chances, strict=True)
    ]
    assert_linear(best["heights"], np.transpose(chances).ravel())
    shares = [1.0 if each["state"] == "won" else min(max(each["evidence"] / each["bar"], 0.0), 0.99) for each in course]
    evidence = shown["Evidence towards stopping"]
    assert_linear(evidence["heights"], shares)
    for row, each, share in zip(evidence["rows"], course, shares, strict=True):
        expected = [each["votes"], significant(each["evidence"]), significant(each["bar"])]
        assert [number(cell) for cell in row[:3]] == expected
        assert row[3] == percent(share)
    rows = shown["Votes over time"]["rows"]
    assert [number(row[1]) for row in rows] == [each["votes"] for each in found["activity"]]
    ranking = found["ranking"]
    assert page.locator(".ranking .value").all_inner_texts() == [percent(each["best"]) for each in ranking]
    bars = page.locator(".ranking .best progress").evaluate_all("(all) => all.map((each) => each.value)")
    assert bars == [each["best"] for each in ranking]
    centres = page.locator(".ranges rect").evaluate_all("(all) => all.map((each) => +each.getAttribute('x'))")
    assert_linear([-each for each in centres], [each["score"] for each in ranking])


def assert_items(page, found, items):
    shown = page.evaluate(FIGURES)
    wins, names = found["beats"]["wins"], found["beats"]["items"]
    assert shown["Who beat whom"]["tips"] == [
        f"{one} won {wins[row][column]:g} of {wins[row][column] + wins[column][row]:g} against {other}"
        for row, one in enumerate(names)
        for column, other in enumerate(names)
        if row != column and wins[row][column] + wins[column][row]
    ]
    most = sorted(items, key=lambda each: -each["shown"])
    assert shown["Duels per item"]["tips"] == [f"{each['name']}: {each['shown']} duels" for each in most]
    assert_proportional([width for width, _ in shown["Duels per item"]["sizes"]], [each["shown"] for each in most])


def assert_voters(page, people):
    shown, rows, funnel = page.evaluate(FIGURES), people["voters"], people["funnel"]
    assert shown["How voters agree"]["rows"] == [
        [each["label"], f"{each['votes']}", percent(each["agreement"]), each["camp"] or "–"] for each in rows
    ]
    assert_linear(shown["How voters agree"]["places"], [each["agreement"] for each in rows])
    steps = shown["How far people come"]
    expected = [people["opened"], *(funnel[step] for step in ("joined", "voted", "finished"))]
    assert [number(row[1]) for row in steps["rows"]] == expected
    assert_proportional([width for width, _ in steps["sizes"]], expected)
    assert f"{significant(funnel['seconds_per_vote']):g} seconds per vote" in steps["label"]
    assert f"the page was opened {people['opened']} times" in steps["label"]


def test_every_chart_shows_the_numbers_of_the_api(server, browser):  # noqa: F811
    address, operator = server
    name = study(operator, repeat_pairs=True, votes_per_voter=15)
    cast(address, name, 6, 15, "water tea juice milk".index)
    for _ in range(8):
        httpx.get(f"{address}api/studies/{name}/ballot").raise_for_status()

    def settled():
        found = operator.get(f"studies/{name}/results").json()
        return found["votes"] == 90 and not found["stale"]

    wait_for(settled, 30.0)
    found, about, people = (operator.get(f"studies/{name}{path}").json() for path in ("/results", "", "/voters"))
    with tab(browser) as page:
        open_study(page, address, operator, name)
        assert_overview(page, found)
        page.get_by_role("link", name="Items", exact=True).click()
        assert_items(page, found, about["items"])
        page.get_by_role("link", name="Voters", exact=True).click()
        assert_voters(page, people)
        page.locator("figure:visible svg").first.focus()
        page.keyboard.press("ArrowRight")
        first = people["voters"][0]
        page.locator(".tip", has_text=f"{first['label']}: agrees in {percent(first['agreement'])}").wait_for()
        page.keyboard.press("Enter")  # as a click: to the evidence on this voter
        page.locator(f"[data-voter='{first['voter']}'] details[open]").wait_for()


def imported(operator, name, lines):
    """Import votes, given as lines of voter, first, second and winner."""
    reply = operator.post(
        f"studies/{name}/import",
        params={"name": "votes.csv"},
        content="\n".join(["voter,first,second,winner", *lines]),
        headers={"Content-Type": "application/octet-stream"},
        timeout=60.0,
    )
    reply.raise_for_status()


def test_a_thousand_voters_can_be_searched_sorted_and_selected(server, browser):  # noqa: F811
    address, operator = server
    name = study(operator)
    lines = [
        f"P{voter:03},{first},{second},first"
        for voter in range(1000)
        for first, second in (("tea", "milk"), ("tea", "juice"), ("milk", "water"))[: 1 + voter % 3]
    ]
    imported(operator, name, lines)
    results = operator.get(f"studies/{name}/results").json()["agent"]
    assert results["sentence"] == (
        "Sceptic has asked 0 duels; 0 are waiting for an answer. It also learned from 1,999 imported votes."
    )
    for encoding, fits in (("gzip", True), ("identity", False)):
        with operator.stream("GET", f"studies/{name}/voters", headers={"Accept-Encoding": encoding}) as reply:
            assert (sum(map(len, reply.iter_raw())) < 150_000) == fits
    with tab(browser, viewport={"width": 1280, "height": 800}) as page:
        open_study(page, address, operator, name, "voters")
        page.get_by_text("1,000 voters", exact=True).wait_for()
        entries = page.locator(".voters > li")
        assert entries.count() == 25
        page.get_by_role("button", name="Show more").click()
        assert entries.count() == 125
        page.fill("#search", "P77")
        page.get_by_text("10 of 1,000 voters").wait_for()
        assert all("P77" in text for text in entries.locator(".name").all_inner_texts())
        page.select_option("#voter-order", "votes")
        counts = [int(text.split()[0]) for text in entries.locator(".votes").all_inner_texts()]
        assert counts == sorted(counts, reverse=True)
        page.get_by_role("button", name="Select them all").click()
        page.get_by_text("10 voters selected").wait_for()
        page.get_by_role("button", name="Clear").click()
        for person in ("P770", "P771"):
            entries.filter(has_text=person).get_by_role("checkbox").check()
        assert_accessible(page)
        page.get_by_role("button", name="Set all aside").click()
        page.get_by_role("dialog").get_by_role("button", name="Set aside").click()
        page.locator(".toast", has_text="2 voters set aside.").wait_for()
        page.fill("#search", "")
        page.select_option("#voter-filter", "aside")
        page.get_by_text("2 of 1,000 voters").wait_for()
        found = operator.get(f"studies/{name}/voters").json()["voters"]
        assert sorted(each["name"] for each in found if each["set_aside"]) == ["P770", "P771"]


def test_the_link_can_be_scanned_copied_and_put_on_another_site(server, browser):  # noqa: F811
    address, operator = server
    name = study(operator)
    with tab(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        open_study(page, address, operator, name)
        for opened in (False, True):  # before the first vote, and in the dialog
            if opened:
                page.get_by_role("button", name="Share").click()
            picture = page.locator("dialog .qr" if opened else ".empty .qr")
            picture.wait_for()
            page.wait_for_function("() => [...document.querySelectorAll('.qr')].every((each) => each.naturalWidth)")
            assert read_qr(picture.screenshot(animations="disabled")) == f"{address}vote/{name}"
        page.get_by_role("dialog").get_by_role("button", name="Copy the link").click()
        page.locator("dialog .toast", has_text="The link is copied.").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == f"{address}vote/{name}"
        page.get_by_text("On your own site").click()
        page.get_by_role("button", name="Copy the code").click()
        page.locator(".toast", has_text="The code is copied.").wait_for()
        code = f'<script src="{address}static/embed.js" data-study="{name}" async></script>'
        assert page.evaluate("navigator.clipboard.readText()") == code
        sites = page.get_by_role("dialog").get_by_label("Web sites that may show the voters’ page")
        sites.fill("blog")
        page.get_by_role("button", name="Allow these sites").click()
        page.locator("#embed-allowed-origins-problem:not([hidden])").wait_for()
        sites.fill("https://blog.example.org\nhttps://example.com")
        page.get_by_role("button", name="Allow these sites").click()
        page.locator(".toast", has_text="The sites are saved.").wait_for()
        assert_accessible(page)
        kept = operator.get(f"studies/{name}").json()["allowed_origins"]
        assert kept == ["https://blog.example.org", "https://example.com"]


def test_an_error_stays_in_view_and_a_message_goes_away(server, browser):  # noqa: F811
    address, operator = server
    name = study(operator)
    with tab(browser, viewport={"width": 390, "height": 844}) as page:
        open_study(page, address, operator, name, "settings")
        page.clock.install()
        page.fill("#set-completion-url", "http://nowhere")
        page.get_by_role("button", name="Save the settings").click()
        page.locator("#set-completion-url-problem:not([hidden])").wait_for()
        problem = page.get_by_role("alert")
        problem.get_by_text("Please correct the marked field.").wait_for()
        page.clock.fast_forward(60_000)
        box = problem.bounding_box()
        assert 0 <= box["y"] < box["y"] + box["height"] <= 844
        assert page.locator("#set-completion-url").evaluate("(each) => each === document.activeElement")
        assert_accessible(page)
        operator.patch(f"studies/{name}", json={"votes_per_voter": 7}).raise_for_status()  # by somebody else
        page.fill("#set-completion-url", "https://example.org/done")
        page.fill("#set-closes", "2031-05-31T18:00")
        page.get_by_role("button", name="Save the settings").click()
        done = page.locator(".toast", has_text="The settings are saved.")
        done.wait_for()
        page.clock.fast_forward(10_000)
        done.wait_for(state="detached")
        now = operator.get(f"studies/{name}").json()
        assert (now["completion_url"], now["votes_per_voter"]) == ("https://example.org/done", 7)
        assert datetime.fromtimestamp(now["closes"], UTC).year == 2031


def test_a_refusal_is_one_sentence_beside_the_field(server, browser):  # noqa: F811
    address, operator = server
    with tab(browser, viewport={"width": 390, "height": 844}) as page:
        page.goto(f"{address}?new#{operator.key}")
        for items, said in (
            ("one", "Write at least two items, one per line."),
            ("tea\ntea", "There are two items named 'tea'."),
        ):
            page.fill("#items", items)
            page.get_by_role("button", name="Make the study").click()
            page.locator(".toast.bad", has_text=said).wait_for()
            assert page.locator("#items-problem").inner_text() == said
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_form_has_every_setting_of_a_study(server, browser):  # noqa: F811
    address, operator = server
    elsewhere = {"format", "archived", "page"}  # beside the items; in the menu; a group of its own
    settings = {*FirstSettings.model_fields} - elsewhere | {f"page-{name}" for name in VoterPage.model_fields}
    with tab(browser) as page:
        page.goto(f"{address}?new#{operator.key}")
        page.get_by_label("Question").fill("Which shape?")
        ids = page.locator("form [id^=new-]:is(input, select, textarea)").evaluate_all(
            "(all) => all.map(({ id }) => id)"
        )
        assert {*ids, "new-question"} == {f"new-{name}".replace("_", "-") for name in settings}
        page.fill("#items", "square\ncircle")
        page.get_by_text("Beginning and end").click()
        page.select_option("#new-state", "paused")
        page.get_by_text("Trust", exact=True).click()
        page.fill("#new-agent-settings", "allowance = 3\nrobust = true")
        page.get_by_role("button", name="Make the study").click()
        page.locator(".toast", has_text="The study is made, and paused.").wait_for()
        made = operator.get(f"studies/{re.search(r'study=([^&]+)', page.url)[1]}").json()
        assert (made["state"], made["agent_settings"]) == ("paused", {"allowance": 3, "robust": True})


def test_long_names_stay_inside_the_page(server, browser):  # noqa: F811
    address, operator = server
    long = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
    name = study(operator, title=f"{long} {long}", items=[{"name": long}, {"name": "tea"}, {"name": f"{long} II"}])
    imported(
        operator, name, [f"P{voter},{long},{other},first" for voter in range(30) for other in ("tea", f"{long} II")]
    )
    wait_for(lambda: any(each["decided"] for each in operator.get("studies").json()["studies"]), 30.0)
    with tab(browser, viewport={"width": 390, "height": 844}) as page:
        for there, shown in (
            (f"?study={name}", ".charts figure"),
            (f"?study={name}&tab=items", ".items li"),
            ("", ".study .decided"),
        ):
            page.goto(f"{address}{there}#{operator.key}")
            page.locator(shown, has_text=re.compile("Donau|best", re.IGNORECASE)).first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.goto(f"{address}?study={name}#{operator.key}")
        cut = """() => [...document.querySelectorAll("figure:first-of-type .plot")].flatMap((svg) => [
            ...svg.querySelectorAll("text")].filter((text) => text.getBoundingClientRect().right >
            svg.getBoundingClientRect().right + 1).map((text) => text.textContent))"""
        page.locator(".charts figure").first.wait_for()
        assert page.evaluate(cut) == []


def test_a_study_is_archived_and_deleted_by_keyboard(server, browser):  # noqa: F811
    address, operator = server
    name = study(operator, title="To be deleted")
    with tab(browser) as page:
        open_study(page, address, operator, name)

        def choose(entry):
            page.locator(".menu summary").focus()
            page.keyboard.press("Enter")
            page.get_by_role("button", name=entry).focus()
            page.keyboard.press("Enter")

        choose("Archive")
        page.locator(".toast", has_text="It is archived").wait_for()
        assert operator.get(f"studies/{name}").json()["archived"] is True
        choose("Delete …")
        page.get_by_role("dialog").get_by_role("button", name="Delete the study").focus()
        page.keyboard.press("Enter")
        page.locator(".toast", has_text="The study is deleted.").wait_for()
        page.get_by_role("heading", name="Studies").wait_for()
    assert operator.get(f"studies/{name}").status_code == 404


def test_pictures_in_lists_are_small(server, browser):  # noqa: F811
    address, operator = server
    items = []
    for colour in ("red", "green", "blue"):
        content = io.BytesIO()
        Image.new("RGB", (640, 480), colour).save(content, "PNG")
        sent = operator.post("images", content=content.getvalue(), headers={"Content-Type": "image/png"}).json()
        items.append({"name": colour, "image": sent["image"]})
    name = study(operator, items=items)
    imported(operator, name, [f"P{voter},red,{other},first" for voter in range(30) for other in ("green", "blue")])
    wait_for(lambda: operator.get(f"studies/{name}/results").json()["verdicts"], 30.0)
    with tab(browser) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        open_study(page, address, operator, name)
        page.locator(".answer .badge", has_text="A winner").wait_for()
        page.wait_for_function(
            "() => [...document.querySelectorAll('.ranking img')].every((each) => each.naturalWidth)"
        )
        widths = page.locator(".ranking img").evaluate_all("(all) => all.map((each) => each.naturalWidth)")
        assert widths == [160, 160, 160]
        assert page.locator(".answer img").get_attribute("src").endswith(items[0]["image"])
        large = {url for url in asked if re.search(r"/api/images/\w+$", url)}
        assert large == {f"{address}api/images/{items[0]['image']}"}  # the winner's, and no other
    assert votes(operator, name) == 60


@pytest.mark.parametrize("there", ["vote/{name}", "?study={name}"])
def test_a_first_load_is_small_and_asks_nobody_else(server, browser, there):  # noqa: F811
    address, operator = server
    name = study(operator)
    operator.post(f"studies/{name}/voters", json={}, headers={"Authorization": ""})
    with tab(browser) as page:
        replies, elsewhere, said = [], [], []
        page.on("response", lambda reply: replies.append(reply))  # noqa: PLW0108  # Playwright marks the function
        page.on("request", lambda request: request.url.startswith((address, "data:")) or elsewhere.append(request.url))
        page.on("console", lambda message: message.type == "error" and said.append(message.text))
        page.goto(f"{address}{there.format(name=name)}#{operator.key if there[0] == '?' else ''}")
        page.locator("#start, .empty").first.wait_for()
        page.wait_for_timeout(300)
        served = [reply for reply in replies if reply.url.startswith(address)]
        loaded = sum(len(reply.body()) for reply in served if not reply.url.endswith("/events"))  # a stream without end
        assert 20_000 < loaded < (60_000 if there.startswith("vote") else 400_000)
        assert elsewhere == said == []
        assert "script-src 'self'" in served[0].headers["content-security-policy"]
        assert not any("unsafe" in reply.headers.get("content-security-policy", "") for reply in served)
