"""Every credential is counted by address and name, and strangers learn nothing from how they are refused."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from approvals import services
from approvals.api import authentication
from approvals.errors import InvalidInput, TooManyAttempts
from approvals.models import ApiToken, Cluster
from approvals.project.middleware import EXPENSIVE, PERSON, STRANGER
from approvals.rate_limits import counters
from approvals.rate_limits.clients import counted_as
from approvals.rate_limits.counters import Limit
from approvals.services import sign_ins
from provisioner.errors import Unreachable
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.senders import decision_body, post_webhook, webhook_headers
from tests.support.approvals.world import acting, enter

PHRASE = "a long enough phrase"
HOME, CAFE = "192.0.2.7", "198.51.100.9"


@pytest.fixture
def local(env: World) -> User:
    return User.objects.create_user("local", password=PHRASE)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_ins, "REFUSAL_SECONDS", 0.0)


def by_password(name: str, password: str, address: str = HOME, **headers: str) -> HttpResponse:
    form = {"with": "password", "username": name, "password": password}
    return Client(REMOTE_ADDR=address, headers=headers).post("/sign-in", form)


def by_token(cluster: str, token: str, address: str = HOME) -> HttpResponse:
    form = {"with": "token", "cluster": cluster, "token": token}
    return Client(REMOTE_ADDR=address).post("/sign-in", form)


def by_bearer(token: str, address: str = HOME) -> HttpResponse:
    client = Client(REMOTE_ADDR=address, headers={"Authorization": f"Bearer {token}"})
    return client.get("/api/v1/clusters")


def call_before(limit: Limit, key: str, times: int) -> None:
    """As after so many calls that count toward `limit`."""
    for _ in range(times):
        counters.note(limit, key)


def is_in(response: HttpResponse) -> bool:
    return response.status_code == 302


def api_token(user: User) -> str:
    return world.api_token(user)[1]


def test_S29_forty_wrong_passwords_in_a_row_end_at_the_fifth_and_say_when_to_try_again(local: User) -> None:
    answers = [by_password("local", f"guess {number}") for number in range(40)]
    assert [answer.status_code for answer in answers[:4]] == [403] * 4
    assert {answer.status_code for answer in answers[4:]} == {429}
    assert answers[-1]["Retry-After"].isdigit()
    assert "Try again in 15 minutes" in answers[4].content.decode()
    assert not is_in(by_password("local", PHRASE)), "the right one is not looked at while it is locked"


def test_S29_a_stranger_does_not_lock_out_a_person_from_elsewhere(local: User) -> None:
    for number in range(10):
        by_password("local", f"guess {number}", CAFE)
    assert is_in(by_password("local", PHRASE, HOME))


def test_S29_many_names_from_one_address_are_locked_by_address(local: User) -> None:
    answers = [by_password(f"name-{number}", "guess", CAFE).status_code for number in range(40)]
    assert answers == [403] * 30 + [429] * 10
    assert by_password("local", PHRASE, CAFE).status_code == 429
    assert is_in(by_password("local", PHRASE, HOME))


def test_S29_who_came_in_from_an_address_before_is_not_locked_out_by_others_there(local: User) -> None:
    assert is_in(by_password("local", PHRASE, CAFE))
    for number in range(40):
        by_password(f"name-{number}", "guess", CAFE)
    assert is_in(by_password("local", PHRASE, CAFE))


def test_S29_one_name_from_many_addresses_is_slowed_down_but_known_places_stay_open(local: User) -> None:
    assert is_in(by_password("local", PHRASE, HOME))
    answers = [by_password("local", "guess", f"203.0.113.{number}").status_code for number in range(120)]
    assert answers[-20:] == [429] * 20
    assert is_in(by_password("local", PHRASE, HOME))


def test_S29_addresses_of_one_ipv6_network_count_as_one(local: User) -> None:
    answers = [by_password("local", "guess", f"2001:db8::{number:x}").status_code for number in range(1, 9)]
    assert answers == [403] * 4 + [429] * 4
    assert by_password("local", "guess", "2001:db8:0:1::1").status_code == 403


def test_S29_an_unknown_a_switched_off_and_a_tokens_only_account_answer_like_a_wrong_password(local: User) -> None:
    User.objects.create_user("off", password=PHRASE, is_active=False)
    User.objects.create_user("tokens-only")
    tried = {"local": "guess", "nobody-here": "guess", "tokens-only": "guess", "off": PHRASE}
    pages = [by_password(name, password).content.decode() for name, password in tried.items()]
    bare = {"".join(line for line in page.splitlines() if "value=" not in line) for page in pages}
    assert len(bare) == 1


def test_S29_every_refused_password_costs_one_hash(local: User, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.contrib.auth.hashers import MD5PasswordHasher

    hashed: list[str] = []
    original = MD5PasswordHasher.encode

    def counted(self: Any, password: str, salt: str) -> str:
        hashed.append(password)
        return str(original(self, password, salt))

    User.objects.create_user("off", password=PHRASE, is_active=False)
    User.objects.create_user("tokens-only")
    monkeypatch.setattr(MD5PasswordHasher, "encode", counted)
    costs = []
    for name in ("local", "nobody-here", "off", "tokens-only"):
        hashed.clear()
        by_password(name, "guess")
        costs.append(len(hashed))
    assert costs == [1, 1, 1, 1]


def test_S29_signing_in_begins_the_count_anew(local: User) -> None:
    for _ in range(3):
        answers = [by_password("local", "typo").status_code for _ in range(3)]
        assert answers == [403] * 3
        assert is_in(by_password("local", PHRASE))


def test_S29_retry_after_tells_the_time_that_is_left(local: User) -> None:
    with time_machine.travel(timezone.now(), tick=False) as now, pytest.MonkeyPatch.context() as patch:
        patch.setattr(counters, "time", SimpleNamespace(monotonic=time.time))
        patch.setattr(counters, "AWAY_SECONDS", 10_000.0)
        for _ in range(4):
            by_password("local", "guess")
        for passed, left in ((0, 900), (840, 60), (59, 1)):
            now.shift(passed)
            answer = by_password("local", "guess")
            assert (answer.status_code, answer["Retry-After"]) == (429, str(left))
        assert "Try again in 1 s" in answer.content.decode()
        now.shift(1)
        assert is_in(by_password("local", PHRASE))


def test_S29_strangers_do_not_make_the_service_ask_a_cluster_without_end(env: World) -> None:
    asked_about: list[str] = []
    env.kubernetes.review_token = lambda cluster, token: asked_about.append(token)
    answers = [by_token("prod", f"wrong-{number}").status_code for number in range(57)]
    assert answers == [403] * 10 + [429] * 47
    assert len(asked_about) == 10
    for number in range(200):
        by_token("prod", "wrong", f"203.0.113.{number}")
    assert len(asked_about) == 60, "from everywhere together at most one a second"


def test_S29_the_limit_on_strangers_does_not_shut_out_who_signed_in_there_before(env: World) -> None:
    env.kubernetes.tokens["good"] = Identity("carla")
    assert is_in(by_token("prod", "good", HOME))
    for number in range(100):
        by_token("prod", "wrong", f"203.0.113.{number}")
    assert by_token("prod", "good", CAFE).status_code == 429
    assert is_in(by_token("prod", "good", HOME))


@pytest.mark.parametrize("token", ["two words", "t\u00f6ken", "x" * 17_000, "a;b", "=", "{}"])
def test_S29_what_is_no_token_is_refused_without_asking_the_cluster(env: World, token: str) -> None:
    env.kubernetes.review_token = lambda *_: pytest.fail("asked")
    assert by_token("prod", token).status_code == 403


class SleepyClock:
    """Moves only while somebody sleeps."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_S29_a_stranger_cannot_tell_which_clusters_there_are(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SleepyClock()
    monkeypatch.setattr(sign_ins, "time", clock)
    monkeypatch.setattr(sign_ins, "REFUSAL_SECONDS", 0.3)
    Cluster.objects.create(name="silent", uid="u", kubeconfig="{}", created_at=timezone.now())
    seen, times = set(), []

    def review(cluster: Cluster, token: str) -> None:
        clock.sleep(0.1)
        if cluster.name == "silent":
            clock.sleep(0.1)
            raise Unreachable("the API server of silent did not answer")

    env.kubernetes.review_token = review
    for cluster in ("prod", "moon", "silent"):
        begin = clock.monotonic()
        answer = by_token(cluster, "wrong")
        times.append(clock.monotonic() - begin)
        page = answer.content.decode().replace(cluster, "C")
        seen.add((answer.status_code, "".join(line for line in page.splitlines() if "csrf" not in line)))
    assert len(seen) == 1
    assert times == pytest.approx([0.3] * 3)


