"""Deputies on pages and over REST: shown and deleted there, made with kubectl only."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.cache import cache

from approvals.clock import database_now
from approvals.ledger.deciding import deciding_objects
from approvals.models import DecidingObject
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, text_of


def make(env: World, **until: Any) -> DecidingObject:
    end = (database_now() + timedelta(**until)).isoformat()
    spec = {"user": "dora", "deputyFor": "ada", "clusterRole": "pratique-approver", "until": end, "reason": "holiday"}
    obj = world.seen("dora", spec, uid="u-1")
    env.kubernetes.objects["dora"] = obj
    made = deciding_objects.observe(cluster=env.cluster, kind="Deputy", obj=obj, is_listed=True)
    assert made is not None
    return made


def test_a_deputy_is_shown_and_ended_on_its_page_and_not_made_there(env: World, browse: Browse) -> None:
    for verb in ("create", "update", "delete"):
        env.kubernetes.allow("ada", verb)
    empty = opened(browse(env.ada), "/rules/deputies")
    assert "kubectl pratique deputy" in empty
    assert "/rules/deputies/new" not in empty
    row = make(env, days=9)
    for address in ("/rules/deputies/new", "/rules/deputies/of/prod/dora/edit"):
        assert browse(env.ada).get(address).status_code == 404
    assert "dora is deputy of ada until" in opened(browse(env.ada), "/rules/deputies")
    page = opened(browse(env.ada), "/rules/deputies/of/prod/dora")
    assert "what ClusterRole pratique-approver allows" in page
    assert "/rules/deputies/of/prod/dora/edit" not in page
    assert "Kubernetes then deletes the binding" in page
    gone = browse(env.ada).post("/rules/deputies/of/prod/dora/delete", {"version": row.version})
    assert gone.status_code == 302
    assert "deletionTimestamp" in env.kubernetes.objects["dora"]["metadata"]


def test_home_names_those_that_end_soon_to_whom_may_get_them(env: World, browse: Browse) -> None:
    row = make(env, days=9)
    assert "Deputies that end soon" not in opened(browse(env.ada), "/home")
    DecidingObject.objects.filter(pk=row.pk).delete()
    row = make(env, days=2)
    assert "is deputy of ada on prod until" in opened(browse(env.ada), "/home")
    assert "Deputies that end soon" not in text_of(browse(env.bert).get("/home"))
    env.kubernetes.closed.add("deputies")
    cache.clear()
    assert "Deputies that end soon" not in opened(browse(env.ada), "/home")
