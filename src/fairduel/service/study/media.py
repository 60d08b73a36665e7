"""Media and Markdown that voters see and hear: prepared so that nothing else is in what is stored or shown.

Markdown becomes safe HTML: no scripts, styles, links, forms or anything that a browser fetches.
"""

import hashlib
import io
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from fairduel.checks import needs_extra
from fairduel.service.problems import Problem

MOST_BYTES = 10_000_000
_MOST_PIXELS = 40_000_000
_LONGEST_SIDE = 2000
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
_LONGEST = 600.0  # seconds of audio
_WAV_CHUNKS = {b"fmt ", b"fact", b"data"}
_TYPES = {
    "WAVE": "audio/wav",
    "MP3": "audio/mpeg",
    "OggVorbis": "audio/ogg",
    "OggOpus": "audio/ogg",
    "FLAC": "audio/flac",
    "MP4": "audio/mp4",
}
"""Media types by the classes of mutagen."""


class Stored(NamedTuple):
    """A file as it is stored."""

    digest: str
    """SHA-256 of the content."""
    media_type: str
    content: bytes
    facts: dict[str, float]
    """What the uploader is told about it."""


class Medium(NamedTuple):
    """A kind of file that items can have."""

    route: str
    """Where files are uploaded and fetched."""
    endings: tuple[str, ...]
    facts: dict[str, type[float]]
    """The types of the facts about a file."""
    prepare: Callable[[bytes], Stored]


# ---------------------------------------------------------------------------- images


def prepare_image(content: bytes) -> Stored:
    """Decode an image, turn it upright, shrink it if it is large, and encode it without its metadata.

    Raises:
        Problem: It is not an image that can be decoded, or has too many pixels.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415  # slow: a server should be ready soon

    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as opened:
            if opened.width * opened.height > _MOST_PIXELS:
                raise Problem(422, "invalid", f"The image has more than {_MOST_PIXELS // 10**6} million pixels.")
            is_photo = opened.format == "JPEG"
            opened.load()
            upright = ImageOps.exif_transpose(opened)
        picture = upright.convert("RGB" if is_photo else "RGBA")
        picture.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise Problem(422, "invalid", "This is not a PNG, JPEG, WebP or GIF image that can be read.") from error
    buffer = io.BytesIO()
    if is_photo:
        picture.save(buffer, "JPEG", quality=90)
    else:
        picture.save(buffer, "PNG")
    encoded = buffer.getvalue()
    media_type = "image/jpeg" if is_photo else "image/png"
    width, height = picture.size
    return Stored(hashlib.sha256(encoded).hexdigest(), media_type, encoded, {"width": width, "height": height})


# ---------------------------------------------------------------------------- audio


def prepare_audio(content: bytes) -> Stored:
    """Parse a WAV, MP3, Ogg, FLAC or M4A file and remove titles, names, pictures and other metadata.

    Raises:
        Problem: It is none of these, is damaged, or is too long.
        BadInputError: The extra ``audio`` is not installed.
    """
    for kind in _kinds(content):
        try:
            seconds, stripped = _stripped(kind, content)
        except Exception:  # noqa: BLE001, S112  # the parser's own errors, and others on damaged files
            continue
        if not 0.0 < seconds <= _LONGEST:
            raise Problem(422, "invalid", f"Audio must be at most {_LONGEST / 60:.0f} minutes long, and not empty.")
        return Stored(hashlib.sha256(stripped).hexdigest(), _TYPES[kind.__name__], stripped, {"seconds": seconds})
    raise Problem(422, "invalid", "This is not a WAV, MP3, Ogg, FLAC or M4A file that can be read.")


def _kinds(content: bytes) -> tuple[Any, ...]:
    """Return the classes of mutagen (whose licence is the GPL) that may read a file."""
    with needs_extra("audio"):
        from mutagen import flac, mp3, mp4, oggopus, oggvorbis, wave  # noqa: PLC0415  # optional

    start = content[:12]
    if len(start) < 12:
        return ()
    if start[:4] == b"RIFF" and start[8:] == b"WAVE":
        return (wave.WAVE,)
    if start[:4] == b"fLaC":
        return (flac.FLAC,)
    if start[:4] == b"OggS":
        return oggvorbis.OggVorbis, oggopus.OggOpus
    if start[4:8] == b"ftyp":
        return (mp4.MP4,)
    return (mp3.MP3,) if start[:3] == b"ID3" or (start[0] == 0xFF and start[1] & 0xE0 == 0xE0) else ()


def _stripped(kind: Any, content: bytes) -> tuple[float, bytes]:
    """Return the length of the audio, and the file without metadata."""
    name = kind.__name__
    content = _wav(content) if name == "WAVE" else content
    buffer = io.BytesIO(content)
    found: Any = kind(buffer)
    if name == "MP4" and not found.info.codec:
        raise ValueError("it has no sound")
    if name == "FLAC":
        found.metadata_blocks = [each for each in found.metadata_blocks if each.code in {0, 3}]  # format and seek table
        found.tags = None
        found.add_tags()
        buffer.seek(0)
        found.save(buffer, deleteid3=True, padding=lambda _: 0)
    elif name != "WAVE" and found.tags is not None:
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


MEDIA = {
    "image": Medium("images", (".png", ".jpg", ".jpeg", ".webp", ".gif"), {"width": int, "height": int}, prepare_image),
    "audio": Medium("audio", (".wav", ".mp3", ".ogg", ".opus", ".flac", ".m4a"), {"seconds": float}, prepare_audio),
}
"""The kinds of files that items can have, by their field of the item, with which their media types begin."""


_TAGS = {"p", "br", "hr", "h3", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s"}
_TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}
_LEVELS = {f"level{number}" for number in range(1, 7)}
_KEPT = 2000  # texts
_MOST_CELLS = 20_000  # of tables that are shown as such


def _link_end(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    """Write a link's address after its text, unless that is its text."""
    opened, level = place, 1
    while level:
        opened -= 1
        level += {"link_open": -1, "link_close": 1}.get(tokens[opened].type, 0)
    address = str(tokens[opened].attrGet("href") or "")
    text = "".join(token.content for token in tokens[opened:place])
    return "" if text == address else f" ({nh3.clean_text(address)})"


