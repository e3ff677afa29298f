"""Files that hold a run: the resumed run is the straight one; whatever else is in a file is refused."""

import json
import os

import numpy as np
import pytest
from tests.shared_table import LEARNERS

import untold
from untold.errors import DataError, UntoldError
from untold.learners import saved
from untold.learners.average import LAST


def dim_of(name):
    return 1 if name == "adaptive-potential" else 5


def run(learner, state, reports):
    for g in reports:
        state = learner.step(state, g)
    return state


@pytest.mark.parametrize("name", LEARNERS)
def test_a_run_resumed_from_a_file_is_the_straight_run(name, tmp_path):
    dim = dim_of(name)
    learner, reports = LEARNERS[name](None, dim), np.random.default_rng(2).normal(size=(60, dim))
    untold.save(tmp_path / "run.npz", learner, run(learner, learner.start(dim), reports[:23]))
    again, state = untold.load(tmp_path / "run.npz")
    assert again == learner
    resumed = run(again, state, reports[23:])
    for one, two in zip(resumed, run(learner, learner.start(dim), reports), strict=True):
        assert np.array_equal(one, two)
        assert type(one) is type(two)
    assert os.listdir(tmp_path) == ["run.npz"]  # noqa: PTH208 (nothing is left beside)


def test_settings_that_json_has_no_word_for(tmp_path):
    learner = untold.Reduction(average=LAST)
    untold.save(tmp_path / "run.npz", learner, learner.start(2))
    assert untold.load(tmp_path / "run.npz")[0] == learner


@pytest.fixture
def written(tmp_path):
    learner = untold.Bettor(horizon=10)
    untold.save(tmp_path / "run.npz", learner, learner.start(3))
    with np.load(tmp_path / "run.npz") as archive:
        arrays = dict(archive)
    about = json.loads(arrays.pop("about").tobytes())

    def write(about, arrays):
        coded = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        np.savez(tmp_path / "run.npz", about=coded, **arrays)
        return tmp_path / "run.npz"

    return about, arrays, write


SPOILED = {
    "version": lambda about, _: about.update(version=2),
    "another kind": lambda about, _: about["learner"].update(kind="Ledger"),
    "no kind": lambda about, _: about["learner"].update(kind="os.system"),
    "a part of no kind": lambda about, _: about["learner"].update(average={"kind": "Path"}),
    "a setting": lambda about, _: about["learner"].update(horizon=-1),
    "no such setting": lambda about, _: about["learner"].update(colour=1),
    "a number missing": lambda about, _: about["numbers"].pop("t"),
    "a number of another kind": lambda about, _: about["numbers"].update(t=1.5),
    "an array missing": lambda _, arrays: arrays.pop("theta"),
    "a shape": lambda _, arrays: arrays.update(theta=np.zeros(4)),
    "a type": lambda _, arrays: arrays.update(theta=np.zeros(3, dtype=np.float32)),
    "one too many": lambda _, arrays: arrays.update(more=np.zeros(3)),
}


@pytest.mark.parametrize("how", SPOILED)
def test_whatever_is_not_a_saved_run_is_refused(how, written):
    about, arrays, write = written
    assert untold.load(write(about, arrays))[1].t == 0
    SPOILED[how](about, arrays)
    with pytest.raises(UntoldError):
        untold.load(write(about, arrays))


def test_files_that_are_none(tmp_path):
    with pytest.raises(DataError, match="no saved run at"):
        untold.load(tmp_path / "none.npz")
    for content in (b"", b"PK\x03\x04 nonsense", b"\x93NUMPY"):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(DataError, match="not a saved run"):
            untold.load(tmp_path / "bad.npz")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not a saved run"):
        untold.load(tmp_path / "objects.npy")


def test_a_state_of_another_learner_is_refused(tmp_path):
    with pytest.raises(DataError, match="of its learner"):
        untold.save(tmp_path / "run.npz", untold.Reduction(), untold.Bettor(horizon=3).start(2))


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    learner = untold.MirrorDescent()
    untold.save(tmp_path / "run.npz", learner, learner.start(2))
    before = (tmp_path / "run.npz").read_bytes()

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(saved.np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        untold.save(tmp_path / "run.npz", learner, learner.start(3))
    assert (tmp_path / "run.npz").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]
