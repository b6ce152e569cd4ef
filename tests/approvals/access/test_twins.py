"""Twins: two changes that differ in what a reader may not get, and are told to that reader in the same bytes (S38)."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from approvals.access.sight import ReportSight, Sight, headline_for, private_to_judge, unseen
from approvals.web.requests import overview, report_file
from provisioner import pipeline
from provisioner.cluster.client.api import ClusterClient
from provisioner.render.helm.lookups import filled, looked_up
from provisioner.render.limits import YamlLimits, YamlMeter
from provisioner.review.base.record import finding_from, to_record
from provisioner.review.output.entries import entries_record
from provisioner.review.output.html import as_html
from provisioner.sandbox import writes
from provisioner.values import Content, ObjectRef, Report
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.provisioner.contents import content_with

Object = dict[str, Any]
RIGHT, WRONG = "hunter2", "tr0ub4d"
OLD_HASH, NEW_HASH = "2hg4f5k6t7", "9mbc8d7f6g"


class Everybody:
    """Sees objects by what `may` says of them."""

    def __init__(self, may: Callable[[ObjectRef], bool]) -> None:
        self._may = may

    def may_see(self, ref: ObjectRef, *, widest_first: bool = True) -> bool:
        return self._may(ref)


BLIND = Everybody(lambda ref: False)
NO_SECRETS = Everybody(lambda ref: ref.kind != "Secret")
SEEING = Everybody(lambda ref: True)


def told(report: Report, reader: Everybody) -> str:
    """Everything that a reader gets of a report: what all get alike, and what each is shown."""
    body = json.loads(json.dumps(to_record(report)))
    sight = ReportSight(cast(Sight, reader), body)
    alike = {name: body[name] for name in ("headline", "worst", "totals")} | {"plan": body["plan"]["digest"]}
    alike |= {"actions": [one["action"] for one in body["plan"]["actions"]], "judged": private_to_judge(body)}
    findings = [sight.finding(one) for one in body["findings"]]
    shown = {
        "headline": headline_for(sight, body["findings"], body["headline"]),
        "findings": findings,
        "entries": entries_record(map(finding_from, findings)),
        "private": sight.private(body),
        "actions": [sight.action(one) for one in body["plan"]["actions"]],
        "unseen": repr(unseen(sight, body["findings"])),
        "tiles": repr(overview.tiles(body)),
        "blockers": repr(overview.blockers(body)),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_file, "Sight", lambda *_, **__: reader)
        exported, hidden = report_file.visible_report(
            cast(Any, None), cast(Any, None), cast(Any, SimpleNamespace(body=body))
        )
    shown["file"] = as_html(exported, title="twin", hidden=hidden)
    return json.dumps([alike, shown], indent=1, default=str)


def secret(name: str, value: str, **more: Any) -> Object:
    data = {"password": base64.b64encode(value.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "data": data, **more}


def written(value: str) -> Object:
    """A Secret of which everything but its name, keys and type is as somebody wrote it last."""
    about = {"resourceVersion": value, "labels": {"of": value}, "annotations": {"of": value}, "generation": len(value)}
    return secret("token", value, metadata={"name": "token", **about}, immutable=value == RIGHT)


def config(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def service(name: str, app: str, kind: str = "ClusterIP") -> Object:
    spec: Object = {"selector": {"app": app}, "ports": [{"port": 80}], "type": kind}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def workload(*, secret: str = "", config: str = "", image: str = "example.com/web:1") -> Object:
    sources: list[Object] = [{"secretRef": {"name": secret}}] if secret else []
    sources += [{"configMapRef": {"name": config}}] if config else []
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": image, "envFrom": sources}]}}
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def webhook(name: str, policy: str) -> Object:
    rule = {"apiGroups": ["shop.example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["orders"]}
    hook: Object = {"name": "orders.shop.example.com", "rules": [rule], "sideEffects": "None", "failurePolicy": policy}
    hook |= {"clientConfig": {"url": "https://example.com/x"}, "admissionReviewVersions": ["v1"]}
    kind: Object = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": name}, "webhooks": [hook]}


@dataclass(frozen=True)
class Twin:
    """What ran (`old`) and what is asked for (`new`); `live` are objects that hold something else in the cluster, and
    `looked_up` those that a chart was told of, now and before."""

    old: list[Object]
    new: list[Object]
    live: tuple[Object, ...] = ()
    values: tuple[dict[str, str], dict[str, str]] | None = None
    looked_up: tuple[Object, ...] = ()
    looked_up_before: tuple[Object, ...] = ()


GUESSES = [secret(f"g{number}", RIGHT if number == 7 else f"guess-{number}-wrong") for number in range(12)]
KEPT = {"helm.sh/resource-policy": "keep"}
BIG = {"a": "1", "b": "2", "c": "3", "d": "4"}
# Each with the old or the live value that was guessed, or another one. What is asked for is the same in both.
TWINS: dict[str, Callable[[str], Twin]] = {
    "the live Secret holds the new value": lambda it: Twin(
        [secret("db", "first")], [secret("db", RIGHT)], (secret("db", it),)
    ),
    "the Secret that ran holds the new value": lambda it: Twin([secret("db", it)], [secret("db", RIGHT)]),
    "a Secret comes that holds another value": lambda it: Twin([], [secret("db", it)]),
    "a chart was told of a Secret": lambda it: Twin([], [config("a", x="1")], looked_up=(secret("token", it),)),
    "a chart was told of a Secret that was written since": lambda it: Twin(
        [config("a", x="1")], [config("a", x="2")], looked_up=(written(it),), looked_up_before=(written(RIGHT),)
    ),
    "an immutable Secret is written": lambda it: Twin(
        [secret("db", it, immutable=True)], [secret("db", RIGHT, immutable=True)]
    ),
    "an immutable Secret is to be kept": lambda it: Twin(
        [secret("db", it, immutable=True)],
        [secret("db", RIGHT, immutable=True, metadata={"name": "db", "annotations": KEPT})],
    ),
    "an immutable Secret becomes one that is not": lambda it: Twin(
        [secret("db", it, immutable=True)], [secret("db", RIGHT, immutable=False)]
    ),
    "pods read the Secret and stay": lambda it: Twin(
        [secret("db", it), workload(secret="db")], [secret("db", RIGHT), workload(secret="db")]
    ),
    "other objects change as well": lambda it: Twin(
        [secret("db", it), config("a", x="1"), workload(secret="db")],
        [secret("db", RIGHT), config("a", x="2"), workload(secret="db", image="example.com/web:2")],
    ),
    "somebody added a label to the live Secret": lambda it: Twin(
        [secret("db", RIGHT)],
        [secret("db", RIGHT)],
        (secret("db", RIGHT, metadata={"name": "db", "labels": {"team": it}}),),
    ),
    "somebody added a key to the live Secret": lambda it: Twin(
        [secret("db", RIGHT)], [secret("db", RIGHT)], (secret("db", RIGHT, stringData={it: "x"}),)
    ),
    "a Secret goes and twelve guesses come": lambda it: Twin([secret("db", it)], GUESSES),
    "a Secret goes and one that its reader follows comes": lambda it: Twin(
        [secret("db", it), workload(secret="db")], [secret("store", RIGHT), workload(secret="store")]
    ),
    "a Secret is renamed by its hash": lambda it: Twin(
        [secret(f"db-{OLD_HASH}", it), workload(secret=f"db-{OLD_HASH}")],
        [secret(f"db-{NEW_HASH}", RIGHT), workload(secret=f"db-{NEW_HASH}")],
    ),
    "a ConfigMap goes and one that holds nearly the same comes": lambda it: Twin(
        [config("settings", **BIG, e=RIGHT, **({} if it == RIGHT else {"f": it, "g": it}))],
        [config("others", **BIG, e=RIGHT)],
    ),
    "a ConfigMap goes and one that its reader follows comes": lambda it: Twin(
        [config("settings", **{it: "x"}), workload(config="settings")],
        [config("others", **{RIGHT: "x"}), workload(config="others")],
    ),
    "a Service is renamed by its hash": lambda it: Twin(
        [service(f"web-{OLD_HASH}", it, "LoadBalancer" if it == RIGHT else "ClusterIP"), workload()],
        [service(f"web-{NEW_HASH}", RIGHT), workload()],
    ),
    "a Service goes and an equal one comes": lambda it: Twin(
        [service("web", it), workload()], [service("shop", RIGHT), workload()]
    ),
    "values of the chart are tried, and the beginning of one": lambda it: Twin(
        [secret("db", it)],
        [secret("copy", f"password: {it}")],
        values=(
            {"size": "1", "pin": json.dumps("4711")},
            {"size": "2", "pin": json.dumps(RIGHT), "g": json.dumps(RIGHT), "h": json.dumps(f"password: {RIGHT[:1]}")},
        ),
    ),
    "a value of the chart reaches a Secret hashed": lambda it: Twin(
        [secret("db", "first")],
        [secret("db", hashlib.sha256(it.encode()).hexdigest())],
        values=({"pin": json.dumps("4711")}, {"pin": json.dumps(it)}),
    ),
    "a webhook configuration goes and an equal one comes": lambda it: Twin(
        [webhook("first", "Fail" if it == RIGHT else "Ignore")], [webhook("second", "Fail")]
    ),
}


@pytest.fixture
def place(sandbox: Endpoint, monkeypatch: pytest.MonkeyPatch) -> tuple[ClusterClient, str]:
    """Where twins are looked at one after the other: an object that is made anew there has the uid that it had."""
    known: dict[str, uuid.UUID] = defaultdict(uuid.uuid4)
    monkeypatch.setattr(writes, "uuid", SimpleNamespace(uuid4=lambda: known["uid"]))
    api, name = ClusterClient.connect(sandbox.kubeconfig("admin")), f"twins-{uuid.uuid4().hex[:8]}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return api, name


def _placed(objects: Iterable[Object], name: str) -> list[Object]:
    """In the namespace of the test; what has none gets a name of the test's own."""
    made = []
    for one in objects:
        is_wide = one["kind"].endswith("WebhookConfiguration")
        about = {"name": f"{name}-{one['metadata']['name']}"} if is_wide else {"namespace": name}
        made.append({**one, "metadata": {**one["metadata"], **about}})
    return made


