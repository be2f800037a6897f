"""What an outsider can do with a release: who is exposed, what is learned, what guessing gets. See docs/attacks.md.

Nothing here imports a mechanism of ours or sees more than was published: an attack gets a release and what its attacker
may know, and returns a `Finding`. Only somebody who holds the truth can `score` it.
"""

from __future__ import annotations

from tacit.attacks.answers import average, difference
from tacit.attacks.draws import Draws
from tacit.attacks.finding import Finding, Score
from tacit.attacks.floating_point import possible, textbook_laplace, which_answer
from tacit.attacks.generalised import agrees
from tacit.attacks.groups import background, homogeneity, skewness
from tacit.attacks.histories import Best, Scoreboard, link_histories
from tacit.attacks.intersection import intersection, possible_values
from tacit.attacks.linear import random_questions, reconstruct, relaxed_bits
from tacit.attacks.linkage import expected_unique_share, link, unique_share
from tacit.attacks.membership import area_under_curve, membership, membership_scores
from tacit.attacks.microdata import Block, Group, Solutions, seven
from tacit.attacks.notions import Breach, RandomRow, dalenius, mean_loss, random_row
from tacit.attacks.questions import WalshQuestions, walsh_questions

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
    "seven",
    "skewness",
    "textbook_laplace",
    "unique_share",
    "walsh_questions",
    "which_answer",
]
