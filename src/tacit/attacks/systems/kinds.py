"""Coin weighing: recovers bits from sums whose linear algebra reveals nobody, for blocks of people at a time."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache
from math import gcd
from typing import TYPE_CHECKING, ClassVar

from tacit.attacks.finding import Draws, Finding
from tacit.errors import InvalidParameter, NotCertified, Refused
from tacit.exact.checks import positive, rate, refuse_if, require, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from tacit.exact.arrays import Booleans, Floats, Integers

__all__ = [
    "AnsweringService",
    "AtomicPopulations",
    "AuditedSums",
    "FixedNoise",
    "OverlapRestriction",
    "PerturbedValues",
    "RandomSamples",
    "RemoteAnalysis",
    "SetSizeRestriction",
    "by_difference",
    "by_leverage",
    "weigh",
]

# One interface for the systems that answered questions before differential privacy, each with its own idea of safety.
#
# A service holds one private value of each of n people, and is asked for totals over sets of them (Adam and Wortmann
# 1989; Groce 2014, 2.6). That sets are named person by person is no more than an outsider has: public attributes
# single people out. `asked` counts the questions.


def refuse(reason: str) -> Refused:
    """Refuses a question; the reason is the system's public rule and contains nobody's value."""
    return Refused(f"the system does not answer: {reason}")


class AnsweringService(ABC):
    """Answers totals over sets of people, by its own rule."""

    idea: ClassVar[str] = ""
    source: ClassVar[str] = ""

    def __init__(self, values: npt.ArrayLike) -> None:
        import numpy as np

        self._values = np.array(values, dtype=np.float64)
        if self._values.ndim != 1 or not self._values.size or not np.isfinite(self._values).all():
            raise InvalidParameter(
                parameter="values", value=self._values.shape, must="be finite numbers, one a person"
            )
        self.asked = 0

    @property
    def people(self) -> int:
        """Their number, which is public."""
        return int(self._values.size)

    def total(self, members: npt.ArrayLike, *, wording: str = "") -> float:
        """The total over a set: an array of booleans, or a list of people. The wording is how the set was described."""
        import numpy as np

        given = np.asarray(members)
        if given.dtype == np.bool_:
            chosen = given
        else:
            chosen = np.zeros(self.people, dtype=np.bool_)
            chosen[given.astype(np.int64)] = True
        refuse_if(chosen.shape != (self.people,), "members", chosen.shape, "be a set of the people")
        self.asked += 1
        return self._answer(chosen, wording)

    @abstractmethod
    def _answer(self, members: Booleans, wording: str) -> float:
        """The answer, or `refuse`."""

    def _true(self, members: Booleans) -> float:
        return float(self._values[members].sum())


# The span of sets of people, in exact whole numbers and without their zeros: what an audit of sums keeps.
#
# The reduced echelon form, each row a multiple of itself that is whole. Only rows that share people with a new set
# are touched, so that 10^5 people in sets of a dozen cost no more than as many small systems.

Row = dict[int, int]


class Echelon:
    """Rows by the place of their pivot; every other row has 0 there."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self._rows_with: dict[int, set[int]] = {}

    def after(self, members: Iterable[int]) -> dict[int, Row]:
        """The rows that these people would change or add, by their pivots; empty if they add nothing."""
        new: Row = dict.fromkeys(members, 1)
        for pivot in [place for place in new if place in self.rows]:
            new = _without(new, self.rows[pivot], pivot)
        if not new:
            return {}
        pivot = min(new)
        touched = self._rows_with.get(pivot, ())
        return {at: _without(self.rows[at], new, pivot) for at in touched} | {pivot: new}

    def keep(self, changed: dict[int, Row]) -> None:
        """Takes what `after` gave."""
        for pivot, row in changed.items():
            before = self.rows.get(pivot, {})
            for place in before.keys() - row.keys():
                self._rows_with[place].discard(pivot)
            for place in row.keys() - before.keys():
                self._rows_with.setdefault(place, set()).add(pivot)
            self.rows[pivot] = row


