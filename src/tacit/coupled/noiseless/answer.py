"""The verdict on an exact answer: its loss, its condition and its theorem, always together."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from types import MappingProxyType
from typing import Any

from tacit.coupled.noiseless.row_laws import RowLaw, bernoulli, laplace, normal, table, uniform
from tacit.errors import InvalidInput, InvalidParameter, NoLaw, Refused, UnknownName
from tacit.exact.canonical import formerly
from tacit.exact.checks import check_fields, listed, non_negative, probability, refuse_if, text, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import bisected, digits_up
from tacit.guarantees.bounds import Approximate, Bound, Pure
from tacit.guarantees.conditions import Priors
from tacit.guarantees.guarantee import Guarantee
from tacit.guarantees.units import Coupled


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactAnswer:
    """An exact answer is (epsilon, delta)-private in the sense of Groce 2014, Def. 5.3, under `assumptions` only.

    `epsilon` is against the named simulator, which sees all rows but the protected one. `epsilon_pair` is
    between two values of that row, for somebody who knows which of the assumed distributions holds; to others a
    value may reveal the distribution, and the distribution the answer. It is at most twice `epsilon`, and None
    if it is not computed or not finite. Both are upper ends. `rows` is None if their number is itself random.
    `threshold` is for truncated histograms. `group` is the number of rows that are hidden together. `details`
    holds further numbers for the machine format.
    """

    statistic: str
    epsilon: float
    epsilon_pair: float | None
    delta: float
    assumptions: tuple[str, ...]
    theorem: str
    simulator: str
    rows: int | None
    unknown_rows: int
    family: str
    threshold: int | None = None
    group: int = 1
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in ("statistic", "theorem", "simulator", "family"):
            object.__setattr__(self, name, text(name, getattr(self, name), empty=False))
        check_fields(self, epsilon=non_negative)
        if self.epsilon_pair is not None:
            object.__setattr__(self, "epsilon_pair", non_negative("epsilon_pair", self.epsilon_pair))
        check_fields(self, delta=partial(probability, below_one=True))
        said = tuple(text("assumptions", a, empty=False) for a in listed("assumptions", self.assumptions))
        refuse_if(not said, "assumptions", "none", "be named: without one no exact answer is private")
        object.__setattr__(self, "assumptions", said)
        if self.rows is not None:
            object.__setattr__(self, "rows", whole("rows", self.rows))
        check_fields(self, unknown_rows=whole)
        if self.rows is not None and self.unknown_rows > self.rows:
            raise InvalidParameter(
                parameter="unknown_rows", value=self.unknown_rows, must=f"be at most the {self.rows} rows"
            )
        object.__setattr__(self, "group", whole("group", self.group))
        if self.threshold is not None:
            object.__setattr__(self, "threshold", whole("threshold", self.threshold, least=0))
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    @property
    def bound(self) -> Bound:
        """(epsilon, delta)."""
        if self.delta == 0:
            return Pure(epsilon=self.epsilon)
        return Approximate(epsilon=self.epsilon, delta=self.delta)

    @property
    def hidden(self) -> str:
        """The protected unit, in words."""
        return "any one row" if self.group == 1 else f"any group of {self.group} rows"

    @property
    def guarantee(self) -> Guarantee:
        """Bound, unit and condition: nothing is dropped, and it is not differential privacy."""
        return Guarantee(
            bound=self.bound,
            unit=Coupled(priv=self.hidden, alt="all other rows", family=self.rows),
            condition=Priors(family=self.family, unknown_rows=self.unknown_rows),
        )

    @property
    def sentence(self) -> str:
        """The condition first, then the promise under it."""
        return (
            f"This is private provided that {'; and '.join(self.assumptions)}. Then the exact {self.statistic} tells "
            f"about {self.hidden} at most epsilon = {shown(self.epsilon)}, delta = {shown(self.delta)}, beyond what "
            "the other rows tell. If the assumption is wrong, nothing is promised."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON: all fields, the sentence, and the guarantee."""
        return {
            "statistic": self.statistic,
            "epsilon": self.epsilon,
            "epsilon_pair": self.epsilon_pair,
            "epsilon_pair_is": PAIR_IS,
            "delta": self.delta,
            "threshold": self.threshold,
            "assumptions": list(self.assumptions),
            "theorem": self.theorem,
            "simulator": self.simulator,
            "n": self.rows,
            "unknown_rows": self.unknown_rows,
            "sentence": self.sentence,
            "guarantee": str(self.guarantee),
            **({} if self.group == 1 else {"group": self.group}),
            **self.details,
        }

    record = formerly("record")


def shown(number: float, digits: int = 3) -> str:
    """A few digits, rounded up: a sentence does not promise more than was computed, nor assume less."""
    return digits_up(number, digits)


