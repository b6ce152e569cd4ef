"""Finding exceptions on pages: written, confirmed, shown beside findings, and named before they end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.cache import cache
from django.utils import timezone

from approvals.models import DecidingObject, Report, Request
from tests.support.approvals.exceptions import REASON, confirm, second_person, write
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, text_of
from tests.support.approvals.policies import look

WEB = "/rules/finding-exceptions/of/prod/web"
FORM = {
    "name": "web",
    "cluster": "prod",
    "reason": REASON,
    "ticket": "SEC-1",
    "rule": "RB-01",
    "subject": "ClusterRole.rbac.authorization.k8s.io web-*",
    "maxSeverity": "dangerous",
    "expires": (timezone.now() + timedelta(days=9)).isoformat(),
}


def test_one_is_written_by_one_person_and_confirmed_by_another(env: World, browse: Browse) -> None:
    form = opened(browse(env.ada), "/rules/finding-exceptions/new")
    assert 'name="description"' not in form
    assert "If it cannot be evaluated, nothing is accepted." in form
    refused = browse(env.ada).post("/rules/finding-exceptions/new", {**FORM, "expires": "soon"})
    assert (refused.status_code, "expected a time with its zone" in text_of(refused)) == (422, True)
    assert browse(env.ada).post("/rules/finding-exceptions/new", FORM)["Location"] == WEB
    spec = env.kubernetes.objects["web"]["spec"]
    assert spec == {name: value for name, value in FORM.items() if name not in ("name", "cluster")}
    assert "not confirmed" in opened(browse(env.ada), "/rules/finding-exceptions")
    carla = second_person(env)
    own = opened(browse(env.ada), WEB)
    assert "someone other than ada must confirm it" in own
    assert f'action="{WEB}/confirm"' not in own
    assert f'action="{WEB}/confirm"' in opened(browse(carla), WEB)
    row = DecidingObject.objects.get()
    for version, code in (("", 412), (f"{row.uid}.2", 412), ("another.1", 412), (row.version, 302)):
        answer = browse(carla).post(f"{WEB}/confirm", {"version": version})
        assert answer.status_code == code, version
    shown = opened(browse(carla), WEB)
    assert "ada and carla agreed to it" in shown
    assert f'action="{WEB}/confirm"' not in shown
    assert "not confirmed" not in opened(browse(env.ada), "/rules/finding-exceptions")


def test_S02_who_may_not_confirm_is_told_what_would_allow_it(env: World, browse: Browse) -> None:
    version = write(env).version
    env.kubernetes.allow("bert", "get")
    page = opened(browse(env.bert), WEB)
    assert f'action="{WEB}/confirm"' not in page
    assert "findingexceptions" in page
    assert browse(env.bert).post(f"{WEB}/confirm", {"version": version}).status_code == 403
    env.kubernetes.closed.add("findingexceptions")
    cache.clear()
    assert browse(env.ada).post(f"{WEB}/confirm", {"version": version}).status_code == 403
    assert browse(env.ada).post("/rules/approval-rules/of/prod/web/confirm", {"version": version}).status_code == 404


def test_an_accepted_finding_says_so_with_the_reason_and_the_end(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    serious: Request = afternoon["serious"]
    chosen = next(
        one
        for one in Report.objects.get(request=serious).body["findings"]
        if one["severity"] == "dangerous" and not one["rule"].startswith("OWN") and not one["sources"]
    )
    row = write(env, rule=chosen["rule"], fingerprint=chosen["fingerprint"])
    confirm(env, row, second_person(env))
    look(serious)
    page = opened(browse(env.ada), f"/requests/{serious.uid}/findings")
    assert page.count('<span class="label label-plain">accepted</span>') == 1
    assert 'by exception <span class="mono">web</span>' in page
    assert REASON in page
    shared = text_of(browse(env.ada).get(f"/requests/{serious.uid}/report.html"))
    assert "by exception web (ada and carla, SEC-1): replaced in spring" in shared
    assert "1 finding" in opened(browse(env.ada), WEB)


def test_home_names_those_that_end_soon_to_whom_may_prolong_them(env: World, browse: Browse) -> None:
    row = confirm(env, write(env), second_person(env))
    until = (timezone.now() + timedelta(days=13)).isoformat()
    told = {"conditions": [{"type": "Ready", "status": "True"}]}
    DecidingObject.objects.filter(pk=row.pk).update(spec={**row.spec, "expires": until}, status=told)
    assert "Finding exceptions that end soon" not in opened(browse(env.ada), "/home")
    env.kubernetes.allow("ada", "update")
    cache.clear()
    home = opened(browse(env.ada), "/home")
    assert "Finding exceptions that end soon" in home
    assert REASON in home
