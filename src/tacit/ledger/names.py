"""Rules for new names in a ledger, and for two names that a reader could confuse.

Shares, roles and approvals refer to names, so a lookalike could act for another person. A new name
is in composed form (NFKC), of one script in everyday use, without pictures or invisible characters, and not
confusable with a known name. A name in the ledger is matched by its exact characters, so that old ledgers open.
The rules here apply before an entry is written, never when a chain is verified.

The list of lookalikes is our own and short: letters of Greek, Cyrillic, Armenian and the Latin extensions that are
drawn like letters of the basic Latin alphabet. Scripts of few or no readers, some of which consist of such letters
(Lisu, Cherokee, Coptic), are refused as a whole. It cannot be complete (docs/desk.md).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from tacit.errors import InvalidParameter, shows_nothing, visible

TOGETHER = (
    frozenset({"CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"CJK", "HANGUL"}),
    frozenset({"CJK", "BOPOMOFO"}),
)
"""Scripts that are written together in one language."""
EVERYDAY = frozenset({
    "ARABIC", "ARMENIAN", "BENGALI", "BOPOMOFO", "CJK", "CYRILLIC", "DEVANAGARI", "ETHIOPIC", "GEORGIAN",
    "GREEK", "GUJARATI", "GURMUKHI", "HANGUL", "HEBREW", "HIRAGANA", "KANNADA", "KATAKANA", "KHMER",
    "LAO", "LATIN", "MALAYALAM", "MYANMAR", "ORIYA", "SINHALA", "TAMIL", "TELUGU", "THAANA", "THAI",
    "TIBETAN",
})  # fmt: skip
"""The scripts that Unicode recommends for identifiers (UAX 31): those that many people write every day."""
_PART_OF = {"KATAKANA-HIRAGANA": "KATAKANA", "IDEOGRAPHIC": "CJK"}

_LIKE = {
    # Cyrillic, folded
    "а": "a", "ь": "b", "с": "c", "ԁ": "d", "е": "e", "ҽ": "e", "һ": "h", "і": "l", "ї": "l", "ј": "j", "к": "k",
    "ӏ": "l", "м": "m", "н": "h", "о": "o", "р": "p", "ԛ": "q", "г": "r", "ѕ": "s", "т": "t", "ѵ": "v", "ԝ": "w",
    "х": "x", "у": "y", "ү": "y", "в": "b", "з": "3", "ԍ": "g", "п": "n", "ш": "w", "ѡ": "w", "ч": "4", "б": "6",
    "ӡ": "3", "ә": "e", "ө": "o", "ѳ": "o", "ћ": "h", "ђ": "h",
    # Greek, folded
    "α": "a", "β": "b", "ε": "e", "η": "n", "ι": "l", "κ": "k", "μ": "u", "ν": "v", "ο": "o", "ρ": "p", "σ": "o",
    "ς": "c", "τ": "t", "υ": "u", "χ": "x", "ω": "w", "γ": "y", "ϲ": "c", "ϳ": "j", "ζ": "z", "θ": "o", "ϱ": "p",
    # Armenian, folded
    "օ": "o", "ս": "u", "հ": "h", "ո": "n", "ց": "g", "զ": "q", "ա": "w", "յ": "j", "բ": "f", "ք": "p", "տ": "s",
    # Latin letters beyond the alphabet
    "ı": "l", "ȷ": "j", "ɑ": "a", "ɡ": "g", "ɩ": "l", "ɪ": "l", "ʋ": "v", "ʏ": "y", "ø": "o", "đ": "d", "ħ": "h",
    "ł": "l", "ŧ": "t", "ƀ": "b", "ɓ": "b", "ɗ": "d", "ɛ": "e", "ə": "e", "ɵ": "o", "ɔ": "c", "ƙ": "k", "ƚ": "l",
    "ɯ": "w", "ɲ": "n", "ŋ": "n", "ɾ": "r", "ʀ": "r", "ʂ": "s", "ƭ": "t", "ʉ": "u", "ƴ": "y", "ƶ": "z", "ʙ": "b",
    "ᴀ": "a", "ᴄ": "c", "ᴅ": "d", "ᴇ": "e", "ᴊ": "j", "ᴋ": "k", "ᴍ": "m", "ᴏ": "o", "ᴘ": "p", "ᴛ": "t", "ᴜ": "u",
    "ᴠ": "v", "ᴡ": "w", "ᴢ": "z", "ɢ": "g", "ʜ": "h", "ʟ": "l", "ɴ": "n", "ꜱ": "s", "ꞌ": "l", "ǀ": "l", "þ": "p",
    "ƅ": "b", "ƃ": "b", "ꝋ": "o", "ɘ": "e", "ǃ": "l", "ƿ": "p", "æ": "ae", "œ": "oe", "ð": "d", "ĸ": "k",
    # digits and signs that are drawn like letters
    "0": "o", "1": "l", "i": "l", "|": "l", "!": "l", "¡": "l", "۱": "l", "٠": "o", "۰": "o", "०": "o", "০": "o",
    "੦": "o", "૦": "o",
    "౦": "o", "೦": "o", "൦": "o", "๐": "o", "໐": "o", "၀": "o", "ჿ": "o", "〇": "o", "ഠ": "o", "ⲟ": "o", "ⲣ": "p",
    "ⲥ": "c", "ⲁ": "a",
}  # fmt: skip
_PAIRS = (("rn", "m"), ("vv", "w"))
_SIGNS = "|!¡"
"""Signs that look like a letter, or that a reader may overlook."""


def scripts(name: str) -> frozenset[str]:
    """The scripts of its letters, each by the first word of their names in the Unicode character database."""
    found = {unicodedata.name(c, "?").split()[0] for c in name if unicodedata.category(c)[0] == "L"}
    return frozenset(_PART_OF.get(word, word) for word in found)


@lru_cache(maxsize=4096)
def skeleton(name: str, *, signs: bool = True) -> str:
    """The skeleton of a name, without the differences that a reader may overlook. Names with one skeleton are
    confusable.

    Case, marks, blanks, signs and invisible characters are left out, and lookalike letters are unified.
    A sign between two digits remains one: 1.1 is not 11. Signs that are drawn like a letter are that letter
    (a!ice is alice), or are left out like the others (`signs=False`: alice! is alice).
    """
    bare = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold())
    found: list[str] = []
    for at, c in enumerate(bare):
        if shows_nothing(c) or _overlooked(c) or (c in _SIGNS and not signs):
            continue
        if c in _LIKE or unicodedata.category(c)[0] in "LMN":
            found.append(_LIKE.get(c) or _drawn(c))
        elif bare[at - 1 : at].isdigit() and bare[at + 1 : at + 2].isdigit():
            found.append(".")
    text = "".join(found)
    for pair, one in _PAIRS:
        text = text.replace(pair, one)
    return text


_WITH = re.compile("LATIN (?:SMALL LETTER|LETTER SMALL CAPITAL) ([A-Z])(?: WITH .*)?")


def _drawn(c: str) -> str:
    """A Latin letter with a stroke, hook or tail counts as the letter; a digit of any script as the digit."""
    digit = unicodedata.decimal(c, None)
    if digit is not None:
        return _LIKE.get(str(digit), str(digit))
    letter = _WITH.fullmatch(unicodedata.name(c, ""))
    return c if letter is None else _LIKE.get(letter[1].lower(), letter[1].lower())


def _overlooked(c: str) -> bool:
    """Is this a mark on a letter that a quick eye overlooks? Vowel signs and voiced sounds are not."""
    if unicodedata.category(c)[0] != "M" or c in "\u3099\u309a":
        return False
    return unicodedata.name(c, "").split(" ")[0] in ("COMBINING", "ARABIC", "HEBREW")


def alike(one: str, other: str) -> bool:
    """Whether a reader could confuse the two."""
    return one == other or not _skeletons(one).isdisjoint(_skeletons(other))


def _skeletons(name: str) -> set[str]:
    return {skeleton(name), skeleton(name, signs=False)}


def admitted(parameter: str, name: str, known: Iterable[str]) -> str:
    """A known name, or a new valid one that resembles none of those."""
    names = set(known)
    if name in names:
        return name

    def refuse(must: str, hint: str = "") -> InvalidParameter:
        return InvalidParameter(parameter=parameter, value=visible(name), must=must, hint=hint)

    for other in sorted(names):
        if alike(name, other):
            raise refuse(
                f"not be read as {visible(other)!r}, which the ledger knows",
                "if it is the same one, spell the name as tacit ledger show has it; a second one needs another name",
            )
    if any(shows_nothing(c) for c in name):
        raise refuse("have no character that shows nothing", "type the name again, letter by letter")
    composed = unicodedata.normalize("NFKC", name)
    if composed != name:
        raise refuse("be in composed form (Unicode NFKC)", f"write it as {visible(composed)!r}")
    if name != " ".join(name.split(" ")).strip() or "  " in name:
        raise refuse("have single blanks, and none at its ends")
    found = scripts(name)
    if len(found) > 1 and not any(found <= some for some in TOGETHER):
        told = ", ".join(sorted(s.capitalize() for s in found))
        raise refuse("be written in one script", f"its letters are of several: {told}")
    if strange := sorted(found - EVERYDAY):
        raise refuse("be written in a script of everyday use", f"it has letters of {strange[0].capitalize()}")
    if any(unicodedata.category(c)[0] == "S" and not c.isascii() for c in name):
        raise refuse(
            "have letters, digits and ordinary signs", "a picture or a shape may be read as a letter"
        )
    if not skeleton(name, signs=False):
        raise refuse("have a letter or a digit")
    return name
