"""Laws of one coordinate that are sums of exponentials, or known by their characteristic function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats
from tacit.noise.marginals import Marginal

__all__ = ["Corners", "ExponentialSums", "Inverted", "inverted"]

Loads = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialSums(Marginal):
    """sum_k a_k e_k with standard exponentials e_k, the loads a chosen among some with given weights.

    What is above 0 is the time that a chain stays in its states, of mean a_k each, left of it after the negative part
    has run: alpha prod (I + b_k A)^-1 e^(-A z) 1, A of states that are left for the next. No term is negative but on
    the diagonal, so that nothing cancels however near two loads are.
    """

    loads: Loads
    weights: tuple[float, ...] = (1.0,)

    def _survival(self, z: Floats) -> Floats:
        return _tails(self.loads, self.weights, z)

    def _cumulative(self, z: Floats) -> Floats:
        return _tails(tuple(tuple(-a for a in one) for one in self.loads), self.weights, -z)

    @property
    def _mean(self) -> float:
        return float(sum(w * sum(one) for w, one in zip(self.weights, self.loads, strict=True)))

    @property
    def _variance(self) -> float:
        square = sum(
            w * (sum(a * a for a in one) + sum(one) ** 2)
            for w, one in zip(self.weights, self.loads, strict=True)
        )
        return float(square) - self._mean**2

    def difference(self) -> Marginal:
        both = [
            (v * w, (*one, *(-a for a in other)))
            for v, one in zip(self.weights, self.loads, strict=True)
            for w, other in zip(self.weights, self.loads, strict=True)
        ]
        return ExponentialSums(
            scale=self.scale, loads=tuple(loads for _, loads in both), weights=tuple(w for w, _ in both)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Corners(Marginal):
    """sum_k e_k v_k / sum_k e_k: the projection of a uniform point of a simplex with these corners.

    It is above z if sum_k (v_k - z) e_k is above 0.
    """

    values: tuple[float, ...]

    def _survival(self, z: Floats) -> Floats:
        each = [
            float(_tails((tuple(v - x for v in self.values),), (1.0,), np.zeros(1))[0])
            for x in np.atleast_1d(z).ravel()
        ]
        return np.array(each).reshape(np.shape(z))

    def _cumulative(self, z: Floats) -> Floats:
        return Corners(values=tuple(-v for v in self.values))._survival(-z)

    @property
    def _mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def _variance(self) -> float:
        n = len(self.values)
        return sum((v - self._mean) ** 2 for v in self.values) / (n * (n + 1))


def _tails(loads: Loads, weights: tuple[float, ...], z: Floats) -> Floats:
    """Pr[sum > z] where z >= 0, and 1 - Pr[sum <= z] elsewhere."""
    from scipy.linalg import expm

    flat = np.atleast_1d(z)
    out = np.zeros(flat.shape)
    for weight, one in zip(weights, loads, strict=True):
        for mirror in (False, True):
            here = flat < 0 if mirror else flat >= 0
            chain, start = _chain(tuple(-a for a in one) if mirror else one)
            tail = np.zeros(int(here.sum()))
            if chain is not None and tail.size:
                tail = (start @ expm(-chain * np.abs(flat[here])[:, None, None])).sum(axis=-1)
            out[here] += weight * ((1 - tail) if mirror else tail)
    return out.reshape(np.shape(z))


@lru_cache(maxsize=1024)
def _chain(loads: tuple[float, ...]) -> tuple[npt.NDArray[np.float64] | None, Floats]:
    """The states of the positive loads, and the law over them once the negative part is over."""
    above, below = [a for a in loads if a > 0], [-a for a in loads if a < 0]
    n = len(above)
    if not n:
        return None, np.empty(0)
    rates = 1 / np.array(above)
    leave = np.diag(rates) - np.diag(rates[:-1], 1)
    start: Floats = np.zeros(n)
    start[0] = 1.0
    for b in below:
        start = np.asarray(np.linalg.solve((np.eye(n) + b * leave).T, start), dtype=np.float64)
    return leave, start


@dataclass(frozen=True, slots=True, kw_only=True)
class Inverted(Marginal):
    """A symmetric law by its characteristic function phi at t_j = (j + 1/2) pi / far.

    Pr[Z > z] = 1/2 - sum_j sin(t_j z) phi(t_j) / (pi (j + 1/2)), off by at most Pr[|Z| > far] and by what is cut off
    beyond the last point (Davies 1973).
    """

    values: tuple[float, ...] = field(repr=False)
    far: float
    spread: float
    cut: float

    @property
    def error(self) -> float:
        return self.cut

    def _survival(self, z: Floats) -> Floats:
        place = np.arange(len(self.values)) + 0.5
        waves = np.sin(np.abs(z)[..., None] * (place * (math.pi / self.far)))
        half = 0.5 - (waves * (np.array(self.values) / (math.pi * place))).sum(axis=-1)
        half = np.where(np.abs(z) < self.far, np.clip(half, 0.0, 0.5), 0.0)
        return np.where(z >= 0, half, 1 - half)

    @property
    def _variance(self) -> float:
        return self.spread


MOST_POINTS = 1 << 14
ENOUGH = 1e-13


def inverted(
    characteristic: Callable[[Floats], Floats],
    variance: float,
    reach: float,
    d: float,
    *,
    scale: float,
    sides: int,
) -> Inverted:
    """A symmetric law with |Z| at most `reach` times the gauges of `sides` K-norm noises, each Gamma(d).

    The characteristic function is taken until it is below 10^-13 or at 2^14 points, and its last size, with the
    decrease that it has by then, bounds the rest.
    """
    from scipy.special import gammainccinv

    far = reach * float(gammainccinv(sides * d, ENOUGH))
    values: list[float] = []
    while len(values) < MOST_POINTS:
        place: Floats = np.arange(len(values), len(values) + 128, dtype=np.float64) + 0.5
        values.extend(float(v) for v in characteristic(np.asarray(place * (math.pi / far), dtype=np.float64)))
        if max(abs(v) for v in values[-64:]) < ENOUGH:
            break
    return Inverted(
        scale=scale, values=tuple(values), far=far, spread=variance,
        cut=1e-11 + max(abs(v) for v in values[-64:]),
    )  # fmt: skip
