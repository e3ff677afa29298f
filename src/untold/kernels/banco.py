"""BANCO in arrays: the twin of `untold.learners.banco`, for p = 2."""

from typing import NamedTuple

from untold.convex.lanes import inner, square
from untold.core import Floats, Ints
from untold.kernels.direction import turn
from untold.kernels.twins import counted, twin
from untold.learners.banco import Banco, BancoState
from untold.learners.magnitude import bet

__all__ = ["BancoArrays"]


class BancoArrays(NamedTuple):
    """M states, and the settings."""

    t: Ints
    w: Floats
    mean: Floats
    q: Floats
    x: Floats
    S: Floats
    y_step: float
    a: float
    decay: float


def _settings(learner: Banco) -> dict[str, float] | None:
    if learner.p != 2:
        return None
    return {"y_step": learner.y_step, "a": learner.a, "decay": learner.average.decay}


@twin(Banco, BancoState, _settings)
def advance_banco(model: BancoArrays, m: int, g: Floats) -> None:
    """`Banco.step`."""
    w, q = model.w[m], model.q[m]
    t = counted(model, m)
    model.x[m] -= inner(g, q)
    model.S[m] += square(g)
    turn(q, g, model.S[m])
    size = bet(model.x[m], t * model.y_step, model.a, 0.5 / model.a)
    for j in range(w.size):
        w[j] = size * q[j]
