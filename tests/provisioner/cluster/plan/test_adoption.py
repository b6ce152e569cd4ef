"""Objects that exist before us: left alone with their owner's name, or adopted as planned and approved.

Those of boxcutter's own rows are in apply/test_boxcutter_objects.py.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from provisioner.cluster.annotations import NONCE
from provisioner.cluster.inventory import MemoryInventory
from provisioner.cluster.plan.adoption import present_owner
from provisioner.cluster.plan.helm_releases import IS_HELM, LABEL, NAME, NAMESPACE
from provisioner.cluster.plan.planned_actions import plan_digest
from provisioner.errors import AlreadyExists, FieldConflict, PreconditionFailed
from provisioner.json_values import uid_of
from provisioner.values import Action, CollisionProtection, InventoryItem, ObjectRef, OutcomeState, Plan
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, failures, states

PREVENT, IF_NO_CONTROLLER = CollisionProtection.PREVENT, CollisionProtection.IF_NO_CONTROLLER
HELM = {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "prod"}


def existing(scene: Scene, *, labels: dict[str, str] | None = None, **meta: Any) -> dict[str, Any]:
    """What somebody made before us: a ConfigMap, created as kubectl creates."""
    obj = scene.config_map(a="1")
    obj["metadata"] |= {"labels": labels or {}, **meta}
    return scene.cluster.create(obj, field_manager="kubectl-create")


def owner(scene: Scene, *, is_controller: bool) -> list[dict[str, Any]]:
    """A reference to an object that exists, or the garbage collector would take what it owns."""
    made = scene.cluster.create(scene.service("shop"))
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "name": "shop",
            "uid": made["metadata"]["uid"],
            "controller": is_controller,
        }
    ]


def of_a_controller(scene: Scene) -> dict[str, Any]:
    return existing(scene, ownerReferences=owner(scene, is_controller=True))


def of_an_owner(scene: Scene) -> dict[str, Any]:
    return existing(scene, ownerReferences=owner(scene, is_controller=False))


def of_helm(scene: Scene) -> dict[str, Any]:
    return existing(scene, labels={"app.kubernetes.io/managed-by": "Helm"}, annotations=HELM)


def of_nobody(scene: Scene) -> dict[str, Any]:
    return existing(scene)


def of_pratique(scene: Scene) -> dict[str, Any]:
    return existing(scene, annotations={NONCE: "n" * 32})


def of_flux(scene: Scene) -> dict[str, Any]:
    return existing(scene, labels={"kustomize.toolkit.fluxcd.io/name": "apps"})


@pytest.mark.parametrize(
    ("make", "protection", "words"),
    [
        pytest.param(of_an_owner, PREVENT, "owned by Service shop", id="prevent, with an owner"),
        pytest.param(of_pratique, IF_NO_CONTROLLER, "another deployment of Pratique", id="of Pratique"),
        pytest.param(of_helm, IF_NO_CONTROLLER, "the Helm release shop", id="of Helm"),
        pytest.param(of_flux, IF_NO_CONTROLLER, "the Flux Kustomization apps", id="of Flux"),
    ],
)
def test_an_object_that_exists_is_a_problem_that_names_its_owner(scene: Scene, make, protection, words):
    before = make(scene)
    obj = scene.config_map(a="1")
    planned = scene.plan(obj, scene.secret(), collision_protection=protection)
    found = action_of(planned, obj)
    assert (found.action, found.problem_code, found.before) == (Action.ADOPT, AlreadyExists.code, None)
    assert words in found.server_words
    with pytest.raises(PreconditionFailed, match="does not belong to this deployment"):
        scene.apply(planned, obj, scene.secret())
    assert scene.live(obj) == before
    assert scene.live(scene.secret()) is None


@pytest.mark.parametrize("make", [of_nobody, of_an_owner])
def test_an_object_that_nobody_holds_is_adopted_as_planned(scene: Scene, make):
    before = make(scene)
    obj = scene.config_map(a="1", b="2")
    planned = scene.plan(obj, collision_protection=IF_NO_CONTROLLER)
    found = action_of(planned, obj)
    assert (found.action, found.problem, found.is_proved) == (Action.ADOPT, "", True)
    assert (found.uid, found.resource_version) == tuple(before["metadata"][key] for key in ("uid", "resourceVersion"))
    assert (found.before["data"], found.after["data"]) == ({"a": "1"}, {"a": "1", "b": "2"})
    assert states(scene.apply(planned, obj)) == {"ConfigMap/settings": OutcomeState.DONE}
    live, item = scene.live(obj), scene.inventory.items()[ObjectRef.of(obj).identity]
    assert live["data"] == {"a": "1", "b": "2"}
    assert (live["metadata"]["uid"], live["metadata"]["annotations"][NONCE]) == (item.uid, item.nonce)
    assert (MANAGER, "Apply") in [(one["manager"], one["operation"]) for one in live["metadata"]["managedFields"]]
    assert action_of(scene.plan(obj), obj).action is Action.NONE


def test_an_object_that_has_all_we_want_is_still_an_adoption(scene: Scene):
    of_nobody(scene)
    planned = scene.plan(obj := scene.config_map(a="1"), collision_protection=IF_NO_CONTROLLER)
    assert action_of(planned, obj).action is Action.ADOPT
    assert failures(scene.apply(planned, obj)) == []
    assert ObjectRef.of(obj).identity in scene.inventory.items()


def test_an_adoption_takes_no_field_from_anybody(scene: Scene):
    """Adoption is never forced; the plan names who owns what, and nothing at all is written."""
    before = of_nobody(scene)
    obj = scene.config_map(a="mine")
    planned = scene.plan(obj, scene.secret(), collision_protection=IF_NO_CONTROLLER)
    found = action_of(planned, obj)
    assert (found.action, found.problem_code) == (Action.ADOPT, FieldConflict.code)
    assert "kubectl-create owns .data.a" in found.server_words
    with pytest.raises(PreconditionFailed, match="cannot be applied"):
        scene.apply(planned, obj, scene.secret())
    assert (scene.live(obj), scene.live(scene.secret())) == (before, None)


def test_a_field_that_cannot_change_makes_no_adoption_a_replacement(scene: Scene):
    scene.cluster.create(scene.job(image="example.com/migrate:1"), field_manager=MANAGER)
    found = action_of(scene.plan(obj := scene.job(image="b"), collision_protection=IF_NO_CONTROLLER), obj)
    assert found.action is Action.ADOPT
    assert found.problem


def test_what_is_being_deleted_is_not_adopted(scene: Scene):
    existing(scene, finalizers=["example.com/hold"])
    obj = scene.config_map(a="1")
    scene.cluster.delete(ObjectRef.of(obj))
    found = action_of(scene.plan(obj, collision_protection=IF_NO_CONTROLLER), obj)
    live = scene.live(obj)
    scene.cluster.replace({**live, "metadata": {**live["metadata"], "finalizers": []}})
    assert (found.action, found.problem_code) == (Action.ADOPT, PreconditionFailed.code)


def test_S09_a_foreign_secret_is_never_adopted_because_that_tells_of_its_values(scene: Scene):
    scene.cluster.create(scene.secret(password="same"))
    plans = [
        action_of(scene.plan(one, collision_protection=IF_NO_CONTROLLER), one)
        for one in (scene.secret(password="same"), scene.secret(password="guess"))
    ]
    assert plans[0] == plans[1]
    assert "never adopted" in plans[0].problem
    assert "same" not in json.dumps(plans[0].after)


def test_a_namespace_of_kubernetes_is_never_adopted(scene: Scene):
    obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-public"}}
    found = action_of(scene.plan(obj, collision_protection=IF_NO_CONTROLLER), obj)
    assert "belongs to Kubernetes itself" in found.problem


def test_what_is_ours_needs_no_adoption(scene: Scene):
    scene.deploy(scene.config_map(a="1"))
    found = action_of(scene.plan(obj := scene.config_map(a="2"), collision_protection=IF_NO_CONTROLLER), obj)
    assert found.action is Action.UPDATE


def test_the_same_name_made_again_by_a_controller_is_not_taken_by_a_later_revision(scene: Scene):
    obj = scene.config_map(a="1")
    scene.deploy(obj)
    scene.cluster.delete(ObjectRef.of(obj))
    of_a_controller(scene)
    assert "its controller" in action_of(scene.plan(obj, collision_protection=IF_NO_CONTROLLER), obj).server_words


def test_an_object_made_again_after_the_plan_is_not_adopted(scene: Scene):
    of_nobody(scene)
    planned = scene.plan(obj := scene.config_map(a="1"), collision_protection=IF_NO_CONTROLLER)
    scene.cluster.delete(ObjectRef.of(obj))
    again = of_nobody(scene)
    (outcome,) = scene.apply(planned, obj)
    assert (outcome.state, outcome.uid) == (OutcomeState.FAILED, "")
    assert scene.live(obj) == again
    assert not scene.inventory.items()[ObjectRef.of(obj).identity].uid


def test_an_object_that_gets_a_controller_after_the_plan_is_not_adopted(scene: Scene):
    made = of_nobody(scene)
    planned = scene.plan(obj := scene.config_map(a="1"), collision_protection=IF_NO_CONTROLLER)
    references = owner(scene, is_controller=True)
    taken = scene.cluster.replace({**made, "metadata": {**made["metadata"], "ownerReferences": references}})
    (outcome,) = scene.apply(planned, obj)
    assert (outcome.state, outcome.uid) == (OutcomeState.FAILED, "")
    assert "its controller Service shop" in outcome.server_words
    assert scene.live(obj) == taken


def test_an_object_that_moved_elsewhere_after_the_plan_is_still_adopted(scene: Scene):
    made = of_nobody(scene)
    planned = scene.plan(obj := scene.config_map(a="1", b="2"), collision_protection=IF_NO_CONTROLLER)
    scene.cluster.replace({**made, "data": {"a": "1", "c": "3"}})
    assert failures(scene.apply(planned, obj)) == []
    assert scene.live(obj)["data"] == {"a": "1", "b": "2", "c": "3"}


def test_an_adoption_that_would_change_more_than_was_planned_is_not_done(scene: Scene):
    made = of_nobody(scene)
    planned = scene.plan(obj := scene.config_map(a="1", b="2"), collision_protection=IF_NO_CONTROLLER)
    moved = scene.cluster.replace({**made, "data": {"c": "3"}})
    (outcome,) = scene.apply(planned, obj)
    assert (outcome.state, outcome.uid) == (OutcomeState.FAILED, "")
    assert "would also change data.a" in outcome.server_words
    assert scene.live(obj) == moved


@pytest.mark.parametrize("missing", ["uid", "resource_version"])
def test_an_adoption_that_names_no_object_is_refused(scene: Scene, missing):
    before = of_nobody(scene)
    (one,) = scene.plan(obj := scene.config_map(a="1"), collision_protection=IF_NO_CONTROLLER).actions
    blank = replace(one, **{missing: ""})
    with pytest.raises(PreconditionFailed, match="name the object"):
        scene.apply(Plan((blank,), plan_digest([blank])), obj)
    assert scene.live(obj) == before


def test_a_custom_resource_is_adopted_like_anything_else(scene: Scene):
    bundle = [scene.definition(), scene.widget("first", size=1), scene.widget(size=1)]
    scene.deploy(*bundle[:2])
    scene.cluster.create(scene.widget(size=1), field_manager="somebody")
    planned = scene.plan(*bundle, collision_protection=IF_NO_CONTROLLER)
    assert action_of(planned, scene.widget()).action is Action.ADOPT
    assert failures(scene.apply(planned, *bundle)) == []
    assert action_of(scene.plan(*bundle), scene.widget()).action is Action.NONE


@pytest.mark.parametrize("is_written", [False, True], ids=["before the write", "after the write"])
def test_S20_an_adoption_that_a_crash_interrupted_is_carried_on(scene: Scene, is_written):
    made = of_nobody(scene)
    planned = scene.plan(obj := scene.config_map(a="1", b="2"), collision_protection=IF_NO_CONTROLLER)
    ref = ObjectRef.of(obj)
    scene.inventory = MemoryInventory([InventoryItem(ref, "n1")])
    if is_written:
        meta = {**obj["metadata"], "annotations": {NONCE: "n1"}, "uid": made["metadata"]["uid"]}
        scene.cluster.apply({**obj, "metadata": meta}, field_manager=MANAGER)
    assert failures(scene.apply(planned, obj)) == []
    assert scene.inventory.items()[ref.identity] == InventoryItem(ref, "n1", made["metadata"]["uid"])
    assert scene.live(obj)["metadata"]["annotations"][NONCE] == "n1"


LABELLED = {"labels": {LABEL: IS_HELM}}
ARGO = "argocd.argoproj.io/tracking-id"


def written_by(*managers: str) -> dict[str, Any]:
    """As managedFields say who wrote the label of a chart's template."""
    fields = {"f:metadata": {"f:labels": {f"f:{LABEL}": {}}}}
    return {"managedFields": [{"manager": one, "fieldsV1": fields} for one in managers]}


