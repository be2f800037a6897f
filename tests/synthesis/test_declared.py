"""What is declared holds exactly: public margins, impossible combinations, weights, days and missing values."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest

import tacit
from synthesis.toys import chain, joint
from tacit.accounting import account
from tacit.noise.source import SeededSource
from tacit.synthesis.drawing import draw_rows
from tacit.synthesis.model import Model, margin_of
from tacit.synthesis.public import nearest_table

ROWS, SIZES = chain(600)
NAMES = [f"c{i}" for i in range(6)]
FRAME = pd.DataFrame(ROWS, columns=NAMES)
SCHEMA = {n: tacit.integer(0, s - 1, missing=0) for n, s in zip(NAMES, SIZES, strict=True)}
BUDGET = tacit.Approximate(epsilon=3.0, delta=1e-5)


def curator(frame=FRAME, schema=SCHEMA, **words) -> tacit.Curator:
    return tacit.Curator(frame, protect=tacit.rows(), schema=schema, budget=BUDGET, **words)


def counts(frame, names):
    """The margin by looking at every row."""
    shape = [SIZES[NAMES.index(n)] for n in names]
    out = np.zeros(shape, dtype=int)
    for row in frame[names].to_numpy():
        out[tuple(row)] += 1
    return out


def known(*margins):
    return [{"columns": list(m), "counts": counts(FRAME, list(m)).tolist()} for m in margins]


@pytest.mark.parametrize(
    "margins",
    [
        [("c3",)], [("c3", "c0")], [("c0", "c1"), ("c1", "c2")], [("c0",), ("c2",), ("c5",)],
        [("c0", "c1"), ("c1", "c2"), ("c2", "c0")],
    ],
    ids=["one column", "a pair out of order", "a chain", "three columns", "a cycle"],
)  # fmt: skip
def test_public_margins_hold_exactly(margins) -> None:
    with curator(source=SeededSource(seed=3)) as held:
        made = tacit.synthesise(
            held, columns=NAMES, epsilon=1.0, delta=1e-6, rounds=4, public_margins=known(*margins)
        )
        rows = made.rows
    assert len(rows) == made.total == 600
    for m in margins:
        assert (counts(rows, list(m)) == counts(FRAME, list(m))).all()
    first = list(margins[0])
    told = made.answer("count", where=f"{first[0]} = 1")
    assert told.low == told.value == told.high == (FRAME[first[0]] == 1).sum()
    assert "as it was declared" in told.rests_on
    assert made.rows_within(0.05) == 0.0
    # What is public is not measured: the record has the declared counts, without noise.
    assert (made.outcome.ones[NAMES.index(first[0])] == counts(FRAME, first[:1])).all()


def test_public_margins_and_impossible_combinations_hold_together() -> None:
    frame = FRAME[~((FRAME["c0"] <= 1) & (FRAME["c3"] == 4)) & ~((FRAME["c1"] == 2) & (FRAME["c4"] == 0))]
    publics = [
        {"columns": ["c0", "c1"], "counts": counts(frame, ["c0", "c1"])},
        {"columns": ["c3"], "counts": counts(frame, ["c3"])},
    ]
    patterns = [{"c0": [0, 1], "c3": [4]}, {"c1": 2, "c4": 0}]
    with curator(frame, source=SeededSource(seed=5)) as held:
        made = tacit.synthesise(
            held,
            columns=NAMES,
            epsilon=0.5,
            delta=1e-6,
            rounds=4,
            public_margins=publics,
            impossible=patterns,
        )
        rows = made.rows
    assert (counts(rows, ["c0", "c1"]) == publics[0]["counts"]).all()
    assert (counts(rows, ["c3"]) == publics[1]["counts"]).all()
    assert not ((rows["c0"] <= 1) & (rows["c3"] == 4)).any()
    assert not ((rows["c1"] == 2) & (rows["c4"] == 0)).any()


def test_public_columns_cost_nothing_and_the_others_have_less_noise() -> None:
    """Public columns are not measured: the account is that of what is run, by hand."""
    asked = tacit.synthesis.synthetic_table(NAMES, rounds=3, public_margins=known(("c0", "c1")), errors=0.0)
    with curator() as held:
        plan = held.preview(asked, epsilon=1.0, delta=1e-6)
        plain = held.preview(
            tacit.synthesis.synthetic_table(NAMES, rounds=3, errors=0.0), epsilon=1.0, delta=1e-6
        )
        made = held.release(asked, epsilon=1.0, delta=1e-6)
    schedule = plan.releases[0].assignment.schedule
    other = plain.releases[0].assignment.schedule
    assert schedule.ones.sensitivity.squared_steps(1) == 4
    assert other.ones.sensitivity.squared_steps(1) == 6
    assert schedule.ones.noise_std == pytest.approx(other.ones.noise_std * (4 / 6) ** 0.5, rel=1e-3)
    by_hand = [
        tacit.events.GaussianEvent(noise_multiplier=float(schedule.ones.noise_std) / 2),
        tacit.events.RepeatedEvent(
            event=tacit.events.ExponentialEvent(epsilon=float(schedule.choosing.epsilon)), times=3
        ),
        tacit.events.RepeatedEvent(
            event=tacit.events.GaussianEvent(noise_multiplier=float(schedule.measuring.noise_std)), times=3
        ),
    ]
    found = account(by_hand, delta=1e-6, neighbours=tacit.rows().neighbours).epsilon.high
    assert 0.999 < found <= 1.0001
    measured = made.certificate["synthetic"]["measured"]
    assert [m["margin"] for m in measured[:4]] == [["c2"], ["c3"], ["c4"], ["c5"]]
    assert not any(set(m["margin"]) <= {"c0", "c1"} for m in measured)
    assert made.certificate["synthetic"]["public"] == ["c0 x c1"]
    assert made.certificate["sensitivity"]["one_way_l2_squared"] == "4"


def test_all_columns_may_be_public() -> None:
    margins = [(n,) for n in NAMES]
    with curator(source=SeededSource(seed=1)) as held:
        release = held.release(
            tacit.synthesis.synthetic_table(NAMES, rounds=3, public_margins=known(*margins)),
            epsilon=1.0,
            delta=1e-6,
        )
        rows = release.synthetic.rows
    for (n,) in margins:
        assert (counts(rows, [n]) == counts(FRAME, [n])).all()
    kinds = [e["event"]["kind"] for e in release.certificate["event"]]
    assert kinds == ["repeated", "repeated", "gaussian"]
    assert release.synthetic.answer("count", where="c0 = 1 and c5 = 1").high > 0


@pytest.mark.parametrize(
    ("publics", "said"),
    [
        ([{"columns": ["c0"], "counts": [1, 2, 3]}], "4 counts for this column"),
        ([{"columns": ["c0"], "counts": [1, 2, 3, 4, 0]}], "4 counts for this column"),
        ([{"columns": ["c9"], "counts": [1]}], "name columns of the rows"),
        ([{"columns": ["c0", "c0"], "counts": [[1]]}], "once"),
        ([{"columns": ["c0"], "counts": [1.5, 2, 3, 4]}], "whole counts"),
        ([{"columns": ["c0"], "counts": [[1], [2, 3]]}], "whole counts"),
        ([{"columns": ["c0"], "counts": [-1, 2, 3, 4]}], "at least 0"),
        ([{"columns": ["c0"], "counts": [0, 0, 0, 0]}], "all 0"),
        ([{"columns": ["c0"]}], "columns and counts"),
        (["c0"], "columns and counts"),
        (known(("c0",), ("c0",)), "given once"),
        ([*known(("c0",)), {"columns": ["c2"], "counts": [1, 2]}], "same total"),
        (
            [
                {"columns": ["c2", "c5"], "counts": [[300, 0], [0, 300]]},
                {"columns": ["c5"], "counts": [299, 301]},
            ],
            "contradict each other",
        ),
        ([{"columns": ["c2", "c5"], "counts": [[300, 0], [0, 300]]}], "or the impossible combinations"),
        (
            [
                {"columns": ["c0", "c1", "c2"], "counts": np.full((4, 4, 2), 1)},
                {"columns": ["c3"], "counts": [7] * 4 + [4]},
            ],
            "columns of all public margins together",
        ),
    ],
)  # fmt: skip
def test_bad_public_margins_are_one_sentence_and_cost_nothing(publics, said) -> None:
    patterns = [{"c2": [1], "c5": [1]}] if "impossible" in said else []
    limit = 100 if "together" in said else 200_000
    with curator() as held:
        with pytest.raises(tacit.errors.TacitError, match=said) as problem:
            held.release(
                tacit.synthesis.synthetic_table(
                    NAMES, public_margins=publics, impossible=patterns, cells=limit
                ),
                epsilon=1.0, delta=1e-6,
            )  # fmt: skip
        assert held.spent.epsilon == 0
    assert "\n" not in str(problem.value)


def test_a_cycle_that_no_table_has_is_refused_although_each_pair_agrees() -> None:
    """Three fair coins, each two of them always different: margins agree, and there is no table."""
    half = [[0, 50], [50, 0]]
    frame = pd.DataFrame({"a": [0, 1] * 50, "b": [1, 0] * 50, "c": [0, 1] * 50, "d": 0})
    schema = {**{n: tacit.integer(0, 1, missing=0) for n in "abc"}, "d": tacit.integer(0, 1, missing=0)}
    publics = [{"columns": list(p), "counts": half} for p in ("ab", "bc", "ac")]
    with curator(frame, schema) as held, pytest.raises(tacit.errors.InvalidParameter, match="contradict"):
        held.preview(
            tacit.synthesis.synthetic_table(list("abcd"), public_margins=publics), epsilon=1.0, delta=1e-6
        )


def test_a_size_beside_public_margins_must_be_theirs() -> None:
    with curator() as held:
        for draw in (599, 600):
            asked = tacit.synthesis.synthetic_table(NAMES, draw=draw, rounds=2, public_margins=known(("c0",)))
            if draw == 600:
                held.preview(asked, epsilon=1.0, delta=1e-6)
            else:
                with pytest.raises(tacit.errors.InvalidParameter, match="600"):
                    held.preview(asked, epsilon=1.0, delta=1e-6)


def test_fits_keep_public_margins_and_follow_the_rest() -> None:
    """Against the product of potentials itself: public margins hold, measured ones are fitted, the tree is rooted."""
    sizes = (3, 4, 2, 3)
    rng = np.random.default_rng(2)
    truth = rng.dirichlet(np.ones(72)).reshape(sizes)
    table = np.rint(1000 * truth).astype(int)
    total = int(table.sum())
    public = {(0, 1): table.sum(axis=(2, 3)), (1, 2): table.sum(axis=(0, 3))}
    model = Model(sizes=sizes, rows=float(total), public=public)
    for margin in [(3,), (0, 3), (2, 3)]:
        gone = tuple(i for i in range(4) if i not in margin)
        model.measure(margin, table.sum(axis=gone).astype(float), 4.0)
    model.arrange()
    model.fit(300)
    exact = joint(model)
    assert set(model.tree.cliques[0]) >= {0, 1, 2}
    for margin, counted in public.items():
        gone = tuple(i for i in range(4) if i not in margin)
        assert np.abs(total * exact.sum(axis=gone) - counted).max() < 1e-3
    for margin in [(0, 3), (2, 3)]:
        gone = tuple(i for i in range(4) if i not in margin)
        assert np.abs(total * exact.sum(axis=gone) - table.sum(axis=gone)).sum() < 0.02 * total
    rows = draw_rows(model, total, SeededSource(seed=1), exact=True)
    for margin, counted in public.items():
        got = np.zeros(counted.shape, dtype=int)
        np.add.at(got, tuple(rows[:, i] for i in margin), 1)
        assert (got == counted).all()
    # Other pairs of the rows are near those of the model, within twice what independent draws give.
    for pair in itertools.combinations(range(4), 2):
        gone = tuple(i for i in range(4) if i not in pair)
        want = exact.sum(axis=gone)
        got = np.zeros(want.shape)
        np.add.at(got, tuple(rows[:, i] for i in pair), 1)
        floor = float(np.sqrt(want * (1 - want) / total).sum()) * 0.4
        assert np.abs(got / total - want).sum() / 2 <= 2 * floor + 1e-9
    assert margin_of(exact, (0, 1, 2, 3), (0, 1)).shape == (3, 4)


def test_the_nearest_table_moves_as_few_rows_as_it_can() -> None:
    """By trying all tables of whole counts with these margins."""
    public = {(0,): np.array([3, 2]), (1,): np.array([2, 2, 1])}
    allowed = np.array([[True, True, True], [True, False, True]])
    start = np.array([[1, 1, 0], [2, 1, 0]])
    found = nearest_table(start, public, (0, 1), allowed)
    best = min(
        int(np.abs(t - start).sum())
        for flat in itertools.product(range(4), repeat=6)
        if (t := np.array(flat).reshape(2, 3)).sum(axis=1).tolist() == [3, 2]
        and t.sum(axis=0).tolist() == [2, 2, 1]
        and not t[~allowed].any()
    )
    assert found is not None
    assert int(np.abs(found - start).sum()) == best
    assert not found[~allowed].any()


def test_a_weight_column_says_how_many_rows_each_row_stands_for() -> None:
    with curator(source=SeededSource(seed=2)) as held:
        made = tacit.synthesise(
            held, columns=NAMES, epsilon=1.0, delta=1e-6, rounds=2, draw=150, weight_column="w"
        )
    assert made.rows.columns.tolist() == [*NAMES, "w"]
    assert made.rows["w"].sum() == pytest.approx(made.total)
    assert made.rows["w"].nunique() == 1
    with curator() as held, pytest.raises(tacit.errors.InvalidParameter, match="new name"):
        tacit.synthesise(held, columns=NAMES, epsilon=1.0, delta=1e-6, weight_column="c0")


def test_days_and_missing_values_are_values() -> None:
    rng = np.random.default_rng(4)
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, 900), unit="D")
    frame = pd.DataFrame({"day": days.date, "sex": rng.choice(["f", "m"], 900), "old": rng.random(900) < 0.3})
    frame.loc[::6, "day"] = None
    schema = {
        "day": tacit.date("2024-01-01", "2024-12-31"),
        "sex": tacit.category(["f", "m"]),
        "old": tacit.flag(),
    }
    columns = [tacit.bins("day", ["2024-01-01", "2024-04-01", "2024-07-01", "2025-01-01"]), "sex", "old"]
    never = [{"day": [("2024-01-01", "2024-04-01"), None], "sex": "m"}]
    frame = frame[
        ~((frame["sex"] == "m") & (frame["day"].isna() | (pd.to_datetime(frame["day"]) < "2024-04-01")))
    ]
    with curator(frame, schema, source=SeededSource(seed=2)) as held:
        made = tacit.synthesise(held, columns=columns, epsilon=2.0, delta=1e-6, rounds=3, impossible=never)
        rows = made.rows
    assert rows["day"].dtype.kind == "M"
    assert abs(rows["day"].isna().mean() - frame["day"].isna().mean()) < 0.1
    known_days = rows["day"].dropna()
    assert known_days.between("2024-01-01", "2024-12-31").all()
    assert known_days.nunique() > 100
    assert not ((rows["sex"] == "m") & (rows["day"].isna() | (rows["day"] < "2024-04-01"))).any()
    early = int((pd.to_datetime(frame["day"]) < "2024-04-01").sum())
    found = made.answer("count", where="day < '2024-04-01'", confidence=0.9999)
    assert found.low <= early <= found.high


def test_a_public_margin_may_count_missing_values_or_leave_them_out() -> None:
    frame = pd.DataFrame({"a": ["x", "y", None, "x"] * 50, "b": [0, 1, 0, 0] * 50})
    schema = {"a": tacit.category(["x", "y"]), "b": tacit.integer(0, 1, missing=0)}
    with curator(frame, schema, source=SeededSource(seed=2)) as held:
        made = tacit.synthesise(
            held, columns=["a", "b"], epsilon=1.0, delta=1e-6, rounds=1,
            public_margins=[{"columns": "a", "counts": [100, 50, 50]}],
        )  # fmt: skip
        assert made.rows["a"].isna().sum() == 50
        assert (made.rows["a"] == "x").sum() == 100
        again = tacit.synthesise(
            held, columns=["a", "b"], epsilon=1.0, delta=1e-6, rounds=1,
            public_margins=[{"columns": ["a"], "counts": np.array([150, 50])}],
        )  # fmt: skip
        assert again.rows["a"].isna().sum() == 0


def test_requests_with_other_public_margins_are_other_requests() -> None:
    plain = tacit.synthesis.synthetic_table(NAMES)
    assert "public_margins" not in plain.to_dict()
    assert "weight_column" not in plain.to_dict()
    one = tacit.synthesis.synthetic_table(NAMES, public_margins=known(("c0",)))
    told = one.to_dict()["public_margins"]
    assert told == [{"columns": ["c0"], "counts": counts(FRAME, ["c0"]).tolist()}]
    with curator() as held:
        held.release(tacit.synthesis.synthetic_table(NAMES, rounds=1), epsilon=0.2, delta=1e-6)
        spent = held.spent.epsilon
        held.release(
            tacit.synthesis.synthetic_table(NAMES, rounds=1, public_margins=known(("c0",))),
            epsilon=0.2,
            delta=1e-6,
        )
        assert held.spent.epsilon > spent


def test_plans_have_public_margins_bins_that_never_occur_and_weights(tmp_path, monkeypatch, capsys) -> None:
    from tacit.cli import main

    frame = FRAME[~((FRAME["c0"] < 2) & (FRAME["c2"] == 1))]
    frame.to_csv(tmp_path / "people.csv", index=False)
    columns = "\n".join(
        f'[schema.{n}]\nkind = "integer"\nlow = 0\nhigh = {s - 1}\n'
        for n, s in zip(NAMES, SIZES, strict=True)
    )
    given = counts(frame, ["c2", "c5"]).tolist()
    body = (
        '[data]\npath = "people.csv"\n[protect]\nunit = "rows"\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n'
        f'{columns}\n[[release]]\nname = "people"\nkind = "synthetic_table"\nrounds = 2\nweight_column = "weight"\n'
        'columns = [{ column = "c0", bins = [0, 2, 4] }, "c1", "c2", "c5"]\n'
        "impossible = [{ c0 = [[0, 2]], c2 = 1 }]\n"
        f'public_margins = [{{ columns = ["c2", "c5"], counts = {json.dumps(given)} }}]\n'
    )
    (tmp_path / "plan.toml").write_text(body)
    monkeypatch.chdir(tmp_path)
    assert main(["synthesise", "plan.toml", "--out", "out", "--json"]) == 0, capsys.readouterr()
    rows = pd.read_csv(tmp_path / "out/rows/people.csv")
    assert len(rows) == len(frame)
    assert (counts(rows.fillna(0).astype({"c2": int, "c5": int}), ["c2", "c5"]) == given).all()
    assert not ((rows["c0"] < 2) & (rows["c2"] == 1)).any()
    assert (rows["weight"] == 1).all()
    ledger = next(tmp_path.glob("*.ledger"))
    capsys.readouterr()
    assert main(["verify", "out", "--ledger", str(ledger)]) == 0, capsys.readouterr().out
    for bad in (
        "public_margins = 3",
        'public_margins = [{ columns = ["c2"] }]',
        "impossible = [{ c0 = [[0, 1, 2]] }]",
    ):
        word = bad.split(" ")[0]
        wrong = "\n".join(bad if line.startswith(word) else line for line in body.splitlines())
        (tmp_path / "bad.toml").write_text(wrong)
        assert main(["plan", "bad.toml"]) == 2


def test_more_rows_than_can_be_drawn_are_stood_for_by_fewer(monkeypatch) -> None:
    monkeypatch.setattr("tacit.synthesis.drawing.MOST_VALUES", 6 * 100)
    with curator(source=SeededSource(seed=2)) as held:
        made = tacit.synthesise(held, columns=NAMES, epsilon=1.0, delta=1e-6, rounds=2)
        assert len(made.rows) == 100
        assert made.weight == made.total / 100
        tacit.synthesis.synthetic_table(NAMES, draw=100)
        with pytest.raises(tacit.errors.InvalidParameter, match="at most 100"):
            tacit.synthesis.synthetic_table(NAMES, draw=101)
        asked = tacit.synthesis.synthetic_table(NAMES, public_margins=known(("c0",)))
        with pytest.raises(tacit.errors.InvalidParameter, match="count at most 100"):
            held.preview(asked, epsilon=1.0, delta=1e-6)


def test_patterns_in_another_order_are_the_same_request() -> None:
    one = tacit.synthesis.synthetic_table(NAMES, impossible=[{"c0": [2, 0, 2], "c1": {3, 1}}])
    other = tacit.synthesis.synthetic_table(NAMES, impossible=[{"c1": (1, 3), "c0": [0, 2]}])
    assert one.to_dict() == other.to_dict()


def test_only_margins_that_the_model_has_room_for_are_candidates() -> None:
    """A triple whose pairs do not fit is none, so that no round is without a choice; what is lost is said before."""
    schema = tacit.sources.schema.Schema({n: tacit.integer(0, 9, missing=0) for n in "abcd"})
    publics = [{"columns": ["a"], "counts": [5] * 10}, {"columns": ["b"], "counts": [5] * 10}]
    for limit, some in ((130, True), (119, False)):
        asked = tacit.synthesis.synthetic_table(list("abcd"), public_margins=publics, cells=limit)
        if some:
            details = asked.on(schema, tacit.rows()).details
            assert details["candidates"] == ((0, 1),)
            assert "5 pairs" in details["left_out"]
            assert "4 margins of three columns that the model has no room for" in details["left_out"]
        else:
            with pytest.raises(tacit.errors.TooManyCells):
                asked.on(schema, tacit.rows())
