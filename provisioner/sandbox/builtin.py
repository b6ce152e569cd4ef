"""The fields of built-in kinds and their types, taken at run time from the model classes of the Kubernetes client.

Beside cluster/client/connection.py this is the one place that imports `kubernetes`: for its tables of fields alone.
What the classes do not say of fields is added here: Kubernetes' own types show there as `object` and `str`, words for a
choice not at all; and the classes are those of a later version, with fields that this one does not have. Classes and
fields are named as the client names them. What a list is (a map by keys, a set, atomic) says fields.py.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubernetes.client import models

from provisioner.sandbox.kinds import SandboxKind

INT_OR_STRING, QUANTITY = "IntOrString", "Quantity"


def _by_class(words: str) -> dict[str, tuple[str, ...]]:
    """Fields by class, of `Class:field,field` words."""
    pairs = (word.split(":") for word in words.split())
    return {name: tuple(fields.split(",")) for name, fields in pairs}


_INTS_OR_STRINGS = _by_class(
    "V1HTTPGetAction:port V1TCPSocketAction:port V1ServicePort:targetPort V1NetworkPolicyPort:port "
    "V1PodDisruptionBudgetSpec:maxUnavailable,minAvailable V1RollingUpdateDaemonSet:maxSurge,maxUnavailable "
    "V1RollingUpdateDeployment:maxSurge,maxUnavailable V1RollingUpdateStatefulSetStrategy:maxUnavailable"
)
# Of maps it is the values that are quantities.
_QUANTITIES = _by_class(
    "V1ContainerStatus:allocatedResources V1EmptyDirVolumeSource:sizeLimit V1NodeStatus:allocatable,capacity "
    "V1LimitRangeItem:default,defaultRequest,max,maxLimitRequestRatio,min V1Overhead:podFixed "
    "V1PersistentVolumeClaimStatus:allocatedResources,capacity V1PersistentVolumeSpec:capacity V1PodSpec:overhead "
    "V1PodStatus:allocatedResources V1ResourceFieldSelector:divisor V1ResourceQuotaSpec:hard "
    "V1ResourceQuotaStatus:hard,used V1ResourceRequirements:limits,requests "
    "V1VolumeResourceRequirements:limits,requests V2HPAScalingRules:tolerance V2MetricTarget:averageValue,value "
    "V2MetricValueStatus:averageValue,value"
)
_LATER = _by_class(
    "V1ClusterTrustBundleProjection:user V1ConfigMapVolumeSource:defaultUser V1DownwardAPIVolumeFile:user "
    "V1DownwardAPIVolumeSource:defaultUser V1EmptyDirVolumeSource:mode V1GRPCAction:mode V1HTTPGetAction:protocol "
    "V1JobSpec:scheduling V1KeyToPath:user V1NodeSpec:podPreemptionPolicy V1NodeSystemInfo:runningInUserNamespace "
    "V1PersistentVolumeClaimStatus:healthStatus V1PodCertificateProjection:user V1PodSpec:evictionResponders "
    "V1PodStatus:volumeHealth V1ProjectedVolumeSource:defaultUser V1SecretVolumeSource:defaultUser "
    "V1ServiceAccountTokenProjection:user V1VolumeMount:bindMountOptions "
    "V2HorizontalPodAutoscalerCondition:observedGeneration"
)
_REQUIRED: dict[str, frozenset[str]] = {
    "V1ControllerRevision": frozenset({"revision"}),
    **dict.fromkeys(("V1DaemonSet", "V1Deployment", "V1ReplicaSet", "V1StatefulSet"), frozenset()),
    **dict.fromkeys(
        ("V1DaemonSetCondition", "V1DeploymentCondition", "V1ReplicaSetCondition", "V1StatefulSetCondition"),
        frozenset({"status", "type"}),
    ),
}
_SIGNALS = (
    "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP "
    "TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX"
)
_STOP_SIGNALS = (
    *(f"SIG{name}" for name in _SIGNALS.split()),
    *(f"SIGRTMIN+{number}" for number in range(1, 16)),
    *(f"SIGRTMAX-{number}" for number in range(1, 15)),
)
# By the words for a choice: the fields, or lists of them, that hold one. Fields of a status are left out.
_CHOICES: dict[tuple[str, ...], Mapping[str, tuple[str, ...]]] = {
    _STOP_SIGNALS: _by_class("V1Lifecycle:stopSignal"),
    ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"): _by_class(
        "V1HostPathVolumeSource:type"
    ),
    ("", "IPv4", "IPv6"): _by_class("V1ServiceSpec:ipFamilies"),
    **{
        tuple(choice.split()): _by_class(fields)
        for choice, fields in {
            "Equivalent Exact": "V1MatchResources:matchPolicy V1MutatingWebhook:matchPolicy "
            "V1ValidatingWebhook:matchPolicy",
            "Fail Ignore": "V1MutatingAdmissionPolicySpec:failurePolicy V1MutatingWebhook:failurePolicy "
            "V1ValidatingAdmissionPolicySpec:failurePolicy V1ValidatingWebhook:failurePolicy",
            "IfNeeded Never": "V1MutatingAdmissionPolicySpec:reinvocationPolicy V1MutatingWebhook:reinvocationPolicy",
            "None NoneOnDryRun Some Unknown": "V1MutatingWebhook:sideEffects V1ValidatingWebhook:sideEffects",
            "ApplyConfiguration JSONPatch": "V1Mutation:patchType",
            "* CONNECT CREATE DELETE UPDATE": "V1NamedRuleWithOperations:operations V1RuleWithOperations:operations",
            "* Cluster Namespaced": "V1NamedRuleWithOperations:scope V1RuleWithOperations:scope",
            "Audit Deny Warn": "V1ValidatingAdmissionPolicyBindingSpec:validationActions",
            "OnDelete RollingUpdate": "V1DaemonSetUpdateStrategy:type V1StatefulSetUpdateStrategy:type",
            "Recreate RollingUpdate": "V1DeploymentStrategy:type",
            "OrderedReady Parallel": "V1StatefulSetSpec:podManagementPolicy",
            "Allow Forbid Replace": "V1CronJobSpec:concurrencyPolicy",
            "Indexed NonIndexed": "V1JobSpec:completionMode",
            "Failed TerminatingOrFailed": "V1JobSpec:podReplacementPolicy",
            "In NotIn": "V1PodFailurePolicyOnExitCodesRequirement:operator",
            "Count FailIndex FailJob Ignore": "V1PodFailurePolicyRule:action",
            "Localhost RuntimeDefault Unconfined": "V1AppArmorProfile:type V1SeccompProfile:type",
            "None ReadOnly ReadWrite": "V1AzureDiskVolumeSource:cachingMode",
            "Dedicated Managed Shared": "V1AzureDiskVolumeSource:kind",
            "Always IfNotPresent Never": "V1Container:imagePullPolicy V1EphemeralContainer:imagePullPolicy "
            "V1ImageVolumeSource:pullPolicy",
            "FallbackToLogsOnError File": "V1Container:terminationMessagePolicy "
            "V1EphemeralContainer:terminationMessagePolicy",
            "SCTP TCP UDP": "V1ContainerPort:protocol CoreV1EndpointPort:protocol V1ServicePort:protocol "
            "DiscoveryV1EndpointPort:protocol V1NetworkPolicyPort:protocol",
            "HTTP HTTPS": "V1HTTPGetAction:scheme",
            "DoesNotExist Exists Gt In Lt NotIn": "V1NodeSelectorRequirement:operator",
            "ReadOnlyMany ReadWriteMany ReadWriteOnce ReadWriteOncePod": "V1PersistentVolumeClaimSpec:accessModes "
            "V1PersistentVolumeSpec:accessModes",
            "Block Filesystem": "V1PersistentVolumeClaimSpec:volumeMode V1PersistentVolumeSpec:volumeMode",
            "Delete Recycle Retain": "V1PersistentVolumeSpec:persistentVolumeReclaimPolicy "
            "V1StorageClass:reclaimPolicy",
            "Always OnRootMismatch": "V1PodSecurityContext:fsGroupChangePolicy",
            "Merge Strict": "V1PodSecurityContext:supplementalGroupsPolicy",
            "ClusterFirst ClusterFirstWithHostNet Default None": "V1PodSpec:dnsPolicy",
            "Never PreemptLowerPriority": "V1PodSpec:preemptionPolicy V1PriorityClass:preemptionPolicy",
            "Always Never OnFailure": "V1PodSpec:restartPolicy",
            "BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating PriorityClass Terminating "
            "VolumeAttributesClass": "V1ResourceQuotaSpec:scopes V1ScopedResourceSelectorRequirement:scopeName",
            "DoesNotExist Exists In NotIn": "V1ScopedResourceSelectorRequirement:operator",
            "Default Unmasked": "V1SecurityContext:procMount",
            "Cluster Local": "V1ServiceSpec:externalTrafficPolicy,internalTrafficPolicy",
            "PreferDualStack RequireDualStack SingleStack": "V1ServiceSpec:ipFamilyPolicy",
            "ClientIP None": "V1ServiceSpec:sessionAffinity",
            "ClusterIP ExternalName LoadBalancer NodePort": "V1ServiceSpec:type",
            "NoExecute NoSchedule PreferNoSchedule": "V1Taint:effect V1Toleration:effect",
            "Equal Exists Gt Lt": "V1Toleration:operator",
            "Honor Ignore": "V1TopologySpreadConstraint:nodeAffinityPolicy,nodeTaintsPolicy",
            "DoNotSchedule ScheduleAnyway": "V1TopologySpreadConstraint:whenUnsatisfiable",
            "Bidirectional HostToContainer None": "V1VolumeMount:mountPropagation",
            "FQDN IPv4 IPv6": "V1EndpointSlice:addressType",
            "Exact ImplementationSpecific Prefix": "V1HTTPIngressPath:pathType",
            "Egress Ingress": "V1NetworkPolicySpec:policyTypes",
            "AlwaysAllow IfHealthyBudget": "V1PodDisruptionBudgetSpec:unhealthyPodEvictionPolicy",
            "Immediate WaitForFirstConsumer": "V1StorageClass:volumeBindingMode",
        }.items()
    },
}
_CHOICE_OF = {
    (model, name): tuple(sorted(choice))
    for choice, fields in _CHOICES.items()
    for model, names in fields.items()
    for name in names
}


def form_of(model: str, name: str, form: str) -> str:
    """The type of a field, with INT_OR_STRING and QUANTITY where the class says `object` or `str`."""
    if name in _INTS_OR_STRINGS.get(model, ()):
        return INT_OR_STRING
    if name in _QUANTITIES.get(model, ()):
        return QUANTITY if form == "str" else form.replace("str]", f"{QUANTITY}]")
    return form


_LIST = re.compile(r"^[Ll]ist\[(?P<inner>.+)\]$")
_MAP = re.compile(r"^[Dd]ict\[str, ?(?P<inner>.+)\]$")
# Their values are free-form, or typed otherwise than the classes say.
_FREE = {"V1FieldsV1", "V1JSONSchemaProps", "object"}
_META = "V1ObjectMeta"
_PLAIN: dict[str, tuple[tuple[type, ...], str, str]] = {
    "str": ((str,), "string", "string"),
    QUANTITY: ((str,), "string", "string"),
    "bytes": ((str,), "string", "[]uint8"),
    "datetime": ((str,), "string", "v1.Time"),
    "bool": ((bool,), "boolean", "bool"),
    "int": ((int,), "numeric (int)", "int32"),
    "float": ((int, float), "numeric", "float64"),
}


@dataclass(slots=True)
class Reading:
    """An object as its kind declares it: `undeclared` as `spec.containers[0].x`, `wrong` the first wrong type.

    `wrong` is (path with dots only, what JSON has, what Go expects, what a typed patch expects, the value).
    """

    after: Any = None
    undeclared: list[str] = field(default_factory=list)
    wrong: tuple[str, str, str, str, Any] | None = None


def read(kind: SandboxKind, obj: dict[str, Any]) -> Reading:
    """`obj` with its declared fields only and without nulls."""
    reading = Reading()
    reading.after = _read_field(reading, model_name(kind), obj, "")
    return reading


def read_metadata(meta: Any) -> Reading:
    """The metadata of any object, custom ones included."""
    reading = Reading()
    reading.after = _read_field(reading, _META, meta, "metadata")
    return reading


def model_name(kind: SandboxKind) -> str:
    """The class of a built-in kind; "object" (anything goes) where the client has none."""
    version = kind.version.capitalize()
    group = kind.group.partition(".")[0].capitalize() or "Core"
    names = (f"{version}{kind.kind}", f"{group}{version}{kind.kind}")
    return next((name for name in names if _fields(name) is not None), "object")


@functools.cache
def field_type(model: str, names: tuple[str, ...]) -> tuple[str, str, str]:
    """(class that holds it, its name there, its type) of the field at `names`; types of list items are looked into."""
    holder, name, found = "", "", model
    for name in names:
        found = _item_type(found)
        inner = _MAP.match(found)
        if inner:
            holder, found = "", inner["inner"]
            continue
        fields = _fields(found)
        if fields is None or name not in fields:
            return "", name, "object"
        holder, found = found, fields[name]
    return holder, name, found


def _item_type(form: str) -> str:
    while inner := _LIST.match(form):
        form = inner["inner"]
    return form


def _read_field(reading: Reading, form: str, value: Any, at: str) -> Any:
    if value is None:
        return None
    inner = _LIST.match(form)
    if inner:
        if not isinstance(value, list):
            return _refuse(reading, at, value, "list", inner["inner"])
        return [_read_field(reading, inner["inner"], item, f"{at}[{number}]") for number, item in enumerate(value)]
    inner = _MAP.match(form)
    fields = None if inner else _fields(form)
    if inner or fields is not None:
        if not isinstance(value, dict):
            return _refuse(reading, at, value, "map", form)
        if inner:
            # In a map of plain values, a null is of a wrong type, and not left out.
            read_item = _read_plain if inner["inner"] in _PLAIN else _read_field
            return {key: read_item(reading, inner["inner"], item, f"{at}.{key}") for key, item in value.items()}
        made = {}
        for key, item in value.items():
            place = f"{at}.{key}" if at else key
            if key not in (fields or {}):
                reading.undeclared.append(place)
            elif fields and item is not None:
                made[key] = _read_field(reading, fields[key], item, place)
        return made
    if form in _PLAIN:
        return _read_plain(reading, form, value, at)
    return value


def _read_plain(reading: Reading, form: str, value: Any, at: str) -> Any:
    types, expected, _ = _PLAIN[form]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if form == QUANTITY and is_number:
        return json.dumps(value)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return _refuse(reading, at, value, expected, form)
    return value


def _refuse(reading: Reading, at: str, value: Any, expected: str, form: str) -> Any:
    if reading.wrong is None:
        named = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}
        go = _PLAIN[form][2] if form in _PLAIN else f"map[string]{form}" if expected == "map" else f"[]{form}"
        reading.wrong = (re.sub(r"\[\d+\]", "", at), named.get(type(value), "value"), go, expected, value)
    return value


@functools.cache
def _fields(name: str) -> dict[str, str] | None:
    """The types of a class's fields by their names in JSON; None for what is no class, or free-form."""
    found = getattr(models, name, None) if name not in _FREE and name[:1].isupper() else None
    if found is None or not hasattr(found, "openapi_types"):
        return None
    return {
        alias: form_of(name, alias, found.openapi_types[own])
        for own, alias in found.attribute_map.items()
        if alias not in _LATER.get(name, ())
    }


