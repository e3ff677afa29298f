"""Noisy gradient descent, whole or in batches: a learner fed with noisy sums of clipped gradients.

    gₜ = (Σ_{i ∈ batch} clip(∇ℓᵢ(wₜ)) + σG·N(0, I))/m + (λ/n)·wₜ,   wₜ₊₁ = learner(w₁, g₁, …, wₜ, gₜ)

m is the public expected size of a batch. (Yu-Xiang Wang's (12.1) and section 12.3, with the sign corrected,
`docs/errata.md`.) The sum is exact in integers, noise is added once, after it, on the same grid. Whatever the
learner does with gₜ is post-processing: any learner will do. ε = ∞ adds no noise: projected gradient descent.
"""

import math
from typing import Any

import numpy as np

from untold.convex.clipping import L2Clip
from untold.core import Ints, Loss, Relation, Unit
from untold.erm.base import Curated, Fit
from untold.erm.batches import Batch, FullBatch
from untold.erm.sums import GradientSums
from untold.errors import AssumptionError, between, one_of, positive, whole
from untold.learners.average import Average
from untold.learners.base import PureLearner
from untold.learners.bettor import Bettor
from untold.learners.descent import Descent
from untold.learners.rules import Constant
from untold.private import noise
from untold.private.claim import Claim
from untold.private.classic import Pure

__all__ = ["noisy_gradient_descent"]

CUBIC = Average(3.0)
FULL = FullBatch()


def _clip(data: Curated, loss: Loss, clip: float | None) -> L2Clip:
    if clip is not None:
        return L2Clip(positive("clip", clip, of="noisy_gradient_descent"))
    G = loss.lipschitz(data.row_norm)
    if not math.inf > G:
        raise AssumptionError(
            f"`loss` of noisy_gradient_descent must be Lipschitz. Got {type(loss).__name__}.",
            hint="give a `clip`: the largest gradient that counts in full.",
        )
    return L2Clip(G)


def _learner(data: Curated, loss: Loss, steps: int, G: float, ridge: float) -> PureLearner[Any]:
    """Steps of 1/β where the loss is smooth; otherwise the house learner, which needs no rate."""
    beta = loss.smoothness(data.row_norm) + ridge
    if beta < math.inf:
        return Descent(rule=Constant(1 / beta), average=CUBIC)
    return Bettor(horizon=steps, bound=G)


def _claim(
    batch: Batch, sigma: float, steps: int, data: Curated, relation: Relation, seed: int | None
) -> Claim:
    if sigma == 0:
        return Pure(math.inf, relation=relation, unit=Unit.ROW, released="the weights after the last step")
    claim = batch.claim(sigma, steps, data.count, relation).assuming("the number of rows is public")
    return claim.seed_stamped() if seed is not None else claim


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
    of = "noisy_gradient_descent"
    steps, n = whole("steps", steps, of=of), max(1, data.count)
    relation = Relation(one_of("relation", relation, list(Relation), of=of))
    epsilon = positive("epsilon", epsilon, of=of, infinite=True)
    delta = between("delta", delta, 0.0, 1.0, of=of, ends="()", hint="Gaussian noise has no δ = 0.")
    ridge = between("regularisation", regularisation, 0.0, math.inf, of=of, ends="[)") / n
    sums = GradientSums(data, loss, _clip(data, loss, clip))
    learner = learner or _learner(data, loss, steps, sums.clip.bound, ridge)
    sigma = batch.sigma(epsilon, delta, steps, n, relation) if epsilon < math.inf else 0.0
    source = None if seed is None else noise.seeded(whole("seed", seed, of=of, least=0))
    state = learner.start(data.dim)
    for _ in range(steps):
        w = learner.point(state)
        total = sums(w, batch.draw(data.count, source)) + _noise(w.size, sigma * sums.clip.steps, source)
        gradient = np.multiply(total, sums.clip.grid / batch.expected(n), dtype=np.float64) + ridge * w
        state = learner.step(state, gradient)
    report: dict[str, float | str] = {
        "steps": float(steps), "noise multiplier": sigma, "clip": sums.clip.bound,
        "batch": repr(batch), "learner": repr(learner), "regularisation": regularisation,
    }  # fmt: skip
    return Fit(learner.answer(state), _claim(batch, sigma, steps, data, relation, seed), report)


def _noise(dim: int, scale: float, source: noise.Source) -> Ints:
    return noise.gaussian(dim, scale, source) if scale > 0 else np.zeros(dim, dtype=np.int64)
