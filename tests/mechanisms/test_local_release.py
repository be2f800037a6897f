"""The law of release() of every local mechanism, exactly: all ways its coins and uniform numbers can fall.

The primitives (a certified coin, a uniform number) are replaced by choices that are gone through one by one; that each
has its own law is shown in tests/noise. Every other draw fails, so that nothing else decides an answer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import (
    HadamardResponse,
    RandomizedResponse,
    SubsetSelection,
    TwoQuestions,
    subset_selection,
)
from tacit.mechanisms import local as randomized_response
from tacit.mechanisms import subset_selection as hadamard_response
from tacit.noise import Bernoulli, SeededSource


class Silent(SeededSource):
    """A source that nobody may ask."""

    def words(self, count: int) -> Any:
        raise AssertionError("a draw that was not gone through")


class Tree:
    """All runs of a program that chooses: (value, probability) for each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script: list[int] = []
        self.sizes: list[int] = []
        self.chance = 1.0

        def uniform(n: int, *, size: Any = None, source: Any = None) -> np.ndarray:
            return np.array([self.choose(n) for _ in range(int(np.prod(size)))], dtype=np.int64).reshape(size)

        def coin(law: Bernoulli, *, size: Any = None, source: Any = None) -> np.ndarray:
            found = []
            for _ in range(int(np.prod(size))):
                value = self.choose(2, weighted=False)
                self.chance *= sum(law.probability(value)) / 2
                found.append(value)
            return np.array(found, dtype=np.int64).reshape(size)

        for module in (hadamard_response, randomized_response, subset_selection):
            monkeypatch.setattr(module, "uniform_integer", uniform)
        monkeypatch.setattr(Bernoulli, "sample", coin)

    def choose(self, n: int, *, weighted: bool = True) -> int:
        at = len(self.sizes)
        if at == len(self.script):
            self.script.append(0)
        self.sizes.append(n)
        if weighted:
            self.chance /= n
        return self.script[at]

    def runs(self, program: Callable[[], Any]) -> Iterator[tuple[Any, float]]:
        self.script = []
        while True:
            self.sizes, self.chance = [], 1.0
            yield program(), self.chance
            while self.script and self.script[-1] + 1 == self.sizes[len(self.script) - 1]:
                self.script.pop()
            if not self.script:
                return
            self.script[-1] += 1

    def law(self, program: Callable[[], Any]) -> dict[Any, float]:
        out: dict[Any, float] = {}
        for value, chance in self.runs(program):
            out[value] = out.get(value, 0.0) + chance
        assert sum(out.values()) == pytest.approx(1, abs=1e-12)
        return out


def response(epsilon: float, k: int, x: int) -> dict[Any, float]:
    weights = [math.exp(epsilon) if y == x else 1.0 for y in range(k)]
    return {(y,): w / sum(weights) for y, w in enumerate(weights)}


def subset(epsilon: float, k: int, d: int, x: int) -> dict[Any, float]:
    weights = {s: math.exp(epsilon) if x in s else 1.0 for s in itertools.combinations(range(k), d)}
    return {s: w / sum(weights.values()) for s, w in weights.items()}


def parity(epsilon: float, k: int, x: int) -> dict[Any, float]:
    size = 1 << k.bit_length()
    weights = [1.0 if bin((x + 1) & y).count("1") % 2 else math.exp(epsilon) for y in range(size)]
    return {(y,): w / sum(weights) for y, w in enumerate(weights)}


def answer(released: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in np.ravel(released.values))


MECHANISMS = [
    *[(RandomizedResponse(epsilon=1, categories=k), lambda x, k=k: response(1, k, x)) for k in (2, 3, 7)],
    *[
        (
            SubsetSelection(epsilon=Fraction(1, 2), categories=k, subset=d),
            lambda x, k=k, d=d: subset(0.5, k, d, x),
        )
        for k, d in ((2, 1), (3, 2), (4, 2), (5, 3), (5, 4))
    ],
    *[(HadamardResponse(epsilon=2, categories=k), lambda x, k=k: parity(2, k, x)) for k in (2, 3, 6)],
]
IDS = [f"{type(m).__name__}-{m.categories}-{i}" for i, (m, _) in enumerate(MECHANISMS)]


@pytest.mark.parametrize(("mechanism", "stated"), MECHANISMS, ids=IDS)
def test_one_answer(mechanism: Any, stated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """randomised-response, subset-selection, hadamard-response: what is drawn has the law that the theorem is about."""
    tree = Tree(monkeypatch)
    p, q, _ = mechanism._chances()
    for x in range(mechanism.categories):
        found = tree.law(lambda x=x: answer(mechanism.release([x], source=Silent(seed=0))))
        expected = stated(x)
        assert set(found) == set(expected)
        for outcome, chance in expected.items():
            assert found[outcome] == pytest.approx(chance, rel=1e-12)
        # the two chances that estimates and intervals are made of
        for j in range(mechanism.categories):
            named = sum(
                c for y, c in found.items()
                if mechanism.supports([y] if isinstance(mechanism, SubsetSelection) else list(y))[0, j]
            )  # fmt: skip
            assert named == pytest.approx(p if j == x else q, rel=1e-12)


@pytest.mark.parametrize(
    ("mechanism", "stated"),
    [MECHANISMS[1], MECHANISMS[4], MECHANISMS[8]],
    ids=["response", "subset", "parity"],
)
def test_people_answer_apart(mechanism: Any, stated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people of one call: the law of both answers is the product."""
    tree = Tree(monkeypatch)
    found = tree.law(lambda: answer(mechanism.release([0, 1], source=Silent(seed=0))))
    expected = {a + b: p * q for (a, p), (b, q) in itertools.product(stated(0).items(), stated(1).items())}
    assert set(found) == set(expected)
    for outcome, chance in expected.items():
        assert found[outcome] == pytest.approx(chance, rel=1e-12)


def test_two_questions_are_randomised_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """joint-responses: both answers of one person have the product of their laws."""
    tree = Tree(monkeypatch)
    ask = TwoQuestions(
        first=RandomizedResponse(epsilon=1, categories=3),
        second=SubsetSelection(epsilon=2, categories=4, subset=2),
    )
    for x, y in ((0, 0), (2, 3)):
        found = tree.law(
            lambda x=x, y=y: sum((answer(one) for one in ask.release([x], [y], source=Silent(seed=0))), ())
        )
        first, second = response(1, 3, x), subset(2, 4, 2, y)
        expected = {a + b: p * q for (a, p), (b, q) in itertools.product(first.items(), second.items())}
        assert set(found) == set(expected)
        for outcome, chance in expected.items():
            assert found[outcome] == pytest.approx(chance, rel=1e-12)
