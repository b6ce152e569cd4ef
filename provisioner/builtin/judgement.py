"""One object of Kubernetes' own kinds, new or changed: everything that the API server would refuse of it.

Order: does it fit the schema; if so, what would the server hold, and do its fields, alone and together, pass the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from provisioner.builtin import facts, metadata, pods, policies, services, storage, workloads
from provisioner.builtin.changes import Change, FieldRefusal, Judgement, Path, WhyUnknown
from provisioner.builtin.schemas import MINORS, Schemas, minor_of, misfits, schemas_of, with_empty_texts
from provisioner.builtin.server_side_apply import merged, without_nulls
from provisioner.json_values import mapping
from provisioner.values import JsonObject

_RULES = {**workloads.RULES, **services.RULES, **storage.RULES, **policies.RULES}
# Their own checks judge what these hold beside their metadata.
_ELSEWHERE = frozenset({"CustomResourceDefinition"})
# Whether these never change, rules decide that look at more than the field.
_BY_RULE = {
    "v1 PersistentVolumeClaim": ("spec",),
    "v1 Pod": ("spec",),
    "v1 Service": ("spec", "loadBalancerClass"),
    "v1 ConfigMap": ("immutable",),
    "v1 Secret": ("immutable",),
    "batch/v1 Job": ("spec", "completions"),
}
_JOB_TEMPLATE = ("spec", "template")
# No bundle that we know ships these: beyond schema and table only their server judges them (decision 0076).
_BY_SERVER = frozenset({"CSIDriver", "FlowSchema", "PriorityLevelConfiguration", "ReplicationController"})


def knows(api_version: str, kind: str, version: str = "") -> bool | None:
    """Whether a kind is one of Kubernetes' own in a server of `version`; None where nobody can look it up."""
    schemas = schemas_of(minor_of(version))
    if schemas is None:
        return True if facts.has_facts(api_version, kind) else None
    return schemas.of(api_version, kind) is not None


def judge(
    obj: JsonObject, *, sent: JsonObject | None = None, live: JsonObject | None = None, version: str = ""
) -> Judgement:
    """What the API server refuses of `obj`, written by server-side apply with strict validation.

    `sent` is what the same owner applied before; `live` is the object as it stands, by default what comes of `sent`.
    `version` is the server's, such as v1.36.3; without one the newest supported minor decides, and what older ones
    refuse is told apart.
    """
    if obj.get("kind") in _ELSEWHERE:
        change = Change(_plain(obj), live if live is not None else sent, obj)
        return Judgement(_keep_first_by_field(metadata.check_metadata(change)))
    schemas = schemas_of(minor_of(version))
    if schemas is None:
        return Judgement(unknown=(WhyUnknown.NO_SCHEMAS,))
    unfit = _misfits(schemas, obj)
    newest = schemas_of(MINORS[-1])
    if newest is not None and newest is not schemas and unfit:
        required = {misfit.path for misfit in _misfits(newest, obj) if misfit.is_missing}
        unfit = tuple(misfit for misfit in unfit if not misfit.is_missing or misfit.path in required)
    if unfit:
        return Judgement(unfit)
    change = replace(_apply_change(schemas, obj, sent, live), minor=minor_of(version) if version else "")
    refusals = _keep_first_by_field(_find_refusals(change))
    before, since = ((), "") if version or refusals else _refused_before(obj)
    return Judgement(refusals, tuple(_find_unknown(change)), before, since, policies.has_expressions(change))


def _misfits(schemas: Schemas, obj: JsonObject) -> tuple[FieldRefusal, ...]:
    api_version, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
    schema = schemas.of(api_version, kind)
    if schema is None:
        return (FieldRefusal(("kind",), f"is not known in {api_version}", is_of_schema=True),)
    found = misfits(schemas, schema, {key: value for key, value in obj.items() if key != "status"})
    return tuple(
        misfit for misfit in found if not misfit.is_missing or not facts.is_optional(api_version, kind, misfit.path)
    )


def _apply_change(schemas: Schemas, obj: JsonObject, sent: JsonObject | None, live: JsonObject | None) -> Change:
    schema = schemas.of(str(obj.get("apiVersion")), str(obj.get("kind"))) or {}
    obj = with_empty_texts(schemas, schema, obj)
    if sent is None and live is None:
        return Change(facts.defaulted(_plain(obj)), None, obj)
    sent = with_empty_texts(schemas, schema, sent) if sent is not None else None
    old = facts.defaulted(_plain(live if live is not None else sent or {}))
    if live is None and obj.get("kind") == "Service":  # the server never kept what its type does not need
        services.remove_stale_fields(old, old)
    new = merged(schemas, schema, old, _plain(sent or {}), obj) or {}
    made = facts.defaulted(new)
    if obj.get("kind") == "Service":
        services.remove_stale_fields(old, made)
    return Change(made, old, _plain(obj))


def _plain(obj: JsonObject) -> JsonObject:
    found: JsonObject = without_nulls(obj)
    if found.get("kind") == "Secret" and found.get("stringData"):
        texts = dict.fromkeys(mapping(found["stringData"]), "")
        found = {**found, "data": {**mapping(found.get("data")), **texts}}
    return found


def _find_refusals(change: Change) -> Iterator[FieldRefusal]:
    yield from facts.misfits_of_facts(change.new)
    yield from metadata.check_metadata(change)
    name, kind = f"{change.new.get('apiVersion')} {change.new.get('kind')}", change.new.get("kind")
    if name in _RULES:
        yield from _RULES[name](change)
    elif kind == "PodTemplate":
        yield from pods.check_template(change.root.at("template"))
    by_rule = _BY_RULE.get(name)
    for refusal in facts.fixed_changes(change.old, change.new) if change.old is not None else ():
        is_ruled = by_rule is not None and refusal.path[: len(by_rule)] == by_rule
        if not is_ruled and not (kind == "Job" and refusal.path[:2] == _JOB_TEMPLATE):
            yield refusal


def _refused_before(obj: JsonObject) -> tuple[tuple[FieldRefusal, ...], str]:
    """Return what the oldest supported minor cannot read of an object that the newest can, and the first that can."""
    oldest: tuple[FieldRefusal, ...] = ()
    for minor in MINORS:
        schemas = schemas_of(minor)
        # Older schemas require some fields that their servers do not.
        found = tuple(unfit for unfit in _misfits(schemas, obj) if not unfit.is_missing) if schemas else ()
        if minor == MINORS[0]:
            oldest = found
        if not oldest:
            return (), ""
        if schemas is not None and not found:
            return oldest, minor
    return oldest, MINORS[-1]


def _find_unknown(change: Change) -> Iterator[WhyUnknown]:
    kind = change.new.get("kind")
    if kind in _BY_SERVER and change.new != change.old:
        yield WhyUnknown.RULES
    if kind == "Service" and services.is_address_unknown(change):
        yield WhyUnknown.ADDRESS
    if kind == "Service" and services.needs_both_families(change):
        yield WhyUnknown.FAMILIES
    if kind == "PersistentVolumeClaim" and storage.grows(change):
        yield WhyUnknown.GROWTH


def _keep_first_by_field(refusals: Iterable[FieldRefusal]) -> tuple[FieldRefusal, ...]:
    first: dict[Path, FieldRefusal] = {}
    for refusal in refusals:
        first.setdefault(refusal.path, refusal)
    return tuple(first.values())
