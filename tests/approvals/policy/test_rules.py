"""The pure rules: moves, counting, policies; and the audit chain."""

from types import SimpleNamespace

import pytest
from django.db import DatabaseError, connection, transaction

from approvals import audit, lifecycle, policy
from approvals.lifecycle import OPEN, SETTLED, Event, State
from approvals.models import AuditEntry
from approvals.policy import Ballot, Decision
from approvals.policy.expression import MAX_EXPRESSION
from provisioner.expressions.evaluator import ask
from tests.support.approvals.policies import FACTS


def evaluated(expression: str, facts: policy.Facts = FACTS) -> policy.Answer:
    (found,) = ask(policy.POLICY, [expression], facts)
    return policy.answer(expression, facts, policy.POLICY, found)


def ballot(decision: str = "Approve", **changes: bool) -> Ballot:
    return Ballot(decision, **{"is_grant": False, "counts": True, "may_use_account": False, **changes})


def test_promise_5_the_only_move_out_of_a_settled_state_puts_back_what_ran_before() -> None:
    out = {move: after for move, after in lifecycle.TRANSITIONS.items() if move[0] in SETTLED}
    assert out == {(State.APPLIED, Event.RESTORE): State.RESTORING}
    after = {state for (before, _), state in lifecycle.TRANSITIONS.items() if before == State.RESTORING}
    assert after == {State.FAILED, State.APPLIED}, "nothing is decided or applied again"


def test_every_open_state_has_a_way_out() -> None:
    assert {state for state, _ in lifecycle.TRANSITIONS} >= set(OPEN)


@pytest.mark.parametrize("state", sorted(State))
def test_only_a_request_in_review_can_be_approved(state: State) -> None:
    assert lifecycle.may(state, Event.APPROVE) == (state == State.IN_REVIEW)


@pytest.mark.parametrize(
    ("ballots", "needed", "held_by", "is_known", "expected"),
    [
        pytest.param([], 1, [], True, Decision.UNDECIDED, id="nobody has voted"),
        pytest.param([ballot()], 1, [], True, Decision.APPROVED, id="one of one"),
        pytest.param([ballot()], 2, [], True, Decision.UNDECIDED, id="one of two"),
        pytest.param([ballot(), ballot("Deny")], 1, [], True, Decision.DENIED, id="deny wins"),
        pytest.param([ballot(counts=False)], 1, [], True, Decision.UNDECIDED, id="who may no longer does not count"),
        pytest.param([ballot()], 1, ["freeze"], True, Decision.UNDECIDED, id="a guard holds back"),
        pytest.param([ballot(is_grant=True)], 3, [], True, Decision.APPROVED, id="a grant is enough"),
        pytest.param([ballot(is_grant=True)], 1, ["freeze"], True, Decision.UNDECIDED, id="a guard holds a grant back"),
        pytest.param([ballot()], 1, [], False, Decision.UNDECIDED, id="unknown requester, account not usable"),
        pytest.param([ballot(may_use_account=True)], 1, [], False, Decision.APPROVED, id="unknown, but usable"),
    ],
)
def test_counting(ballots: list[Ballot], needed: int, held_by: list[str], is_known: bool, expected: Decision) -> None:
    tally = policy.decide(ballots, needed=needed, held_by=held_by, is_requester_known=is_known)
    assert tally.decision == expected


@pytest.mark.parametrize(
    ("expression", "is_true"),
    [
        ('worst_new == "safe" && actions["delete"] == 0', True),
        ("severities['critical'] > 0", False),
        ('"kafka" in labels.map(k, labels[k])', True),
        ('kinds.exists(k, k.endsWith(".rbac.authorization.k8s.io"))', False),
        ('name.matches("^(a+)+$")', False),
    ],
)
def test_expressions_over_facts(expression: str, is_true: bool) -> None:
    answer = evaluated(expression)
    assert (answer.is_true, answer.is_error) == (is_true, False)


@pytest.mark.parametrize(
    "expression",
    [
        'actions["replace"] == 0',
        "1 / 0 == 1",
        "[1,2,3].all(a, [1,2,3].all(b, [1,2,3].all(c, [1].all(d, a + b + c + d > 0)))) && wrong",
        "worst + 1 == 2",
        "worst",
        "",
        "x" * (MAX_EXPRESSION + 1),
    ],
    ids=["missing key", "division", "undeclared", "types", "no question", "empty", "too long"],
)
def test_promise_4_what_cannot_be_evaluated_is_an_error_and_never_true(expression: str) -> None:
    answer = evaluated(expression)
    assert (answer.is_true, answer.is_error) == (False, True)


def test_a_missing_fact_is_an_error() -> None:
    answer = evaluated("true", {key: value for key, value in FACTS.items() if key != "rules"})
    assert answer.is_error


@pytest.mark.parametrize(
    ("names", "labels", "selected"),
    [
        ([], {}, True),
        (["strim*"], {}, True),
        (["argo*"], {}, False),
        ([], {"team": "kafka"}, True),
        (["strim*"], {"team": "web"}, False),
    ],
)
def test_selectors(names: list[str], labels: dict[str, str], selected: bool) -> None:
    assert policy.holds_for(names=names, labels=labels, name="strimzi", has={"team": "kafka"}) == selected


@pytest.mark.django_db
def test_promise_7_the_chain_tells_where_it_was_cut() -> None:
    with transaction.atomic():
        for verb in ("a", "b", "c"):
            audit.record(verb=verb, actor=audit.MACHINE)
    assert audit.verify_chain().is_whole
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER approvals_auditentry_no_update")
        cursor.execute("UPDATE approvals_auditentry SET actor = 'mallory' WHERE number = 2")
    assert audit.verify_chain().broken_at == 2


@pytest.mark.django_db
@pytest.mark.parametrize("change", ["update", "delete"])
def test_promise_7_the_database_refuses_to_edit_the_audit(change: str) -> None:
    with transaction.atomic():
        audit.record(verb="a", actor=audit.MACHINE)
    with pytest.raises(DatabaseError), transaction.atomic():
        AuditEntry.objects.update(verb="b") if change == "update" else AuditEntry.objects.all().delete()


@pytest.mark.django_db
def test_an_audit_row_outside_a_transaction_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "connection", SimpleNamespace(in_atomic_block=False))
    with pytest.raises(RuntimeError):
        audit.record(verb="a", actor=audit.MACHINE)
