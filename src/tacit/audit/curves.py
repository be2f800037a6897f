"""The loss of one event: its curve h(x) = sup_S P(S) - e^x Q(S) at every real x, from the formula of its noise.

P is the distribution of the outcome with the unit, Q the one without it (add-or-remove), or P and Q belong to the two
values of a replaced unit. Their other order is the swap: sup_S Q(S) - t P(S) = 1 - t + t sup_S (P(S) - Q(S)/t).
Formulas are evaluated in balls. `None` instead of a curve means no privacy loss.

Sources: Gaussian noise Balle and Wang 2018, Thm 8; (epsilon, delta) Kairouz, Oh and Viswanath 2015, Thm 3.3;
exponential mechanism Dong, Durfee and Rogers 2020, Lemma 3.4; rho Canonne, Kamath and Steinke 2020, Cor. 13; sampling
Balle, Barthe and Gaboardi 2018, Thm 2 (both kinds) and Zhu, Dong and Wang 2022, Prop. 30 (orders kept apart).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from flint import arb

# What all of these files speak of: curves, exact numbers, and what is not known here.

Curve: TypeAlias = "Callable[[arb], arb]"
"""x -> sup_S P(S) - e^x Q(S)."""


class Unconfirmed(Exception):
    """This program has no formula for the stated bound."""


def exact(value: int | float | str | Fraction) -> arb:
    """A ball around a number that is given exactly."""
    from flint import arb, fmpq

    given = Fraction(value)
    return arb(fmpq(given.numerator, given.denominator))


# What may stand in an event: its fields and their ranges, told beside the formula of its curve.

WHOLE = Fraction(1, 10**9)
"""The allowed distance of stated probabilities from a sum of 1."""
Range: TypeAlias = Callable[[Any], bool]
FIELDS: dict[str, dict[str, Range]] = {}
"""The fields of every kind of event, each with its range."""
PURE: set[str] = set()
"""Kinds that are pure, with the epsilon that they state."""
POINTS: dict[str, Callable[[Mapping[str, Any]], arb]] = {}
"""Kinds that are (epsilon, delta) with the epsilon that they state, and their delta."""
_SYMMETRIC: dict[str, Callable[[Mapping[str, Any]], Curve]] = {}


def formula(
    kind: str,
    *,
    pure: bool = False,
    delta: Callable[[Mapping[str, Any]], arb] | None = None,
    fields: Mapping[str, Range],
) -> Callable[[Callable[[Mapping[str, Any]], Curve]], Callable[[Mapping[str, Any]], Curve]]:
    """Below it is the curve of this kind of event, the same in both orders of neighbours."""
    FIELDS[kind] = dict(fields)
    if pure:
        PURE.add(kind)
    if delta is not None:
        POINTS[kind] = delta

    def kept(curve: Callable[[Mapping[str, Any]], Curve]) -> Callable[[Mapping[str, Any]], Curve]:
        _SYMMETRIC[kind] = curve
        return curve

    return kept


def number(value: Any) -> bool:
    """A finite number, and no flag."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def positive(value: Any) -> bool:
    """Above 0."""
    return number(value) and value > 0


def at_least_zero(value: Any) -> bool:
    """0 or above."""
    return number(value) and value >= 0


def share(value: Any) -> bool:
    """Within [0, 1]."""
    return number(value) and 0 <= value <= 1


def below_one(value: Any) -> bool:
    """Within [0, 1)."""
    return number(value) and 0 <= value < 1


