"""FindingException: findings that guards ignore until a day, once two people stand behind it. PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Self

from approvals.deciding.kinds import DecidingKind, FormField, ReadyState
from approvals.deciding.selector import Selector
from approvals.deciding.spec_fields import SpecFields
from approvals.policy import why_not_waivable
from approvals.policy.expression import MAX_EXPRESSION
from provisioner.values import ObjectRef, Severity

LONGEST = timedelta(days=366)
SOON = timedelta(days=14)
NEEDED_PEOPLE = 2
# What anybody may accept, the worst first.
ACCEPTABLE = tuple(str(severity) for severity in Severity if severity is not Severity.UNKNOWN)


@dataclass(frozen=True, slots=True)
class FindingException(DecidingKind):
    """It accepts findings of `rule` that have the `fingerprint`, are about the `subject`, or both, and are no worse
    than `max_severity`. `subject` is a glob over how reports name objects: `Deployment.apps payments/*`.
    """

    kind: ClassVar[str] = "FindingException"
    plural: ClassVar[str] = "findingexceptions"
    slug: ClassVar[str] = "finding-exceptions"
    words: ClassVar[str] = "finding exception"
    about: ClassVar[str] = (
        "A finding exception accepts findings until a day, so that guards ignore them. It takes effect when two people "
        "agree to it: its author, if they wrote it in Pratique, and everyone who confirms it."
    )
    if_unknown: ClassVar[str] = "nothing is accepted"
    asks: ClassVar[str] = "Accepts"
    needs_people: ClassVar[bool] = True
    has_description: ClassVar[bool] = False
    form: ClassVar[tuple[FormField, ...]] = (
        FormField("reason", "Reason", "Why these findings are accepted. Everyone sees it.", rows=2, is_required=True),
        FormField("ticket", "Ticket", "Where it is tracked, such as SEC-123."),
        FormField("rule", "Rule", "The id of the findings' rule, such as RB-01.", is_required=True),
        FormField("subject", "Subject", "As reports name it, or a glob: ClusterRole.rbac.authorization.k8s.io web-*"),
        FormField(
            "fingerprint",
            "Fingerprint",
            "Of exactly one finding: REST shows it, and the address of its page has it after only=.",
        ),
        FormField(
            "maxSeverity",
            "Worst severity",
            "It accepts no finding that is worse.",
            choices=tuple((one, one) for one in ACCEPTABLE[::-1]),
            initial=str(Severity.DANGEROUS),
        ),
        FormField(
            "expires", "Ends", "At most a year after the confirmation, such as 2027-03-31T00:00:00Z.", is_required=True
        ),
    )

    description: str
    ticket: str
    rule: str
    subject: str
    fingerprint: str
    max_severity: str
    expires: datetime
    selector: Selector
    when: str

    @classmethod
    def describe_unreadable(cls, spec: Mapping[str, Any]) -> str:
        return "it accepts nothing"

    @classmethod
    def parse(cls, spec: Mapping[str, Any]) -> Self:
        fields = SpecFields(spec)
        found = cls(
            description=fields.text("reason", longest=1000).strip(),  # its reason says what it is for
            ticket=fields.text("ticket", default="", longest=200),
            rule=fields.text("rule", longest=20),
            subject=fields.text("subject", default="", longest=600),
            fingerprint=fields.text("fingerprint", default="", longest=80),
            max_severity=fields.choice("maxSeverity", ACCEPTABLE, default=str(Severity.DANGEROUS)),
            expires=fields.moment("expires", example="2027-03-31T00:00:00Z"),
            selector=Selector.read(fields.inner("selector")),
            when=fields.text("when", default="", longest=MAX_EXPRESSION),
        )
        fields.end()
        if not any(letter.isalnum() for letter in found.description):
            raise fields.refuse("reason", "says nothing; expected why these findings are accepted")
        if why := why_not_waivable(rule=found.rule, severity=found.max_severity):
            raise fields.refuse("rule", f"is {found.rule!r}: {why}")
        if not found.rule:
            raise fields.refuse("rule", "is empty; expected the id of a rule, such as RB-01")
        if not (found.subject or found.fingerprint):
            raise fields.refuse("subject", "and spec.fingerprint are both missing; expected one of them")
        return found

    @property
    def summary(self) -> str:
        what = f"finding {self.fingerprint[:12]} of {self.rule}" if self.fingerprint else self.rule
        about = f" of {self.subject}" if self.subject else ""
        return f"{what}{about}, {self.max_severity} at most, until {self.expires:%Y-%m-%d %H:%M} UTC"

    def accepts(self, finding: Mapping[str, Any]) -> bool:
        """Whether it is about a finding of a report's record. Nothing that nobody may accept, and nothing that is
        learned of a Secret: who confirms it may not have the right to get that (S09)."""
        rule, severity, ref = finding["rule"], finding["severity"], finding["ref"]
        if rule != self.rule or why_not_waivable(rule=rule, severity=severity):
            return False
        is_worse = not Severity(self.max_severity).is_at_least(Severity(severity))
        if is_worse or any(map(_is_secret, [ref, *finding["sources"]])):
            return False
        if self.fingerprint and finding["fingerprint"] != self.fingerprint:
            return False
        if self.subject and not (ref and fnmatchcase(str(ObjectRef(**ref)), self.subject)):
            return False
        # One that says more rules at once is another finding than those of this rule alone.
        return bool(self.fingerprint) or not finding.get("also")

    def ready(self, people: Sequence[str], now: datetime) -> ReadyState:
        """Whether it counts: `people` stand behind what it says now, each named once."""
        end = f"{self.expires:%Y-%m-%d %H:%M} UTC"
        if self.expires <= now:
            return ReadyState(False, "Expired", f"it ended at {end}, so it accepts nothing")
        if len(people) >= NEEDED_PEOPLE:
            return ReadyState(True, "Confirmed", f"it is in effect until {end}; {' and '.join(people)} agreed to it")
        if why := self.why_not_confirmable(now):
            return ReadyState(False, "EndsTooLate", f"it accepts nothing: {why}")
        more = "two people must confirm it" if not people else f"someone other than {people[0]} must confirm it"
        return ReadyState(False, "NeedsSecondPerson", f"it accepts nothing yet: {more} in Pratique")

    def why_not_confirmable(self, now: datetime) -> str:
        if self.expires > now + LONGEST:
            return f"spec.expires is {self.expires:%Y-%m-%d}; expected at most a year after the confirmation"
        return f"it ended on {self.expires:%Y-%m-%d}" if self.expires <= now else ""

    def next_change(self, now: datetime) -> datetime | None:
        return self.expires if self.expires > now else None


def _is_secret(ref: Mapping[str, Any] | None) -> bool:
    return ref is not None and (ref["group"], ref["kind"]) == ("", "Secret")
