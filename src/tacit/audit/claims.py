"""The claim of a certificate, and the finding of this program.

A bound is confirmed if this program's own upper end is at most the stated number. Its grid only rounds upwards, so
that the truth lies below.
If no grid is fine enough, a number between both ends is confirmed too, provided that these are within
TOLERANCE; a number below the lower end never is. Sums (epsilons; epsilons and deltas; rhos; squares of mu) are
added as exact fractions; only an epsilon that is smaller than the sum needs the composed curve.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.audit.composition import BITS, FAR, TooLong, composed, epsilon_at, on_grid
from tacit.audit.curves import (
    FIELDS,
    POINTS,
    PURE,
    WHOLE,
    Curve,
    Range,
    Unconfirmed,
    at_least_zero,
    below_one,
    both_orders,
    exact,
    local_epsilon,
    number,
    share,
    some_text,
)
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import precision, up

if TYPE_CHECKING:
    from flint import arb


# What may stand in a certificate: every kind of event with its fields and their ranges, every bound, both relations.
#
# A certificate may come from anybody. What has a field more or less, a number outside of its range, a number in
# quotation marks, or no event at all, is refused: a formula applied to it would say nothing about a release. Kinds
# and versions that are not listed here are merely not known.

DEEPEST = 40
VERSION = 1


class Malformed(Exception):
    """No release could have been given this statement."""


_ONE_INSIDE = ("poisson_sampled", "shuffled", "without_replacement", "repeated")
_SEVERAL_INSIDE = ("mixed", "composed")


def checked_events(records: Any) -> list[Mapping[str, Any]]:
    """The events of a certificate, each of a known form through and through."""
    if not isinstance(records, list | tuple):
        raise Malformed("its events are no list")
    found = []
    for record in records:
        if not isinstance(record, Mapping) or set(record) - {"given"} != {"version", "event"}:
            raise Malformed("an event has another form than version and event")
        if record["version"] != VERSION or isinstance(record["version"], bool):
            raise Unconfirmed("an event is of another version")
        _check(record["event"], 0)
        found.append(record["event"])
    return found


def _check(event: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise Malformed("its events are nested too deep")
    kind = event.get("kind") if isinstance(event, Mapping) else None
    if not isinstance(kind, str) or kind not in FIELDS:
        raise Unconfirmed(f"no formula for an event of kind {kind!r}")
    inside = {"event"} if kind in _ONE_INSIDE else {"events"} if kind in _SEVERAL_INSIDE else set()
    if set(event) != {"kind", *FIELDS[kind], *inside}:
        raise Malformed(f"an event of kind {kind!r} has other fields than its own")
    for name, within in FIELDS[kind].items():
        if not within(event[name]):
            raise Malformed(f"{name} of an event of kind {kind!r} lies outside of its range")
    members: Sequence[Any] = [event["event"]] if "event" in inside else event.get("events", [])
    if inside and (not isinstance(members, list | tuple) or not members):
        raise Malformed(f"an event of kind {kind!r} holds no events")
    if kind == "tabulated" and len(event["p"]) != len(event["q"]):
        raise Malformed("a table has two laws of different length")
    if kind == "balanced_response":
        outcomes, supporting, shared = (event[name] for name in ("outcomes", "supporting", "shared"))
        if not (shared < supporting and 2 * supporting - shared <= outcomes):
            raise Malformed("no sets of outcomes have these sizes")
    if kind == "mixed" and not _mixture(event["weights"], members):
        raise Malformed("a mixture needs one weight an event, with a sum in (0, 1]")
    for member in members:
        _check(member, depth + 1)


def _mixture(weights: Sequence[Any], members: Sequence[Any]) -> bool:
    whole = sum(map(Fraction, weights), Fraction(0))
    return len(weights) == len(members) and 0 < whole <= 1 + WHOLE


_BOUNDS: dict[str, dict[str, Range]] = {
    "pure": {"epsilon": at_least_zero},
    "approximate": {"epsilon": at_least_zero, "delta": below_one},
    "concentrated": {"rho": at_least_zero},
    "gaussian": {"mu": at_least_zero},
}
_CONDITIONS: dict[str, dict[str, Range]] = {
    "always": {},
    "bounded-adversary": {
        "assumption": some_text,
        "advantage": share,
        "definition": ("ind", "sim").__contains__,
    },
    "random-data": {"gamma": share},
}


def checked_bound(guarantee: Mapping[str, Any]) -> Mapping[str, Any]:
    """The stated bound, of a known kind and condition, with numbers that are numbers."""
    bound, condition = guarantee["bound"], guarantee["condition"]
    version = guarantee.get("version", VERSION)
    if version != VERSION or isinstance(version, bool):
        raise Unconfirmed("it is of another version")
    fields = _CONDITIONS.get(condition["kind"]) if isinstance(condition["kind"], str) else None
    if fields is None:
        raise Unconfirmed("it holds under a condition that is not known here")
    if set(condition) != {"kind", *fields} or not all(within(condition[n]) for n, within in fields.items()):
        raise Malformed("its condition has other fields than its own, or numbers outside of their range")
    kind = bound["kind"]
    if kind == "renyi":
        orders, epsilons = bound["orders"], bound["epsilons"]
        above = isinstance(orders, list | tuple) and all(
            o == math.inf or (number(o) and o > 1) for o in orders
        )
        if not above or not orders or len(orders) != len(epsilons) or not all(map(at_least_zero, epsilons)):
            raise Malformed("its orders and divergences are no such numbers")
    elif kind not in _BOUNDS:
        raise Unconfirmed(f"no formula for a bound of kind {kind!r}")
    elif set(bound) != {"kind", *_BOUNDS[kind]} or not all(w(bound[n]) for n, w in _BOUNDS[kind].items()):
        raise Malformed("its numbers lie outside of their range")
    checked: Mapping[str, Any] = bound
    return checked


def checked_given(records: Sequence[Mapping[str, Any]], condition: Mapping[str, Any]) -> Fraction:
    """The largest gamma of the events; refuses a guarantee without the condition of its events."""
    found = Fraction(0)
    for record in records:
        if "given" not in record:
            continue
        given = record["given"]
        if not isinstance(given, Mapping) or set(given) != {"random_data"}:
            raise Malformed("an event is given something else than random data")
        text = given["random_data"]
        if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,40}(/[0-9]{1,40})?", text):
            raise Malformed("what an event is given is no probability")
        above, _, below = text.partition("/")
        if int(above) > int(below or 1) or (below and not int(below)):
            raise Malformed("what an event is given is no probability")
        found = max(found, Fraction(text))
    if found and (condition["kind"] != "random-data" or found > Fraction(condition["gamma"]) * (1 + WHOLE)):
        raise Malformed("an event holds under a condition that the guarantee does not state")
    return found


def checked_relation(guarantee: Mapping[str, Any], neighbours: Any) -> str:
    """The neighbour relation, which the certificate and its unit state alike."""
    if neighbours not in ("add-or-remove", "replace-one"):
        raise Malformed("its neighbour relation is not known here")
    unit = guarantee.get("unit")
    while isinstance(unit, Mapping):
        if unit.get("neighbours", neighbours) != neighbours:
            raise Malformed("its unit has another neighbour relation than its events")
        unit = unit.get("of")
    return str(neighbours)


TOLERANCE = Fraction(1, 200)
"""The upper end of a grid may exceed the stated number by this factor, if its lower end is below it."""
ROUNDED = Fraction(1, 10**6)
"""Cutting off and rounding add this much to an end."""
ROUNDING_SLACK = Fraction(1, 10**9)
"""Stated floats may be this much below the exact sum of stated floats."""

PRECISION = 512
MOST_RUNS = 2_000_000
"""With more runs on one grid the cut-off and rounded parts add up to too much, and take too long."""
COARSEST, FINEST = 200, 1 << 16
"""Points of the first and of the last grid within the stated epsilon."""
ORDERS = 1 << 14
"""The number of points within the largest loss, for a divergence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """Is the stated bound confirmed? `confirmed` is None if this program has no formula; `found` is its own number."""

    stated: str
    confirmed: bool | None
    found: float | None = None
    why: str = ""


