"""Rows are locked in one order, that of approvals.locks: else two transactions wait for each other."""

from __future__ import annotations

from pathlib import Path

import pytest

import approvals
from tests.support.approvals.databases import MEETING, SETTING, manage

pytestmark = pytest.mark.thorough


HOLDING_THE_DEPLOYMENT = {
    "an apply that succeeds": ('begun(name, "applying", "applying")', "apply._finish(request, [], [])"),
    "an apply that is given up": ('begun(name, "applying", "applying")', 'apply.give_up(request, PratiqueError("x"))'),
    "a restore that begins": ('begun(name, "restoring", "active")', 'restore._begin(request, target(request), "w")'),
    "a restore that is not needed": (
        'begun(name, "restoring", "active", healthy_at=timezone.now())',
        'restore._begin(request, target(request), "w")',
    ),
    "a restore that succeeds": ('begun(name, "restoring", "failed")', "restore._finish(request, target(request), [])"),
    "a restore that is given up": (
        'begun(name, "restoring", "failed")',
        'restore.give_up(request, PratiqueError("x"))',
    ),
}
HOLDING_THE_REQUEST = {
    "what is overdue": (
        "overdue(name)",
        'observe._keep(request.deployment_id, request.revision, Health(HealthState.FAILED, "is ill"))',
    ),
    "another wish": ("in_review(name)", "pivots.see(cluster=cluster, obj=seen(name, 2), writer=None)"),
    "a deletion": ("in_review(name)", "pivots.forget(cluster=cluster, uid=name)"),
    "a revocation": (
        "going_back(name)",
        'marks._revoke(request.deployment_id, 1, "leaks", Decider(Identity("ada"), "", "ada"), "rest")',
    ),
}


@pytest.mark.parametrize("migrated_database_url", ["postgres"], indirect=True)
def test_who_waits_for_a_lock_holds_none_that_comes_after_it(migrated_database_url: str) -> None:
    tables = {"on_deployment": HOLDING_THE_DEPLOYMENT, "on_request": HOLDING_THE_REQUEST}
    cases = [(lock, name, *parts) for lock, table in tables.items() for name, parts in table.items()]
    lines = [
        f"name = {name!r}\nrequest = {setting}\nprint(name, {lock}(request, lambda: {act}))"
        for lock, name, setting, act in cases
    ]
    said = manage(migrated_database_url, "shell", "-v", "0", "-c", "\n".join([SETTING, *lines])).splitlines()
    assert said == [f"{name} waits holding nothing" for _, name, *_ in cases]


# Where a deployment follows packages of catalogs, their rows come before the revision and the audit chain, by key.
FOLLOWING = """
from approvals.models import FollowedPackage
def on_packages(request, act):
    for position in range(2):
        FollowedPackage.objects.create(deployment=request.deployment, position=position, catalog="hub", package="p")
    first, second = FollowedPackage.objects.filter(deployment=request.deployment).order_by("pk")
    FollowedPackage.objects.filter(pk=first.pk).update(problem="stands behind the second one now")
    rows = "approvals_followedpackage p, approvals_revision r"
    later = f"FROM {rows} WHERE p.id={second.pk} AND r.request_id={request.pk} FOR UPDATE NOWAIT"
    chain = f"SELECT pg_try_advisory_xact_lock({audit.CHAIN_LOCK})"
    return meanwhile(f"SELECT 1 FROM approvals_followedpackage WHERE id={first.pk} FOR UPDATE", f"{chain} {later}", act)
"""


@pytest.mark.parametrize("migrated_database_url", ["postgres"], indirect=True)
def test_packages_that_are_followed_are_locked_before_the_revision_and_the_audit(migrated_database_url: str) -> None:
    lines = [
        f"name = {name!r}\nrequest = {setting}\nprint(name, on_packages(request, lambda: {act}))"
        for name, (setting, act) in HOLDING_THE_DEPLOYMENT.items()
        if name != "a restore that begins"
    ]
    words = "\n".join([SETTING, FOLLOWING, *lines])
    said = manage(migrated_database_url, "shell", "-v", "0", "-c", words).splitlines()
    assert said == [
        f"{name} waits holding nothing" for name in HOLDING_THE_DEPLOYMENT if name != "a restore that begins"
    ]


