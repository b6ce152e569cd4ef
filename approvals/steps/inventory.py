"""The inventory port of the library over our table: what will be touched is written before it is touched (S20)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
_TABLE = InventoryItem._meta.db_table
_IDENTITY = 'deployment_id, "group", kind, namespace, name'
# A uid is the object's that bears the nonce: with another nonce it is not known any more.
_INTEND = f"""
    INSERT INTO {_TABLE} ({_IDENTITY}, version, nonce, revision_id, uid, health, health_message, fingerprint)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, '', '', '', '')
    ON CONFLICT ({_IDENTITY}) DO UPDATE SET
        uid = CASE WHEN {_TABLE}.nonce = excluded.nonce THEN {_TABLE}.uid ELSE '' END,
        version = excluded.version, nonce = excluded.nonce, revision_id = excluded.revision_id
"""  # noqa: S608 - table and columns are written here, values are parameters
_CONFIRM = f"""
    UPDATE {_TABLE} SET uid = %s
    WHERE ({_IDENTITY}) = (%s, %s, %s, %s, %s) AND nonce = %s
"""  # noqa: S608 - the same


@dataclass(frozen=True, slots=True)
class _Row:
    """As it was read, and written since: nobody else gives it another nonce or uid while the claim is held."""

    key: int
    item: Item


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
        self._rows: dict[ObjectIdentity, _Row] = {}

    def items(self) -> dict[ObjectIdentity, Item]:
        rows = _known(InventoryItem.objects.filter(deployment=self.deployment), "pk", "nonce", "uid")
        self._rows = {ref.identity: _Row(key, Item(ref, nonce, uid)) for ref, key, nonce, uid in rows}
        found = {identity: row.item for identity, row in self._rows.items()}
        return {identity: item for identity, item in found.items() if self._only is None or identity in self._only}

    def intend(self, ref: ObjectRef, nonce: str) -> None:
        self.intend_many([(ref, nonce)])

    @transaction.atomic(durable=True)
    def intend_many(self, intents: Sequence[tuple[ObjectRef, str]]) -> None:
        self._check_held()
        revision = self.revision and self.revision.pk
        standing, new = [], []
        for ref, nonce in intents:
            row = self._rows.get(ref.identity)
            if row and (row.item.ref, row.item.nonce) == (ref, nonce):
                standing.append(row.key)
                continue
            new.append((ref, (self.deployment.pk, *ref.identity, ref.version, nonce, revision)))
            if row:
                self._rows[ref.identity] = _Row(row.key, Item(ref, nonce))
        InventoryItem.objects.filter(pk__in=standing).update(revision=revision)
        self._for_each(_INTEND, new)

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        self.confirm_many([(ref, nonce, uid)])

    @transaction.atomic(durable=True)
    def confirm_many(self, made: Sequence[tuple[ObjectRef, str, str]]) -> None:
        self._for_each(
            _CONFIRM,
            [
                (ref, (uid, self.deployment.pk, *ref.identity, nonce))
                for ref, nonce, uid in made
                if not self._says(ref, nonce, uid)
            ],
        )

    def _says(self, ref: ObjectRef, nonce: str, uid: str) -> bool:
        row = self._rows.get(ref.identity)
        return row is not None and (row.item.nonce, row.item.uid) == (nonce, uid)

    def _for_each(self, statement: str, todo: Sequence[tuple[ObjectRef, Sequence[Any]]]) -> None:
        """In the order in which everybody locks them: by key, and what is new last.

        Models and bulk_update would take longer than the cluster takes for the objects.
        """
        if todo:
            ordered = sorted(todo, key=lambda one: self._key_of(one[0]))
            with connection.cursor() as cursor:
                cursor.executemany(statement, [values for _, values in ordered])

    def _key_of(self, ref: ObjectRef) -> float:
        row = self._rows.get(ref.identity)
        return row.key if row else math.inf

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
