"""Objects that are not ours: who holds them, whether they may be adopted, and what would come of it.

Labels and annotations never prove that something is ours (S20). Here they only ever stand in the way, and anybody who
can write them can delete the object as well. What is told of such an object is for who may get it (S09).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner.cluster.annotations import FIELD_MANAGER, LARGEST_TRACKING, NONCE, OWNER_NAME, nonce_of
from provisioner.cluster.compare import hidden, masked, owner_words, version_of
from provisioner.cluster.drift import without_theirs
from provisioner.cluster.field_owners import words
from provisioner.cluster.order import is_system_namespace
from provisioner.cluster.plan import helm_releases
from provisioner.cluster.plan.helm_releases import fields_left, is_held_by, managers_losing_fields, without_marks
from provisioner.cluster.plan.inputs import Options, PlanInputs, body_of, unproved_action, with_problem
from provisioner.cluster.plan.trials import try_foreign_object, without_fields_of_others, words_on_left_fields
from provisioner.errors import AlreadyExists, FieldConflict, TryLater
from provisioner.json_values import uid_of
from provisioner.retention import SECRET
from provisioner.schema.fields import is_same
from provisioner.sentences import some
from provisioner.values import Action, CollisionProtection, JsonObject, Manifest, ObjectRef, PlannedAction

_OF_HELM = "the Helm release"
_KUBERNETES = "Kubernetes itself"
_KUBECTL = "kubectl"
# How other deployers mark what is theirs, in labels or annotations.
_MARKS = {
    "argocd.argoproj.io/tracking-id": "the Argo CD application",
    "helm.toolkit.fluxcd.io/name": "the Flux HelmRelease",
    "kapp.k14s.io/app": "the kapp app",
    "kustomize.toolkit.fluxcd.io/name": "the Flux Kustomization",
    "olm.operatorframework.io/owner-name": "the ClusterExtension",
    "olm.owner": "the operator",
}


@dataclass(frozen=True, slots=True)
class Objection:
    """Why an existing object that is not ours is left alone: `words` are ours, `server_words` who seems to hold it,
    which its own labels and managers say."""

    words: str
    server_words: str = ""


def objection_to_adoption(live: JsonObject, options: Options) -> Objection | None:
    """Why an existing object that is not ours is left alone; None where it may be adopted."""
    ref, others = ObjectRef.of(live), options.others
    found = f"{ref} exists already and does not belong to this deployment"
    if uid_of(live) in others:  # which our own records say
        return Objection(f"{found}: the BundleDeployment {others[uid_of(live)]} holds it", owner_words(live))
    if is_held_by(live, options.helm_release) and not holder_of(live, is_let_go=True) and not is_system_namespace(ref):
        return None
    holder, owner = holder_of(live), owner_words(live)
    said = "; ".join(filter(None, [f"held by {holder}" if holder else "", owner]))
    if options.collision_protection is not CollisionProtection.IF_NO_CONTROLLER:
        return Objection(found, said)
    if holder:
        return Objection(f"{found}: something else holds it", said)
    if is_system_namespace(ref):
        return Objection(f"{found}: it belongs to {_KUBERNETES}")
    if ref.group_kind == SECRET:
        return Objection(
            f"{found}: a Secret is never adopted, because that would tell whether its values are the same", owner
        )
    return None


def present_owner(live: JsonObject, others: Mapping[str, str] | None = None) -> str:
    """Who holds an object, for who may read it: by our records (`others` as in Options), its marks, or its writers."""
    if others and uid_of(live) in others:
        return f"the BundleDeployment {others[uid_of(live)]}"
    if is_system_namespace(ObjectRef.of(live)):
        return _KUBERNETES
    holder, meta = holder_of(live), live.get("metadata") or {}
    namespace = (meta.get("annotations") or {}).get(helm_releases.NAMESPACE)
    if holder:
        return f"{holder} in {namespace}" if holder.startswith(_OF_HELM) and namespace else holder
    entries = (entry for entry in meta.get("managedFields") or [] if not entry.get("subresource"))  # such as its status
    writers = {str(entry.get("manager")) for entry in entries if entry.get("manager")}
    return f"nobody by their marks (written by {', '.join(sorted(writers))})" if writers else "nobody by their marks"


def _is_labelled_by_hand(live: JsonObject) -> bool:
    """Whether kubectl wrote the label that Helm puts on what it holds, as `helm template | kubectl apply` does, or a
    deployment of Pratique did that has let go of the object since: what it holds has a nonce, too.

    Most charts have it in their templates. Only a release has the annotations beside it, and where another tool wrote
    the label, that may hold the object without a mark of its own.
    """
    writers = [
        str(entry.get("manager"))
        for entry in (live.get("metadata") or {}).get("managedFields") or []
        if f"f:{helm_releases.LABEL}" in (((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:labels") or {})
    ]
    known = (writer in (_KUBECTL, FIELD_MANAGER) or writer.startswith(f"{_KUBECTL}-") for writer in writers)
    return bool(writers) and all(known)


def holder_of(live: JsonObject, *, is_let_go: bool = False) -> str:
    """Who holds an object, in its own words; "" where nobody seems to.

    `is_let_go`: Helm is made to let go of it, so that its marks do not count.
    """
    meta = live.get("metadata") or {}
    for owner in meta.get("ownerReferences") or []:
        if owner.get("controller") is True:
            return f"its controller {owner.get('kind')} {owner.get('name')}"
    marks: dict[str, Any] = {**(meta.get("labels") or {}), **(meta.get("annotations") or {})}
    # Helm's marks are on what others deploy by its means, too: theirs say more.
    if other := next((f"{words} {marks[mark]}" for mark, words in _MARKS.items() if marks.get(mark)), ""):
        return other
    is_labelled = marks.get(helm_releases.LABEL) == helm_releases.IS_HELM and not _is_labelled_by_hand(live)
    if (marks.get(helm_releases.NAME) or is_labelled) and not is_let_go:
        return f"{_OF_HELM} {marks.get(helm_releases.NAME) or 'that manages it'}"
    if nonce_of(live):
        named = f" ({marks[OWNER_NAME]})" if marks.get(OWNER_NAME) else ""
        release = f"one that is not known here or has let it go (then remove {NONCE} from it)"
        return f"another deployment of Pratique{named}, {release}"
    return ""


def is_supposed(scene: PlanInputs, live: dict[str, Any], ours: str) -> bool:
    """Whether an object is planned as if it were adopted: the options say so, and it is not ours.

    What an old bundle names is taken for ours by `uid`, whoever runs it: ours it is with our mark only.
    """
    return scene.options.supposes_adoption and not (uid_of(live) == ours and nonce_of(live))


def plan_supposed_adoption(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    """The change of the object by a forced dry-run, as its owner's fields would be handed over, and who owns it now.

    Raises ClusterError where the API server refuses it.
    """
    sent = without_theirs(scene.cluster, manifest, live, manager=scene.field_manager)
    body = body_of(sent, tracking=LARGEST_TRACKING, uid=uid_of(live), resource_version=version_of(live))
    result = scene.cluster.apply(body, field_manager=scene.field_manager, dry_run=True, force=True)
    before, after = masked(live, result.object)
    action = Action.NONE if is_same(before, after) else Action.UPDATE
    planned = PlannedAction(manifest.ref, action, uid_of(live), version_of(live), before, after)
    return replace(planned, warnings=result.warnings, owner=present_owner(live))


# What is said of an object that may be adopted and was not tried (Options.may_try_foreign).
UNTRIED = "the requester is unknown, so the adoption was not tried: its result is known once it is written"
# So many fields are named that a release has and the content has not.
MAX_LEFT = 10
TAKEN_OVER = "it is taken over from its Helm release: Helm's part in the approved fields and its marks go"


def plan_looked_at(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    """What would come of somebody else's object, with its owner, whatever the API server says."""
    planned = replace(unproved_action(manifest, Action.UPDATE, live), owner=present_owner(live))
    return try_foreign_object(scene, manifest, planned, lambda: plan_supposed_adoption(scene, manifest, live))


