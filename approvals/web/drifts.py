"""The drift of a deployment as one viewer may see it: who and which fields, and values as Kubernetes allows (S09)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from approvals import access
from approvals.models import BundleDeployment, Drift
from approvals.selectors import drift as selectors
from provisioner.values import ObjectRef

# Kubernetes is asked about this many objects for one page; of the rest no values are shown.
MAX_ASKED = 30
ROWS = 50


@dataclass(frozen=True, slots=True)
class ShownDrift:
    """One row; `fields` without values where `is_hidden`."""

    row: Drift
    fields: list[Mapping[str, Any]]
    is_hidden: bool


def shown_drifts(user: User, deployment: BundleDeployment) -> list[ShownDrift]:
    rows = list(selectors.drifts(deployment=deployment, now=timezone.now())[:ROWS])
    return [shown(row, may_see=place < MAX_ASKED and _may_see(user, deployment, row)) for place, row in enumerate(rows)]


def shown(row: Drift, *, may_see: bool) -> ShownDrift:
    fields = row.fields if may_see else [{**field, "expected": "", "found": ""} for field in row.fields]
    return ShownDrift(row, fields, bool(row.fields) and not may_see)


def _may_see(user: User, deployment: BundleDeployment, row: Drift) -> bool:
    if not row.fields:
        return True
    item = row.item
    ref = ObjectRef(item.group, item.version, item.kind, item.namespace, item.name)
    return access.may_see_object(user, deployment.cluster, ref).allowed
