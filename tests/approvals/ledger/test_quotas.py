"""Quotas of open requests hold whichever way a request is made, and nothing that is asked for is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from approvals import controllers, services, tasks
from approvals.errors import TooMany
from approvals.ledger import pivots, quotas
from approvals.ledger.pivots import SpecWriter
from approvals.lifecycle import OPEN
from approvals.models import AuditEntry, BundleDeployment, InventoryItem, Request
from approvals.steps.mirroring import conditions
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.databases import manage
from tests.support.approvals.fixtures import World
from tests.support.approvals.revisions import keep_password
from tests.support.approvals.world import acting

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def few(settings: Settings) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "MAX_OPEN_REQUESTS": 4, "MAX_OPEN_REQUESTS_OF_ONE": 2}


def wish(env: World, name: str, by: User | None = None) -> BundleDeployment:
    """What kubectl does, and the watch sees; `by` is known where a door of ours wrote it."""
    return world.submit_spec(env.cluster, world.seen(name, world.spec()), by)


def open_ones() -> list[str]:
    return sorted(Request.objects.filter(state__in=OPEN).values_list("deployment__name", flat=True))


def settle(name: str) -> None:
    Request.objects.filter(deployment__name=name, state__in=OPEN).update(state="withdrawn")


def sweep() -> None:
    pivots.take_up_waiting()


def test_S40_a_listed_controller_has_a_limit_of_its_own_and_takes_no_room_from_people(
    env: World, settings: Settings
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "MAX_OPEN_REQUESTS_OF_CONTROLLER": 5}
    brought = SpecWriter(Identity("system:serviceaccount:argocd:controller"), controllers.VIA)
    for number in range(1, 7):
        pivots.see(cluster=env.cluster, obj=world.seen(f"c{number}", world.spec()), writer=brought)
    assert open_ones() == ["c1", "c2", "c3", "c4", "c5"]
    assert "the limit per requester is 5" in BundleDeployment.objects.get(name="c6").waiting_words
    wish(env, "rita-1", env.rita)
    assert "rita-1" in open_ones()


def test_S25_what_kubectl_asks_for_beyond_the_quota_waits_and_is_taken_up_in_order(env: World) -> None:
    for number in range(1, 6):
        wish(env, f"d{number}")
    assert open_ones() == ["d1", "d2"]
    sweep()
    assert open_ones() == ["d1", "d2"]
    settle("d1")
    sweep()
    assert open_ones() == ["d2", "d3"]
    settle("d2")
    settle("d3")
    sweep()
    assert open_ones() == ["d4", "d5"]
    assert not quotas.waiting().exists()
    assert AuditEntry.objects.filter(verb="request.waits").count() == 3


def test_S25_the_sweep_takes_up_what_waits(env: World) -> None:
    for number in range(1, 4):
        wish(env, f"d{number}")
    settle("d1")
    tasks.sweep()
    assert open_ones() == ["d2", "d3"]


def test_S25_a_condition_says_who_holds_how_many_and_what_to_do(env: World) -> None:
    for number in range(1, 4):
        waits = wish(env, f"d{number}", env.rita)
    words = BundleDeployment.objects.get(name="d3").waiting_words
    assert "rita has 2 open requests on cluster prod; the limit per requester is 2" in words
    assert "withdraw some" in words
    assert "automatically" in words
    shown = {one.type: one for one in conditions.of_deployment(waits, None, words, "")}
    assert (shown["UpToDate"].is_true, shown["UpToDate"].reason) == (False, "QuotaExceeded")


def test_S25_one_requester_does_not_use_up_the_quota_of_others(env: World) -> None:
    for number in range(10):
        wish(env, f"u{number}")
    wish(env, "ritas", env.rita)
    wish(env, "berts", env.bert)
    assert open_ones() == ["berts", "ritas", "u0", "u1"]
    wish(env, "adas", env.ada)
    assert "cluster prod has 4 open requests; the limit is 4" in BundleDeployment.objects.get(name="adas").waiting_words


def test_S25_who_waits_for_nothing_but_room_is_not_held_up_by_who_has_too_many(env: World) -> None:
    for number in range(4):
        wish(env, f"r{number}", env.rita)
    for number in range(3):
        wish(env, f"b{number}", env.bert)
    settle("b0")
    sweep()
    assert open_ones() == ["b1", "b2", "r0", "r1"]


def test_S40_of_those_that_one_limit_holds_back_a_sweep_asks_for_one(
    env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        wish(env, f"r{number}", env.rita)
    asked, why_not = list[str](), quotas.why_not

    def counted(*words: Any, but: BundleDeployment) -> str:
        asked.append(but.name)
        return why_not(*words, but=but)

    monkeypatch.setattr(quotas, "why_not", counted)
    sweep()
    assert asked == ["r2"]
    settle("r0")
    sweep()
    assert asked == ["r2", "r2", "r3"]
    assert open_ones() == ["r1", "r2"]


def test_S25_a_newer_wish_takes_the_place_of_the_older_one_also_when_the_quota_is_used_up(env: World) -> None:
    first = wish(env, "d1", env.rita)
    wish(env, "d2", env.rita)
    world.submit_spec(env.cluster, world.seen("d1", world.spec("2"), uid=first.uid, generation=2), env.rita)
    assert open_ones() == ["d1", "d2"]
    assert Request.objects.filter(state="superseded").count() == 1


def test_S25_what_waits_is_the_last_that_was_wished_for(env: World) -> None:
    for name in ("d1", "d2"):
        wish(env, name)
    late = wish(env, "d3")
    world.submit_spec(env.cluster, world.seen("d3", world.spec("9"), uid=late.uid, generation=2))
    settle("d1")
    sweep()
    assert Request.objects.get(deployment=late).spec == world.spec("9")


def test_S25_what_is_gone_waits_no_more(env: World) -> None:
    for number in range(1, 4):
        late = wish(env, f"d{number}")
    pivots.forget(cluster=env.cluster, uid=late.uid)
    settle("d1")
    sweep()
    assert open_ones() == ["d2"]


def annotated(deployment: BundleDeployment, **annotations: str) -> dict[str, Any]:
    named = {f"core.rukpak.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return world.seen(deployment.name, world.spec(), uid=deployment.uid, annotations=named)


def test_S25_asking_again_by_an_annotation_waits_as_well_and_stays_who_asked(env: World) -> None:
    asked = wish(env, "d0")
    settle("d0")
    for number in range(1, 3):
        wish(env, f"d{number}", env.rita)
    pivots.see(cluster=env.cluster, obj=annotated(asked, ask_again="1"), writer=None, asker=world.writer(env.rita))
    # Nobody can tell who wrote the spec, so it counts as unknown, of whom there is none.
    assert open_ones() == ["d0", "d1", "d2"]
    settle("d0")
    wish(env, "u1")
    wish(env, "u2")
    pivots.see(cluster=env.cluster, obj=annotated(asked, ask_again="2"), writer=None, asker=world.writer(env.rita))
    world.submit_spec(env.cluster, annotated(asked, ask_again="2"))
    assert "d0" not in open_ones()
    settle("u1")
    sweep()
    made = Request.objects.filter(deployment=asked, state__in=OPEN).get()
    assert [person["username"] for person in made.requesters] == ["rita"]


def test_S25_a_rotation_that_waits_is_not_lost_where_the_spec_changes(env: World, twice: BundleDeployment) -> None:
    keep_password(twice, "first-9f2c47d81")
    for number in range(1, 3):
        wish(env, f"d{number}", env.rita)

    def seen(generation: int) -> dict[str, Any]:
        annotations = {"core.rukpak.io/rotate": "db@1"}
        spec = world.spec(str(generation))
        return world.seen("strimzi", spec, uid=twice.uid, generation=generation, annotations=annotations)

    pivots.see(cluster=env.cluster, obj=seen(2), writer=None, asker=world.writer(env.rita))
    world.submit_spec(env.cluster, seen(3), env.rita)
    assert open_ones() == ["d1", "d2"]
    settle("d1")
    sweep()
    made = Request.objects.get(deployment=twice, state__in=OPEN)
    assert (made.purpose, made.spec, made.rotation) == ("deploy", world.spec("3"), ["db"])
    assert ([person["username"] for person in made.requesters], made.is_requester_known) == (["rita"], True)


def test_S25_a_deletion_waits_and_nothing_is_deleted_meanwhile(env: World) -> None:
    doomed = wish(env, "d0")
    settle("d0")
    InventoryItem.objects.create(deployment=doomed, version="v1", kind="ConfigMap", name="c", nonce="n")
    for number in range(1, 3):
        wish(env, f"d{number}")
    obj = world.seen("d0", world.spec(), uid=doomed.uid, generation=2, deletionTimestamp="2026-01-01T00:00:00Z")
    world.submit_spec(env.cluster, obj)
    world.submit_spec(env.cluster, obj)
    assert open_ones() == ["d1", "d2"]
    settle("d1")
    sweep()
    assert Request.objects.filter(deployment=doomed, state__in=OPEN).get().purpose == "delete"


def test_S25_asking_once_more_for_what_was_left_out_waits_and_keeps_its_requesters(env: World) -> None:
    asked = wish(env, "d0", env.rita)
    settle("d0")
    for number in range(1, 3):
        wish(env, f"d{number}", env.rita)
    assert pivots.ask_once_more(of=asked.requests.get()) is None
    assert "rita has 2 open" in BundleDeployment.objects.get(name="d0").waiting_words
    settle("d1")
    sweep()
    made = Request.objects.filter(deployment=asked, state__in=OPEN).get()
    assert ([person["username"] for person in made.requesters], made.is_requester_known) == (["rita"], True)


def test_S25_our_own_doors_refuse_before_they_write(env: World) -> None:
    made = {}
    for name in ("d1", "d2", "d3"):
        env.kubernetes.objects[name] = obj = world.seen(name, world.spec())
        made[name] = world.submit_spec(env.cluster, obj, env.rita)
        if name == "d1":
            settle("d1")
    new = {"by": acting(env.rita), "cluster": env.cluster, "spec": world.spec(), "labels": {}, "via": "browser"}
    before = {name: dict(obj) for name, obj in env.kubernetes.objects.items()}
    with pytest.raises(TooMany, match="rita has 2 open requests"):
        services.create_deployment(name="new", **new)
    with pytest.raises(TooMany):
        services.ask_again(by=acting(env.rita), deployment=made["d1"], via="browser")
    with pytest.raises(TooMany):
        services.change_deployment(
            by=acting(env.rita), deployment=made["d1"], spec=world.spec("2"), generation=1, via="browser"
        )
    assert env.kubernetes.objects == before
    services.change_deployment(
        by=acting(env.rita), deployment=made["d2"], spec=world.spec("2"), generation=1, via="browser"
    )
    assert open_ones() == ["d2", "d3"]


AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
from django.conf import settings
from django.db import connections
from django.utils import timezone
from approvals.ledger import pivots, quotas
from approvals.ledger.pivots import SpecWriter
from approvals.models import Cluster, Request
settings.PRATIQUE["MAX_OPEN_REQUESTS_OF_ONE"] = 2
cluster = Cluster.objects.create(name="c", uid="u", created_at=timezone.now())
def see(number):
    meta = {"name": f"d{number}", "uid": f"d{number}", "generation": 1, "resourceVersion": "1"}
    spec = {"installNamespace": "n", "serviceAccountName": "s", "sources": []}
    try:
        pivots.see(cluster=cluster, obj={"metadata": meta, "spec": spec}, writer=None)
    finally:
        connections.close_all()
with ThreadPoolExecutor(8) as pool:
    list(pool.map(see, range(24)))
print("made", Request.objects.count(), "waiting", quotas.waiting().count())
"""


@pytest.mark.thorough
def test_S25_many_at_once_do_not_slip_past_the_quota(migrated_database_url: str, tmp_path: Path) -> None:
    assert "made 2 waiting 22" in manage(migrated_database_url, "shell", "-c", AT_ONCE)
