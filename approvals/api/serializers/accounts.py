"""Tokens, the identities that they prove, and signing in at a command line."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals.access import policy_identity
from approvals.audit import public_facts, public_hash
from approvals.models import ApiToken, AuditEntry, Policy, Proof


class ProofSerializer(serializers.ModelSerializer[Proof]):
    cluster = serializers.CharField(source="identity.cluster.name")
    username = serializers.CharField(source="identity.username")

    class Meta:
        model = Proof
        fields = ["cluster", "username", "groups", "proved_at"]


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    scopes = serializers.ListField(child=serializers.CharField(), help_text=f"of {', '.join(ApiToken.Scope.values)}")
    proofs = ProofSerializer(
        many=True,
        help_text="the identities of the token; each is valid for PRATIQUE_GROUPS_HOURS after it was verified",
    )

    class Meta:
        model = ApiToken
        fields = ["id", "name", "scopes", "proofs", "created_at", "expires_at", "last_used_at"]


class ProveInput(serializers.Serializer[Any]):
    cluster = serializers.CharField(max_length=63)
    token = serializers.CharField(max_length=20_000, write_only=True)


class CommandLineIssuerSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()
    authorization_url = serializers.CharField(help_text="where a browser signs in (OAuth 2.0, PKCE with S256)")
    client_id = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())


class ExchangeInput(serializers.Serializer[Any]):
    issuer = serializers.CharField(max_length=63, help_text="its name, as GET /api/v1/sign-in/issuers gives it")
    code = serializers.CharField(max_length=4096, help_text="what the issuer sent the browser back with")
    redirect_uri = serializers.CharField(
        max_length=200, help_text="http://127.0.0.1:PORT/, where the browser came back"
    )
    verifier = serializers.CharField(min_length=43, max_length=128, help_text="the secret of PKCE (RFC 7636)")
    service = serializers.CharField(
        max_length=500,
        help_text="the URL of this service, as the command line knows it. The sign-in's nonce is "
        "BASE64URL(SHA256(service, a newline, verifier)), so that it counts at this service only",
    )
    name = serializers.CharField(max_length=100, help_text="what the account page shows the token as")


class NewTokenSerializer(serializers.Serializer[Any]):
    token = serializers.CharField(help_text="shown once")
    about = TokenSerializer()


class PolicySerializer(serializers.ModelSerializer[Policy]):
    cluster = serializers.CharField(source="cluster.name", allow_null=True)
    approves_as = serializers.SerializerMethodField(help_text="the user name that needs `approve` by RBAC")
    is_built_in = serializers.SerializerMethodField(
        help_text="whether it came with Pratique; `is_active` says whether it is on for this cluster"
    )

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
            "is_built_in",
        ]

    def get_is_built_in(self, policy: Policy) -> bool:
        return bool(policy.uid)

    def get_approves_as(self, policy: Policy) -> str:
        return policy_identity(policy).username if policy.kind == Policy.Kind.GRANT else ""


class SwitchInput(serializers.Serializer[Any]):
    is_active = serializers.BooleanField()


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
