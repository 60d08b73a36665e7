"""The command in a process of its own, which may be killed."""

import atexit
import os
import sys
import threading
import traceback

from fairduel.cli import main


def run_command(folder, arguments, environment):
    """Run ``fairduel`` in ``folder``, and in a session of its own, by which all that it starts can be found."""
    os.setsid()
    os.chdir(folder)
    os.environ.update(environment)
    sys.stdout = sys.stderr = (folder / "output.txt").open("w")
    sys.argv = ["fairduel", *arguments]
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:  # noqa: BLE001  # the test reads it
        traceback.print_exc()
    finally:  # end as a command does, not as a process of multiprocessing, which waits for its children
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)
