"""What a pass over rows costs, beside C and beside others: ./run benchmarks/local.py [--json F] [--memory].

CPU time of the work alone (no import, no preparation of data), one thread, every contender interleaved in the
same run, median of the repeats after a warm-up. Contenders live in processes that the script starts and
asks in turn: untold and the C reference (`local_reference.c`, compiled here) in one; each rival in its own,
from an environment of the benchmark's own (`.bench`, made on first use). What cannot be had is left out, and
said so. All learn the same rows of the unit ball with logistic labels. VowpalWabbit reads its binary cache,
and what it takes for a cache of one row is subtracted; River gets dicts that are ready; scikit-learn shuffles
unless told to take the rows in their order, as all others do.

"exact noise" is PrivUnitG at ε = 1. There is no other sampler: a seeded simulation runs the same code on
another keystream. Rivals and the C reference add no noise at all. A sparse learner's long run is one whose
bets have come to the closed form they end in; a run just begun needs costlier ones. Figures are nanoseconds
a row, a report, a non-zero, or a row of a model.

--memory adds the peak of a process that learns from a memory-mapped file of 10⁷ × 50 float32 (2 GB on disk,
in the folder of temporary files; Linux only).
"""

import argparse
import ctypes
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).parent
BENCH = HERE.parent / ".bench"
RIVALS = {"vowpalwabbit": "9.11.9", "river": "0.26.1", "scikit-learn": "1.9.1"}
FLAGS = ["-O3", "-march=native", "-ffast-math", "-fno-finite-math-only"]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
ROWS, DIM, RIVER_ROWS = 40_000, 100, 3000
SPARSE = [(1000, 20), (10_000, 10), (10_000, 20), (10_000, 40), (100_000, 20)]
LONG_RUN = 2000.0  # Σg² of a coordinate from which on its bets have the cheap form
FILE_ROWS, FILE_DIM, FILE_CHUNK, LARGEST_PEAK = 10_000_000, 50, 250_000, 300

OURS, OPEN, MADE = "house learner, exact noise", "house learner, no noise", "house learner, reports made"
C_OPEN, C_MADE = "C reference, no noise", "C reference, reports made"
SGD, SGD_IN_ORDER = "scikit-learn SGD, one epoch", "scikit-learn SGD, rows in order"
VW, VW_EMPTY, RIVER = "VW --coin, from its cache", "VW --coin, one row", "River, ready dicts"


class Contender(NamedTuple):
    """One run, and how many units (rows, reports, non-zeros, rows of models) it is about."""

    run: Callable[[], object]
    units: int


class Target(NamedTuple):
    """A figure made of contenders' nanoseconds per unit, and its limit."""

    name: str
    needs: tuple[str, ...]
    figure: Callable[..., float]
    limit: float
    at_least: bool = True


def million(ns: float) -> float:
    """Millions a second."""
    return 1e3 / ns


def over(a: float, b: float) -> float:
    """How many times a is b."""
    return a / b


TARGETS = [
    Target("exact noise: million rows/s", (OURS,), million, 1.0),
    Target("exact noise: million rows/s, stretch", (OURS,), million, 1.8),
    Target("reports made: million/s", (MADE,), million, 12.0),
    Target("no noise: times C", (OPEN, C_OPEN), over, 1.35, at_least=False),
    Target("reports made: times C, for information", (MADE, C_MADE), over, 1.35, at_least=False),
    Target("no noise: faster than scikit-learn SGD", (SGD, OPEN), over, 3.5),
    Target("exact noise: faster than VW --coin, cache", (VW, OURS), over, 2.0),
    Target("exact noise: faster than River", (RIVER, OURS), over, 10.0),
    Target(
        "sparse, a non-zero: d 100,000 over d 1,000",
        ("sparse d=100000 nnz=20, long run", "sparse d=1000 nnz=20, long run"), over, 1.5, at_least=False,
    ),
    Target(
        "sparse, a non-zero: 40 a row over 10",
        ("sparse d=10000 nnz=40, long run", "sparse d=10000 nnz=10, long run"), over, 1.1, at_least=False,
    ),
    Target("a row of a model: 8 models over 1", ("learn_many, 8 ε", "learn_many, 1 ε"), over, 1.1, False),
]  # fmt: skip


