"""Output perturbation: the minimiser of a regularised sum of losses, with noise on it.

    w* = argmin Σφ(⟨xᵢ, w⟩, yᵢ) + (λ/2)‖w‖²        ‖w* − w*′‖ ≤ 2L/λ replace-one, L/λ add/remove

The solver's w̃ is within γ/λ of w*, for a public γ that it always meets, so noise is scaled to 2L/λ + 2γ/λ.
Kamalika Chaudhuri, Claire Monteleoni and Anand Sarwate (2011), "Differentially private empirical risk
minimization", Algorithm 1. The 2n/λ printed in Gautam Kamath's lecture 13, Lemma 1, is n times too much
(`docs/errata.md`). Proof: ``proofs/perturbations.md``, section 2.
"""

import math

from untold.convex.rows import Linear
from untold.core import Loss, Relation
from untold.erm.base import UP, Asked, Curated, Fit
from untold.erm.release import linear_loss, noisy
from untold.erm.solver import Problem, minimise, tolerance
from untold.errors import positive
from untold.private.guarantees import GDP, Pure

__all__ = ["non_private", "output_perturbation"]

CITATION = "Chaudhuri, Monteleoni & Sarwate (2011), Algorithm 1"


def non_private(data: Curated, loss: Linear, asked: Asked, citation: str) -> Fit:
    """The minimiser itself: what every method of perturbation does at ε = ∞.

    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> asked = Asked.checked("this", math.inf, 0.0, Relation.REPLACE_ONE, None, ridge=1.0, pure=True)
    >>> non_private(curated([[0.0]], [1.0]), Logistic(), asked, "").weights
    array([0.])
    """
    gamma = tolerance(data, loss, asked.ridge, asked.relation)
    w = minimise(Problem.of(data, loss, asked.ridge), gamma)
    claim = asked.stamped(Pure(math.inf, **asked.common(citation)))
    return Fit(w, claim, {"regularisation": asked.ridge, "tolerance": gamma})


def output_perturbation(
    data: Curated, loss: Loss, *, epsilon: float, delta: float = 0.0, regularisation: float,
    relation: Relation = Relation.REPLACE_ONE, seed: int | None = None,
) -> Fit:  # fmt: skip
    """The minimiser plus noise: norm-Laplace at δ = 0, Gaussian at δ > 0; none at ε = ∞.

    Guarantee: pure ε, or the μ-GDP through (ε, δ); per row; whatever the solver does. The loss is linear,
    Lipschitz and smooth.

    >>> import numpy as np
    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> X = np.random.default_rng(0).normal(size=(10_000, 2)) / 4
    >>> fit = output_perturbation(curated(X, np.sign(X[:, 0])), Logistic(), epsilon=1.0, regularisation=50.0)
    >>> print(fit.guarantee)
    ε = 1, δ = 0: pure differential privacy, replace-one, per row; releases weights
    >>> bool(fit.weights[0] > 1)
    True
    """
    of = "output_perturbation"
    ridge = positive("regularisation", regularisation, of=of)
    asked = Asked.checked(of, epsilon, delta, relation, seed, ridge=ridge, pure=True)
    linear, ridge = linear_loss(loss, of=of), asked.ridge
    if asked.epsilon == math.inf:
        return non_private(data, linear, asked, CITATION)
    gamma = tolerance(data, linear, ridge, asked.relation)
    w = minimise(Problem.of(data, linear, ridge), gamma)
    reach = (asked.reach(linear.lipschitz(data.row_norm)) + 2 * gamma) / ridge * UP
    out = noisy(w, reach, asked.epsilon, asked.delta, asked)
    common = asked.common(CITATION)
    claim = GDP(out.mu, **common) if asked.delta > 0 else Pure(asked.epsilon, **common)
    report: dict[str, float | str] = {
        "regularisation": ridge, "tolerance": gamma,
        "sensitivity": reach, "noise scale": out.scale, "grid": out.grid,
    }  # fmt: skip
    return Fit(out.weights, asked.stamped(claim), report)
