"""Signing in, light and dark, and the forms that write: their errors stay on the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from approvals import services
from approvals.deciding.approval_policies import parse_document
from approvals.models import ApiToken, AuditEntry, ChatAccount, Policy
from approvals.services.tokens import digest
from provisioner.render import load_all
from provisioner.values import Identity
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.approvals.policies import save
from tests.support.approvals.world import enter

POLICY = {
    "name": "calm",
    "cluster": "prod",
    "kind": "guard",
    "mode": "dry-run",
    "names": "har*\nbuoy",
    "labels": "",
    "expression": 'worst != "critical"',
    "message": "too wild",
    "is_active": "on",
}


def test_a_kubernetes_token_signs_in(env: World) -> None:
    env.kubernetes.tokens["good"] = Identity("carla", ("platform",), "uid-1")
    env.kubernetes.allow("carla", "get")
    client = Client()
    form = {"with": "token", "cluster": "prod", "token": "good", "next": "/deployments"}
    assert client.post("/sign-in", form)["Location"] == "/deployments"
    assert "carla" in text_of(client.get("/me"))


@pytest.mark.parametrize(
    ("form", "status", "words"),
    [
        pytest.param({"cluster": "prod", "token": "bad"}, 403, "not accepted", id="unknown token"),
        pytest.param({"cluster": "prod", "token": ""}, 422, "This field is required", id="no token"),
        pytest.param({"cluster": "moon", "token": "x"}, 403, "not accepted", id="unknown cluster"),
    ],
)
def test_a_token_that_does_not_hold_is_refused_in_words(
    form: dict[str, str], status: int, words: str, env: World
) -> None:
    response = Client().post("/sign-in", {"with": "token", **form})
    assert response.status_code == status
    assert words in text_of(response)
    assert 'value="bad"' not in text_of(response)


def test_a_password_signs_in_and_a_wrong_one_does_not(env: World) -> None:
    User.objects.create_user("local", password="a long enough phrase")
    client = Client()
    wrong = client.post("/sign-in", {"with": "password", "username": "local", "password": "no"})
    assert (wrong.status_code, "is incorrect" in text_of(wrong)) == (403, True)
    right = {"with": "password", "username": "local", "password": "a long enough phrase"}
    assert client.post("/sign-in", right)["Location"] == "/"


@pytest.mark.parametrize(
    "target", ["https://evil.example", "//evil.example", "javascript:alert(1)", "/\\evil.example", ""]
)
def test_signing_in_leads_only_to_our_own_pages(target: str, env: World) -> None:
    env.kubernetes.tokens["good"] = Identity("carla")
    env.kubernetes.allow("carla", "get")
    form = {"with": "token", "cluster": "prod", "token": "good", "next": target}
    assert Client().post("/sign-in", form)["Location"] == "/"


def test_signing_out_needs_a_form(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    assert client.get("/sign-out").status_code == 405
    assert client.post("/sign-out")["Location"] == "/sign-in"
    assert client.get("/").status_code == 302


@pytest.mark.parametrize(
    ("chosen", "attribute"),
    [("dark", ' data-theme="dark"'), ("light", ' data-theme="light"'), ("", ""), ('"><b>', "")],
    ids=["dark", "light", "as the browser likes", "nonsense"],
)
def test_the_theme_is_kept_in_a_cookie(chosen: str, attribute: str, env: World, browse: Browse) -> None:
    client = browse(env.ada)
    assert client.post("/theme", {"theme": chosen, "next": "/audit"})["Location"] == "/audit"
    assert f'<html lang="en"{attribute}>' in text_of(client.get("/"))


def test_forms_without_a_csrf_token_do_nothing(env: World, afternoon: dict[str, Any]) -> None:
    client = Client(enforce_csrf_checks=True)
    enter(client, env.ada)
    response = client.post("/me/tokens", {"name": "x", "days": "1"})
    assert (response.status_code, ApiToken.objects.count()) == (403, 0)
    assert "This form has expired" in text_of(response)


def test_only_who_proves_each_call_otherwise_needs_no_csrf_token() -> None:
    def views(patterns: list[Any]) -> Iterator[Any]:
        for one in patterns:
            yield from views(one.url_patterns) if hasattr(one, "url_patterns") else [one.callback]

    found = {view for view in views(get_resolver().url_patterns) if getattr(view, "csrf_exempt", False)}
    # Of REST, whose sessions need the token all the same (api/test_tokens.py).
    ours = {f"{one.__module__}.{one.__name__}" for one in found if not hasattr(one, "cls")}
    assert ours == {
        "approvals.chat.views.receive",
        "approvals.chat.views.receive_command",
        "approvals.metrics.exposition.metrics",
        "approvals.web.signing_in.oidc.back_channel",
    }


def test_the_inventory_is_filtered(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    client, path = browse(env.ada), "/deployments/prod/lighthouse"
    found = text_of(client.get(f"{path}?search=berth-11"))
    assert ("berth-11" in found, "berth-3" in found) == (True, False)
    found = text_of(client.get(f"{path}?health=InProgress"))
    assert ("berth-5" in found, "berth-1<" in found) == (True, False)


def test_a_policy_is_saved_and_then_saved_again(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    assert client.post("/policies/new", POLICY)["Location"] == "/policies/of/calm"
    assert Policy.objects.get().names == ["har*", "buoy"]
    changed = {**POLICY, "name": "other", "mode": "enforce"}
    assert client.post("/policies/of/calm/edit", changed).status_code == 302
    policy = Policy.objects.get()
    assert (policy.name, policy.mode, policy.version) == ("calm", "enforce", 2)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        pytest.param({"expression": "worst =="}, "the expression is invalid", id="not CEL"),
        pytest.param({"expression": "nothing == 1"}, "the expression is invalid", id="an unknown fact"),
        pytest.param({"expression": ""}, "This field is required", id="no expression"),
        pytest.param({"name": "Bad Name"}, "expected lowercase letters", id="a bad name"),
        pytest.param({"name": "routine"}, "already exists", id="the name of another"),
        pytest.param({"labels": "x"}, "has no =", id="a label without value"),
        pytest.param({"kind": "other"}, "Select a valid choice", id="another kind"),
    ],
)
def test_a_policy_that_cannot_be_is_shown_again_with_what_is_wrong(
    form: dict[str, str], words: str, env: World, browse: Browse
) -> None:
    scene.policy(env.cluster, env.ada)
    response = browse(env.ada).post("/policies/new", {**POLICY, **form})
    assert response.status_code == 422
    assert words in text_of(response)
    assert Policy.objects.count() == 1


def test_a_policy_needs_an_author_who_may_approve(env: World, browse: Browse) -> None:
    env.kubernetes.allow("bert", "get")
    response = browse(env.bert).post("/policies/new", POLICY)
    assert (response.status_code, Policy.objects.count()) == (403, 0)
    assert "kind: ClusterRole" in text_of(response)


def test_a_token_is_shown_once_and_revoked(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    text = text_of(
        client.post("/me/tokens", {"name": "ci", "days": "7", "scopes": ["read"], "clusters": [env.cluster.pk]})
    )
    shown = text.partition("prq_")[2].partition("<")[0].strip()
    token = ApiToken.objects.get()
    assert token.digest == digest(f"prq_{shown}")
    assert "prq_" not in text_of(client.get("/me"))
    assert browse(env.rita).post(f"/me/tokens/{token.pk}/revoke").status_code == 404
    assert client.post(f"/me/tokens/{token.pk}/revoke").status_code == 302
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("days", ["0", "91", "x", ""])
def test_a_token_of_any_other_length_is_refused(days: str, env: World, browse: Browse) -> None:
    assert (
        browse(env.ada)
        .post("/me/tokens", {"name": "ci", "days": days, "scopes": ["read"], "clusters": [env.cluster.pk]})
        .status_code
        == 422
    )
    assert not ApiToken.objects.exists()


def test_a_chat_account_is_linked_by_its_code_and_unlinked(env: World, browse: Browse) -> None:
    code = services.issue_link_code(tool="slack", tenant="T1", account="U1", name="ada")
    client = browse(env.ada)
    assert client.post("/me/chat", {"code": "wrong"}).status_code == 422
    assert client.post("/me/chat", {"code": code}).status_code == 302
    account = ChatAccount.objects.get()
    assert account.user == env.ada
    assert browse(env.rita).post(f"/me/chat/{account.pk}/unlink").status_code == 404
    assert client.post(f"/me/chat/{account.pk}/unlink").status_code == 302
    assert not ChatAccount.objects.exists()


def test_the_audit_is_filtered_and_says_whether_the_chain_is_whole(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    client = browse(env.ada)
    text = text_of(client.get("/audit?deployment=tugboat&via=browser&actor=ada"))
    assert ("The hash chain is intact" in text, "approved" in text, "harbour" in text) == (True, True, False)


def test_the_audit_says_where_the_chain_is_broken(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    last = AuditEntry.objects.first()
    assert last is not None
    AuditEntry.objects.create(
        number=last.number + 2, at=timezone.now() + timedelta(1), verb="x", actor="x", via="x", hash="0" * 64
    )
    assert "The hash chain is broken" in text_of(browse(env.ada).get("/audit"))


def test_a_session_and_a_token_say_when_they_end_and_what_they_have_proved(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    wish = {"name": "ci", "days": 30, "scopes": "read", "clusters": env.cluster.pk}
    assert client.post("/me/tokens", wish).status_code == 200
    world.api_token(env.ada, name="unused", days=1)
    ApiToken.objects.filter(name="unused").update(ended_because="the account was unlinked")
    ApiToken.objects.create(
        user=env.ada,
        name="old",
        digest="x",
        password_at=timezone.now(),
        created_at=timezone.now(),
        expires_at=timezone.now() - timedelta(days=3),
    )
    rows = {row.split()[0]: row for row in table_rows(text_of(client.get("/me")))}
    assert rows["an"] == "an unknown program (this one) 192.0.2.7 password, just now just now just now in 12 h End"
    # A token of a password ends with the password's proof.
    assert "password, just now in 12 h never" in rows["ci"]
    assert "ended never" in rows["unused"]
    assert "ended 3 days ago never" in rows["old"]


def table_rows(text: str) -> list[str]:
    """The words of each row of the page's tables."""
    rows = re.findall(r"<tr>.*?</tr>", text.replace("\n", " "))
    return [words for row in rows if (words := " ".join(re.sub(r"<[^>]*>", " ", row).split()))]