def opinion_on_certificate(certificate: Mapping[str, Any]) -> Opinion:
    """The bound of one release against the events that its certificate names."""
    return opinion_on(certificate["guarantee"], certificate["event"], certificate["neighbours"])


def opinion_on(
    guarantee: Mapping[str, Any], records: Sequence[Mapping[str, Any]], neighbours: str
) -> Opinion:
    """A guarantee, of a release or of a plan, against events."""
    bound = guarantee["bound"]
    stated = _bound_text(bound)
    if guarantee["condition"]["kind"] == "priors":
        why = "an exact answer is hidden by other rows; `tacit noiseless` computes by how much"
        return Opinion(stated=stated, confirmed=None, why=why)
    try:
        relation = checked_relation(guarantee, neighbours)
        checked_bound(guarantee)
        with precision(PRECISION):
            events = _flat(checked_events(records))
            checked_given(records, guarantee["condition"])
            if not events and _promises(bound):
                raise Malformed("it names no event, and so nothing that hides an answer")
            if not events:
                raise Unconfirmed(
                    "it names no event; this check does not prove that no unit moves its numbers"
                )
            found = _FOUND[bound["kind"]](bound, events, relation)
    except Malformed as problem:
        return Opinion(stated=stated, confirmed=False, why=str(problem))
    except (Unconfirmed, ArithmeticError, KeyError, TypeError, ValueError) as problem:
        why = str(problem) if isinstance(problem, Unconfirmed) else "its form is unknown here"
        return Opinion(stated=stated, confirmed=None, why=why)
    limit = Fraction(bound[_MAIN[bound["kind"]]]) if bound["kind"] in _MAIN else Fraction(1)
    if found is None:
        return Opinion(stated=stated, confirmed=False, why="no finite number holds at this delta")
    low, high = found
    room = (
        TOLERANCE
        if bound["kind"] == "approximate"
        else ROUNDED
        if bound["kind"] == "renyi"
        else ROUNDING_SLACK
    )
    confirmed = high <= limit * (1 + room) and low <= limit * (1 + ROUNDED)
    return Opinion(stated=stated, confirmed=confirmed, found=up(high))


