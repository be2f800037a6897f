"""Private selection of one candidate out of k, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.checks import check_fields, members, plain, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import (
    Ball,
    Exact,
    ball,
    bisected,
    exact_parameter,
    exact_value,
    precision,
    up,
    upper,
)
from tacit.guarantees import Pure
from tacit.mechanisms.base import (
    L1,
    Mechanism,
    Released,
    Score,
    confidence_level,
    dimension_parameter,
    epsilon_parameter,
    epsilon_value,
    need,
    one_value,
    shown,
)
from tacit.mechanisms.gaussian import least
from tacit.noise import Categorical, ComputableDistribution, grid_spacing
from tacit.noise.distributions.base import Uniform
from tacit.noise.distributions.finite import uniform_below_secret
from tacit.noise.source import Source, default_source

if TYPE_CHECKING:
    from tacit.guarantees import Profile

__all__ = ["Chosen", "Exponential", "IntervalExponential", "PermuteAndFlip", "Selected", "Selection"]

# The exponential mechanism over a finite list, and on an interval of the line.

FAR = 10_000.0
"""A coin of exp(-gap) beyond this gap is never decided by floats."""
SLACK = 2.0**-46
"""The error of floats in exp(-gap) and in a word, relative to both."""
HINT = "it is sized by how far one unit moves one candidate's score: Score(1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The index of the chosen candidate; `publishable` is False for choices by a seeded source."""

    index: int
    publishable: bool
    numerical_delta: float = 0.0


def exact_scores(scores: Sequence[Exact] | npt.NDArray[Any]) -> list[Fraction]:
    """Checks scores as exact rationals, larger is better; finite, at least one."""
    found: list[Fraction] = []
    for score in scores:
        if isinstance(score, bool) or not isinstance(
            score, int | float | Fraction | np.integer | np.floating
        ):
            raise InvalidParameter(
                parameter="scores", value=type(score).__name__, must="hold numbers", hint="larger is better"
            )
        if isinstance(score, float | np.floating) and not math.isfinite(score):
            # The score itself may be a person's secret, so that it is not shown.
            raise InvalidParameter(
                parameter="scores", value="a score that is not finite", must="be finite",
                hint="clip the scores to a public range; leave out a candidate only for public reasons",
            )  # fmt: skip
        found.append(Fraction(plain(score)))
    if not found:
        raise EmptyComposition(what="the list of candidates", hint="give at least one score")
    return found


def score_rate(epsilon: Exact, sensitivity: Score) -> Fraction:
    """The weight of a unit of score: epsilon / (2 sensitivity), or epsilon / sensitivity if scores move together."""
    return epsilon_parameter(epsilon) / (sensitivity.exact * (1 if sensitivity.monotone else 2))


