"""Who asked, against people who would rather not have been the one (security-rules.md S05, S07)."""

from __future__ import annotations

from typing import Any

import pytest

from approvals import services
from approvals.errors import Changed, NotOpen, SelfApproval
from approvals.models import BundleDeployment, Request
from tests.approvals.security.people.decisions import approve, look
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting


def written_with_kubectl(env: World, **meta: Any) -> BundleDeployment:
    """A deployment in the cluster that somebody wrote past us: nobody knows who."""
    obj = world.seen("strimzi", world.spec(paused=False), **meta)
    env.kubernetes.objects["strimzi"] = obj
    return world.submit_spec(env.cluster, obj)


def names(request: Request) -> list[str]:
    return [person["username"] for person in request.requesters]


def test_S05_a_write_that_changes_nothing_does_not_take_over_somebody_elses(env: World) -> None:
    deployment = written_with_kubectl(env)
    services.pause_deployment(by=acting(env.rita), deployment=deployment, is_paused=False, reason="", via="browser")
    assert not Request.objects.get().is_requester_known
    assert deployment.writes.get(generation=1).username == ""


def test_S05_who_asks_again_does_not_take_over_who_wrote_the_spec(env: World) -> None:
    deployment = written_with_kubectl(env)
    Request.objects.update(state="expired")
    services.ask_again(by=acting(env.rita), deployment=deployment, via="browser")
    request = Request.objects.get(number=2)
    assert (request.is_requester_known, names(request)) == (False, ["rita"])


def test_S43_who_asks_again_answers_for_the_spec_that_they_were_shown_and_for_no_other(env: World) -> None:
    """Somebody borrows rita's name with kubectl while she reads the page: her click is not about what they wrote."""
    made = services.create_deployment(
        by=acting(env.rita), cluster=env.cluster, name="strimzi", spec=world.spec(), labels={}, via="browser"
    )
    live = env.kubernetes.objects["strimzi"]
    live["spec"], live["metadata"]["generation"] = world.spec("2.0.0"), 2
    with pytest.raises(Changed, match="since you opened this page"):
        services.ask_again(by=acting(env.rita), deployment=made, via="browser", generation=1)
    assert [one.generation for one in Request.objects.all()] == [1]


@pytest.mark.parametrize("state", ["applied", "failed", "expired", "denied"])
def test_S05_who_asks_again_is_a_requester_and_does_not_approve_it(env: World, state: str) -> None:
    env.kubernetes.allow("ada", "impersonate")
    made = services.create_deployment(
        by=acting(env.rita), cluster=env.cluster, name="strimzi", spec=world.spec(), labels={}, via="browser"
    )
    world.in_review(Request.objects.get())
    Request.objects.update(state=state)
    services.ask_again(by=acting(env.ada), deployment=made, via="browser")
    request = world.in_review(Request.objects.get(number=2))
    assert (request.is_requester_known, names(request)[-1]) == (True, "ada")
    with pytest.raises(SelfApproval):
        approve(env, request)


def test_S05_who_asks_again_is_a_requester_also_where_the_watch_saw_it_first(env: World) -> None:
    made = services.create_deployment(
        by=acting(env.rita), cluster=env.cluster, name="strimzi", spec=world.spec(), labels={}, via="browser"
    )
    Request.objects.update(state="expired")
    replace = env.kubernetes.replace

    def replace_and_watch(*args: Any, **named: Any) -> dict[str, Any]:
        written = replace(*args, **named)
        world.submit_spec(env.cluster, written)
        assert not Request.objects.get(number=2).is_requester_known
        return written

    env.kubernetes.replace = replace_and_watch  # type: ignore[method-assign] # the watch comes in between
    services.ask_again(by=acting(env.ada), deployment=made, via="browser")
    request = Request.objects.get(number=2)
    assert (request.is_requester_known, names(request)) == (True, ["rita", "ada"])


