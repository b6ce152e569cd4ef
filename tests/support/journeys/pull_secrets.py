"""Secrets in the cluster that open the registry of the tests."""

from __future__ import annotations

import base64
import json

from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.registry import CREDENTIALS

USER, PASSWORD = CREDENTIALS
PAIR = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def secret(site: DeployedSite, name: str, type_: str, **values: str) -> None:
    meta = {"name": name, "namespace": site.namespace}
    site.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": type_, "stringData": values})


def docker_config(site: DeployedSite, host: str, name: str = "pull") -> None:
    text = json.dumps({"auths": {host: {"auth": PAIR}}})
    secret(site, name, "kubernetes.io/dockerconfigjson", **{".dockerconfigjson": text})