INVENTORY = """
from functools import partial
from approvals.ledger import claims, drifts
from approvals.models import InventoryItem
from approvals.steps.records.inventory import DatabaseInventory
from provisioner.values import ObjectRef
request = begun("an intent", "applying", "applying")
def opened():
    found = DatabaseInventory(request.deployment, request.revision, partial(claims.check_held, request.pk, "w"))
    return found, found.items()
first, second = (ObjectRef("", "v1", "ConfigMap", "n", name) for name in ("a", "b"))
opened()[0].intend_many([(first, "n"), (second, "m")])
keys = list(InventoryItem.objects.order_by("pk").values_list("pk", flat=True))
# The first row now stands behind the second one in the table.
InventoryItem.objects.filter(pk=keys[0]).update(look_at=timezone.now())
def rows():
    return list(InventoryItem.objects.order_by("pk"))
def on_first(act):
    rows = "FROM approvals_inventoryitem WHERE id="
    return meanwhile(f"SELECT 1 {rows}{keys[0]} FOR UPDATE", f"SELECT true {rows}{keys[1]} FOR UPDATE NOWAIT", act)
"""
# Whoever writes several rows of the inventory, by what they wait for while the first of them is somebody else's.
SEVERAL_ITEMS = {
    "an intent of what stands": 'opened()[0].intend_many([(second, "m"), (first, "n")])',
    "an intent of another nonce": 'opened()[0].intend_many([(second, "m"), (first, "another")])',
    "a mark": "drifts.mark(keys[::-1], timezone.now())",
    "a postponement": "drifts.postpone(rows()[::-1], timezone.now())",
    "what nobody compares any more": "drifts.forget(request.deployment)",
    "what is healthy": "observe._note(rows()[::-1])",
}
OPTIONAL = """
from approvals.ledger import optionals
from approvals.models import OptionalObject
request = begun("left out", "applied", "active")
optionals.keep(request.revision, [ObjectRef("", "v1", "ConfigMap", "n", name) for name in ("a", "b")])
lefts = list(OptionalObject.objects.order_by("pk").values_list("pk", flat=True))
OptionalObject.objects.filter(pk=lefts[0]).update(problem="waits")
def on_first_left(act):
    rows = "FROM approvals_optionalobject WHERE id="
    return meanwhile(f"SELECT 1 {rows}{lefts[0]} FOR UPDATE", f"SELECT true {rows}{lefts[1]} FOR UPDATE NOWAIT", act)
"""
STIRRED = """
for name in ("stirred", "stirred too"):
    pivots.see(cluster=cluster, obj=seen(name, 1), writer=None)
stirred = list(BundleDeployment.objects.filter(name__startswith="stirred").order_by("pk").values_list("pk", flat=True))
BundleDeployment.objects.filter(pk=stirred[0]).update(drift_problem="nobody can tell")
def on_first_stirred(act):
    rows = "FROM approvals_bundledeployment WHERE id="
    return meanwhile(
        f"SELECT 1 {rows}{stirred[0]} FOR UPDATE", f"SELECT true {rows}{stirred[1]} FOR UPDATE NOWAIT", act
    )
print("deployments that stir", on_first_stirred(lambda: drifts.stir(stirred[::-1])))
"""
SEVERAL_OPTIONAL = {
    "objects whose API appeared": "optionals.mark(OptionalObject.objects.all(), timezone.now())",
    "objects that wait": 'optionals.wait(OptionalObject.objects.all(), "not yet", None)',
}


@pytest.mark.parametrize("migrated_database_url", ["postgres"], indirect=True)
def test_several_rows_of_one_table_are_locked_by_their_key(migrated_database_url: str) -> None:
    lines = [f"print({name!r}, on_first(lambda: {act}))" for name, act in SEVERAL_ITEMS.items()]
    lines += [OPTIONAL, *(f"print({name!r}, on_first_left(lambda: {act}))" for name, act in SEVERAL_OPTIONAL.items())]
    said = manage(
        migrated_database_url, "shell", "-v", "0", "-c", "\n".join([SETTING, INVENTORY, *lines, STIRRED])
    ).splitlines()
    names = [*SEVERAL_ITEMS, *SEVERAL_OPTIONAL, "deployments that stir"]
    assert said == [f"{name} waits holding nothing" for name in names]


