"""An operator's whole study by keyboard alone: made, shared, read, a voter set aside, closed."""

from service.pages.test_browser import (
    cast,
    server,  # noqa: F401
    tab,
)

FOCUSED = """() => {
    const found = document.activeElement, box = found.getBoundingClientRect(), style = getComputedStyle(found);
    return {
        name: (found.getAttribute("aria-label") || found.labels?.[0]?.innerText || found.innerText || "").trim(),
        seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight,
        marked: style.outlineStyle !== "none" || style.boxShadow !== "none",
    };
}"""


def reach(page, name, most=80):
    """Press Tab until what has this name is focused, which has to be on screen and marked."""
    passed = []
    for _ in range(most):
        page.keyboard.press("Tab")
        found = page.evaluate(FOCUSED)
        if found["name"].startswith(name):
            assert found["seen"], name
            assert found["marked"], name
            return
        passed.append(found["name"][:30])
    raise AssertionError(f"{name!r} cannot be reached; Tab passes {passed}")


def press(page, name):
    reach(page, name)
    page.keyboard.press("Enter")


def toast(page, text):
    page.locator(".toast", has_text=text).wait_for()


def test_an_operator_needs_no_mouse(server, browser):  # noqa: F811
    address, operator = server
    operator.post("studies", json={"question": "?", "items": [{"name": "a"}, {"name": "b"}]}).raise_for_status()
    with tab(browser, viewport={"width": 1280, "height": 800}) as page:
        page.goto(f"{address}#{operator.key}")
        page.get_by_role("heading", name="Studies").wait_for()
        press(page, "New study")
        page.get_by_role("heading", name="New study").wait_for()
        reach(page, "Question")
        page.keyboard.type("By keyboard?")
        reach(page, "Texts")
        page.keyboard.press("ArrowRight")  # the tabs of the form
        assert page.evaluate(FOCUSED)["name"] == "Pictures or sounds"
        page.keyboard.press("ArrowLeft")
        reach(page, "Items")
        page.keyboard.type("tea\nmilk\njuice\nwater")
        press(page, "Make the study")
        toast(page, "The study is open.")
        assert page.evaluate(FOCUSED)["name"].startswith("By keyboard?")  # a screen reader says where one is
        name = page.url.partition("study=")[2].partition("&")[0]

        press(page, "Share")
        page.get_by_role("dialog").wait_for()
        reach(page, "Copy the link")
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
        assert page.evaluate(FOCUSED)["name"] == "Share"

        order = {"tea": 3, "milk": 2, "juice": 1, "water": 0}
        cast(address, name, 5, 6, order.get)
        page.locator(".ranking > li").first.wait_for(timeout=120_000)
        reach(page, "Voters")
        page.keyboard.press("Enter")
        page.locator(".voters > li").nth(4).wait_for(timeout=120_000)
        press(page, "voter 1")
        press(page, "Set aside")
        dialog = page.get_by_role("dialog")
        dialog.wait_for()
        press(page, "Set aside")
        toast(page, "is set aside.")
        assert sum(each["set_aside"] for each in operator.get(f"studies/{name}/voters").json()["voters"]) == 1

        page.keyboard.press("Control+Home")
        press(page, "More")
        press(page, "Close")
        toast(page, "Voting is closed.")
        assert operator.get(f"studies/{name}").json()["state"] == "closed"
