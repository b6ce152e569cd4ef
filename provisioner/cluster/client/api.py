"""The one way to a Kubernetes API server: every call that there is, as one identity.

Every call is bounded in time and bytes, and every failure is one of provisioner.errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from provisioner.cluster.client.answers import Applied, Excerpt, Snapshot, Watch, with_kind
from provisioner.cluster.client.discovery import AGGREGATED, ResourceDiscovery, Served, ServedResource
from provisioner.cluster.client.failures import Doing
from provisioner.cluster.client.transport import (
    APPLY,
    JSON_PATCH,
    MERGE,
    Observer,
    Transport,
    TransportAnswer,
    TransportCall,
    unobserved,
)
from provisioner.errors import (
    AlreadyExists,
    AnswerTooLarge,
    ClusterError,
    Expired,
    InvalidObject,
    PreconditionFailed,
    UnknownKind,
    Unreachable,
)
from provisioner.json_values import uid_of
from provisioner.values import GroupKind, Identity, JsonObject, ObjectRef

TIMEOUT_SECONDS = 30.0
PAGE = 500
LIST_RESTARTS = 5
# A resourceVersion that no object has: apply with it creates, and is refused where the object exists (seen on 1.36.3).
MUST_NOT_EXIST = "1"
_WATCH_GRACE_SECONDS = 15.0
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


class ClusterClient:
    """One API server, met as one identity; views by `acting_as` share connections and discovery. Safe for threads."""

    def __init__(
        self,
        transport: Transport,
        found: ResourceDiscovery,
        identity: Identity | None = None,
        before_send: Callable[[], None] | None = None,
    ):
        self._transport = transport
        self._discovery = found
        self.identity = identity
        self._before_send = before_send

    @classmethod
    def connect(
        cls,
        kubeconfig: str | Mapping[str, Any],
        *,
        context: str = "",
        timeout_seconds: float = TIMEOUT_SECONDS,
        trusted: bool = False,
        observe: Observer = unobserved,
    ) -> Self:
        """A connection by the text (or the parsed form) of a kubeconfig; `observe` is told of every call.

        Who answers is always checked. Raises BadSource where it cannot be used, or where it is not `trusted` and
        reaches outside itself (S19), and Unreachable where what it names gives no credentials now.
        """
        from provisioner.cluster.client.connection import by_kubeconfig  # noqa: PLC0415 - the official client loads for 0.4 s

        transport = by_kubeconfig(
            kubeconfig, context=context, timeout_seconds=timeout_seconds, trusted=trusted, observe=observe
        )
        return cls._over(transport)

    @classmethod
    def in_cluster(cls, *, timeout_seconds: float = TIMEOUT_SECONDS, observe: Observer = unobserved) -> Self:
        """A connection as the ServiceAccount of the pod that we run in."""
        from provisioner.cluster.client.connection import as_pod  # noqa: PLC0415 - the official client loads for 0.4 s

        return cls._over(as_pod(timeout_seconds=timeout_seconds, observe=observe))

    @classmethod
    def _over(cls, transport: Transport) -> Self:
        return cls(transport, ResourceDiscovery(_documents_over(transport)))

    def acting_as(self, identity: Identity) -> ClusterClient:
        """The same cluster, every call impersonated."""
        return ClusterClient(self._transport, self._discovery, identity, self._before_send)

    def guarded(self, before_send: Callable[[], None]) -> ClusterClient:
        """The same, but `before_send` is called right before the last of each write goes out; by raising it keeps that
        back, and the API server does nothing. It may be called several times for one write. Dry-runs are no writes.
        """
        asked = [question for question in (self._before_send, before_send) if question]

        def ask_all() -> None:
            for question in asked:
                question()

        return ClusterClient(self._transport, self._discovery, self.identity, ask_all)

    def until(self, moment: float) -> ClusterClient:
        """The same, for a question of many calls: at `moment` (time.monotonic) they end, and OutOfTime is raised.

        Reading discovery is one of them.
        """
        bounded = self._transport.until(moment)
        found = self._discovery.until(moment, _documents_over(bounded))
        return ClusterClient(bounded, found, self.identity, self._before_send)

    def within(self, seconds: float) -> ClusterClient:
        """The same, with a discovery that is no older than that; a kind that is not known in it is looked for now."""
        return ClusterClient(self._transport, self._discovery.within(seconds), self.identity, self._before_send)

    def noting(self, answers: dict[str, bytes], *, most_bytes: int) -> ClusterClient:
        """The same, which keeps in `answers` what it is answered, for `knowing`. Raises ClusterError beyond so many
        bytes in all."""
        noting = self._transport.noting(answers, most_bytes=most_bytes)
        return ClusterClient(noting, self._discovery, self.identity, self._before_send)

    def knowing(self, answers: Mapping[str, bytes]) -> ClusterClient:
        """The same, for who may take the answers of a moment ago: what they say is not asked again, but as others."""
        return ClusterClient(self._transport.knowing(answers), self._discovery, self.identity, self._before_send)

    @property
    def discovery(self) -> ResourceDiscovery:
        return self._discovery

    def close(self) -> None:
        """Drop the idle connections. The cluster can still be used."""
        self._transport.close()

    # Who and what the cluster is

    def uid(self) -> str:
        """The uid of kube-system: which cluster this is, whatever its address."""
        found = self.get(ObjectRef("", "v1", "Namespace", "", "kube-system"))
        uid = uid_of(found)
        if not uid:
            raise ClusterError("the cluster has no namespace kube-system to know it by")
        return uid

    def version(self) -> str:
        """Such as v1.36.3."""
        return str(self._send(TransportCall("GET", "/version", Doing("read", "/version"))).body.get("gitVersion") or "")

    def resources(self) -> tuple[ServedResource, ...]:
        return self.served().resources

    def served(self) -> Served:
        """What discovery says, with the groups whose own servers did not answer."""
        return self._discovery.served()

    def forget_discovery(self) -> None:
        self._discovery.forget()

    def resource_of(self, group: str, version: str, kind: str) -> ServedResource | None:
        """How a kind is served, None if it is not; with version "" the preferred one.

        Raises Unreachable where the group's own server does not answer, because then nobody knows.
        """
        served = self._discovery.served()
        if found := served.of_kind(group, version, kind):
            return found
        served = self._discovery.served_again()
        found = served.of_kind(group, version, kind)
        if found is None and served.is_unknown(group, version):
            raise Unreachable(f"the API {group}/{version or '*'} is registered but does not answer")
        return found

    def is_namespaced(self, kind: GroupKind) -> bool | None:
        """Whether objects of a kind are in namespaces, None if it is not served; one that is new is noticed."""
        for served in (self._discovery.served, self._discovery.served_again):
            if found := served().of_kind(kind.group, "", kind.kind):
                return found.is_namespaced
        return None

    # Reading

    def get(self, ref: ObjectRef, *, metadata_only: bool = False) -> dict[str, Any] | None:
        """The live object, None if there is none. Raises UnknownKind where the cluster does not serve the kind."""
        resource = self._resource(ref)
        accept = _METADATA if metadata_only else "application/json"
        doing = _doing("get", ref)
        try:
            body = self._send(TransportCall("GET", _path(resource, ref), doing, accept=accept)).body
        except ClusterError as exc:
            if exc.status == 404 and exc.reason == "NotFound":
                return None
            raise
        return with_kind(body, resource)

    def list(
        self,
        resource: ServedResource,
        namespace: str = "",
        label_selector: str = "",
        page: int = PAGE,
        metadata_only: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Every object, `page` of them per call, each once even where the server made us start again."""
        query = {"limit": str(page)} | ({"labelSelector": label_selector} if label_selector else {})
        for objects, _ in self._pages(resource, namespace, query, metadata_only):
            yield from objects

    def snapshot(self, resource: ServedResource, *, namespace: str = "", label_selector: str = "") -> Snapshot:
        """All objects at once, with the resourceVersion to watch from: that of the first page, since a list that began
        anew leaves out what it gave before."""
        query = {"limit": str(PAGE)} | ({"labelSelector": label_selector} if label_selector else {})
        pages = tuple(self._pages(resource, namespace, query, False))
        return Snapshot(tuple(obj for objects, _ in pages for obj in objects), pages[0][1])

    def pages(
        self, resource: ServedResource, *, namespace: str = "", metadata_only: bool = False
    ) -> Iterator[tuple[tuple[dict[str, Any], ...], str]]:
        """Every object, a page at a time, with the page's resourceVersion; watch from the first one's."""
        return self._pages(resource, namespace, {"limit": str(PAGE)}, metadata_only)

    def excerpt(
        self,
        resource: ServedResource,
        *,
        namespace: str = "",
        at_most: int = PAGE,
        metadata_only: bool = False,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Excerpt:
        """At most `at_most` objects, by one call, and how many there are."""
        query = {"limit": str(at_most), "labelSelector": label_selector, "fieldSelector": field_selector}
        body = self._page(resource, namespace, query, metadata_only)
        objects = tuple(with_kind(obj, resource) for obj in body.get("items") or [])
        meta = body.get("metadata") or {}
        rest = meta.get("remainingItemCount") if meta.get("continue") else 0
        total = len(objects) + rest if isinstance(rest, int) else None
        return Excerpt(objects, total, str(meta.get("resourceVersion") or ""))

    def openapi(self, group: str, version: str) -> dict[str, Any]:
        """The OpenAPI v3 document of one group and version."""
        path = f"/openapi/v3/apis/{group}/{version}" if group else f"/openapi/v3/api/{version}"
        return self._send(TransportCall("GET", path, Doing("read", path))).body

    def _pages(
        self, resource: ServedResource, namespace: str, query: Mapping[str, str], metadata_only: bool
    ) -> Iterator[tuple[tuple[dict[str, Any], ...], str]]:
        """(objects, resourceVersion) per page. After a 410 the list starts again, without what was given already.

        A page that is too large to be read is asked for again with half as many objects, and so are those after it.
        """
        query, seen = dict(query), set[str]()
        carry_on, restarts = "", 0
        while True:
            try:
                body = self._page(resource, namespace, {**query, "continue": carry_on}, metadata_only)
            except Expired:
                restarts += 1
                if not carry_on or restarts > LIST_RESTARTS:
                    raise
                carry_on = ""
                continue
            except AnswerTooLarge:
                if int(query["limit"]) <= 1:
                    raise
                query["limit"] = str(int(query["limit"]) // 2)
                continue
            objects = tuple(with_kind(obj, resource) for obj in body.get("items") or [] if _uid(obj) not in seen)
            seen.update(_uid(obj) for obj in objects)
            meta = body.get("metadata") or {}
            yield objects, str(meta.get("resourceVersion") or "")
            carry_on = str(meta.get("continue") or "")
            if not carry_on:
                return

    def _page(
        self, resource: ServedResource, namespace: str, query: Mapping[str, str], metadata_only: bool
    ) -> dict[str, Any]:
        accept = _METADATA_LIST if metadata_only else "application/json"
        asked = {key: value for key, value in query.items() if value}
        doing = _doing_all("list", resource)
        return self._send(TransportCall("GET", resource.path(namespace), doing, asked, accept=accept)).body

    def watch(
        self,
        resource: ServedResource,
        *,
        namespace: str = "",
        resource_version: str = "",
        timeout_seconds: float = 300.0,
        metadata_only: bool = False,
    ) -> Watch:
        """Changes after `resource_version`, with bookmarks, until the server ends the watch.

        Raises Expired, here or while iterating, where the version is too old: take a new snapshot.
        """
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, int(timeout_seconds))),
            **({"resourceVersion": resource_version} if resource_version else {}),
        }
        doing = _doing_all("watch", resource)
        accept = _METADATA if metadata_only else "application/json"
        call = TransportCall("GET", resource.path(namespace), doing, query, accept=accept)
        read_seconds = timeout_seconds + _WATCH_GRACE_SECONDS
        return Watch(self._transport.stream(call, self.identity, read_seconds=read_seconds), resource, doing)

    # Writing

    def create(self, obj: JsonObject, *, field_manager: str = "pratique", dry_run: bool = False) -> dict[str, Any]:
        """POST. For reviews and for our own objects; objects of bundles are applied (decision 0024)."""
        ref = ObjectRef.of(obj)
        resource = self._resource(ref)
        query = _write_query(field_manager, dry_run)
        path = resource.path(ref.namespace)
        return with_kind(
            self._send_write(TransportCall("POST", path, _doing("create", ref), query, obj), dry_run).body, resource
        )

    def replace(
        self, obj: JsonObject, *, field_manager: str = "pratique", dry_run: bool = False, subresource: str = ""
    ) -> dict[str, Any]:
        """PUT. The object's resourceVersion, if stated, must still be the live one (PreconditionFailed)."""
        ref = ObjectRef.of(obj)
        resource = self._resource(ref)
        query = _write_query(field_manager, dry_run)
        path = resource.path(ref.namespace, _checked_name(resource, ref), subresource)
        return with_kind(
            self._send_write(TransportCall("PUT", path, _doing("replace", ref), query, obj), dry_run).body, resource
        )

    def apply(
        self, obj: JsonObject, *, field_manager: str, dry_run: bool = False, subresource: str = "", force: bool = False
    ) -> Applied:
        """Server-side apply, strictly validated.

        `force` takes the fields of `obj`, and no others, from whoever owns them: for drift correction and for mirrors,
        which are nobody else's.

        Preconditions travel in the object: `metadata.resourceVersion` of MUST_NOT_EXIST creates only (AlreadyExists),
        `metadata.uid` and any other resourceVersion must be the live ones (PreconditionFailed). Raises FieldConflict
        naming the field where somebody else owns a field with another value; who, is in its `server_words`.
        """
        ref = ObjectRef.of(obj)
        resource = self._resource(ref)
        query = {**_write_query(field_manager, dry_run), "force": "true" if force else "false"}
        path = resource.path(ref.namespace, _checked_name(resource, ref), subresource)
        call = TransportCall("PATCH", path, _doing("apply", ref, obj), query, obj, APPLY)
        try:
            answer = self._send_write(call, dry_run)
        except PreconditionFailed as exc:
            if (obj.get("metadata") or {}).get("resourceVersion") != MUST_NOT_EXIST:
                raise
            words = f"{ref} exists already"
            raise AlreadyExists(
                words, status=409, reason=exc.reason, details=exc.details, server_words=exc.server_words
            ) from exc
        return Applied(with_kind(answer.body, resource), answer.status == 201, answer.warnings)

    def merge(self, part: JsonObject, *, field_manager: str) -> None:
        """Merge patch, for what no apply does: to write managedFields, to take away and own nothing.

        Preconditions travel in `part`, as for `apply`; None takes a field away.
        """
        ref = ObjectRef.of(part)
        resource, query = self._resource(ref), _write_query(field_manager, dry_run=False)
        call = TransportCall("PATCH", _path(resource, ref), _doing("patch", ref, part), query, part, MERGE)
        self._send_write(call, dry_run=False)

    def patch(self, ref: ObjectRef, operations: Sequence[JsonObject], *, field_manager: str) -> dict[str, Any]:
        """JSON patch, for what is taken out of a list whoever owns it; the object after it, as the server answers.

        Its `test` operations are the preconditions: InvalidObject where one of them does not hold.
        """
        resource, query = self._resource(ref), _write_query(field_manager, dry_run=False)
        call = TransportCall("PATCH", _path(resource, ref), _doing("patch", ref), query, list(operations), JSON_PATCH)
        return with_kind(self._send_write(call, dry_run=False).body, resource)

    def delete(
        self,
        ref: ObjectRef,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> bool:
        """Whether there was something to delete. Finalizers may keep it for longer.

        Raises PreconditionFailed where the live object has another `uid` or `resource_version`.
        """
        resource = self._resource(ref)
        stated = {"uid": uid, "resourceVersion": resource_version}
        body: dict[str, object] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if preconditions := {key: value for key, value in stated.items() if value}:
            body["preconditions"] = preconditions
        if dry_run:
            body["dryRun"] = ["All"]  # with a body the server reads nothing from the query: there it would delete
        try:
            self._send_write(TransportCall("DELETE", _path(resource, ref), _doing("delete", ref), {}, body), dry_run)
        except ClusterError as exc:
            if exc.status == 404 and exc.reason == "NotFound":
                return False
            raise
        return True

    def post(self, path: str, body: JsonObject, *, subject: str) -> dict[str, Any]:
        """POST to a path that stores nothing (the reviews); `subject` names it in errors."""
        return self._send(TransportCall("POST", path, Doing("ask", subject), {}, body)).body

    # Inside

    def _resource(self, ref: ObjectRef) -> ServedResource:
        found = self.resource_of(ref.group, ref.version, ref.kind)
        if found is None:
            absence = self._discovery.served().absence_of(ref.group, ref.version, ref.kind)
            raise UnknownKind(f"{ref}: {absence.words}", status=404)
        return found

    def _send_write(self, call: TransportCall, dry_run: bool) -> TransportAnswer:
        """The server gives up when we do: a write that nobody waits for any more is not done much later."""
        timeout = f"{math.ceil(self._transport.timeout_seconds)}s"
        call = replace(call, query={**call.query, "timeout": timeout})
        return self._send(call if dry_run else replace(call, before_send=self._before_send))

    def _send(self, call: TransportCall) -> TransportAnswer:
        try:
            return self._transport.send(call, self.identity)
        except UnknownKind:
            self._discovery.forget()  # the path itself is gone, so what we knew is old
            raise


def _documents_over(transport: Transport) -> Callable[[str], dict[str, Any]]:
    """What fetches a document of discovery; it is read as we are, whomever a call impersonates."""

    def fetch(path: str) -> dict[str, Any]:
        return transport.send(TransportCall("GET", path, Doing("read", path), accept=AGGREGATED), None).body

    return fetch


def _path(resource: ServedResource, ref: ObjectRef) -> str:
    return resource.path(ref.namespace, _checked_name(resource, ref))


def _checked_name(resource: ServedResource, ref: ObjectRef) -> str:
    if not ref.name:
        raise InvalidObject(f"{ref.group_kind} without a name")
    if resource.is_namespaced and not ref.namespace:
        raise InvalidObject(f"{ref}: {ref.kind} is namespaced and the object names no namespace")
    return ref.name


def _write_query(field_manager: str, dry_run: bool) -> dict[str, str]:
    query = {"fieldManager": field_manager, "fieldValidation": "Strict"}
    return query | {"dryRun": "All"} if dry_run else query


def _doing(verb: str, ref: ObjectRef, sent: JsonObject | None = None) -> Doing:
    return Doing(verb, str(ref), is_secret=(ref.group, ref.kind) == ("", "Secret"), sent=sent)


def _doing_all(verb: str, resource: ServedResource) -> Doing:
    is_secret = (resource.group, resource.kind) == ("", "Secret")
    return Doing(verb, f"{resource.plural}.{resource.group}".rstrip("."), is_secret=is_secret)


def _uid(obj: Mapping[str, Any]) -> str:
    meta = obj.get("metadata") or {}
    return str(meta.get("uid") or f"{meta.get('namespace', '')}/{meta.get('name', '')}")
