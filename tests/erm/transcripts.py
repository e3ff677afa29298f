"""Two neighbours, one transcript: what Gaussian mechanisms reveal when both are made to release the same.

`noise.gaussian` is replaced by something that sees what it is added to. On the first run it adds noise and
keeps what came out; on the second it makes the same come out, whatever the rows. So the second run takes the
same way, every release of it has the same scale, and the squared distances of what was to be hidden, in units
of their noise, add up to what the claim must cover: Σ(‖v − v′‖/σ)² ≤ μ².
"""

import numpy as np

from untold.private import noise


class Seen:
    """Noise that sees what it is added to."""

    __array_ufunc__ = None

    def __init__(self, tape, scale, size):
        self.tape, self.scale, self.size = tape, scale, size

    def reshape(self, *_):
        return self

    def __radd__(self, value):
        return self.tape.release(np.asarray(value), self.scale)

    __add__ = __radd__


class Tape:
    """Releases in order: values before noise, scales, and what came out."""

    def __init__(self, monkeypatch, outputs=None, seed=0):
        self.values, self.scales, self.outputs = [], [], []
        self.given, self.rng = outputs, np.random.default_rng(seed)
        monkeypatch.setattr(noise, "gaussian", lambda count, scale, source=None: Seen(self, scale, count))

    def release(self, value, scale):
        given = (
            None
            if self.given is None or len(self.values) >= len(self.given)
            else self.given[len(self.values)]
        )
        if given is None:
            given = value + np.rint(scale * self.rng.standard_normal(value.shape)).astype(np.int64)
        self.values.append(value)
        self.scales.append(scale)
        self.outputs.append(given)
        return given


def spent(monkeypatch, fit, one, other, seed=0):
    """μ² that this pair of data sets used up on one random transcript of the first."""
    with monkeypatch.context() as patch:
        first = Tape(patch, seed=seed)
        fit(one)
    with monkeypatch.context() as patch:
        second = Tape(patch, outputs=first.outputs)
        fit(other)
    assert first.scales == second.scales
    moved = [
        (np.linalg.norm((a - b).astype(float)) / s) ** 2
        for a, b, s in zip(first.values, second.values, first.scales, strict=True)
    ]
    return sum(moved)
