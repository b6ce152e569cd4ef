"""Trying a draft of a policy on past requests: what it says, and what it does not tell."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals import services
from approvals.errors import InvalidInput, TooManyAttempts
from approvals.models import AuditEntry, Policy, Report, Request
from approvals.policy.document import PolicyDocument, PolicyEffect, Validation
from approvals.services import PolicyReplay
from approvals.services.policies import replays
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting


def tried(env: World, expression: str, effect: PolicyEffect = PolicyEffect.GUARD, **more: Any) -> PolicyReplay:
    document = PolicyDocument("draft", effect, (Validation(expression),), **more.pop("about", {}))
    by = more.pop("by", env.ada)
    return services.replay_policy(
        by=acting(by), document=document, clusters=more.pop("clusters", [env.cluster]), **more
    )


def _open(env: World) -> None:
    env.kubernetes.closed = set()
    cache.clear()  # of Kubernetes' answers


def results(found: PolicyReplay) -> dict[str, tuple[str, str]]:
    return {row.request.deployment.name: (row.replayed.result, row.replayed.words) for row in found.rows}


def test_a_draft_says_of_each_past_request_what_it_would_have_said(env: World, afternoon: dict[str, Any]) -> None:
    Report.objects.filter(request=afternoon["quiet"]).delete()
    Request.objects.filter(pk=afternoon["quiet"].pk).update(cleared_at=timezone.now())
    before = AuditEntry.objects.count(), Policy.objects.count()
    found = tried(env, 'worst_new in ["safe", "notable"] && actions["delete"] == 0', about={"names": ("[!l]*",)})
    assert results(found) == {
        "harbour": ("held", ""),
        "buoy": ("held", ""),
        "tugboat": ("unknown", replays.CLEARED),
        "lighthouse": ("not-selected", "the name lighthouse matches none of [!l]*"),
    }
    assert found.counts == {"held": 2, "unknown": 1, "not-selected": 1, "passed": 0, "approved": 0, "silent": 0}
    harbour = next(row for row in found.rows if row.request.deployment.name == "harbour")
    assert [(term.text, term.value) for term in harbour.replayed.terms] == [
        ('worst_new in ["safe", "notable"]', False),
        ('actions["delete"] == 0', True),
    ]
    assert (AuditEntry.objects.count(), Policy.objects.count()) == before


def test_a_grant_would_not_have_approved_what_is_for_people_or_its_own_author_asked_for(
    env: World, request_: Request
) -> None:
    assert tried(env, "true", PolicyEffect.GRANT).counts["approved"] == 1
    env.kubernetes.allow("rita", "get")
    assert results(tried(env, "true", PolicyEffect.GRANT, by=env.rita)) == {"strimzi": ("silent", replays.REQUESTED)}
    Request.objects.update(is_for_people=True)
    assert "only people can approve" in results(tried(env, "true", PolicyEffect.GRANT))["strimzi"][1]


def test_only_the_days_that_are_asked_for_are_looked_at(env: World, request_: Request) -> None:
    Request.objects.update(created_at=timezone.now() - timedelta(days=30))
    assert len(tried(env, "true", days=29).rows) == 0
    assert len(tried(env, "true", days=31).rows) == 1
    with pytest.raises(InvalidInput, match="days is 0"):
        tried(env, "true", days=0)


def test_S02_requests_of_a_cluster_that_one_may_not_read_are_neither_read_nor_counted(
    env: World, request_: Request
) -> None:
    """The same result and the same queries, whatever lies there, also for a draft that names the cluster."""
    moon = world.cluster("moon")
    about = {"about": {"clusters": ("prod", "moon")}}

    def look(expression: str) -> tuple[PolicyReplay, list[str]]:
        with CaptureQueriesContext(connection) as queries:
            found = tried(env, expression, **about)
        # Beside those of the sign-in that each look begins with.
        return found, [query["sql"] for query in queries.captured_queries if '"approvals_re' in query["sql"]]

    texts = ("true", 'labels["x"] == "y"', '"OB-01" in rules')
    with time_machine.travel(timezone.now(), tick=False):
        before = [look(text) for text in texts]
        for name in ("secret-moon", "harbour"):
            scene.reported(scene.asked(moon, name, world.user(f"luna-{name}", moon, "requesters")), scene.report_of())
        for known, text in zip(before, texts, strict=True):
            assert look(text) == known


@pytest.mark.parametrize(
    ("expression", "fact"),
    [
        ('"SEC-07" in rules', "rules"),
        ("unjudged == 0", "unjudged"),
        ('"Secret" in kinds', "kinds"),
        ('actions["update"] == 0', "actions"),
        ('!("update" in actions)', "actions"),
        ("!has(actions.update)", "actions"),
        ("actions.all(a, actions[a] == 0)", "actions"),
    ],
)
def test_S09_an_expression_learns_nothing_of_a_secret_that_its_author_may_not_get(
    env: World, request_: Request, expression: str, fact: str
) -> None:
    """Unknown, whatever the report says of it; whoever may get it is told."""
    for case in ("none", "update"):
        body = {**scene.report_of("secret-in-the-bundle"), "unjudged": 0}
        for action in body["plan"]["actions"]:
            if action["ref"]["kind"] == "Secret":
                action.update(action=case, before={"kind": "Secret"})
        for finding in body["findings"]:
            finding["evidence"] = finding["evidence"] or {"key": "password"}
        Report.objects.all().delete()
        request = scene.reported(request_, body)
        assert request.pk == request_.pk
        env.kubernetes.closed = {"secrets"}
        cache.clear()
        result, words = results(tried(env, expression))["strimzi"]
        assert (result, words.split(" is hidden")[0]) == ("unknown", fact)
        _open(env)
        assert results(tried(env, expression))["strimzi"][0] in ("held", "passed")


def test_what_a_plan_deletes_is_known_though_a_secret_is_hidden(env: World, request_: Request) -> None:
    body = scene.report_of("secret-in-the-bundle")
    for action in body["plan"]["actions"]:
        action.update(before={"kind": "Secret"})
    request_.reports.all().delete()
    scene.reported(request_, body)
    env.kubernetes.closed = {"secrets"}
    assert results(tried(env, 'actions["delete"] == 0'))["strimzi"][0] == "passed"


def test_S09_objects_of_others_that_are_to_be_adopted_tell_nothing(env: World, request_: Request) -> None:
    body = scene.report_of("image-known-before")
    ref = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "theirs", "name": "x"}
    private = {**body["findings"][0], "ref": ref, "severity": "critical", "isNew": True}
    adopt = {**body["plan"]["actions"][0], "ref": ref, "action": "adopt", "before": {}, "problemCode": ""}
    body = {**body, "plan": {**body["plan"], "actions": [adopt]}}
    env.kubernetes.closed = {"configmaps"}
    seen = set()
    for held in ([], [private]):
        Report.objects.all().delete()
        scene.reported(request_, {**body, "private": held})
        seen.add(results(tried(env, 'worst_new != "critical"'))["strimzi"])
    assert {result for result, _ in seen} == {"unknown"}
    assert len(seen) == 1
    _open(env)
    assert results(tried(env, 'worst_new != "critical"'))["strimzi"] == ("held", "")


def test_S09_a_key_in_the_url_of_a_source_cannot_be_guessed(env: World, request_: Request) -> None:
    key = "token=AKIAIOSFODNN7EXAMPLE0"
    pins = [{"kind": "http", "reference": f"https://example.com/x.tar.gz?{key}"}]
    Request.objects.update(pins=pins)
    for guess in ("token=A", "token=B"):
        result, words = results(tried(env, f'sources.exists(s, s.contains("{guess}"))'))["strimzi"]
        assert (result, words) == ("unknown", "sources is hidden: a URL of a source may hold a key")


@pytest.mark.parametrize("expression", ["[name]" + ".map(a, a + a)" * 27 + ".size() > 0"])
def test_S26_a_draft_that_passes_its_limits_ends_and_says_unknown(env: World, expression: str) -> None:
    for number in range(3):
        scene.reported(scene.asked(env.cluster, f"boat-{number}", env.rita), scene.report_of())
    began = time.monotonic()
    assert tried(env, expression).counts["unknown"] == 3
    assert time.monotonic() - began < replays.SECONDS


def test_S29_how_often_somebody_may_try_is_limited(
    env: World, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "PER_HOUR", replays.Limit("policy-replays-of-a-test", 1, 3600))
    tried(env, "true")
    with pytest.raises(TooManyAttempts):
        tried(env, "true")


@pytest.mark.parametrize("text", ["worst", "wrst == 1", "true) || (true"])
def test_a_document_whose_expression_does_not_compile_is_refused_with_its_place(env: World, text: str) -> None:
    document = PolicyDocument("draft", PolicyEffect.GUARD, (Validation("true"), Validation(text)))
    with pytest.raises(InvalidInput, match=r"spec\.validations\[1\]\.expression"):
        services.read_document(document.to_object())
