"""An approved request waits for what its account lacks, says it as YAML, and goes on once that is applied."""

from __future__ import annotations

import yaml

from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.installer import grant, take_away
from tests.support.servers.registry import Registry


def test_what_the_account_lacks_is_said_as_yaml_and_waited_for(real_site: DeployedSite, registry: Registry) -> None:
    take_away(real_site)
    files = bundles.app("poor", "1", secret_reader=True)
    deployment = real_site.prepare("poor", bundles.image(registry, "poor", files))
    assert real_site.latest(deployment).reports.get().findings.filter(rule="PRE-RULES").exists()
    request = real_site.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "missing-rights")
    assert real_site.live("ConfigMap", "poor") is None

    real_site.look_after(deployment)
    applied = next(it for it in real_site.get("bdr", "poor-1")["status"]["conditions"] if it["type"] == "Applied")
    assert (applied["status"], applied["reason"]) == ("False", "MissingRights")
    words, _, rules = request.problem.partition("\n")
    assert "continues automatically" in words
    grant(real_site, applied["message"].partition("\n")[2])
    assert applied["message"].partition("\n")[2] == rules
    real_site.work(request)
    assert request.state == "applied", request.problem
    assert request.problem == ""
    assert real_site.live("ConfigMap", "poor") is not None


def test_rights_that_are_taken_away_after_the_review_are_waited_for_as_well(
    real_site: DeployedSite, registry: Registry
) -> None:
    deployment = real_site.prepare("robbed", bundles.image(registry, "robbed", bundles.app("robbed", "1")))
    assert not real_site.latest(deployment).reports.get().findings.filter(rule="PRE-RULES").exists()
    take_away(real_site)
    request = real_site.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "missing-rights")
    grant(real_site, request.problem.partition("\n")[2])
    real_site.work(request)
    assert request.state == "applied", request.problem


READS = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
CORE = {"apiGroups": [""], "resources": ["serviceaccounts", "configmaps"], "verbs": ["*"]}


def test_one_right_that_is_taken_away_after_the_review_is_waited_for_before_anything_is_touched(
    real_site: DeployedSite, registry: Registry
) -> None:
    deployment = real_site.prepare("partly", bundles.image(registry, "partly", bundles.app("partly", "1")))
    take_away(real_site)
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    name = f"{real_site.namespace}-partly"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    installer = {"kind": "ServiceAccount", "name": "installer", "namespace": real_site.namespace}
    role = {**rbac, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [READS, CORE]}
    binding = {**rbac, "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": reference}
    grant(real_site, yaml.safe_dump_all([role, {**binding, "subjects": [installer]}]))
    request = real_site.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "missing-rights")
    assert real_site.live("ConfigMap", "partly") is None
    grant(real_site, request.problem.partition("\n")[2])
    real_site.work(request)
    assert request.state == "applied", request.problem
