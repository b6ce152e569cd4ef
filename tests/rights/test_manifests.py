"""The manifests that are shipped: which pod has which account, token and way to others; the real API server takes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.buckets.location import location_of
from approvals.encryption.keys import new_key
from approvals.project import configuration
from approvals.rights.needs import Process
from provisioner.cluster.client.api import ClusterClient as Api
from tests.rights.conftest import Noted
from tests.rights.household import NAMESPACE, prepare
from tests.support.folders import ROOT
from tests.support.patience import scaled

DEPLOY = ROOT / "deploy/kubernetes"
FILES = ("accounts.yaml", "network-policies.yaml", "bucket.yaml", "content.yaml", "pratique.yaml", "migrate.yaml")
TOKEN_PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"
MEETS_CLUSTER = {str(process) for process in Process}
FILL_IN = "# FILL IN:"


def objects(*files: str) -> list[dict[str, Any]]:
    return [one for file in files for one in yaml.safe_load_all((DEPLOY / file).read_text()) if one]


PODS: dict[str, dict[str, Any]] = {
    one["metadata"]["name"]: one["spec"]["template"] for one in objects(*FILES) if "template" in one.get("spec", {})
}
POLICIES = objects("network-policies.yaml")


def test_every_file_is_looked_at() -> None:
    assert {path.name for path in DEPLOY.iterdir()} == set(FILES)
    assert set(PODS) == {"web", "worker", "beat", "watch", "valkey", "migrate"}


@pytest.mark.parametrize("name", sorted(PODS))
def test_S31_each_pod_has_an_account_of_its_own_that_mounts_nothing_by_itself(name: str) -> None:
    spec = PODS[name]["spec"]
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == (name, False)
    (account,) = [
        one for one in objects("accounts.yaml") if one["kind"] == "ServiceAccount" and one["metadata"]["name"] == name
    ]
    assert account["automountServiceAccountToken"] is False


def test_S31_only_who_meets_a_cluster_has_a_role() -> None:
    bound = {
        (one["roleRef"]["name"], subject["name"])
        for one in objects(*FILES)
        if one["kind"].endswith("Binding")
        for subject in one["subjects"]
    }
    assert bound == {(f"pratique-{name}", name) for name in MEETS_CLUSTER}


@pytest.mark.parametrize("name", sorted(PODS))
def test_S31_a_token_ends_after_an_hour_and_is_in_the_one_container_that_uses_it(name: str) -> None:
    spec = PODS[name]["spec"]
    tokens = {
        volume["name"]: source["serviceAccountToken"]
        for volume in spec.get("volumes", [])
        for source in volume.get("projected", {}).get("sources", [])
        if "serviceAccountToken" in source
    }
    assert [one["expirationSeconds"] for one in tokens.values()] == ([3600] if name in MEETS_CLUSTER else [])
    # None for another audience than the API server's own.
    assert not [one for one in tokens.values() if "audience" in one]
    every = [*spec["containers"], *spec.get("initContainers", [])]
    having = {one["name"]: at for one in every for at in one.get("volumeMounts", []) if at["name"] in tokens}
    assert set(having) == ({name} if name in MEETS_CLUSTER else set())
    for mount in having.values():
        assert (mount["mountPath"], mount["readOnly"]) == (TOKEN_PLACE, True)


def selected(policy: dict[str, Any]) -> set[str]:
    selector = policy["spec"]["podSelector"]
    return {name for name, pod in PODS.items() if _matches(selector, pod["metadata"]["labels"])}


def _matches(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    wanted = selector.get("matchLabels", {}).items() <= labels.items()
    some = [labels.get(one["key"]) in one["values"] for one in selector.get("matchExpressions", [])]
    return wanted and all(some)


def ways(name: str, direction: str) -> set[tuple[str, int]]:
    """By which policies, and on which ports, a pod may be met, or meet others."""
    key = direction.lower()
    return {
        (policy["metadata"]["name"], port["port"])
        for policy in POLICIES
        if name in selected(policy)
        for rule in policy["spec"].get(key, [])
        for port in rule["ports"]
    }


COMMON = {("dns", 53), ("database", 5432)}
CLUSTER = {("cluster", 443), ("cluster", 6443)}
QUEUE = {("queue", 6379)}


@pytest.mark.parametrize(
    ("name", "meets", "is_met"),
    [
        (
            "web",
            COMMON | QUEUE | CLUSTER | {("issuers", 443), ("identity-proxy", 4180)},
            {("pages", 8080), ("metrics", 9090)},
        ),
        ("worker", COMMON | QUEUE | CLUSTER | {("sources", 443), ("sources", 22)}, {("metrics", 9090)}),
        ("watch", COMMON | QUEUE | CLUSTER, {("metrics", 9090)}),
        ("beat", COMMON | QUEUE, {("metrics", 9090)}),
        ("migrate", COMMON, set()),
        ("valkey", set(), {("valkey", 6379)}),
    ],
)
def test_who_meets_whom(name: str, meets: set[tuple[str, int]], is_met: set[tuple[str, int]]) -> None:
    assert (ways(name, "Egress"), ways(name, "Ingress")) == (meets, is_met)


def test_nobody_meets_anybody_that_no_policy_names() -> None:
    (deny,) = [one for one in POLICIES if one["metadata"]["name"] == "default-deny"]
    assert deny["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for policy in POLICIES:
        for direction in ("ingress", "egress"):
            rules = policy["spec"].get(direction, [])
            assert bool(rules) is (direction.capitalize() in policy["spec"]["policyTypes"] and policy is not deny)
            for rule in rules:
                assert rule.get("from" if direction == "ingress" else "to")
                assert rule["ports"]


def test_the_queue_is_met_by_those_who_use_it() -> None:
    (policy,) = [one for one in POLICIES if one["metadata"]["name"] == "valkey"]
    ((peer,),) = [rule["from"] for rule in policy["spec"]["ingress"]]
    found = {name for name, pod in PODS.items() if _matches(peer["podSelector"], pod["metadata"]["labels"])}
    assert found == {name for name in PODS if ("queue", 6379) in ways(name, "Egress")}


def test_what_has_to_be_filled_in_says_so() -> None:
    lines = (DEPLOY / "network-policies.yaml").read_text().splitlines()
    named = {line.split()[1] for line in lines if line.startswith("#   ")}
    marked = {line.partition(FILL_IN)[2].split()[0] for line in lines if FILL_IN in line}
    assert marked == named == {"database", "API", "ingress", "issuers", "monitoring", "proxy", "sources"}
    own = [
        line for line in lines if ("192.0.2.1/32" in line or "namespaceSelector" in line) and "kube-system" not in line
    ]
    assert all(FILL_IN in line for line in own)


def test_every_process_takes_the_bucket_where_there_is_one() -> None:
    """With values that are read as settings. Watch and beat read no content."""
    secret, policy = objects("bucket.yaml")
    named = {name: pod for name, pod in PODS.items() if name != "valkey"}
    for pod in named.values():
        for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
            if "envFrom" in container:
                assert {"secretRef": {"name": secret["metadata"]["name"], "optional": True}} in container["envFrom"]
    assert selected(policy) == {"web", "worker", "migrate"}
    found = configuration.read(secret["stringData"])
    assert str(location_of(found)) == "s3://pratique-contents/production/ at https://s3.example.com:9000"
    lines = (ROOT / "deploy/bucket.env").read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    assert set(pairs) == set(secret["stringData"])
    assert location_of(configuration.read(pairs)) == location_of(found)


def test_every_process_waits_for_the_migrations_and_the_job_for_nobody() -> None:
    waits = {name for name, pod in PODS.items() if [one["name"] for one in pod["spec"].get("initContainers", [])]}
    assert waits == {"web", "worker", "beat", "watch"}
    commands = {str(PODS[name]["spec"]["initContainers"][0]["command"]) for name in waits}
    assert len(commands) == 1
    assert PODS["migrate"]["spec"]["containers"][0]["command"] == ["pratique-manage", "migrate"]
    compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
    for name in waits:
        assert compose[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_every_process_has_a_probe_that_starts_no_process() -> None:
    """`pratique-manage` would cost seconds of a processor each time."""
    compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
    for name in ("worker", "beat", "watch"):
        (container,) = PODS[name]["spec"]["containers"]
        assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
        assert "metrics" in {port["name"] for port in container["ports"]}
        assert "9090/healthz" in compose[name]["healthcheck"]["test"][-1]
    (watch,) = [
        one for one in objects("pratique.yaml") if one["kind"] == "Deployment" and one["metadata"]["name"] == "watch"
    ]
    assert watch["spec"]["replicas"] == 2


@pytest.mark.thorough
def test_a_pod_of_the_new_version_begins_when_the_migrations_are_there(tmp_path: Path) -> None:
    """The very command of the init containers, beside the very command of the Job."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PRATIQUE_SECRET_KEY": "x" * 50,
        "PRATIQUE_ENCRYPTION_KEYS": new_key(),
        "PRATIQUE_DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
        "PRATIQUE_CONTENT_DIR": str(tmp_path / "content"),
    }
    command = [*PODS["web"]["spec"]["initContainers"][0]["command"]]
    command[-1] = command[-1].replace("sleep 5", "echo not yet; sleep 0.2")
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as waiting:
        try:
            assert waiting.stdout is not None
            assert b"not yet\n" in iter(waiting.stdout.readline, b""), "it looked, and waits"
            assert waiting.poll() is None
            job = PODS["migrate"]["spec"]["containers"][0]["command"]
            subprocess.run([*job, "--verbosity", "0"], env=environment, check=True, timeout=scaled(120))
            assert waiting.wait(timeout=scaled(60)) == 0
        finally:
            waiting.kill()


