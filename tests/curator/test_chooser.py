"""The chooser: the best error that the library has, by the numbers of a plan and of what is really released."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.curator.charging import Price
from tacit.curator.planning import candidates, choose
from tacit.mechanisms import Laplace, Workload, margin_errors, range_matrix
from tacit.mechanisms import choose as strategies
from tacit.noise.source import SeededSource
from tacit.sources.schema import Schema

KEYS = [f"k{i}" for i in range(8)]
FLAGS = [f"f{i}" for i in range(8)]
SCHEMA = Schema(
    {k: tacit.category(["a", "b"], missing="a") for k in KEYS}
    | {f: tacit.flag() for f in FLAGS}
    | {
        "three": tacit.category(["p", "q", "r"], missing="p"),
        "x": tacit.number(0, 64, spacing=1, missing=0),
        "y": tacit.integer(0, 639),
    }
)
ROWS = {r: tacit.rows(neighbours=r) for r in ("add-or-remove", "replace-one")}


def planned(statistic: Any, unit: Any = "add-or-remove", **paid: Any) -> Any:
    return choose(statistic.on(SCHEMA, ROWS.get(unit, unit)), tacit.curator.charging.price(**paid))


def test_eight_one_way_margins_err_as_the_library_knows() -> None:
    """7.98 a count by Laplace noise; 6 by range-norm noise; 3.67 where every row has all keys, 4.5 if replaced."""
    for columns, complete, known in ((FLAGS, False, 6.0), (KEYS, True, 11 / 3)):
        found = planned(tacit.margins(columns), epsilon=1)
        best = margin_errors(sizes=[2] * 8, order=1, epsilon=1, complete=complete)[0]
        assert found.mean_error == pytest.approx(known, rel=2e-3)
        assert found.mean_error <= best.absolute / 16 * 1.002
        assert "range-norm noise" in found.reason
        assert found.pure() == 1
    replaced = planned(tacit.margins(KEYS), "replace-one", epsilon=1)
    assert replaced.mean_error == pytest.approx(4.5, rel=2e-3)
    assert replaced.reason.startswith("cube noise on 8 counts")


@pytest.mark.parametrize("unit", ROWS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_margins_err_no_more_than_margin_errors_says(order: int, unit: str) -> None:
    for paid in ({"epsilon": 1}, {"epsilon": Fraction(1, 10), "delta": 1e-6}):
        found = planned(tacit.margins(KEYS[:6], order=order), unit, **paid)
        known = margin_errors(
            sizes=[2] * 6, order=order, epsilon=paid["epsilon"], delta=paid.get("delta"), neighbours=unit,
            complete=True,
        )[0]  # fmt: skip
        counts = 2**order * len(list(itertools.combinations(range(6), order)))
        assert found.mean_error <= known.absolute / counts * 1.01


@pytest.mark.parametrize("unit", ROWS)
@pytest.mark.parametrize("bins", [8, 32])
def test_ranges_err_like_the_best_strategy_of_the_library(bins: int, unit: str) -> None:
    found = planned(tacit.ranges("x", bins), unit, epsilon=1)
    workload = Workload(matrix=range_matrix(bins), neighbours=unit, absent=unit == "add-or-remove")
    best = strategies(workload, epsilon=1, error="absolute", ordered=True)[0]
    assert found.mean_error <= best.absolute / workload.queries * 1.04


def test_long_ranges_get_a_tree_and_few_of_them_noise_of_their_own() -> None:
    unit = "replace-one"
    long = planned(
        tacit.ranges("y", 640, at=[(a, b) for a in range(0, 640, 20) for b in range(a, 640, 40)]),
        unit,
        epsilon=1,
    )
    assert long.reason.startswith("Laplace noise on a tree of sums")
    few = planned(tacit.ranges("y", 640, at=[(0, 99), (0, 299), (100, 639)]), unit, epsilon=1)
    assert few.reason.startswith(
        "K-norm noise on 3 of 3 counts: at this price its error is 0.85 of that of cube"
    )
    assert few.mean_error < long.mean_error / 2
    with_delta = planned(tacit.margins(FLAGS, order=4), epsilon=Fraction(1, 10), delta=1e-6)
    assert with_delta.reason.startswith("Gaussian noise")


def test_two_cells_of_rows_that_are_replaced_are_one_number() -> None:
    found = planned(tacit.count(by="k0"), "replace-one", epsilon=1)
    assert found.mean_error == pytest.approx(1.0, rel=2e-3)
    assert found.candidates["Laplace noise"] == pytest.approx(1.92, abs=0.01)
    assert found.reason.startswith("cube noise on 1 count, the last of each table by subtraction:")
    direct = planned(tacit.count(by="k0"), epsilon=1)
    assert direct.reason == "Laplace noise: the price is pure"


def test_tables_that_have_something_in_common_are_fitted_to_it() -> None:
    """Eight margins of four keys agree on the number of rows: each table's mean is that of eight, so that the variance
    of a count is 3/4 + 1/4 (1/8); a hierarchy's by hand for levels of 1, 3 and 48; a known total leaves 2/3."""
    schema = Schema({f"c{i}": tacit.category(list("abcd"), missing="a") for i in range(8)})
    margins = tacit.margins([f"c{i}" for i in range(8)]).on(schema, ROWS["add-or-remove"])
    found = choose(margins, Price(epsilon=Fraction(1)))
    assert found.reason.startswith(
        "Laplace noise and least squares: at this price its error is 0.94 of that of Lap"
    )
    assert found.variances()["c0"] == pytest.approx(2 * 64 * (3 / 4 + 1 / 32), rel=1e-3)
    assert found.pure() == 1
    assert found.theorems[-1] == "fitted-tables"
    normal = choose(margins, tacit.curator.charging.price(rho=Fraction(1, 20)))
    assert normal.reason.startswith("Gaussian noise and least squares")
    assert normal.variances()["c0"] == pytest.approx(8 / 0.1 * (3 / 4 + 1 / 32), rel=1e-3)
    assert normal.concentrated() <= Fraction(1, 20)
    wide = planned(ASKED["wide hierarchy"], epsilon=1)
    assert wide.reason.startswith("Laplace noise and least squares")
    # Up: a region's sum of 16 leaves has 16, with its own 1 that is 16/17; of three regions 48/17, with its own 48/65.
    region, top = 16 / 17, 48 / 65
    region -= region**2 / (3 * region + 1)
    leaf = 1 - (1 / 16) * (1 - region / 16)
    for name, share in (("level 0", top), ("level 1", region), ("level 2", leaf)):
        assert wide.variances()[name] == pytest.approx(2 * 9 * share, rel=1e-3)
    three = planned(tacit.count(by="three"), "replace-one", epsilon=1)
    least = dict(
        candidates(tacit.count(by="three").on(SCHEMA, ROWS["replace-one"]), Price(epsilon=Fraction(1)))
    )
    assert least["Laplace noise and least squares"].variances()["count"] == pytest.approx(8 * 2 / 3, rel=1e-3)
    assert three.mean_error <= least["Laplace noise and least squares"].mean_error


