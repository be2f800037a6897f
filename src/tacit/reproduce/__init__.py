"""The sources' figures and tables, drawn again with our numbers beside theirs: one module each."""

from __future__ import annotations

import importlib

from tacit.errors import UnknownName
from tacit.reproduce.base import Made, Reproduction

__all__ = ["REPRODUCTIONS", "Made", "Reproduction", "reproduction"]

# name -> module; a module has one `Reproduction` called HERE, and is loaded when it is asked for.
REPRODUCTIONS: dict[str, str] = {
    "attack-before-after": "tacit.reproduce.attack_before_after",
    "attack-counts": "tacit.reproduce.attack_counts",
    "attack-histories": "tacit.reproduce.attack_histories",
    "attack-membership": "tacit.reproduce.attack_membership",
    "dpbench": "tacit.reproduce.dpbench",
    "fourier-errors": "tacit.reproduce.fourier_errors",
    "groce-6.1": "tacit.reproduce.groce_6_1",
    "groce-6.2": "tacit.reproduce.groce_6_2",
    "groce-6.3": "tacit.reproduce.groce_6_3",
    "groce-6.4": "tacit.reproduce.groce_6_4",
    "hall-2.1": "tacit.reproduce.hall_2_1",
    "hall-2.2": "tacit.reproduce.hall_2_2",
    "hall-2.3": "tacit.reproduce.hall_2_3",
    "hall-2.4": "tacit.reproduce.hall_2_4",
    "hall-3.1": "tacit.reproduce.hall_3_1",
    "hall-3.2": "tacit.reproduce.hall_3_2",
    "hall-3.3": "tacit.reproduce.hall_3_3",
    "hall-3.4": "tacit.reproduce.hall_3_4",
    "hall-4.1": "tacit.reproduce.hall_4_1",
    "hall-5.1": "tacit.reproduce.hall_5_1",
    "lecture-2-local": "tacit.reproduce.lecture_2_local",
    "lesson-composition": "tacit.reproduce.lesson_composition",
    "lesson-curves": "tacit.reproduce.lesson_curves",
    "lesson-neighbours": "tacit.reproduce.lesson_neighbours",
    "lesson-price": "tacit.reproduce.lesson_price",
    "random-1": "tacit.reproduce.random_1",
    "random-2": "tacit.reproduce.random_2",
    "random-referee": "tacit.reproduce.random_referee",
    "risk-utility": "tacit.reproduce.risk_utility",
    "two-party-gap": "tacit.reproduce.two_party_gap",
}


def reproduction(name: str) -> Reproduction:
    """The reproduction with this name."""
    if name not in REPRODUCTIONS:
        raise UnknownName(what="reproduction", name=name, known=REPRODUCTIONS)
    here = importlib.import_module(REPRODUCTIONS[name]).HERE
    assert isinstance(here, Reproduction)
    return here
