"""The gate as it is asked before each phase, on the cluster that the small world stands for."""

from __future__ import annotations

from typing import Any, cast

from approvals import gate
from approvals.models import Request
from provisioner.cluster.api import Cluster as Api
from provisioner.values import ObjectRef


class Live:
    """The wish and its account as they were when the request was made."""

    def __init__(self, request: Request):
        self.request = request

    def get(self, ref: ObjectRef) -> dict[str, Any]:
        if ref.kind == "ServiceAccount":
            return {"metadata": {"uid": self.request.service_account_uid or "u"}}
        return {"metadata": {"uid": self.request.deployment.uid}, "spec": self.request.spec}


def ask_again(request: Request) -> None:
    """Raise what stands in the way of the next phase."""
    api = cast("Api", Live(request))
    gate.require(request, gate.reader.going_on(request, api, gate.reviewed_report(request)))
