"""The command ``fairduel``: thin; all work is done by the library below it."""

import sys

from fairduel.errors import FairduelError


def main() -> None:
    """Run the command; what a user did wrong is one sentence and exit code 2, Ctrl-C is exit code 130."""
    try:
        from fairduel.cli.app import app  # noqa: PLC0415  # the extra may be missing
        from fairduel.cli.options import StoppedError  # noqa: PLC0415
    except ModuleNotFoundError as error:
        sys.exit(_fail(f"the command needs {error.name}: install it with  pip install 'fairduel[bench]'"))
    try:
        app()
    except StoppedError as error:
        _fail(str(error))
        sys.exit(130)
    except FairduelError as error:
        sys.exit(_fail(str(error)))


def _fail(sentence: str) -> int:
    sys.stderr.write(f"fairduel: {sentence}\n")
    return 2
