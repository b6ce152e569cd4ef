from __future__ import annotations

from typing import Any

import pytest

from provisioner.schema import admit
from provisioner.schema.cel.ast import NodeKind, read
from provisioner.schema.cel.runtime import NotCompiled, program_of
from provisioner.schema.cel.values import escaped, normalised, uses_old
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, listed, mapped, obj, root, thing


def ruled(schema: JsonDict, rule: str, **more: Any) -> JsonDict:
    return {**schema, "x-kubernetes-validations": [{"rule": rule, **more}]}


def errors(schema: JsonDict, spec: Any, old: Any = ...) -> list[str]:
    before = {} if old is ... else {"old": thing(old)}
    return [str(error) for error in admit(root(schema), thing(spec), **before).errors]


MOMENT: JsonDict = {**TEXT, "format": "date-time"}
SPAN: JsonDict = {**TEXT, "format": "duration"}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (ruled(TEXT, "self == 'x'"), "x", "y"),
        (ruled(TEXT, "self.matches('^a')"), "ab", "ba"),
        (ruled(TEXT, "self.lowerAscii() == self"), "a", "A"),
        (ruled(TEXT, "self.split(',').size() == 2"), "a,b", "a"),
        (ruled(TEXT, "self.find('[0-9]+') == '12'"), "a12b", "a"),
        (
            ruled(TEXT, "isURL(self) && url(self).getScheme() == 'https' && url(self).getHost() == 'h:1'"),
            "https://h:1/",
            "http://h:1/",
        ),
        (ruled(TEXT, "quantity(self).isLessThan(quantity('1Gi'))"), "900Mi", "2G"),
        (ruled(TEXT, "isQuantity(self) && quantity(self).add(1) == quantity('1001')"), "1k", "x"),
        (ruled(TEXT, "isIP(self) && ip(self).family() == 4"), "10.0.0.1", "::1"),
        (ruled(TEXT, "cidr('10.0.0.0/8').containsIP(self)"), "10.1.1.1", "11.1.1.1"),
        (
            ruled(TEXT, "cidr(self).prefixLength() <= 24 && cidr('10.0.0.0/8').containsCIDR(self)"),
            "10.1.0.0/16",
            "10.1.1.0/25",
        ),
        (ruled(TEXT, "isSemver(self) && semver(self).isLessThan(semver('2.0.0'))"), "1.9.9", "2.0.0"),
        (
            ruled(TEXT, "semver(self).major() == 1 && semver(self).compareTo(semver('1.0.0')) > 0"),
            "1.0.1",
            "1.0.0-rc.1",
        ),
        (ruled(WHOLE, "self % 2 == 0"), 2, 3),
        (ruled({"type": "number"}, "self < 2.5"), 2, 3),
        (ruled({"type": "number"}, "self >= 0"), 0.5, -0.5),
        (ruled({"type": "number"}, "self > 1 && self <= 3u"), 3, 1),
        (ruled(WHOLE, "self < 5.5 && double(self) > 1"), 5, 6),
        (ruled(WHOLE, "int(5.9) >= self && self > -0.5"), 5, 6),
        (ruled(listed({"type": "number"}), "self.all(x, x < 5)"), [4.5, 0], [5.5]),
        (ruled(obj(a=WHOLE, b={"type": "number"}), "self.a <= self.b"), {"a": 1, "b": 1.5}, {"a": 2, "b": 1.5}),
        (
            ruled(listed(WHOLE), "self.isSorted() && self.sum() == 6 && self.max() == 3 && self.min() == 1"),
            [1, 2, 3],
            [3, 2, 1],
        ),
        (ruled(listed(TEXT), "self.all(x, x.size() < 3)"), ["a"], ["abc"]),
        (ruled(listed(TEXT), "sets.contains(['a', 'b'], self)"), ["a"], ["c"]),
        (ruled(mapped(TEXT), "self.all(k, k.startsWith('a'))"), {"ab": "1"}, {"b": "1"}),
        (ruled(obj(a=WHOLE, b=WHOLE), "self.a < self.b"), {"a": 1, "b": 2}, {"a": 2, "b": 1}),
        (ruled(obj(a=TEXT), "has(self.a)"), {"a": "x"}, {}),
        (ruled(obj(a=TEXT), "self.?a.orValue('x') == 'x'"), {}, {"a": "y"}),
        (
            ruled(obj(**{"a-b": TEXT, "namespace": TEXT}), "self.a__dash__b == self.__namespace__"),
            {"a-b": "1", "namespace": "1"},
            {"a-b": "1", "namespace": "2"},
        ),
        (
            ruled(obj(a=MOMENT, b=MOMENT), "self.a < self.b"),
            {"a": "2024-01-01T00:00:00+01:00", "b": "2024-01-01T00:00:00Z"},
            {"a": "2024-01-02T00:00:00Z", "b": "2024-01-01T00:00:00Z"},
        ),
        (
            ruled(obj(a=MOMENT), "self.a.getFullYear() == 2024"),
            {"a": "2024-01-01T00:00:00Z"},
            {"a": "2023-01-01T00:00:00Z"},
        ),
        (ruled(obj(a=SPAN), "!has(self.a) || self.a <= duration('1h')"), {"a": "30m"}, {"a": "90m"}),
        (ruled(MOMENT, "self > timestamp('2024-01-01T00:00:00Z')"), "2024-06-01T00:00:00Z", "2023-06-01T00:00:00Z"),
        (
            ruled(
                obj(a={"x-kubernetes-int-or-string": True}), "type(self.a) == int ? self.a > 1 : self.a.endsWith('%')"
            ),
            {"a": "5%"},
            {"a": 1},
        ),
        (obj(a=ruled(TEXT, "self == 'x'")), {"a": "x"}, {"a": "y"}),
        (listed(obj(a=ruled(TEXT, "self == 'x'"))), [{"a": "x"}], [{"a": "x"}, {"a": "y"}]),
    ],
    ids=lambda it: (
        it["x-kubernetes-validations"][0]["rule"] if isinstance(it, dict) and "x-kubernetes-validations" in it else ""
    ),
)
def test_a_rule_lets_the_good_value_pass_and_refuses_the_bad_one(schema: JsonDict, good: Any, bad: Any) -> None:
    assert errors(schema, good) == []
    assert len(errors(schema, bad)) == 1


