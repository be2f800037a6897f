"""DP-SGD from what its authors state, calibration of any value, and curves as arrays and files."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.accounting import TrainingRun
from tacit.accounting.codec import WORDS, parse
from tacit.cli import main
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw, UnknownName

E = tacit.events


def run(**changes: object) -> TrainingRun:
    given = {"records": 60_000, "batch_size": 256, "epochs": 60, "noise_multiplier": 1.1} | changes
    return tacit.dp_sgd(**{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]


# --- a training run --------------------------------------------------------------------------------------
def test_epsilon_of_a_training_run() -> None:
    found = tacit.dp_sgd(records=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
    ends = found.account(delta=1e-5).epsilon
    assert found.steps == 14_063
    # Enclosed by other people's accountants, of 14,063 steps.
    assert 2.38146 <= ends.low <= ends.high <= 2.38173
    assert found.epsilon(1e-5) == ends.high


def test_noise_of_a_training_run_for_a_target() -> None:
    found = tacit.dp_sgd(records=60_000, batch_size=256, epochs=60, epsilon=2.0, delta=1e-5)
    assert found.epsilon(1e-5) <= 2.0
    assert run(noise_multiplier=found.noise_multiplier * 0.999).account(delta=1e-5).epsilon.low > 2.0


@pytest.mark.parametrize(
    ("records", "batch", "epochs", "steps"),
    [(1000, 10, 0.1, 10), (1000, 10, 1, 100), (1000, 300, 1, 4), (1000, 1000, 2, 2), (7, 2, 1.5, 6)],
)
def test_epochs_that_do_not_divide_are_rounded_up(
    records: int, batch: int, epochs: float, steps: int
) -> None:
    found = tacit.dp_sgd(records=records, batch_size=batch, epochs=epochs, noise_multiplier=1)
    assert found.steps == steps
    assert f"{steps:,} steps" in found.describe()


def test_batches_without_replacement_move_by_twice_the_norm() -> None:
    found = run(records=1000, batch_size=1000, epochs=3, noise_multiplier=8, sampling="without_replacement")
    assert found.neighbours is tacit.guarantees.Neighbours.REPLACE_ONE
    # The whole table three times, Gaussian noise 8 on a sum that moves by 2: mu^2 = 3 / 16.
    truth = tacit.GaussianDP(mu=math.sqrt(3 / 16)).epsilon(1e-6)
    assert found.epsilon(1e-6) == pytest.approx(truth, rel=1e-3)


def test_shuffled_batches_are_refused_with_the_reason() -> None:
    with pytest.raises(NoLaw, match="exactly one batch"):
        run(sampling="shuffled")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"epochs": None}, InvalidParameter),
        ({"steps": 10}, InvalidParameter),
        ({"epochs": math.nan}, InvalidParameter),
        ({"epochs": 0}, InvalidParameter),
        ({"batch_size": 60_001}, InvalidParameter),
        ({"batch_size": 0}, InvalidParameter),
        ({"noise_multiplier": None}, InvalidParameter),
        ({"delta": 1e-5}, InvalidParameter),
        ({"noise_multiplier": None, "epsilon": 1.0}, InvalidParameter),
        ({"sampling": "sometimes"}, UnknownName),
    ],
)
def test_bad_input_is_typed(changes: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        run(**changes)


# --- commands --------------------------------------------------------------------------------------------
def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict:  # type: ignore[type-arg]
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_one_command_for_a_training_run(capsys: pytest.CaptureFixture[str]) -> None:
    event = "dp_sgd records=60000 batch_size=256 epochs=60 noise_multiplier=1.1"
    found = answer(capsys, "account", "--event", event, "--delta", "1e-5")
    assert 2.38146 <= found["epsilon"]["low"] <= found["epsilon"]["high"] <= 2.38173
    assert "14,063 steps" in found["notes"][0]


@pytest.mark.parametrize(
    ("event", "name", "step"),
    [
        ("subsampled_gaussian noise_multiplier=1 sampling_rate=? times=100", "sampling_rate", 1.001),
        ("laplace epsilon=0.1 times=?", "times", None),
        ("approximate epsilon=0.1 delta=? times=7", "delta", 1.001),
        ("laplace epsilon=? times=7", "epsilon", 1.001),
        ("subsampled_laplace epsilon=? sampling_rate=0.1 times=7", "epsilon", 1.001),
        ("concentrated rho=? times=3", "rho", 1.001),
        ("dp_sgd records=6000 batch_size=256 epochs=? noise_multiplier=2", "epochs", None),
        ("dp_sgd records=6000 batch_size=256 steps=? noise_multiplier=2", "steps", None),
    ],
)
def test_any_value_is_calibrated(
    event: str, name: str, step: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, "calibrate", "--event", event, "--epsilon", "2", "--delta", "1e-5")
    assert found["parameter"] == name
    assert found["epsilon"]["high"] <= 2
    more = found["value"] + 1 if step is None else found["value"] * step
    plan = parse(event).make(more)
    assert tacit.account(plan, delta=1e-5).epsilon.high > 2


def test_fewest_records(capsys: pytest.CaptureFixture[str]) -> None:
    event = "dp_sgd records=? batch_size=100 epochs=5 noise_multiplier=1"
    found = answer(capsys, "calibrate", "--event", event, "--epsilon", "2", "--delta", "1e-5")
    assert found["epsilon"]["high"] <= 2
    assert tacit.account(parse(event).make(int(found["value"] * 0.99)), delta=1e-5).epsilon.high > 2
    easy = "dp_sgd records=? batch_size=100 epochs=1 noise_multiplier=100"
    assert answer(capsys, "calibrate", "--event", easy, "--epsilon", "2", "--delta", "1e-5")["value"] == 100


def test_a_sampling_rate_stops_at_one(capsys: pytest.CaptureFixture[str]) -> None:
    event = "subsampled_gaussian noise_multiplier=100 sampling_rate=?"
    assert answer(capsys, "calibrate", "--event", event, "--epsilon", "2", "--delta", "1e-5")["value"] == 1


@pytest.mark.parametrize(
    "event",
    [
        "staircase epsilon=1 gamma=?",
        "laplace epsilon=? times=?",
        "gaussian noise_multiplier=1",
        "randomized_response epsilon=1 categories=?",
        "subsampled_dp_sgd records=10 batch_size=1 epochs=1 sampling_rate=0.1",
        "dp_sgd records=10 batch_size=1",
        "dp_sgd records=10 batch_size=1.5 epochs=1",
    ],
)
def test_what_cannot_be_sought_is_bad_input(event: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--event", event, "--epsilon", "2", "--delta", "1e-5"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_running_totals_have_a_largest_number_of_steps(capsys: pytest.CaptureFixture[str]) -> None:
    """The answer where more than those that can be worked out would do; a look beyond them is no error."""
    plan = ["--event", "correlated_tree noise_multiplier=50 steps=?", "--epsilon", "1", "--delta", "1e-6"]
    assert main(["calibrate", *plan]) == 0
    assert "steps = 16384" in capsys.readouterr().out.replace(",", "")


def test_out_of_reach_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["--event", "laplace epsilon=5 times=?", "--epsilon", "2", "--delta", "0"]
    assert main(["calibrate", *plan]) == 1
    assert "no amount of noise" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["account", "calibrate"])
def test_help_lists_every_word(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    told = capsys.readouterr().out
    for word, entry in WORDS.items():
        line = next(x for x in told.splitlines() if x.strip().startswith(word + " "))
        assert all(f"{value}=" in line for value in entry.values)


# --- curves ----------------------------------------------------------------------------------------------
PLAN = [E.RepeatedEvent(event=E.LaplaceEvent(epsilon=0.1), times=20), E.GaussianEvent(noise_multiplier=3)]


def test_the_curve_is_the_accounts() -> None:
    curve = tacit.privacy_curve(PLAN, epsilons=[0.0, 0.5, 1.0])
    for e, low, high in curve.as_array():
        found = tacit.account(PLAN, epsilon=e).delta
        assert max(low, found.low) <= min(high, found.high)
    assert curve.advantage == curve.delta[0]
    assert curve.best_guess >= (1 + curve.delta[0]) / 2


def test_the_trade_off_curve_of_gaussian_noise_is_known() -> None:
    curve = tacit.privacy_curve(E.GaussianEvent(noise_multiplier=1.0), points=201)
    truth = np.array([tacit.guarantees.meaning.power(tacit.GaussianDP(mu=1.0), s) for s in curve.size])
    assert np.all(curve.power >= truth - 1e-12)
    assert np.max(curve.power - truth) < 2e-3


def test_the_trade_off_curve_of_randomised_response_is_known() -> None:
    """(p, 1-p) against (1-p, p) at epsilon = 1: power min(e s, 1 - (1-s)/e) and no test is better."""
    curve = tacit.privacy_curve(E.PureEvent(epsilon=1.0), epsilons=[0.0, 1.0], points=101)
    s = curve.size
    truth = np.minimum(np.minimum(math.e * s, 1 - (1 - s) / math.e), 1.0)
    assert np.all(curve.power >= truth - 1e-12)
    kinks = np.minimum(truth, s + math.tanh(0.5))
    assert np.allclose(curve.power, kinks, atol=1e-12)


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["account", "--event", "laplace epsilon=0.1 times=20", "--delta", "1e-6"]
    table, other, picture = tmp_path / "c.csv", tmp_path / "t.json", tmp_path / "p.png"
    found = answer(capsys, *plan, "--curve", str(table), "--trade-off", str(other), "--plot", str(picture))
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert list(rows[0]) == ["epsilon", "delta_low", "delta"]
    assert all(0 <= float(r["delta_low"]) <= float(r["delta"]) <= 1 for r in rows)
    as_json = json.loads(other.read_text())
    assert len(as_json["size"]) == len(as_json["power"]) == 81
    assert as_json["best_guess"] == found["best_guess"] == pytest.approx(0.5 + float(rows[0]["delta"]) / 2)
    assert picture.stat().st_size > 5000
    assert main([*plan, "--curve", str(tmp_path / "c.txt")]) == 2
    assert "kind of table" in capsys.readouterr().err


def test_bad_curves() -> None:
    for bad in ([math.nan], [-1.0], [math.inf], ["x"], "0.5x", [[0.1], [0.2, 0.3]]):
        with pytest.raises(InvalidParameter):
            tacit.privacy_curve(PLAN, epsilons=bad)  # type: ignore[arg-type]
    with pytest.raises(EmptyComposition):
        tacit.privacy_curve(PLAN, epsilons=[])
