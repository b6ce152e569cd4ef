"""The form that decides on a request, on every page that lists findings: what an approval acknowledges and accepts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django import template
from django.http import HttpRequest, QueryDict

from approvals import services
from approvals.access import Caller
from approvals.clock import database_now
from approvals.errors import Refused
from approvals.lifecycle import State
from approvals.models import PolicyEvaluation, Report, Request, Review, VoidedRound
from approvals.policy.explanation import TermValue
from approvals.selectors import pages
from approvals.selectors.acceptances import Acceptance, acceptances_of
from approvals.services import Acknowledgement
from approvals.services.waivers import Waiver, check_right, why_not
from approvals.web.requests.report_view import ReportView, ShownEntry, ShownFinding
from approvals.web.requests.request_tab import DismissalOptions, RequestTab, ViewerOptions
from provisioner.sentences import number
from provisioner.values import Action, Severity

# Filters of the templates of these pages.
register = template.Library()

# An approval of this or worse asks for a reason and for the deployment's name, typed: unknown is worse.
SERIOUS = Severity.DANGEROUS


# The field in which a finding is accepted is named after it; left empty, it is not. One for a group names each.
FIELD = "waive:"
AND = ","
MAY = (
    "You may accept a finding, so that guards ignore it: open the finding and write a reason. It counts with your"
    " approval of this request."
)


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
        return [(item.name.split(" ", 2)[2], item.words) for item in self.items]


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
        for item in sorted(self.items, key=lambda it: (not it.words, it.name)):
            found[" ".join(item.name.split(" ")[:2])].append(item)
        return [TickKind(kind, items) for kind, items in found.items()]


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


def ticks_of(request: Request, report: Report | None = None) -> list[Tick]:
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
    return [tick.value for tick in offered if {item.name for item in tick.items} <= named]


def ticked(request: Request, values: Sequence[str]) -> list[str]:
    """The acknowledged objects: a tick stands for all of its kind of loss, and an object may be named by itself."""
    everything = [(tick.value, item.name) for tick in ticks_of(request) for item in tick.items]
    return sorted(name for loss, name in everything if loss in values or name in values)


def _loss_of(item: Acknowledgement) -> Loss:
    action, kind = item.name.split(" ")[:2]
    if kind in HOLDERS:
        return HOLDERS[kind]
    return Loss.TAKEN_OVER if action == Action.ADOPT else Loss.MADE_ANEW if action == Action.REPLACE else Loss.OBJECTS


@dataclass(frozen=True, slots=True)
class AcceptedFinding:
    """A reviewer's waiver of one finding for the history of reviews; `what` names the finding."""

    by: str
    at: datetime
    reason: str
    what: str


@dataclass(frozen=True, slots=True)
class ShownWaiver:
    """`field` is the input's name, "" where the finding is not offered; then `words` may say why."""

    accepted: list[Acceptance]
    field: str
    words: str
    typed: str


@dataclass(frozen=True, slots=True)
class GroupWaiver:
    """One field that accepts `count` findings, each of them by its fingerprint."""

    field: str
    count: int
    typed: str


class Waivers:
    """The waivers of one page. `words` say whether the viewer `may` accept findings; `rule` would allow it."""

    def __init__(self, request: Request, report: Report, reviews: Iterable[Review], typed: Mapping[str, str]) -> None:
        self.words = self.rule = ""
        self._typed = typed
        self._records = {finding["fingerprint"]: finding for finding in report.body["findings"]}
        self._round = report.round
        self._accepted = acceptances_of(request, report.round, reviews, database_now())
        self.may = False

    def offer(self, caller: Caller, request: Request, options: ViewerOptions) -> None:
        """Let the viewer accept findings that can be, if Kubernetes lets them; else say why not."""
        if not (options.may_approve and options.identity and self._records and self._round == request.round):
            return
        try:
            check_right(caller, options.identity, request)
        except Refused as refusal:
            self.words, self.rule = f"You cannot accept findings: {refusal}", str(refusal.facts.get("rule", ""))
            return
        self.words, self.may = MAY, True

    def of(self, finding: ShownFinding) -> ShownWaiver:
        fingerprint = finding.record["fingerprint"]
        accepted = self._accepted.get(fingerprint, [])
        words = (why_not(finding.record) if finding.record["rule"] else "you may not see it") if self.may else ""
        field = FIELD + fingerprint if self.may and not words else ""
        return ShownWaiver(accepted, field, words, self._typed.get(fingerprint, ""))

    def of_group(self, findings: Iterable[ShownFinding]) -> GroupWaiver:
        """One field for those of the findings that can be accepted; what was typed for all of them stands in it."""
        names = [waiver.field.removeprefix(FIELD) for waiver in map(self.of, findings) if waiver.field]
        typed = {self._typed.get(name, "") for name in names}
        return GroupWaiver(FIELD + AND.join(names), len(names), typed.pop() if len(typed) == 1 else "")

    def given_in(self, review: Review) -> list[AcceptedFinding]:
        """What a review accepts, for the history; of another round's report only the fingerprints are at hand."""
        known = self._records if review.round == self._round else {}
        return [
            AcceptedFinding(
                review.username,
                review.given_at,
                waiver["reason"],
                _finding_name(known.get(waiver["fingerprint"]), waiver),
            )
            for waiver in review.waives
        ]

    def written_at(self, *, beside: Collection[str]) -> list[Mapping[str, Any]]:
        """The findings at which something was written, but for these."""
        return [
            self._records[fingerprint]
            for fingerprint in self._typed
            if fingerprint in self._records and fingerprint not in beside
        ]


