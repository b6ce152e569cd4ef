"""Every entry of the audit is a sentence, also one that somebody adds tomorrow; and the audit of one request."""

from __future__ import annotations

import ast
import csv
import io
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from approvals.lifecycle import Event
from approvals.models import AuditEntry
from approvals.web.audit import sentence_of
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.folders import ROOT

# Where entries are written: these functions take the verb first, or by its name.
WRITERS = ("record", "_record", "_keep")


def written_verbs() -> set[str]:
    """Every verb that the code hands to what writes an entry."""
    found = {f"request.{event}" for event in Event}
    for path in sorted((ROOT / "approvals").rglob("*.py")):
        for call in (one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            found |= set(_verbs(call)) if name in WRITERS else set()
    return found


def _verbs(call: ast.Call) -> Iterator[str]:
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "verb")]
    for one in given:
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and "." in one.value:
            yield one.value


def test_every_entry_is_told_in_a_sentence() -> None:
    verbs = written_verbs()
    assert {"drift.found", "review.given", "revision.revoked", "identity.unlinked", "keys.rotated"} <= verbs
    told = {verb: sentence_of(AuditEntry(verb=verb, facts={})) for verb in verbs}
    assert {verb for verb, words in told.items() if words == verb.replace(".", " ").replace("_", " ")} == set()


@pytest.mark.parametrize(
    ("verb", "facts", "words"),
    [
        ("review.given", {"decision": "RequestChanges"}, "requested changes"),
        ("review.given", {"decision": "Deny", "replaces": "Approve"}, "denied, replacing an earlier decision"),
        ("review.dismissed", {"reviewer": "bob"}, "dismissed the changes that bob requested"),
    ],
)
def test_a_review_is_told_by_what_it_says(verb: str, facts: dict[str, Any], words: str) -> None:
    assert sentence_of(AuditEntry(verb=verb, facts=facts)) == words


def test_the_audit_of_one_request_is_a_page_and_a_file(here: World, afternoon: dict[str, Any], browse: Browse) -> None:
    request = afternoon["serious"]
    client, query = browse(here.ada), f"request={str(request.uid).upper()}"
    assert "Only entries of" in text_of(client.get(f"/audit?{query}"))
    lines = b"".join(client.get(f"/audit/export?format=csv&{query}").streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert {row["request"] for row in rows} == {str(request.uid)}
    assert len(rows) == AuditEntry.objects.filter(request_uid=str(request.uid)).count() > 1
    answer = browse(here.bert).get(f"/audit/export?format=jsonl&{query}")
    assert b"".join(answer.streaming_content) == b"", "who may not read the cluster"  # type: ignore[attr-defined]
    assert client.get("/audit?request=x").status_code == 422
    assert "No entry matches" in text_of(client.get(f"/audit?request={uuid4()}"))


def test_REST_narrows_the_audit_as_the_page_does(here: World, afternoon: dict[str, Any], browse: Browse) -> None:
    request, client = afternoon["serious"], browse(here.ada)
    day = AuditEntry.objects.order_by("number")[0].at.date().isoformat()

    def count(query: str) -> int:
        answer = client.get(f"/api/v1/audit?{query}")
        assert answer.status_code == 200, answer.content
        return int(json.loads(answer.content)["count"])

    everything = count("")
    assert count(f"since={day}&cluster=prod") == everything > count(f"request={request.uid}") > 1
    assert count("until=2001-01-01") == count("since=9999-12-31") == count("cluster=nowhere") == 0
    refused = client.get("/api/v1/audit?since=yesterday")
    assert refused.status_code == 400
    assert "a day such as" in json.loads(refused.content)["detail"]