PAIR_IS = "between two values of a row, to somebody who knows the distribution"
"""The adversary of `epsilon_pair`; a value may reveal more to somebody who does not know the distribution."""

UNREACHED = "no epsilon reaches it under this assumption and with this simulator"


def delta_out_of_reach(
    statistic: str,
    delta: float,
    smallest: float,
    *,
    reason: str = UNREACHED,
    hint: str = "",
    ours: bool = False,
) -> NoLaw:
    """The refusal of a delta that no epsilon reaches, with the smallest one that some epsilon does.

    `ours` says that the limit comes from a bound of ours; the truth may lie below it.
    """
    which = "that this bound reaches" if ours else "possible"
    if ours and reason == UNREACHED:
        reason = "this bound has no epsilon for it under this assumption and with this simulator"
    return NoLaw(
        operation=f"an exact {statistic} with delta = {delta:g}",
        reason=f"{reason}: the smallest delta {which} is {shown(smallest)}",
        hint=hint or "allow a larger delta, assume more unknown rows, or add noise",
    )


def within_reach(reached: Callable[[float], bool], delta: float, *, steps: float = 0.1) -> float:
    """About the smallest delta above this one with a finite epsilon; 1 if there is none."""
    return math.exp(bisected(lambda log: reached(math.exp(log)), math.log(delta), 0.0, absolute=steps)[1])


# Distributions of rows as text: `uniform(0, 1)`, `normal(0, 1, clamp=(-2.5, 2.5))`, `table(0: 1/2, 1: 1/2)`.
#
# The language is closed: a name, numbers, `clamp=(low, high)` and `grid=step`. Nothing is evaluated.

_CALL = re.compile(r"\s*([a-zA-Z]+)\s*\((.*)\)\s*", re.DOTALL)
_PART = re.compile(r"\s*(?:([a-z]+)\s*=\s*)?(\([^()]*\)|[^(),]+)\s*(?:,|$)")
_LAWS: dict[str, tuple[Callable[..., RowLaw], int, tuple[str, ...]]] = {
    "bernoulli": (bernoulli, 1, ()),
    "laplace": (laplace, 2, ("clamp", "grid")),
    "normal": (normal, 2, ("clamp", "grid")),
    "uniform": (uniform, 2, ("grid",)),
}
KNOWN = (*sorted(_LAWS), "table")
MOST_TEXT = 100_000
HINT = 'such as "uniform(0, 1)", "normal(0, 1, clamp=(-2.5, 2.5))", "bernoulli(0.3)", "table(0: 1/2, 5: 1/2)"'


def row_law(rows: str | RowLaw, *, grid: object = None) -> RowLaw:
    """The distribution that a text names; a distribution is returned unchanged.
    `grid` is the step of the grid of records."""
    if isinstance(rows, RowLaw):
        if grid is not None:
            raise InvalidParameter(parameter="grid", value="a grid", must="be left out: the law has one")
        return rows
    kind, inside = _call("rows", rows, "name the law of a row", HINT)
    if kind == "table":
        return _table(inside, grid)
    if kind not in _LAWS:
        raise UnknownName(what="law of rows", name=kind, known=KNOWN, hint=HINT)
    make, count, options = _LAWS[kind]
    numbers, named = _parts("rows", inside, HINT)
    if grid is not None:
        refuse_if("grid" in named, "grid", "two of them", "be given once")
        named["grid"] = grid
    stray = sorted(set(named) - set(options))
    if len(numbers) != count or stray:
        raise InvalidParameter(
            parameter="rows",
            value=rows[:60],
            must=f"give {kind} {count} number{'s' if count > 1 else ''}"
            + (f" and no {', '.join(stray)}" if stray else ""),
            hint=HINT,
        )
    return make(*numbers, **named)


def call_parts(parameter: str, text: object, hint: str) -> tuple[str, list[str], dict[str, Any]]:
    """(Name, numbers in their order, named values) of a text such as `normal(0, 1, clamp=(-2, 2))`."""
    kind, inside = _call(parameter, text, "be a name with numbers in brackets", hint)
    return kind, *_parts(parameter, inside, hint)


def _call(parameter: str, text: object, must: str, hint: str) -> tuple[str, str]:
    match = _CALL.fullmatch(text) if isinstance(text, str) and len(text) <= MOST_TEXT else None
    if match is None:
        told = text[:60] if isinstance(text, str) else type(text).__name__
        raise InvalidParameter(parameter=parameter, value=told, must=must, hint=hint)
    return match[1].lower(), match[2]


