"""The sentences of findings: templates in the file of each rule, filled with what a check found.

Below the heading *Messages* of a rule's file stands one paragraph for each of its variants: the name of the variant, a
colon and its template. A template only shows values, it never decides: which variant it is the check says.

    stops: {subject} stops: its replicas go from {before} to 0

`{name}` shows a value as it is, an object by its name, labels as `key=value`, a list with commas. What else a template
can do:

    {pods:count pod}          1 pod, 2 pods          (`count entry/entries` where an s does not make the plural)
    {pods:is|are}             the first for one, else the second
    {names:some 4}            a, b, c, d and 2 more  (`some 4 fields`: and 2 more fields)
    {reasons:phrases 3}       a; b, c; and 2 more    for what has commas of its own
    {makers:or}               a or b or c            (`and`: a, and b, and c)
    {value:cut 60}            its first 60 characters, and … where it has more
    {why:phrase}              the text `why.KEY` of this file, where KEY is the value
    {changes:each phrases 3}  a list shown as `phrases 3` does, each item by the text `changes.KEY` of this file. KEY is
                              the item; of a mapping it is its `variant`, or `each`, and the text shows its values
    [ in {namespace}]         nothing at all where one of the values in it is missing or empty
    [{before}|nothing]        the same, with `nothing` in its place
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.errors import BadRuleFile
from provisioner.sentences import number, some, some_phrases
from provisioner.values import ObjectRef, display_name

SUBJECT, WHERE, PHRASE, EACH, VARIANT = "subject", "where", "phrase", "each", "variant"
_NAME = re.compile(r"[a-z][a-z0-9-]*(?:\.[A-Za-z0-9][A-Za-z0-9_.-]*)?")
_FIELD = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_OF_LISTS = r"some \d+(?: .+)?|phrases \d+|or|and|"
_FORMATS = re.compile(rf"count [^/]+(?:/[^/]+)?|[^|]+\|[^|]+|cut \d+|phrase|each(?: (?:{_OF_LISTS}))?|{_OF_LISTS}")


@dataclass(frozen=True, slots=True)
class Field:
    """A place for the value `name` in a template, shown by `format`."""

    name: str
    format: str

    @property
    def is_of_each(self) -> bool:
        return self.format.partition(" ")[0] == EACH


@dataclass(frozen=True, slots=True)
class Template:
    """Text, fields and optional parts, which are templates themselves, in their order.

    `instead` stands for an optional part that is left out.
    """

    parts: tuple[str | Field | Template, ...]
    instead: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The values that it shows, those of its phrases not among them."""
        found = {part.name for part in self.parts if isinstance(part, Field)}
        return frozenset(found).union(*(part.names for part in self.parts if isinstance(part, Template)))

    @property
    def fields(self) -> Iterator[Field]:
        for part in self.parts:
            if isinstance(part, Field):
                yield part
            elif isinstance(part, Template):
                yield from part.fields


@dataclass(frozen=True, slots=True)
class Messages:
    """The templates of one rule, by the names of its variants and phrases."""

    rule: str
    templates: Mapping[str, Template]

    def render(self, variant: str, params: Mapping[str, Any]) -> str:
        """The sentence of `variant` with `params`. Raises LookupError for a variant or value that is missing."""
        if variant not in self.templates:
            raise LookupError(f"{self.rule} has no message for the variant {variant}")
        return "".join(self._parts(self.templates[variant], params))

    def names(self, variant: str) -> frozenset[str]:
        """The values that the sentence of `variant` shows, those of all its phrases among them."""
        template = self.templates[variant]
        found = set(template.names)
        for field in template.fields:
            if field.format == PHRASE or field.is_of_each:
                phrases = [name for name in self.templates if name.startswith(f"{field.name}.")]
                found = found.union(*(self.names(name) for name in phrases))
        return frozenset(found)

    def _parts(self, template: Template, params: Mapping[str, Any]) -> Iterator[str]:
        for part in template.parts:
            if isinstance(part, str):
                yield part
            elif isinstance(part, Template):
                is_shown = all(not _is_missing(params.get(name)) for name in part.names)
                yield from self._parts(part, params) if is_shown else [part.instead]
            elif part.format == PHRASE:
                yield self.render(f"{part.name}.{params[part.name]}", params)
            elif part.is_of_each:
                told = [self._item(part.name, item) for item in params[part.name]]
                yield _show(told, part.format.removeprefix(EACH).lstrip())
            else:
                yield _show(params[part.name], part.format)

    def _item(self, name: str, item: Any) -> str:
        values = item if isinstance(item, Mapping) else {VARIANT: item}
        return self.render(f"{name}.{values.get(VARIANT, EACH)}", values)


def messages_in(name: str, section: str) -> Messages:
    """The templates of the rule `name` in the text below the heading *Messages* of its file.

    Raises BadRuleFile for a paragraph that is no template, or a name that stands twice.
    """
    found: dict[str, Template] = {}
    for block in filter(None, section.strip().split("\n\n")):
        variant, colon, text = " ".join(block.split()).partition(": ")
        if not colon or not _NAME.fullmatch(variant) or variant in found:
            raise BadRuleFile(f"{name}: below Messages, {variant!r} is no new name of a variant, followed by a colon")
        found[variant] = _template(name, text)
    return Messages(name, found)


def _template(name: str, text: str) -> Template:
    parts: list[str | Field | Template] = []
    for index, piece in enumerate(_OPTIONAL.split(text)):
        parts += [_optional(name, piece)] if index % 2 else _pieces(name, piece)
    return Template(tuple(parts))


def _optional(name: str, piece: str) -> Template:
    shown, bar, instead = piece.rpartition("|")
    if bar and "}" not in instead:
        return Template(tuple(_pieces(name, shown)), instead)
    return Template(tuple(_pieces(name, piece)))


def _pieces(name: str, text: str) -> Iterator[str | Field]:
    last = 0
    for match in _FIELD.finditer(text):
        if match.start() > last:
            yield text[last : match.start()]
        if not _FORMATS.fullmatch(match[2] or ""):
            raise BadRuleFile(f"{name}: below Messages, {match[2]!r} is no way to show a value")
        yield Field(match[1], match[2] or "")
        last = match.end()
    rest = text[last:]
    if any(mark in rest for mark in "{}[]"):
        raise BadRuleFile(f"{name}: below Messages, a bracket is left over in {rest!r}")
    if rest:
        yield rest


def _show(value: Any, how: str) -> str:
    if how.startswith("count "):
        noun, _, plural = how.removeprefix("count ").partition("/")
        return number(_size(value), noun, plural)
    if "|" in how:
        one, _, several = how.partition("|")
        return one if _size(value) == 1 else several
    if how.startswith("some "):
        _, most, *of = how.split(" ", 2)
        return some([_text(item) for item in value], int(most), noun="".join(of))
    if how.startswith("phrases "):
        return some_phrases([_text(item) for item in value], int(how.removeprefix("phrases ")))
    if how.startswith("cut "):
        text, length = _text(value), int(how.removeprefix("cut "))
        return text if len(text) <= length else f"{text[:length]}…"
    if how in ("or", "and"):
        return {"or": " or ", "and": ", and "}[how].join(map(_text, value))
    return ", ".join(map(_text, value)) if _is_list(value) else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={inner}" for key, inner in sorted(value.items()))
    return display_name(value) if isinstance(value, ObjectRef) else str(value)


def _size(value: Any) -> int:
    return value if isinstance(value, int) else len(value)


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (_is_list(value) and not value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
