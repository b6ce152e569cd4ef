"""Reviews and what they consist of: acknowledgements, waivers, dismissals."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from approvals import services
from approvals.models import (
    Dismissal,
    Review,
)
from approvals.services.waivers import MAX_WAIVER_REASON, MAX_WAIVERS

ALLOWED = "Kubernetes allowed this reviewer to decide; the role is shown only to people who can get roles and bindings"


class DismissalSerializer(serializers.ModelSerializer[Dismissal]):
    class Meta:
        model = Dismissal
        fields = ["username", "reason", "channel", "given_at"]


class DismissInput(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=4000, help_text="why the request may go on without the changes")


class ReviewSerializer(serializers.ModelSerializer[Review]):
    access_reason = serializers.SerializerMethodField(
        help_text="why Kubernetes allowed it, with the roles if you can get roles and bindings"
    )

    is_replaced = serializers.BooleanField(
        read_only=True, help_text="whether a later review by the same reviewer replaces it"
    )

    subject_digest = serializers.SerializerMethodField(help_text="empty for what earlier versions settled")
    dismissals = DismissalSerializer(many=True, help_text="who dismissed the changes that it requests, and why")

    class Meta:
        model = Review
        fields = [
            "id",
            "round",
            "is_replaced",
            "decision",
            "subject_digest",
            "reason",
            "channel",
            "username",
            "groups",
            "acknowledges",
            "waives",
            "access_reason",
            "dismissals",
            "given_at",
        ]

    def get_subject_digest(self, review: Review) -> str:
        return review.subject_digest if review.request.public_subject_digest else ""

    def get_access_reason(self, review: Review) -> str:
        """The words of the authorizer name roles and bindings: values of those (S27)."""
        may_see = self.context.get("may_see_roles")
        return review.access_reason if may_see and may_see(review.request) else ALLOWED


class AcknowledgementSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="as `acknowledges` of an approval names it")
    words = serializers.CharField(help_text="what is deleted along with it; empty if nothing else is")


class WaiverInput(serializers.Serializer[Any]):
    fingerprint = serializers.CharField(max_length=80, help_text="of a finding of the current round's report")
    reason = serializers.CharField(max_length=MAX_WAIVER_REASON, help_text="why the finding is accepted")


class ReviewInput(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(
        choices=services.reviews.DECISIONS,
        help_text="RequestChanges needs a reason; it holds back every approval, in later rounds too, until its author "
        "reviews again or it is dismissed",
    )
    subject_digest = serializers.CharField(max_length=80, help_text="the digest of what you reviewed")
    reason = serializers.CharField(max_length=4000, allow_blank=True, default="")
    acknowledges = serializers.ListField(
        child=serializers.CharField(max_length=700),
        max_length=5000,
        default=list,
        help_text="for an approval: every `name` of the request's `to_acknowledge`; its `words` say what goes with it",
    )
    waives = serializers.ListField(
        child=WaiverInput(),
        max_length=MAX_WAIVERS,
        default=list,
        help_text="findings that are accepted with the approval; needs `override` on the BundleDeployment",
    )
