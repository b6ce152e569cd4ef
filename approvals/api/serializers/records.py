"""Policies and the audit."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals.access import policy_identity
from approvals.audit import public_facts, public_hash
from approvals.models import (
    AuditEntry,
    Policy,
)


class PolicySerializer(serializers.ModelSerializer[Policy]):
    cluster = serializers.CharField(source="cluster.name", allow_null=True)
    approves_as = serializers.SerializerMethodField(help_text="the user name that needs `approve` by RBAC")

    class Meta:
        model = Policy
        fields = [
            "name",
            "kind",
            "mode",
            "cluster",
            "names",
            "labels",
            "expression",
            "message",
            "allows_known_powers",
            "version",
            "is_active",
            "approves_as",
        ]

    def get_approves_as(self, policy: Policy) -> str:
        return policy_identity(policy).username if policy.kind == Policy.Kind.GRANT else ""


class AuditSerializer(serializers.ModelSerializer[AuditEntry]):
    facts = serializers.SerializerMethodField()
    hash = serializers.SerializerMethodField(help_text="empty for entries of earlier versions")

    class Meta:
        model = AuditEntry
        fields = ["number", "at", "verb", "actor", "via", "cluster", "deployment", "request_uid", "facts", "hash"]

    @extend_schema_field(serializers.DictField())
    def get_facts(self, entry: AuditEntry) -> dict[str, Any]:
        return public_facts(entry)

    def get_hash(self, entry: AuditEntry) -> str:
        return public_hash(entry)
