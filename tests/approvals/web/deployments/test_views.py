"""What the page of a deployment shows: its latest request, health, sources, spec, and revisions that were revoked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals.ledger import optionals
from approvals.lifecycle import State
from approvals.models import BundleDeployment, InventoryItem, OptionalObject, Outcome, Request, Revision
from approvals.selectors import followed_sources
from approvals.steps import evaluate
from approvals.steps.mirroring import conditions
from approvals.web.deployments import spec_form
from approvals.web.deployments.spec_form import folded_yaml
from approvals.web.deployments.views import _wait_seconds
from provisioner.values import ObjectRef
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened
from tests.support.approvals.revisions import keep_password
from tests.support.approvals.world import acting

PAGE = "/deployments/prod/strimzi"


def words_of(html: str) -> str:
    return " ".join(html.split())


def denied(request: Request, env: World, reason: str) -> None:
    world.review(request, acting(env.ada), "Deny", reason=reason)
    evaluate.run(Request.objects.get(pk=request.pk), "w")


def test_a_denial_is_told_with_who_and_why_and_the_next_step(env: World, request_: Request, browse: Browse) -> None:
    denied(request_, env, "not on a Friday")
    for verb in ("get", "update"):
        env.kubernetes.allow("rita", verb)
    shown = words_of(opened(browse(env.rita), PAGE))
    assert f'<a href="/requests/{request_.uid}">Request 1</a>: denied by <span class="mono">ada</span>' in shown
    assert "Not on a Friday." in shown
    assert f'<a class="button" href="{PAGE}/edit">Change it</a>' in shown


def test_a_step_that_the_viewer_may_not_take_is_not_offered(env: World, request_: Request, browse: Browse) -> None:
    denied(request_, env, "not on a Friday")
    env.kubernetes.allow("rita", "get")
    shown = opened(browse(env.rita), PAGE)
    assert "Not on a Friday." in shown
    assert ("Change it" in shown, "Ask again" in shown) == (False, False)


def test_a_reason_of_others_is_text(env: World, request_: Request, browse: Browse) -> None:
    denied(request_, env, "<script>alert(1)</script>\u202e")
    shown = opened(browse(env.ada), PAGE)
    assert ("<script>alert" in shown, "\u202e" in shown) == (False, False)


def test_the_fragment_counts_the_objects_and_says_that_the_page_is_old(
    env: World, request_: Request, browse: Browse
) -> None:
    client = browse(env.ada)
    assert 'hx-trigger="every 10s"' in opened(client, PAGE)
    Request.objects.filter(pk=request_.pk).update(state=State.APPLYING, phase="workloads")
    Outcome.objects.create(
        request=request_, position=0, object="ConfigMap a/b", action="create", state="failed", at=timezone.now()
    )
    fragment = words_of(opened(client, f"{PAGE}/progress?seen=1-in_review-0"))
    assert "phase workloads; 1 of 1 objects" in fragment
    assert "1 failed" in fragment
    assert 'hx-trigger="every 2s"' in fragment
    assert "changed since you opened the page" in fragment
    assert 'hx-swap-oob="true"' in fragment
    assert "<html" not in fragment


def test_it_asks_no_more_once_nothing_is_under_way(env: World, request_: Request, browse: Browse) -> None:
    denied(request_, env, "no")
    assert "hx-trigger" not in opened(browse(env.ada), f"{PAGE}/progress")


@pytest.mark.parametrize(
    ("state", "problem", "revision", "health", "seconds"),
    [
        pytest.param("applying", "", None, "", 2, id="being applied"),
        pytest.param("approved", "no rights", None, "", 10, id="waits for somebody"),
        pytest.param("in_review", "", None, "", 10, id="waits for people"),
        pytest.param("applied", "", 1, "InProgress", 10, id="not healthy yet"),
        pytest.param("applied", "", 1, "Current", 0, id="healthy"),
        pytest.param("denied", "", None, "", 0, id="denied, nothing runs"),
    ],
)
def test_how_soon_it_asks_again(state: str, problem: str, revision: int | None, health: str, seconds: int) -> None:
    deployment = BundleDeployment(active_revision_id=revision, health=health)
    assert _wait_seconds(deployment, Request(state=state, problem=problem)) == seconds


def test_S02_who_may_not_read_the_cluster_gets_no_fragment(env: World, request_: Request, browse: Browse) -> None:
    stranger = world.user("mallory", env.cluster)
    answer = browse(stranger).get(f"{PAGE}/progress")
    assert answer.status_code == 403
    assert "Request 1" not in answer.content.decode()


def test_the_page_costs_the_same_however_many_requests_there_are(
    env: World, request_: Request, browse: Browse, django_assert_num_queries: Any
) -> None:
    denied(request_, env, "no")
    client = browse(env.ada)
    client.get(PAGE)
    with CaptureQueriesContext(connection) as few:
        opened(client, PAGE)
    for number in range(2, 6):
        again = Request.objects.get(pk=request_.pk)
        again.pk, again.number, again.uid = None, number, f"00000000-0000-4000-8000-00000000000{number}"
        again.save(force_insert=True)
    with django_assert_num_queries(len(few)):
        opened(client, PAGE)


HEALTH_PAGE = "/deployments/prod/lighthouse"
HOSTILE = "pod lamp: FailedMount: <script>alert(1)</script>"
CHECK = {"apiVersion": "example.com/v1", "kind": "Widget", "namespace": "a", "name": "<b>"}


@pytest.fixture
def shown(afternoon: dict[str, Any], env: World, browse: Callable[[User], Client]) -> Callable[[], str]:
    """The page, with one object in trouble."""
    item = InventoryItem.objects.get(name="berth-7")
    item.health, item.health_message = "Failed", HOSTILE
    item.save()
    client = browse(env.ada)

    def look() -> str:
        return client.get(HEALTH_PAGE).content.decode()

    return look


def test_words_of_the_cluster_are_only_text(shown: Callable[[], str]) -> None:
    text = shown()
    assert "FailedMount: &lt;script&gt;" in text
    assert "<script>alert" not in text


def test_what_is_not_well_is_shown_first(shown: Callable[[], str]) -> None:
    text = shown()
    places = [text.index(f">berth-{number}<") for number in (7, 0, 10, 5, 1, 2)]
    assert places == sorted(places)


def test_a_missed_deadline_is_said_until_it_is_healthy(shown: Callable[[], str], afternoon: dict[str, Any]) -> None:
    words = "did not become healthy before its deadline"
    assert words not in shown()
    revision = Revision.objects.get(deployment__name="lighthouse")
    revision.overdue_at = timezone.now()
    revision.save()
    deployment = revision.deployment
    assert words not in shown()
    deployment.health = "InProgress"
    deployment.save()
    assert words in shown()


def test_the_checks_and_the_deadline_of_a_spec_are_shown(shown: Callable[[], str]) -> None:
    deployment = Revision.objects.get(deployment__name="lighthouse").deployment
    deployment.spec |= {"healthChecks": [{**CHECK, "condition": {"type": "Ready"}}], "progressDeadlineMinutes": 7}
    deployment.save()
    text = shown()
    assert "Widget a/&lt;b&gt;: condition type: Ready" in text
    assert "7 minutes of being applied" in " ".join(text.split())


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({**CHECK, "fieldValue": {"path": "status.x", "value": 3}}, "Widget a/<b>: field path: status.x, value: 3"),
        ({"kind": "Pod", "cel": {"current": "true"}}, "Pod: CEL current: true"),
        ({"kind": "Pod"}, "Pod: asks for nothing"),
        ({"kind": "Pod", "cel": "true"}, "Pod: asks for nothing"),
        ("nonsense", "nonsense"),
    ],
    ids=["field", "cel", "nothing", "another form", "no object"],
)
def test_a_check_is_shown_whatever_its_shape(entry: Any, words: str) -> None:
    assert spec_form.check_words(entry) == words


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("reference", "row", "words", "reason"),
    [
        ({}, {}, "every 10m, not checked yet", "NotChecked"),
        ({"looked_at": HOUR}, {}, "every 10m, last", "Checked"),
        (
            {"looked_at": HOUR, "problem_since": 3 * HOUR, "problem": "<b> is away", "problem_code": "unreachable"},
            {},
            "Cannot be checked; this failed first",
            "Unreachable",
        ),
        (
            {"looked_at": HOUR},
            {"problem_since": HOUR, "problem": "the cluster does not allow rita to get Secret x/pull"},
            "the cluster does not allow rita to get Secret x/pull",
            "Forbidden",
        ),
        ({"looked_at": HOUR}, {"moved_at": HOUR}, "A new request is created when the open request is settled", "Moved"),
        (
            {"looked_at": HOUR},
            {"moved_at": HOUR, "rests_until": -HOUR / 2},
            "created 4 requests within an hour, which is the limit",
            "ChangesTooOften",
        ),
        ({"looked_at": HOUR}, {"interval_seconds": 0}, "not checked: the interval is Never", ""),
    ],
    ids=["not yet", "well", "down", "not for them", "moved", "flaps", "never"],
)
def test_page_and_condition_say_how_a_source_stands(
    env: World,
    browse: Callable[[User], Client],
    reference: dict[str, Any],
    row: dict[str, Any],
    words: str,
    reason: str,
) -> None:
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), by=env.rita)
    world.following(deployment, reference, row)
    text = " ".join(browse(env.ada).get("/deployments/prod/strimzi").content.decode().split())
    assert words in text
    assert "<b> is away" not in text
    shown = conditions.of_sources(followed_sources.followed(deployment=BundleDeployment.objects.get(pk=deployment.pk)))
    assert [one.reason for one in shown] == ([reason] if reason else [])


def test_a_paused_deployment_says_that_nothing_is_checked(env: World, browse: Callable[[User], Client]) -> None:
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), by=env.rita)
    world.following(deployment, {"looked_at": HOUR}, {})
    BundleDeployment.objects.filter(pk=deployment.pk).update(is_paused=True, paused_generation=1)
    text = browse(env.ada).get("/deployments/prod/strimzi").content.decode()
    assert "not checked while paused" in text


LEFT_OUT_PAGE = "/deployments/prod/lighthouse"


@pytest.mark.parametrize(
    ("state", "problem", "shown"),
    [
        pytest.param("waiting", "", "waiting for its API", id="waiting"),
        pytest.param("waiting", "harbour is paused", "harbour is paused", id="waiting for more"),
        pytest.param("asked", "Lamp pier exists already; request 2 asks for it", "request 2 asks", id="asked"),
        pytest.param("created", "", "was created", id="created"),
        pytest.param("asked", "<script>alert(1)</script>", "&lt;script&gt;", id="S24 others' words are text"),
    ],
)
def test_the_page_lists_what_was_left_out(
    env: World, afternoon: dict[str, Any], browse: Browse, state: str, problem: str, shown: str
) -> None:
    revision = afternoon["deployment"].active_revision
    optionals.keep(revision, [ObjectRef("harbour.example.com", "v1", "Lamp", "quay", "pier")])
    OptionalObject.objects.update(state=state, problem=problem)
    found = opened(browse(env.ada), LEFT_OUT_PAGE)
    assert "harbour.example.com/v1" in found
    assert shown in found
    assert "<script>alert" not in found


def test_without_any_the_page_says_nothing_of_it(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    assert 'id="left-out"' not in opened(browse(env.ada), LEFT_OUT_PAGE)


def test_credentials_in_the_config_are_hidden() -> None:
    config = {
        "values": {"admin": {"password": "correct horse"}, "url": "https://ada:battery@example.com", "replicas": 3}
    }
    (shown,) = folded_yaml({"config": config})
    assert (shown.title, shown.is_short) == ("Config", True)
    for secret in ("correct horse", "battery"):
        assert secret not in shown.text
    assert "replicas: 3" in shown.text


def test_fields_with_a_line_of_their_own_are_not_said_twice() -> None:
    spec = {**world.spec(), "drift": "Report", "revisionHistoryLimit": 3}
    (shown,) = folded_yaml(spec)
    assert (shown.title, shown.text) == ("Other fields", "revisionHistoryLimit: 3\n")


@pytest.mark.parametrize(("lines", "is_open"), [(3, True), (40, False)])
def test_the_page_shows_the_format_and_folds_a_long_config(
    env: World, browse: Callable[[User], Client], lines: int, is_open: bool
) -> None:
    config = {"values": {f"key-{number:02}": "<b>" for number in range(lines)}}
    wish = world.spec(format="helm", config=config)
    world.submit_spec(env.cluster, world.seen("strimzi", wish), by=env.rita)
    shown = " ".join(opened(browse(env.ada), f"/deployments/prod/{BundleDeployment.objects.get().name}").split())
    assert '<dt>Format</dt><dd class="mono">helm</dd>' in shown
    assert "key-00: &lt;b&gt;" in shown
    assert ("<details open> <summary>Config</summary>" in shown) is is_open


REVOKE = f'action="{PAGE}/revoke"'
REINSTATE = f'action="{PAGE}/reinstate"'
GO_BACK = "Request rollback to revision 1"
WHY = "<b>leaks keys</b>"


def test_a_revoked_revision_says_by_whom_and_why_and_is_not_offered(
    env: World, twice: BundleDeployment, browse: Callable[[User], Client]
) -> None:
    env.kubernetes.allow("ada", "update")
    client = browse(env.ada)
    text = client.get(PAGE).content.decode()
    assert (text.count(REVOKE), text.count(REINSTATE), GO_BACK in text) == (2, 0, True)
    assert ("Request to apply revision 2 again" in text, "Request rollback to revision 2" in text) == (True, False)
    assert client.post(f"{PAGE}/revoke", {"revision": "1", "reason": WHY}).status_code == 302
    text = client.get(PAGE).content.decode()
    assert (text.count(REVOKE), text.count(REINSTATE), GO_BACK in text) == (1, 1, False)
    assert "&lt;b&gt;leaks keys&lt;/b&gt;" in text
    refused = client.post(f"{PAGE}/rollback", {"revision": "1"})
    assert refused.status_code == 409
    assert "revision 1 was revoked by ada: &lt;b&gt;leaks keys&lt;/b&gt;" in refused.content.decode()
    assert client.post(f"{PAGE}/reinstate", {"revision": "1"}).status_code == 302
    assert not Revision.objects.exclude(revoked_at=None).exists()


def test_a_revocation_without_reason_or_revision_is_sent_back_with_words(
    env: World, twice: BundleDeployment, browse: Callable[[User], Client]
) -> None:
    client = browse(env.ada)
    answer = client.post(f"{PAGE}/revoke", {"revision": "1", "reason": " "})
    assert answer.status_code == 422
    assert "give a reason" in answer.content.decode()
    assert client.post(f"{PAGE}/revoke", {"revision": "one", "reason": "x"}).status_code == 422
    assert not Revision.objects.exclude(revoked_at=None).exists()


def test_who_may_only_read_is_offered_nothing_and_refused(
    env: World, twice: BundleDeployment, browse: Callable[[User], Client]
) -> None:
    env.kubernetes.allow("bert", "get")
    client = browse(env.bert)
    text = client.get(PAGE).content.decode()
    assert (text.count(REVOKE), text.count(REINSTATE)) == (0, 0)
    assert client.post(f"{PAGE}/revoke", {"revision": "1", "reason": "x"}).status_code == 403
    assert not Revision.objects.exclude(revoked_at=None).exists()


def test_new_values_are_asked_for_by_who_confirms_and_may(
    env: World, twice: BundleDeployment, browse: Callable[[User], Client]
) -> None:
    keep_password(twice, "Xk2abcdef")
    form = f'action="{PAGE}/rotate"'
    env.kubernetes.allow("bert", "get")
    assert form not in browse(env.bert).get(PAGE).content.decode()
    env.kubernetes.allow("ada", "update")
    client = browse(env.ada)
    shown = client.get(PAGE).content.decode()
    assert form in shown
    assert '<option value="db/password">' in shown
    assert "until they are restarted" in shown
    assert "Xk2abcdef" not in shown
    refused = client.post(f"{PAGE}/rotate", {"target": "db"})
    assert (refused.status_code, "Confirm that you know" in refused.content.decode()) == (422, True)
    refused = client.post(f"{PAGE}/rotate", {"target": "<b>", "understood": "yes"})
    assert (refused.status_code, "There are: db, db/password" in refused.content.decode()) == (422, True)
    answer = client.post(f"{PAGE}/rotate", {"target": "db/password", "understood": "yes"})
    made = Request.objects.get(purpose="rotate")
    assert (answer.status_code, answer["Location"]) == (302, f"/requests/{made.uid}")
