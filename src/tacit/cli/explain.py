"""`tacit explain`: what a certificate, or a guarantee by its numbers, means in words and in two plots."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_picture, write_whole
from tacit.errors import InvalidParameter, NoLaw, visible

if TYPE_CHECKING:
    from tacit.guarantees import Guarantee
    from tacit.guarantees.theorems import Theorem


def explain(
    certificate: Path | None = typer.Argument(
        None, metavar="CERTIFICATE", help="A certificate, a JSON file."
    ),
    epsilon: float | None = typer.Option(None, "--epsilon", help="Without a certificate: the epsilon."),
    delta: float = typer.Option(0.0, "--delta", help="Without a certificate: the delta."),
    rho: float | None = typer.Option(None, "--rho", help="Instead of epsilon: the rho of zCDP."),
    mu: float | None = typer.Option(None, "--mu", help="Instead of epsilon: the mu of Gaussian DP."),
    plot: Path | None = typer.Option(
        None, "--plot", help="Draw test power and posterior shift to this file."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Explain the promise of a certificate, or of an epsilon.

    Warns if a certificate was changed or is not signed.
    """
    from tacit.curator.verifying import read_certificate
    from tacit.guarantees.guarantee import from_record

    stated = {"epsilon": epsilon, "rho": rho, "mu": mu}
    given = {name: value for name, value in stated.items() if value is not None}
    if len(given) + (certificate is not None) != 1:
        raise InvalidParameter(
            parameter="certificate", value=str(certificate) if certificate else None,
            must="be given, or one of --epsilon, --rho and --mu instead of it",
            hint="tacit explain --epsilon 1 --delta 1e-6",
        )  # fmt: skip
    if delta != 0 and certificate is None and epsilon is None:
        raise InvalidParameter(parameter="delta", value=delta, must="be said with --epsilon only")
    said = None if certificate is None else read_certificate(certificate)
    doubts = _doubts(certificate, said) if certificate is not None and said is not None else []
    guarantee = from_record(said["guarantee"]) if said else _plain(given, delta)
    drawn = None
    if plot is not None:
        from tacit.report.figures import draw_meaning

        drawn = write_picture(plot, lambda path: draw_meaning(guarantee, path))
    if json:
        print_json(
            {
                **({"name": said["name"]} if said else {}),
                "guarantee": guarantee.to_dict(),
                "explanation": guarantee.explain(),
                "power_at_size_0.05": _or_none(lambda: guarantee.power(0.05)),
                "best_guess": _or_none(guarantee.best_guess),
                **({"theorems": said["theorems"], "doubts": doubts} if said else {}),
                **({"plot": str(drawn)} if drawn else {}),
            }
        )
        return
    for doubt in doubts:
        print(textwrap.fill(visible(f"Warning: {doubt}."), 96), end="\n\n")
    print(visible(f"{said['name'] if said else 'A release'} with {guarantee}:") + "\n")
    print(wrapped(guarantee.explain()))
    if said:
        _grounds(said)
    if drawn is not None:
        print(f"\nTest power and posterior shift are drawn in {drawn}")


def _or_none(reading: Callable[[], float]) -> float | None:
    """The number, or null if no number holds under the guarantee's condition."""
    try:
        return reading()
    except NoLaw:
        return None


def _plain(given: dict[str, float], delta: float) -> Guarantee:
    from tacit.guarantees import Approximate, Concentrated, GaussianDP, Guarantee, Pure, rows

    ((name, value),) = given.items()
    if name == "rho":
        return Guarantee(bound=Concentrated(rho=value), unit=rows())
    if name == "mu":
        return Guarantee(bound=GaussianDP(mu=value), unit=rows())
    bound = Approximate(epsilon=value, delta=delta) if delta != 0 else Pure(epsilon=value)
    return Guarantee(bound=bound, unit=rows())


def _doubts(path: Path, said: dict[str, Any]) -> list[str]:
    """Reasons to doubt that a file is unaltered; an unsigned certificate always has one."""
    from tacit.curator.certificate import EARLIER, is_bound
    from tacit.exact.canonical import sha256

    if said["format"] == EARLIER:
        return ["this certificate is of an earlier format and binds nothing: its numbers can be edited, and so can "
                "the values beside it"]  # fmt: skip
    doubts = []
    if not is_bound(said):
        doubts.append(
            "THIS CERTIFICATE WAS CHANGED after it was made: it does not have the digest that it states"
        )
    values = path.absolute().parent.parent / "values" / f"{path.stem}.csv"
    try:
        if sha256(values.read_bytes()) != said["values"]["sha256"]:
            doubts.append(
                f"THE VALUES WERE CHANGED: {values.name} is not the file that this certificate is about"
            )
    except OSError:
        doubts.append("the values that this certificate is about are not beside it, and were not compared")
    if not said["publishable"]:
        doubts.append("the noise is for tests: these numbers must not be published")
    if "signature" not in said:
        doubts.append("this certificate is not signed: anybody who can edit it can edit its digest, too; tacit verify "
                      "compares it with its plan and its ledger")  # fmt: skip
    else:
        doubts.append(
            "this certificate bears a signature, which was not checked here: tacit verify --key does"
        )
    return doubts


