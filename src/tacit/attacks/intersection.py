"""Two releases about the same people, each k-anonymous, and what is left when both are read (composition).

Of somebody who is in all releases the attacker knows the quasi-identifiers. Each release leaves the sensitive values
of the classes that agree with them; all together leave what is in every one of these sets (Ganta, Kasiviswanathan,
Smith 2008; lecture 2, Figures 2.1 and 2.2). There is no law of composition for k-anonymity, and this is why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tacit.attacks.finding import Finding
from tacit.attacks.generalised import is_pattern, match_matrix, plain_key
from tacit.attacks.tables import Classes, Columns, check_roles, classes, coded
from tacit.errors import EmptyComposition

if TYPE_CHECKING:
    from tacit.exact.arrays import Booleans, Integers


__all__ = ["intersection", "possible_values"]

OTHER = object()
"""A value that no release shows: what is missing may be that one too."""


def _known(releases: Sequence[Columns], sensitive: str) -> dict[Any, int]:
    """A number for every sensitive value of all releases, and for one that none of them shows."""
    known: dict[Any, int] = {OTHER: 0}
    for release in releases:
        for value in coded(release[sensitive])[0].values:
            known.setdefault(value, len(known))
    return known


class _Left:
    """Which values each different person may have by one release: a sparse matrix of people and values."""

    def __init__(
        self, release: Columns, people: Columns, quasi: Sequence[str], sensitive: str, known: dict[Any, int]
    ) -> None:
        import numpy as np
        from scipy.sparse import csr_array

        check_roles(release, quasi, sensitive)
        check_roles(people, quasi)
        there = classes([coded(release[name])[0] for name in quasi])
        here = classes([coded(people[name])[0] for name in quasi])
        column = coded(release[sensitive])[0]
        numbers = np.array([known[v] for v in column.values], dtype=np.int64)
        told = column.codes >= 0
        rows, cells = there.of_row[told], numbers[column.codes[told]]
        missing = np.unique(there.of_row[~told])  # a missing value may be any
        rows = np.concatenate([rows, np.repeat(missing, len(known))])
        cells = np.concatenate([cells, np.tile(np.arange(len(known)), missing.size)])
        shape = (len(there.sizes), len(known))
        present = csr_array((np.ones(rows.size, dtype=np.int32), (rows, cells)), shape=shape)
        who, where = _agreeing(there, here)
        agree = csr_array(
            (np.ones(who.size, dtype=np.int32), (who, where)), shape=(len(here.sizes), shape[0])
        )
        self.of_person = here.of_row
        self.matrix = (agree @ present).sign()


def _agreeing(there: Classes, here: Classes) -> tuple[Integers, Integers]:
    """The pairs of a different person and a class that agree in all columns.

    Columns without generalised values are looked up; the others are compared, pattern by pattern.
    """
    import numpy as np

    width = len(there.values[0]) if there.values else 0
    exact = [c for c in range(width) if not any(is_pattern(v[c]) for v in there.values)]
    tests = [_comparison(there, here, c) for c in range(width) if c not in exact]
    at: dict[tuple[Any, ...], list[int]] = {}
    for i, values in enumerate(there.values):
        at.setdefault(tuple(plain_key(values[c]) for c in exact), []).append(i)
    lists = {key: np.array(found, dtype=np.int64) for key, found in at.items()}
    everywhere = np.arange(len(there.values), dtype=np.int64)
    who, where = [], []
    for i, own in enumerate(here.values):
        if all(own[c] is not None for c in exact):
            candidates = lists.get(tuple(plain_key(own[c]) for c in exact))
            if candidates is None:
                continue
        else:
            candidates = everywhere[
                [
                    all(own[c] is None or plain_key(own[c]) == plain_key(v[c]) for c in exact)
                    for v in there.values
                ]
            ]
        for matrix, rows, columns in tests:
            candidates = candidates[matrix[rows[i], columns[candidates]]]
        who.append(np.full(candidates.size, i, dtype=np.int64))
        where.append(candidates)
    empty = np.zeros(0, dtype=np.int64)
    return (np.concatenate(who), np.concatenate(where)) if who else (empty, empty)


def _comparison(there: Classes, here: Classes, column: int) -> tuple[Booleans, Integers, Integers]:
    """Whether an own value agrees with a published one, and where each person's and each class's value stands."""
    import numpy as np

    shown = list(dict.fromkeys(v[column] for v in there.values))
    own = list(dict.fromkeys(v[column] for v in here.values))
    at_shown = {v: i for i, v in enumerate(shown)}
    at_own = {v: i for i, v in enumerate(own)}
    rows = np.array([at_own[v[column]] for v in here.values], dtype=np.int64)
    columns = np.array([at_shown[v[column]] for v in there.values], dtype=np.int64)
    return match_matrix(shown, own), rows, columns


def _single(matrix: Any) -> Booleans:
    """Who is left with one value that is shown."""
    import numpy as np

    unknown = np.asarray(matrix[:, [0]].toarray()).ravel() != 0
    return np.asarray((np.diff(matrix.indptr) == 1) & ~unknown)


def possible_values(
    release: Columns, people: Columns, *, quasi: Sequence[str], sensitive: str
) -> list[set[Any]]:
    """Which sensitive values each person may have by one release.

    Published values may be generalised (`130**`, `<30`, `20-29`); see `tacit.attacks.generalised`. Nobody whom no class
    agrees with is in the release, and then no value is left.
    """
    check_roles(release, quasi, sensitive)
    known = _known([release], sensitive)
    left = _Left(release, people, quasi, sensitive, known)
    values = list(known)
    ends, cells = left.matrix.indptr, left.matrix.indices
    sets = [{values[j] for j in cells[ends[i] : ends[i + 1]] if j} for i in range(left.matrix.shape[0])]
    return [sets[i] for i in left.of_person]


def intersection(
    releases: Sequence[Columns], people: Columns, *, quasi: Sequence[str], sensitive: str
) -> Finding:
    """The people of whom one sensitive value is left by all releases together.

    `details["by_one_release"]` says how many each release exposes by itself.
    """
    import numpy as np

    if not releases:
        raise EmptyComposition(what="the list of releases")
    for release in releases:
        check_roles(release, quasi, sensitive)
    known = _known(releases, sensitive)
    found = [_Left(release, people, quasi, sensitive, known) for release in releases]
    values = list(known)
    alone, left = [], None
    for one in found:
        alone.append(int(np.count_nonzero(_single(one.matrix)[one.of_person])))
        left = one.matrix if left is None else left.multiply(one.matrix).tocsr()
    assert left is not None
    left.eliminate_zeros()
    sizes = np.diff(left.indptr)[found[0].of_person]
    exposed = np.flatnonzero(_single(left)[found[0].of_person])
    first = left.indices[left.indptr[found[0].of_person[exposed]]]
    column = coded(releases[0][sensitive])[0].codes
    common = float(np.bincount(column[column >= 0]).max() / column.size) if (column >= 0).any() else 0.0
    return Finding(
        attack="intersection",
        people=int(sizes.size),
        exposed=exposed.tolist(),
        learned=[values[i] for i in first.tolist()],
        guessing=common,
        alone="the commonest value of the first release",
        details={
            "by_one_release": alone,
            "left": float(sizes.mean()) if sizes.size else 0.0,
            "not_in_all": int(np.count_nonzero(sizes == 0)),
        },
    )
