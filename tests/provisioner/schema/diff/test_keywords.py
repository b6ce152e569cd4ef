"""What becomes of a keyword that no API server knows: it is stored without it, and so it asks nothing (SCH-60)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from provisioner.schema import compare
from provisioner.schema.diff.node import KNOWN, is_dropped
from provisioner.schema.forms import _KEYWORDS
from provisioner.values import Severity
from tests.support.kubernetes.connection import CRD_PATH, Server
from tests.support.provisioner.shapes import TEXT, JsonDict, crd, listed, obj, root, version

APPLY = "application/apply-patch+yaml"
DROPPED = ["properies", "secretRef", "maxlength", "const", "x-own"]


def with_keyword(name: str, value: Any) -> JsonDict:
    return crd(version("v1", root(obj(a=listed({**obj(b=TEXT), name: value})))))


@pytest.mark.controlplane
@pytest.mark.parametrize("name", [*DROPPED, "x-kubernetes-future"])
@pytest.mark.parametrize("value", [{"type": "string"}, 5], ids=["an object", "a number"])
@pytest.mark.parametrize("validation", ["Ignore", "Strict"])
def test_the_api_server_stores_a_schema_without_it(server: Server, name: str, value: Any, validation: str) -> None:
    made = with_keyword(name, value)
    query = f"?dryRun=All&fieldManager=x&fieldValidation={validation}"
    created = server.ask("POST", CRD_PATH + query, made)
    applied = server.ask("PATCH", f"{CRD_PATH}/{made['metadata']['name']}{query}", made, APPLY)
    for status, stored in (created, applied):
        assert status == 201, stored
        schema = stored["spec"]["versions"][0]["schema"]
        assert "array" in json.dumps(schema)
        assert name not in json.dumps(schema)


@pytest.mark.controlplane
@pytest.mark.parametrize("name", sorted(set(_KEYWORDS) - {"example"}))  # an example may be of any type
def test_a_keyword_that_it_knows_is_not_dropped(server: Server, name: str) -> None:
    """One of the wrong type: what is known is decoded, and refused."""
    status, answer = server.ask("POST", f"{CRD_PATH}?dryRun=All", with_keyword(name, 5 if name == "not" else {"a": 5}))
    assert status in (400, 422), answer


@pytest.mark.parametrize("name", DROPPED)
def test_a_keyword_that_is_dropped_is_no_change(name: str) -> None:
    whole = crd(version("v1", root(obj(a=listed(obj(b=TEXT))))))
    for old, new in ((whole, with_keyword(name, 5)), (with_keyword(name, 5), with_keyword(name, {"type": "string"}))):
        (found,) = compare(old, new)
        assert (found.rule, found.severity, set(found.verdicts.values())) == ("SCH-60", Severity.SAFE, {Severity.SAFE})
        assert found.evidence["keyword"] == name


@pytest.mark.parametrize("name", ["x-kubernetes-future", "patternProperties", "definitions", "additionalItems"])
def test_what_a_server_may_know_stays_unknown(name: str) -> None:
    assert not is_dropped(name)
    found = compare(with_keyword(name, {}), with_keyword(name, {"a": {"type": "string"}}))
    assert {one.severity for one in found if one.rule == "SCH-60"} == {Severity.UNKNOWN}


def test_every_keyword_of_which_the_form_is_known_is_known() -> None:
    assert set(_KEYWORDS) <= KNOWN
