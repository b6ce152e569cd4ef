"""What the bundle carries in itself: secret values, and text that hides or pretends (S24)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from provisioner.escaping import hidden_characters, pretending_words, visible
from provisioner.review.base.facts import SECRET, Check, ReviewRule, StateFacts, mapping
from provisioner.values import Finding, JsonObject, ObjectRef, Section, Severity

_SECRET_VALUES = ReviewRule("SEC-01", Section.CONTENT, Severity.DANGEROUS)
_HIDDEN_TEXT = ReviewRule("TXT-01", Section.CONTENT, Severity.DANGEROUS)
_PRETENDING_NAME = ReviewRule("TXT-02", Section.CONTENT, Severity.DANGEROUS)
_FOREIGN_NAME = ReviewRule("TXT-04", Section.CONTENT, Severity.NOTABLE)
_PRETENDING_TEXT = ReviewRule("TXT-03", Section.CONTENT, Severity.NOTABLE)
MAX_PER_OBJECT = 20

Path = tuple[str | int, ...]
# As JSON writes characters that cannot be seen: all but the ends of lines and tabs, which are text.
_ESCAPED_CONTROL = re.compile(rb"\\[^nrt\"]")
# Words that a person or a program takes as names; elsewhere a text is prose.
_NAMING = frozenset(
    {"name", "namespace", "image", "host", "url", "serviceAccountName", "apiVersion", "kind", "verbs", "resources"}
    | {"resourceNames", "apiGroups", "nonResourceURLs", "labels", "matchLabels", "command"}
)


def _standing(state: StateFacts) -> Iterator[Finding]:
    looked_up = {key for one in state.lookups for key in one.keys}
    for ref, obj in state.named:
        if ref.group_kind == SECRET:
            written = state.written.get(ref.identity)
            others = _looked_up_of(ref, looked_up, state.install_namespace)
            yield from _of_secret(ref, obj, others if written is None else others | (_keys_of(obj) - written))
        yield from _of_texts(ref, _without_values(obj) if ref.group_kind == SECRET else obj)


def _looked_up_of(ref: ObjectRef, looked_up: set[str], install_namespace: str) -> set[str]:
    """The keys whose values come from the cluster (LKP-01); a chart may leave out the namespace of its installation."""
    places = [f"{ref.namespace}/{ref.name}/", *([f"{ref.name}/"] if ref.namespace == install_namespace else [])]
    return {key.removeprefix(place) for key in looked_up for place in places if key.startswith(place)}


def _keys_of(secret: JsonObject) -> set[str]:
    """The keys with a value."""
    parts = (mapping(secret.get(part)) for part in ("data", "stringData"))
    return {str(key) for part in parts for key, value in part.items() if value not in ("", None)}


def _of_secret(ref: ObjectRef, obj: JsonObject, others: set[str]) -> Iterator[Finding]:
    keys = sorted(_keys_of(obj) - others)
    if keys:
        yield _SECRET_VALUES.finding("values-in-bundle", ref, key=keys, keys=keys)


def _without_values(secret: JsonObject) -> JsonObject:
    return {key: value for key, value in secret.items() if key not in {"data", "stringData"}}


def _of_texts(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    if _is_plain(obj):
        return
    count = 0
    for path, text, is_name in _texts(obj, (), False):
        for finding in _of_text(ref, path, text, is_name):
            count += 1
            if count > MAX_PER_OBJECT:
                return
            yield finding


def _is_plain(obj: JsonObject) -> bool:
    """Whether all texts and keys are ASCII that can be seen: the whole object tells it at once, and nearly all are."""
    try:
        written = orjson.dumps(obj)
    except TypeError:
        return False
    return written.isascii() and b"\x7f" not in written and not _ESCAPED_CONTROL.search(written.replace(rb"\\", b""))


def _of_text(ref: ObjectRef, path: Path, text: str, is_name: bool) -> Iterator[Finding]:
    if hidden := hidden_characters(text):
        params = {"characters": hidden, "text": visible(text)[:500]}
        yield _HIDDEN_TEXT.finding("hidden", ref, where=path, key=hidden, **params)
    words = pretending_words(text)
    if is_name and not text.isascii() and not words and not hidden:
        yield _FOREIGN_NAME.finding("beyond-ascii", ref, where=path, key=text, text=visible(text)[:500])
    if words:
        rule, words = _PRETENDING_NAME if is_name else _PRETENDING_TEXT, words[:20]
        yield rule.finding("look-alikes", ref, where=path, key=words, words=words)


def _texts(value: object, path: Path, is_name: bool) -> Iterator[tuple[Path, str, bool]]:
    """(path, text, whether it is a name) of each text that is not plain ASCII, and of each such key."""
    if isinstance(value, str):
        if not (value.isascii() and value.isprintable()):
            yield path, value, is_name
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _of_key(key, path)
            yield from _texts(inner, (*path, str(key)), is_name or key in _NAMING)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, (*path, index), is_name)


def _of_key(key: Any, path: Path) -> Iterator[tuple[Path, str, bool]]:
    if isinstance(key, str) and not (key.isascii() and key.isprintable()):
        yield (*path, key), key, True


CHECK = Check("content", standing=_standing)
