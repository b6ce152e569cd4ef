"""Which fields namespace, namePrefix, commonLabels and images change, as in kustomize, and references that follow them.

Steps of a path lead through lists. Fields of custom resources, arguments and texts that name an object are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP, RBAC_GROUP
from provisioner.builtin import POD_PATHS
from provisioner.json_values import items, mapping
from provisioner.render.patches.config import ImageEntry
from provisioner.render.targets import BUILT_IN
from provisioner.values import GroupKind, JsonObject, ObjectRef

Names = Mapping[tuple[GroupKind, str, str], tuple[str, str]]
"""By kind, namespace and name of an object before: its namespace and name after. Once more below ANYWHERE, for objects
that name it without a namespace and have none."""
ANYWHERE = "*"
_Steps = tuple[str, ...]
_Renamed = Callable[..., tuple[str, str] | None]
_SERVICE = GroupKind("", "Service")

_KINDS = {
    "ConfigMap": "", "Secret": "", "Service": "", "ServiceAccount": "", "PersistentVolume": "", "Role": RBAC_GROUP,
    "PersistentVolumeClaim": "", "ClusterRole": RBAC_GROUP, "StorageClass": "storage.k8s.io",
    "PriorityClass": "scheduling.k8s.io", "IngressClass": "networking.k8s.io",
    "ValidatingAdmissionPolicy": ADMISSION_GROUP,
}  # fmt: skip
_IN_CONTAINERS = {
    "ConfigMap": ("env.valueFrom.configMapKeyRef.name", "envFrom.configMapRef.name"),
    "Secret": ("env.valueFrom.secretKeyRef.name", "envFrom.secretRef.name"),
}
_IN_PODS = {
    "ConfigMap": ("volumes.configMap.name", "volumes.projected.sources.configMap.name"),
    "Secret": ("volumes.secret.secretName", "volumes.projected.sources.secret.name", "imagePullSecrets.name"),
    "ServiceAccount": ("serviceAccountName",),
    "PersistentVolumeClaim": ("volumes.persistentVolumeClaim.claimName",),
    "PriorityClass": ("priorityClassName",),
}
# By the kind of the object that names another: the kind that it names, and where.
_REFERENCES = {
    "Ingress": (
        ("Secret", "spec.tls.secretName"),
        ("Service", "spec.rules.http.paths.backend.service.name"),
        ("Service", "spec.defaultBackend.service.name"),
        ("IngressClass", "spec.ingressClassName"),
    ),
    "StatefulSet": (
        ("Service", "spec.serviceName"),
        ("StorageClass", "spec.volumeClaimTemplates.spec.storageClassName"),
    ),
    "ServiceAccount": (("Secret", "imagePullSecrets.name"),),
    "PersistentVolumeClaim": (("PersistentVolume", "spec.volumeName"), ("StorageClass", "spec.storageClassName")),
    "PersistentVolume": (("StorageClass", "spec.storageClassName"), ("Secret", "spec.azureFile.secretName")),
    "ValidatingAdmissionPolicyBinding": (("ValidatingAdmissionPolicy", "spec.policyName"),),
    "Role": (("ConfigMap", "rules.resourceNames"), ("Secret", "rules.resourceNames")),
    "ClusterRole": tuple((kind, "rules.resourceNames") for kind in ("ConfigMap", "Secret", "PersistentVolume")),
}
_ANNOTATIONS = {
    "nginx.ingress.kubernetes.io/fastcgi-params-configmap": "ConfigMap",
    "ingress.kubernetes.io/auth-secret": "Secret",
    "nginx.ingress.kubernetes.io/auth-secret": "Secret",
    "nginx.ingress.kubernetes.io/auth-tls-secret": "Secret",
}
# Where a Service stands with its name and namespace; the kinds that are named with their kind.
_SERVICES = {
    "APIService": "spec.service",
    "CustomResourceDefinition": "spec.conversion.webhook.clientConfig.service",
    "MutatingWebhookConfiguration": "webhooks.clientConfig.service",
    "ValidatingWebhookConfiguration": "webhooks.clientConfig.service",
}
_NAMED_BY_KIND = {
    "RoleBinding": ("roleRef", "subjects"),
    "ClusterRoleBinding": ("roleRef", "subjects"),
    "HorizontalPodAutoscaler": ("spec.scaleTargetRef",),
}
_UNPREFIXED = frozenset({"CustomResourceDefinition", "APIService", "Namespace"})

_OF_WORKLOAD = ("spec.selector.matchLabels", "spec.template.metadata.labels")
# By kind: where labels are made, and where they are added to others.
_MADE_LABELS = {
    "Service": ("spec.selector",),
    "ReplicationController": ("spec.selector", "spec.template.metadata.labels"),
    "Deployment": _OF_WORKLOAD,
    "ReplicaSet": _OF_WORKLOAD,
    "DaemonSet": _OF_WORKLOAD,
    "StatefulSet": (*_OF_WORKLOAD, "spec.volumeClaimTemplates[].metadata.labels"),
    "Job": ("spec.template.metadata.labels",),
    "CronJob": ("spec.jobTemplate.metadata.labels", "spec.jobTemplate.spec.template.metadata.labels"),
}
_OF_SCHEDULING = (
    *(
        f"spec.template.spec.affinity.{kind}.{when}.labelSelector.matchLabels"
        for kind in ("podAffinity", "podAntiAffinity")
        for when in (
            "preferredDuringSchedulingIgnoredDuringExecution.podAffinityTerm",
            "requiredDuringSchedulingIgnoredDuringExecution",
        )
    ),
    "spec.template.spec.topologySpreadConstraints.labelSelector.matchLabels",
)
_ADDED_LABELS = {
    "Deployment": _OF_SCHEDULING,
    "StatefulSet": _OF_SCHEDULING,
    "Job": ("spec.selector.matchLabels",),
    "CronJob": ("spec.jobTemplate.spec.selector.matchLabels",),
    "PodDisruptionBudget": ("spec.selector.matchLabels",),
    "NetworkPolicy": tuple(f"spec.{where}podSelector.matchLabels" for where in ("", "ingress.from.", "egress.to.")),
}


def set_names(body: JsonObject, ref: ObjectRef, namespace: str, prefix: str) -> None:
    """Move an object, unless its kind is known to have no namespace, and rename it, unless more than references hangs
    on its name. A Namespace is called like the new one."""
    if namespace and BUILT_IN.get(ref.group_kind) is not False:
        body["metadata"]["namespace"] = namespace
    if namespace and ref.group_kind == GroupKind("", "Namespace"):
        body["metadata"]["name"] = namespace
    if ref.kind not in _UNPREFIXED:
        body["metadata"]["name"] = prefix + ref.name


def set_other_namespaces(body: JsonObject, ref: ObjectRef, namespace: str) -> None:
    """Set the namespace where kustomize does whether or not the bundle has what is named."""
    if ref.kind in ("APIService", "CustomResourceDefinition"):
        for service in _mappings_at(body, _SERVICES[ref.kind]):
            service["namespace"] = namespace
    if ref.kind in ("RoleBinding", "ClusterRoleBinding"):
        for subject in _mappings_at(body, "subjects"):
            if subject.get("name") == "default":
                subject["namespace"] = namespace


def add_labels(body: JsonObject, ref: ObjectRef, labels: Mapping[str, str]) -> None:
    """Label an object and the pods that it makes, and select them by the same labels."""
    made = ("metadata.labels", *_MADE_LABELS.get(ref.kind, ()))
    for path, is_made in (
        *((step, True) for step in made),
        *((step, False) for step in _ADDED_LABELS.get(ref.kind, ())),
    ):
        *above, last = path.split(".")
        for holder in _holders(body, (*above, last), is_made=is_made):
            holder[last] = {**mapping(holder.get(last)), **labels}


def find_containers(body: JsonObject, ref: ObjectRef) -> list[dict[str, Any]]:
    """What an object has in lists called containers or initContainers, wherever they are, but for a CRD's."""
    found: list[dict[str, Any]] = []
    pending: list[Any] = [] if ref.kind == "CustomResourceDefinition" else [body]
    while pending:
        value = pending.pop()
        pending += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for name in ("containers", "initContainers") if isinstance(value, dict) else ():
            listed = value.get(name)
            found += [container for container in items(listed) if isinstance(container, dict)]
    return found


