"""A cluster of these tests alone: the admission policies that they apply hold for all who write to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.conftest import Server
from tests.support.folders import ROOT
from tests.support.kubernetes.controlplane import ControlPlane
from tests.support.kubernetes.endpoint import Endpoint

GROUP = "core.rukpak.io"
FORBIDDEN, INVALID, CREATED, OK, NOT_FOUND = 403, 422, 201, 200, 404
Prepare = Callable[..., Server]


@pytest.fixture(scope="package")
def controlplane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """It ends with the tests of this folder, as it takes processor time also while nobody asks it."""
    with ControlPlane(binaries, logs=tmp_path_factory.mktemp("policies")) as control_plane:
        yield control_plane.endpoint


@pytest.fixture(scope="module")
def prepare(controlplane: Endpoint, kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepare]:
    """`prepare(mark, files, rights)` applies files of deploy/ and binds rights, which end with the module."""
    bound: list[tuple[Server, str]] = []

    def begin(mark: str, files: list[str], rights: list[dict[str, Any]]) -> Server:
        kubeconfig = tmp_path_factory.mktemp(mark) / "kubeconfig"
        controlplane.write(kubeconfig)
        server = Server(controlplane, str(kubectl), kubeconfig, mark)
        given = [part for file in files for part in ("-f", str(ROOT / "deploy" / file))]
        server.ctl("apply", "--server-side", "--force-conflicts", *given)
        for file in files:
            if file.startswith("crds/"):
                server.ctl("wait", "--for=condition=Established", f"crd/{Path(file).stem}.{GROUP}")
        server.ctl("apply", "-f", "-", given=yaml.safe_dump_all(rights))
        bound.append((server, yaml.safe_dump_all(rights)))
        return server

    yield begin
    for server, rights in bound:
        server.ctl("delete", "-f", "-", given=rights)


def cluster_rights(name: str, rules: list[dict[str, Any]], *users: str, account: str = "") -> list[dict[str, Any]]:
    """A role of the cluster and its binding to `users`, or to the default account of the namespace `account`."""
    api = "rbac.authorization.k8s.io"
    subjects: list[dict[str, str]] = [{"kind": "User", "apiGroup": api, "name": user} for user in users]
    subjects += [{"kind": "ServiceAccount", "name": "default", "namespace": account}] if account else []
    about = {"apiVersion": f"{api}/v1", "metadata": {"name": name}}
    reference = {"apiGroup": api, "kind": "ClusterRole", "name": name}
    bound = {**about, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects}
    return [{**about, "kind": "ClusterRole", "rules": rules}, bound]


def rule(*resources: str, verbs: tuple[str, ...] = ("*",), **more: Any) -> dict[str, Any]:
    """A rule over resources of our group."""
    return {"apiGroups": [GROUP], "resources": [*resources], "verbs": [*verbs], **more}


def wish(name: str, archive: str = "1", **about: Any) -> dict[str, Any]:
    """A BundleDeployment as it stands in somebody's file."""
    source = {"kind": "http", "http": {"url": f"https://example.com/{archive}.tar.gz"}}
    spec = {"installNamespace": "a", "serviceAccountName": "b", "sources": [source]}
    kind = {"apiVersion": f"{GROUP}/v1alpha2", "kind": "BundleDeployment"}
    return {**kind, "metadata": {"name": name, **about}, "spec": spec}
