"""How rows are locked for a change: in one order, and never against those who only refer to them.

Who takes several locks takes them in this order, whether by asking for the lock or by writing the row:

1. the deployment (several: by key; a namesake that is gone before the one in its place),
2. its request,
3. what it follows, by key: floating references, and then those who follow them; packages of catalogs,
4. the revision,
5. rows of one table, by key: the inventory, what was left out, the drift of one object,
6. the audit chain; after it only rows that are held already, or that nobody else can see yet.

The order of a set is locked before all of these, and its members after the request. A catalog is locked alone, with no
other row but its own editions and history: who follows it only reads it. So is an object that says how requests are
decided. A notification target is locked before the audit chain, and its deliveries are written under it.

In another order two transactions wait for each other, and PostgreSQL ends one of them. Its foreign keys are a lock
too, and the last one of all: at the commit, so after the audit chain, it locks (FOR KEY SHARE) every row that a new
row refers to. So no row is ever locked FOR UPDATE, which excludes that, but FOR NO KEY UPDATE, which does not; what an
UPDATE of ours takes is the same, because none changes a key. What refers to a row that is deleted goes before it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)


def for_change(rows: QuerySet[M]) -> QuerySet[M]:
    """These rows, locked until the transaction ends; the rows that are selected along with them are not."""
    return rows.select_for_update(of=("self",), no_key=True)


def hold(rows: QuerySet[Any]) -> list[int]:
    """Lock several rows of one table by key; their keys. An UPDATE of several would lock them as they lie there."""
    return list(for_change(rows.order_by("pk")).values_list("pk", flat=True))
