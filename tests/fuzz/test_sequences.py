"""A fixed share of the sequences in time, and breaches that are planted to show that it can fail."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from typing import Any

import pytest

from fuzz import stores
from fuzz.in_time import TimeReport, drawn, fuzz_in_time, summary_in_time
from fuzz.run import parsed
from fuzz.sequences import OPS, Step, ops_of
from support.spark import needs_spark
from tacit.curator.curator import Curator
from tacit.curator.release import Release
from tacit.guarantees import Neighbours


def ran(*arguments: str) -> TimeReport:
    """The sequences with these arguments, and no limit on time."""
    return fuzz_in_time(parsed(list(arguments)))


FOUND = {
    "a missing value makes doubles of whole numbers": ("pandas", 51),
    "the same rows in another format": ("pandas", 44),
    "a file of another name": ("sas", 29),
    "some of several files": ("parquet list", 22),
    "blank records at the end of a file": ("sas", 3),
    "a key of a public table, repeated later": ("joined parquet", 18),
    "a file that becomes a link to another": ("parquet list", 39),
    "stored types that change under an open curator": ("parquet list", 4),
}
"""Sequences of seed 1 that once found a breach by themselves."""


@pytest.mark.slow
def test_versions_behave_alike() -> None:
    report = ran("--sequences", str(len(stores.READERS)), "--seed", "21")
    assert set(report.readers) == set(stores.READERS)
    assert report.outcomes["released"] >= 2 * report.runs
    assert not report.oracles, summary_in_time(report)


@pytest.mark.parametrize("once", FOUND)
def test_a_sequence_that_found_a_breach_finds_it_no_more(once: str) -> None:
    reader, number = FOUND[once]
    report = ran("--sequences", "1", "--seed", "1", "--reader", reader, "--batch", str(number))
    assert report.runs == 1
    assert not report.oracles, summary_in_time(report)


def test_the_fuzzer_leaves_rows_to_a_statistic_that_lets_go_of_them() -> None:
    report = ran("--sequences", "1", "--seed", "9401", "--batch", "57")
    assert report.questions["regression"] == 1
    assert not report.oracles, summary_in_time(report)


@needs_spark
@pytest.mark.slow
def test_versions_behave_alike_on_spark() -> None:
    report = ran("--sequences", "2", "--seed", "2", "--engine", "spark", "--reader", "parquet,joined parquet")
    assert report.outcomes["released"] >= 2
    assert not report.oracles, summary_in_time(report)


def test_no_run_leaves_out_a_reader_or_what_can_happen_to_its_files() -> None:
    readers, seen = stores.READERS, {reader: set() for reader in stores.READERS}
    blank: dict[str, set[str]] = {reader: set() for reader in readers}
    for number in range(len(readers) * 20):
        one = drawn(4, number, readers, spark=False, attempt=0)
        seen[one.reader] |= {s.op for s in one.steps[1:]}
        blank[one.reader] |= {o for o in one.odd if o in ("blank first row", "blank last row")}
    assert all(set(ops_of(reader)) <= found for reader, found in seen.items())
    assert {op for found in seen.values() for op in found} == set(OPS)
    assert all(found == {"blank first row", "blank last row"} for found in blank.values())


@pytest.mark.parametrize("seed", [4, 71])
def test_both_tables_of_every_version_are_neighbours(seed: int) -> None:
    """Counted unit by unit: so many people, or rows, have other rows on the other side as the unit allows."""
    relations = set()
    for number in range(len(stores.READERS) * 20):
        one = drawn(seed, number, stores.READERS, spark=False, attempt=0)
        unit = one.setting.unit
        base, size = getattr(unit, "of", unit), getattr(unit, "size", 1)
        relations.add((type(base).__name__, base.neighbours))
        for step in one.steps:
            person = getattr(base, "column", None)
            gone, come = _differing(step, person)
            if person is not None:
                assert not {r[person] for r in step.base} & {r[person] for r in (*step.left, *step.right)}
            if base.neighbours is Neighbours.REPLACE_ONE:
                assert len(gone) <= size, (number, step.op)
                assert len(come) <= size, (number, step.op)
                assert len(step.left) == len(step.right) or person is not None, (number, step.op)
            else:
                # Somebody with other rows was taken away and added: two steps, not one.
                assert len(gone) + len(come) <= size, (number, step.op)
    assert len(relations) == 4


def _differing(step: Step, person: str | None) -> tuple[list[str], list[str]]:
    """The units of either side that the other side does not have."""
    sides = []
    for side in (step.left, step.right):
        held: dict[str, list[str]] = {}
        for place, row in enumerate(side):
            held.setdefault(repr(row[person]) if person else str(place), []).append(repr(sorted(row.items())))
        sides.append(Counter(repr((person and who, sorted(rows))) for who, rows in held.items()))
    left, right = sides
    return list((left - right).elements()), list((right - left).elements())


def test_a_store_changes_nothing_that_is_declared() -> None:
    """Stored types hold the same values: what is written and read back by Arrow says what the row says."""
    for number in range(30):
        one = drawn(9, number, ("parquet",), spark=False, attempt=0)
        store = one.steps[0].store
        rows = [r for r in one.steps[0].base if store.types]
        if store.inferred:
            continue
        table = stores.arrow(store, one.setting.columns, rows)
        for column in one.setting.columns:
            if column.label in ("integer", "number", "ints") and store.types[column.name] != "string":
                assert [float(v) for v in table[column.name].to_pylist()] == [
                    float(r[column.name]) for r in rows
                ]


def test_an_answer_about_another_version_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The version is left out of what is asked."""
    plain = Curator._request

    def without(self: Any, *given: Any, **more: Any) -> Any:
        return dataclasses.replace(plain(self, *given, **more), version="")

    monkeypatch.setattr(Curator, "_request", without)
    report = ran("--sequences", "60", "--seed", "4", "--reader", "arrow", "--first")
    assert report.oracles["replayed"] >= 1


def test_a_certificate_that_tells_of_one_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate has the number of rows that were read."""
    from tacit.sources import query

    rows = [0]
    plain, read = Release.certificate.fget, query._Collector.add
    assert plain is not None

    def counting(self: Any, batch: Any) -> None:
        rows[0] = sum(int(c.sum().as_py() or 0) for c in batch.columns if str(c.type).startswith("int"))
        read(self, batch)

    def told(self: Any) -> Any:
        return {**plain(self), "rows": rows[0]}

    monkeypatch.setattr(query._Collector, "add", counting)
    monkeypatch.setattr(Release, "certificate", property(told))
    report = ran("--sequences", "40", "--seed", "4", "--reader", "arrow", "--first")
    assert report.oracles["shapes"] >= 1


def test_a_sequence_follows_from_its_seed_and_number() -> None:
    for number in random.Random(1).sample(range(1000), 5):
        one, two = (drawn(3, number, stores.READERS, spark=False, attempt=2) for _ in range(2))
        assert one.steps == two.steps
        assert [a.to_dict() for a in one.asked] == [a.to_dict() for a in two.asked]
