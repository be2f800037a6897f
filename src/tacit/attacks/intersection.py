"""Two k-anonymous releases about the same people, and the values that remain possible after reading both (composition).

The attacker knows the quasi-identifiers of a person who is in all releases. Each release leaves a set of
possible sensitive values. All releases together leave the intersection (Ganta, Kasiviswanathan, Smith 2008;
lecture 2, Figures 2.1 and 2.2), so k-anonymity has no law of composition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tacit.attacks.finding import Columns, Finding, ReleasedClasses, check_roles, classes, coded
from tacit.errors import EmptyComposition

if TYPE_CHECKING:
    from tacit.exact.arrays import Booleans, Integers

# Values as anonymised tables write them, and whether a person's own value is one of those they stand for.
#
# *            everything               130**        begins with 130 (and is as long)
# <30  <=30    a number below           28 or 28.0   itself
# >=40 ≥40     a number from there on   20-29        from 20 to 29, both ends
# [20, 30)     intervals as written     {a, b}       one of a list

NUMBER = r"[-+]?\d+(?:\.\d+)?"
_COMPARED = re.compile(rf"^\s*(<=|>=|<|>|≤|≥)\s*({NUMBER})\s*$")
_INTERVAL = re.compile(rf"^\s*([\[(])\s*({NUMBER})\s*[,;]\s*({NUMBER})\s*([\])])\s*$")
_RANGE = re.compile(rf"^\s*({NUMBER})\s*(?:-|–|to|\.\.)\s*({NUMBER})\s*$")
_LIST = re.compile(r"^\s*\{(.*)\}\s*$", re.S)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _span(text: str) -> tuple[float, float, bool, bool] | None:
    """The range that a published value stands for: both ends, and whether each is excluded; None if it is no range."""
    if found := _COMPARED.match(text):
        edge = float(found[2])
        if found[1] in ("<", "<=", "≤"):
            return -math.inf, edge, False, found[1] == "<"
        return edge, math.inf, found[1] == ">", False
    if found := _INTERVAL.match(text):
        return float(found[2]), float(found[3]), found[1] == "(", found[4] == ")"
    if found := _RANGE.match(text):
        return float(found[1]), float(found[2]), False, False
    return None


def _reader(shown: Any) -> Callable[[Any], bool]:
    """A published value as a test of a person's own value."""
    if shown is None:
        return lambda own: True  # a removed value excludes nobody
    text = str(shown).strip()
    if set(text) == {"*"}:
        return lambda own: True
    if found := _LIST.match(text):
        tests = [_reader(part) for part in found[1].split(",")]
        return lambda own: any(test(own) for test in tests)
    if span := _span(text):
        low, high, above, below = span

        def inside(own: Any) -> bool:
            x = _number(own)
            if x is None:
                return str(own).strip() == text
            return (x > low if above else x >= low) and (x < high if below else x <= high)

        return inside
    if "*" in text:
        pattern = re.compile("".join("." if c == "*" else re.escape(c) for c in text), re.S)
        return lambda own: pattern.fullmatch(str(own)) is not None
    key = plain_key(text)
    return lambda own: bool(plain_key(own) == key)


def agrees(shown: Any, own: Any) -> bool:
    """Whether a person with this value may be behind the published value. An unknown value excludes nobody."""
    return own is None or _reader(shown)(own)


def is_pattern(shown: Any) -> bool:
    """Does a published value stand for more than itself?"""
    if shown is None:
        return True
    text = str(shown).strip()
    return "*" in text or _LIST.match(text) is not None or _span(text) is not None


def plain_key(value: Any) -> Any:
    """A key on which two equal values without patterns agree: a number, or the text."""
    number = _number(value)
    return str(value).strip() if number is None else number


def match_matrix(shown: Sequence[Any], own: Sequence[Any]) -> Booleans:
    """`agrees` for all pairs: a row for each exact value, a column for each published one."""
    import numpy as np

    found = np.zeros((len(own), len(shown)), dtype=np.bool_)
    read = [_number(x) for x in own]
    # Spans of numbers are compared all at once; own values that are no numbers, and other patterns, one by one.
    quick = all(x is not None for x in read)
    numbers = np.array([math.nan if x is None else x for x in read])
    for column, value in enumerate(shown):
        span = _span(str(value).strip()) if quick and value is not None else None
        if span is None:
            test = _reader(value)
            found[:, column] = [x is None or test(x) for x in own]
        else:
            low, high, above, below = span
            found[:, column] = (numbers > low if above else numbers >= low) & (
                numbers < high if below else numbers <= high
            )
    return found


OTHER = object()
"""A value that no release shows, for which a missing entry may stand."""


def _known(releases: Sequence[Columns], sensitive: str) -> dict[Any, int]:
    """Numbers every sensitive value of all releases, with one more number for a value that none of them has."""
    known: dict[Any, int] = {OTHER: 0}
    for release in releases:
        for value in coded(release[sensitive])[0].values:
            known.setdefault(value, len(known))
    return known


class _Left:
    """The possible values of each distinct person by one release: a sparse matrix of people and values."""

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


def _agreeing(there: ReleasedClasses, here: ReleasedClasses) -> tuple[Integers, Integers]:
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


def _comparison(
    there: ReleasedClasses, here: ReleasedClasses, column: int
) -> tuple[Booleans, Integers, Integers]:
    """Whether an exact value agrees with a published one, and the places of each person's and each class's
    value.
    """
    import numpy as np

    shown = list(dict.fromkeys(v[column] for v in there.values))
    own = list(dict.fromkeys(v[column] for v in here.values))
    at_shown = {v: i for i, v in enumerate(shown)}
    at_own = {v: i for i, v in enumerate(own)}
    rows = np.array([at_own[v[column]] for v in here.values], dtype=np.int64)
    columns = np.array([at_shown[v[column]] for v in there.values], dtype=np.int64)
    return match_matrix(shown, own), rows, columns


def _single(matrix: Any) -> Booleans:
    """The people for whom exactly one shown value remains."""
    import numpy as np

    unknown = np.asarray(matrix[:, [0]].toarray()).ravel() != 0
    return np.asarray((np.diff(matrix.indptr) == 1) & ~unknown)


def possible_values(
    release: Columns, people: Columns, *, quasi: Sequence[str], sensitive: str
) -> list[set[Any]]:
    """The sensitive values that each person may have by one release.

    Published values may be generalised (`130**`, `<30`, `20-29`); see `Generalised`. A person with whom no class
    agrees is not in the release, and no value remains for that person.
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
    """The people for whom all releases together leave one sensitive value.

    `details["by_one_release"]` counts the people whom each release exposes alone.
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
