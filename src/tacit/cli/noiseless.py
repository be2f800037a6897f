"""`tacit noiseless`: can this be published exactly, given what, with which (epsilon, delta)? It reads no data."""

from __future__ import annotations

import typer

from tacit.cli.plain import PlainGroup

__all__ = ["noiseless"]

noiseless = typer.Typer(
    name="noiseless",
    cls=PlainGroup,
    help="Exact answers: private under which assumption?",
    no_args_is_help=True,
)


@noiseless.callback()
def _root() -> None:
    """Exact answers: private under which assumption?"""
