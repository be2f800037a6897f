"""A strict reader of HTML: what is nested wrongly is refused."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "col", "input"}


@dataclasses.dataclass
class Node:
    """An element with its parent, its attributes and what it holds."""

    tag: str
    attributes: dict[str, str]
    parent: Node | None
    contents: list[Node | str] = dataclasses.field(default_factory=list)

    @property
    def children(self) -> list[Node]:
        return [c for c in self.contents if isinstance(c, Node)]

    def walk(self) -> list[Node]:
        return [self, *(n for c in self.children for n in c.walk())]

    def words(self) -> str:
        return "".join(c if isinstance(c, str) else c.words() for c in self.contents)

    def ancestors(self) -> list[Node]:
        return [] if self.parent is None else [self.parent, *self.parent.ancestors()]

    def first(self, tag: str) -> Node | None:
        return next((c for c in self.children if c.tag == tag), None)


class Strict(HTMLParser):
    """A parser that accepts only what is nested rightly."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Node("root", {}, None)
        self.here = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({k for k, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice"
        node = Node(tag, {k: v or "" for k, v in attrs}, self.here)
        self.here.contents.append(node)
        if tag not in VOID:
            self.here = node

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.here.tag, f"</{tag}> closes <{self.here.tag}>"
        assert self.here.parent is not None
        self.here = self.here.parent

    def handle_data(self, data: str) -> None:
        self.here.contents.append(data)


def parsed(text: str) -> Node:
    parser = Strict()
    parser.feed(text)
    parser.close()
    assert parser.here is parser.root, f"<{parser.here.tag}> is never closed"
    return parser.root
