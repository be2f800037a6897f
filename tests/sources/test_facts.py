"""What a proof rests on is established by the read that gives the numbers: files rewritten, linked, retyped between."""

from __future__ import annotations

import errno
import os
import sqlite3
import warnings

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
import tacit.statistics as ask
from support.spark import needs_spark
from tacit.curator import custodian as looking
from tacit.curator.ledgers import BESIDE, home_of
from tacit.errors import BadData, LedgerError, ReadFailed
from tacit.guarantees import group_of, people, rows
from tacit.sources import category, date, integer, open_table, tables
from tacit.sources.opening.files import files, join
from tacit.sources.opening.textfiles import HEADER

SCHEMA = {"age": integer(0, 99)}
REPLACED = rows(neighbours="replace-one")


def write(path, ages, **more):
    table = pa.table({"age": ages, **more})
    if path.suffix == ".csv":
        table.to_pandas().to_csv(path, index=False)
    else:
        pq.write_table(table, path)
    return path


def counted(table, asked=None):
    (found,) = ask.read(table, [(asked or ask.count()).on(table.schema, table.unit)])
    return int(np.ravel(next(iter(found.values())))[0])


def opened(data, schema=SCHEMA, unit=None):
    return open_table(data, schema=schema, unit=unit or rows())


# --- public joins -----------------------------------------------------------------------------------------------


def joined(folder, ending="parquet"):
    write(folder / f"visits.{ending}", [1] * 6, town=["a", "b", "c", "a", "b", "c"])
    write(folder / "towns.csv", [0, 0, 0], town=["a", "b", "c"], size=["s", "m", "l"])
    data = join(str(folder / f"visits.{ending}"), str(folder / "towns.csv"), on="town", public=True)
    return data, {"age": integer(0, 99), "town": category(["a", "b", "c"]), "size": category(["s", "m", "l"])}


def multiplied(folder):
    """Both files are written again: one key has 50 rows by now, and there is one more person who has it."""
    write(folder / "visits.parquet", [1] * 7, town=["a", "b", "c", "a", "b", "c", "c"])
    towns = ["a", "b", *["c"] * 50]
    pd.DataFrame({"town": towns, "size": ["s"] * len(towns)}).to_csv(folder / "towns.csv", index=False)


@pytest.fixture
def towns(tmp_path):
    data, schema = joined(tmp_path)
    pd.DataFrame({"town": ["a", "b", "c"], "size": ["s", "m", "l"]}).to_csv(
        tmp_path / "towns.csv", index=False
    )
    return data, schema


def test_a_public_table_in_memory_is_named_by_its_content(tmp_path):
    """One in files is named by its files; of one in memory the columns that are read are."""
    schema = joined(tmp_path)[1]
    found = []
    for sizes in (["s", "m", "l"], ["s", "m", "l"], ["s", "m", "m"]):
        frame = pd.DataFrame({"town": ["a", "b", "c"], "size": sizes})
        with opened(join(str(tmp_path / "visits.parquet"), frame, on="town", public=True), schema) as table:
            found.append(table.facts.public)
    assert found[0] == found[1] != found[2]
    assert all(len(one) == 1 and one[0] for one in found)


def test_repeated_keys_of_a_public_table_are_found_at_every_read(tmp_path, towns):
    with opened(*towns) as table:
        assert counted(table) == 6
        assert table.facts.single == ("towns.csv",)
        multiplied(tmp_path)
        with pytest.raises(ReadFailed):
            counted(table)
        with pytest.raises(BadData, match="several rows with one key"):
            table.renew()
        # Mended, it is read as it is now.
        pd.DataFrame({"town": ["a", "b", "c"], "size": ["s", "s", "s"]}).to_csv(
            tmp_path / "towns.csv", index=False
        )
        assert counted(table) == 7
        assert counted(table, ask.count(where="size = 's'")) == 7


def test_the_public_table_alone_may_change(tmp_path, towns):
    with opened(*towns) as table:
        assert counted(table, ask.count(where="size = 's'")) == 2
        pd.DataFrame({"town": ["a", "b", "c"], "size": ["s", "s", "l"]}).to_csv(
            tmp_path / "towns.csv", index=False
        )
        assert counted(table, ask.count(where="size = 's'")) == 4


def test_a_curator_says_what_is_wrong_before_it_charges(tmp_path, towns):
    data, schema = towns
    with tacit.Curator(data, protect=rows(), schema=schema, budget=tacit.Pure(epsilon=4)) as survey:
        survey.release(tacit.count(), epsilon=1)
        multiplied(tmp_path)
        with pytest.raises(BadData, match="several rows with one key"):
            survey.release(tacit.count(), epsilon=1, key="again")
        assert survey.spent == tacit.Pure(epsilon=1)


