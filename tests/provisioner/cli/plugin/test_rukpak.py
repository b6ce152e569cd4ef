"""RukPak's objects become ours: each shape, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cli.plugin.rukpak import Where, converted
from provisioner.cli.usage import Usage
from tests.provisioner.cli.plugin.old_objects import IMAGE, of_proposal, of_v1alpha1

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
