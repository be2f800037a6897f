"""What answers give away by arithmetic: the mean of repeated ones, the difference of two that are one person apart.

A server that adds fresh noise to every answer and keeps no ledger answers the same question t times; the mean has
1/√t of the noise. Two exact totals over sets that differ in one person differ by that person's value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.attacks.finding import Finding
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.checks import positive

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["average", "difference"]


def average(answers: npt.ArrayLike, *, step: float = 1.0) -> Finding:
    """The truth behind repeated answers: a row a question, a column for each time it was asked.

    True answers are multiples of `step` (1 for counts), so that the mean is rounded to the nearest. Exposed are the
    questions whose mean is within half a step of one multiple at 4.5 standard errors, estimated from the answers.
    """
    import numpy as np

    table = np.atleast_2d(np.asarray(answers, dtype=np.float64))
    grid = positive("step", step)
    if table.size == 0:
        raise EmptyComposition(what="the list of answers")
    if not np.isfinite(table).all():
        raise InvalidParameter(parameter="answers", value="not finite", must="be finite numbers")
    times = table.shape[1]
    means = table.mean(axis=1)
    spread = table.std(axis=1, ddof=1) if times > 1 else np.full(len(table), math.inf)
    errors = spread / math.sqrt(times)
    # A spread of 0 says that the answers were never noisy, or that the noise was fixed; the mean is taken as it is.
    rounded = np.rint(means / grid) * grid
    sure = 4.5 * errors + np.abs(means - rounded) < grid / 2
    found = np.flatnonzero(sure)
    typical = float(np.median(spread))
    single = math.erf(grid / 2 / (typical * math.sqrt(2))) if 0 < typical < math.inf else float(typical == 0)
    return Finding(
        attack="averaging",
        people=len(table),
        exposed=found.tolist(),
        learned=rounded[found].tolist(),
        guessing=single,
        alone="rounding one of the answers",
        details={"times": times, "noise_std": typical, "standard_error": float(np.median(errors))},
    )


def difference(
    with_person: npt.ArrayLike, without: npt.ArrayLike, *, low: float = 0.0, high: float = 1.0
) -> Finding:
    """One person's value from two totals, with and without her: a pair for each person.

    Values lie in [low, high]; guessing alone is the middle of the range, which for a bit is a coin.
    """
    import numpy as np

    a = np.atleast_1d(np.asarray(with_person, dtype=np.float64))
    b = np.atleast_1d(np.asarray(without, dtype=np.float64))
    if a.shape != b.shape or a.ndim != 1:
        raise InvalidParameter(
            parameter="without", value=b.shape, must="have one total for each of the others"
        )
    if not (low < high and np.isfinite(a).all() and np.isfinite(b).all()):
        raise InvalidParameter(parameter="low", value=low, must="be below high, and totals be finite")
    values = np.clip(a - b, low, high)
    return Finding(
        attack="differencing",
        people=int(a.size),
        exposed=range(int(a.size)),
        learned=[int(v) if float(v).is_integer() else float(v) for v in values],
        guessing=0.5,
        alone="a coin for a bit; the middle of the range for a value",
        details={"low": low, "high": high},
    )
