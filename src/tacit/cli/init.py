"""`tacit init`: a commented plan from a file's header or metadata, and from answers; reads no row."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json
from tacit.errors import InvalidParameter, TacitError, UnknownColumn, UnknownName, visible

if TYPE_CHECKING:
    from tacit.sources.columns import Column
    from tacit.sources.headings import Heading

KINDS = ("category", "number", "integer", "date", "flag")


def init(
    data: Path = typer.Argument(..., metavar="DATA", help="A CSV, Parquet, Stata, SPSS, SAS or Excel file."),
    out: Path | None = typer.Option(
        None, "--out", help="The plan to write; by default the name of DATA with .toml."
    ),
    protect: str | None = typer.Option(None, "--protect", help="Who is protected: rows or people."),
    person: str | None = typer.Option(None, "--person", help="The column that tells people apart."),
    at_most: int | None = typer.Option(
        None, "--at-most", help="The largest number of used rows of a person."
    ),
    number: list[str] = typer.Option(
        [], "--number", help="NAME=LOW:HIGH, a number and its bounds (repeatable)."
    ),
    integer: list[str] = typer.Option([], "--integer", help="NAME=LOW:HIGH, a whole number (repeatable)."),
    date: list[str] = typer.Option([], "--date", help="NAME=FIRST:LAST, a day, as 2020-01-31 (repeatable)."),
    category: list[str] = typer.Option(
        [],
        "--category",
        help="NAME=KEY,KEY, a category; NAME alone for unknown keys (repeatable).",
    ),
    flag: list[str] = typer.Option([], "--flag", help="NAME, a column of yes and no (repeatable)."),
    skip: list[str] = typer.Option([], "--skip", help="NAME, a column to leave out (repeatable)."),
    epsilon: float | None = typer.Option(None, "--epsilon", help="The epsilon of the budget."),
    delta: float | None = typer.Option(None, "--delta", help="The delta of the budget."),
    rho: float | None = typer.Option(None, "--rho", help="The budget in zCDP, instead of epsilon."),
    mu: float | None = typer.Option(None, "--mu", help="The budget in Gaussian DP, instead of epsilon."),
    separator: str | None = typer.Option(
        None, "--separator", help="Text files: , ; tab or |; by default from the header."
    ),
    decimal: str | None = typer.Option(None, "--decimal", help="Text files: the decimal sign, . or ,"),
    encoding: str | None = typer.Option(
        None, "--encoding", help="Text files: latin-1, cp1252 or another; utf-8 by default."
    ),
    dates: str | None = typer.Option(
        None, "--dates", help="Text files: day-first or month-first; year-first by default."
    ),
    missing: list[str] = typer.Option(
        [], "--missing", help="A word for a missing value, as NA (repeatable)."
    ),
    table: str = typer.Option("", "--table", help="The public name of the table."),
    version: str = typer.Option("", "--version", help="The public name of this state of the data."),
    trust_header: bool = typer.Option(
        False, "--trust-header", help="Take the first line for names in any case."
    ),
    ask: bool = typer.Option(True, "--ask/--no-ask", help="Ask at a terminal for what no option answers."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object and ask nothing."),
) -> None:
    """Write a commented plan from the header or types of a file.

    Reads no row. Asks at a terminal for what no option answers; the rest stays a comment. Names of columns
    are published with the plan.
    """
    from tacit.curator.custodian import suggest
    from tacit.sources.opening.files import files

    place = out if out is not None else Path(f"{_stem(data)}.toml")
    _new(place)
    trusted: dict[str, Any] = {"trust_header": trust_header}
    source = files(
        data, separator=separator, decimal=decimal, encoding=encoding, dates=dates, missing=missing
    )
    found = suggest(source, **trusted).columns
    flags = {"number": number, "integer": integer, "date": date, "category": category, "flag": flag}
    schema = dict(_declared(kind, text, found) for kind, texts in flags.items() for text in texts)
    answers: dict[str, Any] = {
        "protect": protect, "person": person, "at_most": at_most, "epsilon": epsilon, "delta": delta, "rho": rho,
        "mu": mu, "skip": list(skip), "schema": schema,
    }  # fmt: skip
    # What the flags say is checked before anything is asked.
    suggest(source, **trusted, **answers)
    if ask and not json and _terminal():
        _asked(found, answers)
        answers.pop("delta asked", None)
    named: dict[str, Any] = {"table": table, "version": version, "beside": place.absolute().parent}
    made = suggest(source, **trusted, **answers, **named)
    made.write(place)
    if json:
        columns = [{"name": h.name, "stored": h.stored, "kind": h.kind or None} for h in found]
        print_json({"plan": str(place), "columns": columns, "unanswered": list(made.unanswered)})
        return
    print(f"written: {visible(str(place))}, for {len(found)} columns; no row was read")
    if made.unanswered:
        print("not answered, and so commented out in the plan; answer in the file or by these flags:")
        for one in made.unanswered:
            print(f"  {one}")
    print(f"next: tacit plan {visible(str(place))}")


def _stem(data: Path) -> str:
    name = data.name.removesuffix(".gz")
    return Path(name).stem or "plan"


def _new(place: Path) -> None:
    if place.exists() or place.is_symlink() or not place.absolute().parent.is_dir():
        raise InvalidParameter(
            parameter="--out", value=str(place), must="be a new file in an existing folder",
            hint="nothing is ever overwritten; name another one",
        )  # fmt: skip


def _terminal() -> bool:
    try:
        return sys.stdin.isatty() and sys.stdout.isatty()
    except (AttributeError, ValueError):
        return False


# --- flags -------------------------------------------------------------------------------------------------
def _declared(kind: str, text: str, found: Sequence[Heading]) -> tuple[str, Column]:
    """NAME=VALUE as a declared column; a name may hold any character, the equals sign too."""
    names = [h.name for h in found if text == h.name or text.startswith(f"{h.name}=")]
    if not names:
        raise UnknownColumn(column=text.partition("=")[0], known=[h.name for h in found], where=f"--{kind}")
    name = max(names, key=len)
    return name, column_of(kind, text[len(name) + 1 :], f"--{kind} {name}")


def column_of(kind: str, value: str, where: str) -> Column:
    """The column of a kind with its bounds or keys as text."""
    from tacit.sources.schema import category, flag, integer, number
    from tacit.sources.schema import date as day

    if kind == "flag":
        if value:
            raise InvalidParameter(parameter=where, value=value, must="be a name alone")
        return flag()
    if kind == "category":
        keys = [k.strip() for k in value.split(",")] if value.strip() else None
        return category(_whole(keys) if keys else None)
    low, _, high = value.partition(":")
    try:
        if kind == "date":
            return day(low.strip(), high.strip())
        return integer(int(low), int(high)) if kind == "integer" else number(float(low), float(high))
    except (ValueError, TacitError) as problem:
        example = "2020-01-01:2020-12-31" if kind == "date" else "0:120"
        if isinstance(problem, InvalidParameter) and problem.parameter == "bounds":
            raise
        raise InvalidParameter(
            parameter=where, value=value, must=f"have bounds, as in {example}",
            hint="they follow from the meaning of the column, never from its values",
        ) from None  # fmt: skip


def _whole(keys: list[str]) -> Any:
    """Keys that are all whole numbers are meant as such."""
    return [int(k) for k in keys] if all(k.lstrip("-").isdecimal() and k.isascii() for k in keys) else keys


# --- questions -----------------------------------------------------------------------------------------------
BACK, SKIP = "back", "skip"
"""Answers that steer the questions: back to the one before, or skip this column."""


class _Back(Exception):
    """The question before is asked again."""


class _Skip(Exception):
    """This column is left out."""


def _asked(found: Sequence[Heading], answers: dict[str, Any]) -> None:
    """Asks for each value without a flag; an empty answer leaves the question to the file."""
    print(
        "Answer what you know; an empty answer stays a comment in the plan. Nothing here comes from the rows."
    )
    print(f"{BACK!r} asks the question before again; {SKIP!r} leaves a column out.")
    columns = [h for h in found if h.name not in answers["schema"] and h.name not in answers["skip"]]
    steps: list[Callable[[dict[str, Any]], bool]] = [
        _protect, lambda held: _person(found, held), _rows_of_a_person,
        *(partial(_column, heading=h, others=columns) for h in columns), _budget, _its_delta,
    ]  # fmt: skip
    before: list[tuple[int, dict[str, Any]]] = []
    at = 0
    while at < len(steps):
        kept = {**answers, "schema": dict(answers["schema"]), "skip": list(answers["skip"])}
        try:
            if steps[at](answers):
                before.append((at, kept))
            at += 1
        except _Back:
            if not before:
                print("  this is the first question")
                continue
            at, earlier = before.pop()
            answers.clear()
            answers.update(earlier)


def _protect(answers: dict[str, Any]) -> bool:
    if answers["protect"] is not None or answers["person"] is not None:
        return False
    answers["protect"] = _choice("Who is protected: people or rows?", ("people", "rows"))
    return True


def _person(found: Sequence[Heading], answers: dict[str, Any]) -> bool:
    if answers["protect"] != "people" or answers["person"] is not None:
        return False
    answers["person"] = _choice("Which column tells people apart?", [h.name for h in found], brief=False)
    return True


def _rows_of_a_person(answers: dict[str, Any]) -> bool:
    if (answers["protect"] != "people" and answers["person"] is None) or answers["at_most"] is not None:
        return False
    answers["at_most"] = _read("At most how many rows of one person are used?", _positive)
    return True


def _column(answers: dict[str, Any], *, heading: Heading, others: Sequence[Heading]) -> bool:
    """One column, and the similar ones if the answer applies to them too."""
    schema, skipped = answers["schema"], answers["skip"]
    if heading.name in schema or heading.name in skipped or heading.name == answers["person"]:
        return False
    if heading.kind == "flag":
        return False
    try:
        column = _declaration(heading)
    except _Skip:
        column = None
        skipped.append(heading.name)
    known = {*schema, *skipped, heading.name, answers["person"]}
    kind = (_family(heading.name), heading.stored, heading.kind)
    alike = [h for h in others if h.name not in known and (_family(h.name), h.stored, h.kind) == kind]
    if alike and (column is not None or heading.name in skipped):
        named = ", ".join(visible(h.name) for h in alike[:MOST_NAMED]) + (
            ", ..." if len(alike) > MOST_NAMED else ""
        )
        if _choice(f"The same for {named} ({len(alike)})? yes or no", ("yes", "no")) == "yes":
            for one in alike:
                if column is None:
                    skipped.append(one.name)
                else:
                    schema[one.name] = column
    if column is not None:
        schema[heading.name] = column
    return True


MOST_NAMED = 5


def _family(name: str) -> str:
    """The name without the number of one among several: item_1 and item_12 have one family, year and town do not."""
    bare = re.sub(r"[\d]+$", "", name)
    return bare if bare != name else f"{name}\0"


def _declaration(heading: Heading) -> Column | None:
    name = visible(heading.name)
    kind = heading.kind or _choice(f"{name}: {', '.join(KINDS)}?", KINDS, column=True)
    if kind is None:
        return None
    asked = {
        "category": f"{name}: its public list of keys, with commas between them?",
        "date": f"{name}: first and last day, as 2020-01-01:2020-12-31?",
    }.get(kind, f"{name}: lowest and highest possible value by its meaning, as 0:120?")
    if kind == "flag":
        return column_of("flag", "", name)
    found: Column | None = _read(asked, _maker(kind, name), column=True)
    return found


def _budget(answers: dict[str, Any]) -> bool:
    if any(answers[word] is not None for word in ("epsilon", "rho", "mu")):
        return False
    answers["epsilon"] = _read("The budget for the life of this table: epsilon?", _price("epsilon"))
    answers["delta asked"] = answers["epsilon"] is not None and answers["delta"] is None
    return True


def _its_delta(answers: dict[str, Any]) -> bool:
    if not answers.pop("delta asked", False):
        return False
    answers["delta"] = _read("Its delta, if it has one?", _price("delta"))
    return True


def _maker(kind: str, name: str) -> Callable[[str], Any]:
    return lambda text: column_of(kind, text, name)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _price(word: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        from tacit.curator.charging import decimal

        decimal(word, float(text))
        return float(text)

    return read


def _choice(question: str, known: Iterable[str], *, brief: bool = True, column: bool = False) -> str | None:
    words = list(known)

    def pick(text: str) -> str:
        # Of a word of ours its beginning is enough; a column is named in full.
        begin = [w for w in words if brief and w.startswith(text.lower())]
        if text not in words and len(begin) != 1:
            raise UnknownName(what="answer", name=text, known=words)
        return text if text in words else begin[0]

    found: str | None = _read(question, pick, names=words, column=column)
    return found


def _read(
    question: str, read: Callable[[str], Any], *, names: Sequence[str] = (), column: bool = False
) -> Any:
    """A usable answer, or None for an empty one; repeats the question until there is one."""
    while True:
        text = str(typer.prompt(question, default="", show_default=False)).strip()
        if not text:
            return None
        if text == BACK and text not in names:
            raise _Back
        if text == SKIP and text not in names and column:
            raise _Skip
        try:
            return read(text)
        except TacitError as problem:
            print(f"  {problem}")
        except ValueError:
            print("  the answer must be a number, or empty")


# `tacit inspect`: for the custodian's eyes only, what a plan's declarations lose of the data; leaves its mark.


def inspect(
    path: Path = typer.Argument(..., metavar="PLAN", help="The plan, a TOML file."),
    out: Path | None = typer.Option(
        None, "--out", help="A new file for the findings, readable by its owner only."
    ),
    private: bool = typer.Option(False, "--private", help="Pay for noisy shares instead."),
    epsilon: float | None = typer.Option(None, "--epsilon", help="With --private: the price."),
    delta: float | None = typer.Option(
        None, "--delta", help="With --private and --epsilon: the delta of the price."
    ),
    rho: float | None = typer.Option(None, "--rho", help="With --private: the price in zCDP."),
    mu: float | None = typer.Option(None, "--mu", help="With --private: the price in Gaussian DP."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Show the custodian the losses by a plan's declarations.

    Exact, not for publication, and recorded: certificates of later plans mention the look. With --private:
    noisy shares, charged like any plan.
    """
    from tacit.curator.custodian import inspect as look
    from tacit.curator.plan_files import read_plan
    from tacit.report.progress import watched

    price = {"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu}
    paid = {name: value for name, value in price.items() if value is not None}
    if private:
        _privately(path, out, paid, json=json)
        return
    if paid:
        raise InvalidParameter(
            parameter=f"--{next(iter(paid))}", value=next(iter(paid.values())), must="come with --private",
            hint="without it tacit shows exact numbers, charges nothing, and records the look in the ledger",
        )  # fmt: skip
    if out is not None:
        _new_plan(out)
    found = read_plan(path)
    made = found.plan()
    with watched("Looking", quiet=json), found.curator() as curator:
        seen = look(curator, made)
    if out is not None:
        seen.write(out)
    if json:
        print_json(seen.to_dict())
        return
    for line in seen.lines:
        print(line)


def _new_plan(out: Path) -> None:
    """Refuse a place that cannot be written before the mark is made."""
    if out.exists() or out.is_symlink() or not out.absolute().parent.is_dir():
        raise InvalidParameter(
            parameter="--out", value=str(out), must="be a new file in an existing folder",
            hint="nothing is ever overwritten; name another one",
        )  # fmt: skip


def _privately(path: Path, out: Path | None, paid: dict[str, Any], *, json: bool) -> None:
    from tacit.curator.custodian import inspect_privately
    from tacit.curator.plan_files import read_plan
    from tacit.report.progress import watched

    if out is not None:
        raise InvalidParameter(
            parameter="--out", value=str(out), must="be left out with --private",
            hint="noisy shares are a release: the answer is in the ledger, and asking again is free",
        )  # fmt: skip
    found = read_plan(path)
    with watched("Releasing", quiet=json), found.curator() as curator:
        releases = inspect_privately(curator, **paid)
    spent, left = releases[-1].standing
    if json:
        shares = [
            {"name": r.name, "value": r.value, "low": r.interval[0], "high": r.interval[1]} for r in releases
        ]
        print_json(
            {
                "shares": shares,
                "charge": releases[0].certificate["plan"]["charge"],
                "spent": dict(spent.bound.parameters),
                "remaining": dict(left.bound.parameters),
            }
        )
        return
    width = max(len(r.name) for r in releases)
    for one in releases:
        low, high = one.interval
        print(f"{one.name.ljust(width)}  {one.value:7.1%}  [{low:.1%}, {high:.1%}]")
    print(f"noisy shares of the rows, at 95%; spent so far: {spent.bound}; left: {left.bound}")
