"""A small operator bundle as files, and what it renders to."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from provisioner.render import BUILT_IN, IsNamespaced, Rendering, YamlLimits, render_content
from provisioner.values import Content, Tree

RULE = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
POD = {"containers": [{"name": "manager", "image": "example.com/x@sha256:" + "0" * 64}]}
DEPLOYMENT: dict[str, Any] = {
    "name": "manager",
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": POD},
    },
}
CSV: dict[str, Any] = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "ClusterServiceVersion",
    "metadata": {"name": "x.v1.0.0", "namespace": "placeholder", "annotations": {"capabilities": "Basic Install"}},
    "spec": {
        "customresourcedefinitions": {"owned": [{"name": "tests.example.com", "kind": "Test", "version": "v1"}]},
        "installModes": [
            {"type": "OwnNamespace", "supported": True},
            {"type": "SingleNamespace", "supported": True},
            {"type": "MultiNamespace", "supported": True},
            {"type": "AllNamespaces", "supported": True},
        ],
        "install": {
            "strategy": "deployment",
            "spec": {
                "deployments": [DEPLOYMENT],
                "permissions": [{"serviceAccountName": "manager", "rules": [RULE]}],
                "clusterPermissions": [{"serviceAccountName": "manager", "rules": [NODES]}],
            },
        },
    },
}
CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "tests.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Test", "listKind": "TestList", "plural": "tests", "singular": "test"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
ANNOTATIONS = {"annotations": {"operators.operatorframework.io.bundle.package.v1": "x"}}


def webhook(kind: str = "ValidatingAdmissionWebhook", name: str = "v.example.com", **changes: Any) -> dict[str, Any]:
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["tests"]}
    return {
        "type": kind,
        "generateName": name,
        "deploymentName": "manager",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "containerPort": 443,
        "targetPort": 9443,
        "webhookPath": "/look",
        "rules": [rule],
    } | changes


def csv(*webhooks: Mapping[str, Any], modes: str = "", **spec: Any) -> dict[str, Any]:
    """The version with these webhooks; `modes` are those that are supported, by default all."""
    made = copy.deepcopy(CSV)
    made["spec"] |= {"webhookdefinitions": list(webhooks), **spec}
    if modes:
        made["spec"]["installModes"] = [{"type": one, "supported": True} for one in modes.split()]
    return made


def files(*objects: Mapping[str, Any], version: Mapping[str, Any] | None = None, **more: bytes) -> dict[str, bytes]:
    """A bundle of this version (the usual one) with its CRD and these objects; `more` are files of metadata/.

    They are written as JSON, which is YAML, and takes a hundredth of the time.
    """
    listed = [version or CSV, CRD, *objects]
    found = {
        f"manifests/{number:02}.yaml": json.dumps(body, sort_keys=True).encode() for number, body in enumerate(listed)
    }
    found["metadata/annotations.yaml"] = json.dumps(ANNOTATIONS).encode()
    return found | {f"metadata/{name}.yaml": text for name, text in more.items()}


def rendered(
    tree: Mapping[str, bytes],
    config: Mapping[str, Any] | None = None,
    *,
    name: str = "registry-v1",
    is_namespaced: IsNamespaced = BUILT_IN.get,
    destinations: tuple[str, ...] = ("",),
    limits: YamlLimits | None = None,
) -> Content:
    asked = Rendering(name, "home", "installer", is_namespaced, config or {}, destinations, limits or YamlLimits())
    return render_content(Tree(tree), asked, pins=[])


def bodies(content: Content) -> dict[str, Mapping[str, Any]]:
    """By `Kind name`, or `Kind namespace/name`."""
    return {
        str(one.ref).replace(f"{one.ref.kind}.{one.ref.group}", one.ref.kind): one.body for one in content.manifests
    }
