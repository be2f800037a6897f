"""The interface of all kernels: Gram matrix, largest value, norm of combinations, spectrum."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import members, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, ball, exact_parameter, up
from tacit.functions.boxes import MOST_DIMENSIONS, Box, as_points

Balls = Sequence[Ball]
MOST_NODES = 2500
UNIT = 2.0**-53
LEAST_SIZE, MOST_SIZE = 2.0**-500, 2.0**900
LIBRARY = 2.0**-50
"""The relative error of the functions that IEEE 754 does not round correctly; in practice below 2^-52."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """K(x, y) = sum_j values[j] psi_j(x) psi_j(y) on a box; psi_j orthonormal for the Lebesgue measure there.

    `functions(points)` gives the array (m, terms) of psi_j at the points. `closed` says whether the values come from a
    formula or from Nystrom's method (Gauss-Legendre nodes).
    """

    values: Floats
    functions: Callable[[npt.ArrayLike], Floats]
    box: Box
    closed: bool


class Kernel(ABC):
    """A positive definite function K(x, y) on R^d, or on its own domain.

    Subclasses are frozen, keyword-only data classes, valid from birth. `gram` is in floats, for means and for people;
    `ball` encloses one value, for proofs.
    """

    __slots__ = ()

    kind: ClassVar[str]
    stationary: ClassVar[bool] = False
    """Whether K(x, y) = k(x - y), k even in each coordinate."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """d."""

    @property
    @abstractmethod
    def sup_diagonal(self) -> float:
        """sup K(x, x) over the kernel's domain, rounded up."""

    @property
    @abstractmethod
    def gram_error(self) -> float:
        """The largest error of a float of `gram`.

        Assumption: numpy's exp, sin and power are within LIBRARY of the result, relatively; tests compare with balls.
        """

    @abstractmethod
    def _gram(self, left: Floats, right: Floats) -> Floats:
        """K(left_i, right_j); the points are checked."""

    @abstractmethod
    def ball(self, left: Balls, right: Balls) -> Ball:
        """K(x, y) at the working precision, for points given as balls."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The kernel as plain JSON values: for certificates and for the custodian's records."""

    def to_dict(self) -> dict[str, Any]:
        """The kernel for a certificate."""
        return {"kernel": self.kind, "dimension": self.dimension, **self.parameters}

    describe = formerly("describe", method=True)

    def check_domain(self, points: Floats) -> None:
        """Refuses points outside the kernel's domain; most kernels are defined everywhere."""
        return

    def gram(self, left: npt.ArrayLike, right: npt.ArrayLike | None = None) -> Floats:
        """The matrix K(left_i, right_j) in floats; one list of points gives the Gram matrix."""
        first = as_points(left, self.dimension)
        second = first if right is None else as_points(right, self.dimension)
        self.check_domain(first)
        self.check_domain(second)
        return self._gram(first, second)

    def diagonal(self, points: npt.ArrayLike) -> Floats:
        """K(x, x) at the points."""
        array = as_points(points, self.dimension)
        self.check_domain(array)
        return self._diagonal(array)

    def _diagonal(self, points: Floats) -> Floats:
        if self.stationary and points.shape[0]:
            return np.full(points.shape[0], float(self._gram(points[:1], points[:1])[0, 0]))
        return np.array([float(self._gram(x[None], x[None])[0, 0]) for x in points], dtype=np.float64)

    def squared_norm(self, points: npt.ArrayLike, coefficients: npt.ArrayLike) -> float:
        """|sum_i a_i K(x_i, .)|^2 = a'Ga in the RKHS, in blocks of rows."""
        array = as_points(points, self.dimension)
        self.check_domain(array)
        weights = np.asarray(coefficients, dtype=np.float64).ravel()
        if weights.size != array.shape[0]:
            raise InvalidParameter(
                parameter="coefficients",
                value=f"{weights.size} numbers",
                must=f"be {array.shape[0]}, one a point",
            )
        rows = max(1, (1 << 22) // max(1, array.shape[0]))
        parts = [
            float(weights[s : s + rows] @ (self._gram(array[s : s + rows], array) @ weights))
            for s in range(0, array.shape[0], rows)
        ]
        return max(0.0, float(np.sum(parts)))

    def spectrum(self, box: Box, terms: int, *, closed: bool = True) -> Spectrum:
        """The largest `terms` eigenvalues on the box, by formula if the kernel has one, else by Nystrom's method."""
        terms = whole("terms", terms)
        if box.dimension != self.dimension:
            raise InvalidParameter(
                parameter="box", value=box.dimension, must=f"have dimension {self.dimension}"
            )
        found = self._closed_spectrum(box, terms) if closed else None
        return found if found is not None else nystrom(self, box, terms)

    def _closed_spectrum(self, box: Box, terms: int) -> Spectrum | None:
        return None


def nystrom(kernel: Kernel, box: Box, terms: int) -> Spectrum:
    """Eigenvalues of the integral operator by tensor Gauss-Legendre nodes; psi_j extended by the kernel itself."""
    points, roots = legendre_nodes(box, max(4 * terms + 20, 60))
    if points.shape[0] < terms:
        raise InvalidParameter(
            parameter="terms", value=terms, must=f"be at most {points.shape[0]} in dimension {box.dimension}"
        )
    values, vectors = np.linalg.eigh(roots[:, None] * kernel.gram(points) * roots[None, :])
    values, vectors = values[::-1][:terms].clip(min=0.0), vectors[:, ::-1][:, :terms]

    def functions(at: npt.ArrayLike) -> Floats:
        # An eigenvalue lost in rounding has no eigenfunction that floats could tell: it gives 0.
        with np.errstate(divide="ignore"):
            inverse = np.where(values > 1e-13 * values[0], 1 / values, 0.0)
        return np.asarray((kernel.gram(at, points) * roots[None, :]) @ vectors * inverse[None, :])

    return Spectrum(values=values, functions=functions, box=box, closed=False)


def most_nodes(box: Box) -> int:
    """The largest number of nodes along a line of a grid in the box."""
    return int((MOST_NODES + 0.5) ** (1 / box.dimension))


def legendre_nodes(box: Box, each: int) -> tuple[Floats, Floats]:
    """Tensor Gauss-Legendre nodes, `each` of them along a line or fewer if the total is limited; and the roots of
    their weights.
    """
    each = min(each, most_nodes(box))
    if each < 2:
        raise InvalidParameter(
            parameter="box", value=box.dimension, must="have few dimensions for a grid of nodes",
            hint="release the values at given points instead",
        )  # fmt: skip
    nodes, weights = np.polynomial.legendre.leggauss(each)
    axes = [m + s / 2 * nodes for m, s in zip(box.middle, box.sides, strict=True)]
    points = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
    grids = np.meshgrid(*[s / 2 * weights for s in box.sides], indexing="ij")
    return points, np.sqrt(np.prod([m.ravel() for m in grids], axis=0))


def length_parameter(name: str, value: object) -> float:
    """A length between 2^-200 and 2^200, so that squares and ratios stay in range."""
    exact = exact_parameter(name, value)
    number = float(exact)
    if not 2.0**-200 <= number <= 2.0**200:
        raise InvalidParameter(parameter=name, value=value, must="lie between 2^-200 and 2^200")
    return number


def dimension_parameter(instance: object, value: object) -> None:
    """Set the field `dimension` of a kernel."""
    d = whole("dimension", value)
    if d > MOST_DIMENSIONS:
        raise InvalidParameter(parameter="dimension", value=value, must=f"be at most {MOST_DIMENSIONS}")
    set_fields(instance, dimension=d)


def ordinary_size(kernel: Kernel) -> None:
    """Refuses a kernel whose values floats would lose: relative errors are known for floats in their ordinary range
    only.
    """
    if not LEAST_SIZE <= kernel.sup_diagonal <= MOST_SIZE:
        raise InvalidParameter(
            parameter="kernel", value=kernel.kind, must="have sup K(x, x) between 2^-500 and 2^900",
            hint="rescale the columns",
        )  # fmt: skip


def squared_distance(left: Floats, right: Floats, scale: float) -> Floats:
    """scale^2 |x_i - y_j|^2. Differences come first, then the scale, so that near points stay near anywhere.

    Differences are within 2^-53 of themselves, and so is each step after: the result within (7 + d) 2^-53 of itself.
    """
    total = np.zeros((left.shape[0], right.shape[0]))
    with np.errstate(over="ignore"):
        for axis in range(left.shape[1]):
            total += ((left[:, None, axis] - right[None, :, axis]) * scale) ** 2
    return total


# Sums, products and tensor products of kernels are kernels.


class _Combined(Kernel):
    __slots__ = ()

    kernels: Sequence[Kernel]

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that are combined."""
        return tuple(self.kernels)

    def _settle(self, *, same_dimension: bool) -> None:
        given = members("kernels", self.kernels)
        if not given:
            raise EmptyComposition(what="a combination of kernels")
        for one in given:
            if not isinstance(one, Kernel):
                raise InvalidParameter(parameter="kernels", value=type(one).__name__, must="hold kernels")
        if same_dimension and len({k.dimension for k in given}) > 1:
            raise InvalidParameter(
                parameter="kernels", value=[k.dimension for k in given], must="be of one dimension",
                hint="TensorProductKernel gives each kernel coordinates of its own",
            )  # fmt: skip
        object.__setattr__(self, "kernels", given)
        ordinary_size(self)

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return all(k.stationary for k in self.parts)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"kernels": [k.to_dict() for k in self.parts]}

    def _product_error(self) -> float:
        """prod(sup + error) - prod(sup), and a rounding for each factor."""
        sizes = [Fraction(k.sup_diagonal) for k in self.parts]
        wide = math.prod((s + Fraction(k.gram_error) for s, k in zip(sizes, self.parts, strict=True)))
        return up(wide - math.prod(sizes) + len(sizes) * Fraction(2 * UNIT) * wide)

    def check_domain(self, points: Floats) -> None:
        for one in self.parts:
            one.check_domain(points)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumKernel(_Combined):
    """K = K_1 + K_2 + ...: the norm of f is the least root of sum |f_i|^2 over f = sum f_i."""

    kind: ClassVar[str] = "sum"
    kernels: Sequence[Kernel]

    def __post_init__(self) -> None:
        self._settle(same_dimension=True)

    @property
    def dimension(self) -> int:
        return self.parts[0].dimension

    @property
    def sup_diagonal(self) -> float:
        return up(sum((Fraction(k.sup_diagonal) for k in self.parts), Fraction(0)))

    @property
    def gram_error(self) -> float:
        errors = sum((Fraction(k.gram_error) for k in self.parts), Fraction(0))
        return up(errors + len(self.parts) * Fraction(2 * UNIT) * Fraction(self.sup_diagonal))

    def _gram(self, left: Floats, right: Floats) -> Floats:
        return np.asarray(np.sum([k._gram(left, right) for k in self.parts], axis=0), dtype=np.float64)

    def _diagonal(self, points: Floats) -> Floats:
        return np.asarray(np.sum([k._diagonal(points) for k in self.parts], axis=0), dtype=np.float64)

    def ball(self, left: Balls, right: Balls) -> Ball:
        return sum((k.ball(left, right) for k in self.parts), ball(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductKernel(_Combined):
    """K = K_1 K_2 ..., all of the same coordinates (Schur's theorem)."""

    kind: ClassVar[str] = "product"
    kernels: Sequence[Kernel]

    def __post_init__(self) -> None:
        self._settle(same_dimension=True)

    @property
    def dimension(self) -> int:
        return self.parts[0].dimension

    @property
    def sup_diagonal(self) -> float:
        return up(math.prod((Fraction(k.sup_diagonal) for k in self.parts), start=Fraction(1)))

    @property
    def gram_error(self) -> float:
        return self._product_error()

    def _gram(self, left: Floats, right: Floats) -> Floats:
        return np.asarray(np.prod([k._gram(left, right) for k in self.parts], axis=0), dtype=np.float64)

    def _diagonal(self, points: Floats) -> Floats:
        return np.asarray(np.prod([k._diagonal(points) for k in self.parts], axis=0), dtype=np.float64)

    def ball(self, left: Balls, right: Balls) -> Ball:
        return math.prod((k.ball(left, right) for k in self.parts), start=ball(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorProductKernel(_Combined):
    """K(x, y) = K_1(x_1, y_1) K_2(x_2, y_2) ..., each kernel with coordinates of its own.

    The norm of a product f_1(x_1) f_2(x_2) ... is the product of the norms. Source: Hall 2012, (3.8).
    """

    kind: ClassVar[str] = "tensor product"
    kernels: Sequence[Kernel]

    def __post_init__(self) -> None:
        self._settle(same_dimension=False)
        if self.dimension > MOST_DIMENSIONS:
            raise InvalidParameter(
                parameter="kernels", value=self.dimension, must=f"have at most {MOST_DIMENSIONS} coordinates"
            )

    @property
    def dimension(self) -> int:
        return sum(k.dimension for k in self.parts)

    @property
    def blocks(self) -> list[tuple[Kernel, slice]]:
        """Each kernel with its coordinates."""
        ends = np.cumsum([0, *(k.dimension for k in self.parts)]).tolist()
        return [(k, slice(a, b)) for k, (a, b) in zip(self.parts, pairwise(ends), strict=True)]

    @property
    def sup_diagonal(self) -> float:
        return up(math.prod((Fraction(k.sup_diagonal) for k in self.parts), start=Fraction(1)))

    @property
    def gram_error(self) -> float:
        return self._product_error()

    def check_domain(self, points: Floats) -> None:
        for one, own in self.blocks:
            one.check_domain(points[:, own])

    def _gram(self, left: Floats, right: Floats) -> Floats:
        return np.asarray(
            np.prod([k._gram(left[:, own], right[:, own]) for k, own in self.blocks], axis=0),
            dtype=np.float64,
        )

    def _diagonal(self, points: Floats) -> Floats:
        return np.asarray(
            np.prod([k._diagonal(points[:, own]) for k, own in self.blocks], axis=0), dtype=np.float64
        )

    def ball(self, left: Balls, right: Balls) -> Ball:
        return math.prod((k.ball(left[own], right[own]) for k, own in self.blocks), start=ball(1))
