"""The records: columns and constraints only. `services` and `steps` write them, `selectors` read them.

Every room above may import the models by name from here; managers and querysets live with them.
"""

from approvals.models.audit import AuditCheck, AuditEntry
from approvals.models.bundle_objects import Drift, OptionalObject, Stray
from approvals.models.catalog import Catalog, CatalogEdition, CatalogHistory, CatalogPackage, CatalogPresentation
from approvals.models.checks import CheckRun, CheckSecret
from approvals.models.claims import TaskClaim
from approvals.models.comparison import BundleComparison
from approvals.models.deciding import Confirmation, DecidingObject
from approvals.models.deployment import BundleDeployment, Cluster, HookRun, InventoryItem, OwnWrite, Revision, SpecWrite
from approvals.models.followed_sources import FloatingReference, FollowedPackage, ReferenceFollower, SourceHost
from approvals.models.identity import (
    ApiToken,
    ChatAccount,
    ChatDelivery,
    IssuerGrant,
    KubernetesIdentity,
    LinkCode,
    Proof,
    SignIn,
)
from approvals.models.listing import NewsRead, RequestAsker, RequestRule, RequestText, SavedView, ViewedObject
from approvals.models.made_values import KeptValue
from approvals.models.notifications import NotificationDelivery, NotificationTarget, OutboxEvent
from approvals.models.policy import Policy, PolicyEvaluation
from approvals.models.request import Content, LookupAnswers, Outcome, Request
from approvals.models.review import (
    ACCEPT,
    AFTERWARDS,
    BREAK_GLASS,
    OBJECT,
    REQUEST_CHANGES,
    AuthorAdmission,
    Dismissal,
    Finding,
    KubectlReview,
    Report,
    Review,
    ReviewAdmission,
    Verdict,
    VoidedRound,
)
from approvals.models.rollout import RingApproval, Rollout, RolloutMember

__all__ = [
    "ACCEPT",
    "AFTERWARDS",
    "BREAK_GLASS",
    "OBJECT",
    "REQUEST_CHANGES",
    "ApiToken",
    "AuditCheck",
    "AuditEntry",
    "AuthorAdmission",
    "BundleComparison",
    "BundleDeployment",
    "Catalog",
    "CatalogEdition",
    "CatalogHistory",
    "CatalogPackage",
    "CatalogPresentation",
    "ChatAccount",
    "ChatDelivery",
    "CheckRun",
    "CheckSecret",
    "Cluster",
    "Confirmation",
    "Content",
    "DecidingObject",
    "Dismissal",
    "Drift",
    "Finding",
    "FloatingReference",
    "FollowedPackage",
    "HookRun",
    "InventoryItem",
    "IssuerGrant",
    "KeptValue",
    "KubectlReview",
    "KubernetesIdentity",
    "LinkCode",
    "LookupAnswers",
    "NewsRead",
    "NotificationDelivery",
    "NotificationTarget",
    "OptionalObject",
    "OutboxEvent",
    "Outcome",
    "OwnWrite",
    "Policy",
    "PolicyEvaluation",
    "Proof",
    "ReferenceFollower",
    "Report",
    "Request",
    "RequestAsker",
    "RequestRule",
    "RequestText",
    "Review",
    "ReviewAdmission",
    "Revision",
    "RingApproval",
    "Rollout",
    "RolloutMember",
    "SavedView",
    "SignIn",
    "SourceHost",
    "SpecWrite",
    "Stray",
    "TaskClaim",
    "Verdict",
    "ViewedObject",
    "VoidedRound",
]
