"""What was found, who reviewed it, the verdict, and the rounds that ended without an outcome."""

from __future__ import annotations

from typing import Any

from django.db import models

from approvals.encryption.fields import EncryptedJSONField
from approvals.models.request import Request

REQUEST_CHANGES = "RequestChanges"
# Lets it go in an emergency: past counts and policies, and a review is owed then, which one of the two others is.
BREAK_GLASS, ACCEPT, OBJECT = "BreakGlass", "Accept", "Object"
AFTERWARDS = (ACCEPT, OBJECT)
DECISIONS = [
    ("Approve", "Approve"),
    (REQUEST_CHANGES, "Request changes"),
    ("Deny", "Deny"),
    (BREAK_GLASS, "Break glass"),
    (ACCEPT, "Accept afterwards"),
    (OBJECT, "Object afterwards"),
]
VERDICTS = [("Approved", "Approved"), ("Denied", "Denied")]
# Where somebody acted, as it follows what they did: the channels of reviews, and others that the audit has.
VIA_WORDS = {
    "browser": "in the browser",
    "rest": "with the REST API",
    "chat": "in chat",
    "webhook": "with a webhook",
    "kubectl": "with kubectl",
    "policy": "by a policy",
    "shell": "with pratique-manage",
    "cluster": "with kubectl or another client of the cluster",
    "oidc": "with single sign-on",
    "machine": "",
}
# A policy reads the report whole.
_SHOWS_REPORT = {"browser": True, "rest": True, "chat": False, "webhook": False, "kubectl": False, "policy": True}


class Report(models.Model):
    """The report of one round. `body` is the library's record of it (provisioner.review.base.record).

    `worst` is the severity of the worst finding that the running revision does not have already.
    """

    request = models.ForeignKey(Request, on_delete=models.CASCADE, related_name="reports")
    round = models.PositiveIntegerField()
    worst = models.CharField(max_length=10)
    headline = models.JSONField(default=list)
    severities = models.JSONField(default=dict)
    actions = models.JSONField(default=dict)
    body = EncryptedJSONField(place="report of request", bound_to=["request_id", "round"])
    # {position: [before, after]}: of actions that hold values which a chart made up, which `body` hides (S44).
    exact_states = EncryptedJSONField(place="exact states of report", bound_to=["request_id", "round"], null=True)
    # {digest, needs} (steps.records.likeness); {} where it was reported before there was that.
    likeness = models.JSONField(default=dict, db_default={})
    computed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["request", "round"], name="one_report_per_round")]

    @property
    def exact_body(self) -> dict[str, Any]:
        """The body with what it hides from everybody: to apply and to compare it, never to show it (S44)."""
        body: dict[str, Any] = self.body
        if not self.exact_states:
            return body
        actions = list(body["plan"]["actions"])
        for position, (before, after) in self.exact_states.items():
            actions[int(position)] = {**actions[int(position)], "before": before, "after": after}
        return {**body, "plan": {**body["plan"], "actions": actions}}

    def __str__(self) -> str:
        return f"{self.request_id} round {self.round}"


