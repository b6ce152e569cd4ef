"""What the API shows and takes. Live values of a cluster are shown by `visible_report` only (security-rules.md S09)."""

from __future__ import annotations

from approvals.api.serializers.accounts import (
    CommandLineIssuerSerializer,
    ExchangeInput,
    NewTokenSerializer,
    ProveInput,
    TokenSerializer,
)
from approvals.api.serializers.catalogs import (
    CatalogDetailSerializer,
    CatalogSerializer,
    PackageSerializer,
    PackageSummarySerializer,
    package_record,
)
from approvals.api.serializers.comparisons import (
    ComparedLinesSerializer,
    ComparisonPart,
    ComparisonQuestionSerializer,
    ComparisonSerializer,
    comparison_record,
    question_of,
)
from approvals.api.serializers.deployments import (
    AskAgainInput,
    ClusterSerializer,
    DeploymentInput,
    DeploymentSerializer,
    DriftSerializer,
    PauseInput,
    ReinstateInput,
    RevisionSerializer,
    RevokeInput,
    RollbackInput,
    SpecInput,
)
from approvals.api.serializers.records import AuditSerializer, PolicySerializer
from approvals.api.serializers.requests import (
    ChangesPart,
    OutcomeSerializer,
    ReportPart,
    RequestDetailSerializer,
    RequestSerializer,
    WithdrawInput,
)
from approvals.api.serializers.reviews import DismissalSerializer, DismissInput, ReviewInput, ReviewSerializer

__all__ = [
    "AskAgainInput",
    "AuditSerializer",
    "CatalogDetailSerializer",
    "CatalogSerializer",
    "ChangesPart",
    "ClusterSerializer",
    "CommandLineIssuerSerializer",
    "ComparedLinesSerializer",
    "ComparisonPart",
    "ComparisonQuestionSerializer",
    "ComparisonSerializer",
    "DeploymentInput",
    "DeploymentSerializer",
    "DismissInput",
    "DismissalSerializer",
    "DriftSerializer",
    "ExchangeInput",
    "NewTokenSerializer",
    "OutcomeSerializer",
    "PackageSerializer",
    "PackageSummarySerializer",
    "PauseInput",
    "PolicySerializer",
    "ProveInput",
    "ReinstateInput",
    "ReportPart",
    "RequestDetailSerializer",
    "RequestSerializer",
    "ReviewInput",
    "ReviewSerializer",
    "RevisionSerializer",
    "RevokeInput",
    "RollbackInput",
    "SpecInput",
    "TokenSerializer",
    "WithdrawInput",
    "comparison_record",
    "package_record",
    "question_of",
]
