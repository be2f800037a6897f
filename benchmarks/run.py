"""Runs every benchmark and writes the ratios, taken in one run, to benchmarks/RESULTS.md.

A benchmark is a file here whose name does not start with an underscore. Its `main()` returns rows: dicts with
`measure`, `ours`, and where there is a peer `peer`, `theirs`, `ratio` (above 1: we are better) and `target`
(0 for none). Names given on the command line choose benchmarks; the others keep their old section.
Exit status 1 if a target is missed.
"""

from __future__ import annotations

import datetime
import importlib
import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
HEADER = """# Benchmarks

Written by `make bench`. A ratio above 1 means that tacit is ahead; each is of two times from one run.
"""


def machine() -> str:
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*:\s*(.+)", info.read_text())
        model = found.group(1) if found else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| measure | tacit | peer | theirs | ratio | target | |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        ratio, target = row.get("ratio"), row.get("target") or 0.0
        shown = "" if ratio is None else f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.0f}"
        verdict = "" if ratio is None or not target else "reached" if ratio >= target else "**missed**"
        cells = [row["measure"], row["ours"], row.get("peer", ""), row.get("theirs", ""), shown]
        cells += [f"≥ {target:g}" if target else "", verdict]
        lines.append("| " + " | ".join(str(c) for c in cells) + " |")
    return "\n".join(lines)


def sections() -> dict[str, str]:
    """The sections of the results as they stand."""
    if not RESULTS.exists():
        return {}
    parts = re.split(r"^## (.+)$", RESULTS.read_text(), flags=re.MULTILINE)[1:]
    return {name.strip(): body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


def main(names: list[str]) -> int:
    files = [p for p in HERE.glob("*.py") if p.stem != "run" and not p.stem.startswith("_")]
    known = sorted(p.stem for p in files if "\nBY_HAND = True\n" not in p.read_text())
    if unknown := set(names) - set(known):
        print(f"bench: no such benchmark: {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
        return 2
    sys.path.insert(0, str(HERE))
    results, missed = sections(), 0
    for name in names or known:
        print(f"bench: {name}", flush=True)
        module = importlib.import_module(name)
        rows = module.main()
        missed += sum(1 for r in rows if r.get("target") and r.get("ratio", 0.0) < r["target"])
        date = datetime.datetime.now(tz=datetime.UTC).date()
        about = (module.__doc__ or "").strip()
        results[name] = f"{about}\n\n{date}, {machine()}.\n\n{table(rows)}"
        print(table(rows), flush=True)
        body = "\n\n".join(f"## {key}\n\n{results[key]}" for key in sorted(results))
        RESULTS.write_text(f"{HEADER}\n{body}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
