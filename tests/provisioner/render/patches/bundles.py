"""Objects that patches are tried on, and what `spec.config` makes of them."""

from __future__ import annotations

from typing import Any

from provisioner.render import Rendering, YamlLimits, render_content
from provisioner.render.targets import BUILT_IN
from provisioner.values import Content, JsonObject, Tree

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxSurge: 1}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers:
      - name: a
        image: nginx:1
        args: [a, b]
        ports: [{containerPort: 80, protocol: TCP}, {containerPort: 81}]
        env: [{name: X, value: "1"}, {name: K, valueFrom: {secretKeyRef: {name: sec, key: k}}}]
      - {name: b, image: "localhost:5000/nginx@sha256:abc", envFrom: [{configMapRef: {name: cm}}]}
      volumes: [{name: v, emptyDir: {}}, {name: w, configMap: {name: cm}}]
"""
CUSTOM = """
apiVersion: x.io/v1
kind: Foo
metadata: {name: f}
spec: {secretName: sec, containers: [{name: a, image: "nginx:1"}, {name: b}], m: {x: 1, z: 2}}
"""
SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: sec, namespace: default}, data: {k: djRsdWU=}}"


def content_of(text: str, limits: YamlLimits | None = None, **config: Any) -> Content:
    """The content of a plain bundle of these objects, installed into `default`."""
    rendering = Rendering("plain", "default", "installer", BUILT_IN.get, config, limits=limits or YamlLimits())
    return render_content(Tree({"manifests/a.yaml": text.encode()}), rendering, pins=[])


def bodies(text: str, **config: Any) -> list[JsonObject]:
    return [manifest.body for manifest in content_of(text, **config).manifests]


def merge_into_web(rest: str, **target: str) -> dict[str, Any]:
    """`config` with a patch of the Deployment; of any object with a target."""
    patch = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\n{rest}"
    return {"patches": [{"patch": patch, **({"target": target} if target else {})}]}


def operations(*steps: dict[str, Any], **target: str) -> dict[str, Any]:
    return {"patches": [{"patch": list(steps), "target": target or {"kind": "Deployment"}}]}
