"""Whether those who asked may use the account and read what the spec names, and we on their word. PURE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from approvals.gate.answers import GateQuestion, Reason
from approvals.gate.facts import About, GateFacts, ReadUnattended, Sources, Unknown, value_of
from approvals.gate.remedies import RefusalKind, missing_right, reason
from approvals.policy import Lapsed, why_nobody_vouches


def are_requesters_proved(facts: GateFacts) -> bool:
    """Whether everybody who asked is known and may have done what they ask for (S07, S08, S31)."""
    about, asked = facts.about, value_of(facts.requesters)
    if not (about.is_requester_known and about.has_requesters and asked) or value_of(facts.too_old) != ():
        return False
    return not any(isinstance(one, Unknown) for one in asked) and not any(may_have_it(facts))


def may_have_it(facts: GateFacts) -> Iterator[Reason]:
    """Every known requester may use the ServiceAccount, and get what the spec names in the cluster (S07, S08)."""
    about, sources = facts.about, value_of(facts.sources) or Sources()
    named, why = ", ".join(sources.names), f" ({about.why_unknown})" if about.why_unknown else ""
    if sources.names and not (about.is_requester_known and about.has_requesters):
        yield reason(
            RefusalKind.REQUESTER_UNKNOWN,
            f"the spec names {named}, and the requester is unknown{why}, so nothing is read: Pratique reads "
            "of the cluster only what the requester may get",
            about,
        )
    for fact in value_of(facts.requesters) or ():
        right = value_of(fact)
        if right is not None and not right.is_given:
            words = f"{right.words}; this would allow it:\n{right.rule}" if right.rule else right.words
            yield reason(RefusalKind.REQUESTER_LACKS, words, about)
    too_old = value_of(facts.too_old)
    is_to_be_read = facts.question == GateQuestion.PREPARE and not sources.is_read
    # Of a Catalog only a no counts by old groups: it is asked for again at each request, and tells nobody's secrets.
    if sources.private and too_old and is_to_be_read and not (sources.is_unattended and sources.is_listed):
        yield reason(RefusalKind.GROUPS_TOO_OLD, _unreadable(sources, too_old, about), about)


def _unreadable(sources: Sources, too_old: Sequence[Lapsed], about: About) -> str:
    what, mend = why_nobody_vouches(too_old)
    words = (
        f"the spec names {', '.join(sources.private)}, and {what} (an identity counts for {sources.hours} hours), so "
        "nothing is read"
    )
    if not sources.is_unattended:
        return f"{words}: {mend}, and it must be requested again"
    remedy = f"Request it again as someone who may get it, or an operator adds {about.cluster}/{about.name} to"
    return f"this request was created automatically; {words}. {remedy} PRATIQUE_UNATTENDED_READS"


def reads_unattended(facts: GateFacts) -> tuple[str, ...]:
    """What would be read now because the operator lists the deployment, and for no other reason."""
    sources = value_of(facts.sources) or Sources()
    is_on_their_word = bool(value_of(facts.too_old)) and sources.is_unattended and sources.is_listed
    return sources.private if is_on_their_word and not sources.is_read else ()


def reads_still_allowed(facts: GateFacts) -> Iterator[Reason]:
    """What the operator let be read is not used once they take that back, unless those who asked may be asked (S08)."""
    about, read = facts.about, value_of(facts.read_unattended) or ReadUnattended()
    if read.names and read.too_old and not read.is_listed:
        listed = f"because PRATIQUE_UNATTENDED_READS listed {about.cluster}/{about.name}"
        why = f"{listed}; it no longer does"
        if not read.is_sure:
            why = f"by an earlier version of Pratique, perhaps {listed}; it does not now"
        words = (
            f"the spec names {', '.join(read.names)}, which was read {why}, and {why_nobody_vouches(read.too_old)[0]}"
        )
        yield reason(RefusalKind.READS_WITHDRAWN, words, about)


def own_right(facts: GateFacts) -> Iterator[Reason]:
    """Whether we may act as the account (S31). Only one that everybody who asked may use is given to us unnamed."""
    right, account = value_of(facts.own_right), value_of(facts.account)
    if right is None or right.is_given:
        return
    is_given_unnamed = are_requesters_proved(facts) and not (account and account.is_reserved)
    named = f"{account.namespace}/{account.name}" if account and not is_given_unnamed else ""
    yield reason(RefusalKind.OWN_RIGHT, missing_right(facts.about.cluster, right.words, named), facts.about)
