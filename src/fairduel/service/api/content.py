"""Routes for what studies consist of: files, images, audio, copies, and votes cast elsewhere."""

import asyncio
import io
import re
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from weakref import WeakValueDictionary

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, create_model
from sqlalchemy import select

from fairduel.service.api import bodies, guard, replies
from fairduel.service.api.guard import call
from fairduel.service.commands import imports, operating
from fairduel.service.events import schema
from fairduel.service.events.ledger import Ledger
from fairduel.service.events.state import StudyState
from fairduel.service.problems import Problem, not_found
from fairduel.service.service import Service
from fairduel.service.study import study_files
from fairduel.service.study.media import MEDIA, MOST_BYTES, Medium
from fairduel.service.study.study import FirstSettings, Hash, NewStudy, Question, Strict, Title

router = APIRouter(prefix="/api", tags=["operators"])
Json = dict[str, Any]
FileName = Annotated[str, Query(max_length=200, pattern=f"(?i)[.]({'|'.join(end[1:] for end in imports.ENDINGS)})$")]
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_CHUNK = 65_536  # bytes
_RATE = 100e6
"""Bytes of files per second, to all callers together: sending takes time too, and those who vote come first."""
_SMALL = 160  # pixels
_SMALL_IMAGES: dict[str, bytes] = {}
_KEPT = 2000  # small images
_SHRINKER = ThreadPoolExecutor(1, "fairduel-shrink")  # one image at a time
CACHED = {"Cache-Control": "public, max-age=31536000, immutable"}


class StudyFileSettings(FirstSettings):
    """Settings that replace those of a study file; absent ones do not."""

    question: Question = ""


class StudyFile(Strict):
    """A study as a file, the other files that it names, and settings that replace its own."""

    file: Annotated[str, Field(pattern=r"^[^/\\]{1,200}\.([tT][oO][mM][lL]|[cC][sS][vV])$")]
    text: str
    tables: dict[str, str] = Field(default_factory=dict)
    """The text of each CSV file, by its name."""
    media: dict[str, Hash] = Field(default_factory=dict)
    """The id of each uploaded image or audio, by its file's name."""
    settings: StudyFileSettings = StudyFileSettings()


class Cloning(Strict):
    """How to copy a study."""

    title: Title | None = None
    votes: bool = False


def _add_routes(kind: str, medium: Medium) -> None:
    fields: dict[str, Any] = {name: (found, ...) for name, found in {kind: str, **medium.facts}.items()}
    reply = create_model(f"{kind.title()}Reply", **fields)
    path = f"/{medium.route}"

    async def upload(request: Request, service: guard.Running, _: guard.Operator) -> Json:
        content = await request.body()
        if len(content) > MOST_BYTES:
            raise Problem(413, "too-large", f"A file may have at most {MOST_BYTES:,} bytes.")
        stored = await asyncio.to_thread(medium.prepare, content)
        await call(service, lambda ledger: operating.store_file(ledger, stored))
        return {kind: stored.digest, **stored.facts}

    def get(request: Request, service: guard.Running, digest: str) -> Response:
        return _file(request, stored_file(service, kind, digest))

    about = f"Store a file of type {kind}/…, without its metadata; the body is the file."
    router.add_api_route(path, upload, methods=["POST"], status_code=201, response_model=reply, description=about)
    router.add_api_route(
        f"{path}/{{digest}}",
        get,
        tags=["voters"],
        response_class=Response,
        description=f"Return a file of type {kind}/…, or the range of its bytes that a player asks for.",
    )


for _kind, _medium in MEDIA.items():
    _add_routes(_kind, _medium)


class Pace:
    """Lets callers pass one after the other, at given intervals.

    >>> pace = Pace()
    >>> began = time.monotonic()
    >>> for _ in range(3):
    ...     asyncio.run(pace.wait(0.02))
    >>> time.monotonic() - began >= 0.04
    True
    """

    def __init__(self) -> None:
        self._free = 0.0  # when the next one may pass

    async def wait(self, seconds: float) -> None:
        """Wait for a turn, and keep it for these seconds."""
        now = time.monotonic()
        mine = max(now, self._free)
        self._free = mine + seconds
        if mine > now:
            await asyncio.sleep(mine - now)


_PACE = Pace()


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class _Sent:
    """A file that is being sent; all callers share it, so that it is in memory once even if they read slowly."""

    media_type: str
    content: bytes

    async def part(self, begin: int, end: int) -> AsyncIterator[bytes]:
        """Yield some of its bytes, no faster than the caller reads them."""
        for place in range(begin, end, _CHUNK):
            await _PACE.wait(_CHUNK / _RATE)
            yield self.content[place : min(end, place + _CHUNK)]


_BEING_SENT: WeakValueDictionary[str, _Sent] = WeakValueDictionary()
_READING = threading.Lock()  # else callers at the same time would each have their own copy


