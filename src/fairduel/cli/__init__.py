"""The command ``fairduel``: thin; all work is done by the library below it."""

import signal
import sys
import warnings
from types import FrameType
from typing import TextIO

from fairduel.errors import DamageWarning, FairduelError

_WRONG, _STOPPED, _TERMINATED = 2, 130, 143


def main() -> None:
    """Run the command.

    What a user did wrong is one sentence and exit code 2, Ctrl-C is one and exit code 130, SIGTERM one and 143.
    """
    signals: list[int] = []

    def terminate(number: int, _: FrameType | None) -> None:
        signals.append(number)
        raise KeyboardInterrupt  # so that both end alike

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = _run()
    except KeyboardInterrupt:
        code = _fail("stopped.", _STOPPED)
    finally:
        signal.signal(signal.SIGTERM, before)
    sys.exit(_TERMINATED if code == _STOPPED and signals else code)


def _run() -> int:
    try:
        from fairduel.cli.app import app  # noqa: PLC0415  # the extra may be missing
        from fairduel.cli.options import StoppedError  # noqa: PLC0415
    except ModuleNotFoundError as error:
        return _fail(f"the command needs {error.name}: install it with  pip install 'fairduel[bench]'", _WRONG)
    try:
        app()
    except SystemExit as ended:
        if ended.code == _STOPPED:  # which is all that typer says of Ctrl-C
            raise KeyboardInterrupt from None
        raise
    except StoppedError as error:
        return _fail(str(error), _STOPPED)
    except FairduelError as error:
        return _fail(str(error), _WRONG)
    return 0


def _show_warning(  # the arguments of warnings.showwarning
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Say our own warnings in one sentence, and those of libraries as Python does."""
    text = f"fairduel: {message}\n" if issubclass(category, DamageWarning) else None
    (file or sys.stderr).write(text or warnings.formatwarning(message, category, filename, lineno, line))


def _fail(sentence: str, code: int) -> int:
    sys.stderr.write(f"fairduel: {sentence}\n")
    return code
