"""False epsilons by truncation and wrapping, by their numbers: each was accepted once, and meant something smaller."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.mechanisms import (
    CumulativeTree,
    KeysOfAUnit,
    OptimalSelection,
    PolytopeNorm,
    RandomizedResponse,
    Score,
    Workload,
    on_grid,
    partition_selection,
)
from tacit.mechanisms.partition import GaussianSelection


@pytest.mark.parametrize("corner", [(1.9, 0), ("3", 0), (True, 0), (np.float64(2), 0)])
def test_corners_of_moves_are_whole(corner: tuple[object, object]) -> None:
    """(1.9, 0) was cut to (1, 0): a claimed epsilon of 1 was at least 1.85."""
    with pytest.raises(InvalidParameter):
        PolytopeNorm.for_target(epsilon=1, points=[corner, (0, 1)])  # type: ignore[list-item]
    with pytest.raises(InvalidParameter):
        PolytopeNorm(points=(corner, (0, 1)), noise_scale=1)  # type: ignore[arg-type]


def test_narrow_integers_do_not_wrap() -> None:
    """Each quantity against the same with Python's integers."""
    for kind in (OptimalSelection, GaussianSelection):
        shape = (
            {"epsilon": 1, "delta": 0.1} if kind is OptimalSelection else {"noise_std": 9, "threshold": 99}
        )
        narrow = kind(**shape, keys=np.uint8(129), replaced=True)
        assert narrow.moved == 258
        assert narrow == kind(**shape, keys=129, replaced=True)
    matrix = np.array([[1, 0], [1, 1]], dtype=np.int8)
    rows = Workload(matrix=matrix, rows=np.int8(100))  # type: ignore[arg-type]
    assert rows.sensitivities(rows.matrix) == (200, 20_000)
    unit = KeysOfAUnit(keys=np.uint8(16), each=np.uint8(16))
    assert (unit.keys, unit.each, unit.total) == (16, 16, 256)
    assert type(unit.total) is int
    picked = partition_selection(epsilon=1, delta=1e-3, keys=np.int8(100), replaced=np.bool_(True))
    assert picked == partition_selection(epsilon=1, delta=1e-3, keys=100, replaced=True)


def test_the_smallest_entry_of_a_narrow_type_has_a_size() -> None:
    """|-2^63| does not exist in 64 bits; the entry passed as small."""
    with pytest.raises(InvalidParameter):
        Workload(matrix=np.array([[-(2**63), 1]]))
    assert (
        Workload(matrix=np.array([[-128, 1]], dtype=np.int8)).sensitivities(np.array([[-128, 1]]))[0] == 128
    )


@pytest.mark.parametrize("said", ["no", "False", 0, 1, None, np.int8(0)])
def test_flags_are_flags(said: object) -> None:
    with pytest.raises(InvalidParameter):
        Score(1, monotone=said)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        CumulativeTree(bins=4, l1=1, epsilon=1, total_is_public=said)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        partition_selection(epsilon=1, delta=1e-3, replaced=said)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Workload(matrix=np.eye(2, dtype=int), absent=said)  # type: ignore[arg-type]


def test_masked_entries_are_not_put_on_a_grid() -> None:
    with pytest.raises(InvalidParameter, match="mask"):
        on_grid(np.ma.masked_array([1.5, 9e9], mask=[False, True]), spacing=1)


def test_two_columns_of_answers_are_two_questions() -> None:
    """Pooled they were one estimate of four people; each column has one of its own, and its own price."""
    mechanism = RandomizedResponse(epsilon=1)
    columns = np.array([[0, 1], [1, 1]])
    for call in (mechanism.estimate, mechanism.release):
        with pytest.raises(InvalidParameter, match="one column"):
            call(columns)
    assert [mechanism.estimate(c).sum() for c in columns.T] == pytest.approx([2, 2])
