"""Audit entries stay as earlier versions wrote them; what of it not everybody may know is not shown (S27, S09)."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.audit import WITHHELD, public_facts, public_hash
from approvals.models import AuditEntry
from tests.support.provisioner.old_records import VALUE


def entry(facts: dict[str, Any]) -> AuditEntry:
    return AuditEntry(facts=facts, hash="h", salt=b"salt")


@pytest.mark.parametrize("name", ["problem", "words"])
def test_S27_an_old_fact_in_which_the_servers_words_stand_is_shown_as_withheld(name: str) -> None:
    assert public_facts(entry({"code": "forbidden", name: VALUE})) == {"code": "forbidden", name: WITHHELD}


@pytest.mark.parametrize("name", ["optionsDigest", "contentDigest", "subjectDigest"])
def test_S09_nobody_tries_values_on_an_old_entry(name: str) -> None:
    old, new = AuditEntry(facts={"round": 1, name: "sha256:a"}, hash="h"), entry({name: "sha256:a"})
    assert (public_facts(old), public_hash(old)) == ({"round": 1}, "")
    assert (public_facts(new), public_hash(new)) == (new.facts, "h")


def test_S27_old_facts_of_drift_name_no_field_that_nobody_approved() -> None:
    told = {"manager": "kubectl", "at": "now"}
    facts = {
        "object": "ConfigMap shop/settings",
        "fields": [
            {"path": f".data.{VALUE}", "change": "added", **told},
            {"path": ".data.colour", "change": "changed", **told},
        ],
        "alteredByAdmission": [f"data.{VALUE}"],
    }
    assert public_facts(entry(facts)) == {
        **facts,
        "fields": [{"path": "data", "change": "added", **told}, {"path": ".data.colour", "change": "changed", **told}],
        "alteredByAdmission": True,
    }


def test_facts_of_today_are_shown_as_they_are_written() -> None:
    facts = {
        "code": "forbidden",
        "why": "the API server refuses it",
        "fields": [{"path": "data", "change": "added", "manager": "kubectl", "at": "now"}],
        "alteredByAdmission": False,
    }
    assert public_facts(entry(facts)) == facts
