"""What CONTRIBUTING says about a mechanism, an event and a statistic of one's own, done: each in a few lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd
import pytest

import tacit
from tacit.accounting import codec
from tacit.accounting.events import SimpleEvent
from tacit.audit import opinion_on_certificate
from tacit.errors import TacitError
from tacit.guarantees import Unit
from tacit.guarantees.guarantee import from_record
from tacit.mechanisms import Mechanism
from tacit.pld import FinitePair, Pair
from tacit.sources import Schema
from tacit.sources.query import Cells
from tacit.statistics.base import Question
from tacit.statistics.counts import Count

WITH, WITHOUT = (0.5, 0.3, 0.2), (0.3, 0.4, 0.3)


# --- a mechanism ---------------------------------------------------------------------------------------
class Spinner(Mechanism):
    """Three outcomes, with these probabilities where a row is there and where it is not."""

    event = tacit.events.TabulatedEvent(p=WITH, q=WITHOUT)
    bound = tacit.Pure(epsilon=event.pure() or 0.0)
    noise_distribution: ClassVar[dict[str, Sequence[float]]] = {"with": WITH, "without": WITHOUT}


def test_a_mechanism_of_ones_own_has_its_certificate() -> None:
    certificate = Spinner().certificate_for(tacit.rows())
    worst = max(abs(math.log(p / q)) for p, q in zip(WITH, WITHOUT, strict=True))  # the definition
    promised = from_record(certificate["guarantee"])
    assert float(promised.bound.epsilon) == pytest.approx(worst, rel=1e-12)
    assert float(promised.bound.epsilon) >= worst * (1 - 1e-15)
    assert opinion_on_certificate(certificate).confirmed is True
    assert tacit.account(Spinner().event, delta=1e-6).epsilon.high <= worst * (1 + 1e-9)


def test_a_mechanism_that_promises_too_much_is_found_out() -> None:
    class Boaster(Spinner):
        bound = tacit.Pure(epsilon=0.5)

    opinion = opinion_on_certificate(Boaster().certificate_for(tacit.rows()))
    assert opinion.confirmed is False
    assert opinion.found == pytest.approx(math.log(5 / 3), rel=1e-9)


def test_a_table_with_an_outcome_on_one_side_only_has_no_pure_epsilon() -> None:
    class Telltale(Spinner):
        event = tacit.events.TabulatedEvent(p=(0.9, 0.1), q=(1.0, 0.0))

    assert opinion_on_certificate(Telltale().certificate_for(tacit.rows())).confirmed is not True


# --- an event ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedCoinEvent(SimpleEvent):
    """A coin that falls on heads with `chance` where a row is there, and with 1/2 where it is not."""

    kind: ClassVar[str] = "loaded_coin"
    chance: float

    def pairs(self, neighbours: tacit.guarantees.Neighbours) -> tuple[Pair, Pair]:
        pair = FinitePair(p=(self.chance, 1 - self.chance), q=(0.5, 0.5))
        return pair, pair.swapped()


def test_an_event_of_ones_own_is_composed_like_any_other() -> None:
    thrice = tacit.events.RepeatedEvent(event=LoadedCoinEvent(chance=0.75), times=3)
    found = tacit.account(thrice, epsilon=0.5).delta
    removed, added = 0.0, 0.0
    for heads in range(4):
        ways = math.comb(3, heads)
        p, q = ways * 0.75**heads * 0.25 ** (3 - heads), ways / 8
        removed += max(p - math.exp(0.5) * q, 0)
        added += max(q - math.exp(0.5) * p, 0)
    assert found.low <= max(removed, added) <= found.high
    assert found.high == pytest.approx(max(removed, added), rel=1e-3)


def test_an_event_that_is_not_in_the_closed_table_cannot_be_recorded() -> None:
    with pytest.raises(TacitError):
        codec.from_record(codec.to_record(LoadedCoinEvent(chance=0.75)))


# --- a statistic ---------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Adults(Count):
    """How many rows are of people of 18 or more: a count with a filter of its own, and so of the same sensitivity."""

    kind: ClassVar[str] = "adults"

    def _filtered(self) -> Count:
        return tacit.count(by=list(self.by), where="age >= 18")

    def on(self, schema: Schema, unit: Unit) -> Question:
        return replace(self._filtered().on(schema, unit), statistic=self)

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, Any]:
        return self._filtered().integers(question, cells)


def test_a_statistic_of_ones_own_is_released_with_its_certificate() -> None:
    table = pd.DataFrame({"age": [17] * 300 + [18] * 200 + [80] * 500})
    budget, schema = tacit.Pure(epsilon=20), {"age": tacit.integer(0, 110)}
    with tacit.Curator(table, protect=tacit.rows(), schema=schema, budget=budget) as survey:
        answer = survey.release(Adults(), epsilon=20)
        assert abs(float(answer.table["value"].iloc[0]) - 700) <= 10  # e^-200: not luck
        assert answer.certificate["statistic"]["kind"] == "adults"
        assert opinion_on_certificate(answer.certificate).confirmed is True
    for neighbour in (table.iloc[1:], table.iloc[:-1], pd.concat([table, table.iloc[-1:]])):
        moved = abs(int((neighbour["age"] >= 18).sum()) - 700)
        assert moved <= Adults().on(Schema(schema), tacit.rows()).sensitivity.l1


def of_the_earlier_version() -> tuple[type[Adults], type[Adults]]:
    class Quiet(Adults):
        def describe(self) -> dict[str, Any]:
            return {k: v for k, v in super().describe().items() if k != "of"}

    class Quieter(Quiet):
        def describe(self) -> dict[str, Any]:
            return {k: v for k, v in super().describe().items() if k != "where"}

    return Quiet, Quieter


def test_a_statistic_of_ones_own_with_the_old_name_of_its_values_keeps_them() -> None:
    """Its digests cover what `describe` leaves out, so a new version must not see more."""
    with pytest.warns(DeprecationWarning, match=r"Quiet(er)?.describe is now Quiet(er)?.to_dict\(\)"):
        quiet, quieter = of_the_earlier_version()
    all_of_it = Adults().to_dict()
    with pytest.warns(DeprecationWarning, match="is now"):
        assert quiet().to_dict() == {k: v for k, v in all_of_it.items() if k != "of"}
    with pytest.warns(DeprecationWarning, match="is now"):
        assert quieter().to_dict() == {k: v for k, v in all_of_it.items() if k not in ("of", "where")}
    with pytest.warns(DeprecationWarning, match=r"Adults.describe is now Adults.to_dict\(\)"):
        assert Adults().describe() == all_of_it
