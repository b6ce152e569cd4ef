"""Claims of the rules about pods are kept: a field that one claims is told however it changes, or stands here with a
reason."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from provisioner.review.base.claims import Claims
from provisioner.review.base.facts import Check
from provisioner.review.checks.pods import commands, credentials, runtime, security
from provisioner.review.frame import report
from provisioner.review.judged.leaves import changed_leaves
from provisioner.review.judged.unjudged_fields import pattern_of
from provisioner.values import Action, GroupKind, Severity
from tests.support.provisioner.contents import an_object, content_with, facts, planned

CHECKS: tuple[Check, ...] = (
    credentials.ACCOUNTS_CHECK,
    runtime.BOUNDS_CHECK,
    commands.COMMANDS_CHECK,
    commands.FETCHED_CODE_CHECK,
    commands.HIDDEN_FILES_CHECK,
    security.ISOLATION_CHECK,
    runtime.NAMES_CHECK,
    runtime.PLACEMENT_CHECK,
    credentials.READ_SECRETS_CHECK,
    credentials.TOKENS_CHECK,
)
CLAIMS = Claims(tuple(claim for check in CHECKS for claim in check.claims))
KIND = GroupKind("apps", "Deployment")
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
HTTP = {"path": "/live", "port": 80, "scheme": "HTTPS", "host": "a.b", "httpHeaders": [{"name": "A", "value": "b"}]}
PROBE = {
    "httpGet": HTTP,
    "initialDelaySeconds": 5,
    "timeoutSeconds": 5,
    "periodSeconds": 5,
    "successThreshold": 5,
    "failureThreshold": 5,
    "terminationGracePeriodSeconds": 5,
}
TERM = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
CONTAINER: dict[str, Any] = {
    "name": "main",
    "securityContext": {"readOnlyRootFilesystem": True},
    "command": ["/web"],
    "args": ["--port=80"],
    "workingDir": "/srv",
    "env": [
        {"name": "A", "value": "1"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
        {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ],
    "envFrom": [{"prefix": "P_", "configMapRef": {"name": "m", "optional": True}}],
    "lifecycle": {
        "postStart": {"exec": {"command": ["/start"]}},
        "preStop": {"httpGet": HTTP},
        "stopSignal": "SIGUSR1",
    },
    "livenessProbe": PROBE,
    "readinessProbe": {"exec": {"command": ["/ready"]}},
    "startupProbe": {"tcpSocket": {"port": 80}},
    "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
    "volumeMounts": [
        {"name": "a", "mountPath": "/a", "subPath": "x", "readOnly": True, "recursiveReadOnly": "Enabled"},
        {"name": "b", "mountPath": "/b", "mountPropagation": "HostToContainer"},
        {"name": "c", "mountPath": "/c"},
        {"name": "d", "mountPath": "/d", "subPathExpr": "$(A)"},
        {"name": "e", "mountPath": "/e"},
        {"name": "f", "mountPath": "/f"},
    ],
    "volumeDevices": [{"name": "e", "devicePath": "/dev/e"}],
}
POD: dict[str, Any] = {
    "serviceAccountName": "robot",
    "automountServiceAccountToken": False,
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}},
    "nodeName": "node-1",
    "nodeSelector": {"disk": "ssd"},
    "preemptionPolicy": "Never",
    "priorityClassName": "high",
    "schedulerName": "own",
    "schedulingGates": [{"name": "gate"}],
    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "hostAliases": [{"ip": "192.0.2.7", "hostnames": ["a.b"]}],
    "dnsPolicy": "None",
    "dnsConfig": {"nameservers": ["192.0.2.8"], "searches": ["a.b"], "options": [{"name": "ndots", "value": "2"}]},
    "shareProcessNamespace": False,
    "runtimeClassName": "gvisor",
    "containers": [CONTAINER, {"name": "beside"}],
    "initContainers": [{"name": "first", "command": ["/first"]}],
    "volumes": [
        {"name": "a", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}},
        {"name": "b", "hostPath": {"path": "/srv"}},
        {"name": "c", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {
            "name": "d",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"audience": "vault", "expirationSeconds": 7200, "path": "t"}},
                    {"configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}},
                    {"secret": {"name": "s"}},
                ]
            },
        },
        {"name": "e", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        {"name": "f", "csi": {"driver": "csi.example.com", "readOnly": True, "volumeAttributes": {"share": "x"}}},
    ],
}
# What is told in no way, and why that does no harm.
NOT_TOLD = {
    ("removed", "nodeName"): "the scheduler chooses the nodes again",
    ("removed", "shareProcessNamespace"): "what is not set is false",
    ("set", "shareProcessNamespace"): "what is not set is false",
    ("set", "containers[].securityContext.readOnlyRootFilesystem"): "set to true, which takes away that it writes",
    ("set", "automountServiceAccountToken"): "set to false, which takes a token away",
}
Path = tuple[str | int, ...]


def deployment(pod: dict[str, Any]) -> dict[str, Any]:
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"template": {"spec": pod}})


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from leaves(one, (*path, key))
    if not isinstance(value, dict | list):
        yield path


def changed(pod: dict[str, Any], path: Path, *, removed: bool) -> dict[str, Any]:
    made = deepcopy(pod)
    held: Any = made
    for key in path[:-1]:
        held = held[key]
    old = held[path[-1]]
    if removed:
        del held[path[-1]]
    else:
        held[path[-1]] = (not old) if isinstance(old, bool) else old + 2 if isinstance(old, int) else other(old)
    return made


def other(text: str) -> str:
    return {"1Gi": "3Gi", "2": "3", "1": "3"}.get(text, f"{text}x")


def is_told(old: dict[str, Any], new: dict[str, Any], rules: set[str]) -> bool:
    """Whether a change is told: the checks that claim what differs, which nearly always do it, are asked first."""
    before, after = deployment(old), deployment(new)
    given = facts(planned(after, Action.UPDATE, before=before), previous=content_with(before), live_rbac=())
    claiming = [check for check in CHECKS if rules & {claim.rule for claim in check.claims}]
    for checks in (claiming, [*CHECKS, security.PODS_CHECK, runtime.HABITS_CHECK]):
        found = [finding for finding in report(given, checks).findings if finding.rule not in {"UNJUDGED", "UNCLAIMED"}]
        if any(finding.is_new and finding.severity is not Severity.SAFE for finding in found):
            return True
    return False


def find_judges(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    """The fields that differ and that a claim holds, as patterns, with the rule that claims each."""
    found = {
        pattern_of(leaf.path): CLAIMS.judge_of(KIND, leaf.path)
        for leaf in changed_leaves(deployment(old), deployment(new))
    }
    return {field: rule for field, rule in found.items() if rule}


@pytest.mark.parametrize("how", ["changed", "removed", "set"])
def test_every_field_of_a_pod_that_is_claimed_is_told_however_it_changes(how: str) -> None:
    silent = set()
    for path in leaves(POD):
        sides = (POD, changed(POD, path, removed=how != "changed"))
        old, new = sides[::-1] if how == "set" else sides
        judges = find_judges(old, new)
        if judges and not is_told(old, new, set(judges.values())):
            silent.update((how, field.removeprefix("spec.template.spec.")) for field in judges)
    assert sorted(silent) == sorted(key for key in NOT_TOLD if key[0] == how)


def test_each_field_of_that_pod_is_claimed() -> None:
    paths = list(leaves(deployment(POD)["spec"]["template"]["spec"], ("spec", "template", "spec")))
    missing = sorted({pattern_of(one) for one in paths if not CLAIMS.judge_of(KIND, one)})
    assert missing == []
