"""When a deployment may be applied next: by windows that select its latest report, as the watch saw them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from approvals import services
from approvals.errors import NotFound
from approvals.ledger.deciding import deciding_objects
from approvals.models import Request
from approvals.services.policies.openings import MOST_OPENINGS
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.windows import NIGHT, STOP, WEEKEND

# A Tuesday; in Berlin it is 13:00.
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def observe(env: World, **specs: dict[str, Any]) -> None:
    for name, spec in specs.items():
        meta = {"name": name, "uid": name, "generation": 1, "resourceVersion": "1"}
        obj = {"metadata": meta, "spec": spec}
        deciding_objects.observe(cluster=env.cluster, kind="ChangeWindow", obj=obj, is_listed=True)


def at(day: int, hour: int) -> datetime:
    return datetime(2026, 12, day, hour, tzinfo=UTC)


def test_the_next_nights_of_a_deployment_that_one_window_selects(env: World, request_: Request) -> None:
    observe(env, nights={**NIGHT, "selector": {"names": ["strimzi"]}}, other={**STOP, "selector": {"names": ["x"]}})
    with time_machine.travel(NOW, tick=False):
        found = services.next_openings(request_.deployment)
    assert (found.request, found.is_open) == (request_.number, False)
    assert "none of these change windows is open: nights" in found.why
    assert [(one.begins_at, one.ends_at) for one in found.openings[:2]] == [
        (at(1, 21), at(2, 5)),
        (at(2, 21), at(3, 5)),
    ]
    assert len(found.openings) == MOST_OPENINGS


def test_what_is_open_now_says_until_when(env: World, request_: Request) -> None:
    observe(env, weekend=WEEKEND)
    with time_machine.travel(NOW, tick=False):
        found = services.next_openings(request_.deployment)
        assert (found.is_open, found.why) == (True, "")
        assert (found.openings[0].begins_at, found.openings[0].ends_at) == (NOW, at(4, 17))
        observe(env, stop=STOP)
        stopped = services.next_openings(request_.deployment)
    assert (stopped.is_open, stopped.openings) == (False, ())
    assert "incident 7" in stopped.why


def test_a_time_that_was_chosen_counts_and_an_unreadable_window_says_so(env: World, request_: Request) -> None:
    with time_machine.travel(NOW, tick=False):
        Request.objects.filter(pk=request_.pk).update(apply_at=NOW + timedelta(hours=15))
        later = services.next_openings(request_.deployment)
        assert (later.is_open, later.why) == (False, "it is to be applied at 2026-12-02 03:00 UTC")
        assert later.openings[0].begins_at == at(2, 3)
        observe(env, odd={"type": "Maybe"})
        unread = services.next_openings(request_.deployment)
    assert (unread.is_open, unread.openings) == (False, ())
    assert "change window odd cannot be read" in unread.why


def test_more_windows_than_are_read_open_nothing(
    env: World, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe(env, a=STOP, b=STOP)
    monkeypatch.setattr("approvals.gate.deciding_objects.MOST_OBJECTS", 1)
    found = services.next_openings(request_.deployment)
    assert (found.is_open, found.openings, "delete some" in found.why) == (False, (), True)


def test_without_a_report_nobody_can_tell(env: World) -> None:
    deployment = world.submit_spec(env.cluster, world.seen("new", world.spec()), env.rita)
    with pytest.raises(NotFound, match="no request of new has a report yet"):
        services.next_openings(deployment)
