"""Classes that become the default of the whole cluster, or are it no longer."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Listed
from provisioner.review.checks.governance import control_plane
from provisioner.review.frame import listings, report
from provisioner.values import Action, Severity
from tests.support.provisioner.contents import an_object, facts, findings_of, named, planned


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
    told = {
        "slow": [action],
        "": [action, planned({**plain, "metadata": {"name": "slow"}}, Action.UPDATE, before=old)],
    }
    for name, actions in told.items():
        found = report(facts(*actions, around=around), [control_plane.DEFAULTS_CHECK]).findings
        (message,) = [one.message for one in found if one.variant == "becomes"]
        assert (f" beside {default['kind']} {name}:" in message) is bool(name)


def test_an_annotation_that_says_no_is_none() -> None:
    api, key = KINDS["StorageClass"]
    said_no = a_class(api, "StorageClass", key, "false")
    assert not findings_of(
        control_plane.DEFAULTS_CHECK, planned(said_no, Action.UPDATE, before=a_class(api, "StorageClass"))
    )