def test_what_changes_after_the_charge_ends_in_the_fixed_sentence(tmp_path, towns, monkeypatch):
    data, schema = towns
    with tacit.Curator(data, protect=rows(), schema=schema, budget=tacit.Pure(epsilon=4)) as survey:
        survey.release(tacit.count(), epsilon=1)
        read = survey._read

        def late(*given):
            multiplied(tmp_path)
            return read(*given)

        monkeypatch.setattr(survey, "_read", late)
        with pytest.raises(ReadFailed):
            survey.release(tacit.count(), epsilon=1, key="again")
        assert survey.spent == tacit.Pure(epsilon=2)


def test_a_public_table_that_becomes_the_protected_one_is_refused(tmp_path):
    write(tmp_path / "visits.parquet", [1, 2], town=["a", "b"])
    write(tmp_path / "towns.parquet", [3, 4], town=["a", "b"])
    data = join(str(tmp_path / "visits.parquet"), str(tmp_path / "towns.parquet"), on="town", public=True)
    with opened(data, {"town": category(["a", "b"])}) as table:
        assert counted(table) == 2
        (tmp_path / "towns.parquet").unlink()
        (tmp_path / "towns.parquet").symlink_to(tmp_path / "visits.parquet")
        with pytest.raises(BadData, match="cannot be public"):
            table.renew()
        with pytest.raises(ReadFailed):
            counted(table)


# --- the set of files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("how", ["symlink", "hard link"])
def test_a_file_that_becomes_another_is_not_counted_twice(tmp_path, ending, how):
    one, two = (write(tmp_path / f"{n}.{ending}", [1] * 5) for n in "ab")
    with opened(files([one, two])) as table:
        if ending == "parquet":
            assert counted(table) == 10
        two.unlink()
        two.symlink_to(one) if how == "symlink" else os.link(one, two)
        with pytest.raises(ReadFailed):
            counted(table)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_pattern_is_what_it_matches_when_it_is_read(tmp_path, ending):
    write(tmp_path / f"a1.{ending}", [1] * 5)
    with opened(files(tmp_path / f"a*.{ending}", pattern=True)) as table:
        write(tmp_path / f"a2.{ending}", [1] * 7)
        assert counted(table) == 12
        assert [f.path.name for f in table.facts.files] == [f"a1.{ending}", f"a2.{ending}"]


def test_every_file_of_a_pattern_has_the_one_ledger(tmp_path, monkeypatch):
    """The 201st and the 1001st too: each of them opened alone finds the budget that it was part of."""
    months = tmp_path / "months"
    months.mkdir()
    for i in range(1002):
        (months / f"m{i:04}.csv").write_text("age,x\n30,1\n")
    home = home_of(files(months / "*.csv", pattern=True), "")
    assert home is not None
    assert {place.stem for place in home.places} == {"months", *(f"m{i:04}" for i in range(1002))}
    made = {
        "protect": rows(),
        "schema": SCHEMA,
        "budget": tacit.Pure(epsilon=1),
        "ledger": tmp_path / "all.ledger",
    }
    with tacit.Curator(files(months / "*.csv", pattern=True), **made) as survey:
        survey.release(tacit.count(), epsilon=1)
    for name in ("m0000", "m0200", "m0201", "m1000", "m1001"):
        with (
            tacit.Curator(
                months / f"{name}.csv", **(made | {"ledger": tmp_path / f"{name}.ledger"})
            ) as alone,
            pytest.raises(LedgerError, match="second budget"),
        ):
            alone.release(tacit.count(), epsilon=1)


def test_a_file_that_comes_after_the_ledger_was_found_has_it_too(tmp_path):
    write(tmp_path / "m1.csv", [1, 2], x=[1, 1])
    made = {
        "protect": rows(),
        "schema": SCHEMA,
        "budget": tacit.Pure(epsilon=1),
        "ledger": tmp_path / "all.ledger",
    }
    with tacit.Curator(files(tmp_path / "m*.csv", pattern=True), **made) as survey:
        assert survey.remaining == tacit.Pure(epsilon=1)  # the ledger is made, and m1 has a note of it
        write(tmp_path / "m2.csv", [1, 2], x=[1, 1])
        survey.release(tacit.count(), epsilon=1)
    other = tacit.Curator(tmp_path / "m2.csv", **(made | {"ledger": tmp_path / "m2.ledger"}))
    with other, pytest.raises(LedgerError, match="second budget"):
        other.release(tacit.count(), epsilon=1)


