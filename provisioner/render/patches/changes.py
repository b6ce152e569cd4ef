"""From the objects of a bundle to the same as `spec.config` changes them, and a record of what that was.

The order is kustomize's: patches, then namespace, namePrefix, commonLabels and images. Patches see the names that the
bundle gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from typing import Any

from provisioner.builtin.changes import Path, dotted
from provisioner.errors import BadConfig, BundleTooLarge, InvalidManifest
from provisioner.escaping import visible
from provisioner.json_values import value_at
from provisioner.regexes import BadRegularExpression
from provisioner.render.canonical import canonical
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import Found, count_values
from provisioner.render.patches import fields
from provisioner.render.patches.config import PatchConfig, PatchEntry
from provisioner.render.patches.json_patch import SECRET_PARTS, apply_operations
from provisioner.render.patches.strategic_merge import merge_object
from provisioner.render.targets import BUILT_IN
from provisioner.sentences import some
from provisioner.values import GroupKind, JsonObject, ObjectRef, PatchedObject, PatchResult, RenamedObjects

# What is compared with the names of objects.
MAX_CALLED = 300
# Of all entries together; of an object so many paths.
MAX_OBJECTS, MAX_PATHS = 500, 20
# So many values of objects are read and copied for the patches of all entries: some 20 seconds.
MAX_COPIED = 10_000_000
_SECRET = GroupKind("", "Secret")


@dataclass(slots=True)
class _Patched:
    """An object on its way. `ref` is what the bundle calls it, with the namespace that it would get."""

    found: Found
    body: JsonObject
    ref: ObjectRef
    is_deleted: bool = False


@dataclass(slots=True)
class _Bounds:
    """What the bundle may grow to, and how much work is left."""

    meter: YamlMeter
    left: int

    def spend(self, where: str, values: int) -> None:
        self.left -= values
        if self.left < 0:
            raise BundleTooLarge(f"{where}: patches change objects of more than {MAX_COPIED:,} values in all")


def patch_objects(
    found: Iterable[Found], config: PatchConfig, *, install_namespace: str, meter: YamlMeter
) -> tuple[list[Found], tuple[PatchResult, ...], RenamedObjects]:
    """The objects, which are no Lists, after all that `config` says, what each entry of it did, and what has other
    names now.

    What has no apiVersion, kind and name stays as it is, to be refused. Raises BadConfig, InvalidManifest and
    BundleTooLarge.
    """
    objects: list[_Patched] = []
    others: list[Found] = []
    for each in found:
        identity = [value_at(each.body, *path) for path in (("apiVersion",), ("kind",), ("metadata", "name"))]
        if not all(isinstance(word, str) and word for word in identity):
            others.append(each)
            continue
        try:
            body = canonical(each.body)
        except InvalidManifest as exc:
            raise each.refuse(str(exc)) from exc
        ref = ObjectRef.of(body)
        if not ref.namespace and BUILT_IN.get(ref.group_kind) is not False:
            ref = replace(ref, namespace=install_namespace)
        objects.append(_Patched(each, body, ref))
    results, bounds = [], _Bounds(meter, MAX_COPIED)
    for entry in config.patches:
        results.append(_apply_entry(entry, objects, install_namespace, bounds))
        objects = [patched for patched in objects if not patched.is_deleted]
    results += _change_fields(config, objects)
    now = {}
    for patched in objects:
        ref = ObjectRef.of(patched.body)
        now[patched.ref] = replace(ref, namespace=ref.namespace or patched.ref.namespace)
    left, bounded = MAX_OBJECTS, []
    for result in results:
        recorded = [replace(changed, ref=now.get(changed.ref, changed.ref)) for changed in result.objects[:left]]
        bounded.append(replace(result, objects=tuple(recorded)))
        left -= len(recorded)
    renamed = {(ref.kind, ref.namespace, ref.name): (to.namespace, to.name) for ref, to in now.items() if to != ref}
    return [*others, *(replace(patched.found, body=patched.body) for patched in objects)], tuple(bounded), renamed


def _apply_entry(entry: PatchEntry, objects: list[_Patched], install_namespace: str, bounds: _Bounds) -> PatchResult:
    """Apply one of `patches` to the objects that it is for."""
    count, changed = 0, []
    for merge in entry.merges or (None,):
        bounds.spend(f"config.{entry.where}", len(objects))
        matching = _find_matching(entry, merge, objects, install_namespace)
        if entry.target is None and not matching:
            shown = " ".join(str(value_at(merge, *path))[:253] for path in (("kind",), ("metadata", "name")))
            near = _find_near(shown, objects)
            raise BadConfig(
                f"config.{entry.where}: the bundle has no object of that apiVersion, kind, namespace and name, which a"
                f" patch without a target is for{f'; did you mean {some(near)}?' if near else ''}",
                server_words=shown,
            )
        for patched in matching:
            before, where = patched.body, f"config.{entry.where}"
            bounds.meter.add(where, *count_values(merge))
            bounds.spend(where, count_values(before)[0])
            if merge is None:
                after: JsonObject | None = apply_operations(before, entry.operations, entry.where, bounds.meter)
                parts = {str(operation["path"]).split("/")[1] for operation in entry.operations}
            else:
                # A copy: what is merged in becomes part of the object, which is changed further.
                after, parts = merge_object(before, canonical(merge), entry.where, bounds.meter), set(merge)
            patched.is_deleted, patched.body = after is None, after or before
            count += 1
            compared = _compare(patched.ref, before, after, touched=sorted(parts.intersection(SECRET_PARTS)))
            if compared.paths or compared.is_deleted:
                changed.append(compared)
    near = () if count or entry.target is None else _find_near(entry.target.called, objects)
    return PatchResult(entry.where, count, tuple(changed[:MAX_OBJECTS]), near)


def _find_near(called: str, objects: Iterable[_Patched]) -> tuple[str, ...]:
    """Up to three objects whose kind and name are nearly what a patch asks for."""
    known = [f"{patched.ref.kind} {patched.ref.name}" for patched in islice(objects, MAX_OBJECTS)]
    return tuple(visible(name) for name in get_close_matches(called[:MAX_CALLED], dict.fromkeys(known), 3))


def _find_matching(
    entry: PatchEntry, merge: JsonObject | None, objects: list[_Patched], install_namespace: str
) -> list[_Patched]:
    there = [patched for patched in objects if not patched.is_deleted]
    if entry.target is not None:
        try:
            return [patched for patched in there if entry.target.matches(patched.ref, patched.body)]
        except BadRegularExpression as exc:  # too much work
            raise BadConfig(f"config.{entry.where}.target: takes too long", server_words=str(exc)) from exc
    # An object to merge in says which one it is for.
    named = tuple(value_at(merge, *path) for path in (("apiVersion",), ("kind",), ("metadata", "name")))
    namespace = value_at(merge, "metadata", "namespace") or install_namespace
    return [
        patched
        for patched in there
        if (patched.body["apiVersion"], patched.ref.kind, patched.ref.name) == named
        and patched.ref.namespace in ("", namespace)
    ]


def _change_fields(config: PatchConfig, objects: list[_Patched]) -> Iterator[PatchResult]:
    """Apply namespace, namePrefix, commonLabels and images, each to all objects."""
    asked = [name for name, value in (("namespace", config.namespace), ("namePrefix", config.name_prefix)) if value]
    if asked:
        before, names = _bodies(objects), {}
        for patched in objects:
            fields.set_names(patched.body, ObjectRef.of(patched.body), config.namespace, config.name_prefix)
            now = ObjectRef.of(patched.body)
            for namespace in (patched.ref.namespace, fields.ANYWHERE):
                known_as = (patched.ref.group_kind, namespace, patched.ref.name)
                names[known_as] = (now.namespace or patched.ref.namespace, now.name)
        for patched in objects:
            fields.follow_names(patched.body, patched.ref, names)
            if config.namespace:
                fields.set_other_namespaces(patched.body, patched.ref, config.namespace)
        yield _result(" and ".join(asked), objects, before)
    if config.labels:
        before = _bodies(objects)
        for patched in objects:
            fields.add_labels(patched.body, patched.ref, config.labels)
        yield _result("commonLabels", objects, before)
    containers = [fields.find_containers(patched.body, patched.ref) for patched in objects] if config.images else []
    for change in config.images:
        having = [
            (patched, found)
            for patched, found in zip(objects, containers, strict=True)
            if any(fields.changed_image(container.get("image"), change) for container in found)
        ]
        before = _bodies(patched for patched, _ in having)
        for _, found in having:
            for container in found:
                if image := fields.changed_image(container.get("image"), change):
                    container["image"] = image
        yield replace(_result(change.where, [patched for patched, _ in having], before), count=len(having))


def _bodies(objects: Iterable[_Patched]) -> list[JsonObject]:
    return [canonical(patched.body) for patched in objects]


def _result(entry: str, objects: list[_Patched], before: list[JsonObject]) -> PatchResult:
    pairs = [(patched, old) for patched, old in zip(objects, before, strict=True) if patched.body != old]
    changed = [_compare(patched.ref, old, patched.body) for patched, old in pairs[:MAX_OBJECTS]]
    return PatchResult(entry, len(pairs), tuple(changed))


def _compare(
    ref: ObjectRef, before: JsonObject, after: JsonObject | None, *, touched: Iterable[str] = ()
) -> PatchedObject:
    """What changed of an object.

    Of the values of a Secret it says that a patch names some, not whether they changed: nobody may try values (S38).
    """
    if after is None:
        return PatchedObject(ref, (), is_deleted=True)
    known: list[str] = []
    if ref.group_kind == _SECRET:
        known = list(touched)
        before, after = ({**side, **dict.fromkeys(SECRET_PARTS)} for side in (before, after))
    paths = (*known, *map(dotted, islice(_differing(before, after, ()), MAX_PATHS)))
    return PatchedObject(ref, paths[:MAX_PATHS])


def _differing(before: Any, after: Any, path: Path) -> Iterator[Path]:
    """The fields that differ; a list of another length as one."""
    if before is after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            yield from _differing(before.get(key), after.get(key), (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differing(old, new, (*path, place))
    elif before != after:
        yield path
