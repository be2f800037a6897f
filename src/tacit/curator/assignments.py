"""An assignment: the mechanisms for the parts of a question, their price, and the reason for the choice.

Its mechanisms state its cost. The assignment decides which numbers are published and how readers read them.
Independent noise is made
here: Laplace noise (sized by L1, pure) or Gaussian noise (sized by L2), whichever has the smaller error at 95%.
Parts on one grid are one vector with the question's joint sensitivity if that needs less noise. Other parts
(the two sums of a ratio) get equal shares of the price.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit.accounting.events import Event, SimpleEvent, flatten
from tacit.curator.charging import CONFIDENCE, Price
from tacit.curator.intervals import Estimate, estimate, last_inside, margin_of, noise_by_part
from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.canonical import formerly
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, down, lower, up
from tacit.guarantees import (
    Always,
    Approximate,
    Bound,
    Concentrated,
    Condition,
    GaussianDP,
    Neighbours,
    Priors,
    Pure,
    compose,
    convert,
    gaussian_budget,
)
from tacit.mechanisms import L1, Laplace, RoundedGaussian, TruncatedDiscreteLaplace
from tacit.mechanisms.base import Mechanism, PartNoise, rho_of_epsilon
from tacit.noise.source import Source
from tacit.sources.query import Cells
from tacit.statistics.base import Question
from tacit.statistics.forms import Average, Share, reals


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyParts:
    """The output of an assignment: noisy integers by part, and the keys if these were not known in advance."""

    parts: dict[str, Any]
    keys: tuple[tuple[Any, ...], ...] | None = None


class Applied(NamedTuple):
    """A mechanism, and the parts of a question that it gives noise to."""

    parts: tuple[str, ...]
    mechanism: PartNoise

    def release(
        self,
        integers: Mapping[str, AnyArray],
        *,
        cells: Callable[[], AnyArray] | None = None,
        source: Source | None,
    ) -> dict[str, AnyArray]:
        """The parts with noise. `cells` gives the finest table, for noise on its cells."""
        given = [integers[name] for name in self.parts]
        noisy = self.mechanism.release_parts(given, cells=cells or _no_cells, source=source)
        shaped = [np.asarray(v).reshape(np.shape(g)) for v, g in zip(noisy, given, strict=True)]
        return dict(zip(self.parts, shaped, strict=True))

    def half_widths(self, confidence: Fraction, *, coordinates: int = 1) -> dict[str, Floats]:
        """Half the width of the interval of each cell of each part."""
        found = self.mechanism.half_widths(len(self.parts), confidence, coordinates=coordinates)
        return dict(zip(self.parts, found, strict=True))


def _no_cells() -> AnyArray:
    raise AssertionError("independent noise asks for no cells")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The noise of one question: mechanisms for its parts, the price, and the reason for the choice."""

    noise: tuple[Applied, ...]
    price: Price
    reason: str
    delta: Fraction = Fraction(0)
    candidates: dict[str, float] = field(default_factory=dict)

    drawn: ClassVar[str] = (
        "noise"  # what comes from the source of randomness; nothing where an answer is exact
    )

    of_shares: ClassVar[bool] = False
    """Whether its noise is one holder's part, which promises nothing alone. Then only `contribute` takes it."""

    # --- what it reveals: its mechanisms know ------------------------------------------------------------
    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """All mechanisms that run; empty if no unit can move anything."""
        return tuple(a.mechanism for a in self.noise)

    @property
    def events(self) -> tuple[Event, ...]:
        """The event of the release, for accountants and the ledger."""
        return tuple(e for m in self.mechanisms for e in m.events)

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        found = [t for m in self.mechanisms for t in m.theorems]
        if len(self.mechanisms) > 1:
            found.append("compose-pure" if self.pure() is not None else "compose-gdp")
        return tuple(dict.fromkeys(found))

    @property
    def declared(self) -> tuple[str, ...]:
        """Assumptions of the claim that no program checks."""
        return ()

    @property
    def condition(self) -> Condition:
        """The condition of the bound: `Always`, which is differential privacy, unless the class has another."""
        return Always()

    @property
    def gamma(self) -> Fraction:
        """The share of the data on which the bound may fail; 0 for differential privacy."""
        return Fraction(0)

    def _sum(self, each: Sequence[Fraction | None]) -> Fraction | None:
        """The sum of the mechanisms' own numbers; None under priors, where no theorem adds them."""
        return None if isinstance(self.condition, Priors) else _total(each)

    def pure(self) -> Fraction | None:
        """The exact epsilon, if the whole assignment has one."""
        return self._sum([m.exact_epsilon for m in self.mechanisms])

    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """The pure epsilon, with a delta of 0, or the epsilon and the delta that the assignment spends."""
        pure = self.pure()
        if pure is not None:
            return pure, Fraction(0)
        if self.delta == 0:
            return None
        if self.price.kind == "approximate":
            return self.price.epsilon or Fraction(0), self.delta
        return Fraction(self.bound.epsilon_at(down(self.delta))), self.delta

    def concentrated(self) -> Fraction | None:
        """A valid rho; None if there is none."""
        return self._sum([m.exact_rho for m in self.mechanisms])

    def mu_squared(self) -> Fraction | None:
        """A valid squared mu; None if there is none."""
        return self._sum([m.exact_mu_squared for m in self.mechanisms])

    def renyi(self, order: float, *, neighbours: Neighbours) -> float | None:
        """The Rényi divergence at this order, if it is finite."""
        if isinstance(self.condition, Priors):
            return None
        each = [e.renyi(order, neighbours=neighbours) for e in self._simple()]
        total = _total([None if r is None else Fraction(r) for r in each])
        return None if total is None else up(total)

    def _simple(self) -> list[SimpleEvent]:
        return [e for e, n in flatten(self.events) for _ in range(n)] if self.events else []

    @property
    def bound(self) -> Bound:
        """The privacy loss of the whole release, in the price's own kind."""
        pure = self.pure()
        if pure is not None:
            return Pure(epsilon=up(pure))
        if self.price.kind == "approximate":
            return Approximate(epsilon=up(self.price.epsilon or 0), delta=up(self.price.delta or 0))
        if self.price.kind == "concentrated":
            return Concentrated(rho=up(self.concentrated() or 0))
        bounds = [m.bound for m in self.mechanisms]
        return compose(*bounds) if len(bounds) > 1 else bounds[0]

    # --- running ----------------------------------------------------------------------------------------
    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """The noisy parts: the only step that sees true numbers."""
        integers = question.integers(cells)
        noisy = {p.name: np.asarray(integers[p.name]) for p in question.parts if p.name not in self.noised}
        for applied in self.noise:
            noisy |= applied.release(integers, cells=lambda: question.histogram(cells), source=source)
        return NoisyParts(parts=noisy)

    @property
    def noised(self) -> frozenset[str]:
        """The parts that get noise; the others are public."""
        return frozenset(name for a in self.noise for name in a.parts)

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """Values and intervals from noisy parts."""
        return estimate(question, self.noise, noisy.parts, confidence, coordinates=coordinates)

    def to_dict(self) -> dict[str, Any]:
        """The mechanisms for a certificate."""
        noise = [a.mechanism.to_dict(a.parts) for a in self.noise]
        return {"noise": noise, "chosen": self.reason, "numerical_delta": 0.0}

    describe = formerly("describe", method=True)

    def sensitivity_record(self, question: Question) -> dict[str, str]:
        """The sensitivity of the noisy numbers, for a certificate."""
        moved = question.sensitivity
        return {
            "l1_steps": str(moved.l1),
            "l2_squared_steps": str(moved.l2_squared),
            "linf_steps": str(moved.linf),
        }

    def asked(self, question: Question) -> Question:
        """The question as this assignment reads it, by default unchanged."""
        return question

    def grid_record(self, question: Question) -> dict[str, str]:
        """The size of a step of each part, for a certificate."""
        return {p.name: str(p.spacing) for p in question.parts}

    @property
    def covers(self) -> str:
        """The contents of the intervals, with their confidence."""
        return "the statistic of the declared, clamped and bounded data, each cell by itself"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """E |error|, its quantile and their description, if the assignment has better ones than its parts."""
        return None

    # --- errors before a row is read ------------------------------------------------------------------
    def variances(self) -> dict[str, float]:
        """The variance of a cell of each part, in steps."""
        return self._by_part([a.mechanism.mean_variances(len(a.parts)) for a in self.noise])

    def mean_errors(self) -> dict[str, float]:
        """E |noise| of a cell of each part, in steps."""
        return self._by_part([a.mechanism.mean_errors(len(a.parts)) for a in self.noise])

    def half_widths(self, confidence: Fraction, *, coordinates: int = 1) -> dict[str, Floats]:
        """The half-widths of the noise of the cells of each part, in steps."""
        return {
            name: half
            for a in self.noise
            for name, half in a.half_widths(confidence, coordinates=coordinates).items()
        }

    def _by_part(self, found: Sequence[Sequence[float]]) -> dict[str, float]:
        return {
            n: x
            for a, each in zip(self.noise, found, strict=True)
            for n, x in zip(a.parts, each, strict=True)
        }

    @property
    def mean_error(self) -> float:
        """E |noise| of a cell in steps, the mean over the parts: the measure by which mechanisms for counts are
        compared.
        """
        each = self.mean_errors().values()
        return sum(each) / len(each) if each else 0.0

    @property
    def log_error(self) -> float:
        """ln of the error at 95%, averaged over the mechanisms; it decides the division of a price."""
        return _mean([math.log(_size(a) + 0.5) for a in self.noise])


