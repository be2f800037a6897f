"""The checker's answer: delta between two certified ends, whether a claim holds, and a witness if not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from tacit.coupled.best import BestSimulator
from tacit.coupled.mechanisms import Cell, FiniteMechanism, Simulator, ideal
from tacit.coupled.numbers import Level, ends, event, excess, log_interval, short, smallest_factor
from tacit.coupled.pairs import Secret
from tacit.coupled.priors import Prior
from tacit.exact.canonical import formerly
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval

__all__ = ["Found", "Verdict", "Witness"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Two distributions that a definition wants to be indistinguishable."""

    prior: str
    pair: str
    value: Any
    other: Any
    auxiliary: Any
    first: Any
    second: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A failure of a claim: an event that is too likely in one world, compared with the other.

    There may be several for the best simulator: every simulator fails at one of them, and `weight` is its share
    in the proof.
    """

    prior: str
    pair: str
    value: Any
    auxiliary: Any
    event: tuple[Any, ...]
    direction: str
    first: float
    second: float
    other: Any = None
    weight: float = 1.0

    def __str__(self) -> str:
        against = "" if self.other is None else f" against {self.other!r}"
        given = "" if self.auxiliary is None else f", auxiliary {self.auxiliary!r}"
        events = ", ".join(repr(t) for t in self.event[:6]) + (", ..." if len(self.event) > 6 else "")
        return (
            f"{self.pair}, value {self.value!r}{against}{given}, under '{self.prior}': "
            f"the event {{{events}}} has probability {self.first:.4g} {self.direction} {self.second:.4g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data; values and outputs in their printed form."""
        return {
            "prior": self.prior,
            "pair": self.pair,
            "value": repr(self.value),
            "other": None if self.other is None else repr(self.other),
            "auxiliary": None if self.auxiliary is None else repr(self.auxiliary),
            "event": [repr(t) for t in self.event],
            "direction": self.direction,
            "first": self.first,
            "second": self.second,
            "weight": self.weight,
        }

    record = formerly("record")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The smallest delta at one epsilon lies between `low` and `high`; they are equal if it is exact.

    `decided` is False if `low` is only 0, because no theorem bounds the delta of all simulators from below.
    """

    low: Fraction
    high: Fraction
    witnesses: tuple[Witness, ...] = ()
    decided: bool = True
    simulator: str = ""
    compared: int = 0

    @property
    def interval(self) -> Interval:
        """Both ends as floats, rounded outwards."""
        return ends(self.low, self.high)

    @property
    def exact(self) -> bool:
        """Whether both ends are the same rational."""
        return self.low == self.high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """One definition, one mechanism, one claim (epsilon, delta).

    `holds` is None if the certified ends do not decide. `epsilon` is the smallest valid one at the claimed
    delta, against the simulator. `epsilon_pair` is the smallest one between two private values with the same
    distribution of the rest, for somebody who knows which prior holds (None if no two values can be compared).
    """

    definition: str
    number: str
    claim_epsilon: str
    claim_delta: Fraction
    delta: Found
    epsilon: Interval | None
    epsilon_pair: Interval | None
    level: Level

    @property
    def holds(self) -> bool | None:
        """Does the claim hold? None if the ends leave it open."""
        if self.delta.high <= self.claim_delta:
            return True
        return False if self.delta.low > self.claim_delta else None

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """The witnesses against the claim. Empty if it holds."""
        return self.delta.witnesses if self.holds is False else ()

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data, with stable keys."""
        found = self.delta.interval
        return {
            "definition": self.definition,
            "number": self.number,
            "claim": {"epsilon": self.claim_epsilon, "delta": float(self.claim_delta)},
            "holds": self.holds,
            "delta_low": found.low,
            "delta_high": found.high,
            "delta_exact": short(self.delta.high, 60) if self.delta.exact else None,
            "decided_for_all_simulators": self.delta.decided,
            "simulator": self.delta.simulator,
            "compared": self.delta.compared,
            "epsilon": _pair(self.epsilon),
            "epsilon_pair": _pair(self.epsilon_pair),
            "witnesses": [w.to_dict() for w in self.witnesses],
        }

    record = formerly("record")


