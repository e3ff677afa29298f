"""Stochastic descent in arrays: the twin of `untold.learners.descent` without a constraint."""

import math
from typing import NamedTuple

from untold.compiled import bitwise
from untold.convex.domains import Everywhere
from untold.convex.lanes import square
from untold.core import Floats, Ints
from untold.kernels.twins import counted, twin
from untold.learners.descent import Descent, DescentState
from untold.learners.rules import AdaGradNorm, Constant, InverseRoot, StronglyConvex

__all__ = ["DescentArrays"]

CONSTANT, INVERSE_ROOT, STRONGLY_CONVEX, WEIGHTED, ADAGRAD = range(5)


class DescentArrays(NamedTuple):
    """M states, and the settings: the rule by its number and its two parameters."""

    t: Ints
    w: Floats
    mean: Floats
    S: Floats
    E: Floats
    eta: Floats
    rule: int
    scale: float
    start: float
    decay: float


def _settings(learner: Descent) -> dict[str, float] | None:
    rule = learner.rule
    if isinstance(rule, Constant):
        code, scale, start = CONSTANT, rule.eta, 0.0
    elif isinstance(rule, InverseRoot):
        code, scale, start = INVERSE_ROOT, rule.scale, 0.0
    elif isinstance(rule, StronglyConvex):
        code, scale, start = WEIGHTED if rule.weighted else STRONGLY_CONVEX, rule.strength, 0.0
    elif isinstance(rule, AdaGradNorm):
        code, scale, start = ADAGRAD, rule.scale, rule.start
    else:
        return None
    if learner.domain != Everywhere():
        return None
    return {"rule": code, "scale": scale, "start": start, "decay": learner.average.decay}


@bitwise
def _rate(model: DescentArrays, t: float, S: float) -> float:
    if model.rule == CONSTANT:
        return model.scale
    if model.rule == INVERSE_ROOT:
        return model.scale / math.sqrt(t)
    if model.rule == ADAGRAD:
        return model.scale / math.sqrt(model.start + S) if model.start + S > 0.0 else 0.0
    if model.rule == WEIGHTED:
        return 2.0 / (model.scale * (t + 1.0))
    return 1.0 / (model.scale * t)


@twin(Descent, DescentState, _settings)
def advance_descent(model: DescentArrays, m: int, g: Floats) -> None:
    """`Descent.step`."""
    w = model.w[m]
    t = counted(model, m)
    energy = square(g)
    model.S[m] += energy
    eta = _rate(model, t, model.S[m])
    model.E[m] += eta * energy
    model.eta[m] = eta
    for j in range(w.size):
        w[j] = w[j] - eta * g[j]
