"""Conditions that must not be missed: of a composition, of a promise, of knowledge that is added, of long numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tacit.cli import main
from tacit.coupled import (
    CoupledWorlds,
    Distributional,
    FiniteMechanism,
    Level,
    Noiseless,
    Prior,
    Simulator,
    binomial_size,
    compose_disjoint_rows,
    compose_known,
    iid_rows,
    independent_rows,
    laplace_size,
    one_row,
    participation_secret,
    person_rows,
    point_priors,
    poisson_size,
    private_column,
    promised,
    row_pairs,
    with_auxiliary,
)
from tacit.coupled.best import best_delta
from tacit.coupled.mechanisms import Cell
from tacit.errors import InvalidParameter, NoLaw

HALF = Fraction(1, 2)
FAIR = {0: HALF, 1: HALF}


def test_rows_that_only_change_together_are_seen() -> None:
    """Row 0 is a fair bit, rows 1 and 2 one and the same fair bit: no two data sets differ in row 1 alone.

    (X0 + X1 modulo 2, X1) tells row 0, and each of the two is (0, 0)-private by itself.
    """
    prior = Prior(name="twins", weights={((a, b, b), None): HALF * HALF for a in (0, 1) for b in (0, 1)})
    mixed = FiniteMechanism.of(lambda x: x[0] ^ x[1], [prior], name="the sum of rows 0 and 1")
    second = FiniteMechanism.of(lambda x: x[1], [prior], name="row 1")
    for one in (mixed, second):
        assert Distributional(priors=(prior,)).delta(one, epsilon=0).low in (0, HALF)
    assert Distributional(priors=(prior,)).delta(mixed.beside(second), epsilon=9).low == HALF
    with pytest.raises(NoLaw, match="outside of its part"):
        compose_disjoint_rows(mixed, second, priors=[prior], rows=[0], claims=((0, 0), (0, 0)))


def test_a_value_that_is_called_gone_is_a_value() -> None:
    prior = iid_rows({"gone": HALF, "here": HALF}, rows=2)
    first, second = (FiniteMechanism.of(lambda x, i=i: x[i], [prior], name=f"row {i}") for i in (0, 1))
    both = compose_disjoint_rows(
        first, second, priors=[prior], rows=[0], claims=(("ln 3", HALF), ("ln 3", HALF))
    )
    assert both.exact.low == both.exact.high == HALF


def test_the_parts_of_a_composition_are_rows_and_claims() -> None:
    prior = iid_rows(FAIR, rows=2)
    same = FiniteMechanism.of(lambda x: "same", [prior])
    with pytest.raises(InvalidParameter, match="rows"):
        compose_disjoint_rows(same, same, priors=[prior], rows=[7], claims=((0, 0), (0, 0)))
    for claims in (((0, 0),), (1, 2), ((0, 0, 0), (0, 0))):
        given: Any = claims
        with pytest.raises(InvalidParameter, match="claims"):
            compose_known(same, same, priors=[prior], pairs=row_pairs(2), claims=given)
        with pytest.raises(InvalidParameter, match="claims"):
            compose_disjoint_rows(same, same, priors=[prior], rows=[0], claims=given)


def test_only_mechanisms_and_simulators_are_composed() -> None:
    prior = iid_rows(FAIR, rows=2)
    same, claims = FiniteMechanism.of(lambda x: "same", [prior]), ((0, 0), (0, 0))
    for other in (None, 1.9, "same", [], {}):
        given: Any = other
        with pytest.raises(InvalidParameter, match="mechanism"):
            compose_known(given, same, priors=[prior], pairs=row_pairs(2), claims=claims)
        with pytest.raises(InvalidParameter, match="mechanism"):
            compose_disjoint_rows(same, given, priors=[prior], rows=[0], claims=claims)
        if other is not None:
            with pytest.raises(InvalidParameter, match="simulators"):
                compose_known(same, same, priors=[prior], pairs=row_pairs(2), claims=claims, simulators=given)


def test_a_simulator_may_say_what_the_other_row_leans_to() -> None:
    """Both values of the other row can occur with each value of this one, in other proportions: they are two inputs."""
    weights = {((a, b), None): Fraction(2 if a == b else 1, 6) for a in (0, 1) for b in (0, 1)}
    prior = Prior(name="leaning", weights=weights)
    tells = FiniteMechanism.of(lambda x: x[1], [prior])
    assert Distributional(priors=(prior,), pairs=(one_row(0),)).delta(tells, epsilon=0).high == 0


def test_new_knowledge_is_never_taken_for_old() -> None:
    """Nothing known and ("a", 1) told; "a" known and 1 told: two different things."""
    prior = Prior(name="mixed", weights={((0,), None): HALF, ((1,), "a"): HALF})
    told = with_auxiliary(prior, {(0,): {("a", 1): 1}, (1,): {1: 1}})
    assert len(told.auxiliaries) == 2
    assert len(with_auxiliary(prior, lambda x: "same").auxiliaries) == 2


def test_one_row_is_not_any_one_row() -> None:
    prior = iid_rows(FAIR, rows=3)
    tells = FiniteMechanism.of(lambda x: x[1], [prior])
    for kind in (CoupledWorlds, Distributional):
        first = promised(kind(priors=(prior,), pairs=(one_row(0),)), tells, epsilon=0, family="fair bits")
        assert "any one row" not in str(first)
        assert "row 0" in str(first)
    count = FiniteMechanism.of(sum, [prior])
    whole = promised(Distributional(priors=(prior,)), count, epsilon="ln 3", family="fair bits")
    assert "any one row" in str(whole)


@pytest.mark.parametrize(
    "law", [{0: Fraction(1, 4)}, {0: 0.5, 1: 0.25}, {0: Fraction(-1), 1: Fraction(2)}, {}]
)
def test_what_does_not_normalise_is_refused_behind_a_proxy(law: Any) -> None:
    with pytest.raises(InvalidParameter):
        FiniteMechanism(table={(0,): MappingProxyType(law)})
    with pytest.raises(InvalidParameter):
        Simulator(name="bad", answer=lambda pair, a: MappingProxyType(law))("row 0", ("gone",))


def test_blocks_whose_bounds_round_to_one_float_are_all_looked_at() -> None:
    """In each block two distributions, 2 s apart, must have one simulator: delta = s. One s is larger by 10^-30."""
    both, one = {"a": HALF, "b": HALF}, {"a": Fraction(1)}
    shares = [Fraction(1, 3), Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)]
    cells = [
        Cell(prior="p", pair=f"row {k}", value=v, auxiliary=None, probability=HALF, scrubbed=seen,
             real={"yes": HALF + sign * s, "no": HALF - sign * s})
        for k, s in enumerate(shares)
        for v, (sign, seen) in enumerate([(1, both), (-1, both), (0, one)])
    ]  # fmt: skip
    found = best_delta(cells, Level.of(0))
    assert found.high >= max(shares)
    assert found.low <= max(shares)


def test_a_simulator_does_not_see_what_is_known() -> None:
    """Two values are alike given z, and no simulator serves both z (theorem `simulator-to-pair`)."""
    prior = Prior(name="quarters", weights={((v,), v >= 2): Fraction(1, 4) for v in range(4)})
    tells = FiniteMechanism.of(lambda x: x[0] >= 2, [prior])
    assert Noiseless(priors=(prior,)).delta(tells, epsilon=0).high == 0
    assert Distributional(priors=(prior,)).delta(tells, epsilon=9).low == HALF


@pytest.mark.parametrize(
    "number", ["1e999999999", "1e-999999999", "1E+9999999", "0." + "3" * 9000, "9" * 5000]
)
def test_very_long_numbers_are_refused_at_once(number: str) -> None:
    with pytest.raises(InvalidParameter):
        iid_rows({0: number, 1: HALF}, rows=1)
    with pytest.raises(InvalidParameter):
        Level.of(number)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: iid_rows({0: 1}, rows=n),
        lambda n: point_priors([0], rows=n),
        row_pairs,
        lambda n: binomial_size(n, "1/2"),
        lambda n: poisson_size(3, most=n),
        lambda n: laplace_size(n, ratio="1/2", shift=1),
    ],
)
def test_numbers_of_rows_that_take_for_ever_are_refused(make: Callable[[int], Any]) -> None:
    for n in (10**9, 10**400):
        with pytest.raises(InvalidParameter):
            make(n)


def test_fractions_of_many_digits_are_never_written_out() -> None:
    with pytest.raises(InvalidParameter, match="add up"):
        iid_rows({i: Fraction(1, (1 << 2000) + 2 * i + 1) for i in range(20)}, rows=1)
    odd = Fraction((1 << 8000) + 1, (1 << 8001) + 7)
    prior = independent_rows([FAIR, {0: odd, 1: 1 - odd}])
    long = Fraction((1 << 8000) + 5, (1 << 8002) + 3)
    says = FiniteMechanism.of(lambda x: {"yes": long, "no": 1 - long} if x[1] else {x[0]: 1}, [prior])
    verdict = Distributional(priors=(prior,), pairs=(one_row(0),)).check(
        says, epsilon="ln 3", delta="1/100", simulator=Simulator.constant(["no", "yes"])
    )
    assert verdict.delta.exact
    assert verdict.holds is False
    assert verdict.to_dict()["delta_exact"] is None
    assert len(str(verdict.level.interval)) < 100


@pytest.mark.parametrize(
    "pair", [one_row(3), person_rows([0, 3]), private_column(0, 3), private_column(3, 0)]
)
def test_places_that_the_data_lack_are_refused(pair: Any) -> None:
    prior = iid_rows({(0, 1): HALF, (1, 1): HALF}, rows=2)
    same = FiniteMechanism.of(lambda x: "same", [prior])
    with pytest.raises(InvalidParameter, match="places"):
        CoupledWorlds(priors=(prior,), pairs=(pair,)).delta(same, epsilon=1)
    with pytest.raises(InvalidParameter, match="places"):
        participation_secret(3)(("here",))


GOOD: dict[str, Any] = {
    "epsilon": "ln 3",
    "delta": "1/10",
    "prior": [{"iid": {"0": "1/2", "1": "1/2"}, "n": 2}],
    "mechanism": {"function": "parity"},
}
UNEVEN = {"outcomes": [{"data": [0, 1], "probability": "1/2"}, {"data": [1], "probability": "1/2"}]}


@pytest.mark.parametrize(
    "change",
    [
        {"protect": {"kind": "people", "groups": [[0, 9]]}},
        {"protect": {"kind": "column", "column": 7}},
        {"secret": [{"row": 9, "first": 0, "second": 1}]},
        {"secret": [{"participation": 9}]},
        {"prior": [UNEVEN]},
        {"prior": [{"iid": {"0": 1}, "n": 999999999}]},
        {"prior": [{"points": ["0"], "n": 999999999}]},
        {"prior": [{"iid": {"0": "1e-999999999", "1": "1/2"}, "n": 2}]},
        {"epsilon": "1e999999999"},
        {"delta": "1e-999999999"},
    ],
    ids=str,
)
def test_a_file_of_places_and_numbers_out_of_reach_is_refused(
    change: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "question.json"
    path.write_text(json.dumps({**GOOD, **change}), encoding="utf-8")
    assert main(["coupled", "check", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("tacit:")
    assert "Traceback" not in said.err
