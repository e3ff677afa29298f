"""Rows in the curator's hands, and exact sums over them. Everything is exact or at fixed seeds."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from untold.convex.clipping import L2Clip
from untold.convex.losses import LOSSES, GeometricMedian, Huber, Logistic, Mean, Multinomial, Squared
from untold.convex.rows import Linear
from untold.erm import readable
from untold.erm.base import curated, streamed
from untold.erm.exact import Exact, products
from untold.erm.sums import GradientSums
from untold.errors import DataError

FACTORED = [loss for loss in LOSSES if not isinstance(loss, GeometricMedian | Mean)]


@dataclass(frozen=True)
class Own(Linear):
    """A loss nobody has compiled: Huber's, by another name."""

    labels: ClassVar[str] = "reals"
    steepest: ClassVar[float] = 1.0
    curvature: ClassVar[float] = 1.0

    def pointwise(self, z, y):
        return Huber().pointwise(z, y)

    def slope(self, z, y):
        return Huber().slope(z, y)


def rows(n=300, d=7, seed=0, hostile=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / 2
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    if hostile:
        X[3, 0], X[5, -1], X[7], X[9], X[11, :2] = np.nan, np.inf, 1e308, 1e-320, [-np.inf, np.inf]
        y[15], y[17], y[19] = np.nan, 0.5, 1e308
    return X, y


def labelled(loss, y):
    """The same labels as the loss wants them; bad ones stay bad."""
    if not isinstance(loss, Multinomial):
        return y
    return np.where(np.abs(y) == 1, (y + 1) / 2 + (np.arange(y.size) % 2), y)


def point(loss, d=7, seed=1):
    shape = (loss.classes, d) if isinstance(loss, Multinomial) else (d,)
    return np.random.default_rng(seed).normal(size=shape) * 2


def whole(sums):
    return sums.high.astype(object) * 2**20 + sums.low


# Sums


@pytest.mark.parametrize("loss", FACTORED, ids=str)
@pytest.mark.parametrize("weighed", [False, True])
def test_a_sum_is_the_sum_of_its_rows_in_integers(loss, weighed):
    """Every row's ρ and q by hand, in whole numbers; ‖ρ‖·‖q‖ ≤ M for each."""
    X, y = rows()
    y, w = labelled(loss, y), point(loss)
    data = curated(X, y, 1.3)
    weights = np.random.default_rng(2).random(300) if weighed else None
    sums = GradientSums(data, loss, 0.7, weights)
    q, wanted = L2Clip(1.3).fit(X), np.zeros(sums.shape, dtype=object)
    for i in range(len(X)):
        one = np.atleast_2d(q[i].astype(float))
        r = readable.residuals(sums, w, one * data.clip.grid, y[i : i + 1])
        with np.errstate(over="ignore"):
            raw = np.trunc((1.0 if weights is None else weights[i]) * r / sums.unit)
        rho = readable.whole(raw, r, one, sums.most)[0]
        rho = [int(part) for part in rho]
        assert sum(k * k for k in q[i].tolist()) <= data.clip.steps**2
        assert sum(k * k for k in rho) * sum(k * k for k in q[i].tolist()) <= int(sums.most) ** 2
        outer = np.array([[part * k for k in q[i].tolist()] for part in rho], dtype=object)
        wanted = wanted + outer.reshape(sums.shape)
    assert (whole(sums.exact(w)) == wanted).all()
    assert (whole(readable.exact_sum(sums, w)) == wanted).all()
    assert (sums(w) == np.array([int(v) >> 20 for v in wanted.ravel()]).reshape(sums.shape)).all()


@pytest.mark.parametrize("loss", [GeometricMedian(), Mean()], ids=str)
def test_a_sum_over_points_is_one_of_quantised_vectors(loss):
    X, y = rows()
    data, w = curated(X, y, 1.3), point(loss)
    sums = GradientSums(data, loss, 0.7)
    wanted = np.zeros(7, dtype=np.int64)
    for x in data.rows()[0]:
        q = L2Clip(0.7).quantise(loss.subgradient(w, x)[np.newaxis])[0]
        assert (q * q).sum() <= sums.points.steps**2
        wanted += q
    assert (sums(w) == wanted).all()


@pytest.mark.parametrize("loss", [Logistic(), Multinomial(classes=3), GeometricMedian(), Own()], ids=str)
def test_a_sum_does_not_depend_on_order_chunks_kind_or_width_of_rows(loss, monkeypatch):
    X, y = rows(n=1000)
    X[np.random.default_rng(2).random(X.shape) < 0.5] = 0.0
    with np.errstate(over="ignore"):
        X = X.astype(np.float32).astype(np.float64)
    y, w = labelled(loss, y), point(loss)
    known = GradientSums(curated(X, y), loss, 0.9)(w)
    order = np.random.default_rng(3).permutation(1000)
    chosen = np.sort(order[:300])
    others = {
        "order": curated(X[order], y[order]), "sparse": curated(scipy.sparse.csr_array(X), y),
        "narrow": curated(X.astype(np.float32), y), "columns first": curated(np.asfortranarray(X), y),
        "shards": streamed([(X[:1], y[:1]), (X[1:1], y[1:1]), (X[1:700], y[1:700]), (X[700:], y[700:])]),
        "sparse shards": streamed(lambda: ((scipy.sparse.csr_array(X[i::3]), y[i::3]) for i in range(3))),
    }  # fmt: skip
    for name, data in others.items():
        assert (GradientSums(data, loss, 0.9)(w) == known).all(), name
        if name in {"sparse", "narrow", "columns first", "shards"}:
            parts = [GradientSums(data, loss, 0.9) for _ in range(2)]
            rest = np.setdiff1d(order, chosen)
            if parts[0].factored:
                split = parts[0].exact(w, chosen), parts[1].exact(w, rest)
                assert (whole(split[0]) + whole(split[1]) == whole(parts[0].exact(w))).all(), name
            else:
                assert (parts[0](w, chosen) + parts[1](w, rest) == known).all(), name
    for module in ("sums", "base", "readable"):
        monkeypatch.setattr(f"untold.erm.{module}.CHUNK", 7)
    monkeypatch.setattr("untold.erm.readable.BLOCK", 13)
    assert (GradientSums(curated(X, y), loss, 0.9)(w) == known).all()


@pytest.mark.parametrize("row", [[1e308] * 7, [np.nan] * 7, [np.inf] + [0.0] * 6, [0.0] * 7, [3.0] * 7])
@pytest.mark.parametrize("label", [1.0, -1.0, 0.0, np.nan, 1e308])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_one_row_moves_a_sum_by_at_most_its_bound(row, label, loss):
    X, y = rows(hostile=False)
    w = point(loss)
    y = labelled(loss, y)
    without = GradientSums(curated(X, y), loss, 0.3)
    with_it = GradientSums(curated(np.vstack([X, row]), np.append(y, label)), loss, 0.3)
    moved = (with_it(w) - without(w)).ravel().tolist()
    assert sum(k * k for k in moved) <= without.steps**2


@given(st.integers(0, 2**32), st.sampled_from([1e-3, 1.0, 1e3]), st.floats(-30, 30))
def test_slopes_are_as_large_as_they_may_be(seed, norm, stretch):
    """Random rows of any norm at any point: whatever is released of one is within the stated bound."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(1, 3)) * norm * 10 ** rng.uniform(-2, 2), rng.normal(size=3) * stretch / norm
    for loss in (Logistic(), Squared(), Huber(delta=5.0)):
        for bound in (norm, 0.1 * norm):
            sums = GradientSums(curated(X, [1.0], norm), loss, bound)
            exact = whole(sums.exact(w)).ravel().tolist()
            assert sum(int(k) ** 2 for k in exact) <= int(sums.most) ** 2
            assert np.linalg.norm(sums(w).astype(float)) <= sums.steps
            assert sums.steps * sums.grid <= bound * (1 + 1e-5)


def test_a_residual_of_classes_is_shortened():
    X, y = rows(hostile=False)
    loss = Multinomial(classes=3)
    w, y = 10 * point(loss), labelled(loss, y)
    sums = GradientSums(curated(X, y), loss, 1.0, np.ones(300), steepest=0.5)
    assert (whole(sums.exact(w)) == whole(readable.exact_sum(sums, w))).all()
    alone = GradientSums(curated(X[:1], y[:1]), loss, 1.0, np.ones(1), steepest=0.5)
    size = np.linalg.norm(whole(alone.exact(w)).astype(float)) * alone.unit * alone.data.clip.grid
    assert size <= 0.5 * np.linalg.norm(alone.data.rows()[0][0]) * (1 + 1e-12)


@pytest.mark.parametrize("loss", [*FACTORED, Own()], ids=str)
def test_curvature_is_that_of_the_mean_loss(loss):
    """Σ trunc(2²⁰·ω·curvature/largest), against slopes by hand; a row gives at most 2²⁰ and at least 0."""
    X, y = rows()
    y, w = labelled(loss, y), point(loss)
    weights = np.random.default_rng(2).random(300)
    sums = GradientSums(curated(X, y), loss, 1.0, weights)
    largest = 2.0 / 9 if isinstance(loss, Multinomial) else 2.0
    found = sums.bends(w, largest)
    assert found == readable.bends(sums, w, largest, 0.5)
    rows_, labels = sums.data.rows()
    curved = readable.curvatures(sums, w, rows_, labels, 0.5)
    assert found == pytest.approx(2**20 * (weights * np.minimum(1, curved / largest)).sum(), abs=300)
    if isinstance(loss, Logistic):
        z = rows_ @ w
        second = 1 / (2 + 2 * np.cosh(z)) * (np.abs(labels) == 1)
        assert 2 * found / 2**20 == pytest.approx((weights * second).sum(), rel=0.05)


# Exact sums


def test_limbs_carry():
    blocks = [np.full((2,), value) for value in (2.0**53 - 1, -(2.0**53) + 1, 1.0, -1.0, -3.0, 2.0**21)]
    total = Exact.zero((2,))
    for block in blocks:
        total = total.plus(block)
    assert whole(total).tolist() == [2**21 - 3] * 2
    assert (total.low >= 0).all()
    assert total.floats.tolist() == [2.0**21 - 3] * 2
    assert total.floor(7).tolist() == [7 * (2**21 - 3) >> 20] * 2
    A = np.random.default_rng(0).integers(-(2**21), 2**21, size=(2048, 3)).astype(float)
    exact = A.astype(int).astype(object).T @ A.astype(int).astype(object)
    assert (whole(products([(A, A)], (3, 3))) == exact).all()
    sparse = scipy.sparse.csr_array(A)
    assert (whole(products([(sparse, sparse)], (3, 3))) == exact).all()


# Rows


def test_rows_are_clipped_as_their_clip_says_sparse_or_dense():
    X, y = rows(n=50)
    for norm in (0.2, 1.0, 1.7):
        q = L2Clip(norm).fit(X)
        for data in (curated(X, y, norm), curated(scipy.sparse.csr_array(X), y, norm)):
            found = [
                part if isinstance(part, np.ndarray) else part.toarray() for part, _ in data.quantised(7)
            ]
            assert (np.concatenate(found) == q).all()
        assert (curated(X, y, norm).rows()[0] == q * L2Clip(norm).grid).all()


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=5), st.floats(1e-3, 1e3))
def test_a_row_that_fits_is_not_shortened(row, norm):
    clip = L2Clip(norm)
    q = clip.fit(np.array([row]))[0].tolist()
    assert sum(k * k for k in q) <= clip.steps**2
    near = [abs(x) <= norm for x in row]
    steps = [math.trunc(x / clip.grid) if n else clip.steps + 1 for x, n in zip(row, near, strict=True)]
    if sum(k * k for k in steps) <= clip.steps**2:
        assert q == steps
    else:
        assert q == clip.quantise(np.array([row]))[0].tolist()


def test_progress_is_told_and_pages_are_given_back(tmp_path):
    X, y = rows(n=100, hostile=False)
    told = []
    data = streamed([(X[:30], y[:30]), (X[30:], y[30:])], progress=lambda done, of: told.append((done, of)))
    for _ in data.parts(16):
        pass
    assert told == [(16, 100), (30, 100), (46, 100), (62, 100), (78, 100), (94, 100), (100, 100)]
    told.clear()
    for part, order, places in data.chosen(np.array([2, 29, 30, 99])):
        assert (np.asarray(part.X)[order] == X[places]).all()
    assert told == [(30, 100), (100, 100)]
    path = tmp_path / "rows.npy"
    np.save(path, X)
    mapped = curated(np.load(path, mmap_mode="r"), y)
    assert (
        GradientSums(mapped, Logistic(), 1.0)(np.ones(7)) == GradientSums(data, Logistic(), 1.0)(np.ones(7))
    ).all()


@pytest.mark.parametrize(
    ("shards", "words"),
    [
        (iter([]), "more than once"), (3, "more than once"), ([], "at least one"), ([1], "pairs"),
        ([(np.eye(2), [1, 1]), (np.eye(3), [1, 1, 1])], "2 columns"),
        ([(np.eye(2), [1, 1, 1])], "one label a row"), ([(np.eye(2), [True, False])], "booleans"),
    ],
)  # fmt: skip
def test_shards_that_do_not_fit_are_refused(shards, words):
    with pytest.raises(DataError, match=words):
        streamed(shards)