def _size(applied: Applied, coordinates: int = 1) -> float:
    """The error at 95%, the mean over the parts."""
    return _mean([float(h.mean()) for h in applied.half_widths(CONFIDENCE, coordinates=coordinates).values()])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _total(each: Sequence[Fraction | None]) -> Fraction | None:
    """The sum, if all are known."""
    found = [x for x in each if x is not None]
    return sum(found, Fraction(0)) if len(found) == len(each) else None


Group = tuple[tuple[str, ...], int, int]


def groups_of(question: Question) -> list[Group]:
    """The vectors that get noise: their parts, and the largest move by one unit in L1 and in squared L2."""
    noisy = [p for p in question.parts if not p.exact and not question.sensitivities[p.name].none]
    if not noisy:
        return []
    m, moves = question.sensitivity, [(p.name, question.sensitivities[p.name]) for p in noisy]
    joint: list[Group] = [(tuple(p.name for p in noisy), int(m.l1), int(m.l2_squared))]
    apart: list[Group] = [((name,), int(x.l1), int(x.l2_squared)) for name, x in moves]
    if len({p.spacing for p in noisy}) > 1:
        return apart
    # One vector has noise of size l1 on every part, separate ones k l1_i each: the smaller one, on average of logs.
    # Compared as whole numbers: tables of equal size are a tie, which a sum of logarithms decides by its rounding.
    return joint if m.l1 ** len(moves) <= math.prod(len(moves) * x.l1 for _, x in moves) else apart


