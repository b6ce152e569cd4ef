"""What pods need by name: whether the bundle or the cluster has it, or something will make it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from provisioner.api_groups import RBAC_GROUP
from provisioner.review.checks.availability import pod_needs
from provisioner.review.frame import mentioned
from provisioner.values import Action, ObjectRef, Severity
from tests.support.provisioner.contents import (
    an_object,
    config_map,
    content_with,
    core_ref,
    facts,
    findings_of,
    named,
    planned,
    reading,
    web_workload,
)

found_by = partial(findings_of, pod_needs.NEEDS_CHECK)


@pytest.mark.parametrize(
    ("pod", "exists", "severities"),
    [
        pytest.param(web_workload(env=[reading("Secret", "s", "k")]), {core_ref("Secret", "s"): True}, [], id="there"),
        pytest.param(
            web_workload(env=[reading("Secret", "s", "k")]),
            {core_ref("Secret", "s"): False},
            [Severity.BREAKING],
            id="nowhere",
        ),
        pytest.param(web_workload(env=[reading("Secret", "s", "k")]), {}, [Severity.UNKNOWN], id="nobody may look"),
        pytest.param(web_workload(env=[reading("Secret", "s", optional=True)]), {}, [], id="optional"),
        pytest.param(
            web_workload(volumes=[{"name": "v", "configMap": {"name": "c"}}]),
            {core_ref("ConfigMap", "c"): False},
            [Severity.BREAKING],
            id="a volume",
        ),
        pytest.param(
            web_workload(volumes=[{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]),
            {core_ref("Secret", "s"): False},
            [Severity.BREAKING],
            id="inside a projected volume",
        ),
        pytest.param(
            web_workload(volumes=[{"name": "v", "configMap": {"name": "kube-root-ca.crt"}}]),
            {},
            [],
            id="in every namespace",
        ),
    ],
)
def test_what_pods_read_has_to_be_there(
    pod: dict[str, Any], exists: dict[ObjectRef, bool], severities: list[Severity]
) -> None:
    found = found_by(planned(pod, Action.CREATE), exists=exists)
    assert [one.severity for one in named(found, "SEC-04")] == severities


@pytest.mark.parametrize(
    ("key", "count"), [pytest.param("a", 0, id="a key it has"), pytest.param("b", 1, id="a key it has not")]
)
def test_a_map_of_the_bundle_needs_the_key_that_is_read(key: str, count: int) -> None:
    pod = web_workload(env=[reading("ConfigMap", "settings", key)])
    found = found_by(planned(config_map(a="x"), Action.CREATE), planned(pod, Action.CREATE))
    assert len(named(found, "SEC-04")) == count


def test_a_secret_that_an_object_of_the_bundle_makes_is_no_obstacle() -> None:
    certificate = an_object("cert-manager.io/v1", "Certificate", "web", "shop", spec={"secretName": "tls"})
    pod = web_workload(env=[reading("Secret", "tls", "tls.crt")])
    exists = {core_ref("Secret", "tls"): False}
    (found,) = named(
        found_by(planned(certificate, Action.CREATE), planned(pod, Action.CREATE), exists=exists), "SEC-04"
    )
    assert found.severity is Severity.NOTABLE
    assert "Certificate.cert-manager.io shop/web" in found.message


def test_a_pull_secret_that_nobody_has_is_said() -> None:
    pod = web_workload(imagePullSecrets=[{"name": "pull"}])
    found = found_by(planned(pod, Action.CREATE), exists={core_ref("Secret", "pull"): False})
    assert [one.severity for one in named(found, "IMG-09")] == [Severity.DANGEROUS]


def test_of_secrets_only_existence_is_asked() -> None:
    given = facts(planned(web_workload(env=[reading("Secret", "s", "k")]), Action.CREATE))
    assert mentioned(given, [pod_needs.NEEDS_CHECK]) == [core_ref("Secret", "s")]


MOUNTING = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.mark.parametrize(
    ("pod", "missing", "words"),
    [
        pytest.param(
            MOUNTING, core_ref("PersistentVolumeClaim", "data"), "mounts PersistentVolumeClaim shop/data", id="claim"
        ),
        pytest.param(
            {"serviceAccountName": "web"},
            core_ref("ServiceAccount", "web"),
            "runs as ServiceAccount shop/web",
            id="account",
        ),
    ],
)
def test_claims_and_accounts_have_to_be_there(pod: dict[str, Any], missing: ObjectRef, words: str) -> None:
    made = planned(web_workload(**pod), Action.CREATE)
    (found,) = named(found_by(made, exists={missing: False}), "SEC-04")
    assert found.severity is Severity.BREAKING
    assert words in found.message
    assert named(found_by(made, exists={missing: True}), "SEC-04") == []


def test_the_default_account_is_in_every_namespace() -> None:
    pod = planned(web_workload(serviceAccountName="default"), Action.CREATE)
    assert named(found_by(pod), "SEC-04") == []
    assert mentioned(facts(pod), [pod_needs.NEEDS_CHECK]) == []


def test_what_exists_and_is_deleted_by_the_change_is_missing_afterwards() -> None:
    pod, gone = web_workload(env=[reading("ConfigMap", "settings", "a")]), config_map(a="x")
    actions = [planned(pod, Action.NONE), planned(gone, Action.DELETE, before=gone)]
    (found,) = named(found_by(*actions, exists={core_ref("ConfigMap", "settings"): True}), "SEC-04")
    assert (found.severity, "which this change deletes" in found.message) == (Severity.BREAKING, True)


def rights(account: str, resource: str, verb: str) -> list[Any]:
    role = an_object(
        f"{RBAC_GROUP}/v1", "Role", "r", "shop", rules=[{"apiGroups": [""], "resources": [resource], "verbs": [verb]}]
    )
    binding = an_object(
        f"{RBAC_GROUP}/v1",
        "RoleBinding",
        "r",
        "shop",
        roleRef={"apiGroup": RBAC_GROUP, "kind": "Role", "name": "r"},
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": "shop"}],
    )
    return [planned(one, Action.CREATE) for one in (role, binding)]


@pytest.mark.parametrize(
    ("account", "resource", "verb", "severity"),
    [
        pytest.param("redis", "secrets", "create", Severity.NOTABLE, id="may make it"),
        pytest.param("redis", "secrets", "get", Severity.BREAKING, id="may only read it"),
        pytest.param("redis", "configmaps", "create", Severity.BREAKING, id="may make something else"),
        pytest.param("stranger", "secrets", "create", Severity.BREAKING, id="no pod runs as the account"),
    ],
)
def test_an_account_of_the_bundle_that_may_make_it_is_named(
    account: str, resource: str, verb: str, severity: Severity
) -> None:
    """So the init container of Argo CD's Redis makes the Secret of its password."""
    pod = planned(web_workload(env=[reading("Secret", "password", "auth")], serviceAccountName="redis"), Action.CREATE)
    exists = {core_ref("Secret", "password"): False, core_ref("ServiceAccount", "redis"): True}
    (found,) = named(found_by(pod, *rights(account, resource, verb), exists=exists), "SEC-04")
    assert found.severity is severity
    assert ("unless a container of their own makes it" in found.message) is (severity is Severity.NOTABLE)


