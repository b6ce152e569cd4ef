"""The sentences of findings: templates in the file of each rule, filled with what a check found.

Below the heading *Messages* of a rule's file stands one paragraph for each of its variants: the name of the variant, a
colon and its template. A template only shows values, it never decides: which variant it is the check says. Each knows
`subject`, the object that the finding is about, `where`, its field, `leaf`, the last part of
that, and `place`, which is object and field, with the version of a CRD.

    stops: {subject} stops: its replicas go from {before} to 0

`{name}` shows a value as it is, an object by its name, labels as `key=value`, a list with commas, `none` for None. What
else a template can do:

    {pods:count pod}          1 pod, 2 pods          (`count entry/entries` where an s does not make the plural)
    {pods:count}              1,204
    {pods:is|are} {pods:|s}   the first for one, else the second; nothing for one, else an s
    {names:some 4}            a, b, c, d and 2 more  (`some 4 fields`: and 2 more fields); of a mapping its keys
    {reasons:phrases 3}       a; b, c; and 2 more    for what has commas of its own
    {names:some 4 of total}   the same of a list that is kept in part: `total` is how many there are; `phrases`, too
    {makers:or} {roles:either}  a or b or c; a, b or c
    {places:and} {x:and of}   a and b and c; a and of b
    {changes:all}             a, b and c
    {tokens:clauses}          a, and b, and c
    {names:code 3}            `a`, `b`, `c` and 2 more; `code` for all
    {subject:account}         `shop/web`, Group `ops`: an account, or as `account 3` the first of several
    {value:cut 60}            its first 60 characters, and … where it has more
    {format:else none}        the value, or `none` where there is none
    {new:json} {all:jsons}    a value, or each of a list, as JSON
    {new:number} {old:range}  a number as Go prints it; from 1 below 5
    {types:types}             an integer or a string
    {new:rule}                a rule of CEL in one line, quoted
    {why:phrase}              the text `why.KEY` of this file, where KEY is the value
    {changes:each phrases 3}  a list shown as `phrases 3` does, each item by a text of this file. Of a mapping that is
                              `changes.VARIANT`, or `changes.each`, and shows its values; else `changes.ITEM`, or
                              `changes.each`, which shows it as `{item}`, and of values that are mappings what they hold
                              for it, or (none)
    {because:message}         the message of the rule that is the value, in its variant `because_variant`
    [ in {namespace}]         nothing at all where one of the values in it is missing or empty
    [{before}|nothing]        the same, with `nothing` in its place

A paragraph `[name](shared/name.md)` stands for the messages of that file, which several rules share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.errors import BadRuleFile
from provisioner.schema.fields import go_number, shown_json
from provisioner.schema.verdicts import type_phrase
from provisioner.sentences import number, some, some_phrases
from provisioner.values import ObjectRef, display_name

SUBJECT, WHERE, LEAF, PLACE = "subject", "where", "leaf", "place"
PHRASE, MESSAGE, EACH, VARIANT = "phrase", "message", "each", "variant"
HEADING = "\n## Messages\n"
_NONE = "(none)"
_NAME = re.compile(r"[a-z][a-z0-9_-]*(?:\.[A-Za-z0-9][A-Za-z0-9_.-]*)?")
_FIELD = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_OF_LISTS = (
    r"some \d+(?: .+)?|phrases \d+(?: of \w+)?|or|either|all|and(?: \w+)?|clauses|code(?: \d+)?|account(?: \d+)?"
)
_FORMATS = re.compile(
    rf"count(?: [^/]+(?:/[^/]+)?)?|[^|]*\|[^|]+|cut \d+|else .+|jsons?|number|range|types|rule|phrase|message|"
    rf"(?:each(?: |$))?(?:{_OF_LISTS}|)"
)


@dataclass(frozen=True, slots=True)
class Placeholder:
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

    parts: tuple[str | Placeholder | Template, ...]
    instead: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The values that it shows, those of its phrases not among them."""
        return frozenset(field.name for field in self.fields)

    @property
    def fields(self) -> Iterator[Placeholder]:
        for part in self.parts:
            if isinstance(part, Placeholder):
                yield part
            elif isinstance(part, Template):
                yield from part.fields


