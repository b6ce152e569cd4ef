"""What goes because the content has it no more, and what stays nevertheless."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from provisioner.cluster.annotations import NO_TRACKING, NONCE, OWNER_NAME, PRUNE, RevisionOwner, Tracking, nonce_of
from provisioner.cluster.order import DEPENDS_ON
from provisioner.errors import EmptyBundle
from provisioner.values import Action, CollisionProtection, Identity, ObjectRef, OutcomeState
from tests.support.provisioner.cluster_scene import Scene, action_of, actions, content, failures, states

DONE = OutcomeState.DONE


def kept(scene: Scene, name: str = "kept", says: str = "false") -> dict[str, Any]:
    obj = scene.config_map(name, a="1")
    obj["metadata"]["annotations"] = {PRUNE: says}
    return obj


def annotate(scene: Scene, obj: dict[str, Any], says: str | None) -> None:
    """As somebody with kubectl does."""
    live = scene.live(obj)
    assert live is not None
    words = {key: value for key, value in live["metadata"]["annotations"].items() if key != PRUNE}
    words |= {PRUNE: says} if says is not None else {}
    scene.cluster.replace({**live, "metadata": {**live["metadata"], "annotations": words}}, field_manager="somebody")


def what_says_that_it_stays_is_kept_and_let_go(scene: Scene) -> None:
    stays = scene.config_map("stays")
    scene.deploy(stays, kept(scene), scene.config_map("goes"))
    planned = scene.plan(stays)
    assert actions(planned) == {
        "ConfigMap/stays": Action.NONE,
        "ConfigMap/kept": Action.ORPHAN,
        "ConfigMap/goes": Action.DELETE,
    }
    assert "core.rukpak.io/prune: false" in action_of(planned, kept(scene)).server_words
    assert failures(scene.apply(planned, stays)) == []
    assert scene.live(kept(scene))["data"] == {"a": "1"}
    assert Tracking.on(scene.live(kept(scene))) == NO_TRACKING
    assert {item.ref.name for item in scene.inventory.items().values()} == {"stays"}


HELM, ARGO = "helm.sh/resource-policy", "argocd.argoproj.io/sync-options"
GOES, STAYS = Action.DELETE, Action.ORPHAN


@pytest.mark.parametrize(
    ("words", "dropped", "removed"),
    [
        ({HELM: "keep"}, STAYS, STAYS),
        ({ARGO: "Prune=false"}, STAYS, GOES),
        ({ARGO: "Validate=false, Delete=false"}, GOES, STAYS),
    ],
    ids=str,
)
def test_S39_what_other_tools_keep_is_kept_when_they_keep_it(
    scene: Scene, words: dict[str, str], dropped: Action, removed: Action
) -> None:
    scene.deploy(obj := marked(scene.config_map("kept", a="1"), **words), stays := scene.config_map())
    planned = scene.plan(stays)
    assert [action_of(one, obj).action for one in (planned, scene.plan())] == [dropped, removed]
    assert failures(scene.apply(planned, stays)) == []
    assert (scene.live(obj) is not None) is (dropped is STAYS)
    if dropped is STAYS:
        again = scene.plan(obj, stays)
        assert "does not belong to this deployment" in action_of(again, obj).problem


def marked(obj: dict[str, Any], **words: str) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "annotations": words}}


def test_S39_what_a_kept_object_is_in_stays_with_it(scene: Scene) -> None:
    """Its namespace, the definition of its kind, and what the garbage collector would take it with."""
    name = f"{scene.namespace}-data"
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    owner = scene.config_map("owner")
    claim = marked(scene.config_map("data", a="1"), **{HELM: "keep"})
    claim["metadata"]["namespace"] = name
    widget = marked(scene.widget(), **{HELM: "keep"})
    owned = marked(scene.config_map("owned"), **{HELM: "keep"})
    beside = {**scene.config_map("beside"), "metadata": {"name": "beside", "namespace": name}}
    bundle = (space, scene.definition(), widget, claim, beside, owner, owned)
    assert failures(scene.deploy(*bundle)) == []
    uid = scene.live(owner)["metadata"]["uid"]
    link = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]
    scene.edit(owned, lambda it: it["metadata"].update(ownerReferences=link), manager="somebody")
    planned = scene.plan()
    assert actions(planned) == {
        f"Namespace/{name}": STAYS,
        f"CustomResourceDefinition/{scene.definition()['metadata']['name']}": STAYS,
        "Widget/one": STAYS,
        "ConfigMap/data": STAYS,
        "ConfigMap/beside": GOES,
        "ConfigMap/owner": STAYS,
        "ConfigMap/owned": STAYS,
    }
    assert failures(scene.apply(planned)) == []
    assert [scene.live(one) is not None for one in bundle] == [True, True, True, True, False, True, True]
    for one in (space, scene.definition()):
        scene.cluster.delete(ObjectRef.of(one))


def test_S39_the_namespace_of_what_the_bundle_still_has_and_keeps_is_not_dropped(scene: Scene) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{scene.namespace}-data"}}
    claim = marked(scene.config_map("data", a="1"), **{HELM: "keep"})
    claim["metadata"]["namespace"] = space["metadata"]["name"]
    scene.deploy(space, claim)
    planned = scene.plan(claim, previous=content([space, claim]))
    assert action_of(planned, space).action is STAYS
    scene.cluster.delete(ObjectRef.of(space))


@pytest.mark.parametrize("words", [{HELM: "keep"}, {ARGO: "Delete=false"}], ids=str)
def test_S39_what_is_to_be_kept_is_not_deleted_to_be_made_anew(scene: Scene, words: dict[str, str]) -> None:
    scene.deploy(scene.job())
    scene.edit(scene.job(), lambda it: it["metadata"].setdefault("annotations", {}).update(words), manager="somebody")
    found = action_of(scene.plan(changed := scene.job(image="example.com/migrate:2")), changed)
    assert found.action is Action.REPLACE
    assert "an annotation says that it is to be kept" in found.problem
    scene.edit(scene.job(), lambda it: [it["metadata"]["annotations"].pop(one) for one in words], manager="somebody")
    assert action_of(scene.plan(changed), changed).problem == ""


@pytest.mark.parametrize("says", ["true", "", "False"])
def test_only_the_word_false_keeps_an_object(scene: Scene, says):
    scene.deploy(kept(scene, says=says), stays := scene.config_map())
    assert action_of(scene.plan(stays), kept(scene)).action is Action.DELETE


def test_an_object_that_somebody_marked_in_the_cluster_is_kept_too(scene: Scene):
    scene.deploy(obj := scene.config_map("marked"), stays := scene.config_map())
    annotate(scene, obj, "false")
    assert action_of(scene.plan(stays), obj).action is Action.ORPHAN


def test_an_object_that_was_reviewed_as_kept_is_kept_though_somebody_took_the_mark_away(scene: Scene):
    scene.deploy(kept(scene), stays := scene.config_map())
    annotate(scene, kept(scene), None)
    assert action_of(scene.plan(stays, previous=content([kept(scene), stays])), kept(scene)).action is Action.ORPHAN


def test_a_removal_keeps_it_as_well(scene: Scene):
    scene.deploy(kept(scene), scene.config_map("goes"))
    assert failures(scene.deploy()) == []
    assert scene.live(kept(scene)) is not None
    assert (scene.live(scene.config_map("goes")), scene.inventory.items()) == (None, {})


@pytest.mark.proof
def test_S15_orphans_stay_as_they_are_and_anybody_may_adopt_them(scene: Scene):
    web, settings = scene.deployment(), scene.config_map(a="1")
    scene.deploy(web, settings, owner=RevisionOwner("harbour", 1))
    before = scene.live(web)
    planned = scene.plan(is_orphaning=True)
    assert actions(planned) == {"Deployment/web": Action.ORPHAN, "ConfigMap/settings": Action.ORPHAN}
    assert failures(scene.apply(planned)) == []
    assert scene.inventory.items() == {}
    live = scene.live(web)
    assert (live["metadata"]["uid"], live["spec"]) == (before["metadata"]["uid"], before["spec"])
    assert [Tracking.on(scene.live(one)) for one in (web, settings)] == [NO_TRACKING, NO_TRACKING]
    successor = Scene(scene.cluster, scene.namespace)
    adopting = successor.plan(web, settings, collision_protection=CollisionProtection.IF_NO_CONTROLLER)
    assert set(actions(adopting).values()) == {Action.ADOPT}
    assert failures(successor.apply(adopting, web, settings, owner=RevisionOwner("pier", 1))) == []
    assert scene.live(web)["metadata"]["uid"] == before["metadata"]["uid"]
    assert Tracking.on(scene.live(web)) == Tracking.of(nonce_of(scene.live(web)), RevisionOwner("pier", 1))


def test_an_orphan_whose_status_is_written_meanwhile_is_released_all_the_same(scene: Scene):
    scene.deploy(settings := scene.config_map(a="1"), owner=RevisionOwner("harbour", 1))
    planned = scene.plan(is_orphaning=True)
    annotate(scene, settings, "true")
    assert failures(scene.apply(planned)) == []
    assert Tracking.on(scene.live(settings)) == NO_TRACKING


def test_the_marks_of_what_somebody_made_again_are_left_to_them(scene: Scene):
    scene.deploy(settings := scene.config_map(a="1"))
    planned = scene.plan(is_orphaning=True)
    scene.cluster.delete(ObjectRef.of(settings))
    marked = {**settings, "metadata": Tracking.of("theirs", RevisionOwner("pier", 3)).put_on(settings["metadata"])}
    scene.cluster.apply(marked, field_manager="somebody")
    assert failures(scene.apply(planned)) == []
    assert Tracking.on(scene.live(settings)) == Tracking.of("theirs", RevisionOwner("pier", 3))


def test_an_orphan_that_may_not_be_written_is_let_go_and_it_is_said(scene: Scene):
    scene.deploy(settings := scene.config_map(a="1"), owner=RevisionOwner("harbour", 1))
    reads = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
    rbac, account = (
        "rbac.authorization.k8s.io",
        {"kind": "ServiceAccount", "name": "reader", "namespace": scene.namespace},
    )
    for obj in (
        scene.namespaced(f"{rbac}/v1", "Role", "reader", rules=[reads]),
        scene.namespaced(
            f"{rbac}/v1",
            "RoleBinding",
            "reader",
            roleRef={"apiGroup": rbac, "kind": "Role", "name": "reader"},
            subjects=[account],
        ),
    ):
        scene.cluster.apply(obj, field_manager="somebody")
    planned = scene.plan(is_orphaning=True)
    identity = Identity.of_service_account(scene.namespace, "reader")
    scene.until_may(identity, "get", "configmaps")
    reader = Scene(scene.cluster.acting_as(identity), scene.namespace, scene.inventory)
    (done,) = reader.apply(planned)
    assert done.state is OutcomeState.UNCHANGED
    assert "it still names its owner" in done.message
    assert (scene.inventory.items(), Tracking.on(scene.live(settings)).labels[OWNER_NAME]) == ({}, "harbour")


def an_empty_bundle_is_refused(scene: Scene) -> None:
    obj = scene.config_map()
    scene.deploy(obj)
    with pytest.raises(EmptyBundle, match="1 that are ours would go"):
        scene.plan(is_removal=False)
    assert scene.live(obj) is not None


def what_is_not_ours_any_more_is_not_pruned(scene: Scene) -> None:
    obj = scene.config_map("again")
    scene.deploy(obj, stays := scene.config_map())
    scene.cluster.delete(ObjectRef.of(obj))
    scene.cluster.create(obj)
    assert states(scene.deploy(stays))["ConfigMap/again"] is OutcomeState.UNCHANGED
    assert scene.live(obj) is not None


def what_could_not_be_pruned_stays_in_the_inventory_and_is_tried_again(scene: Scene) -> None:
    obj = scene.config_map("held")
    scene.deploy(obj, stays := scene.config_map())
    live = scene.live(obj)
    scene.cluster.replace({**live, "metadata": {**live["metadata"], "finalizers": ["example.com/hold"]}})
    assert states(scene.deploy(stays, wait_seconds=1.0))["ConfigMap/held"] is OutcomeState.FAILED
    assert ObjectRef.of(obj).identity in scene.inventory.items()
    assert action_of(scene.plan(stays), obj).action is Action.DELETE
    live = scene.live(obj)
    scene.cluster.replace({**live, "metadata": {**live["metadata"], "finalizers": []}})
    assert failures(scene.deploy(stays)) == []
    assert ObjectRef.of(obj).identity not in scene.inventory.items()


def nothing_is_pruned_after_something_failed(scene: Scene) -> None:
    scene.deploy(goes := scene.config_map("goes"))
    planned = scene.plan(obj := scene.config_map("new"))
    scene.cluster.create(obj)
    outcomes = scene.apply(planned, obj)
    assert states(outcomes) == {"ConfigMap/new": OutcomeState.FAILED, "ConfigMap/goes": OutcomeState.SKIPPED}
    assert scene.live(goes) is not None


def what_a_failed_apply_made_is_pruned_by_the_next(scene: Scene) -> None:
    """A partial apply leaves no orphans: its objects are in the inventory, so the next content may drop them."""
    planned = scene.plan(made := scene.config_map("made"), blocked := scene.config_map("blocked"))
    scene.cluster.create(blocked)
    assert states(scene.apply(planned, made, blocked))["ConfigMap/made"] is OutcomeState.DONE
    assert failures(scene.deploy(scene.config_map("other"))) == []
    assert scene.live(made) is None
    assert scene.live(blocked) is not None
    assert {item.ref.name for item in scene.inventory.items().values() if item.uid} == {"other"}


def what_the_content_has_no_more_goes(scene: Scene) -> None:
    scene.deploy(goes := scene.config_map("goes"), stays := scene.config_map())
    assert states(scene.deploy(stays)) == {"ConfigMap/settings": OutcomeState.UNCHANGED, "ConfigMap/goes": DONE}
    assert (scene.live(goes), len(scene.inventory.items())) == (None, 1)


# Flux' tests of pruning, and of an apply that ends in the middle, by their names.
FLUX: dict[str, Callable[[Scene], None]] = {
    "Prune": what_the_content_has_no_more_goes,
    "PruneExcludesSSAIgnore": what_says_that_it_stays_is_kept_and_let_go,
    "PruneEmpty": an_empty_bundle_is_refused,
    "PruneSkipNotOwned": what_is_not_ours_any_more_is_not_pruned,
    "PruneFailedInventoryRetry and TestPruneSurvivors": (
        what_could_not_be_pruned_stays_in_the_inventory_and_is_tried_again
    ),
    "TestApplyAllStaged_PartialFailure, nothing is pruned": nothing_is_pruned_after_something_failed,
    "TestApplyAllStaged_PartialFailure, nothing is orphaned": what_a_failed_apply_made_is_pruned_by_the_next,
}


@pytest.mark.parametrize("row", FLUX.values(), ids=FLUX)
def test_flux_row(scene: Scene, row: Callable[[Scene], None]) -> None:
    row(scene)


@pytest.mark.proof
def test_custom_resources_go_before_their_definition(scene: Scene):
    scene.deploy(scene.definition(), scene.widget(), scene.config_map())
    planned = scene.plan(scene.config_map())
    going = [one.ref.kind for one in planned.actions if one.action is Action.DELETE]
    assert going == ["Widget", "CustomResourceDefinition"]
    assert failures(scene.apply(planned, scene.config_map())) == []


def test_what_states_that_it_depends_on_another_goes_before_that_in_plan_and_apply(scene: Scene):
    kept, first, last = scene.config_map(), scene.config_map("a-needs-z"), scene.config_map("z")
    first["metadata"]["annotations"] = {DEPENDS_ON: f"/namespaces/{scene.namespace}/ConfigMap/z"}
    assert failures(scene.deploy(kept, last, first)) == []
    planned = scene.plan(kept)
    assert [one.ref.name for one in planned.actions if one.action is Action.DELETE] == ["a-needs-z", "z"]
    phases: list[str] = []
    outcomes = scene.apply(planned, kept, before_phase=phases.append)
    assert [one.ref.name for one in outcomes if one.action is Action.DELETE] == ["a-needs-z", "z"]
    assert phases == ["delete configuration"] * 2, "the one is gone before the other is asked to go"


def test_what_was_let_go_can_be_adopted_again(scene: Scene) -> None:
    stays, other = kept(scene), scene.config_map("other")
    scene.deploy(stays, other)
    scene.deploy(other)
    planned = scene.plan(stays, other, collision_protection=CollisionProtection.IF_NO_CONTROLLER)
    assert (action_of(planned, stays).action, action_of(planned, stays).problem) == (Action.ADOPT, "")
    assert failures(scene.apply(planned, stays, other)) == []


def test_what_was_let_go_and_could_not_be_written_says_how_it_can_be_adopted(scene: Scene) -> None:
    settings = scene.config_map()
    marked = {**settings, "metadata": Tracking.of("n" * 32, RevisionOwner("harbour", 1)).put_on(settings["metadata"])}
    scene.cluster.apply(marked, field_manager="somebody")
    refused = action_of(scene.plan(settings, collision_protection=CollisionProtection.IF_NO_CONTROLLER), settings)
    assert "another deployment of Pratique (harbour)" in refused.server_words
    assert f"has let it go (then remove {NONCE} from it)" in refused.server_words
