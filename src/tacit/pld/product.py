"""Products of pairs, as composition multiplies them: a multiset in one canonical order."""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, groupby, pairwise
from typing import Any, ClassVar, Protocol

import numpy as np

from tacit.errors import EmptyComposition
from tacit.exact.arrays import Floats
from tacit.exact.checks import require
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval, ball, bisected, precision, sum_up
from tacit.pld.characteristic import CharacteristicComposition
from tacit.pld.pairs.base import NOTHING, UNBOUNDED, Pair
from tacit.pld.pairs.gaussian import GaussianPair

# Which engine answers: the one rule.
#
#     the product is                         engine                 ends
#     one pair, once, with a closed form     that form              adjacent floats (ball arithmetic)
#     pairs with few losses, listed briefly  the list itself        a few units
#     pairs that all have a quadrature       transforms, inverted   as near as asked
#     anything else, or where the transform  one grid of losses     as near as asked, or as the grid allows
#     cannot be certified near enough
#
# A product whose delta lies far below the mass of all largest losses together needs no engine: its epsilon is the
# largest loss but for a part that the mass bounds. More than 256 different upper bounds without a quadrature are
# first replaced by runs of their largest (product.py).

MOST_ON_GRID = 1e7
"""With more releases a grid rounds more than transforms, and is not tried after them."""


class CurveAnswers(Protocol):
    """Two questions, each answered by an enclosure."""

    approximates: ClassVar[bool]
    """Whether the ends reach the wanted accuracy only, and cost time."""

    def delta(self, epsilon: float, tolerance: float) -> Interval:
        """Enclosure of H_epsilon."""
        ...

    def epsilon(self, delta: float, tolerance: float, known: float = ...) -> Interval:
        """Enclosure of the smallest epsilon >= 0 with H_epsilon <= delta; any epsilon below `known`, if that is
        given.
        """
        ...


def engine_for(product: Product) -> CurveAnswers:
    """The first engine of the table that serves."""
    from tacit.pld.engine import ClosedForm, CompositionEngine

    if product.single is not None and product.single.has_closed_form:
        return ClosedForm(product.single)
    listed = enumerated(product)
    return listed if listed is not None else CompositionEngine(list(product.pairs))


def transform_for(parts: list[tuple[Pair, int]], exact: bool) -> CharacteristicComposition | None:
    """The composition by transforms, if every part has a quadrature."""
    return CharacteristicComposition.of(parts, exact)


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
        """One pair that dominates the product: the only pair of a product of one, else its composed distribution."""
        from tacit.pld.pairs.derived import ProductPair

        single = self.single
        return single if single is not None else ProductPair(product=self)

    def kinks(self) -> list[float] | None:
        """The epsilons between which the curve is linear in e^epsilon; None if it bends everywhere."""
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
        """Whether each part matches a different part of the other, of the same kind and with no smaller parameter."""
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
        """The number of pairs, with multiplicities."""
        return sum(count for _, count in self.pairs)

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same curve."""
        return all(pair.symmetric for pair, _ in self.pairs)

    @property
    def exact(self) -> bool:
        """Whether the lower ends are informative."""
        return all(pair.exact for pair, _ in self.pairs)

    @property
    def single(self) -> Pair | None:
        """The pair itself, if the product is one pair, once."""
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
        """Enclosure of the smallest epsilon >= 0 with H_epsilon <= delta (math.inf if no epsilon is enough).

        If it is at most `known`, any enclosure below that is enough, because another direction is worse.
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
        """For a delta far below the mass M of all largest losses together: h(e^e) >= M (1 - e^(e - top))."""
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
    """(Common facts of products of one shape, the parameters of all their pairs), where known."""
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
    """The product of the worst pairs for the (epsilon, delta) of its pairs, if these are listed. Its curve is
    larger, so that a loss of precision in an engine never makes more knowledge cost more.
    """
    from tacit.pld.pairs.derived import ApproximatePair

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


# The Kullback-Leibler divergence of a pair, from above: Rényi order 1 (`docs/theory/kullback-leibler.md`).
#
# D(P||Q) is the integral over t from 1 on of h(t)/t + h'(t)/t^2, with h the curve of (P, Q) and h' that of (Q, P).
# Both terms are convex in t, so that the trapezoidal rule, on any nodes, bounds them from above.

_NODES = 20_000
_ROUNDED = 1e-11
"""The relative loss of sums of this many terms; each term is right to a few units."""
_BEYOND = 40.0
_TAIL_ORDERS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)


def kullback_leibler(pair: Pair) -> float:
    """An upper bound on D(P||Q); math.inf where P reaches what Q cannot."""
    if pair.infinite_mass.high > 0:
        return math.inf
    squared = pair.gaussian_squared
    if squared is not None:
        return math.nextafter(float(squared / 2), math.inf)
    top = pair.largest_loss.high
    bottom = -pair.smallest_loss.low if pair.reverse_infinite_mass.high == 0 else math.inf
    forward, reach = _integral(pair, top, power=1)
    backward, _ = _integral(pair if pair.symmetric else pair.swapped(), bottom, power=2)
    found = (forward + backward) * (1 + _ROUNDED)
    if math.isinf(top):
        found += _tail(pair, reach)
    # Divergences do not fall with the order: a pair that knows those near 1 may know this one better.
    return min(found, pair.renyi(2.0))