def _promises(bound: Mapping[str, Any]) -> bool:
    """Whether it states more than that nothing is revealed."""
    numbers = [bound[name] for name in ("epsilon", "delta", "rho", "mu") if name in bound]
    return any(number > 0 for number in [*numbers, *bound.get("epsilons", ())])


def _bound_text(bound: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in bound.items() if name != "kind")


def _flat(events: Sequence[Mapping[str, Any]], times: int = 1) -> Counter[str]:
    """Simple events as distinguishing texts, with their multiplicities."""
    counts: Counter[str] = Counter()
    for event in events:
        if event["kind"] == "repeated":
            counts += _flat([event["event"]], times * int(event["times"]))
        elif event["kind"] == "composed":
            counts += _flat(event["events"], times)
        else:
            counts[json.dumps(event, sort_keys=True)] += times
    return counts


def _pure(event: Mapping[str, Any], neighbours: str) -> Fraction | None:
    """The epsilon that an event has with delta = 0."""
    if event["kind"] == "approximate":
        return Fraction(event["epsilon"]) if event["delta"] == 0 else None
    if event["kind"] in ("poisson_sampled", "without_replacement"):
        if (event["kind"] == "poisson_sampled") != (neighbours == "add-or-remove"):
            raise Unconfirmed("no formula for this kind of sampling under its neighbour relation")
        inner = _pure(event["event"], neighbours)
        if inner is None:
            return None
        q, e = exact(event["sampling_rate"]), exact(inner).exp()
        return _fraction((1 + q * (e - 1)).log())
    if event["kind"] in ("repeated", "composed"):
        own = [_pure(e, neighbours) for e in event.get("events", [event.get("event")])]
        return None if None in own else sum(filter(None, own), Fraction(0)) * int(event.get("times", 1))
    if event["kind"] == "mixed":
        own = [_pure(e, neighbours) for e, w in zip(event["events"], event["weights"], strict=True) if w]
        return None if None in own else max(filter(None, own), default=Fraction(0))
    if event["kind"] == "shuffled":  # the local epsilon, which needs no shuffler
        if neighbours != "replace-one":
            raise Unconfirmed("no formula for shuffled answers of added or removed people")
        return local_epsilon(event["event"])
    if event["kind"] == "tabulated":
        whole = [sum(map(Fraction, event[name]), Fraction(0)) for name in ("p", "q")]
        both = zip(event["p"], event["q"], strict=True)
        rows = [(Fraction(p) / whole[0], Fraction(q) / whole[1]) for p, q in both if p or q]
        if any(p <= 0 or q <= 0 for p, q in rows):
            return None
        return _fraction(exact(max(max(p / q, q / p) for p, q in rows)).log())
    return Fraction(event["epsilon"]) if event["kind"] in PURE else None


