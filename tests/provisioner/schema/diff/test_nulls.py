"""Values that may no longer be null (SCH-36): dropped without a word from fields and maps, refused elsewhere."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial
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


@pytest.fixture(scope="module")
def served(server: Server) -> Iterator[dict[str, str]]:
    """Where the things of each case are, on a server that works with the new form of their CRD; all are waited for at once."""
    groups = {case: f"{uuid.uuid4().hex[:8]}.example.com" for case in CASES}
    places = {case: f"/apis/{group}/v1/namespaces/default/things" for case, group in groups.items()}
    try:
        for case, (holder, *_) in CASES.items():
            status, made = server.ask("POST", CRD_PATH, described(groups[case], holder(NULLABLE)))
            assert status == 201, made
        for case, (_, stored, *_) in CASES.items():
            create = partial(server.ask, "POST", places[case], thing(groups[case], "a", stored))
            wait_for(create, "the kind is served", is_so=lambda answer: answer[0] == 201)
        for case, (holder, *_) in CASES.items():
            path = f"{CRD_PATH}/things.{groups[case]}"
            spec = described(groups[case], holder(TEXT), mark=MARK)["spec"]
            assert server.ask("PUT", path, {**server.ask("GET", path)[1], "spec": spec})[0] == 200
        for place in places.values():
            read = partial(server.ask, "GET", f"{place}/a")
            wait_for(read, "the change is served", is_so=lambda answer: answer[1].get("mark") == "now")
        yield places
    finally:
        for group in groups.values():
            server.ask("DELETE", f"{CRD_PATH}/things.{group}")


def thing(group: str, name: str, stored: Any) -> JsonDict:
    return {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"a": stored}}


@pytest.mark.controlplane
@pytest.mark.parametrize("case", CASES)
def test_the_api_server_does(server: Server, served: dict[str, str], case: str) -> None:
    _, stored, left, is_taken = CASES[case]
    assert server.ask("GET", f"{served[case]}/a")[1]["spec"]["a"] == left
    status, answer = server.ask("POST", served[case], thing(served[case].split("/")[2], "b", stored))
    assert (status == 201) is is_taken, answer
