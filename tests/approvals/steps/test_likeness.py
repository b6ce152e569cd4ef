"""What makes two requests of a set alike, and what nobody learns from that."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from approvals.models import Request
from approvals.steps.records.likeness import likeness_of
from provisioner.review.base.made_texts import HiddenTexts
from provisioner.review.secret_texts import SecretTexts
from provisioner.values import Content, Manifest, ObjectRef

SECRET = ObjectRef("", "v1", "Secret", "harbour", "key")
WEB = ObjectRef("apps", "v1", "Deployment", "harbour", "web")


def obj(ref: ObjectRef, **parts: Any) -> dict[str, Any]:
    version = f"{ref.group}/{ref.version}" if ref.group else ref.version
    return {
        "apiVersion": version,
        "kind": ref.kind,
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        **parts,
    }


def planned(ref: ObjectRef, action: str, before: Any, after: Any) -> dict[str, Any]:
    named = {part: getattr(ref, part) for part in ("group", "version", "kind", "namespace", "name")}
    words = {"problem": "", "problemCode": "", "serverWords": "", "warnings": [], "notes": [], "isProved": True}
    return {"ref": named, "action": action, "before": before, "after": after, **words}


def finding(ref: ObjectRef, **parts: Any) -> dict[str, Any]:
    named = {part: getattr(ref, part) for part in ("group", "version", "kind", "namespace", "name")}
    return {
        "fingerprint": "f",
        "rule": "OB-01",
        "severity": "notable",
        "isNew": True,
        "message": "it changes",
        "ref": named,
        "sources": [],
        "evidence": {},
        **parts,
    }


def known() -> dict[str, Any]:
    """A Deployment that exists and a Secret that exists, both changed."""
    web, secret = obj(WEB, spec={"replicas": 3, "image": "web:2"}), obj(SECRET, data={"key": "bmV3"})
    return {
        "purpose": "deploy",
        "spec": {"installNamespace": "harbour", "config": {"tag": 2}, "sources": [{"kind": "http"}], "paused": False},
        "objects": [web, secret],
        "actions": [
            planned(WEB, "update", obj(WEB, spec={"replicas": 1}), web),
            planned(SECRET, "update", obj(SECRET, data={"key": "b2xk"}), secret),
        ],
        "findings": [finding(WEB), finding(SECRET, fingerprint="s")],
    }


def likeness(parts: dict[str, Any], texts: Any = None, hidden: HiddenTexts | None = None) -> dict[str, Any]:
    manifests = tuple(Manifest(body) for body in parts["objects"])
    content = Content(manifests, "harbour", "installer", (), "sha256:x")
    body = {"plan": {"actions": parts["actions"]}, "findings": parts["findings"]}
    request = Request(purpose=parts["purpose"], spec=parts["spec"])
    return likeness_of(request, content, body, texts or {}, hidden or HiddenTexts({}))


def changed(change: Callable[[dict[str, Any]], Any]) -> bool:
    other = copy.deepcopy(known())
    change(other)
    return likeness(other)["digest"] != likeness(known())["digest"]


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts.update(purpose="rollback"),
        lambda parts: parts["spec"].update(serviceAccountName="root"),
        lambda parts: parts["objects"][0]["spec"].update(image="evil:1"),
        lambda parts: parts["objects"].append(obj(ObjectRef("", "v1", "ConfigMap", "harbour", "more"))),
        lambda parts: parts["actions"][0].update(action="replace"),
        lambda parts: parts["actions"][0].update(isProved=False),
        lambda parts: parts["actions"].append(planned(WEB, "delete", {}, None)),
        lambda parts: parts["actions"][1].update(action="delete"),
        lambda parts: parts["findings"][0].update(severity="critical"),
        lambda parts: parts["findings"][0].update(message="it stops"),
        lambda parts: parts["findings"][0].update(fingerprint="g"),
        lambda parts: parts["findings"][0].update(isNew=False),
        lambda parts: parts["findings"].pop(0),
        lambda parts: parts["findings"][1].update(severity="critical"),
    ],
)
def test_what_a_reviewer_goes_by_makes_a_difference(change: Callable[[dict[str, Any]], Any]) -> None:
    assert changed(change)


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts["spec"].update(paused=True, config={"tag": 3}, sources=[]),
        lambda parts: parts["actions"].reverse(),
        lambda parts: parts["findings"].reverse(),
        lambda parts: parts["actions"][0]["before"]["spec"].update(replicas=2),
        # S38: whether a Secret equals the bundle's, and what it holds, is told to nobody.
        lambda parts: parts["objects"][1]["data"].update(key="b3RoZXI="),
        lambda parts: parts["actions"][1].update(action="none"),
        lambda parts: parts["findings"][1].update(rule="SEC-02", message="its key differs", fingerprint="t"),
    ],
)
def test_S38_what_nobody_may_know_or_what_is_as_good_makes_none(change: Callable[[dict[str, Any]], Any]) -> None:
    assert not changed(change)


def test_a_new_secret_is_compared_by_its_keys() -> None:
    def likeness_with(data: dict[str, str]) -> str:
        parts = known()
        parts["actions"][1] = planned(SECRET, "create", None, obj(SECRET, data=data))
        return str(likeness(parts)["digest"])

    assert likeness_with({"a": "MQ=="}) == likeness_with({"a": "Mg=="})
    assert likeness_with({"a": "MQ=="}) != likeness_with({"b": "MQ=="})


def test_S09_a_reader_needs_the_kinds_of_all_objects_that_exist_and_are_compared() -> None:
    assert likeness(known())["needs"] == [["apps", "v1", "Deployment", "harbour"]]
    new = known()
    new["actions"][0] = planned(WEB, "create", None, new["objects"][0])
    assert likeness(new)["needs"] == []
    # An object that quotes a Secret can be compared by who may get the Secret.
    quoting = {WEB.identity: SecretTexts([["spec", "image"]], {SECRET})}
    assert likeness(new, quoting)["needs"] == [["", "v1", "Secret", "harbour"]]


def test_S44_values_that_a_chart_made_up_are_not_compared() -> None:
    made = [f"Zu7aeMah9Ohn{letter}ai" for letter in "xy"]
    digests = set()
    for value in made:
        parts = known()
        parts["objects"][0]["spec"]["password"] = value
        digests.add(likeness(parts, hidden=HiddenTexts({value: "made up"}))["digest"])
    assert len(digests) == 1