def _rho(event: Mapping[str, Any], neighbours: str) -> Fraction | None:
    """1 / (2 noise_multiplier^2) for Gaussian noise, epsilon tanh(epsilon/2) for pure epsilon."""
    if event["kind"] in ("gaussian", "discrete_gaussian"):
        return 1 / (2 * Fraction(event["noise_multiplier"]) ** 2)
    if event["kind"] == "concentrated":
        return Fraction(event["rho"])
    if event["kind"] == "discrete_gaussian_vector":
        return Fraction(event["squared_sensitivity"]) / (2 * Fraction(event["noise_std"]) ** 2)
    epsilon = _pure(event, neighbours)
    return None if epsilon is None else _fraction(exact(epsilon) * (exact(epsilon) / 2).tanh())


def _mu_squared(event: Mapping[str, Any], neighbours: str) -> Fraction | None:
    """1 / noise_multiplier^2 for Gaussian noise; Phi(mu/2) = e^epsilon / (1 + e^epsilon) for pure epsilon."""
    if event["kind"] == "gaussian":
        return 1 / Fraction(event["noise_multiplier"]) ** 2
    epsilon = _pure(event, neighbours)
    if epsilon is None:
        return None
    wrong = 1 / (1 + exact(epsilon).exp())  # Phi(-mu/2)
    low, high = Fraction(0), Fraction(200)
    while high - low > ROUNDING_SLACK * low:
        middle = (low + high) / 2
        below = (exact(middle) / 2 / exact(2).sqrt()).erfc() / 2 < wrong
        low, high = (low, middle) if below else (middle, high)
    return high * high


def _fraction(value: arb) -> Fraction:
    """An upper bound of a ball, as a fraction."""
    return Fraction(int((value * (1 << 128)).upper().ceil().unique_fmpz()), 1 << 128)


def _sum(
    counts: Counter[str], each: Callable[[Mapping[str, Any], str], Fraction | None], neighbours: str
) -> Fraction:
    total = Fraction(0)
    for text, times in counts.items():
        event = json.loads(text)
        own = each(event, neighbours)
        if own is None:
            raise Unconfirmed(f"an event of kind {event['kind']!r} has no number of this kind")
        total += own * times
    return total


Ends = tuple[Fraction, Fraction]
"""A lower and an upper end of the smallest number that holds."""


