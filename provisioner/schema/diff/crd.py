"""What changes between two versions of a CRD and for whom, between versions served at once, and for stored objects."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any

import orjson

from provisioner.json_values import mapping, value_at
from provisioner.schema.definition.crd import Crd, CrdVersion
from provisioner.schema.definition.validation import update_errors
from provisioner.schema.diff.walk import compare_schemas
from provisioner.schema.fields import DEEPEST, FieldError, is_too_deep, same_json
from provisioner.schema.forms import form_errors, is_plain
from provisioner.schema.inclusion.languages import limited
from provisioner.schema.names import kube_order
from provisioner.schema.verdicts import (
    BEHAVIOUR,
    DATA_LOST,
    FOR_WRITERS,
    GONE,
    NARROWED,
    NOT_DECIDED,
    REJECTED,
    B,
    D,
    Path,
    SchemaChange,
    SchemaVerdict,
    harmless,
    narrowed,
    undecided,
)
from provisioner.sentences import unescaped
from provisioner.values import Finding, JsonObject, ObjectRef, Severity, object_in, worst_first

REMOVED = frozenset({"SCH-01", "SCH-03", "SCH-19"})
DEFAULTS = frozenset({"SCH-06", "SCH-33", "SCH-34", "SCH-35"})
Problem = tuple[str, str, str, Path]


def compare_served(old: Crd, new: Crd) -> Iterator[tuple[str, SchemaChange]]:
    """The problems of every pair of served versions in `new`, each with the version in which it shows.

    Those that the old CRD had as well are said once, as harmless. With a conversion webhook nothing can be said.
    """
    if new.uses_webhook:
        if _may_convert_otherwise(old, new):
            yield "", SchemaChange("SRV-06", "webhook", ("spec", "conversion"), NOT_DECIDED)
        return
    known = set() if old.uses_webhook else {problem for problem, _ in _problems(old)}
    old_ones = 0
    for problem, change in _problems(new):
        if problem in known:
            old_ones += 1
        else:
            yield problem[1], change
    if old_ones:
        yield "", harmless("SRV-05", "there-before", ("spec", "versions"), count=old_ones)


def _may_convert_otherwise(old: Crd, new: Crd) -> bool:
    served = [version.name for version in new.served_versions]
    if len(served) < 2:
        return False
    if not old.uses_webhook or served != [version.name for version in old.served_versions]:
        return True
    pairs = ((old.version(name), new.version(name)) for name in served)
    return not all(was and now and same_json(was.schema, now.schema) for was, now in pairs)


def _problems(crd: Crd) -> Iterator[tuple[Problem, SchemaChange]]:
    for source, target in permutations(crd.served_versions, 2):
        is_forward = kube_order(source.name) < kube_order(target.name)
        keeps = crd.preserves_unknown
        for change in compare_schemas(source.schema, target.schema, preserved=(keeps, keeps)):
            found = _problem(change, source.name, target.name, is_forward=is_forward)
            if found is not None:
                yield (found.rule, target.name, source.name, found.path), found


def _problem(change: SchemaChange, source: str, target: str, *, is_forward: bool) -> SchemaChange | None:
    """What a change from one version's schema to the other's means for an object that goes that way."""
    at, facts = change.path, {"from": source, "to": target}
    if change.rule in REMOVED:
        if is_forward:
            return SchemaChange("SRV-01", "missing", at, DATA_LOST, True, facts)
        verdict = SchemaVerdict(stored=D, writers=D, rollback=D)
        return SchemaChange("SRV-02", "missing", at, verdict, True, facts)
    if change.rule in DEFAULTS:
        if not is_forward:
            return None
        return SchemaChange("SRV-04", "default", at, BEHAVIOUR, False, facts)
    facts = {**change.facts, **facts, "because": change.rule, "because_variant": change.variant}
    if change.verdict.severity is Severity.BREAKING:
        return narrowed("SRV-03", "refused", at, **facts)
    if change.verdict.severity is Severity.UNKNOWN:
        return SchemaChange("SRV-03", "undecided", at, NOT_DECIDED, True, facts)
    return None


def migration_steps(old: Crd, new: Crd) -> list[str]:
    """What an administrator does, in order, before `new` can take the place of `old`; [] where `new` stores nothing.

    After "Upgrade existing objects to a new stored version" of Kubernetes' page on versions of CRDs. The commands are
    for a shell: names are quoted, for a CRD of a file may be called anything.
    """
    target = new.storage_version
    if target is None:
        return []
    resource = shlex.quote(f"{old.names.get('plural') or ''}.{target.name}.{old.group}")
    everywhere = " -A" if old.scope == "Namespaced" else ""
    status = shlex.quote(json.dumps({"status": {"storedVersions": [target.name]}}))
    read, write = f"kubectl get {resource}{everywhere} -o json", "kubectl replace -f -"
    patch = f"kubectl patch crd {shlex.quote(old.name)} --subresource=status --type=merge -p {status}"
    first, stored = [], old.storage_version
    if stored is None or stored.name != target.name:
        kept = ", ".join(version.name for version in old.versions if version.name != target.name)
        first.append(
            f"ask for a version of this bundle that still has {kept} and stores {target.name} (storage: true at "
            f"{target.name} alone) and have it applied: changed by hand, the storage version would count as drift and "
            "be corrected"
        )
    steps = [
        *first,
        f"write every object again, if there are any: {read} | {write}",
        f"say that nothing is stored otherwise any more: {patch}",
        "then this version can be applied: an approved request for it continues automatically",
    ]
    return [f"{number}. {words}" for number, words in enumerate(steps, 1)]


SAID_ELSEWHERE = ("spec.scope", "spec.names.kind", "spec.group", "spec.names.plural", "status.storedVersions")
HTTPS = 443
INJECTORS = frozenset(f"cert-manager.io/inject-{what}" for what in ("ca-from", "ca-from-secret", "apiserver-ca")) | {
    "service.beta.openshift.io/inject-cabundle"
}
REPLACED = SchemaVerdict(api=B, stored=B, writers=B, readers=B, rollback=B)
UNCONVERTED = SchemaVerdict(stored=D, writers=D, readers=D)
MAX_OBJECT_BYTES, MANY_OBJECT_BYTES, MAX_ANNOTATION_BYTES = 1_572_864, 1_048_576, 262_144


def compare(old_crd: JsonObject, new_crd: JsonObject, *, is_accepted: bool = False) -> list[Finding]:
    """Every change from `old_crd` to `new_crd`, worst first; neither is changed.

    With `is_accepted` the API server took the new one in a dry-run: what it would refuse is not looked for.

    The CRDs may be v1 or v1beta1 and may lack schemas. `evidence["version"]` names the version concerned ("" for all);
    `evidence["live"]` is True where the stored objects decide whether a breaking change breaks anything. What cannot be
    decided is a finding of severity UNKNOWN. Raises InvalidManifest where one of the two is no object at all.
    """
    object_in(old_crd, "the old CRD")
    object_in(new_crd, "the new CRD")
    unread = [] if is_plain(old_crd) and is_plain(new_crd) else list(_unread(old_crd, new_crd))
    if unread:
        name = value_at(new_crd, "metadata", "name")
        kind = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
        ref = ObjectRef(*kind, "", name if isinstance(name, str) else "")
        return [change.finding(ref, "") for change in unread]
    with limited():
        ref, old, new = ObjectRef.of(new_crd), Crd(old_crd), Crd(new_crd)
        whole = (*_identity(old, new), *_versions(old, new), *_conversion(old, new), *_preserving(old, new))
        found = [change.finding(ref, "") for change in (*whole, *_size(old, new))]
        found += [change.finding(ref, version) for version, change in _version_changes(old, new)]
        found += [change.finding(ref, version) for version, change in compare_served(old, new)]
        known = {(finding.rule, finding.path) for finding in found}
        refused = () if is_accepted else _refused(old, new)
        found += [change.finding(ref, "") for change in refused if (change.rule, change.path) not in known]
        return list(worst_first(found))


def _unread(old: JsonObject, new: JsonObject) -> Iterator[SchemaChange]:
    """CRDs that have not the form of one. The API server refuses the new one unread, and never held such an old one."""
    if is_too_deep(old) or is_too_deep(new):
        yield undecided("SCH-60", "too-deep", (), deepest=DEEPEST)
        return
    for error in form_errors(new):
        yield SchemaChange("CRD-19", "refused", (error.path,), REJECTED, facts={"words": unescaped(str(error))})
    for error in form_errors(old):
        yield undecided("CRD-00", "unreadable-before", (error.path,), words=unescaped(str(error)))


def _size(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    size = _bytes(new)
    if size <= MAX_ANNOTATION_BYTES:
        return
    before = _bytes(old)
    if size > MANY_OBJECT_BYTES >= before or size > MAX_OBJECT_BYTES >= before:
        verdict = REJECTED if size > MAX_OBJECT_BYTES else SchemaVerdict(api=D)
        facts = {"bytes": size, "most": MAX_OBJECT_BYTES}
        yield SchemaChange("CRD-20", "too-large", (), verdict, facts=facts)
    elif before <= MAX_ANNOTATION_BYTES:
        verdict = SchemaVerdict(api=Severity.NOTABLE)
        yield SchemaChange("CRD-20", "too-large-for-client-side", (), verdict, facts={"bytes": size})


def _bytes(crd: Crd) -> int:
    try:
        return len(orjson.dumps(crd.body, default=dict))
    except TypeError:  # numbers past 64 bits, keys that are no texts
        return len(json.dumps(crd.body, default=dict, separators=(",", ":")))


def _identity(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    facts: dict[str, Any]
    if old.scope != new.scope:
        facts = {"old": old.scope, "new": new.scope}
        yield SchemaChange("CRD-01", "changed", ("spec", "scope"), REPLACED, facts=facts)
    if old.group != new.group or old.name != new.name:
        facts = {"old": old.name, "new": new.name}
        yield SchemaChange("CRD-02", "changed", ("spec", "group"), REPLACED, facts=facts)
    for rule, name in (("CRD-03", "plural"), ("CRD-04", "kind")):
        if old.names.get(name) != new.names.get(name):
            facts = {"old": old.names.get(name), "new": new.names.get(name)}
            yield SchemaChange(rule, "changed", ("spec", "names", name), REPLACED, facts=facts)
    for name in ("listKind", "singular"):
        if old.names.get(name) != new.names.get(name):
            facts = {"name": name, "old": old.names.get(name), "new": new.names.get(name)}
            yield SchemaChange("CRD-05", "changed", ("spec", "names", name), FOR_WRITERS, facts=facts)
    for name in ("shortNames", "categories"):
        gone = sorted(set(old.names.get(name) or ()) - set(new.names.get(name) or ()))
        if gone:
            facts = {"name": name, "removed": gone}
            yield SchemaChange("CRD-06", "removed", ("spec", "names", name), FOR_WRITERS, facts=facts)


def _versions(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    path = ("spec", "versions")
    if old.served_versions and not new.served_versions:
        yield SchemaChange("CRD-14", "none-served", path, GONE)
    before, after = old.storage_version, new.storage_version
    if before is not None and after is not None and before.name != after.name:
        facts = {"old": before.name, "new": after.name}
        # By then both are in status.storedVersions, and the API server takes back what still has both.
        if old.version(after.name) is None:
            yield SchemaChange("CRD-13b", "storage", path, SchemaVerdict(stored=D, rollback=B), facts=facts)
        else:
            yield SchemaChange("CRD-13", "storage", path, SchemaVerdict(stored=D, rollback=D), facts=facts)
    names = ([version.name for version in crd.served_versions] for crd in (old, new))
    preferred = [max(served, key=kube_order, default="") for served in names]
    if all(preferred) and preferred[0] != preferred[1]:
        facts = {"old": preferred[0], "new": preferred[1]}
        yield SchemaChange("CRD-17", "preferred", path, SchemaVerdict(readers=D), facts=facts)


def _conversion(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    path = ("spec", "conversion")
    if new.uses_webhook and not old.uses_webhook:
        verdict = SchemaVerdict(stored=D, writers=D, readers=D, rollback=D)
        yield SchemaChange("CRD-21", "webhook", path, verdict)
    elif old.uses_webhook and not new.uses_webhook:
        is_alike = len(new.versions) > 1 and new.shared_schema is not None and old.shared_schema is not None
        verdict = SchemaVerdict(stored=D, writers=D, readers=D, rollback=D) if is_alike else NARROWED
        yield SchemaChange("CRD-22", "no-webhook", path, verdict)
    elif new.uses_webhook:
        yield from _webhook(old.conversion, new.conversion)
        gone = sorted(INJECTORS & old.annotations.keys())
        if gone and INJECTORS.isdisjoint(new.annotations):
            facts = {"annotation": gone[0]}
            yield SchemaChange("CRD-25", "injector", ("metadata", "annotations", gone[0]), UNCONVERTED, facts=facts)


def _webhook(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[SchemaChange]:
    path = ("spec", "conversion", "webhook")
    before, after = (_client_of(side) for side in (old, new))
    if {**before, "caBundle": None} != {**after, "caBundle": None}:
        yield SchemaChange("CRD-23", "moved", (*path, "clientConfig"), UNCONVERTED)
    if before.get("caBundle") and not after.get("caBundle"):
        yield SchemaChange("CRD-25", "ca-bundle", (*path, "clientConfig", "caBundle"), UNCONVERTED)
    reviewed = [list(side.get("conversionReviewVersions") or ()) for side in (old, new)]
    if "v1" in reviewed[0] and "v1" not in reviewed[1]:
        yield SchemaChange("CRD-26", "no-v1", (*path, "conversionReviewVersions"), GONE)


def _client_of(conversion: Mapping[str, Any]) -> dict[str, Any]:
    """How the webhook is called, with the API server's default."""
    client = dict(mapping(conversion.get("webhookClientConfig")))
    service = client.get("service")
    if isinstance(service, Mapping):
        client["service"] = {**service, "port": service.get("port") or HTTPS}
    return client


