"""Whether the CEL rules of a schema are ones the API server accepts: they compile, and cost no more than its budget."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner.schema.cel.cost import MAX_TOTAL, Bound, bound_of, budget_problem, estimate
from provisioner.schema.cel.runtime import NotCompiled, program_of
from provisioner.schema.cel.text import TOKENS, uses_old
from provisioner.schema.cel.typed_rule import TypedRule
from provisioner.schema.cel.values import FIELD_CHAIN, Aliases, has_cel_type, type_signature, typed_moments
from provisioner.schema.fields import FieldError, Record, child, forbidden, index, invalid, key, required, unsupported
from provisioner.schema.json_paths import leads_somewhere
from provisioner.schema.reading import Schema, properties_of, schema_of

RULES = "x-kubernetes-validations"
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
BREAKS = re.compile(r"[\n\r]")
MOST_EXPENSIVE_SHOWN = 4
UNTYPED = (
    "Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: "
    "unable to convert structural schema to CEL declarations"
)


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of the schema. `is_ruled` says that a rule stands above it: then its type is read off that of the node
    above, which has none where it `is_untyped`.
    """

    schema: Schema
    path: str
    cardinality: int | None
    uncorrelated_at: str | None
    is_root: bool
    is_ruled: bool = False
    is_untyped: bool = False


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A rule that compiles as long as any field may be of any type, and how often it may be run for one object."""

    rule: TypedRule
    shown: Record
    runs: int = 1

    @property
    def name(self) -> str:
        return "rule" if self.rule.result == "bool" else "messageExpression"


@dataclass(slots=True)
class RuleCheck:
    """One pass over the rules of a schema.

    `unjudged` are the paths of rules with functions that only Kubernetes knows: nothing is said about them.
    """

    errors: list[FieldError] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    costs: list[tuple[int, str]] = field(default_factory=list)
    sound: dict[str, _Compiled] = field(default_factory=dict)

    def run(self, schema: Schema, path: str) -> list[FieldError]:
        for node in _nodes(_Node(schema, path, 1, None, True)):
            listed = _rules(node.schema)
            if listed and (node.is_untyped or not has_cel_type(node.schema)):
                self.errors.append(FieldError(child(node.path, RULES), UNTYPED))
                continue
            for place, rule in enumerate(listed):
                if isinstance(rule, Mapping):
                    self._check(rule, node, index(child(node.path, RULES), place))
        self._check_types()
        self._check_total(path)
        return self.errors

    def _check(self, rule: Mapping[str, Any], node: _Node, path: str) -> None:
        text = str(rule.get("rule") or "").strip()
        if not text:
            return
        signature = type_signature(node.schema, is_root=node.is_root)
        is_optional = rule.get("optionalOldSelf") is True
        at = child(path, "rule")
        source = typed_moments(text, node.schema, is_root=node.is_root)
        try:
            program = program_of(source, signature, has_optional_old=is_optional)
        except NotCompiled as exc:
            if exc.is_ended:
                self.errors.append(_not_compiled(at))
            elif exc.is_beyond_us:
                self.unjudged.append(at)
            else:
                self.errors.append(invalid(at, _shown(rule), f"compilation failed: {exc}"))
                self._check_old_self({**rule, "rule": ""}, node, path)
            return
        found = len(self.errors)
        if program.result_type not in _results("bool", node.schema):
            self.errors.append(invalid(at, _shown(rule), "cel expression must evaluate to a bool"))
        for name in unknown_fields(text, node.schema, is_root=node.is_root):
            self.errors.append(invalid(at, _shown(rule), f"compilation failed: ERROR: undefined field '{name}'"))
        if len(self.errors) == found:
            runs = node.cardinality if node.cardinality is not None else _unbounded(node.schema)
            typed = TypedRule(text, node.schema, node.is_root, is_optional)
            self.sound[at] = _Compiled(typed, _shown(rule), runs)
        self._check_old_self(rule, node, path)
        self._check_words(rule, node, path)

    def _check_types(self) -> None:
        """What compiles as long as any field may be of any type, and what the rest costs."""
        checked = _compiled_typed([one.rule for one in self.sound.values()]) if self.sound else ()
        for (at, one), (problem, program) in zip(self.sound.items(), checked, strict=True):
            if problem:
                start = "cel expression" if one.name == "rule" else "messageExpression"
                compiled = "compilation failed" if one.name == "rule" else f"{start} compilation failed"
                is_other = not problem.startswith("ERROR")
                words = f"{start} {problem}" if is_other else f"{compiled}: {problem}"
                self.errors.append(invalid(at, one.shown, words))
            elif not program:
                self.errors.append(_not_compiled(at))
            else:
                bound = bound_of(one.rule.schema, is_root=one.rule.is_root)
                self._note_cost(estimate(program, bound) * one.runs, at, one.name)

    def _note_cost(self, cost: int, at: str, name: str) -> None:
        problem = budget_problem(f"estimated {name} cost", cost)
        if problem:
            self.errors.append(forbidden(at, problem))
        self.costs.append((cost, at))

    def _check_old_self(self, rule: Mapping[str, Any], node: _Node, path: str) -> None:
        text = str(rule.get("rule") or "")
        if uses_old(text):
            if node.uncorrelated_at is not None:
                where = node.uncorrelated_at
                detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {where}"
                self.errors.append(invalid(child(path, "rule"), text, detail))
        elif rule.get("optionalOldSelf") is not None:
            detail = "may not be set if oldSelf is not used in rule"
            self.errors.append(invalid(child(path, "optionalOldSelf"), rule["optionalOldSelf"], detail))

    def _check_words(self, rule: Mapping[str, Any], node: _Node, path: str) -> None:
        """What a refusal says, and where it says that it is."""
        below = str(rule.get("fieldPath") or "")
        if below and not leads_somewhere(below, node.schema):
            self.errors.append(invalid(child(path, "fieldPath"), below, "must be a valid path"))
        text = str(rule.get("messageExpression") or "").strip()
        if not text:
            return
        at, is_optional = child(path, "messageExpression"), rule.get("optionalOldSelf") is True
        source = typed_moments(text, node.schema, is_root=node.is_root)
        try:
            program = program_of(
                source, type_signature(node.schema, is_root=node.is_root), has_optional_old=is_optional
            )
        except NotCompiled as exc:
            if exc.is_ended:
                self.errors.append(_not_compiled(at))
            elif not exc.is_beyond_us:
                self.errors.append(invalid(at, _shown(rule), f"messageExpression compilation failed: {exc}"))
            return
        if program.result_type not in _results("string", node.schema):
            self.errors.append(invalid(at, _shown(rule), "messageExpression must evaluate to a string"))
        else:
            typed = TypedRule(text, node.schema, node.is_root, is_optional, result="string")
            self.sound[at] = _Compiled(typed, _shown(rule))

    def _check_total(self, path: str) -> None:
        total = sum(cost for cost, _ in self.costs)
        if total <= MAX_TOTAL:
            return
        detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        dearest = sorted(self.costs, key=lambda it: -it[0])[:MOST_EXPENSIVE_SHOWN]
        self.errors += [forbidden(at, detail) for cost, at in dearest if cost]
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        self.errors.append(forbidden(path, budget_problem(name, total, MAX_TOTAL)))


def _not_compiled(at: str) -> FieldError:
    words = "it could not be compiled within Pratique's limits of time and memory. Ask for the report again"
    return FieldError(at, words, is_unknown=True)


def rule_text_errors(schema: Schema, path: str) -> list[FieldError]:
    """What is wrong with rules before anybody compiles them: missing texts, line breaks, unknown reasons."""
    found: list[FieldError] = []
    for node in _nodes(_Node(schema, path, 1, None, True)):
        listed = node.schema.get(RULES)
        for place, rule in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(rule, Mapping):
                found += _text_errors(rule, index(child(node.path, RULES), place))
    return found


def _text_errors(rule: Mapping[str, Any], path: str) -> list[FieldError]:
    text, message = str(rule.get("rule") or "").strip(), str(rule.get("message") or "")
    found: list[FieldError] = []
    if not text:
        found.append(required(child(path, "rule"), "rule is not specified"))
    elif message and not message.strip():
        found.append(invalid(child(path, "message"), message, "must be non-empty if specified"))
    elif BREAKS.search(message.strip()):
        found.append(invalid(child(path, "message"), message, "must not contain line breaks"))
    elif BREAKS.search(text) and not message.strip():
        detail = "message must be specified if rule contains line breaks"
        found.append(required(child(path, "message"), detail))
    reason = rule.get("reason")
    if reason is not None and reason not in REASONS:
        found.append(unsupported(child(path, "reason"), reason, REASONS))
    below = str(rule.get("fieldPath") or "")
    if below and not below.strip():
        found.append(invalid(child(path, "fieldPath"), below, "must be non-empty if specified"))
    return found


def unknown_fields(text: str, schema: Schema, *, is_root: bool) -> list[str]:
    """Fields that a rule reads off `self` or `oldSelf` and that the schema does not have.

    Only chains that start there are followed, up to the first list, map or value of unknown shape.
    """
    found: list[str] = []
    fields = Aliases()
    for chain in FIELD_CHAIN.finditer(_without_strings(text)):
        names = [name.strip() for name in chain[1].split(".")[1:]]
        steps = names[:-1] if chain[2] else names
        missing = _first_missing(steps, schema, is_root, fields)
        if missing and missing not in found:
            found.append(missing)
    return found


def _first_missing(steps: list[str], schema: Schema, is_root: bool, fields: Aliases) -> str:
    node: Schema | None = schema
    for step in steps:
        if node is None or node.get("type") != "object" or schema_of(node.get("additionalProperties")) is not None:
            return ""
        resource = is_root or bool(node.get("x-kubernetes-embedded-resource"))
        found = schema_of(fields.of(node, is_root=resource).get(step)) or {}
        if not has_cel_type(found):
            return step
        node, is_root = found, False
    return ""


def _without_strings(text: str) -> str:
    tokens = TOKENS.findall(text)
    return "".join('""' if token[:1] in ("'", '"') else " " if token.startswith("//") else token for token in tokens)


def _nodes(node: _Node) -> Iterator[_Node]:
    """The nodes of the schema's own structure, with how often each may occur in one object."""
    yield node
    schema = node.schema
    ruled = node.is_ruled or bool(_rules(schema))
    untyped = ruled and (node.is_untyped or not has_cel_type(schema))
    items = schema_of(schema.get("items"))
    if items is not None:
        is_map = schema.get("x-kubernetes-list-type") == "map"
        where = node.uncorrelated_at or (None if is_map else node.path)
        at, count = child(node.path, "items"), _times(node, "array", "maxItems")
        yield from _nodes(_Node(items, at, count, where, _is_resource(items), ruled, untyped))
    additional = schema_of(schema.get("additionalProperties"))
    if additional is not None:
        at, count = child(node.path, "additionalProperties"), _times(node, "object", "maxProperties")
        is_resource = _is_resource(additional)
        yield from _nodes(_Node(additional, at, count, node.uncorrelated_at, is_resource, ruled, untyped))
    for name, described in properties_of(schema).items():
        if isinstance(described, Mapping):
            at, where = key(child(node.path, "properties"), name), node.uncorrelated_at
            is_resource = _is_resource(described)
            yield from _nodes(_Node(described, at, node.cardinality, where, is_resource, ruled, untyped))


