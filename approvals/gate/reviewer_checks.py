"""May this person decide here and now? Asked of Kubernetes at every door, before anything is recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.conf import settings

from approvals import access
from approvals.access import Caller
from approvals.errors import CouldNotAsk, NotAllowed
from approvals.gate.facts import Unknown
from approvals.gate.rights import break_glass_right
from approvals.ledger.pivots import unknown_writes
from approvals.models import BundleDeployment, Request
from provisioner.values import Identity


@dataclass(frozen=True, slots=True)
class Decider:
    """Who may decide, in our words and in those of Kubernetes, and the account here by which they came."""

    identity: Identity
    words: str
    signed_in_as: str
    server_words: str = ""
    deputy_words: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """What Kubernetes said about the reviewer, before the transaction."""

    identity: Identity
    words: str
    person: access.Person
    issuer: str
    subject: str
    may_use_account: bool
    doubt: str = ""
    override: str = ""
    deputy_words: str = ""


def check_reviewer(by: Caller, request: Request) -> Checked:
    """Ask Kubernetes whether this person may decide on this request; raises NotAllowed or CouldNotAsk."""
    decider = check_decider(by, request.deployment)
    cluster = request.deployment.cluster
    account, proof = access.may_use_account(decider.identity, request), access.proved_on(by, cluster)
    words, person = decider.server_words or decider.words, access.person_of(by, cluster)
    found = Checked(decider.identity, words, person, proof.issuer, proof.subject, account.allowed)
    return replace(found, deputy_words=decider.deputy_words)


def check_decider(by: Caller, deployment: BundleDeployment) -> Decider:
    """Ask Kubernetes whether this person may decide about this deployment.

    Raises NotAllowed, CouldNotAsk, and ProofTooOld where their groups were proved too long ago (S25).
    """
    permission = access.may_approve(by, deployment, fresh=True)
    permission.check()
    assert permission.identity is not None
    if access.is_machine(permission.identity):
        raise NotAllowed(
            f"{permission.identity.username} is a machine account, another system: name or a member of "
            "system:masters, and those cannot review"
        )
    words, deputy_words = permission.server_words, permission.deputy_words
    return Decider(permission.identity, permission.words, by.name, words, deputy_words)


def check_breaker(by: Caller, request: Request) -> Checked:
    """Ask Kubernetes whether this person may break glass for this request; raises NotAllowed, CouldNotAsk or
    ProofTooOld.
    """
    cluster = request.deployment.cluster
    identity, proof = access.acting_as(by, cluster), access.proved_on(by, cluster)
    check_human(by, identity, "break glass")
    found = break_glass_right(identity, request)
    if isinstance(found, Unknown):
        raise CouldNotAsk(found.words)
    if not found.value.is_given:
        raise NotAllowed(f"you cannot break glass here: {found.value.words}", rule=found.value.rule)
    may_use_account = access.may_use_account(identity, request).allowed
    person = access.person_of(by, cluster)
    checked = Checked(identity, found.value.words, person, proof.issuer, proof.subject, may_use_account)
    return with_doubt(checked, request)


def check_dismisser(by: Caller, request: Request) -> Checked:
    """Ask Kubernetes whether this person may dismiss a review of this request; raises NotAllowed or CouldNotAsk.

    It takes `override`; `doubt` as in `with_doubt`.
    """
    cluster = request.deployment.cluster
    identity, proof = access.acting_as(by, cluster), access.proved_on(by, cluster)
    check_human(by, identity, "dismiss a review")
    words = check_override(identity, request.deployment, "dismissing a review")
    checked = Checked(identity, words, access.person_of(by, cluster), proof.issuer, proof.subject, False)
    return with_doubt(checked, request)


def with_doubt(checked: Checked, request: Request) -> Checked:
    return replace(checked, doubt=doubt_of(checked.identity, request))


def doubt_of(identity: Identity, request: Request) -> str:
    """Why it may have been this person who wrote it or asked for it (S05, S43); "" where nothing says so."""
    return access.why_author(identity, request, unknown_writes(request))


def is_person(by: Caller, identity: Identity) -> bool:
    """Whether it is no machine: neither by its name in Kubernetes, nor as the account of the decision webhook."""
    return access.is_human(identity) and by.name != settings.PRATIQUE["DECISION_WEBHOOK_USER"]


def check_human(by: Caller, identity: Identity, what: str) -> None:
    """Raise NotAllowed for a machine."""
    if not is_person(by, identity):
        raise NotAllowed(f"{identity.username} is a machine account, and those cannot {what}")


def check_override(identity: Identity, deployment: BundleDeployment, what: str = "accepting a finding") -> str:
    """Kubernetes' words that this person may `override` here; raises NotAllowed or CouldNotAsk. `what` needs it."""
    permission = access.may_override(identity, deployment, fresh=True)
    if not permission.could_ask:
        raise CouldNotAsk(permission.words)
    if not permission.allowed:
        raise NotAllowed(f"{what} needs the verb override: {permission.words}", rule=permission.rule)
    return permission.server_words or permission.words
