"""What an object is called, what is no object, and questions to Kubernetes as people read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from provisioner.errors import InvalidManifest
from provisioner.values import AccessRequest, GroupKind, Identity, ObjectRef, created_at, object_in

DEPLOYMENT = ObjectRef("apps", "v1", "Deployment", "shop", "web")
NAMESPACE = ObjectRef("", "v1", "Namespace", "", "shop")


@pytest.mark.parametrize(
    ("obj", "ref"),
    [
        ({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"}}, DEPLOYMENT),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "namespace": None}}, NAMESPACE),
        ({"kind": "Namespace", "metadata": None}, ObjectRef("", "", "Namespace", "", "")),
        ({}, ObjectRef("", "", "", "", "")),
    ],
    ids=["with a group", "of the core group", "without metadata", "empty"],
)
def test_a_reference_is_read_from_an_object(obj: dict[str, Any], ref: ObjectRef) -> None:
    assert ObjectRef.of(obj) == ref


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (None, "the object: expected an object, found nothing"),
        (True, "the object: expected an object, found true or false"),
        (["a"], "the object: expected an object, found a list"),
        ({"metadata": "web"}, "metadata: expected an object, found a text"),
        ({"metadata": 3}, "metadata: expected an object, found a number"),
    ],
)
def test_what_is_no_object_is_refused_in_words(obj: Any, words: str) -> None:
    with pytest.raises(InvalidManifest, match=words):
        ObjectRef.of(obj)


def test_an_object_is_the_same_in_each_of_its_versions() -> None:
    beta = ObjectRef("apps", "v1beta1", "Deployment", "shop", "web")
    assert beta.identity == DEPLOYMENT.identity
    assert beta != DEPLOYMENT


def test_names_as_people_read_them() -> None:
    assert (str(DEPLOYMENT), DEPLOYMENT.place, DEPLOYMENT.api_version) == (
        "Deployment.apps shop/web",
        "shop/web",
        "apps/v1",
    )
    assert (str(NAMESPACE), NAMESPACE.place, NAMESPACE.api_version) == ("Namespace shop", "shop", "v1")
    assert str(GroupKind("", "Secret")) == "Secret"


@dataclass
class Row:
    uid: str
    name: str
    namespace: str
    kind: str
    version: str
    group: str


def test_a_reference_is_read_from_a_row_by_the_names_of_its_columns() -> None:
    assert ObjectRef.from_parts(Row("u", "web", "shop", "Deployment", "v1", "apps")) == DEPLOYMENT


def test_the_object_of_a_service_account() -> None:
    found = ObjectRef.of_service_account("shop", "installer")
    assert str(found) == "ServiceAccount shop/installer"
    assert found.api_version == "v1"


@pytest.mark.parametrize(
    ("obj", "time"),
    [
        ({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}, "2026-01-01T00:00:00Z"),
        ({"metadata": {"creationTimestamp": None}}, ""),
        ({"metadata": None}, ""),
        ({}, ""),
    ],
)
def test_when_nobody_says_when_it_was_created_there_is_no_time(obj: dict[str, Any], time: str) -> None:
    assert created_at(obj) == time


def test_an_object_is_given_back_as_it_is() -> None:
    obj = {"a": 1}
    assert object_in(obj, "it") is obj


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (AccessRequest("get", resource="secrets", namespace="shop", name="s"), "get secrets s in shop"),
        (
            AccessRequest("approve", "core.rukpak.io", "bundledeployments", name="web"),
            "approve bundledeployments.core.rukpak.io web",
        ),
        (AccessRequest("create", "", "serviceaccounts", "token", "shop"), "create serviceaccounts/token in shop"),
        (AccessRequest("get", path="/metrics"), "get /metrics"),
    ],
)
def test_a_question_in_words(question: AccessRequest, words: str) -> None:
    assert str(question) == words


def test_a_service_account_has_the_groups_that_the_api_server_gives_it() -> None:
    found = Identity.of_service_account("shop", "installer")
    assert found.username == "system:serviceaccount:shop:installer"
    assert set(found.groups) == {"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:shop"}
