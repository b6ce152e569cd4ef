"""What any process meets when it calls a cluster is told everywhere: page, list for operators, metrics."""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from approvals import refusals
from approvals.access import port
from approvals.models import Cluster
from approvals.selectors import figures
from provisioner.cluster.client.transport import Exchange
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known from other tests."""
    monkeypatch.setattr(refusals, "_noted_at", {})
    monkeypatch.setattr(refusals, "_silences", Counter())


def words(env: World, browse: Browse) -> str:
    return " ".join(text_of(browse(env.ada).get("/clusters")).split())


def called(*exchanges: tuple[int, float]) -> None:
    observe = port.observer_of("prod")
    for status, seconds in exchanges:
        observe(Exchange("ask", status, seconds))


def told_everywhere(env: World, browse: Browse) -> tuple[bool, bool, bool]:
    """Whether the page, the list for operators and the metrics tell of a problem."""
    listed = StringIO()
    call_command("list_clusters", stdout=listed)
    (figures_of,) = [one for one in figures.clusters(timezone.now()) if one.name == "prod"]
    return "alert-bad" in words(env, browse), "no problem" not in listed.getvalue(), figures_of.has_problem


@pytest.mark.parametrize("statuses", [(401,), (0, 0)], ids=["refused", "silent"])
def test_what_any_process_met_is_told_everywhere_until_the_cluster_answers_it(
    env: World, browse: Browse, statuses: tuple[int, ...]
) -> None:
    called((200, 0.1), *[(status, 0.1) for status in statuses])
    assert told_everywhere(env, browse) == (True, True, True)
    assert f":{os.getpid()}: the API server" in words(env, browse)
    called((200, 0.1))
    assert told_everywhere(env, browse) == (False, False, False)


def test_two_threads_that_are_answered_at_once_both_go_on(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    called((401, 0.1))
    monkeypatch.setattr(refusals, "_noted_at", Emptied(refusals._noted_at))
    called((200, 0.1))


class Emptied(dict[str, float]):
    """What another thread empties between a look and a write."""

    def get(self, key: str, default: Any = None) -> Any:
        return self.pop(key, default)


def test_one_slow_call_and_a_watch_that_breaks_off_are_no_problem_nor_is_a_mark_of_who_ended(
    env: World, browse: Browse
) -> None:
    called((200, 0.1), (0, 9.0), (200, 0.1), (0, 9.0), (403, 0.1))
    for _ in range(3):
        port.observer_of("prod")(Exchange("watch", 0, 9.0))
    assert told_everywhere(env, browse) == (False, False, False)
    called((401, 0.1))
    Cluster.objects.update(refused_at=timezone.now() - refusals.COUNTS_FOR)
    assert told_everywhere(env, browse) == (False, False, False)


def test_credentials_that_end_within_a_week_are_told(env: World, browse: Browse) -> None:
    now = timezone.now()
    for days, is_told in ((8, False), (6, True), (-1, True)):
        Cluster.objects.update(credentials_end=now + timedelta(days=days))
        listed = StringIO()
        call_command("list_clusters", stdout=listed)
        expected = ("its credentials end" in listed.getvalue(), "its credentials end" in words(env, browse))
        assert expected == (is_told, is_told), days
