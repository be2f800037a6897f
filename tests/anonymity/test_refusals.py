"""Refusals of anonymity's measures and treatments, each reached by an input of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tacit import anonymity as anon
from tacit import errors
from tacit.anonymity import search
from tacit.anonymity.cellkey import PTable, cell_key_counts, entropy_ptable
from tacit.anonymity.hierarchies import Hierarchy
from tacit.anonymity.identifiers import population_uniques
from tacit.anonymity.search import Criteria
from tacit.anonymity.suppressed import suppress_cells
from tacit.anonymity.treat import check_asked
from tacit.anonymity.treatments.lost import corrected_covariance, corrected_regression

TABLE = pa.table(
    {"a": [1, 1, 2, 2], "b": ["x", "x", "y", "y"], "s": ["u", "v", "u", "v"], "key": [1, 2, 3, 4], "f": [0.5] * 4}
)  # fmt: skip
TREE = Hierarchy.of({"x": "*", "y": "*"})
PLAIN = PTable(np.zeros((3, 4), dtype=np.int64))


def perturbed(**more: Any) -> Any:
    return cell_key_counts(TABLE, **({"by": ["a"], "record_key": "key", "ptable": PLAIN} | more))


def treated(*treatments: Any, **more: Any) -> Any:
    return anon.treat_table(TABLE, list(treatments), **more)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a p-table of one row": (lambda: PTable(np.zeros((1, 4), dtype=np.int64)), "a row a count"),
    "a p-table of floats": (lambda: PTable(np.zeros((3, 4))), "a row a count"),
    "a p-table without keys": (lambda: PTable(np.zeros((3, 0), dtype=np.int64)), "a row a count"),
    "a p-table below 0": (lambda: PTable(np.array([[0], [-2]])), "no count negative"),
    "more variance than the noise can have": (lambda: entropy_ptable(most=2, variance=4.0), "below most"),
    "a record key that is no column": (lambda: perturbed(record_key="nope"), "nope"),
    "a record key of fractions": (lambda: perturbed(record_key="f"), "whole numbers"),
    "a record key that is counted": (lambda: perturbed(by=["key"]), "record key"),
    "less than one value in a class": (lambda: Criteria(diverse=0.5), "at least 1"),
    "an unknown diversity": (lambda: Criteria(diversity="wide"), "diversity"),
    "an unknown distance": (lambda: Criteria(distance="taxi"), "distance"),
    "a tree whose lowest level is another": (lambda: Hierarchy({"x": ("y", "*"), "y": ("y", "*")}), "value itself"),
    "a tree in which a group is in two": (
        lambda: Hierarchy({"x": ("x", "g", "one"), "y": ("y", "g", "two")}), "one group of the next",
    ),
    "a level above the root": (lambda: TREE.at(2), "between 0 and 1"),
    "a level below the values": (lambda: TREE.at(-1), "between 0 and 1"),
    "a flag as a level": (lambda: TREE.at(True), "between 0 and 1"),
    "diverse boxes of nothing": (lambda: anon.mondrian(TABLE, quasi=["a"], k=2, l=2), "for l and t"),
    "close boxes of nothing": (lambda: anon.mondrian(TABLE, quasi=["a"], k=2, t=0.2), "for l and t"),
    "boxes by a tree of values": (
        lambda: anon.mondrian(TABLE, quasi=["a"], k=2, sensitive="s", t=0.2, distance="hierarchical"), "or ordered",
    ),
    "an order that names a value twice": (
        lambda: anon.check_table(TABLE, quasi=["a"], sensitive="s", distance="ordered", order=["u", "v", "u"]), "once",
    ),
    "an unknown choice of intervals": (
        lambda: suppress_cells(np.array([[1, 9], [9, 9]]), below=3, intervals="wide"), "choice of intervals",
    ),
    "a treatment that is none": (lambda: treated(3), "be treatments"),
    "no treatments": (lambda: treated(), "empty"),
    "a sensitive column that is not there": (lambda: check_asked(["a"], (), ("s",)), "s"),
    "a swap of no columns": (lambda: anon.Swap(columns=(), share=0.5), "columns to swap"),
    "a swap within what must match": (lambda: anon.Swap(columns=("a",), share=0.5, match=("a",)), "swapped"),
    "an aggregate of no columns": (lambda: anon.Microaggregate(columns=(), k=2), "columns to aggregate"),
    "a mask of no columns": (lambda: anon.MatrixMask(columns=()), "columns to mask"),
    "all columns removed": (lambda: treated(anon.Remove(columns=("a", "b", "s", "key", "f"))), "leave a column"),
    "noise below 0": (lambda: corrected_covariance([[1.0], [2.0]], -1.0), "one for each column"),
    "noise of other columns": (lambda: corrected_covariance([[1.0], [2.0]], [1.0, 2.0]), "one for each column"),
    "a regression of too few rows": (lambda: corrected_regression([[1.0], [2.0]], [1.0, 2.0], 0.1), "more rows"),
    "a regression without numbers": (
        lambda: corrected_regression([[1.0], [2.0], [np.inf]], [1.0, 2.0, 3.0], 0.1), "finite number",
    ),
    "a regression of other rows": (
        lambda: corrected_regression([[1.0], [2.0], [3.0]], [1.0, 2.0], 0.1), "finite number",
    ),
    "an unknown estimator": (lambda: population_uniques({1: 3}, people=9, estimator="best"), "estimator"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, match = REFUSED[name]
    with pytest.raises(errors.TacitError, match=match):
        act()


def test_a_lattice_has_so_many_nodes_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = {"a": Hierarchy.of({"1": "*", "2": "*"}), "b": TREE}
    monkeypatch.setattr(search, "MOST_NODES", 4)
    assert anon.generalise(TABLE, hierarchies=trees, k=2) is not None
    monkeypatch.setattr(search, "MOST_NODES", 3)
    with pytest.raises(errors.TooManyCells):
        anon.generalise(TABLE, hierarchies=trees, k=2)


def test_perturbed_counts_by_hand() -> None:
    """Counts 2 and 2, keys 1 + 2 and 3 + 4 modulo 4: the cell keys are both 3, and 3 adds 1."""
    table = PTable(np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, -1, 1]]))
    found = perturbed(ptable=table, threshold=0)
    assert found.column("count").to_pylist() == [3, 3]
    assert perturbed(ptable=table, threshold=4).column("count").to_pylist() == [None, None]
    assert perturbed(ptable=table, threshold=3).column("count").to_pylist() == [3, 3]
