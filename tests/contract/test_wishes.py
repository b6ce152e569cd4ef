"""What the CRD lets into a wish: names that are names, since they stand in commands which an operator is told to run."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Server, asked

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
