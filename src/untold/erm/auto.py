"""`learn_privately`: central learning that asks for ε and nothing else.

Everything is chosen from public quantities: n, d, the loss, its constants, ε and δ. What decides is how loud
the noise of forty passes is beside the curvature that a direction has on average,

    ρ = d·σ₁·√40·L/(c·R·n)        σ₁ the noise multiplier of one pass that spends all of μ

L the Lipschitz constant, c the curvature, R the rows' norm. Where ρ is small, the noise allows more steps, a
bolder ridge and a better look at the second moment; where it is large, everything goes into few cautious
steps::

    steps = 40/√ρ in [20, 160],   caution = 2ρ in [0.3, 3],   share = 0.05/√ρ in [0.05, 0.15]

`preconditioned_descent` does the work where the loss is linear, Lipschitz and smooth and d² fits; otherwise
`noisy_gradient_descent`. The three rules were chosen on public data sets; a guarantee depends on none of it.
"""

import math
from typing import NamedTuple

from untold.convex.rows import Linear
from untold.core import Loss, Relation
from untold.erm.base import Curated, Fit
from untold.erm.gradient import noisy_gradient_descent
from untold.erm.preconditioned import preconditioned_descent
from untold.errors import between, one_of, positive
from untold.private.gaussian_profile import gdp_mu
from untold.private.noisy_sums import weight

__all__ = ["Choice", "choose", "learn_privately"]

WIDEST = 2000
"""Dimension up to which the second moment, d² numbers, is released and factored."""


class Choice(NamedTuple):
    """What `preconditioned_descent` is asked for."""

    steps: int
    share: float
    caution: float


def _within(value: float, low: float, high: float) -> float:
    return min(high, max(low, value))


def choose(
    *, n: int, d: int, lipschitz: float, curvature: float, row_norm: float, mu: float, weight_of_one: float
) -> Choice:
    """Steps, share and caution for that many rows and columns.

    >>> many = choose(n=10**6, d=10, lipschitz=1.0, curvature=0.25, row_norm=1.0, mu=0.2, weight_of_one=1.0)
    >>> few = choose(n=10**3, d=100, lipschitz=1.0, curvature=0.25, row_norm=1.0, mu=0.2, weight_of_one=1.0)
    >>> many.steps, few.steps, many.caution < few.caution
    (160, 20, True)
    """
    loudness = d * weight_of_one / mu * math.sqrt(40.0) * lipschitz / (curvature * row_norm * n)
    root = math.sqrt(max(loudness, 1e-12))
    return Choice(
        steps=round(_within(40.0 / root, 20.0, 160.0)),
        share=_within(0.05 / root, 0.05, 0.15),
        caution=_within(2.0 * loudness, 0.3, 3.0),
    )


def learn_privately(
    data: Curated, loss: Loss, *, epsilon: float, delta: float = 1e-6,
    relation: Relation = Relation.ADD_OR_REMOVE_ONE, seed: int | None = None,
) -> Fit:  # fmt: skip
    """The model for (epsilon, delta); nothing else is asked.

    Guarantee: Gaussian differential privacy per row, (epsilon, delta) exactly, for the relation named.

    >>> import numpy as np
    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2)) / 4
    >>> fit = learn_privately(curated(X, np.sign(X[:, 0])), Logistic(), epsilon=1.0)
    >>> bool(fit.weights[0] > 3), round(fit.guarantee.epsilon(1e-6), 6)
    (True, 1.0)
    """
    epsilon = positive("epsilon", epsilon, of="learn_privately", infinite=True)
    delta = between("delta", delta, 0.0, 1.0, of="learn_privately", ends="()", hint="it adds Gaussian noise.")
    relation = Relation(one_of("relation", relation, list(Relation), of="learn_privately"))
    if not isinstance(loss, Linear) or math.inf in {loss.steepest, loss.curvature} or data.dim > WIDEST:
        return noisy_gradient_descent(data, loss, epsilon=epsilon, delta=delta, relation=relation, seed=seed)
    mu = gdp_mu(epsilon, delta) if epsilon < math.inf else 1e12
    choice = choose(
        n=max(1, data.count), d=max(1, data.dim), lipschitz=loss.lipschitz(data.row_norm),
        curvature=loss.curvature, row_norm=data.row_norm, mu=mu, weight_of_one=weight(relation),
    )  # fmt: skip
    return preconditioned_descent(
        data, loss, epsilon=epsilon, delta=delta, relation=relation, seed=seed,
        steps=choice.steps, share=choice.share, caution=choice.caution,
    )  # fmt: skip
