"""A Catalog of a cluster is read from its source, followed as that changes, and shown as it stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals import access
from approvals.catalogs.editions import find_catalog, find_package
from approvals.catalogs.schedule import authors_by_part, observe_catalog
from approvals.controllers import read_controllers
from approvals.models import Catalog, CatalogEdition
from approvals.steps.catalogs.refresh import RefreshCatalog
from approvals.watch.own_kinds import SeenCatalogs
from approvals.working import do
from provisioner.api_groups import OWN_GROUP
from provisioner.catalogs.values import READING
from provisioner.errors import InvalidObject
from provisioner.values import Identity, ObjectRef
from tests.support.journeys.deployed_site import SERVICE, DeployedSite, role, user_subject
from tests.support.kubernetes.live import once_answered
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.servers.http import GitServer
from tests.support.servers.registry import CREDENTIALS, Registry

FOLDER = {"operators.operatorframework.io.index.configs.v1": "/configs"}


def catalog_text(*versions: str) -> str:
    entries = [{"name": f"harbour.v{version}"} for version in versions]
    documents = [package(defaultChannel="stable"), *map(bundle, versions), channel("stable", *entries[-1:])]
    return "\n".join(map(json.dumps, documents))


def reference(name: str) -> ObjectRef:
    return ObjectRef(OWN_GROUP, "v1alpha2", "Catalog", "", name)


def write(site: DeployedSite, source: Mapping[str, Any], **more: Any) -> Mapping[str, Any]:
    about = {"name": f"{site.namespace}-catalog"}
    obj = {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "Catalog", "metadata": about}
    return site.api.apply({**obj, "spec": {"source": source, **more}}, field_manager="somebody").object


def seen(site: DeployedSite, obj: Mapping[str, Any], writer: Mapping[str, Any] | None = None) -> Catalog:
    observe_catalog(cluster=site.cluster, obj=obj, writer=writer)
    return row_of(site, obj)


def row_of(site: DeployedSite, obj: Mapping[str, Any]) -> Catalog:
    found = find_catalog(site.cluster, obj["metadata"]["name"])
    assert found is not None
    return found


def look(row: Catalog) -> Catalog:
    """As when its time has come, and nobody's before it."""
    Catalog.objects.filter(pk=row.pk).update(look_at=timezone.now() - timedelta(days=1))
    do(RefreshCatalog(row.pk))
    return Catalog.objects.select_related("edition", "cluster").get(pk=row.pk)


def shown(site: DeployedSite, row: Catalog) -> Mapping[str, Any]:
    live = site.api.get(reference(row.name))
    assert live is not None
    status: Mapping[str, Any] = live["status"]
    return status