def count(least: int) -> Range:
    """A whole number, the least one or above."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def some_text(value: Any) -> bool:
    """Text that is not empty."""
    return isinstance(value, str) and bool(value)


def shares(value: Any) -> bool:
    """A list of shares."""
    return isinstance(value, list | tuple) and bool(value) and all(map(share, value))


def distribution(value: Any) -> bool:
    """Shares whose sum is 1."""
    return shares(value) and abs(sum(map(Fraction, value), Fraction(0)) - 1) <= WHOLE


# Noise on integers whose probabilities are summed value by value: discrete Gaussian and Skellam noise.

WIDEST = 200_000
"""Integer noise is summed value by value: up to this many values on a side."""


def _integer_noise(weights: list[arb], beyond: arb, s: int) -> Curve:
    """Symmetric integer noise, given by weights at 0, 1, ..., with a monotone likelihood ratio; moved by s.

    `beyond` bounds the mass of one tail after the last weight.
    """
    n = len(weights)
    tails = [beyond] * (n + 1)
    for k in range(n - 1, -1, -1):
        tails[k] = tails[k + 1] + weights[k]
    whole = 2 * tails[0] - weights[0]

    def weight(k: int) -> arb:
        return weights[abs(k)]

    def above(k: int) -> arb:
        """Pr[noise >= k]."""
        return (tails[k] if k >= 0 else whole - tails[1 - k]) / whole

    def h(x: arb) -> arb:
        t, low, high = x.exp(), s - n + 1, n - 1  # the first k with Pr[k - s] > t Pr[k]
        while low < high:
            middle = (low + high) // 2
            if weight(middle - s) > t * weight(middle):
                high = middle
            else:
                low = middle + 1
        return above(low - s) - t * above(low) + 2 * (1 + t) * beyond / whole

    return h


@formula("discrete_gaussian", fields={"noise_multiplier": positive, "sensitivity": count(1)})
def discrete_gaussian(given: Mapping[str, Any]) -> Curve:
    """Weights e^{-k^2 / (2 noise_std^2)}."""
    s = int(given["sensitivity"])
    std = Fraction(given["noise_multiplier"]) * s
    last = math.ceil(float(std) * 20) + 2 * s + 10
    if last > WIDEST:
        raise Unconfirmed("discrete Gaussian noise is too wide to be summed value by value")
    scale = -1 / (2 * exact(std) ** 2)
    weights = [(scale * k * k).exp() for k in range(last)]
    # The ratio of neighbouring weights only falls: a geometric series from the last one on.
    ratio = weights[-1] / weights[-2]
    return _integer_noise(weights, weights[-1] * ratio / (1 - ratio), s)


@formula("skellam", fields={"noise_variance": positive, "sensitivity": count(1)})
def skellam(given: Mapping[str, Any]) -> Curve:
    """Weights I_k(variance), the difference of two Poisson counts."""
    s, variance = int(given["sensitivity"]), Fraction(given["noise_variance"])
    last = math.ceil(20 * math.sqrt(float(variance))) + 2 * s + 60
    if last > WIDEST:
        raise Unconfirmed("Skellam noise is too wide to be summed value by value")
    v = exact(variance)
    weights = [exact(0)] * last
    weights[-1], weights[-2] = v.bessel_i(last - 1), v.bessel_i(last - 2)
    for k in range(last - 2, 0, -1):  # I_{k-1} = I_{k+1} + (2k/v) I_k: a sum of positive terms
        weights[k - 1] = weights[k + 1] + 2 * k / v * weights[k]
    ratio = weights[-1] / weights[-2]
    return _integer_noise(weights, weights[-1] * ratio / (1 - ratio), s)


# Shuffled local answers: the curve of one person among few others, every number of companions summed by itself.
#
# Sources: Feldman, McMillan and Talwar 2021 for any local mechanism with a pure epsilon; Balle, Bell, Gascon and
# Nissim 2019 for balanced ones. With E = e^epsilon: c of the answers seen are for the own value or for the other one,
# j of them for the own, of which one is the person's; given c the chance of j is that of a fair coin times (a + j)/(a
# + c/2) under one value, and with c - j for j under the other.

MOST_PEOPLE, MOST_PEOPLE_OF_MANY = 400, 50
"""With one number of companions to sum over, and with two (answers for neither value, or for both)."""
_RARE = 1e-40


def shuffled_curve(
    epsilon: Fraction, people: int, design: tuple[int, int, int] | None
) -> Callable[[arb], arb]:
    """h(x) = sup_S P(S) - e^x Q(S); `design` has outcomes, those for one value, and those for two, or is None."""
    from flint import arb, fmpq

    grown = arb(fmpq(epsilon.numerator, epsilon.denominator)).exp()
    tails = [_tails(c) for c in range(people + 1)]
    cells: list[tuple[arb, int, arb]] = []  # weight, c, a
    if design is None or one_sum(design):
        chance = 1 / grown if design is None else 2 / (grown + 1)
        for c, weight in enumerate(_binomial(people - 1, chance), start=1):
            cells.append((weight, c, c / (grown - 1)))
    else:
        outcomes, supporting, shared = design
        telling = 2 * (supporting - shared)
        unit = outcomes / (supporting * grown + outcomes - supporting)
        for m, outer in enumerate(_binomial(people - 1, unit), start=1):
            for c, inner in enumerate(_binomial(m, arb(telling) / outcomes)):
                both = arb((m - c) * shared) / (outcomes - telling)  # for both values, in the mean
                tilt = unit * (1 + (grown - 1) * (arb(c) / 2 + both) / m)
                cells.append((outer * inner * tilt, c, m / (grown - 1)))

    # What is too rare to matter is counted whole: no curve is above 1.
    rare = sum((w for w, _, _ in cells if float(w.upper()) < _RARE), arb(0))
    kept = [(w / (a + arb(c) / 2), c, a, a + c) for w, c, a in cells if not float(w.upper()) < _RARE]

    def above(x: arb) -> arb:
        t, total = x.exp(), rare
        for weight, c, a, whole in kept:
            # a + j > t (a + c - j) from the first j on; next to a whole number both sides are tried, the best counts.
            place = float(((t * whole - a) / (1 + t)).mid())
            first = math.floor(place) + 1
            sides = (-1, 0) if place - first + 1 < 1e-6 else (1, 0) if first - place < 1e-6 else (0,)
            found = [
                (a - t * whole) * tails[c][j]
                + (1 + t) * (arb(c) / 2 * tails[c - 1][max(j - 1, 0)] if c else 0)
                for j in (min(max(first + d, 0), c + 1) for d in sides)
            ]
            total += weight * max(found, key=lambda b: float(b.upper()))
        return total

    return lambda x: above(x) if x >= 0 else 1 - x.exp() + x.exp() * above(-x)


def one_sum(design: tuple[int, int, int]) -> bool:
    """Whether every outcome is for one of two values."""
    return design[0] == 2 * (design[1] - design[2])


def _tails(c: int) -> list[arb]:
    """Pr[at least j of c fair coins] for j = 0..c+1."""
    from flint import arb

    out = [0] * (c + 2)
    for j in range(c, -1, -1):
        out[j] = out[j + 1] + math.comb(c, j)
    return [arb(n) / (1 << c) for n in out]


def _binomial(trials: int, chance: arb) -> list[arb]:
    return [math.comb(trials, i) * chance**i * (1 - chance) ** (trials - i) for i in range(trials + 1)]


def local_epsilon(event: Mapping[str, Any]) -> Fraction | None:
    """The epsilon of one local answer, if its kind declares it pure."""
    return Fraction(event["epsilon"]) if event["kind"] in PURE else None


def swapped(h: Curve) -> Curve:
    """The curve of the same pair in the other order."""
    return lambda x: 1 - x.exp() + x.exp() * h(-x)


def both_orders(
    event: Mapping[str, Any], neighbours: str, step: arb | None = None
) -> tuple[Curve, Curve] | None:
    """The curves of (with, without) and (without, with); for replaced units both are the larger one.

    A composition inside of another event is put on a grid of its own, of this step or a multiple of it.
    """
    kind, given = event["kind"], dict(event)
    if kind in _INSIDE:
        return _INSIDE[kind](given, neighbours, step)
    if kind == "shuffled":
        return _shuffled(given, neighbours)
    if kind == "tabulated":
        return _tabulated(given, neighbours)
    if kind == "randomized_response" and neighbours != "replace-one" and given["categories"] > 2:
        kind = "pure"
    if kind == "balanced_response" and neighbours != "replace-one":
        kind = "pure"
    if kind == "approximate" and given["epsilon"] == 0 and given["delta"] == 0:
        return None
    if kind not in _SYMMETRIC:
        raise Unconfirmed(f"no formula for an event of kind {kind!r}")
    h = _SYMMETRIC[kind](given)
    return h, h


def _one_less(x: arb) -> arb:
    return 1 - x.exp()


def _within(epsilon: arb, inside: Curve) -> Curve:
    """A curve whose losses lie within [-epsilon, epsilon]: 0 above, 1 - e^x below."""
    from flint import arb

    def h(x: arb) -> arb:
        if x >= epsilon:
            return arb(0)
        if x <= -epsilon:
            return _one_less(x)
        return inside(x)

    return h


@formula("gaussian", fields={"noise_multiplier": positive})
def _gaussian(given: Mapping[str, Any]) -> Curve:
    """Phi(mu/2 - x/mu) - e^x Phi(-mu/2 - x/mu)."""
    from flint import arb

    mu = 1 / exact(given["noise_multiplier"])

    def tail(z: arb) -> arb:
        """Pr[N > z]."""
        return (z / arb(2).sqrt()).erfc() / 2

    return lambda x: tail(x / mu - mu / 2) - x.exp() * tail(x / mu + mu / 2)


def _objective_loss(value: Any) -> bool:
    return isinstance(value, str) and value in ("logistic", "bounded", "log-cosh")


@formula(
    "objective_perturbation",
    fields={"noise_multiplier": positive, "curvature": positive, "rows": count(1), "loss": _objective_loss},
)
def _objective(given: Mapping[str, Any]) -> Curve:
    """The minimiser of a perturbed convex objective: Gaussian outside of [-start, start], randomised response inside.

    One row with logistic loss is as Gaussian noise above curvature - mu^2/2, and k rows one after another, by U(q) =
    Phi(Phi^-1(q) + mu) k times, from the slope of U^k on where the last step reaches that point. Losses with slopes of
    any sign: 2^k corners of slopes, each as Gaussian noise of k mu, and determinants of at most (1 + curvature)^k.
    Log-cosh losses: U(q) = 2 Phi(Phi^-1(q/2) + mu) above both curvature and 2 curvature - mu^2/2, k times.
    """
    mu, c, k = 1 / exact(given["noise_multiplier"]), exact(given["curvature"]), int(given["rows"])
    wide = _gaussian({"noise_multiplier": Fraction(given["noise_multiplier"]) / k})
    if given["loss"] != "bounded":
        signs = given["loss"] == "log-cosh"
        corners, moved = 1 + signs, exact(0)
        first = c.max(2 * c - mu * mu / 2) if signs else c - mu * mu / 2
        # The quantile at which the last of the k steps is no longer Gaussian, and the slope of all k there.
        place = -(first.max(exact(0)) / mu + mu / 2 + (k - 1) * mu)
        start = -k * mu * place - (k * mu) ** 2 / 2
        # Two added curves and the chord are convex where each has fallen below a quarter.
        start = start.max((k * mu) ** 2 / 2 + k * mu) if signs else start
    else:
        corners, moved = 1 << k, k * (1 + c).log()
        start = moved + (k * mu) ** 2 / 2 + k * mu * (2 * (k + 1) * exact(2).log()).sqrt()
    top = corners * wide(start - moved)

    def far(x: arb) -> arb:
        return corners * wide(x - moved)

    def near(x: arb) -> arb:
        """Randomised response that fails with `top`."""
        return top + (1 - top) * (start.exp() - x.exp()) / (1 + start.exp())

    def h(x: arb) -> arb:
        if x < 0:
            return 1 - x.exp() + x.exp() * h(-x)
        if x >= start:
            return far(x)
        return near(x) if x <= start else far(x).max(near(x))

    return h


@formula("laplace", pure=True, fields={"epsilon": positive})
def _laplace(given: Mapping[str, Any]) -> Curve:
    """1 - e^{(x - epsilon)/2} within [-epsilon, epsilon]."""
    epsilon = exact(given["epsilon"])
    return _within(epsilon, lambda x: 1 - ((x - epsilon) / 2).exp())


@formula("permute_and_flip", pure=True, fields={"epsilon": positive})
@formula("pure", pure=True, fields={"epsilon": positive})
def _pure(given: Mapping[str, Any]) -> Curve:
    """Randomised response: (e^epsilon - e^x) / (1 + e^epsilon)."""
    epsilon = exact(given["epsilon"])
    return _within(epsilon, lambda x: (epsilon.exp() - x.exp()) / (1 + epsilon.exp()))


@formula(
    "approximate",
    delta=lambda given: exact(given["delta"]),
    fields={"epsilon": at_least_zero, "delta": below_one},
)
def _approximate(given: Mapping[str, Any]) -> Curve:
    """delta + (1 - delta) times randomised response. Below -epsilon, outputs that Q never gives add 1 - (1 -
    delta) e^x.
    """
    epsilon, delta = exact(given["epsilon"]), exact(given["delta"])

    def h(x: arb) -> arb:
        if x <= -epsilon:
            return 1 - (1 - delta) * x.exp()
        if x >= epsilon:
            return delta
        return delta + (1 - delta) * (epsilon.exp() - x.exp()) / (1 + epsilon.exp())

    return h


@formula("randomized_response", pure=True, fields={"epsilon": positive, "categories": count(2)})
def _randomised_response(given: Mapping[str, Any]) -> Curve:
    """Outcomes (p, q), (q, p) and categories - 2 times (q, q), with p = e^epsilon q."""
    epsilon, others = exact(given["epsilon"]), int(given["categories"]) - 2
    q = 1 / (epsilon.exp() + 1 + others)

    def inside(x: arb) -> arb:
        own = q * (epsilon.exp() - x.exp())
        return own if x >= 0 else own + others * q * _one_less(x)

    return _within(epsilon, inside)


@formula(
    "balanced_response",
    pure=True,
    fields={"epsilon": positive, "outcomes": count(2), "supporting": count(1), "shared": count(0)},
)
def _balanced_response(given: Mapping[str, Any]) -> Curve:
    """Of K outcomes s have weight e^epsilon and the others 1; s - m of them change their weight, each way."""
    epsilon = exact(given["epsilon"])
    outcomes, supporting, shared = (int(given[name]) for name in ("outcomes", "supporting", "shared"))
    whole = supporting * epsilon.exp() + (outcomes - supporting)
    even = (shared * epsilon.exp() + (outcomes - 2 * supporting + shared)) / whole

    def inside(x: arb) -> arb:
        own = (supporting - shared) * (epsilon.exp() - x.exp()) / whole
        return own if x >= 0 else own + even * _one_less(x)

    return _within(epsilon, inside)


@formula("staircase", pure=True, fields={"epsilon": positive, "gamma": share})
def _staircase(given: Mapping[str, Any]) -> Curve:
    """Density a e^{-k epsilon} on [k, k + gamma) and a e^{-(k+1) epsilon} on [k + gamma, k + 1), k = 0, 1, ..., both
    sides, against itself moved by 1: the loss is epsilon on the near half line, -epsilon on the far one; between them
    f(z) / f(1 - z) is e^{epsilon} or e^{-epsilon} on parts of length min(gamma, 1 - gamma), and else 1."""
    epsilon, gamma = exact(given["epsilon"]), exact(given["gamma"])
    r = (-epsilon).exp()
    a = (1 - r) / (2 * (gamma + r * (1 - gamma)))
    short = gamma if Fraction(given["gamma"]) <= Fraction(1, 2) else 1 - gamma
    sure = exact(Fraction(1, 2)) + a * short
    level = a if Fraction(given["gamma"]) > Fraction(1, 2) else a * r
    even = level * (1 - 2 * short)

    def inside(x: arb) -> arb:
        own = sure * (1 - (x - epsilon).exp())
        return own if x >= 0 else own + even * _one_less(x)

    return _within(epsilon, inside)


@formula("exponential", pure=True, fields={"epsilon": positive})
def _exponential(given: Mapping[str, Any]) -> Curve:
    """(1 - e^{(x - epsilon)/2})^2 / (1 - e^{-epsilon}): the worst pair whose losses range over epsilon."""
    epsilon = exact(given["epsilon"])

    def inside(x: arb) -> arb:
        root = 1 - ((x - epsilon) / 2).exp()  # around 0 at the end, where a power of a ball is no number
        return root * root / (1 - (-epsilon).exp())

    return _within(epsilon, inside)


@formula("concentrated", fields={"rho": positive})
def _concentrated(given: Mapping[str, Any]) -> Curve:
    """The least over orders a of e^{(a-1)(a rho - x)} (1 - 1/a)^a / (a - 1); every order is a bound."""
    rho = exact(given["rho"])
    wide = float(Fraction(given["rho"]))

    def at(x: arb, a: arb) -> arb:
        return ((a - 1) * (a * rho - x)).exp() * (1 - 1 / a) ** a / (a - 1)

    def best(x: float) -> float:
        """The a - 1 that minimises the logarithm, (a - 1)(a rho - x) + (a - 1) ln(a - 1) - a ln a: convex in a."""
        low, high = 1e-9, 1e9
        above = min(max(0.01, (x / wide - 1) / 2), high)
        for _ in range(60):
            slope = (1 + 2 * above) * wide - x + math.log(above / (1 + above))
            low, high = (low, above) if slope > 0 else (above, high)
            after = above - slope / (2 * wide + 1 / (above * (1 + above)))
            after = after if low < after < high else math.sqrt(low * high)
            if abs(after - above) <= 1e-6 * above:
                break
            above = after
        return above

    def h(x: arb) -> arb:
        # Any order will do, so that the best is sought in floats.
        return min(exact(1), at(x, exact(1 + best(float(x.mid())))), key=lambda b: float(b.upper()))

    return h


@formula("discrete_laplace", pure=True, fields={"epsilon": positive, "sensitivity": count(1)})
def _discrete_laplace(given: Mapping[str, Any]) -> Curve:
    """Pr ~ r^|k|, r = e^{-epsilon/s}, moved by s: the best S is {k >= k0}, k0 just above (x s/epsilon + s) / 2."""
    s, epsilon = int(given["sensitivity"]), exact(given["epsilon"])
    r = (-epsilon / s).exp()

    def inside(x: arb) -> arb:
        near = math.floor((float(x.mid()) * s / float(given["epsilon"]) + s) / 2) + 1
        found = []
        for k in {min(max(near + d, 1), s) for d in (-1, 0, 1)}:
            found.append(1 - r ** (s - k + 1) / (1 + r) - x.exp() * r**k / (1 + r))
        return max(found, key=lambda b: float(b.mid()))

    return _within(epsilon, inside)


def _outside(given: Mapping[str, Any]) -> arb:
    """The chance of an output beyond the noise of the other neighbour: the sum of q^(A-i)/Z over i < s."""
    s, a = int(given["sensitivity"]), int(given["largest_noise"])
    q = (-exact(given["epsilon"]) / s).exp()
    return (q ** (a - s + 1) - q ** (a + 1)) / (1 + q - 2 * q ** (a + 1))


@formula(
    "truncated_discrete_laplace",
    delta=_outside,
    fields={"epsilon": positive, "largest_noise": count(1), "sensitivity": count(1)},
)
def _truncated_discrete_laplace(given: Mapping[str, Any]) -> Curve:
    """Weights q^|k| on -A..A, moved by s: the best S is {k <= m}; one side alone has the first s outputs."""
    s, a, epsilon = int(given["sensitivity"]), int(given["largest_noise"]), exact(given["epsilon"])
    if s > a:
        raise Unconfirmed("bounded noise that is moved beyond itself")
    q = (-epsilon / s).exp()
    whole = 1 + q - 2 * q ** (a + 1)

    def below(m: int) -> arb:
        """Pr[noise <= m]."""
        if m < -a:
            return exact(0)
        if m < 0:
            return (q ** (-m) - q ** (a + 1)) / whole
        return 1 - (q ** (m + 1) - q ** (a + 1)) / whole if m < a else exact(1)

    def h(x: arb) -> arb:
        t = x.exp()
        near = math.floor((s - float(x.mid()) * s / float(given["epsilon"])) / 2)
        tried = {s - a - 1, a, *(min(max(near + d, s - a - 1), a) for d in (-2, -1, 0, 1))}
        return max((below(m) - t * below(m - s) for m in tried), key=lambda b: float(b.mid()))

    return h


def _together(given: Mapping[str, Any], neighbours: str, step: arb | None) -> tuple[Curve, Curve] | None:
    from tacit.audit.composition import together

    if step is None:
        raise Unconfirmed("no formula for a composition without a grid")
    return together(given, neighbours, step)


def _vector(given: Mapping[str, Any], neighbours: str, step: arb | None) -> tuple[Curve, Curve] | None:
    """The largest over the moves whose squares add up to at most q, with separate noise for each coordinate.

    A coordinate that moves further has the larger curve. So a move does not count if another one is at least as large
    in every coordinate. A vector with too many or too large moves gets the curve of its rho, which is larger.
    """
    square, std = int(given["squared_sensitivity"]), Fraction(given["noise_std"])
    moves = _moves(square, min(int(given["coordinates"]), square))
    if moves is None or step is None:
        by_rho = _concentrated({"rho": str(Fraction(square) / (2 * std**2))})
        return by_rho, by_rho
    found: list[Curve] = []
    for move in moves:
        each = [
            {"kind": "discrete_gaussian", "noise_multiplier": str(std / s), "sensitivity": s} for s in move
        ]
        together = both_orders(
            {"kind": "composed", "events": each} if len(each) > 1 else each[0], neighbours, step
        )
        assert together is not None
        found.append(together[0])

    def h(x: arb) -> arb:
        return max((one(x) for one in found), key=lambda b: float(b.upper()))

    return h, h


MOST_MOVES, LARGEST_SQUARE = 12, 64


def _moves(square: int, coordinates: int) -> list[tuple[int, ...]] | None:
    """All ways to write a sum of at most `coordinates` squares below q to which no square can be added; None if
    there are too many.
    """
    if coordinates == 1:
        return [(math.isqrt(square),)]
    if square > LARGEST_SQUARE:
        return None
    found: list[tuple[int, ...]] = []
    open_: list[tuple[int, ...]] = [()]
    while open_:
        move = open_.pop()
        rest = square - sum(s * s for s in move)
        most = min(move[-1] if move else square, math.isqrt(rest))
        if len(move) < coordinates:
            open_ += [(*move, s) for s in range(1, most + 1)]
        grown = [
            (*move[:i], move[i] + 1, *move[i + 1 :]) for i in range(len(move)) if 2 * move[i] + 1 <= rest
        ]
        if not grown and (rest == 0 or len(move) == coordinates):
            found.append(move)
    return found if len(found) <= MOST_MOVES else None


def _tabulated(given: Mapping[str, Any], neighbours: str) -> tuple[Curve, Curve]:
    pairs = [(exact(a), exact(b)) for a, b in zip(given["p"], given["q"], strict=True)]
    p, q = (sum((pair[i] for pair in pairs), exact(0)) for i in (0, 1))

    def h(x: arb) -> arb:
        terms = (a / p - x.exp() * b / q for a, b in pairs)
        return sum((c for c in terms if not c <= 0), exact(0))

    back = swapped(h)
    if neighbours != "replace-one":
        return h, back

    def larger(x: arb) -> arb:
        return max(h(x), back(x), key=lambda b: float(b.upper()))

    return larger, larger


def _poisson(given: Mapping[str, Any], neighbours: str, step: arb | None) -> tuple[Curve, Curve] | None:
    """q P + (1 - q) Q against Q: q h(ln((t - 1 + q) / q)), and 1 - t where t <= 1 - q."""
    if neighbours == "replace-one":
        raise Unconfirmed("no formula for Poisson sampling of replaced units")
    q = exact(given["sampling_rate"])
    inner = both_orders(given["event"], neighbours, step)
    if inner is None or given["sampling_rate"] == 0:
        return None

    def sampled(h: Curve) -> Curve:
        def curve(x: arb) -> arb:
            left = x.exp() - 1 + q
            return q * h((left / q).log()) if left > 0 else _one_less(x)

        return curve

    return sampled(inner[0]), swapped(sampled(swapped(inner[1])))


def _mixed(given: Mapping[str, Any], neighbours: str, step: arb | None) -> tuple[Curve, Curve] | None:
    """A coin chooses a member, and the curve is the mean of the members' curves; missing weight reveals nothing."""
    weights = [exact(w) for w in given["weights"]]
    whole = max(sum((Fraction(w) for w in given["weights"]), Fraction(0)), Fraction(1))
    members = [both_orders(event, neighbours, step) for event in given["events"]]
    known = [(w / exact(whole), m) for w, m in zip(weights, members, strict=True) if m is not None]
    if not known:
        return None
    rest = 1 - sum((w for w, _ in known), exact(0))

    def mean(side: int) -> Curve:
        def h(x: arb) -> arb:
            nothing = _one_less(x) if x < 0 else exact(0)
            return sum((w * m[side](x) for w, m in known), rest * nothing)

        return h

    return mean(0), mean(1)


