"""`tacit random`: the claims of random differential privacy, and their gain; it reads no data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json
from tacit.errors import InvalidParameter
from tacit.exact.checks import whole
from tacit.exact.rounding import digits_up

if TYPE_CHECKING:
    from tacit.guarantees import Guarantee


random = typer.Typer(
    name="random",
    help="Random differential privacy: weaker than DP.",
    no_args_is_help=True,
)

_N = typer.Option(..., "--n", help="The number of rows; with add-or-remove, a lower bound.")
_EPSILON = typer.Option(..., "--epsilon", help="The epsilon, for all but a share gamma of the data.")
_GAMMA = typer.Option(..., "--gamma", help="The share of the data on which the bound may fail.")
_NEIGHBOURS = typer.Option("replace-one", "--neighbours", help="replace-one or add-or-remove.")
_PLAIN = (
    "With noise on {} this is plain DP, {}, whatever the data are, and takes nothing from gamma; a larger gamma or "
    "more rows would change it. The next lines describe releases that do."
)
_JSON = typer.Option(False, "--json", help="Print one JSON object.")


@random.callback()
def _root() -> None:
    """Random differential privacy: weaker than DP."""


@random.command(name="proportion")
def proportion(
    n: int = _N,
    count: int = typer.Option(..., "--count", help="A made-up count; never the real one."),
    epsilon: float = _EPSILON,
    gamma: float = _GAMMA,
    neighbours: str = _NEIGHBOURS,
    json: bool = _JSON,
) -> None:
    """Check whether a made-up count may be published exactly.

    Prints the error beside that of DP with the same epsilon.
    """
    from tacit.guarantees import Neighbours
    from tacit.random_data import RandomProportion

    made = RandomProportion(rows=n, epsilon=epsilon, gamma=gamma, neighbours=Neighbours.parse(neighbours))
    exact = made.is_exact(count)
    told = {
        "exact": exact,
        "n": n,
        "count": count,
        "epsilon": epsilon,
        "gamma": gamma,
        "neighbours": neighbours,
        "exact_up_to": made.largest_exact(),
        "expected_error": made.expected_error(count),
        "plain_expected_error": made.noise.expected_error(),
        "differentially_private": made.largest_exact() is None,
        **_promise(made.guarantee, "random-proportion"),
    }
    if json:
        print_json(told)
        return
    print(f"A count of {count} among {n} rows, epsilon = {epsilon:g}, gamma = {gamma:g}.")
    most = told["exact_up_to"]
    print(f"  published exactly             {'yes' if exact else 'no: with noise'}")
    print(f"  exact up to                   {'no count is' if most is None else most}")
    print(f"  expected error                {told['expected_error']:.4g}")
    print(f"  with DP at the same epsilon   {told['plain_expected_error']:.4g}")
    if most is None:
        print(_PLAIN.format("any count", made.guarantee.bound))
    _warn(made.guarantee)


@random.command(name="histogram")
def histogram(
    n: int = _N,
    cells: int = typer.Option(..., "--cells", help="The number of cells, fixed in advance."),
    epsilon: float = _EPSILON,
    gamma: float = _GAMMA,
    occupied: int | None = typer.Option(
        None, "--occupied", help="A made-up number of cells with noise; by default all."
    ),
    small_cells: bool = typer.Option(
        False, "--small-cells", help="Publish small cells exactly too, not only empty ones."
    ),
    sharp: bool = typer.Option(
        False, "--sharp", help="Use the largest threshold that exact enumeration allows."
    ),
    neighbours: str = _NEIGHBOURS,
    json: bool = _JSON,
) -> None:
    """Find the cells of a histogram that may be exact.

    Prints the error beside that of DP with the same epsilon.
    """
    from tacit.guarantees import Neighbours
    from tacit.random_data import RandomHistogram

    made = RandomHistogram(
        rows=n,
        cells=cells,
        epsilon=epsilon,
        gamma=gamma,
        small_cells=small_cells,
        sharp=sharp,
        neighbours=Neighbours.parse(neighbours),
    )
    below = made.exact_below
    noisy = cells if occupied is None or below == 0 else occupied
    if occupied is not None and whole("occupied", occupied, least=0) > cells:
        raise InvalidParameter(parameter="occupied", value=occupied, must="be at most the number of cells")
    told = {
        "exact": below > 0,
        "exact_below": below,
        "n": n,
        "cells": cells,
        "epsilon": epsilon,
        "gamma": gamma,
        "neighbours": neighbours,
        "noisy_cells": noisy,
        "expected_error": made.expected_error(noisy_cells=noisy),
        "plain_expected_error": made.expected_error(noisy_cells=cells),
        "differentially_private": not below,
        **_promise(made.guarantee, "random-histogram"),
    }
    if json:
        print_json(told)
        return
    print(f"A histogram of {n} rows in {cells} cells, epsilon = {epsilon:g}, gamma = {gamma:g}.")
    if below:
        which = "empty cells" if below == 1 else f"cells with fewer than {below} rows"
        print(f"  published exactly             {which}")
    else:
        print("  published exactly             no cell: too few rows for so many cells, so all get noise")
    print(f"  expected L1 error             {told['expected_error']:.4g}  ({noisy} cells with noise)")
    print(f"  with DP at the same epsilon   {told['plain_expected_error']:.4g}")
    if not below:
        print(_PLAIN.format("every cell", made.guarantee.bound))
    _warn(made.guarantee)


@random.command(name="density")
def density(
    n: int = _N,
    low: float = typer.Option(..., "--low", help="The lower end of the declared range."),
    high: float = typer.Option(..., "--high", help="The upper end of the declared range."),
    bins: int = typer.Option(..., "--bins", help="The number of cells, fixed in advance."),
    bandwidth: float = typer.Option(..., "--bandwidth", help="The bandwidth of the kernel estimate."),
    epsilon: float = _EPSILON,
    gamma: float = _GAMMA,
    occupied: int | None = typer.Option(
        None, "--occupied", help="A made-up number of occupied cells; by default all."
    ),
    distance: float | None = typer.Option(
        None, "--distance", help="A made-up distance that most pairs of rows stay within."
    ),
    json: bool = _JSON,
) -> None:
    """Compare a kernel density estimate with that of DP.

    Smoothed from a histogram whose empty cells are exact. Reads no data.
    """
    from tacit.random_data import RandomDensity, pairs_gain

    made = RandomDensity(
        rows=n, low=low, high=high, bins=bins, bandwidth=bandwidth, epsilon=epsilon, gamma=gamma
    )
    told: dict[str, Any] = {
        "n": n,
        "epsilon": epsilon,
        "gamma": gamma,
        "bandwidth": bandwidth,
        **made.to_dict(occupied=occupied),
        "pairs_gain": None if distance is None else pairs_gain(distance=distance, bandwidth=bandwidth),
        "differentially_private": not made.histogram.exact_below,
        **_promise(made.guarantee, "random-kernel-density"),
    }
    if json:
        print_json(told)
        return
    level = f"epsilon = {epsilon:g}, gamma = {gamma:g}"
    print(f"A kernel estimate of {n} rows, bandwidth {bandwidth:g}, {bins} cells, {level}.")
    print(
        f"  noise of the curve            {told['noise_error']:.4g}  ({told['noisy_cells']} cells with noise)"
    )
    print(f"  with DP at the same epsilon   {told['plain_noise_error']:.4g}")
    if told["pairs_gain"] is not None:
        print(f"  noise sized by pairs of rows  {told['pairs_gain']:.4g} times that for the worst pair")
    if not made.histogram.exact_below:
        print(_PLAIN.format("every cell", made.guarantee.bound))
    _warn(made.guarantee)


@random.command(name="sensitivity")
def sensitivity(
    n: int = _N,
    epsilon: float = _EPSILON,
    gamma: float = _GAMMA,
    delta: float = typer.Option(1e-6, "--delta", help="The delta of the private quantile."),
    levels: int = typer.Option(30, "--levels", help="The number of public levels of the private quantile."),
    confidence: float | None = typer.Option(
        None, "--confidence", help="The confidence in gamma over the draws of the oracle."
    ),
    change: float | None = typer.Option(
        None, "--change", help="A made-up difference of two rows, for the error of a mean."
    ),
    width: float | None = typer.Option(
        None, "--width", help="The declared range of a row, for the error of the mean with DP."
    ),
    json: bool = _JSON,
) -> None:
    """Bound the change of a statistic of unbounded data.

    By samples of a public oracle, and by a private quantile over pairs of rows.
    """
    from tacit.mechanisms.gaussian import delta_parameter
    from tacit.random_data import ChangesByQuantile, SampledSensitivity, dkw_draws

    if confidence is None:
        sampled = SampledSensitivity.for_gamma(rows=n, gamma=gamma, epsilon=epsilon)
    else:
        sampled = SampledSensitivity.for_confidence(
            rows=n, gamma=gamma, confidence=confidence, epsilon=epsilon
        )
    error, pairs_error, plain_error = _mean_errors(n, epsilon, change, width)
    delta_parameter(delta)
    whole("levels", levels, least=1)
    told: dict[str, Any] = {
        "exact": False,
        "n": n,
        "epsilon": epsilon,
        "gamma": gamma,
        "draws": sampled.draws,
        "rank": sampled.rank,
        "draws_by_dkw": dkw_draws(gamma),
        "confidence": confidence,
        "noise_scale_per_sensitivity": 1 / epsilon,
        "change": change,
        "width": width,
        "expected_error": error,
        "plain_expected_error": plain_error,
        "pairs": None,
        **_promise(sampled.guarantee, "random-sensitivity-sampling"),
    }
    problem = ""
    try:
        # Equal steps stand for any levels: rank and slack depend on their number only.
        pairs = ChangesByQuantile.for_target(
            rows=n, levels=tuple(range(1, levels + 1)), gamma=gamma, delta=delta,
            choice_epsilon=epsilon / 2, release_epsilon=epsilon / 2,
        )  # fmt: skip
    except InvalidParameter as refused:
        if refused.parameter != "rows":
            raise
        problem = str(refused)
    else:
        told["pairs"] = {
            "pairs": pairs.pairs,
            "rank": pairs.rank,
            "slack": pairs.slack,
            "delta": float(getattr(pairs.guarantee.bound, "delta", 0.0)),
            "noise_scale_per_level": 2 / (n * epsilon),
            "expected_error": pairs_error,
            "theorem": "random-private-quantile",
        }
    if json:
        print_json(told)
        return
    print(f"A statistic of {n} rows, epsilon = {epsilon:g}, gamma = {gamma:g}. Nothing is published exactly.")
    print(f"  by a public oracle            {sampled.draws} sampled sensitivities, the largest is used")
    print(f"  (by the DKW inequality        {told['draws_by_dkw']})")
    if told["pairs"] is None:
        print(f"  by pairs of rows              not possible: {problem}")
    else:
        print(
            f"  by pairs of rows              the {told['pairs']['rank']}-th of {told['pairs']['pairs']} changes, "
            f"chosen privately; delta = {digits_up(told['pairs']['delta'], 2)}"
        )
    print("  with DP                       bounds must be declared, and noise is sized by them")
    if error is not None:
        print(f"  expected error of a mean      {error:.4g} by the oracle", end="")
        print("" if told["pairs"] is None else f", {pairs_error:.4g} by pairs, if they choose this change")
    if plain_error is not None:
        print(f"  with DP at the same epsilon   {plain_error:.4g}")
    _warn(sampled.guarantee)


def _mean_errors(
    n: int, epsilon: float, change: float | None, width: float | None
) -> tuple[float | None, float | None, float | None]:
    """E |error| of a mean: by the oracle, by pairs (half of epsilon chooses the level), and with declared bounds."""
    from tacit.exact.checks import positive

    if change is not None:
        positive("change", change)
    if width is not None:
        positive("width", width)
    by_oracle = None if change is None else change / (n * epsilon)
    return (
        by_oracle,
        None if by_oracle is None else 2 * by_oracle,
        None if width is None else width / (n * epsilon),
    )


def _promise(guarantee: Guarantee, theorem: str) -> dict[str, Any]:
    return {
        "guarantee": str(guarantee),
        "condition": str(guarantee.condition),
        "theorem": theorem,
    }


def _warn(guarantee: Guarantee) -> None:
    print()
    print(guarantee.explain())
