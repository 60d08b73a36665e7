"""The command ``fairduel``: thin; all work is done by the library below it."""

import sys

from fairduel.errors import FairduelError

_WRONG, _STOPPED = 2, 130


def main() -> None:
    """Run the command; what a user did wrong is one sentence and exit code 2, Ctrl-C is one and exit code 130."""
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        sys.exit(_fail("stopped.", _STOPPED))


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


def _fail(sentence: str, code: int) -> int:
    sys.stderr.write(f"fairduel: {sentence}\n")
    return code
