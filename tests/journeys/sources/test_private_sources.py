"""Sources that need something of the cluster: a Secret that opens them, a ConfigMap that is one."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.utils import timezone

from approvals.access.port import connect
from approvals.models import AuditEntry, FloatingReference, Request
from approvals.rights.known_names import registered
from approvals.steps import prepare
from provisioner.errors import Forbidden
from provisioner.values import Identity
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import SERVICE, DeployedSite, group
from tests.support.journeys.floating import branch, commit, look, numbers, sources_condition
from tests.support.journeys.pull_secrets import PAIR, PASSWORD, USER, docker_config, secret
from tests.support.servers.certificates import CertificateAuthority
from tests.support.servers.http import GitServer
from tests.support.servers.registry import Registry

PLAIN: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}, "data": {"a": "b"}}
RBAC = "rbac.authorization.k8s.io"
RITA = Identity("rita", ("requesters",))


def config_map(site: DeployedSite, name: str, **more: Any) -> None:
    meta = {"name": name, "namespace": site.namespace}
    site.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **more})


def let_requesters_get(site: DeployedSite, resource: str, name: str) -> None:
    meta = {"name": f"get-{name}", "namespace": site.namespace}
    rule = {"apiGroups": [""], "resources": [resource], "resourceNames": [name], "verbs": ["get"]}
    api_version = f"{RBAC}/v1"
    site.api.create({"apiVersion": api_version, "kind": "Role", "metadata": meta, "rules": [rule]})
    site.api.create(
        {
            "apiVersion": api_version,
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": meta["name"]},
            "subjects": [group("requesters")],
        }
    )
    site.until_may(RITA, "get", resource, name=name)


def take_away(site: DeployedSite, resource: str, name: str) -> None:
    site.ctl("delete", f"role/get-{name}", f"rolebinding/get-{name}", "-n", site.namespace)
    site.until_may(RITA, "get", resource, name=name, is_allowed=False)


def locked_image(registry: Registry, name: str, secret_name: str = "pull") -> dict[str, Any]:
    source = bundles.image(registry, name, bundles.app(name, "1"))
    body = source["image"]
    assert isinstance(body, Mapping)
    return {**source, "image": {**body, "auth": {"secret": {"name": secret_name}}}}


def wished(site: DeployedSite, name: str, *sources: Mapping[str, Any]) -> Request:
    deployment = site.prepare(name, *sources)
    return site.latest(deployment)


def is_told_nowhere(request: Request, *more: str) -> bool:
    rows = [
        *Request.objects.filter(pk=request.pk).values(),
        *AuditEntry.objects.filter(deployment=request.deployment.name).values(),
    ]
    return not any(word in str(rows) for word in (PASSWORD, PAIR, *more))


@pytest.mark.proof
def test_S08_a_private_image_is_prepared_for_who_may_get_its_secret_and_applied(
    real_site: DeployedSite, registry_with_auth: Registry
) -> None:
    docker_config(real_site, registry_with_auth.host)
    let_requesters_get(real_site, "secrets", "pull")
    request = wished(real_site, "vault", locked_image(registry_with_auth, "vault"))
    assert request.state == "in_review", request.problem
    assert real_site.approve(request.deployment).state == "applied"
    assert real_site.live("Deployment", "vault")
    assert is_told_nowhere(request)


def test_S08_a_private_image_is_refused_to_who_may_not_get_its_secret(
    real_site: DeployedSite, registry_with_auth: Registry
) -> None:
    docker_config(real_site, registry_with_auth.host)
    request = wished(real_site, "closed", locked_image(registry_with_auth, "closed"))
    assert (request.state, request.problem_code) == ("preparing", "forbidden")
    assert "does not allow rita to get" in request.problem
    assert is_told_nowhere(request)


def test_S08_nothing_is_read_for_a_requester_whom_nobody_knows(
    real_site: DeployedSite, registry_with_auth: Registry
) -> None:
    docker_config(real_site, registry_with_auth.host)
    let_requesters_get(real_site, "secrets", "pull")
    deployment = real_site.submit_spec("stranger", locked_image(registry_with_auth, "stranger"))
    deployment.requests.update(is_requester_known=False, requesters=[])
    request = real_site.after_work(deployment)
    assert (request.state, request.problem_code) == ("failed", "forbidden")
    assert f"Secret {real_site.namespace}/pull, and the requester is unknown" in request.problem


def test_a_deletion_reads_no_source_so_it_needs_no_right_to_one(real_site: DeployedSite) -> None:
    config_map(real_site, "bundle", data={"a.yaml": yaml.safe_dump(PLAIN)})
    let_requesters_get(real_site, "configmaps", "bundle")
    request = wished(
        real_site, f"{real_site.namespace}-emptied", {"kind": "configMap", "configMap": {"name": "bundle"}}
    )
    assert real_site.approve(request.deployment).state == "applied"
    real_site.look_after(request.deployment)
    take_away(real_site, "configmaps", "bundle")
    real_site.delete(request.deployment)
    real_site.work()
    assert real_site.approve(request.deployment).state == "applied"
    assert real_site.live("ConfigMap", PLAIN["metadata"]["name"]) is None


def test_S08_a_right_that_is_gone_by_the_time_of_applying_stops_it(real_site: DeployedSite) -> None:
    config_map(real_site, "bundle", data={"a.yaml": yaml.safe_dump(PLAIN)})
    let_requesters_get(real_site, "configmaps", "bundle")
    request = wished(real_site, f"{real_site.namespace}-late", {"kind": "configMap", "configMap": {"name": "bundle"}})
    take_away(real_site, "configmaps", "bundle")
    assert real_site.approve(request.deployment).state == "approved"
    assert real_site.live("ConfigMap", PLAIN["metadata"]["name"]) is None


def test_S08_the_service_reads_as_the_requester_and_says_so_where_it_may_not(real_site: DeployedSite) -> None:
    config_map(real_site, "bundle", data={"a.yaml": yaml.safe_dump(PLAIN)})
    deployment = real_site.submit_spec(
        f"{real_site.namespace}-stale", {"kind": "configMap", "configMap": {"name": "bundle"}}
    )
    request = real_site.latest(deployment)
    api = connect(real_site.cluster)
    with pytest.raises(Forbidden, match=r"bundle cannot be read as rita, who may get it: .*cannot get resource"):
        prepare.reader_as_requester(request, api)(real_site.ref("ConfigMap", "bundle"))


@pytest.fixture
def asking(yard: CertificateAuthority, tmp_path: Path) -> Iterator[Registry]:
    """A registry that wants a password and a certificate, and has one of an authority that no system knows."""
    program = shutil.which("docker-registry")
    assert program, "tests/install installs it"
    tls = yard.server(tmp_path / "tls")
    served = Registry.start(program, tmp_path, with_auth=True, tls=tls, clients=yard.pem)
    yield served
    served.stop()


@pytest.fixture
def yard() -> CertificateAuthority:
    return CertificateAuthority("yard")


def test_S08_certificates_of_a_secret_open_a_source_once_they_are_there_and_are_kept_nowhere(
    site: DeployedSite, asking: Registry, yard: CertificateAuthority, settings: Any
) -> None:
    name = f"certified-{site.namespace}"
    settings.PRATIQUE = {**settings.PRATIQUE, "PLAIN_HTTP_HOSTS": []}
    secret(site, "pull", "Opaque", username=USER, password=PASSWORD, **{"ca.crt": yard.pem})
    let_requesters_get(site, "secrets", "pull")
    request = wished(site, name, locked_image(asking, name))
    assert (request.state, request.problem_code) == ("preparing", "source-unavailable")
    assert "the server wants a client certificate" in request.problem
    pair = yard.pair("worker")
    more = {"tls.crt": pair.certificate, "tls.key": pair.key}
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in more.items()}
    pull = site.ref("Secret", "pull")
    site.edit(pull, lambda live: live["data"].update(encoded))
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    request = site.after_work(request.deployment)
    assert request.state == "in_review", request.problem
    assert is_told_nowhere(request, *pair.key.splitlines()[1:-1])
    assert site.approve(request.deployment).state == "applied"


def test_S08_S09_a_private_branch_is_looked_at_for_who_may_get_its_secret_and_the_others_are_told_why_not(
    site: DeployedSite, git_server_with_auth: GitServer
) -> None:
    server = git_server_with_auth
    repository = server.repository(f"{site.namespace}-private")
    commit(repository, site, "1")
    secret(site, "pull", "kubernetes.io/basic-auth", username=USER, password=PASSWORD)
    let_requesters_get(site, "secrets", "pull")
    git = {"repository": repository.url, "ref": {"branch": "main"}, "auth": {"secret": {"name": "pull"}}}
    deployment = site.prepare(repository.path.stem, branch(repository, git=git))
    assert numbers(deployment) == [(1, "in_review")]
    second = commit(repository, site, "2")
    look(deployment)
    site.work()
    assert site.latest(deployment).pins[0]["digest"] == second

    take_away(site, "secrets", "pull")
    third = commit(repository, site, "3")
    asked = len(server.asked)
    look(deployment)
    assert len(server.asked) == asked
    assert site.latest(deployment).number == 2
    down = sources_condition(site, deployment)
    assert (down["status"], down["reason"]) == ("False", "Forbidden")
    assert "does not allow rita to get" in down["message"]
    assert third not in str(down)

    let_requesters_get(site, "secrets", "pull")
    look(deployment)
    assert sources_condition(site, deployment)["status"] == "True"
    site.work()
    assert site.latest(deployment).pins[0]["digest"] == third
    rows = [*FloatingReference.objects.values(), *deployment.followed_references.values()]
    assert PASSWORD not in str(rows)
    assert is_told_nowhere(site.latest(deployment))


SECRETS = {
    "none": (None, "Secret {ns}/pull does not exist"),
    "another type": ({"type_": "example.com/pull", "config": "shh"}, "of type example.com/pull"),
    "certificates for a registry without TLS": (
        {"type_": "kubernetes.io/tls", "tls.crt": "shh", "tls.key": "shh"},
        "is asked without TLS as PRATIQUE_PLAIN_HTTP_HOSTS lists it",
    ),
    "no such key": ({"type_": "Opaque", "config": "shh"}, "has config; expected for an image: .dockerconfigjson"),
    "no such host": (
        {"type_": "kubernetes.io/dockerconfigjson", ".dockerconfigjson": '{"auths": {"r.example": {"auth": "c2ho"}}}'},
        "no credentials for 127.0.0.1",
    ),
}


@pytest.mark.parametrize(("given", "words"), SECRETS.values(), ids=SECRETS)
def test_a_secret_that_opens_nothing_is_said_by_its_keys(
    real_site: DeployedSite, registry_with_auth: Registry, given: dict[str, str] | None, words: str
) -> None:
    if given:
        secret(real_site, "pull", **given)
    let_requesters_get(real_site, "secrets", "pull")
    request = wished(real_site, f"wrong-{real_site.namespace}", locked_image(registry_with_auth, "wrong"))
    # What is not there, or does not open it, may come: it is asked for again.
    is_passing = given is None or ".dockerconfigjson" in given
    expected = ("preparing", "source-unavailable") if is_passing else ("failed", "bad-source")
    assert (request.state, request.problem_code) == expected
    assert words.format(ns=real_site.namespace) in request.problem
    assert not any(word in request.problem for word in ("shh", "c2ho"))


def test_a_config_map_is_a_bundle_from_wish_to_revision(real_site: DeployedSite) -> None:
    files = {path.rpartition("/")[2]: data for path, data in bundles.app("boxed", "1").items()}
    texts = {name: data.decode() for name, data in files.items() if name != "02.yaml"}
    encoded = {"02.yaml": base64.b64encode(files["02.yaml"]).decode()}
    config_map(real_site, "bundle", data=texts, binaryData=encoded, immutable=True)
    let_requesters_get(real_site, "configmaps", "bundle")
    request = wished(real_site, "boxed", {"kind": "configMap", "configMap": {"name": "bundle"}})
    assert request.state == "in_review", request.problem
    assert (request.pins[0]["kind"], request.pins[0]["reference"]) == ("configMap", f"{real_site.namespace}/bundle")
    assert real_site.approve(request.deployment).state == "applied"
    assert real_site.live("Deployment", "boxed")


def test_S08_a_config_map_is_not_read_for_who_may_not_get_it(real_site: DeployedSite) -> None:
    config_map(real_site, "bundle", data={"a.yaml": "kind: A"})
    request = wished(real_site, "peek", {"kind": "configMap", "configMap": {"name": "bundle"}})
    assert (request.state, request.problem_code) == ("preparing", "forbidden")
    assert "does not allow rita to get" in request.problem


def test_S31_a_secret_is_read_for_an_account_without_being_it(
    real_site: DeployedSite, registry_with_auth: Registry
) -> None:
    """A robot asked. Being it, with what the worker asks for as installers, would be all that the robot may."""
    docker_config(real_site, registry_with_auth.host)
    robot = Identity.of_service_account(real_site.namespace, "robot")
    let_account(real_site, "robot", "impersonate", "serviceaccounts", "installer")
    let_account(real_site, "robot", "get", "secrets", "pull")
    real_site.until_may(robot, "get", "secrets", name="pull")
    deployment = real_site.submit_spec("robots", locked_image(registry_with_auth, "robots"))
    asked = {"username": robot.username, "groups": [*robot.groups], "uid": "", "via": "rest"}
    asked["groups_at"] = timezone.now().isoformat()
    deployment.requests.update(requesters=[asked])
    request = real_site.after_work(deployment)
    assert (request.state, request.problem_code) == ("preparing", "missing-right"), request.problem
    assert f"Secret {real_site.namespace}/pull cannot be read for {robot.username}, who may get it" in request.problem
    known = registered(real_site.cluster, connect(real_site.cluster))
    assert known.for_accounts == {real_site.ref("Secret", "pull")}
    meta = {"name": "worker-gets-pull", "namespace": real_site.namespace}
    bind(real_site, meta, "get", "secrets", "pull", {"apiGroup": RBAC, "kind": "User", "name": SERVICE.username})
    real_site.until_may(SERVICE, "get", "secrets", name="pull")
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    real_site.work()
    assert real_site.latest(deployment).state == "in_review", real_site.latest(deployment).problem


def let_account(site: DeployedSite, name: str, verb: str, resource: str, of: str) -> None:
    subject = {"kind": "ServiceAccount", "name": name, "namespace": site.namespace}
    bind(site, {"name": f"{name}-{verb}-{of}", "namespace": site.namespace}, verb, resource, of, subject)


def bind(site: DeployedSite, meta: dict[str, str], verb: str, resource: str, of: str, subject: dict[str, str]) -> None:
    about = {"apiVersion": f"{RBAC}/v1", "metadata": meta}
    rule = {"apiGroups": [""], "resources": [resource], "resourceNames": [of], "verbs": [verb]}
    reference = {"apiGroup": RBAC, "kind": "Role", "name": meta["name"]}
    site.api.create({**about, "kind": "Role", "rules": [rule]})
    site.api.create({**about, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})
