"""create, update, patch, apply and delete, with everything that the API server does on the way."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from provisioner.rbac import PolicyRule, covers
from provisioner.sandbox import admission, custom, managed, patches
from provisioner.sandbox.access import MASTERS, RBAC, Access
from provisioner.sandbox.builtin_types import undeclared
from provisioner.sandbox.calls import Target, Writing
from provisioner.sandbox.managed import Manager
from provisioner.sandbox.status import Refusal, already_exists, bad_request, conflict, invalid, not_found
from provisioner.sandbox.store import Store
from provisioner.values import AccessRequest

MUST_NOT_EXIST = "1"
_SERVER_META = ("uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass(frozen=True, slots=True)
class Writes:
    store: Store
    access: Access

    def create(self, target: Target, obj: dict[str, Any], writing: Writing) -> dict[str, Any]:
        """POST. Raises Refusal in the API server's words."""
        meta = dict(obj.get("metadata") or {})
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = f"{meta['generateName']}{secrets.token_hex(3)[:5]}"
        if meta.get("resourceVersion"):
            raise Refusal(400, "BadRequest", "resourceVersion should not be set on objects to be created")
        named = Target(target.kind, target.namespace, str(meta.get("name") or ""))
        wish = self._placed(named, {**obj, "metadata": meta})
        with self.store.lock:
            if self.store.get(named.key) is not None:
                raise already_exists(target.kind.resource, named.name)
            made = self._fresh(named, wish)
            manager = Manager(writing.manager, "Update", target.kind.api_version)
            return self._stored(named, made, None, writing, manager)

    def replace(self, target: Target, obj: dict[str, Any], writing: Writing) -> dict[str, Any]:
        """PUT, of the object or of a subresource."""
        with self.store.lock:
            live = self._live(target)
            wish = self._placed(target, obj)
            self._check_preconditions(target, live, wish["metadata"])
            manager = Manager(writing.manager, "Update", target.kind.api_version, target.subresource)
            return self._stored(target, self._combined(target, live, wish), live, writing, manager)

    def patch(self, target: Target, content_type: str, patch: Any, writing: Writing) -> dict[str, Any]:
        with self.store.lock:
            live = self._live(target)
            change: Callable[[Any, Any], Any] = {
                "application/json-patch+json": patches.json_patch,
                "application/merge-patch+json": patches.merge_patch,
                "application/strategic-merge-patch+json": patches.merge_patch
                if target.kind.is_custom
                else patches.strategic,
            }.get(content_type, _unsupported)
            shown = {**live, "apiVersion": target.kind.api_version}
            wish = self._placed(target, change(shown, patch))
            if isinstance(patch, dict) and "resourceVersion" in (patch.get("metadata") or {}):
                self._check_preconditions(target, live, patch["metadata"])
            manager = Manager(writing.manager, "Update", target.kind.api_version, target.subresource)
            return self._stored(target, self._combined(target, live, wish), live, writing, manager)

    def apply(
        self, target: Target, obj: dict[str, Any], writing: Writing, *, force: bool
    ) -> tuple[dict[str, Any], bool]:
        """(object, created). `metadata.resourceVersion` and `metadata.uid` are preconditions."""
        wish = self._placed(target, obj)
        if (wish["metadata"]).get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        self._check_declared(target, wish)
        manager = Manager(writing.manager, "Apply", target.kind.api_version, target.subresource)
        topology = custom.topology(self.store, target.kind)
        with self.store.lock:
            live = self.store.get(target.key)
            if live is None:
                self._check_absent(target, wish["metadata"])
                made = managed.apply(None, _without(wish, "resourceVersion"), manager, topology, force=force, now=now())
                return self._stored(target, self._fresh(target, made), None, writing, None), True
            self._check_preconditions(target, live, wish["metadata"])
            body = _without(wish, "resourceVersion", "uid")
            if target.subresource == "status":
                body = {key: body[key] for key in ("apiVersion", "kind", "metadata", "status") if key in body}
            elif target.kind.has_status:
                body = {key: value for key, value in body.items() if key != "status"}
            merged = managed.apply(live, body, manager, topology, force=force, now=now())
            return self._stored(target, merged, live, writing, None), False

    def delete(self, target: Target, options: dict[str, Any], writing: Writing) -> dict[str, Any]:
        """The object as it was, or as it waits for its finalizers."""
        with self.store.lock:
            live = self._live(target)
            wanted = options.get("preconditions") or {}
            for name, words in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
                if wanted.get(name) and wanted[name] != live["metadata"][name]:
                    found = live["metadata"][name]
                    said = (
                        f"Precondition failed: {words} in precondition: {wanted[name]}, {words} in object meta: {found}"
                    )
                    raise conflict(target.kind.resource, target.name, said)
            finalizers = list(live["metadata"].get("finalizers") or [])
            policy = options.get("propagationPolicy") or ("Orphan" if options.get("orphanDependents") else "")
            if policy == "Foreground" and "foregroundDeletion" not in finalizers:
                finalizers.append("foregroundDeletion")
            is_held = bool(finalizers) or target.kind.plural == "namespaces"
            meta = {**live["metadata"], **({"finalizers": finalizers} if finalizers else {})}
            if is_held and not meta.get("deletionTimestamp"):
                meta |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": 0}
                meta["generation"] = int(meta.get("generation") or 1) + 1
            waiting = {**live, "metadata": meta}
            if target.kind.plural == "namespaces":
                waiting["status"] = {**(live.get("status") or {}), "phase": "Terminating"}
            if writing.is_dry_run:
                return waiting
            if is_held:
                return self.store.put(target.key, waiting)
            self.store.remove(target.key)
            return live

    # On the way

    def _live(self, target: Target) -> dict[str, Any]:
        live = self.store.get(target.key)
        if live is None:
            raise not_found(target.kind.resource, target.name)
        return live

    def _placed(self, target: Target, obj: dict[str, Any]) -> dict[str, Any]:
        """The object with its name and namespace as the path says them; raises Refusal where they differ."""
        kind, meta = target.kind, dict(obj.get("metadata") or {})
        written = (obj.get("apiVersion", kind.api_version), obj.get("kind", kind.kind))
        if written != (kind.api_version, kind.kind):
            expected = f"({kind.api_version}, {kind.kind})"
            raise bad_request(
                f"the API version in the data {written} does not match the expected API version {expected}"
            )
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

    def _check_preconditions(self, target: Target, live: dict[str, Any], meta: dict[str, Any]) -> None:
        version = meta.get("resourceVersion")
        if version and version != live["metadata"]["resourceVersion"]:
            words = "the object has been modified; please apply your changes to the latest version and try again"
            raise conflict(target.kind.resource, target.name, words)
        if meta.get("uid") and meta["uid"] != live["metadata"]["uid"]:
            words = f'Invalid value: "{meta["uid"]}": field is immutable'
            shown = f"{target.kind.kind}.{target.kind.group}" if target.kind.group else target.kind.kind
            raise invalid(shown, target.name, [("metadata.uid", words)])

    def _check_absent(self, target: Target, meta: dict[str, Any]) -> None:
        """An apply to an object that is not there creates it, unless it is told to expect one."""
        if target.subresource:
            raise not_found(target.kind.resource, target.name)
        if meta.get("uid"):
            words = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: "
            raise conflict(target.kind.resource, target.name, words)
        if meta.get("resourceVersion", "") not in ("", MUST_NOT_EXIST, "0"):
            raise not_found(target.kind.resource, target.name)

    def _fresh(self, target: Target, obj: dict[str, Any]) -> dict[str, Any]:
        """A new object: its place checked, its server fields set."""
        if target.kind.is_namespaced:
            space = self.store.get(("", "namespaces", "", target.namespace))
            if space is None:
                raise not_found("namespaces", target.namespace)
            if space["metadata"].get("deletionTimestamp"):
                said = f"unable to create new content in namespace {target.namespace} because it is being terminated"
                words = f'{target.kind.resource} "{target.name}" is forbidden: {said}'
                raise Refusal(403, "Forbidden", words)
        meta = {key: value for key, value in obj["metadata"].items() if key not in (*_SERVER_META, "resourceVersion")}
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now(), "generation": 1}
        made = {**obj, "metadata": meta}
        return {key: value for key, value in made.items() if key != "status"} if target.kind.has_status else made

    def _combined(self, target: Target, live: dict[str, Any], wish: dict[str, Any]) -> dict[str, Any]:
        """What an update may change: the server's metadata never, the status only through its subresource."""
        meta = {**wish["metadata"]}
        for name in (*_SERVER_META, "resourceVersion", "managedFields"):
            meta.pop(name, None)
            if name in live["metadata"]:
                meta[name] = live["metadata"][name]
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

    def _check_declared(self, target: Target, wish: dict[str, Any]) -> None:
        """An apply of a field that the schema does not declare is a 500 on the real one, whatever is asked for."""
        found = undeclared(target.kind, wish) if not target.kind.is_custom else ""
        if found:
            what = f"{target.namespace}/{target.name}" if target.namespace else f"/{target.name}"
            typed = f"{target.kind.api_version}, Kind={target.kind.kind}"
            words = f"failed to create typed patch object ({what}; {typed}): {found}: field not declared in schema"
            raise Refusal(500, "", words)

    def _stored(
        self,
        target: Target,
        obj: dict[str, Any],
        live: dict[str, Any] | None,
        writing: Writing,
        manager: Manager | None,
    ) -> dict[str, Any]:
        """Admit, note who owns what, raise the generation, store; the end of every write."""
        # What an apply declares was checked on the wish itself; here the object is already whole.
        admitted = self._admitted(target, obj, live, writing, is_checked=manager is None)
        if target.kind.group == RBAC and not target.subresource:
            self._check_escalation(target, admitted, writing)
        if manager is not None:
            topology = custom.topology(self.store, target.kind)
            admitted = managed.update(live, admitted, manager, topology, now=now())
        if live is not None and _wish_of(live, target) != _wish_of(admitted, target):
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
        self,
        target: Target,
        obj: dict[str, Any],
        live: dict[str, Any] | None,
        writing: Writing,
        *,
        is_checked: bool,
    ) -> dict[str, Any]:
        kind = target.kind
        if kind.is_custom:
            after, pruned = custom.admitted(self.store, kind, obj, live)
            self._note_unknown(pruned, kind, writing)
            return after
        if writing.validation != "Ignore" and not target.subresource and not is_checked:
            unknown = undeclared(kind, obj)
            self._note_unknown([unknown.lstrip(".")] if unknown else [], kind, writing)
        if kind.plural == custom.PLURAL and not target.subresource:
            return custom.established(custom.check_definition(obj, live), live, now())
        return admission.admitted(kind, obj, live, self._free_ip)

    def _note_unknown(self, paths: list[str], kind: Any, writing: Writing) -> None:
        if not paths:
            return
        said = ", ".join(f'unknown field "{path}"' for path in paths)
        if writing.validation == "Strict":
            words = (
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: '
            )
            words += said
            raise Refusal(400, "BadRequest", words)
        if writing.validation == "Warn":
            writing.warnings.extend(f'unknown field "{path}"' for path in paths)

    def _free_ip(self) -> str:
        taken = {(it.get("spec") or {}).get("clusterIP") for it in self.store.all("", "services")}
        return next(ip for number in range(60_000) if (ip := admission.service_ip(number)) not in taken)

    def _check_escalation(self, target: Target, obj: dict[str, Any], writing: Writing) -> None:
        """Nobody grants what they do not have, unless they may escalate or bind (reports.md B1)."""
        identity = writing.identity
        if MASTERS in identity.groups:
            return
        question, found = self._granted(target, obj)
        if self.access.allows(identity, question):
            return
        if found is None:
            raise not_found(f"{question.resource}.{RBAC}", question.name)
        held = [grant.rule for grant in self.access.rules_of(identity).grants_in(target.namespace)]
        wanted = [PolicyRule.from_object(rule) for rule in found.get("rules") or []]
        missing = covers([] if obj.get("aggregationRule") else held, wanted).missing
        if missing:
            who = f'user "{identity.username}" (groups={list(identity.groups)!r})'
            listed = "\n".join(str(rule) for rule in missing)
            words = f"{who} is attempting to grant RBAC permissions not currently held:\n{listed}"
            raise Refusal(403, "Forbidden", f'{target.kind.resource} "{target.name}" is forbidden: {words}')

    def _granted(self, target: Target, obj: dict[str, Any]) -> tuple[AccessRequest, dict[str, Any] | None]:
        """(the right that makes the check needless, the role whose rules would be granted)."""
        if target.kind.kind in ("Role", "ClusterRole"):
            plural = target.kind.plural
            return AccessRequest("escalate", RBAC, plural, namespace=target.namespace, name=target.name), obj
        role = obj.get("roleRef") or {}
        is_cluster, name = role.get("kind") == "ClusterRole", str(role.get("name", ""))
        plural = "clusterroles" if is_cluster else "roles"
        question = AccessRequest("bind", RBAC, plural, namespace=target.namespace, name=name)
        return question, self.store.get((RBAC, plural, "" if is_cluster else target.namespace, name))


def _wish_of(obj: dict[str, Any], target: Target) -> dict[str, Any]:
    """What the generation counts: everything but metadata and, where it is a subresource, status."""
    skipped = ("metadata", "apiVersion", "status") if target.kind.has_status else ("metadata", "apiVersion")
    return {key: value for key, value in obj.items() if key not in skipped}


def _without(obj: dict[str, Any], *names: str) -> dict[str, Any]:
    meta = {key: value for key, value in obj["metadata"].items() if key not in names}
    return {**obj, "metadata": meta}


def _unsupported(_: Any, __: Any) -> Any:
    raise Refusal(415, "UnsupportedMediaType", "the body of the request was in an unknown format")
