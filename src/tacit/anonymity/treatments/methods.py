"""Treatments of several numeric columns together: microaggregation (MDAV) and matrix masking."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.anonymity.hierarchies import Hierarchy
from tacit.errors import EmptyComposition, InvalidParameter, UnknownColumn, WrongType
from tacit.exact.arrays import Floats, Integers
from tacit.exact.checks import is_number as coding_is_number
from tacit.exact.checks import positive, rate, refuse_if, require, whole
from tacit.exact.data_classes import dataclass
from tacit.noise.source import Source, default_source

__all__ = [
    "BottomCode",
    "Collapse",
    "Disturb",
    "MatrixMask",
    "Microaggregate",
    "ModelDraws",
    "Remove",
    "Round",
    "Sample",
    "Swap",
    "TopCode",
    "Treatment",
    "masked",
    "mdav",
]

# Uniform and normal numbers, and permutations, for treatments: from the one source of randomness, as floats.
#
# Treatments carry no guarantee, so that nothing here is exact; but who can repeat the words of the source can undo
# what was swapped or disturbed, so that by default they come from the cryptographic source.


class Draws:
    """Independent draws from a source."""

    def __init__(self, source: Source | None = None) -> None:
        self.source = source if source is not None else default_source()

    def uniform(self, count: int) -> Floats:
        """Numbers in (0, 1), 52 bits each."""
        words = self.source.words(count) >> np.uint64(12)
        return (words.astype(np.float64) + 0.5) * 2.0**-52

    def normal(self, count: int) -> Floats:
        """Standard normal numbers, by inversion."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniform(count)), dtype=np.float64)

    def permutation(self, count: int) -> npt.NDArray[np.int64]:
        """A uniform order of 0 .. count - 1: that of 64-bit words, which are alike with probability count^2 / 2^65."""
        return np.argsort(self.source.words(count), kind="stable").astype(np.int64)

    def below(self, limits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Whole numbers, each from 0 to below its limit."""
        return np.minimum((self.uniform(len(limits)) * limits).astype(np.int64), limits - 1)


# What a treatment is: rows in, rows out, with what was done in one sentence, and whether rows stay in their places.


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment(ABC):
    """A change of a table. None has a guarantee."""

    @abstractmethod
    def apply(self, table: Any, draws: Draws) -> Any:
        """The changed Arrow table."""

    @abstractmethod
    def describe(self) -> str:
        """What is done, in words."""

    @property
    def aligned(self) -> bool:
        """Whether row i of the result comes from row i of the table."""
        return True


# Columns of Arrow tables as numbers and as codes, and back.


def known(table: Any, columns: Sequence[str]) -> tuple[str, ...]:
    """Checks that the table has these columns."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    for name in names:
        if name not in table.column_names:
            raise UnknownColumn(column=str(name), known=table.column_names, where="the table")
    return names


def is_number(table: Any, column: str) -> bool:
    """True if the column holds numbers that fit a float, or texts that all are such numbers."""
    import pyarrow as pa

    kind = table.column(column).type
    try:
        found = numbers(table, column)
    except WrongType:
        return False
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return not text or bool(np.isfinite(found).any())


def numbers(table: Any, column: str) -> Floats:
    """A column as floats, NaN for a missing value."""
    import pyarrow as pa

    known(table, [column])
    stored = table.column(column)
    kind = stored.type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (plain or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise WrongType(column=column, found=f"stored as {kind}", wanted="a column of numbers")
    failed = False
    try:
        found = np.asarray(stored.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        failed = True
    if failed:
        # Outside the handler: Arrow's words hold the value.
        found_words = "with whole numbers beyond 2^53" if plain else "text that is no number"
        raise WrongType(column=column, found=found_words, wanted="a column of numbers")
    return found


def finite(table: Any, column: str) -> Floats:
    """A column as floats, with NaN for a missing value. It has at least one number, and no infinite one."""
    found = numbers(table, column)
    if np.isinf(found).any() or np.isnan(found).all():
        raise WrongType(
            column=column, found="with infinite values, or without any", wanted="finite numbers",
            hint="top-code it, or leave it out",
        )  # fmt: skip
    return found


def matrix(table: Any, columns: Sequence[str]) -> Floats:
    """Several columns as floats; none may have missing values."""
    made = np.stack([numbers(table, name) for name in known(table, columns)], axis=1)
    for i, name in enumerate(columns):
        if not np.isfinite(made[:, i]).all():
            raise WrongType(
                column=name, found="with missing or infinite values", wanted="a number in every row",
                hint="remove these rows, or fill them in, before this treatment",
            )  # fmt: skip
    return made


def replaced(table: Any, columns: dict[str, Any]) -> Any:
    """The table with some columns replaced: by an Arrow array, or by floats (NaN is missing).

    A column of whole numbers whose new values are whole too keeps its type, so that a hierarchy of 30, 31, ... has a
    place for them; texts of whole numbers become whole numbers.
    """
    import pyarrow as pa

    for name, values in columns.items():
        at = table.column_names.index(name)
        if isinstance(values, np.ndarray):
            missing = np.isnan(values)
            kept = values[~missing]
            kind = _whole_type(table.column(name))
            if kind is not None and (np.abs(kept) < 2.0**53).all() and (kept == np.rint(kept)).all():
                made = pa.array(np.where(missing, 0.0, values).astype(np.int64), mask=missing)
                values = made.cast(kind) if _fits(kept, kind) else made
            else:
                values = pa.array(values, mask=missing)
        table = table.set_column(at, name, values)
    return table


def _whole_type(column: Any) -> Any:
    """The type of a column of whole numbers, or 64 bits for texts of whole numbers; None for other columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type):
        return column.type
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if text and pc.all(pc.match_substring_regex(column, r"^[+-]?[0-9]+$")).as_py():
        return pa.int64()
    return None


def is_whole(table: Any, column: str) -> bool:
    """Is it a column of whole numbers, stored as such or as texts of them?"""
    return _whole_type(table.column(column)) is not None


def _fits(values: Floats, kind: Any) -> bool:
    """Does the type hold all of these?"""
    info = np.iinfo(kind.to_pandas_dtype())
    return bool(((values >= info.min) & (values <= info.max)).all())


def encoded(table: Any, name: str) -> Any:
    """A column as a dictionary and places in it, with missing as a value; also for a column that is stored so
    already.
    """
    import pyarrow as pa

    column = table.column(name)
    if pa.types.is_nested(column.type):
        raise WrongType(
            column=name, found=f"stored as {column.type}", wanted="a plain value",
            hint="make columns of its parts first",
        )  # fmt: skip
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    found = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def codes(table: Any, columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """A number for each row that identifies its combination of values in these columns; missing counts as a value."""
    key = np.zeros(table.num_rows, dtype=np.int64)
    for name in known(table, columns):
        here = np.asarray(encoded(table, name).indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        key = np.unique(key * (int(here.max(initial=0)) + 1) + here, return_inverse=True)[1].astype(np.int64)
    return key


# Treatments by chance: sampling, swapping, disturbing, and values replaced by draws from a model.


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Treatment):
    """A simple random sample of a share of the rows, without replacement, in random order."""

    share: float

    def __post_init__(self) -> None:
        positive("share", rate("share", self.share))

    @property
    def aligned(self) -> bool:
        return False

    def apply(self, table: Any, draws: Draws) -> Any:
        import pyarrow as pa

        rows = max(1, round(self.share * table.num_rows)) if table.num_rows else 0
        return table.take(pa.array(draws.permutation(table.num_rows)[:rows]))

    def describe(self) -> str:
        return f"a random sample of {self.share:.1%} of the rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap(Treatment):
    """A share of the rows exchange values of some columns in pairs that agree in others (Dalenius and Reiss 1982).

    columns: exchanged together. match: partners agree in these columns. unique: rows with a unique combination of
    these columns are exchanged first. Every count within `match` and `columns` apart is as before.
    """

    columns: tuple[str, ...]
    share: float
    match: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rate("share", self.share)
        if not self.columns:
            raise EmptyComposition(what="the list of columns to swap")
        refuse_if(
            set(self.columns) & set(self.match), "match", self.match, "not have a column that is swapped"
        )

    def apply(self, table: Any, draws: Draws) -> Any:
        import pyarrow as pa

        rows = table.num_rows
        known(table, (*self.columns, *self.match, *self.unique))
        order = draws.permutation(rows)
        if self.unique:
            key = codes(table, self.unique)
            alone = np.bincount(key)[key] == 1
            order = np.concatenate([order[alone[order]], order[~alone[order]]])
        chosen = order[: round(self.share * rows)]
        strata = codes(table, self.match) if self.match else np.zeros(rows, dtype=np.int64)
        chosen = chosen[np.argsort(strata[chosen], kind="stable")]
        # Neighbours in the sorted order form pairs where they agree; an odd one out stays as it is.
        groups = strata[chosen]
        starts = (
            np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]]) if len(groups) else np.zeros(0, dtype=int)
        )
        place = np.arange(len(groups)) - np.repeat(starts, np.diff(np.r_[starts, len(groups)]))
        first = np.flatnonzero((place % 2 == 0) & np.r_[groups[1:] == groups[:-1], False])
        partner = np.arange(rows)
        partner[chosen[first]], partner[chosen[first + 1]] = chosen[first + 1], chosen[first]
        take = pa.array(partner)
        return replaced(table, {name: table.column(name).take(take) for name in self.columns})

    def describe(self) -> str:
        within = f" within {', '.join(self.match)}" if self.match else ""
        return f"{', '.join(self.columns)} swapped between {self.share:.1%} of the rows{within}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturb(Treatment):
    """Independent normal noise is added, of a given standard deviation, or of a share of the column's own.

    The standard deviation must be published: without it no analysis of the column is right (`correction`).
    """

    column: str
    noise_std: float | None = None
    share_of_std: float | None = None

    def __post_init__(self) -> None:
        given = [v for v in (self.noise_std, self.share_of_std) if v is not None]
        if len(given) != 1:
            raise InvalidParameter(
                parameter="noise_std", value=self.noise_std, must="be given, or share_of_std, and not both"
            )
        positive("noise_std" if self.noise_std is not None else "share_of_std", given[0])

    def std(self, table: Any) -> float:
        """The standard deviation of the noise for a table."""
        if self.noise_std is not None:
            return float(self.noise_std)
        assert self.share_of_std is not None
        return float(self.share_of_std) * float(np.nanstd(finite(table, self.column)))

    def apply(self, table: Any, draws: Draws) -> Any:
        values = numbers(table, self.column)
        return replaced(table, {self.column: values + self.std(table) * draws.normal(len(values))})

    def describe(self) -> str:
        size = f"{self.noise_std:g}" if self.noise_std is not None else f"{self.share_of_std:g} of its own"
        return f"normal noise with standard deviation {size} added to {self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDraws(Treatment):
    """Replaces a column by draws from a model given other columns (Liew et al. 1985; Reiter 2003; Hall, 1.1.2).

    A column of numbers: a linear model with normal errors, whose coefficients are drawn too (a proper imputation under
    the flat prior). Any other: for each combination of the given columns its own frequencies, with half a row added to
    each value that occurs in the table, so that no draw reveals the missing values of a small class.
    """

    column: str
    given: tuple[str, ...]

    def apply(self, table: Any, draws: Draws) -> Any:
        known(table, (self.column, *self.given))
        refuse_if(self.column in self.given, "given", self.given, "not name the column itself")
        if is_number(table, self.column):
            return replaced(table, {self.column: self._normal(table, draws)})
        return replaced(table, {self.column: self._frequencies(table, draws)})

    def _design(self, table: Any) -> npt.NDArray[np.float64]:
        parts = [np.ones((table.num_rows, 1))]
        for name in self.given:
            if is_number(table, name):
                values = finite(table, name)
                missing = np.isnan(values)
                filled = np.where(missing, np.nanmean(values), values)
                spread = filled.std()
                parts.append(((filled - filled.mean()) / (spread or 1.0))[:, None])
                if missing.any():
                    parts.append(missing.astype(np.float64)[:, None])
            else:
                key = codes(table, [name])
                if key.max(initial=0) > 200:
                    raise InvalidParameter(
                        parameter="given", value=name, must="have at most 200 different values",
                        hint="collapse it first",
                    )  # fmt: skip
                parts.append((key[:, None] == np.arange(1, key.max(initial=0) + 1)).astype(np.float64))
        return np.concatenate(parts, axis=1)

    def _normal(self, table: Any, draws: Draws) -> npt.NDArray[np.float64]:
        values = numbers(table, self.column)
        there = np.isfinite(values)
        design = self._design(table)
        x, y = design[there], values[there]
        free = len(y) - design.shape[1]
        if free < 1:
            raise InvalidParameter(
                parameter="given", value=self.given, must="leave more rows than coefficients"
            )
        u, s, vt = np.linalg.svd(x, full_matrices=False)
        kept = s > s[0] * 1e-10
        fitted = vt[kept].T @ ((u[:, kept].T @ y) / s[kept])
        left = y - x @ fitted
        # sigma^2 | y ~ residual sum of squares / chi-squared, here by a sum of squared normals in blocks.
        squares = float(left @ left) / _chi_squared(draws, free)
        spread = np.sqrt(squares)
        coefficients = fitted + vt[kept].T @ (spread * draws.normal(int(kept.sum())) / s[kept])
        made = design @ coefficients + spread * draws.normal(len(values))
        return np.where(there, made, np.nan)

    def _frequencies(self, table: Any, draws: Draws) -> Any:
        import pyarrow as pa

        group, value = codes(table, self.given), codes(table, [self.column])
        many, width = int(group.max(initial=0)) + 1, int(value.max(initial=0)) + 1
        order = np.lexsort((draws.permutation(len(group)), group))
        starts = np.searchsorted(group[order], np.arange(many))
        sizes = np.bincount(group, minlength=many)
        own = draws.uniform(len(group)) < (sizes / (sizes + width / 2.0))[group]
        rows = np.arange(len(group))
        # A draw from a class's own frequencies is the value of a random row of the class.
        picked = order[starts[group] + draws.below(sizes[group])]
        first = np.zeros(width, dtype=np.int64)
        first[value[::-1]] = rows[::-1]
        other = first[draws.below(np.full(len(group), width))]
        return table.column(self.column).take(pa.array(np.where(own, picked, other)))

    def describe(self) -> str:
        return f"{self.column} replaced by draws from a model given {', '.join(self.given) or 'nothing'}"


def _chi_squared(draws: Draws, free: int) -> float:
    total, block = 0.0, 1 << 16
    for start in range(0, free, block):
        z = draws.normal(min(block, free - start))
        total += float(z @ z)
    return total


# Treatments without chance: removal, top and bottom coding, collapsing, rounding (the ICPSR list; Groce, 2.2).


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove(Treatment):
    """Columns are left out."""

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise EmptyComposition(what="the list of columns to remove")

    def apply(self, table: Any, draws: Draws) -> Any:
        left = [name for name in table.column_names if name not in known(table, self.columns)]
        if not left:
            raise InvalidParameter(parameter="columns", value=len(self.columns), must="leave a column")
        return table.select(left)

    def describe(self) -> str:
        return f"{', '.join(self.columns)} removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limited(Treatment):
    """A column and the limit of its numbers."""

    column: str
    at: float

    def __post_init__(self) -> None:
        finite = coding_is_number(self.at) and math.isfinite(self.at)
        require(finite, parameter="at", value=self.at, must="be a finite number")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopCode(_Limited):
    """Numbers above a limit become the limit."""

    def apply(self, table: Any, draws: Draws) -> Any:
        return replaced(table, {self.column: np.minimum(numbers(table, self.column), float(self.at))})

    def describe(self) -> str:
        return f"{self.column} top-coded at {self.at:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BottomCode(_Limited):
    """Numbers below a limit become the limit."""

    def apply(self, table: Any, draws: Draws) -> Any:
        return replaced(table, {self.column: np.maximum(numbers(table, self.column), float(self.at))})

    def describe(self) -> str:
        return f"{self.column} bottom-coded at {self.at:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(Treatment):
    """Numbers become the nearest multiple of a base, ties to the even multiple."""

    column: str
    base: float

    def __post_init__(self) -> None:
        positive("base", self.base)

    def apply(self, table: Any, draws: Draws) -> Any:
        return replaced(table, {self.column: np.rint(numbers(table, self.column) / self.base) * self.base})

    def describe(self) -> str:
        return f"{self.column} rounded to multiples of {self.base:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapse(Treatment):
    """Replaces values by their groups at a level of a hierarchy; a missing value stays missing."""

    column: str
    hierarchy: Hierarchy
    level: int

    def apply(self, table: Any, draws: Draws) -> Any:
        import pyarrow as pa

        known(table, [self.column])
        coded = table.column(self.column).combine_chunks().dictionary_encode()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.combine_chunks()
        words = [str(v) for v in coded.dictionary.to_pylist()]
        self.hierarchy.check_covers(words, column=self.column)
        above = self.hierarchy.at(self.level)
        return replaced(
            table, {self.column: pa.array([above[w] for w in words], type=pa.string()).take(coded.indices)}
        )

    def describe(self) -> str:
        return f"{self.column} collapsed to level {self.level} of {self.hierarchy.height}"


_BOX = 96
_SLACK = 1 + 1e-12
"""Distances to the corners of a box bound those to its points, except for rounding."""


class _Boxes:
    """Points in boxes of neighbours; groups are removed from them.

    The points of a box are neighbours in `x`. Each box fits its remaining points tightly, so that most boxes are ruled
    out by their corners.
    """

    def __init__(self, points: Floats) -> None:
        self.x, self.rows = np.array(points, dtype=np.float64, order="C"), np.arange(len(points))
        self.total, self.many = self.x.sum(axis=0), len(points)
        self._divide()

    def _divide(self) -> None:
        """Halve boxes along their longest side until each has few points."""
        edges, open_ = [], [(0, len(self.x))]
        while open_:
            start, stop = open_.pop()
            if stop - start <= _BOX:
                edges.append(start)
                continue
            here, middle = self.x[start:stop], (stop - start) // 2
            order = np.argpartition(here[:, int(np.argmax(np.ptp(here, axis=0)))], middle)
            self.x[start:stop], self.rows[start:stop] = here[order], self.rows[start:stop][order]
            open_ += [(start, start + middle), (start + middle, stop)]
        starts = np.sort(np.array(edges, dtype=np.int64))
        self.low = np.minimum.reduceat(self.x, starts, axis=0).T.copy()
        self.high = np.maximum.reduceat(self.x, starts, axis=0).T.copy()
        ends = [*starts[1:].tolist(), len(self.x)]
        self.parts = [slice(start, stop) for start, stop in zip(starts.tolist(), ends, strict=True)]
        self.again = len(self.x) // 2

    def _away(self, boxes: Integers, centre: Floats) -> Floats:
        between = np.concatenate([self.x[self.parts[box]] for box in boxes.tolist()]) - centre
        return np.asarray(np.einsum("ij,ij->i", between, between))

    def furthest(self, centre: Floats) -> Floats:
        """The point that lies furthest from this one."""
        at = centre[:, None]
        reach = np.maximum(at - self.low, self.high - at)
        bounds = np.einsum("ij,ij->j", reach, reach) * _SLACK
        best, point, chunk = -1.0, centre, 1
        order = np.argmax(bounds, keepdims=True)
        while len(order) and bounds[order[0]] > best:
            away = self._away(order[:chunk], centre)
            place = int(np.argmax(away))
            if away[place] > best:
                best = float(away[place])
                for box in order[:chunk].tolist():
                    size = self.parts[box].stop - self.parts[box].start
                    if place < size:
                        point = self.x[self.parts[box].start + place].copy()
                        break
                    place -= size
            bounds[order[:chunk]] = -1.0
            order = np.flatnonzero(bounds > best)
            order, chunk = order[np.argsort(-bounds[order])], 2 * chunk
        return point

    def take(self, centre: Floats, count: int) -> Integers:
        """Removes the points nearest to this one, and returns their rows."""
        at = centre[:, None]
        gap = np.maximum(np.maximum(self.low - at, at - self.high), 0.0)
        bounds = np.einsum("ij,ij->j", gap, gap) / _SLACK
        boxes, away, worst, chunk = [], np.empty(0), math.inf, 1
        order = np.argmin(bounds, keepdims=True)
        while len(order):
            boxes += order[:chunk].tolist()
            away = np.concatenate([away, self._away(order[:chunk], centre)])
            if len(away) >= count:
                worst = float(np.partition(away, count - 1)[count - 1])
            bounds[order[:chunk]] = math.inf
            order = np.flatnonzero(bounds < worst)
            order, chunk = order[np.argsort(bounds[order])], 2 * chunk
        leave = np.zeros(len(away), dtype=bool)
        leave[np.argpartition(away, count - 1)[:count]] = True
        return self._remove(boxes, leave)

    def _remove(self, boxes: list[int], leave: npt.NDArray[np.bool_]) -> Integers:
        """Removes marked points of these boxes; returns their rows."""
        gone, start, empty = [], 0, []
        for box in boxes:
            part = self.parts[box]
            size = part.stop - part.start
            out = leave[start : start + size]
            start += size
            if not out.any():
                continue
            gone.append(self.rows[part][out])
            self.total = self.total - self.x[part][out].sum(axis=0)
            points, rows = self.x[part][~out], self.rows[part][~out]
            if not len(rows):
                empty.append(box)
                continue
            part = self.parts[box] = slice(part.start, part.start + len(rows))
            self.x[part], self.rows[part] = points, rows
            self.low[:, box], self.high[:, box] = points.min(axis=0), points.max(axis=0)
        if empty:
            self.low, self.high = np.delete(self.low, empty, axis=1), np.delete(self.high, empty, axis=1)
            self.parts = [part for box, part in enumerate(self.parts) if box not in empty]
        self.many -= sum(map(len, gone))
        if self.parts and self.many <= self.again:
            self.x = np.concatenate([self.x[part] for part in self.parts])
            self.rows = np.concatenate([self.rows[part] for part in self.parts])
            self._divide()
        return np.concatenate(gone)


def mdav(points: Floats, k: int) -> Integers:
    """Groups of k to 2k - 1 points that lie close together: maximum distance to average vector.

    Domingo-Ferrer and Mateo-Sanz 2002; as in Domingo-Ferrer and Torra 2005, algorithm 5.1: take r, the point furthest
    from the mean of the remaining points, and s, the one furthest from r; r and s each form a group with their k - 1
    nearest;
    until fewer than 3k are left. The search looks into boxes of points, and skips most of them.
    """
    group = np.full(len(points), -1, dtype=np.int64)
    left, many = _Boxes(points), 0

    def close(centre: Floats, count: int) -> None:
        nonlocal many
        group[left.take(centre, count)] = many
        many += 1

    while left.many >= 3 * k:
        r = left.furthest(left.total / left.many)
        s = left.furthest(r)
        close(r, k)
        close(s, k)
    if left.many >= 2 * k:
        close(left.furthest(left.total / left.many), k)
    if left.many:
        close(left.total / left.many, left.many)
    return group


@dataclass(frozen=True, slots=True, kw_only=True)
class Microaggregate(Treatment):
    """Numbers become means of groups of at least k rows that are close in all of these columns, each standardised."""

    columns: tuple[str, ...]
    k: int

    def __post_init__(self) -> None:
        whole("k", self.k)
        if not self.columns:
            raise EmptyComposition(what="the list of columns to aggregate")

    def apply(self, table: Any, draws: Draws) -> Any:
        values = matrix(table, self.columns)
        if self.k > len(values):
            raise InvalidParameter(
                parameter="k", value=self.k, must=f"be at most the {len(values):,} rows of the table"
            )
        spread = values.std(axis=0)
        group = mdav((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0), self.k)
        sizes = np.bincount(group)
        made = {
            name: (np.bincount(group, weights=values[:, i]) / sizes)[group]
            for i, name in enumerate(self.columns)
        }
        return replaced(table, made)

    def describe(self) -> str:
        return f"{', '.join(self.columns)} replaced by means of groups of at least {self.k} (MDAV)"


def masked(
    x: Floats, *, left: Floats | None = None, right: Floats | None = None, add: Floats | None = None
) -> Floats:
    """A X B + C: matrix masking in general (Duncan and Pearson 1991); an omitted matrix is an identity, or zero."""
    made = np.asarray(x, dtype=np.float64)
    if left is not None:
        made = left @ made
    if right is not None:
        made = made @ right
    return made if add is None else made + add


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixMask(Treatment):
    """Rows are mixed by a random orthogonal matrix that keeps the vector of ones (Ting, Fienberg, Trottini 2008).

    X becomes A X with A' A = I and A 1 = 1, so that means, variances and covariances, the sufficient statistics of a
    normal model, do not change. A is made of blocks of random rows, each Haar among such matrices.
    """

    columns: tuple[str, ...]
    block: int = 50

    def __post_init__(self) -> None:
        whole("block", self.block, least=2)
        if not self.columns:
            raise EmptyComposition(what="the list of columns to mask")

    def apply(self, table: Any, draws: Draws) -> Any:
        values = matrix(table, self.columns)
        rows = len(values)
        order = draws.permutation(rows)
        made = values.copy()
        edges = list(range(0, rows, self.block))
        if len(edges) > 1 and rows - edges[-1] < 2:
            edges.pop()
        for start, stop in zip(edges, [*edges[1:], rows], strict=True):
            here = order[start:stop]
            made[here] = _orthogonal(stop - start, draws) @ values[here]
        return replaced(table, {name: made[:, i] for i, name in enumerate(self.columns)})

    def describe(self) -> str:
        return (
            f"{', '.join(self.columns)} masked by a random orthogonal matrix that keeps means and covariances"
        )


def _orthogonal(size: int, draws: Draws) -> Floats:
    """A random orthogonal matrix with A 1 = 1: Haar on the complement of the vector of ones."""
    if size < 2:
        return np.eye(size)
    # A reflection that maps the first unit vector to 1/sqrt(size).
    ones = np.full(size, 1.0 / np.sqrt(size))
    v = ones.copy()
    v[0] -= 1.0
    reflect = np.eye(size) - 2.0 * np.outer(v, v) / float(v @ v)
    q, r = np.linalg.qr(draws.normal((size - 1) ** 2).reshape(size - 1, size - 1))
    inner = np.eye(size)
    inner[1:, 1:] = q * np.sign(np.diag(r))
    return np.asarray(reflect @ inner @ reflect, dtype=np.float64)
