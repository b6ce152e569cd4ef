"""Strimzi of the corpus, and what people make with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from tests.support.folders import CORPUS
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite

NAMESPACE = "myproject"


@contextmanager
def room_for_strimzi(site: DeployedSite) -> Iterator[None]:
    """The namespace that strimzi's bindings name; afterwards nothing of strimzi is left for other tests of the cluster."""
    site.ctl("create", "namespace", NAMESPACE)
    try:
        yield
    finally:
        for kinds in ("crd", "clusterrole,clusterrolebinding"):
            site.ctl("delete", kinds, "--selector=app=strimzi", "--timeout=90s")
        site.ctl("delete", "namespace", NAMESPACE, "--timeout=90s")


def strimzi(version: str) -> dict[str, bytes]:
    return bundles.folder(CORPUS / "plain" / "strimzi-kafka-operator" / version)


def storing_v1(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same bundle, whose CRDs serve what they served and store v1."""

    def turned(text: bytes) -> bytes:
        body = yaml.safe_load(text)
        if body["kind"] != "CustomResourceDefinition":
            return text
        for one in body["spec"]["versions"]:
            one["storage"] = one["name"] == "v1"
        return yaml.safe_dump(body).encode()

    return {name: turned(text) for name, text in files.items()}


def custom_objects(namespace: str) -> list[dict[str, Any]]:
    """What people made in version v1beta2; it is valid in v1 too."""
    listeners = [{"name": "plain", "port": 9092, "type": "internal", "tls": False}]
    specs: dict[str, dict[str, Any]] = {
        "Kafka": {"kafka": {"listeners": listeners}},
        "KafkaTopic": {"partitions": 3, "replicas": 1},
        "KafkaUser": {"authentication": {"type": "tls"}},
    }
    return [
        {
            "apiVersion": "kafka.strimzi.io/v1beta2",
            "kind": kind,
            "metadata": {"name": "orders", "namespace": namespace},
            "spec": spec,
        }
        for kind, spec in specs.items()
    ]