def _epsilon(bound: Mapping[str, Any], counts: Counter[str], neighbours: str) -> Ends | None:
    """The epsilon at the stated delta: by adding epsilons and deltas, or by the composed curve.

    Refines the grid until the stated number is on one side of both ends, or a finer grid gains too little.
    """
    delta = Fraction(bound["delta"])
    found: list[Fraction] = []
    approximate = all(_stated_delta(json.loads(text), neighbours) is not None for text in counts)
    if approximate and _sum(counts, _stated_delta, neighbours) <= delta * (1 + ROUNDING_SLACK):
        found.append(_sum(counts, _stated_epsilon, neighbours))
    limit, low = Fraction(bound["epsilon"]), Fraction(0)
    if any(f <= limit * (1 + ROUNDING_SLACK) for f in found) or not delta or not limit:
        return (low, min(found)) if found else None
    finest = _smallest(counts, neighbours)
    first = points = (
        max(COARSEST, math.ceil(limit / finest)) if finest and limit <= finest * FINEST else COARSEST
    )
    last = None
    while points <= FINEST:
        width = limit / points
        if finest and width < finest:
            width = finest / math.ceil(finest / width)  # a loss that many runs have lies on the grid
        try:
            lower, by_curve = _by_curve(counts, neighbours, width, float(delta))
        except TooLong:
            if last is None and points == first:
                raise
            break
        low = max(low, lower)
        if by_curve is not None:
            found.append(by_curve)
        finer = 2
        if by_curve is not None and last is not None:
            # What a grid adds falls with the square of its step: all finer ones together gain a third of this again.
            gained, missing = last - by_curve, by_curve - limit
            if _is_known(counts):
                low = max(low, by_curve - gained)
            if gained < missing:
                break  # there is no way left to what is stated
            finer = 4 if gained < 3 * missing else 2
        elif last is None and by_curve is None and points > 2 * first:
            break  # three grids on which what is infinite is above delta already
        if low > limit * (1 + ROUNDED) or any(f <= limit * (1 + ROUNDED) for f in found):
            break
        last, points = by_curve, points * finer
    return (min(low, *found), min(found)) if found else None


def _is_known(counts: Counter[str]) -> bool:
    """Whether all curves are those of a pair.
    A rho has only an upper curve, and products of that curve exceed the curve of the summed rho."""
    return not any(
        word in text for text in counts for word in ('"concentrated"', '"discrete_gaussian_vector"')
    )


def _smallest(counts: Counter[str], neighbours: str) -> Fraction | None:
    """The smallest epsilon of a run: a coarser grid would make it larger."""
    own = [_stated_epsilon(json.loads(text), neighbours) for text in counts]
    return min((epsilon for epsilon in own if epsilon), default=None)


def _stated_epsilon(event: Mapping[str, Any], neighbours: str) -> Fraction | None:
    return Fraction(event["epsilon"]) if event["kind"] in POINTS else _pure(event, neighbours)


def _stated_delta(event: Mapping[str, Any], neighbours: str) -> Fraction | None:
    if event["kind"] in POINTS:
        return _fraction(POINTS[event["kind"]](event))
    return None if _pure(event, neighbours) is None else Fraction(0)


def _by_curve(
    counts: Counter[str], neighbours: str, width: Fraction, delta: float
) -> tuple[Fraction, Fraction | None]:
    """A lower and an upper end of epsilon, for both orders of neighbours, on one grid of losses.

    The lower end is 0 if none is known.

    One run has its curve, which needs no grid. For several runs, the straight lines lie below the curve whose losses
    are all rounded up to the next point, and rounding raises a loss by at most a step: if n runs have epsilon on the
    grid, their true epsilon is at least epsilon - n steps, apart from the cut-off part.
    """
    step, runs = exact(width), _merged(counts)
    number = sum(runs.values())
    if number > MOST_RUNS:
        raise TooLong("it was run more often than this program follows")
    negligible = delta * CUT / (1 + number)
    curves = [(both_orders(json.loads(text), neighbours, step), times) for text, times in runs.items()]
    known = [(pair, times) for pair, times in curves if pair]
    # One run has no grid, but where a composition is inside of it; of several the lines lie above the curve.
    tight = all(_is_exact(json.loads(text), number) for text in runs)
    low, high = Fraction(0), Fraction(0)
    for order in (0, 1) if any(pair[0] is not pair[1] for pair, _ in known) else (0,):
        if number == 1:
            ends = [_crossing(pair[order], delta) for pair, _ in known]
            below, found = ends[0] if ends else (Fraction(0), Fraction(0))
        else:
            parts = [(on_grid(pair[order], step, negligible=negligible), times) for pair, times in known]
            together = composed(parts, negligible=delta * CUT)
            above = epsilon_at(together, step, delta)
            if above is None:
                return Fraction(0), None
            # At most twice what may be cut off, at either end of every part and of every product.
            rest = epsilon_at(together, step, delta * (1 + 8 * CUT * (1 + len(parts))))
            found = _fraction(above)
            below = Fraction(0) if rest is None else -_fraction(-rest) - number * width
        low, high = max(low, below), max(high, found)
    return (low if tight else Fraction(0)), high


