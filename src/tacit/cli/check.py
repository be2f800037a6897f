"""`tacit check`: the exposure in a table that is about to be published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import InvalidParameter, UnknownName, WrongType, visible

if TYPE_CHECKING:
    from tacit.anonymity import Checked, Treated, Treatment

MOST_VALUES = 20
"""Values of a sensitive column that are looked at for skewness."""


def names_of(text: str) -> tuple[str, ...]:
    """Names separated by commas; a comma inside a name is doubled."""
    marked = text.replace(",,", "\0")
    return tuple(part.strip().replace("\0", ",") for part in marked.split(",") if part.strip())


def check(
    table: Path = typer.Argument(..., help="The table: a Parquet or CSV file."),
    quasi: str = typer.Option(..., "--quasi", help="Quasi-identifiers, with commas."),
    sensitive: str = typer.Option("", "--sensitive", help="Sensitive columns, with commas."),
    k: int = typer.Option(5, "--k", help="Classes below this size are at risk."),
    population: Path | None = typer.Option(
        None,
        "--population",
        help="A table of the population, for k-map and presence.",
    ),
    people: int = typer.Option(
        0, "--people", show_default=False, help="The size of the sampled population, for population uniques."
    ),
    distance: str = typer.Option(
        "", "--distance", help="For t-closeness: equal or ordered; by default ordered for numbers."
    ),
    hierarchy: Path | None = typer.Option(
        None, "--hierarchy", help="A hierarchy of the sensitive values (CSV)."
    ),
    engine: str = typer.Option("duckdb", "--engine", help="duckdb or spark."),
    out: Path | None = typer.Option(None, "--out", help="Write a page (HTML), marked not for publication."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Measure a table's exposure before you publish it.

    The numbers are exact, not for publication, and no guarantee.
    """
    from tacit.anonymity import check_table, read_hierarchy

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise InvalidParameter(parameter="--out", value=str(out), must="end in .html")
    checked = check_table(
        table,
        quasi=names_of(quasi),
        sensitive=names_of(sensitive),
        k=k,
        population=population,
        people=people or None,
        distance=distance or None,
        hierarchy=read_hierarchy(hierarchy) if hierarchy is not None else None,
        engine=engine,
    )
    attacks = attacks_on(table, checked, engine)
    if out is not None:
        from tacit.report.anonymity import write_check

        write_whole(out, lambda path: write_check(checked, path, attacks=attacks))
    if json:
        print_json({**checked.to_dict(), "attacks": attacks, "out": str(out) if out is not None else None})
        return
    say(checked)
    print("Attacks, by somebody who knows the quasi-identifiers of everybody:")
    for one in attacks:
        line = f"{one['attack']:<34}{one['exposed']}; {one['learned']}; guessing alone: {one['guessing']}"
        print(f"  {visible(line)}")
    if out is not None:
        print(f"Written, and not for publication: {visible(str(out))}")


def attacks_on(table: Path, checked: Checked, engine: str) -> list[dict[str, Any]]:
    """The findings of attacks that need the table only, as sentences."""
    from tacit import attacks
    from tacit.anonymity import open_microdata
    from tacit.curator.text import three

    columns = [s.column for s in checked.sensitive]
    with open_microdata(table, engine=engine) as micro:
        rows = micro.rows([*checked.quasi, *columns])
    found: list[tuple[str, Any, str]] = []
    linked = attacks.link(rows, rows, quasi=checked.quasi)
    found.append(("linkage", linked, "their rows"))
    for name in columns:
        alike = attacks.homogeneity(rows, quasi=checked.quasi, sensitive=name)
        found.append((f"homogeneity ({name})", alike, f"their {name}, for certain"))
        values = [v for v in rows.column(name).unique().to_pylist() if v is not None]
        if len(values) <= MOST_VALUES:
            moved = [attacks.skewness(rows, quasi=checked.quasi, sensitive=name, value=v) for v in values]
            if moved:
                worst = max(moved, key=lambda f: f.share)
                words = f"that {name} is {worst.details['value']}, at least twice as surely as before"
                found.append((f"skewness ({name})", worst, words))
    return [
        {
            "attack": title,
            "exposed": f"{len(one.exposed):,} of {one.people:,} people",
            "learned": learned,
            "guessing": f"{three(one.guessing)} ({one.alone})",
            "share": one.share,
        }
        for title, one, learned in found
        if len(one.exposed)
    ]


