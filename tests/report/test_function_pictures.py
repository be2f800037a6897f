"""Pictures of functions: a curve with its band, a map with its uncertainty, weights with intervals."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.report.drawing import fits_a_map
from tacit.report.pictures import MOST_TERMS, draw, fitting
from tacit.report.releases import _more
from tacit.report.view import CellView, ReleaseView


def test_terms_of_a_model_stand_in_their_order() -> None:
    """Sorted by size they would show no shape; a page has the first ones of a long model."""
    for count in (54, MOST_TERMS + 20):
        cells = tuple(
            CellView(keys=(f"age {k}",), value=float(k % 7), low=k % 7 - 0.1, high=k % 7 + 0.1)
            for k in range(count)
        )
        view = ReleaseView(
            name="shapes", kind="additive", title="Shapes", question="", cells=cells, certificate="c.json",
            price="", columns=("term",), ratio_reason="no lower bound",
        )  # fmt: skip
        drawn = draw(view)
        assert drawn.kind == "bars"
        assert drawn.cells == cells[:MOST_TERMS]
        assert ("Shown: the first 120 of" in _more(view, drawn)) is (count > MOST_TERMS)


def view(cells: list[CellView], columns: tuple[str, ...], kind: str = "classifier") -> ReleaseView:
    return ReleaseView(
        name="f", kind=kind, title="F", question="?", cells=tuple(cells), columns=columns, certificate="c.json",
        price="mu = 1", ratio_reason="not known",
    )  # fmt: skip


def grid(width: Any, value: Any = lambda x, y: x - y) -> list[CellView]:
    return [
        CellView(keys=(float(x), float(y)), value=value(x, y), low=value(x, y) - width(x), high=value(x, y) + width(x))
        for x in range(5)
        for y in range(4)
    ]  # fmt: skip


def test_a_map_with_alike_noise_says_so_and_hatches_where_the_class_is_open() -> None:
    drawn = draw(view(grid(lambda x: 0.5), ("x", "y")))
    text = str(drawn.markup)
    assert drawn.kind == "map"
    assert drawn.marks == ("heat", "either")
    assert "alike everywhere" in text
    # Four cells have x = y, and an interval that holds 0.
    assert text.count("fill-opacity") == 4
    assert text.count("heat-") >= 20


def test_a_map_with_uneven_noise_has_a_second_one_of_its_widths() -> None:
    text = str(draw(view(grid(lambda x: 0.5 + x), ("x", "y"))).markup)
    assert "Its uncertainty" in text
    assert "alike everywhere" not in text
    assert text.count("<svg") >= 2


def test_a_density_that_is_cut_at_zero_has_alike_noise() -> None:
    cells = [
        CellView(keys=c.keys, value=max(c.value or 0, 0.0), low=max(c.low or 0, 0.0), high=c.high)
        for c in grid(lambda x: 0.5, lambda x, y: float(x * y))
    ]
    drawn = draw(view(cells, ("x", "y"), "density"))
    assert "less where it is cut at 0" in str(drawn.markup)
    assert drawn.marks == ("heat",)


def test_what_is_no_grid_of_numbers_is_no_map() -> None:
    assert not fits_a_map(grid(lambda x: 1)[:-1])
    words = [CellView(keys=(str(c.keys[0]), c.keys[1]), value=c.value) for c in grid(lambda x: 1)]
    assert not fits_a_map(words)
    assert fitting(view(words, ("x", "y"))) == "heatmap"


@pytest.mark.parametrize("kind", ["classifier", "regression function", "density"])
def test_a_function_of_one_column_is_a_curve(kind: str) -> None:
    cells = [CellView(keys=(x / 10,), value=x, low=x - 1.0, high=x + 1.0) for x in range(30)]
    drawn = draw(view(cells, ("x",), kind))
    assert (drawn.kind, drawn.marks) == ("curve", ("line", "band"))


def test_several_classes_have_a_curve_each() -> None:
    cells = [
        CellView(keys=(x / 10, name), value=x, low=x - 1.0, high=x + 1.0) for x in range(30) for name in "abc"
    ]
    drawn = draw(view(cells, ("x", "class")))
    assert drawn.kind == "multiples"
    assert all(f"class: {name}" in str(drawn.markup) for name in "abc")
    assert drawn.marks == ("line", "band")
