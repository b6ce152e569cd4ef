"""Nothing is deleted to be made anew that would then be refused (Flux' force deletes first)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from provisioner.cluster.plan.trials import _is_of_the_trial, creation_refusal, other_name
from provisioner.errors import (
    AlreadyExists,
    ClusterError,
    FieldConflict,
    Forbidden,
    InvalidObject,
    PreconditionFailed,
    UnknownKind,
)
from provisioner.values import Action, Identity, Manifest, ObjectRef, OutcomeState
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.live import wait_until
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, failures
from tests.support.provisioner.flaky import flaky, status

RBAC = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io/v1"
NEW = "example.com/migrate:2"


def uid(scene: Scene, obj: Any) -> str:
    live: Any = scene.live(obj)
    return str(live["metadata"]["uid"])


def as_installer(scene: Scene, *rules: dict[str, Any]) -> Any:
    """From now on the scene is the installer's, who may do this with Jobs; gives back the admin's cluster."""
    admin = scene.cluster
    every = [{"apiGroups": ["batch"], "resources": ["jobs"], **rule} for rule in rules]
    admin.apply(scene.namespaced(f"{RBAC}/v1", "Role", "installer", rules=every), field_manager="admin", force=True)
    binding = scene.namespaced(
        f"{RBAC}/v1",
        "RoleBinding",
        "installer",
        roleRef={"kind": "Role", "name": "installer", "apiGroup": RBAC},
        subjects=[{"kind": "ServiceAccount", "name": "installer", "namespace": scene.namespace}],
    )
    admin.apply(binding, field_manager="admin")
    scene.cluster = admin.acting_as(Identity.of_service_account(scene.namespace, "installer"))
    return admin


@contextmanager
def refused_by_policy(scene: Scene) -> Iterator[str]:
    """A policy of the cluster that lets no new Job of this namespace have the new image; its name."""
    policy = {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": scene.namespace},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
                "resourceRules": [
                    {
                        "apiGroups": ["batch"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["jobs"],
                    }
                ],
            },
            "validations": [
                {"expression": f"object.spec.template.spec.containers.all(it, it.image != '{NEW}')", "message": "no"}
            ],
        },
    }
    binding = {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": scene.namespace},
        "spec": {"policyName": scene.namespace, "validationActions": ["Deny"]},
    }
    for one in (policy, binding):
        scene.cluster.create(one)
    try:
        wait_until(lambda: is_refused(scene))
        yield scene.namespace
    finally:
        for one in (binding, policy):
            scene.cluster.delete(ObjectRef.of(one))


def is_refused(scene: Scene) -> bool:
    probe = Manifest(scene.job("probe", image=NEW))
    return creation_refusal(scene.cluster, probe, field_manager=MANAGER) is not None


def is_over_quota(scene: Scene) -> bool:
    """Whether admission has seen the quota: it reads a copy of its own."""
    try:
        scene.cluster.apply(scene.job("second"), field_manager=MANAGER, dry_run=True)
    except Forbidden as exc:
        return "exceeded quota" in exc.server_words
    return False


def may_plan(scene: Scene) -> bool:
    """Whether the server has seen the rights that were given to the installer a moment ago."""
    return action_of(scene.plan(scene.job()), scene.job()).problem == ""


def test_what_can_be_made_anew_is_replaced_and_the_trial_leaves_nothing(scene: Scene) -> None:
    scene.deploy(scene.job())
    before = uid(scene, scene.job())
    planned = scene.plan(new := scene.job(image=NEW))
    assert (action_of(planned, new).action, action_of(planned, new).problem) == (Action.REPLACE, "")
    assert failures(scene.apply(planned, new)) == []
    assert uid(scene, new) != before
    kind = scene.cluster.resource_of("batch", "v1", "Job")
    assert kind is not None
    jobs = scene.cluster.list(kind, scene.namespace)
    assert [one["metadata"]["name"] for one in jobs] == ["migrate"]


def test_who_may_not_create_gets_told_before_anything_is_deleted(scene: Scene) -> None:
    scene.deploy(scene.job())
    before = uid(scene, scene.job())
    admin = as_installer(scene, {"verbs": ["get", "list", "patch", "delete"]})
    wait_until(lambda: may_plan(scene))
    planned = scene.plan(new := scene.job(image=NEW))
    found = action_of(planned, new)
    assert (found.action, found.problem_code) == (Action.REPLACE, Forbidden.code)
    assert "would then be refused" in found.problem
    assert "cannot create resource" in found.problem
    with pytest.raises(PreconditionFailed, match="cannot create"):
        scene.apply(planned, new)
    scene.cluster = admin
    assert uid(scene, new) == before


def test_a_right_that_is_lost_after_the_plan_is_missed_before_the_old_object_goes(scene: Scene) -> None:
    scene.deploy(scene.job())
    before = uid(scene, scene.job())
    admin = as_installer(scene, {"verbs": ["get", "list", "create", "patch", "delete"]})
    wait_until(lambda: may_plan(scene))
    planned = scene.plan(new := scene.job(image=NEW))
    assert action_of(planned, new).problem == ""
    scene.cluster = admin
    as_installer(scene, {"verbs": ["get", "list", "patch", "delete"]})
    wait_until(lambda: is_refused(scene))
    (outcome,) = scene.apply(planned, new)
    assert outcome.state is OutcomeState.FAILED
    assert "would then be refused" in outcome.message
    scene.cluster = admin
    assert uid(scene, new) == before


def test_rights_by_name_do_not_stop_a_replacement_because_it_was_tried_under_another(scene: Scene) -> None:
    scene.deploy(scene.job())
    before = uid(scene, scene.job())
    named = {"verbs": ["get", "patch", "delete"], "resourceNames": ["migrate"]}
    as_installer(scene, {"verbs": ["create", "list"]}, named)
    wait_until(lambda: may_plan(scene))
    planned = scene.plan(new := scene.job(image=NEW))
    assert (action_of(planned, new).action, action_of(planned, new).problem) == (Action.REPLACE, "")
    assert failures(scene.apply(planned, new)) == []
    assert uid(scene, new) != before


def test_what_a_policy_would_refuse_is_a_problem_of_the_plan_and_the_old_object_stays(real_scene: Scene) -> None:
    scene = real_scene
    scene.deploy(scene.job())
    before = uid(scene, scene.job())
    with refused_by_policy(scene) as name:
        found = action_of(scene.plan(new := scene.job(image=NEW)), new)
        assert found.action is Action.REPLACE
        assert f"'{name}'" in found.server_words
        assert other_name("migrate") in found.problem
    wait_until(lambda: not is_refused(scene))
    assert uid(scene, new) == before
    assert failures(scene.deploy(new)) == []


def test_what_a_policy_refuses_since_the_plan_is_found_before_the_old_object_goes(real_scene: Scene) -> None:
    scene = real_scene
    scene.deploy(scene.job())
    before = uid(scene, scene.job())
    planned = scene.plan(new := scene.job(image=NEW))
    with refused_by_policy(scene):
        (outcome,) = scene.apply(planned, new)
    assert outcome.state is OutcomeState.FAILED
    assert "would then be refused" in outcome.message
    assert uid(scene, new) == before


def test_a_replacement_that_was_reviewed_is_tried_again_though_the_old_object_is_as_it_was(real_scene: Scene) -> None:
    scene = real_scene
    old, new = scene.job(), scene.job(image=NEW)
    for one in (old, new):
        one["spec"]["suspend"] = True  # or its controller would go on writing on it
    scene.deploy(old)
    wait_until(lambda: bool((scene.live(old) or {}).get("status", {}).get("conditions")))
    reviewed, before = scene.plan(new), scene.live(old)
    with refused_by_policy(scene):
        assert action_of(scene.plan(new, reviewed=reviewed), new).problem
    assert scene.live(old) == before


def test_the_share_of_a_quota_that_the_old_object_has_stops_nothing(real_scene: Scene) -> None:
    scene = real_scene
    scene.deploy(scene.job())
    before = uid(scene, scene.job())
    scene.cluster.create(
        quota := scene.namespaced("v1", "ResourceQuota", "one", spec={"hard": {"count/jobs.batch": "1"}})
    )
    wait_until(lambda: (scene.live(quota) or {}).get("status", {}).get("used") == {"count/jobs.batch": "1"})
    wait_until(lambda: is_over_quota(scene))
    assert failures(scene.deploy(new := scene.job(image=NEW))) == []
    assert uid(scene, new) != before


def test_a_quota_that_counts_the_deleted_object_for_a_moment_longer_is_waited_for(
    scene: Scene, api_server: Endpoint
) -> None:
    scene.deploy(scene.job())
    with flaky(api_server) as (line, cluster):
        scene.cluster = cluster
        planned = scene.plan(new := scene.job(image=NEW))
        line.troubles = [lambda: None, status(403, "Forbidden", "exceeded quota: one")]  # of deletion and creation
        assert failures(scene.apply(planned, new)) == []
        assert line.troubles == []


def test_the_ports_that_the_old_object_has_stop_nothing(real_scene: Scene) -> None:
    scene = real_scene
    web = scene.service()
    web["spec"] |= {"type": "NodePort"}
    scene.deploy(web)
    live: Any = scene.live(web)
    port = {**web["spec"]["ports"][0], "nodePort": live["spec"]["ports"][0]["nodePort"]}
    address = f"{live['spec']['clusterIP'].rsplit('.', 1)[0]}.251"
    moved = {**web, "spec": {**web["spec"], "ports": [port], "clusterIP": address}}
    found = action_of(scene.plan(moved), moved)
    assert (found.action, found.problem) == (Action.REPLACE, "")
    assert failures(scene.deploy(moved)) == []
    again: Any = scene.live(moved)
    assert (again["spec"]["clusterIP"], again["metadata"]["uid"] != live["metadata"]["uid"]) == (address, True)


def test_a_label_that_repeats_the_name_stops_nothing(real_scene: Scene) -> None:
    scene = real_scene
    old, new = scene.job(), scene.job(image=NEW)
    for one in (old, new):
        one["spec"]["template"]["metadata"] = {"labels": {"job-name": "migrate"}}
    scene.deploy(old)
    before = uid(scene, old)
    assert failures(scene.deploy(new)) == []
    assert uid(scene, new) != before


def test_a_custom_resource_that_has_to_be_called_so_is_replaced(real_scene: Scene) -> None:
    scene = real_scene
    schema = (definition := scene.definition())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["x-kubernetes-validations"] = [{"rule": "self.metadata.name == 'cluster'"}]
    kept = {"rule": "self == oldSelf", "message": "size is immutable"}
    schema["properties"]["spec"]["properties"]["size"]["x-kubernetes-validations"] = [kept]
    old, new = scene.widget("cluster", size=1), scene.widget("cluster", size=2)
    assert failures(scene.deploy(definition, old)) == []
    before = uid(scene, old)
    planned = scene.plan(definition, new)
    assert (action_of(planned, new).action, action_of(planned, new).problem) == (Action.REPLACE, "")
    assert failures(scene.apply(planned, definition, new)) == []
    assert uid(scene, new) != before


@pytest.mark.parametrize("name", ["a", "m", "ab", "gb", "web", "migrate-5", "x" * 63, "x.example.com", "system:admin"])
def test_the_other_name_is_another_of_the_same_length_and_form(name: str) -> None:
    found = other_name(name)
    assert found != name
    assert len(found) == len(name)
    assert found[-1].isalpha()
    assert found[0].isalpha()
    assert found[: max(0, len(name) - 8)] == name[: max(0, len(name) - 8)]


JOB = ObjectRef("batch", "v1", "Job", "harbour", "migrate")
SECRET = ObjectRef("", "v1", "Secret", "harbour", "token")
CAUSE = {"causes": [{"field": "metadata.name", "message": "too long"}]}
LABEL = {
    "causes": [{"field": "spec.template.metadata.labels[job-name]", "message": f"must be '{other_name('migrate')}'"}]
}
NAMED = {"causes": [{"message": f"policy: '{other_name('migrate')}' may not run"}]}
DENIED = "ValidatingAdmissionPolicy 'x' with binding 'x' denied request: no"
LACKING = 'User "u" cannot {verb} resource "jobs" in API group "batch" in the namespace "harbour"'


@pytest.mark.parametrize(
    ("ref", "error", "is_of_the_trial"),
    [
        pytest.param(JOB, AlreadyExists("x"), True, id="an object of the other name"),
        pytest.param(JOB, PreconditionFailed("x"), True, id="a conflict"),
        pytest.param(JOB, FieldConflict("x"), True, id="a conflict of fields"),
        pytest.param(JOB, UnknownKind("x"), True, id="a kind that went"),
        pytest.param(JOB, Forbidden(LACKING.format(verb="patch")), True, id="a right by name"),
        pytest.param(JOB, Forbidden(LACKING.format(verb="create")), False, id="no right to create"),
        pytest.param(JOB, Forbidden("x", server_words="exceeded quota: one"), True, id="quota"),
        pytest.param(JOB, Forbidden("x", server_words="violates PodSecurity"), False, id="pod security"),
        pytest.param(SECRET, Forbidden("refused (Forbidden)"), True, id="a Secret, who knows why"),
        pytest.param(SECRET, Forbidden(LACKING.format(verb="create")), False, id="a Secret, no right"),
        pytest.param(JOB, InvalidObject("x", server_words="provided port is already allocated"), True, id="a port"),
        pytest.param(JOB, InvalidObject("x", details=CAUSE), True, id="the name"),
        pytest.param(JOB, InvalidObject("x", details=LABEL), True, id="a field that has to be the name"),
        pytest.param(
            JOB,
            InvalidObject("x", server_words="failed rule: self.metadata.name == 'it'"),
            True,
            id="a rule about the name",
        ),
        pytest.param(JOB, InvalidObject("no", details=NAMED), False, id="a policy that names what it refuses"),
        pytest.param(JOB, InvalidObject("x", server_words="metadata.namespace: no"), False, id="the namespace"),
        pytest.param(
            JOB,
            InvalidObject("x", server_words='admission webhook "x" does not support dry run'),
            True,
            id="no dry runs",
        ),
        pytest.param(
            JOB, InvalidObject("x", server_words='admission webhook "x" denied the request'), False, id="a webhook"
        ),
        pytest.param(JOB, InvalidObject("x", server_words=DENIED), False, id="a policy"),
        pytest.param(JOB, InvalidObject("x", server_words="spec.x: Required value"), False, id="the object"),
    ],
)
def test_what_only_the_trial_meets_proves_nothing(ref: ObjectRef, error: ClusterError, is_of_the_trial: bool) -> None:
    assert _is_of_the_trial(ref, error) is is_of_the_trial


def pod(scene: Scene, **spec: Any) -> dict[str, Any]:
    return scene.namespaced("v1", "Pod", "one", spec={"containers": [{"name": "main", "image": "x:1"}], **spec})


def cluster_scoped(scene: Scene, api_version: str, kind: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": scene.namespace}, **rest}


def test_a_pod_comes_with_its_account_and_its_classes(real_scene: Scene) -> None:
    scene = real_scene
    account = scene.namespaced("v1", "ServiceAccount", "runner")
    priority = cluster_scoped(scene, "scheduling.k8s.io/v1", "PriorityClass", value=10)
    runtime = cluster_scoped(scene, "node.k8s.io/v1", "RuntimeClass", handler="other")
    one = pod(scene, serviceAccountName="runner", priorityClassName=scene.namespace, runtimeClassName=scene.namespace)
    bundle = (one, account, priority, runtime)
    planned = scene.plan(*bundle)
    action = action_of(planned, one)
    assert (action.action, action.problem, action.is_proved) == (Action.CREATE, "", False)
    assert failures(scene.apply(planned, *bundle)) == []
    assert scene.live(one)


def test_an_account_that_does_not_come_along_is_a_problem(real_scene: Scene) -> None:
    one = pod(real_scene, serviceAccountName="runner")
    other = real_scene.namespaced("v1", "ServiceAccount", "walker")
    assert action_of(real_scene.plan(one, other), one).problem_code == Forbidden.code


def test_another_refusal_of_such_a_pod_is_a_problem(real_scene: Scene) -> None:
    account = real_scene.namespaced("v1", "ServiceAccount", "runner")
    real_scene.deploy(account)
    one = pod(real_scene, serviceAccountName="runner", priorityClassName="nobody-made-this")
    assert "nobody-made-this" in action_of(real_scene.plan(one, account), one).server_words


def test_a_pod_whose_fields_cannot_change_is_replaced(real_scene: Scene) -> None:
    account = real_scene.namespaced("v1", "ServiceAccount", "runner")
    one, changed = (pod(real_scene, serviceAccountName="runner", hostname=name) for name in ("a", "b"))
    assert failures(real_scene.deploy(account, one)) == []
    planned = real_scene.plan(account, changed)
    assert action_of(planned, changed).action is Action.REPLACE
    assert failures(real_scene.apply(planned, account, changed)) == []


def test_a_priority_class_with_another_value_is_replaced(real_scene: Scene) -> None:
    one, changed = (
        cluster_scoped(real_scene, "scheduling.k8s.io/v1", "PriorityClass", value=value) for value in (10, 11)
    )
    real_scene.deploy(one)
    planned = real_scene.plan(changed)
    assert action_of(planned, changed).action is Action.REPLACE
    assert failures(real_scene.apply(planned, changed)) == []


def test_annotations_that_leave_no_room_for_our_own_are_a_problem_before_anything_is_touched(real_scene: Scene) -> None:
    full = real_scene.config_map("full")
    full["metadata"]["annotations"] = {"a": "x" * (256 * 1024 - len("a"))}
    action = action_of(real_scene.plan(real_scene.config_map("before"), full), full)
    assert (action.problem_code, "annotations" in action.server_words) == (InvalidObject.code, True)


def test_an_object_too_large_to_be_stored_is_not_tried_until_the_deadline(real_scene: Scene) -> None:
    definition = real_scene.definition()
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    huge = real_scene.widget()
    huge["spec"] = {"text": "x" * 1_600_000}
    found = real_scene.deploy(definition, huge)
    (outcome,) = [one for one in found if one.ref == ObjectRef.of(huge)]
    assert "too large" in outcome.server_words
