"""What is generated from a ClusterServiceVersion: accounts, roles, deployments, webhooks, certificates."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from provisioner.errors import BadBundle, BadConfig, InvalidManifest
from provisioner.render import BUILT_IN
from provisioner.values import GroupKind
from tests.provisioner.render.registry.shipping import CRD, CSV, DEPLOYMENT, RULE, bodies, csv, files, rendered, webhook


def kinds(config: dict[str, Any] | None = None, **bundle: Any) -> list[str]:
    return sorted(name.partition("-")[0] for name in bodies(rendered(files(**bundle), config)))


def deployment(config: dict[str, Any] | None = None, **bundle: Any) -> dict[str, Any]:
    return dict(bodies(rendered(files(**bundle), config))["Deployment home/manager"])


def test_an_operator_of_all_namespaces_gets_cluster_roles_and_may_read_namespaces() -> None:
    found = rendered(files()).manifests
    roles = [one.body["rules"] for one in found if one.ref.kind == "ClusterRole"]
    assert sorted(map(len, roles)) == [1, 2]
    assert [rule["resources"] for rule in max(roles, key=len)] == [["configmaps"], ["namespaces"]]
    assert not [one for one in found if one.ref.kind in {"Role", "RoleBinding"}]


def test_an_operator_of_some_namespaces_gets_a_role_in_each_of_them() -> None:
    found = rendered(files(), {"watchNamespaces": ["one", "two"]}).manifests
    assert [(one.ref.kind, one.ref.namespace) for one in found if "Role" in one.ref.kind] == [
        ("Role", "one"), ("RoleBinding", "one"), ("Role", "two"), ("RoleBinding", "two"),
        ("ClusterRole", ""), ("ClusterRoleBinding", ""),
    ]  # fmt: skip
    binding = next(one.body for one in found if one.ref.kind == "RoleBinding")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "manager", "namespace": "home"}]


def test_an_account_of_the_bundle_is_taken_as_it_is_and_default_is_never_made() -> None:
    own = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "manager", "labels": {"a": "b"}}}
    strategy = CSV["spec"]["install"]["spec"]
    version = csv(install={"spec": {**strategy, "clusterPermissions": [{"rules": [RULE]}]}})
    found = rendered(files(own, version=version)).manifests
    accounts = [one.body["metadata"] for one in found if one.ref.kind == "ServiceAccount"]
    assert accounts == [{"name": "manager", "namespace": "home", "labels": {"a": "b"}}]
    assert any("x.v1.0.0-default-" in one.ref.name for one in found)


def test_an_object_of_the_bundle_lands_in_the_namespace_of_the_installation() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "elsewhere"}, "spec": {}}
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 1}
    found = bodies(rendered(files(service, priority)))
    assert "Service home/s" in found
    assert "PriorityClass p" in found


def test_a_deployment_carries_what_olm_writes_on_it() -> None:
    found = deployment({"watchNamespace": "other"})
    assert found["spec"]["revisionHistoryLimit"] == 1
    assert found["spec"]["template"]["metadata"]["annotations"] == {
        "capabilities": "Basic Install",
        "olm.operatorNamespace": "home",
        "olm.targetNamespaces": "other",
    }


@pytest.mark.parametrize(
    ("permission", "name"),
    [
        ({"rules": []}, "x.v1.0.0-a-2wndueu3ewv4ungwh2cbdii8dd2nopzjybyo7a3rm656"),
        ({}, "x.v1.0.0-a-1mg0y6k63wxinew10sjnvq6ns2xttt0ngmh2h1wdpwhu"),
    ],
    ids=["an empty list", "none"],
)
def test_a_role_without_rules_is_named_as_olm_names_it(permission: dict[str, Any], name: str) -> None:
    strategy = CSV["spec"]["install"]["spec"]
    wanted = {**strategy, "permissions": [], "clusterPermissions": [{"serviceAccountName": "a", **permission}]}
    found = rendered(files(version=csv(install={"spec": wanted})))
    assert [one.ref.name for one in found.manifests if one.ref.kind == "ClusterRole"] == [name]


@pytest.mark.parametrize(
    ("text", "annotation"), [(b"other: 1", "null"), (b"properties: []", "null"), (b"# words", "null"), (b"", None)]
)
def test_metadata_without_properties_leaves_what_olm_leaves(text: bytes, annotation: str | None) -> None:
    found = deployment(properties=text)
    assert found["spec"]["template"]["metadata"]["annotations"].get("olm.properties") == annotation


def test_an_annotation_that_is_nothing_is_empty_as_in_go() -> None:
    version = csv()
    version["metadata"]["annotations"]["support"] = None
    assert deployment(version=version)["spec"]["template"]["metadata"]["annotations"]["support"] == ""


OWN = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "manager-service"},
    "spec": {"ports": [{"port": 443, "targetPort": 1}], "selector": {"app": "other"}},
}


def test_a_service_of_the_bundle_gives_way_to_that_of_its_webhooks_and_its_file_is_listed() -> None:
    found = rendered(files(OWN, version=csv(webhook())))
    (service,) = [one.body for one in found.manifests if one.ref.kind == "Service"]
    assert service["spec"] == {"ports": [{"name": "443", "port": 443, "targetPort": 9443}], "selector": {"app": "x"}}
    assert found.unused.paths == ("manifests/02.yaml",)
    kept = rendered(files(OWN))
    assert [one.body["spec"]["selector"] for one in kept.manifests if one.ref.kind == "Service"] == [{"app": "other"}]


def test_one_beside_other_objects_in_its_file_is_refused_by_name() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beside"}}
    tree = files(version=csv(webhook())) | {"manifests/both.yaml": yaml.safe_dump_all([OWN, other]).encode()}
    with pytest.raises(InvalidManifest, match="Service manager-service: is in manifests/both.yaml already"):
        rendered(tree)


def test_properties_of_the_metadata_join_those_of_the_annotation() -> None:
    properties = yaml.safe_dump({"properties": [{"type": "olm.gvk", "value": {"kind": "<T>", "group": "g"}}]}).encode()
    version = csv()
    version["metadata"]["annotations"]["olm.properties"] = '[{"type": "a", "value": 1}]'
    found = deployment(version=version, properties=properties)
    assert found["spec"]["template"]["metadata"]["annotations"]["olm.properties"] == (
        '[{"type":"a","value":1},{"type":"olm.gvk","value":{"group":"g","kind":"\\u003cT\\u003e"}}]'
    )


MODES = {
    "nothing named": ("OwnNamespace SingleNamespace", {}, "SingleNamespace; set it to home to watch only that"),
    "nothing named, and not its own": ("SingleNamespace", {}, "it supports SingleNamespace"),
    "a namespace where all are watched": ("AllNamespaces", {"watchNamespace": "a"}, "watches all namespaces"),
    "its own, which it cannot": ("AllNamespaces SingleNamespace", {"watchNamespace": "home"}, "where it is installed"),
    "another, which it cannot": ("OwnNamespace", {"watchNamespace": "other"}, "another namespace than the one"),
    "two, which it cannot": ("AllNamespaces OwnNamespace", {"watchNamespaces": ["home", "b"]}, "names 2 namespaces"),
    "both": ("MultiNamespace", {"watchNamespace": "a", "watchNamespaces": ["b"]}, "expected one of them"),
    "no name": ("SingleNamespace", {"watchNamespace": "A_"}, "what cannot be a namespace: 'A_'"),
    "a list of one's own": ("SingleNamespace", {"watchNamespace": ["a"]}, "config.watchNamespace: expected text"),
    "too many": ("MultiNamespace", {"watchNamespaces": [f"n{n}" for n in range(101)]}, "the most are 100"),
    "another key": ("AllNamespaces", {"values": {}}, "config has values; an operator bundle takes watchNamespace, "),
    "another issuer": ("AllNamespaces", {"certificates": "mine"}, "config.certificates: expected cert-manager"),
    "another part of a deployment": (
        "AllNamespaces", {"deploymentConfig": {"selector": {}}}, "config.deploymentConfig has selector (did you mean nodeSelector?); it takes env, ",
    ),
    "env without a name": ("AllNamespaces", {"deploymentConfig": {"env": [{"value": "x"}]}}, "env[0] has no name"),
    "annotations that are none": (
        "AllNamespaces", {"deploymentConfig": {"annotations": {"a": 1}}}, "deploymentConfig.annotations: expected texts",
    ),
    "an affinity that is none": ("AllNamespaces", {"deploymentConfig": {"affinity": []}}, "affinity: expected a mapping"),
    **{
        words: ("AllNamespaces", {"deploymentConfig": deployment}, f"config.deploymentConfig.{words}")
        for words, deployment in {
            "env[1] has 'valeu', which is no field there; did you mean value?": {
                "env": [{"name": "A"}, {"name": "B", "valeu": "hunter2"}]
            },
            "env[0].value: expected a text": {"env": [{"name": "A", "value": 5}]},
            "env[0].valueFrom.secretKeyRef has no key": {
                "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]
            },
            "envFrom[0].secretRef.optional: expected a boolean": {"envFrom": [{"secretRef": {"optional": "yes"}}]},
            "volumeMounts[0] has no mountPath": {"volumeMounts": [{"name": "a"}]},
            "volumes[0].emptyDir.sizeLimit: expected a text or a number": {
                "volumes": [{"name": "a", "emptyDir": {"sizeLimit": True}}]
            },
            "resources.limits.cpu: expected a text or a number": {"resources": {"limits": {"cpu": []}}},
            "tolerations[0].tolerationSeconds: expected an integer": {"tolerations": [{"tolerationSeconds": 1.5}]},
            "affinity.nodeAffinity has 'x\\u202e', which is no field there; it takes ": {
                "affinity": {"nodeAffinity": {"x\u202e": 1}}
            },
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize(("modes", "config", "words"), MODES.values(), ids=MODES)
def test_a_config_that_does_not_fit_is_refused(modes: str, config: dict[str, Any], words: str) -> None:
    with pytest.raises(BadConfig) as caught:
        rendered(files(version=csv(modes=modes)), config)
    assert words in caught.value.in_full
    assert "hunter2" not in str(caught.value)


def test_every_misfit_of_a_deployment_config_is_told_at_once() -> None:
    wanted = {"env": [{"name": "A", "value": 5}], "volumeMounts": [{"name": "a"}, {"name": "b", "mountPath": 1}]}
    with pytest.raises(BadConfig) as caught:
        rendered(files(), {"deploymentConfig": wanted})
    assert str(caught.value).count("config.deploymentConfig.") == 3


def test_what_kubernetes_takes_fits_the_schema_of_a_deployment_config() -> None:
    env = [{"name": "A", "value": None}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    terms = [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    limits = {"cpu": 1, "memory": "1Gi", "example.com/gpu": 0.5}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]
    wanted = {"env": env, "affinity": affinity, "resources": {"limits": limits}, "volumes": volumes}
    assert rendered(files(), {"deploymentConfig": wanted}).manifests


@pytest.mark.parametrize(
    ("modes", "config", "watched"),
    [
        ("OwnNamespace AllNamespaces", {}, ""),
        ("OwnNamespace", {"watchNamespace": "home"}, "home"),
        ("SingleNamespace", {"watchNamespace": "other"}, "other"),
        ("SingleNamespace", {"watchNamespaces": ["other"]}, "other"),
        ("MultiNamespace", {"watchNamespaces": ["b", "a", "b"]}, "b,a"),
        ("MultiNamespace OwnNamespace", {"watchNamespaces": ["home", "a"]}, "home,a"),
        ("AllNamespaces", {"watchNamespace": None}, ""),
    ],
)
def test_what_is_watched_follows_the_config_and_the_install_modes(
    modes: str, config: dict[str, Any], watched: str
) -> None:
    found = deployment(config, version=csv(modes=modes))
    assert found["spec"]["template"]["metadata"]["annotations"]["olm.targetNamespaces"] == watched


def test_webhooks_become_configurations_with_a_service_and_a_certificate() -> None:
    mutating = webhook("MutatingAdmissionWebhook", "m.example.com-x", reinvocationPolicy="IfNeeded", targetPort="web")
    found = bodies(
        rendered(files(version=csv(webhook(reinvocationPolicy="Never"), mutating)), {"watchNamespace": "other"})
    )
    validating = found["ValidatingWebhookConfiguration v.example.com"]
    assert validating["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "home/manager-service-cert"}
    (hook,) = validating["webhooks"]
    assert "reinvocationPolicy" not in hook
    assert hook["clientConfig"] == {
        "service": {"name": "manager-service", "namespace": "home", "path": "/look", "port": 443}
    }
    assert hook["namespaceSelector"]["matchExpressions"][0]["values"] == ["other"]
    (hook,) = found["MutatingWebhookConfiguration m.example.com-x"]["webhooks"]
    assert hook["reinvocationPolicy"] == "IfNeeded"
    service = found["Service home/manager-service"]["spec"]
    assert service["selector"] == {"app": "x"}
    assert [one["targetPort"] for one in service["ports"]] == [9443, "web"]
    certificate = found["Certificate home/manager-service-cert"]["spec"]
    assert certificate["dnsNames"][1] == "manager-service.home.svc"
    assert f"Issuer home/{certificate['issuerRef']['name']}" in found


def test_openshifts_service_ca_needs_no_certificate_object() -> None:
    served = {GroupKind("operator.openshift.io", "ServiceCA"): False}
    tree = files(version=csv(webhook()))
    found = bodies(rendered(tree, is_namespaced=lambda kind: served.get(kind, BUILT_IN.get(kind))))
    assert "Certificate home/manager-service-cert" not in found
    service, validating = found["Service home/manager-service"], found["ValidatingWebhookConfiguration v.example.com"]
    assert service["metadata"]["annotations"] == {
        "service.beta.openshift.io/serving-cert-secret-name": "manager-service-cert"
    }
    assert validating["metadata"]["annotations"] == {"service.beta.openshift.io/inject-cabundle": "true"}
    assert found == bodies(rendered(tree, {"certificates": "openshift-service-ca"}))


def test_the_certificate_is_mounted_in_place_of_what_the_bundle_has_there() -> None:
    pod = {
        "containers": [
            {
                "name": "manager",
                "image": "x",
                "volumeMounts": [
                    {"name": "own", "mountPath": "/tmp/k8s-webhook-server/serving-certs"},
                    {"name": "data", "mountPath": "/data"},
                ],
            }
        ],
        "volumes": [{"name": "own", "emptyDir": {}}, {"name": "data", "emptyDir": {}}],
    }
    spec = {**DEPLOYMENT["spec"], "template": {**DEPLOYMENT["spec"]["template"], "spec": pod}}
    strategy = {**CSV["spec"]["install"]["spec"], "deployments": [{"name": "manager", "spec": spec}]}
    found = deployment(version=csv(webhook(), install={"spec": strategy}))["spec"]["template"]["spec"]
    assert [one["name"] for one in found["volumes"]] == ["data", "webhook-cert", "apiservice-cert"]
    assert {one["secret"]["secretName"] for one in found["volumes"][1:]} == {"manager-service-cert"}
    assert [one["name"] for one in found["containers"][0]["volumeMounts"]] == [
        "data",
        "webhook-cert",
        "apiservice-cert",
    ]


def test_a_conversion_webhook_is_written_into_its_crd() -> None:
    conversion = webhook("ConversionWebhook", "c.example.com", conversionCRDs=["tests.example.com"], webhookPath=None)
    version = csv(conversion, modes="AllNamespaces")
    crd = bodies(rendered(files(version=version)))["CustomResourceDefinition tests.example.com"]
    assert crd["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "home/manager-service-cert"}
    assert crd["spec"]["conversion"]["webhook"] == {
        "clientConfig": {"service": {"name": "manager-service", "namespace": "home", "path": "/", "port": 443}},
        "conversionReviewVersions": ["v1"],
    }
    assert {**crd, "metadata": CRD["metadata"], "spec": {**crd["spec"], "conversion": None}} == {
        **CRD, "spec": {**CRD["spec"], "conversion": None},
    }  # fmt: skip


PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}
FAR = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "host"}]}
NEAR = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}


def test_a_deployment_config_replaces_by_name_and_adds_what_is_new() -> None:
    config = {
        "env": [{"name": "A", "value": "1"}],
        "envFrom": [{"secretRef": {"name": "s"}}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "resources": {"limits": {"memory": "1Gi"}},
        "nodeSelector": {"a": "b"},
        "affinity": {"nodeAffinity": PREFERRED},
        "annotations": {"capabilities": "another", "mine": "yes"},
    }
    found = deployment({"deploymentConfig": config})
    pod = found["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {name: container[name] for name in ("env", "envFrom", "volumeMounts", "resources")} == {
        name: config[name] for name in ("env", "envFrom", "volumeMounts", "resources")
    }
    assert {name: pod[name] for name in ("volumes", "tolerations", "nodeSelector", "affinity")} == {
        name: config[name] for name in ("volumes", "tolerations", "nodeSelector", "affinity")
    }
    assert found["metadata"]["annotations"] == config["annotations"]
    annotations = found["spec"]["template"]["metadata"]["annotations"]
    assert (annotations["capabilities"], annotations["mine"]) == ("Basic Install", "yes")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, None),
        ({"nodeAffinity": {}}, {"podAffinity": FAR}),
        ({"podAffinity": NEAR}, {"nodeAffinity": PREFERRED, "podAffinity": NEAR}),
        (None, {"nodeAffinity": PREFERRED, "podAffinity": FAR}),
    ],
)
def test_an_empty_affinity_erases_and_a_part_replaces_its_own(wanted: object, expected: object) -> None:
    own = {"nodeAffinity": PREFERRED, "podAffinity": FAR}
    pod = {"containers": [], "affinity": own}
    spec = {**DEPLOYMENT["spec"], "template": {"spec": pod}}
    strategy = {"deployments": [{"name": "manager", "spec": spec}]}
    found = deployment({"deploymentConfig": {"affinity": wanted}}, version=csv(install={"spec": strategy}))
    assert found["spec"]["template"]["spec"].get("affinity") == expected


def test_manifests_of_other_sources_are_applied_beside_the_bundle() -> None:
    more = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}}"
    tree = {f"operator/{path}": text for path, text in files().items()} | {"additions/deep/a.yaml": more}
    content = rendered(tree, destinations=("operator", "additions"))
    assert "ConfigMap home/extra" in bodies(content)
    assert content.unused.count == 0
    with pytest.raises(BadBundle, match=r"several sources are operator bundles \(additions, operator\)"):
        rendered(tree | {"additions/metadata/annotations.yaml": b"{}"}, destinations=("operator", "additions"))


def test_files_beside_a_bundle_are_said_to_be_unused() -> None:
    tree = files(dependencies=b"dependencies: []") | {"tests/scorecard/config.yaml": b"x", "Dockerfile": b""}
    assert rendered(tree).unused.paths == ("tests/scorecard/config.yaml", "Dockerfile")


def test_what_a_bundle_may_never_say_is_refused_there_too() -> None:
    owned = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "ownerReferences": [{"uid": "u"}]}}
    with pytest.raises(InvalidManifest, match=r"metadata\.ownerReferences"):
        rendered(files(owned))