@dataclass(frozen=True, slots=True)
class Messages:
    """The templates of one rule, by the names of its variants and phrases; others have the `shared` ones as well.

    `find` knows the messages of other rules.
    """

    rule: str
    templates: Mapping[str, Template]
    shared: frozenset[str] = frozenset()
    find: Callable[[str], Messages] | None = None

    def render(self, variant: str, params: Mapping[str, Any]) -> str:
        """The sentence of `variant` with `params`. Raises LookupError for a variant or value that is missing."""
        if variant not in self.templates:
            raise LookupError(f"{self.rule} has no message for the variant {variant}")
        return "".join(self._parts(self.templates[variant], params))

    def show(self, part: str | Placeholder | Template, params: Mapping[str, Any]) -> str:
        """One part of a sentence."""
        return "".join(self._parts(Template((part,)), params))

    def names(self, variant: str) -> frozenset[str]:
        """The values that the sentence of `variant` shows, those of all its phrases among them; of a message of another
        rule the rule and the variant."""
        found: set[str] = set()
        waiting, reached = [variant], {variant}
        while waiting:
            template = self.templates[waiting.pop()]
            found |= template.names
            for field in template.fields:
                if field.format == MESSAGE:
                    found.add(f"{field.name}_{VARIANT}")
                elif field.format == PHRASE or field.is_of_each:
                    further = {name for name in self.templates if name.startswith(f"{field.name}.")} - reached
                    reached |= further
                    waiting += further
        return frozenset(found)

    def _parts(self, template: Template, params: Mapping[str, Any]) -> Iterator[str]:
        for part in template.parts:
            if isinstance(part, str):
                yield part
            elif isinstance(part, Template):
                values = [params.get(name) for name in part.names]
                is_missing = any(
                    value is None or (isinstance(value, Sequence | Mapping) and not value) for value in values
                )
                yield from [part.instead] if is_missing else self._parts(part, params)
            elif part.format == PHRASE:
                yield self.render(f"{part.name}.{params[part.name]}", params)
            elif part.format == MESSAGE and self.find is not None:
                within = {**params, PLACE: None}
                yield self.find(params[part.name]).render(params[f"{part.name}_{VARIANT}"], within)
            elif part.is_of_each:
                told = [self._of_item(part.name, item, params) for item in params[part.name]]
                yield _show(told, part.format.removeprefix(EACH).lstrip(), params)
            elif part.format.startswith("else "):
                value = params.get(part.name)
                yield part.format.removeprefix("else ") if value is None else _value_text(value)
            else:
                yield _show(params[part.name], part.format, params)

    def _of_item(self, name: str, item: Any, params: Mapping[str, Any]) -> str:
        if isinstance(item, Mapping):
            return self.render(f"{name}.{item.get(VARIANT, EACH)}", {**params, **item})
        held = {key: value.get(item, _NONE) if isinstance(value, Mapping) else value for key, value in params.items()}
        own = f"{name}.{item}"
        return self.render(own if own in self.templates else f"{name}.{EACH}", {**held, "item": item})


def messages_in(name: str, section: str) -> Messages:
    """The templates of the rule `name` in the text below the heading *Messages* of its file.

    Raises BadRuleFile for a paragraph that is no template, or a name that stands twice.
    """
    found: dict[str, Template] = {}
    for block in filter(None, map(str.strip, section.split("\n\n"))):
        variant, colon, text = " ".join(block.split()).partition(": ")
        if not colon or not _NAME.fullmatch(variant) or variant in found:
            raise BadRuleFile(f"{name}: below Messages, {variant!r} is no new name of a variant, followed by a colon")
        parts: list[str | Placeholder | Template] = []
        for index, piece in enumerate(_OPTIONAL.split(text)):
            if index % 2 == 0:
                parts += _pieces(name, piece)
                continue
            shown, bar, instead = piece.rpartition("|")
            is_whole = not bar or "}" in instead  # the bar is one of a placeholder
            parts.append(Template(tuple(_pieces(name, piece if is_whole else shown)), "" if is_whole else instead))
        found[variant] = Template(tuple(parts))
    return Messages(name, found)


