"""The condition of a guarantee: always, over random data, under priors, against bounded adversaries.

Differential privacy is the condition `Always`. The other conditions are weaker statements under the same bound. Each
has a type and a text of its own, and no condition turns into another silently. The rule for composing two of
them is part of the condition:

    Always           with Always: Always.
    RandomData       gammas add, for mechanisms fixed in advance; for adaptive ones no law is known.
    Priors           no law, unless the conditions of Groce Thm 5.6 or 6.8 are declared (laws/compose.py).
    BoundedAdversary advantages add (SIM), or add with a factor e^epsilon (IND).

A condition that assumes *more* is weaker: `Always` implies each of the others.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from tacit.errors import NoLaw, UnknownName
from tacit.exact.checks import check_fields, how_many, probability, text
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import digits_up, sum_up

# What somebody may declare and no program can check; a guarantee that rests on it says so.

DISJOINT_ROWS = "the releases use disjoint rows, independent given what an adversary knows"
FIXED_BEFORE = "this plan was fixed before any other release about these data was seen"
FIXED_MECHANISMS = "all mechanisms were fixed before the data were seen"
FIXED_PARAMETERS = "the parameters of all releases were fixed in advance"
FIXED_PARTS = "the part in which a row lies does not depend on its data"
INDEPENDENT_DRAWS = "the rows are independent draws from one population"
LARGEST_CHANGE = "no two rows differ by more than the largest level"
LEAST_ROWS = "there are at least as many rows as declared"
MOST_CHANGE = (
    "one replaced row moves the statistic by no more than the declared change of the two rows, over n"
)
MUTUAL_KNOWLEDGE = "each release is private for somebody who knows the other"
ORACLE_LAW = "the oracle is public and draws from the law of the rows"
PARTS_ARE_GROUPS = "the parts are the groups of which a person may be in so many"
SMOOTH_CHANGE = "the chosen change of neighbouring samples differs by no more than the declared factor"
SECRET_SAMPLE = "nobody learns which units were sampled"
SEEN = "declarations were made by someone who had seen the data"
SEEN_ANOTHER = (
    "declarations were made by someone who had seen the data under another declared version or name, which may hold "
    "the same rows"
)
SEEN_BEFORE = (SEEN, SEEN_ANOTHER)
"""A ledger's reservation about a guarantee: bounds, keys and bins may have been fitted, which the bound ignores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Base of all conditions."""

    if TYPE_CHECKING:
        # A guarantee's condition is of some kind; its own words and numbers can be asked of it in typed code.
        @property
        def gamma(self) -> float: ...

        @property
        def family(self) -> str: ...

        @property
        def unknown_rows(self) -> int: ...

        @property
        def assumption(self) -> str: ...

        @property
        def advantage(self) -> float: ...

    def describe(self) -> str:
        """A clause that completes 'This holds ...'."""
        raise NoLaw(operation="a bare condition", reason="use Always(), RandomData(...), Priors(...) ...")

    def implies(self, other: Condition) -> tuple[bool, tuple[str, ...]]:
        """Does the same bound under this condition give it under `other`? With the theorems used."""
        return (True, ()) if self == other else (False, ())

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, slots=True, kw_only=True)
class Always(Condition):
    """For all data, all knowledge of the adversary, and all computing power."""

    def describe(self) -> str:
        return "whatever the data are, whatever an adversary knows, and whatever they can compute"

    def implies(self, other: Condition) -> tuple[bool, tuple[str, ...]]:
        if isinstance(other, RandomData):
            return True, ("always-implies-random-data",)
        if isinstance(other, Priors):
            return True, ("always-implies-priors",)
        if isinstance(other, BoundedAdversary):
            return True, ("always-implies-bounded-adversary",)
        return isinstance(other, Always), ()


