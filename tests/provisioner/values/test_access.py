"""Questions to Kubernetes as people read them, and who a ServiceAccount is to it."""

from __future__ import annotations

import pytest

from provisioner.values import AccessRequest, Identity


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
