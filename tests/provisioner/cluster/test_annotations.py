"""What we write on an object beside the approved content: to be found by, never to be believed, never in the way."""

from __future__ import annotations

import re
from typing import Any

import pytest

from provisioner.cluster.annotations import (
    NO_TRACKING,
    NONCE,
    OWNER,
    OWNER_KIND,
    OWNER_NAME,
    RevisionOwner,
    Tracking,
    keep_words,
    label_value,
)
from provisioner.cluster.compare import cleaned, masked
from provisioner.values import Action, ObjectRef, OutcomeState
from tests.support.provisioner.cluster_scene import Scene, action_of, failures, states

LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def tracking_on(scene: Scene, obj: dict[str, Any]) -> tuple[str, str, str]:
    found = Tracking.on(scene.live(obj) or {})
    return found.labels[OWNER_KIND], found.labels[OWNER_NAME], found.annotations[OWNER]


def test_who_owns_an_object_and_the_revision_that_wrote_it_stand_on_it(scene: Scene) -> None:
    settings, web = scene.config_map(one="1"), scene.deployment()
    assert not failures(scene.deploy(settings, web, owner=RevisionOwner("harbour", 6)))
    assert tracking_on(scene, settings) == ("BundleDeployment", "harbour", "BundleDeployment harbour, revision 6")
    template = (scene.live(web) or {})["spec"]["template"]["metadata"]
    assert template["labels"] == {"app": "web"}


def test_only_what_a_revision_writes_names_it(scene: Scene) -> None:
    settings, other = scene.config_map(one="1"), scene.config_map("other", one="1")
    scene.deploy(settings, other, owner=RevisionOwner("harbour", 6))
    changed = scene.config_map(one="2")
    planned = scene.plan(changed, other)
    assert action_of(planned, other).action is Action.NONE
    assert not failures(scene.apply(planned, changed, other, owner=RevisionOwner("harbour", 7)))
    assert [tracking_on(scene, one)[2][-1] for one in (settings, other)] == ["7", "6"]


def test_an_object_without_them_is_as_it_was_and_gets_them_when_it_is_written(scene: Scene) -> None:
    settings = scene.config_map(one="1")
    scene.deploy(settings)
    assert action_of(scene.plan(settings), settings).action is Action.NONE
    scene.deploy(scene.config_map(one="2"), owner=RevisionOwner("harbour", 2))
    assert tracking_on(scene, settings)[1] == "harbour"


@pytest.mark.parametrize("part", ["labels", "annotations"])
def test_what_somebody_writes_over_them_stays_and_stops_nothing(scene: Scene, part: str) -> None:
    settings = scene.config_map(one="1")
    scene.deploy(settings, owner=RevisionOwner("harbour", 6))
    theirs = {"labels": {OWNER_NAME: "mine"}, "annotations": {OWNER: "mine"}}[part]
    meta = {"name": settings["metadata"]["name"], "namespace": scene.namespace, part: theirs}
    scene.cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}, field_manager="somebody", force=True
    )
    changed = scene.config_map(one="2")
    done = scene.deploy(changed, owner=RevisionOwner("harbour", 7))
    assert [one.state for one in done] == [OutcomeState.DONE]
    live = scene.live(changed) or {}
    assert live["data"] == {"one": "2"}
    assert live["metadata"][part][next(iter(theirs))] == "mine"


def test_a_bundle_that_brings_them_itself_is_marked_as_ours(scene: Scene) -> None:
    """As what `kubectl get -o yaml` gave out has them."""
    settings = scene.config_map(one="1")
    settings["metadata"] |= {"labels": {OWNER_NAME: "another", "app": "web"}, "annotations": {OWNER: "x", NONCE: "y"}}
    done = scene.deploy(settings, owner=RevisionOwner("harbour", 1))
    assert set(states(done).values()) == {OutcomeState.DONE}
    assert tracking_on(scene, settings)[1] == "harbour"
    assert (scene.live(settings) or {})["metadata"]["labels"]["app"] == "web"
    assert action_of(scene.plan(settings), settings).action is Action.NONE


@pytest.mark.parametrize("has_labels", [True, False])
def test_a_job_has_the_labels_that_it_would_have_without_them(scene: Scene, has_labels: bool) -> None:
    """The API server gives it those of its pod template, unless it has any."""
    job = scene.job()
    job["spec"]["template"]["metadata"] = {"labels": {"app": "web"}}
    if has_labels:
        job["metadata"]["labels"] = {"own": "one"}
    assert not failures(scene.deploy(job, owner=RevisionOwner("harbour", 1)))
    live = scene.live(job) or {}
    labels = {key: value for key, value in live["metadata"]["labels"].items() if "batch" not in key}
    ours = {OWNER_KIND: "BundleDeployment", OWNER_NAME: "harbour"}
    assert {key: labels.get(key) for key in ("app", "own", *ours)} == (
        {"app": None, "own": "one", **ours} if has_labels else {"app": "web", "own": None, **dict.fromkeys(ours)}
    )
    assert live["metadata"]["annotations"][OWNER] == "BundleDeployment harbour, revision 1"


