"""`kubectl pratique apis` on a real API server: which extension gives which API, joined with what the caller may do."""

from __future__ import annotations

import json

import pytest

from provisioner.values import AccessRequest
from tests.provisioner.cli.kubectl.extensions.scene import LOOKS, ExtensionScene, rule, somebody
from tests.support.kubernetes.live import until_may

READS = [
    rule("core.rukpak.io", "bundledeployments", LOOKS),
    rule("apiextensions.k8s.io", "customresourcedefinitions", ["list"]),
    rule("apiregistration.k8s.io", "apiservices", ["list"]),
]


def test_an_api_says_who_serves_it_its_versions_and_what_the_caller_may_do_there(
    scene: ExtensionScene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.define("widgets", "Widget", deprecationWarning="go to v1")
    scene.define("fleets", "Fleet", scope="Cluster")
    neighbour = f"{scene.mark}-quay"
    scene.install(neighbour)
    scene.define("list", "ListThing", owner=neighbour)
    here = [rule(scene.group, "widgets fleets", ["get", "approve"]), rule(scene.group, "widgets", ["patch"], "a", "b")]
    scene.allow("reads", READS, "carol")
    scene.allow("uses", here, "carol", scene.mark)
    scene.allow("counts", [rule(scene.group, "fleets", ["list"])], "carol")
    scene.until_may("carol", "list", scene.group, "fleets")

    assert scene.run("apis", "--of", scene.name, "-n", scene.mark, user="carol") == 0
    lines = capsys.readouterr().out.splitlines()
    found = {line.split("   ")[1].strip(): line.split() for line in lines[:3]}
    assert " ".join(found[f"widgets.{scene.group}"][3:]) == (
        "v1, v1beta1 (deprecated) namespaced get, approve; patch of a, b"
    )
    assert " ".join(found[f"fleets.{scene.group}"][3:]) == "v1 cluster list"
    assert f"widgets.{scene.group} v1beta1: go to v1" in lines

    assert scene.run("apis", f"list.{scene.group}", "-A", "-o", "json") == 0
    (extension,) = json.loads(capsys.readouterr().out)["extensions"]
    (api,) = extension["apis"]
    assert (extension["name"], api["kind"], len(api["youMay"]["verbs"])) == (neighbour, "ListThing", 8)
    assert api["youMay"]["subresources"] == {
        "status": {"verbs": ["get", "update", "patch"], "named": {}, "unknown": []}
    }

    assert scene.run("apis", "widgt", "--of", scene.name) == 1
    assert "did you mean widgets" in capsys.readouterr().err


def test_what_was_never_applied_is_told_apart_from_what_serves_no_api(
    scene: ExtensionScene, capsys: pytest.CaptureFixture[str]
) -> None:
    late = f"{scene.mark}-late"
    scene.install(late, revision=0)
    assert scene.run("apis", "--of", scene.name) == 0
    assert capsys.readouterr().out == f"{scene.name} serves no APIs of its own.\n"
    assert scene.run("apis", "--of", late) == 0
    assert capsys.readouterr().out == f"{late} has not been applied yet, so it serves no APIs.\n"
    assert scene.run("apis") == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"{late} has not been applied yet, so it serves no APIs." in lines
    assert f"{scene.name} serves no APIs of its own." in lines
    assert scene.run("grant", late, "--role", "view", "--to", "user:ada", "-n", scene.mark) == 2
    assert f"{late} has not been applied yet" in capsys.readouterr().err


def test_who_may_not_list_definitions_is_told_which_right_is_missing_and_not_that_there_are_no_apis(
    scene: ExtensionScene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.define("widgets", "Widget")
    scene.allow("sees", [rule("core.rukpak.io", "bundledeployments", ["get"], scene.name)], "mallory")
    named = AccessRequest("get", "core.rukpak.io", "bundledeployments", name=scene.name)
    until_may(scene.api, somebody(scene.person("mallory")), named)
    assert scene.run("apis", "--of", scene.name, user="mallory") == 2
    said = capsys.readouterr()
    assert "`list` on customresourcedefinitions.apiextensions.k8s.io" in said.err
    assert "ClusterRole pratique-reader" in said.err
    assert said.out == f"{scene.name} serves none that could be found out.\n"


def test_who_may_get_one_deployment_and_list_none_sees_its_apis_and_is_told_of_the_others(
    scene: ExtensionScene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.define("widgets", "Widget")
    scene.define("quays", "Quay", owner=f"{scene.mark}-quay")
    one = rule("core.rukpak.io", "bundledeployments", ["get"], scene.name)
    scene.allow("one", [one, *READS[1:]], "rita")
    scene.until_may("rita", "list", "apiregistration.k8s.io", "apiservices")
    assert scene.run("apis", scene.group, "-o", "json", user="rita") == 2
    found = json.loads(capsys.readouterr().out)
    assert [(it["name"], [api["resource"] for api in it["apis"]]) for it in found["extensions"]] == [
        (scene.name, ["widgets"])
    ]
    assert any("you may not get BundleDeployments" in one for one in found["problems"])
