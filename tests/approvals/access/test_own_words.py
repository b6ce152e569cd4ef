"""Who may get an object reads why it fails in the line and in the headline; who may not, which right would show it."""

from __future__ import annotations

from typing import Any

from django.core.cache import cache

from approvals.models import Request
from tests.support.approvals.changes import action, finding, planned
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened
from tests.support.provisioner.contents import an_object

REASON = "admission webhook images.example.com denied the request: no digest"
OWN = "2 Order objects are refused with any next write: shop/a, shop/b"
REFUSES = "the API server refuses it"
WEB = an_object("apps/v1", "Deployment", "web", "shop")
CRD = an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "orders.example.com")
ORDERS = {"group": "example.com", "version": "v1", "kind": "Order", "namespace": "", "name": ""}
GENERAL = "CRD orders.example.com as it is in the cluster: Pratique checked the existing objects"


def reported(env: World) -> Request:
    refused = action(WEB, problem=REFUSES, problemCode="invalid-object", serverWords=REASON)
    changed = action(CRD, CRD)
    found: list[dict[str, Any]] = [
        finding(
            refused["ref"],
            [],
            rule="OBJ-05",
            section="objects",
            severity="breaking",
            message=f"Cannot create Deployment shop/web: {REFUSES}",
            serverWords=REASON,
            fingerprint="a",
            isNew=True,
        ),
        finding(
            changed["ref"],
            [],
            rule="LIV-01",
            section="crds",
            severity="breaking",
            message=GENERAL,
            serverWords=OWN,
            sources=[ORDERS],
            withheld=True,
            fingerprint="b",
            isNew=True,
        ),
    ]
    made = planned(env, refused, changed, findings=found)
    report = made.reports.get()
    report.headline = [f"{GENERAL}.", f"{found[0]['message']}.", "1 object to create.", "Findings: 2 breaking."]
    report.save()
    return made


def pages_of(env: World, browse: Browse) -> tuple[str, str]:
    request = reported(env)
    client = browse(env.ada)
    overview, findings = (opened(client, f"/requests/{request.uid}{rest}") for rest in ("", "/findings"))
    return " ".join(overview.split()), " ".join(findings.split())


def test_who_may_get_the_objects_reads_their_words_in_each_line_the_headline_and_the_reasons(
    env: World, browse: Browse
) -> None:
    overview, findings = pages_of(env, browse)
    headline = overview.partition('class="headline"')[2].partition("</ul>")[0]
    blockers = overview.partition('id="blockers"')[2].partition("</section>")[0]
    bar = findings.partition('class="request-sentence"')[2].partition("</span>")[0]
    assert OWN in headline
    assert all(REASON in one for one in (headline, blockers, findings))
    assert OWN in findings
    assert REASON in bar or OWN in bar
    assert not any("lack details" in page for page in (overview, findings))


def test_S09_who_may_not_get_them_reads_once_which_right_would_show_them(env: World, browse: Browse) -> None:
    env.kubernetes.closed = {"deployments", "orders", "customresourcedefinitions"}
    overview, findings = pages_of(env, browse)
    for page in (overview, findings):
        assert REASON not in page
        assert OWN not in page
    assert findings.count("lack details, because you may not") == 1
    told = findings.partition("shows everything:")[2].partition("</ul>")[0]
    assert "Deployment.apps shop/web" in told
    assert "every Order.example.com" in told


def test_S09_one_of_two_objects_shows_nothing_of_what_is_made_of_both(env: World, browse: Browse) -> None:
    env.kubernetes.closed = {"orders"}
    overview, findings = pages_of(env, browse)
    assert OWN not in overview + findings
    assert REASON in findings
    told = findings.partition("shows everything:")[2].partition("</ul>")[0]
    assert "every Order.example.com" in told
    assert "Deployment" not in told
    cache.clear()
    env.kubernetes.closed = set()
    assert OWN in pages_of(env, browse)[1]
