"""The price of tuning: releasing only the best of several private runs, their number drawn at random.

Each of K runs costs `base`; only the best by a score that is part of its output is released. With K random
the price does not grow with the number of runs as K·base would (Liu & Talwar 2019; Papernot & Steinke
2022). For K truncated negative binomial with shape η > −1 and parameter γ (η = 1 geometric, 0 logarithmic),
Papernot & Steinke, Theorem 2, for every λ > 1 and λ̂ ≥ 1::

    ε′(λ) = ε(λ) + (1+η)(1 − 1/λ̂)·ε(λ̂) + (1+η)·ln(1/γ)/λ̂ + ln E[K]/(λ−1)

so a pure ε becomes (2+η)ε: three times ε for the geometric law, as Liu & Talwar found. For
K Poisson with mean m, Theorem 6, with any δ̂ such that a run is (ε̂, δ̂)-private at e^ε̂ = 1 + 1/(λ−1)::

    ε′(λ) = ε(λ) + m·δ̂ + ln m/(λ−1)
"""

import math

import numpy as np

from untold.errors import AssumptionError, between, one_of, refuse
from untold.private.claim import Claim
from untold.private.classic import Pure
from untold.private.concentrated import RDP
from untold.private.conversions import convert

__all__ = ["expected_runs", "stopping", "tuning_price"]

LAWS = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}


def expected_runs(shape: float, gamma: float) -> float:
    """E[K] of the truncated negative binomial law (Papernot & Steinke 2022, Definition 1).

    >>> expected_runs(1.0, 0.25), round(expected_runs(0.0, 0.25), 4)
    (4.0, 2.164)
    """
    if gamma == 1:
        return 1.0
    if shape == 0:
        return (1 / gamma - 1) / -math.log(gamma)
    return shape * (1 - gamma) / gamma / -math.expm1(shape * math.log(gamma))


def stopping(shape: float, runs: float) -> float:
    """The γ with which the law of this shape has mean `runs`.

    >>> stopping(1.0, 4.0)
    0.25
    """
    from scipy.optimize import brentq

    if shape == 1 or runs == 1:
        return 1 / runs
    low, high = -math.log(runs) - 1, -1e-12
    if expected_runs(shape, math.exp(high)) >= runs:
        return math.exp(high)
    while low > -745 and expected_runs(shape, math.exp(low)) < runs:
        low *= 2
    if low <= -745:
        raise refuse("runs", runs, of="stopping", allowed=f"a mean that shape {shape:g} can reach in floats")
    return math.exp(brentq(lambda g: math.log(expected_runs(shape, math.exp(g)) / runs), low, high))


def tuning_price(base: Claim, runs: float, law: str | float = "geometric") -> Claim:
    """What it costs to release the best of K runs, E[K] = `runs`, each of which costs `base`.

    `law` is "geometric", "logarithmic", "poisson" or a shape η > −1 of the truncated negative binomial.
    Under the Poisson law K may be 0: then nothing is learnt, and that has to be released too.

    >>> from untold.core import Relation, Unit
    >>> one = Pure(0.5, relation=Relation.REPLACE_ONE, unit=Unit.ROW)
    >>> tuning_price(one, runs=20).epsilon(0.0)
    1.5
    """
    runs = between("runs", runs, 1, math.inf, of="tuning_price", ends="[)")
    if isinstance(law, str):
        shape = LAWS[one_of("law", law, LAWS, of="tuning_price")]
    else:
        shape = between("law", law, -1, math.inf, of="tuning_price", ends="(]")
    described = law if isinstance(law, str) else f"negative binomial (η = {law:g})"
    assumption = (
        f"the number of runs was drawn from a {described} law of mean {runs:g}, and the best alone is seen"
    )
    if isinstance(base, Pure) and shape < math.inf:
        return Pure((2 + shape) * base.level, **base.common()).assuming(assumption)
    curve = convert(base, RDP)
    if curve is None:
        raise AssumptionError(
            f"the price of tuning needs a Rényi curve or a pure guarantee. Got {type(base).__name__}.",
            hint="give the mechanism's own zCDP, Gaussian, Rényi or pure guarantee instead of its (ε, δ).",
        )
    priced = _poisson(base, curve, runs) if shape == math.inf else _negative_binomial(curve, shape, runs)
    return priced.assuming(assumption)


def _negative_binomial(curve: RDP, shape: float, runs: float) -> RDP:
    """Theorem 2, at the best λ̂ the curve has."""
    gamma = stopping(shape, runs)
    hats, values = np.array([pair for pair in curve.curve if pair[1] < math.inf]).reshape(-1, 2).T
    fixed = (1 + shape) * float(np.min((1 - 1 / hats) * values - math.log(gamma) / hats, initial=math.inf))
    mean = math.log(expected_runs(shape, gamma))
    kept = [(order, value + fixed + mean / (order - 1)) for order, value in curve.curve if order > 1]
    return RDP(tuple(o for o, _ in kept), tuple(v for _, v in kept), **curve.common())


def _poisson(base: Claim, curve: RDP, runs: float) -> RDP:
    """Theorem 6, with δ̂ from the base's own profile."""
    kept = [
        (order, value + runs * base.delta(math.log1p(1 / (order - 1))) + math.log(runs) / (order - 1))
        for order, value in curve.curve
        if 1 < order < math.inf
    ]
    if not kept:
        raise refuse("orders", curve.orders, of="tuning_price", allowed="above 1 and finite somewhere")
    return RDP(tuple(o for o, _ in kept), tuple(v for _, v in kept), **curve.common())
