"""Moments for least squares: the sums by hand, the sensitivity from the definition, coefficients, intervals."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.curator.fitting import _solved
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


def exact_coefficients(rows: pd.DataFrame) -> np.ndarray:
    """The least-squares solution of the sums without noise, in the columns' own units."""
    a = np.zeros((4, 4))
    for value, (i, j) in zip(
        by_hand(rows), itertools.combinations_with_replacement(range(4), 2), strict=True
    ):
        a[i, j] = a[j, i] = value / TOP
    b = np.linalg.solve(a[:3, :3], a[:3, 3])
    return np.array([5 + 10 * (b[0] - b[1]), 10 * b[1] / 5, 10 * b[2] / 4])


def with_noise(release: tacit.Release, noise: np.ndarray) -> tacit.Release:
    """The same release, had its noise been this."""
    noisy = replace(release.noisy, parts={**release.noisy.parts, "moments": noise})
    return replace(release, noisy=noisy)


def test_intervals_hold_all_coefficients_at_once() -> None:
    """noisy-least-squares: whatever the noise within its half-widths, at its ends above all, every coefficient is
    covered; and where the noise may hide the solution, nothing is claimed."""
    rows = frame(3, 800)
    truth, sums_ = exact_coefficients(rows), by_hand(rows)
    held = tacit.Curator(rows, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=1e6))
    draw = np.random.default_rng(8)
    nearest = np.inf
    for epsilon in (20, 2):
        release = held.release(ASKED, epsilon=epsilon)
        half = release.planned.assignment.half_widths(Fraction(4, 5), coordinates=10)["moments"]
        reach = np.broadcast_to(np.asarray(half, dtype=np.float64), sums_.shape)
        signs = [draw.choice((-1, 1), size=10) for _ in range(150)]
        for share in [*signs, *(s * draw.uniform(size=10) for s in signs[:50])]:
            noise = np.trunc(share * reach).astype(np.int64)
            found = tacit.least_squares(with_noise(release, sums_ + noise), confidence=0.8)
            assert ((found.low <= truth) & (truth <= found.high)).all()
            if epsilon == 20:
                assert np.isfinite(found.high - found.low).all()
                room = np.minimum(truth - found.low, found.high - truth) / (found.high - found.low)
                nearest = min(nearest, float(room.min()))
    # noise at its ends comes near the end of an interval: it is not wide for nothing
    assert 0 <= nearest < 0.25
    hidden = tacit.least_squares(held.release(ASKED, epsilon=0.001))
    assert not np.isfinite(hidden.high - hidden.low).all()


def test_solutions_of_all_noisy_systems_with_two_unknowns() -> None:
    """noisy-least-squares (2): every corner of the box of errors, for systems near and far from singular; noise far
    outside of the half-widths is not covered."""
    draw = np.random.default_rng(4)
    finite = missed = 0
    for _ in range(120):
        root = draw.normal(size=(2, 2))
        exact, right = root @ root.T + 0.2 * np.eye(2), draw.normal(size=2)
        wide, more = draw.uniform(0, 0.15, size=3), draw.uniform(0, 0.3, size=2)
        b = np.linalg.solve(exact, right)
        h = np.array([[wide[0], wide[1]], [wide[1], wide[2]]])
        for signs in itertools.product((-1, 1), repeat=5):
            e = h * np.array([[signs[0], signs[1]], [signs[1], signs[2]]])
            found, r = _solved(exact + e, right + more * signs[3:], h, more)
            assert (np.abs(found - b) <= r).all()
            finite += bool(np.isfinite(r).all())
            far, r = _solved(exact + 3 * e, right + 3 * more * signs[3:], h, more)
            missed += bool((np.abs(far - b) > r).any())
    assert finite > 1500
    assert missed > 200


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
