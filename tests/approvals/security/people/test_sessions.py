"""How sessions begin and end, and who sees and ends them (security-rules.md S33)."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals.models import SignIn
from approvals.services.sessions import SIGN_IN
from tests.approvals.security.people.proofs import session
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import enter


def test_a_session_ends_when_nothing_was_asked_for_too_long(env: World, carla: User) -> None:
    client = session(carla)
    SignIn.objects.update(seen_at=timezone.now() - timedelta(minutes=121))
    assert client.get("/me").status_code == 302
    assert not SignIn.objects.filter(pk=client.session.get(SIGN_IN, 0)).exists()


def test_a_session_ends_for_good_whatever_it_does(env: World, carla: User) -> None:
    client = session(carla)
    SignIn.objects.update(began_at=timezone.now() - timedelta(hours=12, minutes=1))
    assert client.get("/me").status_code == 302


def test_that_somebody_was_there_is_written_once_a_minute(env: World, carla: User) -> None:
    client = session(carla)
    row = SignIn.objects.latest("pk")
    client.get("/me")
    assert SignIn.objects.get(pk=row.pk).seen_at == row.seen_at
    SignIn.objects.update(seen_at=timezone.now() - timedelta(minutes=2))
    client.get("/me")
    assert timezone.now() - SignIn.objects.get(pk=row.pk).seen_at < timedelta(minutes=1)


def test_signing_in_gives_another_cookie_and_ends_the_session_before(env: World, carla: User) -> None:
    client = session(carla)
    key, row = client.session.session_key, client.session[SIGN_IN]
    client.post("/sign-in", {"with": "token", "cluster": "prod", "token": "carla"})
    assert client.session.session_key != key
    assert client.session[SIGN_IN] != row
    assert not SignIn.objects.filter(pk=row).exists()
    stale = Client()
    stale.cookies["sessionid"] = key or ""
    assert stale.get("/me").status_code == 302


def test_signing_out_ends_it_on_the_server(env: World, carla: User) -> None:
    client = session(carla)
    cookie, row = client.cookies["sessionid"].value, client.session[SIGN_IN]
    client.post("/sign-out")
    thief = Client()
    thief.cookies["sessionid"] = cookie
    assert thief.get("/me").status_code == 302
    assert not SignIn.objects.filter(pk=row).exists()


def test_one_s_sessions_are_listed_in_words_and_ended(env: World, carla: User) -> None:
    here_, there = session(carla), session(carla)
    page = here_.get("/me").content.decode()
    assert page.count("Firefox on Linux") >= 2
    assert "(this one)" in page
    other = there.session[SIGN_IN]
    assert here_.post(f"/me/sessions/{other}/end").status_code == 302
    assert there.get("/me").status_code == 302
    assert here_.get("/me").status_code == 200


def test_all_others_end_at_once_and_this_one_stays(env: World, carla: User) -> None:
    mine, others = session(carla), [session(carla) for _ in range(3)]
    assert mine.post("/me/sessions/end-others").status_code == 302
    assert [one.get("/me").status_code for one in others] == [302, 302, 302]
    assert mine.get("/me").status_code == 200


def test_nobody_ends_the_session_of_somebody_else(env: World, carla: User) -> None:
    hers, row = Client(), session(carla).session[SIGN_IN]
    enter(hers, env.ada)
    assert hers.post(f"/me/sessions/{row}/end").status_code == 404
    hers.post("/me/sessions/end-others")
    assert SignIn.objects.filter(pk=row).exists()


def test_a_session_whose_cookie_names_no_row_is_nobodys(env: World) -> None:
    client = Client()
    client.force_login(env.ada)
    assert client.get("/me").status_code == 302
    assert client.get("/api/v1/clusters").status_code in (401, 403)


def test_a_session_cannot_name_the_row_of_somebody_else(env: World, carla: User) -> None:
    client = Client()
    client.force_login(env.ada)
    kept = client.session
    kept[SIGN_IN] = world.session_of(carla).pk
    kept.save()
    assert client.get("/me").status_code == 302
