"""The documents keep their word: pages exist, links resolve, code runs, shown numbers are the real ones."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import tacit.errors
from support.documents import agrees, blocks, page, run
from support.notebooks import NOTEBOOKS
from tacit.guarantees import THEOREMS
from tacit.guarantees.theorems import Standing

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
THEORY = DOCS / "theory"
PAGES = sorted(p for p in THEORY.glob("*.md") if p.stem != "README")
HEADINGS = ("Statement", "Assumptions", "Proof", "Source", "In code")
MARKDOWN = sorted(
    p
    for p in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    if p.is_file() and ".venv" not in p.parts
)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def made_by(name: str) -> Any:
    """A program of docs/_site."""
    if str(DOCS / "_site") not in sys.path:
        sys.path.append(str(DOCS / "_site"))
    return importlib.import_module(name)


# --- theorems ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("id", sorted(THEOREMS))
def test_every_theorem_has_its_page(id: str) -> None:
    path = THEORY / f"{id}.md"
    assert path.exists(), f"docs/theory/{id}.md is missing"
    _, text = made_by("theorems").parts(page(path))
    assert text.startswith("# ")
    places = [text.find(f"\n**{heading}.** ") for heading in HEADINGS]
    missing = [h for h, at in zip(HEADINGS, places, strict=True) if at < 0]
    assert not missing, f"docs/theory/{id}.md lacks {missing}"
    assert places == sorted(places), f"docs/theory/{id}.md has its parts out of order"
    if THEOREMS[id].standing is Standing.CORRECTED:
        assert "\n**Correction.** " in text, f"docs/theory/{id}.md does not say what it corrects"


def test_the_register_is_what_the_pages_say() -> None:
    """Both ways: every page is registered as its front matter says, and nothing else is."""
    generator = made_by("theorems")
    assert page(generator.REGISTER) == generator.register(), "run: python docs/_site/theorems.py"
    said = {p.stem: generator.front(p) for p in PAGES}
    known = {
        t.id: {**{k: getattr(t, k) for k in generator.KEYS[:-1]}, "room": said.get(t.id, {}).get("room")}
        for t in THEOREMS.values()
    }
    assert len(known) > 200
    assert known == said
    assert set(generator.STANDINGS) == {s.value for s in Standing}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("---\nid", "id", "begins with front matter"),
        ("id: one", "id: two", "name of the page"),
        ("standing: sharper", "standing: better", "as printed"),
        ("standing: sharper\n", "", "one line for each of"),
        ("standing: sharper\n", "standing: sharper\nstanding: sharper\n", "one line for each of"),
        ('"A is B: yes."', "A is B: yes.", "one.md: "),
        ('"A is B: yes."', "7", "one line of text"),
        ('"A is B: yes."', '""', "one line of text"),
        ('"A is B: yes."', '"A is B:\\nyes."', "one line of text"),
    ],
)
def test_front_matter_that_is_not_complete_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    said = (
        'id: one\nstatement: "A is B: yes."\nsource: "A"\nassumptions: "B"\nstanding: sharper\nroom: risk\n'
    )
    text = f"---\n{said}---\n\n# One\n"
    front = made_by("theorems").front
    path = tmp_path / "one.md"
    path.write_text(text, "utf-8")
    assert front(path)["statement"] == "A is B: yes."
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(ValueError, match=told):
        front(path)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_names_in_code_resolve(path: Path) -> None:
    _, _, after = page(path).partition("\n**In code.** ")
    for name in re.findall(r"`(tacit(?:\.\w+)+)(?:\([^`]*\))?`", after):
        assert resolve(name) is not None, f"{named(path)}: {name} does not exist"


def resolve(name: str) -> Any:
    """The object with this dotted name: the longest importable module, then attributes."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        module = ".".join(parts[:cut])
        try:
            found: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
                raise
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute, None)
        return found
    return None


def test_resolve_tells_names_from_nonsense() -> None:
    assert resolve("tacit.guarantees.bounds.base.Pure.delta") is not None
    assert resolve("tacit.guarantees.bounds.base.Pure.nothing") is None
    assert resolve("tacit.nowhere.pure") is None


