"""Public lists that a plan names instead of spelling them out: keys of a category, codes of nested areas.

    schema.block = { kind = "category", keys = "blocks.csv" }
    release = [{ kind = "geography", levels = ["state", "county", "block"], areas = "blocks.csv" }]

A list is a CSV file with a heading, beside the plan. Keys are read from the column of the schema's name, areas from the
columns of their levels; all codes are texts. The lists are part of the query. `tacit release` publishes their used
columns in the folder `public`, where `tacit verify` finds them. They must not be made from the table that is
protected.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.data_classes import dataclass

MOST_BYTES = 1 << 28
FOLDER = "public"


@dataclass(slots=True, kw_only=True)
class KeyFiles:
    """Reads the lists that a plan names, each once."""

    plan: Path
    data: Any
    _bodies: dict[str, bytes] = field(default_factory=dict)
    _columns: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    _used: dict[str, set[str]] = field(default_factory=dict)

    @property
    def lists(self) -> dict[str, bytes]:
        """The columns that were used, as CSV files under the files' own names."""
        wanted: dict[str, set[str]] = {}
        for name, used in self._used.items():
            wanted.setdefault(Path(name).name, set()).update(used)
        found = {}
        for name in self._used:
            out = io.StringIO()
            heads = wanted[Path(name).name]
            kept = {head: values for head, values in self._columns[name].items() if head in heads}
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(kept)
            writer.writerows(zip(*kept.values(), strict=True))
            found[Path(name).name] = out.getvalue().encode()
        return found

    def filled(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """The plan with the lists in the place of their files' names."""
        out = dict(plan)
        schema, releases = plan.get("schema"), plan.get("release")
        if isinstance(schema, Mapping):
            out["schema"] = {name: self._keys(str(name), column) for name, column in schema.items()}
        if isinstance(releases, list):
            out["release"] = [self._areas(i, one) for i, one in enumerate(releases, 1)]
        return out

    def _keys(self, name: str, column: Any) -> Any:
        if not isinstance(column, Mapping) or not isinstance(column.get("keys"), str):
            return column
        where = f"schema.{name}.keys"
        return {**column, "keys": self._column(where, column["keys"], name)}

    def _areas(self, number: int, release: Any) -> Any:
        if not isinstance(release, Mapping) or not isinstance(release.get("areas"), str):
            return release
        where = f"release {number}: areas"
        levels = release.get("levels")
        if not isinstance(levels, list) or not all(isinstance(n, str) for n in levels):
            raise InvalidParameter(
                parameter=f"release {number}: levels", value=levels, must="be a list of columns of the file of areas"
            )  # fmt: skip
        return {**release, "areas": {n: self._column(where, release["areas"], n) for n in levels}}

    def _column(self, where: str, name: str, column: str) -> list[str]:
        held = self._file(where, name)
        if column not in held:
            raise UnknownName(what=f"column of {name} ({where})", name=column, known=held)
        self._used.setdefault(name, set()).add(column)
        return held[column]

    def _file(self, where: str, name: str) -> dict[str, list[str]]:
        if name in self._columns:
            return self._columns[name]
        path = self.plan.parent / name
        beside = self.plan.parent / FOLDER / Path(name).name
        if (self.plan.parent / "manifest.json").exists() and beside.exists():
            path = beside  # the plan of a release folder, which has the list as it was published
        self._refuse_data(where, path)
        try:
            with path.open("rb") as file:
                body = file.read(MOST_BYTES + 1)
            text = body.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise InvalidParameter(
                parameter=where, value=name, must="be a list, or the name of a CSV file in UTF-8 beside the plan"
            ) from None  # fmt: skip
        if len(body) > MOST_BYTES:
            raise InvalidParameter(parameter=where, value=name, must=f"have at most {MOST_BYTES >> 20} MiB")
        if self._bodies.get(path.name, body) != body:
            raise InvalidParameter(
                parameter=where, value=name, must="have a name that no other list of the plan has",
                hint="lists are published under their own names, without their folders",
            )  # fmt: skip
        self._bodies[path.name] = body
        self._columns[name] = _columns(where, name, text)
        return self._columns[name]

    def _refuse_data(self, where: str, path: Path) -> None:
        """Keys are never read from the data: that would publish which keys occur."""
        said = self.data.get("path") if isinstance(self.data, Mapping) else None
        for one in said if isinstance(said, list) else [said]:
            if not isinstance(one, str):
                continue
            table = self.plan.parent / one
            try:
                same = os.path.samefile(table, path)
            except OSError:
                same = os.path.realpath(table) == os.path.realpath(path)
            if same:
                raise InvalidParameter(
                    parameter=where, value=path.name, must="be a public list, and not the table that is protected",
                    hint="keys are never read from the data; take the list from whoever defines the areas",
                )  # fmt: skip


def _columns(where: str, name: str, text: str) -> dict[str, list[str]]:
    first = text.partition("\n")[0]
    separator = (
        ";" if ";" in first and "," not in first else "\t" if "\t" in first and "," not in first else ","
    )
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator, strict=True) if row]
    except csv.Error:
        rows = []
    if len(rows) < 2 or len(set(rows[0])) < len(rows[0]) or any(len(r) != len(rows[0]) for r in rows):
        raise InvalidParameter(
            parameter=where, value=name, must="have a heading of different names, and lines of one length below it"
        )  # fmt: skip
    return {head: [row[i] for row in rows[1:]] for i, head in enumerate(rows[0])}
