"""Objects that say how requests are decided, as REST shows and takes them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals.clock import database_now
from approvals.deciding.external_checks import LONGEST_ADDRESS, LONGEST_MESSAGE, CheckOutcome
from approvals.deciding.table import BY_NAME
from approvals.ledger.deciding.confirmations import ready_state
from approvals.models import CheckRun, DecidingObject


class ReadySerializer(serializers.Serializer[Any]):
    """As the condition Ready of the object."""

    status = serializers.BooleanField(source="is_ready")
    reason = serializers.CharField()
    message = serializers.CharField(source="words")


class DecidingObjectSerializer(serializers.ModelSerializer[DecidingObject]):
    cluster = serializers.CharField(source="cluster.name")
    spec = serializers.JSONField(help_text="as `kubectl explain` describes it")
    summary = serializers.SerializerMethodField(help_text="what it asks for, in words; empty if it cannot be read")
    problem = serializers.CharField(help_text="why it cannot be read; it holds what it might select then")
    ready = serializers.SerializerMethodField(help_text="whether it counts, and why or why not")
    version = serializers.CharField(help_text="its uid and generation, which are its ETag")

    class Meta:
        model = DecidingObject
        fields = [
            "kind",
            "cluster",
            "name",
            "uid",
            "generation",
            "version",
            "spec",
            "summary",
            "problem",
            "ready",
            "changed_at",
        ]

    def get_summary(self, row: DecidingObject) -> str:
        parsed, _ = BY_NAME[row.kind].read(row.spec)
        return parsed.summary if parsed else ""

    @extend_schema_field(ReadySerializer)
    def get_ready(self, row: DecidingObject) -> dict[str, Any]:
        return dict(ReadySerializer(ready_state(row, database_now())).data)


class ConfirmationInput(serializers.Serializer[Any]):
    version = serializers.CharField(max_length=100, help_text="`version` of the object as you read it")


class DecidingSpecInput(serializers.Serializer[Any]):
    spec = serializers.DictField(help_text="the whole spec, which replaces the current one")


class DecidingObjectInput(DecidingSpecInput):
    name = serializers.CharField(max_length=253)


class CheckAnswerInput(serializers.Serializer[Any]):
    outcome = serializers.ChoiceField(choices=[str(outcome) for outcome in CheckOutcome])
    subject_digest = serializers.CharField(max_length=80, help_text="`subjectDigest` of the event")
    message = serializers.CharField(
        max_length=LONGEST_MESSAGE, allow_blank=True, default="", help_text="everyone who reads the request sees it"
    )
    link = serializers.CharField(
        max_length=LONGEST_ADDRESS, allow_blank=True, default="", help_text="an https URL that tells more"
    )


class CheckRunSerializer(serializers.ModelSerializer[CheckRun]):
    class Meta:
        model = CheckRun
        fields = [
            "uid",
            "check_name",
            "stage",
            "number",
            "outcome",
            "message",
            "link",
            "asked_at",
            "answered_at",
            "due_at",
        ]


class CheckSecretSerializer(serializers.Serializer[Any]):
    secret = serializers.CharField(help_text="as Standard Webhooks writes it: `whsec_` and base64")
