"""What the marks of a picture mean, each beside a small drawing of itself."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.report.markup import Markup, tag
from tacit.report.numbers import percent

__all__ = ["legend"]


def legend(id: str, marks: Sequence[str], confidence: float) -> Markup | None:
    """One entry a mark."""
    words = {
        "dot": "released value",
        "bar": "released value",
        "line": "released value",
        "heat": "released value, darker or lighter by size",
        "whisker": f"{percent(confidence)} interval for the noise",
        "band": f"{percent(confidence)} interval for the noise",
        "hatch": "too noisy to use",
        "either": "either class: the interval holds 0",
        "empty": "no value",
        "truth": "the truth (synthetic data)",
        "truth-line": "the truth (synthetic data)",
        "truth-below": "the truth (synthetic data)",
    }
    entries = [tag("li", _sample(id, mark, words[mark]), words[mark]) for mark in marks]
    return tag("ul", entries, class_="legend") if entries else None


def _sample(id: str, mark: str, words: str) -> Markup:
    shapes = {
        "dot": tag("circle", cx=10, cy=7, r=5, class_="dot"),
        "bar": tag("rect", x=0, y=2, width=20, height=10, class_="bar"),
        "line": tag("path", d="M0 10 7 4 13 8 20 3", class_="line"),
        "heat": [tag("rect", x=7 * k, y=2, width=6, height=10, class_=f"heat-{2 * k + 1}") for k in range(3)],
        "whisker": tag("path", d="M1 7H19M1 3V11M19 3V11", class_="whisker"),
        "band": tag("rect", x=0, y=2, width=20, height=10, class_="band"),
        "hatch": [
            tag("rect", x=0, y=2, width=20, height=10, class_="hatch-ground"),
            tag("path", d="M2 12 12 2M8 12 18 2M14 12 20 6M0 8 6 2", class_="hatch-line"),
        ],
        "either": [
            tag("rect", x=0, y=2, width=20, height=10, class_="heat-3"),
            tag("path", d="M2 12 12 2M8 12 18 2M14 12 20 6M0 8 6 2", class_="hatch-line"),
        ],
        "empty": tag("rect", x=1, y=2, width=18, height=10, class_="empty"),
        "truth": tag("path", d="M10 1.5 15.5 7 10 12.5 4.5 7Z", class_="truth"),
        "truth-line": tag("path", d="M0 7H20", class_="truth-line"),
        "truth-below": tag("path", d="M10 3 15 10.5 5 10.5Z", class_="truth-below"),
    }
    return tag("svg", tag("title", f"Mark: {words}"), tag("desc", words), shapes[mark], role="img")