CUT = 1e-8
"""The largest mass that may be cut off, as a part of delta."""


def _is_exact(event: Mapping[str, Any], runs: int) -> bool:
    """Whether the curve is exact: without a grid inside of this event, and without an upper bound in its
    composition with others.
    """
    if event["kind"] in ("composed", "repeated", "discrete_gaussian_vector"):
        return False
    if event["kind"] in ("concentrated", "objective_perturbation", "shuffled") and runs > 1:
        return False
    members = [event["event"]] if "event" in event else event.get("events", [])
    return all(_is_exact(one, runs) for one in members)


def _crossing(h: Curve, delta: float) -> Ends:
    """The epsilons next to each other between which a curve crosses delta."""
    limit = exact(delta)
    if h(exact(0)) <= limit:
        return Fraction(0), Fraction(0)
    low, high = Fraction(0), Fraction(1)
    while not h(exact(high)) <= limit:
        low, high = high, high * 2
        if high > FAR:
            return low, Fraction(10**9)
    while high - low > high * ROUNDING_SLACK / 1000:
        middle = (low + high) / 2
        if h(exact(middle)) <= limit:
            high = middle
        else:
            low = middle
    # Where a ball is on both sides of delta the lower end is no proof of more.
    while low and not h(exact(low)) > limit:
        low = low - (high - low)
        low = max(low, Fraction(0))
    return low, high


def _merged(counts: Counter[str]) -> Counter[str]:
    """Several Gaussian noises count as one, since their mu^2 add up (a rotation of normal noise), and so do rhos."""
    squared, rho, rest = Fraction(0), Fraction(0), Counter[str]()
    for text, times in counts.items():
        event = json.loads(text)
        if event["kind"] == "gaussian":
            squared += times / Fraction(event["noise_multiplier"]) ** 2
        elif event["kind"] == "concentrated":
            rho += times * Fraction(event["rho"])
        else:
            rest[text] += times
    if squared:
        multiplier = 1 / _fraction(exact(squared).sqrt())
        rest[json.dumps({"kind": "gaussian", "noise_multiplier": str(multiplier)})] = 1
    if rho:
        rest[json.dumps({"kind": "concentrated", "rho": str(rho)})] = 1
    return rest


def _divergence(event: Mapping[str, Any], neighbours: str) -> Callable[[float], Fraction]:
    """Order times rho for Gaussian noise; else, where losses are bounded, ln E_P[e^{(order - 1) loss}] / (order - 1).

    If the curve of a pair is larger, so is its divergence, because a divergence averages such curves over all
    ratios.
    """
    if event["kind"] in ("gaussian", "discrete_gaussian", "discrete_gaussian_vector", "concentrated"):
        rho = _rho(event, neighbours) or Fraction(0)
        return lambda order: Fraction(order) * rho
    widest = _pure(event, neighbours)
    if widest is None:
        raise Unconfirmed(f"no divergence of an event of kind {event['kind']!r}")
    if not widest:
        return lambda order: Fraction(0)
    step = exact(widest / ORDERS)
    pair = both_orders(event, neighbours, step) or ()
    grids = [on_grid(h, step, negligible=2.0**-BITS) for h in dict.fromkeys(pair)]
    # No loss is above the widest: what rounding left beyond it lies one step on, 1 / (1 - e^{-step}) times as much.
    more = math.ceil(ORDERS / widest * 2)

    def at(order: float) -> Fraction:
        if math.isinf(order):
            return widest
        above, largest = exact(order) - 1, Fraction(0)
        grown = (above * step).exp()
        for losses in grids:
            moment = exact(0)
            for mass in reversed(losses.masses):
                moment = moment * grown + mass
            beyond = losses.infinite * more * (above * (ORDERS + 1) * step).exp()
            moment = (moment * (above * losses.lowest * step).exp() + beyond) / (1 << BITS)
            largest = max(largest, _fraction(moment.log() / above))
        return largest

    return at


