"""What exact noise costs, beside NumPy's ordinary noise: ./run benchmarks/noise.py [--json FILE].

CPU time of one thread, every contender interleaved in the same run, median of the repeats. Figures are
nanoseconds per coordinate and their ratio to `numpy.random.Generator(PCG64).standard_normal`, the ordinary
noise that guarantees nothing in floating point. Randomiser rows are whole reports: conversion, clipping,
quantising, keystream, exact noise and the release check.
"""

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import untold
from untold.private import noise
from untold.private.sampling.keystream import Keystream

COORDINATES = 200_000
BASE = "numpy PCG64 standard_normal"
TARGETS = {  # ratio to BASE
    "exact Gaussian": 0.6, "exact Laplace": 0.6,
    "norm-Laplace noise, d=10": 3.0, "norm-Laplace noise, d=100": 3.0, "norm-Laplace noise, d=1000": 3.0,
    "PrivUnitG reports, d=100": 2.5, "PrivUnitG reports, d=1000": 2.5,
}  # fmt: skip


def contenders() -> dict[str, Callable[[], object]]:
    """Name → one run over COORDINATES coordinates."""
    rng, keys = np.random.default_rng(1), Keystream()
    scales = np.full(COORDINATES, 2.0**20)
    runs: dict[str, Callable[[], object]] = {
        BASE: lambda: rng.standard_normal(COORDINATES),
        "numpy PCG64 laplace": lambda: rng.laplace(size=COORDINATES),
        "AES-256 words": lambda: keys.words(COORDINATES),
        "exact Gaussian": lambda: noise.gaussian(COORDINATES, 2.0**20),
        "exact Laplace": lambda: noise.laplace(scales),
    }
    for d in (10, 100, 1000):
        rows = COORDINATES // d
        g = rng.standard_normal((rows, d)) / d**0.5
        runs[f"norm-Laplace noise, d={d}"] = lambda r=rows, d=d: noise.norm_laplace(r, d, 2.0**21)
        for name in ("NormLaplace", "PrivUnitG", "PrivUnit", "Duchi", "Gaussian"):
            randomise = getattr(untold, name)(epsilon=1.0)
            runs[f"{name} reports, d={d}"] = lambda r=randomise, g=g: r.encode(g)
    return runs


def measure(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median CPU nanoseconds per coordinate, the contenders interleaved."""
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.thread_time_ns()
            run()
            seconds[name].append(time.thread_time_ns() - start)
    return {name: statistics.median(times) / COORDINATES for name, times in seconds.items()}


def single_report(repeats: int = 3000) -> dict[str, float]:
    """Median CPU microseconds of one report of d = 100 through the Python call."""
    g = np.full(100, 0.05)
    out = {}
    for name in ("PrivUnitG", "NormLaplace", "Gaussian", "PrivUnit", "Duchi"):
        randomise = getattr(untold, name)(epsilon=1.0)
        randomise(g)
        times = []
        for _ in range(repeats):
            start = time.thread_time_ns()
            randomise(g)
            times.append(time.thread_time_ns() - start)
        out[name] = statistics.median(times) / 1000
    return out


def main() -> None:
    """Prints the table; with --json also writes it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    figures = measure(contenders(), arguments.repeats)
    singles = single_report()
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    print(f"{'':32s}{'ns/coordinate':>14s}{'ratio':>8s}{'target':>8s}")
    for name, cost in figures.items():
        target = f"{TARGETS[name]:8.2f}" if name in TARGETS else ""
        print(f"{name:32s}{cost:14.2f}{cost / figures[BASE]:8.2f}{target}")
    for name, cost in singles.items():
        print(f"{f'one {name} report, d=100':32s}{cost:11.1f} µs{'':8s}{'80 µs':>8s}")
    if arguments.json:
        result = {"ns_per_coordinate": figures, "us_per_report": singles, "python": sys.version}
        arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
