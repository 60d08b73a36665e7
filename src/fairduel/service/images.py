"""Uploaded images, decoded and encoded again, so that what is stored is an image and nothing else."""

import hashlib
import io
from typing import NamedTuple

from fairduel.service.problems import Problem

MOST_BYTES = 10_000_000
_MOST_PIXELS = 40_000_000
_LONGEST_SIDE = 2000
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")


class Stored(NamedTuple):
    """An image as it is stored."""

    digest: str
    """SHA-256 of the content."""
    media_type: str
    content: bytes
    width: int
    height: int


def encode_again(content: bytes) -> Stored:
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
    return Stored(hashlib.sha256(encoded).hexdigest(), media_type, encoded, *picture.size)
