"""The operator's file of GitOps controllers: for what each may ask, and what is wrong with a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from approvals.bundle_spec import parse_catalog_source
from approvals.controllers import WrittenWish, catalog_wish_of, parse_controllers, read_controllers
from approvals.project import configuration

ARGOCD = "system:serviceaccount:argocd:argocd-application-controller"
LISTED: dict[str, Any] = {
    "account": "argocd/argocd-application-controller",
    "cluster": "prod",
    "deployments": {"matchNames": ["shop", "quay"], "matchLabels": {"team": "a"}},
    "installers": ["shop/installer"],
}
WISH = WrittenWish("prod", "shop", {"team": "a", "x": "y"}, "shop/installer")


def may(username: str = ARGOCD, wish: WrittenWish = WISH, **changes: Any) -> bool:
    return read_controllers({"controllers": [{**LISTED, **changes}]}).may_ask(username, wish)


def test_S34_a_controller_may_ask_for_what_is_listed() -> None:
    assert may()
    assert may(deployments={"matchNames": ["*"]})
    assert may(deployments={"matchNames": ["*"], "matchLabels": {"x": "y"}})
    assert may(wish=replace(WISH, reads=frozenset({"Secret shop/pull"})), secrets=["shop/pull"])
    assert may(wish=replace(WISH, reads=frozenset({"ConfigMap shop/pull"})), configMaps=["shop/pull"])
    assert not may(wish=replace(WISH, reads=frozenset({"Secret shop/pull"})), configMaps=["shop/pull"])


@pytest.mark.parametrize(
    ("username", "wish"),
    [
        ("system:serviceaccount:argocd:other", WISH),
        ("argocd/argocd-application-controller", WISH),
        (ARGOCD, WrittenWish("other", "shop", {"team": "a"}, "shop/installer")),
        (ARGOCD, WrittenWish("prod", "other", {"team": "a"}, "shop/installer")),
        (ARGOCD, WrittenWish("prod", "shop", {"team": "b"}, "shop/installer")),
        (ARGOCD, WrittenWish("prod", "shop", {}, "shop/installer")),
        (ARGOCD, WrittenWish("prod", "shop", {"team": "a"}, "shop/admin")),
        (ARGOCD, replace(WISH, reads=frozenset({"Secret payments/db"}))),
    ],
    ids=["account", "no account", "cluster", "name", "label", "no label", "installer", "a Secret that is not listed"],
)
def test_S34_and_for_nothing_else(username: str, wish: WrittenWish) -> None:
    assert not may(username, wish)


OF_CATALOGS = {name: LISTED[name] for name in ("account", "cluster")} | {"catalogs": {"matchNames": ["hub"]}}
SOURCE = {"kind": "image", "image": {"ref": "a/b", "auth": {"secret": {"name": "pull", "namespace": "shop"}}}}
CATALOG = catalog_wish_of("prod", "hub", parse_catalog_source({"source": SOURCE})) or WISH


@pytest.mark.parametrize(
    ("changes", "wish", "is_known"),
    [
        ({}, replace(CATALOG, reads=frozenset()), True),
        ({"catalogs": {"matchNames": ["*"]}}, replace(CATALOG, reads=frozenset()), True),
        ({"secrets": ["shop/pull"]}, CATALOG, True),
        ({}, CATALOG, False),
        ({"secrets": ["shop/pull"]}, replace(CATALOG, name="other"), False),
        ({"secrets": ["shop/pull"]}, replace(CATALOG, cluster="other"), False),
        ({"catalogs": {"matchNames": ["*"]}}, WISH, False),
    ],
    ids=["named", "all", "a Secret", "a Secret not listed", "another name", "another cluster", "a deployment"],
)
def test_S34_a_controller_may_write_the_catalogs_that_are_listed(
    changes: dict[str, Any], wish: WrittenWish, is_known: bool
) -> None:
    assert read_controllers({"controllers": [{**OF_CATALOGS, **changes}]}).may_ask(ARGOCD, wish) is is_known


def test_S34_who_may_ask_for_every_deployment_may_write_no_catalog() -> None:
    assert not may(wish=replace(CATALOG, reads=frozenset()), deployments={"matchNames": ["*"]})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"deployments": {"matchNames": ["*"]}}, "unknown field deployments; expected account, cluster, catalogs"),
        ({"installers": ["a/b"]}, "unknown field installers"),
        ({"catalogs": {"matchNames": []}}, "catalogs: expected matchNames"),
        ({"catalogs": {"matchNames": ["*"], "matchLabels": {"a": "b"}}}, "unknown field matchLabels"),
    ],
    ids=["both", "installers", "no names", "labels"],
)
def test_what_is_wrong_with_an_entry_for_catalogs_is_said(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_controllers({"controllers": [{**OF_CATALOGS, **changes}]})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"account": "argocd"}, r"file.controllers\[0\].account: 'argocd' is not a ServiceAccount"),
        ({"account": "a/b/c"}, "is not a ServiceAccount: expected NAMESPACE/NAME"),
        ({"installers": []}, r"installers: expected at least one NAMESPACE/NAME"),
        ({"installers": ["*"]}, r"installers: '\*' is not a ServiceAccount"),
        ({"installers": ["a/b", "a/b"]}, "'a/b' is listed twice"),
        ({"deployments": {}}, "deployments: expected matchNames"),
        ({"deployments": {"matchLabels": {"team": "a"}}}, "deployments: expected matchNames"),
        ({"secrets": ["pull"]}, r"secrets: 'pull' is not a Secret: expected NAMESPACE/NAME"),
        ({"configMaps": ["a/b/c"]}, r"configMaps: 'a/b/c' is not a ConfigMap: expected NAMESPACE/NAME"),
        ({"deployments": None}, "deployments is missing"),
        ({"deployments": {"matchLabels": {"team": 1}}}, "expected a string"),
        ({"who": "x"}, "unknown field who"),
        ({"cluster": ""}, "cluster: expected a string"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        may(**changes)


def test_the_setting_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "gitops.yaml"
    path.write_text("controllers: []\n")
    assert parse_controllers(str(path)).listed == parse_controllers("").listed == ()
    path.write_text("controllers: [{}]\n")
    with pytest.raises(ValueError, match=r"PRATIQUE_GITOPS_FILE: file.controllers\[0\]"):
        configuration.read({"PRATIQUE_GITOPS_FILE": str(path)})
