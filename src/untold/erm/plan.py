"""Steps, noise, rate and accuracy of NoisyGD and NoisySGD, planned from public quantities before any data.

A step adds to ∇f noise of energy v = dσ²/γ² + n²L²(1 − γ)/((n − 1)γ), γ the share of rows it sees (Yu-Xiang
Wang's lecture 12, sections 12.2 and 12.3.3, corrected as in ``docs/errata.md``). Full batches keep
v/T = V = d(wL/μ)² at every T: w = 1 where a row comes or goes, 2 where it is replaced, μ = gdp_mu(ε, δ). So T
is the smallest with which the bound (`untold.erm.regimes`) is within `slack` of its least::

    T = min{T : bound(T, VT + n²L²(1 − γ)/((n − 1)γ)) ≤ (1 + slack)·min(bound at 1, limit(V))},

and (μ/(wγ))² at least where rows are sampled, which puts σ at about L. σ is then what the batch's own
accountant asks for. Rates are for ∇f; for the mean's gradient, n times as much.
"""

import math
from dataclasses import dataclass, replace

from untold.core import Relation, Unit
from untold.erm.batches import Batch, FullBatch
from untold.erm.regimes import Problem, Regime, bound, limit, rule
from untold.errors import between, one_of, positive, refuse, whole
from untold.learners.average import LINEAR, UNIFORM, Average
from untold.learners.rules import Rule
from untold.private.claim import Claim
from untold.private.classic import Pure
from untold.private.gaussian_profile import gdp_mu
from untold.private.noisy_sums import weight

__all__ = ["Plan", "Terms", "planned", "rows_needed"]

FULL = FullBatch()
MOST_ROWS, MOST_STEPS = 1 << 60, 1 << 100


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The privacy wanted, how rows are drawn, the most steps, and by what part a bound may miss its least.

    >>> round(Terms(epsilon=1.0).rho, 6)
    0.018096
    """

    epsilon: float
    delta: float = 1e-6
    relation: Relation = Relation.ADD_OR_REMOVE_ONE
    batch: Batch = FULL
    most: int | None = None
    slack: float = 0.1

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, of="Terms", infinite=True)
        between("delta", self.delta, 0.0, 1.0, of="Terms", ends="()", hint="Gaussian noise has no δ = 0.")
        relation = one_of("relation", self.relation, list(Relation), of="Terms")
        object.__setattr__(self, "relation", Relation(relation))
        positive("slack", self.slack, of="Terms")
        if self.most is not None or self.epsilon == math.inf:
            whole("most", self.most, of="Terms", hint="without noise, more steps are always better.")

    @property
    def rho(self) -> float:
        """ε²/(4·ln(1/δ)): S4's figure, to be printed beside, not a guarantee."""
        return self.epsilon**2 / (4 * math.log(1 / self.delta))

    @property
    def mu(self) -> float:
        """What full batches may spend."""
        return gdp_mu(self.epsilon, self.delta) if self.epsilon < math.inf else math.inf

    def energies(self, p: Problem) -> tuple[float, float, float]:
        """γ, V, and what sampling adds to v."""
        gamma = self.batch.expected(p.n) / p.n
        added = (1 - gamma) / gamma * p.lipschitz**2 * p.n * (p.n / max(1, p.n - 1))
        return gamma, p.d * (weight(self.relation) * p.lipschitz / self.mu) ** 2, added


@dataclass(frozen=True)
class Plan:
    """A run planned; `bound` is of the sum's excess risk, or of its mean squared gradient where nonconvex.

    >>> p = Problem(n=1000, d=10, lipschitz=1.0, smoothness=0.25, distance=2.0)
    >>> print(planned(p, Regime.CONVEX_SMOOTH, Terms(epsilon=1.0)))
    convex-smooth, add-or-remove-one: T = 25, σ = 21.1, Constant(eta=0.004), average of weights ∝ t^0
      at most 28.9 for the sum, 0.0289 per row; 25000 gradients of a row
      S4's figure, not a guarantee: ρ = 0.0181, hence 33.2 for the sum
    """

    regime: Regime
    problem: Problem
    terms: Terms
    steps: int
    sigma: float
    rule: Rule
    average: Average
    bound: float
    guarantee: Claim

    @property
    def per_row(self) -> float:
        """The bound for f/n."""
        return self.bound / self.regime.rows(self.problem.n)

    @property
    def calls(self) -> float:
        """Gradients of a row, in expectation: γnT."""
        return self.terms.batch.expected(self.problem.n) * self.steps

    @property
    def figure(self) -> float:
        """The bound as T → ∞ by S4's σ²/T = (wL)²/(2ρ), ρ = ε²/(4·ln(1/δ)): not a guarantee."""
        w, p = weight(self.terms.relation), self.problem
        return limit(self.regime, p, p.d * (w * p.lipschitz) ** 2 / (2 * self.terms.rho))

    def __str__(self) -> str:
        return (
            f"{self.regime}, {self.terms.relation}: T = {self.steps}, σ = {self.sigma:.3g}, {self.rule}, "
            f"average of weights ∝ t^{self.average.decay:g}\n"
            f"  at most {self.bound:.3g} for the sum, {self.per_row:.3g} per row; "
            f"{self.calls:.6g} gradients of a row\n"
            f"  S4's figure, not a guarantee: ρ = {self.terms.rho:.3g}, hence {self.figure:.3g} for the sum"
        )


