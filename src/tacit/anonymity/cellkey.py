"""Cell-key perturbation: the people in a cell decide its noise, so that repeated questions get the same answer.

Every row has a record key, drawn once. The cell key of a group is the sum of its rows' keys, modulo the number of
keys. So the same people give the same key in every table. A perturbation table (p-table) gives
the change of each count, by its cell key. As the statistics offices do it (Fraser and Wooton 2005; the package
`cell-key-perturbation` of the UK's Office for National Statistics): counts above 750 use the table's rows 501 to 750
again, and counts below a threshold are left out.

Groups of the same people get the same noise, so a repeated question reveals nothing more. Groups that differ in
one person get other noise. It is no differential privacy: the noise is bounded and often 0, and totals do not add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.anonymity.classes import check_roles
from tacit.anonymity.treatments.methods import Draws
from tacit.errors import InvalidParameter, UnknownColumn, WrongType
from tacit.exact.arrays import Integers
from tacit.exact.checks import positive, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.noise.source import Source
from tacit.sources.microdata import open_microdata

KEYS = 256
REUSED = 250
LAST = 750


@dataclass(frozen=True, slots=True)
class PTable:
    """values[count, key] is the number added to a count that has this cell key; no result is below 0."""

    values: Integers

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        if values.ndim != 2 or values.dtype.kind not in "iu" or 0 in values.shape or len(values) < 2:
            raise InvalidParameter(
                parameter="values",
                value=values.shape,
                must="be whole numbers, a row a count and a column a key",
            )
        if (values + np.arange(len(values))[:, None] < 0).any():
            raise InvalidParameter(parameter="values", value="a count below 0", must="make no count negative")
        object.__setattr__(self, "values", values.astype(np.int64))

    @property
    def keys(self) -> int:
        """The number of cell keys."""
        return int(self.values.shape[1])

    def row(self, counts: Integers) -> Integers:
        """The row of the table for each count; counts beyond the end use the last 250 rows again."""
        last = len(self.values) - 1
        again = min(REUSED, last)
        return np.where(counts <= last, counts, (counts - 1) % again + last - again + 1)

    def perturbed(self, counts: Integers, keys: Integers) -> Integers:
        """Counts with the changes by their cell keys."""
        return np.asarray(counts + self.values[self.row(counts), keys % self.keys])


def ten_five_rule(*, keys: int = KEYS) -> PTable:
    """Counts below 10 become 0, others the nearest multiple of 5; the key is ignored."""
    counts = np.arange(LAST + 1)
    to = np.where(counts < 10, 0, (counts + 2) // 5 * 5)
    return PTable(np.repeat((to - counts)[:, None], whole("keys", keys), axis=1))


def entropy_ptable(*, most: int, variance: float, keys: int = KEYS) -> PTable:
    """A p-table of the largest entropy: noise from -most to most with mean 0 and a given variance, no count below 0.

    For each count p(v) is proportional to exp(a v + b v^2) on the allowed v (Giessing 2016); 0 stays 0. If a small
    count allows no such distribution, it gets the largest possible variance. Probabilities are rounded to
    multiples of 1 / keys.
    """
    most, keys = whole("most", most), whole("keys", keys)
    variance = positive("variance", variance)
    if variance >= most**2:
        raise InvalidParameter(parameter="variance", value=variance, must=f"be below most^2 = {most**2}")
    rows = [np.zeros(keys, dtype=np.int64)]
    for count in range(1, most + 1):
        support = np.arange(-min(count, most), most + 1)
        law = _law(support, min(variance, 0.9 * float(-support[0] * support[-1])))
        edges = np.rint(np.cumsum(law) * keys).astype(np.int64)
        rows.append(np.repeat(support, np.diff(np.r_[0, edges])))
    rows += [rows[-1]] * (LAST - most)
    return PTable(np.stack(rows))


def _law(support: npt.NDArray[Any], variance: float) -> npt.NDArray[np.float64]:
    """The distribution of largest entropy on a support with mean 0 and this variance: Newton's method for (a, b)."""
    features = np.stack([support, support**2], axis=1).astype(np.float64)
    goal = np.array([0.0, variance])
    at = np.zeros(2)

    def law(point: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        score = features @ point
        weight = np.exp(score - score.max())
        return np.asarray(weight / weight.sum())

    def dual(point: npt.NDArray[np.float64]) -> float:
        score = features @ point
        return float(score.max() + np.log(np.exp(score - score.max()).sum()) - goal @ point)

    for _ in range(200):
        p = law(at)
        gradient = features.T @ p - goal
        if np.abs(gradient).max() < 1e-12:
            break
        spread = features.T @ (features * p[:, None]) - np.outer(features.T @ p, features.T @ p)
        step = np.linalg.solve(spread + 1e-12 * np.eye(2), gradient)
        size = 1.0
        while dual(at - size * step) > dual(at) and size > 1e-10:
            size /= 2
        at = at - size * step
    return law(at)


def record_keys(rows: int, *, keys: int = KEYS, source: Source | None = None) -> Integers:
    """A record key for each row, drawn once and kept with the table: anybody who knows the keys can undo the noise."""
    return Draws(source).below(np.full(whole("rows", rows), whole("keys", keys), dtype=np.int64))


def cell_key_counts(
    data: Any,
    *,
    by: Sequence[str],
    record_key: str,
    ptable: PTable,
    threshold: int = 10,
    engine: str | None = None,
) -> Any:
    """A frequency table with perturbed counts, as an Arrow table: the columns of `by`, and `count`.

    Every combination of values that occur is a row. record_key: the column of record keys, whole numbers from 0 on.
    threshold: perturbed counts below it become missing; 0 keeps all counts. True counts and keys are not in the result.
    """
    threshold = whole("threshold", threshold, least=0)
    micro = open_microdata(data, engine=engine)
    try:
        names = check_roles(micro.columns, by, source=micro.source)
        if record_key not in micro.columns:
            raise UnknownColumn(column=record_key, known=micro.columns, where=micro.source)
        if record_key in names or "count" in names:
            raise InvalidParameter(
                parameter="by", value=list(names), must='not name the record key, nor a column called "count"'
            )
        relation = micro.relation
        key = relation[record_key]
        if key.type().is_string():
            key = micro.dialect.whole(key)
        if not (key.type().is_integer()):
            raise WrongType(column=record_key, found=f"stored as {key.type()}", wanted="whole numbers")
        # A sum of remainders has the same remainder, and stays small.
        part = (key % ptable.keys).cast("int64")
        bad = (key.isnull() | (key < 0)).cast("int64")
        named = {f"by{i}": relation[name] for i, name in enumerate(names)}
        found = micro.ask(
            relation.group_by(**named).aggregate(
                count=relation.count(), key=part.sum().cast("int64"), bad=bad.sum()
            )
        )
    finally:
        if micro is not data:
            micro.close()
    if any(found.column("bad").to_pylist()):
        raise WrongType(
            column=record_key, found="with missing or negative values", wanted="a key in every row"
        )
    return _grid(found, names, ptable, threshold)


def _grid(found: Any, names: Sequence[str], ptable: PTable, threshold: int) -> Any:
    """All combinations of values that occur, those without people with a count of 0 and a key of 0."""
    import pyarrow as pa

    from tacit.anonymity.treatments.methods import codes

    axes, places = [], []
    for i in range(len(names)):
        at = codes(found, [f"by{i}"])
        first = np.zeros(int(at.max(initial=-1)) + 1, dtype=np.int64)
        first[at[::-1]] = np.arange(len(at))[::-1]
        axes.append(first)
        places.append(at)
    shape = tuple(len(first) for first in axes)
    refuse_if(int(np.prod(shape, dtype=object)) > 10_000_000, "by", shape, "span at most 10,000,000 cells")
    counts, keys = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    counts[tuple(places)] = found.column("count").to_numpy()
    keys[tuple(places)] = found.column("key").to_numpy()
    made = ptable.perturbed(counts.ravel(), keys.ravel())
    index = np.unravel_index(np.arange(made.size), shape)
    columns = {
        name: found.column(f"by{i}").take(pa.array(first[index[i]]))
        for i, (name, first) in enumerate(zip(names, axes, strict=True))
    }
    return pa.table({**columns, "count": pa.array(made, mask=made < threshold)})
