"""Privacy amplification by shuffling: n local reports whose senders nobody can tell apart.

**The clones** (Feldman, McMillan & Talwar 2021, Theorem 3.2). With probability p every other person's report
is a clone: a fair coin decides whether it looks like the victim's with input x₀ or with input x₁. Shuffled
reports are no easier to tell apart than the number of lookalikes of each sort::

    C ~ Bin(n−1, p),  A ~ Bin(C, ½),  B ~ Bernoulli(e^ε₀/(1+e^ε₀))
    P = (A + B, C − A + 1 − B)        Q = (A + 1 − B, C − A + B)

p = e^−ε₀ holds for *every* ε₀-local randomiser and is proved in ``proofs/shuffling.md``. p = 2/(e^ε₀+1)
holds where everybody's input is one of two (there is a third person's worth of doubt otherwise: the same p
was claimed for all randomisers by Feldman, McMillan & Talwar 2023, and withdrawn in their erratum).

**The interval.** δ(ε) = Σ_c Pr[C = c]·δ_c(ε), and δ_c falls with c, for one more coin is one more
post-processing. So over a run of c's its values at the two ends bound it from above and from below; the
ends of the sums are an interval that holds the pair's δ, whatever the grid. A guarantee uses the upper end.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from untold.core import Floats, Relation, Unit
from untold.errors import AssumptionError, between, one_of, positive, whole
from untold.private.amounts import nudged
from untold.private.claim import Claim
from untold.private.classic import Approximate, Pure
from untold.private.conversions import convert

__all__ = ["Interval", "clone_delta", "clone_epsilon", "closed_form_epsilon", "shuffled"]

Inputs = Literal["any", "two"]

GRID = 2000
"""Runs of c's on which δ_c is bounded by its ends."""
REACH = 20.0
"""Standard deviations of C covered finely; what lies beyond is one run on each side."""
ROUNDING = 1e-8
"""Relative error allowed to δ_c: SciPy's binomials have 4e-12, and their difference loses two digits."""


class Interval(NamedTuple):
    """Two numbers with the true one between them."""

    lower: float
    upper: float


class _Runs(NamedTuple):
    """Runs first ≤ c ≤ last that cover 0 … n−1, and the probability of each."""

    first: Floats
    last: Floats
    mass: Floats


@lru_cache(maxsize=8)
def _runs(n: int, p: float) -> _Runs:
    from scipy.stats import binom

    mean, spread = (n - 1) * p, math.sqrt((n - 1) * p * (1 - p))
    low, high = max(0.0, mean - REACH * spread), min(n - 1.0, mean + REACH * spread + REACH)
    first = np.unique(np.floor([0.0, *np.linspace(low, high, GRID)]))
    last = np.append(first[1:] - 1, n - 1.0)
    below = binom.cdf(last, n - 1, p) - binom.cdf(first - 1, n - 1, p)
    above = binom.sf(first - 1, n - 1, p) - binom.sf(last, n - 1, p)
    return _Runs(first, last, np.where(first < mean, below, above))


def _clone_deltas(epsilon: float, level: float, c: Floats) -> Floats:
    """δ_c(ε): P beats e^ε·Q exactly where the second count is less than φ(c+1), the first k or more.

    There the difference is u·Pr[Bin(c,½) = k−1] − (e^ε−1)·Pr[Bin(c,½) ≥ k].
    """
    from scipy.stats import binom

    u = -math.expm1(epsilon - level) / (1 + math.exp(-level))
    phi = u / math.tanh(level / 2) / (1 + math.exp(epsilon))  # positive, however large ε: never 1 − (1 − φ)
    k = c + 2 - np.ceil(phi * (c + 1))
    gain = u * binom.pmf(k - 1, c, 0.5) - math.expm1(epsilon) * binom.sf(k - 1, c, 0.5)
    return np.asarray(np.maximum(0.0, gain))


def _clone_probability(level: float, inputs: Inputs) -> float:
    return math.exp(-level) if inputs == "any" else 2 / (math.exp(level) + 1)


def _checked(level: float, n: int, inputs: str) -> tuple[float, int]:
    one_of("inputs", inputs, ("any", "two"), of="shuffling")
    return between("level", level, 0, 50, of="shuffling", ends="(]"), whole("n", n, of="shuffling")


