"""The inventory port of the library over our table: what will be touched is written before it is touched (S20)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction

from approvals.models import BundleDeployment, InventoryItem, Outcome, Request, Revision
from provisioner.cluster.inventory import ObjectIdentity
from provisioner.cluster.planning import Options
from provisioner.errors import BadSource
from provisioner.values import CollisionProtection, GroupKind, Identity, ObjectRef
from provisioner.values import InventoryItem as Item

MAX_OPTIONAL_KINDS = 100
BATCH = 500


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
        found = {ref_of(row).identity: Item(ref_of(row), row.nonce, row.uid) for row in rows}
        return {identity: item for identity, item in found.items() if self._only is None or identity in self._only}

    def intend(self, ref: ObjectRef, nonce: str) -> None:
        self.intend_many([(ref, nonce)])

    @transaction.atomic(durable=True)
    def intend_many(self, intents: Sequence[tuple[ObjectRef, str]]) -> None:
        self._check_held()
        known = self._locked(ref for ref, _ in intents)
        new, changed = [], []
        for ref, nonce in intents:
            row = known.get(ref.identity)
            if row is None:
                new.append(InventoryItem(deployment=self.deployment, **_identity(ref)))
            else:
                row.uid = row.uid if row.nonce == nonce else ""
                changed.append(row)
            written = row or new[-1]
            written.version, written.nonce, written.revision = ref.version, nonce, self.revision
        InventoryItem.objects.bulk_create(new)
        InventoryItem.objects.bulk_update(changed, ["uid", "version", "nonce", "revision"], batch_size=BATCH)

    def _locked(self, refs: Iterable[ObjectRef]) -> dict[ObjectIdentity, InventoryItem]:
        """Our rows of these objects, locked in the order in which everybody locks them."""
        wanted = {ref.identity: ref.name for ref in refs}
        rows = self.deployment.inventory.select_for_update().filter(name__in=sorted(set(wanted.values())))
        return {key: row for row in rows.order_by("pk") if (key := ref_of(row).identity) in wanted}

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        self.confirm_many([(ref, nonce, uid)])

    @transaction.atomic(durable=True)
    def confirm_many(self, made: Sequence[tuple[ObjectRef, str, str]]) -> None:
        known = self._locked(ref for ref, _, _ in made)
        changed = []
        for ref, nonce, uid in made:
            row = known.get(ref.identity)
            if row is not None and row.nonce == nonce:
                row.uid = uid
                changed.append(row)
        InventoryItem.objects.bulk_update(changed, ["uid"], batch_size=BATCH)

    @transaction.atomic(durable=True)
    def forget(self, ref: ObjectRef, uid: str) -> None:
        InventoryItem.objects.filter(deployment=self.deployment, uid=uid, **_identity(ref)).delete()


def ref_of(row: InventoryItem) -> ObjectRef:
    return ObjectRef(row.group, row.version, row.kind, row.namespace, row.name)


def installer_of(spec: Mapping[str, Any]) -> Identity:
    """The ServiceAccount that a spec names: everything of its bundle is read and written as this one."""
    return Identity.of_service_account(str(spec.get("installNamespace", "")), str(spec.get("serviceAccountName", "")))


def owned(deployment: BundleDeployment) -> Mapping[ObjectIdentity, str]:
    """uid by object identity of everything that is known to exist and be this deployment's."""
    return {ref_of(row).identity: row.uid for row in deployment.inventory.exclude(uid="")}


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
    warned = _warned(deployment)
    return Options(protection, others, is_removal=is_removal, optional_kinds=optional_kinds(spec), warned=warned)


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
