"""What a preflight is decided from: the account, the objects in the order of apply, and what the cluster holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from provisioner.rbac import RbacObjects, RbacSubject
from provisioner.review.base.facts import Gap, ReviewRule, RolesRead
from provisioner.values import (
    AccessAnswer,
    AccessRequest,
    GroupKind,
    JsonObject,
    Manifest,
    ObjectIdentity,
    PlannedAction,
    Section,
    Severity,
)

NAMESPACE = GroupKind("", "Namespace")
TOO_EARLY = ReviewRule("PRE-08", Section.PREFLIGHT, Severity.BREAKING)
UNKNOWN = ReviewRule("PRE-12", Section.PREFLIGHT, Severity.UNKNOWN)
REMEDY = ReviewRule("PRE-RULES", Section.PREFLIGHT, Severity.NOTABLE)


@dataclass(frozen=True, slots=True)
class ResourceWord:
    """`plural` is the word for a kind in RBAC rules."""

    plural: str
    is_namespaced: bool


@dataclass(frozen=True, slots=True)
class PreflightFacts:
    """What a preflight is decided from. None means that nobody could be asked.

    `manifests` stand in the order of apply. `kinds` is what the cluster serves, by group, version and kind. `actions`
    is what apply is planned to do, by identity; without a plan everything counts as new. `answers` are the API server's
    to `questions`, which see other authorizers than RBAC, too. `unanswered` are groups whose own servers are down.
    `with_deletion`: what is written shall be deleted one day, too. `release` is the cluster's version, "" if unknown.
    """

    account: RbacSubject
    manifests: tuple[Manifest, ...]
    roles: tuple[JsonObject, ...] | None = None
    kinds: Mapping[tuple[str, str, str], ResourceWord] | None = None
    namespaces: frozenset[str] | None = None
    actions: Mapping[ObjectIdentity, PlannedAction] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    answers: Mapping[AccessRequest, AccessAnswer] = field(default_factory=dict)
    unanswered: frozenset[str] = frozenset()
    with_deletion: bool = False
    release: str = ""

    @property
    def known(self) -> RbacObjects:
        """The roles, sorted out; none where nobody could be asked."""
        return self.roles.known if isinstance(self.roles, RolesRead) else RbacObjects.of(self.roles or ())
