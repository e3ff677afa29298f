"""How much of the best SGD's gain a learner recovers without tuning: ./run benchmarks/recover.py [--json F].

Every row of a data set sends one PrivUnitG report (exact noise, seeded), in one pass, in a shuffled order.
For each learner, at one setting for all, the *recovered fraction* is

    (loss at 0 − loss of its answer) / (loss at 0 − loss of the best of 52 SGD settings chosen in hindsight)

in training loss, means over the seeds. The 52 are 13 rates, constant or falling as 1/√t, averaged uniformly
or by t³. Choosing the best of 52 noisy runs also chooses luck: the row "best SGD, run again" is that very
setting on fresh seeds, and what it falls short of 1 nobody can be blamed for. With --mixed: how much is lost
when ⌈ln T⌉ of T providers ask for ε = 0.1 and nobody else for anything.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import problems
from problems import Problem
from untold import PrivUnitG
from untold.core import Floats
from untold.learners.average import UNIFORM, Average
from untold.learners.banco import Banco
from untold.learners.base import PureLearner
from untold.learners.bettor import Bettor
from untold.learners.coordinatewise import Coordinatewise
from untold.learners.descent import Descent
from untold.learners.dog import DistanceOverGradients
from untold.learners.reduction import Reduction
from untold.learners.rules import AdaGradNorm, Constant, InverseRoot
from untold.local.learn import learn

CUBIC = Average(3.0)
HOUSE = "house learner"
AGAIN = "best SGD, run again"
Cells = dict[str, dict[str, list[float]]]
Make = Callable[[int, int, PrivUnitG], PureLearner]

LEARNERS: dict[str, Make] = {  # name → (n, d, randomizer) → learner
    HOUSE: lambda n, d, r: Bettor(horizon=n),
    "reduction (S2)": lambda n, d, r: Reduction(),
    "reduction, t³": lambda n, d, r: Reduction(average=CUBIC),
    "coordinatewise (S2)": lambda n, d, r: Coordinatewise(),
    "BANCO, tight": lambda n, d, r: Banco.told(r, d),
    "BANCO, as printed": lambda n, d, r: Banco(
        variance=18.0 * (d / r.epsilon) ** 2, tail=4.0 / r.epsilon
    ),
    "DoG 1e-6": lambda n, d, r: DistanceOverGradients(first=1e-6),
    "DoG 0.01": lambda n, d, r: DistanceOverGradients(first=0.01),
    "DoG 0.1": lambda n, d, r: DistanceOverGradients(first=0.1),
    "AdaGrad-norm 0.1": lambda n, d, r: Descent(rule=AdaGradNorm(0.1), average=CUBIC),
    "AdaGrad-norm 1": lambda n, d, r: Descent(rule=AdaGradNorm(1.0), average=CUBIC),
}  # fmt: skip


def sgd_grid(n: int, d: int, r: PrivUnitG) -> dict[str, PureLearner]:
    """52 settings around the rate that theory gives for ‖u‖ = 1: a quarter of it to a thousand times it."""
    base = 1 / math.sqrt(n * (r.noise_energy(d) + 0.25))
    grid: dict[str, PureLearner] = {}
    for k in range(-2, 11):
        for name, average in (("uniform", UNIFORM), ("t³", CUBIC)):
            grid[f"2^{k} constant {name}"] = Descent(rule=Constant(base * 2.0**k), average=average)
            falling = InverseRoot(base * 2.0**k * math.sqrt(n))
            grid[f"2^{k} falling {name}"] = Descent(rule=falling, average=average)
    return grid


class Shuffled:
    """A problem in the order of each seed, shuffled once."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.seed = problem, -1
        self.zero = problem.value(np.zeros(problem.X.shape[1]))

    def gain(self, learner: PureLearner, r: PrivUnitG, seed: int, noise_seed: int) -> float:
        """How far below the loss at 0 one pass ends."""
        problem = self.problem
        if seed != self.seed:
            order = np.random.default_rng(seed).permutation(len(problem.y))
            self.X, self.y, self.seed = problem.X[order], problem.y[order], seed
        run = learn(self.X, self.y, loss=problem.loss, randomizer=r, learner=learner, seed=noise_seed)
        return self.zero - problem.value(run.weights)