def say(checked: Checked) -> None:
    """The findings in lines for a terminal."""
    from tacit.report.anonymity import shown

    by = visible(", ".join(checked.quasi))
    print(f"{visible(checked.source)}: {checked.rows:,} rows in {checked.classes:,} classes by {by}")
    print("Exact numbers about people, not for publication; properties of this table, no guarantees.")
    for one in checked.properties:
        print(f"  {one.name:<34}{shown(one.value)}")
    risk = checked.prosecutor
    print(f"  {'prosecutor, highest chance':<34}{shown(risk.highest)}")
    if checked.journalist is not None:
        print(f"  {'journalist, highest chance':<34}{shown(checked.journalist.highest)}")
    print(f"  {'marketer, share of right links':<34}{shown((checked.journalist or risk).average)}")
    print(f"  {'unique rows':<34}{checked.sample_uniques:,}")
    for unique in checked.uniques:
        words = f"population uniques ({unique.estimator})"
        print(f"  {words:<34}{shown(unique.population)} of {unique.people:,}")
    for learned in checked.sensitive:
        print(f"{visible(learned.column)} (distance of t-closeness: {learned.distance})")
        for one in learned.properties:
            print(f"  {one.name:<34}{shown(one.value)}")
    if checked.identifiers:
        print("Columns that look like identifiers:")
        for finding in checked.identifiers:
            print(f"  {visible(finding.describe())}")
    print("What is wrong with it:")
    for problem in checked.problems:
        print(f"  - {visible(problem)}")


# `tacit treat`: coding, sampling, swapping, generalisation, and what they leave exposed.

ENDINGS = (".csv", ".parquet")


