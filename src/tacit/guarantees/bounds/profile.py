"""A whole certified curve delta(epsilon), kept as the pairs of distributions that it comes from.

A profile is a product of pairs (P_1, Q_1) x (P_2, Q_2) x ..., one product for each direction in which
neighbours may differ. Composition only joins products, so that it is exactly associative and commutative;
numbers are computed when they are asked for, certified from both sides. The larger of the directions is
taken when the curve is read, and never before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.balls import ball, lower, upper
from tacit.exact.checks import positive, probability
from tacit.exact.rounding import Interval
from tacit.guarantees.bounds.approximate import Approximate
from tacit.guarantees.bounds.base import Bound
from tacit.guarantees.bounds.concentrated import Concentrated
from tacit.guarantees.bounds.gaussian import GaussianDP
from tacit.guarantees.bounds.pure import Pure
from tacit.guarantees.bounds.renyi import Renyi
from tacit.guarantees.given import how_many, instance, listed, real

if TYPE_CHECKING:
    from tacit.guarantees.losses import Pair, Product

__all__ = ["Profile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Bound):
    """delta(e) = max over directions of sup_S P(S) - e^e Q(S), for dominating pairs (P, Q).

    One direction where the pair dominates both orders of neighbours; two (removal, addition) where the
    orders differ, as under Poisson sampling. Theorems `dominating-pair`, `compose-profile`.
    """

    kind: ClassVar[str] = "profile"
    directions: tuple[Product, ...]

    def __post_init__(self) -> None:
        from tacit.guarantees.losses import Product

        object.__setattr__(self, "directions", listed("directions", self.directions))
        if len(self.directions) not in (1, 2) or not all(isinstance(d, Product) for d in self.directions):
            raise InvalidParameter(
                parameter="directions",
                value=len(self.directions),
                must="be one product, or one each for remove and add",
            )

    # --- reading -------------------------------------------------------------------------------------
    def delta(self, epsilon: float) -> float:
        """The certified upper end of the curve at this epsilon."""
        return self._delta_at(epsilon)

    def epsilon(self, delta: float) -> float:
        """The certified upper end of the inverse curve at this delta."""
        return self._epsilon_at(delta)

    def delta_between(self, epsilon: float, *, tolerance: float = 2e-4) -> Interval:
        """The certified enclosure [low, high] of the curve at this epsilon; `tolerance` is relative."""
        at = real("epsilon", epsilon)
        ends = [d.delta(at, tolerance=positive("tolerance", tolerance)) for d in self.directions]
        return Interval(low=max(i.low for i in ends), high=max(i.high for i in ends))

    def epsilon_between(self, delta: float, *, tolerance: float = 2e-4) -> Interval:
        """The certified enclosure [low, high] of the inverse curve at this delta, about as wide as `tolerance`."""
        level = probability("delta", delta)
        ends = [d.epsilon(level, tolerance=positive("tolerance", tolerance)) for d in self.directions]
        return Interval(low=max(i.low for i in ends), high=max(i.high for i in ends))

    def _delta(self, epsilon: float) -> float:
        return self.delta_between(epsilon).high

    def _epsilon(self, delta: float) -> float:
        return self.epsilon_between(delta).high

    def _renyi(self, order: float) -> float:
        return max(d.renyi(order) for d in self.directions)

    def describe(self) -> str:
        size = sum(count for _, count in self.directions[0].pairs)
        return f"a certified curve (epsilon = {self._epsilon(1e-6):.3g} at delta = 1e-06, {size} parts)"

    # --- making --------------------------------------------------------------------------------------
    @classmethod
    def of(cls, bound: Bound) -> Profile:
        """The curve of any bound: the exact worst pair where one is known, else its upper curve."""
        from tacit.guarantees import losses

        match bound:
            case Profile():
                return bound
            case Pure():
                return cls.of_pair(losses.ApproximatePair(epsilon=float(bound.epsilon), delta=0.0))
            case Approximate():
                return cls.of_pair(
                    losses.ApproximatePair(epsilon=float(bound.epsilon), delta=float(bound.delta))
                )
            case GaussianDP():
                return cls.of_pair(losses.GaussianPair(mu=bound.mu))
            case Concentrated():
                return cls.of_pair(losses.ConcentratedPair(rho=bound.rho))
            case Renyi():
                return cls.of_pair(losses.RenyiPair(orders=bound.orders, epsilons=bound.epsilons))
        raise NoLaw(operation=f"the curve of {type(bound).__name__}", reason="no theorem gives one")

    @classmethod
    def of_pair(cls, pair: Pair) -> Profile:
        """The profile of a dominating pair, read in both orders."""
        from tacit.guarantees.losses import Pair, Product

        forward = Product.of(instance("pair", pair, Pair, must="be a pair of distributions"))
        return cls(directions=(forward,) if pair.symmetric else (forward, Product.of(pair.swapped())))

    @classmethod
    def from_pair(cls, p: Sequence[float], q: Sequence[float]) -> Profile:
        """The exact profile of two tabulated distributions over the same outcomes.

        `p` is that of the data with the unit, `q` without it, in every profile of a composition. Guarantees for
        units that are replaced know no such order, and take the larger of both before they compose.
        """
        from tacit.guarantees.losses import FinitePair

        return cls.of_pair(FinitePair(p=listed("p", p), q=listed("q", q)))

    @classmethod
    def from_losses(
        cls, losses: Sequence[float], probabilities: Sequence[float], *, infinite: float = 0.0
    ) -> Profile:
        """The profile of a privacy-loss distribution: ln(dP/dQ) takes these values with these P-probabilities.

        `infinite` is the P-probability of outputs that Q never gives. Q's probabilities are p e^{-loss},
        rounded down, and what they leave of 1 lies on outputs that P never gives: roundings only add loss.
        """
        from tacit.guarantees.losses import FinitePair

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
        pair = FinitePair(
            p=(*masses, probability("infinite", infinite), 0), q=(*shadow, 0, max(rest, Fraction(0)))
        )
        return cls.of_pair(pair)

    @classmethod
    def gaussian(cls, *, mu: float) -> Profile:
        """Gaussian noise with l2_sensitivity/noise_std = mu."""
        return cls.of(GaussianDP(mu=mu))

    @classmethod
    def laplace(cls, *, epsilon: float) -> Profile:
        """Laplace noise with l1_sensitivity/noise_scale = epsilon: better than its pure epsilon says."""
        from tacit.guarantees.losses import LaplacePair

        return cls.of_pair(LaplacePair(epsilon=positive("epsilon", epsilon)))

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
        from tacit.guarantees.losses import Product

        count = max(len(p.directions) for p, _ in parts)
        joined = []
        for index in range(count):
            chosen = [(p.directions[min(index, len(p.directions) - 1)], n) for p, n in parts]
            joined.append(Product.union(chosen))
        return cls(directions=tuple(joined))

    @classmethod
    def worst(cls, profiles: Sequence[Profile]) -> Profile:
        """A profile above all of these curves."""
        from tacit.guarantees.losses import MaximumPair

        profiles = [
            instance("profiles", p, Profile, must="be profiles") for p in listed("profiles", profiles)
        ]
        if not profiles:
            raise EmptyComposition(what="the list of profiles")
        return cls.of_pair(MaximumPair(products=tuple(d for p in profiles for d in p.directions)))

    # --- changing ------------------------------------------------------------------------------------
    def grouped(self, size: int) -> Profile:
        """The curve for `size` units at once: delta(e/k) (e^e - 1)/(e^{e/k} - 1), or k mu for Gaussians."""
        from tacit.guarantees.laws.group import group_point
        from tacit.guarantees.losses import ApproximatePair, GaussianPair, GroupPair

        size = how_many("size", size)
        mu, pair = self.gaussian_mu(), self._single()
        if mu is not None:
            return Profile.of_pair(GaussianPair(mu=upper(lambda: size * ball(mu))))
        if isinstance(pair, ApproximatePair):
            epsilon, delta = group_point(pair.epsilon, pair.delta, size)
            return Profile.of_pair(ApproximatePair(epsilon=epsilon, delta=min(delta, 1.0)))
        return Profile.of_pair(GroupPair(products=self.directions, size=size))

    def poisson_sampled(self, rate: float) -> Profile:
        """Each unit kept with probability `rate`: removal (qP + (1-q)Q, Q), and addition, its swap."""
        from tacit.guarantees.losses import PoissonSampledPair, Product

        rate = probability("rate", rate)
        if rate == 0:
            return Profile.of(Pure(epsilon=0.0))
        removal, addition = self.directions[0].as_pair(), self.directions[-1].as_pair()
        forward = PoissonSampledPair(pair=removal, rate=rate)
        backward = PoissonSampledPair(pair=addition.swapped(), rate=rate).swapped()
        return Profile(directions=(Product.of(forward), Product.of(backward)))

    def sampled_without_replacement(self, rate: float) -> Profile:
        """delta'(e) = q delta(ln(1 + (e^e - 1)/q))."""
        from tacit.guarantees.losses import WithoutReplacementPair

        rate = probability("rate", rate)
        if rate == 0:
            return Profile.of(Pure(epsilon=0.0))
        return Profile.of_pair(WithoutReplacementPair(products=self.directions, rate=rate))

    # --- looking inside ------------------------------------------------------------------------------
    def _single(self) -> Pair | None:
        """The pair itself, where the profile is one pair in one direction."""
        pairs = self.directions[0].pairs
        return pairs[0][0] if len(self.directions) == 1 and len(pairs) == 1 and pairs[0][1] == 1 else None

    def gaussian_mu(self) -> float | None:
        """mu (rounded up), where the profile is that of Gaussian noise; else None."""
        from tacit.guarantees.losses import GaussianPair

        pair = self._single()
        if isinstance(pair, GaussianPair):
            squared = pair.squared
            return upper(lambda: ball(squared).sqrt())
        return None

    def kinks(self) -> list[tuple[Product, list[float]]] | None:
        """Per direction, the epsilons >= 0 between which the curve is linear in e^epsilon; None without any.

        The negative ones mirror them, because the pair is symmetric.
        """
        from tacit.guarantees.losses import ApproximatePair

        pair = self._single()
        if isinstance(pair, ApproximatePair):
            return [(self.directions[0], [pair.epsilon, math.inf])]
        return None

    @property
    def parameters(self) -> dict[str, Any]:
        return {"directions": self.directions}


def _shadow(mass: float, loss: float) -> float:
    """Q's probability of an output with this P-probability and this loss, rounded down."""
    return lower(lambda: ball(mass) * (-ball(loss)).exp())
