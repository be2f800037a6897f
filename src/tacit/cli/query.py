"""`tacit query`: one question in a sentence or by flags, priced, charged and recorded as a plan of one."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json
from tacit.cli.plans import INTERRUPTED, JSON, _exit, _fit, free, wanted, write_release
from tacit.errors import InvalidParameter, charge_made, visible

if TYPE_CHECKING:
    from tacit.curator import Release

PLAN = typer.Argument(..., metavar="PLAN", help="A plan file, for its data, schema, unit, budget and ledger.")
NOTHING_WRITTEN = "a charge already made stays, and asking again for a recorded answer is free"


def query(
    path: Path = PLAN,
    sentence: str = typer.Argument(
        "", metavar="[SENTENCE]", help='The question: "mean income by region where age >= 18".'
    ),
    statistic: str = typer.Option(
        "", "--statistic", help="The statistic, as in plans: mean, count, quantiles."
    ),
    column: str = typer.Option("", "--column", help="The column that the statistic is of."),
    by: list[str] = typer.Option([], "--by", help="A column to group by (repeatable)."),
    where: str = typer.Option("", "--where", help="A condition on the rows, as in plans."),
    at: list[float] = typer.Option([], "--at", help="The share of a quantile (repeatable)."),
    bins: int | None = typer.Option(None, "--bins", help="The number of bins of a histogram."),
    no_interval: bool = typer.Option(
        False,
        "--no-interval",
        help="Quantiles: spend nothing on intervals.",
    ),
    epsilon: float | None = typer.Option(None, "--epsilon", help="The price."),
    delta: float | None = typer.Option(None, "--delta", help="The delta of the price."),
    rho: float | None = typer.Option(None, "--rho", help="The price in zCDP, instead of epsilon."),
    mu: float | None = typer.Option(None, "--mu", help="The price in Gaussian DP, instead of epsilon."),
    within: float | None = typer.Option(None, "--within", help="Pay by accuracy: the error at 95%."),
    preview: bool = typer.Option(
        False, "--preview", help="Print price and expected error; read no data and charge nothing."
    ),
    out: Path | None = typer.Option(
        None, "--out", help="Also write the files of a release to this new folder."
    ),
    key: str | None = typer.Option(
        None, "--key", help="A name for this request; a new name draws new noise and pays again."
    ),
    json: bool = JSON,
) -> None:
    """Ask one question, and pay for it.

    The question is a sentence (STATISTIC [of] COLUMN [by COLUMN, ...] [at SHARES] [in N bins] [with N rows]
    [where CONDITION]), or flags. N rows is a public number, which a density needs. The question is charged and
    recorded like a plan with this release alone; the same question on the same data is answered from the ledger,
    without a charge. The plan's own releases are not made.
    """
    from tacit.curator.plan_files import described, read_plan
    from tacit.curator.sentences import merged, read_sentence
    from tacit.curator.single_query import kind_named, plan_of_one
    from tacit.report.progress import watched

    file = read_plan(path, releases=False)
    flags: dict[str, Any] = {
        "kind": kind_named(statistic) if statistic else None, "column": column or None, "by": by or None,
        "where": where or None, "at": at or None, "bins": bins,
        "interval": False if no_interval else None,
    }  # fmt: skip
    given = {word: value for word, value in flags.items() if value is not None}
    if given.get("kind") == "quantile" and len(at) == 1:
        given["at"] = at[0]
    if sentence or "kind" not in given:
        given = merged(read_sentence(sentence, file.schema), given)
    prices = {"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu, "within": within}
    asked = given | {word: value for word, value in prices.items() if value is not None}
    found = plan_of_one(file, asked)
    made = found.plan()
    if preview:
        if out is not None:
            raise InvalidParameter(
                parameter="--out",
                value=str(out),
                must="be left out with --preview",
                hint="nothing is released",
            )
        fit, problem = _fit(found, made)
        if json:
            print_json(
                {"query": asked, **described(found, made), "fit": None if fit is None else fit.to_dict()}
            )
        else:
            print(made)
            if fit is not None:
                print(visible(str(fit)))
        _exit(fit, problem)
        return
    exports: tuple[str, ...] = ()
    if out is not None:
        exports = wanted(found, "")
        free(out, made)
    files: list[Path] = []
    try:
        with watched("Releasing", quiet=json), found.curator() as curator:
            releases = curator.release(made, key=key)
            if out is not None:
                with nullcontext() if releases[0].replayed else charge_made():
                    files = write_release(out, found, made, releases, curator.budget, exports=exports)
    except KeyboardInterrupt:
        print(f"tacit: interrupted; {INTERRUPTED if out is not None else NOTHING_WRITTEN}", file=sys.stderr)
        raise typer.Exit(130) from None
    (one,) = releases
    if json:
        print_json(_release_values(one, asked, out, files))
        return
    print(one)
    if out is not None:
        print(f"written to {visible(str(out))}: {len(files)} files, report.html among them")


def _release_values(
    release: Release, asked: dict[str, Any], out: Path | None, files: list[Path]
) -> dict[str, Any]:
    spent, left = release.standing
    columns = {name: [_plain(v) for v in held] for name, held in release.columns.items()}
    return {
        "query": asked,
        "name": release.name,
        "charged": not release.replayed,
        "released": True,
        "replayed": release.replayed,
        "columns": columns,
        "quality": list(release.quality),
        "confidence": float(release.planned.ask.confidence),
        "guarantee": release.guarantee.to_dict(),
        "corrections": [str(c) for c in release.corrections],
        "spent": dict(spent.bound.parameters),
        "remaining": dict(left.bound.parameters),
        "out": None if out is None else str(out),
        "files": [str(f) for f in files],
    }


def _plain(value: Any) -> Any:
    """A key or number in JSON's form; days as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)
