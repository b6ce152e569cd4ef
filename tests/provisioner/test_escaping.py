from __future__ import annotations

import pytest

from provisioner.escaping import hidden_characters, pretending_words, visible

CYRILLIC_A, CYRILLIC_E, CYRILLIC_O = "\u0430", "\u0435", "\u043e"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain text, 12 %", "plain text, 12 %", id="ascii stays"),
        pytest.param("Grüße aus Köln", "Grüße aus Köln", id="accents stay"),
        pytest.param("Привет, мир", "Привет, мир", id="Russian stays"),
        pytest.param("日本語とカタカナ", "日本語とカタカナ", id="Japanese stays"),
        pytest.param("“quoted” – and so on…", "“quoted” – and so on…", id="typography stays"),
        pytest.param("a\x1b[31mred", "a\\x1b[31mred", id="terminal escape"),
        pytest.param("a\x00b\x7f", "a\\x00b\\x7f", id="control characters"),
        pytest.param("one\ntwo\ttab\rreturn", "one\\ntwo\\ttab\\rreturn", id="line breaks"),
        pytest.param("\x9b31m", "\\x9b31m", id="C1 control"),
        pytest.param("user\u202enimda", "user\\u202enimda", id="right-to-left override"),
        pytest.param("a\u2066b\u2069", "a\\u2066b\\u2069", id="isolates"),
        pytest.param("ad\u200bmin", "ad\\u200bmin", id="zero-width space"),
        pytest.param("ad\u200dmin\ufeff", "ad\\u200dmin\\ufeff", id="joiner and byte order mark"),
        pytest.param("ad\u00admin", "ad\\xadmin", id="soft hyphen"),
        pytest.param("a\u3164b\u2800", "a\\u3164b\\u2800", id="blank letters"),
        pytest.param("a\u00a0b", "a\\xa0b", id="no-break space"),
        pytest.param("a\u2028b", "a\\u2028b", id="line separator"),
        pytest.param("a\ud800b", "a\\ud800b", id="half a surrogate pair"),
        pytest.param("\U000e0041dmin", "\\U000e0041dmin", id="tag character"),
        pytest.param("\ue000", "\\ue000", id="private use"),
        pytest.param(f"p{CYRILLIC_A}ypal", "p\\u0430ypal", id="Cyrillic in a Latin word"),
        pytest.param(f"kube-syst{CYRILLIC_E}m", "kube-syst\\u0435m", id="Cyrillic behind a hyphen"),
        pytest.param(f"{CYRILLIC_A}{CYRILLIC_E}{CYRILLIC_O}", "\\u0430\\u0435\\u043e", id="all look-alikes"),
        pytest.param("\uff41dmin", "\\uff41dmin", id="fullwidth"),
        pytest.param("\U0001d41admin", "\\U0001d41admin", id="mathematical"),
        pytest.param("example.com\u2215a", "example.com\\u2215a", id="a stroke like a slash"),
        pytest.param("example\u2024com", "example\\u2024com", id="a dot like a dot"),
        pytest.param("a" + "\u0300" * 5, "a\u0300\u0300" + "\\u0300" * 3, id="piled marks"),
        pytest.param(
            "\u0939\u093f\u0902\u0903" + "\u093f" * 2,
            "\u0939\u093f\u0902" + "\\u0903\\u093f\\u093f",
            id="piled spacing marks",
        ),
        pytest.param("no\u0336 r\u0336isk", "no\\u0336 r\\u0336isk", id="struck out by a stroke"),
        pytest.param("1\u0338 = 2", "1\\u0338 = 2", id="struck out by a solidus"),
        pytest.param("safe\u20d2\u20e5", "safe\\u20d2\\u20e5", id="overlays of symbols"),
        pytest.param("a\u20ddb\u0489", "a\\u20ddb\\u0489", id="enclosed"),
        pytest.param("no \u0301risk", "no \\u0301risk", id="a mark without a letter"),
        pytest.param('"\u0301"', '"\\u0301"', id="a mark on a quotation mark"),
        pytest.param(
            "e\u0301te\u0301 Tie\u0302\u0301ng", "e\u0301te\u0301 Tie\u0302\u0301ng", id="accents as marks stay"
        ),
        pytest.param("हिन्दी ที่นี่ שָׁלוֹם", "हिन्दी ที่นี่ שָׁלוֹם", id="vowel signs stay"),
    ],
)
def test_S24_what_hides_or_pretends_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_stay_lines_where_they_are_shown_as_such() -> None:
    assert visible("one\ntwo\u202e", keep_newlines=True) == "one\ntwo\\u202e"


def test_what_is_visible_stays_as_it_is_when_shown_again() -> None:
    once = visible("a\u202eb \u0430bc \x1b")
    assert visible(once) == once


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("line\nand\ttab\r\n", [], id="line breaks are text"),
        pytest.param("a\u202eb\u202ec", ["U+202E right-to-left override"], id="each once"),
        pytest.param("\x07", ["U+0007 control character"], id="control"),
        pytest.param("Grüße", [], id="accents"),
    ],
)
def test_hidden_characters_are_named(text: str, names: list[str]) -> None:
    assert hidden_characters(text) == names


def test_pretending_words_are_found_among_honest_ones() -> None:
    assert pretending_words(f"the p{CYRILLIC_A}ypal of Köln, Привет") == ["p\\u0430ypal"]