@pytest.mark.parametrize("path", ["/sign-in", "/", "/clusters", "/readyz", "/api/v1/clusters", "/api/v1/schema", "/x"])
def test_S29_no_page_names_a_cluster_to_a_stranger(env: World, path: str) -> None:
    Cluster.objects.update(name="secret-harbour")
    response = Client().get(path, follow=True)
    assert "secret-harbour" not in response.content.decode()


def test_S29_a_stranger_is_sent_to_sign_in_whether_or_not_there_is_such_a_thing(env: World, asked: Any) -> None:
    there = [f"/requests/{asked.uid}", "/deployments/prod/strimzi", "/policies/of/routine"]
    nowhere = ["/requests/00000000-0000-4000-8000-000000000000", "/deployments/moon/x", "/policies/of/none"]
    assert {Client().get(path)["Location"].partition("?")[0] for path in there + nowhere} == {"/sign-in"}
    uids = [f"/api/v1/requests/{uid}" for uid in (asked.uid, "00000000-0000-4000-8000-000000000000")]
    assert len({Client().get(path).content for path in uids}) == 1


def test_a_browser_remembers_the_name_of_the_cluster_where_it_signed_in(env: World) -> None:
    env.kubernetes.tokens["good"] = Identity("carla")
    client = Client()
    client.post("/sign-in", {"with": "token", "cluster": "prod", "token": "good"})
    client.post("/sign-out")
    assert 'value="prod"' in client.get("/sign-in").content.decode()
    assert 'value="prod"' not in Client().get("/sign-in").content.decode()