def test_a_file_with_a_ledger_of_its_own_does_not_slip_into_a_pattern(tmp_path):
    write(tmp_path / "m1.csv", [1, 2], x=[1, 1])
    write(tmp_path / "other.csv", [1, 2], x=[1, 1])
    made = {"protect": rows(), "schema": SCHEMA, "budget": tacit.Pure(epsilon=1)}
    with tacit.Curator(tmp_path / "other.csv", ledger=tmp_path / "other.ledger", **made) as survey:
        survey.release(tacit.count(), epsilon=1)
    with tacit.Curator(
        files(tmp_path / "m*.csv", pattern=True), ledger=tmp_path / "all.ledger", **made
    ) as survey:
        assert survey.remaining == tacit.Pure(epsilon=1)
        (tmp_path / "other.csv").rename(tmp_path / "m2.csv")
        (tmp_path / "other.ledger").rename(tmp_path / "m2.ledger")
        with pytest.raises(LedgerError, match="second budget"):
            survey.release(tacit.count(), epsilon=1)


def test_no_note_is_lost_silently(tmp_path, monkeypatch):
    """A disk that is full when the second note is written: the second file would find no ledger."""
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("age,x\n30,1\n")
    made = {
        "protect": rows(),
        "schema": SCHEMA,
        "budget": tacit.Pure(epsilon=1),
        "ledger": tmp_path / "all.ledger",
    }
    put, opened_as = os.open, []

    def full(path, *more):
        if str(path).endswith("-at"):
            opened_as.append(path)
            if len(opened_as) == 2:
                raise OSError(errno.ENOSPC, "full")
        return put(path, *more)

    monkeypatch.setattr(os, "open", full)
    with (
        tacit.Curator(files([tmp_path / "a.csv", tmp_path / "b.csv"]), **made) as survey,
        pytest.raises(LedgerError, match="cannot be written"),
    ):
        survey.release(tacit.count(), epsilon=1)


def test_a_session_leaves_no_note(tmp_path):
    write(tmp_path / "m1.csv", [1, 2], x=[1, 1])
    with tacit.Curator(
        tmp_path / "m1.csv", protect=rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=1)
    ) as survey:
        survey.release(tacit.count(), epsilon=1)
    assert [p.name for p in tmp_path.iterdir()] == ["m1.csv"]


def test_one_real_file_among_many_twins_is_no_twin(tmp_path):
    from tacit.sources.facts import MARK, is_twin

    for i in range(1001):
        (tmp_path / f"m{i:04}.csv").write_text(f"age,{MARK}\n30,true\n")
    data = files(tmp_path / "m*.csv", pattern=True)
    assert is_twin(data)
    (tmp_path / "m1000.csv").write_text("age,x\n30,true\n")
    assert not is_twin(data)


def test_real_rows_in_the_place_of_a_twin_are_not_charged_to_a_rehearsal(tmp_path, monkeypatch):
    from tacit.sources.facts import MARK

    path = write(tmp_path / "t.parquet", [1] * 5, **{MARK: [True] * 5})
    with tacit.Curator(path, protect=rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=4)) as survey:
        assert survey.release(tacit.count(), epsilon=1).certificate["data"]["made_up"]
        assert survey._open().facts.made_up
        read = survey._read

        def late(*given):
            write(path, [1] * 6)
            return read(*given)

        monkeypatch.setattr(survey, "_read", late)
        with pytest.raises(ReadFailed):
            survey.release(tacit.count(), epsilon=1, key="again")


def test_a_release_is_made_up_if_the_rows_that_were_read_are(tmp_path):
    """A text file is copied once. What lies in its place later says nothing of the rows in the copy."""
    from tacit.sources.facts import MARK

    path = tmp_path / "t.csv"
    path.write_text("age\n" + "40\n" * 500)
    with tacit.Curator(path, protect=rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=4)) as survey:
        assert not survey.release(tacit.count(), epsilon=1).made_up
        path.write_text(f"age,{MARK}\n40,1\n")
        late = survey.release(tacit.count(), epsilon=1, key="again")
        assert late.value > 400
        assert not late.made_up
        assert late.certificate["data"]["made_up"] is False
        assert not survey.made_up


def test_rows_are_real_whatever_lies_there_after_the_read(tmp_path, monkeypatch):
    from tacit.sources.facts import marked_file as marked

    path = write(tmp_path / "t.parquet", [1] * 500)
    with tacit.Curator(path, protect=rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=4)) as survey:
        read = survey._read

        def early(*given):
            answers = read(*given)
            pq.write_table(marked(pa.table({"age": [1]})), path)
            return answers

        monkeypatch.setattr(survey, "_read", early)
        first = survey.release(tacit.count(), epsilon=1)
        assert first.value > 400
        assert first.certificate["data"]["made_up"] is False
        monkeypatch.undo()
        assert survey.release(tacit.count(), epsilon=1, key="again").made_up


