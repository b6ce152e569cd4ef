"""Secrets for sources that nobody asked for just now: only where the operator lists the deployment (S08)."""

from __future__ import annotations

from typing import Any

import pytest

from approvals import gate
from approvals.models import Request
from approvals.project import configuration
from tests.approvals.security.people.asking import NAME, PULL, applied, ask, by_token, unattended
from tests.support.approvals import world
from tests.support.approvals.asked_gate import check_requesters
from tests.support.approvals.fixtures import World


def private(here: World) -> Request:
    here.kubernetes.allow("rita", "get", "pull")
    by_token(here.rita)
    return ask(here, here.rita, sources=[PULL])


def test_S08_secrets_are_read_for_nobody_who_is_known_by_what_is_too_old(here: World) -> None:
    request = private(here)
    check_requesters(request)
    by_token(here.rita, hours=13)
    words = r"Secret harbour/pull, .*rita.* more than 12 hours ago, so nothing is read. rita must sign in again"
    with pytest.raises(gate.GroupsTooOld, match=words):
        check_requesters(request)


def test_S08_the_operators_word_is_not_for_what_people_ask_for(here: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": [f"prod/{NAME}"]}
    request = private(here)
    by_token(here.rita, hours=13)
    with pytest.raises(gate.GroupsTooOld):
        check_requesters(request)


@pytest.mark.parametrize(
    ("listed", "is_read"),
    [([f"prod/{NAME}"], True), ([], False), (["prod/other"], False), ([f"second/{NAME}"], False)],
    ids=["listed", "none", "another deployment", "another cluster"],
)
def test_S08_unattended_they_are_read_only_where_the_operator_lists_the_deployment(
    here: World, settings: Any, listed: list[str], is_read: bool
) -> None:
    request = unattended(applied(private(here)))
    check_requesters(request)
    by_token(here.rita, hours=13)
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": listed}
    if is_read:
        check_requesters(request)
        here.kubernetes.allowed.discard(("rita", "get", "pull"))
        with pytest.raises(gate.Waiting, match="does not let rita get"):
            check_requesters(request)
    else:
        words = f"this request was created automatically; .* an operator adds prod/{NAME} to PRATIQUE_UNATTENDED_READS"
        with pytest.raises(gate.GroupsTooOld, match=words):
            check_requesters(request)


def test_S08_what_was_read_unattended_does_not_end_once_groups_are_old(here: World) -> None:
    """The operator's word is about reading: before that it is needed, and after it nothing is read any more."""
    request = unattended(applied(private(here)))
    by_token(here.rita, hours=13)
    Request.objects.filter(pk=request.pk).update(content=None)
    request.refresh_from_db()
    with pytest.raises(gate.GroupsTooOld):
        check_requesters(request)
    check_requesters(world.in_review(request))


def test_S08_what_was_read_while_the_groups_counted_is_not_read_again(here: World) -> None:
    """The gate then asks a reviewer to vouch for the account; the Secret itself is not needed any more."""
    request = world.in_review(private(here))
    by_token(here.rita, hours=13)
    check_requesters(request)


@pytest.mark.parametrize("text", [NAME, "prod/", "/x", "prod/*", "prod/x/y", "prod/X", "prod x/y"])
def test_unattended_reads_are_listed_by_name_not_by_pattern(text: str) -> None:
    with pytest.raises(ValueError, match="PRATIQUE_UNATTENDED_READS: .* expected CLUSTER/NAME"):
        configuration.read({"PRATIQUE_UNATTENDED_READS": text})


def test_unattended_reads_are_read() -> None:
    found = configuration.read({"PRATIQUE_UNATTENDED_READS": "prod/a, second/b-c.d"})
    assert found["UNATTENDED_READS"] == ["prod/a", "second/b-c.d"]
    assert configuration.read({})["UNATTENDED_READS"] == []