def test_small_images_get_noise_of_their_own_shape() -> None:
    """As the library's own choice for the same queries says; three overlapping counts err less than apart."""
    nested = tacit.ranges("x", [*range(0, 64, 4), 65], at=[(0, 16), (0, 32), (0, 48)])
    for unit, error in (("add-or-remove", 35 / 24), ("replace-one", 1.6)):
        found = planned(nested, unit, epsilon=1)
        assert found.reason.startswith("K-norm noise on 3 of 3 counts: at this price its error is 0.")
        assert found.mean_error == pytest.approx(error, rel=2e-3)
        workload = Workload(
            matrix=np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]), neighbours=unit,
            absent=unit == "add-or-remove",
        )  # fmt: skip
        named = {c.name: c.absolute / 3 for c in strategies(workload, epsilon=1, error="absolute")}
        assert found.mean_error == pytest.approx(named["K-norm noise on the image of the L1 ball"], rel=2e-3)
        assert found.pure() == 1
        assert [e.pure() for e in found.events] == [1.0]
    cells = planned(tacit.count(by="three"), "replace-one", epsilon=1)
    assert cells.reason.startswith("K-norm noise on 2 of 3 counts")
    assert cells.mean_error == pytest.approx(4 / 3, rel=2e-3)
    assert planned(tacit.margins(KEYS[:2]), epsilon=1).reason.startswith("K-norm noise on 3 of 4 counts")


