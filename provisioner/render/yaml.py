"""The one reader of YAML and JSON: gives what kubectl would send to the API server, within limits.

It works from the parser's events, on a stack of its own. PyYAML's composer recurses in C and would fall over deep
nesting, forgets where keys stand, and reads scalars by other rules (see scalars.py).

Where kubectl is silent about a loss we refuse: invalid UTF-8, lone surrogates, anything after a `...` line, which
kubectl drops, and a key that is there twice. Of that kubectl takes the later value. So do we where the two are equal
or one is empty, if the meter keeps such keys for the report. Merge keys are followed in it, too: `<<` overrides keys
written before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from provisioner.errors import BundleTooLarge, InvalidManifest
from provisioner.render.canonical import canonical_json
from provisioner.render.limits import YamlLimits, YamlMeter
from provisioner.render.scalars import MERGE, Scalar, key, number, resolve
from provisioner.values import RepeatedKey, RepeatEffect

_SEPARATOR = re.compile(r"^---(.*)$", re.MULTILINE)
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_JSON_SPACE = re.compile(r"[ \t\r\n]*")
_OPEN = object()  # an anchor whose collection is not read to its end
_SETTLED = object()  # no spelling of a key: of three values two may differ
_MAX_PATH, _MAX_STEP = 300, 100


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a file and the line (from 1) on which it begins."""

    value: Any
    line: int


def load_all(text: str | bytes, *, name: str, limits: YamlLimits | None = None) -> list[Any]:
    """All documents of a YAML or JSON file as JSON values; empty and null ones are left out, as kubectl does.

    Aliased values are shared: do not change what this returns. Raises InvalidManifest with file and line, and
    BundleTooLarge past `limits`.
    """
    return [document.value for document in load_documents(text, name=name, meter=YamlMeter(limits or YamlLimits()))]


def load_documents(text: str | bytes, *, name: str, meter: YamlMeter) -> Iterator[YamlDocument]:
    """The documents of `load_all` one by one with their lines, counted by a meter which several files may share."""
    meter.file(name, len(text))
    decoded = _decode(text, name).removeprefix("\ufeff")
    for part, line in _split(decoded, name, meter):
        chunk = part.removeprefix("\ufeff")  # files that were joined bring theirs along
        if chunk.startswith("{", _skip_space(chunk, 0)):
            yield from _read_json(chunk, name, line, meter)
        else:
            yield from _read_yaml(chunk, name, line, meter)


def _decode(text: str | bytes, name: str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as exc:
        line = text.count(b"\n", 0, exc.start) + 1
        raise InvalidManifest(f"{name}:{line}: not UTF-8 at byte {exc.start}") from exc


def _refuse_control_characters(text: str, name: str, line: int) -> None:
    """The characters that YAML forbids, said with the line, which its parser would not say. JSON allows some."""
    found = _FORBIDDEN.search(text)
    if found:
        where = line + text.count("\n", 0, found.start())
        raise InvalidManifest(f"{name}:{where}: the control character U+{ord(found[0]):04X} is not allowed")


def _split(text: str, name: str, meter: YamlMeter) -> Iterator[tuple[str, int]]:
    """Cut at lines that begin with `---`, as kubectl does before it reads YAML at all."""
    start, line = 0, 1
    for separator in _SEPARATOR.finditer(text):
        meter.document(name)
        yield text[start : separator.start()], line
        line += text.count("\n", start, separator.start())
        rest = separator[1].strip()
        if rest and not rest.startswith("#"):
            raise InvalidManifest(f"{name}:{line}: kubectl takes only a comment after `---` on the same line")
        start, line = separator.end() + 1, line + 1
    meter.document(name)
    yield text[start:], line


class _DuplicateKey(Exception):
    """JSON's reader cannot say where; the YAML reader then can."""


def _read_json(chunk: str, name: str, line: int, meter: YamlMeter) -> Iterator[YamlDocument]:
    """One or several JSON objects; what is no JSON (`{a: 1}`) is YAML, as for kubectl.

    JSON's reader cannot stop halfway, so what may hold too many values goes to the one that can.
    """
    if sum(map(chunk.count, "{[,")) > meter.limits.max_nodes:
        yield from _read_yaml(chunk, name, line, meter)
        return
    try:
        values = list(_json_values(chunk, name, meter))
    except (_DuplicateKey, json.JSONDecodeError):
        yield from _read_yaml(chunk, name, line, meter)
        return
    except RecursionError as exc:
        raise BundleTooLarge(f"{name}:{line}: nested deeper than {meter.limits.max_depth} (max_depth)") from exc
    except InvalidManifest as exc:
        raise InvalidManifest(f"{name}:{line}: {exc}") from exc
    counted = 0
    for value, offset in values:
        line += chunk.count("\n", counted, offset)
        counted = offset
        _measure(value, name, line, meter)
        yield YamlDocument(value, line)


def _json_values(chunk: str, name: str, meter: YamlMeter) -> Iterator[tuple[Any, int]]:
    decoder = json.JSONDecoder(
        object_pairs_hook=_mapping, parse_int=_json_integer, parse_float=_json_number, parse_constant=_no_constant
    )
    end = _skip_space(chunk, 0)
    while end < len(chunk):
        begin = end
        meter.document(name)
        value, end = decoder.raw_decode(chunk, begin)
        end = _skip_space(chunk, end)
        yield value, begin


def _skip_space(chunk: str, start: int) -> int:
    space = _JSON_SPACE.match(chunk, start)
    return space.end() if space else start


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise _DuplicateKey
    return mapping


def _json_integer(digits: str) -> int | float:
    return number(int(digits) if len(digits.lstrip("-")) < 20 else float(digits))


def _json_number(digits: str) -> int | float:
    return number(float(digits))


def _no_constant(word: str) -> None:
    raise json.JSONDecodeError("no JSON", word, 0)


def _measure(root: Any, name: str, line: int, meter: YamlMeter) -> None:
    pending = [(root, 1)]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, dict | list):
            meter.depth(name, line, depth)
            members = list(value.values()) if isinstance(value, dict) else value
            pending.extend((member, depth + 1) for member in members)
        texts = [value] if isinstance(value, str) else list(value) if isinstance(value, dict) else []
        meter.add(name, 1 + (len(value) if isinstance(value, dict) else 0), sum(map(len, texts)))
        for text in texts:
            _refuse_surrogates(text, f"{name}:{line}")


