"""One form, one digest: on every run, machine and spelling."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from provisioner.errors import BundleTooLarge, InvalidManifest
from provisioner.render.canonical import canonical, canonical_json, content_digest, parse, serialise, stored_digest
from provisioner.render.yaml import load_all
from provisioner.values import Manifest
from tests.support.folders import ROOT

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
FORMS = {
    "keys are sorted": ({"b": 1, "a": 2, "é": 3, "B": 4}, b'{"B":4,"a":2,"b":1,"\xc3\xa9":3}'),
    "keys beyond the plane by code point": ({"\U00010000": 1, "\uffff": 2}, b'{"\xef\xbf\xbf":2,"\xf0\x90\x80\x80":1}'),
    "whole floats are integers": ([1.0, -0.0, 1e3], b"[1,0,1000]"),
    "large integers are floats": ([2**63 - 1, 2**63], b"[9223372036854775807,9.223372036854776e+18]"),
    "floats stay": ([0.1, 1e-7, 1.5e300], b"[0.1,1e-07,1.5e+300]"),
    "booleans are no numbers": ([True, False, None, 1, 0], b"[true,false,null,1,0]"),
    "text is not touched": ({"a": " 1.0\t\u202e\u0301e"}, b'{"a":" 1.0\\t\xe2\x80\xae\xcc\x81e"}'),
    "tuples are lists": ((1, (2,)), b"[1,[2]]"),
    "nothing is kept as it is": ({"a": None, "b": {}, "c": []}, b'{"a":null,"b":{},"c":[]}'),
}
REFUSED = {
    "NaN": ({"a": math.nan}, InvalidManifest),
    "infinity": ([math.inf], InvalidManifest),
    "an integer past all floats": (10**400, InvalidManifest),
    "half a surrogate": ("\ud800", InvalidManifest),
    "half a surrogate in a key": ({"\udfff": 1}, InvalidManifest),
    "a key that is a number": ({1: "a"}, InvalidManifest),
    "keys of two types": ({1: "a", "1": "b"}, InvalidManifest),
    "bytes": (b"a", InvalidManifest),
    "a set": ({"a": {1}}, InvalidManifest),
    "a date": ({"a": date(2026, 1, 1)}, InvalidManifest),
    "a UUID": ([UUID(int=1)], InvalidManifest),
}


@pytest.mark.parametrize(("value", "text"), FORMS.values(), ids=FORMS)
def test_a_value_has_one_text(value: Any, text: bytes) -> None:
    assert canonical_json(value) == text


@pytest.mark.parametrize(("value", "error"), REFUSED.values(), ids=REFUSED)
def test_what_json_cannot_hold_is_refused(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        canonical_json(value)


def test_nesting_ends_in_words_not_in_recursion() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(BundleTooLarge, match="nested deeper"):
        canonical_json(deep)


@given(JSON_VALUES)
@example(-(2**63))
@example(2**63 - 1)
@example(-1_000_000_000_000_000_001)
def test_the_canonical_text_is_a_fixed_point(value: Any) -> None:
    text = canonical_json(value)
    assert canonical_json(json.loads(text)) == text
    assert load_all(b'{"v":' + text + b"}", name="x.json") == [{"v": canonical(value)}]


@given(JSON_VALUES)
@example({"\U00010000": 1, "\uffff": {"b": "1.5", "a": '\x7f\u2028"\\\x00'}})
def test_the_quick_way_writes_what_the_plain_one_would(value: Any) -> None:
    text = json.dumps(canonical(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    assert canonical_json(value) == text.encode()


@given(st.dictionaries(st.text(), JSON_VALUES), st.randoms())
@pytest.mark.thorough
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], chance: random.Random) -> None:
    keys = list(value)
    chance.shuffle(keys)
    assert canonical_json({key: value[key] for key in keys}) == canonical_json(value)


def test_a_canonical_copy_shares_nothing() -> None:
    shared = {"a": [1]}
    copy = canonical([shared, shared])
    copy[0]["a"].append(2)
    assert (copy[1], shared) == ({"a": [1]}, {"a": [1]})


def manifest(name: str = "a", file: str = "a.yaml", **more: Any) -> Manifest:
    return Manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}, file)


def digest(*manifests: Manifest, namespace: str = "ns", account: str = "installer") -> str:
    return content_digest(manifests, install_namespace=namespace, service_account=account)


DIFFERENT = {
    "a value": digest(manifest(data={"a": "1"})),
    "a name": digest(manifest("b")),
    "a file": digest(manifest(file="b.yaml")),
    "the namespace": digest(manifest(), namespace="other"),
    "the account": digest(manifest(), account="other"),
    "a shifted boundary": digest(manifest(), namespace="nsi", account="nstaller"),
    "one more": digest(manifest(), manifest("b")),
    "the order": digest(manifest("b"), manifest()),
    "nothing": digest(),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT)
def test_the_digest_changes_with(other: str) -> None:
    assert other != digest(manifest())
    assert list(DIFFERENT.values()).count(other) == 1


def test_the_digest_does_not_change_with_spelling() -> None:
    one, two = load_all("{a: 1.0, b: yes}\n---\n{b: true, a: 0x1}", name="x.yaml")
    assert digest(manifest(spec=one)) == digest(manifest(spec=two))


def test_stored_bytes_hash_to_the_content_digest_and_read_back() -> None:
    manifests = (manifest("b", "b.yaml", data={"x": "line\u2028\r\n\x85"}), manifest("a", "d/a.yaml"))
    stored = serialise(manifests)
    assert stored_digest(stored, install_namespace="ns", service_account="installer") == digest(*manifests)
    assert parse(stored) == manifests
    assert serialise(parse(stored)) == stored


@pytest.mark.parametrize("break_", [b"\r", b"\x0b", b"\x0c", b"\x85"], ids=["\\r", "\\v", "\\f", "x85"])
def test_no_other_line_break_is_read_as_one(break_: bytes) -> None:
    stored = serialise([manifest("a"), manifest("b")])
    with pytest.raises(InvalidManifest, match="line 1"):
        parse(stored.replace(b"\n", break_, 1))


def test_a_flipped_byte_gives_another_digest() -> None:
    stored = bytearray(serialise([manifest()]))
    stored[-5] ^= 1
    assert stored_digest(bytes(stored), install_namespace="ns", service_account="installer") != digest(manifest())


@pytest.mark.parametrize(
    "stored",
    [b"{}\n", b"[]\n", b"\n", b"x\n", b'{"file":"a","object":{}}', b'{"object":{},"file":"a"}\n', b"\xff\n",
     b'{"file":"a","object":{"a":1,"a":1}}\n', b'{"file":"a","object":{"a":1.0}}\n', b"[" * 100_000,
     b'{"file":"a","object":{"a":1E3}}\n', b'{"file":"a","object":{"a":9223372036854775808}}\n', b'["file","object"]\n',
     b'{"extra":1,"file":"a","object":{}}\n'],
    ids=["no entry", "a list", "empty line", "no JSON", "no line end", "unsorted", "no UTF-8", "twice",
         "a float", "deep", "an exponent", "past 63 bits", "a list of the names", "one more"],
)  # fmt: skip
def test_bytes_in_another_form_are_refused(stored: bytes) -> None:
    with pytest.raises(InvalidManifest, match="stored content, line 1"):
        parse(stored)


@given(st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=5), st.booleans())
@example({"a": 2**63}, True)
@example({"a": "1.5", "b": 1.5}, True)
def test_a_line_is_read_if_it_is_what_would_be_written(value: dict[str, Any], is_sorted: bool) -> None:
    entry = {"file": "a", "object": value}
    line = json.dumps(entry, ensure_ascii=False, separators=(",", ":"), sort_keys=is_sorted).encode() + b"\n"
    if canonical_json(entry) + b"\n" == line:
        assert serialise(parse(line)) == line
    else:
        with pytest.raises(InvalidManifest, match="not in canonical form"):
            parse(line)


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_the_digest_is_the_same_in_every_process(seed: str) -> None:
    program = (
        "from provisioner.render import Rendering, render_content; from provisioner.values import Tree;"
        "files = {f'manifests/{n}.yaml': b'apiVersion: v1\\nkind: ConfigMap\\nmetadata:\\n  name: c' + str(n).encode()"
        ' + b\'\\n  labels: {z: a, b: c, a: d}\\ndata: {y: "1", x: "2", 3: z}\\n\' for n in {9, 10, 1, 300}};'
        "print(render_content(Tree(files), Rendering('plain', 'ns', 'sa', lambda kind: None), pins=()).digest)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    # The stored form is a promise to every content store: a change of it needs a new version of the digest.
    assert answer.stdout.strip() == "sha256:8197af4ddef36e0f6a6934fab171dcfb31707e7493690d99d43c7ff9b76e84a4"
