"""Who is a deputy on a cluster now, by the bindings that their Deputies own (decision 0101)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from approvals.clock import database_now
from approvals.deciding.deputies import BINDING_PREFIX, SOON, Deputy
from approvals.models import Cluster, DecidingObject

# What the authorizer RBAC says: `RBAC: allowed by ClusterRoleBinding "NAME" of ClusterRole "ROLE" to User "NAME"`.
_BY_BINDING = re.compile(rf'ClusterRoleBinding "({BINDING_PREFIX}[^"]+)"')


@dataclass(frozen=True, slots=True)
class SeenDeputy:
    """A Deputy that can be read, as the watch saw it last, and when its right ends."""

    row: DecidingObject
    deputy: Deputy
    end: datetime

    @property
    def binding(self) -> str:
        return f"{BINDING_PREFIX}{self.row.uid}"


def _list_deputies(rows: Iterable[DecidingObject]) -> list[SeenDeputy]:
    """Those that have not ended, the first that ends first."""
    now, found = database_now(), []
    for row in rows:
        deputy = Deputy.read(row.spec)[0] if row.kind == Deputy.kind else None
        if deputy and (end := deputy.ends_at(row.changed_at)) > now:
            found.append(SeenDeputy(row, deputy, end))
    return sorted(found, key=lambda one: (one.end, one.row.pk))


def ending_deputies(rows: Iterable[DecidingObject]) -> list[SeenDeputy]:
    """Those that end soon."""
    soon = database_now() + SOON
    return [one for one in _list_deputies(rows) if one.end <= soon]


def binding_named(reason: str) -> str:
    """The binding of a deputy by which the API server allowed something; "" where it names none."""
    found = _BY_BINDING.search(reason)
    return found[1] if found else ""


def ended_bindings(cluster: Cluster, names: Iterable[str]) -> frozenset[str]:
    """Those of these bindings that are of deputies, and of none who is one now."""
    of_deputies = {name for name in names if name.startswith(BINDING_PREFIX)}
    return frozenset(of_deputies - {*deputies_by_binding(cluster)}) if of_deputies else frozenset()


def deputies_by_binding(cluster: Cluster) -> Mapping[str, SeenDeputy]:
    rows = DecidingObject.objects.filter(kind=Deputy.kind, cluster=cluster, gone_at=None)
    return {one.binding: one for one in _list_deputies(rows)}
