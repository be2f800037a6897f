"""Running totals: the factor and its sensitivity, one charge in advance, order, replay, death, sealed noise."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import errors
from tacit.curator.custodian import inspect
from tacit.curator.running import RunningTotal, open_running_total, running_series, squared_move
from tacit.ledger.log import SEEN
from tacit.mechanisms.factorisation import GRID, GridFactor
from tacit.noise.source import KeyedSource, SeededSource
from tacit.report.running import write_figures

SCHEMA = {"week": tacit.integer(1, 6), "sex": tacit.category(["f", "m"]), "who": tacit.category()}
PRICE = {"epsilon": 1, "delta": 1e-6}


def frame(weeks=6, rows=900, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "week": rng.integers(1, weeks + 1, rows),
            "sex": rng.choice(["f", "m"], rows),
            "who": np.arange(rows),
        }
    )


def make(path, unit=None, **more):
    """With `ledger=None` a table in memory, whose budget lasts for the session."""
    data = frame() if "ledger" in more else str(path / "t.csv")
    return tacit.Curator(
        data, protect=unit or tacit.rows(), schema=SCHEMA, budget=tacit.Approximate(epsilon=3, delta=1e-5),
        **{"ledger": str(path / "t.ledger"), **more},
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    frame().to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(("steps", "error"), [(52, 2.147), (365, 2.756), (1000, 3.073)])
def test_the_largest_errors_are_those_of_the_normalised_root(steps, error):
    assert GridFactor(steps=steps).largest_error == pytest.approx(error, abs=6e-4)


def test_bands_for_several_participations():
    assert GridFactor(steps=52, participations=4, separation=13).largest_error == pytest.approx(
        5.74, abs=0.01
    )
    assert GridFactor(steps=52, participations=12, separation=4).largest_error == pytest.approx(
        14.4, abs=0.05
    )


def contributions(factor, times, apart):
    """Every move of C x by one person, from the definition: schedules, and figures before or after which they leave."""
    matrix = factor.whole_matrix.astype(object)
    n = factor.steps
    for count in range(1, times + 1):
        for chosen in itertools.combinations(range(n), count):
            if all(b - a >= apart for a, b in itertools.pairwise(chosen)):
                for first, last in itertools.product(range(n), repeat=2):
                    rows = [sum(matrix[i, j] for j in chosen) if first <= i <= last else 0 for i in range(n)]
                    yield sum(v * v for v in rows)


@pytest.mark.parametrize(("times", "apart"), [(1, 1), (2, 1), (2, 3), (3, 2)])
def test_no_schedule_moves_more_than_the_sensitivity(times, apart):
    """Theorem `running-totals`, parts (a) and (b): records that come late or leave early among them; attained."""
    factor = GridFactor(steps=7, participations=times, separation=apart)
    found = max(contributions(factor, times, apart))
    assert found <= factor.squared_steps <= found * (1 + 1e-9) + 1


def test_a_record_that_changes_its_step_would_move_more():
    matrix = GridFactor(steps=8).whole_matrix.astype(object)
    most = max(
        sum(v * v for v in [*matrix[:r, j], *matrix[r:, k]])
        for j, k, r in itertools.product(range(8), repeat=3)
    )
    assert most > GridFactor(steps=8).squared_steps * 1.2, "so that it must be declared"


@pytest.mark.parametrize(
    ("unit", "factor_of"),
    [
        (tacit.rows(), 1),
        (tacit.rows(neighbours="replace-one"), 2),
        (tacit.people("who", at_most=3), 9),
        (tacit.people("who", at_most=3, neighbours="replace-one"), 18),
    ],
)
def test_the_move_of_a_unit(folder, unit, factor_of):
    """All moves of a unit with up to three rows, in any steps and groups, in the entries of C itself."""
    with make(folder, unit) as curator:
        series = running_series(curator, "week", groups="sex", **PRICE)
    factor = series.factor
    assert squared_move(series.question, factor) == factor.squared_steps * factor_of
    most, matrix = row_count(unit), factor.whole_matrix.astype(object)
    places = list(itertools.product(range(factor.steps), (0, 1)))
    own = []
    for count in range(most + 1):
        for chosen in itertools.combinations_with_replacement(places[::3], count):
            move = np.zeros((factor.steps, 2), dtype=object)
            for step, group in chosen:
                move[:, group] += matrix[:, step]
            own.append(move)
    if unit.neighbours.value == "replace-one":
        own = [a - b for a, b in itertools.product(own[::2], own[::3])]
    assert max(int((m**2).sum()) for m in own) <= series.squared
    noise = series.mechanism
    assert float(noise.noise_std) ** 2 * float(noise.mu_squared) >= series.squared * (1 - 1e-9)


def row_count(unit):
    return getattr(unit, "at_most", 1)


def test_one_charge_then_figures_in_order_and_free(folder):
    true = frame().week
    with make(folder) as curator:
        series = running_series(curator, "week", **PRICE)
        assert curator.spent.epsilon == 0
        total = open_running_total(curator, series)
        paid = curator.spent
        assert (paid.epsilon, paid.delta) == (1.0, pytest.approx(1e-6))
        with pytest.raises(errors.InvalidParameter, match="come after step 1"):
            total.release(2)
        figures = [total.release(k) for k in (1, 2, 3)]
        again = total.release(2)
        with pytest.raises(errors.InvalidParameter, match="1 to 6"):
            total.release(7)
        with pytest.raises(errors.InvalidParameter):
            total.release(0)
        assert curator.spent == paid
    assert [f.replayed for f in figures] == [False] * 3
    assert again.replayed
    assert again.value == figures[1].value
    for k, figure in enumerate(figures, 1):
        assert abs(figure.value[0] - (true <= k).sum()) < 6 * series.standard_deviations[k - 1]
        assert figure.low[0] <= figure.value[0] <= figure.high[0]
        assert figure.certificate["numerical_delta"] == 0.0
        assert "no record changes its step between two figures" in str(figure.certificate["guarantee"])
    # Another process, another day: nothing is lost, nothing is charged, and the next step follows.
    with make(folder) as curator:
        total = open_running_total(curator, running_series(curator, "week", **PRICE))
        assert total.reopened
        assert total.published == 3
        assert [total.release(k).value[0] for k in (1, 2, 3)] == [f.value[0] for f in figures]
        assert (
            total.release(4).certificate["charged"]["sequence"]
            == figures[0].certificate["charged"]["sequence"]
        )
        assert list(total.table.week) == [1, 2, 3, 4]
        assert curator.spent == paid


def test_a_process_that_dies_in_a_step_draws_nothing_anew(folder, monkeypatch):
    """Killed between noise and record: the noisy numbers of the second try are those of the first."""
    seen = []

    class Dead(BaseException):
        pass

    with make(folder) as curator:
        total = open_running_total(curator, running_series(curator, "week", **PRICE))
        total.release(1)
        paid, commit = curator.spent, type(curator.ledger).commit

        def dies(self, outcome, answer, **more):
            seen.append(bytes(answer))
            raise Dead

        monkeypatch.setattr(type(curator.ledger), "commit", dies)
        with pytest.raises(Dead):
            total.release(2)
        monkeypatch.setattr(
            type(curator.ledger),
            "commit",
            lambda s, o, a, **m: (seen.append(bytes(a)), commit(s, o, a, **m))[1],
        )
    with make(folder) as curator:
        total = open_running_total(curator, running_series(curator, "week", **PRICE))
        assert total.published == 1
        total.release(2)
        assert curator.spent == paid
    assert json.loads(seen[0])["units"] == json.loads(seen[-1])["units"]


def first_units(total, curator):
    """The noisy number of the first figure, as it is recorded."""
    total.release(1)
    (units,) = json.loads(total._recorded(curator.ledger, 1).answer)["units"]
    return units


def test_other_numbers_get_other_noise(folder):
    """A restored ledger and changed data: two figures do not differ by the true difference."""
    ledgers = []
    with make(folder) as curator:
        total = open_running_total(curator, running_series(curator, "week", **PRICE))
        before = (folder / "t.ledger").read_bytes()
        ledgers.append(first_units(total, curator))
    (folder / "t.ledger").write_bytes(before)
    for left in folder.glob("t.ledger-*"):
        if left.suffix != ".ledger-at":
            left.unlink()
    changed = frame()
    changed.loc[0, "week"] = 1 if changed.week[0] != 1 else 2
    changed.to_csv(folder / "t.csv", index=False)
    with make(folder) as curator:
        total = open_running_total(curator, running_series(curator, "week", **PRICE))
        ledgers.append(first_units(total, curator))
    moved = abs(ledgers[0] - ledgers[1])
    assert moved != int(GridFactor(steps=6).whole_matrix[0, 0])


def test_two_processes_at_one_step_publish_one_figure(folder, monkeypatch):
    """A slow one has read the table; another reads later rows, and records its figure first."""
    second = []
    with make(folder) as curator:
        slow = open_running_total(curator, running_series(curator, "week", **PRICE))
        kind, commit = type(curator.ledger), type(curator.ledger).commit

        def overtaken(self, outcome, answer, **more):
            monkeypatch.setattr(kind, "commit", commit)
            later = pd.concat([frame(), frame(rows=40, seed=2)])
            later.to_csv(folder / "t.csv", index=False)
            with make(folder) as other:
                total = open_running_total(other, running_series(other, "week", **PRICE))
                second.append(total.release(1))
            return commit(self, outcome, answer, **more)

        monkeypatch.setattr(kind, "commit", overtaken)
        first = slow.release(1)
        assert slow.release(1).value == first.value
        assert curator.spent.epsilon == 1
        kinds = [e.body["kind"] for e in curator.ledger.entries()]
    assert first.value == second[0].value
    assert first.certificate["recorded"] == second[0].certificate["recorded"]
    assert (first.replayed, second[0].replayed) == (True, False)
    assert kinds.count("commit") == 2, "the charge, and one figure"


def test_tables_of_one_ledger_have_noise_of_their_own(folder):
    """Equal figures of two charged tables would say that their true counts are equal."""
    answers = []
    for name in ("", "second"):
        with make(folder, table=name) as curator:
            total = open_running_total(curator, running_series(curator, "week", **PRICE))
            assert not total.reopened
            total.release(1)
            found = total._recorded(curator.ledger, 1)
            assert found is not None
            answers.append(json.loads(bytes(found.answer))["units"])  # the noisy numbers alone
            spent = curator.spent.epsilon
    assert spent == pytest.approx(2)
    assert answers[0] != answers[1]


def test_fifty_series_cover_the_truth_and_have_the_spread():
    """Through the ledger: 50 series of six groups and steps; the spread of the last figure within four deviations."""
    errors_seen = []
    truth = (frame().week <= 3).sum()
    held = 0
    curator = tacit.Curator(
        frame(), protect=tacit.rows(), schema=SCHEMA, budget=tacit.Concentrated(rho=100), ledger=None
    )
    with curator:
        for k in range(50):
            series = running_series(curator, "week", mu=0.2, name=f"s{k}")
            total = open_running_total(curator, series)
            for step in (1, 2, 3):
                figure = total.release(step)
            errors_seen.append(figure.value[0] - truth)
            held += figure.low[0] <= truth <= figure.high[0]
    std = series.standard_deviations[2]
    assert abs(np.std(errors_seen) / std - 1) < 4 / math.sqrt(100)
    assert held >= 41


def test_groups_people_and_bins(folder):
    with make(folder) as curator:
        total = open_running_total(curator, running_series(curator, "week", groups="sex", **PRICE))
        figure = total.release(1)
        assert figure.keys == (("f",), ("m",))
        by_bins = running_series(curator, tacit.sources.bins("week", [1, 3, 5, 6]), **PRICE)
        assert by_bins.factor.steps == 3
    with make(folder, tacit.people("who", at_most=3), ledger=None) as curator:
        series = running_series(curator, "week", of="people", participations=3, separation=2, **PRICE)
        assert series.factor.strategy == "banded_square_root"
        for one in (series, running_series(curator, "week", **PRICE)):
            with pytest.raises(errors.InvalidParameter, match="protect rows"):
                open_running_total(curator, one)


def test_a_new_row_displaces_a_counted_one_of_the_same_person(folder):
    """Why people are refused: what is kept of a person with more rows than are used moves between the figures."""
    from tacit.sources import Schema, integer, open_table
    from tacit.statistics import count, read

    unit, schema = tacit.people("who", at_most=1), Schema({"week": integer(1, 4)})
    factor, beyond = GridFactor(steps=4), 0
    for who in range(20):
        figures = []
        for t in range(1, 5):
            data = pd.DataFrame({"who": [who] * t, "week": list(range(1, t + 1))})
            with open_table(data, schema=schema, unit=unit) as table:
                (parts,) = read(table, [count(by="week").on(schema, unit)], key=b"k" * 32)
            moved = factor.whole_matrix.astype(object) @ np.ravel(parts["count"]).astype(object)
            figures.append(int(moved[t - 1]))
        beyond += sum(v * v for v in figures) > factor.squared_steps
    assert beyond > 5


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"epsilon": 1}, "epsilon and delta"),
        ({}, "epsilon and delta"),
        ({"participations": 2, **PRICE}, 'come with of="people"'),
        ({"by": "who", **PRICE}, "declared steps"),
        ({"of": "people", **PRICE}, "people"),
    ],
)
def test_what_is_refused(folder, words, match):
    with make(folder) as curator, pytest.raises(errors.TacitError, match=match):
        running_series(curator, words.pop("by", "week"), **words)


def test_more_refusals(folder):
    with make(folder, tacit.people("who", at_most=3)) as curator:
        with pytest.raises(errors.InvalidParameter, match="at least the rows"):
            running_series(curator, "week", of="people", participations=2, **PRICE)
        series = running_series(curator, "week", **PRICE)
        with pytest.raises(errors.InvalidParameter, match="paid for"):
            RunningTotal(curator, series, None, 1, "x").release(1)
    with (
        make(folder, ledger=None) as curator,
        pytest.raises(errors.InvalidParameter, match="schema and unit"),
    ):
        open_running_total(curator, series)
    with make(folder, ledger=None) as curator, pytest.raises(errors.BudgetExceeded):
        open_running_total(curator, running_series(curator, "week", epsilon=4, delta=1e-6))
    for wrong in (0, 2000):
        with pytest.raises(errors.InvalidParameter):
            GridFactor(steps=wrong)
    with pytest.raises(errors.InvalidParameter):
        KeyedSource(key=b"short")


def test_a_seeded_source_is_not_publishable(folder):
    with make(folder, ledger=None, source=SeededSource(seed=3)) as curator:
        total = open_running_total(curator, running_series(curator, "week", **PRICE))
        assert not total.release(1).publishable
    assert GRID >= 10


def test_a_figure_states_what_its_guarantee_rests_on(folder):
    """As other certificates: an earlier look at the rows, the table, its version and files, and the assumptions."""
    with make(folder, table="cases") as curator:
        inspect(curator)
        total = open_running_total(curator, running_series(curator, "week", **PRICE))
        said = [total.release(1).certificate, total.release(1).certificate]
        other = curator.release(tacit.count(by="sex"), epsilon=0.1).certificate
    for one in said:
        assert SEEN in one["guarantee"]["declared"]
        assert SEEN in one["meaning"]
        assert one["data"] == {**other["data"], "bounded": False}
        assert one["data"]["seen"] == [SEEN]
        assert one["data"]["table"] == "cases"
    assert said[0] == said[1]


def test_figures_of_made_up_rows_say_so(folder):
    from tacit.sources.synthetic import twin
    from tacit.sources.synthetic.twin import write_table

    write_table(twin(SCHEMA, rows=50), folder / "t.csv")
    with make(folder) as curator:
        total = open_running_total(curator, running_series(curator, "week", **PRICE))
        assert [total.release(1).made_up, total.release(1).made_up] == [True, True]


def test_a_figure_of_an_earlier_version_is_read(folder):
    """Its record has the numbers alone."""
    with make(folder) as curator:
        total = open_running_total(curator, running_series(curator, "week", **PRICE))
        asked = total._request(curator.ledger, 1)
        ticket = curator.ledger.reserve(asked)
        curator.ledger.commit(ticket, json.dumps({"units": [1 << 20], "publishable": True}).encode())
        figure = total.release(1)
    assert figure.replayed
    assert "data" not in figure.certificate
    assert not figure.made_up


def test_a_withdrawn_figure_says_so(folder):
    """Whether its own entry was withdrawn or the charge that paid for all of them."""
    with make(folder) as curator:
        total = open_running_total(curator, running_series(curator, "week", **PRICE))
        figures = [total.release(k) for k in (1, 2)]
        assert [f.correction for f in figures] == ["", ""]
        assert total.table.attrs == {}
        step = next(c.sequence for c in curator.ledger.charges() if "Step 1" in c.told[0]["statistic"])
        curator.ledger.withdraw(step, note="late records")
        told = [total.release(k).correction for k in (1, 2)]
        assert "withdrawn" in told[0]
        assert told[0].endswith("late records.")
        assert told[1] == ""
        assert total.table.attrs == {"corrections": {1: told[0]}}
        curator.ledger.withdraw(total.sequence, note="wrong weeks")
        assert ["wrong weeks" in total.release(k).correction for k in (1, 2, 3)] == [True] * 3


def test_keys_with_the_names_of_numbers_keep_theirs(tmp_path):
    data = frame().rename(columns={"week": "value", "sex": "low"})
    schema = {"value": SCHEMA["week"], "low": SCHEMA["sex"]}
    with tacit.Curator(
        data,
        protect=tacit.rows(),
        schema=schema,
        budget=tacit.Approximate(epsilon=3, delta=1e-5),
        ledger=None,
    ) as curator:
        total = open_running_total(curator, running_series(curator, "value", groups="low", **PRICE))
        figure = total.release(1)
        assert list(total.table) == ["value_key", "low_key", "value", "low", "high", "quality"]
        assert list(total.table["value_key"]) == [1, 1]
        assert list(total.table["low_key"]) == ["f", "m"]
        assert list(total.table["value"]) == [int(v) for v in figure.value]
        write_figures(tmp_path / "out", total, figure)
    lines = (tmp_path / "out" / "figures.csv").read_text().splitlines()
    assert lines[0] == "value_key,low_key,value,low,high,quality"
    assert lines[1].startswith("1,f,")


def test_a_zero_that_has_noise_is_never_good():
    """The interval of a figure below 0 is cut to [0, 0]; it is judged as it was."""
    data = pd.DataFrame({"week": np.arange(1, 7).repeat(200), "sex": ["f"] * 1200})
    schema = {name: SCHEMA[name] for name in data}
    cut = good = 0
    for seed in range(40):
        with tacit.Curator(
            data, protect=tacit.rows(), schema=schema, budget=tacit.Approximate(epsilon=3, delta=1e-5), ledger=None,
            source=SeededSource(seed=seed),
        ) as curator:  # fmt: skip
            total = open_running_total(curator, running_series(curator, "week", groups="sex", **PRICE))
            figure = total.release(1)
        words = dict(zip(figure.keys, figure.quality, strict=True))
        assert words[("m",)] == "too noisy to use"
        cut += figure.high[1] == 0
        good += words[("f",)] == "good"
    assert cut
    assert good == 40
