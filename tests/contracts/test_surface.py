"""What a reader and an importer meet: exports, import time, docstrings, file sizes, words."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tacit
from support.code import FILES, ROOMS, SRC, named, text, tree

ROOT = Path(__file__).parents[2]
HEAVY = ("numpy", "scipy", "flint", "matplotlib", "sklearn", "typer")
MOST_LINES = 900
# Past the limit for now: each with its own ceiling, so that it can only shrink.
LONGER: dict[str, int] = {}


# --- exports -------------------------------------------------------------------------------------------
def test_exports_are_sorted_and_importable() -> None:
    assert tacit.__all__ == sorted(tacit.__all__)
    for name in tacit.__all__:
        assert getattr(tacit, name) is not None
    assert len(tacit.__all__) <= 81
    assert dir(tacit) == sorted([*tacit.__all__, *tacit._PACKAGES])


def test_packages_are_found_from_the_top() -> None:
    """In a fresh interpreter, by attribute access alone; every package of the library but the two programs."""
    inner = {p.name for p in SRC.iterdir() if (p / "__init__.py").exists()} | {"errors"}
    assert set(tacit._PACKAGES) == inner - {"cli", "reproduce"}
    code = "import tacit; print([getattr(tacit, n).__name__ for n in tacit._PACKAGES]); tacit.filter_for"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told.strip() == str([f"tacit.{name}" for name in tacit._PACKAGES])


def test_old_names_work_with_a_warning_and_stand_on_their_page() -> None:
    listed = dict(
        re.findall(r"^\| `tacit\.(\w+)` \| `([\w.]+)` \|$", (ROOT / "docs/renamed.md").read_text(), re.M)
    )
    assert listed == tacit._RENAMED
    assert not set(tacit._RENAMED) & set(dir(tacit))
    for old, new in tacit._RENAMED.items():
        with pytest.warns(DeprecationWarning, match=re.escape(f"tacit.{old} is now {new};")):
            found = getattr(tacit, old)
        place, _, name = new.rpartition(".")
        assert found is getattr(importlib.import_module(place), name)


def test_the_earlier_name_of_the_models_passes_everything_on() -> None:
    earlier, models = importlib.import_module("tacit.functions.machines"), tacit.functions.models
    for name in models.__all__:
        with pytest.warns(DeprecationWarning, match=f"tacit.functions.models.{name} now"):
            assert getattr(earlier, name) is getattr(models, name)
    with pytest.raises(AttributeError):
        _ = earlier.nothing


def test_exports_are_what_type_checkers_see() -> None:
    """The lazy table, the imports under TYPE_CHECKING and __all__ name the same things from the same homes."""
    seen: dict[str, str] = {}
    packages: list[str | None] = []
    for node in ast.parse((SRC / "__init__.py").read_text()).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for inner in node.body:
                assert isinstance(inner, ast.ImportFrom)
                assert inner.module is not None
                if inner.module == "tacit":
                    packages += [alias.asname for alias in inner.names]
                    continue
                seen |= {alias.asname or alias.name: inner.module for alias in inner.names}
    assert sorted([*seen, "__version__"]) == tacit.__all__
    assert seen == tacit._HOME
    assert tuple(packages) == tacit._PACKAGES


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        getattr(tacit, "nothing_of_the_kind")  # noqa: B009
    with pytest.raises(AttributeError, match="did you mean 'count'"):
        getattr(tacit, "cuont")  # noqa: B009


def test_the_version_is_that_of_the_package() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert tacit.__version__ == project["version"]


def test_one_name_has_one_meaning() -> None:
    """A class is called by one name, and no two by the same: a bound not like a mechanism, an event or its noise."""
    rooms = [
        "",
        ".accounting",
        ".events",
        ".guarantees",
        ".mechanisms",
        ".noise",
        ".pld",
        ".sources",
        ".statistics",
    ]
    meanings: dict[str, set[Any]] = {}
    for room in rooms:
        module = importlib.import_module("tacit" + room.replace(".events", ".accounting.events"))
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                meanings.setdefault(name, set()).add(thing)
    assert {name for name, things in meanings.items() if len(things) > 1} == set()


def test_signatures_name_every_parameter() -> None:
    """What may be given is seen in the signature, by people and by editors: no public call takes **anything."""
    methods = [getattr(tacit.Curator, name) for name in ("__init__", "preview", "release", "close")]
    exported = [getattr(tacit, name) for name in tacit.__all__]
    for thing in [*methods, *(e for e in exported if inspect.isfunction(e))]:
        kinds = {p.kind for p in inspect.signature(thing).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, thing.__qualname__
    priced = set(inspect.signature(tacit.query).parameters)
    for thing in (tacit.Curator.preview, tacit.Curator.release, tacit.query):
        given = inspect.signature(thing).parameters
        assert {"epsilon", "delta", "rho", "mu", "within", "confidence", "simultaneous"} <= set(
            given
        ) & priced


# --- import time ---------------------------------------------------------------------------------------
def test_importing_takes_under_three_tenths_of_a_second() -> None:
    """The fastest of five fresh interpreters, by their own clock: what it costs when nothing else is in the way."""
    code = "import time; start = time.perf_counter(); import tacit; print(time.perf_counter() - start)"
    runs = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        for _ in range(5)
    ]
    assert min(float(run.stdout) for run in runs) < 0.3


def test_importing_loads_no_heavy_library() -> None:
    code = "import json, sys, tacit; print(json.dumps(sorted(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = {name.split(".")[0] for name in json.loads(told)}
    assert "tacit" in loaded
    assert not loaded & set(HEAVY)


# --- docstrings and sizes ------------------------------------------------------------------------------
def is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)


def mute_in(path: Path) -> list[str]:
    """What has no docstring and needs one: the module, its classes, its functions."""
    found = [] if ast.get_docstring(tree(path)) else [f"{named(path)} has no docstring"]
    for node in tree(path).body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        # Module-level __getattr__ and __dir__ are the language's, not ours.
        if node.name.startswith("_") or is_overload(node):
            continue
        if not ast.get_docstring(node):
            found.append(f"{named(path)}:{node.lineno} {node.name} has no docstring")
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_modules_classes_and_functions_say_what_they_are(room: str) -> None:
    mute = [line for path in ROOMS[room] for line in mute_in(path)]
    assert not mute, mute


def test_what_is_mute_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.code.SRC", tmp_path)
    (tmp_path / "m.py").write_text("def f(): ...\nclass A: ...\ndef _g(): ...\n")
    assert [line.split()[0] for line in mute_in(tmp_path / "m.py")] == ["m.py", "m.py:1", "m.py:2"]


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages([str(SRC)], prefix="tacit.")
    return [importlib.import_module(m.name) for m in found]


def test_public_methods_say_what_they_do() -> None:
    """Their own words, or those of the method that they override."""
    mute = []
    for module in modules():
        for cls in vars(module).values():
            if (
                inspect.isclass(cls)
                and cls.__module__ == module.__name__
                and not cls.__name__.startswith("_")
            ):
                mute += [
                    f"{module.__name__}.{cls.__name__}.{name}" for name in vars(cls) if is_mute(cls, name)
                ]
    assert not mute, f"without a docstring: {mute}"


def is_mute(cls: type[Any], name: str) -> bool:
    if name.startswith("_"):
        return False
    member = inspect.getattr_static(cls, name)
    if isinstance(member, classmethod | staticmethod):
        member = member.__func__
    if not (inspect.isfunction(member) or isinstance(member, property)):
        return False
    return not (inspect.getdoc(member) or inspect.getdoc(getattr(cls, name)))


def test_files_are_small() -> None:
    lengths = {named(p): len(text(p).splitlines()) for p in FILES}
    long = {name: n for name, n in lengths.items() if n > LONGER.get(name, MOST_LINES)}
    assert not long, f"split by subject: {long}"


def test_files_of_tests_are_small() -> None:
    lengths = {p: len(p.read_text().splitlines()) for p in (ROOT / "tests").rglob("*.py")}
    long = {str(p.relative_to(ROOT)): n for p, n in lengths.items() if n > MOST_LINES}
    assert not long, f"split by subject: {long}"


def test_files_that_may_be_longer_still_are() -> None:
    done = [n for n in LONGER if len((SRC / n).read_text().splitlines()) <= MOST_LINES]
    assert not done, f"no longer in need of a ceiling of their own: {done}"


# --- words ---------------------------------------------------------------------------------------------
# In pieces, so that this file does not contain what it forbids.
TWO_MEANINGS = "R" + "DP"
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("deb", "debian", "org"),
        ("anaconda", "org"),
        ("crates", "io"),
    )
]


def texts() -> list[Path]:
    """Every text file that the repository keeps (or would, were it committed now)."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        told = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
        kept = [ROOT / name for name in told.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        # Outside a clone, as from a source archive: what is known to be ours.
        kept = [*ROOT.glob("*"), *(p for d in ("src", "docs", "tests", ".ci") for p in (ROOT / d).rglob("*"))]
    return [p for p in kept if p.is_file() and b"\0" not in p.read_bytes()[:8000]]


def test_no_abbreviation_with_two_meanings() -> None:
    """It is Rényi to one reader and random to the next: write which. The glossary alone says so."""
    wrong = [
        named_in_root
        for path in texts()
        if (named_in_root := str(path.relative_to(ROOT))).startswith(("src/", "docs/", "README", "CHANGELOG"))
        and re.search(rf"\b{TWO_MEANINGS}\b", path.read_text(encoding="utf-8"))
    ]
    assert wrong == ["docs/glossary.md"]


def test_no_registry_is_named() -> None:
    """Packages are named, never where they come from: that is a matter for whoever installs them."""
    assert len(texts()) > 50
    wrong = [
        f"{path.relative_to(ROOT)} names {host}"
        for path in texts()
        for host in REGISTRIES
        if host in path.read_text(encoding="utf-8").lower()
    ]
    assert not wrong
