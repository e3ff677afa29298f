"""A learner and its state in a file: JSON for what is a number or a word, NumPy's own format for arrays.

The file is a NumPy archive (`.npz`) that holds no Python objects: one entry per array of the state, and
``about``, UTF-8 JSON with a version, the learner's settings and the state's numbers. A run resumed from it
is the straight run, bit for bit. It is written beside and renamed, so that there is always a whole one.
Nothing is ever imported, or built, by a name found in a file: only what is listed here.
"""

import dataclasses
import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from untold.convex import domains
from untold.errors import DataError, UntoldError
from untold.learners import (
    average,
    banco,
    bandit,
    bettor,
    coordinatewise,
    descent,
    dog,
    information,
    mirror,
    potential,
    priors,
    reduction,
    rules,
)

__all__ = ["load", "save"]

VERSION = 1
LEARNERS: dict[str, tuple[type, type]] = {
    learner.__name__: (learner, state)
    for learner, state in (
        (banco.Banco, banco.BancoState),
        (bandit.BanditDescent, information.LazyState),
        (bettor.Bettor, bettor.BettorState),
        (coordinatewise.Coordinatewise, coordinatewise.CoordinatewiseState),
        (descent.Descent, descent.DescentState),
        (dog.DistanceOverGradients, dog.DogState),
        (information.LazyDescent, information.LazyState),
        (mirror.MirrorDescent, mirror.MirrorState),
        (potential.AdaptivePotential, potential.PotentialState),
        (reduction.Reduction, reduction.ReductionState),
    )
}
PARTS: dict[str, type] = {
    part.__name__: part
    for module in (average, priors, rules, domains)
    for name in module.__all__
    if dataclasses.is_dataclass(part := getattr(module, name)) and isinstance(part, type)
}


def _written(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _written(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"kind": type(value).__name__, **fields}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _read(value: Any, known: dict[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() == {"float"}:
        return float(value["float"])
    fields = dict(value)
    part = known[fields.pop("kind")]
    return part(**{name: _read(entry, PARTS) for name, entry in fields.items()})


def save(path: str | os.PathLike[str], learner: object, state: Any) -> None:
    """Writes both, whole or not at all.

    >>> import tempfile
    >>> learner = mirror.MirrorDescent(radius=2.0)
    >>> state = learner.step(learner.start(2), np.array([3.0, 0.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/run.npz", learner, state)
    ...     again, resumed = load(f"{folder}/run.npz")
    >>> again == learner, resumed.w.tolist(), resumed.t
    (True, [-2.0, 0.0], 1)
    """
    name = type(learner).__name__
    if LEARNERS.get(name, (None, None)) != (type(learner), type(state)):
        raise DataError(f"`state` of save must be of its learner. Got {type(state).__name__} of {name}.")
    entries = state._asdict()
    arrays = {k: v for k, v in entries.items() if isinstance(v, np.ndarray)}
    numbers = {k: _written(v) for k, v in entries.items() if k not in arrays}
    about = json.dumps(
        {"version": VERSION, "learner": _written(learner), "numbers": numbers}, allow_nan=False
    )
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            np.savez(file, allow_pickle=False, about=np.frombuffer(about.encode(), dtype=np.uint8), **arrays)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> tuple[Any, Any]:
    """The learner and the state that `save` wrote; anything else is refused with `DataError`."""
    try:
        with np.load(Path(path), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        about = json.loads(arrays.pop("about").tobytes())
        if about["version"] != VERSION:
            raise DataError(
                f"`version` of a saved run must be {VERSION}.", hint="use the untold that wrote it."
            )
        learner = _read(about["learner"], {name: pair[0] for name, pair in LEARNERS.items()})
        kind = LEARNERS[type(learner).__name__][1]
        numbers = {name: _read(entry, {}) for name, entry in about["numbers"].items()}
        return learner, _state(kind, learner, {**numbers, **arrays})
    except UntoldError:
        raise
    except FileNotFoundError:
        raise DataError(f"there is no saved run at {os.fspath(path)}.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile):
        raise DataError(f"{os.fspath(path)} is not a saved run that can be read.") from None


def _state(kind: Any, learner: Any, entries: dict[str, Any]) -> Any:
    """The state, if its entries are those of a fresh one in name, kind and shape."""
    state = kind(**entries)
    fresh = learner.start(state.w.size)
    for name, start in fresh._asdict().items():
        entry = entries[name]
        fits = entry.dtype == np.float64 if isinstance(start, np.ndarray) else type(entry) is type(start)
        if not fits or np.shape(entry) != np.shape(start):
            raise DataError(f"`{name}` of a saved {type(learner).__name__} does not fit its learner.")
    return state
