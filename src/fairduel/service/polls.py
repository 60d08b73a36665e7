"""Studies from files and texts."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from fairduel.errors import BadInputError
from fairduel.service import commands, images
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from fairduel.service.study import Item, NewStudy

_IMAGES = {".png", ".jpg", ".jpeg", ".webp", ".gif"}


def create_poll(service: Service, words: Sequence[str], question: str, votes: int | None = None) -> str:
    """Create a study and return its id.

    Args:
        service: Where to create it.
        words: Paths of images or of text files with one item per line, or texts.
        question: What voters are asked.
        votes: Votes per voter; None for every pair once.
    """
    try:
        described = [item for word in words for item in _items(service, word)]
        about = NewStudy(question=question, items=described, votes_per_voter=votes)
        return service.ledger.run(lambda ledger: commands.create_study(ledger, about)).study
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise BadInputError(f"{f'{place}: ' if place else ''}{first['msg'].removeprefix('Value error, ')}.") from error


def _items(service: Service, word: str) -> list[Item]:
    path = Path(word)
    if path.suffix.lower() in _IMAGES:
        try:
            stored = images.encode_again(path.read_bytes())
        except OSError as error:
            raise BadInputError(f"cannot read {word}: {error.strerror}.") from error
        except Problem as problem:
            raise BadInputError(f"{word}: {problem}") from problem
        service.ledger.run(lambda ledger: commands.store_image(ledger, stored.image, stored.media_type, stored.content))
        return [Item(name=path.stem, image=stored.image)]
    if path.suffix.lower() in {".txt", ".md"}:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInputError(f"cannot read {word} as text.") from error
        return [Item(name=line.strip()) for line in lines if line.strip()]
    return [Item(name=word)]
