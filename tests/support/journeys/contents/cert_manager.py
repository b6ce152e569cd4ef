"""What cert-manager serves, for bundles that build upon it. Tests share a cluster: all of them bring the same CRDs."""

from __future__ import annotations

import yaml

from provisioner.values import ObjectRef
from tests.support.folders import CORPUS
from tests.support.journeys.deployed_site import SEEDER, DeployedSite
from tests.support.kubernetes.live import until_current


def serve_cert_manager(site: DeployedSite) -> None:
    """The published CRDs of its certificates and issuers; none of its programs runs."""
    for kind in ("certificates", "clusterissuers", "issuers"):
        definition = yaml.safe_load((CORPUS / f"plain/cert-manager-crds/v1.8.0/crd-{kind}.yaml").read_text())
        del definition["metadata"]["labels"]  # they are a chart's, not rendered
        site.api.apply(definition, field_manager=SEEDER)
        until_current(site.api, ObjectRef.of(definition))
