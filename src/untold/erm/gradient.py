"""Noisy gradient descent, whole or in batches: a learner fed with noisy sums of clipped gradients.

    gₜ = (Σ_{i ∈ batch} clip(∇ℓᵢ(wₜ)) + σG·N(0, I))/m + (λ/n)·wₜ,   wₜ₊₁ = learner(w₁, g₁, …, wₜ, gₜ)

m is the public expected size of a batch. (Yu-Xiang Wang's (12.1) and section 12.3, with the sign corrected,
`docs/errata.md`.) The sum is exact in integers, noise is added once, after it, on the same grid. Whatever the
learner does with gₜ is post-processing: any learner will do, on any domain. ε = ∞ adds no noise and rounds
nothing: projected gradient descent, or, in batches, projected stochastic gradient descent.
"""

import math
from typing import Any

import numpy as np

from untold.core import Floats, Ints, Loss, Relation
from untold.erm.base import Asked, Curated, Fit
from untold.erm.batches import Batch, FullBatch
from untold.erm.readable import open_sum
from untold.erm.sums import GradientSums
from untold.errors import AssumptionError, between, positive, whole
from untold.learners.average import Average
from untold.learners.base import PureLearner
from untold.learners.bettor import Bettor
from untold.learners.descent import Descent
from untold.learners.rules import Constant
from untold.private import noise
from untold.private.claim import Claim
from untold.private.classic import Pure

__all__ = ["noisy_gradient_descent"]

OF = "noisy_gradient_descent"
CUBIC = Average(3.0)
FULL = FullBatch()
RELEASED = "the weights after every step"


def _bound(data: Curated, loss: Loss, clip: float | None) -> float:
    """G."""
    if clip is not None:
        return positive("clip", clip, of=OF)
    G = loss.lipschitz(data.row_norm)
    if math.inf > G:
        return G
    raise AssumptionError(
        f"`loss` of {OF} must be Lipschitz. Got {type(loss).__name__}.",
        hint="give a `clip`: the largest gradient that counts in full.",
    )


def _learner(data: Curated, loss: Loss, steps: int, G: float, ridge: float) -> PureLearner[Any]:
    """Steps of 1/β where the loss is smooth; otherwise the house learner, which needs no rate."""
    beta = loss.smoothness(data.row_norm) + ridge
    if beta < math.inf:
        return Descent(rule=Constant(1 / beta), average=CUBIC)
    return Bettor(horizon=steps, bound=G)


def _claim(batch: Batch, sigma: float, steps: int, n: int, asked: Asked) -> Claim:
    if sigma == 0:
        return Pure(math.inf, **asked.common(released=RELEASED))
    claim = batch.claim(sigma, steps, n, asked.relation)
    return asked.stamped(claim.assuming("the number of rows is public"))


def noisy_gradient_descent(
    data: Curated, loss: Loss, *, epsilon: float, delta: float = 1e-6, steps: int = 100, batch: Batch = FULL,
    learner: PureLearner[Any] | None = None, clip: float | None = None, regularisation: float = 0.0,
    relation: Relation = Relation.ADD_OR_REMOVE_ONE, seed: int | None = None,
) -> Fit:  # fmt: skip
    """Noisy gradient descent of so many steps, calibrated to (epsilon, delta); ∞ asks for no noise.

    Guarantee: what the batch says of its own sampling: μ-GDP, a loss distribution or a Rényi curve, per row.
    Every step is released, so the answer may be any function of them.

    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2)) / 4
    >>> fit = noisy_gradient_descent(curated(X, np.sign(X[:, 0])), Logistic(), epsilon=1.0)
    >>> bool(fit.weights[0] > 1), round(fit.guarantee.epsilon(1e-6), 6)
    (True, 1.0)
    """
    steps, n = whole("steps", steps, of=OF), max(1, data.count)
    asked = Asked.checked(OF, epsilon, delta, relation, seed)
    ridge = between("regularisation", regularisation, 0.0, math.inf, of=OF, ends="[)") / n
    sums = GradientSums(data, loss, _bound(data, loss, clip))
    learner = learner or _learner(data, loss, steps, sums.bound, ridge)
    sigma = batch.sigma(asked.epsilon, asked.delta, steps, n, asked.relation) if epsilon < math.inf else 0.0
    state = learner.start(math.prod(sums.shape))
    for _ in range(steps):
        w = learner.point(state)
        chosen = batch.draw(data.count, asked.source)
        total = _noisy_sum(sums, w.reshape(sums.shape), chosen, sigma, asked.source)
        state = learner.step(state, total / batch.expected(n) + ridge * w)
    report: dict[str, float | str] = {
        "steps": float(steps), "noise multiplier": sigma, "clip": sums.bound,
        "batch": repr(batch), "learner": repr(learner), "regularisation": regularisation,
    }  # fmt: skip
    weights = learner.answer(state).reshape(sums.shape)
    return Fit(weights, _claim(batch, sigma, steps, data.count, asked), report)


def _noisy_sum(
    sums: GradientSums, w: Floats, chosen: Ints | None, sigma: float, source: noise.Source
) -> Floats:
    """One release, flat; where there is no noise, of floats."""
    if sigma == 0:
        return open_sum(sums, w, chosen).ravel()
    total = sums(w, chosen).ravel()
    noisy = total + noise.gaussian(total.size, sigma * sums.steps, source)
    return np.asarray(noisy * sums.grid, dtype=np.float64)
