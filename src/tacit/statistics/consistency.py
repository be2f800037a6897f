"""Valid histograms from noisy ones: non-negative integers, with a given total where one is known.

Post-processing: it sees released numbers only, needs no data and costs no privacy. See
docs/theory/nearest-histogram.md.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.arrays import AnyArray

Norm = Literal["l1", "l2"]

_SAFE = 1 << 61
_HALVINGS = 400


def is_valid_histogram(values: npt.ArrayLike, *, total: int | None = None) -> bool:
    """Whether these are non-negative whole numbers, with this total if one is given."""
    array = np.asarray(values)
    whole = bool((array == np.floor(array.astype(np.float64))).all()) if array.dtype.kind == "f" else True
    return whole and bool((array >= 0).all()) and (total is None or int(array.sum()) == total)


def nearest_histogram(
    noisy: npt.ArrayLike,
    *,
    total: int | None = None,
    norm: Norm = "l2",
    weights: npt.ArrayLike | None = None,
) -> AnyArray:
    """The valid histogram nearest to a noisy one, of the same shape.

    Minimises sum w |z - t| ("l1"; the paper's eq. 2) or sum w (z - t)^2 ("l2") over integers t >= 0, with sum t =
    total if it is given: the true minimum over the integers, not a rounded real one. Without weights both norms
    have a common minimiser, which this function returns. Ties are spread over the cells. A valid histogram
    stays as it is. Post-processing: no privacy cost. Theorem `nearest-histogram`. Source: Hall, Rinaldo,
    Wasserman 2011, eq. 2; greedy allocation: Gross 1956, Fox 1966.
    """
    if norm not in ("l1", "l2"):
        raise UnknownName(what="norm", name=str(norm), known=("l1", "l2"))
    whole, part = _split(noisy)
    n = _total(total)
    if n is None:
        # Every coordinate by itself; np.rint and this rule send a half to the even neighbour.
        up = (part > 0.5) | ((part == 0.5) & (whole % 2 == 1))
        return np.asarray(np.maximum(whole + up, 0))
    if not whole.size:
        if n:
            raise EmptyComposition(what="the histogram", hint=f"no cells cannot add up to {n}")
        return whole
    flat, fraction = whole.ravel(), part.ravel()
    w = _weights(weights, flat.size)
    if w is None or bool((w == w[0]).all()):
        out = nearest_rows(flat[None], np.array([n], dtype=object), fractions=fraction[None])[0]
    elif flat.dtype == object or n >= _SAFE:
        raise InvalidParameter(
            parameter="weights", value="counts beyond 2^61", must="be left out for counts as large as that"
        )
    elif norm == "l2":
        out = _weighted_l2(flat, fraction, w, n)
    else:
        out = _weighted_l1(flat, fraction, w, n)
    return np.asarray(out.reshape(whole.shape))


def nearest_rows(whole: AnyArray, totals: AnyArray, *, fractions: AnyArray | None = None) -> AnyArray:
    """For every row the nearest histogram with the row's total; unweighted, it is nearest in L1 and in L2 at once.

    z = whole + fractions. With T(m) = sum max(0, whole + m), m is the largest integer with T(m) <= n; then the
    n - T(m) cells with the largest fractions among those with whole >= -m get one more.
    """
    whole = _roomy(whole, totals)
    rows, size = whole.shape
    n = np.array([int(v) for v in totals], dtype=whole.dtype)[:, None]
    sorted_ = -np.sort(-whole, axis=1)
    sums = np.cumsum(sorted_, axis=1)
    counts = np.arange(1, size + 1)
    # T(-s_i): the total when the i-th largest cell is just at 0.
    at_zero = sums - sorted_ * counts
    active = (at_zero <= n).sum(axis=1)
    lift = (n[:, 0] - sums[np.arange(rows), active - 1]) // active.astype(whole.dtype)
    raised = whole + lift[:, None]
    out = np.maximum(raised, 0)
    missing = (n[:, 0] - out.sum(axis=1)).astype(np.int64)
    need = np.flatnonzero(missing)
    if need.size:
        # One more unit for the largest fractions; equal ones are met in an order that is spread over the cells.
        order = _spread_out(size)
        open_ = (raised[need] >= 0)[:, order]
        if fractions is None or not fractions.any():
            chosen = open_ & (np.cumsum(open_, axis=1) <= missing[need, None])
        else:
            keys = np.where(open_, fractions[need][:, order], -1.0)
            best = np.argsort(-keys, axis=1, kind="stable")
            chosen = np.zeros(open_.shape, dtype=bool)
            np.put_along_axis(chosen, best, np.arange(size) < missing[need, None], axis=1)
        back = np.empty(size, dtype=np.int64)
        back[order] = np.arange(size)
        out[need] += chosen[:, back]
    return np.asarray(out)


def _spread_out(size: int) -> npt.NDArray[np.int64]:
    """0..size-1 in the order of their reversed bits, in which any first few of them lie far apart."""
    bits = max(1, (size - 1).bit_length())
    place = np.arange(1 << bits, dtype=np.int64)
    turned = np.zeros_like(place)
    for _ in range(bits):
        turned = (turned << 1) | (place & 1)
        place >>= 1
    return turned[turned < size]


def _even(size: int, count: int) -> npt.NDArray[np.int64]:
    """`count` of 0..size-1 at even distances."""
    return (
        (2 * np.arange(count, dtype=np.int64) + 1) * size // (2 * count) if count else np.zeros(0, np.int64)
    )


def _weighted_l2(whole: AnyArray, part: AnyArray, w: AnyArray, n: int) -> AnyArray:
    """Unit u of a cell costs w (2 (u - z) - 1) more: take the n cheapest, by bisection on the price."""

    def taken(price: float) -> AnyArray:
        # floor(z + (price / w + 1) / 2), the whole part kept apart so that nothing of it is lost.
        share = part + (price / w + 1.0) / 2.0
        return np.asarray(np.maximum(whole + np.floor(share).astype(np.int64), 0))

    reach = float(w.max()) * (2.0 * (float(np.abs(whole).max()) + n + 2.0))
    low, high = -reach, reach
    for _ in range(_HALVINGS):
        price = (low + high) / 2.0
        if price in (low, high):
            break
        here = taken(price)
        held = int(here.sum())
        if held == n:
            return here
        low, high = (price, high) if held < n else (low, price)
    # No float lies between: the units that differ cost the same.
    out, more = taken(low), taken(high)
    spare = np.repeat(np.arange(out.size), more - out)
    out[spare[_even(spare.size, n - int(out.sum()))]] += 1
    return out


def _weighted_l1(whole: AnyArray, part: AnyArray, w: AnyArray, n: int) -> AnyArray:
    """A unit that only rounds z costs w (1 - 2 part), any other unit w. Takes or gives back the cheapest."""
    out = np.maximum(whole + (part > 0.5), 0)
    gap = n - int(out.sum())
    if gap > 0:
        # One cheap unit for cells that were rounded down; then as many as wanted where the weight is least.
        least = float(w.min())
        cost = np.where((whole >= 0) & (part > 0) & (part <= 0.5), w * (1 - 2 * part), np.inf)
        cheap = np.flatnonzero(cost < least)
        cheap = cheap[np.argsort(cost[cheap], kind="stable")][:gap]
        out[cheap] += 1
        lightest = np.flatnonzero(w == least)
        return _refill(out, whole, part, lightest, gap - cheap.size)
    if gap < 0:
        # Cells that were rounded up give that unit back first; then whole cells, the lightest first.
        rounded = (part > 0.5) & (whole >= 0)
        cost = np.where(rounded, w * (2 * part - 1), np.inf)
        order = np.concatenate([cost, w])
        units = np.concatenate([rounded.astype(out.dtype), np.maximum(whole, 0)])
        rank = np.argsort(order, kind="stable")
        before = np.cumsum(units[rank]) - units[rank]
        back = np.clip(-gap - before, 0, units[rank])
        given = np.zeros_like(units)
        given[rank] = back
        out -= given[: w.size] + given[w.size :]
        # Within the last weight touched, what is left is shared out as near as possible.
        touched = np.flatnonzero(given[w.size :])
        if touched.size:
            same = np.flatnonzero(w == float(w[touched].max()))
            held = int(out[same].sum())
            out[same] = nearest_rows(out[same][None] + given[w.size :][same], np.array([held], object))[0]
    return np.asarray(out)


def _refill(out: AnyArray, whole: AnyArray, part: AnyArray, places: AnyArray, units: int) -> AnyArray:
    if units:
        goal = int(out[places].sum()) + units
        z = np.where(whole[places] >= 0, out[places], whole[places])
        out[places] = nearest_rows(z[None], np.array([goal], object))[0]
    return out


def _split(noisy: npt.ArrayLike) -> tuple[AnyArray, AnyArray]:
    """Whole part (integers) and fraction in [0, 1) of each entry, both exact."""
    array = np.asarray(noisy)
    if array.dtype.kind in "iub":
        if array.dtype.kind == "u" and array.size and int(array.max()) >= _SAFE:
            return array.astype(object), np.zeros(array.shape)
        return array.astype(np.int64), np.zeros(array.shape)
    if array.dtype == object and all(isinstance(v, int) for v in array.ravel()):
        return array.copy(), np.zeros(array.shape)
    if array.dtype.kind != "f" or not bool(np.isfinite(array).all()):
        raise InvalidParameter(
            parameter="noisy", value=f"array of {array.dtype}", must="hold finite numbers",
            hint="give the released counts",
        )  # fmt: skip
    floor = np.floor(array.astype(np.float64))
    if array.size and float(np.abs(floor).max()) >= 2.0**61:
        exact = np.empty(array.shape, dtype=object)
        exact[...] = (
            [int(v) for v in floor.ravel()] if array.ndim == 1 else np.vectorize(int, [object])(floor)
        )
        return exact, np.asarray(array - floor)
    return floor.astype(np.int64), np.asarray(array - floor)


def _roomy(whole: AnyArray, totals: AnyArray) -> AnyArray:
    """Python integers where sums of products might leave 64 bits."""
    if whole.dtype == object or not whole.size:
        return whole
    most = max(abs(int(whole.max())), abs(int(whole.min())), max(int(v) for v in totals))
    return whole.astype(object) if 4 * most * whole.shape[1] >= _SAFE else whole


def _total(total: object) -> int | None:
    if total is None:
        return None
    if isinstance(total, bool) or not isinstance(total, int | np.integer) or total < 0:
        raise InvalidParameter(
            parameter="total", value=total, must="be a whole number of at least 0",
            hint="round a noisy total and clip it at 0 first, or leave it out",
        )  # fmt: skip
    return int(total)


def _weights(weights: npt.ArrayLike | None, size: int) -> AnyArray | None:
    if weights is None:
        return None
    w = np.asarray(weights, dtype=np.float64).ravel()
    if w.size != size or not bool((np.isfinite(w) & (w > 0)).all()):
        raise InvalidParameter(
            parameter="weights", value=f"{w.size} numbers", must=f"be {size} finite numbers above 0",
            hint="1 / variance of each cell is usual; a cell that is known exactly should not be in the projection",
        )  # fmt: skip
    return w
