"""Finds people who lie too close to synthetic rows for somebody whom the model never saw.

Synthetic rows that are drawn from a model of people are "not about anybody". A model that is close enough to the
people replays them: a leaf with one row copies it, a component around one row returns there. The attacker has rows of
people who may have been in the table, and rows of other people from the same population who surely were not. The score
of a person is s / (s + r), with s the distance to the nearest synthetic row and r the distance to the nearest other
person. The score is near 0 for anybody whose row is replayed, even far away from all other people, where chance
would hardly put a row. If somebody was not in the table, their score is exchangeable with those of the others,
each against all of the rest, so that

    p = (1 + number of others with a score of at most theirs) / (1 + number of others)

is at most a with probability at most a, whatever the model and the population (a conformal p-value; Vovk, Gammerman,
Shafer 2005). A person with p ≤ `false_alarms` is called a member of the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tacit.attacks.finding import Columns, Finding, coded, height
from tacit.attacks.membership_inference import area_under_curve
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.checks import probability, refuse_if

if TYPE_CHECKING:
    from tacit.exact.arrays import Floats

    Rows = Sequence[tuple[Floats, bool]]

CELLS = 1 << 21
"""This many distances are held at once."""


def replay(
    synthetic: Columns,
    people: Columns,
    others: Columns,
    *,
    columns: Sequence[str] = (),
    false_alarms: float = 0.05,
) -> Finding:
    """The members among `people` of the table behind the synthetic rows. `others` were not in it.

    columns: the columns to compare; by default all that the three tables share. Numbers are measured in interquartile
    ranges of the synthetic rows, any other two values are 1 apart, and so is a missing one from all others. `copies`
    counts people with an exactly repeated row, and `copies_of_others` counts others with one, as a baseline;
    `area_under_curve` is the probability that one of the people has a smaller score than one of the others.
    """
    import numpy as np

    alarms = probability("false_alarms", false_alarms)
    refuse_if(not 0 < alarms < 1, "false_alarms", alarms, "lie strictly between 0 and 1")
    names = [columns] if isinstance(columns, str) else list(columns) or _shared(synthetic, people, others)
    if not names:
        raise EmptyComposition(what="the list of columns that the three tables share")
    made, asked, out = (height(table, names) for table in (synthetic, people, others))
    refuse_if(made == 0, "synthetic", made, "have rows")
    refuse_if(asked == 0, "people", asked, "have rows")
    least = max(2, math.ceil(1 / alarms - 1e-9) - 1)
    if out < least:
        raise InvalidParameter(
            parameter="others", value=out, must=f"have at least {least:,} rows for {alarms:g} false alarms",
            hint="fewer can accuse nobody; add others, or allow more false alarms",
        )  # fmt: skip
    parts = [_comparable(synthetic[name], people[name], others[name]) for name in names]
    made_rows, asked_rows, other_rows = ([part[i] for part in parts] for i in range(3))
    near, usual = (_nearest(those, made_rows) for those in (asked_rows, other_rows))
    lone = _nearest(other_rows, other_rows, but_itself=True)
    scores, ranks = np.empty(asked), np.empty(asked, dtype=np.int64)
    for here, gaps in _distances(asked_rows, other_rows):
        scores[here] = _score(near[here], gaps.min(axis=1))
        # The others, each against the rest of them and this person: nobody is special in the comparison.
        against = _score(usual[None, :], np.minimum(gaps, lone[None, :]))
        ranks[here] = (against <= scores[here, None]).sum(axis=1)
    found = np.flatnonzero((1 + ranks) <= alarms * (1 + out) * (1 + 1e-12))
    return Finding(
        attack="replayed rows",
        people=asked,
        exposed=found.tolist(),
        learned=["member"] * int(found.size),
        guessing=alarms,
        alone="the share of false alarms that is allowed",
        details={
            "others": out,
            "copies": int((near == 0).sum()),
            "copies_of_others": int((usual == 0).sum()),
            "area_under_curve": area_under_curve(-scores, -_score(usual, lone)),
            "scores": [float(s) for s in scores[:20]],
        },
    )


def _shared(*tables: Columns) -> list[str]:
    """The columns that all have, in the order of the first."""
    known = [list(t.column_names) if hasattr(t, "column_names") else list(t) for t in tables]
    return [name for name in known[0] if all(name in other for other in known[1:])]


def _comparable(*columns: Any) -> list[tuple[Floats, bool]]:
    """Columns as numbers, in interquartile ranges of the first, NaN for missing; or as codes. True for numbers."""
    import numpy as np

    read = [_floats(column) for column in columns]
    if all(one is not None for one in read):
        values = [one for one in read if one is not None]
        there = values[0][~np.isnan(values[0])]
        scale = float(np.subtract(*np.quantile(there, [0.75, 0.25])) or there.std()) if len(there) else 0.0
        scale = scale if scale > 0 and math.isfinite(scale) else 1.0
        return [(one / scale, True) for one in values]
    return [(one.codes.astype(np.float64), False) for one in coded(*columns)]


def _floats(column: Any) -> Floats | None:
    """A column as finite numbers, NaN for a missing value; None if a value is no number."""
    import numpy as np

    cells = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    if any(isinstance(cell, bool | np.bool_) for cell in cells):
        return None
    try:
        found = np.array([math.nan if cell is None else float(cell) for cell in cells], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if np.isinf(found).any() else found


def _distances(rows: Rows, made: Rows) -> Iterator[tuple[slice, Floats]]:
    """Distances of some rows at a time to all of the others; 0 only between rows that agree in all columns."""
    import numpy as np

    count, width = len(rows[0][0]), len(made[0][0])
    step = max(1, CELLS // width)
    for start in range(0, count, step):
        here = slice(start, min(start + step, count))
        total = np.zeros((here.stop - start, width))
        for (mine, numeric), (theirs, _) in zip(rows, made, strict=True):
            a, b = mine[here, None], theirs[None, :]
            if numeric:
                gap = a - b
                # Both missing: no distance; one of them: 1.
                total += np.where(np.isnan(gap), np.isnan(a) != np.isnan(b), gap**2)
            else:
                total += a != b
        yield here, np.sqrt(total)


def _nearest(rows: Rows, made: Rows, *, but_itself: bool = False) -> Floats:
    """For each row the distance to the nearest made row; within one table, to the nearest other row."""
    import numpy as np

    nearest = np.empty(len(rows[0][0]))
    for here, gaps in _distances(rows, made):
        if but_itself:
            gaps[np.arange(len(gaps)), np.arange(here.start, here.stop)] = np.inf
        nearest[here] = gaps.min(axis=1)
    return nearest


def _score(near: Floats, usual: Floats) -> Floats:
    """s / (s + r), and a half if both are 0."""
    import numpy as np

    total = near + usual
    return np.asarray(np.where(total > 0, near / np.where(total > 0, total, 1.0), 0.5), dtype=np.float64)
