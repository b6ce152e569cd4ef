"""See the reviews that people make with kubectl. Metadata only: what they say is read by who counts them."""

from __future__ import annotations

from dataclasses import dataclass

from approvals import kubectl_reviews
from approvals.watch.lookout import OwnKindLookout
from provisioner.cluster.client.answers import WatchEvent, WatchType
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.client.discovery import ServedResource


@dataclass
class SeenReviews(OwnKindLookout):
    """The watch of one cluster for reviews."""

    kind = "BundleDeploymentReview"

    @property
    def what(self) -> str:
        return "reviews by kubectl"

    def look_at(self, api: Api, resource: ServedResource) -> None:
        found, version = [], ""
        for objects, at in api.pages(resource, metadata_only=True):
            version = version or at
            found += [obj["metadata"] for obj in objects]
        for about in sorted(found, key=lambda it: (it["creationTimestamp"], it["name"])):
            kubectl_reviews.note_seen(self.cluster, about)
        self.follow_all(api, resource, version, self._heard)

    def _heard(self, event: WatchEvent) -> None:
        if event.type is WatchType.ADDED:
            kubectl_reviews.note_seen(self.cluster, event.object["metadata"])
        elif event.type is WatchType.DELETED:
            kubectl_reviews.note_gone(self.cluster, event.object["metadata"]["uid"])
