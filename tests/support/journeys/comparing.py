"""`python -m tests.support.program tests.support.journeys.comparing KUBECONFIG IMAGE`: rita asks what installing it takes.

Workers do the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path

import approvals.project.celery  # noqa: F401 - wakes go to its queue
from approvals import services
from approvals.services import ComparisonQuestion
from provisioner.cluster.client.api import ClusterClient as Api
from tests.support.approvals.world import acting
from tests.support.journeys import station as built
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, stored


def ask(kubeconfig: Path, image: str) -> int:
    endpoint = Endpoint.read(kubeconfig, Path("kubectl"))
    api = Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(60))
    built.prepare(api, "comparing")
    cluster = built.register(endpoint.kubeconfig("pratique"))
    rita = acting(built.user("rita", cluster))
    row = catalog("port", of=cluster)
    entry = {"name": "harbour.v1.0.0"}
    stored(row, package(defaultChannel="stable"), {**bundle("1.0.0"), "image": image}, channel("stable", entry))
    question = ComparisonQuestion("harbour", "1.0.0")
    asked = services.resolve_comparison(by=rita, cluster=cluster, catalog=row.name, question=question)
    return services.compare_bundles(by=rita, asked=asked).pk


if __name__ == "__main__":
    sys.stdout.write(f"{ask(Path(sys.argv[1]), sys.argv[2])}\n")
