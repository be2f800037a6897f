"""Forged certificates of the kinds that promise something else: exact cells, exact answers, trees of tables, moments.

Every digest is made again, and there is no ledger. What follows from the folder alone must be seen; what does not (a
public number of rows, why something was chosen) is not called checked.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golden import make
from support.forged import false, forge, looked, write
from tacit.report import verifying

Change = Callable[[Any], Any]
EXACT = "tells which cells of"
TABLES = make.asks(
    'kind = "hierarchy"\nname = "tree"\ncolumns = ["state", "sex"]',
    'kind = "regression_moments"\nname = "moments"\ncolumns = ["age", "hours"]\noutcome = "income"',
    price="epsilon = 1.0\ndelta = 1e-7",
)
COUNTS = make.asks(
    'kind = "count"\nname = "states"\nby = "state"\nwhere = "age < 3"',
    'kind = "count"\nname = "few"\nwhere = "age < 2"',
    'kind = "proportion"\nname = "share"\nof = "age < 2"',
    'kind = "mean"\nname = "mean"\ncolumn = "income"\ngiven = "always"',
)
MEAN = make.asks(
    'kind = "mean"\nname = "mean"\ncolumn = "age"\n'
    f'given = {{ unknown_rows = {make.ROWS - 20}, rows = "uniform(0, 100)" }}',
    price="epsilon = 2.0\ndelta = 1e-4",
)
TABLE = make.asks(
    'kind = "count"\nname = "table"\nby = "state"\ngiven = { sampling = "binomial", rate = 0.1 }',
    price="epsilon = 1.0\ndelta = 1e-4",
)
PAID = {"budget": "epsilon = 2.0\ndelta = 1e-4", "schema": make.EXACT}
FOLDERS: dict[str, Callable[[], Any]] = {
    "tables": lambda: make.simple(TABLES, protect=make.ROWS_REPLACED),
    "random data": lambda: make.simple(
        COUNTS, protect=make.ROWS_REPLACED, budget="epsilon = 5.0\ngamma = 0.1",
        more=f"given = {{ random_data = 0.1, rows = {make.ROWS} }}\n",
    ),
    "mean": lambda: make.simple(MEAN, protect=make.ROWS_REPLACED, **PAID),
    "table": lambda: make.simple(TABLE, **PAID),
}  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders that tacit wrote, each once."""
    made: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in made:
            made[name], here = tmp_path_factory.mktemp("kinds"), Path.cwd()
            os.chdir(made[name])
            try:
                FOLDERS[name]()
            finally:
                os.chdir(here)
        return made[name] / "out"

    return folder


