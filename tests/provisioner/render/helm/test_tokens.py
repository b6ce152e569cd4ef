"""A text is cut alike in each rendering, so that what was kept is put where it was."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from time import process_time

import pytest

from provisioner.render.helm.tokens import Part, Token, Unaligned, compare_texts, join, tokens_of

PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----"


def coded(text: str) -> str:
    return b64encode(text.encode()).decode()


def made(parts: tuple[Part, ...]) -> list[str]:
    return [token.first for token in tokens_of(parts)]


@pytest.mark.parametrize(
    ("first", "again", "expected"),
    [
        ("k8Fd02mZ", "Q01xmv7b", ["k8Fd02mZ"]),
        ("shop-x1b7", "shop-x9ab", ["x1b7"]),
        ("x1b7-shop", "9ab7-shop", ["x1b7"]),
        ("a-K8-b-L9-c", "a-M1-b-N2-c", ["K8-b-L9"]),
        ("3f2b8c1e-1111-4aaa-8bbb-0123456789ab", "0f2b8c1e-2222-4ccc-8bbb-aaaaaaaaaaaa", None),
        ("postgres://u:Xk2@host:5432/db", "postgres://u:Zq9@host:5432/db", ["Xk2"]),
        ("key = 'ab/cd+Q=='", "key = 'xyzefg=='", ["ab/cd+Q=="]),
        ("hooks/ab/cd", "hooks/xyz", ["ab/cd"]),
        ("a Xk2\nb: 1\nc Xk2", "a Zq9\nb: 1\nc Zq9", ["Xk2", "Xk2"]),
        ("2026-11-30T10:15:01Z", "2026-11-30T10:15:02Z", None),
        ("at 2026-11-30 10:15:01.5 +0000 UTC m=+0.1", "at 2026-11-30 10:15:02.7 +0000 UTC m=+1.2", None),
        ("job-20261130-101501", "job-20261130-101502", ["20261130-101501"]),
        (PEM.format("abc"), PEM.format("xyz"), None),
        (
            '{{"a": "{}"}}'.format(PEM.format("a").replace("\n", "\\n")),
            '{{"a": "{}"}}'.format(PEM.format("b").replace("\n", "\\n")),
            [PEM.format("a").replace("\n", "\\n")],
        ),
        (f"crt: {PEM.format('abc')}\nkey: 1", f"crt: {PEM.format('xyz')}\nkey: 1", [PEM.format("abc")]),
        (coded(PEM.format("abc") + "\n"), coded(PEM.format("xyz") + "\n"), [PEM.format("abc")]),
        (f'{{"auth":"{coded("user:Xk2abcd")}"}}', f'{{"auth":"{coded("user:Zq9efgh")}"}}', ["Xk2abcd"]),
    ],
)
def test_what_differs_is_cut_at_marks(first: str, again: str, expected: list[str] | None) -> None:
    parts = compare_texts(first, again)
    assert made(parts) == (expected or [first.removeprefix("at ")])
    assert join(parts, made(parts)) == first


@pytest.mark.parametrize(
    ("first", "again", "expected"),
    [
        ("a/b:c'", "@@;", ["a/b:c'"]),
        ("a:b", "c:d", ["a:b"]),
        ("user:Xk2", "user:Zq9", ["Xk2"]),
        ("Xk2@host", "Zq9@host", ["Xk2"]),
    ],
    ids=["other marks", "the same marks", "what it begins with stays", "what it ends with stays"],
)
def test_a_value_of_a_secret_is_one_if_nothing_in_it_stays(first: str, again: str, expected: list[str]) -> None:
    assert made(compare_texts(first, again, is_whole=True)) == expected


def test_what_is_known_is_found_inside_of_words_and_between_marks() -> None:
    known = [Token("x/y:z abcdef", "p.q;r ghijkl"), Token("abcdefgh", "ijklmnop")]
    parts = compare_texts("//x/y:z abcdef@h preabcdefghsuf", "//p.q;r ghijkl@h preijklmnopsuf", known)
    assert made(parts) == ["x/y:z abcdef", "abcdefgh"]
    assert join(parts, ["1", "2"]) == "//1@h pre2suf"


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("one", "one\ntwo"),
        ("url: user:ra:nd@host", "url: user:xyz@host"),
        (PEM.format("abc"), PEM.replace("CERTIFICATE", "KEY").format("abc")),
        (PEM.format("abc"), "none"),
    ],
    ids=["another number of lines", "other marks in a longer text", "another kind of block", "a block and none"],
)
def test_what_cannot_be_cut_alike_each_time_is_told(first: str, again: str) -> None:
    with pytest.raises(Unaligned):
        compare_texts(first, again)


def test_a_text_that_was_never_written_as_base64_is_no_base64() -> None:
    # Its last digit has bits that say nothing, so that it would come back as another text.
    assert made(compare_texts("YWJjZGVmZ2hpamtsbR==", "bm9wcXJzdHV2d3h5eg==")) == ["YWJjZGVmZ2hpamtsbR=="]


def test_S26_long_texts_are_cut_in_a_moment() -> None:
    started = process_time()
    for text in ("-----BEGIN A-----", "1-", "11:11:11 ", "QUJDREVGR0hJSktM ", "-----BEGIN A----------END B-----"):
        long = text * (100_000 // len(text))
        with suppress(Unaligned):
            assert made(compare_texts(f"{long}x1", f"{long}y2"))
    assert process_time() - started < 5


def test_tokens_are_not_printed() -> None:
    assert "Xk2" not in repr(compare_texts("a:Xk2", "a:Zq9"))


@pytest.mark.parametrize("again", ["k:v1Zyxwvut", "k:v1Ayxwvut"], ids=["another letter", "the same letter by chance"])
def test_what_begins_alike_by_chance_is_cut_as_ever(again: str) -> None:
    first = "k:v1Abcdefg"
    assert compare_texts(first, again, is_whole=True) == (Token(first, again),)
