"""A training run of DP-SGD from its published settings: records, batch size, epochs and noise.

Each step draws a batch, sums the gradients, each clipped to a norm, and adds Gaussian noise with noise_std =
noise_multiplier * clipping norm. The account is that of `steps` sampled Gaussian releases.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tacit.accounting.accountants import Account, account
from tacit.accounting.calibrate import calibrate
from tacit.accounting.events import (
    Event,
    GaussianEvent,
    PoissonSampledEvent,
    RepeatedEvent,
    SampledWithoutReplacementEvent,
)
from tacit.errors import InvalidParameter, NoLaw, UnknownName
from tacit.exact.checks import Numbers, each, how_many, is_number, positive, set_fields, text
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import down, up
from tacit.guarantees.units import Neighbours

SAMPLING = ("poisson", "without_replacement")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """`steps` batches of a mean size of `batch_size` out of `records`, each released with Gaussian noise.

    `noise_multiplier` is noise_std over the clipping norm. Poisson sampling takes each record into each batch with
    probability batch_size / records, and is accounted for add-or-remove neighbours; batches of a fixed size, drawn
    without replacement and anew at each step, for replace-one, where a replaced record moves the sum by twice the norm.
    """

    records: int
    batch_size: int
    steps: int
    noise_multiplier: float
    sampling: str = "poisson"

    def __post_init__(self) -> None:
        set_fields(
            self,
            records=how_many("records", self.records),
            batch_size=how_many("batch_size", self.batch_size),
            steps=how_many("steps", self.steps),
            noise_multiplier=positive("noise_multiplier", self.noise_multiplier),
            sampling=_sampling(self.sampling),
        )
        if self.batch_size > self.records:
            raise InvalidParameter(
                parameter="batch_size", value=self.batch_size, must=f"be at most the records, {self.records}"
            )

    @property
    def sampling_rate(self) -> float:
        """batch_size / records, rounded up."""
        return up(Fraction(self.batch_size, self.records))

    @property
    def epochs(self) -> float:
        """The number of passes through the records: steps * batch_size / records."""
        return self.steps * self.batch_size / self.records

    @property
    def neighbours(self) -> Neighbours:
        """The relation for which this sampling has a theorem."""
        return Neighbours.ADD_OR_REMOVE if self.sampling == "poisson" else Neighbours.REPLACE_ONE

    @property
    def event(self) -> Event:
        """The run as an event, to be composed with others."""
        if self.sampling == "poisson":
            noise = GaussianEvent(noise_multiplier=self.noise_multiplier)
            step: PoissonSampledEvent | SampledWithoutReplacementEvent = PoissonSampledEvent(
                event=noise, sampling_rate=self.sampling_rate
            )
        else:
            halved = GaussianEvent(noise_multiplier=down(Fraction(self.noise_multiplier) / 2))
            step = SampledWithoutReplacementEvent(event=halved, sampling_rate=self.sampling_rate)
        return RepeatedEvent(event=step, times=self.steps)

    def account(
        self,
        *,
        delta: float | None = None,
        epsilon: float | None = None,
        neighbours: str | Neighbours | None = None,
    ) -> Account:
        """The cost of the run at a delta, or at an epsilon, with both certified ends."""
        relation = self.neighbours if neighbours is None else neighbours
        return account(self.event, delta=delta, epsilon=epsilon, neighbours=relation)

    def epsilon(self, delta: Numbers) -> Numbers:
        """The certified upper end of epsilon at this delta; an array of deltas gives the array of epsilons."""
        return each("delta", delta, lambda d: self.account(delta=d).epsilon.high)  # type: ignore[no-any-return]

    def delta(self, epsilon: Numbers) -> Numbers:
        """The certified upper end of delta at this epsilon, or at each of an array."""
        return each("epsilon", epsilon, lambda e: self.account(epsilon=e).delta.high)  # type: ignore[no-any-return]

    def describe(self) -> str:
        """The run in one sentence."""
        how = "Poisson-sampled" if self.sampling == "poisson" else "drawn without replacement"
        return (
            f"{self.steps:,} steps of batches of {self.batch_size:,} out of {self.records:,} records, {how}: "
            f"sampling rate {self.sampling_rate:.6g}, {self.epochs:g} epochs"
        )


def dp_sgd(
    *,
    records: int,
    batch_size: int,
    epochs: float | None = None,
    steps: int | None = None,
    noise_multiplier: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    sampling: str = "poisson",
) -> TrainingRun:
    """A training run by DP-SGD, with the given noise or with the least noise for a target (epsilon, delta).

    Rounds the number of batches up: 60 epochs of 60,000 records in batches of 256 are 14,062.5 batches, counted
    as 14,063 steps.
    """
    count = steps_of(records=records, batch_size=batch_size, epochs=epochs, steps=steps)
    kind = _sampling(sampling)
    targeted = epsilon is not None or delta is not None
    if (noise_multiplier is None) != targeted or (targeted and None in (epsilon, delta)):
        raise InvalidParameter(
            parameter="noise_multiplier",
            value=noise_multiplier,
            must="be given, or a target epsilon and delta instead",
            hint="the cost of a run with this noise is dp_sgd(...).account(delta=...)",
        )

    def run(noise: float) -> TrainingRun:
        return TrainingRun(
            records=records, batch_size=batch_size, steps=count, noise_multiplier=noise, sampling=kind
        )

    if noise_multiplier is not None:
        return run(noise_multiplier)
    assert epsilon is not None
    assert delta is not None
    relation = run(1.0).neighbours
    found = calibrate(lambda v: run(v).event, epsilon=epsilon, delta=delta, neighbours=relation)
    return run(found.value)


def steps_of(*, records: int, batch_size: int, epochs: float | None, steps: int | None) -> int:
    """The number of batches. Epochs are rounded up to whole batches."""
    if (epochs is None) == (steps is None):
        raise InvalidParameter(
            parameter="epochs and steps", value=(epochs, steps), must="be given one at a time"
        )
    if steps is not None:
        return how_many("steps", steps)
    whole, batch = how_many("records", records), how_many("batch_size", batch_size)
    length = positive("epochs", epochs)
    # 0.1 as it is written, not the float a little above it, which would count one step more.
    exact = Fraction(repr(length)) if is_number(epochs) and not isinstance(epochs, int) else Fraction(length)
    return how_many("steps", math.ceil(exact * whole / batch))


def _sampling(given: str) -> str:
    found = text("sampling", given)
    if found in ("shuffled", "shuffle"):
        raise NoLaw(
            operation="DP-SGD over shuffled batches, accounted as Poisson sampling",
            reason="in a shuffled epoch each record is in exactly one batch: the batches are not independent samples",
            counterexample="all gradients -1 and one +1: the largest of an epoch's noisy sums gives the record away "
            "more often than under Poisson sampling (Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha, Zhang 2024)",
            hint="sample by Poisson, or count an epoch of disjoint batches as one release: "
            "'gaussian noise_multiplier=... times=epochs'",
        )
    if found not in SAMPLING:
        raise UnknownName(what="kind of sampling", name=found, known=SAMPLING)
    return found
