"""The webhook that stamps: what it proposes, and what it answers to what is no question."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import jsonpatch
import pytest

from approvals.admission import ANNOTATION, stamp_for
from approvals.admission.webhook import HEALTH, MAX_BODY, PATH, answer, application
from approvals.errors import InvalidInput

ALICE = stamp_for(["alice", "u-1", "platform", "a,b"])
BOB = stamp_for(["bob", ""])
USER = {"username": "alice", "uid": "u-1", "groups": ["platform", "a,b"]}
RESOURCE = {"group": "core.rukpak.io", "version": "v1alpha2", "resource": "bundledeployments"}


def wish(stamp: str | None = None, spec: object = None, **meta: Any) -> dict[str, Any]:
    annotations = {} if stamp is None else {"annotations": {ANNOTATION: stamp}}
    return {"metadata": {"name": "boat", **annotations, **meta}, "spec": {"a": 1} if spec is None else spec}


def review(obj: dict[str, Any], old: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    request = {
        "uid": "1",
        "resource": RESOURCE,
        "operation": "UPDATE" if old else "CREATE",
        "userInfo": USER,
        "object": obj,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, **changed}}


def stamped(obj: dict[str, Any], old: dict[str, Any] | None = None, **changed: Any) -> object:
    """The stamp of the object once the answer's patch has been applied; None for none."""
    response = answer(review(obj, old, **changed))["response"]
    assert (response["uid"], response["allowed"]) == ("1", True)
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    found = jsonpatch.apply_patch(obj, patch)
    assert found["spec"] == obj["spec"]
    return (found["metadata"].get("annotations") or {}).get(ANNOTATION)


@pytest.mark.parametrize("obj", [wish(), wish(BOB), wish(ALICE), wish(annotations=None), wish(annotations={"x": "y"})])
def test_S05_who_creates_it_is_stamped_whatever_is_there(obj: dict[str, Any]) -> None:
    assert stamped(obj) == ALICE


@pytest.mark.parametrize(
    ("obj", "old", "expected"),
    [
        (wish(BOB, {"a": 2}), wish(BOB), ALICE),
        (wish(None, {"a": 2}), wish(BOB), ALICE),
        (wish(ALICE), wish(BOB), BOB),
        (wish(), wish(BOB), BOB),
        (wish(ALICE), wish(), None),
        (wish(BOB, labels={"x": "y"}), wish(BOB), BOB),
        (wish(BOB, {"a": 1.0}), wish(BOB), BOB),
        (wish(BOB, {"a": True}), wish(BOB), ALICE),
        (wish(BOB, {"a": [1, {"b": 2}]}), wish(BOB, {"a": [1, {"b": 2}]}), BOB),
        (wish(BOB, {"a": [1, {"b": 3}]}), wish(BOB, {"a": [1, {"b": 2}]}), ALICE),
    ],
)
def test_S05_a_write_that_leaves_the_spec_alone_leaves_its_author(
    obj: dict[str, Any], old: dict[str, Any], expected: str | None
) -> None:
    """What it takes for the same spec is what CEL does, so that the policy agrees with each stamp."""
    assert stamped(obj, old) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"operation": "DELETE"},
        {"operation": "CONNECT"},
        {"subResource": "status"},
        {"dryRun": True, "options": {"fieldManager": "pratique-probe"}},
    ],
)
def test_what_is_no_write_of_a_spec_is_left_alone(changed: dict[str, Any]) -> None:
    assert stamped(wish(BOB, {"a": 2}), wish(BOB), **changed) == BOB


@pytest.mark.parametrize("options", [{"fieldManager": "pratique-probe"}, {"fieldManager": "x"}, None])
def test_S05_nobody_is_left_alone_because_of_what_they_call_themselves(options: object) -> None:
    assert stamped(wish(BOB), dryRun=False, options=options) == ALICE


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"request": {}},
        {"request": {"uid": 1, "resource": RESOURCE}},
        {"request": {"uid": "1", "resource": {"group": "", "resource": "pods"}}},
        review({"metadata": "x", "spec": {}}),
        review(wish(), userInfo=None),
    ],
)
def test_what_is_no_question_of_ours_is_refused_in_words(body: object) -> None:
    with pytest.raises(InvalidInput, match="expected|configured|missing"):
        answer(body)


def called(method: str, path: str, body: bytes = b"", **environ: Any) -> tuple[int, dict[str, Any]]:
    said: list[str] = []
    given = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    parts = application({**given, **environ}, lambda status, _headers: said.append(status))
    return int(said[0].split()[0]), json.loads(b"".join(parts))


@pytest.mark.parametrize(
    ("method", "path", "body", "environ", "status"),
    [
        ("GET", HEALTH, b"", {}, 200),
        ("GET", PATH, b"", {}, 404),
        ("POST", "/other", b"{}", {}, 404),
        ("POST", PATH, b"", {"CONTENT_LENGTH": ""}, 411),
        ("POST", PATH, b"", {"CONTENT_LENGTH": "-1"}, 411),
        ("POST", PATH, b"", {"CONTENT_LENGTH": str(MAX_BODY + 1)}, 413),
        ("POST", PATH, b"{", {}, 400),
        ("POST", PATH, b"\xff", {}, 400),
        ("POST", PATH, b"[" * 100_000, {}, 400),
        ("POST", PATH, b"{}", {}, 400),
        ("POST", PATH, json.dumps(review(wish())).encode(), {}, 200),
    ],
)
def test_bad_calls_get_a_status_and_words(
    method: str, path: str, body: bytes, environ: dict[str, Any], status: int
) -> None:
    found, said = called(method, path, body, **environ)
    assert found == status
    assert said.get("error") or status == 200
