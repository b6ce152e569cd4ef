"""What differs from what was approved, and what was restored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from approvals.models import BundleDeployment, Drift
from provisioner.sentences import some
from provisioner.values import ObjectRef

# What was restored, or went by itself, is shown for this long.
RECENT = timedelta(hours=24)
NAMED = 3
# Only who may get a Secret is told of its drift: that there is any says that a value changed (S38).
IS_SECRET = Q(item__group="", item__kind="Secret")
SECRETS = "Secrets are left out: people who can get them see on the deployment's page whether they differ"


@dataclass(frozen=True, slots=True)
class DriftSummary:
    """How many objects differ now, how many are fought over, and both in words; `since` is the last change of it."""

    open: int
    fights: int
    words: str
    since: datetime | None


def drifts(
    *, deployment: BundleDeployment, now: datetime, may_see: Callable[[ObjectRef], bool | None]
) -> QuerySet[Drift]:
    """What differs now and what did lately, fights first, then the open ones; Secrets only if `may_see` allows it."""
    is_recent = Q(changed_at__gte=now - RECENT)
    found = Drift.objects.filter(item__deployment=deployment).filter(is_recent | Q(state=Drift.State.OPEN))
    parts = [f"item__{name}" for name in ("group", "version", "kind", "namespace", "name")]
    secrets = found.filter(IS_SECRET).values_list("pk", *parts)
    found = found.exclude(pk__in=[pk for pk, *ref in secrets if not may_see(ObjectRef(*ref))])
    return found.select_related("item", "revision").order_by("-is_fight", "-state", "-changed_at", "-pk")


def ref_of(row: Drift) -> ObjectRef:
    return ObjectRef.from_parts(row.item)


def summary(*, deployment: BundleDeployment) -> DriftSummary:
    """For everybody who may get the deployment, so of Secrets it says only that they are left out."""
    known = Drift.objects.filter(~IS_SECRET, item__deployment=deployment)
    rows = known.filter(state=Drift.State.OPEN).select_related("item")
    left_out = SECRETS if deployment.inventory.filter(group="", kind="Secret").exists() else ""
    found = list(rows.order_by("-is_fight", "item__kind", "item__name", "pk")[: NAMED + 1])
    if not found:
        last = known.order_by("-changed_at").first()
        return DriftSummary(0, 0, left_out, last.changed_at if last else None)
    count = rows.count()
    fights = rows.filter(is_fight=True).count()
    named = some([_words(row) for row in found[:NAMED]], NAMED, total=count)
    words = "; ".join(filter(None, [named, left_out]))
    return DriftSummary(count, fights, words, max(row.changed_at for row in found))


def _words(row: Drift) -> str:
    managers = sorted({str(field["manager"]) for field in row.fields if field["manager"]})
    by = f" by {', '.join(managers[:NAMED])}" if managers else ""
    return f"{row.item} is {row.kind}{by}"