def changed_image(image: object, change: ImageEntry) -> str:
    """What an image becomes, "" where it has another name."""
    if not isinstance(image, str):
        return ""
    named, _, digest = image.partition("@")
    # A colon before a slash is that of a port.
    name, colon, tag = named.rpartition(":")
    if not colon or "/" in tag:
        name, tag = named, ""
    if name != change.name:
        return ""
    if change.new_tag or change.digest:
        tag, digest = change.new_tag, change.digest
    return (change.new_name or name) + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


def follow_names(body: JsonObject, before: ObjectRef, names: Names) -> None:
    """Have an object name others as they are called now; `before` is what it was itself, with its namespace."""

    def renamed(group_kind: GroupKind, name: object, namespace: str = before.namespace) -> tuple[str, str] | None:
        inside = "" if BUILT_IN.get(group_kind) is False else namespace or ANYWHERE
        return names.get((group_kind, inside, name)) if isinstance(name, str) else None

    for referred, steps in _paths_of(before.kind):
        group_kind, last = GroupKind(_KINDS[referred], referred), steps[-1]
        for holder in _holders(body, steps):
            if isinstance(listed := holder[last], list):
                holder[last] = [(renamed(group_kind, name) or ("", name))[1] for name in listed]
            elif new := renamed(group_kind, listed):
                holder[last] = new[1]
    for service in _mappings_at(body, _SERVICES.get(before.kind, "")):
        if new := renamed(_SERVICE, service.get("name"), *_namespace_in(service)):
            service["namespace"], service["name"] = new
    for path in _NAMED_BY_KIND.get(before.kind, ()):
        for named in _mappings_at(body, path):
            _follow_kind(named, renamed, before.namespace)


