"""A guarantee: bound, unit and condition, and its record. No part is ever dropped."""

from __future__ import annotations

import math
from dataclasses import field, fields, replace
from functools import lru_cache
from typing import Any

from tacit.errors import InvalidParameter, NoLaw, UnitMismatch, UnknownName
from tacit.exact.canonical import formerly
from tacit.exact.checks import Numbers, how_many, instance, listed, text
from tacit.exact.data_classes import dataclass
from tacit.guarantees import meaning
from tacit.guarantees.bounds import (
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Pointwise,
    Profile,
    Pure,
    Renyi,
)
from tacit.guarantees.conditions import (
    SECRET_SAMPLE,
    SEEN_BEFORE,
    Always,
    BoundedAdversary,
    Condition,
    Indistinguishability,
    Priors,
    RandomData,
)
from tacit.guarantees.implication import Implication, bound_implies
from tacit.guarantees.laws.amplify import Sampling, amplify_for
from tacit.guarantees.laws.conditions import group_bounded, replace_on_random_data, sim_to_ind, single_rows
from tacit.guarantees.laws.group import group_bound
from tacit.guarantees.meaning import Incentive
from tacit.guarantees.units import Coupled, GroupOf, Neighbours, People, Rows, Unit, group_of, rows, steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """bound (the amount) + unit (the protected) + condition (the assumption); `Always` is differential privacy.

    `declared` lists declarations that no program can check ("the parameters were fixed in advance"). Every law
    keeps them, and every guarantee prints and records them.
    """

    bound: Bound
    unit: Unit
    condition: Condition = field(default_factory=Always)
    declared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in (("bound", Bound), ("unit", Unit), ("condition", Condition)):
            if not isinstance(getattr(self, name), kind):
                raise InvalidParameter(
                    parameter=name, value=getattr(self, name), must=f"be a {kind.__name__.lower()}"
                )

        declared = [
            text("declared", d) for d in listed("declared", self.declared, must="be a list of sentences")
        ]
        object.__setattr__(self, "declared", tuple(sorted(set(declared))))
        if isinstance(self.condition, RandomData):
            single_rows(_plain_unit(self.unit))

    # --- reading -------------------------------------------------------------------------------------
    def delta_at(self, epsilon: Numbers) -> Numbers:
        """The bound's delta at this epsilon."""
        return self.bound.delta_at(epsilon)

    def epsilon_at(self, delta: Numbers) -> Numbers:
        """The bound's epsilon at this delta."""
        return self.bound.epsilon_at(delta)

    def delta(self, epsilon: Numbers) -> Numbers:
        """Short for `delta_at`."""
        return self.delta_at(epsilon)

    def epsilon(self, delta: Numbers) -> Numbers:
        """Short for `epsilon_at`."""
        return self.epsilon_at(delta)

    def renyi(self, order: Numbers) -> Numbers:
        """The bound's Rényi divergence at this order."""
        return self.bound.renyi(order)

    def power(self, size: float) -> float:
        """The largest power of any test of this size about one unit (Hall 2012, Prop. 1.2.2)."""
        return meaning.reading_of_power(self.bound, self.unit, self.condition, size)

    def best_guess(self, prior: float = 0.5) -> float:
        """The largest probability of guessing rightly between two values, before odds of `prior`."""
        return meaning.reading_of_best_guess(self.bound, self.unit, self.condition, prior)

    def average_guess(self, prior: float = 0.5) -> float:
        """The same, averaged over data drawn at random: the form of `best_guess` under `RandomData`."""
        return meaning.average_guess(self.bound, self.unit, self.condition, prior)

    def posterior_shift(self) -> float:
        """tanh(epsilon/2) for pure epsilon; NoLaw otherwise."""
        return meaning.reading_of_posterior_shift(self.bound, self.unit, self.condition)

    def incentive(self, *, delta: float | None = None) -> Incentive:
        """The largest factor by which one unit's data raise the expectation of any harm (Hall 2012, sec. 1.2.1).

        `delta` names a level of the bound's curve; the default is the bound's own delta.
        """
        return meaning.reading_of_incentive(self.bound, self.unit, self.condition, delta)

    def explain(self) -> str:
        """Plain sentences for a disclosure officer."""
        return explain(self.bound, self.unit, self.condition, self.declared)

    def __str__(self) -> str:
        text = f"{self.bound} for {self.unit}"
        if not isinstance(self.condition, Always):
            text += f"; {self.condition}"
        return text + (f"; declared: {'; '.join(self.declared)}" if self.declared else "")

    # --- comparing -----------------------------------------------------------------------------------
    def implies(self, other: Guarantee) -> Implication:
        """Whether this promise contains the other. With the chain of theorems, or the reason why not."""
        if not isinstance(other, Guarantee):
            raise InvalidParameter(parameter="other", value=other, must="be a guarantee")
        try:
            restated = self.for_unit(other.unit)
            _, chain = steps(self.unit, other.unit)
        except (UnitMismatch, NoLaw) as problem:
            return Implication(holds=False, reason=str(problem))
        if isinstance(self.condition, RandomData) and _relaxed(self.unit, other.unit):
            chain = (*chain, "replace-on-random-data")
        holds, used = restated._condition_implies(other.condition)
        if not holds and _ind_to_sim(self.condition, other.condition):
            return Implication(
                holds=False, reason="whether IND implies SIM is an open question (Groce 2014, ch. 4)"
            )
        if not holds:
            return Implication(
                holds=False,
                reason=f"it holds {self.condition}, which does not give: {other.condition}",
            )
        more = set(self.declared) - set(other.declared)
        if more:
            return Implication(holds=False, reason=f"it rests on a declaration: {'; '.join(sorted(more))}")
        verdict = bound_implies(restated.bound, other.bound)
        return replace(verdict, chain=tuple(dict.fromkeys((*chain, *used, *verdict.chain))))

    def _condition_implies(self, other: Condition) -> tuple[bool, tuple[str, ...]]:
        mine = self.condition
        if (
            isinstance(mine, BoundedAdversary)
            and isinstance(other, BoundedAdversary)
            and mine.definition is Indistinguishability.SIM
            and other.definition is Indistinguishability.IND
            and math.isfinite(self.bound._epsilon(0.0))
        ):
            holds, used = sim_to_ind(mine, self.bound).implies(other)
            return holds, ("sim-implies-ind", *used)
        return mine.implies(other)

    # --- restating -----------------------------------------------------------------------------------
    def for_unit(self, unit: Unit) -> Guarantee:
        """The same mechanism's guarantee for another unit, by walking the steps between its neighbours."""
        instance("unit", unit, Unit, must="be a unit", hint="such as tacit.rows()")
        count, _ = steps(self.unit, unit)
        if isinstance(self.condition, RandomData) and _relaxed(self.unit, unit):
            bound, condition = replace_on_random_data(self.bound, self.condition)
            return replace(self, bound=bound, condition=condition, unit=unit)
        if isinstance(self.condition, BoundedAdversary) and count > 1:
            bound, kept_condition = group_bounded(self.bound, self.condition, count)
            return replace(self, bound=bound, condition=kept_condition, unit=unit)
        # Fewer neighbours are fewer pairs of data sets; only a condition that speaks of single ones is kept by that.
        kept = isinstance(self.condition, Always) or (
            count == 1 and isinstance(self.condition, BoundedAdversary)
        )
        if not kept and _plain_unit(unit) != _plain_unit(self.unit):
            raise NoLaw(
                operation=f"another unit under {type(self.condition).__name__}",
                reason="the data sets of the walk, or of the other unit, need not satisfy the condition",
            )
        bound, _ = group_bound(self.bound, count)
        return replace(self, bound=bound, unit=unit)

    def group(self, size: int) -> Guarantee:
        """The guarantee for any `size` units at once."""
        base = self.unit.of if isinstance(self.unit, GroupOf) else self.unit
        already = self.unit.size if isinstance(self.unit, GroupOf) else 1
        return self.for_unit(group_of(base, size=already * how_many("size", size)))

    def subsampled(self, *, rate: float, scheme: str | Sampling) -> Guarantee:
        """The guarantee when the mechanism sees a secret random part of the units."""
        how = Sampling.parse(scheme)
        if not isinstance(self.condition, Always):
            raise NoLaw(
                operation="subsampling under a condition", reason="the theorems are about every data set"
            )
        bound, _ = amplify_for(self.bound, self.unit, rate=rate, scheme=how)
        return replace(self, bound=bound, declared=(*self.declared, SECRET_SAMPLE))

    def post_processed(self) -> Guarantee:
        """The guarantee of anything computed from the release without the data.

        Against a `BoundedAdversary` the computation must itself be efficient.
        """
        from tacit.guarantees.laws.registry import post_process_bound

        return replace(self, bound=post_process_bound(self.bound))

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as plain data, for certificates."""
        return to_record(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Guarantee:
        """The guarantee that `to_dict` gave these plain values of; anything else is refused."""
        return from_record(values)

    record = formerly("record")


def _ind_to_sim(mine: Condition, other: Condition) -> bool:
    return (
        isinstance(mine, BoundedAdversary)
        and isinstance(other, BoundedAdversary)
        and mine.assumption == other.assumption
        and mine.definition is Indistinguishability.IND
        and other.definition is Indistinguishability.SIM
    )


def _relaxed(known: Unit, wanted: Unit) -> bool:
    """The guarantee for one replaced row, from that for one row added or taken away."""
    return _plain_unit(known) == rows() and _plain_unit(wanted) == rows(neighbours=Neighbours.REPLACE_ONE)


def _plain_unit(unit: Unit) -> Unit:
    """A group of one is the unit itself."""
    return unit.of if isinstance(unit, GroupOf) and unit.size == 1 else unit


# --- plain sentences for a disclosure officer: the protected unit, an adversary's gain, and the conditions ----
_READING_DELTA = 1e-6

NO_PROTECTION = 0.99
"""If the best guess is right with at least this probability (a coin: one half), the text says that the
promise protects nobody.
"""

_NOBODY = (
    "A promise this weak protects nobody: it allows that a reader who knows the rest is right about one person in "
    "99 of 100 cases or more."
)


_FITTED = "what bounds, keys and bins reveal that were fitted to the data is not counted in it"


def explain(bound: Bound, unit: Unit, condition: Condition, declared: tuple[str, ...] = ()) -> str:
    """Three sentences, and one more each for a condition and for declarations; numbers rounded towards more loss."""
    try:
        sentences = _kept_sentences(bound, unit, condition)
    except TypeError:  # a bound of somebody else's that has no hash
        sentences = tuple(_sentences(bound, unit, condition))
    looked = [d for d in declared if d in SEEN_BEFORE]
    rest = [d for d in declared if d not in SEEN_BEFORE]
    said = [f"It rests on what was declared and cannot be checked: {'; '.join(rest)}."] if rest else []
    known = [f"Against it stands what the ledger knows: {'; '.join(looked)}; {_FITTED}."] if looked else []
    return " ".join([*sentences, *said, *known])


@lru_cache(maxsize=128)
def _kept_sentences(bound: Bound, unit: Unit, condition: Condition) -> tuple[str, ...]:
    """Computed once, since a hundred releases of one price have the same text, and each text reads a curve
    several times.
    """
    return tuple(_sentences(bound, unit, condition))


def _sentences(bound: Bound, unit: Unit, condition: Condition) -> list[str]:
    if isinstance(condition, Priors) or isinstance(unit, Coupled):
        return _coupled_sentences(bound, unit, condition)
    change = (
        "had been replaced by any other"
        if unit.neighbours is Neighbours.REPLACE_ONE
        else "had been added or left out"
    )
    if isinstance(condition, RandomData):
        return _random_sentences(bound, unit, condition, change)
    guess = meaning.reading_of_best_guess(bound, unit, condition)
    power = meaning.reading_of_power(bound, unit, condition, 0.05)
    weak = guess >= NO_PROTECTION
    limits = "might change in any way" if weak else "would change only within limits"
    what = f"What is published {limits} if the data of {unit.noun} {change}"
    first = (
        f"{what}: {_loss(bound) if isinstance(condition, Always) else _told_loss(bound, unit, condition)}."
    )
    who = "Somebody" if isinstance(condition, Always) else "Somebody within that assumption"
    second = (
        f"{who} who knows everything else, and must tell two versions of those data apart, is right at most "
        f"{_percent(guess)} of the time where a coin is right 50%; a test that raises a false alarm in 5% of "
        f"cases finds the truth in at most {_percent(power)}."
    )
    nobody = [_NOBODY] if weak else []
    return [first, second, *nobody, _belief(bound, unit, condition), *_condition(condition)]


def _random_sentences(bound: Bound, unit: Unit, condition: RandomData, change: str) -> list[str]:
    weak = meaning.best_guess(bound) >= NO_PROTECTION
    limits = "might change in any way" if weak else "would, for most data, change only within limits"
    first = f"What is published {limits} if the data of {unit.noun} {change}: {_loss(bound)}."
    second = f"This is random differential privacy, not differential privacy: it holds {condition}."
    third = (
        "It promises nothing to a given person: the data on which it fails may be those of whoever stands out, an "
        "outlier or the only inhabitant of a cell, and from what is published about them anything may be guessed, "
        "believed or done."
    )
    fourth = (
        "Rows that are copies, relatives or neighbours of each other, or that were selected by what they say, are not "
        "independent draws, and then nothing of this holds."
    )
    return [first, *([_NOBODY] if weak else []), second, third, fourth]


def _told_loss(bound: Bound, unit: Unit, condition: Condition) -> str:
    """The loss that bounded adversaries can observe: events that they can recognise, and their advantage."""
    reached = meaning.reading_of_incentive(bound, unit, condition, _level(bound))
    factor = _factor(bound._epsilon(_level(bound)))
    if reached.addend >= 1:
        return f"no useful limit holds for what they can recognise ({bound})"
    return (
        f"as far as anybody within the assumption below can tell, no event becomes more than {factor} times as "
        f"likely, give or take a probability of {_small(reached.addend)} ({bound})"
    )


def _level(bound: Bound) -> float:
    """The delta for reading a curve: 0 if its epsilon is finite, else a small one, or the smallest valid one."""
    if math.isfinite(bound._epsilon(0.0)):
        return 0.0
    if isinstance(bound, Approximate):
        return float(bound.delta)
    return max(_READING_DELTA, bound._delta(math.inf))


def _loss(bound: Bound) -> str:
    epsilon = bound._epsilon(0.0)
    if math.isfinite(epsilon):
        return f"no outcome becomes more than {_factor(epsilon)} times as likely ({bound})"
    stated = (
        float(bound.delta) if isinstance(bound, Pointwise) else max(_READING_DELTA, bound._delta(math.inf))
    )
    epsilon = bound._epsilon(stated)
    if math.isinf(epsilon):
        return f"no useful factor holds for the likelihood of outcomes ({bound})"
    reach = f"{_factor(epsilon)} times as likely"
    if isinstance(bound, Pointwise):
        return f"except with probability {stated:.2g}, no outcome becomes more than {reach} ({bound})"
    return f"no event becomes more than {reach}, give or take a probability of {stated:.2g} ({bound})"


def _belief(bound: Bound, unit: Unit, condition: Condition) -> str:
    pure = math.isfinite(bound._epsilon(0.0))
    if pure and isinstance(condition, Always):
        shift = meaning.reading_of_posterior_shift(bound, unit, condition)
        return (
            f"Whatever somebody believed before, what they believe afterwards differs by at most "
            f"{_percent(shift)} (in probability, of any statement) from what they would believe had those data "
            f"not been used."
        )
    level = (
        _level(bound) if not isinstance(condition, Always) else max(_READING_DELTA, bound._delta(math.inf))
    )
    reached = meaning.reading_of_incentive(bound, unit, condition, level)
    kind = "of whatever kind" if isinstance(condition, Always) else "of whatever kind they can do"
    return (
        f"Taking part multiplies the expected harm from the publication, {kind}, by at most "
        f"{_factor(bound.epsilon_at(level))}, plus {_small(reached.addend)} of the worst harm imaginable."
    )


def _condition(condition: Condition) -> list[str]:
    if isinstance(condition, BoundedAdversary):
        return [
            f"This is computational differential privacy: it holds {condition}.",
            "What somebody without such limits could come to believe is not limited.",
        ]
    return []


def _coupled_sentences(bound: Bound, unit: Unit, condition: Condition) -> list[str]:
    priv = unit.priv if isinstance(unit, Coupled) else f"the data of {unit.noun}"
    alt = unit.alt if isinstance(unit, Coupled) else "the table without them"
    weak = meaning.best_guess(bound) >= NO_PROTECTION
    tells = f"may tell about {priv} much" if weak else f"tells about {priv} only within limits"
    first = (
        f"What is published {tells} more than could be told from {alt}: {_loss(bound)}, "
        f"compared with an imitation made from {alt} alone."
    )
    second = "This is not differential privacy: " + (
        f"it holds {condition}."
        if not isinstance(condition, Always)
        else "it protects only what is named here."
    )
    last = "Two such releases together have no guarantee, unless their theorem says so."
    return [first, *([_NOBODY] if weak else []), second, last]


def _factor(epsilon: float) -> str:
    """e^epsilon, rounded up; as a power if it exceeds the floats."""
    return _up(math.exp(epsilon)) if epsilon <= 700 else f"e^{_up(epsilon)}"


def _small(value: float) -> str:
    """A probability, rounded up to two significant digits."""
    text = f"{value:.1e}"
    if float(text) < value:
        text = f"{float(text) + 10.0 ** (math.floor(math.log10(value)) - 1):.1e}"
    return f"{float(text):.2g}"


def _percent(value: float) -> str:
    """A share, rounded up to three significant digits."""
    return f"{_round_up(100 * value)}%"


def _up(value: float) -> str:
    return _round_up(value)


def _round_up(value: float) -> str:
    if value <= 0 or math.isinf(value):
        return f"{value:g}"
    digits = 2 - math.floor(math.log10(value))
    scaled = math.ceil(round(value * 10.0**digits, 6))
    if digits <= 0:
        return f"{scaled * 10.0**-digits:.3g}"
    return f"{scaled / 10.0**digits:.{digits}f}".rstrip("0").rstrip(".")


# Guarantees as plain data and back, through a closed table: nothing is imported by name.


VERSION = 1

_BOUNDS: dict[str, type[Bound]] = {
    c.kind: c for c in (Pure, Approximate, Pointwise, Concentrated, GaussianDP, Renyi)
}
_UNITS: dict[str, type[Unit]] = {"rows": Rows, "people": People, "group": GroupOf, "coupled": Coupled}
_CONDITIONS: dict[str, type[Condition]] = {
    "always": Always,
    "random-data": RandomData,
    "priors": Priors,
    "bounded-adversary": BoundedAdversary,
}


def to_record(guarantee: Guarantee) -> dict[str, Any]:
    """A dictionary of plain values with stable keys."""
    instance("guarantee", guarantee, Guarantee, must="be a guarantee")
    if isinstance(guarantee.bound, Profile):
        raise NoLaw(
            operation="writing a profile down as a guarantee record",
            reason="a curve is recorded by the events that made it, not by its values",
            hint="record the events, or convert to Approximate at a delta",
        )
    return {
        "version": VERSION,
        "bound": {"kind": guarantee.bound.kind, **guarantee.bound.parameters},
        "unit": _unit(guarantee.unit),
        "condition": _tagged(_CONDITIONS, guarantee.condition),
        "declared": list(guarantee.declared),
    }


def from_record(record: dict[str, Any]) -> Guarantee:
    """The guarantee that a record describes; refuses unknown kinds and other versions."""
    if not isinstance(record, dict) or record.get("version") != VERSION:
        raise InvalidParameter(
            parameter="version",
            value=record.get("version") if isinstance(record, dict) else None,
            must=f"be {VERSION}",
            hint="this record was written by another version of tacit",
        )
    parts = {"version", "bound", "unit", "condition", "declared"}
    if set(record) != parts:
        raise InvalidParameter(
            parameter="record",
            value=sorted(set(record) ^ parts),
            must="have exactly " + ", ".join(sorted(parts)),
        )
    declared = record["declared"]
    if not isinstance(declared, list) or not all(isinstance(d, str) for d in declared):
        raise InvalidParameter(
            parameter="declared", value=type(declared).__name__, must="be a list of sentences"
        )
    return Guarantee(
        bound=_made(_BOUNDS, "bound", record["bound"]),
        unit=_unit_from(record["unit"]),
        condition=_made(_CONDITIONS, "condition", record["condition"]),
        declared=tuple(declared),
    )


def _unit(unit: Unit) -> dict[str, Any]:
    data = _tagged(_UNITS, unit)
    if isinstance(unit, GroupOf):
        data["of"] = _unit(unit.of)
    return data


def _unit_from(data: dict[str, Any]) -> Unit:
    if isinstance(data, dict) and data.get("kind") == "group" and isinstance(data.get("of"), dict):
        data = {**data, "of": _unit_from(data["of"])}
    made: Unit = _made(_UNITS, "unit", data)
    return made


def _tagged(table: dict[str, Any], value: Any) -> dict[str, Any]:
    kind = next(name for name, cls in table.items() if cls is type(value))
    held = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, People):
        # Left out where nothing is declared, as in records that were written before there was such a limit.
        held = (
            {**held, "each": list(value.each)}
            if value.each
            else {n: v for n, v in held.items() if n != "each"}
        )
    return {"kind": kind, **held}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def _made(table: dict[str, Any], what: str, data: Any) -> Any:
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        raise InvalidParameter(parameter=what, value=type(data).__name__, must="be a table with a kind")
    if data["kind"] not in table:
        raise UnknownName(what=what, name=data["kind"], known=table)
    arguments = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k != "kind"}
    try:
        return table[data["kind"]](**arguments)
    except TypeError:
        raise InvalidParameter(
            parameter=what, value=sorted(arguments), must=f"have the fields of {data['kind']!r}"
        ) from None
