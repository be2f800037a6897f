"""`tacit attack`: attacks on a release by an outsider; one command for each attack."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json
from tacit.errors import BadData, InvalidParameter, UnknownColumn, visible

if TYPE_CHECKING:
    from tacit.attacks import Block, Finding

# Files that an outsider holds, read into columns: CSV or Parquet; one clear error for anything else.


def read_columns(path: Path) -> dict[str, Any]:
    """Columns by name; cells of a CSV file are text, an empty one is missing."""
    if not path.is_file():
        raise BadData(source=str(path), problem="is not a file")
    if path.suffix.lower() in (".parquet", ".pq"):
        return _parquet(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            csv.field_size_limit(sys.maxsize)
            lines = csv.reader(file, strict=True)
            header = next(lines, None)
            if not header or not any(header):
                raise BadData(source=str(path), problem="has no header")
            if len(set(header)) < len(header):
                raise BadData(source=str(path), problem="names a column twice")
            columns: list[list[str | None]] = [[] for _ in header]
            for line in lines:
                if not line:
                    continue
                if len(line) != len(header):
                    raise BadData(
                        source=str(path),
                        problem=f"has another number of cells than its header on line {lines.line_num}",
                    )
                for column, cell in zip(columns, line, strict=True):
                    column.append(cell or None)
    except UnicodeDecodeError:
        raise BadData(source=str(path), problem="is not text in UTF-8") from None
    except csv.Error:
        raise BadData(source=str(path), problem="cannot be read as CSV") from None
    except OSError as problem:
        raise BadData(source=str(path), problem=(problem.strerror or "cannot be read").lower()) from None
    return dict(zip(header, columns, strict=True))


def _parquet(path: Path) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError):
        raise BadData(source=str(path), problem="cannot be read as Parquet") from None
    if len(set(table.column_names)) < table.num_columns:
        raise BadData(source=str(path), problem="names a column twice")
    return {name: table[name] for name in table.column_names}


def names(option: str, text: str) -> list[str]:
    """Column names from one option, separated by commas."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise InvalidParameter(parameter=option, value=text, must="name columns, separated by commas")
    return found


def numbers(path: Path, columns: dict[str, Any], name: str) -> list[float]:
    """One column as numbers."""
    if name not in columns:
        raise UnknownColumn(column=name, known=columns, where=str(path))
    column = columns[name]
    cells = column.to_pylist() if hasattr(column, "to_pylist") else column
    try:
        return [float(cell) for cell in cells]
    except (TypeError, ValueError):
        raise BadData(
            source=str(path), problem=f"has cells in column {name!r} that are not numbers"
        ) from None


# How an attack is told: JSON, or a few lines; who is exposed is for the custodian's eyes.


def tell(
    finding: Finding, *, json: bool, show: int, sentence: str, more: Mapping[str, Any] | None = None
) -> None:
    """The numbers, then some of the people; marked as not for publication."""
    record = {**finding.to_dict(most=show), **(more or {})}
    if json:
        print_json({**record, "not_for_publication": True})
        return
    print(f"{finding.attack}: {visible(sentence)}")
    print(f"  exposed                   {len(finding.exposed):,} of {finding.people:,} ({finding.share:.1%})")
    print(f"  guessing alone            {finding.guessing:.4g} ({finding.alone})")
    plain = {"attack", "people", "exposed", "share", "guessing", "alone", "found"}
    for name, value in record.items():
        if name not in plain and isinstance(value, str | int | float | bool):
            told = f"{value:.6g}" if isinstance(value, float) else str(value)
            print(f"  {name.replace('_', ' '):<26}{visible(told)}")
        elif name == "by_one_release":
            print(f"  by one release alone      {visible(', '.join(map(str, value)))}")
    for entry in record["found"]:
        print(f"  {visible(str(entry['who']))}: {visible(str(entry['learned']))}")
    if len(finding.exposed) > show:
        print(f"  and {len(finding.exposed) - show:,} more (--show)")
    print("Not for publication: it names people.")


