"""What the site has beyond the pages of docs/: files of the repository that pages link to, notebooks as pages, the
reference of every public name, and the long parts of the navigation. MkDocs calls the functions named on_*.

A page keeps the links that hold in the repository; they are turned into links of the site here.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from formulas import typeset
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# A file of the repository, and its place on the site.
OUTSIDE = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "LICENSE.txt",
    "benchmarks/RESULTS.md": "benchmarks.md",
    "examples/README.md": "examples/index.md",
}
# Public modules; what they export under `__all__` stands on their page, or has a page of its own if `tacit` has it.
MODULES = [
    "accounting",
    "accounting.events",
    "anonymity",
    "anonymity.treatments",
    "attacks",
    "attacks.systems",
    "audit",
    "coupled",
    "coupled.noiseless",
    "curator",
    "curator.functions",
    "errors",
    "functions",
    "functions.bases",
    "functions.densities",
    "functions.fourier",
    "functions.kernels",
    "functions.models",
    "guarantees",
    "ledger",
    "mechanisms",
    "noise",
    "parties",
    "pld",
    "random_data",
    "reproduce",
    "risk",
    "sources",
    "statistics",
]
# Style and script of the site, from this folder.
OWN = ("site.css", "iframe-worker.js")
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
FENCE = re.compile(r"^(```.*?^```)$", re.M | re.S)


# --- where things stand --------------------------------------------------------------------------------
def places() -> dict[str, str]:
    """Every file of the repository that the site has from outside of docs/, with its place."""
    found = dict(OUTSIDE)
    for path in sorted((ROOT / "examples").iterdir()):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in {".ipynb", ".md"}:
            found.setdefault(name, f"examples/{path.stem}.md")
        elif path.suffix in {".toml", ".json", ".py"}:
            found[name] = name
    return found


def place(origin: str) -> str | None:
    """Where a file or folder of the repository stands on the site, if it does."""
    if (ROOT / origin).is_dir():
        folder = origin.rstrip("/").removeprefix("docs/")
        return f"{folder}/README.md" if (ROOT / origin / "README.md").exists() else f"{folder}/index.md"
    return origin.removeprefix("docs/") if origin.startswith("docs/") else places().get(origin)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as on the site, and lists as this reader of Markdown wants them."""
    here = page.file.src_uri
    origin = {v: k for k, v in places().items()}.get(here, f"docs/{here}")
    parts = FENCE.split(markdown)
    return "".join(p if p.startswith("```") else _spaced(_linked(p, origin, here)) for p in parts)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Formulas are set. Code and links without a blank are names, which a table does not break at their hyphens."""

    def whole(cell: re.Match[str]) -> str:
        text = re.sub(r"<code>(?=[^<\s]+</code>)", '<code class="name">', cell[0])
        return re.sub(r'<a (href="[^"]*")>(?=[^<\s]+</a>)', r'<a class="name" \1>', text)

    return re.sub(r"<td\b.*?</td>", whole, typeset(html), flags=re.S)


def _linked(text: str, origin: str, here: str) -> str:
    def moved(match: re.Match[str]) -> str:
        target, hash, anchor = match[0].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        goal = place(os.path.normpath(os.path.join(os.path.dirname(origin), target)))
        if goal is None:
            return match[0]  # MkDocs says that it leads nowhere
        return os.path.relpath(goal, os.path.dirname(here) or ".") + hash + anchor

    return LINK.sub(moved, text)


def _spaced(text: str) -> str:
    """An empty line before a list, and four spaces before what belongs to an item."""
    lines: list[str] = []
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        if re.match(r"([-*]|\d+\.) ", line) and before and not re.match(r"([-*]|\d+\.) | ", before):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


# --- what is added -------------------------------------------------------------------------------------
def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages from outside, the notebooks and the reference; then the navigation is known."""

    def add(uri: str, content: str | bytes) -> None:
        files.append(File.generated(config, uri, content=content, inclusion=InclusionLevel.INCLUDED))

    for origin, uri in places().items():
        source = ROOT / origin
        if source.suffix == ".ipynb":
            for name, content in notebook(source):
                add(name, content)
        else:
            add(uri, source.read_bytes() if not uri.endswith(".md") else source.read_text("utf-8"))
    for name in OWN:
        add(f"assets/own/{name}", (ROOT / "docs/_site" / name).read_bytes())
    add("decisions/index.md", _decisions())
    reference = dict(api())
    for uri, content in reference.items():
        add(uri, content)
    long = {
        "examples/": ["examples/index.md", *_stems("examples", "ipynb", "md")],
        "theory/": ["theory/README.md", *theory()],
        "decisions/": ["decisions/index.md", *_stems("docs/decisions", "md")],
        "reproduction/": ["reproduction/README.md", *_stems("docs/reproduction", "md")],
        "api/": ["api/index.md", *_reference(list(reference))],
    }
    config.nav = [_filled(entry, long) for entry in config.nav or []]
    if unplaced := sorted(p.name for p in (ROOT / "docs").glob("*.md") if p.name not in str(config.nav)):
        config.nav.append({"More": unplaced})
    return files


def _filled(entry: Any, long: dict[str, list[Any]]) -> Any:
    if isinstance(entry, dict):
        return {
            title: [_filled(e, long) for e in rest] if isinstance(rest, list) else long.get(rest, rest)
            for title, rest in entry.items()
        }
    return entry


def _stems(folder: str, *suffixes: str) -> list[Any]:
    found = [p for p in sorted((ROOT / folder).iterdir()) if p.suffix[1:] in suffixes and p.stem != "README"]
    return [f"{folder.removeprefix('docs/')}/{p.stem}.md" for p in found]


