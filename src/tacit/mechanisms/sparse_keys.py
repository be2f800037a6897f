"""Keys of cells in domains too large to visit: checked, packed, and drawn uniformly among the empty ones.

A key is an integer from 0 to domain - 1. Up to 2^64 cells, keys are uint64. Beyond that (up to 2^200) they are packed
as big-endian bytes in a void array, whose order is that of the integers. So both kinds sort and search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, TooManyCells
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import set_fields, unmasked, whole
from tacit.exact.data_classes import dataclass
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.noise.source import SeededSource, Source

__all__ = ["Impossible"]

MOST_BITS = 200
WORD = 1 << 64
NARROW = 1 << 64
DRAWS = 1 << 24
TESTED = 1 << 20
SMALL = 1 << 22
LEAST_SHARE = 256
SAMPLE = 1 << 16


def domain_size(value: object, name: str = "domain") -> int:
    """The number of cells: from 1 to 2^200."""
    size = whole(name, value, least=1)
    if size > 1 << MOST_BITS:
        raise TooManyCells(
            cells=size,
            limit=1 << MOST_BITS,
            hint="a key holds at most 200 bits: use fewer columns or coarser bins",
        )
    return size


def _limbs(domain: int) -> int:
    return max(1, -(-(domain - 1).bit_length() // 64))


def _packed_type(domain: int) -> np.dtype[Any]:
    return np.dtype((np.void, 8 * _limbs(domain)))


def _pack_integers(values: list[int], domain: int) -> AnyArray:
    size = 8 * _limbs(domain)
    joined = b"".join(v.to_bytes(size, "big") for v in values)
    return np.frombuffer(bytearray(joined), dtype=_packed_type(domain))


def combine_codes(codes: Sequence[tuple[npt.NDArray[Any], int]], domain: int) -> AnyArray:
    """The mixed-radix keys (...(c_1 s_2 + c_2) s_3 + ...) of codes with their sizes, each below 2^63.

    Beyond 2^64 cells the numbers are kept in digits of 32 bits, whose products with a digit and a carry fit 64.
    """
    first = codes[0][0]
    if domain <= NARROW:
        total = first.astype(np.uint64)
        for code, size in codes[1:]:
            total = total * np.uint64(size) + code.astype(np.uint64)
        return np.asarray(total)
    width = 2 * _limbs(domain)
    digits = np.zeros((width, first.size), dtype=np.uint64)
    for code, size in codes:
        digits = _times_plus(digits, size, code.astype(np.uint64))
    joined = np.ascontiguousarray(digits[::-1].T.astype(">u4"))
    return np.asarray(joined.view(_packed_type(domain)).ravel())


def _times_plus(digits: npt.NDArray[Any], factor: int, plus: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """factor * number + plus, digit by digit, lowest first; numbers within the domain cannot overflow."""
    mask, half = np.uint64((1 << 32) - 1), np.uint64(32)
    out = np.zeros_like(digits)
    out[0], out[1] = plus & mask, plus >> half
    for shift, part in enumerate((factor & ((1 << 32) - 1), factor >> 32)):
        if not part:
            continue
        carry = np.zeros(digits.shape[1], dtype=np.uint64)
        for place in range(digits.shape[0] - shift):
            here = digits[place] * np.uint64(part) + out[place + shift] + carry
            out[place + shift], carry = here & mask, here >> half
    return out


def key_integers(keys: AnyArray) -> npt.NDArray[Any]:
    """The keys as numbers: uint64 unchanged, packed ones as Python integers."""
    if keys.dtype.kind != "V":
        return keys
    out = np.empty(keys.size, dtype=object)
    out[:] = [int.from_bytes(k.tobytes(), "big") for k in keys]
    return out


def _bad(must: str, hint: str = "") -> InvalidParameter:
    # No key is shown: it stands for somebody's row.
    return InvalidParameter(parameter="keys", value="an array of keys", must=must, hint=hint)


def pack_keys(keys: npt.ArrayLike, domain: int, *, name: str = "keys") -> AnyArray:
    """Checked keys in their packed form: integers inside the domain, increasing, all different."""
    array = unmasked(keys, name="keys")
    if array.ndim != 1:
        raise _bad(f"be one-dimensional {name}")
    wide = domain > NARROW
    if array.size == 0:
        return np.empty(0, dtype=_packed_type(domain) if wide else np.uint64)
    if wide and array.dtype == _packed_type(domain):
        packed = array
        if int.from_bytes(np.sort(packed)[-1].tobytes(), "big") >= domain:
            raise _bad(f"lie inside the domain of {domain:,} cells")
    elif array.dtype.kind in "iu" or (array.dtype.kind == "O" and all(type(k) is int for k in array)):
        if int(array.min()) < 0 or int(array.max()) >= domain:
            raise _bad(
                f"lie between 0 and {domain - 1:,}",
                "keys outside the declared domain have no cell: drop them",
            )
        packed = _pack_integers([int(k) for k in array], domain) if wide else array.astype(np.uint64)
    else:
        raise _bad("be integers", "encode each cell as one integer from 0 to domain - 1")
    if not _increasing(packed):
        raise _bad("be increasing and all different", "sort them and add up the counts of equal keys")
    return packed


def _increasing(keys: AnyArray) -> bool:
    if keys.dtype.kind != "V":
        return bool((keys[1:] > keys[:-1]).all())
    order = np.argsort(keys, kind="stable")
    same = keys[1:] == keys[:-1]
    return bool((order == np.arange(keys.size)).all()) and not bool(same.any())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Impossible:
    """Cells that no row can be in (structural zeros): they get no noise and are never released.

    Either the list of their keys, or a test (an array of keys in, True for each impossible one) together with
    the total number of impossible keys. Public facts: they must not be read from the data. `count` must be
    exact, since the number of cells that could be released by chance is drawn from it.
    """

    keys: AnyArray | None = None
    test: Callable[[npt.NDArray[Any]], npt.ArrayLike] | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        if (self.keys is None) == (self.test is None):
            raise InvalidParameter(
                parameter="impossible",
                value="both or none",
                must="be given by keys or by a test and its count",
            )
        if self.count is not None or self.test is not None:
            set_fields(self, count=whole("count", self.count, least=0))
        if self.test is not None and not callable(self.test):
            raise InvalidParameter(
                parameter="test", value=type(self.test).__name__, must="be a function of keys"
            )

    def within(self, domain: int) -> tuple[AnyArray, int]:
        """The listed keys (none for a test), checked, and the number of impossible cells."""
        if self.keys is None:
            assert self.count is not None
            return pack_keys([], domain), self.count
        listed = pack_keys(self.keys, domain, name="impossible keys")
        if self.count is not None and self.count != listed.size:
            raise InvalidParameter(parameter="count", value=self.count, must=f"be {listed.size}, as listed")
        return listed, int(listed.size)

    def listed(self, domain: int) -> Impossible:
        """The same cells as a list, in a domain that is small enough to list; a wrong count is found here."""
        if self.test is None or domain > SMALL:
            return self
        keys = np.arange(domain, dtype=np.uint64)
        found = keys[self.holds(keys)]
        if found.size != self.count:
            raise InvalidParameter(
                parameter="count",
                value=self.count,
                must=f"be {found.size}, the number of keys that the test holds for",
            )
        return Impossible(keys=found)

    def within_reach(self, domain: int) -> None:
        """Refuses, from the declaration alone, a test that leaves too few cells for random draws, or a wrong count.

        Empty cells that pass are drawn until a possible one is met. Its running time must not depend on the
        occupied cells, so at least one cell in 256 must be possible in domains that are too large to list.
        """
        if self.test is None or domain <= SMALL:
            return
        assert self.count is not None
        possible = domain - self.count
        if possible * LEAST_SHARE < domain:
            raise InvalidParameter(
                parameter="impossible", value=f"all but {possible:,} of {domain:,} cells",
                must=f"leave at least one cell in {LEAST_SHARE} of a domain of more than {SMALL:,} cells",
                hint="number the possible cells themselves, and give those keys; or use fewer columns",
            )  # fmt: skip
        # A fixed public sample: a count that is far off would make empty cells as a whole too many or too few.
        drawn = uniform_keys(domain, SAMPLE, SeededSource(seed=0), domain)
        seen, share = int(self.holds(drawn).sum()), self.count / domain
        if abs(seen - drawn.size * share) > 8 * math.sqrt(drawn.size * share * (1 - share)) + 8:
            raise InvalidParameter(
                parameter="count",
                value=self.count,
                must="be the number of keys that the test holds for",
                hint=f"of {drawn.size:,} keys spread over the domain it holds for {seen:,}",
            )

    def holds(self, keys: AnyArray) -> npt.NDArray[np.bool_]:
        """The keys that the test calls impossible."""
        if self.test is None or not keys.size:
            return np.zeros(keys.size, dtype=np.bool_)
        told = np.asarray(self.test(key_integers(keys)))
        if told.shape != keys.shape or told.dtype != np.bool_:
            raise InvalidParameter(
                parameter="test",
                value=f"{told.dtype} of shape {told.shape}",
                must="give one boolean for each key",
            )
        return told


def uniform_keys(size: int, count: int, source: Source, like: int) -> AnyArray:
    """`count` independent uniform integers below `size`, packed as keys of a domain of `like` cells."""
    bits = (size - 1).bit_length()
    if like <= NARROW:
        if bits == 0:
            return np.zeros(count, dtype=np.uint64)
        words = source.words(count) >> np.uint64(64 - bits)
        return words if size == 1 << bits else np.asarray(words[words < np.uint64(size)])
    limbs = _limbs(like)
    words = source.words(count * limbs).reshape(count, limbs)
    for place in range(limbs):
        above = bits - 64 * (limbs - 1 - place)
        words[:, place] = (words[:, place] >> np.uint64(64 - above)) if 0 < above < 64 else words[:, place]
        if above <= 0:
            words[:, place] = 0
    keys: AnyArray = np.asarray(np.ascontiguousarray(words.astype(">u8")).view(_packed_type(like)).ravel())
    if size == 1 << bits:
        return keys
    last = _pack_integers([size - 1], like)[0]
    found = np.searchsorted(np.array([last], dtype=keys.dtype), keys)
    return np.asarray(keys[found == 0])


def _inside(keys: AnyArray, table: AnyArray) -> npt.NDArray[np.bool_]:
    """The keys of a sorted table."""
    if not table.size:
        return np.zeros(keys.size, dtype=np.bool_)
    at = np.minimum(np.searchsorted(table, keys), table.size - 1)
    return np.asarray(table[at] == keys)


def draw_empty(
    count: int, *, domain: int, occupied: AnyArray, impossible: Impossible | None, source: Source
) -> AnyArray:
    """`count` different keys, uniform among those that are neither occupied nor impossible; sorted.

    Draws are uniform and independent; the first `count` different ones that are allowed are a uniform subset.
    Up to 2^64 cells the j-th free key is found directly. Beyond, draws of occupied cells are repeated (their
    share is below 2^-30).
    """
    if count == 0:
        return occupied[:0]
    listed = impossible.within(domain)[0] if impossible is not None else occupied[:0]
    taken = _merged(occupied, listed)
    free = domain - int(taken.size)
    if impossible is not None and impossible.test is not None:
        return _tested(count, domain, taken, impossible, source)
    if domain > NARROW:
        return _different(count, domain, domain, taken, source)
    if count <= free - count:
        return _free_keys(_different(count, free, domain, taken[:0], source), taken)
    left_out = _different(free - count, free, domain, taken[:0], source)
    return _free_keys(np.delete(np.arange(free, dtype=np.uint64), left_out.astype(np.int64)), taken)


def _different(count: int, size: int, domain: int, banned: AnyArray, source: Source) -> AnyArray:
    """`count` different uniform integers below `size` that are not banned, sorted.

    No round draws more than are missing, so every allowed draw is kept and their order does not matter.
    """
    got = np.empty(0, dtype=_packed_type(domain) if domain > NARROW else np.uint64)
    while got.size < count:
        new = np.unique(uniform_keys(size, min(DRAWS, count - int(got.size)), source, domain))
        new = new[~(_inside(new, got) | _inside(new, banned))]
        # Two sorted runs: the stable sort merges them.
        got = np.sort(np.concatenate([got, new]), kind="stable")
    return got


def _tested(count: int, domain: int, taken: AnyArray, impossible: Impossible, source: Source) -> AnyArray:
    """The same for a test that recognises impossible keys; it always ends with all draws.

    If at least half of the possible cells are free, these are the first `count` allowed draws, in the order of
    drawing. Else the domain is at most 512 times the occupied cells (`Impossible.within_reach`), and its free cells
    are listed.
    """
    possible = domain - (impossible.count or 0)
    free = possible - int(taken.size)
    if domain <= NARROW and 2 * free < possible:
        listed = _listed_free(domain, taken, impossible)
        # A declared count that is too small promises more free cells than there are.
        chosen = _different(min(count, int(listed.size)), int(listed.size), domain, taken[:0], source)
        return np.asarray(listed[chosen.astype(np.int64)])
    got = taken[:0]
    while (missing := count - int(got.size)) > 0:
        tries = min(TESTED, missing * domain // max(free - int(got.size), 1) * 9 // 8 + 64)
        drawn = uniform_keys(domain, tries, source, domain)
        drawn = drawn[~_inside(drawn, taken)]
        both = np.concatenate([got, drawn[~impossible.holds(drawn)]])
        _, first = np.unique(both, return_index=True)
        got = both[np.sort(first)][:count]
    return np.sort(got)


def _listed_free(domain: int, taken: AnyArray, impossible: Impossible) -> AnyArray:
    """All keys that are neither taken nor impossible, block by block."""
    parts = [taken[:0]]
    for start in range(0, domain, TESTED):
        keys = np.arange(start, min(start + TESTED, domain), dtype=np.uint64)
        keys = keys[~_inside(keys, taken)]
        parts.append(keys[~impossible.holds(keys)])
    return np.concatenate(parts)


def _free_keys(ranks: AnyArray, taken: AnyArray) -> AnyArray:
    """The keys with these ranks among the keys that are not taken: j + #{i : taken_i - i <= j}."""
    if not taken.size:
        return ranks
    before = taken - np.arange(taken.size, dtype=np.uint64)
    return np.asarray(ranks + np.searchsorted(before, ranks, side="right").astype(np.uint64))


