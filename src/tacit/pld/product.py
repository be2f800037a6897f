"""Products of pairs: what composition multiplies, kept as a multiset in one canonical order."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tacit.errors import EmptyComposition
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, sum_up
from tacit.pld.choice import engine_for
from tacit.pld.pairs.base import NOTHING, UNBOUNDED, Pair
from tacit.pld.pairs.gaussian import GaussianPair

if TYPE_CHECKING:
    from tacit.pld.enumerated import Enumerated

__all__ = ["Product", "families", "rebuilt"]

TOLERANCE = 2e-4
_MOST_ROUGHER = 16
"""Products of more different pairs have no short list of losses."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Product:
    """A multiset of (pair, count). Composition is the union: associative and commutative exactly, and n
    copies equal one pair with count n. Gaussian pairs merge into one, by the exact sum of their mu^2."""

    pairs: tuple[tuple[Pair, int], ...]
    _hash: int = field(repr=False, compare=False)

    def __init__(self, *, pairs: Iterable[tuple[Pair, int]]) -> None:
        counts: dict[Pair, int] = {}
        squared: Fraction | int = 0
        for pair, count in pairs:
            if type(count) is not int or count < 1:
                ok = isinstance(count, int) and not isinstance(count, bool) and count >= 1
                require(ok, parameter="count", value=count, must="be a positive integer")
            member = pair.reduced()
            if (own := member.gaussian_squared) is not None:
                squared += count * own
            else:
                counts[member] = counts.get(member, 0) + count
        if squared:
            counts[GaussianPair(squared=Fraction(squared))] = 1
        if not counts:
            raise EmptyComposition(what="the product of pairs")
        alone = len(counts) == 1
        ordered = tuple(
            counts.items() if alone else sorted(counts.items(), key=lambda item: item[0].sort_key)
        )
        object.__setattr__(self, "pairs", ordered)
        object.__setattr__(self, "_hash", hash(ordered))

    def __hash__(self) -> int:
        return self._hash

    @staticmethod
    def of(pair: Pair, count: int = 1) -> Product:
        """One pair, repeated."""
        return Product(pairs=((pair, count),))

    @staticmethod
    def union(members: Iterable[tuple[Product, int]]) -> Product:
        """The product of all members, each repeated as often as stated."""
        return Product(pairs=[(pair, n * count) for member, count in members for pair, n in member.pairs])

    def as_pair(self) -> Pair:
        """One pair that dominates the product: itself where it is single, else its composed law."""
        from tacit.pld.pairs.product_pair import ProductPair

        single = self.single
        return single if single is not None else ProductPair(product=self)

    def kinks(self) -> list[float] | None:
        """The epsilons between which the curve is linear in e^epsilon; None where it bends everywhere."""
        single = self.single
        return single.kinks() if single is not None else None

    def compose(self, *others: Product) -> Product:
        """The product of all."""
        return Product(pairs=[part for product in (self, *others) for part in product.pairs])

    def repeat(self, count: int) -> Product:
        """The product of `count` copies."""
        require(count >= 1, parameter="count", value=count, must="be a positive integer")
        return Product(pairs=[(pair, n * count) for pair, n in self.pairs])

    def swapped(self) -> Product:
        """All pairs in the other direction."""
        return Product(pairs=[(pair.swapped(), n) for pair, n in self.pairs])

    def rises_to(self, other: Product) -> bool:
        """Whether each part has a part of its own in the other, of the same kind and with no smaller parameter."""
        left = [n for _, n in other.pairs]
        for pair, count in self.pairs:
            own = pair.family()
            for place, (partner, _) in enumerate(other.pairs):
                kind = partner.family()
                above = partner == pair
                if own is not None and kind is not None and kind[0] == own[0]:
                    above = above or all(a <= b for a, b in zip(own[1], kind[1], strict=True))
                if above:
                    taken = min(left[place], count)
                    left[place], count = left[place] - taken, count - taken
            if count:
                return False
        return True

    @property
    def size(self) -> int:
        """How many pairs, with counts."""
        return sum(count for _, count in self.pairs)

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same curve."""
        return all(pair.symmetric for pair, _ in self.pairs)

    @property
    def exact(self) -> bool:
        """Whether the lower ends say something."""
        return all(pair.exact for pair, _ in self.pairs)

    @property
    def single(self) -> Pair | None:
        """The pair itself, where the product is one pair, once."""
        return self.pairs[0][0] if len(self.pairs) == 1 and self.pairs[0][1] == 1 else None

    def largest_loss(self) -> Interval:
        """Enclosure of the largest finite loss of the product."""
        if (single := self.single) is not None:
            return single.largest_loss
        tops = [(pair.largest_loss, n) for pair, n in self.pairs]
        if any(math.isinf(top.high) for top, _ in tops):
            return UNBOUNDED
        if len(tops) > 64:
            # Thousands of exact fractions are slow to add; a few units are given away instead.
            low, high = [t.low * n for t, n in tops], [t.high * n for t, n in tops]
            size = 4 * 2.0**-53 * max(math.fsum(map(abs, low)), math.fsum(map(abs, high)))
            return Interval(low=math.fsum(low) - size, high=math.fsum(high) + size)
        return Interval(
            low=-sum_up(-Fraction(top.low) * n for top, n in tops),
            high=sum_up(Fraction(top.high) * n for top, n in tops),
        )

    def infinite_mass(self) -> Interval:
        """Enclosure of 1 - prod (1 - P_i(infinity))^n_i."""
        if (single := self.single) is not None:
            return single.infinite_mass
        masses = [(pair.infinite_mass, n) for pair, n in self.pairs]
        if all(mass.high == 0 for mass, _ in masses):
            return NOTHING
        if any(mass.low == 1 for mass, _ in masses):
            return Interval(low=1.0, high=1.0)
        low = math.fsum(n * math.log1p(-min(mass.low, 1 - 1e-16)) for mass, n in masses)
        high = math.fsum(n * math.log1p(-min(mass.high, 1 - 1e-16)) for mass, n in masses)
        return Interval(low=-math.expm1(low) * (1 - 1e-13), high=min(1.0, -math.expm1(high) * (1 + 1e-13)))

    def delta(self, epsilon: float, *, tolerance: float = TOLERANCE) -> Interval:
        """Enclosure of H_epsilon of the product; closed form for one pair, certified grid otherwise."""
        require(not math.isnan(epsilon), parameter="epsilon", value=epsilon, must="be a number")
        pair = self.single
        if pair is not None and pair.has_closed_form:
            return pair.hockey_stick(epsilon)
        if epsilon == -math.inf:
            return Interval(low=1.0, high=1.0)
        top = self.largest_loss()
        if epsilon >= top.high or epsilon == math.inf:
            mass = self.infinite_mass()
            return Interval(low=mass.low if self.exact else 0.0, high=mass.high)
        return _delta(self, epsilon, tolerance)

    def epsilon(self, delta: float, *, tolerance: float = TOLERANCE, known: float = 0.0) -> Interval:
        """Enclosure of the smallest epsilon >= 0 with H_epsilon <= delta (math.inf where there is none).

        Where it is at most `known`, any enclosure below that will do: another direction is worse.
        """
        require(0 <= delta <= 1, parameter="delta", value=delta, must="lie in [0, 1]")
        if delta == 1:
            return NOTHING
        infinite, top = self.infinite_mass(), self.largest_loss()
        exact = self.exact
        if infinite.low > delta and exact:
            return UNBOUNDED
        if infinite.high > delta:
            return Interval(low=0.0, high=math.inf)
        if delta <= infinite.high:
            # Nothing is left for the finite losses: all of them must be covered.
            return Interval(
                low=max(top.low, 0.0) if exact and delta <= infinite.low else 0.0, high=max(top.high, 0.0)
            )
        if self.single is None and top.high <= known:
            return Interval(low=0.0, high=max(top.high, 0.0))
        found = _epsilon(self, delta, tolerance, known)
        high = min(found.high, max(top.high, 0.0))
        return Interval(low=min(found.low, high), high=high)

    def at_the_top(self, delta: float, top: Interval) -> Interval | None:
        """Where delta is far below the mass M of all largest losses together: h(e^e) >= M (1 - e^(e - top))."""
        if not self.exact or math.isinf(top.high):
            return None
        if not all(p.exact_in_products for p, _ in self.pairs):
            return None
        log_mass, log_share = 0.0, math.log(delta)
        for pair, n in self.pairs:
            mass = pair.top_mass
            if mass <= 0:
                return None
            log_mass += n * math.log(mass)
            log_share = math.log(delta) - log_mass * (1 + 1e-12)
            # The share only rises from here.
            if log_share > math.log(1e-5 * max(min(top.high, 1.0), 1e-300)):
                return None
        low = top.low - 1.01 * math.exp(log_share + 1e-9)
        return Interval(low=max(0.0, low * (1 - 2.0**-52)), high=max(top.high, 0.0))

    def renyi(self, order: float) -> float:
        """The sum of the parts' Rényi bounds, rounded up once; order 1 is the Kullback-Leibler divergence."""
        if order == 1:
            from tacit.pld.kullback_leibler import kullback_leibler

            values = [(kullback_leibler(pair), n) for pair, n in self.pairs]
        else:
            values = [(pair.renyi(order), n) for pair, n in self.pairs]
        if any(math.isinf(v) for v, _ in values):
            return math.inf
        return sum_up(Fraction(v) * n for v, n in values)

    def renyi_reaches(self, order: float, value: float) -> bool:
        """Is the sum of the parts' Rényi bounds known at once to be at least this? A no says nothing."""
        total = 0.0
        for pair, n in self.pairs:
            total += n * pair.renyi_at_least(order)
            if total * (1 - 1e-9) >= value:
                return True
        return False


