"""What planning knows of one content on one cluster, the forms that a planned action has, and own webhooks.

Webhooks and API servers that a bundle brings itself may never answer without what is being planned: while they do not,
the bundle that mends or removes them can be planned all the same. Anybody else's that does not answer is waited for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.cluster.annotations import NO_TRACKING, Tracking
from provisioner.cluster.choices import as_sent
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import masked, version_of
from provisioner.cluster.evidence import Live
from provisioner.cluster.order import WEBHOOKS, defined_kinds
from provisioner.errors import ClusterError, Unreachable
from provisioner.json_values import mapping, uid_of
from provisioner.values import (
    APPLYING,
    Action,
    CollisionProtection,
    GroupKind,
    HelmRelease,
    HookMoment,
    HookRun,
    JsonObject,
    Manifest,
    ObjectIdentity,
    ObjectRef,
    Plan,
    PlannedAction,
)

# A webhook with side effects refuses dry-runs; that says nothing about the object.
NO_DRY_RUN = "does not support dry run"
_STANDING = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.DELETE, Action.NONE})


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan.

    `others` are the names of other deployments by the uid of each object that they hold. `is_removal`: everything is
    meant to go, so that a content without any object is no mistake; with `is_orphaning` it is let go and stays. Objects
    of `optional_kinds` are left out while the cluster does not serve them, as are those that say so themselves.
    `reviewed` is an earlier plan of the same content: what it says of an object stands while the object is in the state
    that it was made on, and is asked again otherwise.
    `warned` is what the API server said of each running object when it was written, by the object in words (str of its
    ref): of one that is as it was the server is not asked again. `may_try_foreign`: whoever asked is known and may do
    so themselves, so that an object that is not ours may be tried by dry-run, where it may be adopted (S09).
    What `helm_release` holds may be adopted, Secrets too, and its record goes; `is_taking_over`: an earlier request has
    adopted some of it. Hooks run at `moments` only; `hooks` are
    the last runs of those that have run for this deployment. `supposes_adoption`: the plan is only looked at, by who
    may read the objects, and what is somebody else's is planned as if it were adopted. `tells_adoption`: the plan is
    reported to several readers, and what stands in its way is told with what would come of it if it were adopted.
    """

    collision_protection: CollisionProtection = CollisionProtection.PREVENT
    others: Mapping[str, str] = field(default_factory=dict)
    is_removal: bool = False
    is_orphaning: bool = False
    optional_kinds: frozenset[GroupKind] = frozenset()
    reviewed: Plan | None = None
    warned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    may_try_foreign: bool = True
    helm_release: HelmRelease | None = None
    is_taking_over: bool = False
    moments: frozenset[HookMoment] = APPLYING
    hooks: Mapping[ObjectIdentity, HookRun] = field(default_factory=dict)
    supposes_adoption: bool = False
    tells_adoption: bool = False


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """What is known while planning: what was there at the beginning, what runs (`before`), the webhooks of either
    content, what this bundle brings, the kinds and namespaces that it is going to make or change, and the versions in
    which those kinds are served by then."""

    cluster: ClusterClient
    inventory: Mapping[ObjectIdentity, str]
    field_manager: str
    options: Options
    known: Live
    before: Mapping[ObjectIdentity, Manifest]
    reviewed: Mapping[ObjectIdentity, PlannedAction]
    webhooks: frozenset[str] = frozenset()
    new_kinds: frozenset[GroupKind] = frozenset()
    new_versions: Mapping[GroupKind, frozenset[str]] = field(default_factory=dict)
    new_namespaces: frozenset[str] = field(default_factory=frozenset)
    brought: frozenset[ObjectIdentity] = frozenset()

    def live(self, ref: ObjectRef, *, is_again: bool = False) -> dict[str, Any] | None:
        """The object, as it was listed if it was; `is_again`: that has proved out of date.

        A listed object is handed out once and not kept: of a large bundle that is most of what planning holds.
        """
        if not is_again and ref.identity in self.known:
            return self.known.pop(ref.identity)
        return self.cluster.get(ref)


