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


@pytest.mark.parametrize(
    ("revision", "deployment", "since", "words"),
    [
        pytest.param(
            overdue({}), {}, QUIET, "nothing is restored automatically: spec.onFailure is Stop", id="the default"
        ),
        pytest.param(
            overdue({"onFailure": "Stop"}),
            {},
            QUIET,
            "nothing is restored automatically: spec.onFailure is Stop",
            id="Stop",
        ),
        pytest.param(
            overdue(RESTORE, is_first=True),
            {},
            QUIET,
            "nothing is restored: there is no earlier revision",
            id="the first revision",
        ),
        pytest.param(
            overdue(RESTORE, state="restoring"), {}, QUIET, "revision 1 is being restored", id="it is on its way"
        ),
        pytest.param(
            overdue(RESTORE, state="failed"),
            {},
            QUIET,
            "revision 1 was not restored: request 7 says why",
            id="it was tried",
        ),
        pytest.param(
            overdue(RESTORE),
            {"deletion_requested_at": timezone.now()},
            QUIET,
            "revision 1 is not restored: the deployment is being deleted",
            id="being deleted",
        ),
        pytest.param(
            overdue(RESTORE),
            {"gone_at": timezone.now()},
            QUIET,
            "revision 1 is not restored: the deployment is being deleted",
            id="gone",
        ),
        pytest.param(
            overdue(RESTORE, is_revoked=True),
            {},
            QUIET,
            "revision 1 is not restored: revision 1 was revoked by ada: leaks keys",
            id="S16 revoked",
        ),
        pytest.param(
            overdue(RESTORE),
            {},
            replace(QUIET, open_request=8),
            "revision 1 is not restored: request 8 is open",
            id="another request",
        ),
        pytest.param(
            overdue(RESTORE),
            {},
            replace(QUIET, newest_revision=3),
            "revision 1 is not restored: revision 3 was started since then",
            id="another revision",
        ),
        pytest.param(
            overdue(RESTORE),
            {},
            replace(QUIET, is_same_wish=False),
            "revision 1 is not restored: the spec has changed",
            id="another wish",
        ),
        pytest.param(
            overdue(RESTORE),
            {"is_paused": True},
            QUIET,
            "revision 1 is not restored: the deployment is paused; it is restored when someone resumes the deployment, unless it is "
            "healthy by then",
            id="paused",
        ),
    ],
)
def test_an_overdue_revision_stays_and_the_words_say_why(
    revision: Revision, deployment: dict[str, Any], since: Since, words: str
) -> None:
    assert decide_restore(revision, BundleDeployment(**deployment), since) == RestoreAnswer(False, words)


def test_what_ran_before_an_overdue_revision_is_put_back_where_that_was_approved_and_nothing_came_since() -> None:
    assert decide_restore(overdue(RESTORE), BundleDeployment(), QUIET) == RestoreAnswer(True, "revision 1 is restored")