def certgen(kind: str = "Job", name: str = "certgen") -> dict[str, Any]:
    spec = {"serviceAccountName": "certgen", "containers": [{"name": "main", "image": "x"}]}
    return an_object("batch/v1" if kind == "Job" else "apps/v1", kind, name, "shop", spec={"template": {"spec": spec}})


def of_secret(*others: dict[str, Any], exists: bool | None = False, **rest: Any) -> tuple[Severity, str]:
    """What is said of a pod that reads a Secret that others may make."""
    pod = web_workload(volumes=[{"name": "v", "secret": {"secretName": "tls"}}])
    there = {core_ref("ServiceAccount", "certgen"): True} | (
        {} if exists is None else {core_ref("Secret", "tls"): exists}
    )
    actions = [planned(pod, Action.CREATE), *(planned(one, Action.CREATE) for one in others)]
    (found,) = named(found_by(*actions, exists=there, **rest), "SEC-04")
    return found.severity, found.message.partition("Secret shop/tls, ")[2]


def test_a_job_whose_account_may_create_the_secret_is_named() -> None:
    """So certgen of Contour makes the certificates that Envoy and Contour read."""
    made = [one.after for one in rights("certgen", "secrets", "create")]
    severity, words = of_secret(certgen(), certgen("Deployment", "an-operator"), *made)
    assert severity is Severity.NOTABLE
    assert words.partition(": ")[0] == "which is neither in the bundle nor in the cluster"
    assert words.endswith("do not start unless Job shop/certgen or Deployment shop/an-operator makes it")


