"""Values that may no longer be null (SCH-36): dropped without a word from fields and maps, refused elsewhere."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from provisioner.schema import compare
from provisioner.values import Severity
from tests.support.kubernetes.connection import CRD_PATH, Server
from tests.support.patience import wait_for
from tests.support.provisioner.shapes import TEXT, JsonDict, crd, listed, mapped, obj, root, version

NULLABLE = {**TEXT, "nullable": True}
LEFT = {"k": "v"}
# A default that only the new form of the CRD has says which of them the server is working with.
MARK: JsonDict = {**TEXT, "default": "now"}

# The schema of `spec.a` by what its values are, what is stored, what is left of it, and whether that can be written.
CASES: dict[str, tuple[Any, Any, Any, bool]] = {
    "the value of a map": (mapped, {"k": "v", "n": None}, LEFT, True),
    "the last value of a map": (mapped, {"n": None}, {}, True),
    "a field": (lambda values: obj(k=values, n=values), {"k": "v", "n": None}, LEFT, True),
    "the value of a map that must have two keys": (
        lambda values: mapped(values, minProperties=2),
        {"k": "v", "n": None},
        LEFT,
        False,
    ),
    "an item": (listed, ["v", None], ["v", None], False),
    "a field that must be there": (lambda values: obj("n", k=values, n=values), {"k": "v", "n": None}, LEFT, False),
}
ASKED = pytest.mark.parametrize(("holder", "stored", "left", "is_taken"), CASES.values(), ids=CASES)


def described(group: str, values: JsonDict, **more: JsonDict) -> JsonDict:
    found = crd(version(schema=root(obj(a=values, w=TEXT), **more)), spec={"group": group})
    return {**found, "metadata": {"name": f"things.{group}"}}


@ASKED
def test_it_breaks_where_the_api_server_refuses_it(holder: Any, stored: Any, left: Any, is_taken: bool) -> None:
    (found,) = [
        one
        for one in compare(described("example.com", holder(NULLABLE)), described("example.com", holder(TEXT)))
        if one.rule == "SCH-36" and one.path[-1] != "k"
    ]
    assert found.severity is (Severity.DANGEROUS if is_taken else Severity.BREAKING)
    assert found.variant.startswith("dropped") is is_taken


@pytest.mark.controlplane
@ASKED
def test_the_api_server_does(server: Server, holder: Any, stored: Any, left: Any, is_taken: bool) -> None:
    group = f"{uuid.uuid4().hex[:8]}.example.com"
    at = f"/apis/{group}/v1/namespaces/default/things"
    status, made = server.ask("POST", CRD_PATH, described(group, holder(NULLABLE)))
    assert status == 201, made
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"a": stored}}
    try:
        wait_for(lambda: server.ask("POST", at, thing)[0], "the kind is served", is_so=lambda status: status == 201)
        path = f"{CRD_PATH}/things.{group}"
        changed = {**server.ask("GET", path)[1], "spec": described(group, holder(TEXT), mark=MARK)["spec"]}
        assert server.ask("PUT", path, changed)[0] == 200
        later = {**thing, "metadata": {"name": "b"}}
        wait_for(
            lambda: server.ask("GET", f"{at}/a")[1].get("mark"),
            "the change is served",
            is_so=lambda mark: mark == "now",
        )
        read = server.ask("GET", f"{at}/a")[1]
        assert read["spec"]["a"] == left
        status, answer = server.ask("POST", at, later)
        assert (status == 201) is is_taken, answer
    finally:
        server.ask("DELETE", f"{CRD_PATH}/things.{group}")
