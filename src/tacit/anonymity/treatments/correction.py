"""Valid analysis of disturbed data: moments and regressions corrected for the noise that was added (Fuller 1987).

Where W = X + U is published, U independent noise with known covariance, the variance of W is too large by that of U,
and slopes on W are too flat by the reliability Var X / Var W. Both are mended by subtracting what is known:

    beta = (W'W - n Sigma)^-1 W'y,

consistent as n grows, with the sandwich covariance M^-1 V M^-1, M = W'W - n Sigma and V the sum over rows of the outer
products of w_i e_i + Sigma beta, e_i = y_i - w_i' beta. Noise on y needs no correction of slopes. What is assumed: the
noise was independent of everything, its covariance is known, and the linear model holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats

__all__ = ["CorrectedRegression", "corrected_covariance", "corrected_regression"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRegression:
    """Coefficients, intercept first; their standard errors; and what a naive fit would have said."""

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
    """The covariance of what was there before the noise: that of W less that of the noise."""
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
