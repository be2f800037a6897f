"""The attack that breaks each system: arithmetic over the answers that it gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tacit.attacks.finding import Draws, Finding, Score
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
from tacit.errors import UnknownName
from tacit.exact.checks import refuse_if
from tacit.exact.data_classes import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.exact.arrays import Booleans

__all__ = [
    "SYSTEMS",
    "Shown",
    "extremes",
    "grid_of_sets",
    "outliers",
    "repeat",
    "reword",
    "show",
    "split",
    "track",
]


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
    """A float is rounded to a whole number if the exact total is one."""
    return float(round(value)) if abs(value - round(value)) < 1e-6 else value


def track(service: SetSizeRestriction, people: Sequence[int], *, seed: int = 0) -> Finding:
    """The general tracker (Denning, Denning and Schwartz 1979): a set T with 2k ≤ |T| ≤ n - 2k answers everything.

    all = T + not T, and for any set C: C = (C ∪ T) + (C ∪ not T) - all. Four questions for the first person, two for
    each other one, and no rule about sizes is broken while k ≤ n/4.
    """
    import numpy as np

    refuse_if(4 * service.least > service.people, "least", service.least, "be at most a fourth of the people")
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
    """2k - 1 sets of k people, any two of which share at most one person, whose totals reveal one value.

    k sets have the target and k - 1 others each, the rows of a grid; k - 1 sets are its columns. All rows less all
    columns are k times the target.
    """
    import numpy as np

    k = service.least
    refuse_if(service.people < k * (k - 1) + 1, "least", k, "leave k (k - 1) others for the grid")
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
    """A total of m times the largest value reveals all m values, and so does a total of m times the least."""
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
    """The mean of many answers to the same question with fresh noise, rounded to whole numbers."""
    learned = [float(round(sum(service.total([target]) for _ in range(times)) / times)) for target in people]
    return _found("averaging", service, people, learned, 0.5, "a coin, if the value is a bit")


def outliers(service: PerturbedValues, *, relative: float = 0.01) -> Finding:
    """Noise of one size for all hides small values but not large ones, which become known to a hundredth.

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
    """The same set in other words gets another sample. So the mean over many wordings removes the sampling error.

    Asks for totals of a group with the target and of the group without it; the difference is rounded.
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
    """Asks for a set in two halves, divided in many ways. Each half has its own noise, and the mean hardly any."""
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


# Every system with its attack on made-up people, by name: what a teacher shows.


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A system that was attacked: its idea, the findings of the attack, and the true part of them."""

    system: str
    idea: str
    source: str
    finding: Finding
    score: Score


def _bits(people: int, seed: int) -> list[int]:
    return [int(b) for b in Draws(seed, "values").bits(people)]


def _set_sizes(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(1000, seed)
    service = SetSizeRestriction(values, least=200)
    return service, track(service, range(50), seed=seed), values


def _overlaps(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(1000, seed)
    service = OverlapRestriction(values, least=20, shared=1)
    return service, grid_of_sets(service, 7, seed=seed), values


def _audited(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(24, seed)
    service = AuditedSums(values)
    return service, weigh(service, questions=16, seed=seed), values


def _atoms(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(1000, seed)
    service = AtomicPopulations(values, atoms=[(i, i + 1) for i in range(0, 1000, 2)])
    return service, extremes(service, low=0, high=1), values


def _fresh(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(1000, seed)
    service = PerturbedValues(values, noise_std=2, fresh=True, seed=seed)
    return service, repeat(service, range(5), times=1000), values


def _incomes(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = [round(30_000 * 2.718281828 ** (0.9 * float(z))) for z in Draws(seed, "incomes").normals(1000)]
    service = PerturbedValues(values, noise_std=3000, seed=seed)
    return service, outliers(service, relative=0.02), values


def _samples(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(200, seed)
    service = RandomSamples(values, share=0.8, seed=seed)
    return service, reword(service, range(5), range(5, 35), times=4000), values


def _fixed(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = _bits(200, seed)
    service = FixedNoise(values, noise_std=2, seed=seed)
    return service, split(service, range(5), times=2000, seed=seed), values


def _public(seed: int, people: int) -> Any:
    return Draws(seed, "public").normals(people)


def _leverage(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    values = [float(v) for v in 100 * Draws(seed, "outcomes").uniforms(200)]
    service = RemoteAnalysis(values)
    return service, by_leverage(service, _public(seed, 200), range(20)), values


def _difference(seed: int) -> tuple[AnsweringService, Finding, list[Any]]:
    import numpy as np

    values = [float(v) for v in 100 * Draws(seed, "outcomes").uniforms(1000)]
    service = RemoteAnalysis(values)
    predictors = np.column_stack([np.ones(1000), _public(seed, 1000)])
    return service, by_difference(service, predictors, range(50)), values


def _same(true: float, claimed: float) -> bool:
    return abs(true - claimed) < 1e-6 * max(1.0, abs(true))


def _within(true: float, claimed: tuple[float, float]) -> bool:
    return claimed[0] <= true <= claimed[1]


SYSTEMS: dict[
    str, tuple[Callable[[int], tuple[AnsweringService, Finding, list[Any]]], Callable[[Any, Any], bool]]
] = {
    "atomic-populations": (_atoms, _same),
    "audited-sums": (_audited, _same),
    "fixed-noise": (_fixed, _same),
    "fresh-noise": (_fresh, _same),
    "overlaps": (_overlaps, _same),
    "perturbed-values": (_incomes, _within),
    "random-samples": (_samples, _same),
    "regressions-difference": (_difference, _same),
    "regressions-leverage": (_leverage, _same),
    "set-sizes": (_set_sizes, _same),
}
"""Each system by name: its set-up, its attack, and the test of a claim."""


def show(system: str, *, seed: int = 0) -> Shown:
    """Set one system up on made-up people, attack it, and compare with the truth."""
    if system not in SYSTEMS:
        raise UnknownName(what="system", name=system, known=SYSTEMS)
    run, agree = SYSTEMS[system]
    service, finding, values = run(seed)
    return Shown(
        system=system,
        idea=type(service).idea,
        source=type(service).source,
        finding=finding,
        score=finding.score(values, agree=agree),
    )
