"""Formulas of running text as the site shows them: `e^(epsilon/2) x_i` gets an exponent and an index.

The pages keep formulas as plain text, which every terminal, editor and diff shows. The site sets them when it is
built, with the marks that every browser knows: no script, no font, no network.
"""

from __future__ import annotations

import re

# What a page shows letter by letter: code, and what no reader sees.
_AS_IT_IS = re.compile(r"(<(code|pre|script|style|math|svg|head|title)\b.*?</\2>|<[^>]*>)", re.S)
_GREEK = "alpha|beta|gamma|delta|epsilon|theta|lambda|mu|nu|pi|rho|sigma|tau|phi|chi|psi|omega|eta"
_BASE = rf"(?<![\w&])(?:{_GREEK}|sum|prod|sup|inf|min|max|arg|Pr|ln|[dEk]?[A-Za-zα-ωΑ-Ω])"
_WORD = rf"(?:{_GREEK}|std|width|[0-9]+(?:[.][0-9]+)?|[A-Za-zα-ω∞](?![A-Za-z]))"
_CLOSING = {"{": "}", "(": ")"}
_INDEX = re.compile(rf"({_BASE}|(?<=[)\]|}}‖>]))_(?=[\w{{(±−-])")
_SHORT = re.compile(
    rf"[-−±]?{_WORD}['′]*|[-−±]?\|[\w-]+\||[+*∞]|out\b|priv\b|noise\b|max\b|min\b|[A-Z][a-z]+"
    r"|(?!(?:at|by|in|is|of|on|to)\b)[a-z]{2}\b"
)


def typeset(html: str) -> str:
    """The same page, with exponents and indices raised and lowered outside of code."""
    parts, last = [], 0
    for found in _AS_IT_IS.finditer(html):
        parts += [_text(html[last : found.start()]), found[0]]
        last = found.end()
    return "".join([*parts, _text(html[last:])])


def _text(text: str) -> str:
    if "^" not in text and "_" not in text:
        return text
    out, at = [], 0
    while at < len(text):
        index = _INDEX.match(text, at) if text[at] != "^" else None
        if text[at] == "^" and at and not text[at - 1].isspace():
            inside, end = _argument(text, at + 1, raised=True)
            tag, before = "sup", ""
        elif index and (at == 0 or not (text[at - 1].isalnum() and index[1][:1].isalnum())):
            inside, end = _argument(text, index.end(), raised=False)
            tag, before = "sub", index[1]
        else:
            inside, end, tag, before = "", at, "", ""
        if end > at and inside:
            out.append(f"{before}<{tag}>{_text(inside)}</{tag}>")
            at = end
        else:
            out.append(text[at])
            at += 1
    return "".join(out)


def _argument(text: str, at: int, *, raised: bool) -> tuple[str, int]:
    """The exponent or index that begins here, without its brackets, and its end; nothing if there is none."""
    sign = re.compile(r"[-−±]?").match(text, at)
    start = sign.end() if sign else at
    if start < len(text) and text[start] in _CLOSING:
        end = _closed(text, start)
        if end is None:
            return "", at
        inside = text[start + 1 : end]
        # f^(1) and v_(k) number things in brackets; e^(-x) has them for plain text only.
        if text[start] == "(" and (not raised or len(inside) == 1 or start > at):
            inside = f"({inside})"
        return text[at:start] + inside, end + 1
    short = _SHORT.match(text, at)
    if short is None:
        return "", at
    end = short.end()
    # e^-epsilon_1 raises both; in c^T_i the index belongs to c^T.
    lower = raised and text[end - 1].islower()
    rest = re.compile(r"_(?:[A-Za-z0-9](?!\w)|\{\w+\})").match(text, end) if lower else None
    end = rest.end() if rest else end
    return text[at:end], end


def _closed(text: str, start: int) -> int | None:
    """The place of the bracket that closes the one at `start`."""
    opening, closing, depth = text[start], _CLOSING[text[start]], 0
    for place in range(start, min(len(text), start + 200)):
        depth += (text[place] == opening) - (text[place] == closing)
        if depth == 0:
            return place
    return None
