"""AdaSSP: linear regression from noisy sufficient statistics, the ridge chosen by how thin the data are.

Released, in this order, each with Gaussian noise: λ̃ ≈ λ_min(XᵀX), M̃ ≈ XᵀX and b̃ ≈ Xᵀy. Then::

    λ = max(0, c·σ_M − max(0, λ̃ − √(2·ln(1/ϱ))·σ_λ)),        θ = (M̃ + λI)⁻¹ b̃
    c = min(√(2(1 + 25(d − 1)/49)·ln(d/ϱ)), (10/7)(√d + √ln(1/ϱ)))

c·σ_M bounds the noise of M̃ and the root that of λ̃, but for a chance of ϱ each. Yu-Xiang Wang (2018),
"Revisiting differentially private linear regression: optimal and adaptive prediction and estimation in
unbounded domain", Algorithm 2, with c = √(d·ln(2d²/ϱ)) there. Better constants here: c; the releases are one
Gaussian release of μ, not (ε/3, δ/3) each; noise beside the diagonal of XᵀX is 5/7 of that on it; and where a
row is replaced, XᵀX and Xᵀy cannot both move as far as each could. Proof: ``proofs/adassp.md``.
"""

import math
from typing import NamedTuple

import numpy as np

from untold.compiled import summing
from untold.convex.clipping import LInfClip
from untold.core import Floats, Ints, Relation
from untold.erm.base import Asked, Curated, Fit, Quantised
from untold.erm.exact import BLOCK, DROPPED, Exact
from untold.erm.moments import ON, moved, released
from untold.errors import DataError, between, positive, refuse
from untold.private import noise
from untold.private.classic import Pure
from untold.private.concentrated import GDP

__all__ = ["Scales", "adassp", "sensitivity"]

Solution = tuple[Floats, float, float]
MOST = 1 << 46  # of n·max(d + 2, 16)²: neither an overflow nor a larger error of λ_min
RELEASED = "the least eigenvalue, the second moments and the products with the labels"
CITATION = "Wang (2018), Algorithm 2"
SHY, FREE = 4.0, 1.5  # noise of λ̃ and b̃, over that of M̃: 4 % and 30 % of μ²


class Scales(NamedTuple):
    """Standard deviations of the noise, in steps of the sums that are released."""

    eigenvalue: float
    moments: float
    products: float


def sensitivity(K: int, V: int, d: int, relation: Relation, scales: Scales) -> float:
    """How far a neighbour moves the three releases, each over its noise: μ of them all.

    K and V bound a row and its label, in steps of their clips.

    >>> one = Scales(eigenvalue=4 * 2.0**20, moments=5 * 2.0**20, products=2.0**20)
    >>> round(sensitivity(2**20, 2**20, 1, Relation.ADD_OR_REMOVE_ONE, one) ** 2, 2)  # 1/16 + 1 + 1
    2.06
    """
    unit = 2.0**DROPPED
    eigenvalue = ((1 + 2.0**-6) * K * K / unit + d + 2) / scales.eigenvalue
    A, B = (ON * K * K / unit / scales.moments) ** 2, (K * V / unit / scales.products) ** 2
    if relation == Relation.REPLACE_ONE:
        together = 2 * A + 2 * B + (B * B / (2 * A) if B <= 2 * A else 2 * B - 2 * A)
    else:
        together = A + B
    floors = math.hypot(moved(0.0, d, relation) / scales.moments, math.sqrt(d) / scales.products)
    return math.hypot(eigenvalue, math.sqrt(together) + floors)


def _scales(K: int, V: int, d: int, relation: Relation, mu: float) -> Scales:
    """Noise in fixed proportions, as little as μ asks for."""
    unit = 2.0**DROPPED
    one = Scales(SHY * K * K / unit, ON * K * K / unit, FREE * K * V / unit)
    times = sensitivity(K, V, d, relation, one) / mu * (1 + 1e-12)  # more than rounding takes away
    return Scales(*(times * scale for scale in one))


def _blanked(block: Quantised, known: Floats) -> Quantised:
    """Rows of no known label as zeros."""
    if isinstance(block.q, np.ndarray):
        return Quantised(np.where(known[:, np.newaxis], block.q, 0.0), block.y)
    from scipy.sparse import diags_array

    return Quantised(diags_array(known.astype(np.float64)) @ block.q, block.y)


def _sums(data: Curated, labels: LInfClip) -> tuple[Exact, Exact]:
    """Σqqᵀ and Σqv, exactly: the same bits in whatever order and chunks the rows come."""
    moments, products = Exact.zero((data.dim, data.dim)), Exact.zero((data.dim,))
    for block in data.quantised(BLOCK):
        known = np.isfinite(block.y)
        half = np.copysign(labels.grid / 2, block.y)  # truncates: the nearest step to y
        v = np.where(known, labels.quantise((block.y + half)[:, np.newaxis])[:, 0], 0)
        q = _blanked(block, known).q
        square = q.T @ q
        moments = moments.plus(square if isinstance(square, np.ndarray) else square.toarray())
        products = products.plus(np.asarray(q.T @ v.astype(np.float64)))
    return moments, products


