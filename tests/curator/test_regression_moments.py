"""Moments for least squares: the sums by hand, the sensitivity from the definition, coefficients, intervals."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import InvalidParameter, WrongType
from tacit.parties import joint_release
from tacit.sources import open_table
from tacit.statistics import read

SCHEMA = {
    "x": tacit.number(0, 10, spacing=0.5), "z": tacit.integer(-4, 4), "y": tacit.number(-5, 15, spacing=0.5),
    "k": tacit.category(["a", "b"]),
}  # fmt: skip
ASKED = tacit.regression_moments(["x", "z"], "y")
TOP = 1 << 20


def frame(seed: int, rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x, z = rng.integers(0, 21, rows) / 2, rng.integers(-4, 5, rows)
    y = np.round(2 * (1 + 0.6 * x - 0.5 * z + rng.normal(0, 1, rows))) / 2
    return pd.DataFrame({"x": x, "z": z, "y": y, "k": rng.choice(["a", "b"], rows)})


def sums(rows: pd.DataFrame, unit: object) -> np.ndarray:
    question = ASKED.on(
        tacit.Curator(rows, protect=unit, schema=SCHEMA, budget=tacit.Pure(epsilon=1)).schema, unit
    )
    return read(open_table(rows, schema=SCHEMA, unit=unit), [question])[0]["moments"]


def by_hand(rows: pd.DataFrame) -> np.ndarray:
    y = rows.y.clip(-5, 15)
    scaled = [np.rint(1024 * v) for v in (0 * rows.x + 1, rows.x / 5 - 1, rows.z / 4, (y + 5) / 10 - 1)]
    return np.array(
        [int((scaled[i] * scaled[j]).sum()) for i, j in itertools.combinations_with_replacement(range(4), 2)]
    )


def test_the_sums_by_hand_with_gaps() -> None:
    rows = frame(1, 200)
    unit = tacit.rows()
    assert (sums(rows, unit) == by_hand(rows)).all()
    rows.loc[5, "x"] = None
    assert (sums(rows, unit) == by_hand(rows.drop(index=5))).all()


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace-one"])
def test_no_row_moves_the_sums_further_than_the_sensitivity(neighbours: str) -> None:
    unit = tacit.rows(neighbours=neighbours)
    corners = [
        pd.DataFrame({"x": [float(x)], "z": [z], "y": [float(y)], "k": ["a"]})
        for x, z, y in itertools.product((0, 5, 10), (-4, 0, 4), (-5, 5, 15))
    ]
    points = [by_hand(c) for c in corners]
    if neighbours == "add-or-remove":
        points.append(np.zeros(10, dtype=int))
    moves = [np.abs(a - b) for a, b in itertools.combinations(points, 2)]
    if neighbours == "add-or-remove":
        moves = [np.abs(p) for p in points]
    told = ASKED.sensitivity(
        unit, tacit.Curator(corners[0], protect=unit, schema=SCHEMA, budget=tacit.Pure(epsilon=1)).schema
    )
    assert max(int(m.sum()) for m in moves) <= told.l1 <= 20 * TOP
    assert max(int((m.astype(object) ** 2).sum()) for m in moves) <= told.l2_squared
    assert max(int(m.max()) for m in moves) <= told.linf
    if neighbours == "add-or-remove":
        assert told.l1 == 10 * TOP


def test_coefficients_of_one_curator_and_of_several_holders() -> None:
    frames = [frame(i) for i in range(4)]
    pooled = pd.concat(frames)
    y = pooled.y.clip(-5, 15)
    truth = np.linalg.lstsq(np.column_stack([np.ones(len(pooled)), pooled.x, pooled.z]), y, rcond=None)[0]
    held = [
        tacit.Curator(f, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=10), table=f"t{i}")
        for i, f in enumerate(frames)
    ]
    (joint,) = joint_release(held, ASKED, fewest=4, colluding=0, appearances=1, epsilon=1)
    one = tacit.Curator(pooled, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=10)).release(
        ASKED, epsilon=1
    )
    for release in (joint, one):
        found = tacit.least_squares(release)
        assert found.names == ("(constant)", "x", "z")
        assert ((found.low - 0.01 <= truth) & (truth <= found.high + 0.01)).all()
        assert np.abs(found.value - truth).max() < 0.3
        assert (found.high - found.low).max() < 3
        assert "for all at once" in str(found)
        assert list(found.table["term"]) == list(found.names)
    assert {str(c.spent) for c in held} == {"epsilon = 1"}


def test_intervals_hold_all_coefficients_at_once() -> None:
    """At a loud and a faint price: how often all three are covered, by the exact moments' own solution."""
    rows = frame(3, 800)
    exact = by_hand(rows) / TOP
    a = np.zeros((4, 4))
    for value, (i, j) in zip(exact, itertools.combinations_with_replacement(range(4), 2), strict=True):
        a[i, j] = a[j, i] = value
    b = np.linalg.solve(a[:3, :3], a[:3, 3])
    truth = np.array([5 + 10 * (b[0] - b[1]), 10 * b[1] / 5, 10 * b[2] / 4])
    held = tacit.Curator(rows, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=1e6))
    met = 0
    for _ in range(40):
        found = tacit.least_squares(held.release(ASKED, epsilon=2), confidence=0.8)
        met += bool(((found.low <= truth) & (truth <= found.high)).all())
    assert met >= 26
    hidden = tacit.least_squares(held.release(ASKED, epsilon=0.001))
    assert not np.isfinite(hidden.high - hidden.low).all()


def test_bad_input() -> None:
    unit = tacit.rows()
    held = tacit.Curator(frame(1, 20), protect=unit, schema=SCHEMA, budget=tacit.Pure(epsilon=1))
    for asked, error in (
        (lambda: tacit.regression_moments([], "y"), tacit.TacitError),
        (lambda: tacit.regression_moments(["y"], "y"), InvalidParameter),
        (lambda: tacit.regression_moments(["k"], "y").on(held.schema, unit), WrongType),
        (lambda: tacit.least_squares(held.release(tacit.count(), epsilon=0.1)), InvalidParameter),
        (lambda: tacit.least_squares(3), InvalidParameter),
    ):
        with pytest.raises(error):
            asked()
