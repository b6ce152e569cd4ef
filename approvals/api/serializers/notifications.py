"""Notification targets and what was sent to them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from approvals.deciding.selector import SEVERITIES
from approvals.events.kinds.table import TARGET_KINDS, shown_address
from approvals.events.occasions import CHOSEN_TYPES
from approvals.models import NotificationDelivery, NotificationTarget


class TargetInput(serializers.Serializer[Any]):
    kind = serializers.CharField(
        max_length=20, default="webhook", help_text=f"one of {', '.join(f'`{kind}`' for kind in TARGET_KINDS)}"
    )
    address = serializers.CharField(max_length=500, help_text="as the kind has it; as it was read: the stored one")
    event_types = serializers.ListField(
        child=serializers.ChoiceField(choices=[str(one) for one in CHOSEN_TYPES]),
        max_length=len(CHOSEN_TYPES),
        default=list,
        help_text="empty: all",
    )
    clusters = serializers.ListField(
        child=serializers.CharField(max_length=63), max_length=50, default=list, help_text="names or globs; empty: all"
    )
    labels = serializers.DictField(
        child=serializers.CharField(max_length=63, allow_blank=True),
        default=dict,
        help_text="that a deployment must have",
    )
    min_severity = serializers.ChoiceField(
        choices=["", *SEVERITIES],
        default="",
        help_text="of the worst new finding of a request; other events have none and are sent",
    )
    is_active = serializers.BooleanField(default=True)


class NewTargetInput(TargetInput):
    name = serializers.CharField(max_length=63)


class TargetSerializer(serializers.ModelSerializer[NotificationTarget]):
    address = serializers.SerializerMethodField(help_text="without what is secret in it")
    granted = serializers.ListField(
        child=serializers.CharField(), help_text="the clusters that it is told of, as Kubernetes let its last writer"
    )

    class Meta:
        model = NotificationTarget
        fields = [
            *("name", "kind", "address", "event_types", "clusters", "granted", "labels", "min_severity"),
            *("is_active", "stopped_because", "version", "created_by", "created_at", "changed_by", "changed_at"),
        ]

    def get_address(self, target: NotificationTarget) -> str:
        return shown_address(target)


class NewTargetSerializer(TargetSerializer):
    secret = serializers.CharField(help_text="signs the events; shown this once, empty if the kind signs none")

    class Meta(TargetSerializer.Meta):
        fields = [*TargetSerializer.Meta.fields, "secret"]


class TargetSecretSerializer(serializers.Serializer[Any]):
    secret = serializers.CharField(help_text="signs the events from now on; the one before as well for 24 hours")


class DeliverySerializer(serializers.ModelSerializer[NotificationDelivery]):
    """`send_at` is set while it waits, then `delivered_at` or `dead_at`."""

    event = serializers.IntegerField(source="event_id", help_text="its id, which is the number of its audit entry")
    type = serializers.CharField(source="event.type")

    class Meta:
        model = NotificationDelivery
        fields = [
            *("id", "event", "type", "subject", "attempts", "send_at", "tried_at", "status", "milliseconds"),
            *("problem", "delivered_at", "dead_at"),
        ]
