"""The sentences of findings are made of templates that stand in the file of each rule."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import provisioner.review
from provisioner.errors import BadRuleFile
from provisioner.rbac import RbacSubject
from provisioner.rbac.catalogue import PATTERNS
from provisioner.rbac.guarded_rights import GUARDED, IN_NAMESPACE
from provisioner.review.base.facts import ReviewRule
from provisioner.review.rules import Phrase, messages_of, rule_ids
from provisioner.review.rules.messages import messages_in
from provisioner.values import ObjectRef, Section, Severity
from tests.support.syntax_trees import trees_with

# Phrases that stand in evidence and in no sentence, or that several rules share.
WITHOUT_VALUE = {"advice", "entry", "proof", "said", "stated"}
WEB = ObjectRef("apps", "v1", "Deployment", "shop", "web")


@pytest.mark.parametrize(
    ("template", "params", "words"),
    [
        ("{subject} stops", {"subject": WEB}, "Deployment shop/web stops"),
        ("{pods:count pod}", {"pods": 1}, "1 pod"),
        ("{keys:count entry/entries}", {"keys": ["a", "b"]}, "2 entries"),
        ("{keys:is|are}", {"keys": ["a"]}, "is"),
        ("{count:is|are}", {"count": 0}, "are"),
        ("{names:some 2}", {"names": ["a", "b", "c"]}, "a, b and 1 more"),
        ("{names:some 1 fields}", {"names": ["a", "b", "c"]}, "a and 2 more fields"),
        ("{names:some 2 of total}", {"names": ["a", "b", "c"], "total": 9}, "a, b and 7 more"),
        ("{names:some 2 of total}", {"names": ["a", "b", "c"], "total": 1}, "a"),
        ("{names:some 1 fields of total}", {"names": {"a": 1}, "total": 1204}, "a and 1,203 more fields"),
        ("{names:phrases 1 of total}", {"names": ["a, b"], "total": 3}, "a, b; and 2 more"),
        ("{pods:count} pod{pods:|s}", {"pods": 1204}, "1,204 pods"),
        ("{pods:count} pod{pods:|s}", {"pods": 1}, "1 pod"),
        ("{names}", {"names": [WEB, "b"]}, "Deployment shop/web, b"),
        ("{names:or}", {"names": ["a", "b"]}, "a or b"),
        ("{roles:either}", {"roles": ["a", "b", "c"]}, "a, b or c"),
        ("{roles:either}", {"roles": ["a"]}, "a"),
        ("{names:all}", {"names": ["a", "b", "c"]}, "a, b and c"),
        ("{places:and}", {"places": ["a", "b"]}, "a and b"),
        ("{names:code 1}", {"names": ["a", "b"]}, "`a` and 1 more"),
        ("{subject:account}", {"subject": RbacSubject("ServiceAccount", "web", "shop")}, "`shop/web`"),
        ("{subjects:account 1}", {"subjects": [RbacSubject("Group", "ops"), WEB]}, "Group `ops` and 1 more"),
        ("of {names:and of}", {"names": ["a", "b"]}, "of a and of b"),
        ("{verbs:each either}", {"verbs": ["GET", "LIST", "x"]}, "read, list or do x"),
        ("{verbs:each some 1}", {"verbs": ["GET", "LIST"]}, "read and 1 more"),
        ("{sizes:each some 2}", {"sizes": ["a", "b"], "old": {"a": 1}, "new": {"b": 2}}, "a 1 → (none), b (none) → 2"),
        ("{sizes:each some 2}", {"sizes": [{"item": WEB, "old": 1, "new": 2}]}, "Deployment shop/web 1 → 2"),
        ("{names:clauses}", {"names": ["a", "b"]}, "a, and b"),
        ("{value:cut 3}", {"value": "abcd"}, "abc…"),
        ("{value:cut 4}", {"value": "abcd"}, "abcd"),
        ("{format:else none}", {}, "none"),
        ("{new:json} {all:jsons}", {"new": "a", "all": [1, None]}, '"a" 1, null'),
        ("{old:range}", {"old": {"minimum": 1, "maximum": 5, "exclusiveMaximum": True}}, "from 1 below 5"),
        ("{types:types}", {"types": ["integer", "string"]}, "an integer or a string"),
        ("{new:rule}", {"new": "self.a\n== 1"}, "'self.a == 1'"),
        ("{reasons:phrases 1}", {"reasons": ["a, b", "c"]}, "a, b; and 1 more"),
        ("{text} {names:some 2} {pods:count pod}", {"text": None, "names": None, "pods": None}, "none none 0 pods"),
        ("{labels}", {"labels": {"b": "2", "a": "1"}}, "a=1, b=2"),
        ("waits[ in {place}]", {"place": "shop"}, "waits in shop"),
        ("waits[ in {place}]", {"place": ""}, "waits"),
        ("waits[ in {place}]", {}, "waits"),
        ("waits [in {place}|somewhere]", {"place": "shop"}, "waits in shop"),
        ("waits [in {place}|somewhere]", {"place": None}, "waits somewhere"),
        ("[{pods:pod|pods}] wait", {"pods": 2}, "pods wait"),
        ("{them:each}", {"them": [{"name": "a"}, {"variant": "odd", "name": "b"}]}, "one a, the odd b"),
        ("{them:each phrases 1}", {"them": ["odd-one", "odd-one"]}, "that; and 1 more"),
        ("{then:phrase}", {"then": "never", "pods": 2}, "never starts 2 pods"),
        ("{text}", {"text": "{subject} [x]"}, "{subject} [x]"),
    ],
)
def test_a_template_shows_its_values(template: str, params: dict[str, Any], words: str) -> None:
    phrases = (
        "then.never: never starts {pods:count pod}",
        "verbs.GET: read",
        "verbs.LIST: list",
        "verbs.each: do {item}",
        "sizes.each: {item} {old} → {new}",
        "them.each: one {name}",
        "them.odd: the odd {name}",
        "them.odd-one: that",
    )
    messages = messages_in("XX-01", "\n\n".join((f"it: {template}", *phrases)))
    assert messages.render("it", params) == words


@pytest.mark.parametrize(
    "section",
    ["no name", "Name: words", "it: a\n\nit: b", "it: {a", "it: a]", "it: {a:about 3}", "it: [a [b]]"],
    ids=["no colon", "capital", "twice", "open", "closed", "unknown way", "nested"],
)
def test_what_is_no_template_is_refused_with_the_rule(section: str) -> None:
    with pytest.raises(BadRuleFile, match="XX-01"):
        messages_in("XX-01", section)


def test_a_variant_without_a_message_and_a_value_that_is_missing_are_errors() -> None:
    messages = messages_in("XX-01", "it: {a}")
    for variant, params in (("other", {"a": 1}), ("it", {})):
        with pytest.raises(LookupError):
            messages.render(variant, params)


def test_a_finding_keeps_its_variant_and_its_values() -> None:
    rule = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.BREAKING)
    found = rule.finding("stops", WEB, where=("spec", "replicas"), before=3, after=0, left_out=None)
    assert found.message == "Deployment shop/web stops: its replicas go from 3 to 0"
    assert (found.variant, found.evidence) == ("stops", {"before": 3, "after": 0})


def test_the_messages_of_every_rule_can_be_read_and_their_phrases_belong_to_a_value() -> None:
    for rule in rule_ids():
        messages = messages_of(rule)
        shown = {field.name for template in messages.templates.values() for field in template.fields}
        parts = {name for name in messages.templates if "." in name}
        named = {name.partition(".")[0] for name in parts} - messages.templates.keys()
        assert named - WITHOUT_VALUE <= shown, rule


def test_what_somebody_may_do_is_said_in_the_file_of_its_rule() -> None:
    for pattern in PATTERNS:
        for what in filter(None, (pattern.what, pattern.of_named)):
            assert f"what.{what}" in messages_of(pattern.id).templates, pattern
    for row in GUARDED:
        words = messages_of("OWN-PRATIQUE-03").render(f"what.{row.what}", {"place": "shop"})
        assert ("shop" in words) == (row.what in IN_NAMESPACE), row


def test_a_rule_has_the_messages_that_it_shares() -> None:
    secrets = messages_of("RB-11")
    assert "can" in secrets.shared and "what.read-every" not in secrets.shared
    power = Phrase.of("RB-11", "power.namespace", what="read-named", names=["a"], scope="shop")
    assert (power, power.name) == ("read the Secrets named a in namespace shop", "power.namespace")


def test_every_variant_that_the_code_names_has_a_message() -> None:
    known = {variant for rule in rule_ids() for variant in messages_of(rule).templates}
    assert [variant for variant in variants_in_code() if variant not in known] == []


def variants_in_code() -> Iterator[str]:
    """The first argument of each call of `finding` that is a text."""
    for _, tree in trees_with(r"\.finding\(", Path(provisioner.review.__file__).parent):
        for node in ast.walk(tree):
            is_call = (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "finding"
            )
            if is_call and isinstance(node, ast.Call) and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)
