"""The definitions of the family, each as a type that can be checked: Groce 2014, Def. 5.1-5.5 and 5.7-5.9.

    SimulationDP             5.1   all point priors, priv = a row, alt = the others; some simulator
    InferenceDistributional  5.2   posteriors about a row, for a class of priors
    Distributional           5.3   some simulator, priv = a row, alt = the others, for a class of priors
    InferenceCoupledWorlds   5.4   posteriors about priv(X)
    CoupledWorlds            5.5   some simulator that sees alt(X)
    Noiseless                5.7   two values of a row under one prior (Bhaskar et al. 2011, with this delta)
    Pufferfish               5.8   sec(X) = 0 against sec(X) = 1                (in definitions.py)
    InferencePufferfish      5.9   the belief about sec(X) before and after     (in definitions.py)

`check` answers with a `Verdict`. The caller gives a simulator, or tacit finds the best one. For the inference-based
forms the best one is known only if alt(X) says nothing about priv(X) given Z. Otherwise tacit tries several, and a
claim may stay open.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar

from tacit.coupled.best import best_delta, best_factor
from tacit.coupled.mechanisms import Cell, FiniteMechanism, Simulator, cells, check_pairs, check_priors, scrub
from tacit.coupled.numbers import Distribution, Level, as_probability, distance, ends, hashable
from tacit.coupled.pairs import Pair, Secret, row_pairs
from tacit.coupled.priors import Prior, point_priors
from tacit.coupled.verdict import (
    Comparison,
    Found,
    Verdict,
    Witness,
    against_simulator,
    between_values,
    both_values,
    factor_interval,
    found_best,
    found_delta,
    found_factor,
    of_secrets,
)
from tacit.errors import EmptyComposition, InvalidParameter, NotCertified
from tacit.exact.checks import check_fields, instance, listed, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval

__all__ = [
    "CoupledWorlds",
    "Definition",
    "Distributional",
    "InferenceCoupledWorlds",
    "InferenceDistributional",
    "InferencePufferfish",
    "Noiseless",
    "Pufferfish",
    "SimulationDP",
]

# Inference-based forms, by exact posteriors: what somebody believes after the release, in both worlds.
#
# A bad outcome (t, z) of the release is one after which the belief about priv(X) differs from the one in the ideal
# world by more than (epsilon, delta). The claim holds if bad outcomes have probability at most delta; the smallest
# such delta is found exactly, since the probability that the difference is above a threshold falls in steps.

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """After one outcome: its probability, and the distance of the beliefs (1 if the ideal one is undefined)."""

    prior: str
    pair: str
    output: Any
    auxiliary: Any
    probability: Fraction
    apart: Fraction


def crossing(beliefs: Iterable[Belief]) -> Fraction:
    """The smallest d such that beliefs more than d apart have probability at most d."""
    steps: dict[Fraction, Fraction] = {}
    for b in beliefs:
        steps[b.apart] = steps.get(b.apart, ZERO) + b.probability
    above = sum(steps.values(), ZERO)
    best = ONE
    for level in sorted({ZERO, *steps}):
        above -= steps.get(level, ZERO)
        # For thresholds from this level up to the next one the probability of being above is `above`.
        best = min(best, max(level, above))
    return best


def coupled_beliefs(
    mechanism: FiniteMechanism,
    prior: Prior,
    pairs: Sequence[Pair],
    simulator: Simulator | None,
    factor: Fraction,
) -> list[Belief]:
    """For each (t, z): the largest difference over the pairs (Def. 5.4 asks for all pairs at once).

    Without a simulator the ideal belief is the prior one, given z: see `free_of_simulators`.
    """
    worst: dict[tuple[Any, Any], Belief] = {}
    for pair in pairs:
        real: dict[tuple[Any, Any], dict[Any, Fraction]] = {}
        other: dict[tuple[Any, Any], dict[Any, Fraction]] = {}
        before: dict[Any, dict[Any, Fraction]] = {}
        for (x, z), weight in prior.weights.items():
            v = hashable("priv", pair.priv(x))
            _add(before.setdefault(z, {}), v, weight)
            for t, p in mechanism[x].items():
                _add(real.setdefault((t, z), {}), v, weight * p)
            if simulator is not None:
                for a, w in scrub(pair, x).items():
                    for t, p in simulator(pair.name, a).items():
                        _add(other.setdefault((t, z), {}), v, weight * w * p)
        for (t, z), row in real.items():
            chance = sum(row.values(), ZERO)
            shadow = before[z] if simulator is None else other.get((t, z))
            apart = ONE if shadow is None else distance(_normal(row), _normal(shadow), factor)
            known = worst.get((t, z))
            if known is None or apart > known.apart:
                worst[t, z] = Belief(
                    prior=prior.name, pair=pair.name, output=t, auxiliary=z, probability=chance, apart=apart
                )
    return list(worst.values())


def free_of_simulators(mechanism: FiniteMechanism, priors: Sequence[Prior], pairs: Sequence[Pair]) -> bool:
    """Is alt(X) independent of priv(X) given Z, under every prior and for every pair?

    Then no simulator's output says anything about priv(X). The ideal belief is the prior one given Z, for every
    simulator that can give every output. So the checker decides for all simulators at once.
    """
    first: dict[tuple[str, str, Any], Distribution] = {}
    for cell in cells(mechanism, priors, pairs):
        key = (cell.prior, cell.pair, cell.auxiliary)
        if dict(first.setdefault(key, cell.scrubbed)) != dict(cell.scrubbed):
            return False
    return True


def pufferfish_beliefs(
    mechanism: FiniteMechanism, prior: Prior, secret: Secret, factor: Fraction
) -> dict[Any, list[Belief]]:
    """For each z: the posterior belief about the secret after t, against the prior one, weighted by Pr[t | z] (Def.
    5.9).
    """
    before: dict[Any, dict[Any, Fraction]] = {}
    after: dict[Any, dict[Any, dict[Any, Fraction]]] = {}
    for (x, z), weight in prior.weights.items():
        s = secret(x)
        _add(before.setdefault(z, {}), s, weight)
        for t, p in mechanism[x].items():
            _add(after.setdefault(z, {}).setdefault(t, {}), s, weight * p)
    found: dict[Any, list[Belief]] = {}
    for z, rows in after.items():
        whole = sum(before[z].values(), ZERO)
        was = _normal(before[z])
        found[z] = [
            Belief(
                prior=prior.name,
                pair=secret.name,
                output=t,
                auxiliary=z,
                probability=sum(row.values(), ZERO) / whole,
                apart=distance(_normal(row), was, factor),
            )
            for t, row in rows.items()
        ]
    return found


def _add(row: dict[Any, Fraction], key: Any, weight: Fraction) -> None:
    row[key] = row.get(key, ZERO) + weight


def _normal(row: dict[Any, Fraction]) -> Distribution:
    whole = sum(row.values(), ZERO)
    return {key: weight / whole for key, weight in row.items()}


# The original delta of noiseless privacy: the probability of values that are left out (Bhaskar et al. 2011).
#
# There epsilon-indistinguishability (delta = 0) must hold for all values of a row except for a set of probability
# delta; in the thesis's Def. 5.7 all values count, and the divergence may be delta. Neither implies the other.

MOST_VALUES = 24


def left_out(cells: Sequence[Cell], factor: Fraction) -> Fraction:
    """The least probability, given z, of a set of values after whose removal all are indistinguishable; the worst
    case.
    """
    groups: dict[tuple[str, str, Any], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.prior, cell.pair, cell.auxiliary), []).append(cell)
    return max((_cover(members, factor) for members in groups.values()), default=Fraction(0))


def _cover(members: Sequence[Cell], factor: Fraction) -> Fraction:
    """The lightest set of values that meets every distinguishable pair."""
    whole = sum((c.probability for c in members), Fraction(0))
    clash = [
        {j for j, b in enumerate(members) if j != i and distance(a.real, b.real, factor) > 0}
        for i, a in enumerate(members)
    ]
    open_values = [i for i, others in enumerate(clash) if others]
    if len(open_values) > MOST_VALUES:
        raise NotCertified(
            what="the original delta of noiseless privacy",
            reason=f"more than {MOST_VALUES} values of a row can be distinguished from others",
            hint="merge values, or use the delta of Def. 5.7",
        )
    weights = [c.probability / whole for c in members]

    def least(left: frozenset[int]) -> Fraction:
        busy = [i for i in left if clash[i] & left]
        if not busy:
            return Fraction(0)
        # The value with most clashes is left out, or else all that clash with it are.
        i = max(busy, key=lambda k: len(clash[k] & left))
        others = clash[i] & left
        return min(
            weights[i] + least(left - {i}),
            sum((weights[j] for j in others), Fraction(0)) + least(left - others - {i}),
        )

    return least(frozenset(open_values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Base of all: the smallest delta at an epsilon, the smallest epsilon at a delta, a verdict on a claim."""

    title: ClassVar[str] = ""
    number: ClassVar[str] = ""

    def delta(
        self, mechanism: FiniteMechanism, *, epsilon: object, simulator: Simulator | None = None
    ) -> Found:
        """The smallest delta at this epsilon, between two certified ends."""
        raise InvalidParameter(parameter="definition", value=type(self).__name__, must="be one of the family")

    def epsilon(
        self, mechanism: FiniteMechanism, *, delta: object = 0, simulator: Simulator | None = None
    ) -> Interval | None:
        """The smallest epsilon at this delta; infinite above if no epsilon is enough; None if it is not computed."""
        return None

    def epsilon_pair(self, mechanism: FiniteMechanism, *, delta: object = 0) -> Interval | None:
        """The smallest epsilon between two values of the private part, with the rest distributed alike."""
        return None

    def check(
        self,
        mechanism: FiniteMechanism,
        *,
        epsilon: object,
        delta: object = 0,
        simulator: Simulator | None = None,
    ) -> Verdict:
        """Is the mechanism (epsilon, delta)-private by this definition? With a witness if not."""
        level, claimed = Level.of(epsilon), as_probability("delta", delta)
        return Verdict(
            definition=self.title,
            number=self.number,
            claim_epsilon=level.epsilon,
            claim_delta=claimed,
            delta=self.delta(mechanism, epsilon=level, simulator=simulator),
            epsilon=self.epsilon(mechanism, delta=claimed, simulator=simulator),
            epsilon_pair=self.epsilon_pair(mechanism, delta=claimed),
            level=level,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CoupledWorlds(Definition):
    """Def. 5.5: F(X) given priv(X) = v, Z = z is like Sim(alt(X)) given the same, for one simulator and all priors."""

    priors: tuple[Prior, ...] = field(hash=False)
    pairs: tuple[Pair, ...]

    title: ClassVar[str] = "coupled-worlds privacy"
    number: ClassVar[str] = "Def. 5.5"

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", check_priors(self.priors))
        object.__setattr__(self, "pairs", check_pairs(self.pairs))

    def cells(self, mechanism: FiniteMechanism) -> list[Cell]:
        """All that is compared."""
        return cells(mechanism, self.priors, self.pairs)

    def delta(
        self, mechanism: FiniteMechanism, *, epsilon: object, simulator: Simulator | None = None
    ) -> Found:
        level, parts = Level.of(epsilon), self.cells(mechanism)
        if simulator is None:
            return found_best(best_delta(parts, level), level, len(parts))
        _a_simulator(simulator)
        return found_delta(against_simulator(parts, simulator), level, simulator=simulator.name)

    def epsilon(
        self, mechanism: FiniteMechanism, *, delta: object = 0, simulator: Simulator | None = None
    ) -> Interval | None:
        parts, most = self.cells(mechanism), as_probability("delta", delta)
        if simulator is None:
            return factor_interval(*best_factor(parts, most))
        return pair_interval(against_simulator(parts, _a_simulator(simulator)), most)

    def epsilon_pair(self, mechanism: FiniteMechanism, *, delta: object = 0) -> Interval | None:
        return pair_interval(between_values(self.cells(mechanism)), as_probability("delta", delta))

    def simulator(self, mechanism: FiniteMechanism, *, epsilon: object) -> Simulator:
        """The best simulator at this epsilon."""
        return best_delta(self.cells(mechanism), Level.of(epsilon)).simulator


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributional(CoupledWorlds):
    """Def. 5.3: coupled worlds with priv = a row and alt = the other rows, for every row."""

    pairs: tuple[Pair, ...] = ()

    title: ClassVar[str] = "distributional differential privacy"
    number: ClassVar[str] = "Def. 5.3"

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", check_priors(self.priors))
        object.__setattr__(self, "pairs", _rows_of(self.priors, self.pairs))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationDP(CoupledWorlds):
    """Def. 5.1: some simulator, for every data set with this number of rows and these values, and every row."""

    values: tuple[Any, ...]
    rows: int
    priors: tuple[Prior, ...] = field(default=(), hash=False, init=False)
    pairs: tuple[Pair, ...] = field(default=(), init=False)

    title: ClassVar[str] = "differential privacy by simulation"
    number: ClassVar[str] = "Def. 5.1"

    def __post_init__(self) -> None:
        check_fields(self, values=listed, rows=whole)
        object.__setattr__(self, "priors", point_priors(self.values, rows=self.rows))
        object.__setattr__(self, "pairs", row_pairs(self.rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceCoupledWorlds(CoupledWorlds):
    """Def. 5.4: after the release the belief about priv(X) is, except with probability delta, as after the simulator's.

    With a simulator delta is exact. Without a simulator it is exact if alt(X) is independent of priv(X) given Z
    (then no simulator matters). Otherwise the best of several simulators is an upper end, and the lower one is
    0: undecided.
    """

    title: ClassVar[str] = "inference-based coupled-worlds privacy"
    number: ClassVar[str] = "Def. 5.4"

    def delta(
        self, mechanism: FiniteMechanism, *, epsilon: object, simulator: Simulator | None = None
    ) -> Found:
        level = Level.of(epsilon)
        if simulator is not None:
            return self._against(mechanism, _a_simulator(simulator), level)
        if free_of_simulators(mechanism, self.priors, self.pairs):
            return self._against(mechanism, None, level)
        tried = [
            Simulator.constant(mechanism.outputs, name="a uniform output"),
            best_delta(self.cells(mechanism), level).simulator,
        ]
        found = min((self._against(mechanism, s, level) for s in tried), key=lambda f: f.high)
        return Found(
            low=Fraction(0),
            high=found.high,
            decided=found.high == 0,
            simulator=found.simulator,
            compared=found.compared,
        )

    def _against(self, mechanism: FiniteMechanism, simulator: Simulator | None, level: Level) -> Found:
        def both(factor: Fraction) -> tuple[Fraction, list[Belief]]:
            worst, where = Fraction(-1), list[Belief]()
            for prior in self.priors:
                beliefs = coupled_beliefs(mechanism, prior, self.pairs, simulator, factor)
                found = crossing(beliefs)
                if found > worst:
                    worst, where = found, beliefs
            return worst, where

        high, beliefs = both(level.low)
        low = high if level.exact else both(level.high)[0]
        name = "any simulator that can give every output" if simulator is None else simulator.name
        return Found(
            low=low,
            high=high,
            witnesses=belief_witness(beliefs, high),
            simulator=name,
            compared=len(beliefs),
        )

    def epsilon(
        self, mechanism: FiniteMechanism, *, delta: object = 0, simulator: Simulator | None = None
    ) -> Interval | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceDistributional(InferenceCoupledWorlds):
    """Def. 5.2: simulation-based privacy with priv = a row and alt = the other rows, for every row."""

    pairs: tuple[Pair, ...] = ()

    title: ClassVar[str] = "inference-based distributional differential privacy"
    number: ClassVar[str] = "Def. 5.2"

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", check_priors(self.priors))
        object.__setattr__(self, "pairs", _rows_of(self.priors, self.pairs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Noiseless(Distributional):
    """Def. 5.7: F(X) given one value of a row is like F(X) given another, under one prior and auxiliary.

    This is the stochastic definition of Bhaskar, Bhowmick, Goyal, Laxman, Thakurta (2011) with the thesis's delta;
    the name is also used for a non-stochastic definition, which is not meant. There is no simulator.
    """

    title: ClassVar[str] = "noiseless privacy"
    number: ClassVar[str] = "Def. 5.7"

    def delta(
        self, mechanism: FiniteMechanism, *, epsilon: object, simulator: Simulator | None = None
    ) -> Found:
        no_simulator(self, simulator)
        return found_delta(both_values(self.cells(mechanism)), Level.of(epsilon))

    def epsilon(
        self, mechanism: FiniteMechanism, *, delta: object = 0, simulator: Simulator | None = None
    ) -> Interval | None:
        no_simulator(self, simulator)
        return pair_interval(both_values(self.cells(mechanism)), as_probability("delta", delta))

    def original_delta(self, mechanism: FiniteMechanism, *, epsilon: object) -> Interval:
        """The delta of the original definition: the least probability of values to leave out, so that any two of the
        others are epsilon-indistinguishable with delta 0; the largest over priors, rows and auxiliaries."""
        level, parts = Level.of(epsilon), self.cells(mechanism)
        return ends(left_out(parts, level.high), left_out(parts, level.low))


def _rows_of(priors: Sequence[Prior], pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Every row of the priors' data, or the pairs that were given."""
    if len(listed("pairs", pairs, must="be a list of pairs (alt, priv)")):
        return check_pairs(pairs)
    sizes = {len(x) if isinstance(x, tuple) else -1 for prior in priors for x in prior.data}
    if len(sizes) != 1 or -1 in sizes or 0 in sizes:
        raise InvalidParameter(
            parameter="priors",
            value="data of several forms",
            must="draw tuples of one number of rows",
            hint="for other data give the pairs (alt, priv) yourself",
        )
    return row_pairs(sizes.pop())


def _a_simulator(simulator: Simulator) -> Simulator:
    return instance(
        "simulator", simulator, Simulator, must="be a simulator", hint="see tacit.coupled.Simulator"
    )


def no_simulator(definition: Definition, simulator: Simulator | None) -> None:
    """Refuses a simulator for a definition that has none."""
    if simulator is not None:
        raise InvalidParameter(
            parameter="simulator",
            value=simulator.name,
            must=f"be left out: {definition.title} has no simulator",
        )


def pair_interval(comparisons: Iterator[Comparison], delta: Fraction) -> Interval | None:
    """The smallest epsilon over all comparisons, exact up to the logarithm; None without comparisons."""
    count, factor = found_factor(comparisons, delta)
    if not count:
        return None
    return Interval(low=math.inf, high=math.inf) if factor is None else factor_interval(factor, factor)


def belief_witness(beliefs: Sequence[Belief], delta: Fraction) -> tuple[Witness, ...]:
    """The outcomes whose beliefs are furthest apart, and the probability of an equally bad one."""
    if not beliefs or delta == 0:
        return ()
    worst = max(beliefs, key=lambda b: (b.apart, b.probability))
    outputs = tuple(b.output for b in beliefs if b.apart >= delta and b.pair == worst.pair)
    chance = sum((b.probability for b in beliefs if b.apart >= delta), Fraction(0))
    return (
        Witness(
            prior=worst.prior,
            pair=worst.pair,
            value=None,
            auxiliary=worst.auxiliary,
            event=outputs,
            direction="and after it beliefs differ by up to",
            first=float(chance),
            second=float(worst.apart),
        ),
    )


# Pufferfish privacy and its inference-based form: Groce 2014, Def. 5.8 and 5.9, after Kifer, Machanavajjhala 2012.


@dataclass(frozen=True, slots=True, kw_only=True)
class Pufferfish(Definition):
    """Def. 5.8: F(X) given sec(X) = 0 is like F(X) given sec(X) = 1, for every secret, prior and auxiliary."""

    priors: tuple[Prior, ...] = field(hash=False)
    secrets: tuple[Secret, ...]

    title: ClassVar[str] = "Pufferfish privacy"
    number: ClassVar[str] = "Def. 5.8"

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", check_priors(self.priors))
        given = listed("secrets", self.secrets, must="be a list of secrets")
        if not given:
            raise EmptyComposition(what="the list of secrets")
        for secret in given:
            instance("secrets", secret, Secret, must="be secrets")
            if not any({0, 1} <= {secret(x) for x in prior.data} for prior in self.priors):
                raise InvalidParameter(
                    parameter="secrets",
                    value=secret.name,
                    must="be 0 and 1 with positive probability under some prior",
                    hint="nothing is defined given a value of probability 0",
                )
        object.__setattr__(self, "secrets", given)

    def delta(
        self, mechanism: FiniteMechanism, *, epsilon: object, simulator: Simulator | None = None
    ) -> Found:
        no_simulator(self, simulator)
        return found_delta(of_secrets(mechanism, self.priors, self.secrets), Level.of(epsilon))

    def epsilon(
        self, mechanism: FiniteMechanism, *, delta: object = 0, simulator: Simulator | None = None
    ) -> Interval | None:
        no_simulator(self, simulator)
        return pair_interval(of_secrets(mechanism, self.priors, self.secrets), as_probability("delta", delta))

    def epsilon_pair(self, mechanism: FiniteMechanism, *, delta: object = 0) -> Interval | None:
        return self.epsilon(mechanism, delta=delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class InferencePufferfish(Pufferfish):
    """Def. 5.9: for each secret and auxiliary the belief about sec(X) hardly moves, except with probability delta."""

    title: ClassVar[str] = "inference-based Pufferfish privacy"
    number: ClassVar[str] = "Def. 5.9"

    def delta(
        self, mechanism: FiniteMechanism, *, epsilon: object, simulator: Simulator | None = None
    ) -> Found:
        no_simulator(self, simulator)
        level = Level.of(epsilon)

        def both(factor: Fraction) -> tuple[Fraction, list[Belief]]:
            worst, where = Fraction(-1), list[Belief]()
            for prior in self.priors:
                for secret in self.secrets:
                    for beliefs in pufferfish_beliefs(mechanism, prior, secret, factor).values():
                        found = crossing(beliefs)
                        if found > worst:
                            worst, where = found, beliefs
            return worst, where

        high, beliefs = both(level.low)
        low = high if level.exact else both(level.high)[0]
        return Found(low=low, high=high, witnesses=belief_witness(beliefs, high), compared=len(beliefs))

    def epsilon(
        self, mechanism: FiniteMechanism, *, delta: object = 0, simulator: Simulator | None = None
    ) -> Interval | None:
        no_simulator(self, simulator)
        return None
