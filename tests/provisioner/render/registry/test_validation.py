"""Every reason for which OLM v1 does not install a bundle is a reason here, and is said in words."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from provisioner.errors import BadBundle, BundleTooLarge, InvalidManifest
from provisioner.render import YamlLimits
from tests.provisioner.render.registry.shipping import CRD, DEPLOYMENT, csv, files, rendered, webhook

CONVERSION = webhook("ConversionWebhook", "c.example.com", conversionCRDs=["tests.example.com"])
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}


def deployments(*names: str) -> dict[str, Any]:
    return csv(install={"spec": {"deployments": [{**DEPLOYMENT, "name": name} for name in names]}})


REFUSED: dict[str, tuple[Mapping[str, bytes], str]] = {
    "a deployment twice": (files(version=deployments("a", "a")), "the deployment 'a' more than once"),
    "a deployment's name": (files(version=deployments("A_b")), "the deployment name 'A_b' is no DNS subdomain"),
    "a CRD twice": (files(CRD), "the bundle has the CRD 'tests.example.com' more than once"),
    "an owned CRD that is missing": (
        files(version=csv(customresourcedefinitions={"owned": [{"name": "gone.example.com"}]})),
        "owns the CRD 'gone.example.com', which is not in the bundle",
    ),
    "no package": (files() | {"metadata/annotations.yaml": b"annotations: {}"}, "names no package"),
    "conversion beside other modes": (
        files(version=csv(CONVERSION)),
        "'c.example.com' needs AllNamespaces as the only install mode; found AllNamespaces, MultiNamespace, ",
    ),
    "a webhook without deployment": (
        files(version=csv(webhook(deploymentName="gone"))),
        "names the deployment 'gone', which is not there",
    ),
    "a webhook twice": (files(version=csv(webhook(), webhook())), "'v.example.com' is there more than once"),
    "a webhook's name": (files(version=csv(webhook(name="V_"))), "name 'V_' is no DNS subdomain"),
    "a CRD converted twice": (
        files(version=csv(CONVERSION, {**CONVERSION, "generateName": "d.example.com"}, modes="AllNamespaces")),
        "more than one conversion webhook is for the CRD 'tests.example.com'",
    ),
    "conversion of another's CRD": (
        files(version=csv({**CONVERSION, "conversionCRDs": ["o.example.com"]}, modes="AllNamespaces")),
        "is for the CRD 'o.example.com', which the bundle does not own",
    ),
    "a webhook for everything": (
        files(version=csv(webhook(rules=[{"apiGroups": ["*"], "resources": ["*"]}]))),
        "has a rule for the API group '*', which no bundle may have",
    ),
    "a webhook for webhooks": (
        files(
            version=csv(
                webhook(
                    rules=[
                        {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["ValidatingWebhookConfigurations"]}
                    ]
                )
            )
        ),
        "has a rule for 'ValidatingWebhookConfigurations' of admissionregistration.k8s.io",
    ),
    "a Pod": (files(POD), "manifests/02.yaml:1: an operator bundle cannot have a Pod"),
    "an API service": (
        files(version=csv(apiservicedefinitions={"owned": [{"name": "v1.example.com"}]})),
        "apiservicedefinitions are not supported",
    ),
    "conversion of a CRD that keeps unknown fields": (
        files(version=csv(CONVERSION, modes="AllNamespaces"))
        | {"manifests/01.yaml": b'{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", '
           b'"metadata": {"name": "tests.example.com"}, "spec": {"preserveUnknownFields": true}}'},
        "preserveUnknownFields is true, so the API server would not call its webhook",
    ),
    "no annotations": ({"manifests/a.yaml": b"{}"}, "found no metadata/annotations.yaml"),
    "no version": (
        {path: text for path, text in files().items() if path != "manifests/00.yaml"},
        "manifests/ has 0 ClusterServiceVersions; expected one",
    ),
    "two versions": (files(csv()), "manifests/ has 2 ClusterServiceVersions; expected one"),
    "subfolders": (files() | {"manifests/deep/x.yaml": b""}, "manifests/deep/x.yaml: manifests/ of an operator bundle"),
}  # fmt: skip


@pytest.mark.parametrize(("tree", "words"), REFUSED.values(), ids=REFUSED)
def test_a_bundle_is_refused_in_words(tree: Mapping[str, bytes], words: str) -> None:
    with pytest.raises((BadBundle, InvalidManifest)) as caught:
        rendered(tree)
    assert words in str(caught.value)


def test_all_reasons_are_said_at_once() -> None:
    version = csv(webhook(name="V_", deploymentName="gone"))
    with pytest.raises(BadBundle) as caught:
        rendered(files(POD, CRD, version=version))
    assert str(caught.value).count(";") == 3


def changed(path: str, value: object) -> dict[str, Any]:
    """The usual version with another value at a dotted path."""
    made = copy.deepcopy(csv(webhook()))
    *parents, last = path.split(".")
    at: Any = made
    for one in parents:
        at = at[int(one)] if one.isdigit() else at[one]
    at[last] = value
    return made


STRATEGY = "spec.install.spec"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec", []),
        ("spec.install", "x"),
        ("spec.install.strategy", ["x"]),
        (f"{STRATEGY}.deployments", {}),
        (f"{STRATEGY}.deployments", ["x"]),
        (f"{STRATEGY}.deployments.0.name", 1),
        (f"{STRATEGY}.deployments.0.spec", []),
        (f"{STRATEGY}.deployments.0.spec.template.spec.containers", ["x"]),
        (f"{STRATEGY}.deployments.0.spec.template.spec.containers.0.volumeMounts", {"a": 1}),
        (f"{STRATEGY}.deployments.0.spec.template.spec.volumes", "x"),
        (f"{STRATEGY}.deployments.0.spec.template.metadata.annotations", {"a": 1}),
        (f"{STRATEGY}.deployments.0.spec.selector.matchLabels", {"a": []}),
        (f"{STRATEGY}.permissions.0.rules", "x"),
        (f"{STRATEGY}.permissions.0.rules.0.verbs", [1]),
        ("spec.installModes", [{"type": "OwnNamespace", "supported": "yes"}]),
        ("spec.webhookdefinitions.0.containerPort", "443"),
        ("spec.webhookdefinitions.0.rules", [[]]),
        ("spec.webhookdefinitions.0.admissionReviewVersions", [None]),
        ("metadata.annotations", {"olm.properties": 5}),
        ("metadata.annotations", ["x"]),
    ],
)
def test_a_field_of_another_type_is_named(path: str, value: object) -> None:
    with pytest.raises(InvalidManifest, match=r"^manifests/00\.yaml:1\."):
        rendered(files(version=changed(path, value), properties=b"properties: []"))


@pytest.mark.parametrize("text", [b"[]", b"- a", b"x: &x [*x]", b"a: 1\n---\nb: 1\n", b"\xff", b"annotations: [1]"])
def test_broken_annotations_are_refused(text: bytes) -> None:
    with pytest.raises((InvalidManifest, BadBundle)):
        rendered(files() | {"metadata/annotations.yaml": text})


def test_a_bundle_that_grows_without_end_is_too_large() -> None:
    bomb = b"a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n" + b"".join(
        b"%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n" % ((name, name, *([name - 1] * 8))) for name in b"bcdefgh"
    )
    with pytest.raises(BundleTooLarge):
        rendered(files() | {"metadata/annotations.yaml": bomb})


def test_ten_thousand_permissions_are_rendered() -> None:
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [f"n{n}"], "verbs": ["get"]}
        for n in range(10_000)
    ]
    strategy = {"deployments": [DEPLOYMENT], "permissions": [{"serviceAccountName": "manager", "rules": rules}]}
    content = rendered(files(version=csv(install={"spec": strategy})))
    (role,) = (one for one in content.manifests if one.ref.kind == "ClusterRole")
    assert len(role.body["rules"]) == 10_001


def test_few_bytes_that_make_much_are_stopped_before_they_are_made() -> None:
    """1,000 deployments, each with 1,000 variables of the config, would take 400 MB."""
    version = deployments(*(f"d{number}" for number in range(1000)))
    config = {"deploymentConfig": {"env": [{"name": f"E{number}", "value": "x"} for number in range(1000)]}}
    with pytest.raises(BundleTooLarge, match="more than 100000 values, aliases expanded, in this bundle"):
        rendered(files(version=version), config, limits=YamlLimits(max_nodes=100_000))


def test_what_is_there_already_is_found_among_many_without_comparing_each_with_each() -> None:
    tolerations = [{"key": f"k{number}", "operator": "Exists"} for number in range(20_000)]
    # What the helper gives is shared with other tests.
    version = copy.deepcopy(deployments("manager"))
    pod = version["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]
    pod["tolerations"] = tolerations
    wanted = [*tolerations[5:], {"operator": "Exists", "key": "new"}]
    content = rendered(files(version=version), {"deploymentConfig": {"tolerations": wanted}})
    (made,) = (one.body for one in content.manifests if one.ref.kind == "Deployment")
    assert made["spec"]["template"]["spec"]["tolerations"] == [*tolerations, {"key": "new", "operator": "Exists"}]
