"""Which engine answers: the one rule.

    the product is                         engine                 ends
    one pair, once, with a closed form     that form              adjacent floats (ball arithmetic)
    pairs with few losses, listed briefly  the list itself        a few units
    pairs that all have a quadrature       transforms, inverted   as near as asked
    anything else, or where the transform  one grid of losses     as near as asked, or as the grid allows
    cannot be certified near enough

A product whose delta lies far below the mass of all largest losses together needs no engine: its epsilon is the
largest loss but for a part that the mass bounds. More than 256 different upper bounds without a quadrature are first
replaced by runs of their largest (coarsening.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from tacit.exact.rounding import Interval
from tacit.pld.characteristic import CharacteristicComposition
from tacit.pld.pairs.base import Pair

if TYPE_CHECKING:
    from tacit.pld.product import Product

__all__ = ["MOST_ON_GRID", "Answers", "engine_for", "transform_for"]

MOST_ON_GRID = 1e7
"""With more releases the rounding of a grid is larger than that of transforms: it is not tried after them."""


class Answers(Protocol):
    """Two questions, each answered by an enclosure."""

    approximates: ClassVar[bool]
    """Whether the ends are as near as asked only, and cost time."""

    def delta(self, epsilon: float, tolerance: float) -> Interval:
        """Enclosure of H_epsilon."""
        ...

    def epsilon(self, delta: float, tolerance: float, known: float = ...) -> Interval:
        """Enclosure of the smallest epsilon >= 0 with H_epsilon <= delta; any below `known`, where that is one."""
        ...


def engine_for(product: Product) -> Answers:
    """The first engine of the table that serves."""
    from tacit.pld.closed_form import ClosedForm
    from tacit.pld.engine import Engine
    from tacit.pld.enumerated import enumerated

    if product.single is not None and product.single.has_closed_form:
        return ClosedForm(product.single)
    listed = enumerated(product)
    return listed if listed is not None else Engine(list(product.pairs))


def transform_for(parts: list[tuple[Pair, int]], exact: bool) -> CharacteristicComposition | None:
    """The composition by transforms, where every part has a quadrature."""
    return CharacteristicComposition.of(parts, exact)