def _follow_kind(named: dict[str, Any], renamed: _Renamed, namespace: str) -> None:
    """Of a value that states the kind of what it names, and of a ServiceAccount its namespace, too, where it moved."""
    kind, version = str(named.get("kind")), str(named.get("apiVersion") or "")
    group = str(named.get("apiGroup") or version.rpartition("/")[0])
    if new := renamed(GroupKind(group, kind), named.get("name"), *_namespace_in(named)):
        named["name"] = new[1]
        if kind == "ServiceAccount" and new[0] != (named.get("namespace") or namespace):
            named["namespace"] = new[0]


def _namespace_in(named: Mapping[str, Any]) -> tuple[str, ...]:
    """The namespace that stands beside a name, none for that of the object itself."""
    return (str(named["namespace"]),) if named.get("namespace") else ()


def _paths_of(kind: str) -> Iterator[tuple[str, _Steps]]:
    """The kinds that an object of this kind names, each with the steps to where it does."""
    for referred, path in _REFERENCES.get(kind, ()):
        yield referred, tuple(path.split("."))
    if kind == "Ingress":
        for annotation, referred in _ANNOTATIONS.items():
            yield referred, ("metadata", "annotations", annotation)
    if pod := POD_PATHS.get(kind):
        for referred, path in _each(_IN_PODS):
            yield referred, (*pod, *path.split("."))
        for referred, path in _each(_IN_CONTAINERS):
            for containers in ("containers", "initContainers"):
                yield referred, (*pod, containers, *path.split("."))


def _each(table: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    for kind, paths in table.items():
        for path in paths:
            yield kind, path


def _mappings_at(body: JsonObject, path: str) -> Iterator[dict[str, Any]]:
    """The mappings that a path leads to, or that are in a list there; "" leads nowhere."""
    steps = tuple(path.split("."))
    for holder in _holders(body, steps):
        found = holder[steps[-1]]
        yield from (value for value in (found if isinstance(found, list) else [found]) if isinstance(value, dict))


def _holders(value: Any, steps: _Steps, *, is_made: bool = False) -> Iterator[dict[str, Any]]:
    """The mappings that the last of `steps` is a key of; with `is_made` also where it is not, and what leads there, but
    for a list, which has [] in its step."""
    if isinstance(value, list):
        for item in value:
            yield from _holders(item, steps, is_made=is_made)
    elif isinstance(value, dict):
        step, rest = steps[0], steps[1:]
        if not rest:
            if is_made or step in value:
                yield value
            return
        if is_made and value.get(step) is None and not step.endswith("[]"):
            value[step] = {}
        step = step.removesuffix("[]")
        if step in value:
            yield from _holders(value[step], rest, is_made=is_made)
