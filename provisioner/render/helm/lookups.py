"""`config.lookup`: the objects of the cluster that a chart may look up, each by its name, and what it is told of them.

They are named before anything is rendered, so that who asks can be asked for the right to get each of them. Of a Secret
a chart is told marks in place of its values: it may put these into Secrets, where the values take their places again
(`filled`), and nowhere else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from provisioner.errors import BadBundle, BadConfig, BundleTooLarge
from provisioner.json_values import value_at
from provisioner.rbac import BUILT_IN_RESOURCES, plural_of
from provisioner.render.canonical import canonical_json
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import LAST_APPLIED, Found
from provisioner.render.targets import BUILT_IN, LookedUp
from provisioner.sentences import some
from provisioner.values import GroupKind, JsonObject, Lookup, ObjectRef

KEY = "lookup"
MAX_LOOKUPS = 50
MAX_BYTES = 1024 * 1024
_FIELDS = frozenset({"apiVersion", "kind", "name", "namespace"})
_FORM = "expected a list of objects with kind and name, and with apiVersion and namespace where it is not v1 or its own"
MARK = "pratiqueMark"
_DIGITS = 32
_ONE_MARK = re.compile(rb"%s[0-9a-f]{%d}" % (MARK.encode(), _DIGITS))
_SECRET = GroupKind("", "Secret")
_SECRET_METADATA = frozenset({"name", "namespace", "labels"})
_TYPED = ("data", "stringData")

Read = Callable[[ObjectRef], JsonObject | None]


def wanted_lookups(config: Mapping[str, Any], install_namespace: str) -> tuple[ObjectRef, ...] | None:
    """The objects that `config.lookup` names, None where it is not there. Raises BadConfig."""
    if config.get(KEY) is None:
        return None
    listed = config[KEY]
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise BadConfig(f"config.lookup: {_FORM}")
    if len(listed) > MAX_LOOKUPS:
        raise BadConfig(f"config.lookup names {len(listed)} objects; the limit is {MAX_LOOKUPS}")
    return tuple(dict.fromkeys(_ref(one, install_namespace, f"config.lookup[{i}]") for i, one in enumerate(listed)))


def _ref(entry: Mapping[str, Any], install_namespace: str, where: str) -> ObjectRef:
    unknown = sorted(set(map(str, entry)) - _FIELDS)
    if unknown or not all(isinstance(one, str) for one in entry.values()):
        raise BadConfig(f"{where} has {some(unknown)}; {_FORM}" if unknown else f"{where}: {_FORM}")
    if not entry.get("kind") or not entry.get("name"):
        raise BadConfig(f"{where} has no {'kind' if not entry.get('kind') else 'name'}; {_FORM}")
    group, _, version = entry.get("apiVersion", "v1").rpartition("/")
    kind = GroupKind(group, entry["kind"])
    if kind not in BUILT_IN or plural_of(kind.kind) not in BUILT_IN_RESOURCES.get(group, ()) or not version:
        # Another spelling would be another kind to the chart and to who asks for rights.
        spelt = [known.kind for known in BUILT_IN if known.group == group and known.kind.lower() == kind.kind.lower()]
        why = "is no kind of Kubernetes itself; only those can be looked up"
        if spelt and spelt[0] != kind.kind:
            why = f"is no kind; expected {spelt[0]!r}, as Kubernetes spells it"
        raise BadConfig(f"{where}: {entry['kind']!r} in {entry.get('apiVersion', 'v1')!r} {why}")
    namespace = (entry.get("namespace") or install_namespace) if BUILT_IN[kind] else ""
    return ObjectRef(group, version, kind.kind, namespace, entry["name"])


def looked_up(refs: Iterable[ObjectRef], read: Read, *, seed: str = "") -> tuple[LookedUp, ...]:
    """What a chart is told of these objects. Raises BundleTooLarge, and what `read` raises.

    `seed` is a secret, without which nobody can tell a mark: a chart may make a login of one (`htpasswd`).
    """
    found, size = [], 0
    for ref in refs:
        body = read(ref)
        one = LookedUp(ref, None) if body is None else _answer_lookup(ref, body, seed)
        size += len(canonical_json(one.answer)) + sum(map(len, one.marks.values()))
        if size > MAX_BYTES:
            raise BundleTooLarge(f"the objects of config.lookup are more than {MAX_BYTES // 1024} KiB together")
        found.append(one)
    return tuple(found)


def mark_of(parts: Sequence[str]) -> str:
    """What stands for a value of a Secret: the same for each rendering, and nothing of the value is in it."""
    return MARK + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]


def _answer_lookup(ref: ObjectRef, body: JsonObject, seed: str) -> LookedUp:
    if ref.group_kind == _SECRET:
        # Marks in place of its values, and nothing else that may hold them, as annotations do, or changes with them.
        kept = {key: one for key, one in dict(body.get("metadata") or {}).items() if key in _SECRET_METADATA}
        answer = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": kept}
        answer |= {key: body[key] for key in ("type", "immutable") if key in body}
        values, marks = {}, {}
        for key, value in dict(body.get("data") or {}).items():
            try:
                values[key] = base64.b64decode(str(value))
            except binascii.Error:
                values[key] = b""
            marks[key] = mark_of([seed, ref.namespace, ref.name, key])
        if values:
            answer["data"] = {key: base64.b64encode(mark.encode()).decode() for key, mark in marks.items()}
        return LookedUp(ref, answer, {marks[key]: value for key, value in values.items()})
    metadata = {key: value for key, value in dict(body.get("metadata") or {}).items() if key != "managedFields"}
    annotations = {key: one for key, one in dict(metadata.get("annotations") or {}).items() if key != LAST_APPLIED}
    if "annotations" in metadata:
        metadata["annotations"] = annotations
    # As a list has no kind for each of its objects, but a single one does.
    return LookedUp(ref, {**body, "apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata})


def filled(
    found: Iterable[Found], known: Iterable[LookedUp], meter: YamlMeter
) -> tuple[list[Found], tuple[Lookup, ...]]:
    """The objects with values in the place of marks, and what was looked up, with the Secrets that its values are in.

    Raises BadBundle where a mark is anywhere but in the values of a Secret: there everybody could read the value.
    Raises BundleTooLarge where the values make more of the chart than a bundle may be.
    """
    known = tuple(known)
    origins = {mark: one.ref for one in known for mark in one.marks}
    values = {mark.encode(): value for one in known for mark, value in one.marks.items()}
    filler = _Filler(values, {mark.encode(): str(ref) for mark, ref in origins.items()}, meter)
    made = [replace(one, body=filler.object(one, one.body)) for one in found] if values else list(found)
    copies: dict[ObjectRef, set[tuple[str, str]]] = {}
    for mark, places in filler.used.items():
        copies.setdefault(origins[mark.decode()], set()).update(places)
    return made, tuple(_record(one, copies.get(one.ref, set())) for one in known)


def _record(one: LookedUp, copies: set[tuple[str, str]]) -> Lookup:
    told = one.answer
    if told is not None and one.ref.group_kind == _SECRET:
        # Everybody is told whether it is another one than before: labels may change with the values (S38).
        told = {"object": str(one.ref), "keys": sorted(told.get("data", ())), "type": told.get("type", "")}
    digest = f"sha256:{hashlib.sha256(canonical_json(told)).hexdigest()}" if told is not None else ""
    places = sorted({place for place, _ in copies})
    return Lookup(one.ref, digest, tuple(places), tuple(f"{place}/{key}" for place, key in sorted(copies)), one.answer)


class _Filler:
    """Puts values where their marks are; `used` says in which Secrets, and under which of their keys."""

    def __init__(self, values: Mapping[bytes, bytes], origins: Mapping[bytes, str], meter: YamlMeter):
        self._values, self._meter = values, meter
        self._known = {one: origins[mark] for mark in values for one in _shapes(mark)}
        # What a shape of each mark begins with, and how long it is: a text is searched for these few alone.
        sizes = map(len, _shapes(next(iter(values), b"")))
        self._heads = tuple(zip(_shapes(MARK.encode()), sizes, strict=True))
        self.used: dict[bytes, set[tuple[str, str]]] = {}

    def object(self, found: Found, body: Any) -> Any:
        if isinstance(body, Mapping) and isinstance(body.get("items"), list) and str(body.get("kind")).endswith("List"):
            return {**body, "items": [self.object(found, item) for item in body["items"]]}
        if not (isinstance(body, Mapping) and (body.get("apiVersion"), body.get("kind")) == ("v1", "Secret")):
            self._check_none(found, body)
            return body
        self._check_none(found, {key: value for key, value in body.items() if key not in _TYPED})
        names = (value_at(body, "metadata", "namespace"), value_at(body, "metadata", "name"))
        place = "/".join(str(name) for name in names if name)
        return {key: self._values_of(found, key, value, place) for key, value in body.items()}

    def _values_of(self, found: Found, key: str, values: Any, place: str) -> Any:
        if key not in _TYPED or not isinstance(values, Mapping):
            return values
        self._check_none(found, dict.fromkeys(map(str, values)))
        return {name: self._value(found, key, value, (place, str(name))) for name, value in values.items()}

    def _value(self, found: Found, key: str, value: Any, place: tuple[str, str]) -> Any:
        if not isinstance(value, str) or not self._has_mark(value):
            return value
        if key == "stringData":
            try:
                filled = self._put(found, value.encode(), place).decode()
            except UnicodeDecodeError:
                raise found.refuse("takes a value of a Secret that is no text into stringData; use data") from None
        else:
            try:
                inner = base64.b64decode("".join(value.split()), validate=True)
            except binascii.Error:
                raise found.refuse("takes a value of a Secret into data that is not base64") from None
            filled = base64.b64encode(self._put(found, inner, place)).decode()
        if self._has_mark(filled):
            raise found.refuse("encodes a value of a Secret once more; Pratique cannot put it there")
        return filled

    def _put(self, found: Found, text: bytes, place: tuple[str, str]) -> bytes:
        def value_of(match: re.Match[bytes]) -> bytes:
            mark = match[0]
            if mark not in self._values:
                return mark
            self._meter.add(found.place, 0, len(self._values[mark]))
            self.used.setdefault(mark, set()).add(place)
            return self._values[mark]

        return _ONE_MARK.sub(value_of, text)

    def _has_mark(self, text: str) -> bool:
        return bool(self._origin(text))

    def _origin(self, text: str) -> str:
        """The Secret that the first mark in a text is of, as it stands there or in base64; "" without one."""
        if origin := self._find_origin(text.encode(errors="replace")):
            return origin
        try:
            inner = base64.b64decode("".join(text.split()), validate=True)
        except ValueError:
            return ""
        return self._find_origin(inner)

    def _find_origin(self, data: bytes) -> str:
        for head, size in self._heads:
            at = data.find(head)
            while at >= 0:
                if origin := self._known.get(data[at : at + size]):
                    return origin
                at = data.find(head, at + 1)
        return ""

    def _check_none(self, found: Found, value: Any) -> None:
        for text in _texts(value):
            if origin := self._origin(text):
                where = f"holds a value of {origin}, where everybody could read it"
                words = found.refuse(where).args[0]
                raise BadBundle(f"the chart: {words}; it may only go into data or stringData of a Secret")


def _shapes(mark: bytes) -> Iterator[bytes]:
    """A mark, and what of it is the same in the base64 of any text around it, for each of three places to begin at.

    What a mark begins with has shapes that those of the mark begin with.
    """
    yield mark
    for before in range(3):
        coded = base64.b64encode(bytes(before) + mark)
        yield coded[4 if before else 0 : -4]


def _texts(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        member = pending.pop()
        if isinstance(member, str):
            yield member
        elif isinstance(member, Mapping):
            pending.extend(member.keys())
            pending.extend(member.values())
        elif isinstance(member, list):
            pending.extend(member)