@pytest.mark.parametrize(
    ("schema", "spec", "expected"),
    [
        (ruled(TEXT, "self == 'x'"), "y", "spec: Invalid value: \"y\": failed rule: self == 'x'"),
        (ruled(obj(a=TEXT), "has(self.a)"), {}, "spec: Invalid value: failed rule: has(self.a)"),
        (ruled(obj(a=TEXT), "has(self.a)", message="a is needed "), {}, "spec: Invalid value: a is needed"),
        (ruled(WHOLE, "self > 1", messageExpression="'not ' + string(self)"), 1, "spec: Invalid value: 1: not 1"),
        (ruled(WHOLE, "self > 1", message="m", messageExpression="''"), 1, "spec: Invalid value: 1: m"),
        (ruled(WHOLE, "self > 1", message="m", messageExpression="nonsense("), 1, "spec: Invalid value: 1: m"),
        (
            ruled(obj(a=TEXT), "has(self.a)", reason="FieldValueRequired", fieldPath=".a"),
            {},
            "spec.a: Required value: failed rule: has(self.a)",
        ),
        (ruled(WHOLE, "self > 1", reason="FieldValueForbidden"), 1, "spec: Forbidden: failed rule: self > 1"),
        (ruled(WHOLE, "self > 1", reason="FieldValueDuplicate"), 1, "spec: Duplicate value: 1"),
        (mapped(ruled(TEXT, "self == 'x'")), {"k": "y"}, "spec[k]: Invalid value: \"y\": failed rule: self == 'x'"),
        (listed(ruled(TEXT, "self == 'x'")), ["y"], "spec[0]: Invalid value: \"y\": failed rule: self == 'x'"),
    ],
    ids=str,
)
def test_a_refusal_has_the_servers_words(schema: JsonDict, spec: Any, expected: str) -> None:
    assert errors(schema, spec) == [expected]


