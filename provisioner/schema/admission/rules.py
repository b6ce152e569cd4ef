"""x-kubernetes-validations: the CEL rules of a schema, run over a custom resource as the API server runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.json_values import maps
from provisioner.schema.admission.correlation import Correlation, correlated_item
from provisioner.schema.cel.runtime import UNUSABLE, Evaluation, Result, evaluated, values_of
from provisioner.schema.cel.values import has_cel_type, misfit, to_cel, type_signature, typed_moments, uses_old
from provisioner.schema.fields import (
    OMITTED,
    FieldError,
    Schema,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    key,
    properties_of,
    required,
    schema_of,
)

RULES = "x-kubernetes-validations"
MAX_MESSAGE_BYTES = 5 * 1024
MISTYPED = ("Unexpected value type", "'float' object")  # how the CEL runtime begins to say so
NO_OVERLOAD = "'no such overload': call arguments did not match a supported operator, function or macro signature"


@dataclass(frozen=True, slots=True)
class _Place:
    """A value in the object, its old value, and the nearest correlation for ratcheting."""

    value: Any
    old: Any
    path: str
    here: Correlation | None = None
    nearest: Correlation | None = None
    is_root: bool = False

    @property
    def is_unchanged(self) -> bool:
        known = self.here if self.here is not None else self.nearest
        return known is not None and known.is_unchanged

    def at_field(self, name: str, path: str) -> _Place:
        here, nearest = self.here, self.nearest
        if here is not None:
            is_type_meta = nearest is None and name in ("apiVersion", "kind")
            here, nearest = (None, None) if is_type_meta else (here.field(name), here)
        old = self.old.get(name) if isinstance(self.old, dict) else None
        return _Place(self.value[name], old, path, here, nearest)

    def at_item(self, position: int, schema: Schema) -> _Place:
        here, nearest = self.here, self.nearest
        if here is not None:
            here, nearest = here.item(position), here
        item = self.value[position]
        return _Place(item, correlated_item(schema, self.old, item), index(self.path, position), here, nearest)


@dataclass(slots=True)
class _Run:
    """The rules that one object meets, in the order of the server; those of many objects are evaluated together."""

    sources: dict[tuple[int, int, bool], str]  # of rules by the ids of rule and schema: to write one takes long
    met: list[_Rule | FieldError] = field(default_factory=list)

    def visit(self, rules_schema: Schema, schema: Schema, place: _Place) -> None:
        """Run the rules of `rules_schema`, which is `schema` or one branch of its allOf, at `place` and below."""
        if place.value is None or not has_cel_type(schema):
            return
        listed = rules_schema.get(RULES)
        if isinstance(listed, list) and listed:
            self._run_all(listed, schema, place)
        for branch in maps(rules_schema.get("allOf")):
            if has_rules(branch):
                self.visit(branch, schema, replace(place, here=None))
        if isinstance(place.value, list):
            rules_items, items = schema_of(rules_schema.get("items")), schema_of(schema.get("items"))
            if rules_items is not None and items is not None:
                for position in range(len(place.value)):
                    self.visit(rules_items, items, place.at_item(position, schema))
        elif isinstance(place.value, dict):
            rules_extra = schema_of(rules_schema.get("additionalProperties"))
            extra = schema_of(schema.get("additionalProperties"))
            rules_known, known = properties_of(rules_schema), properties_of(schema)
            for name in place.value:
                if rules_extra is not None and extra is not None:
                    self.visit(rules_extra, extra, place.at_field(name, key(place.path, name)))
                rules_field, described = schema_of(rules_known.get(name)), schema_of(known.get(name))
                if rules_field is not None and described is not None:
                    below = place.at_field(name, child(place.path, name))
                    is_resource = described.get("x-kubernetes-embedded-resource") is True
                    self.visit(rules_field, described, replace(below, is_root=is_resource))

    def _run_all(self, listed: list[Any], schema: Schema, place: _Place) -> None:
        wrong = misfit(place.value, schema)
        wrong_before = misfit(place.old, schema) if place.old is not None else ""
        met = []
        for rule in maps(listed):
            text = str(rule.get("rule", ""))
            needs_old = uses_old(text) and rule.get("optionalOldSelf") is not True
            if text.strip() and (place.old is not None or not needs_old):
                met.append(rule)
        if wrong:  # CEL cannot take the value, which ratcheting let through: every rule over it fails
            for rule in met:
                shown = str(rule.get("message") or rule.get("rule")).strip()
                self.met.append(invalid(place.path, str(schema.get("type", "")), f"{wrong} evaluating rule: {shown}"))
            return
        own = to_cel(place.value, schema, is_root=place.is_root)
        before = UNUSABLE if wrong_before else to_cel(place.old, schema, is_root=place.is_root)
        # Without oldSelf the values are the same for every version and update.
        values = {False: {"self": own}, True: values_of(own, before, has_old=place.old is not None)}
        signature = type_signature(schema, is_root=place.is_root)
        for rule in met:
            known = id(rule), id(schema), place.is_root
            if known not in self.sources:
                self.sources[known] = typed_moments(str(rule["rule"]), schema, is_root=place.is_root)
            self.met.append(_Rule(rule, schema, place, self.sources[known], signature, values, wrong_before))


@dataclass(slots=True)
class _Rule:
    """One rule at one place, with the values it is to be run on, in CEL's form, by whether it reads the old one."""

    rule: Mapping[str, Any]
    schema: Schema
    place: _Place
    source: str
    signature: str
    values: Mapping[bool, Mapping[str, Any]]
    wrong_before: str = ""
    found: Result = field(default_factory=Result)
    told: Result = field(default_factory=Result)

    @property
    def text(self) -> str:
        return str(self.rule.get("rule", ""))

    @property
    def shown(self) -> str:
        return str(self.rule.get("message") or self.text).strip()

    @property
    def is_transition(self) -> bool:
        return uses_old(self.text)

    @property
    def is_mistyped(self) -> bool:
        """Whether some value below is none of its type: the rule is to meet it, or not."""
        return self.found.problem.startswith(MISTYPED) and not self._met_wrong_before

    @property
    def is_refused(self) -> bool:
        return self.found.value is False and (self.is_transition or not self.place.is_unchanged)

    @property
    def message_expression(self) -> str:
        return str(self.rule.get("messageExpression") or "")

    @property
    def _met_wrong_before(self) -> bool:
        return bool(self.found.problem) and bool(self.wrong_before) and not self.found.is_ended

    def evaluation(self, signature: str = "") -> Evaluation:
        return self._evaluation_of(self.source, signature or self.signature, reads_old=self.is_transition)

    def message_evaluation(self) -> Evaluation:
        reads_old = uses_old(self.message_expression)
        return self._evaluation_of(self.message_expression, self.signature, reads_old=reads_old)

    def _evaluation_of(self, text: str, signature: str, *, reads_old: bool) -> Evaluation:
        is_optional = self.rule.get("optionalOldSelf") is True
        return Evaluation(text, signature, self.values[reads_old], is_optional)

    def error(self) -> FieldError | None:
        """What the rule, evaluated, says against the value."""
        found, path, type_name = self.found, self.place.path, str(self.schema.get("type", ""))
        if found.not_compiled is not None:
            words = f"rule compile error: compilation failed: {found.not_compiled}"
            if found.not_compiled.is_beyond_us:
                words = f"could not be evaluated: {self.shown} ({found.not_compiled})"
            return invalid(path, type_name, words)
        if found.is_ended:
            return invalid(path, type_name, f"could not be evaluated: {self.shown} ({found.problem})")
        problem = self.wrong_before if self._met_wrong_before else found.problem
        if problem == "no such overload":
            return invalid(path, type_name, f"{NO_OVERLOAD} for rule: {self.shown}")
        if problem or not isinstance(found.value, bool):
            problem = problem or "could not be evaluated: the result is no bool,"
            return invalid(path, type_name, f"{problem} evaluating rule: {self.shown}")
        return self.refusal(self.schema, self.place) if self.is_refused else None

    def refusal(self, schema: Schema, place: _Place) -> FieldError:
        path = place.path
        if below := str(self.rule.get("fieldPath") or ""):
            path = child(path, below.removeprefix("."))
        # What messageExpression comes to, else the message, else the rule itself.
        detail = self.told.value.strip() if isinstance(self.told.value, str) else ""
        if not detail or "\n" in detail or len(detail.encode()) > MAX_MESSAGE_BYTES:
            detail = str(self.rule.get("message") or "").strip() or f"failed rule: {self.text.strip()}"
        value = OMITTED if schema.get("type") in ("object", "array") else place.value
        match self.rule.get("reason"):
            case "FieldValueForbidden":
                return forbidden(path, detail)
            case "FieldValueRequired":
                return required(path, detail)
            case "FieldValueDuplicate":
                return duplicate(path, value)
        return invalid(path, value, detail)


