"""What tests do at a cluster at which others work too: wait until it goes by what was written, edit what controllers write.

An API server stores rights, policies, webhooks, quotas and definitions a moment before it goes by them: milliseconds on
an idle machine, seconds on a loaded one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any, TypeVar

from provisioner.cluster.client.access import ask
from provisioner.cluster.client.answers import WatchEvent
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.health.watch import until_settled
from provisioner.errors import PreconditionFailed, Unreachable
from provisioner.values import AccessRequest, HealthState, Identity, ObjectRef
from tests.support.patience import scaled, wait_for

Answer = TypeVar("Answer")

PATIENCE_SECONDS = 60.0
EDITS = 20


def wait_until(is_so: Callable[[], bool], what: str = "what was written is in force") -> None:
    """Return once `is_so()`; the failure says `what` never came."""
    wait_for(is_so, what, PATIENCE_SECONDS)


def is_unreachable(call: Callable[[], object]) -> bool:
    """Whether the cluster, or a webhook that it calls, does not answer."""
    try:
        call()
    except Unreachable:
        return True
    return False


def once_answered(call: Callable[[], Answer]) -> Answer:
    """What the cluster answers once it does: an API server says 503 while it makes the storage of a definition anew, and
    while a policy about a kind does not know it yet. What asks again by itself in production is one call in a test."""

    def ask() -> Answer | Unreachable:
        try:
            return call()
        except Unreachable as exc:
            return exc

    found = wait_for(ask, "the cluster answers", PATIENCE_SECONDS, is_so=lambda it: not isinstance(it, Unreachable))
    assert not isinstance(found, Unreachable)
    return found


class WatchedUntil:
    """The cluster, whose watches end after the event that a test waits for, and not only when their time is over."""

    def __init__(self, api: ClusterClient, is_last: Callable[[WatchEvent], bool]) -> None:
        self._api, self._is_last = api, is_last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def watch(self, *about: Any, **options: Any) -> Generator[WatchEvent]:
        with closing(self._api.watch(*about, **options)) as events:
            for event in events:
                yield event
                # Asked when whoever reads the events is done with this one.
                if self._is_last(event):
                    return


def until_may(api: ClusterClient, who: Identity, request: AccessRequest, *, is_allowed: bool = True) -> None:
    """Until the API server has seen the rights that were given to `who` a moment ago, or taken away."""
    what = f"{who.username} may {'' if is_allowed else 'not '}{request}"
    wait_until(lambda: ask(api, who, request).allowed is is_allowed, what)


def until_served(api: ClusterClient, group: str, version: str, kind: str, *, is_served: bool = True) -> None:
    """Until discovery names the kind, or does so no more."""

    def is_so() -> bool:
        api.forget_discovery()
        return (api.resource_of(group, version, kind) is not None) is is_served

    wait_until(is_so, f"{kind}.{group}/{version} is {'' if is_served else 'not '}served")


def until_current(api: ClusterClient, ref: ObjectRef) -> None:
    """Until its controllers have done with the object what its spec asks for."""
    found = until_settled(api, [ref], timeout_seconds=scaled(PATIENCE_SECONDS))[ref]
    assert found.state is HealthState.CURRENT, f"{ref}: {found}"


def edit(api: ClusterClient, ref: ObjectRef, change: Callable[[Any], object], *, manager: str) -> None:
    """Read, change, write back: what kubectl edit does, again where a controller wrote meanwhile."""
    for _ in range(EDITS):
        live: Any = api.get(ref)
        change(live)
        with contextlib.suppress(PreconditionFailed):
            api.replace(live, field_manager=manager)
            return
    raise AssertionError(f"{ref} is never still")
