"""The reader beyond what kubectl says: our own refusals, where they point, and that hostile files end soon."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.errors import BundleTooLarge, InvalidManifest
from provisioner.render.limits import YamlLimits, YamlMeter
from provisioner.render.yaml import load_all, load_documents
from tests.provisioner.render.repeated_keys import TAKEN_TWICE
from tests.support.patience import scaled

PATIENCE_SECONDS = 10.0  # each takes well under one; the machine may be busy
MEBIBYTE = 1024 * 1024

REFUSED = {
    "duplicate key": ("a: 1\nb: 2\na: 3\n", "x.yaml:3: the key 'a' is there twice, on line 1 too"),
    "nested duplicate key": ("a:\n  - b: {c: 1,\n      c: 2}\n", "x.yaml:3: the key 'c' is there twice"),
    "duplicate in the second document": ("a: 1\n---\nb: 1\nb: 2\n", "x.yaml:4: the key 'b' is there twice"),
    "duplicate after conversion": ("1: a\n'1': b\n", "x.yaml:2: the key '1' is there twice"),
    "duplicate of two spellings": ("yes: a\non: b\n", "x.yaml:2: the key 'true' is there twice"),
    "duplicate of two integers": ("0x10: a\n16: b\n", "x.yaml:2: the key '16' is there twice"),
    "duplicate in JSON": ('{"a": {\n"b": 1,\n"b": 2}}', "x.yaml:3: the key 'b' is there twice"),
    "duplicate empty key": ('{"": 1, "": 2}', "x.yaml:1: the key '' is there twice, at the columns 2 and 9"),
    "duplicate on one line": ("b: 1\na: {c: 1, d: {}, c: 2}\n", "x.yaml:2: the key 'c' is there twice, at the columns"),
    "duplicate in JSON by escapes": ('{"a": 1, "\\u0061": 2}', "x.yaml:1: the key 'a' is there twice"),
    "infinity as the document": ("a: 1\n---\n.inf\n", "x.yaml:3: infinity"),
    "infinity by an alias": ("a:\n  - &x 1\n  - &y .inf\n", "x.yaml:3: infinity"),
    "content after the document end": ("a: 1\n...\nb: 2\n", "x.yaml:3: did not find expected <document start>"),
    "a second document by carriage returns": ("a: 1\r---\rb: 2\r", "x.yaml:2: a second document"),
    "a second document by line separators": ("a: 1\u2028---\u2028b: 2", "x.yaml:2: a second document"),
    "invalid UTF-8": (b"a: 1\nb: \xff\n", "x.yaml:2: not UTF-8"),
    "cut UTF-8": (b"a: \xf0\x9f\x98", "x.yaml:1: not UTF-8"),
    "overlong UTF-8": (b"a: \xc0\xaf", "x.yaml:1: not UTF-8"),
    "UTF-16": ("a: 1\n".encode("utf-16"), "x.yaml:1: not UTF-8"),
    "UTF-16 without a mark": ("a: 1\n".encode("utf-16-le"), "x.yaml:1: the control character U+0000"),
    "half a surrogate in JSON": ('{"a": "\\ud800"}', "x.yaml:1: a text holds half a surrogate pair"),
    "half a surrogate as a JSON key": ('{"\\udc00": 1}', "x.yaml:1: a text holds half a surrogate pair"),
    "binary that is no text": ("a: 1\nb: !!binary /w==\n", "x.yaml:2: a value tagged !!binary"),
    "endless number": (f"a: {'9' * 500}\n", "x.yaml:1: a number of more than 400 characters"),
    "endless JSON number": ('{"a": ' + "9" * 400 + "}", "x.yaml:1: infinity"),
    "tab": ("a:\n\t- 1\n", "x.yaml:2: "),
    "JSON cut off": ('{"a": 1', "x.yaml:2: "),
    "JSON with more behind": ('{"a": 1} x', "x.yaml:1: "),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_with_file_and_line(text: str | bytes, words: str) -> None:
    with pytest.raises(InvalidManifest) as caught:
        load_all(text, name="x.yaml")
    assert str(caught.value).startswith(words)


REFUSED_TWICE = {
    "another number": ("a: 1\na: 2\n", "x.yaml:2: the key 'a' is there twice, on line 1 with another value"),
    "a bool and a number": ("a: 1\na: true\n", "with another value"),
    "a number and its text": ("a: 1\na: '1'\n", "with another value"),
    "zero is not empty": ("a: 1\na: 0\n", "with another value"),
    "false is not empty": ("a: 1\na: false\n", "with another value"),
    "mappings that could be joined": ("a: {b: 1}\na: {c: 1}\n", "with another value"),
    "a third value": ("a: 1\na:\na: 2\n", "x.yaml:3: the key 'a' is there twice, on line 2 with another value"),
    "nothing twice around a value": ("a:\na: 1\na:\n", "x.yaml:3: the key 'a' is there twice, on line 2"),
    # kubectl takes now the one, now the other.
    "a number and a text as keys": ("1: x\n'1':\n", "x.yaml:2: the key '1' is there twice, on line 1 with another"),
    "two fractions of one text": ("16777217.0: x\n16777216.0:\n", "on line 1 with another value"),
    "merged in between": ("a: 1\n<<: {a: 2}\na: 2\n", "x.yaml:3: the key 'a' is there twice, on line 1 too"),
}  # fmt: skip


def read_twice(text: str, **limits: int) -> tuple[list[Any], list[str]]:
    """The documents, and which keys are there twice: effect, lines and path."""
    meter = YamlMeter(YamlLimits(**limits), takes_repeated=True)
    found = [document.value for document in load_documents(text, name="x.yaml", meter=meter)]
    return found, [f"{one.effect} {one.first} {one.line} {one.path}" for one in sorted(meter.repeated)]


@pytest.mark.parametrize(("text", "value", "repeated"), TAKEN_TWICE.values(), ids=TAKEN_TWICE)
def test_a_key_that_loses_nothing_is_taken_twice_and_noted(text: str, value: object, repeated: list[str]) -> None:
    assert read_twice(text) == ([value], repeated)


@pytest.mark.parametrize(("text", "words"), REFUSED_TWICE.values(), ids=REFUSED_TWICE)
def test_a_key_that_may_mean_two_things_is_refused_with_both_lines(text: str, words: str) -> None:
    with pytest.raises(InvalidManifest, match=words):
        read_twice(text)


def test_an_error_does_not_show_the_value_it_is_about() -> None:
    with pytest.raises(InvalidManifest) as caught:
        load_all("password: !!int hunter2", name="x.yaml")
    assert "hunter2" not in str(caught.value)


def test_keys_that_mean_something_elsewhere_are_just_keys() -> None:
    text = "__proto__: {a: 1}\nconstructor: x\n__class__: y\n$ref: z\n"
    expected = {"__proto__": {"a": 1}, "constructor": "x", "__class__": True, "$ref": "z"}
    assert load_all(text, name="x.yaml") == [expected]


def test_bidirectional_and_invisible_characters_are_kept() -> None:
    text = "a\u202eb: \u200bc\n"
    assert load_all(text, name="x.yaml") == [{"a\u202eb": "\u200bc"}]


def test_empty_files_have_no_documents() -> None:
    assert [load_all(text, name="x.yaml") for text in ("", "\n", "# c\n", "---\n", "---\n...\n", "\ufeff", b"~")] == [
        [], [], [], [], [], [], [],
    ]  # fmt: skip


def test_a_tag_never_makes_code_run() -> None:
    text = "a: !!python/object/apply:os.system [exit 1]\nb: !!python/name:os.system\n"
    assert load_all(text, name="x.yaml") == [{"a": ["exit 1"], "b": ""}]


def laughs(levels: int, width: int = 10) -> str:
    lines = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]" for level in range(1, levels)]
    return "\n".join(["a0: &a0 [lol]", *lines])


def merges(levels: int, width: int = 10) -> str:
    first = "a0: &a0 {" + ", ".join(f"k{n}: 1" for n in range(width)) + "}"
    lines = [
        f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * width)}], x: *a{level - 1}}}"
        for level in range(1, levels)
    ]
    return "\n".join([first, *lines])


HOSTILE = {
    "a billion laughs": (laughs(40), "max_nodes"),
    "laughs of a long text": (f"a: &a {'x' * MEBIBYTE}\nb: [{', '.join(['*a'] * 1000)}]", "max_characters"),
    "laughs as keys": (f"a: &a {'x' * MEBIBYTE}\nb: [{', '.join(['{*a : 1}'] * 1000)}]", "max_characters"),
    "merge bomb": (merges(40), "max_nodes"),
    "merge of many": (
        "a: &a {" + ", ".join(f"k{n}: 1" for n in range(5000)) + "}\nb: {" + "<<: *a, " * 1000 + "}",
        "max_nodes",
    ),
    "a million documents": ("---\na: 1\n" * 1_000_000, "max_documents"),
    "a million empty documents": ("---\n" * 1_000_000, "max_documents"),
    "a hundred thousand JSON objects": ("{}\n" * 100_000, "max_documents"),
    "many small JSON objects": ("{}\n" * 3_000_000, "document start"),
    "many small values in JSON": ('{"a": [' + "{}," * 3_000_000 + "1]}", "max_nodes"),
    "deep flow lists": ("[" * 1_000_000, "max_depth"),
    "deep flow mappings": ("{a: " * 1_000_000, "max_depth"),
    "deep JSON": ('{"a":' * 1_000_000, "max_depth"),
    "deep whole JSON": ('{"a":' * 500 + "1" + "}" * 500, "max_depth"),
    "deep JSON lists": ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "max_depth"),
    "deep block lists": ("- " * 1_000_000 + "a", "max_depth"),
    "deep block mappings": ("\n".join(" " * depth + "a:" for depth in range(2000)), "max_depth"),
    "deep explicit keys": ("? " * 100_000 + "a", "as a key"),
    "a scalar of 50 MB": ("a: " + "x" * 50_000_000, "max_file_bytes"),
    "a scalar of 50 MB as bytes": (b"a: " + b"x" * 50_000_000, "max_file_bytes"),
    "many small values": ("- 1\n" * 3_000_000, "max_nodes"),
}


@pytest.fixture
def soon() -> Iterator[None]:
    begun = time.process_time()
    yield
    assert time.process_time() - begun < scaled(PATIENCE_SECONDS)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("text", "words"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_stopped_by_a_limit_that_is_named(text: str | bytes, words: str) -> None:
    limits = YamlLimits(max_nodes=200_000)
    with pytest.raises((BundleTooLarge, InvalidManifest), match=words):
        load_all(text, name="x.yaml", limits=limits)


HOSTILE_TWICE = {
    "a million times": ("a: 1\n" * 1_000_000, "", "max_repeated_keys"),
    "a million keys": ("".join(f"k{n}: 1\nk{n}: 1\n" for n in range(90_000)), "", "max_repeated_keys"),
    "laughs": (f"{laughs(5)}\n", "".join(f"b: [{', '.join(['*a4'] * 9)}]\n" for _ in range(1000)), "max_nodes"),
    "by turns": ("a: 1\na:\n" * 50_000, "", "is there twice"),
    "deep": ("a: " + "{a: 1, a: " * 200 + "1" + "}" * 200, "", "max_depth"),
}


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("first", "then", "words"), HOSTILE_TWICE.values(), ids=HOSTILE_TWICE)
def test_hostile_keys_that_are_there_twice_are_stopped(first: str, then: str, words: str) -> None:
    with pytest.raises((BundleTooLarge, InvalidManifest), match=words):
        read_twice(first + then, max_nodes=200_000)


@pytest.mark.usefixtures("soon")
def test_two_values_of_10_mb_are_compared() -> None:
    found, repeated = read_twice(
        f"a: {'x' * 10_000_000}\na: {'x' * 10_000_000}\n? {'k' * 5_000_000}\n: [{{y: 1, y: 1}}]"
    )
    assert len(found[0]["a"]) == 10_000_000
    assert max(map(len, repeated)) < 150


@pytest.mark.usefixtures("soon")
def test_a_scalar_of_30_mb_is_read() -> None:
    (found,) = load_all(b"a: " + b"x" * 30_000_000, name="x.yaml")
    assert len(found["a"]) == 30_000_000


def test_a_bomb_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BundleTooLarge):
            load_all(laughs(40), name="x.yaml")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * MEBIBYTE


def test_a_long_chain_of_aliases_is_no_recursion() -> None:
    text = "a0: &a0 1\n" + "\n".join(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 90))
    (found,) = load_all(text, name="x.yaml")
    assert found["a89"][0][0] == found["a87"]


def test_aliases_do_not_hide_depth() -> None:
    text = "a0: &a0 1\n" + "\n".join(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 1000))
    with pytest.raises(BundleTooLarge, match="max_depth"):
        load_all(text, name="x.yaml")


@pytest.mark.parametrize("inner", ["'a\n  ---\n  b'", "|\n  ---\n  --- x\n", "a ---"], ids=["quoted", "block", "plain"])
def test_dashes_inside_a_value_do_not_cut(inner: str) -> None:
    assert len(load_all(f"a: {inner}", name="x.yaml")) == 1
