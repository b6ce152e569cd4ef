"""create, update, patch, apply and delete, with everything that the API server does on the way."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from dataclasses import dataclass
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.rbac import may_write_binding, may_write_role
from provisioner.sandbox import admission, bodies, custom, merges
from provisioner.sandbox.access import Access
from provisioner.sandbox.calls import (
    PathTarget,
    StatusRefusal,
    Writing,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
)
from provisioner.sandbox.fields import Topology
from provisioner.sandbox.merges import ManagedFieldsEntry
from provisioner.sandbox.store import ObjectStore

_SERVER_META = ("uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass(frozen=True, slots=True)
class Writes:
    store: ObjectStore
    access: Access

    def create(self, target: PathTarget, obj: dict[str, Any], writing: Writing) -> dict[str, Any]:
        """POST. Raises StatusRefusal in the API server's words."""
        sent = bodies.declared(target.kind, obj, writing)
        meta = dict(sent["metadata"])
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = f"{meta['generateName']}{secrets.token_hex(3)[:5]}"
        if meta.get("resourceVersion"):
            raise StatusRefusal(500, "", "resourceVersion should not be set on objects to be created")
        named = PathTarget(target.kind, target.namespace, str(meta.get("name") or ""))
        wish = self._placed(named, {**sent, "metadata": meta})
        with self.store.lock:
            if self.store.get(named.key) is not None:
                raise already_exists(target.kind.resource, named.name)
            made = self._fresh(named, wish)
            manager = ManagedFieldsEntry(writing.manager, "Update", target.kind.api_version)
            return self._stored(named, made, None, writing, manager)

    def replace(self, target: PathTarget, obj: dict[str, Any], writing: Writing) -> dict[str, Any]:
        """PUT, of the object or of a subresource."""
        with self.store.lock:
            live = self._live(target)
            wish = self._placed(target, bodies.declared(target.kind, obj, writing))
            if target.kind.is_custom and not _version(wish["metadata"]):
                words = "Invalid value: 0: must be specified for an update"
                raise invalid(target.kind.resource, target.name, [("metadata.resourceVersion", words)])
            self._check_preconditions(target, live, wish["metadata"])
            manager = ManagedFieldsEntry(writing.manager, "Update", target.kind.api_version, target.subresource)
            return self._stored(target, self._combined(target, live, wish), live, writing, manager)

    def patch(self, target: PathTarget, content_type: str, patch: Any, writing: Writing) -> dict[str, Any]:
        with self.store.lock:
            live = self._live(target)
            shown = {**live, "apiVersion": target.kind.api_version, "kind": target.kind.kind}
            changed = _patched(target, content_type, shown, patch, custom.topology(self.store, target.kind))
            wish = self._placed(target, bodies.patched(target.kind, changed, patch, writing))
            if isinstance(patch, dict) and "resourceVersion" in (patch.get("metadata") or {}):
                self._check_preconditions(target, live, wish["metadata"])
            elif wish["metadata"].get("uid") != live["metadata"]["uid"]:
                raise _other_uid(target, wish["metadata"])
            manager = ManagedFieldsEntry(writing.manager, "Update", target.kind.api_version, target.subresource)
            return self._stored(target, self._combined(target, live, wish), live, writing, manager)

    def apply(
        self, target: PathTarget, obj: dict[str, Any], writing: Writing, *, force: bool
    ) -> tuple[dict[str, Any], bool]:
        """(object, created). `metadata.resourceVersion` and `metadata.uid` are preconditions."""
        if not obj.get("apiVersion") or not obj.get("kind"):
            raise bad_request("invalid object type: /, Kind=")
        wish = self._placed(target, bodies.applied(target.kind, obj, custom.schema(self.store, target.kind)))
        if wish["metadata"].get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        manager = ManagedFieldsEntry(writing.manager, "Apply", target.kind.api_version, target.subresource)
        topology = custom.topology(self.store, target.kind)
        with self.store.lock:
            live = self.store.get(target.key)
            if live is None:
                meta = wish["metadata"]
                if target.subresource:
                    raise not_found(target.kind.resource, target.name)
                _version(meta)
                if meta.get("uid"):
                    said = f"the provided object specified uid {meta['uid']}, and no existing object was found"
                    raise conflict(target.kind.resource, target.name, f"uid mismatch: {said}")
                body = _appliable(target, _without(wish, "resourceVersion"))
                made = merges.apply(None, body, manager, topology, force=force, now=now())
                return self._stored(target, self._fresh(target, made), None, writing, None), True
            self._check_version(target, live, wish["metadata"])
            if (wish["metadata"].get("uid") or live["metadata"]["uid"]) != live["metadata"]["uid"]:
                raise _other_uid(target, wish["metadata"])
            body = _appliable(target, _without(wish, "resourceVersion", "uid"))
            shown = {**live, "apiVersion": target.kind.api_version, "kind": target.kind.kind}
            merged = merges.apply(shown, body, manager, topology, force=force, now=now())
            return self._stored(target, merged, live, writing, None), False

    def delete(self, target: PathTarget, options: dict[str, Any], writing: Writing) -> dict[str, Any]:
        """The object as it was, or as it waits for its finalizers."""
        with self.store.lock:
            live = self._live(target)
            wanted = options.get("preconditions") or {}
            for name, shown, ending in (
                ("uid", "UID", "The object might have been deleted and then recreated"),
                ("resourceVersion", "ResourceVersion", "The object might have been modified"),
            ):
                found = live["metadata"][name]
                if wanted.get(name) and wanted[name] != found:
                    stated = f"the {shown} in the precondition ({wanted[name]})"
                    words = f"{stated} does not match the {shown} in record ({found}). {ending}"
                    raise conflict(target.kind.full_name, target.name, words)
            finalizers = list(live["metadata"].get("finalizers") or [])
            policy = options.get("propagationPolicy") or ("Orphan" if options.get("orphanDependents") else "")
            if policy == "Foreground" and "foregroundDeletion" not in finalizers:
                finalizers.append("foregroundDeletion")
            is_held = bool(finalizers) or target.kind.plural == "namespaces"
            meta = {**live["metadata"], **({"finalizers": finalizers} if finalizers else {})}
            if is_held and not meta.get("deletionTimestamp"):
                meta |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": 0}
                if meta.get("generation"):
                    meta["generation"] = int(meta["generation"]) + 1
            waiting = {**live, "metadata": meta}
            if target.kind.plural == "namespaces":
                waiting["status"] = {**(live.get("status") or {}), "phase": "Terminating"}
            if writing.is_dry_run:
                return waiting
            if policy == "Orphan":  # what it owns outlives it, without this owner
                self._remove_owner(live["metadata"]["uid"])
            if is_held:
                return self.store.put(target.key, waiting)
            self.store.remove(target.key)
            return live

    def _remove_owner(self, uid: str) -> None:
        for key in self.store.owned_by(uid):
            owned = self.store.get(key)
            owners = owned["metadata"].get("ownerReferences") or [] if owned else []
            others = [owner for owner in owners if owner.get("uid") != uid]
            if owned and others != owners:
                meta = {name: value for name, value in owned["metadata"].items() if name != "ownerReferences"}
                self.store.put(key, {**owned, "metadata": {**meta, **({"ownerReferences": others} if others else {})}})

    # On the way

    def _live(self, target: PathTarget) -> dict[str, Any]:
        live = self.store.get(target.key)
        if live is None:
            raise not_found(target.kind.resource, target.name)
        return live

    def _placed(self, target: PathTarget, obj: dict[str, Any]) -> dict[str, Any]:
        """The object with its name and namespace as the path says them; raises StatusRefusal where they differ."""
        kind, meta = target.kind, dict(obj.get("metadata") or {})
        written = (obj.get("apiVersion", kind.api_version), obj.get("kind", kind.kind))
        if written != (kind.api_version, kind.kind):
            known = f'no kind "{written[1]}" is registered for version "{written[0]}" here'
            raise bad_request(f'{written[1]} in version "{kind.version}" cannot be handled as a {kind.kind}: {known}')
        if target.name and meta.get("name") not in (None, "", target.name):
            raise bad_request(
                f"the name of the object ({meta.get('name')}) does not match the name on the URL ({target.name})"
            )
        if kind.is_namespaced and meta.get("namespace") not in (None, "", target.namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        meta["name"] = meta.get("name") or target.name
        if kind.is_namespaced:
            meta["namespace"] = target.namespace
        else:
            meta.pop("namespace", None)
        admission.check_name(kind, str(meta["name"]))
        return {**obj, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}

    def _check_version(self, target: PathTarget, live: dict[str, Any], meta: dict[str, Any]) -> None:
        version = _version(meta)
        if version and version != live["metadata"]["resourceVersion"]:
            words = "the object has been modified; please apply your changes to the latest version and try again"
            raise conflict(target.kind.resource, target.name, words)

    def _check_preconditions(self, target: PathTarget, live: dict[str, Any], meta: dict[str, Any]) -> None:
        self._check_version(target, live, meta)
        found = live["metadata"]["uid"]
        if meta.get("uid") and meta["uid"] != found:
            place = f"{target.namespace}/{target.name}" if target.namespace else target.name
            said = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {found}"
            words = (
                f"StorageError: invalid object, Code: 4, Key: /registry/{target.kind.plural}/{place}, "
                f"ResourceVersion: 0, AdditionalErrorMsg: {said}"
            )
            raise conflict(target.kind.resource, target.name, words)

    def _fresh(self, target: PathTarget, obj: dict[str, Any]) -> dict[str, Any]:
        """A new object: its place checked, its server fields set."""
        if target.kind.is_namespaced:
            space = self.store.get(("", "namespaces", "", target.namespace))
            if space is None:
                raise not_found("namespaces", target.namespace)
            if space["metadata"].get("deletionTimestamp"):
                said = f"unable to create new content in namespace {target.namespace} because it is being terminated"
                words = f'{target.kind.resource} "{target.name}" is forbidden: {said}'
                raise StatusRefusal(403, "Forbidden", words)
        meta = {key: value for key, value in obj["metadata"].items() if key not in (*_SERVER_META, "resourceVersion")}
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
        if target.kind.has_generation:
            meta["generation"] = 1
        made = {**obj, "metadata": meta}
        return {key: value for key, value in made.items() if key != "status"} if target.kind.has_status else made

    def _combined(self, target: PathTarget, live: dict[str, Any], wish: dict[str, Any]) -> dict[str, Any]:
        """What an update may change: the server's metadata never, the status only through its subresource."""
        meta = {**wish["metadata"]}
        wanted = meta.get("managedFields")
        for name in (*_SERVER_META, "resourceVersion", "managedFields"):
            meta.pop(name, None)
            if name in live["metadata"]:
                meta[name] = live["metadata"][name]
        if wanted:
            # Whoever sends them may edit them; `[{}]` resets them.
            meta["managedFields"] = [] if wanted == [{}] else wanted
        if target.subresource == "status":
            body = {**live}
            if "status" in wish:
                body["status"] = wish["status"]
            return body
        combined = {**wish, "metadata": meta}
        if target.kind.has_status:
            combined.pop("status", None)
            if "status" in live:
                combined["status"] = live["status"]
        return combined

    def _stored(
        self,
        target: PathTarget,
        obj: dict[str, Any],
        live: dict[str, Any] | None,
        writing: Writing,
        manager: ManagedFieldsEntry | None,
    ) -> dict[str, Any]:
        """Admit, note who owns what, raise the generation, store; the end of every write."""
        admitted = self._admitted(target, obj, live, writing)
        if target.kind.group == RBAC_GROUP and not target.subresource:
            self._check_escalation(target, admitted, live, writing)
        if manager is not None:
            topology = custom.topology(self.store, target.kind)
            seen = admission.without_server_set(target.kind, admitted, obj, live)
            entries = merges.update(live, seen, manager, topology, now=now())["metadata"].get("managedFields")
            meta = {key: value for key, value in admitted["metadata"].items() if key != "managedFields"}
            admitted = {**admitted, "metadata": {**meta, "managedFields": entries} if entries else meta}
        if live is not None and target.kind.has_generation and _wish_of(live, target) != _wish_of(admitted, target):
            meta = admitted["metadata"]
            admitted = {**admitted, "metadata": {**meta, "generation": int(meta.get("generation") or 1) + 1}}
        if writing.is_dry_run:
            version = live["metadata"]["resourceVersion"] if live else ""
            return {
                **admitted,
                "metadata": {**admitted["metadata"], **({"resourceVersion": version} if version else {})},
            }
        is_released = admitted["metadata"].get("deletionTimestamp") and not admitted["metadata"].get("finalizers")
        if is_released and target.kind.plural != "namespaces":
            self.store.remove(target.key)
            return admitted
        return self.store.put(target.key, admitted)

    def _admitted(
        self, target: PathTarget, obj: dict[str, Any], live: dict[str, Any] | None, writing: Writing
    ) -> dict[str, Any]:
        kind = target.kind
        if kind.is_custom:
            after, pruned = custom.admitted(self.store, kind, obj, live)
            bodies.note_unknown(kind, pruned, writing)
            admission.check_metadata(kind, after, live)
            return after
        admission.check_metadata(kind, obj, live)
        if kind.plural == custom.PLURAL and not target.subresource:
            return custom.established(custom.check_definition(obj, live), live, now())

        def free_ip() -> str:
            taken = {(service.get("spec") or {}).get("clusterIP") for service in self.store.all("", "services")}
            return next(ip for number in range(60_000) if (ip := admission.service_ip(number)) not in taken)

        return admission.admitted(kind, obj, live, free_ip)

    def _check_escalation(
        self, target: PathTarget, obj: dict[str, Any], old: dict[str, Any] | None, writing: Writing
    ) -> None:
        """Nobody grants what they do not have, unless they may escalate or bind."""
        rules = self.access.rules_of(writing.identity)
        if target.kind.kind in ("Role", "ClusterRole"):
            check = may_write_role(rules, obj, old=old)
        else:
            check = may_write_binding(rules, obj, self.access.rbac_objects())
        if check:
            return
        if not check.missing:
            role = obj.get("roleRef") or {}
            plural = "clusterroles" if role.get("kind") == "ClusterRole" else "roles"
            raise not_found(f"{plural}.{RBAC_GROUP}", str(role.get("name", "")))
        identity = writing.identity
        who = f'user "{identity.username}" (groups={json.dumps(list(identity.groups))})'.replace(", ", " ")
        words = f"{who} is attempting to grant RBAC permissions not currently held:"
        for rule in check.missing:  # as Go prints them
            parts = {
                "APIGroups": rule.api_groups,
                "Resources": rule.resources,
                "ResourceNames": rule.resource_names,
                "NonResourceURLs": rule.non_resource_urls,
                "Verbs": rule.verbs,
            }
            shown = ", ".join(f"{name}:{json.dumps(list(values))}" for name, values in parts.items() if values)
            words += f"\n{{{shown}}}"
        details = {"name": target.name, "group": RBAC_GROUP, "kind": target.kind.plural}
        raise StatusRefusal(403, "Forbidden", f'{target.kind.resource} "{target.name}" is forbidden: {words}', details)


def _wish_of(obj: dict[str, Any], target: PathTarget) -> dict[str, Any]:
    """What the generation counts: everything but metadata and, where it is a subresource, status."""
    skipped = ("metadata", "apiVersion", "status") if target.kind.has_status else ("metadata", "apiVersion")
    return {key: value for key, value in obj.items() if key not in skipped}


def _appliable(target: PathTarget, wish: dict[str, Any]) -> dict[str, Any]:
    """What of a wish this resource or subresource may write."""
    if target.subresource == "status":
        return {key: wish[key] for key in ("apiVersion", "kind", "metadata", "status") if key in wish}
    return {key: value for key, value in wish.items() if key != "status"} if target.kind.has_status else wish


def _version(meta: dict[str, Any]) -> str:
    """The resourceVersion that a write expects, "" for none; raises StatusRefusal 500 for what is no number."""
    version = str(meta.get("resourceVersion") or "")
    if version and not version.isdigit():
        raise StatusRefusal(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
    return "" if version == "0" else version


def _other_uid(target: PathTarget, meta: dict[str, Any]) -> StatusRefusal:
    words = f'Invalid value: "{meta.get("uid") or ""}": field is immutable'
    refusal = invalid(target.kind.full_name, target.name, [("metadata.uid", words)])
    if refusal.details:
        # The API server finds it twice and says it once.
        refusal.details["causes"] *= 2
    return refusal


def _patched(target: PathTarget, content_type: str, shown: Any, patch: Any, topology: Topology) -> Any:
    if content_type == "application/json-patch+json":
        return merges.json_patch(shown, patch)
    if content_type == "application/merge-patch+json":
        return merges.merge_patch(shown, patch)
    if content_type == "application/strategic-merge-patch+json" and not target.kind.is_custom:
        return merges.strategic(shown, patch, topology)
    raise StatusRefusal(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def _without(obj: dict[str, Any], *names: str) -> dict[str, Any]:
    meta = {key: value for key, value in obj["metadata"].items() if key not in names}
    return {**obj, "metadata": meta}
