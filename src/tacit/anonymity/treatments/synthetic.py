"""Synthetic rows from trees and from mixtures of normal distributions (Hall, 1.1.2): drawn from a model, without a
guarantee.

The rows are draws from a distribution that was fitted to people.
A leaf of one row, or a component around one person, reveals that person: `tacit.attacks.replay` finds them. Private
synthetic rows are those of `tacit.synthesise`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tacit.anonymity.treatments.methods import (
    Draws,
    Treatment,
    codes,
    finite,
    is_number,
    is_whole,
    known,
    matrix,
    numbers,
    replaced,
)
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import Floats, Integers
from tacit.exact.checks import refuse_if, whole
from tacit.exact.data_classes import dataclass

__all__ = ["MixtureDraws", "TreeDraws"]

MOST_VALUES = 200
"""Different values of a column that is not of numbers: each becomes a column of 0 and 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDraws(Treatment):
    """Columns are replaced in turn by draws from the leaves of trees on the columns before them (Reiter 2005).

    given: columns that all trees may split on and that keep their values; without them the first column is drawn from
    its own frequencies, and the rows are wholly synthetic. leaf: the least number of rows in a leaf. Each tree is
    fitted to the table and then asked about the rows made so far; the new value is that of a random row of the leaf
    (Reiter draws a Bayesian bootstrap of the leaf first). A leaf of one row copies the row.
    """

    columns: tuple[str, ...]
    given: tuple[str, ...] = ()
    leaf: int = 5

    def __post_init__(self) -> None:
        whole("leaf", self.leaf)
        if not self.columns:
            raise EmptyComposition(what="the list of columns to draw from trees")
        _once(self.columns)
        refuse_if(
            set(self.columns) & set(self.given), "given", self.given, "not have a column that is replaced"
        )

    @property
    def aligned(self) -> bool:
        return bool(self.given)

    def apply(self, table: Any, draws: Draws) -> Any:
        import pyarrow as pa

        known(table, (*self.columns, *self.given))
        rows = table.num_rows
        if self.leaf > rows:
            raise InvalidParameter(
                parameter="leaf", value=self.leaf, must=f"be at most the {rows:,} rows of the table"
            )
        # Every made value is that of a row of the table, so that rows stand for values, and nothing is rounded.
        before = [_features(table, name) for name in self.given]
        made = list(before)
        taken: dict[str, Any] = {}
        for name in self.columns:
            own = _features(table, name)
            if before:
                tree = _tree(table, name, self.leaf).fit(np.concatenate(before, axis=1), _target(table, name))
                here, there = (tree.apply(np.concatenate(x, axis=1)) for x in (before, made))
            else:
                here = there = np.zeros(rows, dtype=np.int64)
            picked = _picked(here, there, draws)
            taken[name] = table.column(name).take(pa.array(picked))
            before, made = [*before, own], [*made, own[picked]]
        return replaced(table, taken)

    def describe(self) -> str:
        return (
            f"{', '.join(self.columns)} drawn in turn from leaves of at least {self.leaf} rows of trees"
            f"{' given ' + ', '.join(self.given) if self.given else ''}, without a guarantee"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureDraws(Treatment):
    """Columns of numbers are replaced by draws from a mixture of normal distributions fitted to them (Reiter
    2004; Hall, 1.1.2).

    The columns are standardised and fitted together by expectation maximisation, each component with a covariance of
    its own. Whole numbers stay whole. A component around one row is as tight as the fit allows, a thousandth of a
    standard deviation, and copies the row.
    """

    columns: tuple[str, ...]
    components: int = 5

    def __post_init__(self) -> None:
        whole("components", self.components)
        if not self.columns:
            raise EmptyComposition(what="the list of columns to draw from a mixture")
        _once(self.columns)

    @property
    def aligned(self) -> bool:
        return False

    def apply(self, table: Any, draws: Draws) -> Any:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture

        values = matrix(table, self.columns)
        rows, width = values.shape
        if rows < 2 or self.components > rows:
            raise InvalidParameter(
                parameter="components", value=self.components,
                must=f"be at most the {rows:,} rows of the table, which has two or more",
            )  # fmt: skip
        largest = np.abs(values).max(axis=0)
        largest = np.where(largest > 0, largest, 1.0)
        scaled = values / largest
        centre, spread = scaled.mean(axis=0), scaled.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        with warnings.catch_warnings():
            # A fit that stopped early, or has fewer points than components, is a model like any other.
            warnings.simplefilter("ignore", ConvergenceWarning)
            # The state decides where the search begins, and is no secret; what is drawn comes from the source.
            fitted = GaussianMixture(self.components, random_state=0).fit((scaled - centre) / spread)
        ends = np.cumsum(fitted.weights_)
        which = np.minimum(np.searchsorted(ends / ends[-1], draws.uniform(rows)), self.components - 1)
        roots = np.linalg.cholesky(fitted.covariances_)
        normal = draws.normal(rows * width).reshape(rows, width)
        made = fitted.means_[which] + np.einsum("rij,rj->ri", roots[which], normal)
        made = (made * spread + centre) * largest
        return replaced(
            table,
            {
                name: np.rint(made[:, i]) if is_whole(table, name) else made[:, i]
                for i, name in enumerate(self.columns)
            },
        )

    def describe(self) -> str:
        return f"{', '.join(self.columns)} drawn from a mixture of {self.components} normal laws, without a guarantee"


def _once(columns: tuple[str, ...]) -> None:
    refuse_if(len(set(columns)) < len(columns), "columns", columns, "name each column once")


def _features(table: Any, name: str) -> Floats:
    """A column as the input of a tree: ranks of numbers, with missing first; otherwise a column of 0 and 1 for each
    value.
    """
    if is_number(table, name):
        values = numbers(table, name)
        ranks = np.unique(values, return_inverse=True)[1].astype(np.float64)
        return np.where(np.isnan(values), -1.0, ranks)[:, None]
    key = codes(table, [name])
    if key.max(initial=0) >= MOST_VALUES:
        raise InvalidParameter(
            parameter="columns", value=name, must=f"have at most {MOST_VALUES} different values",
            hint="collapse it first, or remove it",
        )  # fmt: skip
    return np.asarray(key[:, None] == np.arange(key.max(initial=0) + 1), dtype=np.float64)


def _target(table: Any, name: str) -> Floats | Integers:
    """The target of a tree: codes, or numbers with a mask of the missing ones."""
    if not is_number(table, name):
        return codes(table, [name])
    values = finite(table, name)
    values = values / (np.nanmax(np.abs(values)) or 1.0)
    missing = np.isnan(values)
    if not missing.any():
        return np.asarray(values, dtype=np.float64)
    filled = np.where(missing, np.nanmean(values), values)
    return np.stack([filled / (filled.std() or 1.0), missing.astype(np.float64)], axis=1)


def _tree(table: Any, name: str, leaf: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    kind = DecisionTreeRegressor if is_number(table, name) else DecisionTreeClassifier
    # The state decides between equal splits, and is no secret.
    return kind(min_samples_leaf=leaf, random_state=0)


def _picked(here: Integers, there: Integers, draws: Draws) -> Integers:
    """A random row of the table for each made row, out of the rows in the same leaf."""
    many = int(max(here.max(), there.max())) + 1
    order = np.argsort(here, kind="stable")
    sizes = np.bincount(here, minlength=many)
    starts = np.cumsum(sizes) - sizes
    return np.asarray(order[starts[there] + draws.below(sizes[there])], dtype=np.int64)
