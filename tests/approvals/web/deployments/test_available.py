"""From what a catalog offers to a deployment on to the package, and to what taking it would change."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from approvals.catalogs import bundle_choice
from approvals.ledger import pivots
from approvals.models import BundleDeployment, FollowedPackage
from provisioner.api_groups import OWN_GROUP
from provisioner.values import AccessAnswer
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, text_of
from tests.support.approvals.revisions import revision
from tests.support.stored_catalogs import catalog, offer

PAGE = "/deployments/prod/lighthouse"
PACKAGE = "/catalogs/prod/port/packages/harbour"
FROM_CATALOG = {"kind": "catalog", "catalog": {"name": "port", "package": "harbour"}}


def offered(here: World, *versions: str, more: tuple[dict[str, Any], ...] = ()) -> BundleDeployment:
    """lighthouse, which runs 1.0.0 and is offered the last of these versions."""
    port = catalog(of=here.cluster)
    offer(port, "1.0.0")
    spec = world.spec(format="registry-v1", sources=[FROM_CATALOG, *more], upgradePolicy="Manual")
    made = world.wish(here.cluster, world.seen("lighthouse", spec), by=here.rita)
    bundle_choice.bundles_for(made.requests.get())
    revision(made, 1, "active")
    offer(port, "1.0.0", *versions)
    pivots.answer_upgrades(made.pk)
    return made


def available(text: str) -> list[str]:
    """The links beside what is offered."""
    place = text.partition("<dt>Catalog</dt>")[2].partition("</dd>")[0]
    return [unescape(one) for one in re.findall(r'href="([^"]+)"', place)]


def test_what_is_available_leads_to_the_package_and_to_what_it_would_change(here: World, browse: Browse) -> None:
    offered(here, "1.1.0")
    here.kubernetes.allow("ada", "create")
    client = browse(here.ada)
    found = available(opened(client, PAGE))
    assert found == [PACKAGE, f"{PACKAGE}/changes?to=harbour.v1.1.0&deployment=lighthouse"]
    text = opened(client, found[1])
    assert re.search(r'id="deployment"\s+name="deployment"\s+class="mono"\s+value="lighthouse"', text)
    assert re.search(r'id="to"\s+name="to"\s+class="mono"\s+list="bundles"\s+value="harbour.v1.1.0"', text)
    assert 'role="alert"' not in text


def test_the_rule_that_would_let_somebody_see_what_is_offered_can_be_copied(here: World, browse: Browse) -> None:
    offered(here, "1.1.0")
    rule = "kind: Role\nrules: []"
    words = f"rita may not get it; this would allow it:\n{rule}\n\nA cluster administrator grants it."
    FollowedPackage.objects.update(problem=words, problem_since=timezone.now())
    text = opened(browse(here.ada), PAGE)
    assert f'<pre class="code" tabindex="0">{rule}</pre>' in text
    assert "rita may not get it; this would allow it:</p>" in text
    assert "<p>A cluster administrator grants it.</p>" in text


def test_who_may_create_no_deployment_is_led_to_the_package_alone(here: World, browse: Browse) -> None:
    offered(here, "1.1.0")
    assert available(opened(browse(here.ada), PAGE)) == [PACKAGE]


def test_S09_who_may_not_get_the_deployment_is_not_led_to_what_would_change(here: World, browse: Browse) -> None:
    offered(here, "1.1.0")
    here.kubernetes.allowed.discard(("ada", "get", "*"))
    for name in ("port", "bundledeploymentrequests /"):
        here.kubernetes.allow("ada", "get", name)
    here.kubernetes.allow("ada", "create")
    client = browse(here.ada)
    assert available(opened(client, PAGE)) == [PACKAGE]
    refused = client.get(f"{PACKAGE}/changes?to=harbour.v1.1.0&deployment=lighthouse")
    assert refused.status_code == 403
    assert "get bundledeployments" in text_of(refused)


def test_S02_who_may_not_get_the_catalog_is_led_nowhere(
    here: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(here, "1.1.0")
    here.kubernetes.allow("ada", "create")
    ask = here.kubernetes.ask

    def narrow(cluster: Any, identity: Any, asked: Any) -> AccessAnswer:
        is_catalog = (asked.group, asked.resource) == (OWN_GROUP, "catalogs")
        return AccessAnswer(False, "no rule") if is_catalog else ask(cluster, identity, asked)

    monkeypatch.setattr(here.kubernetes, "ask", narrow)
    cache.clear()
    text = opened(browse(here.ada), PAGE)
    assert "is available since" in text
    assert available(text) == []


def test_where_nothing_is_offered_there_is_nothing_to_compare(here: World, browse: Browse) -> None:
    offered(here)
    here.kubernetes.allow("ada", "create")
    assert available(opened(browse(here.ada), PAGE)) == [PACKAGE]


def test_what_only_a_request_can_compare_is_no_link(here: World, browse: Browse) -> None:
    beside = {"kind": "configMap", "configMap": {"name": "local"}, "destination": "d"}
    offered(here, "1.1.0", more=(beside,))
    here.kubernetes.allow("ada", "create")
    text = opened(browse(here.ada), PAGE)
    assert "is available since" in text
    assert available(text) == [PACKAGE]
