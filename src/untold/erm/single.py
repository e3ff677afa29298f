"""Private stochastic projected gradient descent on one row at a time, exactly as a lecture prints it.

    σ² = 32L²n²·ln(n/δ)·ln(1/δ)/ε²
    for t = 1 … n²:  i uniform in [n],   θₜ = Π_C(θₜ₋₁ − η(t)·(n·∇ℓ(θₜ₋₁, xᵢ, yᵢ) + b)),  b ~ N(0, σ²I)
    η(t) = ‖C‖/(G√t),   G² = n²L² + dσ²;       return θ_{n²}

Gautam Kamath (2020), lecture 13, Algorithm 3, with the step of its Theorem 2 (Shamir and Zhang 2013); after
Raef Bassily, Adam Smith and Abhradeep Thakurta (2014). The lecture sums up its privacy as (ε, δ); what is
claimed here is what the accountant makes of n² steps on random subsets of one row with that σ, and the
lecture's ε stands beside it. It is for reference: whole passes reach further on the same noise.
"""

import math

import numpy as np

from untold.convex.domains import L2Ball
from untold.core import Domain, Floats, Loss, Relation
from untold.erm.base import Asked, Curated, Fit
from untold.erm.batches import SubsetBatch
from untold.erm.sums import GradientSums
from untold.errors import AssumptionError, DataError, positive
from untold.kernels.sums import residual_of
from untold.kernels.walk import walk
from untold.private import choices, noise

__all__ = ["one_row_descent"]

OF = "one_row_descent"
AT_ONCE = 1 << 12  # steps whose noise is drawn together
MOST = 1 << 14  # rows: their square is 2²⁸ steps
CITATION = "Kamath (2020), lecture 13, Algorithm 3"


def one_row_descent(
    data: Curated, loss: Loss, *, epsilon: float, delta: float = 1e-6, domain: Domain, seed: int | None = None
) -> Fit:
    """n² steps, each on one row, within a bounded `domain`; for a loss that is linear and Lipschitz.

    Guarantee: replace-one per row, the Rényi curve of n² noisy steps on random subsets of one row.

    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) / 4
    >>> data = curated(X, np.sign(X[:, 0]))
    >>> fit = one_row_descent(data, Logistic(), epsilon=8.0, domain=L2Ball(2.0), seed=1)
    >>> bool(np.linalg.norm(fit.weights) <= 2.0), fit.report["steps"]
    (True, 40000.0)
    """
    asked = Asked.checked(OF, epsilon, delta, Relation.REPLACE_ONE, seed)
    L, width = loss.lipschitz(data.row_norm), domain.diameter(data.dim)
    positive("epsilon", epsilon, of=OF, hint="noisy_gradient_descent takes ε = ∞.")
    if not (math.isfinite(L) and math.isfinite(width)):
        raise AssumptionError(f"`loss` of {OF} must be Lipschitz, and `domain` bounded.")
    if not 0 < data.count <= MOST:
        raise DataError(f"`data` of {OF} must have 1 to 2¹⁴ rows: their square is taken. Got {data.count}.")
    n, T = data.count, data.count**2
    multiplier = math.sqrt(32 * math.log(n / delta) * math.log(1 / delta)) / epsilon
    G = n * L * math.sqrt(1 + data.dim * multiplier**2)
    sums = GradientSums(data, loss, L)
    theta = _walked(sums, domain, multiplier, width / G, asked.source)
    claim = SubsetBatch(1).claim(multiplier, T, n, asked.relation)
    report: dict[str, float | str] = {
        "steps": float(T), "noise multiplier": multiplier, "printed epsilon": epsilon,
        "epsilon": claim.epsilon(delta),
    }  # fmt: skip
    return Fit(theta, asked.stamped(claim.assuming("the number of rows is public")), report)


def _walked(
    sums: GradientSums, domain: Domain, multiplier: float, scale: float, source: noise.Source
) -> Floats:
    """θ after n² steps; of a ball, and a loss that is compiled, at full speed."""
    n, d = sums.data.count, sums.data.dim
    part, places = next(sums.data.parts(n))
    compiled = isinstance(domain, L2Ball) and residual_of(sums.loss) is not None and places.stop == n
    theta, unit = domain.project(np.zeros(d)), n * sums.grid
    for first in range(1, n * n + 1, AT_ONCE):
        steps = min(AT_ONCE, n * n + 1 - first)
        chosen = choices.uniform(steps, n, source)
        b = noise.gaussian(steps * d, multiplier * sums.steps, source).reshape(steps, d)
        if compiled:
            space, task, _ = sums.begun(theta, sums.unit)
            walk(part, task, chosen, b, first, unit, scale, domain.radius, theta, space)
            continue
        for t, (i, own) in enumerate(zip(chosen, b, strict=True), start=first):
            g = unit * (sums(theta, np.array([i])) + own)
            theta = domain.project(theta - scale / math.sqrt(t) * g)
    return theta
