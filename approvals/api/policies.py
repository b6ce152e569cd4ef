"""Policies over REST: read and written as on their pages, and drafts tried on past requests."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request as Http
from rest_framework.response import Response

from approvals import services
from approvals.api import serializers as shapes
from approvals.api.authentication import caller_of
from approvals.api.resources import VIA, ClusterScoped, stated_etags, valid
from approvals.models import Cluster, Policy
from approvals.policy.built_in import BUILT_IN


class PolicyViewSet(ClusterScoped):
    serializer_class = shapes.PolicySerializer
    lookup_field = "name"

    def get_queryset(self) -> QuerySet[Policy]:
        """Those of the service; a list has built-in guards as well, which pages switch on and off."""
        found = Policy.objects.filter(cluster__in=self.clusters()).select_related("cluster")
        built_in = Q(uid__in=[guard.uid for guard in BUILT_IN]) if self.action == "list" else Q(pk=None)
        return found.filter(Q(uid="") | built_in).order_by("name", "pk")

    @extend_schema(request=shapes.NewPolicyInput, responses={201: shapes.PolicySerializer})
    def create(self, request: Http) -> Response:
        """Create a policy; you need `approve` on all that it selects. 409 if there is one of this name."""
        wish = valid(shapes.NewPolicyInput(data=request.data))
        made = services.save_policy(by=caller_of(request), via=VIA, version=0, **self._with_cluster(wish))
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.PolicyInput, responses=shapes.PolicySerializer)
    def update(self, request: Http, **_: Any) -> Response:
        """Save a new version of the policy of the ETag in `If-Match`; you need `approve` on all that it selected and
        selects."""
        found = self._matched()
        wish = valid(shapes.PolicyInput(data=request.data))
        saved = services.save_policy(
            by=caller_of(request), via=VIA, version=found.version, name=found.name, **self._with_cluster(wish)
        )
        return Response(self.get_serializer(saved).data)

    @extend_schema(responses={200: shapes.PolicySerializer})
    def destroy(self, request: Http, **_: Any) -> Response:
        """Disable the policy of the ETag in `If-Match`: it decides nothing any more. What it said of requests stays on
        record, and so does the policy, with `is_active` false."""
        found = self._matched()
        saved = services.disable_policy(by=caller_of(request), policy=found, via=VIA)
        return Response(self.get_serializer(saved).data)

    def _matched(self) -> Policy:
        """The policy at this address, as the caller has read it. Raises NoVersion and NotAsExpected."""
        found: Policy = self.get_object()
        stated_etags(self.request)
        self.check_if_match(found)
        return found

    def _with_cluster(self, wish: dict[str, Any]) -> dict[str, Any]:
        return {**wish, "cluster": self._cluster_named(wish["cluster"])}

    def _cluster_named(self, name: str) -> Cluster:
        cluster = next((candidate for candidate in self.clusters() if candidate.name == name), None)
        if cluster is None:
            self.check_all_answered()
            self._check_named(name)
            raise Http404
        return cluster


class PolicyTestViewSet(ClusterScoped):
    @extend_schema(request=shapes.PolicyTestInput, responses={200: shapes.PolicyTestSerializer})
    def create(self, request: Http) -> Response:
        """Try a draft of a policy on the past requests that you may read; nothing is saved.

        A request is `unknown` if its report was cleared, or if the policy asks about what you may not see of it.
        """
        clusters = self.clusters()
        if not clusters:
            self.check_all_answered()
            raise Http404
        wish = valid(shapes.PolicyTestInput(data=request.data))
        found = services.replay_policy(
            by=caller_of(request), document=services.read_document(wish["policy"]), clusters=clusters, days=wish["days"]
        )
        return Response(shapes.PolicyTestSerializer({"replay": found, "could_not_ask": self.silent_clusters()}).data)