def test_a_job_that_the_cluster_itself_gives_the_right_is_named() -> None:
    given = tuple(one.after for one in rights("certgen", "secrets", "create"))
    severity, words = of_secret(certgen(), live_rbac=given)
    assert (severity, "unless Job shop/certgen makes it" in words) == (Severity.NOTABLE, True)


def test_a_job_without_the_right_makes_nothing() -> None:
    assert of_secret(certgen(), live_rbac=())[0] is Severity.BREAKING


def test_what_nobody_could_look_for_may_still_be_made() -> None:
    made = [one.after for one in rights("certgen", "secrets", "create")]
    assert of_secret(certgen(), *made, exists=None) == (
        Severity.NOTABLE,
        "and whether it exists is not known: its pods do not start without it, unless Job shop/certgen makes it",
    )


def test_the_certificate_that_a_service_asks_its_platform_for_is_no_obstacle() -> None:
    service = an_object("v1", "Service", "web", "shop")
    service["metadata"]["annotations"] = {"service.beta.openshift.io/serving-cert-secret-name": "tls"}
    pod = web_workload(volumes=[{"name": "v", "secret": {"secretName": "tls"}}])
    actions = [planned(one, Action.CREATE) for one in (service, pod)]
    (found,) = named(found_by(*actions, exists={core_ref("Secret", "tls"): False}), "SEC-04")
    assert found.severity is Severity.NOTABLE


def mounting(source: dict[str, Any], **mount: Any) -> dict[str, Any]:
    made = web_workload(volumes=[{"name": "v", **source}])
    made["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/etc/x", **mount}]
    return made


def projected(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"projected": {"sources": list(sources)}}


def conf(*keys: str, **more: Any) -> dict[str, Any]:
    items = [{"key": key, "path": f"as/{key}"} for key in keys]
    return {"configMap": {"name": "c", **({"items": items} if items else {}), **more}}


@pytest.mark.parametrize(
    ("pod", "variants"),
    [
        pytest.param(mounting(conf("a")), [], id="a key that is there"),
        pytest.param(mounting(conf("a", "gone")), ["no-key"], id="a key that is gone"),
        pytest.param(mounting(conf("gone", optional=True)), [], id="optional"),
        pytest.param(mounting(projected(conf("gone"))), ["no-key"], id="projected"),
        pytest.param(mounting(conf(), subPath="a"), [], id="a file that is there"),
        pytest.param(mounting(conf(), subPath="gone"), ["no-file"], id="a file that is gone"),
        pytest.param(mounting(conf("a"), subPath="a"), ["no-file"], id="a file by its key that has another name"),
        pytest.param(mounting(conf("a"), subPath="as/a"), [], id="a file by its name"),
        pytest.param(mounting(conf("a"), subPath="as"), [], id="a folder"),
    ],
)
def test_keys_that_volumes_name_are_in_the_bundle(pod: dict[str, Any], variants: list[str]) -> None:
    brought = config_map("c", a="1")
    found = found_by(planned(pod, Action.CREATE), planned(brought, Action.CREATE))
    assert [one.variant for one in named(found, "SEC-04")] == variants


def test_what_comes_without_keys_is_filled_by_somebody_unless_it_had_the_key() -> None:
    pod, empty, full = mounting(conf("a")), config_map("c"), config_map("c", a="1")
    first = found_by(planned(pod, Action.CREATE), planned(empty, Action.CREATE))
    assert [one.severity for one in named(first, "SEC-04")] == [Severity.NOTABLE]
    actions = planned(pod, Action.UPDATE, before=pod), planned(empty, Action.UPDATE, before=full)
    then = found_by(*actions, previous=content_with(pod, full))
    assert [one.severity for one in named(then, "SEC-04")] == [Severity.BREAKING]