def cell(problem: Problem, epsilon: float, seeds: int) -> dict[str, list[float]] | None:
    """Fractions by learner, one a seed; None where even the best gains less than 1 % of the loss at 0."""
    (n, d), r, shuffled = problem.X.shape, PrivUnitG(epsilon), Shuffled(problem)
    grid = sgd_grid(n, d, r)
    gains: dict[str, list[float]] = {name: [] for name in [*grid, *LEARNERS]}
    for s in range(seeds):
        for k, (name, one) in enumerate(grid.items()):
            gains[name].append(shuffled.gain(one, r, s, 1000 * k + s))
        for name, make in LEARNERS.items():
            gains[name].append(shuffled.gain(make(n, d, r), r, s, s))
    best = max(grid, key=lambda name: float(np.mean(gains[name])))
    reference = float(np.mean(gains[best]))
    if reference < 0.01 * shuffled.zero:
        print(f"{problem.name} ε={epsilon:g}: nothing to recover", flush=True)
        return None
    out = {name: [one / reference for one in gains[name]] for name in LEARNERS}
    out[AGAIN] = [shuffled.gain(grid[best], r, 100 + s, 777_000 + s) / reference for s in range(4 * seeds)]
    print(f"{problem.name} ε={epsilon:g} n={n} d={d} best SGD {best}, gain {reference:.4f}", flush=True)
    return out


def table(title: str, cells: Cells) -> None:
    """Prints one row a learner: median, minimum and least seed over the cells, then each cell."""
    print(f"\n{title}: recovered fraction\n{'':22s}{'median':>8s}{'min':>8s}{'worst run':>11s}")
    for name in [*LEARNERS, AGAIN]:
        means = [float(np.mean(c[name])) for c in cells.values()]
        worst = min(min(c[name]) for c in cells.values())
        each = " ".join(f"{m:5.2f}" for m in means) if len(means) <= 15 else ""
        print(f"{name:22s}{np.median(means):8.3f}{min(means):8.3f}{worst:11.3f}   {each}")


def tables(title: str, found: Iterator[Problem], seeds: int, most: float) -> Cells:
    """The first so many cells in which there is something to recover."""
    cells: Cells = {}
    for problem in found:
        for epsilon in problem.epsilons:
            if len(cells) < most and (fractions := cell(problem, epsilon, seeds)):
                cells[f"{problem.name} ε={epsilon:g}"] = fractions
        if len(cells) >= most:
            break
    if cells:
        table(title, cells)
    return cells


def optimum(problem: Problem) -> float:
    """The least mean loss, by L-BFGS."""

    def both(w: Floats) -> tuple[float, Floats]:
        return problem.value(w), problem.loss.subgradient(w, problem.X, problem.y).mean(axis=0)

    zeros = np.zeros(problem.X.shape[1])
    return float(minimize(both, zeros, jac=True, method="L-BFGS-B", options={"maxiter": 2000}).fun)


def mixed(found: Iterator[Problem], seeds: int) -> dict[str, float]:
    """Excess risk with ⌈ln T⌉ providers at ε = 0.1, over that without any noise."""
    print(
        f"\nmixed crowds: ⌈ln T⌉ at ε = 0.1, the others without noise\n{'':12s}{'excess':>10s}{'ratio':>8s}"
    )
    ratios = {}
    for problem in found:
        n, least = len(problem.y), optimum(problem)
        excess: dict[bool, list[float]] = {True: [], False: []}
        for s in range(seeds):
            rng = np.random.default_rng(s)
            order = rng.permutation(n)
            some = np.full(n, np.inf)
            some[rng.choice(n, math.ceil(math.log(n)), replace=False)] = 0.1
            for noisy, epsilons in ((True, some), (False, np.full(n, np.inf))):
                run = learn(
                    problem.X[order], problem.y[order], loss=problem.loss, randomizer=epsilons, seed=s
                )
                excess[noisy].append(problem.value(run.weights) - least)
        ratios[problem.name] = float(np.mean(excess[True]) / np.mean(excess[False]))
        print(f"{problem.name:12s}{np.mean(excess[False]):10.5f}{ratios[problem.name]:8.3f}", flush=True)
    return ratios


def main() -> None:
    """Prints the tables; with --json also writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="*", default=problems.SETS)
    parser.add_argument("--generated", type=int, default=30)
    parser.add_argument("--mixed", action="store_true")
    arguments = parser.parse_args()
    here = [name for name in arguments.sets if (problems.DATA / f"{name}_train.parquet").exists()]
    if missing := sorted(set(arguments.sets) - set(here)):
        print(f"left out, for there is no {problems.DATA}/…_train.parquet: {', '.join(missing)}")
    if arguments.mixed:
        result: object = mixed((problems.read(name) for name in here), arguments.seeds)
    else:
        of_sets = (problems.read(name) for name in here)
        result = {"data sets": tables("data sets", of_sets, arguments.seeds, math.inf)}
        result["generated"] = tables("generated", problems.generated(), arguments.seeds, arguments.generated)
    if arguments.json:
        arguments.json.write_text(json.dumps({"python": sys.version, "result": result}, indent=1))


if __name__ == "__main__":
    main()
