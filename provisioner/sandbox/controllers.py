"""A tiny controller manager: pods that are ready at once, accounts for namespaces, and nothing without its owner."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

from provisioner.api_groups import RBAC_GROUP
from provisioner.sandbox.calls import StatusRefusal
from provisioner.sandbox.store import Key, ObjectStore, StoreChange, owners_of
from provisioner.sandbox.writes import now

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.5
MAX_PODS = 20
REVISION = "deployment.kubernetes.io/revision"
PROTECTED_CLAIM = "kubernetes.io/pvc-protection"
DONE = ("Succeeded", "Failed")
DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")


@dataclass(frozen=True, slots=True)
class Touched:
    """What a pass looks at: the `spaces` in which something changed, what was written, and the uids that are gone."""

    spaces: set[str]
    written: set[Key]
    gone: set[str]

    @classmethod
    def of(cls, changes: Iterable[StoreChange]) -> Self:
        changes = list(changes)
        replaced = [
            one for one in changes if one.before and (one.type == "DELETED" or _uid(one.before) != _uid(one.object))
        ]
        return cls.at((one.key for one in changes), gone=(_uid(one.before) for one in replaced if one.before))

    @classmethod
    def at(cls, keys: Iterable[Key], gone: Iterable[str] = ()) -> Self:
        written = set(keys)
        spaces = {key[3] if key[:2] == ("", "namespaces") else key[2] for key in written} - {""}
        return cls(spaces, written, set(gone))

    def has(self, group: str, plural: str) -> bool:
        return any(key[:2] == (group, plural) for key in self.written)


class Controllers(threading.Thread):
    """Looks at what changed, and at what lies beside it; each pass brings the objects one step nearer to their specs.

    At everything only after the start: a sandbox may hold thousands of objects, and each write is followed by a pass.
    """

    def __init__(self, store: ObjectStore, kinds: Any) -> None:
        super().__init__(daemon=True, name="controllers")
        self._store = store
        self._kinds = kinds
        self._halt = threading.Event()

    def stop(self) -> None:
        self._halt.set()
        with self._store.moved:
            self._store.moved.notify_all()
        self.join(5)

    def run(self) -> None:
        seen: int | None = None
        while not self._halt.is_set():
            with self._store.moved:
                if self._store.version == seen:
                    self._store.moved.wait(TICK_SECONDS)
                    continue
                touched, seen = self._touched_since(seen), self._store.version
                for space in sorted(touched.spaces):
                    self._try(self._look_at_namespace, space)
                self._try(self._collect_garbage, touched)
                if touched.has(RBAC_GROUP, "clusterroles"):
                    self._try(self._aggregate)

    def _touched_since(self, version: int | None) -> Touched:
        with contextlib.suppress(StatusRefusal):  # more has changed than is remembered
            if version is not None:
                return Touched.of(self._store.since(version))
        return Touched.at(self._store.all_keys())

    def _try(self, step: Callable[..., None], *about: Any) -> None:
        try:
            step(*about)
        except (KeyError, TypeError, ValueError):
            logger.exception("the sandbox's controllers could not work on an object")

    def _look_at_namespace(self, name: str) -> None:
        if space := self._store.get(("", "namespaces", "", name)):
            self._namespace(space)
        for obj in self._store.all("apps", "deployments", name):
            self._deployment(obj)
        for plural in ("replicasets", "statefulsets", "daemonsets"):
            for obj in self._store.all("apps", plural, name):
                self._pods_of(plural, obj)
        for obj in self._store.all("batch", "jobs", name):
            self._job(obj)
        for obj in self._store.all("", "persistentvolumeclaims", name):
            self._claim(obj)

    # Namespaces

    def _namespace(self, space: dict[str, Any]) -> None:
        name = space["metadata"]["name"]
        if space["metadata"].get("deletionTimestamp"):
            inside = self._store.keys_in(name)
            for key in inside:
                obj = self._store.get(key)
                if obj and not obj["metadata"].get("finalizers"):
                    self._store.remove(key)
                elif obj and not obj["metadata"].get("deletionTimestamp"):
                    going = {"deletionTimestamp": now(), "deletionGracePeriodSeconds": 0}
                    self._store.put(key, {**obj, "metadata": {**obj["metadata"], **going}})
            if not [key for key in inside if self._store.get(key)] and not space["metadata"].get("finalizers"):
                self._store.remove(("", "namespaces", "", name))
            return
        if self._store.get(("", "serviceaccounts", name, "default")) is None:
            self._make(("", "serviceaccounts", name, "default"), {"apiVersion": "v1", "kind": "ServiceAccount"}, None)
        if self._store.get(("", "configmaps", name, "kube-root-ca.crt")) is None:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"ca.crt": self._store.fact("ca")}}
            self._make(("", "configmaps", name, "kube-root-ca.crt"), body, None)

    # Workloads

    def _deployment(self, obj: dict[str, Any]) -> None:
        if obj["metadata"].get("deletionTimestamp"):
            return
        meta, spec = obj["metadata"], obj["spec"]
        template = spec["template"]
        mark = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]
        wanted = f"{meta['name']}-{mark}"
        for owned in self._owned("apps", "replicasets", obj):
            count = int(spec.get("replicas", 1)) if owned["metadata"]["name"] == wanted else 0
            if owned["spec"].get("replicas") != count:
                generation = int(owned["metadata"].get("generation") or 1) + 1
                changed = {**owned, "spec": {**owned["spec"], "replicas": count}}
                changed["metadata"] = {**owned["metadata"], "generation": generation}
                self._store.put(("apps", "replicasets", meta["namespace"], owned["metadata"]["name"]), changed)
        if self._store.get(("apps", "replicasets", meta["namespace"], wanted)) is None:
            self._make(("apps", "replicasets", meta["namespace"], wanted), _replica_set(spec, mark), obj)
        obj = self._numbered(obj, wanted)
        current = self._store.get(("apps", "replicasets", meta["namespace"], wanted))
        ready = int(((current or {}).get("status") or {}).get("readyReplicas") or 0)
        self._set_status(("apps", "deployments"), obj, _deployment_status(obj, ready))

    def _numbered(self, obj: dict[str, Any], wanted: str) -> dict[str, Any]:
        """The Deployment with the revision of its newest ReplicaSet, for `kubectl rollout history` and `undo`."""
        numbers = {
            replica_set["metadata"]["name"]: _revision(replica_set)
            for replica_set in self._owned("apps", "replicasets", obj)
        }
        newest = max(numbers.values(), default=0)
        number = numbers.get(wanted, 0)
        if number == 0 or number < newest:
            number = newest + 1
            key = ("apps", "replicasets", obj["metadata"]["namespace"], wanted)
            chosen = self._store.get(key)
            if chosen:
                self._store.put(key, _with_revision(chosen, number))
        if _revision(obj) == number:
            return obj
        key = ("apps", "deployments", obj["metadata"]["namespace"], obj["metadata"]["name"])
        return self._store.put(key, _with_revision(obj, number))

    def _pods_of(self, plural: str, obj: dict[str, Any]) -> None:
        if obj["metadata"].get("deletionTimestamp"):
            return
        count = 1 if plural == "daemonsets" else int(obj["spec"].get("replicas", 1))
        shown = min(count, MAX_PODS)
        pods = self._owned("", "pods", obj)
        for pod in pods[shown:]:
            self._store.remove(("", "pods", pod["metadata"]["namespace"], pod["metadata"]["name"]))
        names = {pod["metadata"]["name"] for pod in pods[:shown]}
        for number in range(shown):
            name = f"{obj['metadata']['name']}-{number if plural == 'statefulsets' else f'{number:05x}'}"
            if len(names) >= shown:
                break
            if name not in names:
                self._make_pod(name, obj)
                names.add(name)
        if plural == "daemonsets":
            status = dict.fromkeys(
                (
                    "currentNumberScheduled",
                    "desiredNumberScheduled",
                    "numberAvailable",
                    "numberReady",
                    "updatedNumberScheduled",
                ),
                count,
            )
            self._set_status(("apps", plural), obj, {"numberMisscheduled": 0, **status})
            return
        status = {"replicas": count, "readyReplicas": count, "availableReplicas": count}
        if plural == "replicasets":
            status["fullyLabeledReplicas"] = count
        else:
            status |= {"updatedReplicas": count, "currentReplicas": count}
        marks = {"currentRevision": "1", "updateRevision": "1", "collisionCount": 0} if plural == "statefulsets" else {}
        self._set_status(
            ("apps", plural),
            obj,
            {**{key: value for key, value in status.items() if value or key == "replicas"}, **marks},
        )

    def _job(self, obj: dict[str, Any]) -> None:
        if (obj.get("status") or {}).get("completionTime") or obj["spec"].get("suspend"):
            return
        at = now()
        conditions = [
            {
                "type": kind,
                "status": "True",
                "reason": "CompletionsReached",
                "message": "Reached expected number of succeeded pods",
                "lastProbeTime": at,
                "lastTransitionTime": at,
            }
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        self._set_status(
            ("batch", "jobs"),
            obj,
            {"conditions": conditions, "startTime": at, "completionTime": at, "succeeded": 1, "ready": 0},
        )

    def _make_pod(self, name: str, owner: dict[str, Any]) -> None:
        template = owner["spec"]["template"]
        at = now()
        statuses = [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": at}},
                "lastState": {},
            }
            for container in template["spec"].get("containers") or []
        ]
        kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": at, "lastProbeTime": None} for kind in kinds
        ]
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"labels": (template.get("metadata") or {}).get("labels") or {}},
            "spec": {**template["spec"], "nodeName": "sandbox"},
            "status": {
                "phase": "Running",
                "conditions": conditions,
                "containerStatuses": statuses,
                "startTime": at,
                "qosClass": "BestEffort",
            },
        }
        self._make(("", "pods", owner["metadata"]["namespace"], name), body, owner)

    # Everything

    def _owned(self, group: str, plural: str, owner: dict[str, Any]) -> list[dict[str, Any]]:
        uid = owner["metadata"]["uid"]
        return [
            obj
            for obj in self._store.all(group, plural, owner["metadata"]["namespace"])
            if any(owner["uid"] == uid for owner in obj["metadata"].get("ownerReferences") or [])
        ]

    def _make(self, key: Key, body: dict[str, Any], owner: dict[str, Any] | None) -> None:
        digest = hashlib.sha256(f"{key}{self._store.version}".encode()).hexdigest()
        meta = {
            **(body.get("metadata") or {}),
            "name": key[3],
            "namespace": key[2],
            "uid": f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}",
            "creationTimestamp": now(),
        }
        if key[0] == "apps" or key[1] == "pods":
            meta["generation"] = 1
        if owner:
            reference = {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
            }
            meta["ownerReferences"] = [{**reference, "controller": True, "blockOwnerDeletion": True}]
        self._store.put(key, {**body, "metadata": meta})

    def _claim(self, obj: dict[str, Any]) -> None:
        """Bound at once; one that is deleted is held while a pod uses it."""
        meta = obj["metadata"]
        if not meta.get("deletionTimestamp"):
            self._set_status(("", "persistentvolumeclaims"), obj, {"phase": "Bound"})
            return
        volumes: list[Any] = []  # of the pods that still run
        for pod in self._store.all("", "pods", meta["namespace"]):
            if (pod.get("status") or {}).get("phase") not in DONE:
                volumes += (pod.get("spec") or {}).get("volumes") or []
        names = {(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes}
        if meta["name"] not in names:
            key = ("", "persistentvolumeclaims", meta["namespace"], meta["name"])
            if left := [finalizer for finalizer in meta.get("finalizers") or [] if finalizer != PROTECTED_CLAIM]:
                self._store.put(key, {**obj, "metadata": {**meta, "finalizers": left}})
            else:
                self._store.remove(key)

    def _set_status(self, where: tuple[str, str], obj: dict[str, Any], status: dict[str, Any]) -> None:
        meta = obj["metadata"]
        counted = {"observedGeneration": meta.get("generation", 1)} if where[0] == "apps" else {}
        kept = {**(obj.get("status") or {}), **status, **counted}
        if kept != (obj.get("status") or {}):
            self._store.put((*where, meta["namespace"], meta["name"]), {**obj, "status": kept})

    def _collect_garbage(self, touched: Touched) -> None:
        """Dependents of what is gone go too; what waits only for its dependents goes after them."""
        for key in sorted(touched.written.union(*map(self._store.owned_by, touched.gone))):
            obj = self._store.get(key)
            if obj is None:
                continue
            owners = owners_of(obj)
            if (owners and not any(map(self._store.has_uid, owners))) or (
                obj["metadata"].get("deletionTimestamp") and obj["metadata"].get("finalizers") == ["foregroundDeletion"]
            ):
                self._store.remove(key)
        if not touched.has(*DEFINITIONS):
            return
        served = {
            (definition["spec"]["group"], definition["spec"]["names"]["plural"])
            for definition in self._store.all(*DEFINITIONS)
        }
        for key in self._store.all_keys():
            if key[:2] not in served and key[:2] not in self._kinds:
                self._store.remove(key)

    def _aggregate(self) -> None:
        """Aggregated ClusterRoles hold the rules of those that they select."""
        roles = self._store.all(RBAC_GROUP, "clusterroles")
        for role in roles:
            selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
            if not selectors:
                continue
            rules: list[Any] = []
            for other in roles:
                labels = other["metadata"].get("labels") or {}
                if other is not role and any(
                    all(labels.get(k) == v for k, v in (selector.get("matchLabels") or {}).items())
                    for selector in selectors
                ):
                    rules += [rule for rule in other.get("rules") or [] if rule not in rules]
            if rules != (role.get("rules") or []):
                self._store.put((RBAC_GROUP, "clusterroles", "", role["metadata"]["name"]), {**role, "rules": rules})


def _uid(obj: dict[str, Any]) -> str:
    return str(obj["metadata"].get("uid", ""))


def _replica_set(spec: dict[str, Any], mark: str) -> dict[str, Any]:
    """What a Deployment makes of its template; `mark` tells its templates apart."""
    template = spec["template"]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), "pod-template-hash": mark}
    chosen = {**(spec["selector"].get("matchLabels") or {}), "pod-template-hash": mark}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"labels": labels},
        "spec": {
            "replicas": int(spec.get("replicas", 1)),
            "selector": {"matchLabels": chosen},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


def _revision(obj: dict[str, Any]) -> int:
    text = str((obj["metadata"].get("annotations") or {}).get(REVISION, ""))
    return int(text) if text.isdigit() else 0


def _with_revision(obj: dict[str, Any], number: int) -> dict[str, Any]:
    annotations = {**(obj["metadata"].get("annotations") or {}), REVISION: str(number)}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _deployment_status(obj: dict[str, Any], ready: int) -> dict[str, Any]:
    wanted = int(obj["spec"].get("replicas", 1))
    is_done = ready >= wanted
    known = {condition["type"]: condition for condition in (obj.get("status") or {}).get("conditions") or []}
    conditions = []
    for kind, is_true, reason, message in (
        (
            "Available",
            is_done,
            "MinimumReplicasAvailable" if is_done else "MinimumReplicasUnavailable",
            "Deployment has minimum availability." if is_done else "Deployment does not have minimum availability.",
        ),
        (
            "Progressing",
            True,
            "NewReplicaSetAvailable" if is_done else "ReplicaSetUpdated",
            "The rollout is complete." if is_done else "The rollout continues.",
        ),
    ):
        status = "True" if is_true else "False"
        before = known.get(kind)
        if before and (before["status"], before["reason"]) == (status, reason):
            conditions.append(before)
        else:
            at = now()
            conditions.append(
                {
                    "type": kind,
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "lastUpdateTime": at,
                    "lastTransitionTime": at,
                }
            )
    counts = {"replicas": wanted, "updatedReplicas": wanted, "readyReplicas": ready, "availableReplicas": ready}
    return {"conditions": conditions, **counts, "unavailableReplicas": max(0, wanted - ready)}