def test_one_number_of_many_steps_gets_a_staircase_where_it_wins() -> None:
    """Its law by the definition: no value is more likely by more than e^epsilon where the sum moves by 64 or less."""
    question = tacit.sum("x").on(SCHEMA, ROWS["add-or-remove"])
    found = choose(question, Price(epsilon=Fraction(3)))
    assert found.reason.startswith("staircase noise: at this price its error is 0.7")
    assert found.pure() == 3
    assert [e.pure() for e in found.events] == [3.0]
    # E |X| of Laplace noise is the sensitivity over epsilon; of the best noise e^(epsilon/2) / (e^epsilon - 1) of it.
    assert found.mean_error == pytest.approx(64 * np.exp(1.5) / np.expm1(3), rel=0.02)
    law = found.noise[0].mechanism.distribution
    mass = np.array([law.probability(k)[1] for k in range(-700, 701)])
    assert mass.sum() == pytest.approx(1, abs=1e-9)
    for move in (1, 5, 63, 64):
        assert float((mass[move:] / mass[:-move]).max()) <= np.exp(3) * (1 + 1e-9)
    assert float((mass[65:] / mass[:-65]).max()) > np.exp(3) * 1.5
    source = SeededSource(seed=5)
    (applied,), (name,) = found.noise, found.noise[0].parts
    seen = np.array([applied.release({name: np.array([7])}, source=source)[name][0] - 7 for _ in range(4000)])
    assert abs(np.abs(seen).mean() - found.mean_error) <= 6 * seen.std() / np.sqrt(len(seen))
    for low, high in ((-8, 8), (9, 40), (-200, -60)):
        p = float(mass[(np.arange(-700, 701) >= low) & (np.arange(-700, 701) <= high)].sum())
        assert abs(((seen >= low) & (seen <= high)).mean() - p) <= 6 * np.sqrt(p * (1 - p) / len(seen))
    assert choose(question, Price(epsilon=Fraction(1, 2))).reason == "Laplace noise: the price is pure"
    one = choose(tacit.count().on(SCHEMA, ROWS["add-or-remove"]), Price(epsilon=Fraction(3)))
    assert type(one.noise[0].mechanism) is Laplace


ASKED = {
    "margins": tacit.margins(KEYS[:3]),
    "pairs": tacit.margins(KEYS[:3], order=2),
    "hierarchy": tacit.hierarchy(["k0", "three"]),
    "wide hierarchy": tacit.hierarchy(["three", tacit.bins("x", 16)]),
    "ranges": tacit.ranges("x", 6),
    "two cells": tacit.count(by="k0"),
    "three cells": tacit.count(by="three"),
}


