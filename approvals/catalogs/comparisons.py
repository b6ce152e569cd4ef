"""What would change from one bundle to another, and what installing one takes: asked for once, shown to all who may.

The key of a row is the digest of all that its result depends on, so that whoever asks the same is shown the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from approvals.errors import TooMany
from approvals.locks import for_change
from approvals.models import BundleComparison, Cluster
from provisioner.catalogs.values import CatalogBundle
from provisioner.values import JsonObject

# The cluster goes on meanwhile: it serves other kinds, and has other roles.
KEPT = timedelta(days=1)
# What is named by a tag may be another bundle soon, and what failed may come right.
KEPT_BRIEFLY = timedelta(minutes=10)
# Of one comparison, whatever went wrong; what kills its worker is given up sooner.
MOST_ATTEMPTS = 4
# So that a name has room for what it is of.
MOST_LABEL = 50
NO_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class ComparisonWish:
    """All that a comparison depends on.

    `before` and `after` are as `content_of` has them. Where `before` is "", what runs is the stored content of the
    digest `content`, or nothing where that is "" as well. Where `namespace` and `account` are "", the bundle's own
    suggestion counts, then the name of the `package`.
    """

    format: str
    package: str
    before: str
    after: str
    content: str = ""
    namespace: str = ""
    account: str = ""
    config: JsonObject = field(default_factory=dict)

    @property
    def is_pinned(self) -> bool:
        """Whether it names contents that cannot change."""
        return all("@sha256:" in image for image in (self.before, self.after) if image)

    def key(self, cluster: Cluster) -> str:
        text = json.dumps([cluster.uid, asdict(self)], sort_keys=True, separators=(",", ":"), default=dict)
        return f"sha256:{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()}"

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> ComparisonWish:
        return cls(**record)


def fetched_content(bundle: CatalogBundle) -> str:
    """What is fetched of a bundle: the reference of its image, or the URL of its chart with the checksum behind an @.

    "" where nothing can be pinned.
    """
    return bundle.image or (f"{bundle.url}@{bundle.checksum}" if bundle.can_be_pinned else "")


def split_chart(content: str) -> tuple[str, str] | None:
    """The URL and the checksum of a chart; None where the content is an image."""
    url, _, checksum = content.rpartition("@")
    return (url, checksum) if url.startswith(("https://", "http://")) else None


def suggested_names(package: str) -> tuple[str, str]:
    """The namespace and the account that a package gets where nobody names others."""
    label = NO_NAME.sub("-", package.lower()).strip("-")[:MOST_LABEL].strip("-") or "package"
    return label, f"{label}-installer"


def find_comparison(cluster: Cluster, wish: ComparisonWish, now: datetime) -> BundleComparison | None:
    """The comparison that is under way or whose result still counts; None where somebody has to ask for it.

    Its lines are read where somebody looks at them.
    """
    rows = BundleComparison.objects.filter(key=wish.key(cluster)).defer("lines")
    return rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now)).first()


def count_running(user: User) -> int:
    """How many this person has asked for that have not ended."""
    return BundleComparison.objects.filter(user=user, position__isnull=False).count()


def start_comparison(
    cluster: Cluster, wish: ComparisonWish, *, user: User, most: int, now: datetime
) -> BundleComparison:
    """Have it worked out; what somebody else asked for meanwhile is theirs.

    Raises TooMany where this person has `most` of them under way.
    """
    made = BundleComparison(key=wish.key(cluster), cluster=cluster, wish=asdict(wish), user=user, asked_at=now)
    taken = BundleComparison.objects.filter(user=user, position__isnull=False).values_list("position", flat=True)
    for position in sorted(set(range(most)) - set(taken)):
        try:
            with transaction.atomic():
                BundleComparison.objects.filter(key=made.key, expires_at__lte=now).delete()
                made.pk, made.position = None, position
                made.save(force_insert=True)
            return made
        except IntegrityError:  # another one of theirs has taken it, or somebody has asked for the same
            if (get_comparison := find_comparison(cluster, wish, now)) is not None:
                return get_comparison
    raise TooMany(
        f"{most} comparisons that you asked for are being prepared, and the limit is {most} (PRATIQUE_COMPARISONS): "
        "wait until one of them has ended"
    )


def forget_failed(comparison: BundleComparison) -> None:
    """It failed, and is asked for anew."""
    BundleComparison.objects.filter(pk=comparison.pk, state=BundleComparison.State.FAILED).delete()


def object_key(ref: Mapping[str, str]) -> str:
    """What names the same object in two lists of a result."""
    return "/".join(ref[part] for part in ("group", "kind", "namespace", "name"))


def get_comparison(pk: int) -> BundleComparison | None:
    return BundleComparison.objects.select_related("cluster").filter(pk=pk).first()


def due_comparisons(now: datetime) -> QuerySet[BundleComparison]:
    """Those to be worked on, who asked first before the others."""
    rows = BundleComparison.objects.filter(Q(look_again_at__isnull=True) | Q(look_again_at__lte=now), state="waiting")
    return rows.order_by("asked_at", "pk")


def count_attempt(comparison: BundleComparison) -> int:
    """One more begins; how many that makes."""
    comparison.attempts += 1
    _update_waiting(comparison, attempts=comparison.attempts)
    return comparison.attempts


def record_progress(comparison: BundleComparison, words: str) -> None:
    _update_waiting(comparison, progress=_storable(words)[:300])


def retry_later(comparison: BundleComparison, until: datetime, *, why: str = "") -> None:
    """It is tried again then."""
    _update_waiting(comparison, look_again_at=until, **({"progress": _storable(why)[:300]} if why else {}))


def finish_comparison(
    comparison: BundleComparison, result: Mapping[str, Any], lines: Mapping[str, Any], now: datetime
) -> None:
    """Keep the result, and beside it the lines that differ in each object, by its position in the plan.

    Call it in a transaction that has made sure of the claim.
    """
    kept = KEPT if ComparisonWish.of(comparison.wish).is_pinned else KEPT_BRIEFLY
    _end_comparison(comparison, BundleComparison.State.DONE, now, now + kept, result=dict(result), lines=dict(lines))


def fail_comparison(comparison: BundleComparison, *, code: str, words: str, now: datetime) -> None:
    _end_comparison(
        comparison, BundleComparison.State.FAILED, now, now + KEPT_BRIEFLY, problem_code=code, problem=_storable(words)
    )


def give_up_comparison(pk: int, *, code: str, words: str, now: datetime) -> None:
    """As `fail`, whoever worked on it."""
    found = get_comparison(pk)
    if found is not None:
        with transaction.atomic():
            fail_comparison(found, code=code, words=words, now=now)


def forget_expired_comparisons(now: datetime) -> int:
    """How many went whose time is over."""
    gone, _ = BundleComparison.objects.filter(expires_at__lte=now).delete()
    return gone


def _end_comparison(comparison: BundleComparison, state: str, now: datetime, until: datetime, **more: Any) -> None:
    own = for_change(BundleComparison.objects.filter(pk=comparison.pk, state=BundleComparison.State.WAITING)).first()
    if own is None:
        return
    ended = {"state": state, "ended_at": now, "expires_at": until, "position": None, "progress": "", **more}
    for name, value in ended.items():
        setattr(own, name, value)
    own.save(update_fields=list(ended))


def _update_waiting(comparison: BundleComparison, **fields: Any) -> None:
    BundleComparison.objects.filter(pk=comparison.pk, state=BundleComparison.State.WAITING).update(**fields)


def _storable(words: str) -> str:
    """Without what no database takes; a text of others may hold it."""
    return words.replace("\0", "").encode(errors="replace").decode()
