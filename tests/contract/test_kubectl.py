"""What people do with kubectl, on the real API server and on the sandbox."""

from __future__ import annotations

import json

import pytest

from tests.contract.conftest import Server
from tests.contract.objects import config, web


def test_a_deployment_becomes_available_and_is_waited_for(server: Server) -> None:
    assert server.apply(web()).returncode == 0
    server.ctl("wait", "-n", server.namespace, "deployment/web", "--for=condition=Available", "--timeout=120s")
    server.ctl("rollout", "status", "-n", server.namespace, "deployment/web", "--timeout=120s")
    pods = server.get("pods", "-l", "app=web")["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Running"]


def test_a_conflict_names_manager_and_field_and_force_takes_it(server: Server) -> None:
    assert server.apply(config(a="1"), "one").returncode == 0
    refused = server.apply(config(a="2"), "two")
    assert refused.returncode != 0
    assert 'conflict with "one"' in refused.stderr
    assert ".data.a" in refused.stderr
    assert server.apply(config(a="2"), "two", "--force-conflicts").returncode == 0
    assert server.get("configmap", "settings")["data"] == {"a": "2"}


def test_the_same_value_is_shared_and_not_fought_over(server: Server) -> None:
    assert server.apply(config(a="1"), "one").returncode == 0
    assert server.apply(config(a="1"), "two").returncode == 0
    assert server.apply({**config(), "data": {"b": "1"}}, "one").returncode == 0
    assert server.get("configmap", "settings")["data"] == {"a": "1", "b": "1"}


def test_what_is_no_longer_applied_goes(server: Server) -> None:
    server.apply(config(a="1", b="2"), "one")
    server.apply(config(b="2"), "one")
    assert server.get("configmap", "settings")["data"] == {"b": "2"}


def test_containers_are_merged_by_name(server: Server) -> None:
    server.apply(web(), "one")
    only_env = web()
    only_env["spec"]["template"]["spec"]["containers"] = [{"name": "web", "env": [{"name": "A", "value": "1"}]}]
    assert server.apply(only_env, "two").returncode == 0
    (container,) = server.get("deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"]) == ("example.com/web:1", [{"name": "A", "value": "1"}])


def test_managed_fields_tell_managers_and_operations(server: Server) -> None:
    server.apply(config(a="1"), "one")
    server.ctl("patch", "configmap", "settings", "-n", server.namespace, "--type=merge", "-p", '{"data":{"b":"2"}}')
    entries = server.get("configmap", "settings")["metadata"]["managedFields"]
    told = {(it["manager"], it["operation"]): it["fieldsV1"] for it in entries}
    assert told["one", "Apply"] == {"f:data": {"f:a": {}}}
    assert told["kubectl-patch", "Update"]["f:data"] == {"f:b": {}}


def test_a_dry_run_changes_nothing(server: Server) -> None:
    server.apply(config(a="1"), "one")
    before = server.get("configmap", "settings")
    assert server.apply(config(a="2"), "one", "--dry-run=server").returncode == 0
    assert server.get("configmap", "settings") == before


@pytest.mark.parametrize("field", ["sepc", "spec.template.spec.containerz"], ids=["top", "deep"])
def test_an_undeclared_field_is_refused(server: Server, field: str) -> None:
    wrong = web()
    node = wrong
    *above, last = field.split(".")
    for part in above:
        node = node[part]
    node[last] = {}
    refused = server.apply(wrong)
    assert refused.returncode != 0
    assert "field not declared in schema" in refused.stderr


def test_an_immutable_selector_is_refused(server: Server) -> None:
    server.apply(web())
    other = web()
    other["spec"]["selector"]["matchLabels"] = other["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    refused = server.apply(other)
    assert refused.returncode != 0
    assert "field is immutable" in refused.stderr


def test_custom_resources_are_defaulted_pruned_and_validated(server: Server) -> None:
    group = server.define_things()
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 3}}
    server.ctl("create", "-n", server.namespace, "-f", "-", given=thing)
    assert server.get(f"things.{group}", "a")["spec"] == {"size": 3, "colour": "red"}
    shown = server.ctl("get", f"things.{group}", "-n", server.namespace)
    assert shown.split()[:2] == ["NAME", "SIZE"]
    too_big = {**thing, "metadata": {"name": "b"}, "spec": {"size": 9}}
    refused = server.run("create", "-n", server.namespace, "-f", "-", given=json.dumps(too_big))
    assert "spec.size in body should be less than or equal to 5" in refused.stderr
    server.ctl("delete", "crd", f"things.{group}", "--wait=false")


