"""Two releases about the same people, each k-anonymous, and what is left when both are read (composition).

Of somebody who is in all releases the attacker knows the quasi-identifiers. Each release leaves the sensitive values
of the classes that agree with them; all together leave what is in every one of these sets (Ganta, Kasiviswanathan,
Smith 2008; lecture 2, Figures 2.1 and 2.2). There is no law of composition for k-anonymity, and this is why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tacit.attacks.finding import Finding
from tacit.attacks.generalised import match_matrix
from tacit.attacks.tables import Classes, Columns, check_roles, classes, coded
from tacit.errors import EmptyComposition

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Truths = npt.NDArray[np.bool_]

__all__ = ["intersection", "possible_values"]

AT_ONCE = 20_000_000
"""Pairs of a person and a class that are compared at a time."""


def possible_values(
    release: Columns,
    people: Columns,
    *,
    quasi: Sequence[str],
    sensitive: str,
    values: Sequence[Any] | None = None,
) -> tuple[Truths, list[Any]]:
    """Which sensitive values each person may have by one release: a row a person, a column a value.

    Published values may be generalised (`130**`, `<30`, `20-29`); see `tacit.attacks.generalised`. Nobody whom no class
    agrees with is in the release, and then no value is left.
    """
    import numpy as np

    check_roles(release, quasi, sensitive)
    check_roles(people, quasi)
    there = classes([coded(release[name])[0] for name in quasi])
    here = classes([coded(people[name])[0] for name in quasi])
    column = coded(release[sensitive])[0]
    known = list(values) if values is not None else list(column.values)
    number = {value: i for i, value in enumerate(known)}
    for value in column.values:
        if value not in number:
            number[value] = len(known)
            known.append(value)
    to_known = np.array([number[v] for v in column.values], dtype=np.int64)
    present = np.zeros((len(there.sizes), len(known)), dtype=np.bool_)
    told = column.codes >= 0
    present[there.of_row[told], to_known[column.codes[told]]] = True
    present[np.unique(there.of_row[~told])] = True  # a missing value may be anything
    return _reach(there, here, present)[here.of_row], known


def _reach(there: Classes, here: Classes, present: Truths) -> Truths:
    """For each different person, the values of all classes that agree with her."""
    import numpy as np

    tests = []
    for column in range(len(there.values[0]) if there.values else 0):
        shown = list(dict.fromkeys(v[column] for v in there.values))
        own = list(dict.fromkeys(v[column] for v in here.values))
        at_shown = {v: i for i, v in enumerate(shown)}
        at_own = {v: i for i, v in enumerate(own)}
        rows = np.array([at_own[v[column]] for v in here.values], dtype=np.int64)
        columns = np.array([at_shown[v[column]] for v in there.values], dtype=np.int64)
        tests.append((match_matrix(shown, own), rows, columns))
    found = np.zeros((len(here.values), present.shape[1]), dtype=np.bool_)
    step = max(1, AT_ONCE // max(1, len(there.values)))
    for start in range(0, len(here.values), step):
        part = slice(start, start + step)
        agree = np.ones((len(here.values[part]), len(there.values)), dtype=np.bool_)
        for matrix, rows, columns in tests:
            agree &= matrix[rows[part]][:, columns]
        found[part] = (agree.astype(np.float32) @ present.astype(np.float32)) > 0
    return found


def intersection(
    releases: Sequence[Columns], people: Columns, *, quasi: Sequence[str], sensitive: str
) -> Finding:
    """The people of whom one sensitive value is left by all releases together.

    `details["by_one_release"]` says how many each release exposes by itself.
    """
    import numpy as np

    if not releases:
        raise EmptyComposition(what="the list of releases")
    values: list[Any] = []
    found: list[Truths] = []
    for release in releases:
        possible, values = possible_values(release, people, quasi=quasi, sensitive=sensitive, values=values)
        found.append(possible)
    padded = [np.pad(f, ((0, 0), (0, len(values) - f.shape[1]))) for f in found]
    left = np.all(padded, axis=0)
    exposed = np.flatnonzero(left.sum(axis=1) == 1)
    alone = [int(np.count_nonzero(f.sum(axis=1) == 1)) for f in padded]
    column = coded(releases[0][sensitive])[0].codes
    common = float(np.bincount(column[column >= 0]).max() / column.size) if (column >= 0).any() else 0.0
    return Finding(
        attack="intersection",
        people=int(left.shape[0]),
        exposed=exposed.tolist(),
        learned=[values[i] for i in left[exposed].argmax(axis=1).tolist()],
        guessing=common,
        alone="the commonest value of the first release",
        details={
            "by_one_release": alone,
            "left": float(left.sum(axis=1).mean()) if left.size else 0.0,
            "not_in_all": int(np.count_nonzero(left.sum(axis=1) == 0)),
        },
    )