NEW = 'href="/policies/new"'


@pytest.mark.parametrize("may", ["", "strimzi", "*"])
def test_a_new_policy_is_offered_to_whom_could_save_one(env: World, browse: Browse, may: str) -> None:
    scene.asked(env.cluster, "strimzi", env.rita)
    env.kubernetes.allow("bert", "get")
    if may:
        env.kubernetes.allow("bert", "approve", may)
    cache.clear()
    response = browse(env.bert).get("/policies")
    assert response.content.decode().count(NEW) == (2 if may else 0)
    assert ("People who may approve deployments may create one" in text_of(response)) is (not may)


def test_a_template_fills_the_form(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    page = client.get("/policies/new?template=hold-unknown").content.decode()
    assert 'value="hold-unknown"' in page
    assert "severities[&quot;unknown&quot;] == 0" in page
    assert client.get("/policies/new?template=nonsense").status_code == 200


def test_a_draft_is_tried_from_its_form_and_not_saved(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    draft = {**POLICY, "kind": "guard", "names": "", "labels": "", "expression": 'worst_new == "safe" && !is_first'}
    before = Policy.objects.count()
    response = browse(env.ada).post("/policies/new", {**draft, "try": "1"})
    text = text_of(response)
    assert response.status_code == 200
    assert "It would have held 4 and passed 0." in text
    assert "Nothing was saved." in text
    assert "worst_new == &quot;safe&quot;" in text
    assert f"/requests/{afternoon['serious'].uid}" in text
    assert f'value="{POLICY["name"]}"' in response.content.decode(), "what was typed is still there"
    assert Policy.objects.count() == before


def test_a_policy_is_shown_as_the_file_that_can_be_tried(env: World, browse: Browse) -> None:
    save(env, name="calm", kind="guard", expression='worst == "safe"', names=["har*"], message="too wild")
    page = unescape(browse(env.ada).get("/policies/of/calm").content.decode())
    begins = page.rindex("---", 0, page.index('"ApprovalPolicy"'))
    (written,) = load_all(page[begins : page.index("</pre>", begins)], name="the page")
    document = parse_document(written)
    assert (document.names, document.clusters, document.expression) == (("har*",), ("prod",), 'worst == "safe"')


def test_a_draft_that_does_not_compile_is_not_tried(env: World, browse: Browse) -> None:
    response = browse(env.ada).post("/policies/new", {**POLICY, "expression": "wrst", "try": "1"})
    assert response.status_code == 422
    assert "`wrst` is not known" in text_of(response)
