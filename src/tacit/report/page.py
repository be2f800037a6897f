"""`report.html`: one file that needs no network and no script, for a screen, a phone, and paper.

Three readers, in this order: everybody (the findings, and the possible disclosure), the disclosure officer, and
anybody who checks the mechanisms. The parts for the latter two are folded. It is a function of the view alone: the same
view gives the same bytes.
"""

from __future__ import annotations

import math
from pathlib import Path

from tacit.curator.text import three
from tacit.guarantees import theorem
from tacit.guarantees.theorems import Standing
from tacit.report.releases import (
    TRUTH_WORDS,
    anchor,
    certificate_link,
    finding,
    flag_pill,
    heading_words,
    release_section,
)
from tacit.report.view import (
    BudgetView,
    Markup,
    ReleaseView,
    ReportView,
    file_link,
    ident,
    join,
    percent,
    picture,
    tag,
)

# The page's look: two palettes, one style sheet. A test computes the contrast of every pair of colours here.

LIGHT: dict[str, str] = {
    "page": "#f3f5f8", "card": "#ffffff", "sunk": "#eef2f6", "line": "#d5dce4", "ink": "#15202b",
    "muted": "#4c5a69", "accent": "#0a58a3", "bar": "#3f86c6", "whisker": "#0b2540", "band": "#bfdbf3",
    "truth": "#a8380a", "grid": "#e3e8ee", "spent": "#2f77b8", "spent-b": "#5b97cd", "earlier": "#7b8794",
    "care-ground": "#fdf0d5", "care-ink": "#6b4500", "noisy-ground": "#fbe3df", "noisy-ink": "#8c1d0c",
    "heat-0": "#eaf2fa", "heat-1": "#cfe2f3", "heat-2": "#abcdea", "heat-3": "#7fb2de", "heat-4": "#3579bb",
    "heat-5": "#1f5f9f", "heat-6": "#0c4076",
    "heat-ink-0": "#15202b", "heat-ink-1": "#15202b", "heat-ink-2": "#15202b", "heat-ink-3": "#15202b",
    "heat-ink-4": "#ffffff", "heat-ink-5": "#ffffff", "heat-ink-6": "#ffffff",
}  # fmt: skip
DARK: dict[str, str] = {
    "page": "#0d131a", "card": "#151d27", "sunk": "#1c2631", "line": "#2d3947", "ink": "#e9eef4",
    "muted": "#a8b5c4", "accent": "#86c1f8", "bar": "#3d84c4", "whisker": "#f2f6fa", "band": "#24476a",
    "truth": "#ffae75", "grid": "#242f3b", "spent": "#3d84c4", "spent-b": "#5fa1dc", "earlier": "#7d8a99",
    "care-ground": "#3a2d0c", "care-ink": "#ffd98a", "noisy-ground": "#46190f", "noisy-ink": "#ffb9a8",
    "heat-0": "#17222e", "heat-1": "#1a3148", "heat-2": "#1d4266", "heat-3": "#235a8d", "heat-4": "#5b9bd6",
    "heat-5": "#86b8e6", "heat-6": "#bcdcf7",
    "heat-ink-0": "#e9eef4", "heat-ink-1": "#e9eef4", "heat-ink-2": "#e9eef4", "heat-ink-3": "#ffffff",
    "heat-ink-4": "#08121c", "heat-ink-5": "#08121c", "heat-ink-6": "#08121c",
}  # fmt: skip

READ_ON: tuple[tuple[str, str], ...] = (
    *((ink, ground) for ink in ("ink", "muted", "accent") for ground in ("page", "card", "sunk")),
    ("truth", "card"), ("truth", "sunk"), ("care-ink", "care-ground"), ("noisy-ink", "noisy-ground"),
    *((f"heat-ink-{k}", f"heat-{k}") for k in range(7)),
)  # fmt: skip
"""Text colours and the grounds that they stand on: at least 4.5 to 1."""
SEEN_ON: tuple[tuple[str, str], ...] = (
    ("bar", "card"), ("whisker", "card"), ("whisker", "bar"), ("truth", "card"), ("whisker", "band"),
    ("spent", "card"), ("spent-b", "card"), ("earlier", "card"), ("noisy-ink", "card"),
)  # fmt: skip
"""Shapes that carry meaning and their grounds: at least 3 to 1."""

