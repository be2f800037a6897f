"""Every system with its attack on made-up people, by name: what a teacher shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacit.attacks.draws import Draws
from tacit.attacks.finding import Finding, Score
from tacit.attacks.systems import breaks
from tacit.attacks.systems.base import AnsweringService
from tacit.attacks.systems.perturbed import FixedNoise, PerturbedValues, RandomSamples
from tacit.attacks.systems.regressions import RemoteAnalysis, by_difference, by_leverage
from tacit.attacks.systems.restricted import (
    AtomicPopulations,
    AuditedSums,
    OverlapRestriction,
    SetSizeRestriction,
)
from tacit.attacks.systems.weighing import weigh
from tacit.errors import UnknownName

__all__ = ["SYSTEMS", "Shown", "show"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A system that was attacked: its idea, what the attack found, and how much of that is true."""

    system: str
    idea: str
    source: str
    finding: Finding
    score: Score


def _bits(people: int, seed: int) -> list[int]:
    return [int(b) for b in Draws(seed, "values").bits(people)]


def _set_sizes(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(1000, seed)
    service = SetSizeRestriction(values, least=200)
    return service, breaks.track(service, range(50), seed=seed), values


def _overlaps(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(1000, seed)
    service = OverlapRestriction(values, least=20, shared=1)
    return service, breaks.grid_of_sets(service, 7, seed=seed), values


def _audited(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(24, seed)
    service = AuditedSums(values)
    return service, weigh(service, questions=16, seed=seed), values


def _atoms(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(1000, seed)
    service = AtomicPopulations(values, atoms=[(i, i + 1) for i in range(0, 1000, 2)])
    return service, breaks.extremes(service, low=0, high=1), values


def _fresh(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(1000, seed)
    service = PerturbedValues(values, noise_std=2, fresh=True, seed=seed)
    return service, breaks.repeat(service, range(5), times=1000), values


def _incomes(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = [round(30_000 * 2.718281828 ** (0.9 * float(z))) for z in Draws(seed, "incomes").normals(1000)]
    service = PerturbedValues(values, noise_std=3000, seed=seed)
    return service, breaks.outliers(service, relative=0.02), values


def _samples(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(200, seed)
    service = RandomSamples(values, share=0.8, seed=seed)
    return service, breaks.reword(service, range(5), range(5, 35), times=4000), values


def _fixed(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(200, seed)
    service = FixedNoise(values, noise_std=2, seed=seed)
    return service, breaks.split(service, range(5), times=2000, seed=seed), values


def _public(seed: int, people: int) -> Any:
    return Draws(seed, "public").normals(people)


def _leverage(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = [float(v) for v in 100 * Draws(seed, "outcomes").uniforms(200)]
    service = RemoteAnalysis(values)
    return service, by_leverage(service, _public(seed, 200), range(20)), values


def _difference(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    import numpy as np

    values = [float(v) for v in 100 * Draws(seed, "outcomes").uniforms(1000)]
    service = RemoteAnalysis(values)
    predictors = np.column_stack([np.ones(1000), _public(seed, 1000)])
    return service, by_difference(service, predictors, range(50)), values


def _same(true: float, claimed: float) -> bool:
    return abs(true - claimed) < 1e-6 * max(1.0, abs(true))


def _within(true: float, claimed: tuple[float, float]) -> bool:
    return claimed[0] <= true <= claimed[1]


SYSTEMS: dict[
    str, tuple[Callable[[int], tuple[AnsweringService, Finding, list[Any]]], Callable[[Any, Any], bool]]
] = {
    "atomic-populations": (_atoms, _same),
    "audited-sums": (_audited, _same),
    "fixed-noise": (_fixed, _same),
    "fresh-noise": (_fresh, _same),
    "overlaps": (_overlaps, _same),
    "perturbed-values": (_incomes, _within),
    "random-samples": (_samples, _same),
    "regressions-difference": (_difference, _same),
    "regressions-leverage": (_leverage, _same),
    "set-sizes": (_set_sizes, _same),
}
"""Each system by name: how it is set up and attacked, and when a claim is right."""


def show(system: str, *, seed: int = 0) -> Shown:
    """Set one system up on made-up people, attack it, and compare with the truth."""
    if system not in SYSTEMS:
        raise UnknownName(what="system", name=system, known=SYSTEMS)
    run, agree = SYSTEMS[system]
    service, finding, values = run(seed)
    return Shown(
        system=system,
        idea=type(service).idea,
        source=type(service).source,
        finding=finding,
        score=finding.score(values, agree=agree),
    )
