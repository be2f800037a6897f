"""Every refusal of the ledger has an input that reaches it, and sums are compared one step beside their limits."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from support.ledgers import ask, promise
from tacit import errors
from tacit.exact.canonical import canonical, sha256
from tacit.guarantees import (
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Guarantee,
    Pointwise,
    Priors,
    Pure,
    RandomData,
    Renyi,
    people,
    rows,
)
from tacit.ledger import Charge, Ledger, Limit, on_random_data, recount
from tacit.ledger.budget import addable, in_currency, parts_of, parts_words, reading, share, smaller, zero
from tacit.ledger.entries import Entry, _readable, protected_files, read_entry, reserve_body
from tacit.ledger.ledger import alone, standing_alone
from tacit.ledger.on_random_data import standing_on_random_data

BOTH = Approximate(epsilon=1.0, delta=1e-6)
CURVE = Renyi(orders=(2.0, 3.0), epsilons=(1.0, 2.0))


def given(bound: Bound, condition: Any = None, unit: Any = None) -> Guarantee:
    more = {} if condition is None else {"condition": condition}
    return Guarantee(bound=bound, unit=unit or rows(), **more)


def charged(*bounds: Any, plan: str = "p") -> list[Charge]:
    return [
        Charge(
            sequence=n, time="", analyst="ann", key=str(n), plan_digest=plan, event={}, guarantee=promise(b), exact={}
        )
        for n, b in enumerate(bounds, 1)
    ]  # fmt: skip


RANDOM = RandomData(gamma=0.1)
MISFITS: dict[str, tuple[Guarantee, Guarantee, type[Exception], str]] = {
    "a delta from a pure budget": (given(BOTH), given(Pure(epsilon=1)), errors.InvalidParameter, "budget's kind, pure"),
    "an epsilon from a budget in rho": (
        given(Pure(epsilon=1)), given(Concentrated(rho=1)), errors.InvalidParameter, "concentrated",
    ),
    "a rho from an (epsilon, delta)": (
        given(Concentrated(rho=0.1)), given(BOTH), errors.InvalidParameter, "approximate",
    ),
    "other orders": (
        given(Renyi(orders=(2.0, 4.0), epsilons=(0.1, 0.1))), given(CURVE),
        errors.InvalidParameter, "exactly the orders",
    ),
    "fewer orders": (given(Renyi(orders=(2.0,), epsilons=(0.1,))), given(CURVE), errors.InvalidParameter, "exactly"),
    "another unit": (
        given(Pure(epsilon=1)), given(Pure(epsilon=1), unit=people("who", at_most=2)), errors.UnitMismatch, "who",
    ),
    "fewer rows of a person": (
        given(Pure(epsilon=1), unit=people("who", at_most=1)), given(Pure(epsilon=1), unit=people("who", at_most=2)),
        errors.UnitMismatch, "who",
    ),
    "a condition from a budget that holds always": (
        given(BOTH, RANDOM), given(BOTH), errors.InvalidParameter, "hold always",
    ),
    "a larger gamma": (
        given(BOTH, RandomData(gamma=math.nextafter(math.nextafter(0.1, 1), 1))), given(BOTH, RANDOM),
        errors.InvalidParameter, "hold always",
    ),
    "another family": (
        given(BOTH, Priors(family="a", unknown_rows=2)), given(BOTH, Priors(family="b", unknown_rows=2)),
        errors.InvalidParameter, "hold always",
    ),
    "fewer unknown rows": (
        given(BOTH, Priors(family="a", unknown_rows=3)), given(BOTH, Priors(family="a", unknown_rows=2)),
        errors.InvalidParameter, "hold always",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISFITS)
def test_a_charge_is_of_the_budgets_kind_unit_and_condition(name: str) -> None:
    charge, budget, kind, word = MISFITS[name]
    with pytest.raises(kind, match=word):
        in_currency(charge, budget)
    in_currency(budget, budget)


def test_what_fits_a_budget() -> None:
    in_currency(given(Pure(epsilon=1)), given(BOTH))
    in_currency(given(BOTH), given(BOTH, RANDOM))
    in_currency(given(BOTH, RandomData(gamma=math.nextafter(0.1, 1))), given(BOTH, RANDOM))
    in_currency(given(BOTH, RandomData(gamma=0.05)), given(BOTH, RANDOM))


def test_a_share_is_a_bound_of_the_budgets_own_kind() -> None:
    assert share(BOTH, given(BOTH)) == BOTH
    for bad in (Pure(epsilon=0.5), 0.5, given(BOTH)):
        with pytest.raises(errors.InvalidParameter, match="share"):
            share(bad, given(BOTH))  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidParameter, match="orders"):
        share(Renyi(orders=(2.0, 5.0), epsilons=(1.0, 2.0)), given(CURVE))


def test_shares_of_a_plan_are_those_of_the_ledger(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", budget=promise(1.0))
    ledger.share("ann", Pure(epsilon=0.5))
    ledger.check_shares({})
    ledger.check_shares({"ann": Pure(epsilon=0.5)})
    for bad in (
        {"ann": Pure(epsilon=0.25)},
        {"bob": Pure(epsilon=0.5)},
        {"ann": Pure(epsilon=0.5), "bob": Pure(epsilon=1)},
    ):
        with pytest.raises(errors.InvalidParameter, match="be those of the ledger"):
            ledger.check_shares(bad)


def test_an_exact_answer_is_alone_in_its_ledger(tmp_path: Path) -> None:
    limit = Limit(bound=BOTH)
    alone(charged(BOTH), limit)
    with pytest.raises(errors.NoLaw, match="second release"):
        alone(charged(Approximate(epsilon=0.1, delta=0.0), Approximate(epsilon=0.1, delta=0.0)), limit)
    with pytest.raises(errors.BudgetExceeded):
        alone(charged(Approximate(epsilon=1.1, delta=0.0)), limit)
    budget = given(BOTH, Priors(family="a", unknown_rows=2))
    ledger = Ledger.create(tmp_path / "a.ledger", budget=budget)
    spent, left = standing_alone(ledger)
    assert (spent.bound, left.bound) == (Approximate(epsilon=0.0, delta=0.0), BOTH)
    ledger.run(ask("one", replace(budget, bound=Approximate(epsilon=0.25, delta=1e-7))), lambda: 1, alone)
    spent, left = standing_alone(ledger)
    assert spent.bound == Approximate(epsilon=0.25, delta=1e-7)
    assert left.bound == Approximate(epsilon=0.0, delta=0.0)
    assert left.condition == budget.condition
    with pytest.raises(errors.NoLaw, match="second release"):
        ledger.run(ask("two", replace(budget, bound=Approximate(epsilon=0.25, delta=1e-7))), lambda: 2, alone)


def test_budgets_without_a_running_total_are_refused() -> None:
    addable(given(BOTH))
    for budget, word in (
        (given(BOTH, Priors(family="a", unknown_rows=2)), "auxiliary"), (given(BOTH, RANDOM), "after earlier results"),
        (given(Pointwise(epsilon=1.0, delta=1e-6)), "no filter"),
    ):  # fmt: skip
        with pytest.raises(errors.NoLaw, match=word):
            addable(budget)
    assert zero(given(BOTH, RANDOM)) == {}
    assert zero(given(BOTH)) == {"epsilon": 0, "delta": 0}


def test_the_smaller_of_two_bounds_is_so_in_each_number() -> None:
    one, other = Approximate(epsilon=1.0, delta=1e-7), Approximate(epsilon=0.5, delta=1e-6)
    assert smaller(one, other) == smaller(other, one) == Approximate(epsilon=0.5, delta=1e-7)
    curves = Renyi(orders=(2.0, 3.0), epsilons=(0.5, 4.0))
    both = Renyi(orders=(2.0, 3.0), epsilons=(0.5, 2.0))
    assert smaller(CURVE, curves) == smaller(curves, CURVE) == both


def test_less_than_a_billionth_of_a_limit_is_told_as_nothing_and_a_billionth_is_told() -> None:
    limit = Limit(bound=Pure(epsilon=1.0))
    billionth = Fraction(1, 10**9)
    for left, told in ((billionth, True), (billionth * Fraction(999, 1000), False), (Fraction(0), False)):
        _, rest = reading({"epsilon": 1 - left}, limit)
        assert (rest.epsilon > 0) is told  # type: ignore[attr-defined]
    spent, rest = reading({"epsilon": Fraction(1, 3)}, limit)
    assert Fraction(spent.epsilon) >= Fraction(1, 3)  # type: ignore[attr-defined]
    assert Fraction(rest.epsilon) <= Fraction(2, 3)  # type: ignore[attr-defined]


def test_a_price_as_parts_of_a_limit_is_rounded_up() -> None:
    found = parts_of(
        Approximate(epsilon=0.1, delta=5e-7), {}, Limit(bound=Approximate(epsilon=0.3, delta=1e-6))
    )
    assert Fraction(found["epsilon"]) >= Fraction(0.1) / Fraction(0.3)
    assert found["epsilon"] == pytest.approx(1 / 3)
    assert found["delta"] == pytest.approx(0.5)
    halves = parts_of(Renyi(orders=(2.0, 3.0), epsilons=(0.25, 1.5)), {}, Limit(bound=CURVE))
    assert halves == {"divergence": 0.75}
    assert parts_of(GaussianDP(mu=0.5), {}, Limit(bound=GaussianDP(mu=1.0))) == {"mu squared": 0.25}
    said = {0.0: "nothing", 0.25: "25% of x", 1e-6: "less than 0.001% of x", 0.9999: "99.9% of x", 1.0: "100% of x",
            1.001: "more than all of x", 1.5: "1.5 times all of x", math.inf: "all of x"}  # fmt: skip
    for part, words in said.items():
        assert parts_words({"x": part}) == words


def test_a_recount_is_of_the_budgets_kind_and_within_it() -> None:
    def total(bound: Callable[[int], Bound]) -> Any:
        return recount(lambda event: event, lambda events: bound(len(events)))

    limit, two = Limit(bound=Pure(epsilon=1.0)), charged(0.1, 0.1)
    total(lambda n: Pure(epsilon=n / 2))(two, limit)
    with pytest.raises(errors.BudgetExceeded):
        total(lambda n: Pure(epsilon=math.nextafter(n / 2, 9)))(two, limit)
    with pytest.raises(errors.InvalidParameter, match="budget's kind"):
        total(lambda n: Concentrated(rho=0.1))(two, limit)


def test_gammas_add_up_to_exactly_the_budgets(tmp_path: Path) -> None:
    """Three tenths of a gamma of 0.3 fit, and no fourth of any size does; an analyst sees the smaller of two limits."""
    budget = given(Pure(epsilon=1.0), RandomData(gamma=0.3))
    ledger = Ledger.create(tmp_path / "a.ledger", budget=budget, exact={"gamma": Fraction(3, 10)})
    ledger.share("ann", Pure(epsilon=0.5))
    check = on_random_data(budget)

    def charge(key: str, gamma: Fraction, epsilon: float = 0.1) -> None:
        own = given(Pure(epsilon=epsilon), RandomData(gamma=float(gamma)))
        ledger.run(ask(key, own, plan_digest="one plan", exact={"gamma": gamma}), lambda: 1, check)

    for key in "abc":
        charge(key, Fraction(1, 10))
    spent, left = standing_on_random_data(ledger, "ann")
    assert spent.condition.gamma == pytest.approx(0.3)  # type: ignore[union-attr]
    assert left.condition.gamma == 0.0  # type: ignore[union-attr]
    assert left.bound.epsilon == pytest.approx(0.2)  # type: ignore[attr-defined]
    assert standing_on_random_data(ledger)[1].bound.epsilon == pytest.approx(0.7)  # type: ignore[attr-defined]
    with pytest.raises(errors.BudgetExceeded, match="gamma"):
        charge("d", Fraction(1, 10**9))
    # What holds always spends no gamma.
    ledger.run(ask("e", 0.1), lambda: 1, check)
    with pytest.raises(errors.InvalidParameter, match="RandomData"):
        on_random_data(given(Pure(epsilon=1.0)))


REQUESTS: dict[str, tuple[dict[str, Any], str]] = {
    "nobody": ({"analyst": ""}, "analyst"),
    "everybody": ({"analyst": "*"}, "somebody's name"),
    "an event that is no table": ({"event": [1]}, "be a dictionary"),
    "a charge that is a number": ({"charge": 3}, "be a guarantee"),
    "sentences that are one": ({"told": "a count"}, "list of tables"),
    "a sentence without a price": ({"told": [{"release": "a", "statistic": "count"}]}, "release, statistic and price"),
    "a sentence that is too long": (
        {"told": [{"release": "a" * 2001, "statistic": "count", "price": "1"}]}, "release",
    ),
    "files that are a list": ({"files": ["a"]}, "declared set of files"),
    "files of nobody": ({"files": {"protected": []}}, "declared set of files"),
    "files of another kind": ({"files": {"protected": [["a"]], "secret": []}}, "declared set of files"),
    "digests in a list": ({"known_as": ["d"]}, "tuple of digests"),
    "a digest that is a number": ({"known_as": ("d", 1)}, "tuple of digests"),
    "an earlier digest that is no function": ({"earlier": "x"}, "be a function"),
    "an exact number of another float": ({"exact": {"epsilon": Fraction(1, 3)}}, "exact"),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_whole_or_refused(name: str) -> None:
    changes, word = REQUESTS[name]
    plain = ask("q", 0.25)
    with pytest.raises(errors.InvalidParameter, match=word):
        replace(plain, **changes)


def test_files_of_several_tables_are_listed_once() -> None:
    said = {"protected": [["a", "b"], ["b", "c"], None, None], "public": [["d"]]}
    assert protected_files(said) == ("a", "b", "c", None)


def entries(folder: Path) -> dict[str, dict[str, Any]]:
    """One entry of every kind that a short life of a ledger writes."""
    ledger = Ledger.create(folder / "a.ledger", budget=promise(1.0))
    ledger.share("ann", Pure(epsilon=0.9))
    ledger.run(ask("one", files={"protected": [["a"]]}), lambda: {"x": 1})
    ledger.run(ask("two"), lambda: 2)
    ledger.supersede(2, with_=4)
    ledger.withdraw(4, note="a wrong file")
    return {e.kind: dict(e.body) for e in ledger.entries()}


BROKEN: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "a word too many": ("share", lambda b: b.update(more=1)),
    "a word too few": ("share", lambda b: b.pop("exact")),
    "a kind that is unknown": ("share", lambda b: b.update(kind="gift")),
    "a state that is no text": ("share", lambda b: b.update(state=3)),
    "a total that is no table": ("share", lambda b: b.update(total=[])),
    "a share of no bound": ("share", lambda b: b.update(share={"bound": 3})),
    "an exact share that is no number": ("share", lambda b: b.update(exact={"epsilon": "x"})),
    "an exact share over nothing": ("share", lambda b: b.update(exact={"epsilon": "1/0"})),
    "a charge of no bound": ("reserve", lambda b: b.update(charge={})),
    "files of another form": ("reserve", lambda b: b.update(files={"protected": []})),
    "an earlier name of another form": ("reserve", lambda b: b.update(earlier={"plan": "x"})),
    "an answer of another kind": ("commit", lambda b: b["answer"].update(kind="pickle")),
    "an answer with more words": ("commit", lambda b: b["answer"].update(more=1)),
    "an answer to no number": ("commit", lambda b: b.update(reserve="two")),
    "a correction of nothing": ("supersede", lambda b: b.update(about=0)),
    "a correction of no number": ("withdraw", lambda b: b.update(number="x")),
    "a correction of number 0": ("withdraw", lambda b: b.update(number=0)),
}  # fmt: skip


def test_an_entry_that_was_written_by_nobody_is_not_read(tmp_path: Path) -> None:
    """The digest fits the content, and the content is no entry: it is told as such, whatever is wrong in it."""
    found = entries(tmp_path)
    for kind, body in found.items():
        content = canonical(body)
        entry, problem = read_entry(sequence=body["sequence"], digest=sha256(content), content=content)
        assert entry is not None, (kind, problem)
        moved = read_entry(sequence=body["sequence"] + 1, digest=sha256(content), content=content)
        assert "moved" in moved[1]
        assert "edited" in read_entry(sequence=body["sequence"], digest="0" * 64, content=content)[1]
    for name, (kind, change) in BROKEN.items():
        body = json.loads(json.dumps(found[kind]))
        change(body)
        content = canonical(body)
        entry, problem = read_entry(sequence=body["sequence"], digest=sha256(content), content=content)
        assert (entry, problem) == (None, "cannot be read"), name
    loose = json.dumps(found["share"], indent=1)
    assert (
        read_entry(sequence=found["share"]["sequence"], digest=sha256(loose), content=loose)[1]
        == "cannot be read"
    )


@pytest.mark.parametrize(
    ("earlier", "holds"),
    [
        ({"plan": "p", "request": "q"}, True),
        ({"plan": "p", "request": "q", "told": []}, True),
        ({"plan": "p"}, False),
        ({"plan": "p", "request": "q", "x": 1}, False),
    ],
)
def test_an_entry_that_rests_on_an_earlier_form_says_which(earlier: dict[str, Any], holds: bool) -> None:
    """What was told then may stand there, and nothing else."""
    body = {**reserve_body(ask("q", 0.25), ""), "state": "", "total": {}}
    entry = Entry.new(sequence=2, previous="0" * 64, time="2026-01-01T00:00:00+00:00", kind="reserve", **body,
                      earlier=earlier)  # fmt: skip
    if holds:
        _readable(entry)
    else:
        with pytest.raises(ValueError):
            _readable(entry)
