import re
import subprocess
import sys

import pytest

from fairduel.cli import main


@pytest.fixture
def here(monkeypatch, capsys):
    """The command within this process, which saves its start; ``terminal`` makes stdout one, 80 columns wide."""

    def run(*arguments, cwd, terminal=False):
        monkeypatch.chdir(cwd)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
        monkeypatch.setattr(sys, "argv", ["fairduel", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        output, errors = (re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text) for text in capsys.readouterr())
        return subprocess.CompletedProcess(arguments, ended.value.code or 0, output, errors)

    return run