def clone_delta(epsilon: float, level: float, n: int, inputs: Inputs = "any") -> Interval:
    """An interval that holds δ(ε) of the clone pair for n reports of a `level`-local randomiser.

    >>> low, high = clone_delta(0.2, 1.0, 10_000)
    >>> 0 < low < high < 1.0001 * low
    True
    """
    level, n = _checked(level, n, inputs)
    epsilon = between("epsilon", epsilon, 0, math.inf, of="clone_delta")
    if epsilon >= level:
        return Interval(0.0, 0.0)
    runs = _runs(n, _clone_probability(level, inputs))
    upper = float(runs.mass @ _clone_deltas(epsilon, level, runs.first))
    lower = float(runs.mass @ _clone_deltas(epsilon, level, runs.last))
    return Interval(min(1.0, lower) * (1 - ROUNDING), min(1.0, upper * (1 + ROUNDING)))


def clone_epsilon(level: float, n: int, delta: float, inputs: Inputs = "any") -> Interval:
    """An interval that holds the smallest ε at which the clone pair is (ε, δ)-indistinguishable.

    >>> low, high = clone_epsilon(4.0, 100_000, 1e-6)
    >>> round(low, 4), round(high, 4)
    (0.1698, 0.1698)
    """
    level, n = _checked(level, n, inputs)
    delta = between("delta", delta, 0, 1, of="clone_epsilon", ends="()")

    def excess(epsilon: float, end: int) -> float:
        return math.log(max(5e-324, clone_delta(epsilon, level, n, inputs)[end])) - math.log(delta)

    upper = _root(lambda epsilon: excess(epsilon, 1), level)
    upper = nudged(upper, 1e-10 * level, lambda e: e >= level or excess(e, 1) <= 0)
    lower = _root(lambda epsilon: excess(epsilon, 0), level)
    lower = nudged(lower, -1e-10 * lower, lambda e: e <= 0 or excess(e, 0) >= 0)
    return Interval(max(0.0, lower), min(level, upper))


def _root(excess: Callable[[float], float], level: float) -> float:
    """Where a decreasing function of ε meets 0: 0 if it is below already, for at `level` it always is."""
    from scipy.optimize import brentq

    return float(brentq(excess, 0.0, level, xtol=1e-300, rtol=1e-10)) if excess(0.0) > 0 else 0.0


def closed_form_epsilon(level: float, n: int, delta: float) -> float:
    """The closed form of Feldman, McMillan & Talwar (2021), Theorem 3.1; `level` itself where it is silent.

    For planning: two to four times `clone_epsilon`. ε = ln(1 + tanh(ε₀/2)·(8√(e^ε₀·ln(4/δ)/n) + 8e^ε₀/n))
    for ε₀ ≤ ln(n/(16·ln(2/δ))).

    >>> round(closed_form_epsilon(4.0, 100_000, 1e-6), 4)
    0.5346
    """
    level, n = _checked(level, n, "any")
    delta = between("delta", delta, 0, 1, of="closed_form_epsilon", ends="()")
    if math.exp(level) > n / (16 * math.log(2 / delta)):
        return level
    spread = 8 * math.sqrt(math.exp(level) * math.log(4 / delta) / n) + 8 * math.exp(level) / n
    return min(level, math.log1p(math.tanh(level / 2) * spread))


def shuffled(claim: Claim, n: int, delta: float, inputs: Inputs = "any") -> Approximate:
    """What n such reports guarantee each sender once a shuffler has hidden who sent which.

    `inputs="two"` where everybody's input is one of two values, and only then.

    >>> report = Pure(1.0, relation=Relation.REPLACE_ONE, unit=Unit.REPORT)
    >>> print(shuffled(report, 10_000, 1e-6).assuming())
    ε = 0.0..., δ = 1e-06: approximate differential privacy, replace-one, per report; assumes ...
    """
    pure = convert(claim, Pure)
    if pure is None or pure.relation != Relation.REPLACE_ONE or pure.unit is not Unit.REPORT:
        raise AssumptionError(
            "shuffling amplifies pure replace-one guarantees per report only.",
            hint="a local randomiser with δ > 0 needs another theorem.",
        )
    epsilon = clone_epsilon(positive("level", pure.level, of="shuffled"), n, delta, inputs).upper
    common = pure.common() | {"citation": "Feldman, McMillan & Talwar (2021), Theorem 3.2"}
    two = ("everybody's input is one of the same two values",) if inputs == "two" else ()
    return Approximate(epsilon, delta, **common).assuming(
        "a trusted shuffler hides who sent which report",
        f"all {n} people use this very randomiser and {n - 1} of them do so honestly",
        *two,
    )