_RULES = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--page);color:var(--ink);line-height:1.55;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;font-size:16px}
main,.top,footer{max-width:64rem;margin:0 auto;padding:0 1.25rem}
.top{padding-top:2.5rem}
h1{font-size:clamp(1.6rem,4.5vw,2.3rem);line-height:1.15;margin:0 0 .5rem;letter-spacing:-.015em;text-wrap:balance}
h2{font-size:1.35rem;line-height:1.25;margin:0;letter-spacing:-.01em;text-wrap:balance}
h3{font-size:.95rem;margin:1.4rem 0 .35rem}
p{margin:.35rem 0}
a{color:var(--accent);text-underline-offset:.15em}
a:focus-visible,summary:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:3px}
code{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.88em;
overflow-wrap:anywhere}
.condition{font-size:clamp(2.5rem,9vw,3.7rem);line-height:1.15;font-weight:600;margin:.4rem 0 1rem}
.lead{font-size:1.05rem;max-width:46rem}
.when,.kicker,.quiet-words{color:var(--muted);font-size:.9rem}
.kicker{text-transform:uppercase;letter-spacing:.06em;font-size:.76rem;margin:0 0 .15rem}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:1rem;background:var(--card);padding:.5rem 1rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.4rem 1.5rem;margin:1.25rem 0}
.banner{border-left:5px solid var(--truth);background:var(--sunk);border-radius:0 8px 8px 0;padding:.7rem 1rem;
margin:1rem 0}
.banner strong{color:var(--truth)}
.question{color:var(--muted);margin:.2rem 0 1rem;max-width:46rem}
.facts.three{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:0 1.5rem;margin-top:.8rem}
.facts.three>div{border-top:0}
.split{display:grid;grid-template-columns:minmax(0,1.55fr) minmax(0,1fr);gap:1rem 2rem;align-items:start}
figure{margin:0;min-width:0}
figcaption{font-size:.85rem;color:var(--muted);margin-top:.6rem}
.facts{margin:0;background:var(--sunk);border-radius:10px;padding:.35rem 1rem;font-size:.93rem}
.facts>div{padding:.5rem 0;border-top:1px solid var(--line)}
.facts>div:first-child{border-top:0}
.facts dt{color:var(--muted);font-size:.8rem}
.facts dd{margin:0;overflow-wrap:anywhere}
.facts .strong{font-weight:650;font-size:1.05rem}
.big{font-size:clamp(2.4rem,9vw,3.6rem);font-weight:700;line-height:1.05;letter-spacing:-.025em;margin:.2rem 0 .1rem;
font-variant-numeric:tabular-nums}
.big small{font-size:1rem;font-weight:400;color:var(--muted);letter-spacing:0}
ul{padding-left:1.2rem;margin:.3rem 0}
li{margin:.2rem 0}
.words{max-width:50rem}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(20rem,100%),1fr));gap:0 2rem;margin-top:.4rem}
.pair h3{margin-top:.9rem}.pair p{overflow-wrap:anywhere}
.split>div{min-width:0}
.pill{display:inline-block;border-radius:99px;padding:.05rem .6rem;font-size:.78rem;font-weight:600;white-space:nowrap}
.pill.care,.pill.other{background:var(--care-ground);color:var(--care-ink)}
.pill.noisy,.pill.absent{background:var(--noisy-ground);color:var(--noisy-ink)}
.flagged{display:inline-block;white-space:nowrap;margin:0 .9rem .15rem 0}
.price{white-space:nowrap}
.flags{list-style:none;padding:0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--muted);font-size:.82rem;padding:.3rem 0}
th,td{text-align:left;padding:.32rem .8rem .32rem 0;border-bottom:1px solid var(--grid);vertical-align:baseline}
thead th{color:var(--muted);font-weight:600;font-size:.8rem;border-bottom-color:var(--line)}
td.n,th.n{text-align:right}
td.truth-cell{color:var(--truth)}
details{margin-top:1rem}
summary{cursor:pointer;color:var(--accent);font-size:.9rem}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;margin:.5rem 0 0;padding:0;list-style:none;font-size:.82rem;
color:var(--muted)}
.legend li{display:flex;align-items:center;gap:.4rem;margin:0}
.legend svg{width:20px;height:14px;flex:none;overflow:visible}
.multiples h3{font-size:.85rem;margin:.3rem 0;color:var(--muted)}
.multiples{display:grid;grid-template-columns:repeat(auto-fit,minmax(16rem,1fr));gap:1rem 1.5rem}
.theorem{padding:.8rem 0;border-top:1px solid var(--line)}
.theorem:first-of-type{border-top:0}
.theorem h4{margin:0;font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.9rem}
.theorem:target,.release:target{outline:2px solid var(--accent);outline-offset:4px}
footer{color:var(--muted);font-size:.85rem;padding-bottom:3rem}
.picture{display:block;overflow:visible;font-size:12.5px;margin-top:.4rem}
.over{overflow:visible}
.picture text{fill:var(--ink)}
.picture .tick,.picture .axis-name{fill:var(--muted);font-size:12px}
.picture .axis-name{font-style:italic}
.picture .quiet{fill:var(--muted);font-size:11.5px;font-weight:400}
.picture .strong{font-weight:650}
.picture .halo{paint-order:stroke;stroke:var(--card);stroke-width:4px;stroke-linejoin:round}
.picture .num{font-variant-numeric:tabular-nums}
.picture .cell{font-size:11.5px}
.picture .half{font-size:11px}
.finding{font-size:1.05rem;max-width:50rem}
.quality{font-size:.9rem}
.fold>summary{font-size:1rem;list-style-position:outside}
.fold>summary h2{display:inline;color:var(--accent)}
.fold h4{font-size:.9rem;margin:1rem 0 .3rem}
.budget-part{margin:1rem 0}
.words-card p,.words-card li{max-width:50rem}
.bar{fill:var(--bar)}
.noisy{stroke:var(--noisy-ink);stroke-width:1.2}
.hatch-line{stroke:var(--noisy-ink);stroke-width:1.1;fill:none;opacity:.6}
.hatch-ground{fill:var(--noisy-ground)}
.empty{fill:none;stroke:var(--line);stroke-dasharray:3 3}
.axis{stroke:var(--muted);stroke-width:1}
.grid{stroke:var(--grid);stroke-width:1}
.whisker{stroke:var(--whisker);stroke-width:1.8;stroke-linecap:round}
.band{fill:var(--band)}
.line{fill:none;stroke:var(--bar);stroke-width:2.2;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.dot{fill:var(--bar);stroke:var(--card);stroke-width:1.5}
.dot.noisy{fill:var(--noisy-ground);stroke:var(--noisy-ink)}
.line.second{stroke:var(--whisker);stroke-dasharray:9 4}
.line.third{stroke:var(--earlier);stroke-dasharray:2 4}
.band.second{fill:var(--earlier);opacity:.3}
.band.third{fill:var(--care-ink);opacity:.2}
.truth{fill:none;stroke:var(--truth);stroke-width:2}
.truth-below{fill:var(--truth)}
.truth-rim{fill:none;stroke:var(--card);stroke-width:5}
.truth-line{fill:none;stroke:var(--truth);stroke-width:2.2;stroke-dasharray:5 3;vector-effect:non-scaling-stroke}
.spent{fill:var(--spent)}.spent-b{fill:var(--spent-b)}.earlier{fill:var(--earlier)}
.left{fill:var(--sunk);stroke:var(--muted);stroke-dasharray:4 3}
.heat{stroke:var(--card);stroke-width:1}
"""
_NARROW = """
@media(max-width:760px){.split{grid-template-columns:minmax(0,1fr)}
.card{padding:1.1rem 1rem;border-radius:10px}
main,.top,footer{padding-left:.8rem;padding-right:.8rem}.glance .wide{display:none}
.flagged{white-space:normal;margin-right:0}}
"""
_PRINT = """
@page{size:A4;margin:11mm 12mm}
@media print{html{font-size:7.5pt}body{background:#fff;font-size:7.5pt;line-height:1.3}
main,.top,footer{max-width:none;padding:0}.top{padding-top:0}h1{font-size:15pt;margin:0}.top p{margin:.1rem 0}
details,.skip,.legend,.question,.files,footer,.quality a,.summary-card,.left-out{display:none}
.card{border-width:1px 0 0;border-radius:0;padding:.35rem 0;margin:.3rem 0;break-inside:avoid}
#releases{display:grid;grid-template-columns:minmax(0,1fr);gap:0 1rem;align-items:start}
#releases.some,#releases.many{grid-template-columns:repeat(2,minmax(0,1fr))}
.release h2{font-size:9pt}.finding{font-size:7.5pt;margin:.1rem 0}.quality{font-size:7pt;margin:.1rem 0}
figcaption{font-size:6pt;margin-top:.1rem}.picture{zoom:.58}.some .picture{zoom:.45}
.some .tall,.many figure{display:none}
.big{font-size:15pt;margin:0}h2{font-size:9.5pt}.pill{font-size:6.5pt;padding:0 .3rem}
.banner{padding:.2rem .5rem;margin:.2rem 0}
main{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:0 1rem}main>*{grid-column:1/-1}
main>.words-card{grid-column:auto;font-size:6.5pt}.words-card p,.words-card li{max-width:none;margin:.1rem 0}
p,li{orphans:3;widows:3}a{text-decoration:none}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""


def style_sheet() -> str:
    """The style sheet: the light palette, the dark one if the reader prefers it, and always light on paper."""
    heat = "".join(
        f".heat-{k}{{fill:var(--heat-{k})}}.picture .heat-ink-{k}{{fill:var(--heat-ink-{k})}}"
        for k in range(7)
    )
    return (
        f":root{{color-scheme:light dark}}:root{{{_variables(LIGHT)}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
        f"{_squeezed(_RULES)}{heat}{_squeezed(_NARROW)}{_squeezed(_PRINT)}"
    )


def _variables(palette: dict[str, str]) -> str:
    return ";".join(f"--{name}:{colour}" for name, colour in palette.items())


def _squeezed(text: str) -> str:
    return text.replace("\n", "")


# The budget: what may be spent, what each release took of it, what is left.

TOP, BAR = 4, 30


def budget_section(view: ReportView) -> Markup:
    """The bar, its words, and the parts as a table."""
    budget = view.budget
    return tag(
        "section",
        tag("h3", "The budget", id="budget"),
        tag("p", f"In {budget.kind}.", class_="question"),
        budget_bar(view),
        _budget_facts(budget),
        _meaning(budget),
        _parts(view),
        class_="budget-part",
        aria_labelledby="budget",
        data_certificate="the ledger",
    )


def shares(budget: BudgetView) -> list[float]:
    """The widths of the releases in the bar: in proportion to the price of each alone."""
    alone = sum(p.amount for p in budget.parts)
    now = budget.spent - budget.earlier
    return [p.amount / alone * now / budget.total if alone > 0 else 0.0 for p in budget.parts]


def budget_bar(view: ReportView) -> Markup:
    """One bar from nothing to the whole budget."""
    budget = view.budget
    titles = {r.name: r.title for r in view.releases}
    parts: list[Markup] = [tag("rect", x=0, y=TOP, width="100%", height=BAR, rx=4, class_="left")]
    at = 0.0
    pieces = [("spent on other releases", budget.earlier / budget.total, "earlier")] if budget.earlier else []
    for k, (part, share) in enumerate(zip(budget.parts, shares(budget), strict=True)):
        pieces.append((titles[part.release], share, "spent" if k % 2 == 0 else "spent-b"))
    if not budget.parts:
        pieces.append(("spent", (budget.spent - budget.earlier) / budget.total, "spent"))
    for name, share, kind in pieces:
        box = {"x": f"{100 * at:.3f}%", "y": TOP, "width": f"{100 * share:.3f}%", "height": BAR}
        parts.append(tag("rect", tag("title", name), **box, class_=kind))
        at += share
    spent = budget.spent / budget.total
    parts.append(tag("text", f"{percent(spent)} spent", x=0, y=TOP + BAR + 18, class_="tick num"))
    left = f"{percent(max(0.0, 1 - spent))} left"
    parts.append(tag("text", left, x="100%", y=TOP + BAR + 18, text_anchor="end", class_="tick num"))
    told = (
        f"{percent(spent)} of the budget is spent, in {len(budget.parts)} releases"
        f"{' and on others' if budget.earlier else ''}; the table below has each of them."
    )
    return picture(
        "budget-bar", "How much of the budget is spent", told, TOP + BAR + 26, parts, class_="budget"
    )


def _budget_facts(budget: BudgetView) -> Markup:
    entries = [
        ("Whole budget", budget.total_words), ("Spent", budget.spent_words), ("Left", budget.remaining_words),
    ]  # fmt: skip
    rows = [tag("div", tag("dt", name), tag("dd", words, class_="num")) for name, words in entries]
    return tag("dl", rows, class_="facts three")


def _meaning(budget: BudgetView) -> Markup | None:
    if not budget.meaning:
        return None
    return tag(
        "div",
        tag("h4", "What all of it together means"),
        [tag("p", sentence) for sentence in budget.meaning],
        class_="words",
    )


def _parts(view: ReportView) -> Markup | None:
    budget = view.budget
    if not budget.parts:
        return None
    alone = math.fsum(p.amount for p in budget.parts)
    now = budget.spent - budget.earlier
    releases = {r.name: r for r in view.releases}
    rows = []
    for part, share in zip(budget.parts, shares(budget), strict=True):
        release = releases[part.release]
        rows.append(
            tag(
                "tr",
                tag(
                    "th", tag("a", heading_words(release.title), href=f"#{anchor(part.release)}"), scope="row"
                ),
                tag("td", part.words, class_="num"),
                tag("td", percent(share), class_="n num"),
                tag("td", certificate_link(release), class_="wide"),
            )
        )
    heads = [tag("th", "Release", scope="col"), tag("th", "Price alone", scope="col")]
    heads += [
        tag("th", "Share of the budget", scope="col", class_="n"),
        tag("th", "From", scope="col", class_="wide"),
    ]
    note = None
    if alone > now * (1 + 1e-6):
        note = tag(
            "p",
            join(
                f"One by one the releases would cost {three(alone)}; accounted together they cost {three(now)}. "
                "The releases share their joint cost in proportion to the cost of each one alone."
            ),
            class_="quiet-words",
        )
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_="glance")
    return tag("details", tag("summary", "What each release took"), note, table)


# How the numbers were made: a line a release, then prices, errors, noise and theorems of each.


def mechanisms(view: ReportView) -> Markup | None:
    """The part for readers who check; it is folded at first."""
    if not view.releases:
        return None
    return tag(
        "details",
        tag("summary", tag("h2", "How the numbers were made", id="mechanisms")),
        _glance(view),
        [_facts(r) for r in view.releases],
        _methods(view),
        class_="card fold",
    )


def _glance(view: ReportView) -> Markup:
    heads = [tag("th", words, scope="col") for words in ("Release", "Price")]
    heads += [tag("th", "Typical interval", scope="col", class_="n wide")]
    heads += [tag("th", "Times the best possible", scope="col", class_="n wide")]
    heads += [tag("th", "Quality", scope="col")]
    rows = [_glance_row(r) for r in view.releases]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_="glance")
    return join(
        tag("h3", "At a glance", id="glance"),
        tag("div", table, class_="scroll", tabindex="0", role="region", aria_labelledby="glance"),
    )


def _glance_row(view: ReleaseView) -> Markup:
    width = view.typical_width
    interval = "none" if width is None else f"{_wide(view, width)} wide"
    ratio = three(view.ratio) if view.ratio is not None else "not known"
    pills = [
        tag("span", flag_pill(view, id), f" {n:,} of {view.total:,}", class_="flagged")
        for id, n in view.flag_counts.items()
    ]
    return tag(
        "tr",
        tag("th", tag("a", heading_words(view.title), href=f"#made-{ident(view.name)}"), scope="row"),
        tag("td", view.price, class_="num price"),
        tag("td", interval, class_="n num wide"),
        tag("td", ratio, class_="n num wide"),
        tag("td", pills or "good"),
        data_certificate=view.certificate,
    )


def _wide(view: ReleaseView, width: float) -> str:
    return three(width) + (" days" if any(c.days for c in view.cells) else "")


def _facts(view: ReleaseView) -> Markup:
    entries: list[tuple[str, Markup | str]] = [("Price", tag("span", view.price, class_="strong num"))]
    width = view.typical_width
    if width is not None:
        words = f"{_wide(view, width)} wide" + (", the median over the cells" if view.total > 1 else "")
        entries.append((f"Interval at {percent(view.confidence)}", tag("span", words, class_="num")))
    if view.expected_error is not None:
        entries.append(("Expected error", tag("span", three(view.expected_error), class_="num")))
    if view.lower_bound is not None:
        bound = tag("span", three(view.lower_bound), class_="num")
        entries.append(("No private mechanism can go below", bound))
    ratio: Markup | str = view.ratio_reason
    if view.ratio is not None:
        ratio = join(
            tag("span", three(view.ratio), class_="num"), " times the smallest possible error, at most"
        )
    entries.append(("Price of privacy", ratio))
    if view.mechanism:
        entries.append(("Mechanism", view.mechanism))
    if view.theorems:
        links = [tag("a", tag("code", id), href=f"#theorem-{id}") for id in view.theorems]
        entries.append(("Rests on", join(*_between(links))))
    entries.append(("Certificate", certificate_link(view)))
    if view.values:
        entries.append(("All values", file_link(view.values)))
    rows = [tag("div", tag("dt", name), tag("dd", value)) for name, value in entries]
    title = tag("a", heading_words(view.title), href=f"#{anchor(view.name)}")
    return tag(
        "section",
        tag("h3", title, id=f"made-{ident(view.name)}"),
        tag("dl", rows, class_="facts three"),
        data_certificate=view.certificate,
    )


def _methods(view: ReportView) -> Markup | None:
    if not view.theorems:
        return None
    parts = []
    for id in view.theorems:
        known = theorem(id)
        standing = {
            Standing.AS_PRINTED: "as in the source",
            Standing.CORRECTED: "corrected: the source is wrong as printed",
            Standing.SHARPER: "sharper than the source",
        }[known.standing]
        parts.append(
            tag(
                "section",
                tag("h4", id),
                tag("p", known.statement),
                tag("p", f"Assumes: {known.assumptions}.", class_="quiet-words"),
                tag("p", f"Source: {known.source} ({standing}).", class_="quiet-words"),
                class_="theorem",
                id=f"theorem-{id}",
            )
        )
    intro = "Every guarantee on this page follows from the theorems below; their proofs are in docs/theory, by id."
    return join(tag("h3", "Methods", id="methods"), tag("p", intro, class_="question"), parts)


def _between(links: list[Markup]) -> list[Markup | str]:
    out: list[Markup | str] = []
    for link in links:
        out += [", ", link] if out else [link]
    return out


def report_html(view: ReportView) -> str:
    """The whole page as text."""
    sections = [release_section(r) for r in view.releases]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="tacit"),
        tag("title", view.title),
        tag("style", Markup(style_sheet())),
    )
    amount = "few" if len(sections) <= 2 else "some" if len(sections) <= 6 else "many"
    body = tag(
        "body",
        tag("a", "To the findings", href="#releases", class_="skip"),
        _top(view),
        tag(
            "main",
            _summary(view),
            tag("section", sections, id="releases", class_=amount, aria_label="Findings"),
            _reading(view),
            _about_you(view),
            _officer(view),
            mechanisms(view),
            _files(view),
        ),
        _footer(),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def write_report(view: ReportView, path: Path) -> None:
    """The page as a file, in UTF-8. The caller decides how it is moved into place."""
    path.write_text(report_html(view), encoding="utf-8")


def _top(view: ReportView) -> Markup:
    when = view.made_at.strftime("%d %B %Y, %H:%M").lstrip("0")
    zone = view.made_at.strftime(" %Z").rstrip()
    banner = None
    if view.synthetic:
        words = TRUTH_WORDS.partition(": ")[2]
        banner = tag("p", tag("strong", "Synthetic. "), words[0].upper() + words[1:], ".", class_="banner")
    moment = tag("time", when + zone, datetime=view.made_at.isoformat())
    named = [view.publisher, view.period, f"Contact: {view.contact}" if view.contact else ""]
    told = " · ".join(words for words in named if words)
    return tag(
        "header",
        tag("h1", view.title),
        tag("p", view.condition, class_="condition") if view.condition else None,
        tag("p", told, class_="lead") if told else None,
        tag("p", "Made on ", moment, class_="when"),
        banner,
        tag("p", tag("strong", view.withdrawn), class_="banner") if view.withdrawn else None,
        class_="top",
    )


MOST_SUMMARISED = 8
"""The largest number of releases in the summary, which has ten lines with those about the page."""


def _summary(view: ReportView) -> Markup | None:
    """The findings first, a line each; a page with one release needs no separate summary."""
    if len(view.releases) < 2:
        return None
    told = view.releases[:MOST_SUMMARISED]
    lines = [
        tag(
            "li",
            tag("a", heading_words(r.title), href=f"#{anchor(r.name)}"),
            f": {finding(r)}",
            data_certificate=r.certificate,
        )
        for r in told
    ]
    left = len(view.releases) - len(told)
    if left:
        lines.append(tag("li", f"{left} more {'release' if left == 1 else 'releases'} below."))
    budget = view.budget
    what = " and ".join(sorted({r.covers for r in told}, key=len)) if told else "the noise"
    more = (
        what
        if what in ("the noise", "sampling and noise")
        else "the noise, and for sampling where it is said"
    )
    paid = f"In brackets: intervals for {more}. Spent: {budget.spent_words}; left: {budget.remaining_words}."
    return tag(
        "section",
        tag("h2", "Summary", id="summary"),
        tag("ul", lines),
        tag("p", paid, class_="quiet-words", data_certificate="the ledger"),
        class_="card words-card summary-card",
        aria_labelledby="summary",
    )


def _held(view: ReportView) -> str:
    """The meaning of the intervals of a page: some, all or none of them include the sampling error."""
    kinds = {r.covers for r in view.releases}
    if kinds == {"sampling and noise"}:
        return "sampling and the noise that was added: it does not contain"
    some = ", and for sampling where a release says so" if "sampling and noise" in kinds else ""
    return f"the noise that was added{some}: it does not contain {'' if some else 'sampling error, or '}".rstrip()


def _reading(view: ReportView) -> Markup | None:
    """How to read the numbers: intervals and the words of quality, once for all of them."""
    if not view.releases:
        return None
    levels = sorted({r.confidence for r in view.releases})
    said = " or ".join(percent(level) for level in levels)
    first = (
        f"In brackets stands the interval ({said}) for {_held(view)} what clamping values to their declared bounds "
        "does, unless the certificate says so. Numbers are rounded to three digits, or to as many as their interval "
        "needs, ends of intervals outwards; the files have all digits."
    )
    flags = {}
    for release in view.releases:
        for flag in release.flags:
            if flag.id in release.flag_counts:
                flags[flag.label, flag.explanation] = flag
    entries = [tag("li", tag("b", f.label), f": {f.explanation}.") for f in flags.values()]
    return tag(
        "section",
        tag("h2", "How to read these numbers", id="reading"),
        tag("p", first),
        tag("ul", entries) if entries else None,
        tag(
            "p",
            "Every number comes from the certificate of its release, in the folder of certificates beside this page.",
        ),
        class_="card words-card",
        aria_labelledby="reading",
    )


def _about_you(view: ReportView) -> Markup:
    return tag(
        "section",
        tag("h2", "What this says about you", id="about-you"),
        [tag("p", sentence) for sentence in view.about_you],
        [tag("p", words, class_="banner") for words in view.warnings],
        class_="card words-card",
        aria_labelledby="about-you",
        data_certificate="the ledger",
    )


def _officer(view: ReportView) -> Markup:
    parts = [
        tag("div", tag("h3", p.heading), [tag("p", sentence) for sentence in p.sentences])
        for p in view.officer
    ]
    return tag(
        "details",
        tag("summary", tag("h2", "For the disclosure officer", id="officer")),
        tag("p", view.unit_sentence),
        budget_section(view),
        tag("div", parts, class_="pair", data_certificate="the ledger") if parts else None,
        class_="card fold",
    )


def _files(view: ReportView) -> Markup | None:
    if not view.files:
        return None
    listed = [tag("li", file_link(name), f": {words}") for name, words in view.files]
    return tag("section", tag("h2", "Files"), tag("ul", listed), class_="card files")


def _footer() -> Markup:
    text = "Made with tacit; tacit verify tells whether this page and the files beside it are as they were written."
    return tag("footer", join(tag("p", text)))