def treat(
    table: Path = typer.Argument(..., help="The table: a Parquet or CSV file."),
    out: Path = typer.Option(..., "--out", help="The file to write: .parquet or .csv."),
    quasi: str = typer.Option("", "--quasi", help="Quasi-identifiers, with commas."),
    sensitive: str = typer.Option("", "--sensitive", help="Sensitive columns, with commas."),
    k: int = typer.Option(5, "--k", help="The least size of a class, and of an averaged group."),
    remove: str = typer.Option("", "--remove", help="Columns to leave out, with commas."),
    top: list[str] = typer.Option(
        [], "--top", help="COLUMN=LIMIT: replace larger numbers by the limit (repeatable)."
    ),
    bottom: list[str] = typer.Option(
        [], "--bottom", help="COLUMN=LIMIT: replace smaller numbers by the limit (repeatable)."
    ),
    collapse: list[str] = typer.Option(
        [], "--collapse", help="COLUMN=LEVEL of its --hierarchy (repeatable)."
    ),
    hierarchy: list[str] = typer.Option(
        [], "--hierarchy", help="COLUMN=FILE, a generalisation hierarchy as CSV (repeatable)."
    ),
    round_to: list[str] = typer.Option(
        [], "--round", help="COLUMN=BASE: round to multiples of the base (repeatable)."
    ),
    sample: float = typer.Option(1.0, "--sample", help="The share of rows to keep, at random."),
    swap: list[str] = typer.Option(
        [], "--swap", help="COLUMNS=SHARE: swap values in this share of rows (repeatable)."
    ),
    match: str = typer.Option("", "--match", help="Columns in which swapped rows agree, with commas."),
    disturb: list[str] = typer.Option(
        [],
        "--disturb",
        help="COLUMN=SHARE: add normal noise, as a share of its standard deviation (repeatable).",
    ),
    average: str = typer.Option(
        "", "--average", help="Columns to average over groups of k (MDAV), with commas."
    ),
    mask: str = typer.Option(
        "", "--mask", help="Columns to mix at random, keeping means and covariances, with commas."
    ),
    model: list[str] = typer.Option(
        [],
        "--model",
        help="COLUMN=GIVEN,...: draw from a model given other columns (repeatable).",
    ),
    trees: list[str] = typer.Option(
        [],
        "--trees",
        help="COLUMNS=LEAF: draw from leaves of at least this many rows (repeatable).",
    ),
    given: str = typer.Option(
        "", "--given", help="Columns that --trees splits on too and keeps, with commas."
    ),
    mixture: list[str] = typer.Option(
        [],
        "--mixture",
        help="COLUMNS=NUMBER: draw from this number of normal distributions (repeatable).",
    ),
    generalise: bool = typer.Option(
        False,
        "--generalise",
        help="Generalise --quasi over whole columns for --k, --l, --t.",
    ),
    mondrian: bool = typer.Option(False, "--mondrian", help="Recode --quasi locally for --k, --l, --t."),
    l: float = typer.Option(  # noqa: E741
        0.0, "--l", show_default=False, help="The least number of sensitive values in a class."
    ),
    t: float = typer.Option(
        -1.0, "--t", show_default=False, help="The largest distance of a class from the table."
    ),
    suppress: float = typer.Option(0.0, "--suppress", help="The share of rows that --generalise may remove."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an existing file."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Treat a table as agencies do, and measure what remains.

    Treatments apply in the order of the options and guarantee nothing. The printed numbers are not for
    publication. Exits with 1 if no generalisation reaches the target.
    """
    from tacit.anonymity import read_hierarchy
    from tacit.anonymity import treatments as kinds

    ending = out.suffix.lower()
    if ending not in ENDINGS:
        raise UnknownName(
            what="kind of file", name=ending or out.name, known=ENDINGS, hint="end the name in .parquet"
        )
    if out.exists() and not overwrite:
        raise InvalidParameter(
            parameter="--out",
            value=str(out),
            must="not be there yet",
            hint="choose another name, or say --overwrite",
        )
    if out.exists() and table.exists() and out.samefile(table):
        raise InvalidParameter(
            parameter="--out", value=str(out), must="be another file than the table",
            hint="the treatment would overwrite the original values",
        )  # fmt: skip
    if generalise and mondrian:
        raise InvalidParameter(parameter="--mondrian", value=True, must="not go with --generalise")
    if not (generalise or mondrian) and (l or t >= 0):
        raise InvalidParameter(
            parameter="--l" if l else "--t", value=l or t, must="go with --generalise or --mondrian"
        )
    if suppress and not generalise:
        raise InvalidParameter(parameter="--suppress", value=suppress, must="go with --generalise")
    if given and not trees:
        raise InvalidParameter(parameter="--given", value=given, must="go with --trees")
    hierarchies = {c: read_hierarchy(Path(f)) for c, f in _pairs("--hierarchy", hierarchy)}
    chosen: list[Treatment] = []
    if remove:
        chosen.append(kinds.Remove(columns=names_of(remove)))
    chosen += [kinds.TopCode(column=c, at=_number("--top", v)) for c, v in _pairs("--top", top)]
    chosen += [kinds.BottomCode(column=c, at=_number("--bottom", v)) for c, v in _pairs("--bottom", bottom)]
    for column, level in _pairs("--collapse", collapse):
        if column not in hierarchies:
            raise InvalidParameter(parameter="--collapse", value=column, must="have a --hierarchy")
        chosen.append(
            kinds.Collapse(column=column, hierarchy=hierarchies[column], level=_whole("--collapse", level))
        )
    chosen += [kinds.Round(column=c, base=_number("--round", v)) for c, v in _pairs("--round", round_to)]
    if sample != 1.0:
        chosen.append(kinds.Sample(share=sample))
    for columns, share in _pairs("--swap", swap):
        chosen.append(
            kinds.Swap(columns=names_of(columns), share=_number("--swap", share), match=names_of(match))
        )
    chosen += [
        kinds.Disturb(column=c, share_of_std=_number("--disturb", v)) for c, v in _pairs("--disturb", disturb)
    ]
    if average:
        chosen.append(kinds.Microaggregate(columns=names_of(average), k=k))
    if mask:
        chosen.append(kinds.MatrixMask(columns=names_of(mask)))
    chosen += [kinds.ModelDraws(column=c, given=names_of(g)) for c, g in _pairs("--model", model)]
    for columns, leaf in _pairs("--trees", trees):
        chosen.append(
            kinds.TreeDraws(columns=names_of(columns), given=names_of(given), leaf=_whole("--trees", leaf))
        )
    for columns, number in _pairs("--mixture", mixture):
        chosen.append(kinds.MixtureDraws(columns=names_of(columns), components=_whole("--mixture", number)))
    asked = _Asked(names_of(quasi), names_of(sensitive), k, l or None, None if t < 0 else t, suppress)
    treated = _treated(
        table, chosen, hierarchies, asked, "generalise" if generalise else "mondrian" if mondrian else ""
    )
    write_whole(out, lambda path: _write(treated.table, path, ending))
    if json:
        print_json({**treated.to_dict(), "out": str(out), "rows": treated.table.num_rows})
        return
    _say(treated, out)


class _Asked:
    """The criteria for the classes."""

    def __init__(
        self,
        quasi: tuple[str, ...],
        sensitive: tuple[str, ...],
        k: int,
        l: float | None,  # noqa: E741
        t: float | None,
        suppress: float,
    ) -> None:
        self.quasi, self.sensitive, self.k = quasi, sensitive, k
        self.l, self.t, self.suppress = l, t, suppress


def _treated(
    table: Path, chosen: list[Treatment], trees: dict[str, Any], asked: _Asked, search: str
) -> Treated:
    """Treatments first, then the search, if the command asks for one."""
    from tacit import anonymity as anon

    data: Any = table
    done: list[str] = []
    aligned = True
    with anon.open_microdata(table) as micro:
        before = micro.rows()
    if chosen:
        first = anon.treat_table(before, chosen)
        data, done, aligned = first.table, list(first.done), all(one.aligned for one in chosen)
    if not search:
        if not chosen:
            raise InvalidParameter(
                parameter="treatment", value="none", must="be named", hint="tacit treat --help has the list"
            )
        return anon.finish(
            before, data, done=done, aligned=aligned, quasi=asked.quasi, sensitive=asked.sensitive, k=asked.k
        )
    if len(asked.sensitive) > 1 and (asked.l is not None or asked.t is not None):
        raise InvalidParameter(
            parameter="--sensitive", value=", ".join(asked.sensitive), must="name one column for --l or --t",
            hint="a search reaches them for one column; tacit check measures several",
        )  # fmt: skip
    hidden = asked.sensitive[0] if asked.sensitive else None
    if search == "generalise":
        lacking = [name for name in asked.quasi if name not in trees]
        if lacking:
            raise InvalidParameter(
                parameter="--hierarchy", value=lacking[0], must="be given for each column of --quasi",
                hint=f"--hierarchy {lacking[0]}=FILE",
            )  # fmt: skip
        found = anon.generalise(
            data, hierarchies={name: trees[name] for name in asked.quasi}, k=asked.k, sensitive=hidden, l=asked.l,
            t=asked.t, suppress=asked.suppress,
        )  # fmt: skip
        after = found.table
        levels = ", ".join(f"{c} {v}" for c, v in found.levels.items())
        done.append(
            f"generalised to the levels {levels}: the least loss of entropy ({found.loss:.4f} bits, {found.lost:.1%} of"
            f" all) among {found.nodes:,} nodes; {found.removed:,} rows removed"
        )
        aligned = aligned and not found.removed
    else:
        recoded = anon.mondrian(
            data, quasi=asked.quasi, k=asked.k, sensitive=hidden, l=asked.l, t=asked.t,
            hierarchies={c: tree for c, tree in trees.items() if c in asked.quasi},
        )  # fmt: skip
        after = recoded.table
        done.append(
            f"recoded into {recoded.classes:,} boxes (Mondrian), {recoded.lost:.1%} of the ranges lost"
        )
    return anon.finish(
        before, after, done=done, aligned=aligned, quasi=asked.quasi, sensitive=asked.sensitive, k=asked.k
    )


def _pairs(option: str, given: list[str]) -> list[tuple[str, str]]:
    """COLUMN=VALUE, each."""
    out = []
    for text in given:
        column, mark, value = text.rpartition("=")
        if not mark or not column or not value:
            raise InvalidParameter(parameter=option, value=text, must="be COLUMN=VALUE")
        out.append((column, value))
    return out


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(parameter=option, value=text, must="be COLUMN=NUMBER") from None


def _whole(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(parameter=option, value=text, must="be COLUMN=WHOLE NUMBER") from None


def _write(table: Any, path: Path, ending: str) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if ending == ".csv":
        for field in table.schema:
            if any(
                test(field.type)
                for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
            ):
                raise WrongType(
                    column=field.name, found=f"stored as {field.type}", wanted="text, for a CSV file",
                    hint="write a .parquet file, or remove the column",
                )  # fmt: skip
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)


def _say(treated: Treated, out: Path) -> None:
    for words in treated.done:
        print(f"Done: {visible(words)}.")
    lost = treated.lost
    print("What it lost:")
    print(f"  rows removed          {lost.rows:,}")
    if lost.columns:
        print(f"  columns removed       {visible(', '.join(lost.columns))}")
    for name, shift in lost.shift.items():
        if shift or lost.changed.get(name):
            changed = f", {lost.changed[name]:.1%} of the values changed" if name in lost.changed else ""
            print(f"  {visible(name):<22}distribution moved by {shift:.3g}{changed}")
    if lost.correlation is not None:
        print(f"  correlations          changed by up to {lost.correlation:.3g}")
    if treated.checked is not None:
        print(f"k-anonymity now: {treated.checked.k:,}; it is a property of this table and no guarantee.")
    print("What is still wrong with it:")
    for problem in treated.problems:
        print(f"  - {visible(problem)}")
    print(f"Written: {visible(str(out))}")
