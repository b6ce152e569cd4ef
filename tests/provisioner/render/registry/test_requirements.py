"""What a bundle asks of its cluster, from every place where OLM's bundles say it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from provisioner.errors import BundleTooLarge
from provisioner.render.registry.csv import MAX_REQUIREMENTS
from provisioner.values import Requirement, RequirementKind
from tests.provisioner.render.registry.shipping import CSV, csv, files, rendered

GVK = {"group": "db.example.com", "version": "v1", "kind": "Database"}
DATABASE = Requirement(RequirementKind.API, "Database", "db.example.com", "v1")
STORE = Requirement(RequirementKind.PACKAGE, "store", version=">=1.0.0 <2.0.0")
CEL = {"failureMessage": "needs a big cluster", "cel": {"rule": "true"}}
CONSTRAINT = Requirement(RequirementKind.CONSTRAINT, "cel", version="needs a big cluster")


def listed(name: str, *entries: Any) -> dict[str, bytes]:
    return {name: yaml.safe_dump({name: list(entries)}).encode()}


def requirements(version: dict[str, Any] | None = None, **more: bytes) -> tuple[Requirement, ...]:
    return rendered(files(version=version, **more)).requirements


def test_a_bundle_without_requirements_has_none() -> None:
    assert requirements() == ()


def test_the_version_names_the_lowest_kubernetes_and_apis() -> None:
    required = {"name": "databases.db.example.com", "version": "v1", "kind": "Database"}
    version = csv(
        minKubeVersion="1.25.0",
        customresourcedefinitions={**CSV["spec"]["customresourcedefinitions"], "required": [required]},
        apiservicedefinitions={"required": [{"group": "metrics.example.com", "version": "v1", "kind": "Metric"}]},
        nativeAPIs=[{"group": "", "version": "v1", "kind": "Node"}],
    )
    assert requirements(version) == (
        Requirement(RequirementKind.KUBERNETES, version="1.25.0"),
        DATABASE,
        Requirement(RequirementKind.API, "Metric", "metrics.example.com", "v1"),
        Requirement(RequirementKind.API, "Node", "", "v1"),
    )


def test_dependencies_name_packages_apis_and_constraints() -> None:
    package = {"type": "olm.package", "value": {"packageName": "store", "version": ">=1.0.0 <2.0.0"}}
    entries = listed(
        "dependencies", package, {"type": "olm.gvk", "value": GVK}, {"type": "olm.constraint", "value": CEL}
    )
    assert requirements(**entries) == (STORE, DATABASE, CONSTRAINT)


def test_properties_name_what_is_required_and_what_the_bundle_is_asks_for_nothing() -> None:
    entries = listed(
        "properties",
        {"type": "olm.package", "value": {"packageName": "x", "version": "1.0.0"}},
        {"type": "olm.gvk", "value": {"group": "example.com", "version": "v1", "kind": "Test"}},
        {"type": "olm.package.required", "value": {"packageName": "store", "versionRange": ">=1.0.0 <2.0.0"}},
        {"type": "olm.gvk.required", "value": GVK},
        {"type": "olm.constraint", "value": CEL},
        {"type": "olm.maxOpenShiftVersion", "value": "4.12"},
        {"type": "example.com/color", "value": ["any", "shape"]},
    )
    openshift = Requirement(RequirementKind.OPENSHIFT, version="4.12")
    assert requirements(**entries) == (STORE, DATABASE, CONSTRAINT, openshift)


def test_the_annotation_counts_too_and_each_requirement_is_there_once() -> None:
    version = csv()
    version["metadata"]["annotations"]["olm.properties"] = '[{"type": "olm.maxOpenShiftVersion", "value": "4.12"}]'
    entries = listed("properties", {"type": "olm.maxOpenShiftVersion", "value": "4.12"})
    assert requirements(version, **entries) == (Requirement(RequirementKind.OPENSHIFT, version="4.12"),)


def test_files_of_requirements_are_used() -> None:
    entries = listed("dependencies", {"type": "olm.gvk", "value": GVK}) | listed("properties")
    assert rendered(files(**entries)).unused.count == 0


BROKEN = b"""\
dependencies:
- type: olm.gvk
    value: {group: db.example.com, kind: Database, version: v1}
"""


@pytest.mark.parametrize(
    "text",
    [
        BROKEN,
        b"dependencies: text",
        *(
            listed("dependencies", entry)["dependencies"]
            for entry in (
                "text",
                {"type": 1},
                {"type": "olm.gvk", "value": "text"},
                {"type": "olm.gvk", "value": {"kind": []}},
            )
        ),
    ],
    ids=str,
)
def test_dependencies_that_cannot_be_read_refuse_no_bundle_and_are_said(text: bytes) -> None:
    """OLM v1 does not read them, and such bundles are published."""
    (asked,) = requirements(dependencies=text)
    assert (asked.kind, asked.name) == (RequirementKind.CONSTRAINT, "metadata/dependencies.yaml")
    assert asked.version.startswith("its file cannot be read: metadata/dependencies.yaml")


def test_requirements_are_bounded() -> None:
    many = [{"type": "olm.package", "value": {"packageName": f"p{number}"}} for number in range(MAX_REQUIREMENTS + 1)]
    with pytest.raises(BundleTooLarge, match=f"{MAX_REQUIREMENTS + 1} requirements; at most {MAX_REQUIREMENTS}"):
        requirements(**listed("dependencies", *many))
    (long,) = requirements(**listed("dependencies", {"type": "olm.package", "value": {"packageName": "p" * 5000}}))
    assert len(long.name) == 300
