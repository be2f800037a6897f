"""Joins: with a public table that has each key once, or with rows of the same person; anything else is refused."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
import tacit.statistics as ask
from support.spark import needs_spark
from tacit.errors import BadData, InvalidParameter, UnknownColumn
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, files, integer, join, number, open_table

KEY = b"0123456789abcdef-secret"
PUBLIC = {"x": integer(0, 9), "region": category(["north", "south"]), "rent": number(0, 100, spacing=0.5)}
VISITS = "who,town,x\na,1,1\na,2,2\nb,1,4\nc,9,8\nc,,3\n"
TOWNS = "town;region;rent\n1;north;10,5\n2;south;20\n3;south;30\n;north;1\n"


def write(folder, name, text):
    folder.mkdir(exist_ok=True)
    if name.endswith(".parquet"):
        lines = [line.split(",") for line in text.splitlines()]
        columns = {n: [row[i] or None for row in lines[1:]] for i, n in enumerate(lines[0])}
        pq.write_table(pa.table(columns), folder / name)
    else:
        (folder / name).write_text(text)
    return folder / name


def integers(data, asked, schema=PUBLIC, unit=None, **options):
    unit, schema = unit or rows(), Schema(schema)
    with open_table(data, schema=schema, unit=unit, **options) as table:
        found = ask.read(table, [a.on(schema, unit) for a in asked], key=KEY)
    return [np.ravel(v).tolist() for one in found for v in one.values()]


ASKED = [ask.count(), ask.count(by="region"), ask.sum("x", by="region"), ask.sum("rent")]


@pytest.mark.parametrize("name", ["visits.csv", "visits.parquet"])
def test_each_row_stays_one_row_and_gets_the_values_of_its_key(tmp_path, name):
    visits = write(tmp_path, name, VISITS)
    towns = files(write(tmp_path, "towns.csv", TOWNS), decimal=",")
    found = integers(join(visits, towns, on="town", public=True), ASKED)
    assert found[0] == [5]
    assert found[1] == [2, 1]
    assert found[2][:2] == [5, 2]
    assert [82] in found  # 10.5 + 20 + 10.5, in steps of a half
    frame = pa.table(
        {"town": [1.0, 2.0, None], "region": ["north", "south", "north"], "rent": [10.5, 20.0, 1.0]}
    )
    assert integers(join(visits, frame, on="town", public=True), ASKED)[:3] == found[:3]


def test_a_join_that_multiplies_is_refused_before_anything_is_charged(tmp_path):
    visits = write(tmp_path, "visits.csv", VISITS)
    twice = write(tmp_path, "towns.csv", "town,region\n1,north\n1,south\n")
    survey = tacit.Curator(
        join(visits, twice, on="town", public=True), protect=rows(), schema={"region": category(["north", "south"])},
        budget=tacit.Pure(epsilon=1), ledger=tmp_path / "l.ledger",
    )  # fmt: skip
    with pytest.raises(BadData, match="several rows with one key"):
        survey.release(tacit.count(by="region"), epsilon=1)
    assert not (tmp_path / "l.ledger").exists()
    # Texts are compared as they are; numbers by what they are.
    mixed = pa.table({"town": ["1", "1.0"], "region": ["north", "south"]})
    schema = {"region": category(["north", "south"])}
    assert integers(join(visits, mixed, on="town", public=True), [ask.count()], schema)[0] == [5]
    for one_key in ([1.0, 1.0], [1, 1], ["1", "1"]):
        mixed = pa.table({"town": one_key, "region": ["north", "south"]})
        with pytest.raises(BadData, match="multiply"):
            open_table(join(visits, mixed, on="town", public=True), schema=schema, unit=rows())


@pytest.mark.parametrize(
    ("unit", "on"), [(rows(), "town"), (people("who", at_most=2), "town"), (rows(), ["who", "town"])]
)
def test_a_private_table_is_joined_by_the_person_alone(tmp_path, unit, on):
    visits = write(tmp_path, "visits.csv", VISITS)
    other = write(tmp_path, "other.csv", "who,town,region\na,1,north\n")
    with pytest.raises(BadData, match="could be joined to many people"):
        open_table(join(visits, other, on=on), schema={"region": category(["north"])}, unit=unit)


def test_one_person_moves_a_private_join_by_no_more_than_a_persons_rows(tmp_path):
    """Neighbours from the definition: a person's rows in both tables, as many as that person likes."""
    chance = random.Random(5)
    unit, schema = people("who", at_most=2), Schema({"x": integer(0, 9), "y": integer(0, 9)})
    asked = [ask.count(), ask.sum("y"), ask.count(of="people")]
    base = [(f"p{i % 5}", chance.randrange(10)) for i in range(12)]
    ids = [(f"p{i % 6}", chance.randrange(10)) for i in range(9)]
    seen = []
    for mine, theirs in itertools.product((0, 1, 3, 9), (0, 1, 7)):
        left = [*base, *(("me", 9) for _ in range(mine))]
        right = [*ids, *(("me", 9) for _ in range(theirs))]
        visits = write(tmp_path, "v.csv", "who,x\n" + "".join(f"{w},{x}\n" for w, x in left))
        people_ = write(tmp_path, "p.csv", "who,y\n" + "".join(f"{w},{y}\n" for w, y in right))
        seen.append(integers(join(visits, people_, on="who"), asked, schema, unit))
    for a, b in itertools.combinations(seen, 2):
        assert abs(a[0][0] - b[0][0]) <= 2
        assert abs(a[-1][0] - b[-1][0]) <= 1
        assert (
            max(abs(p - q) for one, two in zip(a, b, strict=True) for p, q in zip(one, two, strict=True))
            <= 18
        )
    assert len({tuple(s[0]) for s in seen}) > 1


