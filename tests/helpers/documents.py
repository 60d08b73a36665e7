"""The project's documents, and the code and commands in them."""

import re
import shlex
import textwrap
from pathlib import Path
from typing import NamedTuple

from fairduel.votes.attacking.liars import arena

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def page_name(path):
    return str(path.relative_to(ROOT))


class Block(NamedTuple):
    language: str
    text: str


def blocks(path):
    """Return the fenced code blocks of a page, in order."""
    found = re.findall(
        r"^( *)(```+)(\S*)[^\n`]*\n(.*?)^\1\2$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return [Block(language, textwrap.dedent(text)) for _, _, language, text in found]


def page_files(path):
    """Return the files that a page shows: blocks whose first line is a comment with the file's name."""
    named = [(re.match(r"# ([\w.-]+\.\w+)\n", block.text), block.text) for block in blocks(path)]
    return {match[1]: text for match, text in named if match}


def commands(path):
    """Return the shell commands of a page as lists of words, in order."""
    lines = [line for block in blocks(path) if block.language == "console" for line in block.text.splitlines()]
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines if line.startswith("$ ")]


def inline_commands(path):
    """Return the commands that stand within a page's sentences and tables."""
    prose = re.sub(r"^( *)(```+).*?^\1\2$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [span.split() for span in re.findall(r"`(fairduel [^`]*)`", prose)]


def write_files(path, folder):
    """Write what pages take for granted: a file of votes, and every file that a page shows, first of all this one's."""
    votes, _ = arena(seed=4)
    winner = {1.0: "first", 0.0: "second", 0.5: "tie"}
    rows = zip(votes.first, votes.second, votes.result, votes.voter, strict=True)
    lines = [f"{votes.items[a]},{votes.items[b]},{winner[r]},{votes.voters[v]}\n" for a, b, r, v in rows]
    (folder / "votes.csv").write_text("first,second,winner,voter\n" + "".join(lines))
    for page in [*DOCUMENTS, path]:
        for name, text in page_files(page).items():
            (folder / name).write_text(text)
