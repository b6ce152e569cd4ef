"""Rules over fields of another type than they take: what API server 1.36 said of each, recorded and asked again."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.expressions import ExpressionAnswer, ExpressionOutcome
from provisioner.schema import accepts_update, compare, validate_crd
from provisioner.schema.cel import runtime, type_check
from provisioner.values import Severity
from tests.support.kubernetes.connection import CRD_PATH, Server
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd_of, listed, mapped, obj

WORD, NUMBER, FLAG = {**TEXT, "maxLength": 9}, {"type": "number"}, {"type": "boolean"}
DATE, SPAN, BYTES = ({**TEXT, "format": name} for name in ("date-time", "duration", "byte"))
EITHER, NULLABLE = {"x-kubernetes-int-or-string": True}, {**WORD, "nullable": True}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}


def some(items: JsonDict) -> JsonDict:
    return listed(items, maxItems=5)


def entries(values: JsonDict) -> JsonDict:
    return mapped(values, maxProperties=5)


# Fields, a rule over the object that has them, and whether the API server takes it.
CASES: list[tuple[JsonDict, str, bool]] = [
    ({"a": WHOLE}, "self.a.startsWith('x')", False),
    ({"a": WORD}, "self.a > 3", False),
    ({"a": WHOLE}, "self.a == 'x'", False),
    ({"a": WHOLE}, "(self).a == 'x'", False),
    ({"a": WHOLE}, "!has(self.a) || self.a.size() > 1", False),
    ({"a": WHOLE}, "!has(self.a) || self.a > 1", True),
    ({"a": FLAG}, "size(self.a) > 1", False),
    ({"a": FLAG}, "self.a", True),
    ({"a": FLAG}, "int(self.a) == 1", False),
    ({"a": WHOLE}, "self.a", False),
    ({"a": WORD}, "!self.a", False),
    ({"a": WHOLE}, "self.a && true", False),
    ({"a": WHOLE, "b": NUMBER}, "self.a < self.b", True),
    ({"a": WHOLE, "b": NUMBER}, "self.a < self.b && self.a == 'x'", False),
    ({"a": WHOLE, "b": NUMBER}, "self.a + self.b > 1.0", False),
    ({"a": NUMBER}, "self.a > 1", True),
    ({"a": NUMBER}, "self.a == 1", False),
    ({"a": WORD}, "self.a == null", False),
    ({"a": NULLABLE}, "self.a == null || self.a.size() > 1", False),
    ({"a": EITHER}, "self.a == 'x' || self.a == 1", True),
    ({"a": WHOLE, "b": WORD}, "(self.a > 1 ? self.b : self.a) == 1", False),
    ({"a": some(WHOLE)}, "self.a.all(x, x.startsWith('a'))", False),
    ({"a": some(obj(b=WHOLE))}, "self.a.all(x, x.b.startsWith('a'))", False),
    ({"a": some(obj(b=WORD))}, "self.a.all(x, x.b.startsWith('a'))", True),
    ({"a": some(obj(b=WHOLE))}, "self.a.all(x, x.c > 1)", False),
    ({"a": some(obj(b=WHOLE))}, "self.a[0].b == 'x'", False),
    ({"a": some(obj(b=some(obj(c=WHOLE))))}, "self.a.exists(x, x.b.exists(x, x.c == 'x'))", False),
    ({"a": some(obj(b=some(obj(c=WHOLE))))}, "self.a.exists(x, x.b.exists(y, y.c == 1))", True),
    ({"a": some(obj(b=WHOLE))}, "self.a.map(x, x.b).all(z, z.startsWith('x'))", False),
    ({"a": some(some(WHOLE))}, "self.a.all(x, x.size() > 1)", True),
    ({"a": WHOLE, "b": some(WORD)}, "self.a in self.b", False),
    ({"a": WHOLE}, "self.a in ['x', 'y']", False),
    ({"a": some(WHOLE), "b": some(WORD)}, "self.a == self.b", False),
    ({"a": some(WHOLE)}, "self.a.join(',') == ''", False),
    ({"a": entries(WHOLE)}, "self.a['k'] == 'x'", False),
    ({"a": entries(WORD)}, "self.a['k'] == 'x'", True),
    ({"a": entries(WHOLE)}, "self.a.k == 1", True),
    ({"a": entries(WHOLE)}, "self.a.all(k, self.a[k] == 'x')", False),
    ({"a": entries(obj(b=WHOLE))}, "self.a['k'].b == 'x'", False),
    ({"a": entries(WHOLE), "AEntry": WORD}, "self.a['k'] == 1 && self.AEntry == 'x'", True),
    ({"a_b": entries(WHOLE), "aB": entries(WORD)}, "self.a_b['k'] == 1 && self.aB['k'] == 'x'", True),
    ({"a": entries(entries(WHOLE))}, "self.a['k']['l'] == 1", True),
    ({"a": obj(b=obj(c=WHOLE))}, "self.a.b.c == 'x'", False),
    ({"a": obj(b=WHOLE)}, "self.a == 'x'", False),
    ({"a": obj(b=WHOLE), "c": obj(b=WHOLE)}, "self.a == self.c", False),
    ({"a": obj(b=WHOLE)}, "(true ? self.a : self.a).b == 'x'", False),
    ({"a": OPEN}, "self.a == self.a", True),
    ({"a": EMBEDDED}, "self.a.metadata.name == 'x' && self.a.kind != ''", True),
    ({"a": EMBEDDED}, "self.a.metadata.name > 1", False),
    ({"a": DATE}, "self.a == '2020'", False),
    ({"a": DATE}, "self.a > timestamp('2020-01-01T00:00:00Z')", True),
    ({"a": SPAN}, "self.a > 1", False),
    ({"a": SPAN}, "self.a > duration('1s')", True),
    ({"a": BYTES}, "self.a == 'a'", False),
    ({"a-b": WHOLE}, "self.a__dash__b == 'x'", False),
    ({"namespace": WHOLE}, "self.__namespace__ == 1", True),
    ({"self": WHOLE, "oldSelf": WHOLE}, "self.self == 1 && self.oldSelf == 2", True),
    ({"a": WHOLE}, "self.?a.orValue(3) == 'x'", False),
    ({"a": WHOLE}, "self.?zz.hasValue()", False),
    ({"a": WHOLE}, "true ? self.a == 1 : self.a == 2", True),
    ({"a": WHOLE}, "self.a > 0 // self.a.x == 'y'", True),
    ({"a": WORD}, "self.a != 'self.b.c > 1'", True),
    ({"a": WHOLE}, "quantity(self.a).isGreaterThan(quantity('1'))", False),
    ({"a": WORD}, "quantity(self.a).isGreaterThan(quantity('1'))", True),
    ({"a": WHOLE}, "cel.bind(x, self.a, x == 1)", False),
    ({"a": WHOLE}, "math.greatest(self.a, 1) == 1", False),
    ({"a": some(WHOLE)}, "self.a.slice(0, 1) == [1] && self.a.distinct().size() == 1", True),
    ({"a": some(WHOLE)}, "self.a.sort() == [1] && self.a.sortBy(x, -x) == [1] && self.a.reverse() == [1]", True),
    ({"a": some(some(WHOLE))}, "self.a.flatten() == lists.range(3)", True),
    ({"a": WHOLE}, "self.a < 5.0 && self.a >= 1u && 2.5 > self.a", True),
    ({"a": WHOLE}, "double(self.a) < 5 && size('x') <= self.a && uint(3) > self.a", True),
    ({"a": NUMBER}, "int(self.a) < 5.5 || self.a in [1.5]", True),
    ({"a": some(WHOLE)}, "self.a.all(x, x < 5.5) && self.a.map(x, x * 2).all(y, y > 0.5)", True),
    ({"a": NUMBER}, "self.a + 1 > 2", False),
    ({"a": NUMBER}, "self.a != 1", False),
    ({"a": NUMBER}, "self.a in [1]", False),
    ({"a": WORD}, "self.a < 1.0", False),
    ({"a": FLAG}, "self.a < 1", False),
    ({"a": FLAG, "b": FLAG}, "self.a < self.b", True),
    ({"a": BYTES}, "self.a < b'x'", True),
    ({"a": WORD}, "self.a.matches('^a+$')", True),
    ({"a": WORD}, "self.a.matches('a' + '[')", True),
    ({"a": WORD}, "self.a.matches(self.a)", True),
    ({"a": WORD}, "quantity('x').isGreaterThan(quantity('1'))", True),
    ({"a": WORD}, "self.a.matches('\\\\d+') && self.a.matches(r'\\p{Greek}+')", True),
    ({"a": WORD}, "duration('-1h3.5m.5s') < duration('1us') && duration('0') == duration('+0')", True),
    ({"a": WORD}, "duration('1.s') == duration('1h')", True),
    ({"a": WORD}, "duration('2562047h') > duration('1h')", True),
    ({"a": WORD}, "timestamp('2020-02-29T00:00:00Z') < timestamp('2020-02-28T00:00:00.5+02:00')", True),
    ({"a": WORD}, "timestamp(1) < timestamp('2020-02-28T00:00:00Z')", True),
    ({"a": WORD}, "['x', self.a].size() == 2 && [[], ['x']].size() == 2 && [{}, {'a': 'x'}].size() == 2", True),
    ({"a": obj(c=WHOLE)}, "[self.a, self.a].size() == 2", True),
    ({"a": WORD}, "'%s %d'.format([self.a, 1]) == ''", True),
    ({"a": WORD}, "'100%% %.2f'.format([1.0]) == ''", True),
    ({"a": WORD}, "'%s'.format([[1, 'x']]) == ''", True),
    ({"a": WORD}, "self.a.format([1]) == ''", True),
    ({"a": WHOLE}, "oldSelf.a == self.a", True),
    ({"a": WHOLE}, "oldSelf.a.size() == self.a", False),
]
ASKED = pytest.mark.parametrize(
    ("fields", "rule", "is_taken"), CASES, ids=[f"{'takes' if taken else 'refuses'} {rule}" for _, rule, taken in CASES]
)


def ruled(fields: JsonDict, rule: str, **more: Any) -> JsonDict:
    return crd_of(obj(**fields, more={"x-kubernetes-validations": [{"rule": rule, "message": "no", **more}]}))


@ASKED
def test_a_rule_is_held_against_the_types_of_its_fields(fields: JsonDict, rule: str, is_taken: bool) -> None:
    assert (validate_crd(ruled(fields, rule)) == []) is is_taken


@pytest.mark.controlplane
@ASKED
def test_the_api_server_still_says_so(server: Server, fields: JsonDict, rule: str, is_taken: bool) -> None:
    status, answer = server.ask("POST", f"{CRD_PATH}?dryRun=All&fieldValidation=Ignore", ruled(fields, rule))
    assert (status == 201) is is_taken, answer


@pytest.mark.parametrize(
    ("rule", "is_taken"),
    [
        pytest.param("oldSelf.hasValue() && oldSelf.value().a == self.a", True, id="its own type"),
        pytest.param("oldSelf.hasValue() && oldSelf.value().a == 'x'", False, id="another type"),
        pytest.param("oldSelf.optMap(o, o.a).orValue(1) == self.a", True, id="mapped"),
    ],
)
def test_an_optional_old_value_has_the_type_of_the_new_one(rule: str, is_taken: bool) -> None:
    assert (validate_crd(ruled({"a": WHOLE}, rule, optionalOldSelf=True)) == []) is is_taken


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        pytest.param(WORD, WHOLE, "self.a.startsWith('x')", id="a field"),
        pytest.param(some(obj(b=WORD)), some(obj(b=WHOLE)), "self.a.all(x, x.b.size() > 1)", id="in a list"),
        pytest.param(some(obj(b=WORD)), some(obj(c=WORD)), "self.a.all(x, x.b.size() > 1)", id="gone from a list"),
        pytest.param(entries(WORD), entries(WHOLE), "self.a['k'] == 'x'", id="in a map"),
        pytest.param(WORD, DATE, "self.a == 'x'", id="a format that makes a time of it"),
        pytest.param(obj(b=WORD), entries(WHOLE), "self.a.b == 'x'", id="an object that becomes a map"),
    ],
)
def test_a_rule_over_a_field_that_is_retyped_or_gone_is_refused(before: JsonDict, after: JsonDict, rule: str) -> None:
    old, new = ruled({"a": before}, rule), ruled({"a": after}, rule)
    assert accepts_update(old, old) == []
    found = [one for one in compare(old, new) if one.rule == "SCH-44"]
    assert [(one.severity, one.verdicts["api"]) for one in found] == [(Severity.BREAKING, Severity.BREAKING)]
    assert "compilation failed" in found[0].evidence["words"]


@pytest.mark.parametrize("compiler", [runtime, type_check], ids=["any type", "the types of its fields"])
def test_a_compiler_that_had_no_time_is_no_refusal(compiler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under load: the API server may well take the rule."""
    rule = f"self.a != 'no time for {compiler.__name__}'"
    ended = ExpressionAnswer(ExpressionOutcome.ENDED, words="no evaluator was free")
    monkeypatch.setattr(compiler, "ask", lambda _, texts, **more: [ended] * len(texts))
    (error,) = validate_crd(ruled({"a": WORD}, rule))
    assert (error.is_unknown, "could not be compiled" in error.message) == (True, True)
    found = compare(ruled({"a": WORD}, "self.a != ''"), ruled({"a": WORD}, rule))
    assert [(one.variant, one.severity) for one in found if one.rule == "CRD-00"] == [("unknown", Severity.UNKNOWN)]
    assert not [one for one in found if one.variant == "refused"]
