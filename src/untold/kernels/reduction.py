"""The black-box reduction in arrays: the twin of `untold.learners.reduction`, conjugate prior and p = 2."""

from typing import NamedTuple

from untold.convex.lanes import inner, square
from untold.core import Floats, Ints
from untold.kernels.direction import turn
from untold.kernels.twins import counted, twin
from untold.learners.magnitude import bet
from untold.learners.priors import Conjugate
from untold.learners.reduction import Reduction, ReductionState

__all__ = ["ReductionArrays"]


class ReductionArrays(NamedTuple):
    """M states, and the settings."""

    t: Ints
    w: Floats
    mean: Floats
    v: Floats
    z: Floats
    L: Floats
    V: Floats
    S: Floats
    b: float
    largest_bet: float
    scale: float
    decay: float


def _settings(learner: Reduction) -> dict[str, float] | None:
    prior, C = learner.prior, learner.largest_bet
    if learner.p != 2 or not isinstance(prior, Conjugate):
        return None
    return {"b": prior.b, "largest_bet": C, "scale": prior.scale(C), "decay": learner.average.decay}


@twin(Reduction, ReductionState, _settings)
def advance_reduction(model: ReductionArrays, m: int, g: Floats) -> None:
    """`Reduction.step`."""
    w, z = model.w[m], model.z[m]
    counted(model, m)
    s = inner(z, g)
    model.L[m] -= s
    model.V[m] += s * s
    model.S[m] += square(g)
    turn(z, g, model.S[m])
    v = bet(model.L[m], model.b + model.V[m], model.largest_bet, model.scale)
    model.v[m] = v
    for j in range(w.size):
        w[j] = v * z[j]