def _preserving(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    path = ("spec", "preserveUnknownFields")
    if old.preserves_unknown and not new.preserves_unknown:
        yield narrowed("CRD-27", "pruned", path)
    elif new.preserves_unknown and not old.preserves_unknown and not new.is_v1beta1:
        yield SchemaChange("CRD-28", "preserved", path, REJECTED)


def _version_changes(old: Crd, new: Crd) -> Iterator[tuple[str, SchemaChange]]:
    for version in old.versions:
        now = new.version(version.name)
        if now is None:
            path = ("spec", "versions", version.name)
            if version.name in old.stored_versions:
                facts = {"steps": migration_steps(old, new)}
                yield version.name, SchemaChange("CRD-10", "removed", path, REPLACED, facts=facts)
            elif version.is_served:
                yield version.name, SchemaChange("CRD-11", "removed", path, GONE)
            else:
                yield version.name, harmless("CRD-11", "removed-unserved", path)
            continue
        for change in _same_version(version, now):
            yield version.name, change
        preserved = (old.preserves_unknown, new.preserves_unknown)
        names = {"apiVersion": f"{new.group}/{now.name}", "kind": str(new.names.get("kind"))}
        for change in compare_schemas(version.schema, now.schema, preserved=preserved, type_meta=names):
            yield version.name, change
    for name in old.stored_versions:  # objects are stored in a version that even the old CRD did not have any more
        if old.version(name) is None and new.version(name) is None:
            yield name, SchemaChange("CRD-10", "missing", ("spec", "versions", name), REJECTED)
    for version in new.versions:
        if old.version(version.name) is None:
            yield version.name, harmless("CRD-15", "added", ("spec", "versions", version.name))


def _same_version(old: CrdVersion, new: CrdVersion) -> Iterator[SchemaChange]:
    path = ("spec", "versions", new.name)
    if old.is_served and not new.is_served:
        yield SchemaChange("CRD-12", "not-served", path, GONE)
    elif new.is_served and not old.is_served:
        yield harmless("CRD-15", "served", path)
    if new.body.get("deprecated") and not old.body.get("deprecated"):
        yield harmless("CRD-16", "deprecated", path)
    yield from _subresources(old, new)
    if old.body.get("additionalPrinterColumns") != new.body.get("additionalPrinterColumns"):
        yield harmless("CRD-33", "columns", (*path, "additionalPrinterColumns"))
    gone = sorted(set(old.selectable_fields) - set(new.selectable_fields))
    come = sorted(set(new.selectable_fields) - set(old.selectable_fields))
    if gone:
        verdict = SchemaVerdict(writers=D, readers=D)
        yield SchemaChange("CRD-34", "removed", (*path, "selectableFields"), verdict, facts={"fields": gone})
    if come:
        yield harmless("CRD-35", "added", (*path, "selectableFields"), fields=come)


def _subresources(old: CrdVersion, new: CrdVersion) -> Iterator[SchemaChange]:
    path = ("spec", "versions", new.name, "subresources")
    if old.has_status and not new.has_status:
        yield SchemaChange("CRD-29", "removed", (*path, "status"), GONE)
    elif new.has_status and not old.has_status:
        yield SchemaChange("CRD-30", "added", (*path, "status"), FOR_WRITERS)
    before, after = old.scale, new.scale
    if before is not None and after is None:
        yield SchemaChange("CRD-31", "removed", (*path, "scale"), FOR_WRITERS, is_live=True)
    elif before is not None and after is not None and not same_json(before, after):
        yield SchemaChange("CRD-32", "changed", (*path, "scale"), BEHAVIOUR)
    elif after is not None and before is None:
        yield harmless("CRD-32", "added", (*path, "scale"))


def _refused(old: Crd, new: Crd) -> Iterator[SchemaChange]:
    """What else the API server would not accept. Of a v1beta1 CRD, which no current server takes, nothing is said."""
    if new.is_v1beta1:
        return
    errors = update_errors(old, new)
    known = set(update_errors(old, old)) if errors else set()
    for error in errors:
        if error.is_unknown:
            yield undecided("CRD-00", "unknown", (error.path,), words=str(error))
        elif error not in known and not error.path.startswith(SAID_ELSEWHERE):
            facts = {"words": unescaped(str(error))}
            yield SchemaChange(_rule_of(error), "refused", (error.path,), REJECTED, facts=facts)


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