def _fewest(regime: Regime, p: Problem, terms: Terms) -> tuple[int, float]:
    """T, and what the bound is promised to be: smooth in n, which the bound at a whole T is not."""
    gamma, V, added = terms.energies(p)

    def at(T: int) -> float:
        return bound(regime, p, T, V * T + added)

    enough = (1 + terms.slack) * min(at(1), limit(regime, p, V))
    most = terms.most or MOST_STEPS
    low, high = 0, 1
    while high < most and at(high) > enough:
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if at(middle) > enough else (low, middle)
    if gamma < 1 and terms.epsilon < math.inf:
        high = max(high, min(most, math.ceil((terms.mu / (weight(terms.relation) * gamma)) ** 2)))
    return high, max(enough, at(high))


def planned(p: Problem, regime: Regime, terms: Terms) -> Plan:
    """T, σ, η, the average and the bound they give.

    Guarantee: the batch's own, calibrated to (ε, δ): exact Gaussian, a loss distribution or a Rényi curve.

    >>> p = Problem(n=1000, d=10, lipschitz=1.0, strength=100.0)
    >>> plan = planned(p, Regime.STRONGLY_CONVEX, Terms(epsilon=1.0))
    >>> plan.steps, round(plan.bound, 2), round(plan.guarantee.epsilon(1e-6), 6)
    (56018, 3.93, 1.0)
    """
    regime = p.known_for(regime)
    gamma, _, added = terms.energies(p)
    T, _ = _fewest(regime, p, terms)
    batch, relation, multiplier = terms.batch, terms.relation, 0.0
    claim: Claim = Pure(math.inf, relation=relation, unit=Unit.ROW)
    if terms.epsilon < math.inf:
        multiplier = batch.sigma(terms.epsilon, terms.delta, T, p.n, relation)
        claim = batch.claim(multiplier, T, p.n, relation)
    sigma = multiplier * p.lipschitz
    v = p.d * (sigma / gamma) ** 2 + added
    average = LINEAR if regime is Regime.STRONGLY_CONVEX else UNIFORM
    return Plan(regime, p, terms, T, sigma, rule(regime, p, T, v), average, bound(regime, p, T, v), claim)


def rows_needed(error: float, p: Problem, regime: Regime, terms: Terms) -> int:
    """The fewest rows like these with which the plan's bound per row is at most `error`; to 1 % if sampled.

    >>> p = Problem(n=1, d=10, lipschitz=1.0, smoothness=0.25, distance=2.0)
    >>> rows_needed(0.01, p, Regime.CONVEX_SMOOTH, Terms(epsilon=1.0))
    2940
    """
    positive("error", error, of="rows_needed")
    regime, full = p.known_for(regime), terms.batch == FULL

    def reached(n: int) -> float:
        problem = p.with_rows(n)
        most = _fewest(regime, problem, terms)[1] if full else planned(problem, regime, terms).bound
        return most / regime.rows(n)

    fewest = 1 if full else rows_needed(error, p, regime, replace(terms, batch=FULL))
    low, high, width = fewest - 1, fewest, max(1, fewest // 100)
    while reached(high) > error:
        if high > MOST_ROWS:
            least = f"at least {reached(high):.3g} with so few steps"
            raise refuse("error", error, of="rows_needed", allowed=least)
        low, high, width = high, high + width, 2 * width
    while high - low > (1 if full else max(1, high // 100)):
        middle = (low + high) // 2
        low, high = (middle, high) if reached(middle) > error else (low, middle)
    return high
