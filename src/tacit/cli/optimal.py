"""`tacit optimal`: the best possible mechanism for a count, with a proof."""

from __future__ import annotations

import json as json_library
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_picture, write_whole
from tacit.errors import InvalidParameter
from tacit.exact.rounding import digits_down

if TYPE_CHECKING:
    from tacit.risk.certificate import Certificate, Loss
    from tacit.risk.count import OptimalCount
    from tacit.risk.finite import OptimalFinite


optimal = typer.Typer(
    name="optimal",
    help="Optimal mechanisms, with a proof of optimality.",
    no_args_is_help=True,
)


@optimal.callback()
def _root() -> None:
    """Optimal mechanisms (least risk), with a certificate."""


@optimal.command(name="count")
def count(
    n: int = typer.Option(..., "--n", help="The largest possible count; public."),
    epsilon: float = typer.Option(..., "--epsilon", help="The epsilon of epsilon-DP."),
    delta: float = typer.Option(0.0, "--delta", help="Above 0: (epsilon, delta)-DP, for n up to 200."),
    loss: str = typer.Option(
        "absolute", "--loss", help="absolute, squared, zero-one, or a CSV or JSON file."
    ),
    criterion: str = typer.Option("minimax", "--criterion", help="minimax, or bayes with a prior."),
    prior: str = typer.Option("", "--prior", help="For bayes: a CSV or JSON file; by default uniform."),
    out: Path | None = typer.Option(None, "--out", help="Write the mechanism to this JSON file."),
    plot: Path | None = typer.Option(
        None, "--plot", help="Draw the error of several mechanisms against epsilon to this file."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Compute the best mechanism for a count on 0..n.

    Prints its risk, and a lower bound for all private mechanisms. Reads no data.
    """
    from tacit.risk.certificate import LOSSES, as_loss, criterion_parameter, epsilon_level, range_parameter
    from tacit.risk.remap import is_compact, solve_compact

    range_parameter(n)
    epsilon_level(epsilon)
    criterion_parameter(criterion)
    what = as_loss(loss if loss in LOSSES else _numbers(loss, "loss"))
    what.fit(n)
    if plot is not None and (loss != "absolute" or criterion != "minimax" or delta != 0):
        raise InvalidParameter(
            parameter="plot", value=str(plot), must="go with absolute loss, minimax and a delta of 0"
        )
    given = _row(_numbers(prior, "prior")) if prior else None
    made: OptimalCount | OptimalFinite | None = None
    if out is None and delta == 0 and is_compact(what, criterion):
        certificate = solve_compact(n, epsilon, what, criterion, given)[1]
    else:
        from tacit.risk.count import optimal_count

        made = optimal_count(n=n, epsilon=epsilon, loss=what, criterion=criterion, prior=given, delta=delta)
        certificate = made.certificate
    told: dict[str, Any] = {
        "n": n,
        "epsilon": epsilon,
        "delta": delta,
        "loss": loss,
        "criterion": criterion,
        "method": certificate.method,
        "risk": certificate.risk,
        "lower_bound": certificate.lower_bound,
        "gap": certificate.gap,
        "solved": certificate.solved,
        "truncated_geometric": _plain(what, certificate, n, epsilon),
        "theorem": certificate.theorem,
    }
    if out is not None and made is not None:
        whole = {**told, "mechanism": made.noise_distribution, "prior": certificate.prior.tolist()}
        write_whole(out, lambda path: _write(path, whole))
        told["out"] = str(out)
    if plot is not None:
        from tacit.report.figures import draw_prices

        write_picture(plot, lambda path: draw_prices("count", path, n=n))
        told["plot"] = str(plot)
    if json:
        print_json(told)
        return
    _say(told)


@optimal.command(name="body")
def body(
    n: int = typer.Option(..., "--n", help="The largest possible count, up to 40; public."),
    epsilon: float = typer.Option(..., "--epsilon", help="The epsilon of (epsilon, delta)-DP."),
    delta: float = typer.Option(0.0, "--delta", help="The delta of (epsilon, delta)-DP."),
    counts: str = typer.Option("", "--counts", help="The two counts, as 0,3; by default 0 and n."),
    loss: str = typer.Option(
        "absolute", "--loss", help="absolute, squared, zero-one, or a CSV or JSON file."
    ),
    plot: Path | None = typer.Option(None, "--plot", help="Draw the body to this file."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Compute the risk body of a count, seen at two counts.

    The pairs of expected losses that private mechanisms can have. Reads no data.
    """
    from tacit.risk.bodies import risk_shadow
    from tacit.risk.certificate import LOSSES

    try:
        pair = tuple(int(part) for part in counts.split(",")) if counts else None
    except ValueError:
        raise InvalidParameter(parameter="counts", value=counts[:40], must="be two counts, as 0,3") from None
    if pair is not None and len(pair) != 2:
        raise InvalidParameter(parameter="counts", value=counts[:40], must="be two counts, as 0,3")
    found = risk_shadow(
        n=n,
        epsilon=epsilon,
        delta=delta,
        counts=None if pair is None else (pair[0], pair[1]),
        loss=loss if loss in LOSSES else _numbers(loss, "loss"),
    )
    told: dict[str, Any] = {**found.to_dict(), "loss": loss, "theorem": "risk-bodies"}
    if plot is not None:
        from tacit.report.figures import draw_risk_body

        write_picture(plot, lambda path: draw_risk_body(found, path))
        told["plot"] = str(plot)
    if json:
        print_json(told)
        return
    level = f"epsilon = {epsilon:g}" + (f", delta = {delta:g}" if delta else "")
    x, y = found.counts
    print(f"A count on 0..{n}, {level}, {loss} loss: the expected losses at {x} and at {y}.")
    for a, b in found.inner.tolist():
        print(f"  {a:.6g}, {b:.6g}")
    print(f"No private mechanism is further out than {found.gap:.2g} beyond these corners.")
    if plot is not None:
        print(f"Drawn in {plot}")


@optimal.command(name="histogram")
def histogram(
    n: int = typer.Option(..., "--n", help="The number of rows; public."),
    epsilon: float = typer.Option(..., "--epsilon", help="The epsilon of epsilon-DP, rows replaced."),
    cells: int | None = typer.Option(None, "--cells", help="The number of cells, all equally likely."),
    probabilities: str = typer.Option(
        "", "--probabilities", help="Instead of --cells: the probability of each cell, as 0.5,0.3,0.2."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Bound the Bayes risk of a histogram from both sides.

    For independent rows with known probabilities; the loss is the sum of absolute errors. Reads no data.
    """
    from tacit.risk.bayes import histogram_bayes

    try:
        given = [float(part) for part in probabilities.split(",")] if probabilities else None
    except ValueError:
        raise InvalidParameter(
            parameter="probabilities", value=probabilities[:40], must="be numbers, separated by commas"
        ) from None
    found = histogram_bayes(n=n, epsilon=epsilon, cells=cells, probabilities=given)
    if json:
        print_json(found.to_dict())
        return
    print(
        f"A histogram of {found.n:,} rows in {found.cells:,} cells, epsilon = {epsilon:g}, one row replaced."
    )
    print(f"  {'expected total error':<34}{found.risk:.6g}   ({found.mechanism})")
    print(f"  {'no private mechanism goes below':<34}{digits_down(found.lower_bound, 6)}")
    print(f"  {'without any data':<34}{found.constant:.6g}")


def _plain(loss: Loss, certificate: Certificate, n: int, epsilon: float) -> float | None:
    """The risk of the truncated geometric mechanism under the same loss, if both have the same outputs."""
    import numpy as np

    from tacit.risk.certificate import GeometricKernel, height_risks
    from tacit.risk.remap import truncated_geometric_risk

    if loss.table is not None and loss.table.shape[1] != n + 1:
        return None
    if certificate.criterion == "minimax":
        return truncated_geometric_risk(n, epsilon, loss)
    risks = height_risks(GeometricKernel(n=n, epsilon=epsilon), loss, np.arange(n + 1.0))
    return float(risks @ certificate.prior)


def _say(told: dict[str, Any]) -> None:
    worst = "worst expected loss" if told["criterion"] == "minimax" else "expected loss under the prior"
    level = f"epsilon = {told['epsilon']:g}" + (f", delta = {told['delta']:g}" if told["delta"] else "")
    print(f"A count on 0..{told['n']}, {level}, {told['loss']} loss, {told['criterion']}.")
    print(f"  {worst:<34}{told['risk']:.6g}")
    print(f"  {'no private mechanism goes below':<34}{digits_down(told['lower_bound'], 6)}")
    print(f"  {'gap':<34}{told['gap']:.2g}")
    if told["truncated_geometric"] is not None:
        print(f"  {'the truncated geometric has':<34}{told['truncated_geometric']:.6g}")
    print(f"  {'method':<34}{told['method']}")
    if not told["solved"]:
        print(
            "The solver stopped early: the mechanism is private and may be this gap away from the best one."
        )
    if "out" in told:
        print(f"The mechanism is in {told['out']}")
    if "plot" in told:
        print(f"Errors against epsilon are drawn in {told['plot']}")


def _write(path: Path, whole: dict[str, Any]) -> None:
    path.write_text(json_library.dumps(whole, indent=1) + "\n", encoding="utf-8")


def _numbers(name: str, parameter: str) -> Any:
    """A matrix (or a list) of numbers from a CSV or JSON file."""
    path = Path(name)
    hint = (
        "give absolute, squared or zero-one, or a file"
        if parameter == "loss"
        else "one number for each count"
    )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(
            parameter=parameter, value=name, must="be a known name or a file that can be read", hint=hint
        ) from None
    try:
        if path.suffix == ".json":
            return json_library.loads(text)
        lines = [line for line in text.splitlines() if line.strip()]
        return [[float(cell) for cell in line.split(",")] for line in lines]
    except ValueError:
        raise InvalidParameter(
            parameter=parameter, value=name, must="hold numbers only, separated by commas", hint=hint
        ) from None


def _row(values: Any) -> Any:
    """A prior written as one row, or as one number a line."""
    if isinstance(values, list) and values and all(isinstance(v, list) for v in values):
        return values[0] if len(values) == 1 else [math.nan if len(v) != 1 else v[0] for v in values]
    return values
