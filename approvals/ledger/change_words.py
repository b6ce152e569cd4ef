"""Why a change is made, and its ticket: what whoever makes it writes down, kept with the one request that it is for.

Words count once. What stands in the annotations from an earlier change, which may be somebody else's, is not taken for
the next one: only an annotation that is new or has another value than was last seen. A door of ours says itself what
was written through it, also where that is the same as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from django.conf import settings

from approvals import audit, wake
from approvals.audit import Actor
from approvals.lifecycle import AT_WORK, OPEN, State
from approvals.models import BundleDeployment, Request
from provisioner.api_groups import OWN_GROUP

# `kubectl annotate bd NAME core.rukpak.io/change-reason='certificates end on Sunday' core.rukpak.io/change-ticket=CHG1`
CHANGE_REASON = f"{OWN_GROUP}/change-reason"
# What follows an @ means nothing, as in `rotate`, so that two changes can be made under one ticket: CHG1@2.
CHANGE_TICKET = f"{OWN_GROUP}/change-ticket"
REASON_LENGTH, TICKET_LENGTH = 1000, 200
# As they are written: a ticket with what follows the @.
WRITTEN_LENGTHS = {CHANGE_REASON: REASON_LENGTH, CHANGE_TICKET: 300}
# What a form takes as a ticket.
TICKET_FORM = r"[^@]*"


@dataclass(frozen=True, slots=True)
class ChangeWords:
    """Either is "" where nothing was written."""

    reason: str = ""
    ticket: str = ""

    def __bool__(self) -> bool:
        return bool(self.reason or self.ticket)

    @classmethod
    def of_text(cls, reason: str, ticket: str) -> ChangeWords:
        """As every database takes it and no longer than its columns, without blanks around it."""
        return cls(_keep(reason, REASON_LENGTH), _keep(ticket.partition("@")[0], TICKET_LENGTH))

    def annotations(self) -> dict[str, str | None]:
        """What a door of ours writes; None takes away what an earlier change left."""
        return {CHANGE_REASON: self.reason or None, CHANGE_TICKET: self.ticket or None}


def ticket_url(ticket: str) -> str:
    """Where people read the ticket; "" where nobody said."""
    template = str(settings.PRATIQUE["TICKET_URL"])
    return template.replace("{ticket}", quote(ticket, safe="")) if ticket else ""


def observe(
    deployment: BundleDeployment, meta: Mapping[str, Any], *, is_new_spec: bool, written: ChangeWords | None
) -> None:
    """Keep what was written since the row was last seen for the request that is made next.

    `written` is what a door of ours wrote. A new spec without words of its own leaves those before it behind.
    """
    annotations = meta.get("annotations") or {}
    now = {name: _keep(str(annotations.get(name) or ""), length) for name, length in WRITTEN_LENGTHS.items()}
    before = deployment.change_words.get("seen", {})
    new = {name: text if text != before.get(name, "") else "" for name, text in now.items()}
    words = written or ChangeWords.of_text(new[CHANGE_REASON], new[CHANGE_TICKET])
    kept = {} if is_new_spec else deployment.change_words.get("next", {})
    due = {**kept, **{name: text for name, text in asdict(words).items() if text}}
    _save(deployment, {"seen": {name: text for name, text in now.items() if text}, "next": due})


def take_up(deployment: BundleDeployment, of: Request | None = None) -> ChangeWords:
    """The words of the request that is made now; `of`: nobody asks anew, and those of that request stay."""
    due = ChangeWords(**deployment.change_words.get("next", {}))
    _save(deployment, {**deployment.change_words, "next": {}})
    return due or (ChangeWords(of.change_reason, of.change_ticket) if of else due)


def follow(deployment: BundleDeployment, actor: Actor) -> Request | None:
    """What was written and made no request is for the open one, unless that is being applied: then for the next one.

    Once anybody has approved it, in this round or an earlier one, only what is missing is taken over: nobody's approval
    counts for another ticket than they decided by, also where it is carried over (S51).
    Returns the request whose words changed. That makes no round: nobody reviews them. Needs the lock of the deployment,
    and of its open request.
    """
    due = ChangeWords(**deployment.change_words.get("next", {}))
    request = deployment.requests.filter(state__in=OPEN).first()
    if not due or (request is not None and request.state in AT_WORK) or (request is None and deployment.waiting):
        return None
    take_up(deployment)
    before = ChangeWords(request.change_reason, request.change_ticket) if request else due
    after = ChangeWords(due.reason or before.reason, due.ticket or before.ticket)
    if request is not None and (request.state == State.APPROVED or request.reviews.filter(decision="Approve").exists()):
        after = ChangeWords(before.reason or due.reason, before.ticket or due.ticket)
    if request is None or after == before:
        return None
    request.change_reason, request.change_ticket, request.mirrored_at = after.reason, after.ticket, None
    request.save(update_fields=["change_reason", "change_ticket", "mirrored_at"])
    facts = {"reason": after.reason, "ticket": after.ticket, "before": asdict(before)}
    audit.record(verb="request.change-words", actor=actor, request=request, facts=facts)
    wake.deployment(deployment.pk)
    wake.request(request.pk)  # a guard may have waited for a ticket
    return request


def _keep(text: str, length: int) -> str:
    """As every database takes it. What it may do to an eye stays in it: pages and messages show that (S24)."""
    return text.encode(errors="replace").decode().replace("\0", "\ufffd").strip()[:length]


def _save(deployment: BundleDeployment, words: dict[str, Any]) -> None:
    if words != deployment.change_words:
        deployment.change_words = words
        deployment.save(update_fields=["change_words"])
