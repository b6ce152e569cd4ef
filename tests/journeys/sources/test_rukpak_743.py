"""The eleven defects of RukPak's pull request 743, which gave BundleDeployments several sources: what happens here.

Each test names the defect by its number and shows what Pratique does in its place.
"""

from __future__ import annotations

import hashlib
import io
import ipaddress
import tarfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.files.storage import storages
from django.utils import timezone

from approvals import store, tasks
from approvals.ledger import retries
from approvals.lifecycle import WORKABLE
from approvals.models import Content, Request
from provisioner import pipeline
from provisioner.cluster.client.access import ask
from provisioner.errors import BadSource, UnsafePath
from provisioner.render import BUILT_IN
from provisioner.source import ConfigMapSource, EgressPolicy, GitSource, HttpSource, ImageSource, Source
from provisioner.unpack import UnpackLimits, unpack
from provisioner.values import AccessRequest, Archive, ObjectRef
from provisioner.values import Content as Rendered
from tests.support.folders import ROOT
from tests.support.journeys.deployed_site import SERVICE, DeployedSite
from tests.support.journeys.running import Watched
from tests.support.servers.downloads import served
from tests.support.servers.http import GitServer, Repository
from tests.support.servers.registry import Registry

OPEN = EgressPolicy((ipaddress.ip_network("127.0.0.0/8"),), plain_http_hosts=("127.0.0.1",))


def map_of(name: str, text: str = "") -> bytes:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{text: '{text}'}}\n".encode()


def stored(destination: str, **files: bytes) -> ConfigMapSource:
    named = {f"{name}.yaml": data for name, data in files.items()}
    return ConfigMapSource("shop", "bundle", "uid", "1", named, destination)


def prepared(*sources: Source) -> Rendered:
    return pipeline.prepare(
        sources,
        options=pipeline.PrepareOptions("shop"),
        egress=OPEN,
        credentials=None,
        limits=UnpackLimits(),
        is_namespaced=BUILT_IN.get,
    )


def names(content: Rendered) -> list[str]:
    return sorted(one.ref.name for one in content.manifests)


