"""CEL rules that come, go and change, as `compare` sees them."""

from __future__ import annotations

import pytest

from provisioner.review.base.messages import without_place
from provisioner.schema import admit, compare
from provisioner.values import Severity
from tests.support.provisioner.compared import BREAKING, DANGEROUS, IDIOM, KEEP, SAFE, changes, ruled, rules
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd_of, listed, obj, root, thing


def test_a_bound_lost_above_a_rule_is_a_crd_that_the_server_refuses() -> None:
    items = {**obj(a={**TEXT, "maxLength": 64}), "x-kubernetes-validations": [{"rule": "self.a.matches('^[a-z]+$')"}]}
    found = compare(crd_of(listed(items, maxItems=16)), crd_of(listed(items)))
    assert ("SCH-43", BREAKING) in rules(found)
    assert ("SCH-25r", SAFE) in rules(found)


def with_rule(rule: str, *, more: JsonDict | None = None, **fields: JsonDict) -> JsonDict:
    return obj(**fields, more={**(more or {}), "x-kubernetes-validations": [{"rule": rule}]})


PERCENT: JsonDict = {**WHOLE, "maximum": 100}


RULES_ON_NEW_FIELDS = {
    "of two new fields": (obj(a=TEXT), with_rule("!(has(self.b) && has(self.c))", a=TEXT, b=WHOLE, c=WHOLE), SAFE),
    "of a new field, guarded": (obj(a=TEXT), with_rule("!has(self.b) || self.b > 5", a=TEXT, b=PERCENT), SAFE),
    "of a new field that is absent": (obj(a=TEXT), with_rule("self.b > 5", a=TEXT, b=PERCENT), BREAKING),
    "that wants the new field": (obj(a=TEXT), with_rule("has(self.b)", a=TEXT, b=WHOLE), BREAKING),
    "of a new field whose default passes": (
        obj(a=TEXT),
        with_rule("self.b > 5", a=TEXT, b={**PERCENT, "default": 9}),
        SAFE,
    ),
    "of a new field whose default does not": (
        obj(a=TEXT),
        with_rule("self.b > 5", a=TEXT, b={**PERCENT, "default": 1}),
        BREAKING,
    ),
    "of an old field, too": (obj(a=TEXT), with_rule("!has(self.b) || has(self.a)", a=TEXT, b=WHOLE), BREAKING),
    "of the whole": (obj(a=TEXT), with_rule("!has(self.b) || self.size() < 2", a=TEXT, b=WHOLE), BREAKING),
    "of fields that were kept unseen": (
        obj(a=TEXT, more=KEEP),
        with_rule("!(has(self.b) && has(self.c))", a=TEXT, b=WHOLE, c=WHOLE, more=KEEP),
        BREAKING,
    ),
}


@pytest.mark.parametrize(("old", "new", "severity"), RULES_ON_NEW_FIELDS.values(), ids=RULES_ON_NEW_FIELDS)
def test_a_rule_on_new_fields_breaks_only_what_has_none_of_them(
    old: JsonDict, new: JsonDict, severity: Severity
) -> None:
    assert [it.severity for it in changes(old, new) if it.rule == "SCH-38"] == [severity]


def test_a_rule_on_new_fields_breaks_where_nothing_was_pruned() -> None:
    new = crd_of(with_rule("!(has(self.b) && has(self.c))", a=TEXT, b=WHOLE, c=WHOLE))
    old = crd_of(obj(a=TEXT))
    old = {**old, "spec": {**old["spec"], "preserveUnknownFields": True}}
    assert [it.severity for it in compare(old, new) if it.rule == "SCH-38"] == [BREAKING]


@pytest.mark.parametrize(
    ("pattern", "rule", "severity"),
    [
        pytest.param("^[a-z]+$", "self.matches('^[a-z]+$')", SAFE, id="the same"),
        pytest.param(r"^a\.b$", r'self.matches("^a\\.b$")', SAFE, id="the same, escaped"),
        pytest.param("^[a-z]+$", "self.matches('^[a-y]+$')", BREAKING, id="another"),
        pytest.param("^[a-z]+$", "!self.matches('^[a-z]+$')", BREAKING, id="its contrary"),
        pytest.param("^[a-z]+$", "self.matches('^[a-z]+$') && self.size() > 2", BREAKING, id="more"),
    ],
)
def test_a_pattern_that_became_a_rule_asks_no_more(pattern: str, rule: str, severity: Severity) -> None:
    limited: JsonDict = {**TEXT, "maxLength": 20}
    new = {**limited, "x-kubernetes-validations": [{"rule": rule}]}
    found = [it for it in changes({**limited, "pattern": pattern}, new) if it.rule == "SCH-38"]
    assert [it.severity for it in found] == [severity]


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        pytest.param("self.size() > 2", "rule 'self.size() > 2' added", id="plain"),
        pytest.param("self != 'a'", """rule "self != 'a'" added""", id="with quotes"),
        pytest.param(r'self.matches("^a\\.b$")', r"""rule 'self.matches("^a\\.b$")' added""", id="with backslashes"),
        pytest.param("self.size() > 2\n&& true", "rule 'self.size() > 2 && true' added", id="in two lines"),
    ],
)
def test_a_rule_is_quoted_as_it_was_written(rule: str, shown: str) -> None:
    limited: JsonDict = {**TEXT, "maxLength": 20}
    found = changes(limited, {**limited, "x-kubernetes-validations": [{"rule": rule}]})
    assert [without_place(it).message for it in found if it.rule == "SCH-38"] == [shown]