def conditions(status: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


def versions(row: Catalog) -> list[str]:
    found = find_package(row, "harbour")
    assert found is not None
    return [str(one.version) for one in found.bundles.values()]


def image(registry: Registry, name: str, tag: str = "latest") -> dict[str, Any]:
    return {"kind": "image", "image": {"ref": f"{registry.host}/{name}:{tag}"}}


def test_an_image_is_read_followed_and_shown(site: DeployedSite, registry: Registry) -> None:
    name = f"{site.namespace}/catalog"
    registry.push(f"{name}:latest", {"harbour/catalog.json": catalog_text("1.0.0"), "README.md": "no catalog"})
    row = look(seen(site, write(site, image(registry, name), interval="5m")))
    assert versions(row) == ["1.0.0"]
    status = shown(site, row)
    assert conditions(status) == {
        "Ready": ("True", "Read"),
        "SourcesAvailable": ("True", "Available"),
        "Sound": ("True", "NoProblems"),
        "Progressing": ("False", "NotReading"),
    }
    assert (status["packages"], status["bundles"], status["digest"]) == (1, 1, row.edition.digest)  # type: ignore[union-attr] # it was read, so that it is no None
    assert row.look_at - row.looked_at == timedelta(minutes=5)  # type: ignore[operator] # it was read, so that it is no None

    registry.push(f"{name}:latest", {"harbour/catalog.json": catalog_text("1.0.0", "1.1.0")})
    moved = look(row)
    assert versions(moved) == ["1.0.0", "1.1.0"]
    assert moved.edition_id != row.edition_id
    assert look(moved).edition_id == moved.edition_id
    assert conditions(shown(site, row))["Sound"] == ("False", "Problems")  # 1.0.0 is in no channel


def test_a_source_that_is_gone_is_said_and_what_was_read_stays(
    sandbox_site: DeployedSite, git_server: GitServer
) -> None:
    repository = git_server.repository(f"{sandbox_site.namespace}-catalog")
    repository.commit({"configs/catalog.yaml": catalog_text("1.0.0"), "other.yaml": "a: b"})
    git = {"repository": repository.url, "ref": {"branch": "main"}, "directory": "configs"}
    obj = write(sandbox_site, {"kind": "git", "git": git})
    row = look(seen(sandbox_site, obj))
    assert versions(row) == ["1.0.0"]
    repository.path.rename(repository.path.with_name("away"))
    row = look(row)
    assert versions(row) == ["1.0.0"]
    assert row.failures == 1
    status, reason = conditions(shown(sandbox_site, row))["SourcesAvailable"]
    assert (status, reason) == ("False", "SourceUnavailable")
    assert conditions(shown(sandbox_site, row))["Ready"] == ("True", "Read")


def test_another_source_is_another_catalog(sandbox_site: DeployedSite, registry: Registry) -> None:
    for name in ("one", "two"):
        registry.push(f"{sandbox_site.namespace}/{name}:latest", {"catalog.json": catalog_text("1.0.0")})
    row = look(seen(sandbox_site, write(sandbox_site, image(registry, f"{sandbox_site.namespace}/one"))))
    assert row.edition
    changed = write(sandbox_site, image(registry, f"{sandbox_site.namespace}/two"))
    assert seen(sandbox_site, changed).edition is None
    assert look(row_of(sandbox_site, changed)).edition


def test_what_is_pinned_is_read_once(sandbox_site: DeployedSite, registry: Registry) -> None:
    name = f"{sandbox_site.namespace}/pinned"
    digest = registry.push(f"{name}:latest", {"catalog.json": catalog_text("1.0.0")})
    source = {"kind": "image", "image": {"ref": f"{registry.host}/{name}@{digest}"}}
    row = look(seen(sandbox_site, write(sandbox_site, source)))
    assert (row.look_at, row.edition.digest) == (None, digest)  # type: ignore[union-attr] # it was read, so that it is no None


def listed(site: DeployedSite) -> None:
    """What the watch does when it starts: the list says what happened while nobody watched."""
    watch = SeenCatalogs(cluster=site.cluster)
    watch.stop.set()
    once_answered(lambda: watch.look(site.api))


def test_what_was_read_by_rules_of_before_is_read_again_though_it_did_not_change(
    sandbox_site: DeployedSite, registry: Registry
) -> None:
    name = f"{sandbox_site.namespace}/catalog"
    registry.push(f"{name}:latest", {"configs/harbour.json": catalog_text("1.0.0")}, labels=FOLDER)
    row = look(seen(sandbox_site, write(sandbox_site, image(registry, name), interval="5m")))
    CatalogEdition.objects.filter(pk=row.edition_id).update(reading=READING - 1)
    again = look(row)
    assert again.edition is not None
    assert again.edition_id != row.edition_id
    assert (again.edition.digest, again.edition.reading) == (row.edition.digest, READING)  # type: ignore[union-attr] # it was read, so that it is no None
    assert look(again).edition_id == again.edition_id


def test_the_watch_keeps_what_is_there_and_forgets_what_is_gone(site: DeployedSite, registry: Registry) -> None:
    name = f"{site.namespace}/gone"
    registry.push(f"{name}:latest", {"catalog.json": catalog_text("1.0.0")})
    obj = write(site, image(registry, name))
    listed(site)
    row = look(row_of(site, obj))
    assert versions(row) == ["1.0.0"]
    assert authors_by_part(row.authors, row.spec) is None
    site.api.delete(reference(row.name))
    listed(site)
    assert find_catalog(site.cluster, row.name) is None
    do(RefreshCatalog(row.pk))


def test_a_forged_status_is_repaired(sandbox_site: DeployedSite, registry: Registry) -> None:
    name = f"{sandbox_site.namespace}/forged"
    registry.push(f"{name}:latest", {"catalog.json": catalog_text("1.0.0")})
    row = look(seen(sandbox_site, write(sandbox_site, image(registry, name))))
    live = sandbox_site.api.get(reference(row.name))
    assert live is not None
    assert observe_catalog(cluster=sandbox_site.cluster, obj=live, writer=None) is None
    forged = sandbox_site.api.replace({**live, "status": {"packages": 99}}, subresource="status")
    assert observe_catalog(cluster=sandbox_site.cluster, obj=forged, writer=None) is not None
    do(RefreshCatalog(row.pk))
    assert shown(sandbox_site, row)["packages"] == 1


def test_a_helm_repository_is_a_catalog(sandbox_site: DeployedSite, http_server: Any, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "MUTABLE_HTTP": True}
    chart = {"version": "1.2.0", "urls": ["harbour-1.2.0.tgz"], "digest": "a" * 64}
    url = http_server.serve("/charts/index.yaml", json.dumps({"entries": {"harbour": [chart]}}).encode())
    source = {"kind": "http", "http": {"url": url.removesuffix("/index.yaml")}}
    row = look(seen(sandbox_site, write(sandbox_site, source, format="helm")))
    assert (row.problem, versions(row)) == ("", ["1.2.0"])
    found = find_package(row, "harbour")
    assert found is not None
    assert found.bundles["harbour-1.2.0"].url == url.replace("index.yaml", "harbour-1.2.0.tgz")


def test_the_tags_of_a_repository_are_a_catalog(sandbox_site: DeployedSite, registry: Registry) -> None:
    name = f"{sandbox_site.namespace}/harbour"
    for tag in ("1.0.0", "v1.1.0", "latest"):
        registry.push(f"{name}:{tag}", {"a.yaml": tag})
    source = {"kind": "image", "image": {"ref": f"{registry.host}/{name}"}}
    row = look(seen(sandbox_site, write(sandbox_site, source, format="tags")))
    assert (row.problem, sorted(versions(row))) == ("", ["1.0.0", "1.1.0"])
    found = find_package(row, "harbour")
    assert found is not None
    assert found.bundles["harbour-1.1.0"].image == f"{registry.host}/{name}:v1.1.0"
    assert look(row).edition_id == row.edition_id
    registry.push(f"{name}:1.2.0", {"a.yaml": "1.2.0"})
    assert len(versions(look(row))) == 3


def private(site: DeployedSite, registry: Registry) -> dict[str, Any]:
    name = f"{site.namespace}/private"
    registry.push(f"{name}:latest", {"catalog.json": catalog_text("1.0.0")})
    user, password = CREDENTIALS
    meta = {"name": "pull", "namespace": site.namespace}
    values = {"username": user, "password": password}
    site.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": values})
    source = image(registry, name)
    source["image"]["auth"] = {"secret": meta}
    return source


def let_get(site: DeployedSite, name: str) -> None:
    meta = {"name": f"get-{name}", "namespace": site.namespace}
    api_version = "rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": ["get"]}
    site.api.create({"apiVersion": api_version, "kind": "Role", "metadata": meta, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": meta["name"]}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "requesters"}]
    binding = {"apiVersion": api_version, "kind": "RoleBinding", "metadata": meta}
    site.api.create({**binding, "roleRef": role, "subjects": subjects})


def rita(**more: Any) -> dict[str, Any]:
    facts = {"username": "rita", "uid": "", "groups": ["requesters"], "issuer": "", "subject": "", "via": "kubectl"}
    return access.requester_record(user=None, **{"groups_at": timezone.now(), **facts, **more})


def test_S08_the_secret_of_a_catalog_is_read_as_who_wrote_it(site: DeployedSite, registry_with_auth: Registry) -> None:
    source = private(site, registry_with_auth)
    row = look(seen(site, write(site, source), rita()))
    assert row.edition is None
    assert "is not read: Kubernetes does not allow rita" in row.problem
    assert not row.is_writer_proved
    let_get(site, "pull")
    row = look(row)
    assert row.edition is not None
    assert row.is_writer_proved, "the rights that are printed are for whom it is read"


def mallory() -> dict[str, Any]:
    return rita(username="mallory", groups=["strangers"])


def changed(
    site: DeployedSite, row: Catalog, change: Callable[[dict[str, Any]], object], by: dict[str, Any]
) -> Catalog:
    site.edit(reference(row.name), lambda live: change(live["spec"]["source"]))
    live = site.api.get(reference(row.name))
    assert live is not None
    return look(seen(site, live, by))


@pytest.mark.proof
def test_S05_S08_who_writes_a_part_of_the_source_must_be_allowed_to_get_the_secret_that_another_named(
    site: DeployedSite, registry_with_auth: Registry
) -> None:
    """Rita named the Secret; mallory, who may not get it, would have it sent to another host."""
    let_get(site, "pull")
    row = look(seen(site, write(site, private(site, registry_with_auth)), rita()))
    assert row.edition is not None
    elsewhere = "127.0.0.1:1/catalog:latest"
    row = changed(site, row, lambda source: source["image"].update(ref=elsewhere), mallory())
    assert row.edition is None
    assert "Kubernetes does not allow mallory to get secrets" in row.problem
    assert "who wrote the source of this Catalog (image.ref)" in row.problem
    assert not row.is_writer_proved


def test_S05_S08_who_names_their_secret_beside_the_address_of_another_sends_it_nowhere(
    sandbox_site: DeployedSite, registry_with_auth: Registry
) -> None:
    let_get(sandbox_site, "pull")
    source = private(sandbox_site, registry_with_auth)
    auth = source["image"].pop("auth")
    row = seen(sandbox_site, write(sandbox_site, source), mallory())
    row = changed(sandbox_site, row, lambda source: source["image"].update(auth=auth), rita())
    assert row.edition is None
    assert "does not allow mallory to get secrets" in row.problem


def test_S08_no_secret_is_read_for_a_catalog_that_nobody_is_known_to_have_written(
    sandbox_site: DeployedSite, registry_with_auth: Registry
) -> None:
    row = look(seen(sandbox_site, write(sandbox_site, private(sandbox_site, registry_with_auth))))
    assert "nobody can prove who wrote the source of this Catalog" in row.problem


def test_S08_who_wrote_long_ago_is_read_for_where_the_operator_says_so(
    sandbox_site: DeployedSite, registry_with_auth: Registry, settings: Any
) -> None:
    source = private(sandbox_site, registry_with_auth)
    let_get(sandbox_site, "pull")
    old = rita(groups_at=timezone.now() - timedelta(days=9))
    row = look(seen(sandbox_site, write(sandbox_site, source), old))
    assert "were verified more than 12 hours ago" in row.problem
    place = f"{sandbox_site.cluster.name}/catalogs/{row.name}"
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": [place]}
    assert look(row).edition is not None


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed any more"])
def test_S34_the_secret_of_a_catalog_is_read_for_a_controller_as_long_as_the_operator_lists_it(
    sandbox_site: DeployedSite, registry_with_auth: Registry, settings: Any, listed: bool
) -> None:
    account = {"kind": "ServiceAccount", "name": "controller", "namespace": sandbox_site.namespace}
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["pull"], "verbs": ["get"]}
    for each in role("controller-gets-pull", sandbox_site.namespace, rule, account, user_subject(SERVICE.username)):
        sandbox_site.api.create(each)
    obj = write(sandbox_site, private(sandbox_site, registry_with_auth))
    controllers = {
        "account": f"{sandbox_site.namespace}/controller",
        "cluster": sandbox_site.cluster.name,
        "catalogs": {"matchNames": [obj["metadata"]["name"]]},
        "secrets": [f"{sandbox_site.namespace}/pull"] if listed else [],
    }
    settings.PRATIQUE = {**settings.PRATIQUE, "GITOPS_FILE": read_controllers({"controllers": [controllers]})}
    robot = Identity.of_service_account(sandbox_site.namespace, "controller")
    old = timezone.now() - timedelta(days=9)
    writer = rita(username=robot.username, groups=[*robot.groups], via="gitops", groups_at=old)
    row = look(seen(sandbox_site, obj, writer))
    if listed:
        assert row.edition is not None, row.problem
    else:
        assert "PRATIQUE_GITOPS_FILE does not list that controller for this Catalog" in row.problem


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param({"source": {"kind": "git", "image": {"ref": "a"}}}, "kind names exactly", id="another kind"),
        pytest.param({"source": {"kind": "local"}}, "kind", id="unknown kind"),
        pytest.param(
            {"source": {"kind": "image", "image": {"ref": f"a@sha256:{'0' * 64}"}}, "interval": "5m"},
            "never changes",
            id="a digest with an interval",
        ),
        pytest.param(
            {"source": {"kind": "image", "image": {"ref": "a"}}, "format": "helm"},
            "of kind http",
            id="helm in an image",
        ),
    ],
)
def test_the_api_server_refuses_a_catalog_that_makes_no_sense(
    site: DeployedSite, spec: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidObject) as raised:
        write(site, **spec)
    assert words in str(raised.value.server_words)
