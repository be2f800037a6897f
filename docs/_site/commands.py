"""docs/cli.md, made from the help of the commands: `python docs/_site/commands.py` writes it.

A contract test compares the page with what this file makes.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "cli.md"
HEAD = """\
# The command line

`python docs/_site/commands.py` makes this page from the help of the commands.

- `--json` prints one JSON object with stable keys and all digits; `--help` lists the keys and shows an example. Every \
command has both. Infinite or undefined numbers are the strings `"inf"`, `"-inf"` and `"nan"`.
- Exit codes: **0** done; **1** refused, or something does not hold; **2** bad input, nothing charged or written; \
**3** charged and nothing released (JSON: `"charged": true`, `"released": false`); **130** interrupted.
- An error is one sentence on standard error that begins with `tacit:`.
- Files are written whole or not at all. A charge stays spent after an interruption.
- A value in parentheses after an option is its default. Examples with `out/demo` run as they stand after \
`tacit demo`; the others name files of your own.
- *Also* names options that several commands have alike; a star means that they are explained here, and the others \
under the heading of their group. *With* names options of one command, which `--help` explains.

Options of commands in several groups:

"""
# Where the guides say more than the help does.
MORE = {
    "account": "[accounting](accounting.md)",
    "attack": "[attacks](attacks.md)",
    "check": "[anonymity](anonymity.md)",
    "coupled": "[coupled worlds](coupled.md)",
    "init": "[data](data.md)",
    "joint": "[several holders](parties.md)",
    "ledger": "[ledger](ledger.md), [at the desk](desk.md)",
    "noiseless": "[exact answers](exact-answers.md)",
    "plan": "[the curator](curator.md)",
    "random": "[random data](random-data.md)",
    "release": "[the curator](curator.md), [the report](report.md)",
    "reproduce": "[reproduction](reproduction/README.md)",
    "serve": "[the desk in a browser](server.md), [its security](server-security.md)",
    "theorem": "[theory](theory/README.md)",
    "treat": "[anonymity](anonymity.md)",
    "verify": "[a second opinion](second-opinion.md)",
}

# Groups with guides of their own: the page names the options of one command alone, and --help explains them.
BRIEF = {"attack", "noiseless", "optimal", "random"}

# A command with options of another one, whose section has them.
LIKE = {"calibrate": "account"}


def page() -> str:
    """The whole page."""
    import typer.main

    from tacit.cli.app import app
    from tacit.cli.examples import commands

    found = dict(commands(typer.main.get_command(app)))
    common, shared = _common(found), _shared(found)
    head = HEAD + "\n".join(common) + "\n"
    return "\n".join([head, *(_section(name, found[name], common, shared) for name in sorted(found))])


def _common(found: dict[str, Any]) -> list[str]:
    """The options that commands of two groups or more have alike."""
    groups: dict[str, set[str]] = {}
    for name, command in found.items():
        for row in _rows(command):
            groups.setdefault(row, set()).add(name.split()[0] if name else "")
    return sorted(row for row, of in groups.items() if len(of) >= 2)


def _shared(found: dict[str, Any]) -> dict[str, list[str]]:
    """The rows that stand elsewhere: of a group those that two of its commands have alike, and what LIKE says."""
    rows: dict[str, Counter[str]] = {}
    for name, command in found.items():
        if " " in name:
            rows.setdefault(name.split()[0], Counter()).update(_rows(command))
    alike = {group: [row for row, n in counted.items() if n >= 2] for group, counted in rows.items()}
    return alike | {name: _rows(found[other]) for name, other in LIKE.items()}


def _section(name: str, command: Any, common: list[str], shared: dict[str, list[str]]) -> str:
    from tacit.cli.examples import EXAMPLES

    full = f"tacit {name}".strip()
    text = _plain(" ".join(inspect.cleandoc(command.help or "").split()))
    lines = [f"## {full}", "", f"{text} See {MORE[name]}." if name in MORE else text, ""]
    if name not in EXAMPLES:
        lines += [row for row in shared.get(name) or _rows(command) if row not in common]
    else:
        here = shared.get(name, shared.get(name.split()[0], []) if " " in name else [])
        rows = [row for row in _rows(command) if row not in common and row not in here]
        also = [_first(row) for row in _rows(command) if row in here and row not in common and "`-" in row]
        also += [_first(row) + "\\*" for row in _rows(command) if row in common and row.startswith("- `-")]
        told = f", also {', '.join(also)}" if also else ""
        told += f" of `tacit {LIKE[name]}`" if name in LIKE else ""
        if " " in name and name.split()[0] in BRIEF:
            own = [_first(row) for row in rows if row.startswith("- `-")]
            rows = [row for row in rows if not row.startswith("- `-")]
            told = (f", with {', '.join(own)}" if own else "") + told
        if told or _places(command):
            lines += [f"`{' '.join([full, *_places(command)])}`{told}", ""]
        lines += rows
        lines += ["", "```sh", f"tacit {EXAMPLES[name].line}", "```", ""]
    if name == "account":
        lines += [*_events(), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def _places(command: Any) -> list[str]:
    places = [
        _name(p) if p.required else f"[{_name(p)}]" for p in command.params if p.param_type_name == "argument"
    ]
    return places or (["COMMAND"] if hasattr(command, "commands") else [])


def _name(param: Any) -> str:
    return str(param.metavar or param.name.upper()) + (
        "..." if param.nargs == -1 and not param.metavar else ""
    )


def _first(row: str) -> str:
    return row.split(": ")[0].removeprefix("- ")


def _rows(command: Any) -> list[str]:
    return [_row(p) for p in command.params if not {"--help", "--json"} & set(p.opts)]


def _row(param: Any) -> str:
    if param.param_type_name == "argument":
        name = f"`{_name(param)}`"
    else:
        name = " / ".join(f"`{o}`" for o in [*param.opts, *param.secondary_opts])
    text = _plain(param.help or "").removesuffix(".")
    if param.param_type_name == "option" and param.required:
        text += "; required"
    default = param.default
    silent = param.show_default is False or param.required or isinstance(default, bool)
    if not silent and default not in (None, "", [], ()):
        text += f" (`{default:g}`)" if isinstance(default, float) else f" (`{default}`)"
    return f"- {name}: {text}"


def _events() -> list[str]:
    from tacit.accounting.codec import vocabulary

    told = [
        "Under the chosen neighbours `noise_multiplier` is noise_std / l2_sensitivity, and epsilon of Laplace noise is "
        "l1_sensitivity / noise_scale. For `dp_sgd`, and for Poisson sampling under replace-one, the multiplier is "
        "noise_std over the largest norm of one record. Events ([glossary](glossary.md#accounting)), `[times]` after "
        "any of them, and ? for the value to calibrate:",
        "",
    ]
    for line in vocabulary():
        word, values, meaning = re.fullmatch(r"(.+?) {2,}(.*?): (.*)", line).groups()  # type: ignore[union-attr]
        if word.endswith("_WORD"):
            told.append(f"- `{word} {values.replace('=', '')}`: {meaning}")
        elif " " not in word:
            told.append(f"- `{word} {values.replace('=', '')}`")
    return told


def _plain(text: str) -> str:
    """Text of the help that no Markdown reader takes for marks."""
    return re.sub(r"([*<])", r"\\\1", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

    from tables import write

    write()
