"""Resources inside resources, and fields that are null, beside the API server: what it refuses, `admit` does."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from provisioner.schema import admit
from tests.support.kubernetes.connection import CRD_PATH, Server
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import wait_for
from tests.support.provisioner.shapes import TEXT, JsonDict, crd_of, listed, mapped, obj, root

KEEP = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED: JsonDict = {"type": "object", "x-kubernetes-embedded-resource": True, **KEEP}
NAMED = {"apiVersion": "v1", "kind": "Pod"}
WORD, NULLABLE = {**TEXT, "maxLength": 5}, {**TEXT, "maxLength": 5, "nullable": True}


def ruled(rule: str, **fields: JsonDict) -> JsonDict:
    return obj(**fields, more={"x-kubernetes-validations": [{"rule": rule, "message": "no"}]})


def of(**metadata: Any) -> JsonDict:
    return {**NAMED, "metadata": metadata}


# The schema of `spec`, the value of `spec.a`, and whether the API server takes it.
CASES: dict[str, tuple[JsonDict, Any, bool]] = {
    "nothing in it": (obj(a=EMBEDDED), {}, False),
    "a kind and no version": (obj(a=listed(EMBEDDED)), [{"kind": "Pod"}], False),
    "both": (obj(a=EMBEDDED), NAMED, True),
    "three parts of a version": (obj(a=EMBEDDED), {**NAMED, "apiVersion": "a/b/c"}, False),
    "a kind with a space": (obj(a=EMBEDDED), {**NAMED, "kind": "a b"}, False),
    "metadata that is null": (obj(a=EMBEDDED), {**NAMED, "metadata": None}, True),
    "metadata that is a number": (obj(a=EMBEDDED), {**NAMED, "metadata": 0}, False),
    "an odd name": (obj(a=EMBEDDED), of(name="A B"), True),
    "a name that is a path": (obj(a=EMBEDDED), of(name="a/b"), False),
    "a name of dots": (obj(a=EMBEDDED), of(name=".."), False),
    "a name that is a number": (obj(a=EMBEDDED), of(name=0), False),
    "a prefix of names that is a path": (obj(a=EMBEDDED), of(generateName="a/"), False),
    "a namespace in capitals": (obj(a=EMBEDDED), of(namespace="Shop"), False),
    "a namespace of 64": (obj(a=EMBEDDED), of(namespace="a" * 64), False),
    "a good label": (obj(a=EMBEDDED), of(labels={"example.com/x": "y_1", "z": ""}), True),
    "a label with a space": (obj(a=EMBEDDED), of(labels={"a b": "c"}), False),
    "a label of a dash": (obj(a=EMBEDDED), of(labels={"a": "-"}), False),
    "a label of 64": (obj(a=EMBEDDED), of(labels={"a": "x" * 64}), False),
    "a label with two slashes": (obj(a=EMBEDDED), of(labels={"a/b/c": "d"}), False),
    "a label without prefix": (obj(a=EMBEDDED), of(labels={"/b": "d"}), False),
    "a label that is null": (obj(a=EMBEDDED), of(labels={"a": None}), True),
    "a label that is false": (obj(a=EMBEDDED), of(labels={"a": False}), False),
    "labels in a list": (obj(a=EMBEDDED), of(labels=[]), False),
    "an annotation in capitals": (obj(a=EMBEDDED), of(annotations={"A.b/C": "any thing"}), True),
    "an annotation with a space": (obj(a=EMBEDDED), of(annotations={"a b": ""}), False),
    "annotations without measure": (obj(a=EMBEDDED), of(annotations={"a": "x" * 262_144}), False),
    "a finalizer with a space": (obj(a=EMBEDDED), of(finalizers=["a b"]), False),
    "a finalizer that is a number": (obj(a=EMBEDDED), of(finalizers=[5]), False),
    "a field that is null is not there": (ruled("has(self.a)", a=NULLABLE), None, False),
    "nor in what keeps unknown fields": (ruled("has(self.a.b)", a={**obj(b=NULLABLE), **KEEP}), {"b": None}, False),
    "an object that is null is not there": (ruled("has(self.a)", a={**obj(b=WORD), "nullable": True}), None, False),
    "a list that is null is not there": (ruled("!has(self.a)", a=listed(WORD, maxItems=3, nullable=True)), None, True),
    "an optional field that is null has no value": (ruled("self.?a.hasValue()", a=NULLABLE), None, False),
    "a map's value that is null is there": (
        ruled("'k' in self.a", a=mapped(NULLABLE, maxProperties=3)),
        {"k": None},
        True,
    ),
    "a list's item that is null is there": (ruled("self.a.size() == 1", a=listed(NULLABLE, maxItems=3)), [None], True),
}
ASKED = pytest.mark.parametrize(("schema", "value", "is_taken"), CASES.values(), ids=CASES)


@ASKED
def test_admit_takes_what_the_api_server_takes(schema: JsonDict, value: Any, is_taken: bool) -> None:
    wished = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"a": value}}
    found = admit(root(schema), wished)
    assert (found.refusals == ()) is is_taken, found.refusals


@pytest.mark.thorough
@pytest.mark.controlplane
@ASKED
def test_the_api_server_still_does(controlplane: Endpoint, schema: JsonDict, value: Any, is_taken: bool) -> None:
    group = f"{uuid.uuid4().hex[:8]}.example.com"
    made = crd_of(schema)
    made = {**made, "metadata": {"name": f"things.{group}"}, "spec": {**made["spec"], "group": group}}
    path = f"/apis/{group}/v1/namespaces/default/things?dryRun=All&fieldValidation=Ignore"
    wished = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"a": value}}
    server = Server(controlplane)
    try:
        assert server.ask("POST", CRD_PATH, made)[0] == 201
        # 404 and 503: it is not served yet, or just begins to be.
        status, answer = wait_for(
            lambda: server.ask("POST", path, wished), "the kind is served", is_so=lambda it: it[0] not in (404, 503)
        )
        assert (status == 201) is is_taken, answer
        assert status in (201, 400, 422)
    finally:
        server.ask("DELETE", f"{CRD_PATH}/things.{group}")
        server.close()
