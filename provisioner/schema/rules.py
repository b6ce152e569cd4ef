"""x-kubernetes-validations: the CEL rules of a schema, run over a custom resource as the API server runs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.schema import cel
from provisioner.schema.celvalues import has_cel_type, misfit, to_cel, type_signature, typed_moments
from provisioner.schema.correlation import Correlation, correlated_item
from provisioner.schema.fields import (
    OMITTED,
    FieldError,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    key,
    required,
)
from provisioner.schema.pruning import Schema, properties_of, schema_of

RULES = "x-kubernetes-validations"
MAX_MESSAGE_BYTES = 5 * 1024
MISTYPED = ("Unexpected value type", "'float' object")  # how the CEL runtime begins to say so


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
    errors: list[FieldError] = field(default_factory=list)

    def visit(self, rules_schema: Schema, schema: Schema, place: _Place) -> None:
        """Run the rules of `rules_schema`, which is `schema` or one branch of its allOf, at `place` and below."""
        if place.value is None or not has_cel_type(schema):
            return
        listed = rules_schema.get(RULES)
        if isinstance(listed, list) and listed:
            self._run_all(listed, schema, place)
        branches = rules_schema.get("allOf")
        for branch in branches if isinstance(branches, list) else ():
            if isinstance(branch, Mapping) and has_rules(branch):
                self.visit(branch, schema, replace(place, here=None))
        self._visit_below(rules_schema, schema, place)

    def _visit_below(self, rules_schema: Schema, schema: Schema, place: _Place) -> None:
        if isinstance(place.value, list):
            rules_items, items = schema_of(rules_schema.get("items")), schema_of(schema.get("items"))
            if rules_items is not None and items is not None:
                for position in range(len(place.value)):
                    self.visit(rules_items, items, place.at_item(position, schema))
        elif isinstance(place.value, dict):
            self._visit_fields(rules_schema, schema, place)

    def _visit_fields(self, rules_schema: Schema, schema: Schema, place: _Place) -> None:
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
        if wrong:
            self._refuse_all(listed, wrong, schema, place)
            return
        own = to_cel(place.value, schema, is_root=place.is_root)
        before = cel.UNUSABLE if wrong_before else to_cel(place.old, schema, is_root=place.is_root)
        signature = type_signature(schema, is_root=place.is_root)
        for rule in listed:
            if isinstance(rule, Mapping) and str(rule.get("rule", "")).strip():
                source = typed_moments(str(rule["rule"]), schema, is_root=place.is_root)
                self._run(_Rule(rule, signature, own, before, source, wrong_before), schema, place)

    def _refuse_all(self, listed: list[Any], problem: str, schema: Schema, place: _Place) -> None:
        """A value that CEL cannot take, which ratcheting let through: every rule over it fails."""
        for entry in listed:
            if isinstance(entry, Mapping) and str(entry.get("rule", "")).strip():
                rule = _Rule(entry, "", None, None)
                if place.old is not None or rule.has_optional_old or not rule.is_transition:
                    detail = f"{problem} evaluating rule: {rule.shown}"
                    self.errors.append(invalid(place.path, str(schema.get("type", "")), detail))

    def _run(self, rule: _Rule, schema: Schema, place: _Place) -> None:
        if rule.is_transition and place.old is None and not rule.has_optional_old:
            return
        type_name = str(schema.get("type", ""))
        try:
            result = rule.evaluate(place.old is not None)
        except cel.NotCompiled as exc:
            beyond = f"could not be evaluated: {rule.shown} ({exc})"
            detail = beyond if exc.is_beyond_us else f"rule compile error: compilation failed: {exc}"
            self.errors.append(invalid(place.path, type_name, detail))
            return
        if result.problem == "no such overload":
            detail = (
                "'no such overload': call arguments did not match a supported operator, function or macro signature"
            )
            self.errors.append(invalid(place.path, type_name, f"{detail} for rule: {rule.shown}"))
        elif result.problem or not isinstance(result.value, bool):
            problem = result.problem or "could not be evaluated: the result is no bool,"
            self.errors.append(invalid(place.path, type_name, f"{problem} evaluating rule: {rule.shown}"))
        elif not result.value and (rule.is_transition or not place.is_unchanged):
            self.errors.append(rule.refusal(schema, place))


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule with the values it is to be run on, in CEL's form."""

    rule: Mapping[str, Any]
    signature: str
    own: Any
    before: Any
    source: str = ""
    wrong_before: str = ""

    @property
    def text(self) -> str:
        return str(self.rule.get("rule", ""))

    @property
    def shown(self) -> str:
        return str(self.rule.get("message") or self.text).strip()

    @property
    def is_transition(self) -> bool:
        return cel.uses_old(self.text)

    @property
    def has_optional_old(self) -> bool:
        return self.rule.get("optionalOldSelf") is True

    def evaluate(self, has_old: bool) -> cel.Result:
        found = self._run_as(self.signature, has_old)
        if found.problem and self.before is cel.UNUSABLE:
            return cel.Result(problem=self.wrong_before)
        if found.problem.startswith(MISTYPED):  # some value below is none of its type: let the rule meet it, or not
            found = self._run_as("dyn", has_old)
        return found

    def _run_as(self, signature: str, has_old: bool) -> cel.Result:
        compiled = cel.program(self.source, signature, has_optional_old=self.has_optional_old)
        return compiled.run(self.own, self.before, has_old=has_old)

    def refusal(self, schema: Schema, place: _Place) -> FieldError:
        path = place.path
        if below := str(self.rule.get("fieldPath") or ""):
            path = child(path, below.removeprefix("."))
        detail = self._message(place.old is not None)
        value = OMITTED if schema.get("type") in ("object", "array") else place.value
        match self.rule.get("reason"):
            case "FieldValueForbidden":
                return forbidden(path, detail)
            case "FieldValueRequired":
                return required(path, detail)
            case "FieldValueDuplicate":
                return duplicate(path, value)
        return invalid(path, value, detail)

    def _message(self, has_old: bool) -> str:
        """What messageExpression comes to, else the message, else the rule itself."""
        expression = str(self.rule.get("messageExpression") or "")
        if expression:
            try:
                compiled = cel.program(expression, self.signature, has_optional_old=self.has_optional_old)
                found = compiled.run(self.own, self.before, has_old=has_old).value
            except cel.NotCompiled:
                found = None
            text = found.strip() if isinstance(found, str) else ""
            if text and "\n" not in text and len(text.encode()) <= MAX_MESSAGE_BYTES:
                return text
        message = str(self.rule.get("message") or "").strip()
        return message or f"failed rule: {self.text.strip()}"


def rule_errors(schema: Schema, obj: Any, old: Any, related: Correlation | None) -> list[FieldError]:
    """The errors of all rules; with `old`, those of rules without oldSelf are ratcheted by `related`."""
    run = _Run()
    run.visit(schema, schema, _Place(obj, old, "", related, is_root=True))
    return run.errors


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
        waiting += [it for it in below if isinstance(it, Mapping)]
    return False
