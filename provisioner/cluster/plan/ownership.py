"""Who holds an object that is not ours, and whether it may be adopted. Pure.

Labels and annotations never prove that something is ours (S20). Here they only ever stand in the way, and anybody who
can write them can delete the object as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.cluster.compare import owner_words, uid_of
from provisioner.cluster.order import is_system_namespace
from provisioner.cluster.plan import helm_releases
from provisioner.cluster.plan.helm_releases import is_held_by
from provisioner.cluster.plan.known import Options
from provisioner.cluster.tracking import FIELD_MANAGER, NONCE, OWNER_NAME, nonce_of
from provisioner.values import CollisionProtection, GroupKind, JsonObject, ObjectRef

_SECRET = GroupKind("", "Secret")
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
    if ref.group_kind == _SECRET:
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
    entries = (one for one in meta.get("managedFields") or [] if not one.get("subresource"))  # such as its status
    writers = {str(one.get("manager")) for one in entries if one.get("manager")}
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
    known = (one in (_KUBECTL, FIELD_MANAGER) or one.startswith(f"{_KUBECTL}-") for one in writers)
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