def _refuse_surrogates(text: str, place: str) -> None:
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidManifest(f"{place}: a text holds half a surrogate pair, which UTF-8 cannot") from exc


def _read_yaml(chunk: str, name: str, line: int, meter: YamlMeter) -> Iterator[YamlDocument]:
    _refuse_control_characters(chunk, name, line)
    line -= 1  # of the separator that we put back, so that `...` alone is an empty document as well
    reader = _Reader(name, line, meter)
    loader = yaml.CSafeLoader(f"---\n{chunk}")
    try:
        while loader.check_event():
            reader.take(loader.get_event())
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        where = line + (mark.line if mark else 1)
        raise InvalidManifest(f"{name}:{where}: {exc.problem or 'not YAML'}") from exc
    except yaml.YAMLError as exc:
        raise InvalidManifest(f"{name}:{line + 1}: {exc}") from exc
    finally:
        loader.dispose()
    if reader.root is not None:
        yield YamlDocument(reader.root, reader.root_line)


class _Position(NamedTuple):
    line: int
    column: int


@dataclass(slots=True)
class _Frame:
    """A collection that is not read to its end. `key` is None while a mapping waits for one."""

    value: Any
    anchor: str | None
    nodes: int
    characters: int
    height: int = 0
    key: str | None = None
    is_merge: bool = False
    # The keys of a mapping that were written, not merged, each with where it is and as it is before it is a text.
    written: dict[str, tuple[_Position, object]] | None = None
    earlier: tuple[_Position, object] | None = None  # of `key`, where it is there already
    has_merged: bool = False


@dataclass(frozen=True, slots=True)
class _Anchored:
    """What an alias stands for, and what it costs to write it out. `height` is how deep it is nested itself."""

    value: Any
    nodes: int = 1
    characters: int = 0
    height: int = 0


