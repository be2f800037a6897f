"""Sums, products and tensor products of kernels are kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.balls import Ball, ball
from tacit.exact.checks import members
from tacit.exact.rounding import up
from tacit.functions.boxes import MOST_DIMENSIONS
from tacit.functions.kernels.base import UNIT, Balls, Kernel, ordinary_size

__all__ = ["ProductKernel", "SumKernel", "TensorProductKernel"]


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
        return {"kernels": [k.describe() for k in self.parts]}

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
