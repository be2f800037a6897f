"""Laplace noise in floating point tells the answer by its last digits (Mironov 2012).

A textbook sampler computes y = c + s b ln(u) in doubles, with u a multiple of 2^-53 and s = ±1. Only some doubles can
come out, and which ones depends on c: if the y that was published cannot come from c = 0, the answer was 1, however
much noise there is. The attack tries the few u that could have given y. Noise on integers or on a grid that does not
depend on the data has no such holes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tacit.attacks.draws import Draws
from tacit.attacks.finding import Finding
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.checks import positive

if TYPE_CHECKING:
    import numpy.typing as npt

    from tacit.exact.arrays import Booleans, Floats


__all__ = ["possible", "textbook_laplace", "which_answer"]

GRID = 2.0**53
REACH = 24
"""So many neighbours of the nearest u are tried on either side; where more could lead to y, y counts as possible."""


def textbook_laplace(answers: npt.ArrayLike, *, noise_scale: float, draws: Draws) -> Floats:
    """The sampler under attack: c + s b ln(u), each step rounded to a double."""
    import numpy as np

    c = np.asarray(answers, dtype=np.float64)
    u = draws.dyadic(*c.shape)
    sign = np.where(draws.bits(*c.shape) == 1, 1.0, -1.0)
    return np.asarray(c + sign * (noise_scale * np.log(u)), dtype=np.float64)


def possible(published: npt.ArrayLike, answer: float, *, noise_scale: float) -> Booleans:
    """Could the textbook sampler have published this, were that the answer?"""
    import numpy as np

    y = np.asarray(published, dtype=np.float64)
    b = positive("noise_scale", noise_scale)
    gap = y - answer
    sign = np.where(gap <= 0, 1.0, -1.0)  # ln u is negative
    u = np.exp(-np.abs(gap) / b)
    nearest = np.rint(u * GRID)
    wide = u * GRID * np.spacing(np.maximum(np.abs(y), abs(answer))) / b + 2 > REACH
    found = np.array(wide, dtype=np.bool_)
    for step in range(-REACH, REACH + 1):
        k = nearest + step
        inside = (k >= 1) & (k <= GRID)
        tried = np.clip(k, 1, GRID) / GRID
        found |= inside & (answer + sign * (b * np.log(tried)) == y)
    return found


def which_answer(published: npt.ArrayLike, candidates: Sequence[float], *, noise_scale: float) -> Finding:
    """The published numbers that only one of the candidates can have given."""
    import numpy as np

    y = np.atleast_1d(np.asarray(published, dtype=np.float64))
    if len(candidates) < 2:
        raise EmptyComposition(what="the list of candidates", hint="give at least two possible answers")
    if not np.isfinite(y).all():
        raise InvalidParameter(parameter="published", value="not finite", must="be finite numbers")
    table = np.stack([possible(y, float(c), noise_scale=noise_scale) for c in candidates])
    exposed = np.flatnonzero(table.sum(axis=0) == 1)
    return Finding(
        attack="floating-point noise",
        people=int(y.size),
        exposed=exposed.tolist(),
        learned=[candidates[i] for i in table[:, exposed].argmax(axis=0).tolist()],
        guessing=1 / len(candidates),
        alone="one of the candidates at random",
        details={
            "noise_scale": noise_scale,
            "possible": {str(c): float(t.mean()) for c, t in zip(candidates, table, strict=True)},
        },
    )
