"""Hall 2012, Figure 5.1: a very sparse histogram; the same experiment as Figure 1 of the paper."""

from __future__ import annotations

from dataclasses import replace

from tacit.reproduce.base import Made, Reproduction
from tacit.reproduce.random_1 import NOTES, SETTING
from tacit.reproduce.random_figures import made

__all__ = ["HERE", "make"]


def make() -> Made:
    """The thesis prints no number at all: the paper's experiment, and how it changes with epsilon."""
    named = [
        (f"epsilon = {epsilon:g}", replace(SETTING, epsilon=epsilon))
        for epsilon in (0.2, 0.05, 0.5, 1.0, 2.0)
    ]
    note = (
        "The thesis does not state k, n, epsilon or gamma for this figure; its caption and panels are those of the "
        "paper's Figure 1, whose numbers are taken. The table adds other epsilons."
    )
    return made(named, grid=None, notes=(note, *NOTES[1:]))


HERE = Reproduction(
    name="hall-5.1",
    title="Random differential privacy: a very sparse histogram",
    source="Hall 2012, Figure 5.1",
    make=make,
)
