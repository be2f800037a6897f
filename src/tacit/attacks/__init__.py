"""Attacks by an outsider on a release: exposed people, learned values, and the success of guessing beside them. See
docs/attacks.md.

An attack imports no mechanism of ours. It gets a release and the attacker's knowledge, and returns a `Finding`.
Only somebody who holds the truth can `score` it.
"""

from __future__ import annotations

from tacit.attacks.finding import Draws, Finding, Score
from tacit.attacks.intersection import agrees, intersection, possible_values
from tacit.attacks.linking import (
    Best,
    Scoreboard,
    background,
    expected_unique_share,
    homogeneity,
    link,
    link_histories,
    skewness,
    unique_share,
)
from tacit.attacks.membership_inference import (
    Breach,
    RandomRow,
    area_under_curve,
    dalenius,
    mean_loss,
    membership,
    membership_scores,
    possible,
    random_row,
    textbook_laplace,
    which_answer,
)
from tacit.attacks.microdata import Block, Group, Solutions, seven
from tacit.attacks.reconstruction import (
    WalshQuestions,
    average,
    difference,
    random_questions,
    reconstruct,
    relaxed_bits,
    walsh_questions,
)
from tacit.attacks.synthetic_rows import replay

__all__ = [
    "Best",
    "Block",
    "Breach",
    "Draws",
    "Finding",
    "Group",
    "RandomRow",
    "Score",
    "Scoreboard",
    "Solutions",
    "WalshQuestions",
    "agrees",
    "area_under_curve",
    "average",
    "background",
    "dalenius",
    "difference",
    "expected_unique_share",
    "homogeneity",
    "intersection",
    "link",
    "link_histories",
    "mean_loss",
    "membership",
    "membership_scores",
    "possible",
    "possible_values",
    "random_questions",
    "random_row",
    "reconstruct",
    "relaxed_bits",
    "replay",
    "seven",
    "skewness",
    "textbook_laplace",
    "unique_share",
    "walsh_questions",
    "which_answer",
]
