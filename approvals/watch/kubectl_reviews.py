"""See the reviews that people make with kubectl. Metadata only: what they say is read by who counts them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from approvals import kubectl_reviews
from approvals.watch.lookout import Lookout
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.answers import WatchType
from provisioner.cluster.client.api import ClusterClient as Api

VERSION, KIND = "v1alpha2", "BundleDeploymentReview"
# Where the cluster does not serve reviews, or does not let us watch them, it is tried again after this long.
AGAIN_SECONDS = 30.0


@dataclass
class SeenReviews(Lookout):
    """The watch of one cluster for reviews."""

    @property
    def what(self) -> str:
        return "reviews by kubectl"

    def look(self, api: Api) -> None:
        resource = api.resource_of(OWN_GROUP, VERSION, KIND)
        if resource is None:
            api.forget_discovery()
            self.refused()
            return
        found, version = [], ""
        for objects, at in api.pages(resource, metadata_only=True):
            version = version or at
            found += [obj["metadata"] for obj in objects]
        for about in sorted(found, key=lambda it: (it["creationTimestamp"], it["name"])):
            kubectl_reviews.note_seen(self.cluster, about)
        while not self.stop.is_set():
            with closing(self.events(api, resource, version)) as events:
                for event in events:
                    version = event.resource_version or version
                    if event.type is WatchType.ADDED:
                        kubectl_reviews.note_seen(self.cluster, event.object["metadata"])
                    elif event.type is WatchType.DELETED:
                        kubectl_reviews.note_gone(self.cluster, event.object["metadata"]["uid"])

    def doubt(self) -> None:
        """Every look begins with a list."""

    def refused(self) -> None:
        self.stop.wait(AGAIN_SECONDS)
