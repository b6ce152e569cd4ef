"""What is done about a revision that was not healthy in time, as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from approvals.models import BundleDeployment, Request, Revision
from approvals.steps.restore import RestoreAnswer, Since, decide_restore

RESTORE = {"onFailure": "RestorePrevious"}
QUIET = Since(open_request=0, newest_revision=2, is_same_wish=True)


def overdue(
    spec: dict[str, Any], *, state: str = "applied", is_first: bool = False, is_revoked: bool = False
) -> Revision:
    marked = {"revoked_at": timezone.now(), "revoked_by": "ada", "revoked_reason": "leaks keys"} if is_revoked else {}
    before = None if is_first else Revision(number=1, state="replaced", **marked)
    return Revision(number=2, state="active", request=Request(number=7, spec=spec, state=state, from_revision=before))


STOP = "nothing is restored automatically: spec.onFailure is Stop"
NOT_RESTORED = "revision 1 is not restored: "
PAUSED = "the deployment is paused; it is restored when someone resumes the deployment, unless it is healthy by then"
STAYS: dict[str, tuple[Revision, dict[str, Any], Since, str]] = {
    "the default": (overdue({}), {}, QUIET, STOP),
    "Stop": (overdue({"onFailure": "Stop"}), {}, QUIET, STOP),
    "the first revision": (
        overdue(RESTORE, is_first=True),
        {},
        QUIET,
        "nothing is restored: there is no earlier revision",
    ),
    "it is on its way": (overdue(RESTORE, state="restoring"), {}, QUIET, "revision 1 is being restored"),
    "it was tried": (overdue(RESTORE, state="failed"), {}, QUIET, "revision 1 was not restored: request 7 says why"),
    "S16 revoked": (
        overdue(RESTORE, is_revoked=True),
        {},
        QUIET,
        f"{NOT_RESTORED}revision 1 was revoked by ada: leaks keys",
    ),
    **{
        name: (overdue(RESTORE), deployment, replace(QUIET, **since), f"{NOT_RESTORED}{words}")
        for name, deployment, since, words in (
            ("being deleted", {"deletion_requested_at": timezone.now()}, {}, "the deployment is being deleted"),
            ("gone", {"gone_at": timezone.now()}, {}, "the deployment is being deleted"),
            ("another request", {}, {"open_request": 8}, "request 8 is open"),
            ("another revision", {}, {"newest_revision": 3}, "revision 3 was started since then"),
            ("another wish", {}, {"is_same_wish": False}, "the spec has changed"),
            ("paused", {"is_paused": True}, {}, PAUSED),
        )
    },
}


@pytest.mark.parametrize(("revision", "deployment", "since", "words"), STAYS.values(), ids=STAYS)
def test_an_overdue_revision_stays_and_the_words_say_why(
    revision: Revision, deployment: dict[str, Any], since: Since, words: str
) -> None:
    assert decide_restore(revision, BundleDeployment(**deployment), since) == RestoreAnswer(False, words)


def test_what_ran_before_an_overdue_revision_is_put_back_where_that_was_approved_and_nothing_came_since() -> None:
    assert decide_restore(overdue(RESTORE), BundleDeployment(), QUIET) == RestoreAnswer(True, "revision 1 is restored")
