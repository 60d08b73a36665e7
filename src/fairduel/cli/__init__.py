"""The ``fairduel`` command: parse, call the library, print."""

import os
import signal
import sys
import warnings
from types import FrameType
from typing import TextIO

from fairduel.errors import DamageWarning, FairduelError
from fairduel.words import as_options, printable

_BAD_INPUT, _STOPPED, _TERMINATED = 2, 130, 143


def main() -> None:
    """Run the command.

    Wrong input prints one sentence and exits with code 2, what ``--fail-on`` names with 1, Ctrl-C with 130, and SIGTERM
    with 143.
    """
    signals: list[int] = []

    def terminate(number: int, _: FrameType | None) -> None:
        signals.append(number)
        raise KeyboardInterrupt  # handled the same way

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
        from fairduel.cli.command_list import app_for  # noqa: PLC0415  # needs the bench extra

        completes = "_FAIRDUEL_COMPLETE" in os.environ  # then the words are not in the arguments
        app = app_for(None if completes else sys.argv[1:])
    except ModuleNotFoundError as error:
        return _fail(f"the command needs {error.name}: run  pip install 'fairduel[bench]'", _BAD_INPUT)
    try:
        app()
    except SystemExit as ended:
        if ended.code == _STOPPED:  # typer's exit code for Ctrl-C
            raise KeyboardInterrupt from None
        raise
    except FairduelError as error:
        return _fail(str(error), getattr(error, "exit_code", _BAD_INPUT))
    return 0


def _show_warning(  # the arguments of warnings.showwarning
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print fairduel's own warnings as one sentence, and those of libraries as Python does."""
    text = f"fairduel: {printable(str(message))}\n" if issubclass(category, DamageWarning) else None
    (file or sys.stderr).write(text or warnings.formatwarning(message, category, filename, lineno, line))


def _fail(sentence: str, code: int) -> int:
    sys.stderr.write(f"fairduel: {printable(as_options(sentence))}\n")
    return code
