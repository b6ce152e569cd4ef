"""What the API server's refusals become."""

from __future__ import annotations

import json
from typing import Any

import pytest

from provisioner import errors
from provisioner.cluster.client.failures import Doing, event_failure, failure_of, is_immutable_field

DOING = Doing("apply", "ConfigMap a/b")
SECRET = Doing("apply", "Secret a/b", is_secret=True)


def status(code: int, reason: str = "", message: str = "words", **details: Any) -> bytes:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return json.dumps(body | ({"details": details} if details else {})).encode()


def cause(reason: str, field: str, message: str = "") -> dict[str, str]:
    return {"reason": reason, "field": field, "message": message}


CONFLICT = [
    cause("FieldManagerConflict", ".spec.replicas", 'conflict with "hpa" using apps/v1'),
    cause("FieldManagerConflict", ".data.a", 'conflict with "kubectl"'),
]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(status(400, "BadRequest"), errors.InvalidObject, id="bad request"),
        pytest.param(status(401, "Unauthorized"), errors.Unauthenticated, id="unauthorized"),
        pytest.param(status(403, "Forbidden"), errors.Forbidden, id="forbidden"),
        pytest.param(status(404, "NotFound"), errors.ClusterError, id="not found"),
        pytest.param(status(405, "MethodNotAllowed"), errors.ClusterError, id="method not allowed"),
        pytest.param(status(409, "AlreadyExists"), errors.AlreadyExists, id="already exists"),
        pytest.param(status(409, "Conflict"), errors.PreconditionFailed, id="precondition"),
        pytest.param(status(409, "Conflict", causes=CONFLICT), errors.FieldConflict, id="field conflict"),
        pytest.param(status(410, "Expired"), errors.Expired, id="expired"),
        pytest.param(status(413, "RequestEntityTooLarge"), errors.InvalidObject, id="too large"),
        pytest.param(status(422, "Invalid"), errors.InvalidObject, id="invalid"),
        pytest.param(
            status(422, "Invalid", causes=[cause("FieldValueInvalid", "metadata.uid", "field is immutable")]),
            errors.PreconditionFailed,
            id="another uid",
        ),
        pytest.param(status(429, "TooManyRequests"), errors.Unreachable, id="too many"),
        pytest.param(status(500, "InternalError", "failed calling webhook"), errors.Unreachable, id="webhook down"),
        pytest.param(
            status(500, "InternalError", 'Internal error occurred: failed calling webhook "a.example.com": no route'),
            errors.WebhookUnavailable,
            id="webhook down, named",
        ),
        pytest.param(
            status(500, "", "failed to create typed patch object (a/b): .x: field not declared in schema"),
            errors.InvalidObject,
            id="undeclared field",
        ),
        pytest.param(
            status(500, "", "failed to convert new object (a/b) to proper version: quantities must match"),
            errors.InvalidObject,
            id="a value that cannot be read",
        ),
        pytest.param(
            status(500, "", "etcdserver: request is too large"), errors.InvalidObject, id="too large for the store"
        ),
        pytest.param(
            status(500, "", "rpc error: trying to send message larger than max (2300764 vs. 2097152)"),
            errors.InvalidObject,
            id="too large to be sent to the store",
        ),
        pytest.param(status(503, "ServiceUnavailable"), errors.Unreachable, id="unavailable"),
        pytest.param(status(504, "Timeout"), errors.Unreachable, id="timeout"),
    ],
)
def test_each_refusal_has_its_error(body, kind):
    error = failure_of(DOING, json.loads(body)["code"], body, {})
    assert type(error) is kind
    assert "apply ConfigMap a/b" in str(error)


@pytest.mark.parametrize(
    ("http_status", "kind"),
    [(404, errors.UnknownKind), (502, errors.Unreachable), (429, errors.Unreachable), (403, errors.Forbidden)],
)
def test_an_answer_that_is_no_status_is_understood_by_its_code(http_status, kind):
    assert type(failure_of(DOING, http_status, b"<html>proxy</html>", {})) is kind


