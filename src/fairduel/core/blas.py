"""Matrix algebra on one thread."""

from contextlib import AbstractContextManager

import scipy.linalg  # noqa: F401  # loads its BLAS, so that it is found
from threadpoolctl import ThreadpoolController

# Looked for once, on import. Later, while another thread imports an extension module, the search could deadlock:
# each thread would hold what the other needs, the interpreter's lock or the dynamic loader's.
_BLAS = ThreadpoolController().select(user_api="blas")


def one_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread, from now on or in a ``with`` block.

    On matrices this small threads only wait for each other, and their number changes the last bits.
    """
    return _BLAS.limit(limits=1)  # type: ignore[no-any-return]
