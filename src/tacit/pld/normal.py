"""The normal distribution: in balls, and in floats with error bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.exact.arrays import UNIT, Column, Floats
from tacit.exact.balls import ball
from tacit.pld.distributions import Cells

__all__ = ["float_normal_cdf", "normal_cdf", "normal_cells"]

_TINY = 1e-307


def normal_cdf(x: Any) -> Any:
    """The ball of the standard normal distribution function."""
    return (-x / ball(2).sqrt()).erfc() / 2


def float_normal_cdf(z: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Phi(z) and its error bound, where z carries an absolute error of at most 4 units of `spread`.

    The relative error of the library's function stays below (16 + 4 z^2) units for z < 0 (tested).
    """
    from scipy.special import ndtr

    value = ndtr(z)
    below = np.clip(z, -40.0, 0.0)
    relative = UNIT * (16 + 4 * below * below + 8 * (np.abs(below) + 1) * spread)
    return value, value * relative + _TINY


_NODES = np.array([-0.8611363115940526, -0.3399810435848563, 0.3399810435848563, 0.8611363115940526])


_SHARES = np.array([0.34785484513745385, 0.6521451548625461, 0.6521451548625461, 0.34785484513745385]) / 2


def normal_cells(x: Floats, half: Column, wide: Callable[[slice], Cells]) -> Cells:
    """Masses of N(half, 1) and N(-half, 1) between edges x, by Gauss's rule of four nodes in narrow cells.

    The rule's error for a cell of width w is at most w^9 max|phi^(8)| 4!^4/(9 8!^3), and |He_8(z)| is at most
    (|z| + 4.15)^8, as its roots lie within 4.15: relatively, 5.7e-10 (w (|z| + 4.15))^8 times the variation
    of phi over the cell. `wide` gives those between the edges of a slice from tails: where cells are wide,
    differences of tails do not cancel.
    """
    left, right = x[:, :-1], x[:, 1:]
    with np.errstate(invalid="ignore"):
        width = np.where(np.isfinite(left) & np.isfinite(right), right - left, np.inf)
        reach = np.maximum(np.abs(left), np.abs(right)) + half + 4.15
        grade = width * reach
    narrow = grade < 0.25
    rows = [np.zeros_like(grade) for _ in range(4)]
    used = np.flatnonzero(np.any(narrow, axis=0))
    if len(used):
        at = slice(int(used[0]), int(used[-1]) + 1)
        chosen, power = narrow[:, at], np.where(narrow[:, at], grade[:, at], 0.0)
        middle = np.where(chosen, (left[:, at] + right[:, at]) / 2, 0.0)
        size = np.where(chosen, width[:, at], 0.0)
        power *= power
        power *= power
        power *= power * 8e-10
        for k, shift in enumerate((-half, half)):
            total = np.zeros_like(middle)
            for node, share in zip(_NODES, _SHARES, strict=True):
                z = size * (node / 2)
                z += middle
                z += shift
                z *= z
                z *= -0.5
                total += share * np.exp(z, out=z)
            total *= size * 0.3989422804014327
            z = np.abs(middle + shift)
            relative = UNIT * (32 + 4 * z * (z + np.abs(middle) + half)) + power
            rows[k][:, at] = total
            rows[k + 2][:, at] = total * relative + 1e-307
    used = np.flatnonzero(~np.all(narrow, axis=0))
    if len(used):
        at = slice(int(used[0]), int(used[-1]) + 1)
        known = wide(slice(at.start, at.stop + 1))
        for k, values in enumerate((known.p, known.q, known.p_error, known.q_error)):
            rows[k][:, at] = np.where(narrow[:, at], rows[k][:, at], values)
    return Cells(p=rows[0], q=rows[1], p_error=rows[2], q_error=rows[3])
