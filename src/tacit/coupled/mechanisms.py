"""Finite mechanisms and simulators: for every input the exact probabilities of every output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

from tacit.coupled.numbers import Distribution, as_distribution, hashable, mixed
from tacit.coupled.pairs import GONE, Pair
from tacit.coupled.priors import Prior, answer_distribution
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.checks import check_fields, instance, listed, refuse_if, text
from tacit.exact.data_classes import dataclass

__all__ = ["FiniteMechanism", "Simulator", "cell_of", "filling_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteMechanism:
    """A mapping from each data set to {output: probability}; each row adds up to exactly 1.

    The coins are the mechanism's own: independent of the data, of the auxiliary knowledge and of any simulator.
    """

    name: str = "F"
    table: Mapping[Any, Distribution] = field(hash=False)

    def __post_init__(self) -> None:
        check_fields(self, name=partial(text, empty=False))
        if not isinstance(self.table, Mapping) or not self.table:
            raise InvalidParameter(
                parameter="table",
                value=type(self.table).__name__,
                must="map at least one data set to its outputs",
            )
        rows = {x: answer_distribution({x: row}, x, "mechanism") for x, row in self.table.items()}
        object.__setattr__(self, "table", MappingProxyType(rows))

    @classmethod
    def of(
        cls, function: Callable[[Any], Any], data: Iterable[Any] | Sequence[Prior], *, name: str = "F"
    ) -> FiniteMechanism:
        """Runs a function on every data set: it answers with a value, or with a mapping of outputs to probabilities.

        `data` are the data sets, or priors, whose data sets are meant.
        """
        refuse_if(not callable(function), "function", type(function).__name__, "be a function of the data")
        table: dict[Any, Any] = {}
        for entry in listed("data", data, must="be data sets or priors"):
            for x in entry.data if isinstance(entry, Prior) else [hashable("data", entry)]:
                if x not in table:
                    table[x] = answer_distribution(function, x, "mechanism")
        return cls(name=name, table=table)

    def __getitem__(self, data: Any) -> Distribution:
        if data not in self.table:
            raise InvalidParameter(
                parameter="mechanism",
                value="a table without it",
                must="say what it does on every data set that a prior can draw",
            )
        return self.table[data]

    @property
    def outputs(self) -> tuple[Any, ...]:
        """Every output that some data set can give, in the order of the table."""
        return tuple(dict.fromkeys(t for row in self.table.values() for t in row))

    def then(self, function: Callable[[Any], Any], *, name: str = "") -> FiniteMechanism:
        """Post-processing: a (random) function of the output."""
        told = {t: answer_distribution(function, t, "post-processing") for t in self.outputs}
        table = {x: MappingProxyType(mixed(row, told)) for x, row in self.table.items()}
        return FiniteMechanism(name=name or f"{self.name}, post-processed", table=table)

    def beside(self, other: FiniteMechanism, *, name: str = "") -> FiniteMechanism:
        """Both are released, with independent coins: the outputs are pairs."""
        instance("other", other, FiniteMechanism, must="be a mechanism")
        table = {
            x: MappingProxyType({(s, t): p * q for s, p in row.items() for t, q in other[x].items()})
            for x, row in self.table.items()
        }
        return FiniteMechanism(name=name or f"({self.name}, {other.name})", table=table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulator:
    """The release of the ideal world: a random function of alt(X), for each pair.

    `answer(pair name, alt(X))` gives a value or a mapping of outputs to probabilities. The simulator knows the
    name of the protected pair. To model one that serves all pairs alike, ignore the name in its answer.
    """

    name: str
    answer: Callable[[str, Any], Any]

    def __post_init__(self) -> None:
        check_fields(self, name=partial(text, empty=False))
        if not callable(self.answer):
            raise InvalidParameter(
                parameter="answer",
                value=type(self.answer).__name__,
                must="be a function of (pair, scrubbed data)",
            )

    @classmethod
    def of_table(cls, table: Mapping[Any, Any], *, name: str = "a table") -> Simulator:
        """From a table: (pair name, alt(X)), or alt(X) alone for all pairs, to {output: probability}."""
        rows = {
            key: as_distribution("simulator", dict(row)) for key, row in instance_of_mapping(table).items()
        }

        def answer(pair: str, scrubbed: Any) -> Any:
            found = rows.get((pair, scrubbed), rows.get(scrubbed))
            if found is None:
                raise InvalidParameter(
                    parameter="simulator",
                    value="a table without it",
                    must="answer every scrubbed data set that can occur",
                )
            return found

        return cls(name=name, answer=answer)

    @classmethod
    def constant(cls, outputs: Any, *, name: str = "a constant distribution") -> Simulator:
        """Gives the same answer for all data: a mapping of outputs to probabilities, or a list for the uniform one."""
        if isinstance(outputs, Mapping):
            law = as_distribution("simulator", outputs)
        else:
            options = listed("outputs", outputs)
            law = as_distribution("simulator", dict.fromkeys(options, Fraction(1, max(len(set(options)), 1))))
        return cls(name=name, answer=lambda pair, scrubbed: law)

    def __call__(self, pair: str, scrubbed: Any) -> Distribution:
        """The distribution of its output."""
        return answer_distribution(lambda a: self.answer(pair, a), scrubbed, "simulator")


def instance_of_mapping(table: object) -> Mapping[Any, Any]:
    """A table, or one typed error."""
    if not isinstance(table, Mapping) or not table:
        raise InvalidParameter(
            parameter="simulator", value=type(table).__name__, must="be a table that is not empty"
        )
    return table


def filling_in(mechanism: FiniteMechanism, value: Any, *, name: str = "") -> Simulator:
    """Runs the mechanism on the scrubbed data, with a fixed entry in place of a missing one."""

    def answer(pair: str, scrubbed: Any) -> Distribution:
        return mechanism[tuple(value if v == GONE else v for v in scrubbed)]

    return Simulator(name=name or "the mechanism, with a fixed entry filled in", answer=answer)


def scrub(pair: Pair, data: Any) -> Distribution:
    """The distribution of alt(X) for one data set."""
    return answer_distribution(pair.alt, data, "alt")


# Cells: all that a definition compares, one for each (prior, pair, private value, auxiliary value) that can occur.
#
# In the cell (v, z) the real world has the distribution of F(X) given priv(X) = v, Z = z, and the ideal world that of
# Sim(alt(X)) given the same, which is the mixture of the simulator's answers with the weights Pr[alt(X) = a | v, z].


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """The conditional distributions of one (prior, pair, value, auxiliary)."""

    prior: str
    pair: str
    value: Any
    auxiliary: Any
    probability: Fraction
    real: Distribution
    scrubbed: Distribution


def check_priors(priors: Sequence[Prior]) -> tuple[Prior, ...]:
    """A class of priors: at least one, each of them a prior, with different names."""
    return _told_apart("priors", priors, Prior, "priors", "the class of priors")


def check_pairs(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The protected pairs: at least one, with different names."""
    return _told_apart("pairs", pairs, Pair, "pairs (alt, priv)", "the family of pairs")


