"""May those who asked have it done? Each is asked about anew, as they are known by now (security.md S07, S08, S25).

What is known of somebody ages. By groups that are too old only a no counts. Then somebody whose approval counts must
hold the right to use the ServiceAccount, and what sources name in the cluster is not read, unless the operator lets
that be done unattended (PRATIQUE_UNATTENDED_READS).
"""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.utils import timezone

from approvals import access, policy
from approvals.access import Asker
from approvals.errors import CouldNotAsk
from approvals.models import Request
from approvals.policy import Ballot
from approvals.steps.sources import read_by
from provisioner.errors import Forbidden, TryLater
from provisioner.values import AccessRequest, ObjectRef


class CouldNotAskNow(TryLater):
    """The cluster did not answer a question about a person's rights."""

    code = CouldNotAsk.code


class GroupsTooOld(Forbidden):
    """Nothing is read as somebody whose groups were proved too long ago."""

    code = "groups-too-old"


def askers_of(request: Request) -> list[Asker]:
    now = timezone.now()
    return [access.asker_of(one, request.deployment.cluster, now=now) for one in request.requesters]


def check_requesters(request: Request) -> None:
    """Every known requester may use the ServiceAccount, and get what the sources name in the cluster (S07, S08).

    Raises Forbidden where Kubernetes says no, or nobody can tell who asked; GroupsTooOld; CouldNotAskNow.
    """
    needed, askers = _read_for(request), askers_of(request)
    if needed and not (request.is_requester_known and askers):
        raise Forbidden(
            f"the sources name {_listed(needed)}, and nobody knows who asked: nothing of it is read for "
            "somebody whose right to get it cannot be asked. Change the deployment as a person who signed in here"
        )
    for asker in askers:
        _must(access.may_use_account(asker.identity, request))
        for ref in needed:
            question = AccessRequest("get", resource=f"{ref.kind.lower()}s", namespace=ref.namespace, name=ref.name)
            _must(access.ask_for(asker.identity, request.deployment.cluster, question, fresh=True))
    if needed:
        _check_current(request, needed, [one.identity.username for one in askers if not one.is_current])


def needs_vouching(request: Request) -> bool:
    """Whether an approver must hold the right to use the ServiceAccount, because nobody's who asked can be asked."""
    return not request.is_requester_known or bool(_too_old(request))


def why_unvouched(request: Request, ballots: Iterable[Ballot]) -> str:
    """Why nobody's word lets the ServiceAccount be used: the groups of those who asked are too old, and no approval
    that counts vouches for them (S07); "" where somebody's does.

    For the apply gate; `ballots` are weighed by now. That nobody knows who asked is the tally's to say.
    """
    too_old = _too_old(request)
    if not too_old:
        return ""
    approvals = (one for one in ballots if one.counts and one.decision == "Approve")
    is_vouched = any(one.may_use_account for one in approvals)
    return "" if is_vouched else policy.why_vouched_for(is_requester_known=True, too_old=too_old)


def _too_old(request: Request) -> list[str]:
    return access.no_longer_current(request.requesters, request.deployment.cluster)


def _read_for(request: Request) -> list[ObjectRef]:
    """Only a deployment fetches its sources; a rollback has its content, and a deletion none."""
    return read_by(request.spec) if request.purpose == Request.Purpose.DEPLOY else []


def _check_current(request: Request, needed: list[ObjectRef], too_old: list[str]) -> None:
    """What was read for people who asked was read with groups that counted: of that nothing is read again."""
    if not too_old or (request.content_id and not request.is_unattended):
        return
    if request.is_unattended and may_read_unattended(request):
        return
    names, hours = ", ".join(sorted(set(too_old))), settings.PRATIQUE["GROUPS_HOURS"]
    words = (
        f"the sources name {_listed(needed)}, and what is known of {names}, who asked, was proved more than {hours}"
        " hours ago: nothing of it is read. "
    )
    remedy = f"{names} has to sign in again; then ask again"
    if request.is_unattended:
        words = f"nobody asked for this just now; {words}"
        remedy = f"Ask again as somebody who may get it, or an operator lists {_place(request)} in"
        remedy += " PRATIQUE_UNATTENDED_READS"
    raise GroupsTooOld(f"{words}{remedy}")


def may_read_unattended(request: Request) -> bool:
    """Whether the operator lets what the sources of this deployment name be read with groups that are too old (S08)."""
    return _place(request) in settings.PRATIQUE["UNATTENDED_READS"]


def _place(request: Request) -> str:
    return f"{request.deployment.cluster.name}/{request.deployment.name}"


def _listed(refs: Iterable[ObjectRef]) -> str:
    return ", ".join(map(str, refs))


def _must(permission: access.Permission) -> None:
    if not permission.could_ask:
        raise CouldNotAskNow(permission.words)
    if not permission.allowed:
        raise Forbidden(f"{permission.words}; this would allow it:\n{permission.rule}")