def told_gamma(gamma: float | Fraction) -> str:
    """Three significant digits, rounded up, so that the share of failing data exceeds the text in the 12th digit at
    most.
    """
    return digits_up(gamma)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomData(Condition):
    """Random differential privacy: with probability 1 - gamma over data drawn independently from one law.

    Hall, Rinaldo, Wasserman (2011), Def. 2: the bound holds for the samples (x_1..x_n) and
    (x_1..x_{n-1}, x_{n+1}) except with probability gamma over the n+1 independent draws; for add-or-remove
    (footnote 1) it holds for (x_1..x_n) and (x_1..x_{n-1}) except with probability gamma over the n draws, for every n
    of at least a declared number. Not probabilistic DP, whose probability is over the coins (theorem
    `random-is-not-probabilistic`). Units are single rows.
    """

    gamma: float

    def __post_init__(self) -> None:
        check_fields(self, gamma=probability)

    def describe(self) -> str:
        return (
            f"except with probability {told_gamma(self.gamma)} over the data themselves, if the rows are independent "
            "draws from one population, and for mechanisms that were fixed before the data were seen"
        )

    def implies(self, other: Condition) -> tuple[bool, tuple[str, ...]]:
        return isinstance(other, RandomData) and self.gamma <= other.gamma, ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors(Condition):
    """Coupled-worlds privacy (Groce 2014, Def. 5.5) for a class of priors over (data, auxiliary knowledge).

    `family` names the class; equal names mean equal classes. `unknown_rows` is the least number of rows about which
    the adversary has no auxiliary knowledge; a claim that needs fewer unknown rows is stronger.
    """

    family: str
    unknown_rows: int

    def __post_init__(self) -> None:
        check_fields(self, family=partial(text, empty=False), unknown_rows=how_many)

    def describe(self) -> str:
        return (
            f"only against adversaries whose knowledge is of the class '{self.family}' and who know nothing "
            f"of at least {self.unknown_rows} rows"
        )

    def implies(self, other: Condition) -> tuple[bool, tuple[str, ...]]:
        if (
            isinstance(other, Priors)
            and self.family == other.family
            and self.unknown_rows <= other.unknown_rows
        ):
            return True, () if self == other else ("less-auxiliary-knowledge",)
        return False, ()


class Indistinguishability(StrEnum):
    """The computational definition: a private stand-in exists (SIM), or no test distinguishes (IND)."""

    SIM = "sim"
    IND = "ind"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedAdversary(Condition):
    """Computational differential privacy in concrete numbers.

    SIM (Groce 2014, Def. 4.3): for some mechanism with the stated bound, no adversary within `assumption`
    distinguishes its output from this one with an advantage above `advantage`. IND (Def. 4.2): for such
    adversaries Pr[A(F(x))=1] <= e^epsilon Pr[A(F(x'))=1] + delta + advantage.
    """

    assumption: str
    advantage: float
    definition: Indistinguishability = Indistinguishability.SIM

    def __post_init__(self) -> None:
        check_fields(self, assumption=partial(text, empty=False), advantage=probability)
        try:
            # As the pages write it: SIM, IND, SIM-CDP.
            word = (
                str(getattr(self.definition, "value", self.definition)).strip().lower().removesuffix("-cdp")
            )
            object.__setattr__(self, "definition", Indistinguishability(word))
        except ValueError:
            raise UnknownName(
                what="computational definition",
                name=str(self.definition),
                known=[d.value for d in Indistinguishability],
            ) from None

    def describe(self) -> str:
        how = (
            "a mechanism with exactly this bound exists, and telling this one from it"
            if self.definition is Indistinguishability.SIM
            else "beating this bound"
        )
        return (
            f"as long as {self.assumption}: {how} succeeds with advantage at most {digits_up(self.advantage)}"
        )

    def implies(self, other: Condition) -> tuple[bool, tuple[str, ...]]:
        if not isinstance(other, BoundedAdversary) or self.assumption != other.assumption:
            return False, ()
        if self.definition == other.definition:
            return self.advantage <= other.advantage, ()
        return False, ()


def add_gammas(conditions: list[RandomData]) -> RandomData:
    """Union bound over the failing data sets, for mechanisms fixed in advance."""
    return RandomData(gamma=min(1.0, sum_up([c.gamma for c in conditions])))
