"""The history of query systems (Groce 2014, 2.6): small answering services, and the attack that breaks each of them."""

from __future__ import annotations

from tacit.attacks.systems.base import AnsweringService
from tacit.attacks.systems.breaks import extremes, grid_of_sets, outliers, repeat, reword, split, track
from tacit.attacks.systems.perturbed import FixedNoise, PerturbedValues, RandomSamples
from tacit.attacks.systems.regressions import RemoteAnalysis, by_difference, by_leverage
from tacit.attacks.systems.restricted import (
    AtomicPopulations,
    AuditedSums,
    OverlapRestriction,
    SetSizeRestriction,
)
from tacit.attacks.systems.shown import SYSTEMS, Shown, show
from tacit.attacks.systems.weighing import weigh

__all__ = [
    "SYSTEMS",
    "AnsweringService",
    "AtomicPopulations",
    "AuditedSums",
    "FixedNoise",
    "OverlapRestriction",
    "PerturbedValues",
    "RandomSamples",
    "RemoteAnalysis",
    "SetSizeRestriction",
    "Shown",
    "by_difference",
    "by_leverage",
    "extremes",
    "grid_of_sets",
    "outliers",
    "repeat",
    "reword",
    "show",
    "split",
    "track",
    "weigh",
]
