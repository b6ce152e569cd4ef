"""A policy as it is judged, whether it is a row of the service or an object of a cluster, and as a document in the
words of ValidatingAdmissionPolicy. PURE. `deciding.approval_policies` reads documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from approvals.policy.expression import why_not_selected
from provisioner.api_groups import OWN_GROUP

API_VERSION, KIND = f"{OWN_GROUP}/v1alpha2", "ApprovalPolicy"
# Of a row of the service what is in a document, beside its cluster.
COLUMNS = ("name", "kind", "mode", "names", "labels", "expression", "message", "allows_known_powers")


class PolicyEffect(StrEnum):
    GUARD = "Guard"  # holds a request back unless all validations are true
    GRANT = "Grant"  # approves a request if all validations are true


class ValidationAction(StrEnum):
    """What follows from the validations."""

    DENY = "Deny"  # of a guard
    APPROVE = "Approve"  # of a grant
    AUDIT = "Audit"  # nothing but a record: a dry run


IN_FORCE = {PolicyEffect.GUARD: ValidationAction.DENY, PolicyEffect.GRANT: ValidationAction.APPROVE}


@dataclass(frozen=True, slots=True)
class Validation:
    """`message_expression` is CEL that gives a text, shown instead of `message` where it does."""

    expression: str
    message: str = ""
    message_expression: str = ""


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """CEL that has to be true of a request which the policy selects."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """One policy. Of `clusters`, `names` and `labels` (matchLabels) those that are empty select everything."""

    name: str
    effect: PolicyEffect
    validations: tuple[Validation, ...]
    clusters: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    match_conditions: tuple[MatchCondition, ...] = ()
    is_enforced: bool = False
    allows_known_powers: bool = False
    description: str = ""

    @staticmethod
    def of_columns(columns: Mapping[str, Any]) -> PolicyDocument:
        """The document of a row, by its columns; `cluster` is the cluster's name, "" for all."""
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
    def is_grant(self) -> bool:
        return self.effect is PolicyEffect.GRANT

    @property
    def expression(self) -> str:
        """All validations as one expression."""
        if len(self.validations) == 1:
            return self.validations[0].expression
        # A comment at the end of one must not take the parenthesis.
        ends = [f"{text}\n" if "//" in text else text for text in (one.expression for one in self.validations)]
        return " && ".join(f"({text})" for text in ends)

    @property
    def texts(self) -> list[str]:
        """The expressions that decide."""
        return [self.expression, *(condition.expression for condition in self.match_conditions)]

    @property
    def message(self) -> str:
        """The messages of all validations, each once."""
        return "; ".join(dict.fromkeys(one.message for one in self.validations if one.message))

    def why_not_selected(self, *, cluster: str, name: str, label_sets: Sequence[Mapping[str, str]] | None) -> str:
        """Which of its matchConstraints a request does not match; "" where it is selected.

        `label_sets` are all labels that count for the request: a guard selects by any of them, a grant needs all (S14).
        None: there were more than are kept. Those would have been any: a guard selects, a grant by labels does not.
        """
        if self.clusters and cluster not in self.clusters:
            return f"the cluster {cluster} is not listed"
        if label_sets is None and self.labels:
            words = why_not_selected(names=self.names, labels={}, name=name, has={})
            return words or ("it had more sets of labels than are kept" if self.is_grant else "")
        sets = label_sets or ({},)
        found = [why_not_selected(names=self.names, labels=self.labels, name=name, has=has) for has in sets]
        against = [words for words in found if words]
        is_selected = not against if self.is_grant else len(against) < len(found)
        return "" if is_selected else against[-1]

    def columns(self) -> dict[str, Any]:
        """Those of the row that says the same, but for the cluster. A row has no matchConditions."""
        return {
            "name": self.name,
            "kind": self.effect.lower(),
            "mode": "enforce" if self.is_enforced else "dry-run",
            "names": list(self.names),
            "labels": dict(self.labels),
            "expression": self.expression,
            "message": self.message,
            "allows_known_powers": self.allows_known_powers,
        }

    def to_object(self) -> dict[str, Any]:
        """The document as it is written, and read back."""
        about = {"clusters": list(self.clusters), "names": list(self.names), "matchLabels": dict(self.labels)}
        validations = [
            {
                "expression": one.expression,
                **({"message": one.message} if one.message else {}),
                **({"messageExpression": one.message_expression} if one.message_expression else {}),
            }
            for one in self.validations
        ]
        spec: dict[str, Any] = {
            "effect": str(self.effect),
            "matchConstraints": {key: value for key, value in about.items() if value},
            "validations": validations,
            "validationActions": [str(IN_FORCE[self.effect] if self.is_enforced else ValidationAction.AUDIT)],
        }
        if self.match_conditions:
            spec["matchConditions"] = [{"name": it.name, "expression": it.expression} for it in self.match_conditions]
        if self.allows_known_powers:
            spec["allowKnownPowers"] = True
        if self.description:
            spec["description"] = self.description
        return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": self.name}, "spec": spec}


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A policy that may judge requests. Nothing behind the reader knows whether it is a row or an object of a cluster.

    `key` is that of the row which reviews and evaluations refer to, 0 where there is none yet. `version` counts what
    was seen of it, and is 0 where the cluster has it otherwise than it was seen last: no review counts by that.
    `identity` is the user name that it approves as. `problem` says why it cannot be read: the document is then what it
    may select. `authors` are records of persons, of everybody who ever wrote it, with the keys of `accounts`; not
    `is_author_known`: nobody knows them all.
    """

    key: int
    version: int
    identity: str
    document: PolicyDocument
    authors: tuple[Mapping[str, Any], ...] = ()
    accounts: tuple[int, ...] = ()
    is_author_known: bool = True
    problem: str = ""