@pytest.mark.parametrize(
    ("rule", "spec", "part"),
    [
        ("self.a.b == 'x'", {"a": {}}, "no such key: b"),
        ("self.l[3] == 1", {"l": [1]}, "index out of bounds: 3"),
        ("10 / self.n > 1", {"n": 0}, "division by zero"),
        ("dyn(self.n) + 'x' == 'x'", {"n": 1}, "no such overload"),
        ("nonsense(self)", {}, "rule compile error"),
        ("self.", {}, "rule compile error"),
        ("!format.dns1123Label().validate('x').hasValue()", {}, "could not be evaluated"),
        ("[1, 2].indexOf(2) == 1", {}, "could not be evaluated"),
        ("self.l.all(i, v, v > i)", {"l": [1]}, "could not be evaluated"),
        ("self.all(x, " * 4 + "true" + ")" * 4, {str(i): i for i in range(40)}, "evaluating rule"),
    ],
)
def test_a_rule_that_fails_to_run_is_an_error_and_never_passes(rule: str, spec: Any, part: str) -> None:
    schema = ruled(obj(a=obj(b=TEXT), l=listed(WHOLE), n=WHOLE), rule)
    if "self.all" in rule:
        schema = ruled(mapped(WHOLE), rule)
    (found,) = errors(schema, spec)
    assert part in found


def test_a_transition_rule_runs_on_updates_only() -> None:
    schema = obj(a=ruled(TEXT, "self == oldSelf"))
    assert errors(schema, {"a": "1"}) == []
    assert errors(schema, {"a": "1"}, {"a": "1"}) == []
    assert errors(schema, {"a": "1"}, {}) == []
    assert errors(schema, {"a": "2"}, {"a": "1"}) == ['spec.a: Invalid value: "2": failed rule: self == oldSelf']


def test_an_optional_old_value_is_seen_on_creation_too() -> None:
    schema = obj(a=ruled(WHOLE, "oldSelf.hasValue() ? self >= oldSelf.value() : self == 0", optionalOldSelf=True))
    assert errors(schema, {"a": 0}) == []
    assert len(errors(schema, {"a": 1})) == 1
    assert errors(schema, {"a": 2}, {"a": 1}) == []
    assert len(errors(schema, {"a": 1}, {"a": 2})) == 1


def test_a_rule_is_ratcheted_but_a_transition_rule_is_not() -> None:
    schema = obj(a=ruled(TEXT, "self == 'ok'"), c=TEXT)
    assert errors(schema, {"a": "bad", "c": "2"}, {"a": "bad", "c": "1"}) == []
    above = ruled(obj(a=TEXT, c=TEXT), "self.a == 'ok'")
    assert errors(above, {"a": "bad"}, {"a": "bad"}) == []
    assert len(errors(above, {"a": "bad", "c": "2"}, {"a": "bad"})) == 1
    moving = ruled(obj(a=TEXT), "self.a != oldSelf.a")
    assert len(errors(moving, {"a": "1"}, {"a": "1"})) == 1


def test_rules_are_not_run_over_an_object_that_is_invalid_anyway() -> None:
    found = errors(ruled(obj("b", a=TEXT, b=TEXT), "self.a == 'ok'"), {"a": "bad"})
    assert found[0] == "spec.b: Required value"
    assert "some validation rules were not checked" in found[1]


def test_a_rule_at_the_root_sees_the_name() -> None:
    schema = ruled(root(TEXT), "self.metadata.name == 'a' && self.kind == 'Thing'")
    assert admit(schema, thing("x")).errors == []
    assert len(admit(schema, {**thing("x"), "metadata": {"name": "b"}}).errors) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", "a"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("in", "__in__"),
        ("1a", None),
        ("a b", None),
        ("é", None),
    ],
)
def test_field_names_are_escaped_as_in_kubernetes(name: str, expected: str | None) -> None:
    assert escaped(name) == expected


def test_the_same_expression_written_differently_is_the_same_tree() -> None:
    first, second = (
        program_of(text, "dyn").serialized
        for text in ("self.a == 1 && has(self.b)", " self.a==1   && has( self.b ) // why")
    )
    assert read(first) == read(second)
    assert read(first) != read(program_of("self.a == 2 && has(self.b)", "dyn").serialized)
    assert {
        node.kind
        for node in read(program_of("self.all(x, [x] != [1.5, 'a', null, {'k': true}])", "dyn").serialized).walk()
    } == {NodeKind.FOLD, NodeKind.CALL, NodeKind.IDENT, NodeKind.CONST, NodeKind.LIST, NodeKind.STRUCT}


def test_words_in_texts_are_no_names() -> None:
    assert not uses_old("self == 'oldSelf' // oldSelf")
    assert uses_old("self == oldSelf")
    assert normalised("self  ==\n'a  b'") == "self=='a  b'"
    assert normalised("a in  b") == "a in b"


def test_an_endless_expression_is_refused_unread() -> None:
    with pytest.raises(NotCompiled):
        program_of("true && " * 10_000 + "true", "dyn")
