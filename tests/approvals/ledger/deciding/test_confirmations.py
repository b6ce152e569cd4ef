"""Who stands behind a finding exception: two different people, behind exactly what it says now."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals import access
from approvals.clock import database_now
from approvals.errors import InvalidInput, NotAllowed, NotAsExpected, Refused
from approvals.ledger.deciding import deciding_objects
from approvals.ledger.deciding.confirmations import confirm as keep
from approvals.ledger.deciding.confirmations import people_behind, ready_state
from approvals.models import AuditEntry, Confirmation, DecidingObject, KubernetesIdentity
from tests.support.approvals.exceptions import confirm, second_person, spec_of, write
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting


def see(env: World, row: DecidingObject, spec: dict[str, Any], generation: int) -> DecidingObject:
    """What the watch tells of somebody who used kubectl."""
    meta = {"name": row.name, "uid": row.uid, "generation": generation, "resourceVersion": str(generation)}
    obj = {"metadata": meta, "spec": spec}
    env.kubernetes.objects[row.name] = obj
    deciding_objects.observe(cluster=env.cluster, kind=row.kind, obj=obj, is_listed=True)
    return DecidingObject.objects.get(pk=row.pk)


def state_of(row: DecidingObject) -> str:
    return ready_state(row, database_now()).reason


def names(row: DecidingObject) -> list[str]:
    return sorted(person.username for person in people_behind(row))


def test_who_wrote_it_and_who_confirmed_it_are_two(env: World) -> None:
    row, carla = write(env), second_person(env)
    assert (state_of(row), names(row)) == ("NeedsSecondPerson", ["ada"])
    assert state_of(confirm(env, row, carla)) == "Confirmed"
    confirm(env, row, carla)  # a form that was sent twice
    kept = Confirmation.objects.get()
    assert (kept.person["username"], kept.access_reason) == ("carla", "by rule")
    facts = AuditEntry.objects.get(verb="deciding-object.confirmed").facts
    assert (facts["name"], facts["specDigest"], "spec" in facts) == ("web", kept.digest, False)


def test_S48_a_confirmation_is_of_one_spec(env: World) -> None:
    row, carla = write(env), second_person(env)
    said = dict(row.spec)
    confirm(env, row, carla)
    row = see(env, row, {**said, "ticket": "SEC-2"}, 2)
    assert (state_of(row), names(row)) == ("NeedsSecondPerson", [])
    with pytest.raises(NotAsExpected, match="was changed since you read it"):
        confirm(env, DecidingObject(name="web", uid=row.uid, generation=1), carla)
    with pytest.raises(NotAsExpected, match="was changed since you read it"):  # deleted, and made again by that name
        confirm(env, DecidingObject(name="web", uid="another", generation=2), carla)
    row = see(env, row, said, 3)  # who wrote it back is not known, and what carla confirmed ended with the change
    assert (state_of(row), names(row)) == ("NeedsSecondPerson", [])
    assert state_of(confirm(env, row, env.ada)) == "NeedsSecondPerson"
    assert state_of(confirm(env, row, carla)) == "Confirmed"
    assert names(row) == ["ada", "carla"]


def test_S48_one_person_never_counts_twice(env: World) -> None:
    """Under another account that the same login enters, and as a name that was typed in capitals."""
    row = see(env, write(env), spec_of(ticket="SEC-2"), 2)
    confirm(env, row, env.ada)
    confirm(env, row, env.ada)
    assert state_of(row) == "NeedsSecondPerson"
    again = Confirmation.objects.get()
    for person in (
        {**again.person, "user_id": 999},
        {**again.person, "username": "other"},
        {**again.person, "username": "ADA", "user_id": 999},
    ):
        other = User.objects.create_user(f"other-{len(Confirmation.objects.all())}")
        Confirmation.objects.create(
            object=row, digest=again.digest, user=other, person=person, access_reason="", given_at=again.given_at
        )
    fresh = DecidingObject.objects.get(pk=row.pk)
    assert (state_of(fresh), len(people_behind(fresh))) == ("NeedsSecondPerson", 1)


def test_S48_who_wrote_it_a_machine_and_who_may_not_confirm_nothing(env: World) -> None:
    row, carla = write(env), second_person(env)
    with pytest.raises(NotAllowed, match="you wrote web, so someone else must confirm it"):
        confirm(env, row, env.ada)
    with pytest.raises(NotAllowed):
        confirm(env, row, env.bert)
    asked = [one for who, one in env.kubernetes.asked if who == "bert"]
    assert [(one.verb, one.resource, one.name) for one in asked] == [("approve", "findingexceptions", "web")]
    KubernetesIdentity.objects.filter(user=carla).update(username="system:serviceaccount:ci:robot")
    env.kubernetes.allow("system:serviceaccount:ci:robot", "approve")
    with pytest.raises(NotAllowed):
        confirm(env, row, carla)
    DecidingObject.objects.update(writers=[{"username": "system:serviceaccount:ci:robot", "uid": "r"}])
    assert people_behind(DecidingObject.objects.get(pk=row.pk)) == []
    env.kubernetes.is_down = True
    with pytest.raises(Refused):
        confirm(env, row, env.ada)
    assert not Confirmation.objects.exists()


@pytest.mark.parametrize(
    ("change", "refusal", "words"),
    [
        ({"expires": "2020-01-01T00:00:00Z"}, InvalidInput, "it ended on 2020-01-01"),
        ({"expires": "2199-01-01T00:00:00Z"}, InvalidInput, "at most a year after the confirmation"),
        ({"rule": "OWN-PRATIQUE-01"}, InvalidInput, "affects Pratique itself"),
        ({"when": "size(rules"}, InvalidInput, "spec.when"),
        (None, NotAsExpected, "was changed since you read it"),
    ],
)
def test_what_could_not_count_is_confirmed_by_nobody(
    env: World, change: dict[str, Any] | None, refusal: type[Refused], words: str
) -> None:
    row, carla = write(env), second_person(env)
    if change is None:  # another one of this name, which the watch has not seen
        env.kubernetes.objects["web"]["metadata"]["uid"] = "another"
    else:
        row = see(env, row, spec_of(**change), 2)
    with pytest.raises(refusal, match=words):
        confirm(env, row, carla)
    assert not Confirmation.objects.exists()


def test_who_wrote_it_is_known_also_where_the_watch_was_faster(env: World) -> None:
    obj = {"metadata": {"name": "web", "uid": "u", "generation": 1, "resourceVersion": "1"}, "spec": spec_of()}
    about: dict[str, Any] = {"cluster": env.cluster, "kind": "FindingException", "obj": obj}
    deciding_objects.observe(**about, is_listed=True)
    writer = access.person_of(acting(env.ada), env.cluster).record()
    deciding_objects.observe(**about, writer=writer, is_listed=False)
    row = DecidingObject.objects.get()
    assert names(row) == ["ada"]
    deciding_objects.observe(**about, writer={**writer, "username": "eve"}, is_listed=False)
    assert names(DecidingObject.objects.get()) == ["ada"]


def test_a_confirmation_has_the_requests_looked_at_and_the_cluster_told(
    env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, looked = list[int](), list[str]()
    row, carla = write(env), second_person(env)
    DecidingObject.objects.update(show_at=None)
    monkeypatch.setattr("approvals.ledger.deciding.confirmations.wake.deciding_object", told.append)
    monkeypatch.setattr(
        "approvals.ledger.deciding.confirmations.look_again", lambda cluster: looked.append(cluster.name)
    )
    keep(row=row, spec=row.spec, by=acting(carla), access_reason="by rule", via="rest")
    keep(row=row, spec=row.spec, by=acting(carla), access_reason="by rule", via="rest")
    assert (told, looked) == ([row.pk], ["prod"])
    assert DecidingObject.objects.get().show_at is not None
