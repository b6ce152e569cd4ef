"""Every address of the pages, against a login without rights: refused, nothing written, nothing shown (security-rules.md S02)."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from approvals.models import (
    ApiToken,
    AuditEntry,
    BundleComparison,
    BundleDeployment,
    ChatAccount,
    CheckRun,
    CheckSecret,
    Cluster,
    DecidingObject,
    KubernetesIdentity,
    NotificationTarget,
    Policy,
    Request,
    Review,
    RingApproval,
    Rollout,
    RolloutMember,
    SavedView,
    ViewedObject,
)
from approvals.web.urls import urlpatterns
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import SECRETS, told_in
from tests.support.approvals.world import enter
from tests.support.stored_catalogs import HARBOUR, catalog, stored

# Nobody has to sign in for these, and they know nothing of requests.
OUTSIDE = {
    "healthz",
    "readyz",
    "sign-in",
    "sign-out",
    "theme",
    "oidc-leave",
    "oidc-callback",
    "oidc-back-channel",
    "oidc-front-channel",
}
# About the person who looks: their own tokens and accounts.
OWN = {
    "me",
    "token-create",
    "token-revoke",
    "chat-link",
    "chat-unlink",
    "session-end",
    "sessions-end-others",
    "identity-link",
    "identity-unlink",
    "inbox-view-save",
    "inbox-view-remove",
    "news-read",
}
# Open to everybody who signed in, filtered by what they may read.
FILTERED = {
    "audit",
    "audit-export",
    "catalogs",
    "catalog-search",
    "clusters",
    "deployment-config-key",
    "deployment-new",
    "deployment-offers",
    "deployment-proposal-again",
    "deployments",
    "inbox",
    "inbox-list",
    "inbox-decide",
    "news",
    "news-count",
    "news-list",
    "notifications",
    "notification-new",
    "policies",
    "policy-new",
    "rules",
    "rule-new",
    "set-new",
    "sets",
}
# About one catalog, request, deployment or policy: refused as a whole.
CLOSED = {
    "catalog",
    "catalog-again",
    "catalog-package",
    "catalog-icon",
    "catalog-changes",
    "catalog-changes-again",
    "catalog-changes-lines",
    "request",
    "request-progress",
    "request-review",
    "request-review-dismiss",
    "request-activity",
    "request-activity-list",
    "request-afterwards",
    "request-break-glass",
    "request-withdraw",
    "request-dependencies",
    "request-changes",
    "request-change",
    "request-change-lines",
    "request-change-viewed",
    "request-objects",
    "request-findings",
    "request-finding-lines",
    "request-rights",
    "request-schemas",
    "request-report",
    "request-object",
    "deployment",
    "deployment-progress",
    "deployment-config-key-of",
    "deployment-edit",
    "deployment-pause",
    "deployment-ask-again",
    "deployment-rollback",
    "deployment-rotate",
    "deployment-revoke",
    "deployment-reinstate",
    "deployment-delete",
    "notification",
    "notification-again",
    "notification-delete",
    "notification-deliveries",
    "notification-edit",
    "notification-secret",
    "notification-stop",
    "notification-test",
    "policy",
    "policy-edit",
    "policy-move",
    "guard-change",
    "cluster-stop",
    "request-apply-at",
    "request-run-check",
    "rule",
    "rule-secret",
    "rule-edit",
    "rule-delete",
    "rule-confirm",
    "set",
    "set-order",
    "set-review",
}
NAMES = [str(pattern.name) for pattern in urlpatterns]
METHODS = ["get", "head", "post", "put", "patch", "delete"]
RECORDS = (
    ApiToken,
    AuditEntry,
    BundleComparison,
    BundleDeployment,
    ChatAccount,
    CheckRun,
    CheckSecret,
    Cluster,
    DecidingObject,
    KubernetesIdentity,
    NotificationTarget,
    Policy,
    Request,
    Review,
    RingApproval,
    Rollout,
    RolloutMember,
    SavedView,
    ViewedObject,
)
NAMED = {"policy": "routine", "catalog": "port", "rule": "four-eyes", "set": "spring", "notification": "hook"}
# What only the catalog says.
OFFERED = "Keeps ships"
# Whatever a form of ours would like to see.
FORM = {
    "decision": "Deny",
    "typed": "lighthouse",
    "name": "routine",
    "cluster": "prod",
    "kind": "guard",
    "mode": "enforce",
    "expression": "true",
    "pause": "yes",
    "revision": "1",
    "reason": "because",
    "spec": "{}",
    "install_namespace": "harbour",
    "service_account": "installer",
}


def address(name: str, afternoon: dict[str, Any]) -> str:
    pattern = next(one for one in urlpatterns if one.name == name)
    known = {
        "uid": afternoon["serious"].uid,
        "position": 0,
        "cluster": "prod",
        "name": next((it for start, it in NAMED.items() if name.startswith(start)), "lighthouse"),
        "package": "harbour",
        "slug": "approval-rules",
        "check": "tickets",
        "view_id": 1,
        "review_id": Review.objects.values_list("pk", flat=True).first() or 1,
        "token_id": ApiToken.objects.values_list("pk", flat=True).first() or 1,
        "sign_in_id": world.session_of(User.objects.get(username="ada")).pk,
        "identity_id": KubernetesIdentity.objects.get(user__username="ada").pk,
        "delivery_id": 1,
        "account_id": ChatAccount.objects.values_list("pk", flat=True).first() or 1,
    }
    return reverse(name, kwargs={key: known[key] for key in pattern.pattern.converters})


def written() -> list[Any]:
    """Every row that matters, whole."""
    return [list(model._default_manager.order_by("pk").values()) for model in RECORDS]


def test_S02_every_address_has_its_place_in_this_table() -> None:
    places = [OUTSIDE, OWN, FILTERED, CLOSED]
    assert sorted(NAMES) == sorted(name for place in places for name in place)


@pytest.mark.parametrize("name", NAMES)
def test_S02_without_rights_nothing_is_written_or_shown(env: World, afternoon: dict[str, Any], name: str) -> None:
    stored(catalog("port", of=env.cluster), *HARBOUR)
    url, form, before = address(name, afternoon), form_for(name), written()
    User.objects.create_user("nobody")
    for who in ("nobody", "bert", ""):
        client = Client()
        if who:
            enter(client, User.objects.get(username=who))
        for method in METHODS:
            response = getattr(client, method)(url, form if method == "post" else None)
            where = f"{method} {url} by {who or 'a stranger'}"
            assert [word for word in (*SECRETS, OFFERED) if word not in url and word in told_in(response)] == [], where
            assert name in OUTSIDE or response.status_code in (expected(name) if who else {302, 405}), where
    assert written() == before
    assert env.kubernetes.objects == {}


def form_for(name: str) -> dict[str, str]:
    """Their own words come back to them, so those of an open form hold none of the cluster's."""
    if name in CLOSED:
        return FORM
    return {} if name in OWN else {**FORM, "name": "mine", "typed": "mine", "install_namespace": "elsewhere"}


def expected(name: str) -> set[int]:
    return {403, 404, 405} if name in CLOSED else {200, 302, 403, 404, 405, 422}


@pytest.mark.parametrize("name", ["token-revoke", "chat-unlink"])
def test_S02_nobody_takes_away_what_is_somebody_elses(env: World, afternoon: dict[str, Any], name: str) -> None:
    now = env.cluster.created_at
    ApiToken.objects.create(user=env.ada, name="hers", digest="d", created_at=now, expires_at=now)
    ChatAccount.objects.create(user=env.ada, tool="slack", tenant="T", account="U", name="ada", linked_at=now)
    client = Client()
    enter(client, env.bert)
    assert client.post(address(name, afternoon)).status_code == 404
    assert (ApiToken.objects.count(), ChatAccount.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "https:evil.example"],
)
@pytest.mark.parametrize("name", ["theme", "sign-in"])
def test_S01_no_form_leads_away_from_here(env: World, name: str, target: str) -> None:
    env.ada.set_password("p")
    env.ada.save()
    form = {"next": target, "username": "ada", "password": "p", "with": "password"}
    assert Client().post(reverse(name), form)["Location"] == "/"
