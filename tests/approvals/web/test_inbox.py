"""The inbox: what needs the viewer, and filters that nobody foresaw."""

from __future__ import annotations

from typing import Any

import pytest

from tests.approvals.core.conftest import World
from tests.approvals.web.conftest import Browse, text_of


def test_needs_me_leaves_out_what_was_decided_or_asked_by_the_viewer(
    here: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    here.kubernetes.allow("rita", "approve")
    ada, rita = text_of(browse(here.ada).get("/")), text_of(browse(here.rita).get("/"))
    assert ("harbour" in ada, "buoy" in ada, "tugboat" in ada) == (True, True, False)
    assert "Nothing waits for you" in rita


def test_needs_me_holds_what_may_be_approved_by_name_only(
    here: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    here.kubernetes.allow("bert", "get")
    here.kubernetes.allow("bert", "approve", "buoy")
    text = text_of(browse(here.bert).get("/"))
    assert ("buoy" in text, "harbour" in text) == (True, False)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("tab=nonsense", 200),
        ("page=999", 200),
        ("page=x", 200),
        ("cluster=nowhere", 200),
        ("search=%01'%22", 200),
        ("search=%00'%22", 422),
        ("tab=all&page=-1", 200),
    ],
)
def test_the_inbox_survives_any_query(
    query: str, status: int, here: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    assert browse(here.ada).get(f"/?{query}").status_code == status
