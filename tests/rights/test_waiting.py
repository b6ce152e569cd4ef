"""A request that the worker may not work on waits, says which right is missing, and goes on once it is given."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from io import StringIO

import pytest
import yaml
from django.core.management import call_command

from approvals.models import Request
from provisioner.cluster.client.access import ask
from provisioner.values import AccessRequest, ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import SERVICE, DeployedSite
from tests.support.kubernetes import live
from tests.support.servers.registry import Registry

AUTHENTICATION = "authentication.k8s.io"


def until_given(site: DeployedSite, name: str) -> None:
    """In either form: the API server may try the legacy one first."""
    about = ("serviceaccounts", "", site.namespace, name)
    forms = (
        AccessRequest("impersonate:serviceaccount", AUTHENTICATION, *about),
        AccessRequest("impersonate", "", *about),
    )
    live.wait_until(lambda: any(ask(site.api, SERVICE, one).allowed for one in forms), "the right counts")


Follow = Callable[[Request], set[str]]


@pytest.fixture
def follow(site: DeployedSite) -> Iterator[Follow]:
    """Does what the words of a request say, to the letter; tells the kinds of who gets the rights."""
    applied: list[ObjectRef] = []

    def run(request: Request) -> set[str]:
        command = shlex.split(request.problem.rpartition("apply it with:\n")[2].partition(" | ")[0])
        assert command[0] == "pratique-manage"
        out = StringIO()
        call_command(*command[1:], stdout=out, stderr=StringIO())
        printed = [one for one in yaml.safe_load_all(out.getvalue()) if one]
        for one in printed:
            site.api.apply(one, field_manager="kubectl")
            applied.append(ObjectRef.of(one))
        return {subject["kind"] for one in printed for subject in one.get("subjects", [])}

    yield run
    for ref in applied:
        site.api.delete(ref)


@pytest.mark.proof
def test_S31_a_request_waits_for_the_right_to_act_as_its_installer(
    site: DeployedSite, registry: Registry, follow: Follow
) -> None:
    about = {"name": "stranger", "namespace": site.namespace}
    site.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
    source = bundles.image(registry, "stranger", bundles.app("stranger", "1"))
    deployment = site.submit_spec(f"{site.namespace}-stranger", source, serviceAccountName="stranger")
    site.work()
    request = site.latest(deployment)
    assert (request.state, request.problem_code) == ("preparing", "missing-right")
    words = f"Pratique's worker is not allowed to impersonate ServiceAccount {site.namespace}/stranger: an operator must grant"
    assert request.problem.startswith(words)
    assert request.problem.endswith("pratique-manage rights --cluster journey | kubectl apply -f -")
    assert request.is_installer_proved, "rita was let use it, so that the command names it"

    assert follow(request) == {"User"}, "the registered kubeconfig is a user's"
    until_given(site, "stranger")
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    site.work()
    assert site.latest(deployment).state == "in_review", site.latest(deployment).problem


def test_S31_the_operator_is_told_to_name_the_account_that_nobody_was_asked_about(
    site: DeployedSite, registry: Registry, follow: Follow
) -> None:
    """As of a wish that kubectl wrote: nobody knows who that was."""
    about = {"name": "nobodys", "namespace": site.namespace}
    site.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
    source = bundles.image(registry, "nobodys", bundles.app("nobodys", "1"))
    deployment = site.submit_spec(f"{site.namespace}-nobodys", source, serviceAccountName="nobodys")
    deployment.requests.update(is_requester_known=False, requesters=[])
    site.work()
    request = site.latest(deployment)
    assert (request.state, request.problem_code) == ("preparing", "missing-right")
    command = f"rights --cluster journey --installer {site.namespace}/nobodys | kubectl apply -f -"
    assert request.problem.endswith(command)
    assert not request.is_installer_proved
    follow(request)
    until_given(site, "nobodys")
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    site.work()
    assert site.latest(deployment).state == "in_review", site.latest(deployment).problem


def test_S07_what_a_requester_may_not_use_is_not_proved(site: DeployedSite, registry: Registry) -> None:
    about = {"name": "forbidden", "namespace": "kube-system"}
    site.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
    source = bundles.image(registry, "forbidden", bundles.app("forbidden", "1"))
    more = {"installNamespace": "kube-system", "serviceAccountName": "forbidden"}
    deployment = site.submit_spec(f"{site.namespace}-forbidden", source, **more)
    site.work()
    request = site.latest(deployment)
    assert (request.state, request.problem_code) == ("preparing", "forbidden")
    assert not request.is_installer_proved
