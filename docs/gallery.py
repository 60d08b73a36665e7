"""Regenerate the pictures in docs/gallery: run each command and a poll, then photograph its report or page in Chromium.

    python docs/gallery.py [NAME ...]

Without names, all of them; the leaderboard and verify take long. Reports and finished runs stay in results/gallery.
"""
# ruff: noqa: INP001  # a script

import io
import math
import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image, ImageDraw, ImageOps
from playwright.sync_api import Browser, sync_playwright

from fairduel.service.api.limits import PRESETS
from fairduel.service.client import Client
from fairduel.service.local import local_server

GALLERY = Path(__file__).parent / "gallery"
POLL = Path("results/demo/votes.csv")
STRESS = ["--attack", "promote", "--target", "Cedar", "--votes", "200", "--voters", "5"]
COMMANDS = {
    "rank": ["rank", POLL],
    "audit": ["audit", POLL],
    "explain": ["explain", POLL],
    "review": ["review", POLL],
    "stress": ["stress", POLL, *STRESS],
    "figure1": ["reproduce", "figure1"],
    "leaderboard": ["leaderboard", "--runs", "8"],
    "verify": ["verify"],
}
LAST = {  # the element below which the picture ends (its first match)
    "rank": "table",
    "audit": "figure",
    "explain": "figure",
    "review": "#votes-needed figure",
    "stress": "table",
    "figure1": "figure",
    "leaderboard": "table",
    "verify": "tbody tr:nth-child(7)",
}
FIRST = {"review": "#what-to-ask-next"}  # where the picture begins, if not at the top
WIDTH, MARGIN, MAX_BYTES = 1280, 24, 150_000
BIRDS = {  # how well people like it, and its colours: sky, body, wing, beak
    "Heron": (2.0, "#cfe6f5", "#5f7f9c", "#3d566e", "#e8a13a"),
    "Kestrel": (1.0, "#f6e3c5", "#a8623a", "#70401f", "#3a3a3a"),
    "Puffin": (0.6, "#d3efe6", "#2f3640", "#15191f", "#f0642f"),
    "Robin": (0.2, "#e3f0cf", "#c8502e", "#7a5a41", "#4a3b2c"),
    "Owl": (-0.6, "#ded7f2", "#8a7358", "#5d4a36", "#d9a441"),
    "Crow": (-1.2, "#e8e9ee", "#3c4257", "#22273a", "#15171f"),
}
VOTERS, VOTES_EACH = 40, 20


def drawn(sky: str, body: str, wing: str, beak: str) -> bytes:
    """Draw a bird, as the bytes of a PNG."""
    picture = Image.new("RGB", (640, 480), sky)
    pen = ImageDraw.Draw(picture)
    pen.polygon([(150, 300), (40, 250), (60, 340)], fill=wing)
    pen.ellipse((120, 170, 460, 400), fill=body)
    pen.ellipse((360, 80, 540, 260), fill=body)
    pen.polygon([(530, 150), (610, 180), (530, 200)], fill=beak)
    pen.chord((170, 190, 370, 370), 20, 200, fill=wing)
    pen.ellipse((446, 134, 486, 174), fill="white")
    pen.ellipse((458, 146, 476, 164), fill="black")
    for foot in (260, 320):
        pen.line([(foot, 390), (foot, 450), (foot + 30, 450)], fill=beak, width=10)
    content = io.BytesIO()
    picture.save(content, "PNG")
    return content.getvalue()


def save(taken: bytes, name: str, margin: int = 0) -> None:
    """Write a picture in few enough colours to be small."""
    picture = ImageOps.expand(Image.open(io.BytesIO(taken)).convert("RGB"), (0, 0, 0, margin), "white").quantize(256)
    path = GALLERY / f"{name}.png"
    picture.save(path, optimize=True)
    if path.stat().st_size > MAX_BYTES:
        sys.exit(f"{path} has {path.stat().st_size:,} bytes, more than {MAX_BYTES:,}: end it earlier.")


def photograph_reports(browser: Browser, folder: Path, names: list[str]) -> None:
    """Write a picture of each named report in ``folder``."""
    for name in names:
        page = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
        page.goto((folder / name / "report.html").absolute().as_uri())
        box = page.locator(LAST[name]).first.bounding_box()
        top = page.locator(FIRST[name]).bounding_box()["y"] if name in FIRST else 0
        shown = {"x": 0, "y": top, "width": WIDTH, "height": round(box["y"] + box["height"] - top)}
        save(page.screenshot(full_page=True, clip=shown), name, MARGIN)
        page.close()


def vote(client: Client, study: str, key: str, liked: dict[str, float]) -> None:
    """Vote as somebody does who takes two seconds to choose."""
    chance = random.Random(key)  # noqa: S311  # not a secret
    with client.voter(study, key) as voter:
        for _ in range(VOTES_EACH):
            (duel,) = voter.ask().duels
            left, right = (liked[side.image] for side in (duel.left, duel.right))
            time.sleep(chance.lognormvariate(math.log(2.0), 0.4))
            voter.answer(duel.duel, "left" if chance.random() < 1.0 / (1.0 + math.exp(right - left)) else "right")


def photograph_poll(browser: Browser) -> None:
    """Write a picture of the operator's page, of a poll in which people voted."""
    with local_server(limits=PRESETS["none"]()) as (url, key), Client(url, key) as client:
        items = [{"name": name, "image": client.upload("image", drawn(*each[1:]))} for name, each in BIRDS.items()]
        liked = {item["image"]: BIRDS[item["name"]][0] for item in items}
        about = {"title": "Mascot for the harbour", "question": "Which bird is the best mascot?", "items": items}
        study = client.create_study(**about, access="invitation", repeat_pairs=True, undo_seconds=0).study
        keys = [each.key for each in client.invite(study, [f"Member {number}" for number in range(VOTERS)])]
        with ThreadPoolExecutor(VOTERS) as people:
            list(people.map(lambda each: vote(client, study, each, liked), keys))
        page = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
        page.goto(f"{url}/?study={study}#{key}")
        page.locator(".charts figure").first.wait_for(timeout=60_000)
        page.locator(".answer .badge .soft").wait_for(state="detached", timeout=60_000)  # "updating …"
        page.wait_for_load_state("load")
        page.wait_for_timeout(500)  # its pictures
        save(page.screenshot(), "serve")
        page.close()


def photograph(folder: Path, names: list[str]) -> None:
    """Write these pictures."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        photograph_reports(browser, folder, [name for name in names if name in COMMANDS])
        if "serve" in names:
            photograph_poll(browser)
        browser.close()


if __name__ == "__main__":
    target, chosen = Path("results/gallery"), sys.argv[1:] or [*COMMANDS, "serve"]
    subprocess.run(["fairduel", "demo", "--no-open"], check=True)  # noqa: S607  # writes the poll
    for name in [each for each in chosen if each in COMMANDS]:
        subprocess.run(["fairduel", *COMMANDS[name], "--out", target / name], check=True)  # noqa: S603, S607
    photograph(target, chosen)
