"""Goodness of fit, as for the noise itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import gammaincc


@pytest.fixture
def p_of() -> Callable[[np.ndarray, np.ndarray], float]:
    """The p-value of Pearson's statistic over cells with at least 10 expected."""

    def check(observed: np.ndarray, expected: np.ndarray) -> float:
        big = expected >= 10
        o, e = observed[big].astype(float), expected[big]
        return float(gammaincc((o.size - 1) / 2, ((o - e) ** 2 / e).sum() / 2))

    return check
