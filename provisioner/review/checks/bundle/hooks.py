"""What the hooks of a chart do and when, which of them do not run now, and what they leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.retention import LOSES_NOTHING
from provisioner.review.base.claims import EVERY_KIND, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, said
from provisioner.review.base.text import visible
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.sentences import some
from provisioner.values import (
    DELETING,
    Action,
    Finding,
    HookMoment,
    Manifest,
    PlannedAction,
    Section,
    Severity,
)

_RUNS = ReviewRule("HOOK-01", Section.OBJECTS, Severity.NOTABLE)
_RUNS_NOTHING = replace(_RUNS, severity=Severity.SAFE)
_LATER = ReviewRule("HOOK-02", Section.OBJECTS, Severity.NOTABLE)
_LEFT = ReviewRule("HOOK-03", Section.OBJECTS, Severity.NOTABLE)
_WHEN = {
    HookMoment.BEFORE: "before other objects are written",
    HookMoment.AFTER: "after all objects are written",
    HookMoment.BEFORE_DELETION: "before the objects are deleted",
    HookMoment.AFTER_DELETION: "after the objects are deleted",
}
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
        yield _of_left(facts)


def _of_run(manifest: Manifest, planned: PlannedAction | None) -> Finding:
    assert manifest.hook is not None
    ref, hook = manifest.ref, manifest.hook
    if planned and planned.action is Action.NONE:
        return _LATER.at(ref, f"The hook {said(ref)} is not run again: {'; '.join(planned.notes)}")
    when = " and ".join(_WHEN[moment] for moment in hook.moments)
    again = " again, and deletes what its last run left," if planned and planned.action is Action.RERUN else ""
    ends = ". It is deleted once all hooks of that moment have succeeded" if hook.is_cleared else ""
    moments = [str(one) for one in hook.moments]
    evidence: dict[str, object] = {"moments": moments, "weight": hook.weight, "cleared": hook.is_cleared}
    rule, does = _RUNS_NOTHING, f"A hook creates {said(ref)}{again} {when}{ends}"
    for pod in pod_specs((manifest.body,)):
        images = [visible(str(one.body.get("image") or "")) for one in pod.containers()]
        account = visible(str(pod.body.get("serviceAccountName") or "default"))
        rule = _RUNS
        does = f"A hook runs {said(ref)}{again} {when}, as `{account}` with {some(images, noun='images')}{ends}"
        evidence |= {"account": account, "images": images}
    if hook.is_cleared and ref.group_kind not in LOSES_NOTHING:
        rule = replace(rule, severity=Severity.DANGEROUS)
    if planned and planned.action is Action.REPLACE:
        whose = "" if planned.before is not None else ", and is not known to be this deployment's,"
        does = f"{does}. What has this name now{whose} is deleted first"
        rule = replace(rule, severity=Severity.DANGEROUS)
    return rule.at(ref, does, evidence=evidence, key=[*moments, hook.weight])


def _of_later(manifest: Manifest) -> Finding:
    """A hook of the content that this request does not run."""
    assert manifest.hook is not None
    going = [one for one in manifest.hook.moments if one in DELETING]
    if going:
        when = " and ".join(_WHEN[moment] for moment in going)
        return _LATER.at(manifest.ref, f"When the deployment is deleted, a hook runs {said(manifest.ref)} {when}")
    return _LATER.at(manifest.ref, f"This request does not run the hook {said(manifest.ref)}: going back runs none")


def _of_left(facts: Facts) -> Finding:
    names = [said(ref) for ref in facts.left_by_hooks]
    words = "What hooks made stays in the cluster as far as it is still there"
    return _LEFT.at(None, f"{words}: {some(names)}. Delete it yourself", evidence={"objects": names}, key=names)


CHECK = Check("hooks", changes=_changes, claims=(_CLAIM,))
