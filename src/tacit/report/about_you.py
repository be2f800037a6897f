"""What a release says about you, in two sentences: how much you can change, and how well somebody can guess."""

from __future__ import annotations

import math

from tacit.errors import TacitError
from tacit.guarantees import Guarantee, Neighbours, Priors, RandomData
from tacit.guarantees.units import GroupOf, People, Rows, Unit

__all__ = ["about_you"]

STRENGTHS = (
    (0.55, "so that", "can change what is published hardly at all"),
    (0.75, "so that", "can change what is published only a little"),
    (0.9, "and yet", "can change what is published noticeably"),
)
WEAK = (1.0, "and yet", "can change what is published a great deal: the protection is weak")


def about_you(spent: Guarantee) -> tuple[str, ...]:
    """Two sentences about all that was published so far, this release among it; `spent` is what that may reveal.

    The number is the largest probability of a right guess between two versions of one unit's data, by somebody who
    knows all the others: (1 + delta(0)) / 2, whatever the kind of the bound. Under random data it is an average, and
    under priors none is given.
    """
    if isinstance(spent.condition, Priors):
        return (
            "This answer is exact: no noise was added, and it is protected only by what others do not know.",
            f"What it says about you is limited {spent.condition}, and not otherwise.",
        )
    who, data = _you(spent.unit)
    try:
        guess = spent.average_guess(0.5)
    except TacitError:
        return (
            "Noise was added to these numbers so that they say little about any one of those who are protected.",
            f"Protected is {spent.unit}; how well somebody can guess about one of them is not known for this promise.",
        )
    _, so, how = next((words for words in STRENGTHS if guess <= words[0]), WEAK)
    what = f"what is recorded about {who}"
    if spent.unit.neighbours is Neighbours.ADD_OR_REMOVE and not isinstance(spent.unit, Rows):
        what = f"whether {who} took part, and {what},"
    on_average = ", on average over such data" if isinstance(spent.condition, RandomData) else ""
    percent = f"{math.ceil(1000 * guess - 1e-9) / 10:g}%"
    return (
        f"Noise was added to these numbers, {so} {what} {how}.",
        f"Somebody who knows everything about everybody else, and must guess between two versions of {data}, is right "
        f"at most {percent} of the time{on_average} with these numbers and all that was published before from this "
        "budget, where a coin is right 50%.",
    )


def _you(unit: Unit) -> tuple[str, str]:
    """Who is protected, and whose data are guessed at."""
    if isinstance(unit, GroupOf):
        return f"you and {unit.size - 1} others", "your data and theirs"
    if isinstance(unit, People):
        return "you", "your data"
    return "you in any one row", "one of your rows"