def rows(n: int = ROWS, d: int = DIM) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the unit ball, and signs by a logistic model."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, d))
    X *= rng.random((n, 1)) ** (1 / d) / np.linalg.norm(X, axis=1, keepdims=True)
    u = rng.standard_normal(d)
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-X @ u)), 1.0, -1.0)


def sparse_rows(d: int, nonzeros: int) -> tuple[Any, np.ndarray]:
    """The same in CSR, with that many entries a row."""
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(1)
    values, y = rows(ROWS, nonzeros)
    places = np.sort(np.argsort(rng.random((ROWS, 2 * nonzeros)), axis=1)[:, :nonzeros], axis=1)
    places = places * (d // (2 * nonzeros)) + rng.integers(d // (2 * nonzeros), size=places.shape)
    ends = np.arange(0, ROWS * nonzeros + 1, nonzeros)
    return csr_matrix((values.ravel(), places.ravel(), ends), shape=(ROWS, d)), y


def untold_and_c(X: np.ndarray, y: np.ndarray) -> dict[str, Contender]:
    """Ours, and the C reference where there is a compiler."""
    from untold import PrivUnitG
    from untold.convex.losses import Logistic
    from untold.learners.banco import Banco
    from untold.learners.bettor import Bettor
    from untold.learners.coordinatewise import Coordinatewise
    from untold.learners.descent import Descent
    from untold.learners.reduction import Reduction
    from untold.learners.rules import Constant
    from untold.local.learn import absorb, learn, learn_many

    loss, private = Logistic(), PrivUnitG(epsilon=1.0)
    reports = private(-0.5 * y[:, np.newaxis] * X)
    house = Bettor(horizon=ROWS)
    learners = {
        "house learner": house, "Reduction": Reduction(), "Banco": Banco.told(private, DIM),
        "Descent": Descent(rule=Constant(0.01)),
    }  # fmt: skip
    runs: dict[str, Callable[[], Any]] = {}
    for name, one in learners.items():
        runs[f"{name}, exact noise"] = lambda one=one: learn(X, y, loss=loss, randomizer=private, learner=one)
        runs[f"{name}, no noise"] = lambda one=one: learn(X, y, loss=loss, randomizer=None, learner=one)
        runs[f"{name}, reports made"] = lambda one=one: absorb(one, one.start(DIM), reports)
    made = {name: Contender(run, ROWS) for name, run in runs.items()}
    answers = runs[OPEN]().weights, house.answer(runs[MADE]())
    made |= c_reference(X, y, reports, house, answers)
    for models in (1, 2, 4, 8):
        sweep = [PrivUnitG(epsilon=0.5 + m) for m in range(models)]
        made[f"learn_many, {models} ε"] = Contender(
            lambda sweep=sweep: learn_many(X, y, loss=loss, randomizers=sweep, learner=house), models * ROWS
        )
    for d, nonzeros in SPARSE:
        data = sparse_rows(d, nonzeros)
        for phase, one in (("long run", Coordinatewise(b=LONG_RUN)), ("begun", Coordinatewise())):
            made[f"sparse d={d} nnz={nonzeros}, {phase}"] = Contender(
                lambda one=one, data=data: learn(*data, loss=loss, randomizer=None, learner=one),
                ROWS * nonzeros,
            )
    return made


class Plan(ctypes.Structure):
    """As in `local_reference.c`."""

    _fields_ = (("d", ctypes.c_int64), *((name, ctypes.c_double) for name in ("G", "T", "decay")))


def c_reference(
    X: np.ndarray, y: np.ndarray, reports: np.ndarray, house: Any, ours: tuple[np.ndarray, np.ndarray]
) -> dict[str, Contender]:
    """The house learner in C, after it has been seen to answer as ours does."""
    if shutil.which("gcc") is None:
        print("no C reference: there is no gcc", file=sys.stderr)
        return {}
    with tempfile.TemporaryDirectory() as folder:
        library, source = Path(folder) / "reference.so", HERE / "local_reference.c"
        subprocess.run(["gcc", *FLAGS, "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
        c = ctypes.CDLL(str(library))

    def called(function: Any, *matrices: np.ndarray) -> np.ndarray:
        mean, theta = np.zeros(DIM), np.zeros(DIM)
        plan = Plan(DIM, house.bound, house.horizon, house.average.decay)
        given, made = (
            [ctypes.c_void_p(a.ctypes.data) for a in arrays] for arrays in (matrices, (mean, theta))
        )
        function(*given, ctypes.c_int64(ROWS), plan, *made)
        return mean

    runs = {
        C_OPEN: lambda: called(c.learn_rows, X, y),
        C_MADE: lambda: called(c.take_reports, reports),
    }
    for run, answer in zip(runs.values(), ours, strict=True):
        assert np.abs(run() - answer).max() < 1e-9 * np.abs(answer).max()
    return {name: Contender(run, ROWS) for name, run in runs.items()}


def scikit_learn(X: np.ndarray, y: np.ndarray) -> dict[str, Contender]:
    """One epoch in one call; it shuffles unless told not to."""
    from sklearn.linear_model import SGDClassifier

    def epoch(*, shuffle: bool) -> None:
        model = SGDClassifier(loss="log_loss", random_state=1, shuffle=shuffle)
        model.partial_fit(X, y, classes=[-1.0, 1.0])
        assert model.t_ == ROWS + 1

    return {
        SGD: Contender(lambda: epoch(shuffle=True), ROWS),
        SGD_IN_ORDER: Contender(lambda: epoch(shuffle=False), ROWS),
    }


def vowpalwabbit(X: np.ndarray, y: np.ndarray) -> dict[str, Contender]:
    """One pass over the cache it makes of its text; and over one of one row, for what starting takes."""
    from vowpalwabbit import Workspace

    def passed(name: str, count: int) -> None:
        given = f"--coin --loss_function logistic --noconstant --quiet -d {name} --cache_file {name}.cache"
        model = Workspace(given)
        assert model.get_weighted_examples() == count
        model.finish()

    made = {}
    for name, count in ((VW, ROWS), (VW_EMPTY, 1)):
        file = f"rows-{count}"
        with Path(file).open("w") as text:
            for i in range(count):
                entries = " ".join(f"{j}:{x:.9g}" for j, x in enumerate(X[i].tolist()))
                text.write(f"{y[i]:.0f} |x {entries}\n")
        passed(file, count)
        Path(file).write_text("")  # from here on there is the cache alone
        os.utime(file, (0, 0))
        made[name] = Contender(lambda file=file, count=count: passed(file, count), ROWS)
    return made


def river(X: np.ndarray, y: np.ndarray) -> dict[str, Contender]:
    """Row by row, from dicts."""
    from river.linear_model import LogisticRegression

    dicts = [dict(enumerate(x)) for x in X[:RIVER_ROWS].tolist()]
    signs = (y[:RIVER_ROWS] > 0).tolist()

    def learnt() -> None:
        model = LogisticRegression()
        for x, sign in zip(dicts, signs, strict=True):
            model.learn_one(x, sign)
        assert len(model.weights) == DIM

    return {RIVER: Contender(learnt, RIVER_ROWS)}


WORKERS = {"untold": untold_and_c, "scikit-learn": scikit_learn, "vowpalwabbit": vowpalwabbit, "river": river}


def serve(name: str) -> None:
    """A worker, where X.npy and y.npy are: says its contenders, then answers a name with CPU nanoseconds."""
    runs = WORKERS[name](np.load("X.npy"), np.load("y.npy"))
    for contender in runs.values():
        contender.run()
    print(json.dumps({name: contender.units for name, contender in runs.items()}), flush=True)
    for line in sys.stdin:
        start = time.process_time_ns()
        runs[line.strip()].run()
        print(time.process_time_ns() - start, flush=True)


class Worker:
    """A process that serves contenders; `units` is empty, and the reason printed, where it cannot."""

    def __init__(self, name: str, python: str | Path, folder: Path) -> None:
        self._said = folder / f"{name}.txt"
        with self._said.open("w") as errors:
            self.process = subprocess.Popen(
                [python, Path(__file__).resolve(), "--serve", name], cwd=folder, text=True, stderr=errors,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | ONE_THREAD,
            )  # fmt: skip
        answer = self.process.stdout.readline()
        self.units: dict[str, int] = json.loads(answer) if answer else {}
        said = self._said.read_text().strip()
        if name == "untold" and not answer:
            raise SystemExit(said)
        if said:
            print(f"{name}: {said.splitlines()[-1]}")

    def nanoseconds(self, contender: str) -> float:
        """Of one run, per unit."""
        self.process.stdin.write(contender + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()) / self.units[contender]

    def close(self) -> None:
        """Ends the process."""
        self.process.communicate()


def installed() -> list[str]:
    """The rivals that `.bench` has, after an attempt to install what it has not."""
    python = BENCH / "bin" / "python"
    if not python.exists():
        made = subprocess.run(
            [sys.executable, "-m", "venv", BENCH], check=False, capture_output=True, text=True
        )
        if made.returncode:
            print(f"no rivals: {(made.stdout + made.stderr).strip() or 'no virtual environment'}")
            return []
        (BENCH / ".gitignore").write_text("*\n")
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    had = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout.split()
    names = []
    for name, wanted in RIVALS.items():
        if f"{name}=={wanted}" not in had:
            done = subprocess.run(
                [*pip, "install", "--quiet", f"{name}=={wanted}"], check=False, capture_output=True, text=True
            )
            if done.returncode:
                print(f"no {name}: {(done.stderr.strip() or 'pip failed').splitlines()[-1]}")
                continue
        names.append(name)
    return names


def measure(repeats: int) -> dict[str, float]:
    """Median CPU nanoseconds per unit, the contenders interleaved."""
    rivals = installed()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X, y = rows()
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", y)
        workers = [Worker("untold", sys.executable, folder)]
        workers += [Worker(rival, BENCH / "bin" / "python", folder) for rival in rivals]
        costs: dict[str, list[float]] = {contender: [] for worker in workers for contender in worker.units}
        for _ in range(repeats):
            for worker in workers:
                for contender in worker.units:
                    costs[contender].append(worker.nanoseconds(contender))
        for worker in workers:
            worker.close()
    medians = {contender: statistics.median(values) for contender, values in costs.items()}
    if VW in medians:
        medians[VW] -= medians.pop(VW_EMPTY)
    return medians


def peak() -> float:
    """Peak resident megabytes of this process; `getrusage` would also count the one it was started from."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def learn_from_file() -> None:
    """In a process of its own: one private pass over the file, and the peak after each stage."""
    stages = {"Python and numpy": peak()}
    from untold import PrivUnitG
    from untold.convex.losses import Logistic
    from untold.local.learn import learn

    private, loss = PrivUnitG(epsilon=1.0), Logistic()
    stages["untold imported"] = peak()
    learn(np.zeros((1000, FILE_DIM), np.float32), np.ones(1000), loss=loss, randomizer=private)
    stages["its kernels loaded"] = peak()
    X, y = np.load("X.npy", mmap_mode="r"), np.load("y.npy")
    start = time.process_time()
    learn(X, y, loss=loss, randomizer=private)
    seconds = time.process_time() - start
    stages["a pass over the file"] = peak()
    print(json.dumps({"megabytes": stages, "ns_per_row": seconds / X.shape[0] * 1e9}))


def peaks(folder: Path) -> dict[str, Any]:
    """What such a process says of the file in that folder."""
    command = [sys.executable, Path(__file__).resolve(), "--serve", "memory"]
    done = subprocess.run(
        command, cwd=folder, check=True, stdout=subprocess.PIPE, env=os.environ | ONE_THREAD
    )
    return dict(json.loads(done.stdout))


def memory() -> dict[str, Any]:
    """Writes the file in chunks, with labels of int8, and learns from it in a fresh process."""
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), np.random.default_rng(1)
        np.save(folder / "X.npy", np.zeros((1, FILE_DIM), np.float32))
        np.save(folder / "y.npy", np.ones(1, np.int8))
        peaks(folder)  # compiles what nobody has yet
        shape = (FILE_ROWS, FILE_DIM)
        X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float32, shape=shape)
        y = np.empty(FILE_ROWS, dtype=np.int8)
        for start in range(0, FILE_ROWS, FILE_CHUNK):
            part = slice(start, start + FILE_CHUNK)
            X[part] = rng.standard_normal((FILE_CHUNK, FILE_DIM), dtype=np.float32) / 10
            y[part] = np.where(X[part, 0] > 0, 1, -1)
        X.flush()
        np.save(folder / "y.npy", y)
        return peaks(folder)


def machine() -> dict[str, str]:
    """What this runs on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    gcc = "none"
    if shutil.which("gcc"):
        gcc = subprocess.run(["gcc", "--version"], check=True, capture_output=True, text=True).stdout
    packages = {name: version(name) for name in ("numpy", "scipy", "numba", "cryptography")}
    return {
        "processor": f"{models[0] if models else platform.processor()}, {os.cpu_count()} of them",
        "Python": platform.python_version(), **packages,
        "gcc": gcc.splitlines()[0], "flags": " ".join(FLAGS), **RIVALS,
    }  # fmt: skip


def load() -> float:
    """The load average of a minute, with a warning where it disturbs."""
    busy = os.getloadavg()[0]
    warning = "  (busy: other processes evict caches; do not keep these figures)" if busy > 1.5 else ""
    print(f"load average {busy:.2f} of {os.cpu_count()} processors{warning}")
    return busy


def print_figures(figures: dict[str, float]) -> None:
    """Nanoseconds per row, report, non-zero, or row of a model."""
    print(f"\n{'':36s}{'ns':>9s}{'million/s':>11s}")
    for name, cost in figures.items():
        print(f"{name:36s}{cost:9.1f}{1e3 / cost:11.2f}")


def print_targets(figures: dict[str, float]) -> dict[str, float]:
    """What was wanted, and whether it was met."""
    reached = {}
    print(f"\n{'':44s}{'figure':>8s}{'target':>10s}")
    for target in TARGETS:
        if not set(target.needs) <= figures.keys():
            print(f"{target.name:44s}{'not measured':>18s}")
            continue
        figure = target.figure(*(figures[need] for need in target.needs))
        met = figure >= target.limit if target.at_least else figure <= target.limit
        sign = "≥" if target.at_least else "≤"
        limit = f"{sign} {target.limit:g}"
        print(f"{target.name:44s}{figure:8.2f}{limit:>10s}  {'met' if met else 'missed'}")
        reached[target.name] = figure
    return reached


def print_memory(used: dict[str, Any]) -> None:
    """The peak after each stage; the last is that of all."""
    cost, megabytes = used["ns_per_row"], used["megabytes"]
    print(f"\n{f'{cost:.0f} ns a row of the file':44s}{'peak MB':>8s}{'target':>10s}")
    *before, (last, most) = megabytes.items()
    for stage, peak_so_far in before:
        print(f"{stage:44s}{peak_so_far:8.0f}")
    print(f"{last:44s}{most:8.0f}{f'≤ {LARGEST_PEAK}':>10s}  {'met' if most <= LARGEST_PEAK else 'missed'}")


def main() -> None:
    """Prints the tables; with --json also writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        learn_from_file() if arguments.serve == "memory" else serve(arguments.serve)
        return
    about = machine()
    for name, what in about.items():
        print(f"{name}: {what}")
    loads = [load()]
    figures = measure(arguments.repeats)
    loads.append(load())
    print_figures(figures)
    result = {"machine": about, "load": loads, "ns": figures, "targets": print_targets(figures)}
    if arguments.memory:
        result["memory"] = used = memory()
        print_memory(used)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
