"""Events as JSON and back: a closed, versioned table. Unknown kinds are refused, nothing is imported by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import partial
from typing import Any

from tacit.accounting import events as e
from tacit.accounting import events as known
from tacit.accounting.correlated import MOST_STEPS, NAMED, CorrelatedNoise
from tacit.accounting.events import Event, RepeatedEvent, SimpleEvent
from tacit.accounting.events.mechanisms import DEEPEST
from tacit.accounting.training import TrainingRun, dp_sgd
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact import checks
from tacit.exact.checks import instance, refuse_if
from tacit.exact.data_classes import dataclass

VERSION = 1

_KINDS: dict[str, type[Event]] = {
    cls.kind: cls for cls in (getattr(known, name) for name in known.__all__) if hasattr(cls, "kind")
}
"""Records decode to the exports of `tacit.accounting.events` only, never to a class of somebody's own."""


def to_record(event: Event) -> dict[str, Any]:
    """The event as plain data, with the version of this table."""
    instance("event", event, Event, must="be an event")
    return {"version": VERSION, "event": _plain(event)}


def from_record(record: Any) -> Event:
    """The event that a record describes."""
    if not isinstance(record, dict) or set(record) != {"version", "event"}:
        raise InvalidParameter(
            parameter="record",
            value=sorted(record) if isinstance(record, dict) else type(record).__name__,
            must="be an object with version and event",
        )
    if record["version"] != VERSION or isinstance(record["version"], bool):
        raise InvalidParameter(
            parameter="version",
            value=record["version"],
            must=f"be {VERSION}",
            hint="this record was written by another version of tacit; read it with that version",
        )
    return _event(record["event"], 0)


def dumps(event: Event) -> str:
    """The record as one line of JSON, keys sorted."""
    return json.dumps(to_record(event), sort_keys=True, separators=(",", ":"), allow_nan=False)


def loads(text: str | bytes) -> Event:
    """The event from its JSON; broken text is one clear error."""
    try:
        record = json.loads(text, parse_constant=_no_constant)
    except (TypeError, ValueError, RecursionError):
        raise InvalidParameter(
            parameter="record", value="text", must="be JSON", hint="the record is broken"
        ) from None
    return from_record(record)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _plain(value: Any) -> Any:
    if isinstance(value, Event):
        return {"kind": value.kind, **{k: _plain(v) for k, v in value.parameters.items()}}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _event(data: Any, depth: int) -> Event:
    if depth > DEEPEST + 1:  # the simple event inside, sampled or not
        raise InvalidParameter(parameter="record", value=depth, must=f"be nested at most {DEEPEST} deep")
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        raise InvalidParameter(parameter="event", value=type(data).__name__, must="be an object with a kind")
    kind = data["kind"]
    if kind not in _KINDS:
        raise UnknownName(what="kind of event", name=kind, known=_KINDS)
    arguments: dict[str, Any] = {}
    for name, value in data.items():
        if name == "kind":
            continue
        if isinstance(value, dict):
            arguments[name] = _event(value, depth + 1)
        elif isinstance(value, list):
            arguments[name] = tuple(_event(v, depth + 1) if isinstance(v, dict) else v for v in value)
        else:
            arguments[name] = value
    try:
        return _KINDS[kind](**arguments)
    except TypeError:
        raise InvalidParameter(
            parameter="event", value=sorted(arguments), must=f"have the fields of {kind!r}"
        ) from None


# Events in words: `gaussian noise_multiplier=30 times=1000`, for the command line and for files.
#
# A word, then named values. `subsampled_` before a word is Poisson sampling, `without_replacement_` a uniform
# sample of a fixed share; both take `sampling_rate`. `shuffled_` is a local answer among those of `people`. `times`
# repeats. For calibration the noise may be left out, or any value be written as `?`:
# `dp_sgd records=60000 batch_size=256 noise_multiplier=1.1 epochs=?`.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """An event's values: its noise, its other required values, and its optional ones."""

    make: Callable[..., Event]
    noise: str
    other: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    meaning: str = ""
    note: Callable[..., str] | None = None
    sought: bool = True

    @property
    def values(self) -> tuple[str, ...]:
        return (self.noise, *self.other, *self.optional)


def _correlated(strategy: str) -> _Word:
    banded = ("bands",) if strategy == "banded_square_root" else ()

    def noise(given: dict[str, Any]) -> CorrelatedNoise:
        return CorrelatedNoise(
            strategy=strategy, **{k: v for k, v in given.items() if k != "noise_multiplier"}
        )

    def make(**values: Any) -> Event:
        return noise(values).as_event(noise_multiplier=values["noise_multiplier"])

    def note(**values: Any) -> str:
        found = noise(values)
        return (
            f"a unit moves the {found.steps:,} totals by at most {found.sensitivity:.6g} contributions (L2)"
        )

    return _Word(
        make=make,
        noise="noise_multiplier",
        other=("steps", *banded),
        optional=("participations", "separation"),
        meaning="running totals with correlated noise",
        note=note,
    )


