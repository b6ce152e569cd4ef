"""The records: columns and constraints only. `services` and `steps` write them, `selectors` read them.

Every room above may import the models by name from here; managers and querysets live with them.
"""

from approvals.models.audit import AuditEntry
from approvals.models.chat import ChatAccount, ChatDelivery, LinkCode
from approvals.models.claimed import TaskClaim
from approvals.models.deployment import BundleDeployment, Cluster, InventoryItem, OwnWrite, Revision, SpecWrite
from approvals.models.drift import Drift
from approvals.models.identity import ApiToken, KubernetesIdentity, Proof, SignIn
from approvals.models.issuer import IssuerGrant
from approvals.models.optional import OptionalObject
from approvals.models.policy import Policy, PolicyEvaluation
from approvals.models.request import Content, Finding, Outcome, Report, Request, Review, Verdict, VoidedRound
from approvals.models.stray import Stray

__all__ = [
    "ApiToken",
    "AuditEntry",
    "BundleDeployment",
    "ChatAccount",
    "ChatDelivery",
    "Cluster",
    "Content",
    "Drift",
    "Finding",
    "InventoryItem",
    "IssuerGrant",
    "KubernetesIdentity",
    "LinkCode",
    "OptionalObject",
    "Outcome",
    "OwnWrite",
    "Policy",
    "PolicyEvaluation",
    "Proof",
    "Report",
    "Request",
    "Review",
    "Revision",
    "SignIn",
    "SpecWrite",
    "Stray",
    "TaskClaim",
    "Verdict",
    "VoidedRound",
]