def typed_in(form: QueryDict) -> list[Waiver]:
    """The findings for whose acceptance a reason was written; what was written at one counts before its group's."""
    fields = ((name, str(value).replace("\r\n", "\n").strip()) for name, value in form.items())
    written = [(name.removeprefix(FIELD), reason) for name, reason in fields if name.startswith(FIELD) and reason]
    of_groups = {part: reason for name, reason in written if AND in name for part in name.split(AND)}
    alone = {name: reason for name, reason in written if AND not in name}
    return [Waiver(name, reason) for name, reason in {**of_groups, **alone}.items()]


def _finding_name(record: Mapping[str, Any] | None, waiver: Mapping[str, str]) -> str:
    """The rule of the finding, but not of one about a Secret: that alone would tell of its values (S09)."""
    if record is None or ((ref := record["ref"]) and (ref["group"], ref["kind"]) == ("", "Secret")):
        return waiver["fingerprint"][:12]
    return str(record["rule"])


@dataclass(frozen=True, slots=True)
class Written:
    """What stands written in the form: `waives` are reasons by fingerprint. `errors` say by field why it was refused;
    "" has what is wrong with no single field.

    `lacks_reason` where it is a denial that says nothing: it may be sent once more as it is. `typed` is the name that
    confirms a serious approval.
    """

    reason: str
    acknowledges: Collection[str]
    waives: Mapping[str, str]
    errors: Mapping[str, str] = field(default_factory=dict)
    lacks_reason: bool = False
    typed: str = ""
    apply_at: str = ""

    @property
    def wrong(self) -> str:
        """What is wrong with no field that the form shows."""
        return " ".join(words for name, words in self.errors.items() if name not in ("reason", "typed", "apply_at"))


def written_in(http: HttpRequest, errors: Mapping[str, str] | None = None, *, lacks_reason: bool = False) -> Written:
    """The whole form, whatever button sent it."""
    waives = {waiver.fingerprint: waiver.reason for waiver in typed_in(http.POST)}
    reason = http.POST.get("reason", "").strip()
    typed = http.POST.get("typed", "")
    ticks, apply_at = http.POST.getlist("acknowledges"), http.POST.get("apply_at", "")
    return Written(reason, ticks, waives, errors or {}, lacks_reason, typed, apply_at)


@dataclass(frozen=True, slots=True)
class DecisionForm:
    """The form for one viewer. `ticks` are what an approval must name; `carried` is what was written at findings that
    the page does not show, so that nothing of it is lost.
    """

    waivers: Waivers | None
    ticks: list[Tick]
    is_serious: bool
    written: Written | None
    carried: list[tuple[ShownFinding, ShownWaiver]]


def form_of(
    tab: RequestTab, written: Written | None = None, view: ReportView | None = None, shown: Iterable[ShownFinding] = ()
) -> DecisionForm:
    """Return the form on a page that shows these findings of `view`."""
    request, report, given = tab.item, tab.report, tab.options.given
    ticks = ticks_of(request, report) if request.state == State.IN_REVIEW else []
    if given and written is None:  # the viewer's own review, to be given again
        waives = {waiver["fingerprint"]: waiver["reason"] for waiver in given.waives}
        written = Written(given.reason, ticked_by(given, ticks), waives)
    if report is None:
        return DecisionForm(None, ticks, False, written, [])
    waivers = Waivers(request, report, tab.reviews, written.waives if written else {})
    waivers.offer(tab.caller, request, tab.options)
    carried = []
    if view:
        for record in waivers.written_at(beside={finding.record["fingerprint"] for finding in shown}):
            finding = view.finding(record)
            if (waiver := waivers.of(finding)).field:
                carried.append((finding, waiver))
    return DecisionForm(waivers, ticks, is_serious(report.worst), written, carried)


@dataclass(frozen=True, slots=True)
class ReviewHistory:
    """All reviews with what came of them. `terms` are those of an evaluation, by its key. `wrong_dismissal` says why a
    dismissal that was sent was refused.
    """

    reviews: list[Review]
    voided_rounds: list[VoidedRound]
    evaluations: list[PolicyEvaluation]
    waivers: Waivers | None
    terms: Mapping[int, tuple[TermValue, ...]] = field(default_factory=dict)
    dismissal: DismissalOptions = field(default_factory=DismissalOptions)
    wrong_dismissal: str = ""


def history_of(tab: RequestTab, waivers: Waivers | None) -> ReviewHistory:
    evaluations = tab.evaluations
    return ReviewHistory(
        tab.reviews,
        pages.voided_rounds_of(tab.item),
        evaluations,
        waivers,
        services.explain_evaluations(evaluations, tab.item, tab.report, tab.sight),
    )


@register.filter
def terms_of(evaluation: PolicyEvaluation, history: ReviewHistory) -> tuple[TermValue, ...]:
    """The value of each term of a policy, as far as the viewer may know it."""
    return history.terms.get(evaluation.pk, ())


@register.filter
def waiver_of(finding: ShownFinding, waivers: Waivers) -> ShownWaiver:
    """Who accepted a finding, and whether the viewer may."""
    return waivers.of(finding)


@register.filter
def waiver_of_entry(entry: ShownEntry, waivers: Waivers | None) -> GroupWaiver | None:
    """The field that accepts all findings of an entry together."""
    return waivers.of_group(entry.findings) if waivers and waivers.may else None


@register.filter
def waived_in(review: Review, waivers: Waivers | None) -> list[AcceptedFinding]:
    """The findings that a review accepts."""
    return waivers.given_in(review) if waivers else []