class Finding(models.Model):
    """One finding, for filters and policies; its evidence stays in the report's body under `fingerprint`."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="findings")
    position = models.PositiveIntegerField()
    rule = models.CharField(max_length=20)
    section = models.CharField(max_length=20)
    severity = models.CharField(max_length=10)
    message = models.TextField()
    object = models.CharField(max_length=600, blank=True)
    fingerprint = models.CharField(max_length=80)
    is_new = models.BooleanField(default=True)

    class Meta:
        ordering = ["position"]
        indexes = [models.Index(fields=["rule", "severity"], name="finding_rule")]

    def __str__(self) -> str:
        return f"{self.rule} {self.message}"


class ReviewQuerySet(models.QuerySet["Review"]):
    """Reviews, asked for by what they count."""

    def counted(self) -> ReviewQuerySet:
        """Without those that their reviewer has replaced by a later one of the same round."""
        return self.filter(replaced_by=None)

    def judged(self, request: Request) -> ReviewQuerySet:
        """What a judgement goes by: counted reviews of the present subject, and who asked for changes in an earlier
        round and has not reviewed since."""
        later = Review.objects.filter(
            request=request, voter=models.OuterRef("voter"), round__gt=models.OuterRef("round"), carries=None
        )
        present = models.Q(round=request.round, subject_digest=request.subject_digest)
        asks = models.Q(decision=REQUEST_CHANGES) & ~models.Exists(later)
        return self.counted().filter(present | asks, request=request)


class Review(models.Model):
    """One reviewer's decision on one subject digest. Never edited, never deleted (database triggers).

    Until the verdict a reviewer may decide again: the later review `replaces` the earlier one, which stays.
    """

    class Channel(models.TextChoices):
        BROWSER = "browser"
        REST = "rest"
        CHAT = "chat"
        WEBHOOK = "webhook"
        KUBECTL = "kubectl"
        POLICY = "policy"

        @property
        def shows_report(self) -> bool:
            """Whether who decides there has the whole report before them; every new channel has to say (S32)."""
            return _SHOWS_REPORT[self.value]

        @property
        def words(self) -> str:
            """Where the review was given, as it follows what the reviewer did: `in the browser`."""
            return VIA_WORDS[self.value]

    request = models.ForeignKey(Request, on_delete=models.PROTECT, related_name="reviews")
    round = models.PositiveIntegerField()
    decision = models.CharField(max_length=14, choices=DECISIONS)
    subject_digest = models.CharField(max_length=80)
    reason = models.TextField(blank=True)
    incident = models.CharField(
        max_length=200, blank=True, default="", db_default="", help_text="of a break-glass: the number of the incident"
    )
    channel = models.CharField(max_length=10, choices=Channel.choices)
    # One linked person is one vote over all identities (S12): `user:<id>`, or `policy:<id>`.
    voter = models.CharField(max_length=300)
    user = models.ForeignKey("auth.User", on_delete=models.PROTECT, null=True, blank=True, related_name="reviews")
    policy = models.ForeignKey("approvals.Policy", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    policy_version = models.PositiveIntegerField(null=True, blank=True)
    username = models.CharField(max_length=253)
    uid = models.CharField(max_length=253, blank=True)
    groups = models.JSONField(default=list)
    # Of the identity that proved it, "" where the cluster or its operator vouched: a name can be changed at an issuer.
    issuer = models.CharField(max_length=255, blank=True, default="")
    subject = models.CharField(max_length=255, blank=True, default="")
    acknowledges = models.JSONField(default=list)
    may_use_account = models.BooleanField(default=False, help_text="may impersonate the installing ServiceAccount")
    may_write = models.BooleanField(
        default=False, help_text="this reviewer may be who wrote the spec, or asked for it, under another name"
    )
    doubt = models.TextField(blank=True, db_default="", help_text="why they may be: the right, and by whose name")
    # [{fingerprint, reason}]: findings of this round that the reviewer accepts, so that guards look past them.
    waives = models.JSONField(default=list)
    access_reason = models.TextField(blank=True, help_text="the API server's words when it allowed this")
    deputy_words = models.CharField(
        max_length=300,
        blank=True,
        default="",
        db_default="",
        help_text="whose deputy they were then and until when, if they could decide by that",
    )
    override_reason = models.TextField(blank=True, help_text="its words when it allowed to waive")
    replaces = models.OneToOneField(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="replaced_by",
        help_text="the earlier review by the same reviewer, which no longer counts",
    )
    carries = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="the approval of an earlier round or request that is carried over, and when it was given",
    )
    given_at = models.DateTimeField()

    objects = ReviewQuerySet.as_manager()

    class Meta:
        ordering = ["given_at", "pk"]
        indexes = [
            models.Index(fields=["given_at"], condition=models.Q(decision=BREAK_GLASS), name="review_broke_glass")
        ]
        constraints = [
            # The others replace one each (S12): a chain, so that one of each reviewer counts.
            models.UniqueConstraint(
                fields=["request", "round", "voter"],
                condition=models.Q(replaces=None),
                name="one_first_review_per_reviewer_and_round",
            ),
            models.CheckConstraint(
                condition=models.Q(decision__in=[decision for decision, _ in DECISIONS]), name="review_decision_known"
            ),
            models.CheckConstraint(
                condition=(models.Q(decision=BREAK_GLASS) & ~models.Q(incident="") & ~models.Q(reason=""))
                | (~models.Q(decision=BREAK_GLASS) & models.Q(incident="")),
                name="break_glass_has_its_incident",
            ),
            models.CheckConstraint(
                condition=models.Q(carries=None) | models.Q(decision="Approve", policy=None, user__isnull=False),
                name="a_persons_approval_is_carried",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.decision} by {self.username}"

    @property
    def is_replaced(self) -> bool:
        """Whether a later review of the same reviewer counts instead."""
        return hasattr(self, "replaced_by")


class Dismissal(models.Model):
    """That somebody who may `override` lets a request go on without the changes that a review asked for.

    Never edited, never deleted (database triggers). The latest one of a review counts, while its giver may `override`.
    """

    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="dismissals")
    reason = models.TextField()
    channel = models.CharField(max_length=10, choices=Review.Channel.choices)
    user = models.ForeignKey("auth.User", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # As of a review.
    username = models.CharField(max_length=253)
    uid = models.CharField(max_length=253, blank=True)
    issuer = models.CharField(max_length=255, blank=True, default="")
    subject = models.CharField(max_length=255, blank=True, default="")
    override_reason = models.TextField(blank=True, help_text="the API server's words when it allowed this")
    given_at = models.DateTimeField()

    class Meta:
        ordering = ["given_at", "pk"]

    def __str__(self) -> str:
        return f"review {self.review_id} dismissed by {self.username}"


class Verdict(models.Model):
    """Given once a round, never changed (promise 5, database triggers)."""

    request = models.ForeignKey(Request, on_delete=models.PROTECT, related_name="verdicts")
    round = models.PositiveIntegerField()
    verdict = models.CharField(max_length=8, choices=VERDICTS)
    subject_digest = models.CharField(max_length=80)
    given_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["request", "round"], name="one_verdict_per_round"),
            models.CheckConstraint(condition=models.Q(verdict__in=["Approved", "Denied"]), name="verdict_known"),
        ]

    def __str__(self) -> str:
        return self.verdict


class VoidedRound(models.Model):
    """A round of a request that ended without an outcome: it was reported again, and its reviews count no longer."""

    request = models.ForeignKey(Request, on_delete=models.CASCADE, related_name="voided_rounds")
    round = models.PositiveIntegerField()
    was_approved = models.BooleanField()
    code = models.CharField(max_length=40)
    words = models.TextField()
    # [{object, reviewed, now}]: what is planned otherwise than it was reviewed; `more_objects` are not named.
    objects_differing = models.JSONField(default=list)
    more_objects = models.PositiveIntegerField(default=0)
    apply_at = models.DateTimeField(
        null=True, blank=True, help_text="it was not to be applied before that, which the next round does not keep"
    )
    at = models.DateTimeField()

    class Meta:
        ordering = ["round"]
        constraints = [models.UniqueConstraint(fields=["request", "round"], name="one_end_per_round")]

    def __str__(self) -> str:
        return f"{self.request_id} round {self.round}: {self.words}"


class PoliciesSeen(models.Model):
    """Since when shipped admission policies have been seen in force on a cluster, without a change.

    `facts` are uid and generation of each policy and binding; "" while something is missing, and `problem` says what.
    """

    facts = models.TextField(blank=True)
    since = models.DateTimeField(null=True, blank=True)
    looked_at = models.DateTimeField()
    problem = models.TextField(blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.problem or f"in force since {self.since}"


class ReviewAdmission(PoliciesSeen):
    """Of the policies that prove who made a review."""

    cluster = models.OneToOneField("approvals.Cluster", on_delete=models.CASCADE, related_name="review_admission")


class AuthorAdmission(PoliciesSeen):
    """Of the policies that prove who wrote a BundleDeployment."""

    cluster = models.OneToOneField("approvals.Cluster", on_delete=models.CASCADE, related_name="author_admission")
    sure_from = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="resourceVersion after which every write met the policies; null: not yet"
    )


class KubectlReview(models.Model):
    """One BundleDeploymentReview of a cluster. It proves nothing: the object is read again before it is counted."""

    cluster = models.ForeignKey("approvals.Cluster", on_delete=models.CASCADE, related_name="kubectl_reviews")
    uid = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    created_at = models.DateTimeField(help_text="creationTimestamp of the object")
    seen_at = models.DateTimeField()
    username = models.CharField(max_length=253, blank=True)
    reviewer = models.CharField(
        max_length=253, blank=True, help_text="who made it, as the object says, for turns alone; empty: unread"
    )
    settled_at = models.DateTimeField(null=True, blank=True)
    review = models.ForeignKey(
        "approvals.Review", on_delete=models.PROTECT, null=True, blank=True, related_name="kubectl_reviews"
    )
    # Why it did not count: a code of ours, and words for the reviewer.
    code = models.CharField(max_length=60, blank=True)
    words = models.TextField(blank=True)
    finished_at = models.DateTimeField(null=True, blank=True, help_text="when its status was written")

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="kubectl_review_once_per_cluster")]
        indexes = [
            models.Index(
                fields=["cluster", "created_at"],
                condition=models.Q(finished_at__isnull=True),
                name="kubectl_review_due",
            ),
            models.Index(fields=["cluster", "username", "created_at"], name="kubectl_review_by_person"),
        ]

    def __str__(self) -> str:
        return self.name