class _Reader:
    """Builds the value of one document from events."""

    def __init__(self, name: str, line: int, meter: YamlMeter):
        self.root: Any = None
        self.root_line = line + 1
        self._name = name
        self._first_line = line
        self._line, self._column = line, 0
        self._meter = meter
        self._documents = 0
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._texts: dict[str, str] = {}
        self._take = {
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            yaml.MappingStartEvent: self._open,
            yaml.SequenceStartEvent: self._open,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
            yaml.DocumentStartEvent: self._document,
        }

    def take(self, event: Any) -> None:
        take = self._take.get(type(event))
        if take:
            self._line, self._column = self._first_line + event.start_mark.line, event.start_mark.column + 1
            take(event)

    @property
    def _place(self) -> str:
        return f"{self._name}:{self._line}"

    def _refuse(self, words: str) -> InvalidManifest:
        return InvalidManifest(f"{self._place}: {words}")

    def _document(self, _event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise self._refuse("a second document needs a line `---` before it; kubectl would leave it out")

    def _scalar(self, event: Any) -> None:
        is_plain = event.implicit[0]
        self._meter.add(self._name, 1, len(event.value))
        try:
            value = resolve(event.tag or "", event.value, is_plain=is_plain)
        except InvalidManifest as exc:
            raise self._refuse(str(exc)) from exc
        if isinstance(value, str):  # one of each: "type: string" stands in a CRD some thousand times
            value = self._texts.setdefault(value, value)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, characters=len(event.value))
        if event.value == "<<" and (is_plain or event.tag == MERGE) and self._waits_for_key():
            self._frames[-1].is_merge = True
        else:
            self._put(value)

    def _alias(self, event: Any) -> None:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            raise self._refuse(f"the anchor {event.anchor!r} is not known")
        if anchored.value is _OPEN:
            raise self._refuse(f"the anchor {event.anchor!r} contains itself")
        self._meter.add(self._name, anchored.nodes, anchored.characters)
        self._meter.depth(self._name, self._line, len(self._frames) + anchored.height)
        if self._waits_for_key() and isinstance(anchored.value, dict | list):
            raise self._refuse("a mapping or list as a key")
        self._put(anchored.value, height=anchored.height, is_alias=True)

    def _open(self, event: Any) -> None:
        if not self._frames:
            self.root_line = self._line
        if self._waits_for_key():
            raise self._refuse("a mapping or list as a key")
        self._meter.depth(self._name, self._line, len(self._frames) + 1)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        frame = _Frame({} if is_mapping else [], event.anchor, self._meter.nodes, self._meter.characters)
        frame.written = {} if is_mapping else None
        self._meter.add(self._name, 1, 0)
        self._frames.append(frame)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(_OPEN)

    def _close(self, _event: Any) -> None:
        frame = self._frames.pop()
        nodes, characters = self._meter.nodes - frame.nodes, self._meter.characters - frame.characters
        if frame.anchor:
            self._anchors[frame.anchor] = _Anchored(frame.value, nodes, characters, frame.height + 1)
        self._put(frame.value, height=frame.height + 1)

    def _waits_for_key(self) -> bool:
        if not self._frames:
            return False
        frame = self._frames[-1]
        return frame.written is not None and frame.key is None and not frame.is_merge

    def _put(self, value: Any, *, height: int = 0, is_alias: bool = False) -> None:
        if self._waits_for_key():
            self._put_key(value)
            return
        if not self._frames:
            self.root = self._settled(value)
            return
        frame = self._frames[-1]
        frame.height = max(frame.height, height)
        if frame.is_merge:
            # Take over what `<<` names. The first of several wins among them, all win over keys written before.
            members = [value] if is_alias or isinstance(value, dict) else value
            if not isinstance(members, list) or not all(isinstance(member, dict) for member in members):
                raise self._refuse("`<<` takes a mapping or a list of mappings")
            for member in reversed(members):
                frame.value.update(member)
            frame.is_merge, frame.has_merged = False, True
        elif frame.key is not None:
            settled = self._settled(value)
            if frame.earlier:
                self._take_again(frame, frame.key, frame.earlier, settled)
            frame.value[frame.key] = settled
            frame.key = None
        else:
            frame.value.append(self._settled(value))

    def _put_key(self, value: Scalar) -> None:
        frame = self._frames[-1]
        try:
            name = key(value)
            frame.key = self._texts.setdefault(name, name)
        except InvalidManifest as exc:
            raise self._refuse(str(exc)) from exc
        assert frame.written is not None
        frame.earlier = frame.written.get(frame.key)
        frame.written[frame.key] = (_Position(self._line, self._column), value)

    def _take_again(self, frame: _Frame, name: str, earlier: tuple[_Position, object], value: Any) -> None:
        """Note that a key is there twice, or refuse it where a value would be lost, or nobody can say which one counts.

        kubectl takes the later value, but any of the two where the keys are alike only as texts (`1` and `"1"`).
        """
        assert frame.written is not None
        (first, spelling), (position, own_spelling) = earlier, frame.written[name]
        # On one line, as in a flow mapping, only the columns tell them apart.
        columns = (first.column, position.column) if first.line == position.line else (0, 0)
        where, too = f"on line {first.line}", " too"
        if columns[0]:
            where, too = f"at the columns {columns[0]} and {columns[1]}", ""
        refused = f"{self._name}:{position.line}: the key {name[:_MAX_STEP]!r} is there twice, {where}"
        if not self._meter.takes_repeated or frame.has_merged:
            raise InvalidManifest(f"{refused}{too}")
        before, effect = frame.value[name], RepeatEffect.EQUAL
        if canonical_json(before) != canonical_json(value):
            is_same = type(spelling) is type(own_spelling) and spelling == own_spelling
            if not is_same or not (_is_empty(before) or _is_empty(value)):
                raise InvalidManifest(f"{refused} with another value: remove one of them")
            effect = RepeatEffect.EMPTIED if _is_empty(value) else RepeatEffect.FILLED
            frame.written[name] = (position, _SETTLED)
        repeated = RepeatedKey(self._name, first.line, position.line, self._path, effect, *columns)
        self._meter.repeat(repeated)

    @property
    def _path(self) -> str:
        steps = (
            f"[{len(frame.value)}]" if frame.written is None else f".{str(frame.key)[:_MAX_STEP]}"
            for frame in self._frames
        )
        return "".join(steps).removeprefix(".")[:_MAX_PATH]

    def _settled(self, value: Any) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return value
        try:
            return number(value)
        except InvalidManifest as exc:
            raise self._refuse(str(exc)) from exc


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})
