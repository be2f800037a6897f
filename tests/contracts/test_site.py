"""The documents as a site: it builds without a warning, every public name has a page, every link holds."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import tacit

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs" / "_site"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    goal = tmp_path_factory.mktemp("site")
    told = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(goal)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert told.returncode == 0, told.stderr[-3000:]
    assert "WARNING" not in told.stderr + told.stdout
    return goal


@pytest.fixture(scope="module")
def texts(site: Path) -> dict[Path, str]:
    return {p: p.read_text("utf-8") for p in sorted(site.rglob("*.html")) if p.name != "404.html"}


def ids(text: str) -> set[str]:
    return {unescape(i) for i in re.findall(r'\sid="([^"]+)"', text)}


@pytest.mark.slow
def test_every_public_name_has_a_page(site: Path, texts: dict[Path, str]) -> None:
    pages = importlib.import_module("pages")
    index = texts[site / "api" / "index.html"]
    for name in tacit.__all__:
        page = site / pages.page_of(name).replace(".md", ".html")
        assert page in texts, name
        assert f'href="{page.relative_to(site / "api").as_posix()}"' in index
        if not isinstance(getattr(tacit, name), ModuleType):
            assert any(i.endswith(f".{name}") for i in ids(texts[page])), f"{name} has an empty page"
    for short in pages.MODULES:
        page = site / "api" / "modules" / f"{short}.html"
        here = ids(texts[page]) | set(re.findall(r"<code>(\w+)</code></a>", texts[page]))
        here = {i.rsplit(".", 1)[-1] for i in here}
        missing = set(importlib.import_module(f"tacit.{short}").__all__) - here
        assert not missing, f"tacit.{short}: {sorted(missing)} are not on their page"


def test_the_modules_that_the_glossary_names_have_pages() -> None:
    pages = importlib.import_module("pages")
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    named = set(re.findall(r"`tacit\.([a-z_]+)(?:\.\w+)?`", text))
    assert len(named) > 5
    assert named <= set(pages.MODULES)


@pytest.mark.slow
def test_every_theorem_has_a_page_and_a_place_in_the_navigation(site: Path) -> None:
    from tacit.guarantees import THEOREMS

    pages = importlib.import_module("pages")
    placed = [page for group in pages.theory() for entries in group.values() for page in entries]
    assert sorted(placed) == sorted(f"theory/{id}.md" for id in THEOREMS)
    assert all((site / "theory" / f"{id}.html").exists() for id in THEOREMS)


@pytest.mark.slow
def test_every_link_of_the_site_holds(site: Path, texts: dict[Path, str]) -> None:
    known = {page: ids(text) for page, text in texts.items()}
    count = 0
    for page, text in texts.items():
        for target in set(re.findall(r'\s(?:href|src)="([^"]*)"', text)):
            if re.match(r"(https?|mailto|data):", target):
                continue
            file, _, anchor = unquote(unescape(target)).partition("#")
            goal = (page.parent / file).resolve() if file else page
            goal = goal / "index.html" if goal.is_dir() else goal
            assert goal.exists(), f"{page.relative_to(site)} links to {target}"
            if anchor and goal in known and anchor != "__skip":
                assert anchor in known[goal], f"{page.relative_to(site)}: no place for {target}"
            count += 1
    assert count > 10_000


@pytest.mark.slow
def test_a_page_fetches_nothing_from_elsewhere(site: Path, texts: dict[Path, str]) -> None:
    for page, text in texts.items():
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", text):
            assert not re.search(r'(?:href|src)="(?:https?:)?//', tag), f"{page.relative_to(site)}: {tag}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text("utf-8")), sheet
    assert (site / "search" / "search_index.json").stat().st_size > 100_000


@pytest.mark.slow
def test_the_site_works_from_a_disk(site: Path, texts: dict[Path, str]) -> None:
    """A browser starts no worker from file: the index is a script, and a frame of our own stands in."""
    index = (site / "search" / "search_index.js").read_text("utf-8")
    assert index.startswith("var __index = {")
    for page, text in texts.items():
        shim, bundle = text.find("assets/own/iframe-worker.js"), text.find("assets/javascripts/bundle.")
        assert 0 < shim < bundle, page
        assert "assets/own/site.css" in text


@pytest.mark.slow
def test_names_in_tables_stay_whole(site: Path, texts: dict[Path, str]) -> None:
    cells = re.findall(r"<td>(<code[^>]*>[^<]*</code>)", texts[site / "mechanisms.html"])
    assert len(cells) > 20
    assert all(cell.startswith('<code class="name">') for cell in cells)
    assert "nowrap" in (site / "assets" / "own" / "site.css").read_text("utf-8")


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        ("e^(-g(x)/b)", "e<sup>-g(x)/b</sup>"),
        ("e^{k e^{x_i}} 2", "e<sup>k e<sup>x<sub>i</sub></sup></sup> 2"),
        ("P_1 ≤ e^-epsilon_1 P_2", "P<sub>1</sub> ≤ e<sup>-epsilon<sub>1</sub></sup> P<sub>2</sub>"),
        ("x^-(a+b) and e^epsilon/2", "x<sup>-(a+b)</sup> and e<sup>epsilon</sup>/2"),
        ("w^(r)_j, v_(k), x_{-i}", "w<sup>(r)</sup><sub>j</sub>, v<sub>(k)</sub>, x<sub>-i</sub>"),
        ("10^-12 (x - c)^+ q^|k|", "10<sup>-12</sup> (x - c)<sup>+</sup> q<sup>|k|</sup>"),
        # Names are no formulas, and neither code nor an address is touched.
        ("noise_std l2_sensitivity random_data max_rows delta_at __all__", ""),
        ('<code>x_i e^x</code> <a href="a_b.html#x_i">x</a> <pre>q^k\nx_1</pre>', ""),
        ("a bracket that nobody closes: e^(1", ""),
    ],
)
def test_formulas_are_set_and_names_are_not(plain: str, shown: str) -> None:
    assert importlib.import_module("formulas").typeset(plain) == (shown or plain)


@pytest.mark.slow
def test_pages_of_theorems_have_set_formulas(site: Path, texts: dict[Path, str]) -> None:
    assert "e<sup>-g(x)/b</sup>" in texts[site / "theory" / "k-norm.html"]
    pages = [text for page, text in texts.items() if page.parent.name == "theory"]
    assert sum("<sup>" in text for text in pages) > 100
