"""Uploaded audio: its type is found by parsing it, and its metadata are removed."""

import hashlib
import io
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import mutagen
from mutagen.flac import FLAC
from mutagen.mp3 import MP3
from mutagen.mp4 import MP4
from mutagen.oggopus import OggOpus
from mutagen.oggvorbis import OggVorbis
from mutagen.wave import WAVE

from fairduel.service.problems import Problem

MOST_BYTES = 10_000_000
LONGEST = 600.0
"""Seconds of audio."""
_WAV_CHUNKS = {b"fmt ", b"fact", b"data"}
_KINDS: dict[type[mutagen.FileType], str] = {
    WAVE: "audio/wav",
    MP3: "audio/mpeg",
    OggVorbis: "audio/ogg",
    OggOpus: "audio/ogg",
    FLAC: "audio/flac",
    MP4: "audio/mp4",
}
_SIGNATURES: list[tuple[Callable[[bytes], bool], tuple[type[mutagen.FileType], ...]]] = [
    (lambda start: start[:4] == b"RIFF" and start[8:12] == b"WAVE", (WAVE,)),
    (lambda start: start[:4] == b"fLaC", (FLAC,)),
    (lambda start: start[:4] == b"OggS", (OggVorbis, OggOpus)),
    (lambda start: start[4:8] == b"ftyp", (MP4,)),
    (lambda start: start[:3] == b"ID3" or (start[0] == 0xFF and start[1] & 0xE0 == 0xE0), (MP3,)),
]


class StoredSound(NamedTuple):
    """Audio as it is stored."""

    digest: str
    """SHA-256 of the content."""
    media_type: str
    content: bytes
    seconds: float


def without_metadata(content: bytes) -> StoredSound:
    """Parse a WAV, MP3, Ogg, FLAC or M4A file and remove titles, names, pictures and other metadata.

    Raises:
        Problem: It is none of these, is damaged, or is too long.
    """
    kinds = next((kinds for fits, kinds in _SIGNATURES if len(content) >= 12 and fits(content)), ())
    for kind in kinds:
        try:
            seconds, stripped = _stripped(kind, content)
        except Exception:  # noqa: BLE001, S112  # the parser's own errors, and others on damaged files
            continue
        if not 0.0 < seconds <= LONGEST:
            raise Problem(422, "invalid", f"Audio must be at most {LONGEST / 60:.0f} minutes long, and not empty.")
        return StoredSound(hashlib.sha256(stripped).hexdigest(), _KINDS[kind], stripped, seconds)
    raise Problem(422, "invalid", "This is not a WAV, MP3, Ogg, FLAC or M4A file that can be read.")


def _stripped(kind: type[mutagen.FileType], content: bytes) -> tuple[float, bytes]:
    """Return the length of the audio, and the file without metadata."""
    content = _wav(content) if kind is WAVE else content
    buffer = io.BytesIO(content)
    found: Any = kind(buffer)
    if kind is MP4 and not found.info.codec:
        raise ValueError("it has no sound")
    if kind is FLAC:
        found.metadata_blocks = [each for each in found.metadata_blocks if each.code in {0, 3}]  # format and seek table
        found.tags = None
        found.add_tags()
        buffer.seek(0)
        found.save(buffer, deleteid3=True, padding=lambda _: 0)
    elif kind is not WAVE and found.tags is not None:
        buffer.seek(0)
        found.delete(buffer)
    return float(found.info.length), buffer.getvalue()


def _wav(content: bytes) -> bytes:
    """Return a WAV file with nothing but its format and its samples."""
    kept, place = list[bytes](), 12
    while place + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, place)
        body = content[place + 8 : place + 8 + size]
        if name in _WAV_CHUNKS:
            kept.append(struct.pack("<4sI", name, len(body)) + body + b"\0" * (len(body) % 2))
        place += 8 + size + size % 2
    whole = b"WAVE" + b"".join(kept)
    return struct.pack("<4sI", b"RIFF", len(whole)) + whole
