"""Notification targets over REST: as on their pages, for those who may see all that a target is told."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request as Http
from rest_framework.response import Response

from approvals.api.authentication import caller_of
from approvals.api.resources import PAGED, VIA, ClusterScoped, stated_etags, valid
from approvals.api.serializers.notifications import (
    DeliverySerializer,
    NewTargetInput,
    NewTargetSerializer,
    TargetInput,
    TargetSecretSerializer,
    TargetSerializer,
)
from approvals.models import NotificationDelivery, NotificationTarget
from approvals.services.notifications import targets


class NotificationTargetViewSet(ClusterScoped):
    serializer_class = TargetSerializer
    lookup_field = "name"
    paged_actions = (*PAGED, "deliveries")

    def get_queryset(self) -> QuerySet[NotificationTarget]:
        """Those that the caller may change."""
        rows = NotificationTarget.objects.order_by("name", "pk")
        if getattr(self, "swagger_fake_view", False):
            return rows
        by = caller_of(self.request)
        found = [*targets.visible_targets(by=by), *(targets.stoppable_targets(by=by) if self.action == "stop" else ())]
        return rows.filter(pk__in=[one.pk for one in found])

    @extend_schema(request=NewTargetInput, responses={201: NewTargetSerializer})
    def create(self, request: Http) -> Response:
        """Create a target; you need `approve` on every BundleDeployment of the clusters that it is told of. The answer
        has its signing secret, this once."""
        wish = valid(NewTargetInput(data=request.data))
        made, secret = targets.save_target(by=caller_of(request), via=VIA, version=0, **wish)
        said = {**self.get_serializer(made).data, "secret": secret}
        return Response(said, status=status.HTTP_201_CREATED)

    @extend_schema(request=TargetInput, responses=TargetSerializer)
    def update(self, request: Http, **_: Any) -> Response:
        """Replace the target of the ETag in `If-Match`; you need the right of `create` for all clusters that it was and
        is told of."""
        found, wish = self._matched(), valid(TargetInput(data=request.data))
        about: dict[str, Any] = {"by": caller_of(request), "via": VIA, "name": found.name, "version": found.version}
        return Response(self.get_serializer(targets.save_target(**about, **wish)[0]).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Http, **_: Any) -> Response:
        """Delete the target of the ETag in `If-Match`, with what is known of its deliveries."""
        targets.delete_target(by=caller_of(request), target=self._matched(), via=VIA)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def stop(self, request: Http, **_: Any) -> Response:
        """Stop it for the clusters of which you may see all, even if you may not read it; without another it is off."""
        targets.stop_target(by=caller_of(request), target=self.get_object(), via=VIA)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses={201: TargetSecretSerializer})
    @action(detail=True, methods=["post"])
    def secret(self, request: Http, **_: Any) -> Response:
        """Make a new signing secret. It is shown this once; the one before signs as well for 24 hours."""
        text = targets.make_target_secret(by=caller_of(request), target=self.get_object(), via=VIA)
        return Response({"secret": text}, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses={202: DeliverySerializer})
    @action(detail=True, methods=["post"])
    def test(self, request: Http, **_: Any) -> Response:
        """Have a test event sent, once. Read its delivery to learn what came of it."""
        made = targets.send_test(by=caller_of(request), target=self.get_object(), via=VIA)
        return Response(DeliverySerializer(made).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses={200: DeliverySerializer(many=True)}, filters=False)
    @action(detail=True)
    def deliveries(self, request: Http, **_: Any) -> Response:
        """What was sent to it in the last 30 days, and what waits, the latest first."""
        rows = NotificationDelivery.objects.filter(target=self.get_object()).select_related("event")
        return self.paged(rows.order_by("-pk"), DeliverySerializer)

    @extend_schema(request=None, responses={202: DeliverySerializer})
    @action(detail=True, methods=["post"], url_path=r"deliveries/(?P<delivery>[0-9]{1,18})/send-again")
    def send_again(self, request: Http, delivery: str, **_: Any) -> Response:
        """Have an event sent that was given up, with all attempts anew. 409 if it is not given up."""
        by, found = caller_of(request), self.get_object()
        sent = targets.send_again(by=by, target=found, delivery_id=int(delivery), via=VIA)
        return Response(DeliverySerializer(sent).data, status=status.HTTP_202_ACCEPTED)

    def _matched(self) -> NotificationTarget:
        """The target at this address, as the caller has read it. Raises NoVersion and NotAsExpected."""
        found: NotificationTarget = self.get_object()
        stated_etags(self.request)
        self.check_if_match(found)
        return found
