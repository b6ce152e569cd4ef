"""The bucket of the content store is away: requests wait with words, nothing is lost, and they continue by themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from approvals.models import BundleDeployment, Request
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.process import free_port
from tests.support.servers.registry import Registry
from tests.support.servers.s3 import S3Server
from tests.support.stores import use_bucket

NAME = "stored-away"


def works_again(site: DeployedSite, deployment: BundleDeployment) -> Request:
    """As if the time had come at which it is tried again."""
    Request.objects.filter(deployment=deployment).update(look_again_at=None)
    site.work()
    return site.latest(deployment)


def test_a_request_waits_for_the_bucket_before_its_review_and_before_it_is_applied(
    sandbox_site: DeployedSite, registry: Registry, s3: S3Server, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = s3.bucket()
    away = replace(location, endpoint=f"http://127.0.0.1:{free_port()}")
    use_bucket(settings, monkeypatch, away)
    wished = sandbox_site.prepare(NAME, bundles.image(registry, NAME, bundles.app(NAME, "1")))
    request = sandbox_site.latest(wished)
    assert (request.state, request.problem_code) == ("preparing", "store-unavailable")
    assert "no connection to the S3 server; check PRATIQUE_CONTENT_S3_ENDPOINT" in request.problem

    use_bucket(settings, monkeypatch, location)
    assert works_again(sandbox_site, wished).state == "in_review"
    sandbox_site.agree(wished)
    use_bucket(settings, monkeypatch, away)
    request = works_again(sandbox_site, wished)
    assert (request.state, request.problem_code) == ("approved", "store-unavailable")

    use_bucket(settings, monkeypatch, location)
    assert works_again(sandbox_site, wished).state == "applied"
