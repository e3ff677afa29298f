"""Averages of the points a learner played, one number at a time.

    w̄ₜ = w̄ₜ₋₁ + ρₜ(wₜ − w̄ₜ₋₁),   ρₜ = (1 + p)/(t + p)

p = 0 is the uniform average, p = 1 weighs wₜ by 2t/(T(T+1)), p → ∞ is the last iterate; for whole p the
weight of wₜ is ∝ t(t+1)…(t+p−1). Ohad Shamir and Tong Zhang (2013), "Stochastic gradient descent for
non-smooth optimization", §4 (polynomial-decay averaging); Simon Lacoste-Julien, Mark Schmidt and Francis
Bach (2012) for p = 1.
"""

import math
from dataclasses import dataclass

from untold.core import Floats
from untold.errors import between

__all__ = ["LAST", "LINEAR", "UNIFORM", "Average"]


@dataclass(frozen=True)
class Average:
    """The average with weights ∝ tᵖ, p = `decay`.

    >>> import numpy as np
    >>> mean = np.zeros(1)
    >>> for t, w in enumerate([1.0, 2.0, 3.0], start=1):
    ...     mean = Average(decay=1.0).fold(mean, np.array([w]), t)
    >>> float(mean[0])  # (1·1 + 2·2 + 3·3)/6
    2.333333333333333
    """

    decay: float = 0.0

    def __post_init__(self) -> None:
        between("decay", self.decay, 0.0, math.inf, of="Average")

    def rate(self, t: int) -> float:
        """ρₜ: the share of the t-th point, t ≥ 1, among the first t."""
        return 1.0 if self.decay == math.inf else (1.0 + self.decay) / (t + self.decay)

    def fold(self, mean: Floats, w: Floats, t: int) -> Floats:
        """The average of t points, from that of the first t − 1 and the t-th."""
        rho = self.rate(t)
        return w if rho == 1.0 else mean + rho * (w - mean)


UNIFORM = Average(0.0)
LINEAR = Average(1.0)
LAST = Average(math.inf)
