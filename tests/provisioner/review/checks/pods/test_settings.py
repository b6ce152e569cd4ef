"""Configuration and secrets: missing, immutable, in plain sight, or changed behind the back of running pods."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import Surroundings
from provisioner.review.checks.pods import settings
from provisioner.review.frame import mentioned, report
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, config_map, facts, planned


def workload(*, env: list[Any] | None = None, volumes: list[Any] | None = None, **pod: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "env": env or []}
    spec = {"containers": [container], "volumes": volumes or [], **pod}
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"template": {"spec": spec}})


def reading(kind: str, name: str, key: str = "", *, optional: bool = False) -> dict[str, Any]:
    word = "configMapKeyRef" if kind == "ConfigMap" else "secretKeyRef"
    return {"name": "A", "valueFrom": {word: {"name": name, "key": key, "optional": optional}}}


def ref(kind: str, name: str) -> ObjectRef:
    return ObjectRef("", "v1", kind, "shop", name)


def found_by(*actions: Any, exists: dict[ObjectRef, bool] | None = None, **rest: Any) -> list[Finding]:
    around = Surroundings(exists={one.identity: answer for one, answer in (exists or {}).items()})
    return list(report(facts(*actions, around=around, **rest), [settings.CHECK]).findings)


def named(found: list[Finding], rule: str) -> list[Finding]:
    return [one for one in found if one.rule == rule]


@pytest.mark.parametrize(
    ("pod", "exists", "severities"),
    [
        pytest.param(workload(env=[reading("Secret", "s", "k")]), {ref("Secret", "s"): True}, [], id="there"),
        pytest.param(
            workload(env=[reading("Secret", "s", "k")]), {ref("Secret", "s"): False}, [Severity.BREAKING], id="nowhere"
        ),
        pytest.param(workload(env=[reading("Secret", "s", "k")]), {}, [Severity.UNKNOWN], id="nobody may look"),
        pytest.param(workload(env=[reading("Secret", "s", optional=True)]), {}, [], id="optional"),
        pytest.param(
            workload(volumes=[{"name": "v", "configMap": {"name": "c"}}]),
            {ref("ConfigMap", "c"): False},
            [Severity.BREAKING],
            id="a volume",
        ),
        pytest.param(
            workload(volumes=[{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]),
            {ref("Secret", "s"): False},
            [Severity.BREAKING],
            id="inside a projected volume",
        ),
        pytest.param(
            workload(volumes=[{"name": "v", "configMap": {"name": "kube-root-ca.crt"}}]),
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
    pod = workload(env=[reading("ConfigMap", "settings", key)])
    found = found_by(planned(config_map(a="x"), Action.CREATE), planned(pod, Action.CREATE))
    assert len(named(found, "SEC-04")) == count


def test_a_secret_that_an_object_of_the_bundle_makes_is_no_obstacle() -> None:
    certificate = an_object("cert-manager.io/v1", "Certificate", "web", "shop", spec={"secretName": "tls"})
    pod = workload(env=[reading("Secret", "tls", "tls.crt")])
    exists = {ref("Secret", "tls"): False}
    (found,) = named(
        found_by(planned(certificate, Action.CREATE), planned(pod, Action.CREATE), exists=exists), "SEC-04"
    )
    assert found.severity is Severity.NOTABLE
    assert "Certificate.cert-manager.io shop/web" in found.message


def test_a_pull_secret_that_nobody_has_is_said() -> None:
    pod = workload(imagePullSecrets=[{"name": "pull"}])
    found = found_by(planned(pod, Action.CREATE), exists={ref("Secret", "pull"): False})
    assert [one.severity for one in named(found, "IMG-09")] == [Severity.DANGEROUS]


def test_of_secrets_only_existence_is_asked() -> None:
    given = facts(planned(workload(env=[reading("Secret", "s", "k")]), Action.CREATE))
    assert mentioned(given, [settings.CHECK]) == [ref("Secret", "s")]


@pytest.mark.parametrize(
    ("key", "value", "count"),
    [
        pytest.param("password", "Pl4nted", 1, id="password"),
        pytest.param("DB_PASSWORD", "Pl4nted", 1, id="inside a name"),
        pytest.param("api-key", "Pl4nted", 1, id="key"),
        pytest.param("password", "", 0, id="empty"),
        pytest.param("password", "/etc/pw/file", 0, id="a path"),
        pytest.param("token", "true", 0, id="a switch"),
        pytest.param("token", "$(TOKEN)", 0, id="a reference"),
        pytest.param("passwordPolicy", "strict", 0, id="another word"),
    ],
)
def test_what_is_named_like_a_credential_is_said_without_its_value(key: str, value: str, count: int) -> None:
    in_map = found_by(planned(config_map(**{key: value}), Action.CREATE))
    in_pod = found_by(planned(workload(env=[{"name": key, "value": value}]), Action.CREATE))
    assert [len(named(found, "SEC-02")) for found in (in_map, in_pod)] == [count, count]
    assert "Pl4nted" not in str(in_map + in_pod)


@pytest.mark.parametrize(
    ("before", "count"),
    [
        pytest.param({**config_map(a="1"), "immutable": True}, 1, id="immutable"),
        pytest.param(config_map(a="1"), 0, id="plain"),
        pytest.param({**config_map(a="2"), "immutable": True, "metadata": {"name": "settings"}}, 0, id="same data"),
    ],
)
def test_an_immutable_map_cannot_change(before: dict[str, Any], count: int) -> None:
    after = {**config_map(a="2"), "immutable": True} if count == 0 and before.get("immutable") else config_map(a="2")
    assert len(named(found_by(planned(after, Action.REPLACE, before=before)), "SEC-03")) == count


@pytest.mark.parametrize(
    ("pods_too", "count"),
    [pytest.param(False, 1, id="the pods stay"), pytest.param(True, 0, id="the pods change as well")],
)
def test_changed_configuration_reaches_only_pods_that_start_anew(pods_too: bool, count: int) -> None:
    old = workload(env=[reading("ConfigMap", "settings", "a")])
    new = workload(env=[reading("ConfigMap", "settings", "a")], hostname="new") if pods_too else old
    changed = planned(config_map(a="2"), Action.UPDATE, before=config_map(a="1"))
    found = found_by(changed, planned(new, Action.UPDATE if pods_too else Action.NONE, before=old))
    assert len(named(found, "SEC-05")) == count


def test_a_token_that_never_ends_is_said() -> None:
    secret = an_object("v1", "Secret", "token", "shop", type="kubernetes.io/service-account-token")
    assert named(found_by(planned(secret, Action.CREATE)), "SEC-06")
