"""tacit optimal and tacit reproduce, as they are typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import main
from tacit.reproduce import REPRODUCTIONS, reproduction


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_optimal_count(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "optimal", "count", "--n", "100", "--epsilon", "0.1")
    assert found["risk"] == pytest.approx(8.877793, abs=1e-6)
    assert found["lower_bound"] == pytest.approx(8.877793, abs=1e-6)
    assert found["truncated_geometric"] == pytest.approx(9.916085, abs=1e-6)
    assert 0 <= found["gap"] < 1e-6  # type: ignore[operator]
    assert found["solved"] is True
    assert main(["optimal", "count", "--n", "10", "--epsilon", "1"]) == 0
    assert "no private mechanism goes below" in capsys.readouterr().out


def test_losses_and_priors_from_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    x = np.arange(7)
    table = np.abs(x[None, :] - np.abs(2 * x[:, None] - 6))
    (tmp_path / "loss.csv").write_text("\n".join(",".join(map(str, row)) for row in table))
    found = told(
        capsys, "optimal", "count", "--n", "6", "--epsilon", "1", "--loss", str(tmp_path / "loss.csv")
    )
    assert found["method"] == "full linear program"
    assert found["risk"] == pytest.approx(1.1126, abs=5e-5)
    (tmp_path / "loss.json").write_text(json.dumps(table.tolist()))
    again = told(
        capsys, "optimal", "count", "--n", "6", "--epsilon", "1", "--loss", str(tmp_path / "loss.json")
    )
    assert again["risk"] == found["risk"]
    for text in ("0.25,0.5,0.25", "0.25\n0.5\n0.25\n"):
        (tmp_path / "prior.csv").write_text(text)
        words = ("--criterion", "bayes", "--prior", str(tmp_path / "prior.csv"))
        found = told(capsys, "optimal", "count", "--n", "2", "--epsilon", "1", *words)
        assert found["risk"] == pytest.approx(found["lower_bound"], rel=1e-6)


def test_the_mechanism_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "best.json"
    found = told(capsys, "optimal", "count", "--n", "5", "--epsilon", "1", "--out", str(out))
    assert found["out"] == str(out)
    kept = json.loads(out.read_text())
    assert len(kept["mechanism"]["heights"]) == 6
    assert sum(kept["prior"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--n", "0", "--epsilon", "1"), "n must be an integer that is at least 1"),
        (("--n", "5", "--epsilon", "0"), "epsilon must be a finite number above 0"),
        (("--n", "5", "--epsilon", "nan"), "epsilon must be a finite number above 0"),
        (("--n", "five", "--epsilon", "1"), "'five' is not an integer"),
        (("--n", "5", "--epsilon", "one"), "'one' is not a number"),
        (("--n", "5", "--epsilon", "1", "--loss", "nine"), "loss must be a known name"),
        (("--n", "5", "--epsilon", "1", "--criterion", "best"), "unknown criterion"),
        (("--n", "5", "--epsilon", "1", "--delta", "2"), "delta must lie in [0, 1)"),
        (
            (
                "--n",
                "5",
            ),
            "epsilon",
        ),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str) -> None:
    assert main(["optimal", "count", *words]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_seventy_counts_at_once() -> None:
    """Half a second is the promise, which the benchmarks hold: the command loads nothing heavier than numpy."""
    code = (
        "import sys\nfrom tacit.cli import main\n"
        "main(['optimal', 'count', '--n', '70', '--epsilon', '0.1', '--json'])\n"
        "heavy = [m for m in sys.modules if m.split('.')[0] in ('scipy', 'matplotlib', 'flint', 'pydantic')]\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_reproductions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in REPRODUCTIONS)
    for name in ("hall-2.1", "hall-2.2"):
        found = told(capsys, "reproduce", name, "--out", str(tmp_path))
        assert sorted(Path(f).suffix for f in found["files"]) == [".csv", ".png", ".svg"]  # type: ignore[attr-defined]
        assert all(Path(f).stat().st_size > 100 for f in found["files"])  # type: ignore[attr-defined]
        kept = Path(__file__).parents[2] / "docs" / "reproduction" / f"{name}.csv"
        fresh = np.genfromtxt(tmp_path / f"{name}.csv", delimiter=",", skip_header=1)
        assert np.allclose(fresh, np.genfromtxt(kept, delimiter=",", skip_header=1), rtol=2e-6)
    assert main(["reproduce"]) == 2
    assert main(["reproduce", "hall-2.9"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_figure_2_1_has_its_corners() -> None:
    made = reproduction("hall-2.1").make()
    corners = {(row[0], row[1]): (row[2], row[3]) for row in made.rows}
    assert corners[(1.0, 1)] == pytest.approx((0.26894142, 0.26894142))
    assert corners[(5.0, 0)] == (1.0, 0.0)


def test_figure_2_2_lies_below_its_curves() -> None:
    made = reproduction("hall-2.2").make()
    for epsilon, risk, floor, one_over, sinh, half in made.rows:
        assert float(risk) <= min(float(one_over), float(half)) + 1e-9
        assert float(floor) <= float(risk) <= float(sinh) + 1e-6
        assert float(risk) - float(floor) <= 1e-6 * float(risk), epsilon


def test_errors_are_drawn_against_epsilon(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "prices.png"
    found = told(capsys, "optimal", "count", "--n", "8", "--epsilon", "1", "--plot", str(out))
    assert found["plot"] == str(out)
    assert out.read_bytes().startswith(b"\x89PNG")
    assert (
        main(["optimal", "count", "--n", "8", "--epsilon", "1", "--loss", "squared", "--plot", str(out)]) == 2
    )
    assert "absolute loss" in capsys.readouterr().err
