"""Ten thousand managed objects on a cluster and their rows in a database of their own, for the bench of the watch.

python -m tests.bench.watching.fleet KUBECONFIG NAMESPACE COUNT
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import django
import yaml

from tests.support.folders import ROOT

DEPLOYMENTS = 10
MANAGER = "pratique"
INSTALLER = ("default", "installer")


def main(kubeconfig: Path, namespace: str, count: int) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
    django.setup()
    from approvals.audit import Actor
    from approvals.services import register_cluster  # the apps are there only now
    from provisioner.cluster.client.api import ClusterClient as Api

    text = kubeconfig.read_text()
    api = Api.connect(text, timeout_seconds=60)
    for path in sorted((ROOT / "deploy/crds").glob("*.yaml")):
        api.apply(yaml.safe_load(path.read_text()), field_manager=MANAGER)
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    api.create(_reader(namespace))
    with ThreadPoolExecutor(16) as pool:
        live = list(
            pool.map(lambda n: api.apply(_config_map(namespace, n), field_manager=MANAGER).object, range(count))
        )
    cluster = register_cluster(name="fleet", kubeconfig=text, context="admin", by=Actor("bench", "shell"))
    share = count // DEPLOYMENTS
    for number in range(DEPLOYMENTS):
        _deployment(api, cluster, f"{namespace}-{number}", live[number * share : (number + 1) * share])


def _reader(name: str) -> dict[str, Any]:
    """What lets the installer see how its objects are."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": INSTALLER[1], "namespace": INSTALLER[0]}],
    }


def _config_map(namespace: str, number: int) -> dict[str, Any]:
    meta = {"name": f"object-{number:05}", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"number": str(number)}}


def _deployment(api: Any, cluster: Any, name: str, live: list[dict[str, Any]]) -> None:
    from django.utils import timezone

    from approvals.models import BundleDeployment, Content, InventoryItem, Request, Revision
    from provisioner.cluster.drift import fingerprint

    source = {"kind": "http", "http": {"url": "https://example.com/x.tar.gz"}}
    spec = {"installNamespace": INSTALLER[0], "serviceAccountName": INSTALLER[1], "sources": [source]}
    group = "core.rukpak.io/v1alpha2"
    seen = api.create({"apiVersion": group, "kind": "BundleDeployment", "metadata": {"name": name}, "spec": spec})
    now = timezone.now()
    about = {"generation": 1, "spec": spec, "options_digest": "x"}
    deployment = BundleDeployment.objects.create(
        cluster=cluster, uid=seen["metadata"]["uid"], name=name, resource_version="1", seen_at=now, **about
    )
    times = {"created_at": now, "changed_at": now, "expires_at": now, "settled_at": now}
    request = Request.objects.create(
        deployment=deployment, cluster_id=deployment.cluster_id, number=1, state="failed", **about, **times
    )
    content = Content.objects.create(
        digest=f"sha256:{name}",
        install_namespace=INSTALLER[0],
        service_account=INSTALLER[1],
        format="plain",
        object_count=len(live),
        byte_count=1,
        created_at=now,
    )
    revision = Revision.objects.create(
        deployment=deployment, number=1, request=request, content=content, state="active", started_at=now
    )
    BundleDeployment.objects.filter(pk=deployment.pk).update(active_revision=revision)
    InventoryItem.objects.bulk_create(
        InventoryItem(
            deployment=deployment,
            revision=revision,
            version="v1",
            kind="ConfigMap",
            namespace=obj["metadata"]["namespace"],
            name=obj["metadata"]["name"],
            uid=obj["metadata"]["uid"],
            nonce="n",
            fingerprint=fingerprint(obj),
        )
        for obj in live
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
