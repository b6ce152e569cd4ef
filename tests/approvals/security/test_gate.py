"""The gate asks guards and waivers again, and labels do not lead past a guard (security-rules.md S14, S25)."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache

from approvals import access, gate
from approvals.ledger.deciding import deciding_objects
from approvals.ledger.labels import MAX_KEPT
from approvals.lifecycle import MAX_ROUNDS
from approvals.models import BundleDeployment, Policy, PolicyEvaluation, Request, SpecWrite
from tests.support.approvals import world
from tests.support.approvals.asked_gate import ask_again
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, look, save
from tests.support.approvals.waivers import CALM, approve, finding, report


@pytest.fixture
def approved(env: World) -> Request:
    """Approved by ada, who accepted its one dangerous finding because a guard held it back."""
    env.kubernetes.allow("ada", "override")
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = report(Request.objects.get(), finding(1))
    save(env, kind="guard", expression=CALM)
    approve(request, env.ada, "f1")
    assert look(request).state == "approved"
    return Request.objects.select_related("deployment__cluster").get()


def test_what_was_approved_passes_while_nothing_changed(approved: Request) -> None:
    ask_again(approved)


def test_S25_a_waiver_whose_author_may_no_longer_override_makes_it_wait(env: World, approved: Request) -> None:
    env.kubernetes.allowed.discard(("ada", "override", "*"))
    with pytest.raises(gate.Waiting, match=r"what ada accepted no longer counts: .* override"):
        ask_again(approved)


def test_S25_it_waits_for_a_lost_waiver_also_where_no_guard_needs_it(env: World, approved: Request) -> None:
    Policy.objects.update(is_active=False)
    env.kubernetes.allowed.discard(("ada", "override", "*"))
    with pytest.raises(gate.Waiting, match="what ada accepted no longer counts"):
        ask_again(approved)


def test_promise_4_a_waiver_about_which_nobody_answers_makes_it_wait(env: World, approved: Request) -> None:
    ask = env.kubernetes.ask

    def ask_or_fail(cluster: Any, identity: Any, question: Any) -> Any:
        env.kubernetes.is_down = question.verb == "override"
        return ask(cluster, identity, question)

    env.kubernetes.ask = ask_or_fail  # type: ignore[method-assign] # the cluster goes silent for one question
    with pytest.raises(gate.Waiting, match="counts as no"):
        ask_again(approved)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"expression": "false", "message": "frozen until Monday"}, "frozen until Monday"),
        ({"expression": "waived == 0"}, "`waived == 0` is false"),
        ({"expression": 'actions["nonsense"] == 0'}, "could not be evaluated"),
    ],
    ids=["a freeze", "no waivers any more", "an error"],
)
def test_a_guard_that_newly_holds_makes_it_wait(
    env: World, approved: Request, change: dict[str, str], words: str
) -> None:
    save(env, kind="guard", **change)
    with pytest.raises(gate.Waiting, match="guard routine") as waiting:
        ask_again(approved)
    assert words in str(waiting.value)
    assert PolicyEvaluation.objects.get(policy_version=2).result in ("holds", "error")
    save(env, kind="guard", expression="true")
    ask_again(approved)


def test_a_guard_that_is_new_since_the_approval_makes_it_wait(env: World, approved: Request) -> None:
    save(env, name="freeze", kind="guard", expression="false")
    with pytest.raises(gate.Waiting, match="guard freeze"):
        ask_again(approved)


@pytest.mark.parametrize("change", [{"mode": "dry-run"}, {"is_active": False}, {"labels": {"tier": "prod"}}])
def test_a_guard_that_does_not_concern_it_does_not_make_it_wait(
    env: World, approved: Request, change: dict[str, Any]
) -> None:
    save(env, kind="guard", **{"expression": "false", **change})
    ask_again(approved)


def relabel(env: World, **labels: str) -> Request:
    """The same deployment with other labels, as the watch sees it."""
    deployment = BundleDeployment.objects.get()
    obj = world.seen("strimzi", deployment.spec, uid=deployment.uid, generation=deployment.generation, labels=labels)
    world.submit_spec(env.cluster, obj)
    return Request.objects.order_by("-number")[0]


def labelled(env: World, **labels: str) -> Request:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec(), labels=labels), env.rita)
    return world.in_review(Request.objects.get())


@pytest.mark.parametrize("state", ["in_review", "approved"])
def test_S14_other_labels_are_a_new_round(env: World, state: str) -> None:
    labelled(env, tier="prod")
    Request.objects.update(state=state)
    found = relabel(env)
    assert (found.state, found.problem_code, found.number) == ("stale", "labels-changed", 1)
    assert (found.labels, found.earlier_labels) == ({}, [{"tier": "prod"}])
    (voided,) = found.voided_rounds.all()
    assert (voided.round, voided.code, voided.objects_differing) == (1, "labels-changed", [])
    assert "the labels changed since the report" in voided.words


def test_S14_the_same_labels_are_nothing_new(env: World) -> None:
    labelled(env, tier="prod", team="a")
    found = relabel(env, team="a", tier="prod")
    assert (found.state, found.earlier_labels) == ("in_review", [])


def test_S14_labels_that_change_while_it_is_prepared_go_into_its_first_round(env: World) -> None:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec(), labels={"tier": "prod"}), env.rita)
    found = relabel(env)
    assert (found.state, found.labels, found.earlier_labels) == ("preparing", {}, [{"tier": "prod"}])


def test_S14_what_is_being_applied_is_left_alone(env: World) -> None:
    labelled(env, tier="prod")
    Request.objects.update(state="applying")
    assert relabel(env).labels == {"tier": "prod"}


def test_S14_labels_that_go_back_and_forth_are_kept_once(env: World) -> None:
    labelled(env, tier="prod")
    for _ in range(3):
        relabel(env)
        found = relabel(env, tier="prod")
    assert found.earlier_labels == [{"tier": "prod"}, {}]


def test_S14_labels_that_keep_changing_end_it_and_are_not_kept_without_end(env: World) -> None:
    """As a controller may write them: every change costs a report, and reviewers never catch up."""
    labelled(env, tier="0")
    for number in range(1, MAX_ROUNDS + 1):
        found = relabel(env, tier=str(number))
        assert (found.state, found.problem_code) == ("stale", "labels-changed")
        Request.objects.update(state="in_review", round=number + 1)
    found = relabel(env, tier="last")
    assert (found.state, found.problem_code) == ("failed", "changes-again")
    assert "the labels changed since the report" in found.problem
    assert "reported again 5 times already" in found.problem
    assert "ask-again" in found.remedy
    assert (found.labels, len(found.earlier_labels)) == ({"tier": "last"}, MAX_ROUNDS + 1)


def flapped(env: World, times: int) -> Request:
    """In review after its labels changed so often while it was prepared, where that is no round."""
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec(), labels={"tier": "prod"}), env.rita)
    for number in range(times):
        relabel(env, tier=str(number))
    return world.in_review(Request.objects.get())


@pytest.mark.parametrize("times", [MAX_KEPT + 1, MAX_KEPT + 30])
def test_S14_more_labels_than_are_kept_shake_off_no_guard_and_get_no_grant(env: World, times: int) -> None:
    request = flapped(env, times)
    assert len(request.earlier_labels) == MAX_KEPT + 1
    save(env, name="lost", kind="guard", expression="false", labels={"tier": "once-perhaps"})
    allow(env, save(env, name="gain", expression="true", labels={"tier": str(times - 1)}))
    approve(request, env.ada)
    assert look(request).state == "in_review"
    assert not request.reviews.filter(policy__isnull=False).exists()
    assert PolicyEvaluation.objects.get(policy__kind="guard").result == "holds"


def test_S14_more_labels_than_are_kept_leave_policies_alone_that_select_by_none(env: World) -> None:
    request = flapped(env, MAX_KEPT + 1)
    save(env, name="others", kind="guard", expression="false", labels={"tier": "x"}, names=["others-*"])
    allow(env, save(env, name="all", expression="true"))
    assert look(request).state == "approved"


def test_S05_labels_do_not_take_back_a_no_that_is_not_counted_yet(env: World) -> None:
    request = labelled(env, tier="prod")
    world.review(request, world.acting(env.ada), "Deny", reason="no")
    assert relabel(env).state == "in_review"
    assert look(Request.objects.get()).state == "denied"


@pytest.mark.parametrize("before", ["in_review", "failed", "superseded", "applied"])
def test_S14_a_guard_is_not_shaken_off_with_a_new_version_without_its_label(env: World, before: str) -> None:
    old = labelled(env, tier="prod")
    Request.objects.update(state=before)
    obj = world.seen("strimzi", world.spec("2.0.0"), uid=old.deployment.uid, generation=2)
    world.submit_spec(env.cluster, obj, env.rita)
    request = world.in_review(Request.objects.get(number=2))
    assert (request.labels, request.earlier_labels) == ({}, [{"tier": "prod"}])
    save(env, kind="guard", expression="false", labels={"tier": "prod"})
    approve(request, env.ada)
    assert look(request).state == "in_review"


def test_S14_labels_of_what_was_replaced_by_something_applied_are_forgotten(env: World) -> None:
    old = labelled(env, tier="prod")
    Request.objects.update(state="applied", earlier_labels=[{"tier": "older"}])
    world.submit_spec(
        env.cluster, world.seen("strimzi", world.spec("2"), uid=old.deployment.uid, generation=2), env.rita
    )
    assert Request.objects.get(number=2).earlier_labels == [{"tier": "prod"}]


def test_S14_a_label_put_on_for_a_grant_does_not_let_it_approve(env: World) -> None:
    labelled(env)
    relabel(env, tier="test")
    Request.objects.update(state="in_review")
    allow(env, save(env, expression="true", labels={"tier": "test"}))
    assert look(Request.objects.get()).state == "in_review"


PROD = 'labels["tier"] == "prod"'


@pytest.mark.parametrize(
    ("effect", "conditions", "expression"),
    [
        ("Guard", [{"name": "prod", "expression": PROD}], "false"),
        ("Guard", [], f"!({PROD})"),
        ("Grant", [{"name": "test", "expression": 'labels["tier"] == "test"'}], "true"),
        ("Grant", [], 'labels["tier"] == "test"'),
    ],
)
def test_S14_a_policy_that_asks_for_labels_is_asked_with_every_set_of_them(
    env: World, effect: str, conditions: list[dict[str, str]], expression: str
) -> None:
    labelled(env, tier="prod")
    relabel(env, tier="test")
    Request.objects.update(state="in_review")
    request = Request.objects.get()
    action = "Deny" if effect == "Guard" else "Approve"
    spec = {"effect": effect, "validations": [{"expression": expression}], "validationActions": [action]}
    meta = {"name": "by-tier", "uid": "u-1", "generation": 1, "resourceVersion": "1"}
    obj = {"metadata": meta, "spec": {**spec, **({"matchConditions": conditions} if conditions else {})}}
    writer = access.person_of(world.acting(env.ada), env.cluster).record()
    deciding_objects.observe(cluster=env.cluster, kind="ApprovalPolicy", obj=obj, writer=writer, is_listed=True)
    env.kubernetes.allow("pratique:policy:by-tier", "approve")
    if effect == "Guard":
        approve(request, env.ada)
    assert look(request).state == "in_review"
    Request.objects.update(labels={"tier": "test"}, earlier_labels=[])
    assert look(request).state == "approved"


@pytest.fixture
def unasked(env: World) -> Request:
    """Written with kubectl, so nobody knows by whom; ada and bert may approve and use the ServiceAccount."""
    for who in ("ada", "bert"):
        env.kubernetes.allow(who, "approve")
        env.kubernetes.allow(who, "impersonate")
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()))
    return world.in_review(Request.objects.get())


@pytest.mark.parametrize("verb", ["update", "patch", "create"])
def test_S05_one_who_may_have_asked_is_not_enough_where_nobody_knows(env: World, unasked: Request, verb: str) -> None:
    env.kubernetes.allow("ada", verb)
    assert approve(unasked, env.ada).may_write
    found = look(unasked)
    assert (found.state, found.problem_code) == ("in_review", "held-back")
    assert "one more approval is needed" in found.problem
    approve(unasked, env.bert)
    assert look(unasked).state == "approved"


def test_S05_of_two_who_may_have_asked_one_counts(env: World, unasked: Request, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    for person in (env.ada, env.bert):
        env.kubernetes.allow(person.username, "update")
        approve(unasked, person)
    assert look(unasked).state == "in_review"


def test_S05_one_who_may_not_write_it_is_enough(env: World, unasked: Request) -> None:
    assert not approve(unasked, env.ada).may_write
    assert look(unasked).state == "approved"


def test_promise_4_who_may_have_asked_cannot_be_found_out_so_they_may(env: World, unasked: Request) -> None:
    ask = env.kubernetes.ask

    def ask_or_fail(cluster: Any, identity: Any, question: Any) -> Any:
        env.kubernetes.is_down = question.verb == "patch"
        return ask(cluster, identity, question)

    env.kubernetes.ask = ask_or_fail  # type: ignore[method-assign] # the cluster goes silent for one question
    assert approve(unasked, env.ada).may_write


BY_ACCOUNT = [
    ("create", "serviceaccounts/token ci/deployer"),
    ("impersonate", "serviceaccounts ci/deployer"),
    ("impersonate:serviceaccount", "serviceaccounts ci/deployer"),
    ("create", "pods ci/"),
    ("patch", "deployments ci/"),
    ("update", "cronjobs ci/"),
    ("get", "pods/exec ci/"),
    ("patch", "pods/ephemeralcontainers ci/"),
    ("get", "secrets ci/"),
    ("create", "secrets ci/"),
    ("create", "podcertificaterequests ci/"),
    ("bind", "clusterroles ci/admin"),
    ("escalate", "roles ci/"),
    ("impersonate", "groups /system:masters"),
    ("impersonate", "users /"),
    ("approve", "signers /kubernetes.io/kube-apiserver-client"),
    ("create", "nodes/proxy /"),
]


@pytest.mark.parametrize(
    ("is_stamped", "verb", "right"),
    # How the account is known makes no difference to what is asked about it.
    [*((True, *question) for question in BY_ACCOUNT), (False, *BY_ACCOUNT[0])],
    ids=lambda part: {True: "the account is proved", False: "nobody is"}.get(part, part),
)
def test_S43_who_may_act_as_the_account_that_wrote_it_is_not_enough(
    env: World, unasked: Request, verb: str, right: str, is_stamped: bool
) -> None:
    """By a token, a pod or a Secret of an account that may write deployments, one person asks and approves."""
    if is_stamped:
        SpecWrite.objects.update(proved_as="system:serviceaccount:ci:deployer")
    else:
        Request.objects.update(possible_authors=[["User", "system:serviceaccount:ci:deployer"]])
    env.kubernetes.allow("ada", verb, right)
    assert approve(unasked, env.ada).may_write
    found = look(unasked)
    assert (found.state, found.problem_code) == ("in_review", "held-back")
    assert f"ada may {verb} {right.split(' ', maxsplit=1)[0].partition('/')[0]}" in found.problem
    approve(unasked, env.bert)
    assert look(unasked).state == "approved"


@pytest.mark.parametrize(
    ("group", "verb", "right"),
    [
        ("system:serviceaccounts:ci", "create", "pods ci/"),
        ("writers", "impersonate", "groups /writers"),
        ("system:serviceaccounts", "get", "events nowhere/"),
    ],
    ids=lambda one: one,
)
def test_S43_who_may_be_a_member_of_a_group_that_may_write_it_is_not_enough(
    env: World, unasked: Request, group: str, verb: str, right: str
) -> None:
    Request.objects.update(possible_authors=[["Group", group]])
    env.kubernetes.allow("ada", verb, right)
    assert approve(unasked, env.ada).doubt


def test_S43_of_a_request_from_before_anybody_looked_everybody_may_be_its_author(env: World, unasked: Request) -> None:
    Request.objects.update(possible_authors=[["Group", "system:serviceaccounts"]])
    assert "nobody can tell which ServiceAccounts" in approve(unasked, env.ada).doubt


def test_S43_rights_elsewhere_say_nothing(env: World, unasked: Request) -> None:
    Request.objects.update(possible_authors=[["User", "system:serviceaccount:ci:deployer"], ["User", "rita"]])
    for verb, right in BY_ACCOUNT[:-4]:
        env.kubernetes.allow("ada", verb, right.replace("ci/", "shop/"))
    assert not approve(unasked, env.ada).doubt
    assert len(env.kubernetes.asked) == len(set(env.kubernetes.asked)) < 100, "each right once, and not too many"


@pytest.mark.parametrize(
    ("via", "username", "verb", "right", "is_doubted"),
    [
        ("kubectl", "rita", "impersonate", "users /rita", True),
        ("kubectl", "rita", "impersonate", "users /zoe", False),
        ("kubectl", "rita", "approve", "signers /kubernetes.io/kube-apiserver-client", True),
        ("kubectl", "rita", "update", "*", False),
        ("browser", "rita", "impersonate", "users /rita", False),
        ("browser", "system:serviceaccount:ci:bot", "create", "serviceaccounts/token ci/bot", True),
        ("gitops", "system:serviceaccount:argocd:ctrl", "create", "pods/exec argocd/", True),
        ("gitops", "system:serviceaccount:argocd:ctrl", "create", "pods/exec shop/", False),
    ],
)
def test_S43_who_may_borrow_the_name_of_a_known_requester_is_not_enough(
    env: World, unasked: Request, via: str, username: str, verb: str, right: str, is_doubted: bool
) -> None:
    SpecWrite.objects.update(username=username, via=via)
    asker = {
        "username": username,
        "uid": "",
        "groups": [],
        "via": via,
        "user_id": None,
        "groups_at": "2126-01-01T00:00:00Z",
    }
    Request.objects.update(is_requester_known=True, requesters=[asker])
    env.kubernetes.allow("ada", verb, right)
    review = approve(Request.objects.get(), env.ada)
    assert bool(review.doubt) is is_doubted
    assert (look(unasked).state == "in_review") is is_doubted


def test_S43_who_requested_it_here_as_well_is_not_taken_for_somebody_who_borrowed_the_name(
    env: World, unasked: Request
) -> None:
    asker = {"username": "rita", "uid": "u", "groups": [], "via": "kubectl", "user_id": None}
    SpecWrite.objects.update(username="rita", via="kubectl")
    Request.objects.update(is_requester_known=True, requesters=[asker, {**asker, "uid": "", "via": "browser"}])
    env.kubernetes.allow("ada", "impersonate", "users /rita")
    assert not approve(Request.objects.get(), env.ada).doubt


def test_S05_who_may_only_delete_it_may_have_deleted_it(env: World, unasked: Request) -> None:
    Request.objects.update(purpose="delete")
    env.kubernetes.allow("ada", "delete")
    assert approve(Request.objects.get(), env.ada).may_write


@pytest.mark.parametrize("change", [{"DOUBT_WRITERS": False}, {"SELF_APPROVAL": True}], ids=str)
def test_S05_the_operator_may_trust_those_who_write(
    env: World, unasked: Request, settings: Any, change: dict[str, bool]
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, **change}
    env.kubernetes.allow("ada", "update")
    approve(unasked, env.ada)
    assert look(unasked).state == "approved"


def test_S05_where_it_is_known_who_asked_an_approver_may_write_too(env: World) -> None:
    env.kubernetes.allow("ada", "update")
    request = labelled(env)
    approve(request, env.ada)
    assert look(request).state == "approved"


def test_S05_at_the_gate_it_is_counted_the_same(env: World, unasked: Request, settings: Any) -> None:
    env.kubernetes.allow("ada", "update")
    settings.PRATIQUE = {**settings.PRATIQUE, "DOUBT_WRITERS": False}
    approve(unasked, env.ada)
    assert look(unasked).state == "approved"
    settings.PRATIQUE = {**settings.PRATIQUE, "DOUBT_WRITERS": True}
    cache.clear()
    with pytest.raises(gate.Waiting, match="one more approval is needed"):
        ask_again(Request.objects.select_related("deployment__cluster").get())
    assert not Policy.objects.exists()
