"""What changes between two versions of a CRD, and for whom."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from provisioner.schema.allowance import limited
from provisioner.schema.definition.crd import Crd, CrdVersion
from provisioner.schema.definition.validation import update_errors
from provisioner.schema.diff.migration import migration_steps
from provisioner.schema.diff.versions import compare_served
from provisioner.schema.diff.walk import compare_schemas
from provisioner.schema.fields import DEEPEST, FieldError, is_too_deep, same_json
from provisioner.schema.forms import form_errors, is_plain
from provisioner.schema.verdicts import (
    BEHAVIOUR,
    FOR_WRITERS,
    GONE,
    HARMLESS,
    NARROWED,
    REJECTED,
    B,
    D,
    SchemaChange,
    SchemaVerdict,
    harmless,
    undecided,
)
from provisioner.schema.version_order import kube_order
from provisioner.sentences import unescaped
from provisioner.values import Finding, JsonObject, ObjectRef, Severity, object_in, worst_first

SAID_ELSEWHERE = ("spec.scope", "spec.names.kind", "spec.group", "spec.names.plural", "status.storedVersions")
HTTPS = 443
INJECTORS = frozenset(f"cert-manager.io/inject-{what}" for what in ("ca-from", "ca-from-secret", "apiserver-ca")) | {
    "service.beta.openshift.io/inject-cabundle"
}
MAX_OBJECT_BYTES, MANY_OBJECT_BYTES, MAX_ANNOTATION_BYTES = 1_572_864, 1_048_576, 262_144


def compare(old_crd: JsonObject, new_crd: JsonObject) -> list[Finding]:
    """Every change from `old_crd` to `new_crd`, worst first; neither is changed.

    The CRDs may be v1 or v1beta1 and may lack schemas. `evidence["version"]` names the version concerned ("" for all);
    `evidence["live"]` is True where the stored objects decide whether a breaking change breaks anything. What cannot be
    decided is a finding of severity UNKNOWN. Raises InvalidManifest where one of the two is no object at all.
    """
    object_in(old_crd, "the old CRD")
    object_in(new_crd, "the new CRD")
    unread = [] if is_plain(old_crd) and is_plain(new_crd) else list(_unread(old_crd, new_crd))
    if unread:
        return [change.finding(_named(new_crd), "") for change in unread]
    with limited():
        return _compared(ObjectRef.of(new_crd), Crd(old_crd), Crd(new_crd))


def _compared(ref: ObjectRef, old: Crd, new: Crd) -> list[Finding]:
    found = [change.finding(ref, "") for change in _crd_changes(old, new)]
    for version, change in _version_changes(old, new):
        found.append(change.finding(ref, version))
    found += [change.finding(ref, version) for version, change in compare_served(old, new)]
    known = {(finding.rule, finding.path) for finding in found}
    found += [change.finding(ref, "") for change in _refused(old, new) if (change.rule, change.path) not in known]
    return list(worst_first(found))


def _named(crd: JsonObject) -> ObjectRef:
    """The CRD by its name, whatever else stands in it."""
    metadata = crd.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else ""
    return ObjectRef(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", name if isinstance(name, str) else ""
    )


def _unread(old: JsonObject, new: JsonObject) -> Iterator[SchemaChange]:
    """CRDs that have not the form of one. The API server refuses the new one unread, and never held such an old one."""
    if is_too_deep(old) or is_too_deep(new):
        yield undecided("SCH-60", (), f"nested deeper than {DEEPEST} levels: not compared")
        return
    for error in form_errors(new):
        yield SchemaChange(
            "CRD-19", (error.path,), f"the API server refuses the CRD: {unescaped(str(error))}", REJECTED
        )
    for error in form_errors(old):
        yield undecided("CRD-00", (error.path,), f"the CRD as it was cannot be read: {unescaped(str(error))}")


def _crd_changes(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    yield from _identity(old, new)
    yield from _versions(old, new)
    yield from _conversion(old, new)
    yield from _preserving(old, new)
    yield from _size(old, new)


def _size(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    size = _bytes(new)
    if size <= MAX_ANNOTATION_BYTES:
        return
    before = _bytes(old)
    if size > MANY_OBJECT_BYTES >= before or size > MAX_OBJECT_BYTES >= before:
        verdict = REJECTED if size > MAX_OBJECT_BYTES else SchemaVerdict(api=D)
        yield SchemaChange("CRD-20", (), f"the CRD has {size} bytes as JSON; etcd takes {MAX_OBJECT_BYTES}", verdict)
    elif before <= MAX_ANNOTATION_BYTES:
        words = f"the CRD has {size} bytes as JSON, more than client-side apply can note: it takes server-side apply"
        yield SchemaChange("CRD-20", (), words, SchemaVerdict(api=Severity.NOTABLE))


def _bytes(crd: Crd) -> int:
    try:
        return len(orjson.dumps(crd.body, default=dict))
    except TypeError:  # numbers past 64 bits, keys that are no texts
        return len(json.dumps(crd.body, default=dict, separators=(",", ":")))


def _identity(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    immutable = "the API server refuses it; it takes deleting the CRD, and all its objects with it"
    if old.scope != new.scope:
        yield SchemaChange(
            "CRD-01", ("spec", "scope"), f"scope {old.scope} became {new.scope}: {immutable}", _replaced()
        )
    if old.group != new.group or old.name != new.name:
        words = f"{old.name} became {new.name}: another CRD, the old one is left behind or deleted"
        yield SchemaChange("CRD-02", ("spec", "group"), words, _replaced())
    for rule, name in (("CRD-03", "plural"), ("CRD-04", "kind")):
        if old.names.get(name) != new.names.get(name):
            words = f"{name} {old.names.get(name)} became {new.names.get(name)}: {immutable}"
            yield SchemaChange(rule, ("spec", "names", name), words, _replaced())
    yield from _other_names(old, new)


def _other_names(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    for name in ("listKind", "singular"):
        if old.names.get(name) != new.names.get(name):
            words = f"{name} {old.names.get(name)} became {new.names.get(name)}"
            yield SchemaChange("CRD-05", ("spec", "names", name), words, FOR_WRITERS)
    for name in ("shortNames", "categories"):
        gone = sorted(set(old.names.get(name) or ()) - set(new.names.get(name) or ()))
        if gone:
            words = f"{name} {', '.join(gone)} removed: scripts that use them fail"
            yield SchemaChange("CRD-06", ("spec", "names", name), words, FOR_WRITERS)


def _replaced() -> SchemaVerdict:
    return SchemaVerdict(api=B, stored=B, writers=B, readers=B, rollback=B)


def _versions(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    path = ("spec", "versions")
    if old.served_versions and not new.served_versions:
        yield SchemaChange("CRD-14", path, "no version is served any more: every request gets 404", GONE)
    before, after = old.storage_version, new.storage_version
    if before is not None and after is not None and before.name != after.name:
        words = f"objects are stored as {after.name} from now on, not as {before.name}"
        # By then both are in status.storedVersions, and the API server takes back what still has both.
        if old.version(after.name) is None:
            words = f"{words}: no way back to the old CRD, which does not know {after.name}"
            yield SchemaChange("CRD-13b", path, words, SchemaVerdict(stored=D, rollback=B))
        else:
            words = f"{words}: back goes only what has both, as the old CRD does"
            yield SchemaChange("CRD-13", path, words, SchemaVerdict(stored=D, rollback=D))
    preferred = _preferred(old), _preferred(new)
    if all(preferred) and preferred[0] != preferred[1]:
        words = f"the preferred version is {preferred[1]} now, not {preferred[0]}: kubectl and discovery show that one"
        yield SchemaChange("CRD-17", path, words, SchemaVerdict(readers=D))


def _preferred(crd: Crd) -> str:
    names = [version.name for version in crd.served_versions]
    return max(names, key=kube_order) if names else ""


def _conversion(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    path = ("spec", "conversion")
    if new.uses_webhook and not old.uses_webhook:
        words = "objects are converted by a webhook now: every read across versions needs it"
        yield SchemaChange("CRD-21", path, words, SchemaVerdict(stored=D, writers=D, readers=D, rollback=D))
    elif old.uses_webhook and not new.uses_webhook:
        words = "objects are no longer converted: what is stored in the old shape is served as it is, and pruned"
        is_alike = len(new.versions) > 1 and new.shared_schema is not None and old.shared_schema is not None
        verdict = SchemaVerdict(stored=D, writers=D, readers=D, rollback=D) if is_alike else NARROWED
        yield SchemaChange("CRD-22", path, words, verdict)
    elif new.uses_webhook:
        yield from _webhook(old.conversion, new.conversion)
        yield from _injection(old, new)


def _webhook(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[SchemaChange]:
    path = ("spec", "conversion", "webhook")
    before, after = (_client(side) for side in (old, new))
    if {**before, "caBundle": None} != {**after, "caBundle": None}:
        words = "the conversion webhook is called at another place: nothing is converted until it answers there"
        yield SchemaChange("CRD-23", (*path, "clientConfig"), words, SchemaVerdict(stored=D, writers=D, readers=D))
    if before.get("caBundle") and not after.get("caBundle"):
        words = "caBundle removed: conversion fails until it is injected again"
        yield SchemaChange(
            "CRD-25", (*path, "clientConfig", "caBundle"), words, SchemaVerdict(stored=D, writers=D, readers=D)
        )
    reviewed = [list(side.get("conversionReviewVersions") or ()) for side in (old, new)]
    if "v1" in reviewed[0] and "v1" not in reviewed[1]:
        words = "the webhook no longer takes v1 reviews: conversion fails"
        yield SchemaChange("CRD-26", (*path, "conversionReviewVersions"), words, GONE)


def _injection(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    gone = sorted(INJECTORS & old.annotations.keys())
    if gone and INJECTORS.isdisjoint(new.annotations):
        words = f"annotation {gone[0]} removed: nothing injects the caBundle of the conversion webhook any more"
        yield SchemaChange(
            "CRD-25", ("metadata", "annotations", gone[0]), words, SchemaVerdict(stored=D, writers=D, readers=D)
        )


def _client(conversion: Mapping[str, Any]) -> dict[str, Any]:
    """How the webhook is called, with the API server's default."""
    found = conversion.get("webhookClientConfig")
    client = dict(found) if isinstance(found, Mapping) else {}
    service = client.get("service")
    if isinstance(service, Mapping):
        client["service"] = {**service, "port": service.get("port") or HTTPS}
    return client


