"""What every format's output goes through: what an object of a bundle may say, and where it belongs.

Refused, with file and field, is what a bundle cannot mean: identity that only the API server gives, owners, names of
our our own records. Dropped is what the API server drops or what says nothing: `creationTimestamp: null` and its like,
kubectl's last-applied-configuration (an outdated copy which may hold secrets), the status of built-in kinds or an
empty one, and the namespace of a cluster-scoped object (widely used bundles such as ingress-nginx have one).
Finalizers stay: bundles use them, and the report shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner.api_groups import DELETION_POLICY, OWN_GROUP
from provisioner.errors import InvalidManifest
from provisioner.json_values import mapping, value_at
from provisioner.render.canonical import canonical
from provisioner.render.limits import YamlLimits, YamlMeter
from provisioner.render.targets import BUILT_IN, defined_scopes
from provisioner.values import DeletionPolicy, GroupKind, Hook, JsonObject, Manifest, ObjectIdentity, ObjectRef

OUR_ANNOTATIONS = frozenset({DELETION_POLICY, f"{OWN_GROUP}/prune", f"{OWN_GROUP}/optional"})
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SERVER_FIELDS = (
    "uid", "resourceVersion", "managedFields", "ownerReferences", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "generation", "selfLink",
)  # fmt: skip

_LIST_FIELDS = frozenset({"apiVersion", "kind", "metadata", "items"})
IsNamespaced = Callable[[GroupKind], bool | None]


@dataclass(frozen=True, slots=True)
class Found:
    """An object as a format found it: any mapping, and where it stands. `line` is 0 where lines mean nothing.

    `hook` says when it runs where the format knows hooks and it is one. `is_kept`: its format never deletes it.
    """

    body: Any
    file: str
    line: int = 0
    hook: Hook | None = None
    is_kept: bool = False

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def refuse(self, words: str) -> InvalidManifest:
        """The error that names place and object. Never give it a value of the object."""
        named = (value_at(self.body, "kind"), value_at(self.body, "metadata", "name"))
        shown = " ".join(repr(word[:253])[1:-1] for word in named if isinstance(word, str) and word)
        return InvalidManifest(f"{self.place}: {f'{shown}: ' if shown else ''}{words}")


def admit(
    found: Iterable[Found], *, install_namespace: str, is_namespaced: IsNamespaced, limits: YamlLimits
) -> tuple[Manifest, ...]:
    """The manifests of a bundle, canonical, in the order found; Lists are flattened.

    A namespaced object without a namespace gets `install_namespace`. The scope of a kind is known from Kubernetes
    itself, else from the bundle's own CRDs, else from `is_namespaced` (the cluster); where nobody knows, the object
    stays as it is. Raises InvalidManifest and BundleTooLarge.
    """
    objects = [(each, _cleaned(each)) for each in flattened(found, YamlMeter(limits))]
    if not objects:
        raise InvalidManifest("found no objects: a bundle must hold at least one")
    kinds = [(ObjectRef.of(body).group_kind, body) for _, body in objects]
    known = defined_scopes(kinds) | BUILT_IN
    manifests: dict[ObjectIdentity, Manifest] = {}
    for (each, body), (kind, _) in zip(objects, kinds, strict=True):
        scope, metadata = known[kind] if kind in known else is_namespaced(kind), body["metadata"]
        namespace = metadata.get("namespace")
        if namespace is not None and not isinstance(namespace, str):
            raise each.refuse("metadata.namespace: must be a text (quote it)")
        if not namespace or scope is False:
            metadata.pop("namespace", None)
            if scope:
                body["metadata"] = canonical({**metadata, "namespace": install_namespace})
        manifest = Manifest(body, each.file, each.hook)
        other = manifests.setdefault(manifest.ref.identity, manifest)
        if other is not manifest:
            raise each.refuse(f"is in {other.file} already")
    return tuple(manifests.values())


def flattened(found: Iterable[Found], meter: YamlMeter) -> Iterator[Found]:
    """The objects, with the members of a List in its place."""
    count = 0
    for each in found:
        pending = [each]
        while pending:
            member = pending.pop()
            items = _items(member)
            if items is None:
                count += 1
                meter.objects(member.file, count)
                meter.add(member.file, *_size(member.body))
                yield member
            else:
                pending.extend(reversed(items))


def _size(body: Any) -> tuple[int, int]:
    """How many values and characters an object holds: a format may make many objects of few bytes."""
    nodes, characters, pending = 0, 0, [body]
    while pending:
        value = pending.pop()
        nodes += 1
        if isinstance(value, Mapping):
            characters += sum(len(key) for key in value if isinstance(key, str))
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str):
            characters += len(value)
    return nodes, characters


def _items(each: Found) -> list[Found] | None:
    """The members of a List, None for any other object. As for kubectl, members of a FooList need not say Foo."""
    body = each.body
    kind = value_at(body, "kind")
    if not isinstance(kind, str) or not kind.endswith("List"):
        return None
    items = body.get("items")
    is_list = kind == "List" or isinstance(items, list)
    # A list has no name: an object of its own kind may be called like one.
    if is_list and (set(body) - _LIST_FIELDS or "name" in mapping(body.get("metadata"))):
        raise each.refuse("holds more than items, which nobody would read: expected apiVersion, kind, metadata, items")
    if not isinstance(items, list):
        return [] if kind == "List" and items is None else None
    inherited = {} if kind == "List" else {"apiVersion": body.get("apiVersion"), "kind": kind.removesuffix("List")}
    return [replace(each, body={**inherited, **item} if isinstance(item, Mapping) else item) for item in items]


def _cleaned(each: Found) -> dict[str, Any]:
    """The canonical object without what says nothing, checked but for its namespace."""
    if not isinstance(each.body, Mapping):
        raise each.refuse("is no Kubernetes object: a mapping with apiVersion, kind and metadata")
    try:
        body: dict[str, Any] = canonical(each.body)
    except InvalidManifest as exc:
        raise each.refuse(str(exc)) from exc
    _check_type(each, body)
    _check_name(each, body.get("metadata"))
    metadata = body["metadata"]
    for field in SERVER_FIELDS:
        if metadata.pop(field, None):
            raise each.refuse(f"metadata.{field}: only the API server sets it, content must not carry it")
    metadata.pop("generateName", None)
    for field in ("labels", "annotations"):
        _check_words(each, field, metadata.get(field))
    annotations = metadata.get("annotations")
    if annotations and annotations.pop(LAST_APPLIED, None) is not None and not annotations:
        del metadata["annotations"]
    if each.is_kept:
        kept = {**(metadata.get("annotations") or {}), DELETION_POLICY: str(DeletionPolicy.ORPHAN)}
        metadata = canonical({**metadata, "annotations": kept})
    body["metadata"] = metadata
    ref = ObjectRef.of(body)
    if ref.group == OWN_GROUP and ref.kind != "BundleDeployment":
        raise each.refuse(f"content must not carry records of {OWN_GROUP}, only BundleDeployments")
    if "status" in body and (not body["status"] or ref.group_kind in BUILT_IN):
        del body["status"]
    return body


def _check_type(each: Found, body: JsonObject) -> None:
    for field in ("apiVersion", "kind"):
        value = body.get(field)
        if not isinstance(value, str) or not value:
            raise each.refuse(f"needs {field}, a text")
    parts = body["apiVersion"].split("/")
    if len(parts) > 2 or not all(parts):
        raise each.refuse("apiVersion must be VERSION or GROUP/VERSION")


def _check_name(each: Found, metadata: Any) -> None:
    if not isinstance(metadata, dict):
        raise each.refuse("needs metadata with a name")
    if metadata.get("generateName"):
        raise each.refuse("metadata.generateName: content needs a name of its own, or every apply would make another")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise each.refuse("needs metadata.name, a text (quote it)")
    if name in {".", ".."} or "/" in name or "%" in name:
        raise each.refuse("metadata.name: Kubernetes takes no `/`, `%`, `.` or `..` as a name")


def _check_words(each: Found, field: str, words: Any) -> None:
    """Labels and annotations: text by text, none of ours but the documented annotations."""
    if words is None:
        return
    if not isinstance(words, dict):
        raise each.refuse(f"metadata.{field}: must be a mapping")
    for key, value in words.items():
        domain = key.partition("/")[0]
        is_ours = domain == OWN_GROUP or domain.endswith(f".{OWN_GROUP}")
        if is_ours and not (field == "annotations" and key in OUR_ANNOTATIONS):
            raise each.refuse(f"metadata.{field}: content must not carry {key!r}, it is Pratique's own")
        if value is not None and not isinstance(value, str):
            raise each.refuse(f"metadata.{field}: {key!r} must be a text (quote it)")
        if key == DELETION_POLICY and value != DeletionPolicy.ORPHAN:
            raise each.refuse(f"metadata.{field}: {key!r} must be {DeletionPolicy.ORPHAN}, or be left out")
