"""Noisy gradient descent in coordinates that a private second moment makes round.

    M̃ = Σxxᵀ + noise,   P = (c·M̃₊ + λI)/n,   wₜ₊₁ = wₜ − P⁻¹gₜ,   gₜ = (Σ clip(∇ℓᵢ(wₜ)) + noise)/n

c ≥ φ″ is the loss's curvature, so P without its noise bounds the Hessian and whole steps descend; λ is what
noise could feign: λ = max(a·σ_g, c·σ_M·√(2d)), σ_g and σ_M the deviations of an entry. M̃ takes the share f of
μ², the T gradients the rest; both are Gaussian, so that together they are μ-GDP exactly.

Harsh Mehta, Walid Krichene, Abhradeep Thakurta, Alexey Kurakin and Ashok Cutkosky (2022), "Differentially
private image classification from features", use the features' covariance likewise.
"""

import math

import numpy as np

from untold.convex.clipping import L2Clip
from untold.convex.rows import Linear
from untold.core import Floats, Loss, Relation, Unit
from untold.erm.base import Curated, Fit
from untold.erm.moments import Moment, noisy_moment
from untold.erm.sums import GradientSums
from untold.errors import AssumptionError, between, one_of, positive, whole
from untold.private import noise
from untold.private.claim import Common
from untold.private.classic import Pure
from untold.private.concentrated import GDP
from untold.private.gaussian_profile import gdp_mu
from untold.private.noisy_sums import weight

__all__ = ["preconditioned_descent"]


def _root(moment: Moment, curvature: float, ridge: float, n: int) -> Floats:
    """P⁻¹; directions in which noise made M̃ negative have the ridge alone."""
    values, vectors = np.linalg.eigh(moment.matrix)
    scaled = (curvature * np.maximum(values, 0.0) + ridge) / n
    inverse: Floats = (vectors / scaled) @ vectors.T
    return inverse


def preconditioned_descent(
    data: Curated, loss: Loss, *, epsilon: float, delta: float = 1e-6, steps: int = 40, share: float = 0.1,
    caution: float = 1.0, tail: float = 0.5, relation: Relation = Relation.ADD_OR_REMOVE_ONE,
    seed: int | None = None,
) -> Fit:  # fmt: skip
    """`steps` whole steps, `share` of μ² for the moment, `caution` is a; the mean of the last `tail` of them.

    Guarantee: μ-GDP per row, μ the largest that is (epsilon, delta)-private; exact.

    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2)) / 4
    >>> fit = preconditioned_descent(curated(X, np.sign(X[:, 0])), Logistic(), epsilon=1.0)
    >>> bool(fit.weights[0] > 3), round(fit.guarantee.epsilon(1e-6), 6)
    (True, 1.0)
    """
    of = "preconditioned_descent"
    if not isinstance(loss, Linear) or not loss.steepest < math.inf or not loss.curvature < math.inf:
        raise AssumptionError(
            f"`loss` of {of} must be linear, Lipschitz and smooth. Got {type(loss).__name__}.",
            hint="noisy_gradient_descent takes any loss.",
        )
    steps, n = whole("steps", steps, of=of), max(1, data.count)
    relation = Relation(one_of("relation", relation, list(Relation), of=of))
    epsilon = positive("epsilon", epsilon, of=of, infinite=True)
    delta = between("delta", delta, 0.0, 1.0, of=of, ends="()", hint="Gaussian noise has no δ = 0.")
    share = between("share", share, 0.0, 1.0, of=of, ends="()")
    caution, tail = positive("caution", caution, of=of), between("tail", tail, 0.0, 1.0, of=of)
    mu = gdp_mu(epsilon, delta) if epsilon < math.inf else math.inf
    source = None if seed is None else noise.seeded(whole("seed", seed, of=of, least=0))
    clip = L2Clip(loss.lipschitz(data.row_norm))
    one = weight(relation) / mu * (1 + 1e-12)  # more than rounding takes away
    sigma_moment, sigma = one / math.sqrt(share), one * math.sqrt(steps / (1 - share))
    moment = noisy_moment(data, sigma_moment, source)
    feigned = loss.curvature * moment.noise * math.sqrt(2 * data.dim)
    ridge = max(caution * sigma * clip.bound, feigned, 1e-9 * n)
    weights = _descend(GradientSums(data, loss, clip), _root(moment, loss.curvature, ridge, n), sigma, steps,
                       max(1, round(tail * steps)), source)  # fmt: skip
    people = Common(relation=relation, unit=Unit.ROW, released="the second moment and every step")
    spent = GDP(mu, **people) if mu < math.inf else Pure(math.inf, **people)
    claim = spent.assuming("the number of rows is public")
    report: dict[str, float | str] = {
        "steps": float(steps), "noise multiplier": sigma, "noise multiplier of the moment": sigma_moment,
        "ridge": ridge, "share": share, "clip": clip.bound,
    }  # fmt: skip
    return Fit(weights, claim.seed_stamped() if seed is not None else claim, report)


def _descend(
    sums: GradientSums, inverse: Floats, sigma: float, steps: int, last: int, source: noise.Source
) -> Floats:
    """The mean of the last points."""
    n, d = max(1, sums.data.count), sums.data.dim
    w, mean = np.zeros(d), np.zeros(d)
    for t in range(steps):
        total = sums(w)
        if sigma > 0:
            total = total + noise.gaussian(d, sigma * sums.clip.steps, source)
        w = w - inverse @ (total * (sums.clip.grid / n))
        if t >= steps - last:
            mean += w / last
    return mean
