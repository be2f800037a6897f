"""The boundary of a convex hull of integer points as simplices: found in floats, proved in integers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter, NotCertified

__all__ = ["Point", "facets"]

Point = tuple[int, ...]
MOST_DIMENSIONS = 6
MOST_FACETS = 5000


def facets(points: Sequence[Point]) -> tuple[tuple[tuple[Point, ...], ...], tuple[int, ...]]:
    """The boundary of the hull of +-points as simplices, with |det| of each: found in floats, proved in integers.

    Proved: every simplex lies in a supporting hyperplane, each of its ridges belongs to exactly one other simplex,
    on the other side, and one ray from 0 meets one simplex only: so that the cones cover space exactly once.
    """
    if not points or not points[0]:
        raise EmptyComposition(what="the list of moves")
    d = len(points[0])
    if d > MOST_DIMENSIONS:
        raise NotCertified(
            what="a hull", reason=f"{d} dimensions are too many for its facets", hint="use Laplace noise"
        )
    both = sorted({p for p in points if any(p)} | {tuple(-x for x in p) for p in points if any(p)})
    if _rank(both) < d:
        raise InvalidParameter(
            parameter="points", value=f"{len(points)} points", must=f"span {d} dimensions",
            hint="leave out queries that the others determine",
        )  # fmt: skip
    if d == 1:
        far = max(both)
        return ((far,), (tuple(-x for x in far),)), (far[0], far[0])
    return _proved(tuple(both))


@lru_cache(maxsize=64)
def _proved(points: tuple[Point, ...]) -> tuple[tuple[tuple[Point, ...], ...], tuple[int, ...]]:
    """Found and proved once: the hull depends on no price, and every price asks for it."""
    cones = _hull(points)
    _prove(cones, points)
    return cones, tuple(abs(_det(c)) for c in cones)


def _hull(points: Sequence[Point]) -> tuple[tuple[Point, ...], ...]:
    """The facets of the hull, each cut into simplices by pulling its corners in one order for all of them."""
    from scipy.spatial import ConvexHull, QhullError

    unknown = NotCertified(what="a hull", reason="its facets were not found", hint="use Laplace noise")
    try:
        simplices = ConvexHull(np.array(points, dtype=np.float64), qhull_options="Qt").simplices
    except QhullError:
        raise unknown from None
    table = np.array(points, dtype=object)
    faces: dict[tuple[int, ...], frozenset[int]] = {}
    for simplex in simplices:
        cone = [points[i] for i in simplex]
        if _det(cone):
            normal, level = _plane(cone)
            on = np.flatnonzero(table @ np.array(normal, dtype=object) == level)
            faces.setdefault((*normal, level), frozenset(int(i) for i in on))
    sets = list(faces.values())
    cones = [tuple(sorted(c)) for face in sets for c in _pulled(face, sets, points)]
    if len(cones) > MOST_FACETS:
        raise NotCertified(what="a hull", reason=f"it has {len(cones)} facets", hint="use Laplace noise")
    return tuple(tuple(points[i] for i in c) for c in cones)


def _pulled(
    face: frozenset[int], facets_: list[frozenset[int]], points: Sequence[Point]
) -> list[frozenset[int]]:
    """The face as simplices: its first corner joined to those of its own facets that do not hold that corner."""
    rank = _rank([points[i] for i in face])
    if len(face) == rank:
        return [face]
    cuts = {face & other for other in facets_ if other != face}
    sides = [
        c for c in cuts if len(c) >= rank - 1 and c != face and _rank([points[i] for i in c]) == rank - 1
    ]
    apex = min(face)
    return [c | {apex} for side in sides if apex not in side for c in _pulled(side, facets_, points)]


def _prove(cones: Sequence[tuple[Point, ...]], points: Sequence[Point]) -> None:
    wrong = NotCertified(what="a hull", reason="its facets could not be proved", hint="use Laplace noise")
    ridges: dict[tuple[Point, ...], list[Point]] = {}
    table = np.array(points, dtype=object)
    for cone in cones:
        det = _det(cone)
        if det == 0:
            raise wrong
        normal, level = _plane(cone)
        if any(v > level for v in table @ np.array(normal, dtype=object)):
            raise wrong
        for i, corner in enumerate(cone):
            ridges.setdefault(cone[:i] + cone[i + 1 :], []).append(corner)
    for ridge, corners in ridges.items():
        if len(corners) != 2 or _det((*ridge, corners[0])) * _det((*ridge, corners[1])) >= 0:
            raise wrong
    ray = [sum(x) for x in zip(*cones[0], strict=True)]
    if sum(_inside(cone, ray) for cone in cones) != 1:
        raise wrong


def _matrix(cone: Sequence[Point]) -> Any:
    from flint import fmpq_mat

    return fmpq_mat(len(cone), len(cone), list(itertools.chain.from_iterable(cone)))


def _det(cone: Sequence[Point]) -> int:
    return int(_matrix(cone).det().p)


def _plane(cone: Sequence[Point]) -> tuple[list[int], int]:
    """Whole numbers n and a level c > 0, in lowest terms, with n v = c for each corner v."""
    from flint import fmpq_mat

    found = _matrix(cone).solve(fmpq_mat(len(cone), 1, [1] * len(cone)))
    level = math.lcm(*(int(found[i, 0].q) for i in range(len(cone))))
    return [int(found[i, 0].p) * (level // int(found[i, 0].q)) for i in range(len(cone))], level


def _inside(cone: Sequence[Point], ray: Sequence[int]) -> bool:
    from flint import fmpq_mat

    found = _matrix(cone).transpose().solve(fmpq_mat(len(cone), 1, list(ray)))
    return all(found[i, 0] >= 0 for i in range(len(cone)))


def _rank(points: Sequence[Point]) -> int:
    from flint import fmpz_mat

    return int(fmpz_mat(len(points), len(points[0]), list(itertools.chain.from_iterable(points))).rank())
