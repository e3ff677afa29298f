"""Approximate minima perturbation: objective perturbation that owes nothing to exact arithmetic.

    w̃ ≈ argmin Σφ(⟨xᵢ, w⟩, yᵢ) + (λ/2)‖w‖² + ⟨b, w⟩,      released: w̃ + N(0, σ₂²I)
    ‖w̃ − w*‖ ≤ (γ + √d·grid/2)/λ,  w* the exact minimiser,  γ public and always met,  grid that of b

w* would be (ε₁, δ₁)-private; given w*, the rest of w̃ differs between neighbours by at most twice that
distance, and Gaussian noise, calibrated exactly, hides it at (ε₂, δ₂).

Roger Iyengar, Joseph Near, Dawn Song, Om Thakkar, Abhradeep Thakurta and Lun Wang (2019), "Towards practical
differentially private convex optimization", Algorithm 1, and, where no λ is given, the split of ε by which
their experiments leave nothing to tune (AMP-NT). Proof: ``proofs/perturbations.md``, section 4.
"""

import math
from dataclasses import replace

from untold.core import Loss, Relation
from untold.erm.base import UP, Asked, Curated, Fit
from untold.erm.objective import tilted
from untold.erm.output import non_private
from untold.erm.release import linear_loss, noisy
from untold.erm.solver import Problem, minimise, tolerance
from untold.errors import positive
from untold.private.guarantees import Approximate

__all__ = ["approximate_minima"]

SHARE = 0.01  # of ε and of δ, for the noise on the output
STRATEGY = 0.88671, 0.0186607, 0.372906, 0.99  # of the tilt's part of ε, where nobody chose λ
FAR = 2.0**-128  # the probability of a tilt beyond `Tilt.most`
CITATION = "Iyengar, Near, Song, Thakkar, Thakurta & Wang (2019), Algorithm 1"


def untuned(bend: float, epsilon: float) -> float:
    """λ, with nothing to tune: the least with which the Hessian costs what a strategy leaves it of ε.

    >>> round(untuned(0.25, 1.0), 3)
    2.546
    """
    least, rise, power, most = STRATEGY
    share = min(max(least + rise / epsilon**power, 1 - 1 / epsilon + 0.001), most)
    return bend / math.expm1((1 - share) * epsilon * (1 - SHARE))


def approximate_minima(
    data: Curated, loss: Loss, *, epsilon: float, delta: float = 1e-6, regularisation: float | None = None,
    relation: Relation = Relation.REPLACE_ONE, seed: int | None = None,
) -> Fit:  # fmt: skip
    """An approximate minimiser of the tilted objective, with a little noise on it; λ is chosen if not given.

    Guarantee: (ε, δ), per row, whatever the solver does. The loss is linear, Lipschitz and smooth.

    >>> import numpy as np
    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> X = np.random.default_rng(0).normal(size=(10_000, 2)) / 4
    >>> fit = approximate_minima(curated(X, np.sign(X[:, 0])), Logistic(), epsilon=1.0, regularisation=5.0)
    >>> fit.guarantee.epsilon(1e-6), fit.guarantee.assumptions, bool(fit.weights[0] > 1)
    (1.0, (), True)
    """
    of = "approximate_minima"
    linear, d, ridge = linear_loss(loss, of=of), data.dim, 0.0
    if regularisation is not None:
        ridge = positive("regularisation", regularisation, of=of)
    asked = Asked.checked(of, epsilon, delta, relation, seed, ridge=ridge, least=1e-30)
    if regularisation is None:
        asked = replace(asked, ridge=untuned(linear.smoothness(data.row_norm), min(asked.epsilon, 1e3)))
    if asked.epsilon == math.inf:
        return non_private(data, linear, asked, CITATION)
    share = SHARE * asked.epsilon, SHARE * asked.delta
    rest = (asked.epsilon - share[0]) / UP, (asked.delta - share[1]) / UP
    tilt = tilted(linear, data.row_norm, *rest, asked)
    # a tilt that is not far for one neighbour is within Δ of the other's
    most = tilt.most(d) + asked.reach(linear.lipschitz(data.row_norm)) + math.sqrt(d) * tilt.grid
    gamma = tolerance(data, linear, tilt.ridge, asked.relation, most)
    w = minimise(Problem.of(data, linear, tilt.ridge, tilt.draw(d, asked.source)), gamma)
    reach = (2 * gamma + math.sqrt(d) * tilt.grid) / tilt.ridge * UP
    out = noisy(w, reach, share[0], share[1] - FAR, asked)
    report: dict[str, float | str] = {
        "regularisation": tilt.ridge, "tolerance": gamma, "noise scale": tilt.scale,
        "sensitivity": reach, "noise scale of the output": out.scale, "grid": out.grid,
    }  # fmt: skip
    claim = Approximate(asked.epsilon, asked.delta, **asked.common(CITATION))
    return Fit(out.weights, asked.stamped(claim), report)
