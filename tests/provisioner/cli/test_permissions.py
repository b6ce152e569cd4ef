"""`pratique rbac` and `pratique preflight`, as people and scripts call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import provisioner.review
from provisioner.cli import main
from provisioner.values import ObjectRef
from tests.support.provisioner.cases import FOLDER as CASES
from tests.support.provisioner.contents import an_object
from tests.support.provisioner.roles import account, bound, cluster_role, role, rule

SCHEMAS = Path(provisioner.review.__file__).parent
ROBOT = an_object("v1", "ServiceAccount", "robot", "shop")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(words)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def case(name: str) -> tuple[str, ...]:
    folder = CASES / name
    old = ("--old", str(folder / "old")) if (folder / "old").is_dir() else ()
    return (str(folder / "new"), *old)


def bundle(folder: Path, *objects: dict[str, Any]) -> str:
    folder.mkdir(parents=True)
    (folder / "all.yaml").write_text(yaml.safe_dump_all(objects))
    return str(folder)


def record(capsys: pytest.CaptureFixture[str], schema: str, *words: str) -> Any:
    _, out, _ = run(capsys, *words, "-o", "json")
    found = json.loads(out)
    jsonschema.Draft202012Validator(json.loads((SCHEMAS / schema).read_text())).validate(found)
    return found


def rbac(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return record(capsys, "permissions.schema.json", "rbac", *words)


def only(found: Any) -> Any:
    (one,) = found["accounts"]
    return one


# rbac


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(folder.name, marks=() if at % 10 == 0 else pytest.mark.thorough)
        for at, folder in enumerate(sorted(CASES.iterdir()))
    ],
)
def test_the_answers_on_every_case_fit_the_published_schemas(capsys: pytest.CaptureFixture[str], name: str) -> None:
    rbac(capsys, *case(name))
    assert preflight(capsys, case(name)[0], "--service-account", "shop/installer")["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("account-reads-every-secret", 1),
        ("account-knew-every-secret-before", 0),
        ("account-loses-rights", 0),
        ("binding-to-a-role-elsewhere", 2),
        ("binding-to-cluster-admin", 1),
        ("role-widens-everybodys-edit", 1),
        ("roles-split-without-effect", 0),
        ("image-latest", 0),
    ],
)
def test_the_exit_status_says_whether_somebody_gains_a_danger(
    capsys: pytest.CaptureFixture[str], name: str, status: int
) -> None:
    assert run(capsys, "rbac", *case(name))[0] == status


def test_the_first_line_is_the_sentence_on_the_account_that_gains_the_worst(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "rbac", *case("account-reads-every-secret"))
    assert out.splitlines()[0] == "◆ `shop/robot` can now read every Secret (cluster-wide)"


def test_evidence_goes_down_to_binding_role_rule_and_file(capsys: pytest.CaptureFixture[str]) -> None:
    (change,) = only(rbac(capsys, *case("account-reads-every-secret")))["added"]
    (way,) = change["by"]
    assert way["binding"] == "ClusterRoleBinding.rbac.authorization.k8s.io robot"
    assert (way["rule"], way["file"]) == (1, "all.yaml")


def test_rights_that_come_the_same_way_are_said_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    granting = cluster_role("one", rule("get list", "pods services"), rule("get list", "nodes"))
    _, out, _ = run(capsys, "rbac", bundle(tmp_path / "new", ROBOT, granting, bound("one", account("robot", "shop"))))
    assert out.count("+ get, list ") == 2
    assert "  + get, list pods, services\n      by ClusterRoleBinding one-binding, rule 0 of ClusterRole one" in out


def test_split_roles_are_no_change(capsys: pytest.CaptureFixture[str]) -> None:
    found = only(rbac(capsys, *case("roles-split-without-effect")))
    assert not found["isChanged"]
    assert "no effective change (moved from" in found["sentence"]


def test_a_renamed_role_is_no_change(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def named(name: str) -> tuple[dict[str, Any], ...]:
        return ROBOT, cluster_role(name, rule("list", "secrets")), bound(name, account("robot", "shop"))

    old, new = bundle(tmp_path / "old", *named("one")), bundle(tmp_path / "new", *named("two"))
    found = only(rbac(capsys, new, "--old", old))
    assert not found["isChanged"]
    assert [one["rule"] for one in found["risks"]["known"]] == ["RB-11"]
    status, out, _ = run(capsys, "rbac", new, "--old", old)
    assert status == 0
    assert len(out.splitlines()) <= 3


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        pytest.param(
            (role("shop", "r", rule("get")), bound("r", account("robot"), namespace="shop", kind="Role")),
            (cluster_role("r", rule("get")), bound("r", account("robot", "shop"))),
            "in the whole cluster, until now in shop only",
            id="another scope",
        ),
        pytest.param(
            (cluster_role("r", rule("get", names="a b")), bound("r", account("robot", "shop"))),
            (cluster_role("r", rule("get")), bound("r", account("robot", "shop"))),
            "all of them, until now only a, b",
            id="names dropped",
        ),
        pytest.param(
            (cluster_role("r", rule("get")), bound("r", account("robot", "shop"))),
            (cluster_role("r", rule("get", "*")), bound("r", account("robot", "shop"))),
            "a wildcard",
            id="a wildcard",
        ),
    ],
)
def test_what_reaches_wider_is_said(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    before: tuple[dict[str, Any], ...],
    after: tuple[dict[str, Any], ...],
    words: str,
) -> None:
    old, new = bundle(tmp_path / "old", ROBOT, *before), bundle(tmp_path / "new", ROBOT, *after)
    assert any(words in one for one in only(rbac(capsys, new, "--old", old))["wider"])


def test_nothing_reaches_wider_where_nothing_was(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    new = bundle(tmp_path / "new", ROBOT, cluster_role("r", rule("*", "*")), bound("r", account("robot", "shop")))
    assert only(rbac(capsys, new))["wider"] == []


def test_reach_folds_verbs_and_shows_what_comes_goes_and_stays(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def held(verbs: str) -> tuple[dict[str, Any], ...]:
        return ROBOT, role("shop", "r", rule(verbs)), bound("r", account("robot"), namespace="shop", kind="Role")

    old, new = bundle(tmp_path / "old", *held("get delete")), bundle(tmp_path / "new", *held("get create"))
    reach = only(rbac(capsys, new, "--old", old))["reach"]
    assert reach == {"Read": {"shop": "="}, "Write": {"shop": "+"}, "Delete": {"shop": "−"}}


def test_what_aggregation_gives_to_everybody_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    found = rbac(capsys, *case("role-widens-everybodys-edit"))
    assert [one["role"] for one in found["everybody"]] == ["admin", "edit"]
    assert found["everybody"][0]["sentence"].startswith("Everybody with the role admin can now")


def test_the_accounts_of_others_are_told_apart(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    grants = bound("r", account("robot", "shop"), account("other", "far"))
    new = bundle(tmp_path / "new", ROBOT, cluster_role("r", rule("list", "secrets")), grants)
    assert {one["name"]: one["isOwn"] for one in rbac(capsys, new)["accounts"]} == {"robot": True, "other": False}
    assert "far/other (not of this bundle)" in run(capsys, "rbac", new)[1]


def test_whose_pods_use_the_account_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pods = {"serviceAccountName": "robot", "containers": [{"name": "a", "image": "x"}]}
    web = an_object("apps/v1", "Deployment", "web", "shop", spec={"template": {"spec": pods}})
    new = bundle(tmp_path / "new", ROBOT, web, cluster_role("r", rule("get")), bound("r", account("robot", "shop")))
    assert only(rbac(capsys, new))["usedBy"] == ["Deployment.apps shop/web"]


def test_a_bundle_without_roles_touches_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "rbac", *case("image-latest"))[1] == "Nobody's rights are touched.\n"


# preflight


def preflight(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return record(capsys, "preflight.schema.json", "preflight", *words)


def test_without_a_cluster_the_rules_are_all_that_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    new, *_ = case("account-reads-every-secret")
    status, out, _ = run(capsys, "preflight", new, "--service-account", "shop/installer", "-o", "yaml")
    assert status == 2
    granted = [entry for one in yaml.safe_load_all(out) for entry in one.get("rules", ())]
    assert {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]} in granted


@pytest.mark.parametrize("words", ["installer", "shop/", "/installer", "a/b/c"])
def test_an_account_has_a_namespace_and_a_name(capsys: pytest.CaptureFixture[str], words: str) -> None:
    new, *_ = case("image-latest")
    status, out, err = run(capsys, "preflight", new, "--service-account", words)
    assert (status, out) == (2, "")
    assert "NAMESPACE/NAME" in err


@pytest.mark.controlplane
def test_a_real_cluster_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, controlplane: Any
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    controlplane.write(kubeconfig)
    words = (
        str(CASES / "image-latest" / "new"),
        "--service-account",
        "default/nobody",
        "--kubeconfig",
        str(kubeconfig),
    )
    found = preflight(capsys, *words)
    assert found["verdict"] == "breaking"
    assert found["yaml"]
    assert run(capsys, "preflight", *words)[0] == 1


@pytest.mark.controlplane
def test_the_roles_of_a_real_cluster_count(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, controlplane: Any
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    controlplane.write(kubeconfig)
    new = bundle(tmp_path / "new", ROBOT, bound("edit", account("robot", "shop")))
    assert run(capsys, "rbac", new)[0] == 2
    found = only(rbac(capsys, new, "--kubeconfig", str(kubeconfig)))
    assert "RB-03" in {one["rule"] for one in found["risks"]["new"]}
    assert ObjectRef.of(ROBOT).name in found["sentence"]
