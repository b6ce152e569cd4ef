"""Patches and changes of fields against the kustomize that the real kubectl has."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner.json_values import value_at
from provisioner.render import load_all
from provisioner.render.canonical import canonical
from tests.provisioner.render.patches.bundles import CUSTOM, WEB, bodies, merge_into_web, operations

MORE = """
{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: sec}, stringData: {a: b}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}, imagePullSecrets: [{name: sec}]}
---
{apiVersion: v1, kind: Service, metadata: {name: svc, namespace: default}, spec: {selector: {app: web}, ports: [{port: 1}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: bare}, spec: {ports: [{port: 1}]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get], resourceNames: [sec, other]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: cr}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get], resourceNames: [cm]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: rb}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects:
- {kind: ServiceAccount, name: web, namespace: default}
- {kind: ServiceAccount, name: default, namespace: zz}
- {kind: ServiceAccount, name: alien, namespace: zz}
- {kind: User, name: somebody}
- {kind: ServiceAccount, name: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: crb}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cr}
subjects: [{kind: ServiceAccount, name: web, namespace: default}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: wh}
webhooks: [{name: a.b.c, clientConfig: {service: {name: svc, namespace: default, path: /x}}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.x.io}
spec: {group: x.io, version: v1, service: {name: svc, namespace: default}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bars.x.io}
spec:
  group: x.io
  names: {kind: Bar, plural: bars}
  scope: Namespaced
  versions: []
  conversion: {webhook: {clientConfig: {service: {name: elsewhere, namespace: default}}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: default}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: hpa}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ing, annotations: {nginx.ingress.kubernetes.io/auth-secret: sec}}
spec:
  tls: [{secretName: sec}]
  defaultBackend: {service: {name: svc}}
  rules: [{http: {paths: [{backend: {service: {name: svc}}}]}}]
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: pdb}, spec: {selector: {matchLabels: {app: web}}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: np}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress: [{from: [{podSelector: {matchLabels: {app: q}}}, {podSelector: {}}]}]
  egress: [{to: [{podSelector: {matchLabels: {app: q}}}]}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: sts}