def _results(wanted: str, schema: Schema) -> set[str]:
    """What an expression may come to; what is dyn here has a type of its own to the API server, save int-or-string."""
    return {wanted} if schema.get("x-kubernetes-int-or-string") is True else {wanted, "dyn"}


def _rules(schema: Schema) -> list[Any]:
    listed = schema.get(RULES)
    return listed if isinstance(listed, list) else []


def _is_resource(schema: Schema) -> bool:
    return schema.get("x-kubernetes-embedded-resource") is True


def _times(node: _Node, kind: str, keyword: str) -> int | None:
    """How often a child may occur; to the API server what is neither list nor map has one."""
    if node.schema.get("type") != kind:
        return node.cardinality
    limit = node.schema.get(keyword)
    if node.cardinality is None or not isinstance(limit, int):
        return None
    return node.cardinality * limit


def _unbounded(schema: Schema) -> int:
    """How many values of this schema fit into one request: where no list or map above sets a limit."""
    return Bound.most_in_a_request(schema)


def _shown(rule: Mapping[str, Any]) -> Record:
    """A rule as the API server prints it in an error, in its own order of fields."""
    names = {"Rule": "rule", "Message": "message", "MessageExpression": "messageExpression", "Reason": "reason"}
    names |= {"FieldPath": "fieldPath", "OptionalOldSelf": "optionalOldSelf"}
    empty: dict[str, Any] = {"Reason": None, "OptionalOldSelf": None}
    return Record({shown: rule.get(name, empty.get(shown, "")) for shown, name in names.items()})


def _compiled_typed(rules: list[TypedRule]) -> list[tuple[str, bytes]]:
    from provisioner.schema.cel.type_check import compile_typed  # noqa: PLC0415 - protobuf takes memory: with the first rule

    return compile_typed(rules)