def test_odd_keys_match_nothing_and_stop_nothing(tmp_path):
    text = "town,x\n1,1\n\\xff,2\n" + "1.0,3\nNaN,4\n1e400,5\n"
    visits = write(tmp_path, "visits.csv", text)
    visits.write_bytes(text.encode().replace(b"\\xff", b"\xff"))
    towns = write(tmp_path, "towns.csv", TOWNS.replace(",5", ""))
    assert integers(join(visits, towns, on="town", public=True), [ask.count(by="region")])[0] == [1, 0]


def test_names_must_be_clear(tmp_path):
    visits = write(tmp_path, "visits.csv", VISITS)
    both = write(tmp_path, "both.csv", "town,x\n1,2\n")
    with pytest.raises(BadData, match="so has the table"):
        open_table(join(visits, both, on="town", public=True), schema={"x": integer(0, 9)}, unit=rows())
    with pytest.raises(UnknownColumn):
        open_table(join(visits, both, on="city", public=True), schema={"who": category()}, unit=rows())
    with pytest.raises(UnknownColumn):
        open_table(join(visits, both, on="town", public=True), schema={"wage": integer(0, 9)}, unit=rows())
    for wrong in ({"on": []}, {"on": "town", "public": 1}, {"on": ["a", "a"]}, {"on": [3]}):
        with pytest.raises(InvalidParameter):
            join(visits, both, **wrong)
    with pytest.raises(InvalidParameter, match="by itself"):
        join(visits, join(visits, both, on="town"), on="town")


def test_a_joined_table_has_the_ledger_of_its_people(tmp_path):
    visits = write(tmp_path, "visits.csv", VISITS)
    other = write(tmp_path, "persons.csv", "who,y\na,1\n")
    unit, budget = people("who", at_most=2), tacit.Pure(epsilon=2)
    from tacit.curator.ledgers import BESIDE
    from tacit.errors import BudgetExceeded, LedgerError

    def curator(data, schema):
        return tacit.Curator(data, protect=unit, schema=schema, budget=budget, ledger=BESIDE)

    with curator(join(visits, other, on="who"), {"y": integer(0, 9)}) as both:
        both.release(tacit.sum("y"), epsilon=1.5)
    assert (tmp_path / "visits.ledger").exists()
    for data, schema in ((visits, {"x": integer(0, 9)}), (other, {"y": integer(0, 9)})):
        with curator(data, schema) as alone, pytest.raises((BudgetExceeded, LedgerError)):
            alone.release(tacit.count(), epsilon=1)


def test_the_declarations_are_in_the_certificate_and_public_is_believed(tmp_path):
    visits = write(tmp_path, "visits.csv", VISITS)
    towns = files(write(tmp_path, "towns.csv", TOWNS), decimal=",")
    with tacit.Curator(
        join(visits, towns, on="town", public=True),
        protect=rows(),
        schema=PUBLIC,
        budget=tacit.Pure(epsilon=9),
    ) as survey:
        said = survey.release(tacit.mean("rent"), epsilon=1).certificate["data"]
    reading = {"table": "towns.csv", "on": ["town"], "public": True, "reading": {"decimal": ","}}
    assert said["reading"] == {"joins": [reading]}
    assert any("towns.csv is public" in c for c in said["conditions"])


@pytest.mark.parametrize("name", ["visits.csv", "link.csv", "same.csv"])
def test_the_protected_table_is_not_public_under_any_name(tmp_path, name):
    """A public table is read before the charge: whether an id stands twice in the protected one is not told."""
    said = []
    for ids in ("a", "b"):
        folder = tmp_path / ids
        visits = write(folder, "visits.csv", f"who,x\na,1\n{ids},2\n")
        (folder / "link.csv").symlink_to(visits)
        (folder / "same.csv").hardlink_to(visits)
        for other in (
            folder / name,
            files([folder / name]),
            files(str(folder / f"{name[:3]}*.csv"), pattern=True),
        ):
            with pytest.raises(BadData, match="whose people are protected, and cannot be public") as error:
                integers(join(visits, other, on="who", public=True), [ask.count()], {"x": integer(0, 9)})
            said.append(str(error.value))
        assert not list(folder.glob("*.ledger*"))
    assert said[:3] == said[3:]


