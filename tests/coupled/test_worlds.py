"""Priors, pairs and guarantees are what they say; the ledger and the algebra keep the condition; speed."""

from __future__ import annotations

import itertools
import math
import random
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tacit
from support.ledgers import ask
from tacit.coupled import (
    CoupledWorlds,
    Distributional,
    FiniteMechanism,
    InferenceDistributional,
    SimulationDP,
    binomial_size,
    blurred_firm,
    fixed_size,
    graph_edge,
    graph_node,
    iid_rows,
    independent_given_auxiliary,
    known_rows,
    laplace_size,
    mixture,
    one_row,
    person_rows,
    point_priors,
    poisson_size,
    private_column,
    promised,
    sampled_rows,
    student_of_school,
    with_auxiliary,
)
from tacit.coupled.composition import depends_only_on
from tacit.errors import InvalidParameter, NoLaw
from tacit.guarantees import Guarantee, Pure
from tacit.ledger import Ledger

FAIR = {0: "1/2", 1: "1/2"}


# --- priors --------------------------------------------------------------------------------------------
def test_sizes_of_samples() -> None:
    assert fixed_size(3) == {3: 1}
    assert binomial_size(3, "1/4")[2] == Fraction(9, 64)
    poisson = poisson_size(2, most=3)
    assert sum(poisson.values()) == 1
    assert poisson[3] / poisson[2] == Fraction(2, 3)
    dropped = laplace_size(5, ratio="1/2", shift=1)
    assert sum(dropped.values()) == 1
    # By summing the noise far out: N = 5 - max(0, G + 1), at least 0.
    direct = dict.fromkeys(range(6), Fraction(0))
    for g in range(-200, 200):
        direct[5 - min(5, max(0, g + 1))] += Fraction(1, 3) * Fraction(1, 2) ** abs(g)
    assert all(abs(dropped[k] - direct[k]) < Fraction(1, 2**190) for k in range(6))


def test_a_binomial_sample_is_independent_and_a_fixed_one_is_not() -> None:
    coin = sampled_rows(["a", "b", "c"], size=binomial_size(3, "1/3"))
    assert coin.data[("a", None, "c")] == Fraction(2, 27)
    assert independent_given_auxiliary(coin, [0])
    two = sampled_rows(["a", "b", "c"], size=fixed_size(2))
    assert len(two) == 3
    assert not independent_given_auxiliary(two, [0])


def test_unknown_rows_are_counted() -> None:
    prior = iid_rows(FAIR, rows=4)
    classes = known_rows(prior, unknown=3)
    assert len(classes) == 4
    assert {p.unknown_rows() for p in classes} == {3}
    assert prior.unknown_rows() == 4
    assert known_rows(prior, unknown=4) == (prior,)


def test_rows_that_are_used() -> None:
    priors = point_priors([0, 1], rows=3)
    outer = FiniteMechanism.of(lambda x: x[0] + x[2], priors)
    assert depends_only_on(outer, frozenset({0, 2}))
    assert not depends_only_on(outer, frozenset({0, 1}))
    assert depends_only_on(FiniteMechanism.of(lambda x: "same", priors), frozenset())


# --- pairs ---------------------------------------------------------------------------------------------
def test_pairs_scrub_what_they_say() -> None:
    x = (("ann", 3), ("bob", 5), ("cem", 7))
    assert one_row(1).priv(x) == ("bob", 5)
    assert one_row(1).alt(x) == (("ann", 3), "gone", ("cem", 7))
    assert person_rows([0, 2]).priv(x) == (("ann", 3), ("cem", 7))
    assert person_rows([0, 2]).alt(x) == ("gone", ("bob", 5), "gone")
    assert private_column(0, 1).priv(x) == 3
    assert private_column(0, 1).alt(x) == (("ann", "gone"), ("bob", 5), ("cem", 7))
    assert student_of_school(0, [0, 1]).priv(x) == ("ann", 3)
    assert student_of_school(0, [0, 1]).alt(x) == ("gone", "gone", ("cem", 7))
    graph = (("x", "y", "z"), frozenset({(0, 1), (1, 2)}))
    assert graph_node(0).priv(graph) == ("x", frozenset({(0, 1)}))
    assert graph_node(0).alt(graph) == (("gone", "y", "z"), frozenset({(1, 2)}))
    assert graph_edge(2, 1).priv(graph) is True
    assert graph_edge(0, 2).priv(graph) is False
    assert graph_edge(1, 2).alt(graph) == (graph[0], frozenset({(0, 1)}))
    firm = blurred_firm(0, lambda v: {v: "1/2", v + 1: "1/2"})
    assert firm.alt((4, 9)) == {(4, 9): Fraction(1, 2), (5, 9): Fraction(1, 2)}


