"""S36: no claim swallows a direction. Whichever way a claimed field changes, a rule speaks of it, or the claim names the
harmless direction.

Each field that a claim holds, down to the leaves of the schema, is set, changed from one value to another, changed back
and removed; the report has to speak of it in words that are not those of every change (OBJ-02).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from provisioner.review.base.claims import PODS, Claim, Claims
from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.review.base.messages import UNCLAIMED, UNJUDGED
from provisioner.review.frame import CHECKS, report
from provisioner.review.judged.harmless import RULE as HARMLESS
from provisioner.review.judged.harmless import TABLE
from provisioner.values import Action, Finding, GroupKind, JsonObject, Section, Severity
from tests.provisioner.review.judged.every_leaf import (
    KEY,
    Path,
    every_kind,
    group_kind,
    leaves_of,
    object_with_everything,
    schemas,
)
from tests.support.provisioner.contents import an_object, content_with, facts, planned

everything = functools.cache(object_with_everything)
# What is said of every change of an object, or that nobody judged it.
UNSPECIFIC = {"OBJ-02", "RB-SAME", UNJUDGED, UNCLAIMED, HARMLESS}
ADMISSION = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"

CONTAINER = {"name": "main", "image": "example.com/a:1.2.0", "volumeMounts": [{"name": "main", "mountPath": "/main"}]}
POD = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "containers": [CONTAINER],
        "initContainers": [{**CONTAINER, "name": "before"}],
        "ephemeralContainers": [{**CONTAINER, "name": "later"}],
        "volumes": [{"name": "main"}],
    },
}
RULE = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}
MATCH = {"resourceRules": [RULE]}
WEBHOOK = {
    "name": "a.example.com",
    "clientConfig": {"service": {"namespace": "shop", "name": "web"}},
    "rules": [RULE],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
POLICY = {"matchConstraints": MATCH, "validations": [{"expression": "true"}]}
BINDING = {"policyName": "limits", "validationActions": ["Deny"], "paramRef": {"name": "x"}, "matchResources": MATCH}
SUBJECT = {"kind": "ServiceAccount", "name": "one", "namespace": "shop"}
ROLE_RULE = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}
SERVICE = an_object("v1", "Service", "all", "shop", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
BALANCED = {**SERVICE, "spec": {**SERVICE["spec"], "type": "LoadBalancer"}}
ADDRESSES = [{"addresses": [{"ip": "10.0.0.1"}], "notReadyAddresses": [{"ip": "10.0.0.2"}], "ports": [{"port": 1}]}]
# What stands around a field, by its kind; of others nothing does.
SAMPLES: Mapping[str, JsonObject] = {
    "Deployment": an_object("apps/v1", "Deployment", "all", "shop", spec={"replicas": 3, "template": POD}),
    "StatefulSet": an_object("apps/v1", "StatefulSet", "all", "shop", spec={"replicas": 3, "template": POD}),
    "DaemonSet": an_object("apps/v1", "DaemonSet", "all", "shop", spec={"template": POD}),
    "Service": SERVICE,
    "Ingress": an_object("networking.k8s.io/v1", "Ingress", "all", "shop", spec={"rules": [{"host": "a.org"}]}),
    "Endpoints": an_object("v1", "Endpoints", "all", "shop", subsets=ADDRESSES),
    "EndpointSlice": {
        **an_object("discovery.k8s.io/v1", "EndpointSlice", "all", "shop", addressType="IPv4"),
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 1, "protocol": "TCP"}],
        "metadata": {"name": "all", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
    },
    "Namespace": {
        **an_object("v1", "Namespace", "all"),
        "metadata": {"name": "all", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}},
    },
    "LimitRange": an_object(
        "v1", "LimitRange", "all", "shop", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}}]}
    ),
    "APIService": an_object(
        "apiregistration.k8s.io/v1",
        "APIService",
        "all",
        spec={"group": "a.org", "version": "v1", "service": {"name": "web", "namespace": "shop"}},
    ),
    **{
        f"{which}WebhookConfiguration": an_object(ADMISSION, f"{which}WebhookConfiguration", "all", webhooks=[WEBHOOK])
        for which in ("Mutating", "Validating")
    },
    **{
        f"{which}AdmissionPolicy": an_object(ADMISSION, f"{which}AdmissionPolicy", "all", spec=POLICY)
        for which in ("Mutating", "Validating")
    },
    **{
        f"{which}AdmissionPolicyBinding": an_object(ADMISSION, f"{which}AdmissionPolicyBinding", "all", spec=BINDING)
        for which in ("Mutating", "Validating")
    },
    "Role": an_object(RBAC, "Role", "all", "shop", rules=[ROLE_RULE]),
    "ClusterRole": an_object(RBAC, "ClusterRole", "all", rules=[ROLE_RULE]),
    "RoleBinding": {
        **an_object(RBAC, "RoleBinding", "all", "shop", subjects=[SUBJECT]),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"},
    },
    "ClusterRoleBinding": {
        **an_object(RBAC, "ClusterRoleBinding", "all", subjects=[SUBJECT]),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "one"},
    },
}
# Another sample for fields that say nothing in the first one, by a part of their path.
IN_ANOTHER = {
    ("Service", "externalName"): {**SERVICE, "spec": {"type": "ExternalName", "externalName": "a.org"}},
    ("Service", "loadBalancerSourceRanges"): BALANCED,
    ("Service", "load-balancer"): BALANCED,
    ("ClusterRole", "aggregationRule"): an_object(RBAC, "ClusterRole", "all", rules=[]),
}
COLLECTED = {"one": "one", "tier": "one", KEY: "two"}
ROLES = [
    an_object(RBAC, "Role", "one", "shop", rules=[ROLE_RULE]),
    {**an_object(RBAC, "ClusterRole", "one", rules=[ROLE_RULE]), "metadata": {"name": "one", "labels": COLLECTED}},
]
# What stays, beside the object that changes.
AROUND = [
    an_object("apps/v1", "Deployment", "web", "shop", spec={"template": POD}),
    *ROLES,
    *(
        {
            **an_object(RBAC, f"{kind}Binding", "around", *(["shop"] if kind == "Role" else []), subjects=[SUBJECT]),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "all"},
        }
        for kind in ("Role", "ClusterRole")
    ),
]
# The first item of lists of which a part says nothing.
ITEMS: Mapping[str, JsonObject] = {
    "excludeResourceRules": RULE,
    "matchExpressions": {"key": "tier", "operator": "In", "values": ["one"]},
    "resourceRules": RULE,
    "variables": {"name": "main", "expression": "1"},
}
# A usual value of fields that take not any, and one that matters more, by the end of their path.
VALUES: Mapping[str, tuple[Any, Any]] = {
    "aggregate-to-view": ("false", "true"),
    "add.0": ("CHOWN", "SYS_ADMIN"),
    "admissionReviewVersions.0": ("v1", "v1beta1"),
    "allowPrivilegeEscalation": (True, False),
    "appArmorProfile.type": ("RuntimeDefault", "Unconfined"),
    "automountServiceAccountToken": (True, False),
    "aws-load-balancer-internal": ("true", "false"),
    "aws-load-balancer-scheme": ("internal", "internet-facing"),
    "azure-load-balancer-internal": ("true", "false"),
    "beta.kubernetes.io/main": ("runtime/default", "unconfined"),
    "defaultMode": (420, 511),
    "drop.0": ("ALL", "NET_RAW"),
    "enforce": ("restricted", "privileged"),
    "enforce-version": ("v1.30", "v1.20"),
    "expirationSeconds": (3600, 7200),
    "failurePolicy": ("Fail", "Ignore"),
    "hard.some.example/key": ("1", "2"),
    "hostPath.path": ("/data", "/etc"),
    "hosts.0": ("a.org", "b.org"),
    "hostUsers": (True, False),
    "is-default-class": ("false", "true"),
    "load-balancer-type": ("Internal", "External"),
    "loadBalancerSourceRanges.0": ("10.0.0.0/8", "0.0.0.0/0"),
    "image": ("example.com/a:1.2.0", "example.com/a:1.1.0"),
    "matchPolicy": ("Equivalent", "Exact"),
    "maxSurge": (1, 0),
    "maxUnavailable": (0, "100%"),
    "nodePort": (30001, 30002),
    "openstack-internal-load-balancer": ("true", "false"),
    "operator": ("In", "NotIn"),
    "persistentVolumeReclaimPolicy": ("Retain", "Delete"),
    "procMount": ("Default", "Unmasked"),
    "protocol": ("TCP", "UDP"),
    "readOnlyRootFilesystem": (False, True),
    "reinvocationPolicy": ("Never", "IfNeeded"),
    "replicas": (2, 0),
    "runAsNonRoot": (False, True),
    "runAsUser": (1000, 0),
    "scope": ("Namespaced", "Cluster"),
    "seLinuxOptions.type": ("container_t", "spc_t"),
    "seccompProfile.type": ("RuntimeDefault", "Unconfined"),
    "sideEffects": ("None", "NoneOnDryRun"),
    "strategy.type": ("RollingUpdate", "Recreate"),
    "subjects.0.kind": ("ServiceAccount", "User"),
    "sysctls.0.name": ("net.ipv4.tcp_syncookies", "kernel.msgmax"),
    "timeoutSeconds": (5, 3),
    "updateStrategy.type": ("RollingUpdate", "OnDelete"),
    "Service spec.type": ("ClusterIP", "LoadBalancer"),
    "verbs.0": ("get", "delete"),
}
# Two values that Pod Security allows both, by the end of the path; None: not set.
ALLOWED: Mapping[str, tuple[Any, Any]] = {
    "add.0": ("CHOWN", "NET_BIND_SERVICE"),
    "appArmorProfile.type": ("RuntimeDefault", "Localhost"),
    "beta.kubernetes.io/main": ("runtime/default", "localhost/main"),
    "drop.0": ("NET_RAW", "CHOWN"),
    "runAsUser": (1000, 2000),
    "seLinuxOptions.type": ("container_t", "container_init_t"),
    "seccompProfile.type": ("RuntimeDefault", "Localhost"),
}
OTHER_LISTS = ("initContainers", "ephemeralContainers")
# Of a claim with a long table of annotations, so many are tried each time, the others in the thorough test.
MAX_PATTERNS = 12
# What has no meaning where it stands: a Role gives no right to a URL.
MEANINGLESS = {"Role.rbac.authorization.k8s.io rules.0.nonResourceURLs.0"}
# Claims that are not of single fields of Kubernetes' kinds: of all objects of Pratique, and of hooks.
WHOLE = {"OWN-PRATIQUE-01", "HOOK-01"}


class Field(NamedTuple):
    """A field of objects of a kind that `checks` claim; `harmless` where one of the claims names a direction.

    `is_first` of those that one pattern holds; of containers only in the list of that name, as all lists are read in
    one way.
    """

    kind: GroupKind
    path: Path
    checks: tuple[Check, ...]
    harmless: str
    is_first: bool

    @property
    def words(self) -> str:
        return f"{self.kind} {'.'.join(map(str, self.path))}"


@functools.cache
def served() -> Mapping[GroupKind, tuple[str, str]]:
    """Of each kind its apiVersion that is furthest, with the kind."""
    pairs = sorted(every_kind(), key=lambda pair: ("alpha" not in pair[0], "beta" not in pair[0]))
    return {group_kind(*pair): pair for pair in pairs}


def kinds_of(claim: Claim) -> set[GroupKind]:
    """One kind of pods stands for all of them, as they are read in one way."""
    if claim.kinds == PODS:
        return {GroupKind("apps", "Deployment")}
    return {kind for kind in claim.kinds if kind in served()}


@functools.cache
def claimed_fields() -> list[Field]:
    """Every field that is claimed, down to the leaves of its kind's schema, once."""
    claims = [(check, claim) for check in CHECKS for claim in check.claims if claim.rule not in WHOLE]
    by_nature = Claims(one.claim for one in TABLE)
    found: dict[tuple[GroupKind, Path], tuple[dict[str, Check], str, bool]] = {}
    for kind in {kind for _, claim in claims for kind in kinds_of(claim)}:
        leaves = sorted(set(leaves_of(everything(*served()[kind]))), key=str)
        for check, claim in claims:
            if kind not in kinds_of(claim) or claim.is_of_new:
                continue
            for number, pattern in enumerate(claim.paths):
                alone = Claims([Claim("X", frozenset({kind}), (pattern,))])
                paths = [path for path in leaves if alone.judge_of(kind, path) and not by_nature.judge_of(kind, path)]
                is_once = (
                    number < MAX_PATTERNS
                    and kind == min(kinds_of(claim), key=str)
                    and not any(name in pattern for name in OTHER_LISTS)
                )
                for at, path in enumerate([*paths, *keys_of_maps(claim, pattern, kind)]):
                    checks, harmless, is_first = found.get((kind, path), ({}, "", False))
                    known = {**checks, check.name: check}
                    found[kind, path] = known, harmless or claim.harmless, is_first or (is_once and not at)
    return [
        Field(*field, tuple(checks.values()), harmless, is_first)
        for field, (checks, harmless, is_first) in sorted(found.items(), key=str)
    ]


