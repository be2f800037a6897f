"""Linkage on sparse histories with errors: the scoreboard of Narayanan and Shmatikov (2008), and its eccentricity rule.

A release has the history of each person: items, perhaps a value and a date for each. The attacker knows a few entries
of somebody, some of them wrong and dates by about two weeks. Every history gets the score

    Σ over known entries i that it has:  w_i (exp(-|value - value_i| / s) + exp(-|day - day_i| / d)),
    w_i = 1 / ln(1 + number of histories with the item),

and the best one is named if it stands out: best - second best ≥ eccentricity · standard deviation of all scores.
Rare items weigh more, and a wrong entry costs only its own weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tacit.attacks.finding import Columns, Finding, check_roles, classes, coded, height
from tacit.errors import BadData, InvalidParameter, UnknownName
from tacit.exact.checks import positive, refuse_if, whole
from tacit.exact.data_classes import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tacit.exact.arrays import Floats, Integers

# What a k-anonymous table still tells: homogeneity, background knowledge, skewness.
#
# The attacker knows in which class of rows a person lies, because that is what quasi-identifiers are, and reads the
# sensitive values of the class (Machanavajjhala et al. 2006; Li, Li, Venkatasubramanian 2007). No k prevents it.


class _Counted:
    """The table as classes and values: how often each value occurs in each class, as sparse pairs."""

    def __init__(self, table: Columns, quasi: Sequence[str], sensitive: str) -> None:
        import numpy as np

        self.rows = check_roles(table, quasi, sensitive)
        refuse_if(self.rows == 0, "table", 0, "have rows")
        self.classes = classes([coded(table[name])[0] for name in quasi])
        column = coded(table[sensitive])[0]
        # A missing value is a value of its own: that somebody has none can be learned too.
        self.values = [*column.values, None]
        self.value_of_row = np.where(column.codes < 0, len(column.values), column.codes)
        self.totals = np.bincount(self.value_of_row, minlength=len(self.values))
        pair = self.classes.of_row * len(self.values) + self.value_of_row
        pairs, self.in_pair = np.unique(pair, return_counts=True)
        self.class_of_pair = pairs // len(self.values)
        self.value_of_pair = pairs % len(self.values)

    @property
    def commonest(self) -> float:
        """The success of guessing the commonest value."""
        return float(self.totals.max() / self.rows)

    def number(self, value: object) -> int:
        """The number of a value; refuses an unknown one under its typed name."""
        for code, known in enumerate(self.values[:-1]):
            if known == value or str(known) == str(value):
                return code
        raise UnknownName(what="sensitive value", name=str(value), known=())

    def left_with_one(self, keep: npt.NDArray[np.bool_]) -> tuple[Integers, Integers]:
        """Rows of pairs in classes with one remaining value: the people and the value."""
        import numpy as np

        many = np.bincount(self.class_of_pair[keep], minlength=len(self.classes.sizes))
        only = np.full(len(self.classes.sizes), -1, dtype=np.int64)
        only[self.class_of_pair[keep]] = self.value_of_pair[keep]
        only[many != 1] = -1
        told = only[self.classes.of_row]
        rows = np.flatnonzero((told >= 0) & (told == self.value_of_row))
        return rows, told[rows]


def homogeneity(table: Columns, *, quasi: Sequence[str], sensitive: str) -> Finding:
    """Finds classes whose rows share one sensitive value, so that everybody known to be in the class has it."""
    import numpy as np

    counted = _Counted(table, quasi, sensitive)
    rows, told = counted.left_with_one(np.ones(len(counted.in_pair), dtype=np.bool_))
    return Finding(
        attack="homogeneity",
        people=counted.rows,
        exposed=rows.tolist(),
        learned=[counted.values[v] for v in told.tolist()],
        guessing=counted.commonest,
        alone="the commonest value of the table",
        details={
            "k": int(counted.classes.sizes.min()),
            "classes": len(counted.classes.sizes),
            "homogeneous_classes": int(
                np.count_nonzero(
                    np.bincount(counted.class_of_pair, minlength=len(counted.classes.sizes)) == 1
                )
            ),
        },
    )


def background(
    table: Columns, *, quasi: Sequence[str], sensitive: str, ruled_out: Sequence[object]
) -> Finding:
    """Finds classes with one remaining value for an attacker who knows some values that a person does not have.

    Exposed are the rows with that value, since the background knowledge is true for them. The success rate of guessing
    is the share of the most frequent value that is not ruled out.
    """
    import numpy as np

    counted = _Counted(table, quasi, sensitive)
    out = [counted.number(value) for value in ruled_out]
    keep = ~np.isin(counted.value_of_pair, out)
    rows, told = counted.left_with_one(keep)
    left = counted.totals.copy()
    left[out] = 0
    return Finding(
        attack="background knowledge",
        people=counted.rows,
        exposed=rows.tolist(),
        learned=[counted.values[v] for v in told.tolist()],
        guessing=float(left.max() / left.sum()) if left.sum() else 0.0,
        alone="the commonest value that is not ruled out",
        details={"k": int(counted.classes.sizes.min()), "ruled_out": [str(v) for v in ruled_out]},
    )


def skewness(
    table: Columns, *, quasi: Sequence[str], sensitive: str, value: object, factor: float = 2.0
) -> Finding:
    """Rows whose class has a value at least `factor` times as often as the whole table has it.

    Nobody learns anything for certain, but a belief changes: from the share of the value in the table to its
    share in the class. Learned is that share.
    """
    import numpy as np

    counted = _Counted(table, quasi, sensitive)
    wanted = counted.number(value)
    limit = positive("factor", factor)
    prior = float(counted.totals[wanted] / counted.rows)
    in_class = np.zeros(len(counted.classes.sizes), dtype=np.int64)
    chosen = counted.value_of_pair == wanted
    in_class[counted.class_of_pair[chosen]] = counted.in_pair[chosen]
    share = in_class / counted.classes.sizes
    told = share[counted.classes.of_row]
    rows = np.flatnonzero(told >= limit * prior)
    learned: list[Any] = [float(s) for s in told[rows]]
    return Finding(
        attack="skewness",
        people=counted.rows,
        exposed=rows.tolist(),
        learned=learned,
        guessing=prior,
        alone="the share of the value in the whole table",
        details={"value": str(value), "largest_share": float(share.max()), "factor": limit},
    )


# Linkage on quasi-identifiers: a release without names against a list with names (Sweeney's attack on the GIC files).
#
# Whoever is alone in the release with her birth date, sex and postal code, and is on the list with the same three, is
# named, and so is all else in her row. In a population of n people drawn from cells with probabilities p_i the
# expected share of people who are alone in their cell is Σ p_i (1 - p_i)^(n-1).


def link(release: Columns, known: Columns, *, quasi: Sequence[str], sensitive: str | None = None) -> Finding:
    """Name the people of a list in a release.

    The exposed people are those on the list whose quasi-identifiers occur in exactly one row of the release and on
    exactly one line of the list. Learned is the sensitive value of that row, or its number. A match is right if the
    person is in the release and the list has no errors: an outsider who does not know that has a probable name, not a
    proof.
    """
    import numpy as np

    rows = check_roles(release, quasi, sensitive)
    people = check_roles(known, quasi)
    there, here = [], []
    for name in quasi:
        left, right = coded(release[name], known[name])
        there.append(left)
        here.append(right)
    joined = classes(
        [
            type(a)(codes=np.concatenate([a.codes, b.codes]), values=a.values)
            for a, b in zip(there, here, strict=True)
        ]
    )
    whole_rows = np.concatenate(
        [
            np.all([a.codes >= 0 for a in there], axis=0),
            np.all([b.codes >= 0 for b in here], axis=0),
        ]
    )
    cells = len(joined.sizes)
    in_release = np.bincount(joined.of_row[:rows][whole_rows[:rows]], minlength=cells)
    on_list = np.bincount(joined.of_row[rows:][whole_rows[rows:]], minlength=cells)
    row_of = np.full(cells, -1, dtype=np.int64)
    row_of[joined.of_row[:rows]] = np.arange(rows)
    mine = joined.of_row[rows:]
    named = np.flatnonzero((in_release[mine] == 1) & (on_list[mine] == 1) & whole_rows[rows:])
    where = row_of[mine[named]]
    learned: Sequence[Any] = where.tolist()
    guessing, alone = (1 / rows if rows else 0.0), "a row drawn at random"
    if sensitive is not None:
        value = coded(release[sensitive])[0]
        learned = [value.values[c] if c >= 0 else None for c in value.codes[where].tolist()]
        there_are = value.codes[value.codes >= 0]
        guessing = float(np.bincount(there_are).max() / rows) if there_are.size else 0.0
        alone = "the commonest value of the release"
    return Finding(
        attack="linkage",
        people=people,
        exposed=named.tolist(),
        learned=learned,
        guessing=guessing,
        alone=alone,
        details={
            "rows": rows,
            "unique_rows": int(np.count_nonzero(in_release == 1)),
            "quasi": list(quasi),
        },
    )


def unique_share(table: Columns, *, quasi: Sequence[str]) -> float:
    """The share of rows that are unique in their quasi-identifiers."""
    import numpy as np

    rows = check_roles(table, quasi)
    if not rows:
        return 0.0
    found = classes([coded(table[name])[0] for name in quasi])
    return int(np.count_nonzero(found.sizes == 1)) / rows


def expected_unique_share(
    probabilities: npt.ArrayLike, people: int, *, times: npt.ArrayLike = 1
) -> tuple[float, float]:
    """The expected share of people alone in their cell among n independent ones, and its standard deviation.

    E = Σ p_i (1 - p_i)^(n-1). With U the number of them, E[U(U-1)] = Σ_{i≠j} n(n-1) p_i p_j (1 - p_i - p_j)^(n-2).
    `times` is the number of cells with each probability, so that many equal cells cost nothing.
    """
    import numpy as np

    n = whole("people", people)
    p = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    k = np.broadcast_to(np.asarray(times, dtype=np.float64), p.shape)
    if p.size == 0 or not (np.isfinite(p).all() and (p >= 0).all() and abs(float(p @ k) - 1) < 1e-9):
        raise InvalidParameter(
            parameter="probabilities", value=float(p @ k), must="be at least 0 and add up to 1"
        )
    alone = p * (1 - p) ** (n - 1)
    mean = float(k @ alone)
    if n == 1:
        return mean, 0.0
    kept = np.clip(1 - p[:, None] - p[None, :], 0.0, None)
    pairs = n * (n - 1) * p[:, None] * p[None, :] * kept ** (n - 2)
    both = float(k @ pairs @ k) - float(k @ np.diag(pairs))
    variance = both + n * mean - (n * mean) ** 2
    return mean, float(np.sqrt(max(0.0, variance))) / n


ECCENTRICITY = 7.0
"""The paper takes 1.5. On 10^5 made-up histories an eccentricity of 1.5 would name one stranger in five, and one of 7
fewer than 1%.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The history with the best score, and its distance to the second best."""

    person: int
    score: float
    eccentricity: float


class Scoreboard:
    """The release, indexed by item.

    `person`, `item`, `value` and `day` have an entry for each line of the release; persons and items are numbered from
    0. Without values, or without days, that part of the score only compares the items.
    """

    def __init__(
        self,
        person: npt.ArrayLike,
        item: npt.ArrayLike,
        value: npt.ArrayLike | None = None,
        day: npt.ArrayLike | None = None,
        *,
        value_scale: float = 1.5,
        day_scale: float = 30.0,
    ) -> None:
        import numpy as np

        items = np.asarray(item, dtype=np.int64)
        order = np.argsort(items, kind="stable")
        self._items = items[order]
        self._person = np.asarray(person, dtype=np.int64)[order]
        refuse_if(self._person.size == 0, "release", 0, "have entries")
        if min(int(self._person.min()), int(self._items.min())) < 0:
            raise InvalidParameter(parameter="person", value="a negative number", must="be numbered from 0")
        self._value = None if value is None else np.asarray(value, dtype=np.float64)[order]
        self._day = None if day is None else np.asarray(day, dtype=np.float64)[order]
        self.people = int(self._person.max()) + 1
        ends = np.arange(int(self._items[-1]) + 2)
        self._start = np.searchsorted(self._items, ends)
        self._value_scale = positive("value_scale", value_scale)
        self._day_scale = positive("day_scale", day_scale)

    def scores(
        self, items: npt.ArrayLike, values: npt.ArrayLike | None, days: npt.ArrayLike | None
    ) -> Floats:
        """The score of every history against some known entries."""
        import numpy as np

        wanted = np.asarray(items, dtype=np.int64)
        own_values = None if values is None or self._value is None else np.asarray(values, dtype=np.float64)
        own_days = None if days is None or self._day is None else np.asarray(days, dtype=np.float64)
        people, points = [], []
        for i, item in enumerate(wanted.tolist()):
            if not 0 <= item < len(self._start) - 1:
                continue
            lines = slice(int(self._start[item]), int(self._start[item + 1]))
            near = np.zeros(lines.stop - lines.start)
            parts = 0
            if own_values is not None and self._value is not None and np.isfinite(own_values[i]):
                near += np.exp(-np.abs(self._value[lines] - own_values[i]) / self._value_scale)
                parts += 1
            if own_days is not None and self._day is not None and np.isfinite(own_days[i]):
                near += np.exp(-np.abs(self._day[lines] - own_days[i]) / self._day_scale)
                parts += 1
            if not parts:
                near += 1.0
            people.append(self._person[lines])
            points.append(near / np.log1p(max(1, near.size)))
        if not people:
            return np.zeros(self.people)
        return np.bincount(
            np.concatenate(people), weights=np.concatenate(points), minlength=self.people
        ).astype(np.float64)

    def best(
        self, items: npt.ArrayLike, values: npt.ArrayLike | None = None, days: npt.ArrayLike | None = None
    ) -> Best:
        """The best fit, and its lead over the next one in standard deviations of all scores."""
        import numpy as np

        scores = self.scores(items, values, days)
        first = int(scores.argmax())
        second = float(np.partition(scores, -2)[-2]) if scores.size > 1 else 0.0
        spread = float(scores.std())
        gap = float(scores[first]) - second
        return Best(
            person=first,
            score=float(scores[first]),
            eccentricity=gap / spread if spread > 0 else (float("inf") if gap > 0 else 0.0),
        )


def _days(column: Any) -> Floats:
    """Dates or numbers of days, as numbers; missing ones as NaN."""
    import numpy as np
    import pyarrow as pa

    array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column, from_pandas=True)
    if pa.types.is_string(array.type):
        try:
            array = array.cast(pa.date32())
        except pa.ArrowInvalid:
            array = _numbers(array)
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("s"), safe=False).cast(pa.date32())
    if pa.types.is_date(array.type):
        array = array.cast(pa.date32()).cast(pa.int32())
    return np.asarray(_numbers(array).to_numpy(zero_copy_only=False), dtype=np.float64)


def _numbers(array: Any) -> Any:
    import pyarrow as pa

    try:
        return (
            array.cast(pa.float64())
            if isinstance(array, pa.Array)
            else array.combine_chunks().cast(pa.float64())
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise BadData(source="a column", problem="has entries that are neither numbers nor dates") from None


def link_histories(
    release: Columns,
    known: Columns,
    *,
    person: str = "person",
    item: str = "item",
    value: str | None = None,
    date: str | None = None,
    eccentricity: float = ECCENTRICITY,
) -> Finding:
    """Name people in a release of histories, from some known entries of each.

    Both tables have a line for each entry; `person` in the release is a pseudonym, in `known` it is a name.
    Exposes the people whose best match is clearly ahead, in the order of their first line; `learned` is the
    pseudonym.
    """
    import numpy as np

    names = [person, item, *([value] if value else []), *([date] if date else [])]
    height(release, names)
    height(known, names)
    limit = positive("eccentricity", eccentricity)
    pseudonyms, mine = coded(release[person])[0], coded(known[person])[0]
    items, my_items = coded(release[item], known[item])
    whole_lines = (pseudonyms.codes >= 0) & (items.codes >= 0)
    board = Scoreboard(
        pseudonyms.codes[whole_lines],
        items.codes[whole_lines],
        _days(release[value])[whole_lines] if value else None,
        _days(release[date])[whole_lines] if date else None,
    )
    own_values = _days(known[value]) if value else None
    own_days = _days(known[date]) if date else None
    order = np.argsort(mine.codes, kind="stable")
    ends = np.searchsorted(mine.codes[order], np.arange(len(mine.values) + 1))
    exposed, learned, gaps = [], [], []
    for who in range(len(mine.values)):
        lines = order[ends[who] : ends[who + 1]]
        best = board.best(
            my_items.codes[lines],
            None if own_values is None else own_values[lines],
            None if own_days is None else own_days[lines],
        )
        gaps.append(best.eccentricity)
        if best.eccentricity >= limit:
            exposed.append(who)
            learned.append(pseudonyms.values[best.person])
    return Finding(
        attack="histories",
        people=len(mine.values),
        exposed=exposed,
        learned=learned,
        guessing=1 / board.people,
        alone="a history drawn at random",
        details={
            "histories": board.people,
            "eccentricity": limit,
            "median_eccentricity": float(np.median(gaps)) if gaps else 0.0,
            "names": mine.values,
        },
    )
