"""The folder of a running total: all figures so far, a certificate for each, and a picture.

    figures.csv, figures.png, certificates/step-7.json, running.json

`running.json` says which series the folder belongs to, and which figures were withdrawn or replaced. Each further step
replaces `figures.csv` and `figures.png`; the lines of earlier steps stay the same, since no figure is revised.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.curator.cells import csv_text
from tacit.curator.certificate import json_text
from tacit.curator.running import Figure, RunningSeries, RunningTotal, series_digest
from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    import pandas as pd

SERIES = "running.json"
MOST_LINES = 8
"""Groups that a picture has room for."""


def check_folder(out: Path, series: RunningSeries) -> None:
    """Refuse a folder of something else, or one that cannot be written, before anything is spent."""
    problem = ""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        try:
            said = json.loads((out / SERIES).read_text(encoding="utf-8"))
            if said.get("series") != series_digest(series):
                problem = "it belongs to another running total"
        except (OSError, ValueError, AttributeError):
            problem = "it has other files"
    if not problem:
        try:
            above = next(p for p in (out, *out.absolute().parents) if p.exists())
            with tempfile.TemporaryFile(dir=above, prefix=".tacit-"):
                pass
        except OSError as failure:
            problem = (failure.strerror or "it cannot be written").lower()
    if problem:
        raise InvalidParameter(
            parameter="--out", value=str(out), must="be a new folder, or that of this running total", hint=problem
        )  # fmt: skip


def write_figures(out: Path, total: RunningTotal, figure: Figure) -> list[Path]:
    """Writes the figures so far and the certificate of this one; an interrupted write leaves each file complete."""
    table = total.table
    columns = {str(name): table[name].tolist() for name in table.columns}
    named = {
        "series": series_digest(total.series),
        "name": total.series.name,
        "steps": total.series.factor.steps,
        **{name: {str(k): v for k, v in told.items()} for name, told in table.attrs.items()},
    }
    made = {
        f"certificates/step-{figure.step}.json": (json_text(figure.certificate) + "\n").encode(),
        "figures.csv": csv_text(columns).encode(),
        "figures.png": picture(table, total.series.name),
        SERIES: (json_text(named) + "\n").encode(),
    }
    try:
        for name, body in made.items():
            place = out / name
            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".tacit-", delete=False) as scratch:
                scratch.write(body)
            os.chmod(scratch.name, 0o644)
            os.replace(scratch.name, place)
    except OSError as problem:
        raise InvalidParameter(
            parameter="--out", value=str(out), must="be writable",
            hint=f"{(problem.strerror or '').lower()}; the figure is recorded, and asking again is free",
        ) from None  # fmt: skip
    return [out / name for name in made]


def picture(table: pd.DataFrame, title: str) -> bytes:
    """The running total of each group over the steps, with its interval as a band."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing

    drawn = Drawing(figsize=(8.4, 4.4), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.add_subplot()
    step, *groups = [str(c) for c in table.columns[:-4]]
    shown = [((), table)] if not groups else list(table.groupby(groups, sort=False, observed=True))
    for key, lines in shown[:MOST_LINES]:
        at = range(1, len(lines) + 1)
        named: Any = ", ".join(map(str, key)) if groups else None
        (line,) = axes.plot(at, lines["value"], label=named, linewidth=1.6, marker="o", markersize=3)
        axes.fill_between(at, lines["low"], lines["high"], color=line.get_color(), alpha=0.2, linewidth=0)
    if groups:
        axes.legend(title=", ".join(groups), frameon=False)
    names = [str(v) for v in dict.fromkeys(table[step])]
    every = max(1, -(-len(names) // 12))
    axes.set_xticks(range(1, len(names) + 1)[::every], names[::every])
    more = f" (the first {MOST_LINES} of {len(shown)} groups)" if len(shown) > MOST_LINES else ""
    words = title if "running total" in title.lower() else f"{title}: running total"
    axes.set_title(f"{words}, with 95% intervals for the noise{more}", fontsize=11)
    axes.set_xlabel(step)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    out = io.BytesIO()
    drawn.savefig(out, format="png", dpi=110)
    return out.getvalue()
