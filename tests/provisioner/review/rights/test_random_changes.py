"""S24: whoever gets a critical power by a change is told: by name, with a role that they hold, or with a combination.

Each random change is judged once more account by account, as if nobody stood for anybody else.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from provisioner import rbac
from provisioner.rbac import RbacObjects, RbacSubject
from provisioner.review.base.facts import Facts
from provisioner.review.checks.own.power import find_judge
from provisioner.review.frame import report
from provisioner.review.rights.permission_words import ref_of
from provisioner.values import Action, Finding, ObjectRef, Plan, Severity
from tests.support.provisioner.contents import content_with, planned
from tests.support.provisioner.roles import API, account, bound, cluster_role, group, of_kubernetes, role, rule, user

PLACES = ("shop", "kube-system", "pratique", "n-1", "n-2")
RULES = (
    rule("get list", "configmaps"),
    rule("get list watch", "secrets"),
    rule("create", "secrets"),
    rule("get", "secrets", names="mine"),
    rule("create", "pods"),
    rule("create", "clusterrolebindings", group=API),
    rule("bind", "clusterroles", group=API),
    rule("create", "serviceaccounts/token"),
    rule("delete", "pods deployments", group="apps"),
    rule("*", "*", group="*"),
)
LABELS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"mine": "yes"},
    {f"{API}/aggregate-to-edit": "true"},
    {f"{API}/aggregate-to-view": "true"},
)
COLLECTING = cluster_role("all", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"mine": "yes"}}]})
NAMES = ("one", "two", "three")


def roles(dice: random.Random) -> list[dict[str, Any]]:
    """A role of each name, and a Role in the shop."""
    made = [
        cluster_role(name, *dice.sample(RULES[:9], dice.randint(0, 2)), labels=dice.choice(LABELS)) for name in NAMES
    ]
    return [*made, role("shop", "local", *dice.sample(RULES, 1))]


def bindings(dice: random.Random) -> list[dict[str, Any]]:
    """Of some and of many, to the roles of the bundle, to those of others and to those of Kubernetes."""
    found = []
    for number in range(12):
        wanted = dice.choice((*NAMES, "all", "edit", "view", "beside-1", "beside-2", "local"))
        place = "shop" if wanted == "local" else dice.choice(("", "", *PLACES))
        count = dice.choice((1, 2, 9))
        those = [
            (user(f"u-{each}"), group(f"g-{each}"), account(f"a-{each}", dice.choice(PLACES)))[dice.randrange(3)]
            for each in dice.sample(range(20), count)
        ]
        one = bound(wanted, *those, namespace=place, kind="Role" if wanted == "local" else "ClusterRole")
        one["metadata"]["name"] = f"binding-{number}"
        found.append(one)
    return found


def change(dice: random.Random) -> Facts:
    old, new = roles(dice), roles(dice)
    own = bindings(dice)[:2]
    for number, one in enumerate(own):
        one["metadata"]["name"] = f"own-{number}"
    beside = [cluster_role(f"beside-{number}", *dice.sample(RULES[:9], 2)) for number in (1, 2)]
    live = (*of_kubernetes(), COLLECTING, *old, *beside, *bindings(dice))
    before = {str(ObjectRef.of(one)): one for one in old}
    actions = [planned(one, Action.UPDATE, before=before[str(ObjectRef.of(one))], uid="u") for one in new]
    actions += [planned(one, Action.CREATE) for one in own]
    return Facts(content_with(*new, *own), Plan(tuple(actions), "x"), content_with(*old), live_rbac=live)


def sides(facts: Facts) -> tuple[RbacObjects, RbacObjects]:
    """Sorted out anew, so that nothing that a report has kept is believed."""
    assert facts.live_rbac is not None
    results = {ObjectRef.of(one.after).identity: one.after for one in facts.plan.actions if one.after}
    kept = [one for one in facts.live_rbac if ObjectRef.of(one).identity not in results]
    return RbacObjects.of(list(facts.live_rbac)), RbacObjects.of([*kept, *results.values()])


def is_told(subject: RbacSubject, finding: Finding, known: RbacObjects) -> bool:
    """Whether a finding is about somebody: as its object, among its accounts, or as one who holds its role."""
    ref = finding.ref
    if ref == ref_of(subject) or str(subject) in map(str, finding.evidence.get("accounts", ())):
        return True
    if ref is None or ref.kind not in ("ClusterRole", "Role") or "accounts" in finding.evidence:
        return False
    held = {key for _, key in known.roles_held(subject.identity)}
    # The last of several built-in roles stands for all that are named.
    names = [name for name in ("admin", "edit", "view") if name in finding.message.partition(" will ")[0]]
    return bool(held & {rbac.role_key_of(ref), *(("", name) for name in names)})


def assert_told(seed: int) -> int:
    facts = change(random.Random(seed))
    before, after = sides(facts)
    found = [finding for finding in report(facts).findings if finding.is_new and finding.severity is Severity.CRITICAL]
    count = 0
    for subject in rbac.subjects(after):
        old, new = (rbac.effective_rules(subject.identity, side) for side in (before, after))
        known = {(one.id, one.scope, one.sense) for one in rbac.risks(old, sensitive=["shop"])}
        for risk in rbac.risks(new, sensitive=["shop"]):
            if risk.severity is not Severity.CRITICAL or risk.implied_by or risk.is_among(known):
                continue
            count += 1
            about = [one for one in found if is_told(subject, one, after)]
            assert any(risk.id in (one.rule, *one.also) for one in about), (seed, str(subject), risk.sense)
    return count


def assert_power_told(seed: int) -> int:
    facts = change(random.Random(seed))
    judge, (before, after) = find_judge(facts), sides(facts)
    found = [finding for finding in report(facts).findings if finding.rule == "OWN-PRATIQUE-03" and finding.is_new]
    critical = [one for one in found if one.severity is Severity.CRITICAL]
    count = 0
    for subject in rbac.subjects(after):
        old, new = (rbac.effective_rules(subject.identity, side).grants for side in (before, after))
        powers = set(judge.after(new)) - set(judge.before(old))
        if any(power.means is not rbac.Means.DESTROY for power in powers):
            count += 1
            roles_of_bundle = {str(one.ref) for one in critical if one.ref and one.ref.name in (*NAMES, "local")}
            assert roles_of_bundle or any(is_told(subject, one, after) for one in critical), (seed, str(subject))
    return count


def test_S24_nobody_who_gets_a_critical_power_by_a_change_is_passed_over() -> None:
    assert sum(map(assert_told, range(12))) > 20
    assert sum(map(assert_power_told, range(6))) > 10


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(100, 1_100, 100))
def test_S24_nobody_is_passed_over_in_many_changes(first: int) -> None:
    assert sum(map(assert_told, range(first, first + 100))) > 150
    assert sum(map(assert_power_told, range(first, first + 100))) > 150