def _pair(found: Interval | None) -> list[float] | None:
    return None if found is None else [found.low, found.high]


def factor_interval(low: Fraction, high: Fraction | None) -> Interval:
    """ln of a factor between two ends; an upper end of None is infinite."""
    return Interval(low=log_interval(low).low, high=float("inf") if high is None else log_interval(high).high)


def worst_first(witnesses: Sequence[Witness], most: int = 12) -> tuple[Witness, ...]:
    """The weightiest ones."""
    return tuple(sorted(witnesses, key=lambda w: -w.weight)[:most])


# From cells to numbers: what is compared under each definition, its exact delta and epsilon, and witnesses.

REAL_IDEAL = "in the real world, and in the ideal one"
IDEAL_REAL = "in the ideal world, and in the real one"
TWO_VALUES = "given the first, and given the second"
TURNED = "given the second, and given the first"


def against_simulator(cells: Sequence[Cell], simulator: Simulator) -> Iterator[Comparison]:
    """Real against ideal, in every cell (Def. 5.5)."""
    for c in cells:
        yield Comparison(
            prior=c.prior,
            pair=c.pair,
            value=c.value,
            other=None,
            auxiliary=c.auxiliary,
            first=c.real,
            second=ideal(c, simulator),
        )


def both_values(cells: Sequence[Cell]) -> Iterator[Comparison]:
    """Any two values under one prior and auxiliary (Def. 5.7), even if other things differ between them."""
    groups: dict[tuple[str, str, Any], list[Cell]] = {}
    for c in cells:
        groups.setdefault((c.prior, c.pair, c.auxiliary), []).append(c)
    yield from _two_of(groups.values())


def between_values(cells: Sequence[Cell]) -> Iterator[Comparison]:
    """Two private values for which alt(X) has the same distribution: replace-one, with everything else equal.

    Under all point priors these are the neighbours of differential privacy; under independent rows any two values.
    """
    groups: dict[tuple[str, Any, Any], list[Cell]] = {}
    for c in cells:
        groups.setdefault((c.pair, c.auxiliary, frozenset(c.scrubbed.items())), []).append(c)
    yield from _two_of(groups.values())


def _two_of(groups: Any) -> Iterator[Comparison]:
    for members in groups:
        for a, b in itertools.combinations(members, 2):
            yield Comparison(
                prior=a.prior if a.prior == b.prior else f"{a.prior} / {b.prior}",
                pair=a.pair,
                value=a.value,
                other=b.value,
                auxiliary=a.auxiliary,
                first=a.real,
                second=b.real,
            )


def of_secrets(
    mechanism: FiniteMechanism, priors: Sequence[Prior], secrets: Sequence[Secret]
) -> Iterator[Comparison]:
    """sec(X) = 0 against sec(X) = 1, given each auxiliary value under which both can be (Def. 5.8)."""
    for prior, secret in itertools.product(priors, secrets):
        sums: dict[tuple[Any, int], dict[Any, Fraction]] = {}
        for (x, z), weight in prior.weights.items():
            s = secret(x)
            if s is None:
                continue
            row = sums.setdefault((z, s), {})
            for t, p in mechanism[x].items():
                row[t] = row.get(t, Fraction(0)) + weight * p
        for z in dict.fromkeys(z for z, _ in sums):
            if (z, 0) in sums and (z, 1) in sums:
                first, second = (_normal(sums[z, s]) for s in (0, 1))
                yield Comparison(
                    prior=prior.name,
                    pair=secret.name,
                    value=0,
                    other=1,
                    auxiliary=z,
                    first=first,
                    second=second,
                )