def test_no_comparison_shows_them() -> None:
    plain = {"metadata": {"name": "x"}, "data": {}}
    marked = {**plain, "metadata": Tracking.of("n", RevisionOwner("harbour", 1)).put_on(plain["metadata"])}
    assert cleaned(marked) == cleaned(plain)
    assert masked(plain, marked) == (plain, plain)
    assert (Tracking.on(plain), Tracking.on(marked)) == (NO_TRACKING, Tracking.of("n", RevisionOwner("harbour", 1)))


@pytest.mark.parametrize("odd", [["a"], "a", 1], ids=str)
@pytest.mark.parametrize("part", ["labels", "annotations"])
def test_what_is_no_map_is_left_for_the_server_to_refuse(part: str, odd: Any) -> None:
    meta = {"name": "x", part: odd}
    assert Tracking.of("n", RevisionOwner("harbour", 1)).put_on(meta)[part] == odd
    assert Tracking.on({"metadata": meta}) == NO_TRACKING
    assert cleaned({"metadata": meta})["metadata"] == meta


@pytest.mark.parametrize("name", ["a", "a" * 63, "a" * 64, "a" * 54 + ".b" * 50, "a" * 53 + "-.b" + "c" * 190])
def test_any_name_has_a_label_value_of_its_own(name: str) -> None:
    value = label_value(name)
    assert LABEL_VALUE.fullmatch(value)
    assert len(value) <= 63
    assert (value == name) is (len(name) <= 63)
    assert value != label_value(name + "x")


def test_S20_it_proves_nothing(scene: Scene) -> None:
    """An object that says that it is ours is nobody's of ours: the inventory does not hold it."""
    settings = scene.config_map(one="1")
    meta = Tracking.of("guessed", RevisionOwner("harbour", 6)).put_on(settings["metadata"])
    scene.cluster.apply({**settings, "metadata": meta}, field_manager="somebody")
    planned = action_of(scene.plan(settings), settings)
    assert "does not belong to this deployment" in planned.problem
    assert "another deployment of Pratique (harbour)" in planned.server_words
    assert not failures(scene.apply(scene.plan(), owner=RevisionOwner("harbour", 7)))
    assert scene.cluster.get(ObjectRef.of(settings)) is not None


ARGO, FLUX = "argocd.argoproj.io/sync-options", "kustomize.toolkit.fluxcd.io/prune"


@pytest.mark.parametrize(
    ("annotations", "when"),
    [
        ({"core.rukpak.io/deletion-policy": "Orphan"}, "dropped removed replaced"),
        ({"core.rukpak.io/prune": "false"}, "dropped removed replaced"),
        ({"core.rukpak.io/prune": "False"}, ""),
        ({"helm.sh/resource-policy": "keep"}, "dropped removed replaced"),
        ({"helm.sh/resource-policy": " Keep "}, "dropped removed replaced"),
        ({"helm.sh/resource-policy": "keeper"}, ""),
        ({ARGO: "Prune=false"}, "dropped replaced"),
        ({ARGO: "Validate=false, Delete=false"}, "removed replaced"),
        ({ARGO: "Delete=false,Prune=false"}, "dropped removed replaced"),
        ({ARGO: "Prune=confirm,Delete=confirm"}, ""),
        ({FLUX: "disabled"}, "dropped removed replaced"),
        ({"kapp.k14s.io/delete-strategy": "orphan"}, "dropped removed replaced"),
        ({"cli-utils.sigs.k8s.io/on-remove": "keep"}, "dropped removed replaced"),
        ({"client.lifecycle.config.k8s.io/deletion": "detach"}, "dropped removed replaced"),
        ({}, ""),
        ("no map", ""),
        ({"helm.sh/resource-policy": None}, ""),
    ],
    ids=str,
)
def test_S39_an_object_is_kept_by_the_words_of_each_tool(annotations: object, when: str) -> None:
    obj = {"metadata": {"annotations": annotations}}
    asked = {"dropped": False, "removed": True, "replaced": None}
    assert " ".join(name for name, is_removal in asked.items() if keep_words(obj, is_removal=is_removal)) == when


def test_S39_flux_reads_labels_too_and_others_do_not() -> None:
    assert keep_words({"metadata": {"labels": {FLUX: "disabled"}}}) == f"{FLUX}: disabled"
    assert keep_words({"metadata": {"labels": {"helm.sh/resource-policy": "keep"}}}) == ""
    assert [keep_words(one) for one in (None, {}, {"metadata": None})] == ["", "", ""]
