"""The plainest calls: groups as the next argument, one share as a number."""

from __future__ import annotations

import pytest

import tacit
from tacit.curator.plan_files import asks_in
from tacit.errors import InvalidParameter


def test_groups_are_the_next_argument() -> None:
    assert tacit.count("gender") == tacit.count(by="gender")
    assert tacit.count(["gender", "state"]) == tacit.count(by=["gender", "state"])
    for make in (
        tacit.mean,
        tacit.sum,
        tacit.median,
        tacit.variance,
        tacit.standard_deviation,
        tacit.proportion,
    ):
        assert make("x", "g") == make("x", by="g")
    assert tacit.ratio("x", "y", "g") == tacit.ratio("x", "y", by="g")


def test_one_share_is_a_list_of_one() -> None:
    assert tacit.quantiles("x", at=0.5) == tacit.quantiles("x", at=[0.5]) == tacit.median("x")
    (ask,) = asks_in([{"kind": "quantiles", "column": "x", "at": 0.5, "epsilon": 1}])
    assert ask.statistic == tacit.median("x")
    for wrong in (True, 1, 0, 1.5, "0.5", None):
        with pytest.raises(InvalidParameter):
            tacit.quantiles("x", at=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        asks_in([{"kind": "quantiles", "column": "x", "at": True, "epsilon": 1}])
