"""Requests, what they are about and what came of them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from secrets import token_hex
from typing import Any

from django.db import models

from approvals.bundle_spec import BundleSpec, parse_spec
from approvals.encryption.fields import EncryptedJSONField
from approvals.errors import Awaits
from approvals.lifecycle import OPEN, State
from approvals.models.claims import Claimed

# An object in words: its kind and group, its namespace and its name, each as long as Kubernetes lets it be.
OBJECT_LENGTH = 640
# In Request.read_unattended: read before that was kept, so that nobody knows on whose word.
READ_EARLIER = "?"
# What lists filter by.
LISTED = ("state", "cluster", "purpose", "format", "deployment")


class Content(models.Model):
    """Rendered manifests, kept in the content store under `digest`; never changed."""

    digest = models.CharField(max_length=80, primary_key=True)
    install_namespace = models.CharField(max_length=63)
    service_account = models.CharField(max_length=253)
    salt = models.BinaryField(
        default=b"", db_default=b"", help_text="what the digest is keyed with; empty where it was stored before that"
    )
    format = models.CharField(max_length=60)
    object_count = models.PositiveIntegerField()
    byte_count = models.PositiveBigIntegerField()
    has_deletion_hooks = models.BooleanField(
        default=False, db_default=False, help_text="whether hooks of it run when its deployment is deleted"
    )
    created_at = models.DateTimeField()
    used_at = models.DateTimeField(
        null=True, help_text="when it was last stored: what is about to get its request stays"
    )
    removed_at = models.DateTimeField(
        null=True, blank=True, help_text="when its bytes went from the content store (PRATIQUE_KEEP_DAYS)"
    )
    deleting_until = models.DateTimeField(
        null=True, blank=True, help_text="until when a deletion of its bytes that was asked for may still happen"
    )

    @property
    def public_digest(self) -> str:
        """The digest if nobody can try values on it that they may not see (S09), else ""."""
        return self.digest if self.salt else ""

    def __str__(self) -> str:
        return self.digest


class Request(Claimed):
    """A BundleDeploymentRequest: one pivot of one deployment. `spec` is the deployment's spec it was made from."""

    class Purpose(models.TextChoices):
        DEPLOY = "deploy"
        DELETE = "delete"
        ROLLBACK = "rollback"
        # What runs, with values of its chart made anew.
        ROTATE = "rotate"

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    deployment = models.ForeignKey("approvals.BundleDeployment", on_delete=models.PROTECT, related_name="requests")
    # Those of the deployment and its spec, and of the present report, again: lists filter and sort by these (listing).
    cluster = models.ForeignKey("approvals.Cluster", on_delete=models.PROTECT, related_name="+")
    format = models.CharField(max_length=60, default="plain")
    weight = models.PositiveSmallIntegerField(
        default=0, help_text="of the worst new finding: 6 for critical to 1 for safe, 0 without a report"
    )
    number = models.PositiveIntegerField(help_text="the number of the request within its deployment, from 1")
    purpose = models.CharField(max_length=10, choices=Purpose.choices, default=Purpose.DEPLOY)
    generation = models.PositiveBigIntegerField()
    spec = models.JSONField()
    labels = models.JSONField(default=dict)
    # The labels that it, or an unsettled one before it, had earlier: guards select by those as well (S14).
    earlier_labels = models.JSONField(default=list)
    options_digest = models.CharField(max_length=80)
    # Part of the subject digest, and shown to nobody; "" where it was made before subject digests had one.
    salt = models.CharField(max_length=64, default=partial(token_hex, 32), db_default="", editable=False)
    # access.requester_record: all who wrote the spec since the last settled request (S05).
    requesters = models.JSONField(default=list)
    is_requester_known = models.BooleanField(default=False)
    # [[kind, name]]: Users and Groups that RBAC lets write it, where nobody knows who wrote it (access.authors).
    possible_authors = models.JSONField(default=list, db_default=[], blank=True)
    is_unattended = models.BooleanField(
        default=False, help_text="created automatically: the people who last changed the spec are its requesters"
    )
    read_unattended = models.JSONField(
        default=list,
        db_default=[],
        help_text="what its sources were read of because PRATIQUE_UNATTENDED_READS listed the deployment",
    )
    # Whether every requester was let use the ServiceAccount and read what the sources name, when it was last asked.
    is_installer_proved = models.BooleanField(default=False)
    from_revision = models.ForeignKey(
        "approvals.Revision", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    to_revision = models.ForeignKey(
        "approvals.Revision",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="the revision whose content a rollback puts back",
    )
    content = models.ForeignKey(Content, on_delete=models.PROTECT, null=True, blank=True, related_name="requests")
    pins = models.JSONField(default=list)
    # {count, readableCount, paths}: files of the sources that the format did not use; {} where nothing was fetched.
    unused_files = models.JSONField(default=dict, db_default={}, blank=True)
    # [{kind, name, group, version}]: what the bundle asks of its cluster beyond its own objects.
    requirements = models.JSONField(default=list, db_default=[], blank=True)
    # What a chart was given, as JSON texts by path, without credentials; null where nobody knows.
    chart_values = models.JSONField(null=True, blank=True)
    # The paths of those that the spec sets, in its files or by itself; [] also where nobody knows.
    spec_values = models.JSONField(default=list, db_default=[], blank=True)
    # [{file, first, line, path, effect}]: the keys that were there twice (provisioner.values.RepeatedKey).
    repeated_keys = models.JSONField(default=list, db_default=[], blank=True)
    # What the chart or operator bundle says of itself; "" where its format has no version, or nobody knows.
    bundle_version = models.CharField(max_length=100, blank=True, db_default="")
    engine = models.CharField(
        max_length=40,
        blank=True,
        db_default="",
        help_text="the version of the Helm that rendered the chart, such as v4.2.3; empty where none did",
    )
    # Of a release that is taken over: the objects that Helm 3 renders otherwise; null where nobody knows.
    helm_3_differs = models.JSONField(null=True, blank=True)
    # [{reference, before, after, since, course, why}]: how branches and tags moved since they were resolved earlier.
    source_moves = models.JSONField(default=list, db_default=[], blank=True)
    # [{object, digest, copies, keys}]: what a chart was told of the objects of the cluster.
    lookups = models.JSONField(default=list, db_default=[], blank=True)
    # [{entry, count, objects}]: what spec.config changed in the rendered objects (provisioner.values.PatchResult).
    patches = models.JSONField(default=list, db_default=[], blank=True)
    # {values, checksums}: what the chart made up, and where; no value (ledger.made_values).
    made_values = models.JSONField(default=dict, db_default={}, blank=True)
    # [SECRET, SECRET/KEY or *]: the values that the chart makes up which are made anew (ledger.made_values).
    rotation = models.JSONField(default=list, db_default=[], blank=True)
    # Of each source that names a catalog the bundle that it was resolved to (provisioner.values.ChosenBundle).
    bundles = models.JSONField(default=list, db_default=[], blank=True)
    # [{name, needed, problem, note}]: the ApprovalRules that select it, as they were judged last: `needed` says what
    # is still needed, [] where nothing is.
    approval_rules = models.JSONField(default=list, db_default=[], blank=True)
    # [{name, reason, ticket, until, by, fingerprints}]: the FindingExceptions that accept findings of the present
    # round, as it was judged last; `until` in ISO 8601.
    finding_exceptions = models.JSONField(default=list, db_default=[], blank=True)
    # As CheckResult.record: the ExternalChecks that select it, as they stood last.
    external_checks = models.JSONField(default=list, db_default=[], blank=True)
    # {round, approvals: [{name, number, round, at, why_not}]}: approvals of earlier rounds and requests, and why each
    # was not carried over to this round, "" where it was; {} where nobody looked for any (steps.carry_over).
    carry_over = models.JSONField(default=dict, db_default={}, blank=True)
    asked_round = models.PositiveIntegerField(default=0, db_default=0)  # the last one that told who is needed
    reminded_round = models.PositiveIntegerField(default=0, db_default=0)  # the last one of which people were reminded
    # What whoever asked wrote of it; for reading and for policies, no part of what is reviewed (ledger.change_words).
    change_reason = models.CharField(max_length=1000, blank=True, default="", db_default="")
    change_ticket = models.CharField(max_length=200, blank=True, default="", db_default="")
    is_for_people = models.BooleanField(
        default=False,
        db_default=False,
        help_text="grants do not approve it: it follows a catalog by upgradePolicy Request",
    )
    service_account_uid = models.CharField(max_length=63, blank=True)
    state = models.CharField(max_length=12, choices=[(it, it) for it in State], default=State.PREPARING)
    round = models.PositiveIntegerField(default=1)
    plan_digest = models.CharField(max_length=80, blank=True)
    subject_digest = models.CharField(max_length=80, blank=True)
    problem_code = models.CharField(max_length=60, blank=True)
    problem = models.TextField(blank=True)
    remedy = models.TextField(blank=True, db_default="", help_text="what can be done about the problem, and by whom")
    problem_since = models.DateTimeField(null=True, blank=True, help_text="since when it waits because of the problem")
    # [{ref, also, words}]: what the API server or Helm said of it, each a value of the object `ref` and of those of
    # `also` (S27); `problem` is ours.
    server_words = models.JSONField(default=list, blank=True)
    awaits = models.CharField(
        max_length=10,
        blank=True,
        choices=[(it, it) for it in Awaits],
        help_text="what must change in the cluster before the next check",
    )
    attempts = models.PositiveIntegerField(default=0)
    worked_seconds = models.FloatField(
        default=0.0, help_text="used of its deadline by applying it or restoring the previous revision"
    )
    phase = models.CharField(
        max_length=63, blank=True, db_default="", help_text="the phase of applying it, such as `2 of 5: crds`"
    )
    look_again_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    apply_at = models.DateTimeField(
        null=True, blank=True, help_text="it is not applied before that: chosen by who may approve"
    )
    apply_at_by = models.CharField(max_length=253, blank=True, db_default="", help_text="who chose it last")
    # Since when and until when it waits for a change window or `apply_at`, as far as is known; null: for good.
    held_from = models.DateTimeField(null=True, blank=True)
    held_until = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    cleared_at = models.DateTimeField(
        null=True, blank=True, help_text="when its report and other details went (PRATIQUE_KEEP_DAYS)"
    )
    mirrored_version = models.CharField(
        max_length=63, blank=True, db_default="", help_text="the mirror's resourceVersion after it was written last"
    )
    last_event = models.CharField(
        max_length=100,
        blank=True,
        db_default="",
        help_text="round, state and problem that the latest event in the cluster told",
    )
    mirrored_at = models.DateTimeField(null=True, blank=True, help_text="`changed_at` of what the cluster shows")

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["state", "look_again_at"], name="request_work"),
            models.Index(fields=["settled_at"], name="request_settled"),
            # With all that lists filter by, so that PostgreSQL finds a page of keys without a look at the wide rows.
            models.Index(fields=["created_at", "id", *LISTED, "weight"], name="request_by_time"),
            models.Index(fields=["weight", "created_at", "id", *LISTED], name="request_by_weight"),
            models.Index(fields=["cluster", "created_at", "id", "state", "weight"], name="request_of_cluster"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["deployment", "number"], name="request_number_once"),
            models.UniqueConstraint(
                fields=["deployment"],
                condition=models.Q(state__in=sorted(OPEN)),
                name="one_open_request_per_deployment",
            ),
            models.CheckConstraint(condition=models.Q(state__in=sorted(State)), name="request_state_known"),
            models.CheckConstraint(
                condition=models.Q(state__in=["preparing", "failed", "superseded", "expired", "withdrawn", "stale"])
                | ~models.Q(subject_digest=""),
                name="request_reviewable_has_subject",
            ),
            models.CheckConstraint(
                condition=models.Q(purpose="rollback", to_revision__isnull=False)
                | (~models.Q(purpose="rollback") & models.Q(to_revision__isnull=True)),
                name="rollback_has_its_revision",
            ),
        ]

    @property
    def bundle_spec(self) -> BundleSpec:
        return parse_spec(self.spec)

    def without_hold(self, now: datetime) -> datetime:
        """`now` less the time for which it waited, approved, for a window: by this age the identities of those who
        asked and approved (decision 0092)."""
        return now - (min(now, self.held_until or now) - self.held_from) if self.held_from else now

    @property
    def rules_left(self) -> list[str]:
        """What ApprovalRules still need, as they were judged last: a phrase for each that is not satisfied."""
        found = [
            (rule["name"], rule["problem"] or "; ".join(rule["needed"]), rule["note"]) for rule in self.approval_rules
        ]
        return [f"{name}: {f'{words}; {note}' if note else words}" for name, words, note in found if words]

    @property
    def earlier_approvals(self) -> list[dict[str, Any]]:
        """Of `carry_over` what is about the present round, with `words` that say it whole."""
        found = self.carry_over if self.carry_over.get("round") == self.round else {}
        return [{**one, "words": self._words_of_earlier(one)} for one in found.get("approvals", ())]

    def _words_of_earlier(self, one: Mapping[str, Any]) -> str:
        place = f"round {one['round']}" + ("" if one["number"] == self.number else f" of request {one['number']}")
        given = f"the approval of {one['name']}, given at {one['at'][:16].replace('T', ' ')} UTC in {place},"
        return f"{given} is not carried over: {one['why_not']}" if one["why_not"] else f"{given} is carried over"

    @property
    def checks_left(self) -> list[str]:
        """What mandatory external checks that did not pass said last, as `NAME: words`."""
        return [f"{check['name']}: {check['words']}" for check in self.external_checks if check["holds"]]

    @property
    def public_subject_digest(self) -> str:
        """As Content.public_digest; while it is decided on, people have to name it."""
        return self.subject_digest if self.salt or self.state in OPEN else ""

    def __str__(self) -> str:
        return f"{self.deployment_id}#{self.number}"


