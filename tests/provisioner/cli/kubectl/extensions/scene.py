"""A real cluster with extensions in it, each with APIs of its own, as Pratique leaves them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provisioner.cli.kubectl import main
from provisioner.cluster.annotations import RevisionOwner, Tracking
from provisioner.cluster.client.api import ClusterClient
from provisioner.pipeline import FIELD_MANAGER
from provisioner.values import AccessRequest, Identity, ObjectRef
from tests.support.kubernetes import live
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig
from tests.support.kubernetes.live import until_served

RBAC = "rbac.authorization.k8s.io"
GROUP = "core.rukpak.io/v1alpha2"
LOOKS = ("get", "list", "watch")


@dataclass
class ExtensionScene:
    """Names of its own in a shared cluster; `close` takes away what is in no namespace."""

    endpoint: Endpoint
    folder: Path
    api: ClusterClient
    mark: str = field(default_factory=lambda: f"x{uuid.uuid4().hex[:8]}")
    made: list[ObjectRef] = field(default_factory=list)

    @property
    def group(self) -> str:
        return f"{self.mark}.example.com"

    @property
    def name(self) -> str:
        return f"{self.mark}-shop"

    def apply(self, obj: Mapping[str, Any], manager: str = "test") -> None:
        ref = ObjectRef.of(obj)
        self.api.apply(obj, field_manager=manager, force=True)
        if not ref.namespace and ref not in self.made:
            self.made.append(ref)

    def close(self) -> None:
        for kind in ("ClusterRole", "ClusterRoleBinding"):
            resource = self.api.resource_of(RBAC, "v1", kind)
            assert resource is not None
            found = self.api.list(resource)
            self.made += [ObjectRef.of(one) for one in found if one["metadata"]["name"].startswith(self.mark)]
        for ref in reversed(self.made):
            self.api.delete(ref)

    def install(self, name: str = "", *, revision: int = 1) -> None:
        """A BundleDeployment of which this revision runs, 0 for none; nothing looks after it."""
        source = {"kind": "configMap", "configMap": {"name": "web"}}
        spec = {"installNamespace": self.mark, "serviceAccountName": "installer", "sources": [source]}
        meta = {"name": name or self.name}
        about = {"apiVersion": GROUP, "kind": "BundleDeployment", "metadata": meta}
        self.apply({**about, "spec": spec})
        status = {"activeRevision": revision}
        self.api.apply({**about, "status": status}, field_manager="test", subresource="status", force=True)

    def define(self, plural: str, kind: str, *, owner: str = "", scope: str = "Namespaced", **more: Any) -> None:
        """A CRD that Pratique wrote for an extension; `more` is of a second version, which is deprecated."""
        names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
        open_schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        parts: dict[str, Any] = {"served": True, "schema": open_schema, "subresources": {"status": {}}}
        versions = [{"name": "v1", "storage": True, **parts}]
        versions += [{"name": "v1beta1", "storage": False, "deprecated": True, **parts, **more}] if more else []
        meta = Tracking.of("", RevisionOwner(owner or self.name, 1)).put_on({"name": f"{plural}.{self.group}"})
        spec = {"group": self.group, "scope": scope, "names": names, "versions": versions}
        definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        self.apply({**definition, "metadata": meta, "spec": spec}, FIELD_MANAGER)
        until_served(self.api, self.group, "v1", kind)

    def allow(self, name: str, rules: Sequence[Mapping[str, Any]], person: str, namespace: str = "") -> None:
        """A ClusterRole, bound to somebody."""
        subject = user(self.person(person))
        made = f"{self.mark}-{name}"
        self.apply({"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": made}, "rules": rules})
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        meta = {"name": made} | ({"namespace": namespace} if namespace else {})
        ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": made}
        self.apply({"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": meta, "roleRef": ref, "subjects": [subject]})

    def run(self, *words: str, user: str = "") -> int:
        """As an administrator, or as somebody of the test's own, to whom no other test gives rights."""
        acting = ("--as", self.person(user)) if user else ()
        return main([*words, *acting, "--kubeconfig", str(kubeconfig(self.endpoint, self.folder))])

    def person(self, name: str) -> str:
        return f"{self.mark}-{name}"

    def until_may(self, name: str, verb: str, group: str, resource: str) -> None:
        """Until the API server goes by the rights of somebody."""
        live.until_may(self.api, somebody(self.person(name)), AccessRequest(verb, group, resource))


def user(name: str) -> dict[str, str]:
    return {"kind": "User", "name": name, "apiGroup": RBAC}


def rule(group: str, resources: str, verbs: Sequence[str], *names: str) -> dict[str, Any]:
    named = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs), **named}


def somebody(name: str) -> Identity:
    return Identity(name, ("system:authenticated",))
