"""Bundles of a catalog that lie in a registry or a Helm repository that asks for a password."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from approvals import access
from approvals.errors import InvalidInput
from approvals.models import AuditEntry, BundleDeployment, Request
from provisioner.values import Identity
from tests.support.journeys.catalogs import look, named, offer, read, written
from tests.support.journeys.contents.catalogs import HARBOUR, source
from tests.support.journeys.contents.charts import chart, repository
from tests.support.journeys.deployed_site import DeployedSite, group, role
from tests.support.servers.http import Asked, FileServer, Reply
from tests.support.servers.registry import CREDENTIALS, Registry

USER, PASSWORD = CREDENTIALS
PAIR = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
RITA = Identity("rita", ("requesters",))
BASIC_AUTH = "kubernetes.io/basic-auth"
PASSWORD_PAIR = {"username": USER, "password": PASSWORD}
GRANTED = 'worst_new in ["safe", "notable", "dangerous"]'


def secret(site: DeployedSite, type_: str, values: Mapping[str, str], *, is_given: bool = True) -> None:
    """The Secret pull, which requesters may get."""
    meta = {"name": "pull", "namespace": site.namespace}
    site.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": type_, "stringData": dict(values)})
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["pull"], "verbs": ["get"]}
    for each in role("get-pull", site.namespace, rule, group("requesters")) if is_given else []:
        site.api.create(each)
    if is_given:
        site.until_may(RITA, "get", "secrets", name="pull")


def docker_config(site: DeployedSite, host: str, *, is_given: bool = True) -> None:
    text = json.dumps({"auths": {host: {"auth": PAIR}}})
    secret(site, "kubernetes.io/dockerconfigjson", {".dockerconfigjson": text}, is_given=is_given)


def ask_for(site: DeployedSite, catalog: str, *, host: str = "", upgrades: str = "", **asked: Any) -> BundleDeployment:
    auth = {"secret": {"name": "pull"}, **({"host": host} if host else {})}
    more = {"upgradePolicy": upgrades} if upgrades else {}
    made = source(catalog, asked.pop("of", HARBOUR), auth=auth)
    return site.submit_spec(f"{site.namespace}-private", made, **{"format": "registry-v1", **more, **asked})


def is_told_nowhere(request: Request) -> bool:
    rows = [
        *Request.objects.filter(pk=request.pk).values(),
        *AuditEntry.objects.filter(deployment=request.deployment.name).values(),
    ]
    return not any(word in str(rows) for word in (PASSWORD, PAIR))


@pytest.mark.proof
def test_S08_a_private_bundle_is_pinned_applied_and_followed_by_the_entry_for_its_registry(
    site: DeployedSite, registry: Registry, registry_with_auth: Registry
) -> None:
    """The first by a person, the second with nobody there."""
    row = offer(registry, named(site, registry, f"{site.namespace}-hub"), "1.0.0", bundles=registry_with_auth)
    docker_config(site, registry_with_auth.host)
    deployment = ask_for(site, row.name, upgrades="Automatic")
    request = site.after_work(deployment)
    assert (request.state, request.problem) == ("in_review", "")
    assert site.approve(deployment).state == "applied"
    policy = site.save_policy("grant", GRANTED)
    site.let_approve(access.policy_identity(policy).username, deployment.name)
    offer(registry, row, "1.0.0", "1.1.0", bundles=registry_with_auth)
    for _ in range(2):
        look(site)
    latest = site.latest(deployment)
    assert (latest.bundles[0]["version"], latest.state, latest.is_unattended) == ("1.1.0", "applied", True)
    assert is_told_nowhere(latest)


def test_S08_the_secret_of_a_catalogs_source_is_not_read_for_who_may_not_get_it(
    site: DeployedSite, registry: Registry, registry_with_auth: Registry
) -> None:
    row = offer(registry, named(site, registry, f"{site.namespace}-hub"), "1.0.0", bundles=registry_with_auth)
    docker_config(site, registry_with_auth.host, is_given=False)
    deployment = ask_for(site, row.name)
    request = site.after_work(deployment)
    assert (request.state, request.problem_code) == ("preparing", "forbidden")
    assert "does not allow rita to get secrets" in request.problem


@pytest.fixture
def listening(http_server: FileServer) -> Iterator[FileServer]:
    """A host of the catalog's own choice, which would hear whatever is sent to it."""
    http_server.forget()
    yield http_server
    http_server.forget()


def heard(server: FileServer) -> list[str]:
    return [asked.headers["authorization"] for asked in server.asked if "authorization" in asked.headers]


def asks_for_a_password(asked: Asked) -> Reply:
    return Reply(b"{}", 401, {"WWW-Authenticate": 'Basic realm="harbour"'})


@pytest.mark.parametrize(
    ("type_", "values", "names_host", "words"),
    [
        pytest.param("docker", {}, False, "as no credentials for {place} were given", id="an entry for another host"),
        pytest.param(
            BASIC_AUTH, PASSWORD_PAIR, True, "as no credentials for {place} were given", id="another host in the spec"
        ),
        pytest.param(
            BASIC_AUTH,
            PASSWORD_PAIR,
            False,
            "names no host that it is for, and the catalog chose {place}",
            id="no host at all",
        ),
    ],
)
def test_S08_a_secret_is_not_sent_to_a_host_that_only_the_catalog_names(
    sandbox_site: DeployedSite,
    registry: Registry,
    registry_with_auth: Registry,
    listening: FileServer,
    type_: str,
    values: Mapping[str, str],
    names_host: bool,
    words: str,
) -> None:
    """The same address with another port is another host."""
    place = listening.url.removeprefix("http://")
    digest = f"sha256:{'0' * 64}"
    listening.serve_reply(f"/v2/harbour/manifests/{digest}", asks_for_a_password)
    row = read(row_of_one_bundle(sandbox_site, registry, f"{place}/harbour@{digest}"))
    if type_ == "docker":
        docker_config(sandbox_site, registry_with_auth.host)
    else:
        secret(sandbox_site, type_, values)
    deployment = ask_for(sandbox_site, row.name, host=registry_with_auth.host if names_host else "")
    request = sandbox_site.after_work(deployment)
    assert words.format(place=place) in request.problem
    assert heard(listening) == []
    assert is_told_nowhere(request)


