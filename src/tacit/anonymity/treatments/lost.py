"""The loss by a treatment: the change of each column, and of the dependence between columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.anonymity.treatments.methods import encoded, is_number, numbers
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.data_classes import dataclass

__all__ = ["CorrectedRegression", "Lost", "compare_tables", "corrected_covariance", "corrected_regression"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """rows: removed. columns: removed. changed: the share of values that differ, if rows kept their places.

    shift: for each column the distance between its two distributions, from 0 to 1: Kolmogorov and Smirnov's for
    numbers, total variation otherwise. correlation: the largest change of a correlation between two columns of numbers.
    """

    rows: int
    columns: tuple[str, ...]
    changed: Mapping[str, float]
    shift: Mapping[str, float]
    correlation: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "rows_removed": self.rows, "columns_removed": list(self.columns), "changed": dict(self.changed),
            "shift": dict(self.shift), "correlation": self.correlation,
        }  # fmt: skip

    record = formerly("record")


def compare_tables(before: Any, after: Any, *, aligned: bool) -> Lost:
    """The differences between two Arrow tables; aligned: row i of one is row i of the other."""
    common = [name for name in before.column_names if name in after.column_names]
    same_rows = aligned and before.num_rows == after.num_rows
    changed, shift, both = {}, {}, []
    for name in common:
        if is_number(before, name) and is_number(after, name):
            old, new = numbers(before, name), numbers(after, name)
            shift[name] = _kolmogorov(old, new)
            both.append(name)
            if same_rows:
                changed[name] = float(np.mean(~((old == new) | (np.isnan(old) & np.isnan(new)))))
        else:
            old_words, new_words = _texts(before, name), _texts(after, name)
            shift[name] = _variation(old_words, new_words)
            if same_rows:
                changed[name] = float(np.mean(old_words != new_words))
    return Lost(
        rows=before.num_rows - after.num_rows,
        columns=tuple(name for name in before.column_names if name not in after.column_names),
        changed=changed,
        shift=shift,
        correlation=_correlation(before, after, both),
    )


def _texts(table: Any, name: str) -> npt.NDArray[Any]:
    """Values as texts; missing becomes a separate text."""
    coded = encoded(table, name)
    texts = np.array(
        ["\0missing" if v is None else str(v) for v in coded.dictionary.to_pylist()], dtype=object
    )
    return texts[np.asarray(coded.indices.to_numpy(zero_copy_only=False))] if len(texts) else texts


def _variation(old: npt.NDArray[Any], new: npt.NDArray[Any]) -> float:
    if not len(old) or not len(new):
        return float(len(old) != len(new))
    words = {w: i for i, w in enumerate(dict.fromkeys([*old.tolist(), *new.tolist()]))}
    p = np.bincount([words[w] for w in old.tolist()], minlength=len(words)) / len(old)
    q = np.bincount([words[w] for w in new.tolist()], minlength=len(words)) / len(new)
    return float(np.abs(p - q).sum() / 2)


def _kolmogorov(old: npt.NDArray[np.float64], new: npt.NDArray[np.float64]) -> float:
    old, new = np.sort(old[np.isfinite(old)]), np.sort(new[np.isfinite(new)])
    if not len(old) or not len(new):
        return float(len(old) != len(new))
    places = np.concatenate([old, new])
    p = np.searchsorted(old, places, side="right") / len(old)
    q = np.searchsorted(new, places, side="right") / len(new)
    return float(np.abs(p - q).max())


def _correlation(before: Any, after: Any, names: list[str]) -> float | None:
    if len(names) < 2:
        return None
    found = []
    for table in (before, after):
        made = np.stack([numbers(table, n) for n in names], axis=1)
        made = made[np.isfinite(made).all(axis=1)]
        if len(made) < 3:
            return None
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(np.nan_to_num(np.corrcoef(made, rowvar=False)))
    return float(np.abs(found[0] - found[1]).max())


# Valid analysis of disturbed data: moments and regressions corrected for the noise that was added (Fuller 1987).
#
# Where W = X + U is published, U independent noise with known covariance, the variance of W is too large by that of
# U, and slopes on W are too flat by the reliability Var X / Var W. Both are mended by subtracting what is known:
#
#     beta = (W'W - n Sigma)^-1 W'y,
#
# consistent as n grows, with the sandwich covariance M^-1 V M^-1, M = W'W - n Sigma and V the sum over rows of the
# outer products of w_i e_i + Sigma beta, e_i = y_i - w_i' beta. Noise on y needs no correction of slopes. What is
# assumed: the noise was independent of everything, its covariance is known, and the linear model holds.


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRegression:
    """Coefficients, intercept first; their standard errors; and the coefficients of a naive fit."""

    coefficients: Floats
    errors: Floats
    naive: Floats


def _noise(noise_std: npt.ArrayLike, width: int) -> Floats:
    given = np.asarray(noise_std, dtype=np.float64)
    if given.ndim == 2 and given.shape == (width, width):
        return given
    if given.ndim > 1 or (given.ndim == 1 and len(given) != width) or (given < 0).any():
        raise InvalidParameter(
            parameter="noise_std", value=given.tolist(),
            must="be one number, one for each column, or a covariance matrix; 0 where there is no noise",
        )  # fmt: skip
    return np.diag(np.broadcast_to(given, (width,)) ** 2)


def corrected_covariance(w: npt.ArrayLike, noise_std: npt.ArrayLike) -> Floats:
    """The covariance of the original columns: that of W minus that of the noise."""
    x = np.asarray(w, dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    return np.atleast_2d(np.cov(x, rowvar=False)) - _noise(noise_std, x.shape[1])


def corrected_regression(w: npt.ArrayLike, y: npt.ArrayLike, noise_std: npt.ArrayLike) -> CorrectedRegression:
    """The linear regression of y on the undisturbed columns, from disturbed ones."""
    x = np.asarray(w, dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    target = np.asarray(y, dtype=np.float64)
    rows, width = x.shape
    if len(target) != rows or rows <= width + 1 or not (np.isfinite(x).all() and np.isfinite(target).all()):
        raise InvalidParameter(
            parameter="y", value=len(target), must="be a finite number for each of more rows than columns"
        )
    design = np.concatenate([np.ones((rows, 1)), x], axis=1)
    sigma = np.zeros((width + 1, width + 1))
    sigma[1:, 1:] = _noise(noise_std, width)
    gram = design.T @ design
    moment = gram - rows * sigma
    if np.linalg.eigvalsh(moment)[0] <= 0:
        raise InvalidParameter(
            parameter="noise_std",
            value="as given",
            must="leave something of the columns: they vary less than the noise",
        )
    beta = np.linalg.solve(moment, design.T @ target)
    left = target - design @ beta
    scores = design * left[:, None] + sigma @ beta
    inverse = np.linalg.inv(moment)
    covariance = inverse @ (scores.T @ scores) @ inverse
    return CorrectedRegression(
        coefficients=beta, errors=np.sqrt(np.diag(covariance)), naive=np.linalg.solve(gram, design.T @ target)
    )
