"""What kustomize builds of a tree, by the program itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from provisioner.errors import BadBundle, BadConfig
from tests.provisioner.render.kustomize.kustomizations import SERVICE, built

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx, envFrom: [{configMapRef: {name: settings}}]}]}
"""
BASE = {
    "base/kustomization.yaml": """
resources: [web.yaml, service.yaml]
configMapGenerator: [{name: settings, literals: [mode=slow]}]
secretGenerator: [{name: login, literals: [password=hunter22hunter22]}]
""",
    "base/web.yaml": DEPLOYMENT,
    "base/service.yaml": SERVICE,
}
OVERLAY = {
    "overlays/prod/kustomization.yaml": """
resources: [../../base]
components: [../../components/replicas]
namePrefix: prod-
images: [{name: nginx, newTag: "1.29"}]
configMapGenerator: [{name: settings, behavior: merge, literals: [mode=fast]}]
patches:
- path: port.yaml
- target: {kind: Deployment}
  patch: '[{"op": "add", "path": "/metadata/labels", "value": {"by": "hand"}}]'
replacements:
- source: {kind: Service, name: web, fieldPath: "spec.ports.0.port"}
  targets: [{select: {kind: Deployment}, fieldPaths: [spec.template.metadata.labels.port], options: {create: true}}]
""",
    "overlays/prod/port.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80, name: http}]}\n",
    "components/replicas/kustomization.yaml": (
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nreplicas: [{name: web, count: 3}]\n"
    ),
}
WHOLE = BASE | OVERLAY


@pytest.mark.usefixtures("kustomize")
def test_an_overlay_is_built_as_kustomize_builds_it_and_each_object_tells_its_file() -> None:
    content = built(WHOLE, {"path": "overlays/prod"})
    files = {f"{manifest.ref.kind} {manifest.ref.name}": manifest.file for manifest in content.manifests}
    assert files == {
        "Deployment prod-web": "base/web.yaml",
        "Service prod-web": "base/service.yaml",
        "ConfigMap prod-settings-t82mkhg8fd": "base/kustomization.yaml",
        "Secret prod-login-btkcth9g7b": "base/kustomization.yaml",
    }
    web = content.manifests[0].body
    assert web["metadata"] == {"name": "prod-web", "namespace": "home", "labels": {"by": "hand"}}
    assert web["spec"]["replicas"] == 3
    assert web["spec"]["template"]["metadata"]["labels"] == {"app": "web", "port": 80}
    container = web["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["envFrom"][0]["configMapRef"]["name"]) == (
        "nginx:1.29",
        "prod-settings-t82mkhg8fd",
    )
    assert {manifest.body["metadata"]["namespace"] for manifest in content.manifests} == {"home"}
    assert content.unused.count == 0
    assert built(dict(reversed(WHOLE.items())), {"path": "overlays/prod/"}).digest == content.digest


@pytest.mark.usefixtures("kustomize")
def test_what_tells_the_file_is_in_no_object_and_copied_to_none() -> None:
    copied = (
        "replacements: [{source: {kind: Service, fieldPath: metadata.annotations}, targets: [{select: {kind: ConfigMap},"
        " fieldPaths: [data.told], options: {create: true}}]}]\n"
    )
    files = {"kustomization.yaml": f"resources: [a.yaml, b.yaml]\n{copied}", "a.yaml": SERVICE}
    files["b.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: told}\ndata: {}\n"
    with pytest.raises(BadBundle, match="kustomize cannot build it"):
        built(files)
    content = built(files | {"a.yaml": SERVICE.replace("name: web", "name: web, annotations: {by: hand}")})
    assert content.manifests[1].body["data"] == {"told": {"by": "hand"}}


@pytest.mark.usefixtures("kustomize")
def test_what_is_not_read_is_reported_and_annotations_that_are_asked_for_stay() -> None:
    told = "buildMetadata: [originAnnotations]\nresources: [a.yaml]\n"
    content = built({"kustomization.yml": told, "a.yaml": SERVICE, "b.yaml": SERVICE, "README": ""})
    assert (content.unused.count, content.unused.paths) == (2, ("b.yaml", "README"))
    assert [manifest.file for manifest in content.manifests] == ["a.yaml"]
    assert content.manifests[0].body["metadata"]["annotations"] == {"config.kubernetes.io/origin": "path: a.yaml\n"}


@pytest.mark.usefixtures("kustomize")
def test_a_base_may_be_another_source_by_its_destination() -> None:
    files = {"vendor/kustomization.yaml": "resources: [a.yaml]", "vendor/a.yaml": SERVICE}
    files |= {"ours/Kustomization": "resources: [../vendor]\nnameSuffix: -ours\n"}
    content = built(files, {"path": "ours"}, ("ours", "vendor"))
    assert [(manifest.ref.name, manifest.file) for manifest in content.manifests] == [("web-ours", "vendor/a.yaml")]


@pytest.mark.usefixtures("kustomize")
def test_the_only_source_with_a_kustomization_is_built_whatever_its_files_are_called() -> None:
    files = {".app/kustomization.yaml": "resources: [a 1.21+]", ".app/a 1.21+/Kustomization": "resources: ['b, c(é)']"}
    content = built(files | {".app/a 1.21+/b, c(é)": SERVICE, "x/a": ""}, None, (".app", "x"))
    assert [manifest.file for manifest in content.manifests] == [".app/a 1.21+/b, c(é)"]


SOMEWHERE = {"a/kustomization.yaml": "", "b/c/kustomization.yaml": ""}
PLACES = {
    "none": ({"a.yaml": SERVICE}, {}, ("",), "found no kustomization.yaml at the root; there is none in any folder"),
    "below": (
        SOMEWHERE,
        {},
        ("",),
        "found no kustomization.yaml at the root; there are some in a, b/c; name one in config.path",
    ),
    "two sources": (
        SOMEWHERE,
        {},
        ("a", "b/c"),
        "several sources have a kustomization: say in config.path which is built",
    ),
    "elsewhere": (
        SOMEWHERE,
        {"path": "b"},
        ("",),
        "config.path names no folder with a kustomization; there are some in a",
    ),
    "climbing": (SOMEWHERE, {"path": "../a"}, ("",), "config.path names no folder with a kustomization"),
    "no text": (SOMEWHERE, {"path": ["a"]}, ("",), "config.path names no folder with a kustomization"),
    "unknown": (SOMEWHERE, {"overlay": "a"}, ("",), "config has overlay; the format kustomize takes path, and every"),
}


@pytest.mark.parametrize(("files", "config", "destinations", "words"), PLACES.values(), ids=PLACES)
def test_where_no_kustomization_is_meant_the_error_says_where_there_are_some(
    files: dict[str, str], config: dict[str, Any], destinations: tuple[str, ...], words: str
) -> None:
    with pytest.raises((BadBundle, BadConfig)) as caught:
        built(files, config, destinations)
    assert words in str(caught.value)


def test_without_the_program_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadBundle) as caught:
        built(WHOLE, {"path": "base"})
    assert "need the program pratique-kustomize on the PATH" in str(caught.value)
    assert "build it with Go from deploy/kustomize" in str(caught.value)
