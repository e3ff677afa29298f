"""How untold compiles a function: one place for the flags, because the flags are part of the proofs.

``contract`` lets a·b + c be rounded once instead of twice, which only ever makes the error bounds of
``proofs/noise.md`` hold with more room. Nothing else is relaxed: no reassociation, no assumption that
values are finite. `summing` alone may reorder a sum: the bound it is used with holds for every order.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

__all__ = ["inlined", "kernel", "summing"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compiled on first use, kept on disk, run without the interpreter's lock."""
    options = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    return cast("F", njit(**options)(function))


def inlined(function: F) -> F:
    """A kernel that becomes part of its caller, with its own flags."""
    options = {"error_model": "numpy", "fastmath": {"contract"}, "forceinline": True}
    return cast("F", njit(**options)(function))


def summing(function: F) -> F:
    """A kernel whose sums may be taken in any order."""
    flags = {"contract", "reassoc", "nsz"}
    return cast("F", njit(cache=True, nogil=True, error_model="numpy", fastmath=flags)(function))
