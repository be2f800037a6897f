"""Very many different pairs that have no nodes, as at most a hundred or so runs of near ones.

Each run is replaced by as many copies of one pair above all of its members: the same pair with the largest
parameters. That is safe because all curves here rise with each parameter (`docs/theory/rising-parameters.md`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from typing import Any

from tacit.pld.continuous import ExponentialPair, GaussianPair, LaplacePair
from tacit.pld.curves import ConcentratedPair, RenyiPair
from tacit.pld.derived import GroupPair, MaximumPair, ProductPair, WithoutReplacementPair
from tacit.pld.discrete import ApproximatePair, RandomizedResponsePair
from tacit.pld.pair import Pair, SwappedPair
from tacit.pld.product import Product
from tacit.pld.replacement import SampledReplacementPair
from tacit.pld.sampled import PoissonSampledPair

__all__ = ["above", "coarsened"]

_MOST = 64
_LEAST = 256


def coarsened(parts: list[tuple[Pair, int]]) -> list[tuple[Pair, int]]:
    """The parts, with those that are upper bounds without nodes gathered into runs if there are very many."""
    from tacit.pld.quadrature import shape

    if len(parts) <= _LEAST:
        return parts
    kept: list[tuple[Pair, int]] = []
    families: dict[Any, list[tuple[Pair, int, list[float]]]] = {}
    for pair, count in parts:
        values: list[float] = []
        family = None if pair.exact or shape(pair) is not None else _family(pair, values)
        if family is None:
            kept.append((pair, count))
        else:
            families.setdefault(family, []).append((pair, count, values))
    total = sum(len(members) for members in families.values())
    if total <= _LEAST:
        return parts
    for members in families.values():
        for run in _runs(members, max(1, round(_MOST * len(members) / total))):
            largest = above([pair for pair, _, _ in run])
            kept.append((largest, sum(count for _, count, _ in run)))
    return list(Product(pairs=kept).pairs)


def above(pairs: Sequence[Pair]) -> Pair:
    """The pair with the largest parameters of pairs of one family: above each of them."""
    rows: list[list[float]] = []
    for pair in pairs:
        values: list[float] = []
        _family(pair, values)
        rows.append(values)
    return _rebuilt(pairs[0], iter([max(column) for column in zip(*rows, strict=True)]))


def _family(pair: Pair, values: list[float]) -> Any:
    """What pairs of one family have in common, or None; the parameters in which they differ go to `values`."""
    name = type(pair).__name__
    if isinstance(pair, SwappedPair):
        inner = _family(pair.pair, values)
        return None if inner is None else (name, inner)
    if isinstance(pair, PoissonSampledPair):
        values.append(pair.rate)
        inner = _family(pair.pair, values)
        return None if inner is None else (name, inner)
    if isinstance(pair, SampledReplacementPair):
        return None
    if isinstance(pair, ConcentratedPair):
        values.append(pair.rho)
        return name
    if isinstance(pair, RenyiPair):
        values.extend(pair.epsilons)
        return (name, pair.orders)
    if isinstance(pair, GaussianPair):
        values.append(pair.mu)
        return name
    if isinstance(pair, LaplacePair | ExponentialPair):
        values.append(pair.epsilon)
        return name
    if isinstance(pair, ApproximatePair):
        values.extend((pair.epsilon, pair.delta))
        return name
    if isinstance(pair, RandomizedResponsePair):
        values.append(pair.epsilon)
        return (name, pair.categories)
    if isinstance(pair, ProductPair):
        inner = _families((pair.product,), values)
        return None if inner is None else (name, inner)
    if isinstance(pair, MaximumPair | GroupPair | WithoutReplacementPair):
        rest = pair.size if isinstance(pair, GroupPair) else 0
        if isinstance(pair, WithoutReplacementPair):
            values.append(pair.rate)
        inner = _families(pair.products, values)
        return None if inner is None else (name, rest, inner)
    return None


def _families(products: Sequence[Product], values: list[float]) -> Any:
    found = tuple((_family(pair, values), count) for product in products for pair, count in product.pairs)
    sizes = tuple(len(product.pairs) for product in products)
    return None if any(family is None for family, _ in found) else (sizes, found)


def _rebuilt(pair: Pair, values: Iterator[float]) -> Pair:
    """The pair with other parameters, in the order of `_family`."""
    if isinstance(pair, SwappedPair):
        return _rebuilt(pair.pair, values).swapped()
    if isinstance(pair, PoissonSampledPair):
        rate = next(values)
        return PoissonSampledPair(pair=_rebuilt(pair.pair, values), rate=rate)
    if isinstance(pair, ConcentratedPair):
        return ConcentratedPair(rho=next(values))
    if isinstance(pair, RenyiPair):
        return RenyiPair(orders=pair.orders, epsilons=tuple(next(values) for _ in pair.orders))
    if isinstance(pair, GaussianPair):
        return GaussianPair(mu=next(values))
    if isinstance(pair, LaplacePair):
        return LaplacePair(epsilon=next(values))
    if isinstance(pair, ExponentialPair):
        return ExponentialPair(epsilon=next(values))
    if isinstance(pair, ApproximatePair):
        return ApproximatePair(epsilon=next(values), delta=next(values))
    if isinstance(pair, RandomizedResponsePair):
        return RandomizedResponsePair(epsilon=next(values), categories=pair.categories)
    if isinstance(pair, ProductPair):
        return ProductPair(product=_product(pair.product, values))
    if isinstance(pair, MaximumPair):
        return MaximumPair(products=tuple(_product(p, values) for p in pair.products))
    if isinstance(pair, GroupPair):
        return GroupPair(products=tuple(_product(p, values) for p in pair.products), size=pair.size)
    assert isinstance(pair, WithoutReplacementPair)
    rate = next(values)
    return WithoutReplacementPair(products=tuple(_product(p, values) for p in pair.products), rate=rate)


def _product(product: Product, values: Iterator[float]) -> Product:
    return Product(pairs=[(_rebuilt(pair, values), count) for pair, count in product.pairs])


_Member = tuple[Pair, int, list[float]]


def _runs(members: list[_Member], most: int) -> list[list[_Member]]:
    """At most so many runs: time and again the one that would lose most is cut where its widest gap is halved."""

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
