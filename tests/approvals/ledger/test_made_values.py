"""What a deployment keeps of what its chart made up: which value counts next, and that no words hold it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from approvals import retention, services
from approvals.audit import MACHINE
from approvals.encryption import keys
from approvals.errors import InvalidInput
from approvals.ledger import drifts, made_values, retries
from approvals.ledger.moves import locked, move
from approvals.lifecycle import Event
from approvals.models import AuditEntry, BundleDeployment, Drift, InventoryItem, KeptValue, Request, Revision
from approvals.steps.records.notes import Notes
from approvals.steps.restore import settle_overdue
from provisioner.cluster.drift import DriftKind, FieldChangeKind, FieldDrift, ObjectDrift, Strikes
from provisioner.errors import TryLater, Unreachable
from provisioner.values import Action, MadePlace, MadeSort, MadeUp, MadeValue, ObjectOutcome, ObjectRef, OutcomeState
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting, seen, spec, submit_spec
from tests.support.secrets import with_keys

pytestmark = pytest.mark.django_db
PLACE = MadePlace("Secret", "harbour", "db", "/data/password")
FIRST, SECOND = "first-9f2c47d81", "second-77aa01cc"
QUOTED = f'Invalid value: "{FIRST}"'


def made(value: str, *, is_new: bool = True, place: MadePlace = PLACE) -> MadeUp:
    return MadeUp((MadeValue(place, value, MadeSort.PASSWORD, (), is_new),))


def keep(request: Request, made_up: MadeUp) -> None:
    with transaction.atomic():
        row = locked(request.pk)
        row.made_values = made_values.keep(row, made_up)
        row.save(update_fields=["made_values"])


def counting(deployment: BundleDeployment) -> dict[str, str]:
    deployment.refresh_from_db()
    return {key: row.value for key, row in made_values.kept_rows(deployment).items()}


@pytest.fixture
def kept(twice: BundleDeployment) -> BundleDeployment:
    """Two requests, the second of which runs, and replaced the value of the first."""
    first, second = twice.requests.order_by("number")
    keep(first, made(FIRST))
    row = KeptValue.objects.get()
    again = {"deployment": twice, "place": row.place, "place_key": row.place_key, "sort": row.sort}
    KeptValue.objects.create(**again, generation=2, value=SECOND, first_request=second, made_at=timezone.now())
    records = [{**record, "generation": 2} for record in Request.objects.get(pk=first.pk).made_values["values"]]
    Request.objects.filter(pk=second.pk).update(made_values={"values": records, "checksums": []})
    return twice


def test_the_value_of_the_running_revision_counts_next_else_the_newest(kept: BundleDeployment) -> None:
    assert counting(kept) == {PLACE.key: SECOND}
    BundleDeployment.objects.filter(pk=kept.pk).update(active_revision=kept.revisions.get(number=1))
    assert counting(kept) == {PLACE.key: FIRST}
    Request.objects.update(made_values={})
    assert counting(kept) == {PLACE.key: SECOND}, "a place that the request does not name"


@pytest.mark.parametrize(
    "other", [made(SECOND), made(SECOND, is_new=False)], ids=["new", "another"]
)  # fmt: skip
def test_a_rendering_without_the_value_that_counts_by_now_is_done_again(twice: BundleDeployment, other: MadeUp) -> None:
    first, second = twice.requests.order_by("number")
    keep(first, made(FIRST))
    with pytest.raises(TryLater, match="rendered again"):
        keep(second, other)
    assert [row.value for row in KeptValue.objects.all()] == [FIRST]


def test_a_value_of_another_deployment_does_not_decrypt(kept: BundleDeployment, env: World) -> None:
    other = submit_spec(env.cluster, seen("other", spec()), env.rita)
    KeptValue.objects.filter(generation=1).update(deployment=other)
    with pytest.raises(Exception, match="another|belongs|not encrypted|changed"):
        assert counting(other)


def test_S44_no_problem_no_audit_entry_and_no_outcome_quotes_it(kept: BundleDeployment) -> None:
    request = kept.requests.order_by("number")[0]
    Request.objects.filter(pk=request.pk).update(state="approved")
    about = {"ref": {"name": "db"}, "words": QUOTED}
    with transaction.atomic():
        row = locked(request.pk)
        retries.hold(row, Unreachable(QUOTED), timezone.now())
        assert FIRST not in row.problem
        move(row, Event.GIVE_UP, actor=MACHINE, facts={"why": QUOTED}, problem=QUOTED, server_words=[about])
    outcome = ObjectOutcome(
        ObjectRef("", "v1", "ConfigMap", "harbour", "url"), Action.CREATE, OutcomeState.FAILED, QUOTED,
        warnings=(QUOTED,), server_words=QUOTED,
    )  # fmt: skip
    (failed,) = Notes(request, lambda: True).keep([outcome])
    rows = [*Request.objects.values(), *request.outcomes.values(), *AuditEntry.objects.values("facts"), failed]
    assert FIRST not in str(rows)
    assert made_values.HIDDEN in failed.message


def test_S44_a_revision_that_is_late_and_goes_back_does_not_quote_it(kept: BundleDeployment) -> None:
    late = kept.revisions.select_related("request").get(number=2)
    spec = {**late.request.spec, "onFailure": "RestorePrevious"}
    Request.objects.filter(pk=late.request_id).update(
        spec=spec, from_revision=kept.revisions.get(number=1), options_digest=kept.options_digest, state="applied"
    )
    late.refresh_from_db()
    with transaction.atomic():
        settle_overdue(late, kept, f"not healthy in time; {QUOTED}")
    late.refresh_from_db()
    assert late.message == Request.objects.get(pk=late.request_id).problem
    assert "not healthy in time" in late.message
    assert FIRST not in late.message


def test_S44_what_drifted_is_told_without_it(kept: BundleDeployment) -> None:
    active = kept.revisions.order_by("-number")[0]
    item = InventoryItem.objects.create(
        deployment=kept, revision=active, version="v1", kind="ConfigMap", namespace="harbour", name="url", nonce="n"
    )
    field = FieldDrift("data.url", FieldChangeKind.CHANGED, "kubectl", "", f"u:{FIRST[:12]}…", "u:x")
    drift = ObjectDrift(DriftKind.CHANGED, (field,), QUOTED)
    drifts.note(
        item=item, revision=active, drift=drift, problem="", strikes=Strikes(), now=timezone.now(), server_words=QUOTED
    )
    row = Drift.objects.get()
    assert (row.fields[0]["expected"], row.fields[0]["found"]) == (f"u:{made_values.HIDDEN}…", "u:x")
    assert FIRST[:12] not in f"{row.message}{row.server_words}{row.fields}"


def test_S44_what_drifted_is_told_without_a_short_value_at_its_own_place(twice: BundleDeployment) -> None:
    active = twice.revisions.order_by("-number")[0]
    keep(active.request, made("4711", place=MadePlace("ConfigMap", "harbour", "url", "/data/pin~1x")))
    active.request.refresh_from_db()
    item = InventoryItem(deployment=twice, revision=active, version="v1", kind="ConfigMap", namespace="harbour")
    item.name, item.nonce = "url", "n"
    item.save()
    fields = tuple(
        FieldDrift(path, FieldChangeKind.CHANGED, "kubectl", "", "4711", "1") for path in ("data.pin/x", "b")
    )
    fields += (FieldDrift("data.port", FieldChangeKind.CHANGED, "kubectl", "", "80", "4711"),)
    told = {"problem": "", "strikes": Strikes(), "now": timezone.now()}
    drifts.note(item=item, revision=active, drift=ObjectDrift(DriftKind.CHANGED, fields, ""), **told)
    shown = [(field["expected"], field["found"]) for field in Drift.objects.get().fields]
    assert shown == [(made_values.HIDDEN, made_values.HIDDEN)] * 2 + [("80", "4711")]


def test_where_the_key_is_missing_nothing_is_quoted_and_the_request_moves_on(
    kept: BundleDeployment, settings: Any
) -> None:
    with_keys(settings, keys.key_of(b"k" * 32))
    assert made_values.without_values(kept.pk, [QUOTED, ""]) == [made_values.UNREADABLE, ""]


def test_values_go_with_the_details_of_a_deployment_that_is_gone(kept: BundleDeployment) -> None:
    now = timezone.now()
    retention.clear(now, keep_days=30)
    assert KeptValue.objects.count() == 2
    BundleDeployment.objects.update(gone_at=now - timedelta(days=31))
    retention.clear(now, keep_days=30)
    assert KeptValue.objects.count() == 0


def test_a_value_is_found_at_any_place_that_it_went_to(twice: BundleDeployment) -> None:
    first, second = twice.requests.order_by("number")
    copy = replace(PLACE, kind="ConfigMap", path="/data/url")
    keep(first, MadeUp((MadeValue(PLACE, FIRST, MadeSort.PASSWORD, (copy,)),)))
    BundleDeployment.objects.update(active_revision=twice.revisions.get(number=1))
    twice.refresh_from_db()
    given = {key: row.value for key, row in made_values.given_rows(twice).items()}
    assert given == {PLACE.key: FIRST, copy.key: FIRST}
    keep(second, made(FIRST, is_new=False, place=copy))
    assert KeptValue.objects.count() == 1
    assert Request.objects.get(pk=second.pk).made_values["values"][0]["key"] == PLACE.key


def test_a_value_that_was_made_anew_counts_once_it_runs_and_follows_the_place_of_before(
    twice: BundleDeployment,
) -> None:
    """Also where the next version has it at another place first, or has made two of one."""
    first, second = twice.requests.order_by("number")
    copy, also = (replace(PLACE, kind="ConfigMap", path=path) for path in ("/data/url", "/data/more"))
    keep(first, MadeUp((MadeValue(PLACE, FIRST, MadeSort.PASSWORD, (copy,)),)))
    BundleDeployment.objects.update(active_revision=twice.revisions.get(number=1))
    twice.refresh_from_db()
    assert made_values.rotated_keys(twice, "db/password") == {PLACE.key, copy.key}
    anew = [
        replace(made(text, is_new=False, place=place).values[0], is_rotated=True, copies=(also,))
        for text, place in ((SECOND, copy), ("third-1b2c3d4e", PLACE))
    ]
    Revision.objects.filter(request=second).update(state="failed")
    keep(second, MadeUp(tuple(anew[:1])))
    row = KeptValue.objects.get(origin="rotation")
    assert (row.place_key, row.place["kind"], row.generation) == (PLACE.key, "Secret", 2)
    assert counting(twice) == {PLACE.key: FIRST}
    record = Request.objects.get(pk=first.pk).made_values
    Request.objects.filter(pk=first.pk).update(made_values={})
    assert counting(twice) == {PLACE.key: FIRST}, "nor where the running revision does not have the place"
    Request.objects.filter(pk=first.pk).update(made_values=record)
    row.delete()
    keep(second, MadeUp(tuple(anew)))
    rows = KeptValue.objects.filter(origin="rotation")
    assert {(row.place_key, row.generation, row.value) for row in rows} == {
        (PLACE.key, 2, "third-1b2c3d4e"),
        (copy.key, 1, SECOND),
    }
    Request.objects.filter(pk=first.pk).update(made_values={})
    assert {row.value for row in made_values.given_rows(twice).values()} == {FIRST}, "also for what only it has"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("db", ""),
        ("db/password", ""),
        ("*", ""),
        ("db/user", "keeps no value under the name 'db/user'; expected SECRET, SECRET/KEY or * for all of them. There"),
        ("db/password/x", "There are: db, db/password"),
        ("", "There are: db, db/password"),
        ("x" * 600, f"the name '{'x' * 100}'; expected"),
        ("url", "There are: db, db/password"),
    ],
)
def test_what_may_be_named_is_in_use_and_in_a_secret(kept: BundleDeployment, target: str, words: str) -> None:
    why_not = made_values.why_not_rotatable(kept, target)
    assert words in why_not
    assert bool(words) == bool(why_not)


def test_nothing_is_rotated_that_is_not_in_use_or_is_about_to_go(kept: BundleDeployment) -> None:
    kept.active_revision = None
    assert "no revision of strimzi is in force" in made_values.why_not_rotatable(kept, "db")
    kept.deletion_requested_at = timezone.now()
    assert made_values.why_not_rotatable(kept, "db") == "strimzi is being deleted"


def test_S05_who_asks_for_a_rotation_is_its_requester_and_who_sets_the_annotation_is_unknown(
    env: World, kept: BundleDeployment
) -> None:
    services.rotate_deployment(by=acting(env.ada), deployment=kept, target="db", via="browser")
    request = Request.objects.get(purpose="rotate")
    assert (request.rotation, request.spec, request.options_digest) == (["db"], kept.spec, kept.options_digest)
    assert ([person["username"] for person in request.requesters], request.is_requester_known) == (["ada"], True)
    annotations = {"core.rukpak.io/rotate": "*@1"}
    for _ in range(2):
        submit_spec(env.cluster, seen("strimzi", kept.spec, uid=kept.uid, generation=2, annotations=annotations))
    other = Request.objects.get(purpose="rotate", state="preparing")
    assert (other.rotation, names_of(other), other.is_requester_known) == (["*", "db"], ["ada"], False)
    assert other.number == request.number + 1


def names_of(request: Request) -> list[str]:
    return [person["username"] for person in request.requesters]


@pytest.mark.parametrize("is_proved", [True, False], ids=["by a door of ours", "by annotation"])
def test_S05_who_asked_for_a_rotation_asks_for_the_request_that_takes_it_over(
    env: World, kept: BundleDeployment, is_proved: bool
) -> None:
    obj = seen("strimzi", kept.spec, uid=kept.uid, generation=2, annotations={"core.rukpak.io/rotate": "db@1"})
    if is_proved:
        services.rotate_deployment(by=acting(env.ada), deployment=kept, target="db", via="browser")
    else:
        submit_spec(env.cluster, obj)
    changed = submit_spec(env.cluster, seen("strimzi", spec("3"), uid=kept.uid, generation=3), env.rita)
    request = changed.requests.get(state="preparing")
    assert (request.purpose, request.spec, request.rotation) == ("deploy", spec("3"), ["db"])
    assert (names_of(request), request.is_requester_known) == ((["ada"] if is_proved else []) + ["rita"], is_proved)


def test_a_rotation_that_is_seen_together_with_a_new_spec_is_for_both(env: World, kept: BundleDeployment) -> None:
    annotations = {"core.rukpak.io/rotate": "db@1"}
    obj = seen("strimzi", spec("3"), uid=kept.uid, generation=3, annotations=annotations)
    request = submit_spec(env.cluster, obj, env.rita).requests.get(state="preparing")
    assert (request.purpose, request.spec, request.rotation) == ("deploy", spec("3"), ["db"])


def test_a_value_in_the_name_of_an_object_is_never_rotated(twice: BundleDeployment) -> None:
    """Also where a Secret has it, too: there would be another object."""
    name = replace(PLACE, kind="Service", name="", path="templates/s.yaml#0/metadata/name")
    keep(twice.requests.get(number=2), MadeUp((MadeValue(PLACE, FIRST, MadeSort.PASSWORD, (name,)),)))
    assert "keeps no values" in made_values.why_not_rotatable(twice, "*")
    assert made_values.rotated_keys(twice, "db") == set()


def test_nobody_rotates_beside_an_open_rollback(env: World, kept: BundleDeployment) -> None:
    services.rollback_deployment(by=acting(env.ada), deployment=kept, revision=1, via="browser")
    with pytest.raises(InvalidInput, match="request 3 is an open rollback; decide or withdraw it first"):
        services.rotate_deployment(by=acting(env.ada), deployment=kept, target="db", via="browser")


def test_the_annotation_of_a_copied_manifest_asks_for_nothing(env: World) -> None:
    copied = seen("copy", spec(), annotations={"core.rukpak.io/rotate": "db@1"})
    deployment = submit_spec(env.cluster, copied, env.rita)
    assert (deployment.problem, deployment.requests.get().rotation) == ("", [])
