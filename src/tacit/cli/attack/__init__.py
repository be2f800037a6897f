"""`tacit attack`: what an outsider can do with a release; one command an attack."""

from __future__ import annotations

import typer

from tacit.cli.attack import answers, released, system
from tacit.cli.plain import PlainCommand, PlainGroup

__all__ = ["attack"]

attack = typer.Typer(
    name="attack",
    cls=PlainGroup,
    no_args_is_help=True,
)


@attack.callback()
def _root() -> None:
    """Attack a release with what an outsider has.

    Prints who is exposed, what is learned, and what guessing alone would get. The output names people and is
    not for publication.
    """


attack.command(name="averaging", cls=PlainCommand)(answers.averaging)
attack.command(name="background", cls=PlainCommand)(released.background)
attack.command(name="counts", cls=PlainCommand)(answers.counts)
attack.command(name="differencing", cls=PlainCommand)(answers.differencing)
attack.command(name="floating-point", cls=PlainCommand)(answers.floating_point)
attack.command(name="histories", cls=PlainCommand)(released.histories)
attack.command(name="homogeneity", cls=PlainCommand)(released.homogeneity)
attack.command(name="intersection", cls=PlainCommand)(released.intersection)
attack.command(name="linkage", cls=PlainCommand)(released.linkage)
attack.command(name="membership", cls=PlainCommand)(answers.membership)
attack.command(name="skewness", cls=PlainCommand)(released.skewness)
attack.command(name="system", cls=PlainCommand)(system.system)
attack.command(name="tables", cls=PlainCommand)(answers.tables)
