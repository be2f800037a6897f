"""Exact answers for small mechanisms: all outcomes of finite randomness, noise on a grid, holes of floats.

No number here is an estimate. Probabilities are fractions. An epsilon is the logarithm of the largest ratio, infinite
if an output has probability 0 on one neighbour only.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tacit.audit.isolation import packed_input, run_once
from tacit.audit.neighbours import given_neighbours
from tacit.audit.outputs import Output
from tacit.errors import InvalidParameter
from tacit.exact.checks import whole
from tacit.exact.data_classes import dataclass

MOST_OUTCOMES = 200_000
_REFUSED = (
    "random", "uniform", "gauss", "normalvariate", "expovariate", "betavariate", "gammavariate", "triangular",
    "lognormvariate", "paretovariate", "vonmisesvariate", "weibullvariate",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactPair:
    """The distributions of a finite mechanism on two neighbours."""

    first: Mapping[Any, Fraction]
    second: Mapping[Any, Fraction]

    def ratio(self) -> Fraction | None:
        """The largest ratio of probabilities of one output, in either direction; None if it is infinite."""
        worst = Fraction(1)
        for output in {**self.first, **self.second}:
            p, q = self.first.get(output, Fraction(0)), self.second.get(output, Fraction(0))
            if (p == 0) != (q == 0):
                return None
            if p:
                worst = max(worst, p / q, q / p)
        return worst

    @property
    def epsilon(self) -> float:
        """ln of the largest ratio."""
        found = self.ratio()
        return math.inf if found is None else math.log(found)

    def delta(self, epsilon: float) -> float:
        """The smallest delta at this epsilon, in the worse direction, with e^epsilon as a float."""
        grown = Fraction(math.exp(epsilon))
        every = {**self.first, **self.second}
        sides = ((self.first, self.second), (self.second, self.first))
        return float(
            max(
                sum(
                    (max(Fraction(0), p.get(o, Fraction(0)) - grown * q.get(o, Fraction(0))) for o in every),
                    Fraction(0),
                )
                for p, q in sides
            )
        )


class _Paths:
    """All outcomes of the choices that a function makes, one run each."""

    def __init__(self) -> None:
        self.prefix: list[int] = []
        self.sizes: list[int] = []
        self.at = 0
        self.chance = Fraction(1)

    def choose(self, weights: Sequence[Fraction]) -> int:
        if self.at == len(self.prefix):
            self.prefix.append(0)
            self.sizes.append(len(weights))
        taken = self.prefix[self.at]
        self.sizes[self.at] = len(weights)
        self.at += 1
        self.chance *= weights[taken]
        return taken

    def below(self, n: int) -> int:
        n = whole("number of outcomes", n)
        if n > MOST_OUTCOMES:
            raise InvalidParameter(
                parameter="number of outcomes", value=n, must=f"be at most {MOST_OUTCOMES}"
            )
        return self.choose([Fraction(1, n)] * n)

    def next(self) -> bool:
        """Goes to the next path; False after the last."""
        del self.prefix[self.at :], self.sizes[self.at :]
        while self.prefix and self.prefix[-1] == self.sizes[-1] - 1:
            self.prefix.pop()
            self.sizes.pop()
        if not self.prefix:
            return False
        self.prefix[-1] += 1
        self.at, self.chance = 0, Fraction(1)
        return True


def law_of(f: Callable[[Any], Any], value: Any) -> dict[Output, Fraction]:
    """The exact distribution of a function whose randomness is finite: choice, choices, randint, randrange,
    getrandbits,
    randbelow.

    The function is run once for every outcome of `random` and `secrets`. Draws of real numbers are refused.
    """
    paths, found, packed = _Paths(), dict[Output, Fraction](), packed_input(value)
    with _chosen_by(paths):
        for runs in range(MOST_OUTCOMES + 1):
            if runs == MOST_OUTCOMES:
                raise InvalidParameter(
                    parameter="mechanism", value=runs, must=f"have at most {MOST_OUTCOMES} outcomes"
                )
            paths.at, paths.chance = 0, Fraction(1)
            output = run_once(f, packed, value)
            if output[0] == "raised InvalidParameter":
                raise InvalidParameter(
                    parameter="mechanism", value=output[1][0], must="draw from finite choices alone"
                )
            found[output] = found.get(output, Fraction(0)) + paths.chance
            if not paths.next():
                break
    return found


def finite(f: Callable[[Any], Any], *, neighbours: Any) -> list[ExactPair]:
    """The exact distributions of a finite mechanism on every pair of neighbours."""
    return [ExactPair(first=law_of(f, a), second=law_of(f, b)) for a, b in given_neighbours(neighbours).pairs]


class _chosen_by:  # noqa: N801
    """Puts the paths in place of `random` and `secrets`."""

    def __init__(self, paths: _Paths) -> None:
        self.paths = paths

    def __enter__(self) -> None:
        paths, plain, secret = (
            self.paths,
            importlib.import_module("random"),
            importlib.import_module("secrets"),
        )

        def choices(
            population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1
        ) -> list[Any]:
            if cum_weights is not None:
                raise InvalidParameter(parameter="cum_weights", value=k, must="be given as weights")
            parts = [Fraction(w) for w in (weights if weights is not None else [1] * len(population))]
            law = [p / sum(parts) for p in parts]
            return [population[paths.choose(law)] for _ in range(k)]

        def randrange(start: int, stop: int | None = None, step: int = 1) -> int:
            every = range(start) if stop is None else range(start, stop, step)
            return every[paths.below(len(every))]

        def refused(*_: Any, **__: Any) -> Any:
            raise InvalidParameter(
                parameter="mechanism", value="a real number", must="draw from finite choices alone"
            )

        new = {
            "choice": lambda given: given[paths.below(len(given))],
            "choices": choices,
            "randrange": randrange,
            "randint": lambda a, b: a + paths.below(b - a + 1),
            "getrandbits": lambda k: paths.below(2**k),
            **dict.fromkeys(_REFUSED, refused),
        }
        secrets = {
            "choice": new["choice"],
            "randbelow": paths.below,
            "randbits": new["getrandbits"],
        }
        self.old = [(plain, n, getattr(plain, n)) for n in new] + [
            (secret, n, getattr(secret, n)) for n in secrets
        ]
        for where, names in ((plain, new), (secret, secrets)):
            for name, value in names.items():
                setattr(where, name, value)

    def __exit__(self, *_: object) -> None:
        for where, name, value in self.old:
            setattr(where, name, value)


def additive(noise: Mapping[int, Any], *, sensitivity: int) -> ExactPair:
    """Noise on integers with these probabilities, on numbers that differ by up to `sensitivity`: the worst shift.

    An infinite epsilon means that the support reveals the input: some output is impossible on one neighbour.
    """
    law = {int(k): Fraction(v) for k, v in noise.items() if v}
    total = sum(law.values(), Fraction(0))
    if not law or abs(total - 1) > Fraction(1, 10**9) or min(law.values()) < 0:
        raise InvalidParameter(parameter="noise", value=float(total), must="have probabilities that sum to 1")
    steps = whole("sensitivity", sensitivity)
    pairs = [ExactPair(first=law, second={k + s: v for k, v in law.items()}) for s in range(1, steps + 1)]
    return max(pairs, key=lambda pair: (pair.epsilon, pair.delta(0.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Holes:
    """Floats that noise on one input gives and noise on the other cannot."""

    tried: int
    impossible: int

    @property
    def share(self) -> float:
        """The share of outputs that rule out the other input."""
        return self.impossible / self.tried


def holes(
    noise: Callable[[int], float], *, words: int, first: float, second: float, tried: int = 1000
) -> Holes:
    """The outputs first + noise(k), k below `words`, that equal second + noise(j) for no j. For noise that rises with
    k.

    The words tried are spread evenly. A search by halves decides each of them exactly, on the floats themselves.
    """
    n, tried = whole("words", words, least=2), whole("tried", tried)
    missing = 0
    for t in range(tried):
        z = first + noise((2 * t + 1) * n // (2 * tried))
        low, high = 0, n - 1
        while low < high:
            middle = (low + high) // 2
            if second + noise(middle) < z:
                low = middle + 1
            else:
                high = middle
        missing += second + noise(low) != z
    return Holes(tried=tried, impossible=missing)
