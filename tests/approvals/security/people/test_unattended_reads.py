"""Secrets for sources that nobody asked for just now: only where the operator lists the deployment (S08)."""

from __future__ import annotations

from typing import Any, cast

import pytest
from django.utils import timezone

from approvals import gate
from approvals.models import Request
from approvals.models.request import READ_EARLIER
from approvals.project import configuration
from approvals.steps.sources import read_for
from provisioner.cluster.client.api import ClusterClient as Api
from tests.approvals.security.people.asking import NAME, PULL, applied, approve, ask, by_token, unattended
from tests.support.approvals import world
from tests.support.approvals.asked_gate import Live, ask_again, before_phase, check_requesters
from tests.support.approvals.fixtures import World


def private(env: World) -> Request:
    env.kubernetes.allow("rita", "get", "pull")
    by_token(env.rita)
    return ask(env, env.rita, sources=[PULL])


def test_S08_secrets_are_read_for_nobody_who_is_known_by_what_is_too_old(env: World) -> None:
    request = private(env)
    check_requesters(request)
    by_token(env.rita, hours=13)
    words = r"Secret harbour/pull, .*rita.* has expired .*12 hours\), so nothing is read: rita must sign in again"
    with pytest.raises(gate.GroupsTooOld, match=words):
        check_requesters(request)


def test_S08_the_operators_word_is_not_for_what_people_ask_for(env: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": [f"prod/{NAME}"]}
    request = private(env)
    by_token(env.rita, hours=13)
    with pytest.raises(gate.GroupsTooOld):
        check_requesters(request)


@pytest.mark.parametrize(
    ("listed", "is_read"),
    [([f"prod/{NAME}"], True), ([], False), (["prod/other"], False), ([f"second/{NAME}"], False)],
    ids=["listed", "none", "another deployment", "another cluster"],
)
def test_S08_unattended_they_are_read_only_where_the_operator_lists_the_deployment(
    env: World, settings: Any, listed: list[str], is_read: bool
) -> None:
    request = unattended(applied(private(env)))
    check_requesters(request)
    by_token(env.rita, hours=13)
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": listed}
    if is_read:
        check_requesters(request)
        env.kubernetes.allowed.discard(("rita", "get", "pull"))
        with pytest.raises(gate.Waiting, match="does not allow rita to get"):
            check_requesters(request)
    else:
        words = f"this request was created automatically; .* an operator adds prod/{NAME} to PRATIQUE_UNATTENDED_READS"
        with pytest.raises(gate.GroupsTooOld, match=words):
            check_requesters(request)


def test_S08_what_was_read_unattended_does_not_end_once_groups_are_old(env: World) -> None:
    """What was read while the groups counted was not read on the operator's word."""
    request = unattended(applied(private(env)))
    by_token(env.rita, hours=13)
    Request.objects.filter(pk=request.pk).update(content=None)
    request.refresh_from_db()
    with pytest.raises(gate.GroupsTooOld):
        check_requesters(request)
    check_requesters(world.in_review(request))


def test_S08_what_was_read_while_the_groups_counted_is_not_read_again(env: World) -> None:
    """The gate then asks a reviewer to vouch for the account; the Secret itself is not needed any more."""
    request = world.in_review(private(env))
    by_token(env.rita, hours=13)
    check_requesters(request)


@pytest.fixture
def read(env: World, settings: Any) -> Request:
    """In review and approved; its Secret was read on the operator's word alone."""
    request = unattended(applied(private(env)))
    by_token(env.rita, hours=13)
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": [f"prod/{NAME}"]}
    facts = gate.reader.preparing(request, cast("Api", Live(request)), read_for(request))
    Request.objects.filter(pk=request.pk).update(read_unattended=list(gate.reads_unattended(facts)))
    approve(world.in_review(request), env.ada)
    return Request.objects.select_related("deployment__cluster").get(pk=request.pk)


def codes(request: Request) -> set[str]:
    """Why it may not be decided, and why its next phase may not begin."""
    api, now = cast("Api", Live(request)), timezone.now()
    found = [gate.judge(gate.reader.deciding(request), now), gate.judge(before_phase(request, api), now)]
    return {one.code for answer in found for one in answer.reasons}


def test_S08_what_was_read_on_the_operators_word_stops_when_that_is_taken_back(
    env: World, read: Request, settings: Any
) -> None:
    assert read.read_unattended == ["Secret harbour/pull"]
    assert "reads-withdrawn" not in codes(read)
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": []}
    assert "reads-withdrawn" in codes(read)
    with pytest.raises(gate.Waiting, match="was read because PRATIQUE_UNATTENDED_READS listed prod/strimzi"):
        ask_again(read)
    by_token(env.rita)
    assert "reads-withdrawn" not in codes(read), "she is asked about now, as if she had asked today"


def test_S08_of_what_an_earlier_version_read_nobody_knows_on_whose_word_so_it_is_asked_anew(
    env: World, read: Request, settings: Any
) -> None:
    Request.objects.update(read_unattended=[READ_EARLIER, "Secret harbour/pull"])
    read.refresh_from_db()
    assert "reads-withdrawn" not in codes(read), "the operator lists it"
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": []}
    assert "reads-withdrawn" in codes(read)
    words = "Secret harbour/pull, which was read by an earlier version of Pratique, perhaps because PRATIQUE_UNATTENDED"
    with pytest.raises(gate.Waiting, match=words):
        ask_again(read)
    by_token(env.rita)
    assert "reads-withdrawn" not in codes(read)


def test_S08_what_was_read_for_people_is_no_matter_of_the_operators_word(env: World, settings: Any) -> None:
    request = private(env)
    facts = gate.reader.preparing(request, cast("Api", Live(request)), read_for(request))
    assert gate.reads_unattended(facts) == ()
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": [f"prod/{NAME}"]}
    by_token(env.rita, hours=13)
    facts = gate.reader.preparing(request, cast("Api", Live(request)), read_for(request))
    assert gate.reads_unattended(facts) == (), "people asked: it is not read at all"


@pytest.mark.parametrize("text", [NAME, "prod/", "/x", "prod/*", "prod/x/y", "prod/X", "prod x/y"])
def test_unattended_reads_are_listed_by_name_not_by_pattern(text: str) -> None:
    with pytest.raises(ValueError, match="PRATIQUE_UNATTENDED_READS: .* expected CLUSTER/NAME"):
        configuration.read({"PRATIQUE_UNATTENDED_READS": text})


def test_unattended_reads_are_read() -> None:
    found = configuration.read({"PRATIQUE_UNATTENDED_READS": "prod/a, second/b-c.d"})
    assert found["UNATTENDED_READS"] == ["prod/a", "second/b-c.d"]
    assert configuration.read({})["UNATTENDED_READS"] == []
