"""What pods need that is neither in the bundle nor in the cluster, so that they do not start: objects that they name,
nodes that they ask for, and storage classes of their claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.json_values import items, mapping, maps, value_at
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, FieldPath, Listing, Reads, ReviewRule, StateFacts
from provisioner.review.rights.accounts import Makers
from provisioner.review.workloads.mounts import CLAIM
from provisioner.review.workloads.pod_specs import Mention, PodSpec, mentions, pod_specs
from provisioner.review.workloads.workload_changes import DAEMON_SET, STATEFUL_SET
from provisioner.selectors import selects
from provisioner.values import (
    Action,
    Content,
    Finding,
    GroupKind,
    JsonObject,
    Manifest,
    ObjectIdentity,
    ObjectRef,
    Section,
    Severity,
)

_MISSING = ReviewRule("SEC-04", Section.AVAILABILITY, Severity.BREAKING)
_MADE_LATER = ReviewRule("SEC-04", Section.AVAILABILITY, Severity.NOTABLE)
_MISSING_UNKNOWN = ReviewRule("SEC-04", Section.AVAILABILITY, Severity.UNKNOWN)
_NO_PULL_SECRET = ReviewRule("IMG-09", Section.AVAILABILITY, Severity.DANGEROUS)
_NO_MACHINE = ReviewRule("IMG-10", Section.AVAILABILITY, Severity.BREAKING)
_NO_NODE = ReviewRule("IMG-10", Section.AVAILABILITY, Severity.DANGEROUS)
_ON_NO_NODE = ReviewRule("IMG-10", Section.AVAILABILITY, Severity.NOTABLE)
_NODE_UNKNOWN = ReviewRule("IMG-10", Section.AVAILABILITY, Severity.UNKNOWN)
_CLASS_GONE = ReviewRule("AVL-06", Section.AVAILABILITY, Severity.BREAKING)
_CLASS_ABSENT = ReviewRule("AVL-06", Section.AVAILABILITY, Severity.DANGEROUS)
_CLASS_UNKNOWN = ReviewRule("AVL-06", Section.AVAILABILITY, Severity.UNKNOWN)

_IN_EVERY_NAMESPACE = frozenset(
    {("ConfigMap", "kube-root-ca.crt"), ("ConfigMap", "openshift-service-ca.crt"), ("ServiceAccount", "default")}
)

_ARCHITECTURE, _SYSTEM = "kubernetes.io/arch", "kubernetes.io/os"
_NAME = "metadata.name"
_NODES = Listing("", "v1", "Node")  # whole: taints stand in the spec
_KEEPS_OFF = frozenset({"NoSchedule", "NoExecute"})
# These taints come and go with the state of a node: what they say holds for a moment.
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")

_VOLUME = GroupKind("", "PersistentVolume")
_CLASS = GroupKind("storage.k8s.io", "StorageClass")
_CLASSES = Listing("storage.k8s.io", "v1", "StorageClass", metadata_only=True)
_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def compare_needs(facts: Facts) -> Iterator[Finding]:
    brought = {ref.identity: obj for ref, obj in facts.state().named}
    earlier = {ref.identity: obj for ref, obj in facts.previous_state().named}
    pods_before = pod_specs(facts.previous_state().objects)
    before = {mention.ref.identity for pod in pods_before for mention in mentions(pod)}
    deleted = {planned.ref.identity for planned in facts.plan.actions if planned.action is Action.DELETE}
    makers = Makers(facts)
    seen = set()
    for pod in pod_specs(facts.state().objects):
        for mention in mentions(pod):
            ref = mention.ref
            if (pod.ref, ref, mention.key) in seen or mention.is_optional or not pod.ref.namespace:
                continue
            seen.add((pod.ref, ref, mention.key))
            if ref.identity in brought:
                # A key that an object of the bundle has not. One that comes without any is to be filled by somebody.
                keys = _keys(brought[ref.identity])
                if mention.key and mention.key not in keys:
                    is_missing = keys or mention.key in _keys(earlier.get(ref.identity))
                    rule, variant = (_MISSING, "no-key") if is_missing else (_MADE_LATER, "empty")
                    key = [str(ref), mention.key]
                    yield rule.finding(variant, pod.ref, where=pod.path, key=key, reads=ref, name=mention.key)
            elif (ref.kind, ref.name) not in _IN_EVERY_NAMESPACE:
                is_known = ref.identity in before or facts.previous is None
                goes = ref.identity in deleted
                yield from _judge_absent(mention, facts, makers, is_known=is_known, goes=goes)
        yield from _judge_files(pod, brought)


def _keys(obj: JsonObject | None) -> set[str]:
    return {key for part in ("data", "binaryData", "stringData") for key in mapping((obj or {}).get(part))}


def _judge_files(pod: PodSpec, brought: Mapping[ObjectIdentity, JsonObject]) -> Iterator[Finding]:
    """Find single files that containers mount of an object of the bundle which has no such key, or renames it."""
    volumes = {str(volume.get("name")): volume for volume in maps(pod.body.get("volumes"))}
    for container in pod.containers():
        for mount in maps(container.body.get("volumeMounts")):
            file, volume = str(mount.get("subPath") or ""), volumes.get(str(mount.get("name")), {})
            source = mapping(volume.get("configMap") or volume.get("secret"))
            name = str(source.get("name") or source.get("secretName") or "")
            ref = ObjectRef("", "v1", "ConfigMap" if "configMap" in volume else "Secret", pod.ref.namespace, name)
            keys = _keys(brought.get(ref.identity))
            paths = {str(item.get("path")) for item in maps(source.get("items"))} or keys
            if file and keys and not any(path == file or path.startswith(f"{file}/") for path in paths):
                params = {"container": container.name, "reads": ref, "file": file, "path": mount.get("mountPath")}
                key = [container.name, str(ref), file]
                yield _MISSING.finding("no-file", pod.ref, where=container.path, key=key, **params)


def _judge_absent(mention: Mention, facts: Facts, makers: Makers, *, is_known: bool, goes: bool) -> Iterator[Finding]:
    """Judge what is not in the bundle: whether the cluster has it, or will have it."""
    exists = facts.around.exists.get(mention.ref.identity)
    if exists and not goes:
        return
    maker, able = makers.with_result(mention.ref), makers.able(mention)
    if facts.is_offline and not goes and (maker or able or is_known):
        return  # nobody can look, and it is as before
    if goes:
        rule, variant = _MISSING, "deleted"
    elif facts.is_offline:
        rule, variant = _MADE_LATER, "not-in-bundle"
    else:
        rule, variant = (_MISSING_UNKNOWN, "unknown") if exists is None else (_MISSING, "absent")
    if maker or able:
        rule, variant = _MADE_LATER, "made-later" if maker else variant
    elif mention.is_pull_secret and rule is _MISSING:
        rule = _NO_PULL_SECRET
    pod, key = mention.pod, [str(mention.ref), mention.key]
    params = {"reads": mention.ref, "kind": mention.ref.kind, "maker": maker, **able}
    yield rule.finding(variant, pod.ref, where=pod.path, key=key, **params)


def mention_needs(facts: Facts) -> Iterator[ObjectRef]:
    brought = {manifest.ref.identity for manifest in facts.content.manifests}
    for pod in pod_specs(tuple(manifest.body for manifest in facts.content.manifests)):
        for mention in mentions(pod):
            is_everywhere = (mention.ref.kind, mention.ref.name) in _IN_EVERY_NAMESPACE
            is_needed = pod.ref.namespace and not (mention.is_optional or is_everywhere)
            if is_needed and mention.ref.identity not in brought:
                yield mention.ref


@dataclass(frozen=True, slots=True)
class _Node:
    """Its labels, with its name where a term asks for that, and the taints that stay."""

    labels: Mapping[str, Any]
    taints: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, obj: JsonObject) -> _Node:
        labels = {**mapping(value_at(obj, "metadata", "labels")), _NAME: ObjectRef.of(obj).name}
        taints = maps(value_at(obj, "spec", "taints"))
        stay = (taint for taint in taints if not str(taint.get("key")).startswith(_PASSING))
        return cls(labels, tuple(taint for taint in stay if taint.get("effect") in _KEEPS_OFF))

    def has_labels(self, wanted: Mapping[str, Any]) -> bool:
        return all(self.labels.get(key) == value for key, value in wanted.items())

    def fits(self, pod: PodSpec) -> bool:
        """Whether the node has what the pod asks for, whatever its taints say."""
        if not self.has_labels(mapping(pod.body.get("nodeSelector"))):
            return False
        terms = _required_terms(pod)
        return terms is None or any(self._fits_term(_requirements(term)) for term in terms)

    def _fits_term(self, requirements: list[Mapping[str, Any]]) -> bool:
        """Whether all requirements of a term hold; one without any fits nothing."""
        for requirement in requirements:
            operator = requirement.get("operator")
            if operator not in {"Gt", "Lt"}:
                if not selects({"matchExpressions": [requirement]}, self.labels):
                    return False
                continue
            try:
                value = int(str(self.labels.get(str(requirement.get("key")))))
                limit = int(str(items(requirement.get("values"))[0]))
            except (ValueError, IndexError):
                return False
            if not (value > limit if operator == "Gt" else value < limit):
                return False
        return bool(requirements)

    def untolerated(self, pod: PodSpec) -> list[str]:
        """The taints that keep the pod off, as kubectl writes them."""
        tolerations = maps(pod.body.get("tolerations"))
        found = []
        for taint in self.taints:
            if not any(_tolerates(toleration, taint) for toleration in tolerations):
                value = f"={taint['value']}" if taint.get("value") else ""
                found.append(f"{taint.get('key')}{value}:{taint.get('effect')}")
        return found


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """As the scheduler has it; an operator that only newer ones know is taken to tolerate."""
    if toleration.get("effect") and toleration.get("effect") != taint.get("effect"):
        return False
    if toleration.get("key") and toleration.get("key") != taint.get("key"):
        return False
    if (toleration.get("operator") or "Equal") == "Equal":
        return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")
    return True


def judge_nodes(state: StateFacts) -> Iterator[Finding]:
    """Find pods that no node can run: none has what they ask for, or all that have it keep them off by their taints."""
    listed = state.around.lists.get(_NODES)
    if state.is_offline:
        return
    nodes = [_Node.of(obj) for obj in (listed.objects if listed else ())]
    is_whole = listed is not None and listed.is_whole
    for pod in pod_specs(state.objects):
        fitting = [node for node in nodes if node.fits(pod)]
        if any(not node.untolerated(pod) for node in fitting):
            continue
        rule, then = (_ON_NO_NODE, "runs-none") if pod.ref.group_kind == DAEMON_SET else (_NO_NODE, "waits")
        if is_whole and fitting:
            taints = sorted({taint for node in fitting for taint in node.untolerated(pod)})
            variant = "every-node-tainted" if len(fitting) == len(nodes) else "fitting-nodes-tainted"
            params: dict[str, Any] = {"taints": taints, "nodes": len(fitting), "then": then}
            yield rule.finding(variant, pod.ref, where=(*pod.path, "tolerations"), key="taints", **params)
        elif _asks_for_nodes(pod):
            wanted = mapping(pod.body.get("nodeSelector"))
            where, asked = (*pod.path, "nodeSelector"), _describe_nodes(pod)
            # Nearly every bundle asks for Linux, and nearly every cluster has it.
            asks_little = _required_terms(pod) is None and dict(wanted) == {_SYSTEM: "linux"}
            if not is_whole and not asks_little:
                yield _NODE_UNKNOWN.finding("unknown", pod.ref, where=where, key=asked, asked=asked)
            elif is_whole and nodes:
                machine = {key: wanted[key] for key in (_ARCHITECTURE, _SYSTEM) if key in wanted}
                if machine and not any(node.has_labels(machine) for node in nodes):
                    rule, then = _NO_MACHINE, "never-starts"
                yield rule.finding("no-node", pod.ref, where=where, key=asked, asked=asked, nodes=len(nodes), then=then)


def _required_terms(pod: PodSpec) -> list[Mapping[str, Any]] | None:
    """Return what node affinity requires, one of which has to fit; None where it requires nothing."""
    affinity = mapping(value_at(pod.body, "affinity", "nodeAffinity"))
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return maps(mapping(required).get("nodeSelectorTerms")) if required else None


def _requirements(term: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*maps(term.get("matchExpressions")), *maps(term.get("matchFields"))]


def _asks_for_nodes(pod: PodSpec) -> bool:
    return bool(mapping(pod.body.get("nodeSelector"))) or _required_terms(pod) is not None


def _describe_nodes(pod: PodSpec) -> str:
    """Return what a pod asks of its node, in words: `arch arm64, disk In (ssd)`."""
    wanted = mapping(pod.body.get("nodeSelector"))
    words = [f"{str(key).removeprefix('kubernetes.io/')} {value}" for key, value in sorted(wanted.items())]
    terms = []
    for term in _required_terms(pod) or ():
        parts = []
        for requirement in _requirements(term):
            values = ", ".join(map(str, items(requirement.get("values"))))
            parts.append(f"{requirement.get('key')} {requirement.get('operator')}{f' ({values})' if values else ''}")
        terms.append(" and ".join(parts))
    return ", ".join([*words, *([" or ".join(terms)] if terms else [])])


def list_nodes(facts: Facts) -> Iterator[Listing]:
    """Bundles that say nothing of nodes are those that any cluster runs: theirs are not read."""
    pods = pod_specs(tuple(manifest.body for manifest in facts.content.manifests))
    if any(_asks_for_nodes(pod) or maps(pod.body.get("tolerations")) for pod in pods):
        yield _NODES


@dataclass(frozen=True, slots=True)
class _ClaimedClass:
    """The class that a claim, or a template of claims, of an object asks for: "" for the default one."""

    ref: ObjectRef
    path: FieldPath
    name: str

    @property
    def class_ref(self) -> ObjectRef:
        return ObjectRef(_CLASS.group, "v1", _CLASS.kind, "", self.name)


def compare_storage_classes(facts: Facts) -> Iterator[Finding]:
    brought = {manifest.ref.identity for manifest in facts.content.manifests}
    actions = {planned.ref.identity: planned.action for planned in facts.plan.actions}
    own = [manifest.body for manifest in facts.content.manifests if manifest.ref.group_kind == _CLASS]
    listed = facts.around.lists.get(_CLASSES)
    classes = (*own, *(listed.objects if listed else ()))
    has_default = any(value_at(obj, "metadata", "annotations", key) == "true" for obj in classes for key in _IS_DEFAULT)
    for claimed in _find_claimed_classes(facts.content):
        is_new = actions.get(claimed.ref.identity) in {Action.CREATE, Action.REPLACE}
        goes = actions.get(claimed.class_ref.identity) is Action.DELETE
        exists = facts.around.exists.get(claimed.class_ref.identity)
        if not claimed.name:
            # A claim that names no class: somebody has to have made one the default.
            if is_new and not facts.is_offline and not has_default:
                is_known = listed is not None and listed.is_whole
                rule, variant = (_CLASS_ABSENT, "no-default") if is_known else (_CLASS_UNKNOWN, "default-unknown")
                yield rule.finding(variant, claimed.ref, where=claimed.path, key="default")
            continue
        if claimed.class_ref.identity in brought:
            continue
        if goes:
            rule, variant = _CLASS_GONE if is_new else _CLASS_ABSENT, "class-deleted"
        elif facts.is_offline or exists or (claimed.ref.group_kind == CLAIM and not is_new):
            continue
        else:
            rule, variant = (_CLASS_UNKNOWN, "class-unknown") if exists is None else (_CLASS_ABSENT, "no-class")
        yield rule.finding(variant, claimed.ref, where=claimed.path, key=claimed.name, **{"class": claimed.name})


def _find_claimed_classes(content: Content) -> Iterator[_ClaimedClass]:
    """Yield the classes that claims ask for, but for those of volumes that the bundle brings itself."""
    volumes = (
        mapping(manifest.body.get("spec")) for manifest in content.manifests if manifest.ref.group_kind == _VOLUME
    )
    own = {str(volume.get("storageClassName") or "") for volume in volumes}
    for manifest in content.manifests:
        for path, claim in _find_claim_specs(manifest):
            name = str(claim.get("storageClassName") or "")
            # "" written down asks for a volume without a class, not for the default.
            if (name or claim.get("storageClassName") is None) and name not in own:
                yield _ClaimedClass(manifest.ref, (*path, "storageClassName"), name)


def _find_claim_specs(manifest: Manifest) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    """Yield the spec of a claim, of templates of claims, and of claims that pods bring along, each with its path."""
    spec = mapping(manifest.body.get("spec"))
    if manifest.ref.group_kind == CLAIM and not spec.get("volumeName"):
        yield ("spec",), spec
    elif manifest.ref.group_kind == STATEFUL_SET:
        for at, template in enumerate(maps(spec.get("volumeClaimTemplates"))):
            yield ("spec", "volumeClaimTemplates", at, "spec"), mapping(template.get("spec"))
    for pod in pod_specs((manifest.body,)):
        for at, volume in enumerate(maps(pod.body.get("volumes"))):
            template = mapping(value_at(volume, "ephemeral", "volumeClaimTemplate"))
            if template:
                path = (*pod.path, "volumes", at, "ephemeral", "volumeClaimTemplate", "spec")
                yield path, mapping(template.get("spec"))


def mention_storage_classes(facts: Facts) -> Iterator[ObjectRef]:
    yield from (claimed.class_ref for claimed in _find_claimed_classes(facts.content) if claimed.name)


def list_storage_classes(facts: Facts) -> Iterator[Listing]:
    writes = {Action.CREATE, Action.REPLACE}
    new = {planned.ref.identity for planned in facts.plan.actions if planned.action in writes}
    if any(not claimed.name and claimed.ref.identity in new for claimed in _find_claimed_classes(facts.content)):
        yield _CLASSES


NEEDS_CHECK = Check(
    "needs of pods",
    claims=(Claim("IMG-09", PODS, ("{pod}.imagePullSecrets",), is_of_new=True),),
    changes=compare_needs,
    mentions=mention_needs,
    reads=frozenset({Reads.ROLES}),
)
NODES_CHECK = Check("nodes", standing=judge_nodes, lists=list_nodes)
_CLASS_CLAIMS = (
    Claim("AVL-06", frozenset({CLAIM}), ("spec.storageClassName",), is_of_new=True),
    Claim("AVL-06", frozenset({STATEFUL_SET}), ("spec.volumeClaimTemplates.*.spec.storageClassName",), is_of_new=True),
    Claim("AVL-06", PODS, ("{pod}.volumes.*.ephemeral.volumeClaimTemplate.spec.storageClassName",)),
)
STORAGE_CHECK = Check(
    "storage classes",
    claims=_CLASS_CLAIMS,
    changes=compare_storage_classes,
    mentions=mention_storage_classes,
    lists=list_storage_classes,
)
