"""Built-in kinds that no server was asked about: what is said, how often, and what is left to others."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.builtin import Judgement, WhyUnknown
from provisioner.errors import InvalidObject
from provisioner.pipeline import look_offline
from provisioner.review.base.facts import ClusterSurroundings
from provisioner.review.checks.objects import kubernetes_apis, objects
from provisioner.review.frame import report
from provisioner.values import Action, Finding, Severity
from tests.support.provisioner.contents import an_object, content_with, facts, judged_by, planned

REFUSING = {"IMM-01", "OBJ-07", "OBJ-10", "SEC-03", "RB-46"}


def found_by(*actions: Any, **rest: Any) -> list[Finding]:
    return judged_by(facts(*actions, **rest), [objects.OBJECTS_CHECK, kubernetes_apis.BUILTIN_CHECK])


def scaler(least: int) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"minReplicas": least, "maxReplicas": 2, "scaleTargetRef": target}
    return an_object("autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop", spec=spec)


def claim(size: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return an_object("v1", "PersistentVolumeClaim", "data", "shop", spec=spec)


def of(rule: str, found: list[Finding]) -> list[Finding]:
    return [one for one in found if one.rule == rule]


def test_what_the_server_took_by_dry_run_is_not_judged_again() -> None:
    assert of("OBJ-10", found_by(planned(scaler(5), Action.CREATE, is_proved=True))) == []


def test_what_the_server_refused_by_dry_run_is_its_word_alone() -> None:
    action = planned(
        scaler(5), Action.CREATE, is_proved=False, problem="it is refused", problem_code=InvalidObject.code
    )
    assert [one.rule for one in found_by(action)] == ["PRE-09"]


def test_with_a_cluster_what_could_not_be_tried_is_judged_by_rules() -> None:
    (found,) = of("OBJ-10", found_by(planned(scaler(5), Action.CREATE, is_proved=False)))
    assert found.severity is Severity.BREAKING
    assert "must not be below minReplicas" in found.message


def test_with_a_cluster_its_own_schema_speaks_of_fields() -> None:
    misspelt = {**scaler(1), "specs": {}}
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    around = ClusterSurroundings(schemas={("autoscaling", "v2", "HorizontalPodAutoscaler"): schema})
    assert len(of("OBJ-07", found_by(planned(misspelt, Action.CREATE, is_proved=False), around=around))) == 1


def test_the_version_of_the_cluster_decides() -> None:
    pod = an_object(
        "v1", "Pod", "web", "shop", spec={"hostnameOverride": "a.b", "containers": [{"name": "a", "image": "a"}]}
    )
    old, new = (
        found_by(planned(pod, Action.CREATE, is_proved=False), around=ClusterSurroundings(version=version))
        for version in ("v1.33.1", "v1.36.3")
    )
    assert [one.path for one in of("OBJ-07", old)] == [("spec", "hostnameOverride")]
    assert [one for one in new if one.rule in ("OBJ-07", "OBJ-11")] == []


def test_a_claim_that_grows_is_unknown_and_one_that_shrinks_is_refused() -> None:
    grows = look_offline(content_with(claim("2Gi")), content_with(claim("1Gi"))).findings
    assert [one.severity for one in grows if one.rule == "OBJ-04"] == [Severity.UNKNOWN]
    shrinks = look_offline(content_with(claim("1Gi")), content_with(claim("2Gi"))).findings
    assert [one.rule for one in shrinks if one.rule in {*REFUSING, "OBJ-04"}] == ["IMM-01"]


@pytest.mark.parametrize("unknown", WhyUnknown)
def test_what_cannot_be_judged_is_said_once_of_all_objects(
    unknown: WhyUnknown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_apis, "judge", lambda *_, **__: Judgement(unknown=(unknown,)))
    given = facts(*(planned(one, Action.CREATE, is_proved=False) for one in (claim("1Gi"), scaler(1))), is_offline=True)
    (found,) = judged_by(given, [kubernetes_apis.BUILTIN_CHECK])
    assert (found.rule, found.severity, found.variant) == ("OBJ-04", Severity.UNKNOWN, unknown)
    assert found.message.startswith("Whether the API server accepts 2 objects is not known before apply: ")


def test_settings_that_never_change_are_said_once() -> None:
    old, new = (an_object("v1", "ConfigMap", "a", "shop", immutable=True, data={"a": one}) for one in "bc")
    found = look_offline(content_with(new), content_with(old)).findings
    assert [one.rule for one in found if one.rule in REFUSING] == ["SEC-03"]


def test_no_value_of_a_secret_is_told() -> None:
    secret = an_object("v1", "Secret", "a", "shop", data={"a": "hunter2!", "b c": "aHVudGVyMg=="}, stringData={"d": 7})
    found = look_offline(content_with(secret), None).findings
    assert {one.rule for one in found} >= {"OBJ-07"}
    told = [f"{one.message} {one.evidence}" for one in found]
    assert not [one for one in told if "hunter2" in one or "aHVudGVyMg" in one]


def test_a_binding_that_leaves_out_the_group_of_its_role_names_the_same_role() -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
    old = an_object("rbac.authorization.k8s.io/v1", "RoleBinding", "a", "shop", roleRef=role)
    new = {**old, "roleRef": {"kind": "Role", "name": "a"}}
    assert [
        one.rule for one in look_offline(content_with(new), content_with(old)).findings if one.rule in REFUSING
    ] == []


def test_a_webhook_of_any_shape_does_not_crash_the_check() -> None:
    hook = {
        "name": "a.b.c",
        "sideEffects": ["None"],
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://a.b"},
    }
    obj = an_object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "a", webhooks=[hook])
    found = look_offline(content_with(obj), None).findings
    assert [one for one in found if one.rule == "CRASHED"] == []
    assert [one for one in found if one.rule == "WH-06"]


def test_custom_resources_are_left_to_their_own_schemas() -> None:
    order = an_object("shop.example.com/v1", "Order", "a", "shop", spec={"any": "thing"})
    found = report(
        facts(planned(order, Action.CREATE, is_proved=False), is_offline=True),
        [objects.OBJECTS_CHECK, kubernetes_apis.BUILTIN_CHECK],
    )
    assert sorted(one.rule for one in found.findings) == ["OBJ-01", "UNCLAIMED"]


def test_true_in_the_place_of_1_is_a_change() -> None:
    old, new = ({**scaler(1), "spec": {**scaler(1)["spec"], "minReplicas": one}} for one in (1, True))
    found = look_offline(content_with(new), content_with(old)).findings
    assert [one.path for one in found if one.rule == "OBJ-07"] == [("spec", "minReplicas")]