def test_people_have_the_rights_that_are_bound_and_no_others(server: Server) -> None:
    assert server.run("get", "pods", "-n", server.namespace, user="mallory").returncode != 0
    server.ctl(
        "create",
        "rolebinding",
        "view",
        "--clusterrole=view",
        "--user=mallory",
        "-n",
        server.namespace,
        "--dry-run=client",
        "-o",
        "json",
    )
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "mallory"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}],
    }
    server.ctl("apply", "-n", server.namespace, "-f", "-", given=binding)
    server.until_may("mallory", "get", "pods")
    server.ctl("get", "pods", "-n", server.namespace, user="mallory")
    secrets = server.run("get", "secrets", "-n", server.namespace, user="mallory")
    assert 'User "mallory" cannot list resource "secrets"' in secrets.stderr
    assert server.ctl("auth", "can-i", "list", "pods", "-n", server.namespace, user="mallory").strip() == "yes"
    assert server.run("auth", "can-i", "delete", "pods", "-n", server.namespace, user="mallory").stdout.strip() == "no"


def test_nobody_grants_what_they_do_not_have(server: Server) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "writers"},
        "rules": [
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create", "get", "patch"]}
        ],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "writers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writers"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "carol"}],
    }
    for obj in (role, binding):
        server.ctl("apply", "-n", server.namespace, "-f", "-", given=obj)
    server.until_may("carol", "create", "roles", "rbac.authorization.k8s.io")
    greedy = {
        **role,
        "metadata": {"name": "greedy"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    }
    refused = server.run("create", "-n", server.namespace, "-f", "-", user="carol", given=json.dumps(greedy))
    assert "attempting to grant RBAC permissions not currently held" in refused.stderr


def test_tokens_of_service_accounts_count(server: Server) -> None:
    server.ctl(
        "apply",
        "-n",
        server.namespace,
        "-f",
        "-",
        given={"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}},
    )
    token = server.ctl("create", "token", "robot", "-n", server.namespace).strip()
    who = server.run("auth", "whoami", "-o", "json", "--as=system:serviceaccount:" + server.namespace + ":robot")
    groups = json.loads(who.stdout)["status"]["userInfo"]["groups"]
    assert f"system:serviceaccounts:{server.namespace}" in groups
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = server.endpoint.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert answer["status"]["user"]["username"] == f"system:serviceaccount:{server.namespace}:robot"


def test_finalizers_hold_an_object_until_they_are_gone(server: Server) -> None:
    held = config(a="1")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    server.ctl("apply", "-n", server.namespace, "-f", "-", given=held)
    server.ctl("delete", "configmap", "settings", "-n", server.namespace, "--wait=false")
    assert server.get("configmap", "settings")["metadata"]["deletionTimestamp"]
    server.ctl(
        "patch",
        "configmap",
        "settings",
        "-n",
        server.namespace,
        "--type=merge",
        "-p",
        '{"metadata":{"finalizers":null}}',
    )
    assert server.run("get", "configmap", "settings", "-n", server.namespace).returncode != 0


def test_a_claim_goes_once_no_pod_uses_it(server: Server) -> None:
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    server.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "hold"}, "spec": size})
    volume = {"name": "hold", "persistentVolumeClaim": {"claimName": "hold"}}
    container = {"name": "main", "image": "registry.example.com/main"}
    spec = {"nodeName": "elsewhere", "containers": [container], "volumes": [volume]}
    server.ctl("wait", "serviceaccount/default", "--for=create", "-n", server.namespace, "--timeout=120s")
    server.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": spec})
    assert server.get("pvc", "hold")["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert server.run("delete", "pvc", "hold", "-n", server.namespace, "--timeout=2s").returncode != 0
    assert server.get("pvc", "hold")["metadata"]["deletionTimestamp"]
    server.ctl("delete", "pod", "user", "-n", server.namespace, "--force")
    server.ctl("wait", "--for=delete", "pvc/hold", "-n", server.namespace, "--timeout=120s")


def test_describe_and_scale_work(server: Server) -> None:
    server.apply(web())
    server.ctl("scale", "deployment/web", "-n", server.namespace, "--replicas=2")
    server.ctl("rollout", "status", "-n", server.namespace, "deployment/web", "--timeout=120s")
    assert "2 desired" in server.ctl("describe", "deployment", "web", "-n", server.namespace)


def test_subject_access_reviews_know_groups_and_masters(server: Server) -> None:
    def allowed(user: str, *groups: str) -> bool:
        attributes = {"verb": "approve", "group": "core.rukpak.io", "resource": "bundledeployments", "name": "x"}
        spec = {"user": user, "groups": list(groups), "resourceAttributes": attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = server.endpoint.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    assert not allowed("nobody")
    assert allowed("nobody", "system:masters")
