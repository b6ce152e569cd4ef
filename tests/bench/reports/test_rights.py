"""A report on a cluster with 2,000 bindings of others beside one on an empty cluster, of real bundles; the ratio counts.

Run by `make bench`. Both are made in turn, from roles that nobody has sorted out yet; the least processor time of some
rounds counts, which neighbours on the machine lengthen least.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from provisioner.rbac import RbacSubject
from provisioner.review.base.facts import Facts, Installer
from provisioner.review.cluster_rights import cluster_rights
from provisioner.review.frame import report
from provisioner.values import Action, Content, ObjectRef, Plan, PlannedAction, Report
from tests.support.folders import CORPUS
from tests.support.provisioner.corpus import Bundle, content_of, pairs
from tests.support.provisioner.roles import of_kubernetes, teams

BINDINGS, ROUNDS = 2_000, 5
# At most this part longer, of all the bundles together; and the whole cluster in at most this many seconds.
MOST, CLUSTER_SECONDS = 1.2, 20.0
INSTALLER = Installer(RbacSubject("ServiceAccount", "installer", "default"))
FAMILIES = (
    "cert-manager",
    "argo-cd",
    "prometheus-operator",
    "strimzi-kafka-operator",
    "ingress-nginx",
    "metrics-server",
)


def timed(live: tuple[dict[str, Any], ...], content: Content, **rest: Any) -> tuple[float, Report]:
    actions = tuple(PlannedAction(ObjectRef.of(one.body), Action.CREATE, after=one.body) for one in content.manifests)
    plan = Plan(actions, "sha256:bench")
    began = time.process_time()
    found = report(Facts(content, plan, live_rbac=live, bundle=plan, **rest))
    return time.process_time() - began, found


def chosen() -> list[Bundle]:
    newest = {new.family: new for _, new in pairs()}
    return [one for name, one in sorted(newest.items()) if any(family in name for family in FAMILIES)]


@pytest.mark.parametrize("rest", [{}, {"installer": INSTALLER}], ids=["as who asks", "with an installing account"])
def test_figures_of_reports_on_a_cluster_with_many_bindings(rest: dict[str, Any]) -> None:
    empty, many = of_kubernetes(), teams(BINDINGS)
    bundles = chosen()
    assert bundles, f"no bundle of {', '.join(FAMILIES)} is in the corpus: {CORPUS}"
    print(f"\na report on an empty cluster and on one with {BINDINGS:,} bindings of others:")
    sums = [0.0, 0.0]
    for bundle in bundles:
        content = content_of(bundle)
        took = [[timed(live, content, **rest)[0] for live in (empty, many)] for _ in range(ROUNDS)]
        alone, beside = (min(one[side] for one in took) for side in (0, 1))
        sums = [sums[0] + alone, sums[1] + beside]
        print(f"  {bundle.family:44} {alone * 1000:7.1f} ms {beside * 1000:7.1f} ms, {beside / alone:.2f} times")
    print(f"  all of them: {sums[1] / sums[0]:.3f} times")
    assert sums[1] <= sums[0] * MOST


def test_figures_of_the_rights_of_a_whole_cluster() -> None:
    objects = teams(BINDINGS)
    began = time.process_time()
    found = cluster_rights(objects)
    took = time.process_time() - began
    print(f"\nthe rights in a cluster with {BINDINGS:,} bindings: {took:.1f} s, {len(found.findings):,} findings")
    assert took <= CLUSTER_SECONDS
