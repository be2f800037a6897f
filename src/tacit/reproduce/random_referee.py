"""How often bounds under random differential privacy fail, counted over all samples: the slack of every mechanism."""

from __future__ import annotations

from fractions import Fraction

from tacit.guarantees import Neighbours
from tacit.random_data import (
    Overlap,
    OverlapCount,
    OverlapHistogram,
    RandomHistogram,
    RandomProportion,
    Referee,
)
from tacit.reproduce.base import Made, Reproduction

__all__ = ["HERE", "make"]

COLUMNS = ("mechanism", "n", "cells", "gamma", "law", "conditional", "iid", "slack")
BITS = tuple((40 - i, i) for i in (1, 2, 3, 5, 8, 13, 20, 30, 38))
CELLS = {
    2: ((1, 1), (9, 1), (39, 1), (19, 1)),
    3: ((1, 1, 1), (8, 1, 1), (18, 1, 1), (48, 1, 1), (4, 5, 1)),
    4: ((1, 1, 1, 1), (17, 1, 1, 1), (97, 1, 1, 1), (5, 5, 9, 1)),
}
Row = tuple[float | str, ...]


def make() -> Made:
    """All settings; a row each."""
    rows = [*_proportions(), *_histograms(), *_surveys()]
    worst = min(float(row[7]) for row in rows)
    iid = max(float(row[6]) / float(row[3]) for row in rows if row[6] != "")
    notes = (
        f"{len(rows)} settings of mechanism, size, gamma and law of the rows. No failure probability is above gamma.",
        f"The least slack, gamma minus the worst share of relabellings, is {worst:.4g}; the largest failure "
        f"probability of a law is {iid:.2f} of its gamma.",
        "conditional: the worst share of relabellings of any multiset (it does not depend on the law). iid: the "
        "probability of failing for the law with these weights. Exact, printed as floats.",
    )
    return Made(columns=COLUMNS, rows=tuple(rows), notes=notes)


def _rows(name: str, referee: Referee, gamma: float, laws: tuple[tuple[int, ...], ...]) -> list[Row]:
    worst = referee.conditional.gamma
    slack = float(Fraction(gamma) - worst)
    found: list[Row] = []
    for weights in laws:
        iid = referee.iid([Fraction(w, sum(weights)) for w in weights])
        told = ":".join(map(str, weights))
        found.append((name, referee.rows, referee.cells, gamma, told, float(worst), float(iid), slack))
    return found


def _proportions() -> list[Row]:
    found: list[Row] = []
    for relation in Neighbours:
        for n in (10, 30, 80):
            for gamma in (0.05, 0.1, 0.3):
                m = RandomProportion(rows=n, epsilon=1, gamma=gamma, neighbours=relation)
                referee = Referee(m.breaks, rows=n, cells=2, neighbours=relation)
                found += _rows(f"proportion, {relation.value}", referee, gamma, BITS)
    return found


def _histograms() -> list[Row]:
    found: list[Row] = []
    for relation in Neighbours:
        for n, k, gamma in ((20, 3, 0.3), (24, 2, 0.4), (16, 4, 0.6), (30, 3, 0.25)):
            for small, sharp in ((False, False), (True, False), (True, True)):
                m = RandomHistogram(
                    rows=n,
                    cells=k,
                    epsilon=1,
                    gamma=gamma,
                    small_cells=small,
                    sharp=sharp,
                    neighbours=relation,
                )
                kind = "sharp" if sharp else "(5.3)" if small else "(5.2)"
                referee = Referee(m.breaks, rows=n, cells=k, neighbours=relation)
                found += _rows(f"histogram {kind}, {relation.value}", referee, gamma, CELLS[k])
    return found


def _surveys() -> list[Row]:
    found: list[Row] = []
    for least in (14, 13, 12):
        overlap = Overlap(rows=15, attacker_rows=40, least_overlap=least)
        for gamma in (0.3, 0.5):
            count = OverlapCount(overlap=overlap, epsilon=1, gamma=gamma)
            cells = OverlapHistogram(overlap=overlap, cells=2, epsilon=1, gamma=gamma)
            for name, breaks in (("count", count.breaks), ("histogram", cells.breaks)):
                worst = overlap.worst(breaks, cells=2).gamma
                slack = float(Fraction(gamma) - worst)
                found.append(
                    (f"survey {name}, overlap {least}", 15, 2, gamma, "any", float(worst), "", slack)
                )
    return found


HERE = Reproduction(
    name="random-referee",
    title="Random differential privacy: how often bounds fail",
    source="the definition of Hall, Rinaldo, Wasserman 2011; the table is ours",
    make=make,
)
