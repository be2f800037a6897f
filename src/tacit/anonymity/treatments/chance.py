"""Treatments by chance: sampling, swapping, disturbing, and values replaced by draws from a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.anonymity.treatments.base import Treatment
from tacit.anonymity.treatments.columns import codes, finite, is_number, known, numbers, replaced
from tacit.anonymity.treatments.draws import Draws
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.checks import positive, rate

__all__ = ["Disturb", "ModelDraws", "Sample", "Swap"]


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

    columns: what is exchanged, together. match: partners agree in these. unique: rows that are alone with their values
    of these columns are taken first. Every count within `match` and `columns` apart is as before.
    """

    columns: tuple[str, ...]
    share: float
    match: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rate("share", self.share)
        if not self.columns:
            raise EmptyComposition(what="the list of columns to swap")
        if set(self.columns) & set(self.match):
            raise InvalidParameter(
                parameter="match", value=self.match, must="not have a column that is swapped"
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
    """A column is replaced by draws from a model of it given others (Liew et al. 1985; Reiter 2003; Hall, 1.1.2).

    A column of numbers: a linear model with normal errors, whose coefficients are drawn too (a proper imputation under
    the flat prior). Any other: for each combination of the given columns its own frequencies, with half a row added to
    each value that occurs in the table, so that no draw tells which values a small class lacks.
    """

    column: str
    given: tuple[str, ...]

    def apply(self, table: Any, draws: Draws) -> Any:
        known(table, (self.column, *self.given))
        if self.column in self.given:
            raise InvalidParameter(parameter="given", value=self.given, must="not name the column itself")
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