def _content(objects: list[Object], values: dict[str, str] | None, told: tuple[Object, ...] = ()) -> Content:
    by_ref = {ObjectRef.of(one): one for one in told}
    _, lookups = filled((), looked_up(by_ref, by_ref.get), YamlMeter(YamlLimits()))
    return replace(content_with(*objects), values=values, lookups=lookups)


def looked(api: ClusterClient, name: str, twin: Twin) -> tuple[Report, Report]:
    """The report of a request, and that of a comparison with what runs."""
    old, new, live = (_placed(each, name) for each in (twin.old, twin.new, twin.live))
    for one in (*old, *live):
        if one.get("immutable") and api.get(ObjectRef.of(one)):
            api.delete(ObjectRef.of(one))
    for one in (*old, *live):
        api.apply(one, field_manager="pratique" if one in old else "somebody", force=True)
    inventory = {}
    for one in old:
        found = api.get(ObjectRef.of(one))
        assert found is not None
        inventory[ObjectRef.of(one).identity] = found["metadata"]["uid"]
    before, after = twin.values or (None, None)
    contents = _content(new, after, twin.looked_up), _content(old, before, twin.looked_up_before)
    request = pipeline.look(api, contents[0], previous=contents[1], inventory=inventory)
    return request, pipeline.look_offline(*contents, is_for_reader=False)


