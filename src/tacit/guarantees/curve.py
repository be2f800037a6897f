"""The algebra's interface of a privacy curve, whatever computes it.

A `Curve` answers delta(epsilon) in one direction of neighbouring, certified from both sides. A `Composer` makes
curves and joins them. The room `tacit.pld` has the only composer and installs it on import. Rooms import only
earlier rooms, so the algebra names that room once, as a string, here. `composer()` imports it at the first
curve, and `tacit.compose` works without an import by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from tacit.exact.rounding import Interval

_PROVIDER = "tacit.pld"
"""The room whose import installs the composer."""


class Curve(Protocol):
    """delta(epsilon) = sup_S P(S) - e^epsilon Q(S) of a pair (P, Q), in one direction of neighbouring."""

    @property
    def size(self) -> int:
        """The number of composed parts, with counts."""
        ...

    @property
    def symmetric(self) -> bool:
        """Whether (Q, P) has the same curve."""
        ...

    def swapped(self) -> Curve:
        """The curve of (Q, P)."""
        ...

    def rises_to(self, other: Any) -> bool:
        """Whether the other has at least as many parts of each kind, and none of them has a smaller parameter.
        Then its
        curve is at least as large at every real epsilon.
        """
        ...

    def delta(self, epsilon: float, *, tolerance: float = ...) -> Interval:
        """Enclosure of the curve at epsilon."""
        ...

    def epsilon(self, delta: float, *, tolerance: float = ..., known: float = ...) -> Interval:
        """An enclosure of the smallest epsilon >= 0 with a curve of at most delta; any such epsilon of at most
        `known`, if there is one.
        """
        ...

    def renyi(self, order: float) -> float:
        """An upper bound on the Rényi divergence D_order(P||Q)."""
        ...


Directions: TypeAlias = tuple[Curve, ...]
"""One curve for both orders of neighbours; or one each for removal and addition."""


class Composer(Protocol):
    """Makes curves and joins them; any returned `Directions` are valid in every direction."""

    def is_curve(self, value: object) -> bool:
        """Whether `value` is a curve of this composer."""
        ...

    def of_pair(self, pair: Any) -> Directions:
        """A dominating pair, read in both orders."""
        ...

    def approximate(self, *, epsilon: float, delta: float) -> Directions:
        """The worst pair of (epsilon, delta)."""
        ...

    def gaussian(self, *, mu: float) -> Directions:
        """N(mu, 1) against N(0, 1)."""
        ...

    def laplace(self, *, epsilon: float) -> Directions:
        """Laplace noise of sensitivity/scale = epsilon."""
        ...

    def concentrated(self, *, rho: float) -> Directions:
        """rho-zCDP."""
        ...

    def renyi(self, *, orders: tuple[float, ...], epsilons: tuple[float, ...]) -> Directions:
        """Rényi bounds at finitely many orders."""
        ...

    def tabulated(self, *, p: Sequence[Any], q: Sequence[Any]) -> Directions:
        """Two distributions over the same outcomes."""
        ...

    def product(self, members: Sequence[tuple[Curve, int]]) -> Curve:
        """The composition of all members, each as often as stated."""
        ...

    def worst(self, curves: Directions) -> Directions:
        """A curve that is above all of these at every epsilon."""
        ...

    def grouped(self, curves: Directions, size: int) -> Directions:
        """The curves for `size` units at once."""
        ...

    def poisson_sampled(self, curves: Directions, rate: float) -> Directions:
        """Each unit kept with probability `rate`."""
        ...

    def sampled_without_replacement(self, curves: Directions, rate: float) -> Directions:
        """A uniform part of fixed size."""
        ...

    def thinned(self, curves: Directions, rate: float) -> Directions:
        """The curves if, with probability 1 - rate, both neighbours give the same output."""
        ...

    def gaussian_squared(self, curves: Directions) -> Fraction | None:
        """mu^2 where the curves are those of Gaussian noise."""
        ...

    def approximate_point(self, curves: Directions) -> tuple[float, float] | None:
        """(epsilon, delta), if the curves are the worst ones for it."""
        ...


_installed: list[Composer] = []


def install(found: Composer) -> None:
    """Registers the composer; the room that composes calls it once."""
    _installed[:] = [found]


def composer() -> Composer:
    """The composer, imported at its first use."""
    if not _installed:
        import_module(_PROVIDER)
    return _installed[0]
