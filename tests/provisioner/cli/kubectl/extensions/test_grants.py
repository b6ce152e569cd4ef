"""`kubectl pratique grant` on a real API server: given, seen before, the same again, refused, taken back."""

from __future__ import annotations

import pytest
import yaml

from provisioner.values import AccessRequest, ObjectRef
from tests.provisioner.cli.kubectl.extensions.scene import LOOKS, RBAC, ExtensionScene, rule, somebody, user
from tests.support.kubernetes.live import until_may


def test_a_grant_is_shown_before_given_changes_nothing_the_second_time_and_is_taken_back(
    scene: ExtensionScene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.define("widgets", "Widget")
    scene.define("fleets", "Fleet", scope="Cluster")
    dora = "oidc:dora: [x]"
    given = ("grant", scene.name, "--role", "edit", "--to", f"user:{dora}", "-n", scene.mark)

    assert scene.run(*given, "--dry-run") == 0
    shown = capsys.readouterr()
    assert f'core.rukpak.io/apis-of: "{scene.name}"' in shown.out
    role, binding = yaml.safe_load_all(shown.out)
    assert role["metadata"]["name"] == f"{scene.name}-apis-edit"
    assert role["rules"][0]["resources"] == ["fleets", "widgets"]
    assert binding["subjects"] == [user(dora)]
    preview = [line for line in shown.out.splitlines() if line.startswith("#   + ")]
    assert any("widgets" in line for line in preview)
    assert not any("fleets" in line for line in preview)
    assert f"fleets.{scene.group} is in no namespace" in shown.err
    role_ref = ObjectRef(RBAC, "v1", "ClusterRole", "", f"{scene.name}-apis-edit")
    assert scene.api.get(role_ref) is None

    assert scene.run(*given) == 2
    assert "pass --yes" in capsys.readouterr().err
    assert scene.run(*given, "--yes") == 0
    until_may(scene.api, somebody(dora), AccessRequest("create", scene.group, "widgets", namespace=scene.mark))
    live = scene.api.get(role_ref)
    assert scene.run(*given, "--yes") == 0
    assert "all of this is there already" in capsys.readouterr().err
    assert scene.api.get(role_ref) == live

    assert scene.run(*given, "--remove", "--yes") == 0
    assert "loses" in capsys.readouterr().out
    request = AccessRequest("create", scene.group, "widgets", namespace=scene.mark)
    until_may(scene.api, somebody(dora), request, is_allowed=False)
    assert scene.api.get(role_ref) is None
    assert scene.run(*given, "--remove", "--yes") == 0
    assert "no such grant is there" in capsys.readouterr().err


def test_nobody_grants_what_they_do_not_hold_and_kubernetes_says_so(
    scene: ExtensionScene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.define("widgets", "Widget")
    rights = [
        rule("core.rukpak.io", "bundledeployments", LOOKS),
        rule("apiextensions.k8s.io", "customresourcedefinitions", ["list"]),
        rule("apiregistration.k8s.io", "apiservices", ["list"]),
        rule(RBAC, "clusterroles clusterrolebindings rolebindings roles", ["get", "list", "create", "patch"]),
        rule(scene.group, "widgets", LOOKS),
        rule(scene.group, "widgets/status", ["get"]),
    ]
    scene.allow("grants", rights, "bob")
    scene.until_may("bob", "watch", scene.group, "widgets")
    given = ("grant", scene.name, "--to", "group:devs", "-n", scene.mark, "--yes", "--role")
    assert scene.run(*given, "edit", user="bob") == 2
    said = capsys.readouterr().err
    assert "is attempting to grant RBAC permissions not currently held" in said
    assert '"deletecollection"' in said
    assert scene.api.get(ObjectRef(RBAC, "v1", "ClusterRole", "", f"{scene.name}-apis-edit")) is None
    assert scene.run(*given, "view", user="bob") == 0

    binder = [one for one in rights if RBAC not in one["apiGroups"]]
    binder += [rule(RBAC, "clusterroles", ["get"]), rule(RBAC, "rolebindings", ["get", "create", "patch"])]
    scene.allow("binds", binder, "carol")
    scene.until_may("carol", "create", RBAC, "rolebindings")
    capsys.readouterr()
    other = ("grant", scene.name, "--to", "user:dora", "-n", scene.mark, "--yes", "--role")
    assert scene.run(*other, "edit", user="carol") == 2
    assert "Somebody who may write ClusterRoles" in capsys.readouterr().err
    assert scene.run(*other, "view", user="carol") == 0
    assert "so all of it counts as gained" in " ".join(capsys.readouterr().out.replace("#  ", "").split())


def test_a_role_of_somebody_else_is_left_alone_and_an_aggregated_one_stays_so(
    scene: ExtensionScene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.define("widgets", "Widget")
    name = f"{scene.name}-apis-admin"
    scene.apply({"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": []})
    given = ("grant", scene.name, "-A", "--yes", "--to", "serviceaccount:ci/robot", "--role")
    assert scene.run(*given, "admin") == 2
    assert f"ClusterRole {name} is there already, and no grant made it" in capsys.readouterr().err
    nowhere = ("grant", scene.name, "-n", f"{scene.mark}-nowhere", "--yes", "--to", "user:dora", "--role", "view")
    assert scene.run(*nowhere) == 2
    assert f"there is no namespace {scene.mark}-nowhere" in capsys.readouterr().err

    assert scene.run("grant", scene.name, "--role", "view", "--aggregate", "--yes") == 0
    assert "Everybody with the roles admin, edit or view can now" in capsys.readouterr().out
    assert scene.run(*given, "view") == 0
    labels = (scene.api.get(ObjectRef(RBAC, "v1", "ClusterRole", "", f"{scene.name}-apis-view")) or {})["metadata"][
        "labels"
    ]
    assert labels[f"{RBAC}/aggregate-to-view"] == "true"
    assert scene.run(*given, "view", "--remove") == 0
    assert scene.api.get(ObjectRef(RBAC, "v1", "ClusterRole", "", f"{scene.name}-apis-view")) is not None
    assert scene.run("grant", scene.name, "--remove", "--yes") == 0
    assert scene.api.get(ObjectRef(RBAC, "v1", "ClusterRole", "", f"{scene.name}-apis-view")) is None


@pytest.mark.parametrize("typed", ["dora", "user:", "serviceaccount:robot", "user:system:serviceaccount:ci:robot"])
def test_a_subject_that_cannot_be_meant_is_refused_with_the_form(
    scene: ExtensionScene, typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        scene.run("grant", scene.name, "--role", "view", "--to", typed)
    assert ended.value.code == 2
    assert "serviceaccount:" in capsys.readouterr().err
