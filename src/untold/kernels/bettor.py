"""The house learner in arrays: the twin of `untold.learners.bettor`."""

import math
from typing import NamedTuple

import numpy as np

from untold.convex.lanes import moved, square
from untold.core import Floats, Ints
from untold.kernels.twins import counted, twin
from untold.learners.bettor import Bettor, BettorState, longest_square, stretch

__all__ = ["BettorArrays"]


class BettorArrays(NamedTuple):
    """M states, and the settings."""

    t: Ints
    w: Floats
    mean: Floats
    theta: Floats
    S: Floats
    horizon: Ints
    bound: float
    variance: float  # 0 where it is measured
    decay: float


def _settings(learner: Bettor) -> dict[str, float]:
    return {"bound": learner.bound, "variance": learner.variance or 0.0, "decay": learner.average.decay}


@twin(Bettor, BettorState, _settings)
def advance_bettor(model: BettorArrays, m: int, g: Floats) -> None:
    """`Bettor.step`."""
    w, theta = model.w[m], model.theta[m]
    t = counted(model, m)
    if model.t[m] > model.horizon[m]:
        model.horizon[m] *= 2
    energy, kept = square(g), 1.0
    if not model.variance > 0.0:
        limit = longest_square(model.S[m], t - 1.0, model.bound)
        if not energy <= limit:
            kept = math.sqrt(limit / energy)
            energy = limit
    T, d = np.float64(model.horizon[m]), np.float64(g.size)
    nu = model.S[m] / ((t - 1.0) * d) if t > 1.0 else 0.0
    nu = model.variance if model.variance > 0.0 else nu
    f = stretch(moved(kept, g, theta), nu, t, T, model.bound, d)
    model.S[m] += energy
    if f > 0.0:
        for j in range(w.size):
            w[j] = f * theta[j]
    else:
        w[:] = 0.0