def test_one_real_file_beside_one_with_the_mark_is_real(tmp_path):
    from tacit.sources.facts import is_made_up
    from tacit.sources.facts import marked_file as marked

    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pq.write_table(marked(pa.table({"age": [1]})), paths[0])
    write(paths[1], [1] * 500)
    for both in (tacit.files(paths[::-1]), tacit.files(paths)):
        assert not is_made_up(both)
        with tacit.Curator(both, protect=rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=4)) as survey:
            assert not survey.release(tacit.count(), epsilon=1).made_up
    pq.write_table(marked(pa.table({"age": [1] * 9})), paths[1])
    assert is_made_up(both)
    for data in (both, pq.read_table(paths[1])):
        with tacit.Curator(data, protect=rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=4)) as survey:
            assert survey.release(tacit.count(), epsilon=1).made_up


@pytest.mark.parametrize("when", ["before the charge", "after the charge"])
def test_a_link_that_leads_elsewhere_has_the_ledger_of_what_it_leads_to(tmp_path, monkeypatch, when):
    """One name, two tables: the people of the second are not paid for by the budget of the first."""
    first, second, name = (tmp_path / n / f"{n}.parquet" for n in ("first", "second", "name"))
    for path in (first, second, name):
        path.parent.mkdir()
    write(first, [1] * 10)
    write(second, [1] * 5000)
    name.symlink_to(first)
    budget = tacit.Pure(epsilon=4)

    def asked(path):
        return tacit.Curator(path, protect=rows(), schema=SCHEMA, budget=budget, ledger=BESIDE)

    def lead():
        name.unlink()
        name.symlink_to(second)

    with asked(second) as other, asked(name) as survey:
        other.release(tacit.count(), epsilon=1)
        assert survey.release(tacit.count(), epsilon=1).value < 100
        if when == "before the charge":
            lead()
            with pytest.raises(LedgerError):
                survey.release(tacit.count(), epsilon=1, key="again")
            assert survey.standing[0].bound.epsilon == 1
        else:
            read = survey._read

            def late(*given):
                lead()
                return read(*given)

            monkeypatch.setattr(survey, "_read", late)
            with pytest.raises(ReadFailed):
                survey.release(tacit.count(), epsilon=1, key="again")


@pytest.mark.parametrize("when", ["before the mark", "after the mark"])
def test_a_look_leaves_its_mark_in_the_ledger_of_the_people_who_are_seen(tmp_path, monkeypatch, when):
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    write(one, [1] * 10)
    budget = tacit.Pure(epsilon=4)
    parts = files(tmp_path / "*.parquet", pattern=True)
    with tacit.Curator(parts, protect=rows(), schema=SCHEMA, budget=budget, ledger=BESIDE) as survey:
        survey.release(tacit.count(), epsilon=1)
        tacit.inspect(survey)

        def comes() -> None:
            """Another file that matches, which has a ledger of its own."""
            write(two, [7] * 10)
            with tacit.Curator(
                two, protect=rows(), schema=SCHEMA, budget=budget, ledger=BESIDE, another_ledger=True
            ) as other:
                other.release(tacit.count(), epsilon=1)

        if when == "before the mark":
            comes()
            with pytest.raises(LedgerError):
                tacit.inspect(survey)
        else:
            seen = looking.column_seen
            monkeypatch.setattr(looking, "column_seen", lambda *given: (comes(), seen(*given))[1])
            with pytest.raises(ReadFailed):
                tacit.inspect(survey)


def test_a_public_table_that_gets_a_ledger_is_public_no_more(tmp_path):
    visits = write(tmp_path / "visits.parquet", [1, 2], town=["a", "b"])
    towns = tmp_path / "towns.parquet"
    pq.write_table(pa.table({"town": ["a", "b"], "price": [1, 2]}), towns)
    schema = {"age": integer(0, 99), "price": integer(0, 9)}
    with tacit.Curator(
        join(visits, towns, on="town", public=True),
        protect=rows(),
        schema=schema,
        budget=tacit.Pure(epsilon=4),
    ) as survey:
        survey.release(tacit.count(), epsilon=1)
        with tacit.Curator(
            towns,
            protect=rows(),
            schema={"price": integer(0, 9)},
            budget=tacit.Pure(epsilon=1),
            ledger=BESIDE,
        ) as people_too:
            people_too.release(tacit.count(), epsilon=1)
        with pytest.raises(BadData, match="has a ledger"):
            survey.release(tacit.count(), epsilon=1, key="again")
        assert survey.standing[0].bound.epsilon == 1


