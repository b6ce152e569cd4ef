"""From a call to its answer: who asks, what the path names, whether they may, and then it is done."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any
from urllib.parse import unquote

from provisioner.api_groups import RBAC_GROUP
from provisioner.sandbox import bodies, custom, discovery, reads
from provisioner.sandbox.access import Access
from provisioner.sandbox.calls import (
    PathTarget,
    SandboxAnswer,
    SandboxCall,
    StatusRefusal,
    Writing,
    bad_request,
    check_write_options,
    lost,
    not_allowed,
    not_found,
)
from provisioner.sandbox.kinds import BUILT_IN, REVIEWS, SandboxKind
from provisioner.sandbox.store import ObjectStore
from provisioner.sandbox.writes import Writes
from provisioner.values import AccessRequest, Identity

logger = logging.getLogger(__name__)

OPEN_PATHS = ("/healthz", "/readyz", "/livez", "/version")
_LOST_PAGE = SandboxAnswer(404, "404 page not found\n", content_type="text/plain; charset=utf-8")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Api:
    def __init__(self, store: ObjectStore, access: Access):
        self._store = store
        self._access = access
        self._writes = Writes(store, access)

    def answer(self, call: SandboxCall) -> SandboxAnswer:
        """Never raises: a refusal is an answer too."""
        try:
            identity = self._access.authenticate(call.header("authorization"))
            identity = self._access.impersonate(identity, call.headers, lambda: self._about(call))
            return self._route(call, identity)
        except StatusRefusal as exc:
            return SandboxAnswer(exc.code, exc.body())
        except Exception as exc:
            logger.exception("the sandbox could not answer", extra={"path": call.path})
            words = f"Internal error occurred: {type(exc).__name__}: {exc}"
            return SandboxAnswer(500, StatusRefusal(500, "InternalError", words).body())

    def kinds(self) -> list[SandboxKind]:
        return [*BUILT_IN, *custom.kinds(self._store)]

    def _route(self, call: SandboxCall, identity: Identity) -> SandboxAnswer:
        parts = [unquote(part) for part in call.path.strip("/").split("/")]
        place = _resource_place(parts)
        if place is None:
            if call.path not in OPEN_PATHS:
                self._access.check(identity, AccessRequest("get", path="/" + "/".join(parts)))
            return self._documents(parts, call)
        group, version, rest = place
        asked = (group, version, rest[-1])
        review = next((kind for kind in REVIEWS if (kind.group, kind.version, kind.plural) == asked), None)
        if review and call.method == "POST":
            namespace = rest[1] if len(rest) == 3 else ""
            self._access.check(identity, AccessRequest("create", group, review.plural, namespace=namespace))
            return SandboxAnswer(201, self._access.review(review.kind, identity, call.object()))
        target = self._target(group, version, rest)
        if target is None:
            return self._stranger(call, identity, PathTarget(_stranger(group, version, rest), *_placed(rest)))
        verb = self._verb(call, target)
        request = _asked_of(call, target, verb)
        self._access.check(identity, request)
        if verb in ("get", "list", "watch"):
            return self._get_object(call, target, verb)
        if verb == "patch" and self._is_apply(call) and not target.subresource and self._store.get(target.key) is None:
            self._access.check(identity, dataclasses.replace(request, verb="create"))
        if target.kind.is_namespaced and not target.namespace:
            raise not_allowed()
        check_write_options(call, is_apply=call.method == "PATCH" and self._is_apply(call))
        validation = call.query.get("fieldValidation") or "Warn"
        manager = call.query.get("fieldManager") or call.header("user-agent").partition("/")[0] or "unknown"
        writing = Writing(identity, manager, call.is_dry_run, validation)
        code, obj = self._written(call, target, verb, writing)
        if target.kind.group == RBAC_GROUP:
            self._access.forget()
        body = (
            obj
            if verb == "deletecollection" or obj.get("kind") in ("Status", "Scale", "TokenRequest")
            else self._one(call, target.kind, self._as_asked(target.kind, obj))
        )
        return SandboxAnswer(code, body, (*writing.warnings, *self._warnings(target.kind)))

    def _about(self, call: SandboxCall) -> AccessRequest:
        """What a request does, as the API server asks its authorizers before it looks at the object."""
        parts = [unquote(part) for part in call.path.strip("/").split("/")]
        place = _resource_place(parts)
        if place is None:
            return AccessRequest(call.method.lower(), path="/" + "/".join(parts))
        group, version, rest = place
        namespace, name, subresource = _placed(rest)
        target = self._target(group, version, rest)
        target = target or PathTarget(_stranger(group, version, rest), namespace, name, subresource)
        return _asked_of(call, target, self._verb(call, target))

    def _target(self, group: str, version: str, rest: list[str]) -> PathTarget | None:
        namespace, name, subresource = _placed(rest)
        rest = rest[2:] if namespace else rest
        for kind in self.kinds():
            is_meant = (kind.group, kind.version, kind.plural) == (group, version, rest[0])
            if is_meant and (kind.is_namespaced or not namespace):
                return PathTarget(kind, namespace, name, subresource)
        return None

    def _stranger(self, call: SandboxCall, identity: Identity, target: PathTarget) -> SandboxAnswer:
        """A kind that is not here: who may not use it is not told so."""
        kind = target.kind
        verb = self._verb(call, target)
        place = AccessRequest(verb, kind.group, kind.plural, target.subresource, target.namespace, target.name)
        self._access.check(identity, place)
        if any((other.group, other.version) == (kind.group, kind.version) for other in self.kinds()):
            raise lost()
        return _LOST_PAGE

    def _verb(self, call: SandboxCall, target: PathTarget) -> str:
        if call.method == "GET":
            is_watch = call.query.get("watch") in ("true", "1")
            return "watch" if is_watch else "get" if target.name else "list"
        verb = _VERBS.get(call.method, "")
        needs_name = verb in ("update", "patch") or (verb == "create" and target.subresource)
        takes_name = verb != "create" or target.subresource
        if not verb or (needs_name and not target.name) or (target.name and not takes_name):
            raise not_allowed()
        if verb == "delete" and not target.name:
            return "deletecollection"
        return verb

    def _is_apply(self, call: SandboxCall) -> bool:
        return call.header("content-type").partition(";")[0] in (
            "application/apply-patch+yaml",
            "application/apply-patch+cbor",
        )

    def _has_subresource(self, target: PathTarget) -> bool:
        return (target.subresource == "status" and target.kind.has_status) or (
            target.subresource == "scale" and target.kind.has_scale
        )

    # Reading

    def _get_object(self, call: SandboxCall, target: PathTarget, verb: str) -> SandboxAnswer:
        if target.subresource and not self._has_subresource(target):
            raise lost()

        def shown(obj: dict[str, Any]) -> dict[str, Any]:
            return self._as_asked(target.kind, obj)

        if verb == "watch":
            if target.name:
                query = {**call.query, "fieldSelector": f"metadata.name={target.name}"}
                call = SandboxCall(call.method, call.path, query, call.headers)
            events = reads.watch(self._store, target, call, lambda obj: self._as_asked(target.kind, obj))
            if "as=Table" in call.header("accept"):
                events = (
                    {**event, "object": self._table(target.kind, [event["object"]], {})}
                    if event["type"] != "BOOKMARK"
                    else event
                    for event in events
                )
            elif "as=PartialObjectMetadata;" in call.header("accept"):
                events = ({**event, "object": self._one(call, target.kind, event["object"])} for event in events)
            return SandboxAnswer(200, stream=events)
        if verb == "list":
            objects, meta = reads.page(self._store, target, call, shown)
            return SandboxAnswer(200, self._listed(call, target.kind, objects, meta))
        obj = self._store.get(target.key)
        if obj is None:
            raise not_found(target.kind.resource, target.name)
        if target.subresource == "scale":
            return SandboxAnswer(200, _scale(target, obj))
        return SandboxAnswer(200, self._one(call, target.kind, shown(obj)), self._warnings(target.kind))

    def _as_asked(self, kind: SandboxKind, obj: dict[str, Any]) -> dict[str, Any]:
        shown = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            **{k: v for k, v in obj.items() if k not in ("apiVersion", "kind")},
        }
        if kind.is_custom and obj.get("apiVersion") != kind.api_version:
            return custom.converted(self._store, kind, shown)
        return shown

    def _one(self, call: SandboxCall, kind: SandboxKind, obj: dict[str, Any]) -> dict[str, Any]:
        accept = call.header("accept")
        if "as=Table" in accept:
            return self._table(kind, [obj], {})
        if "as=PartialObjectMetadata;" in accept + ";":
            return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
        return obj

    def _listed(
        self, call: SandboxCall, kind: SandboxKind, objects: list[dict[str, Any]], meta: dict[str, Any]
    ) -> dict[str, Any]:
        accept = call.header("accept")
        if "as=Table" in accept:
            return self._table(kind, objects, meta)
        if "as=PartialObjectMetadataList" in accept:
            items = [
                {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
                for obj in objects
            ]
            return {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": meta,
                "items": items,
            }
        items = (
            objects
            if kind.is_custom
            else [{k: v for k, v in obj.items() if k not in ("apiVersion", "kind")} for obj in objects]
        )
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta, "items": items}

    def _table(self, kind: SandboxKind, objects: list[dict[str, Any]], meta: dict[str, Any]) -> dict[str, Any]:
        columns = (
            custom.definition(self._store, kind)[1].get("additionalPrinterColumns") or [] if kind.is_custom else []
        )
        return reads.table(kind, objects, meta, columns)

    def _warnings(self, kind: SandboxKind) -> tuple[str, ...]:
        if not kind.is_custom:
            return ()
        _, version = custom.definition(self._store, kind)
        if not version.get("deprecated"):
            return ()
        if version.get("deprecationWarning"):
            return (version["deprecationWarning"],)
        served = [
            served_kind
            for served_kind in self.kinds()
            if (served_kind.group, served_kind.plural) == (kind.group, kind.plural)
        ]
        stable = sorted(
            (served_kind.version for served_kind in served if served_kind.version != kind.version),
            key=discovery.by_stability,
        )
        better = f"; use {kind.group}/{stable[0]} {kind.kind}" if stable else ""
        return (f"{kind.api_version} {kind.kind} is deprecated{better}",)

    # Writing

    def _written(
        self, call: SandboxCall, target: PathTarget, verb: str, writing: Writing
    ) -> tuple[int, dict[str, Any]]:
        if target.subresource == "token" and target.kind.resource == "serviceaccounts":
            account = self._store.get(target.key)
            if account is None:
                raise not_found("serviceaccounts", target.name)
            return 201, self._access.token_for(account, call.object())
        if target.subresource and not self._has_subresource(target):
            raise lost()
        if target.subresource == "scale":
            wish = call.json()
            replicas = (wish.get("spec") or {}).get("replicas") if isinstance(wish, dict) else None
            if not isinstance(replicas, int):
                raise bad_request("expected a Scale with spec.replicas")
            whole = PathTarget(target.kind, target.namespace, target.name)
            changed = self._writes.patch(
                whole, "application/merge-patch+json", {"spec": {"replicas": replicas}}, writing
            )
            return 200, _scale(target, changed)
        if call.method == "PATCH" and self._is_apply(call):
            force = call.query.get("force") in ("true", "1")
            obj, is_new = self._writes.apply(target, call.object(), writing, force=force)
            return (201 if is_new else 200), obj
        if verb in ("create", "update"):
            sent = call.object()
            bodies.note_repeated(target.kind, call.body, writing)
            if verb == "create":
                return 201, self._writes.create(target, sent, writing)
            return 200, self._writes.replace(target, sent, writing)
        if verb == "patch":
            return 200, self._writes.patch(target, call.header("content-type").partition(";")[0], call.json(), writing)
        return 200, self._deleted(call, target, verb, writing)

    def _deleted(self, call: SandboxCall, target: PathTarget, verb: str, writing: Writing) -> dict[str, Any]:
        options = call.object() if call.body.strip() else {}
        if options.get("dryRun"):
            writing = Writing(writing.identity, writing.manager, True, writing.validation)
        elif call.body.strip():
            # As the real one: a body's options replace those of the query.
            writing = Writing(writing.identity, writing.manager, False, writing.validation)
        if verb == "deletecollection":
            fits = reads.wants(call, target.kind, reads.selectable(self._store, target.kind))
            gone = []
            for obj in self._store.all(target.kind.group, target.kind.plural, target.namespace):
                if fits(obj):
                    one = PathTarget(target.kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
                    gone.append(self._as_asked(target.kind, self._writes.delete(one, {}, writing)))
            return self._listed(call, target.kind, gone, {"resourceVersion": str(self._store.version)})
        before = self._writes.delete(target, options, writing)
        if before["metadata"].get("deletionTimestamp"):
            return before
        details = {"name": target.name, "kind": target.kind.plural, "uid": before["metadata"]["uid"]}
        if target.kind.group:
            details["group"] = target.kind.group
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    # Documents

    def _documents(self, parts: list[str], call: SandboxCall) -> SandboxAnswer:
        """Health, version, OpenAPI, and discovery in the aggregated form alone: all clients of today ask for that."""
        if parts[0] in ("healthz", "readyz", "livez"):
            return SandboxAnswer(200, "ok", content_type="text/plain")
        if parts == ["version"]:
            return SandboxAnswer(200, discovery.VERSION)
        if parts in (["api"], ["apis"]) and all(
            part in call.header("accept") for part in ("as=APIGroupDiscoveryList", "v=v2;")
        ):
            found = discovery.aggregated(self.kinds(), core=parts == ["api"])
            form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            return SandboxAnswer(200, found, content_type=form)
        if parts == ["openapi", "v2"]:
            return SandboxAnswer(200, discovery.NOTHING, content_type=discovery.NOTHING_TYPE)
        if parts[0] == "openapi":
            text = discovery.document(self.kinds(), parts[1:], lambda kind: custom.schema(self._store, kind))
            return _LOST_PAGE if text is None else SandboxAnswer(200, text)
        return _LOST_PAGE


def _resource_place(parts: list[str]) -> tuple[str, str, list[str]] | None:
    """(group, version, the rest of the path) where the path names a resource; None for a document."""
    if parts[0] == "api" and len(parts) > 2:
        return "", parts[1], parts[2:]
    return (parts[1], parts[2], parts[3:]) if parts[0] == "apis" and len(parts) > 3 else None


def _asked_of(call: SandboxCall, target: PathTarget, verb: str) -> AccessRequest:
    """What authorizers are asked; a list or watch that a field selector limits to one name is of it."""
    name, selector = target.name, call.query.get("fieldSelector", "")
    if verb in ("list", "watch") and selector.startswith("metadata.name="):
        name = selector.partition("=")[2]
    return AccessRequest(verb, target.kind.group, target.kind.plural, target.subresource, target.namespace, name)


def _placed(rest: list[str]) -> tuple[str, str, str]:
    """(namespace, name, subresource) of a path below its version."""
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    return namespace, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else ""


def _stranger(group: str, version: str, rest: list[str]) -> SandboxKind:
    namespace, *_ = _placed(rest)
    plural = rest[2] if namespace else rest[0]
    return SandboxKind(group, version, plural, plural, bool(namespace))


def _scale(target: PathTarget, obj: dict[str, Any]) -> dict[str, Any]:
    meta = obj["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            key: meta[key]
            for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
            if key in meta
        },
        "spec": {"replicas": (obj.get("spec") or {}).get("replicas", 0)},
        "status": {"replicas": (obj.get("status") or {}).get("replicas", 0)},
    }
