"""RukPak's objects become ours: each shape, and what is said of the rest."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl import main
from provisioner.cli.kubectl.rukpak import Where, converted
from provisioner.cluster.client.api import ClusterClient
from tests.provisioner.cli.kubectl.old_objects import IMAGE, of_proposal, of_v1alpha1
from tests.provisioner.cli.kubectl.scene import wish
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig

HERE = Where("shop", "installer")
COMMIT = "b" * 40


def test_a_deployment_of_an_image_says_where_and_as_whom() -> None:
    made = converted(of_v1alpha1(IMAGE), HERE)
    assert made.body == {
        "apiVersion": "core.rukpak.io/v1alpha2",
        "kind": "BundleDeployment",
        "metadata": {"name": "web"},
        "spec": {
            "format": "plain",
            "sources": [{"kind": "image", "image": {"ref": "registry.example.com/web:v1"}}],
            "installNamespace": "shop",
            "serviceAccountName": "installer",
        },
    }
    assert (made.left_out, made.to_complete) == ([], [])


@pytest.mark.parametrize(
    ("source", "expected", "said"),
    [
        pytest.param(
            {"type": "image", "image": {"ref": "r.example/a:1", "pullSecret": "pull", "insecureSkipTLSVerify": True}},
            {"kind": "image", "image": {"ref": "r.example/a:1", "auth": {"secret": {"name": "pull"}}}},
            ["insecureSkipTLSVerify: certificates are always verified", "RukPak read Secret pull in its own namespace"],
            id="an image with a Secret",
        ),
        pytest.param(
            {"type": "git", "git": {"repository": "https://git.example/a", "ref": {"tag": "v1"}}},
            {
                "kind": "git",
                "git": {"repository": "https://git.example/a", "ref": {"tag": "v1"}, "directory": "manifests"},
            },
            [],
            id="git, where RukPak's directory is ./manifests by itself",
        ),
        pytest.param(
            {
                "type": "git",
                "git": {
                    "repository": "https://git.example/a",
                    "directory": "./deploy/",
                    "ref": {"commit": COMMIT},
                    "auth": {"insecureSkipVerify": True},
                    "certificateData": "LS0t",
                },
            },
            {
                "kind": "git",
                "git": {"repository": "https://git.example/a", "ref": {"commit": COMMIT}, "directory": "deploy"},
            },
            [
                "insecureSkipVerify: certificates and host keys are always verified",
                "certificateData: Pratique reads the authority from ca.crt in the Secret of auth.secret",
            ],
            id="git in a folder",
        ),
        pytest.param(
            {"type": "http", "http": {"url": "https://h.example/a.tgz", "auth": {"secret": {"name": "door"}}}},
            {"kind": "http", "http": {"url": "https://h.example/a.tgz", "auth": {"secret": {"name": "door"}}}},
            ["RukPak read Secret door in its own namespace"],
            id="http",
        ),
        pytest.param(
            {"type": "configMaps", "configMaps": [{"configMap": {"name": "files"}, "path": "manifests"}]},
            {"kind": "configMap", "configMap": {"name": "files"}, "destination": "manifests"},
            ["RukPak read ConfigMap files in its own namespace"],
            id="ConfigMaps",
        ),
    ],
)
def test_every_source_of_rukpak_has_one_of_ours(source: dict[str, Any], expected: Any, said: list[str]) -> None:
    made = converted(of_v1alpha1(source), HERE)
    assert made.body["spec"]["sources"] == [expected]
    assert len(made.left_out) == len(said)
    for words in said:
        assert any(words in one for one in made.left_out), (words, made.left_out)


@pytest.mark.parametrize(("kind", "ours"), [("plain", "plain"), ("registry", "registry-v1"), ("helm", "helm")])
def test_the_provisioner_of_the_bundle_is_the_format(kind: str, ours: str) -> None:
    assert converted(of_v1alpha1(IMAGE, kind=kind), HERE).body["spec"]["format"] == ours


def test_a_charts_values_are_an_object_and_no_text() -> None:
    made = converted(of_v1alpha1(IMAGE, kind="helm", config={"values": "replicas: 2\nname: x\n", "more": 1}), HERE)
    assert made.body["spec"]["config"] == {"values": {"replicas": 2, "name": "x"}}
    assert made.left_out == ["spec.config.more: Pratique has no such field"]


def test_a_bundle_alone_installs_nothing() -> None:
    spec = {"provisionerClassName": "core.rukpak.io/plain", "source": IMAGE}
    bundle = {"apiVersion": "core.rukpak.io/v1alpha1", "kind": "Bundle", "metadata": {"name": "b"}, "spec": spec}
    made = converted(bundle, HERE)
    assert made.body["spec"]["paused"] is True
    assert "a Bundle alone installs nothing" in made.left_out[0]


def test_the_example_of_the_proposal_is_taken_apart() -> None:
    """Its shape: a Secret named in `auth` itself, a ref that is a text, destinations beside and inside a source."""
    image = {
        "kind": "image",
        "image": {"ref": "one/two@sha256:1", "auth": {"name": "n", "namespace": "ns"}},
        "destination": "a/b",
    }
    secret = {"secret": {"name": "creds", "namespace": "keys"}}
    git = {
        "repository": "https://git.example/one",
        "ref": "c4d5e6f7",
        "directory": "",
        "auth": secret,
        "destination": "a/c",
    }
    http = {"url": "https://h.example/x.tgz", "auth": secret, "destination": "more"}
    made = converted(
        of_proposal(image, {"kind": "git", "git": git}, {"kind": "http", "http": http}, paused=False), HERE
    )
    assert made.body["spec"]["sources"] == [
        {
            "kind": "image",
            "image": {"ref": "one/two@sha256:1", "auth": {"secret": {"name": "n", "namespace": "ns"}}},
            "destination": "a/b",
        },
        {
            "kind": "git",
            "git": {"repository": "https://git.example/one", "ref": {"commit": "c4d5e6f7"}, "auth": secret},
            "destination": "a/c",
        },
        {"kind": "http", "http": {"url": "https://h.example/x.tgz", "auth": secret}, "destination": "more"},
    ]
    assert made.body["spec"]["paused"] is False
    assert made.left_out == []
    whole = "\n".join(made.to_complete)
    assert len(made.to_complete) == 3
    for words in ("no whole digest", "names no registry", "c4d5e6f7 is no whole commit"):
        assert words in whole


@pytest.mark.parametrize("spelt", ["registry", "registry+v1", "registry-v1"])
def test_formats_are_known_by_all_their_names(spelt: str) -> None:
    source = {"image": {"ref": "r.example/a:1"}}
    assert (
        converted(of_proposal(source, format=spelt, defaultNamespace="x"), HERE).body["spec"]["format"] == "registry-v1"
    )


def test_what_is_ours_already_stays_as_it_is() -> None:
    ours = of_proposal(
        {"kind": "git", "git": {"repository": "https://g.example/a", "ref": {"branch": "main"}}, "destination": "x"},
        installNamespace="shop",
        serviceAccountName="installer",
        format="plain",
        drift="Report",
        config={"recursive": True},
    )
    made = converted(ours, Where())
    assert made.body == ours
    assert (made.left_out, made.to_complete) == ([], [])


def test_labels_stay_and_what_belongs_to_the_old_object_goes() -> None:
    document = of_v1alpha1(
        IMAGE, template={"metadata": {"labels": {"a": "b"}}, "spec": of_v1alpha1(IMAGE)["spec"]["template"]["spec"]}
    )
    document["metadata"] = {
        "name": "web",
        "uid": "u-1",
        "labels": {"team": "shop"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        "finalizers": ["core.rukpak.io/x"],
    }
    document["status"] = {"activeBundle": "web-1"}
    made = converted(document, HERE)
    assert made.body["metadata"] == {"name": "web", "labels": {"team": "shop"}}
    assert "status" not in made.body
    assert [one.partition(":")[0] for one in made.left_out] == ["spec.template.metadata", "metadata.finalizers"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("text", "expected an object"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "ConfigMap of v1: expected"),
        ({"apiVersion": "core.rukpak.io/v1alpha1", "kind": "BundleInstance", "spec": {}}, "kind BundleInstance"),
        ({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "Bundle", "spec": {}}, "kind Bundle of"),
        (of_v1alpha1({"type": "upload", "upload": {}}), "push it to a registry"),
        (of_v1alpha1({"type": "floppy"}), "'floppy'; expected image, git"),
        (
            of_v1alpha1(
                IMAGE, provisionerClassName="x", template={"spec": {"provisionerClassName": "mine", "source": IMAGE}}
            ),
            "'mine' is not one of RukPak's",
        ),
        (
            of_v1alpha1(
                {"type": "git", "git": {"repository": "https://g.example/a", "ref": {"tag": "a", "branch": "b"}}}
            ),
            "exactly one of commit",
        ),
        (of_v1alpha1(IMAGE, kind="helm", config={"values": "a: [1"}), "spec.config.values"),
        (of_proposal({"kind": "image", "git": {}}), "spec.sources[0]: expected exactly one of"),
        (of_proposal({"image": {"ref": "r.example/a:1"}}, format="tar"), "'tar'; expected one of"),
        (of_proposal({"image": {"ref": "r.example/a:1"}}, paused="true | false"), "expected true or false"),
        ({**of_v1alpha1(IMAGE), "metadata": {"name": "x" * 53}}, "has 53 characters"),
    ],
)
def test_what_is_not_known_is_refused_and_the_place_is_named(document: object, words: str) -> None:
    with pytest.raises(Usage) as refused:
        converted(document, HERE)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("where", "option"), [(Where("", "installer"), "--install-namespace"), (Where("shop", ""), "--service-account")]
)
def test_what_rukpak_did_not_ask_for_has_to_be_said(where: Where, option: str) -> None:
    with pytest.raises(Usage, match=option):
        converted(of_v1alpha1(IMAGE), where)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"metadata": {"name": "a", "labels": ["x"]}}, "metadata.labels"),
        ({"metadata": {"name": "a", "annotations": {"a": 1}}}, "metadata.annotations"),
        ({"spec": {"format": ["plain"]}}, "spec.format"),
        ({"spec": {"installNamespace": 7}}, "spec.installNamespace"),
        ({"spec": {"serviceAccount": {"name": 7}}}, "spec.serviceAccount.name"),
        ({"source": {"kind": ["git"]}}, r"spec.sources\[0\].kind"),
        ({"source": {"destination": 1.5}}, r"spec.sources\[0\].destination"),
        ({"git": {"ref": {"tag": 1.1}}}, r"spec.sources\[0\].git.ref.tag"),
        ({"git": {"directory": False}}, r"spec.sources\[0\].git.directory"),
        ({"git": {"auth": {"namespace": "ns", "name": False}}}, r"spec.sources\[0\].git.auth.name"),
        ({"git": {"directory": ["a"]}}, r"spec.sources\[0\].git.directory"),
        ({"git": {"auth": {"secret": {"name": {"a": "b"}}}}}, r"spec.sources\[0\].git.auth.secret.name"),
    ],
)
def test_what_is_no_text_is_refused_and_never_made_one(document: dict[str, Any], field: str) -> None:
    """As a tag, 1.10 without quotes would be 1.1: other content, or none."""
    git = {"repository": "https://git.example/a", "ref": {"tag": "v1"}, **document.get("git", {})}
    obj = of_proposal({"kind": "git", "git": git, **document.get("source", {})})
    obj = {
        **obj,
        "metadata": document.get("metadata", obj["metadata"]),
        "spec": {**obj["spec"], **document.get("spec", {})},
    }
    with pytest.raises(Usage, match=rf"^{field}: expected .*quotes"):
        converted(obj, HERE)


WHERE = ("--install-namespace", "shop", "--service-account", "installer")


def file_of(folder: Path, *documents: Any) -> str:
    path = folder / "old.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


def test_what_comes_out_is_taken_by_the_schema_of_ours(
    own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git = {"type": "git", "git": {"repository": "https://git.example/a", "ref": {"branch": "main"}}}
    path = file_of(tmp_path, of_v1alpha1(IMAGE), {**of_v1alpha1(git), "metadata": {"name": "other"}})
    assert main(["convert", path, *WHERE]) == 0
    wish(own_sandbox, tmp_path / "k")
    api = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path / "k").read_text(), trusted=True)
    made = [*yaml.safe_load_all(capsys.readouterr().out)]
    assert [one["metadata"]["name"] for one in made] == ["web", "other"]
    for one in made:
        assert api.apply(one, field_manager="test", force=True).object["spec"]["installNamespace"] == "shop"


def test_what_has_to_be_completed_has_an_exit_status_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = {"git": {"repository": "https://git.example/a", "ref": "abc1234", "depth": 1}}
    assert main(["convert", file_of(tmp_path, of_proposal(source)), *WHERE, "-o", "json"]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["spec"]["sources"][0]["git"]["ref"] == {"commit": "abc1234"}
    assert shown.err.splitlines() == [
        "foo: not carried over: spec.sources[0].git.depth: Pratique has no such field",
        "foo: to complete: spec.sources[0].git.ref: abc1234 is no whole commit; write all 40 characters (git rev-parse)",
    ]


def test_one_object_that_is_not_known_keeps_everything_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path, of_v1alpha1(IMAGE), {"apiVersion": "v1", "kind": "Pod"})
    assert main(["convert", path, *WHERE]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"{path}, object 2: Pod of v1: expected core.rukpak.io/v1alpha1" in shown.err


def test_lists_and_standard_input_are_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [of_v1alpha1(IMAGE)]})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["convert", "-", *WHERE]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["metadata"]["name"] == "web"


@pytest.mark.parametrize(
    ("text", "words"), [("", "no object in it"), ("a: [", "old.yaml"), ("a: 1\na: 2\n", "old.yaml")]
)
def test_a_file_that_holds_nothing_of_use_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (tmp_path / "old.yaml").write_text(text)
    assert main(["convert", str(tmp_path / "old.yaml"), *WHERE]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{kind: List, items: 5}", "old.yaml: items of the List: expected a list"),
        ("{kind: List, items: [5]}", "object 1: expected an object"),
        ("{apiVersion: [a], kind: {b: c}}", "expected core.rukpak.io/v1alpha1"),
    ],
)
def test_a_file_of_other_shapes_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (tmp_path / "old.yaml").write_text(text)
    assert main(["convert", str(tmp_path / "old.yaml"), *WHERE]) == 2
    shown = capsys.readouterr()
    assert (words in shown.err, shown.out) == (True, "")