def _pieces(name: str, text: str) -> Iterator[str | Placeholder]:
    last = 0
    for match in _FIELD.finditer(text):
        if match.start() > last:
            yield text[last : match.start()]
        if not _FORMATS.fullmatch(match[2] or ""):
            raise BadRuleFile(f"{name}: below Messages, {match[2]!r} is no way to show a value")
        yield Placeholder(match[1], match[2] or "")
        last = match.end()
    rest = text[last:]
    if any(mark in rest for mark in "{}[]"):
        raise BadRuleFile(f"{name}: below Messages, a bracket is left over in {rest!r}")
    if rest:
        yield rest


def _show(value: Any, how: str, params: Mapping[str, Any]) -> str:
    if "|" in how:
        single, _, several = how.partition("|")
        return single if _size(value) == 1 else several
    way, _, rest = how.partition(" ")
    if way in _ONE_VALUE:
        return _ONE_VALUE[way](value)
    if way == "count":
        noun, _, plural = rest.partition("/")
        return number(_size(value), noun, plural) if noun else f"{_size(value):,}"
    if way == "cut":
        text = _value_text(value)
        return text if len(text) <= int(rest) else f"{text[: int(rest)]}…"
    return _first(value, way, rest, params) if way in {"some", "phrases"} else _listed(value, way, rest)


def _first(value: Any, way: str, rest: str, params: Mapping[str, Any]) -> str:
    """The first of a list, of the keys of a mapping or of one value, and how many more there are."""
    items = value if _is_list(value) else list(value) if isinstance(value, Mapping) else [value]
    which, _, total = rest.partition(" of ")
    most, _, noun = which.partition(" ")
    count = _size(params[total]) if total else len(items)
    names = [_value_text(item) for item in items[:count]]
    if way == "phrases":
        return some_phrases(names, int(most), total=count)
    return some(names, int(most), total=count, noun=noun)


def _listed(value: Any, way: str, rest: str) -> str:
    """A list, or one value as a list of itself, shown in this `way`."""
    items = value if _is_list(value) else [value]
    match way:
        case "code":
            return some([f"`{_value_text(item)}`" for item in items], int(rest or len(items)))
        case "account":
            return some([_account(item) for item in items], int(rest or 1))
        case "clauses":
            return ", and ".join(map(_value_text, items))
        case "either" | "all":
            words = [_value_text(item) for item in items]
            last = " or " if way == "either" else " and "
            return last.join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
        case "or" | "and":
            return f" {' '.join(filter(None, [way, rest]))} ".join(map(_value_text, items))
    return ", ".join(map(_value_text, items))


def _value_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={inner}" for key, inner in sorted(value.items()))
    return display_name(value) if isinstance(value, ObjectRef) else str(value)


def _account(account: Any) -> str:
    """Also of an account as a record of a report holds it, its kind and its name; other words stay as they are."""
    kind, _, name = _value_text(account).partition(" ")
    if not kind[:1].isupper():
        return _value_text(account)
    return f"`{name}`" if kind == "ServiceAccount" else f"{kind} `{name}`"


def _range(limits: Mapping[str, Any]) -> str:
    parts = []
    if limits.get("minimum") is not None:
        parts.append(f"{'above' if limits.get('exclusiveMinimum') else 'from'} {go_number(limits['minimum'])}")
    if limits.get("maximum") is not None:
        parts.append(f"{'below' if limits.get('exclusiveMaximum') else 'up to'} {go_number(limits['maximum'])}")
    return " ".join(parts) or "without bounds"


def _rule(text: str) -> str:
    """The text of a rule as it was written, backslashes too, in one line."""
    line = " ".join(text.split("\n"))
    quote = '"' if "'" in line and '"' not in line else "'"
    return f"{quote}{line}{quote}"


_ONE_VALUE: Mapping[str, Callable[[Any], str]] = {
    "json": shown_json,
    "jsons": lambda values: ", ".join(map(shown_json, values)),
    "number": go_number,
    "range": _range,
    "rule": _rule,
    "types": type_phrase,
}


def _size(value: Any) -> int:
    return value if isinstance(value, int) else len(value or ())


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
