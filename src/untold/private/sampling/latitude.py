"""How far from the pole: the angle of a uniform point of the sphere, given its side of a latitude.

With w = sin πv the component of a uniform point of S^{d−1} along the pole, v ∈ [−½, ½] has density
∝ f(v) = cos^{d−2}(πv). Given the side of γ (v above it or below it) v is drawn by rejection from a
histogram: pick a bin with probability P_k/2⁵² (an integer P_k), v uniform in it, and accept it with
probability f(v)·c_k ≤ 1, c_k = (its width)/(M·P_k). Whatever the bins are, what is accepted has density
exactly ∝ f; good bins only make it rarely fail. The trials are of a fixed number, taken from words set
aside, so that how long it takes tells nothing; a row whose trials all fail is in doubt.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from untold.compiled import inlined
from untold.core import Floats, Ints
from untold.private.sampling.additive import LOG_SLOPE, LOG_WIDTH, SMALLEST, U
from untold.private.sampling.elementary import cos_sin, midpoint, minus_log
from untold.private.sampling.keystream import Words

__all__ = ["TRIAL_WORDS", "LatitudeTable", "latitude", "latitude_table"]

TRIALS = 4
TRIAL_WORDS = 3 * TRIALS
TRIG_ERROR = 64 * U  # of sin πv and cos πv, the width of v's uniform included
EDGE_STEP = 2.0**-48  # bin edges are multiples of it, so that every width is exact
TOTAL = 1 << 52


class LatitudeTable(NamedTuple):
    """The two histograms, heads first: bin edges, cumulative integer weights, −ln c_k; and M."""

    edges: tuple[Floats, Floats]
    cumulative: tuple[Ints, Ints]
    minus_log_c: tuple[Floats, Floats]
    M: tuple[float, float]


def _edges(low: float, high: float, dim: int) -> Floats:
    """Edges of equal probability, refined towards both ends so that no bin reaches far into a tail."""
    from scipy import special

    a = (dim - 1) / 2
    below, above = (special.betainc(a, a, (1 - math.sin(math.pi * v)) / 2) for v in (high, low))
    inner = np.arange(1, 256) / 256
    ends = 2.0 ** -np.arange(9, 60)
    share = np.concatenate([ends, inner, 1 - ends[:44]])
    w = 1 - 2 * special.betaincinv(a, a, below + (above - below) * share)
    v = np.round(np.arcsin(np.clip(w, -1, 1)) / math.pi / EDGE_STEP) * EDGE_STEP
    return np.unique(np.concatenate([[low, high], v[(v > low) & (v < high)]]))


def _histogram(low: float, high: float, dim: int) -> tuple[Floats, Ints, Floats, float]:
    edges = _edges(low, high, dim)
    nearest = np.maximum(0.0, np.maximum(edges[:-1], -edges[1:]))  # to 0, where f is largest
    top = (dim - 2) * np.log(np.cos(math.pi * nearest))
    widths = np.diff(edges)
    area = np.exp(top - top.max()) * widths
    weights = np.ceil(area / area.sum() * TOTAL).astype(np.int64)
    weights[np.argmax(weights)] -= weights.sum() - TOTAL
    ratio = top + np.log(widths) - np.log(weights.astype(float))
    M = math.exp(ratio.max()) * (1 + 2.0**-30)
    minus_log_c = math.log(M) + np.log(weights.astype(float)) - np.log(widths)
    return edges, np.cumsum(weights), minus_log_c, M


@functools.lru_cache(maxsize=64)
def latitude_table(dim: int, v_cut: float) -> LatitudeTable:
    """The histograms of the two sides of w = sin(π·v_cut) on the sphere of R^dim, dim ≥ 2."""
    sides = [_histogram(v_cut, 0.5, dim), _histogram(-0.5, v_cut, dim)]
    edges, cumulative, minus_log_c, M = zip(*sides, strict=True)
    return LatitudeTable(edges, cumulative, minus_log_c, M)


@inlined
def _trial(
    words: Words, edges: Floats, cumulative: Ints, minus_log_c: Floats, dim: int
) -> tuple[float, float, int]:
    """cos πv, sin πv and +1 accepted, 0 rejected, −1 undecided."""
    pick = np.int64(words[0] >> np.uint64(12))
    k = np.searchsorted(cumulative, pick, side="right")
    v = edges[k] + (edges[k + 1] - edges[k]) * midpoint(words[1])
    c, s = cos_sin(2.0 * v)
    cosine, sine = c * c - s * s, 2.0 * c * s
    m = midpoint(words[2])
    L = minus_log(m)
    cosine = max(cosine, 2.0**-40)
    decay = (dim - 2) * minus_log(cosine) if cosine < 1.0 else 0.0
    margin = L - decay - minus_log_c[k]
    error = LOG_SLOPE * (L + decay + abs(minus_log_c[k])) + LOG_WIDTH / m
    error += (dim - 2) * 2.0 * TRIG_ERROR / cosine + 2.0**-44
    unknown = m <= SMALLEST or abs(margin) <= error or cosine <= 2.0**-30
    return cosine, sine, -1 if unknown else (1 if margin > 0.0 else 0)


@inlined
def latitude(words: Words, high: bool, dim: int, table: LatitudeTable) -> tuple[float, float, float, bool]:
    """w = sin πv, √(1 − w²) = cos πv, a bound on the error of both, and whether they are certain."""
    side = 0 if high else 1
    edges, cumulative = table.edges[side], table.cumulative[side]
    minus_log_c = table.minus_log_c[side]
    for i in range(TRIALS):
        cosine, sine, verdict = _trial(words[3 * i : 3 * i + 3], edges, cumulative, minus_log_c, dim)
        if verdict == 1:
            return sine, cosine, TRIG_ERROR, True
        if verdict == -1:
            break
    return 0.0, 1.0, TRIG_ERROR, False
