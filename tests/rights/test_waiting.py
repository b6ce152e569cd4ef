"""A request that the worker may not work on waits, says which right is missing, and goes on once it is given."""

from __future__ import annotations

from approvals.models import Request
from provisioner.values import AccessRequest
from tests import live
from tests.journeys import bundles
from tests.journeys.conftest import any_station
from tests.journeys.station import SERVICE, Station
from tests.services.registry import Registry

# A fixture of another module: the name has to stand here.
__all__ = ["any_station"]

RBAC = "rbac.authorization.k8s.io"


def test_S31_a_request_waits_for_the_right_to_act_as_its_installer(any_station: Station, registry: Registry) -> None:
    station = any_station
    about = {"name": "stranger", "namespace": station.namespace}
    station.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
    source = bundles.image(registry, "stranger", bundles.app("stranger", "1"))
    deployment = station.wish(f"{station.namespace}-stranger", source, serviceAccountName="stranger")
    station.work()
    request = station.latest(deployment)
    assert (request.state, request.problem_code) == ("preparing", "missing-right")
    words = f"Pratique's worker may not act as ServiceAccount {station.namespace}/stranger: an operator has to give"
    assert request.problem.startswith(words)
    assert request.problem.endswith("pratique-manage rights --cluster journey | kubectl apply -f -")

    rule = {
        "apiGroups": [""],
        "resources": ["serviceaccounts"],
        "verbs": ["impersonate"],
        "resourceNames": ["stranger"],
    }
    api_version = f"{RBAC}/v1"
    station.api.create({"apiVersion": api_version, "kind": "Role", "metadata": about, "rules": [rule]})
    station.api.create(
        {
            "apiVersion": api_version,
            "kind": "RoleBinding",
            "metadata": about,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "stranger"},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": SERVICE.username}],
        }
    )
    right = AccessRequest("impersonate", "", "serviceaccounts", "", station.namespace, "stranger")
    live.until_may(station.api, SERVICE, right)
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    station.work()
    assert station.latest(deployment).state == "in_review", station.latest(deployment).problem
