"""A request that the worker may not work on waits, says which right is missing, and goes on once it is given."""

from __future__ import annotations

from approvals.models import Request
from provisioner.values import AccessRequest
from tests.support.journeys import bundles
from tests.support.journeys.station import SERVICE, Station
from tests.support.kubernetes import live
from tests.support.servers.registry import Registry

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
    words = f"Pratique's worker is not allowed to impersonate ServiceAccount {station.namespace}/stranger: an operator must grant"
    assert request.problem.startswith(words)
    assert request.problem.endswith("pratique-manage rights --cluster journey | kubectl apply -f -")
    assert request.is_installer_proved, "rita was let use it, so that the command names it"

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


def test_S31_the_operator_is_told_to_name_the_account_that_nobody_was_asked_about(
    any_station: Station, registry: Registry
) -> None:
    """As of a wish that kubectl wrote: nobody knows who that was."""
    station = any_station
    about = {"name": "nobodys", "namespace": station.namespace}
    station.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
    source = bundles.image(registry, "nobodys", bundles.app("nobodys", "1"))
    deployment = station.wish(f"{station.namespace}-nobodys", source, serviceAccountName="nobodys")
    deployment.requests.update(is_requester_known=False, requesters=[])
    station.work()
    request = station.latest(deployment)
    assert (request.state, request.problem_code) == ("preparing", "missing-right")
    command = f"rights --cluster journey --installer {station.namespace}/nobodys | kubectl apply -f -"
    assert request.problem.endswith(command)
    assert not request.is_installer_proved


def test_S07_what_a_requester_may_not_use_is_not_proved(any_station: Station, registry: Registry) -> None:
    station = any_station
    about = {"name": "forbidden", "namespace": "kube-system"}
    station.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
    source = bundles.image(registry, "forbidden", bundles.app("forbidden", "1"))
    more = {"installNamespace": "kube-system", "serviceAccountName": "forbidden"}
    deployment = station.wish(f"{station.namespace}-forbidden", source, **more)
    station.work()
    request = station.latest(deployment)
    assert (request.state, request.problem_code) == ("preparing", "forbidden")
    assert not request.is_installer_proved
