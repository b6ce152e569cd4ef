"""What goes with an object that is deleted: nothing, or a StatefulSet's claims, by its own
`persistentVolumeClaimRetentionPolicy`. PURE.

Kubernetes, StatefulSets, PersistentVolumeClaim retention: `whenDeleted: Delete` takes all claims of its templates when
it is deleted, `whenScaled: Delete` those of the pods that an update leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.json_values import mapping
from provisioner.values import Action, GroupKind, JsonObject, ObjectRef, PlannedAction

# What hooks make and run with. To delete one of these and make it anew loses nothing that was not in the content.
LOSES_NOTHING = frozenset(
    {
        GroupKind("batch", "Job"),
        GroupKind("networking.k8s.io", "NetworkPolicy"),
        *(GroupKind("", kind) for kind in ("ConfigMap", "Pod", "Secret", "Service", "ServiceAccount")),
        *(GroupKind(RBAC_GROUP, kind) for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
    }
)
STATEFUL_SET = GroupKind("apps", "StatefulSet")
# Whose deletion has a consequence that the finding names (DEL-01): they hold data, or other objects.
KINDS_WITH_CONSEQUENCE = frozenset(
    {
        GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),
        GroupKind("", "Namespace"),
        GroupKind("", "PersistentVolumeClaim"),
        GroupKind("", "PersistentVolume"),
        STATEFUL_SET,
        GroupKind("", "Secret"),
    }
)
SECRET = GroupKind("", "Secret")
_TAKING = frozenset({Action.DELETE, Action.REPLACE})
_WRITING = frozenset({Action.UPDATE, Action.ADOPT})


def kept_keys(old: JsonObject, new: JsonObject) -> set[str]:
    """Keys of a Secret that stay when `new` is applied after `old`, and that `new` does not have.

    Server-side apply takes away what it owns: a key that was written as stringData is stored as data, and owned under
    the name that it was written with.
    """
    if (old.get("kind"), old.get("apiVersion")) != ("Secret", "v1"):
        return set()
    plain, *named = (_keys(each.get(part)) for each, part in ((old, "stringData"), (old, "data"), (new, "stringData")))
    return plain.difference(*named, _keys(new.get("data")))


def _keys(part: object) -> set[str]:
    return {str(key) for key in part} if isinstance(part, Mapping) else set()


def takes_claims_along(stateful_set: JsonObject) -> bool:
    """Whether the claims of its templates are deleted together with it."""
    return _policy(stateful_set).get("whenDeleted") == "Delete"


def left_out(before: JsonObject, after: JsonObject) -> tuple[range, ...]:
    """The numbers of the pods whose claims go when `before` becomes `after`.

    A policy or a number of replicas that `after` does not state stays as it is in `before`.
    """
    when = _policy(after).get("whenScaled", _policy(before).get("whenScaled"))
    if when != "Delete" or not mapping(before.get("spec")).get("volumeClaimTemplates"):
        return ()
    had = _pods(before, 1)
    has = _pods(after, len(had))
    below = range(had.start, max(had.start, min(had.stop, has.start)))
    above = range(min(had.stop, max(had.start, has.stop)), had.stop)
    return tuple(one for one in (below, above) if one)


def takes_more(now: PlannedAction, reviewed: PlannedAction) -> str:
    """What data `now` takes along that `reviewed` did not, in words; "" where none."""
    if now.ref.group_kind != STATEFUL_SET or now.before is None:
        return ""
    if now.action in _TAKING:
        is_known = reviewed.action in _TAKING and takes_claims_along(reviewed.before or {})
        return deletion_words(now.ref) if takes_claims_along(now.before) and not is_known else ""
    if now.action not in _WRITING or now.after is None:
        return ""
    known = left_out(reviewed.before, reviewed.after) if reviewed.before and reviewed.after else ()
    return scaling_words(now.ref, left_out(now.before, now.after), known)


def may_be_remade(planned: PlannedAction) -> bool:
    """Whether it updates an immutable Secret, which is deleted and made anew where its values change.

    The action is the same where they do not: else whoever reads the plan would learn that (S38).
    """
    is_secret = planned.action is Action.UPDATE and planned.ref.group_kind == SECRET
    return is_secret and mapping(planned.before).get("immutable") is True


def is_remade(planned: PlannedAction) -> bool:
    return may_be_remade(planned) and mapping(planned.before).get("data") != mapping(planned.after).get("data")


def claims_of(stateful_set: JsonObject, claims: Iterable[JsonObject]) -> list[JsonObject]:
    """Those claims that its templates made."""
    templates = mapping(stateful_set.get("spec")).get("volumeClaimTemplates")
    known = (
        [mapping(mapping(template).get("metadata")) for template in templates] if isinstance(templates, list) else []
    )
    heads = [f"{one.get('name')}-{ObjectRef.of(stateful_set).name}-" for one in known]
    named = ((claim, str(mapping(claim.get("metadata")).get("name") or "")) for claim in claims)
    return [
        one for one, other in named if any(other.startswith(head) and other[len(head) :].isdigit() for head in heads)
    ]


def deletion_words(ref: ObjectRef) -> str:
    return f"with {ref} its PersistentVolumeClaims would be deleted, by its own retention policy"


def scaling_words(ref: ObjectRef, pods: Iterable[range], known: Iterable[range] = ()) -> str:
    """That scaling down takes the claims of `pods`; "" where these are among the `known` ones."""
    more = [span for span in pods if not any(span.start >= old.start and span.stop <= old.stop for old in known)]
    named = " and ".join(f"{one.start} to {one.stop - 1}" if len(one) > 1 else str(one.start) for one in more)
    words = f"{ref} would be scaled down, and the PersistentVolumeClaims of pods {named} would be deleted"
    return f"{words}, by its own retention policy" if more else ""


def _pods(stateful_set: JsonObject, count: int) -> range:
    spec = mapping(stateful_set.get("spec"))
    start = _number(mapping(spec.get("ordinals")).get("start"), 0)
    return range(start, start + max(0, _number(spec.get("replicas"), count)))


def _number(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _policy(stateful_set: JsonObject) -> Mapping[str, Any]:
    return mapping(mapping(stateful_set.get("spec")).get("persistentVolumeClaimRetentionPolicy"))
