"""A deployment with an object that was left out, as its API was absent."""

from __future__ import annotations

from typing import Any

import yaml

from approvals.models import AuditEntry, BundleDeployment, OptionalObject
from approvals.steps.running.correct import correct
from approvals.watch import expected_changes as watch
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import until_served
from tests.support.servers.registry import Registry

ANNOTATED = {"core.rukpak.io/optional": "true"}


class LeftOut:
    """A deployment whose Widget was left out; everything else of it runs."""

    def __init__(self, site: DeployedSite, registry: Registry, *, is_annotated: bool = True, **options: Any) -> None:
        self.site = site
        self.name = f"{site.namespace}-left"
        self.group = f"{site.namespace}.example.com"
        meta: dict[str, Any] = {"name": self.name, "namespace": site.namespace}
        meta |= {"annotations": ANNOTATED} if is_annotated else {}
        widget = {"apiVersion": f"{self.group}/v1", "kind": "Widget", "metadata": meta, "spec": {"size": 1}}
        self.files = bundles.app(self.name, "1") | {"manifests/50.yaml": yaml.safe_dump(widget).encode()}
        wished = site.prepare(self.name, bundles.image(registry, self.name, self.files), **options)
        self.report = site.latest(wished).reports.get()
        assert site.approve(wished).state == "applied", site.latest(wished).problem
        self.deployment = BundleDeployment.objects.get(pk=wished.pk)
        self.request = site.latest(wished)

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.group, "v1", "Widget", self.site.namespace, self.name)

    @property
    def row(self) -> OptionalObject:
        return OptionalObject.objects.get(revision__deployment=self.deployment)

    def live(self) -> Any:
        return self.site.api.get(self.ref)

    def serve(self, **size: Any) -> None:
        """The API appears."""
        schema = bundles.with_spec({"size": {"type": "integer"}, **size})
        definition = bundles.definition(self.group, "Widget", schema=schema)
        self.site.api.apply(definition, field_manager="others")
        until_served(self.site.api, self.group, "v1", "Widget")

    def notice(self) -> None:
        """What the watch and a worker do."""
        watch.Appearances(self.site.cluster).look(0.0)
        correct(self.deployment.pk)

    def audited(self) -> list[str]:
        rows = AuditEntry.objects.filter(deployment_uid=self.deployment.uid, verb__startswith="optional.")
        return list(rows.order_by("number").values_list("verb", flat=True))
