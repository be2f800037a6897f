"""Conversions between bounds. The sharper form is the default; the printed one has `-printed` in its name.

Pure ──> Pointwise ──> Approximate ──┐
 │ └────────────> GaussianDP         ├──> Profile        every bound has a curve, hence a profile;
 └──> Concentrated <──┘              │                  and a profile its divergences, where finite
           └──> Renyi ───────────────┘ A curve that is 0 from a finite epsilon on is pure, whatever its kind:
           (epsilon, 0), Laplace noise (`hidden_pure`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.checks import (
    a_kind,
    instance,
    listed,
    non_negative,
    order_above_one,
    positive,
    probability,
    refuse_if,
    whole,
)
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, upper
from tacit.guarantees.bounds import (
    COMMON_ORDERS,
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Pointwise,
    Profile,
    Pure,
    Renyi,
)
from tacit.guarantees.bounds.base import no_renyi, normal_cdf, solve_epsilon
from tacit.guarantees.laws.registry import LAWS, Law, find, largest, law
from tacit.guarantees.laws.registry import law as registered

if TYPE_CHECKING:
    from flint import arb

# The pure epsilon that hides in a bound of another kind: its curve is 0 from some finite epsilon on.
#
# P(S) - e^epsilon P'(S) <= 0 for every event S and both orders of neighbours is the definition of pure epsilon,
# whatever the bound that shows it: (epsilon, 0), a Rényi bound at order infinity, the curve of Laplace noise. What
# follows from a pure epsilon follows from each of them.

PURE, CONCENTRATED, GAUSSIAN = "curve-to-pure", "curve-to-zcdp", "curve-to-gdp"


def _hidden(bound: Bound, target: str) -> Pure:
    level = bound._epsilon(0.0)
    if math.isinf(level):
        raise NoLaw(
            operation=f"{type(bound).__name__} to {target}",
            reason="its delta is above 0 at every epsilon, so that it gives no pure epsilon"
            + ("" if target == "Pure" else f", and no other theorem leads to {target}"),
            hint="a delta of 0, or a curve that reaches 0, gives one",
        )
    return Pure(epsilon=level)


@law(PURE, operation="convert", rests_on="pure-to-approximate")
def curve_to_pure(bound: Bound) -> Pure:
    """The least epsilon at which the curve is 0."""
    return _hidden(bound, "Pure")


@law(CONCENTRATED, operation="convert", rests_on="pure-to-zcdp")
def curve_to_concentrated(bound: Bound) -> Concentrated:
    """mu^2/2 for the curve of Gaussian noise, else by the pure epsilon of the curve."""
    mu = bound.gaussian_mu() if isinstance(bound, Profile) else None
    if mu is not None:
        return Concentrated(rho=upper(lambda: ball(mu) ** 2 / 2))
    made: Concentrated = LAWS["pure-to-zcdp"].apply(_hidden(bound, "Concentrated"))
    return made


@law(GAUSSIAN, operation="convert", rests_on="pure-to-gdp")
def curve_to_gaussian(bound: Bound) -> GaussianDP:
    """mu for the curve of Gaussian noise, else by the pure epsilon of the curve."""
    mu = bound.gaussian_mu() if isinstance(bound, Profile) else None
    if mu is not None:
        return GaussianDP(mu=mu)
    made: GaussianDP = LAWS["pure-to-gdp"].apply(_hidden(bound, "GaussianDP"))
    return made


B = TypeVar("B", bound=Bound)


@registered("pure-to-pointwise", operation="convert", rests_on="pure-to-approximate")
def pure_to_pointwise(bound: Pure) -> Pointwise:
    """epsilon is pointwise (epsilon, 0)."""
    return Pointwise(epsilon=float(bound.epsilon), delta=0.0)


@registered("pure-to-approximate", operation="convert")
def pure_to_approximate(bound: Pure) -> Approximate:
    """epsilon is (epsilon, 0)."""
    return Approximate(epsilon=float(bound.epsilon), delta=0.0)


@registered("pointwise-to-approximate", operation="convert")
def pointwise_to_approximate(bound: Pointwise) -> Approximate:
    """Hall 2012, Prop. 1.2.3."""
    return Approximate(epsilon=float(bound.epsilon), delta=float(bound.delta))


@registered("pure-to-zcdp", operation="convert")
def pure_to_concentrated(bound: Pure) -> Concentrated:
    """rho = epsilon tanh(epsilon/2)."""
    e = float(bound.epsilon)
    return Concentrated(rho=upper(lambda: ball(e) * (ball(e) / 2).tanh()))


@registered("pure-to-zcdp-printed", operation="convert", rests_on="pure-to-zcdp")
def pure_to_concentrated_printed(bound: Pure) -> Concentrated:
    """rho = epsilon^2/2 (Bun, Steinke 2016)."""
    e = float(bound.epsilon)
    return Concentrated(rho=upper(lambda: ball(e) ** 2 / 2))


@registered("pure-to-gdp", operation="convert")
def pure_to_gaussian(bound: Pure) -> GaussianDP:
    """The smallest mu with Phi(mu/2) >= e^epsilon/(1 + e^epsilon), found from above and checked in balls."""
    from scipy.special import ndtri_exp

    e = float(bound.epsilon)
    if e == 0:
        return GaussianDP(mu=0.0)

    def short(mu: float) -> bool:
        """Is Phi(-mu/2) possibly above 1/(1 + e^epsilon)?"""
        gap = upper(lambda: normal_cdf(-ball(mu) / 2) * (1 + ball(e).exp()) - 1)
        return gap > 0

    mu = float(-2 * ndtri_exp(-e - math.log1p(math.exp(-e)))) if e > 1e-8 else e * math.sqrt(math.pi / 2)
    step = max(mu, 1e-300) * 4e-16
    while short(mu):
        mu, step = mu + step, step * 2
    return GaussianDP(mu=mu)


@registered("pure-to-renyi", operation="convert")
def pure_to_renyi(bound: Pure, *, orders: Iterable[float] = COMMON_ORDERS) -> Renyi:
    """The divergence of randomised response, exactly."""
    return _tabulate(bound, orders)


@registered("pure-to-renyi-printed", operation="convert", rests_on="pure-to-renyi")
def pure_to_renyi_printed(bound: Pure, *, orders: Iterable[float] = COMMON_ORDERS) -> Renyi:
    """D_a <= epsilon (lecture 7, Thm 7.9)."""
    wanted = tuple(orders)
    return Renyi(orders=wanted, epsilons=(float(bound.epsilon),) * len(wanted))


@registered("gdp-to-zcdp", operation="convert")
def gaussian_to_concentrated(bound: GaussianDP) -> Concentrated:
    """rho = mu^2/2."""
    return Concentrated(rho=upper(lambda: ball(bound.mu) ** 2 / 2))


@registered("zcdp-to-renyi", operation="convert")
def concentrated_to_renyi(bound: Concentrated, *, orders: Iterable[float] = COMMON_ORDERS) -> Renyi:
    """D_a <= a rho."""
    return _tabulate(bound, orders)


@registered("gdp-to-renyi", operation="convert", rests_on="gdp-to-zcdp")
def gaussian_to_renyi(bound: GaussianDP, *, orders: Iterable[float] = COMMON_ORDERS) -> Renyi:
    """D_a = a mu^2/2, exactly."""
    return _tabulate(bound, orders)


@registered("gdp-to-approximate", operation="convert", rests_on="gaussian-profile")
def gaussian_to_approximate(
    bound: GaussianDP, *, delta: float | None = None, epsilon: float | None = None
) -> Approximate:
    """A point of the exact curve."""
    return _point(bound, delta, epsilon)


@registered("zcdp-to-approximate", operation="convert")
def concentrated_to_approximate(
    bound: Concentrated, *, delta: float | None = None, epsilon: float | None = None
) -> Approximate:
    """A point of the best curve that follows from rho."""
    return _point(bound, delta, epsilon)


@registered("zcdp-to-approximate-printed", operation="convert", rests_on="zcdp-to-approximate")
def concentrated_to_approximate_printed(bound: Concentrated, *, delta: float) -> Approximate:
    """epsilon = rho + 2 sqrt(rho ln(1/delta)) (lecture 7, Thm 7.18)."""
    d = open_probability(delta)
    return Approximate(
        epsilon=upper(lambda: ball(bound.rho) + 2 * (-ball(bound.rho) * ball(d).log()).sqrt()), delta=d
    )


@registered("renyi-to-approximate", operation="convert")
def renyi_to_approximate(
    bound: Renyi, *, delta: float | None = None, epsilon: float | None = None
) -> Approximate:
    """The best order's point by Canonne, Kamath, Steinke 2020."""
    return _point(bound, delta, epsilon)


