"""`tacit synthesise`: carries out a plan with synthetic rows, and writes the rows to a separate file."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from tacit.cli.output import print_json
from tacit.cli.plans import INTERRUPTED, JSON, PLAN, free, write_release
from tacit.errors import InvalidParameter, charge_made, visible

WORST = 5


def synthesise(
    path: Path = PLAN,
    out: Path = typer.Option(..., "--out", help="The folder to write; it must not exist yet."),
    rows: Path | None = typer.Option(
        None, "--rows", help="Also write the rows to this new file, .parquet or .csv."
    ),
    key: str | None = typer.Option(
        None, "--key", help="A name for this request; a new name draws new noise and pays again."
    ),
    json: bool = JSON,
) -> None:
    """Make synthetic rows by a plan and charge its budget.

    The plan has one release, of the kind synthetic_table. Writes what tacit release writes, with the rows
    under rows/. The same plan on the same data is answered from the ledger, free.
    """
    from contextlib import nullcontext

    from tacit.curator.plan_files import read_plan
    from tacit.report.progress import watched

    found = read_plan(path)
    made = found.plan()
    if len(made.releases) != 1 or made.releases[0].question.statistic.fits != "synthesis":
        raise InvalidParameter(
            parameter="PLAN", value=str(path), must='have one release, of kind = "synthetic_table"',
            hint="tacit release carries out plans of any kind",
        )  # fmt: skip
    if rows is not None and (rows.exists() or rows.suffix not in (".parquet", ".csv")):
        raise InvalidParameter(
            parameter="--rows", value=str(rows), must="be a new file that ends in .parquet or .csv"
        )
    free(out, made)
    try:
        with watched("Synthesising", total=2, quiet=json) as step, found.curator() as curator:
            step("charging, reading, measuring, fitting")
            releases = curator.release(made, key=key)
            step("writing")
            with nullcontext() if releases[0].replayed else charge_made():
                files = write_release(out, found, made, releases, curator.budget)
                synthetic = releases[0].synthetic
                if rows is not None:
                    synthetic.write(rows)
    except KeyboardInterrupt:
        print(f"tacit: interrupted; {INTERRUPTED}", file=sys.stderr)
        raise typer.Exit(130) from None
    errors = synthetic.errors()
    worst = sorted(errors.items(), key=lambda pair: -pair[1][2])[:WORST]
    if json:
        print_json(
            {
                "out": str(out),
                "charged": not releases[0].replayed,
                "released": True,
                "files": [str(f) for f in files],
                "charge": made.charge.to_dict(),
                "replayed": releases[0].replayed,
                "rows": len(synthetic.outcome.rows),
                "stand_for": synthetic.total,
                "certificate": synthetic.certificate,
                "worst": [{"margin": synthetic.label(m), "at_most": high} for m, (_, _, high) in worst],
            }
        )
        return
    print(visible(str(synthetic)))
    for margin, (value, _, high) in worst:
        print(visible(f"total variation of {synthetic.label(margin)}: about {value:.3f}, at most {high:.3f}"))
    print(f"written to {out}: " + ", ".join(str(f.relative_to(out)) for f in files))
