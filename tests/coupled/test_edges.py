"""Two claims that differ, two priors of which one fails, two laws in either order, ends on both sides of a claim."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from tacit.coupled import (
    FiniteMechanism,
    Level,
    Prior,
    compose_disjoint_rows,
    compose_known,
    composition,
    iid_rows,
    row_pairs,
)
from tacit.coupled.noiseless import exact_sum, table
from tacit.coupled.noiseless.discarding import FixedSize
from tacit.coupled.verdict import Found, Verdict
from tacit.errors import NoLaw

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
    assert verdict.record["holds"] is holds


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
