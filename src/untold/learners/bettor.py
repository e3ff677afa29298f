"""The house learner: a bet in every direction at once, taxed by the noise it measures. It asks for T alone.

    g' = g̃ₜ·min(1, ℓ/‖g̃ₜ‖),   ℓ² = max(G², 4·Σ‖g'ₛ‖²/(t − 1))
    θ = −Σ g'ₛ,   ν = (Σ‖g'ₛ‖² before t)/((t−1)·d),   B₀ = ν·T·(1/λ − 1),   B = B₀ + ν·t + 2G²,   λ = ⅘/√d
    wₜ₊₁ = (A/B)·(B₀/B)^{d/2}·exp(‖θ‖²/2B)·θ,   A = c·√(G·T·σ),   σ = √(ν·T)

w is the gradient in θ of A·E exp(⟨v, θ⟩ − (t·ν + 2G²)‖v‖²/2), v ~ N(0, I/B₀): what a purse of A has become
that was spread over all bets v, where each round's noise takes its due. If reports are noise alone, ‖θ‖² is
chi-square with d degrees, and λ makes a deviation of it worth about e^{0.4}: evidence has to beat chance,
by less the larger d. A, what may be lost against w = 0, is the geometric mean of what the rows could lose,
G·T, and of what noise alone hides, σ. When more than T reports come, T is doubled. wₜ is weighed by t³.
A gradient is no longer than G: a report that is longer, and twice as long as reports have been, is shortened
to that, so that a few providers who ask for much more privacy than the others do not drown them; they count
for less.

E R(u) ≤ A + ‖u‖·√(B·ln(1 + ‖u‖²B/A'²)), A' = A·(B₀/B)^{d/2}, B as after T rounds: ``proofs/bettor.md``, for
a `variance`, a bound on the noise, that is given instead of measured; then no report is shortened.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from untold.compiled import bitwise
from untold.convex.lanes import square
from untold.core import Floats, Randomizer
from untold.errors import between, positive, whole
from untold.learners.average import Average
from untold.learners.base import PureLearner, longest, refuse_pair

__all__ = ["Bettor", "BettorState", "longest_square", "spread", "stretch"]

BOLDNESS = 0.8
PURSE = 0.35
STEEPEST = 50.0  # of the exponent: e⁵⁰ is a blow-up that no data asks for
CUBIC = Average(3.0)


class BettorState(NamedTuple):
    """θ, S = Σ‖g'‖², and T as it is now."""

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
def longest_square(S: float, before: float, G: float) -> float:
    """ℓ² after that many reports: the square of the longest one that is taken as it is.

    >>> longest_square(0.0, 0.0, 3.0), longest_square(50.0, 2.0, 3.0)
    (9.0, 100.0)
    """
    return max(G * G, 4.0 * (S / before)) if before > 0.0 else G * G


@bitwise
def stretch(square_of_theta: float, nu: float, t: float, T: float, G: float, d: float) -> float:
    """The f with w = f·θ; 0 where ν says nothing, or θ is beyond floats.

    >>> round(stretch(100.0, 1.0, 50.0, 100.0, 1.0, 1.0), 6)
    0.156787
    """
    if not 0.0 < nu < 1e300 or not square_of_theta < math.inf:
        return 0.0
    B0 = nu * T * spread(d)
    taken = nu * t + 2.0 * G * G
    B = B0 + taken
    purse = PURSE * math.sqrt(G * T * math.sqrt(nu * T))
    exponent = square_of_theta / (2.0 * B) - 0.5 * d * math.log1p(taken / B0)
    return purse / B * math.exp(min(exponent, STEEPEST))


@dataclass(frozen=True, kw_only=True)
class Bettor(PureLearner[BettorState]):
    """The house learner, for about `horizon` reports of means at most `bound`.

    Regret: A + ‖u‖·√(B·ln(1 + ‖u‖²B/A'²)) in expectation, for u fixed beforehand. Proved where `variance` is
    given: at least σ² + 2G², σ² the sub-Gaussian proxy of the noise in any direction. Where it is measured,
    the bound is checked numerically, for noise that outweighs the gradients and comes in no worse an order
    than chance: reports that are quiet first and loud later, or all in one direction, can break it.

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
    variance: float | None = None

    def __post_init__(self) -> None:
        whole("horizon", self.horizon, of="Bettor")
        positive("bound", self.bound, of="Bettor")
        if self.variance is not None:
            positive("variance", self.variance, of="Bettor")

    @classmethod
    def told(cls, randomizer: Randomizer, dim: int, *, horizon: int) -> Self:
        """With ν from what a randomiser says of its noise: the bound is then proved.

        >>> from untold import PrivUnitG
        >>> round(Bettor.told(PrivUnitG(1.0), 10, horizon=1000).variance, 2)
        9.42
        """
        G = longest(randomizer, dim)
        learner = cls(horizon=horizon, bound=G, variance=randomizer.subexponential(dim)[0] + 2.0 * G * G)
        learner.accept(randomizer, dim)
        return learner

    def _start(self, zeros: Floats) -> BettorState:
        return BettorState(0, zeros, zeros, zeros, 0.0, int(self.horizon))

    def _nu(self, S: float, t: int, d: int) -> float:
        """ν after t reports: that of the round before, so that it is known before the report comes."""
        return self.variance if self.variance is not None else S / (t * d) if t else 0.0

    def _update(self, state: BettorState, g: Floats) -> BettorState:
        T = state.horizon if state.t <= state.horizon else 2 * state.horizon
        energy, kept = square(g), 1.0
        if self.variance is None:
            limit = longest_square(state.S, float(state.t - 1), self.bound)
            if not energy <= limit:
                energy, kept = limit, math.sqrt(limit / energy)
        theta, nu = state.theta - kept * g, self._nu(state.S, state.t - 1, g.size)
        f = stretch(square(theta), nu, float(state.t), float(T), self.bound, float(g.size))
        w = f * theta if f else np.zeros(g.size)
        return state._replace(w=w, theta=theta, S=state.S + energy, horizon=T)

    def accept(self, randomizer: Randomizer, dim: int) -> None:
        """Needs ‖E g̃‖ ≤ bound; and no more noise than it was told of, if it was."""
        length = longest(randomizer, dim)
        if length > self.bound:
            why = f"it clips to {length:g}, above the learner's bound {self.bound:g}"
            refuse_pair(self, randomizer, why, hint=f"give the learner bound={length:g}.")
        if self.variance is None:
            return
        proxy, tail = randomizer.subexponential(dim)
        if tail > 0 or proxy + 2.0 * length**2 > self.variance:
            refuse_pair(self, randomizer, f"its noise is not sub-Gaussian within variance {self.variance:g}")

    def regret(self, state: BettorState, norm: float) -> float:
        """In expectation; see above for what is proved."""
        norm = between("norm", norm, 0.0, math.inf, of="Bettor.regret", ends="[)")
        d, T, t = state.w.size, state.horizon, max(1, state.t)
        nu = self._nu(state.S, t, d)
        if not nu < 1e300:
            return math.inf
        A = PURSE * math.sqrt(self.bound * T * math.sqrt(nu * T))
        taken, B0 = nu * t + 2.0 * self.bound**2, nu * T * spread(float(d))
        if not B0 > 0 or not norm > 0:
            return A
        odds = 2.0 * math.log(norm / A) + math.log(B0 + taken) + d * math.log1p(taken / B0)
        return A + norm * math.sqrt((B0 + taken) * (math.log1p(math.exp(-abs(odds))) + max(odds, 0.0)))
