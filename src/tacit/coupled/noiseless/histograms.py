"""Truncated histograms (Groce 2014, 6.2): exact counts from a threshold on, 0 below, for a random sample.

The simulator is the truncated histogram without the row. Cells are independent given the row, so that one cell
decides: `thresholds` has its exact delta, worst over the cell's mean. Samples of a fixed size need a few rows
discarded at random (`discarding`). Beside it: the same table as differential privacy of the population, for somebody
who draws the sample himself in secret (Gehrke, Hay, Lui, Pass 2012), and crowd-blending privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.coupled.noiseless.answer import ExactAnswer, delta_out_of_reach
from tacit.coupled.noiseless.discarding import FixedSize
from tacit.coupled.noiseless.row_laws import as_typed
from tacit.coupled.noiseless.search import cell_delta, sampled_delta, smallest_epsilon, smallest_threshold
from tacit.coupled.noiseless.sums import ALONE
from tacit.coupled.noiseless.thresholds import Binomial, Poisson
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.balls import ball, upper
from tacit.exact.checks import non_negative, positive, probability, whole
from tacit.exact.rounding import Interval, down, product
from tacit.guarantees.bounds import Approximate
from tacit.guarantees.guarantee import Guarantee
from tacit.guarantees.units import Neighbours
from tacit.guarantees.units import rows as each_row

__all__ = ["SampledHistogram", "sample_then_truncate", "sampling_of", "truncated_histogram"]

SAMPLINGS = ("binomial", "fixed", "poisson")
SIMULATOR = "the truncated histogram without the row"
SIZE_SHARE = Fraction(1, 4)
SIZE_DELTA_SHARE = 0.1


def sampling_of(sampling: str, rate: object = None) -> Poisson | Binomial:
    """Poisson, or binomial with a rate below 1."""
    if sampling == "poisson":
        if rate is not None:
            raise InvalidParameter(parameter="rate", value="given", must="be left out for Poisson sampling")
        return Poisson()
    if sampling == "binomial":
        if rate is None:
            raise InvalidParameter(
                parameter="rate",
                value=None,
                must="be the probability with which a member of the population is sampled",
                hint="a bound on it is enough: smaller rates are covered",
            )
        share = as_typed("rate", rate)
        if not 0 < share < 1:
            raise InvalidParameter(
                parameter="rate",
                value=float(share),
                must="lie above 0 and below 1",
                hint="of a complete count everything may be known but one row, and no threshold is safe",
            )
        return Binomial(rate=share)
    raise UnknownName(what="sampling", name=str(sampling), known=SAMPLINGS)


def truncated_histogram(
    *,
    sampling: str,
    epsilon: float | None = None,
    delta: float | None = None,
    threshold: int | None = None,
    rate: object = None,
    known_rows: int = 0,
    n: int | None = None,
    size_epsilon: float | None = None,
) -> ExactAnswer:
    """Two of epsilon, delta and threshold give the third: the smallest that is safe.

    `known_rows` is how many sampled members of one cell somebody may know of. For `sampling="fixed"` also the number
    `n` of rows, and `size_epsilon`, the part of epsilon that hides how many rows were kept (a quarter if left out).
    """
    if sum(v is None for v in (epsilon, delta, threshold)) != 1:
        raise InvalidParameter(
            parameter="epsilon, delta, threshold",
            value=sum(v is not None for v in (epsilon, delta, threshold)),
            must="be two of the three; the third is computed",
        )
    e = None if epsilon is None else non_negative("epsilon", epsilon)
    d = None if delta is None else _delta(delta)
    k = None if threshold is None else whole("threshold", threshold)
    known = whole("known_rows", known_rows, least=0)
    if sampling == "fixed":
        return _fixed(epsilon=e, delta=d, threshold=k, rate=rate, known=known, n=n, size_epsilon=size_epsilon)
    for name, value in (("n", n), ("size_epsilon", size_epsilon)):
        if value is not None:
            raise InvalidParameter(parameter=name, value=value, must="be left out, except for a fixed size")
    law = sampling_of(sampling, rate)
    delta_at = cell_delta(law)
    if k is None:
        assert e is not None
        assert d is not None
        k = smallest_threshold(delta_at, epsilon=e, delta=d) + known
    free = k - known
    if free < 2:
        raise delta_out_of_reach(
            "truncated histogram", 0.0 if d is None else d, 1.0,
            hint=f"the threshold must be at least {known + 2}: below, one row beside {known} known ones shows",
            ours=True,
        )  # fmt: skip
    if e is None:
        assert d is not None
        e = _epsilon(delta_at, free, d, float(law.floor(free)))
    if d is None:
        d = delta_at(free, e).high
    return _answer(
        law=law,
        sampling=sampling,
        threshold=k,
        known=known,
        epsilon=e,
        delta=d,
        found=delta_at(free, e),
        pair=_pair(delta_at, free, d),
    )


def _delta(value: object) -> float:
    found = probability("delta", value, below_one=True)
    if found == 0:
        raise InvalidParameter(
            parameter="delta",
            value=0.0,
            must="be above 0: an empty cell that gets enough rows by chance shows for certain who is in it",
            hint="any positive delta has a threshold",
        )
    return found


def _epsilon(delta_at: Any, threshold: int, delta: float, floor: float) -> float:
    found = smallest_epsilon(lambda e: delta_at(threshold, e), delta=delta)
    if found is None:
        smallest = max(floor, delta_at(threshold, 100.0).high)
        raise delta_out_of_reach(
            "truncated histogram",
            delta,
            smallest,
            hint="a larger threshold has a smaller one; or add noise",
            ours=True,
        )
    return found


def _pair(delta_at: Any, threshold: int, delta: float) -> float | None:
    """Between two cells of one row: (2 e, (1 + e^e) delta_k(e)) by `simulator-to-pair`, at the smallest such e."""

    def wider(e: float) -> Interval:
        found = delta_at(threshold, e)
        return Interval(low=found.low, high=upper(lambda: (1 + ball(e).exp()) * ball(found.high)))

    found = smallest_epsilon(wider, delta=delta)
    return None if found is None else product(2.0, found).high


def _answer(
    *,
    law: Poisson | Binomial,
    sampling: str,
    threshold: int,
    known: int,
    epsilon: float,
    delta: float,
    found: Interval,
    pair: float | None,
) -> ExactAnswer:
    details: dict[str, Any] = {
        "sampling": sampling,
        "rate": float(law.rate) if isinstance(law, Binomial) else None,
        "known_rows": known,
        "delta_at_threshold": found.high,
        "crowd_blending": {"crowd": threshold, "epsilon": 0.0},
        "population": None,
    }
    if isinstance(law, Binomial):
        beside = sample_then_truncate(rate=law.rate, epsilon=epsilon, delta=delta)
        details["population"] = beside.record
    knows = (
        "nobody knows of any other person whether they are in the sample"
        if not known
        else f"nobody knows of more than {known} other people of one cell that they are in the sample"
    )
    return ExactAnswer(
        statistic=f"histogram with counts below {threshold} replaced by 0",
        epsilon=epsilon,
        epsilon_pair=pair,
        delta=delta,
        assumptions=(law.words(), knows, "the cells were fixed before the rows were seen", ALONE),
        theorem="truncated-histogram",
        simulator=SIMULATOR,
        rows=None,
        unknown_rows=1,
        family=f"{law.words()}; at most {known} sampled rows of a cell are known",
        threshold=threshold,
        details=details,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledHistogram:
    """Sample at a rate in secret, count, hide counts below the threshold: (epsilon, delta)-DP of the population."""

    rate: Fraction
    threshold: int
    epsilon: float
    delta: float

    @property
    def guarantee(self) -> Guarantee:
        """Differential privacy, whatever the population is; its unit is a row of the population."""
        return Guarantee(
            bound=Approximate(epsilon=self.epsilon, delta=self.delta),
            unit=each_row(neighbours=Neighbours.ADD_OR_REMOVE),
        )

    @property
    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "threshold": self.threshold,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "guarantee": str(self.guarantee),
            "theorem": "sample-then-truncate",
        }


def sample_then_truncate(*, rate: object, epsilon: float, delta: float) -> SampledHistogram:
    """The smallest threshold that makes it (epsilon, delta)-DP; theorem `sample-then-truncate`.

    The database is the population; the sample must be drawn by whoever releases, with exactly this rate, and stay
    secret: what is protected is not that somebody was sampled but that he is in the population.
    """
    law = sampling_of("binomial", rate)
    assert isinstance(law, Binomial)
    e, d = positive("epsilon", epsilon), _delta(delta)
    found = smallest_threshold(sampled_delta(law), epsilon=e, delta=d)
    return SampledHistogram(rate=law.rate, threshold=found, epsilon=e, delta=d)


def cell_part(epsilon: float, size: float) -> float:
    """What is left of epsilon for a cell, rounded down: the two parts never add up to more."""
    return down(Fraction(epsilon) - Fraction(size))


def _fixed(
    *,
    epsilon: float | None,
    delta: float | None,
    threshold: int | None,
    rate: object,
    known: int,
    n: int | None,
    size_epsilon: float | None,
) -> ExactAnswer:
    """A sample of fixed size with random discarding: epsilon and delta are given, the threshold is found."""
    if rate is not None or known:
        raise InvalidParameter(
            parameter="rate" if rate is not None else "known_rows",
            value="given",
            must="be left out for a sample of fixed size",
            hint="the theorem is about independent rows of which none is known",
        )
    if n is None or epsilon is None or delta is None or threshold is not None:
        raise InvalidParameter(
            parameter="n, epsilon, delta",
            value=None if n is None else n,
            must="all be given for a sample of fixed size; the threshold is computed",
        )
    if epsilon == 0:
        raise InvalidParameter(parameter="epsilon", value=0.0, must="be above 0 for a sample of fixed size")
    size = (
        float(Fraction(epsilon) * SIZE_SHARE)
        if size_epsilon is None
        else positive("size_epsilon", size_epsilon)
    )
    if size >= epsilon:
        raise InvalidParameter(parameter="size_epsilon", value=size, must="be below epsilon")
    kept = FixedSize.hiding(rows=n, size_epsilon=size, delta=SIZE_DELTA_SHARE * delta)
    cell = cell_part(epsilon, size)
    left = down(Fraction(delta) - Fraction(kept.size_delta.high))
    found = smallest_threshold(cell_delta(Poisson()), epsilon=cell, delta=left)
    while (reached := kept.delta(found, cell, enough=delta)).high > delta:
        found += 1
    return ExactAnswer(
        statistic=f"histogram of the kept rows with counts below {found} replaced by 0",
        epsilon=epsilon,
        epsilon_pair=None,
        delta=delta,
        assumptions=(
            f"the {kept.rows} rows are independent draws of one law, whatever it is",
            "nobody knows any other row",
            f"up to {kept.discards} rows are discarded at random first, as many as theorem "
            "truncated-histogram-fixed-size says, and nobody learns how many or which",
            "the cells were fixed before the rows were seen",
            ALONE,
        ),
        theorem="truncated-histogram-fixed-size",
        simulator="the same, discarding included, without the row",
        rows=kept.rows,
        unknown_rows=kept.rows,
        family="independent rows of one law, whatever it is",
        threshold=found,
        details={
            "sampling": "fixed",
            "discards": kept.discards,
            "size_epsilon": size,
            "cell_epsilon": cell,
            "size_delta": kept.size_delta.high,
            "delta_at_threshold": reached.high,
            "crowd_blending": {"crowd": found, "epsilon": 0.0},
        },
    )
