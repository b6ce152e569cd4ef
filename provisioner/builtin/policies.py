"""What the API server refuses of autoscalers, budgets, quotas, priorities, roles and admission."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from provisioner.api_groups import RBAC_GROUP
from provisioner.builtin import forms, metadata
from provisioner.builtin.changes import NEVER, Change, FieldRefusal, Path, is_number, numbered, quoted, texts
from provisioner.json_values import mapping, value_at

HIGHEST_PRIORITY = 1_000_000_000
_TARGETS = {"Utilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value"}
_METRICS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_BY_TARGET = {
    "ContainerResource": ("Utilization", "AverageValue"),
    "External": ("AverageValue", "Value"),
    "Object": ("AverageValue", "Value"),
    "Pods": ("AverageValue",),
    "Resource": ("Utilization", "AverageValue"),
}
_POD_SECURITY, _MODES = "pod-security.kubernetes.io/", ("enforce", "audit", "warn")
_LEVELS = ("privileged", "baseline", "restricted")
_VERSION = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")
_WHOLE = frozenset(
    {"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"}
    | {"services.nodeports", "services.loadbalancers"}
)
_AMOUNTS = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})
_LIMITED = frozenset({"Container", "PersistentVolumeClaim", "Pod"})


def _check_autoscaler(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    least, most = spec.get("minReplicas"), spec.get("maxReplicas")
    if is_number(most) and most < 1:
        yield FieldRefusal(("spec", "maxReplicas"), f"must be at least 1, and is {most}")
    elif is_number(least) and is_number(most) and most < least:
        yield FieldRefusal(("spec", "maxReplicas"), f"must not be below minReplicas, which is {least}; it is {most}")
    if least == 0 and not any(one.get("type") in ("External", "Object") for _, one in numbered(spec.get("metrics"))):
        yield FieldRefusal(("spec", "minReplicas"), "must be at least 1 where no metric is External or Object")
    target = mapping(spec.get("scaleTargetRef"))
    if not target.get("apiVersion") and target.get("kind") != "ReplicationController":
        yield FieldRefusal(("spec", "scaleTargetRef", "apiVersion"), "must name the group of the target")
    share = spec.get("targetCPUUtilizationPercentage")
    if is_number(share) and share < 1:
        yield FieldRefusal(("spec", "targetCPUUtilizationPercentage"), f"must be at least 1, and is {share}")
    for place, metric in numbered(spec.get("metrics")):
        yield from _check_metric(metric, ("spec", "metrics", place))
    for direction in ("scaleUp", "scaleDown"):
        rules = value_at(spec, "behavior", direction)
        path = ("spec", "behavior", direction)
        if value_at(rules, "policies") == []:
            yield FieldRefusal((*path, "policies"), "must not be empty")
        tolerance = forms.quantity(value_at(rules, "tolerance"))
        if tolerance is not None and tolerance < 0:
            yield FieldRefusal((*path, "tolerance"), "must not be below 0")


def _check_metric(metric: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    kind = str(metric.get("type") or "")
    field = _METRICS.get(kind)
    if field is None:
        return
    if metric.get(field) is None:
        yield FieldRefusal((*path, field), f"is missing, and the type is {kind}")
        return
    for other in set(_METRICS.values()) - {field}:
        if metric.get(other) is not None:
            yield FieldRefusal((*path, other), f"must not be set where the type is {kind}")
    target = mapping(mapping(metric[field]).get("target"))
    where = (*path, field, "target")
    given = [key for key in _TARGETS.values() if target.get(key) is not None]
    allowed = [_TARGETS[one] for one in _BY_TARGET[kind]]
    if not set(given) & set(allowed):
        yield FieldRefusal((*where, allowed[0]), f"is missing; a target of type {kind} needs {' or '.join(allowed)}")
    elif len(set(given) & set(allowed)) > 1:
        yield FieldRefusal(where, f"must have one of {' and '.join(allowed)}")
    for key in given:
        amount = forms.quantity(target[key])
        if amount is not None and amount <= 0:
            yield FieldRefusal((*where, key), "must be above 0")


def _check_budget(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield FieldRefusal(("spec",), "must not have both minAvailable and maxUnavailable")
    for key in ("minAvailable", "maxUnavailable"):
        value = spec.get(key)
        if isinstance(value, str) and (not forms.is_percent(value) or int(value[:-1]) > 100):
            yield FieldRefusal(("spec", key), f"must be a number or a percentage up to 100%, and is {quoted(value)}")
        elif is_number(value) and value < 0:
            yield FieldRefusal(("spec", key), f"must be at least 0, and is {value}")
    yield from metadata.check_selector(spec.get("selector"), ("spec", "selector"))


def _check_priority(change: Change) -> Iterator[FieldRefusal]:
    value = change.new.get("value")
    if is_number(value) and value > HIGHEST_PRIORITY:
        yield FieldRefusal(("value",), f"must be at most {HIGHEST_PRIORITY}, and is {value}")


def _check_namespace(change: Change) -> Iterator[FieldRefusal]:
    for key, value in mapping(value_at(change.new, "metadata", "labels")).items():
        _, _, mode = str(key).partition(_POD_SECURITY)
        if mode in _MODES and value not in _LEVELS:
            yield FieldRefusal(
                ("metadata", "labels", str(key)), f"must be {' or '.join(_LEVELS)}, and is {quoted(value)}"
            )
        elif mode.removesuffix("-version") in _MODES and mode not in _MODES and not _VERSION.fullmatch(str(value)):
            yield FieldRefusal(
                ("metadata", "labels", str(key)), f"must be latest or a version such as v1.36, and is {quoted(value)}"
            )


def _check_quota(change: Change) -> Iterator[FieldRefusal]:
    spec, path = change.spec, ("spec", "scopes")
    scopes = set(texts(spec.get("scopes")))
    if not scopes <= _SCOPES:
        yield FieldRefusal(path, f"must be of {', '.join(sorted(_SCOPES))}")
    if any(pair <= scopes for pair in _AGAINST):
        yield FieldRefusal(path, "must not hold a scope and its opposite")
    counted = set(mapping(spec.get("hard")))
    is_of_pods = bool(scopes & _SCOPES - {"VolumeAttributesClass"})
    if ("BestEffort" in scopes and counted - {"pods"}) or (is_of_pods and counted & _NOT_OF_PODS):
        yield FieldRefusal(path, "do not fit to what is counted")
    if change.old is not None and scopes != set(texts(change.old_spec.get("scopes"))):
        yield FieldRefusal(path, NEVER, is_of_update=True)
    for place, requirement in numbered(value_at(spec, "scopeSelector", "matchExpressions")):
        if requirement.get("operator") in ("In", "NotIn") and not requirement.get("values"):
            words = f"must not be empty where the operator is {requirement['operator']}"
            yield FieldRefusal(("spec", "scopeSelector", "matchExpressions", place, "values"), words)
    for name, amount in mapping(change.spec.get("hard")).items():
        found = forms.quantity(amount)
        if found is not None and found < 0:
            yield FieldRefusal(("spec", "hard", str(name)), f"must not be below 0, and is {quoted(amount)}")
        if not _is_counted(str(name)):
            yield FieldRefusal(("spec", "hard", str(name)), f"must be the name of a resource, and is {quoted(name)}")
        elif found is not None and name in _WHOLE and found != found.to_integral_value():
            yield FieldRefusal(("spec", "hard", str(name)), f"must be a whole number, and is {quoted(amount)}")


_AGAINST = (frozenset({"BestEffort", "NotBestEffort"}), frozenset({"Terminating", "NotTerminating"}))
_SCOPES = _AGAINST[0] | _AGAINST[1] | {"CrossNamespacePodAffinity", "PriorityClass", "VolumeAttributesClass"}
_NOT_OF_PODS = (_WHOLE - {"pods"}) | {
    "requests.storage",
    "ephemeral-storage",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
}


def _is_counted(name: str) -> bool:
    """Whether a quota may be about it."""
    if "/" in name:
        return forms.is_qualified_name(name)
    plain = name.removeprefix("requests.").removeprefix("limits.")
    return name in _WHOLE or plain in _AMOUNTS or plain.startswith("hugepages-")


def _check_slice(change: Change) -> Iterator[FieldRefusal]:
    kind = change.new.get("addressType")
    for place, endpoint in numbered(change.new.get("endpoints")):
        for number, address in enumerate(texts(endpoint.get("addresses"))):
            is_sound = (
                forms.is_subdomain(address)
                if kind == "FQDN"
                else forms.is_ip(address) and (":" in address) is (kind == "IPv6")
            )
            if not is_sound:
                words = f"must be an address of type {kind}, and is {quoted(address)}"
                yield FieldRefusal(("endpoints", place, "addresses", number), words)
            elif forms.is_special_ip(address):
                words = f"must not be of the machine or its link: {quoted(address)}"
                yield FieldRefusal(("endpoints", place, "addresses", number), words)
        node = endpoint.get("nodeName")
        if isinstance(node, str) and not forms.is_subdomain(node):
            yield FieldRefusal(("endpoints", place, "nodeName"), f"must be the name of a node, and is {quoted(node)}")
    names: set[str] = set()
    for place, port in numbered(change.new.get("ports")):
        name = str(port.get("name") or "")
        if name in names:
            yield FieldRefusal(("ports", place, "name"), f"stands there twice: {quoted(name)}")
        names.add(name)


def _check_endpoints(change: Change) -> Iterator[FieldRefusal]:
    for place, subset in numbered(change.new.get("subsets")):
        where: Path = ("subsets", place)
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield FieldRefusal(where, "must have addresses or notReadyAddresses")
        for key in ("addresses", "notReadyAddresses"):
            for number, address in numbered(subset.get(key)):
                if forms.is_special_ip(str(address.get("ip"))):
                    words = f"must not be of the machine or its link: {quoted(address['ip'])}"
                    yield FieldRefusal((*where, key, number, "ip"), words)
        ports = list(numbered(subset.get("ports")))
        for number, port in ports if len(ports) > 1 else ():
            if not port.get("name"):
                yield FieldRefusal((*where, "ports", number, "name"), "is missing, and there is more than one port")


_ORDERED = (
    ("min", "max"),
    ("min", "default"),
    ("min", "defaultRequest"),
    ("default", "max"),
    ("defaultRequest", "max"),
    ("defaultRequest", "default"),
)


def _check_limits(change: Change) -> Iterator[FieldRefusal]:
    seen: set[str] = set()
    for place, limit in numbered(change.spec.get("limits")):
        where: Path = ("spec", "limits", place)
        kind = str(limit.get("type") or "")
        if kind in seen:
            yield FieldRefusal((*where, "type"), f"stands there twice: {quoted(kind)}")
        seen.add(kind)
        if kind not in _LIMITED and "/" not in kind:
            yield FieldRefusal((*where, "type"), f"must be one of {', '.join(sorted(_LIMITED))}, and is {quoted(kind)}")
        for key in ("default", "defaultRequest") if kind == "Pod" else ():
            if limit.get(key):
                yield FieldRefusal((*where, key), "must not be set where the type is Pod")
        for low, high in _ORDERED:
            yield from _check_order(mapping(limit.get(low)), (high, mapping(limit.get(high))), (*where, low))


def _check_order(low: Mapping[str, Any], upper: tuple[str, Mapping[str, Any]], path: Path) -> Iterator[FieldRefusal]:
    word, high = upper
    for name, amount in low.items():
        first, second = forms.quantity(amount), forms.quantity(high.get(name))
        if first is not None and second is not None and first > second:
            yield FieldRefusal((*path, str(name)), f"must not be above {word}, which is {quoted(high[name])}")


def _check_role(change: Change) -> Iterator[FieldRefusal]:
    is_namespaced = change.new.get("kind") == "Role"
    gathered = change.new.get("aggregationRule")
    if gathered is not None and not value_at(gathered, "clusterRoleSelectors"):
        yield FieldRefusal(("aggregationRule", "clusterRoleSelectors"), "must not be empty")
    for place, rule in numbered(change.new.get("rules")):
        where: Path = ("rules", place)
        if not rule.get("verbs"):
            yield FieldRefusal((*where, "verbs"), "must name at least one verb")
        if rule.get("nonResourceURLs"):
            if is_namespaced:
                yield FieldRefusal((*where, "nonResourceURLs"), "must not be set in a role of a namespace")
            elif any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
                yield FieldRefusal((*where, "nonResourceURLs"), "must not stand beside resources")
            continue
        for key in ("apiGroups", "resources"):
            if not rule.get(key):
                yield FieldRefusal((*where, key), "must not be empty")
    for place, selector in numbered(value_at(change.new, "aggregationRule", "clusterRoleSelectors")):
        yield from metadata.check_selector(selector, ("aggregationRule", "clusterRoleSelectors", place))


def _check_binding(change: Change) -> Iterator[FieldRefusal]:
    is_cluster = change.new.get("kind") == "ClusterRoleBinding"
    role = mapping(change.new.get("roleRef"))
    if role.get("apiGroup") not in (None, "", RBAC_GROUP):
        yield FieldRefusal(("roleRef", "apiGroup"), f"must be {RBAC_GROUP}, and is {quoted(role.get('apiGroup'))}")
    allowed = ("ClusterRole",) if is_cluster else ("ClusterRole", "Role")
    if role.get("kind") not in allowed:
        yield FieldRefusal(
            ("roleRef", "kind"), f"must be {' or '.join(allowed)}, and is {quoted(role.get('kind') or '')}"
        )
    for place, subject in numbered(change.new.get("subjects")):
        path = ("subjects", place)
        kind, group = subject.get("kind"), subject.get("apiGroup") or ""
        name = str(subject.get("name") or "")
        if kind in ("User", "Group") and group not in ("", RBAC_GROUP):
            yield FieldRefusal((*path, "apiGroup"), f"must be {RBAC_GROUP}, and is {quoted(group)}")
        if kind != "ServiceAccount":
            continue
        if name and not forms.is_subdomain(name):
            yield FieldRefusal((*path, "name"), f"must be the name of an account, and is {quoted(name)}")
        if group:
            yield FieldRefusal((*path, "apiGroup"), f"must be empty for an account, and is {quoted(group)}")
        if not subject.get("namespace") and is_cluster:
            yield FieldRefusal((*path, "namespace"), "is missing")


def _check_webhooks(change: Change) -> Iterator[FieldRefusal]:
    for place, webhook in numbered(change.new.get("webhooks")):
        path = ("webhooks", place)
        name, client = str(webhook.get("name") or ""), mapping(webhook.get("clientConfig"))
        if name.count(".") < 2:
            yield FieldRefusal(
                (*path, "name"), f"must have at least three parts with dots between, and is {quoted(name)}"
            )
        if (client.get("url") is None) == (client.get("service") is None):
            yield FieldRefusal((*path, "clientConfig"), "must have a url or a service")
        if client.get("url") is not None and not str(client["url"]).startswith("https://"):
            yield FieldRefusal((*path, "clientConfig", "url"), "must begin with https://")
        yield from _check_service(client.get("service"), (*path, "clientConfig", "service"))
        yield from _check_address(client, (*path, "clientConfig"))
        for key in ("namespaceSelector", "objectSelector"):
            yield from metadata.check_selector(webhook.get(key), (*path, key))
        for number, rule in numbered(webhook.get("rules")):
            yield from _check_rule(rule, (*path, "rules", number))
        versions = texts(webhook.get("admissionReviewVersions"))
        for number, version in enumerate(versions):
            if version in versions[:number]:
                yield FieldRefusal((*path, "admissionReviewVersions", number), f"stands there twice: {quoted(version)}")


def _check_service(service: Any, path: Path) -> Iterator[FieldRefusal]:
    # Asked about one of them, the server names the other: the table has neither.
    for key in ("name", "namespace") if service is not None else ():
        if not mapping(service).get(key):
            yield FieldRefusal((*path, key), "must not be empty")


def _check_address(client: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    inner = value_at(client, "service", "path")
    if isinstance(inner, str) and inner and inner != "/":
        parts = inner.removesuffix("/").split("/")[1:]
        if not all(forms.is_subdomain(part) for part in parts):
            words = f"must be names with single slashes between, and is {quoted(inner)}"
            yield FieldRefusal((*path, "service", "path"), words)
    try:
        url = urlsplit(str(client.get("url") or "https://host"))
        parts_of_url = (url.username is not None, bool(url.query), bool(url.fragment), not url.hostname)
    except ValueError:
        parts_of_url = (True, True, True, True)
    if any(parts_of_url):
        words = "must have a host, and no user, query or fragment"
        yield FieldRefusal((*path, "url"), words)


def _check_rule(rule: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    for key in ("apiGroups", "apiVersions", "operations"):
        given = texts(rule.get(key))
        if "*" in given and len(given) > 1:
            yield FieldRefusal((*path, key), "must name nothing else beside *")
    resources = texts(rule.get("resources"))
    if "*/*" in resources and len(resources) > 1:
        yield FieldRefusal((*path, "resources"), "must name nothing else beside */*")

    whole = {resource for resource in resources if "/" not in resource}
    if "*" in whole and len(whole) > 1:
        yield FieldRefusal((*path, "resources"), "must name nothing else without a subresource beside *")


def _check_admission_policy(change: Change) -> Iterator[FieldRefusal]:
    if not change.spec.get("validations") and not change.spec.get("auditAnnotations"):
        yield FieldRefusal(("spec", "validations"), "must not be empty where auditAnnotations is")
    for number, rule in numbered(value_at(change.spec, "matchConstraints", "resourceRules")):
        yield from _check_rule(rule, ("spec", "matchConstraints", "resourceRules", number))


def _check_admission_binding(change: Change) -> Iterator[FieldRefusal]:
    if {"Deny", "Warn"} <= set(texts(change.spec.get("validationActions"))):
        yield FieldRefusal(("spec", "validationActions"), "must not hold both Deny and Warn")
    parameters, where = change.spec.get("paramRef"), ("spec", "paramRef")
    if parameters is None:
        return
    given = [bool(mapping(parameters).get("name")), mapping(parameters).get("selector") is not None]
    if sum(given) != 1:
        yield FieldRefusal(where, "must have a name or a selector, and not both")
    if not mapping(parameters).get("parameterNotFoundAction"):
        yield FieldRefusal((*where, "parameterNotFoundAction"), "is missing")


def _check_api_service(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    wanted = f"{spec.get('version')}.{spec.get('group')}"
    name = str(value_at(change.new, "metadata", "name") or "")
    if name != wanted:
        yield FieldRefusal(("metadata", "name"), f"must be {quoted(wanted)}, and is {quoted(name)}")
    if spec.get("insecureSkipTLSVerify") is True and spec.get("caBundle"):
        yield FieldRefusal(("spec", "insecureSkipTLSVerify"), "must not be true where there is a caBundle")


def has_expressions(change: Change) -> bool:
    """Whether an object holds CEL, which only the server compiles."""
    kind = change.new.get("kind")
    if kind in ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"):
        return True
    return any(webhook.get("matchConditions") for _, webhook in numbered(change.new.get("webhooks")))


RULES: dict[str, Callable[[Change], Iterator[FieldRefusal]]] = {
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration": _check_webhooks,
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration": _check_webhooks,
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": _check_admission_policy,
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": _check_admission_binding,
    "apiregistration.k8s.io/v1 APIService": _check_api_service,
    "autoscaling/v1 HorizontalPodAutoscaler": _check_autoscaler,
    "autoscaling/v2 HorizontalPodAutoscaler": _check_autoscaler,
    "discovery.k8s.io/v1 EndpointSlice": _check_slice,
    "policy/v1 PodDisruptionBudget": _check_budget,
    "rbac.authorization.k8s.io/v1 ClusterRole": _check_role,
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": _check_binding,
    "rbac.authorization.k8s.io/v1 Role": _check_role,
    "rbac.authorization.k8s.io/v1 RoleBinding": _check_binding,
    "scheduling.k8s.io/v1 PriorityClass": _check_priority,
    "v1 Endpoints": _check_endpoints,
    "v1 LimitRange": _check_limits,
    "v1 Namespace": _check_namespace,
    "v1 ResourceQuota": _check_quota,
}
