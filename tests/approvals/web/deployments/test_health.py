"""How a deployment's page shows health: in the cluster's words, escaped, the worst first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals.models import InventoryItem, Revision
from approvals.web.deployments import spec_form
from tests.support.approvals.fixtures import World

PAGE = "/deployments/prod/lighthouse"
HOSTILE = "pod lamp: FailedMount: <script>alert(1)</script>"
CHECK = {"apiVersion": "example.com/v1", "kind": "Widget", "namespace": "a", "name": "<b>"}


@pytest.fixture
def shown(afternoon: dict[str, Any], here: World, browse: Callable[[User], Client]) -> Callable[[], str]:
    """The page, with one object in trouble."""
    item = InventoryItem.objects.get(name="berth-7")
    item.health, item.health_message = "Failed", HOSTILE
    item.save()
    client = browse(here.ada)

    def look() -> str:
        return client.get(PAGE).content.decode()

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
