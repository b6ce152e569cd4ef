"""A chart that gets values of a Secret: read with the requester's rights, shown nowhere, and followed."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from approvals.models import Request
from provisioner.values import Identity
from tests.support.journeys.deployed_site import DeployedSite, group, role
from tests.support.journeys.floating import look, numbers
from tests.support.servers.http import GitServer

FIRST, SECOND = "kept since the first day", "and another one"
CHART = {
    "Chart.yaml": b"apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "templates/copy.yaml": (
        b"apiVersion: v1\nkind: Secret\nmetadata: {name: copy, annotations: {sum: '{{ .Values.password | sha256sum }}'}}\n"
        b"stringData: {password: '{{ .Values.password }}'}\n"
    ),
}


def store_secret(site: DeployedSite, password: str | int, **annotations: str) -> None:
    data = {"values.yaml": base64.b64encode(f"password: {password}".encode()).decode()}
    metadata = {"name": "db", "namespace": site.namespace, "annotations": annotations}
    site.api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}, field_manager="test")


def password_of(site: DeployedSite) -> str:
    return base64.b64decode(site.live("Secret", "copy")["data"]["password"]).decode()


def everything_of(request: Request) -> str:
    """What is kept of a request in the clear, and shown to whoever may read it."""
    report = request.reports.get(round=request.round)
    return json.dumps([report.body, report.headline, list(Request.objects.filter(pk=request.pk).values())], default=str)


@pytest.mark.proof
def test_S08_a_secret_with_values_is_read_as_its_requester_hidden_and_followed(
    site: DeployedSite, git_server: GitServer
) -> None:
    repository = git_server.repository(site.namespace)
    repository.commit(CHART)
    store_secret(site, FIRST)
    source: dict[str, Any] = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
    config = {"valuesFrom": [{"kind": "Secret", "name": "db"}]}
    wished = site.submit_spec(site.namespace, source, format="helm", config=config)
    site.work()
    waiting = site.latest(wished)
    assert waiting.content_id is None
    assert waiting.problem.startswith("Kubernetes does not allow rita to get secrets db"), waiting.problem
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["db"], "verbs": ["get"]}
    for each in role("get-db", site.namespace, rule, group("requesters")):
        site.api.apply(each, field_manager="test")
    site.until_may(Identity("rita", ("requesters",)), "get", "secrets", name="db")
    site.work()
    first = site.approve(wished)
    assert (first.state, password_of(site)) == ("applied", FIRST), first.problem
    # Somebody writes the Secret, and none of its values.
    store_secret(site, FIRST, touched="yes")
    look(wished)
    site.work()
    assert numbers(wished) == [(1, "applied")]
    store_secret(site, SECOND)
    look(wished)
    second = site.after_work(wished)
    assert (second.number, second.state) == (2, "in_review")
    assert [pin["kind"] for pin in second.pins] == ["git", "valuesFrom"]
    assert second.pins[0] == first.pins[0]
    assert second.pins[1]["digest"] != first.pins[1]["digest"]
    for text in (FIRST, SECOND, base64.b64encode(FIRST.encode()).decode(), base64.b64encode(SECOND.encode()).decode()):
        assert text not in everything_of(first) + everything_of(second)
    sums = [site.live("Secret", "copy")["metadata"]["annotations"]["sum"]]
    assert site.approve(wished).state == "applied"
    assert password_of(site) == SECOND
    assert [site.live("Secret", "copy")["metadata"]["annotations"]["sum"]] != sums
    # What cannot be rendered is not quoted, and the mended Secret makes a request of its own.
    store_secret(site, 5432)
    look(wished)
    third = site.after_work(wished)
    assert third.problem.endswith("or move what is no secret into a ConfigMap"), third.problem
    assert "5432" not in str(third.problem) + str(third.server_words)
    store_secret(site, FIRST)
    look(wished)
    fourth = site.after_work(wished)
    assert (fourth.number, fourth.state) == (4, "in_review"), numbers(wished)
