"""`deputy`: a Deputy and the binding that it owns, both or neither, written as the caller."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from provisioner.cli.kubectl.cluster import list_kind
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import InvalidObject
from provisioner.values import ObjectRef
from tests.provisioner.cli.kubectl.conftest import Run
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig
from tests.support.kubernetes.live import wait_until

RBAC = "rbac.authorization.k8s.io"
SOON = (datetime.now(UTC) + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def api(run: Run, own_sandbox: Endpoint, tmp_path: Path) -> ClusterClient:
    """With a role to give, and mia, who may make deputies and holds nothing of it."""
    found = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path).read_text(), trusted=True)
    give = [
        {"apiGroups": ["core.rukpak.io"], "resources": ["deputies"], "verbs": ["get", "create", "delete"]},
        {"apiGroups": [RBAC], "resources": ["clusterrolebindings"], "verbs": ["create"]},
    ]
    decide = [{"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments"], "verbs": ["approve"]}]
    for name, rules in (("makers", give), ("deciders", decide)):
        role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
        found.apply(role, field_manager="test")
    bind(found, "makers", "mia")
    return found


def bind(api: ClusterClient, role: str, user: str) -> None:
    about = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"{role}-{user}"}}
    subject = {"apiGroup": RBAC, "kind": "User", "name": user}
    ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    api.apply({**about, "roleRef": ref, "subjects": [subject]}, field_manager="test")


def deputies(api: ClusterClient) -> list[dict[str, Any]]:
    return list_kind(api, "Deputy")


def bindings(api: ClusterClient) -> list[dict[str, Any]]:
    resource = api.resource_of(RBAC, "v1", "ClusterRoleBinding")
    assert resource is not None
    return list(api.list(resource, label_selector="core.rukpak.io/deputy"))


def test_who_holds_a_role_makes_a_deputy_and_ends_it(
    run: Run, api: ClusterClient, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("deputy", "Dora D", "--until", SOON, "--role", "deciders", "--yes", "--as", "mia")
    assert run(*words) == 2
    told = capsys.readouterr().err
    assert "the binding would be refused" in told
    assert (deputies(api), bindings(api)) == ([], []), "Kubernetes gives no more than mia holds"

    bind(api, "deciders", "mia")
    assert run(*words, "--reason", "holiday") == 0
    assert f"Dora D is deputy of mia until {SOON}" in capsys.readouterr().out
    (deputy,), (binding,) = deputies(api), bindings(api)
    about = {"user": "Dora D", "deputyFor": "mia", "clusterRole": "deciders", "until": SOON, "reason": "holiday"}
    name, uid = deputy["metadata"]["name"], deputy["metadata"]["uid"]
    assert (deputy["spec"], name.rpartition("-")[0]) == (about, "dora-d")
    assert binding["metadata"]["name"] == f"pratique:deputy:{uid}"
    assert [(owner["kind"], owner["uid"]) for owner in binding["metadata"]["ownerReferences"]] == [("Deputy", uid)]
    assert binding["metadata"]["annotations"] == {"core.rukpak.io/ends-at": SOON, "core.rukpak.io/deputy-of": "mia"}
    assert [subject["name"] for subject in binding["subjects"]] == ["Dora D"]

    assert run("deputy", "-o", "json") == 0
    assert [one["spec"] for one in json.loads(capsys.readouterr().out)["items"]] == [about]
    assert run("deputy", "--end", name, "--yes", "--as", "mia") == 0
    assert "Dora D is no longer deputy of mia" in capsys.readouterr().out
    wait_until(lambda: not bindings(api), "Kubernetes deletes what the Deputy owned")
    assert run("deputy") == 0
    assert capsys.readouterr().out == "There are no deputies.\n"


def test_S52_a_deputy_cannot_be_prolonged(run: Run, api: ClusterClient) -> None:
    assert run("deputy", "dora", "--until", SOON, "--role", "deciders", "--yes") == 0
    (made,) = deputies(api)
    ref = ObjectRef.of(made)
    later = {**made, "spec": {**made["spec"], "until": "2099-01-01T00:00:00Z"}}
    with pytest.raises(InvalidObject) as refused:
        api.replace(later)
    assert "a Deputy cannot be changed" in refused.value.in_full
    assert (api.get(ref) or {})["spec"] == made["spec"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["dora", "--until", "soon"], "--until is 'soon'; expected a time"),
        (["dora"], "--until is ''; expected a time"),
        (["dora", "--until", "2020-01-01"], "expected a time of the next 92 days"),
        (["dora", "--until", "2999-01-01"], "expected a time of the next 92 days"),
        (["dora", "--until", "9999-12-31"], "--until is '9999-12-31'; expected a time"),
        (["system:admin", "--until", SOON], "is not the name of a person"),
        (["do\x1bra", "--until", SOON], "is not the name of a person"),
        (["d" * 254, "--until", SOON], "is not the name of a person"),
        (["mia", "--until", SOON, "--for", "mia"], "mia cannot be their own deputy"),
        (["dora", "--until", SOON, "--for", "system:x"], "is not the name of a person"),
        (["dora", "--until", SOON, "--reason", "r" * 1001], "at most 1000 are allowed"),
        (["--until", SOON], "USER is missing"),
        (["--end", "nobody"], "there is no Deputy nobody"),
        (["dora", "--end", "nobody"], "--end goes with the name of a Deputy alone"),
    ],
)
def test_S52_what_is_typed_wrongly_writes_nothing(
    run: Run, api: ClusterClient, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert run("deputy", *words, "--yes") == 2
    assert told in capsys.readouterr().err
    assert (deputies(api), bindings(api)) == ([], [])
