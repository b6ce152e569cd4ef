"""What the viewer of a request may do about it, and if not, why and what would allow it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from approvals import access, lifecycle, services
from approvals.access import Caller
from approvals.errors import InvalidInput, Refused
from approvals.gate.doors import check_reviewer
from approvals.lifecycle import Event, State
from approvals.models import Report, Request, Review
from approvals.services import Acknowledgement
from approvals.services.reviews import is_requester, is_self_approval
from provisioner.values import Identity, Severity

# An approval of this or worse asks for a reason and for the deployment's name, typed: unknown is worse.
SERIOUS = Severity.DANGEROUS
# Past this many objects an approval ticks kinds, each with the list of its objects.
MAX_TICKS = 50


@dataclass(frozen=True, slots=True)
class ViewerOptions:
    """`words` say why the viewer may not decide; "" where they may. `rule` is the RBAC that would allow it.

    `given` is the viewer's own review of this round that counts until they give another.
    """

    identity: Identity | None
    may_approve: bool = False
    may_deny: bool = False
    may_withdraw: bool = False
    words: str = ""
    rule: str = ""
    given: Review | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """A checkbox of the form: one object's action with what goes with it, or a kind's with all its objects."""

    value: str
    words: str = ""
    items: list[Acknowledgement] = field(default_factory=list)


def options_of(caller: Caller, request: Request, report: Report | None, reviews: Iterable[Review]) -> ViewerOptions:
    """Asks Kubernetes anew, by the very checks that a decision goes through.

    `report` is of this round, `reviews` are those that count.
    """
    identity = access.identity_of(caller, request.deployment.cluster)
    may_withdraw = is_requester(request, caller) and lifecycle.may(State(request.state), Event.WITHDRAW)
    if request.state != State.IN_REVIEW:
        return ViewerOptions(identity, may_withdraw=may_withdraw)
    given = next((it for it in reviews if it.user_id == caller.user.pk and it.round == request.round), None)
    try:
        checked = check_reviewer(caller, request)
    except Refused as refusal:
        rule = str(refusal.facts.get("rule", ""))
        return ViewerOptions(identity, may_withdraw=may_withdraw, words=str(refusal), rule=rule, given=given)
    if is_self_approval(request, checked.person):
        words = "You requested this change, so someone else must approve it. You can deny it."
        return ViewerOptions(checked.identity, False, True, may_withdraw, words, given=given)
    if services.collisions(report):
        words = "This request cannot be approved while it collides with objects of someone else. You can deny it."
        return ViewerOptions(checked.identity, False, True, may_withdraw, words, given=given)
    return ViewerOptions(checked.identity, True, True, may_withdraw, given=given)


def is_serious(worst: str) -> bool:
    return bool(worst) and Severity(worst).is_at_least(SERIOUS)


def check_typed(request: Request, worst: str, typed: str, reason: str) -> None:
    """Raise InvalidInput unless a serious approval comes with its reason and the name of what it lets in."""
    if not is_serious(worst):
        return
    if typed.strip() != request.deployment.name:
        raise InvalidInput(
            f"the worst finding is {worst}: type the name {request.deployment.name} to approve it", field="typed"
        )
    if not reason.strip():
        raise InvalidInput(f"the worst finding is {worst}: give a reason for approving it anyway", field="reason")


def ticks(request: Request) -> list[Tick]:
    """What an approval has to acknowledge, what takes something along first."""
    items = sorted(services.acknowledgements(request), key=lambda it: not it.words)
    if len(items) <= MAX_TICKS:
        return [_tick(item) for item in items]
    telling = [item for item in items if item.words]
    alone = telling if len(telling) <= MAX_TICKS else []
    kinds: dict[str, list[Acknowledgement]] = defaultdict(list)
    for item in items:
        if item not in alone:
            kinds[_kind(item.name)].append(item)
    return [*map(_tick, alone), *(Tick(kind, items=of_kind) for kind, of_kind in sorted(kinds.items()))]


def ticked_by(review: Review, offered: Iterable[Tick]) -> list[str]:
    """The checkboxes that say what `review` acknowledges."""
    named = set(review.acknowledges)
    return [tick.value for tick in offered if {it.name for it in tick.items} <= named or tick.value in named]


def ticked(request: Request, values: Sequence[str]) -> list[str]:
    """The acknowledged objects, where a tick may stand for all of a kind."""
    named = [tick for tick in ticks(request) if tick.value in values]
    return sorted(one for tick in named for one in ([it.name for it in tick.items] or [tick.value]))


def _tick(item: Acknowledgement) -> Tick:
    return Tick(item.name, item.words)


def _kind(item: str) -> str:
    """`delete ConfigMap` of `delete ConfigMap harbour/settings`."""
    return " ".join(item.split(" ")[:2])
