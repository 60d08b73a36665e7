"""The web pages: for voters, and for operators and observers. They use only the HTTP interface."""

import hashlib
from importlib import resources
from mimetypes import guess_type
from pathlib import Path
from typing import NamedTuple, Self

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from fairduel.service.problems import not_found

_FOLDER = Path(str(resources.files(__name__)))
_REPORT_STYLE = Path(str(resources.files("fairduel.report"))) / "templates" / "style.css"
_PAGES = (
    ("/", "operator.html", {"title": "fairduel", "script": "board/operator", "style": "board/board", "root": ""}),
    ("/vote/{study}", "vote.html", {"title": "Vote", "script": "voter/vote", "style": "voter/vote", "root": "../"}),
    (
        "/observe/{study}",
        "observe.html",
        {"title": "fairduel", "script": "board/observe", "style": "board/board", "root": "../"},
    ),
)


def mount(app: FastAPI) -> None:
    """Add the pages ``/``, ``vote/{study}`` and ``observe/{study}``, and their scripts and styles."""
    templates = Environment(
        loader=PackageLoader(__name__, ""),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for path, template, settings in _PAGES:
        _add(app, path, templates.get_template(template).render(settings))

    folder = _FOLDER / "static"
    files = {file.relative_to(folder).as_posix(): _File.read(file) for file in folder.rglob("*") if file.is_file()}
    files["report.css"] = _File.read(_REPORT_STYLE)

    async def static(request: Request) -> Response:
        file = files.get(request.path_params["path"])
        if file is None:
            raise not_found("page")
        headers = {"Cache-Control": "no-cache", "ETag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)

    app.add_route("/static/{path:path}", static, include_in_schema=False)


class _File(NamedTuple):
    """A script, style or picture, which is in memory because everyone may ask for it at any time."""

    content: bytes
    media_type: str
    tag: str
    """By which a browser that has it need not fetch it again."""

    @classmethod
    def read(cls, path: Path) -> Self:
        content = path.read_bytes()
        return cls(content, guess_type(path.name)[0] or "text/plain", f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _add(app: FastAPI, path: str, html: str) -> None:
    @app.get(path, include_in_schema=False)
    async def page() -> HTMLResponse:  # a study's page finds its name in the address
        return HTMLResponse(html, headers={"Cache-Control": "no-cache"})
