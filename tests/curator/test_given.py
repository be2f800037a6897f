"""What is no source of noise, no ledger and no price is refused before anything is charged."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.curator.charging import Price
from tacit.curator.request import Query
from tacit.errors import InvalidParameter

ODD = (1.9, True, np.int8(3), np.bool_(True), -1, b"x", [1])


def curator(**given: Any) -> tacit.Curator:
    return tacit.Curator(
        pa.table({"w": ["a", "b"] * 10}), protect=tacit.rows(), schema={"w": tacit.category(["a", "b"])},
        budget=tacit.Pure(epsilon=1.0), **given,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["source", "ledger"])
@pytest.mark.parametrize("value", ODD, ids=repr)
def test_no_source_and_no_ledger(name: str, value: object) -> None:
    with pytest.raises(InvalidParameter, match=name):
        curator(**{name: value})


@pytest.mark.parametrize("value", ["3", "no"])
def test_a_text_is_no_source(value: str) -> None:
    with pytest.raises(InvalidParameter, match="source"):
        curator(source=value)


F = Fraction


@pytest.mark.parametrize(
    "numbers",
    [
        {}, {"delta": F(1, 10)}, {"epsilon": F(1), "rho": F(1)}, {"epsilon": F(1), "mu": F(1)},
        {"within": F(5), "epsilon": F(1)}, {"rho": F(1), "delta": F(1, 10)}, {"mu": F(1), "delta": F(1, 10)},
        {"epsilon": F(1), "delta": F(1)}, {"within": F(5), "confidence": F(1)},
        {"within": F(5), "confidence": F(2)}, {"epsilon": F(1, 10**80)}, {"epsilon": F(10**10)},
    ],
    ids=str,
)  # fmt: skip
def test_a_price_is_one_price(numbers: dict[str, Fraction]) -> None:
    with pytest.raises(InvalidParameter):
        Price(**numbers)


@pytest.mark.parametrize("confidence", [F(1), F(2)])
def test_a_confidence_is_below_one(confidence: Fraction) -> None:
    with pytest.raises(InvalidParameter, match="confidence"):
        Query(statistic=tacit.count(), confidence=confidence)
