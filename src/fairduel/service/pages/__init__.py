"""The web pages: for voters, and for operators and observers. They use only the HTTP interface."""

from importlib import resources
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles

_FOLDER = Path(str(resources.files(__name__)))
_REPORT_STYLE = Path(str(resources.files("fairduel.report"))) / "templates" / "style.css"


def mount(app: FastAPI) -> None:
    """Add the pages ``/``, ``vote/{study}`` and ``observe/{study}``, and their scripts and styles."""

    @app.get("/", include_in_schema=False)
    def operator_page() -> Response:
        return _page("operator.html")

    @app.get("/vote/{study}", include_in_schema=False)
    def voter_page(study: str) -> Response:  # noqa: ARG001  # the script reads it from the address
        return _page("vote.html")

    @app.get("/observe/{study}", include_in_schema=False)
    def observer_page(study: str) -> Response:  # noqa: ARG001
        return _page("observe.html")

    @app.get("/static/report.css", include_in_schema=False)
    def report_style() -> Response:
        return FileResponse(_REPORT_STYLE, media_type="text/css")

    app.mount("/static", StaticFiles(directory=_FOLDER / "static"), name="static")


def _page(name: str) -> Response:
    return FileResponse(_FOLDER / name, media_type="text/html", headers={"Cache-Control": "no-cache"})
