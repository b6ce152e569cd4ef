"""The frozen values that travel between the rooms. No behaviour beyond naming, ordering and hashing."""

from provisioner.values.access import AccessAnswer, AccessRequest, Identity
from provisioner.values.content import (
    Archive,
    Content,
    Manifest,
    Pin,
    Requirement,
    RequirementKind,
    SourceKind,
    Tree,
    UnusedFiles,
)
from provisioner.values.findings import SHAPES, Certainty, Finding, Section, Severity, certainty_of, worst_first
from provisioner.values.health import WORST_FIRST, Health, HealthState
from provisioner.values.hooks import APPLYING, DELETING, Hook, HookMoment, HookRun
from provisioner.values.objects import GroupKind, JsonObject, ObjectIdentity, ObjectRef, created_at, object_in
from provisioner.values.outcomes import InventoryItem, ObjectOutcome, OutcomeState, Why
from provisioner.values.plans import (
    Action,
    CollisionProtection,
    DeletionPolicy,
    HelmRelease,
    Plan,
    PlanDifference,
    PlannedAction,
)
from provisioner.values.reports import Report

__all__ = [
    "APPLYING",
    "DELETING",
    "SHAPES",
    "WORST_FIRST",
    "AccessAnswer",
    "AccessRequest",
    "Action",
    "Archive",
    "Certainty",
    "CollisionProtection",
    "Content",
    "DeletionPolicy",
    "Finding",
    "GroupKind",
    "Health",
    "HealthState",
    "HelmRelease",
    "Hook",
    "HookMoment",
    "HookRun",
    "Identity",
    "InventoryItem",
    "JsonObject",
    "Manifest",
    "ObjectIdentity",
    "ObjectOutcome",
    "ObjectRef",
    "OutcomeState",
    "Pin",
    "Plan",
    "PlanDifference",
    "PlannedAction",
    "Report",
    "Requirement",
    "RequirementKind",
    "Section",
    "Severity",
    "SourceKind",
    "Tree",
    "UnusedFiles",
    "Why",
    "certainty_of",
    "created_at",
    "object_in",
    "worst_first",
]
