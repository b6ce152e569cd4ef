"""The inventory port of the library over our table: what will be touched is written before it is touched (S20)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from approvals.models import BundleDeployment, InventoryItem, Outcome, Request, Revision
from provisioner.cluster.inventory import ObjectIdentity
from provisioner.cluster.planning import Options
from provisioner.cluster.tracking import Owner
from provisioner.errors import BadSource
from provisioner.values import CollisionProtection, DeletionPolicy, GroupKind, Identity, ObjectRef
from provisioner.values import InventoryItem as Item

MAX_OPTIONAL_KINDS = 100
_REF = ("group", "version", "kind", "namespace", "name")


class DatabaseInventory:
    """Each call is one short transaction of its own, so that a crash between two writes leaves the intents behind.

    `check_held` raises where the claim is another worker's by now; it is asked in the transaction that records an
    intent. Without it a worker that stood still would put its nonces in the place of its successor's, and then neither
    of them would know the objects as its own. Who writes only some of the revision is shown `only` those: an apply
    forgets vain intents that it does not wish for, and those of the other objects are not its to judge.
    """

    def __init__(
        self,
        deployment: BundleDeployment,
        revision: Revision | None,
        check_held: Callable[[], None],
        only: Collection[ObjectIdentity] | None = None,
    ) -> None:
        self.deployment = deployment
        self.revision = revision
        self._check_held = check_held
        self._only = only

    def items(self) -> dict[ObjectIdentity, Item]:
        rows = InventoryItem.objects.filter(deployment=self.deployment).order_by("pk")
        found = {ref.identity: Item(ref, nonce, uid) for ref, nonce, uid in _known(rows, "nonce", "uid")}
        return {identity: item for identity, item in found.items() if self._only is None or identity in self._only}

    def intend(self, ref: ObjectRef, nonce: str) -> None:
        self.intend_many([(ref, nonce)])

    @transaction.atomic(durable=True)
    def intend_many(self, intents: Sequence[tuple[ObjectRef, str]]) -> None:
        self._check_held()
        known = self._locked(ref for ref, _ in intents)
        revision = self.revision and self.revision.pk
        new, changed = [], []
        for ref, nonce in intents:
            if ref.identity not in known:
                about = {"version": ref.version, "nonce": nonce, "revision": self.revision, **_identity(ref)}
                new.append(InventoryItem(deployment=self.deployment, **about))
                continue
            pk, before, uid = known[ref.identity]
            changed.append((uid if nonce == before else "", ref.version, nonce, revision, pk))
        InventoryItem.objects.bulk_create(new)
        _update_each("uid = %s, version = %s, nonce = %s, revision_id = %s", changed)

    def _locked(self, refs: Iterable[ObjectRef]) -> dict[ObjectIdentity, tuple[int, str, str]]:
        """Key, nonce and uid of our rows of these objects, locked in the order in which everybody locks them."""
        wanted = {ref.identity: ref for ref in refs}
        names, kinds = ({getattr(ref, field) for ref in wanted.values()} for field in ("name", "kind"))
        rows = self.deployment.inventory.select_for_update().filter(kind__in=kinds, name__in=names).order_by("pk")
        known = {ref.identity: (pk, nonce, uid) for ref, pk, nonce, uid in _known(rows, "pk", "nonce", "uid")}
        return {identity: found for identity, found in known.items() if identity in wanted}

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        self.confirm_many([(ref, nonce, uid)])

    @transaction.atomic(durable=True)
    def confirm_many(self, made: Sequence[tuple[ObjectRef, str, str]]) -> None:
        known = self._locked(ref for ref, _, _ in made)
        recorded = ((*known.get(ref.identity, (0, "", "")), nonce, uid) for ref, nonce, uid in made)
        _update_each(
            "uid = %s", [(uid, pk) for pk, before, was, nonce, uid in recorded if before == nonce and uid != was]
        )

    @transaction.atomic(durable=True)
    def forget(self, ref: ObjectRef, uid: str) -> None:
        InventoryItem.objects.filter(deployment=self.deployment, uid=uid, **_identity(ref)).delete()


def owner_of(revision: Revision) -> Owner:
    """Whom an object names that is written for this revision."""
    return Owner(revision.deployment.name, revision.number)


def ref_of(row: InventoryItem) -> ObjectRef:
    return ObjectRef(row.group, row.version, row.kind, row.namespace, row.name)


def _known(rows: QuerySet[InventoryItem], *fields: str) -> Iterator[tuple[Any, ...]]:
    """The object of each row, and these fields of it."""
    for group, version, kind, namespace, name, *rest in rows.values_list(*_REF, *fields):
        yield ObjectRef(group, version, kind, namespace, name), *rest


def _update_each(changes: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Rows of other values each, their keys last. bulk_update takes longer than the cluster takes for the objects."""
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {InventoryItem._meta.db_table} SET {changes} WHERE id = %s", rows)  # noqa: S608 - table and columns are written here, values are parameters