def test_S27_a_field_conflict_names_the_fields_that_we_sent_and_keeps_their_managers_apart():
    doing = Doing("apply", "ConfigMap a/b", sent={"data": {"a": "1"}})
    error = failure_of(doing, 409, status(409, "Conflict", causes=CONFLICT), {})
    assert str(error) == "apply ConfigMap a/b: another manager owns data.a"
    assert error.server_words == "hpa owns .spec.replicas; kubectl owns .data.a"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(status(422, "Invalid", 'spec.a: Invalid value: "hunter2"'), id="in the message"),
        pytest.param(status(422, "Invalid", "x", causes=[cause("hunter2", "hunter2", "hunter2")]), id="in a cause"),
        pytest.param(status(400, "hunter2", "hunter2"), id="as the reason of a webhook"),
        pytest.param(
            status(403, "Forbidden", 'admission webhook "a" denied: User "hunter2" cannot get resource "x"'),
            id="as a denial",
        ),
        pytest.param(
            status(409, "Conflict", "hunter2", causes=[cause("FieldManagerConflict", ".hunter2", "hunter2")]),
            id="as a conflict",
        ),
        pytest.param(status(500, "InternalError", "failed calling webhook: hunter2"), id="of a webhook that is down"),
        pytest.param(b"proxy error: hunter2", id="in a body that is no status"),
    ],
)
def test_S27_the_message_of_an_error_never_quotes_the_server(body):
    doing = Doing("apply", "ConfigMap a/b", sent={"data": {"a": "1"}})
    http_status = json.loads(body)["code"] if body.startswith(b"{") else 502
    error = failure_of(doing, http_status, body, {})
    assert "hunter2" not in str(error)
    assert "apply ConfigMap a/b" in str(error)


def test_S27_a_field_that_cannot_change_is_named_where_we_sent_it():
    causes = [cause("FieldValueInvalid", "spec.template", 'Invalid value: "hunter2": field is immutable')]
    doing = Doing("apply", "Job.batch a/b", sent={"spec": {"template": {}}})
    error = failure_of(doing, 422, status(422, "Invalid", "hunter2", causes=causes), {})
    assert str(error) == (
        "apply Job.batch a/b: the API server refuses it (Invalid): spec.template, because it cannot be changed"
    )
    assert error.server_words == "hunter2"


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (
            'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: EOF',
            "a.example.com",
        ),
        ("conversion webhook for x.example/v1, Kind=Berth failed: Post: EOF", "Berth.x.example"),
        ('denied: failed calling webhook "forged": EOF', ""),
    ],
)
def test_the_message_names_the_webhook_that_does_not_answer(message: str, named: str) -> None:
    found = failure_of(Doing("apply", "Secret a/b", is_secret=True), 500, status(500, "InternalError", message), {})
    assert named in str(found)
    assert isinstance(found, errors.WebhookUnavailable) is bool(named)
    assert "forged" not in str(found)
    assert found.server_words == ""


@pytest.mark.parametrize("step", ["[\u00b2]", f"[{'9' * 5000}]", "[]", "[=]", "[a=b=c,,]", "['0']"])
def test_S26_what_a_webhook_calls_a_field_is_no_reason_to_stumble(step):
    """The API server passes on the causes of an admission webhook as they are."""
    causes = [cause("FieldValueInvalid", f"spec.ports{step}.name")]
    doing = Doing("apply", "Service a/b", sent={"spec": {"ports": [{"name": "web"}]}})
    error = failure_of(doing, 422, status(422, "Invalid", causes=causes), {})
    assert str(error) == "apply Service a/b: the API server refuses it (Invalid)"


def test_who_lacks_which_right_is_no_value_and_stands_in_the_message():
    words = 'pods "x" is forbidden: User "ada" cannot patch resource "pods" in API group "" in the namespace "a"'
    error = failure_of(DOING, 403, status(403, "Forbidden", words), {})
    assert 'User "ada" cannot patch resource "pods"' in str(error)
    assert error.server_words == ""


def test_S27_what_the_authorizer_adds_to_its_sentence_stays_apart():
    words = 'pods "x" is forbidden: User "ada" cannot get resource "pods" in API group "" in the namespace "a": hunter2'
    error = failure_of(DOING, 403, status(403, "Forbidden", words), {})
    assert ("hunter2" in str(error), error.server_words) == (False, words)


