"""Two claims that differ, two priors of which one fails, two laws in either order, ends on both sides of a claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.coupled import (
    FiniteMechanism,
    Level,
    Prior,
    Secret,
    Simulator,
    compose_disjoint_rows,
    compose_known,
    composition,
    graph_edge,
    iid_rows,
    laplace_size,
    row_pairs,
)
from tacit.coupled.noiseless import exact_sum, row_law, table
from tacit.coupled.noiseless.histograms import FixedSize, truncated_histogram
from tacit.coupled.noiseless.minorants import minorants_of
from tacit.coupled.noiseless.prisms import PairLaw, Prism
from tacit.coupled.verdict import Found, Verdict
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw, TacitError, UnknownName
from tacit.noise import SeededSource

HALF = Fraction(1, 2)
FAIR = {0: HALF, 1: HALF}


@pytest.mark.parametrize("turned", [False, True])
def test_the_composed_delta_holds_in_both_directions(turned: bool) -> None:
    """max(d_f e^eps_g + d_g, d_f + d_g e^eps_f): with (ln 3, 1/10) and (ln 2, 1/100) it is 21/100 in either order."""
    prior = iid_rows(FAIR, rows=2)
    same = FiniteMechanism.of(lambda x: "same", [prior])
    claims: Any = (("ln 3", Fraction(1, 10)), ("ln 2", Fraction(1, 100)))
    made = compose_known(
        same, same, priors=[prior], pairs=row_pairs(2), claims=claims[::-1] if turned else claims
    )
    assert made.delta == Fraction(21, 100)
    assert made.epsilon.low <= math.log(6) <= made.epsilon.high


@pytest.mark.parametrize(("low", "high", "shown"), [(0, "1/8", True), (0, "1/4", True), (0, "3/8", False)])
def test_a_claim_that_is_not_decided_is_not_shown(
    low: int, high: str, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best simulator's delta is between two ends: the claim of 1/4 is shown only where the upper one keeps it."""
    prior = iid_rows(FAIR, rows=2)
    same = FiniteMechanism.of(lambda x: "same", [prior])
    found = Found(low=Fraction(low), high=Fraction(high))
    monkeypatch.setattr(composition, "found_best", lambda *given: found)
    given: Any = {"priors": [prior], "claims": ((0, Fraction(1, 4)), (0, Fraction(1, 4)))}
    if shown:
        compose_known(same, same, pairs=row_pairs(2), **given)
        compose_disjoint_rows(same, same, rows=[0], **given)
        return
    with pytest.raises(NoLaw, match="is not"):
        compose_known(same, same, pairs=row_pairs(2), **given)
    with pytest.raises(NoLaw, match="is not"):
        compose_disjoint_rows(same, same, rows=[0], **given)


@pytest.mark.parametrize("turned", [False, True])
def test_every_prior_must_make_the_two_sets_of_rows_independent(turned: bool) -> None:
    apart = iid_rows(FAIR, rows=2)
    twins = Prior(name="twins", weights={((a, a), None): HALF for a in (0, 1)})
    priors = [twins, apart] if turned else [apart, twins]
    same = FiniteMechanism.of(lambda x: "same", priors)
    with pytest.raises(NoLaw, match=r"not independent .* 'twins'"):
        compose_disjoint_rows(same, same, priors=priors, rows=[0], claims=((0, 0), (0, 0)))
    compose_disjoint_rows(same, same, priors=[apart], rows=[0], claims=((0, 0), (0, 0)))


@pytest.mark.parametrize(
    ("low", "high", "holds"), [("1/10", "1/5", True), ("1/10", "3/10", None), ("1/4", "3/10", False)]
)
def test_a_verdict_whose_ends_are_on_both_sides_is_open(low: str, high: str, holds: bool | None) -> None:
    """The claim is 1/5: it holds where the upper end keeps it, fails where the lower end breaks it."""
    found = Found(low=Fraction(low), high=Fraction(high))
    verdict = Verdict(
        definition="noiseless", number="1", claim_epsilon="0", claim_delta=Fraction(1, 5), delta=found, epsilon=None,
        epsilon_pair=None, level=Level.of(0),
    )  # fmt: skip
    assert verdict.holds is holds
    assert verdict.to_dict()["holds"] is holds


