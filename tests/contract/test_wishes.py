"""What the CRD lets into a wish: names that are names, since they stand in commands which an operator is told to run."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
import yaml

from tests.contract.conftest import CRDS, PATH, Server, asked
from tests.support.folders import ROOT
from tests.support.kubernetes.live import wait_until

OURS = {one.stem: one for one in (ROOT / "deploy/crds").glob("*.yaml")}
NAMES = {
    "plain": ("crane", True),
    "one letter": ("c", True),
    "digits and dashes": ("0-crane-2", True),
    "a command": ("crane;id", False),
    "a command in words": ("$(id)", False),
    "a pipe": ("crane|sh", False),
    "a space": ("crane --form legacy", False),
    "a second line": ("crane\nid", False),
    "a line end": ("crane\n", False),
    "a path": ("../crane", False),
    "an option": ("-crane", False),
    "capitals": ("Crane", False),
    "another script": ("сrane", False),
}


@pytest.mark.parametrize("field", ["installNamespace", "serviceAccountName"])
def test_S31_an_installing_account_is_named_as_accounts_are(wishing: Server, field: str) -> None:
    found = {case: asked(wishing, **{field: name}).code for case, (name, _) in NAMES.items()}
    assert found == {case: 201 if is_taken else 422 for case, (_, is_taken) in NAMES.items()}


def test_accounts_may_have_dots_in_their_names_and_namespaces_not(wishing: Server) -> None:
    assert asked(wishing, serviceAccountName="crane.harbour").code == 201
    assert asked(wishing, installNamespace="crane.harbour").code == 422


IMAGE = {"kind": "image", "image": {"ref": "example.com/x/y:1"}}
GIT = {"repository": "https://example.com/x", "ref": {"branch": "main"}}
OLD = "auth.name is an old spelling, write auth: {secret: {name: NAME}}"
SOURCES = {
    "a plug-in's": ([{"kind": "bucket", "parameters": {"name": "b", "depth": {"of": [1]}}}], ""),
    "a plug-in's without parameters": ([{"kind": "bucket"}], ""),
    "two in two folders": ([IMAGE, {**IMAGE, "destination": "more"}], ""),
    "two in one folder": ([{**IMAGE, "destination": "a"}] * 2, "no two sources may have the same destination"),
    "two in the root": ([IMAGE, {"kind": "git", "git": GIT}], "no two sources may have the same destination"),
    "kind and field differ": ([{**IMAGE, "kind": "git"}], "kind names exactly the one source"),
    "a plug-in's with our field": ([{**IMAGE, "kind": "image", "git": GIT}], "kind names exactly the one source"),
    "our kind with parameters": ([{**IMAGE, "parameters": {"a": 1}}], "parameters are for sources of plug-ins"),
    "a kind that is no name": ([{"kind": "a b"}], "should match"),
    "the old name of a secret": ([{"kind": "image", "image": {"ref": "x/y", "auth": {"name": "pull"}}}], OLD),
    "both names of a secret": (
        [{"kind": "image", "image": {"ref": "x/y", "auth": {"name": "pull", "secret": {"name": "pull"}}}}],
        OLD,
    ),
    "a destination inside git": (
        [{"kind": "git", "git": {**GIT, "destination": "a"}}],
        "destination is written one level up, beside kind",
    ),
    "a destination inside http": (
        [{"kind": "http", "http": {"url": "https://example.com/x", "destination": "a"}}],
        "destination is written one level up, beside kind",
    ),
}


@pytest.mark.parametrize(("sources", "words"), SOURCES.values(), ids=SOURCES)
def test_sources_are_what_the_crd_says_and_a_no_says_why(wishing: Server, sources: list[Any], words: str) -> None:
    answer = asked(wishing, sources=sources)
    assert answer.code == (422 if words else 201), answer.message
    assert words in answer.message


def test_the_definition_of_rukpak_is_not_written_over(wishing: Server) -> None:
    """In a group of its own: others use the real one. What RukPak stored would be lost, so the API server says no."""
    group = f"{wishing.namespace}.rukpak.example.com"
    ours = yaml.safe_load(OURS["bundledeployments"].read_text())
    ours["spec"]["group"], ours["metadata"]["name"] = group, f"bundledeployments.{group}"
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    old = {"name": "v1alpha1", "served": True, "storage": True, "schema": anything}
    theirs = {**ours, "spec": {**ours["spec"], "versions": [old]}}
    assert wishing.ask("POST", CRDS, theirs).code == 201
    place = f"{CRDS}/bundledeployments.{group}"
    try:
        wait_until(lambda: "storedVersions" in wishing.ask("GET", place).body.get("status", {}), "it is stored")
        refused = wishing.apply_to(place, ours, "pratique", "&force=true")
        assert refused.code == 422
        assert "v1alpha1 was previously a storage version" in refused.message
    finally:
        wishing.ask("DELETE", place)


def test_wishes_are_found_by_account_namespace_and_format(wishing: Server) -> None:
    name = f"{wishing.namespace}-found"
    spec = {"installNamespace": name, "serviceAccountName": "crane", "sources": [IMAGE]}
    about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": name}}
    assert wishing.ask("POST", PATH, {**about, "spec": spec}).code == 201
    try:
        for format_name, expected in (("plain", [name]), ("helm", [])):
            selector = f"spec.installNamespace={name},spec.serviceAccountName=crane,spec.format={format_name}"
            found = wishing.ask("GET", f"{PATH}?fieldSelector={quote(selector)}").body["items"]
            assert [wish["metadata"]["name"] for wish in found] == expected
    finally:
        wishing.ask("DELETE", f"{PATH}/{name}")
