"""Objective perturbation: the exact minimiser of a randomly tilted objective.

    w* = argmin Σφ(⟨xᵢ, w⟩, yᵢ) + (λ/2)‖w‖² + ⟨b, w⟩        κ = ln(1 + cR²/λ),  Δ = 2L or L

    pure:     b of density ∝ exp(−‖b‖/s)        ε = Δ/s + κ
    (ε, δ):   b ~ N(0, σ²I)                     δ = 2·δ_Gauss(ε − κ; μ = Δ/σ)

κ is paid by the Hessian: one row changes its determinant by at most 1 + cR²/λ, with the norm *squared*. Where
κ exceeds ε/2, λ is raised. There is no unregularised intercept: a constant column is a column.

Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 2, with κ once rather than twice; Kifer, Smith and
Thakurta (2012), "Private convex empirical risk minimization and high-dimensional regression"; the profile as
in Redberg, Koskela and Wang (2023), "Improving the privacy and practicality of objective perturbation",
here for replaced rows too. Proof: ``proofs/perturbations.md``, section 3.
"""

import math
from typing import NamedTuple

import numpy as np

from untold.convex.rows import Linear
from untold.core import Floats, Loss, Relation
from untold.erm.base import UP, Asked, Curated, Fit
from untold.erm.output import non_private
from untold.erm.release import linear_loss
from untold.erm.solver import Problem, minimise, tolerance
from untold.erm.sums import below
from untold.errors import positive
from untold.private import noise
from untold.private.guarantees import Approximate, Pure, gdp_mu

__all__ = ["Tilt", "objective_perturbation", "tilted"]

FINENESS = 36  # bits of the noise's scale
STEEP = 0.7  # R(a)·a ≥ ½ from here on, R the Mills ratio
EXACT = "the weights are the exact minimiser for real-valued noise, which floats only approach"
CITATION = "Chaudhuri, Monteleoni & Sarwate (2011), Algorithm 2"
CITATION_GAUSSIAN = "Kifer, Smith & Thakurta (2012); Redberg, Koskela & Wang (2023)"


class Tilt(NamedTuple):
    """How to draw b, and the regularisation it needs."""

    scale: float
    ridge: float
    gaussian: bool

    @property
    def grid(self) -> float:
        """b is rounded to its multiples."""
        return below(self.scale, FINENESS)

    def most(self, dim: int) -> float:
        """‖b‖ is larger with probability below 2⁻¹²⁸."""
        return self.scale * (math.sqrt(dim) + 14 if self.gaussian else 2 * dim + 200) * UP

    def draw(self, dim: int, source: noise.Source) -> Floats:
        """b."""
        steps = self.scale / self.grid
        z = noise.gaussian(dim, steps, source) if self.gaussian else noise.norm_laplace(1, dim, steps, source)
        return np.multiply(z.reshape(dim), self.grid, dtype=np.float64)


def tilted(loss: Linear, row_norm: float, epsilon: float, delta: float, asked: Asked) -> Tilt:
    """The least noise that makes the exact minimiser (ε, δ)-private."""
    bend, ridge = loss.smoothness(row_norm) * UP, asked.ridge
    if math.log1p(bend / ridge) > epsilon / 2:
        ridge = bend / math.expm1(min(epsilon / 2, 700.0)) * UP
    left = epsilon - math.log1p(bend / ridge) * UP
    reach = asked.reach(loss.lipschitz(row_norm))
    if delta == 0:
        return Tilt(reach / left * UP, ridge, gaussian=False)
    mu = gdp_mu(left, delta / 2)
    if asked.relation == Relation.REPLACE_ONE:  # the worst pair of rows is then x and −x
        mu = min(mu, math.sqrt(STEEP**2 + 2 * left) - STEEP)
    return Tilt(reach / mu * UP, ridge, gaussian=True)


def objective_perturbation(
    data: Curated, loss: Loss, *, epsilon: float, delta: float = 0.0, regularisation: float,
    relation: Relation = Relation.REPLACE_ONE, seed: int | None = None,
) -> Fit:  # fmt: skip
    """The minimiser of the tilted objective: Gamma-distributed tilt at δ = 0, Gaussian at δ > 0.

    Guarantee: pure ε or (ε, δ), per row, *assuming* exact minimisation, which floats do not give;
    `approximate_minima` assumes nothing. The loss is linear, Lipschitz and smooth.

    >>> import numpy as np
    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> X = np.random.default_rng(0).normal(size=(10_000, 2)) / 4
    >>> data = curated(X, np.sign(X[:, 0]))
    >>> fit = objective_perturbation(data, Logistic(), epsilon=1.0, regularisation=5.0)
    >>> fit.guarantee.epsilon(0.0), bool(fit.weights[0] > 1)
    (1.0, True)
    """
    of = "objective_perturbation"
    ridge = positive("regularisation", regularisation, of=of)
    asked = Asked.checked(of, epsilon, delta, relation, seed, ridge=ridge, pure=True)
    linear = linear_loss(loss, of=of)
    if asked.epsilon == math.inf:
        return non_private(data, linear, asked, CITATION)
    tilt = tilted(linear, data.row_norm, asked.epsilon, asked.delta, asked)
    gamma = tolerance(data, linear, tilt.ridge, asked.relation, tilt.most(data.dim))
    b = tilt.draw(data.dim, asked.source)
    w = minimise(Problem.of(data, linear, tilt.ridge, b), gamma)
    claim = (
        Approximate(asked.epsilon, asked.delta, **asked.common(CITATION_GAUSSIAN))
        if tilt.gaussian
        else Pure(asked.epsilon, **asked.common(CITATION))
    )
    report: dict[str, float | str] = {"regularisation": tilt.ridge, "noise scale": tilt.scale}
    return Fit(w, asked.stamped(claim.assuming(EXACT)), report)
