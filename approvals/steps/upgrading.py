"""One look at what catalogs offer to a deployment, and what follows: a request, or words that say why there is none.

Catalogs are read into the database elsewhere; here only those who asked are asked for, whether they may get them.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from approvals import gate, wake
from approvals.access.port import connect
from approvals.catalogs import followed_packages
from approvals.gate import Refusal, reader
from approvals.ledger import claims, pivots
from approvals.models import BundleDeployment, Request
from approvals.selectors import followed_sources
from approvals.selectors.followed_sources import OfferedUpgrade
from approvals.source_refs import catalogs_named
from approvals.working import Recurring, WorkStep
from provisioner.errors import PratiqueError, Unreachable, WorkerDied

logger = logging.getLogger(__name__)


class LookForUpgrades(Recurring):
    """Look what the catalogs that a deployment's sources name offer to it."""

    task = "upgrade"

    def __init__(self, deployment_id: int):
        super().__init__(self.task, deployment_id, claims.rows_of_task(self.task, deployment_id))

    def look(self, worker: str) -> bool:
        deployment = BundleDeployment.objects.select_related("cluster").filter(pk=self.key, gone_at=None).first()
        if deployment is None or not deployment.followed_packages.exists():
            return False
        before = _shown(deployment.pk)
        _look(deployment)
        if _shown(deployment.pk) != before:
            wake.deployment(deployment.pk)
        return False

    def step(self) -> WorkStep:
        return WorkStep("checking what catalogs offer", is_foreign=True)

    def call(self) -> None:
        wake.upgrade(self.key)

    def say(self, error: WorkerDied) -> None:
        logger.error("nobody looks for upgrades", extra={"deployment_id": self.key, "error": str(error)})


def _look(deployment: BundleDeployment) -> None:
    request = _wished(deployment)
    if request is None:
        followed_packages.put_off_answer(deployment.pk, followed_packages.ASK_AGAIN_SECONDS)
        return
    try:
        _ask_reader(request)
    except Unreachable:
        followed_packages.put_off_answer(deployment.pk, followed_packages.ASK_AGAIN_SECONDS)
    except PratiqueError as exc:
        followed_packages.put_off_answer(deployment.pk, followed_packages.REFUSED_SECONDS, _with_remedy(exc))
    else:
        pivots.answer_upgrades(deployment.pk)


def _with_remedy(exc: PratiqueError) -> str:
    remedy = exc.remedy if isinstance(exc, Refusal) else ""
    words = str(exc).rstrip()
    if not remedy:
        return words
    return f"{words}\n\n{remedy}" if "\n" in words else f"{words}. {remedy}"


def _shown(deployment_id: int) -> list[tuple[OfferedUpgrade, bool]]:
    """What people see of it, but not when it was looked at: only whether it ever was."""
    deployment = BundleDeployment.objects.get(pk=deployment_id)
    found = followed_sources.offered(deployment=deployment)
    return [(replace(one, looked_at=None), one.looked_at is None) for one in found]


def _wished(deployment: BundleDeployment) -> Request | None:
    """The latest request for what the spec wishes now; None before it is made."""
    rows = Request.objects.select_related("deployment__cluster").filter(deployment=deployment)
    request = rows.filter(purpose=Request.Purpose.DEPLOY).order_by("-number").first()
    return request if request and request.options_digest == deployment.options_digest else None


def _ask_reader(request: Request) -> None:
    """Raise unless those who asked may get the catalogs now: who may not is not told what they offer (S09).

    Nobody asks for a look: it is asked as of a request that is made by itself.
    """
    request.is_unattended, request.content = True, None  # as of one that is to be made now; never saved
    gate.require(request, reader.preparing(request, connect(request.deployment.cluster), catalogs_named(request.spec)))
