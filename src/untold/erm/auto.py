"""`learn_privately`: central learning that asks for ε and nothing else.

============================================ ==========================================================
loss                                         goes to
============================================ ==========================================================
linear and Lipschitz, or of classes          `whitened_descent`
`Squared`, with a public range of labels     the same; residuals beyond 0.3 of the range count as that
any other                                    `noisy_gradient_descent`
linear, Lipschitz and smooth, at δ = 0       `objective_perturbation`, regularised for weights of about 2
============================================ ==========================================================

What those choose, they choose from public numbers or from what they have released. ε = ∞ asks for the
minimiser.
"""

import math
from typing import Any

import numpy as np

from untold.convex.losses import Huber, Squared
from untold.convex.losses_of_classes import Multinomial
from untold.convex.rows import Linear
from untold.core import Loss, Relation
from untold.erm.base import Asked, Curated, Fit
from untold.erm.gradient import noisy_gradient_descent
from untold.erm.objective import objective_perturbation
from untold.erm.open import minimiser
from untold.erm.whitened import whitened_descent
from untold.errors import AssumptionError, refuse
from untold.private.classic import Pure

__all__ = ["learn_privately", "range_of_labels"]

RESIDUAL = 0.3
"""Of the range of labels: where a residual of least squares stops to count in full."""
TYPICAL = 2.0
"""Of a weight, for rows of norm about 1: what a regularisation that nobody chose supposes."""


def range_of_labels(labels: object, *, of: str) -> float:
    """high − low.

    >>> range_of_labels((0.0, 5.0), of="this")
    5.0
    """
    try:
        low, high = (float(end) for end in labels)  # type: ignore[attr-defined]
        if -math.inf < low < high < math.inf:
            return high - low
    except (TypeError, ValueError):
        pass
    raise refuse("labels", labels, of=of, allowed="two numbers, the lower one first")


def learn_privately(
    data: Curated, loss: Loss, *, epsilon: float, delta: float = 1e-6,
    labels: tuple[float, float] | None = None, relation: Relation = Relation.ADD_OR_REMOVE_ONE,
    seed: int | None = None,
) -> Fit:  # fmt: skip
    """The model for (epsilon, delta); least squares ask for the public range of `labels` as well.

    Guarantee: Gaussian differential privacy per row, (epsilon, delta) exactly, for the relation named; at
    delta = 0 pure.

    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2)) / 4
    >>> fit = learn_privately(curated(X, np.sign(X[:, 0])), Logistic(), epsilon=1.0)
    >>> bool(fit.weights[0] > 3), round(fit.guarantee.epsilon(1e-6), 6)
    (True, 1.0)
    """
    of = "learn_privately"
    asked = Asked.checked(of, epsilon, delta, relation, seed, pure=True)
    spread = None if labels is None else range_of_labels(labels, of=of)
    if asked.epsilon == math.inf:
        return _open(data, loss, asked)
    given: dict[str, Any] = {
        "epsilon": asked.epsilon,
        "delta": asked.delta,
        "relation": asked.relation,
        "seed": seed,
    }
    if asked.delta == 0:
        ridge = _regularisation(data, loss, asked)
        return objective_perturbation(data, loss, regularisation=ridge, **given)
    if isinstance(loss, Squared) and spread is not None:
        return whitened_descent(data, Huber(delta=RESIDUAL * spread), **given)
    if isinstance(loss, Multinomial) or (isinstance(loss, Linear) and math.isfinite(loss.steepest)):
        return whitened_descent(data, loss, **given)
    if isinstance(loss, Squared):
        raise AssumptionError(
            f"`loss` of {of} must be Lipschitz. Got Squared.", hint="give `labels`, their public range."
        )
    return noisy_gradient_descent(data, loss, **given)


def _open(data: Curated, loss: Loss, asked: Asked) -> Fit:
    """The minimiser, or, of a loss with kinks, what descent gets to."""
    if isinstance(loss, Multinomial) or (isinstance(loss, Linear) and math.isfinite(loss.curvature)):
        claim = Pure(math.inf, **asked.common("", "the minimiser"))
        return Fit(minimiser(data, loss), claim, {"regularisation": 0.0})
    return noisy_gradient_descent(data, loss, epsilon=math.inf, relation=asked.relation, steps=1000)


def _regularisation(data: Curated, loss: Loss, asked: Asked) -> float:
    """λ = √d·s/TYPICAL: where the weights it takes away cost what the tilt, ‖b‖ ≈ d·s, adds; s = 2Δ/ε."""
    s = 2 * asked.reach(loss.lipschitz(data.row_norm)) / asked.epsilon
    return float(np.sqrt(max(1, data.dim))) * s / (TYPICAL * data.row_norm)
