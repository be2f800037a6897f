"""Bad input: typed errors or right answers, never a wrong number."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli import main
from tacit.coupled import (
    Distributional,
    FiniteMechanism,
    InferenceDistributional,
    Level,
    Noiseless,
    Pair,
    Prior,
    Pufferfish,
    Secret,
    SimulationDP,
    Simulator,
    cell_of,
    iid_rows,
    independent_rows,
    known_rows,
    mixture,
    one_row,
    point_prior,
    point_priors,
    read_question,
    row_pairs,
    sampled_rows,
    student_of_school,
    value_secret,
    with_auxiliary,
)
from tacit.errors import EmptyComposition, InvalidInput, InvalidParameter, NotCertified, UnknownName

FAIR = {0: "1/2", 1: "1/2"}


@pytest.mark.parametrize(
    "law",
    [{0: "1/2", 1: "1/3"}, {0: 0.1, 1: 0.9}, {0: 1, 1: "1/10"}, {}, {0: -1, 1: 2}, {0: "x"}, {0: math.nan, 1: 1},
     {0: True}, {0: None}, {0: "1/0"}, {0: math.inf}],
)  # fmt: skip
def test_a_distribution_that_does_not_normalise_is_refused(law: Any) -> None:
    with pytest.raises(InvalidParameter):
        iid_rows(law, rows=2)
    with pytest.raises(InvalidParameter):
        FiniteMechanism(table={(0,): law})
    with pytest.raises(InvalidParameter):
        Simulator.constant(law)


def test_a_float_is_its_binary_value() -> None:
    assert iid_rows({0: 0.75, 1: 0.25}, rows=1).data[(0,)] == Fraction(3, 4)
    with pytest.raises(InvalidParameter, match="not a tenth"):
        iid_rows({0: 0.1, 1: 0.9}, rows=1)


def test_rational_overflow_is_refused_and_long_sums_are_exact() -> None:
    with pytest.raises(InvalidParameter, match="binary digits"):
        iid_rows({0: Fraction(1, 3**6000), 1: 1 - Fraction(1, 3**6000)}, rows=1)
    tiny = Fraction(1, 2**4000)
    prior = iid_rows({0: 1 - tiny, 1: tiny}, rows=2)
    assert sum(prior.weights.values()) == 1
    found = Distributional(priors=(prior,)).delta(FiniteMechanism.of(sum, [prior]), epsilon="ln 3")
    # But for the tiny values: one certain output against another, and e^1000 does not make up for 2^-4000.
    far = Distributional(priors=(prior,)).delta(FiniteMechanism.of(sum, [prior]), epsilon=1000)
    for one in (found, far):
        assert one.low <= one.high
        assert max(abs(one.low - Fraction(1, 2)), abs(one.high - Fraction(1, 2))) < Fraction(1, 10**9)


@pytest.mark.parametrize(
    "epsilon", [-1, math.nan, math.inf, "ln 0.5", "ln(1/2)", "one", 1e9, None, True, "ln 1/0"]
)
def test_an_epsilon_that_is_none_is_refused(epsilon: Any) -> None:
    with pytest.raises(InvalidParameter):
        Level.of(epsilon)


def test_levels_enclose_the_exponential() -> None:
    assert Level.of("ln 3").low == Level.of("ln(3)").high == 3
    assert Level.of(1000).low < Level.of(1000).high
    for epsilon in (1e-12, 0.5, 1, 30, 700):
        level = Level.of(epsilon)
        assert level.low < level.high
        assert float(level.low) == pytest.approx(math.exp(epsilon), rel=1e-12)
    assert Level.of(0).exact
    assert Level.of("0.5").low == Level.of(0.5).low


def test_a_value_of_probability_zero_is_refused() -> None:
    prior = iid_rows({0: "1/2", 1: "1/2", 2: 0}, rows=2)
    mechanism = FiniteMechanism.of(sum, [prior])
    assert cell_of(mechanism, prior, one_row(0), value=1).probability == Fraction(1, 2)
    with pytest.raises(InvalidParameter, match="probability 0"):
        cell_of(mechanism, prior, one_row(0), value=2)
    with pytest.raises(InvalidParameter, match="probability 0"):
        cell_of(mechanism, prior, one_row(0), value=1, auxiliary="never")
    with pytest.raises(InvalidParameter, match="positive probability"):
        Pufferfish(priors=(prior,), secrets=(value_secret(0, 0, 2),))


def test_an_auxiliary_that_determines_the_row_has_the_right_answers() -> None:
    """Then nothing is left to learn about it: noiseless privacy is empty, and posteriors are certain."""
    prior = with_auxiliary(iid_rows(FAIR, rows=2), lambda x: x[0])
    mechanism = FiniteMechanism.of(sum, [prior])
    only = Distributional(priors=(prior,), pairs=(one_row(0),))
    # A simulator must still imitate a count without the row: the known value is not among its inputs. Fair on {0, 1}
    # if the row is 0, fair on {1, 2} if it is 1: the middle of the two is 1/4 away from both.
    found = only.delta(mechanism, epsilon=0)
    assert found.low == found.high == Fraction(1, 4)
    assert only.epsilon_pair(mechanism) is None
    assert Noiseless(priors=(prior,), pairs=(one_row(0),)).delta(mechanism, epsilon=0).high == 0
    assert Noiseless(priors=(prior,), pairs=(one_row(0),)).epsilon(mechanism) is None
    beliefs = InferenceDistributional(priors=(prior,), pairs=(one_row(0),))
    assert beliefs.check(mechanism, epsilon=0).holds is True


def test_shapes_that_do_not_fit_are_refused() -> None:
    prior = iid_rows(FAIR, rows=2)
    mechanism = FiniteMechanism.of(sum, [prior])
    with pytest.raises(InvalidParameter, match="every data set"):
        Distributional(priors=(iid_rows(FAIR, rows=3),)).delta(mechanism, epsilon=1)
    with pytest.raises(EmptyComposition):
        Distributional(priors=())
    with pytest.raises(InvalidParameter, match="tell them apart"):
        Distributional(priors=(prior, prior))
    with pytest.raises(InvalidParameter, match="one number of rows"):
        Distributional(priors=(point_prior((0,)), point_prior((0, 1))))
    with pytest.raises(InvalidParameter, match="pairs"):
        Prior(name="flat", weights={0: Fraction(1)})  # type: ignore[dict-item]
    with pytest.raises(InvalidParameter, match="weights"):
        mixture([prior], ["1/2", "1/2"])
    with pytest.raises(InvalidParameter, match="exactly 1"):
        mixture([prior], ["1/2"])
    with pytest.raises(InvalidParameter, match="at most the number"):
        known_rows(prior, unknown=3)
    with pytest.raises(InvalidParameter, match="outcomes"):
        point_priors([0, 1], rows=40)
    with pytest.raises(InvalidParameter, match="outcomes"):
        independent_rows([FAIR] * 1000)
    with pytest.raises(InvalidParameter, match="population"):
        sampled_rows([0, 1], size={3: 1})
    with pytest.raises(InvalidParameter, match="contain"):
        student_of_school(0, [1, 2])
    with pytest.raises(InvalidParameter, match="0, 1 or None"):
        Secret(name="s", function=lambda x: 2)((0,))
    with pytest.raises(InvalidParameter, match="function"):
        Pair(name="p", priv=lambda x: x, alt=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="hashable"):
        FiniteMechanism.of(lambda x: {1, 2}, [prior])
    with pytest.raises(InvalidParameter, match="left out"):
        Noiseless(priors=(prior,)).delta(mechanism, epsilon=1, simulator=Simulator.constant([0]))
    with pytest.raises(InvalidParameter, match="answer every"):
        Distributional(priors=(prior,)).delta(
            mechanism, epsilon=1, simulator=Simulator.of_table({("row 0", ("gone", 0)): {0: 1}})
        )
    with pytest.raises(InvalidParameter):
        SimulationDP(values=(0, 1), rows=2.5)  # type: ignore[arg-type]
    many = iid_rows({v: Fraction(1, 30) for v in range(30)}, rows=1)
    with pytest.raises(NotCertified):
        Noiseless(priors=(many,)).original_delta(FiniteMechanism.of(lambda x: x, [many]), epsilon=1)


# --- files and the command -----------------------------------------------------------------------------
ROOT = Path(__file__).parents[2]
GOOD: dict[str, Any] = {
    "epsilon": "ln 2",
    "delta": 0.1,
    "prior": [{"iid": {"0": 0.5, "1": 0.5}, "n": 3}],
    "mechanism": {"function": "parity", "flip": "1/4"},
}


def written(tmp_path: Path, told: Any) -> Path:
    path = tmp_path / "question.json"
    path.write_text(told if isinstance(told, str) else json.dumps(told))
    return path


def test_the_command_answers_in_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["coupled", "check", str(ROOT / "examples" / "coupled-parity.toml"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    by_number = {v["number"]: v for v in told["verdicts"]}
    assert by_number["Def. 5.3"]["holds"] is False
    assert by_number["Def. 5.3"]["delta_exact"] == "1/2"
    assert by_number["Def. 5.3"]["witnesses"][0]["event"] == ["'1'"]
    assert by_number["Def. 5.2"]["holds"] is True
    assert main(["coupled", "check", str(ROOT / "examples" / "coupled-response.json")]) == 0
    out = capsys.readouterr().out
    assert "Def. 5.1): yes" in out
    assert "1.09862" in out


@pytest.mark.parametrize(("kind", "delta"), [("schools", "7/80"), ("rows", "9/320"), ("people", "1/8")])
def test_what_is_hidden_of_a_school_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, delta: str
) -> None:
    text = (ROOT / "examples" / "coupled-schools.toml").read_text()
    groups = "" if kind == "rows" else "groups = [[0, 1]]"
    path = tmp_path / "question.toml"
    path.write_text(text.replace('kind = "schools"\ngroups = [[0, 1]]', f'kind = "{kind}"\n{groups}'))
    main(["coupled", "check", str(path), "--json"])
    assert json.loads(capsys.readouterr().out)["verdicts"][0]["delta_exact"] == delta


def test_the_school_by_hand() -> None:
    """The same delta by a linear program from the definition: the simulator knows how many of the others say yes."""
    from scipy.optimize import linprog

    others, alike, factor = [math.comb(3, k) / 8 for k in range(4)], 0.9, 3.0
    real = np.zeros((2, 6))
    for student in (0, 1):
        for mate, chance in ((student, alike), (1 - student, 1 - alike)):
            for k, p in enumerate(others):
                real[student, k + student + mate] += chance * p / 2
    # S(output | k), then what each direction exceeds by at each (student, output), then the larger of both sums.
    size, cells = 24, 12
    below: list[np.ndarray] = []
    most: list[float] = []
    for way in (0, 1):
        for student in (0, 1):
            for out in range(6):
                row = np.zeros(size + 2 * cells + 1)
                simulated = np.array([p / 2 if o == out else 0.0 for p in others for o in range(6)])
                row[:size] = -factor * simulated if way == 0 else simulated
                row[size + way * cells + student * 6 + out] = -1
                below.append(row)
                most.append(-real[student, out] if way == 0 else factor * real[student, out])
        total = np.zeros(size + 2 * cells + 1)
        total[size + way * cells : size + (way + 1) * cells], total[-1] = 1, -1
        below.append(total)
        most.append(0.0)
    one = np.zeros((4, size + 2 * cells + 1))
    for k in range(4):
        one[k, 6 * k : 6 * k + 6] = 1
    goal = np.zeros(size + 2 * cells + 1)
    goal[-1] = 1
    found = linprog(goal, A_ub=np.array(below), b_ub=most, A_eq=one, b_eq=np.ones(4), bounds=(0, None))
    assert found.fun == pytest.approx(7 / 80, abs=1e-9)


def test_all_examples_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    found = sorted((ROOT / "examples").glob("coupled-*"))
    assert len(found) == 4
    for path in found:
        question = read_question(path)
        assert question.definitions


def test_every_form_of_a_file_is_read(tmp_path: Path) -> None:
    priors = [
        {"rows": [{"0": 0.5, "1": 0.5}, {"0": 1}]},
        {"outcomes": [{"data": [0, 1], "auxiliary": "a", "probability": 0.25},
                      {"data": [1, 1], "probability": "3/4"}]},
        {"population": [0, 1], "size": {"1": 1}},
        {"iid": {"0": 0.5, "1": 0.5}, "n": 2, "tells": "parity", "unknown": 1},
    ]  # fmt: skip
    protected = [
        {"kind": "rows"},
        {"kind": "people", "groups": [[0, 1]]},
        {"kind": "schools", "groups": [[0], [1]]},
    ]
    for prior in priors:
        for protect in protected:
            table = [
                {"data": [a, b], "outputs": {"x": 0.5, "y": 0.5}} for a in (0, 1, None) for b in (0, 1, None)
            ]
            told = {"epsilon": 0, "prior": [prior], "mechanism": {"table": table}, "protect": protect}
            for simulator in (None, {"constant": {"x": 0.5, "y": 0.5}}):
                asked = {**told, "simulator": simulator} if simulator else told
                for verdict in read_question(written(tmp_path, asked)).answer():
                    assert verdict.holds is True
                    assert verdict.delta.high == 0
    columns = {
        "epsilon": 0,
        "prior": [{"outcomes": [{"data": [["a", 0]], "probability": 0.5}, {"data": [["a", 1]], "probability": 0.5}]}],
        "mechanism": {"table": [{"data": [["a", v]], "outputs": {"a": 1}} for v in (0, 1)]},
        "protect": {"kind": "column", "column": 1},
    }  # fmt: skip
    assert all(v.holds for v in read_question(written(tmp_path, columns)).answer())


@pytest.mark.parametrize(
    "change",
    [{"epsilon": None}, {"epsilon": [1]}, {"prior": []}, {"prior": 3}, {"prior": [{"n": 3}]}, {"mechanism": {}},
     {"prior": [{"iid": {"0": 0.5}, "n": 3}]}, {"prior": [{"iid": {"0": 1}, "n": -1}]}, {"nonsense": 1},
     {"mechanism": {"function": "sum"}}, {"mechanism": {"function": "parity", "table": []}},
     {"definitions": ["dp"]}, {"definitions": ["simulation"]}, {"definitions": ["pufferfish"]}, {"definitions": []},
     {"protect": {"kind": "cats"}}, {"simulator": {}}, {"simulator": {"fill": 0, "constant": {}}}, {"delta": 2},
     {"mechanism": {"function": "count", "flip": "1/4"}}, {"prior": [{"iid": {"0": 1}, "n": 10**30}]},
     {"mechanism": {"table": [{"data": [0], "outputs": {"0": 1}}, {"data": [0], "outputs": {"0": 1}}]}}],
    ids=str,
)  # fmt: skip
def test_a_file_that_is_not_understood_is_refused(
    change: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = written(tmp_path, {**GOOD, **change})
    with pytest.raises(InvalidInput):
        read_question(path)
    assert main(["coupled", "check", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("tacit:")


@pytest.mark.parametrize("text", ["{", "[1]", "3", '{"epsilon": NaN}', "[" * 3000])
def test_a_broken_file_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        read_question(written(tmp_path, text))
    with pytest.raises(InvalidInput):
        read_question(tmp_path / "absent.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput):
        read_question(tmp_path / "bytes.toml")


def test_a_good_file_is_answered(tmp_path: Path) -> None:
    question = read_question(written(tmp_path, GOOD))
    assert [v.holds for v in question.answer()] == [True, True, True]
    assert question.delta == Fraction(1, 10)
    with pytest.raises(UnknownName, match="parity"):
        read_question(written(tmp_path, {**GOOD, "mechanism": {"function": "pairty"}}))


def test_row_pairs_are_named_by_their_place() -> None:
    assert [p.name for p in row_pairs(3)] == ["row 0", "row 1", "row 2"]
