"""Rows of before the words of the API server stood apart: none of their words is shown to everybody any more (S27)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals.audit import WITHHELD, public_facts, public_hash
from approvals.models import AuditEntry
from provisioner.review.base.record import OLD_WORDS, VERSION
from tests.support.approvals.databases import manage, ran
from tests.support.provisioner.old_records import VALUE, old_record

BEFORE, AFTER = "0017", "0018"
FILL = f"""
old = json.loads({json.dumps(json.dumps(old_record()))})
cluster = model("Cluster").create(name="c", uid="u", created_at=now)
deployment = model("BundleDeployment").create(
    cluster=cluster, uid="1", name="x", generation=1, resource_version="1", spec={{}}, options_digest="", seen_at=now,
    observed_at=now, health="Failed", health_message="{VALUE}", drift_problem="{VALUE}",
)
def request(number, **more):
    return model("Request").create(
        deployment=deployment, number=number, generation=number, spec={{}}, options_digest="", state="failed",
        created_at=now, changed_at=now, expires_at=now, mirrored_at=now, **more,
    )
one, other = request(1, problem="{VALUE}", problem_code="invalid-object"), request(2)
def report(request, body, headline):
    made = model("Report").create(
        request=request, round=1, worst="breaking", headline=headline, severities={{"breaking": 1}}, actions={{}},
        body=body, computed_at=now,
    )
    model("Finding").create(
        report=made, position=0, rule="PRE-09", section="preflight", severity="breaking", message=headline[0],
        fingerprint="f1",
    )
report(one, old, old["headline"])
report(other, {{**old, "version": 2, "private": [], "headline": ["ours"]}}, ["ours"])
content = model("Content").create(digest="sha256:a", object_count=1, byte_count=1, **{{
    field.name: now for field in apps.get_model("approvals", "Content")._meta.fields if field.get_internal_type() == "DateTimeField"
}})
revision = model("Revision").create(
    deployment=deployment, number=1, request=one, content=content, state="active", message="{VALUE}", started_at=now,
)
item = model("InventoryItem").create(
    deployment=deployment, revision=revision, version="v1", kind="ConfigMap", namespace="shop", name="settings",
    nonce="n", uid="u-1", health="Failed", health_message="{VALUE}",
)
model("Drift").create(
    item=item, revision=revision, state="open", kind="changed", fields=[], problem="{VALUE}", found_at=now, changed_at=now,
)
model("OptionalObject").create(revision=revision, version="v1", kind="Boat", name="b", problem="{VALUE}", changed_at=now)
model("OptionalObject").create(revision=revision, version="v1", kind="Boat", name="fine", changed_at=now)
for name, message in (("a", "{VALUE}"), ("b", "")):
    model("Outcome").create(
        request=one, position=0, object=name, action="update", state="failed", message=message, warnings=["{VALUE}"], at=now,
    )
previous = ""
for number, facts in enumerate(({{"code": "invalid-object", "problem": "{VALUE}"}}, {{"to": "Failed", "words": "{VALUE}"}}), 1):
    entry = audit.AuditEntry(number=number, at=now, verb="v", actor="a", via="b", facts=facts, previous_hash=previous)
    previous = audit.entry_hash(entry)
    columns = {{name: getattr(entry, name) for name in ("number", "at", "verb", "actor", "via", "facts", "previous_hash")}}
    model("AuditEntry").create(**columns, hash=previous)
print(json.dumps(list(model("AuditEntry").order_by("number").values_list("hash", flat=True))))
"""
READ = """
def rows(name, *columns):
    return [list(row) for row in model(name).order_by("pk").values_list(*columns)]
print(json.dumps({
    "reports": [[one.body, one.headline] for one in model("Report").order_by("pk")],
    "counted": rows("Report", "worst", "severities"),
    "findings": rows("Finding", "message", "rule", "severity", "fingerprint"),
    "requests": rows("Request", "problem", "problem_code", "server_words"),
    "mirrored": [one.mirrored_at is not None for one in model("Request").order_by("pk")],
    "revisions": rows("Revision", "message"),
    "outcomes": rows("Outcome", "message", "server_words", "about", "state"),
    "drifts": rows("Drift", "problem", "server_words", "state"),
    "optional": rows("OptionalObject", "problem"),
    "items": rows("InventoryItem", "health_message", "health_words", "health"),
    "deployments": rows("BundleDeployment", "health_message", "drift_problem", "health", "observed_at"),
    "facts": rows("AuditEntry", "facts"),
    "hashes": list(model("AuditEntry").order_by("number").values_list("hash", flat=True)),
}))
"""


@pytest.mark.thorough
def test_S27_the_words_of_older_rows_are_withheld_and_the_audit_is_left_as_it_was_written(database_url: str) -> None:
    manage(database_url, "migrate", "--verbosity", "0", "approvals", BEFORE)
    hashes = json.loads(ran(database_url, BEFORE, FILL))
    manage(database_url, "migrate", "--verbosity", "0", "approvals", AFTER)
    found = json.loads(ran(database_url, AFTER, READ))

    (old, of_now), (headline, other) = zip(*found["reports"], strict=True)
    assert (headline, other) == ([OLD_WORDS], ["ours"])
    assert (old["version"], old["headline"], old["private"]) == (VERSION, [OLD_WORDS], [])
    assert VALUE not in old["findings"][0]["message"]
    assert VALUE in old["findings"][0]["serverWords"]
    assert of_now == {**old_record(), "version": 2, "private": [], "headline": ["ours"]}
    assert found["counted"] == [["breaking", {"breaking": 1}]] * 2
    assert found["findings"] == [[words, "PRE-09", "breaking", "f1"] for words in (OLD_WORDS, "ours")]

    assert found["requests"] == [[OLD_WORDS, "invalid-object", []], ["", "", []]]
    assert found["mirrored"] == [False, False]
    assert found["revisions"] == [[OLD_WORDS]]
    assert found["outcomes"] == [[OLD_WORDS, "", None, "failed"], ["", "", None, "failed"]]
    assert found["drifts"] == [[OLD_WORDS, "", "open"]]
    assert found["optional"] == [[OLD_WORDS], [""]]
    assert found["items"] == [["", "", "Failed"]]
    assert found["deployments"] == [["", "", "Failed", None]]

    assert found["hashes"] == hashes
    assert VALUE in json.dumps(found["facts"])
    assert VALUE not in json.dumps([public_facts(AuditEntry(facts=facts)) for (facts,) in found["facts"]])
    # What is stored by then goes on to the present tables.
    manage(database_url, "migrate", "--verbosity", "0")
    whole = "print(audit.verify_chain().is_whole)"
    assert ran(database_url, "0091", whole) == "True"


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
        "fields": [
            {"path": "data", "change": "added", **told},
            {"path": ".data.colour", "change": "changed", **told},
        ],
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
