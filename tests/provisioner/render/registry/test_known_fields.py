"""Fields of Deployments and CRDs that Kubernetes does not have: left out as OLM leaves them out, and said."""

from __future__ import annotations

import copy
from typing import Any

import yaml

from provisioner.values import Requirement, RequirementKind
from tests.provisioner.render.registry.shipping import CRD, CSV, DEPLOYMENT, bodies, csv, files, rendered


def deploying(**pod: Any) -> dict[str, Any]:
    """A version whose template has `containers` in the wrong place, and these fields in its pod."""
    made = copy.deepcopy(DEPLOYMENT)
    made["spec"]["template"]["containers"] = [{"name": "lost"}]
    made["spec"]["template"]["spec"] |= pod
    return csv(install={**CSV["spec"]["install"], "spec": {"deployments": [made]}})


def with_crd(crd: dict[str, Any]) -> dict[str, bytes]:
    return files() | {"manifests/01.yaml": yaml.safe_dump(crd).encode()}


def test_fields_of_a_deployment_are_left_out_wherever_they_stand_and_named() -> None:
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "secretName": "b", "secret": {"secretName": "b"}}]
    found = rendered(files(version=deploying(volumes=volumes, nodeSelector={"any.key": "stays"})))
    template = bodies(found)["Deployment home/manager"]["spec"]["template"]
    assert "containers" not in template
    assert template["spec"]["volumes"] == [volumes[0], {"name": "b", "secret": {"secretName": "b"}}]
    assert template["spec"]["nodeSelector"] == {"any.key": "stays"}
    paths = "spec.template.containers, spec.template.spec.volumes[1].secretName"
    assert found.requirements == (Requirement(RequirementKind.FIELD, "Deployment manager", version=paths),)


def test_fields_of_a_crd_are_left_out_and_what_may_hold_anything_stays() -> None:
    crd: dict[str, Any] = copy.deepcopy(CRD)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema |= {"properties": {"spec": {"type": "object", "default": {"any": {"thing": 1}}, "x-mine": True}}}
    crd["spec"]["version"] = "v1"
    found = rendered(with_crd(crd))
    body = bodies(found)["CustomResourceDefinition tests.example.com"]
    assert "version" not in body["spec"]
    kept = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert kept == {"type": "object", "default": {"any": {"thing": 1}}}
    (asked,) = found.requirements
    assert (asked.kind, asked.name) == (RequirementKind.FIELD, "CustomResourceDefinition tests.example.com")
    assert "spec.version" in asked.version
    assert "openAPIV3Schema.properties.spec.x-mine" in asked.version


def test_an_old_crd_and_a_bundle_without_such_fields_stay_as_they_are() -> None:
    old = copy.deepcopy(CRD) | {"apiVersion": "apiextensions.k8s.io/v1beta1"}
    old["spec"] |= {"version": "v1"}
    found = rendered(with_crd(old))
    assert bodies(found)["CustomResourceDefinition tests.example.com"]["spec"]["version"] == "v1"
    assert (found.requirements, rendered(files()).requirements) == ((), ())