def _integral(pair: Pair, top: float, *, power: int) -> tuple[float, float]:
    """The trapezoidal rule for h(t)/t^power on [1, e^reach], the rest of h/t^2 beyond, and the reach."""
    reach = top if math.isfinite(top) and top < 500 else _reach(pair)
    if reach == 0:
        return 0.0, 0.0
    x = reach * np.linspace(0.0, 1.0, _NODES) ** 2
    if reach < top:
        # Little is left beyond: few nodes serve as far as divergences of small orders tell the rest.
        x = np.concatenate([x, np.geomspace(reach, min(reach + _BEYOND, top, 600.0), _NODES // 4)[1:]])
        reach = float(x[-1])
    h = pair.hockey_stick_grid(x)[1]
    # In t: the node spacing e^x (e^dx - 1), written so that small steps keep their digits.
    width = np.exp(x[:-1]) * np.expm1(np.diff(x))
    ends: Floats = h * np.exp(-power * x)
    total = float(np.sum(width * (ends[:-1] + ends[1:]) / 2))
    if power == 2 and reach < top:
        total += float(h[-1]) * math.exp(
            -reach
        )  # h falls: the integral of h/t^2 beyond e^reach is at most this
    return total, reach


def _reach(pair: Pair) -> float:
    """The point at which the curve is nearly 0."""
    tried = np.concatenate([[0.0], np.geomspace(2.0**-30, 500.0, 400)])
    h = pair.hockey_stick_grid(tried)[1]
    small = np.flatnonzero(h <= 1e-12 * h[0])
    return float(tried[small[0]] if small.size else tried[-1])


def _tail(pair: Pair, reach: float) -> float:
    """The integral of h(t)/t beyond e^reach: h(t) <= e^((a-1) D_a) t^(1-a) (a-1)^(a-1) / a^a at every order a."""
    best = math.inf
    for a in _TAIL_ORDERS:
        divergence = pair.renyi(a)
        if math.isfinite(divergence):
            log = (
                (a - 1) * (divergence - reach) + (a - 1) * math.log(a - 1) - a * math.log(a) - math.log(a - 1)
            )
            best = min(best, math.exp(min(log, 700.0)) * (1 + 1e-9))
    return best


# Products with few distinct losses, written out: no grid, hence no blur.
#
# A pair with m losses, repeated n times, has C(n+m-1, m-1) different sums; where the product of these numbers
# is small the composition is a list of (loss, mass). Masses and losses are computed as balls and kept as
# floats, with the errors of the sums bounded.

_MOST_ATOMS = 4096
_MOST_TIMES = 4096
_UNIT = 2.0**-52


@dataclass(frozen=True, slots=True, eq=False)
class Enumerated:
    """The losses (ascending) and P-masses of a product, and the mass at infinity."""

    approximates: ClassVar[bool] = False

    losses: Floats
    masses: Floats
    infinite: Interval

    def delta(self, epsilon: float, tolerance: float = 0.0) -> Interval:
        """Enclosure of P(infinity) + sum of masses (1 - e^{epsilon - loss}) over losses above epsilon."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        above, masses = self.losses[first:], self.masses[first:]
        terms = masses * -np.expm1(epsilon - above)
        value = math.fsum(terms)
        # Each loss is right to a unit of itself, each mass and each factor to a few units; an atom whose loss
        # lies within an error of epsilon adds less than that error, and stands in the second sum.
        error = 8 * _UNIT * value
        reach = 4 * _UNIT * (1.0 + abs(epsilon) + float(np.abs(self.losses).max()))
        near = self.masses[int(np.searchsorted(self.losses, epsilon - reach, side="left")) :]
        error += reach * math.fsum(near)
        low = max(0.0, (value - error) * (1 - 4 * _UNIT)) + self.infinite.low
        high = (value + error) * (1 + 4 * _UNIT) + self.infinite.high
        return Interval(low=min(low * (1 - _UNIT), 1.0), high=min(high * (1 + _UNIT), 1.0))

    def epsilon(self, delta: float, tolerance: float = 0.0, known: float = 0.0) -> Interval:
        """Enclosure of the smallest epsilon >= 0 with delta(epsilon) <= delta, for delta above infinity's mass."""
        if self.delta(0.0).high <= delta:
            return Interval(low=0.0, high=0.0)
        top = max(float(self.losses[-1]), 0.0) * (1 + 4 * _UNIT)
        return Interval(low=_cross(lambda e: self.delta(e).low > delta, top)[0], high=self._high(delta, top))

    def _high(self, delta: float, top: float) -> float:
        return _cross(lambda e: self.delta(e).high > delta, top)[1]


def _cross(over: Any, top: float) -> tuple[float, float]:
    """Adjacent points of [0, top] between which `over` turns from true to false (top counts as false)."""
    low, high = 0.0, top
    if not over(low):
        return 0.0, 0.0
    return bisected(lambda e: not over(e), low, high, halvings=100)


@lru_cache(maxsize=256)
def enumerated(product: Product) -> Enumerated | None:
    """The explicit product, or None if a pair has no list of losses or the list would be long."""
    size = 1
    for pair, count in product.pairs:
        kinds = pair.atom_count
        if kinds is None or count > _MOST_TIMES:
            return None
        size *= math.comb(count + kinds - 1, kinds - 1)
        if size > _MOST_ATOMS:
            return None
    with precision(160):
        sums: list[tuple[Any, Any]] = [(ball(0), ball(1))]
        for pair, count in product.pairs:
            own = list(_repeated(pair, count))
            sums = [(loss + more, mass * share) for loss, mass in sums for more, share in own]
        rows = sorted((float(loss.mid()), float(mass.mid())) for loss, mass in sums)
    return Enumerated(
        losses=np.array([r[0] for r in rows]),
        masses=np.array([r[1] for r in rows]),
        infinite=product.infinite_mass(),
    )


def _repeated(pair: Pair, count: int) -> Iterator[tuple[Any, Any]]:
    """Loss and mass of each way to draw `count` atoms, order aside."""
    atoms = pair.atoms()  # type: ignore[attr-defined]
    for shares in _shares(count, len(atoms)):
        ways = math.factorial(count)
        loss, mass = ball(0), ball(1)
        for index, share in shares:
            own, weight = atoms[index]
            ways //= math.factorial(share)
            loss += share * own
            mass *= weight**share
        yield loss, mass * ways


def _shares(total: int, kinds: int) -> Iterator[list[tuple[int, int]]]:
    """Every unordered way to draw `total` of `kinds`: the drawn kinds with their multiplicities."""
    if total <= kinds:
        for drawn in combinations_with_replacement(range(kinds), total):
            yield [(kind, len(list(same))) for kind, same in groupby(drawn)]
        return
    # Bars between stars: the gaps are the shares.
    for bars in combinations(range(total + kinds - 1), kinds - 1):
        gaps = pairwise((-1, *bars, total + kinds - 1))
        yield [(kind, right - left - 1) for kind, (left, right) in enumerate(gaps) if right - left > 1]


# Very many different pairs that have no nodes, as at most a hundred or so runs of near ones.
#
# Each run is replaced by as many copies of one pair above all of its members: the same pair with the largest
# parameters. That is safe because all curves here rise with each parameter (`docs/theory/rising-parameters.md`).

_Member = tuple[Pair, int, tuple[float, ...]]

_MOST = 64
_LEAST = 256


def coarsened(parts: list[tuple[Pair, int]]) -> list[tuple[Pair, int]]:
    """The parts; very many upper bounds without nodes are gathered into runs."""
    if len(parts) <= _LEAST:
        return parts
    kept: list[tuple[Pair, int]] = []
    families: dict[Any, list[_Member]] = {}
    for pair, count in parts:
        found = None if pair.exact or pair.quadrature_key() is not None else pair.family()
        if found is None:
            kept.append((pair, count))
        else:
            families.setdefault(found[0], []).append((pair, count, found[1]))
    total = sum(len(members) for members in families.values())
    if total <= _LEAST:
        return parts
    for members in families.values():
        for run in _runs(members, max(1, round(_MOST * len(members) / total))):
            largest = above([pair for pair, _, _ in run])
            kept.append((largest, sum(count for _, count, _ in run)))
    return list(Product(pairs=kept).pairs)


def above(pairs: Sequence[Pair]) -> Pair:
    """The pair with the largest parameters among pairs of one family, whose curve is above all others."""
    rows = [found[1] for pair in pairs if (found := pair.family()) is not None]
    return pairs[0].with_parameters(iter([max(column) for column in zip(*rows, strict=True)]))


def _runs(members: list[_Member], most: int) -> list[list[_Member]]:
    """At most this many runs, by repeatedly cutting the run with the largest loss at its widest gap."""

    def entry(run: list[_Member], order: int) -> tuple[float, int, int, float, list[_Member]]:
        worst, axis, middle = 0.0, 0, 0.0
        for k in range(len(run[0][2])):
            low, high = min(m[2][k] for m in run), max(m[2][k] for m in run)
            loss = math.log(high / low) if low > 0 else (math.inf if high > 0 else 0.0)
            if loss > worst:
                worst, axis, middle = loss, k, (low + high) / 2
        size = math.prod(max(m[2][k] for m in run) for k in range(len(run[0][2])))
        number = sum(m[1] for m in run)
        return -(number * size * min(worst, 50.0)), order, axis, middle, run

    heap = [entry(members, 0)]
    while len(heap) < most and heap[0][0] < 0:
        _, _, axis, middle, run = heapq.heappop(heap)
        for k, half in enumerate((True, False)):
            heapq.heappush(
                heap, entry([m for m in run if (m[2][axis] <= middle) is half], 2 * len(heap) + k + 1)
            )
    return [row[4] for row in heap]
