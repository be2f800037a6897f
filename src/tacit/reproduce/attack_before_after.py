"""Twelve attacks, on what was published before, and on the same statistic from a curator at epsilon = .1, 1, 10."""

from __future__ import annotations

from tacit.reproduce.attack_answers import on_averages, on_block, on_counts, on_differences, on_digits
from tacit.reproduce.attack_classes import on_classes, on_linkage, on_two_releases
from tacit.reproduce.attack_figures import COLUMNS, draw_panels, told
from tacit.reproduce.attack_histories import on_histories
from tacit.reproduce.attack_membership import on_membership
from tacit.reproduce.base import Made, Reproduction

__all__ = ["HERE", "make"]

TITLES = {
    "linkage": "linkage: a neighbour's diagnosis",
    "histories": "sparse histories: who is in the table",
    "membership": "membership from 10,000 frequencies",
    "homogeneity": "homogeneity: the diagnosis",
    "background knowledge": "background knowledge: she is ill",
    "skewness": "skewness: the suspected have HIV",
    "intersection": "intersection of two releases",
    "differencing": "differencing: a bit",
    "averaging": "averaging: a bit",
    "subset counts": "800 subset counts: a bit",
    "people from tables": "tables of a block of seven",
    "floating-point noise": "floating-point noise: a bit",
}


def make() -> Made:
    """All panels, from the modules of the single attacks with fewer tries."""
    bars = [
        *on_linkage(),
        *on_histories(tries=400),
        *on_membership(releases=10),
        *on_classes(),
        *on_two_releases(),
        *on_differences(),
        *on_averages(),
        *on_counts(),
        *on_block(),
        *on_digits(),
    ]
    over = [b for b in bars if b.right > b.bound + 4 * b.error]
    ours = [b for b in bars if b.epsilon is not None]
    notes = (
        f"{len(TITLES)} attacks; `right` is how often one is right about one person. People are independent here, "
        "so that without a person's own data nobody does better than guessing.",
        f"None of the {len(ours)} shares from a curator lies more than four standard errors above what epsilon allows."
        if not over
        else f"{len(over)} shares lie above what epsilon allows: {', '.join(b.attack for b in over)}.",
        "Who guesses right with probability g without the data of a person is right with probability at most "
        "g e^ε / (1 - g + g e^ε) afterwards; of two releases, with 2ε.",
    )
    return Made(columns=COLUMNS, rows=told(bars), notes=notes, draw=lambda: draw_panels(bars, TITLES))


HERE = Reproduction(
    name="attack-before-after",
    title="Attacks, before and after",
    source="the attacks of Groce 2014, chapter 2, and lecture 2; the numbers are ours",
    make=make,
)
