"""What people are told of an event, in every chat and by mail; each kind of target renders it. PURE"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from approvals.events.occasions import EventType, brief_type
from provisioner.escaping import visible
from provisioner.sentences import and_more, number, some
from provisioner.values import Severity

# Fits into what every vendor takes: 3,000 characters of a section in Slack, 4,000 of a post in an old Mattermost.
ROOM = 2600
MOST_SUBJECTS = 10
# Where the name of the type does not say it.
_WHAT: Mapping[str, str] = {
    EventType.REQUEST_READY: "ready for review",
    EventType.REQUEST_STALE: "the plan changed, earlier approvals no longer count",
    EventType.REQUEST_APPLYING: "being applied",
    EventType.REQUEST_RESTORING: "the previous revision is being restored",
    EventType.REQUEST_SUPERSEDED: "replaced by a newer request",
    EventType.REVIEW_OWED: "break-glass, someone else must review it",
    EventType.DEPLOYMENT_DRIFTED: "drift, an object is not as approved",
    EventType.DEPLOYMENT_CORRECTED: "an object is as approved again",
    EventType.TEST: "this is a test",
}


@dataclass(frozen=True, slots=True)
class EventMessage:
    """`subject` is what it is about, `what` happened to it; `entries` are the findings, the worst first."""

    event_id: str
    subject: str
    what: str
    link: str
    facts: tuple[tuple[str, str], ...] = ()
    entries: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.subject}: {self.what}"

    def fit(self, escape: Callable[[str], str], *, title_room: int, room: int = ROOM) -> tuple[str, list[str]]:
        """The title and as many whole lines as have room, as `escape` makes them fit for a tool. A title that is too
        long leaves its subject, of which names of others are part, to the first line."""
        lines = [*(f"{label}: {words}" for label, words in self.facts), *(f"• {entry}" for entry in self.entries)]
        title = escape(visible(self.title))
        if _length(title) > title_room:
            title, lines = escape(self.what), [self.subject, *lines]
        return title, fit_lines([escape(visible(line)) for line in lines], room)


def write_message(
    *,
    event_id: str,
    event_type: str,
    data: Mapping[str, Any],
    home: str,
    needed: Sequence[str] = (),
    severities: Mapping[str, int] | None = None,
    headline: Sequence[str] = (),
) -> EventMessage:
    """The message of an event. `needed` is who must still approve, `severities` and `headline` are of the report, as
    every reader of the deployment may know them."""
    request, change, policy = (data.get(name, {}) for name in ("request", "change", "policy"))
    deployment, cluster, actor = data.get("deployment", {}), data.get("cluster", ""), data.get("actor", {})
    subject = deployment.get("name") or f"{policy.get('kind', '')} {policy.get('name', '')}".strip() or "Pratique"
    what = policy.get("change") or _WHAT.get(event_type) or _phrase(event_type)
    is_by_person = actor.get("via", "machine") != "machine"
    facts = [
        ("Findings", "" if severities is None else count_findings(severities)),
        *(("Still needed", who) for who in needed),
        ("Change", ": ".join(filter(None, (change.get("ticket"), change.get("reason"))))),
        ("Version", request.get("version", "")),
        ("Object", data.get("object", "")),
        ("Incident", data.get("incident", "")),
        ("By", actor.get("name", "") if is_by_person else ""),
        ("Reason", data.get("reason", "")),
    ]
    return EventMessage(
        event_id=event_id,
        subject=f"{subject} on {cluster}" if cluster else subject,
        what=what,
        link=request.get("page") or deployment.get("page") or home,
        facts=tuple((label, str(words)) for label, words in facts if words),
        entries=tuple(headline),
    )


def write_digest(messages: Sequence[EventMessage], *, home: str) -> EventMessage:
    """One message for many events: how many of what, and what each is about."""
    about: dict[str, list[str]] = {}
    for message in messages:
        about.setdefault(message.what, []).append(message.subject)
    counts = [f"{len(subjects)} {what}" for what, subjects in about.items()]
    return EventMessage(
        event_id=messages[0].event_id,
        subject=number(len(messages), "event"),
        what=some(counts),
        link=home,
        facts=tuple(
            (f"{what[:1].upper()}{what[1:]}", some(subjects, MOST_SUBJECTS)) for what, subjects in about.items()
        ),
    )


def count_findings(severities: Mapping[str, int]) -> str:
    """`2 critical · 38 notable`."""
    return " · ".join(f"{severities[one]} {one}" for one in Severity if severities.get(one)) or "no findings"


def fit_lines(lines: Iterable[str], room: int) -> list[str]:
    """Those of `lines` that have room, whole and in order, and how many have not."""
    fitting, left = [], 0
    room -= len(f"… {and_more(10**6)}: open the page\n")
    for line in lines:
        if _length(line) < room:
            fitting.append(line)
            room -= _length(line) + 1
        else:
            left += 1
    return [*fitting, *([f"… {and_more(left)}: open the page"] if left else [])]


def _phrase(event_type: str) -> str:
    """`changes requested` of `dev.pratique.request.changes-requested.v1`."""
    return brief_type(event_type).rpartition(".")[2].replace("-", " ")


def _length(text: str) -> int:
    """As JavaScript counts, which is never less than characters."""
    return len(text.encode("utf-16-le")) // 2
