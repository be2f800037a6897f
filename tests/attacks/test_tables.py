"""Classes of k-anonymous tables: homogeneity, background knowledge, skewness, and two releases read together."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tacit.attacks import agrees, background, homogeneity, intersection, link, possible_values, skewness
from tacit.attacks.intersection import match_matrix
from tacit.errors import BadData, EmptyComposition, InvalidParameter, UnknownColumn, UnknownName

# Lecture 2, Figures 2.1 and 2.2.
FIRST = {
    "zip": ["130**"] * 12,
    "age": ["<30"] * 4 + ["≥40"] * 4 + ["3*"] * 4,
    "nationality": ["*"] * 12,
    "condition": ["AIDS", "Heart Disease", "Viral Infection", "Viral Infection", "Cancer", "Heart Disease"]
    + ["Viral Infection"] * 2
    + ["Cancer"] * 4,
}
SECOND = {
    "zip": ["130**"] * 12,
    "age": ["<35"] * 6 + ["≥35"] * 6,
    "nationality": ["*"] * 12,
    "condition": [
        *("AIDS", "Tuberculosis", "Flu", "Tuberculosis"),
        *["Cancer"] * 5,
        *("Tuberculosis", "Viral Infection", "Viral Infection"),
    ],
}
QUASI = ["zip", "age", "nationality"]
ALICE = {"zip": ["13012"], "age": [28], "nationality": [None]}


def test_everybody_in_their_thirties_has_cancer() -> None:
    found = homogeneity(FIRST, quasi=QUASI, sensitive="condition")
    assert (list(found.exposed), set(found.learned)) == ([8, 9, 10, 11], {"Cancer"})
    assert found.details["k"] == 4
    assert found.guessing == pytest.approx(5 / 12)
    assert homogeneity(SECOND, quasi=QUASI, sensitive="condition").details["k"] == 6
    assert not homogeneity(SECOND, quasi=QUASI, sensitive="condition").exposed


def test_alice_is_pinned_by_both_and_by_neither() -> None:
    both = intersection([FIRST, SECOND], ALICE, quasi=QUASI, sensitive="condition")
    assert list(both.learned) == ["AIDS"]
    assert both.details["by_one_release"] == [0, 0]
    for release in (FIRST, SECOND):
        assert not intersection([release], ALICE, quasi=QUASI, sensitive="condition").exposed
    left = possible_values(FIRST, ALICE, quasi=QUASI, sensitive="condition")
    assert left == [{"AIDS", "Heart Disease", "Viral Infection"}]  # no broken leg


def test_published_values_stand_for_what_they_say() -> None:
    yes = [
        ("*", "x"), ("130**", "13012"), ("<30", 29), ("<30", "29.5"), ("<=30", 30), ("≥40", 40), (">40", "41"),
        ("20-29", 20), ("20-29", 29), ("[20, 30)", 20), ("(20, 30]", 30), ("{a, b}", "b"), ("28", 28.0), ("x", "x"),
        (None, "anything"), ("3*", 35), ("130**", None),
    ]  # fmt: skip
    no = [
        ("130**", "1301"), ("130**", "14012"), ("<30", 30), ("<30", "young"), ("≥40", 39), (">40", 40), ("20-29", 30),
        ("[20, 30)", 30), ("(20, 30]", 20), ("{a, b}", "c"), ("28", 29), ("3*", 3), ("x", "y"),
    ]  # fmt: skip
    assert all(agrees(shown, own) for shown, own in yes)
    assert not any(agrees(shown, own) for shown, own in no)
    # All pairs at once are the pairs one by one, with numbers only and with words among them.
    shown = [s for s, _ in [*yes, *no]]
    for own in ([20, 28.0, "29", 30, "40.5"], [20, "x", None, "13012"]):
        assert match_matrix(shown, own).tolist() == [[agrees(s, x) for s in shown] for x in own]


def naive(table: dict[str, list[Any]], out: set[Any]) -> dict[int, Any]:
    """Rows left with one value in their class, by a plain loop."""
    found = {}
    for i, key in enumerate(zip(table["a"], table["b"], strict=True)):
        left = {
            s
            for a, b, s in zip(table["a"], table["b"], table["s"], strict=True)
            if (a, b) == key and s not in out
        }
        if len(left) == 1 and table["s"][i] in left:
            found[i] = table["s"][i]
    return found


@pytest.mark.parametrize("seed", range(10))
def test_classes_by_a_plain_loop(seed: int) -> None:
    generator = np.random.default_rng(seed)
    table: dict[str, list[Any]] = {
        "a": generator.integers(3, size=15).tolist(),
        "b": [None if x == 0 else int(x) for x in generator.integers(3, size=15)],
        "s": generator.choice(["u", "v", "w"], 15).tolist(),
    }
    whole = homogeneity(table, quasi=["a", "b"], sensitive="s")
    assert dict(zip(whole.exposed, whole.learned, strict=True)) == naive(table, set())
    if "u" in table["s"]:
        without = background(table, quasi=["a", "b"], sensitive="s", ruled_out=["u"])
        assert dict(zip(without.exposed, without.learned, strict=True)) == naive(table, {"u"})
        left = Counter(s for s in table["s"] if s != "u")
        assert without.guessing == pytest.approx(max(left.values()) / sum(left.values()))
        moved = skewness(table, quasi=["a", "b"], sensitive="s", value="u", factor=1.5)
        prior = table["s"].count("u") / 15
        for i, key in enumerate(zip(table["a"], table["b"], strict=True)):
            mine = [s for a, b, s in zip(table["a"], table["b"], table["s"], strict=True) if (a, b) == key]
            share = mine.count("u") / len(mine)
            assert (i in moved.exposed) == (share >= 1.5 * prior)


@pytest.mark.parametrize("seed", range(6))
def test_intersections_by_a_plain_loop(seed: int) -> None:
    generator = np.random.default_rng(seed)
    ages = generator.integers(0, 60, 25)
    sick = generator.choice(list("uvwxyz"), 25)
    releases = []
    for width in (20, 15):
        shown = [f"{a // width * width}-{a // width * width + width - 1}" for a in ages]
        releases.append({"age": shown, "s": sick.tolist()})
    found = intersection(releases, {"age": ages.tolist()}, quasi=["age"], sensitive="s")
    right = {}
    for i, age in enumerate(ages):
        left = set(sick)
        for width in (20, 15):
            left &= {s for a, s in zip(ages, sick, strict=True) if a // width == age // width}
        if len(left) == 1:
            right[i] = left.pop()
    assert dict(zip(found.exposed, found.learned, strict=True)) == right


def test_a_hundred_thousand_people_at_once() -> None:
    generator = np.random.default_rng(1)
    n = 100_000
    ages, codes = generator.integers(0, 100, n), generator.integers(10_000, 10_040, n)
    sick = generator.choice(list("abcdefghijklmnopqrst"), n)

    def shown(width: int, digits: int) -> dict[str, Any]:
        low = ages // width * width
        age = np.char.add(np.char.add(low.astype(str), "-"), (low + width - 1).astype(str))
        zips = np.array([str(c)[:digits] + "*" * (5 - digits) for c in range(10_000, 10_040)])[codes - 10_000]
        return {"age": age, "zip": zips, "s": sick}

    first, second = shown(1, 5), shown(5, 4)
    found = homogeneity(first, quasi=["age", "zip"], sensitive="s")
    assert found.people == n
    people = {"age": ages[:20_000], "zip": codes[:20_000].astype(str)}
    both = intersection([first, second], people, quasi=["age", "zip"], sensitive="s")
    assert both.score(sick[:20_000].tolist()).precision == 1


def test_a_hundred_thousand_different_values() -> None:
    """Everybody different in everything, raw and in bands; missing values on both sides."""
    n = 100_000
    ages, names = np.arange(n), np.array([f"s{i}" for i in range(n)])
    raw = {"age": ages, "s": names}
    bands = {"age": [f"{a // 20 * 20}-{a // 20 * 20 + 19}" for a in ages[:5000]], "s": names[:5000]}
    assert homogeneity(raw, quasi=["age"], sensitive="s").share == 1
    assert intersection([raw], {"age": ages}, quasi=["age"], sensitive="s").share == 1
    found = intersection([raw, bands], {"age": ages[:5000]}, quasi=["age"], sensitive="s")
    assert found.share == 1
    assert found.details["by_one_release"] == [5000, 0]
    assert found.score(names[:5000].tolist()).precision == 1
    assert homogeneity(bands, quasi=["age"], sensitive="s").share == 0


def test_missing_values_exclude_nobody() -> None:
    release = {"a": ["1", None, "2"], "s": ["x", "y", None]}
    left = possible_values(release, {"a": ["1", "2", None, "3"]}, quasi=["a"], sensitive="s")
    assert left == [{"x", "y"}, {"x", "y"}, {"x", "y"}, {"y"}]


def test_what_is_missing_in_one_release_may_be_what_another_shows() -> None:
    """Nobody is pinned to flu: the second person of the first release may be the one with cancer."""
    first, second = {"a": ["1", "1"], "s": ["flu", None]}, {"a": ["1", "1"], "s": ["cancer", "flu"]}
    who = {"a": ["1"]}
    for releases in ([first, second], [second, first], [first], [first, first]):
        found = intersection(releases, who, quasi=["a"], sensitive="s")
        assert (list(found.exposed), found.details["by_one_release"]) == ([], [0] * len(releases))
    sure = intersection([first, {"a": ["1"], "s": ["flu"]}], who, quasi=["a"], sensitive="s")
    assert sure.learned == ["flu"]
    nothing = {"a": ["1"], "s": [None]}
    assert not intersection([nothing], who, quasi=["a"], sensitive="s").exposed


def test_lists_and_columns_without_a_type() -> None:
    lists = pa.table({"a": [[1], [2]], "c": ["u", "v"]})
    with pytest.raises(BadData, match="plain value"):
        homogeneity(lists, quasi=["a"], sensitive="c")
    nothing = pa.table({"a": pa.nulls(2), "c": ["u", "v"]})
    assert not link(nothing, {"a": [1, 2]}, quasi=["a"], sensitive="c").exposed


def test_bad_input_is_refused_or_answered() -> None:
    with pytest.raises(EmptyComposition):
        homogeneity(FIRST, quasi=[], sensitive="condition")
    with pytest.raises(InvalidParameter):
        homogeneity(FIRST, quasi=["condition"], sensitive="condition")
    with pytest.raises(UnknownColumn):
        homogeneity(FIRST, quasi=["height"], sensitive="condition")
    with pytest.raises(UnknownName):
        background(FIRST, quasi=QUASI, sensitive="condition", ruled_out=["Plague"])
    with pytest.raises(InvalidParameter):
        homogeneity({"a": [], "s": []}, quasi=["a"], sensitive="s")
    with pytest.raises(EmptyComposition):
        intersection([], ALICE, quasi=QUASI, sensitive="condition")
    same = {"a": [1] * 5, "s": ["x"] * 5}
    assert homogeneity(same, quasi=["a"], sensitive="s").share == 1
    different = {"a": list(range(5)), "s": list("vwxyz")}
    assert homogeneity(different, quasi=["a"], sensitive="s").share == 1
    nothing = {"a": [None] * 4, "s": [None] * 4}
    assert homogeneity(nothing, quasi=["a"], sensitive="s").share == 1
    for a, b in itertools.product([1, 2], repeat=2):
        assert intersection([{"a": [a], "s": ["x"]}], {"a": [b]}, quasi=["a"], sensitive="s").share == (
            a == b
        )
