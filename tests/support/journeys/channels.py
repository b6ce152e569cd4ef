"""Everything that somebody can read of a request, by where it comes out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.chat.tools.slack import Slack
from approvals.models import Request
from provisioner.values import ObjectRef
from tests.support.approvals.world import api_token, enter
from tests.support.journeys.deployed_site import DeployedSite


def channels(site: DeployedSite, request: Request, person: str, log: pytest.LogCaptureFixture) -> dict[str, str]:
    """Everything that this person can read of a request, by where it comes out."""
    user = site.people[person]
    told = {f"page {path}": text for path, text in pages(user, request)}
    told |= {f"REST {path}": text for path, text in answers(user, request)}
    told["chat"] = json.dumps([Slack().message(request, occasion) for occasion in ("needs_you", "decided")])
    told["log"] = "\n".join(f"{one.getMessage()} {one.__dict__}" for one in log.records)
    told |= {f"cluster {kind}": text for kind, text in in_cluster(site, request)}
    return told


def pages(user: User, request: Request) -> Iterator[tuple[str, str]]:
    client = Client()
    enter(client, user)
    here, deployment = f"/requests/{request.uid}", request.deployment
    count = len(request.reports.get(round=request.round).body["plan"]["actions"])
    paths = ["/", "/?tab=all", "/audit", "/deployments", "/clusters", here]
    paths += [f"{here}/{part}" for part in ("progress", "findings", "changes", "report.html", "rights", "schemas")]
    paths += [f"{here}/changes/{position}{view}" for position in range(count) for view in ("", "?view=split&lines=all")]
    paths += [f"/deployments/{deployment.cluster.name}/{deployment.name}"]
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        yield path.replace(str(request.uid), "UID"), answer.content.decode()
    user.is_staff = user.is_superuser = True
    user.save()
    for model in ("request", "report", "finding", "outcome", "auditentry", "inventoryitem", "drift", "revision"):
        listed = client.get(f"/admin/approvals/{model}/").content.decode()
        links = re.findall(rf'href="(/admin/approvals/{model}/\d+/change/[^"]*)"', listed)
        yield f"admin {model}", listed + "".join(client.get(link).content.decode() for link in links)
    user.is_staff = user.is_superuser = False
    user.save()


def answers(user: User, request: Request) -> Iterator[tuple[str, str]]:
    _, token = api_token(user)
    count = len(request.reports.get(round=request.round).body["plan"]["actions"])
    here, deployment = f"requests/{request.uid}", f"deployments/{request.deployment.uid}"
    paths = ["requests", here, f"{here}/report", f"{here}/outcomes", "audit", "deployments", deployment]
    paths += [f"{deployment}/drift", f"{deployment}/revisions", f"{deployment}/made-values"]
    paths += [f"{here}/report/objects/{position}" for position in range(count)]
    for path in paths:
        answer = Client().get(f"/api/v1/{path}", headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == 200, (path, answer.status_code, answer.content[:300])
        yield path.replace(str(request.uid), "UID"), answer.content.decode()


def in_cluster(site: DeployedSite, request: Request) -> Iterator[tuple[str, str]]:
    """What everybody sees who may get our own kinds, and events."""
    deployment = request.deployment
    names = {"BundleDeployment": deployment.name, "BundleDeploymentRequest": f"{deployment.name}-{request.number}"}
    for kind, name in names.items():
        yield kind, json.dumps(site.api.get(ObjectRef("core.rukpak.io", "v1alpha2", kind, "", name)))
    resource = site.api.resource_of("", "v1", "Event")
    if resource is not None:
        told = [one for one in site.api.list(resource) if "pratique" in json.dumps(one.get("source") or {})]
        yield "events", json.dumps(told)


def leaks(told: dict[str, str], texts: dict[str, str]) -> list[tuple[str, str]]:
    return [(channel, kind) for channel, said in told.items() for kind, text in texts.items() if text in said]
