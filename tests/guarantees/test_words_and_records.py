"""Guarantees in sentences and as plain data, and what they were declared under."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

import tacit
from support.promises import PEOPLE, REPLACE, ROWS, on_random_data, promise
from support.strategies import any_closed
from tacit.errors import InvalidParameter
from tacit.guarantees import Bound, Priors
from tacit.guarantees.guarantee import from_record


def test_explanations_are_sentences_with_numbers_rounded_against_us() -> None:
    text = promise(tacit.Pure(epsilon=1)).explain()
    assert text.count(". ") == 2
    assert "2.72 times" in text  # e = 2.718 rounded up
    assert "73.2%" in text  # 0.73106
    assert "13.6%" in text  # 5% becomes at most 0.13592
    assert "46.3%" in text  # tanh(1/2) = 0.46212
    assert "any one row had been added or left out" in text
    approximate = promise(tacit.Approximate(epsilon=1, delta=1e-6), unit=PEOPLE).explain()
    assert "at most 3 are used" in approximate
    assert "1e-06" in approximate


def test_no_words_are_stronger_than_a_large_epsilon() -> None:
    text = promise(tacit.Pure(epsilon=1000)).explain()
    assert "e^1e+03 times" in text  # not a float that is smaller than e^1000
    assert "100%" in text
    assert "almost the same" not in text


def test_conditions_are_never_hidden() -> None:
    text = on_random_data(tacit.Pure(epsilon=1), 0.05).explain()
    assert "random differential privacy, not differential privacy" in text
    assert "0.05" in text
    prior = promise(tacit.Pure(epsilon=1), condition=Priors(family="uniform rows", unknown_rows=50))
    assert "not differential privacy" in prior.explain()
    assert "uniform rows" in prior.explain()
    assert "50 rows" in str(prior)
    school = tacit.guarantees.Coupled(
        priv="a student's record", alt="the table without the student's school", family=900
    )
    assert "without the student's school" in promise(tacit.Pure(epsilon=1), unit=school).explain()


@given(any_closed)
def test_every_guarantee_explains_itself_and_survives_its_record(bound: Bound) -> None:
    for unit in (
        ROWS,
        REPLACE,
        PEOPLE,
        tacit.group_of(PEOPLE, size=2),
        tacit.guarantees.Coupled(priv="p", alt="a"),
    ):
        whole = promise(bound, unit=unit)
        assert whole.explain()
        text = json.dumps(whole.to_dict())
        assert from_record(json.loads(text)) == whole
    for condition in (
        Priors(family="f", unknown_rows=3),
        tacit.guarantees.BoundedAdversary(assumption="x", advantage=0.5),
        tacit.guarantees.Always(),
    ):
        whole = promise(bound, condition=condition)
        assert whole.explain()
        assert from_record(json.loads(json.dumps(whole.to_dict()))) == whole


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"version": 2},
        {"version": 1},
        {
            "version": 1,
            "bound": {"kind": "os.system"},
            "unit": {"kind": "rows"},
            "condition": {"kind": "always"},
        },
        {"version": 1, "bound": {"kind": "pure"}, "unit": {"kind": "rows"}, "condition": {"kind": "always"}},
        {
            "version": 1,
            "bound": {"kind": "pure", "epsilon": -1},
            "unit": {"kind": "rows"},
            "condition": {"kind": "always"},
        },
        {"version": 1, "bound": "pure", "unit": {"kind": "rows"}, "condition": {"kind": "always"}},
        [],
    ],
)
def test_broken_records_are_refused(broken: object) -> None:
    with pytest.raises(tacit.TacitError) as caught:
        from_record(broken)  # type: ignore[arg-type]
    assert caught.value.exit_code == 2


def test_parts_are_checked_at_birth() -> None:
    with pytest.raises(InvalidParameter):
        tacit.Guarantee(bound=1.0, unit=ROWS)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        tacit.Guarantee(bound=tacit.Pure(epsilon=1), unit="rows")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        promise(tacit.Pure(epsilon=1)).implies(tacit.Pure(epsilon=1))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        promise(tacit.Pure(epsilon=1)).power(1.5)


# --- declarations ------------------------------------------------------------------------------------


def test_declarations_are_carried_printed_and_recorded() -> None:
    a = promise(tacit.Approximate(epsilon=0.5, delta=1e-8))
    plain, planned = tacit.compose(a, a), tacit.compose(a, a, law="advanced", slack=1e-6)
    assert plain.declared == ()
    assert planned.declared == ("the parameters of all releases were fixed in advance",)
    assert "fixed in advance" in planned.explain()
    assert "fixed in advance" in str(planned)
    assert from_record(json.loads(json.dumps(planned.to_dict()))) == planned
    later = tacit.compose(planned, a)
    assert later.declared == planned.declared
    assert not planned.implies(promise(planned.bound))
    assert promise(planned.bound).implies(planned)
    sampled = promise(tacit.Pure(epsilon=1)).subsampled(rate=0.1, scheme="poisson")
    assert "sampled" in sampled.declared[0]
    prior = Priors(family="f", unknown_rows=3)
    both = tacit.compose(
        promise(tacit.Pure(epsilon=1), condition=prior),
        promise(tacit.Pure(epsilon=1), condition=prior),
        assume="disjoint-independent-rows",
    )
    assert "disjoint rows" in both.declared[0]
    fixed = tacit.parallel(*[promise(tacit.Pure(epsilon=1), unit=REPLACE)] * 2, fixed=True)
    assert "does not depend on its data" in fixed.declared[0]
    early = tacit.compose(
        on_random_data(tacit.Pure(epsilon=1), 0.1), on_random_data(tacit.Pure(epsilon=1), 0.1), adaptive=False
    )
    assert "before the data were seen" in early.declared[0]