def plan_obstacle(scene: PlanInputs, manifest: Manifest, live: dict[str, Any], objection: Objection) -> PlannedAction:
    """Someone else's object that is not to be adopted, with its owner and, where a report is made of it, what would
    come of it if it were.

    All of that is for who may get the object (S09). It is tried under the terms of any other object that is not ours:
    not for who is unknown, and never a Secret. Where the API server cannot say it now, the report does not wait for it.
    """
    met = plan_foreign_object(manifest, live, objection)
    if not scene.options.tells_adoption:
        return met
    met = replace(met, owner=present_owner(live, scene.options.others))
    is_dying = bool((live.get("metadata") or {}).get("deletionTimestamp"))
    if manifest.ref.group_kind == SECRET or is_dying or not scene.options.may_try_foreign:
        return met
    planned = unproved_action(manifest, Action.ADOPT, live)
    try:
        found = try_foreign_object(scene, manifest, planned, lambda: plan_supposed_adoption(scene, manifest, live))
    except TryLater:
        return met
    said = [met.server_words, f"if it were adopted: {found.problem}" if found.problem else "", found.server_words]
    return replace(
        met,
        before=found.before,
        after=found.after,
        is_proved=found.is_proved,
        warnings=found.warnings,
        notes=found.notes,
        server_words="; ".join(filter(None, said)),
    )


