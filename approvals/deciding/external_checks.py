"""ExternalCheck: another system that says whether a request may go on, and how its answers stand. PURE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from approvals.deciding.kinds import DecidingKind, FormField
from approvals.deciding.selector import Selector
from approvals.deciding.spec_fields import SpecFields
from approvals.policy.expression import MAX_EXPRESSION

LONGEST_ADDRESS = 500
LONGEST_MESSAGE = 1000
LEAST_SECONDS, MOST_SECONDS, USUAL_SECONDS = 10, 86400, 600
# What was answered before an apply counts for so long: a ticket that was open may be closed by then.
COUNTS_FOR = timedelta(hours=1)


class CheckStage(StrEnum):
    AFTER_REPORT = "AfterReport"
    BEFORE_APPLY = "BeforeApply"


class Enforcement(StrEnum):
    MANDATORY = "Mandatory"
    ADVISORY = "Advisory"


class CheckOutcome(StrEnum):
    """What a check may answer, in the order in which one answer may follow another: nothing follows `failed`."""

    PENDING = "pending"
    PASSED = "passed"
    FAILED = "failed"

    def may_follow(self, earlier: str) -> bool:
        order = ["", *CheckOutcome]
        return order.index(self) > order.index(earlier)


class CheckState(StrEnum):
    """How a check stands for one subject, as people are told."""

    UNREADABLE = "unreadable"
    UNSIGNED = "no secret"
    NOT_ASKED = "not asked"
    WAITING = "waiting"
    PENDING = "pending"
    PASSED = "passed"
    FAILED = "failed"
    SILENT = "no answer"


AWAITED = frozenset({CheckState.NOT_ASKED, CheckState.WAITING, CheckState.PENDING})


@dataclass(frozen=True, slots=True)
class ExternalCheck(DecidingKind):
    """It is asked at `url`, and has so many seconds to answer."""

    kind: ClassVar[str] = "ExternalCheck"
    plural: ClassVar[str] = "externalchecks"
    slug: ClassVar[str] = "external-checks"
    words: ClassVar[str] = "external check"
    asks: ClassVar[str] = "Definition"
    after_deletion: ClassVar[str] = "Requests that wait only for this check then continue."
    about: ClassVar[str] = (
        "An external check asks another system, such as your ticket system, whether a request may continue."
    )
    form: ClassVar[tuple[FormField, ...]] = (
        FormField(
            "url",
            "URL",
            "Pratique sends signed events to this URL. Private addresses and http need the operator's permission.",
            is_required=True,
        ),
        FormField(
            "stage",
            "Asked",
            "An answer before the apply counts for one hour.",
            choices=((CheckStage.AFTER_REPORT, "after the report"), (CheckStage.BEFORE_APPLY, "before the apply")),
        ),
        FormField(
            "enforcement",
            "Enforcement",
            "An advisory check is only shown. It holds no request.",
            choices=((Enforcement.MANDATORY, "Mandatory"), (Enforcement.ADVISORY, "Advisory")),
        ),
        FormField(
            "timeoutSeconds",
            "Seconds to answer",
            f"{LEAST_SECONDS} to {MOST_SECONDS}. Empty: {USUAL_SECONDS}.",
            is_number=True,
        ),
    )

    description: str
    selector: Selector
    when: str
    url: str
    stage: CheckStage = CheckStage.AFTER_REPORT
    enforcement: Enforcement = Enforcement.MANDATORY
    timeout_seconds: int = USUAL_SECONDS

    @classmethod
    def parse(cls, spec: Mapping[str, Any]) -> Self:
        fields = SpecFields(spec)
        found = cls(
            description=fields.text("description", default="", longest=1000),
            selector=Selector.read(fields.inner("selector")),
            when=fields.text("when", default="", longest=MAX_EXPRESSION),
            url=fields.text("url", longest=LONGEST_ADDRESS),
            stage=CheckStage(fields.choice("stage", tuple(CheckStage), default=CheckStage.AFTER_REPORT)),
            enforcement=Enforcement(fields.choice("enforcement", tuple(Enforcement), default=Enforcement.MANDATORY)),
            timeout_seconds=fields.number(
                "timeoutSeconds", default=USUAL_SECONDS, least=LEAST_SECONDS, most=MOST_SECONDS
            ),
        )
        fields.end()
        if not is_address(found.url, "https", "http") or {"?", "#"} & {*found.url}:
            raise fields.refuse("url", "is no plain URL; expected https://HOST/PATH without credentials or a query")
        return found

    @property
    def summary(self) -> str:
        host = urlsplit(self.url).hostname
        return f"{self.enforcement}, {self.stage}: {host} answers within {self.timeout_seconds} seconds"


def is_address(text: str, *schemes: str) -> bool:
    """Whether it is a URL with one of these schemes that names a host and no user, and that all read alike."""
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    is_plain = text.isascii() and not any(sign <= " " or sign in '\\"<>^`\x7f' for sign in text)
    return is_whole and is_plain and "@" not in parts.netloc and len(text) <= LONGEST_ADDRESS


@dataclass(frozen=True, slots=True)
class CheckRunFacts:
    """What was asked of `url`, and what came back. `problem` is why the event could not be delivered so far.

    Until it `is_sent` for the first time, it waits in line, and its time has not begun.
    """

    url: str
    asked_at: datetime
    due_at: datetime
    is_delivered: bool = False
    problem: str = ""
    outcome: str = ""
    message: str = ""
    link: str = ""
    answered_at: datetime | None = None
    is_sent: bool = True


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How a check stands, in words; `since` and `due_at` where it was asked."""

    name: str
    stage: str
    enforcement: str
    state: CheckState
    words: str
    link: str = ""
    since: datetime | None = None
    due_at: datetime | None = None

    @property
    def holds(self) -> bool:
        return self.enforcement != Enforcement.ADVISORY and self.state != CheckState.PASSED

    @property
    def record(self) -> dict[str, Any]:
        """As Request.external_checks keeps it."""
        moments = {"since": self.since, "due_at": self.due_at}
        told = {name: moment.isoformat() if moment else None for name, moment in moments.items()}
        return {**asdict(self), **told, "holds": self.holds}


