"""Whether the CEL rules of a schema are ones the API server accepts: they compile, and cost no more than its budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner.schema.cel.cost import MAX_TOTAL, Bound, bound_of, budget_problem, estimate
from provisioner.schema.cel.runtime import NotCompiled, program_of
from provisioner.schema.cel.values import (
    FIELD_CHAIN,
    TOKENS,
    Aliases,
    TypedRule,
    has_cel_type,
    type_signature,
    typed_moments,
)
from provisioner.schema.fields import (
    FieldError,
    Record,
    Schema,
    child,
    forbidden,
    index,
    invalid,
    key,
    properties_of,
    schema_of,
)

RULES = "x-kubernetes-validations"
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
    is_root: bool
    is_ruled: bool = False
    is_untyped: bool = False


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A rule that compiles as long as any field may be of any type, and how often it may be run for one object."""

    rule: TypedRule
    shown: Record
    runs: int


@dataclass(slots=True)
class RuleCheck:
    """One pass over the rules of a schema. Nothing is said of rules with functions that only Kubernetes knows."""

    errors: list[FieldError] = field(default_factory=list)
    costs: list[tuple[int, str]] = field(default_factory=list)
    sound: dict[str, _Compiled] = field(default_factory=dict)

    def run(self, schema: Schema, path: str) -> list[FieldError]:
        for node in _nodes(_Node(schema, path, 1, True)):
            listed = _rules(node.schema)
            if listed and (node.is_untyped or not has_cel_type(node.schema)):
                self.errors.append(FieldError(child(node.path, RULES), UNTYPED))
                continue
            for place, rule in enumerate(listed):
                if isinstance(rule, Mapping):
                    self._check_rule(rule, node, index(child(node.path, RULES), place))
        # What compiles as long as any field may be of any type, and what the rest costs.
        checked = _compiled_typed([one.rule for one in self.sound.values()]) if self.sound else ()
        for (at, one), (problem, program) in zip(self.sound.items(), checked, strict=True):
            if problem:
                start = "compilation failed:" if problem.startswith("ERROR") else "cel expression"
                self.errors.append(invalid(at, one.shown, f"{start} {problem}"))
            elif not program:
                self.errors.append(_not_compiled(at))
            else:
                bound = bound_of(one.rule.schema, is_root=one.rule.is_root)
                cost = estimate(program, bound) * one.runs
                too_dear = budget_problem("estimated rule cost", cost)
                self.errors += [forbidden(at, too_dear)] if too_dear else []
                self.costs.append((cost, at))
        self._check_total(path)
        return self.errors

    def _check_rule(self, rule: Mapping[str, Any], node: _Node, path: str) -> None:
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
            elif not exc.is_beyond_us:
                self.errors.append(invalid(at, _rule_record(rule), f"compilation failed: {exc}"))
            return
        found = len(self.errors)
        # What is dyn here has a type of its own to the API server, save int-or-string.
        wanted = {"bool"} if node.schema.get("x-kubernetes-int-or-string") is True else {"bool", "dyn"}
        if program.result_type not in wanted:
            self.errors.append(invalid(at, _rule_record(rule), "cel expression must evaluate to a bool"))
        for name in unknown_fields(text, node.schema, is_root=node.is_root):
            self.errors.append(invalid(at, _rule_record(rule), f"compilation failed: ERROR: undefined field '{name}'"))
        if len(self.errors) == found:
            # Where no list or map above sets a limit, as many as fit into one request.
            runs = Bound.most_in_a_request(node.schema) if node.cardinality is None else node.cardinality
            typed = TypedRule(text, node.schema, node.is_root, is_optional)
            self.sound[at] = _Compiled(typed, _rule_record(rule), runs)

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


def unknown_fields(text: str, schema: Schema, *, is_root: bool) -> list[str]:
    """Fields that a rule reads off `self` or `oldSelf` and that the schema does not have.

    Only chains that start there are followed, up to the first list, map or value of unknown shape.
    """
    found: list[str] = []
    fields = Aliases()
    tokens = TOKENS.findall(text)
    plain = ('""' if token[:1] in ("'", '"') else " " if token.startswith("//") else token for token in tokens)
    for chain in FIELD_CHAIN.finditer("".join(plain)):
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


def _nodes(node: _Node) -> Iterator[_Node]:
    """The nodes of the schema's own structure, with how often each may occur in one object."""
    yield node
    schema = node.schema
    ruled = node.is_ruled or bool(_rules(schema))
    untyped = ruled and (node.is_untyped or not has_cel_type(schema))
    items = schema_of(schema.get("items"))
    if items is not None:
        at, count = child(node.path, "items"), _times(node, "array", "maxItems")
        yield from _nodes(_Node(items, at, count, _is_resource(items), ruled, untyped))
    additional = schema_of(schema.get("additionalProperties"))
    if additional is not None:
        at, count = child(node.path, "additionalProperties"), _times(node, "object", "maxProperties")
        yield from _nodes(_Node(additional, at, count, _is_resource(additional), ruled, untyped))
    for name, described in properties_of(schema).items():
        if isinstance(described, Mapping):
            at = key(child(node.path, "properties"), name)
            yield from _nodes(_Node(described, at, node.cardinality, _is_resource(described), ruled, untyped))


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


def _rule_record(rule: Mapping[str, Any]) -> Record:
    """A rule as the API server prints it in an error, in its own order of fields."""
    names = {"Rule": "rule", "Message": "message", "MessageExpression": "messageExpression", "Reason": "reason"}
    names |= {"FieldPath": "fieldPath", "OptionalOldSelf": "optionalOldSelf"}
    empty: dict[str, Any] = {"Reason": None, "OptionalOldSelf": None}
    return Record({shown: rule.get(name, empty.get(shown, "")) for shown, name in names.items()})


def _compiled_typed(rules: list[TypedRule]) -> list[tuple[str, bytes]]:
    from provisioner.schema.cel.type_check import compile_typed  # noqa: PLC0415 - protobuf takes memory: with the first rule

    return compile_typed(rules)
