from __future__ import annotations

from typing import Any

import pytest

from provisioner.errors import InvalidManifest
from provisioner.rbac import FULL_AUTHORITY, PolicyRule, allows, compact, covers
from provisioner.values import AccessRequest
from tests.support.provisioner.roles import rule, rules

EIGHT = "get list watch create update patch delete deletecollection"


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        pytest.param(rule("get"), rule("get"), id="the same rule"),
        pytest.param(rule("*"), rule("get list"), id="a wildcard verb covers each verb"),
        pytest.param(rule("get", "*"), rule("get", "pods/exec"), id="a wildcard resource covers subresources"),
        pytest.param(rule("get", "*/scale"), rule("get", "deployments/scale"), id="any resource's subresource"),
        pytest.param(rule("get", group="*"), rule("get", group="apps"), id="a wildcard group covers each group"),
        pytest.param(rule("get"), rule("get", names="a"), id="an unnamed rule covers a named one"),
        pytest.param(rule("get", names="a b"), rule("get", names="a"), id="names cover their part"),
        pytest.param(rule("get", urls="/healthz*"), rule("get", urls="/healthz/etcd"), id="a URL prefix"),
        pytest.param(rule("get", urls="/a*"), rule("get", urls="/a*"), id="a URL prefix covers itself"),
        pytest.param(
            rule("get", "nodes"), {"verbs": [], "apiGroups": [""], "resources": ["x"]}, id="no verbs, nothing asked"
        ),
        pytest.param(rule("get", "nodes"), {"verbs": ["get"], "resources": ["x"]}, id="no groups, nothing asked"),
    ],
)
def test_a_rule_covers_what_it_includes(held: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert covers(rules(held), rules(wanted)).covered


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        pytest.param(rule(EIGHT), rule("*"), id="eight verbs are not all verbs"),
        pytest.param(rule("get"), rule("get", "pods/exec"), id="pods are not pods/exec"),
        pytest.param(rule("get", "pods/*"), rule("get", "pods/exec"), id="pods/* is a literal"),
        pytest.param(rule("get", "*/scale"), rule("get", "*/status"), id="another subresource"),
        pytest.param(rule("get", names="a"), rule("get"), id="a named rule does not cover an unnamed one"),
        pytest.param(rule("get", names="a"), rule("get", names="a b"), id="one of two names"),
        pytest.param(rule("get", urls="/healthz/*"), rule("get", urls="/healthz"), id="the prefix ends in a slash"),
        pytest.param(rule("get", "*"), rule("get", urls="/"), id="resources are no URLs"),
        pytest.param(rule("get", "a"), rule("get", "a", group="apps"), id="another group"),
    ],
)
def test_a_rule_does_not_cover_more_than_it_says(held: dict[str, Any], wanted: dict[str, Any]) -> None:
    found = covers(rules(held), rules(wanted))
    assert not found.covered
    assert found.missing


def test_each_atom_must_be_covered_by_one_rule_alone() -> None:
    held = rules(rule("get", names="a"), rule("list"))
    assert covers(held, rules(rule("get list", names="a"))).covered
    assert not covers(held, rules(rule("get"))).covered


def test_what_is_missing_is_told_by_resource_in_the_servers_words() -> None:
    found = covers([], rules(rule("get list", "a b", group="apps"), rule("get", urls="/x")))
    assert [str(it) for it in found.missing] == [
        '{NonResourceURLs:["/x"], Verbs:["get"]}',
        '{APIGroups:["apps"], Resources:["a"], Verbs:["get" "list"]}',
        '{APIGroups:["apps"], Resources:["b"], Verbs:["get" "list"]}',
    ]


def test_cluster_admin_covers_everything() -> None:
    assert covers(
        FULL_AUTHORITY, rules(rule("*", "*", group="*"), rule("*", urls="*"), rule("x", "y", names="z"))
    ).covered


@pytest.mark.parametrize(
    ("held", "request_", "expected"),
    [
        (rule("list", "secrets", names="a"), AccessRequest("list", resource="secrets"), False),
        (rule("list", "secrets", names="a"), AccessRequest("list", resource="secrets", name="a"), True),
        (rule("create", "*"), AccessRequest("create", resource="pods", subresource="exec"), True),
        (rule("create", "*/exec"), AccessRequest("create", resource="pods", subresource="exec"), True),
        (rule("create", "*/exec"), AccessRequest("create", resource="pods"), False),
        (rule("create", "pods/*"), AccessRequest("create", resource="pods", subresource="exec"), False),
        (rule("get", urls="/healthz*"), AccessRequest("get", path="/healthz/etcd"), True),
        (rule("get", urls="/healthz"), AccessRequest("get", path="/healthz/etcd"), False),
        (rule("get", "*"), AccessRequest("get", path="/healthz"), False),
        (rule("get", urls="*"), AccessRequest("get", resource="pods"), False),
    ],
    ids=str,
)
def test_a_request_is_matched_as_the_server_matches_it(
    held: dict[str, Any], request_: AccessRequest, expected: bool
) -> None:
    assert allows(rules(held), request_) is expected


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("get", id="a text"),
        pytest.param({"verbs": "get"}, id="verbs are no list"),
        pytest.param({"verbs": [1]}, id="a verb is no text"),
        pytest.param({"verbs": [None]}, id="a verb is null"),
        pytest.param({"resources": {"pods": True}}, id="resources are an object"),
    ],
)
def test_a_rule_that_cannot_be_read_is_an_error_and_not_an_empty_rule(broken: Any) -> None:
    with pytest.raises(InvalidManifest):
        PolicyRule.from_object(broken)


def test_compact_rules_grant_the_same_in_fewer_rules() -> None:
    found = compact(
        rules(rule("list get", "pods"), rule("get", "pods"), rule("get", "pods", names="a"), rule("watch", "pods"))
    )
    assert found == rules(rule("get list watch", "pods"))


def test_a_wildcard_absorbs_what_it_covers() -> None:
    assert compact(rules(rule("get", "pods"), rule("*", "*", group="*"))) == rules(rule("*", "*", group="*"))
    assert compact(rules(rule("get", urls="/a /b"), rule("get", urls="*"))) == rules(rule("get", urls="*"))


def test_a_rule_is_written_back_as_it_was_read() -> None:
    written = rule("get", "pods", names="a")
    assert PolicyRule.from_object(written).to_object() == written