@summing
def _definite(A: Floats) -> bool:
    """Whether all pivots of Cholesky's factorisation, in place, are positive; it never stops early."""
    good = True
    for i in range(A.shape[0]):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= A[i, k] * A[j, k]
            if j < i:
                A[i, j] = s / A[j, j]
            else:
                good = good and s > 0.0
                A[i, i] = math.sqrt(s) if s > 0.0 else 1.0
    return good


def _least(H: Ints, bits: int) -> int:
    """λ_min(H) clipped to [0, 2^bits), to 1 and what `sensitivity` allows for; always `bits` halvings."""
    least = 0
    matrix = H.astype(np.float64)
    for bit in reversed(range(bits)):
        if _definite(matrix - (least + (1 << bit)) * np.eye(len(H))):
            least += 1 << bit
    return least


def _released(S: Exact, b: Exact, scales: Scales, source: noise.Source) -> tuple[Floats, Floats]:
    """M̃ and b̃ in units of 2²⁰ steps²."""
    moments = released(S, scales.moments, source)
    return moments, np.add(b.floor(), noise.gaussian(b.high.size, scales.products, source), dtype=np.float64)


def _spread(d: int, failure: float) -> float:
    """c: how large the noise of M̃ is in any direction, in deviations of an entry on the diagonal."""
    series = math.sqrt(2 * (1 + 25 * (d - 1) / 49) * math.log(d / failure))
    return min(series, 10 / 7 * (math.sqrt(d) + math.sqrt(math.log(1 / failure))))


def _solved(S: Exact, b: Exact, scales: Scales, failure: float, source: noise.Source) -> Solution:
    """θ, the ridge and λ̃, each in its own steps."""
    d = b.high.size
    entry = scales.moments / ON
    threshold = _spread(d, failure) * entry
    margin = math.sqrt(2 * math.log(1 / failure)) * scales.eigenvalue
    bits = math.ceil(threshold + 2 * margin).bit_length()
    noisy = _least(S.floor(), bits) + int(noise.gaussian(1, scales.eigenvalue, source)[0])
    eigenvalue = max(0.0, noisy - margin)
    ridge = max(0.0, threshold - eigenvalue)
    moments, products = _released(S, b, scales, source)
    values, vectors = np.linalg.eigh(moments + ridge * np.eye(d))
    return vectors @ ((vectors.T @ products) / np.maximum(values, entry)), ridge, eigenvalue


def adassp(
    data: Curated, *, label_bound: float, epsilon: float, delta: float = 1e-6, failure: float = 0.05,
    relation: Relation = Relation.ADD_OR_REMOVE_ONE, seed: int | None = None,
) -> Fit:  # fmt: skip
    """Linear regression of labels within ±`label_bound`, which like the rows' norm must be public.

    Guarantee: μ-GDP per row, μ the largest that is (epsilon, delta)-private; proof in ``proofs/adassp.md``.
    A row whose label is no finite number counts as nothing.

    >>> from untold.erm.base import curated
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(50_000, 2))
    >>> fit = adassp(curated(X, X @ [1.0, -0.5]), label_bound=1.0, epsilon=1.0)
    >>> bool(abs(fit.weights - [1.0, -0.5]).max() < 0.03), round(fit.guarantee.epsilon(1e-6), 6)
    (True, 1.0)
    """
    labels = LInfClip(positive("label_bound", label_bound, of="adassp"))
    asked = Asked.checked("adassp", epsilon, delta, relation, seed)
    failure = between("failure", failure, 0.0, 1.0, of="adassp", ends="()")
    if data.count * max(data.dim + 2, 16) ** 2 > MOST:
        shape = data.count, data.dim
        raise DataError(f"`X` of adassp must have n·d² below 2⁴⁶. Got shape {shape}.")
    ratio = labels.grid / data.clip.grid
    if asked.epsilon == math.inf:
        S, b = _sums(data, labels)
        theta = np.asarray(np.linalg.lstsq(S.floats, b.floats)[0], dtype=np.float64)
        return Fit(theta * ratio, Pure(math.inf, **asked.common(CITATION, RELEASED)), {"ridge": 0.0})
    scales = _scales(data.clip.steps, labels.steps, data.dim, asked.relation, asked.mu)
    if max(scales) > noise.MAX_SCALE:
        raise refuse("epsilon", epsilon, of="adassp", allowed="larger", hint="so much noise hides all.")
    theta, ridge, eigenvalue = _solved(*_sums(data, labels), scales, failure, asked.source)
    unit = 2.0**DROPPED * data.clip.grid**2
    report: dict[str, float | str] = {
        "ridge": ridge * unit, "least eigenvalue": eigenvalue * unit,
        "noise of a moment": scales.moments / ON * unit, "noise of a product": scales.products * unit * ratio,
    }  # fmt: skip
    claim = GDP(asked.mu, **asked.common(CITATION, RELEASED))
    return Fit(theta * ratio, asked.stamped(claim), report)
