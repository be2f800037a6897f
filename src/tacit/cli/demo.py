"""`tacit demo`: one guarantee, explained in words and in pictures."""

from __future__ import annotations

from pathlib import Path

import typer

from tacit.cli.output import print_json, write_whole

__all__ = ["demo"]


def demo(
    out: Path = typer.Option(Path("out/demo"), "--out", help="Folder for the picture."),
    epsilon: float = typer.Option(1.0, "--epsilon", help="The guarantee's epsilon."),
    delta: float = typer.Option(1e-6, "--delta", help="The guarantee's delta; 0 for pure epsilon."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of sentences."),
) -> None:
    """Explain one guarantee in plain words, and draw what an adversary gains from it."""
    from tacit.guarantees import Approximate, Guarantee, Pure, rows
    from tacit.report.figures import draw_guarantee

    bound = Approximate(epsilon=epsilon, delta=delta) if delta != 0 else Pure(epsilon=epsilon)
    guarantee = Guarantee(bound=bound, unit=rows())
    picture = write_whole(out / "guarantee.png", lambda path: draw_guarantee(guarantee, path))
    if json:
        print_json(
            {
                "guarantee": guarantee.record,
                "explanation": guarantee.explain(),
                "power_at_size_0.05": guarantee.power(0.05),
                "best_guess": guarantee.best_guess(),
                "picture": str(picture),
            }
        )
        return
    print(f"A release with {guarantee}:\n")
    print(_wrapped(guarantee.explain()))
    print(f"\nThe curve, the best test and the change of beliefs are drawn in {picture}")


def _wrapped(text: str) -> str:
    import textwrap

    return "\n\n".join(textwrap.fill(s.strip() + ".", 96) for s in text.rstrip(".").split(". ") if s.strip())