def test_a_release_of_helm_is_planned_with_its_whole_change_and_its_owner(scene: Scene) -> None:
    scene.of_helm(scene.deployment(image="example.com/web:1"))
    wished = scene.deployment(image="example.com/web:2")
    planned = action_of(scene.plan(wished, supposes_adoption=True), wished)
    assert (planned.action, planned.problem, planned.is_proved) == (Action.UPDATE, "", True)
    assert planned.owner == f"the Helm release shop in {scene.namespace}"
    images = [
        one["spec"]["template"]["spec"]["containers"][0]["image"] for one in (planned.before, planned.after) if one
    ]
    assert images == ["example.com/web:1", "example.com/web:2"]


def test_what_would_stay_as_it_is_is_no_change_and_has_its_owner_all_the_same(scene: Scene) -> None:
    scene.cluster.create(scene.config_map(size="1"), field_manager="kubectl-create")
    wished = scene.config_map(size="1")
    planned = action_of(scene.plan(wished, supposes_adoption=True), wished)
    assert (planned.action, planned.owner) == (Action.NONE, "nobody by their marks (written by kubectl-create)")


def test_what_an_old_bundle_names_and_another_runs_is_no_conflict_with_its_owner(scene: Scene) -> None:
    live = scene.of_helm(scene.deployment(image="example.com/web:1"))
    scene.inventory.confirm(ObjectRef.of(live), "", uid_of(live))
    wished = scene.deployment(image="example.com/web:2")
    planned = action_of(scene.plan(wished, supposes_adoption=True), wished)
    assert (planned.action, planned.problem, planned.is_proved) == (Action.UPDATE, "", True)
    assert planned.owner == f"the Helm release shop in {scene.namespace}"


