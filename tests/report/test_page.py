"""The page as a browser and a reader of screens meet it, and what it must never show."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import math
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from support.pages import Node, parsed
from support.views import cell, release, releases, report
from tacit.curator.cells import NOISY, QualityFlag, QualityRule
from tacit.errors import InvalidInput, InvalidParameter, UnknownName
from tacit.report.page import DARK, LIGHT, READ_ON, SEEN_ON, report_html, style_sheet, write_report
from tacit.report.pictures import draw, fitting
from tacit.report.view import BudgetView, CellView, ReleaseView, ReportView

TRUTH = "the truth is shown only because this survey is public and made up"


@pytest.fixture(scope="module")
def page() -> str:
    return report_html(report())


@pytest.fixture(scope="module")
def nodes(page: str) -> list[Node]:
    return parsed(page).walk()


# --- one file, well made --------------------------------------------------------------------------------
def test_it_is_nested_rightly_and_ids_are_unique(nodes: list[Node]) -> None:
    ids = [n.attributes["id"] for n in nodes if "id" in n.attributes]
    assert len(nodes) > 1000
    assert len(set(ids)) == len(ids)
    for n in nodes:
        for named in n.attributes.get("aria-labelledby", "").split():
            assert named in ids
        href = n.attributes.get("href", "")
        assert not href.startswith("#") or href[1:] in ids, href


def test_the_parser_notices_what_is_wrong() -> None:
    for wrong in ("<p><b></p></b>", "<p>", "</p>", '<p class="a" class="b"></p>'):
        with pytest.raises(AssertionError):
            parsed(wrong)


def test_it_needs_no_network_and_no_script(page: str, nodes: list[Node]) -> None:
    assert not re.search(r"//|@import|javascript:|data:", re.sub(r"\s", "", page))
    assert not {n.tag for n in nodes} & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    assert all(url.startswith("#") for url in re.findall(r"url\((.*?)\)", page))
    assert not any(k.startswith("on") or k in ("src", "srcset") for n in nodes for k in n.attributes)
    for n in nodes:
        assert re.fullmatch(r"(#?[\w./-]+)?", n.attributes.get("href", ""))


def test_the_same_view_gives_the_same_bytes(page: str, tmp_path: Path) -> None:
    write_report(report(), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    assert len(page) < 400_000


def test_headings_go_down_one_level_at_a_time(nodes: list[Node]) -> None:
    levels = [int(n.tag[1]) for n in nodes if re.fullmatch(r"h[1-6]", n.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


# --- for those who do not see it ------------------------------------------------------------------------
def test_every_picture_has_a_name_a_description_and_a_table(nodes: list[Node]) -> None:
    pictures = [n for n in nodes if n.tag == "svg" and n.attributes.get("aria-hidden") != "true"]
    assert len(pictures) > 15
    for n in pictures:
        assert n.attributes.get("role") == "img"
        for part in ("title", "desc"):
            found = n.first(part)
            assert found is not None, f"a picture without <{part}>"
            assert len(found.words().strip()) > 5
    articles = [n for n in nodes if n.tag == "article"]
    assert len(articles) == len(releases())
    for view, n in zip(releases(), articles, strict=True):
        tables = [m for m in n.walk() if m.tag == "table"]
        assert len(tables) == 1, f"{view.name} has no table of its numbers"
        rows = [m for m in tables[0].walk() if m.tag == "tr"]
        assert len(rows) == 1 + len(draw(view).cells)
        assert any(m.tag == "svg" and "picture" in m.attributes["class"] for m in n.walk() if m.tag == "svg")


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a: str, b: str) -> float:
    x, y = sorted((luminance(a), luminance(b)))
    return (y + 0.05) / (x + 0.05)


def test_contrast_is_computed_rightly() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)  # WCAG's well-known near miss


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_pair_of_colours_can_be_told_apart(palette: dict[str, str]) -> None:
    weak = {p: contrast(palette[p[0]], palette[p[1]]) for p in READ_ON}
    assert not {p: c for p, c in weak.items() if c < 4.5}
    weak = {p: contrast(palette[p[0]], palette[p[1]]) for p in SEEN_ON}
    assert not {p: c for p, c in weak.items() if c < 3}


def test_every_colour_of_the_page_is_a_variable_of_both_palettes() -> None:
    css = style_sheet()
    assert set(LIGHT) == set(DARK)
    assert set(re.findall(r"var\(--([\w-]+)\)", css)) <= set(LIGHT)
    # What colours text must be among the pairs that are checked.
    inks = set(re.findall(r"(?<![-\w])color:var\(--([\w-]+)\)", css))
    assert inks <= {ink for ink, _ in READ_ON}
    text = set(re.findall(r"\.picture [^{}]*\{fill:var\(--([\w-]+)\)", css))
    assert text <= {ink for ink, _ in READ_ON}
    rest = re.sub(r":root\{[^}]*\}", "", css)
    assert set(re.findall(r"#[0-9a-f]{3,6}\b", rest)) <= {"#fff"}, "a colour outside the palettes"


# --- no cell unexplained, every number traceable --------------------------------------------------------
def test_every_number_stands_inside_what_names_its_certificate(nodes: list[Node]) -> None:
    known = {r.certificate for r in releases()} | {"the ledger"}
    numbers = [n for n in nodes if "num" in n.attributes.get("class", "").split()]
    assert len(numbers) > 500
    for n in numbers:
        sources = [
            a.attributes["data-certificate"]
            for a in [n, *n.ancestors()]
            if "data-certificate" in a.attributes
        ]
        assert sources, f"{n.words()!r} comes from nowhere"
        assert sources[0] in known


def test_every_release_links_its_certificate_and_names_it_in_its_caption(nodes: list[Node]) -> None:
    for view, n in zip(releases(), [n for n in nodes if n.tag == "article"], strict=True):
        links = [m.attributes["href"] for m in n.walk() if m.tag == "a"]
        assert view.certificate in links
        assert view.values in links
        captions = " ".join(m.words() for m in n.walk() if m.tag in ("figcaption", "caption"))
        assert captions.count(view.certificate) >= 2


def test_every_flag_that_occurs_is_told_where_it_occurs_and_explained_once(nodes: list[Node]) -> None:
    flagged = 0
    reading = next(n for n in nodes if n.attributes.get("aria-labelledby") == "reading").words()
    for view, n in zip(releases(), [n for n in nodes if n.tag == "article"], strict=True):
        words = n.words()
        links = [m.attributes["href"] for m in n.walk() if m.tag == "a"]
        for id, count in view.flag_counts.items():
            flag = next(f for f in view.flags if f.id == id)
            assert f"{flag.label} {count:,} of {len(view.cells):,}" in words
            assert reading.count(f"{flag.label}: {flag.explanation}.") == 1
            assert "#reading" in links
            flagged += 1
        if not view.flag_counts:
            assert "Quality: all" in words or "Quality: good." in words
    assert flagged > 8


def test_what_it_means_is_said_once_and_before_what_is_folded(page: str, nodes: list[Node]) -> None:
    words = parsed(page).words()
    for sentence in report().about_you:
        # Once for everybody, once in the officer's account of the budget.
        assert words.count(sentence) == 2
    order = [n.attributes["id"] for n in nodes if n.tag == "h2" and "id" in n.attributes]
    assert [i for i in order if not i.startswith("release-")] == [
        "summary",
        "reading",
        "about-you",
        "officer",
        "mechanisms",
    ]
    assert order.index("reading") == 1 + len(releases())
    folds = [n for n in nodes if n.tag == "details" and "fold" in n.attributes.get("class", "")]
    assert len(folds) == 2
    assert not any("open" in n.attributes for n in folds)
    for n in nodes:
        if "price" in n.attributes.get("class", "").split() or n.words() == "Mechanism":
            assert any(a in folds for a in n.ancestors()) or n in folds or n.tag not in ("td", "dt")


def test_a_flag_without_an_explanation_cannot_exist() -> None:
    odd = CellView(keys=(), value=1.0, flag="odd")
    with pytest.raises(UnknownName, match="quality flag"):
        release("x", "count", "X", [odd])
    told = QualityFlag(id="odd", label="odd one out", explanation="it was adjusted so that totals agree")
    made = report_html(only(release("x", "count", "X", [odd], more_flags=(told,))))
    assert "it was adjusted so that totals agree" in made
    with pytest.raises(InvalidParameter, match="flag"):
        CellView(value=None)


def test_methods_have_statement_source_and_assumptions(page: str, nodes: list[Node]) -> None:
    from tacit.guarantees import theorem

    words = parsed(page).words()
    for id in ("gaussian-profile", "discrete-laplace", "post-processing"):
        known = theorem(id)
        assert known.statement in words
        assert known.source in words
        assert known.assumptions in words
        assert any(n.attributes.get("id") == f"theorem-{id}" for n in nodes)
    with pytest.raises(UnknownName):
        dataclasses.replace(report(), methods=("gausian-profile",))


# --- the truth ------------------------------------------------------------------------------------------
def test_the_truth_is_shown_only_for_synthetic_data(page: str) -> None:
    assert page.count(TRUTH) + page.count(TRUTH.capitalize()) >= len(releases())
    with pytest.raises(InvalidParameter, match="synthetic"):
        dataclasses.replace(report(), synthetic=False)
    real = report_html(report(synthetic=False))
    assert "truth" not in re.sub(r"<style>.*?</style>", "", real, flags=re.S)


# --- hostile and odd values -----------------------------------------------------------------------------
def only(*views: ReleaseView, **more: Any) -> ReportView:
    budget = BudgetView(
        kind="epsilon", total=1.0, spent=0.0, remaining=1.0, total_words="1", spent_words="0", remaining_words="1"
    )  # fmt: skip
    facts: dict[str, Any] = {
        "title": "T", "made_at": datetime.datetime(2024, 1, 1), "unit_sentence": "U", "budget": budget,
        "releases": views, "synthetic": True,
    }  # fmt: skip
    return ReportView(**(facts | more))


def test_any_name_can_be_linked_to() -> None:
    odd = ["a b", "a_b", "a-b", 'x"/)#?%<', "größe", "A_20_b"]
    text = report_html(only(*(release(name, "count", name, [cell((), 5, 1)]) for name in odd)))
    found = parsed(text).walk()
    ids = [n.attributes["id"] for n in found if "id" in n.attributes]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[\w-]+", i, re.A) for i in ids)
    hrefs = {n.attributes["href"] for n in found if n.tag == "a"}
    assert {unquote(h) for h in hrefs} >= {f"certificates/{name}.json" for name in odd}
    assert all(re.fullmatch(r"#?[\w./%~-]+", h, re.A) for h in hrefs)


def test_no_text_becomes_markup() -> None:
    nasty = "<script>alert(1)</script> & \"quotes\" 'and' ]]> -->"
    view = release(
        "x", nasty, nasty, [cell((nasty, nasty), 5, 1)], columns=(nasty, nasty), measure=nasty,
        question=nasty, price=nasty, condition=nasty, mechanism=nasty, ratio=None,
        ratio_reason=nasty,
    )  # fmt: skip
    text = report_html(
        only(
            view,
            title=nasty,
            unit_sentence=nasty,
            about_you=(nasty,),
            warnings=(nasty,),
            publisher=nasty,
            contact=nasty,
        )
    )
    assert "<script" not in text
    assert parsed(text).words().count(nasty) > 10


ODD: list[list[CellView]] = [
    [],
    [CellView(keys=("a",), value=0.0, low=0.0, high=0.0)],
    [
        CellView(keys=("a",), value=-5.0, low=-9.0, high=-1.0),
        CellView(keys=("b",), value=-2.0, low=-math.inf, high=math.inf),
    ],
    [CellView(keys=("a",), value=1e300, low=-1e300, high=1.5e300), CellView(keys=("b",), value=1e-300)],
    [CellView(keys=("a",), value=None, flag="absent")],
    [CellView(keys=(k,), value=3.0, low=2.0, high=4.0) for k in range(30)],
    [CellView(keys=(k,), value=None, flag="absent") for k in range(30)],
    [CellView(keys=((k, k + 1),), value=0.0, low=-1.0, high=1.0, flag=NOISY) for k in range(5)],
    [CellView(keys=((k, k + 1),), value=float(k), truth=0.0) for k in range(300)],
    [CellView(keys=(k % 2 == 0,), value=1.0 + k) for k in range(2)],
    [CellView(keys=(None,), value=1.0)],
]


@pytest.mark.parametrize("cells", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("picture", ["auto", "bars", "histogram", "curve", "heatmap", "number", "table"])
def test_odd_values_are_drawn_or_told(cells: list[CellView], picture: Any) -> None:
    view = release("x", "count", "X", cells, columns=("key",), picture=picture)
    text = report_html(only(view))
    parsed(text)
    drawn = re.sub(r"<(text|desc|title|td|span|tspan)\b.*?</\1>", "", text, flags=re.S)
    for attribute in re.findall(r'="([^"]*)"', drawn):
        assert not re.search(r"\b(nan|inf)\b", attribute), attribute


def test_infinite_intervals_of_one_number() -> None:
    view = release("x", "ratio", "X", [CellView(value=3.0, low=-math.inf, high=math.inf, flag=NOISY)])
    text = report_html(only(view))
    assert "−∞ to ∞" in text
    assert not re.search(r'="[^"]*\b(nan|inf)\b', text)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: CellView(value=math.nan), "value"),
        (lambda: CellView(value=1.0, low=0.0), "low"),
        (lambda: CellView(value=1.0, low=2.0, high=1.0), "low"),
        (lambda: release("x", "count", "X", [cell(("a",), 1, 1)]), "cells"),
        (lambda: release("x", "count", "X", [], certificate=""), "certificate"),
        (lambda: release("x", "count", "X", [], ratio=None), "ratio_reason"),
        (lambda: release("x", "count", "X", [], confidence=95), "confidence"),
        (lambda: release("x", "count", "X", [], picture="pie"), "picture"),
        (lambda: release("x", "count", "X", [], theorems=("nonsense",)), "theorem"),
        (lambda: only(*[release("x", "count", "X", [])] * 2), "different names"),
        (lambda: QualityRule(care=0.5, noisy=0.2), "care"),
        (lambda: QualityRule(of=0), "of"),
        (lambda: dataclasses.replace(report().budget, total=0.0), "total"),
        (lambda: dataclasses.replace(report().budget, spent=math.nan), "spent"),
        (lambda: dataclasses.replace(report(), releases=releases()[:3]), "release in the budget"),
    ],
)
def test_what_cannot_be_shown_rightly_is_refused(make: Any, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        make()


# --- the right picture ----------------------------------------------------------------------------------
def test_each_release_gets_the_picture_that_fits_its_kind() -> None:
    assert {r.name: fitting(r) for r in releases()} == {
        "visits": "number", "by-region": "bars", "income": "bars", "age-quantiles": "points", "age": "histogram",
        "weeks": "curve", "region-age": "heatmap", "three": "multiples", "margins": "multiples",
        "codes": "bars", "stay": "bars",
    }  # fmt: skip


def test_beyond_forty_cells_the_largest_are_shown_and_the_rest_is_counted(page: str) -> None:
    view = next(r for r in releases() if r.name == "codes")
    drawn = draw(view)
    assert len(drawn.cells) == 40
    assert min(c.value or 0 for c in drawn.cells) >= max(c.value or 0 for c in view.cells[40:])
    assert "the largest 40 of 90 cells, and 50 more in values/codes.csv" in page
    wide = [cell((f"a{i}", f"b{j}"), i * j, 2) for i in range(30) for j in range(30)]
    big = draw(release("x", "count", "X", wide, columns=("a", "b")))
    assert (big.kind, len(big.cells)) == ("table", 40)


def test_margins_are_one_picture_a_table(nodes: list[Node]) -> None:
    article = next(n for n in nodes if n.attributes.get("id") == "release-margins")
    pictures = [n for n in article.walk() if "picture" in n.attributes.get("class", "").split()]
    names = [p.first("title") for p in pictures]
    assert [n.words() for n in names if n is not None] == ["By region", "By sex and insured", "All together"]
    assert ["bars" in p.attributes["class"] for p in pictures] == [True, False, True]
    assert "Margins" in article.words()


def test_a_cell_too_noisy_to_use_does_not_squeeze_the_others() -> None:
    from tacit.report.drawing import span_of

    good = [cell((k,), 100 + k, 5) for k in range(5)]
    wild = CellView(keys=("wild",), value=90_000.0, low=-math.inf, high=math.inf, flag=NOISY)
    assert span_of([*good, wild])[1] < 250
    assert span_of([wild])[1] >= 90_000


def test_the_quality_rule_is_what_it_says() -> None:
    rule = QualityRule(care=0.25, noisy=0.5)
    assert rule.flag(100, 76, 124) == ""
    assert rule.flag(100, 74, 126) == "care"
    assert rule.flag(-100, -151, -49) == "noisy"
    assert rule.flag(0, -1, 1) == "noisy"
    assert rule.flag(None, None, None) == "absent"
    assert rule.flag(7, None, None) == ""
    assert QualityRule(of=120).flag(0, -1, 1) == ""
