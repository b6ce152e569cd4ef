"""What a changed CRD does to the objects that are stored already: each is tried at every version that will be served.

Only what the change makes worse counts: what an object loses or is refused for under the present CRD as well is left
out. No value of an object leaves this module, only its shape: who may see findings about a CRD need not be allowed to
read its objects (S09).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from provisioner.json_values import mapping
from provisioner.schema import Admission, Candidate, FieldError, admit_all
from provisioner.schema.definition.crd import Crd, CrdVersion
from provisioner.schema.fields import same_json
from provisioner.sentences import number, unescaped
from provisioner.values import JsonObject, ObjectRef

Parts = tuple[str, ...]
ITEMS, VALUES = "[]", "{}"
_JUNCTORS = frozenset({"allOf", "anyOf", "oneOf", "not"})
_PART = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
# Rules with it say something of updates only.
OLD_SELF = "oldSelf"
TRIED_TOGETHER = 16  # objects whose rules are evaluated in one go
NOT_EVALUATED = "could not be evaluated"
_SHOWS_VALUE = ("Invalid value", "Unsupported value", "Duplicate value", "Too many")


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one object at one version: the paths that go, and the errors by when they bite.

    `refused` stop any next write, `when_edited` only those that touch what is around them, `flipped` are the paths that
    read another default than before.
    """

    ref: ObjectRef
    pruned: tuple[str, ...] = ()
    refused: tuple[FieldError, ...] = ()
    when_edited: tuple[FieldError, ...] = ()
    flipped: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[FieldError, ...]:
        return (*self.refused, *self.when_edited)

    @property
    def refusals(self) -> tuple[FieldError, ...]:
        """The errors but for those of rules that could not be evaluated."""
        return tuple(error for error in self.errors if NOT_EVALUATED not in error.message)

    @property
    def is_unknown(self) -> bool:
        return len(self.refusals) < len(self.errors)

    @property
    def is_untouched(self) -> bool:
        return not (self.pruned or self.refused or self.when_edited or self.flipped)


def fates(old: Crd, new: Crd, read_as: str, read: Mapping[str, Iterable[JsonObject]]) -> dict[str, list[Fate]]:
    """The fates of the objects by each version that `new` will serve and that can be tried; those that are untouched
    are left out.

    `read` holds the objects by the version in which they were read. Without conversion every version gets those of
    `read_as`; where a webhook converts, a version can be tried only on what the webhook made of the objects for it.
    """
    found: dict[str, list[Fate]] = {}
    for version in triable_versions(old, new, read):
        before = old.version(version.name)
        if before is not None and (
            old.preserves_unknown == new.preserves_unknown and same_json(before.schema, version.schema)
        ):
            found[version.name] = []
            continue
        held = read[version.name if _is_converted(old, new) else read_as]
        trial = _Trial(old, new, before, version, OLD_SELF in str(version.schema))
        tried = (fate for some in _together(held) for fate in trial.fates(some))
        found[version.name] = [one for one in tried if not one.is_untouched]
    return found


def triable_versions(old: Crd, new: Crd, read: Iterable[str]) -> list[CrdVersion]:
    """The versions that will be served and for which it is known what a stored object looks like."""
    known = set(read)
    return [version for version in new.served_versions if not _is_converted(old, new) or version.name in known]


def _is_converted(old: Crd, new: Crd) -> bool:
    return old.uses_webhook or new.uses_webhook


@dataclass(frozen=True, slots=True)
class _Trial:
    """Objects at one version: what `after` makes of them that `before`, if there was one, did not."""

    old: Crd
    new: Crd
    before: CrdVersion | None
    after: CrdVersion
    judges_changes: bool

    def fates(self, objects: Sequence[JsonObject]) -> list[Fate]:
        schema = self.after.schema
        if schema is None:  # takes everything
            return [Fate(ObjectRef.of(obj)) for obj in objects]
        shown = [{**obj, "apiVersion": f"{self.new.group}/{self.after.name}"} for obj in objects]
        tried = self._tried(schema, [(one, None) for one in shown])
        is_asked = [self.judges_changes or bool(one.worse) for one in tried]
        writes = [(one, one) for one, is_one in zip(shown, is_asked, strict=True) if is_one]
        kept = iter(self._tried(schema, writes))
        stopped = [tuple(next(kept).refusals) if is_one else () for is_one in is_asked]
        return [self._fate(obj, one, refused) for obj, one, refused in zip(objects, tried, stopped, strict=True)]

    def _fate(self, obj: JsonObject, tried: _Tried, refused: tuple[FieldError, ...]) -> Fate:
        known = tried.known
        shown = {**obj, "apiVersion": f"{self.new.group}/{self.after.name}"}
        flipped = tuple(_flipped(known.after if known else shown, tried.admission.after, ()))
        later = tuple(refusal for refusal in tried.refusals if refusal not in refused)
        return Fate(ObjectRef.of(obj), self._pruned(tried.admission, known), refused, later, flipped)

    def _tried(self, schema: Mapping[str, Any], writes: Sequence[tuple[JsonObject, JsonObject | None]]) -> list[_Tried]:
        """What both CRDs make of writing each object, in place of the second of the pair where there is one."""
        present = self.before.schema if self.before is not None else None
        schemas = [schema] if present is None else [schema, present]
        found = admit_all(Candidate(one, obj, old) for obj, old in writes for one in schemas)
        return [_Tried(*found[at : at + len(schemas)]) for at in range(0, len(found), len(schemas))]

    def _pruned(self, admission: Admission, known: Admission | None) -> tuple[str, ...]:
        if self.new.preserves_unknown:
            return ()
        gone_before = set(known.pruned) if known and not self.old.preserves_unknown else set()
        return tuple(one for one in admission.pruned if one not in gone_before)


