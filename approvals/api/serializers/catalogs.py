"""Catalogs, and the packages that they offer. All words of a package are its publisher's."""

from __future__ import annotations

import base64
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals.catalogs.history import list_content_changes
from approvals.catalogs.schedule import read_interval
from approvals.models import Catalog, CatalogPackage
from provisioner.catalogs.edges import list_heads
from provisioner.catalogs.presentation import PackagePresentation
from provisioner.catalogs.values import Channel, Package

MOST_PROBLEMS = 1_000


class CatalogProblemSerializer(serializers.Serializer[Any]):
    where = serializers.CharField()
    message = serializers.CharField()


class CatalogSerializer(serializers.ModelSerializer[Catalog]):
    cluster = serializers.CharField(source="cluster.name")
    digest = serializers.CharField(
        source="edition.digest", default="", help_text="of what is offered; empty: not read yet"
    )
    read_at = serializers.DateTimeField(source="edition.read_at", default=None, help_text="when that was read")
    package_count = serializers.IntegerField(source="edition.package_count", default=0)
    channel_count = serializers.IntegerField(source="edition.channel_count", default=0)
    bundle_count = serializers.IntegerField(source="edition.bundle_count", default=0)
    problem_count = serializers.IntegerField(
        source="edition.problem_count", default=0, help_text="how many problems its content has"
    )
    priority = serializers.IntegerField(help_text="which of several selected catalogs is taken: the highest one")
    labels = serializers.DictField(child=serializers.CharField(), help_text="by which sources of deployments select it")
    interval_seconds = serializers.SerializerMethodField(help_text="seconds between two checks; 0: it is not checked")

    class Meta:
        model = Catalog
        fields = [
            "cluster",
            "name",
            "uid",
            "generation",
            "spec",
            "priority",
            "labels",
            "digest",
            "read_at",
            "package_count",
            "channel_count",
            "bundle_count",
            "problem_count",
            "interval_seconds",
            "looked_at",
            "look_at",
            "reading_since",
            "problem",
            "problem_code",
            "problem_since",
        ]

    def get_interval_seconds(self, row: Catalog) -> int:
        return read_interval(row)


class CatalogDetailSerializer(CatalogSerializer):
    """With what is wrong in it."""

    problems = serializers.SerializerMethodField()

    class Meta(CatalogSerializer.Meta):
        fields = [*CatalogSerializer.Meta.fields, "problems"]

    @extend_schema_field(CatalogProblemSerializer(many=True))
    def get_problems(self, row: Catalog) -> list[dict[str, str]]:
        found = row.edition.problems if row.edition else []
        return [{"where": where, "message": words} for where, words in found[:MOST_PROBLEMS]]


class PackageSummarySerializer(serializers.ModelSerializer[CatalogPackage]):
    class Meta:
        model = CatalogPackage
        fields = [
            "name",
            "display_name",
            "summary",
            "provider",
            "default_channel",
            "head",
            "head_version",
            "channel_count",
            "bundle_count",
            "is_deprecated",
        ]


class IconSerializer(serializers.Serializer[Any]):
    media_type = serializers.CharField(
        help_text="image/png, image/jpeg, image/gif, image/webp, or image/svg+xml, which never stands within a page"
    )
    base64 = serializers.CharField()


class ChannelEntrySerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="of the bundle")
    replaces = serializers.CharField()
    skips = serializers.ListField(child=serializers.CharField())
    skip_range = serializers.CharField()


class ChannelSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    heads = serializers.ListField(child=serializers.CharField(), help_text="bundles in which the channel ends")
    deprecation = serializers.CharField(allow_null=True)
    entries = ChannelEntrySerializer(many=True)


class ChangedContentSerializer(serializers.Serializer[Any]):
    """A version that had other content before."""

    version = serializers.CharField()
    before = serializers.CharField()
    after = serializers.CharField()
    seen_at = serializers.DateTimeField()


class CatalogBundleSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField()
    release = serializers.CharField()
    image = serializers.CharField()
    url = serializers.CharField(help_text="where a chart is fetched, in place of an image")
    checksum = serializers.CharField(help_text="what the bytes at the URL hash to; empty where nobody says it")
    kubernetes = serializers.CharField(
        help_text="the range of Kubernetes versions that it is for; empty where its publisher says none"
    )
    apis = serializers.ListField(child=serializers.CharField(), help_text="Kind.group/version of what it brings")
    needs = serializers.ListField(
        child=serializers.CharField(), help_text="constraints that it places on other bundles"
    )
    deprecation = serializers.CharField(allow_null=True, help_text="why it is deprecated; null where it is not")
    changed_content = ChangedContentSerializer(allow_null=True)


class BundleLinkSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    url = serializers.CharField(help_text="http or https")


class MaintainerSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    email = serializers.CharField()


class BundleFactsSerializer(serializers.Serializer[Any]):
    """What its publisher says of it; empty where nothing is said."""

    kubernetes = serializers.CharField(help_text="the range of Kubernetes versions that it is for")
    install_modes = serializers.ListField(
        child=serializers.CharField(), help_text="of OLM, such as AllNamespaces: those that it supports"
    )
    capability = serializers.CharField(help_text="how much an operator does, such as Deep Insights")
    maturity = serializers.CharField()
    app_version = serializers.CharField(help_text="the version of what a chart installs")
    keywords = serializers.ListField(
        child=serializers.CharField(), help_text="words by which people may look for it, at most 30"
    )
    links = BundleLinkSerializer(many=True)
    maintainers = MaintainerSerializer(many=True)


class PackageSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    display_name = serializers.CharField()
    summary = serializers.CharField()
    description = serializers.CharField(help_text="Markdown, as its publisher wrote it")
    provider = serializers.CharField()
    default_channel = serializers.CharField()
    deprecation = serializers.CharField(allow_null=True, help_text="why it is deprecated; null where it is not")
    icon = IconSerializer(allow_null=True)
    no_icon = serializers.CharField(help_text="why the icon that it brings is not shown")
    facts = BundleFactsSerializer(help_text="of the bundle in which the default channel ends")
    channels = ChannelSerializer(many=True)
    bundles = CatalogBundleSerializer(many=True, help_text="the highest version first")


def package_record(catalog: Catalog, package: Package, words: PackagePresentation) -> dict[str, Any]:
    """What PackageSerializer shows."""
    changes = {change.bundle: change for change in list_content_changes(catalog, package.name)}
    icon = words.icon
    return {
        "name": package.name,
        "display_name": words.display_name,
        "summary": words.summary,
        "description": words.description,
        "provider": words.provider,
        "default_channel": package.default_channel,
        "deprecation": _deprecation(package, "olm.package", ""),
        "icon": {"media_type": icon.media_type, "base64": base64.b64encode(icon.data).decode()} if icon else None,
        "no_icon": words.no_icon,
        "facts": words.facts,
        "channels": [_channel(package, channel) for channel in package.channels.values()],
        "bundles": [
            {
                "name": bundle.name,
                "version": str(bundle.version),
                "release": bundle.release,
                "image": bundle.image,
                "url": bundle.url,
                "checksum": bundle.checksum,
                "kubernetes": bundle.kubernetes,
                "apis": bundle.apis,
                "needs": bundle.needs,
                "deprecation": package.deprecation_of(bundle.name),
                "changed_content": changes.get(bundle.name),
            }
            for bundle in sorted(package.bundles.values(), key=lambda it: it.rank, reverse=True)
        ],
    }


def _channel(package: Package, channel: Channel) -> dict[str, Any]:
    return {
        "name": channel.name,
        "heads": list_heads(channel),
        "deprecation": _deprecation(package, "olm.channel", channel.name),
        "entries": [
            {
                "name": entry.name,
                "replaces": entry.replaces,
                "skips": entry.skips,
                "skip_range": str(entry.skip_range or ""),
            }
            for entry in channel.entries
        ],
    }


def _deprecation(package: Package, schema: str, name: str) -> str | None:
    return next(
        (
            deprecation.message
            for deprecation in package.deprecations
            if (deprecation.schema, deprecation.name) == (schema, name)
        ),
        None,
    )
