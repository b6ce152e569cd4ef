"""Who somebody is on a cluster, and which session or API token has proved it (security-rules.md S01, S25, S33)."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from approvals.encryption.fields import EncryptedJSONField, EncryptedTextField

NAME_LENGTH = 253


class KubernetesIdentity(models.Model):
    """One person of one cluster, and the account here that is theirs. It answers on this cluster only.

    `groups` are those of the latest proof, by whichever session; what one session may do follows its own Proof. The key
    is how it is proved: a TokenReview gives (cluster, username, uid), so a name that is made again is somebody else; an
    OpenID provider gives (cluster, issuer, subject), once for each cluster where the operator lets the issuer count,
    because names and groups have that cluster's prefixes; so does a proxy, with its name in the operator's file as
    issuer; a mapping is the operator's word about the account.
    """

    class Authenticator(models.TextChoices):
        TOKEN_REVIEW = "token-review", "Kubernetes token"
        MAPPED = "mapped", "mapped by the operator"
        OIDC = "oidc", "OpenID Connect"
        PROXY = "proxy", "trusted proxy"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="kubernetes_identities")
    cluster = models.ForeignKey("approvals.Cluster", on_delete=models.CASCADE, related_name="identities")
    authenticator = models.CharField(max_length=20, choices=Authenticator.choices)
    issuer = models.CharField(max_length=255, blank=True, default="", help_text='"" where the cluster itself vouches')
    subject = models.CharField(max_length=255, blank=True, default="", help_text="`sub` of the issuer, or of a proxy")
    username = models.CharField(max_length=NAME_LENGTH)
    uid = models.CharField(max_length=NAME_LENGTH, blank=True)
    groups = models.JSONField(default=list)
    groups_seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "cluster"], name="identity_once_per_user_and_cluster"),
            models.UniqueConstraint(
                fields=["cluster", "authenticator", "issuer", "subject", "username", "uid"],
                name="identity_is_one_person",
            ),
        ]

    def __str__(self) -> str:
        return self.username


class SignIn(models.Model):
    """A browser that is signed in. Its session names this row; without the row the session is nobody's."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_ins")
    began_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    address = models.CharField(max_length=64, blank=True)
    agent = models.CharField(max_length=300, blank=True, help_text="the browser's User-Agent")
    password_at = models.DateTimeField(null=True, blank=True, help_text="when the local account's password was given")
    grant = models.ForeignKey("approvals.IssuerGrant", on_delete=models.CASCADE, null=True, blank=True)
    proxy = models.CharField(
        max_length=63, blank=True, default="", help_text="the proxy that must name `proxy_subject`"
    )
    proxy_subject = models.CharField(max_length=255, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.user_id} since {self.began_at.isoformat(timespec='seconds')}"


class ApiToken(models.Model):
    """A token for the REST API; only its SHA-256 is kept. It proves what its Proof rows say, and nothing else.

    `scopes` are what it may do, `clusters` the keys of the clusters that it may do it on.
    """

    class Scope(models.TextChoices):
        READ = "read", "read"
        REQUEST = "request", "ask for changes"
        DECIDE = "decide", "decide"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    clusters = models.JSONField(default=list)
    password_at = models.DateTimeField(null=True, blank=True, help_text="as of the session that made it")
    grant = models.ForeignKey("approvals.IssuerGrant", on_delete=models.CASCADE, null=True, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    ended_because = models.CharField(max_length=300, blank=True, help_text='"" while it has not ended early')

    def __str__(self) -> str:
        return self.name


class Proof(models.Model):
    """An identity that a session or an API token has proved, with the groups of that moment."""

    sign_in = models.ForeignKey(SignIn, on_delete=models.CASCADE, null=True, blank=True, related_name="proofs")
    api_token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, null=True, blank=True, related_name="proofs")
    identity = models.ForeignKey(KubernetesIdentity, on_delete=models.CASCADE, related_name="proofs")
    groups = models.JSONField(default=list)
    proved_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(sign_in__isnull=False, api_token__isnull=True)
                | models.Q(sign_in__isnull=True, api_token__isnull=False),
                name="proof_has_one_holder",
            ),
            models.UniqueConstraint(fields=["sign_in", "identity"], name="proof_once_per_sign_in"),
            models.UniqueConstraint(fields=["api_token", "identity"], name="proof_once_per_token"),
        ]

    def __str__(self) -> str:
        return f"{self.identity} at {self.proved_at.isoformat(timespec='seconds')}"


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
        constraints = [models.UniqueConstraint(fields=["tool", "tenant", "account"], name="chat_account_linked_once")]

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
        indexes = [models.Index(fields=["received_at"], condition=models.Q(done_at__isnull=True), name="delivery_open")]
        constraints = [models.UniqueConstraint(fields=["tool", "key"], name="delivery_once")]

    def __str__(self) -> str:
        return f"{self.tool} {self.key}"