def installer_of(spec: Mapping[str, Any]) -> Identity:
    """The ServiceAccount that a spec names: everything of its bundle is read and written as this one."""
    return Identity.of_service_account(str(spec.get("installNamespace", "")), str(spec.get("serviceAccountName", "")))


def owned(deployment: BundleDeployment) -> Mapping[ObjectIdentity, str]:
    """uid by object identity of everything that is known to exist and be this deployment's."""
    return {ref.identity: uid for ref, uid in _known(deployment.inventory.exclude(uid=""), "uid")}


def plan_options(request: Request) -> Options:
    """What a request lets be planned, and which objects of the cluster other deployments hold."""
    deployment, spec = request.deployment, request.spec
    rows = InventoryItem.objects.filter(deployment__cluster=deployment.cluster).exclude(deployment=deployment)
    others = dict(rows.exclude(uid="").values_list("uid", "deployment__name"))
    try:
        protection = CollisionProtection(spec.get("collisionProtection") or CollisionProtection.PREVENT)
    except ValueError as exc:
        expected = " or ".join(CollisionProtection)
        raise BadSource(f"collisionProtection is {spec['collisionProtection']!r}; expected {expected}") from exc
    is_removal = request.purpose == Request.Purpose.DELETE
    return Options(
        protection,
        others,
        is_removal=is_removal,
        is_orphaning=is_removal and spec.get("deletionPolicy") == DeletionPolicy.ORPHAN,
        optional_kinds=optional_kinds(spec),
        warned=_warned(deployment),
    )


def _warned(deployment: BundleDeployment) -> dict[str, tuple[str, ...]]:
    """What the API server warned of when what runs was written, by the object in words."""
    said = Outcome.objects.filter(request__revision=deployment.active_revision_id or 0).exclude(warnings=[])
    return {name: tuple(warnings) for name, warnings in said.values_list("object", "warnings")}


def optional_kinds(spec: Mapping[str, Any]) -> frozenset[GroupKind]:
    """`spec.optionalKinds`; BadSource where it cannot be read, because a kind that is lost there is not optional."""
    listed = spec.get("optionalKinds") or []
    if not isinstance(listed, list) or len(listed) > MAX_OPTIONAL_KINDS:
        raise BadSource(f"optionalKinds: expected a list of at most {MAX_OPTIONAL_KINDS}")
    return frozenset(_optional_kind(one) for one in listed)


def _optional_kind(one: Any) -> GroupKind:
    words = {key: one[key] for key in one} if isinstance(one, Mapping) else {}
    is_text = all(isinstance(value, str) for value in words.values())
    if not is_text or not words.get("kind") or words.keys() - {"group", "kind"}:
        raise BadSource(f"optionalKinds has {str(one)[:100]!r}; expected kind, and group for any but the core group")
    return GroupKind(words.get("group", ""), words["kind"])


def _identity(ref: ObjectRef) -> dict[str, str]:
    return {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