@dataclass(frozen=True, slots=True)
class _Tried:
    """What the CRD as it will be makes of an object, and what the present one makes of it, where it has the version."""

    admission: Admission
    known: Admission | None = None

    @property
    def worse(self) -> set[FieldError]:
        return set(self.admission.refusals) - set(self.known.refusals if self.known else ())

    @property
    def refusals(self) -> list[FieldError]:
        """Those of `worse`, in the order of the server."""
        worse = self.worse
        return [refusal for refusal in self.admission.refusals if refusal in worse]


def _together(objects: Iterable[JsonObject]) -> Iterator[list[JsonObject]]:
    waiting = iter(objects)
    while some := list(islice(waiting, TRIED_TOGETHER)):
        yield some


def _flipped(before: Any, after: Any, path: Parts) -> Iterator[str]:
    """Paths that `after` has, by a default, with another value than `before`, or that only `before` had by one."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in after:
            if key in before:
                yield from _flipped(before[key], after[key], (*path, str(key)))
            else:
                yield ".".join((*path, str(key)))
    elif isinstance(before, list) and isinstance(after, list):
        for index, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from _flipped(one, other, (*path[:-1], f"{path[-1] if path else ''}[{index}]"))


def parts_of(path: str) -> Parts:
    """A path of the API server (`spec.list[0].a`, `spec.map[key]`) in parts, positions in lists as `[]`."""
    if path == "<nil>":
        return ()
    return tuple(
        ITEMS if inside.isdigit() else inside or plain for inside, plain in _PART.findall(path) if inside or plain
    )


def concerns(place: tuple[str | int, ...], path: str) -> bool:
    """Whether `path` of an object lies at or below `place` of a schema, which holds `[]` and `{}`."""
    wanted: list[str] = []
    for part in place:
        if part in _JUNCTORS:
            break
        wanted.append(str(part))
    parts = parts_of(path)
    if len(parts) < len(wanted):
        return False
    return all(one in {found, VALUES} for one, found in zip(wanted, parts, strict=False))


def general(path: str) -> str:
    """A path with the positions in its lists left out: what objects have in common."""
    return ".".join(parts_of(path)).replace(f".{ITEMS}", ITEMS)


def value_at_path(obj: object, path: str) -> object:
    """The value at a path as `pruned` names it; None where there is none."""
    found: object = obj
    for inside, outside in _PART.findall(path):
        if inside.isdecimal() and len(inside) < 10 and isinstance(found, list):
            found = found[int(inside)] if int(inside) < len(found) else None
        else:
            found = mapping(found).get(inside or outside)
    return found


def shape(value: object) -> str:
    """A value as somebody may see it who may not see it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return f"a text of {number(len(value), 'character')}"
    if isinstance(value, Mapping):
        return f"an object with {number(len(value), 'field')}"
    return f"a list of {len(value)}" if isinstance(value, list) else "a value"


def masked(error: FieldError, obj: JsonObject) -> str:
    """An error in the API server's words without the value that it quotes, at its front or, by a rule, further on."""
    kind, _, rest = error.message.partition(": ")
    if rest and kind in _SHOWS_VALUE:
        rest = _without_value(rest)
    rest = unescaped(rest)  # first: an escaped text is not found in it
    for text in sorted(_texts(obj), key=len, reverse=True):
        rest = rest.replace(text, "…")
    return f"{error.path}: {kind}{f': {rest}' if rest else ''}"


def _without_value(words: str) -> str:
    if quoted := _QUOTED.match(words):
        return words[quoted.end() :].removeprefix(": ")
    _, found, detail = words.rpartition(": ") if words[:1] in "{[" else words.partition(": ")
    return detail if found else ""


def _texts(value: object) -> set[str]:
    """The texts inside an object that are long enough to tell something; its names and types tell nothing new."""
    if isinstance(value, Mapping):
        inner = [one for key, one in value.items() if key not in {"apiVersion", "kind", "metadata"}]
        return {text for one in inner for text in _texts(one)}
    if isinstance(value, list):
        return {text for one in value for text in _texts(one)}
    return {value} if isinstance(value, str) and len(value) > 3 else set()