def test_what_is_ours_and_has_our_mark_is_planned_as_ever(scene: Scene) -> None:
    scene.deploy(scene.config_map(size="1"))
    wished = scene.config_map(size="2")
    planned = action_of(scene.plan(wished, supposes_adoption=True), wished)
    assert (planned.action, planned.owner) == (Action.UPDATE, "")


def test_without_being_told_so_an_object_of_others_is_never_tried(scene: Scene) -> None:
    scene.of_helm(scene.config_map(size="1"))
    wished = scene.config_map(size="2")
    planned = action_of(scene.plan(wished), wished)
    assert (planned.action, planned.before, planned.owner) == (Action.ADOPT, None, "")
    assert planned.problem


def test_what_the_server_refuses_stands_beside_the_owner(scene: Scene) -> None:
    scene.of_helm(scene.deployment(image="example.com/web:1"))
    wished = scene.deployment(image="example.com/web:2")
    wished["spec"]["replicas"] = "many"
    planned = action_of(scene.plan(wished, supposes_adoption=True), wished)
    assert planned.problem
    assert planned.owner.startswith("the Helm release shop")


def test_of_a_secret_only_which_keys_change_is_told(scene: Scene) -> None:
    scene.of_helm(scene.secret(word="old", same="x"))
    wished = scene.secret(word="new", same="x")
    planned = action_of(scene.plan(wished, supposes_adoption=True), wished)
    assert planned.after is not None
    assert planned.after["data"] == {"same": "unchanged", "word": "changed"}