def _without(row: Row, other: Row, place: int) -> Row:
    """A multiple of the row plus one of the other, in smallest whole numbers, with 0 at this place."""
    mine, theirs = row[place], other[place]
    made = {at: theirs * value for at, value in row.items()} if theirs != 1 else dict(row)
    for at, value in other.items():
        left = made.get(at, 0) - mine * value
        if left:
            made[at] = left
        else:
            del made[at]
    common = gcd(*made.values())
    return {at: value // common for at, value in made.items()} if common > 1 else made


# Systems that answer exactly and refuse some questions: small sets, overlapping sets, sums that give somebody away.


class SetSizeRestriction(AnsweringService):
    """Sets with fewer than `least` people are refused, and so are their complements."""

    idea: ClassVar[str] = "answer no question about few people, nor about all except few"
    source: ClassVar[str] = "Hoffman and Miller 1970; Fellegi 1972"

    def __init__(self, values: npt.ArrayLike, *, least: int) -> None:
        super().__init__(values)
        self.least = whole("least", least)

    def _answer(self, members: Booleans, wording: str) -> float:
        size = int(members.sum())
        if not self.least <= size <= self.people - self.least:
            raise refuse(f"sets of fewer than {self.least} people, and their complements")
        return self._true(members)


class OverlapRestriction(AnsweringService):
    """Sets of at least `least` people, any two of which share at most `shared`."""

    idea: ClassVar[str] = "answer no two questions whose sets overlap much"
    source: ClassVar[str] = "Dobkin, Jones and Lipton 1979"

    def __init__(self, values: npt.ArrayLike, *, least: int, shared: int = 1) -> None:
        super().__init__(values)
        self.least, self.shared = whole("least", least), whole("shared", shared, least=0)
        self._before: list[Booleans] = []

    def _answer(self, members: Booleans, wording: str) -> float:
        if int(members.sum()) < self.least:
            raise refuse(f"sets of fewer than {self.least} people")
        if any(int((members & other).sum()) > self.shared for other in self._before):
            raise refuse(f"a set that shares more than {self.shared} people with an earlier one")
        self._before.append(members.copy())
        return self._true(members)


class AuditedSums(AnsweringService):
    """Keeps every answer, and refuses a sum if one person's value would follow from it and the kept answers.

    The audit is linear algebra over the answers: person i's value follows if and only if the unit vector of i is in the
    span of the sets, which is when the reduced echelon form has that unit vector as a row.
    """

    idea: ClassVar[str] = "answer no sum from which somebody's value follows by linear algebra"
    source: ClassVar[str] = "Chin and Özsoyoğlu 1982"

    def __init__(self, values: npt.ArrayLike) -> None:
        super().__init__(values)
        self._echelon = Echelon()

    def _answer(self, members: Booleans, wording: str) -> float:
        changed = self._echelon.after(members.nonzero()[0].tolist())
        if any(len(row) == 1 for row in changed.values()):
            raise refuse("a sum from which, with earlier ones, somebody's value would follow")
        self._echelon.keep(changed)
        return self._true(members)


class AtomicPopulations(AnsweringService):
    """The conceptual model: people are in atoms of at least two, and a set has all or none of each atom."""

    idea: ClassVar[str] = "answer only about unions of populations of at least two"
    source: ClassVar[str] = "Chin and Özsoyoğlu 1981"

    def __init__(self, values: npt.ArrayLike, *, atoms: Sequence[Sequence[int]]) -> None:
        super().__init__(values)
        self.atoms = [tuple(a) for a in atoms]
        if (
            sorted(i for a in self.atoms for i in a) != list(range(self.people))
            or min(map(len, self.atoms)) < 2
        ):
            raise InvalidParameter(
                parameter="atoms",
                value=len(self.atoms),
                must="have everybody once, and at least two people each",
            )
        import numpy as np

        self._sizes = np.array([len(a) for a in self.atoms])
        self._atom_of = np.empty(self.people, dtype=np.int64)
        self._atom_of[[i for a in self.atoms for i in a]] = np.repeat(np.arange(len(self.atoms)), self._sizes)

    def _answer(self, members: Booleans, wording: str) -> float:
        import numpy as np

        touched, inside = np.unique(self._atom_of[np.flatnonzero(members)], return_counts=True)
        if (inside < self._sizes[touched]).any():
            raise refuse("a set that divides an atomic population")
        return self._true(members)


# Systems that refuse nothing and disturb what they answer: values, samples, answers.


class PerturbedValues(AnsweringService):
    """Every value gets noise of the same size: once for all (`fresh=False`), or anew in every answer."""

    idea: ClassVar[str] = "add noise to every value, and answer everything"
    source: ClassVar[str] = "Traub, Yemini and Woźniakowski 1984"

    def __init__(
        self, values: npt.ArrayLike, *, noise_std: float, fresh: bool = False, seed: int = 0
    ) -> None:
        super().__init__(values)
        self.noise_std, self.fresh = positive("noise_std", noise_std), fresh
        self._draws = Draws(seed, "perturbed")
        self._noise = self.noise_std * self._draws.normals(self.people)

    def _answer(self, members: Booleans, wording: str) -> float:
        noise = self.noise_std * self._draws.normals(self.people) if self.fresh else self._noise
        return self._true(members) + float(noise[members].sum())


class RandomSamples(AnsweringService):
    """Each question is answered on a sample of its set. The wording decides the sample, so a repeated question gets
    the same answer.
    """

    idea: ClassVar[str] = "answer on a random sample that the question itself selects"
    source: ClassVar[str] = "Denning 1980"

    def __init__(self, values: npt.ArrayLike, *, share: float = 0.5, seed: int = 0) -> None:
        super().__init__(values)
        self.share, self._seed = rate("share", share), whole("seed", seed, least=0)

    def _answer(self, members: Booleans, wording: str) -> float:
        sampled = Draws(self._seed, f"sample/{wording}").uniforms(self.people) < self.share
        return self._true(members & sampled) / self.share


class FixedNoise(AnsweringService):
    """The set of people fixes the noise of an answer, so that asking again, in any words, gives the same answer."""

    idea: ClassVar[str] = "add noise that is fixed for each set, so that nothing can be averaged"
    source: ClassVar[str] = "as in cell-key perturbation and sticky noise"

    def __init__(self, values: npt.ArrayLike, *, noise_std: float, seed: int = 0) -> None:
        super().__init__(values)
        self.noise_std, self._seed = positive("noise_std", noise_std), whole("seed", seed, least=0)

    def _answer(self, members: Booleans, wording: str) -> float:
        set_key = hashlib.sha256(members.tobytes()).hexdigest()
        noise = float(Draws(self._seed, f"fixed/{set_key}").normals(1)[0])
        return self._true(members) + self.noise_std * noise


# A remote analysis server: it keeps the data and answers least squares, with rules against single people.
#
# Users bring predictors that they computed from public columns, and get coefficients (O'Keefe and Good 2008; Sparks
# et al. 2008; Reiter 2003; Hall 2012, 1.1.2). Two attacks need no more than that.


class RemoteAnalysis(AnsweringService):
    """Least squares on at least `least` people, with no predictor that is 0 for all but few of them."""

    idea: ClassVar[str] = "show no data, only fitted models, and refuse models about few people"
    source: ClassVar[str] = "O'Keefe and Good 2008; Sparks et al. 2008"

    def __init__(self, values: npt.ArrayLike, *, least: int = 10) -> None:
        super().__init__(values)
        self.least = whole("least", least)

    def _answer(self, members: Booleans, wording: str) -> float:
        if int(members.sum()) < self.least:
            raise refuse(f"totals over fewer than {self.least} people")
        return self._true(members)

    def fit(self, predictors: npt.ArrayLike, members: npt.ArrayLike | None = None) -> Floats:
        """Coefficients of least squares of the private value on predictors (a row a person), over a set of people."""
        import numpy as np

        x = np.asarray(predictors, dtype=np.float64)
        chosen = (
            np.ones(self.people, dtype=np.bool_) if members is None else np.asarray(members, dtype=np.bool_)
        )
        self.asked += 1
        if int(chosen.sum()) < self.least:
            raise refuse(f"models of fewer than {self.least} people")
        if (np.count_nonzero(x[chosen], axis=0) < self.least).any():
            raise refuse(f"predictors that are 0 for all but fewer than {self.least} people")
        return np.asarray(np.linalg.lstsq(x[chosen], self._values[chosen], rcond=None)[0], dtype=np.float64)


def by_leverage(service: RemoteAnalysis, public: npt.ArrayLike, people: Sequence[int]) -> Finding:
    """A predictor with all its weight on one person: the model must pass through her value.

    z_i = exp(-(x_i - x_t)² / w²) is 1 for the person and tiny, but not 0, for everybody else; intercept plus
    coefficient is her value. Only a public number that tells people apart is needed.
    """
    import numpy as np

    x = np.asarray(public, dtype=np.float64)
    learned = []
    for target in people:
        gaps = np.abs(x - x[target])
        gaps[target] = np.inf
        width = float(gaps.min()) / 6.0
        weight = np.exp(-np.minimum(((x - x[target]) / width) ** 2, 600.0))
        found = service.fit(np.column_stack([np.ones(x.size), weight]))
        learned.append(float(found.sum()))
    return _finding("leverage", service, people, learned)


def by_difference(service: RemoteAnalysis, predictors: npt.ArrayLike, people: Sequence[int]) -> Finding:
    """The same model with and without one person: X'Xβ is X'y, and the two differ by x_t y_t."""
    import numpy as np

    x = np.asarray(predictors, dtype=np.float64)
    total = x.T @ x @ service.fit(x)
    learned = []
    for target in people:
        rest = np.ones(service.people, dtype=np.bool_)
        rest[target] = False
        without = x[rest].T @ x[rest] @ service.fit(x, rest)
        best = int(np.abs(x[target]).argmax())
        learned.append(float((total - without)[best] / x[target, best]))
    return _finding("difference of models", service, people, learned)


def _finding(
    attack: str, service: RemoteAnalysis, people: Sequence[int], learned: Sequence[float]
) -> Finding:
    return Finding(
        attack=attack,
        people=service.people,
        exposed=list(people),
        learned=learned,
        guessing=0.0,
        alone="a number that is right to many digits cannot be guessed",
        details={"asked": service.asked},
    )


LARGEST_BLOCK = 32


def weigh(service: AuditedSums, *, questions: int, block: int = 24, seed: int = 0) -> Finding:
    """Bits from sums whose linear algebra reveals nobody: the audit ignored that values are 0 or 1.

    People are taken in blocks of at most `block`, and `questions` random sets of each block are asked. A person is
    exposed if their bit is the same in all solutions that fit the answers (a coin-weighing argument: about 2n / log2 n
    sums are enough for a block of n). Sets in one block share nobody with sets in another, so 10^5 people need
    no more than many small systems.
    """
    import numpy as np

    questions, block = whole("questions", questions), whole("block", block, least=2)
    require(block <= LARGEST_BLOCK, parameter="block", value=block, must=f"be at most {LARGEST_BLOCK}")
    draws, answered = Draws(seed, "weighing"), 0
    exposed: list[int] = []
    learned: list[float] = []
    for people in np.array_split(np.arange(service.people), -(-service.people // block)):
        asked, answers = _ask(service, people, questions, draws)
        answered += len(answers)
        if not answers:
            continue
        for place, bit in fitting_bits(asked, answers).items():
            exposed.append(int(people[place]))
            learned.append(float(bit))
    return Finding(
        attack="weighing",
        people=service.people,
        exposed=exposed,
        learned=learned,
        guessing=0.5,
        alone="a coin",
        details={"asked": service.asked, "answered": answered},
    )


def _ask(
    service: AuditedSums, people: Integers, questions: int, draws: Draws
) -> tuple[Integers, list[float]]:
    """Random sets of these people: the wanted number, or those that the service answers among twenty times that
    number.
    """
    import numpy as np

    asked, answers = [], []
    for _ in range(20 * questions):
        members = draws.bits(len(people))
        try:
            answers.append(service.total(people[members == 1]))
        except Refused:
            continue
        asked.append(members)
        if len(asked) == questions:
            break
    return np.array(asked, dtype=np.int64), answers


def fitting_bits(asked: Integers, answers: Sequence[float]) -> dict[int, int]:
    """The places whose bit is the same in every fitting pattern, found by meeting in the middle.

    Sums are compared by one word each, a sum of theirs with odd weights modulo 2^64. Equal sums have equal
    words, so no solution is missed. If different sums share a word, the claim is weaker but still right.
    """
    import numpy as np

    totals = np.rint(answers).astype(np.int64)
    questions, people = asked.shape
    half = people // 2
    step = np.uint64(0x9E3779B97F4A7C15)
    weights = np.cumprod(np.full(questions, step, dtype=np.uint64), dtype=np.uint64)
    words = (asked.astype(np.uint64) * weights[:, None]).sum(axis=0, dtype=np.uint64)
    left, right = _patterns(half), _patterns(people - half)
    wanted = (totals.astype(np.uint64) * weights).sum(dtype=np.uint64) - right @ words[half:]
    first = left @ words[:half]
    ordered = np.sort(wanted)
    met = ordered[np.minimum(np.searchsorted(ordered, first), len(ordered) - 1)] == first
    left, right = left[met], right[np.isin(wanted, first[met])]
    if not len(left) or np.abs(totals - np.asarray(answers)).max() > 1e-6:
        raise NotCertified(what="the search for bits", reason="no zeros and ones have these sums")
    least = np.r_[left.min(axis=0), right.min(axis=0)]
    most = np.r_[left.max(axis=0), right.max(axis=0)]
    return {int(i): int(least[i]) for i in np.flatnonzero(least == most)}


@cache
def _patterns(people: int) -> npt.NDArray[np.uint64]:
    """All zeros and ones for this many people, a row each."""
    import numpy as np

    codes = np.arange(2**people, dtype=np.uint64)[:, None]
    return (codes >> np.arange(people, dtype=np.uint64)) & np.uint64(1)
