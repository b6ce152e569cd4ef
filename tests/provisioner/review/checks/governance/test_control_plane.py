"""Objects that the control plane goes by, and defaults of the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Listed
from provisioner.review.checks.governance import control_plane
from provisioner.review.checks.governance.control_plane import WELL_KNOWN
from provisioner.review.checks.own import pratique_objects
from provisioner.review.frame import listings, report
from provisioner.review.rules import messages_of
from provisioner.values import Action, Finding, Severity
from tests.support.provisioner.contents import an_object, content_with, facts, findings_of, named, planned


def a_class(api_version: str, kind: str, key: str = "", value: str = "true") -> dict[str, Any]:
    made = an_object(api_version, kind, "fast")
    if key:
        made["metadata"]["annotations"] = {key: value}
    return made


KINDS = {
    "StorageClass": ("storage.k8s.io/v1", "storageclass.kubernetes.io/is-default-class"),
    "IngressClass": ("networking.k8s.io/v1", "ingressclass.kubernetes.io/is-default-class"),
    "VolumeSnapshotClass": ("snapshot.storage.k8s.io/v1", "snapshot.storage.kubernetes.io/is-default-class"),
}
SIDES = [(a_class(api, kind), a_class(api, kind, key)) for kind, (api, key) in KINDS.items()]
PRIORITY = an_object("scheduling.k8s.io/v1", "PriorityClass", "fast")
SIDES += [({**PRIORITY, "value": 5}, {**PRIORITY, "value": 5, "globalDefault": True})]


@pytest.mark.parametrize(("plain", "default"), SIDES, ids=[*KINDS, "PriorityClass"])
def test_a_default_of_the_cluster_is_told_when_it_comes_and_when_it_goes(
    plain: dict[str, Any], default: dict[str, Any]
) -> None:
    told = {
        "becomes": [planned(default, Action.CREATE), planned(default, Action.UPDATE, before=plain)],
        "ends": [planned(plain, Action.UPDATE, before=default), planned(default, Action.DELETE, before=default)],
    }
    for variant, actions in told.items():
        for action in actions:
            (found,) = named(findings_of(control_plane.DEFAULTS_CHECK, action), "SYS-02")
            assert (found.variant, found.severity) == (variant, Severity.DANGEROUS)
    for same in (planned(plain, Action.CREATE), planned(default, Action.UPDATE, before=default)):
        assert not named(findings_of(control_plane.DEFAULTS_CHECK, same), "SYS-02")


@pytest.mark.parametrize(("plain", "default"), SIDES, ids=[*KINDS, "PriorityClass"])
def test_the_default_that_is_there_is_named_unless_the_same_change_ends_it(
    plain: dict[str, Any], default: dict[str, Any]
) -> None:
    action = planned(default, Action.CREATE)
    (listing,) = listings(facts(action), [control_plane.DEFAULTS_CHECK])
    old = {**default, "metadata": {**default["metadata"], "name": "slow"}}
    around = ClusterSurroundings(lists={listing: Listed((old, plain), 2)})
    told = {"slow": [action], "": [action, planned({**plain, "metadata": {"name": "slow"}}, Action.UPDATE, before=old)]}
    for name, actions in told.items():
        found = report(facts(*actions, around=around), [control_plane.DEFAULTS_CHECK]).findings
        (message,) = [finding.message for finding in found if finding.variant == "becomes"]
        assert (f" beside {default['kind']} {name}:" in message) is bool(name)


def test_an_annotation_that_says_no_is_none() -> None:
    api, key = KINDS["StorageClass"]
    said_no = a_class(api, "StorageClass", key, "false")
    assert not findings_of(
        control_plane.DEFAULTS_CHECK, planned(said_no, Action.UPDATE, before=a_class(api, "StorageClass"))
    )


def found_by(obj: dict[str, Any], action: Action = Action.CREATE, **rest: Any) -> list[Finding]:
    return named(findings_of(control_plane.WELL_KNOWN_CHECK, planned(obj, action, **rest)), "SYS-01")


@pytest.mark.parametrize(
    ("what", "severity"),
    [
        ("coordination.k8s.io/v1 Lease kube-scheduler kube-system", "critical"),
        ("coordination.k8s.io/v1 Lease kube-controller-manager kube-system", "critical"),
        ("coordination.k8s.io/v1 Lease apiserver-abc kube-system", "critical"),
        ("coordination.k8s.io/v1alpha2 LeaseCandidate kube-scheduler kube-system", "critical"),
        ("coordination.k8s.io/v1 Lease node-1 kube-node-lease", "critical"),
        ("coordination.k8s.io/v1 Lease kube-scheduler shop", ""),
        ("coordination.k8s.io/v1 Lease my-operator kube-system", ""),
        ("v1 ConfigMap cluster-info kube-public", "critical"),
        ("v1 ConfigMap kubelet-config-1.30 kube-system", "dangerous"),
        ("v1 ConfigMap kube-root-ca.crt shop", "dangerous"),
        ("v1 ConfigMap aws-auth shop", ""),
        ("v1 Namespace kube-node-lease", "dangerous"),
        ("v1 Namespace default", "dangerous"),
        ("v1 Namespace shop", ""),
        ("rbac.authorization.k8s.io/v1 ClusterRole system:node", "dangerous"),
        ("rbac.authorization.k8s.io/v1 ClusterRole view", "dangerous"),
        ("rbac.authorization.k8s.io/v1 ClusterRoleBinding cluster-admin", "critical"),
        ("rbac.authorization.k8s.io/v1 ClusterRoleBinding system:metrics-server", "notable"),
        ("rbac.authorization.k8s.io/v1 Role kubeadm:bootstrap-signer-clusterinfo kube-public", "dangerous"),
        ("rbac.authorization.k8s.io/v1 ClusterRole shop-view", ""),
        ("scheduling.k8s.io/v1 PriorityClass system-node-critical", "dangerous"),
        ("flowcontrol.apiserver.k8s.io/v1 FlowSchema exempt", "dangerous"),
        ("networking.k8s.io/v1 ServiceCIDR kubernetes", "dangerous"),
        ("v1 Pod kube-apiserver-node-1 kube-system", "dangerous"),
        ("apps/v1 DaemonSet kube-proxy kube-system", "dangerous"),
    ],
)
def test_an_object_of_the_control_plane_is_told_by_its_name(what: str, severity: str) -> None:
    assert [str(finding.severity) for finding in found_by(an_object(*what.split()))] == ([severity] if severity else [])


LEASE = an_object("coordination.k8s.io/v1", "Lease", "kube-scheduler", "kube-system")


@pytest.mark.parametrize(
    ("action", "verb"),
    [
        (Action.CREATE, "Creates"),
        (Action.UPDATE, "Changes"),
        (Action.REPLACE, "Replaces"),
        (Action.ADOPT, "Takes over"),
        (Action.DELETE, "Deletes"),
        (Action.NONE, ""),
        (Action.SKIP, ""),
    ],
)
def test_whatever_happens_to_it_is_said(action: Action, verb: str) -> None:
    found = found_by(LEASE, action, before=LEASE)
    assert [finding.message.startswith(f"{verb} Lease kube-system/kube-scheduler, by which") for finding in found] == [
        True
    ] * bool(verb)


AWS_AUTH = an_object("v1", "ConfigMap", "aws-auth", "kube-system", data={"mapRoles": "[]"})


def test_what_is_said_of_an_object_as_one_of_pratiques_ground_is_not_said_twice() -> None:
    """Where the bundle says something else of it, that is new; where only the cluster does, it is said what happens."""
    checks = [pratique_objects.CHECK, control_plane.WELL_KNOWN_CHECK]

    def rules(action: Action, **rest: Any) -> list[tuple[str, bool]]:
        found = report(facts(planned(AWS_AUTH, action, **rest), content=content_with(AWS_AUTH)), checks).findings
        return [(finding.rule, finding.is_new) for finding in found if finding.rule in {"SYS-01", "OWN-PRATIQUE-02"}]

    assert rules(Action.CREATE) == [("OWN-PRATIQUE-02", True)]
    before = {**AWS_AUTH, "data": {"mapRoles": "[a]"}}
    action = planned(AWS_AUTH, Action.UPDATE, before=before)
    found = report(facts(action, previous=content_with(before)), checks).findings
    assert [(finding.rule, finding.is_new) for finding in found if str(finding.severity) == "critical"] == [
        ("OWN-PRATIQUE-02", True)
    ]
    found = report(facts(action, previous=content_with(AWS_AUTH)), checks).findings
    assert sorted((finding.rule, finding.is_new) for finding in found if str(finding.severity) == "critical") == [
        ("OWN-PRATIQUE-02", False),
        ("SYS-01", True),
    ]


def test_a_slice_counts_as_the_service_that_its_label_names() -> None:
    made = an_object("discovery.k8s.io/v1", "EndpointSlice", "mine", "default")
    made["metadata"]["labels"] = {"kubernetes.io/service-name": "kubernetes"}
    wished = {**made, "endpoints": []}
    action = planned(wished, Action.UPDATE, before=made)
    (one,) = named(findings_of(control_plane.WELL_KNOWN_CHECK, action, previous=content_with(wished)), "SYS-01")
    assert one.message.endswith("by which every pod finds the API server")


def test_each_entry_of_the_table_says_why() -> None:
    texts = [messages_of("SYS-01").render(f"why.{one.why}", {}) for one in WELL_KNOWN]
    assert all(text.split()[0] in {"which", "whose", "by", "in", "from", "through"} for text in texts)
    assert all(one.names and one.kinds for one in WELL_KNOWN)
