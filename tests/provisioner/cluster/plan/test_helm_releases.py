"""Taking over what Helm has installed: what is planned, what changes hands, and what stays somebody else's."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner.cluster.field_owners import owners
from provisioner.cluster.plan.helm_releases import LABEL, NAME, NAMESPACE, handover_patch
from provisioner.values import Action, HelmRelease
from tests.support.built import built
from tests.support.kubernetes.controlplane import ControlPlane
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, actions, failures

HELM = "helm"


def record_of(scene: Scene, number: int = 1, release: str = "shop") -> dict[str, Any]:
    meta = {
        "name": f"sh.helm.release.v1.{release}.v{number}",
        "namespace": scene.namespace,
        "labels": {"owner": "helm", "name": release, "version": str(number)},
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "type": "helm.sh/release.v1",
        "stringData": {"release": "H4s"},
    }


def release(scene: Scene) -> HelmRelease:
    return HelmRelease("shop", scene.namespace)


def managers(scene: Scene, obj: dict[str, Any]) -> dict[str, frozenset[tuple[str, ...]]]:
    return {one.manager: one.paths for one in owners(scene.live(obj) or {}) if not one.subresource}


@pytest.mark.proof
def test_the_whole_release_changes_hands(scene: Scene) -> None:
    old, new = scene.deployment(image="example.com/web:1"), scene.deployment(image="example.com/web:2")
    settings, token = scene.config_map(size="1"), scene.secret(word="old")
    uids = {kind: scene.of_helm(obj)["metadata"]["uid"] for kind, obj in (("web", old), ("map", settings))}
    scene.of_helm(token)
    for number in (1, 2):
        scene.cluster.create(record_of(scene, number))
    scene.cluster.create(record_of(scene, 1, release="other"))
    wished = [new, settings, scene.secret(word="new")]
    planned = scene.plan(*wished, helm_release=release(scene))
    assert actions(planned) == {
        "Deployment/web": Action.ADOPT,
        "ConfigMap/settings": Action.ADOPT,
        "Secret/token": Action.ADOPT,
        "Secret/sh.helm.release.v1.shop.v1": Action.DELETE,
        "Secret/sh.helm.release.v1.shop.v2": Action.DELETE,
    }
    assert not [one for one in planned.actions if one.problem]
    assert "of the Helm release shop" in planned.actions[-1].notes[0]
    web = action_of(planned, new)
    assert web.before and web.after
    assert NAME in web.before["metadata"]["annotations"]
    assert NAME not in (web.after["metadata"].get("annotations") or {})
    outcomes = scene.apply(planned, *wished, helm_release=release(scene))
    assert failures(outcomes) == []
    live: Any = scene.live(new)
    assert live["metadata"]["uid"] == uids["web"], "it is the same object"
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/web:2"
    assert NAME not in (live["metadata"].get("annotations") or {})
    assert HELM not in managers(scene, settings), "nothing is left of Helm's"
    assert "labels" not in (scene.live(settings) or {})["metadata"] or LABEL not in live["metadata"]["labels"]
    assert scene.live(record_of(scene, 2)) is None
    assert scene.live(record_of(scene, 1, release="other"))
    secret: Any = scene.live(token)
    assert secret["data"] == {"word": "bmV3"}


def test_what_a_later_revision_drops_is_dropped(scene: Scene) -> None:
    """Were Helm still an owner of it, it would stay."""
    scene.of_helm(scene.config_map(size="1", colour="red"))
    wished = scene.config_map(size="1", colour="red")
    assert (
        failures(scene.apply(scene.plan(wished, helm_release=release(scene)), wished, helm_release=release(scene)))
        == []
    )
    assert failures(scene.deploy(scene.config_map(size="1"))) == []
    live: Any = scene.live(wished)
    assert live["data"] == {"size": "1"}


def test_fields_that_only_the_release_has_are_named_in_the_plan(scene: Scene) -> None:
    """They stay as they are and are nobody's: without a word in the plan nobody would see that the two differ."""
    old = scene.deployment(image="example.com/web:1")
    old["spec"]["template"]["spec"]["priorityClassName"] = "high"
    scene.of_helm(old)
    scene.of_helm(scene.config_map(size="1", colour="red"))
    new = [scene.deployment(image="example.com/web:1"), scene.config_map(size="1")]
    planned = scene.plan(*new, helm_release=release(scene))
    said = {one.ref.name: one.notes[-1].partition("does not have ")[2] for one in planned.actions}
    left = ": left as before, and nobody's"
    assert said == {"web": f"spec.template.spec.priorityClassName{left}", "settings": f"data.colour{left}"}