class LookupAnswers(models.Model):
    """What a chart was told of the cluster's objects, in the order of `Request.lookups`; null: it was not there."""

    request = models.OneToOneField(Request, on_delete=models.CASCADE, related_name="lookup_answers")
    body = EncryptedJSONField(place="lookups of request", bound_to=["request_id"])

    def __str__(self) -> str:
        return f"lookups of {self.request_id}"


class Outcome(models.Model):
    """Progress of an apply, of putting back what ran before, or of creating later what was left out as optional: one
    row per object and step, written as it happens."""

    class Step(models.TextChoices):
        APPLY = "apply"
        RESTORE = "restore"
        OPTIONAL = "optional"

    request = models.ForeignKey(Request, on_delete=models.CASCADE, related_name="outcomes")
    step = models.CharField(max_length=10, choices=[(it, it) for it in Step], default=Step.APPLY)
    position = models.PositiveIntegerField()
    phase = models.CharField(max_length=20, blank=True)
    object = models.CharField(max_length=OBJECT_LENGTH)
    action = models.CharField(max_length=10)
    state = models.CharField(max_length=10)
    message = models.TextField(blank=True)
    # What the API server said and warned of: values of the object `about`, for nobody where that is null (S27).
    warnings = models.JSONField(default=list)
    server_words = models.TextField(blank=True)
    about = models.JSONField(null=True, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["request", "step", "object"], name="one_outcome_per_object")]

    def __str__(self) -> str:
        return f"{self.action} {self.object}: {self.state}"