def test_an_edge_hides_in_the_number_of_edges_and_a_node_does_not() -> None:
    """Four possible edges, fair coins: the exact number of edges, for an edge and for a node with its edges."""
    edges = [(0, 1), (0, 2), (1, 2), (0, 3)]
    weights = {}
    for keep in itertools.product((0, 1), repeat=4):
        graph = (("", "", "", ""), frozenset(e for e, k in zip(edges, keep, strict=True) if k))
        weights[graph, None] = Fraction(1, 16)
    prior = tacit_prior(weights)
    number = FiniteMechanism.of(lambda g: len(g[1]), [prior])
    edge = CoupledWorlds(priors=(prior,), pairs=(graph_edge(0, 1),)).delta(number, epsilon="ln 3")
    node = CoupledWorlds(priors=(prior,), pairs=(graph_node(0),)).delta(number, epsilon="ln 3")
    # An edge is one of four fair bits: the floor (1/2)^3/4.
    assert edge.low <= Fraction(1, 32) <= edge.high
    assert node.low > Fraction(1, 10)


def tacit_prior(weights: Any) -> Any:
    from tacit.coupled import Prior

    return Prior(name="graphs", weights=weights)


def test_a_school_is_harder_to_hide_than_a_student() -> None:
    prior = iid_rows(FAIR, rows=4)
    count = FiniteMechanism.of(sum, [prior])
    alone = CoupledWorlds(priors=(prior,), pairs=(one_row(0),)).delta(count, epsilon="ln 3").low
    school = CoupledWorlds(priors=(prior,), pairs=(student_of_school(0, [0, 1]),)).delta(
        count, epsilon="ln 3"
    )
    # Rows are independent: only the student's own row matters, the rest of the school is simulated.
    assert school.low <= alone <= school.high + Fraction(1, 10**9)
    # Students who answer alike: without the school nothing is left to tell from.
    alike = mixture(
        [with_auxiliary(p, lambda x: None) for p in (iid_rows({b: 1}, rows=3, name=f"{b}") for b in (0, 1))],
        ["1/2", "1/2"],
    )
    told = FiniteMechanism.of(sum, [alike])
    assert CoupledWorlds(priors=(alike,), pairs=(one_row(0),)).delta(told, epsilon=0).high == 0
    whole = CoupledWorlds(priors=(alike,), pairs=(student_of_school(0, [0, 1, 2]),)).delta(told, epsilon=5)
    assert whole.low >= Fraction(1, 2)


