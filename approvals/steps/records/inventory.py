"""The inventory port of the library over our table: what will be touched is written before it is touched (S20)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection, transaction
from django.db.models import Max, Q, QuerySet

from approvals.gate.plan_options import hook_runs
from approvals.ledger import strays
from approvals.locks import for_change, hold
from approvals.models import BundleDeployment, HookRun, InventoryItem, Request, Revision
from provisioner.cluster.annotations import RevisionOwner
from provisioner.values import HookMoment, ObjectIdentity, ObjectRef
from provisioner.values import HookRun as Run
from provisioner.values import InventoryItem as Item

_REF = ("group", "version", "kind", "namespace", "name")


@dataclass(frozen=True, slots=True)
class _Row:
    """As it was read or written last."""

    key: int
    item: Item


class DatabaseInventory:
    """Each call is one short transaction of its own, so that a crash between two writes leaves the intents behind.

    `check_held` raises where the claim is another worker's now; it is asked in the transaction that records an
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
        self._has_read_all = False

    def items(self) -> dict[ObjectIdentity, Item]:
        """What is pending somebody else has begun to write, and may be writing still (ledger.strays)."""
        self._rows, self._has_read_all = _read_rows(self.deployment.inventory.order_by()), True
        found = {identity: row.item for identity, row in self._rows.items()}
        if not all(item.uid for item in found.values()):
            strays.expect(self.deployment, self.deployment.inventory.filter(uid=""))
        return {identity: item for identity, item in found.items() if self._only is None or identity in self._only}

    def intend(self, ref: ObjectRef, nonce: str) -> None:
        self.intend_many([(ref, nonce)])

    @transaction.atomic(durable=True)
    def intend_many(self, intents: Sequence[tuple[ObjectRef, str]]) -> None:
        """What its row says already but for the revision, as of most objects of an upgrade, is one write for all."""
        self._check_held()
        rows = self._held(ref for ref, _ in intents) if self._has_read_all else self._locked(ref for ref, _ in intents)
        revision = self.revision and self.revision.pk
        standing, changed, new = [], [], []
        for ref, nonce in intents:
            row = rows.get(ref.identity)
            if row is None:
                about = {"version": ref.version, "nonce": nonce, "revision_id": revision, **_identity_fields(ref)}
                new.append(InventoryItem(deployment=self.deployment, **about))
            elif (row.item.ref, row.item.nonce) == (ref, nonce):
                standing.append(row.key)
            else:
                uid = row.item.uid if row.item.nonce == nonce else ""
                changed.append((uid, ref.version, nonce, revision, row.key))
                self._rows[ref.identity] = _Row(row.key, Item(ref, nonce, uid))
        InventoryItem.objects.filter(pk__in=standing).update(revision_id=revision)
        _update_each("uid = %s, version = %s, nonce = %s, revision_id = %s", changed)
        for made in InventoryItem.objects.bulk_create(new):
            ref = ObjectRef.from_parts(made)
            self._rows[ref.identity] = _Row(made.pk, Item(ref, made.nonce))

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        self.confirm_many([(ref, nonce, uid)])

    @transaction.atomic(durable=True)
    def confirm_many(self, made: Sequence[tuple[ObjectRef, str, str]]) -> None:
        """What is news, where the row still has the nonce: nobody asks here whether the claim is another's now."""
        news = []
        for ref, nonce, uid in made:
            known = self._rows.get(ref.identity)
            if known is None or (known.item.nonce, known.item.uid) != (nonce, uid):
                news.append((ref, nonce, uid))
        rows = self._locked(ref for ref, _, _ in news) if news else {}
        confirmed = []
        for ref, nonce, uid in news:
            row = rows.get(ref.identity)
            if row and row.item.nonce == nonce:
                confirmed.append((uid, row.key))
                self._rows[ref.identity] = _Row(row.key, replace(row.item, uid=uid))
        _update_each("uid = %s", confirmed)

    def _held(self, refs: Iterable[ObjectRef]) -> dict[ObjectIdentity, _Row]:
        """Our rows of these objects as all rows were read, locked (approvals.locks): under the claim they stay so."""
        identities = {ref.identity for ref in refs}
        known = {identity: self._rows[identity] for identity in identities if identity in self._rows}
        held = frozenset(hold(self.deployment.inventory.filter(pk__in=[row.key for row in known.values()])))
        return {identity: row for identity, row in known.items() if row.key in held}

    def _locked(self, refs: Iterable[ObjectRef]) -> dict[ObjectIdentity, _Row]:
        """Our rows of these objects as they are now, locked (approvals.locks)."""
        wanted = {ref.identity: ref for ref in refs}
        is_one = Q(pk__in=[self._rows[identity].key for identity in wanted if identity in self._rows])
        if not self._has_read_all:
            is_one |= Q(kind__in={ref.kind for ref in wanted.values()}, name__in={ref.name for ref in wanted.values()})
        found = _read_rows(for_change(self.deployment.inventory.filter(is_one).order_by("pk")))
        rows = {identity: row for identity, row in found.items() if identity in wanted}
        self._rows.update(rows)
        return rows

    def let_go(self, ref: ObjectRef, nonce: str) -> None:
        """Its stray is known since the items were read, and looked for once the step has ended."""
        InventoryItem.objects.filter(deployment=self.deployment, uid="", nonce=nonce, **_identity_fields(ref)).delete()
        self._rows.pop(ref.identity, None)

    @transaction.atomic(durable=True)
    def forget(self, ref: ObjectRef, uid: str) -> None:
        gone, _ = InventoryItem.objects.filter(deployment=self.deployment, uid=uid, **_identity_fields(ref)).delete()
        if gone:
            self._rows.pop(ref.identity, None)


