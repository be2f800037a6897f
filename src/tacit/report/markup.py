"""HTML and SVG as nested calls: what is not markup already is escaped, so no value can become code."""

from __future__ import annotations

import re
from html import escape
from typing import Any
from urllib.parse import quote

from tacit.errors import visible

__all__ = ["Markup", "file_link", "ident", "join", "picture", "tag"]

VOID = frozenset({"br", "hr", "meta", "link", "img", "col"})


class Markup(str):
    """Text that is safe to stand in a page as it is."""

    __slots__ = ()


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """<name attributes>children</name>; None and False leave an attribute or child out.

    Names of attributes: class_ for class, underscores for hyphens.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        spelled = key.rstrip("_").replace("_", "-")
        words.append(
            spelled if value is True else f'{spelled}="{escape(visible(_plain(value)), quote=True)}"'
        )
    opening = " ".join(words)
    if name in VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(*children)}</{name}>")


def join(*children: Any) -> Markup:
    """Children one after another; lists are opened, text is escaped."""
    parts = []
    for child in children:
        if child is None or child is False:
            continue
        if isinstance(child, Markup):
            parts.append(str(child))
        elif isinstance(child, list | tuple):
            parts.append(join(*child))
        else:
            parts.append(escape(visible(str(child)), quote=False))
    return Markup("".join(parts))


def ident(name: str) -> str:
    """A name as part of an id: different names stay different, and nothing in it needs quoting."""
    return re.sub(r"[^A-Za-z0-9-]", lambda odd: f"_{ord(odd[0]):x}_", name)


def file_link(name: str) -> Markup:
    """A link to a file beside the page, which may have any name."""
    return tag("a", tag("code", name), href=quote(name, safe="/"))


def picture(id: str, title: str, description: str, height: float, *children: Any, class_: str = "") -> Markup:
    """An SVG as wide as its place, with its name and its description for those who do not see it.

    Widths are percentages, heights and text sizes are pixels: so text stays readable on a phone.
    """
    return tag(
        "svg",
        tag("title", title, id=f"{id}-title"),
        tag("desc", description, id=f"{id}-desc"),
        *children,
        class_=f"picture {class_}".strip(),
        role="img",
        aria_labelledby=f"{id}-title {id}-desc",
        width="100%",
        height=height,
    )


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
