"""What is done about external checks: the check answers, somebody has it asked again, somebody makes its secret."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from approvals import access, audit, wake
from approvals.access import Caller
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.deciding.external_checks import LONGEST_MESSAGE, CheckOutcome, ExternalCheck, is_address
from approvals.errors import CheckTokenRefused, InvalidInput, NotFound, NotOpen
from approvals.events.signed_post import BOTH_SIGN, TWICE, make_secret
from approvals.gate import reviewer_checks
from approvals.ledger.deciding import check_runs, deciding_objects
from approvals.ledger.deciding.check_runs import CheckAnswer
from approvals.ledger.moves import locked
from approvals.locks import for_change
from approvals.models import CheckRun, CheckSecret, Cluster, DecidingObject
from approvals.services.reviews import find_request

# Of one check about one round, as people asked for it: what is asked anew because its answer is too old is not counted.
MOST_RUNS = 20


def check_run_token(*, run: UUID, token: str) -> CheckRun:
    """The run that the token is for; raises CheckTokenRefused, which is the same for no such run and a wrong token."""
    known = CheckRun.objects.filter(uid=run).first()
    if known is None or not check_runs.is_token_of(known, token):
        raise CheckTokenRefused("there is no such run, or the token is not the one of its event")
    return known


def answer_check(
    *, run: UUID, token: str, outcome: str, subject_digest: str, message: str = "", link: str = ""
) -> CheckRun:
    """Take the answer of an external check. It is nobody's review: it approves nothing.

    Raises CheckTokenRefused unless the token is that of the run, InvalidInput, DigestMoved and CheckClosed.
    """
    known = check_run_token(run=run, token=token)
    if outcome not in tuple(CheckOutcome):
        raise InvalidInput(f"the outcome is {outcome[:50]!r}; expected passed, failed or pending", field="outcome")
    if len(message) > LONGEST_MESSAGE:
        words = f"the message has {len(message)} characters; at most {LONGEST_MESSAGE} are allowed"
        raise InvalidInput(words, field="message")
    if link and not is_address(link, "https"):
        raise InvalidInput("the link is no https URL of at most 500 characters", field="link")
    with transaction.atomic(durable=True):
        request = locked(known.request_id)
        known.refresh_from_db()
        answer = CheckAnswer(CheckOutcome(outcome), subject_digest, " ".join(message.split()), link)
        check_runs.take_answer(request, known, answer)
    return known


def run_check_again(*, by: Caller, request_id: int, name: str, via: str) -> CheckRun:
    """Ask a check once more about a request that it was asked about in this round; whoever may approve it may.

    Raises NotFound, NotOpen, NotAllowed, CouldNotAsk and ProofTooOld.
    """
    checked = reviewer_checks.check_reviewer(by, find_request(request_id))
    with transaction.atomic(durable=True):
        request = locked(request_id)
        runs = CheckRun.objects.filter(request=request, round=request.round, check_name=name)
        rows = DecidingObject.objects.filter(cluster=request.cluster_id, kind=ExternalCheck.kind, gone_at=None)
        row = rows.filter(name=name, uid__in=runs.values("check_uid")).first()
        if row is None:
            raise NotFound(f"no external check {name} was asked about this round")
        if request.state not in check_runs.ASKED_IN:
            raise NotOpen(f"the request is {request.state.replace('_', ' ')}: no check is asked any more")
        if runs.exclude(asked_by="").count() >= MOST_RUNS:
            words = f"it was run again {MOST_RUNS} times in this round, which is the limit"
            raise NotOpen(f"{words}: start a new round with Look again on the page of the deployment")
        check, problem = ExternalCheck.read(row.spec)
        if check is None:
            raise NotOpen(f"external check {name} cannot be read: {problem}")
        run = check_runs.ask(request, check, uid=row.uid, name=name, actor=Actor(checked.identity.username, via))
        request.look_again_at = None
        request.save(update_fields=["look_again_at"])
        wake.request(request.pk)
    return run


def make_check_secret(*, by: Caller, cluster: Cluster, name: str, via: str) -> str:
    """Make the secret that signs the events for a check, and return it: it is shown this once.

    Whoever may update the object may. Raises NotFound, NotAllowed, CouldNotAsk and ProofTooOld.
    """
    rows = DecidingObject.objects.filter(cluster=cluster, kind=ExternalCheck.kind, name=name, gone_at=None)
    row = rows.first()
    if row is None:
        raise NotFound(f"ExternalCheck {name} does not exist on cluster {cluster.name}")
    access.may(by, cluster, "update", resource=ExternalCheck.plural, name=name, fresh=True).check()
    text, now = make_secret(), database_now()
    with transaction.atomic(durable=True):
        for_change(DecidingObject.objects.filter(pk=row.pk)).first()
        known = CheckSecret.objects.filter(cluster=cluster, check_uid=row.uid).first()
        made = known or CheckSecret(cluster=cluster, check_uid=row.uid)
        # A second click: nobody has installed what the first one made, and the one before that is still in use.
        is_again = known and known.earlier_until and now - known.made_at < TWICE
        if known and not is_again:
            made.earlier, made.earlier_until = known.secret, now + BOTH_SIGN
        made.secret, made.made_by, made.made_at = text, by.name, now
        made.save()
        deciding_objects.look_again(cluster)
        facts = {"kind": ExternalCheck.kind, "name": name, "cluster": cluster.name}
        audit.record(verb="external-check.secret-made", actor=Actor(by.name, via), facts=facts)
    return text
