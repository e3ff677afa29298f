"""BANCO, the betting algorithm for noisy coins: like the reduction, but told how noisy its coins are.

    x = −Σ⟨g̃ₛ, qₛ⟩,   y = t·(σ²/2 + G²),   mₜ₊₁ = (1/2a)·∫₋ₐᵃ β e^{βx − β²y} dβ,   a = min(k₁/G, 1/b)
    qₜ₊₁ = qₜ − g̃ₜ/√(Σ‖g̃ₛ‖²) projected onto the unit ball,   wₜ₊₁ = mₜ₊₁·qₜ₊₁

Kwang-Sung Jun and Francesco Orabona, "Parameter-free locally differentially private stochastic subgradient
descent", Algorithm 1 (its lost signs: `docs/errata.md`), and (2019) "Parameter-free online convex
optimization with sub-exponential noise" for the p-norms and k₁. Reports are (σ², b) sub-exponential in
every direction: E exp(β⟨ξ, a⟩) ≤ exp(β²σ²/2) for |β| ≤ 1/b, ‖a‖ = 1.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

from untold.convex.lanes import inner, square
from untold.core import Floats, Randomizer
from untold.errors import between, one_of, positive
from untold.learners.base import PureLearner, longest, refuse_pair
from untold.learners.magnitude import bet
from untold.learners.mirror import p_norm, turned
from untold.learners.priors import Uniform, conjugate_bound

__all__ = ["Banco", "BancoState"]

K1 = 0.6838


class BancoState(NamedTuple):
    """q, x and S = Σ‖g̃‖²_q; y is a multiple of t."""

    t: int
    w: Floats
    mean: Floats
    q: Floats
    x: float
    S: float


@dataclass(frozen=True, kw_only=True)
class Banco(PureLearner[BancoState]):
    """BANCO for reports of mean at most `bound` and (`variance`, `tail`) sub-exponential noise.

    Regret: sup_x ‖u‖·x − F(x, y) for the magnitude, 3‖u‖·√(Σ‖g̃‖²) for the direction; in expectation.

    >>> from untold import NormLaplace
    >>> tight = Banco.told(NormLaplace(epsilon=1.0), dim=10)
    >>> paper = Banco.told(NormLaplace(epsilon=1.0), dim=10, constants="paper")
    >>> round(tight.variance, 1), paper.variance
    (50.6, 1800.0)
    """

    variance: float
    tail: float
    bound: float = 1.0
    p: float = 2.0

    def __post_init__(self) -> None:
        between("variance", self.variance, 0.0, math.inf, of="Banco", ends="[)")
        between("tail", self.tail, 0.0, math.inf, of="Banco", ends="[)")
        positive("bound", self.bound, of="Banco")
        between("p", self.p, 1.0, 2.0, of="Banco", ends="(]")

    @classmethod
    def told(cls, randomizer: Randomizer, dim: int, constants: str = "tight", p: float = 2.0) -> Self:
        """With what a randomiser says of its noise ("tight"), or as printed for norm-Laplace ("paper").

        As printed: σ² = 18d²G²/ε² and b = 4G/ε (which the paper prints inverted).
        """
        (variance, tail), bound = randomizer.subexponential(dim), longest(randomizer, dim)
        if one_of("constants", constants, ("tight", "paper"), of="Banco") == "paper":
            epsilon = randomizer.guarantee.epsilon(0.0)
            variance, tail = 18.0 * (dim * bound / epsilon) ** 2, 4.0 * bound / epsilon
        told = cls(variance=variance, tail=tail, bound=bound, p=p)
        told.accept(randomizer, dim)
        return told

    @property
    def a(self) -> float:
        """The largest bet."""
        return min(K1 / self.bound, 1.0 / self.tail if self.tail else math.inf)

    @property
    def y_step(self) -> float:
        """What a round adds to y."""
        return self.variance / 2.0 + self.bound * self.bound

    def _start(self, zeros: Floats) -> BancoState:
        return BancoState(0, zeros, zeros, zeros, 0.0, 0.0)

    def _update(self, state: BancoState, g: Floats) -> BancoState:
        x = state.x - inner(g, state.q)
        size = 0.0 if self.p == 2 else p_norm(g, self.p / (self.p - 1))
        S = state.S + (square(g) if self.p == 2 else size * size)
        q = turned(state.q, g, S, self.p)
        m = bet(x, state.t * self.y_step, self.a, 0.5 / self.a)
        return state._replace(w=m * q, q=q, x=x, S=S)

    def accept(self, randomizer: Randomizer, dim: int) -> None:
        """Needs the noise it was told of, or less."""
        variance, tail = randomizer.subexponential(dim)
        if longest(randomizer, dim) > self.bound or variance > self.variance or tail > self.tail:
            told = f"bound {self.bound:g}, variance {self.variance:g}, tail {self.tail:g}"
            refuse_pair(self, randomizer, f"its noise exceeds {told}", "use Banco.told(randomizer, dim).")

    def regret(self, state: BancoState, norm: float) -> float:
        """In expectation, for ‖u‖ₚ = norm."""
        betting = conjugate_bound(Uniform(), state.t * self.y_step, self.a, norm)
        return betting + 3.0 * norm * math.sqrt(state.S / (self.p - 1.0))