@pytest.mark.parametrize("assume", ["known", "rectangle", "triangle"])
def test_of_several_laws_the_worst_counts_wherever_it_stands(assume: str) -> None:
    """A flat law hides a row better than a peaked one: with both the answer is not better than with the peaked one."""
    flat = table(dict.fromkeys(range(5), "1/5"))
    peaked = table({0: "1/20", 1: "1/20", 2: "4/5", 3: "1/20", 4: "1/20"})
    asked: Any = {"n": 60, "delta": 1e-2, "assume": assume}
    alone = [exact_sum(one, **asked).epsilon for one in (flat, peaked)]
    assert alone[1] > 1.2 * alone[0]
    for laws in ([flat, peaked], [peaked, flat]):
        assert exact_sum(laws, **asked).epsilon >= alone[1] * (1 - 1e-9)


def _poisson(mean: float, k: int) -> float:
    return math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))


@pytest.mark.parametrize(
    ("rows", "discards", "threshold", "cell_epsilon"),
    [(100, 50, 2, 0.5), (200, 20, 10, 0.1), (400, 40, 10, 0.3), (100, 10, 10, 0.1)],
)
def test_hidden_cells_are_judged_after_discarding(
    rows: int, discards: int, threshold: int, cell_epsilon: float
) -> None:
    """The supremum of the theorem on a fine grid of means, in plain floats: rows that remain decide what is hidden."""
    kept = FixedSize(rows=rows, discards=discards, size_epsilon=0.5)
    a, factor, worst = threshold - 1, math.exp(cell_epsilon), 0.0
    for i in range(1, 401):
        mean = threshold * factor * i / 400
        below = math.fsum(_poisson(mean, j) for j in range(a + 1))
        less = max(0.0, 1 - factor * (1 - _poisson(mean, a) / below))
        rate, left = mean / (rows - 1), rows - discards - 1
        hidden = math.fsum(math.comb(left, j) * rate**j * (1 - rate) ** (left - j) for j in range(a + 1))
        worst = max(worst, less * hidden)
    found = kept.delta(threshold, cell_epsilon).high - kept.size_delta.high
    assert worst * (1 - 1e-9) <= found <= worst * 1.01