class SelectionMechanism(Mechanism):
    """A choice among candidates by their scores; larger is better."""

    __slots__ = ()

    epsilon: Exact
    sensitivity: Score

    @property
    def rate(self) -> Fraction:
        """The weight of a unit of score in the exponent."""
        return score_rate(self.epsilon, self.sensitivity)

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def exact_epsilon(self) -> Fraction:
        """The given epsilon, unchanged, so that shares of a price add up to it."""
        return epsilon_parameter(self.epsilon)

    def choose(self, scores: Sequence[Exact] | npt.NDArray[Any], *, source: Source | None = None) -> Chosen:
        """The index of the chosen candidate."""
        source = source if source is not None else default_source()
        return Chosen(index=self._choose(exact_scores(scores), source), publishable=source.publishable)

    def _choose(self, scores: list[Fraction], source: Source) -> int:
        raise NotImplementedError

    def probabilities(self, scores: Sequence[Exact] | npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The distribution of the choice given the scores: a secret, for tests and plans on made-up scores."""
        raise NotImplementedError

    def loss(self, scores: Sequence[Exact] | npt.NDArray[Any]) -> float:
        """E [best score - chosen score] given the scores: a secret too."""
        exact = exact_scores(scores)
        best = max(exact)
        return float(np.dot(self.probabilities(exact), [float(best - s) for s in exact]))

    def expected_error(self, *, candidates: int) -> float:
        """The worst E [best score - chosen score] over all scores of this many candidates."""
        raise NotImplementedError

    def error_quantile(self, confidence: Exact = 0.95, *, candidates: int) -> float:
        """The bound on best score - chosen score, for all scores of this many candidates."""
        raise NotImplementedError

    def max_error(self, *, confidence: Exact = 0.95, dimension: int, candidates: int) -> float:
        """For `dimension` independent choices at once."""
        level = float(confidence_level(confidence)) ** (1 / whole("dimension", dimension, least=1))
        return self.error_quantile(level, candidates=candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(SelectionMechanism):
    """Pr[i] proportional to exp(epsilon score_i / (2 sensitivity)), exactly, for scores of which larger is better.

    Guarantee: Pure(epsilon). Its range of losses is bounded, so that its curve is better (`profile`). If the
    scores are monotone the factor 2 falls away. Reached as the number of candidates grows.
    Theorem `exponential-mechanism`. Source: McSherry, Talwar 2007; Hall 2012, Prop. 1.3.5; Groce 2014, Thm 3.4
    (whose sign is that of a loss).
    """

    epsilon: Exact
    sensitivity: Score

    def __post_init__(self) -> None:
        check_fields(self, epsilon=epsilon_value)
        need("exponential", self.sensitivity, (Score,), HINT)

    @classmethod
    def for_target(cls, *, epsilon: Exact, sensitivity: Score) -> Exponential:
        """The mechanism of this epsilon: the constructor itself, under the name that all mechanisms share."""
        return cls(epsilon=epsilon, sensitivity=sensitivity)

    @property
    def profile(self) -> Profile:
        """The curve of a mechanism with epsilon-bounded range (Dong, Durfee, Rogers 2020)."""
        from tacit.guarantees import Profile
        from tacit.pld import ExponentialPair

        return Profile.of_pair(ExponentialPair(epsilon=float(self.bound.epsilon)))

    @property
    def event(self) -> Event:
        """The exponential mechanism: its losses range over an interval of length epsilon."""
        return events.ExponentialEvent(epsilon=float(self.bound.epsilon))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("exponential-mechanism",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {"distribution": "exponential mechanism", "rate": shown(self.rate), "exact": True}

    def _distribution(self, scores: list[Fraction]) -> Categorical:
        best = max(scores)
        return Categorical(log_weights=[(s - best) * self.rate for s in scores])

    def _choose(self, scores: list[Fraction], source: Source) -> int:
        return int(self._distribution(scores).sample(source=source))

    def probabilities(self, scores: Sequence[Exact] | npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        exact = exact_scores(scores)
        law = self._distribution(exact)
        with precision(128):
            return np.array([float(law.probability_ball(i).mid()) for i in range(len(exact))])

    def expected_error(self, *, candidates: int) -> float:
        """W((k - 1)/e) / rate, Lambert's W: reached when all but one candidate are equally bad."""
        from scipy.special import lambertw

        k = whole("candidates", candidates, least=1)
        return float(lambertw((k - 1) / math.e).real / float(self.rate))

    def error_quantile(self, confidence: Exact = 0.95, *, candidates: int) -> float:
        """ln((k - 1) c / (1 - c)) / rate at confidence c: exact for the worst scores."""
        k = whole("candidates", candidates, least=1)
        level = float(confidence_level(confidence))
        if k == 1:
            return 0.0
        return max(0.0, math.log((k - 1) * level / (1 - level)) / float(self.rate))


# Permute-and-flip: the exponential mechanism's better brother.


def _head(gap: Fraction) -> Ball:
    """The chance that a candidate's coin shows heads."""
    return (-ball(gap)).exp()


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip(SelectionMechanism):
    """Candidates in random order, each taken with chance exp(-rate (best - score)); rate = epsilon / (2 sensitivity).

    Guarantee: Pure(epsilon), exactly. Its losses do *not* have the exponential mechanism's bounded range, so
    composition can use the pure bound only. Its expected error is never above the exponential mechanism's, and down to
    half of it. Reached as the number of candidates grows. Theorem `permute-and-flip`. Source: McKenna, Sheldon 2020;
    Ding et al. 2021 (the same distribution as noisy maximum with exponential noise).
    """

    epsilon: Exact
    sensitivity: Score

    def __post_init__(self) -> None:
        check_fields(self, epsilon=epsilon_value)
        need("permute-and-flip", self.sensitivity, (Score,), HINT)

    @classmethod
    def for_target(cls, *, epsilon: Exact, sensitivity: Score) -> PermuteAndFlip:
        """The mechanism of this epsilon: the constructor itself, under the name that all mechanisms share."""
        return cls(epsilon=epsilon, sensitivity=sensitivity)

    @property
    def event(self) -> Event:
        """Permute-and-flip: pure epsilon, and no more."""
        return events.PermuteAndFlipEvent(epsilon=float(self.bound.epsilon))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("permute-and-flip",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {"distribution": "permute-and-flip", "rate": shown(self.rate), "exact": True}

    def _choose(self, scores: list[Fraction], source: Source) -> int:
        """A coin for every candidate, then one of the heads. This is the same as a random order up to the first head.

        Every candidate draws one word and the last choice another one: their number is independent of the scores.
        """
        best = max(scores)
        gaps = [(best - s) * self.rate for s in scores]
        words = source.words(len(scores))
        far = np.array([float(gap) if gap < FAR else FAR for gap in gaps])
        near = np.exp(-far)
        drawn = words.astype(np.float64) * 2.0**-64
        # Floats decide all but what lies within their error; balls decide the rest. The best always shows heads.
        heads = np.array([gap == 0 for gap in gaps]) | (drawn < near)
        error = SLACK * ((1 + far) * near + drawn) + 2.0**-60
        for k in np.flatnonzero(np.abs(drawn - near) <= error):
            if gaps[k] != 0:
                coin = Uniform(value=int(words[k]), bits=64, source=source)
                heads[k] = coin.below(partial(_head, gaps[k]))
        found = np.flatnonzero(heads)
        return int(found[uniform_below_secret(len(found), source)])

    def probabilities(self, scores: Sequence[Exact] | npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Pr[i] = y_i * integral over t in [0, 1] of prod_{j != i} (1 - t y_j), y = exp(-rate gap); O(k^2)."""
        import flint

        exact = exact_scores(scores)
        best = max(exact)
        # Coefficients of the product alternate and may grow like 2^k: as many more bits are kept.
        with precision(128 + 2 * len(exact)):
            chances = [(-ball((best - s) * self.rate)).exp() for s in exact]
            out = []
            for i, y in enumerate(chances):
                product = flint.arb_poly([1])
                for j, other in enumerate(chances):
                    if j != i:
                        product = product * flint.arb_poly([1, -other])
                out.append(float((y * product.integral()(flint.arb(1))).mid()))
        return np.array(out)

    def _miss(self, gap: float, k: int) -> float:
        """The chance of not taking the best of k, if all others are `gap / rate` below it."""
        y = math.exp(-gap)
        if k * y < 1e-8:
            return (k - 1) * y / 2
        return 1 + math.expm1(k * math.log1p(-y) if y < 1 else -math.inf) / (k * y)

    def expected_error(self, *, candidates: int) -> float:
        """max over gaps g of g Pr[not the best] with all others g below it: the worst scores."""
        k = whole("candidates", candidates, least=1)
        if k == 1:
            return 0.0
        gaps = np.linspace(0.0, 2 * math.log(k) + 8, 4001)
        values = [g * self._miss(float(g), k) for g in gaps]
        # The curve is smooth with its maximum inside: the grid's error is of second order.
        return float(max(values)) * (1 + 1e-5) / float(self.rate)

    def error_quantile(self, confidence: Exact = 0.95, *, candidates: int) -> float:
        """The gap g with Pr[not the best] = 1 - confidence if all others are g below: exact for the worst scores."""
        k = whole("candidates", candidates, least=1)
        allowed = float(1 - confidence_level(confidence))
        if self._miss(0.0, k) <= allowed:
            return 0.0
        _, high = bisected(
            lambda gap: not self._miss(gap, k) > allowed, 0.0, math.log(k / allowed) + 1, relative=1e-12
        )
        return high / float(self.rate)


METHODS: dict[str, type[SelectionMechanism]] = {
    "exponential": Exponential,
    "permute-and-flip": PermuteAndFlip,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """The name of the chosen candidate; `publishable` is False for choices by a seeded source."""

    name: str
    publishable: bool
    numerical_delta: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Mechanism):
    """The name of the (nearly) best of a public list of candidates: a noisy maximum.

    Guarantee: Pure(epsilon) by permute-and-flip (the default: never worse) or the exponential mechanism (which
    composes better). Only the name is released, not its score: release that by another mechanism.
    """

    epsilon: Exact
    sensitivity: Score
    candidates: Sequence[str]
    method: Literal["permute-and-flip", "exponential"] = "permute-and-flip"

    def __post_init__(self) -> None:
        set_fields(self, epsilon=self.epsilon)
        names = members("candidates", self.candidates)
        if not names:
            raise EmptyComposition(what="the list of candidates", hint="name at least one")
        if not all(isinstance(name, str) for name in names):
            raise InvalidParameter(parameter="candidates", value=names, must="be names")
        refuse_if(len(set(names)) != len(names), "candidates", names, "have different names")
        object.__setattr__(self, "candidates", names)
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise UnknownName(what="method of selection", name=str(self.method), known=METHODS)
        _ = self.mechanism

    @classmethod
    def for_target(
        cls,
        *,
        epsilon: Exact,
        sensitivity: Score,
        candidates: Sequence[str],
        method: Literal["permute-and-flip", "exponential"] = "permute-and-flip",
    ) -> Selection:
        """The mechanism of this epsilon: the constructor itself, under the name that all mechanisms share."""
        return cls(epsilon=epsilon, sensitivity=sensitivity, candidates=candidates, method=method)

    @property
    def mechanism(self) -> Any:
        """The mechanism that chooses."""
        return METHODS[self.method](epsilon=self.epsilon, sensitivity=self.sensitivity)  # type: ignore[call-arg]

    @property
    def bound(self) -> Pure:
        found: Pure = self.mechanism.bound
        return found

    @property
    def event(self) -> Event:
        """That of the method."""
        inner: Event = self.mechanism.event
        return inner

    @property
    def theorems(self) -> tuple[str, ...]:
        """Those of the method."""
        found: tuple[str, ...] = self.mechanism.theorems
        return found

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {**self.mechanism.noise_distribution, "candidates": len(self.candidates)}

    def choose(self, scores: Mapping[str, Exact], *, source: Source | None = None) -> Selected:
        """The chosen name; `scores` has one number for each candidate, larger is better."""
        if set(scores) != set(self.candidates):
            raise InvalidParameter(
                parameter="scores", value=f"{len(scores)} names", must="have one score for each candidate",
                hint="leaving a candidate out reveals that it was left out",
            )  # fmt: skip
        chosen = self.mechanism.choose([scores[name] for name in self.candidates], source=source)
        return Selected(name=self.candidates[chosen.index], publishable=chosen.publishable)

    def expected_error(self) -> float:
        """The worst E [best score - chosen score]."""
        return float(self.mechanism.expected_error(candidates=len(self.candidates)))

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The bound on best score - chosen score, for any scores."""
        return float(self.mechanism.error_quantile(confidence, candidates=len(self.candidates)))

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """For `dimension` independent selections at once."""
        k = len(self.candidates)
        return float(self.mechanism.max_error(confidence=confidence, dimension=dimension, candidates=k))


# The exponential mechanism on an interval of the line, with the distance as its loss.

CENTRES = 513


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalExponential(Mechanism):
    """Pr[x] proportional to e^(-|x - value| / noise_scale) over the grid points of a public interval; exact.

    Guarantee: Pure(epsilon) with epsilon = D / noise_scale + ln(Z(low + D) / Z(low)), D the sensitivity and Z the
    normaliser, which is the largest loss. The general theorem would charge 2 D / noise_scale, which on a long
    interval is twice too much. Assumption: one number on the grid, the interval public; values are clamped.
    Theorem `exponential-interval` (sharper). Source: Hall 2012, Prop. 1.3.5 and the remark after it.
    """

    sensitivity: L1
    noise_scale: Exact
    low: Exact
    high: Exact
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need(
            "interval exponential",
            self.sensitivity,
            (L1,),
            "it is sized by the distance that the value moves",
        )
        check_fields(self, noise_scale=exact_value)
        step = grid_spacing(self.spacing)
        object.__setattr__(self, "spacing", step)
        for name in ("low", "high"):
            end = exact_parameter(name, getattr(self, name), positive=False)
            if (end / step).denominator != 1:
                raise InvalidParameter(
                    parameter=name, value=getattr(self, name), must=f"be a multiple of the spacing {step}"
                )
            object.__setattr__(self, name, end)
        refuse_if(not Fraction(self.low) < Fraction(self.high), "high", self.high, "be above low")

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, sensitivity: L1, low: Exact, high: Exact, spacing: Exact = 1
    ) -> IntervalExponential:
        """The smallest noise (to one part in 10^5) whose exact epsilon is at most this one."""
        target = epsilon_parameter(epsilon)
        need("interval exponential", sensitivity, (L1,), "it is sized by the distance that the value moves")

        def make(scale: Fraction) -> IntervalExponential:
            return cls(sensitivity=sensitivity, noise_scale=scale, low=low, high=high, spacing=spacing)

        start = 2 * sensitivity.exact / target
        return make(least(lambda scale: make(scale).bound.epsilon <= target, start))

    @property
    def step(self) -> Fraction:
        """The grid's spacing."""
        return Fraction(self.spacing)

    @property
    def rate(self) -> Fraction:
        """Grid step over noise_scale."""
        return self.step / exact_parameter("noise_scale", self.noise_scale)

    @property
    def _first(self) -> int:
        return int(Fraction(self.low) / self.step)

    @property
    def _width(self) -> int:
        return int((Fraction(self.high) - Fraction(self.low)) / self.step)

    def _mass(self, centre: int) -> Ball:
        """(1 - q) Z(centre) = 1 + q - q^(c+1) - q^(W-c+1), as a sum of positive terms."""
        a = ball(self.rate)
        left, right = (-a * (centre + 1)).expm1(), (-a * (self._width - centre)).expm1()
        return -left - (-a).exp() * right

    @property
    def bound(self) -> Pure:
        moved = min(self.sensitivity.steps(self.step), self._width)

        def formula() -> Any:
            return ball(self.rate * moved) + (self._mass(moved) / self._mass(0)).log()

        return Pure(epsilon=upper(formula))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("exponential-interval",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "exponential mechanism on an interval",
            "noise_scale": shown(exact_parameter("noise_scale", self.noise_scale)),
            "low": shown(Fraction(self.low)),
            "high": shown(Fraction(self.high)),
            "spacing": shown(self.step),
            "exact": True,
        }

    def distribution(self, centre: int) -> ComputableDistribution:
        """The distribution of the output, in grid steps above `low`, for a true value `centre` steps above `low`."""
        width, c, rate = self._width, min(max(int(centre), 0), self._width), self.rate

        def cumulative(k: int) -> Ball:
            if k < 0:
                return ball(0)
            if k >= width:
                return ball(1)
            a = ball(rate)
            if k < c:
                return -(-a * (c - k)).exp() * (-a * (k + 1)).expm1() / self._mass(c)
            return 1 + (-a * (k + 1 - c)).exp() * (-a * (width - k)).expm1() / self._mass(c)

        return ComputableDistribution(cumulative_ball=cumulative, name="exponential mechanism on an interval")

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """A grid point of the interval; the value is clamped to it first."""
        source = source if source is not None else default_source()
        array = one_value(values, "interval exponential")
        drawn = (
            int(self.distribution(int(array.ravel()[0]) - self._first).sample(source=source)) + self._first
        )
        dtype = np.int64 if -(1 << 63) <= drawn < 1 << 63 else object
        return Released(
            values=np.array(drawn, dtype=dtype).reshape(array.shape),
            spacing=self.step,
            publishable=source.publishable,
        )

    def _centres(self) -> npt.NDArray[np.float64]:
        return np.unique(np.rint(np.linspace(0, self._width, min(CENTRES, self._width + 1))))

    def expected_error(self) -> float:
        """The worst E |output - value| over true values (looked for on a grid of 513 of them)."""
        a, c, width = float(self.rate), self._centres(), float(self._width)
        mass = -np.expm1(-a * (c + 1)) - np.exp(-a) * np.expm1(-a * (width - c))
        total = (_weighted(a, c) + _weighted(a, width - c)) / mass
        return float(total.max() * (1 + 1e-9) * float(self.step))

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The bound on |output - value| for every true value (searched on a grid of 513 of them)."""
        a, c, width = float(self.rate), self._centres(), float(self._width)
        allowed = float(1 - confidence_level(confidence))
        mass = -np.expm1(-a * (c + 1)) - np.exp(-a) * np.expm1(-a * (width - c))

        def miss(t: int) -> float:
            side = [np.exp(-a * (t + 1)) * -np.expm1(-a * np.maximum(m - t, 0)) for m in (c, width - c)]
            return float(((side[0] + side[1]) / mass).max())

        return float(bisected(lambda t: not miss(t) > allowed, -1, self._width)[1] * self.step)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """For `dimension` numbers released side by side (which composes their epsilons)."""
        return self.error_quantile(
            float(confidence_level(confidence)) ** (1 / dimension_parameter(dimension))
        )


def _weighted(a: float, m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(1 - q) sum_{i=1..m} i q^i = q (1 - q^m) / (1 - q) - m q^(m+1)."""
    geometric = np.exp(-a) * np.expm1(-a * m) / np.expm1(-a)
    return np.asarray(geometric - m * np.exp(-a * (m + 1)))
