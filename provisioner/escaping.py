"""What the eye is given: the one place where text of others is made safe to look at (S24).

Control, bidi, zero-width and look-alike characters are shown as escapes, so that what a person reads is what stands
there. Every page, export, terminal and message of ours goes through `visible`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Blank or invisible, but classed as letters, marks or symbols.
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\ufffc"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
# Marks that lie on or around what they follow, so that it reads as struck out or as another letter.
_ENCLOSING, _OVERLAY = "Me", 1
# Letters that look like a Latin one: a word made only of these is taken for Latin by everybody.
_LOOK_LATIN = frozenset(
    "асеорхуіјѕһԁԛԝӏгпьІАВСЕНЈКМОРЅТХҮԌԚԜѴοανιρτυκγωσϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսհոցՏԼ"  # Cyrillic, Greek, Armenian
)
# In escaped text.
_QUOTED = re.compile(r"`([^`<>]{1,500})`")
# Where the API server names no field of the object, Go prints that it has none.
_NO_FIELD = re.compile(r"(?:<|&lt;)nil(?:>|&gt;): ?")
# Marks that look like the ones which part names.
_LOOK_ASCII_MARKS = frozenset("∕⁄⧸╱‐‑‒−։׃∶ꓽ․ꓸ‚’‘＂")
# A word for the eye: it continues over what joins the parts of names.
_WORD = re.compile(r"[^\s,;()\[\]{}<>\"'`=|]+")
# These are written together in one word by many people.
_TOGETHER = frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"})
_MAX_MARKS = 2


def with_names(escaped: str) -> str:
    """HTML of a sentence that is escaped already: what it quotes in backticks is a name."""
    return _QUOTED.sub(r"<code>\1</code>", without_nil(escaped))


def without_nil(text: str) -> str:
    """Words of the API server, escaped or not, without the `<nil>: ` that stands where it names no field."""
    return _NO_FIELD.sub("", text)


def visible(text: str, *, keep_newlines: bool = False) -> str:
    """`text` with everything that hides or pretends shown as an escape: `\\u202e`, `\\n`.

    For text of one line; with `keep_newlines` line feeds stay, for text that is shown in lines. Escapes that stand in
    the text as such are not told apart: what matters is that nothing invisible stays invisible.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = _WORD.sub(lambda match: _word(match.group()), text)
    if keep_newlines:
        return "\n".join("".join(map(_escape_hiding, line)) for line in shown.split("\n"))
    return "".join(map(_escape_hiding, shown))


def hidden_characters(text: str) -> list[str]:
    """The names of characters in `text` that hide: control, format (bidi, zero-width), invisible; sorted, each once.

    Line feeds and tabs are text here.
    """
    if text.isascii() and (text.isprintable() or not _ASCII_CONTROL.search(text)):
        return []
    return sorted({_character_name(one) for one in text if _is_hiding(one) and one not in "\n\t\r \u00a0"})


def pretending_words(text: str) -> list[str]:
    """The words of `text` that mix scripts or are made of look-alikes, made visible; sorted, each once."""
    if text.isascii():
        return []
    words = (match.group() for match in _WORD.finditer(text))
    return sorted({visible(word) for word in words if not word.isascii() and _word(word) != word})


_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def _word(word: str) -> str:
    """A word with its pretending letters escaped: those of other scripts where Latin is mixed in, and look-alikes."""
    if word.isascii():
        return word
    others = {one for one in word if not one.isascii() and _pretends(one)}
    scripts = {_script(one) for one in word if one.isalpha()}
    if "LATIN" in scripts and not scripts <= _TOGETHER:
        others |= {one for one in word if one.isalpha() and _script(one) not in _TOGETHER}
    letters = [one for one in word if one.isalpha()]
    if letters and all(one in _LOOK_LATIN for one in letters):
        others |= set(letters)
    shown = "".join(_escape(one) if one in others else one for one in word)
    return _without_piled_marks(shown)


def _pretends(one: str) -> bool:
    """Another form of an ASCII character: fullwidth, mathematical and the like."""
    if one in _LOOK_ASCII_MARKS:
        return one not in "’‘"
    plain = unicodedata.normalize("NFKC", one)
    return len(plain) == 1 and plain.isascii() and one not in "ªº¹²³\u00a0"


def _without_piled_marks(word: str) -> str:
    """Marks piled up on one letter cover their neighbours: from the third on they are escaped.

    So is one that has no letter of its word to stand on: it would land on what is before the word.
    """
    shown, marks = [], _MAX_MARKS
    for one in word:
        marks = marks + 1 if unicodedata.category(one).startswith("M") else 0
        shown.append(_escape(one) if marks > _MAX_MARKS else one)
    return "".join(shown)


@lru_cache(maxsize=4096)
def _escape_hiding(one: str) -> str:
    return _escape(one) if _is_hiding(one) else one


def _is_hiding(one: str) -> bool:
    if one == " ":
        return False
    category = unicodedata.category(one)
    is_on_others = category == _ENCLOSING or unicodedata.combining(one) == _OVERLAY
    return one in _INVISIBLE or category in _HIDDEN_CATEGORIES or is_on_others


@lru_cache(maxsize=4096)
def _script(one: str) -> str:
    """The first word of a letter's name, which for letters is the script; compatibility forms are their own."""
    return unicodedata.name(one, "UNNAMED").split(" ", 1)[0]


def _escape(one: str) -> str:
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(one)
    if short:
        return short
    code = ord(one)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _character_name(one: str) -> str:
    return f"U+{ord(one):04X} {unicodedata.name(one, 'control character').lower()}"
