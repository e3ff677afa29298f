"""How long the steps of a descent are: ηₜ from t and S = Σ‖g̃‖², the report of round t counted.

==================== ============================== ===============================================
rule                 ηₜ                             from
==================== ============================== ===============================================
`Constant`           η                              S4 §12.2; see its constructors
`InverseRoot`        c/√t                           S1 Theorem 2 (Shamir and Zhang 2013): c = ‖C‖₂/L
`StronglyConvex`     1/(λt), or 2/(λ(t+1))          S4 §12.2.4; the second with the average of weights ∝ t
`AdaGradNorm`        c/√(c₀ + S)                    Streeter and McMahan (2010); Ward, Wu and Bottou (2019)
==================== ============================== ===============================================

S1 is Gautam Kamath's lecture on private empirical risk minimisation, S4 Yu-Xiang Wang's on NoisyGD and
NoisySGD.
"""

import math
from dataclasses import dataclass
from typing import Protocol, Self

from untold.errors import between, positive, whole

__all__ = ["AdaGradNorm", "Constant", "InverseRoot", "Rule", "StronglyConvex"]


class Rule(Protocol):
    """ηₜ."""

    def rate(self, t: int, S: float) -> float: ...


@dataclass(frozen=True)
class Constant:
    """ηₜ = η.

    >>> Constant.convex_smooth(beta=1.0, distance=2.0, variance=4.0, horizon=100)
    Constant(eta=0.1)
    """

    eta: float

    def __post_init__(self) -> None:
        positive("eta", self.eta, of="Constant")

    @classmethod
    def nonconvex_smooth(cls, *, beta: float, gap: float, variance: float, horizon: int) -> Self:
        """min{1/β, √(2(f(x₁) − f*)/(β·variance·T))}; β of the sum, E‖noise‖² = variance."""
        noisy = positive("variance", variance, of="Constant") * positive("beta", beta, of="Constant")
        gap = positive("gap", gap, of="Constant")
        return cls(min(1 / beta, math.sqrt(2 * gap / (noisy * whole("horizon", horizon, of="Constant")))))

    @classmethod
    def convex_smooth(cls, *, beta: float, distance: float, variance: float, horizon: int) -> Self:
        """min{1/β, ‖x₁ − x*‖/√(variance·T)}."""
        noisy = positive("variance", variance, of="Constant") * whole("horizon", horizon, of="Constant")
        distance = positive("distance", distance, of="Constant")
        return cls(min(1 / positive("beta", beta, of="Constant"), distance / math.sqrt(noisy)))

    @classmethod
    def convex_lipschitz(cls, *, lipschitz: float, distance: float, variance: float, horizon: int) -> Self:
        """‖x₁ − x*‖/√((L² + variance)·T)."""
        energy = lipschitz**2 + between("variance", variance, 0, math.inf, of="Constant", ends="[)")
        distance = positive("distance", distance, of="Constant")
        return cls(distance / math.sqrt(energy * whole("horizon", horizon, of="Constant")))

    def rate(self, t: int, S: float) -> float:  # noqa: ARG002 (constant)
        """η."""
        return self.eta


@dataclass(frozen=True)
class InverseRoot:
    """ηₜ = c/√t.

    >>> InverseRoot(1.0).rate(4, 0.0)
    0.5
    """

    scale: float

    def __post_init__(self) -> None:
        positive("scale", self.scale, of="InverseRoot")

    def rate(self, t: int, S: float) -> float:  # noqa: ARG002 (known beforehand)
        """c/√t."""
        return self.scale / math.sqrt(t)


@dataclass(frozen=True)
class StronglyConvex:
    """ηₜ = 1/(λt), or 2/(λ(t+1)) where `weighted`: use it with the average of weights ∝ t.

    >>> StronglyConvex(0.5).rate(4, 0.0), StronglyConvex(0.5, weighted=True).rate(4, 0.0)
    (0.5, 0.8)
    """

    strength: float
    weighted: bool = False

    def __post_init__(self) -> None:
        positive("strength", self.strength, of="StronglyConvex")

    def rate(self, t: int, S: float) -> float:  # noqa: ARG002 (known beforehand)
        """1/(λt) or 2/(λ(t+1))."""
        return (2.0 if self.weighted else 1.0) / (self.strength * (t + 1 if self.weighted else t))


@dataclass(frozen=True)
class AdaGradNorm:
    """ηₜ = c/√(c₀ + Σ‖g̃‖²), 0 where nothing has been seen.

    >>> AdaGradNorm(1.0).rate(1, 4.0), AdaGradNorm(1.0).rate(1, 0.0)
    (0.5, 0.0)
    """

    scale: float
    start: float = 0.0

    def __post_init__(self) -> None:
        positive("scale", self.scale, of="AdaGradNorm")
        between("start", self.start, 0.0, math.inf, of="AdaGradNorm", ends="[)")

    def rate(self, t: int, S: float) -> float:  # noqa: ARG002 (the sum counts)
        """c/√(c₀ + S)."""
        return self.scale / math.sqrt(self.start + S) if self.start + S > 0 else 0.0
