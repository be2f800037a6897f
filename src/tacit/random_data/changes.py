"""Statistics of unbounded data, with noise sized by how far pairs of the rows themselves differ (sensitivity analysis).

A statistic g moves by at most h(x, x')/n if a row x is replaced by x'. Pairs of rows show the size of h: their order
statistics bound the h of the real pair by exchangeability alone. It remains to choose nearly the same noise for
neighbouring samples: by a declared smoothness (`ChangesBySmoothness`), or by a private choice (`ChangesByQuantile`).
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import (
    check_fields,
    flag,
    is_number,
    members,
    plain,
    positive,
    refuse_if,
    set_fields,
    whole,
)
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, exact_parameter, up, upper
from tacit.guarantees import Approximate, Pure
from tacit.guarantees.conditions import (
    INDEPENDENT_DRAWS,
    LARGEST_CHANGE,
    MOST_CHANGE,
    ORACLE_LAW,
    SMOOTH_CHANGE,
)
from tacit.mechanisms import L1, Exponential, Laplace, Released, Score, SmoothBound, SmoothLaplace, on_grid
from tacit.mechanisms.base import confidence_level, epsilon_parameter
from tacit.mechanisms.gaussian import delta_parameter
from tacit.mechanisms.strategies import sum_of_epsilons
from tacit.noise import grid_spacing
from tacit.noise.source import Source, default_source
from tacit.random_data.base import RandomMechanism, gamma_parameter, independent, rows_parameter
from tacit.random_data.histogram import laplace_divergence

__all__ = [
    "ChangesByQuantile",
    "ChangesBySmoothness",
    "ReleasedStatistic",
    "SampledSensitivity",
    "dkw_draws",
    "observed_range_delta",
    "pair_changes",
    "sample_sensitivities",
]

Change = Callable[[Any, Any], Exact]


def pair_changes(
    values: Sequence[Exact], change: Change | None = None, *, all_pairs: bool = False
) -> list[Fraction]:
    """h over the disjoint pairs (x_i, x_(i+m)), m = n // 2, or over all pairs; by default |x - x'|, the change of the
    mean.

    The pairing depends on the places of the rows only. `change` must be symmetric and must not round down.
    """
    exact = [_value(v) for v in values]
    m = len(exact) // 2
    chosen = (
        itertools.combinations(exact, 2)
        if flag("all_pairs", all_pairs)
        else zip(exact, exact[m : 2 * m], strict=False)
    )
    if change is None:
        return [abs(a - b) for a, b in chosen]
    return [_value(change(a, b)) for a, b in chosen]


def _finite(value: object) -> Exact:
    """A finite number of Python's own kinds."""
    number = plain(value)
    if not is_number(number) or (isinstance(number, float) and not math.isfinite(number)):
        # The number itself may be a person's and is not shown.
        raise InvalidParameter(
            parameter="values", value="a value that is no finite number", must="be finite numbers",
            hint="decide what a missing value counts as, before anything is computed",
        )  # fmt: skip
    return number  # type: ignore[no-any-return]


def _value(value: object) -> Fraction:
    return Fraction(_finite(value))


def _levels(given: object) -> tuple[Fraction, ...]:
    """Public levels: at least one, above 0, increasing."""
    levels = tuple(exact_parameter("levels", v) for v in members("levels", given))
    if not levels or any(a >= b for a, b in itertools.pairwise(levels)):
        raise InvalidParameter(
            parameter="levels", value=f"{len(levels)} numbers", must="be increasing numbers above 0",
            hint="public ones, such as powers of 2; the largest bounds every change",
        )  # fmt: skip
    return levels


def grid_value(value: Exact, spacing: Exact) -> AnyArray:
    """A statistic's value on the grid, as an array of one integer."""
    return on_grid(np.array([_value(value)], dtype=object), spacing=spacing)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedStatistic:
    """A noisy statistic; `level` is the chosen bound on h, if the choice was private."""

    released: Released
    level: Fraction | None

    @property
    def value(self) -> float:
        """The noisy value."""
        return float(self.released.to_floats().ravel()[0])


