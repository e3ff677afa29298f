"""The per-coordinate bettor in arrays: the twin of `untold.learners.coordinatewise`, dense and sparse.

A coordinate whose report is 0 is not touched, so a sparse report costs what its entries cost.
"""

from typing import NamedTuple

import numpy as np

from untold.compiled import bitwise
from untold.core import Floats, Ints
from untold.kernels.twins import twin
from untold.learners.coordinatewise import Coordinatewise, CoordinatewiseState
from untold.learners.magnitude import bet

__all__ = ["CoordinatewiseArrays", "advance_sparse"]


class CoordinatewiseArrays(NamedTuple):
    """M states, and the settings."""

    t: Ints
    w: Floats
    mean: Floats
    L: Floats
    V: Floats
    since: Floats
    b: float
    largest_bet: float
    scale: float
    decay: float


def _settings(learner: Coordinatewise) -> dict[str, float]:
    scale, decay = learner.scale, learner.average.decay
    return {"b": learner.b, "largest_bet": learner.largest_bet, "scale": scale, "decay": decay}


@bitwise
def _kept(decay: float, since: float, t: float) -> float:
    """`Coordinatewise._kept`."""
    if decay > 1e300:
        return 1.0 if since == t else 0.0
    rho = 1.0
    for k in range(np.int64(decay) + 1):
        rho *= (since + k) / (t + k)
    return rho


@bitwise
def _touch(model: CoordinatewiseArrays, m: int, j: int, g: float) -> None:
    w, mean, since = model.w[m], model.mean[m], model.since[m]
    t = np.float64(model.t[m])
    mean[j] = w[j] + (mean[j] - w[j]) * _kept(model.decay, since[j], t)
    since[j] = t
    model.L[m, j] -= g
    model.V[m, j] += g * g
    w[j] = bet(model.L[m, j], model.b + model.V[m, j], model.largest_bet, model.scale)


@twin(Coordinatewise, CoordinatewiseState, _settings)
def advance_coordinatewise(model: CoordinatewiseArrays, m: int, g: Floats) -> None:
    """`Coordinatewise.step`."""
    model.t[m] += 1
    for j in range(g.size):
        if g[j] != 0.0:
            _touch(model, m, j, g[j])


@bitwise
def advance_sparse(model: CoordinatewiseArrays, m: int, index: Ints, values: Floats) -> None:
    """`Coordinatewise.step_sparse`."""
    model.t[m] += 1
    for k in range(index.size):
        if values[k] != 0.0:
            _touch(model, m, index[k], values[k])
