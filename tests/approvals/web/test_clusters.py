"""The stop button of a cluster: a ChangeWindow that denies without an end, written as whoever presses it."""

from __future__ import annotations

from approvals.ledger.deciding.deciding_objects import observe
from approvals.models import AuditEntry, DecidingObject
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse


def test_a_stop_is_written_as_the_person_shown_where_it_holds_and_ended(env: World, browse: Browse) -> None:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    env.kubernetes.allow("ada", "create")
    ada = browse(env.ada)
    assert ada.post("/clusters/prod/stop", {"reason": " "}).status_code == 422
    assert not DecidingObject.objects.exists(), "without a reason nothing is stopped"
    assert ada.post("/clusters/prod/stop", {"reason": "incident 7"}).status_code == 302
    row = DecidingObject.objects.get()
    assert row.spec == {
        "type": "Deny",
        "description": "incident 7",
        "appliesTo": ["Apply", "DriftCorrection", "Restore"],
    }
    assert [writer["username"] for writer in row.writers] == ["ada"]
    for address in ("/clusters", "/deployments/prod/strimzi"):
        shown = " ".join(browse(env.ada).get(address).content.decode().split())
        assert "Changes to every deployment were stopped by ada" in shown, address
        assert ": incident 7." in shown, address
    env.kubernetes.allow("ada", "delete")
    assert ada.post("/clusters/prod/stop", {"end": row.name}).status_code == 302
    assert "deletionTimestamp" in env.kubernetes.objects[row.name]["metadata"]
    verbs = AuditEntry.objects.filter(verb__startswith="deciding-object.").order_by("number")
    assert [(entry.verb, entry.actor) for entry in verbs] == [
        ("deciding-object.created", "ada"),
        ("deciding-object.deleted", "ada"),
    ]


def test_what_is_no_stop_is_not_ended_here(env: World, browse: Browse) -> None:
    spec = {"type": "Deny", "dtstart": "2026-12-04T18:00:00", "timeZone": "UTC", "duration": "2d"}
    about = {"name": "weekend", "uid": "u-1", "generation": 1, "resourceVersion": "1"}
    observe(cluster=env.cluster, kind="ChangeWindow", obj={"metadata": about, "spec": spec}, is_listed=True)
    assert browse(env.ada).post("/clusters/prod/stop", {"end": "weekend"}).status_code == 404
    assert DecidingObject.objects.get().gone_at is None
