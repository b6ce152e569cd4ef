"""What a request's bundle needs of other packages, and what would come first."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from approvals.services import DependencyOffer
from provisioner.catalogs.dependencies import NeedState


class DependencyNeedSerializer(serializers.Serializer[Any]):
    need = serializers.CharField(help_text="in words, such as package store >=1.2")
    state = serializers.CharField(help_text=f"one of {', '.join(NeedState)}")
    why = serializers.CharField()


class DependencyStepSerializer(serializers.Serializer[Any]):
    """A deployment that would be made."""

    name = serializers.CharField()
    package = serializers.CharField()
    version = serializers.CharField()
    bundle = serializers.CharField()
    channel = serializers.CharField()
    catalog = serializers.CharField()
    needed_by = serializers.CharField(allow_blank=True, help_text="a package of this list; empty: the bundle itself")
    after = serializers.ListField(child=serializers.CharField(), help_text="packages of this list that come before")
    unjudged = serializers.ListField(child=serializers.CharField(), help_text="what else it needs and nobody judges")
    spec = serializers.DictField(help_text="as it would be created")


class DependenciesSerializer(serializers.Serializer[Any]):
    digest = serializers.CharField(allow_blank=True, help_text="names exactly these deployments and bundles")
    unasked = serializers.CharField(allow_blank=True, help_text="why catalogs may be missing")
    more_needs = serializers.IntegerField(help_text="needs that are not looked at")
    needs = DependencyNeedSerializer(many=True)
    deployments = DependencyStepSerializer(many=True)


class DependenciesInput(serializers.Serializer[Any]):
    digest = serializers.CharField(max_length=80, help_text="of the plan that you were shown")


class MadeDependencySerializer(serializers.Serializer[Any]):
    uid = serializers.CharField()
    name = serializers.CharField()


class MadeDependenciesSerializer(serializers.Serializer[Any]):
    deployments = MadeDependencySerializer(many=True, help_text="in the order of the plan")


def dependencies_record(offer: DependencyOffer | None) -> dict[str, Any]:
    """As DependenciesSerializer has it; without an offer nothing is needed."""
    if offer is None:
        return {"digest": "", "unasked": "", "more_needs": 0, "needs": [], "deployments": []}
    names = ("package", "version", "bundle", "channel", "catalog", "needed_by", "after", "unjudged")
    return {
        "digest": offer.digest,
        "unasked": offer.unasked,
        "more_needs": offer.more_needs,
        "needs": offer.plan.needs,
        "deployments": [
            {"name": one.name, "spec": one.spec, **{name: getattr(one.package, name) for name in names}}
            for one in offer.deployments
        ],
    }
