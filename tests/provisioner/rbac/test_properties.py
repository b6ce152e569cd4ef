from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.rbac import PolicyRule, allows, breakdown, compact, covers, minimal
from provisioner.values import AccessRequest

pytestmark = pytest.mark.thorough
VERBS = st.sampled_from(["get", "list", "create", "*"])
GROUPS = st.sampled_from(["", "apps", "*"])
RESOURCES = st.sampled_from(["pods", "pods/exec", "*/exec", "pods/*", "secrets", "*"])
NAMES = st.sampled_from(["a", "b"])
URLS = st.sampled_from(["/", "/healthz", "/healthz/*", "/healthz*", "*"])


def several(entries: st.SearchStrategy[str], least: int = 0) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(entries, min_size=least, max_size=3).map(tuple)


RULE = st.one_of(
    st.builds(
        PolicyRule,
        verbs=several(VERBS),
        api_groups=several(GROUPS),
        resources=several(RESOURCES),
        resource_names=several(NAMES),
    ),
    st.builds(PolicyRule, verbs=several(VERBS), non_resource_urls=several(URLS, 1)),
)
RULES = st.lists(RULE, max_size=4)
REQUESTS = st.one_of(
    st.builds(
        AccessRequest,
        verb=st.sampled_from(["get", "list", "create", "delete"]),
        group=st.sampled_from(["", "apps", "batch"]),
        resource=st.sampled_from(["pods", "secrets", "nodes"]),
        subresource=st.sampled_from(["", "exec", "log"]),
        name=st.sampled_from(["", "a", "c"]),
    ),
    st.builds(
        AccessRequest, verb=st.sampled_from(["get", "post"]), path=st.sampled_from(["/", "/healthz", "/healthz/x"])
    ),
)


@given(RULES)
def test_rules_cover_themselves(rules: list[PolicyRule]) -> None:
    assert covers(rules, rules).covered


@given(RULES, RULES, RULES)
def test_covering_is_transitive(first: list[PolicyRule], second: list[PolicyRule], third: list[PolicyRule]) -> None:
    if covers(first, second).covered and covers(second, third).covered:
        assert covers(first, third).covered


@given(RULES, RULES)
def test_holding_what_is_missing_is_enough(owner: list[PolicyRule], servant: list[PolicyRule]) -> None:
    assert covers([*owner, *covers(owner, servant).missing], servant).covered


@given(RULES, RULES, REQUESTS)
def test_who_covers_another_may_do_all_that_the_other_may(
    owner: list[PolicyRule], servant: list[PolicyRule], request: AccessRequest
) -> None:
    if covers(owner, servant).covered and allows(servant, request):
        assert allows(owner, request)


@given(RULES, REQUESTS)
def test_compact_rules_permit_exactly_the_same(rules: list[PolicyRule], request: AccessRequest) -> None:
    fewer = compact(rules)
    assert covers(fewer, rules).covered
    assert covers(rules, fewer).covered
    assert allows(fewer, request) is allows(rules, request)
    assert len(fewer) <= len({atom for rule in rules for atom in breakdown(rule)})


@given(RULES, REQUESTS)
def test_minimal_rules_permit_exactly_the_same(rules: list[PolicyRule], request: AccessRequest) -> None:
    fewest = minimal(rules)
    assert covers(fewest, rules).covered
    assert covers(rules, fewest).covered
    assert allows(fewest, request) is allows(rules, request)
    assert len(fewest) <= len(compact(rules))
    assert minimal(fewest) == fewest
