"""Accepting findings: by whom, which, and what guards and grants make of it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from django.core.cache import cache
from django.db import DatabaseError, transaction

from approvals import access
from approvals.errors import (
    CouldNotAsk,
    DigestMoved,
    InvalidInput,
    NotAllowed,
    NotWaivable,
    Refused,
    SelfApproval,
    UnknownFinding,
)
from approvals.models import AuditEntry, KubernetesIdentity, PolicyEvaluation, Report, Request, Review
from approvals.services.waivers import MAX_WAIVER_REASON, MAX_WAIVERS, Waiver
from approvals.steps.mirroring import mirror
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, look, save
from tests.support.approvals.waivers import CALM, approve, finding, report
from tests.support.folders import ROOT

BIDI = "fine \u202egnp.exe\u202c \u200b as ever"


@pytest.fixture
def request_(env: World) -> Request:
    """Two dangerous findings; ada may approve and override."""
    env.kubernetes.allow("ada", "override", "strimzi")
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return report(Request.objects.get(), finding(1), finding(2, rule="POD-23"))


def test_a_waiver_is_kept_in_the_review_and_in_the_audit(env: World, request_: Request) -> None:
    given = approve(request_, env.ada, "f1")
    assert given.waives == [{"fingerprint": "f1", "reason": "known since May"}]
    assert (given.subject_digest, given.override_reason) == (request_.subject_digest, "by rule")
    facts = AuditEntry.objects.get(verb="review.given").facts
    told = {"rule": "RB-01", "severity": "dangerous", "fingerprint": "f1", "reason": "known since May"}
    assert (facts["waives"], facts["override"]) == ([told], "by rule")


def test_S12_override_is_asked_for_this_very_deployment(env: World, request_: Request) -> None:
    approve(request_, env.ada, "f1")
    asked = [(who, one.group, one.resource, one.name) for who, one in env.kubernetes.asked if one.verb == "override"]
    assert asked == [("ada", "core.rukpak.io", "bundledeployments", "strimzi")]


def test_without_a_waiver_nobody_is_asked_about_override(env: World, request_: Request) -> None:
    approve(request_, env.ada)
    assert "override" not in {one.verb for _, one in env.kubernetes.asked}


@pytest.mark.parametrize("change", ["update", "delete"])
def test_promise_5_the_database_keeps_a_waiver_as_it_was_given(env: World, request_: Request, change: str) -> None:
    approve(request_, env.ada, "f1")
    with pytest.raises(DatabaseError), transaction.atomic():
        Review.objects.update(waives=[]) if change == "update" else Review.objects.all().delete()
    assert Review.objects.get().waives[0]["fingerprint"] == "f1"


@pytest.mark.parametrize(
    ("changes", "refusal", "words"),
    [
        pytest.param({"waives": [Waiver("f9", "why not")]}, UnknownFinding, "not in the report", id="foreign"),
        pytest.param({"waives": [Waiver("f1", " \n")]}, InvalidInput, "is missing", id="no reason"),
        pytest.param({"waives": [Waiver("f1", "\u200b\u202e")]}, InvalidInput, "is missing", id="an unseen reason"),
        pytest.param({"waives": [Waiver("f1", "a\0b")]}, InvalidInput, "NUL", id="NUL"),
        pytest.param(
            {"waives": [Waiver("f1", "x" * (MAX_WAIVER_REASON + 1))]}, InvalidInput, "characters", id="endless reason"
        ),
        pytest.param({"waives": [Waiver("f1", "a"), Waiver("f1", "b")]}, InvalidInput, "twice", id="twice"),
        pytest.param(
            {"waives": [Waiver(f"f{one}", "a") for one in range(10_000)]}, InvalidInput, "at most", id="ten thousand"
        ),
        pytest.param(
            {"decision": "Deny"},
            InvalidInput,
            "findings can be accepted only together with an approval",
            id="with a denial",
        ),
        pytest.param({"channel": "chat"}, NotAllowed, "not in chat", id="S22 in chat"),
        pytest.param({"channel": "webhook"}, NotAllowed, "by a machine", id="S22 by a robot's call"),
        pytest.param({"subject_digest": "sha256:old"}, DigestMoved, "review it again", id="S03 of another round"),
    ],
)
def test_what_is_no_waiver_is_refused_whole(
    env: World, request_: Request, changes: dict[str, Any], refusal: type[Refused], words: str
) -> None:
    with pytest.raises(refusal, match=words):
        approve(request_, env.ada, "f1", **changes)
    assert not Review.objects.exists()


def test_as_many_as_can_be_are_accepted_at_once(env: World, request_: Request) -> None:
    Report.objects.all().delete()
    report(request_, *(finding(number) for number in range(MAX_WAIVERS)))
    assert len(approve(request_, env.ada, *(f"f{number}" for number in range(MAX_WAIVERS))).waives) == MAX_WAIVERS


def test_S24_a_reason_is_kept_as_it_was_written(env: World, request_: Request) -> None:
    assert approve(request_, env.ada, waives=[Waiver("f1", BIDI)]).waives[0]["reason"] == BIDI


def test_S12_who_may_approve_but_not_override_is_told_what_would_allow_it(env: World, request_: Request) -> None:
    env.kubernetes.allowed.discard(("ada", "override", "strimzi"))
    with pytest.raises(NotAllowed, match="needs the verb override") as refused:
        approve(request_, env.ada, "f1")
    assert "override" in str(refused.value.facts["rule"])
    assert approve(request_, env.ada).waives == []


def test_who_may_override_but_not_approve_waives_nothing(env: World, request_: Request) -> None:
    env.kubernetes.allow("bert", "override")
    with pytest.raises(NotAllowed):
        approve(request_, env.bert, "f1")


def test_promise_4_an_error_about_override_means_no(env: World, request_: Request) -> None:
    ask = env.kubernetes.ask

    def ask_or_fail(cluster: Any, identity: Any, question: Any) -> Any:
        env.kubernetes.is_down = question.verb == "override"
        return ask(cluster, identity, question)

    env.kubernetes.ask = ask_or_fail  # type: ignore[method-assign] # the cluster goes silent for one question
    with pytest.raises(CouldNotAsk, match="counts as no"):
        approve(request_, env.ada, "f1")
    assert not Review.objects.exists()


def test_S05_who_asked_accepts_nothing(env: World, request_: Request) -> None:
    for verb in ("approve", "override"):
        env.kubernetes.allow("rita", verb)
    with pytest.raises(SelfApproval):
        approve(request_, env.rita, "f1")


def test_S12_a_listed_machine_may_review_but_accepts_nothing(env: World, request_: Request, settings: Any) -> None:
    robot = "system:serviceaccount:ci:robot"
    settings.PRATIQUE = {**settings.PRATIQUE, "MACHINE_REVIEWERS": [robot]}
    proved = KubernetesIdentity.Authenticator.TOKEN_REVIEW
    env.bert.kubernetes_identities.update(username=robot, authenticator=proved)
    for verb in ("approve", "override"):
        env.kubernetes.allow(robot, verb)
    with pytest.raises(NotAllowed, match="machine"):
        approve(request_, env.bert, "f1")
    assert approve(request_, env.bert).username == robot


def test_S12_the_robot_of_the_decision_endpoint_accepts_nothing_over_rest_either(
    env: World, request_: Request, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "DECISION_WEBHOOK_USER": "ada"}
    with pytest.raises(NotAllowed, match="machine"):
        approve(request_, env.ada, "f1", channel="rest")


@pytest.mark.parametrize(
    ("severity", "rule", "words"),
    [("unknown", "GAP-01", "its effect is unknown"), ("critical", "OWN-PRATIQUE-01", "affects Pratique")],
    ids=["promise 4 unknown", "S22 about Pratique"],
)
def test_what_nobody_may_accept_is_said(env: World, request_: Request, severity: str, rule: str, words: str) -> None:
    Report.objects.all().delete()
    report(request_, finding(1), finding(2, severity, rule))
    with pytest.raises(NotWaivable, match=words) as refused:
        approve(request_, env.ada, "f1", "f2")
    assert list(refused.value.facts["findings"]) == ["f2"]  # type: ignore[call-overload] # facts are JSON
    save(env, kind="guard", expression='worst != "unknown" && worst != "critical"')
    assert look(request_).state == "in_review"


def test_S09_nobody_accepts_a_finding_about_a_secret_that_they_may_not_see(env: World, request_: Request) -> None:
    ref = {"group": "", "version": "v1", "kind": "Secret", "namespace": "harbour", "name": "keys"}
    Report.objects.all().delete()
    report(request_, finding(1, ref=ref))
    env.kubernetes.closed.add("secrets")
    with pytest.raises(NotAllowed, match="not allowed to get"):
        approve(request_, env.ada, "f1")
    env.kubernetes.closed.clear()
    cache.clear()
    assert approve(request_, env.ada, "f1").waives


def test_nobody_accepts_twice(env: World, request_: Request) -> None:
    assert approve(request_, env.ada, "f1") == approve(request_, env.ada, "f1")
    assert (Review.objects.count(), AuditEntry.objects.filter(verb="review.given").count()) == (1, 1)


def test_what_was_accepted_in_a_replaced_review_is_accepted_no_more(env: World, request_: Request) -> None:
    save(env, kind="guard", expression=CALM)
    approve(request_, env.ada, "f1", "f2")
    approve(request_, env.ada)
    found = look(request_)
    assert (found.state, found.problem_code) == ("in_review", "held-back")


def test_a_guard_no_longer_holds_for_what_is_accepted(env: World, request_: Request) -> None:
    guard = save(env, kind="guard", expression=CALM)
    assert look(request_).state == "in_review"
    approve(request_, env.ada, "f1", "f2")
    assert look(request_).state == "approved"
    assert PolicyEvaluation.objects.get(policy=guard).result == "passes"


def test_a_guard_still_holds_for_the_rest(env: World, request_: Request) -> None:
    save(env, kind="guard", expression=CALM)
    approve(request_, env.ada, "f1")
    found = look(request_)
    assert (found.state, found.problem, found.problem_code) == ("in_review", "held back by routine", "held-back")


@pytest.mark.parametrize(
    "expression", ["waived == 0", 'waived_severities["dangerous"] < 2', '!("POD-23" in waived_rules)', "false"]
)
def test_a_guard_can_refuse_to_be_waived(env: World, request_: Request, expression: str) -> None:
    save(env, kind="guard", expression=expression)
    approve(request_, env.ada, "f1", "f2")
    assert look(request_).state == "in_review"


@pytest.mark.parametrize("rules", ["rules", "new_rules"])
def test_a_guard_sees_each_rule_of_one_cause_until_it_is_accepted(env: World, rules: str) -> None:
    """Of a deleted CRD two rules say the same, in one finding: policies know both by name (decision 0057)."""
    env.kubernetes.allow("ada", "override", "strimzi")
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = report(Request.objects.get(), finding(1, rule="CRD-08", also=["DEL-01"]))
    guard = save(env, kind="guard", expression=f'!("DEL-01" in {rules})')
    assert look(request).state == "in_review"
    assert "is false" in PolicyEvaluation.objects.filter(policy=guard).latest("pk").words
    save(env, name="both", kind="guard", expression='waived == 1 ? "DEL-01" in waived_rules : true')
    approve(request, env.ada, "f1")
    assert look(request).state == "approved"


@pytest.mark.parametrize("expression", [CALM, 'worst_new == "safe"', "waived > 0", 'severities["dangerous"] == 0'])
def test_a_waiver_never_satisfies_a_grant(env: World, request_: Request, expression: str, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    allow(env, save(env, expression=expression))
    approve(request_, env.ada, "f1", "f2")
    assert look(request_).state == "in_review"
    assert PolicyEvaluation.objects.get().result == "silent"


@pytest.mark.parametrize("verb", ["override", "approve"])
def test_S25_a_waiver_counts_only_while_its_author_may(env: World, request_: Request, verb: str) -> None:
    guard = save(env, kind="guard", expression=CALM)
    approve(request_, env.ada, "f1", "f2")
    env.kubernetes.allowed -= {("ada", verb, "strimzi"), ("ada", verb, "*")}
    assert look(request_).state == "in_review"
    assert "what ada accepted no longer counts" in PolicyEvaluation.objects.get(policy=guard).words


def test_S05_a_waiver_does_not_count_once_its_author_turns_out_to_have_asked(env: World) -> None:
    for verb in ("override", "impersonate"):
        env.kubernetes.allow("ada", verb)
    obj = world.seen("strimzi", world.spec())
    world.submit_spec(env.cluster, obj)
    request = report(Request.objects.get(), finding(1))
    approve(request, env.ada, "f1")
    world.submit_spec(env.cluster, obj, env.ada)
    guard = save(env, kind="guard", expression=CALM)
    assert look(request).state == "in_review"
    assert "they requested this change" in PolicyEvaluation.objects.get(policy=guard).words


def test_a_waiver_of_one_round_says_nothing_in_the_next(env: World, request_: Request) -> None:
    save(env, kind="guard", expression=CALM)
    approve(request_, env.ada, "f1", "f2")
    Request.objects.update(round=2)
    request_.refresh_from_db()
    report(request_, finding(1), finding(2))
    approve(request_, env.ada)
    assert look(request_).state == "in_review"


def test_the_mirrored_status_counts_each_accepted_finding_once(env: World, request_: Request) -> None:
    for verb in ("approve", "override"):
        env.kubernetes.allow("bert", verb)
    approve(request_, env.ada, "f1")
    approve(request_, env.bert, "f1", "f2")
    summary = mirror._reviews_summary(request_)
    assert summary == {"approvals": 2, "waivers": 2}
    crd = yaml.safe_load((ROOT / "deploy/crds/bundledeploymentrequests.yaml").read_text())
    status = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert set(summary) <= set(status["reviewsSummary"]["properties"])


def test_S22_a_waiver_that_got_past_the_service_does_not_count(env: World, request_: Request) -> None:
    Report.objects.all().delete()
    report(request_, finding(1, "unknown"), finding(2, rule="OWN-PRATIQUE-01"))
    given = approve(request_, env.ada)
    given.pk, given.voter, given.waives = None, "user:0", [{"fingerprint": one, "reason": "a"} for one in ("f1", "f2")]
    given.save(force_insert=True)
    save(env, kind="guard", expression="rules.size() == 0")
    assert look(request_).state == "in_review"


def test_S25_an_answer_from_before_is_not_believed_when_a_finding_is_accepted(env: World, request_: Request) -> None:
    assert access.may_override(Identity("ada", ("platform",)), request_.deployment).allowed
    env.kubernetes.allowed.discard(("ada", "override", "strimzi"))
    assert access.may_override(Identity("ada", ("platform",)), request_.deployment).allowed, "kept for 15 seconds"
    with pytest.raises(NotAllowed):
        approve(request_, env.ada, "f1")