@registered("renyi-to-approximate-printed", operation="convert", rests_on="renyi-to-approximate")
def renyi_to_approximate_printed(bound: Renyi, *, delta: float) -> Approximate:
    """epsilon = epsilon_a + ln(1/delta)/(a-1), at the best order (lecture 7, Thm 7.10)."""
    d = open_probability(delta)
    best = math.inf
    for order, epsilon in zip(bound.orders, bound.epsilons, strict=True):
        if math.isinf(order):
            best = min(best, epsilon)
        elif math.isfinite(epsilon):
            best = min(best, _printed_point(order, epsilon, d))
    return _finite_approximate(best, d, bound)


def _printed_point(order: float, epsilon: float, delta: float) -> float:
    return upper(lambda: ball(epsilon) - ball(delta).log() / (ball(order) - 1))


@registered("profile-to-approximate", operation="convert", rests_on="dominating-pair")
def profile_to_approximate(
    bound: Profile, *, delta: float | None = None, epsilon: float | None = None
) -> Approximate:
    """A point of the certified curve."""
    return _point(bound, delta, epsilon)


@registered("profile-to-renyi", operation="convert", rests_on="dominating-pair")
def profile_to_renyi(bound: Profile, *, orders: Iterable[float] = COMMON_ORDERS) -> Renyi:
    """The divergences of the dominating pairs, at the orders where they are finite."""
    return _tabulate(bound, orders)


