"""The planner: its bounds against the theorems, both tables of S4, privacy, and runs within the bounds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from untold.convex.domains import Everywhere, L2Ball
from untold.core import Relation
from untold.erm.batches import FullBatch, PoissonBatch, SubsetBatch
from untold.erm.plan import Terms, planned, rows_needed
from untold.erm.regimes import Problem, Regime, bound, limit, rule
from untold.erm.tables import computation_table, utility_table
from untold.errors import AssumptionError, ParameterError
from untold.learners.average import LINEAR, UNIFORM
from untold.learners.descent import Descent
from untold.learners.rules import Constant
from untold.private import noise
from untold.private.gaussian_profile import gdp_mu

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE
P = Problem(n=1000, d=10, lipschitz=1.3, smoothness=0.25, strength=80.0, distance=2.0, gap=60.0)
CONSTANT = [Regime.NONCONVEX_SMOOTH, Regime.CONVEX_SMOOTH, Regime.CONVEX_LIPSCHITZ]


def _theorem(regime, p, T, v, eta):
    """The bounds as docs/errata.md has them."""
    n, L, beta, lam, D, gap = p.n, p.lipschitz, p.smoothness, p.strength, p.distance, p.gap
    if regime is Regime.NONCONVEX_SMOOTH:
        return 2 * gap / (T * eta) + eta * n * beta * v
    if regime is Regime.CONVEX_SMOOTH:
        return (D**2 / (T * eta) + eta * v) / 2
    if regime is Regime.CONVEX_LIPSCHITZ:
        return (D**2 / (T * eta) + eta * ((n * L) ** 2 + v)) / 2
    return 2 * ((n * L) ** 2 + v) / (lam * (T + 1))


@pytest.mark.parametrize("regime", CONSTANT)
@pytest.mark.parametrize("T", [1, 7, 300, 10**6])
@pytest.mark.parametrize("v", [1e-3, 50.0, 1e5, 1e9])
def test_the_rate_is_the_minimiser_and_the_bound_the_minimum(regime, T, v):
    most = math.inf if regime is Regime.CONVEX_LIPSCHITZ else 1 / (P.n * P.smoothness)
    top = min(math.log(most), 30.0)

    def at(log_eta):
        return _theorem(regime, P, T, v, math.exp(log_eta))

    found = minimize_scalar(at, bounds=(-40.0, top), method="bounded", options={"xatol": 1e-12})
    eta = rule(regime, P, T, v).rate(1, 0.0)
    assert eta <= most
    best = min(found.fun, at(top))
    assert bound(regime, P, T, v) == pytest.approx(best, rel=1e-9)
    assert bound(regime, P, T, v) == pytest.approx(_theorem(regime, P, T, v, eta), rel=1e-12)
    for factor in (0.99, 1.01):
        assert bound(regime, P, T, v, min(most, eta * factor)) >= best * (1 - 1e-12)


def test_strongly_convex_bound_and_rule():
    assert bound(Regime.STRONGLY_CONVEX, P, 9, 5.0) == _theorem(Regime.STRONGLY_CONVEX, P, 9, 5.0, None)
    plan = planned(P, Regime.STRONGLY_CONVEX, Terms(epsilon=1.0))
    assert plan.average == LINEAR
    assert plan.rule.rate(3, 0.0) == 2 / (80.0 * 4)


@pytest.mark.parametrize("regime", list(Regime))
@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("slack", [0.01, 0.1, 1.0])
def test_steps_are_enough_and_no_fewer_are(regime, relation, epsilon, slack):
    terms = Terms(epsilon=epsilon, relation=relation, slack=slack)
    plan = planned(P, regime, terms)
    V = P.d * (P.lipschitz * (2 if relation is REPLACE else 1) / gdp_mu(epsilon, 1e-6)) ** 2
    least = min(bound(regime, P, T, V * T) for T in [1, 10**3, 10**6, 10**9, 10**15])
    assert plan.bound <= (1 + slack) * least * (1 + 1e-12)
    if plan.steps > 1:
        assert bound(regime, P, plan.steps - 1, V * (plan.steps - 1)) > (1 + slack) * limit(regime, P, V)
    assert plan.bound == pytest.approx(bound(regime, P, plan.steps, P.d * plan.sigma**2), rel=1e-12)
    assert plan.sigma**2 * P.d == pytest.approx(V * plan.steps, rel=1e-12)
    assert plan.calls == P.n * plan.steps
    assert plan.per_row == plan.bound / (P.n**2 if regime is Regime.NONCONVEX_SMOOTH else P.n)
    assert plan.average == (LINEAR if regime is Regime.STRONGLY_CONVEX else UNIFORM)


@pytest.mark.parametrize("regime", list(Regime))
def test_without_noise_the_plain_rates_remain(regime):
    n, L, beta, T = P.n, P.lipschitz, P.smoothness, 400
    plain = {
        Regime.NONCONVEX_SMOOTH: 2 * n * beta * P.gap / T,
        Regime.CONVEX_SMOOTH: n * beta * P.distance**2 / (2 * T),
        Regime.CONVEX_LIPSCHITZ: P.distance * n * L / math.sqrt(T),
        Regime.STRONGLY_CONVEX: 2 * (n * L) ** 2 / (P.strength * (T + 1)),
    }[regime]
    plan = planned(P, regime, Terms(epsilon=math.inf, most=T))
    assert (plan.steps, plan.sigma) == (T, 0.0)
    assert plan.bound == pytest.approx(plain, rel=1e-12)
    assert plan.guarantee.epsilon(1e-6) == math.inf
    nearly = bound(regime, P, T, 1e-9)
    assert nearly == pytest.approx(plain, rel=1e-6)


BUDGETS = st.tuples(st.floats(0.05, 8.0), st.sampled_from(list(Regime)), st.integers(1, 10**7))


@settings(max_examples=60, deadline=None)
@given(BUDGETS, st.integers(1, 200), st.floats(1.05, 4.0))
def test_more_privacy_columns_or_reach_never_help(budget, d, factor):
    epsilon, regime, n = budget
    p = Problem(n=n, d=d, lipschitz=1.0, smoothness=1.0, strength=0.1 * n, distance=1.0, gap=1.0 * n)

    def least(epsilon=epsilon, n=n, **changes):
        """Over T as well, so that no rounding of T is in the way."""
        q = Problem(**{**vars(p.with_rows(n)), **changes})
        V = q.d * (q.lipschitz / gdp_mu(epsilon, 1e-6)) ** 2
        return min(bound(regime, q, 1, V), limit(regime, q, V)) / regime.rows(n)

    one = least()
    assert least(epsilon=epsilon * factor) <= one
    assert least(d=d + 1) >= one
    assert least(n=math.ceil(n * factor)) <= one * (1 + 1e-12)
    assert least(distance=factor) >= one
    plan = planned(p, regime, Terms(epsilon=epsilon))
    assert one * (1 - 1e-12) <= plan.per_row <= 1.1 * one * (1 + 1e-12)
    assert plan.steps >= 1


@settings(max_examples=40, deadline=None)
@given(BUDGETS, st.floats(1e-4, 1.0))
def test_rows_needed_is_enough_and_one_fewer_is_not_promised(budget, error):
    epsilon, regime, _ = budget
    p = Problem(n=1, d=5, lipschitz=1.0, smoothness=1.0, strength=0.1, distance=1.0, gap=1.0)
    terms = Terms(epsilon=epsilon)
    n = rows_needed(error, p, regime, terms)
    assert planned(p.with_rows(n), regime, terms).per_row <= error * (1 + 1e-12)

    def promised(m):
        q, V = p.with_rows(m), 5 / gdp_mu(epsilon, 1e-6) ** 2
        return 1.1 * min(bound(regime, q, 1, V), limit(regime, q, V)) / regime.rows(m)

    assert promised(n) <= error * (1 + 1e-12)
    assert n == 1 or promised(n - 1) > error
    assert rows_needed(error / 2, p, regime, terms) >= n


def test_more_rows_like_these():
    q = P.with_rows(3000)
    assert (q.n, q.strength, q.gap) == (3000, 3 * P.strength, 3 * P.gap)
    assert (q.distance, q.smoothness, q.lipschitz, q.d) == (P.distance, P.smoothness, P.lipschitz, P.d)


def test_rows_needed_where_sampled():
    p = Problem(n=1, d=5, lipschitz=1.0, smoothness=1.0, distance=1.0)
    terms = Terms(epsilon=1.0, batch=PoissonBatch(0.02), most=200)
    n = rows_needed(0.5, p, Regime.CONVEX_SMOOTH, terms)
    assert planned(p.with_rows(n), Regime.CONVEX_SMOOTH, terms).per_row <= 0.5
    fewer = math.floor(0.98 * n)
    assert fewer < 1 or planned(p.with_rows(fewer), Regime.CONVEX_SMOOTH, terms).per_row > 0.5


@pytest.mark.parametrize("n", [30, 1000, 10**6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_both_tables(n, epsilon, relation):
    d, L, beta, lam, D, gap, delta = 7, 1.3, 0.4, 0.6, 3.0, 2.0, 1e-5
    p = Problem(n=n, d=d, lipschitz=L, smoothness=beta, strength=lam, distance=D, gap=gap)
    terms = Terms(epsilon=epsilon, delta=delta, relation=relation)
    rho, log = epsilon**2 / (4 * math.log(1 / delta)), math.log(1 / delta)
    if relation is REPLACE:
        L = 2 * L
    lipschitz, strongly, nonconvex = utility_table(p, terms)
    assert lipschitz.total == pytest.approx(math.sqrt(d) * L * D * math.sqrt(log) / epsilon)
    assert lipschitz.per_row == pytest.approx(math.sqrt(d) * L * D * math.sqrt(log) / (n * epsilon))
    assert lipschitz.figure == pytest.approx(D * math.sqrt(d * L**2 / (2 * rho)))
    assert strongly.total == pytest.approx(d * L**2 * log / (lam * epsilon**2))
    assert strongly.per_row == pytest.approx(d * L**2 * log / (n * lam * epsilon**2))
    assert strongly.figure == pytest.approx(d * L**2 / (lam * rho))
    assert nonconvex.total == pytest.approx(math.sqrt(n * beta * d * L**2 * gap * log) / epsilon)
    assert nonconvex.per_row == pytest.approx(nonconvex.total / n**2)
    assert nonconvex.figure == pytest.approx(2 * math.sqrt(n * beta * d * gap * L**2 / rho))
    ratios = [row.figure / row.total for row in (lipschitz, strongly, nonconvex)]
    assert ratios == pytest.approx([math.sqrt(2), 4, 4])
    for row in (lipschitz, strongly, nonconvex):
        assert row.planned == planned(p, row.regime, terms).bound
        assert planned(p, row.regime, terms).figure == row.figure
    lipschitz, smooth, strongly = computation_table(p, terms)
    share = 4 if relation is REPLACE else 1
    assert lipschitz.steps == strongly.steps == pytest.approx(n**2 * rho / (d * share))
    assert lipschitz.calls == strongly.calls == pytest.approx(n**3 * rho / (d * share))
    assert smooth.steps == pytest.approx(n * beta * math.sqrt(rho) * D / (math.sqrt(d) * L))
    assert smooth.calls == pytest.approx(n * smooth.steps)
    # They solve the inequalities of the text: the first term equals the private one there.
    private = D * math.sqrt(d * L**2 / rho)
    assert D * n * P.lipschitz / math.sqrt(lipschitz.steps) == pytest.approx(private)
    assert n * beta * D**2 / smooth.steps == pytest.approx(private)


@pytest.mark.parametrize(
    ("batch", "relation", "regime"),
    [
        *((PoissonBatch(0.05), ADD, regime) for regime in Regime),
        (PoissonBatch(0.05), REPLACE, Regime.CONVEX_LIPSCHITZ),
        (SubsetBatch(50), REPLACE, Regime.CONVEX_SMOOTH),
    ],
)
def test_sampled_plans(batch, relation, regime):
    plan = planned(P, regime, Terms(epsilon=1.0, batch=batch, relation=relation, most=500))
    gamma = 0.05
    exact = (1 - gamma) / gamma * P.n**2 / (P.n - 1) * P.lipschitz**2
    v = P.d * plan.sigma**2 / gamma**2 + exact
    assert plan.bound == pytest.approx(bound(regime, P, plan.steps, v), rel=1e-12)
    assert plan.calls == pytest.approx(0.05 * P.n * plan.steps)
    assert 0.9 < plan.guarantee.epsilon(1e-6) <= 1.0
    assert plan.guarantee.relation is relation
    full = planned(P, regime, Terms(epsilon=1.0, relation=relation))
    assert plan.sigma < full.sigma * math.sqrt(plan.steps / full.steps)


def test_what_sampling_adds_is_the_variance_of_the_sampled_sum():
    """Rows ±L, half of each: Poisson meets S4's expression exactly, a subset the planner's exactly."""
    from itertools import combinations, product

    gradients, L = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), 1.0
    subsets = [gradients[list(c)].sum() * 3 for c in combinations(range(6), 2)]
    p = Problem(n=6, d=1, lipschitz=L)
    assert np.var(subsets) == pytest.approx(Terms(epsilon=1.0, batch=SubsetBatch(2)).energies(p)[2])
    chance = 1 / 3
    poisson = sum(
        math.prod(chance if i else 1 - chance for i in pick) * (gradients @ np.array(pick) / chance) ** 2
        for pick in product([0, 1], repeat=6)
    )
    assert poisson <= Terms(epsilon=1.0, batch=PoissonBatch(chance)).energies(p)[2]
    assert FullBatch() == Terms(epsilon=1.0).batch
    assert Terms(epsilon=1.0).energies(p)[2] == 0.0


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_privacy_is_what_dp_accounting_says(epsilon):
    import dp_accounting as dpa
    from dp_accounting import dp_event as ev
    from dp_accounting import pld, rdp

    def check(accountant, event, tight):
        found = accountant.compose(event).get_epsilon(1e-6)
        assert tight * epsilon < found <= epsilon * 1.002

    for relation, w in ((ADD, 1.0), (REPLACE, 2.0)):
        plan = planned(P, Regime.CONVEX_SMOOTH, Terms(epsilon=epsilon, relation=relation))
        step = ev.GaussianDpEvent(plan.sigma / (w * P.lipschitz))
        check(pld.PLDAccountant(), ev.SelfComposedDpEvent(step, plan.steps), 0.99)
    plan = planned(P, Regime.CONVEX_SMOOTH, Terms(epsilon=epsilon, batch=PoissonBatch(0.05)))
    step = ev.PoissonSampledDpEvent(0.05, ev.GaussianDpEvent(plan.sigma / P.lipschitz))
    check(pld.PLDAccountant(), ev.SelfComposedDpEvent(step, plan.steps), 0.98)
    terms = Terms(epsilon=epsilon, batch=SubsetBatch(50), relation=REPLACE)
    plan = planned(P, Regime.CONVEX_SMOOTH, terms)
    step = ev.GaussianDpEvent(plan.sigma / (2 * P.lipschitz))
    step = ev.SampledWithoutReplacementDpEvent(P.n, 50, step)
    accountant = rdp.RdpAccountant(neighboring_relation=dpa.NeighboringRelation.REPLACE_ONE)
    check(accountant, ev.SelfComposedDpEvent(step, plan.steps), 0.9)


RUNS = 50


def _runs(plan, gradient, d, seed, domain=None, scale=2.0**-20):
    """The points of 50 runs by `Descent`; on all of space all runs are one long vector."""
    source = noise.seeded(seed)
    draw = lambda count: noise.gaussian(count, plan.sigma / scale, source) * scale  # noqa: E731
    if domain is None:
        learner = Descent(rule=plan.rule, average=plan.average, domain=Everywhere())
        state, points = learner.start(RUNS * d), []
        for _ in range(plan.steps):
            w = learner.point(state)
            points.append(w.reshape(RUNS, d))
            state = learner.step(state, gradient(w.reshape(RUNS, d)).ravel() + draw(RUNS * d))
        return learner.answer(state).reshape(RUNS, d), points
    answers = []
    for _ in range(RUNS):
        learner = Descent(rule=plan.rule, average=plan.average, domain=domain)
        state = learner.start(d)
        noises = draw(plan.steps * d).reshape(plan.steps, d)
        for t in range(plan.steps):
            state = learner.step(state, gradient(learner.point(state)[None])[0] + noises[t])
        answers.append(learner.answer(state))
    return np.array(answers), []


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, np.sign(X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=200))


def test_convex_smooth_runs_keep_the_bound(rows):
    from untold.convex.losses import Logistic

    X, y = rows
    loss, u = Logistic(), np.zeros(3)
    for _ in range(3000):
        u -= loss.subgradient(u, X, y).sum(axis=0) / (0.25 * 200)
    p = Problem(n=200, d=3, lipschitz=1.0, smoothness=0.25, distance=float(np.linalg.norm(u)))
    plan = planned(p, Regime.CONVEX_SMOOTH, Terms(epsilon=2.0))
    W, _ = _runs(plan, lambda W: -(y / (1 + np.exp(y * (W @ X.T)))) @ X, 3, seed=1)
    excess = [loss.value(w, X, y).sum() - loss.value(u, X, y).sum() for w in W]
    assert 0 < np.mean(excess) <= plan.bound


def test_convex_lipschitz_runs_keep_the_bound():
    """The sum of distances to 200 points in pairs c ± z around the minimiser c = (0.3, 0.3, 0.3)."""
    z = np.random.default_rng(2).uniform(-1, 1, size=(20, 3))
    c = np.full(3, 0.3)
    points = np.concatenate([c + z, c - z])

    def distances(W):
        return np.linalg.norm(W[:, None] - points, axis=2)

    p = Problem(n=40, d=3, lipschitz=1.0, distance=float(np.linalg.norm(c)))
    plan = planned(p, Regime.CONVEX_LIPSCHITZ, Terms(epsilon=2.0, slack=0.5))
    W, _ = _runs(plan, lambda W: ((W[:, None] - points) / distances(W)[..., None]).sum(axis=1), 3, seed=2)
    excess = distances(W).sum(axis=1) - distances(c[None]).sum()
    assert 0 < excess.mean() <= plan.bound


def test_strongly_convex_runs_keep_the_bound():
    """ℓᵢ = ½λ₁‖w − xᵢ‖² on the unit ball: L = 2λ₁."""
    X = np.random.default_rng(3).normal(size=(40, 3)) * 0.3
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    p = Problem(n=40, d=3, lipschitz=2.0, strength=40.0)
    plan = planned(p, Regime.STRONGLY_CONVEX, Terms(epsilon=2.0, slack=1.0, most=150))
    W, _ = _runs(plan, lambda W: 40.0 * W - X.sum(axis=0), 3, seed=3, domain=L2Ball(1.0))
    excess = 20.0 * ((W - X.mean(axis=0)) ** 2).sum(axis=1)
    assert 0 < excess.mean() <= plan.bound


def test_nonconvex_smooth_runs_keep_the_bound(rows):
    """Sigmoid loss 1/(1 + exp(y⟨w, x⟩)): |φ′| ≤ 1/4 and |φ″| ≤ 1/(6√3)."""
    X, y = rows

    def gradient(W):
        s = 1 / (1 + np.exp(y * (W @ X.T)))
        return -(y * s * (1 - s)) @ X

    p = Problem(n=200, d=3, lipschitz=0.25, smoothness=1 / (6 * math.sqrt(3)), gap=100.0)  # f ≥ 0, f(0) = 100
    plan = planned(p, Regime.NONCONVEX_SMOOTH, Terms(epsilon=2.0))
    _, points = _runs(plan, gradient, 3, seed=4)
    squares = np.mean([(gradient(W) ** 2).sum(axis=1).mean() for W in points])
    assert 0 < squares <= plan.bound


def test_the_smooth_bounds_are_attained():
    """f = ½nβw² without noise: one step of 1/(nβ) is the last that counts."""
    D, T = 3.0, 50
    p = Problem(n=4, d=1, lipschitz=1.0, smoothness=0.5, distance=D, gap=0.5 * 4 * 0.5 * D**2)
    assert bound(Regime.CONVEX_SMOOTH, p, T, 0.0) == pytest.approx(p.gap / T, rel=1e-12)
    assert bound(Regime.NONCONVEX_SMOOTH, p, T, 0.0) == pytest.approx((4 * 0.5 * D) ** 2 / T, rel=1e-12)


def test_bad_settings():
    for make, line in [
        (lambda: Problem(n=0, d=1, lipschitz=1.0), "`n` of Problem must be a whole number >= 1. Got 0."),
        (lambda: Problem(n=1, d=1.5, lipschitz=1.0), "`d` of Problem must be a whole number >= 1. Got 1.5."),
        (
            lambda: Problem(n=1, d=1, lipschitz=0.0),
            "`lipschitz` of Problem must be a finite number > 0. Got 0.0.",
        ),
        (
            lambda: Problem(n=1, d=1, lipschitz=1.0, gap=-1),
            "`gap` of Problem must be a number in [0, inf). Got -1.",
        ),
        (lambda: Terms(epsilon=0.0), "`epsilon` of Terms must be a number > 0. Got 0.0."),
        (lambda: Terms(epsilon=1.0, delta=0.0), "`delta` of Terms must be a number in (0, 1). Got 0.0."),
        (lambda: Terms(epsilon=1.0, slack=0.0), "`slack` of Terms must be a finite number > 0. Got 0.0."),
        (lambda: Terms(epsilon=1.0, most=0), "`most` of Terms must be a whole number >= 1. Got 0."),
        (lambda: Terms(epsilon=math.inf), "`most` of Terms must be a whole number >= 1. Got None."),
        (lambda: Terms(epsilon=1.0, relation="both"), "`relation` of Terms must be one of"),
        (lambda: planned(P, "concave", Terms(epsilon=1.0)), "`regime` of Problem must be one of"),
        (
            lambda: planned(Problem(n=1, d=1, lipschitz=1.0), Regime.STRONGLY_CONVEX, Terms(epsilon=1.0)),
            "`strength` of Problem must be a finite number > 0. Got 0.0.\nhint: the strongly-convex bound",
        ),
        (
            lambda: rows_needed(0.0, P, Regime.CONVEX_SMOOTH, Terms(epsilon=1.0)),
            "`error` of rows_needed must be",
        ),
        (
            lambda: rows_needed(1e-6, P, Regime.CONVEX_LIPSCHITZ, Terms(epsilon=1.0, most=100)),
            "`error` of rows_needed must be at least 0.26 with so few steps. Got 1e-06.",
        ),
        (
            lambda: utility_table(Problem(n=1, d=1, lipschitz=1.0), Terms(epsilon=1.0)),
            "`distance` of Problem",
        ),
    ]:
        with pytest.raises(ParameterError) as refusal:
            make()
        assert str(refusal.value).startswith(line)
    with pytest.raises(AssumptionError, match="relation"):
        planned(P, Regime.CONVEX_SMOOTH, Terms(epsilon=1.0, batch=SubsetBatch(10)))


def test_a_relation_and_a_regime_may_be_written_as_text():
    plan = planned(P, "convex-smooth", Terms(epsilon=1.0, relation="replace-one"))
    same = planned(P, Regime.CONVEX_SMOOTH, Terms(epsilon=1.0, relation=REPLACE))
    assert plan == same
    assert isinstance(plan.rule, Constant)
    assert "replace-one" in str(plan)
    assert "not a guarantee" in str(plan)
