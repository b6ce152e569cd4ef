"""How long a request waits, and what ends the wait."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from approvals import services
from approvals.errors import Awaiting, Awaits
from approvals.gate import Next, Reason, Waiting
from approvals.gate.remedies import RefusalKind, reason
from approvals.ledger import retries
from approvals.models import Request
from approvals.steps.failures import LONGEST_APPROVED_SECONDS, postpone_request
from provisioner.errors import Unreachable
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.gate_facts import ABOUT
from tests.support.approvals.world import acting


class Missing(Awaiting):
    code = "missing-account"
    awaits = Awaits.ACCOUNT


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_wait_grows_to_ten_minutes_and_no_further(attempts: int, share: float) -> None:
    found = retries.seconds(attempts, share=share)
    assert 1.5 <= found <= 600
    assert found <= retries.seconds(attempts + 1, share=share)


def test_waits_that_begin_together_do_not_end_together() -> None:
    assert retries.seconds(9, share=0.0) == 512
    assert retries.seconds(9, share=1.0) == 384


def asked(env: World, number: int) -> Request:
    world.submit_spec(env.cluster, world.seen(f"ship-{number}", world.spec(), uid=f"u-{number}"), env.rita)
    return Request.objects.get(deployment__uid=f"u-{number}")


def test_what_is_waited_for_is_kept_and_goes_with_the_next_move(env: World) -> None:
    request = asked(env, 1)
    retries.postpone(request, Missing("there is none"), timezone.now())
    request.refresh_from_db()
    assert (request.awaits, request.problem_code, request.attempts) == ("account", "missing-account", 1)
    assert list(retries.waiting(env.cluster, Awaits.ACCOUNT)) == [request]
    assert not retries.waiting(env.cluster, Awaits.RIGHTS).exists()
    services.withdraw(by=acting(env.rita), request_id=request.pk, reason="", via="browser")
    assert Request.objects.get().awaits == ""


def test_a_server_that_says_when_to_come_back_is_believed_up_to_ten_minutes(env: World) -> None:
    request, now = asked(env, 1), timezone.now()
    assert retries.postpone(request, Unreachable("busy", retry_after_seconds=120), now) == 120
    assert retries.postpone(request, Unreachable("busy", retry_after_seconds=86_400), now) == 600


def test_one_change_wakes_a_few_at_once_and_the_others_a_few_at_a_time(env: World) -> None:
    now = timezone.now()
    requests = [asked(env, number) for number in range(retries.AT_ONCE + 3)]
    for request in requests:
        retries.postpone(request, Missing("none"), now)
    Request.objects.update(look_again_at=now + timedelta(hours=1))
    retries.look([request.pk for request in requests], now)
    found = [Request.objects.get(pk=request.pk).look_again_at - now for request in requests]
    assert found == [timedelta(0)] * retries.AT_ONCE + [timedelta(seconds=retries.STEP_SECONDS)] * 3


def test_what_waits_no_more_is_left_alone(env: World) -> None:
    request = asked(env, 1)
    later = timezone.now() + timedelta(hours=1)
    Request.objects.update(look_again_at=later)
    retries.look([request.pk], timezone.now())
    assert Request.objects.get().look_again_at == later


def test_S26_what_changes_all_the_time_neither_puts_waits_off_nor_has_everybody_looked_at_each_time(env: World) -> None:
    request, now = asked(env, 1), timezone.now()
    retries.postpone(request, Missing("none"), now)
    Request.objects.update(look_again_at=now + timedelta(hours=1))
    for second in range(20):
        retries.look([request.pk], now + timedelta(seconds=second))
        if second == 0:
            # It was looked at, and waits for as long as before.
            Request.objects.update(look_again_at=now + timedelta(hours=1))
    assert Request.objects.get().look_again_at == now + timedelta(seconds=1 + retries.QUIET_SECONDS)


@pytest.mark.parametrize("is_costly", [False, True])
def test_what_is_approved_goes_on_soon_unless_to_look_is_costly(env: World, is_costly: bool) -> None:
    """Each look at what nobody can look through lists a hundred thousand objects."""
    request = world.in_review(asked(env, 1))
    Request.objects.update(state="approved", attempts=20)
    about = Reason(Next.WAIT, "too-many-to-see", "too many", "Delete some.", is_costly=is_costly)
    postpone_request(Request.objects.get(), Waiting(about))
    found = Request.objects.get(pk=request.pk)
    assert found.look_again_at
    wait = (found.look_again_at - timezone.now()).total_seconds()
    least, most = (440.0, 600.0) if is_costly else (20.0, LONGEST_APPROVED_SECONDS)
    assert least < wait <= most


def test_of_too_many_to_see_the_gate_says_that_it_is_costly() -> None:
    costly = {kind for kind in RefusalKind if kind.value.is_costly}
    assert costly == {RefusalKind.TOO_MANY_TO_SEE}
    assert reason(RefusalKind.TOO_MANY_TO_SEE, "too many", ABOUT).is_costly