def _normal(row: dict[Any, Fraction]) -> dict[Any, Fraction]:
    whole = sum(row.values(), Fraction(0))
    return {t: w / whole for t, w in row.items()}


def found_delta(comparisons: Iterator[Comparison], level: Level, *, simulator: str = "") -> Found:
    """The exact largest hockey-stick divergence over all comparisons, with the event where it is reached."""
    worst, best_low = Fraction(-1), Fraction(0)
    witness: Witness | None = None
    count = 0
    for c in comparisons:
        count += 1
        for turned in (False, True):
            p, q = (c.second, c.first) if turned else (c.first, c.second)
            high = excess(p, q, level.low)
            if high > worst:
                worst = high
                witness = _witness(c, p, q, level, turned)
            if high > best_low:
                best_low = max(best_low, high if level.exact else excess(p, q, level.high))
    if witness is None:
        return Found(low=Fraction(0), high=Fraction(0), simulator=simulator)
    return Found(low=best_low, high=worst, witnesses=(witness,), simulator=simulator, compared=count)


def _witness(c: Comparison, p: Any, q: Any, level: Level, turned: bool) -> Witness:
    where = event(p, q, level.high)
    return Witness(
        prior=c.prior,
        pair=c.pair,
        value=c.value,
        other=c.other,
        auxiliary=c.auxiliary,
        event=where,
        direction=(
            (IDEAL_REAL if turned else REAL_IDEAL) if c.other is None else (TURNED if turned else TWO_VALUES)
        ),
        first=float(sum((p[t] for t in where), Fraction(0))),
        second=float(sum((q.get(t, Fraction(0)) for t in where), Fraction(0))),
    )


def found_factor(comparisons: Iterator[Comparison], delta: Fraction) -> tuple[int, Fraction | None]:
    """The number of comparisons, and the exact smallest e^epsilon for all of them (None: no epsilon is enough)."""
    most, count = Fraction(1), 0
    unbounded = False
    for c in comparisons:
        count += 1
        if unbounded:
            continue
        found = [smallest_factor(c.first, c.second, delta), smallest_factor(c.second, c.first, delta)]
        if None in found:
            unbounded = True
        else:
            most = max(most, *(f for f in found if f is not None))
    return count, None if unbounded else most


def found_best(best: BestSimulator, level: Level, count: int) -> Found:
    """The best simulator's delta; the witnesses are the cells and events of the proof that no simulator does better."""
    witnesses = []
    if best.solved is not None and best.block is not None:
        totals = _shares(best)
        for (c, side), weight in totals.items():
            cell = best.block.cells[c]
            used = best.solved.backward if side else best.solved.forward
            heaviest = max(w for (k, _), w in used.items() if k == c)
            where = tuple(t for (k, t), w in used.items() if k == c and 2 * w >= heaviest)
            shadow = ideal(cell, best.simulator)
            first, second = (
                sum((p.get(t, Fraction(0)) for t in where), Fraction(0))
                for p in ((shadow, cell.real) if side else (cell.real, shadow))
            )
            witnesses.append(
                Witness(
                    prior=cell.prior,
                    pair=cell.pair,
                    value=cell.value,
                    auxiliary=cell.auxiliary,
                    event=where,
                    direction=IDEAL_REAL if side else REAL_IDEAL,
                    first=float(first),
                    second=float(second),
                    weight=float(weight),
                )
            )
    return Found(
        low=best.low,
        high=best.high,
        witnesses=worst_first(witnesses),
        simulator="the best simulator",
        compared=count,
    )


def _shares(best: BestSimulator) -> dict[tuple[int, int], Fraction]:
    assert best.solved is not None
    most: dict[tuple[int, int], Fraction] = {}
    for side, weights in enumerate((best.solved.forward, best.solved.backward)):
        for (c, _), weight in weights.items():
            most[c, side] = max(most.get((c, side), Fraction(0)), weight)
    scale = sum(most.values(), Fraction(0))
    return {key: weight / scale for key, weight in most.items()} if scale else {}
