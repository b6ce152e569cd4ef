"""Which texts of a content hold values of its Secrets, and what of them is told to people who may not get these."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.secret_texts import kept_apart, secret_texts, without_texts
from provisioner.values import Content, JsonObject, Manifest, Note, ObjectRef, Plan, Report

SECRET = ObjectRef("", "v1", "Secret", "shop", "db")
PASSWORD = "correct-horse"
NONE: list[list[str | int]] = []


def content(text: str, value: str = PASSWORD, **more: Any) -> Content:
    main = {
        "name": "main",
        "image": "example.com/web:1",
        "env": [{"name": "ODD"}, {"name": "A", "value": text}],
        **more,
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [main]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    meta = {"name": "web", "namespace": "shop"}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    data = {"pin": base64.b64encode(value.encode()).decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {**meta, "name": "db"}, "data": data}
    return Content((Manifest(web), Manifest(secret)), "shop", "installer", (), f"sha256:{text}{value}")


def mark_findings(now: Content, before: Content | None = None) -> Report:
    return look_offline(now, before, is_for_reader=False)


def found(of: Content, plan: Plan) -> list[list[str | int]]:
    return [list(path[5:]) for text in secret_texts(of, plan).values() for path in text.paths]


@pytest.mark.parametrize(
    ("text", "value", "is_found"),
    [
        (PASSWORD, PASSWORD, True),
        (f"postgres://web:{PASSWORD}@db/shop", PASSWORD, True),
        (base64.b64encode(PASSWORD.encode()).decode(), PASSWORD, True),
        ("4711", "4711", True),
        ("port 4711", "4711", False),
        ("true", "true", False),
        ("incorrect", PASSWORD, False),
    ],
    ids=["equal", "inside", "in base64", "short and equal", "short and inside", "a switch", "another"],
)
def test_a_variable_that_holds_a_value_of_a_secret_is_found(text: str, value: str, is_found: bool) -> None:
    of = content(text, value)
    assert found(of, mark_findings(of).plan) == ([["env", 1, "value"]] if is_found else NONE)


def test_so_are_arguments_and_commands_wherever_they_stand_in_what_comes_of_them() -> None:
    run = {"exec": {"command": ["x", PASSWORD]}}
    of = content("", args=[f"--pin={PASSWORD}"], command=[PASSWORD], livenessProbe=run, lifecycle={"preStop": run})
    plan = mark_findings(of).plan
    assert found(of, plan) == [
        ["command", 0],
        ["args", 0],
        ["lifecycle", "preStop", "exec", "command", 1],
        ["livenessProbe", "exec", "command", 1],
    ]
    ((identity, one),) = secret_texts(of, plan).items()
    body: JsonObject = next(planned.after for planned in plan.actions if planned.ref.identity == identity) or {}
    assert PASSWORD in str(body)
    assert PASSWORD not in str(without_texts(body, one.paths, "hidden"))
    assert one.secrets == {SECRET}


@pytest.mark.parametrize("is_of_secret", [True, False], ids=["beside a Secret", "alone"])
def test_a_digest_in_an_annotation_of_pods_may_be_one_of_a_secret(is_of_secret: bool) -> None:
    of = content("")
    noted = {"checksum/secret": hashlib.sha256(b"weak").hexdigest(), "team": "web"}
    of.manifests[0].body["spec"]["template"]["metadata"]["annotations"] = noted
    of = of if is_of_secret else replace(of, manifests=of.manifests[:1])
    places = [path for text in secret_texts(of, mark_findings(of).plan).values() for path in text.paths]
    expected = [("spec", "template", "metadata", "annotations", "checksum/secret")]
    assert places == (expected if is_of_secret else [])


def test_S38_a_guess_is_not_held_against_the_secrets_of_another_content() -> None:
    guess = content(PASSWORD, "nobody-knows-it")
    assert found(guess, mark_findings(guess, content("", PASSWORD)).plan) == NONE


def test_S09_findings_that_quote_a_value_of_a_secret_name_it_as_a_source() -> None:
    before, now = (
        content("", value, livenessProbe={"exec": {"command": [value]}}) for value in ("battery-1", PASSWORD)
    )
    findings = mark_findings(now, before).findings
    told = [one for one in findings if PASSWORD in f"{one.evidence} {one.server_words}"]
    assert told
    assert all(SECRET in one.sources for one in told)
    assert not [
        finding.message for finding in findings if PASSWORD in finding.message or "battery-1" in finding.message
    ]


@pytest.mark.parametrize(
    "quoting",
    [
        {"evidence": {"options": {PASSWORD: 1}}},
        {"evidence": {"options": frozenset({PASSWORD})}},
        {"notes": (Note("shared/objects", "x", {"value": PASSWORD}),)},
        {"path": ("spec", PASSWORD)},
    ],
    ids=["a key", "a set", "a note", "a field"],
)
def test_S09_wherever_a_finding_holds_a_value_of_a_secret_it_is_told_apart(quoting: dict[str, Any]) -> None:
    of = content(PASSWORD)
    plan = mark_findings(of).plan
    plain = replace(mark_findings(of).findings[0], evidence={}, sources=(), server_words="", path=())
    (told,) = kept_apart([replace(plain, **quoting)], of, plan)
    assert told.sources == (SECRET,)
    assert bool(told.server_words) is ("path" in quoting)
