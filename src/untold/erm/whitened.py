"""Noisy gradient descent in coordinates that private second moments make round.

    u = Ax  (`untold.erm.coordinates`),    ω = min(1, G/‖u‖),    G = 0.9·√E‖u‖²
    wₜ₊₁ = wₜ − ηₜ·(Σ ω·φ′(⟨w, u⟩, y)·u + noise)/n,    S = Σηₜ,    the answer: the mean over its last half

Noise is added where rows are round. In d directions in which rows have variances hⱼ it costs d² where noise
on gradients as they are costs Σhⱼ·Σ1/hⱼ, which is more by Cauchy and Schwarz, and much more where columns are
of different sizes. Rows are weighed by their length alone, never by how wrong they are, which leaves the
minimiser where it is if the model is right. G is larger where noise is so little that even that would be
felt. S is in `untold.erm.pace`; the mean curvature it wants is asked for six times on the way. The number of
rows, where it is not public, is bought as well. A guarantee depends on no choice made. Proof:
``proofs/whitened.md``.

Sourav Biswas, Yihe Dong, Gautam Kamath and Jonathan Ullman (2020), "CoinPress: practical private mean and
covariance estimation", look again in rounder coordinates.
"""

import math
from dataclasses import dataclass

import numpy as np

from untold.convex.losses_of_classes import Multinomial
from untold.convex.rows import Linear
from untold.core import Floats, Loss, Relation
from untold.erm import coordinates
from untold.erm.base import Asked, Curated, Fit
from untold.erm.coordinates import Coordinates, carried
from untold.erm.pace import Pace, tail_variance
from untold.erm.release import Spending, counted, hidden
from untold.erm.sums import WINDOW, GradientSums
from untold.errors import AssumptionError, DataError
from untold.private.concentrated import GDP
from untold.private.noisy_sums import weight

__all__ = ["whitened_descent"]

STEPS = 128
WIDEST = 2000  # columns up to which d² numbers are released and factored
LOOK, COLUMNS, AGAIN, CURVATURE = 0.08, 0.02, 0.05, 0.02  # shares of μ²
ASKED_AT = (0.05, 0.12, 0.2, 0.35, 0.5, 0.7)  # when curvature is asked for, in parts of the steps
CLEAR = 0.2  # a second look is worth its price where its noise is at most this, and rows would be 1
ROUND = 0.9  # of G, over the root mean square of ‖u‖
FELT = 5e-5  # of the loss: noise below this makes room for a larger G
MOST_ROWS = 1 << 30
RELEASED = "second moments, curvatures and every step"
CITATION = "Dong, Roth & Su (2022), on composition"


def _taken(loss: Loss) -> tuple[float, float]:
    """L and β of a loss in its margins; the residual of classes is shortened to 1, a kink rounded."""
    if isinstance(loss, Multinomial):
        return 1.0, 0.5
    if isinstance(loss, Linear) and math.isfinite(loss.steepest):
        return loss.steepest, min(loss.curvature, loss.steepest / WINDOW)
    raise AssumptionError(
        f"`loss` of whitened_descent must be linear and Lipschitz, or of classes. Got {type(loss).__name__}.",
        hint="Huber() is Squared() with bounded residuals; noisy_gradient_descent takes any loss.",
    )


def _rounded(data: Curated, n: float, spending: Spending) -> tuple[Coordinates, Spending]:
    """Coordinates from one look or two."""
    asked = spending.asked
    given = asked.relation, asked.source
    if data.dim > WIDEST:
        here = coordinates.look_at_columns(data, n, spending.mu(COLUMNS), *given)
        return here, spending.after(COLUMNS)
    here, spending = coordinates.first_look(data, n, spending.mu(LOOK), *given), spending.after(LOOK)
    again = spending.mu(AGAIN)
    if here.left > 1e-6 and coordinates.radius_ahead(here, n, again, asked.relation) <= CLEAR:
        return coordinates.second_look(data, here, n, again, *given), spending.after(AGAIN)
    return here, spending


def _radius(here: Coordinates, pace: Pace, row_norm: float, outputs: int, density: float) -> float:
    """G: larger where noise would not be felt, and never beyond the longest row there can be."""
    root = math.sqrt(here.share + max(here.left, 1e-6))
    c, s = pace.curvature / 2, ROUND * root * density
    S, felt = pace.reach(c, s), 0.0
    for share, many in ((here.share, here.seen), (here.left, here.dim - here.seen)):
        if many:
            k = c * min(1.0, share / many)
            felt += 3 * outputs * many * k / 2 * s * s * tail_variance(k, S)  # 3: curvatures differ
    room = math.sqrt(FELT * pace.steepest**2 / (4 * pace.curvature) / felt) if felt > 0 else math.inf
    norm = float(np.linalg.norm(here.A, 2)) if here.A.ndim > 1 else float(np.abs(here.A).max())
    return min(ROUND * root * min(20.0, max(1.0, room)), norm * row_norm)


