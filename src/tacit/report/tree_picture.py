"""A decision tree as a picture: a line for each condition, indented by level, and the shares of classes in a leaf."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.report.view import CellView, Markup, ReleaseView, key_words, picture, tag

LINE, BAR, INDENT = 22, 9, 3.0
MOST_LEAVES = 32
LEFT = 62.0
"""The share of the width that conditions take; bars have the rest."""


def fits_a_tree(view: ReleaseView) -> bool:
    """Whether it is a tree that fits on a page."""
    return 0 < len(view.tree) <= MOST_LEAVES and view.rest is None and len(view.cells) % len(view.tree) == 0


def tree_picture(id: str, title: str, description: str, view: ReleaseView) -> Markup:
    """Conditions from the root down; beside a leaf a bar of its classes, darkest for the largest, and its answer."""
    classes = len(view.cells) // len(view.tree)
    parts: list[Markup] = []
    top = 0
    last: tuple[str, ...] = ()
    for leaf, path in enumerate(view.tree):
        same = next((k for k, (a, b) in enumerate(zip(path, last, strict=False)) if a != b), len(last))
        for level in range(same, len(path)):
            x = INDENT * level
            if level:
                parts.append(_elbow(x, top))
            parts.append(tag("text", _cut(path[level]), x=f"{x:.2f}%", y=top + 15, class_="label"))
            if level == len(path) - 1:
                parts += _leaf(view.cells[leaf * classes : (leaf + 1) * classes], top)
            top += LINE
        last = path
    return picture(id, title, description, top + 4, parts, class_="tree")


def _elbow(x: float, top: float) -> Markup:
    """A short line from the level above."""
    at, to = f"{x - INDENT / 2:.2f}%", f"{x - INDENT / 5:.2f}%"
    down = tag("line", x1=at, x2=at, y1=top - 3, y2=top + 11, class_="axis")
    return tag("g", down, tag("line", x1=at, x2=to, y1=top + 11, y2=top + 11, class_="axis"))


def _leaf(cells: Sequence[CellView], top: float) -> list[Markup]:
    values = [max(c.value or 0.0, 0.0) for c in cells]
    total = sum(values)
    if total <= 0:
        return [tag("text", "no row stands out", x="100%", y=top + 15, text_anchor="end", class_="tick")]
    best = max(range(len(values)), key=lambda k: values[k])
    parts, start, width = [], LEFT, 16.0
    for k, value in enumerate(values):
        wide = width * value / total
        box = {"x": f"{start:.2f}%", "y": top + 6, "width": f"{wide:.2f}%", "height": BAR}
        parts.append(tag("rect", **box, class_="bar" if k == best else "band"))
        start += wide
    words = f"{key_words(cells[best].keys[-1])}, {values[best] / total:.0%} of {total:,.0f}"
    parts.append(tag("text", _cut(words, 30), x="100%", y=top + 15, text_anchor="end", class_="label num"))
    return parts


def _cut(name: str, most: int = 42) -> str:
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"
