"""The problems of the accuracy benchmarks: public data sets, where they are at hand, and generated ones.

Rows have columns scaled to [0, 1] by their range, a constant 1, and norm at most 1. Data are read from the
folder ``../shared/data`` beside the project, or the one named by UNTOLD_DATA.
"""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from untold.convex.losses import Absolute, HuberisedHinge, Logistic
from untold.core import Floats, Loss

DATA = Path(os.environ.get("UNTOLD_DATA", Path(__file__).parents[2] / "shared" / "data"))
SETS = ("elec", "bank", "adult", "covtype", "kdd99")
MOST = 200_000


class Problem(NamedTuple):
    """Rows in the unit ball, labels, a loss, and the ε's to try."""

    name: str
    X: Floats
    y: Floats
    loss: Loss
    epsilons: tuple[float, ...]

    def value(self, w: Floats) -> float:
        """The mean loss."""
        return float(self.loss.value(w, self.X, self.y).mean())


def _in_the_ball(X: Floats) -> Floats:
    return np.ascontiguousarray(X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None])


def read(name: str) -> Problem:
    """A data set by its name; of more than 200,000 rows, those that a fixed shuffle puts first."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(DATA / f"{name}_train.parquet")
    columns = np.column_stack([table.column(c).to_numpy().astype(np.float64) for c in table.column_names])
    columns = columns[np.random.default_rng(0).permutation(len(columns))[:MOST]]
    X, y = columns[:, :-1], columns[:, -1]
    low, high = X.min(axis=0), X.max(axis=0)
    X = np.column_stack([(X - low) / np.where(high > low, high - low, 1.0), np.ones(len(X))])
    positive = y == 2 if name == "covtype" else y > 0
    return Problem(name, _in_the_ball(X), np.where(positive, 1.0, -1.0), Logistic(), (1.0, 4.0, 8.0))


def generated() -> Iterator[Problem]:
    """Endless problems: d 2 … 50, n 1e4 … 2e5, ε ½ … 8, ‖u‖ 0.3 … 40, three losses, any conditioning."""
    for k in count():
        rng = np.random.default_rng(7000 + k)
        d = int(np.exp(rng.uniform(np.log(2), np.log(50))))
        n = int(np.exp(rng.uniform(np.log(1e4), np.log(2e5))))
        length = float(np.exp(rng.uniform(np.log(0.3), np.log(40))))
        Z = rng.standard_normal((n, d)) * np.arange(1, d + 1) ** -float(rng.choice([0.0, 0.5, 1.0]))
        if rng.random() < 0.3:
            Z = np.abs(Z)
        if rng.random() < 0.5:
            Z = Z @ np.linalg.qr(rng.standard_normal((d, d)))[0]
        X = np.column_stack([Z / np.sqrt((Z**2).sum(axis=1).mean()), np.ones(n)]) / np.sqrt(2)
        X = _in_the_ball(X)
        u = rng.standard_normal(d + 1)
        z = X @ (u * length / np.linalg.norm(u))
        loss: Loss = (Logistic(), HuberisedHinge(), Absolute())[k % 3]
        if k % 3 == 2:
            y = z + 0.3 * rng.standard_t(3, n)
        else:
            y = np.where(rng.random(n) < 1 / (1 + np.exp(-z)), 1.0, -1.0)
        yield Problem(f"made-{k}", X, y, loss, (float(rng.choice([0.5, 1.0, 2.0, 4.0, 8.0])),))