def _training(**values: Any) -> TrainingRun:
    return dp_sgd(**values)


def _training_event(**values: Any) -> Event:
    return _training(**values).event


def _training_note(**values: Any) -> str:
    return _training(**values).describe()


def _subset_selection(*, epsilon: float, categories: int, subset: int) -> Event:
    k, d = checks.whole("categories", categories, least=2), checks.whole("subset", subset)
    refuse_if(d >= k, "subset", d, f"be below categories = {k}")
    return e.BalancedResponseEvent(
        epsilon=epsilon, outcomes=k * (k - 1), supporting=d * (k - 1), shared=d * (d - 1)
    )


def _hadamard_response(*, epsilon: float) -> Event:
    return e.BalancedResponseEvent(epsilon=epsilon, outcomes=4, supporting=2, shared=1)


def _word(event: type[Event]) -> _Word:
    """The word of an event that describes its own values: the noise first, those with a default last."""
    noise, *others = [f for f in fields(event) if f.init]
    return _Word(
        make=event,
        noise=noise.name,
        other=tuple(f.name for f in others if f.default is MISSING),
        optional=tuple(f.name for f in others if f.default is not MISSING),
        meaning=event.meaning,
        sought=event.sought,
    )


_OWN = {kind: _word(event) for kind, event in _KINDS.items() if event.meaning}
_COMBINED = {
    **{f"correlated_{name}": _correlated(name) for name in NAMED},
    "dp_sgd": _Word(
        make=_training_event,
        noise="noise_multiplier",
        other=("records", "batch_size"),
        optional=("epochs", "steps"),
        meaning="a training run with Poisson-sampled batches; epochs or steps",
        note=_training_note,
    ),
    "hadamard_response": _Word(
        make=_hadamard_response, noise="epsilon", meaning="one of many answers, sent in few bits"
    ),
    "subset_selection": _Word(
        make=_subset_selection,
        noise="epsilon",
        other=("categories", "subset"),
        meaning="a set of answers, the true one among them or not",
    ),
}
WORDS: dict[str, _Word] = dict(sorted({**_OWN, **_COMBINED}.items()))
_SAMPLERS: dict[str, Callable[..., SimpleEvent]] = {
    "shuffled_": e.ShuffledEvent,
    "subsampled_": e.PoissonSampledEvent,
    "without_replacement_": e.SampledWithoutReplacementEvent,
}
_SAMPLED_BY = {"shuffled_": "people", "subsampled_": "sampling_rate", "without_replacement_": "sampling_rate"}
_UNSAMPLED = ("dp_sgd", *(f"correlated_{name}" for name in NAMED))
"""Words with a sampling scheme of their own."""
_WHOLE = (
    "bands", "batch_size", "categories", "participations", "people", "records", "separation", "steps", "subset",
    "times",
    *(f.name for event in _KINDS.values() for f in fields(event) if f.init and f.type in (int, "int")),
)  # fmt: skip
_MORE_NOISE = {
    "noise_multiplier": True,
    "noise_std": True,
    "noise_variance": True,
    "people": True,
    "records": True,
} | dict.fromkeys(
    ("batch_size", "delta", "epochs", "epsilon", "participations", "rho", "sampling_rate", "steps", "times"),
    False,
)
"""Values for calibration, and whether a larger one means more noise."""
_MOST = {"delta": 1 - 2.0**-53, "sampling_rate": 1.0}


def vocabulary() -> list[str]:
    """The words of events with their values, one a line: what help pages print."""
    width = max(len(word) for word in WORDS)
    lines = []
    for word, entry in WORDS.items():
        values = " ".join(
            [f"{n}=" for n in (entry.noise, *entry.other)] + [f"[{n}=]" for n in entry.optional]
        )
        lines.append(f"{word:<{width}}  {values}: {entry.meaning}")
    lines.append(
        "shuffled_WORD              people=: local answers of this many people, seen in random order (replace-one)"
    )
    lines.append("subsampled_WORD            sampling_rate=: Poisson sampling before it (add-or-remove)")
    lines.append("without_replacement_WORD   sampling_rate=: a uniform sample of this share (replace-one)")
    lines.append(
        "any of them                [times=]: repeated; a value written as ? is what calibrate finds"
    )
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedEvent:
    """A parsed line: the event, or a function of the one value that the line leaves out."""

    word: str
    free: str | None
    more_noise: bool
    make: Callable[[float | None], Event]
    whole: bool = False
    least: int = 1
    most: float | None = None
    note: Callable[[float | None], str] = lambda value: ""


