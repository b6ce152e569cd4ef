"""Chat accounts linked to users, and what chat tools delivered."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from approvals.encryption.fields import EncryptedJSONField


class ChatAccount(models.Model):
    """A chat account that a signed-in person linked. (tool, tenant, account) is the identity, never an email."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="chat_accounts")
    tool = models.CharField(max_length=30)
    tenant = models.CharField(max_length=100)
    account = models.CharField(max_length=100)
    name = models.CharField(max_length=100, blank=True)
    linked_at = models.DateTimeField()
    # Those that the session had proved which linked it: it decides as nobody else.
    identities = models.ManyToManyField("approvals.KubernetesIdentity", related_name="chat_accounts", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tool", "tenant", "account"], name="chat_account_linked_once"),
        ]

    def __str__(self) -> str:
        return f"{self.tool}:{self.name or self.account}"


class LinkCode(models.Model):
    """A one-time code that binds a chat account to the browser session which confirms it; only its SHA-256 is kept."""

    digest = models.CharField(max_length=64, unique=True)
    tool = models.CharField(max_length=30)
    tenant = models.CharField(max_length=100)
    account = models.CharField(max_length=100)
    name = models.CharField(max_length=100, blank=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.tool}:{self.account}"


class ChatDelivery(models.Model):
    """A decision that was taken in, acted on after the answer; the same key again is answered, not acted on.

    `wish` is a chat.tools.Wish as JSON, `words` what came of it.
    """

    tool = models.CharField(max_length=30)
    key = models.CharField(max_length=128)
    wish = EncryptedJSONField(place="wish of delivery", bound_to=["tool", "key"])  # its `reply_to` is a credential
    received_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True)
    words = models.TextField(blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["received_at"], condition=models.Q(done_at__isnull=True), name="delivery_open"),
        ]
        constraints = [models.UniqueConstraint(fields=["tool", "key"], name="delivery_once")]

    def __str__(self) -> str:
        return f"{self.tool} {self.key}"