def test_the_index_lists_every_theorem_with_its_standing() -> None:
    rows = re.findall(
        r"^\| \[([\w-]+)\]\(([\w-]+)\.md\) \|.*\| ([\w ]+) \|$", page(THEORY / "README.md"), re.M
    )
    listed = {id: standing for id, _, standing in rows}
    assert all(id == target for id, target, _ in rows)
    assert len(listed) == len(rows), "a theorem is listed twice"
    assert set(listed) == set(THEOREMS)
    wrong = {id: s for id, s in listed.items() if s != THEOREMS[id].standing.value}
    assert not wrong, f"the index gives another standing than the register: {wrong}"


def test_theorems_cited_in_brackets_exist() -> None:
    cited = set()
    for path in MARKDOWN:
        for ids in re.findall(r"\[((?:[a-z]+(?:-[a-z]+)+(?:, )?)+)\](?!\()", page(path)):
            cited |= set(ids.split(", "))
    assert len(cited) > 10
    assert cited <= set(THEOREMS)


# --- links ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", MARKDOWN, ids=named)
def test_relative_links_resolve(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page(path), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        goal = (path.parent / file).resolve() if file else path
        assert goal.exists(), f"{named(path)} links to {target}, which does not exist"
        assert goal.is_relative_to(ROOT), f"{named(path)} links outside the repository"
        if anchor:
            assert anchor in anchors(page(goal)), f"{named(path)}: no heading for {target}"


def anchors(text: str) -> set[str]:
    """The anchors that headings get: lower case, punctuation dropped, spaces to hyphens."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def test_the_picture_is_there_and_small() -> None:
    picture = DOCS / "images" / "report.png"
    assert "docs/images/report.png" in page(ROOT / "README.md")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert picture.stat().st_size < 200_000


# --- code ----------------------------------------------------------------------------------------------
# Which pages are run, whether all output must be shown on them, and how many claims they make at least.
RUN = [
    ("README.md", True, 1),
    ("CONTRIBUTING.md", False, 1),
    ("docs/exercises.md", False, 0),
    ("docs/solutions.md", True, 15),
    ("docs/tutorial.md", True, 35),
    ("docs/guarantees.md", False, 30),
    ("docs/accounting.md", True, 10),
    ("docs/anonymity.md", False, 9),
    ("docs/attacks.md", True, 5),
    ("docs/audit.md", True, 7),
    ("docs/coming-from.md", False, 6),
    ("docs/coupled.md", False, 8),
    ("docs/curator.md", False, 0),
    ("docs/densities.md", False, 9),
    ("docs/exact-answers.md", True, 31),
    ("docs/functions.md", False, 3),
    ("docs/local.md", True, 1),
    ("docs/kernel-models.md", False, 3),
    ("docs/mechanisms.md", False, 8),
    ("docs/direct-mechanisms.md", False, 0),
    ("docs/parties.md", True, 1),
    ("docs/paths.md", False, 6),
    ("docs/random-data.md", True, 20),
    ("docs/report.md", True, 1),
    ("docs/sparse-histograms.md", False, 4),
    ("docs/synthesis.md", True, 5),
    ("examples/boosting-on-synthetic-rows.md", True, 1),
    ("docs/trees.md", False, 6),
    ("examples/noise-for-many-queries.md", True, 12),
]


def test_every_example_is_run() -> None:
    there = {named(p) for p in (ROOT / "examples").rglob("*") if p.suffix in {".ipynb", ".md", ".py"}}
    assert there
    # tests/examples runs the notebooks, tests/audit the zoo, tests/cli/test_distance.py the statistic of one's own.
    elsewhere = {*NOTEBOOKS, "examples/README.md", "examples/mechanism_zoo.py", "examples/majority.py"}
    assert there <= {path for path, _, _ in RUN} | elsewhere


@pytest.mark.parametrize(("path", "shown", "least"), RUN)
def test_code_runs_and_shows_true_numbers(
    path: str, shown: bool, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # what a page writes is no part of the repository
    outcome = run(page(ROOT / path), path, shown=shown)
    assert outcome.checked >= least, f"only {outcome.checked} claims of {path} were checked"


def test_a_wrong_number_or_a_missing_error_is_noticed() -> None:
    assert agrees(2.1417, "2.142")
    assert agrees(0.01, "1e-2")
    assert not agrees(2.1417, "2.143")
    assert not agrees(2.1417, "2.141")
    with pytest.raises(AssertionError):
        run("```python\n1 + 1  # 3\n```\n", "page", shown=True)
    with pytest.raises(AssertionError):
        run("```python\n1 + 1  # raises NoLaw\n```\n", "page", shown=True)
    with pytest.raises(AssertionError):
        run("```python\nprint(2)\n```\n", "page", shown=True)
    with pytest.raises(AssertionError):
        run("```python\nprint(2)\n```\n```text\n3\n```\n", "page", shown=True)
    assert run("```python\nprint(2)\n```\n\n```text\n2\n```\n", "page", shown=True).checked == 1


# --- errors --------------------------------------------------------------------------------------------
def sections(text: str, prefix: str = "") -> dict[str, str]:
    """The text under each second-level heading."""
    parts = re.split(rf"^## {prefix}(.+)$", text, flags=re.M)
    return dict(zip((h.strip().strip("`") for h in parts[1::2]), parts[2::2], strict=True))


def test_every_error_has_its_section_and_no_other() -> None:
    assert sorted(sections(page(DOCS / "errors.md"))) == sorted(tacit.errors.__all__)


@pytest.mark.parametrize("name", tacit.errors.__all__)
def test_an_error_is_explained_by_raising_it(name: str) -> None:
    text = sections(page(DOCS / "errors.md"))[name]
    for part in ("**When.**", "**What to do.**"):
        assert part in text, f"the section {name} lacks {part}"
    outcome = run(text, "docs/errors.md", shown=True)
    kind = getattr(tacit.errors, name)
    assert outcome.raised, f"the section {name} raises nothing"
    assert all(isinstance(error, kind) for error in outcome.raised)
    leaves = {c for c in vars(tacit.errors).values() if isinstance(c, type) and issubclass(c, kind)}
    if leaves == {kind}:
        assert {type(error) for error in outcome.raised} == {kind}


def test_the_drawn_tree_is_the_tree() -> None:
    drawn = re.findall(r"^ {4}[│├└─ ]*(\w+)(?: {2,}|$)", tacit.errors.__doc__ or "", re.M)
    assert sorted(drawn) == sorted(tacit.errors.__all__)


# --- commands ------------------------------------------------------------------------------------------
def commands(group: Any, prefix: str = "tacit") -> dict[str, set[str]]:
    """Every command by its full name, with its long options."""
    found = {prefix: {o for p in group.params for o in p.opts if o.startswith("--")} - {"--help"}}
    for name, command in getattr(group, "commands", {}).items():
        found |= commands(command, f"{prefix} {name}")
    return found


def test_the_page_of_commands_is_made_from_their_help() -> None:
    assert page(DOCS / "cli.md") == made_by("commands").page(), "run: python docs/_site/commands.py"


def test_every_command_has_its_section_with_its_options() -> None:
    """The generator leaves nothing out: an option stands in the table of its command, or in the head of it."""
    import typer

    from tacit.cli.app import app

    known = commands(typer.main.get_command(app))
    written = {
        name: re.findall(r"`(--[\w-]+)`", text) for name, text in sections(page(DOCS / "cli.md")).items()
    }
    assert set(written) == set(known)
    missing = {
        name: gone for name, options in known.items() if (gone := options - {"--json", *written[name]})
    }
    assert not missing


def test_commands_shown_on_the_pages_exist() -> None:
    import typer

    from tacit.cli.app import app

    known = set(commands(typer.main.get_command(app)))
    for path in (ROOT / "README.md", DOCS / "cli.md", DOCS / "tutorial.md"):
        for block in blocks(page(path)):
            if block.language != "sh":
                continue
            for line in block.body.splitlines():
                if line.startswith("tacit "):
                    words = [w for w in line.split() if not w.startswith("-")]
                    assert " ".join(words[:2]) in known or line.split()[1].startswith("--"), line


# --- the length of pages ---------------------------------------------------------------------------------
UNWANTED = (
    "says nothing about it: a stop that depends on the data",
    "how much that is is not known",
    "does not stand any more",
    "read its size, not its digits",
    "dust may be refused",
)


@pytest.mark.parametrize(
    "name",
    ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
    + [f"docs/{n}.md" for n in ("cli", "errors", "glossary", "known-limits", "stability")],
)
def test_no_riddles_come_back(name: str) -> None:
    """Sentences that readers stumbled over; docs/style.md has them beside what is said now."""
    text = " ".join(page(ROOT / name).lower().split())
    assert [words for words in UNWANTED if words in text] == []


def test_known_limits_are_what_everybody_must_know() -> None:
    """A limit of one feature stands on the page of that feature, so that this page is read."""
    lines = [line for line in page(DOCS / "known-limits.md").splitlines() if line.strip()]
    assert len(lines) <= 40, f"{len(lines)} lines"


# --- rows that classes and pages declare ---------------------------------------------------------------
@pytest.mark.parametrize("name", ["glossary.md", "mechanisms.md", "theory/README.md"])
def test_declared_rows_stand_in_their_tables(name: str) -> None:
    made = made_by("tables").PAGES[DOCS / name]
    assert page(DOCS / name) == made(page(DOCS / name)), "run: python docs/_site/commands.py"


def test_a_declared_row_is_added_once_and_renewed() -> None:
    with_row = made_by("tables").with_row
    text = "| a | b |\n|---|---|\n| `x` | old |\n\nAfter.\n"
    renewed = with_row(text, first="`x`", row="| `x` | new |", after="|---|---|")
    assert renewed == text.replace("old", "new")
    added = with_row(text, first="`y`", row="| `y` | 1 |", after="|---|---|")
    assert added == text.replace("| old |\n", "| old |\n| `y` | 1 |\n")
    assert with_row(added, first="`y`", row="| `y` | 1 |", after="|---|---|") == added


def test_every_mechanism_stands_in_the_table() -> None:
    import tacit.mechanisms as room

    text = page(DOCS / "mechanisms.md")
    rows = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", text, re.M))))
    kinds = [kind for name in room.__all__ if inspect.isclass(kind := getattr(room, name))]
    made = {k.__name__ for k in kinds if issubclass(k, room.Mechanism) and not inspect.isabstract(k)}
    assert made - rows <= {"RangeTree", "ShapedTables"}, "tables have a paragraph of their own below"


# --- the glossary --------------------------------------------------------------------------------------
def test_every_public_name_stands_in_the_glossary() -> None:
    import tacit
    from tacit.accounting import events

    text = page(DOCS / "glossary.md")
    first = {
        name
        for row in re.findall(r"^\| (`[^|]*) \|", text, flags=re.M)
        for name in re.findall(r"`([\w.]+)`", row)
    }
    wanted = {*tacit.__all__, *(f"events.{name}" for name in events.__all__)}
    deeper = {name for name in first - wanted if "." in name}
    assert all(resolve("tacit." + name) is not None for name in deeper)
    first -= deeper
    assert first - {"tacit"} == wanted, f"missing {sorted(wanted - first)}, gone {sorted(first - wanted)}"


def test_a_constructor_that_draws_is_sent_to_a_mechanism() -> None:
    """Whoever knows OpenDP's `make_laplace` finds the class that releases, not the event that is accounted for."""
    rows = [line.split("|") for line in page(DOCS / "glossary.md").splitlines() if line.startswith("|")]
    draws = {"make_laplace", "make_gaussian", "make_geometric", "make_noisy_max", "make_randomized_response"}
    found: dict[str, list[str]] = {}
    for row in rows:
        for name in draws & set(re.findall(r"make_\w+", " ".join(row))):
            assert "events." not in row[1], f"{name} stands beside an event"
            found[name] = re.findall(r"`(tacit\.mechanisms\.\w+)`", row[-2])
    assert set(found) == draws
    for names in found.values():
        assert names
        assert all(hasattr(resolve(name), "release") or hasattr(resolve(name), "choose") for name in names)


def test_the_glossary_has_the_words_of_the_field() -> None:
    text = page(DOCS / "glossary.md")
    words = "privacy-loss distribution (PLD), RDP, zCDP, Rényi DP, Gaussian DP (GDP), f-DP, trade-off curve, "
    words += "Poisson subsampling, privacy profile, PRV, global sensitivity"
    for word in words.split(", "):
        assert word in text, word
    for name in re.findall(r"`tacit\.([\w.]+)", text):
        assert resolve("tacit." + name) is not None, name