@pytest.mark.parametrize("unit", ROWS)
@pytest.mark.parametrize(
    "paid", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}, {"mu": 0.5}], ids=str
)
def test_every_candidate_keeps_to_the_price(paid: dict[str, Any], unit: str) -> None:
    """Also those that were not taken: what its events say is at most what was paid."""
    price = tacit.curator.charging.price(**paid)
    for statistic in ASKED.values():
        found = dict(candidates(statistic.on(SCHEMA, ROWS[unit]), price))
        assert len(found) >= 1
        for name, assignment in found.items():
            pure, rho = assignment.pure(), assignment.concentrated()
            if pure is not None:
                told = sum(float(e.pure()) for e in assignment.events)
                assert told == pytest.approx(float(pure), rel=1e-6)
                assert told >= float(pure) * (1 - 1e-9)
                assert "epsilon" not in paid or pure <= price.epsilon
            else:
                square = sum(float(e.mu) ** 2 for e in assignment.events)
                assert square == pytest.approx(2 * float(rho), rel=1e-6)
                if "mu" in paid:
                    assert square <= float(price.mu) ** 2 * (1 + 1e-9), name
                elif "delta" in paid:
                    assert tacit.GaussianDP(mu=square**0.5 * (1 - 1e-9)).delta(1.0) <= 1e-6, name
            assert rho is not None
            assert "rho" not in paid or rho <= price.rho * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("name", "unit"), [(n, u) for n in ASKED for u in ROWS if (n, u) != ("wide hierarchy", "replace-one")]
)
def test_intervals_of_released_tables_hold(name: str, unit: str) -> None:
    """Whole releases, many times: every cell inside its interval in 95 of 100, up to six standard deviations."""
    rng = np.random.default_rng(3)
    rows = 200
    columns: dict[str, Any] = {k: rng.choice(["a", "b"], rows) for k in KEYS}
    columns |= {f: rng.random(rows) < 0.5 for f in FLAGS}
    columns |= {"three": rng.choice(["p", "q", "r"], rows), "x": rng.integers(0, 64, rows).astype(float)}
    columns["y"] = rng.integers(0, 640, rows)
    paid, runs, inside = tacit.Pure(epsilon=1e6), 120, []
    with tacit.Curator(
        pa.table(columns), protect=ROWS[unit], schema=SCHEMA, budget=paid, source=SeededSource(seed=8)
    ) as held:  # fmt: skip
        truth = held.release(ASKED[name], epsilon=1000).table["value"].to_numpy()
        asks = [tacit.query(ASKED[name], epsilon=Fraction(1, 2), name=str(turn)) for turn in range(runs)]
        for answer in held.release(asks):
            told = answer.table
            inside.append((told["low"].to_numpy() <= truth) & (truth <= told["high"].to_numpy()))
    share = np.mean(inside, axis=0)
    assert share.min() >= 0.95 - 6 * np.sqrt(0.95 * 0.05 / runs)
    assert share.mean() <= 0.995


def test_ranges_count_what_they_name() -> None:
    held = tacit.Curator(
        pa.table({"y": [0, 5, 10, 99, 639, None]}), protect=tacit.rows(), schema={"y": tacit.integer(0, 639)},
        budget=tacit.Pure(epsilon=1e6), source=SeededSource(seed=8),
    )  # fmt: skip
    with held:
        answer = held.release(
            tacit.ranges("y", 64, at=[(0, 9), (0, 99), (10, 639), (630, 639)]), epsilon=2000
        ).table
        assert answer["value"].tolist() == [2, 4, 3, 1]
        assert answer["y"].tolist() == ["0 to 9", "0 to 99", "10 to 639", "630 to 639"]
        assert len(held.release(tacit.ranges("y", [0, 10, 100, 640]), epsilon=2000).table) == 6
        for bad in (
            {"at": [(1, 9)]},
            {"at": [(10, 9)]},
            {"at": [(0, 9), (0, 9)]},
            {"at": [(0,)]},
            {"at": "0-9"},
        ):
            with pytest.raises(tacit.TacitError):
                held.preview(tacit.ranges("y", 64, **bad), epsilon=1)
        with pytest.raises(tacit.TacitError):
            held.preview(tacit.ranges("y", 640), epsilon=1)


@pytest.mark.parametrize("unit", ROWS)
@pytest.mark.parametrize("name", ASKED)
def test_a_unit_of_several_rows_gets_noise_for_all_of_them(name: str, unit: str) -> None:
    """Four rows of a person, or four single rows: every candidate that both have errs four times as far, at least."""
    price = Price(epsilon=Fraction(1))
    one = dict(candidates(ASKED[name].on(SCHEMA, ROWS[unit]), price))
    for units in (tacit.group_of(ROWS[unit], size=4), tacit.people("id", at_most=4, neighbours=unit)):
        four = dict(candidates(ASKED[name].on(SCHEMA, units), price))
        both = set(one) & set(four)
        assert both
        for way in both:
            assert four[way].mean_error >= 3.9 * one[way].mean_error, way


def test_a_reason_names_the_next_best() -> None:
    found = planned(tacit.margins(FLAGS), epsilon=1)
    assert (
        found.reason
        == "range-norm noise on 16 counts: at this price its error is 0.75 of that of Laplace noise"
    )
    assert found.price == Price(epsilon=Fraction(1))