def _image(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    return f"[image: {nh3.clean_text(tokens[place].content)}]"


def _headings_below_h2(state: Any) -> None:
    """Make all headings h3, below the page's own, with their level as a class."""
    for token in state.tokens:
        if token.type in {"heading_open", "heading_close"}:
            if token.nesting == 1:
                token.attrSet("class", f"level{token.tag[1]}")
            token.tag = "h3"


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("link_open", lambda *_: "")
    parser.add_render_rule("link_close", _link_end)
    parser.add_render_rule("image", _image)
    parser.core.ruler.push("headings_below_h2", _headings_below_h2)
    return parser


_PARSER, _WITHOUT_TABLES = _parser(), _parser().disable("table")


@lru_cache(_KEPT)
def rendered(text: str) -> str:
    r"""Return Markdown as HTML that can be put into a page.

    HTML in it is shown as text, links and images as their text and address.

    >>> rendered("**tea** <b>or</b> [milk](https://example.org)")
    '<p><strong>tea</strong> &lt;b&gt;or&lt;/b&gt; milk (https://example.org)</p>\n'
    """
    lines, environment = text.split("\n"), dict[str, Any]()
    cells = len(lines) * max(line.count("|") for line in lines)  # a short row is filled up to the width of its table
    parser = _PARSER if cells <= _MOST_CELLS else _WITHOUT_TABLES
    return nh3.clean(
        parser.render(text, environment),
        tags=_TAGS,
        attributes={"ol": {"start"}},
        tag_attribute_values={"h3": {"class": _LEVELS}},
        url_schemes=set(),
    )
