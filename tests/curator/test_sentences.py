"""Queries as sentences: every form, what is refused and with which words, and the plan of one that they make."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from tacit.curator.plan_files import asks_in, parse_toml
from tacit.curator.sentences import STATISTICS, merged, read_sentence
from tacit.curator.single_query import kind_named, toml_text
from tacit.errors import InvalidParameter, UnknownColumn, UnknownName

COLUMNS = ["region", "age", "sex", "Income", "hours_worked", "smoker", "cost by day", "x, y", "at"]

READ: dict[str, dict[str, Any]] = {
    "mean income by region": {"kind": "mean", "column": "Income", "by": ["region"]},
    "What is the average of Income?": {"kind": "mean", "column": "Income"},
    "median hours worked by region, sex": {
        "kind": "median", "column": "hours_worked", "by": ["region", "sex"]
    },
    "count": {"kind": "count"},
    "how many people are there by sex": {"kind": "count", "of": "people", "by": ["sex"]},
    "number of rows where age >= 18 and sex = 'by'": {"kind": "count", "where": "age >= 18 and sex = 'by'"},
    "count sex": {"kind": "count", "by": ["sex"]},
    "count by age in 10 bins and region": {
        "kind": "count", "by": [{"column": "age", "bins": 10}, "region"]
    },
    "sum of Income": {"kind": "sum", "column": "Income"},
    "total income by sex where smoker": {
        "kind": "sum", "column": "Income", "by": ["sex"], "where": "smoker"
    },
    "quantiles of income at 10%, 0.5 and 90%": {"kind": "quantiles", "column": "Income", "at": [0.1, 0.5, 0.9]},
    "quartiles income by region": {
        "kind": "quantiles", "at": [0.25, 0.5, 0.75], "column": "Income", "by": ["region"]
    },
    "standard deviation of age": {"kind": "standard_deviation", "column": "age"},
    "share of smoker by region": {"kind": "proportion", "of": "smoker", "by": ["region"]},
    "share of age > 65": {"kind": "proportion", "of": "age > 65"},
    "ratio of income to hours worked": {
        "kind": "ratio", "numerator": "Income", "denominator": "hours_worked"
    },
    "histogram of age in 12 bins": {"kind": "histogram", "column": "age", "bins": 12},
    "table of region and sex": {"kind": "contingency", "columns": ["region", "sex"]},
    "table by region and sex": {"kind": "contingency", "columns": ["region", "sex"]},
    "the table of region by sex": {"kind": "contingency", "columns": ["region", "sex"]},
    "margins of region, sex and age in 5 bins": {
        "kind": "margins", "columns": ["region", "sex", {"column": "age", "bins": 5}]
    },
    "density of income and age with 5,000 rows": {"kind": "density", "columns": ["Income", "age"], "size": 5000},
    "mean income by region with 800 rows where age > 5": {
        "kind": "mean", "column": "Income", "by": ["region"], "rows": 800, "where": "age > 5"
    },
    'mean "cost by day" by "x, y"': {"kind": "mean", "column": "cost by day", "by": ["x, y"]},
    'mean of "at"': {"kind": "mean", "column": "at"},
}  # fmt: skip


@pytest.mark.parametrize("sentence", READ)
def test_sentences_are_read(sentence: str) -> None:
    assert read_sentence(sentence, COLUMNS) == READ[sentence]


def test_an_unknown_beginning_is_answered_with_the_words_that_are_known() -> None:
    for sentence in ("", "  ", "income by region", "meanincome", "please mean income", "\x1b[2J"):
        with pytest.raises(InvalidParameter) as caught:
            read_sentence(sentence, COLUMNS)
        said = str(caught.value)
        assert all(word in said for word in (*STATISTICS, "where", "in N bins", "hours_worked"))
        assert "\x1b" not in said


@pytest.mark.parametrize(
    ("sentence", "named"),
    [
        ("mean incom by region", "'Income'"),
        ("mean income by regio", "'region'"),
        ("mean", "Income"),
        ("mean 'income' by region", "'Income'"),
        ("mean income by", "behind 'by'"),
        ("mean income by region by sex", "'by' once"),
        ("quantiles income at half", "'at'"),
        ("ratio of income", "two columns"),
        ("density of income", "density of Income with 5000 rows"),
        ("histogram of age and sex", "one column"),
        ("mean income where", "behind 'where'"),
        ("mean income by age in some bins", "'age in some bins'"),
    ],
)
def test_what_is_not_understood_is_named(sentence: str, named: str) -> None:
    with pytest.raises((InvalidParameter, UnknownColumn)) as caught:
        read_sentence(sentence, COLUMNS)
    assert named in str(caught.value)


def test_two_columns_that_are_spelled_alike_must_be_spelled_out() -> None:
    alike = ["a b", "a_b", "A-B"]
    assert read_sentence("mean a_b", alike)["column"] == "a_b"
    with pytest.raises(UnknownColumn):
        read_sentence("mean A b", alike)


def test_every_statistic_of_a_sentence_is_a_kind_of_release() -> None:
    for sentence in READ:
        (ask,) = asks_in([read_sentence(sentence, COLUMNS) | {"epsilon": 1.0}])
        assert ask.price is not None
    assert kind_named("average") == "mean"
    assert kind_named("standard deviation") == "standard_deviation"
    with pytest.raises(UnknownName, match="'mean'"):
        kind_named("meen")


def test_a_word_is_said_once() -> None:
    assert merged({"kind": "mean"}, {"column": "age"}) == {"kind": "mean", "column": "age"}
    with pytest.raises(InvalidParameter, match="--by"):
        merged({"kind": "mean", "by": ["sex"]}, {"by": ["sex"]})


def test_toml_is_read_back_as_it_was() -> None:
    data = {
        "data": {"path": 'a "b"\\c\n\x7f\u2028.csv', "missing": []},
        "schema": {
            "odd name": {"kind": "category", "keys": ["ü", "b", 3]},
            "day": {"kind": "date", "low": datetime.date(2020, 1, 31), "high": datetime.date(2021, 1, 31)},
            "x": {"kind": "number", "low": -1e-7, "high": 1e22, "missing": False},
        },
        "report": {"title": "t", "keys": {"sex": {"f": "women"}}, "columns": {}},
        "release": [{"kind": "count", "by": [{"column": "x", "bins": [0, 0.5]}, "odd name"], "at": [0.1]}],
        "given": {"random_data": 0.05, "rows": 8},
    }
    assert parse_toml(toml_text(data), parameter="plan", name="p") == data
