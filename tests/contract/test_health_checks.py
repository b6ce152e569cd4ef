"""What the CRD lets into `spec.healthChecks`: what our own reader takes, and little else."""

from __future__ import annotations

from typing import Any

from provisioner.cluster.health.observation import check_spec
from provisioner.errors import BadHealthCheck
from tests.contract.conftest import Server, asked

POD = {"apiVersion": "v1", "kind": "Pod"}
READY = {"condition": {"type": "Ready"}}
LONG = "x" * 4001


def is_read(**options: Any) -> bool:
    try:
        check_spec(options)
    except BadHealthCheck:
        return False
    return True


BOTH: dict[str, tuple[dict[str, Any], bool]] = {
    "condition": ({"healthChecks": [{**POD, **READY}]}, True),
    "every selector": ({"healthChecks": [{**POD, "name": "a", "namespace": "b", **READY}]}, True),
    "number": ({"healthChecks": [{**POD, "fieldValue": {"path": "status.x", "value": 3}}]}, True),
    "object": ({"healthChecks": [{**POD, "fieldValue": {"path": "status.x", "value": {"a": [1]}}}]}, True),
    "cel": ({"healthChecks": [{**POD, "cel": {"current": "true", "failed": "false"}}]}, True),
    "none": ({"healthChecks": []}, True),
    "deadline": ({"progressDeadlineMinutes": 1440}, True),
    "no deadline": ({"progressDeadlineMinutes": 0}, False),
    "two assertions": ({"healthChecks": [{**POD, **READY, "cel": {"current": "true"}}]}, False),
    "no assertion": ({"healthChecks": [POD]}, False),
    "no kind": ({"healthChecks": [{"apiVersion": "v1", **READY}]}, False),
    "strange field": ({"healthChecks": [{**POD, **READY, "timeout": 3}]}, False),
    "strange status": ({"healthChecks": [{**POD, "condition": {"type": "Ready", "status": "Yes"}}]}, False),
    "field without value": ({"healthChecks": [{**POD, "fieldValue": {"path": "status.x"}}]}, False),
    "cel without current": ({"healthChecks": [{**POD, "cel": {"failed": "true"}}]}, False),
    "cel too long": ({"healthChecks": [{**POD, "cel": {"current": LONG}}]}, False),
    "a Secret": ({"healthChecks": [{"apiVersion": "v1", "kind": "Secret", **READY}]}, False),
    "too many": ({"healthChecks": [{**POD, **READY}] * 51}, False),
}


def test_the_crd_and_our_reader_take_the_same_checks(wishing: Server) -> None:
    replies = {name: asked(wishing, **options) for name, (options, _) in BOTH.items()}
    taken = {name: reply.code == 201 for name, reply in replies.items()}
    expected = {name: is_good for name, (_, is_good) in BOTH.items()}
    assert taken == expected, {name: reply.message for name, reply in replies.items()}
    assert {name: is_read(**options) for name, (options, _) in BOTH.items()} == expected


def test_what_only_our_reader_can_tell_is_let_in_and_said_later(wishing: Server) -> None:
    wrong = [{**POD, "cel": {"current": "status.phase =="}}]
    assert asked(wishing, healthChecks=wrong).code == 201
    assert not is_read(healthChecks=wrong)


def test_a_deadline_is_not_filled_in_where_none_is_given(wishing: Server) -> None:
    assert "progressDeadlineMinutes" not in asked(wishing).body["spec"]