def _merged(left: AnyArray, right: AnyArray) -> AnyArray:
    if not right.size:
        return left
    return np.sort(np.concatenate([left, right]))


# The error of one cell under noise and a threshold, in closed form for Laplace noise; for planning and choosing.
#
# With T(m) = Pr[Z >= m] and M(m) = E[Z; Z >= m] the rule "keep x if x > t" has, at a true count c, r_t(c) = E[|Z|; Z
# > t - c] + c Pr[Z <= t - c]. These are floats: they choose and inform, and no guarantee rests on them.

FINE_STD = 2000.0
SAFETY = 1 + 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class NoiseTails:
    """Tail probabilities and tail means of symmetric integer noise, in floats."""

    noise: Laplace | Gaussian
    scale: float
    table: tuple[Floats, Floats, Floats] | None = None

    @property
    def rate(self) -> float:
        """1 / noise_scale, for Laplace noise."""
        return 1.0 / self.scale

    def probability(self, k: Any) -> Floats:
        """Pr[Z = k]."""
        size = np.abs(np.asarray(k, dtype=np.float64))
        if isinstance(self.noise, Laplace):
            return np.asarray(np.exp(-size * self.rate) * math.tanh(self.rate / 2))
        return np.asarray(self._far(0, size) - self._far(0, size + 1))

    def _far(self, which: int, m: Floats) -> Floats:
        """Pr[Z >= m] or E[Z; Z >= m] for m >= 1 (or m = 0 for the first), Gaussian noise."""
        if self.table is not None:
            column = self.table[which]
            return np.asarray(column[np.minimum(m, column.size - 1).astype(np.int64)])
        from scipy.special import erfc

        z = (m - 0.5) / self.scale
        if which == 0:
            return np.asarray(0.5 * erfc(z / math.sqrt(2)))
        return np.asarray(self.scale / math.sqrt(2 * math.pi) * np.exp(-z * z / 2))

    def upper(self, m: Any) -> Floats:
        """Pr[Z >= m]."""
        at = np.asarray(m, dtype=np.float64)
        away = np.maximum(at, 1 - at)
        if isinstance(self.noise, Laplace):
            tail = np.exp(-away * self.rate) / (1 + math.exp(-self.rate))
        else:
            tail = self._far(0, away)
        return np.asarray(np.where(at >= 1, tail, 1 - tail))

    def mean_above(self, m: Any) -> Floats:
        """E[Z; Z >= m], the same for m and 1 - m as E Z = 0."""
        at = np.asarray(m, dtype=np.float64)
        away = np.maximum(at, 1 - at)
        if isinstance(self.noise, Laplace):
            tail = np.exp(-away * self.rate) / (1 + math.exp(-self.rate))
            return np.asarray(tail * (away + 1 / math.expm1(self.rate)))
        return self._far(1, away)

    def size_above(self, m: Any) -> Floats:
        """E[|Z|; Z >= m]."""
        at = np.asarray(m, dtype=np.float64)
        above = self.mean_above(at)
        return np.asarray(np.where(at >= 1, above, 2 * self.mean_above(1.0) - above))

    def risk(self, threshold: Any, count: Any) -> Floats:
        """r_t(c); for c < 0 the same expression, which continues it (the estimate of the risk needs that)."""
        c = np.asarray(count, dtype=np.float64)
        m = np.asarray(threshold, dtype=np.float64) + 1 - c
        return np.asarray(self.size_above(m) + c * (1 - self.upper(m)))


