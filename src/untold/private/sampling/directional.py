"""Noise that depends on where its input points: PrivUnitG, PrivUnit and Duchi, on integer rows q.

A row q of integers has ‖q‖₂ ≤ K. Letters as in ``additive.py``; N a vector of normals (z₁ then z₂),
S = ⟨N, q⟩, a = ‖q‖₂². A coin that is not certain leaves its whole row undecided (an error bound of ∞ or NaN).
"""

import math

import numpy as np

from untold.compiled import inlined, kernel, summing
from untold.core import Floats, Ints
from untold.private.sampling.additive import BLOCK, SMALLEST, U, depth, normals
from untold.private.sampling.elementary import HALF_WIDTH, UNDECIDED, midpoint, settled
from untold.private.sampling.keystream import Words
from untold.private.sampling.latitude import LatitudeTable, latitude
from untold.private.sampling.tail import QUANTILE_ERROR, normal_tail

__all__ = ["duchi", "privunit", "privunit_g", "privunit_g_row"]


@inlined
def _heads(word: np.uint64, chance: int) -> float:
    """1 with probability chance·2⁻⁵³, exactly, else 0."""
    return np.float64(np.int64(word >> np.uint64(11)) < chance)


@inlined
def _truncated_normal(coin: np.uint64, tail: np.uint64, chance: int, Q: float) -> tuple[float, float]:
    """t beyond the normal's upper Q-quantile if the coin shows heads, else below it; and its error.

    By inversion: P[N > t] = Q·V, or P[N < t] = (1 − Q)·V, with V uniform. Choices are products with 0 or 1
    and not branches, so that the time they take does not tell how they went.
    """
    m = midpoint(tail)
    high = _heads(coin, chance)
    mass = high * Q + (1.0 - high) * (1.0 - Q)
    p = mass * m
    error = mass * HALF_WIDTH + 2.0 * U * (high * p + (1.0 - high))
    over = np.float64(p > 0.5)
    p = over * (1.0 - p) + (1.0 - over) * p
    sign = 2.0 * max(high, over) - 1.0
    unknown = m <= SMALLEST or error > 0.25 * p
    return sign * normal_tail(p), (math.inf if unknown else 2.0 * error / p + QUANTILE_ERROR)


@summing
def _inner_block(z: Floats, e: Floats, q: Ints) -> tuple[float, float, float]:
    s = 0.0
    size = 0.0
    error = 0.0
    for j in range(q.size):
        x = np.float64(q[j])
        s += z[j] * x
        size += abs(z[j] * x)
        error += e[j] * abs(x)
    return s, size, error


@inlined
def _inner(z1: Floats, z2: Floats, e: Floats, q: Ints) -> tuple[float, float]:
    """S = Σ N·q and a bound on its error: Σ e·|q|, and the roundings of a sum by blocks."""
    n = z1.size
    s = 0.0
    size = 0.0
    error = 0.0
    for k in range(0, n, BLOCK):
        s1, size1, error1 = _inner_block(z1[k : k + BLOCK], e[k : k + BLOCK], q[:n][k : k + BLOCK])
        s2, size2, error2 = _inner_block(z2[k : k + BLOCK], e[k : k + BLOCK], q[n:][k : k + BLOCK])
        s += s1 + s2
        size += size1 + size2
        error += error1 + error2
    return s, error + (depth(q.size) + 4) * U * size


@summing
def _energy_block(z: Floats, e: Floats) -> tuple[float, float]:
    s = 0.0
    error = 0.0
    for j in range(z.size):
        s += z[j] * z[j]
        error += e[j] * (2.0 * abs(z[j]) + e[j])
    return s, error


@inlined
def _energy(z1: Floats, z2: Floats, e: Floats, d: int) -> tuple[float, float]:
    """Σ N² over d coordinates and a bound on its error."""
    n = z1.size
    s = 0.0
    error = 0.0
    for k in range(0, n, BLOCK):
        s1, error1 = _energy_block(z1[k : k + BLOCK], e[k : k + BLOCK])
        s2, error2 = _energy_block(z2[: d - n][k : k + BLOCK], e[: d - n][k : k + BLOCK])
        s += s1 + s2
        error += error1 + error2
    return s, error + (depth(d) + 4) * U * s


@summing
def _square(q: Ints) -> float:
    """Σ q²: exact in any order, since every partial sum is a whole number below 2⁵³."""
    s = 0.0
    for j in range(q.size):
        x = np.float64(q[j])
        s += x * x
    return s


@inlined
def _settle_mixed(z: Floats, e: Floats, q: Ints, A: float, B: float, eA: float, eB: float, out: Ints) -> int:
    """out = round(A·z + B·q), A and B known to within eA and eB; returns how many are undecided."""
    undecided = 0
    for j in range(out.size):
        x = np.float64(q[j])
        error = abs(A) * e[j] + eA * abs(z[j]) + eB * abs(x)
        nearest = settled(A * z[j] + B * x, error)
        out[j] = nearest
        undecided += nearest == UNDECIDED
    return undecided


