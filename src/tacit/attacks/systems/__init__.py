"""The history of query systems (Groce 2014, 2.6): small answering services, and the attack that breaks each of them."""

from __future__ import annotations

from tacit.attacks.systems.breaks import (
    SYSTEMS,
    Shown,
    extremes,
    grid_of_sets,
    outliers,
    repeat,
    reword,
    show,
    split,
    track,
)
from tacit.attacks.systems.kinds import (
    AnsweringService,
    AtomicPopulations,
    AuditedSums,
    FixedNoise,
    OverlapRestriction,
    PerturbedValues,
    RandomSamples,
    RemoteAnalysis,
    SetSizeRestriction,
    by_difference,
    by_leverage,
    weigh,
)

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
