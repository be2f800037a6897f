"""The attack that breaks each system: arithmetic over the answers that it gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.attacks.draws import Draws
from tacit.attacks.finding import Finding
from tacit.attacks.systems.base import AnsweringService
from tacit.attacks.systems.perturbed import FixedNoise, PerturbedValues, RandomSamples
from tacit.attacks.systems.restricted import (
    AtomicPopulations,
    OverlapRestriction,
    SetSizeRestriction,
)
from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.exact.arrays import Booleans


__all__ = ["extremes", "grid_of_sets", "outliers", "repeat", "reword", "split", "track"]


def _found(
    attack: str,
    service: AnsweringService,
    people: Sequence[int],
    learned: Sequence[Any],
    guessing: float,
    alone: str,
) -> Finding:
    return Finding(
        attack=attack,
        people=service.people,
        exposed=list(people),
        learned=list(learned),
        guessing=guessing,
        alone=alone,
        details={"asked": service.asked},
    )


def _whole_or_real(value: float) -> float:
    """Exact totals are whole where the values are; what is left of rounding is taken off."""
    return float(round(value)) if abs(value - round(value)) < 1e-6 else value


def track(service: SetSizeRestriction, people: Sequence[int], *, seed: int = 0) -> Finding:
    """The general tracker (Denning, Denning and Schwartz 1979): a set T with 2k ≤ |T| ≤ n - 2k answers everything.

    all = T + not T, and for any set C: C = (C ∪ T) + (C ∪ not T) - all. Four questions for the first person, two for
    each other one, and no rule about sizes is broken while k ≤ n/4.
    """
    import numpy as np

    if 4 * service.least > service.people:
        raise InvalidParameter(
            parameter="least", value=service.least, must="be at most a fourth of the people"
        )
    tracker = np.zeros(service.people, dtype=np.bool_)
    tracker[Draws(seed, "tracker").permutation(service.people)[: service.people // 2]] = True
    everybody = service.total(tracker) + service.total(~tracker)
    learned = []
    for target in people:
        one = np.zeros(service.people, dtype=np.bool_)
        one[target] = True
        learned.append(
            _whole_or_real(service.total(one | tracker) + service.total(one | ~tracker) - everybody)
        )
    return _found("general tracker", service, people, learned, 0.5, "a coin, if the value is a bit")


def grid_of_sets(service: OverlapRestriction, target: int, *, seed: int = 0) -> Finding:
    """2k - 1 sets of k people, any two of which share one person at most, whose totals give one value away.

    k sets have the target and k - 1 others each, the rows of a grid; k - 1 sets are its columns. All rows less all
    columns are k times the target.
    """
    import numpy as np

    k = service.least
    if service.people < k * (k - 1) + 1:
        raise InvalidParameter(parameter="least", value=k, must="leave k (k - 1) others for the grid")
    others = [int(i) for i in Draws(seed, "grid").permutation(service.people) if i != target]
    grid = np.array(others[: k * (k - 1)]).reshape(k, k - 1)
    rows = sum(service.total([target, *row]) for row in grid.tolist())
    columns = sum(service.total(column) for column in grid.T.tolist())
    return _found(
        "grid of sets",
        service,
        [target],
        [_whole_or_real((rows - columns) / k)],
        0.5,
        "a coin, if the value is a bit",
    )


def extremes(service: AtomicPopulations, *, low: float, high: float) -> Finding:
    """A total of m times the largest value says that all m have it; and so with the least."""
    exposed: list[int] = []
    learned: list[float] = []
    for atom in service.atoms:
        total = service.total(list(atom))
        for end in (low, high):
            if abs(total - len(atom) * end) < 1e-9:
                exposed += atom
                learned += [end] * len(atom)
    return _found("sum of extremes", service, exposed, learned, 0.5, "a coin, if the value is a bit")


def repeat(service: PerturbedValues, people: Sequence[int], *, times: int) -> Finding:
    """The mean of many answers to the same question, where noise is drawn anew each time; rounded to whole numbers."""
    learned = [float(round(sum(service.total([target]) for _ in range(times)) / times)) for target in people]
    return _found("averaging", service, people, learned, 0.5, "a coin, if the value is a bit")


def outliers(service: PerturbedValues, *, relative: float = 0.01) -> Finding:
    """Noise of one size for all hides small values and no large ones: whoever's value is known to a hundredth.

    Learned is an interval of five standard deviations to either side of the answer.
    """
    exposed, learned = [], []
    for person in range(service.people):
        shown = service.total([person])
        if shown > 0 and service.noise_std <= relative * shown:
            exposed.append(person)
            learned.append((shown - 5 * service.noise_std, shown + 5 * service.noise_std))
    return _found("outliers", service, exposed, learned, 0.0, "an interval of a hundredth cannot be guessed")


def reword(service: RandomSamples, people: Sequence[int], group: Sequence[int], *, times: int) -> Finding:
    """The same set in other words is another sample: the mean over many wordings forgets the sampling.

    Asked are totals of a group with the target, less that of the group; the difference is rounded.
    """
    learned = []
    rest = [i for i in group if i not in set(people)]
    base = sum(service.total(rest, wording=f"the group, said in way {i}") for i in range(times)) / times
    for target in people:
        more = sum(
            service.total([*rest, target], wording=f"{target} too, said in way {i}") for i in range(times)
        )
        learned.append(float(round(more / times - base)))
    return _found("rewording", service, people, learned, 0.5, "a coin, if the value is a bit")


def split(service: FixedNoise, people: Sequence[int], *, times: int, seed: int = 0) -> Finding:
    """A set is asked for in two halves, divided in many ways: each has noise of its own, and the mean hardly any."""
    import numpy as np

    draws = Draws(seed, "splitting")

    def halves(members: Booleans) -> float:
        total = 0.0
        for _ in range(times):
            side = (draws.bits(service.people) == 1) & members
            total += service.total(side) + service.total(members & ~side)
        return total / times

    everybody = np.ones(service.people, dtype=np.bool_)
    whole_total = halves(everybody)
    learned = []
    for target in people:
        rest = everybody.copy()
        rest[target] = False
        learned.append(float(round(whole_total - halves(rest))))
    return _found("splitting", service, people, learned, 0.5, "a coin, if the value is a bit")
