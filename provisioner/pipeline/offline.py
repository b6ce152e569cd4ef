"""A content beside the one of before, without a cluster: the plan, and what people read.

The cluster is taken to hold exactly the content of before. Nothing here loads what talks to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from provisioner import regexes
from provisioner.cluster.annotations import keep_words
from provisioner.cluster.compare import cleaned, masked
from provisioner.cluster.order import deletion_phases, phases
from provisioner.cluster.plan.planned_actions import plan_digest, plan_release
from provisioner.expressions import evaluator as expressions
from provisioner.retention import LOSES_NOTHING, kept_keys
from provisioner.review.base.difference import mask_secret
from provisioner.review.base.facts import SECRET, ClusterSurroundings, Facts, Stored
from provisioner.review.frame import report
from provisioner.schema.fields import is_same
from provisioner.values import APPLYING, Action, Content, JsonObject, Manifest, ObjectRef, Plan, PlannedAction, Report

REVIEW_SECONDS, PATTERN_SECONDS = 60.0, 20.0  # for all rules of schemas that one review runs, and for all patterns


@expressions.limited(REVIEW_SECONDS)
@regexes.limited(PATTERN_SECONDS)
def look_offline(
    content: Content,
    previous: Content | None,
    *,
    allowed_images: tuple[str, ...] = (),
    stored: Stored | None = None,
    is_for_reader: bool = True,
) -> Report:
    """What differs between two bundles, without a cluster: from `previous`, or from nothing, to `content`.

    `stored` are the objects that changed CRDs are tried on, where somebody knows them. `is_for_reader` where whoever
    reads the report may read both bundles; else `previous` is what runs, and the report is as `look` makes it for all.
    """
    around = ClusterSurroundings(allowed_images=allowed_images)
    content, previous = as_applied(content, previous)
    plan = plan_offline(content, previous, is_for_reader=is_for_reader)
    bundle = None if is_for_reader else plan
    return report(Facts(content, plan, previous, is_offline=True, around=around, stored=stored, bundle=bundle))


def in_order(content: Content) -> tuple[Manifest, ...]:
    """The manifests of `content` phase by phase, as they are applied, and then its hooks."""
    staying = [manifest for phase in phases(content.manifests) for manifest in phase.manifests]
    return (*staying, *(manifest for manifest in content.manifests if manifest.hook))


def plan_offline(content: Content, previous: Content | None, *, is_for_reader: bool = True) -> Plan:
    """A plan as if the cluster held exactly `previous`. Its objects have no uid, so nothing can apply it.

    `is_for_reader` as `look_offline` has it: else every Secret that is in both is to be written (S38).
    """
    old = {manifest.ref.identity: manifest for manifest in (previous.manifests if previous else ())}
    actions = [_planned_offline(manifest, old.get(manifest.ref.identity)) for manifest in in_order(content)]
    if not is_for_reader:
        actions = [
            replace(action, action=Action.UPDATE)
            if (action.action is Action.NONE and action.ref.group_kind == SECRET)
            else action
            for action in actions
        ]
    wished = {manifest.ref.identity for manifest in content.manifests}
    going = [manifest.ref for identity, manifest in old.items() if identity not in wished and manifest.hook is None]
    for deletions in deletion_phases(going, {identity: manifest.body for identity, manifest in old.items()}):
        for ref in deletions.refs:
            before, _ = _masked(old[ref.identity].body, None)
            planned = PlannedAction(ref, Action.DELETE, before=before, is_proved=False)
            words = keep_words(old[ref.identity].body, is_removal=not content.manifests)
            actions.append(plan_release(planned, f"it says {words}") if words else planned)
    return Plan(tuple(actions), plan_digest(actions))


def _planned_offline(manifest: Manifest, old: Manifest | None) -> PlannedAction:
    body = _as_it_stays(manifest.body, old.body) if old else manifest.body
    before, after = _masked(old.body if old else None, body)
    action = Action.CREATE
    if manifest.hook and old is not None:  # as on a cluster: what stays, or holds data, is made anew as any other
        is_left = old.hook is not None and manifest.ref.group_kind in LOSES_NOTHING
        action = Action.RERUN if is_left else Action.REPLACE
    elif old is not None:
        action = Action.NONE if is_same(cleaned(old.body), cleaned(body)) else Action.UPDATE
    return PlannedAction(ObjectRef.of(body), action, before=before, after=after, is_proved=False)


def _as_it_stays(new: JsonObject, old: JsonObject) -> JsonObject:
    """`new` with the keys of a Secret that an apply leaves behind."""
    kept, wished = kept_keys(old, new), new.get("stringData") or {}
    if not kept or not isinstance(wished, Mapping):  # a shape that no server would take is not told apart
        return new
    left = {key: value for key, value in old["stringData"].items() if key in kept}
    return {**new, "stringData": {**left, **wished}}


def _masked(before: JsonObject | None, after: JsonObject | None) -> tuple[JsonObject | None, JsonObject | None]:
    """As cluster.compare masks, but for Secrets of a shape that no server would take: of those nothing is told."""
    parts = [body.get(key) or {} for body in (before, after) if body for key in ("data", "stringData")]
    if all(isinstance(part, Mapping) for part in parts):
        return masked(before, after)
    shown = [mask_secret(cleaned(body)) if body else None for body in (before, after)]
    return shown[0], shown[1]


def as_applied(content: Content, previous: Content | None) -> tuple[Content, Content | None]:
    """Both with the hooks that run when they are applied."""
    return content.with_hooks(APPLYING), previous.with_hooks(APPLYING) if previous else None
