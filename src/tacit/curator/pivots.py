"""The ends of confidence sets, many cells at once: what exact intervals of ratios need.

A statistic r that is a ratio of parts has coefficients c_i(r) with sum c_i part_i = 0. Then sum c_i noisy_i is the
noise alone, T = sum c_i X_i, and {r : |T(r)| <= t(r)} with Pr[|T| > t] <= 1 - confidence is a confidence set.

Laplace: a discrete draw of scale b is a continuous one L, moved by at most `laplace_move(b)`, a little above 1/2, and
sums of continuous ones of scales s_i have Pr[|T| > t] = sum_i e^(-t/s_i) prod_{j != i} s_i^2 / (s_i^2 - s_j^2).
Gaussian: rounding moves a draw by at most 1/2. So t_discrete <= t_continuous + sum |c_i| move_i.
Theorem `pivot-intervals`. Each mechanism knows the pivot of its own noise (`CellNoise.pivot`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.exact.arrays import Floats

__all__ = ["last_inside"]

STEPS = 60
CLOSE = 1e-13
"""Ends are found to this share of the way to them, and rounded outwards."""


def last_inside(margin: Callable[[Floats], Floats], start: Floats, end: Floats) -> Floats:
    """Where the margin, at least 0 at start, turns negative on the way to end; end where it does not.

    Bracketing with inverse quadratic steps (Chandrupatla 1997), all cells at once. What is returned is the outer
    end of the bracket, so that an error of the search only widens an interval.
    """
    near, far = np.array(start, dtype=np.float64), np.array(end, dtype=np.float64)
    at_near, at_far = margin(near), margin(far)
    done = at_far >= 0
    # a is the newest point, b the other end of the bracket, c the one before.
    a, b, fa, fb = far, near, at_far, at_near
    c, fc = b, fb
    share = np.full(a.shape, 0.5)
    reach = np.abs(far - near) * CLOSE + np.abs(far) * 1e-15
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(STEPS):
            x = a + share * (b - a)
            fx = margin(x)
            same = (fx >= 0) == (fa >= 0)
            c, fc = np.where(same, a, b), np.where(same, fa, fb)
            b, fb = np.where(same, b, a), np.where(same, fb, fa)
            a, fa = x, fx
            width = np.abs(b - a)
            if bool(np.all(done | (width <= reach))):
                break
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            smooth = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
            least = np.minimum(reach / np.maximum(2 * width, 1e-300), 0.5)
            share = np.clip(np.where(smooth & np.isfinite(step), step, 0.5), least, 1 - least)
    return np.where(done, end, np.where(fa >= 0, b, a))
