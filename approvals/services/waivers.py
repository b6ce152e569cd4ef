"""Accepting findings in a review: by whom, which, and in what words (security-rules.md S03, S12, S22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from approvals import access, policy
from approvals.access import Caller
from approvals.errors import InvalidInput, NotAllowed, NotWaivable, UnknownFinding
from approvals.gate.reviewer_checks import check_human, check_override
from approvals.models import Finding, Request, Review
from provisioner.values import Identity, ObjectRef

MAX_WAIVERS = 200
MAX_WAIVER_REASON = 1000
NOT_IN_CHAT = "findings can be accepted only in the browser or over REST, not in chat or by a machine"
_SECRET = ("", "Secret")
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Waiver:
    """One finding, by its fingerprint in the round's report, and why it is accepted."""

    fingerprint: str
    reason: str


def check_words(waives: Sequence[Waiver], *, decision: str, channel: str) -> None:
    """What can be said against them without asking anybody; raises InvalidInput or NotAllowed."""
    if not waives:
        return
    if not Review.Channel(channel).shows_report:
        raise NotAllowed(NOT_IN_CHAT)
    if decision != "Approve":
        raise InvalidInput("findings can be accepted only together with an approval", field="waives")
    if len(waives) > MAX_WAIVERS:
        raise InvalidInput(
            f"{len(waives)} findings were accepted at once; at most {MAX_WAIVERS} are allowed", field="waives"
        )
    if len({waiver.fingerprint for waiver in waives}) < len(waives):
        raise InvalidInput("a finding appears twice", field="waives")
    for waiver in waives:
        what = f"the reason for accepting finding {waiver.fingerprint[:12]}"
        if not any(letter.isalnum() for letter in waiver.reason):
            raise InvalidInput(f"{what} is missing", field="waives", fingerprint=waiver.fingerprint)
        if len(waiver.reason) > MAX_WAIVER_REASON:
            words = f"{what} has {len(waiver.reason)} characters; at most {MAX_WAIVER_REASON} are allowed"
            raise InvalidInput(words, field="waives", fingerprint=waiver.fingerprint)
        if "\0" in waiver.reason:
            raise InvalidInput(f"{what} contains a NUL character, which cannot be stored", field="waives")


def check(waives: Sequence[Waiver], *, by: Caller, identity: Identity, request: Request) -> str:
    """Ask Kubernetes whether this person may waive, and hold the waivers against the report of the present round.

    Returns Kubernetes' words. Raises NotAllowed, CouldNotAsk, UnknownFinding or NotWaivable.
    """
    words = check_right(by, identity, request)
    report = request.reports.filter(round=request.round).first()
    known = {finding["fingerprint"]: finding for finding in report.body["findings"]} if report else {}
    unknown = sorted({waiver.fingerprint for waiver in waives} - known.keys())
    if unknown:
        raise UnknownFinding(
            f"{len(unknown)} of the accepted findings are not in the report of round {request.round}", unknown=unknown
        )
    found = [known[waiver.fingerprint] for waiver in waives]
    refused = {finding["fingerprint"]: why for finding in found if (why := why_not(finding))}
    if refused:
        first = next(iter(refused.values()))
        raise NotWaivable(f"{len(refused)} of these findings cannot be accepted: {first}", findings=refused)
    # Nobody accepts what they may not see: of a foreign Secret not even the words are shown (S09).
    refs = {ObjectRef(**finding["ref"]) for finding in found if is_about_secret(finding)}
    for ref in sorted(refs, key=str):
        if not access.may_see_object(by, request.deployment.cluster, ref).allowed:
            raise NotAllowed(f"a finding is about {ref}, which you are not allowed to get, so you cannot accept it")
    return words


def check_right(by: Caller, identity: Identity, request: Request) -> str:
    """Kubernetes' words that this person may `override` here; raises NotAllowed or CouldNotAsk."""
    check_human(by, identity, "accept findings")
    return check_override(identity, request.deployment)


def why_not(finding: Record) -> str:
    """Why nobody may waive a finding of a report's record; "" where somebody may."""
    return policy.why_not_waivable(rule=finding["rule"], severity=finding["severity"])


def audit_facts(waives: Sequence[Waiver], request: Request) -> list[dict[str, str]]:
    """The waivers with the rule and severity of each finding; not of one about a Secret, whose values they hint at."""
    wanted = [waiver.fingerprint for waiver in waives]
    rows = Finding.objects.filter(report__request=request, report__round=request.round, fingerprint__in=wanted)
    shown = {row.fingerprint: row for row in rows if not row.object.startswith("Secret ")}
    return [
        {
            "rule": shown[waiver.fingerprint].rule if waiver.fingerprint in shown else "",
            "severity": shown[waiver.fingerprint].severity if waiver.fingerprint in shown else "",
            "fingerprint": waiver.fingerprint,
            "reason": waiver.reason,
        }
        for waiver in waives
    ]


def is_about_secret(finding: Record) -> bool:
    ref = finding["ref"]
    return bool(ref) and (ref["group"], ref["kind"]) == _SECRET
