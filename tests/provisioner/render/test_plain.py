"""Which files of a plain bundle are read, in which order, and that real bundles render."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from provisioner.errors import BadBundle, BundleTooLarge, InvalidManifest
from provisioner.render.canonical import canonical
from provisioner.render.formats import MAX_UNUSED_PATHS, Rendering, render_content
from provisioner.render.limits import YamlLimits
from provisioner.render.targets import BUILT_IN
from provisioner.render.yaml import load_all
from provisioner.values import GroupKind, Manifest, Pin, Tree, UnusedFiles
from tests.provisioner.render.kubectl import read_by_kubectl
from tests.support.folders import CORPUS
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.sampling import sampled

PLAIN = CORPUS / "plain"
FOLDERS = sorted({file.parent for file in PLAIN.rglob("*.yaml")})


def config_map(name: str) -> bytes:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n".encode()


def names(files: dict[str, bytes], **config: object) -> list[str]:
    return [manifest.ref.name for manifest in rendered(Tree(files), config=config)]


def rendered(
    tree: Tree, *, config: Mapping[str, object] | None = None, limits: YamlLimits | None = None
) -> tuple[Manifest, ...]:
    asked = replace(rendering(), config=config or {}, limits=limits or YamlLimits())
    return render_content(tree, asked, pins=[]).manifests


TAKEN: dict[str, tuple[dict[str, bytes], list[str]]] = {
    "by file name, then by place": (
        {"manifests/b.yaml": config_map("b1") + b"---\n" + config_map("b0"), "manifests/a.yml": config_map("a")},
        ["a", "b1", "b0"],
    ),
    "numbers as text": ({f"manifests/{n}.yaml": config_map(f"n{n}") for n in ("10", "9", "01")}, ["n01", "n10", "n9"]),
    "JSON": ({"manifests/a.json": json.dumps(load_all(config_map("a"), name="a")[0]).encode()}, ["a"]),
    "any case of the ending": ({"manifests/a.YAML": config_map("a")}, ["a"]),
    "the root": ({"a.yaml": config_map("a"), "Dockerfile": b"FROM scratch", "src/main.go": b"package x"}, ["a"]),
    "the folder before the root": ({"manifests/a.yaml": config_map("a"), "other.yaml": b"- no\n"}, ["a"]),
    "beside what is for people": (
        {f"manifests/{name}": b"{{" for name in ("README.md", "README", "LICENSE", "notes.txt", "NOTICE.html", ".keep")}
        | {"manifests/a.yaml": config_map("a"), "manifests/.git/x.yaml": b"{{"},
        ["a"],
    ),
    "template braces": ({"manifests/a.yaml": config_map("a") + b"data: {x: '{{ .Values.x }}', y: '{{'}\n"}, ["a"]),
    "dotfolders at the root": ({"a.yaml": config_map("a"), ".github/workflows/x.yaml": b"on: push"}, ["a"]),
    "empty documents": ({"a.yaml": b"---\n# c\n---\n" + config_map("a") + b"---\n\n", "b.yaml": b""}, ["a"]),
}
KUSTOMIZATION = b"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n"
REFUSED: dict[str, tuple[dict[str, bytes], str]] = {
    "nothing": ({}, "found no manifests"),
    "an empty folder": ({"manifests/README.md": b""}, "found no manifests"),
    "no YAML at the root": ({"Dockerfile": b""}, "found no manifests"),
    "no objects": ({"manifests/a.yaml": b"# nothing\n"}, "found no objects"),
    "a script": (
        {"manifests/a.yaml": config_map("a"), "manifests/install.sh": b""},
        "manifests/install.sh: not a manifest",
    ),
    "a stranger in a subfolder": (
        {"manifests/a.yaml": config_map("a"), "manifests/b/x.tpl": b""},
        "b/x.tpl: not a manifest",
    ),
    "a subfolder": (
        {"manifests/a.yaml": config_map("a"), "manifests/b/c.yaml": config_map("c")},
        "manifests/b/c.yaml: subfolders",
    ),
    "a subfolder of the root": ({"a.yaml": config_map("a"), "b/c.yaml": config_map("c")}, "b/c.yaml: subfolders"),
    "the same in two files": (
        {"a.yaml": config_map("a"), "b.yaml": config_map("a")},
        "b.yaml:1: ConfigMap a: is in a.yaml already",
    ),
    "no object": ({"manifests/a.yaml": b"a: 1\n---\n- x\n"}, "manifests/a.yaml:1: needs apiVersion"),
    "broken YAML": ({"manifests/a.yaml": b"a: b: c\n"}, "manifests/a.yaml:1: mapping values"),
    "package.json": ({"a.yaml": config_map("a"), "package.json": b"{}"}, "package.json:1: needs apiVersion"),
    "a file name that hides": ({"manifests/\u202ea.exe": b""}, r"manifests/\u202ea.exe: not a manifest"),
    "a kustomization that changes things": (
        {"a.yaml": config_map("a"), "kustomization.yaml": KUSTOMIZATION + b"namePrefix: x-\n"},
        "set spec.format to kustomize",
    ),
    "a kustomization that says no kind": (
        {"a.yaml": config_map("a"), "kustomization.yaml": b"resources: [a.yaml]\nnamePrefix: x-\n"},
        "kustomize is not run in the format plain",
    ),
    "a kustomization that leaves a file out": (
        {"a.yaml": config_map("a"), "b.yaml": config_map("b"), "kustomization.yaml": KUSTOMIZATION},
        "kustomize is not run",
    ),
}


@pytest.mark.parametrize(("files", "expected"), TAKEN.values(), ids=TAKEN)
def test_manifests_are_taken(files: dict[str, bytes], expected: list[str]) -> None:
    assert names(files) == expected


@pytest.mark.parametrize(("files", "words"), REFUSED.values(), ids=REFUSED)
def test_a_bundle_is_refused_in_words(files: dict[str, bytes], words: str) -> None:
    with pytest.raises(InvalidManifest) as caught:
        rendered(Tree(files))
    assert words in str(caught.value)


def test_subfolders_are_read_when_asked_for() -> None:
    files = {"manifests/b.yaml": config_map("b"), "manifests/a/z.yaml": config_map("z"), "manifests/a/y/x.json": b"{}"}
    with pytest.raises(InvalidManifest, match=r"^manifests/a/y/x\.json:1: "):
        names(files, recursive=True)
    del files["manifests/a/y/x.json"]
    assert names(files, recursive=True) == ["z", "b"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"recursive": "yes"}, "config.recursive is str; expected true or false"),
        (
            {"values": {}, "recursve": True},
            "config has recursve (did you mean recursive?), values; the format plain takes recursive, and",
        ),
    ],
)
def test_a_config_that_the_format_does_not_know_is_refused(config: dict[str, object], words: str) -> None:
    with pytest.raises(BadBundle) as caught:
        names({"a.yaml": config_map("a")}, **config)
    assert words in str(caught.value)


def test_files_that_are_not_used_are_counted_and_those_that_could_hold_objects_come_first() -> None:
    files = {"manifests/a.yaml": config_map("a"), "manifests/README.md": b"", "Dockerfile": b"", "b.yaml": b"{"}
    files |= {".github/x.yaml": b"", "charts/x/values.yaml": b""}
    unused = render_content(Tree(files), rendering(), pins=[]).unused
    expected = ("b.yaml", "charts/x/values.yaml", ".github/x.yaml", "Dockerfile", "manifests/README.md")
    assert unused == UnusedFiles(5, 2, expected)


def test_the_names_of_files_that_are_not_used_are_bounded() -> None:
    files = {"a.yaml": config_map("a")} | {f"src/{number}.go": b"" for number in range(5000)}
    unused = render_content(Tree(files), rendering(), pins=[]).unused
    assert (unused.count, unused.readable_count, len(unused.paths)) == (5000, 0, MAX_UNUSED_PATHS)


def test_a_kustomization_that_only_lists_its_files_is_left_out() -> None:
    text = KUSTOMIZATION.replace(b"[a.yaml]", b"[b.yaml, ./a.yaml]")
    assert names({"a.yaml": config_map("a"), "b.yaml": config_map("b"), "kustomization.yaml": text}) == ["a", "b"]


def test_the_order_of_the_tree_does_not_matter() -> None:
    files = {f"manifests/{n}.yaml": config_map(f"c{n}") for n in range(20)}
    backwards = dict(reversed(files.items()))
    assert rendered(Tree(files)) == rendered(Tree(backwards))


def test_a_manifest_says_where_it_stands() -> None:
    assert rendered(Tree({"manifests/a.yaml": config_map("a")}))[0].file == "manifests/a.yaml"


def test_limits_count_over_all_files_of_a_bundle() -> None:
    bomb = b"x: &x [1, 1, 1, 1, 1]\ny: [*x, *x, *x, *x, *x]\n"
    files = {f"manifests/{n}.yaml": config_map(f"c{n}") + bomb for n in range(10)}
    rendered(Tree(files), limits=YamlLimits(max_nodes=1000))
    with pytest.raises(BundleTooLarge, match=r"^manifests/6\.yaml: .*max_nodes"):
        rendered(Tree(files), limits=YamlLimits(max_nodes=300))


def rendering(name: str = "plain", account: str = "installer") -> Rendering:
    return Rendering(name, install_namespace="home", service_account=account, is_namespaced=lambda _: None)


def test_a_content_knows_its_pins_and_its_digest() -> None:
    pin = Pin("git", "https://example.com/x", "a" * 40)
    tree = Tree({"manifests/a.yaml": config_map("a")})
    content = render_content(tree, rendering(), pins=[pin])
    assert (content.pins, content.service_account, content.install_namespace) == ((pin,), "installer", "home")
    assert content.digest != render_content(tree, rendering(account="other"), pins=[pin]).digest
    assert content.digest == render_content(tree, rendering(), pins=[]).digest


def test_an_unknown_format_is_refused_naming_the_known() -> None:
    with pytest.raises(BadBundle, match=r"'tarot' is not known here; known are .*plain"):
        render_content(Tree({}), rendering("tarot"), pins=[])


@pytest.mark.corpus
@pytest.mark.parametrize("folder", sampled(FOLDERS, lambda folder: str(folder.relative_to(PLAIN))))
def test_a_real_bundle_renders(folder: Path) -> None:
    # operator-controller ships two editions side by side, of which one is to be taken.
    files = (file for file in folder.iterdir() if file.is_file() and file.name != "experimental.yaml")
    tree = Tree({file.name: file.read_bytes() for file in files})
    manifests = rendered(tree)
    read = [document for file in sorted(tree.files) for document in load_all(tree.files[file], name=file)]
    expected = Counter(document["kind"] for document in read if document["kind"] != "Kustomization")
    assert Counter(manifest.ref.kind for manifest in manifests) == expected


@pytest.mark.corpus
@pytest.mark.parametrize("folder", sampled(FOLDERS, lambda folder: str(folder.relative_to(PLAIN))))
def test_a_real_bundle_is_read_as_kubectl_reads_it(folder: Path, kubectl: Path) -> None:
    for file in sorted(folder.glob("*.yaml")):
        text = file.read_text()
        ours = canonical(load_all(text, name=file.name))
        for document in ours:
            document.setdefault("metadata", {}).pop("labels", None)
        theirs = read_by_kubectl(kubectl, text) if "kind: Kustomization" not in text else ours
        assert ours == theirs, file


def test_the_scopes_of_built_in_kinds_are_those_of_the_real_server(controlplane: Endpoint, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(controlplane.kubeconfig("admin"))
    command = [str(controlplane.kubectl), "--kubeconfig", str(kubeconfig), "api-resources", "--no-headers"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # Beside this test others register an API for a moment behind which nobody stands: kubectl says so, and lists the rest.
    assert done.returncode == 0 or "example.com" in done.stderr, done.stderr
    served = {}
    for *_, version, scope, kind in (line.split() for line in done.stdout.splitlines()):
        group = version.rpartition("/")[0]
        if group.endswith(".k8s.io") or "." not in group:
            served[GroupKind(group, kind)] = scope == "true"
    assert {kind: BUILT_IN.get(kind) for kind in served} == served


def test_the_real_server_drops_the_namespace_of_a_cluster_scoped_object_too(
    controlplane: Endpoint, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(controlplane.kubeconfig("admin"))
    text = b"{apiVersion: v1, kind: Namespace, metadata: {name: render-home, namespace: elsewhere}}"
    command = [str(controlplane.kubectl), "--kubeconfig", str(kubeconfig), "apply", "--server-side", "--dry-run=server"]
    printed = subprocess.run([*command, "-f", "-", "-o", "json"], input=text, capture_output=True, check=True).stdout
    (manifest,) = rendered(Tree({"a.yaml": text}))
    assert json.loads(printed)["metadata"].get("namespace") == manifest.body["metadata"].get("namespace")
