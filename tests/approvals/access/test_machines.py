"""Whose names are no person's, so that they review nothing unless the operator lists them (S12)."""

from __future__ import annotations

from typing import Any

import pytest

from approvals import access
from provisioner.values import Identity

NOBODYS = [
    Identity("system:serviceaccount:ci:bot"),
    Identity("system:node:one", ("system:nodes",)),
    Identity("system:anonymous", ("system:unauthenticated",)),
    Identity("system:kube-controller-manager"),
    Identity("system:admin", ("system:masters",)),
    Identity("kubernetes-admin", ("system:masters",)),
    Identity("guest", ("system:unauthenticated",)),
]


@pytest.mark.parametrize("who", NOBODYS, ids=lambda who: who.username)
def test_S12_a_name_that_is_nobodys_own_reviews_only_where_it_is_listed(who: Identity, settings: Any) -> None:
    assert access.is_machine(who)
    settings.PRATIQUE = {**settings.PRATIQUE, "MACHINE_REVIEWERS": [who.username]}
    assert not access.is_machine(who)
    assert not access.is_human(who), "it accepts no finding and dismisses no review"


def test_a_persons_name_is_a_persons() -> None:
    assert not access.is_machine(Identity("rita", ("system:authenticated", "requesters")))
