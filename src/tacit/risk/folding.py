"""Back from half a range to the whole: for a symmetric loss h(n-y) = n - h(y), and the prior mirrors itself."""

from __future__ import annotations

import numpy as np

from tacit.exact.arrays import Floats

__all__ = ["unfolded_heights", "unfolded_prior"]


def unfolded_heights(half: Floats, n: int) -> Floats:
    """h on 0..n from the outputs below n/2; an output in the middle stands for n/2."""
    middle = [n / 2] if n % 2 == 0 else []
    return np.concatenate([half, middle, n - half[::-1]])


def unfolded_prior(half: Floats, n: int) -> Floats:
    """The prior on 0..n from the counts up to n/2, of which each stands for itself and its mirror image."""
    prior = np.zeros(n + 1)
    prior[: half.size] += half / 2
    prior[n + 1 - half.size :] += half[::-1] / 2
    return prior
