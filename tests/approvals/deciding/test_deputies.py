"""Whose deputy somebody is, and until when: read from a spec, with hostile ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from approvals.deciding.deputies import BINDING_PREFIX, LONGEST, Deputy
from approvals.deciding.spec_fields import UnreadableObject
from provisioner.cli.kubectl.deciding import deputies as command

SPEC = {"user": "dora", "deputyFor": "ada", "clusterRole": "pratique-approver", "until": "2026-12-24T18:00:00+01:00"}
END = datetime(2026, 12, 24, 17, tzinfo=UTC)


def test_it_says_who_is_whose_deputy_and_ends() -> None:
    found = Deputy.parse({**SPEC, "reason": "holiday"})
    assert found.summary == "dora is deputy of ada until 2026-12-24 17:00 UTC"
    assert (found.selects, found.description) == ("what ClusterRole pratique-approver allows", "holiday")
    before = found.ready([], END - timedelta(seconds=1))
    assert (before.is_ready, before.reason) == (True, "Active")
    assert found.ready([], END).reason == "Ended"


@pytest.mark.parametrize(
    ("since", "end"),
    [(END - timedelta(days=1), END), (END - LONGEST * 2, END - LONGEST)],
    ids=["as written", "never longer than the longest"],
)
def test_it_ends_however_far_away_its_end_is_written(since: datetime, end: datetime) -> None:
    assert Deputy.parse(SPEC).ends_at(since) == end


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"until": "2026-12-24"}, "spec.until is '2026-12-24'; expected a time with its zone"),
        ({"until": "9999-12-31T23:59:59-23:59"}, "expected a time with its zone"),
        ({"until": "x" * 9999}, "a text of at most 40 characters"),
        ({"until": 7}, "spec.until is 7"),
        ({"user": "system:serviceaccount:ci:robot"}, "expected the name of a person"),
        ({"deputyFor": "system:admin"}, "expected the name of a person"),
        ({"user": " "}, "expected the name of a person"),
        ({"user": "do\x1b[2Jra"}, "expected the name of a person"),
        ({"user": "do\u202era"}, "expected the name of a person"),
        ({"user": "d" * 254}, "a text of at most 253 characters"),
        ({"user": "ada"}, "expected two people"),
        ({"clusterRole": ""}, "expected a ClusterRole"),
        ({"reason": "r" * 1001}, "a text of at most 1000 characters"),
        ({"namespace": "shop"}, "does not know"),
    ],
)
def test_S52_what_is_no_deputy_is_refused_with_its_place(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UnreadableObject, match=r"^spec") as refused:
        Deputy.parse({**SPEC, **change})
    assert words in str(refused.value)


def test_the_command_and_the_service_mean_the_same() -> None:
    assert (command.LONGEST, command.BINDING_PREFIX) == (LONGEST, BINDING_PREFIX)