# The first has inserted rows and now commits: PostgreSQL asks then for the rows that they refer to, which the second
# has locked while it waits for what the first one holds.
NEW_OBJECTS = """
from functools import partial
from approvals.ledger import claims
from approvals.steps.records.inventory import DatabaseInventory
from provisioner.values import ObjectRef
request = begun("new objects", "applying", "applying")
def intend(pause):
    def check_held():
        claims.check_held(request.pk, "w")
        pause()
    inventory = DatabaseInventory(request.deployment, request.revision, check_held)
    inventory.intend_many([(ObjectRef("", "v1", "ConfigMap", "n", "made"), "n")])
print(meet(intend, lambda: pivots.see(cluster=cluster, obj=seen("new objects", 2), writer=None)))
"""
NEW_DRIFT = """
from approvals import wake
from approvals.ledger import drifts
from approvals.models import InventoryItem
from provisioner.cluster.drift import DriftKind, ObjectDrift
from provisioner.cluster.drift import Strikes
request = overdue("new drift")
item = InventoryItem.objects.create(
    deployment=request.deployment, revision=request.revision, version="v1", kind="ConfigMap", name="a", nonce="n", uid="u"
)
def note(pause):
    with before(wake, "deployment", pause):
        drifts.note(
            item=item, revision=request.revision, drift=ObjectDrift(DriftKind.GONE, (), "is gone"), problem="",
            strikes=Strikes(), now=timezone.now(),
        )
def keep():
    observe._keep(request.deployment_id, request.revision, Health(HealthState.FAILED, "is ill"))
print(meet(note, keep))
"""
NEW_REVIEW = """
from types import SimpleNamespace
from django.db import transaction
from approvals.access import Caller, Credential
from approvals.gate.facts import PolicyFacts
from approvals.ledger.moves import locked
from approvals.models import Policy
from approvals.services.policies import rows
from approvals.steps import evaluate
request = in_review("new review")
Request.objects.filter(pk=request.pk).update(state="in_review", subject_digest="s", content_id="d")
ada = User.objects.create_user("ada")
policy = Policy.objects.create(
    name="p", author=ada, editor=ada, created_at=timezone.now(), changed_at=timezone.now(), version=1
)
def approve(pause):
    original = audit.record
    def record_then_pause(**named):
        original(**named)
        pause()
    evaluate.audit = SimpleNamespace(record=record_then_pause)
    with transaction.atomic():
        evaluate._approve_as(PolicyFacts(policy.pk, 1, "p", True, "approves", "as it says"), locked(request.pk))
print(meet(approve, lambda: rows._save(Caller(ada, Credential.SHELL), "browser", 1, name="p", cluster=cluster)))
"""
# What the old one followed is let go, which the audit tells; then what the new one follows is begun.
NEW_NAMESAKE = """
from approvals.ledger import references
def following(name, uid, generation, branch):
    meta = {"name": name, "uid": uid, "generation": generation, "resourceVersion": "1"}
    git = {"repository": "https://example.com/a.git", "ref": {"branch": branch}}
    return {"metadata": meta, "spec": {**SPEC, "sources": [{"kind": "git", "git": git, "interval": f"{generation}h"}]}}
def see(*words):
    pivots.see(cluster=cluster, obj=following(*words), writer=None)
see("made again", "old", 1, "a")
see("neighbour", "neighbour", 1, "b")
def make_again(pause):
    with before(references, "follow", pause):
        see("made again", "new", 1, "b")
print(meet(make_again, lambda: see("neighbour", "neighbour", 2, "b")))
"""
MEETINGS = {"objects": NEW_OBJECTS, "drift": NEW_DRIFT, "a review": NEW_REVIEW, "a namesake": NEW_NAMESAKE}


@pytest.mark.parametrize("migrated_database_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("meeting", MEETINGS)
def test_rows_that_are_added_wait_for_nobody_who_has_locked_what_they_refer_to(
    migrated_database_url: str, meeting: str
) -> None:
    said = manage(migrated_database_url, "shell", "-v", "0", "-c", SETTING + MEETING + MEETINGS[meeting])
    assert said.strip() == "done, done"


def test_nobody_locks_rows_by_another_door() -> None:
    root = Path(approvals.__file__).parent
    locking = {str(path.relative_to(root)) for path in root.rglob("*.py") if "select_for_update" in path.read_text()}
    assert locking == {"locks.py"}
