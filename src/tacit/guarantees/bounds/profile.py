"""A whole certified curve delta(epsilon), kept as its pairs of distributions.

A profile is a product of pairs (P_1, Q_1) x (P_2, Q_2) x ..., one product for each direction in which
neighbours may differ. Composition only joins products, so it is exactly associative and commutative. Numbers
are computed on request, certified from both sides. The larger of the directions is taken when the curve is
read, and never before.

A `Curve` answers delta(epsilon) in one direction of neighbouring, certified from both sides. A `Composer` makes
curves and joins them. The room `tacit.pld` has the only composer and installs it on import. Rooms import only
earlier rooms, so the algebra names that room once, as a string, here. `composer()` imports it at the first
curve, and `tacit.compose` works without an import by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeAlias

from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.checks import Numbers, check_fields, how_many, instance, listed, positive, probability, real
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval, ball, lower, upper
from tacit.guarantees.bounds.base import Approximate, Bound, Concentrated, GaussianDP, Pure, Renyi

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Bound):
    """delta(e) = max over directions of sup_S P(S) - e^e Q(S), for dominating pairs (P, Q).

    One direction if the pair dominates both orders of neighbours; two (removal, addition) if the orders differ,
    as under Poisson sampling. Theorems `dominating-pair`, `compose-profile`.
    """

    kind: ClassVar[str] = "profile"
    directions: Directions

    def __post_init__(self) -> None:
        check_fields(self, directions=listed)
        if len(self.directions) not in (1, 2) or not all(map(composer().is_curve, self.directions)):
            raise InvalidParameter(
                parameter="directions",
                value=len(self.directions),
                must="be one product, or one each for remove and add",
            )

    # --- reading -------------------------------------------------------------------------------------
    def delta(self, epsilon: Numbers) -> Numbers:  # type: ignore[override]
        """The certified upper end of the curve at this epsilon."""
        return self.delta_at(epsilon)

    def epsilon(self, delta: Numbers) -> Numbers:  # type: ignore[override]
        """The certified upper end of the inverse curve at this delta."""
        return self.epsilon_at(delta)

    def delta_between(self, epsilon: float, *, tolerance: float = 2e-4) -> Interval:
        """The certified enclosure [low, high] of the curve at this epsilon; `tolerance` is relative."""
        at = real("epsilon", epsilon)
        ends = [d.delta(at, tolerance=positive("tolerance", tolerance)) for d in self.directions]
        return Interval(low=max(i.low for i in ends), high=max(i.high for i in ends))

    def epsilon_between(self, delta: float, *, tolerance: float = 2e-4) -> Interval:
        """The certified enclosure [low, high] of the inverse curve at this delta, about as wide as `tolerance`."""
        level = probability("delta", delta)
        width, found = positive("tolerance", tolerance), Interval(low=0.0, high=0.0)
        for direction in self.directions:
            ends = direction.epsilon(level, tolerance=width, known=found.low)
            found = Interval(low=max(found.low, ends.low), high=max(found.high, ends.high))
        return found

    def _delta(self, epsilon: float) -> float:
        return self.delta_between(epsilon).high

    def _epsilon(self, delta: float) -> float:
        return self.epsilon_between(delta).high

    def _renyi(self, order: float) -> float:
        return max(d.renyi(order) for d in self.directions)

    def _kullback_leibler(self) -> float:
        return max(d.renyi(1.0) for d in self.directions)

    def describe(self) -> str:
        size = self.directions[0].size
        return (
            f"a certified curve (epsilon = {self._short(self._epsilon(1e-6))} at delta = 1e-06, {size} parts)"
        )

    # --- making --------------------------------------------------------------------------------------
    @classmethod
    def of(cls, bound: Bound) -> Profile:
        """The curve of any bound: the exact worst pair where one is known, else its upper curve."""
        match bound:
            case Profile():
                return bound
            case Pure():
                return cls._made(composer().approximate(epsilon=float(bound.epsilon), delta=0.0))
            case Approximate():
                point = float(bound.epsilon), float(bound.delta)
                return cls._made(composer().approximate(epsilon=point[0], delta=point[1]))
            case GaussianDP():
                return cls._made(composer().gaussian(mu=bound.mu))
            case Concentrated():
                return cls._made(composer().concentrated(rho=bound.rho))
            case Renyi():
                return cls._made(composer().renyi(orders=bound.orders, epsilons=bound.epsilons))
        raise NoLaw(operation=f"the curve of {type(bound).__name__}", reason="no theorem gives one")

    @classmethod
    def _made(cls, directions: Directions) -> Profile:
        return cls(directions=directions)

    @classmethod
    def of_pair(cls, pair: Any) -> Profile:
        """The profile of a dominating pair (`tacit.pld.Pair`), read in both orders."""
        return cls._made(composer().of_pair(pair))

    @classmethod
    def from_pair(cls, p: Sequence[float], q: Sequence[float]) -> Profile:
        """The exact profile of two tabulated distributions over the same outcomes.

        `p` is that of the data with the unit, `q` without it, in every profile of a composition. Guarantees for
        replaced units have no such order, and take the larger of both before they compose.
        """
        return cls._made(composer().tabulated(p=listed("p", p), q=listed("q", q)))

    @classmethod
    def from_losses(
        cls, losses: Sequence[float], probabilities: Sequence[float], *, infinite: float = 0.0
    ) -> Profile:
        """The profile of a privacy-loss distribution: ln(dP/dQ) takes these values with these P-probabilities.

        `infinite` is the P-probability of outputs that Q never gives. Q's probabilities are p e^{-loss},
        rounded down. The rest of Q's mass goes to outputs that P never gives, so rounding only adds loss.
        """
        losses = [real("losses", x) for x in listed("losses", losses)]
        probabilities = listed("probabilities", probabilities)
        if len(losses) != len(probabilities) or not losses:
            raise InvalidParameter(
                parameter="probabilities",
                value=len(probabilities),
                must=f"be as many as the losses ({len(losses)}), at least one",
            )
        if not all(math.isfinite(x) for x in losses):
            raise InvalidParameter(
                parameter="losses",
                value="not finite",
                must="be finite",
                hint="name the probability of an infinite loss as infinite=",
            )
        masses = [probability("probabilities", p) for p in probabilities]
        shadow = [_shadow(p, x) for p, x in zip(masses, losses, strict=True)]
        rest = 1 - sum(Fraction(v) for v in shadow)
        if rest < -Fraction(1, 10**9):
            raise InvalidParameter(
                parameter="losses",
                value=float(1 - rest),
                must="leave sum of p e^{-loss} at most 1",
                hint="no two distributions have these losses",
            )
        p = (*masses, probability("infinite", infinite), 0)
        return cls._made(composer().tabulated(p=p, q=(*shadow, 0, max(rest, Fraction(0)))))

    @classmethod
    def gaussian(cls, *, mu: float) -> Profile:
        """Gaussian noise with l2_sensitivity/noise_std = mu."""
        return cls.of(GaussianDP(mu=mu))

    @classmethod
    def laplace(cls, *, epsilon: float) -> Profile:
        """Laplace noise with l1_sensitivity/noise_scale = epsilon: better than its pure epsilon says."""
        return cls._made(composer().laplace(epsilon=positive("epsilon", epsilon)))

    @classmethod
    def product(cls, parts: Sequence[tuple[Profile, int]]) -> Profile:
        """The composition: products joined, direction by direction."""
        members = [
            listed("parts", part, must="be pairs of a profile and a count") for part in listed("parts", parts)
        ]
        if not members:
            raise EmptyComposition(what="the composition")
        if not all(len(m) == 2 and isinstance(m[0], Profile) for m in members):
            raise InvalidParameter(
                parameter="parts", value="others", must="be pairs of a profile and a count"
            )
        parts = [(profile, how_many("times", times)) for profile, times in members]
        count = max(len(p.directions) for p, _ in parts)
        joined: list[Curve] = []
        for index in range(count):
            chosen = [(p.directions[min(index, len(p.directions) - 1)], n) for p, n in parts]
            joined.append(composer().product(chosen))
        return cls(directions=tuple(joined))

    @classmethod
    def worst(cls, profiles: Sequence[Profile]) -> Profile:
        """A profile above all of these curves."""
        profiles = [
            instance("profiles", p, Profile, must="be profiles") for p in listed("profiles", profiles)
        ]
        if not profiles:
            raise EmptyComposition(what="the list of profiles")
        return cls._made(composer().worst(tuple(d for p in profiles for d in p.directions)))

    # --- changing ------------------------------------------------------------------------------------
    def grouped(self, size: int) -> Profile:
        """The curve for `size` units at once: the best split of epsilon over the steps, or k mu for Gaussians."""
        from tacit.guarantees.laws.group import group_point

        size = how_many("size", size)
        mu, point = self.gaussian_mu(), composer().approximate_point(self.directions)
        if mu is not None:
            return Profile._made(composer().gaussian(mu=upper(lambda: size * ball(mu))))
        if point is not None:
            epsilon, delta = group_point(*point, size)
            return Profile._made(composer().approximate(epsilon=epsilon, delta=min(delta, 1.0)))
        return Profile._made(composer().grouped(self.directions, size))

    def poisson_sampled(self, rate: float) -> Profile:
        """Each unit kept with probability `rate`: removal (qP + (1-q)Q, Q), and addition, its swap."""
        rate = probability("rate", rate)
        if rate == 0:
            return Profile.of(Pure(epsilon=0.0))
        return Profile._made(composer().poisson_sampled(self.directions, rate))

    def sampled_without_replacement(self, rate: float) -> Profile:
        """delta'(e) = q delta(ln(1 + (e^e - 1)/q))."""
        rate = probability("rate", rate)
        if rate == 0:
            return Profile.of(Pure(epsilon=0.0))
        return Profile._made(composer().sampled_without_replacement(self.directions, rate))

    def thinned(self, rate: float) -> Profile:
        """rate * delta(e): with probability 1 - rate the unit that is exchanged takes no part."""
        rate = probability("rate", rate)
        if rate == 0:
            return Profile.of(Pure(epsilon=0.0))
        return self if rate == 1 else Profile._made(composer().thinned(self.directions, rate))

    # --- looking inside ------------------------------------------------------------------------------
    def gaussian_mu(self) -> float | None:
        """mu (rounded up) of a profile of Gaussian noise; else None."""
        squared = composer().gaussian_squared(self.directions)
        return None if squared is None else upper(lambda: ball(squared).sqrt())

    def kinks(self) -> list[tuple[Curve, list[float]]] | None:
        """By direction, the epsilons >= 0 between which the curve is linear in e^epsilon; None if there are none.

        The negative ones mirror them, because the pair is symmetric.
        """
        point = composer().approximate_point(self.directions)
        return None if point is None else [(self.directions[0], [point[0], math.inf])]

    @property
    def parameters(self) -> dict[str, Any]:
        return {"directions": self.directions}


def _shadow(mass: float, loss: float) -> float:
    """Q's probability of an output with this P-probability and this loss, rounded down."""
    return lower(lambda: ball(mass) * (-ball(loss)).exp())