def plan_takeover(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    """The adoption of what a Helm release holds: the dry-run is forced, as the release's fields are handed over first.

    What another manager than the release's would lose by it is a conflict, as anywhere else. Of a Secret nothing is
    tried: that would tell whether its values are the same (S09).
    """
    if manifest.ref.group_kind == SECRET or not scene.options.may_try_foreign:
        untried = PlannedAction(manifest.ref, Action.ADOPT, uid_of(live), version_of(live), None, hidden(manifest.body))
        return replace(untried, is_proved=False, notes=(TAKEN_OVER,))
    planned = unproved_action(manifest, Action.ADOPT, live)

    def take_over() -> PlannedAction:
        sent = without_fields_of_others(scene, manifest, live)
        body = body_of(sent, tracking=LARGEST_TRACKING, uid=uid_of(live), resource_version=version_of(live))
        result = scene.cluster.apply(body, field_manager=scene.field_manager, dry_run=True, force=True).object
        if others := managers_losing_fields(live, result, scene.field_manager):
            said = f"{manifest.ref}: fields of it belong to other managers than Helm"
            return with_problem(planned, FieldConflict(said, status=409, server_words=", ".join(others)))
        before, after = masked(live, without_marks(result, scene.field_manager))
        left = list(map(words, fields_left(live, result, scene.field_manager, sent.body)))
        stay = f"of the release, this content does not have {some(left, MAX_LEFT)}: left as before, and nobody's"
        notes = (TAKEN_OVER, *words_on_left_fields(manifest, sent), *([stay] if left else ()))
        return replace(planned, before=before, after=after, is_proved=True, notes=notes)

    return try_foreign_object(scene, manifest, planned, take_over)


def plan_foreign_object(manifest: Manifest, live: dict[str, Any], objection: Objection) -> PlannedAction:
    """Someone else's object. Its state is not part of the plan: who may see it is not ours to say (S09)."""
    return PlannedAction(
        manifest.ref,
        Action.ADOPT,
        uid_of(live),
        version_of(live),
        None,
        hidden(manifest.body),
        is_proved=False,
        problem=objection.words,
        problem_code=AlreadyExists.code,
        server_words=objection.server_words,
    )
