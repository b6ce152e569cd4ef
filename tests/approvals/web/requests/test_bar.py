"""The bar above every tab: who can still agree, by name or group, what one of them must be allowed, and what holds it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.cache import cache

from approvals import services
from approvals.models import Policy, Request
from approvals.steps import evaluate
from approvals.web.requests.request_tab import MAX_NAMED
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, decide
from tests.support.provisioner.roles import bound, cluster_role, group, rule, user

APPROVER = cluster_role("approver", rule("approve", "bundledeployments", group="core.rukpak.io"))
TABS = ("", "/findings", "/changes", "/activity")


@pytest.fixture(autouse=True)
def may_list(env: World) -> None:
    """Ada may list roles; by these zoe, rita and the group platform may approve."""
    env.kubernetes.roles = [APPROVER, bound("approver", user("zoe"), user("rita"), group("platform"))]
    env.kubernetes.allow("ada", "list")


def bar(env: World, browse: Browse, request: Request, rest: str = "") -> str:
    """The words of the bar, as ada reads them."""
    text = browse(env.ada).get(f"/requests/{request.uid}{rest}").content.decode()
    found = text.partition('class="request-bar"')[2].partition('class="request-decide"')[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found))


@pytest.mark.parametrize("tab", TABS)
def test_who_can_still_agree_is_named_by_person_and_group_on_every_tab(
    tab: str, env: World, request_: Request, browse: Browse
) -> None:
    words = bar(env, browse, request_, tab)
    assert "1 more approval needed , possible from you, zoe and anyone in platform" in words
    assert "rita" not in words


def test_who_agreed_is_no_longer_asked(env: World, request_: Request, browse: Browse, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    assert decide(browse(env.ada), request_, reason="read").status_code == 302
    words = bar(env, browse, request_)
    assert "approved by ada" in words
    assert "1 more approval needed , possible from zoe and anyone in platform" in words


def test_of_what_was_denied_nobody_is_asked_any_more(env: World, request_: Request, browse: Browse) -> None:
    assert decide(browse(env.ada), request_, decision="Deny", reason="no").status_code == 302
    words = bar(env, browse, request_)
    assert "denied by ada" in words
    assert "needed" not in words


@pytest.mark.parametrize("tab", TABS)
def test_who_asks_for_changes_is_named_on_every_tab(tab: str, env: World, request_: Request, browse: Browse) -> None:
    assert decide(browse(env.ada), request_, decision="RequestChanges", reason="use 2").status_code == 302
    words = bar(env, browse, request_, tab)
    assert "changes requested by ada" in words
    assert words.count("changes requested") == 2, "once as the state"
    assert ("No approval counts until ada reviews again" in words) == bool(tab), "the banner of the overview says it"


def test_where_nobody_else_may_agree_it_says_so(env: World, request_: Request, browse: Browse, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    env.kubernetes.roles = [APPROVER, bound("approver", user("rita"))]
    assert decide(browse(env.ada), request_, reason="read").status_code == 302
    assert "1 more approval needed , and nobody else is allowed to give one" in bar(env, browse, request_)


def test_of_many_some_are_named(env: World, request_: Request, browse: Browse) -> None:
    env.kubernetes.roles = [APPROVER, bound("approver", *(group(f"team-{one}") for one in range(MAX_NAMED + 3)))]
    words = bar(env, browse, request_)
    assert "team-5 and 3 more" in words
    assert "team-6" not in words


def test_S09_who_may_not_list_roles_is_told_no_name_and_no_group(env: World, request_: Request, browse: Browse) -> None:
    env.kubernetes.closed = {"clusterroles", "clusterrolebindings", "roles", "rolebindings"}
    words = bar(env, browse, request_)
    assert "1 more approval needed from people who may approve strimzi" in words
    assert not {"zoe", "platform"} & set(words.split())


def test_a_guard_that_holds_it_is_named_with_what_it_waits_for(env: World, request_: Request, browse: Browse) -> None:
    services.save_policy(
        by=world.acting(env.ada),
        name="freeze",
        kind="guard",
        mode="enforce",
        cluster=env.cluster,
        names=[],
        labels={},
        expression="false",
        message="Only after the freeze",
        is_active=True,
        via="shell",
    )
    evaluate.run(Request.objects.get(pk=request_.pk), "w")
    assert "Policy freeze holds this request : Only after the freeze" in bar(env, browse, request_, "/findings")
    Policy.objects.update(is_active=False)
    assert "freeze" not in bar(env, browse, request_, "/findings")


def test_what_one_who_approves_must_be_allowed_is_said_until_one_has_it(
    env: World, browse: Browse, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    world.submit_spec(env.cluster, world.seen("kafka", world.spec()))
    request = world.in_review(Request.objects.get())
    must = "one approver must be allowed to impersonate the installing ServiceAccount"
    assert must in bar(env, browse, request)
    env.kubernetes.allow("ada", "impersonate")
    cache.clear()
    assert decide(browse(env.ada), request, reason="read").status_code == 302
    assert must not in bar(env, browse, request)
