"""A bundle of twice as many objects is twice the work: what is asked of each of them does not go through all others."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from typing import Any

import pytest

from provisioner import pipeline
from tests.support.provisioner.contents import an_object, content_with

LABELS = {"a": "b"}
POD = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": "a"}]}}


def webhook(number: int) -> dict[str, Any]:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}
    client = {"service": {"name": "s", "namespace": "shop"}}
    one = {"name": f"w{number}.x.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [rule]}
    kind = "ValidatingWebhookConfiguration"
    return an_object("admissionregistration.k8s.io/v1", kind, f"w{number}", webhooks=[one | {"clientConfig": client}])


def policy(number: int) -> dict[str, Any]:
    spec = {"podSelector": {"matchLabels": {"a": f"b{number}"}}}
    return an_object("networking.k8s.io/v1", "NetworkPolicy", f"p{number}", "shop", spec=spec)


def custom(number: int) -> dict[str, Any]:
    return an_object("acme.org/v1", "Robot", f"r{number}", "shop", spec={})


def deployment(number: int) -> dict[str, Any]:
    return an_object("apps/v1", "Deployment", f"d{number}", "shop", spec={"template": POD})


def calls(make: Callable[[int], dict[str, Any]], count: int) -> int:
    content, profile = content_with(*map(make, range(count))), cProfile.Profile()
    profile.runcall(pipeline.look_offline, content, None)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined] # typeshed leaves it out


@pytest.mark.parametrize("make", [webhook, policy, custom, deployment])
def test_twice_as_many_objects_are_twice_the_work(make: Callable[[int], dict[str, Any]]) -> None:
    calls(make, 2)  # what is read once in a process
    first, second, third = (calls(make, count) for count in (50, 100, 200))
    assert third - second < 2.4 * (second - first)
