"""Whose approvals a rule needs: read at the door, and judged exactly."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.deciding.approval_rules import ApprovalRule, RulePart, Voter
from approvals.deciding.selector import Selector
from approvals.deciding.spec_fields import UnreadableObject


def rule(*parts: dict[str, Any], **more: Any) -> ApprovalRule:
    return ApprovalRule.parse({"require": list(parts), **more})


def person(name: str, *groups: str, **more: Any) -> Voter:
    return Voter(name, frozenset(groups), **more)


PLATFORM = {"name": "platform", "count": 2, "groups": ["platform"]}
SECURITY = {"name": "security", "groups": ["security"], "distinctFrom": ["platform"]}
ADA, BEN, CLEO = person("ada", "platform"), person("ben", "platform", "security"), person("cleo", "security")
CI = person("system:serviceaccount:ci:bot", "platform", is_machine=True)
NIGHT = Voter("pratique:policy:3", policy="night")
OTHERS = ", not the same people as for platform"


@pytest.mark.parametrize(
    ("parts", "voters", "missing"),
    [
        ([PLATFORM], [], ["2 of group platform"]),
        ([PLATFORM], [ADA], ["1 of group platform"]),
        ([PLATFORM], [ADA, BEN], []),
        ([PLATFORM], [ADA, CLEO], ["1 of group platform"]),
        ([PLATFORM, SECURITY], [ADA, BEN], [f"1 of group security{OTHERS}"]),
        ([PLATFORM, SECURITY], [ADA, BEN, CLEO], []),
        # Ben counts where he is needed, whoever came first.
        ([{**PLATFORM, "count": 1}, SECURITY], [BEN, ADA], []),
        ([{**PLATFORM, "count": 1}, {**SECURITY, "distinctFrom": []}], [BEN], []),
        ([{**PLATFORM, "count": 1}, SECURITY], [BEN], [f"1 of group security{OTHERS}"]),
        ([{"name": "two", "count": 2}], [ADA], ["1 of all who may approve"]),
        ([{"name": "two", "count": 2}], [ADA, CI], ["1 of all who may approve"]),
        ([{"name": "two", "count": 2}], [ADA, NIGHT], ["1 of all who may approve"]),
        ([{"name": "bot", "users": [CI.username]}], [CI], []),
        ([{"name": "bot", "groups": ["platform"]}], [CI], ["1 of group platform"]),
        ([{"name": "night", "policies": ["night"]}], [NIGHT], []),
        ([{"name": "night", "policies": ["day"]}], [NIGHT, ADA], ["1 of policy day"]),
        ([{"name": "any", "groups": ["x"], "users": ["ada", "eve"]}], [], ["1 of group x or 2 listed users"]),
        ([{"name": "any", "groups": ["x"], "users": ["ada"]}], [ADA], []),
        (
            [{"name": "role", "clusterRoles": ["release-manager"]}],
            [person("dan", cluster_roles=frozenset({"release-manager"}))],
            [],
        ),
        ([{"name": "role", "clusterRoles": ["release-manager"]}], [ADA], ["1 of ClusterRole release-manager"]),
    ],
)
def test_it_says_what_is_still_needed(parts: list[dict[str, Any]], voters: list[Voter], missing: list[str]) -> None:
    assert rule(*parts).list_missing(voters) == missing


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec.require is empty; expected at least one part"),
        ({"require": [{}]}, "spec.require[0].name is missing; expected a text"),
        ({"require": [{"name": "a", "count": 0}]}, "count is 0; expected a whole number from 1 to 10"),
        ({"require": [{"name": "a", "count": True}]}, "count is True; expected a whole number"),
        ({"require": [{"name": "a", "groups": "g"}]}, "groups is 'g'; expected a list"),
        ({"require": [{"name": "a"}, {"name": "a"}]}, "has two parts of one name"),
        ({"require": [{"name": "a", "groups": ["g"], "escalateTo": ["h"]}]}, "are given together"),
        ({"require": [{"name": "a", "groups": ["g"], "escalateAfterHours": 2}]}, "are given together"),
        ({"require": [{"name": "a", "escalateTo": ["h"], "escalateAfterHours": 2}]}, "without, everybody counts"),
        ({"require": [{"name": "a", "distinctFrom": ["b"]}]}, "distinctFrom 'b'; expected the name of another part"),
        ({"require": [{"name": "a", "distinctFrom": ["a"]}]}, "expected the name of another part"),
        ({"require": [{"name": str(one), "count": 10} for one in range(3)]}, "needs 30 approvals; expected at most 20"),
        ({"require": [{"name": str(one)} for one in range(7)]}, "expected a list of at most 6 entries"),
        ({"require": [{"name": "a"}], "when": 1}, "spec.when is 1; expected a text"),
        ({"require": [{"name": "a", "quorum": 2}]}, "spec.require[0] has the field 'quorum'"),
        ({"require": [{"name": "a"}], "unless": "x"}, "spec has the field 'unless'"),
        ({"require": [{"name": "a\0"}]}, "expected a text"),
        ({"forgotten": True}, "spec"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(UnreadableObject) as refused:
        ApprovalRule.parse(spec)
    assert words in str(refused.value)


def test_what_is_needed_names_groups_and_no_users() -> None:
    spec = {"name": "owners", "count": 2, "users": ["ada", "ben"], "clusterRoles": ["a", "b"]}
    assert rule(spec).summary == "2 of ClusterRoles a, b or 2 listed users"
    assert "ada" not in rule(spec).summary


_NAMES = ("a", "b", "c")


@st.composite
def _rules(draw: st.DrawFn) -> ApprovalRule:
    names = _NAMES[: draw(st.integers(1, 3))]
    return ApprovalRule(
        "",
        Selector(),
        "",
        tuple(
            RulePart(
                name,
                draw(st.integers(1, 3)),
                groups=(f"of-{name}",),
                distinct_from=tuple(sorted(draw(st.sets(st.sampled_from([it for it in names if it != name])))))
                if len(names) > 1
                else (),
            )
            for name in names
        ),
    )


_VOTERS = st.lists(st.sets(st.sampled_from([f"of-{name}" for name in _NAMES])), max_size=5)


@given(_rules(), _VOTERS)
def test_it_is_satisfied_where_some_assignment_satisfies_it_and_nowhere_else(
    rule: ApprovalRule, groups: list[set[str]]
) -> None:
    voters = [person(str(number), *some) for number, some in enumerate(groups)]
    own = [[part.name for part in rule.require if part.takes(voter)] for voter in voters]
    every = [
        [
            frozenset(it for it, is_in in zip(some, bits, strict=True) if is_in)
            for bits in product((0, 1), repeat=len(some))
        ]
        for some in own
    ]

    def is_apart(chosen: frozenset[str]) -> bool:
        return not any(chosen & {*part.distinct_from} for part in rule.require if part.name in chosen)

    by_hand = any(
        all(map(is_apart, chosen))
        and all(sum(part.name in one for one in chosen) >= part.count for part in rule.require)
        for chosen in product(*every)
    )
    assert (rule.list_missing(voters) == []) is by_hand


@given(_rules(), _VOTERS, st.randoms())
def test_the_order_of_approvals_changes_nothing_and_another_one_never_takes_any_away(
    rule: ApprovalRule, groups: list[set[str]], chance: Any
) -> None:
    voters = [person(str(number), *some) for number, some in enumerate(groups)]
    turned = list(voters)
    chance.shuffle(turned)
    assert rule.list_missing(voters) == rule.list_missing(turned)
    if voters and rule.list_missing(voters[:-1]) == []:
        assert rule.list_missing(voters) == []


def test_others_count_as_well_once_a_request_has_waited() -> None:
    slow = {"name": "security", "groups": ["security"], "escalateAfterHours": 24, "escalateTo": ["leads"]}
    lead, asked = person("lea", "leads"), rule(slow)
    before, after = asked.after(timedelta(hours=24) - timedelta(seconds=1)), asked.after(timedelta(hours=24))
    assert before.list_missing([lead]) == ["1 of group security; after 24 hours leads as well"]
    assert (after.list_missing([lead]), after.list_missing([CLEO])) == ([], [])
    assert after.list_missing([ADA]) == ["1 of groups security, leads"]
    assert (before.escalated_to, after.escalated_to) == ([], ["leads"])
    assert rule({**slow, "distinctFrom": ["platform"]}, PLATFORM).after(timedelta(days=9)).list_missing([lead]) == [
        "2 of group platform"
    ]