@inlined
def privunit_g_row(
    z1: Floats, z2: Floats, e: Floats, coin: np.uint64, tail: np.uint64, q: Ints,
    K: int, chance: int, Q: float, inverse: float, out: Ints,
) -> int:  # fmt: skip
    """out = round(inverse·(K·N + (t − ⟨N, x⟩)·q)), where (q/K, √(1 − ‖q/K‖²)) = x is a unit vector."""
    d, n = q.size, z1.size
    S, eS = _inner(z1, z2, e, q)
    rest = math.sqrt(np.float64(K) * K - _square(q))
    last = rest * z2[d - n]
    D = (S + last) / K
    t, et = _truncated_normal(coin, tail, chance, Q)
    A = K * inverse
    B = (t - D) * inverse
    eD = (eS + rest * e[d - n] + 8.0 * U * (abs(S) + abs(last))) / K
    eB = (et + eD) * inverse + 8.0 * U * (abs(t) + abs(D)) * inverse
    undecided = _settle_mixed(z1, e, q[:n], A, B, 4.0 * U * A, eB, out[:n])
    return undecided + _settle_mixed(z2, e, q[n:], A, B, 4.0 * U * A, eB, out[n:])


@kernel
def privunit_g(
    radial: Words, angular: Words, coins: Words, tails: Words, q: Ints,
    K: int, chance: int, Q: float, inverse: float, out: Ints,
) -> int:  # fmt: skip
    """`privunit_g_row` of each row, from one block of words for all."""
    rows = q.shape[0]
    n = radial.size // rows
    z1, z2, e = np.empty(rows * n), np.empty(rows * n), np.empty(rows * n)
    normals(radial, angular, z1, z2, e)
    undecided = 0
    for i in range(rows):
        own = slice(i * n, (i + 1) * n)
        undecided += privunit_g_row(
            z1[own], z2[own], e[own], coins[i], tails[i], q[i], K, chance, Q, inverse, out[i]
        )
    return undecided


@inlined
def _orientation(word: np.uint64, norm: float, K: int) -> tuple[float, bool]:
    """+1 with probability (1 + norm/K)/2, else −1, so that its mean is norm/K; and whether it is certain."""
    m = midpoint(word)
    threshold = 0.5 * (1.0 + norm / K)
    return 2.0 * np.float64(m < threshold) - 1.0, abs(m - threshold) > HALF_WIDTH + 4.0 * U


@kernel
def duchi(
    radial: Words, angular: Words, coins: Words, signs: Words, q: Ints,
    K: int, chance: int, size: float, out: Ints,
) -> int:  # fmt: skip
    """Rows of round(±size·N/‖N‖), on the side of ±q that the coin says."""
    rows, d = q.shape
    n = radial.size // rows
    z1, z2, e = np.empty(rows * n), np.empty(rows * n), np.empty(rows * n)
    normals(radial, angular, z1, z2, e)
    undecided = 0
    for i in range(rows):
        n1, n2, en = z1[i * n : (i + 1) * n], z2[i * n : (i + 1) * n], e[i * n : (i + 1) * n]
        a = _square(q[i])
        S, eS = _inner(n1, n2, en, q[i])
        if a == 0.0:
            S, eS = float(n1[0]), float(en[0])
        energy, known = _energy(n1, n2, en, d)
        direction, sure = _orientation(signs[i], math.sqrt(a), K)
        turn = direction * (2.0 * np.float64(S > 0.0) - 1.0) * (2.0 * _heads(coins[i], chance) - 1.0)
        A = turn * size / math.sqrt(energy)
        eA = abs(A) * (known / energy + 8.0 * U)
        if not (sure and abs(S) > eS and known < 0.25 * energy):
            eA += math.inf
        undecided += _settle_mixed(n1, en, q[i, :n], A, 0.0, eA, 0.0, out[i, :n])
        undecided += _settle_mixed(n2, en, q[i, n:], A, 0.0, eA, 0.0, out[i, n:])
    return undecided


@kernel
def privunit(
    radial: Words, angular: Words, coins: Words, signs: Words, trials: Words, q: Ints,
    K: int, chance: int, size: float, table: LatitudeTable, out: Ints,
) -> int:  # fmt: skip
    """Rows of round(size·(w·x + √(1−w²)·o/‖o‖)), x = ±q/‖q‖ and o the part of N orthogonal to q.

    w is drawn beyond the latitude γ if the coin shows heads, else below it. Written as A·N + B·q.
    """
    rows, d = q.shape
    n = radial.size // rows
    k = trials.size // rows
    z1, z2, e = np.empty(rows * n), np.empty(rows * n), np.empty(rows * n)
    normals(radial, angular, z1, z2, e)
    x = np.empty(d, dtype=np.int64)
    undecided = 0
    for i in range(rows):
        n1, n2, en = z1[i * n : (i + 1) * n], z2[i * n : (i + 1) * n], e[i * n : (i + 1) * n]
        x[:] = q[i]
        a = _square(x)
        direction, sure = _orientation(signs[i], math.sqrt(a), K)
        if a == 0.0:
            x[0], a = 1, 1.0
        root = math.sqrt(a)
        S, eS = _inner(n1, n2, en, x)
        energy, known = _energy(n1, n2, en, d)
        across = energy - S * S / a
        known += 8.0 * U * energy + eS * (2.0 * abs(S) + eS) / a
        w, v, ew, found = latitude(trials[i * k : (i + 1) * k], _heads(coins[i], chance) > 0.0, d, table)
        length = math.sqrt(across) if known < 0.25 * across else math.nan
        A = size * v / length
        eA = A * (known / across + 8.0 * U) + size * ew / length
        along = size * direction * w / root
        B = along - A * S / a
        eB = size * ew / root + (A * eS + eA * abs(S)) / a + 8.0 * U * (abs(along) + A * abs(S) / a)
        if not (sure and found):
            eB = math.nan
        undecided += _settle_mixed(n1, en, x[:n], A, B, eA, eB, out[i, :n])
        undecided += _settle_mixed(n2, en, x[n:], A, B, eA, eB, out[i, n:])
    return undecided
