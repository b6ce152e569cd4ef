"""The audit by days, in sentences and as a file: every entry has its words, and nothing in it runs in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from approvals import audit
from approvals.audit import Actor
from approvals.models import AuditEntry
from approvals.web import audit as pages
from approvals.web.audit import sentence_of
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of


def streamed(answer: Any) -> str:
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode()


def written(env: World, **more: Any) -> AuditEntry:
    with transaction.atomic():
        return audit.record(verb="policy.saved", actor=Actor("ada", "browser"), facts={"cluster": "prod"}, **more)


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "  =cmd()", "\r=1", "\uff1d1", " \uff20SUM(A1)"]
)
def test_no_cell_is_a_formula(text: str) -> None:
    assert pages.harmless(text).startswith("'")


@pytest.mark.parametrize("text", ["ada", "", "2026-11-23", "a=b"])
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert pages.harmless(text) == text


def test_the_file_holds_what_the_page_shows_to_this_reader(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    ada = browse(env.ada)
    rows = list(csv.DictReader(io.StringIO(streamed(ada.get("/audit/export?format=csv")))))
    lines = [json.loads(one) for one in streamed(ada.get("/audit/export?format=jsonl")).splitlines()]
    assert [int(row["number"]) for row in rows] == [line["number"] for line in lines]
    assert {row["deployment"] for row in rows} >= {"harbour", "lighthouse"}
    assert all(row["hash"] for row in rows)
    assert "harbour" not in streamed(browse(env.bert).get("/audit/export?format=csv"))


def test_the_file_is_bounded(env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_EXPORTED", 2)
    made = [written(env) for _ in range(4)]
    lines = streamed(browse(env.ada).get("/audit/export?format=jsonl")).splitlines()
    assert [json.loads(one)["number"] for one in lines] == [made[3].number, made[2].number]


@pytest.mark.parametrize("query", ["format=xml", "", "format=csv&since=yesterday", "format=csv&until=9999-99-99"])
def test_what_cannot_be_exported_is_refused_in_words(query: str, env: World, browse: Browse) -> None:
    answer = browse(env.ada).get(f"/audit/export?{query}")
    assert answer.status_code == 422
    assert "expected" in text_of(answer)


def test_entries_are_found_by_their_days(env: World, browse: Browse) -> None:
    entry = written(env)
    day = entry.at.date().isoformat()
    client = browse(env.ada)

    def found(query: str) -> int:
        return len(streamed(client.get(f"/audit/export?format=jsonl&{query}")).splitlines())

    everything = found("")
    assert found(f"since={day}&until={day}") == everything > 0
    assert found("until=2001-01-01") == 0
    assert found("since=9999-12-31") == 0
    assert found("until=9999-12-31") == everything


def test_the_page_tells_in_sentences_with_the_exact_time(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    text = text_of(browse(env.ada).get("/audit"))
    assert "approved" in text
    assert " UTC · " in text


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


def test_the_audit_of_one_request_is_a_page_and_a_file(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    request = afternoon["serious"]
    client, query = browse(env.ada), f"request={str(request.uid).upper()}"
    assert "Only entries of" in text_of(client.get(f"/audit?{query}"))
    lines = b"".join(client.get(f"/audit/export?format=csv&{query}").streaming_content).decode()  # type: ignore[attr-defined]  # the stubs have no streamed answers
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert {row["request"] for row in rows} == {str(request.uid)}
    assert len(rows) == AuditEntry.objects.filter(request_uid=str(request.uid)).count() > 1
    answer = browse(env.bert).get(f"/audit/export?format=jsonl&{query}")
    assert b"".join(answer.streaming_content) == b"", "who may not read the cluster"  # type: ignore[attr-defined]  # the stubs have no streamed answers
    assert client.get("/audit?request=x").status_code == 422
    assert "No entry matches" in text_of(client.get(f"/audit?request={uuid4()}"))


def test_REST_narrows_the_audit_as_the_page_does(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    request, client = afternoon["serious"], browse(env.ada)
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
