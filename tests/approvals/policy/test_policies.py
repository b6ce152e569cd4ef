"""Guards and grants on requests: what they approve, what they hold back, and what they say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.contrib.auth.models import User

from approvals import access, gate
from approvals.errors import InvalidInput, NotAllowed
from approvals.gate import policies
from approvals.gate.deciding_objects import policy_of_row
from approvals.gate.policies import facts_of
from approvals.models import Finding, Policy, Request, Review, SpecWrite, Verdict
from approvals.policy import Facts
from approvals.steps import evaluate
from provisioner.expressions import ExpressionAnswer, ExpressionOutcome, Language
from tests.support.approvals import world
from tests.support.approvals.asked_gate import ask_again
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import HARMLESS, allow, look, save, words_of
from tests.support.approvals.world import acting
from tests.support.memory import resident_bytes


def add_finding(request: Request, severity: str, rule: str = "X-1") -> None:
    report = request.reports.get()
    report.severities = {severity: 1}
    report.save(update_fields=["severities"])
    Finding.objects.create(
        report=report, position=0, rule=rule, section="objects", severity=severity, message="m", fingerprint="f"
    )


def test_a_grant_whose_expression_is_true_approves_and_says_why(env: World, request_: Request) -> None:
    policy = save(env)
    allow(env, policy)
    assert look(request_).state == "approved"
    assert words_of(policy) == ("approves", '`worst == "safe"` is true')
    given = Review.objects.get()
    assert (given.channel, given.username, given.policy_version) == ("policy", f"pratique:policy:{policy.pk}", 1)
    assert Verdict.objects.get().verdict == "Approved"


def test_S38_a_grant_may_allow_that_secrets_are_written_which_nobody_is_told_about(
    env: World, request_: Request
) -> None:
    add_finding(request_, "notable", "SEC-07")
    policy = save(env)
    allow(env, policy)
    assert look(request_).state == "in_review"
    save(env, expression='worst in ["safe", "notable"] && severities["notable"] == written_secrets')
    assert look(request_).state == "approved"


def test_S05_no_grant_approves_what_somebody_unknown_wrote_a_part_of(env: World, request_: Request) -> None:
    """Whoever is known and asked for it again answers for it; that a person approves it takes no policy."""
    SpecWrite.objects.update(username="")
    policy = save(env)
    allow(env, policy)
    assert look(request_).state == "in_review"
    assert "somebody unknown wrote a part of the spec" in words_of(policy)[1]


def test_S13_an_edited_grant_is_asked_anew_and_its_word_replaces_the_earlier_one(env: World, request_: Request) -> None:
    save(env, name="freeze", kind="guard", expression="false")
    policy = save(env)
    allow(env, policy)
    assert look(request_).state == "in_review"
    save(env, expression=f"{HARMLESS} || false")
    assert look(request_).state == "in_review"
    assert [(one.policy_version, one.is_replaced) for one in Review.objects.all()] == [(1, True), (2, False)]
    save(env, name="freeze", kind="guard", expression="true")
    assert look(request_).state == "approved"


@pytest.mark.parametrize(("rule", "severity"), [("X-1", "dangerous"), ("UNJUDGED", "notable")])
def test_S36_a_grant_on_safe_approves_no_field_that_no_rule_judges(
    env: World, request_: Request, rule: str, severity: str
) -> None:
    """A grant whose expression is not true leaves the request alone and says why."""
    add_finding(request_, severity, rule)
    policy = save(env)
    allow(env, policy)
    assert look(request_).state == "in_review"
    assert words_of(policy) == ("silent", f'`worst == "safe"` is false; the worst new finding is {rule} ({severity})')


UNJUDGED = {
    "rule": "UNJUDGED",
    "severity": "notable",
    "fingerprint": "f",
    "isNew": True,
    "ref": {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "harbour", "name": "web"},
    "evidence": {"fields": ["spec.template.spec.dnsPolicy"]},
}


def test_S36_policies_are_told_how_many_fields_no_rule_judges_and_which(env: World, request_: Request) -> None:
    report = request_.reports.get()
    many = {**UNJUDGED, "fingerprint": "g", "evidence": {"fields": ["data.a"], "all_places": [{}, {}]}}
    many["ref"] = {**UNJUDGED["ref"], "group": "", "kind": "ConfigMap"}
    report.body = {
        **report.body,
        "findings": [UNJUDGED, many],
        "plan": {**report.body["plan"], "actions": [{"action": "adopt", "ref": UNJUDGED["ref"]}]},
        "private": [{**UNJUDGED, "section": "objects", "message": "m"}],
    }
    found = facts_of(request_, report)
    assert (found["unjudged"], found["unjudged_paths"]) == (
        4,
        ["ConfigMap:data.a", "Deployment.apps:spec.template.spec.dnsPolicy"],
    )
    assert facts_of(request_, report, {"f"})["unjudged"] == 2


def test_S36_no_grant_approves_a_report_that_does_not_say_what_was_judged(env: World, request_: Request) -> None:
    """One of a version before: what no rule judges is among what it calls safe."""
    report = request_.reports.get()
    actions = [{"action": "update", "ref": UNJUDGED["ref"]}, {"action": "none", "ref": UNJUDGED["ref"]}]
    del report.body["unjudged"]
    report.body["plan"]["actions"] = actions
    report.save()
    policy = save(env)
    guard = save(env, name="judged", kind="guard", expression="unjudged == 0")
    allow(env, policy)
    assert look(request_).state == "in_review"
    assert "made before Pratique said which fields no rule judges" in words_of(policy)[1]
    assert words_of(guard)[0] == "holds"


def test_S13_a_policy_that_kubernetes_does_not_let_approve_does_not(env: World, request_: Request) -> None:
    policy = save(env)
    assert look(request_).state == "in_review"
    assert "does not allow pratique:policy" in words_of(policy)[1]


@pytest.mark.parametrize("asks", ["ada", "bert", "carol", "rita"])
def test_S13_a_grant_approves_nothing_that_anybody_who_ever_saved_it_asks_for(env: World, asks: str) -> None:
    """ada wrote it, bert and carol edited it after: what stands is the work of all three. rita had no hand in it."""
    people = {"ada": env.ada, "bert": env.bert, "carol": world.user("carol", env.cluster), "rita": env.rita}
    for name in ("ada", "bert", "carol"):
        env.kubernetes.allow(name, "approve")
        policy = save(env, by=acting(people[name]), expression=f'{HARMLESS} || "{name}" == ""')
    allow(env, policy)
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), people[asks])
    found = look(world.in_review(Request.objects.get())).state
    if asks == "rita":
        assert (found, words_of(policy)[0]) == ("approved", "approves")
    else:
        assert found == "in_review"
        assert f"its author or editor {asks} requested this change" in words_of(policy)[1]


def test_S13_an_editor_between_is_known_under_another_name(env: World) -> None:
    """The name of then, which their account has no more, and the name that it has now."""
    env.kubernetes.allow("bert", "approve")
    env.kubernetes.allow("ada", "impersonate")
    for who in (env.ada, env.bert, env.ada):
        policy = save(env, by=acting(who))
    env.bert.kubernetes_identities.update(username="bert-later")
    for name in ("bert", "bert-later"):
        again = User.objects.create_user(f"{name}-again")
        assert any(
            access.Person(name, user_id=again.pk).is_same(one)
            for _, one in access.writers_of(policy_of_row(policy), env.cluster)
        )
    assert not any(
        access.Person("rita").is_same(one) for _, one in access.writers_of(policy_of_row(policy), env.cluster)
    )


def test_S13_an_editor_whom_only_a_process_of_the_version_before_knew_is_not_forgotten(env: World) -> None:
    """It writes the columns of the last editor alone."""
    env.kubernetes.allow("carol", "approve")
    policy = save(env)
    bert = {"username": "bert", "uid": "", "user_id": env.bert.pk, "subjects": []}
    Policy.objects.update(editor=env.bert, editor_known_as=bert)
    save(env, by=acting(world.user("carol", env.cluster)))
    policy.refresh_from_db()
    assert [one["username"] for one in policy.writers] == ["ada", "bert", "carol"]


@pytest.mark.parametrize("leaves", ["loses the right", "is switched off", "is nobody there any more"])
def test_S13_a_grant_stands_on_its_own_identity_though_who_wrote_it_leaves(
    env: World, request_: Request, leaves: str
) -> None:
    policy = save(env)
    allow(env, policy)
    env.kubernetes.allowed.discard(("ada", "approve", "*"))
    if leaves == "is switched off":
        User.objects.filter(pk=env.ada.pk).update(is_active=False)
    if leaves == "is nobody there any more":
        env.ada.kubernetes_identities.all().delete()
    env.kubernetes.asked.clear()
    found = look(request_)
    assert found.state == "approved", words_of(policy)
    assert {name for name, _ in env.kubernetes.asked} == {f"pratique:policy:{policy.pk}"}
    ask_again(Request.objects.select_related("deployment__cluster").get(pk=found.pk))
    env.kubernetes.allowed.discard((f"pratique:policy:{policy.pk}", "approve", "*"))
    with pytest.raises(gate.Waiting, match="some approvals no longer count"):
        ask_again(Request.objects.select_related("deployment__cluster").get(pk=found.pk))


def test_S13_its_editor_is_asked_each_time_that_it_is_saved(env: World) -> None:
    policy = save(env)
    env.kubernetes.allowed.discard(("ada", "approve", "*"))
    with pytest.raises(NotAllowed, match="you need `approve` on every BundleDeployment of cluster prod"):
        save(env, expression="true")
    assert Policy.objects.get().version == policy.version


def test_S13_nobody_writes_a_policy_for_what_they_may_not_approve(env: World) -> None:
    with pytest.raises(NotAllowed):
        save(env, by=acting(env.bert))
    env.kubernetes.allow("bert", "approve", "strimzi")
    assert save(env, by=acting(env.bert), names=["strimzi"]).version == 1
    with pytest.raises(NotAllowed):
        save(env, by=acting(env.bert), names=["strim*"])


def test_S13_unknown_findings_block_grants(env: World, request_: Request) -> None:
    add_finding(request_, "unknown")
    policy = save(env, expression="true")
    allow(env, policy)
    assert look(request_).state == "in_review"
    assert "unknown findings" in words_of(policy)[1]


@pytest.mark.parametrize("allows_known_powers", [False, True])
@pytest.mark.parametrize("rule", ["OWN-PRATIQUE-01", "OWN-PRATIQUE-03"])
def test_S22_content_that_touches_pratique_is_for_people(
    env: World, request_: Request, rule: str, *, allows_known_powers: bool
) -> None:
    """Of a first installation no power is known."""
    add_finding(request_, "critical", rule)
    policy = save(env, expression="true", allows_known_powers=allows_known_powers)
    allow(env, policy)
    assert look(request_).state == "in_review"
    assert f"which only people can approve: {rule} (critical)" in words_of(policy)[1]


@pytest.mark.parametrize("expression", ["true", "false", 'actions["nonsense"] == 0'])
def test_S09_a_grant_is_not_asked_about_content_that_adopts_objects(
    env: World, request_: Request, expression: str
) -> None:
    """Its answer would tell what only people may know who may get the object."""
    report = request_.reports.get()
    report.actions = {"adopt": 1}
    report.save(update_fields=["actions"])
    policy = save(env, expression=expression)
    allow(env, policy)
    assert look(request_).state == "in_review"
    words = "it was not evaluated: the request deletes, replaces or adopts objects, which only people can acknowledge"
    assert words_of(policy) == ("silent", words)


def test_an_unknown_requester_is_for_people(env: World) -> None:
    world.submit_spec(env.cluster, world.seen("other", world.spec()))
    request = world.in_review(Request.objects.get())
    policy = save(env, expression="true")
    allow(env, policy)
    assert look(request).state == "in_review"


@pytest.mark.parametrize(
    ("expression", "result"), [("false", "holds"), ('actions["nonsense"] == 0', "error")], ids=["false", "error"]
)
def test_a_guard_that_is_not_true_holds_everybody_back(
    env: World, request_: Request, expression: str, result: str
) -> None:
    guard = save(env, kind="guard", name="freeze", expression=expression, message="frozen until Monday")
    world.review(request_, acting(env.ada))
    assert look(request_).state == "in_review"
    assert words_of(guard)[0] == result
    assert "frozen until Monday" in words_of(guard)[1]


def test_S09_a_guard_says_of_adopted_objects_that_it_counts_more_than_everybody_sees(
    env: World, request_: Request
) -> None:
    """It says so whatever there is, so that nobody learns from it whether an object differs."""
    report = request_.reports.get()
    report.actions = {"adopt": 1}
    report.save(update_fields=["actions"])
    guard = save(env, kind="guard", name="careful", expression="false", message="not on a Friday")
    assert look(request_).state == "in_review"
    words = "of the objects to be adopted it also counts findings that are shown only to people who may get these"
    assert words_of(guard)[0] == "holds"
    assert words_of(guard)[1].startswith(f"not on a Friday; {words}")


def test_dry_run_says_what_it_would_do_and_does_nothing(env: World, request_: Request) -> None:
    policy = save(env, mode="dry-run")
    allow(env, policy)
    assert look(request_).state == "in_review"
    assert words_of(policy)[0] == "approves"
    assert not Review.objects.exists()


def test_a_saved_policy_is_a_new_version(env: World) -> None:
    assert save(env).version == 1
    assert save(env, expression="false").version == 2


@pytest.mark.parametrize("expression", ["", "worst", "wrst == 1", "1 +"])
def test_expressions_are_checked_when_saved(env: World, expression: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        save(env, expression=expression)
    assert refused.value.facts["field"] == "expression"


def test_the_verdict_is_given_once(env: World, request_: Request) -> None:
    policy = save(env)
    allow(env, policy)
    look(request_)
    evaluate.run(Request.objects.select_related("deployment__cluster").get(pk=request_.pk), "test")
    assert Verdict.objects.count() == 1


DOUBLING = "[name]" + ".map(a, a + a)" * 27 + ".size() > 0"
SHARED = "[name]" + ".map(a, [a, a])" * 26
HOSTILE = {
    "doubling": (DOUBLING, "could not be evaluated: it needs more memory than 256 MiB"),
    "comparing": (f"{SHARED} == {SHARED}", "could not be evaluated: it took longer than "),
}


@pytest.mark.parametrize(("expression", "words"), HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("kind", ["guard", "grant"])
def test_S26_a_hostile_policy_is_an_error_in_words_and_never_true(
    env: World, request_: Request, kind: str, expression: str, words: str
) -> None:
    before = resident_bytes()
    hostile = save(env, kind=kind, name="hostile", expression=expression)
    allow(env, hostile)
    innocent = save(env, kind="guard", name="innocent", expression='name == "strimzi"')
    assert look(request_).state == "in_review"
    assert words_of(hostile)[0] == "error"
    assert words in words_of(hostile)[1]
    assert words_of(innocent)[0] == "passes"
    assert resident_bytes() - before < 32 * 2**20, "this process is the worker"


def test_S26_what_others_leave_no_time_for_is_evaluated_alone(
    env: World, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ask = list[int](), policies.ask

    def without_time(language: Language, texts: Sequence[str], facts: Facts) -> list[ExpressionAnswer]:
        asked.append(len(texts))
        cut_short = [ExpressionAnswer(ExpressionOutcome.ENDED, words="those before it took longer") for _ in texts]
        return cut_short if len(texts) > 1 else ask(language, texts, facts)

    monkeypatch.setattr(policies, "ask", without_time)
    guards = [
        save(env, kind="guard", name=f"guard-{number}", expression=f"unjudged < {number}") for number in (1, 2, 3)
    ]
    look(request_)
    assert [words_of(guard)[0] for guard in guards] == ["passes"] * 3
    assert sorted(asked)[-4:] == [1, 1, 1, 3]


@pytest.mark.parametrize("expression", ["(" * 1990 + "true" + ")" * 1990, "[" * 4000, "'" + "a" * 3900], ids=len)
def test_S26_a_policy_that_is_hostile_to_the_compiler_is_not_saved(env: World, expression: str) -> None:
    before = resident_bytes()
    with pytest.raises(InvalidInput, match="the expression is invalid: ") as caught:
        save(env, expression=expression)
    assert len(str(caught.value)) < 1_200
    assert not Policy.objects.exists()
    assert resident_bytes() - before < 32 * 2**20
