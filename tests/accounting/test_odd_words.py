"""Events in words and in JSON as nobody should write them: one typed error, whatever it is."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tacit.accounting import codec, events
from tacit.accounting.codec import _WHOLE, WORDS, describe, parse
from tacit.accounting.events.mechanisms import DEEPEST
from tacit.cli import main
from tacit.errors import InvalidParameter, TacitError

NUMBERS = [
    "1", "0", "-1", "0.5", "1e-320", "5e-324", "1e308", "1e400", "-1e400", "nan", "inf", "1_0", "٣", "²", "0x10",
    "1" * 400, "1" * 5000, "0" * 5000 + "5", "+3", "--3", "1.0", "2.0", "1e1", "true", "", " ", "=", "1=1", "\x00",
    "\u202e1", "9" * 19, str(2**63), str(10**400),
]  # fmt: skip
VALUES: list[Any] = [
    *NUMBERS, 1, 0, -1, 0.5, 1e-320, 10**400, -(10**400), 10**5000, float("nan"), float("inf"), True, None, [], {},
    [1], {"kind": "laplace"}, b"1",
]  # fmt: skip
NAMES = [
    "epsilon",
    "delta",
    "rho",
    "noise_multiplier",
    "sensitivity",
    "categories",
    "gamma",
    "sampling_rate",
    "times",
]

COUNTS = (
    "bands",
    "participations",
    "separation",
    "steps",
    "batch_size",
    "categories",
    "coordinates",
    "records",
    "sensitivity",
    "squared_sensitivity",
    "times",
)


def test_words_of_any_shape() -> None:
    """Ten thousand lines from a fixed seed: words, half words, names and numbers in any order."""
    draw = random.Random(20261116)
    words = [*WORDS, *("subsampled_" + w for w in WORDS), *("without_replacement_" + w for w in WORDS)]
    words += ["shuffled_" + w for w in WORDS]
    words += ["", "subsampled_", "subsampled_subsampled_laplace", "laplace\n", "LAPLACE", "=", "x" * 10_000]
    made = 0
    for _ in range(10_000):
        word = draw.choice(words)
        entry = WORDS.get(word.removeprefix("subsampled_"))
        names = NAMES if entry is None or draw.random() < 0.3 else [*entry.values, "times"]
        parts = [word]
        for name in draw.sample(names, draw.randrange(len(names) + 1)):
            equals = "=" if draw.random() < 0.9 else draw.choice(["", "==", " = "])
            parts.append(name + equals + (draw.choice(NUMBERS) if draw.random() < 0.6 else "2"))
        with contextlib.suppress(TacitError):
            line = parse(" ".join(parts))
            if line.free is None:
                assert isinstance(line.make(None), events.Event)
                made += 1
    assert made > 100


def test_tables_of_any_values() -> None:
    for word, entry in WORDS.items():
        names = [n for n in (*entry.values, "times") if (word, n) != ("dp_sgd", "steps")]
        good: dict[str, Any] = {n: 2 if n in (*COUNTS, *_WHOLE) else 0.5 for n in names}
        if "subset" in names:
            good["subset"] = 1  # below the number of categories
        assert isinstance(describe(word, good).make(None), events.Event)
        for name in names:
            for value in VALUES:
                with contextlib.suppress(TacitError):
                    describe(word, {**good, name: value}).make(None)


@pytest.mark.parametrize("value", ["1e400", "1e-400", "nan", "inf", "10" * 3000])
def test_numbers_that_are_none(value: str) -> None:
    with pytest.raises(InvalidParameter):
        parse(f"laplace epsilon={value}")
    with pytest.raises(InvalidParameter):
        parse(f"laplace epsilon=1 times={value}")


def test_what_is_written_as_a_whole_number_is_one() -> None:
    for text, times in (("7", 7), ("7.0", 7), ("+7", 7), ("0" * 5000 + "7", 7), ("1e3", 1000)):
        event = parse(f"laplace epsilon=1 times={text}").make(None)
        assert event == events.RepeatedEvent(event=events.LaplaceEvent(epsilon=1.0), times=times)
    for text in ("7.5", "0", "-7", str(2**63), "1e300"):
        with pytest.raises(InvalidParameter):
            parse(f"laplace epsilon=1 times={text}")


# --- records -----------------------------------------------------------------------------------------


def mutated(draw: random.Random, value: Any, depth: int = 0) -> Any:
    """The value with something in it exchanged, dropped, added or wrapped."""
    if draw.random() < 0.03:
        return draw.choice(
            [None, True, -1, 1e-320, 1e308, 10**400, "", "laplace", [], {}, [value], {"kind": value}]
        )
    if isinstance(value, dict):
        out = {k: mutated(draw, v, depth + 1) for k, v in value.items() if draw.random() > 0.01}
        if draw.random() < 0.02:
            out[draw.choice(["kind", "event", "times", "x", "version", ""])] = draw.choice(
                [1, "pure", {}, []]
            )
        return out
    if isinstance(value, list):
        return [mutated(draw, v, depth + 1) for v in value]
    return value


def test_records_of_any_shape() -> None:
    draw = random.Random(20261117)
    noise = events.GaussianEvent(noise_multiplier=2.0)
    event = events.ComposedEvent(
        events=(
            events.RepeatedEvent(event=events.PoissonSampledEvent(event=noise, sampling_rate=0.1), times=3),
            events.SampledWithoutReplacementEvent(event=events.LaplaceEvent(epsilon=0.5), sampling_rate=0.5),
            events.TabulatedEvent(p=(0.5, 0.5), q=(0.25, 0.75)),
            events.RandomizedResponseEvent(epsilon=1.0, categories=4),
        )
    )
    assert codec.loads(codec.dumps(event)) == event
    read = 0
    for _ in range(5000):
        record = mutated(draw, codec.to_record(event))
        with contextlib.suppress(TacitError):
            found = codec.from_record(record)
            assert codec.loads(codec.dumps(found)) == found
            read += 1
    assert read > 10
    text = codec.dumps(event)
    for _ in range(5000):
        place = draw.randrange(len(text))
        odd = (
            text[:place]
            + draw.choice(["", "{", "]", '"', "9" * 50, "e400", "\x00", "é", ","])
            + text[place + 1 :]
        )
        with contextlib.suppress(TacitError):
            codec.loads(odd)
        with contextlib.suppress(TacitError):
            codec.loads(odd.encode() + b"\xff"[: draw.randrange(2)])


def test_nesting_has_an_end() -> None:
    """What can be made can be written and read back, and what is deeper cannot be made."""
    event: events.Event = events.PoissonSampledEvent(
        event=events.LaplaceEvent(epsilon=1.0), sampling_rate=0.5
    )
    for _ in range(DEEPEST):
        event = events.RepeatedEvent(event=event, times=1)
        assert codec.loads(codec.dumps(event)) == event
    with pytest.raises(InvalidParameter, match="nested at most"):
        events.RepeatedEvent(event=event, times=1)
    with pytest.raises(InvalidParameter, match="nested at most"):
        events.ComposedEvent(events=(events.LaplaceEvent(epsilon=1.0), event))
    deep = '{"version":1,"event":' + '{"kind":"repeated","times":1,"event":' * 50_000
    with pytest.raises(InvalidParameter):
        codec.loads(deep)
    record: Any = {"kind": "laplace", "epsilon": 1.0}
    for _ in range(2000):
        record = {"kind": "repeated", "times": 1, "event": record}
    with pytest.raises(InvalidParameter, match="nested"):
        codec.from_record({"version": 1, "event": record})


FILES = {
    "deep.json": "[" * 100_000,
    "deep.toml": "event = " + "[" * 100_000,
    "dotted.toml": ".".join("a" * 200_000) + " = 1",
    "digits.json": '[{"kind": "laplace", "epsilon": ' + "1" * 10_000 + "}]",
    "large.json": '[{"kind": "laplace", "epsilon": ' + "1" * 400 + "}]",
    "tiny.json": '[{"kind": "laplace", "epsilon": 1e-400}]',
    "times.json": '[{"kind": "laplace", "epsilon": 1, "times": 1e308}]',
    "table.json": '[{"kind": "laplace", "epsilon": {"kind": "laplace"}}]',
    "none.json": "null",
    "bytes.json": "\x00\x01",
    "half.toml": "[[event]]\nkind = 'laplace'\nepsilon = ",
    "list.toml": "[[event]]\nkind = ['laplace']\nepsilon = 1",
}


@pytest.mark.parametrize("name", FILES)
def test_odd_files_are_one_sentence(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_text(FILES[name])
    assert main(["account", "--events", str(path), "--delta", "1e-6"]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert len(said.strip()) > 20


@pytest.mark.parametrize(
    "line",
    ["laplace epsilon=1e400", "laplace epsilon=1 times=1e400", "laplace " + "epsilon=1 " * 2, "x" * 100_000, "\x1b[2J",
     "laplace epsilon=" + "1" * 5000, "repeated event=laplace", "laplace epsilon=1 times=" + json.dumps(10**400)],
)  # fmt: skip
def test_odd_words_are_one_sentence(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "--event", line, "--delta", "1e-6"]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "\x1b[2J" not in said
