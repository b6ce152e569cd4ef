"""The records: columns and constraints only. `services` and `steps` write them, `selectors` read them.

Every room above may import the models by name from here; managers and querysets live with them.
"""

from approvals.models.audit import AuditCheck, AuditEntry
from approvals.models.catalog import Catalog, CatalogEdition, CatalogHistory, CatalogPackage, CatalogPresentation
from approvals.models.chat import ChatAccount, ChatDelivery, LinkCode
from approvals.models.claimed import TaskClaim
from approvals.models.comparison import BundleComparison
from approvals.models.deployment import BundleDeployment, Cluster, HookRun, InventoryItem, OwnWrite, Revision, SpecWrite
from approvals.models.floating import FloatingReference, FollowedPackage, ReferenceFollower, SourceHost
from approvals.models.identity import ApiToken, KubernetesIdentity, Proof, SignIn
from approvals.models.issuer import IssuerGrant
from approvals.models.kubectl_review import AuthorAdmission, KubectlReview, ReviewAdmission
from approvals.models.listing import RequestAsker, RequestRule, RequestText
from approvals.models.objects import Drift, OptionalObject, Stray
from approvals.models.policy import Policy, PolicyEvaluation
from approvals.models.request import Content, LookupAnswers, Outcome, Request
from approvals.models.review import (
    REQUEST_CHANGES,
    Dismissal,
    Finding,
    Report,
    Review,
    Verdict,
    VoidedRound,
)
from approvals.models.viewed import ViewedObject
from approvals.models.workspace import NewsRead, SavedView

__all__ = [
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
    "Cluster",
    "Content",
    "Dismissal",
    "Drift",
    "Finding",
    "FloatingReference",
    "FollowedPackage",
    "HookRun",
    "InventoryItem",
    "IssuerGrant",
    "KubectlReview",
    "KubernetesIdentity",
    "LinkCode",
    "LookupAnswers",
    "NewsRead",
    "OptionalObject",
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