def owner_of(revision: Revision) -> RevisionOwner:
    """Whom an object names that is written for this revision, by somebody who begins to write now."""
    newest = revision.deployment.revisions.aggregate(number=Max("number"))["number"] or 0
    return RevisionOwner(revision.deployment.name, revision.number, newest)


def _read_rows(rows: QuerySet[InventoryItem]) -> dict[ObjectIdentity, _Row]:
    found = {}
    for *ref_parts, key, nonce, uid in rows.values_list(*_REF, "pk", "nonce", "uid"):
        ref = ObjectRef(*ref_parts)
        found[ref.identity] = _Row(key, Item(ref, nonce, uid))
    return found


def _update_each(changes: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Rows of other values each, their keys last. bulk_update takes longer than the cluster takes for the objects."""
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(f"UPDATE {InventoryItem._meta.db_table} SET {changes} WHERE id = %s", rows)  # noqa: S608 - table and columns are written here, values are parameters


def _identity_fields(ref: ObjectRef) -> dict[str, Any]:
    return {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


class DatabaseHookRuns:
    """The last run of each hook of a deployment, for `request`, which is being applied.

    `check_held` raises where the claim is another worker's now; it is asked in the transaction that records that a run
    begins, as for the inventory.
    """

    def __init__(self, request: Request, check_held: Callable[[], None]) -> None:
        self._request = request
        self._check_held = check_held

    def items(self) -> dict[ObjectIdentity, Run]:
        return hook_runs(self._request.deployment, current=self._request)

    @transaction.atomic(durable=True)
    def begin(self, ref: ObjectRef, moment: HookMoment, nonce: str) -> None:
        self._check_held()
        run = {"version": ref.version, "moment": moment, "nonce": nonce, "uid": "", "has_succeeded": False}
        about = {"deployment": self._request.deployment, **_identity_fields(ref)}
        HookRun.objects.update_or_create(defaults={**run, "request": self._request}, **about)

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        self._change(ref, nonce, uid=uid)

    def succeed(self, ref: ObjectRef, nonce: str) -> None:
        self._change(ref, nonce, has_succeeded=True)

    def _change(self, ref: ObjectRef, nonce: str, **changes: object) -> None:
        """Only of the run with this nonce: nobody asks here whether the claim is another's now."""
        rows = HookRun.objects.filter(deployment_id=self._request.deployment_id, nonce=nonce, **_identity_fields(ref))
        rows.update(**changes)
