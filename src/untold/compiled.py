"""How untold compiles a function: one place for the flags, because the flags are part of the proofs.

``contract`` lets a·b + c be rounded once instead of twice, which only ever makes the error bounds of
``proofs/noise.md`` hold with more room. Nothing else is relaxed: no reassociation, no assumption that
values are finite. `summing` alone may reorder a sum: the bound it is used with holds for every order.
`bitwise` relaxes nothing at all: what a learner computes must not depend on where it was compiled into.

All but `kernel` are compiled without the counting of references (``_nrt=False``): they may not make
arrays, and a slice costs nothing. Counting cost a learner two thirds of its time.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

__all__ = ["bitwise", "inlined", "kernel", "loop", "summing"]

F = TypeVar("F", bound=Callable[..., Any])


@functools.cache
def source_stamp() -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of every source file of untold.

    Numba's disk cache looks only at the file a kernel stands in. A kernel holds code inlined from other
    files too, and must not outlive a change of theirs.
    """
    root = Path(__file__).parent
    stats = [(str(path.relative_to(root)), path.stat()) for path in sorted(root.rglob("*.py"))]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def _compiled(function: F, fastmath: set[str], **options: bool) -> F:
    made = njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath, **options)(function)
    made._cache._cache_file._source_stamp = source_stamp()
    return cast("F", made)


def kernel(function: F) -> F:
    """Compiled on first use, kept on disk, run without the interpreter's lock."""
    return _compiled(function, {"contract"})


def summing(function: F) -> F:
    """A kernel whose sums may be taken in any order."""
    return _compiled(function, {"contract", "reassoc", "nsz"}, _nrt=False)


def bitwise(function: F) -> F:
    """A kernel with the bits of the plain Python it is written in, called from Python or from a kernel."""
    return _compiled(function, set(), forceinline=True, _nrt=False)


def loop(function: F) -> F:
    """A `bitwise` kernel that is called once for many rows."""
    return _compiled(function, set(), _nrt=False)


def inlined(function: F) -> F:
    """A kernel that becomes part of its caller, with its own flags."""
    options = {"error_model": "numpy", "fastmath": {"contract"}, "forceinline": True, "_nrt": False}
    return cast("F", njit(**options)(function))
