"""What apply does to real API servers, and what it refuses to do."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

import pytest

from provisioner.cluster.annotations import NONCE, RevisionOwner, Tracking
from provisioner.cluster.apply.run import Terms, apply, recover
from provisioner.cluster.compare import ALTERED
from provisioner.cluster.inventory import MemoryInventory
from provisioner.cluster.plan.planned_actions import plan_digest
from provisioner.errors import PlanChanged, PreconditionFailed
from provisioner.values import Action, Identity, InventoryItem, ObjectRef, OutcomeState, Plan
from tests.support.kubernetes.live import wait_until
from tests.support.provisioner.cluster_scene import MANAGER, Scene, a_bundle, action_of, content, failures, states

DONE, FAILED, SKIPPED, UNCHANGED = OutcomeState.DONE, OutcomeState.FAILED, OutcomeState.SKIPPED, OutcomeState.UNCHANGED


@pytest.mark.proof
def test_a_bundle_is_installed_whole_and_recorded(scene: Scene):
    outcomes = scene.deploy(*a_bundle(scene))
    assert failures(outcomes) == []
    assert {one.state for one in outcomes} == {DONE}
    items = scene.inventory.items()
    for obj in a_bundle(scene):
        live = scene.live(obj)
        assert live is not None
        item = items[ObjectRef.of(obj).identity]
        assert (live["metadata"]["uid"], live["metadata"]["annotations"][NONCE]) == (item.uid, item.nonce)


def test_every_field_we_set_is_ours_by_apply_alone(scene: Scene):
    scene.deploy(obj := scene.config_map(a="1"))
    scene.deploy(scene.config_map(a="2"))
    fields = scene.live(obj)["metadata"]["managedFields"]
    assert [(one["manager"], one["operation"]) for one in fields] == [(MANAGER, "Apply")]


@pytest.mark.proof
def test_a_second_deploy_of_the_same_writes_nothing(scene: Scene):
    scene.deploy(*a_bundle(scene))
    versions = [scene.live(obj)["metadata"]["generation"] for obj in a_bundle(scene)[:2]]
    # Of a Secret nobody is told whether it changes, so that it is written in any case (S38).
    written = {name for name, state in states(scene.deploy(*a_bundle(scene))).items() if state != UNCHANGED}
    assert {name.partition("/")[0] for name in written} == {"Secret"}
    assert [scene.live(obj)["metadata"]["generation"] for obj in a_bundle(scene)[:2]] == versions


@pytest.mark.proof
def test_an_upgrade_updates_replaces_and_deletes(scene: Scene):
    scene.deploy(*a_bundle(scene), scene.config_map("old"))
    first_job = scene.live(scene.job())["metadata"]["uid"]
    outcomes = scene.deploy(*a_bundle(scene, "2"))
    assert failures(outcomes) == []
    assert {f"{one.ref.kind}/{one.ref.name}": one.action for one in outcomes} == {
        f"CustomResourceDefinition/widgets.{scene.group}": Action.NONE,
        "ConfigMap/settings": Action.UPDATE,
        "Secret/token": Action.UPDATE,
        "Service/web": Action.NONE,
        "Deployment/web": Action.UPDATE,
        "Job/migrate": Action.REPLACE,
        "Widget/one": Action.UPDATE,
        "ConfigMap/old": Action.DELETE,
    }
    assert scene.live(scene.config_map("old")) is None
    assert scene.live(scene.job())["metadata"]["uid"] != first_job
    assert scene.live(scene.widget())["spec"]["size"] == 2
    assert ObjectRef.of(scene.config_map("old")).identity not in scene.inventory.items()
    assert failures(scene.deploy()) == []
    assert scene.inventory.items() == {}
    assert [scene.live(obj) for obj in a_bundle(scene)[2:]] == [None] * 5


def test_a_namespace_and_what_is_in_it_come_in_one_bundle(scene: Scene):
    extra = f"{scene.namespace}-extra"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": extra}}
    inside = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": extra},
        "data": {"a": "1"},
    }
    assert failures(scene.deploy(inside, namespace)) == []
    assert scene.live(inside)["data"] == {"a": "1"}


def test_whoever_asks_is_told_before_objects_are_given_time_to_settle(scene: Scene):
    waits: list[list[str | int]] = []
    seen: list[str] = []
    wished = scene.content(scene.definition(), scene.widget())
    outcomes = apply(
        scene.cluster,
        wished,
        scene.plan(scene.definition(), scene.widget()),
        scene.inventory,
        Terms(MANAGER, before_wait=lambda refs: waits.append([*seen, len(refs)])),
    )
    while one := next(outcomes, None):
        seen.append(one.ref.kind)
    assert waits[0] == ["CustomResourceDefinition", 1]
    assert seen == ["CustomResourceDefinition", "Widget"]


@pytest.mark.proof
def test_S25_a_gate_that_closes_ends_the_apply_before_its_phase(scene: Scene):
    def gate(phase: str) -> None:
        if phase == "deploy":
            raise PreconditionFailed("paused")

    with pytest.raises(PreconditionFailed, match="paused"):
        scene.deploy(scene.deployment(), scene.secret(), before_phase=gate)
    assert scene.live(scene.secret()) is not None
    assert scene.live(scene.deployment()) is None


@pytest.mark.proof
def test_promise_9_somebody_elses_object_is_never_adopted_and_nothing_is_touched(scene: Scene):
    scene.cluster.create(scene.config_map(theirs="1"))
    with pytest.raises(PreconditionFailed, match="does not belong to this deployment"):
        scene.deploy(scene.secret(), scene.config_map(theirs="1"))
    assert scene.live(scene.secret()) is None
    assert scene.inventory.items() == {}


def test_who_is_first_to_create_an_object_is_named_to_the_other(scene: Scene):
    planned = scene.plan(obj := scene.config_map(a="1"))
    made = Tracking.of("theirs", RevisionOwner("first", 3)).put_on(obj["metadata"])
    scene.cluster.apply({**obj, "metadata": made}, field_manager=MANAGER)
    (outcome,) = scene.apply(planned, obj)
    assert "does not belong to this deployment" in outcome.message
    assert outcome.server_words == f"BundleDeployment first, revision 3; written by {MANAGER}"


@pytest.mark.proof
def test_promise_9_an_object_that_appears_after_the_plan_is_not_adopted_either(scene: Scene):
    planned = scene.plan(obj := scene.config_map(a="1"))
    scene.cluster.apply(obj, field_manager=MANAGER)
    (outcome,) = scene.apply(planned, obj)
    assert outcome.state is FAILED
    assert "does not belong to this deployment" in outcome.message
    assert outcome.server_words == f"written by {MANAGER}"
    assert NONCE not in scene.live(obj)["metadata"].get("annotations", {})


@pytest.mark.proof
def test_an_update_of_an_object_made_again_by_somebody_else_is_refused(scene: Scene):
    scene.deploy(scene.config_map(a="1"))
    planned = scene.plan(obj := scene.config_map(a="2"))
    scene.cluster.delete(ObjectRef.of(obj))
    scene.cluster.create(scene.config_map(a="theirs"))
    (outcome,) = scene.apply(planned, obj)
    assert outcome.state is FAILED
    assert scene.live(obj)["data"] == {"a": "theirs"}


def test_an_update_of_an_object_that_is_gone_does_not_create_it(scene: Scene):
    scene.deploy(scene.config_map(a="1"))
    planned = scene.plan(obj := scene.config_map(a="2"))
    scene.cluster.delete(ObjectRef.of(obj))
    (outcome,) = scene.apply(planned, obj)
    assert outcome.state is FAILED
    assert "is gone since the plan was made" in outcome.message
    assert scene.live(obj) is None


@pytest.mark.proof
def test_a_field_that_somebody_took_after_the_plan_is_not_taken_back(scene: Scene):
    scene.deploy(scene.config_map(a="1"))
    planned = scene.plan(obj := scene.config_map(a="1", b="mine"))
    scene.cluster.apply(scene.config_map(b="theirs"), field_manager="somebody")
    (outcome,) = scene.apply(planned, obj)
    assert outcome.state is FAILED
    assert "another manager owns data.b" in outcome.message
    assert outcome.server_words == "somebody owns .data.b"
    assert scene.live(obj)["data"]["b"] == "theirs"


def test_a_drift_that_the_plan_did_not_show_is_not_undone(scene: Scene):
    """Between plan and apply somebody removed a field of ours: putting it back was not reviewed."""
    scene.deploy(scene.config_map(a="1", keep="yes"))
    planned = scene.plan(obj := scene.config_map(a="2", keep="yes"))
    live = scene.live(obj)
    scene.cluster.replace({**live, "data": {"a": "1"}}, field_manager="somebody")
    (outcome,) = scene.apply(planned, obj)
    assert outcome.state is FAILED
    assert "would change more than planned" in outcome.message
    assert "data.keep" in outcome.server_words
    assert scene.live(obj)["data"] == {"a": "1"}


def test_a_failure_skips_the_later_phases_and_says_why(scene: Scene):
    planned = scene.plan(secret := scene.secret(), web := scene.deployment(), service := scene.service())
    scene.cluster.create(service)
    outcomes = scene.apply(planned, secret, web, service)
    assert states(outcomes) == {"Secret/token": DONE, "Service/web": FAILED, "Deployment/web": SKIPPED}
    assert "Service" in outcomes[-1].message


def test_what_one_object_of_a_phase_suffers_does_not_stop_the_others_of_that_phase(scene: Scene):
    planned = scene.plan(first := scene.config_map("a"), second := scene.config_map("b"))
    scene.cluster.create(first)
    assert states(scene.apply(planned, first, second)) == {"ConfigMap/a": FAILED, "ConfigMap/b": DONE}
    held = {item.ref.name: bool(item.uid) for item in scene.inventory.items().values()}
    assert held == {"a": False, "b": True}


@pytest.mark.parametrize("nonce", [None, "n" * 32], ids=["removed", "another"])
def test_our_mark_on_an_object_that_somebody_spoilt_does_not_lose_the_object(scene: Scene, nonce):
    scene.deploy(obj := scene.config_map(a="1"))
    live = scene.live(obj)
    scene.cluster.replace({**live, "metadata": {**live["metadata"], "annotations": {NONCE: nonce} if nonce else {}}})
    assert failures(scene.deploy(scene.config_map(a="2"))) == []
    item = scene.inventory.items()[ObjectRef.of(obj).identity]
    assert (scene.live(obj)["data"], scene.live(obj)["metadata"]["uid"]) == ({"a": "2"}, item.uid)
    assert failures(scene.deploy()) == []
    assert scene.live(obj) is None


@pytest.mark.parametrize("tamper", ["digest", "action", "missing", "extra"])
def test_a_plan_that_is_not_the_one_of_this_content_touches_nothing(scene: Scene, tamper):
    obj = scene.config_map(a="1")
    planned = scene.plan(obj)
    other = replace(planned.actions[0], ref=replace(planned.actions[0].ref, name="other"))
    actions = {
        "digest": planned.actions,
        "action": (replace(planned.actions[0], action=Action.DELETE),),
        "missing": (),
        "extra": (*planned.actions, other),
    }[tamper]
    digest = "sha256:0" if tamper == "digest" else plan_digest(actions)
    with pytest.raises(PlanChanged):
        scene.apply(Plan(actions, digest), obj)
    assert scene.live(obj) is None


def test_an_update_of_what_the_inventory_does_not_hold_is_refused(scene: Scene):
    scene.deploy(scene.config_map(a="1"))
    planned = scene.plan(obj := scene.config_map(a="2"))
    scene.inventory = MemoryInventory()
    (outcome,) = scene.apply(planned, obj)
    assert outcome.state is FAILED
    assert scene.live(obj)["data"] == {"a": "1"}


@pytest.mark.proof
def test_everything_is_written_as_the_installer(scene: Scene):
    """The installer may write ConfigMaps and nothing else; the plan is made with more rights on purpose."""
    rbac = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]}]
    admin = scene.cluster
    for obj in (
        scene.namespaced(f"{rbac}/v1", "Role", "installer", rules=rules),
        scene.namespaced(
            f"{rbac}/v1",
            "RoleBinding",
            "installer",
            roleRef={"kind": "Role", "name": "installer", "apiGroup": rbac},
            subjects=[{"kind": "ServiceAccount", "name": "installer", "namespace": scene.namespace}],
        ),
    ):
        admin.create(obj)
    objects = [scene.config_map(a="1"), scene.service()]
    planned = scene.plan(*objects)
    installer = Identity.of_service_account(scene.namespace, "installer")
    scene.until_may(installer, "patch", "configmaps")
    scene.cluster = admin.acting_as(installer)
    outcomes = scene.apply(planned, *objects)
    assert states(outcomes) == {"ConfigMap/settings": DONE, "Service/web": FAILED}
    assert f"system:serviceaccount:{scene.namespace}:installer" in outcomes[-1].message


def test_system_namespaces_are_never_deleted(scene: Scene):
    ref = ObjectRef("", "v1", "Namespace", "", "kube-node-lease")
    live = scene.cluster.get(ref)
    assert live is not None
    scene.inventory = MemoryInventory([InventoryItem(ref, "n", live["metadata"]["uid"])])
    planned = scene.plan()
    with pytest.raises(PreconditionFailed, match="belongs to Kubernetes itself"):
        scene.apply(planned)
    unflagged = Plan((replace(planned.actions[0], problem=""),), planned.digest)
    (outcome,) = scene.apply(unflagged)
    scene.inventory = MemoryInventory()
    assert outcome.state is FAILED
    assert "deletionTimestamp" not in scene.cluster.get(ref)["metadata"]


def test_an_object_that_a_finalizer_holds_stays_in_the_inventory(scene: Scene):
    scene.deploy(obj := scene.config_map())
    live = scene.live(obj)
    held = {**live, "metadata": {**live["metadata"], "finalizers": ["example.com/hold"]}}
    scene.cluster.replace(held)
    (outcome,) = scene.deploy(wait_seconds=0.3)
    assert outcome.state is FAILED
    assert "waits for its finalizers" in outcome.message
    assert "example.com/hold" in outcome.server_words
    assert ObjectRef.of(obj).identity in scene.inventory.items()
    live = scene.live(obj)
    scene.cluster.replace({**live, "metadata": {**live["metadata"], "finalizers": []}})
    assert failures(scene.deploy()) == []
    assert scene.inventory.items() == {}


def test_S20_what_a_crash_left_is_found_though_its_version_is_not_served_any_more(scene: Scene):
    scene.deploy(scene.definition(), scene.widget("other"))
    widget, nonce = scene.widget(), "n" * 32
    marked = {**widget, "metadata": {**widget["metadata"], "annotations": {NONCE: nonce}}}
    made = scene.cluster.apply(marked, field_manager=MANAGER).object
    gone = replace(ObjectRef.of(widget), version="v1beta1")
    scene.inventory.intend(gone, nonce)
    found = recover(scene.cluster, scene.inventory)[gone.identity]
    assert found == InventoryItem(gone, nonce, made["metadata"]["uid"])
    assert scene.inventory.items()[gone.identity] == found


@pytest.mark.proof
def test_S20_after_a_crash_only_the_nonce_written_ahead_proves_what_is_ours(scene: Scene):
    def with_nonce(obj, nonce):
        return {**obj, "metadata": {**obj["metadata"], "annotations": {NONCE: nonce}}}

    mine, theirs, absent = scene.config_map("mine"), scene.config_map("theirs"), scene.config_map("absent")
    scene.cluster.apply(with_nonce(mine, "n1"), field_manager=MANAGER)
    scene.cluster.apply(with_nonce(theirs, "another"), field_manager=MANAGER)
    scene.inventory = MemoryInventory(InventoryItem(ObjectRef.of(obj), "n1") for obj in (mine, theirs, absent))
    found = recover(scene.cluster, scene.inventory)
    assert found == scene.inventory.items()
    held = {item.ref.name: bool(item.uid) for item in found.values()}
    assert held == {"mine": True, "theirs": False, "absent": False}


def test_S25_who_ends_an_apply_has_nothing_more_begun(scene: Scene):
    """What is recorded ahead and not begun stays unwritten, and carrying on finds all of it."""
    bundle = [scene.config_map(f"part-{number:03}") for number in range(140)]
    maps = scene.cluster.resource_of("", "v1", "ConfigMap")
    assert maps is not None

    def written() -> int:
        return sum(one["metadata"]["name"].startswith("part-") for one in scene.cluster.list(maps, scene.namespace))

    planned = scene.plan(*bundle)
    outcomes = apply(scene.cluster, content(bundle), planned, scene.inventory, Terms(MANAGER))
    next(outcomes)
    outcomes.close()
    before = written(), len(scene.inventory.items())
    # How far it had come when it was ended is a race; that it goes no further is the rule.
    assert before[0] <= before[1] < len(bundle)
    time.sleep(0.5)  # No event says that nothing comes: too short a time would only miss it.
    assert (written(), len(scene.inventory.items())) == before
    assert failures(scene.apply(planned, *bundle)) == []
    assert written() == len(bundle)


def test_outcomes_come_in_the_order_of_the_apply(scene: Scene):
    """Also that of an object which cannot even be prepared."""
    bundle = [scene.config_map(f"part-{number}") for number in range(4)]
    assert failures(scene.deploy(*bundle)) == []
    changed = [{**one, "data": {"version": "2"}} for one in bundle]
    planned, lost = scene.plan(*changed), ObjectRef.of(bundle[2])
    scene.inventory.forget(lost, scene.inventory.items()[lost.identity].uid)
    outcomes = scene.apply(planned, *changed)
    assert [one.ref.name for one in outcomes] == ["part-0", "part-1", "part-2", "part-3"]
    assert [one.state for one in outcomes] == [DONE, DONE, FAILED, DONE]


def test_S10_what_an_admission_policy_changes_behind_the_dry_run_is_a_failure(real_scene: Scene):
    """A mutating policy that leaves dry-runs alone: the plan does not show it, the answer to the write does."""
    scene = real_scene
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": scene.namespace},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ],
            },
            "matchConditions": [{"name": "really", "expression": "!request.dryRun"}],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": "Object{data: {'smuggled': 'yes'}}"},
                }
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": scene.namespace},
        "spec": {"policyName": scene.namespace},
    }
    for one in (policy, binding):
        scene.cluster.create(one)
    try:
        wait_until(lambda: _is_altered(scene))
        planned = scene.plan(obj := scene.config_map("one", a="1"))
        assert "smuggled" not in action_of(planned, obj).after["data"]
        (outcome,) = scene.apply(planned, obj)
    finally:
        for one in (binding, policy):
            scene.cluster.delete(ObjectRef.of(one))
    assert outcome.state is FAILED
    assert outcome.message == ALTERED
    assert outcome.server_words == 'data.smuggled was approved as absent and is "yes"'
    assert outcome.uid


def _is_altered(scene: Scene) -> bool:
    """Whether the server goes by the policy; only what is created for real can tell."""
    made = scene.cluster.create(scene.config_map(f"probe-{uuid.uuid4().hex[:8]}"))
    return "smuggled" in (made.get("data") or {})
