"""Change sets: groups of members that are alike, and one decision for some of them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from approvals.api.serializers.requests import DifferencesSerializer
from approvals.deciding.rings import MOST_RINGS, OnFailure
from approvals.services.sets.groups import MAX_AT_ONCE
from approvals.services.sets.rollouts import MAX_REASON, MOST_MEMBERS


class SetSummarySerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="the value of the label core.rukpak.io/set")
    members = serializers.IntegerField(help_text="deployments of the set that have a request")
    open = serializers.IntegerField(help_text="members that nobody has decided on yet")
    decided = serializers.IntegerField()
    worst = serializers.CharField(help_text="the worst new finding of the open ones; empty without a report")


class SetMemberSerializer(serializers.Serializer[Any]):
    request = serializers.UUIDField(source="request.uid")
    deployment = serializers.CharField(source="request.deployment.name")
    number = serializers.IntegerField(source="request.number")
    cluster = serializers.CharField(source="cluster.name")
    state = serializers.CharField(source="request.state")
    worst = serializers.CharField()
    subject_digest = serializers.CharField(source="request.subject_digest")
    has_decided = serializers.BooleanField(help_text="whether you have reviewed this round")


class FindingLineSerializer(serializers.Serializer[Any]):
    severity = serializers.CharField()
    rule = serializers.CharField(help_text="empty for a finding about a Secret that the cluster holds")
    message = serializers.CharField()
    count = serializers.IntegerField()


class SetGroupSerializer(serializers.Serializer[Any]):
    """Members that are alike. The report is that of `shown`, without what is safe or not new."""

    shown = serializers.UUIDField(source="group.shown.request.uid")
    worst = serializers.CharField()
    findings = FindingLineSerializer(many=True)
    other_findings = serializers.IntegerField(source="quiet_count", help_text="findings that are safe or not new")
    differences = DifferencesSerializer(
        allow_null=True, help_text="to the first group, which is the largest; null for the first group"
    )
    only_on_own_page = serializers.CharField(
        source="why_not", help_text="why its requests cannot be approved together; empty if they can"
    )
    members = SetMemberSerializer(source="group.members", many=True)


class AloneMemberSerializer(serializers.Serializer[Any]):
    member = SetMemberSerializer()
    why = serializers.CharField()


class RingMemberSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    deployment = serializers.CharField(source="name")
    state = serializers.CharField(help_text="how far it is, in words")
    since = serializers.DateTimeField(allow_null=True)
    why = serializers.CharField(
        help_text="why nobody waits for it, or why its previous revision was not restored; else empty"
    )


class RingSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(source="ring.name")
    has_begun = serializers.BooleanField(help_text="whether every ring before it is complete")
    waits_for = serializers.ListField(
        source="progress.waits", child=serializers.CharField(), help_text="what the next ring waits for; empty: nothing"
    )
    since = serializers.DateTimeField(source="progress.since", allow_null=True, help_text="since when it does")
    due_at = serializers.DateTimeField(
        source="progress.due_at", allow_null=True, help_text="when that is over by the clock, where nothing else is due"
    )
    can_be_approved = serializers.BooleanField(
        source="progress.is_approvable", help_text="whether someone must approve the next ring, and can do it now"
    )
    version = serializers.CharField(help_text="of which members are healthy: an approval of what follows names it")
    members = RingMemberSerializer(many=True)
    hidden = serializers.IntegerField(help_text="members on clusters that you cannot read")


class SetOrderSerializer(serializers.Serializer[Any]):
    made_by = serializers.CharField()
    made_at = serializers.DateTimeField()
    on_failure = serializers.CharField()
    rings = RingSerializer(many=True)


class OrderedMemberInput(serializers.Serializer[Any]):
    cluster = serializers.CharField(max_length=63)
    deployment = serializers.CharField(max_length=253)


class SetOrderInput(serializers.Serializer[Any]):
    members = serializers.ListField(
        child=OrderedMemberInput(),
        max_length=MOST_MEMBERS,
        default=list,
        help_text="empty: those that carry the label of the set and have an open request",
    )
    rings = serializers.ListField(
        child=serializers.DictField(),
        max_length=MOST_RINGS,
        help_text="each with name, clusters (names or globs), matchLabels of clusters, soakMinutes, requiresApproval",
    )
    on_failure = serializers.ChoiceField(choices=[*OnFailure], default=OnFailure.STOP)


class RingApprovalInput(serializers.Serializer[Any]):
    ring = serializers.CharField(max_length=63, help_text="the ring that is healthy: the next ring may start")
    version = serializers.CharField(
        max_length=64, help_text="the `version` of the ring as you read it; 412 for another"
    )
    reason = serializers.CharField(max_length=MAX_REASON)


class OrderReasonInput(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=MAX_REASON)


class TakeOutInput(OrderedMemberInput):
    reason = serializers.CharField(max_length=MAX_REASON)


class ChangeSetSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    order = SetOrderSerializer(allow_null=True, help_text="null: each member is applied as soon as it is approved")
    groups = SetGroupSerializer(many=True, help_text="the largest first")
    more_groups = serializers.IntegerField(help_text="how many groups are left out")
    alone = AloneMemberSerializer(many=True, help_text="members in review that are compared with no other, and why")
    settled = SetMemberSerializer(many=True, help_text="members that are not in review")


class ReviewedMemberInput(serializers.Serializer[Any]):
    request = serializers.UUIDField()
    subject_digest = serializers.CharField(max_length=80, help_text="the digest of what you reviewed")


class SetReviewInput(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(choices=["Approve", "Deny"])
    shown = serializers.UUIDField(help_text="the request whose report you read; one of the members")
    members = serializers.ListField(child=ReviewedMemberInput(), min_length=1, max_length=MAX_AT_ONCE)
    reason = serializers.CharField(max_length=4000, allow_blank=True, default="", help_text="needed for a denial")
    acknowledges = serializers.ListField(
        child=serializers.CharField(max_length=700),
        max_length=5000,
        default=list,
        help_text="for an approval: every `name` of `to_acknowledge` of the request that is shown",
    )


class MemberResultSerializer(serializers.Serializer[Any]):
    request = serializers.UUIDField(source="request.uid")
    deployment = serializers.CharField(source="request.deployment.name")
    cluster = serializers.CharField()
    recorded = serializers.BooleanField(source="is_recorded")
    code = serializers.CharField(help_text="of the refusal, as of a single review; empty if the review was recorded")
    detail = serializers.CharField(source="refusal")


class SetSummariesSerializer(serializers.Serializer[Any]):
    results = SetSummarySerializer(many=True)


class MemberResultsSerializer(serializers.Serializer[Any]):
    results = MemberResultSerializer(many=True)
