"""The steps that let a stored version go: what comes first, which commands, and that they are safe to copy."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from provisioner.schema import accepts_update, compare
from provisioner.schema.definition.crd import Crd
from provisioner.schema.diff.crd import migration_steps


def crd(*versions: str, stores: str, scope: str = "Namespaced", plural: str = "things", group: str = "e.org") -> Any:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": "Thing"},
            "versions": [{"name": one, "served": True, "storage": one == stores, "schema": schema} for one in versions],
        },
    }


def steps(old: Any, new: Any) -> list[str]:
    return migration_steps(Crd(old), Crd(new))


REWRITE = "kubectl get things.v2.e.org -A -o json | kubectl replace -f -"
SAY = """kubectl patch crd things.e.org --subresource=status --type=merge -p '{"status": {"storedVersions": ["v2"]}}'"""


def test_what_is_stored_in_another_version_needs_a_bundle_in_between_first() -> None:
    between, rewrite, say, then = steps(crd("v1", "v2", stores="v1"), crd("v2", stores="v2"))
    assert between.startswith("1. ask for a version of this bundle that still has v1 and stores v2 ")
    assert "drift" in between
    assert rewrite.startswith("2. ")
    assert rewrite.endswith(REWRITE)
    assert say.startswith("3. ")
    assert say.endswith(SAY)
    assert then.startswith("4. ")


def test_what_is_stored_in_the_version_that_stays_is_only_written_again() -> None:
    rewrite, say, _ = steps(crd("v1", "v2", stores="v2"), crd("v2", stores="v2"))
    assert rewrite.startswith("1. write every object again")
    assert say.endswith(SAY)


def test_a_version_in_between_keeps_everything_that_is_stored_by_now() -> None:
    between, *_ = steps(crd("v1alpha1", "v1beta1", stores="v1beta1"), crd("v1", stores="v1"))
    assert "still has v1alpha1, v1beta1 and stores v1 " in between


def test_objects_without_a_namespace_are_not_looked_for_in_all_of_them() -> None:
    rewrite, *_ = steps(crd("v1", "v2", stores="v2", scope="Cluster"), crd("v2", stores="v2"))
    assert "kubectl get things.v2.e.org -o json" in rewrite


def test_a_crd_that_stores_nothing_has_no_steps() -> None:
    assert steps(crd("v1", stores="v1"), crd("v2", stores="")) == []


@pytest.mark.parametrize("evil", ["things; rm -rf /", "$(reboot)", "it's"])
def test_no_name_of_a_file_becomes_a_command(evil: str) -> None:
    rewrite, say, _ = steps(crd("v1", "v2", stores="v2", plural=evil), crd("v2", stores="v2", plural=evil))
    assert shlex.split(rewrite.partition(": ")[2])[2] == f"{evil}.v2.e.org"
    assert shlex.split(say.partition(": ")[2])[3] == f"{evil}.e.org"


def test_the_finding_of_the_version_that_goes_has_the_steps() -> None:
    old, new = crd("v1", "v2", stores="v1"), crd("v2", stores="v2")
    (found,) = [one for one in compare(old, new) if one.rule == "CRD-10"]
    assert found.evidence["steps"] == steps(old, new)


@pytest.mark.parametrize(
    ("old", "rule", "rollback"), [(["v1", "v2"], "CRD-13", "dangerous"), (["v1"], "CRD-13b", "breaking")]
)
def test_the_way_back_from_another_storage_version_is_open_while_both_are_known(
    old: list[str], rule: str, rollback: str
) -> None:
    before, after = crd(*old, stores="v1"), crd("v1", "v2", stores="v2")
    found = {one.rule: one for one in compare(before, after)}
    assert found[rule].verdicts["rollback"] == rollback
    # What the cluster holds once the new one was applied.
    held = {**after, "status": {"storedVersions": ["v1", "v2"]}}
    assert bool(accepts_update(held, before)) == (rollback == "breaking")
