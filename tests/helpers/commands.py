"""The command in a process of its own, which may be killed."""

import os
import sys

from fairduel.cli import main


def run_command(folder, arguments, environment):
    """Run ``fairduel`` in ``folder``, and in a session of its own, by which all that it starts can be found."""
    os.setsid()
    os.chdir(folder)
    os.environ.update(environment)
    sys.stdout = sys.stderr = (folder / "output.txt").open("w")
    sys.argv = ["fairduel", *arguments]
    main()
