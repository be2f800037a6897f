"""Attacks on published answers: counts, tables, frequencies, repeated and noisy numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.attack.tables import numbers, read_columns
from tacit.cli.attack.telling import tell
from tacit.errors import BadData, InvalidParameter

if TYPE_CHECKING:
    from tacit.attacks import Block

__all__ = ["averaging", "counts", "differencing", "floating_point", "membership", "tables"]

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
        0, "--questions", help="Made up: the number of random subsets; 0 for four a person.", min=0
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

    An exact search counts all solutions. Without a file: the block of seven people of Garfinkel, Abowd and
    Martindale (2018).
    """
    from tacit.attacks import seven

    block = seven() if file is None else _block(file)
    found = block.reconstruct(most=most)
    told = found.details
    if told["unique"]:
        sentence = "one set of people fits, and no other"
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
    false_alarms: float = typer.Option(
        0.01, "--false-alarms", help="The share of others that may be accused."
    ),
    show: int = SHOW,
    json: bool = JSON,
) -> None:
    """Tell who was in a study from its published frequencies."""
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

    Mironov's attack on the textbook floating-point sampler of Laplace noise.
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
