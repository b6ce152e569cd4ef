"""An approved request waits for what its account lacks, says it as YAML, and goes on once that is applied."""

from __future__ import annotations

import yaml

from tests.support.journeys.contents import bundles
from tests.support.journeys.installer import grant, take_away
from tests.support.journeys.station import Station
from tests.support.servers.registry import Registry


def test_what_the_account_lacks_is_said_as_yaml_and_waited_for(real_station: Station, registry: Registry) -> None:
    take_away(real_station)
    files = bundles.app("poor", "1", secret_reader=True)
    deployment = real_station.prepare("poor", bundles.image(registry, "poor", files))
    assert real_station.latest(deployment).reports.get().findings.filter(rule="PRE-RULES").exists()
    request = real_station.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "missing-rights")
    assert real_station.live("ConfigMap", "poor") is None

    real_station.look_after(deployment)
    applied = next(it for it in real_station.get("bdr", "poor-1")["status"]["conditions"] if it["type"] == "Applied")
    assert (applied["status"], applied["reason"]) == ("False", "MissingRights")
    words, _, rules = request.problem.partition("\n")
    assert "continues automatically" in words
    grant(real_station, applied["message"].partition("\n")[2])
    assert applied["message"].partition("\n")[2] == rules
    real_station.work(request)
    assert request.state == "applied", request.problem
    assert request.problem == ""
    assert real_station.live("ConfigMap", "poor") is not None


def test_rights_that_are_taken_away_after_the_review_are_waited_for_as_well(
    real_station: Station, registry: Registry
) -> None:
    deployment = real_station.prepare("robbed", bundles.image(registry, "robbed", bundles.app("robbed", "1")))
    assert not real_station.latest(deployment).reports.get().findings.filter(rule="PRE-RULES").exists()
    take_away(real_station)
    request = real_station.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "missing-rights")
    grant(real_station, request.problem.partition("\n")[2])
    real_station.work(request)
    assert request.state == "applied", request.problem


READS = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
CORE = {"apiGroups": [""], "resources": ["serviceaccounts", "configmaps"], "verbs": ["*"]}


def test_one_right_that_is_taken_away_after_the_review_is_waited_for_before_anything_is_touched(
    real_station: Station, registry: Registry
) -> None:
    deployment = real_station.prepare("partly", bundles.image(registry, "partly", bundles.app("partly", "1")))
    take_away(real_station)
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    name = f"{real_station.namespace}-partly"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    installer = {"kind": "ServiceAccount", "name": "installer", "namespace": real_station.namespace}
    role = {**rbac, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [READS, CORE]}
    binding = {**rbac, "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": reference}
    grant(real_station, yaml.safe_dump_all([role, {**binding, "subjects": [installer]}]))
    request = real_station.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "missing-rights")
    assert real_station.live("ConfigMap", "partly") is None
    grant(real_station, request.problem.partition("\n")[2])
    real_station.work(request)
    assert request.state == "applied", request.problem
