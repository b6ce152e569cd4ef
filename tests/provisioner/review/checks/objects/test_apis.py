"""Which APIs a bundle speaks: what this cluster serves, and what Kubernetes takes away."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Listed, Listing, ServedKind
from provisioner.review.checks.objects import deletions, kubernetes_apis, objects
from provisioner.review.frame import listings
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, facts, judged_by, planned

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


def found_by(*objects: dict[str, Any], **around: Any) -> list[Finding]:
    actions = [planned(one, Action.CREATE) for one in objects]
    return judged_by(facts(*actions, around=ClusterSurroundings(**around)), [kubernetes_apis.APIS_CHECK])


def severities(found: list[Finding], rule: str) -> list[Severity]:
    return [one.severity for one in found if one.rule == rule]


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
    assert severities(found_by(*objects, **around), "API-01") == expected


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
    (found,) = (one for one in found_by(obj, kinds=SERVED, version="v1.36.3") if one.rule == "API-01")
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
    found = found_by(an_object(*obj, "a", "shop"), version=version)
    assert [one.rule for one in found if one.rule.startswith("API")] == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("obj", "count"),
    [
        pytest.param(
            autoscaler_of("extensions/v1beta1"),
            1,
            id="an autoscaler's target",
        ),
        pytest.param(
            autoscaler_of("apps/v1"),
            0,
            id="a target of today",
        ),
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
    assert len(severities(found_by(obj), "API-05")) == count


# Deletions, counted

OBJECTS = Listing("shop.example.com", "v1", "Order", metadata_only=True)


def deletion(listed: Listed, obj: dict[str, Any] = CRD, **rest: Any) -> Finding:
    live = {ObjectRef.of(obj).identity: obj}
    given = facts(planned(obj, Action.DELETE, before=obj), live=live, **rest)
    lists = dict.fromkeys(listings(given, [deletions.DELETIONS_CHECK]), listed)
    assert lists
    given = facts(planned(obj, Action.DELETE, before=obj), live=live, around=ClusterSurroundings(lists=lists))
    found = judged_by(given, [objects.OBJECTS_CHECK, deletions.DELETIONS_CHECK])
    return next(one for one in found if one.rule == "DEL-01")


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