# --- one state, whole -------------------------------------------------------------------------------------------


def test_types_may_change_between_two_reads(tmp_path):
    """One more person whose value is missing makes floats of whole numbers: no reason to refuse, or to miscount."""
    path = write(tmp_path / "t.parquet", [30, 40])
    with opened(path) as table:
        assert counted(table, ask.sum("age")) == 70
        write(path, [30.0, 40.0, None])
        assert counted(table, ask.sum("age")) == 70
        write(path, ["30", "40", "abc", "5"])
        assert counted(table, ask.sum("age")) == 75


LONG = 2**53 + 1
COLUMNS = {
    "whole": pa.array([1, LONG, 30], pa.int64()), "short": pa.array([1, 2, 30], pa.int16()),
    "float": pa.array([1.0, 30.5, None], pa.float64()), "none": pa.nulls(3), "text": pa.array(["1", "30.5", "abc"]),
    "decimal": pa.array([1, 30], pa.decimal128(9, 2)), "words": pa.array(["1", "2"]).dictionary_encode(),
    "flag": pa.array([True, False]), "blob": pa.array([b"1", b"2"]),
}  # fmt: skip


def read_as_declared(data, schema, engine=None):
    with open_table(data, schema=schema, unit=rows(), engine=engine) as table:
        asked = [ask.sum("x"), ask.count(by="k"), ask.count()]
        found = ask.read(table, [a.on(table.schema, table.unit) for a in asked])
    return [np.ravel(next(iter(f.values()))).tolist() for f in found]


MIXED = {"x": integer(0, 40), "k": category(["1", "2", "30", str(LONG)])}


def test_files_may_store_a_column_in_different_types(tmp_path):
    """Of two files each is what it is alone, whatever the other one stores: no row decides for those of others."""
    alone = {}
    for name, column in COLUMNS.items():
        one = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"x": column, "k": column}), one)
        if name not in ("blob", "flag"):
            alone[name] = read_as_declared(one, MIXED)
    assert alone["whole"][1] == [1, 0, 1, 1]
    firm = ("text", "float", "whole")
    for name in COLUMNS:
        for other in COLUMNS:
            if name != other and (name in firm or other in firm):
                both = files([tmp_path / f"{n}.parquet" for n in (name, other)])
                found = read_as_declared(both, MIXED)
                if {name, other} <= alone.keys():
                    wanted = [np.add(a, b).tolist() for a, b in zip(alone[name], alone[other], strict=True)]
                    assert found == wanted, (name, other)
                assert found[2] == [len(COLUMNS[name]) + len(COLUMNS[other])]


def test_people_in_files_of_different_types_keep_their_rows(tmp_path):
    """A row without a person, or ids written as text, in the second file: everybody keeps the rows of before."""
    key, unit = b"0123456789abcdef-secret", people("who", at_most=2)
    draw = np.random.default_rng(1)
    frames = [
        pd.DataFrame({c: draw.integers(0, n, 600) for c, n in (("who", 100), ("x", 40), ("k", 3))})
        for _ in "ab"
    ]
    one = pd.DataFrame({"who": [np.nan], "x": [2.5], "k": [np.nan]})
    found = []
    for second in (frames[1], pd.concat([frames[1], one]), frames[1].astype(str)):
        frames[0].to_parquet(tmp_path / "a.parquet")
        second.to_parquet(tmp_path / "b.parquet")
        data = files([tmp_path / "a.parquet", tmp_path / "b.parquet"])
        with opened(data, {"x": integer(0, 40), "k": category(["0", "1", "2"])}, unit) as table:
            asked = [ask.sum("x"), ask.count(by="k")]
            read = ask.read(table, [a.on(table.schema, unit) for a in asked], key=key)
        found.append([np.ravel(next(iter(f.values()))).tolist() for f in read])
    assert found[0] == found[1] == found[2]