def _told_apart(parameter: str, values: Any, kind: type, what: str, whole: str) -> tuple[Any, ...]:
    given = listed(parameter, values, must=f"be a list of {what}")
    if not given:
        raise EmptyComposition(what=whole)
    for one in given:
        instance(parameter, one, kind, must=f"be {what}")
    twice = len({one.name for one in given}) < len(given)
    refuse_if(twice, parameter, "two of one name", "have names that tell them apart")
    return given


def cells(mechanism: FiniteMechanism, priors: Sequence[Prior], pairs: Sequence[Pair]) -> list[Cell]:
    """Every cell of positive probability."""
    instance("mechanism", mechanism, FiniteMechanism, must="be a finite mechanism")
    found = []
    for prior in check_priors(priors):
        for pair in check_pairs(pairs):
            found += _of(mechanism, prior, pair)
    return found


def _of(mechanism: FiniteMechanism, prior: Prior, pair: Pair) -> list[Cell]:
    groups: dict[tuple[Any, Any], list[tuple[Any, Fraction]]] = {}
    for (x, z), weight in prior.weights.items():
        groups.setdefault((hashable("priv", pair.priv(x)), z), []).append((x, weight))
    found = []
    for (v, z), members in groups.items():
        whole = sum((w for _, w in members), Fraction(0))
        if len(members) == 1:
            x = members[0][0]
            real, scrubbed = mechanism[x], scrub(pair, x)
        else:
            given = {x: w / whole for x, w in members}
            real, scrubbed = mixed(given, mechanism), mixed(given, {x: scrub(pair, x) for x in given})
        found.append(
            Cell(
                prior=prior.name,
                pair=pair.name,
                value=v,
                auxiliary=z,
                probability=whole,
                real=real,
                scrubbed=scrubbed,
            )
        )
    return found


def cell_of(
    mechanism: FiniteMechanism, prior: Prior, pair: Pair, *, value: Any, auxiliary: Any = None
) -> Cell:
    """One cell by its value and auxiliary; an error if the prior gives them probability 0."""
    for cell in cells(mechanism, [prior], [pair]):
        if cell.value == value and cell.auxiliary == auxiliary:
            return cell
    raise InvalidParameter(
        parameter="value",
        value="a value of probability 0",
        must="occur under the prior, together with the auxiliary",
        hint="nothing is defined given an event of probability 0",
    )


def ideal(cell: Cell, simulator: Simulator) -> dict[Any, Fraction]:
    """The distribution of Sim(alt(X)) in the cell."""
    return mixed(cell.scrubbed, {a: simulator(cell.pair, a) for a in cell.scrubbed})
