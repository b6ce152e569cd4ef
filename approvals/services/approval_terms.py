"""What an approval must name, one by one, and what goes with each (security-rules.md S03, S15)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from approvals.access.sight import is_in_the_way
from approvals.errors import TooSerious
from approvals.gate.unseen_limits import why_not_unseen
from approvals.models import Report, Request, Review
from provisioner.review.base.messages import words_after_subject
from provisioner.review.base.record import finding_from
from provisioner.sentences import some_phrases
from provisioner.values import Action

TO_ACKNOWLEDGE = (Action.DELETE, Action.REPLACE, Action.ADOPT)
# The findings that say what goes with an object; the first one that there is.
RULES = ("DEL-01", "CRD-08", "IMM-01")
SHOWN = 20
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """`name` is what a review says: `delete Kind.group namespace/name`.

    `words` say what goes with it, counted and measured when the report was made; "" where that is nothing more, and of
    a Secret, whose values they hint at.
    """

    name: str
    words: str

    def __str__(self) -> str:
        return f"{self.name} ({self.words})" if self.words else self.name


def acknowledgements(request: Request, at_hand: Report | None = None) -> list[Acknowledgement]:
    """Deletions, replacements and adoptions of the current plan, by name; not of what is not to be adopted, nor of a
    role that returns under another name.

    The plan is read anew unless the report `at_hand` is of this round: a body is megabytes.
    """
    is_current = at_hand is not None and (at_hand.request_id, at_hand.round) == (request.pk, request.round)
    report = at_hand if is_current else request.reports.filter(round=request.round).first()
    if report is None:
        return []
    words = _consequences(report.body["findings"])
    planned = report.body["plan"]["actions"]
    found = {}
    for action in planned:
        if action["action"] in TO_ACKNOWLEDGE and not action.get("returnsAs") and not is_in_the_way(action):
            found[_action_words(action)] = Acknowledgement(
                _action_words(action), words.get(_ref_key(action["ref"]), "")
            )
    return [found[name] for name in sorted(found)]


def collisions(report: Report | None) -> list[str]:
    """Why nobody can approve the plan of a report as it is: objects in its way that are someone else's, in words."""
    actions = report.body["plan"]["actions"] if report else []
    return [action["problem"] for action in actions if is_in_the_way(action)]


def to_acknowledge(request: Request) -> list[str]:
    """The names of `acknowledgements`, as a review gives them."""
    return [acknowledgement.name for acknowledgement in acknowledgements(request)]


def in_words(missing: Iterable[Acknowledgement]) -> str:
    """What is missing in one sentence, the first SHOWN with what goes with them."""
    return some_phrases(list(missing), SHOWN)


def _action_words(action: Record) -> str:
    ref = action["ref"]
    kind = f"{ref['kind']}.{ref['group']}" if ref.get("group") else ref["kind"]
    place = f"{ref['namespace']}/{ref['name']}" if ref.get("namespace") else ref["name"]
    return f"{action['action']} {kind} {place}"


def _ref_key(ref: Record) -> tuple[str, ...]:
    return tuple(str(ref.get(part) or "") for part in ("group", "kind", "namespace", "name"))


def _consequences(findings: Iterable[Record]) -> dict[tuple[str, ...], str]:
    """What findings say of the objects that go, beyond that they go."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for finding in findings:
        ref = finding["ref"]
        if finding["rule"] in RULES and ref and _ref_key(ref)[:2] != ("", "Secret"):
            # What goes with an object that is deleted or replaced; of another change all that is said of it.
            takes_along = str(finding.get("variant", "")).startswith(("delete", "replaced"))
            words = words_after_subject(finding_from(finding)) if takes_along else str(finding["message"])
            found.setdefault(_ref_key(ref), {})[finding["rule"]] = words
    return {key: next(words[rule] for rule in RULES if rule in words) for key, words in found.items()}


def check_seen(request: Request, *, channel: str) -> None:
    """Raise TooSerious unless `channel` shows the report, or the report is harmless enough to be approved unseen."""
    if Review.Channel(channel).shows_report:
        return
    why_not = why_not_unseen(request, names_deletions=channel == Review.Channel.KUBECTL)
    if why_not:
        page = page_of(request)
        words = f"this request cannot be approved without seeing its report: {why_not}. Open {page}"
        raise TooSerious(words, page=page)


def page_of(request: Request) -> str:
    """The URL of the request's page."""
    return f"{settings.PRATIQUE['PUBLIC_URL'].rstrip('/')}/requests/{request.uid}"
