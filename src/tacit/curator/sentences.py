"""One query in a sentence: "mean income by region where age >= 18" as the words of a plan's [[release]] table.

    STATISTIC [of] COLUMN [in N bins] [by COLUMN, COLUMN] [at SHARES] [with N rows] [where CONDITION]

N rows is the public number of rows that a density needs.

A sentence begins with a statistic and ends with its condition, in the language of `where` in a plan. Columns
are those of the schema; capital letters, spaces and underscores in their names do not count. A name in
quotation marks is exact. The reader guesses nothing, and refuses an unknown word with the list of the known ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tacit.errors import InvalidParameter, UnknownColumn, visible

STATISTICS: dict[str, str] = {
    "average": "mean",
    "count": "count",
    "deciles": "deciles",
    "density": "density",
    "histogram": "histogram",
    "how many": "count",
    "margins": "margins",
    "mean": "mean",
    "median": "median",
    "number": "count",
    "proportion": "proportion",
    "quantile": "quantiles",
    "quantiles": "quantiles",
    "quartiles": "quartiles",
    "ratio": "ratio",
    "share": "proportion",
    "standard deviation": "standard_deviation",
    "sum": "sum",
    "table": "contingency",
    "total": "sum",
    "variance": "variance",
}
"""The first words of a sentence, and the kind of release that each asks for."""
CONNECTORS = ("of", "by", "and", "to", "in N bins", "at", "with N rows", "where")
SHARES = {"quartiles": [0.25, 0.5, 0.75], "deciles": [k / 10 for k in range(1, 10)]}
CROSSED = ("contingency", "margins")
LISTED = (*CROSSED, "density")
LONGEST = 2000
MOST_SHOWN = 30

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_SPLIT = re.compile(r"\s*,\s*|\s+and\s+", re.IGNORECASE)
_BINS = re.compile(r"\s+in\s+(\d{1,6})\s+bins$", re.IGNORECASE)
_ROWS = re.compile(r"\s+with\s+([\d,]{1,20})\s+rows$", re.IGNORECASE)
_BEGIN = re.compile(r"(?:(?:what is|show|give|tell)\s+)?(?:the\s+)?", re.IGNORECASE)


def read_sentence(sentence: str, columns: Iterable[str]) -> dict[str, Any]:
    """The keys of a [[release]] table for the query of the sentence."""
    known = list(columns)
    if not isinstance(sentence, str) or not sentence.strip() or len(sentence) > LONGEST:
        raise _unknown("", known)
    text = " ".join(sentence.split()).rstrip("?.! ")
    text = text[_BEGIN.match(text).end() :]  # type: ignore[union-attr]
    begin = next(
        (s for s in sorted(STATISTICS, key=len, reverse=True) if re.match(rf"{s}\b", text, re.IGNORECASE)), ""
    )
    if not begin:
        raise _unknown(text.split(" ")[0] if text else "", known)
    kind, rest = STATISTICS[begin], text[len(begin) :].strip()
    parts = _parts(rest)
    table: dict[str, Any] = {"kind": "quantiles" if kind in SHARES else kind}
    for word, said in parts.items():
        if word != "where" and (found := _ROWS.search(f" {said}")):
            parts[word] = f" {said}"[: found.start()].strip()
            table["size" if kind == "density" else "rows"] = int(found[1].replace(",", ""))
    if kind in SHARES:
        table["at"] = SHARES[kind]
    if kind in CROSSED and "by" in parts:
        # table by gender and region, table of gender by region: the same as table of gender and region.
        first = re.sub(r"^of\b\s*", "", parts[""], flags=re.IGNORECASE)
        parts[""] = ", ".join(said for said in (first, parts.pop("by")) if said)
    _measured(table, kind, parts.pop("", ""), known)
    if "by" in parts:
        table["by"] = _columns(parts.pop("by"), known, binned=True)
    if "at" in parts:
        table["at"] = _numbers(parts.pop("at"))
    if "where" in parts:
        table["where"] = parts.pop("where")
    if kind == "density" and "size" not in table:
        raise InvalidParameter(
            parameter="sentence", value=kind, must="say the public number of rows of a density",
            hint=f"density of {' and '.join(visible(c) for c in table['columns'])} with 5000 rows",
        )  # fmt: skip
    return table


def _parts(text: str) -> dict[str, str]:
    """The parts of a sentence before `by`, and behind `by`, `at` and `where`. Quotation marks hide their content."""
    hidden = _QUOTED.sub(lambda m: "_" * len(m[0]), text)
    places = {
        m[1].lower(): (m.start(1), m.end(1)) for m in re.finditer(r"\b(where)\b", hidden, re.IGNORECASE)
    }
    stop = places["where"][0] if "where" in places else len(text)
    if "where" in places:
        # The condition goes on to the end, and may hold a word that looks like ours.
        first = re.search(r"\bwhere\b", hidden, re.IGNORECASE)
        assert first is not None
        places["where"], stop = (first.start(), first.end()), first.start()
    for word in ("by", "at"):
        found = [*re.finditer(rf"\b{word}\b", hidden[:stop], re.IGNORECASE)]
        if len(found) > 1:
            raise InvalidParameter(
                parameter="sentence", value=word, must=f"have {word!r} once",
                hint='a column whose name has this word stands in quotation marks: mean "cost by day" by region',
            )  # fmt: skip
        if found:
            places[word] = (found[0].start(), found[0].end())
    ordered = sorted(places.items(), key=lambda p: p[1])
    out = {"": text[: ordered[0][1][0] if ordered else len(text)].strip()}
    for i, (word, (_, end)) in enumerate(ordered):
        out[word] = text[end : ordered[i + 1][1][0] if i + 1 < len(ordered) else len(text)].strip(" ,")
        if not out[word]:
            raise InvalidParameter(parameter="sentence", value=word, must=f"say something behind {word!r}")
    return out


def _measured(table: dict[str, Any], kind: str, text: str, known: Sequence[str]) -> None:
    """The subject of the statistic: a column, several, a condition, or nothing."""
    text = re.sub(r"^of\b\s*", "", text, flags=re.IGNORECASE)
    if kind == "count":
        said = re.sub(r"\b(?:there are|are there)$", "", text, flags=re.IGNORECASE).strip().lower()
        if said in ("people", "persons"):
            table["of"] = "people"
        elif said not in ("", "rows"):
            # count gender: the same as count by gender.
            table["by"] = _columns(text, known, binned=True)
        return
    if not text:
        raise InvalidParameter(
            parameter="sentence", value=kind, must="name a column behind the statistic",
            hint=f"columns: {_listed(known)}",
        )  # fmt: skip
    if kind == "proportion":
        table["of"] = _same(text, known) or text
    elif kind == "ratio":
        first, to, second = re.split(r"\b(to)\b", text, maxsplit=1, flags=re.IGNORECASE) + ["", ""] * (
            0 if re.search(r"\bto\b", text, re.IGNORECASE) else 1
        )
        if not to:
            raise InvalidParameter(
                parameter="sentence",
                value=visible(text),
                must="name two columns: ratio of income to hours",
            )
        table["numerator"], table["denominator"] = (
            _column(first.strip(), known),
            _column(second.strip(), known),
        )
    elif kind in LISTED:
        table["columns"] = _columns(text, known, binned=kind != "density")
    elif kind == "histogram":
        (one,) = _columns(text, known, binned=True)[:1]
        if len(_columns(text, known, binned=True)) > 1:
            raise InvalidParameter(
                parameter="sentence", value=visible(text), must="name one column for a histogram",
                hint="table of a and b counts two columns together",
            )  # fmt: skip
        table |= {"column": one} if isinstance(one, str) else dict(one)
    else:
        table["column"] = _column(text, known)


def _columns(text: str, known: Sequence[str], *, binned: bool) -> list[Any]:
    """Names with commas or `and` between them, each with its number of bins if it has one."""
    held: list[str] = []

    def keep(match: re.Match[str]) -> str:
        held.append(match[0])
        return f"\0{len(held) - 1}\0"

    out: list[Any] = []
    for item in _SPLIT.split(_QUOTED.sub(keep, text)):
        said = re.sub(r"\0(\d+)\0", lambda m: held[int(m[1])], item).strip()
        found = _BINS.search(said) if binned else None
        name = _column(said[: found.start()] if found else said, known)
        out.append({"column": name, "bins": int(found[1])} if found else name)
    return out


def _column(text: str, known: Sequence[str]) -> str:
    found = _same(text, known)
    if found is None:
        raise UnknownColumn(column=_bare(text), known=known, where="the sentence")
    return found


def _same(text: str, known: Sequence[str]) -> str | None:
    """The named column: an exact match, or the only one that differs just in capitals, spaces and underscores."""
    bare = _bare(text)
    if bare in known:
        return bare
    alike = [c for c in known if _folded(c) == _folded(bare)]
    return alike[0] if len(alike) == 1 and bare == text else None


def _bare(text: str) -> str:
    return text[1:-1] if _QUOTED.fullmatch(text) else text


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name).casefold()


def _numbers(text: str) -> list[float]:
    """Shares as numbers or percentages: 0.1, 0.5 and 90%."""
    out = []
    for item in re.split(r"\s*,\s*|\s+and\s+|\s+", text, flags=re.IGNORECASE):
        try:
            out.append(float(item[:-1]) / 100 if item.endswith("%") else float(item))
        except ValueError:
            raise InvalidParameter(
                parameter="sentence", value=visible(item), must="have numbers behind 'at'",
                hint="quantiles of income at 0.1, 0.5 and 0.9",
            ) from None  # fmt: skip
    return out


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(visible(n) for n in names[:MOST_SHOWN])
    return shown if len(names) <= MOST_SHOWN else f"{shown} and {len(names) - MOST_SHOWN} more"


def _unknown(word: str, known: Sequence[str]) -> InvalidParameter:
    """The allowed parts of a sentence, for an error about another one."""
    return InvalidParameter(
        parameter="sentence", value=visible(word), must=f"begin with one of: {', '.join(STATISTICS)}",
        hint=f"then come {', '.join(CONNECTORS)} and columns: {_listed(known)}; for example: mean income by region",
    )  # fmt: skip


def merged(sentence: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """The sentence and the flags together; an error for a word that both give."""
    for word in flags:
        if word in sentence:
            raise InvalidParameter(
                parameter=f"--{word}", value=flags[word], must="be left out where the sentence says it",
            )  # fmt: skip
    return {**sentence, **flags}