def keys_of_maps(claim: Claim, pattern: str, kind: GroupKind) -> Iterator[Path]:
    """A label or annotation, which no schema names."""
    parts = claim.parts(pattern, kind)
    if parts and parts[-2:-1] in (("labels",), ("annotations",)):
        yield (*parts[:-1], parts[-1].replace("*", "main" if kind == GroupKind("apps", "Deployment") else "view"))


def values_of(field: Field) -> tuple[Any, Any]:
    given = next((both for end, both in VALUES.items() if field.words.endswith(end)), None)
    sides: list[Any] = [everything(*served()[field.kind], second=second) for second in (False, True)]
    try:
        for part in field.path:
            sides = [side[part] for side in sides]
    except KeyError:
        sides = ["one", "two"]
    first, second = given or sides
    return (first, second) if given or not isinstance(first, bool) else (False, True)


def sample_for(field: Field) -> JsonObject:
    kind, words = field.kind.kind, ".".join(map(str, field.path))
    other = (obj for (of, part), obj in IN_ANOTHER.items() if of == kind and part in words)
    return next(other, SAMPLES.get(kind)) or an_object(served()[field.kind][0], kind, "all", "shop")


def with_value(field: Field, value: Any) -> JsonObject:
    """The sample with this value in the field, or without the field where it is None. Items that are made have names."""
    made: Any = copy.deepcopy(sample_for(field))
    held, above = made, field.path[0]
    schema = schemas().of(*served()[field.kind]) or {}
    *parents, last = field.path
    for part, following in zip(parents, field.path[1:], strict=True):
        schema = below(schema, part)
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(part, int) and not held:
            named = {"name": "main"} if "name" in schema.get("properties", {}) else empty
            held.append(copy.deepcopy(ITEMS.get(str(above), named)))
        above = part
        held = held[part] if isinstance(part, int) else held.setdefault(part, empty)
    if isinstance(last, int):
        held[:] = [] if value is None else [value]
    elif value is None:
        held.pop(last, None)
    else:
        held[last] = value
    return dict(made)