def test_S29_guessing_api_tokens_ends_in_429_as_a_problem(env: World) -> None:
    answers = [by_bearer(f"prq_{number}") for number in range(40)]
    assert [answer.status_code for answer in answers] == [401] * 30 + [429] * 10
    assert answers[-1]["Content-Type"] == "application/problem+json"
    assert json.loads(answers[-1].content)["code"] == "too-many-attempts"
    assert int(answers[-1]["Retry-After"]) <= 300


def test_S29_a_robot_that_works_from_an_address_goes_on_working_beside_who_guesses_there(env: World) -> None:
    token = api_token(env.ada)
    assert by_bearer(token).status_code == 200
    for number in range(40):
        by_bearer(f"prq_{number}")
    assert by_bearer(token).status_code == 200
    ApiToken.objects.all().delete()
    assert by_bearer(token).status_code == 401


def test_S29_forged_callbacks_end_in_429_before_they_are_read(asked: Any, robot: User) -> None:
    body = decision_body(asked)
    forged = webhook_headers(body, secret=b"x" * 32)
    answers = [post_webhook(body, forged) for _ in range(40)]
    assert [answer.status_code for answer in answers] == [401] * 30 + [429] * 10
    assert int(answers[-1]["Retry-After"]) > 0


def test_S29_a_sender_whose_signature_held_is_heard_beside_a_forger(asked: Any, robot: User) -> None:
    body = decision_body(asked)
    assert post_webhook(body, webhook_headers(body)).status_code == 202
    for _ in range(40):
        post_webhook(body, webhook_headers(body, secret=b"x" * 32))
    assert post_webhook(body, webhook_headers(body, key="msg_2")).status_code == 202


def test_S29_guessing_the_code_of_a_chat_account_ends(env: World) -> None:
    code = services.issue_link_code(tool="slack", tenant="T", account="U", name="u")
    for number in range(10):
        with pytest.raises(InvalidInput):
            services.link_chat_account(by=acting(env.bert), code=f"{number:010x}")
    with pytest.raises(TooManyAttempts):
        services.link_chat_account(by=acting(env.bert), code=code)
    assert services.link_chat_account(by=acting(env.ada), code=code).user == env.ada


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        pytest.param("get", "/sign-in", {"Authorization": "x"}, id="a header that is no token"),
        pytest.param("get", "/api/v1/requests", {"Authorization": "x"}, id="the same at the API"),
        pytest.param("get", "/nowhere", {}, id="a page that is not there"),
        pytest.param("post", "/sign-in", {}, id="a form from elsewhere"),
    ],
)
def test_S29_nothing_that_a_stranger_sends_is_not_counted(
    env: World, method: str, path: str, headers: dict[str, str]
) -> None:
    client = Client(enforce_csrf_checks=True, REMOTE_ADDR=HOME)
    call_before(STRANGER, counted_as(HOME), 298)
    statuses = [getattr(client, method)(path, headers=headers).status_code for _ in range(3)]
    assert [status == 429 for status in statuses] == [False, False, True]


