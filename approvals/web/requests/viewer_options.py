"""What the viewer of a request may do about it, and if not, why and what would allow it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from approvals import access, lifecycle, services
from approvals.access import Caller
from approvals.errors import Refused
from approvals.gate.reviewer_checks import check_dismisser, check_reviewer
from approvals.lifecycle import Event, State
from approvals.models import REQUEST_CHANGES, Report, Request, Review
from approvals.services import Acknowledgement
from approvals.services.reviews import is_requester, is_self_approval
from provisioner.sentences import number
from provisioner.values import Action, Identity, Severity

# An approval of this or worse asks for a reason and for the deployment's name, typed: unknown is worse.
SERIOUS = Severity.DANGEROUS
MAY_SAY_NO = "You can deny it or request changes."


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


class Loss(StrEnum):
    """What an approval gives up, the worst first; each is acknowledged by itself."""

    NAMESPACES = "namespaces"
    CRDS = "crds"
    DATA = "data"
    MADE_ANEW = "made-anew"
    TAKEN_OVER = "taken-over"
    OBJECTS = "objects"

    def words(self, count: int) -> str:
        return LOSSES[self].format(of=number(count, OF_LOSS.get(self, "object")))


# One sentence for each; {of} says how many there are.
LOSSES = {
    Loss.NAMESPACES: "{of}, and every object inside",
    Loss.CRDS: "{of}, and every stored object",
    Loss.DATA: "data in the volumes of {of}",
    Loss.MADE_ANEW: "{of}, deleted and created again",
    Loss.TAKEN_OVER: "{of}, taken over from others",
    Loss.OBJECTS: "{of}, deleted",
}
OF_LOSS = {Loss.NAMESPACES: "namespace", Loss.CRDS: "custom resource definition"}
# What takes something along, whatever is done to it.
HOLDERS = {
    "Namespace": Loss.NAMESPACES,
    "CustomResourceDefinition.apiextensions.k8s.io": Loss.CRDS,
    "PersistentVolumeClaim": Loss.DATA,
    "PersistentVolume": Loss.DATA,
    "StatefulSet.apps": Loss.DATA,
}


@dataclass(frozen=True, slots=True)
class TickKind:
    """All objects of one kind that one action concerns: `delete ConfigMap`, and each with what goes with it."""

    kind: str
    items: list[Acknowledgement]

    @property
    def action(self) -> str:
        return self.kind.split(" ")[0]

    @property
    def name(self) -> str:
        """The kind without its group."""
        return self.kind.split(" ")[1].partition(".")[0]

    @property
    def objects(self) -> list[tuple[str, str]]:
        return [(one.name.split(" ", 2)[2], one.words) for one in self.items]


@dataclass(frozen=True, slots=True)
class Tick:
    """A checkbox of the form: one kind of loss, in `words`, with all that is lost."""

    value: str
    words: str
    items: list[Acknowledgement] = field(default_factory=list)

    @property
    def kinds(self) -> list[TickKind]:
        """Its objects by action and kind, `delete ConfigMap`, what takes something along first."""
        found: dict[str, list[Acknowledgement]] = defaultdict(list)
        for one in sorted(self.items, key=lambda it: (not it.words, it.name)):
            found[" ".join(one.name.split(" ")[:2])].append(one)
        return [TickKind(kind, items) for kind, items in found.items()]


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
        words = "You requested this change, so someone else must approve it. " + MAY_SAY_NO
        return ViewerOptions(checked.identity, False, True, may_withdraw, words, given=given)
    if services.collisions(report):
        words = "This request cannot be approved while it collides with objects of someone else. " + MAY_SAY_NO
        return ViewerOptions(checked.identity, False, True, may_withdraw, words, given=given)
    return ViewerOptions(checked.identity, True, True, may_withdraw, given=given)


@dataclass(frozen=True, slots=True)
class DismissalOptions:
    """The reviews that request changes and may be dismissed, by key; `words` say why the viewer may not, `rule` is the
    RBAC that would allow it."""

    keys: frozenset[int] = frozenset()
    may: bool = False
    words: str = ""
    rule: str = ""


def dismissal_of(caller: Caller, request: Request, reviews: Iterable[Review]) -> DismissalOptions:
    """Asks Kubernetes, by the very check that a dismissal goes through, where there is something to dismiss."""
    if request.state != State.IN_REVIEW or not any(one.decision == REQUEST_CHANGES for one in reviews):
        return DismissalOptions()
    asking = Review.objects.judged(request).filter(decision=REQUEST_CHANGES, dismissals=None)
    keys = frozenset(asking.values_list("pk", flat=True))
    if not keys:
        return DismissalOptions()
    try:
        checked = check_dismisser(caller, request)
    except Refused as refusal:
        return DismissalOptions(keys, words=str(refusal), rule=str(refusal.facts.get("rule", "")))
    if is_self_approval(request, checked.person):
        return DismissalOptions(keys, words="You requested this change, so someone else must dismiss the review.")
    return DismissalOptions(keys, may=True)


def is_serious(worst: str) -> bool:
    return bool(worst) and Severity(worst).is_at_least(SERIOUS)


def missing_for_approval(request: Request, worst: str, typed: str, reason: str) -> dict[str, str]:
    """By field what a serious approval lacks: its reason, and the name of what it lets in."""
    if not is_serious(worst):
        return {}
    missing = {}
    if not reason.strip():
        missing["reason"] = f"The worst finding is {worst}: enter why you approve it anyway."
    if typed.strip() != request.deployment.name:
        missing["typed"] = f"The worst finding is {worst}: type the name {request.deployment.name} to approve it."
    return missing


def ticks(request: Request, report: Report | None = None) -> list[Tick]:
    """What an approval has to acknowledge: one tick for each kind of loss, the worst first, with all its objects.

    `report` is what is shown, where it is at hand.
    """
    losses: dict[Loss, list[Acknowledgement]] = {}
    for item in services.acknowledgements(request, report):
        losses.setdefault(_loss_of(item), []).append(item)
    return [Tick(loss.value, loss.words(len(losses[loss])), losses[loss]) for loss in Loss if loss in losses]


def ticked_by(review: Review, offered: Iterable[Tick]) -> list[str]:
    """The checkboxes that say what `review` acknowledges."""
    named = set(review.acknowledges)
    return [tick.value for tick in offered if {it.name for it in tick.items} <= named]


def ticked(request: Request, values: Sequence[str]) -> list[str]:
    """The acknowledged objects: a tick stands for all of its kind of loss, and an object may be named by itself."""
    everything = [(tick.value, one.name) for tick in ticks(request) for one in tick.items]
    return sorted(name for loss, name in everything if loss in values or name in values)


def _loss_of(item: Acknowledgement) -> Loss:
    action, kind = item.name.split(" ")[:2]
    if kind in HOLDERS:
        return HOLDERS[kind]
    return Loss.TAKEN_OVER if action == Action.ADOPT else Loss.MADE_ANEW if action == Action.REPLACE else Loss.OBJECTS
