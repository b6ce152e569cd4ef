"""The demo's rights: who approves reads everything that a report is made of, and no Secret."""

from __future__ import annotations

import pytest

from approvals.management.demo.seeds import BERTHS, cluster_objects
from provisioner import rbac
from provisioner.rbac import RbacObjects, RbacSubject
from provisioner.values import AccessRequest, ObjectRef

APPROVERS, OTHERS = RbacSubject("Group", "platform"), RbacSubject("Group", "developers")


def may(subject: RbacSubject, verb: str, group: str, resource: str) -> bool:
    rules = rbac.effective_rules(subject.identity, RbacObjects.of(cluster_objects()))
    return rbac.allows_in(rules, AccessRequest(verb, group, resource))


@pytest.mark.parametrize("verb", ["get", "list"])
def test_the_approver_of_the_demo_may_read_its_berths(verb: str) -> None:
    assert {ObjectRef.of(one).kind for one in BERTHS} == {"Berth"}
    assert may(APPROVERS, verb, "harbour.example.com", "berths")
    assert not may(OTHERS, verb, "harbour.example.com", "berths")


@pytest.mark.parametrize(
    ("group", "resource"),
    [
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("apiregistration.k8s.io", "apiservices"),
        ("storage.k8s.io", "storageclasses"),
        ("", "nodes"),
    ],
)
def test_the_approver_of_the_demo_may_read_what_stands_around_a_change(group: str, resource: str) -> None:
    assert may(APPROVERS, "get", group, resource)
    assert not may(OTHERS, "get", group, resource)


def test_nobody_of_the_demo_is_given_secrets_by_it() -> None:
    assert not may(APPROVERS, "get", "", "secrets")
