"""Regenerate the pictures in docs/gallery: run each command, then photograph its report in Chromium.

    python docs/gallery.py [FOLDER]

FOLDER keeps the reports and their finished runs (default: results/gallery); the leaderboard and verify take long.
"""
# ruff: noqa: INP001  # a script

import io
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image, ImageOps
from playwright.sync_api import sync_playwright

GALLERY = Path(__file__).parent / "gallery"
COMMANDS = {
    "demo": ["demo"],
    "figure1": ["reproduce", "figure1"],
    "leaderboard": ["leaderboard", "--runs", "8"],
    "verify": ["verify"],
}
SHOTS = {  # the report, and the element below which the picture ends (its first match)
    "rank": ("demo/rank", "table"),
    "audit": ("demo/audit", "figure"),
    "stress": ("demo/stress", "table"),
    "figure1": ("figure1", "figure"),
    "leaderboard": ("leaderboard", "table"),
    "verify": ("verify", "tbody tr:nth-child(7)"),
}
WIDTH, MARGIN, MAX_BYTES = 1280, 24, 150_000


def photograph(folder: Path) -> None:
    """Write a picture of each report in ``folder``, in few enough colours to be small."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, (report, last) in SHOTS.items():
            page = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
            page.goto((folder / report / "report.html").absolute().as_uri())
            box = page.locator(last).first.bounding_box()
            shown = {"x": 0, "y": 0, "width": WIDTH, "height": round(box["y"] + box["height"])}
            taken = page.screenshot(full_page=True, clip=shown)
            picture = Image.open(io.BytesIO(taken)).convert("RGB")
            picture = ImageOps.expand(picture, (0, 0, 0, MARGIN), "white").quantize(256)
            page.close()
            path = GALLERY / f"{name}.png"
            picture.save(path, optimize=True)
            if path.stat().st_size > MAX_BYTES:
                sys.exit(f"{path} has {path.stat().st_size:,} bytes, more than {MAX_BYTES:,}: end it earlier.")
        browser.close()


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "results/gallery")
    for name, command in COMMANDS.items():
        subprocess.run(["fairduel", *command, "--out", target / name], check=True)  # noqa: S603, S607
    photograph(target)
