"""The page's look: two palettes, one style sheet. A test computes the contrast of every pair of colours here."""

from __future__ import annotations

__all__ = ["DARK", "LIGHT", "READ_ON", "SEEN_ON", "style_sheet"]

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
details,.skip,.legend,.question,.files,footer,.quality a{display:none}
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
    """The style sheet: the light palette, the dark one where the reader prefers it, and always light on paper."""
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