def _preserving(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    path = ("spec", "preserveUnknownFields")
    if old.preserves_unknown and not new.preserves_unknown:
        words = "fields that the schema does not name are pruned from now on, everywhere"
        yield SchemaChange("CRD-27", path, words, NARROWED, is_live=True)
    elif new.preserves_unknown and not old.preserves_unknown and not new.is_v1beta1:
        yield SchemaChange("CRD-28", path, "preserveUnknownFields became true: the API server refuses it", REJECTED)


def _version_changes(old: Crd, new: Crd) -> Iterator[tuple[str, SchemaChange]]:
    for version in old.versions:
        now = new.version(version.name)
        if now is None:
            yield version.name, _removed_version(old, new, version)
            continue
        for change in _same_version(version, now):
            yield version.name, change
        preserved = (old.preserves_unknown, new.preserves_unknown)
        names = {"apiVersion": f"{new.group}/{now.name}", "kind": str(new.names.get("kind"))}
        for change in compare_schemas(version.schema, now.schema, preserved=preserved, type_meta=names):
            yield version.name, change
    yield from _lost_versions(old, new)
    for version in new.versions:
        if old.version(version.name) is None:
            yield version.name, harmless("CRD-15", ("spec", "versions", version.name), f"version {version.name} added")


def _lost_versions(old: Crd, new: Crd) -> Iterator[tuple[str, SchemaChange]]:
    """Versions in which objects are stored and which even the old CRD did not have any more."""
    for name in old.stored_versions:
        if old.version(name) is None and new.version(name) is None:
            words = f"objects may be stored as {name}, which is missing: the API server refuses every update without it"
            yield name, SchemaChange("CRD-10", ("spec", "versions", name), words, REJECTED)


def _removed_version(old: Crd, new: Crd, version: CrdVersion) -> SchemaChange:
    path = ("spec", "versions", version.name)
    if version.name in old.stored_versions:
        words = f"version {version.name} removed, though objects may still be stored in it: the API server refuses it"
        verdict = SchemaVerdict(api=B, stored=B, writers=B, readers=B, rollback=B)
        return SchemaChange("CRD-10", path, words, verdict, facts={"steps": migration_steps(old, new)})
    if version.is_served:
        words = f"version {version.name} removed: its clients get 404, and its managedFields break server-side apply"
        return SchemaChange("CRD-11", path, words, GONE)
    return harmless("CRD-11", path, f"version {version.name} removed, which was not served")


def _same_version(old: CrdVersion, new: CrdVersion) -> Iterator[SchemaChange]:
    path = ("spec", "versions", new.name)
    if old.is_served and not new.is_served:
        yield SchemaChange("CRD-12", path, f"version {new.name} is not served any more: its clients get 404", GONE)
    elif new.is_served and not old.is_served:
        yield harmless("CRD-15", path, f"version {new.name} is served now")
    if new.body.get("deprecated") and not old.body.get("deprecated"):
        yield harmless("CRD-16", path, f"version {new.name} is deprecated: clients get a warning")
    yield from _subresources(old, new)
    if old.body.get("additionalPrinterColumns") != new.body.get("additionalPrinterColumns"):
        yield harmless("CRD-33", (*path, "additionalPrinterColumns"), "what kubectl get shows changed")
    gone = sorted(set(old.selectable_fields) - set(new.selectable_fields))
    come = sorted(set(new.selectable_fields) - set(old.selectable_fields))
    if gone:
        words = f"field selectors on {', '.join(gone)} get 400"
        yield SchemaChange("CRD-34", (*path, "selectableFields"), words, SchemaVerdict(writers=D, readers=D))
    if come:
        words = f"field selectors on {', '.join(come)}: they need Kubernetes 1.31"
        yield harmless("CRD-35", (*path, "selectableFields"), words)


def _subresources(old: CrdVersion, new: CrdVersion) -> Iterator[SchemaChange]:
    path = ("spec", "versions", new.name, "subresources")
    if old.has_status and not new.has_status:
        words = "the status subresource is removed: controllers that write /status get 404"
        yield SchemaChange("CRD-29", (*path, "status"), words, GONE)
    elif new.has_status and not old.has_status:
        words = "a status subresource is added: status in ordinary writes is ignored from now on"
        yield SchemaChange("CRD-30", (*path, "status"), words, FOR_WRITERS)
    before, after = old.scale, new.scale
    if before is not None and after is None:
        words = "the scale subresource is removed: autoscalers and kubectl scale get 404"
        yield SchemaChange("CRD-31", (*path, "scale"), words, FOR_WRITERS, is_live=True)
    elif before is not None and after is not None and not same_json(before, after):
        words = "the paths of the scale subresource changed: autoscalers read and write other fields"
        yield SchemaChange("CRD-32", (*path, "scale"), words, BEHAVIOUR)
    elif after is not None and before is None:
        yield SchemaChange("CRD-32", (*path, "scale"), "a scale subresource is added", HARMLESS)


def _refused(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    """What else the API server would not accept. Of a v1beta1 CRD, which no current server takes, nothing is said."""
    if new.is_v1beta1:
        return
    errors = update_errors(old, new)
    known = set(update_errors(old, old)) if errors else set()
    for error in errors:
        if error.is_unknown:
            words = f"whether the API server accepts the CRD is not known: {error}"
            yield undecided("CRD-00", (error.path,), words)
        elif error not in known and not error.path.startswith(SAID_ELSEWHERE):
            rule = _rule_of(error)
            words = f"the API server refuses the CRD: {unescaped(str(error))}"
            yield SchemaChange(rule, (error.path,), words, REJECTED)


def _rule_of(error: FieldError) -> str:
    if "cost" in error.message and "x-kubernetes-validations" in str(error):
        return "SCH-43"
    if "compilation failed" in error.message:
        return "SCH-44"
    return {
        "spec.preserveUnknownFields": "CRD-28",
        "spec.conversion.webhookClientConfig.caBundle": "CRD-24",
        "metadata.annotations[api-approved.kubernetes.io]": "CRD-18",
    }.get(error.path, "SCH-28" if error.path.endswith("uniqueItems") else "CRD-19")
