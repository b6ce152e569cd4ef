"""Which Helm rendered the chart, where another one rendered what runs, or may have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.review.base.difference import changed_paths
from provisioner.review.base.facts import SECRET, Check, Facts, ReviewRule
from provisioner.review.checks.objects.release_leftovers import taken_over
from provisioner.values import Action, Finding, ObjectRef, PlannedAction, Section, Severity

_ANOTHER = ReviewRule("HELM-04", Section.CONTENT, Severity.NOTABLE)
_ANOTHER_PATCH = ReviewRule("HELM-04", Section.CONTENT, Severity.SAFE)
# What becomes another one with every takeover.
_MARKS = frozenset({"annotations", "labels"})


def compare_engines(facts: Facts) -> Iterator[Finding]:
    """Find another engine than that of what runs, and changes of a release that Helm 3 might not bring."""
    now, before = facts.content.engine, facts.previous.engine if facts.previous else ""
    if now and before and now != before:
        rule = _ANOTHER if _major(now) != _major(before) else _ANOTHER_PATCH
        yield rule.finding("another", None, key=[before, now], before=before, now=now)
    if _major(now) != "v4":
        return
    for release in taken_over(facts):
        changed = sorted(planned.ref for planned in facts.plan.actions if _is_changed_by_adoption(planned))
        variant, others = "of-release", facts.content.helm_3_differs
        if others is not None:
            variant = "helm-3"
            changed = [ref for ref in changed if any(_is_named(ref, other) for other in others)]
        if changed:
            key = [release.name, *map(str, changed)]
            yield _ANOTHER.finding(variant, None, key=key, release=release.name, objects=changed, engine=now)


def _major(version: str) -> str:
    return version.partition(".")[0]


def _is_named(ref: ObjectRef, rendered: ObjectRef) -> bool:
    """Whether it is the object that a chart rendered, which may leave out its namespace."""
    return ref.identity == rendered.identity or replace(ref, namespace="").identity == rendered.identity


def _is_changed_by_adoption(planned: PlannedAction) -> bool:
    if planned.action is not Action.ADOPT or planned.before is None or planned.ref.group_kind == SECRET:
        return False
    paths = (change.path for change in changed_paths(planned.before, planned.after))
    return any(path[:1] != ("metadata",) or not _MARKS.intersection(path[1:2]) for path in paths)


CHART_ENGINE_CHECK = Check("engine of the chart", changes=compare_engines)