def test_S29_pages_are_limited_for_strangers_by_address(env: World) -> None:
    client = Client(REMOTE_ADDR=CAFE)
    call_before(STRANGER, counted_as(CAFE), 298)
    answers = [client.get("/sign-in") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[-1]["Retry-After"]) <= 60
    assert Client(REMOTE_ADDR=HOME).get("/sign-in").status_code == 200
    assert client.get("/healthz").status_code == 200


def test_S29_what_costs_much_is_limited_by_person(env: World, asked: Any) -> None:
    client, other = Client(raise_request_exception=False), Client()
    enter(client, env.ada)
    enter(other, env.bert)
    path = f"/requests/{asked.uid}/report.html"
    call_before(EXPENSIVE, str(env.ada.pk), 58)
    answers = [client.get(path).status_code for _ in range(3)]
    assert [answer == 429 for answer in answers] == [False, False, True]
    assert client.get("/").status_code == 200
    assert other.get(path).status_code != 429


def test_S29_icons_of_catalogs_use_up_no_pages(env: World) -> None:
    client = Client()
    enter(client, env.ada)
    icon = "/catalogs/prod/port/packages/harbour/icon"
    call_before(PERSON, str(env.ada.pk), PERSON.most - 1)
    assert [client.get(path).status_code for path in (icon, icon, "/", icon, "/")] == [404, 404, 200, 404, 429]


@pytest.mark.parametrize(
    "path", ["/catalogs/prod/icon", "/catalogs/prod/port/packages/icon", "/catalogs/a/b/c/d/e/icon"]
)
def test_S29_no_page_is_taken_for_an_icon(env: World, path: str) -> None:
    client = Client()
    enter(client, env.ada)
    call_before(PERSON, str(env.ada.pk), PERSON.most - 1)
    assert [client.get(path).status_code for _ in range(2)] == [404, 429]


def test_S29_the_search_over_all_catalogs_is_limited_by_person(env: World) -> None:
    client = Client()
    enter(client, env.ada)
    call_before(EXPENSIVE, str(env.ada.pk), 58)
    answers = [client.get("/catalogs/packages?search=harbour").status_code for _ in range(3)]
    assert answers == [200, 200, 429]


def test_S29_rest_limits_reports_and_writes_more_tightly(env: World, asked: Any) -> None:
    client = Client(headers={"Authorization": f"Bearer {api_token(env.ada)}"})
    path = f"/api/v1/requests/{asked.uid}/report"
    call_before(authentication.ACTIONS["report"], str(env.ada.pk), 118)
    answers = [client.get(path) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[-1]["Content-Type"] == "application/problem+json"
    assert int(answers[-1]["Retry-After"]) <= 60
    assert client.get("/api/v1/clusters").status_code == 200


def test_S29_a_made_up_address_does_not_begin_the_count_anew(local: User) -> None:
    spoofed = {"X-Forwarded-For": "203.0.113.1", "X-Real-IP": "203.0.113.1", "Forwarded": "for=203.0.113.1"}
    answers = [
        by_password("local", "guess", **{name: value.replace(".1", f".{number}") for name, value in spoofed.items()})
        for number in range(1, 11)
    ]
    assert [answer.status_code for answer in answers] == [403] * 4 + [429] * 6


def test_S29_the_log_names_no_address_that_a_client_made_up(env: World, caplog: pytest.LogCaptureFixture) -> None:
    Client(REMOTE_ADDR=HOME, headers={"X-Forwarded-For": "203.0.113.66"}).get("/sign-in")
    (line,) = [one for one in caplog.records if one.message == "request answered"]
    assert line.__dict__["client"] == HOME
    assert "203.0.113.66" not in caplog.text


def test_S29_without_redis_the_doors_stay_open_and_limited(
    local: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": "redis://127.0.0.1:1/0"}
    failures: list[Exception] = []
    note_away = counters.Shared._note_away

    def noted(store: counters.Shared, exc: Exception) -> None:
        failures.append(exc)
        note_away(store, exc)

    monkeypatch.setattr(counters.Shared, "_note_away", noted)
    assert by_password("local", "guess").status_code == 403
    assert is_in(by_password("local", PHRASE))
    answers = [by_token("moon", "guess").status_code for _ in range(12)]
    assert answers == [403] * 10 + [429] * 2
    assert len(failures) == 1, "who is away is not asked for each of them"


@pytest.mark.parametrize("name", ["x" * 150, "a\nb", "\u202e", "%s"])
def test_names_that_strangers_make_up_do_no_harm(local: User, name: str) -> None:
    assert by_password(name, "guess").status_code in (403, 422)
