"""`tacit noiseless histogram`: from which count on may the cells of a random sample be published exactly?"""

from __future__ import annotations

from pathlib import Path

import typer

from tacit.cli.noiseless import JSON, PLOT, noiseless
from tacit.cli.output import print_json, write_picture
from tacit.cli.plain import PlainCommand

__all__ = ["histogram"]


@noiseless.command(name="histogram", cls=PlainCommand)
def histogram(
    sampling: str = typer.Option(
        ...,
        "--sampling",
        help="poisson, binomial, or fixed: a fixed number of rows, a few discarded at random.",
    ),
    epsilon: float | None = typer.Option(None, "--epsilon", help="The epsilon of the guarantee."),
    delta: float | None = typer.Option(None, "--delta", help="The delta of the guarantee."),
    threshold: int | None = typer.Option(None, "--threshold", help="Smaller counts become 0."),
    rate: str | None = typer.Option(None, "--rate", help="binomial: the largest sampling rate."),
    known_rows: int = typer.Option(
        0, "--known-rows", help="Sampled rows of one cell that an adversary may know."
    ),
    n: int | None = typer.Option(None, "--n", help="fixed: the number of rows."),
    size_epsilon: float | None = typer.Option(
        None,
        "--size-epsilon",
        help="fixed: the part of epsilon that hides the number of kept rows; by default a quarter.",
    ),
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Find the count from which cells may be exact.

    For a random sample; smaller counts are published as 0. Give two of --epsilon, --delta and --threshold.
    """
    from tacit.coupled.noiseless.histograms import truncated_histogram

    found = truncated_histogram(
        sampling=sampling,
        epsilon=epsilon,
        delta=delta,
        threshold=threshold,
        rate=rate,
        known_rows=known_rows,
        n=n,
        size_epsilon=size_epsilon,
    )
    told = found.record
    if plot is not None:
        from tacit.report.thresholds import draw_threshold

        write_picture(plot, lambda path: draw_threshold(found, path))
        told["plot"] = str(plot)
    if json:
        print_json(told)
        return
    print(found.sentence)
    print()
    print(f"  publish counts of at least        {found.threshold}; smaller ones as 0")
    print(f"  epsilon                           {found.epsilon:.6g}   (against {found.simulator})")
    if found.epsilon_pair is not None:
        words = "between two cells of a row, to somebody who knows the distribution"
        print(f"  epsilon_pair                      {found.epsilon_pair:.6g}   ({words})")
    print(
        f"  delta                             {found.delta:.6g}   (reached: {told['delta_at_threshold']:.4g})"
    )
    if sampling == "fixed":
        print(f"  rows discarded at random          0 to {told['discards']}, about {told['discards'] // 2}")
    if told.get("population"):
        print(
            f"  as DP of the population           counts of at least {told['population']['threshold']}, if you draw "
            "the sample yourself, in secret"
        )
    print(
        f"  crowd-blending                    ({found.threshold}, 0): every visible row has {found.threshold} alike"
    )
    print(f"  theorem                           {found.theorem}")
    if plot is not None:
        print(f"Drawn in {plot}")
