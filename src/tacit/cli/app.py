"""The commands, registered in one place."""

from __future__ import annotations

import typer

import tacit
from tacit.cli.account import EventCommand, account, calibrate
from tacit.cli.attack import attack
from tacit.cli.audit import audit
from tacit.cli.check import check, treat
from tacit.cli.demo import demo, twin
from tacit.cli.distance import distance
from tacit.cli.explain import explain, reproduce, theorem
from tacit.cli.export import export
from tacit.cli.init import init, inspect
from tacit.cli.joint import joint
from tacit.cli.ledger import ledger
from tacit.cli.noiseless import coupled, noiseless
from tacit.cli.optimal import optimal
from tacit.cli.plans import key, plan, release, verify
from tacit.cli.query import query
from tacit.cli.random import random
from tacit.cli.running import running
from tacit.cli.serve import serve
from tacit.cli.synthesise import synthesise

app = typer.Typer(
    name="tacit",
    help="Publish statistics about people under differential privacy (DP), with a certificate for each.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    """Publish statistics about people under differential privacy (DP), with a certificate for each."""
    if version:
        print(tacit.__version__)
        raise typer.Exit()
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command(name="account", cls=EventCommand)(account)
app.add_typer(attack, name="attack")
app.command(name="audit")(audit)
app.command(name="calibrate", cls=EventCommand)(calibrate)
app.command(name="check")(check)
app.add_typer(coupled, name="coupled")
app.command(name="demo")(demo)
app.command(name="distance")(distance)
app.command(name="explain")(explain)
app.add_typer(export, name="export")
app.command(name="init")(init)
app.command(name="inspect")(inspect)
app.add_typer(key, name="key")
app.add_typer(joint, name="joint")
app.add_typer(ledger, name="ledger")
app.add_typer(noiseless, name="noiseless")
app.add_typer(optimal, name="optimal")
app.command(name="plan")(plan)
app.command(name="query")(query)
app.add_typer(random, name="random")
app.command(name="release")(release)
app.command(name="reproduce")(reproduce)
app.command(name="running")(running)
app.command(name="serve")(serve)
app.command(name="synthesise")(synthesise)
app.command(name="theorem")(theorem)
app.command(name="treat")(treat)
app.command(name="twin")(twin)
app.command(name="verify")(verify)
