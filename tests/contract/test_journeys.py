"""What people type at a cluster that they try out: kubectl, whole."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.contract.conftest import Server
from tests.contract.objects import binding, config, role, web
from tests.support.kubernetes.live import wait_until


def _manifest(*objects: object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def test_a_field_is_explained(server: Server) -> None:
    said = server.ctl("explain", "deployment.spec.replicas")
    assert "KIND:       Deployment" in said
    assert "FIELD: replicas <integer>" in said
    assert "GROUP:      apps" in said


def test_a_kind_is_explained_with_all_its_fields(server: Server) -> None:
    said = server.ctl("explain", "configmap", "--recursive")
    assert "KIND:       ConfigMap" in said
    assert "data\t<map[string]string>" in said
    assert "finalizers\t<[]string>" in said


def test_a_field_that_is_none_is_not_explained(server: Server) -> None:
    refused = server.run("explain", "configmap.nothing")
    assert refused.returncode != 0
    assert 'field "nothing" does not exist' in refused.stderr


def test_a_custom_kind_is_explained(server: Server) -> None:
    group = server.define_things()
    try:
        wait_until(lambda: server.run("explain", f"things.{group}.spec").returncode == 0, "its explanation")
        said = server.ctl("explain", f"things.{group}.spec")
    finally:
        server.ctl("delete", "crd", f"things.{group}", "--wait=false")
    assert "colour\t<string>" in said
    assert "size\t<integer> -required-" in said


def test_a_difference_is_shown_and_nothing_changes(server: Server) -> None:
    server.ctl("apply", "-n", server.namespace, "-f", "-", given=config(a="1"))
    same = server.run("diff", "-n", server.namespace, "-f", "-", given=json.dumps(config(a="1")))
    assert (same.returncode, same.stdout) == (0, "")
    other = server.run("diff", "-n", server.namespace, "-f", "-", given=json.dumps(config(a="2")))
    assert other.returncode == 1, other.stderr
    assert '-  a: "1"\n+  a: "2"' in other.stdout
    by_server = server.run("diff", "--server-side", "-n", server.namespace, "-f", "-", given=json.dumps(config(b="2")))
    assert by_server.returncode == 1, by_server.stderr
    assert '+  b: "2"' in by_server.stdout
    assert server.get("configmap", "settings")["data"] == {"a": "1"}


def test_client_side_apply_prunes_and_says_what_it_did(server: Server) -> None:
    def apply(**data: str) -> str:
        return server.ctl("apply", "-n", server.namespace, "-f", "-", given=config(**data)).strip()

    assert apply(a="1", b="1") == "configmap/settings created"
    assert apply(a="1", b="1") == "configmap/settings unchanged"
    assert apply(a="1") == "configmap/settings configured"
    assert server.get("configmap", "settings")["data"] == {"a": "1"}


def test_client_side_apply_takes_a_container_away(server: Server) -> None:
    both = web()
    both["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "example.com/side:1"})
    server.ctl("apply", "-n", server.namespace, "-f", "-", given=both)
    server.ctl("apply", "-n", server.namespace, "-f", "-", given=web())
    (container,) = server.get("deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "web"


def test_client_side_apply_changes_one_of_a_kind_for_another(server: Server) -> None:
    wish = web()
    server.ctl("apply", "-n", server.namespace, "-f", "-", given=wish)
    wish["spec"]["strategy"] = {"type": "Recreate"}
    server.ctl("apply", "-n", server.namespace, "-f", "-", given=wish)
    assert server.get("deployment", "web")["spec"]["strategy"] == {"type": "Recreate"}


def test_objects_that_are_no_longer_listed_are_pruned(server: Server) -> None:
    first, second = config("first", a="1"), config("second", a="1")
    for obj in (first, second):
        obj["metadata"]["labels"] = {"set": "ours"}
    words = (
        "apply",
        "-n",
        server.namespace,
        "--prune",
        "-l",
        "set=ours",
        "--prune-allowlist=core/v1/ConfigMap",
        "-f",
        "-",
    )
    server.ctl(*words, given=_manifest(first, second))
    assert "configmap/second pruned" in server.ctl(*words, given=_manifest(first))
    assert server.run("get", "configmap", "second", "-n", server.namespace).returncode != 0


def test_a_wait_ends_with_what_is_waited_for(server: Server) -> None:
    server.apply(web())
    server.ctl(
        "wait", "-n", server.namespace, "deployment/web", "--for=jsonpath={.status.readyReplicas}=1", "--timeout=120s"
    )
    server.ctl("delete", "deployment", "web", "-n", server.namespace, "--wait=false")
    server.ctl("wait", "-n", server.namespace, "deployment/web", "--for=delete", "--timeout=120s")
    server.ctl("wait", "-n", server.namespace, "pods", "-l", "app=web", "--for=delete", "--timeout=120s")


def test_a_wait_for_what_does_not_come_fails(server: Server) -> None:
    server.apply(config(a="1"))
    done = server.run(
        "wait", "-n", server.namespace, "configmap/settings", "--for=jsonpath={.data.a}=2", "--timeout=1s"
    )
    assert done.returncode != 0
    assert "timed out waiting for the condition" in done.stderr


def test_a_rollout_goes_on_and_back(server: Server) -> None:
    place = ("-n", server.namespace, "deployment/web")
    server.apply(web("example.com/web:1"))
    server.ctl("rollout", "status", *place, "--timeout=120s")
    server.ctl("set", "image", *place, "web=example.com/web:2")
    assert "successfully rolled out" in server.ctl("rollout", "status", *place, "--timeout=120s")
    history = server.ctl("rollout", "history", *place)
    assert [line.split()[0] for line in history.splitlines() if line[:1].isdigit()] == ["1", "2"]
    server.ctl("rollout", "undo", *place)
    server.ctl("rollout", "status", *place, "--timeout=120s")
    (container,) = server.get("deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "example.com/web:1"


def test_a_rollout_is_restarted(server: Server) -> None:
    place = ("-n", server.namespace, "deployment/web")
    server.apply(web())
    server.ctl("rollout", "status", *place, "--timeout=120s")
    before = {pod["metadata"]["uid"] for pod in server.get("pods", "-l", "app=web")["items"]}
    server.ctl("rollout", "restart", *place)
    server.ctl("rollout", "status", *place, "--timeout=120s")
    running = [
        pod for pod in server.get("pods", "-l", "app=web")["items"] if "deletionTimestamp" not in pod["metadata"]
    ]
    assert len(running) == 1
    assert running[0]["metadata"]["uid"] not in before


def test_people_list_what_they_may_do(server: Server) -> None:
    rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]}
    server.ctl("apply", "-n", server.namespace, "-f", "-", given=role("some", rule))
    server.ctl("apply", "-n", server.namespace, "-f", "-", given=binding("some", "carol", "Role"))
    server.until_may("carol", "list", "deployments", "apps")
    lines = server.ctl("auth", "can-i", "--list", "-n", server.namespace, user="carol").splitlines()
    (line,) = [it for it in lines if it.startswith("deployments.apps")]
    assert line.split() == ["deployments.apps", "[]", "[]", "[get", "list]"]
    assert any(it.startswith("selfsubjectaccessreviews.authorization.k8s.io") for it in lines)


def test_a_watch_shows_what_happens(server: Server) -> None:
    server.apply(config(a="1"))
    words = ["get", "configmap", "settings", "-n", server.namespace, "-w", "-o", "jsonpath={.data.a}{'\\n'}"]
    command = [server.kubectl, "--kubeconfig", str(server.kubeconfig), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline() == "1\n"
        server.apply(config(a="2"))
        assert watch.stdout.readline() == "2\n"
        watch.terminate()


@pytest.mark.parametrize(("cascade", "is_kept"), [("background", False), ("foreground", False), ("orphan", True)])
def test_what_belongs_to_the_deleted_goes_or_stays_as_asked(server: Server, cascade: str, is_kept: bool) -> None:
    server.apply(web())
    server.ctl("rollout", "status", "deployment/web", "-n", server.namespace, "--timeout=120s")
    server.ctl("delete", "deployment", "web", "-n", server.namespace, f"--cascade={cascade}", "--timeout=120s")
    if is_kept:
        (left,) = server.get("replicasets", "-l", "app=web")["items"]
        assert not left["metadata"].get("ownerReferences")
    else:
        server.ctl("wait", "replicasets", "-l", "app=web", "-n", server.namespace, "--for=delete", "--timeout=120s")
        assert server.get("replicasets", "-l", "app=web")["items"] == []


def test_everything_of_ours_is_shown_and_deleted_at_once(server: Server) -> None:
    server.apply(web())
    server.ctl("rollout", "status", "deployment/web", "-n", server.namespace, "--timeout=120s")
    shown = server.ctl("get", "all", "-n", server.namespace)
    assert "deployment.apps/web" in shown
    assert "1/1" in shown
    assert 'deployment.apps "web" deleted' in server.ctl("delete", "all", "-l", "app!=other", "-n", server.namespace)


def test_labels_and_annotations_are_set_and_taken_away(server: Server) -> None:
    place = ("configmap", "settings", "-n", server.namespace)
    server.apply(config(a="1"))
    server.ctl("label", *place, "colour=red")
    refused = server.run("label", *place, "colour=blue")
    assert "already has a value (red), and --overwrite is false" in refused.stderr
    server.ctl("label", *place, "colour=blue", "--overwrite")
    server.ctl("annotate", *place, "note=hello")
    meta = server.get("configmap", "settings")["metadata"]
    assert (meta["labels"], meta["annotations"]) == ({"colour": "blue"}, {"note": "hello"})
    server.ctl("label", *place, "colour-")
    assert "labels" not in server.get("configmap", "settings")["metadata"]


def test_objects_are_made_from_words(server: Server) -> None:
    space = ("-n", server.namespace)
    server.ctl("create", "configmap", "made", "--from-literal=a=1", *space)
    server.ctl("create", "secret", "generic", "hidden", "--from-literal=a=1", *space)
    server.ctl("create", "deployment", "made", "--image=example.com/web:1", *space)
    server.ctl("expose", "deployment", "made", "--port=80", *space)
    server.ctl("create", "role", "made", "--verb=get", "--resource=pods", *space)
    server.ctl("create", "rolebinding", "made", "--role=made", "--user=zoe", *space)
    assert server.get("secret", "hidden")["data"] == {"a": "MQ=="}
    assert server.get("service", "made")["spec"]["ports"][0]["port"] == 80
    assert server.ctl("auth", "can-i", "get", "pods", "--as=zoe", *space).strip() == "yes"


def test_the_kinds_of_the_cluster_are_listed(server: Server) -> None:
    names = server.ctl("api-resources", "-o", "name").split()
    for name in (
        "pods",
        "deployments.apps",
        "roles.rbac.authorization.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
    ):
        assert name in names
    assert "apps/v1" in server.ctl("api-versions").split()


def test_a_list_of_several_is_applied_by_the_server_too(server: Server) -> None:
    words = ("apply", "--server-side", "-n", server.namespace, "-f", "-")
    server.ctl(*words, given=_manifest(config("first", a="1"), config("second", a="1")))
    wrong = config("third")
    wrong["dat"] = {}
    refused = server.run(*words, given=_manifest(wrong))
    assert refused.returncode != 0
    assert server.run("get", "configmap", "third", "-n", server.namespace).returncode != 0


def test_what_is_wrong_in_a_manifest_is_said(server: Server) -> None:
    wrong = web()
    wrong["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    refused = server.run("apply", "-n", server.namespace, "-f", "-", given=json.dumps(wrong))
    assert refused.returncode != 0
    assert 'unknown field "spec.template.spec.containers[0].imagee"' in refused.stderr


def test_events_and_logs_do_not_break(server: Server) -> None:
    server.ctl("get", "events", "-n", server.namespace)
    server.apply(web())
    server.ctl("rollout", "status", "deployment/web", "-n", server.namespace, "--timeout=120s")
    assert "web" in server.ctl("describe", "pods", "-l", "app=web", "-n", server.namespace)
    assert "Replicas:" in server.ctl("describe", "replicasets", "-l", "app=web", "-n", server.namespace)


def test_an_object_is_edited_by_hand(server: Server) -> None:
    server.ctl("apply", "-n", server.namespace, "-f", "-", given=config(a="1"))
    patch = '[{"op":"replace","path":"/data/a","value":"2"}]'
    server.ctl("patch", "configmap", "settings", "-n", server.namespace, "--type=json", "-p", patch)
    assert server.get("configmap", "settings")["data"] == {"a": "2"}
    wrong = '[{"op":"replace","path":"/data/none/x","value":"2"}]'
    refused = server.run("patch", "configmap", "settings", "-n", server.namespace, "--type=json", "-p", wrong)
    assert "the server rejected our request due to an error in our request" in refused.stderr


def test_a_replace_needs_what_is_replaced(server: Server) -> None:
    refused = server.run("replace", "-n", server.namespace, "-f", "-", given=json.dumps(config(a="1")))
    assert 'configmaps "settings" not found' in refused.stderr
    server.apply(config(a="1"))
    server.ctl("replace", "-n", server.namespace, "-f", "-", given=config(b="2"))
    assert server.get("configmap", "settings")["data"] == {"b": "2"}
