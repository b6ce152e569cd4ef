"""ApprovalPolicy: a guard that holds requests back, or a grant that approves them, as an object of a cluster. PURE.

There is one reader of its spec: for the object, for a file that is tried on past requests, and for the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from approvals.deciding.kinds import HOLDS_ALL, DecidingKind, FormField, SpecExpression
from approvals.deciding.selector import Selector
from approvals.deciding.spec_fields import SpecFields, UnreadableObject
from approvals.policy.document import (
    API_VERSION,
    IN_FORCE,
    KIND,
    MatchCondition,
    PolicyDocument,
    PolicyEffect,
    Validation,
    ValidationAction,
)
from approvals.policy.expression import MAX_EXPRESSION, MESSAGE, POLICY

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
MAX_VALIDATIONS, MAX_CONDITIONS, MAX_LISTED, MAX_MESSAGE = 20, 20, 100, 1000
BAD_NAME = "expected at most 63 lowercase letters, digits and dashes, and not digits alone"


@dataclass(frozen=True, slots=True)
class ApprovalPolicy(DecidingKind):
    """The name of `document` is empty: a spec does not have it."""

    kind: ClassVar[str] = KIND
    plural: ClassVar[str] = "approvalpolicies"
    slug: ClassVar[str] = "approval-policies"
    words: ClassVar[str] = "approval policy"
    words_for_many: ClassVar[str] = "approval policies"
    asks: ClassVar[str] = "Definition"
    after_deletion: ClassVar[str] = (
        "A guard then holds no request. Requests that a grant approved and that are not applied yet need another "
        "approval."
    )
    about: ClassVar[str] = "An approval policy holds requests back, or approves them, by expressions over their facts."
    selector_place: ClassVar[str] = "matchConstraints"
    selector_parts: ClassVar[tuple[str, ...]] = ("names", "matchLabels")
    has_when: ClassVar[bool] = False
    are_authors_proved: ClassVar[bool] = True
    form: ClassVar[tuple[FormField, ...]] = (
        FormField(
            "effect",
            "Effect",
            "A guard holds a request back unless all validations are true; a grant approves it if they are.",
            choices=tuple((str(effect), str(effect)) for effect in PolicyEffect),
            is_required=True,
        ),
        FormField(
            "validationActions",
            "Action",
            "Choose one: Deny for a guard, Approve for a grant, or Audit.",
            is_list=True,
            choices=(
                (str(ValidationAction.DENY), "Deny: a guard that holds requests"),
                (str(ValidationAction.APPROVE), "Approve: a grant that approves requests"),
                (str(ValidationAction.AUDIT), "Audit: only record what it would do"),
            ),
            is_required=True,
        ),
        FormField(
            "validations",
            "Validations",
            "YAML: a list of entries with an expression, and a message or a messageExpression. All must be true.",
            rows=8,
            is_yaml=True,
            is_required=True,
            example='- {expression: "unjudged == 0", message: a field changes that no rule judges}',
        ),
        FormField(
            "matchConditions",
            "Match conditions",
            "YAML: a list of entries with a name and an expression. If one is false, the request is not selected.",
            rows=4,
            is_yaml=True,
            example='- {name: upgrades, expression: "!is_first"}',
        ),
        FormField(
            "allowKnownPowers",
            "Allow known powers",
            "For grants: also approve power over Pratique that people have approved of the deployment.",
            is_flag=True,
        ),
    )

    description: str
    selector: Selector
    when: str
    document: PolicyDocument

    @classmethod
    def parse(cls, spec: Mapping[str, Any]) -> Self:
        return cls.of_document(_read_spec("", SpecFields(spec)))

    @classmethod
    def of_document(cls, document: PolicyDocument) -> Self:
        return cls(document.description, Selector(document.names, document.labels), "", document)

    @property
    def summary(self) -> str:
        said = self.document
        expressions = " && ".join(" ".join(one.expression.split()) for one in said.validations)
        mode = "" if said.is_enforced else " (dry run)"
        return f"{said.effect}{mode}: {expressions if len(expressions) <= 200 else f'{expressions[:200]}…'}"

    @property
    def expressions(self) -> tuple[SpecExpression, ...]:
        found = [
            SpecExpression(f"spec.matchConditions[{at}].expression", condition.expression, POLICY)
            for at, condition in enumerate(self.document.match_conditions)
        ]
        for at, validation in enumerate(self.document.validations):
            place = f"spec.validations[{at}]"
            found.append(SpecExpression(f"{place}.expression", validation.expression, POLICY))
            if validation.message_expression:
                text = validation.message_expression
                found.append(SpecExpression(f"{place}.messageExpression", text, MESSAGE, "string"))
        if len(self.document.validations) > 1:
            found.append(SpecExpression("spec.validations", self.document.expression, POLICY))
        return tuple(found)

    @property
    def needs_authors(self) -> bool:
        return self.document.is_grant

    @classmethod
    def describe_unreadable(cls, spec: Mapping[str, Any]) -> str:
        return "it approves nothing" if _is_grant(spec) else HOLDS_ALL


def parse_document(value: object) -> PolicyDocument:
    """The policy of a whole document, as a file has it. Raises UnreadableObject with the place."""
    fields = SpecFields(value, "")
    for name, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if (found := fields.text(name, default="")) != expected:
            raise fields.refuse(name, f"is {found[:60]!r}; expected {expected}" if found else "is missing")
    metadata = fields.inner("metadata")
    name = metadata.text("name")
    metadata.end()
    if not is_name(name):
        raise metadata.refuse("name", f"is {name[:60]!r}; {BAD_NAME}")
    document = _read_spec(name, fields.inner("spec"))
    fields.end()
    return document


def is_name(name: str) -> bool:
    """Whether an object may be called so. Its identity has the name: digits alone are those of policies in rows."""
    return bool(NAME.fullmatch(name)) and not name.isdigit()


def read_document(name: str, spec: Mapping[str, Any]) -> tuple[PolicyDocument, str]:
    """What an object says, and ""; else what it may select, and why it cannot be read.

    What does not say that it is a grant is taken for a guard, and for one in force unless it says that it is not.
    """
    try:
        if not is_name(name):
            raise UnreadableObject(f"metadata.name is {name[:60]!r}; {BAD_NAME}", "metadata.name")
        return _read_spec(name, SpecFields(spec)), ""
    except UnreadableObject as exc:
        effect = PolicyEffect.GRANT if _is_grant(spec) else PolicyEffect.GUARD
        guess = PolicyDocument(name, effect, (), is_enforced=spec.get("validationActions") != [ValidationAction.AUDIT])
        try:
            clusters, names, labels = _read_constraints(SpecFields(spec).inner("matchConstraints"))
        except UnreadableObject:
            return guess, str(exc)
        return PolicyDocument(name, effect, (), clusters, names, labels, is_enforced=guess.is_enforced), str(exc)


def _is_grant(spec: Mapping[str, Any]) -> bool:
    return spec.get("effect") == PolicyEffect.GRANT


def _read_spec(name: str, fields: SpecFields) -> PolicyDocument:
    effect = fields.choice("effect", tuple(PolicyEffect), default="")
    if not effect:
        raise fields.refuse("effect", f"is missing; expected {' or '.join(PolicyEffect)}")
    in_force = IN_FORCE[PolicyEffect(effect)]
    actions = fields.texts("validationActions", allowed=(in_force, ValidationAction.AUDIT), most=2)
    if len(actions) != 1:
        expected = f"expected one, {in_force} or Audit for a {effect}"
        raise fields.refuse("validationActions", f"has {len(actions)} entries; {expected}")
    clusters, names, labels = _read_constraints(fields.inner("matchConstraints"))
    document = PolicyDocument(
        name=name,
        effect=PolicyEffect(effect),
        validations=fields.each("validations", _read_validation, most=MAX_VALIDATIONS),
        clusters=clusters,
        names=names,
        labels=labels,
        match_conditions=fields.each("matchConditions", _read_condition, most=MAX_CONDITIONS),
        is_enforced=actions[0] == in_force,
        allows_known_powers=fields.flag("allowKnownPowers"),
        description=fields.text("description", default="", longest=MAX_MESSAGE),
    )
    if not document.validations:
        raise fields.refuse("validations", "is empty; expected at least one")
    fields.end()
    return document


def _read_constraints(fields: SpecFields) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]:
    """Clusters, names and labels."""
    clusters, names = fields.texts("clusters", most=MAX_LISTED), fields.texts("names", most=MAX_LISTED)
    labels = fields.labels("matchLabels")
    fields.end()
    return clusters, names, labels


def _read_validation(fields: SpecFields) -> Validation:
    found = Validation(
        expression=_read_expression(fields, "expression"),
        message=fields.text("message", default="", longest=MAX_MESSAGE),
        message_expression=fields.text("messageExpression", default="", longest=MAX_EXPRESSION),
    )
    fields.end()
    return found


def _read_condition(fields: SpecFields) -> MatchCondition:
    found = MatchCondition(fields.text("name"), _read_expression(fields, "expression"))
    fields.end()
    return found


def _read_expression(fields: SpecFields, name: str) -> str:
    text = fields.text(name, longest=MAX_EXPRESSION)
    if not text.strip():
        raise fields.refuse(name, "is empty; expected an expression")
    return text
