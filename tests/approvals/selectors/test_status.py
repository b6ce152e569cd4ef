"""How a request stands: the cause, by whom, and the next step."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.lifecycle import State
from approvals.models import BundleDeployment, Cluster, Request
from approvals.selectors.status import MAX_CAUSE, Beside, ReasonGiven, RequestStatus, status, status_of, statuses
from approvals.steps import evaluate
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting

AT = datetime(2026, 11, 23, tzinfo=UTC)
BOB = ReasonGiven("bob", "use the signed image", AT)


def a_request(state: str, **more: object) -> Request:
    deployment = BundleDeployment(name="strimzi", cluster=Cluster(name="prod"))
    return Request(deployment=deployment, number=4, state=state, changed_at=AT, **more)


def steps(found: RequestStatus) -> list[str]:
    return [one.label for one in found.steps]


def test_a_denied_request_says_who_denied_it_and_why() -> None:
    found = status_of(a_request(State.DENIED), Beside(denials=(BOB, ReasonGiven("ada", "", AT))))
    assert (found.label, found.tone, found.cause) == ("denied", "bad", "Use the signed image.")
    assert found.by_words == "ada and bob"
    assert steps(found) == ["Change it", "Ask again"]
    assert all(one.verb == "update" for one in found.steps)


def test_what_was_replaced_leads_to_what_replaced_it() -> None:
    after = a_request(State.IN_REVIEW, requesters=[{"username": "rita"}])
    after.number = 5
    request = a_request(State.SUPERSEDED, remedy="A cluster administrator grants the permission.")
    found = status_of(request, Beside(successor=after))
    assert (found.cause, found.by, found.remedy) == ("Request 5 replaced it.", ("rita",), "")
    assert [(one.label, one.url_name, one.args) for one in found.steps] == [
        ("Open request 5", "request", (str(after.uid),))
    ]


def test_what_introduces_the_next_line_is_not_in_the_first_one() -> None:
    problem = "Kubernetes does not allow rita to get secrets db; this would allow it:\nrules: []"
    found = status_of(a_request(State.FAILED, problem=problem), Beside())
    assert (found.cause, found.further_lines) == ("Kubernetes does not allow rita to get secrets db.", "rules: []")
    assert found.first_paragraph == "Kubernetes does not allow rita to get secrets db; this would allow it:"


@pytest.mark.parametrize(
    ("problem", "cause"),
    [
        ("config.patches[0]: expected a mapping", "config.patches[0]: expected a mapping."),
        ("templates/a.yaml: has no kind", "templates/a.yaml: has no kind."),
        ("the chart: has no name", "The chart: has no name."),
    ],
)
def test_the_name_of_a_field_or_file_keeps_its_first_letter(problem: str, cause: str) -> None:
    assert status_of(a_request(State.FAILED, problem=problem), Beside()).cause == cause


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_one_label_and_at_most_two_lines(state: State) -> None:
    problem = "10 of 27 objects would be rejected: " + "the API server said no; " * 50
    found = status_of(a_request(state, problem=problem), Beside(denials=(BOB,)))
    assert found.label
    assert len(found.cause) <= MAX_CAUSE
    assert "\n" not in found.cause


@pytest.mark.parametrize("state", [State.PREPARING, State.IN_REVIEW, State.APPROVED])
def test_what_waits_is_not_called_by_its_state(state: State) -> None:
    found = status_of(a_request(state, problem="the ServiceAccount does not exist"), Beside())
    assert (found.label, found.cause) == ("waiting", "The ServiceAccount does not exist.")


def test_a_failed_request_never_says_that_its_report_is_being_made() -> None:
    found = status_of(a_request(State.FAILED, problem="the image does not exist", remedy="Correct it."), Beside())
    assert (found.label, found.cause, found.remedy) == ("failed", "The image does not exist.", "Correct it.")
    assert steps(found) == ["Change it", "Ask again"]


@pytest.mark.parametrize("state", [State.DENIED, State.FAILED, State.EXPIRED, State.WITHDRAWN])
def test_a_list_says_that_what_came_to_nothing_can_be_asked_for_again(state: State) -> None:
    request = a_request(state, remedy="")
    assert status_of(request, Beside()).next_words == "can be changed or asked for again"
    assert status_of(a_request(state, remedy="Correct it."), Beside()).next_words == ""
    assert status_of(request, Beside(successor=a_request(State.IN_REVIEW))).next_words == ""


def test_a_list_says_nothing_of_the_kind_of_what_takes_its_course() -> None:
    assert [one for one in State if status_of(a_request(one, remedy=""), Beside()).next_words] == [
        State.DENIED,
        State.FAILED,
        State.EXPIRED,
        State.WITHDRAWN,
    ]


def test_of_a_deployment_that_is_gone_nothing_is_offered() -> None:
    request = a_request(State.FAILED)
    request.deployment.gone_at = AT
    assert status_of(request, Beside()).steps == ()


def test_a_denial_and_a_withdrawal_are_read_with_their_authors(env: World, request_: Request) -> None:
    world.review(request_, acting(env.ada), "Deny", reason="not on a Friday")
    evaluate.run(Request.objects.get(pk=request_.pk), "w")
    found = status(Request.objects.get(pk=request_.pk))
    assert (found.label, found.cause, found.by) == ("denied", "Not on a Friday.", ("ada",))


def test_a_page_of_requests_takes_the_same_queries_as_one(env: World, request_: Request) -> None:
    def count() -> int:
        Request.objects.update(state=State.DENIED)
        rows = list(Request.objects.select_related("deployment__cluster"))
        with CaptureQueriesContext(connection) as asked:
            assert len(statuses(rows)) == len(rows)
        return len(asked)

    one = count()
    for position in range(3):
        world.submit_spec(env.cluster, world.seen(f"more-{position}", world.spec()), env.rita)
    Request.objects.update(subject_digest="sha256:s")
    assert Request.objects.count() == 4
    assert count() == one <= 3