@dataclass(frozen=True, slots=True)
class SelectedCheck:
    """A check that selects a request, with its newest run for the present subject.

    `check` is None where it cannot be read: `problem` says why. `note` says why it is taken to select the request,
    although nobody can tell. Without a secret nothing is sent.
    """

    name: str
    uid: str
    check: ExternalCheck | None = None
    problem: str = ""
    note: str = ""
    has_secret: bool = True
    run: CheckRunFacts | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether it has to be asked: what was asked of another address does not count, and answers age."""
        return self.check is not None and self.has_secret and self._current(self.check, now) is None

    def result(self, now: datetime) -> CheckResult:
        if self.check is None:
            words = f"it cannot be read, so the requests that it might select wait: {self.problem}"
            return CheckResult(self.name, "", "", CheckState.UNREADABLE, words)
        run = self._current(self.check, now)
        state, words = _judge(run, now) if run else self._judge_unasked(self.check)
        return CheckResult(
            self.name,
            self.check.stage,
            self.check.enforcement,
            state,
            f"{words}; {self.note}" if self.note else words,
            run.link if run else "",
            (run.answered_at or run.asked_at) if run else None,
            run.due_at if run else None,
        )

    def _current(self, check: ExternalCheck, now: datetime) -> CheckRunFacts | None:
        run = self.run
        if run is None or run.url != check.url:
            return None
        is_old = run.outcome == CheckOutcome.PASSED and run.answered_at is not None
        is_old = is_old and check.stage is CheckStage.BEFORE_APPLY and now - (run.answered_at or now) >= COUNTS_FOR
        return None if is_old else run

    def _judge_unasked(self, check: ExternalCheck) -> tuple[CheckState, str]:
        if not self.has_secret:
            return CheckState.UNSIGNED, "it has no signing secret, so no event is sent"
        if check.stage is CheckStage.AFTER_REPORT:
            return CheckState.NOT_ASKED, "it will be asked in a moment"
        return CheckState.NOT_ASKED, "it is asked once the request is approved and nothing else holds it"


def _judge(run: CheckRunFacts, now: datetime) -> tuple[CheckState, str]:
    asked, said = f"{run.asked_at:%Y-%m-%d %H:%M:%S} UTC", f": {run.message}" if run.message else ""
    if run.outcome == CheckOutcome.FAILED:
        return CheckState.FAILED, f"it answered failed{said}"
    if run.outcome == CheckOutcome.PASSED:
        return CheckState.PASSED, f"it answered passed{said}"
    if not run.is_sent:
        return CheckState.WAITING, f"it was asked at {asked}, and the event is about to be sent"
    undelivered = f"; the event was not delivered ({run.problem})" if run.problem and not run.is_delivered else ""
    if now >= run.due_at:
        seconds = int((run.due_at - run.asked_at).total_seconds())
        last = f"; it answered pending{said}" if run.outcome else undelivered
        return CheckState.SILENT, f"it was asked at {asked} and did not answer within {seconds} s{last}"
    until = f"it has until {run.due_at:%H:%M:%S} UTC"
    if run.outcome == CheckOutcome.PENDING:
        return CheckState.PENDING, f"it answered pending{said}; {until}"
    return CheckState.WAITING, f"it was asked at {asked} and has not answered yet; {until}{undelivered}"
