"""Minimisers whose distance from the exact one is bounded by a public number, whatever the rows.

    F(w) = Σφ(⟨xᵢ, w⟩, yᵢ) + (λ/2)‖w‖² + ⟨b, w⟩,      ‖∇F(w̃)‖ ≤ γ  ⇒  ‖w̃ − w*‖ ≤ γ/λ

γ comes from `tolerance`, a function of public numbers; `minimise` goes on until the computed norm plus
an allowance for every rounding is at most γ. Newton's steps get there; should they not, gradient steps
surely do. Proof: ``proofs/perturbations.md``, section 1.

Letters: R bounds ‖x‖, L = sup|φ′|·R, c = sup φ″, n rows, B bounds ‖b‖, u = 2⁻⁵³.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from untold.convex.losses import HuberisedHinge, Logistic
from untold.convex.rows import Linear, known_labels
from untold.core import Floats, Relation
from untold.erm.base import UP, Curated
from untold.errors import DataError, refuse

__all__ = ["Problem", "minimise", "tolerance"]

ROWS = 1 << 24
"""More rows are refused, by their shape: the allowance for rounding grows with n."""
LEAST = 2.0**-20  # γ is at least this share of L
UNIT = 2.0**-53
BLOCK, FAN = 64, 16  # rows that are summed at once, and then sums
NEWTON_STEPS = 1000


def _rounding(n: float, L: float, bend: float, ridge: float, w: float, b: float) -> float:
    """Bounds the error of a computed gradient, and of the step along it; bend = cR²."""
    return UNIT * (256 * n * L + 8 * ((n * bend + ridge) * w + b))


def tolerance(data: Curated, loss: Linear, ridge: float, relation: Relation, b: float = 0.0) -> float:
    """γ: a bound on ‖∇F(w̃)‖ of what `minimise` returns for any rows, and any ‖b‖ up to that.

    It is a function of n only where n is public.

    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> data = curated(np.zeros((1000, 3)), np.ones(1000))
    >>> tolerance(data, Logistic(), 1.0, Relation.REPLACE_ONE) * 2**20
    1.0000000000009095
    """
    if data.count > ROWS:
        raise DataError(f"`data` of a minimiser must have at most 2²⁴ rows. Got {data.count}.")
    n = float(data.count if relation == Relation.REPLACE_ONE else ROWS)
    R = data.row_norm
    L = loss.lipschitz(R)
    w = 2 * (n * L + b) / ridge
    if isinstance(loss, Logistic | HuberisedHinge):  # 0 ≤ φ, and φ(0, ±1) is known
        at_zero = float(loss.pointwise(np.zeros(1), np.ones(1))[0])
        w = min(w, 2 * b / ridge + math.sqrt(2 * n * at_zero / ridge))
    gamma = max(LEAST * L, 8 * _rounding(n, L, loss.smoothness(R), ridge, w, b)) * UP
    if 1e-200 < gamma < 1e200 and 1e-200 < gamma / ridge < 1e200:
        return gamma
    raise refuse("regularisation", ridge, of="a minimiser", allowed="of the order of the data's")


@dataclass(frozen=True)
class Problem:
    """F of some rows; a row with a label unknown to the loss is a row of zeros."""

    X: Floats  # rows filled up with zeros to a multiple of BLOCK
    y: Floats
    count: int
    loss: Linear
    row_norm: float
    ridge: float
    b: Floats

    @classmethod
    def of(cls, data: Curated, loss: Linear, ridge: float, b: Floats | None = None) -> "Problem":
        """F with ⟨b, w⟩, b = 0 unless given."""
        X, y = data.rows()
        known = known_labels(loss, y)
        full = np.zeros((-(-max(1, data.count) // BLOCK) * BLOCK, data.dim))
        labels = np.ones(full.shape[0])
        full[: data.count] = np.where(known[:, np.newaxis], X, 0.0)
        labels[: data.count] = np.where(known, y, 1.0)
        linear = np.zeros(data.dim) if b is None else b
        return cls(full, labels, data.count, loss, data.row_norm, ridge, linear)

    def margins(self, w: Floats) -> Floats:
        """⟨x, w⟩ within 2u·R‖w‖: products of a row (21 bits) with the first 31 bits of w sum exactly."""
        step = math.ldexp(1.0, math.frexp(float(np.linalg.norm(w)))[1] - 31)
        high = np.rint(w / step) * step
        z: Floats = self.X @ high + self.X @ (w - high)
        return z

    def slopes(self, z: Floats) -> Floats:
        """φ′ at those margins."""
        return self.loss.slope(z, self.y)

    def weighted(self, s: Floats) -> Floats:
        """Σ sᵢxᵢ: a term meets at most 64 + 16·5 additions, whatever the order within a block."""
        count, d = self.X.shape
        blocks = self.X.reshape(count // BLOCK, BLOCK, d)
        sums = np.matmul(s.reshape(-1, 1, BLOCK), blocks)[:, 0]
        while len(sums) > 1:
            filled = np.zeros((-(-len(sums) // FAN), FAN, d))
            filled.reshape(filled.shape[0] * FAN, d)[: len(sums)] = sums
            sums = filled.sum(axis=1)
        total: Floats = sums[0]
        return total

    def gradient(self, w: Floats, z: Floats) -> Floats:
        """∇F(w), within `allowance` of the exact one."""
        return self.weighted(self.slopes(z)) + self.ridge * w + self.b

    def allowance(self, w: Floats) -> float:
        """How far from the exact gradient the computed one may be."""
        L, bend = self.loss.lipschitz(self.row_norm), self.loss.smoothness(self.row_norm)
        sizes = float(np.linalg.norm(w)), float(np.linalg.norm(self.b))
        return _rounding(self.count, L, bend, self.ridge, *sizes) * UP

    def newton(self, z: Floats, g: Floats) -> Floats:
        """−(Σφ″xxᵀ + λI)⁻¹g, with φ″ by differences of φ′: no certificate rests on it."""
        h = 2.0**-17 * (1 + np.abs(z))
        curves = np.clip((self.slopes(z + h) - self.slopes(z - h)) / (2 * h), 0.0, self.loss.curvature)
        hessian: Floats = self.X.T @ (curves[:, np.newaxis] * self.X)
        hessian[np.diag_indices_from(hessian)] += self.ridge
        try:
            p = np.asarray(-np.linalg.solve(hessian, g), dtype=np.float64)
        except np.linalg.LinAlgError:
            return -g
        return p if np.isfinite(p).all() and p @ g < 0 else -g

    def along(self, w: Floats, z: Floats, p: Floats) -> float:
        """A length t with small |⟨∇F(w + tp), p⟩|."""
        zp = self.margins(p)
        ahead, size = float((self.ridge * w + self.b) @ p), self.ridge * float(p @ p)
        return _root(lambda t: float(self.slopes(z + t * zp) @ zp) + ahead + t * size)


def _root(slope: Callable[[float], float]) -> float:
    """About where an increasing function that is negative at 0 passes 0: it shrinks tenfold."""
    low, high, t, wanted = 0.0, math.inf, 1.0, 0.001 * abs(slope(0.0))
    for _ in range(100):
        found = slope(t)
        if abs(found) <= wanted:
            break
        low, high = (t, high) if found < 0 else (low, t)
        t = 2 * t if high == math.inf else (low + high) / 2
    return t


@np.errstate(all="ignore")
def minimise(problem: Problem, gamma: float) -> Floats:
    """w̃ with ‖∇F(w̃)‖ ≤ γ, for γ from `tolerance`.

    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> problem = Problem.of(curated(np.ones((4, 1)), [1, 1, 1, -1.0]), Logistic(), 1e-9)
    >>> minimise(problem, 1e-6).round(5).tolist()
    [1.09861]
    """
    best, least = np.zeros(problem.b.size), math.inf
    w = best
    for _ in range(NEWTON_STEPS):
        z = problem.margins(w)
        g = problem.gradient(w, z)
        size = float(np.linalg.norm(g)) * UP
        settled = least + problem.allowance(best) <= gamma and size > least / 2
        if size < least:
            best, least = w, size
        if settled or size == 0:
            return best
        p = problem.newton(z, g)
        w = w + problem.along(w, z, p) * p
    return best if least + problem.allowance(best) <= gamma else descended(problem, gamma)


def descended(problem: Problem, gamma: float) -> Floats:
    """The same by gradient steps of 1/β from 0: slow, and sure.

    >>> problem = Problem(np.zeros((64, 1)), np.ones(64), 1, Logistic(), 1.0, 2.0, np.ones(1))
    >>> descended(problem, 1e-6).round(5).tolist()
    [-0.5]
    """
    bend = problem.count * problem.loss.smoothness(problem.row_norm)
    step, w = 1 / ((bend + problem.ridge) * UP), np.zeros(problem.b.size)
    while True:
        g = problem.gradient(w, problem.margins(w))
        if float(np.linalg.norm(g)) * UP + problem.allowance(w) <= gamma:
            return w
        w = w - step * g
