"""Studies from files and texts on this machine."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fairduel.errors import BadInputError
from fairduel.service import commands, images, imports, sounds, study_files
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from fairduel.service.study import NewStudy

_IMAGES = {".png", ".jpg", ".jpeg", ".webp", ".gif"}
_AUDIO = {".wav", ".mp3", ".ogg", ".opus", ".flac", ".m4a"}
_QUESTION = "Which is better?"
Json = dict[str, Any]


def create_poll(
    service: Service,
    words: Sequence[str],
    question: str | None = None,
    votes_per_voter: int | None = None,
    votes: Path | None = None,
) -> str:
    """Create a study and return its id.

    Args:
        service: Where to create it.
        words: A study file (``.toml``), a table (``.csv``), paths of images, audio or text files with one item per
            line, or texts.
        question: What voters are asked; None for as the study file says.
        votes_per_voter: Votes per voter; None for as the study file says, or every pair once.
        votes: A file of votes to begin with.
    """
    given: Json = {"question": question, "votes_per_voter": votes_per_voter}
    settings = {name: value for name, value in given.items() if value is not None}
    tables = [word for word in words if word.lower().endswith(study_files.ENDINGS)]
    if tables and len(words) > 1:
        raise BadInputError(f"{tables[0]} describes a whole study; give it alone.")
    if tables:
        path = Path(tables[0])
        files = _files_below(service, path.parent)
        if not path.name.lower().endswith(".toml"):
            settings = {"question": _QUESTION} | settings
        about = study_files.read_study(path.name, _text(path), files, settings)
    else:
        items = [item for word in words for item in _items(service, word)]
        about = study_files.checked(NewStudy, {"question": _QUESTION, "items": items} | settings, "the study")
    begin = None
    if votes is not None:
        from fairduel.service.vote_files import read_import  # noqa: PLC0415  # slow, and few need it

        begin = read_import(votes, about)
    study, refold = service.ledger.run(lambda ledger: imports.create_with_votes(ledger, about, begin))
    if refold:
        service.refold(study.study)
    return study.study


def _files_below(service: Service, folder: Path) -> study_files.Files:
    """Return the files in a folder, for a study file in it."""

    def at(read: Callable[[Path], str]) -> Callable[[str], str]:
        def find(name: str) -> str:
            path = folder / name
            if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
                raise KeyError(name)
            return read(path)

        return find

    return study_files.Files(
        text=at(_text), image=at(lambda path: _image(service, path)), audio=at(lambda path: _sound(service, path))
    )


def _items(service: Service, word: str) -> list[Json]:
    path, ending = Path(word), Path(word).suffix.lower()
    if ending in _IMAGES:
        return [{"name": path.stem, "image": _image(service, path)}]
    if ending in _AUDIO:
        return [{"name": path.stem, "audio": _sound(service, path)}]
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


def _image(service: Service, path: Path) -> str:
    return _stored(service, path, images.MOST_BYTES, images.encode_again)


def _sound(service: Service, path: Path) -> str:
    return _stored(service, path, sounds.MOST_BYTES, sounds.without_metadata)


def _stored(
    service: Service, path: Path, most: int, prepare: Callable[[bytes], images.Stored | sounds.StoredSound]
) -> str:
    """Store a file for voters, and return its digest."""
    try:
        stored = prepare(_content(path, most))
    except Problem as problem:
        raise BadInputError(f"{path}: {problem}") from problem
    service.ledger.run(lambda ledger: commands.store_file(ledger, stored.digest, stored.media_type, stored.content))
    return stored.digest
