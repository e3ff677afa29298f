"""`learn`: rows in, a model out; every row sends one report, and the learner sees nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from untold.convex.losses import Multinomial
from untold.core import Floats, Loss
from untold.errors import AssumptionError, DataError, refuse
from untold.kernels.loop import absorb_reports
from untold.kernels.rows import checked_rows
from untold.kernels.twins import twin_of
from untold.learners.base import PureLearner
from untold.learners.bettor import Bettor
from untold.local.crowd import Given, crowd_of
from untold.local.passes import Pass
from untold.private.claim import Claim

__all__ = ["Learnt", "absorb", "learn", "learn_many"]


@dataclass(frozen=True)
class Learnt:
    """What came of it: the answer, the state to go on from, and what every row was guaranteed.

    ``guarantee`` is of one report; None where nothing is promised, or each provider has their own.
    """

    learner: PureLearner[Any]
    state: Any
    guarantee: Claim | None

    @property
    def weights(self) -> Floats:
        """The learner's answer."""
        return self.learner.answer(self.state)

    def regret(self, norm: float) -> float:
        """The learner's bound on its regret against every model of that norm."""
        return self.learner.regret(self.state, norm)


def learn(
    X: object, y: object, *, loss: Loss, randomizer: Given, learner: PureLearner[Any] | None = None,
    state: Any = None, bound: float = 1.0, seed: int | None = None,
) -> Learnt:  # fmt: skip
    """One pass over rows: each sends one report on a learner's current point.

    `y` is what the loss wants: −1 and +1, or numbers; None for a loss without labels.

    `randomizer` is one for all, or one ε a row (PrivUnitG; inf reports openly), or a callable from the row's
    number to a randomiser or None, or None: nobody randomises. `bound` clips where no randomiser says.
    The `learner` is the house learner, planned for these rows, unless one is given. With a `state` the run
    goes on from there; with a `seed` it is a simulation, and its guarantee says so.

    Edge cases:
        A row that cannot be read (see `untold.local.rows`) reports as if its subgradient were 0.
        No rows give the point the run started from. More rows than a learner planned for are its own affair.

    >>> import numpy as np
    >>> from untold import PrivUnitG
    >>> from untold.convex.losses import Logistic
    >>> X = np.random.default_rng(1).normal(size=(20_000, 2)) / 4
    >>> run = learn(X, np.sign(X[:, 0]), loss=Logistic(), randomizer=PrivUnitG(epsilon=1.0))
    >>> bool(run.weights[0] > 1), run.guarantee.epsilon(0.0)
    (True, 1.0)
    """
    states = None if state is None else [state]
    return learn_many(
        X, y, loss=loss, randomizers=[randomizer], learner=learner, states=states, bound=bound, seed=seed
    )[0]


def learn_many(
    X: object, y: object, *, loss: Loss, randomizers: Sequence[Given],
    learner: PureLearner[Any] | None = None, states: Sequence[Any] | None = None, bound: float = 1.0,
    seed: int | None = None,
) -> list[Learnt]:  # fmt: skip
    """As many models as randomizers, in one pass over the rows: one against the rest, or a sweep of ε.

    `y` is one label a row for all, or a row of labels for each model. Model m is seeded with seed + m.
    """
    models = len(randomizers)
    if not models:
        raise refuse("randomizers", randomizers, of="learn_many", allowed="one a model, at least one")
    if isinstance(loss, Multinomial):
        hint = "learn_many with a row of ±1 labels for each class: one against the rest."
        raise AssumptionError("`loss` of learn must not be Multinomial: its point is a matrix.", hint=hint)
    rows = checked_rows(X, y, models, None if states is None else states[0].w.size)
    count, dim = rows.count, rows.dim
    seeds = [None if seed is None else seed + m for m in range(models)]
    crowds = [crowd_of(given, count, bound, own) for given, own in zip(randomizers, seeds, strict=True)]
    if rows.y.dtype == np.bool_ and getattr(loss, "labels", "") == "signs":
        raise DataError("`y` of learn must be −1 and +1. Got booleans.", hint="np.where(y, 1, -1).")
    if learner is None:
        learner = Bettor(horizon=max(1, count), bound=max(crowd.bound for crowd in crowds))
    for crowd in crowds:
        for one in crowd.randomizers(count):
            learner.accept(one, dim)
    if states is None:
        states = [learner.start(dim)] * models
    if len(states) != models or len({state.t for state in states}) > 1:
        raise DataError("`states` of learn_many must be one a model, all of one round.")
    ended = Pass(learner, loss, rows, crowds, states).finished()
    return [Learnt(learner, state, crowd.guarantee) for state, crowd in zip(ended, crowds, strict=True)]


def absorb(learner: PureLearner[Any], state: Any, reports: object) -> Any:
    """`learner.step` for each row of a matrix of reports, compiled: the server's work."""
    matrix, found = np.atleast_2d(learner.reports(state, reports)), twin_of(learner)
    if found is None:
        return learner.step(state, matrix)
    arrays = found.pack(learner, [state])
    absorb_reports(matrix, arrays)
    absorbed = found.unpack(arrays, 0)
    # a report that is not finite leaves its mark on a sum; it is not paid for until then
    marked = not all(np.isfinite(entry).all() for entry in absorbed)
    return learner.step(state, matrix) if marked else absorbed