@pytest.fixture
def copy(honest: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    def copied(name: str) -> Path:
        return Path(shutil.copytree(honest(name), tmp_path / "out"))

    return copied


@pytest.mark.parametrize("name", FOLDERS)
def test_what_tacit_wrote_holds_and_only_signature_and_ledger_are_not_checked(
    honest: Callable[[str], Path], name: str
) -> None:
    words = ("signed", "--ledger", "--key")
    found = looked(honest(name))
    assert not [f for f in found if f.holds is False]
    assert not [str(f) for f in found if f.holds is None and not any(w in str(f) for w in words)]


def _put(*path: Any, to: Any = None, by: Change | None = None) -> Change:
    """Another value at a place of a certificate."""

    def change(said: Any) -> None:
        for part in path[:-1]:
            said = said[part]
        said[path[-1]] = to if by is None else by(said[path[-1]])

    return change


def _less(value: Any) -> Any:
    return value * 0.98


CERTIFICATES: dict[str, tuple[str, str, Change]] = {
    # what every certificate has, in these as well
    "a part that is missing": ("tables", "tree", lambda said: said.pop("public_totals")),
    "a package that is none": ("tables", "tree", _put("versions", "audited", to="yes")),
    "a version that is none": ("tables", "tree", _put("versions", "numpy", to="checked by hand")),
    "no version of tacit": ("tables", "tree", lambda said: said["versions"].pop("tacit")),
    "an engine that is none": ("tables", "moments", _put("data", "engine", to="a notary")),
    "another moment": ("tables", "moments", _put("made", to="2020-01-01T00:00:00+00:00")),
    "another table": ("tables", "moments", _put("data", "table", to="calls")),
    "made up": ("tables", "moments", _put("data", "made_up", to=True)),
    "other versions": ("tables", "moments", _put("versions", "python", to="3.9.1")),
    "no noise source of the others": ("tables", "tree", _put("noise_source", to="dice")),
    # trees of tables and moments
    "a tree with less noise": ("tables", "tree", _put("mechanism", "noise", 0, "noise_scale", to="1")),
    "a smaller sensitivity": ("tables", "tree", _put("sensitivity", by=lambda _: {})),
    "another level": ("tables", "tree", _put("statistic", "columns", to=["state"])),
    "moments of fewer columns": ("tables", "moments", _put("statistic", "columns", to=["age"])),
    "a smaller epsilon": ("tables", "moments", _put("guarantee", "bound", "epsilon", by=_less)),
    "a grid of other steps": ("tables", "moments", _put("grid", by=lambda _: {})),
    # random data
    "a smaller gamma": ("random data", "states", _put("guarantee", "condition", "gamma", by=_less)),
    "no condition": ("random data", "few", _put("guarantee", "condition", to={"kind": "always"})),
    "a smaller gamma of the rule": (
        "random data", "few", _put("mechanism", "random_data", "random_data", by=lambda v: f"{v}0"),
    ),
    "a plain release with exact cells": (
        "random data", "mean", _put("random_data", to={"gamma": "1/10", "rows": make.ROWS, "sentence": ""}),
    ),
    # exact answers
    "fewer unknown rows": ("mean", "mean", _put("asked", "given", "unknown_rows", to=10)),
    "another law of rows": ("mean", "mean", _put("asked", "given", "rows", to="bernoulli(0.5)")),
    "a smaller epsilon of an exact mean": ("mean", "mean", _put("guarantee", "bound", "epsilon", by=_less)),
    "an exact mean without its condition": ("mean", "mean", _put("guarantee", "condition", to={"kind": "always"})),
    "another answer in the choice": (
        "mean", "mean", _put("choice", "assignment", "answer", "epsilon_pair", by=_less),
    ),
    "a digest that is none": ("mean", "mean", _put("ledger", "answer", to="the ledger's")),
    "another rate": ("table", "table", _put("asked", "given", "rate", to=0.01)),
    "a smaller delta": ("table", "table", _put("guarantee", "bound", "delta", by=_less)),
    "a lower threshold": ("table", "table", _put("choice", "assignment", "answer", "threshold", by=lambda v: v - 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_forged_certificate_does_not_hold(copy: Callable[[str], Path], name: str) -> None:
    folder, release, change = CERTIFICATES[name]
    place = copy(folder)
    forge(place, release, change)
    assert false(place)


TOLD: dict[str, Change] = {
    "gamma": _put("gamma", to="1/100"),
    "no gamma": lambda told: told.pop("gamma"),
    "a word": _put("audited", to=True),
    "fewer rows than declared": _put("rows", by=lambda v: v - 1),
    "rows that are no number": _put("rows", to="300"),
    "no rows": lambda told: told.pop("rows"),
    "more exact cells": _put("exact_cells", by=lambda v: v + 1),
    "fewer exact cells": _put("exact_cells", by=lambda v: v - 1),
    "more cells": _put("cells", by=lambda v: v + 1),
    "another threshold": _put("exact_below", by=lambda v: v + 1),
    "another sentence": _put("sentence", to="Every cell has noise."),
}


@pytest.mark.parametrize(
    ("release", "name"),
    # Whether one of the two counts of a share is exact cannot be read from the share.
    [(r, n) for r in ("states", "few", "share") for n in TOLD if (r, n) != ("share", "fewer exact cells")],
)
def test_what_is_told_of_exact_cells_follows_from_plan_and_values(
    copy: Callable[[str], Path], release: str, name: str
) -> None:
    place = copy("random data")
    forge(place, release, lambda said: TOLD[name](said["random_data"]))
    assert any(EXACT in one for one in false(place)), false(place)


def test_a_release_on_random_data_says_what_was_exact(copy: Callable[[str], Path]) -> None:
    place = copy("random data")
    forge(place, "few", lambda said: said.pop("random_data"))
    assert any(EXACT in one for one in false(place))


VALUE, LOW, HIGH = -4, -3, -2


def _noisy(rows: list[list[str]]) -> list[str]:
    return next(row for row in rows[1:] if row[LOW] != row[HIGH])


def _cell(rows: list[list[str]], **ends: Callable[[list[str]], str]) -> None:
    row = _noisy(rows)
    places = {"value": VALUE, "low": LOW, "high": HIGH}
    new = {places[name]: text(row) for name, text in ends.items()}
    for place, text in new.items():
        row[place] = text


ENDS: dict[str, tuple[str, str, Callable[[list[list[str]]], Any]]] = {
    "a noisy cell called exact": (
        "random data", "states", lambda rows: _cell(rows, low=lambda r: r[VALUE], high=lambda r: r[VALUE]),
    ),
    "a narrow cell": ("random data", "states", lambda rows: _cell(rows, high=lambda r: str(int(r[VALUE]) + 1))),
    "a tree without noise": (
        "tables", "tree", lambda rows: _cell(rows, low=lambda r: r[VALUE], high=lambda r: r[VALUE]),
    ),
    "a value outside of its moments": ("tables", "moments", lambda rows: _cell(rows, low=lambda r: r[HIGH])),
    "an exact mean with an interval": ("mean", "mean", lambda rows: rows[1].__setitem__(HIGH, "90.0")),
    "an exact table with an interval": (
        "table", "table", lambda rows: rows[1].__setitem__(HIGH, str(int(rows[1][VALUE] or 0) + 400)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_ends_that_the_mechanism_does_not_give_are_seen(copy: Callable[[str], Path], name: str) -> None:
    folder, release, change = ENDS[name]
    place = copy(folder)
    write(place, release, change)
    assert false(place)


UNSURE: dict[str, tuple[str, str, Change]] = {
    "the errors of rivals": (
        "tables", "tree", _put("choice", "assignment", "candidates", "table", 0, 1, by=lambda v: v * 2),
    ),
    "a rival": ("tables", "tree", _put("choice", "assignment", "candidates", "table", 0, 0, to="magic")),
    "how an accuracy was meant": ("tables", "moments", _put("choice", "assignment", "price", "simultaneous", to=True)),
    "what plain noise would be": ("random data", "few", lambda said: said["choice"]["plain"]["noise"].pop()),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSURE)
def test_what_is_told_beside_the_choice_is_not_called_checked(copy: Callable[[str], Path], name: str) -> None:
    folder, release, change = UNSURE[name]
    place = copy(folder)
    forge(place, release, change)
    assert any(
        "names the other mechanisms" in str(f) or "claims" in str(f) for f in looked(place) if not f.holds
    )


def test_the_checks_are_asked_of_every_release(honest: Callable[[str], Path]) -> None:
    told = [f.what for f in verifying.made_again(honest("random data")) if EXACT in f.what]
    assert len(told) == 3
