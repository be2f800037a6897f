"""The sources' figures and tables, drawn again with our numbers beside theirs."""

from __future__ import annotations

import importlib

from tacit.errors import UnknownName
from tacit.reproduce.base import Made, Reproduction

__all__ = ["REPRODUCTIONS", "Made", "Reproduction", "reproduction"]

# name -> module and attribute; the module is loaded when it is asked for.
REPRODUCTIONS: dict[str, str] = {
    "attack-before-after": "tacit.reproduce.attacks_on_counts:ATTACK_BEFORE_AFTER",
    "attack-counts": "tacit.reproduce.attacks_on_counts:ATTACK_COUNTS",
    "attack-histories": "tacit.reproduce.attacks_on_counts:ATTACK_HISTORIES",
    "attack-membership": "tacit.reproduce.attacks_on_counts:ATTACK_MEMBERSHIP",
    "dpbench": "tacit.reproduce.hall_2:DPBENCH",
    "fourier-errors": "tacit.reproduce.hall_4:FOURIER_ERRORS",
    "groce-6.1": "tacit.reproduce.groce:GROCE_6_1",
    "groce-6.2": "tacit.reproduce.groce:GROCE_6_2",
    "groce-6.3": "tacit.reproduce.groce:GROCE_6_3",
    "groce-6.4": "tacit.reproduce.groce:GROCE_6_4",
    "hall-1.1": "tacit.reproduce.hall_1:HALL_1_1",
    "hall-2.1": "tacit.reproduce.hall_2:HALL_2_1",
    "hall-2.2": "tacit.reproduce.hall_2:HALL_2_2",
    "hall-2.3": "tacit.reproduce.hall_2:HALL_2_3",
    "hall-2.4": "tacit.reproduce.hall_2:HALL_2_4",
    "hall-3.1": "tacit.reproduce.hall_3:HALL_3_1",
    "hall-3.2": "tacit.reproduce.hall_3:HALL_3_2",
    "hall-3.3": "tacit.reproduce.hall_3:HALL_3_3",
    "hall-3.4": "tacit.reproduce.hall_3:HALL_3_4",
    "hall-4.1": "tacit.reproduce.hall_4:HALL_4_1",
    "hall-5.1": "tacit.reproduce.random_data:HALL_5_1",
    "lecture-2.1": "tacit.reproduce.lectures:LECTURE_2_1",
    "lecture-2.2": "tacit.reproduce.lectures:LECTURE_2_2",
    "lecture-2-local": "tacit.reproduce.lessons:LECTURE_2_LOCAL",
    "lecture-7": "tacit.reproduce.lectures:LECTURE_7",
    "learners": "tacit.reproduce.learners:LEARNERS",
    "lesson-composition": "tacit.reproduce.lessons:LESSON_COMPOSITION",
    "lesson-curves": "tacit.reproduce.lessons:LESSON_CURVES",
    "lesson-neighbours": "tacit.reproduce.lessons:LESSON_NEIGHBOURS",
    "lesson-price": "tacit.reproduce.lessons:LESSON_PRICE",
    "model-selection": "tacit.reproduce.model_selection:MODEL_SELECTION",
    "random-1": "tacit.reproduce.random_data:RANDOM_1",
    "random-2": "tacit.reproduce.random_data:RANDOM_2",
    "random-referee": "tacit.reproduce.random_data:RANDOM_REFEREE",
    "regressions": "tacit.reproduce.regressions:REGRESSIONS",
    "risk-utility": "tacit.reproduce.risk_utility:RISK_UTILITY",
    "two-party-gap": "tacit.reproduce.risk_utility:TWO_PARTY_GAP",
}


def reproduction(name: str) -> Reproduction:
    """The reproduction with this name."""
    if name not in REPRODUCTIONS:
        raise UnknownName(what="reproduction", name=name, known=REPRODUCTIONS)
    module, _, attribute = REPRODUCTIONS[name].partition(":")
    here = getattr(importlib.import_module(module), attribute)
    assert isinstance(here, Reproduction)
    return here
