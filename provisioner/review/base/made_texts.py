"""Values that a chart made up, taken out of what people read: as they are, in base64, escaped for an address or JSON.

A checksum, or what else cannot be turned back, is no such form.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

from provisioner.json_values import value_at
from provisioner.values import ObjectRef

# A shorter value may stand in many a text by chance.
SHORTEST = 8
# A registry's credentials have base64 in base64, and user data of machines once more.
_CODINGS = 3
_PUBLIC = re.compile(r"\s*(?:-----BEGIN (CERTIFICATE|PUBLIC KEY)-----[^-]+-----END \1-----\s*)+")
# A line of a PEM block: other texts indent it.
_LINE = re.compile(r"^[ \t]*([A-Za-z0-9+/=]{16,})[ \t]*$", re.MULTILINE)
_CODED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-")


def is_public(value: str) -> bool:
    """Whether it is nothing but certificates and public keys, which everybody may read."""
    return bool(_PUBLIC.fullmatch(value))


@dataclass(frozen=True, slots=True)
class _Form:
    """What to look for; of base64 all the characters around it go as well, since they hold parts of the value."""

    text: str
    words: str
    is_coded: bool = False


@dataclass(frozen=True, slots=True)
class ShortText:
    """A whole text in an object that is too short to be looked for elsewhere."""

    kind: str
    namespace: str
    name: str
    path: tuple[str, ...]
    text: str
    words: str


class HiddenTexts:
    """Hides texts, each behind its words, wherever they stand in a JSON value. Falsy where there is none to hide.

    Of a text that was cut short the beginning goes. `leaves` are the places of those that are too short for this.
    """

    def __init__(self, words: Mapping[str, str], leaves: Iterable[ShortText] = ()):
        self._forms: dict[str, list[_Form]] = {}
        self.leaves = tuple(leaves)
        for text, shown in sorted(words.items(), key=lambda pair: -len(pair[0])):
            for form in _forms(text, shown) if len(text) >= SHORTEST and not is_public(text) else ():
                self._forms.setdefault(form.text[:SHORTEST], []).append(form)

    def __bool__(self) -> bool:
        return bool(self._forms or self.leaves)

    def of(self, value: Any) -> Any:
        """A copy of `value` without the texts."""
        if isinstance(value, str):
            return self._shown(value)
        if isinstance(value, Mapping):
            return {self.of(key): self.of(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return type(value)(map(self.of, value))
        return value

    def of_object(self, ref: ObjectRef, body: Any) -> Any:
        """A copy of the body of an object without the texts, those included that are hidden at their own places."""
        body = self.of(body)
        for leaf in self.leaves:
            if (leaf.kind, leaf.namespace, leaf.name) == (ref.kind, ref.namespace, ref.name):
                body = _without_leaf(body, leaf.path, leaf.words)
        return body

    def _shown(self, text: str) -> str:
        heads = {text[at : at + SHORTEST] for at in range(len(text) - SHORTEST + 1)} & self._forms.keys()
        for form in sorted((form for head in heads for form in self._forms[head]), key=lambda form: -len(form.text)):
            text = _without_coded(text, form) if form.is_coded else text.replace(form.text, form.words)
            text = _without_beginning(text, form)
        return text


_WORDS_OF_FINDINGS = ("message", "path", "evidence", "serverWords", "notes")
_WORDS_OF_ACTIONS = ("before", "after", "warnings", "problem", "notes", "serverWords")


def without_texts_of_report(record: Mapping[str, Any], hidden: HiddenTexts) -> dict[str, Any]:
    """The record of a report without the texts; which objects and rules it names stays."""
    leaves: dict[tuple[str, ...], list[ShortText]] = {}
    for leaf in hidden.leaves:
        leaves.setdefault((leaf.kind, leaf.namespace, leaf.name), []).append(leaf)

    def shown(part: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
        told = {**part, **{key: hidden.of(part[key]) for key in keys if key in part}}
        ref = part["ref"] or {}
        for leaf in leaves.get((ref.get("kind", ""), ref.get("namespace", ""), ref.get("name", "")), ()):
            told |= {key: _without_leaf(told[key], leaf.path, leaf.words) for key in ("before", "after") if key in told}
            told |= {key: _without_equal(told[key], leaf) for key in ("evidence", "notes") if key in told}
        return told

    plan = record["plan"]
    return {
        **record,
        "headline": hidden.of(record["headline"]),
        **{part: [shown(finding, _WORDS_OF_FINDINGS) for finding in record[part]] for part in ("findings", "private")},
        "plan": {**plan, "actions": [shown(action, _WORDS_OF_ACTIONS) for action in plan["actions"]]},
    }


def _without_equal(value: Any, leaf: ShortText) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_equal(inner, leaf) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_equal(inner, leaf) for inner in value]
    return leaf.words if value == leaf.text else value


def _without_leaf(value: Any, path: tuple[str, ...], words: str) -> Any:
    if not path:
        return words
    first, rest = path[0], path[1:]
    if isinstance(value, Mapping) and first in value:
        return {**value, first: _without_leaf(value[first], rest, words)}
    if isinstance(value, list):
        return [
            _without_leaf(entry, rest, words) if first in (str(at), f"[name={value_at(entry, 'name')}]") else entry
            for at, entry in enumerate(value)
        ]
    return value


def _without_beginning(text: str, form: _Form) -> str:
    """The text without what was cut off in the middle of a form."""
    at = text.find(form.text[:SHORTEST])
    while at >= 0:
        end = at
        while end < len(text) and end - at < len(form.text) and text[end] == form.text[end - at]:
            end += 1
        if end == len(text) or text.startswith(("…", "..."), end):
            text = text[:at] + form.words + text[end:]
        at = text.find(form.text[:SHORTEST], at + 1)
    return text


def _without_coded(text: str, form: _Form) -> str:
    kept, at = [], 0
    while (found := text.find(form.text, at)) >= 0:
        begin, end = found, found + len(form.text)
        while begin > at and text[begin - 1] in _CODED:
            begin -= 1
        while end < len(text) and text[end] in _CODED:
            end += 1
        kept += [text[at:begin], form.words]
        at = end
    return "".join([*kept, text[at:]])


def _forms(text: str, words: str) -> Iterator[_Form]:
    for plain in dict.fromkeys([text, *(_LINE.findall(text) if "-----BEGIN" in text else ())]):
        escaped = (json.dumps(plain)[1:-1], quote(plain, safe=""), quote(plain), quote_plus(plain))
        forms = list(dict.fromkeys([plain, *escaped]))
        yield from (_Form(form, words) for form in forms)
        cores = {core for form in forms for core in _cores(form)}
        # Lines of a block are many, and stand in base64 that is encoded again with the whole block.
        coded = set(_cores(plain)) if plain == text else set()
        for _ in range(_CODINGS - 1):
            coded = {core for form in coded for core in _cores(form)}
            cores |= coded
        yield from (_Form(core, words, is_coded=True) for core in sorted(cores))


def _cores(text: str) -> Iterator[str]:
    """What of its base64 is the same whatever stands around it, for each of three places to begin at."""
    for before in (0, 8, 16):
        data = bytes(before // 8) + text.encode()
        kept = slice(-(-before // 6), len(data) * 8 // 6)
        coded = {encode(data).decode()[kept] for encode in (base64.b64encode, base64.urlsafe_b64encode)}
        yield from (core for core in coded if len(core) >= SHORTEST)
