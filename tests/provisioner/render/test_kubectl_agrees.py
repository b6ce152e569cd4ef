"""The reader of YAML against the real kubectl: `label --local` reads any kind, needs no server, and prints JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from provisioner.errors import InvalidManifest
from provisioner.render.canonical import canonical
from provisioner.render.yaml import load_all
from tests.provisioner.render.kubectl import ask, read_by_kubectl
from tests.provisioner.render.repeated_keys import TAKEN_TWICE

HEAD = "apiVersion: example.com/v1\nkind: Case\nmetadata: {name: case}\n"


def cells(row: str) -> list[str]:
    return row.split("|")


# Each is a value as it stands in a file, plain unless it brings its own quotes or tag.
SCALARS = cells(
    "y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF|true|True|TRUE|false|False|FALSE|yEs|tRUE|t|f|o|"
    "~|null|Null|NULL|nULL|nil|none|"
    "0|-0|+0|00|1|+1|-1|017|-017|+017|0o17|0O17|-0o17|0o18|08|09|019|0x1F|0X1f|-0x1F|+0x1F|0xG|0x|0b|0o|0b101|0B101|"
    "-0b101|0b-11|0b+11|-0b-11|0b12|1_000|1__0|0x_1F|0_7|_1|1_|-_1|12_3.4_5|"
    "9223372036854775807|9223372036854775808|-9223372036854775808|-9223372036854775809|18446744073709551615|"
    "+18446744073709551615|18446744073709551616|0xFFFFFFFFFFFFFFFF|0x1FFFFFFFFFFFFFFFF|0777777777777777777777|"
    "01777777777777777777777|07777777777777777777777|99999999999999999999999999|"
    "1.0|1.|-1.50|.5|+.5|-.5|.5e3|.e3|.|..|1e3|1E3|1e+3|1e-3|+1e3|1e|e1|1e3.5|1.5e300|1e400|-1e400|.5e999|1e-400|-0.0|0.1|"
    "1e15|1e16|1e17|1e18|1e19|1e20|1e21|123456789012345678.0|1234567890123456789.0|0.00001|0.0000001|3.141592653589793|"
    "0x1p-2|1_0e3|12e03|1.2.3|1-2|1+2|--1|+-1|"
    "12:30:45|1:30|190:20:30.15|2026-01-02|2026-1-2|2026-01-02T03:04:05Z|2026-01-02 03:04:05|2026-13-45|20260102|"
    "=|<|<<<|-.|+|--|.Inf.|.nanx|infinity|NaN|inf|"
    "v1|1a|0.1.2|1.2.3-beta|5Gi|100m|1e3m|a b|a#b|a:b|http://x:1/y|"
    '"y"|"1"|"~"|""|\'n\'|\'0x1F\'|"\\u00e9\\x41\\e\\0"|"\\U0001F600"|'
    "!!str y|!!str 1|!!str|!!str ~|!!int 3|!!int \"3\"|!!int 0x1F|!!float 1|!!float \"2\"|!!float 1.5|"
    "!!bool yes|!!bool \"n\"|!!null ~|!!null|!!null \"null\"|!!binary aGk=|!!timestamp 2026-01-02|"
    "!!timestamp \"2026-01-02T03:04:05Z\"|! 12|! y|"
    "!foo 12|!foo y|!foo \"x\"|!!foo 12|!!python/name:os.system x|!<tag:yaml.org,2002:int> 7|!!merge x|&a 1|&a y|"
    "[]|{}|[1, y, ~]|{a: {b: [c]}}|!!set {a, b}|!!omap [{a: 1}]|!!map {a: 1}|!!seq [1]|!foo {a: 1}|!foo [1]|"
    "[a, b, ]|{a, b: 1}|{a: , b: }|[[[1]]]|{? a : 1}|{\"a\":1}"
)  # fmt: skip
KEYS = cells(
    "y|no|on|off|true|1|017|0x10|-1|+1|1_000|1.5|1.0|1.50|3.14159265358979|0.1|100000.0|1000000.0|1234567.5|1e3|1e20|1e21|"
    "1e40|-1e40|1e-3|1e-5|0.00012345|.inf|-.inf|.nan|-0.0|0.0|16777217.0|33554431.5|2026-01-02|12:30|=|"
    "\"1\"|\"y\"|!!str 1|"
    "!!int \"7\"|!!binary aGk=|__proto__|\"<<\"|'<<'|a b|\"\"|é|9223372036854775807|!foo 3|! 3"
)  # fmt: skip
STRUCTURES = {
    "merge before": "spec: {<<: &x {a: 1, b: 2}, a: 3}",
    "merge after overrides": "spec: {a: 3, <<: &x {a: 1, b: 2}}",
    "merge between": "spec:\n  a: 1\n  <<: {a: 2, b: 2}\n  b: 3\n",
    "merge of an alias": "x: &x {a: 1}\nspec: {<<: *x, b: 2}",
    "merge of several, the first wins": "x: [&x {a: 1}, &y {a: 2, b: 3}]\nspec: {<<: [*x, *y]}",
    "merge of several in place": "spec: {<<: [{a: 1}, {a: 2, b: 2}], c: 3}",
    "two merges": "spec: {<<: {a: 1}, <<: {a: 2, b: 3}}",
    "merge in a merge": "x: &x {a: 1}\ny: &y {<<: *x, b: 2}\nspec: {<<: *y}",
    "merge by tag": "spec: {!!merge '<<': {a: 1}}",
    "merge of nothing": "spec: {<<: {}, a: 1}",
    "merge replaces whole members": "spec: {a: {b: 1}, <<: {a: {c: 2}}}",
    "a merge key as a value": "spec: {a: <<}",
    "an anchored merge key": "spec: {&m <<: {a: 1}}",
    "an alias of a merge key is a key": "x: &m <<\nspec: {*m : 1}",
    "aliases": "x: &x [1, {a: y}]\nspec: {a: *x, b: *x}",
    "an alias as a key": "x: &x on\nspec: {*x : 1}",
    "an anchor used again": "x: &x 1\ny: &x 2\nspec: {a: *x}",
    "an alias of a float": "x: &x 1.0\nspec: {a: *x, *x : 2}",
    "an alias of null": "x: &x ~\nspec: {a: *x}",
    "literal block": "spec:\n  a: |\n    one\n      two\n\n  b: |-\n    x\n  c: |+\n    y\n\n",
    "folded block": "spec:\n  a: >\n    one\n    two\n\n    three\n  b: >-\n    x\n    y\n",
    "indented block": "spec:\n  a: |2\n      two\n",
    "a block of digits is text": "spec:\n  a: |-\n    12\n",
    "several lines plain": "spec: one\n  two\n\n  three\n",
    "several lines quoted": 'spec: "one\n  two\\\n  three\n\n  four"\n',
    "single quotes": "spec: 'it''s'\n",
    "comments": "# a\nspec: # b\n  a: 1 # c\n# d\n",
    "list at the same indent": "spec:\n- a\n- b: 1\n  c: 2\n- - d\n",
    "explicit keys": "spec:\n  ? a\n  : 1\n  ? b\n",
    "empty members": "spec:\n  a:\n  b:\n  -\n  - 1\n",
    "carriage returns": "spec:\r\n  a: 1\r\n  b: |\r\n    x\r\n",
    "unicode line ends": 'spec: "a\u2028b\u0085c"\n',
    "unicode": "spec: {ключ: значение, emoji: 😀, bidi: a\u202eb}\n",
    "byte order mark inside": 'spec: "a\\ufeffb"\n',
    "a tab after a value": "spec: a\t# c\n",
    "a tab between": "spec:\ta\n",
    "document end": "spec: 1\n...\n",
    "template braces": "spec: '{{ .Values.x }}'\n",
    "long key": f"spec: {{? {'k' * 2000} : 1}}\n",
    "enum with an equals sign": "spec:\n  enum:\n  - =~\n  - =\n  - '!='\n",
}
FILES = {
    "byte order mark": "\ufeff" + HEAD,
    "byte order mark in the second document": HEAD + "---\n\ufeff" + HEAD,
    "separators": "---\n---\n# c\n---   # words\n" + HEAD + "--- \n---\n" + HEAD + "---",
    "null documents": "null\n---\n~\n---\n" + HEAD,
    "json": '{"apiVersion":"example.com/v1","kind":"Case","metadata":{"name":"a"},'
    '"a":[1.0,1e3,1e20,12345678901234567890,-0]}',
    "json text": '{"apiVersion":"example.com/v1","kind":"Case","metadata":{"name":"a"},"a":"\\ud83d\\ude00\\/\\u0000"}',
    "json in a row": '{"apiVersion":"example.com/v1","kind":"Case","metadata":{"name":"a"}}\n' * 3,
    "json then yaml": '{"apiVersion":"example.com/v1","kind":"Case","metadata":{"name":"a"}}\n---\n' + HEAD,
    "yaml then json": HEAD + '---\n{"apiVersion":"example.com/v1","kind":"Case","metadata":{"name":"a"},"a":1.0}',
    "flow yaml": " {apiVersion: example.com/v1, kind: Case, metadata: {name: a}, a: y}",
    "json with a yaml word": '{"apiVersion":"example.com/v1","kind":"Case","metadata":{"name":"a"},"a":NaN}',
}  # fmt: skip
REFUSED = {
    "infinity": HEAD + "spec: .inf",
    "not a number": HEAD + "spec: [.NaN]",
    "null key": HEAD + "spec: {~: 1}",
    "empty key": HEAD + "spec: {: 1}",
    "huge integer key": HEAD + "spec: {18446744073709551615: 1}",
    "list as a key": HEAD + "spec: {[a]: 1}",
    "mapping as a key": HEAD + "spec:\n  ? {a: 1}\n  : 1\n",
    "aliased mapping as a key": HEAD + "x: &x {a: 1}\nspec: {*x : 1}",
    "tagged int that is none": HEAD + "spec: !!int x",
    "tagged int that is a float": HEAD + "spec: !!int 1.5",
    "tagged bool that is none": HEAD + "spec: !!bool 1",
    "tagged null that is none": HEAD + "spec: {a: !!null x}",
    "tagged float that is none": HEAD + "spec: !!float y",
    "tagged float past 64 bits": HEAD + "spec: !!float 18446744073709551615",
    "tagged timestamp that is none": HEAD + "spec: !!timestamp soon",
    "not base64": HEAD + "spec: !!binary '*'",
    "unknown anchor": HEAD + "spec: *x",
    "anchor in itself": HEAD + "spec: &x [*x]",
    "merge of text": HEAD + "spec: {<<: a}",
    "merge of null": HEAD + "spec: {<<: }",
    "merge of an aliased list": HEAD + "x: &x [{a: 1}]\nspec: {<<: *x}",
    "merge of a list of lists": HEAD + "spec: {<<: [[{a: 1}]]}",
    "yaml directive": "%YAML 1.1\n---\n" + HEAD,
    "content after the separator": "--- {a: 1}\n",
    "more dashes": HEAD + "-----BEGIN-----\n",
    "tab as indent": HEAD + "spec:\n\ta: 1\n",
    "NUL": HEAD + "spec: a\x00b\n",
    "bell": HEAD + "spec: a\x07b\n",
    "open quote": HEAD + 'spec: "a\n',
    "open bracket": HEAD + "spec: [a\n",
    "bad indent": HEAD + "spec:\n  a: 1\n b: 2\n",
    "a colon in plain text": HEAD + "spec: a: b\n",
    "reserved @": HEAD + "spec: @a\n",
    "reserved `": HEAD + "spec: `a\n",
    "bad escape": HEAD + 'spec: "\\d"\n',
    "surrogate escape": HEAD + 'spec: "\\ud83d"\n',
    "json number past all floats": '{"apiVersion":"example.com/v1","kind":"Case","metadata":{"name":"a"},"a":1e400}',
}  # fmt: skip


@pytest.fixture(scope="module")
def members(kubectl: Path) -> list[Any]:
    """What kubectl reads for every scalar, then for every key, in one run of it."""
    return [found["spec"] for found in read_by_kubectl(kubectl, "---\n".join(_table()))]


def _table() -> list[str]:
    values = [f"{HEAD}spec:\n  a: {scalar}\n" for scalar in SCALARS]
    return values + [f"{HEAD}spec:\n  {word} : x\n" for word in KEYS]


@pytest.mark.parametrize("index", range(len(SCALARS)), ids=[ascii(it) for it in SCALARS])
def test_a_scalar_is_read_as_kubectl_reads_it(index: int, members: list[Any]) -> None:
    (ours,) = load_all(_table()[index], name="case.yaml")
    assert repr(ours["spec"]) == repr(members[index])


@pytest.mark.parametrize("index", range(len(KEYS)), ids=[ascii(it) for it in KEYS])
def test_a_key_is_read_as_kubectl_reads_it(index: int, members: list[Any]) -> None:
    (ours,) = load_all(_table()[len(SCALARS) + index], name="case.yaml")
    assert repr(ours["spec"]) == repr(members[len(SCALARS) + index])


@pytest.fixture(scope="module")
def structures(kubectl: Path) -> dict[str, tuple[Any, Any]]:
    """What we read for each structure, and what kubectl does, in one run of it."""
    text = "\n---\n".join(HEAD + structure for structure in STRUCTURES.values())
    sides = zip(canonical(load_all(text, name="case.yaml")), read_by_kubectl(kubectl, text), strict=True)
    return dict(zip(STRUCTURES, sides, strict=True))


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_structure_is_read_as_kubectl_reads_it(name: str, structures: dict[str, tuple[Any, Any]]) -> None:
    ours, theirs = structures[name]
    assert ours == theirs


def test_of_a_key_that_is_there_twice_kubectl_takes_what_we_take(kubectl: Path) -> None:
    """Of those that stand for one key to it; of others it takes now the one, now the other."""
    cases = [text for text, _, _ in TAKEN_TWICE.values() if not text.startswith("{")]
    indented = ["spec:\n" + "".join(f"  {line}\n" for line in text.splitlines()) for text in cases]
    theirs = [found["spec"] for found in read_by_kubectl(kubectl, "---\n".join(HEAD + text for text in indented))]
    assert theirs == [canonical(value) for text, value, _ in TAKEN_TWICE.values() if text in cases]
    in_json = (
        f'{{"apiVersion":"example.com/v1","kind":"Case","metadata":{{"name":"a"}},"spec":{TAKEN_TWICE["in JSON"][0]}}}'
    )
    assert [found["spec"] for found in read_by_kubectl(kubectl, in_json)] == [TAKEN_TWICE["in JSON"][1]]


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_file_is_cut_as_kubectl_cuts_it(text: str, kubectl: Path) -> None:
    assert canonical(load_all(text, name="case.yaml")) == read_by_kubectl(kubectl, text)


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_kubectl_refuses_is_refused(text: str, kubectl: Path) -> None:
    code, printed = ask(kubectl, text)
    assert code != 0, printed
    with pytest.raises(InvalidManifest, match=r"^case\.yaml:\d+: "):
        load_all(text, name="case.yaml")