spec:
  serviceName: bare
  selector: {matchLabels: {app: s}}
  template:
    metadata: {labels: {app: s}}
    spec:
      priorityClassName: pc
      containers: [{name: a, image: nginx}]
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {weight: 1, podAffinityTerm: {topologyKey: z, labelSelector: {matchLabels: {app: s}}}}
      volumes: [{name: p, persistentVolumeClaim: {claimName: pvc}}]
  volumeClaimTemplates: [{metadata: {name: d}, spec: {storageClassName: fast}}]
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: bare}, spec: {serviceName: bare}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: x}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: pc}, value: 1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: pvc}
spec: {storageClassName: fast, volumeName: pv}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}, spec: {storageClassName: fast}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  template:
    spec:
      containers: [{name: a, image: nginx, envFrom: [{secretRef: {name: sec}}]}]
      volumes: [{name: x, projected: {sources: [{secret: {name: sec}}, {configMap: {name: cm}}]}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: cj}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          serviceAccountName: web
          initContainers:
          - {name: i, image: "nginx:3", env: [{name: Q, valueFrom: {configMapKeyRef: {name: cm, key: a}}}]}
          containers: [{name: a, image: nginx}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ds}
spec:
  selector: {matchLabels: {app: d}}
  template: {metadata: {labels: {app: d}}, spec: {containers: [{name: a, image: "nginx@sha256:11"}]}}
"""
ALL = f"{WEB}---{CUSTOM}---{MORE}"


def of_pod(rest: str) -> str:
    return f"spec: {{template: {{spec: {{{rest}}}}}}}"


def of_container(rest: str) -> str:
    return of_pod(f"containers: [{{name: a, {rest}}}]")


CUSTOM_PATCH = "apiVersion: x.io/v1\nkind: Foo\nmetadata: {name: f}\nspec: "

CASES: dict[str, dict[str, Any]] = {
    "a field": merge_into_web("spec: {replicas: 3}"),
    "null takes a field away": merge_into_web("spec: {replicas: null, template: {spec: {serviceAccountName: null}}}"),
    "a container moves to the front": merge_into_web(of_pod("containers: [{name: b, image: x}]")),
    "a new container": merge_into_web(of_pod("containers: [{name: c, image: x}, {name: a, args: [z]}]")),
    "variables": merge_into_web(
        of_container("env: [{name: Z, value: q}, {name: K, value: null}, {name: X, value: '2'}]")
    ),
    "another protocol": merge_into_web(of_container("ports: [{containerPort: 80, protocol: UDP, name: u}]")),
    "a container goes": merge_into_web(of_pod("containers: [{name: a, $patch: delete}]")),
    "a list is replaced": merge_into_web(of_pod("containers: [{$patch: replace}, {name: z, image: q}]")),
    "a list goes": merge_into_web(of_pod("volumes: [{$patch: delete}]")),
    "a mapping is replaced": merge_into_web("spec: {strategy: {$patch: replace, type: Recreate}}"),
    "a mapping goes": merge_into_web("spec: {strategy: {$patch: delete}}"),
    "an object goes": merge_into_web("$patch: delete"),
    "a volume comes, and one goes": merge_into_web(
        of_pod("volumes: [{name: v, $patch: delete}, {name: u, emptyDir: {}}]")
    ),
    "a new mapping with a null": merge_into_web(of_pod("securityContext: {runAsUser: null, fsGroup: 1}")),
    "an empty mapping": merge_into_web(of_pod("securityContext: {}")),
    "texts of a set": {
        "patches": [{"patch": "metadata: {name: x, finalizers: [a/b]}\nkind: x", "target": {"kind": "Deployment"}}]
    },
    "a target that hits nothing": merge_into_web("spec: {replicas: 2}", kind="ReplicaSet"),
    "a target by pattern": merge_into_web("spec: {replicas: 9}", kind="Deploy.*|StatefulSet", name=".+"),
    "a custom resource": {"patches": [{"patch": CUSTOM_PATCH + "{containers: [{name: b, q: 1}], m: {x: null, w: 3}}"}]},
    "a directive in one": {"patches": [{"patch": CUSTOM_PATCH + "{m: {$patch: replace, w: 3}}"}]},
    "operations": operations(
        {"op": "replace", "path": "/spec/replicas", "value": 5},
        {"op": "replace", "path": "/spec/minReadySeconds", "value": 5},
        {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "c"},
        {"op": "add", "path": "/spec/template/spec/containers/0/args/0", "value": "first"},
        {"op": "remove", "path": "/spec/template/spec/containers/1"},
        {"op": "copy", "from": "/spec/replicas", "path": "/spec/x"},
        {"op": "move", "from": "/spec/x", "path": "/metadata/labels/a~1b~0c"},
        {"op": "test", "path": "/metadata/labels/a~1b~0c", "value": 5},
        {"op": "replace", "path": "/metadata/labels/a~1b~0c", "value": "q"},
    ),
    "namespace": {"namespace": "prod"},
    "namePrefix": {"namePrefix": "p-"},
    "commonLabels": {"commonLabels": {"team": "x", "app": "other"}},
    "images": {
        "images": [
            {"name": "nginx", "newName": "r.io/n", "newTag": "9"},
            {"name": "localhost:5000/nginx", "digest": "sha256:ef"},
        ]
    },
    "the name of an image": {"images": [{"name": "localhost:5000/nginx", "newName": "r.io:80/n"}]},
    "all at once": {
        "namespace": "prod",
        "namePrefix": "p-",
        "commonLabels": {"t": "1"},
        "images": [{"name": "nginx", "newTag": "9"}],
        **merge_into_web("spec: {replicas: 4}"),
    },
}


@pytest.mark.parametrize("case", CASES)
def test_the_objects_are_those_of_kustomize(case: str, kubectl: Path, tmp_path: Path) -> None:
    patches = [
        {**entry, "patch": entry["patch"] if isinstance(entry["patch"], str) else json.dumps(entry["patch"], indent=1)}
        for entry in CASES[case].get("patches", ())
    ]
    (tmp_path / "all.yaml").write_text(ALL)
    wanted = {"resources": ["all.yaml"], **CASES[case], "patches": patches}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(wanted))
    env = {"KUBECONFIG": "/dev/null", "HOME": str(tmp_path)}
    done = subprocess.run(
        [str(kubectl), "kustomize", str(tmp_path)], capture_output=True, check=False, text=True, env=env
    )
    assert done.returncode == 0, done.stderr
    theirs = [_without_default(body) for body in load_all(done.stdout, name="kustomize")]
    ours = [_without_default(body) for body in bodies(ALL, **CASES[case])]
    assert sorted(ours, key=_named) == sorted(theirs, key=_named)


def _without_default(body: Any) -> Any:
    """An object without the namespace that Pratique gives it, and kustomize does not."""
    found = canonical(body)
    if found["metadata"].get("namespace") == "default":
        del found["metadata"]["namespace"]
    return found


def _named(body: Any) -> tuple[str, str]:
    return body["kind"], str(value_at(body, "metadata", "name"))


def test_where_kustomize_loses_a_part_of_a_patch_it_is_kept() -> None:
    """Its items of two keys: the name of a port goes where the patch does not state the protocol."""
    (web,) = bodies(WEB, **merge_into_web(of_container("ports: [{containerPort: 80, name: http}]")))
    ports = web["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert ports == [{"containerPort": 80, "name": "http", "protocol": "TCP"}, {"containerPort": 81}]


def test_references_follow_also_where_kustomize_has_no_table() -> None:
    """A conversion's Service and an IngressClass; a User that is called like an account stays who it is."""
    text = """
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: k}, spec: {controller: x}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {ingressClassName: k}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: rb}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{kind: User, name: web}]
"""
    _, _, ingress, binding = bodies(text, namePrefix="p-")
    assert ingress["spec"]["ingressClassName"] == "p-k"
    assert binding["subjects"] == [{"kind": "User", "name": "web"}]
