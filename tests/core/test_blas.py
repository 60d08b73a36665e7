import shutil
import subprocess
import sys
from importlib.util import find_spec

from threadpoolctl import threadpool_info

from fairduel.core.blas import one_thread

BESIDE_IMPORTS = """
import sys, threading
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from fairduel.core.blas import one_thread

def load():
    for file in Path(sys.argv[1]).iterdir():
        module_from_spec(spec_from_file_location("_json", file))

loading = threading.Thread(target=load)
loading.start()
while loading.is_alive():
    with one_thread():
        pass
"""


def threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_every_blas_has_one_thread_inside_and_its_own_number_again_after():
    before = threads()
    with one_thread():
        assert before
        assert set(threads()) == {1}
    assert threads() == before


def test_it_never_waits_for_a_thread_that_imports(tmp_path):
    """As where a server analyses votes while the first picture loads its decoder; searching for BLAS then hangs."""
    module = find_spec("_json").origin
    for number in range(1000):
        shutil.copy(module, tmp_path / f"{number}.so")
    subprocess.run([sys.executable, "-c", BESIDE_IMPORTS, str(tmp_path)], check=True, timeout=60)
    shutil.rmtree(tmp_path)