def test_days_in_different_types_are_the_same_days(tmp_path):
    import datetime

    noon = datetime.datetime(2020, 1, 31, 23, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    forms = [
        pa.array([datetime.date(2020, 1, 31)]), pa.array(["2020-01-31"]), pa.array([noon], pa.timestamp("us", "UTC")),
        pa.array([noon.replace(tzinfo=None)], pa.timestamp("ns")), pa.array([noon], pa.timestamp("ms", "Asia/Tokyo")),
        pa.array([2**40], pa.timestamp("s")),
    ]  # fmt: skip
    for i, form in enumerate(forms):
        pq.write_table(pa.table({"d": form}), tmp_path / f"{i}.parquet")
    data = files([tmp_path / f"{i}.parquet" for i in range(len(forms))])
    with open_table(
        data, schema={"d": date("2020-01-31", "2020-02-01", outside="missing")}, unit=rows()
    ) as table:
        (found,) = ask.read(table, [ask.histogram("d", 2).on(table.schema, rows())])
    assert np.ravel(next(iter(found.values()))).tolist() == [5, 0]


def test_statistics_files_may_store_a_column_in_different_types(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    columns = {"whole": [1, 2, 30], "float": [1.0, 30.5, np.nan], "text": ["1", "30.5", "abc"]}
    alone = {}
    for name, values in columns.items():
        pyreadstat.write_dta(pd.DataFrame({"x": values, "k": values}), str(tmp_path / f"{name}.dta"))
        alone[name] = read_as_declared(tmp_path / f"{name}.dta", MIXED)
    for name, other in (("whole", "float"), ("whole", "text"), ("float", "text")):
        found = read_as_declared(files([tmp_path / f"{n}.dta" for n in (name, other)]), MIXED)
        assert found == [np.add(a, b).tolist() for a, b in zip(alone[name], alone[other], strict=True)]


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    path = write(tmp_path / "t.parquet", [1] * 5)
    with opened(path) as table:
        calls = []

        def both():
            calls.append(counted(table))
            if len(calls) == 1:
                write(tmp_path / "new.parquet", [1] * 8)
                os.replace(tmp_path / "new.parquet", path)
            return calls[-1], counted(table)

        assert table.together(both) == (8, 8)
        assert calls == [5, 8]


def test_times_that_were_set_back_hide_no_change(tmp_path):
    """The same inode, size and time of the last change: rows that are kept of people are still not those of before."""
    key, unit = b"0123456789abcdef-secret", people("who", at_most=1)

    def total(table):
        (found,) = ask.read(table, [ask.sum("age").on(table.schema, unit)], key=key)
        return int(np.ravel(next(iter(found.values())))[0])

    path = write(tmp_path / "t.parquet", [30, 40], who=[1, 2])
    before, old = path.stat(), path.read_bytes()
    with opened(path, unit=unit) as table:
        assert total(table) == 70
        new = write(tmp_path / "new.parquet", [31, 40], who=[1, 2]).read_bytes()
        assert len(new) == len(old)
        with path.open("r+b") as file:
            file.write(new)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert total(table) == 71
        facts = table.facts.files[0]
        assert (facts.inode, facts.size, facts.modified_ns) == (before.st_ino, len(old), before.st_mtime_ns)


def test_a_file_that_never_rests_is_given_up(tmp_path):
    path = write(tmp_path / "t.parquet", [1] * 5)
    with opened(path) as table:
        tries = []

        def restless():
            tries.append(1)
            write(path, [1] * (5 + len(tries)))
            return 0

        with pytest.raises(ReadFailed):
            table.read(restless)
        assert len(tries) == tables.TRIES


@pytest.mark.parametrize("ending", ["csv", "sqlite", "xlsx", "dta"])
def test_a_copy_that_was_made_while_somebody_wrote_is_made_again(tmp_path, ending, monkeypatch):
    pytest.importorskip("openpyxl")
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / f"t.{ending}"

    def put(n, name="age"):
        frame = pd.DataFrame({"x": [1.0] * n, name: [1.0] * n})
        if ending == "csv":
            frame.to_csv(path, index=False)
        elif ending == "xlsx":
            frame.to_excel(path, index=False)
        elif ending == "dta":
            pyreadstat.write_dta(frame, str(path))
        else:
            path.unlink(missing_ok=True)
            with sqlite3.connect(path) as base:
                frame.to_sql("t", base, index=False)
            base.close()

    put(5)
    with opened(files(path, view="t") if ending == "sqlite" else path) as table:
        load = table._opened.load

        def slow():
            load()
            put(9)  # while it is loaded

        object.__setattr__(table._opened, "load", slow)
        assert counted(table) == 9
        put(11)
        assert counted(table) == 9  # a copy is a copy


def test_columns_that_changed_places_are_not_taken_for_each_other(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age,x\n30,1\n40,1\n")
    with opened(path) as table:
        path.write_text("x,age\n1,30\n1,40\n")
        assert counted(table, ask.sum("age")) == 70


def test_a_view_that_was_made_anew_is_read_in_its_new_types():
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE t AS SELECT 30 AS age UNION ALL SELECT 40")
    backend.raw_sql("CREATE VIEW v AS SELECT age FROM t")
    text = "SELECT CAST(age AS VARCHAR) || '.0' AS age FROM t"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of DuckDB, about a call of Ibis
        asked = backend.sql("SELECT * FROM v")
    with opened(backend.table("v")) as table, opened(asked) as query:
        assert [counted(one, ask.sum("age")) for one in (table, query)] == [70, 70]
        backend.raw_sql(f"CREATE OR REPLACE VIEW v AS {text}")
        assert [counted(one, ask.sum("age")) for one in (table, query)] == [70, 70]
        backend.raw_sql("DROP VIEW v")
        backend.raw_sql("CREATE VIEW v AS SELECT 'x' AS other")
        with pytest.raises(ReadFailed):
            counted(table)


def test_a_table_of_others_is_read_in_one_transaction(tmp_path):
    path = str(tmp_path / "base.duckdb")
    backend = ibis.duckdb.connect(path)
    backend.raw_sql("CREATE TABLE t AS SELECT 30 AS age UNION ALL SELECT 40")
    writer = backend.con.cursor()
    with opened(backend.table("t")) as table:

        def both():
            before = counted(table)
            writer.execute("INSERT INTO t VALUES (50)")
            return before, counted(table)

        assert table.together(both) == (2, 2)
        assert counted(table) == 3


def test_a_frame_that_gets_another_type_before_it_is_copied():
    frame = pd.DataFrame({"age": [30, 40]})
    with opened(frame) as table:
        frame["age"] = [30.0, np.nan]
        assert counted(table, ask.sum("age")) == 30


# --- how many rows there are ------------------------------------------------------------------------------------


def transport(path, texts, version=5):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"a": texts, "b": texts})
    pyreadstat.write_xport(frame, str(path), table_name="T", file_format_version=version)
    return path


WORDS = {"a": category(["x"], missing="x")}


def test_a_transport_file_has_no_public_number_of_rows(tmp_path):
    """A respondent who answered nothing, in the last row, is padding to the reader: 100 rows would be 99."""
    path = transport(tmp_path / "t.xpt", ["x"] * 100)
    for unit in (REPLACED, group_of(REPLACED, size=2)):
        with pytest.raises(BadData, match="how many rows"):
            opened(path, WORDS, unit)
    with tacit.Curator(path, protect=REPLACED, schema=WORDS, budget=tacit.Pure(epsilon=1)) as survey:
        with pytest.raises(BadData, match="how many rows"):
            survey.release(tacit.count(), epsilon=1)
        assert survey.spent == tacit.Pure(epsilon=0)
    with opened(transport(tmp_path / "8.xpt", [*["x"] * 99, ""], 8), WORDS, REPLACED) as table:
        assert counted(table) == 100  # this version says how many


@pytest.mark.parametrize("chunk", [200_000, 3])
def test_a_blank_row_of_a_transport_file_counts_nowhere(tmp_path, monkeypatch, chunk):
    """One row moves the count by one, wherever blank rows stand: none of them counts, padding or not."""
    from tacit.sources.opening import statfiles

    monkeypatch.setattr(statfiles, "CHUNK", chunk)
    blanks = ["x", "", "", "x", "", "", "", "x", "", ""]
    found = []
    for at in (None, *range(len(blanks))):
        for word in ("x", ""):
            texts = list(blanks)
            if at is not None:
                texts[at] = word
            with opened(transport(tmp_path / "t.xpt", texts), WORDS) as table:
                found.append((counted(table), texts.count("x")))
    assert all(count == true for count, true in found)


def test_a_row_is_blank_in_all_its_columns(tmp_path):
    """Who answered something that nobody declared is a record."""
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"a": ["x", "", ""], "b": ["x", "x", ""]})
    pyreadstat.write_xport(frame, str(tmp_path / "t.xpt"), table_name="T", file_format_version=5)
    with opened(tmp_path / "t.xpt", WORDS) as table:
        assert counted(table) == 2