@pytest.mark.parametrize(("headers", "seconds"), [({"Retry-After": "7"}, 7), ({"Retry-After": "Tue"}, 0), ({}, 0)])
def test_how_long_to_wait_is_kept(headers, seconds):
    assert failure_of(DOING, 429, status(429), headers).retry_after_seconds == seconds


def test_a_server_cannot_make_us_wait_for_hours():
    error = failure_of(DOING, 429, status(429), {"Retry-After": "999999"})
    assert isinstance(error, errors.Unreachable)
    assert error.retry_after_seconds == 300


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(status(422, "Invalid", 'Secret "b": data[x]: Invalid value: "hunter2"'), id="in the message"),
        pytest.param(
            status(422, "Invalid", "x", causes=[cause("FieldValueInvalid", "data[x]", 'Invalid value: "hunter2"')]),
            id="in a cause",
        ),
        pytest.param(status(500, "", "failed to convert new object: hunter2"), id="in a conversion"),
        pytest.param(status(500, "InternalError", "webhook: hunter2"), id="in a webhook's words"),
        pytest.param(status(403, "Forbidden", "denied: hunter2", hunter2="hunter2"), id="in unknown details"),
        pytest.param(b"proxy error for hunter2", id="in a body that is no status"),
    ],
)
def test_an_error_about_a_secret_never_carries_its_values(body):
    error = failure_of(SECRET, 422, body, {})
    assert "hunter2" not in str(error)
    assert "hunter2" not in json.dumps(getattr(error, "details", {}))
    assert "Secret a/b" in str(error)


def test_a_conflict_about_a_secret_still_names_manager_and_field():
    causes = [cause("FieldManagerConflict", ".data.x", 'conflict with "vault" using v1')]
    error = failure_of(SECRET, 409, status(409, "Conflict", "hunter2", causes=causes), {})
    assert "vault owns .data.x" in error.server_words
    assert "hunter2" not in error.in_full


@pytest.mark.parametrize(
    ("causes", "is_immutable"),
    [
        pytest.param([cause("FieldValueInvalid", "spec.x", "Invalid value: 1: field is immutable")], True, id="field"),
        pytest.param([cause("FieldValueInvalid", "roleRef", "cannot change roleRef")], True, id="roleRef"),
        pytest.param([cause("FieldValueInvalid", "spec.clusterIP", "may not change once set")], True, id="cluster IP"),
        pytest.param(
            [cause("FieldValueForbidden", "spec", "updates to statefulset spec for fields other than a are forbidden")],
            True,
            id="stateful set",
        ),
        pytest.param(
            [cause("FieldValueForbidden", "spec", "Forbidden: pod updates may not change fields other than `a`")],
            True,
            id="pod",
        ),
        pytest.param(
            [
                cause(
                    "FieldValueForbidden", "spec.containers", "Forbidden: pod updates may not add or remove containers"
                )
            ],
            True,
            id="containers of a pod",
        ),
        pytest.param(
            [cause("FieldValueForbidden", "value", "Forbidden: may not be changed in an update.")],
            True,
            id="priority class",
        ),
        pytest.param([cause("FieldValueForbidden", "spec.x", "Forbidden: not allowed")], False, id="only forbidden"),
        pytest.param([cause("FieldValueInvalid", "spec.type", "Unsupported value")], False, id="only invalid"),
        pytest.param([cause("FieldValueRequired", "spec.x", "field is immutable")], False, id="another reason"),
        pytest.param(
            [
                cause("FieldValueInvalid", "spec.x", "field is immutable"),
                cause("FieldValueInvalid", "spec.y", "must be positive"),
            ],
            False,
            id="immutable and invalid",
        ),
        pytest.param([], False, id="no cause"),
    ],
)
def test_only_immutable_fields_alone_call_for_a_replacement(causes, is_immutable):
    error = failure_of(DOING, 422, status(422, "Invalid", "field is immutable", causes=causes), {})
    assert isinstance(error, errors.InvalidObject)
    assert is_immutable_field(error) is is_immutable


def test_a_watch_that_is_too_old_says_so():
    event = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    assert isinstance(event_failure(DOING, event), errors.Expired)