def test_a_report_for_several_tells_what_would_come_of_what_stands_in_the_way(scene: Scene) -> None:
    scene.of_helm(scene.deployment(image="example.com/web:1"))
    wished = scene.deployment(image="example.com/web:2")
    planned = action_of(scene.plan(wished, tells_adoption=True), wished)
    assert (planned.action, planned.problem_code) == (Action.ADOPT, AlreadyExists.code)
    assert planned.problem.endswith("exists already and does not belong to this deployment")
    assert planned.owner == f"the Helm release shop in {scene.namespace}"
    images = [
        one["spec"]["template"]["spec"]["containers"][0]["image"] for one in (planned.before, planned.after) if one
    ]
    assert images == ["example.com/web:1", "example.com/web:2"]


def test_what_the_server_refuses_of_what_stands_in_the_way_is_its_own_words(scene: Scene) -> None:
    scene.of_helm(scene.deployment(image="example.com/web:1"))
    wished = scene.deployment(image="example.com/web:2")
    wished["spec"]["replicas"] = "many"
    planned = action_of(scene.plan(wished, tells_adoption=True), wished)
    assert planned.problem.endswith("exists already and does not belong to this deployment")
    assert "if it were adopted" in planned.server_words


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_S09_a_secret_is_never_tried_and_nothing_is_for_who_is_unknown(scene: Scene, kind: str) -> None:
    make = scene.secret if kind == "Secret" else scene.config_map
    scene.of_helm(make(word="old"))
    wished = make(word="new")
    is_known = kind == "Secret"
    planned = action_of(scene.plan(wished, tells_adoption=True, may_try_foreign=is_known), wished)
    assert (planned.action, planned.before, planned.is_proved) == (Action.ADOPT, None, False)
    assert planned.owner == f"the Helm release shop in {scene.namespace}"


