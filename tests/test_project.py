"""The project about itself: what is public, what may import what, how quickly it starts, how many tests."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.shared_table import LEARNERS, RANDOMIZERS

import untold

ROOT = Path(__file__).parents[1]
FEWEST_TESTS = 4300


def test_the_public_list():
    assert sorted(untold.__all__) == [
        "Absolute", "AcceleratedDescent", "Accountant", "AdaptivePotential", "Banco", "BanditDescent",
        "Bettor",
        "Coordinatewise", "Descent", "DistanceOverGradients", "Duchi", "FullBatch", "Gaussian",
        "GeometricMedian", "Hinge", "Huber", "HuberisedHinge", "LazyDescent", "Ledger",
        "LocalLaplace", "Logistic", "Mean", "MirrorDescent", "Multinomial", "MutualInformation",
        "NormLaplace", "PoissonBatch", "PrivUnit", "PrivUnitG", "Quantile", "Reduction", "Squared",
        "SubsetBatch", "Terms", "UntoldError", "absorb", "adassp", "approximate_minima", "curated",
        "double_noise_newton",
        "learn", "learn_many", "learn_privately", "load", "noisy_gradient_descent",
        "objective_perturbation", "one_row_descent", "output_perturbation", "planned",
        "rows_needed", "save", "streamed", "whitened_descent",
    ]  # fmt: skip
    for name in untold.__all__:
        assert getattr(untold, name).__doc__
    with pytest.raises(AttributeError, match="nothing"):
        untold.nothing  # noqa: B018
    assert set(untold.__all__) <= set(dir(untold))


def test_import_is_light():
    """`import untold` loads nothing heavy; the accountant loads dp-accounting only when a number needs it."""
    program = "import sys; import untold{}; print(*(m for m in {!r} if m in sys.modules))"
    for extra, heavy in [
        ("", ["numpy", "scipy", "numba", "sklearn", "dp_accounting", "cryptography", "flint"]),
        (".private.guarantees", ["numba", "sklearn", "dp_accounting", "scipy.stats"]),
        (".private.noise", ["sklearn", "dp_accounting", "scipy.stats", "scipy.optimize"]),
    ]:
        loaded = subprocess.check_output([sys.executable, "-c", program.format(extra, heavy)], text=True)
        assert loaded.strip() == ""


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("core", "import untold.errors"),
        ("convex/clipping", "import untold.private.noise"),
        ("learners/planted", "import untold.private.noise"),
        ("private/planted", "import untold.learners.planted"),
        ("private/randomizers/planted", "import untold.private.sampling.keystream"),
        ("private/accountant", "import random"),
        ("kernels/planted", "import untold.cli"),
    ],
)
def test_a_planted_import_breaks_a_contract(tmp_path, room, line):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "src" / "untold"
    for planted in (f"{room}.py", "learners/planted.py", "cli.py"):
        path = package / planted
        path.parent.mkdir(exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.touch()
    linter = shutil.which(
        "lint-imports", path=os.pathsep.join([str(Path(sys.executable).parent), os.defpath])
    )
    command = [linter, "--no-cache"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    before = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert before.returncode == 0, before.stdout
    with (package / f"{room}.py").open("a") as file:
        file.write(f"\n{line}\n")
    after = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert after.returncode == 1
    assert "BROKEN" in after.stdout


def test_files_and_functions_stay_short():
    for path in (ROOT / "src").rglob("*.py"):
        lines = path.read_text().splitlines()
        assert len(lines) <= 300, path
        assert path.stem not in {"utils", "util", "common", "misc", "helpers"}


def test_every_randomiser_has_a_proof_a_row_and_a_line():
    """Adding a randomiser touches three files (and owes a proof)."""
    folder = ROOT / "src/untold/private/randomizers"
    modules = {p.stem for p in folder.glob("*.py")} - {"__init__", "base"}
    in_table = {type(make(1.0, 3)).__module__.rsplit(".", 1)[1] for make in RANDOMIZERS.values()}
    in_list = set(re.findall(r"randomizers\.(\w+) import", (ROOT / "src/untold/__init__.pyi").read_text()))
    assert modules == in_table == in_list
    for module in modules:
        cited = re.search(r"proofs/(\w+)\.md", (folder / f"{module}.py").read_text())
        assert cited
        assert (ROOT / "proofs" / f"{cited[1]}.md").exists()


def test_every_learner_has_a_row_and_a_line():
    """Adding a learner touches three files; a compiled twin stands in the file of the same name."""
    folder = ROOT / "src/untold/learners"
    shared = {"__init__", "average", "base", "magnitude", "priors", "rules", "saved"}
    modules = {p.stem for p in folder.glob("*.py")} - shared
    in_table = {type(make(None, 1)).__module__.rsplit(".", 1)[1] for make in LEARNERS.values()}
    stub = (ROOT / "src/untold/__init__.pyi").read_text()
    in_list = set(re.findall(r"learners\.(\w+) import", stub)) - {"saved"}
    assert modules == in_table == in_list
    for path in folder.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 200, path


def test_pages_name_files_and_tests_that_exist():
    tests = "\n".join(p.read_text() for p in (ROOT / "tests").rglob("test_*.py"))
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("proofs/*.md")]:
        text = page.read_text()
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (page.parent / target).exists(), (page, target)
        for name in re.findall(r"`(test_\w+)`", text):
            assert f"def {name}(" in tests, (page, name)
        for name in re.findall(r"`(tests/[\w/]+\.py)`", text):
            assert (ROOT / name).exists(), (page, name)


def test_no_test_has_gone_missing(request):
    """A whole run collects at least FEWEST_TESTS: tests cannot vanish silently."""
    session = request.session
    whole = not request.config.getoption("keyword") and request.config.getoption("markexpr") == "not nightly"
    if not whole or request.config.args_source.name != "TESTPATHS":
        pytest.skip("only part of the tests was asked for")
    assert len(session.items) >= FEWEST_TESTS