def cells_of(question: Question, parts: Sequence[str]) -> int:
    """The number of noisy numbers of these parts, counted part by part: a family of tables is no product of axes."""
    return sum(p.cells or 0 for p in question.parts if p.name in parts)


def assign(question: Question, price: Price) -> Assignment:
    """Independent noise on every number of a question at this price, of the kind with the smaller error."""
    groups = groups_of(question)
    if not groups:
        return Assignment(noise=(), price=price, reason="no unit can change it: it is published as it is")
    return _best(_options(price, groups), price)


def assign_totals(question: Question, price: Price) -> Assignment:
    """Independent noise on each block of a table with totals, for its own share of the price."""
    shares: Mapping[str, Fraction] = question.details["shares"]
    groups = [
        ((p.name,), int(question.sensitivities[p.name].l1), int(question.sensitivities[p.name].l2_squared))
        for p in question.parts
        if not p.exact
    ]
    if not groups:
        return assign(question, price)
    options: dict[str, tuple[Applied, ...]] = {}
    live = sum((shares[g[0][0]] for g in groups), Fraction(0))
    epsilon, mu_squared = pure_within(price), mu_squared_within(price)
    if price.kind == "accuracy":
        raise InvalidParameter(
            parameter="within", value=str(price), must="be left out for a table with totals",
            hint="its numbers have errors of several sizes: give an epsilon and read the preview",
        )  # fmt: skip
    if epsilon is not None:
        each = [pure_within(price, shares[g[0][0]] / live) or Fraction(0) for g in groups]
        options["Laplace"] = tuple(laplace(g, e) for g, e in zip(groups, each, strict=True))
    if mu_squared is not None:
        options["Gaussian"] = tuple(gaussian(g, mu_squared * shares[g[0][0]] / live) for g in groups)
    return _best(options, price)


