"""The audit by days, in sentences and as a file: nothing in it runs in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.db import transaction

from approvals import audit
from approvals.audit import Actor
from approvals.models import AuditEntry
from approvals.web import audit as pages
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of


def streamed(answer: Any) -> str:
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode()


def written(here: World, **more: Any) -> AuditEntry:
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
    here: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    ada = browse(here.ada)
    rows = list(csv.DictReader(io.StringIO(streamed(ada.get("/audit/export?format=csv")))))
    lines = [json.loads(one) for one in streamed(ada.get("/audit/export?format=jsonl")).splitlines()]
    assert [int(row["number"]) for row in rows] == [line["number"] for line in lines]
    assert {row["deployment"] for row in rows} >= {"harbour", "lighthouse"}
    assert all(row["hash"] for row in rows)
    assert "harbour" not in streamed(browse(here.bert).get("/audit/export?format=csv"))


def test_the_file_is_bounded(here: World, browse: Browse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_EXPORTED", 2)
    made = [written(here) for _ in range(4)]
    lines = streamed(browse(here.ada).get("/audit/export?format=jsonl")).splitlines()
    assert [json.loads(one)["number"] for one in lines] == [made[3].number, made[2].number]


@pytest.mark.parametrize("query", ["format=xml", "", "format=csv&since=yesterday", "format=csv&until=9999-99-99"])
def test_what_cannot_be_exported_is_refused_in_words(query: str, here: World, browse: Browse) -> None:
    answer = browse(here.ada).get(f"/audit/export?{query}")
    assert answer.status_code == 422
    assert "expected" in text_of(answer)


def test_entries_are_found_by_their_days(here: World, browse: Browse) -> None:
    entry = written(here)
    day = entry.at.date().isoformat()
    client = browse(here.ada)

    def found(query: str) -> int:
        return len(streamed(client.get(f"/audit/export?format=jsonl&{query}")).splitlines())

    everything = found("")
    assert found(f"since={day}&until={day}") == everything > 0
    assert found("until=2001-01-01") == 0
    assert found("since=9999-12-31") == 0
    assert found("until=9999-12-31") == everything


def test_the_page_tells_in_sentences_with_the_exact_time(
    here: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    text = text_of(browse(here.ada).get("/audit"))
    assert "approved" in text
    assert " UTC · " in text
