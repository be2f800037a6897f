"""Functions that data define, before noise: a release adds its path to one. They are secret."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.exact.enclosures import Enclosure
from tacit.exact.rounding import Ball, Exact, ball, exact_parameter, upper
from tacit.functions.boxes import as_points
from tacit.functions.kernels import Kernel

ROWS = 256
BLOCK = 1 << 21


class Mean(ABC):
    """f_D: known in floats with a radius, and as a ball at any precision."""

    __slots__ = ()

    @property
    @abstractmethod
    def dimension(self) -> int:
        """d."""

    @abstractmethod
    def enclosed(self, points: Floats) -> Enclosure:
        """f_D at the points (m, d), in floats with proved radii."""

    @abstractmethod
    def ball(self, point: Floats) -> Ball:
        """f_D at one point, at the working precision."""

    def norm_bound(self, kernel: Kernel) -> float | None:
        """A public bound on |f_D| in the RKHS of the kernel, if the family has one."""
        return None

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """f_D at the points, in floats: for the custodian's eyes."""
        return self.enclosed(as_points(points, self.dimension)).mid


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCombination(Mean):
    """f_D = sum_i a_i K(x_i, .): a kernel density estimate, a support vector machine, a ridge regression.

    Given floats count as the exact numbers that they store. `absolute_sum` is a public bound on sum |a_i|: the
    proof about the family gives it, never the data. No row is ever printed.
    """

    kernel: Kernel
    points: npt.ArrayLike = field(repr=False)
    coefficients: npt.ArrayLike = field(repr=False)
    absolute_sum: Exact

    def __post_init__(self) -> None:
        points = as_points(self.points, self.kernel.dimension)
        weights = np.ascontiguousarray(self.coefficients, dtype=np.float64).ravel()
        if weights.size != points.shape[0] or not bool(np.isfinite(weights).all()):
            raise InvalidParameter(
                parameter="coefficients", value="an array", must="hold one finite number for each point"
            )
        if float(np.abs(weights).sum()) > float(exact_parameter("absolute_sum", self.absolute_sum)) * (
            1 + 2.0**-30
        ):
            raise InvalidParameter(
                parameter="absolute_sum", value="a bound", must="be at least the sum of the coefficients' sizes",
                hint="it is proved for the family: for a density estimate it is sup K(x, x) over its normalisation",
            )  # fmt: skip
        self.kernel.check_domain(points)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "coefficients", weights)

    @property
    def at(self) -> Floats:
        """The x_i, as an array (n, d)."""
        return np.asarray(self.points)

    @property
    def weights(self) -> Floats:
        """The a_i."""
        return np.asarray(self.coefficients)

    @property
    def dimension(self) -> int:
        return self.kernel.dimension

    def norm_bound(self, kernel: Kernel) -> float | None:
        """absolute_sum sqrt(sup K(x, x)), from public numbers only."""
        if kernel != self.kernel:
            return None
        size, top = exact_parameter("absolute_sum", self.absolute_sum), self.kernel.sup_diagonal
        return upper(lambda: ball(size) * ball(top).sqrt())

    def squared_norm(self) -> float:
        """|f_D|^2 in the RKHS of its kernel."""
        return self.kernel.squared_norm(self.at, self.weights)

    def enclosed(self, points: Floats) -> Enclosure:
        """Sums of 256 rows by matrix products, and those sums with their rounding errors kept beside them.

        A product errs by at most 256 2^-53 of sum |a_i K|, in any order of the additions; the kept errors leave two
        roundings more. `gram_error` is the kernel's share.
        """
        out, kernel = np.empty(points.shape[0]), self.kernel
        wide = max(1, BLOCK // ROWS)
        for low in range(0, points.shape[0], wide):
            at = points[low : low + wide]
            total, lost = np.zeros(at.shape[0]), np.zeros(at.shape[0])
            for start in range(0, self.at.shape[0], ROWS):
                part = kernel._gram(at, self.at[start : start + ROWS]) @ self.weights[start : start + ROWS]
                new = total + part
                back = new - total
                lost += (total - (new - back)) + (part - back)
                total = new
            out[low : low + wide] = total + lost
        size = float(np.abs(self.weights).sum()) * (1 + 2.0**-30)
        each = kernel.gram_error + (ROWS + 8) * 2.0**-53 * (kernel.sup_diagonal + kernel.gram_error)
        return Enclosure(out, size * each + 1e-300)

    def ball(self, point: Floats) -> Ball:
        import flint

        arb = flint.arb
        x = [arb(v) for v in point.tolist()]
        total = arb(0)
        for row, weight in zip(self.at.tolist(), self.weights.tolist(), strict=True):
            total += arb(weight) * self.kernel.ball(x, [arb(v) for v in row])
        return total