def assign_bounded(question: Question, price: Price) -> Assignment:
    """Noise on counts that never exceeds A, the smallest A for the price's (epsilon, delta).

    A unit moves counts by whole numbers. Two descriptions are valid: it moves them by l1 in total, and it moves
    at most l1 of them by linf each. The description with the smaller A is taken (theorem
    `truncated-discrete-laplace`).
    """
    groups = groups_of(question)
    if not question.statistic.whole or not question.known_keys or question.statistic.fits != "noise":
        raise InvalidParameter(
            parameter="noise", value="bounded", must="be asked for counts over declared keys",
            hint="other statistics are functions of noisy numbers, whose error has no such bound",
        )  # fmt: skip
    if not groups:
        return assign(question, price)
    if price.kind != "approximate" or len(groups) > 1:
        raise InvalidParameter(
            parameter="noise", value="bounded", must="have a price of an epsilon and a delta",
            hint="bounded noise discloses with probability delta; at epsilon = 1 and delta = 1e-6 no "
            "count is off by more than 14",
        )  # fmt: skip
    parts, l1, _ = groups[0]
    linf = int(max(question.sensitivities[name].linf for name in parts))
    epsilon, delta = price.epsilon or Fraction(0), price.delta or Fraction(0)
    ways = [(l1, 1)] if l1 == linf else [(l1, 1), (linf, l1)]
    found = min(
        (
            TruncatedDiscreteLaplace.for_target(
                epsilon=epsilon, delta=delta, sensitivity=L1(moved), moved_cells=cells
            )
            for moved, cells in ways
        ),
        key=lambda m: (m.largest_noise, m.variance),
    )
    reason = f"bounded noise was asked for: no count is off by more than {found.largest_noise:,}"
    return Assignment(noise=(Applied(parts, found),), price=price, reason=reason, delta=delta)


def _best(options: dict[str, tuple[Applied, ...]], price: Price) -> Assignment:
    errors = {
        name: math.exp(_mean([math.log(_size(a) + 0.5) for a in applied]))
        for name, applied in options.items()
    }
    name = min(errors, key=lambda n: errors[n])
    reason = compared(f"{name} noise", {f"{n} noise": e for n, e in errors.items()})
    found = Assignment(noise=options[name], price=price, reason=reason, candidates=errors)
    return found if found.pure() is not None else replace(found, delta=price.spent_delta)


def compared(name: str, errors: Mapping[str, float]) -> str:
    """The reason for this noise: its error at the requested price beside that of the next best."""
    others = [n for n in errors if n != name]
    if not others:
        return f"{name}: the price is pure"
    other = min(others, key=lambda n: errors[n])
    share = errors[name] / errors[other] if errors[other] else 1.0
    times = "the same as" if share > 0.995 else f"{share:.2f} of"
    return f"{name}: at this price its error is {times} that of {other}"


def law_of(assignment: Assignment) -> str:
    """The name of an assignment's independent noise among its rivals."""
    return "Laplace noise" if isinstance(assignment.noise[0].mechanism, Laplace) else "Gaussian noise"


def laplace(group: Group, epsilon: Fraction) -> Applied:
    """The smallest Laplace noise of this epsilon for one vector."""
    parts, l1, _ = group
    return Applied(parts, Laplace.for_target(epsilon=epsilon, sensitivity=L1(l1)))


def gaussian(group: Group, mu_squared: Fraction) -> Applied:
    """The smallest Gaussian noise of this squared mu for one vector; of any number of cells."""
    parts, _, l2_squared = group
    return Applied(parts, RoundedGaussian.for_mu_squared(mu_squared=mu_squared, squared_steps=l2_squared))


def _options(price: Price, groups: Sequence[Group]) -> dict[str, tuple[Applied, ...]]:
    share = Fraction(1, len(groups))
    epsilon = pure_within(price, share)
    options: dict[str, tuple[Applied, ...]] = {}
    if epsilon is not None:
        options["Laplace"] = tuple(laplace(g, epsilon) for g in groups)
    mu_squared = mu_squared_within(price)
    if mu_squared is not None:
        options["Gaussian"] = tuple(gaussian(g, mu_squared * share) for g in groups)
    return options


def pure_within(price: Price, share: Fraction = Fraction(1)) -> Fraction | None:
    """The pure epsilon that keeps to this share of the price."""
    match price.kind:
        case "pure" | "approximate":
            assert price.epsilon is not None
            return price.epsilon * share
        case "concentrated":
            assert price.rho is not None
            return _inverse(rho_of_epsilon, price.rho * share)
        case "gaussian":
            assert price.mu is not None
            return _epsilon_of_mu(price.mu**2 * share)
    return None


def mu_squared_within(price: Price) -> Fraction | None:
    """The squared mu that keeps to the price; None for a pure one."""
    match price.kind:
        case "approximate":
            assert price.epsilon is not None
            assert price.delta is not None
            epsilon, delta = down(price.epsilon), down(price.delta)
            return Fraction(gaussian_budget(epsilon=epsilon, delta=delta).mu) ** 2
        case "concentrated":
            return 2 * (price.rho or Fraction(0))
        case "gaussian":
            return (price.mu or Fraction(0)) ** 2
    return None


