"""The total variation of the density of a tilted loss, for normal noise that is sampled.

A density f of total variation V has |integral of f e^(iwl) dl| <= V/|w|: `docs/theory/negligible-frequencies.md` (f).
With x normal under Q, Z = e^(mu x - mu^2/2), g = 1 - q + q Z and the loss ln g (or its negative), all densities that
are needed are phi(x) g^k/(mu q Z) as functions of the loss, for some real k.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.exact.arrays import Floats

__all__ = ["log_variation"]

_CELLS = 256


def log_variation(mu: Floats, rate: Floats, power: float, start: Floats | None = None) -> Floats:
    """Upper bounds on ln V of each row (columns mu and rate), over all x or over x >= `start`.

    ln f = -x^2/2 + k ln g - mu x + const has the derivative mu (k s - 1) - x with s = q Z/g in (0, 1): its zeros, at
    most three, lie between -mu and (k - 1) mu, and its second derivative between -1 - |k| mu^2/4 and |k| mu^2/4.
    """
    low, high = (min(power, 0.0) - 1) * mu, (max(power, 0.0) - 1) * mu
    if start is not None:
        low, high = np.maximum(low, start), np.maximum(high, start)
    width = (high - low) / _CELLS
    x = low + width * np.arange(_CELLS + 1.0)
    log_z = mu * x - mu * mu / 2
    log_g = np.logaddexp(np.log1p(-rate), np.log(rate) + log_z)
    logs = power * log_g - x * x / 2 - log_z - np.log(mu * rate) - math.log(2 * math.pi) / 2
    peak = np.max(logs, axis=1, keepdims=True)
    heights = np.exp(logs - peak)
    moves = np.abs(np.diff(heights, axis=1))
    bend = abs(power) * mu[:, 0] ** 2 / 4
    part = width[:, 0] ** 2 / 8
    # Two maxima and one minimum may hide between the points; a cell that has both counts three times.
    hidden = 4 * np.expm1(np.minimum((1 + bend) * part, 600.0)) - 2 * np.expm1(-bend * part)
    total = heights[:, 0] + heights[:, -1] + np.sum(moves, axis=1) + 2 * np.max(moves, axis=1) + hidden
    size = np.max(np.abs(power * log_g) + x * x / 2 + np.abs(log_z), axis=1)
    return np.asarray(peak[:, 0] + np.log(total) + 1e-9 + 1e-14 * size)
