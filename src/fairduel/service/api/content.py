"""Routes for what studies consist of: files, images, audio, copies, and votes cast elsewhere."""

import asyncio
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field
from sqlalchemy import select

from fairduel.service import commands, images, imports, schema, sounds, study_files
from fairduel.service.api import bodies, guard, replies
from fairduel.service.api.calls import call
from fairduel.service.ledger import Ledger
from fairduel.service.problems import Problem, not_found
from fairduel.service.service import Service
from fairduel.service.state import StudyState
from fairduel.service.study import Access, Format, Hash, NewStudy, Question, Strict, Text, Title, VotesPerVoter

router = APIRouter(prefix="/api", tags=["operators"])
Json = dict[str, Any]
FileName = Annotated[str, Query(max_length=200, pattern=f"(?i)[.]({'|'.join(end[1:] for end in imports.ENDINGS)})$")]
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_CACHED = {"Cache-Control": "public, max-age=31536000, immutable"}


class StudyFileSettings(Strict):
    """Settings that replace those of a study file; those that are absent do not."""

    title: Title = ""
    question: Question = ""
    instructions: Text = ""
    access: Access = "link"
    format: Format = "text"
    votes_per_voter: VotesPerVoter = None


class StudyFile(Strict):
    """A study as a file, the other files that it names, and settings that replace its own."""

    file: Annotated[str, Field(pattern=r"^[^/\\]{1,200}\.([tT][oO][mM][lL]|[cC][sS][vV])$")]
    text: str
    tables: dict[str, str] = Field(default_factory=dict)
    """The text of each CSV file, by its name."""
    images: dict[str, Hash] = Field(default_factory=dict)
    """The id of each uploaded image, by its file's name."""
    audio: dict[str, Hash] = Field(default_factory=dict)
    settings: StudyFileSettings = StudyFileSettings()


class Cloning(Strict):
    """How to copy a study."""

    title: Title | None = None
    votes: bool = False


class ImageReply(BaseModel):
    """A stored image."""

    image: str
    width: int
    height: int


class AudioReply(BaseModel):
    """Stored audio."""

    audio: str
    seconds: float


@router.post("/images", status_code=201, response_model=ImageReply)
async def upload_image(request: Request, service: guard.Running, _: guard.Operator) -> Json:
    """Store an image; the body is the file."""
    stored = await asyncio.to_thread(images.encode_again, await request.body())
    await call(service, lambda ledger: commands.store_file(ledger, stored.digest, stored.media_type, stored.content))
    return {"image": stored.digest, "width": stored.width, "height": stored.height}


@router.post("/audio", status_code=201, response_model=AudioReply)
async def upload_audio(request: Request, service: guard.Running, _: guard.Operator) -> Json:
    """Store audio without its metadata; the body is the file."""
    content = await request.body()
    if len(content) > sounds.MOST_BYTES:
        raise Problem(413, "too-large", f"Audio may have at most {sounds.MOST_BYTES:,} bytes.")
    stored = await asyncio.to_thread(sounds.without_metadata, content)
    await call(service, lambda ledger: commands.store_file(ledger, stored.digest, stored.media_type, stored.content))
    return {"audio": stored.digest, "seconds": stored.seconds}


@router.get("/images/{image}", tags=["voters"], dependencies=[Depends(guard.anyone)], response_class=Response)
def get_image(service: guard.Running, image: str) -> Response:
    """Return an image."""
    media_type, content = _stored(service, "image", image)
    return Response(content, media_type=media_type, headers=_CACHED)


@router.get("/audio/{audio}", tags=["voters"], dependencies=[Depends(guard.anyone)], response_class=Response)
def get_audio(request: Request, service: guard.Running, audio: str) -> Response:
    """Return audio, or the range of its bytes that a player asks for."""
    media_type, content = _stored(service, "audio", audio)
    headers = _CACHED | {"Accept-Ranges": "bytes"}
    wanted = _RANGE.fullmatch(request.headers.get("range", ""))
    if wanted is None or wanted.group() == "bytes=-":
        return Response(content, media_type=media_type, headers=headers)
    size, (first, last) = len(content), wanted.groups()
    begin = int(first) if first else max(0, size - int(last))
    end = min(int(last), size - 1) if first and last else size - 1
    if begin > end:
        headers = {"Content-Range": f"bytes */{size}"}
        return Response(status_code=416, headers=headers)
    headers |= {"Content-Range": f"bytes {begin}-{end}/{size}"}
    return Response(content[begin : end + 1], 206, headers, media_type)


def _stored(service: Service, kind: str, digest: str) -> tuple[str, bytes]:
    stored = schema.images
    with service.ledger.store.engine.connect() as connection:
        row = connection.execute(select(stored).where(stored.c.image == digest)).one_or_none()
    if row is None or not row.type.startswith(f"{kind}/"):
        raise not_found(kind)
    return row.type, row.content


@router.post("/study-files", status_code=201, response_model=bodies.StudyReply)
async def create_from_file(service: guard.Running, _: guard.Operator, body: StudyFile) -> Json:
    """Create a study from a TOML or CSV file; images and audio that it names were uploaded before."""
    about = await asyncio.to_thread(_read_file, body)
    return await call(service, lambda ledger: replies.study_reply(commands.create_study(ledger, about)))


def _read_file(body: StudyFile) -> NewStudy:
    def among(sent: Mapping[str, str]) -> Any:
        return lambda name: sent[name] if name in sent else sent[Path(name).name]

    files = study_files.Files(text=among(body.tables), image=among(body.images), audio=among(body.audio))
    settings = body.settings.model_dump(exclude_unset=True)
    return study_files.read_study(body.file, body.text.removeprefix("\ufeff"), files, settings)


@router.post("/studies/{study}/clone", status_code=201, response_model=bodies.StudyReply)
async def clone_study(service: guard.Running, _: guard.Operator, study: str, body: Cloning) -> Json:
    """Create a study with the settings and items of another one, perhaps with its votes to begin with."""

    def clone(ledger: Ledger) -> tuple[StudyState, bool]:
        return imports.clone_study(ledger, study, body.title, votes=body.votes)

    cloned, refold = await call(service, clone)
    return await _reply(service, cloned.study, refold=refold)


@router.post("/studies/{study}/import", response_model=bodies.StudyReply)
async def add_votes(request: Request, service: guard.Running, _: guard.Operator, study: str, name: FileName) -> Json:
    """Add votes that were cast elsewhere, all or none; the body is the file, and ``name`` says what it is."""
    about = (await call(service, lambda ledger: commands.find_study(ledger, study))).about
    read = await asyncio.to_thread(_read_votes, name, await request.body(), about)
    refold = await call(service, lambda ledger: imports.import_votes(ledger, study, read)[1])
    return await _reply(service, study, refold=refold)


def _read_votes(name: str, content: bytes, about: NewStudy) -> imports.Import:
    from fairduel.service.vote_files import read_import  # noqa: PLC0415  # slow: a server should be ready soon

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"votes{Path(name).suffix.lower()}"
        path.write_bytes(content)
        return read_import(path, about)


async def _reply(service: Service, study: str, *, refold: bool) -> Json:
    if refold:
        service.refold(study)
    return await call(service, lambda ledger: replies.study_reply(commands.find_study(ledger, study)))
