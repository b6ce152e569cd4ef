"""What an OpenID Connect issuer gave at a sign-in, to verify the person again later (security-rules.md S25)."""

from __future__ import annotations

from django.db import models

from approvals.encryption.fields import EncryptedTextField


class IssuerGrant(models.Model):
    """Sessions and API tokens of one sign-in share it: an issuer changes the refresh token each time it is used.

    Without the row they are nobody's any more. `session` is the issuer's name of the browser's session there (`sid`).
    """

    uid = models.UUIDField(unique=True)
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    session = models.CharField(max_length=255, blank=True)
    refresh_token = EncryptedTextField(place="refresh token of grant", bound_to=["uid"], blank=True)
    id_token = EncryptedTextField(place="ID token of grant", bound_to=["uid"], blank=True)
    renewed_at = models.DateTimeField(help_text="when the issuer last said who this is")
    tried_at = models.DateTimeField(help_text="when it was last asked")

    class Meta:
        indexes = [models.Index(fields=["issuer", "subject"]), models.Index(fields=["issuer", "session"])]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"