class _Changes(RandomMechanism):
    """The common part: the number of pairs, and the gamma of an order statistic."""

    __slots__ = ()

    rows: int
    rank: int
    all_pairs: bool
    spacing: Exact

    def _check_pairs(self) -> None:
        set_fields(self, rows=rows_parameter(self.rows))
        set_fields(self, all_pairs=flag("all_pairs", self.all_pairs))
        rank = whole("rank", self.rank, least=1)
        refuse_if(rank > self.pairs, "rank", rank, f"be at most the number of pairs, {self.pairs}")
        set_fields(self, rank=rank)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))

    @property
    def pairs(self) -> int:
        """m = n // 2 disjoint pairs, or all n(n-1)/2."""
        return math.comb(self.rows, 2) if self.all_pairs else self.rows // 2

    def _share(self, rank: int) -> Fraction:
        """The probability that the real pair's h is above the rank-th smallest of the pairs that both samples allow
        for.

        Disjoint: above the rank-th of the other m - 1, (m - rank)/m. All: above the rank-th of all C(n+1, 2).
        """
        if self.all_pairs:
            return 1 - Fraction(max(rank, 0), math.comb(self.rows + 1, 2))
        return Fraction(self.pairs - max(rank, 0), self.pairs)

    def _ordered(self, changes: Sequence[Exact]) -> list[Exact]:
        found = sorted(_finite(c) for c in changes)  # Python compares its own numbers exactly
        if len(found) != self.pairs:
            raise InvalidParameter(
                parameter="changes", value=f"{len(found)} pairs", must=f"be those of {self.pairs} pairs",
                hint="pair_changes(values)",
            )  # fmt: skip
        refuse_if(found[0] < 0, "changes", "a change below 0", "be at least 0")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesBySmoothness(_Changes):
    """g + Laplace noise sized by s = H_(rank)/n, the rank-th smallest change of the pairs, with a declared smoothness.

    Guarantee: (epsilon, delta) under RandomData((m - rank + 1)/m), for all pairs RandomData(1 - rank/C(n+1, 2)), *if*
    s(D) <= e^beta s(D') for neighbouring samples, which nobody can check: it is declared (and its own probability of
    failing, `smooth_gamma`, is added). delta is the exact one of theorem `smooth-laplace`.
    Assumptions: independent draws; |g(D) - g(D')| <= h(x, x')/n. Theorems `random-pairs`, `random-all-pairs`.
    Source: Hall, Rinaldo, Wasserman 2011, sec. 6; Hall 2012, 5.3.
    """

    rows: int
    rank: int
    epsilon: Exact
    beta: Exact
    smooth_gamma: Exact = 0
    all_pairs: bool = False
    spacing: Exact = 2.0**-20
    independent: bool = True

    def __post_init__(self) -> None:
        self._check_pairs()
        epsilon_parameter(self.epsilon)
        exact_parameter("beta", self.beta)
        set_fields(self, epsilon=self.epsilon, beta=self.beta)
        if not 0 <= exact_parameter("smooth_gamma", self.smooth_gamma, positive=False) < 1:
            raise InvalidParameter(parameter="smooth_gamma", value=self.smooth_gamma, must="lie in [0, 1)")
        set_fields(self, smooth_gamma=self.smooth_gamma)
        gamma_parameter(self._gamma)
        independent(self.independent)
        check_fields(self, independent=flag)
        self.noise  # noqa: B018  (refused here if epsilon and beta do not fit)

    @property
    def noise(self) -> SmoothLaplace:
        """Laplace noise of 2/epsilon times the bound."""
        epsilon = epsilon_parameter(self.epsilon)
        return SmoothLaplace(
            epsilon=epsilon, noise_multiplier=2 / epsilon, beta=self.beta, spacing=self.spacing
        )

    @property
    def _bound(self) -> Approximate:
        return self.noise.bound

    @property
    def _gamma(self) -> Fraction:
        # min(s(D), s(D')) is at least the (rank - 1)-th of the other pairs, or the rank-th of all pairs of n + 1 rows.
        return self._share(self.rank if self.all_pairs else self.rank - 1) + Fraction(self.smooth_gamma)

    @property
    def _declared(self) -> tuple[str, ...]:
        return (INDEPENDENT_DRAWS, MOST_CHANGE, SMOOTH_CHANGE)

    def release(
        self, value: Exact, changes: Sequence[Exact], *, source: Source | None = None
    ) -> ReleasedStatistic:
        """The noisy value of g, given the changes of the pairs. The size of the noise is a secret."""
        source = source if source is not None else default_source()
        at = Fraction(self._ordered(changes)[self.rank - 1]) / self.rows
        # Rounding to the grid moves g by half a step on both sides, and keeps the bound above 0 where rows are tied.
        smooth = SmoothBound(value=at + Fraction(self.spacing), beta=self.beta)
        made = self.noise.release(grid_value(value, self.spacing), smooth, source=source)
        return ReleasedStatistic(released=made, level=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesByQuantile(_Changes):
    """g + Laplace noise of scale level/(n release_epsilon), the level a private quantile of the pairs' changes.

    Levels are public and increasing; the largest is a declared bound on h. The exponential mechanism chooses one with
    the score -max(cnt(level before) - rank, rank - cnt(level), 0), cnt counting the pairs of at most that change.
    Guarantee: (choice_epsilon + release_epsilon, N e^(-choice_epsilon slack/2)) under RandomData((m - rank + slack)/m);
    for all pairs the score moves by n - 1, delta = N e^(-choice_epsilon slack/(2(n-1))) and
    gamma = 1 - (rank - slack + 1)/C(n+1, 2). Theorems `random-private-quantile`, `random-all-pairs`.
    Assumptions: independent draws; |g(D) - g(D')| <= h(x, x')/n; no two rows change g by more than the largest level.
    """

    rows: int
    levels: tuple[Exact, ...]
    rank: int
    slack: int
    choice_epsilon: Exact
    release_epsilon: Exact
    all_pairs: bool = False
    spacing: Exact = 2.0**-20
    independent: bool = True

    def __post_init__(self) -> None:
        self._check_pairs()
        object.__setattr__(self, "levels", _levels(self.levels))
        check_fields(self, slack=partial(whole, least=1))
        epsilon_parameter(self.choice_epsilon, "choice_epsilon")
        epsilon_parameter(self.release_epsilon, "release_epsilon")
        set_fields(self, choice_epsilon=self.choice_epsilon, release_epsilon=self.release_epsilon)
        gamma_parameter(self._gamma)
        if self._delta >= 1:
            raise InvalidParameter(
                parameter="slack", value=self.slack, must="make levels e^(-choice_epsilon slack/2) smaller than 1",
                hint="ChangesByQuantile.for_target(...) finds it",
            )  # fmt: skip
        independent(self.independent)
        check_fields(self, independent=flag)

    @classmethod
    def for_target(
        cls,
        *,
        rows: int,
        levels: Sequence[Exact],
        gamma: Exact,
        delta: Exact,
        choice_epsilon: Exact,
        release_epsilon: Exact,
        all_pairs: bool = False,
        spacing: Exact = 2.0**-20,
    ) -> ChangesByQuantile:
        """The smallest rank and slack with this delta and gamma."""
        n, g = rows_parameter(rows), gamma_parameter(gamma)
        moved = n - 1 if flag("all_pairs", all_pairs) else 1
        rate = epsilon_parameter(choice_epsilon, "choice_epsilon") / (2 * moved)
        limit, count = Fraction(delta_parameter(delta)), len(_levels(levels))
        slack = max(1, math.ceil(upper(lambda: (ball(count) / ball(limit)).log() / ball(rate))))
        pairs = math.comb(n, 2) if all_pairs else n // 2
        rank = (
            math.ceil((1 - g) * math.comb(n + 1, 2)) + slack - 1
            if all_pairs
            else math.ceil((1 - g) * pairs) + slack
        )
        if rank > pairs:
            raise InvalidParameter(
                parameter="rows", value=rows, must=f"make at least {rank} pairs for this gamma and delta",
                hint="a larger gamma, delta or choice_epsilon, fewer levels, or more rows",
            )  # fmt: skip
        return cls(
            rows=n,
            levels=tuple(levels),
            rank=rank,
            slack=slack,
            choice_epsilon=choice_epsilon,
            release_epsilon=release_epsilon,
            all_pairs=all_pairs,
            spacing=spacing,
        )

    @property
    def choice(self) -> Exponential:
        """The choice of a level."""
        return Exponential(
            epsilon=self.choice_epsilon, sensitivity=Score(self.rows - 1 if self.all_pairs else 1)
        )

    @property
    def _delta(self) -> float:
        rate = self.choice.rate
        return min(1.0, upper(lambda: ball(len(self.levels)) * (-ball(rate * self.slack)).exp()))

    @property
    def _bound(self) -> Approximate:
        total = sum_of_epsilons(self.choice_epsilon, self.release_epsilon)
        return Approximate(epsilon=total, delta=self._delta)

    @property
    def _gamma(self) -> Fraction:
        # A score above -slack: rank - slack + 1 pairs are at most the level, and one of them may be the moved one.
        return self._share(self.rank - self.slack + (1 if self.all_pairs else 0))

    @property
    def _declared(self) -> tuple[str, ...]:
        return (INDEPENDENT_DRAWS, LARGEST_CHANGE, MOST_CHANGE)

    def noise_at(self, level: Exact) -> Laplace:
        """The noise at this level: the move of g and of its rounding, over release_epsilon."""
        moved = L1(Fraction(level) / self.rows).rounded(spacing=self.spacing)
        return Laplace.for_target(epsilon=self.release_epsilon, sensitivity=moved, spacing=self.spacing)

    def scores(self, changes: Sequence[Exact]) -> list[int]:
        """The score of each level: a secret."""
        found = self._ordered(changes)
        counts = [bisect_right(found, level) for level in self.levels]
        counts[-1] = len(found)  # declared; so that some level always has the score 0
        before = [0, *counts[:-1]]
        return [-max(b - self.rank, self.rank - c, 0) for b, c in zip(before, counts, strict=True)]

    def release(
        self, value: Exact, changes: Sequence[Exact], *, source: Source | None = None
    ) -> ReleasedStatistic:
        """The noisy value of g, given the changes of the pairs; the chosen level is part of the release."""
        source = source if source is not None else default_source()
        index = self.choice.choose(self.scores(changes), source=source).index
        level = Fraction(self.levels[index])
        made = self.noise_at(level).release(grid_value(value, self.spacing), source=source)
        return ReleasedStatistic(released=made, level=level)


# Bounds read off the data: what goes wrong, computed. An attack, not a release.


def observed_range_delta(values: Sequence[Exact], *, replaced: Exact, epsilon: float) -> float:
    """The delta that "mean + Laplace noise sized by the observed range" really has, for one pair of samples.

    The last row is replaced by `replaced`. The larger of the two hockey-stick divergences of the two outputs at
    epsilon, continuous noise of scale (max - min)/(n epsilon). It tends to 1 as the replaced row moves away,
    and is 1 if one of the two samples is constant. Theorem `random-observed-range`. Source: Hall 2012, 5.1.1.
    """
    e = positive("epsilon", epsilon)
    one = [float(_value(v)) for v in values]
    n = rows_parameter(len(one))
    other = [*one[:-1], float(_value(replaced))]
    (m1, s1), (m2, s2) = ((sum(x) / n, (max(x) - min(x)) / (n * e)) for x in (one, other))
    if s1 == 0 or s2 == 0:
        return 0.0 if (m1, s1) == (m2, s2) else 1.0
    there = laplace_divergence(value=m1, scale=s1, other=m2, other_scale=s2, epsilon=e)
    back = laplace_divergence(value=m2, scale=s2, other=m1, other_scale=s1, epsilon=e)
    return max(there, back)


# Sensitivity sampling: how far any black-box statistic moves, read off samples of a public oracle.


def sample_sensitivities(
    statistic: Callable[[npt.NDArray[Any]], float],
    oracle: Callable[[int], npt.NDArray[Any]],
    *,
    rows: int,
    draws: int,
) -> list[float]:
    """|g(D) - g(D')| for `draws` pairs of neighbouring samples of a public oracle; `oracle(count)` draws rows.

    If an oracle or a statistic raises, or returns a value that is not a finite number, a typed error says so:
    nothing here is private.
    """
    n, m = whole("rows", rows, least=1), whole("draws", draws, least=1)
    found = []
    for _ in range(m):
        try:
            sample = np.asarray(oracle(n + 1))
        except Exception as problem:
            raise InvalidParameter(
                parameter="oracle", value=type(problem).__name__, must="draw rows without raising an error",
                hint="it is called with the number of rows, once for each draw",
            ) from None  # fmt: skip
        if sample.shape[:1] != (n + 1,):
            raise InvalidParameter(
                parameter="oracle",
                value=f"shape {sample.shape}",
                must=f"draw {n + 1} rows when asked for them",
            )
        one, other = (
            _statistic_value(statistic, sample[:n]),
            _statistic_value(statistic, np.delete(sample, n - 1, axis=0)),
        )
        moved = abs(one - other)
        if not math.isfinite(moved):
            raise InvalidParameter(
                parameter="oracle", value="a sample on which the statistic is not finite",
                must="draw rows on which the statistic is a finite number",
            )  # fmt: skip
        found.append(
            math.nextafter(moved, math.inf) if moved else 0.0
        )  # the subtraction may have rounded down
    return found


def _statistic_value(statistic: Callable[[npt.NDArray[Any]], float], sample: npt.NDArray[Any]) -> float:
    """The statistic of public rows, as one number."""
    try:
        return float(statistic(sample))
    except Exception as problem:
        raise InvalidParameter(
            parameter="statistic", value=type(problem).__name__, must="make one number of the oracle's rows",
            hint="it is called with n rows, twice for each draw",
        ) from None  # fmt: skip


def dkw_draws(gamma: Exact) -> int:
    """The number of sampled sensitivities in the published form: ceil(ln(1/r)/(2 (gamma - r)^2)) at its best r.

    Rubinstein, Alda 2017, by the inequality of Dvoretzky, Kiefer, Wolfowitz: r = exp(W_-1(-gamma/(2 sqrt(e))) + 1/2).
    """
    from scipy.special import lambertw

    g = float(gamma_parameter(gamma))
    log_r = float(lambertw(-g / (2 * math.sqrt(math.e)), -1).real) + 0.5
    # Fractions: for a small gamma the square is below all floats.
    return math.ceil(Fraction(-log_r) / (2 * (Fraction(g) - Fraction(math.exp(log_r))) ** 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSensitivity(RandomMechanism):
    """g + Laplace noise of scale s/epsilon, s the rank-th smallest of `draws` sensitivities of a public oracle.

    Guarantee: (epsilon, 0) under RandomData(1 - rank/(draws + 1)), over the data and the oracle's draws together. Given
    the draws the share of bad data is at most a Beta(draws + 1 - rank, rank) variable: `exceeds(gamma)` says how likely
    it is above gamma, and `for_confidence` finds the draws for both. Works for any statistic, medians too.
    Assumption: the oracle draws from the distribution of the rows, independently of them. Theorem
    `random-sensitivity-sampling`.
    Source: Rubinstein, Alda 2017 (with more draws: `dkw_draws`).
    """

    rows: int
    draws: int
    rank: int
    epsilon: Exact
    spacing: Exact = 2.0**-20
    independent: bool = True

    def __post_init__(self) -> None:
        set_fields(self, rows=rows_parameter(self.rows), draws=whole("draws", self.draws, least=1))
        rank = whole("rank", self.rank, least=1)
        refuse_if(rank > self.draws, "rank", rank, f"be at most the number of draws, {self.draws}")
        set_fields(self, rank=rank)
        epsilon_parameter(self.epsilon)
        set_fields(self, epsilon=self.epsilon)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        independent(self.independent)
        check_fields(self, independent=flag)

    @classmethod
    def for_gamma(
        cls, *, rows: int, gamma: Exact, epsilon: Exact, spacing: Exact = 2.0**-20
    ) -> SampledSensitivity:
        """The fewest draws with 1 - rank/(draws + 1) <= gamma: ceil(1/gamma) - 1, all of them below s."""
        draws = max(1, math.ceil(1 / gamma_parameter(gamma)) - 1)
        return cls(rows=rows, draws=draws, rank=draws, epsilon=epsilon, spacing=spacing)

    @classmethod
    def for_confidence(
        cls, *, rows: int, gamma: Exact, confidence: Exact, epsilon: Exact, spacing: Exact = 2.0**-20
    ) -> SampledSensitivity:
        """The fewest draws after which the share of bad data is at most gamma with this confidence over the draws.

        (1 - gamma)^draws <= 1 - confidence.
        """
        g, miss = gamma_parameter(gamma), 1 - confidence_level(confidence)
        draws = max(1, math.ceil(upper(lambda: ball(miss).log() / (1 - ball(g)).log())))
        return cls(rows=rows, draws=draws, rank=draws, epsilon=epsilon, spacing=spacing)

    @property
    def _bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def _gamma(self) -> Fraction:
        return 1 - Fraction(self.rank, self.draws + 1)

    @property
    def _declared(self) -> tuple[str, ...]:
        return (INDEPENDENT_DRAWS, ORACLE_LAW)

    def exceeds(self, gamma: Exact) -> float:
        """The probability, over the draws, that the share of bad data is above gamma: at most Pr[Bin(m, 1-gamma) >=
        rank].
        """
        g, m = gamma_parameter(gamma), self.draws

        def tail() -> Any:
            total = ball(0)
            for j in range(self.rank, m + 1):
                total += ball(math.comb(m, j)) * (1 - ball(g)) ** j * ball(g) ** (m - j)
            return total

        return min(1.0, upper(tail))

    def noise(self, sensitivities: Sequence[Exact]) -> Laplace:
        """The noise, which is public as the sensitivities are."""
        found = sorted(_value(s) for s in sensitivities)
        if len(found) != self.draws:
            raise InvalidParameter(
                parameter="sensitivities", value=f"{len(found)} numbers", must=f"be {self.draws} sampled ones"
            )
        refuse_if(found[0] < 0, "sensitivities", "one below 0", "be at least 0")
        step = Fraction(self.spacing)
        # Rounding g to the grid adds a step, which also keeps the noise where the sampled ones are all 0 (ties).
        return Laplace.for_target(
            epsilon=self.epsilon, sensitivity=L1(found[self.rank - 1] + step), spacing=self.spacing
        )

    def release(
        self, value: Exact, sensitivities: Sequence[Exact], *, source: Source | None = None
    ) -> Released:
        """The noisy value of the statistic on the private rows."""
        return self.noise(sensitivities).release(grid_value(value, self.spacing), source=source)