def reviewed_action(scene: PlanInputs, ref: ObjectRef, live: dict[str, Any] | None) -> PlannedAction | None:
    """What was reviewed, where the object is as it was then. What cannot be seen on it, such as another admission
    policy, is met by the write itself: its answer is held against what was reviewed (S10)."""
    planned = scene.reviewed.get(ref.identity)
    if planned is None or planned.problem or planned.action not in _STANDING:
        return None
    if live is None:
        return planned if planned.action is Action.CREATE else None
    is_ours = bool(planned.uid) and planned.uid == uid_of(live) == scene.inventory.get(ref.identity)
    is_dying = bool((live.get("metadata") or {}).get("deletionTimestamp"))
    return planned if is_ours and not is_dying and planned.resource_version == version_of(live) else None


def unproved_action(manifest: Manifest, action: Action, live: dict[str, Any] | None = None) -> PlannedAction:
    """A planned action with the content's own words as the result, because the server could not be asked."""
    before, after = masked(live, manifest.body)
    uid, version = (uid_of(live), version_of(live)) if live else ("", "")
    return PlannedAction(manifest.ref, action, uid, version, before, after, is_proved=False)


def with_problem(planned: PlannedAction, error: ClusterError) -> PlannedAction:
    return replace(
        planned, is_proved=False, problem=str(error), problem_code=error.code, server_words=error.server_words
    )


def annotation_of(obj: JsonObject, annotation: str) -> str:
    return str(((obj.get("metadata") or {}).get("annotations") or {}).get(annotation) or "")


def body_of(
    manifest: Manifest, *, tracking: Tracking = NO_TRACKING, uid: str = "", resource_version: str = ""
) -> dict[str, Any]:
    """The object to send: the content's but for what it leaves to the server, with preconditions and our tracking."""
    meta = tracking.suited_to(manifest.body).put_on(manifest.body.get("metadata") or {})
    if uid:
        meta["uid"] = uid
    if resource_version:
        meta["resourceVersion"] = resource_version
    return {**as_sent(manifest.body), "metadata": meta}


_CALLED = re.compile(r'failed calling webhook "([^"]+)"')
_SERVED_BY = GroupKind("apiregistration.k8s.io", "APIService")
_SERVING = re.compile(r"the API ([^/\s]+)/(\S+) is registered but does not answer")
_CONVERTING = re.compile(r"conversion webhook for ([^/\s]+)/[^,\s]+, Kind=(\w+)")


def names_of_own_webhooks(manifests: Iterable[Manifest]) -> frozenset[str]:
    """The names of all webhooks, as the API server names them where it cannot call one: of conversions the kind.

    And those of the APIServices.
    """
    manifests = list(manifests)
    lists = (manifest.body.get("webhooks") for manifest in manifests if manifest.ref.group_kind in WEBHOOKS)
    hooks = (hook for found in lists if isinstance(found, list) for hook in found if isinstance(hook, Mapping))
    names = frozenset(str(hook["name"]) for hook in hooks if hook.get("name"))
    names |= {manifest.ref.name for manifest in manifests if manifest.ref.group_kind == _SERVED_BY}
    for manifest in manifests:
        if mapping(mapping(manifest.body.get("spec")).get("conversion")).get("strategy") == "Webhook":
            names |= set(map(str, defined_kinds([manifest])))
    return names


def untried_words(error: Unreachable, own: frozenset[str]) -> str:
    """Why an object could not be tried, where only something among `own` did not answer; "" for any other failure."""
    called, converting, serving = (form.search(error.in_full) for form in (_CALLED, _CONVERTING, _SERVING))
    if called:
        name = called.group(1)
    elif converting:
        name = str(GroupKind(*converting.groups()))
    else:
        name = f"{serving.group(2)}.{serving.group(1)}" if serving else ""
    if not name or name not in own:
        return ""
    who = "an API server" if serving else "a webhook"
    return f"{who} of the bundle itself ({name}) does not answer, so that it could not be tried"


def is_served_by_own(ref: ObjectRef, brought: Collection[ObjectIdentity]) -> bool:
    """Whether the bundle brings the APIService of an object: then nobody knows its kind yet."""
    return (_SERVED_BY.group, _SERVED_BY.kind, "", f"{ref.version}.{ref.group}") in brought
