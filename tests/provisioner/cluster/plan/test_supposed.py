"""Who reviews a bundle beside what Helm or kubectl runs sees the change as if these objects were adopted."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.compare import uid_of
from provisioner.cluster.plan.helm_releases import IS_HELM, LABEL, NAME, NAMESPACE
from provisioner.cluster.plan.ownership import present_owner
from provisioner.errors import AlreadyExists
from provisioner.values import Action, ObjectRef
from tests.support.provisioner.cluster_scene import Scene, action_of

LABELLED = {"labels": {LABEL: IS_HELM}}
ARGO = "argocd.argoproj.io/tracking-id"


def written_by(*managers: str) -> dict[str, Any]:
    """As managedFields say who wrote the label of a chart's template."""
    fields = {"f:metadata": {"f:labels": {f"f:{LABEL}": {}}}}
    return {"managedFields": [{"manager": one, "fieldsV1": fields} for one in managers]}


def installed(scene: Scene, obj: dict[str, Any], manager: str = "helm") -> dict[str, Any]:
    """As `helm install` leaves an object: by an update, with its marks."""
    meta = {**obj["metadata"], "annotations": {NAME: "shop", NAMESPACE: scene.namespace}}
    return scene.cluster.create({**obj, "metadata": meta}, field_manager=manager)


def test_a_release_of_helm_is_planned_with_its_whole_change_and_its_owner(scene: Scene) -> None:
    installed(scene, scene.deployment(image="example.com/web:1"))
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
    live = installed(scene, scene.deployment(image="example.com/web:1"))
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
    installed(scene, scene.config_map(size="1"))
    wished = scene.config_map(size="2")
    planned = action_of(scene.plan(wished), wished)
    assert (planned.action, planned.before, planned.owner) == (Action.ADOPT, None, "")
    assert planned.problem


def test_what_the_server_refuses_stands_beside_the_owner(scene: Scene) -> None:
    installed(scene, scene.deployment(image="example.com/web:1"))
    wished = scene.deployment(image="example.com/web:2")
    wished["spec"]["replicas"] = "many"
    planned = action_of(scene.plan(wished, supposes_adoption=True), wished)
    assert planned.problem
    assert planned.owner.startswith("the Helm release shop")


def test_of_a_secret_only_which_keys_change_is_told(scene: Scene) -> None:
    installed(scene, scene.secret(word="old", same="x"))
    wished = scene.secret(word="new", same="x")
    planned = action_of(scene.plan(wished, supposes_adoption=True), wished)
    assert planned.after is not None
    assert planned.after["data"] == {"same": "unchanged", "word": "changed"}


def test_a_report_for_several_tells_what_would_come_of_what_stands_in_the_way(scene: Scene) -> None:
    installed(scene, scene.deployment(image="example.com/web:1"))
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
    installed(scene, scene.deployment(image="example.com/web:1"))
    wished = scene.deployment(image="example.com/web:2")
    wished["spec"]["replicas"] = "many"
    planned = action_of(scene.plan(wished, tells_adoption=True), wished)
    assert planned.problem.endswith("exists already and does not belong to this deployment")
    assert "if it were adopted" in planned.server_words


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_S09_a_secret_is_never_tried_and_nothing_is_for_who_is_unknown(scene: Scene, kind: str) -> None:
    make = scene.secret if kind == "Secret" else scene.config_map
    installed(scene, make(word="old"))
    wished = make(word="new")
    is_known = kind == "Secret"
    planned = action_of(scene.plan(wished, tells_adoption=True, may_try_foreign=is_known), wished)
    assert (planned.action, planned.before, planned.is_proved) == (Action.ADOPT, None, False)
    assert planned.owner == f"the Helm release shop in {scene.namespace}"


def test_the_plan_is_the_same_whether_what_stands_in_the_way_differs_or_not(scene: Scene) -> None:
    installed(scene, scene.config_map(size="1"))
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