def _parts(parameter: str, inside: str, hint: str) -> tuple[list[str], dict[str, Any]]:
    """Numbers in their order, and named values."""
    numbers: list[str] = []
    named: dict[str, Any] = {}
    at = 0
    while at < len(inside):
        part = _PART.match(inside, at)
        if part is None or (part[1] in named and part[1]) or (named and not part[1]):
            raise InvalidParameter(
                parameter=parameter, value=inside[:60], must="be numbers, then options", hint=hint
            )
        value: Any = part[2].strip()
        if value.startswith("("):
            value = tuple(v.strip() for v in value[1:-1].split(","))
        if part[1]:
            named[part[1]] = value
        else:
            numbers.append(value)
        at = part.end()
    return numbers, named


def table_parts(text: object) -> tuple[dict[str, str], str | None]:
    """({value: probability}, the grid or None) of a text such as `table(0: 1/2, 5: 1/2, grid=1)`, as written."""
    kind, inside = _call("rows", text, "name the law of a row", HINT)
    if kind != "table":
        raise UnknownName(what="law of rows", name=kind, known=("table",), hint=HINT)
    return _entries(inside)


def _table(inside: str, grid: object) -> RowLaw:
    """`value: probability` for each value, and a grid if one is named."""
    weights, named = _entries(inside)
    if named is not None and grid is not None:
        raise InvalidParameter(parameter="grid", value=named[:40], must="be given once")
    return table(weights, grid=grid if named is None else named)


def _entries(inside: str) -> tuple[dict[str, str], str | None]:
    weights: dict[str, str] = {}
    grid: str | None = None
    for entry in inside.split(","):
        if entry.strip().startswith("grid"):
            name, _, step = entry.partition("=")
            if name.strip() != "grid" or grid is not None:
                raise InvalidParameter(parameter="grid", value=entry.strip()[:40], must="be given once")
            grid = step.strip()
            continue
        value, colon, chance = entry.partition(":")
        if not colon or value.strip() in weights:
            raise InvalidParameter(
                parameter="rows",
                value=entry.strip()[:40],
                must="be value: probability, each value once",
                hint=HINT,
            )
        weights[value.strip()] = chance.strip()
    return weights, grid


# How epsilon changes with delta, and with what an adversary knows: the two curves that a reader asks for.

_POINTS = 9
_ENOUGH = 3
_HALVINGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Curves of (delta, epsilon) and (known rows, epsilon), without points that no epsilon reaches."""

    answer: ExactAnswer
    rows: int
    by_delta: tuple[tuple[float, float], ...]
    by_known: tuple[tuple[int, float], ...]


def curves_of(answer: ExactAnswer, again: Callable[[float, int], ExactAnswer]) -> Curves:
    """Both curves around an answer; `again(delta, unknown_rows)` answers the same question with other values."""
    if (rows := answer.rows) is None:
        raise InvalidParameter(
            parameter="answer", value="no number of rows", must="be about a known number of rows"
        )
    # A decision may have delta = 0, which no logarithmic axis shows.
    exponent = math.log10(answer.delta or 1e-6)
    deltas = [10.0 ** (exponent - 4 + j) for j in range(_POINTS) if exponent - 4 + j < -1]
    sizes = {round(rows * share / (_POINTS + 1)) for share in range(1, _POINTS + 2)}
    unknown = sorted({s for s in sizes if s >= 2} | {answer.unknown_rows}, reverse=True)
    by_delta = [(d, e) for d in deltas if (e := _epsilon(again, d, answer.unknown_rows)) is not None]
    by_known = [(rows - u, e) for u in unknown if (e := _epsilon(again, answer.delta, u)) is not None]
    if len(by_known) < _ENOUGH:
        # So few known rows are too many: look closer, up to the most that some epsilon allows.
        reach = _reach(again, answer, rows)
        closer = sorted({round(reach * share / _POINTS) for share in range(_POINTS + 1)})
        found = {k: e for k in closer if (e := _epsilon(again, answer.delta, rows - k)) is not None}
        by_known = sorted({**dict(by_known), **found}.items())
    return Curves(answer=answer, rows=rows, by_delta=tuple(by_delta), by_known=tuple(by_known))


def _reach(again: Callable[[float, int], ExactAnswer], answer: ExactAnswer, rows: int) -> int:
    """About the largest possible number of known rows, from the answer's own number on, halved a few times."""
    low = rows - answer.unknown_rows
    high = min(rows - 2, low + -(-rows // (_POINTS + 1)))
    return bisected(
        lambda known: _epsilon(again, answer.delta, rows - known) is None, low, high, halvings=_HALVINGS
    )[0]


def _epsilon(again: Callable[[float, int], ExactAnswer], delta: float, unknown: int) -> float | None:
    try:
        return again(delta, unknown).epsilon
    except (InvalidInput, Refused):
        return None
