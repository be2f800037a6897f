"""Lower bounds for every private mechanism, for counts, histograms and margins: valid and not vacuous.

Every function returns a number that is certainly below the worst expected L1 error of every epsilon-private
mechanism for its problem. Floats are rounded down by a relative 1e-9 where they come from closed formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, Required, TypedDict, Unpack

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.checks import non_negative, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, lower
from tacit.guarantees import Neighbours
from tacit.mechanisms.base import epsilon_parameter
from tacit.noise import DiscreteLaplace

# Dense histograms under replace-one neighbours: cells in groups of three.
#
# Three cells with N rows form a hexagonal lattice on which one replaced row is one step. An output whose sum is s
# off has levels of N_0 = 1 or 3s and N_k = 6k + 3s points at loss s + 2k, and along the levels no private
# distribution can
# fall faster than e^-epsilon: theorem `histogram-triples`. Closed formulas; nothing is solved.

SAFE = 1 - 1e-9
# Outputs whose sum is 3 or more off have a loss of at least 3; the levels are needed for smaller ones only.
CAP = 3
DEEPEST = 12
LIMIT_DEPTH = 60


@lru_cache(maxsize=4096)
def _centre(epsilon: float, depth: int) -> float:
    """c_m: the smallest mean loss over the levels 0..depth, for outputs whose sum is off by 0, 1 or 2; at most 3."""
    best = float(CAP)
    for s in range(CAP):
        mass = total = 0.0
        for k in range(depth + 1):
            points = 1 if k == s == 0 else 6 * k + 3 * s
            weight = points * math.exp(-epsilon * k)
            mass += weight
            total += weight * (s + 2 * k)
        best = min(best, total / mass)
    return best * (1 - 1e-12)


def _steps(epsilon: float) -> set[int]:
    """Steps t for which t epsilon lies below the cap, or a little above it."""
    return {max(1, round(u / epsilon)) for u in (1.1, 1.2, 1.3, 1.5, 1.8)} | {1}


def triple_risk(n: int | None, epsilon: float) -> float:
    """A lower bound of the worst expected L1 error of three cells with n rows; without an n its limit.

    max over t, m of t c_m(t epsilon) C(N-3w+2, 2)/C(N+2, 2), N = n/t, w = ceil(c_m) + m.
    """
    best = 0.0
    for t in _steps(epsilon):
        if n is None:
            best = max(best, t * _centre(t * epsilon, LIMIT_DEPTH))
            continue
        rows = n // t
        for depth in range(DEEPEST + 1):
            c = _centre(t * epsilon, depth)
            inner = rows - 3 * (math.ceil(c) + depth)
            if inner >= 0:
                share = (inner + 2) * (inner + 1) / ((rows + 2) * (rows + 1))
                best = max(best, t * c * share)
    return SAFE * best


def triples(cells: int, n: int, epsilon: float) -> float:
    """The L1 bound for a histogram of n rows: groups of three, each with its share of the rows."""
    most = cells // 3
    best = 0.0
    for groups in {min(most, k) for k in (most, max(1, math.floor(n * epsilon / 60)), max(1, n // 60))}:
        if groups >= 1:
            best = max(best, groups * triple_risk(n // groups, epsilon))
    return SAFE * best


PROBLEMS = ("count", "histogram", "margins", "sparse-histogram")
SAFE_BOUND = 1 - 1e-9
LONGEST_COUNT = 2_000
LARGEST = 500.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound:
    """A value below the worst expected error of every private mechanism, under the name of its theorem."""

    value: float
    name: str
    assumptions: str = "pure epsilon, replace-one neighbours, worst case over the data"


# --- counts ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def exact_count(n: int, epsilon: float) -> float:
    """The minimax risk of a count under absolute loss, from below (theorem `optimal-count-remap`).

    It grows with n, because a mechanism for a long range also serves a short one. So a long range may be cut.
    """
    from tacit.risk.certificate import Loss
    from tacit.risk.remap import minimax_remap

    if n < 1:
        return 0.0
    cut = min(n, LONGEST_COUNT, math.ceil(max(40.0, 150 / epsilon**2)))
    return minimax_remap(cut, epsilon, Loss(name="absolute"), 1e-7)[1].lower_bound


def count_packing(n: int, epsilon: float) -> float:
    """max over steps t of t/(e^(epsilon t) + 2), 2t <= n, and of (t/2)/(e^(epsilon t) + 1), t <= n.

    Theorem `count-packing`: three counts t apart, or two.
    """
    three = _best_step(lambda t: t / (math.exp(epsilon * t) + 2), n // 2, epsilon)
    two = _best_step(lambda t: t / 2 / (math.exp(epsilon * t) + 1), n, epsilon)
    return SAFE_BOUND * max(three, two)


def hall_count(n: int, epsilon: float) -> float:
    """e^-2 / epsilon, for epsilon < 2 and n >= 6/epsilon (theorem `count-rate`: Hall's Prop. 2.3.1, repaired)."""
    return SAFE_BOUND * math.exp(-2) / epsilon if epsilon < 2 and n * epsilon >= 6 else 0.0


def uniform_count(*, n: int, epsilon: Exact, worst_error: float, delta: float = 0.0) -> float:
    """The error at *every* count, for a mechanism whose worst error is at most `worst_error`.

    max over t <= ceil(n/2) of (t/2) [e^(-epsilon t) (1 - 2 worst/t) - delta (1 - e^(-epsilon t))/(e^epsilon - 1)].
    Theorem `uniform-count`. Source: Hall 2012, Prop. 2.3.2; Hall, Rinaldo, Wasserman, Prop. 3.2 and its remark.
    """
    n = whole("n", n, least=1)
    e = _level(epsilon)
    if not (math.isfinite(worst_error) and worst_error >= 0):
        raise InvalidParameter(
            parameter="worst_error", value=worst_error, must="be a finite number of at least 0"
        )
    refuse_if(not 0 <= delta < 1, "delta", delta, "lie in [0, 1)")

    def value(t: int) -> float:
        keep = math.exp(-e * t)
        return t / 2 * (keep * (1 - 2 * worst_error / t) - delta * -math.expm1(-e * t) / math.expm1(e))

    top = (n + 1) // 2
    return max(
        0.0, SAFE_BOUND * max(value(t) for t in _steps_of_count(top, e, least=math.ceil(2 * worst_error)))
    )


# --- histograms -----------------------------------------------------------------------------------------


def histogram_pairs(cells: int, n: int, epsilon: float, neighbours: Neighbours) -> float:
    """Cells in pairs, each with a least favourable count of its own: 2 sum over the pairs of R*(n_j, epsilon).

    Theorem `histogram-pairs`. Under add-or-remove neighbours every cell is a count of its own.
    """
    most = cells // 2 if neighbours is Neighbours.REPLACE_ONE else cells
    each = 2 if neighbours is Neighbours.REPLACE_ONE else 1
    # Any split is valid; as many parts as there are rows for is best, and the rows left over lengthen some.
    parts = min(most, n)
    short, longer = divmod(n, parts)
    total = (parts - longer) * exact_count(short, epsilon)
    return SAFE_BOUND * each * (total + (longer * exact_count(short + 1, epsilon) if longer else 0.0))


def histogram_assouad(cells: int, n: int, epsilon: float) -> float:
    """max over steps t of d t/(1 + e^(epsilon t)), d = min(cells - 1, n/t): theorem `histogram-assouad`.

    Source: Hall, Rinaldo, Wasserman, Prop. 3.1, with the affinity of pure privacy, 2/(1 + e^(epsilon t)).
    """
    return SAFE_BOUND * _best_step(
        lambda t: min(cells - 1, n // t) * t / (1 + math.exp(epsilon * t)), n, epsilon
    )


def sparse_product(cells: int, occupied: int, n: int, epsilon: float) -> float:
    """max over s < occupied groups of g cells and heights t of s t (1 - e^(epsilon t)/g)/(1 - 1/g), s t <= n.

    One cell of each group holds t rows: theorem `sparse-product`.
    """
    best = 0.0
    for groups in _sizes(min(occupied - 1, n)):
        g = (cells - 1) // groups
        if g < 2:
            continue
        top = min(n // groups, math.floor(math.log(g) / epsilon))

        def value(t: int, groups: int = groups, g: int = g) -> float:
            return groups * t * (1 - math.exp(epsilon * t) / g) / (1 - 1 / g)

        best = max([best, *(value(t) for t in _near_all(top))])
    return SAFE_BOUND * best


def sparse_packing(cells: int, occupied: int, n: int, epsilon: float) -> float:
    """Subsets of s cells that pairwise differ in at least k, each cell t rows: t k (1 - e^(epsilon s t)/N).

    N by the Gilbert-Varshamov count; theorem `sparse-packing`. Source: Hall 2012, Prop. 2.4.4, repaired.
    """
    best = 0.0
    for s in _sizes(min(occupied - 1, n, cells - 1)):
        for k in _sizes(s):
            log_n = _log_subsets(cells - 1, s, k)
            top = min(n // s, math.floor(log_n / (epsilon * s)))
            for t in _near_all(top):
                best = max(best, t * k * -math.expm1(min(0.0, epsilon * s * t - log_n)))
    return SAFE_BOUND * best


# --- margins --------------------------------------------------------------------------------------------


def margins_counts(attributes: int, n: int, epsilon: float) -> float:
    """Every margin is a count of its own: k R*(n, epsilon) (theorem `margins-counts`)."""
    return SAFE_BOUND * attributes * exact_count(n, epsilon)


def margins_cube(attributes: int, n: int, epsilon: float) -> float:
    """t rows at one unknown corner of the cube: t times the mean distance in a ball of e^(-epsilon t) 2^k corners.

    Theorem `margins-cube`. Source: Hall 2012, Prop. 2.4.5, with his constant made explicit.
    """
    k = attributes
    logs = [_log_choose(k, i) - k * math.log(2) for i in range(k + 1)]

    def value(t: int) -> float:
        left, mean = 1.0, 0.0
        for i, weight in enumerate(logs):
            mass = min(left, math.exp(min(0.0, weight + epsilon * t)))
            mean += i * mass
            left -= mass
            if left <= 0:
                break
        return t * mean

    top = min(n, math.ceil(k * math.log(2) / epsilon))
    return SAFE_BOUND * max(value(t) for t in _near_all(top))


# --- all together ---------------------------------------------------------------------------------------


def lower_bounds(
    problem: str,
    *,
    n: int,
    epsilon: Exact,
    cells: int = 2,
    occupied: int | None = None,
    attributes: int = 1,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
) -> tuple[LowerBound, ...]:
    """Every lower bound for the problem, largest first.

    n is the number of rows (public; its largest value under add-or-remove neighbours), `cells` the number of
    cells, `occupied` the largest number of cells other than 0, `attributes` the number of binary attributes.
    """
    if problem not in PROBLEMS:
        raise UnknownName(what="problem", name=str(problem), known=PROBLEMS)
    n = whole("n", n, least=1)
    e = _level(epsilon)
    found: dict[str, float] = {}
    if problem == "count":
        found = {
            "optimal-count-remap": exact_count(n, e),
            "count-packing": count_packing(n, e),
            "count-rate": hall_count(n, e),
        }
    elif problem == "histogram":
        p = whole("cells", cells, least=2)
        found = {
            "histogram-pairs": histogram_pairs(p, n, e, neighbours),
            "histogram-assouad": histogram_assouad(p, n, e),
        }
        if neighbours is Neighbours.REPLACE_ONE:
            found["histogram-triples"] = triples(p, n, e)
    elif problem == "sparse-histogram":
        p = whole("cells", cells, least=2)
        q = whole("occupied", occupied, least=1)
        refuse_if(q > p, "occupied", q, f"be at most cells = {p}")
        found = {
            "sparse-product": sparse_product(p, q, n, e),
            "sparse-packing": sparse_packing(p, q, n, e),
            "histogram-pairs": histogram_pairs(q, n, e, neighbours) if q >= 2 else 0.0,
        }
    else:
        k = whole("attributes", attributes, least=1)
        found = {"margins-counts": margins_counts(k, n, e), "margins-cube": margins_cube(k, n, e)}
    ranked = sorted(found.items(), key=lambda item: -item[1])
    said = f"pure epsilon, {neighbours.value} neighbours, worst case over the data"
    return tuple(LowerBound(value=max(0.0, value), name=name, assumptions=said) for name, value in ranked)


class Size(TypedDict, total=False):
    """The arguments of `lower_bounds` beside the problem: its size, the epsilon, the neighbours."""

    n: Required[int]
    epsilon: Required[Exact]
    cells: int
    occupied: int | None
    attributes: int
    neighbours: Neighbours


def lower_bound(problem: str, **size: Unpack[Size]) -> LowerBound:
    """The largest valid lower bound for the problem, with the name of its theorem; `size` as for `lower_bounds`."""
    return lower_bounds(problem, **size)[0]


# --- helpers --------------------------------------------------------------------------------------------


def _level(epsilon: Exact) -> float:
    value = float(epsilon_parameter(epsilon))
    if value > LARGEST:
        raise InvalidParameter(parameter="epsilon", value=epsilon, must=f"be at most {LARGEST:g}")
    return value


def _best_step(value: Callable[[int], float], top: int, epsilon: float) -> float:
    return max((value(t) for t in _steps_of_count(top, epsilon)), default=0.0)


def _steps_of_count(top: int, epsilon: float, least: int = 1) -> Iterator[int]:
    """Integers up to `top` that include the best step, or nearly: all small ones, then ever coarser ones."""
    last = max(1, min(top, math.ceil(least + 40 / epsilon)))
    yield from _near_all(last)
    if 1 <= least <= last:
        yield least


def _near_all(top: int, share: int = 256) -> Iterator[int]:
    """1..top, in steps that grow with the number itself: a 256th of it, or another share."""
    t = 1
    while t <= top:
        yield t
        t += max(1, t // share)
    if top >= 1:
        yield top


def _sizes(top: int) -> Iterator[int]:
    """The numbers from 1 to top: all the small ones, then with steps of a tenth."""
    return _near_all(top, share=10)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _log_subsets(cells: int, s: int, k: int) -> float:
    """ln of C(cells, s) / #{subsets that share more than s-k cells with a given one}, rounded down."""
    logs = [_log_choose(s, i) + _log_choose(cells - s, i) for i in range(min(k, cells - s + 1, s + 1))]
    most = max(logs)
    ball = most + math.log(sum(math.exp(v - most) for v in logs))
    return max(0.0, (_log_choose(cells, s) - ball) - 1e-9 * (1 + abs(_log_choose(cells, s))))


# What two parties must err who have no cipher between them, and what one curator of both tables errs.
#
# x and y are in {-1, 1}^n, one with each party. A protocol whose transcript is epsilon-private for each coordinate of
# x and of y, against everybody, has E (answer - <x, y>)^2 >= n / cosh(epsilon/2)^4 on uniform x and y, anybody who
# computes the answer (theorem `two-party-gap`). A curator of both adds noise for a move of 2, whatever n is.


def two_party_floor(*, rows: int, epsilon: float, hamming: bool = False) -> float:
    """The least mean squared error of a statistical protocol, rounded down; for the Hamming distance a quarter."""
    n, e = whole("rows", rows), non_negative("epsilon", epsilon)
    share = Fraction(1, 4) if hamming else Fraction(1)

    def formula() -> Any:
        half = (ball(e) / 2).exp()
        return ball(n * share) / ((half + 1 / half) / 2) ** 4

    return max(0.0, lower(formula))


def curator_squared_error(*, epsilon: float, hamming: bool = False) -> float:
    """The variance of discrete Laplace noise for the move of one bit: 2 for the inner product, 1 for the distance."""
    move = 1 if hamming else 2
    return float(DiscreteLaplace(noise_scale=Fraction(move) / Fraction(epsilon)).variance)


def response_squared_error(*, rows: int, epsilon: float) -> float:
    """The error of a statistical protocol: both publish all bits by randomised response, n (1 - tanh(epsilon/2)^4).

    The answer is the mean of <x, y> given both published vectors.
    """
    return rows * (1 - math.tanh(epsilon / 2) ** 4)
