"""Central learning without tuning, beside DP-SGD tuned in hindsight: ./run benchmarks/central.py [--json F].

`learn_privately` asks for ε (δ = 1e-6, add-or-remove-one) and chooses everything itself; it is run once. Its
rivals are given five learning rates each, and the best is chosen by the very loss that is reported, for free:

* DP-SGD, 100 epochs of Poisson batches of 2 %, accounted by the loss distribution, averaged by t³;
* NoisyGD, 400 full steps, accounted exactly, averaged by t³;
* the house learner fed with 400 full noisy gradients, which has no rate.

All run on exact integer sums with exact noise. Figures are the training loss above the optimum, means over
the seeds; the last column is ours over the best rival's, and the last line its median and worst.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import problems
from problems import Problem
from recover import optimum
from untold.erm.auto import learn_privately
from untold.erm.base import Curated, curated
from untold.erm.batches import PoissonBatch
from untold.erm.gradient import noisy_gradient_descent
from untold.learners.average import Average
from untold.learners.bettor import Bettor
from untold.learners.descent import Descent
from untold.learners.rules import Constant

CUBIC = Average(3.0)
RATES = (0.25, 1.0, 4.0, 16.0, 64.0)
RATE, EPOCHS, STEPS = 0.02, 100, 400
NAMES = ("ours", "DP-SGD", "NoisyGD", "house learner")


def rivals(data: Curated, problem: Problem, epsilon: float, seed: int) -> dict[str, list[np.ndarray]]:
    """Weights of every rival at every setting."""
    loss, out = problem.loss, {"DP-SGD": [], "NoisyGD": []}
    for rate in RATES:
        learner = Descent(rule=Constant(rate), average=CUBIC)
        settings = {"epsilon": epsilon, "learner": learner, "seed": seed}
        sgd = noisy_gradient_descent(
            data, loss, batch=PoissonBatch(RATE), steps=round(EPOCHS / RATE), **settings
        )
        out["DP-SGD"].append(sgd.weights)
        out["NoisyGD"].append(noisy_gradient_descent(data, loss, steps=STEPS, **settings).weights)
    house = Bettor(horizon=STEPS)
    fit = noisy_gradient_descent(data, loss, epsilon=epsilon, steps=STEPS, learner=house, seed=seed)
    return {**out, "house learner": [fit.weights]}


def row(problem: Problem, epsilon: float, seeds: int) -> dict[str, float]:
    """Excess losses by name, the best setting in hindsight; and the CPU seconds of one of our fits."""
    data, least = curated(problem.X, problem.y), optimum(problem)
    excess: dict[str, np.ndarray] = {}
    seconds = []
    for seed in range(seeds):
        start = time.process_time()
        ours = learn_privately(data, problem.loss, epsilon=epsilon, seed=seed).weights
        seconds.append(time.process_time() - start)
        for name, weights in {"ours": [ours], **rivals(data, problem, epsilon, seed)}.items():
            above = np.array([problem.value(w) - least for w in weights]) / seeds
            excess[name] = excess.get(name, 0.0) + above
    best = {name: float(np.nanmin(above)) for name, above in excess.items()}
    return {**best, "seconds": statistics.median(seconds)}


def main() -> None:
    """Prints the table; with --json also writes it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="*", default=problems.SETS)
    arguments = parser.parse_args()
    here = [name for name in arguments.sets if (problems.DATA / f"{name}_train.parquet").exists()]
    if missing := sorted(set(arguments.sets) - set(here)):
        print(f"left out, for there is no {problems.DATA}/…_train.parquet: {', '.join(missing)}")
    print(f"{'':10s}{'ε':>6s}" + "".join(f"{name:>15s}" for name in NAMES) + f"{'CPU s':>8s}{'ratio':>8s}")
    table, ratios = {}, []
    for problem in map(problems.read, here):
        for epsilon in (0.1, 1.0, 8.0):
            found = row(problem, epsilon, arguments.seeds)
            ratios.append(found["ours"] / min(found[name] for name in NAMES[1:]))
            table[f"{problem.name} {epsilon:g}"] = {**found, "ratio": ratios[-1]}
            figures = "".join(f"{found[name]:15.5f}" for name in NAMES)
            print(
                f"{problem.name:10s}{epsilon:6g}{figures}{found['seconds']:8.2f}{ratios[-1]:8.3f}", flush=True
            )
    if ratios:
        print(f"ratio: median {np.median(ratios):.3f}, worst {max(ratios):.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"python": sys.version, "rows": table}, indent=1))


if __name__ == "__main__":
    main()
