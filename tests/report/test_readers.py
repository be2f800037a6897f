"""Labels, what a release says about you, what an officer reads, and one rule of quality in page, file and terminal."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import pandas as pd
import pytest

import tacit
import tacit.statistics as ask
from support.pages import parsed
from tacit.curator.cells import WORDS, QualityRule, rule_of
from tacit.curator.text import PublicWords, words_in
from tacit.errors import InvalidInput, UnknownName
from tacit.guarantees import Guarantee, RandomData
from tacit.noise.source import SeededSource
from tacit.report.building import about_you, report_of
from tacit.report.view import OfficerPart
from tacit.sources import Schema, category, date, integer, number

SCHEMA = Schema(
    {
        "person": integer(0, 10_000),
        "region": category(["N", "S"]),
        "weight": number(0, 1_000_000),
        "height": number(0, 250, outside="missing"),
        "born": date("1900-01-01", "2024-12-31"),
    }
)
WORDING = PublicWords(
    title="Stays",
    publisher="Office of Statistics",
    period="2024",
    contact="desk@example.org",
    columns={"region": "Region of residence", "weight": "Weight in grams"},
    keys={"region": {"N": "North", "S": "South"}},
    releases={"by region": "People by region of residence"},
)


def released(*asks: Any, epsilon: float = 2.0, rows: int = 400) -> tuple[Any, Any, Any]:
    table = pd.DataFrame(
        {
            "person": range(rows), "region": ["N", "N", "N", "S"] * (rows // 4),
            "weight": [70_000.0 + i for i in range(rows)], "height": [170.0] * rows, "born": ["1980-05-05"] * rows,
        }
    )  # fmt: skip
    with tacit.Curator(
        table, protect=tacit.people("person", at_most=1), schema=SCHEMA, budget=tacit.Pure(epsilon=8),
        source=SeededSource(seed=3),
    ) as one:  # fmt: skip
        plan = one.preview(list(asks), epsilon=epsilon)
        return plan, one.release(plan), one.budget


@pytest.fixture(scope="module")
def page() -> str:
    plan, releases, budget = released(
        tacit.query(ask.count(by="region"), name="by region"), ask.mean("weight"), ask.mean("height")
    )
    desk = OfficerPart(analyst="ann", approved_by=("bo",), table="stays", version="2024-12", signed_by="ab12")
    return report_of(plan, releases, budget=budget, words=WORDING, metadata=desk)


def test_findings_are_told_in_labels(page: str) -> None:
    text = parsed(page).words()
    for words in ("Stays", "Office of Statistics · 2024 · Contact: desk@example.org", "People by region of residence",
                  "North", "South", "for each Region of residence", "The mean of Weight in grams"):  # fmt: skip
        assert words in text
    article = page[page.index('id="release-by-region"') :].partition("</article>")[0]
    assert not re.search(r">[NS]<", article), "a key is shown beside its label"


def test_the_officer_reads_who_what_and_what_the_declarations_do(page: str) -> None:
    fold = parsed(
        page[page.index('<details class="card fold"') :].partition("</details><details")[0] + "</details>"
    )
    text = fold.words()
    for words in ("Asked by ann", "Approved by bo.", "Table stays, version 2024-12.", "signed by the key with the "
                  "fingerprint ab12", "The ledger knows of no look", "It holds whatever the data are",
                  "Weight in grams is clamped between 0 and 1,000,000", "values below raise a mean",
                  "rows outside are counted as missing, and are in no mean of it"):  # fmt: skip
        assert words in text, words


def test_what_is_not_known_is_said() -> None:
    plan, releases, budget = released(ask.count())
    text = parsed(report_of(plan, releases, budget=budget)).words()
    assert "Who asked is not recorded" in text
    assert "This page knows of no approval" in text
    assert "no version is declared" in text


def test_a_look_and_a_condition_stand_in_the_open() -> None:
    plan, releases, budget = released(ask.count())
    seen = "declarations were made by someone who had seen the data"
    looked = [dataclasses.replace(r, data={**r.data, "seen": [seen]}) for r in releases]
    text = report_of(plan, looked, budget=budget)
    section = text[text.index('aria-labelledby="about-you"') :].partition("</section>")[0]
    assert f"Known, and not counted in this: {seen}." in section
    assert seen not in report_of(plan, releases, budget=budget)


def test_a_name_that_was_made_is_read_as_words_and_a_given_one_as_it_is() -> None:
    plan, releases, budget = released(ask.count(by="region"), tacit.query(ask.count(), name="covid-19"))
    text = report_of(plan, releases, budget=budget)
    headings = re.findall(r"<h2[^>]*>([^<]*)</h2>", text) + re.findall(r"<h3[^>]*>([^<]*)</h3>", text)
    assert "Count by region" in headings
    assert "Covid-19" in headings


def test_a_digest_wraps_where_it_would_run_off_the_page() -> None:
    assert re.search(
        r"\.pair p\{overflow-wrap:anywhere\}",
        report_of(*released(ask.count())[:2], budget=released(ask.count())[2]),
    )


# --- about you -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("epsilon", "percent", "how"),
    [(0.1, "52.5%", "hardly at all"), (1.0, "73.2%", "little"), (2.0, "88.1%", "noticeably"), (5.0, "99.4%", "weak")],
)  # fmt: skip
def test_the_guess_is_that_of_randomised_response(epsilon: float, percent: str, how: str) -> None:
    """The best test of an epsilon-DP release between two versions is right e^eps / (1 + e^eps) of the time."""
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert percent == f"{math.ceil(1000 * right) / 10:g}%"
    unit = tacit.people("person", at_most=3)
    first, second = about_you(Guarantee(bound=tacit.Pure(epsilon=epsilon), unit=unit))
    assert how in first
    assert ("so that" in first) is (epsilon <= 1), "noise that leaves somebody in sight has no such end"
    assert "whether you took part" in first
    assert f"at most {percent} of the time" in second


def test_you_are_told_whose_row_and_on_which_condition() -> None:
    bound = tacit.Pure(epsilon=1.0)
    replaced = about_you(Guarantee(bound=bound, unit=tacit.people("p", at_most=1, neighbours="replace-one")))
    assert "took part" not in replaced[0], "replacing hides what is recorded, not that somebody is there"
    assert "one of your rows" in about_you(Guarantee(bound=bound, unit=tacit.rows()))[1]
    random = about_you(Guarantee(bound=bound, unit=tacit.rows(), condition=RandomData(gamma=0.1)))
    assert "on average" in random[1]
    assert float(re.search(r"most ([\d.]+)%", random[1])[1]) > 73.2  # type: ignore[index]


def test_all_that_was_spent_before_is_in_the_guess() -> None:
    table = pd.DataFrame({"x": [1, 2, 3]})
    with tacit.Curator(
        table, protect=tacit.rows(), schema={"x": integer(0, 9)}, budget=tacit.Pure(epsilon=4),
        source=SeededSource(seed=1),
    ) as one:  # fmt: skip
        one.release(one.preview(ask.count(), epsilon=1.0))
        plan = one.preview(ask.sum("x"), epsilon=1.0)
        text = report_of(plan, one.release(plan), budget=one.budget)
    assert "88.1% of the time" in text, "e^2 / (1 + e^2), for both releases"


# --- one rule of quality ---------------------------------------------------------------------------------
def test_page_file_and_terminal_say_the_same_words() -> None:
    plan, releases, budget = released(
        ask.count(by="region"), ask.mean("weight", by="region"), epsilon=0.05, rows=80
    )
    text = report_of(plan, releases, budget=budget)
    for one in releases:
        stem = one.name.replace(" ", "-")
        article = parsed(
            text[text.index(f'<article class="card release" id="release-{stem}"') :].partition("</article>")[
                0
            ]
            + "</article>"
        )
        shown = [n.words() for n in article.walk() if n.tag == "td"][3::4]
        assert set(one.quality) <= set(WORDS.values())
        assert any(word != "good" for word in one.quality)
        assert shown == one.quality
        assert [line.rsplit(",", 1)[1] for line in one.to_csv().splitlines()[1:]] == one.quality
        lines = str(one).splitlines()[2 : 2 + len(shown)]
        assert [line.rsplit("  ", 1)[1] for line in lines] == one.quality
        assert rule_of(one).sentence in str(one)
        assert one.to_arrow()["quality"].to_pylist() == one.quality


def test_a_mean_is_judged_against_itself_and_not_against_its_bounds() -> None:
    _, releases, _ = released(ask.mean("weight"), epsilon=0.1, rows=80)
    one = releases[0]
    value, (low, high) = one.value, one.interval
    reach = max(high - value, value - low)
    wanted = "too noisy to use" if reach > value / 2 else "use with care" if reach > value / 4 else "good"
    assert one.quality == [wanted]
    assert rule_of(one).of is None
    assert wanted != "good", "half of a million would have been a narrow interval"


def test_days_are_judged_against_a_year() -> None:
    _, releases, _ = released(ask.median("born"), epsilon=4.0)
    rule = rule_of(releases[0])
    assert (rule.of, rule.named) == (365.25, "a year")
    assert rule.flag(4000, 3900, 4050) == "care"
    assert rule.flag(4000, 3000, 4050) == "noisy", "the farther end counts"


def test_the_farther_end_counts_and_no_end_is_noise() -> None:
    rule = QualityRule()
    assert rule.flag(10, 10, 15.1) == "noisy"
    assert rule.flag(10, -math.inf, 10) == "noisy"
    assert rule.flag(10, 7.6, 12.4) == ""


# --- what is wrong with words ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"titel": "x"}, "title"),
        ({"title": ""}, None),
        ({"title": "a\nb"}, "one line"),
        ({"title": 5}, "one line"),
        ({"columns": {"a": "x", "b": "x"}}, "differ"),
        ({"columns": "x"}, "table"),
        ({"keys": {"region": "x"}}, "table"),
        ({"exports": ["pdf"]}, "export"),
        ({"exports": 5}, "list"),
        (5, "table"),
    ],
)  # fmt: skip
def test_words_that_are_no_words_are_refused(table: Any, word: str | None) -> None:
    if word is None:
        assert words_in(table).title == ""
        return
    with pytest.raises(InvalidInput, match=word):
        words_in(table)


def test_labels_of_what_is_not_declared_are_refused() -> None:
    for words in (
        PublicWords(columns={"regio": "x"}), PublicWords(keys={"region": {"X": "x"}}),
        PublicWords(releases={"other": "x"}),
    ):  # fmt: skip
        with pytest.raises(UnknownName):
            words.check(SCHEMA, ["by region"])
    WORDING.check(SCHEMA, ["by region"])
    PublicWords(keys={"person": {"7": "seven"}}).check(SCHEMA, [])


def test_different_keys_stay_different() -> None:
    words = PublicWords(keys={"c": {"a": "b", "x": "same", "y": "same"}})
    assert words.labelled("c", ["a", "b", "z"]) == ["b (a)", "b (b)", "z"]
    assert words.labelled("c", ["x", "y"]) == ["same (x)", "same (y)"]
    assert words.labelled("d", ["a"]) == ["a"]