def test_blank_numbers_are_blank(tmp_path):
    """A row of blanks reads as tiny numbers where numbers are stored: it counts nowhere either."""
    from tacit.sources.opening.statfiles import BLANK

    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / "t.xpt"
    pyreadstat.write_xport(
        pd.DataFrame({"a": ["x1", "x2", "x3"], "n": [1.0, 2.0, 3.0]}),
        str(path),
        table_name="T",
        file_format_version=5,
    )
    raw = path.read_bytes()
    first, second = raw.index(b"x2"), raw.index(b"x3")
    path.write_bytes(raw[:first] + b" " * (second - first) + raw[second:])
    data, _ = pyreadstat.read_xport(str(path), output_format="dict")
    assert data["n"][1] in BLANK
    with opened(path, {"n": integer(0, 9)}) as table:
        assert counted(table) == 2


def test_a_sheet_has_no_public_number_of_rows(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    pd.DataFrame({"age": [1, 2, None], "x": [1, 2, None]}).to_excel(path, index=False)
    with pytest.raises(BadData, match="how many rows"):
        opened(path, unit=REPLACED)
    with opened(path) as table:
        assert counted(table) == 2


def test_the_number_of_rows_of_a_single_column_of_text_is_public_on_a_condition(tmp_path):
    """Of "1", "2", "" there are three records to one program and two to another, where nothing ends the last line."""
    from tacit.sources.opening.textfiles import ENDED

    path = tmp_path / "t.csv"
    counts = []
    for last in ("3\n", "\n", "3", ""):
        path.write_text("age\n1\n2\n" + last)
        with opened(path, unit=REPLACED) as table:
            counts.append(counted(table))
            assert table.conditions == (ENDED,)
        with opened(path) as table:
            assert table.conditions == ()
    assert counts == [3, 3, 3, 2]
    for last in ("3,4", ",", '"",""', "x", "1,2,3"):
        path.write_text("age,x\n1,1\n2,1\n" + last)
        with opened(path, unit=REPLACED) as table:
            assert counted(table) == 3
            assert table.conditions == ()
        path.write_text("age,x\n1,1\n2,1\n" + last + "\n")
        with opened(path, unit=REPLACED) as table:
            assert counted(table) == 3


@pytest.mark.parametrize(
    "form", ["parquet", "dta", "sav", "zsav", "sqlite", "pandas", "polars", "arrow", "ibis"]
)
def test_a_row_without_a_value_is_a_row(tmp_path, form):
    """Of every other reader: the last row replaced by one that misses everything is as many rows as before."""
    import polars as pl

    pyreadstat = pytest.importorskip("pyreadstat")
    counts = []
    for last in (4.0, None):
        frame = pd.DataFrame({"age": [1.0, 2.0, last], "t": ["x", "y", "z" if last else ""]})
        path = tmp_path / f"t.{form}"
        path.unlink(missing_ok=True)
        data = path
        if form == "parquet":
            frame.to_parquet(path)
        elif form == "dta":
            pyreadstat.write_dta(frame, str(path))
        elif form in ("sav", "zsav"):
            pyreadstat.write_sav(frame, str(path), compress=form == "zsav")
        elif form == "sqlite":
            with sqlite3.connect(path) as base:
                frame.to_sql("t", base, index=False)
            base.close()
            data = files(path, view="t")
        else:
            data = {"pandas": lambda f: f, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas,
                    "ibis": lambda f: ibis.memtable(pa.Table.from_pandas(f))}[form](frame)  # fmt: skip
        with opened(data, unit=REPLACED) as table:
            counts.append(counted(table))
    assert counts == [3, 3]


def test_people_who_are_replaced_need_no_number_of_rows(tmp_path):
    path = transport(tmp_path / "t.xpt", ["x"] * 4)
    with opened(path, WORDS, people("b", at_most=2, neighbours="replace-one")) as table:
        assert table.person == "b"


def test_a_header_behind_the_limit_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    names = [f"c{i}" for i in range(HEADER // 6)]
    path.write_text(",".join(["age", *names]) + "\n" + ",".join(["1"] * (len(names) + 1)) + "\n")
    with pytest.raises(BadData, match="it has no header"):
        opened(path)


@needs_spark
@pytest.mark.slow
def test_spark_reads_the_state_whose_facts_hold(tmp_path, towns):
    """Repeated keys, other types, a link, another file of a pattern: the same as in DuckDB."""
    data, schema = towns
    with open_table(data, schema=schema, unit=rows(), engine="spark") as table:
        assert counted(table) == 6
        multiplied(tmp_path)
        with pytest.raises(ReadFailed):
            counted(table)
        pd.DataFrame({"town": ["a", "b", "c"], "size": ["s"] * 3}).to_csv(tmp_path / "towns.csv", index=False)
        assert counted(table, ask.count(where="size = 's'")) == 7
    one, two = (write(tmp_path / f"m{n}.parquet", [30]) for n in "12")
    with open_table(
        files(tmp_path / "m*.parquet", pattern=True), schema=SCHEMA, unit=rows(), engine="spark"
    ) as table:
        assert counted(table, ask.sum("age")) == 60
        write(two, [2.0, None])
        write(tmp_path / "m3.parquet", ["5", "x"])
        assert counted(table, ask.sum("age")) == 37
        assert counted(table) == 5
        two.unlink()
        two.symlink_to(one)
        with pytest.raises(ReadFailed):
            counted(table)