def test_S05_who_asks_again_with_kubectl_is_unknown(env: World) -> None:
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    Request.objects.update(state="failed")
    annotations = {"core.rukpak.io/ask-again": "1"}
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec(), uid=deployment.uid, annotations=annotations))
    assert not Request.objects.get(number=2).is_requester_known


def test_S05_who_deletes_once_more_does_not_take_over_who_deleted(env: World) -> None:
    deployment = written_with_kubectl(env)
    world.in_review(Request.objects.get())
    Request.objects.update(state="denied")
    deployment.inventory.create(group="", version="v1", kind="ConfigMap", namespace="harbour", name="a", nonce="n")
    terminating: dict[str, Any] = {"generation": 2, "uid": deployment.uid, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    env.kubernetes.objects["strimzi"] = world.seen("strimzi", world.spec(), **terminating)
    world.submit_spec(env.cluster, env.kubernetes.objects["strimzi"])
    env.kubernetes.delete = lambda *_, **__: None  # type: ignore[method-assign] # terminating already: nothing changes
    services.delete_deployment(by=acting(env.rita), deployment=deployment, via="browser")
    request = Request.objects.get(purpose="delete")
    assert (request.is_requester_known, names(request)) == (False, ["rita"])


def test_S05_a_review_does_not_count_once_its_giver_turns_out_to_have_asked(env: World) -> None:
    env.kubernetes.allow("ada", "impersonate")
    obj = world.seen("strimzi", world.spec())
    world.submit_spec(env.cluster, obj)
    request = world.in_review(Request.objects.get())
    approve(env, request)
    world.submit_spec(env.cluster, obj, env.ada)
    assert look(request) == "in_review"


def test_S05_a_review_of_another_name_of_the_requester_does_not_count(env: World) -> None:
    env.kubernetes.allow("ada", "impersonate")
    obj = world.seen("strimzi", world.spec())
    world.submit_spec(env.cluster, obj)
    request = world.in_review(Request.objects.get())
    approve(env, request)
    env.ada.kubernetes_identities.update(username="ada-renamed")
    world.submit_spec(env.cluster, obj, env.ada)
    assert look(request) == "in_review"


def test_S05_a_review_of_a_requester_counts_where_the_operator_allows_it(env: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "SELF_APPROVAL": True}
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.ada)
    request = world.in_review(Request.objects.get())
    approve(env, request)
    assert look(request) == "approved"


def leaving(env: World) -> tuple[Request, dict[str, Any]]:
    """The request for the deletion of a deployment with an object, and the deployment as it wishes for another account."""
    deployment = written_with_kubectl(env)
    world.in_review(Request.objects.get())
    Request.objects.update(state="denied")
    deployment.inventory.create(group="", version="v1", kind="ConfigMap", namespace="harbour", name="a", nonce="n")
    meta: dict[str, Any] = {"uid": deployment.uid, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec(paused=False), generation=2, **meta))
    request = world.in_review(Request.objects.get(purpose="delete"))
    env.kubernetes.allow("ada", "impersonate", "harmless")
    return request, world.seen("strimzi", world.spec(serviceAccountName="harmless"), generation=3, **meta)


def test_S07_the_account_that_is_asked_about_is_the_one_of_the_request(env: World) -> None:
    """Also while the spec names another one already, whose own request is not made yet."""
    request, harmless = leaving(env)
    BundleDeployment.objects.update(spec=harmless["spec"])
    assert not approve(env, request).may_use_account
    assert look(request) == "in_review"


def test_S07_another_account_while_a_deployment_leaves_is_another_request(env: World) -> None:
    request, harmless = leaving(env)
    world.submit_spec(env.cluster, harmless)
    with pytest.raises(NotOpen):
        approve(env, request)
    following = world.in_review(Request.objects.latest("number"))
    assert (following.purpose, following.spec["serviceAccountName"]) == ("delete", "harmless")
    assert approve(env, following).may_use_account
