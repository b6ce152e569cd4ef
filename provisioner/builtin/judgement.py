"""One object of Kubernetes' own kinds, new or changed: everything that the API server would refuse of it.

Order: does it fit the schema; if so, what would the server hold, and do its fields, alone and together, pass the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from provisioner.builtin import facts, metadata, pods, policies, services, storage, workloads
from provisioner.builtin.changes import Change, FieldRefusal, Judgement, WhyUnknown
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
        return Judgement(
            tuple(_once(list(metadata.refusals(Change(_plain(obj), live if live is not None else sent, obj)))))
        )
    schemas = schemas_of(minor_of(version))
    if schemas is None:
        return Judgement(unknown=(WhyUnknown.NO_SCHEMAS,))
    unfit = _misfits(schemas, obj)
    newest = schemas_of(MINORS[-1])
    if newest is not None and newest is not schemas and unfit:
        required = {one.path for one in _misfits(newest, obj) if one.is_missing}
        unfit = tuple(one for one in unfit if not one.is_missing or one.path in required)
    if unfit:
        return Judgement(unfit)
    change = replace(_change(schemas, obj, sent, live), minor=minor_of(version) if version else "")
    refusals = tuple(_once([*_check_limits(change), *_check_kind(change), *_check_fixed(change)]))
    before, since = ((), "") if version or refusals else _refused_before(obj)
    return Judgement(refusals, tuple(_unknown(change)), before, since, policies.has_expressions(change))


def _misfits(schemas: Schemas, obj: JsonObject) -> tuple[FieldRefusal, ...]:
    api_version, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
    schema = schemas.of(api_version, kind)
    if schema is None:
        return (FieldRefusal(("kind",), f"is not known in {api_version}", is_of_schema=True),)
    found = misfits(schemas, schema, {key: one for key, one in obj.items() if key != "status"})
    return tuple(one for one in found if not one.is_missing or not facts.is_optional(api_version, kind, one.path))


def _change(schemas: Schemas, obj: JsonObject, sent: JsonObject | None, live: JsonObject | None) -> Change:
    schema = schemas.of(str(obj.get("apiVersion")), str(obj.get("kind"))) or {}
    obj = with_empty_texts(schemas, schema, obj)
    if sent is None and live is None:
        return Change(facts.defaulted(_plain(obj)), None, obj)
    sent = with_empty_texts(schemas, schema, sent) if sent is not None else None
    old = facts.defaulted(_plain(live if live is not None else sent or {}))
    if live is None and obj.get("kind") == "Service":  # the server never kept what its type does not need
        services.without_stale(old, old)
    new = merged(schemas, schema, old, _plain(sent or {}), obj) or {}
    made = facts.defaulted(new)
    if obj.get("kind") == "Service":
        services.without_stale(old, made)
    return Change(made, old, _plain(obj))


def _plain(obj: JsonObject) -> JsonObject:
    found: JsonObject = without_nulls(obj)
    if found.get("kind") == "Secret" and found.get("stringData"):
        texts = dict.fromkeys(mapping(found["stringData"]), "")
        found = {**found, "data": {**mapping(found.get("data")), **texts}}
    return found


def _check_limits(change: Change) -> Iterator[FieldRefusal]:
    yield from facts.misfits_of_facts(change.new)
    yield from metadata.refusals(change)


def _check_kind(change: Change) -> Iterator[FieldRefusal]:
    rules = _RULES.get(f"{change.new.get('apiVersion')} {change.new.get('kind')}")
    if rules is not None:
        yield from rules(change)
    elif change.new.get("kind") == "PodTemplate":
        yield from pods.check_template(change.new.get("template"), ("template",))


def _check_fixed(change: Change) -> Iterator[FieldRefusal]:
    if change.old is None:
        return
    by_rule = _BY_RULE.get(f"{change.new.get('apiVersion')} {change.new.get('kind')}", ())
    is_job = change.new.get("kind") == "Job"
    for one in facts.fixed_changes(change.old, change.new):
        is_ruled = bool(by_rule) and one.path[: len(by_rule)] == by_rule
        if not is_ruled and not (is_job and one.path[:2] == _JOB_TEMPLATE):
            yield one


def _refused_before(obj: JsonObject) -> tuple[tuple[FieldRefusal, ...], str]:
    """What the oldest supported minor cannot read of an object that the newest can, and the first that can."""
    oldest = schemas_of(MINORS[0])
    found = _unknown_fields(oldest, obj) if oldest is not None else ()
    if not found:
        return (), ""
    for minor in MINORS[1:]:
        schemas = schemas_of(minor)
        if schemas is not None and not _unknown_fields(schemas, obj):
            return found, minor
    return found, MINORS[-1]


def _unknown_fields(schemas: Schemas, obj: JsonObject) -> tuple[FieldRefusal, ...]:
    """Older schemas require some fields that their servers do not."""
    return tuple(one for one in _misfits(schemas, obj) if not one.is_missing)


def _unknown(change: Change) -> Iterator[WhyUnknown]:
    kind = change.new.get("kind")
    if kind in _BY_SERVER and change.new != change.old:
        yield WhyUnknown.RULES
    if kind == "Service" and services.is_address_unknown(change):
        yield WhyUnknown.ADDRESS
    if kind == "Service" and services.needs_both_families(change):
        yield WhyUnknown.FAMILIES
    if kind == "PersistentVolumeClaim" and storage.grows(change):
        yield WhyUnknown.GROWTH


def _once(found: list[FieldRefusal]) -> Iterator[FieldRefusal]:
    """One refusal a field."""
    seen: set[Any] = set()
    for one in found:
        if one.path not in seen:
            seen.add(one.path)
            yield one
