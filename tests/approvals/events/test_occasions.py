"""The one table of what happens: each verb that the code records is in it, with words and, where it is one, an event."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import pytest

from approvals.events.occasions import (
    NEWS,
    OCCASIONS,
    WITHOUT_EVENT,
    EventType,
    brief_type,
    event_type_of,
    find_occasion,
    words_of,
)
from approvals.lifecycle import Event
from tests.support.folders import ROOT
from tests.support.syntax_trees import trees_with

# Where entries are written: these functions take the verb first, or by its name.
WRITERS = ("record", "_record", "_keep")
# `deciding-object.{verb}`, written by ledger.deciding.deciding_objects.
FORMATTED = {f"deciding-object.{change}" for change in ("created", "changed", "deleted")}
# `notification-target.{verb}`, written by services.notifications.targets.
FORMATTED |= {f"notification-target.{change}" for change in ("created", "changed")}


def written_verbs() -> set[str]:
    """Every verb that the code hands to what writes an entry."""
    found = {f"request.{event}" for event in Event} | FORMATTED
    for _, tree in trees_with(rf"\b({'|'.join(WRITERS)})\(", ROOT / "approvals"):
        for call in (one for one in ast.walk(tree) if isinstance(one, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            found |= set(_verbs(call)) if name in WRITERS else set()
    return found


def _verbs(call: ast.Call) -> Iterator[str]:
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "verb")]
    for one in given:
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and "." in one.value:
            yield one.value


def test_every_verb_that_is_recorded_is_an_occasion_or_said_to_be_none() -> None:
    assert written_verbs() == {*OCCASIONS, *WITHOUT_EVENT}
    assert {*OCCASIONS} & {*WITHOUT_EVENT} == set()
    assert {*NEWS} <= {*OCCASIONS, *WITHOUT_EVENT}


def test_every_type_of_event_has_its_occasion_and_every_move_of_a_request_its_event() -> None:
    cases = [case for occasion in OCCASIONS.values() for case in (occasion, *occasion.cases.values())]
    assert {case.event for case in cases if case.event} == {*EventType}
    assert [event for event in Event if event_type_of(f"request.{event}", {}) is None] == []


@pytest.mark.parametrize(
    ("verb", "facts", "event", "words"),
    [
        ("review.given", {"decision": "RequestChanges"}, "request.changes-requested", "requested changes"),
        ("review.given", {"decision": "BreakGlass"}, "review-owed", "broke glass"),
        ("review.given", {"decision": "Approve"}, None, "approved"),
        ("review.given", {"decision": "Deny", "replaces": "Approve"}, None, "denied, replacing an earlier decision"),
        ("review.given", {"decision": "Later"}, None, "reviewed"),
        ("review.dismissed", {"reviewer": "bob"}, None, "dismissed the changes that bob requested"),
        ("deployment.health", {"to": "Current"}, "deployment.healthy", "saw that the deployment is healthy"),
        ("deployment.health", {"to": "Failed"}, "deployment.unhealthy", "saw that the deployment is unhealthy"),
        ("deployment.health", {"to": "Unknown"}, None, "saw the health of the deployment change"),
        ("drift.found", {"object": "ConfigMap n/a"}, "deployment.drifted", "found drift: an object is not as approved"),
        ("drift.found", {"object": "Secret n/a"}, None, "found drift: an object is not as approved"),
        ("drift.corrected", {"object": "Secret n/a"}, None, "put an object back as approved"),
        ("berth.moved_on", {}, None, "berth moved on"),
    ],
)
def test_S53_an_entry_has_the_event_of_what_it_says_and_none_of_a_secret(
    verb: str, facts: dict[str, Any], event: str | None, words: str
) -> None:
    found = event_type_of(verb, facts)
    assert (found and brief_type(found), words_of(verb, facts)) == (event, words)
    assert find_occasion(verb, facts).words in words or verb == "review.dismissed"