BITS = iid_rows(FAIR, rows=2)
SAME = FiniteMechanism.of(lambda x: "same", [BITS])
BAD: dict[str, tuple[Callable[[], Any], type[TacitError], str]] = {
    "no pair": (
        lambda: compose_known(SAME, SAME, priors=[BITS], pairs=[], claims=((0, 0), (0, 0))), EmptyComposition, "pairs",
    ),
    "two pairs of one name": (
        lambda: compose_known(SAME, SAME, priors=[BITS], pairs=[*row_pairs(2), *row_pairs(2)], claims=((0, 0), (0, 0))),
        InvalidParameter, "tell them apart",
    ),
    "a composed delta of 1": (
        lambda: compose_known(SAME, SAME, priors=[BITS], pairs=row_pairs(2), claims=(("ln 3", HALF), ("ln 3", HALF))),
        NoLaw, "delta reaches 1",
    ),
    "data of several forms": (
        lambda: compose_disjoint_rows(
            mixed := FiniteMechanism.of(lambda x: 0, [BITS, iid_rows(FAIR, rows=3)]), mixed,
            priors=[BITS, iid_rows(FAIR, rows=3)], rows=[0], claims=((0, 0), (0, 0)),
        ),
        InvalidParameter, "one number of rows",
    ),
    "a mechanism that is no function": (lambda: FiniteMechanism.of(3, [BITS]), InvalidParameter, "a function"),  # type: ignore[arg-type]
    "a simulator that is no function": (lambda: Simulator(name="s", answer=3), InvalidParameter, "a function"),  # type: ignore[arg-type]
    "a secret that is no function": (lambda: Secret(name="s", function=3), InvalidParameter, "a function"),  # type: ignore[arg-type]
    "an edge from a node to itself": (lambda: graph_edge(2, 2), InvalidParameter, "another node"),
    "a ratio of 1": (lambda: laplace_size(9, ratio=1, shift=2), InvalidParameter, "strictly between"),
    "a ratio of 0": (lambda: laplace_size(9, ratio=0, shift=2), InvalidParameter, "strictly between"),
    "weights above 1": (
        lambda: PairLaw(weights={(0, 0): HALF, (1, 1): Fraction(2, 3)}, half_ranges=(1, 1)),
        InvalidParameter, "exactly 1",
    ),
    "weights below 1": (
        lambda: PairLaw(weights={(0, 0): HALF}, half_ranges=(1, 1)), InvalidParameter, "exactly 1",
    ),
    "weights outside": (
        lambda: PairLaw(weights={(0, 0): HALF, (0, 3): HALF}, half_ranges=(1, 1)), InvalidParameter, "declared range",
    ),
    "a prism of no mass": (
        lambda: Prism(mass=Fraction(0), points=(2,), half_ranges=(1,)), InvalidParameter, "mass above 0",
    ),
    "a prism of more than all": (
        lambda: Prism(mass=Fraction(3, 2), points=(2,), half_ranges=(1,)), InvalidParameter, "mass above 0",
    ),
    "a prism without a side": (
        lambda: Prism(mass=HALF, points=(2,), half_ranges=(1, 1)), InvalidParameter, "a side a coordinate",
    ),
    "odd discards": (lambda: FixedSize(rows=9, discards=3, size_epsilon=1), InvalidParameter, "be even"),
    "discards of all rows": (lambda: FixedSize(rows=9, discards=8, size_epsilon=1), InvalidParameter, "be even"),
    "too few rows to hide the size": (
        lambda: FixedSize.hiding(rows=6, size_epsilon=1e-3, delta=1e-9), NoLaw, "too few",
    ),
    "more counts than rows": (
        lambda: FixedSize(rows=9, discards=2, size_epsilon=1).kept(np.array([5, 5]), SeededSource(seed=1)),
        InvalidParameter, "be of 9 rows",
    ),
    "rows known in a sample of fixed size": (
        lambda: truncated_histogram(sampling="fixed", n=10_000, epsilon=1.0, delta=1e-6, known_rows=3),
        InvalidParameter, "left out for a sample of fixed size",
    ),
    "no epsilon for a fixed size": (
        lambda: truncated_histogram(sampling="fixed", n=10_000, epsilon=0.0, delta=1e-6), InvalidParameter, "above 0",
    ),
    "a size where there is none": (
        lambda: truncated_histogram(sampling="poisson", n=10_000, epsilon=1.0, delta=1e-6),
        InvalidParameter, "except for a fixed size",
    ),
    "a table of nothing": (lambda: table({}), InvalidParameter, "map values"),
    "a grid beside a value": (lambda: table({0: HALF, 1: HALF}, grid=2), InvalidParameter, "hold every value"),
    "a grid that is too fine": (
        lambda: table({0: HALF, 1: HALF}, grid=Fraction(1, 1 << 21)), InvalidParameter, "give at most",
    ),
    "a grid for a law that has one": (
        lambda: row_law(table({0: HALF, 1: HALF}), grid=1), InvalidParameter, "left out",
    ),
    "a grid twice": (lambda: row_law("uniform(0, 1, grid=0.1)", grid=0.1), InvalidParameter, "given once"),
    "an unknown shape": (
        lambda: minorants_of(table({0: HALF, 1: HALF}), "circle"), UnknownName, "shape",
    ),
    "no two neighbouring values": (
        lambda: minorants_of(table({0: HALF, 2: HALF}, grid=1), "rectangle"), InvalidParameter, "neighbouring values",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, kind, match = BAD[name]
    with pytest.raises(kind, match=match):
        act()
