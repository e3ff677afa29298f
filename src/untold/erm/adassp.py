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
from untold.core import Floats, Ints, Relation, Unit
from untold.erm.base import Curated, Fit
from untold.errors import DataError, between, one_of, positive, refuse, whole
from untold.private import noise
from untold.private.classic import Pure
from untold.private.concentrated import GDP
from untold.private.gaussian_profile import gdp_mu

__all__ = ["Scales", "adassp", "sensitivity"]

Solution = tuple[Floats, float, float]
BLOCK = 1 << 11  # rows whose products, each below 2⁴², sum below 2⁵³: floats add them without rounding
DROPPED = 20  # low bits of a sum of products that are not released
ON, BESIDE = 5, 7  # factors on the diagonal and beside it: 49 ≤ 2·25
MOST = 1 << 46  # of n·max(d + 2, 16)²: neither an overflow nor a larger error of λ_min
RELEASED = "the least eigenvalue, the second moments and the products with the labels"
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
    floors = math.hypot(math.sqrt(d * (d + 1) / 2) / scales.moments, math.sqrt(d) / scales.products)
    return math.hypot(eigenvalue, math.sqrt(together) + floors)


def _scales(K: int, V: int, d: int, relation: Relation, mu: float) -> Scales:
    """Noise in fixed proportions, as little as μ asks for."""
    unit = 2.0**DROPPED
    one = Scales(SHY * K * K / unit, ON * K * K / unit, FREE * K * V / unit)
    times = sensitivity(K, V, d, relation, one) / mu * (1 + 1e-12)  # more than rounding takes away
    return Scales(*(times * scale for scale in one))


def _sums(data: Curated, labels: LInfClip) -> tuple[Ints, Ints]:
    """Σ(q, v)(q, v)ᵀ = high·2²⁰ + low, exactly: the same bits in whatever order and chunks the rows come."""
    high = np.zeros((data.dim + 1, data.dim + 1), dtype=np.int64)
    low = np.zeros_like(high)
    for X, y in data.chunks(BLOCK):
        known = np.isfinite(y)[:, None]
        v = labels.quantise(
            (y + np.copysign(labels.grid / 2, y))[:, None]
        )  # truncates: the nearest step to y
        rows = np.where(known, np.hstack([X / data.clip.grid, v]), 0.0)
        products = (rows.T @ rows).astype(np.int64)
        high += products >> DROPPED
        low += products & ((1 << DROPPED) - 1)
    return high + (low >> DROPPED), low & ((1 << DROPPED) - 1)


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


def _released(high: Ints, low: Ints, scales: Scales, source: noise.Source) -> tuple[Floats, Floats]:
    """M̃ and b̃ in units of 2²⁰ steps."""
    d = len(high) - 1
    upper = np.triu_indices(d)
    factors = np.where(upper[0] == upper[1], ON, BESIDE)
    floors = factors * high[upper] + (factors * low[upper] >> DROPPED)
    triangle = floors + noise.gaussian(floors.size, scales.moments, source)
    moments = np.zeros((d, d))
    moments[upper] = triangle / factors
    moments.T[upper] = triangle / factors
    products = high[:d, d] + noise.gaussian(d, scales.products, source)
    return moments, products.astype(np.float64)


def _spread(d: int, failure: float) -> float:
    """c: how large the noise of M̃ is in any direction, in deviations of an entry on the diagonal."""
    series = math.sqrt(2 * (1 + 25 * (d - 1) / 49) * math.log(d / failure))
    return min(series, 10 / 7 * (math.sqrt(d) + math.sqrt(math.log(1 / failure))))


def _solved(sums: tuple[Ints, Ints], scales: Scales, failure: float, source: noise.Source) -> Solution:
    """θ, the ridge and λ̃, each in its own steps."""
    d = len(sums[0]) - 1
    entry = scales.moments / ON
    threshold = _spread(d, failure) * entry
    margin = math.sqrt(2 * math.log(1 / failure)) * scales.eigenvalue
    bits = math.ceil(threshold + 2 * margin).bit_length()
    noisy = _least(sums[0][:d, :d], bits) + int(noise.gaussian(1, scales.eigenvalue, source)[0])
    eigenvalue = max(0.0, noisy - margin)
    ridge = max(0.0, threshold - eigenvalue)
    moments, products = _released(*sums, scales, source)
    values, vectors = np.linalg.eigh(moments + ridge * np.eye(d))
    return vectors @ ((vectors.T @ products) / np.maximum(values, entry)), ridge, eigenvalue


def _least_squares(high: Ints, low: Ints) -> Floats:
    exact = high * 2.0**DROPPED + low
    theta: Floats = np.linalg.lstsq(exact[:-1, :-1], exact[:-1, -1])[0]
    return theta


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
    relation = Relation(one_of("relation", relation, list(Relation), of="adassp"))
    epsilon = positive("epsilon", epsilon, of="adassp", infinite=True)
    delta = between("delta", delta, 0.0, 1.0, of="adassp", ends="()", hint="Gaussian noise has no δ = 0.")
    failure = between("failure", failure, 0.0, 1.0, of="adassp", ends="()")
    source = None if seed is None else noise.seeded(whole("seed", seed, of="adassp", least=0))
    if data.dim == 0 or data.count * max(data.dim + 2, 16) ** 2 > MOST:
        raise DataError(f"`X` of adassp must have a column, and n·d² below 2⁴⁶. Got shape {data.X.shape}.")
    ratio = labels.grid / data.clip.grid
    if epsilon == math.inf:
        theta = _least_squares(*_sums(data, labels))
        return Fit(theta * ratio, Pure(math.inf, relation=relation, unit=Unit.ROW), {"ridge": 0.0})
    mu = gdp_mu(epsilon, delta)
    scales = _scales(data.clip.steps, labels.steps, data.dim, relation, mu)
    if max(scales) > noise.MAX_SCALE:
        raise refuse("epsilon", epsilon, of="adassp", allowed="larger", hint="so much noise hides all.")
    theta, ridge, eigenvalue = _solved(_sums(data, labels), scales, failure, source)
    unit = 2.0**DROPPED * data.clip.grid**2
    report: dict[str, float | str] = {
        "ridge": ridge * unit, "least eigenvalue": eigenvalue * unit,
        "noise of a moment": scales.moments / ON * unit, "noise of a product": scales.products * unit * ratio,
    }  # fmt: skip
    claim = GDP(mu, relation=relation, unit=Unit.ROW, released=RELEASED, citation="Wang (2018), Algorithm 2")
    return Fit(theta * ratio, claim if seed is None else claim.seed_stamped(), report)
