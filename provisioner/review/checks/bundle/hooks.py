"""What the hooks of a chart do and when, which of them do not run now, and what they leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from provisioner.escaping import visible
from provisioner.retention import KINDS_WITH_CONSEQUENCE, LOSES_NOTHING
from provisioner.review.base.claims import EVERY_KIND, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, said
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.values import (
    DELETING,
    Action,
    Finding,
    Manifest,
    PlannedAction,
    Section,
    Severity,
)

_RUNS = ReviewRule("HOOK-01", Section.OBJECTS, Severity.NOTABLE)
_RUNS_NOTHING = replace(_RUNS, severity=Severity.SAFE)
_LATER = ReviewRule("HOOK-02", Section.OBJECTS, Severity.NOTABLE)
_LEFT = ReviewRule("HOOK-03", Section.OBJECTS, Severity.NOTABLE)
# When a hook runs and what becomes of it is what these findings say. Of an object that is no hook they say nothing.
_CLAIM = Claim(
    "HOOK-01",
    EVERY_KIND,
    tuple(f"metadata.annotations.[helm.sh/{name}]" for name in ("hook", "hook-weight", "hook-delete-policy")),
    is_of_hooks=True,
)


def _changes(facts: Facts) -> Iterator[Finding]:
    planned = {one.ref.identity: one for one in facts.plan.actions}
    before = {one.ref.identity: one for one in (facts.previous.manifests if facts.previous else ())}
    for one in facts.content.manifests:
        if one.hook:
            found = _of_run(one, planned.get(one.ref.identity))
            old = before.get(one.ref.identity)
            yield replace(found, is_new=old is None or (old.body, old.hook) != (one.body, one.hook))
    known = {(one.ref.identity, one.hook) for one in (facts.previous.hooks if facts.previous else ())}
    for one in facts.content.hooks:
        yield replace(_of_later(one), is_new=(one.ref.identity, one.hook) not in known)
    if facts.left_by_hooks:
        left = facts.left_by_hooks
        yield _LEFT.finding("left", None, key=[said(ref) for ref in left], objects=left)


def _of_run(manifest: Manifest, planned: PlannedAction | None) -> Finding:
    assert manifest.hook is not None
    ref, hook, action = manifest.ref, manifest.hook, planned.action if planned else None
    if planned and action is Action.NONE:
        return _LATER.finding("not-again", ref, words=list(planned.notes))
    moments = [str(one) for one in hook.moments]
    told: dict[str, Any] = {"moments": moments, "weight": hook.weight, "cleared": hook.is_cleared}
    rule, variant = _RUNS_NOTHING, "creates"
    for pod in pod_specs((manifest.body,)):
        rule, variant = _RUNS, "runs"
        told["images"] = [visible(str(one.body.get("image") or "")) for one in pod.containers()]
        told["account"] = visible(pod.account)
    if action is Action.RERUN:
        told["run"] = "again"
    loses = ref.group_kind not in LOSES_NOTHING
    if hook.is_cleared:
        told["ends"] = "cleared"
        rule = replace(rule, severity=Severity.DANGEROUS) if loses else rule
    if planned and action is Action.REPLACE:
        told["replaces"] = "own" if planned.before is not None else "unknown"
        takes_along = loses and ref.group_kind in KINDS_WITH_CONSEQUENCE
        told["loses"] = ref.kind if takes_along else None
        rule = replace(rule, severity=Severity.BREAKING if takes_along else Severity.DANGEROUS)
    return rule.finding(variant, ref, key=[*moments, hook.weight], **told)


def _of_later(manifest: Manifest) -> Finding:
    """A hook of the content that this request does not run."""
    assert manifest.hook is not None
    going = [str(one) for one in manifest.hook.moments if one in DELETING]
    if going:
        return _LATER.finding("at-deletion", manifest.ref, moments=going)
    return _LATER.finding("going-back", manifest.ref)


CHECK = Check("hooks", changes=_changes, claims=(_CLAIM,))
