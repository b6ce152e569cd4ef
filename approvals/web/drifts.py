"""The drift of a deployment as one viewer may see it: who and which fields, and values as Kubernetes allows (S09)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from approvals.access.sight import Sight
from approvals.models import BundleDeployment, Drift
from approvals.selectors import drift as selectors

# Kubernetes is asked this often for one page; of what is left no values are shown.
MAX_ASKED = 30
ROWS = 50


@dataclass(frozen=True, slots=True)
class ShownDrift:
    """One row; `fields` without values where `is_hidden`."""

    row: Drift
    fields: list[Mapping[str, Any]]
    is_hidden: bool


def shown_drifts(user: User, deployment: BundleDeployment) -> list[ShownDrift]:
    rows = selectors.drifts(deployment=deployment, now=timezone.now())[:ROWS]
    sight = Sight(user, deployment.cluster, limit=MAX_ASKED)
    return [_shown(row, may_see=not row.fields or bool(sight.may_see(selectors.ref_of(row)))) for row in rows]


def _shown(row: Drift, *, may_see: bool) -> ShownDrift:
    fields = row.fields if may_see else [{**field, "expected": "", "found": ""} for field in row.fields]
    return ShownDrift(row, fields, not may_see)