@dataclass(frozen=True, slots=True)
class Field:
    """A field as its class describes it; `form` is its type in the words of the class: `str`, `List[V1Container]`.

    `choice`: the words of which it, or each item of its list, is one; () where it may be any.
    """

    name: str
    form: str
    description: str
    is_required: bool
    choice: tuple[str, ...] = ()


def described(name: str) -> tuple[str, list[Field]] | None:
    """(what the class is, its fields by name); None for what is no class, or free-form."""
    forms = _fields(name)
    if forms is None:
        return None
    model = getattr(models, name)
    about = inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0].strip()
    found = []
    for own, alias in model.attribute_map.items():
        if alias not in forms:
            continue
        info = model.model_fields.get(own)
        is_required = alias in _REQUIRED[name] if name in _REQUIRED else bool(info and info.is_required())
        choice = _CHOICE_OF.get((name, alias), ())
        found.append(Field(alias, forms[alias], (info.description if info else "") or "", is_required, choice))
    return about, sorted(found, key=lambda it: it.name)


def unwrapped(form: str) -> tuple[str, str]:
    """("list" | "map" | "", the form inside) of a form."""
    for word, pattern in (("list", _LIST), ("map", _MAP)):
        inner = pattern.match(form)
        if inner:
            return word, inner["inner"]
    return "", form
