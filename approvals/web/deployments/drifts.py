"""The drift of a deployment as one viewer may see it: who and which fields, and values as Kubernetes allows (S09).

Of a Secret nothing is shown to who may not get it, not even that it differs (S38)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page

from approvals.access import Caller
from approvals.access.sight import Sight, without_values
from approvals.clock import database_now
from approvals.models import BundleDeployment, Drift, InventoryItem
from approvals.selectors import drift as selectors
from provisioner.values import ObjectRef

# Kubernetes is asked this often for one page; of what is left no values are shown.
MAX_ASKED = 30
ROWS = 50


@dataclass(frozen=True, slots=True)
class ShownDrift:
    """One row; `fields` without values where `is_hidden`."""

    row: Drift
    fields: list[Mapping[str, Any]]
    is_hidden: bool


def shown_drifts(caller: Caller, deployment: BundleDeployment) -> list[ShownDrift]:
    sight = Sight(caller, deployment.cluster, limit=MAX_ASKED)
    rows = selectors.drifts(deployment=deployment, now=database_now(), may_see=sight.may_see)[:ROWS]
    return [_shown(row, may_see=_tells_nothing(row) or bool(sight.may_see(selectors.ref_of(row)))) for row in rows]


def with_health_words(caller: Caller, deployment: BundleDeployment, rows: Page[InventoryItem]) -> Page[InventoryItem]:
    """The rows, not saved, with what their objects say of themselves only where the viewer may get these."""
    sight = Sight(caller, deployment.cluster, limit=MAX_ASKED)
    for row in rows:
        if row.health_words and not sight.may_see(ref_of(row)):
            row.health_words = ""
    return rows


def ref_of(row: InventoryItem) -> ObjectRef:
    return ObjectRef(row.group, row.version, row.kind, row.namespace, row.name)


def _tells_nothing(row: Drift) -> bool:
    return not row.fields and not row.server_words


def _shown(row: Drift, *, may_see: bool) -> ShownDrift:
    fields = row.fields if may_see else [without_values(field) for field in row.fields]
    return ShownDrift(row, fields, not may_see)