# --- guarantees ----------------------------------------------------------------------------------------
def test_a_checked_claim_becomes_a_guarantee_with_its_condition() -> None:
    prior = iid_rows(FAIR, rows=5)
    count = FiniteMechanism.of(sum, [prior])
    definition = Distributional(priors=known_rows(prior, unknown=4))
    made = promised(definition, count, epsilon=1, family="fair answers")
    assert isinstance(made.condition, tacit.guarantees.Priors)
    assert made.condition.unknown_rows == 4
    assert isinstance(made.unit, tacit.guarantees.Coupled)
    assert made.unit.family == 5
    found = definition.delta(count, epsilon=1)
    assert Fraction(made.bound.parameters["delta"]) >= found.high
    dp = FiniteMechanism.of(lambda x: {x[0]: "3/4", 1 - x[0]: "1/4"}, point_priors([0, 1], rows=1))
    plain = promised(SimulationDP(values=(0, 1), rows=1), dp, epsilon="ln 3", family="all")
    assert isinstance(plain.condition, tacit.guarantees.Always)
    assert plain.bound.kind == "pure"
    assert plain.bound.parameters["epsilon"] == pytest.approx(math.log(3))
    less = promised(SimulationDP(values=(0, 1), rows=1), dp, epsilon="ln 2", family="all")
    assert less.bound.parameters["delta"] == pytest.approx(0.25)
    with pytest.raises(InvalidParameter, match="at least one row unknown"):
        promised(Distributional(priors=point_priors([0, 1], rows=1)), dp, epsilon=1, family="all")
    with pytest.raises(NoLaw):
        promised(InferenceDistributional(priors=(prior,)), count, epsilon=1, family="f")
    everything = FiniteMechanism.of(lambda x: x, [prior])
    with pytest.raises(NoLaw):
        promised(SimulationDP(values=(0, 1), rows=5), everything, epsilon=1, family="f")


def test_another_release_is_never_added_silently(tmp_path: Path) -> None:
    """A DP release about the same rows is auxiliary knowledge: neither the algebra nor the ledger adds it."""
    prior = iid_rows(FAIR, rows=5)
    made = promised(
        Distributional(priors=(prior,)), FiniteMechanism.of(sum, [prior]), epsilon=1, family="fair answers"
    )
    private = Guarantee(bound=Pure(epsilon=0.1), unit=made.unit)
    for parts in ((made, made), (made, private), (private, made)):
        with pytest.raises(NoLaw, match="all rows but one"):
            tacit.compose(*parts)
    for assumed in ("mutual-auxiliary-knowledge", "disjoint-independent-rows"):
        with pytest.raises(NoLaw):
            tacit.compose(made, private, assume=assumed)
    ledger = Ledger.create(str(tmp_path / "survey.ledger"), budget=made)
    for charge in (made, private):
        with pytest.raises(NoLaw, match="differentially private one included"):
            ledger.reserve(ask("count", charge=charge))
    assert ledger.entries() == ()


# --- speed ---------------------------------------------------------------------------------------------
def seven_valued(rows: int, seed: int) -> FiniteMechanism:
    """A random table of rationals: no two data sets are treated alike."""
    source = random.Random(seed)
    table = {}
    for x in itertools.product((0, 1), repeat=rows):
        weights = [source.randint(1, 100) for _ in range(7)]
        table[x] = {t: Fraction(w, sum(weights)) for t, w in enumerate(weights)}
    return FiniteMechanism(table=table)


def test_six_rows_take_under_a_second() -> None:
    import scipy.optimize  # noqa: F401  its own loading is not the checker's time

    mechanism = seven_valued(6, 1)
    best = math.inf
    for _ in range(3):
        start = time.process_time()
        found = SimulationDP(values=(0, 1), rows=6).delta(mechanism, epsilon=0.5)
        best = min(best, time.process_time() - start)
    assert found.high - found.low < Fraction(1, 10**8)
    assert found.low > Fraction(1, 10)
    assert best < 1


@pytest.mark.slow
def test_twelve_rows_take_under_a_minute() -> None:
    """12 programs of 2^11 inputs times 7 outputs = 14,336 unknowns each."""
    mechanism = seven_valued(12, 2)
    start = time.process_time()
    definition = SimulationDP(values=(0, 1), rows=12)
    found = definition.delta(mechanism, epsilon=0.5)
    assert time.process_time() - start < 60
    assert found.compared == 12 * 4096
    assert found.high - found.low < Fraction(1, 10**8)
    assert found.witnesses
    # The proof needs one block only: its cells by themselves give the same lower end.
    cells = [c for c in definition.cells(mechanism) if c.pair == found.witnesses[0].pair]
    names = {w.prior for w in found.witnesses}
    from tacit.coupled.best import best_delta
    from tacit.coupled.numbers import Level

    again = best_delta([c for c in cells if c.prior in names], Level.of(0.5))
    assert again.low >= found.low - Fraction(1, 10**8)