def parse(text: str) -> DescribedEvent:
    """The event that a line describes."""
    words = checks.text("event", text).split()
    refuse_if(not words, "event", text, "begin with a word such as gaussian")
    values: dict[str, str] = {}
    for part in words[1:]:
        name, equals, value = part.partition("=")
        if not equals or not name or not value:
            raise InvalidParameter(
                parameter="event",
                value=part,
                must="be a named value",
                hint="for instance noise_multiplier=30",
            )
        refuse_if(name in values, name, value, "be given once")
        values[name] = value
    return describe(words[0], values)


def describe(word: str, values: Mapping[str, Any]) -> DescribedEvent:
    """The event from a word and its values (texts or numbers), as files give them."""
    word = checks.text("event", word)
    if not isinstance(values, Mapping):
        raise InvalidParameter(
            parameter="values", value=type(values).__name__, must="be a table of named values"
        )
    sampler = next((s for s in _SAMPLERS if word.startswith(s)), None)
    base = word.removeprefix(sampler) if sampler else word
    if base not in WORDS or (sampler and base in _UNSAMPLED):
        known = [*WORDS, *(s + w for s in _SAMPLERS for w in WORDS if w not in _UNSAMPLED)]
        raise UnknownName(what="event", name=word, known=known)
    entry = WORDS[base]
    wanted = [*entry.values, *([_SAMPLED_BY[sampler]] if sampler else [])]
    for name in map(partial(checks.text, "name of a value"), values):
        if name not in (*wanted, "times"):
            raise UnknownName(what=f"value of {word}", name=name, known=[*wanted, "times"])
    asked = [n for n in (*wanted, "times") if values.get(n) == "?"]
    given = {n: _number(n, values[n]) for n in (*wanted, "times") if n in values and n not in asked}
    missing = [n for n in wanted if n not in values and n not in entry.optional]
    if missing not in ([], [entry.noise]):
        raise InvalidParameter(
            parameter=missing[-1], value=None, must="be given", hint=f"{word} needs {', '.join(wanted)}"
        )
    open_ = asked + missing
    if len(open_) > 1:
        raise InvalidParameter(
            parameter=open_[-1], value=None, must="be given", hint="calibrate finds one value at a time"
        )
    free = open_[0] if open_ else None
    if free is not None and (free not in _MORE_NOISE or (free == entry.noise and not entry.sought)):
        raise InvalidParameter(
            parameter=free,
            value="?",
            must="be given",
            hint="the cost is not monotone in it, so calibrate cannot search for it",
        )

    def filled(value: float | None) -> dict[str, Any]:
        if free is not None and value is None:
            raise InvalidParameter(
                parameter=free,
                value=None,
                must="be given",
                hint=f"{word} needs {', '.join(wanted)}; calibrate finds the missing one",
            )
        return {**given, free: value} if free is not None else dict(given)

    def make(value: float | None) -> Event:
        arguments = filled(value)
        times, how = arguments.pop("times", 1), _SAMPLED_BY[sampler] if sampler else ""
        around = {how: arguments.pop(how)} if sampler else {}
        event = entry.make(**arguments)
        if sampler:
            event = _SAMPLERS[sampler](event=event, **around)
        return event if times == 1 else RepeatedEvent(event=event, times=int(times))

    def note(value: float | None) -> str:
        arguments = {n: v for n, v in filled(value).items() if n not in ("people", "sampling_rate", "times")}
        return entry.note(**arguments) if entry.note is not None else ""

    if free is None:
        make(None)  # a bad value is found where it stands
    sought = free or entry.noise
    batch = given.get("batch_size", 1)
    return DescribedEvent(
        word=word,
        free=free,
        more_noise=_MORE_NOISE.get(sought, True),
        make=make,
        whole=sought in _WHOLE or sought == "epochs",
        least=int(batch) if sought == "records" else 1,
        most=_most(base, sought, given),
        note=note,
    )


def _most(word: str, sought: str, given: Mapping[str, Any]) -> float | None:
    """The largest value that makes sense."""
    if sought == "batch_size":
        return float(given["records"])
    if sought == "steps" and word.startswith("correlated_"):
        return float(MOST_STEPS)
    return _MOST.get(sought)


def _number(name: str, value: Any) -> float | int:
    try:
        if isinstance(value, bool):
            raise ValueError(value)
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        raise InvalidParameter(parameter=name, value=value, must="be a number") from None
    if name not in _WHOLE:
        return number
    if number != number or number in (float("inf"), float("-inf")) or number != int(number):
        raise InvalidParameter(parameter=name, value=value, must="be a whole number")
    try:
        return int(value)
    except ValueError:
        return int(number)  # written as a float, or with more digits than a number is read with
