"""How many open requests a cluster and a requester may have, whichever door they came by (security-rules.md S25, S29).

What is asked for beyond that waits with its deployment, in the order of asking, and is taken up when there is room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from approvals import audit, controllers, wake
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.lifecycle import OPEN
from approvals.models import BundleDeployment, Cluster, Request

UNKNOWN = "unknown"
# Of the largest holders, in words.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Charge:
    """On whose quota a request counts: who asked for it last, or "unknown" where nobody can tell.

    `is_controller`: a GitOps account that the operator listed. It brings what many people have pushed, so it has a
    limit of its own, and takes none of the cluster's room from people.
    """

    requester: str
    is_controller: bool = False

    @classmethod
    def of(cls, requesters: Sequence[Mapping[str, Any]], *, is_known: bool) -> Charge:
        if not (requesters and is_known):
            return cls(UNKNOWN)
        return cls(str(requesters[-1]["username"]), requesters[-1].get("via") == controllers.VIA)

    @property
    def limit(self) -> int:
        name = "MAX_OPEN_REQUESTS_OF_CONTROLLER" if self.is_controller else "MAX_OPEN_REQUESTS_OF_ONE"
        return int(settings.PRATIQUE[name])


def why_not(cluster: Cluster, charge: Charge, *, but: BundleDeployment | None = None) -> str:
    """Why `charge` may have no further open request on `cluster`, "" where they may; `but` is not counted.

    Exact only under the audit chain's lock (`audit.hold_chain`): others may be making theirs.
    """
    rows = Request.objects.filter(deployment__cluster=cluster, state__in=OPEN)
    if but:
        rows = rows.exclude(deployment=but)
    held = Counter(
        Charge.of(requesters, is_known=is_known)
        for requesters, is_known in rows.values_list("requesters", "is_requester_known")
    )
    if held[charge] >= charge.limit:
        who = "unknown requesters have" if charge.requester == UNKNOWN else f"{charge.requester} has"
        return (
            f"{who} {held[charge]} open requests on cluster {cluster.name}; the limit per requester is "
            f"{charge.limit}. Decide or withdraw some of them"
        )
    of_people = Counter({holder.requester: count for holder, count in held.items() if not holder.is_controller})
    most = settings.PRATIQUE["MAX_OPEN_REQUESTS"]
    if not charge.is_controller and of_people.total() >= most:
        holders = ", ".join(f"{name} {count}" for name, count in of_people.most_common(SHOWN))
        return (
            f"cluster {cluster.name} has {of_people.total()} open requests; the limit is {most} (by requester: "
            f"{holders}). Decide or withdraw some of them"
        )
    return ""


def wait(deployment: BundleDeployment, asked: Mapping[str, Any], words: str) -> None:
    """Keep what is asked for with its locked deployment; the place in the queue stays where it waits already."""
    is_new, before = deployment.waiting_since is None, deployment.waiting_words
    deployment.waiting = dict(asked)
    deployment.waiting_since = deployment.waiting_since or database_now()
    deployment.waiting_words = (
        f"no request was created yet: {words}. It will be created automatically when the limit allows"
    )
    deployment.save(update_fields=["waiting", "waiting_since", "waiting_words"])
    if is_new:
        audit.record(verb="request.waits", actor=MACHINE, deployment=deployment, facts={"why": words})
    if deployment.waiting_words != before:
        wake.deployment(deployment.pk)


def stop_waiting(deployment: BundleDeployment) -> None:
    """Nothing of this locked deployment waits any more."""
    if deployment.waiting_since is None:
        return
    deployment.waiting, deployment.waiting_since, deployment.waiting_words = None, None, ""
    deployment.save(update_fields=["waiting", "waiting_since", "waiting_words"])
    wake.deployment(deployment.pk)


def waiting() -> QuerySet[BundleDeployment]:
    """The deployments for which something waits, who came first before the others."""
    rows = BundleDeployment.objects.filter(waiting_since__isnull=False, gone_at__isnull=True)
    return rows.order_by("waiting_since", "pk")
