"""What one BundleDeployment costs the API server from the first sight to the review: pinned, because there are many."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
import yaml
from django.utils import timezone

from approvals import instruments
from approvals.access import port
from approvals.models import Request
from approvals.steps import shared_reads
from approvals.steps.advance import Advance
from approvals.steps.mirroring import mirror
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.registry import Registry


def made(site: DeployedSite) -> Counter[str]:
    """The calls of this process to the cluster so far, by their verb; `read` is discovery and /version."""
    found: Counter[str] = Counter()
    for metric in instruments.api_calls.collect():
        for sample in metric.samples:
            if sample.name.endswith("_total") and sample.labels["cluster"] == site.cluster.name:
                found[sample.labels["verb"]] += int(sample.value)
    return found


def config_map(name: str) -> dict[str, bytes]:
    return {"map.yaml": yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).encode()}


def test_the_calls_for_one_deployment_from_seen_to_in_review(
    sandbox_site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port, "DISCOVERED_SECONDS", port.KEPT_SECONDS)  # also on a slow machine
    moments = []
    for number in (1, 2):  # the second one is what each of many costs: what is served is known
        name = f"{sandbox_site.namespace}-{number}"
        deployment = sandbox_site.submit_spec(name, bundles.image(registry, name, config_map(name)))
        moments = [made(sandbox_site)]
        for step in (
            sandbox_site.look_after,
            lambda _: sandbox_site.work(),
            sandbox_site.look_after,
            sandbox_site.look_after,
        ):
            step(deployment)
            moments.append(made(sandbox_site))
        assert sandbox_site.latest(deployment).state == "in_review", sandbox_site.latest(deployment).problem
    shown, reported, reviewed, again = (dict(after - before) for before, after in pairwise(moments))
    # The finalizer; the mirrored request and its status; the status of the deployment.
    assert shown == {"apply": 4, "create": 1}
    assert reported == {"get": 3, "ask": 3, "list": 6, "read": 1, "apply": 1}
    assert reviewed == {"get": 1, "apply": 2, "create": 1}
    assert again == {"get": 1}, "what is as it was is no write"


def test_what_a_worker_asks_for_all_of_a_crowd_none_of_its_processes_asks(
    sandbox_site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_reads, "_asked", {})
    monkeypatch.setattr(shared_reads, "_handed_over", {})
    names = [f"{sandbox_site.namespace}-{number}" for number in (1, 2, 3)]
    first, second = (
        sandbox_site.submit_spec(name, bundles.image(registry, name, config_map(name))) for name in names[:2]
    )
    Advance(sandbox_site.latest(first).pk).handover()
    before = made(sandbox_site)
    work = Advance(sandbox_site.latest(second).pk)
    work.take_over(work.handover())
    sandbox_site.work()
    assert sandbox_site.latest(second).state == "in_review", sandbox_site.latest(second).problem
    assert dict(made(sandbox_site) - before) == {"apply": 2}, "of each of the two the dry-run of its object"
    third = sandbox_site.submit_spec(names[2], bundles.image(registry, names[2], config_map(names[2])))
    before = made(sandbox_site)
    Advance(sandbox_site.latest(third).pk).handover()
    asked = made(sandbox_site) - before
    assert asked.pop("read") in (1, 3), "the version; what is served, where that was read more than a second ago"
    assert asked == {"get": 3, "ask": 3, "list": 6}, "nothing is taken that was asked before the request was made"
    monkeypatch.setattr(shared_reads, "_asked", {})
    monkeypatch.setattr(shared_reads, "MOST_BYTES", 10)
    assert shared_reads.answers_for(sandbox_site.latest(third)) == {}, "a cluster of many roles is read by each"


def test_where_many_come_at_once_each_is_first_shown_with_its_report(
    sandbox_site: DeployedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "CROWD", 1)
    nowhere = {"kind": "http", "http": {"url": "http://127.0.0.1:1/1.tar.gz"}}
    first, second = (sandbox_site.submit_spec(f"{sandbox_site.namespace}-{number}", nowhere) for number in (1, 2))
    sandbox_site.look_after(first)
    before = made(sandbox_site)
    sandbox_site.look_after(second)
    sandbox_site.look_after(second)
    assert dict(made(sandbox_site) - before) == {"apply": 1}, "the finalizer alone, once"
    Request.objects.update(created_at=timezone.now() - mirror.FIRST_SHOWN_WITHIN)
    sandbox_site.look_after(second)
    assert sandbox_site.latest(second).mirrored_at, "it is not hidden for longer"