def families(products: Sequence[Product]) -> tuple[Hashable, tuple[float, ...]] | None:
    """(What products of one shape have in common, the parameters of all their pairs), where known."""
    found = [(pair.family(), count) for product in products for pair, count in product.pairs]
    known = [(one[0], one[1], count) for one, count in found if one is not None]
    if len(known) < len(found):
        return None
    sizes = tuple(len(product.pairs) for product in products)
    keys = tuple((key, count) for key, _, count in known)
    return (sizes, keys), tuple(value for _, values, _ in known for value in values)


def rebuilt(product: Product, values: Iterator[float]) -> Product:
    """The product with other parameters, in the order of `families`."""
    return Product(pairs=[(pair.with_parameters(values), count) for pair, count in product.pairs])


@lru_cache(maxsize=1024)
def _delta(product: Product, epsilon: float, tolerance: float) -> Interval:
    found = engine_for(product).delta(epsilon, tolerance)
    rougher = _rougher(product)
    return found if rougher is None else _below(found, rougher.delta(epsilon).high)


@lru_cache(maxsize=1024)
def _epsilon(product: Product, delta: float, tolerance: float, known: float) -> Interval:
    engine = engine_for(product)
    on_top = product.at_the_top(delta, product.largest_loss()) if engine.approximates else None
    found = on_top or engine.epsilon(delta, tolerance, known)
    rougher = _rougher(product)
    return found if rougher is None else _below(found, rougher.epsilon(delta).high)


def _below(found: Interval, high: float) -> Interval:
    return Interval(low=min(found.low, high), high=min(found.high, high))


@lru_cache(maxsize=1024)
def _rougher(product: Product) -> Enumerated | None:
    """The product of the worst pairs of the (epsilon, delta) that its pairs have, where it is listed: it lies above,
    and what an engine gives away must not make more knowledge cost more."""
    from tacit.pld.enumerated import enumerated
    from tacit.pld.pairs.approximate import ApproximatePair

    if product.single is not None or enumerated(product) is not None:
        return None
    pairs = []
    for pair, count in product.pairs:
        epsilon = max(pair.largest_loss.high, -pair.smallest_loss.low, 0.0)
        delta = max(pair.infinite_mass.high, pair.reverse_infinite_mass.high)
        if math.isinf(epsilon):
            return None
        pairs.append((ApproximatePair(epsilon=epsilon, delta=delta), count))
        if len(pairs) > _MOST_ROUGHER:
            return None
    return enumerated(Product(pairs=pairs))
