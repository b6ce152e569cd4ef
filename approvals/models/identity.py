"""Who somebody is on a cluster, and where that was proved (security.md S01)."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class KubernetesIdentity(models.Model):
    """A signed-in user's name and groups on one cluster. It counts there only."""

    class Authenticator(models.TextChoices):
        TOKEN_REVIEW = "token-review", "Kubernetes token"
        MAPPED = "mapped", "mapped by the operator"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="kubernetes_identities")
    cluster = models.ForeignKey("approvals.Cluster", on_delete=models.CASCADE, related_name="identities")
    authenticator = models.CharField(max_length=20, choices=Authenticator.choices)
    username = models.CharField(max_length=253)
    uid = models.CharField(max_length=253, blank=True)
    groups = models.JSONField(default=list)
    groups_seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "cluster"], name="identity_once_per_user_and_cluster"),
            models.UniqueConstraint(fields=["cluster", "username"], name="identity_username_once_per_cluster"),
        ]

    def __str__(self) -> str:
        return self.username


class ApiToken(models.Model):
    """A token for the REST API; only its SHA-256 is kept."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name
