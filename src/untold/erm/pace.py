"""How far a descent through noise goes before it stops, from public numbers and what it was told.

A path of wₜ₊₁ = wₜ − η(∇f + noise), S = Ση, meets in a direction of curvature k noise of density s²S; the
mean over its last half has, with x = kS, the variance (⅔s²S² as x → 0) ::

    s²S·(2/x)²·((1 − e^{−x/2})²(1 − e^{−x})/2k + S/2 − 2(1 − e^{−x/2})/k + (1 − e^{−x})/2k)

What has not been learnt of a loss whose slopes saturate falls like 1/(cS²) (seen on data, not proved); noise
in directions nobody has seen, a share r of what rows are, grows like c·r·s²S². They balance at
S ∝ r^{−¼}(cs)^{−½}; noise in seen directions does not grow with S.
"""

import math
from dataclasses import dataclass

__all__ = ["Pace", "tail_variance"]

FAR = 4.5  # of S where noise decides; chosen on public data sets, within ± 30 % of which little changes
FURTHEST = 75.0  # of S where it does not
BOLDEST = 0.3  # of the step, over the mean curvature
LEAST_UNSEEN = 0.02


def tail_variance(k: float, S: float) -> float:
    """Of the mean over the last half of a path, over s².

    >>> round(tail_variance(1e-9, 10.0), 3), round(tail_variance(1.0, 1e4), 3)
    (66.667, 2.0)
    """
    x = k * S
    if x < 1e-2:
        return 2 * S * S / 3
    half, whole = -math.expm1(-x / 2), -math.expm1(-x)
    return S * (2 / x) ** 2 * (half * half * whole / (2 * k) + S / 2 - 2 * half / k + whole / (2 * k))


@dataclass(frozen=True)
class Pace:
    """Of T = `steps` steps on losses of steepness L and curvature ≤ β; r is what is left unseen.

    >>> pace = Pace(steps=128, steepest=1.0, curvature=0.25, unseen=4.0)
    >>> round(pace.reach(0.1, 0.003)), round(pace.reach(0.1, 1e-9))
    (184, 474)
    """

    steps: int
    steepest: float
    curvature: float
    unseen: float

    def longest(self, c: float) -> float:
        """The longest step: no gradient step of 2/β climbs, and curvatures reach a few times their mean."""
        return max(2 / self.curvature, BOLDEST / c)

    def reach(self, c: float, s: float) -> float:
        """S, for mean curvature c and noise s."""
        margins = math.sqrt(self.steepest / (4 * self.curvature))
        noise = max(self.unseen, LEAST_UNSEEN) ** 0.25 * math.sqrt(c * s)
        balanced = FAR * margins / noise if noise > 0 else math.inf
        return min(balanced, FURTHEST / math.sqrt(c * self.curvature), self.steps * self.longest(c))
