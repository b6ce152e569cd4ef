"""APIs that are not served or go, and what the server would refuse of its own kinds."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.builtin import Judgement, WhyUnknown
from provisioner.errors import InvalidObject
from provisioner.pipeline import look_offline
from provisioner.review.base.facts import ClusterSurroundings, Listed, Listing, ServedKind
from provisioner.review.checks.objects import deletions, kubernetes_apis, objects
from provisioner.review.frame import listings, report
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, content_with, facts, judged_by, planned

ORDER = an_object("shop.example.com/v1", "Order", "one", "shop")
CRD = an_object(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "orders.shop.example.com",
    spec={
        "group": "shop.example.com",
        "names": {"kind": "Order", "plural": "orders"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
)
SERVED = (
    ServedKind("shop.example.com", "v1", "Order", "orders"),
    ServedKind("apiextensions.k8s.io", "v1", CRD["kind"], "crds"),
)


def autoscaler_of(api_version: str) -> dict[str, Any]:
    target = {"apiVersion": api_version, "kind": "Deployment", "name": "a"}
    return an_object("autoscaling/v2", "HorizontalPodAutoscaler", "a", "shop", spec={"scaleTargetRef": target})


def find_apis(*objects: dict[str, Any], **around: Any) -> list[Finding]:
    actions = [planned(one, Action.CREATE) for one in objects]
    return judged_by(facts(*actions, around=ClusterSurroundings(**around)), [kubernetes_apis.APIS_CHECK])


def severities(found: list[Finding], rule: str) -> list[Severity]:
    return [finding.severity for finding in found if finding.rule == rule]


@pytest.mark.parametrize(
    ("objects", "around", "expected"),
    [
        pytest.param([ORDER], {"kinds": SERVED}, [], id="served"),
        pytest.param([ORDER], {"kinds": SERVED[1:]}, [Severity.BREAKING], id="not served"),
        pytest.param([CRD, ORDER], {"kinds": SERVED[1:]}, [], id="brought by the bundle"),
        pytest.param(
            [ORDER],
            {"kinds": SERVED[1:], "unanswered": frozenset({"shop.example.com"})},
            [Severity.UNKNOWN],
            id="its server does not answer",
        ),
        pytest.param([ORDER], {"kinds": None}, [], id="discovery is not known"),
    ],
)
def test_discovery_is_the_truth_about_kinds(
    objects: list[dict[str, Any]], around: dict[str, Any], expected: list[Severity]
) -> None:
    assert severities(find_apis(*objects, **around), "API-01") == expected


@pytest.mark.parametrize(
    ("api", "words"),
    [
        pytest.param(
            ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"),
            "CRD one: the cluster serves no CustomResourceDefinition in apiextensions.k8s.io/v1beta1, which Kubernetes no "
            "longer serves as of 1.22; it serves this kind in apiextensions.k8s.io/v1",
            id="removed",
        ),
        pytest.param(
            ("apiextensions.k8s.io/v9", "CustomResourceDefinition"),
            "CRD one: the cluster serves no CustomResourceDefinition in apiextensions.k8s.io/v9, an API of Kubernetes "
            "itself that this release does not have, or that is not enabled; it serves this kind in "
            "apiextensions.k8s.io/v1",
            id="not in this release",
        ),
        pytest.param(
            ("shop.example.com/v9", "Order"),
            "Order.shop.example.com shop/one: the cluster serves no Order in shop.example.com/v9; it serves this kind in "
            "shop.example.com/v1",
            id="in another version",
        ),
        pytest.param(
            ("shop.example.com/v1", "Basket"),
            "Basket.shop.example.com shop/one: the cluster serves no Basket in shop.example.com/v1, and the bundle brings "
            "none",
            id="not defined",
        ),
    ],
)
def test_why_a_kind_is_not_served_is_said(api: tuple[str, str], words: str) -> None:
    obj = an_object(*api, "one", "" if api[1].startswith("Custom") else "shop")
    (found,) = (finding for finding in find_apis(obj, kinds=SERVED, version="v1.36.3") if finding.rule == "API-01")
    assert found.message == words


@pytest.mark.parametrize(
    ("obj", "version", "rule"),
    [
        pytest.param(("policy/v1beta1", "PodSecurityPolicy"), "v1.24.3", "API-02", id="gone in the next version"),
        pytest.param(("policy/v1beta1", "PodSecurityPolicy"), "v1.36.0", "API-02", id="gone long ago"),
        pytest.param(("policy/v1beta1", "PodSecurityPolicy"), "", "API-02", id="no cluster to ask"),
        pytest.param(("batch/v1beta1", "CronJob"), "v1.21.0", "API-03", id="gone later"),
        pytest.param(("resource.k8s.io/v1alpha4", "ResourceClaim"), "v1.36.0", "API-04", id="alpha"),
        pytest.param(("apps/v1", "Deployment"), "v1.36.0", None, id="stable"),
        pytest.param(("shop.example.com/v1alpha1", "Order"), "v1.36.0", None, id="somebody else's alpha"),
        pytest.param(("storage.k8s.io/v1beta1", "CSIStorageCapacity"), "v1.26.0", "API-02", id="one kind of a version"),
    ],
)
def test_old_and_unstable_apis_are_said(obj: tuple[str, str], version: str, rule: str | None) -> None:
    found = find_apis(an_object(*obj, "a", "shop"), version=version)
    assert [finding.rule for finding in found if finding.rule.startswith("API")] == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("obj", "count"),
    [
        pytest.param(autoscaler_of("extensions/v1beta1"), 1, id="an autoscaler's target"),
        pytest.param(autoscaler_of("apps/v1"), 0, id="a target of today"),
        pytest.param(
            an_object(
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                "a",
                webhooks=[
                    {"matchPolicy": "Exact", "rules": [{"apiGroups": ["extensions"], "apiVersions": ["v1beta1"]}]}
                ],
            ),
            1,
            id="a webhook's rule",
        ),
        pytest.param(
            an_object(
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                "a",
                webhooks=[{"rules": [{"apiGroups": ["extensions"], "apiVersions": ["v1beta1"]}]}],
            ),
            0,
            id="a rule that takes equivalent requests",
        ),
    ],
)
def test_old_apis_inside_objects_are_said(obj: dict[str, Any], count: int) -> None:
    assert len(severities(find_apis(obj), "API-05")) == count


# Deletions, counted

OBJECTS = Listing("shop.example.com", "v1", "Order", metadata_only=True)


def deletion(listed: Listed, obj: dict[str, Any] = CRD, **rest: Any) -> Finding:
    live = {ObjectRef.of(obj).identity: obj}
    given = facts(planned(obj, Action.DELETE, before=obj), live=live, **rest)
    lists = dict.fromkeys(listings(given, [deletions.DELETIONS_CHECK]), listed)
    assert lists
    given = facts(planned(obj, Action.DELETE, before=obj), live=live, around=ClusterSurroundings(lists=lists))
    found = judged_by(given, [objects.OBJECTS_CHECK, deletions.DELETIONS_CHECK])
    return next(finding for finding in found if finding.rule == "DEL-01")


@pytest.mark.parametrize(
    ("listed", "severity", "words"),
    [
        pytest.param(Listed((ORDER, ORDER), 2), Severity.BREAKING, "2 Order", id="some"),
        pytest.param(Listed((ORDER,), 9000), Severity.BREAKING, "9,000 Order", id="more than were read"),
        pytest.param(Listed((), 0), Severity.DANGEROUS, "nothing", id="none"),
        pytest.param(Listed((), None, problem="forbidden"), Severity.BREAKING, "not counted: Order", id="not allowed"),
    ],
)
def test_a_deleted_crd_says_how_many_objects_go_with_it(listed: Listed, severity: Severity, words: str) -> None:
    found = deletion(listed)
    assert found.severity is severity
    assert words in found.message


def test_the_objects_that_go_are_counted_by_namespace() -> None:
    other = an_object("shop.example.com/v1", "Order", "two", "other")
    assert deletion(Listed((ORDER, other, other), 3)).evidence["namespaces"] == {"other": 2, "shop": 1}


def test_a_deleted_namespace_says_what_is_in_it_and_stays_breaking() -> None:
    found = deletion(Listed((), 0), an_object("v1", "Namespace", "shop"))
    assert found.severity is Severity.BREAKING
    assert found.evidence["counts"]["PersistentVolumeClaim"] == 0


REFUSING = {"IMM-01", "OBJ-07", "OBJ-10", "SEC-03", "RB-46"}


def find_refusals(*actions: Any, **rest: Any) -> list[Finding]:
    return judged_by(facts(*actions, **rest), [objects.OBJECTS_CHECK, kubernetes_apis.BUILTIN_CHECK])


def scaler(least: int) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"minReplicas": least, "maxReplicas": 2, "scaleTargetRef": target}
    return an_object("autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop", spec=spec)


def claim(size: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return an_object("v1", "PersistentVolumeClaim", "data", "shop", spec=spec)


def of(rule: str, found: list[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.rule == rule]


def test_what_the_server_took_by_dry_run_is_not_judged_again() -> None:
    assert of("OBJ-10", find_refusals(planned(scaler(5), Action.CREATE, is_proved=True))) == []


def test_what_the_server_refused_by_dry_run_is_its_word_alone() -> None:
    action = planned(
        scaler(5), Action.CREATE, is_proved=False, problem="it is refused", problem_code=InvalidObject.code
    )
    assert [finding.rule for finding in find_refusals(action)] == ["PRE-09"]


def test_with_a_cluster_what_could_not_be_tried_is_judged_by_rules() -> None:
    (found,) = of("OBJ-10", find_refusals(planned(scaler(5), Action.CREATE, is_proved=False)))
    assert found.severity is Severity.BREAKING
    assert "must not be below minReplicas" in found.message


def test_with_a_cluster_its_own_schema_speaks_of_fields() -> None:
    misspelt = {**scaler(1), "specs": {}}
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    around = ClusterSurroundings(schemas={("autoscaling", "v2", "HorizontalPodAutoscaler"): schema})
    assert len(of("OBJ-07", find_refusals(planned(misspelt, Action.CREATE, is_proved=False), around=around))) == 1


def test_the_version_of_the_cluster_decides() -> None:
    pod = an_object(
        "v1", "Pod", "web", "shop", spec={"hostnameOverride": "a.b", "containers": [{"name": "a", "image": "a"}]}
    )
    old, new = (
        find_refusals(planned(pod, Action.CREATE, is_proved=False), around=ClusterSurroundings(version=version))
        for version in ("v1.33.1", "v1.36.3")
    )
    assert [finding.path for finding in of("OBJ-07", old)] == [("spec", "hostnameOverride")]
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
    assert [finding.rule for finding in found if finding.rule in REFUSING] == ["SEC-03"]


def test_no_value_of_a_secret_is_told() -> None:
    secret = an_object("v1", "Secret", "a", "shop", data={"a": "hunter2!", "b c": "aHVudGVyMg=="}, stringData={"d": 7})
    found = look_offline(content_with(secret), None).findings
    assert {finding.rule for finding in found} >= {"OBJ-07"}
    told = [f"{finding.message} {finding.evidence}" for finding in found]
    assert not [one for one in told if "hunter2" in one or "aHVudGVyMg" in one]


def test_a_binding_that_leaves_out_the_group_of_its_role_names_the_same_role() -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
    old = an_object("rbac.authorization.k8s.io/v1", "RoleBinding", "a", "shop", roleRef=role)
    new = {**old, "roleRef": {"kind": "Role", "name": "a"}}
    assert [
        finding.rule
        for finding in look_offline(content_with(new), content_with(old)).findings
        if finding.rule in REFUSING
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
    assert [finding for finding in found if finding.rule == "CRASHED"] == []
    assert [finding for finding in found if finding.rule == "WH-06"]


def test_custom_resources_are_left_to_their_own_schemas() -> None:
    order = an_object("shop.example.com/v1", "Order", "a", "shop", spec={"any": "thing"})
    found = report(
        facts(planned(order, Action.CREATE, is_proved=False), is_offline=True),
        [objects.OBJECTS_CHECK, kubernetes_apis.BUILTIN_CHECK],
    )
    assert sorted(finding.rule for finding in found.findings) == ["OBJ-01", "UNCLAIMED"]


def test_true_in_the_place_of_1_is_a_change() -> None:
    old, new = ({**scaler(1), "spec": {**scaler(1)["spec"], "minReplicas": one}} for one in (1, True))
    found = look_offline(content_with(new), content_with(old)).findings
    assert [finding.path for finding in found if finding.rule == "OBJ-07"] == [("spec", "minReplicas")]
