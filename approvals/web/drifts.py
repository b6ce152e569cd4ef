"""The drift of a deployment as one viewer may see it: who and which fields, and values as Kubernetes allows (S09)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from approvals import access
from approvals.models import BundleDeployment, Cluster, Drift, InventoryItem
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


def shown_drifts(user: User, deployment: BundleDeployment) -> list[ShownDrift]:
    rows = selectors.drifts(deployment=deployment, now=timezone.now())[:ROWS]
    sight = _Sight(user, deployment.cluster)
    return [_shown(row, may_see=not row.fields or sight.may_see(row.item)) for row in rows]


def _shown(row: Drift, *, may_see: bool) -> ShownDrift:
    fields = row.fields if may_see else [{**field, "expected": "", "found": ""} for field in row.fields]
    return ShownDrift(row, fields, not may_see)


class _Sight:
    """What one viewer may get; asked for a whole namespace first, so that most people cost one question a kind."""

    def __init__(self, user: User, cluster: Cluster) -> None:
        self._user, self._cluster = user, cluster
        self._answers: dict[ObjectRef, bool] = {}

    def may_see(self, item: InventoryItem) -> bool:
        ref = ObjectRef(item.group, item.version, item.kind, item.namespace, item.name)
        return self._ask(replace(ref, name="")) or self._ask(ref)

    def _ask(self, ref: ObjectRef) -> bool:
        if ref not in self._answers and len(self._answers) < MAX_ASKED:
            self._answers[ref] = access.may_see_object(self._user, self._cluster, ref).allowed
        return self._answers.get(ref, False)
