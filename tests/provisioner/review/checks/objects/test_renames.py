"""A deletion and a creation that are one rename, and what a rename never hides."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.values import Report, Severity
from tests.support.provisioner.cases import FOLDER, report_of
from tests.support.provisioner.contents import content_with

OLD_HASH, NEW_HASH = "settings-2hg4f5k6t7", "settings-9mbc8d7f6g"


def named(kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, **rest}


def config(name: str, **data: str) -> dict[str, Any]:
    return named("ConfigMap", name, data=data)


def service(name: str, **spec: Any) -> dict[str, Any]:
    return named("Service", name, spec={"ports": [{"port": 443}], "selector": {"app": "web"}, **spec})


def webhooks(name: str, **more: Any) -> dict[str, Any]:
    client = {"caBundle": "Q0E=", "service": {"name": "web", "namespace": "shop"}}
    rule = {"apiGroups": ["shop.example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["orders"]}
    hook = {"name": "orders.shop.example.com", "clientConfig": client, "rules": [rule], "sideEffects": "None", **more}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{"admissionReviewVersions": ["v1"], **hook}],
    }


def pod(**spec: Any) -> dict[str, Any]:
    return named("Pod", "web", spec={"containers": [{"name": "web", "image": "example.com/web:v1", **spec}]})


def between(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Report:
    return look_offline(content_with(*new), content_with(*old))


def deletion(report: Report) -> tuple[Severity, str]:
    (found,) = [finding for finding in report.findings if finding.rule == "DEL-01"]
    return found.severity, found.message


def words_of(case: str, rule: str = "DEL-01") -> list[tuple[Severity, str]]:
    return [
        (finding.severity, finding.message) for finding in report_of(FOLDER / case).findings if finding.rule == rule
    ]


def test_a_config_map_renamed_by_its_hash_loses_nothing_where_everything_follows() -> None:
    ((severity, words),) = words_of("renamed-config-map-by-hash")
    assert severity is Severity.SAFE
    assert words == (
        f"Renames ConfigMap shop/{OLD_HASH} to {NEW_HASH}; 1 object of the bundle follows: Deployment shop/web"
    )
    ((_, created),) = words_of("renamed-config-map-by-hash", "OBJ-01")
    assert created == f"Creates ConfigMap shop/{NEW_HASH}, in place of {OLD_HASH}"


def test_who_still_reads_the_old_name_is_named_and_the_severity_stays() -> None:
    ((severity, words),) = words_of("renamed-secret-that-somebody-still-reads")
    assert severity is Severity.BREAKING
    assert words.endswith("Deployment shop/other still names access-2hg4f5k6t7")


def test_a_renamed_service_loses_its_name_in_dns_and_its_webhook_follows() -> None:
    found = {words.split(";")[0]: (severity, words) for severity, words in words_of("renamed-service-and-its-webhook")}
    severity, words = found["Renames Service shop/webhook-service to shop-webhook-service"]
    assert severity is Severity.DANGEROUS
    assert "the name webhook-service.shop.svc no longer leads anywhere" in words
    assert "ValidatingWebhookConfiguration shop-validating-webhooks" in words
    severity, words = found["Renames ValidatingWebhookConfiguration shop-webhooks to shop-validating-webhooks"]
    assert severity is Severity.NOTABLE
    assert "its webhooks are the same" in words


def test_what_was_so_under_the_old_name_is_as_before_under_the_new_one() -> None:
    found = between([webhooks("first")], [webhooks("second")])
    standing = [finding for finding in found.findings if finding.rule.startswith("WH-0")]
    assert standing and not any(one.is_new for one in standing)


@pytest.mark.parametrize(
    "weaker",
    [
        pytest.param({"failurePolicy": "Ignore"}, id="lets everything in while it is down"),
        pytest.param({"namespaceSelector": {"matchLabels": {"a": "b"}}}, id="sees less"),
    ],
)
def test_a_configuration_that_is_renamed_and_weakened_stays_dangerous(weaker: dict[str, Any]) -> None:
    found = between([webhooks("first")], [webhooks("second", **weaker)])
    severity, words = deletion(found)
    assert severity is Severity.DANGEROUS
    assert words.endswith("comes in its place, with other webhooks")


def test_two_possible_partners_are_none() -> None:
    ((severity, words),) = words_of("renamed-in-two-ways-is-not-renamed")
    assert (severity, words) == (Severity.DANGEROUS, "Deletes ConfigMap shop/first-settings")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([config("first", a="1")], [config("second", b="2")], id="other content"),
        pytest.param([config("first")], [config("second")], id="no content"),
        pytest.param([config("a-b-2hg4f5k6t7", x="1")], [config("a-c-9mbc8d7f6g", y="1")], id="other stems"),
        pytest.param(
            [config("first", a="1", b="2")],
            [{**config("first", a="1", b="2"), "metadata": {"name": "second", "namespace": "other"}}],
            id="another namespace",
        ),
        pytest.param([config("first", a="1", b="2")], [named("Secret", "second", data={})], id="another kind"),
    ],
)
def test_what_is_no_plain_rename_is_a_deletion(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
    severity, words = deletion(between(old, new))
    assert (severity, words.startswith("Deletes")) == (Severity.DANGEROUS, True)


@pytest.mark.parametrize(
    "reader",
    [
        pytest.param(lambda name: pod(args=[f"--config={name}"]), id="an argument"),
        pytest.param(lambda name: pod(envFrom=[{"configMapRef": {"name": name}}]), id="envFrom"),
        pytest.param(lambda name: config("index", names=f"reads {name} first"), id="the text of another"),
    ],
)
def test_a_reader_that_follows_makes_a_pair_of_two_that_hold_other_values(reader: Any) -> None:
    old, new = config("first-settings", a="1", b="2"), config("second-settings", a="3", b="4")
    found = between([old, reader("first-settings")], [new, reader("second-settings")])
    severity, words = deletion(found)
    assert severity is Severity.NOTABLE
    assert words.startswith("Renames ConfigMap shop/first-settings to second-settings; what else reads it")


def test_a_config_map_that_programs_fill_loses_what_they_wrote() -> None:
    reader = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}

    def reading(name: str) -> dict[str, Any]:
        volume = {"name": "cert", "configMap": {"name": name}}
        return {**reader, "spec": {"containers": [], "volumes": [volume]}}

    old, new = named("ConfigMap", "first-cert"), named("ConfigMap", "second-cert")
    severity, words = deletion(between([old, reading("first-cert")], [new, reading("second-cert")]))
    assert (severity, "what programs wrote into it" in words) == (Severity.DANGEROUS, True)


def test_a_load_balancer_may_change_its_address() -> None:
    old, new = (service(name, type="LoadBalancer", clusterIP=None) for name in ("first-web", "second-web"))
    assert "its address or port outside of the cluster may change" in deletion(between([old], [new]))[1]


def test_no_value_of_a_secret_is_in_what_is_said_of_its_rename() -> None:
    names = (f"a-{OLD_HASH.removeprefix('settings-')}", f"a-{NEW_HASH.removeprefix('settings-')}")
    old, new = (named("Secret", name, stringData={"key": "hunter2", "user": "ada"}) for name in names)
    found = between([old], [new])
    assert deletion(found)[1].startswith("Renames Secret")
    assert "hunter2" not in str(found.findings)


@pytest.mark.parametrize("key", ["hunter2", "another"])
def test_S38_secrets_are_no_pair_because_they_hold_the_same(key: str) -> None:
    old = named("Secret", "first", stringData={"key": "hunter2", "user": "ada"})
    new = named("Secret", "second", stringData={"key": key, "user": "ada"})

    def reading(name: str) -> dict[str, Any]:
        return pod(envFrom=[{"secretRef": {"name": name}}])

    assert deletion(between([old, reading("first")], [new, reading("second")]))[1].startswith("Deletes Secret")


def test_a_thousand_renamed_objects_are_paired_in_time() -> None:
    old = [config(f"settings{number}-2hg4f5k6t7", a=str(number)) for number in range(150)]
    new = [config(f"settings{number}-9mbc8d7f6g", a="x" * 1000) for number in range(150)]
    found = between(old, new)
    assert sum(finding.rule == "DEL-01" for finding in found.findings) >= 1
    assert not [
        finding
        for finding in found.findings
        if finding.rule in ("CRASHED", "DEL-01") and finding.message.startswith("Deletes")
    ]
