"""The ledger against kill -9, other processes, forks, old copies, damage, full disks and mistaken callers."""

import copy
import errno
import json
import math
import os
import pickle
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from untold.core import Relation, Unit
from untold.errors import AssumptionError, BudgetExhausted, LedgerError, ParameterError, UntoldError
from untold.private import book
from untold.private import ledger as ledgers
from untold.private.conversions import convert
from untold.private.guarantees import GDP, PLD, RDP, ZCDP, Approximate, Claim, InformationBound, Noise, Pure
from untold.private.ledger import Ledger, Receipt

PERSON = {"relation": Relation.REPLACE_ONE, "unit": Unit.PERSON}
ONE = Pure(1.0, **PERSON)
PAGE = 4096


def pure(epsilon: float) -> Pure:
    return Pure(epsilon, **PERSON)


def ledger_with(path: Path, count: int, budget: float = 100.0) -> Ledger:
    """A ledger in which `count` times 0.1 has been spent."""
    ledger = Ledger(path, budget=budget)
    for number in range(count):
        ledger.debit(pure(0.1), f"answer {number}")
    return ledger


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Calling it makes this process one that has seen no ledger yet."""
    return lambda: monkeypatch.setattr(ledgers, "SEEN", {})


PRELUDE = """
import json, os, sys
from untold.core import Relation, Unit
from untold.errors import BudgetExhausted, LedgerError
from untold.private import book
from untold.private.guarantees import Pure
from untold.private.ledger import Ledger

def pure(epsilon):
    return Pure(epsilon, relation=Relation.REPLACE_ONE, unit=Unit.PERSON)

def refused(call):
    try:
        call()
    except LedgerError as error:
        return str(error)
    return "allowed"
"""

PYTHON = (sys.executable, "-W", "ignore::DeprecationWarning", "-c")  # of a fork beside threads


def child(program: str, *arguments: object) -> str:
    """What a new process prints that runs `program`."""
    command = [*PYTHON, PRELUDE + program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---------------------------------------------------------------- kill -9

KILLED = """
import itertools, random, resource, signal, sqlite3, time, traceback

armed = None

def reach(point):
    if point == armed:
        os.kill(os.getpid(), signal.SIGKILL)

class Failing(sqlite3.Connection):
    def execute(self, statement, *values):
        verb = statement.split()[0]
        reach(f"before {verb}")
        result = super().execute(statement, *values)
        reach(f"after {verb}")
        return result

    def executescript(self, script):
        reach("before CREATE")
        super().executescript(script)
        reach("after CREATE")

connect, link, sync = sqlite3.connect, os.link, book._sync_directory

def failing_link(*names):
    reach("before link")
    link(*names)
    reach("after link")

def failing_sync(directory):
    sync(directory)
    reach("after sync")

sqlite3.connect = lambda *names, **options: connect(*names, factory=Failing, **options)
os.link, book._sync_directory = failing_link, failing_sync

