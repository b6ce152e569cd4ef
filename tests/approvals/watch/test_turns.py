"""Who writes hundreds of BundleDeployments holds up nobody else's first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from approvals.admission import ANNOTATION, stamp_for
from approvals.watch.turns import EventsInTurn, Turns
from provisioner.cluster.client.answers import Watch, WatchEvent, WatchType
from provisioner.errors import Expired


def event(name: str, who: str, version: int) -> WatchEvent:
    about = {
        "name": name,
        "uid": name,
        "resourceVersion": str(version),
        "annotations": {ANNOTATION: stamp_for([who, ""])},
    }
    return WatchEvent(WatchType.ADDED, {"metadata": about})


class Told:
    """A watch that has told everything before anything is looked at."""

    def __init__(self, *events: WatchEvent, error: Exception | None = None):
        self.events, self.error, self.was_read = events, error, threading.Event()

    def __iter__(self) -> Iterator[WatchEvent]:
        yield from self.events
        self.was_read.set()
        if self.error:
            raise self.error

    def close(self) -> None:
        """Nothing is open."""


def names(told: Told) -> tuple[list[str], EventsInTurn]:
    turns, found = EventsInTurn(cast(Watch, told), "1"), []
    for one in turns:
        assert told.was_read.wait(10)
        found.append(one.object["metadata"]["name"])
    return found, turns


def test_S40_those_who_write_take_turns() -> None:
    flood = [event(f"flood-{number}", "mallory", number + 2) for number in range(50)]
    found, turns = names(Told(*flood, event("first", "rita", 99)))
    # What was handed out before all was read is the first one or two.
    assert found.index("first") <= 2
    assert sorted(found) == sorted([*(f"flood-{number}" for number in range(50)), "first"])
    assert turns.version == "99"


def test_what_is_about_one_object_stays_in_its_order_whoever_wrote() -> None:
    turns: Turns[int] = Turns()
    for number, (who, uid) in enumerate(
        [("mallory", "a"), ("mallory", "b"), ("rita", "b"), ("rita", "c"), ("bob", "a")]
    ):
        turns.put(who, uid, number)
    taken = []
    while turns:
        taken.append(turns.take())
    assert taken.index(1) < taken.index(2)
    assert taken.index(0) < taken.index(4)
    assert taken[:2] == [0, 3]


def test_what_ends_a_watch_is_heard_after_what_it_told_before() -> None:
    seen: list[Any] = []
    told = Told(event("a", "rita", 5), error=Expired("too old"))
    with pytest.raises(Expired):
        seen.extend(EventsInTurn(cast(Watch, told), "1"))
    assert [one.object["metadata"]["name"] for one in seen] == ["a"]
