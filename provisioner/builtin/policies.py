"""What the API server refuses of autoscalers, budgets, quotas, priorities, roles and admission."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from provisioner.api_groups import RBAC_GROUP
from provisioner.builtin import forms, metadata
from provisioner.builtin.changes import Change, FieldRefusal, ObjectNode, is_number, quoted, texts

HIGHEST_PRIORITY = 1_000_000_000
_TARGETS = ("averageUtilization", "averageValue", "value")
# The field of each type of metric, and the targets that it may have.
_METRICS = {
    "ContainerResource": ("containerResource", ["averageUtilization", "averageValue"]),
    "External": ("external", ["averageValue", "value"]),
    "Object": ("object", ["averageValue", "value"]),
    "Pods": ("pods", ["averageValue"]),
    "Resource": ("resource", ["averageUtilization", "averageValue"]),
}
_POD_SECURITY, _MODES = "pod-security.kubernetes.io/", ("enforce", "audit", "warn")
_LEVELS = ("privileged", "baseline", "restricted")
_VERSION = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")
_WHOLE = frozenset(
    {"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"}
    | {"services.nodeports", "services.loadbalancers"}
)
_AMOUNTS = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})
_AGAINST = (frozenset({"BestEffort", "NotBestEffort"}), frozenset({"Terminating", "NotTerminating"}))
_SCOPES = _AGAINST[0] | _AGAINST[1] | {"CrossNamespacePodAffinity", "PriorityClass", "VolumeAttributesClass"}
_NOT_OF_PODS = (_WHOLE - {"pods"}) | {
    "requests.storage",
    "ephemeral-storage",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
}
_LIMITED = ("Container", "PersistentVolumeClaim", "Pod")
# In a range of limits the first must not be above the second.
_ORDERED = (
    ("min", "max"),
    ("min", "default"),
    ("min", "defaultRequest"),
    ("default", "max"),
    ("defaultRequest", "max"),
    ("defaultRequest", "default"),
)
_OF_MACHINE = "must not be of the machine or its link"


def _check_autoscaler(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    least, most = spec.get("minReplicas"), spec.get("maxReplicas")
    yield from spec.check_least(1, "maxReplicas")
    if is_number(least) and is_number(most) and 1 <= most < least:
        yield spec.refuse(f"must not be below minReplicas, which is {least}; it is {most}", "maxReplicas")
    if least == 0 and not any(metric.get("type") in ("External", "Object") for metric in spec.items("metrics")):
        yield spec.refuse("must be at least 1 where no metric is External or Object", "minReplicas")
    target = spec.at("scaleTargetRef")
    if not target.get("apiVersion") and target.get("kind") != "ReplicationController":
        yield target.refuse("must name the group of the target", "apiVersion")
    yield from spec.check_least(1, "targetCPUUtilizationPercentage")
    for metric in spec.items("metrics"):
        yield from _check_metric(metric)
    for direction in ("scaleUp", "scaleDown"):
        rules = spec.at("behavior", direction)
        if rules.get("policies") == []:
            yield rules.refuse("must not be empty", "policies")
        tolerance = forms.quantity(rules.get("tolerance"))
        if tolerance is not None and tolerance < 0:
            yield rules.refuse("must not be below 0", "tolerance")


def _check_metric(metric: ObjectNode) -> Iterator[FieldRefusal]:
    kind = str(metric.get("type") or "")
    if kind not in _METRICS:
        return
    field, allowed = _METRICS[kind]
    if metric.get(field) is None:
        yield metric.refuse(f"is missing, and the type is {kind}", field)
        return
    for other, _ in _METRICS.values():
        if other != field and metric.get(other) is not None:
            yield metric.refuse(f"must not be set where the type is {kind}", other)
    target = metric.at(field, "target")
    given = [key for key in _TARGETS if target.get(key) is not None]
    if not set(given) & set(allowed):
        yield target.refuse(f"is missing; a target of type {kind} needs {' or '.join(allowed)}", allowed[0])
    elif len(set(given) & set(allowed)) > 1:
        yield target.refuse(f"must have one of {' and '.join(allowed)}")
    for key in given:
        amount = forms.quantity(target.get(key))
        if amount is not None and amount <= 0:
            yield target.refuse("must be above 0", key)


def _check_budget(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield spec.refuse("must not have both minAvailable and maxUnavailable")
    for key in ("minAvailable", "maxUnavailable"):
        value = spec.get(key)
        if isinstance(value, str) and (not forms.is_percent(value) or int(value[:-1]) > 100):
            yield spec.refuse_value("must be a number or a percentage up to 100%", key)
        yield from spec.check_least(0, key)
    yield from metadata.check_selector(spec.at("selector"))


def _check_priority(change: Change) -> Iterator[FieldRefusal]:
    value = change.new.get("value")
    if is_number(value) and value > HIGHEST_PRIORITY:
        yield change.root.refuse(f"must be at most {HIGHEST_PRIORITY}, and is {value}", "value")


def _check_namespace(change: Change) -> Iterator[FieldRefusal]:
    labels = change.root.at("metadata", "labels")
    for key, value in labels.value.items():
        _, _, mode = str(key).partition(_POD_SECURITY)
        if mode in _MODES:
            yield from labels.check_choice(_LEVELS, str(key))
        elif mode.removesuffix("-version") in _MODES and not _VERSION.fullmatch(str(value)):
            yield labels.refuse_value("must be latest or a version such as v1.36", str(key))


def _check_quota(change: Change) -> Iterator[FieldRefusal]:
    spec, scopes, hard = change.spec, set(texts(change.spec.get("scopes"))), change.spec.at("hard")
    if not scopes <= _SCOPES:
        yield spec.refuse(f"must be of {', '.join(sorted(_SCOPES))}", "scopes")
    if any(pair <= scopes for pair in _AGAINST):
        yield spec.refuse("must not hold a scope and its opposite", "scopes")
    counted, is_of_pods = set(hard.value), bool(scopes & _SCOPES - {"VolumeAttributesClass"})
    if ("BestEffort" in scopes and counted - {"pods"}) or (is_of_pods and counted & _NOT_OF_PODS):
        yield spec.refuse("do not fit to what is counted", "scopes")
    if change.old is not None and scopes != set(texts(change.old_spec.get("scopes"))):
        yield spec.refuse_change("scopes")
    for requirement in spec.at("scopeSelector").items("matchExpressions"):
        operator = requirement.get("operator")
        if operator in ("In", "NotIn") and not requirement.get("values"):
            yield requirement.refuse(f"must not be empty where the operator is {operator}", "values")
    for name, value in hard.value.items():
        amount, plain = forms.quantity(value), str(name).removeprefix("requests.").removeprefix("limits.")
        if amount is not None and amount < 0:
            yield hard.refuse(f"must not be below 0, and is {quoted(value)}", str(name))
        is_known = name in _WHOLE or plain in _AMOUNTS or plain.startswith("hugepages-")
        if not (forms.is_qualified_name(str(name)) if "/" in str(name) else is_known):
            yield hard.refuse(f"must be the name of a resource, and is {quoted(name)}", str(name))
        elif amount is not None and name in _WHOLE and amount != amount.to_integral_value():
            yield hard.refuse(f"must be a whole number, and is {quoted(value)}", str(name))


def _check_slice(change: Change) -> Iterator[FieldRefusal]:
    kind = change.new.get("addressType")
    for endpoint in change.root.items("endpoints"):
        for place, address in enumerate(texts(endpoint.get("addresses"))):
            is_of_kind = forms.is_ip(address) and (":" in address) is (kind == "IPv6")
            if not (forms.is_subdomain(address) if kind == "FQDN" else is_of_kind):
                words = f"must be an address of type {kind}, and is {quoted(address)}"
                yield endpoint.refuse(words, "addresses", place)
            elif forms.is_special_ip(address):
                yield endpoint.refuse(f"{_OF_MACHINE}: {quoted(address)}", "addresses", place)
        node = endpoint.get("nodeName")
        if isinstance(node, str) and not forms.is_subdomain(node):
            yield endpoint.refuse_value("must be the name of a node", "nodeName")
    yield from change.root.check_unique("ports", "name")


def _check_endpoints(change: Change) -> Iterator[FieldRefusal]:
    for subset in change.root.items("subsets"):
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield subset.refuse("must have addresses or notReadyAddresses")
        for key in ("addresses", "notReadyAddresses"):
            for address in subset.items(key):
                if forms.is_special_ip(str(address.get("ip"))):
                    yield address.refuse(f"{_OF_MACHINE}: {quoted(address.get('ip'))}", "ip")
        ports = list(subset.items("ports"))
        for port in ports if len(ports) > 1 else ():
            if not port.get("name"):
                yield port.refuse("is missing, and there is more than one port", "name")


def _check_limits(change: Change) -> Iterator[FieldRefusal]:
    seen: set[str] = set()
    for limit in change.spec.items("limits"):
        kind = str(limit.get("type") or "")
        if kind in seen:
            yield limit.refuse(f"stands there twice: {quoted(kind)}", "type")
        seen.add(kind)
        if kind not in _LIMITED and "/" not in kind:
            yield limit.refuse(f"must be one of {', '.join(_LIMITED)}, and is {quoted(kind)}", "type")
        for key in ("default", "defaultRequest") if kind == "Pod" else ():
            if limit.get(key):
                yield limit.refuse("must not be set where the type is Pod", key)
        for low, high in _ORDERED:
            for name, value in limit.at(low).value.items():
                upper = limit.at(high).value.get(name)
                amount, most = forms.quantity(value), forms.quantity(upper)
                if amount is not None and most is not None and amount > most:
                    yield limit.refuse(f"must not be above {high}, which is {quoted(upper)}", low, str(name))


def _check_role(change: Change) -> Iterator[FieldRefusal]:
    role, gathered = change.root, change.root.at("aggregationRule")
    if change.new.get("aggregationRule") is not None and not gathered.get("clusterRoleSelectors"):
        yield gathered.refuse("must not be empty", "clusterRoleSelectors")
    for rule in role.items("rules"):
        if not rule.get("verbs"):
            yield rule.refuse("must name at least one verb", "verbs")
        if not rule.get("nonResourceURLs"):
            for key in ("apiGroups", "resources"):
                if not rule.get(key):
                    yield rule.refuse("must not be empty", key)
        elif role.get("kind") == "Role":
            yield rule.refuse("must not be set in a role of a namespace", "nonResourceURLs")
        elif any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
            yield rule.refuse("must not stand beside resources", "nonResourceURLs")
    for selector in gathered.items("clusterRoleSelectors"):
        yield from metadata.check_selector(selector)


def _check_binding(change: Change) -> Iterator[FieldRefusal]:
    is_cluster, role = change.new.get("kind") == "ClusterRoleBinding", change.root.at("roleRef")
    if role.get("apiGroup") not in (None, "", RBAC_GROUP):
        yield role.refuse_value(f"must be {RBAC_GROUP}", "apiGroup")
    allowed = ("ClusterRole",) if is_cluster else ("ClusterRole", "Role")
    if role.get("kind") not in allowed:
        yield role.refuse(f"must be {' or '.join(allowed)}, and is {quoted(role.get('kind') or '')}", "kind")
    for subject in change.root.items("subjects"):
        kind, group = subject.get("kind"), subject.get("apiGroup") or ""
        if kind in ("User", "Group") and group not in ("", RBAC_GROUP):
            yield subject.refuse_value(f"must be {RBAC_GROUP}", "apiGroup")
        if kind != "ServiceAccount":
            continue
        name = str(subject.get("name") or "")
        if name and not forms.is_subdomain(name):
            yield subject.refuse_value("must be the name of an account", "name")
        if group:
            yield subject.refuse_value("must be empty for an account", "apiGroup")
        if not subject.get("namespace") and is_cluster:
            yield subject.refuse("is missing", "namespace")


def _check_webhooks(change: Change) -> Iterator[FieldRefusal]:
    for webhook in change.root.items("webhooks"):
        name = str(webhook.get("name") or "")
        if name.count(".") < 2:
            yield webhook.refuse(f"must have at least three parts with dots between, and is {quoted(name)}", "name")
        yield from _check_client(webhook.at("clientConfig"))
        for key in ("namespaceSelector", "objectSelector"):
            yield from metadata.check_selector(webhook.at(key))
        for rule in webhook.items("rules"):
            yield from _check_rule(rule)
        versions = texts(webhook.get("admissionReviewVersions"))
        for place, version in enumerate(versions):
            if version in versions[:place]:
                yield webhook.refuse(f"stands there twice: {quoted(version)}", "admissionReviewVersions", place)


def _check_client(client: ObjectNode) -> Iterator[FieldRefusal]:
    given, service = client.get("url"), client.at("service")
    if (given is None) == (client.get("service") is None):
        yield client.refuse("must have a url or a service")
    if given is not None and not str(given).startswith("https://"):
        yield client.refuse("must begin with https://", "url")
    # Asked about one of them, the server names the other: the table has neither.
    for key in ("name", "namespace") if client.get("service") is not None else ():
        if not service.get(key):
            yield service.refuse("must not be empty", key)
    path = service.get("path")
    parts = path.removesuffix("/").split("/")[1:] if isinstance(path, str) and path != "/" else []
    if not all(forms.is_subdomain(part) for part in parts):
        yield service.refuse_value("must be names with single slashes between", "path")
    try:
        url = urlsplit(str(given or "https://host"))
        is_plain = url.username is None and not url.query and not url.fragment and bool(url.hostname)
    except ValueError:
        is_plain = False
    if not is_plain:
        yield client.refuse("must have a host, and no user, query or fragment", "url")


def _check_rule(rule: ObjectNode) -> Iterator[FieldRefusal]:
    for key in ("apiGroups", "apiVersions", "operations"):
        given = texts(rule.get(key))
        if "*" in given and len(given) > 1:
            yield rule.refuse("must name nothing else beside *", key)
    resources = texts(rule.get("resources"))
    if "*/*" in resources and len(resources) > 1:
        yield rule.refuse("must name nothing else beside */*", "resources")
    whole = {resource for resource in resources if "/" not in resource}
    if "*" in whole and len(whole) > 1:
        yield rule.refuse("must name nothing else without a subresource beside *", "resources")


def _check_admission_policy(change: Change) -> Iterator[FieldRefusal]:
    if not change.spec.get("validations") and not change.spec.get("auditAnnotations"):
        yield change.spec.refuse("must not be empty where auditAnnotations is", "validations")
    for rule in change.spec.at("matchConstraints").items("resourceRules"):
        yield from _check_rule(rule)


def _check_admission_binding(change: Change) -> Iterator[FieldRefusal]:
    if {"Deny", "Warn"} <= set(texts(change.spec.get("validationActions"))):
        yield change.spec.refuse("must not hold both Deny and Warn", "validationActions")
    if change.spec.get("paramRef") is None:
        return
    parameters = change.spec.at("paramRef")
    if bool(parameters.get("name")) == (parameters.get("selector") is not None):
        yield parameters.refuse("must have a name or a selector, and not both")
    if not parameters.get("parameterNotFoundAction"):
        yield parameters.refuse("is missing", "parameterNotFoundAction")


def _check_api_service(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    wanted = f"{spec.get('version')}.{spec.get('group')}"
    name = str(change.root.get("metadata", "name") or "")
    if name != wanted:
        yield change.root.refuse(f"must be {quoted(wanted)}, and is {quoted(name)}", "metadata", "name")
    if spec.get("insecureSkipTLSVerify") is True and spec.get("caBundle"):
        yield spec.refuse("must not be true where there is a caBundle", "insecureSkipTLSVerify")


def has_expressions(change: Change) -> bool:
    """Whether an object holds CEL, which only the server compiles."""
    if change.new.get("kind") in ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"):
        return True
    return any(webhook.get("matchConditions") for webhook in change.root.items("webhooks"))


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
