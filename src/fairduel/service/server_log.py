"""What the server logs: one JSON object per line, without keys, bodies or addresses."""

import json
import logging
import time
from typing import Any, TextIO

_LOGGER = logging.getLogger("fairduel.service")


def log(level: int, happened: str, **fields: Any) -> None:
    """Log that something happened."""
    if _LOGGER.isEnabledFor(level):
        _LOGGER.log(level, happened, extra={"fields": fields})


def log_failure(happened: str, error: BaseException) -> None:
    """Log an error."""
    log(logging.ERROR, happened, error=f"{type(error).__name__}: {error}")


def log_to(stream: TextIO, level: int) -> None:
    """Write what is logged from now on to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonLine())
    _LOGGER.handlers = [handler]
    _LOGGER.setLevel(level)
    _LOGGER.propagate = False
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # else callers could fill the log with invalid requests


class _JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        fields = getattr(record, "fields", {})
        return json.dumps({"at": at, "level": record.levelname.lower(), "event": record.getMessage(), **fields})