@pytest.mark.parametrize("name", ["other", ""])
def test_what_another_release_holds_or_nobody_named_is_left_alone(scene: Scene, name: str) -> None:
    scene.of_helm(scene.config_map(size="1"), release="other" if name else "shop")
    named = {"helm_release": release(scene)} if name else {}
    planned = scene.plan(scene.config_map(size="2"), **named)
    assert planned.actions[0].problem_code == "already-exists"


def test_the_record_of_a_release_of_which_nothing_is_taken_over_stays(scene: Scene) -> None:
    scene.cluster.create(record_of(scene))
    planned = scene.plan(scene.config_map(), helm_release=release(scene))
    assert actions(planned) == {"ConfigMap/settings": Action.CREATE}


def test_marks_with_the_namespace_of_another_release_are_not_enough(scene: Scene) -> None:
    scene.of_helm(scene.config_map(size="1"))
    planned = scene.plan(scene.config_map(size="2"), helm_release=HelmRelease("shop", "elsewhere"))
    assert planned.actions[0].problem_code == "already-exists"


def test_fields_of_others_are_not_taken_along(scene: Scene) -> None:
    wished = scene.config_map(size="2", colour="blue")
    scene.of_helm(scene.config_map(size="1", colour="red"))
    scene.edit(wished, lambda live: live["data"].update(colour="green"), manager="kubectl-edit")
    planned = scene.plan(wished, helm_release=release(scene))
    assert planned.actions[0].problem_code == "field-conflict"
    assert "kubectl-edit" in planned.actions[0].server_words


def test_replicas_that_an_autoscaler_writes_stay(scene: Scene) -> None:
    wished = scene.deployment(replicas=2)
    scene.of_helm(scene.deployment(replicas=2))
    scene.cluster.create(scene.autoscaler())
    scene.edit(wished, lambda live: live["spec"].update(replicas=3), manager="autoscaler")
    planned = scene.plan(wished, helm_release=release(scene))
    assert (planned.actions[0].action, planned.actions[0].problem) == (Action.ADOPT, "")
    assert failures(scene.apply(planned, wished, helm_release=release(scene))) == []
    live: Any = scene.live(wished)
    assert live["spec"]["replicas"] == 3


def test_what_changes_after_the_plan_is_not_taken_over(scene: Scene) -> None:
    wished = scene.namespaced("v1", "ConfigMap", "settings", data={"size": "2"}, immutable=False)
    scene.of_helm(scene.config_map(size="1"))
    planned = scene.plan(wished, helm_release=release(scene))
    live: Any = scene.live(wished)
    scene.cluster.replace({**live, "immutable": None, "data": {"size": "7", "more": "x"}}, field_manager=HELM)
    assert failures(scene.apply(planned, wished, helm_release=release(scene))) == []
    found: Any = scene.live(wished)
    assert found["data"] == {"size": "2", "more": "x"}, "what was planned, and no more"


def test_what_would_now_be_more_than_was_planned_is_left_to_helm(scene: Scene) -> None:
    wished = scene.deployment(image="example.com/web:2")
    scene.of_helm(scene.deployment(image="example.com/web:2"))
    planned = scene.plan(wished, helm_release=release(scene))
    live: Any = scene.live(wished)
    live["spec"]["template"]["spec"]["containers"][0]["image"] = "example.com/web:3"
    scene.cluster.replace(live, field_manager=HELM)
    (failed,) = failures(scene.apply(planned, wished, helm_release=release(scene)))
    assert "applying now would change more than planned" in failed
    found: Any = scene.live(wished)
    assert found["metadata"]["annotations"][NAME] == "shop"


