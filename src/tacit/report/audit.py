"""The pages of `tacit audit`: the wealth over time, the event found, two histograms, and the limits of the audit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.errors import visible
from tacit.report.page import style_sheet
from tacit.report.view import Markup, tag

WIDE, HIGH, LEFT, LOW = 640, 240, 58, 34
Record = Mapping[str, Any]


def _head(title: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="tacit"),
        tag("title", title),
        tag("style", Markup(style_sheet())),
    )


def audit_html(record: Record) -> str:
    """The whole page as text, from the plain record of an audit."""
    head = _head(f"Audit of {record['mechanism']}")
    verdict = "The claim is rejected" if record["rejected"] else "The claim is not rejected"
    body = tag(
        "body",
        tag(
            "header",
            tag("h1", f"Audit of {visible(str(record['mechanism']).rpartition('::')[2])}"),
            tag(
                "p",
                f"{visible(str(record['mechanism']))}. Claim: {record['claim']}, for {record['neighbours']}.",
                class_="lead",
            ),
            tag("p", tag("strong", f"{verdict} (level {record['level']:g})."), class_="banner"),
            class_="top",
        ),
        tag("main", _answer(record), _wealth(record), _event(record), _replay(record), _unseen(record)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def plan_audit_html(record: Record) -> str:
    """The page of a plan: a row a release, then its partings, bets and pictures."""
    pairs = ", ".join(f"{n} on {engine}" for engine, n in record["neighbours"].items())
    every = [*record["releases"], *([record["together"]] if record["together"] else [])]
    verdict = (
        "At least one claim breaks" if record["broken"] else "No claim was broken; this is no proof of them"
    )
    body = tag(
        "body",
        tag(
            "header",
            tag("h1", "Audit of a plan"),
            tag(
                "p",
                f"{visible(str(record['plan']))}. {len(record['releases'])} releases for {visible(record['unit'])}."
                f" Pairs of made-up neighbours: {pairs}. No data were read and nothing was charged.",
                class_="lead",
            ),
            tag(
                "p",
                tag("strong", f"{verdict} (level {record['level']:g} for all together)."),
                class_="banner",
            ),
            class_="top",
        ),
        tag(
            "main",
            _glance(every),
            [_release(one) for one in every],
            [_card("Notes", [tag("p", visible(n)) for n in record["notes"]])] if record["notes"] else [],
            _card("What this audit could not have seen", tag("p", visible(record["could_not_see"]) + ".")),
        ),
    )
    return f"<!doctype html>\n{tag('html', _head('Audit of a plan'), body, lang='en')}\n"


def write_plan_audit(record: Record, path: Path) -> None:
    """The page of a plan as a file, in UTF-8."""
    path.write_text(plan_audit_html(record), encoding="utf-8")


def _glance(every: Sequence[Record]) -> Markup:
    """One row a release."""
    heads = ("release", "claim", "lower bound", "outputs", "sensitivity used", "replay", "verdict")
    rows = []
    for one in every:
        bets = one["bets"]
        accused = any(p["accuses"] for p in one["partings"])
        replayed = "breaks" if accused else "no breach" if one["pairs"] else "none"
        told = (
            f"{bets['lower']:.3g}" if bets and bets["parameter"] else "none",
            f"{bets['outputs']:,}" if bets else "0",
            "none" if one["moved"] is None else f"{one['moved']:.3g}",
        )
        rows.append(
            tag(
                "tr",
                tag("th", visible(one["name"]), scope="row"),
                tag("td", visible(one["claim"])),
                [tag("td", t, class_="num") for t in told],
                tag("td", replayed),
                tag("td", tag("strong", "broken") if one["broken"] else "not broken"),
            )
        )
    table = tag(
        "table",
        tag("thead", tag("tr", [tag("th", h, scope="col") for h in heads])),
        tag("tbody", rows),
        class_="glance",
    )
    held = tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="all releases")
    return _card("At a glance", held)


def _release(one: Record) -> Markup:
    said = [
        f"{'Breaks' if p['accuses'] else 'Parts'} at {p['place']}: {p['words']}." for p in one["partings"]
    ]
    if one["pairs"]:
        said.append(f"Replayed on {one['pairs']} pairs of neighbours.")
    if one["opinion"] is not None:
        said.append(f"Second opinion on its events: {'confirmed' if one['opinion'] else 'not confirmed'}.")
    parts: list[Any] = [tag("p", visible(line)) for line in [*said, *one["notes"]]]
    bets = one["bets"]
    if bets:
        if bets["parameter"]:
            parts.append(
                tag(
                    "p",
                    f"{bets['parameter']} is above {bets['lower']:.4g} with confidence {1 - bets['level']:.4g}, at"
                    f" every moment of {bets['outputs']:,} outputs.",
                )
            )
        parts.append(tag("p", "Wealth of bets against its claim:"))
        parts.append(_wealth_picture(bets))
        if bets.get("event"):
            parts += _event_parts(bets)
    return _card(visible(one["name"]), *parts)


def write_audit(record: Record, path: Path) -> None:
    """The page as a file, in UTF-8."""
    path.write_text(audit_html(record), encoding="utf-8")


def _card(title: str, *parts: Any) -> Markup:
    return tag("section", tag("h2", title), *parts, class_="card")


def _answer(record: Record) -> Markup:
    said = [f"{record['outputs']:,} outputs in {record['seconds']:.0f} s; {record['ended']}."]
    if record["parameter"]:
        said.append(
            f"{record['parameter']} is above {record['lower']:.4g} with confidence {1 - record['level']:g},"
            " at every moment of the audit."
        )
    if not record["rejected"]:
        said.append("This is no proof of the claim.")
    return _card("Answer", [tag("p", visible(line)) for line in [*said, *record["notes"]]])


def _line(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _text(x: float, y: float, words: str, anchor: str = "middle") -> Markup:
    return tag(
        "text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, font_size=12, fill="var(--muted)"
    )


def _svg(title: str, *parts: Any) -> Markup:
    return tag(
        "svg",
        tag("title", title),
        *parts,
        viewBox=f"0 0 {WIDE} {HIGH}",
        role="img",
        aria_label=title,
        style="width:100%;max-width:48rem;height:auto",
    )


def _wealth(record: Record) -> Markup:
    said = "A bet against the claim begins with 1. While the claim is true it cannot grow on average."
    return _card(
        "Wealth over time",
        tag("p", said),
        _wealth_picture(record),
        tag("p", "Horizontal: outputs. Vertical: wealth, on a logarithmic scale."),
    )


def _wealth_picture(record: Record) -> Markup:
    """log10 of the wealth against outputs, with the line that rejects."""
    path = [(n, v) for n, v in record["path"] if math.isfinite(v)]
    if len(path) < 2:
        return tag("p", "There were too few outputs for a bet.")
    needed = math.log10(1 / record["level"])
    low = min(-0.5, min(v for _, v in path))
    high = max(needed * 1.25, max(v for _, v in path))
    last = max(n for n, _ in path)

    def x(n: float) -> float:
        return float(LEFT + (WIDE - LEFT - 12) * n / max(1, last))

    def y(v: float) -> float:
        return float(10 + (HIGH - LOW - 10) * (high - v) / (high - low))

    step = max(1, math.ceil((high - low) / 6))
    marks = [v for v in range(math.ceil(low), math.floor(high) + 1) if v % step == 0]
    grid = [tag("line", x1=LEFT, x2=WIDE - 12, y1=y(v), y2=y(v), stroke="var(--grid)") for v in marks]
    return _svg(
        "Wealth of the bets against the claim",
        grid,
        [_text(LEFT - 6, y(v) + 4, f"{10.0**v:g}" if abs(v) < 5 else f"1e{v}", "end") for v in marks],
        tag(
            "line",
            x1=LEFT,
            x2=WIDE - 12,
            y1=y(needed),
            y2=y(needed),
            stroke="var(--truth)",
            stroke_dasharray="6 4",
        ),
        _text(LEFT + 4, y(needed) - 5, f"rejects at {1 / record['level']:g}", "start"),
        tag(
            "polyline",
            points=_line([(x(n), y(v)) for n, v in path]),
            fill="none",
            stroke="var(--accent)",
            stroke_width=2,
        ),
        [_text(x(last * k / 4), HIGH - 12, f"{round(last * k / 4):,}") for k in range(5)],
    )


def _event(record: Record) -> Markup | None:
    return _card("The event that tells most", *_event_parts(record)) if record.get("event") else None


def _event_parts(record: Record) -> list[Any]:
    event = record["event"]
    rows = [
        (event["first"], event["in_first"], event["of_first"]),
        (event["second"], event["in_second"], event["of_second"]),
    ]
    table = tag(
        "table",
        tag(
            "thead",
            tag("tr", [tag("th", h, scope="col") for h in ("input", "outputs with it", "outputs", "share")]),
        ),
        tag(
            "tbody",
            [
                tag(
                    "tr",
                    tag("th", visible(name), scope="row"),
                    [tag("td", c, class_="num") for c in (f"{k:,}", f"{n:,}", f"{k / max(n, 1):.3g}")],
                )
                for name, k, n in rows
            ],
        ),
        class_="glance",
    )
    held = tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="the event")
    return [tag("p", visible(event["words"]) + "."), held, _bars(record)]


def _bars(record: Record) -> Markup | None:
    """Two histograms over the same bins, one above the axis and one below."""
    made = record.get("histograms") or {}
    if not made:
        return None
    edges, first, second = made["edges"], made["first"], made["second"]
    share = [[c / max(1, sum(side)) for c in side] for side in (first, second)]
    top = max(max(s) for s in share) or 1.0
    middle = (HIGH - LOW) / 2 + 6
    wide = (WIDE - LEFT - 12) / len(first)
    shapes = []
    for i in range(len(first)):
        at = LEFT + i * wide
        up, down = (share[k][i] / top * (middle - 22) for k in (0, 1))
        shapes.append(
            tag(
                "rect",
                x=f"{at:.1f}",
                y=f"{middle - up:.1f}",
                width=f"{wide - 1:.1f}",
                height=f"{up:.1f}",
                fill="var(--bar)",
            )
        )
        shapes.append(
            tag(
                "rect",
                x=f"{at:.1f}",
                y=f"{middle:.1f}",
                width=f"{wide - 1:.1f}",
                height=f"{down:.1f}",
                fill="var(--truth)",
            )
        )
    labels = [
        _text(LEFT + k / 4 * (WIDE - LEFT - 12), HIGH - 12, f"{edges[round(k / 4 * len(first))]:.3g}")
        for k in range(5)
    ]
    a, b = (visible(str(one)) for one in made["inputs"])
    names = [_text(LEFT + 2, 16, f"up: {a}", "start"), _text(LEFT + 2, HIGH - 28, f"down: {b}", "start")]
    return tag(
        "div",
        tag("p", f"{made['of']}, on either input:"),
        _svg(f"Histograms of {made['of']}", shapes, labels, names),
    )


def _replay(record: Record) -> Markup | None:
    said = record.get("replay_lines")
    return _card("Replay with the same noise", [tag("p", visible(line)) for line in said]) if said else None


def _unseen(record: Record) -> Markup:
    return _card(
        "What this audit could not have seen",
        tag("ul", [tag("li", visible(line)) for line in record["could_not_see"]["sentences"]]),
    )