# Attacks on published answers: counts, tables, frequencies, repeated and noisy numbers.

MOST_WRITTEN = 2000
"""Made-up people up to whom the matrix of questions is written down."""
SHOW = typer.Option(20, "--show", help="List at most this many people.", min=0)
JSON = typer.Option(False, "--json", help="Print one JSON object.")


def counts(
    file: Path | None = typer.Argument(
        None,
        help="A column of 0 and 1 for each person, and one called answer.",
    ),
    method: str = typer.Option("least squares", "--method", help="least squares or linear program."),
    people: int = typer.Option(200, "--people", help="Made up: the number of people.", min=1),
    questions: int = typer.Option(
        0, "--questions", help="Made up: the number of random subsets; 0: four a person.", min=0
    ),
    noise_std: float = typer.Option(0.0, "--noise-std", help="Made up: the standard deviation of the noise."),
    seed: int = typer.Option(0, "--seed", help="Made up: the seed.", min=0),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Reconstruct a bit for everybody from noisy counts.

    Linear reconstruction (Dinur and Nissim). Without a file, people and queries are made up.
    """
    import numpy as np

    from tacit.attacks import Draws, random_questions, reconstruct, walsh_questions
    from tacit.exact.checks import non_negative

    if file is not None:
        columns = read_columns(file)
        answers = numbers(file, columns, "answer")
        who = [name for name in columns if name != "answer"]
        if not who:
            raise BadData(source=str(file), problem="has no column for a person")
        asked = np.array([numbers(file, columns, name) for name in who]).T
        tell(reconstruct(asked, answers, method=method), json=json, show=show, sentence="a bit for everybody")
        return
    noise = non_negative("noise_std", noise_std)
    draws = Draws(seed, "people")
    bits = draws.bits(people)
    many = questions or 4 * people
    if people <= MOST_WRITTEN:
        matrix = random_questions(people, many, seed=seed)
        found = reconstruct(matrix, matrix @ bits + noise * draws.normals(many), method=method)
    else:
        implicit = walsh_questions(people, many, seed=seed)
        found = reconstruct(implicit, implicit.counts(bits) + noise * draws.normals(many), method=method)
    right = found.score(bits.tolist())
    sentence = f"{right.right} of {people} made-up bits are right ({right.share:.1%})"
    tell(found, json=json, show=show, sentence=sentence, more={"right": right.right})


def tables(
    file: Path | None = typer.Argument(None, help="Published tables (TOML)."),
    most: int = typer.Option(1000, "--most", help="Stop after this many solutions.", min=1),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Reconstruct people from published tables.

    Without a file: the seven people of Garfinkel, Abowd and Martindale (2018).
    """
    from tacit.attacks import seven

    block = seven() if file is None else _block(file)
    found = block.reconstruct(most=most)
    told = found.details
    if told["unique"]:
        sentence = "exactly one set of people fits"
    elif told["complete"]:
        sentence = f"{told['solutions']} sets of people fit"
    else:
        sentence = f"more than {most} sets of people fit"
    tell(found, json=json, show=show, sentence=sentence)


def _block(file: Path) -> Block:
    """Tables from TOML: [attributes], oldest, and one [[group]] a line."""
    import tomllib

    from tacit.attacks import Block, Group

    try:
        told: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise BadData(source=str(file), problem=(problem.strerror or "cannot be read").lower()) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadData(source=str(file), problem="cannot be read as TOML") from None
    attributes = told.get("attributes")
    if not isinstance(attributes, dict) or not all(
        isinstance(v, list) and v and all(isinstance(x, str) for x in v) for v in attributes.values()
    ):
        raise BadData(source=str(file), problem="has no [attributes] with a list of values for each")
    groups = []
    for entry in told.get("group", []):
        given = dict(entry) if isinstance(entry, dict) else {}
        low, high = given.pop("from_age", None), given.pop("to_age", None)
        try:
            groups.append(Group(ages=(low, high), **given))
        except TypeError:
            raise BadData(
                source=str(file),
                problem="has a [[group]] with unknown entries",
                hint="name, where, from_age, to_age, count or fewer_than, median, mean, digits",
            ) from None
    return Block(attributes=attributes, groups=groups, oldest=told.get("oldest", 125))


def membership(
    file: Path = typer.Argument(
        ..., help="Columns published, reference, and one of 0 and 1 for each person."
    ),
    size: int = typer.Option(..., "--size", help="The number of people in the study.", min=1),
    test: str = typer.Option("likelihood ratio", "--test", help="likelihood ratio, homer or correlation."),
    noise_std: float = typer.Option(
        0.0, "--noise-std", help="The noise of a published share, for correlation."
    ),
    false_alarms: float = typer.Option(0.01, "--false-alarms", help="The accepted share of false alarms."),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Find the members of a study from its published frequencies."""
    import numpy as np

    from tacit.attacks import membership as attack

    columns = read_columns(file)
    published, reference = (numbers(file, columns, name) for name in ("published", "reference"))
    who = [name for name in columns if name not in ("published", "reference")]
    if not who:
        raise BadData(source=str(file), problem="has no column for a person")
    bits = np.array([numbers(file, columns, name) for name in who])
    found = attack(
        published, reference, bits, size=size, test=test, noise_std=noise_std, false_alarms=false_alarms
    )
    tell(found, json=json, show=show, sentence="people who were in the study")


def averaging(
    file: Path = typer.Argument(..., help="A column for each query, a line for each repetition."),
    step: float = typer.Option(1.0, "--step", help="True answers are multiples of this."),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Average repeated answers of a server that draws new noise."""
    from tacit.attacks import average

    columns = read_columns(file)
    found = average([numbers(file, columns, name) for name in columns], step=step)
    tell(found, json=json, show=show, sentence="questions whose true answer is known")


def differencing(
    file: Path = typer.Argument(..., help="Columns with and without: totals with the person and without."),
    low: float = typer.Option(0.0, "--low", help="The least value of a person."),
    high: float = typer.Option(1.0, "--high", help="The largest value of a person."),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Subtract two totals that differ in one person."""
    from tacit.attacks import difference

    columns = read_columns(file)
    found = difference(numbers(file, columns, "with"), numbers(file, columns, "without"), low=low, high=high)
    tell(found, json=json, show=show, sentence="one value for each pair of totals")


def floating_point(
    file: Path = typer.Argument(..., help="Published numbers at full precision."),
    column: str = typer.Option("value", "--column", help="The column with the numbers."),
    noise_scale: float = typer.Option(..., "--noise-scale", help="The scale of the Laplace noise."),
    candidates: str = typer.Option("0,1", "--candidates", help="The possible true answers, with commas."),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Read true answers off the last digits of noisy ones.

    Mironov's attack on textbook Laplace noise.
    """
    from tacit.attacks import which_answer

    try:
        answers = [float(part) for part in candidates.split(",")]
    except ValueError:
        raise InvalidParameter(
            parameter="candidates", value=candidates, must="be numbers, separated by commas"
        ) from None
    found = which_answer(numbers(file, read_columns(file), column), answers, noise_scale=noise_scale)
    tell(found, json=json, show=show, sentence="numbers that only one answer can have given")


# Attacks on tables of people that were released without names.

QUASI = typer.Option(..., "--quasi", help="Quasi-identifiers, with commas.")
SENSITIVE = typer.Option(..., "--sensitive", help="The column to learn.")
SHOW_RELEASED = typer.Option(20, "--show", help="List at most this many people.", min=0)
JSON_RELEASED = typer.Option(False, "--json", help="Print one JSON object.")
TABLE = typer.Argument(..., help="The released table: CSV or Parquet.")


def linkage(
    release: Path = TABLE,
    known: Path = typer.Argument(..., help="A list with names and the same quasi-identifiers."),
    quasi: str = QUASI,
    sensitive: str = typer.Option(
        "", "--sensitive", help="The column to learn; by default the number of the row."
    ),
    show: int = SHOW_RELEASED,
    json: bool = JSON_RELEASED,
) -> None:
    """Name people of a list in a release, by quasi-identifiers."""
    from tacit.attacks import link

    found = link(
        read_columns(release), read_columns(known), quasi=names("quasi", quasi), sensitive=sensitive or None
    )
    tell(found, json=json, show=show, sentence="people of the list who are one row of the release")


def histories(
    release: Path = TABLE,
    known: Path = typer.Argument(..., help="Known entries of some people, one a line."),
    person: str = typer.Option("person", "--person", help="The column with the pseudonym, or the name."),
    item: str = typer.Option("item", "--item", help="The column with the item."),
    value: str = typer.Option("", "--value", help="The column with a value, as a rating."),
    date: str = typer.Option("", "--date", help="The column with a date or a day."),
    eccentricity: float = typer.Option(
        7.0, "--eccentricity", help="The lead of the best match over the next, in standard deviations."
    ),
    show: int = SHOW_RELEASED,
    json: bool = JSON_RELEASED,
) -> None:
    """Name people in released histories by a few known entries.

    The scoreboard attack of Narayanan and Shmatikov.
    """
    from tacit.attacks import link_histories

    found = link_histories(
        read_columns(release),
        read_columns(known),
        person=person,
        item=item,
        value=value or None,
        date=date or None,
        eccentricity=eccentricity,
    )
    tell(found, json=json, show=show, sentence="people whose best match stands out")


def homogeneity(
    table: Path = TABLE,
    quasi: str = QUASI,
    sensitive: str = SENSITIVE,
    show: int = SHOW_RELEASED,
    json: bool = JSON_RELEASED,
) -> None:
    """Find classes whose rows share one sensitive value."""
    from tacit.attacks import homogeneity as attack

    found = attack(read_columns(table), quasi=names("quasi", quasi), sensitive=sensitive)
    tell(found, json=json, show=show, sentence="rows whose class has one sensitive value")


def background(
    table: Path = TABLE,
    quasi: str = QUASI,
    sensitive: str = SENSITIVE,
    ruled_out: list[str] = typer.Option(
        ..., "--ruled-out", help="A value that the person does not have (repeatable)."
    ),
    show: int = SHOW_RELEASED,
    json: bool = JSON_RELEASED,
) -> None:
    """Rule out values, and find people who are left with one."""
    from tacit.attacks import background as attack

    found = attack(read_columns(table), quasi=names("quasi", quasi), sensitive=sensitive, ruled_out=ruled_out)
    tell(found, json=json, show=show, sentence="rows that are left with one value")


def skewness(
    table: Path = TABLE,
    quasi: str = QUASI,
    sensitive: str = SENSITIVE,
    value: str = typer.Option(..., "--value", help="The suspected value."),
    factor: float = typer.Option(2.0, "--factor", help="At least this many times its share in the table."),
    show: int = SHOW_RELEASED,
    json: bool = JSON_RELEASED,
) -> None:
    """Find classes in which a value is much more common."""
    from tacit.attacks import skewness as attack

    found = attack(
        read_columns(table), quasi=names("quasi", quasi), sensitive=sensitive, value=value, factor=factor
    )
    tell(found, json=json, show=show, sentence="rows whose class has the value more often")


def intersection(
    releases: list[Path] = typer.Argument(..., help="Two or more releases about the same people."),
    quasi: str = QUASI,
    sensitive: str = SENSITIVE,
    known: Path | None = typer.Option(None, "--known", help="A table of people with their own values."),
    person: str = typer.Option("", "--person", help="One person instead: zip=13012,age=28."),
    show: int = SHOW_RELEASED,
    json: bool = JSON_RELEASED,
) -> None:
    """Intersect what several releases leave possible.

    Values may be generalised: 130**, <30, 20-29.
    """
    from tacit.attacks import intersection as attack

    columns = names("quasi", quasi)
    if (known is None) == (not person):
        raise InvalidParameter(
            parameter="known",
            value="" if known is None else str(known),
            must="be given, or --person, and not both",
        )
    if known is not None:
        people = read_columns(known)
    else:
        pairs = dict(part.split("=", 1) for part in person.split(",") if "=" in part)
        people = {name: [pairs[name].strip() if name in pairs else None] for name in columns}
        strange = [name for name in pairs if name not in columns]
        if strange or not pairs:
            raise InvalidParameter(
                parameter="person",
                value=person,
                must="give quasi-identifiers as name=value, separated by commas",
            )
    found = attack([read_columns(r) for r in releases], people, quasi=columns, sensitive=sensitive)
    tell(found, json=json, show=show, sentence="people with one value left")


def replay(
    synthetic: Path = typer.Argument(..., help="Synthetic rows: CSV or Parquet."),
    people: Path = typer.Argument(..., help="Rows of people who may have been in the table."),
    others: Path = typer.Argument(..., help="Rows of others, who were not."),
    columns: str = typer.Option("", "--columns", help="Columns to compare, with commas; by default all."),
    false_alarms: float = typer.Option(0.05, "--false-alarms", help="The accepted share of false alarms."),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Find the people whom synthetic rows replay.

    Names the people who lie far closer to the synthetic rows than to others.
    """
    from tacit.attacks import replay as attack

    found = attack(
        *(read_columns(file) for file in (synthetic, people, others)),
        columns=names("columns", columns) if columns else (),
        false_alarms=false_alarms,
    )
    copies = found.details["copies"]
    tell(found, json=json, show=show, sentence=f"{copies:,} of {found.people:,} rows are repeated exactly")


# `tacit attack system`: a query system of the past, set up on made-up people and broken.


def system(
    name: str = typer.Argument("", help="The system; --list shows the names."),
    list_: bool = typer.Option(False, "--list", help="List the names and stop."),
    seed: int = typer.Option(0, "--seed", help="The seed of the made-up people.", min=0),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Break a query system of the past, on made-up people."""
    from tacit.attacks.systems import SYSTEMS, show

    if list_:
        if json:
            print_json({"systems": sorted(SYSTEMS)})
        else:
            print("\n".join(sorted(SYSTEMS)))
        return
    if not name:
        raise InvalidParameter(
            parameter="name", value="", must="name a system", hint="tacit attack system --list shows them"
        )
    shown = show(name, seed=seed)
    finding, score = shown.finding, shown.score
    if json:
        print_json(
            {
                "system": name,
                "idea": shown.idea,
                "source": shown.source,
                "attack": finding.attack,
                "questions": finding.details["asked"],
                "people": finding.people,
                "claims": score.claims,
                "right": score.right,
                "guessing": finding.guessing,
                "alone": finding.alone,
            }
        )
        return
    print(f"{name}: {shown.idea} ({shown.source})")
    print(f"  attack                    {finding.attack}, {finding.details['asked']:,} questions")
    print(
        f"  claims about people       {score.claims:,} of {finding.people:,}, of which {score.right:,} are true"
    )
    print(f"  guessing alone            {finding.guessing:g} ({finding.alone})")


attack = typer.Typer(
    name="attack",
    no_args_is_help=True,
)


@attack.callback()
def _root() -> None:
    """Attack a release with an outsider's knowledge.

    The output names people and is not for publication.
    """


attack.command(name="averaging")(averaging)
attack.command(name="background")(background)
attack.command(name="counts")(counts)
attack.command(name="differencing")(differencing)
attack.command(name="floating-point")(floating_point)
attack.command(name="histories")(histories)
attack.command(name="homogeneity")(homogeneity)
attack.command(name="intersection")(intersection)
attack.command(name="linkage")(linkage)
attack.command(name="membership")(membership)
attack.command(name="replay")(replay)
attack.command(name="skewness")(skewness)
attack.command(name="system")(system)
attack.command(name="tables")(tables)