def test_what_helm_has_let_go_of_is_carried_on_after_a_crash(scene: Scene) -> None:
    """The worker died between the two writes: the object is ours by its fields, and in no inventory."""
    wished = scene.config_map(size="2")
    live = scene.of_helm(scene.config_map(size="1", colour="red"))
    planned = scene.plan(wished, helm_release=release(scene))
    forced = scene.cluster.apply(wished, field_manager=MANAGER, dry_run=True, force=True).object
    scene.cluster.merge(handover_patch(live, forced, MANAGER), field_manager=MANAGER)
    assert managers(scene, wished)[MANAGER] == {("data", "size")}
    assert failures(scene.apply(planned, wished, helm_release=release(scene))) == []
    found: Any = scene.live(wished)
    assert found["data"] == {"size": "2", "colour": "red"}
    left = managers(scene, wished)[HELM]
    assert (("data", "colour") in left, ("data", "size") in left) == (True, False), "what nobody approved stays Helm's"


@pytest.mark.thorough
@pytest.mark.controlplane
@pytest.mark.parametrize("side", ["true", "false"])
def test_what_helm_itself_has_installed(
    real_scene: Scene, controlplane: ControlPlane, tmp_path: Path, side: str
) -> None:
    scene, helm = real_scene, built("helm4", "helm.sh/helm/v4/cmd/helm")
    assert helm is not None
    templates = tmp_path / "chart/templates"
    templates.mkdir(parents=True)
    (tmp_path / "chart/Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    old = [scene.deployment(image="example.com/web:1"), scene.config_map(size="1", colour="red"), scene.service()]
    for number, obj in enumerate(old):
        (templates / f"{number}.yaml").write_text(yaml.safe_dump(obj))
    (tmp_path / "kubeconfig").write_text(controlplane.kubeconfig("admin"))

    def run(*words: str) -> str:
        command = [str(helm), *words, "--kubeconfig", str(tmp_path / "kubeconfig"), "--namespace", scene.namespace]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=scaled(120), env={"HOME": str(tmp_path)}
        )
        return done.stdout

    run("install", "shop", str(tmp_path / "chart"), f"--server-side={side}")
    assert "shop" in run("list")
    new = [scene.deployment(image="example.com/web:2"), scene.config_map(size="1"), scene.service()]
    planned = scene.plan(*new, helm_release=release(scene))
    assert [(str(one.ref), one.problem) for one in planned.actions if one.problem] == []
    assert failures(scene.apply(planned, *new, helm_release=release(scene))) == []
    live: Any = scene.live(new[0])
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/web:2"
    image = ("spec", "template", "spec", "containers", "[name=main]", "image")
    assert image not in managers(scene, new[0]).get(HELM, ())
    assert "shop" not in run("list")
    assert failures(scene.deploy(*new[:2])) == [], "and what a later revision has no more goes"
    assert scene.live(new[2]) is None


def test_what_flux_drives_is_left_to_flux(scene: Scene) -> None:
    obj = scene.config_map(size="1")
    marks = {NAME: "shop", NAMESPACE: scene.namespace}
    labels = {LABEL: "Helm", "helm.toolkit.fluxcd.io/name": "shop"}
    scene.cluster.create({**obj, "metadata": {**obj["metadata"], "annotations": marks, "labels": labels}})
    planned = scene.plan(scene.config_map(size="2"), helm_release=release(scene))
    assert planned.actions[0].problem_code == "already-exists"
    assert "the Flux HelmRelease shop" in planned.actions[0].server_words


def test_the_record_goes_with_a_later_request_where_the_first_ended_midway(scene: Scene) -> None:
    scene.cluster.create(record_of(scene))
    other = record_of(scene)
    scene.cluster.create({**other, "metadata": {**other["metadata"], "name": "not-a-record"}})
    assert failures(scene.deploy(scene.config_map())) == []
    planned = scene.plan(scene.config_map(), helm_release=release(scene), is_taking_over=True)
    assert [one.ref.name for one in planned.actions if one.action is Action.DELETE] == ["sh.helm.release.v1.shop.v1"]
