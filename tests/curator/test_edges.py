"""Parts of a charge, of a threshold and of an account that other tests leave at 0 or 1."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.cli import main
from tacit.guarantees import Guarantee, Pure, RandomData
from tacit.noise import SeededSource
from tacit.statistics import read_cells

from .random_rows import REPLACE

DELTA = Fraction(1, 10**4)


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace-one"])
@pytest.mark.parametrize("asked", [tacit.count(by="t"), tacit.sum("x", by="t")], ids=["count", "sum"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_keys_of_a_group_alone_are_named_as_seldom_as_delta_says(
    neighbours: str, asked: Any, size: int
) -> None:
    """A key that only the group's rows have is named with probability at most delta; larger keys are named.

    Under replace-one the group's rows may all move there, which is the same key; two keys change only if they share.
    """
    unit = tacit.group_of(tacit.rows(neighbours=neighbours), size=size)
    schema = {"t": tacit.category(), "x": tacit.number(0, 1)}
    with tacit.Curator(
        pa.table({"t": ["a"], "x": [1.0]}), protect=unit, schema=schema,
        budget=tacit.Approximate(epsilon=9, delta=0.1),
    ) as held:  # fmt: skip
        chosen = held.preview(asked, epsilon=1, delta=DELTA).releases[0].assignment.selection  # type: ignore[attr-defined]
    assert chosen.group == size
    assert 0 < chosen.keep_probability(size) <= float(DELTA)
    assert chosen.keep_probability(1000) > 0.999


def test_keys_without_support_are_never_named() -> None:
    """Rows whose flag is unknown support nothing: their key is as if it were not there, at any epsilon."""
    schema = {"t": tacit.category(), "f": tacit.flag()}
    table = pa.table({"t": ["a"] * 50 + ["b"] * 50, "f": [True] * 50 + [None] * 50})
    with tacit.Curator(
        table, protect=tacit.rows(), schema=schema, budget=tacit.Approximate(epsilon=200, delta=0.5)
    ) as held:
        planned = held.preview(tacit.count(by="t", where="f"), epsilon=20, delta=0.4).releases[0]
        (cells,) = read_cells(held._open(), [planned.question], key=held.ledger.bounding_key)
        question = planned.question
        assert question.support is not None
        empty = cells[0]
        values = {**empty.values, question.support: np.zeros_like(np.asarray(empty.values[question.support]))}
        for seed in range(20):
            noisy = planned.assignment.run(
                question, [replace(empty, values=values), *cells[1:]], source=SeededSource(seed=seed)
            )
            assert noisy.keys == ((),), "nobody supports any key"


def test_a_price_of_ones_own_is_paid_beside_the_divided_one() -> None:
    """One release asks for epsilon 1, two others divide 0.5: 1.5 is charged, and the ledger has it."""
    schema = {"s": tacit.category(["a", "b"]), "t": tacit.category()}
    asked = [
        tacit.query(tacit.count(by="s"), epsilon=1),
        tacit.query(tacit.count(by="t")),
        tacit.query(tacit.count(by="t", where="s == 'a'")),
    ]
    with tacit.Curator(
        pa.table({"s": ["a"], "t": ["k"]}), protect=tacit.rows(), schema=schema,
        budget=tacit.Approximate(epsilon=9, delta=0.1),
    ) as held:  # fmt: skip
        held.release(asked, epsilon=0.5, delta=1e-9)
        assert float(held.spent.epsilon) == pytest.approx(1.5, rel=1e-9)
        assert float(held.spent.delta) == pytest.approx(1e-9, rel=1e-9)


PLAN = """
[data]
path = "t.parquet"
[protect]
unit = "rows"
[schema.s]
kind = "category"
keys = ["a", "b"]
[budget]
epsilon = 4.0
[ledger]
path = "t.ledger"
[[release]]
kind = "count"
name = "n"
by = "s"
epsilon = {epsilon}
"""


def test_a_replaced_release_does_not_stand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Replaced and never withdrawn: the earlier folder no longer stands, the later one does."""
    pq.write_table(pa.table({"s": ["a", "b"] * 30}), tmp_path / "t.parquet")
    ledger = str(tmp_path / "t.ledger")
    for name, epsilon in (("old", 0.25), ("new", 0.5)):
        (tmp_path / "plan.toml").write_text(PLAN.format(epsilon=epsilon))
        assert main(["release", str(tmp_path / "plan.toml"), "--out", str(tmp_path / name)]) == 0
    found = tacit.Ledger.open(ledger)
    charges = [e.sequence for e in found.entries() if e.kind == "reserve"]
    found.supersede(charges[0], with_=charges[1])
    capsys.readouterr()
    for name, stands in (("old", False), ("new", True)):
        code = main(["verify", str(tmp_path / name), "--ledger", ledger, "--json"])
        said = json.loads(capsys.readouterr().out)["findings"]
        (one,) = [f for f in said if "neither withdrawn nor replaced" in f["what"]]
        assert (code == 0, one["holds"]) == (stands, stands), name


def test_a_cell_of_exactly_the_threshold_is_inside_its_interval() -> None:
    """200 cells of exactly as many rows as the first that gets noise: the cut at the threshold leaves them inside.

    Each interval misses with probability 5/100 at most: 45 of 200 would have a chance below 1e-15.
    """
    budget = Guarantee(bound=Pure(epsilon=1.0), unit=REPLACE, condition=RandomData(gamma=0.8))
    cells, threshold = 400, 8
    counts = [threshold] * 200 + [0] * 199
    data = pa.table({"c": np.repeat(np.arange(cells), [*counts, 8000 - sum(counts)])})
    with tacit.Curator(
        data, protect=REPLACE, schema={"c": tacit.integer(0, 399)}, budget=budget, source=SeededSource(seed=3)
    ) as one:
        given = {"random_data": 0.8, "small_cells": True}
        made = one.release(tacit.count(by="c"), epsilon=0.5, given=given)
    assert made.certificate["random_data"]["exact_below"] == threshold
    table = made.table[:200]
    assert ((table.low > threshold) | (table.high < threshold)).sum() < 45
    assert (table.low >= np.minimum(threshold, table.value)).all()