def tails(noise: Laplace | Gaussian) -> NoiseTails:
    """The tails of a mechanism's noise."""
    if isinstance(noise, Laplace):
        return NoiseTails(noise, float(noise.noise_scale))
    std = float(noise.noise_std)
    if std > FINE_STD:
        return NoiseTails(noise, std)
    k = np.arange(0.0, math.ceil(39 * std) + 8)
    weight = np.exp(-k * k / (2 * std * std))
    total = 2 * weight.sum() - 1

    def above(terms: Floats) -> Floats:
        return np.asarray(np.cumsum(terms[::-1])[::-1] / total)

    zero = np.zeros(1)
    table = (np.append(above(weight), zero), np.append(above(k * weight), zero), zero)
    return NoiseTails(noise, std, table)


def threshold_risk(noise: Laplace | Gaussian, threshold: int, counts: npt.ArrayLike) -> Floats:
    """r_t(c) for each true count. A negative threshold releases negative values too, which count unchanged."""
    return tails(noise).risk(threshold, counts)


def worst_cell(noise: Laplace | Gaussian, threshold: int) -> float:
    """The largest r_t(c) over c >= 0, raised by a part in 10^9 for the floats.

    Beyond t + 45 noise scales r_t is E|Z| to the last digit. Between, c is scanned at every integer, or in
    steps of a thousandth of the scale with the largest rise of r_t in one step (|r_t'| <= 1 + t/scale) added.
    """
    law = tails(noise)
    top = max(threshold, 0) + math.ceil(45 * law.scale) + 2
    step = max(1, math.floor(law.scale / 1000))
    grid = np.arange(0, top + step, step)
    worst = float(law.risk(threshold, grid).max())
    slack = 0.0 if step == 1 else step * (1 + max(threshold, 0) / law.scale)
    return (worst + slack) * SAFETY