@registered("approximate-to-renyi", operation="convert", rests_on="pure-to-renyi")
def approximate_to_renyi(bound: Approximate, *, orders: Iterable[float] = COMMON_ORDERS) -> Renyi:
    """(epsilon, 0) is pure epsilon; with a delta above 0 there is no divergence."""
    return _tabulate(bound, orders)


@registered("profile-to-pointwise", operation="convert")
def curve_to_pointwise(bound: Bound, *, delta: float) -> Pointwise:
    """The smallest loss that the curve shows to be exceeded with probability at most delta.

    A point (e, x delta) of the curve gives e' = e - ln(1 - x). The best of a few x, and then the best e between its
    neighbours: no smaller loss follows from the curve (theorem `profile-to-pointwise`).
    """
    d = open_probability(delta)
    tried: dict[float, float] = {}
    for share in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7):
        at = bound._epsilon(d * share)
        if math.isfinite(at):
            tried[at] = _pointwise_at(bound, at, d)
    if not tried or math.isinf(min(tried.values())):
        raise NoLaw(
            operation=f"{type(bound).__name__} to Pointwise at delta = {d:g}",
            reason="no finite loss holds with this probability",
            hint="name a larger delta",
        )
    places = sorted(tried)
    best = places.index(min(places, key=tried.__getitem__))
    low, high = places[max(best - 1, 0)], places[min(best + 1, len(places) - 1)]
    for _ in range(_GOLDEN_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        for at in (left, right):
            if at not in tried:
                tried[at] = _pointwise_at(bound, at, d)
        low, high = (low, right) if tried[left] <= tried[right] else (left, high)
    return Pointwise(epsilon=min(tried.values()), delta=d)


_GOLDEN, _GOLDEN_STEPS = (math.sqrt(5) - 1) / 2, 24


def _pointwise_at(bound: Bound, at: float, delta: float) -> float:
    """The loss that the point of the curve at this epsilon shows, from above."""
    level = bound._delta(at)
    return math.inf if level >= delta else upper(lambda: ball(at) - (-ball(level) / ball(delta)).log1p())


@registered("gaussian-noise-to-pointwise", operation="convert", rests_on="gaussian-loss-tail")
def gaussian_noise_to_pointwise(bound: GaussianDP, *, delta: float) -> Pointwise:
    """Gaussian noise itself, before anything is computed from it: epsilon = mu^2/2 + mu z, z the upper quantile.

    Not for every mechanism with this mu: merged outputs may exceed it more often (`curve_to_pointwise`).
    """
    d = open_probability(delta)
    mu = float(bound.mu)
    if mu == 0:
        return Pointwise(epsilon=0.0, delta=d)

    def exceeded(epsilon: float) -> float:
        return upper(lambda: normal_cdf(ball(mu) / 2 - ball(epsilon) / ball(mu)))

    return Pointwise(epsilon=solve_epsilon(exceeded, d, start=max(mu, 1e-300)), delta=d)


@registered("to-profile", operation="convert", rests_on="dominating-pair")
def to_profile(bound: Bound) -> Profile:
    """Every bound has a curve, every curve a dominating pair; closed forms stay closed forms."""
    return Profile.of(bound)


_EDGES: dict[tuple[type[Bound], type[Bound]], str] = {
    (Pure, Pointwise): "pure-to-pointwise",
    (Pure, Approximate): "pure-to-approximate",
    (Pure, Concentrated): "pure-to-zcdp",
    (Pure, GaussianDP): "pure-to-gdp",
    (Pure, Renyi): "pure-to-renyi",
    (Pointwise, Approximate): "pointwise-to-approximate",
    (GaussianDP, Concentrated): "gdp-to-zcdp",
    (GaussianDP, Renyi): "gdp-to-renyi",
    (GaussianDP, Approximate): "gdp-to-approximate",
    (Concentrated, Renyi): "zcdp-to-renyi",
    (Concentrated, Approximate): "zcdp-to-approximate",
    (Renyi, Approximate): "renyi-to-approximate",
    (Profile, Approximate): "profile-to-approximate",
    (Profile, Renyi): "profile-to-renyi",
    (Approximate, Renyi): "approximate-to-renyi",
    (Pointwise, Renyi): "approximate-to-renyi",
    **{
        (kind, Pointwise): "profile-to-pointwise"
        for kind in (Approximate, GaussianDP, Concentrated, Renyi, Profile)
    },
    **{(kind, Pure): PURE for kind in (Approximate, Pointwise, GaussianDP, Concentrated, Renyi, Profile)},
    **{(kind, Concentrated): CONCENTRATED for kind in (Approximate, Pointwise, Renyi, Profile)},
    **{(kind, GaussianDP): GAUSSIAN for kind in (Approximate, Pointwise, Renyi, Profile)},
}


def path(source: type[Bound], target: type[Bound]) -> Law | None:
    """The default law from one kind to another; None for the identity; NoLaw without any."""
    if source is target:
        return None
    if target is Profile:
        return LAWS["to-profile"]
    if (source, target) in _EDGES:
        return LAWS[_EDGES[source, target]]
    raise NoLaw(
        operation=f"{source.__name__} to {target.__name__}",
        reason=_WHY_NOT.get(target, "the first says less than the second"),
    )


_WHY_NOT: dict[type[Bound], str] = {
    GaussianDP: "its trade-off curve is not above that of any pair of normal distributions",
}


def convert(
    bound: Bound,
    to: type[B],
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    orders: Iterable[float] | None = None,
    law: str | None = None,
) -> B:
    """The same promise as another kind of bound, never stronger than the first.

    For `Approximate` name the point: `delta=` or `epsilon=`. For `Renyi` name `orders=`, or take the common
    ones. `law=` names one conversion, for instance "renyi-to-approximate-printed".
    """
    instance(
        "bound", bound, Bound, must="be a bound", hint="a guarantee is restated by for_unit(), not converted"
    )
    a_kind(
        "to", to, Bound, must="be a kind of bound", hint="the class itself: convert(bound, tacit.Approximate)"
    )
    if orders is not None:
        orders = listed("orders", orders, must="be a list of orders")
    arguments: dict[str, object] = {"delta": delta, "epsilon": epsilon, "orders": orders}
    given = {name: value for name, value in arguments.items() if value is not None}
    if law is not None:
        chosen = find(law, operation="convert")
    else:
        default = path(type(bound), to)
        if default is None:
            return _restated(bound, given)  # type: ignore[return-value]
        chosen = default
    try:
        result = chosen.apply(bound, **given)
    except TypeError:
        raise InvalidParameter(
            parameter=" and ".join(given) or "delta",
            value=tuple(given.values()) or None,
            must=f"fit the law {chosen.id!r}",
            hint="conversions to Approximate take delta= or epsilon=, to Pointwise delta=, to Renyi orders=",
        ) from None
    if not isinstance(result, to):
        raise InvalidParameter(parameter="law", value=law, must=f"lead to {to.__name__}")
    return result


def _restated(bound: Bound, given: dict[str, Any]) -> Bound:
    """The bound itself, or its own curve at another point, or at other orders."""
    if not given:
        return bound
    if type(bound) is Approximate and "orders" not in given:
        return _point(bound, given.get("delta"), given.get("epsilon"))
    if isinstance(bound, Renyi) and set(given) == {"orders"}:
        return _tabulate(bound, given["orders"])
    raise InvalidParameter(
        parameter=" and ".join(given),
        value=type(bound).__name__,
        must="be left out: the bound is of this kind",
    )


def _tabulate(bound: Bound, orders: Iterable[float]) -> Renyi:
    values = {order_above_one(a): bound.renyi(a) for a in orders}
    if not any(math.isfinite(v) for v in values.values()):
        raise no_renyi("this bound") if values else EmptyComposition(what="the list of Rényi orders")
    return Renyi(orders=tuple(values), epsilons=tuple(values.values()))


def _point(bound: Bound, delta: float | None, epsilon: float | None) -> Approximate:
    if (delta is None) == (epsilon is None):
        raise InvalidParameter(
            parameter="delta and epsilon",
            value=(delta, epsilon),
            must="be given one at a time",
            hint="a curve becomes one (epsilon, delta) at the delta, or at the epsilon, that you name",
        )
    if delta is not None:
        d = probability("delta", delta, below_one=True)
        return _finite_approximate(bound.epsilon_at(d), d, bound)
    at = non_negative("epsilon", epsilon)
    return Approximate(epsilon=at, delta=bound.delta_at(at))


def _finite_approximate(epsilon: float, delta: float, bound: Bound) -> Approximate:
    if math.isinf(epsilon):
        raise NoLaw(
            operation=f"{type(bound).__name__} to Approximate at delta = {delta:g}",
            reason="no finite epsilon holds at this delta",
            hint="name a larger delta",
        )
    return Approximate(epsilon=epsilon, delta=delta)


def open_probability(delta: float) -> float:
    """A delta strictly between 0 and 1."""
    value = probability("delta", delta, below_one=True)
    refuse_if(value == 0, "delta", delta, "lie in (0, 1)")
    return value


# How much Gaussian noise: the exact answer, and the classic ones beside it as named references.
#
# All answers are noise multipliers noise_std / l2_sensitivity, rounded up. `for_releases` compares three ways
# of paying for k releases at once, which is the closing example of lecture 7's section 7.1.1:
#
#     advanced composition   sqrt(16 k ln(2.5 k/delta) ln(2/delta)) / epsilon
#     Rényi                  sqrt(k (2 ln(1/delta)/epsilon + 1) / epsilon)
#     exact                  sqrt(k) times the exact multiplier of one release


@law("gaussian-budget", operation="budget", rests_on="gaussian-profile")
def gaussian_budget(*, epsilon: float, delta: float) -> GaussianDP:
    """The largest mu that is certified to give (epsilon, delta): the total for one release, or many."""
    return GaussianDP(mu=_largest_mu(*_target(epsilon, delta)))


@lru_cache(maxsize=1024)
def _largest_mu(epsilon: float, delta: float) -> float:
    """Solved once: one release after the other has the same price."""
    return largest(lambda mu: GaussianDP(mu=mu).delta_at(epsilon) <= delta, 0.0, max(1.0, epsilon))


def gaussian_multiplier(*, epsilon: float, delta: float) -> float:
    """The smallest noise_std / l2_sensitivity for (epsilon, delta): 4.2247 for (1, 1e-6)."""
    mu = gaussian_budget(epsilon=epsilon, delta=delta).mu
    return upper(lambda: 1 / ball(mu))


@law("gaussian-classic", operation="budget")
def classic_multiplier(*, epsilon: float, delta: float, constant: float = 2.0) -> float:
    """sqrt(2 ln(constant/delta)) / epsilon: Hall 2012 has constant 2, Dwork and Roth 2014 have 1.25.

    A theorem for epsilon <= 1 only; beyond that it may promise too much, and is refused.
    """
    e, d = _target(epsilon, delta)
    if e > 1:
        raise InvalidParameter(
            parameter="epsilon",
            value=epsilon,
            must="be at most 1 for the classic constant",
            hint="gaussian_multiplier() is exact for every epsilon",
        )
    constant = positive("constant", constant)
    refuse_if(constant < 1.25, "constant", constant, "be at least 1.25", "no proof gives less noise")
    return upper(lambda: (2 * (ball(constant) / ball(d)).log()).sqrt() / ball(e))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseComparison:
    """Noise multipliers that three theorems ask of each of k releases for one (epsilon, delta)."""

    advanced: float
    renyi: float
    exact: float


def for_releases(*, epsilon: float, delta: float, releases: int) -> NoiseComparison:
    """Lecture 7's comparison, with the exact answer beside it. `advanced` assumes epsilon <= 1 per release."""
    e, d = _target(epsilon, delta)
    k = whole("releases", releases)

    def advanced() -> arb:
        return (16 * k * (ball(2.5) * k / ball(d)).log() * (2 / ball(d)).log()).sqrt() / ball(e)

    def renyi() -> arb:
        return (k * (1 - 2 * ball(d).log() / ball(e)) / ball(e)).sqrt()

    mu = gaussian_budget(epsilon=e, delta=d).mu
    return NoiseComparison(
        advanced=upper(advanced), renyi=upper(renyi), exact=upper(lambda: ball(k).sqrt() / ball(mu))
    )


def _target(epsilon: float, delta: float) -> tuple[float, float]:
    d = probability("delta", delta, below_one=True)
    refuse_if(d == 0, "delta", delta, "lie in (0, 1)", "no Gaussian noise gives pure epsilon")
    return positive("epsilon", epsilon), d