def arm(order):
    global armed
    if armed is None and order["point"] == "inside COMMIT":  # a write past this size is a deadly signal
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        size = os.path.getsize(order["path"]) - 4096 * (order["seed"] % 2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    armed = order["point"]

def work(order):
    draw = random.Random(order["seed"])
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    if order["calm"] < 0:
        arm(order)
    ledger = Ledger(order["path"], budget=order["budget"])
    for number in itertools.count():
        if number >= order["calm"]:
            arm(order)
        cost = draw.choice([0.01, 0.02, 0.05])
        receipt = ledger.debit(pure(cost), "x" * 1500)
        reach("before release")
        os.write(log, f"{receipt.digest} {cost}\\n".encode())
        os.fsync(log)
        reach("after release")

for line in sys.stdin:
    order = json.loads(line)
    pid = os.fork()
    if pid == 0:
        try:
            work(order)
        except BudgetExhausted:
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    if order["point"] == "any time":
        time.sleep(order["delay"])
        os.kill(pid, signal.SIGKILL)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
"""Spends and releases what it is told to until it dies where it is told to; a process per line of input."""


@contextmanager
def victims() -> Iterator[Callable[..., int]]:
    """A function that runs one process of `KILLED` and returns its exit status."""
    command = [*PYTHON, PRELUDE + KILLED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        write, read = process.stdin, process.stdout

        def run(**order: object) -> int:
            write.write(json.dumps(order, default=str) + "\n")
            write.flush()
            return int(read.readline())

        yield run


def released(log: Path) -> dict[str, Fraction]:
    """Everything that left: digest of the receipt and cost."""
    lines = log.read_text().splitlines() if log.exists() else []
    return {digest: Fraction(cost) for digest, cost in map(str.split, lines)}


def check_nothing_was_given_twice(path: Path, log: Path, *, kills: int) -> Ledger:
    """Released ≤ spent ≤ budget, entry by entry; a kill wastes at most one debit."""
    ledger = Ledger(path)
    entries = {entry.digest: Fraction(str(entry.guarantee.level)) for entry in ledger.entries()}
    given = released(log)
    assert given.items() <= entries.items()
    assert sum(given.values()) <= sum(entries.values()) <= Fraction(str(ledger.budget))
    assert ledger.spent() == float(sum(entries.values()))
    assert len(entries) - len(given) <= kills
    return ledger


def outlive(folder: Path, point: str, cycles: int, *, seed: int = 0, budget: float = 0.8) -> set[bool]:
    """Kill one spender after another, then let one finish. Returns whether kills left a hot journal."""
    path, log = folder / "a.ledger", folder / "released"
    draw = random.Random(f"{point} {seed}")
    journals = set()
    order = {"path": path, "log": log, "budget": budget}
    Ledger(path, budget=budget)
    with victims() as run:
        for kill in range(1, cycles + 1):
            calm, delay = draw.randrange(3), draw.uniform(0, 0.15)
            status = run(**order, point=point, calm=calm, seed=draw.randrange(10**6), delay=delay)
            journals.add(path.with_name("a.ledger-journal").exists())
            ledger = check_nothing_was_given_twice(path, log, kills=kill)
            deadly = -signal.SIGXFSZ if point == "inside COMMIT" else -signal.SIGKILL
            assert status == deadly or (status == 0 and ledger.left() < 0.05)
        assert run(**order, point="never", calm=0, seed=1, delay=0) == 0
    ledger = check_nothing_was_given_twice(path, log, kills=cycles)
    assert ledger.left() < 0.05
    assert set(folder.iterdir()) == {path, log}
    return journals


POINTS = [
    "before BEGIN",
    "after BEGIN",
    "before INSERT",
    "after INSERT",
    "before COMMIT",
    "inside COMMIT",
    "after COMMIT",
    "before release",
    "after release",
    "any time",
]


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_process_has_released_no_more_than_the_ledger_says(tmp_path: Path, point: str) -> None:
    journals = outlive(tmp_path, point, 10 if point == "any time" else 3)
    if point in {"inside COMMIT", "before COMMIT"}:  # the kill was where it was meant to be
        assert True in journals
    if point in {"before BEGIN", "after COMMIT", "before release", "after release"}:
        assert journals == {False}


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_a_thousand_kills(tmp_path: Path, seed: int) -> None:
    for number, point in enumerate(POINTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        outlive(folder, point, 5, seed=seed)


CREATION = [
    "before CREATE", "after CREATE", "after INSERT", "before link", "after link", "after sync", "any time"
]  # fmt: skip


@pytest.mark.parametrize("point", CREATION)
def test_a_killed_creation_leaves_a_whole_file_or_none(tmp_path: Path, point: str) -> None:
    draw = random.Random(point)
    with victims() as run:
        for kill in range(6 if point == "any time" else 1):
            path, log = tmp_path / f"{kill}.ledger", tmp_path / f"{kill}.released"
            order = {"path": path, "log": log, "budget": 0.8, "seed": kill, "delay": draw.uniform(0, 0.1)}
            status = run(**order, point=point, calm=-1)
            if point != "any time":  # when it may also have been quick enough to finish
                assert status == -signal.SIGKILL
                assert path.exists() == (point in {"after link", "after sync"})
            if not path.exists():
                assert not released(log)
                Ledger(path, budget=0.8)
            check_nothing_was_given_twice(path, log, kills=1)
            if status:
                Ledger(path, budget=0.8).debit(pure(0.01))


# ---------------------------------------------------------------- many at once

SPEND = """
import threading
counts = []
def spend():
    ledger = Ledger(sys.argv[1], budget=3.0)
    count = 0
    while True:
        try:
            ledger.debit(pure(0.1))
        except BudgetExhausted:
            break
        count += 1
    counts.append(count)
threads = [threading.Thread(target=spend) for _ in range(3)]
print("ready", flush=True)
sys.stdin.readline()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*counts)
"""


def test_processes_and_threads_share_one_budget(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    command = [*PYTHON, PRELUDE + SPEND, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(4)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:  # all at once: they also race to create the file
        process.stdin.write("go\n")
        process.stdin.flush()
    counts = [int(count) for process in processes for count in process.communicate(timeout=60)[0].split()]
    assert len(counts) == 12
    assert sum(counts) == len(Ledger(path).entries()) == 30
    assert Ledger(path).left() == 0.0
    assert list(tmp_path.iterdir()) == [path]


FORK = """
import threading, time
path = sys.argv[1]
ledger = Ledger(path, budget=2.0)
ledger.debit(pure(0.1))
inside, read = threading.Event(), book.read

def slow(*arguments):
    inside.set()
    time.sleep(0.3)
    return read(*arguments)

book.read = slow
thread = threading.Thread(target=ledger.debit, args=(pure(0.1),))
thread.start()
inside.wait()
book.read = read
children = []
for _ in range(4):
    pid = os.fork()  # while the thread is inside its debit
    if pid == 0:
        ledger.debit(pure(0.1))
        Ledger(path).debit(pure(0.2))
        os._exit(0)
    children.append(pid)
thread.join()
ledger.debit(pure(0.1))
print(*(os.waitpid(pid, 0)[1] for pid in children), ledger.spent())
"""


def test_a_fork_beside_a_debit_neither_hangs_nor_doubles_the_budget(tmp_path: Path) -> None:
    assert child(FORK, tmp_path / "a.ledger") == "0 0 0 0 1.5"


def again(ledger: Ledger) -> Ledger:
    return pickle.loads(pickle.dumps(ledger))  # noqa: S301 -- it has just been written


def by_a_link(ledger: Ledger) -> Ledger:
    link = ledger.path.with_name("link")
    link.symlink_to(ledger.path)
    return Ledger(link)


def by_another_path(ledger: Ledger) -> Ledger:
    return Ledger(str(ledger.path.parent / ".." / ledger.path.parent.name / ledger.path.name))


@pytest.mark.parametrize("same", [copy.copy, copy.deepcopy, again, by_a_link, by_another_path])
def test_a_copy_is_the_same_ledger(tmp_path: Path, same: Callable[[Ledger], Ledger]) -> None:
    ledger = Ledger(tmp_path / "a.ledger", budget=1.0)
    ledger.debit(pure(0.25))
    twin = same(ledger)
    receipt = twin.debit(pure(0.5))
    assert twin.path == ledger.path
    assert twin.spent() == ledger.spent() == 0.75
    assert ledger.entries()[1] == receipt
    assert ledger.holds(receipt)
    for one in (ledger, twin):
        with pytest.raises(BudgetExhausted):
            one.debit(pure(0.5))
    ledger.debit(pure(0.25))
    assert twin.left() == 0.0


# ---------------------------------------------------------------- what fits


@pytest.mark.parametrize(
    ("cost", "budget", "fits"),
    [(0.1, 0.3, 3), (1.0, 3.0, 3), (0.7, 2.1, 3), (0.001, 0.01, 10), (0.3, 1.0, 3), (1.1, 3.3, 3), (2, 1, 0)],
)
def test_decimals_add_up_as_they_are_written(tmp_path: Path, cost: float, budget: float, fits: int) -> None:
    ledger = Ledger(tmp_path / "a.ledger", budget=budget)
    for number in range(fits):
        assert ledger.debit(pure(cost)).number == number + 1
    with pytest.raises(BudgetExhausted):
        ledger.debit(pure(cost))
    assert ledger.spent() == float(fits * Fraction(str(cost)))
    assert ledger.left() == float(Fraction(str(budget)) - fits * Fraction(str(cost)))
    assert len(ledger.entries()) == fits


def test_a_debit_is_admitted_exactly_if_the_sum_fits(tmp_path: Path) -> None:
    draw, spent, budget = random.Random(1), Fraction(0), Fraction(3)
    ledger = Ledger(tmp_path / "a.ledger", budget=3.0)
    outcomes = set()
    for _ in range(60):
        cost = draw.choice([0.1, 0.07, 0.013, 1e-9, 0.9])
        fits = spent + Fraction(str(cost)) <= budget
        try:
            ledger.debit(pure(cost))
        except BudgetExhausted:
            assert not fits
        else:
            assert fits
            spent += Fraction(str(cost))
        outcomes.add(fits)
        assert ledger.spent() == float(spent)
        assert ledger.left() == float(budget - spent)
    assert outcomes == {True, False}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_has_no_bound_is_refused(tmp_path: Path, delta: float) -> None:
    ledger = Ledger(tmp_path / "a.ledger", budget=1.0, delta=delta)
    with pytest.raises(BudgetExhausted):
        ledger.debit(pure(math.inf))
    with pytest.raises(AssumptionError, match="a seeded run is not private"):
        ledger.debit(pure(0.1).seed_stamped())
    for claim in (Approximate(0.1, 1e-9, **PERSON), InformationBound(0.1, **PERSON)):
        with pytest.raises(AssumptionError, match=type(claim).__name__):
            ledger.debit(claim)
    assert ledger.entries() == ()
    ledger.debit(pure(0.1))


@pytest.mark.parametrize(
    ("changed", "what"),
    [({"unit": Unit.ROW}, "unit"), ({"relation": Relation.ADD_OR_REMOVE_ONE}, "relation")],
    ids=["unit", "relation"],
)
def test_other_people_are_refused_and_nothing_is_written(
    tmp_path: Path, changed: dict[str, object], what: str
) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 1)
    before = ledger.path.read_bytes()
    with pytest.raises(AssumptionError, match=f"`{what}` of composed guarantees must be the same"):
        ledger.debit(Pure(0.1, **{**PERSON, **changed}))
    with pytest.raises(BudgetExhausted):
        ledger.debit(pure(100.0))
    assert ledger.path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [ledger.path]


def test_what_was_debited_stays_debited_if_the_body_raises(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", budget=1.0)
    with pytest.raises(ZeroDivisionError), ledger.spending(pure(0.75), "a mean") as receipt:
        raise ZeroDivisionError
    assert ledger.spent() == 0.75
    assert ledger.entries() == (receipt,)
    with pytest.raises(BudgetExhausted), ledger.spending(pure(0.5)):
        pytest.fail("the body ran without a debit")
    assert ledger.spent() == 0.75


def test_what_is_read_back_is_what_was_debited(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", budget=1.0)
    purposes = ["", "ε → ∅ 𝔻", "a\0b", "'; DROP TABLE entries; --", "x" * 10_000, "two\nlines", "0", "1e3"]
    claims = [pure(0.1).assuming("no collusion: ε ≥ 0"), Pure(0.05, **PERSON, released="odd \ud800 text")]
    receipts = [ledger.debit(pure(0.01), purpose) for purpose in purposes]
    receipts += [ledger.debit(claim) for claim in claims]
    assert ledger.entries() == Ledger(ledger.path).entries() == tuple(receipts)
    assert [entry.purpose for entry in ledger.entries()][: len(purposes)] == purposes
    assert [entry.guarantee for entry in ledger.entries()][len(purposes) :] == claims
    assert [entry.number for entry in ledger.entries()] == list(range(1, len(receipts) + 1))


def test_the_whole_guarantee_is_the_budget_under_every_assumption(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", budget=2.0)
    with pytest.raises(AssumptionError, match="an empty ledger has no guarantee"):
        ledger.guarantee()
    ledger.debit(pure(0.1).assuming("no collusion"))
    ledger.debit(pure(0.1).assuming("a clock"))
    assert ledger.guarantee() == Pure(2.0, **PERSON, assumptions=("no collusion", "a clock"))


# ---------------------------------------------------------------- Rényi budgets


def test_a_renyi_ledger_sums_divergences_of_one_order(tmp_path: Path) -> None:
    budget, delta, mu = 1.0, 1e-6, 0.05
    ledger = Ledger(tmp_path / "a.ledger", budget=budget, delta=delta)
    order, limit = ledger.rule.order, ledger.rule.limit
    price = (math.log(1 / delta) + (order - 1) * math.log(order - 1) - order * math.log(order)) / (order - 1)
    assert float(limit) == pytest.approx(budget - price)
    fits = math.floor(limit / Fraction(order * mu**2 / 2))
    for _ in range(fits):
        ledger.debit(GDP(mu, **PERSON))
    with pytest.raises(BudgetExhausted, match=f"order {order:g}"):
        ledger.debit(GDP(mu, **PERSON))
    assert len(ledger.entries()) == fits == 19
    share = fits * order * mu**2 / 2 / float(limit)
    assert ledger.spent() == pytest.approx(budget * share)
    assert ledger.left() == pytest.approx(budget * (1 - share))
    assert ledger.guarantee() == Approximate(budget, delta, **PERSON)
    exact = GDP(mu * math.sqrt(fits), **PERSON).epsilon(delta)  # of all these releases together
    assert 0.8 * budget < exact <= budget
    assert Ledger(ledger.path).rule.order == order


def test_every_kind_with_a_curve_costs_its_divergence(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", budget=5.0, delta=1e-5)
    order = ledger.rule.order
    gaussian = GDP(0.1, **PERSON)
    noise = convert(gaussian, PLD)
    assert noise is not None
    claims: list[Claim] = [pure(0.1), gaussian, ZCDP(0.005, **PERSON), noise]
    claims += [RDP((order - 1, order), (0.01, 0.02), **PERSON), PLD(Noise("laplace", 10.0), **PERSON)]
    for claim in claims:
        ledger.debit(claim)
    costs = [float(Fraction(entry.cost)) for entry in ledger._read()[1]]
    assert costs[1] == pytest.approx(order * 0.005)
    assert costs[2] == pytest.approx(costs[1])
    assert costs[3] == pytest.approx(costs[1])
    assert costs[4] == 0.02
    assert 0 < costs[0] <= order * 0.005
    assert 0 < costs[5] <= 0.1
    assert [entry.guarantee for entry in ledger.entries()] == claims
    assert ledger.spent() == pytest.approx(5.0 * sum(costs) / float(ledger.rule.limit))


# ---------------------------------------------------------------- older copies and other files

READS: dict[str, Callable[[Ledger], object]] = {
    "debit": lambda ledger: ledger.debit(pure(0.1)),
    "spent": Ledger.spent,
    "left": Ledger.left,
    "entries": Ledger.entries,
    "guarantee": Ledger.guarantee,
    "open again": lambda ledger: Ledger(ledger.path),
    "open again with its budget": lambda ledger: Ledger(ledger.path, budget=100.0),
    "copy": lambda ledger: copy.deepcopy(ledger).left(),
    "pickle": lambda ledger: again(ledger).left(),
}


@pytest.mark.parametrize("read", READS)
def test_an_older_copy_is_refused_by_the_process_that_saw_a_newer(tmp_path: Path, read: str) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 2)
    older = ledger.path.read_bytes()
    receipt = ledger.debit(pure(0.1))
    ledger.path.write_bytes(older)
    with pytest.raises(LedgerError, match="is an older copy: it lacks entry 3"):
        READS[read](ledger)
    with pytest.raises(LedgerError, match="is an older copy"):
        ledger.holds(receipt)
    assert ledger.path.read_bytes() == older


def test_an_older_copy_is_refused_by_a_ledger_that_saw_newer(
    tmp_path: Path, forget: Callable[[], None]
) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 2)
    older = ledger.path.read_bytes()
    receipt = ledger.debit(pure(0.1))
    newer = ledger.path.read_bytes()
    carried = again(ledger)
    ledger.path.write_bytes(older)
    forget()
    for one in (ledger, carried, again(ledger)):
        with pytest.raises(LedgerError, match="is an older copy"):
            one.debit(pure(0.1))
    forget()
    assert not Ledger(ledger.path).holds(receipt)  # all that a process which never saw it can tell
    ledger.path.write_bytes(newer)
    assert Ledger(ledger.path).holds(receipt)
    assert carried.left() == 99.7


def test_another_process_refuses_an_older_copy_by_what_it_was_handed(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 1)
    older = ledger.path.read_bytes()
    receipt = ledger.debit(pure(0.1))
    (tmp_path / "handed").write_bytes(pickle.dumps((receipt, ledger)))
    program = """
import pickle
from pathlib import Path
path, handed = sys.argv[1], Path(sys.argv[2]).read_bytes()
receipt, ledger = pickle.loads(handed)
print(Ledger(path).holds(receipt), refused(ledger.spent)[-60:].splitlines()[0])
"""
    assert child(program, ledger.path, tmp_path / "handed") == "True allowed"
    ledger.path.write_bytes(older)
    answer = child(program.replace("[-60:].splitlines()[0]", ""), ledger.path, tmp_path / "handed")
    assert answer.startswith("False the ledger")
    assert "is an older copy: it lacks entry 2." in answer


def test_what_another_process_debited_is_seen_and_then_remembered(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 1)
    older = ledger.path.read_bytes()
    child("Ledger(sys.argv[1]).debit(pure(0.5))", ledger.path)
    assert ledger.spent() == 0.6
    ledger.path.write_bytes(older)
    with pytest.raises(LedgerError, match="it lacks entry 2"):
        ledger.spent()


def test_another_history_of_the_same_length_is_refused(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 1)
    older = ledger.path.read_bytes()
    ledger.debit(pure(0.9))
    ledger.path.write_bytes(older)
    child("ledger = Ledger(sys.argv[1]); ledger.debit(pure(0.1)); ledger.debit(pure(0.1))", ledger.path)
    with pytest.raises(LedgerError, match="it lacks entry 2"):
        ledger.left()


def test_another_ledger_under_the_name_is_refused(tmp_path: Path, forget: Callable[[], None]) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 1)
    other = ledger_with(tmp_path / "b.ledger", 3)
    shutil.copyfile(other.path, ledger.path)
    for read in READS.values():
        with pytest.raises(LedgerError, match="another ledger has taken the place"):
            read(ledger)
    forget()
    with pytest.raises(LedgerError, match="another ledger has taken the place"):
        ledger.left()


def test_a_deleted_ledger_is_not_begun_again(tmp_path: Path, forget: Callable[[], None]) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 1)
    ledger.path.unlink()
    for read in READS.values():
        with pytest.raises(LedgerError, match=r"has been deleted|could not be used"):
            read(ledger)
        assert list(tmp_path.iterdir()) == []
    forget()
    Ledger(ledger.path, budget=100.0)  # by a process that never saw the first
    with pytest.raises(LedgerError, match="another ledger has taken the place"):
        ledger.spent()


def test_a_moved_ledger_is_the_same(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 3)
    ledger.path.rename(tmp_path / "b.ledger")
    assert Ledger(tmp_path / "b.ledger").entries()[2].purpose == "answer 2"


# ---------------------------------------------------------------- damage


def reread(path: Path) -> tuple[Receipt, ...] | None:
    """What a new process reads, None if it refuses; whatever else is raised fails the test."""
    ledgers.SEEN.clear()
    try:
        ledger = Ledger(path)
        entries = ledger.entries()
        assert ledger.spent() == float(sum(Fraction(str(entry.guarantee.level)) for entry in entries))
    except LedgerError:
        return None
    return entries


def flips(raw: bytes, number: int, *, thorough: bool) -> Iterator[tuple[int, int]]:
    """Offsets and masks in one page: every bit of its headers, and a byte here and there of the rest."""
    for offset in range(number * PAGE, (number + 1) * PAGE):
        header = offset < 112 or offset % PAGE < 24
        if header:
            yield from ((offset, 1 << bit) for bit in range(8))
            yield offset, 3  # from a rollback journal to a write-ahead log
        elif thorough:
            yield from ((offset, mask) for mask in (1, 0x80, 0xFF))
        elif raw[offset] and offset % 2 == 0:
            yield offset, (1, 0x20, 0x80, 0xFF)[offset // 2 % 4]


def check_flips(folder: Path, page: int, *, thorough: bool) -> None:
    """No flipped byte changes what has been spent: the file is refused, or reads as before and stays so."""
    ledger = Ledger(folder / "a.ledger", budget=100.0)
    for number in range(6):
        ledger.debit(pure(0.1), f"{number}" * 500)
    path, good, raw = ledger.path, ledger.entries(), ledger.path.read_bytes()
    assert len(raw) == 6 * PAGE  # schema, terms, a tree of two leaves, the last entry's number
    refused = unnoticed = 0
    for offset, mask in flips(raw, page, thorough=thorough):
        damaged = bytearray(raw)
        damaged[offset] ^= mask
        path.write_bytes(damaged)
        found = reread(path)
        assert found in (None, good), (offset, mask)
        refused += found is None
        unnoticed += found is not None
        if found is not None and unnoticed % 16 == 0:
            try:
                receipt = Ledger(path).debit(pure(0.1))
            except LedgerError:
                continue
            finally:
                for extra in set(folder.iterdir()) - {path}:
                    extra.unlink()
            assert reread(path) in (None, (*good, receipt)), (offset, mask)
    assert refused > 50
    path.write_bytes(raw)
    assert reread(path) == good


@pytest.mark.parametrize("page", range(6))
def test_a_flipped_byte_is_refused_or_changes_nothing(
    tmp_path: Path, page: int, forget: Callable[[], None]
) -> None:
    forget()
    check_flips(tmp_path, page, thorough=False)


@pytest.mark.nightly
@pytest.mark.parametrize("page", range(6))
def test_every_flipped_byte_is_refused_or_changes_nothing(
    tmp_path: Path, page: int, forget: Callable[[], None]
) -> None:
    forget()
    check_flips(tmp_path, page, thorough=True)


def test_a_page_from_an_older_copy_is_refused(tmp_path: Path, forget: Callable[[], None]) -> None:
    """As after a write that was acknowledged and lost."""
    ledger = ledger_with(tmp_path / "a.ledger", 9)
    older = ledger.path.read_bytes()
    ledger.debit(pure(0.1))
    newer, good = ledger.path.read_bytes(), ledger.entries()
    assert len(newer) == len(older)
    changed = [page for page in range(0, len(newer), PAGE) if newer[page:][:PAGE] != older[page:][:PAGE]]
    assert len(changed) == 3  # the counter in the first page, the leaf, the last entry's number
    forget()
    for page in changed:
        ledger.path.write_bytes(newer[:page] + older[page:][:PAGE] + newer[page + PAGE :])
        assert reread(ledger.path) == (good if page == 0 else None)


def test_a_truncated_file_is_refused(tmp_path: Path, forget: Callable[[], None]) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 10)
    raw = ledger.path.read_bytes()
    forget()
    for size in (0, 1, 15, 16, 99, 100, 101, 511, *range(512, len(raw), 512), len(raw) - 1):
        ledger.path.write_bytes(raw[:size])
        assert reread(ledger.path) is None, size
        with pytest.raises(LedgerError, match=r"\nhint: "):
            Ledger(ledger.path, budget=100.0)
        assert ledger.path.stat().st_size == size


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("not a ledger, but long enough to be one\n" * 100)


def database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE entries (number INTEGER)")


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def tampered(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            file.execute(statement)

    return change


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "empty": (emptied, "is empty: it was truncated"),
    "text": (text, "file is not a database"),
    "another database": (database, "is not a ledger"),
    "a directory": (directory, "could not be used"),
    "a newer version": (tampered("PRAGMA user_version = 2"), r"must have version 1\. Got 2\."),
    "no version": (tampered("PRAGMA user_version = 0"), r"must have version 1\. Got 0\."),
    "a larger budget": (tampered("UPDATE terms SET budget = '200.0'"), "a seal does not match"),
    "no terms": (tampered("DELETE FROM terms"), "a seal does not match"),
    "terms twice": (tampered("INSERT INTO terms SELECT * FROM terms"), "a seal does not match"),
    "a gap": (tampered("DELETE FROM entries WHERE number = 2"), "a seal does not match"),
    "no end": (tampered("DELETE FROM entries WHERE number = 3"), "a seal does not match"),
    "no entries": (tampered("DELETE FROM entries"), "a seal does not match"),
    "no last": (tampered("DELETE FROM last"), "a seal does not match"),
    "a cheaper entry": (tampered("UPDATE entries SET cost = '0' WHERE number = 1"), "a seal does not match"),
    "bytes for text": (tampered("UPDATE entries SET purpose = x'00'"), "a seal does not match"),
    "no table": (tampered("DROP TABLE entries"), "no such table"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused(tmp_path: Path, forget: Callable[[], None], damage: str) -> None:
    change, words = DAMAGE[damage]
    ledger = ledger_with(tmp_path / "a.ledger", 3)
    change(ledger.path)
    for known in (True, False):
        if not known:
            forget()
        for read in (*READS.values(), lambda old: Ledger(old.path, budget=100.0, delta=0.0)):
            with pytest.raises(LedgerError, match=words) as caught:
                read(ledger)
            check_form(caught.value)
    assert list(tmp_path.iterdir()) == [ledger.path]


def test_a_refused_file_is_not_kept_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connections: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def recorded(*names: object, **options: object) -> sqlite3.Connection:
        connections.append(connect(*names, **options))
        return connections[-1]

    text(tmp_path / "a.ledger")
    monkeypatch.setattr(book.sqlite3, "connect", recorded)
    with pytest.raises(LedgerError):
        Ledger(tmp_path / "a.ledger")
    assert len(connections) == 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connections[0].execute("SELECT 1")


# ---------------------------------------------------------------- a system that refuses

FULL = """
import resource
path, limit = sys.argv[1], int(sys.argv[2])
ledger = Ledger(path)
before, successes = ledger.entries(), []
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
answer = "allowed"
while answer == "allowed" and len(successes) < 20:
    answer = refused(lambda: successes.append(ledger.debit(pure(0.1))))
during = ledger.entries()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert during == ledger.entries() == Ledger(path).entries() == (*before, *successes)
assert not os.path.exists(path + "-journal")
ledger.debit(pure(0.1))
assert len(ledger.entries()) == len(before) + len(successes) + 1
print(answer)
"""


@pytest.mark.parametrize("limit", [0, 1, 600, PAGE, 3 * PAGE, 5 * PAGE, 6 * PAGE])
def test_a_full_disk_takes_no_half_debit(tmp_path: Path, limit: int) -> None:
    """Writing beyond some size fails: of the journal, then of the file, in the middle and at its end."""
    path = ledger_with(tmp_path / "a.ledger", 10).path
    answer = child(FULL, path, limit)
    assert re.match(r"the ledger '.*' could not be used: .*\.\nhint: .* the disk cannot be written\.", answer)


def test_a_ledger_that_cannot_be_created_leaves_nothing(tmp_path: Path) -> None:
    program = """
import resource
for limit in (0, 600, 4096, 8192):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    assert "could not be used" in refused(lambda: Ledger(sys.argv[1] + "/a", budget=1.0))
    assert os.listdir(sys.argv[1]) == []
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(Ledger(sys.argv[1] + "/a", budget=1.0).left())
"""
    assert child(program, tmp_path) == "1.0"


def test_no_free_file_handle_is_a_ledger_error(tmp_path: Path) -> None:
    program = """
import resource
ledger = Ledger(sys.argv[1], budget=1.0)
ledger.debit(pure(0.25))
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
free = os.dup(0)
os.close(free)
resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
answers = [refused(lambda: ledger.debit(pure(0.25))), refused(ledger.left)]
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
ledger.debit(pure(0.25))
print(all("could not be used" in answer for answer in answers), ledger.left())
"""
    assert child(program, tmp_path / "a.ledger") == "True 0.5"


READ_ONLY = """
import ctypes
from pathlib import Path
folder, path = Path(sys.argv[1]), Path(sys.argv[1]) / "a"
ledger = Ledger(path, budget=1.0)
ledger.debit(pure(0.25))
if os.geteuid() == 0:  # for root, permissions are words: give up the capabilities that make them so
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    assert ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)()) == 0
def tried(folder_mode, file_mode):
    path.chmod(file_mode)
    folder.chmod(folder_mode)
    new = folder / f"{folder_mode} {file_mode}"
    calls = [lambda: ledger.debit(pure(0.25)), ledger.left]
    calls += [lambda: Ledger(path), lambda: Ledger(new, budget=1.0)]
    answers = [refused(call) for call in calls]
    folder.chmod(0o700)
    path.chmod(0o600)
    new.unlink(missing_ok=True)
    assert all(answer == "allowed" or "could not be used" in answer for answer in answers), answers
    return "".join("+" if answer == "allowed" else "-" for answer in answers)
print(tried(0o700, 0o600), tried(0o700, 0o400), tried(0o500, 0o600), tried(0o700, 0), tried(0, 0o600))
ledger = Ledger(path)
print(ledger.left(), len(ledger.entries()), os.listdir(folder))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="capset belongs to Linux")
def test_where_writing_is_forbidden_reading_is_not(tmp_path: Path) -> None:
    """Whether debit, left, Ledger and a new Ledger work: all; file, folder read-only; file, folder shut."""
    assert child(READ_ONLY, tmp_path).splitlines() == ["++++ -+++ -++- ---+ ----", "0.5 2 ['a']"]


@pytest.mark.parametrize("where", ["missing/a.ledger", "file/a.ledger", "x" * 300, ".", "shut", "loop"])
def test_an_impossible_path_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    if where == "shut":

        def denied(path: Path, **_: object) -> bool:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(Path, "exists", denied)
    with pytest.raises((LedgerError, ParameterError)) as caught:
        Ledger(tmp_path / where, budget=1.0)
    check_form(caught.value)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "loop"}


def test_a_locked_ledger_is_waited_for_and_then_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 1)
    with closing(sqlite3.connect(ledger.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(book, "PATIENCE", 0.05)
        for call in (ledger.left, lambda: ledger.debit(pure(0.1))):
            with pytest.raises(LedgerError, match=r"locked.*\nhint: another process holds it"):
                call()
        monkeypatch.setattr(book, "PATIENCE", 30.0)
        release = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        release.start()
        assert ledger.debit(pure(0.1)).number == 2
        release.join()
    assert ledger.spent() == 0.2


# ---------------------------------------------------------------- durability


def test_the_connection_forces_every_commit_to_the_disk(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path / "a.ledger", 1)
    for writing in (True, False):
        with book.opened(ledger.path, writing=writing) as file:
            settings = {
                name: file.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("synchronous", "journal_mode", "fullfsync", "trusted_schema", "locking_mode")
            }
            assert file.in_transaction
        assert settings == {
            "synchronous": 3,  # EXTRA: the directory too, after the journal is gone
            "journal_mode": "delete",
            "fullfsync": 1,
            "trusted_schema": 0,
            "locking_mode": "normal",
        }


def test_a_new_file_is_on_the_disk_before_its_name_and_its_name_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[object] = []
    connect, link, fsync = sqlite3.connect, os.link, os.fsync

    class Recorded(sqlite3.Connection):
        def executescript(self, script: str) -> sqlite3.Cursor:
            events.append(self.execute("PRAGMA synchronous").fetchone()[0])
            return super().executescript(script)

        def close(self) -> None:
            events.append("in transaction" if self.in_transaction else "committed")
            super().close()

    def linked(*names: Path) -> None:
        link(*names)
        events.append("linked")

    def synced(handle: int) -> None:
        fsync(handle)
        events.append("synced" if os.path.samestat(os.fstat(handle), tmp_path.stat()) else "another")

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Recorded, **k))
    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(os, "fsync", synced)
    book.create(tmp_path / "a.ledger", "1.0", "0.0")
    assert events == [3, "committed", "linked", "synced"]


def test_the_debit_is_committed_when_the_body_runs(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", budget=1.0)
    with ledger.spending(pure(0.5)):
        assert list(tmp_path.iterdir()) == [ledger.path]  # no journal, so no crash can undo it
        assert child("print(Ledger(sys.argv[1]).spent())", ledger.path) == "0.5"


# ---------------------------------------------------------------- mistakes

FORM = re.compile(
    r"`\w+` of (Ledger|the ledger '[^\n]*'|composed guarantees) must [^\n]+\. Got [^\n]+\.(\nhint: [^\n]+\.)?"
)
ABOUT_A_FILE = re.compile(r"[^\n]*'/[^\n]*'[^\n]*\.\nhint: [^\n]+\.")


def check_form(error: UntoldError) -> None:
    """What, whose, allowed, given; of a file that is refused, its name and what to do."""
    message = str(error)
    about_a_file = isinstance(error, LedgerError) and ABOUT_A_FILE.fullmatch(message)
    assert FORM.fullmatch(message) or about_a_file, message


MISTAKES: dict[str, tuple[Callable[[Ledger], object], type[UntoldError], str]] = {
    "no budget": (lambda old: Ledger(f"{old.path}.new"), ParameterError, "`budget` of Ledger"),
    "budget of zero": (lambda old: Ledger(f"{old.path}.new", 0), ParameterError, "`budget` of Ledger"),
    "negative budget": (lambda old: Ledger(f"{old.path}.new", -1.0), ParameterError, "`budget` of Ledger"),
    "endless budget": (lambda old: Ledger(f"{old.path}.new", math.inf), ParameterError, "`budget` of Ledger"),
    "no number": (lambda old: Ledger(f"{old.path}.new", math.nan), ParameterError, "`budget` of Ledger"),
    "text for budget": (lambda old: Ledger(f"{old.path}.new", "1"), ParameterError, "`budget` of Ledger"),
    "delta of one": (lambda old: Ledger(f"{old.path}.new", 1.0, 1), ParameterError, "`delta` of Ledger"),
    "negative delta": (lambda old: Ledger(f"{old.path}.new", 1.0, -0.1), ParameterError, "`delta` of Ledger"),
    "another budget": (lambda old: Ledger(old.path, 2.0), LedgerError, "`budget` of the ledger"),
    "a budget almost the same": (
        lambda old: Ledger(old.path, math.nextafter(100.0, 101.0)), LedgerError, "`budget` of the ledger",
    ),
    "another delta": (lambda old: Ledger(old.path, delta=1e-6), LedgerError, "`delta` of the ledger"),
    "no path": (lambda old: Ledger(None, 1.0), ParameterError, "`path` of Ledger"),
    "a number for path": (lambda old: Ledger(3, 1.0), ParameterError, "`path` of Ledger"),
    "a path with a null": (lambda old: Ledger("a\0b", 1.0), ParameterError, "`path` of Ledger"),
    "a number for guarantee": (lambda old: old.debit(1.0), ParameterError, "`guarantee` of Ledger"),
    "a class for guarantee": (lambda old: old.debit(Pure), ParameterError, "`guarantee` of Ledger"),
    "a number for purpose": (lambda old: old.debit(ONE, 3), ParameterError, "`purpose` of Ledger"),
    "bytes for purpose": (lambda old: old.debit(ONE, b"x"), ParameterError, "`purpose` of Ledger"),
    "no purpose": (lambda old: old.debit(ONE, None), ParameterError, "`purpose` of Ledger"),
    "half a letter": (lambda old: old.debit(ONE, "\ud800"), ParameterError, "`purpose` of Ledger"),
    "too much": (lambda old: old.debit(pure(99.95)), BudgetExhausted, "must cost at most 99.9. Got 99.95."),
    "other people": (lambda old: old.debit(pure(0.1).group(2, unit=Unit.ROW)), AssumptionError, "`unit`"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_and_changes_nothing(tmp_path: Path, mistake: str) -> None:
    call, kind, words = MISTAKES[mistake]
    ledger = ledger_with(tmp_path / "a.ledger", 1)
    before = ledger.path.read_bytes()
    with pytest.raises(kind, match=re.escape(words)) as caught:
        call(ledger)
    assert type(caught.value) is kind
    check_form(caught.value)
    assert ledger.path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [ledger.path]
    assert ledger.debit(pure(0.1)).number == 2