def _shuffled(given: Mapping[str, Any], neighbours: str) -> tuple[Curve, Curve]:
    """One local answer among this many; each number of companions is treated separately."""
    inner, people = given["event"], int(given["people"])
    epsilon = local_epsilon(inner)
    if neighbours != "replace-one" or epsilon is None:
        raise Unconfirmed("no formula for shuffled answers of this kind")
    design = None
    if inner["kind"] == "randomized_response":
        design = int(inner["categories"]), 1, 0
    elif inner["kind"] == "balanced_response":
        design = int(inner["outcomes"]), int(inner["supporting"]), int(inner["shared"])
    if people > (MOST_PEOPLE if design is None or one_sum(design) else MOST_PEOPLE_OF_MANY):
        raise Unconfirmed("more people are shuffled than this program sums over one by one")
    h = shuffled_curve(epsilon, people, design)
    within = _within(exact(epsilon), h)
    return within, within


def _without_replacement(
    given: Mapping[str, Any], neighbours: str, step: arb | None
) -> tuple[Curve, Curve] | None:
    """q h(ln(1 + (t - 1) / q)) for t >= 1, and its swap below."""
    if neighbours != "replace-one":
        raise Unconfirmed("no formula for sampling without replacement of added or removed units")
    q = exact(given["sampling_rate"])
    inner = both_orders(given["event"], neighbours, step)
    if inner is None or given["sampling_rate"] == 0:
        return None
    h = inner[0]

    def above(x: arb) -> arb:
        return q * h((1 + (x.exp() - 1) / q).log())

    back = swapped(above)
    both: Curve = lambda x: above(x) if x >= 0 else back(x)  # noqa: E731
    return both, both


_INSIDE: dict[str, Callable[[Mapping[str, Any], str, arb | None], tuple[Curve, Curve] | None]] = {
    "composed": _together,
    "discrete_gaussian_vector": _vector,
    "mixed": _mixed,
    "poisson_sampled": _poisson,
    "repeated": _together,
    "without_replacement": _without_replacement,
}
FIELDS |= {
    "discrete_gaussian_vector": {
        "noise_std": positive,
        "squared_sensitivity": count(1),
        "coordinates": count(1),
    },
    "tabulated": {"p": distribution, "q": distribution},
    "poisson_sampled": {"sampling_rate": share},
    "shuffled": {"people": count(1)},
    "without_replacement": {"sampling_rate": share},
    "mixed": {"weights": shares},
    "repeated": {"times": count(1)},
    "composed": {},
}