def _orders(bound: Mapping[str, Any], counts: Counter[str], neighbours: str) -> Fraction:
    """The largest ratio of a sum of divergences to what is stated at its order."""
    ratios = [Fraction(0)]
    each = [(_divergence(json.loads(text), neighbours), times) for text, times in counts.items()]
    for order, stated in zip(bound["orders"], bound["epsilons"], strict=True):
        found = sum((divergence(order) * times for divergence, times in each), Fraction(0))
        if found and not stated:
            raise Unconfirmed("a divergence of 0 is stated for noise that has one")
        ratios.append(found / Fraction(stated) if found else Fraction(0))
    return max(ratios)


def _added(each: Callable[[Mapping[str, Any], str], Fraction | None]) -> Callable[..., Ends]:
    return lambda bound, counts, relation: (Fraction(0), _sum(counts, each, relation))


_FOUND: dict[str, Callable[[Mapping[str, Any], Counter[str], str], Ends | None]] = {
    "pure": _added(_pure),
    "approximate": _epsilon,
    "concentrated": _added(_rho),
    "gaussian": lambda bound, counts, relation: (
        Fraction(0),
        _fraction(exact(_sum(counts, _mu_squared, relation)).sqrt()),
    ),
    "renyi": lambda bound, counts, relation: (Fraction(0), _orders(bound, counts, relation)),
}
_MAIN = {"pure": "epsilon", "approximate": "epsilon", "concentrated": "rho", "gaussian": "mu"}


# Numbers beside a bound: the noise of its events, and the charge of all releases of a plan.


_OF_NOISE = {
    ("discrete Laplace", "L1"): ("discrete_laplace", "laplace", "pure"),
    ("Gaussian, rounded to the grid", "L2"): ("gaussian",),
}
"""The event of a kind of noise. Noise under other names is not checked."""


def opinion_on_noise(certificate: Mapping[str, Any]) -> Opinion | None:
    """Compares the events with the mechanism's stated noise and sensitivity; None if it states none.

    Laplace noise of scale b on numbers that move by s steps in all has epsilon s / b. The curve of continuous
    noise exceeds that of a grid if its epsilon is larger by 2 ln cosh(1 / 2b), at most 1 / 4b^2. Gaussian noise
    of this standard deviation on numbers that move by the root of q steps has the multiplier noise_std /
    sqrt(q).
    """
    noises, records = certificate["mechanism"].get("noise", []), certificate["event"]
    if not noises or not all("sensitivity" in one for one in noises):
        return None
    if len(noises) != len(records):
        return Opinion(stated="events", confirmed=False, why="there are more or fewer of them than noises")
    for noise, record in zip(noises, records, strict=True):
        moved, event = noise["sensitivity"], record["event"]
        known = _OF_NOISE.get((str(noise.get("distribution")), moved["norm"]))
        if known is None:
            return None
        if event["kind"] not in known:
            why = f"its noise is {noise['distribution']}"
            return Opinion(stated=f"event of kind {event['kind']}", confirmed=False, why=why)
        steps = moved["steps" if moved["norm"] == "L1" else "steps_squared"]
        wide = Fraction(noise["noise_scale" if moved["norm"] == "L1" else "noise_std"])
        if wide <= 0 or isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            holds = False
        elif moved["norm"] == "L1":
            more = wide**-2 / 4 if event["kind"] == "laplace" else 0
            holds = steps / wide + more <= Fraction(event["epsilon"]) * (1 + ROUNDING_SLACK)
            holds = holds and event.get("sensitivity", steps) == steps
        else:
            holds = wide**2 / steps * (1 + ROUNDING_SLACK) >= Fraction(event["noise_multiplier"]) ** 2
        if not holds:
            return Opinion(
                stated=f"event of kind {event['kind']}", confirmed=False, why="its noise gives less"
            )
    return Opinion(stated="events", confirmed=True)