@dataclass(frozen=True)
class _Descent:
    """One descent: sums of rows, the coordinates they are carried into, and what may be spent on a step."""

    sums: GradientSums
    here: Coordinates
    pace: Pace
    radius: float
    n: float
    steps: Spending
    curvatures: Spending

    @property
    def density(self) -> float:
        """s: the noise of a step over √T, per row."""
        reach = weight(self.steps.asked.relation) * self.pace.steepest * self.radius
        return reach / (self.steps.mu(self.steps.left) * self.n)

    def gradient(self, w: Floats) -> Floats:
        """Of the mean over rows at w, through noise."""
        total = self.sums.exact(self.here.back(w).reshape(self.sums.shape))
        S = type(total)(total.high.reshape(w.shape), total.low.reshape(w.shape))
        sum_of_rows = carried(self.here, S) * (self.sums.unit * self.sums.data.clip.grid)
        asked = self.steps.asked
        reach = asked.reach(self.pace.steepest * self.radius) * (1 + 2.0**-19)
        return (
            hidden(sum_of_rows, reach, self.steps.mu(self.steps.left / self.pace.steps), asked).weights
            / self.n
        )

    def curvature(self, w: Floats) -> float:
        """c at w, through noise and never below it; a row has at most `largest` and at least 0."""
        K, asked = self.sums.outputs, self.curvatures.asked
        largest = (1 - 1 / K) / K if K > 1 else self.pace.curvature
        mu = self.curvatures.mu(CURVATURE / len(ASKED_AT))
        share = self.sums.bends(self.here.back(w).reshape(self.sums.shape), largest) * 2.0**-20
        found = float(hidden(np.array([share]), 1.0, mu, asked).weights[0]) / self.n
        return largest * min(1.0, max(found, 2 / mu / self.n, 0.004))

    def run(self) -> tuple[Floats, float, float]:
        """The mean over the last half of S, S, and the last c."""
        T, K = self.pace.steps, self.sums.outputs
        asked_at = {round(part * T) for part in ASKED_AT}
        c = (1 - 1 / K) / K if K > 1 else self.pace.curvature
        w = total = np.zeros((K, self.here.dim))
        S, marks = 0.0, [(0.0, 0, total)]
        for t in range(T):
            if t in asked_at:
                c = self.curvature(w)
            eta = self.pace.reach(c, self.density) / T
            w = w - eta * self.gradient(w)
            S, total = S + eta, total + w
            if t % 4 == 3:
                marks.append((S, t + 1, total))
        half = max((mark for mark in marks if mark[0] <= S / 2), key=lambda mark: mark[1])
        return (total - half[2]) / (T - half[1]), S, c


def whitened_descent(
    data: Curated, loss: Loss, *, epsilon: float, delta: float = 1e-6,
    relation: Relation = Relation.ADD_OR_REMOVE_ONE, seed: int | None = None,
) -> Fit:  # fmt: skip
    """The model for (epsilon, delta); nothing else is asked.

    Guarantee: μ-GDP per row, μ the largest that is (epsilon, delta)-private; exact. That a row may come or go
    includes that the number of rows is private.

    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2)) / 4
    >>> fit = whitened_descent(curated(X, np.sign(X[:, 0])), Logistic(), epsilon=1.0)
    >>> bool(fit.weights[0] > 3), round(fit.guarantee.epsilon(1e-6), 6)
    (True, 1.0)
    """
    asked = Asked.checked("whitened_descent", epsilon, delta, relation, seed)
    L, beta = _taken(loss)
    if data.count > MOST_ROWS:
        raise DataError(f"`data` of whitened_descent must have at most 2³⁰ rows. Got {data.count}.")
    n, spending = counted(data, Spending(asked))
    here, spending = _rounded(data, n, spending)
    curvatures, steps = spending, spending.after(CURVATURE)
    pace = Pace(STEPS, L, beta, here.left)
    outputs = loss.classes if isinstance(loss, Multinomial) else 1
    density = weight(asked.relation) * L / (steps.mu(steps.left) * n)
    G = _radius(here, pace, data.row_norm, outputs, density)
    weights = np.minimum(1.0, G / np.maximum(coordinates.lengths(data, here), 1e-300))
    sums = GradientSums(data, loss, L * data.row_norm, weights, steepest=L)
    descent = _Descent(sums, here, pace, G, n, steps, curvatures)
    mean, S, c = descent.run()
    report: dict[str, float | str] = {
        "steps": float(STEPS), "rows": n, "directions seen": float(here.seen), "their share": here.share,
        "share unseen": here.left, "clip": G, "noise of a step": descent.density * math.sqrt(STEPS),
        "mean curvature": c, "way": S,
    }  # fmt: skip
    claim = GDP(asked.mu, **asked.common(CITATION, RELEASED))
    return Fit(here.back(mean).reshape(sums.shape), asked.stamped(claim), report)
