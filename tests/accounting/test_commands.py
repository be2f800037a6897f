"""Events in words, and the commands that take them."""

from __future__ import annotations

import json

import pytest

from tacit.accounting import events as e
from tacit.accounting.codec import parse
from tacit.cli import main
from tacit.errors import InvalidParameter, UnknownName


def test_words() -> None:
    assert parse("gaussian noise_multiplier=30 times=1000").make(None) == e.RepeatedEvent(
        event=e.GaussianEvent(noise_multiplier=30.0), times=1000
    )
    assert parse("subsampled_laplace sampling_rate=0.01 epsilon=1").make(None) == e.PoissonSampledEvent(
        event=e.LaplaceEvent(epsilon=1.0), sampling_rate=0.01
    )
    free = parse("gaussian times=100")
    assert free.free == "noise_multiplier"
    assert free.make(2.0) == e.RepeatedEvent(event=e.GaussianEvent(noise_multiplier=2.0), times=100)
    assert parse("pure epsilon=0.1 times=1000000000").make(None) == e.RepeatedEvent(
        event=e.PureEvent(epsilon=0.1), times=10**9
    )
    for bad, error in (
        ("", InvalidParameter),
        ("gausian noise_multiplier=1", UnknownName),
        ("gaussian noise=1", UnknownName),
        ("gaussian 30", InvalidParameter),
        ("gaussian noise_multiplier=x", InvalidParameter),
        ("gaussian noise_multiplier=1 noise_multiplier=2", InvalidParameter),
        ("gaussian noise_multiplier=1 times=0", InvalidParameter),
        ("gaussian noise_multiplier=1 times=1.5", InvalidParameter),
        ("gaussian noise_multiplier=1 times=inf", InvalidParameter),
        ("approximate epsilon=1", InvalidParameter),
        ("subsampled_gaussian noise_multiplier=1", InvalidParameter),
    ):
        with pytest.raises(error):
            parse(bad)


def test_account_command(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    assert (
        main(["account", "--event", "gaussian noise_multiplier=30 times=1000", "--delta", "1e-6", "--json"])
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert answer["epsilon"]["low"] <= 5.18904 + 5e-6
    assert answer["epsilon"]["high"] == pytest.approx(5.18904, abs=5e-6)
    assert answer["delta"] == 1e-6
    assert answer["accountant"] == "gdp"
    toml = tmp_path / "plan.toml"
    toml.write_text(
        '[[event]]\nkind = "laplace"\nepsilon = 0.1\ntimes = 20\n[[event]]\nkind = "pure"\nepsilon = 0.2\n'
    )
    plot = tmp_path / "curve.png"
    assert main(["account", "--events", str(toml), "--delta", "1e-6", "--json", "--plot", str(plot)]) == 0
    from_toml = json.loads(capsys.readouterr().out)
    assert plot.stat().st_size > 5000
    as_json = tmp_path / "plan.json"
    as_json.write_text('["laplace epsilon=0.1 times=20", {"kind": "pure", "epsilon": 0.2}]')
    assert main(["account", "--events", str(as_json), "--delta", "1e-6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == from_toml["epsilon"]
    assert main(["account", "--event", "laplace epsilon=1", "--epsilon", "0.5"]) == 0
    assert "certified between" in capsys.readouterr().out


def test_calibrate_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["calibrate", "--epsilon", "1", "--delta", "1e-6", "--event", "gaussian times=100", "--json"])
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert answer["noise_multiplier"] == pytest.approx(42.2468, abs=1e-3)
    assert answer["epsilon"]["high"] <= 1.0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["account", "--delta", "1e-6"], 2),
        (["account", "--event", "gaussian noise_multiplier=1"], 2),
        (["account", "--event", "gaussian", "--delta", "1e-6"], 2),
        (["account", "--event", "gaussian noise_multiplier=1", "--delta", "2"], 2),
        (["account", "--event", "pure epsilon=1", "--delta", "1e-6", "--neighbours", "both"], 2),
        (["account", "--events", "/nonexistent.toml", "--delta", "1e-6"], 2),
        (
            [
                "account",
                "--event",
                "without_replacement_laplace epsilon=1 sampling_rate=0.1",
                "--delta",
                "1e-6",
            ],
            1,
        ),
        (["calibrate", "--epsilon", "1", "--delta", "1e-6", "--event", "gaussian noise_multiplier=1"], 2),
        (["calibrate", "--epsilon", "1", "--delta", "1e-6", "--event", "gaussian", "--event", "laplace"], 2),
        (["calibrate", "--epsilon", "1", "--delta", "0", "--event", "gaussian"], 1),
    ],
)
def test_commands_refuse_with_one_sentence(
    arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("tacit: ")
    assert said.err.count("\n") == 1