def test_the_plan_is_the_same_whether_what_stands_in_the_way_differs_or_not(scene: Scene) -> None:
    scene.of_helm(scene.config_map(size="1"))
    digests = {
        scene.plan(scene.config_map(size=size), tells_adoption=tells).digest for size in "12" for tells in (True, False)
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("meta", "owner"),
    [
        ({"annotations": {NAME: "shop", NAMESPACE: "prod"}}, "the Helm release shop in prod"),
        ({"annotations": {NAME: "shop"}}, "the Helm release shop"),
        ({"annotations": {ARGO: "web:apps/Deployment"}}, "the Argo CD application web:apps/Deployment"),
        ({"annotations": {ARGO: "web", NAME: "shop", NAMESPACE: "prod"}}, "the Argo CD application web"),
        ({"managedFields": [{"manager": "b"}, {"manager": "a"}]}, "nobody by their marks (written by a, b)"),
        ({}, "nobody by their marks"),
        ({**LABELLED, **written_by("helm")}, "the Helm release that manages it"),
        (LABELLED, "the Helm release that manages it"),
        (
            {**LABELLED, **written_by("kubectl-client-side-apply")},
            "nobody by their marks (written by kubectl-client-side-apply)",
        ),
        ({**LABELLED, **written_by("kubectl", "argocd-controller")}, "the Helm release that manages it"),
    ],
)
def test_the_owner_is_told_by_marks_and_else_by_who_wrote(meta: dict[str, Any], owner: str) -> None:
    assert present_owner({"metadata": meta}) == owner


@pytest.mark.parametrize("marks", [{"managedFields": [{"manager": "kube-apiserver"}]}, {"labels": {ARGO: "web"}}])
def test_a_namespace_of_kubernetes_itself_belongs_to_nobody_else(marks: dict[str, Any]) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", **marks}}
    assert present_owner(namespace) == "Kubernetes itself"
    assert present_owner({**namespace, "metadata": {"name": "shop", **marks}}) != "Kubernetes itself"
