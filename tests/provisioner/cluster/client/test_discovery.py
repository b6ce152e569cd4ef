"""What a server serves is read once by all that ask in the same seconds, and again for a kind that may be new."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from provisioner.cluster.client.discovery import ResourceDiscovery
from provisioner.errors import Unreachable


class Server:
    """Serves one kind; `reads` are the readings of both documents."""

    def __init__(self) -> None:
        self.kinds, self.reads, self.is_down = ["ConfigMap"], 0, False
        self.asked, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()

    def fetch(self, path: str) -> dict[str, Any]:
        if path == "/api":
            self.reads += 1
            self.asked.set()
            assert self.goes_on.wait(10)
        if self.is_down:
            raise Unreachable(path)
        resources = [{"resource": one.lower(), "responseKind": {"kind": one}} for one in self.kinds]
        items = [{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": resources}]}]
        return {"kind": "APIGroupDiscoveryList", "items": items if path == "/api" else []}


def test_views_share_one_reading_until_it_is_older_than_they_like() -> None:
    server = Server()
    found = ResourceDiscovery(server.fetch)
    for _ in range(3):
        assert found.within(10.0).served().of_kind("", "v1", "ConfigMap")
    assert server.reads == 1
    found.within(0.0).served()
    assert server.reads == 2


def test_a_kind_that_is_new_is_found_by_a_view_that_is_made_after_it() -> None:
    server = Server()
    found = ResourceDiscovery(server.fetch)
    found.served()
    server.kinds.append("Widget")
    view = found.within(10.0)
    assert view.served().of_kind("", "v1", "Widget") is None
    assert view.served_again().of_kind("", "v1", "Widget")
    view.served_again()
    assert server.reads == 2, "the same view reads it again only a second later"


def test_who_waits_for_a_reading_that_fails_does_not_try_it_again() -> None:
    server = Server()
    server.is_down = True
    server.goes_on.clear()
    found = ResourceDiscovery(server.fetch)
    errors: list[Exception] = []

    def read() -> None:
        try:
            found.within(10.0).served()
        except Unreachable as exc:
            errors.append(exc)

    threads = [threading.Thread(target=read) for _ in range(4)]
    threads[0].start()
    assert server.asked.wait(10)
    waiting = threading.Event()
    threading.Timer(0.2, waiting.set).start()
    for one in threads[1:]:
        one.start()
    waiting.wait()
    server.goes_on.set()
    for one in threads:
        one.join()
    assert (len(errors), server.reads) == (4, 1)
    with pytest.raises(Unreachable):
        found.served()
    assert server.reads == 2, "who comes later tries"


def test_another_process_goes_on_with_what_was_read() -> None:
    server = Server()
    found, other = ResourceDiscovery(server.fetch), ResourceDiscovery(server.fetch)
    assert found.known() is None
    found.served()
    known = found.known()
    assert known is not None
    other.learn(*known)
    assert other.within(10.0).served().of_kind("", "v1", "ConfigMap")
    assert server.reads == 1
