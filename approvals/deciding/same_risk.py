"""The same risk again: whether a report says nothing that an approved one had not said, and whose approval of that one
still stands (security-rules.md S51). PURE."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from provisioner.review.base.record import VERSION
from provisioner.values import Action

Record = Mapping[str, Any]
NOES = ("Deny", "RequestChanges", "Object")
# Of a planned action: what has to be as it was approved. `after` is what will stand there, whoever set it.
_SAME = ("ref", "uid", "after", "problem", "problemCode", "owner", "returnsAs")


@dataclass(frozen=True, slots=True)
class EarlierReview:
    """A review of an earlier round or request of the same deployment, as it was given.

    `is_persons`: of neither a policy nor a machine. Its round was not to be applied before `apply_at`.
    """

    key: int
    voter: str
    decision: str
    given_at: datetime
    is_persons: bool = True
    apply_at: datetime | None = None


def last_approvals(reviews: Sequence[EarlierReview], now: datetime) -> dict[int, str]:
    """The approvals that were the last word of a person, by key, each with why it is carried nowhere; "" where nothing
    that was said speaks against it.

    A no ends every approval before it, also where it was replaced or dismissed since. One that its author took back by
    approving leaves those that were given after it.
    """
    last = {one.voter: one for one in sorted(reviews, key=lambda one: (one.given_at, one.key))}
    noes = [one for one in reviews if one.decision in NOES]
    found = {}
    for one in last.values():
        if one.decision != "Approve" or not one.is_persons:
            continue
        if any(no.given_at >= one.given_at or last[no.voter].decision in NOES for no in noes):
            found[one.key] = "somebody denied it, objected, or requested changes"
        elif one.apply_at and one.apply_at > now:
            found[one.key] = f"it was to be applied at {one.apply_at:%Y-%m-%d %H:%M} UTC, which has to be chosen again"
        else:
            found[one.key] = ""
    return found


def is_covered(now: Record, approved: Record) -> bool:
    """Whether every finding and every change of a report's record was in the approved one, with the same values.

    What cannot be compared is not covered: another version of the record, and a change of a Secret that exists, of
    which no record says what is overwritten.
    """
    if not now.get("version") == approved.get("version") == VERSION:
        return False
    if any(Counter(map(_text, now[part])) - Counter(map(_text, approved[part])) for part in ("findings", "private")):
        return False
    before = {_text(action["ref"]): action for action in approved["plan"]["actions"]}
    planned = {_text(action["ref"]): action for action in now["plan"]["actions"]}
    if len(planned) < len(now["plan"]["actions"]) or len(before) < len(approved["plan"]["actions"]):
        return False  # two actions on one object: nobody can tell which was approved
    return all(_does_no_more(action, before.get(ref)) for ref, action in planned.items())


def new_rules(now: Record, approved: Record) -> list[str]:
    """The rules of findings that are new, or graver, as every reader of both reports may know it: none of a Secret."""
    known = {_told(finding) for finding in approved["findings"]}
    return sorted({it["rule"] for it in now["findings"] if _told(it) not in known and not _is_secret(it["ref"] or {})})


def _told(finding: Record) -> tuple[Any, ...]:
    return finding["fingerprint"], finding["severity"], finding["isNew"]


def _does_no_more(now: Record, was: Record | None) -> bool:
    """The same on the same object, or nothing any more where it was to be updated, as in `is_within` (S04); and beside
    that the same words, and the same values."""
    if was is None or any(_text(now.get(name)) != _text(was.get(name)) for name in _SAME):
        return False
    if now["isProved"] < was["isProved"] or now["serverWords"] not in ("", was["serverWords"]):
        return False
    if any(not {*now[name]} <= {*was[name]} for name in ("warnings", "notes")):
        return False
    if now["action"] == Action.NONE:
        return was["action"] in (Action.NONE, Action.UPDATE)
    if now["action"] != was["action"] or (_is_secret(now["ref"]) and now["action"] != Action.CREATE):
        return False
    # Each value that is there was there when it was approved, or is what will be there.
    live, reviewed, after = (dict(_leaves(state or {})) for state in (now["before"], was["before"], now["after"]))
    paths = {*live, *reviewed, *after}
    return all(live.get(path) in (reviewed.get(path), after.get(path)) for path in paths)


def _is_secret(ref: Record) -> bool:
    return (ref.get("group"), ref.get("kind")) == ("", "Secret")


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """By path, as JSON: in JSON 1 is not true. Lists are compared whole, and so are empty objects."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    else:
        yield path, _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