def below(schema: Mapping[str, Any], part: str | int) -> Mapping[str, Any]:
    schema = schemas().resolved(schema)[1]
    inner = schema.get("items") if isinstance(part, int) else schema.get("properties", {}).get(part)
    return schemas().resolved(inner or schema.get("additionalProperties") or {})[1]


def may_be_left_out(field: Field) -> bool:
    schema: Mapping[str, Any] = schemas().of(*served()[field.kind]) or {}
    names = [part for part in field.path if isinstance(part, str)] if isinstance(field.path[-1], int) else field.path
    for part in field.path[: field.path.index(names[-1])]:
        schema = below(schema, part)
    return names[-1] not in (*schema.get("required", ()), "image")


def told(before: JsonObject, after: JsonObject, checks: tuple[Check, ...]) -> set[str]:
    """The rules that have something new to say of a change of one object, beside objects that stay."""
    stay = [planned(one, Action.NONE, before=one) for one in AROUND]
    given = facts(
        planned(after, Action.UPDATE, before=before),
        *stay,
        previous=content_with(before, *AROUND),
        live_rbac=tuple(one for one in (*AROUND, before) if one["apiVersion"] == RBAC),
    )
    return {finding.rule for finding in report(given, checks).findings if finding.is_new} - UNSPECIFIC