def _file(request: Request, sent: _Sent) -> Response:
    headers, size = CACHED | {"Accept-Ranges": "bytes"}, len(sent.content)
    wanted = _RANGE.fullmatch(request.headers.get("range", ""))
    if wanted is None or wanted.group() == "bytes=-":
        headers |= {"Content-Length": str(size)}
        return StreamingResponse(sent.part(0, size), media_type=sent.media_type, headers=headers)
    first, last = wanted.groups()
    begin = int(first) if first else max(0, size - int(last))
    end = min(int(last), size - 1) if first and last else size - 1
    if begin > end:
        headers = {"Content-Range": f"bytes */{size}"}
        return Response(status_code=416, headers=headers)
    headers |= {"Content-Range": f"bytes {begin}-{end}/{size}", "Content-Length": str(end + 1 - begin)}
    return StreamingResponse(sent.part(begin, end + 1), 206, headers, sent.media_type)


def stored_file(service: Service, kind: str, digest: str) -> _Sent:
    """Return an uploaded file."""
    with _READING:
        known = _BEING_SENT.get(digest)
        if known is None:
            stored = schema.media
            with service.ledger.store.engine.connect() as connection:
                row = connection.execute(select(stored).where(stored.c.digest == digest)).one_or_none()
            if row is None:
                raise not_found(kind)
            known = _BEING_SENT[digest] = _Sent(row.type, row.content)
    if not known.media_type.startswith(f"{kind}/"):
        raise not_found(kind)
    return known


def is_stored(service: Service, digest: str) -> bool:
    """Whether a file is there, and was not deleted with its study."""
    known = select(schema.media.c.digest).where(schema.media.c.digest == digest)
    with service.ledger.store.engine.connect() as connection:
        return connection.execute(known).scalar() is not None


@router.get("/images/{digest}/small", tags=["voters"], response_class=Response)
async def get_small_image(service: guard.Running, digest: Hash) -> Response:
    """Return an uploaded image at most 160 pixels wide and high, for lists."""

    def small() -> bytes:
        if not is_stored(service, digest):
            _SMALL_IMAGES.pop(digest, None)
            raise not_found("image")
        if digest not in _SMALL_IMAGES:
            _SMALL_IMAGES[digest] = _small(stored_file(service, "image", digest).content)
        found = _SMALL_IMAGES[digest]
        if len(_SMALL_IMAGES) > _KEPT:
            del _SMALL_IMAGES[next(iter(_SMALL_IMAGES))]
        return found

    content = await asyncio.wrap_future(_SHRINKER.submit(small))
    return Response(content, media_type="image/webp", headers=CACHED)


def _small(content: bytes) -> bytes:
    from PIL import Image  # noqa: PLC0415  # slow: a server should be ready soon

    with Image.open(io.BytesIO(content)) as opened:
        picture = opened.convert("RGBA" if opened.mode in {"RGBA", "P", "LA"} else "RGB")
    picture.thumbnail((_SMALL, _SMALL))
    small = io.BytesIO()
    picture.save(small, "WEBP", quality=80)
    return small.getvalue()


@router.post("/study-files", status_code=201, response_model=bodies.StudyReply)
async def create_from_file(service: guard.Running, holder: guard.Operator, body: StudyFile) -> Json:
    """Create a study from a TOML or CSV file; images and audio that it names were uploaded before."""
    about = await asyncio.to_thread(_read_file, body)
    return await call(service, lambda ledger: replies.study_reply(operating.create_study(ledger, about)), holder)


def _read_file(body: StudyFile) -> NewStudy:
    def among(sent: Mapping[str, str]) -> Any:
        return lambda name: sent[name] if name in sent else sent[Path(name).name]

    files = study_files.Files(text=among(body.tables), medium=lambda _, name: among(body.media)(name))
    settings = body.settings.model_dump(exclude_unset=True)
    return study_files.read_study(body.file, body.text.removeprefix("\ufeff"), files, settings)


@router.post("/studies/{study}/clone", status_code=201, response_model=bodies.StudyReply)
async def clone_study(service: guard.Running, holder: guard.Operator, study: str, body: Cloning) -> Json:
    """Create a study with the settings and items of another one, perhaps with its votes to begin with."""

    def clone(ledger: Ledger) -> tuple[StudyState, bool]:
        return imports.clone_study(ledger, study, body.title, votes=body.votes)

    cloned, refold = await call(service, clone, holder)
    return await _reply(service, cloned.study, refold=refold)


@router.post("/studies/{study}/import", response_model=bodies.StudyReply)
async def add_votes(
    request: Request, service: guard.Running, holder: guard.Operator, study: str, name: FileName
) -> Json:
    """Add votes that were cast elsewhere, all or none; the body is the file, and ``name`` says what it is."""
    about = (await call(service, lambda ledger: operating.find_study(ledger, study))).about
    read = await asyncio.to_thread(_read_votes, name, await request.body(), about)
    refold = await call(service, lambda ledger: imports.import_votes(ledger, study, read)[1], holder)
    return await _reply(service, study, refold=refold)


def _read_votes(name: str, content: bytes, about: NewStudy) -> imports.Import:
    from fairduel.service.commands.vote_files import read_import  # noqa: PLC0415  # slow: a server should be ready soon

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"votes{Path(name).suffix.lower()}"
        path.write_bytes(content)
        return read_import(path, about)


async def _reply(service: Service, study: str, *, refold: bool) -> Json:
    if refold:
        service.refold(study)
    return await call(service, lambda ledger: replies.study_reply(operating.find_study(ledger, study)))
