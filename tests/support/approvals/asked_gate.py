"""The gate as it is asked before each phase, on the cluster that the small world stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from django.utils import timezone

from approvals import gate
from approvals.gate import GateQuestion
from approvals.models import Request
from approvals.steps.sources import read_for
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Unreachable
from provisioner.values import ObjectRef
from tests.support.approvals import gate_facts as drawn


class Live:
    """The wish and its account as they were when the request was made."""

    def __init__(self, request: Request):
        self.request = request

    def uid(self) -> str:
        return str(self.request.deployment.cluster.uid)

    def __getattr__(self, name: str) -> Any:
        """What the small world has no answer to."""
        raise Unreachable(f"nobody answers about {name}")

    def resource_of(self, group: str, version: str, kind: str) -> None:
        """It serves no kind of our own that says how requests are decided."""

    def get(self, ref: ObjectRef) -> dict[str, Any]:
        if ref.kind == "ServiceAccount":
            return {"metadata": {"uid": self.request.service_account_uid or "u"}}
        return {"metadata": {"uid": self.request.deployment.uid}, "spec": self.request.spec}


def ask_again(request: Request) -> None:
    """Raise what stands in the way of the next phase."""
    gate.require(request, before_phase(request, cast("Api", Live(request))))


def before_phase(request: Request, api: Api) -> gate.GateFacts:
    """What is read before a phase, in the order of the step."""
    report = gate.reviewed_report(request)
    return gate.reader.going_on(request, api, report, gate.reader.unseen(request, api, report))


def check_requesters(request: Request) -> None:
    """Raise why those who asked may not have it done; all else is well."""
    known = gate.reader.preparing(request, cast("Api", Live(request)), read_for(request))
    about = replace(known.about, recorded_cluster=drawn.ABOUT.recorded_cluster)
    learned = {name: getattr(known, name) for name in ("requesters", "too_old", "sources")}
    gate.require_again(replace(_all_well(GateQuestion.PREPARE), about=about, **learned))


def check_vouched(request: Request) -> None:
    """Raise why the approval would not stand at the gate, by who approved and who asked; all else is well."""
    known = gate.reader.deciding(request)
    about = replace(drawn.ABOUT, is_requester_known=request.is_requester_known, needed=known.about.needed)
    about = replace(about, expires_at=request.expires_at)
    learned = {name: getattr(known, name) for name in ("reviews", "guards", "too_old")}
    gate.require_again(replace(_all_well(GateQuestion.PLAN), about=about, sources=drawn.NO_SOURCES, **learned))


def _all_well(question: GateQuestion) -> gate.GateFacts:
    found = replace(drawn.all_well(question), requesters=drawn.known(()))
    return drawn.as_of(found, timezone.now())
