"""Studies from files and texts on this machine, here or on a server that runs."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fairduel.errors import BadInputError
from fairduel.service.commands import imports, operating
from fairduel.service.events.log import Json
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from fairduel.service.study import study_files
from fairduel.service.study.media import MEDIA, MOST_BYTES, Stored
from fairduel.service.study.study import NewStudy

_QUESTION = "Which is better?"
KeepMedia = Callable[[Stored, str], str]
"""Keeps a file of a kind (``image`` or ``audio``), and returns its id."""


def create_poll(service: Service, words: Sequence[str], settings: Json | None = None, votes: Path | None = None) -> str:
    """Create a study, perhaps with a file of votes to begin with, and return its id.

    ``words`` are a study file (``.toml``), a table (``.csv``), paths of images, audio or text files with one item per
    line, or texts. ``settings`` replace those of the file.
    """

    def store(stored: Stored, _: str) -> str:
        service.ledger.run(lambda ledger: operating.store_file(ledger, stored))
        return stored.digest

    about, begin = described_study(words, settings or {}, store), None
    if votes is not None:
        from fairduel.service.commands.vote_files import read_import  # noqa: PLC0415  # slow, and few need it

        begin = read_import(votes, about)
    study, refold = service.ledger.run(lambda ledger: imports.create_with_votes(ledger, about, begin))
    if refold:
        service.refold(study.study)
    return study.study


def add_poll(url: str, key: str, words: Sequence[str], settings: Json, votes: Path | None) -> dict[str, str]:
    """Create a study on a server that runs, and return its links; see :func:`create_poll`."""
    from fairduel.service.client import Client  # noqa: PLC0415  # slow, and few need it

    with Client(url, key) as client:
        client.session()  # before files are sent
        about = described_study(words, settings, lambda stored, kind: client.upload(kind, stored.content))
        made = client.create_study(**about.model_dump(exclude_unset=True))
        if votes is not None:
            client.import_votes(made.study, votes)
        return {name: link for name, link in made.links.items() if link is not None}


def described_study(words: Sequence[str], settings: Json, store: KeepMedia) -> NewStudy:
    """Return the study that files and texts describe; ``store`` keeps its images and audio."""
    tables = [word for word in words if word.lower().endswith(study_files.ENDINGS)]
    if tables and len(words) > 1:
        raise BadInputError(f"{tables[0]} describes a whole study; give it alone.")
    if tables:
        path = Path(tables[0])
        files = _files_below(store, path.parent)
        if not path.name.lower().endswith(".toml"):
            settings = {"question": _QUESTION} | settings
        return study_files.read_study(path.name, _text(path), files, settings)
    items = [item for word in words for item in _items(store, word)]
    return study_files.checked(NewStudy, {"question": _QUESTION, "items": items} | settings, "the study")


def _files_below(store: KeepMedia, folder: Path) -> study_files.Files:
    """Return the files in a folder, for a study file in it."""

    def at(name: str) -> Path:
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
            raise KeyError(name)
        return path

    return study_files.Files(
        text=lambda name: _text(at(name)), medium=lambda kind, name: _stored(store, at(name), kind)
    )


def _items(store: KeepMedia, word: str) -> list[Json]:
    path, ending = Path(word), Path(word).suffix.lower()
    for kind, medium in MEDIA.items():
        if ending in medium.endings:
            return [{"name": path.stem, kind: _stored(store, path, kind)}]
    if ending in {".txt", ".md"}:
        return [{"name": line.strip()} for line in _text(path).splitlines() if line.strip()]
    return [{"name": word}]


def _content(path: Path, most: int) -> bytes:
    try:
        if path.stat().st_size > most:
            raise BadInputError(f"{path} has more than {most // 10**6} MB.")
        return path.read_bytes()
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror}.") from error


def _text(path: Path) -> str:
    try:
        return _content(path, study_files.MOST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInputError(f"cannot read {path} as text; save it as UTF-8.") from error


def _stored(store: KeepMedia, path: Path, kind: str) -> str:
    """Store a file for voters, and return its digest."""
    try:
        stored = MEDIA[kind].prepare(_content(path, MOST_BYTES))
    except Problem as problem:
        raise BadInputError(f"{path}: {problem}") from problem
    return store(stored, kind)
