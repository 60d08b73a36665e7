"""Routes for what pages show beside the numbers: QR codes, and small versions of pictures."""

import asyncio
import io
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from fairduel.service.api import guard
from fairduel.service.api.content import CACHED, is_stored, stored_file
from fairduel.service.problems import not_found
from fairduel.service.study.study import Hash, Strict

router = APIRouter(prefix="/api", tags=["operators"])
_SMALL = 160  # pixels
_SMALL_IMAGES: dict[str, bytes] = {}
_KEPT = 2000  # small images
_SHRINKER = ThreadPoolExecutor(1, "fairduel-shrink")  # one image at a time, however many are asked for


class Address(Strict):
    """An address to show as a QR code."""

    text: Annotated[str, Field(min_length=1, max_length=1000)]


class Code(BaseModel):
    """A QR code as SVG."""

    svg: str


@router.post("/qr", response_model=Code)
def draw_code(_: guard.Operator, body: Address) -> dict[str, Any]:
    """Return the QR code of an address, which may contain a key: so it is not in a URL, which servers log."""
    import segno  # noqa: PLC0415  # only operators need it

    content = io.BytesIO()
    segno.make(body.text, error="m", micro=False).save(content, kind="svg", scale=8, border=3, xmldecl=False)
    return {"svg": content.getvalue().decode()}


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