def _decisions() -> str:
    lines = ["# Decisions", "", "One page a choice that is hard to undo.", ""]
    for path in sorted((ROOT / "docs/decisions").glob("*.md")):
        title = path.read_text("utf-8").split("\n", 1)[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def theory() -> list[Any]:
    """The theorems in the groups of their index."""
    groups: list[Any] = []
    for line in (ROOT / "docs/theory/README.md").read_text("utf-8").splitlines():
        if heading := re.match(r"\| \*\*(.+)\*\* \|", line):
            groups.append({heading[1]: []})
        elif row := re.match(r"\| \[[\w-]+\]\(([\w-]+\.md)\) \|", line):
            (pages,) = groups[-1].values()
            pages.append(f"theory/{row[1]}")
    return groups


def notebook(path: Path) -> Iterator[tuple[str, str | bytes]]:
    """A notebook as a page, and its pictures as files; a link leads to the notebook itself."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    yield f"examples/{path.name}", path.read_bytes()
    parts: list[str] = []
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{path.stem}-{number}.png"
                yield f"examples/{name}", base64.b64decode("".join(data["image/png"]))
                parts.append(f"![What the cell above draws]({name})")
            elif text := "".join(output.get("text", data.get("text/plain", []))):
                parts.append(f"```text\n{text.rstrip()}\n```")
    title, _, rest = "\n\n".join(parts).partition("\n")
    yield f"examples/{path.stem}.md", f"{title}\n\n[The notebook itself]({path.name}){{ download }}\n{rest}\n"


# --- the reference -------------------------------------------------------------------------------------
def page_of(name: str) -> str:
    """The page of a public name of `tacit`; letters of one case are kept apart for file systems that mix them."""
    import tacit

    value = getattr(tacit, name)
    if isinstance(value, ModuleType):
        return f"api/modules/{value.__name__.removeprefix('tacit.')}.md"
    return f"api/{'types' if isinstance(value, type) else 'names'}/{name}.md"


def api() -> Iterator[tuple[str, str]]:
    """A page for each public name of `tacit` and one for each public module."""
    import tacit

    rows = []
    for name in tacit.__all__:
        value, uri = getattr(tacit, name), page_of(name)
        first = "the version" if name == "__version__" else _first(value.__doc__)
        rows.append(f"| [`{name}`]({uri.removeprefix('api/')}) | {first} |")
        if not isinstance(value, ModuleType):
            home = tacit._HOME.get(name, "tacit")
            yield uri, f"# tacit.{name}\n\n`from tacit import {name}`\n\n::: {_written(home, name, value)}\n"
    modules = []
    for short in MODULES:
        module = importlib.import_module(f"tacit.{short}")
        modules.append(f"| [`tacit.{short}`](modules/{short}.md) | {_first(module.__doc__)} |")
        yield f"api/modules/{short}.md", _module(module)
    head = "# Python reference\n\nFrom the docstrings. What `tacit` exports has a page a name:\n\n"
    head += "| name | |\n|---|---|\n"
    between = "\n\nThe rooms behind it, one page each:\n\n| module | |\n|---|---|\n"
    yield "api/index.md", head + "\n".join(rows) + between + "\n".join(modules) + "\n"


def _module(module: ModuleType) -> str:
    short = module.__name__.removeprefix("tacit.")
    text = [
        f"# {module.__name__}",
        f"::: {module.__name__}\n    options:\n      members: false\n"
        "      show_root_heading: false\n      show_root_toc_entry: false",
    ]
    names = {name: _owner(module, name) for name in module.__all__}
    links = [f"[`{n}`]({os.path.relpath(uri, 'api/modules')})" for n, uri in names.items() if uri]
    if links:
        text.append("On other pages: " + ", ".join(links) + ".")
    own = [name for name, uri in names.items() if not uri]
    text += [f"::: {_written(f'tacit.{short}', name, getattr(module, name))}" for name in own]
    return "\n\n".join(text) + "\n"


def _owner(module: ModuleType, name: str) -> str:
    """The page that has a name of this module, if it is another one: its own, or the innermost module's."""
    import tacit

    value = getattr(module, name)
    if name in tacit.__all__ and getattr(tacit, name) is value:
        return page_of(name)
    if isinstance(value, ModuleType):
        return f"api/modules/{value.__name__.removeprefix('tacit.')}.md"
    written = _written(module.__name__, name, value)
    holders = [m for m in MODULES if _written(f"tacit.{m}", name, _exported(m).get(name)) == written]
    inner = max(holders, key=len)
    if f"tacit.{inner}" == module.__name__:
        return ""
    return f"api/modules/{inner}.md#{written}"


def _exported(short: str) -> dict[str, Any]:
    module = importlib.import_module(f"tacit.{short}")
    return {name: getattr(module, name) for name in module.__all__}


def _written(module: str, name: str, value: Any) -> str:
    """Where a class or function is written; other values are found under the module that exports them."""
    home, own = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return f"{home}.{own}" if own == name and str(home).startswith("tacit.") else f"{module}.{name}"


def _first(text: str | None) -> str:
    return ((text or "").strip().split("\n\n", 1)[0]).replace("\n", " ").replace("|", "\\|")


def _reference(pages: list[str]) -> list[Any]:
    def named(folder: str) -> list[Any]:
        return [{Path(p).stem: p} for p in pages if p.startswith(f"api/{folder}/")]

    return [
        {"Functions and values": named("names")},
        {"Types": named("types")},
        {"Modules": named("modules")},
    ]
