"""A small audit: a distinguisher on pairs of inputs never proves more privacy loss than is claimed.

The threshold is chosen on one half of the reports, the bound is taken on the other: Clopper–Pearson at level
1e−5 a side, so 49 audits of correct mechanisms raise a false alarm with probability below 1e−3. It is alive:
mechanisms with a planted defect are caught.
"""

import math

import numpy as np
import pytest
from scipy import stats
from tests.shared_table import RANDOMIZERS

from untold.private.randomizers.normlaplace import NormLaplace
from untold.private.randomizers.privunitg import PrivUnitG

ALPHA = 1e-5
PURE = sorted(set(RANDOMIZERS) - {"gaussian", "mutual-information"})
PAIRS = {
    "opposite": lambda d: (np.eye(1, d)[0], -np.eye(1, d)[0]),
    "diagonal": lambda d: (np.ones(d) / math.sqrt(d), -np.ones(d) / math.sqrt(d)),
    "over the norm": lambda d: (50 * np.eye(1, d)[0], -50 * np.eye(1, d)[0]),
    "missing": lambda d: (np.eye(1, d)[0], np.full(d, np.nan)),
    "short": lambda d: (np.eye(1, d)[0], 0.1 * np.eye(1, d)[0]),
}


def bound(successes, trials, *, upper):
    if upper:
        return stats.beta.ppf(1 - ALPHA, successes + 1, trials - successes) if successes < trials else 1.0
    return stats.beta.ppf(ALPHA, successes, trials - successes + 1) if successes else 0.0


def proven_epsilon(mechanism, one, two, trials=200_000):
    """A lower bound on ε, from the best half line of the reports' projection on the difference."""
    direction = np.nan_to_num(one) - np.nan_to_num(two)
    scores = [mechanism(np.tile(g, (trials, 1))) @ direction for g in (one, two)]
    half = trials // 2
    best, threshold = 0.0, 0.0
    for t in np.quantile(np.concatenate([s[:half] for s in scores]), np.linspace(0.01, 0.99, 99)):
        a, b = ((s[:half] >= t).mean() for s in scores)
        for p, q, side in ((a, b, 1), (1 - b, 1 - a, -1)):
            if q > 20 / half and p / q > math.exp(abs(best)):
                best, threshold = side * math.log(p / q), t
    low, high = 0.0, 1.0
    seen = [int((s[half:] >= threshold).sum()) for s in scores]
    if best < 0:
        seen = [half - seen[1], half - seen[0]]
    low, high = bound(seen[0], half, upper=False), bound(seen[1], half, upper=True)
    return math.log(low / high) if low > 0 else -math.inf


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("dim", [1, 4])
@pytest.mark.parametrize("name", PURE)
def test_no_more_than_claimed(name, dim, pair):
    epsilon = 1.0
    r = RANDOMIZERS[name](epsilon, dim).seeded(1)
    proven = proven_epsilon(r, *PAIRS[pair](dim))
    assert proven <= epsilon
    if dim == 1 and pair in {"opposite", "over the norm"}:
        assert proven > 0.8  # and the claim is not idle


def test_the_audit_is_alive():
    one, two = PAIRS["opposite"](1)
    assert proven_epsilon(PrivUnitG(2.0).seeded(2), one, two) > 1.5  # half the noise that ε = 1 needs
    forgetful = NormLaplace(1.0, bound=8.0).seeded(3)  # a clip that lets through eight times the bound …
    quiet = NormLaplace(8.0, bound=8.0).seeded(3)  # … with the noise of bound one
    assert proven_epsilon(forgetful, 50 * one, 50 * two) <= 1.0
    assert proven_epsilon(quiet, 50 * one, 50 * two) > 3.0
    rng = np.random.default_rng(4)
    add_remove = lambda rows: np.clip(rows, -1, 1) + rng.laplace(scale=1.0, size=rows.shape)  # noqa: E731
    assert proven_epsilon(add_remove, one, two) > 1.5  # sensitivity 1 where a replacement moves by 2
