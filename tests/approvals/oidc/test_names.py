"""Whom claims mean on a cluster, as its API server would say."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.oidc import ClaimsRefused, ClusterRules, names_on
from approvals.oidc.issuers import MAX_GROUPS, Prefixed

RULES = ClusterRules("production", Prefixed("sub", "oidc:"), Prefixed("groups", "oidc:"))
CLAIMS = {"sub": "u-1", "groups": ["platform", "developers", "platform"]}


def test_name_and_groups_get_the_prefixes_of_the_cluster() -> None:
    named = names_on(RULES, CLAIMS)
    assert named.identity.username == "oidc:u-1"
    assert named.identity.groups == ("oidc:developers", "oidc:platform")
    assert named.groups_unknown == ""


def test_one_group_may_be_a_text() -> None:
    assert names_on(RULES, {**CLAIMS, "groups": "platform"}).identity.groups == ("oidc:platform",)


def test_a_cluster_without_groups_knows_that_there_are_none() -> None:
    named = names_on(ClusterRules("production", Prefixed("sub", "oidc:")), CLAIMS)
    assert (named.identity.groups, named.groups_unknown) == ((), "")


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "u-1"},
        {"sub": "u-1", "_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://x"}}},
        {"sub": "u-1", "groups": ["one"], "_claim_names": {"groups": "src1"}},
        {"sub": "u-1", "hasgroups": True},
        {"sub": "u-1", "hasgroups": "true"},
        {"sub": "u-1", "groups": [f"g-{number}" for number in range(MAX_GROUPS + 1)]},
        {"sub": "u-1", "groups": ["x" * 300]},
    ],
    ids=["none", "elsewhere", "both", "hasgroups", "hasgroups text", "many", "long"],
)
def test_S25_groups_that_are_left_out_are_unknown_and_not_none(claims: dict[str, Any]) -> None:
    named = names_on(RULES, claims)
    assert named.identity.groups == ()
    assert named.groups_unknown


@pytest.mark.parametrize(
    ("rules", "claims", "words"),
    [
        (RULES, {"groups": []}, "sub"),
        (RULES, {"sub": ["u-1"], "groups": []}, "sub"),
        (RULES, {"sub": "x" * 250, "groups": []}, "sub"),
        (RULES, {"sub": "u-1", "groups": {"a": 1}}, "groups"),
        (RULES, {"sub": "u-1", "groups": ["a", 1]}, "groups"),
        (ClusterRules("c", Prefixed("sub", "")), {"sub": "system:admin"}, "system:"),
        (ClusterRules("c", Prefixed("sub", "system:")), {"sub": "admin"}, "system:"),
        (
            ClusterRules("c", Prefixed("sub", ""), Prefixed("groups", "")),
            {"sub": "u-1", "groups": ["system:masters"]},
            "system:",
        ),
        (ClusterRules("c", Prefixed("email", "")), {"email": "a@example.com", "email_verified": False}, "verified"),
        (ClusterRules("c", Prefixed("email", "")), {"email": "a@example.com", "email_verified": "no"}, "verified"),
        (ClusterRules("c", Prefixed("sub", "o:"), None, (("hd", "example.com"),)), {"sub": "u-1"}, "hd"),
        (ClusterRules("c", Prefixed("sub", "o:"), None, (("hd", "a"),)), {"sub": "u-1", "hd": ["a"]}, "hd"),
    ],
)
def test_S01_claims_that_name_nobody_are_refused(rules: ClusterRules, claims: dict[str, Any], words: str) -> None:
    with pytest.raises(ClaimsRefused, match=words):
        names_on(rules, claims)
