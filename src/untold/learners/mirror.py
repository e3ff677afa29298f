"""Scale-free mirror descent on a ball: the direction learner of BANCO and of the black-box reduction.

    θ = ∇ψ(wₜ) − ηₜ g̃ₜ,   wₜ₊₁ = ∇ψ*(θ)·min(1, B/‖∇ψ*(θ)‖ₚ),   ψ = ½‖·‖ₚ²,   ηₜ = B·√(p−1)/√(Σ‖g̃ₛ‖²_q)

p ∈ (1, 2], 1/p + 1/q = 1. For p = 2, B = 1 it is w − g̃/√(Σ‖g̃‖²), projected: BANCO's line 5 (Jun and Orabona
2019), and van der Hoeven (2019), Algorithm 2. Francesco Orabona and Dávid Pál (2018), "Scale-free
online learning".
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from untold.convex.lanes import square
from untold.core import Floats, Randomizer
from untold.errors import between, positive, refuse
from untold.learners.base import PureLearner

__all__ = ["MirrorDescent", "MirrorState", "p_norm", "turned"]


class MirrorState(NamedTuple):
    """S = Σ‖g̃‖²_q."""

    t: int
    w: Floats
    mean: Floats
    S: float


def p_norm(v: Floats, p: float) -> float:
    """‖v‖ₚ, in a fixed order for p = 2.

    >>> p_norm(np.array([3.0, 4.0]), 2.0)
    5.0
    """
    if p == 2:
        return math.sqrt(square(v))
    top = float(np.abs(v).max())  # powers of v/top neither overflow nor all vanish
    return top * float(np.linalg.norm(v / top, p)) if top else 0.0


def _link(v: Floats, p: float) -> Floats:
    """∇½‖v‖ₚ²."""
    size = p_norm(v, p)
    return np.sign(v) * (np.abs(v) / size) ** (p - 1) * size if size else v


def turned(w: Floats, g: Floats, S: float, p: float = 2.0, radius: float = 1.0) -> Floats:
    """wₜ₊₁ from wₜ, g̃ₜ and S, which already counts g̃ₜ.

    >>> turned(np.zeros(2), np.array([0.0, 2.0]), 4.0)
    array([ 0., -1.])
    """
    if not S > 0:
        return w
    eta = radius * math.sqrt(p - 1.0) / math.sqrt(S)
    half = w - eta * g if p == 2 else _link(_link(w, p) - eta * g, p / (p - 1))
    size = p_norm(half, p)
    return half if size <= radius else half * (radius / size)


@dataclass(frozen=True, kw_only=True)
class MirrorDescent(PureLearner[MirrorState]):
    """Descent in the ball ‖w‖ₚ ≤ radius at rates that need no scale.

    Regret: at most 3·radius·√(Σ‖g̃‖²_q)/√(p−1) against every u of the ball, surely; any noise whatever.

    >>> learner = MirrorDescent(radius=2.0)
    >>> state = learner.step(learner.start(2), np.array([3.0, 0.0]))
    >>> learner.point(state)
    array([-2.,  0.])
    """

    p: float = 2.0
    radius: float = 1.0

    def __post_init__(self) -> None:
        between("p", self.p, 1.0, 2.0, of="MirrorDescent", ends="(]")
        positive("radius", self.radius, of="MirrorDescent")

    def _start(self, zeros: Floats) -> MirrorState:
        return MirrorState(0, zeros, zeros, 0.0)

    def _update(self, state: MirrorState, g: Floats) -> MirrorState:
        size = p_norm(g, self.p / (self.p - 1))
        S = state.S + (square(g) if self.p == 2 else size * size)
        return state._replace(w=turned(state.w, g, S, self.p, self.radius), S=S)

    def accept(self, randomizer: Randomizer, dim: int) -> None:
        """Takes every randomiser: unbiased reports are all it needs."""

    def regret(self, state: MirrorState, norm: float) -> float:
        """Surely, for ‖u‖ₚ = norm ≤ radius."""
        if norm > self.radius:
            raise refuse(
                "norm", norm, of="MirrorDescent.regret", allowed=f"at most the radius {self.radius:g}"
            )
        return 3.0 * self.radius * math.sqrt(state.S / (self.p - 1.0))
