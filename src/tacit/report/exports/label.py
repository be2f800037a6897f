"""A label for the public: the publication, its people, its largest loss, its duration, and its publisher.

One card for the whole release, in English and in German, as an HTML page, as a snippet for another page, and as a
picture. Numbers are rounded against us, as `Guarantee.explain` rounds them.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping
from typing import Any

from tacit.errors import NoLaw, TacitError, UnknownName
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Always, Neighbours, People
from tacit.report.exports.evaluation import percent_up, style_of, whole_page
from tacit.report.exports.published import PublishedFolder
from tacit.report.exports.registry import common_guarantee, in_words
from tacit.report.view import Markup, join, tag

LANGUAGES = ("en", "de")

WORDS: dict[str, dict[str, str]] = {
    "en": {
        "kicker": "Privacy label", "point": ".",
        "what": "What is published", "who": "About whom", "reveal": "What it can reveal at most",
        "long": "For how long", "answers": "Who answers for it", "number": "In numbers", "not": "What it does not say",
        "tables": "{count} tables with noise: {names}.", "table": "One table with noise: {names}.",
        "more": " and {count} more", "period": " Period: {period}.",
        "person": "Everybody in the column {column} is protected with all their rows; at most {most} of them are used.",
        "one_row": "Everybody in the column {column} is protected with their row.",
        "rows": "Each row of the table is protected. A person with several rows is protected less.",
        "other": "Protected: {noun}.",
        "present": " Presence in the table is protected, too.",
        "counted": " The number of people in the table is public.",
        "guess": "Suppose that somebody knows everybody else's data. If they must tell whether yours were used or "
                 "other data in their place, they are right in at most {guess}% of cases. A coin is right in 50%.",
        "guess_present": "Suppose that somebody knows everybody else's data. If they must tell whether yours are in "
                         "the table, they are right in at most {guess}% of cases. A coin is right in 50%.",
        "nobody": " A promise this weak protects nobody.",
        "no_guess": "No limit for one given person is known.",
        "condition": "This is not differential privacy without a condition. It holds only under an "
                     "assumption: {condition}.",
        "only_then": "; only under the assumption above",
        "for_ever": "For as long as the numbers exist. Later publications about the same people add to what can be "
                    "revealed; the publisher keeps a ledger of them.",
        "nobody_named": "The publisher did not name a contact.",
        "scope": "What is true of a whole group may still be learned, and you may belong to the group. The promise is "
                 "about your own data.",
        "made_up": "The people of this table are made up: this is a demonstration.",
        "withdrawn": "Withdrawn or replaced: {text}.",
    },
    "de": {
        "kicker": "Datenschutz-Etikett", "point": ",",
        "what": "Was veröffentlicht wird", "who": "Über wen", "reveal": "Was es höchstens verraten kann",
        "long": "Für wie lange", "answers": "Wer dafür einsteht", "number": "In Zahlen", "not": "Was es nicht sagt",
        "tables": "{count} verrauschte Tabellen: {names}.", "table": "Eine verrauschte Tabelle: {names}.",
        "more": " und {count} weitere", "period": " Zeitraum: {period}.",
        "person": "Geschützt ist, wer in der Spalte {column} steht, mit allen eigenen Zeilen; höchstens {most} davon "
                  "werden verwendet.",
        "one_row": "Geschützt ist, wer in der Spalte {column} steht, mit der eigenen Zeile.",
        "rows": "Geschützt ist jede Zeile der Tabelle. Wer mehrere Zeilen hat, ist weniger geschützt.",
        "other": "Geschützt: {noun}.",
        "present": " Auch ob jemand in der Tabelle steht, ist geschützt.",
        "counted": " Die Zahl der Personen in der Tabelle ist öffentlich.",
        "guess": "Angenommen, jemand kennt die Angaben aller anderen. Soll er sagen, ob Ihre Angaben verwendet wurden "
                 "oder andere an ihrer Stelle, so hat er in höchstens {guess} % der Fälle recht. "
                 "Eine Münze hat in 50 % recht.",
        "guess_present": "Angenommen, jemand kennt die Angaben aller anderen. Soll er sagen, ob Ihre Angaben in der "
                         "Tabelle stehen, so hat er in höchstens {guess} % der Fälle recht. Eine Münze hat in 50 % "
                         "recht.",
        "nobody": " Ein so schwaches Versprechen schützt niemanden.",
        "no_guess": "Für eine einzelne Person ist keine Grenze bekannt.",
        "condition": "Dies ist keine bedingungslose Differential Privacy. Es gilt nur unter einer Annahme, hier auf "
                     "Englisch: {condition}.",
        "only_then": "; nur unter der genannten Annahme",
        "for_ever": "So lange es die Zahlen gibt. Spätere Veröffentlichungen über dieselben Menschen kommen hinzu; wer "
                    "veröffentlicht, führt darüber Buch.",
        "nobody_named": "Es wurde kein Kontakt genannt.",
        "scope": "Was für eine ganze Gruppe gilt, kann man weiterhin lernen, und Sie können zu der Gruppe gehören. Das "
                 "Versprechen betrifft Ihre eigenen Angaben.",
        "made_up": "Die Menschen dieser Tabelle sind erfunden: dies ist eine Vorführung.",
        "withdrawn": "Zurückgezogen oder ersetzt: {text}.",
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LabelText:
    """The label in one language: a title, warnings, and pairs of heading and sentence."""

    language: str
    kicker: str
    title: str
    warnings: tuple[str, ...]
    parts: tuple[tuple[str, str], ...]


def label_text(folder: PublishedFolder, language: str = "en") -> LabelText:
    """What the label says."""
    if language not in WORDS:
        raise UnknownName(what="language", name=language, known=LANGUAGES)
    words = WORDS[language]
    promise = common_guarantee(folder)
    unit = promise.unit
    public_n = unit.neighbours is Neighbours.REPLACE_ONE
    if isinstance(unit, People):
        form = "one_row" if unit.at_most == 1 else "person"
        who = words[form].format(column=unit.column, most=unit.at_most)
    else:
        who = words["rows"] if type(unit).__name__ == "Rows" else words["other"].format(noun=unit.noun)
    who += words["counted" if public_n else "present"] if isinstance(promise.condition, Always) else ""
    contact = ", ".join(t for t in (folder.words.publisher, folder.words.contact) if t)
    number = f"{in_words(promise.bound)}; {folder.first['neighbours']}"
    if folder.conditional or not isinstance(promise.condition, Always):
        number += words["only_then"]
    warnings = [words["made_up"]] if folder.made_up else []
    warnings += [words["withdrawn"].format(text=c) for c in folder.corrections]
    return LabelText(
        language=language, kicker=words["kicker"], title=folder.title, warnings=tuple(warnings),
        parts=(
            (words["what"], _what(folder, words)),
            (words["who"], who),
            (words["reveal"], _reveal(folder, words, public_n)),
            (words["not"], words["scope"]),
            (words["long"], words["for_ever"]),
            (words["answers"], contact or words["nobody_named"]),
            (words["number"], number),
        ),
    )  # fmt: skip


def _what(folder: PublishedFolder, words: Mapping[str, str]) -> str:
    names = [t.title for t in folder.tables]
    shown = ", ".join(names[:6]) + (words["more"].format(count=len(names) - 6) if len(names) > 6 else "")
    text = words["tables" if len(names) > 1 else "table"].format(count=len(names), names=shown)
    if not all(t.noisy for t in folder.tables):
        text = f"{shown}."
    return text + (words["period"].format(period=folder.words.period) if folder.words.period else "")


def _reveal(folder: PublishedFolder, words: Mapping[str, str], public_n: bool) -> str:
    promise = common_guarantee(folder)
    others = [t.guarantee.condition for t in folder.tables if not isinstance(t.guarantee.condition, Always)]
    said = [words["condition"].format(condition=c) for c in dict.fromkeys(map(str, others))]
    try:
        guess = promise.best_guess()
    except (NoLaw, TacitError):
        return " ".join([words["no_guess"], *said])
    text = words["guess" if public_n else "guess_present"].format(
        guess=percent_up(guess).replace(".", words["point"])
    )
    return " ".join([text + (words["nobody"] if guess >= 0.99 else ""), *said])


# --- HTML and a picture --------------------------------------------------------------------------------------
_STYLE = """
body{margin:0;background:var(--page)}main{max-width:36rem;margin:0 auto;padding:1rem}
.tacit-label{font:16px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;
background:var(--card);color:var(--ink);border:2px solid var(--ink);border-radius:10px;padding:1rem 1.2rem;
margin:0 0 1rem}
.tacit-label h2{font-size:1.3rem;line-height:1.2;margin:.1rem 0 .6rem;padding-bottom:.5rem;
border-bottom:6px solid var(--ink)}
.tacit-label .kicker{font-size:.78rem;letter-spacing:.06em;text-transform:uppercase;color:var(--muted);margin:0}
.tacit-label dl{margin:0}.tacit-label dt{font-weight:650;margin-top:.55rem}
.tacit-label dd{margin:0 0 .55rem;padding-bottom:.55rem;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
.tacit-label dd:last-child{border:0;margin:0;padding:0}.tacit-label .warning{font-weight:600;color:var(--noisy-ink)}
"""
_PLAIN = {
    "article": "font:16px/1.45 system-ui,sans-serif;color:#15202b;background:#fff;border:2px solid #15202b;"
               "border-radius:10px;padding:1rem 1.2rem;max-width:36rem",
    "kicker": "font-size:.78rem;letter-spacing:.06em;text-transform:uppercase;color:#4c5a69;margin:0",
    "h2": "font-size:1.3rem;line-height:1.2;margin:.1rem 0 .6rem;padding-bottom:.5rem;border-bottom:6px solid #15202b",
    "dt": "font-weight:650;margin-top:.55rem",
    "dd": "margin:0 0 .55rem;padding-bottom:.55rem;border-bottom:1px solid #d5dce4;overflow-wrap:anywhere",
    "warning": "font-weight:600;color:#8c1d0c",
}  # fmt: skip


def label_card(text: LabelText, *, inline: bool = False) -> Markup:
    """The card; with `inline` its style is in the elements, so that any page can contain it."""

    def style(name: str) -> dict[str, Any]:
        return {"style": _PLAIN[name]} if inline else {}

    return tag(
        "article",
        tag("p", text.kicker, class_="kicker", **style("kicker")),
        tag("h2", text.title, **style("h2")),
        *(tag("p", w, class_="warning", **style("warning")) for w in text.warnings),
        tag("dl", *(join(tag("dt", h, **style("dt")), tag("dd", s, **style("dd"))) for h, s in text.parts)),
        class_="tacit-label", lang=text.language, **style("article"),
    )  # fmt: skip


def label_page(folder: PublishedFolder, languages: tuple[str, ...] = LANGUAGES) -> str:
    """A page with the card in each language."""
    texts = [label_text(folder, one) for one in languages]
    title = f"{texts[0].kicker}: {folder.title}"
    return whole_page(title, style_of(_STYLE), *map(label_card, texts), language=languages[0])


def label_snippet(folder: PublishedFolder, language: str = "en") -> str:
    """The card alone, to be pasted into another page."""
    return f"{label_card(label_text(folder, language), inline=True)}\n"


def label_picture(folder: PublishedFolder, language: str = "en") -> bytes:
    """The card as a PNG picture, 1,080 pixels wide."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    text = label_text(folder, language)
    lines: list[tuple[str, float, str, str, float]] = [(text.kicker.upper(), 11, "normal", "#4c5a69", 0.0)]
    lines += [(line, 19, "bold", "#15202b", 0.0) for line in textwrap.wrap(text.title, 44)]
    for warning in text.warnings:
        lines += [(line, 12, "bold", "#8c1d0c", 0.0) for line in textwrap.wrap(warning, 70)]
    for heading, sentence in text.parts:
        lines.append((heading, 13, "bold", "#15202b", 12.0))
        lines += [(line, 12, "normal", "#15202b", 0.0) for line in textwrap.wrap(sentence, 72)]
    height = sum(size * 1.5 + gap for _, size, _, _, gap in lines) + 56
    figure = Figure(figsize=(7.2, height / 72), dpi=150, facecolor="#ffffff")
    FigureCanvasAgg(figure)
    at = height - 26
    for line, size, weight, colour, gap in lines:
        at -= gap
        figure.text(
            0.045, at / height, line, size=size, weight=weight, color=colour, va="top", parse_math=False
        )
        at -= size * 1.5
    figure.patch.set_edgecolor("#15202b")
    figure.patch.set_linewidth(6)
    out = io.BytesIO()
    figure.savefig(
        out, format="png", facecolor="#ffffff", edgecolor="#15202b", metadata={"Software": "tacit"}
    )
    return out.getvalue()
