"""The table, the plans and the hand-written SQL of `benchmarks/year.py`, all of which lie fixed before it is run.

A month is a partition of four Parquet files: visits of invented people, about five each, some with many more. A plan
has a theme (a filter) and up to 42 releases about it: six measures in seven groupings. The SQL is what somebody who
knows DuckDB writes for the same numbers without privacy: of each person at most `AT_MOST` rows of the month, chosen by
a hash, kept in a narrow table; then for each plan one statement for the cells and one for the people, with the filter
in front.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tacit

PARTS = 4
AT_MOST = 4
PLANS, RELEASES = 20, 42
REGIONS = [f"region {i:02d}" for i in range(20)]
SECTORS = [f"sector {i:02d}" for i in range(12)]
EDGES = list(range(0, 101, 10))
ANALYSTS = ("ann", "bob", "cyd")
SCHEMA: dict[str, Any] = {
    "region": tacit.category(REGIONS), "sector": tacit.category(SECTORS), "age": tacit.integer(0, 99),
    "wage": tacit.number(0, 100_000), "hours": tacit.number(0, 80), "insured": tacit.flag(),
}  # fmt: skip
THEMES = [
    "age >= 65", "age < 25", "insured", "not insured", "hours > 40", "hours < 20", "wage > 60000", "wage < 8000",
    "sector in ('sector 00', 'sector 01', 'sector 02')", "sector in ('sector 09', 'sector 10', 'sector 11')",
    "region in ('region 00', 'region 07', 'region 14')", "region in ('region 03', 'region 19')",
    "insured and age >= 50", "not insured and hours > 40", "age between 25 and 49", "age between 50 and 64",
    "wage > 30000 and hours <= 40", "wage < 20000 and hours > 40", "insured and wage > 30000",
    "hours between 20 and 40",
]  # fmt: skip
"""One for each plan of a month: comparisons that mean the same here and in SQL."""


def month_name(month: int) -> str:
    return f"2026-{month:02d}"


def files(folder: Path, month: int) -> list[Path]:
    """The partition of a month."""
    return [folder / f"month={month_name(month)}" / f"part-{i}.parquet" for i in range(PARTS)]


def make(folder: Path, rows: int, months: int, *, spread: int = 5) -> None:
    """All partitions; `spread` is how many rows a person has on average in a month."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "2GB", "preserve_insertion_order": False})
    each = rows // months // PARTS
    persons = max(rows // months // spread, 1)
    for month in range(1, months + 1):
        for part, path in enumerate(files(folder, month)):
            path.parent.mkdir(parents=True, exist_ok=True)
            first = ((month - 1) * PARTS + part) * each
            connection.execute(f"""
                copy (select cast(hash(i) % {persons} as bigint) as person,
                             'region ' || lpad(cast(hash(i + 7000000000) % 20 as varchar), 2, '0') as region,
                             'sector ' || lpad(cast(hash(i + 8000000000) % 12 as varchar), 2, '0') as sector,
                             cast(hash(i * 13 + 1) % 100 as int) as age,
                             exp(8.6 + 1.8 * (hash(i * 3 + 1) % 1000000 + hash(i * 5 + 2) % 1000000) / 1e6) as wage,
                             cast(hash(i * 7 + 5) % 90 as double) as hours,
                             hash(i * 11 + 3) % 3 > 0 as insured
                      from range({first}, {first + each}) as r(i)) to '{path}' (format parquet)""")


# The plans.

GROUPINGS: dict[str, Any] = {
    "all": None, "region": "region", "sector": "sector", "age": tacit.bins("age", EDGES), "area": ["region", "sector"],
    "cover": ["region", "insured"], "ages": ["sector", tacit.bins("age", EDGES)],
}  # fmt: skip


def plan(theme: str, releases: int = RELEASES) -> list[Any]:
    """The releases of a plan; of fewer than all of them, the first."""
    out = []
    for measure in ("rows", "wages", "mean wage", "mean hours", "full time", "last"):
        for grouping, by in GROUPINGS.items():
            with_by: dict[str, Any] = {"by": by, "where": theme}
            asked = {
                "rows": lambda w=with_by: tacit.count(**w),
                "wages": lambda w=with_by: tacit.sum("wage", **w),
                "mean wage": lambda w=with_by: tacit.mean("wage", **w),
                "mean hours": lambda w=with_by: tacit.mean("hours", **w),
                "full time": lambda w=with_by: tacit.proportion("hours > 35", **w),
            }
            if measure != "last":
                made = asked[measure]()
            elif grouping in ("all", "region"):
                made = tacit.count(of="people", **with_by)
            else:
                made = tacit.count(by=by, where=f"({theme}) and wage > 25000")
            name = "people" if measure == "last" and grouping in ("all", "region") else measure
            name = "high wages" if name == "last" else name
            out.append(tacit.query(made, name=f"{name} by {grouping}"))
    return out[:releases]


# The hand-written SQL. Frozen: what follows was not changed after it was first measured.

BOUND = """
create or replace temp table bounded as
select person, region::{regions} as region, sector::{sectors} as sector, age::utinyint as age,
       (age // 10)::utinyint as band, wage, hours, insured
from (select person, region, sector, age, least(greatest(wage, 0), 100000) as wage,
             least(greatest(hours, 0), 80) as hours, insured,
             row_number() over (partition by person order by hash(person, region, sector, age, wage, hours, insured, 7))
             as place
      from read_parquet({files}))
where place <= {at_most}"""
CELLS = """
select region, sector, band, insured, count(*), sum(wage), avg(wage), avg(hours),
       avg((hours > 35)::int), count(*) filter (where wage > 25000)
from bounded where {theme}
group by grouping sets ((), (region), (sector), (band), (region, sector), (region, insured), (sector, band))"""
PEOPLE = "select region, count(distinct person) from bounded where {theme} group by region"
EVERYBODY = "select count(distinct person) from bounded where {theme}"


def by_hand(
    folder: Path, months: int, plans: int, *, memory: str, spill: Path, at_most: int = AT_MOST
) -> list[list[list[Any]]]:
    """The year without privacy: the results of all statements, plan by plan."""
    import duckdb

    connection = duckdb.connect(
        config={"memory_limit": memory, "preserve_insertion_order": False, "temp_directory": str(spill)}
    )
    # DuckDB's own rewriting of the rank filter makes it many times slower.
    connection.execute("set disabled_optimizers = 'top_n_window_elimination'")
    out = []
    for month in range(1, months + 1):
        kinds = {"regions": f"enum{tuple(REGIONS)}", "sectors": f"enum{tuple(SECTORS)}"}
        connection.execute(
            BOUND.format(**kinds, files=[str(p) for p in files(folder, month)], at_most=AT_MOST)
        )
        for theme in THEMES[:plans]:
            found = [connection.execute(q.format(theme=theme)).fetchall() for q in (CELLS, PEOPLE, EVERYBODY)]
            out.append(found)
    return out


CELL_COLUMNS = {"rows": 4, "wages": 5, "mean wage": 6, "mean hours": 7, "full time": 8, "high wages": 9}


def cells_by_hand(found: list[list[Any]], name: str) -> dict[tuple[str, ...], float]:
    """The numbers of one release among the results of a plan's statements, by the keys that its file has."""
    measure, _, grouping = name.partition(" by ")
    cells, people, everybody = found
    if measure == "people":
        return {(): everybody[0][0]} if grouping == "all" else {(r[0],): r[1] for r in people}
    keys = {"all": "", "region": "r", "sector": "s", "age": "a", "area": "rs", "cover": "ri", "ages": "sa"}[
        grouping
    ]
    out = {}
    for row in cells:
        held = {k: v for k, v in zip("rsai", row[:4], strict=True) if v is not None}
        if sorted(held) == sorted(keys):
            ages = {"a": f"{EDGES[held['a']]} to {EDGES[held['a'] + 1]}"} if "a" in held else {}
            out[tuple(str({**held, **ages}[k]) for k in keys)] = row[CELL_COLUMNS[measure]]
    return out
