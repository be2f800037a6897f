"""The form of 0.1.0 reads no sentence of today: all that describes itself is reworded, and old digests stay.

Mechanisms, assignments, fits, laws of rows and exact answers describe themselves in certificates, and may do so in
better words. The digests that 0.1.0 stored covered those words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tacit
from golden.test_golden import HERE, unpacked
from tacit.coupled.noiseless import histograms, row_laws, sums
from tacit.coupled.noiseless import histograms as thresholds
from tacit.coupled.noiseless import sums as counts
from tacit.curator import accuracy, assignments, exact_answers, planning
from tacit.curator import planning as random_plans
from tacit.curator import selected as ranks
from tacit.curator.assignments import Assignment
from tacit.curator.charging import Price, price
from tacit.curator.functions.fits import FunctionFit
from tacit.curator.plan_files import read_plan
from tacit.curator.planning import Plan, make_plan
from tacit.curator.request import Given
from tacit.curator.request_0_1_0 import plan_text
from tacit.exact.canonical import sha256
from tacit.functions.densities.plan import DensityPlan
from tacit.functions.density_families import DensityFamily
from tacit.functions.fourier.plan import FourierPlan
from tacit.functions.models.features import FeatureMap
from tacit.functions.models.training import KernelModelPlan
from tacit.mechanisms import fourier
from tacit.mechanisms.base import Mechanism
from tacit.mechanisms.ranges import RangeTree

OLD = HERE / "0.1.0"
CASES = [p for p in sorted(OLD.glob("*.tar.xz")) if not p.name.startswith(("joint", "python"))]
DESCRIBING = (
    "noise_distribution",
    "stated",
    "method",
    "on",
    "describe",
    "words",
    "sentence",
    "declared",
    "why_not",
)


def other(value: Any) -> Any:
    """The same in other words; numbers stay."""
    if isinstance(value, str):
        return "Otherwise said: " + value if re.search("[A-Za-z]", value) else value
    if isinstance(value, dict):
        return {name: other(v) for name, v in value.items()}
    if isinstance(value, list):
        return [other(v) for v in value]
    return tuple(map(other, value)) if isinstance(value, tuple) else value


def below(kind: type) -> Iterator[type]:
    yield kind
    for one in kind.__subclasses__():
        yield from below(one)


def reworded(made: Callable[..., Any]) -> Callable[..., Any]:
    def said(*given: Any, **more: Any) -> Any:
        return other(made(*given, **more))

    return said


def reword(monkeypatch: pytest.MonkeyPatch) -> int:
    """Every sentence of whatever describes itself; how many there are."""
    bases = (
        Mechanism, RangeTree, Assignment, FunctionFit, Given, DensityFamily, FeatureMap, DensityPlan, FourierPlan,
        KernelModelPlan, row_laws.RowLaw, thresholds.BinomialSample, thresholds.PoissonSample,
    )  # fmt: skip
    found = 0
    for kind in {one for base in bases for one in below(base)}:
        for name in DESCRIBING:
            held = vars(kind).get(name)
            if isinstance(held, property) and held.fget is not None:
                monkeypatch.setattr(kind, name, property(reworded(held.fget)))
            elif callable(held):
                monkeypatch.setattr(kind, name, reworded(held))
            else:
                continue
            found += 1
    for place, name in ((sums, "_named"), (sums, "_assumptions"), (counts, "_named"), (fourier, "_reason")):
        monkeypatch.setattr(place, name, reworded(getattr(place, name)))
    for place, name in (
        (histograms, "SIMULATOR"), (sums, "ALONE"), (exact_answers, "ALONE"), (random_plans, "PLAIN"),
        (accuracy, "EXACT"),
    ):  # fmt: skip
        monkeypatch.setattr(place, name, other(getattr(place, name)))
    for place in (assignments, ranks):
        monkeypatch.setattr(place, "compared", reworded(assignments.compared))
    choose = planning.choose

    def chosen(question: Any, paid: Price, **more: Any) -> Assignment:
        from dataclasses import replace

        made = choose(question, paid, **more)
        return replace(made, reason=other(made.reason))

    monkeypatch.setattr(planning, "choose", chosen)
    return found


def schema() -> tacit.Schema:
    return tacit.Schema(
        {
            "a": tacit.category(["x", "y"], missing="x"),
            "b": tacit.category(["p", "q", "r"], missing="p"),
            "n": tacit.number(0, 100, missing=0),
            "i": tacit.integer(0, 20, missing=0),
            "town": tacit.category(),
        }
    )


ADDED, REPLACED = tacit.rows(), tacit.rows(neighbours="replace-one")
PURE, SHARED, LOUD = price(epsilon=1), price(epsilon=1, delta=1e-6), price(epsilon=30)
EXACT = price(epsilon=20, delta=1e-3)


def questions() -> Iterator[tuple[str, Callable[[], Plan]]]:
    """Plans of every mechanism that 0.1.0 knew."""

    def asked(asks: list[Any], unit: Any, paid: Price | None, **more: Any) -> Callable[[], Plan]:
        budget = more.pop("budget", tacit.Approximate(epsilon=1000.0, delta=0.1))
        return lambda: make_plan(
            [tacit.query(a) if not isinstance(a, tacit.Query) else a for a in asks],
            schema=schema(), unit=unit, budget=budget, total=paid, **more,
        )  # fmt: skip

    statistics = {
        "margins": tacit.margins(["a", "b"], order=1),
        "ranges": tacit.ranges("n", bins=[0, 20, 50, 100]),
        "long ranges": tacit.ranges("n", bins=64),
        "sum": tacit.sum("i"),
        "median": tacit.median("n"),
        "sparse": tacit.sparse_histogram(["a", "b", "i"]),
    }
    for unit_name, unit in (("added", ADDED), ("replaced", REPLACED)):
        for paid_name, paid in (("pure", PURE), ("shared", SHARED), ("loud", LOUD)):
            for name, statistic in statistics.items():
                yield f"{name}, {unit_name}, {paid_name}", asked([statistic], unit, paid)
        for name, statistic in {
            "keys": tacit.count(by="town"),
            "mean by keys": tacit.mean("n", by="town"),
        }.items():
            yield f"{name}, {unit_name}", asked([statistic], unit, SHARED)
        for budget in (tacit.Approximate(epsilon=1000.0, delta=0.1), tacit.Concentrated(rho=100.0)):
            for within in (5, 200):
                ask = tacit.query(tacit.margins(["a", "b"], order=1), within=within)
                yield f"within {within}, {unit_name}, {budget.kind}", asked([ask], unit, None, budget=budget)
    for rows, data in (
        ("many", {"random_data": 0.05, "rows": 8000}),
        ("few", {"random_data": 0.0001, "rows": 80}),
    ):
        several = [tacit.count(by="i"), tacit.median("n")]
        yield f"random data, {rows}", asked(several, REPLACED, SHARED, given=data)
    for assume in ("known", "rectangle", "rectangles", "triangle", "normal"):
        law = {"unknown_rows": 400, "rows": "normal(10, 4, clamp=(0, 20))", "assume": assume}
        yield f"exact mean, {assume}", asked([tacit.mean("i")], REPLACED, EXACT, given=law)
    for chance in ([0.2, 0.2], [0.1, 0.7]):
        law = {"unknown_rows": 900, "probability": chance}
        yield f"exact count, {chance}", asked([tacit.count(where="i > 3")], REPLACED, EXACT, given=law)
    for sampled in (
        {"sampling": "poisson"}, {"sampling": "binomial", "rate": 0.1, "known_rows": 2},
        {"sampling": "fixed", "n": 5000},
    ):  # fmt: skip
        unit = REPLACED if "n" in sampled else ADDED
        yield f"table, {sampled['sampling']}", asked([tacit.count(by="a")], unit, EXACT, given=sampled)


ALL = dict(questions())
KEPT = OLD / "digests.json"
"""The digests of these plans, as 0.1.0 itself gave them."""


def test_every_digest_is_kept() -> None:
    assert set(json.loads(KEPT.read_text())) == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_a_digest_of_0_1_0_rests_on_no_sentence_of_today(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = plan_text(ALL[name]())
    assert sha256(before) == json.loads(KEPT.read_text())[name]
    assert reword(monkeypatch) > 60
    after = plan_text(ALL[name]())
    assert after == before
    assert "Otherwise said" not in after


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name.partition(".")[0])
def test_plans_of_0_1_0_in_other_words(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions, files, versions: as they were kept."""
    unpacked(case, tmp_path)
    plans = sorted(tmp_path.glob("*.toml"))
    before = [plan_text(read_plan(p).plan()) for p in plans]
    reword(monkeypatch)
    assert [plan_text(read_plan(p).plan()) for p in plans] == before


def test_rewording_is_seen_where_it_is_meant_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate of today says the other words: otherwise nothing above would be shown."""
    reword(monkeypatch)
    made = ALL["ranges, replaced, pure"]()
    told = repr(made.releases[0].assignment.to_dict())
    assert "Otherwise said" in told
