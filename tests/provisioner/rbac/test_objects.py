"""Roles and bindings that change one by one are the same as if they had been sorted out anew."""

from __future__ import annotations

import random

from provisioner.rbac import RbacObjects, effective_rules, subjects
from provisioner.values import ObjectRef
from tests.provisioner.rbac.random_roles import world
from tests.support.provisioner.roles import bound, cluster_role, group, role, rule, user


def test_what_somebody_holds_after_changes_is_what_it_is_from_the_start() -> None:
    dice = random.Random(7)
    for _ in range(40):
        given, other = (world(dice, "w", ("a", "b")) for _ in range(2))
        known = RbacObjects.of(given.objects)
        for identity in given.identities:
            effective_rules(identity, known)
        gone = dice.sample(given.objects, 4)
        new = dice.sample(other.objects, 6)
        changed = known.changed(gone={ObjectRef.of(one).identity for one in gone}, others=RbacObjects.of(new))
        fresh = RbacObjects.of([*(one for one in given.objects if one not in gone), *new])
        for identity in (*given.identities, *other.identities):
            assert effective_rules(identity, changed) == effective_rules(identity, fresh)
            assert changed.roles_held(identity) == fresh.roles_held(identity)
        assert {key: set(found) for key, found in changed.bound().items() if found} == {
            key: set(found) for key, found in fresh.bound().items()
        }
        assert known == RbacObjects.of(given.objects)


def test_a_role_that_is_added_is_collected_at_once() -> None:
    collecting = cluster_role("all", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]})
    known = RbacObjects.of([collecting, bound("all", user("ann"))])
    identity = subjects(known)[0].identity
    assert not effective_rules(identity, known).grants
    known.add(RbacObjects.of([cluster_role("new", rule("get"), labels={"x": "y"})]))
    assert len(effective_rules(identity, known).grants) == 1


def test_the_places_of_a_role_are_told_apart() -> None:
    known = RbacObjects.of(
        [
            role("a", "r", rule("get")),
            cluster_role("r", rule("list")),
            bound("r", group("g"), namespace="a", kind="Role"),
            bound("r", group("g"), namespace="b"),
        ]
    )
    (subject,) = subjects(known)
    assert known.roles_held(subject.identity) == {("a", ("a", "r")), ("b", ("", "r"))}
    assert known.roles_held(subject.identity, {"", "b"}) == {("b", ("", "r"))}
    assert known.bindings_to(("", "r")) == (("RoleBinding", "b", "r-binding"),)