@pytest.fixture(scope="module")
def admin(noted: Noted) -> Api:
    api = Api.connect(noted.control_plane.kubeconfig("admin"), timeout_seconds=scaled(60))
    prepare(api)
    return api


def _kubectl(noted: Noted, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(noted.control_plane.kubeconfig("admin"))
    command = [str(noted.control_plane.kubectl), "--kubeconfig", str(kubeconfig), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=scaled(60))


@pytest.mark.parametrize("file", ["../rbac.yaml", *FILES])
def test_the_api_server_takes_each_file_without_a_warning(noted: Noted, admin: Api, tmp_path: Path, file: str) -> None:
    done = _kubectl(
        noted, tmp_path, "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", str(DEPLOY / file)
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", sorted(PODS))
def test_S31_the_api_server_adds_no_token_to_a_pod(admin: Api, name: str) -> None:
    """As admission leaves the pod: under the `restricted` standard that the namespace enforces."""
    template = PODS[name]
    spec = {**template["spec"]}
    if name == "valkey":
        spec["volumes"] = [{"name": "data", "emptyDir": {}}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": template["metadata"]["labels"]},
        "spec": spec,
    }
    made = admin.create(pod, dry_run=True)["spec"]
    assert {one["name"] for one in made["volumes"]} == {one["name"] for one in spec["volumes"]}
    for container in [*made["containers"], *made.get("initContainers", [])]:
        at = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
        assert (TOKEN_PLACE in at) is (name in MEETS_CLUSTER and container["name"] == name)


def test_web_alone_reads_the_issuers_and_may_reach_them() -> None:
    """Without a Secret `oidc` the pod starts all the same."""
    for name, pod in PODS.items():
        volumes = [one["secret"] for one in pod["spec"].get("volumes", ()) if one["name"] == "oidc"]
        named = [
            one["valueFrom"]["secretKeyRef"]
            for container in pod["spec"]["containers"]
            for one in container.get("env", ())
            if one["name"] == "PRATIQUE_OIDC_FILE"
        ]
        assert [one["secretName"] for one in volumes] == (["oidc"] if name == "web" else []), name
        told = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0].get("env", ())}
        assert told.get("PRATIQUE_ISSUERS_ELSEWHERE") == ("true" if name == "worker" else None), name
        assert [one["name"] for one in named] == (["oidc"] if name == "web" else []), name
        assert all(one["optional"] for one in (*volumes, *named))
    (policy,) = [one["spec"] for one in POLICIES if one["metadata"]["name"] == "issuers"]
    assert policy["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "web"
    assert policy["policyTypes"] == ["Egress"]