@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
def test_S38_who_may_not_get_an_object_is_told_the_same_whether_it_holds_the_guessed_value(
    place: tuple[ClusterClient, str], twin: Callable[[str], Twin]
) -> None:
    right, wrong = (looked(*place, twin(value)) for value in (RIGHT, WRONG))
    for one, other in zip(right, wrong, strict=True):
        assert told(one, BLIND) == told(other, BLIND)
        if all(obj["kind"] == "Secret" for obj in twin(RIGHT).old):
            assert told(one, NO_SECRETS) == told(other, NO_SECRETS)


@pytest.mark.parametrize(
    ("twin", "words"),
    [
        ("the Secret that ran holds the new value", "Changes data.password of Secret"),
        ("pods read the Secret and stay", "its pods may go on with the old values"),
        ("an immutable Secret is written", "Deletes Secret {}/db and creates it again, because data.password"),
        ("a Service goes and an equal one comes", "Creates Service {}/shop, in place of web"),
        ("a Service is renamed by its hash", "its address or port outside of the cluster may change"),
    ],
)
def test_S38_who_may_get_the_object_reads_what_was_kept_from_others(
    place: tuple[ClusterClient, str], twin: str, words: str
) -> None:
    is_equal = twin.startswith("a Service")
    report, _ = looked(*place, TWINS[twin](RIGHT if is_equal else WRONG))
    body = json.loads(json.dumps(to_record(report)))
    seen = ReportSight(cast(Sight, SEEING), body).private(body)
    assert any(words.format(place[1]) in one["serverWords"] for one in seen)
    assert words.format(place[1]) not in told(report, BLIND)
    assert private_to_judge(body) == []


def test_S09_values_of_a_chart_are_for_who_may_get_the_deployment_and_its_secrets(
    place: tuple[ClusterClient, str],
) -> None:
    no_deployments = Everybody(lambda ref: ref.kind != "BundleDeployment")
    for report in looked(*place, TWINS["a value of the chart reaches a Secret hashed"](RIGHT)):
        assert not any(RIGHT in told(report, one) for one in (BLIND, NO_SECRETS, no_deployments))
        assert RIGHT in told(report, SEEING)
