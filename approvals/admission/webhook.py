"""The stamp of who wrote a spec by a webhook, for clusters that serve no MutatingAdmissionPolicy (author-stamp.yaml).

It only proposes. The ValidatingAdmissionPolicy `pratique-authors` compares each stamp with the user of the request, so
neither a forged answer nor a write that the webhook never saw makes anybody the author of what they did not write.
PURE: an AdmissionReview comes in, another one goes out. It reads no database and asks no cluster.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

from approvals.admission.stamp import ANNOTATION, PROBE, stamp_for
from approvals.errors import InvalidInput
from provisioner.api_groups import OWN_GROUP

API_VERSION = "admission.k8s.io/v1"
PATH, HEALTH = "/stamp", "/healthz"
RESOURCES = ("bundledeployments", "catalogs", "approvalpolicies")
# Two objects of at most 1.5 MiB in etcd, as JSON, and who asks.
MAX_BODY = 8 * 1024 * 1024
WRITES = ("CREATE", "UPDATE")
StartResponse = Callable[[str, list[tuple[str, str]]], object]


def answer(review: object) -> dict[str, Any]:
    """The AdmissionReview with the patch, if any. Raises InvalidInput for what is no question that was configured."""
    request = _mapping(_mapping(review, "the body").get("request"), "request")
    uid, operation = request.get("uid"), request.get("operation")
    if not isinstance(uid, str) or not uid:
        raise InvalidInput("request.uid is missing; expected an AdmissionReview of the API server")
    resource = _mapping(request.get("resource"), "request.resource")
    if resource.get("group") != OWN_GROUP or resource.get("resource") not in RESOURCES:
        known = " or ".join(RESOURCES)
        raise InvalidInput(f"request.resource is not {known} of {OWN_GROUP}: the webhook is configured for others")
    given: dict[str, Any] = {"uid": uid, "allowed": True}
    options = request.get("options")
    is_probe = request.get("dryRun") is True and isinstance(options, dict) and options.get("fieldManager") == PROBE
    is_write = operation in WRITES and not request.get("subResource") and not is_probe
    if is_write and (patch := find_patch(request)):
        text = json.dumps(patch, separators=(",", ":")).encode()
        given |= {"patchType": "JSONPatch", "patch": base64.b64encode(text).decode()}
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": given}


def application(environ: Mapping[str, Any], start: StartResponse) -> Iterable[bytes]:
    """WSGI: AdmissionReviews at PATH, and HEALTH for probes."""
    where = (environ.get("REQUEST_METHOD"), environ.get("PATH_INFO"))
    if where == ("GET", HEALTH):
        return _reply(start, HTTPStatus.OK, {"status": "ok"})
    if where != ("POST", PATH):
        return _reply(start, HTTPStatus.NOT_FOUND, {"error": f"expected POST {PATH}"})
    length = str(environ.get("CONTENT_LENGTH") or "")
    if not length.isascii() or not length.isdigit():
        return _reply(start, HTTPStatus.LENGTH_REQUIRED, {"error": "expected a body with Content-Length"})
    if int(length) > MAX_BODY:
        return _reply(
            start, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": f"the body is larger than {MAX_BODY:,} bytes"}
        )
    try:
        return _reply(start, HTTPStatus.OK, answer(json.loads(environ["wsgi.input"].read(int(length)))))
    except (InvalidInput, ValueError, RecursionError) as exc:
        words = str(exc) if isinstance(exc, InvalidInput) else "the body is no JSON"
        return _reply(start, HTTPStatus.BAD_REQUEST, {"error": words})


def find_patch(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What gives the object the stamp that the policy wants, as RFC 6902."""
    obj = _mapping(request.get("object"), "request.object")
    old = _mapping(request.get("oldObject") or {}, "request.oldObject")
    annotations = _mapping(obj.get("metadata"), "request.object.metadata").get("annotations")
    is_written = request["operation"] == "CREATE" or not _is_same(obj.get("spec"), old.get("spec"))
    wanted = str(_annotations(old).get(ANNOTATION, ""))
    if is_written:
        user = _mapping(request.get("userInfo"), "request.userInfo")
        names = (str(user.get("username") or ""), str(user.get("uid") or ""))
        wanted = stamp_for([*names, *map(str, user.get("groups") or ())])
    found = str(_annotations(obj).get(ANNOTATION, ""))
    place = "/metadata/annotations/" + ANNOTATION.replace("~", "~0").replace("/", "~1")
    if found == wanted:
        return []
    if not wanted:
        return [{"op": "remove", "path": place}]
    made = [] if isinstance(annotations, dict) else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    return [*made, {"op": "add", "path": place, "value": wanted}]


def _is_same(one: object, other: object) -> bool:
    """As CEL compares them: numbers by value, and true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = obj.get("metadata")
    found = meta.get("annotations") if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else {}


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}: expected an object, found {type(value).__name__}")
    return value


def _reply(start: StartResponse, status: HTTPStatus, body: Mapping[str, Any]) -> list[bytes]:
    text = json.dumps(body).encode()
    start(f"{status.value} {status.phrase}", [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
    return [text]
