"""Learners as arrays that are changed in place, M models side by side: what the compiled loops work on.

A twin is a NamedTuple of arrays with a first axis of M, named as in the learner's state, then its
settings; and a compiled `advance` that takes one report of one model with the very operations of the
readable learner, in their order. The twin of a learner stands in the file of the same name.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from untold.compiled import bitwise
from untold.core import Floats

__all__ = ["Twin", "advance", "counted", "fold", "rate", "twin", "twin_of"]


class Twin(NamedTuple):
    """How a kind of learner goes into arrays and out; `settings` of one without a twin are None."""

    arrays: type
    state: type
    settings: Callable[[Any], dict[str, float] | None]

    def pack(self, learner: object, states: Sequence[Any]) -> Any:
        """The states, side by side."""
        columns = {name: np.array([getattr(state, name) for state in states]) for name in states[0]._fields}
        return self.arrays(**columns, **(self.settings(learner) or {}))

    def unpack(self, arrays: Any, m: int) -> Any:
        """The state of model m."""
        entries = {name: getattr(arrays, name)[m] for name in self.state._fields}  # type: ignore[attr-defined]
        return self.state(**{k: v.item() if np.ndim(v) == 0 else v.copy() for k, v in entries.items()})


TWINS: dict[type, Twin] = {}


def advance(model: Any, m: int, g: Floats) -> None:
    """Takes report g of model m: compiled, one implementation per kind of arrays."""
    raise NotImplementedError


def twin(learner: type, state: type, settings: Callable[[Any], dict[str, float] | None]) -> Any:
    """Registers the decorated function as `advance` of the arrays it is annotated with."""

    def register(update: Any) -> Any:
        arrays = update.__annotations__["model"]
        TWINS[learner] = Twin(arrays, state, settings)
        compiled = bitwise(update)
        options = {"forceinline": True, "error_model": "numpy", "_nrt": False}

        @overload(advance, strict=False, jit_options=options)
        def choose(model: Any, m: Any, g: Any) -> Any:  # noqa: ARG001 (numba asks by name)
            if getattr(model, "instance_class", None) is arrays:
                return lambda model, m, g: compiled(model, m, g)  # noqa: PLW0108 (numba wants a function)
            return None

        return update

    return register


def twin_of(learner: object) -> Twin | None:
    """The twin of this learner, or None where it has none."""
    name = type(learner).__module__.replace(".learners.", ".kernels.")
    if type(learner) not in TWINS and name.startswith("untold.kernels.") and find_spec(name):
        import_module(name)
    found = TWINS.get(type(learner))
    return found if found and found.settings(learner) is not None else None


@bitwise
def rate(decay: float, t: float) -> float:
    """`Average.rate`."""
    return 1.0 if decay > 1e300 else (1.0 + decay) / (t + decay)


@bitwise
def fold(mean: Floats, w: Floats, rho: float) -> None:
    """`Average.fold`, in place."""
    if rho == 1.0:
        for j in range(w.size):
            mean[j] = w[j]
    else:
        for j in range(w.size):
            mean[j] = mean[j] + rho * (w[j] - mean[j])


@bitwise
def counted(model: Any, m: int) -> float:
    """t, with one more report counted and the point it answers averaged: how `PureLearner.step` begins."""
    model.t[m] += 1
    t = np.float64(model.t[m])
    fold(model.mean[m], model.w[m], rate(model.decay, t))
    return t
