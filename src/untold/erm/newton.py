"""Double-noise Newton steps: noise on the gradient, and again on the direction that curvature makes of it.

    g̃ = Σ∇ℓᵢ(w) + noise,    H = Σhᵢxᵢxᵢᵀ + ΛI,    w ← w − (H⁻¹g̃ + noise),    ‖H⁻¹g̃ − H′⁻¹g̃‖ ≤ b‖g̃‖/(Λ(Λ + b))

for a row more or less, b = cR² ≥ hᵢ‖xᵢ‖²; twice that where one is replaced. hᵢ is φ″, or its bound c, which
does not fall where the model is sure of itself and is steadier. Λ = n·max{((4b)²·½t/(n²ρ))^⅓, b/n} balances
what Λ does to the direction against the noise it allows: t a noisy trace of H/n, ρ = μ²/2 of a direction.

Arun Ganesh, Mahdi Haghifam, Thomas Steinke and Abhradeep Thakurta (2023), "Faster differentially private
convex optimization via second-order methods", Algorithm 2, with the settings of their experiments. Proof,
with the roundings of H and of the solution: ``proofs/newton.md``.
"""

import math
from dataclasses import dataclass

import numpy as np

from untold.convex.rows import Linear, known_labels, margins
from untold.core import Floats, Loss, Relation
from untold.erm.base import UP, Asked, Curated, Fit
from untold.erm.exact import BLOCK
from untold.erm.moments import second_moment
from untold.erm.open import minimiser
from untold.erm.release import Spending, counted, hidden, linear_loss
from untold.erm.sums import GradientSums
from untold.errors import DataError, one_of, whole
from untold.private import noise
from untold.private.classic import Pure
from untold.private.concentrated import GDP
from untold.private.noisy_sums import weight

__all__ = ["double_noise_newton"]

OF = "double_noise_newton"
GRADIENT, TRACE = 0.7, 0.1  # shares of μ²: of the whole, and of what is left
HALF_TRACE = 0.5
ROWS = 1 << 24
RELEASED = "gradients, traces and directions"
CITATION = "Ganesh, Haghifam, Steinke & Thakurta (2023), Algorithm 2"


@dataclass(frozen=True)
class _Newton:
    """What is asked of the rows, and the μ of each release."""

    sums: GradientSums
    loss: Linear
    bounded: bool
    asked: Asked
    gradient: float
    trace: float
    direction: float
    moment: Floats
    n: float

    @property
    def b(self) -> float:
        """The most a row adds to the trace."""
        return self.loss.smoothness(self.sums.data.row_norm) * UP

    def hessian(self, w: Floats) -> Floats:
        """Σhxxᵀ."""
        if self.bounded:
            return self.moment
        total, grid = np.zeros_like(self.moment), self.sums.data.clip.grid
        for q, y in self.sums.data.quantised(BLOCK):
            X = (q if isinstance(q, np.ndarray) else q.toarray()) * grid
            z = margins(w, X)
            h = 2.0**-17 * (1 + np.abs(z))
            curved = (self.loss.slope(z + h, y) - self.loss.slope(z - h, y)) / (2 * h)
            curved = np.where(known_labels(self.loss, y), np.clip(curved, 0.0, self.loss.curvature), 0.0)
            total += X.T @ (curved[:, np.newaxis] * X)
        return total

    def ridge(self, H: Floats) -> float:
        """Λ, from a noisy trace."""
        reach = self.asked.reach(self.b) * (1 + 2.0**-10)
        of_it = hidden(np.array([np.trace(H)]), reach, self.trace, self.asked)
        mean = HALF_TRACE * max(float(of_it.weights[0]), 0.0) / self.n
        balanced = math.cbrt(16 * self.b**2 * mean / (self.n**2 * self.direction**2 / 2))
        return float(self.n * max(balanced, self.b / self.n))

    def step(self, w: Floats) -> Floats:
        """The next point."""
        from scipy.linalg import cho_factor, cho_solve

        sums, asked = self.sums, self.asked
        scale = weight(asked.relation) * sums.steps / self.gradient
        g = (sums(w) + noise.gaussian(w.size, scale, asked.source)) * sums.grid
        H = self.hessian(w)
        ridge = self.ridge(H)
        direction = cho_solve(cho_factor(H + ridge * np.eye(w.size)), g)
        reach = asked.reach(self.b) / (ridge + self.b) + 2 * self._rounding(ridge)
        reach *= float(np.linalg.norm(g)) / ridge
        return w - hidden(direction, reach, self.direction, asked).weights

    def _rounding(self, ridge: float) -> float:
        """How far, in ‖g‖/Λ, the computed direction may be from the exact one, for up to 2²⁴ rows."""
        d = self.sums.data.dim
        error = (4 * d * (3 * d + 1) + 2**14) * 2.0**-53 * (ROWS * self.b + ridge)
        return error / max(ridge - error, 1e-300)


def double_noise_newton(
    data: Curated, loss: Loss, *, epsilon: float, delta: float = 1e-6, steps: int = 15,
    curvature: str = "bound", relation: Relation = Relation.ADD_OR_REMOVE_ONE,
    seed: int | None = None,
) -> Fit:  # fmt: skip
    """`steps` steps; `curvature` is the loss's "bound" or the "hessian" at each point.

    Guarantee: μ-GDP per row, μ the largest that is (epsilon, delta)-private. ε = ∞ gives the minimiser.

    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2)) / 4
    >>> fit = double_noise_newton(curated(X, np.sign(X[:, 0])), Logistic(), epsilon=1.0)
    >>> bool(fit.weights[0] > 3), round(fit.guarantee.epsilon(1e-6), 6)
    (True, 1.0)
    """
    steps = whole("steps", steps, of=OF)
    asked, linear = Asked.checked(OF, epsilon, delta, relation, seed), linear_loss(loss, of=OF)
    one_of("curvature", curvature, ("bound", "hessian"), of=OF)
    if data.count > ROWS:
        raise DataError(f"`data` of {OF} must have at most 2²⁴ rows. Got {data.count}.")
    if asked.epsilon == math.inf:
        open_claim = Pure(math.inf, **asked.common(CITATION, "the minimiser"))
        return Fit(minimiser(data, loss), open_claim, {"steps": 0.0})
    moment = np.zeros((data.dim, data.dim))
    if curvature == "bound":
        exact = second_moment(lambda size: (q for q, _ in data.quantised(size)), data.dim)
        moment = exact.floats * (data.clip.grid**2 * linear.curvature)
    n, spending = counted(data, Spending(asked))
    of_one, rest = spending.left / steps, 1 - GRADIENT
    newton = _Newton(
        GradientSums(data, loss, linear.lipschitz(data.row_norm)), linear, curvature == "bound", asked,
        gradient=spending.mu(of_one * GRADIENT), trace=spending.mu(of_one * rest * TRACE),
        direction=spending.mu(of_one * rest * (1 - TRACE)), moment=moment, n=n,
    )  # fmt: skip
    w = np.zeros(data.dim)
    for _ in range(steps):
        w = newton.step(w)
    report: dict[str, float | str] = {"steps": float(steps), "curvature": curvature, "rows": n}
    claim = GDP(asked.mu, **asked.common(CITATION, RELEASED))
    return Fit(w, asked.stamped(claim), report)