def _grounds(said: dict[str, Any]) -> None:
    from tacit.guarantees import theorem

    print("\n" + wrapped(visible(f"Noise: {said['mechanism']['chosen']}")))
    if "random_data" in said:
        print(wrapped(visible(said["random_data"]["sentence"])))
    print(
        wrapped(visible("Its intervals do not cover " + "; ".join(said["intervals"]["do_not_cover"]) + "."))
    )
    for condition in said.get("data", {}).get("conditions", []):
        print(wrapped(visible(f"Believed, and not checked: {condition}.")))
    print(wrapped(visible(said["computational"])))
    print("\nThis rests on:")
    for one in map(theorem, said["theorems"]):
        print(
            textwrap.fill(
                f"{one.id}: {one.statement} ({one.source})", 96, initial_indent="  ", subsequent_indent="    "
            )
        )


def wrapped(text: str) -> str:
    """One paragraph a sentence."""
    return "\n\n".join(textwrap.fill(s.strip() + ".", 96) for s in text.rstrip(".").split(". ") if s.strip())


# `tacit theorem`: what an id in a certificate or a refusal stands for.


def theorem(
    id: str = typer.Argument("", metavar="ID", help="The id of a theorem; without one, all are listed."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """State a theorem, its assumptions, its source and its page.

    Certificates and refusals name theorems by their ids.
    """
    from tacit.guarantees import THEOREMS
    from tacit.guarantees import theorem as find

    if not id:
        _list(list(THEOREMS.values()), json)
        return
    one = find(id)
    if json:
        print_json(_theorem_values(one))
        return
    print(f"{one.id} ({one.standing.value})\n")
    for title, text in (
        ("Statement", one.statement),
        ("Assumptions", one.assumptions),
        ("Source", one.source),
        ("Proof", one.page),
    ):
        print(textwrap.fill(visible(f"{title}: {text}"), 96, subsequent_indent="  "))


def _theorem_values(one: Theorem) -> dict[str, str]:
    return {
        "id": one.id,
        "statement": one.statement,
        "assumptions": one.assumptions,
        "source": one.source,
        "standing": one.standing.value,
        "page": one.page,
    }


def _list(known: list[Theorem], json: bool) -> None:
    if json:
        print_json({"theorems": [_theorem_values(one) for one in known]})
        return
    for one in known:
        print(textwrap.shorten(f"{one.id}: {one.statement}", 110, placeholder=" ..."))


# `tacit reproduce`: a figure or table of the sources, drawn again.


def reproduce(
    name: str = typer.Argument("", help="The figure or table; --list shows the names."),
    list_: bool = typer.Option(False, "--list", help="List the names and stop."),
    out: Path = typer.Option(Path("out/reproduce"), "--out", help="The folder for PNG, SVG and CSV."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Draw a figure or table of the literature with our numbers."""
    from tacit.reproduce import REPRODUCTIONS, reproduction

    if list_:
        _list_reproductions([reproduction(known) for known in REPRODUCTIONS], json)
        return
    if not name:
        raise InvalidParameter(
            parameter="name",
            value="",
            must="name a figure or table",
            hint="tacit reproduce --list shows them",
        )
    found = reproduction(name)
    made = found.make()
    files = [write_whole(out / f"{found.name}.csv", made.write_table)]
    if made.draw is not None:
        files += [
            write_whole(out / f"{found.name}{ending}", made.write_picture) for ending in (".png", ".svg")
        ]
    if json:
        print_json(
            {
                "name": found.name,
                "title": found.title,
                "source": found.source,
                "columns": list(made.columns),
                "rows": [list(row) for row in made.rows],
                "notes": list(made.notes),
                "files": [str(path) for path in files],
            }
        )
        return
    print(f"{found.title} ({found.source})\n")
    for note in made.notes:
        print(f"- {note}")
    print("\nWritten: " + ", ".join(str(path) for path in files))


def _list_reproductions(known: list[object], json: bool) -> None:
    from tacit.reproduce import Reproduction

    found = [r for r in known if isinstance(r, Reproduction)]
    if json:
        print_json({"reproductions": [{"name": r.name, "title": r.title, "source": r.source} for r in found]})
        return
    width = max(len(r.name) for r in found)
    for r in found:
        print(f"{r.name:<{width}}  {r.title} ({r.source})")
