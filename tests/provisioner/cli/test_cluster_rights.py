"""`pratique rbac` without a bundle, as people and scripts call it: who may do what in a whole cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import provisioner.review
from provisioner.cli import main
from provisioner.cluster.client.api import ClusterClient
from provisioner.values import ObjectRef
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.provisioner.roles import bound, cluster_role, group, rule, teams, user

SCHEMA = json.loads((Path(provisioner.review.__file__).parent / "report.schema.json").read_text())
KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
READS = (cluster_role("reads", rule("get list", "secrets")), bound("reads", group("sellers"), user("ann")))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["rbac", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def report(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    found = json.loads(run(capsys, *words, "-o", "json")[1])
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


def saved(folder: Path, *objects: dict[str, Any]) -> str:
    """As `kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml` prints them."""
    file = folder / "saved.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    empty = ({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": f"{kind}List", "items": []} for kind in KINDS)
    (folder / "empty.yaml").write_text(yaml.safe_dump_all(empty))
    return str(folder)


def kubeconfig(endpoint: Endpoint, folder: Path, name: str = "admin") -> str:
    """Of one user, so that its context is the only one."""
    file = folder / "kubeconfig"
    endpoint.write(file)
    config = yaml.safe_load(file.read_text())
    config["contexts"] = [one for one in config["contexts"] if one["context"]["user"] == name]
    config["current-context"] = config["contexts"][0]["name"]
    file.write_text(yaml.safe_dump(config))
    return str(file)


def test_what_somebody_saved_of_a_cluster_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, _ = run(capsys, "--objects", saved(tmp_path, *READS))
    assert status == 1
    assert "Each of these can read every Secret (cluster-wide):" in out
    assert "2 accounts looked at, by 1 role and 1 binding." in " ".join(out.split())
    found = report(capsys, "--objects", str(tmp_path))
    assert {one["rule"] for one in found["findings"]} >= {"RB-11", "OWN-PRATIQUE-03"}
    assert found["plan"]["actions"] == []
    assert "RB-11" in found["rules"]


def test_one_account_and_a_limit_of_severity(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = saved(tmp_path, *READS)
    found = report(capsys, "--objects", place, "--subject", "User/ann")
    assert {one["ref"]["name"] for one in found["findings"]} == {"ann"}
    assert run(capsys, "--objects", place, "--fail-on", "never")[0] == 0


def test_a_cluster_without_danger_is_fine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    harmless = cluster_role("reads", rule("get", "configmaps"))
    assert run(capsys, "--objects", saved(tmp_path, harmless, bound("reads", user("ann"))))[0] == 0


def test_roles_of_which_nothing_was_saved_are_unknown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "roles.yaml"
    file.write_text(yaml.safe_dump(cluster_role("reads", rule("get", "configmaps"))))
    status, out, _ = run(capsys, "--objects", str(file))
    assert status == 2
    assert "kubectl get rolebindings -A -o yaml" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "--kubeconfig and --objects"),
        (("--objects", "a", "--kubeconfig", "b"), "--kubeconfig and --objects"),
        (("--kubeconfig", "b", "--old", "a"), "--old goes with a BUNDLE"),
        (("a", "--subject", "User/ann"), "--subject goes without BUNDLE"),
        (("a", "--fail-on", "safe"), "--fail-on goes without BUNDLE"),
        (("--kubeconfig", "b", "--subject", "ann"), "User/NAME"),
        (("--kubeconfig", "b", "--subject", "ServiceAccount/ann"), "ServiceAccount/NAMESPACE/NAME"),
        (("--kubeconfig", "nowhere"), "nowhere"),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, tuple) else "",
)
def test_what_cannot_be_meant_is_said(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str) -> None:
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert reason in err


def test_an_account_that_no_binding_names_is_no_answer_of_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, _, err = run(capsys, "--objects", saved(tmp_path, *READS), "--subject", "User/anna")
    assert status == 2
    assert "no binding names the User anna" in err


def test_a_cluster_is_read_and_told(capsys: pytest.CaptureFixture[str], tmp_path: Path, own_sandbox: Endpoint) -> None:
    path = kubeconfig(own_sandbox, tmp_path)
    api = ClusterClient.connect(Path(path).read_text(), trusted=True)
    for one in READS:
        api.apply(one, field_manager="test")
    found = report(capsys, "--kubeconfig", path, "--without-kubernetes")
    told = {(one["ref"]["kind"], one["ref"]["name"]) for one in found["findings"] if one["rule"] == "RB-11"}
    assert told == {("Group", "sellers"), ("User", "ann")}
    assert run(capsys, "--kubeconfig", path)[0] == 1


def test_who_may_not_list_roles_is_told_which(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, own_sandbox: Endpoint
) -> None:
    path = kubeconfig(own_sandbox, tmp_path, "mallory")
    status, out, err = run(capsys, "--kubeconfig", path)
    assert (status, out) == (2, "")
    assert "clusterroles" in err
    assert "forbidden" in err.lower()
    found = report(capsys, "--kubeconfig", path)
    assert (found["worst"], len(found["findings"])) == ("unknown", 1)
    assert "who may do what in the cluster" in found["headline"][0]


def test_a_cluster_that_does_not_answer_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, own_sandbox: Endpoint
) -> None:
    path = Path(kubeconfig(own_sandbox, tmp_path))
    config = yaml.safe_load(path.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path.write_text(yaml.safe_dump(config))
    status, out, err = run(capsys, "--kubeconfig", str(path))
    assert (status, out) == (2, "")
    assert "127.0.0.1:1" in err


@pytest.mark.controlplane
def test_a_real_cluster_is_read_and_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, controlplane: Endpoint
) -> None:
    found = report(capsys, "--kubeconfig", kubeconfig(controlplane, tmp_path))
    told = {(one["rule"], one["ref"]["name"]) for one in found["findings"] if one["ref"]}
    assert ("RB-01", "system:masters") in told


@pytest.mark.thorough
@pytest.mark.controlplane
def test_60_teams_on_a_real_cluster_add_nothing_to_the_review_of_a_bundle_and_are_told_of_the_cluster(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, controlplane: Endpoint
) -> None:
    path = kubeconfig(controlplane, tmp_path)
    api = ClusterClient.connect(Path(path).read_text(), trusted=True)
    rule_of_labels = {"clusterRoleSelectors": [{"matchLabels": {"sixty": "teams"}}]}
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "all.yaml").write_text(yaml.safe_dump(cluster_role("sixty", aggregationRule=rule_of_labels)))
    review = ("review", str(tmp_path / "new"), "--kubeconfig", path, "--all")
    main(review)
    alone = capsys.readouterr().out
    for number in range(60):
        name = "edit" if number < 40 else "cluster-admin"
        binding = bound(name, group(f"sixty-{number}"))
        api.apply({**binding, "metadata": {"name": f"sixty-{number}"}}, field_manager="test")
    try:
        main(review)
        assert capsys.readouterr().out == alone
        found = report(capsys, "--kubeconfig", path, "--without-kubernetes")
        told = {one["ref"]["name"] for one in found["findings"] if one["rule"] in ("RB-01", "RB-03")}
        assert {f"sixty-{number}" for number in range(60)} <= told
    finally:
        for number in range(60):
            api.delete(ObjectRef("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "", f"sixty-{number}"))


@pytest.mark.thorough
def test_2000_bindings_are_told_account_by_account(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = report(capsys, "--objects", saved(tmp_path, *teams(2_000)))
    everything = [one for one in found["findings"] if one["rule"] == "RB-01"]
    assert len(everything) > 300
