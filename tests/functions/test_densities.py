"""Plans and released densities: noise as stated, the curve as defined, nothing kept of the rows, odd input."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter, TacitError, UnknownName
from tacit.functions import Box
from tacit.functions.bases import FourierBasis, HermiteBasis, HistogramBasis, WaveletBasis
from tacit.functions.densities import (
    DensityFamily,
    DensityPlan,
    GaussianKDE,
    ReflectedKDE,
    ReleasedDensity,
    SobolevKDE,
)
from tacit.guarantees import GaussianDP, Neighbours, Pure
from tacit.noise import SeededSource

UNIT = Box.unit()
KDE = GaussianKDE(domain=UNIT, bandwidth=0.05)
SILENT = 1e7


def rows_of(n: int, d: int = 1, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return np.clip(draw.normal(0.5, 0.15, (n, d)), 0.001, 0.999)


def kernel_estimate(at: np.ndarray, rows: np.ndarray, h: float) -> np.ndarray:
    """From the definition, row by row."""
    d = rows.shape[1]
    square = ((at[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-square / (2 * h * h)).mean(axis=1) / (2 * math.pi * h * h) ** (d / 2))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_curve_is_the_kernel_estimate(d: int) -> None:
    """With next to no noise: within what moving rows by a 64th of the bandwidth can do."""
    h, rows = 0.2, rows_of(200, d)
    at = np.random.default_rng(1).random((20, d))
    for family in (
        GaussianKDE(domain=Box.unit(d), bandwidth=h),
        SobolevKDE(domain=Box.unit(d), bandwidth=h, points=41 if d == 1 else 17 if d == 2 else 9),
    ):
        released = DensityPlan(family=family, size=200, mu=SILENT).release(rows, source=SeededSource(seed=1))
        points = at if family.kind == "gaussian kde" else np.round(at * 8) / 8
        wanted = kernel_estimate(points, rows, h)
        assert np.abs(released(points) - wanted).max() < 0.002 * (2 * math.pi * h * h) ** (-d / 2)


def test_a_sensible_curve_has_little_noise() -> None:
    """n = 10^4, h = .05, mu = .25: a noise std of .0045 at each point, stated, and seen over 300 releases."""
    plan = DensityPlan(family=KDE, size=10_000, mu=0.25)
    assert plan.noise_std == pytest.approx(0.0045, abs=5e-5)
    rows, at = rows_of(10_000), np.array([0.1, 0.5, 0.9])
    drawn = np.array([plan.release(rows, source=SeededSource(seed=s))(at) for s in range(300)])
    assert np.abs(drawn.std(axis=0) / plan.noise_std - 1).max() < 6 / math.sqrt(2 * 299)
    wanted = kernel_estimate(at[:, None], rows, 0.05)
    assert np.abs(drawn.mean(axis=0) - wanted).max() < 6.5 * plan.noise_std / math.sqrt(300) + 2e-4


def test_noise_is_well_below_the_printed_calibration() -> None:
    """At epsilon = 1, delta = 1e-5 against sqrt(2 ln(2/delta)) Delta / epsilon: at most .77."""
    plan = DensityPlan.for_target(epsilon=1, delta=1e-5, family=KDE, size=1000)
    printed = math.sqrt(2 * math.log(2 / 1e-5)) * math.sqrt(2) / (1000 * math.sqrt(2 * math.pi) * 0.05)
    assert plan.noise_std / printed < 0.77
    assert plan.bound.delta(1.0) <= 1e-5


def test_prices_are_those_of_the_mechanisms() -> None:
    gaussian = DensityPlan(family=KDE, size=100, mu=0.5)
    assert gaussian.bound == GaussianDP(mu=gaussian.bound.mu)
    assert gaussian.bound.mu == pytest.approx(0.5, rel=1e-12)
    assert gaussian.bound.mu >= 0.5
    family = FourierBasis(domain=UNIT, order=4)
    for mechanism in ("laplace", "gamma"):
        plan = DensityPlan(family=family, size=100, epsilon=0.5, mechanism=mechanism)
        assert isinstance(plan.bound, Pure)
        assert float(plan.bound.epsilon) == pytest.approx(0.5, rel=1e-9)
        assert plan.event is not None


def test_people_with_several_rows_pay_for_all_of_them() -> None:
    """Three rows that move together move the curve three times as far, and the noise follows."""
    one = DensityPlan(family=KDE, size=100, mu=0.5)
    assert replace(one, rows=3).noise_std == pytest.approx(3 * one.noise_std, rel=1e-9)
    laplace = DensityPlan(family=FourierBasis(domain=UNIT, order=2), size=9, epsilon=1, mechanism="laplace")
    assert replace(laplace, rows=2).noise_std == pytest.approx(2 * laplace.noise_std, rel=1e-6)
    assert replace(one, neighbours=Neighbours.ADD_OR_REMOVE).noise_std == pytest.approx(
        one.noise_std / math.sqrt(2)
    )


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "gamma"])
def test_the_noise_drawn_is_the_noise_stated(mechanism: str) -> None:
    """400 releases of one coefficient vector: variances of the coefficients, and of the curve, as stated."""
    given: dict[str, Any] = {"mu": 0.5} if mechanism == "gaussian" else {"epsilon": 0.5}
    family = FourierBasis(domain=UNIT, order=2)
    plan = DensityPlan(family=family, size=50, mechanism=mechanism, **given)
    rows, at = rows_of(50), np.linspace(0, 1, 5)
    kept = [plan.release(rows, source=SeededSource(seed=s)) for s in range(400)]
    found = np.array([r.coefficients for r in kept]).std(axis=0)
    wanted = plan.noise.stds(5) / 50
    # The fourth moment of the noises is at most six squared variances: 6.5 standard errors of a variance.
    assert np.abs((found / wanted) ** 2 - 1).max() < 6.5 * math.sqrt(5 / 400)
    curve = np.array([r(at) for r in kept]).std(axis=0)
    assert np.abs((curve / plan.noise_std_at(at)) ** 2 - 1).max() < 6.5 * math.sqrt(5 / 400)


def test_asking_twice_gives_the_same() -> None:
    released = DensityPlan(family=KDE, size=100, mu=1).release(rows_of(100))
    assert released.publishable
    assert (
        not DensityPlan(family=KDE, size=100, mu=1)
        .release(rows_of(100), source=SeededSource(seed=1))
        .publishable
    )
    assert (released([0.3, 0.4]) == released([0.3, 0.4])).all()
    many = np.linspace(0, 1, 1001)
    assert all(released(many[i])[0] == released(many)[i] for i in range(0, 1001, 37))


def walk(thing: Any, seen: set[int]) -> list[Any]:
    """Every object that can be reached from a thing by fields, members and closures."""
    if id(thing) in seen:
        return []
    seen.add(id(thing))
    found = [thing]
    if isinstance(thing, dict):
        parts = [*thing, *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        parts = list(thing)
    else:
        parts = [getattr(thing, n) for n in getattr(type(thing), "__slots__", ()) if hasattr(thing, n)]
        parts += list(getattr(thing, "__dict__", {}).values())
        parts += [getattr(thing, "base", None)] if isinstance(thing, np.ndarray) else []
    for part in parts:
        found += walk(part, seen)
    return found


@pytest.mark.parametrize(
    "family",
    [KDE, SobolevKDE(domain=UNIT, bandwidth=0.1), HistogramBasis(domain=UNIT, bins=8)],
    ids=lambda f: f.kind,
)
def test_what_is_released_holds_no_row(family: DensityFamily) -> None:
    rows = rows_of(64, seed=9)
    released = DensityPlan(family=family, size=64, mu=1).release(rows)
    numbers = [v for v in walk(released, set()) if isinstance(v, np.ndarray | float)]
    assert len(numbers) > 2
    for value in numbers:
        assert not np.isin(np.asarray(value, dtype=float).ravel(), rows.ravel()).any()
        assert np.asarray(value).size < 400
    flat = pickle.dumps(released)
    assert all(r.tobytes() not in flat for r in rows[:, 0])
    again = pickle.loads(flat)
    assert (again([0.1, 0.9]) == released([0.1, 0.9])).all()


@pytest.mark.parametrize(
    "family",
    [
        KDE,
        GaussianKDE(domain=Box(low=[0, -1], high=[2, 1]), bandwidth=[0.4, 0.3]),
        ReflectedKDE(domain=UNIT, bandwidth=0.1),
        SobolevKDE(domain=UNIT, bandwidth=0.1, length=0.2, points=30),
        FourierBasis(domain=UNIT, order=3),
        HermiteBasis(domain=UNIT, order=4),
        WaveletBasis(domain=UNIT, levels=3, wavelet="sym4"),
        HistogramBasis(domain=UNIT, bins=5),
    ],
    ids=lambda f: f.kind,
)
def test_records_are_plain_and_come_back(family: DensityFamily) -> None:
    plan = DensityPlan(
        family=family, size=30, mu=1, neighbours=Neighbours.ADD_OR_REMOVE, outside="absent", rows=2
    )
    released = plan.release(np.full((40, family.dimension), 0.5))
    record = json.loads(json.dumps(released.to_record()))
    again = ReleasedDensity.from_record(record)
    assert again.to_record() == released.to_record()
    assert again.family == family
    at = np.full((1, family.dimension), 0.25)
    assert (again(at) == released(at)).all()
    assert again.bound == released.bound
    for broken in (
        {},
        {**record, "version": 2},
        {**record, "values": record["values"][:-1]},
        {**record, "values": [1.5] * len(record["values"])},
        {**record, "spacing": "1/0"},
        {**record, "outside": "somewhere"},
        {**record, "noise": {"kind": "none"}},
        {**record, "noise": {"kind": "gaussian"}},
        {**record, "family": {"family": "unknown"}},
        {**record, "family": {**record["family"], "more": 1}},
        [],
    ):
        with pytest.raises(TacitError):
            ReleasedDensity.from_record(broken)


class Nasty:
    """A value that answers with an error of its own."""

    def __float__(self) -> float:
        raise RuntimeError("what I hold")


# --- odd input ------------------------------------------------------------------------------------------
def test_rows_that_are_odd_decide_nothing() -> None:
    """Whatever one row holds, a list of rows is taken, and gives what the definition says."""
    plan = DensityPlan(family=HistogramBasis(domain=UNIT, bins=4), size=5, mu=SILENT)
    absent = replace(plan, outside="absent")
    odd = [None, "text", float("nan"), [1, 2], 10**400, b"x", object(), Nasty()]
    edge = [-5.0, 1e308, float("inf"), -float("inf"), 2**70]
    for value in [*odd, *edge]:
        rows = [0.1, 0.3, 0.6, 0.9, value]
        for one, there in ((plan, value in edge), (absent, False)):
            shares = one.release(rows, source=SeededSource(seed=1)).on_grid(4).probabilities
            raw = one.release(rows, source=SeededSource(seed=1))([0.1, 0.3, 0.6, 0.9]) / 4
            assert raw.sum() == pytest.approx(1.0 if there else 0.8, abs=1e-4)
            assert shares.sum() == pytest.approx(1)
    arrays = (
        np.array([0.1, 0.3, 0.6, 0.9, np.nan]),
        np.ma.masked_invalid([0.1, 0.3, 0.6, 0.9, np.nan]),
        np.array([0.1, 0.3, 0.6, 0.9, None], dtype=object),
        np.ma.masked_array(np.array([0.1, 0.3, 0.6, 0.9, "x"], dtype=object), mask=[0, 0, 0, 0, 1]),
        np.ma.masked_array(np.array([0.1, 0.3, 0.6, 0.9, "x"], dtype=object)),
        np.array([[0.1], [0.3], [0.6], [0.9], [np.nan]], dtype=np.float32),
    )
    for array in arrays:
        raw = plan.release(array, source=SeededSource(seed=1))([0.1, 0.3, 0.6, 0.9])
        assert np.abs(raw - 0.8).max() < 1e-4
    two = DensityPlan(family=HistogramBasis(domain=Box.unit(2), bins=2), size=3, mu=SILENT)
    ragged = [[0.1, 0.1], [0.9], "12"]
    assert two.release(ragged, source=SeededSource(seed=1))([[0.2, 0.2]])[0] == pytest.approx(4 / 3, abs=1e-3)


def test_shapes_and_sizes_are_public_and_checked() -> None:
    plan = DensityPlan(family=KDE, size=5, mu=1)
    for rows in ([0.1] * 4, np.zeros((5, 2)), np.zeros(5, dtype=complex), "text", 3, np.zeros((5, 1, 1))):
        with pytest.raises(InvalidParameter) as told:
            plan.release(rows)
        assert "0.1" not in str(told.value)
    more = replace(plan, neighbours=Neighbours.ADD_OR_REMOVE)
    assert more.release([0.1] * 9).size == 5
    assert more.release([]).size == 5


def test_one_row_and_equal_rows() -> None:
    one = DensityPlan(family=KDE, size=1, mu=SILENT).release([0.5], source=SeededSource(seed=1))
    assert one([0.5])[0] == pytest.approx(1 / (math.sqrt(2 * math.pi) * 0.05), rel=1e-3)
    same = DensityPlan(family=KDE, size=50, mu=SILENT).release([0.5] * 50, source=SeededSource(seed=1))
    assert same([0.5])[0] == pytest.approx(one([0.5])[0], rel=1e-4)


@pytest.mark.parametrize(
    "bandwidth", [0, -1, float("nan"), float("inf"), 1e-9, 1e9, "a", [0.1, 0.1], None, True]
)
def test_impossible_bandwidths(bandwidth: Any) -> None:
    for family in (GaussianKDE, SobolevKDE):
        with pytest.raises(InvalidParameter):
            family(domain=UNIT, bandwidth=bandwidth)


def test_impossible_parameters() -> None:
    for call in (
        lambda: Box.unit(0),
        lambda: GaussianKDE(domain=Box.unit(20), bandwidth=0.5),
        lambda: GaussianKDE(domain=Box.unit(4), bandwidth=0.02),
        lambda: GaussianKDE(domain="unit", bandwidth=0.1),  # type: ignore[arg-type]
        lambda: SobolevKDE(domain=UNIT, bandwidth=0.1, points=1),
        lambda: SobolevKDE(domain=UNIT, bandwidth=0.1, length=0),
        lambda: FourierBasis(domain=UNIT, order=-1),
        lambda: FourierBasis(domain=UNIT, order=1.5),  # type: ignore[arg-type]
        lambda: FourierBasis(domain=Box.unit(6), order=100),
        lambda: HermiteBasis(domain=UNIT, order=0),
        lambda: WaveletBasis(domain=UNIT, levels=10),
        lambda: HistogramBasis(domain=UNIT, bins=0),
        lambda: DensityPlan(family=KDE, size=0, mu=1),
        lambda: DensityPlan(family=KDE, size=10),
        lambda: DensityPlan(family=KDE, size=10, mu=0),
        lambda: DensityPlan(family=KDE, size=10, mu=1, epsilon=1),
        lambda: DensityPlan(family=KDE, size=10, epsilon=1, mechanism="uniform"),
        lambda: DensityPlan(family=KDE, size=10, mu=1, outside="error"),
        lambda: DensityPlan(family=KDE, size=10, mu=1, rows=0),
        lambda: DensityPlan(family="kde", size=10, mu=1),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidParameter):
            call()
    for name in ("bior2.2", "mexh", "nothing"):
        with pytest.raises(UnknownName):
            WaveletBasis(domain=UNIT, levels=2, wavelet=name)


def test_questions_outside_of_the_domain_are_refused() -> None:
    released = DensityPlan(family=KDE, size=5, mu=1).release([0.5] * 5)
    for at in ([1.01], [-1e-9], [np.nan], [[0.1, 0.2]]):
        for ask in (released, released.noise_std_at, released.band):
            with pytest.raises(InvalidParameter):
                ask(at)


def test_reflection_keeps_the_height_at_the_edges() -> None:
    """Even rows: a plain estimate shows half of the density at an edge, the reflected one all of it."""
    rows = (np.arange(2000) + 0.5) / 2000
    plain, folded = (
        DensityPlan(family=f(domain=UNIT, bandwidth=0.05), size=2000, mu=SILENT).release(
            rows, source=SeededSource(seed=1)
        )([0, 0.5, 1])
        for f in (GaussianKDE, ReflectedKDE)
    )
    assert plain == pytest.approx([0.5, 1, 0.5], abs=0.01)
    assert folded == pytest.approx([1, 1, 1], abs=0.01)