@lru_cache(maxsize=256)
def _inverse(cost: Callable[[Fraction], Fraction], target: Fraction) -> Fraction:
    """The largest epsilon (a float, taken exactly) whose cost stays within the target."""
    low, high = 0.0, 1.0
    while cost(Fraction(high)) <= target:
        low, high = high, high * 2
    for _ in range(80):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if cost(Fraction(middle)) <= target else (low, middle)
    return Fraction(low)


@lru_cache(maxsize=256)
def _epsilon_of_mu(mu_squared: Fraction) -> Fraction:
    """The pure epsilon inside mu: Phi(mu / 2) = e^epsilon / (1 + e^epsilon), rounded down (`pure-to-gdp`)."""

    def formula() -> object:
        half = ball(mu_squared).sqrt() / 2
        phi = (1 + (half / ball(2).sqrt()).erf()) / 2
        return (phi / (1 - phi)).log()

    # What is charged is read back from it, rounded up: that keeps to the price too.
    found, most, room = lower(formula), lower(lambda: ball(mu_squared).sqrt()), 2.0**-50
    while convert(Pure(epsilon=found), GaussianDP).mu > most:
        found, room = found * (1 - room), 2 * room
    return Fraction(found)


# Intervals for a population, where the rows are declared to be independent draws from it.
#
# With probability 1 - a/2 the noise interval holds the sample's share or mean, and with probability 1 - a/4 the noisy
# total shows at least n rows; then the sample's share lies near the population's: Clopper and Pearson's exact ends
# for shares, Hoeffding's width * sqrt(ln(8/a) / (2 n)) for means of values in the declared range. The misses add up
# to at most a (theorem `risk-decomposition`). It is a declaration about how the rows came about, and stands in the
# certificate.

DECLARED = "the rows are independent draws from the population"


def population(
    question: Question, assignment: Assignment, noisy: NoisyParts, confidence: Fraction
) -> Estimate:
    """Value and interval for the population."""
    miss = 1 - confidence
    form = question.form
    assert isinstance(form, Share | Average)
    inner = estimate(question, assignment.noise, noisy.parts, 1 - miss / 2)
    rows = _rows(question, form, noise_by_part(assignment.noise), noisy.parts, float(miss / 4))
    low, high = (inner.low - form.low) / form.width, (inner.high - form.low) / form.width
    tail = float(miss / 8)
    if question.statistic.yes_or_no:
        low, high = _exact(low, rows, tail, -1), _exact(high, rows, tail, 1)
    else:
        with np.errstate(divide="ignore"):
            reach = np.sqrt(math.log(1 / tail) / (2 * np.maximum(rows, 0.0)))
        low, high = low - reach, high + reach
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    return Estimate(value=inner.value, low=form.low + form.width * low, high=form.low + form.width * high)


def _rows(
    question: Question,
    form: Share | Average,
    noise: Mapping[str, PartNoise],
    parts: Mapping[str, Any],
    miss: float,
) -> Floats:
    """A lower bound on the number of rows, which fails with probability at most `miss`."""
    if isinstance(form, Average):
        return reals(parts[form.rows])
    spacing = next(float(p.spacing) for p in question.parts if p.name == form.above)
    each = form.width / spacing
    total = reals(parts[form.above]) + reals(parts[form.below])
    noises = [noise.get(n) for n in (form.above, form.below)]
    if not any(noises):
        return np.asarray(total / each)
    # One side of the sum of both noises: a symmetric law, so that twice the miss is shared by two sides.
    margin, one = margin_of(noises), np.ones(1)

    def inside(t: Floats) -> Floats:
        return margin([one, one], t, 1 - 2 * miss)

    far = one
    while bool((inside(far) >= 0).any()):
        far = 2 * far
    reach = float(last_inside(inside, np.zeros(1), far)[0]) + 1
    return np.maximum((total - reach) / each, 0.0)


def _exact(share: Floats, rows: Floats, tail: float, side: int) -> Floats:
    """Clopper and Pearson's end for this share of at least `rows` rows; without rows it is trivial."""
    from scipy.special import betaincinv

    n = np.floor(rows)
    k = np.clip(np.ceil(share * n) if side > 0 else np.floor(share * n), 0, n)
    with np.errstate(invalid="ignore"):
        if side > 0:
            return np.where(k >= n, 1.0, betaincinv(k + 1, np.maximum(n - k, 1e-9), 1 - tail))
        return np.where((k <= 0) | (n <= 0), 0.0, betaincinv(np.maximum(k, 1e-9), n - k + 1, tail))
