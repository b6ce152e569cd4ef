"""Who wrote what the watch sees: the API server's own word, where the policies behind it were in force (S05, S34).

A watch tells of every write by an event of its own, so the resourceVersion of the event with which a spec is new is
that of the write. A list tells only that it came after what the row last knew. Whatever cannot be proved is "unknown".
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from approvals import access, admission, controllers, services
from approvals.bundle_spec import parse_catalog_source, parse_spec
from approvals.clock import database_now
from approvals.ledger.pivots import SpecWriter
from approvals.models import AuthorAdmission, BundleDeployment, Catalog, Cluster, DecidingObject
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Forbidden, UnknownKind
from provisioner.values import Identity

logger = logging.getLogger(__name__)

KUBECTL = "kubectl"


@dataclass
class Authorship:
    """The authors of one cluster's BundleDeployments, or of other objects of ours, as their watch learns them.

    `until` is up to which resourceVersion the policies are known to stand as `facts` have them. `doubted` are objects
    of which an event was not kept: their next spec may be older than the event that shows it.
    """

    cluster: Cluster
    rows: type[BundleDeployment] | type[Catalog] | type[DecidingObject] = BundleDeployment
    until: int = 0
    facts: str = ""
    doubted: set[str] = field(default_factory=set)

    def note(self, obj: Mapping[str, Any], *, is_kept: bool) -> None:
        """Whether the row knows this object now."""
        uid = obj["metadata"]["uid"]
        if is_kept:
            self.doubted.discard(uid)
        else:
            self.doubted.add(uid)

    def writer_of(self, api: Api, obj: Mapping[str, Any], *, is_event: bool) -> SpecWriter | None:
        """Who wrote the spec of `obj`, None where it is known already or nobody can tell.

        Of a BundleDeployment it may be a name that says nothing about who asked (`SpecWriter.is_known`).

        `is_event`: it came by the watch, else by a list. Raises PratiqueError where the cluster does not answer.
        """
        stamp = admission.stamp_of(obj)
        if not stamp:
            return None
        rows: QuerySet[Any] = self.rows._default_manager.filter(cluster=self.cluster, uid=obj["metadata"]["uid"])
        row: BundleDeployment | Catalog | DecidingObject | None = rows.first()
        is_exact = is_event and obj["metadata"]["uid"] not in self.doubted
        written = written_between(obj, row, is_exact=is_exact)
        who = admission.identity_in(stamp)
        if written is None or who is None or not self._is_proved(api, written):
            return None
        # Groups are as old as the write at most: of one that nobody saw, as the row.
        proved_at = database_now() if is_exact else row.seen_at if row else _created_at(obj)
        if self.rows is DecidingObject:
            return None if access.is_machine(who) else _person(self.cluster, who, proved_at)
        is_catalog = self.rows is Catalog
        found = requester_of(self.cluster, obj, who, proved_at, is_catalog=is_catalog)
        return found if found or is_catalog else SpecWriter(who, "cluster", is_known=False)

    def _is_proved(self, api: Api, written: admission.StampedWrite) -> bool:
        row = AuthorAdmission.objects.filter(cluster=self.cluster, sure_from__isnull=False).first()
        if row is None:
            return False
        if row.facts != self.facts or written.by > self.until:
            try:
                self.until, self.facts = admission.still_in_force(api, row), row.facts
            except (Forbidden, UnknownKind) as exc:
                about = {"cluster": self.cluster.name, "code": exc.code}
                logger.warning("the watch cannot read the policies", extra=about)
                return False
        known = admission.in_force(row, self.until)
        return known is not None and admission.met(written, known)


def written_between(
    obj: Mapping[str, Any], row: BundleDeployment | Catalog | DecidingObject | None, *, is_exact: bool
) -> admission.StampedWrite | None:
    """When the spec of `obj` was written; None where the stamp says nothing about it.

    A deletion is a generation as well, and stamped by nobody. Where the row lacks generations before this one, the
    stamp names only the last of their writers, and the gap makes the others unknown (ledger.pivots).
    """
    meta = obj["metadata"]
    generation, version = int(meta.get("generation") or 1), admission.number_of(str(meta.get("resourceVersion", "")))
    if meta.get("deletionTimestamp") or not version:
        return None
    if row is None:
        is_new = generation == 1
        return admission.StampedWrite(version - 1 if is_exact else 0, version, _created_at(obj)) if is_new else None
    if generation <= row.generation or _by_value(obj.get("spec")) == _by_value(row.spec):
        return None
    is_next = is_exact and generation == row.generation + 1
    return admission.StampedWrite(version - 1 if is_next else admission.number_of(row.resource_version), version)


def _by_value(spec: object) -> object:
    """As the policies compare: CEL takes a large integer and the number nearest to it for the same."""
    if isinstance(spec, dict):
        return {key: _by_value(value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [_by_value(value) for value in spec]
    # The API server has none above 64 bits.
    return float(spec) if isinstance(spec, int) and abs(spec) < 1 << 64 else spec


def requester_of(
    cluster: Cluster, obj: Mapping[str, Any], who: Identity, proved_at: datetime, *, is_catalog: bool = False
) -> SpecWriter | None:
    """Who is stamped, as the requester of what was written; None where that name says nothing about who asked."""
    # A shared certificate of system:masters names nobody, and a name of the cluster's own no person (S12).
    if access.is_human(who):
        return _person(cluster, who, proved_at)
    meta, spec = obj["metadata"], obj.get("spec") or {}
    wish = (
        controllers.catalog_wish_of(cluster.name, meta["name"], parse_catalog_source(spec))
        if is_catalog
        else controllers.wish_of(cluster.name, meta["name"], meta.get("labels") or {}, parse_spec(spec))
    )
    is_listed = wish is not None and settings.PRATIQUE["GITOPS_FILE"].may_ask(who.username, wish)
    return SpecWriter(who, controllers.VIA, groups_at=proved_at) if is_listed else None


def _person(cluster: Cluster, who: Identity, proved_at: datetime) -> SpecWriter:
    """Whoever is known by this name on the cluster is its author under every later name, too (S05)."""
    row = services.known_as(cluster, who)
    if row is None:
        return SpecWriter(who, KUBECTL, groups_at=proved_at)
    return SpecWriter(who, KUBECTL, row.user, proved_at, row.issuer, row.subject)


def _created_at(obj: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(obj["metadata"]["creationTimestamp"])