def branch(repository: Repository, name: str = "main") -> dict[str, Any]:
    return {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": name}}}


class Cloned:
    """A deployment of a branch that runs, in one object of the deployment's own name."""

    def __init__(self, site: DeployedSite, git_server: GitServer):
        self.site, self.name = site, site.namespace
        self.server, self.repository = git_server, git_server.repository(site.namespace)
        self.commit = self.repository.commit({"a.yaml": map_of(self.name, "1")})
        self.deployment = site.submit_spec(self.name, branch(self.repository))
        site.work()
        self.first = site.approve(self.deployment)
        assert self.first.state == "applied", self.first.problem

    def text(self) -> str | None:
        ref = self.site.ref("ConfigMap", self.name)
        found = self.site.api.get(ref)
        return str(found["data"]["text"]) if found else None


@pytest.fixture
def cloned(sandbox_site: DeployedSite, git_server: GitServer) -> Cloned:
    return Cloned(sandbox_site, git_server)


def test_defect_01_an_event_of_a_deployed_object_fetches_nothing_and_installs_no_moved_branch(cloned: Cloned) -> None:
    cloned.repository.commit({"a.yaml": map_of(cloned.name, "2")})
    asked = len(cloned.server.asked)
    watched = Watched(cloned.site, cloned.deployment)
    watched.look()
    watched.edit(lambda it: it["data"].update(text="edited"))
    watched.look()
    cloned.site.look_after(cloned.deployment)
    cloned.site.work()
    assert cloned.text() == "1", "put back from what was approved"
    assert len(cloned.server.asked) == asked
    assert cloned.deployment.requests.count() == 1


def test_defect_02_what_a_source_was_resolved_to_is_recorded_and_shown(cloned: Cloned) -> None:
    pin = {"kind": "git", "reference": cloned.repository.url, "digest": cloned.commit, "destination": ""}
    assert cloned.first.pins == [pin]
    cloned.site.look_after(cloned.deployment)
    live: Any = cloned.site.api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", cloned.name))
    assert live["status"]["pins"] == [f"git:{cloned.commit}"]


def test_defect_03_one_deployment_takes_several_images_and_no_pod_unpacks_them(registry: Registry) -> None:
    refs = [f"{registry.host}/defect-{name}" for name in ("one", "two")]
    for ref in refs:
        registry.push(ref, {"manifests/a.yaml": map_of(ref.rpartition("/")[2])})
    content = prepared(*(ImageSource(ref, insecure_http=True, destination=ref[-3:]) for ref in refs))
    assert names(content) == ["defect-one", "defect-two"]


def test_defect_04_what_is_not_there_is_asked_for_more_and_more_rarely_and_what_is_settled_never(
    cloned: Cloned,
) -> None:
    assert cloned.first.state not in WORKABLE
    cloned.site.submit_spec(cloned.name, branch(cloned.repository, "gone"))
    lengths = []
    for _ in range(6):
        before = timezone.now()
        request = cloned.site.after_work(cloned.deployment)
        assert (request.state, request.problem_code) == ("preparing", "source-unavailable")
        assert request.look_again_at is not None
        lengths.append((request.look_again_at - before).total_seconds())
        Request.objects.filter(pk=request.pk).update(look_again_at=None)
    assert all(wait >= 2**count * (1 - retries.JITTER) for count, wait in enumerate(lengths, 1)), lengths
    assert lengths == sorted(lengths)
    assert retries.seconds(1000, share=0) == retries.LONGEST_SECONDS


def test_defect_05_where_the_new_content_cannot_be_fetched_the_old_runs_and_is_still_stored(cloned: Cloned) -> None:
    cloned.site.prepare(cloned.name, branch(cloned.repository, "gone"))
    assert cloned.site.latest(cloned.deployment).state == "preparing"
    assert cloned.text() == "1"
    cloned.deployment.refresh_from_db()
    running = cloned.deployment.active_revision
    assert running is not None
    assert store.get(running.content).digest == running.content_id


def packed(*entries: tuple[str, bytes, str]) -> bytes:
    """A tar of entries of a name, a type and what they link to."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "of git"}) as archive:
        for name, kind, link in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, link
            entry.size = len(map_of("a")) if kind == tarfile.REGTYPE else 0
            archive.addfile(entry, io.BytesIO(map_of("a")))
    return whole.getvalue()


def test_defect_06_headers_that_hold_no_file_are_read_and_what_is_no_file_is_refused_by_name() -> None:
    long_name = f"{'deep/' * 30}a.yaml"
    archive = packed(("deep", tarfile.DIRTYPE, ""), (long_name, tarfile.REGTYPE, ""))
    assert list(unpack([Archive("", archive)]).files) == [long_name]
    for kind, words in [(tarfile.SYMTYPE, "a symbolic link"), (tarfile.FIFOTYPE, "a pipe")]:
        with pytest.raises(UnsafePath, match=f"'odd' is {words}"):
            unpack([Archive("", packed(("odd", kind, "a.yaml")))])


def test_defect_07_a_pause_is_a_condition_that_says_who_and_why(cloned: Cloned) -> None:
    cloned.site.pause(cloned.deployment, "frozen")
    cloned.repository.commit({"a.yaml": map_of(cloned.name, "2")})
    cloned.site.ask_again(cloned.deployment)
    cloned.site.work()
    held = cloned.site.approve(cloned.deployment)
    assert (held.state, held.problem_code, cloned.text()) == ("approved", "paused", "1")
    cloned.site.look_after(cloned.deployment)
    live: Any = cloned.site.api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", cloned.name))
    (paused,) = [one for one in live["status"]["conditions"] if one["type"] == "Paused"]
    assert (paused["status"], paused["message"].startswith("by rita: frozen;")) == ("True", True)


@pytest.mark.parametrize(
    ("first", "second"), [("a/b", "a"), ("a", "a/b"), ("a", ""), ("", "a")], ids=lambda it: it or "the root"
)
def test_defect_08_a_source_around_another_deletes_none_of_its_files(first: str, second: str) -> None:
    assert names(prepared(stored(first, one=map_of("one")), stored(second, two=map_of("two")))) == ["one", "two"]


def test_defect_08_two_sources_of_one_destination_are_refused() -> None:
    with pytest.raises(BadSource, match="two sources have the destination /; expected one for each"):
        prepared(stored("", one=map_of("one")), stored("", two=map_of("two")))


def test_defect_09_what_a_deleted_deployment_had_is_removed_from_the_store(cloned: Cloned, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "KEEP_DAYS": 30}
    cloned.site.look_after(cloned.deployment)
    cloned.site.delete(cloned.deployment)
    cloned.site.work()
    assert cloned.site.approve(cloned.deployment).state == "applied"
    deployment = cloned.site.look_after(cloned.deployment)
    assert deployment.gone_at is not None
    path = store.path_of(cloned.first.content_id)
    assert storages["content"].exists(path)
    then = timezone.now() - timedelta(days=31)
    deployment.requests.update(settled_at=then)
    Content.objects.update(used_at=then)
    type(deployment).objects.filter(pk=deployment.pk).update(gone_at=then)
    tasks.clear()
    assert not storages["content"].exists(path)


def test_defect_10_the_service_holds_no_right_to_everything(sandbox_site: DeployedSite) -> None:
    files = [ROOT / "deploy/rbac.yaml", *(ROOT / "deploy/kubernetes").glob("*.yaml")]
    roles = [one for path in files for one in yaml.safe_load_all(path.read_text()) if one and one.get("rules")]
    wide = [
        (role["metadata"]["name"], key)
        for role in roles
        for rule in role["rules"]
        for key in ("apiGroups", "resources", "verbs")
        if "*" in rule.get(key, ())
    ]
    assert (len(roles) > 3, wide) == (True, [])
    asked = [
        AccessRequest("*", "*", "*"),
        AccessRequest("create", "apps", "deployments"),
        AccessRequest("get", "", "secrets"),
    ]
    assert [ask(sandbox_site.api, SERVICE, one).allowed for one in asked] == [False, False, False]


def test_defect_11_every_kind_of_source_is_fetched(registry: Registry, git_server: GitServer, tmp_path: Path) -> None:
    pushed = registry.push(f"{registry.host}/defect-eleven", {"manifests/a.yaml": map_of("pulled")})
    repository = git_server.repository("defect-eleven")
    commit = repository.commit({"a.yaml": map_of("cloned")})
    (tmp_path / "b.yaml").write_bytes(map_of("downloaded"))
    checksum = f"sha256:{hashlib.sha256(map_of('downloaded')).hexdigest()}"
    with served(tmp_path) as url:
        content = prepared(
            ImageSource(f"{registry.host}/defect-eleven", insecure_http=True, destination="image"),
            GitSource(repository.url, branch="main", destination="git"),
            HttpSource(f"{url}/b.yaml", checksum, "http"),
            stored("map", read=map_of("read")),
        )
    assert names(content) == ["cloned", "downloaded", "pulled", "read"]
    assert [(pin.kind, pin.digest) for pin in content.pins[:3]] == [
        ("image", pushed),
        ("git", commit),
        ("http", checksum),
    ]