def is_told(before: JsonObject, after: JsonObject, field: Field) -> bool:
    return bool(told(before, after, field.checks) or told(before, after, CHECKS))


def silent_directions(field: Field) -> tuple[list[str], int]:
    """In which directions nobody speaks of a change of the field, and how many there are."""
    first, second = values_of(field)
    usual, other, absent = (with_value(field, value) for value in (first, second, None))
    ways = [(f"{first} → {second}", usual, other), (f"{second} → {first}", other, usual)]
    if may_be_left_out(field):
        ways += [(f"not set → {second}", absent, other), (f"{second} → not set", other, absent)]
    return [words for words, before, after in ways if not is_told(before, after, field)], len(ways)


def swallowed(fields: list[Field]) -> list[str]:
    """What is silent and not said to be harmless; of a field that is silent whatever changes, nothing is harmless."""
    found = [(field, *silent_directions(field)) for field in fields]
    return [
        f"{field.words}: {', '.join(silent)}"
        for field, silent, ways in found
        if silent and field.words not in MEANINGLESS and (not field.harmless or len(silent) == ways)
    ]


def test_S36_no_claim_swallows_a_direction() -> None:
    assert swallowed([field for field in claimed_fields() if field.is_first]) == []


@pytest.mark.thorough
@pytest.mark.parametrize("kind", sorted({kind for _, kind in every_kind()}))
def test_S36_no_claim_swallows_a_direction_of_any_field_below_it(kind: str) -> None:
    assert swallowed([field for field in claimed_fields() if field.kind.kind == kind and not field.is_first]) == []


