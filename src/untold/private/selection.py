"""The price of tuning: releasing only the best of several private runs, their number drawn at random.

Each of K runs costs `base`; only the best by a score that is part of its output is released. With K random
the price does not grow with the number of runs as K·base would (Liu & Talwar 2019; Papernot & Steinke
2022). For K truncated negative binomial with shape η > −1 and parameter γ (η = 1 geometric, 0 logarithmic),
Papernot & Steinke, Theorem 2, for every λ > 1 and λ̂ ≥ 1::

    ε′(λ) = ε(λ) + (1+η)·[(1 − 1/λ̂)·ε(λ̂) + ln(1/γ)/λ̂] + ln E[K]/(λ−1)

so a pure ε becomes at most (2+η)ε (λ = λ̂ = ∞): three times ε for the geometric law, as Liu & Talwar found;
less where so few runs are expected that γ > 1/(1 + e^ε). λ̂ = 1 needs no curve: one run costs ε(λ). For
K Poisson with mean m ≥ 1, Theorem 6, with any δ̂ such that a run is (ε̂, δ̂)-private at e^ε̂ = 1 + 1/(λ−1)::

    ε′(λ) = ε(λ) + m·δ̂ + ln m/(λ−1)

Both are proved in ``proofs/accounting.md`` §5, the second with the outcome K = 0.
"""

import math

from untold.errors import AssumptionError, between, one_of, refuse
from untold.private.amounts import total
from untold.private.claim import Claim
from untold.private.classic import Pure
from untold.private.concentrated import RDP
from untold.private.conversions import convert

__all__ = ["expected_runs", "stopping", "tuning_price"]

LAWS = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}
LARGEST = 700.0
"""Of ln(1/γ), so that 1/γ is a float."""


def _mean(shape: float, fall: float) -> float:
    """E[K] with fall = ln(1/γ): (e^fall − 1)/fall, the logarithmic law's, times s/(1 − e^−s), s = η·fall."""
    s = shape * fall
    return math.expm1(fall) / fall * (s / -math.expm1(-s) if s else 1.0)


def expected_runs(shape: float, gamma: float) -> float:
    """E[K] of the truncated negative binomial law (Papernot & Steinke 2022, Definition 1).

    >>> round(expected_runs(1.0, 0.25), 4), round(expected_runs(0.0, 0.25), 4)
    (4.0, 2.164)
    """
    return _mean(shape, -math.log(gamma)) if gamma < 1 else 1.0


def stopping(shape: float, runs: float) -> float:
    """The γ with which the law of this shape has mean `runs`.

    >>> stopping(1.0, 4.0)
    0.25
    """
    return 1 / runs if shape == 1 else math.exp(-_fall(shape, runs))


def _fall(shape: float, runs: float) -> float:
    """ln(1/γ). As 1 + (1+η)·fall/2 ≤ E[K] ≤ e^(max(1, 1+η)·fall), the root has a bracket."""
    from scipy.optimize import brentq

    if shape == 1 or runs == 1:
        return math.log(runs)
    low = 0.999 * math.log(runs) / max(1.0, 1 + shape)
    high = min(1.001 * 2 * (runs - 1) / (1 + shape), LARGEST)
    if low > LARGEST or _mean(shape, high) < runs:
        raise refuse("runs", runs, of="stopping", allowed=f"a mean that shape {shape:g} can reach in floats")
    return float(brentq(lambda fall: math.log(_mean(shape, fall) / runs), low, high, xtol=1e-15 * low))


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
    curve = convert(base, RDP)
    if curve is None:
        raise AssumptionError(
            f"the price of tuning needs a Rényi curve or a pure guarantee. Got {type(base).__name__}.",
            hint="give the mechanism's own zCDP, Gaussian, Rényi or pure guarantee instead of its (ε, δ).",
        )
    if max(curve.orders) == 1:
        raise refuse("orders", curve.orders, of="tuning_price", allowed="above 1 somewhere")
    if shape == math.inf:
        extra = [runs * base.delta(math.log1p(1 / (order - 1))) for order in curve.orders if order > 1]
        return _with_terms(curve, extra, runs).assuming(assumption)
    fall = _fall(shape, runs)  # of all λ̂ the best; λ̂ = 1 costs `fall` whatever the curve
    hats = [(1 - 1 / hat) * value + fall / hat for hat, value in curve.curve if hat > 1]
    fixed = (1 + shape) * min(fall, *hats)
    if isinstance(base, Pure):
        return Pure(total(base.level, fixed), **base.common()).assuming(assumption)
    return _with_terms(curve, [fixed] * len(hats), runs).assuming(assumption)


def _with_terms(curve: RDP, extra: list[float], runs: float) -> RDP:
    """ε(λ) + extra + ln E[K]/(λ−1) at every order above 1."""
    kept = [pair for pair in curve.curve if pair[0] > 1]
    values = [v + more + math.log(runs) / (a - 1) for (a, v), more in zip(kept, extra, strict=True)]
    return RDP(tuple(a for a, _ in kept), tuple(values), **curve.common())
