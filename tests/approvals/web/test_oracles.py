"""S02: no tab, count, filter, order, search, cursor or file is another for what lies on a cluster that one may not read.

An attacker who may read one cluster asks for lists before and after something happens on another one, and compares.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.utils import timezone

from approvals.models import BundleDeployment, KubernetesIdentity, Request, RequestAsker, RequestRule, RequestText
from approvals.selectors.keyset import Cursor
from approvals.web import inbox
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, queries, text_of

FILTERS = (
    *("severity=critical", "purpose=deploy", "format=helm", "requester=ada", "requester=rita", "rule=OB-01"),
    *("state=in_review", "search=harb", "search=secret-moon", "cluster=moon", "cluster=prod", "cluster=nowhere"),
)
PAGES = (
    *(
        f"/list?tab={tab}&sort={sort}"
        for tab in ("needs-me", "mine", "open", "all")
        for sort in ("worst", "deployment")
    ),
    *(f"/list?tab=all&{query}" for query in FILTERS),
    *("/home/list", "/audit/export?format=csv", "/audit/export?format=jsonl&actor=r&deployment=a"),
    *(
        f"/api/v1/requests{query}"
        for query in ("", "?worst=critical", "?rule=OB-01", "?search=harb", "?requester=rita")
    ),
    *("/api/v1/deployments", "/api/v1/audit", "/api/v1/audit?since=2001-01-01", "/api/v1/policies", "/api/v1/clusters"),
)
# What differs from one look to the next whatever happens: a token of the form, and how long ago something was.
PASSING = re.compile(r"<time.*?</time>")


def looked_at(client: Client) -> dict[str, str]:
    """What each address answers, also a page on from the first one, whose cursor is that of a row that was shown."""
    found = {path: _said(client, path) for path in PAGES}
    following = {f"next of {path}": _next(client, path, text) for path, text in found.items()}
    return {**found, **following}


def _said(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    text = b"".join(answer.streaming_content).decode() if answer.streaming else text_of(answer)  # type: ignore[attr-defined]  # the stubs have no streamed answers
    return PASSING.sub("", text)


def _next(client: Client, path: str, text: str) -> str:
    if path.startswith("/api/"):
        address = json.loads(text).get("next") or ""
        return _said(client, address.partition("testserver")[2]) if address else ""
    found = re.search(r'href="(\?[^"]+)"\s+rel="next"', text)
    return _said(client, path.partition("?")[0] + found[1].replace("&amp;", "&")) if found else ""


def happen(where: Any, by: Any) -> None:
    """Requests, of hers by name as well, that each filter would find, before and after all others in each order."""
    for name in ("aaa", "harbour", "secret-moon", "zzz"):
        made = world.in_review(scene.asked(where, name, by), worst="critical")
        Request.objects.filter(pk=made.pk).update(weight=6, format="helm", created_at=timezone.now())
        RequestRule.objects.get_or_create(request=made, rule="OB-01", defaults={"weight": 6})
        RequestText.objects.update_or_create(request=made, defaults={"text": f"{name}\nharbour secret-moon"})
        for asker in ("ada", "rita"):
            RequestAsker.objects.get_or_create(request=made, username=asker)
    BundleDeployment.objects.filter(cluster=where).update(health="Failed")


@pytest.mark.parametrize(
    "is_known_there",
    [
        pytest.param(False, id="nobody there", marks=pytest.mark.thorough),
        pytest.param(True, id="somebody who may not read"),
    ],
)
def test_S02_what_happens_on_a_cluster_that_one_may_not_read_changes_no_list(
    is_known_there: bool, env: World, afternoon: dict[str, Any], browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "ROWS", 2)
    moon = world.cluster("moon")
    if is_known_there:
        about = {"cluster": moon, "groups_seen_at": world.yesterday(), "authenticator": "mapped"}
        KubernetesIdentity.objects.create(user=env.ada, username="adele", **about)
    client = browse(env.ada)
    # One moment: the ETag of a list is that of its text, which says how many minutes ago something was.
    with time_machine.travel(timezone.now(), tick=False):
        before = looked_at(client)
        costs = {path: queries(client, path) for path in PAGES[:12]}
        assert sum(bool(text) for name, text in before.items() if name.startswith("next")) > 5
        happen(moon, world.user("luna", moon, "requesters"))
        after = looked_at(client)
        assert {path: queries(client, path) for path in costs} == costs
    assert {name for name in before if after[name] != before[name]} == set()
    assert "secret-moon" not in json.dumps({name: text for name, text in after.items() if "secret-moon" not in name})


def test_S02_a_cursor_that_somebody_makes_up_leads_to_no_row_of_others(env: World, browse: Browse) -> None:
    """A cursor holds values, not a row: one that names a hidden request is a place between those that are seen."""
    moon = world.cluster("moon")
    happen(moon, world.user("luna", moon, "requesters"))
    mine = world.in_review(scene.asked(env.cluster, "mine", env.rita), worst="notable")
    hidden = Request.objects.filter(cluster=moon).order_by("-created_at")[0]
    cursor = Cursor("b", (hidden.created_at, hidden.pk)).text()
    text = text_of(browse(env.ada).get(f"/list?tab=all&cursor={cursor}"))
    assert f"/requests/{mine.uid}" in text
    assert str(hidden.uid) not in text