def test_a_table_with_a_ledger_is_not_public(tmp_path):
    visits = write(tmp_path, "visits.csv", VISITS)
    towns = write(tmp_path, "towns.csv", "town,region\n1,north\n2,south\n")
    budget, schema = tacit.Pure(epsilon=1), {"region": category(["north", "south"])}
    with tacit.Curator(
        towns, protect=rows(), schema=schema, budget=budget, ledger=tmp_path / "other.ledger"
    ) as one:
        one.release(tacit.count(), epsilon=0.5)
    with pytest.raises(BadData, match=r"towns.csv has a ledger, so it describes people and is not public"):
        tacit.Curator(
            join(visits, towns, on="town", public=True), protect=rows(), schema=schema, budget=budget
        )
    assert not (tmp_path / "visits.ledger").exists()


def test_two_sheets_of_a_workbook_are_two_tables(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "visits"
    for sheet, text in (
        (book.active, VISITS),
        (book.create_sheet("towns"), "town,region\n1,north\n2,south\n"),
    ):
        for line in text.splitlines():
            sheet.append(line.split(","))
    place = tmp_path / "all.xlsx"
    book.save(place)
    data = join(files(place, sheet="visits"), files(place, sheet="towns"), on="town", public=True)
    schema = {"region": category(["north", "south"])}
    with tacit.Curator(
        data, protect=rows(), schema=schema, budget=tacit.Pure(epsilon=4), ledger=tmp_path / "all.ledger"
    ) as one:
        one.release(tacit.count(by="region"), epsilon=1)
    with tacit.Curator(
        data, protect=rows(), schema=schema, budget=tacit.Pure(epsilon=4), ledger=tmp_path / "all.ledger"
    ) as one:
        one.release(tacit.count(by="region"), epsilon=2)


PLAN = """
data = { path = "visits.csv", decimal = "," }
join = [{ path = "towns.csv", on = "town", public = true }]
protect = { unit = "people", column = "who", at_most = 3 }
budget = { epsilon = 8 }
release = [{ kind = "mean", column = "cost", by = "region" }]
[schema]
hours = { kind = "number", low = 0, high = 24 }
rent = { kind = "number", low = 0, high = 100 }
region = { kind = "category", keys = ["north", "south"] }
cost = { kind = "number", low = 0, high = 1000, from = "hours * rent" }
"""


def test_a_plan_with_a_join_and_a_derived_column(tmp_path):
    """In ten lines: visits as R writes them, a public table of towns, a column that is computed of both."""
    assert len(PLAN.strip().splitlines()) == 10
    write(tmp_path, "visits.csv", '"";"who";"town";"hours"\n"1";"a";1;2,5\n"2";"b";2;NA\n"3";"b";2;4\n')
    write(tmp_path, "towns.csv", "town,region,rent\n1,north,10.5\n2,south,20\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    file = tacit.read_plan(tmp_path / "plan.toml")
    with file.curator() as curator:
        (release,) = curator.release(file.plan())
    assert set(release.certificate["schema"]) == {"hours", "rent", "region", "cost"}
    with open_table(file.data, schema=file.schema, unit=file.unit) as table:
        found = table.read(lambda: table.relation.to_pyarrow())["cost"].to_pylist()
    assert sorted(found, key=str) == [26.25, 80.0, None]


@needs_spark
@pytest.mark.slow
@pytest.mark.parametrize("name", ["visits.csv", "visits.parquet"])
def test_spark_joins_the_same(tmp_path, name):
    visits = write(tmp_path, name, VISITS)
    towns = files(write(tmp_path, "towns.csv", TOWNS), decimal=",")
    cost = tacit.derived("x * rent / 2", number(0, 500, spacing=0.25))
    schema = Schema({**PUBLIC, "cost": cost})
    asked = [*ASKED, ask.sum("cost", by="region")]
    data = join(visits, towns, on="town", public=True)
    assert integers(data, asked, schema, engine="spark") == integers(data, asked, schema)
    persons = write(tmp_path, "persons.csv", "who,y\na,1\nb,2\nb,3\n")
    data, unit, schema = join(visits, persons, on="who"), people("who", at_most=9), {"y": integer(0, 9)}
    asked = [ask.count(), ask.sum("y")]
    assert integers(data, asked, schema, unit, engine="spark") == integers(data, asked, schema, unit)
