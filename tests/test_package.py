import subprocess
import sys


def test_importing_the_library_brings_no_plotting_and_no_command():
    code = "import sys, fairduel; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"matplotlib", "polars", "rich", "typer", "joblib", "jinja2"})


def test_importing_the_library_compiles_nothing():
    code = (
        "from fairduel.simulation.whole_run import run; from fairduel.likelihood import newton;"
        "print(run.signatures, newton.signatures)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"
