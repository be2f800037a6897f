"""Pufferfish privacy and its inference-based form: Groce 2014, Def. 5.8 and 5.9, after Kifer, Machanavajjhala 2012."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from tacit.coupled.cells import check_priors
from tacit.coupled.comparing import found_delta, of_secrets
from tacit.coupled.definitions import Definition, belief_witness, no_simulator, pair_interval
from tacit.coupled.inference import Belief, crossing, pufferfish_beliefs
from tacit.coupled.mechanisms import FiniteMechanism, Simulator
from tacit.coupled.numbers import Level, as_probability
from tacit.coupled.pairs import Secret
from tacit.coupled.priors import Prior
from tacit.coupled.verdict import Found
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.rounding import Interval
from tacit.guarantees.arguments import instance, listed

__all__ = ["InferencePufferfish", "Pufferfish"]


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
    """Def. 5.9: for each secret and auxiliary the belief about sec(X) hardly moves, but for probability delta."""

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