def opinion_on_charge(certificates: Sequence[Mapping[str, Any]]) -> Opinion:
    """Compares the charge of a plan with the events of all of its releases."""
    plan = certificates[0]["plan"]
    events = [record for one in certificates for record in one["event"]]
    opinion = opinion_on(plan["charge"], events, certificates[0]["neighbours"])
    if opinion.confirmed and plan["charge"]["condition"]["kind"] == "random-data":
        # The same condition on each; what may fail for one release or for another adds up.
        given = [checked_given(one["event"], plan["charge"]["condition"]) for one in certificates]
        if sum(given) > Fraction(plan["charge"]["condition"]["gamma"]) * (1 + ROUNDING_SLACK):
            return replace(
                opinion, confirmed=False, why="its gamma is less than those of its releases together"
            )
    if opinion.confirmed and plan["charge"]["condition"]["kind"] == "bounded-adversary":
        each = [Fraction(one["guarantee"]["condition"].get("advantage", 0)) for one in certificates]
        if sum(each) > Fraction(plan["charge"]["condition"]["advantage"]) * (1 + ROUNDING_SLACK):
            return replace(
                opinion, confirmed=False, why="its advantage is less than those of its releases together"
            )
        if plan["charge"]["condition"]["definition"] == "ind" and sum(map(bool, each)) > 1:
            return replace(opinion, confirmed=None, why="advantages of several releases are not weighed here")
    missing = _missing(plan.get("releases", ()), {str(one.get("name")) for one in certificates})
    if missing:
        return replace(opinion, confirmed=None, why=f"{missing} of its certificates are not there")
    same = ("neighbours", "plan")
    if any(one[name] != certificates[0][name] for one in certificates for name in same):
        return replace(opinion, confirmed=False, why="its certificates state different plans")
    for one in certificates:
        own, whole = one["guarantee"], plan["charge"]
        if own.get("unit") != whole.get("unit"):
            return replace(opinion, confirmed=False, why="it is for another unit than its certificates")
        if not _includes(whole["condition"], own["condition"]):
            return replace(opinion, confirmed=False, why="it drops the condition of a certificate")
    return opinion


def _missing(said: Any, names: set[str]) -> int:
    """The number of releases that a certificate names and this folder lacks."""
    if not isinstance(said, Mapping):
        return len(set(said) - names)
    # A long plan: their number, and the digest of the sorted list.
    digest = hashlib.sha256(json.dumps(sorted(names), separators=(",", ":")).encode()).hexdigest()
    number = said.get("number")
    there = isinstance(number, int) and number == len(names) and said.get("sha256") == digest
    return 0 if there else max(1, number - len(names)) if isinstance(number, int) else 1


def _includes(whole: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Whether the assumptions of a release are among those of its plan."""
    if own["kind"] == "always":
        return True
    if own["kind"] == "priors" or whole["kind"] != own["kind"]:
        return bool(whole["kind"] == own["kind"])
    same = ("assumption", "definition")
    least = "gamma" if own["kind"] == "random-data" else "advantage"
    enough = Fraction(own[least]) <= Fraction(whole[least]) * (1 + ROUNDING_SLACK)
    return enough and all(own.get(name) == whole.get(name) for name in same)
