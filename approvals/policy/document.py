"""A policy as a document, in the words of ValidatingAdmissionPolicy, and as the columns of its row. PURE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from approvals.policy.expression import MAX_EXPRESSION
from provisioner.api_groups import OWN_GROUP

API_VERSION, KIND = f"{OWN_GROUP}/v1alpha2", "ApprovalPolicy"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
MAX_VALIDATIONS, MAX_LISTED, MAX_TEXT, MAX_MESSAGE = 20, 100, 317, 1000


class BadDocument(Exception):
    """The document is no policy. `place` says where, such as `spec.validations[0].expression`."""

    def __init__(self, place: str, words: str):
        super().__init__(f"{place}: {words}" if place else words)
        self.place = place


class PolicyEffect(StrEnum):
    GUARD = "Guard"  # holds a request back unless all validations are true
    GRANT = "Grant"  # approves a request if all validations are true


class ValidationAction(StrEnum):
    """What follows from the validations."""

    DENY = "Deny"  # of a guard
    APPROVE = "Approve"  # of a grant
    AUDIT = "Audit"  # nothing but a record: a dry run


_IN_FORCE = {PolicyEffect.GUARD: ValidationAction.DENY, PolicyEffect.GRANT: ValidationAction.APPROVE}


@dataclass(frozen=True, slots=True)
class Validation:
    expression: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """One policy. Of `clusters`, `names` and `labels` (matchLabels) those that are empty select everything."""

    name: str
    effect: PolicyEffect
    validations: tuple[Validation, ...]
    clusters: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    is_enforced: bool = False
    allows_known_powers: bool = False

    @staticmethod
    def parse(value: object) -> PolicyDocument:
        """Raises BadDocument."""
        whole = _mapping(value, "", ("apiVersion", "kind", "metadata", "spec"))
        for name, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
            if whole.get(name) != expected:
                raise BadDocument(name, f"it is {_shown(whole.get(name))}; expected {expected}")
        name = _text(_mapping(whole.get("metadata"), "metadata", ("name",)), "metadata", "name", most=63)
        if not NAME.fullmatch(name):
            raise BadDocument("metadata.name", f"it is {name!r}; expected lowercase letters, digits and dashes")
        known = ("effect", "matchConstraints", "validations", "validationActions", "allowKnownPowers")
        spec = _mapping(whole.get("spec"), "spec", known)
        effect = _chosen(spec.get("effect"), "spec.effect", tuple(PolicyEffect))
        about = _mapping(
            spec.get("matchConstraints", {}), "spec.matchConstraints", ("clusters", "names", "matchLabels")
        )
        allows = spec.get("allowKnownPowers", False)
        if not isinstance(allows, bool):
            raise BadDocument("spec.allowKnownPowers", f"it is {_shown(allows)}; expected true or false")
        place = "spec.matchConstraints"
        return PolicyDocument(
            name=name,
            effect=PolicyEffect(effect),
            validations=_validations(spec.get("validations")),
            clusters=_texts(about.get("clusters", []), f"{place}.clusters"),
            names=_texts(about.get("names", []), f"{place}.names"),
            labels=_labels(about.get("matchLabels", {}), f"{place}.matchLabels"),
            is_enforced=_is_enforced(spec.get("validationActions"), PolicyEffect(effect)),
            allows_known_powers=allows,
        )

    @staticmethod
    def of_columns(columns: Mapping[str, Any]) -> PolicyDocument:
        """The document of a row; `columns` as PolicyDocument.columns gives them."""
        return PolicyDocument(
            name=columns["name"],
            effect=PolicyEffect(str(columns["kind"]).title()),
            validations=(Validation(columns["expression"], columns["message"]),),
            clusters=(columns["cluster"],) if columns["cluster"] else (),
            names=tuple(columns["names"]),
            labels=dict(columns["labels"]),
            is_enforced=columns["mode"] == "enforce",
            allows_known_powers=columns["allows_known_powers"],
        )

    @property
    def expression(self) -> str:
        """All validations as one expression."""
        if len(self.validations) == 1:
            return self.validations[0].expression
        # A comment at the end of one must not take the parenthesis.
        ends = [f"{text}\n" if "//" in text else text for text in (one.expression for one in self.validations)]
        return " && ".join(f"({text})" for text in ends)

    def columns(self) -> dict[str, Any]:
        """The columns of the row that says the same. Raises BadDocument where a row cannot: it is of one cluster."""
        if len(self.clusters) != 1:
            words = f"it names {len(self.clusters)} clusters; a policy that is saved here is of exactly one"
            raise BadDocument("spec.matchConstraints.clusters", words)
        return {"cluster": self.clusters[0], **self.form_fields()}

    def form_fields(self) -> dict[str, Any]:
        """The columns but for the cluster."""
        return {
            "name": self.name,
            "kind": self.effect.lower(),
            "mode": "enforce" if self.is_enforced else "dry-run",
            "names": list(self.names),
            "labels": dict(self.labels),
            "expression": self.expression,
            "message": "; ".join(dict.fromkeys(one.message for one in self.validations if one.message)),
            "allows_known_powers": self.allows_known_powers,
        }

    def to_object(self) -> dict[str, Any]:
        """The document as it is written; `parse` reads it back."""
        about = {"clusters": list(self.clusters), "names": list(self.names), "matchLabels": dict(self.labels)}
        validations = [
            {"expression": one.expression, **({"message": one.message} if one.message else {})}
            for one in self.validations
        ]
        spec: dict[str, Any] = {
            "effect": str(self.effect),
            "matchConstraints": {key: value for key, value in about.items() if value},
            "validations": validations,
            "validationActions": [str(_IN_FORCE[self.effect] if self.is_enforced else ValidationAction.AUDIT)],
        }
        if self.allows_known_powers:
            spec["allowKnownPowers"] = True
        return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": self.name}, "spec": spec}


def _validations(value: object) -> tuple[Validation, ...]:
    place = "spec.validations"
    listed = _list(value, place, MAX_VALIDATIONS)
    if not listed:
        raise BadDocument(place, "it is empty; at least one expression is expected")
    found = []
    for at, one in enumerate(listed):
        here = f"{place}[{at}]"
        known = _mapping(one, here, ("expression", "message"))
        message = known.get("message", "")
        if not isinstance(message, str) or len(message) > MAX_MESSAGE:
            raise BadDocument(f"{here}.message", f"expected a text of at most {MAX_MESSAGE} characters")
        found.append(Validation(_text(known, here, "expression", most=MAX_EXPRESSION), message))
    return tuple(found)


def _is_enforced(value: object, effect: PolicyEffect) -> bool:
    place, in_force = "spec.validationActions", _IN_FORCE[effect]
    listed = _list(value, place, 2)
    allowed = (in_force, ValidationAction.AUDIT)
    if len(listed) != 1:
        raise BadDocument(place, f"it has {len(listed)} entries; expected one, {' or '.join(allowed)} for a {effect}")
    return _chosen(listed[0], f"{place}[0]", allowed) == in_force


def _mapping(value: object, place: str, known: Sequence[str] | None) -> Mapping[str, Any]:
    """`known` are the fields that it may have; None: any."""
    if not isinstance(value, Mapping):
        raise BadDocument(place, f"{'it is' if place else 'the document is'} {_shown(value)}; expected a mapping")
    extra = sorted(str(key) for key in value if known is not None and key not in known)
    if extra:
        here = f"{place}.{extra[0]}" if place else extra[0]
        raise BadDocument(here[:MAX_TEXT], f"this field is not known; known are {', '.join(known or ())}")
    return value


def _list(value: object, place: str, most: int) -> list[Any]:
    if not isinstance(value, list):
        raise BadDocument(place, f"it is {_shown(value)}; expected a list")
    if len(value) > most:
        raise BadDocument(place, f"it has {len(value)} entries; at most {most} are allowed")
    return value


def _texts(value: object, place: str) -> tuple[str, ...]:
    listed = _list(value, place, MAX_LISTED)
    for at, one in enumerate(listed):
        if not isinstance(one, str) or not one or len(one) > MAX_TEXT:
            raise BadDocument(f"{place}[{at}]", f"it is {_shown(one)}; expected a text of 1 to {MAX_TEXT} characters")
    return tuple(listed)


def _labels(value: object, place: str) -> dict[str, str]:
    found = _mapping(value, place, None)
    if len(found) > MAX_LISTED:
        raise BadDocument(place, f"it has {len(found)} labels; at most {MAX_LISTED} are allowed")
    for key, text in found.items():
        if not all(isinstance(one, str) and len(one) <= MAX_TEXT for one in (key, text)):
            raise BadDocument(place, f"a label is {_shown(key)}: {_shown(text)}; expected two texts")
    return dict(found)


def _text(record: Mapping[str, Any], place: str, name: str, *, most: int) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        raise BadDocument(f"{place}.{name}", f"it is {_shown(value)}; expected a text of 1 to {most} characters")
    return value


def _chosen(value: object, place: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise BadDocument(place, f"it is {_shown(value)}; expected {' or '.join(allowed)}")
    return str(value)


def _shown(value: object) -> str:
    """A value of a stranger in a message: what it is, and of a short one what it says."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else f"a text of {len(value):,} characters"
    return repr(value) if isinstance(value, bool | int | float) else f"a {type(value).__name__}"