@pytest.mark.parametrize(
    ("rule", "least", "expected"),
    [
        pytest.param("self.matches('^[a-z]+$')", 1, ("SCH-25n", SAFE), id="the rule refuses the empty text"),
        pytest.param("self.matches('^[a-z]*$')", 1, ("SCH-25", BREAKING), id="the rule takes it"),
        pytest.param("self.matches('^[a-z]+$')", 2, ("SCH-25", BREAKING), id="more than one is wanted"),
        pytest.param("oldSelf == '' || self != ''", 1, ("SCH-25", BREAKING), id="a rule on updates"),
    ],
)
def test_what_a_rule_refused_all_along_is_no_example(rule: str, least: int, expected: tuple[str, Severity]) -> None:
    ruled_text: JsonDict = {**TEXT, "maxLength": 20, "x-kubernetes-validations": [{"rule": rule}]}
    (found,) = changes(ruled_text, {**ruled_text, "minLength": least})
    assert (found.rule, found.severity) == expected
    if "counterexample" in found.evidence:
        value = thing({"f": found.evidence["counterexample"]})
        assert admit(root(obj(f=ruled_text)), value).errors == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(["self != 'a' && self != 'b'"], ["self != 'a'", "self != 'b'"], "SCH-41", id="divided"),
        pytest.param(["self != 'a'", "self != 'b'"], ["self != 'a' && self != 'b'"], "SCH-41", id="joined"),
        pytest.param(["self != 'a'"], ["self != 'a' && self != 'b'"], "SCH-38", id="one demand more"),
        pytest.param(["self != 'a' && self != 'b'"], ["self != 'a'"], "SCH-40", id="one demand less"),
        pytest.param(
            ["self != 'a' && self == oldSelf"], ["self != 'a'", "self == oldSelf"], "SCH-38", id="asked of creations"
        ),
        pytest.param(["self.size() < 5"], ["self.size() < 4"], "SCH-39", id="another number"),
    ],
)
def test_rules_count_by_what_they_ask(old: list[str], new: list[str], expected: str) -> None:
    sides = [{**TEXT, "maxLength": 9, "x-kubernetes-validations": [{"rule": it} for it in side]} for side in (old, new)]
    found = {it.rule for it in changes(*sides)}
    assert (found - {"SCH-41"} or found) == {expected}


@pytest.mark.parametrize("rule", ["self == oldSelf", "self == oldSelf.orValue(self)"])
@pytest.mark.parametrize("is_added", [True, False])
def test_a_rule_that_only_runs_at_another_time_is_one_change(rule: str, is_added: bool) -> None:
    sides = [ruled(rule), ruled(rule, optionalOldSelf=True)]
    found = changes(*(sides if is_added else reversed(sides)))
    told = [(it.rule, it.severity) for it in found if it.verdicts["api"] is SAFE]  # a rule that no longer compiles
    assert told == [("SCH-42", DANGEROUS)]
    variant = "judges-new-objects" if is_added else "spares-new-objects"
    assert [it.variant for it in found if it.rule == "SCH-42"] == [variant]


@pytest.mark.parametrize(
    ("rule", "is_sparing"),
    [
        ("self == oldSelf", True),
        ("oldSelf == self", True),
        ("!oldSelf.hasValue() || oldSelf.value() == self", True),
        ("self == oldSelf.orValue(self)", True),
        ("self.a != oldSelf.a", False),
        ("oldSelf.hasValue() && self.a != 'x'", False),
    ],
)
def test_a_new_rule_about_the_old_value_says_what_it_refuses(rule: str, *, is_sparing: bool) -> None:
    is_optional = "Value" in rule
    plain = obj("a", a={**TEXT, "maxLength": 9}, n=WHOLE, l={**listed({**TEXT, "maxLength": 9}), "maxItems": 9})
    more = {"optionalOldSelf": True} if is_optional else {}
    found = changes(plain, {**plain, "x-kubernetes-validations": [{"rule": rule, **more}]})
    variant = "changes" if is_sparing else f"{'new-objects-and-' if is_optional else ''}edits"
    assert [it.variant for it in found if it.rule == "SCH-38t"] == [variant]


def test_a_rule_of_dynamic_type_that_only_runs_at_another_time_is_one_change() -> None:
    sides = [
        {**IDIOM, "x-kubernetes-validations": [{"rule": "self == oldSelf", "optionalOldSelf": it}]}
        for it in (False, True)
    ]
    assert rules(changes(*sides)) == [("SCH-42", DANGEROUS)]