def row_of_one_bundle(site: DeployedSite, registry: Registry, image: str) -> Any:
    about = {"type": "olm.package", "value": {"packageName": HARBOUR, "version": "1.0.0"}}
    listed = [
        {"schema": "olm.package", "name": HARBOUR, "defaultChannel": "stable"},
        {"schema": "olm.channel", "name": "stable", "package": HARBOUR, "entries": [{"name": "harbour.v1.0.0"}]},
        {"schema": "olm.bundle", "name": "harbour.v1.0.0", "package": HARBOUR, "image": image, "properties": [about]},
    ]
    name = f"{site.namespace}-hub"
    text = "\n".join(json.dumps(one) for one in listed)
    registry.push(f"{registry.host}/{name}:latest", {"catalog.json": text.encode()})
    return named(site, registry, name)


def test_S08_user_and_password_open_the_host_that_the_spec_names(
    sandbox_site: DeployedSite, registry: Registry, registry_with_auth: Registry
) -> None:
    row = offer(
        registry, named(sandbox_site, registry, f"{sandbox_site.namespace}-hub"), "1.0.0", bundles=registry_with_auth
    )
    secret(sandbox_site, BASIC_AUTH, PASSWORD_PAIR)
    deployment = ask_for(sandbox_site, row.name, host=registry_with_auth.host)
    sandbox_site.work()
    assert sandbox_site.latest(deployment).state == "in_review", sandbox_site.latest(deployment).problem


@pytest.fixture
def mutable(settings: Any, site: DeployedSite) -> None:
    """The operator allows URLs without a checksum, which the index has none of."""
    settings.PRATIQUE = {**settings.PRATIQUE, "MUTABLE_HTTP": True}


def charts(site: DeployedSite, url: str) -> Any:
    return read(written(site, f"{site.namespace}-charts", format="helm", source={"kind": "http", "http": {"url": url}}))


def installed(site: DeployedSite) -> str | None:
    live = site.live("ConfigMap", "harbour")
    return live["data"]["version"] if live else None


@pytest.mark.parametrize(
    "is_locked",
    [
        pytest.param(False, id="open", marks=pytest.mark.thorough),
        pytest.param(True, id="with a password", marks=pytest.mark.proof),
    ],
)
def test_a_chart_of_a_helm_repository_is_pinned_by_its_checksum_and_followed(
    site: DeployedSite, listening: FileServer, mutable: None, is_locked: bool
) -> None:
    row = charts(site, repository(listening, "1.0.0", pair=PAIR if is_locked else ""))
    made = source(row.name, HARBOUR)
    if is_locked:
        secret(site, BASIC_AUTH, PASSWORD_PAIR)
        made = source(
            row.name, HARBOUR, auth={"secret": {"name": "pull"}, "host": listening.url.removeprefix("http://")}
        )
    deployment = site.prepare(f"{site.namespace}-chart", made, format="helm")
    request = site.latest(deployment)
    assert (request.state, request.problem) == ("in_review", "")
    (bundle,), (pin,) = request.bundles, request.pins
    assert (pin["kind"], pin["digest"], pin["reference"]) == ("http", bundle["checksum"], bundle["url"])
    assert bundle["digest"] == row.edition.digest
    assert site.approve(deployment).state == "applied"
    repository(listening, "1.0.0", "1.1.0", pair=PAIR if is_locked else "")
    read(row)
    look(site)
    latest = site.latest(deployment)
    assert (latest.bundles[0]["version"], latest.bundles[0]["step"], latest.state) == ("1.1.0", "follows", "in_review")
    assert site.approve(deployment).state == "applied"
    assert installed(site) == "1.1.0"
    look(site)
    assert site.latest(deployment).number == 2


def test_a_chart_that_is_another_than_its_index_says_is_not_taken(
    site: DeployedSite, listening: FileServer, mutable: None
) -> None:
    row = charts(site, repository(listening, "1.0.0"))
    listening.serve("/charts/harbour-1.0.0.tgz", chart("6.6.6"))
    deployment = site.prepare(f"{site.namespace}-chart", source(row.name, HARBOUR), format="helm")
    request = site.latest(deployment)
    assert (request.state, request.problem_code) == ("failed", "digest-mismatch")


def test_a_chart_without_a_digest_is_refused_with_what_to_do(
    site: DeployedSite, listening: FileServer, mutable: None
) -> None:
    row = charts(site, repository(listening, "1.0.0", is_digested=False))
    deployment = site.prepare(f"{site.namespace}-chart", source(row.name, HARBOUR), format="helm")
    request = site.latest(deployment)
    assert (request.state, request.problem_code) == ("failed", "bundle-not-offered")
    assert "has no digest of chart harbour-1.0.0" in request.problem
    assert "source of kind http" in request.problem


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        ({"host": "registry.example.com"}, "secret"),
        ({"secret": {"name": "pull"}, "host": "https://registry.example.com/x"}, "host"),
    ],
    ids=["no Secret", "no host"],
)
def test_credentials_that_make_no_sense_are_refused_by_the_api_server(
    site: DeployedSite, auth: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        site.submit_spec("wrong", source("hub", HARBOUR, auth=auth), format="registry-v1")
