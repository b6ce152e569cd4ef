"""Objects that go under one name and come under another: paired where that is plain, so that a report can say so.

Only kinds whose names others choose freely: what kustomize names by a hash of the content, and what charts rename.
Two objects are a pair where their names differ in a hash alone, where objects of the bundle named the one and now name
the other, or where their content is equal or nearly. Where two partners would do, there is no pair. Pure.

Secrets are a pair by the hash in their names alone, and so is everything where a report may not tell what stood in the
old object (`Facts.hides_old_names`): else who tries values learns which one is right (S38).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.json_values import mapping
from provisioner.review.base.facts import SECRET, Facts, StateFacts
from provisioner.values import Action, GroupKind, JsonObject, ObjectRef, display_name

CONFIG_MAP, SERVICE = GroupKind("", "ConfigMap"), GroupKind("", "Service")
WEBHOOKS = frozenset(GroupKind(ADMISSION_GROUP, f"{how}WebhookConfiguration") for how in ("Mutating", "Validating"))
_VALUES = frozenset({CONFIG_MAP, SECRET})
_NAMED_BY_HASH = _VALUES | {SERVICE}
KINDS = _NAMED_BY_HASH | WEBHOOKS
# kustomize writes ten of these; other tools the digits of a sum.
_HASHED = re.compile(r"(?P<stem>.+)-(?:[bcdfghkmt2456789]{10}|(?=[a-f]*\d)[0-9a-f]{6,64})")
_NEAR = 0.8
_FEWEST_LEAVES = 2
MAX_PAIRS = 40_000
_HOLDERS = frozenset({"backend", "certificateRefs", "imagePullSecrets", "scaleTargetRef", "secrets", "service"})
_HOLDERS |= {"configMap", "configMapKeyRef", "configMapRef", "secret", "secretKeyRef", "secretRef", "serviceRef"}
_EXACT = frozenset({"args", "command", "configMapName", "resourceNames", "secretName", "serviceName"})
_NO_REFERENCES = frozenset({"matchLabels", "selector", "status"})
_WORD = re.compile(r"[\w.-]+")
_TEXTS = frozenset({"annotations", "args", "command", "value", "data"})
_SHORTEST_IN_TEXT = 8


@dataclass(frozen=True, slots=True)
class Rename:
    """`old` goes and `new` comes in its place. `followed` name the new one where they named the old one, `still` name
    the old one all the same; `is_hash` where the names differ in a hash alone, `is_equal` where nothing but names does.
    """

    old: ObjectRef
    new: ObjectRef
    before: JsonObject
    after: JsonObject
    is_hash: bool
    is_equal: bool
    followed: tuple[str, ...]
    still: tuple[str, ...]

    @property
    def is_plain(self) -> bool:
        """Whether names alone tell it, and nothing that is said of it is a value of the old object."""
        return self.is_hash and self.old.group_kind in _VALUES


def renames(facts: Facts) -> list[Rename]:
    """The renamed objects of a change from one content to another, sorted by their old names."""
    if facts.previous is None:
        return []
    old = {manifest.ref.identity: manifest.body for manifest in facts.previous.manifests}
    new = {manifest.ref.identity: manifest.body for manifest in facts.content.manifests}
    gone, come = _by_place(facts, Action.DELETE, old), _by_place(facts, Action.CREATE, new)
    if not gone.keys() & come.keys():
        return []
    now = [(manifest.ref, _Named.of(manifest.body)) for manifest in facts.content.manifests]
    both = [(ref, _Named.of(old[ref.identity]), names) for ref, names in now if ref.identity in old]
    pairs: dict[ObjectRef, ObjectRef] = {}
    for _ in range(2):  # what names a renamed object may be renamed itself
        for place in sorted(gone.keys() & come.keys(), key=str):
            left = [ref for ref in gone[place] if ref not in pairs]
            right = [ref for ref in come[place] if ref not in set(pairs.values())]
            is_by_name = facts.hides_old_names or place[0] == SECRET
            if len(left) * len(right) <= MAX_PAIRS:
                pairs.update(_pairs((left, right), (old, new), None if is_by_name else both))
        names = dict(now)
        both += [
            (it, _Named.of(old[one.identity]), names[it])
            for one, it in pairs.items()
            if all(known != it for known, *_ in both)
        ]
    found = []
    for one, other in sorted(pairs.items()):
        still = (display_name(ref) for ref, names in now if ref != other and names.mentions(one))
        followed = map(display_name, _followed(one, other, both))
        before = {} if facts.hides_old_names else _with_names(old[one.identity], pairs)
        after = new[other.identity]
        is_hash, is_equal = _is_hash(one.name, other.name), _content(before) == _content(after)
        found.append(
            Rename(one, other, before, after, is_hash, is_equal, tuple(sorted(followed)), tuple(sorted(still)))
        )
    return found


def _with_names(obj: JsonObject, pairs: Mapping[ObjectRef, ObjectRef]) -> JsonObject:
    """What was before, with the new names of what it names."""
    named = _Named.of(obj)
    for one, other in pairs.items():
        if named.mentions(one):
            obj = _replaced(obj, one.name, other.name)
    return obj


def renamed(facts: Facts, found: Iterable[Rename]) -> StateFacts | None:
    """What was before, under the new names: what is found of it is as before. None where nothing is renamed."""
    pairs = {rename.old: rename.new for rename in found}
    if not pairs:
        return None
    by_identity = {old.identity: new for old, new in pairs.items()}
    state = facts.previous_state()
    objects = []
    for ref, obj in state.named:
        known, own = _with_names(obj, pairs), by_identity.get(ref.identity)
        objects.append({**known, "metadata": {**mapping(known.get("metadata")), "name": own.name}} if own else known)
    return StateFacts(
        tuple(objects), state.install_namespace, state.service_account, state.live, state.is_offline, state.around
    )


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _replaced(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, old, new) for inner in value]
    return new if value == old else value


_Place = tuple[GroupKind, str]
_Both = list[tuple[ObjectRef, "_Named", "_Named"]]
_Bodies = Mapping[Any, JsonObject]


def _by_place(facts: Facts, action: Action, known: _Bodies) -> dict[_Place, list[ObjectRef]]:
    kinds = _NAMED_BY_HASH if facts.hides_old_names else KINDS
    found: dict[_Place, list[ObjectRef]] = defaultdict(list)
    for planned in facts.plan.actions:
        if planned.action is action and planned.ref.group_kind in kinds and planned.ref.identity in known:
            found[planned.ref.group_kind, planned.ref.namespace].append(planned.ref)
    return found


def _pairs(
    refs: tuple[list[ObjectRef], list[ObjectRef]], bodies: tuple[_Bodies, _Bodies], both: _Both | None
) -> Iterator[tuple[ObjectRef, ObjectRef]]:
    """The surest reason first; a partner that is not the only one for a reason is none. Without `both` only by name."""
    (left, right), (old, new) = refs, bodies
    tests: list[Callable[[ObjectRef, ObjectRef], bool]] = [lambda one, other: _is_hash(one.name, other.name)]
    if both is not None:
        tests += [
            lambda one, other: _are_alike(old[one.identity], new[other.identity]) and any(_followed(one, other, both)),
            lambda one, other: _is_near(old[one.identity], new[other.identity]),
        ]
    for test in tests:
        partners = {ref: [other for other in right if test(ref, other)] for ref in left}
        taken = [other for several in partners.values() for other in several]
        for one, several in partners.items():
            if len(several) == 1 and taken.count(several[0]) == 1:
                yield one, several[0]
                left.remove(one)
                right.remove(several[0])


def _is_hash(old: str, new: str) -> bool:
    before, after = _HASHED.fullmatch(old), _HASHED.fullmatch(new)
    return before is not None and after is not None and before["stem"] == after["stem"]


def _are_alike(old: JsonObject, new: JsonObject) -> bool:
    """Whether two objects serve one purpose: of one type, with mostly the same keys, ports or webhooks."""
    before, after = _outline(old), _outline(new)
    shared = len(before & after)
    return old.get("type") == new.get("type") and 2 * shared >= max(len(before), len(after))


def _outline(obj: JsonObject) -> set[str]:
    found = {f"key {key}" for part in ("data", "stringData", "binaryData") for key in mapping(obj.get(part))}
    spec = mapping(obj.get("spec"))
    found |= {f"port {port.get('port')}" for port in spec.get("ports") or () if isinstance(port, Mapping)}
    return found | {
        f"webhook {webhook.get('name')}" for webhook in obj.get("webhooks") or () if isinstance(webhook, Mapping)
    }


def _is_near(old: JsonObject, new: JsonObject) -> bool:
    before, after = set(_leaves(_content(old))), set(_leaves(_content(new)))
    shared, most = len(before & after), len(before | after)
    return shared >= _FEWEST_LEAVES and shared >= _NEAR * most


def _content(obj: JsonObject) -> JsonObject:
    return {key: value for key, value in obj.items() if key not in {"apiVersion", "kind", "metadata", "status"}}


def _leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    elif value not in (None, {}, []):
        yield f"{path}={json.dumps(value, default=str)}"


def _followed(old: ObjectRef, new: ObjectRef, both: _Both) -> Iterator[ObjectRef]:
    for ref, before, after in both:
        if before.mentions(old) and after.mentions(new) and not after.mentions(old):
            yield ref


@dataclass(frozen=True, slots=True)
class _Named:
    """What an object names: `exact` where references stand, `words` in what programs read, each name once.

    A Secret names nothing: that a value of it is the name of something is a value.
    """

    namespace: str
    exact: frozenset[str]
    words: frozenset[str]

    @classmethod
    def of(cls, obj: JsonObject) -> _Named:
        exact: set[str] = set()
        words: set[str] = set()
        read = {} if obj.get("kind") == SECRET.kind else obj
        for path, text in _texts(read, ()):
            key, holder = path[-1] if path else "", path[-2] if len(path) > 1 else ""
            if key in _EXACT or (key == "name" and holder in _HOLDERS):
                exact.add(text)
            if _TEXTS.intersection(path[-2:]):
                for word in _WORD.findall(text):
                    words |= {word, ".".join(word.split(".", 2)[:2])}
        return cls(str(mapping(obj.get("metadata")).get("namespace") or ""), frozenset(exact), frozenset(words))

    def mentions(self, named: ObjectRef) -> bool:
        """A Service also by its name in DNS; a short plain word in a text may mean anything."""
        if named.group_kind == SERVICE and f"{named.name}.{named.namespace}" in self.words:
            return True
        if named.namespace and self.namespace and named.namespace != self.namespace:
            return False
        is_telling = "-" in named.name and len(named.name) >= _SHORTEST_IN_TEXT
        return named.name in self.exact or (is_telling and named.name in self.words)


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "metadata":  # what cert-manager and others are told stands in annotations
                yield from _texts(mapping(inner).get("annotations"), (*path, "annotations"))
            elif key not in _NO_REFERENCES:
                yield from _texts(inner, (*path, str(key)))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, path)
    elif isinstance(value, str):
        yield path, value
