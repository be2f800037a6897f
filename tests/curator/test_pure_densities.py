"""Densities with a pure epsilon in the curator: neighbours by definition, what is drawn, charged and said of it."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import tacit
from tacit.curator.functions.fits import PureDensityFit
from tacit.errors import BudgetExceeded, FitFailed, InvalidParameter, TacitError, UnknownName
from tacit.noise import CaratheodoryBody, Difference
from tacit.noise.source import SeededSource
from tacit.sources.query import RowsWanted
from tacit.statistics import read_cells

from .chain import KEY, SCHEMA, UNITS, opened, pairs
from .functions import curator, small

ONE = tacit.density("v", size=700, guarantee="pure", order=4)
TWO = tacit.density(["n", "w"], size=700, guarantee="pure", order=2)
FILTERED = tacit.density("n", size=700, guarantee="pure", order=3, where="f")
DISC = tacit.density("v", size=700, guarantee="pure", order=1)


def planned(asked: Any, unit: Any, **paid: Any) -> Any:
    budget = tacit.Approximate(epsilon=1e3, delta=0.5)
    with tacit.Curator(pd.DataFrame(), protect=unit, schema=SCHEMA, budget=budget) as held:
        return held.preview(asked, **(paid or {"epsilon": Fraction(1, 2)})).releases[0]


def hull_gauge(moved: np.ndarray) -> float:
    """The least sum of |w| with sum w Psi(theta) = moved: the gauge of the hull of the moment curve and its mirror."""
    m = moved.size // 2
    angle = 2 * np.pi * np.outer(np.arange(1, m + 1), np.arange(512) / 512)
    atoms = np.empty((2 * m, 512))
    atoms[0::2], atoms[1::2] = np.cos(angle), np.sin(angle)
    found = linprog(np.ones(1024), A_eq=np.hstack([atoms, -atoms]), b_eq=moved, bounds=(0, None))
    assert found.status == 0
    return float(found.fun)


def loss(fit: PureDensityFit, moved: np.ndarray) -> float:
    """What the noise leaves between two tables, from the definition of its density."""
    scale = float(Fraction(fit.mechanism.noise_distribution["noise_scale"]))
    body = fit.plan.choice.name == "caratheodory" and fit.plan.family.order > 1
    return (hull_gauge(moved) if body else float(np.linalg.norm(moved))) / scale


@pytest.mark.parametrize("unit", ["rows, replace-one", "people, add-or-remove", "two people, replace-one"])
def test_no_unit_moves_a_pure_density_further_than_the_noise_hides(unit: str) -> None:
    """Tables that are neighbours by definition, people with several rows among them; epsilon is 1/2."""
    asks = {ONE: "caratheodory", TWO: "gamma", FILTERED: "caratheodory", DISC: "caratheodory"}
    ones = [planned(asked, UNITS[unit]) for asked in asks]
    read = [read_cells(table, [one.question for one in ones], key=KEY) for table in opened(unit)]
    nearest = []
    for number, (one, name) in enumerate(zip(ones, asks.values(), strict=True)):
        fit = one.assignment.fit
        assert fit.plan.choice.name == name
        true = [
            np.asarray(fit.integers(cells[number][0]), dtype=float) * float(fit.spacing) for cells in read
        ]
        losses = [loss(fit, true[i] - true[j]) for i, j in pairs(UNITS[unit])]
        # A grid of 512 angles makes the gauge larger by 1 / cos(4 pi / 512) at most.
        assert max(losses) <= 0.5 * (1 + 1e-3), (name, max(losses))
        nearest.append(max(losses))
    assert max(nearest) > 0.45, nearest


def test_the_drawn_noise_is_that_of_the_price_and_of_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """lambda = 2 (one contribution, rounding counted) / epsilon for replaced rows; body, size and count of draws."""
    drawn: list[Any] = []
    sample = Difference.sample

    def watching(self: Any, **given: Any) -> Any:
        drawn.append(self.distribution)
        out = sample(self, **given)
        assert out.numerical_delta == 0.0
        return out

    monkeypatch.setattr(Difference, "sample", watching)
    with curator(budget=tacit.Pure(epsilon=1)) as held:
        release = held.release(tacit.density("x", size=300, guarantee="pure", order=5), epsilon=0.2)
        (law,) = drawn
        said = release.certificate
        assert law.body == CaratheodoryBody(frequencies=5)
        (noise,) = said["mechanism"]["noise"]
        one = Fraction(said["sensitivity"]["contribution"])
        # Each of 10 features is off by half a grid step at most, of gauge 2 sqrt(2) m a step.
        spacing = Fraction(noise["spacing"])
        assert 1 < one < 1 + 4 * 5 * spacing
        assert law.noise_scale == Fraction(noise["noise_scale"]) == 2 * one / Fraction(1, 5)
        assert said["mechanism"]["numerical_delta"] == said["numerical_delta"] == 0.0
        assert said["guarantee"]["bound"] == {"kind": "pure", "epsilon": 0.2}
        assert said["plan"]["charge"]["bound"] == said["guarantee"]["bound"]
        assert {"caratheodory-noise", "k-norm-difference", "fourier-sensitivity"} <= set(said["theorems"])
        for theorem in said["theorems"]:
            tacit.guarantees.theorem(theorem)
        assert said["function"]["numbers"] == [float(v) for v in release.function.numbers]
        assert len(said["function"]["numbers"]) == 10
        assert held.release(tacit.density("x", size=300, guarantee="pure", order=5), epsilon=0.2).replayed
        assert len(drawn) == 1
        # Fifths add up to one, and not to a little more.
        for order in (2, 3, 4, 6):
            held.release(tacit.density("x", size=300, guarantee="pure", order=order), epsilon=0.2)
        assert held.spent == tacit.Pure(epsilon=1)
        with pytest.raises(BudgetExceeded):
            held.release(tacit.density("x", size=300, guarantee="pure", order=7), epsilon=0.001)


@pytest.mark.parametrize(
    ("paid", "budget", "epsilon"),
    [
        ({"epsilon": 0.5}, tacit.Approximate(epsilon=1, delta=1e-6), 0.5),
        ({"epsilon": 0.5, "delta": 1e-6}, tacit.Approximate(epsilon=1, delta=1e-6), 0.5),
        ({"rho": 0.1}, tacit.Concentrated(rho=1), None),
        ({"mu": 0.3}, tacit.GaussianDP(mu=1), None),
    ],
    ids=str,
)
def test_every_currency_buys_the_pure_epsilon_that_it_has_room_for(
    paid: Any, budget: Any, epsilon: float | None
) -> None:
    from scipy.special import ndtr

    with curator(budget=budget) as held:
        release = held.release(tacit.density("x", size=300, guarantee="pure", order=2), **paid)
        bound = release.guarantee.bound
        assert isinstance(bound, tacit.Pure)
        got = float(bound.epsilon)
        if epsilon is None:
            # zCDP: epsilon tanh(epsilon / 2) = rho; Gaussian DP: Phi(mu / 2) = e^epsilon / (1 + e^epsilon).
            cost = (
                got * math.tanh(got / 2) / paid["rho"]
                if "rho" in paid
                else math.log(float(ndtr(0.15) / ndtr(-0.15))) / got
            )
            assert cost == pytest.approx(1, rel=1e-9)
        else:
            assert got == epsilon
            assert held.spent.parameters.get("delta", 0) == 0


@pytest.mark.parametrize("mu", [0.001, 0.3, 0.7, 1.0, 6.0])
def test_a_price_of_mu_is_paid_from_a_budget_of_the_same_mu(mu: float) -> None:
    """The mu that is charged is read back from the epsilon, rounded up, and is not above the price."""
    with curator(budget=tacit.GaussianDP(mu=mu)) as held:
        release = held.release(tacit.density("x", size=300, guarantee="pure", order=2), mu=mu)
        charged = release.certificate["plan"]["charge"]["bound"]["mu"]
        assert mu * (1 - 1e-11) < charged <= mu


def test_columns_of_very_many_values_have_as_many_keys_as_doubles_can_tell_apart() -> None:
    """2^39 values and 300 waves: a coarser grid of keys; 2^50 values: a refusal that says what to do."""
    for values, order in ((2**39, 300), (2**42, 10)):
        with curator(pd.DataFrame({"v": []}), schema={"v": tacit.integer(0, values)}) as held:
            asked = tacit.density("v", size=300, guarantee="pure", order=order)
            (key,) = held.preview(asked, epsilon=1).releases[0].assignment.fit.keys
            assert 16 * order <= key.count
            assert key.count * key.levels < 2**52
    with curator(pd.DataFrame({"v": []}), schema={"v": tacit.integer(0, 2**50)}) as held:
        with pytest.raises(InvalidParameter, match=r"columns must have fewer values .* 'v'"):
            held.preview(tacit.density("v", size=300, guarantee="pure"), epsilon=1)
        with pytest.raises(
            InvalidParameter, match=r"bandwidth must lie between 2.-20 and 4 sides of the box"
        ):
            held.preview(tacit.density("v", size=300, guarantee="pure", bandwidth=1e-9), epsilon=1)


def _ball_moments(count: int) -> float:
    """E c_1^2 over the body of three frequencies (real and imaginary parts alike), by rejection."""
    rng = np.random.default_rng(3)
    c = rng.uniform(-1, 1, (count, 3)) + 1j * rng.uniform(-1, 1, (count, 3))
    t = np.empty((count, 4, 4), dtype=complex)
    for i in range(4):
        for j in range(4):
            d = j - i
            t[:, i, j] = 1.0 if d == 0 else c[:, d - 1] if d > 0 else c[:, -d - 1].conj()
    inside = np.linalg.eigvalsh(t)[:, 0] >= 0
    assert inside.sum() > 4_000
    return float((c[inside, 0].real ** 2).mean())


def test_released_numbers_have_the_stated_noise() -> None:
    """The variance of the first coefficient: A - B with A = r u, r ~ Gamma(7, lambda), u uniform in the body.

    E r^2 = 56 lambda^2. Within 7 standard errors of 300 releases and of the rejection sampling, about 8% each.
    """
    with curator(source=SeededSource(seed=3)) as held:
        one = held.preview(tacit.density("x", size=300, guarantee="pure", order=3), epsilon=1).releases[0]
        fit = one.assignment.fit
        (cells,) = read_cells(held._open(), [one.question], key=KEY)[0]
        true = np.asarray(fit.integers(cells), dtype=float)
        drawn = np.array(
            [
                fit.mechanism.release(true.astype(int), source=held._source).values.astype(float) - true
                for _ in range(300)
            ]
        )
        noisy = one.assignment.run(one.question, [cells], source=held._source).parts["numbers"]
        assert not cells.values
    assert noisy.shape == true.shape
    assert fit.plan.choice.name == "caratheodory"
    scale = float(Fraction(fit.mechanism.noise_distribution["noise_scale"]) / fit.spacing)
    squares = np.concatenate([drawn[:, 0] ** 2, drawn[:, 1] ** 2]) / scale**2
    expected = 2 * 56 * _ball_moments(160_000)
    error = 7 * (squares.std() / math.sqrt(squares.size) + 0.01 * expected)
    assert abs(squares.mean() - expected) < error < 0.7 * expected
    stds = fit.plan.noise.stds(7)[1:3] / float(fit.spacing) / scale
    assert np.allclose(stds**2, expected, rtol=0.1)


@pytest.mark.parametrize(
    "asked",
    [
        tacit.density("x", size=300, guarantee="pure", order=6),
        tacit.density("x", size=300, guarantee="pure", order=1),
        tacit.density(["x", "z"], size=300, guarantee="pure", order=2, points=4),
    ],
    ids=["caratheodory", "disc", "gamma"],
)
def test_bands_hold_the_curve_without_noise(asked: Any) -> None:
    """At one point, over 400 draws: 95% hold; fewer than 330 come up with probability below 1e-9, and not all do."""
    with curator() as held:
        one = held.preview(asked, epsilon=1).releases[0]
        fit = one.assignment.fit
        (cells,) = read_cells(held._open(), [one.question], key=KEY)[0]
        true = np.asarray(fit.integers(cells))
    at = np.full((1, len(one.question.details["inputs"].names)), 0.3)
    exact = fit.values(true.astype(float) * float(fit.spacing), at)[0, 0]
    source, spread, std = SeededSource(seed=8), fit.spread(0.95), fit.stds(at)[0]
    noisy = [fit.mechanism.release(true, source=source).values.astype(float) for _ in range(400)]
    off = np.array([fit.values(v * float(fit.spacing), at)[0, 0] for v in noisy]) - exact
    assert 330 <= int((np.abs(off) <= spread * std).sum()) < 400
    # The expected error before paying, and the mean of what came: 400 draws, 7 standard errors.
    assert abs(np.abs(off).mean() - fit.mean_spread * std) < 7 * np.abs(off).std() / 20
    assert fit.spread(0.999) > fit.spread(0.95) > fit.spread(0.5)
    assert one.expected.within == pytest.approx(spread * fit.widest)


def test_a_pure_density_is_that_of_its_rows_and_can_be_read_in_many_ways() -> None:
    """With almost no noise: the series from its formula, on the rows themselves; integers count alike."""
    data = small().assign(i=lambda d: np.rint(d.z).astype(int))
    schema = {"x": tacit.number(-1, 1), "i": tacit.integer(0, 10)}
    with curator(data, budget=tacit.Pure(epsilon=1e9), schema=schema) as held:
        for name, low, side in (("x", -1.0, 2.0), ("i", 0.0, 10.0)):
            asked = tacit.density(name, size=300, guarantee="pure", bandwidth=0.06 * side, order=6)
            release = held.release(asked, epsilon=1e7)
            assert not any(isinstance(r, RowsWanted) for r in release.planned.question.requests)
            table = release.table
            on, rows = (1 / 16 + (np.asarray(v) - low) / side * 7 / 8 for v in (table[name], data[name]))
            k = np.arange(1, 7)
            weights = 2 * np.exp(-2 * (math.pi * k * 0.06 * 7 / 8) ** 2)
            waves = np.cos(2 * math.pi * k * (on[:, None, None] - rows[None, :, None])) @ weights
            exact = np.maximum((1 + waves.mean(axis=1)) * (7 / 8) / side, 0)
            assert np.abs(table.value - exact).max() < 2e-3 * exact.max(), name
        read = release.function.density()
        assert read.on_grid(64).probabilities.sum() == pytest.approx(1)
        assert read.sample(10).shape == (10, 1)
        assert read.bound == tacit.Pure(epsilon=1e7)
        assert np.allclose(np.maximum(read(table.i), 0), table.value, atol=1e-9)
        values, band = release.function({"i": [3, 5]}), release.function.band({"i": [3, 5]}, confidence=0.9)
        assert (band[0] <= values).all()
        assert (values <= band[1]).all()


def test_rows_beyond_the_limit_and_outside_the_box() -> None:
    """One person with 500 rows, some of them far outside, moves the sums by no more than two rows may, twice."""
    data = small()
    crowd = pd.concat([data, pd.DataFrame([{**data.iloc[0].to_dict(), "id": 7, "x": 1e300}] * 500)])
    asked = tacit.density("x", size=300, guarantee="pure", order=3)
    found = []
    for one in (data, crowd):
        with curator(one, protect=tacit.people("id", at_most=2)) as held:
            (release,) = held.preview(asked, epsilon=1).releases
            (cells,) = read_cells(held._open(), [release.question], key=KEY)[0]
            fit = release.assignment.fit
            found.append(np.asarray(fit.integers(cells), dtype=float) * float(fit.spacing))
    assert 0 < loss(fit, found[0] - found[1]) <= 2 * (1 + 1e-3)


def test_no_rows_one_row_and_rows_without_a_value() -> None:
    for data in (small().iloc[:0], small().iloc[:1], small().assign(x=np.nan)):
        with curator(data) as held:
            release = held.release(tacit.density("x", size=1, guarantee="pure"), epsilon=1)
            assert np.isfinite(release.table.value).all()


def test_a_failed_fit_says_one_sentence_after_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.curator.functions import fits as fourier

    def failing(*_: object, **__: object) -> None:
        raise ValueError("0.123456789")

    monkeypatch.setattr(fourier, "grid_sums", failing)
    with curator() as held:
        with pytest.raises(FitFailed) as caught:
            held.release(tacit.density("x", size=300, guarantee="pure"), epsilon=1)
        assert held.spent.parameters["epsilon"] == 1
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (lambda: tacit.density("x", size=300, guarantee="pur"), UnknownName),
        (lambda: tacit.density("x", size=300, guarantee=None), UnknownName),
        (lambda: tacit.density("x", size=300, order=3), InvalidParameter),
        (lambda: tacit.density("x", size=300, guarantee="pure", order=0), InvalidParameter),
        (lambda: tacit.density("x", size=300, guarantee="pure", order=10**4), InvalidParameter),
        (lambda: tacit.density("x", size=0, guarantee="pure"), InvalidParameter),
        (lambda: tacit.density("x", size=300, guarantee="pure", bandwidth=0), InvalidParameter),
        (lambda: tacit.density("x", size=300, guarantee="pure", bandwidth=1e-9), InvalidParameter),
        (lambda: tacit.density("k", size=300, guarantee="pure"), TacitError),
        (lambda: tacit.density("u", size=300, guarantee="pure"), TacitError),
        (lambda: tacit.density(["x", "z", "f", "d"], size=300, guarantee="pure"), InvalidParameter),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_costs_nothing(asked: Any, problem: type[TacitError]) -> None:
    with curator() as held:
        with pytest.raises(problem):
            held.release(asked(), epsilon=1)
        with pytest.raises(InvalidParameter, match="room for a pure epsilon"):
            held.release(tacit.density("x", size=300, guarantee="pure"), within=0.1)
        assert held.spent.parameters["epsilon"] == 0


PLAN = """
[data]
path = "survey.parquet"
[protect]
unit = "people"
column = "id"
at_most = 2
[schema.x]
kind = "number"
low = -1
high = 1
[schema.c]
kind = "category"
keys = ["a", "b", "c"]
[budget]
epsilon = 1.0
[[release]]
name = "curve"
kind = "density"
columns = "x"
size = 300
guarantee = "pure"
order = 4
[[release]]
kind = "count"
by = "c"
"""


def test_a_plan_file_with_a_pure_budget_is_released_reported_and_verified(tmp_path: Path) -> None:
    from tacit.cli import main

    small()[["id", "x", "c"]].to_parquet(tmp_path / "survey.parquet")
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    for arguments in (
        ["plan", str(plan)],
        ["release", str(plan), "--out", str(tmp_path / "out")],
        ["release", str(plan), "--out", str(tmp_path / "again")],
        ["verify", str(tmp_path / "out")],
    ):
        assert main(arguments) == 0
    tables = [pd.read_csv(next((tmp_path / o).glob("values/curve.csv"))) for o in ("out", "again")]
    assert tables[0].equals(tables[1])
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The density of x" in page
    assert "Caratheodory" in page