@dataclass(frozen=True, slots=True)
class ObjectUpdate:
    """An object as it would be stored, and the old one that it is an update of, with `related` to ratchet by."""

    obj: Any
    old: Any = None
    related: Correlation | None = None


def rule_errors(schema: Schema, obj: Any, old: Any, related: Correlation | None) -> list[FieldError]:
    """The errors of all rules; with `old`, those of rules without oldSelf are ratcheted by `related`."""
    (found,) = errors_of_rules([(schema, ObjectUpdate(obj, old, related))])
    return found


def errors_of_rules(changes: Iterable[tuple[Schema, ObjectUpdate]]) -> list[list[FieldError]]:
    """`rule_errors` of many objects, whose rules are evaluated together; what is the same for several is once."""
    runs: list[_Run] = []
    sources: dict[tuple[int, int, bool], str] = {}
    for schema, change in changes:
        run = _Run(sources)
        run.visit(schema, schema, _Place(change.obj, change.old, "", change.related, is_root=True))
        runs.append(run)
    rules = [met for run in runs for met in run.met if isinstance(met, _Rule)]
    for rule, found in zip(rules, evaluated([rule.evaluation() for rule in rules]), strict=True):
        rule.found = found
    again = [rule for rule in rules if rule.is_mistyped]
    for rule, found in zip(again, evaluated([rule.evaluation("dyn") for rule in again]), strict=True):
        rule.found = found
    refused = [rule for rule in rules if rule.is_refused and rule.message_expression]
    for rule, found in zip(refused, evaluated([rule.message_evaluation() for rule in refused]), strict=True):
        rule.told = found
    errors = [[met.error() if isinstance(met, _Rule) else met for met in run.met] for run in runs]
    return [[error for error in found if error is not None] for found in errors]


def has_rules(schema: Schema) -> bool:
    """Whether there is a rule anywhere in the schema's own structure that the API server runs."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if not has_cel_type(node):
            continue
        if node.get(RULES):
            return True
        below = [node.get("items"), node.get("additionalProperties"), *properties_of(node).values()]
        waiting += maps(below)
    return False
