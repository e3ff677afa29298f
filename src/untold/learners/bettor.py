"""The house learner: a bet in every direction at once, taxed by the noise it measures. It asks for T alone.

    θ = −Σ g̃ₛ,   ν = Σ‖g̃ₛ‖²/(t·d),   B₀ = ν·T·(1/λ − 1),   B = B₀ + ν·t,   λ = ⅘/√d
    wₜ₊₁ = (A/B)·(B₀/B)^{d/2}·exp(‖θ‖²/2B)·θ,   A = c·√(G·T·σ),   σ = √(ν·T)

w is the gradient in θ of A·E exp(⟨v, θ⟩ − t·ν‖v‖²/2), v ~ N(0, I/B₀): what a purse of A has become that was
spread over all bets v, where each round's noise takes its due. If reports are nothing but noise, ‖θ‖² is
chi-square with d degrees, and λ makes a deviation of it worth about e^{0.4}: evidence has to beat chance, by
less the larger d. A, what may be lost against w = 0, is the geometric mean of what the rows could lose, G·T,
and of what noise alone hides, σ. When more than T reports come, T is doubled. The answer weighs wₜ by t³.

Against any u, E R(u) ≤ A + ‖u‖·√(B·ln(1 + ‖u‖²B/A'²)), A' = A·(1 − λ)^{d/2}, B at t = T: proved in
``proofs/bettor.md`` where ν is a bound known beforehand, checked numerically with ν as measured.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from untold.compiled import bitwise
from untold.convex.lanes import square
from untold.core import Floats, Randomizer
from untold.errors import positive, whole
from untold.learners.average import Average
from untold.learners.base import PureLearner, refuse_pair

__all__ = ["Bettor", "BettorState", "spread", "stretch"]

BOLDNESS = 0.8
PURSE = 0.35
STEEPEST = 50.0  # of the exponent: e⁵⁰ is a blow-up that no data asks for
CUBIC = Average(3.0)


class BettorState(NamedTuple):
    """θ, S = Σ‖g̃‖², and T as it is now."""

    t: int
    w: Floats
    mean: Floats
    theta: Floats
    S: float
    horizon: int


@bitwise
def spread(d: float) -> float:
    """1/λ − 1, λ = ⅘/√d.

    >>> spread(1.0), spread(16.0)
    (0.25, 4.0)
    """
    return math.sqrt(d) / BOLDNESS - 1.0


@bitwise
def stretch(square_of_theta: float, S: float, t: float, T: float, G: float, d: float) -> float:
    """The f with w = f·θ; 0 before anything was seen.

    >>> round(stretch(100.0, 50.0, 50.0, 100.0, 1.0, 1.0), 6)
    0.165949
    """
    nu = S / (t * d)
    if not nu > 0.0:
        return 0.0
    rounds = T * spread(d)
    B = nu * (rounds + t)
    purse = PURSE * math.sqrt(G * T * math.sqrt(nu * T))
    exponent = square_of_theta / (2.0 * B) - 0.5 * d * math.log1p(t / rounds)
    return purse / B * math.exp(min(exponent, STEEPEST))


@dataclass(frozen=True, kw_only=True)
class Bettor(PureLearner[BettorState]):
    """The house learner, for about `horizon` reports of means at most `bound`.

    Regret: A + ‖u‖·√(B·ln(1 + ‖u‖²B/A'²)) in expectation; that ν may be measured is checked numerically.

    >>> import numpy as np
    >>> learner = Bettor(horizon=1000)
    >>> state = learner.start(2)
    >>> for _ in range(1000):
    ...     state = learner.step(state, np.array([0.0, -0.5]))
    >>> learner.point(state)[0].item(), bool(learner.point(state)[1] > 100)
    (0.0, True)
    """

    average: Average = CUBIC
    horizon: int
    bound: float = 1.0

    def __post_init__(self) -> None:
        whole("horizon", self.horizon, of="Bettor")
        positive("bound", self.bound, of="Bettor")

    def _start(self, zeros: Floats) -> BettorState:
        return BettorState(0, zeros, zeros, zeros, 0.0, int(self.horizon))

    def _update(self, state: BettorState, g: Floats) -> BettorState:
        T = state.horizon if state.t <= state.horizon else 2 * state.horizon
        theta, S = state.theta - g, state.S + square(g)
        w = stretch(square(theta), S, float(state.t), float(T), self.bound, float(g.size)) * theta
        return state._replace(w=w, theta=theta, S=S, horizon=T)

    def accept(self, randomizer: Randomizer, dim: int) -> None:  # noqa: ARG002 (in every dimension the same)
        """Needs ‖E g̃‖ ≤ bound; any unbiased noise of finite energy, however it differs between providers."""
        if randomizer.bound > self.bound:
            refuse_pair(
                self, randomizer, f"it clips to {randomizer.bound:g}, above the learner's {self.bound:g}",
                hint=f"give the learner bound={randomizer.bound:g}.",
            )  # fmt: skip

    def regret(self, state: BettorState, norm: float) -> float:
        """In expectation, with ν as measured."""
        d, T, t = state.w.size, state.horizon, max(1, state.t)
        nu = state.S / (t * d)
        A = PURSE * math.sqrt(self.bound * T * math.sqrt(nu * T))
        B = nu * (T * spread(d) + t)
        if not B > 0 or not norm > 0:
            return A
        kept = 0.5 * d * math.log1p(t / (T * spread(d)))  # −ln(A'/A)
        odds = 2.0 * math.log(norm / A) + math.log(B) + 2.0 * kept
        return A + norm * math.sqrt(B * (math.log1p(math.exp(-abs(odds))) + max(odds, 0.0)))
