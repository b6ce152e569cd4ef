"""Changes that no reader can be shown: nobody can have reviewed them (S41)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from provisioner.review.base.difference import MAX_FULL, DiffLine, all_lines, in_pieces, replaced_lines
from provisioner.review.base.facts import SECRET, Check, Facts, ReviewRule
from provisioner.values import Action, Finding, PlannedAction, Section, Severity

_UNSEEN = ReviewRule("TXT-05", Section.OBJECTS, Severity.UNKNOWN)
_QUIET = frozenset({Action.NONE, Action.SKIP, Action.DELETE})


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        is_shown = planned.action in _QUIET or planned.ref.group_kind == SECRET
        if is_shown or not (_has_long_line(planned.before) or _has_long_line(planned.after)):
            continue
        if count := _unseen(planned):
            yield _UNSEEN.finding("unseen", planned.ref, key=count, characters=count, limit=MAX_FULL)


def _has_long_line(value: object) -> bool:
    if isinstance(value, str):
        return len(value) > MAX_FULL and max(map(len, value.split("\n"))) > MAX_FULL
    if isinstance(value, Mapping):
        return any(_has_long_line(part) for item in value.items() for part in item)
    return isinstance(value, list) and any(map(_has_long_line, value))


def _unseen(planned: PlannedAction) -> int:
    """How many characters of what comes and goes are beyond what is shown of a line. None of one that only moves within
    its field: in another it means something else."""
    lines: list[DiffLine] = all_lines(planned.before, planned.after)
    left = {at: max(len(line.text) - MAX_FULL, 0) for at, line in enumerate(lines) if line.kind in "+-"}
    came = [at for at in left if left[at] and lines[at].kind == "+"]
    for at in [at for at in left if left[at] and lines[at].kind == "-"]:
        twin = next((other for other in came if _is_moved(lines[at], lines[other])), None)
        if twin is not None:
            came.remove(twin)
            left[at] = left[twin] = 0
    for gone, come in replaced_lines(lines):
        if left[gone] or left[come]:
            left[gone], left[come] = in_pieces(lines[gone].text, lines[come].text).unseen, 0
    return sum(left.values())


def _is_moved(gone: DiffLine, come: DiffLine) -> bool:
    return gone.text == come.text and gone.path == come.path


CHECK = Check("unseen changes", changes=_changes)
