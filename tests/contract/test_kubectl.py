"""What people type at a cluster that they try out: kubectl, whole, on the real API server and on the sandbox."""

from __future__ import annotations

import itertools
import json
import select
import subprocess

import pytest

from tests.contract.conftest import APPS, RBAC, Server
from tests.contract.objects import binding, config, web
from tests.support.kubernetes.live import wait_until

# What the real one answers changes with its version alone; the sandbox changes with us.
pytestmark = pytest.mark.parametrize(
    "server",
    [pytest.param("controlplane", marks=[pytest.mark.controlplane, pytest.mark.thorough]), "sandbox"],
    indirect=True,
)
LONG = "--timeout=120s"


def _manifest(*objects: object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


@pytest.fixture
def deployed(server: Server) -> Server:
    """A Deployment of one pod that runs."""
    server.create("deployments", web(), APPS)
    server.here("rollout", "status", "deployment/web", LONG)
    return server


def test_a_conflict_names_manager_and_field_and_force_takes_it(server: Server) -> None:
    server.apply_to(server.place(name="settings"), config(a="1"), "one")
    refused = server.apply(config(a="2"), "two")
    assert refused.returncode != 0
    assert 'conflict with "one"' in refused.stderr
    assert ".data.a" in refused.stderr
    assert server.apply(config(a="2"), "two", "--force-conflicts").returncode == 0
    assert server.get("configmaps", "settings")["data"] == {"a": "2"}


def test_custom_resources_are_shown_in_columns_and_their_sizes_checked(server: Server, things: str) -> None:
    thing = {"apiVersion": f"{things}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 3}}
    server.here("create", "-f", "-", given=thing)
    assert server.here("get", f"things.{things}").split() == ["NAME", "SIZE", "a", "3"]
    too_big = {**thing, "metadata": {"name": "b"}, "spec": {"size": 9}}
    refused = server.run("create", "-n", server.namespace, "-f", "-", given=json.dumps(too_big))
    assert "spec.size in body should be less than or equal to 5" in refused.stderr


def test_people_have_the_rights_that_are_bound_and_no_others(server: Server) -> None:
    assert server.run("get", "pods", "-n", server.namespace, user="mallory").returncode != 0
    server.create("rolebindings", binding("view", "mallory"), RBAC)
    server.until_may("mallory", "get", "pods")
    server.here("get", "pods", user="mallory")
    secrets = server.run("get", "secrets", "-n", server.namespace, user="mallory")
    assert 'User "mallory" cannot list resource "secrets"' in secrets.stderr
    assert server.here("auth", "can-i", "list", "pods", user="mallory").strip() == "yes"
    assert server.run("auth", "can-i", "delete", "pods", "-n", server.namespace, user="mallory").stdout.strip() == "no"


def test_people_list_what_they_may_do(server: Server) -> None:
    server.grant("carol", {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]})
    lines = server.here("auth", "can-i", "--list", user="carol").splitlines()
    (line,) = [line for line in lines if line.startswith("deployments.apps")]
    assert line.split() == ["deployments.apps", "[]", "[]", "[get", "list]"]
    assert any(line.startswith("selfsubjectaccessreviews.authorization.k8s.io") for line in lines)


def test_describe_and_scale_work(deployed: Server) -> None:
    deployed.here("scale", "deployment/web", "--replicas=2")
    deployed.here("rollout", "status", "deployment/web", LONG)
    assert "2 desired" in deployed.here("describe", "deployment", "web")
    assert "web" in deployed.here("describe", "pods", "-l", "app=web")
    assert "Replicas:" in deployed.here("describe", "replicasets", "-l", "app=web")
    deployed.here("get", "events")


def test_kinds_and_fields_are_explained(server: Server, things: str) -> None:
    said = server.ctl("explain", "deployment.spec.replicas")
    assert all(words in said for words in ("KIND:       Deployment", "FIELD: replicas <integer>", "GROUP:      apps"))
    said = server.ctl("explain", "configmap", "--recursive")
    assert all(
        words in said for words in ("KIND:       ConfigMap", "data\t<map[string]string>", "finalizers\t<[]string>")
    )
    refused = server.run("explain", "configmap.nothing")
    assert (refused.returncode, 'field "nothing" does not exist' in refused.stderr) == (1, True)
    wait_until(lambda: server.run("explain", f"things.{things}.spec").returncode == 0, "its explanation")
    said = server.ctl("explain", f"things.{things}.spec")
    assert all(words in said for words in ("colour\t<string>", "size\t<integer> -required-"))


@pytest.mark.proof
def test_a_difference_is_shown_and_nothing_changes(server: Server) -> None:
    server.here("apply", "-f", "-", given=config(a="1"))
    same = server.run("diff", "-n", server.namespace, "-f", "-", given=json.dumps(config(a="1")))
    assert (same.returncode, same.stdout) == (0, "")
    other = server.run("diff", "-n", server.namespace, "-f", "-", given=json.dumps(config(a="2")))
    assert other.returncode == 1, other.stderr
    assert '-  a: "1"\n+  a: "2"' in other.stdout
    by_server = server.run("diff", "--server-side", "-n", server.namespace, "-f", "-", given=json.dumps(config(b="2")))
    assert by_server.returncode == 1, by_server.stderr
    assert '+  b: "2"' in by_server.stdout
    assert server.get("configmaps", "settings")["data"] == {"a": "1"}


def test_client_side_apply_prunes_and_says_what_it_did(server: Server) -> None:
    def apply(**data: str) -> str:
        return server.here("apply", "-f", "-", given=config(**data)).strip()

    assert apply(a="1", b="1") == "configmap/settings created"
    assert apply(a="1", b="1") == "configmap/settings unchanged"
    assert apply(a="1") == "configmap/settings configured"
    assert server.get("configmaps", "settings")["data"] == {"a": "1"}


def test_client_side_apply_takes_a_container_away_and_changes_one_of_a_kind_for_another(server: Server) -> None:
    wish = web()
    wish["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "example.com/side:1"})
    server.here("apply", "-f", "-", given=wish)
    wish["spec"]["template"]["spec"]["containers"].pop()
    wish["spec"]["strategy"] = {"type": "Recreate"}
    server.here("apply", "-f", "-", given=wish)
    spec = server.get("deployments", "web", APPS)["spec"]
    assert [container["name"] for container in spec["template"]["spec"]["containers"]] == ["web"]
    assert spec["strategy"] == {"type": "Recreate"}


def test_objects_that_are_no_longer_listed_are_pruned(server: Server) -> None:
    first, second = config("first", a="1"), config("second", a="1")
    for obj in (first, second):
        obj["metadata"]["labels"] = {"set": "ours"}
    words = ("apply", "--prune", "-l", "set=ours", "--prune-allowlist=core/v1/ConfigMap", "-f", "-")
    server.here(*words, given=_manifest(first, second))
    assert "configmap/second pruned" in server.here(*words, given=_manifest(first))
    assert server.ask("GET", server.place(name="second")).code == 404


def test_a_wait_ends_with_what_is_waited_for(server: Server) -> None:
    server.create("deployments", web(), APPS)
    server.here("wait", "deployment/web", "--for=condition=Available", LONG)
    server.here("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=1", LONG)
    assert [pod["status"]["phase"] for pod in server.get("pods", query="?labelSelector=app%3Dweb")["items"]] == [
        "Running"
    ]
    server.here("delete", "deployment", "web", "--wait=false")
    server.here("wait", "deployment/web", "--for=delete", LONG)
    server.here("wait", "pods", "-l", "app=web", "--for=delete", LONG)


def test_a_wait_for_what_does_not_come_fails(server: Server) -> None:
    server.create("configmaps", config(a="1"))
    words = ("wait", "-n", server.namespace, "configmap/settings", "--for=jsonpath={.data.a}=2", "--timeout=100ms")
    done = server.run(*words)
    assert (done.returncode, "timed out waiting for the condition" in done.stderr) == (1, True)


def test_a_rollout_goes_on_and_back(deployed: Server) -> None:
    deployed.here("set", "image", "deployment/web", "web=example.com/web:2")
    assert "successfully rolled out" in deployed.here("rollout", "status", "deployment/web", LONG)
    history = deployed.here("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines() if line[:1].isdigit()] == ["1", "2"]
    deployed.here("rollout", "undo", "deployment/web")
    deployed.here("rollout", "status", "deployment/web", LONG)
    (container,) = deployed.get("deployments", "web", APPS)["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "example.com/web:1"


def test_a_rollout_is_restarted(deployed: Server) -> None:
    before = {pod["metadata"]["uid"] for pod in deployed.get("pods")["items"]}
    deployed.here("rollout", "restart", "deployment/web")
    deployed.here("rollout", "status", "deployment/web", LONG)
    pods = [pod["metadata"] for pod in deployed.get("pods")["items"]]
    (running,) = [meta["uid"] for meta in pods if "deletionTimestamp" not in meta]
    assert running not in before


def test_a_watch_shows_what_happens(server: Server) -> None:
    server.create("configmaps", config(a="1"))
    words = ["get", "configmap", "settings", "-n", server.namespace, "-w", "-o", "jsonpath={.data.a}{'\\n'}"]
    command = [server.kubectl, "--kubeconfig", str(server.kubeconfig), *words]
    numbers = itertools.count(2)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        out = watch.stdout
        assert out is not None
        assert out.readline() == "1\n"

        def is_shown() -> bool:
            # It keeps the first event back, for it has shown the object: which change that is depends on when it asks.
            server.ask("PUT", server.place(name="settings"), config(a=str(next(numbers))))
            return bool(select.select([out], [], [], 0.1)[0])

        try:
            wait_until(is_shown, "a change is shown")
            assert int(out.readline()) > 1
        finally:
            watch.terminate()


@pytest.mark.parametrize(("cascade", "is_kept"), [("background", False), ("foreground", False), ("orphan", True)])
def test_what_belongs_to_the_deleted_goes_or_stays_as_asked(deployed: Server, cascade: str, is_kept: bool) -> None:
    def left() -> list[dict[str, dict[str, object]]]:
        return list(deployed.get("replicasets", api=APPS)["items"])

    deployed.here("delete", "deployment", "web", f"--cascade={cascade}", LONG)
    if is_kept:
        (replica_set,) = left()
        assert not replica_set["metadata"].get("ownerReferences")
    else:
        wait_until(lambda: not left(), "its ReplicaSet is gone")


def test_everything_of_ours_is_shown_and_deleted_at_once(deployed: Server) -> None:
    shown = deployed.here("get", "all")
    assert "deployment.apps/web" in shown
    assert "1/1" in shown
    assert 'deployment.apps "web" deleted' in deployed.here("delete", "all", "-l", "app!=other")


def test_labels_and_annotations_are_set_and_taken_away(server: Server) -> None:
    server.create("configmaps", config(a="1"))
    server.here("label", "configmap", "settings", "colour=red")
    refused = server.run("label", "configmap", "settings", "colour=blue", "-n", server.namespace)
    assert "already has a value (red), and --overwrite is false" in refused.stderr
    server.here("label", "configmap", "settings", "colour=blue", "--overwrite")
    server.here("annotate", "configmap", "settings", "note=hello")
    meta = server.get("configmaps", "settings")["metadata"]
    assert (meta["labels"], meta["annotations"]) == ({"colour": "blue"}, {"note": "hello"})
    server.here("label", "configmap", "settings", "colour-")
    assert "labels" not in server.get("configmaps", "settings")["metadata"]


def test_objects_are_made_from_words(server: Server) -> None:
    server.here("create", "configmap", "made", "--from-literal=a=1")
    server.here("create", "secret", "generic", "hidden", "--from-literal=a=1")
    server.here("create", "deployment", "made", "--image=example.com/web:1")
    server.here("expose", "deployment", "made", "--port=80")
    server.here("create", "role", "made", "--verb=get", "--resource=pods")
    server.here("create", "rolebinding", "made", "--role=made", "--user=zoe")
    assert server.get("secrets", "hidden")["data"] == {"a": "MQ=="}
    assert server.get("services", "made")["spec"]["ports"][0]["port"] == 80
    assert server.here("auth", "can-i", "get", "pods", "--as=zoe").strip() == "yes"


def test_the_kinds_of_the_cluster_are_listed(server: Server) -> None:
    names = server.ctl("api-resources", "-o", "name").split()
    assert {
        "pods",
        "deployments.apps",
        "roles.rbac.authorization.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
    } <= {*names}
    assert "apps/v1" in server.ctl("api-versions").split()


def test_a_list_of_several_is_applied_by_the_server_too(server: Server) -> None:
    words = ("apply", "--server-side", "-n", server.namespace, "-f", "-")
    server.ctl(*words, given=_manifest(config("first", a="1"), config("second", a="1")))
    assert server.run(*words, given=_manifest({**config("third"), "dat": {}})).returncode != 0
    assert server.ask("GET", server.place(name="third")).code == 404


def test_what_is_wrong_in_a_manifest_is_said(server: Server) -> None:
    wrong = web(imagee="x")
    refused = server.run("apply", "-n", server.namespace, "-f", "-", given=json.dumps(wrong))
    assert refused.returncode != 0
    assert 'unknown field "spec.template.spec.containers[0].imagee"' in refused.stderr


def test_an_object_is_edited_by_hand(server: Server) -> None:
    server.create("configmaps", config(a="1"))
    patch = ("patch", "configmap", "settings", "-n", server.namespace, "--type=json", "-p")
    server.ctl(*patch, '[{"op":"replace","path":"/data/a","value":"2"}]')
    assert server.get("configmaps", "settings")["data"] == {"a": "2"}
    refused = server.run(*patch, '[{"op":"replace","path":"/data/none/x","value":"2"}]')
    assert "the server rejected our request due to an error in our request" in refused.stderr


def test_a_replace_needs_what_is_replaced(server: Server) -> None:
    refused = server.run("replace", "-n", server.namespace, "-f", "-", given=json.dumps(config(a="1")))
    assert 'configmaps "settings" not found' in refused.stderr
    server.create("configmaps", config(a="1"))
    server.here("replace", "-f", "-", given=config(b="2"))
    assert server.get("configmaps", "settings")["data"] == {"b": "2"}
