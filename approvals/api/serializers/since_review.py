"""What differs since the caller's last review."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class FindingChangeSerializer(serializers.Serializer[Any]):
    change = serializers.CharField(help_text="new, worse or gone")
    severity = serializers.CharField()
    was = serializers.CharField(help_text="the severity before; empty if there was none")
    rule = serializers.CharField()
    message = serializers.CharField()
    fingerprint = serializers.CharField()


class ObjectChangeSerializer(serializers.Serializer[Any]):
    object = serializers.CharField()
    was = serializers.CharField(help_text="the planned action when you reviewed; empty if it was not in the plan")
    now = serializers.CharField(help_text="the planned action now; the same one where the content differs")
    position = serializers.IntegerField(allow_null=True, help_text="in the current plan")


class DifferencesSerializer(serializers.Serializer[Any]):
    findings = FindingChangeSerializer(many=True)
    objects = ObjectChangeSerializer(many=True)
    more_findings = serializers.IntegerField()
    more_objects = serializers.IntegerField()


class SinceReviewSerializer(serializers.Serializer[Any]):
    """Your last review, if it is of an earlier round or request, and what differs since; only what you can get."""

    decision = serializers.CharField()
    given_at = serializers.DateTimeField()
    request = serializers.UUIDField(source="request.uid")
    round = serializers.IntegerField()
    why = serializers.CharField(help_text="why it is not about the current round")
    is_blocking = serializers.BooleanField(help_text="whether it requests changes and holds the request back")
    differences = DifferencesSerializer()