@pytest.mark.parametrize("end", ALLOWED)
def test_S36_no_claim_swallows_a_change_between_values_that_are_allowed(end: str) -> None:
    fields = [field for field in claimed_fields() if field.is_first and field.words.endswith(end)]
    assert fields
    for field in fields:
        one, other, absent = (with_value(field, value) for value in (*ALLOWED[end], None))
        ways = [(one, other), (other, one), (absent, one), (absent, other)]
        assert [way for way in ways if not is_told(*way, field)] == []


def test_a_change_that_no_claim_holds_is_not_told_as_if_it_were_judged() -> None:
    """What the tests above count is said of the field, not of any change."""
    for obj in SAMPLES.values():
        after = {**obj, "metadata": {**obj["metadata"], "annotations": {"some.example/other": "x"}}}
        assert told(obj, after, CHECKS) == set()


@pytest.mark.parametrize(
    ("harmless", "expected"), [("", 1), ("it only goes", 0)], ids=["no direction named", "a harmless direction"]
)
def test_a_claim_whose_rule_is_silent_in_one_direction_is_found(harmless: str, expected: int) -> None:
    kind = GroupKind("scheduling.k8s.io", "PriorityClass")

    def says_what_comes(given: Facts) -> Iterator[Finding]:
        for one in given.plan.actions:
            if (one.after or {}).get("description") == "two":
                yield ReviewRule("SYS-02", Section.OBJECTS, Severity.DANGEROUS).finding(
                    "ends", one.ref, without="PriorityClass"
                )

    check = Check("one-sided", changes=says_what_comes)
    assert len(swallowed([Field(kind, ("description",), (check,), harmless, is_first=True)])) == expected
