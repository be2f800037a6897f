"""Release folders that somebody changed with care: every digest is made again, so that only the content can tell."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.curator.certificate import content_digest, json_text
from tacit.curator.plan_files import read_plan
from tacit.curator.request import file_stem
from tacit.curator.verifying import CheckResult, plan_of_certificates, verify_release
from tacit.exact.canonical import sha256
from tacit.report import verifying
from tacit.report.folder import Written, release_files


def looked(folder: Path) -> list[CheckResult]:
    return [*verify_release(folder).findings, *verifying.made_again(folder)]


def false(folder: Path) -> list[str]:
    return [str(f) for f in looked(folder) if f.holds is False]


def bind(path: Path, said: dict[str, Any]) -> None:
    said.pop("digest", None)
    said["digest"] = content_digest(said)
    path.write_text(f"{json_text(said)}\n")


def forge(folder: Path, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """A certificate with a change, and every digest made again."""
    path, place = folder / "certificates" / f"{name}.json", folder / "manifest.json"
    said, listed = json.loads(path.read_text()), json.loads(place.read_text())
    change(said)
    bind(path, said)
    listed["files"][f"certificates/{name}.json"] = sha256(path.read_bytes())
    bind(place, listed)


def write(folder: Path, name: str, change: Callable[[list[list[str]]], Any]) -> None:
    """Values with a change, and every file that is made of them written again, by the program itself."""
    path, place = folder / "values" / f"{name}.csv", folder / "manifest.json"
    rows = list(csv.reader(io.StringIO(path.read_text())))
    change(rows)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    path.write_text(out.getvalue())
    forge(folder, name, lambda said: said["values"].update(sha256=sha256(path.read_bytes())))
    listed = json.loads(place.read_text())
    said = {n: json.loads((folder / n).read_text()) for n in listed["files"] if n.startswith("certificates/")}
    file = read_plan(folder / "plan.toml")
    plan = plan_of_certificates(file.plan(), said.values())
    written = Written.read(listed["written"])
    releases = [
        verifying._certified(folder, plan, p, said[f"certificates/{file_stem(p.name)}.json"], written)
        for p in plan.releases
    ]
    for one, body in release_files(file, plan, releases, budget=file.limit, written=written).items():
        (folder / one).write_bytes(body)
        listed["files"][one] = sha256(body)
    bind(place, listed)
