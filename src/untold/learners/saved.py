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

import untold
from untold.convex import domains
from untold.errors import DataError, UntoldError
from untold.learners import average, priors, rules
from untold.learners.base import PureLearner

__all__ = ["load", "save"]

VERSION = 1
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


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() == {"float"}:
        return float(value["float"])
    return PARTS[value["kind"]](**_settings(value))


def _settings(value: dict[str, Any]) -> dict[str, Any]:
    return {name: _read(entry) for name, entry in value.items() if name != "kind"}


def _learner(value: dict[str, Any]) -> PureLearner[Any]:
    """The public learner of that name, with its settings."""
    kind = getattr(untold, value["kind"]) if value["kind"] in dir(untold) else None
    if not (isinstance(kind, type) and issubclass(kind, PureLearner)):
        raise DataError("`kind` of a saved learner must be one of untold's.")
    return kind(**_settings(value))


def save(path: str | os.PathLike[str], learner: PureLearner[Any], state: Any) -> None:
    """Writes both, whole or not at all.

    >>> import tempfile
    >>> learner = untold.MirrorDescent(radius=2.0)
    >>> state = learner.step(learner.start(2), np.array([3.0, 0.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/run.npz", learner, state)
    ...     again, resumed = load(f"{folder}/run.npz")
    >>> again == learner, resumed.w.tolist(), resumed.t
    (True, [-2.0, 0.0], 1)
    """
    name = type(learner).__name__
    if type(learner.start(1)) is not type(state):
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
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        about = json.loads(arrays.pop("about").tobytes())
        if about["version"] != VERSION:
            raise DataError(
                f"`version` of a saved run must be {VERSION}.", hint="use the untold that wrote it."
            )
        learner = _learner(about["learner"])
        numbers = {name: _read(entry) for name, entry in about["numbers"].items()}
        return learner, _state(learner, {**numbers, **arrays})
    except UntoldError:
        raise
    except FileNotFoundError:
        raise DataError(f"there is no saved run at {os.fspath(path)}.") from None
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile):
        raise DataError(f"{os.fspath(path)} is not a saved run that can be read.") from None


def _state(learner: PureLearner[Any], entries: dict[str, Any]) -> Any:
    """The state, if its entries are those of a fresh one in name, kind and shape."""
    fresh = learner.start(entries["w"].size)
    for name, start in fresh._asdict().items():
        entry = entries[name]
        fits = entry.dtype == np.float64 if isinstance(start, np.ndarray) else type(entry) is type(start)
        if not fits or np.shape(entry) != np.shape(start):
            raise DataError(f"`{name}` of a saved {type(learner).__name__} does not fit its learner.")
    return type(fresh)(**entries)
