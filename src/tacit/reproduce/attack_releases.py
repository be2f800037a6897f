"""What the attacks meet in the pictures: made-up tables, and the same statistics from a curator at several epsilons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.curator import Curator
from tacit.guarantees import Pure, people, rows
from tacit.noise import SeededSource

if TYPE_CHECKING:
    from tacit.exact.arrays import Floats


__all__ = ["EPSILONS", "Bar", "bar", "counts_from", "most", "release_from", "shrunk"]

EPSILONS = (0.1, 1.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One release under one attack: how often it is right, of how many tries, and what was proved before."""

    attack: str
    release: str
    epsilon: float | None
    right: float
    tries: int
    guessing: float
    bound: float

    @property
    def error(self) -> float:
        """The standard error of the share."""
        return math.sqrt(max(0.0, self.right * (1 - self.right)) / self.tries)


def most(epsilon: float, guessing: float) -> float:
    """The best that anybody can do who would guess right with probability g without the data of the person.

    Under pure epsilon for one replaced unit no likelihood ratio is above e^epsilon, so that a value with prior
    probability π has a posterior of at most π e^ε / (1 - π + π e^ε), which grows with π ≤ g.
    """
    return guessing * math.exp(epsilon) / (1 - guessing + guessing * math.exp(epsilon))


def bar(
    attack: str,
    release: str,
    right: float,
    tries: int,
    guessing: float,
    epsilon: float | None = None,
    times: int = 1,
) -> Bar:
    """A bar; `times` releases of this epsilon each were read."""
    bound = 1.0 if epsilon is None else most(times * epsilon, guessing)
    return Bar(
        attack=attack,
        release=release,
        epsilon=epsilon,
        right=right,
        tries=tries,
        guessing=guessing,
        bound=bound,
    )


def release_from(
    table: Any,
    schema: dict[str, Any],
    asked: Any,
    epsilon: float,
    *,
    seed: int,
    person: str = "",
    at_most: int = 1,
) -> list[Any]:
    """The tables of a plan from a curator, for one replaced row or person; test noise, so that they can be repeated."""
    unit = (
        people(person, at_most=at_most, neighbours="replace-one")
        if person
        else rows(neighbours="replace-one")
    )
    plan = asked if isinstance(asked, list) else [asked]
    with Curator(
        table,
        protect=unit,
        schema=schema,
        budget=Pure(epsilon=epsilon),
        source=SeededSource(seed=seed),
    ) as curator:
        return [released.table for released in curator.release(plan, epsilon=epsilon)]


def counts_from(frame: Any, keys: list[str], shape: tuple[int, ...]) -> Floats:
    """A released count as an array: the keys are whole numbers from 0."""
    import numpy as np

    found = np.zeros(shape)
    found[tuple(frame[key].to_numpy().astype(np.int64) for key in keys)] = frame["value"].to_numpy()
    return found


def shrunk(noisy: Floats, size: Floats | float, shares: Floats, noise_variance: float) -> Floats:
    """Counts of a class as an attacker estimates them: between what was expected and what was published."""
    expected = size * shares
    variance = size * shares * (1 - shares)
    weight = variance / (variance + noise_variance)
    estimate: Floats = expected + weight * (noisy - expected)
    return estimate
