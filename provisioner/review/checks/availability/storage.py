"""Storage classes that claims ask for and nobody has, or that they leave to a default: pods wait for their volumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, Listing, ReviewRule, mapping, maps
from provisioner.review.workloads.mounts import CLAIM
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.review.workloads.workload_changes import STATEFUL_SET
from provisioner.values import Action, Content, Finding, GroupKind, JsonObject, Manifest, ObjectRef, Section, Severity

_GONE = ReviewRule("AVL-06", Section.AVAILABILITY, Severity.BREAKING)
_ABSENT = ReviewRule("AVL-06", Section.AVAILABILITY, Severity.DANGEROUS)
_UNKNOWN = ReviewRule("AVL-06", Section.AVAILABILITY, Severity.UNKNOWN)
_VOLUME = GroupKind("", "PersistentVolume")
_CLASS = GroupKind("storage.k8s.io", "StorageClass")
_CLASSES = Listing("storage.k8s.io", "v1", "StorageClass", metadata_only=True)
_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A claim, or a template of claims, of an object, with the class that it asks for: "" for the default one."""

    ref: ObjectRef
    path: _Path
    name: str

    @property
    def of(self) -> ObjectRef:
        return ObjectRef("storage.k8s.io", "v1", "StorageClass", "", self.name)


def _changes(facts: Facts) -> Iterator[Finding]:
    brought = {one.ref.identity for one in facts.content.manifests}
    actions = {one.ref.identity: one.action for one in facts.plan.actions}
    for asked in _asked(facts.content):
        is_new = actions.get(asked.ref.identity) in {Action.CREATE, Action.REPLACE}
        if not asked.name:
            yield from _of_default(asked, facts) if is_new else ()
        elif asked.of.identity not in brought:
            goes = actions.get(asked.of.identity) is Action.DELETE
            yield from _of_class(asked, facts, is_new=is_new, goes=goes)


def _of_class(asked: _Asked, facts: Facts, *, is_new: bool, goes: bool) -> Iterator[Finding]:
    exists = facts.around.exists.get(asked.of.identity)
    rule, variant = _ABSENT, "no-class"
    if goes:
        rule, variant = _GONE if is_new else _ABSENT, "class-deleted"
    elif facts.is_offline or exists or (asked.ref.group_kind == CLAIM and not is_new):
        return
    elif exists is None:
        rule, variant = _UNKNOWN, "class-unknown"
    yield rule.finding(variant, asked.ref, where=asked.path, key=asked.name, **{"class": asked.name})


def _of_default(asked: _Asked, facts: Facts) -> Iterator[Finding]:
    """A claim that names no class: somebody has to have made one the default."""
    own = [one.body for one in facts.content.manifests if one.ref.group_kind == _CLASS]
    listed = facts.around.lists.get(_CLASSES)
    if facts.is_offline or any(map(_is_default, (*own, *(listed.objects if listed else ())))):
        return
    is_known = listed is not None and listed.is_whole
    rule, variant = (_ABSENT, "no-default") if is_known else (_UNKNOWN, "default-unknown")
    yield rule.finding(variant, asked.ref, where=asked.path, key="default")


def _is_default(obj: JsonObject) -> bool:
    annotations = mapping(mapping(obj.get("metadata")).get("annotations"))
    return any(annotations.get(key) == "true" for key in _IS_DEFAULT)


def _asked(content: Content) -> Iterator[_Asked]:
    """Classes that claims ask for, but for those of volumes that the bundle brings itself."""
    own = {
        str(mapping(one.body.get("spec")).get("storageClassName") or "")
        for one in content.manifests
        if one.ref.group_kind == _VOLUME
    }
    for manifest in content.manifests:
        for path, claim in _claims(manifest):
            name = str(claim.get("storageClassName") or "")
            # "" written down asks for a volume without a class, not for the default.
            if (name or claim.get("storageClassName") is None) and name not in own:
                yield _Asked(manifest.ref, (*path, "storageClassName"), name)


def _claims(manifest: Manifest) -> Iterator[tuple[_Path, Mapping[str, Any]]]:
    """The spec of a claim, of templates of claims, and of claims that pods bring along, each with its path."""
    spec = mapping(manifest.body.get("spec"))
    if manifest.ref.group_kind == CLAIM and not spec.get("volumeName"):
        yield ("spec",), spec
    elif manifest.ref.group_kind == STATEFUL_SET:
        for at, one in enumerate(maps(spec.get("volumeClaimTemplates"))):
            yield ("spec", "volumeClaimTemplates", at, "spec"), mapping(one.get("spec"))
    for pod in pod_specs((manifest.body,)):
        for at, volume in enumerate(maps(pod.body.get("volumes"))):
            template = mapping(mapping(volume.get("ephemeral")).get("volumeClaimTemplate"))
            if template:
                path = (*pod.path, "volumes", at, "ephemeral", "volumeClaimTemplate", "spec")
                yield path, mapping(template.get("spec"))


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    yield from (one.of for one in _asked(facts.content) if one.name)


def _lists(facts: Facts) -> Iterator[Listing]:
    created = {one.ref.identity for one in facts.plan.actions if one.action in {Action.CREATE, Action.REPLACE}}
    if any(not one.name and one.ref.identity in created for one in _asked(facts.content)):
        yield _CLASSES


_CLAIMS = (
    Claim("AVL-06", frozenset({CLAIM}), ("spec.storageClassName",), is_of_new=True),
    Claim("AVL-06", frozenset({STATEFUL_SET}), ("spec.volumeClaimTemplates.*.spec.storageClassName",), is_of_new=True),
    Claim("AVL-06", PODS, ("{pod}.volumes.*.ephemeral.volumeClaimTemplate.spec.storageClassName",)),
)

CHECK = Check("storage classes", claims=_CLAIMS, changes=_changes, mentions=_mentions, lists=_lists)
