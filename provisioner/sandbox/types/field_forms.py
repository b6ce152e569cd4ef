"""What the client's model classes do not say of fields as an API server of this version publishes them.

Kubernetes' own types show there as `object` and `str`, words for a choice not at all; and the classes are those of a
later version, with fields that this one does not have. Classes and fields are named as the client names them.
"""

from __future__ import annotations

from collections.abc import Mapping

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


def is_served(model: str, name: str) -> bool:
    """Whether a field of a class is one of this version."""
    return name not in _LATER.get(model, ())


def form_of(model: str, name: str, form: str) -> str:
    """The type of a field, with INT_OR_STRING and QUANTITY where the class says `object` or `str`."""
    if name in _INTS_OR_STRINGS.get(model, ()):
        return INT_OR_STRING
    if name in _QUANTITIES.get(model, ()):
        return QUANTITY if form == "str" else form.replace("str]", f"{QUANTITY}]")
    return form


def is_required(model: str, name: str, is_so: bool) -> bool:
    """Whether a field must be there; `is_so` is what the class says."""
    return name in _REQUIRED[model] if model in _REQUIRED else is_so


def choice_of(model: str, name: str) -> tuple[str, ...]:
    """The words of which a field, or each item of its list, is one; () where it may be any."""
    return _CHOICE_OF.get((model, name), ())
