"""Neighbouring inputs, fixed before the mechanism is looked at.

A claim is about a relation between inputs: one number moves by at most 1; one row is added or replaced; one
person is exchanged with all their rows. Each relation has a short list of pairs that are known to reveal much:
extremes, one change, all changes at once, opposite changes of the two halves. The list follows from the
relation alone, or a user gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.checks import whole
from tacit.exact.data_classes import dataclass

MOST_PAIRS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourPairs:
    """Pairs of neighbouring inputs, with the relation in words."""

    relation: str
    pairs: tuple[tuple[Any, Any], ...]

    def __post_init__(self) -> None:
        if not self.pairs or len(self.pairs) > MOST_PAIRS:
            raise InvalidParameter(
                parameter="neighbours", value=len(self.pairs), must=f"be 1 to {MOST_PAIRS} pairs of inputs"
            )


def _number(size: int, low: float, high: float) -> NeighbourPairs:
    step = high - low
    pairs = tuple(dict.fromkeys((a, a + step) for a in (0.0, low)))
    return NeighbourPairs(relation=f"a number that moves by at most {step:g}", pairs=pairs)


def _bit(size: int, low: float, high: float) -> NeighbourPairs:
    return NeighbourPairs(relation="a bit, 0 or 1", pairs=((0, 1),))


def _answers(size: int, low: float, high: float) -> NeighbourPairs:
    """Query answers that each move by at most 1: Ding and others (2018) list such patterns."""
    step = high - low
    rest, half = size - 1, size // 2
    other = size - half
    none = [0.0] * size
    patterns = [
        (none, [step] + [0.0] * rest),
        (none, [-step] + [0.0] * rest),
        (none, [step] + [-step] * rest),
        (none, [-step] + [step] * rest),
        (none, [-step] * half + [step] * other),
        (none, [step] * half + [-step] * other),
        (none, [step] * size),
        (none, [-step] * size),
        ([step] * half + [0.0] * other, [0.0] * half + [step] * other),
        (none, [-step] * rest + [step]),
        ([step] * rest + [0.0], [0.0] * rest + [step]),
    ]
    pairs = list[tuple[Any, Any]]()
    for a, b in patterns:
        if a != b and (a, b) not in pairs:
            pairs.append((a, b))
    return NeighbourPairs(
        relation=f"{size} query answers, each of which moves by at most {step:g}", pairs=tuple(pairs)
    )


def _rows_added(size: int, low: float, high: float) -> NeighbourPairs:
    middle = (low + high) / 2
    bases: list[list[float]] = [[], [low] * size, [low, high] * (size // 2), [middle] * size]
    pairs = tuple((base, [*base, new]) for base in bases for new in (high, low))
    return NeighbourPairs(relation=f"one row, added or removed; rows in [{low:g}, {high:g}]", pairs=pairs)


def _rows_replaced(size: int, low: float, high: float) -> NeighbourPairs:
    middle, third = (low + high) / 2, low + (high - low) / 3
    bases: list[list[float]] = [[low] * size, [low, high] * (size // 2), [middle] * size]
    pairs: list[tuple[Any, Any]] = []
    for base in bases:
        pairs += [([*base[:-1], a], [*base[:-1], b]) for a, b in ((low, high), (low, middle))]
    pairs.append(([*bases[0][:-1], low], [*bases[0][:-1], third]))
    return NeighbourPairs(
        relation=f"one of {size} rows, replaced by any other; rows in [{low:g}, {high:g}]", pairs=tuple(pairs)
    )


def _people_added(size: int, low: float, high: float) -> NeighbourPairs:
    crowd = [(f"p{i}", low if i % 2 else high) for i in range(size)]
    mine = [("q", high)] * 3
    pairs: tuple[tuple[Any, Any], ...] = (
        ([], [*mine]),
        (crowd, [*crowd, *mine]),
        (crowd, [*crowd, ("q", low)]),
        (crowd, [*crowd, ("q", low), *mine[:2]]),
    )
    return NeighbourPairs(
        relation="one person with up to 3 rows (person, value), added or removed", pairs=pairs
    )


_MAKERS: dict[str, tuple[Callable[[int, float, float], NeighbourPairs], int, float, float]] = {
    "number": (_number, 1, 0.0, 1.0),
    "bit": (_bit, 1, 0.0, 1.0),
    "answers": (_answers, 10, 0.0, 1.0),
    "rows added": (_rows_added, 10, 0.0, 1.0),
    "rows replaced": (_rows_replaced, 10, 0.0, 1.0),
    "people added": (_people_added, 10, 0.0, 1.0),
}
RELATIONS = tuple(_MAKERS)


def named_neighbours(text: str) -> NeighbourPairs:
    """Neighbours by the name of a relation, with size, low and high: "rows added size=20 high=100"."""
    words = text.replace("-", " ").split()
    options = {"size": -1.0, "low": float("nan"), "high": float("nan")}
    while words and "=" in words[-1]:
        name, _, value = words.pop().partition("=")
        if name not in options:
            raise UnknownName(what="option of neighbours", name=name, known=options)
        try:
            options[name] = float(value)
        except ValueError:
            raise InvalidParameter(parameter=name, value=value, must="be a number") from None
    relation = " ".join(words)
    if relation not in _MAKERS:
        raise UnknownName(
            what="neighbours",
            name=relation,
            known=RELATIONS,
            hint=f"known: {', '.join(RELATIONS)}; or FILE.py::NAME for pairs of your own",
        )
    make, size, low, high = _MAKERS[relation]
    size = size if options["size"] == -1 else whole("size", _whole(options["size"]), least=2)
    if size > 100_000:
        raise InvalidParameter(parameter="size", value=size, must="be at most 100000")
    low = low if options["low"] != options["low"] else options["low"]
    high = high if options["high"] != options["high"] else options["high"]
    if not (abs(low) < 1e300 and abs(high) < 1e300 and low < high):
        raise InvalidParameter(parameter="high", value=high, must="be finite and above low")
    return make(size, low, high)


def _whole(value: float) -> Any:
    return int(value) if value == value and abs(value) < 1e9 and value == int(value) else value


def given_neighbours(given: Any) -> NeighbourPairs:
    """Neighbours from a name, from an object of ours, or from pairs of inputs."""
    if isinstance(given, NeighbourPairs):
        return given
    if isinstance(given, str):
        return named_neighbours(given)
    if callable(given):
        given = given()
    if isinstance(given, Iterable):
        pairs = list(given)
        if pairs and all(
            isinstance(p, Sequence) and not isinstance(p, str | bytes) and len(p) == 2 for p in pairs
        ):
            return NeighbourPairs(relation="the given neighbours", pairs=tuple((p[0], p[1]) for p in pairs))
    raise InvalidParameter(
        parameter="neighbours",
        value=type(given).__name__,
        must="be pairs of neighbouring inputs, or the name of a relation",
        hint=f"known: {', '.join(RELATIONS)}; or pairs such as [(0, 1), (5, 6)]",
    )


def ask_for_unit() -> InvalidParameter:
    """The error for a claim without a unit."""
    return InvalidParameter(
        parameter="claim",
        value="no neighbours",
        must="say for whom it holds: which inputs are neighbours",
        hint=f"give --neighbours, one of: {', '.join(RELATIONS)}; or FILE.py::NAME with pairs of inputs",
    )
