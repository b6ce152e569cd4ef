"""Branches, tags and addresses that may move are looked at again: a move makes a request; what is down says since when."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals import tasks
from approvals.errors import InvalidInput
from approvals.ledger import pivots, references
from approvals.models import AuditEntry, BundleDeployment, FloatingReference
from approvals.steps.source_checks import Poll
from approvals.working import do
from provisioner.values import Identity
from tests.support.journeys.contents import bundles
from tests.support.journeys.contents.catalogs import harbour
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.floating import (
    INTERVAL,
    branch,
    commit,
    found,
    look,
    looks,
    numbers,
    running,
    sources_condition,
)
from tests.support.servers.http import Asked, FileServer, GitServer, Reply, Repository
from tests.support.servers.registry import Registry


@pytest.fixture
def repository(git_server: GitServer, site: DeployedSite) -> Repository:
    made = git_server.repository(f"{site.namespace}-moves")
    commit(made, site, "1")
    return made


@pytest.fixture
def applied(site: DeployedSite, repository: Repository) -> BundleDeployment:
    return site.applied(repository.path.stem, branch(repository))


@pytest.mark.proof
def test_a_branch_moves_moves_back_disappears_and_comes_back(
    site: DeployedSite, repository: Repository, applied: BundleDeployment
) -> None:
    first = repository.resolve("main")
    look(applied)
    assert numbers(applied) == [(1, "applied")]
    second = commit(repository, site, "2")
    look(applied)
    made = site.after_work(applied)
    assert (made.number, made.state, made.pins[0]["digest"]) == (2, "in_review", second)
    assert ([one["username"] for one in made.requesters], made.is_unattended) == (["rita"], True)
    assert not found(made, "SRC-02")
    entry = AuditEntry.objects.get(verb="source.moved", deployment=applied)
    assert (entry.facts["from"], entry.facts["to"]) == (first, second)
    assert site.approve(applied).state == "applied"
    assert running(site, applied) == "2"
    look(applied)
    assert site.latest(applied).number == 2

    repository.point("refs/heads/main", first)
    look(applied)
    site.work()
    (back,) = found(site.latest(applied), "SRC-02")
    assert back["severity"] == "dangerous"
    assert f"goes back to an older commit: revision 2 has {second}, this is {first}" in back["message"]

    repository.git("update-ref", "-d", "refs/heads/main")
    look(applied)
    down = sources_condition(site, applied)
    assert (down["status"], down["reason"]) == ("False", "SourceUnavailable")
    since = FloatingReference.objects.get(followers__deployment=applied).problem_since
    assert since is not None
    assert f"cannot be checked since {since:%Y-%m-%dT%H:%M:%SZ}" in down["message"]
    assert "has no refs/heads/main" in down["message"]
    look(applied)
    assert FloatingReference.objects.get(followers__deployment=applied).problem_since == since
    assert site.latest(applied).number == 3

    repository.point("refs/heads/main", second)
    look(applied)
    assert sources_condition(site, applied)["status"] == "True"
    site.work()
    assert (site.latest(applied).number, site.latest(applied).pins[0]["digest"]) == (4, second)


def test_a_force_push_is_found(site: DeployedSite, repository: Repository, applied: BundleDeployment) -> None:
    repository.git("update-ref", "-d", "refs/heads/main")
    commit(repository, site, "2")
    look(applied)
    site.work()
    (aside,) = found(site.latest(applied), "SRC-02")
    assert "was rewritten (force-pushed)" in aside["message"]


def pinned(repository: Repository, commit: str) -> dict[str, Any]:
    return {"kind": "git", "git": {"repository": repository.url, "ref": {"commit": commit}}}


@pytest.mark.parametrize(
    "is_advertised",
    [
        pytest.param(True, id="any commit"),
        pytest.param(False, id="what something points to", marks=pytest.mark.thorough),
    ],
)
def test_an_older_commit_that_somebody_names_is_found_and_a_newer_one_is_none(
    site: DeployedSite, repository: Repository, is_advertised: bool
) -> None:
    repository.git("config", "uploadpack.allowAnySHA1InWant", str(is_advertised).lower())
    first = repository.resolve("main")
    second = commit(repository, site, "2")
    deployment = site.applied(repository.path.stem, pinned(repository, first))
    site.prepare(deployment.name, pinned(repository, second))
    assert not found(site.latest(deployment), "SRC-02")
    assert site.approve(deployment).state == "applied"
    site.prepare(deployment.name, pinned(repository, first))
    (back,) = found(site.latest(deployment), "SRC-02")
    assert back["severity"] == "dangerous"
    assert back["message"].endswith(f".git goes back to an older commit: revision 2 has {second}, this is {first}")


@pytest.mark.thorough
def test_an_older_commit_named_in_place_of_a_branch_is_found_and_one_beside_it_is_none(
    site: DeployedSite, repository: Repository
) -> None:
    first = repository.resolve("main")
    second = commit(repository, site, "2")
    deployment = site.applied(repository.path.stem, branch(repository))
    site.prepare(deployment.name, pinned(repository, first))
    (back,) = found(site.latest(deployment), "SRC-02")
    assert f"revision 1 has {second}, this is {first}" in back["message"]
    aside = repository.commit(bundles.app(repository.path.stem, "3"), branch="aside")
    site.prepare(deployment.name, pinned(repository, aside))
    assert not found(site.latest(deployment), "SRC-02")


@pytest.mark.thorough
def test_two_deployments_with_one_reference_make_one_look(
    site: DeployedSite, repository: Repository, git_server: GitServer
) -> None:
    pair = [site.submit_spec(f"{site.namespace}-{one}", branch(repository)) for one in ("a", "b")]
    site.work()
    commit(repository, site, "2")
    (reference,) = FloatingReference.objects.filter(followers__deployment__in=pair).distinct()
    asked = looks(git_server)
    FloatingReference.objects.update(look_at=timezone.now())
    do(Poll(reference.pk))
    do(Poll(reference.pk))
    assert looks(git_server) == asked + 1
    assert [site.latest(one).number for one in pair] == [2, 2]


@pytest.mark.proof
def test_S25_a_request_that_somebody_has_begun_to_review_is_followed_by_one_successor(
    site: DeployedSite, repository: Repository
) -> None:
    deployment = site.prepare(repository.path.stem, branch(repository))
    first = site.review(deployment, "RequestChanges", reason="name the owner")
    for version in ("2", "3"):
        last = commit(repository, site, version)
        look(deployment)
    assert numbers(deployment) == [(1, "in_review")]
    assert sources_condition(site, deployment)["reason"] == "Moved"
    site.withdraw(first, "replaced")
    deployment.followed_references.update(answer_at=timezone.now())
    tasks.sweep()
    site.work()
    assert numbers(deployment) == [(1, "withdrawn"), (2, "in_review")]
    assert site.latest(deployment).pins[0]["digest"] == last
    look(deployment)
    assert site.latest(deployment).number == 2


@pytest.mark.proof
def test_S05_who_wrote_the_interval_is_a_requester_of_the_next_request_and_makes_none(
    site: DeployedSite, repository: Repository, applied: BundleDeployment
) -> None:
    mallory = Identity("mallory", ("requesters",))
    changed = site.rewrite(applied, lambda spec: spec["sources"][0].update(interval="5m"), mallory)
    assert changed.generation > applied.generation
    assert numbers(applied) == [(1, "applied")]
    assert changed.followed_references.get().interval_seconds == 300
    commit(repository, site, "2")
    look(changed)
    assert {one["username"] for one in site.latest(applied).requesters} == {"rita", "mallory"}


def test_nothing_is_looked_at_while_it_is_paused(
    site: DeployedSite, repository: Repository, applied: BundleDeployment, git_server: GitServer
) -> None:
    site.pause(applied, "holiday")
    commit(repository, site, "2")
    assert FloatingReference.objects.get().look_at is None
    asked = len(git_server.asked)
    look(applied)
    assert len(git_server.asked) == asked
    applied.refresh_from_db()
    site.resume(applied)
    assert FloatingReference.objects.get().look_at is not None
    look(applied)
    assert site.latest(applied).number == 2


def test_never_is_never_and_a_spec_that_pins_follows_nothing(
    site: DeployedSite, repository: Repository, applied: BundleDeployment
) -> None:
    site.submit_spec(applied.name, branch(repository, interval="Never"))
    assert FloatingReference.objects.get().look_at is None
    applied.refresh_from_db()
    pinned = {"repository": repository.url, "ref": {"commit": repository.resolve("main")}}
    site.submit_spec(applied.name, {"kind": "git", "git": pinned})
    assert not FloatingReference.objects.exists()


@pytest.mark.thorough
def test_what_the_operator_turns_off_is_not_looked_at_and_turned_on_again_it_is(
    site: DeployedSite, repository: Repository, applied: BundleDeployment, git_server: GitServer, settings: Any
) -> None:
    site.prepare(applied.name, {key: value for key, value in branch(repository).items() if key != "interval"})
    latest = site.latest(applied).number
    given = settings.PRATIQUE
    settings.PRATIQUE = {**given, "SOURCE_POLL_SECONDS": 0}
    asked = looks(git_server)
    look(applied)
    tasks.sweep()
    assert looks(git_server) == asked
    assert FloatingReference.objects.get().look_at is None
    settings.PRATIQUE = given
    tasks.sweep()
    assert FloatingReference.objects.get().look_at is not None
    commit(repository, site, "2")
    look(applied)
    assert site.latest(applied).number == latest + 1


def test_a_host_is_asked_so_often_a_minute_and_no_more(
    site: DeployedSite, applied: BundleDeployment, git_server: GitServer, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "SOURCE_POLLS_PER_HOST": 2}
    asked = looks(git_server)
    for _ in range(4):
        look(applied)
    assert looks(git_server) - asked == 2
    reference = FloatingReference.objects.get()
    assert reference.look_at is not None
    assert reference.look_at > timezone.now()


def test_a_worker_that_dies_between_look_and_request_loses_nothing_and_makes_no_second_one(
    site: DeployedSite, repository: Repository, applied: BundleDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, site, "2")

    def die(deployment_id: int) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(pivots, "answer_moves", die)
        with pytest.raises(SystemExit):
            look(applied)
    assert site.latest(applied).number == 1
    assert references.pending(timezone.now()) == [applied.pk]
    tasks.sweep()
    assert site.latest(applied).number == 2
    tasks.sweep()
    site.work()
    look(applied)
    assert site.latest(applied).number == 2


@pytest.mark.parametrize(
    ("interval", "kind", "words"),
    [("10 minutes", "git", "interval"), ("off", "git", "interval"), ("10m", "configMap", "interval is for sources of")],
)
def test_an_interval_that_cannot_be_is_refused_by_the_api_server(
    site: DeployedSite, interval: str, kind: str, words: str
) -> None:
    git = {"repository": "https://example.com/a.git", "ref": {"branch": "main"}}
    body = {"git": git, "configMap": {"name": "a"}}[kind]
    with pytest.raises(InvalidInput, match=words):
        site.submit_spec(f"{site.namespace}-wrong", {"kind": kind, kind: body, "interval": interval})


@pytest.mark.proof
def test_S25_a_branch_that_flaps_makes_so_many_requests_an_hour_and_the_next_is_about_what_it_is_then(
    site: DeployedSite, repository: Repository, applied: BundleDeployment, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "SOURCE_REQUESTS_PER_HOUR": 2}
    first = repository.resolve("main")
    second = commit(repository, site, "2")
    for tip in (second, first, second, first, second):
        repository.point("refs/heads/main", tip)
        look(applied)
        site.work()
    # The third move was one too many, the fourth took it back.
    assert numbers(applied) == [(1, "applied"), (2, "superseded"), (3, "in_review")]
    assert site.latest(applied).pins[0]["digest"] == first
    row = applied.followed_references.get()
    made = applied.requests.get(number=2).created_at
    assert row.rests_until == row.answer_at == made + timedelta(hours=1)
    condition = sources_condition(site, applied)
    assert (condition["status"], condition["reason"]) == ("True", "ChangesTooOften")
    assert f"requested at {row.rests_until:%Y-%m-%dT%H:%M:%SZ}" in condition["message"]

    applied.requests.filter(number=2).update(created_at=made - timedelta(hours=1))
    applied.followed_references.update(answer_at=timezone.now())
    tasks.sweep()
    site.work()
    assert (site.latest(applied).number, site.latest(applied).pins[0]["digest"]) == (4, second)
    assert sources_condition(site, applied)["reason"] == "Checked"


def test_what_waits_to_be_pinned_has_not_changed(site: DeployedSite, repository: Repository) -> None:
    deployment = site.submit_spec(repository.path.stem, branch(repository))
    look(deployment)
    assert [row.moved_at for row in deployment.followed_references.all()] == [None]
    site.work()
    look(deployment)
    assert numbers(deployment) == [(1, "in_review")]


def test_a_commit_that_mends_what_could_not_be_prepared_makes_a_request_although_no_look_saw_the_broken_one(
    site: DeployedSite, repository: Repository
) -> None:
    broken = repository.commit({"a.yaml": "kind: ["})
    deployment = site.prepare(repository.path.stem, branch(repository))
    assert numbers(deployment) == [(1, "failed")]
    assert deployment.followed_references.get().answered == broken
    mended = commit(repository, site, "2")
    look(deployment)
    site.work()
    assert numbers(deployment) == [(1, "failed"), (2, "in_review")]
    assert site.latest(deployment).pins[0]["digest"] == mended
    look(deployment)
    assert site.latest(deployment).number == 2


Files = Mapping[str, bytes | str]


def test_an_image_tag_that_moves_makes_a_request(site: DeployedSite, registry: Registry) -> None:
    name = f"{site.namespace}-tag"
    ref = f"{registry.host}/{name}:stable"
    registry.push(ref, bundles.app(name, "1"))
    deployment = site.prepare(name, {"kind": "image", "image": {"ref": ref}, "interval": INTERVAL})
    look(deployment)
    moved = registry.push(ref, bundles.app(name, "2"))
    look(deployment)
    site.work()
    assert numbers(deployment) == [(1, "superseded"), (2, "in_review")]
    assert site.latest(deployment).pins[0]["digest"] == moved


def test_an_address_is_read_again_only_if_its_etag_differs_and_not_before_its_server_wants_to_be_asked(
    site: DeployedSite, http_server: FileServer, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "MUTABLE_HTTP": True}
    name = f"{site.namespace}-url"
    path = f"/{name}.yaml"
    sent: list[int] = []

    def serve(version: str, etag: str) -> None:
        raw = b"---\n".join(bundles.app(name, version).values())

        def answer(asked: Asked) -> Reply:
            if asked.headers.get("if-none-match") == etag:
                return Reply(status=304, headers={"ETag": etag})
            sent.append(len(raw))
            return Reply(raw, headers={"ETag": etag, "Content-Type": "application/yaml"})

        http_server.serve_reply(path, answer)

    serve("1", '"one"')
    deployment = site.prepare(name, {"kind": "http", "http": {"url": http_server.url + path}, "interval": INTERVAL})
    assert numbers(deployment) == [(1, "in_review")]
    for _ in range(3):
        look(deployment)
    assert len(sent) == 2  # fetched, and looked at once without a known ETag
    serve("2", '"two"')
    look(deployment)
    site.work()
    assert numbers(deployment) == [(1, "superseded"), (2, "in_review")]

    http_server.serve(path, b"", status=429, headers={"Retry-After": "1800"})
    look(deployment)
    row = FloatingReference.objects.get(followers__deployment=deployment)
    assert row.look_at is not None
    assert row.look_at == row.rests_until > timezone.now() + timedelta(minutes=29)
    assert "answered 429" in sources_condition(site, deployment)["message"]
    serve("2", '"two"')
    look(deployment)
    assert sources_condition(site, deployment)["reason"] == "Checked"
    assert site.latest(deployment).number == 2


@pytest.mark.thorough
def test_S25_an_address_that_gives_something_else_at_every_look_makes_no_more_requests_than_it_may(
    site: DeployedSite, http_server: FileServer, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "MUTABLE_HTTP": True, "SOURCE_REQUESTS_PER_HOUR": 2}
    name = f"{site.namespace}-never-the-same"
    versions = itertools.count()

    def answer(asked: Asked) -> Reply:
        return Reply(b"---\n".join(bundles.app(name, str(next(versions))).values()))

    url = http_server.serve_reply(f"/{name}.yaml", answer)
    deployment = site.prepare(name, {"kind": "http", "http": {"url": url}, "interval": INTERVAL})
    for _ in range(4):
        look(deployment)
        site.work()
    assert numbers(deployment) == [(1, "superseded"), (2, "superseded"), (3, "in_review")]
    assert sources_condition(site, deployment)["reason"] == "ChangesTooOften"


def chart(version: str) -> Files:
    return {
        "Chart.yaml": f"apiVersion: v2\nname: harbour\nversion: {version}\n",
        "templates/a.yaml": (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: harbour}\ndata: {version: {{ .Chart.Version | quote }}}\n"
        ),
    }


def lower(site: DeployedSite, deployment: BundleDeployment) -> list[str]:
    """What is found of a request that nobody asked for."""
    look(deployment)
    request = site.after_work(deployment)
    assert (request.state, request.is_unattended) == ("in_review", True), request.problem
    return [f"{one['severity']}: {one['message']}" for one in found(request, "SRC-03")]


@pytest.mark.parametrize(
    ("format_name", "files"),
    [
        pytest.param("helm", chart, id="chart", marks=pytest.mark.thorough),
        pytest.param("registry-v1", harbour, id="bundle", marks=pytest.mark.proof),
    ],
)
def test_a_tag_that_comes_to_stand_for_a_lower_version_is_found(
    site: DeployedSite, registry: Registry, format_name: str, files: Callable[[str], Files]
) -> None:
    name = f"{site.namespace}-lower"
    ref = f"{registry.host}/{name}:stable"
    registry.push(ref, files("1.1.0"))
    deployment = site.applied(name, {"kind": "image", "image": {"ref": ref}, "interval": "5m"}, format=format_name)
    registry.push(ref, files("1.2.0"))
    assert lower(site, deployment) == []
    assert site.approve(deployment).state == "applied"
    registry.push(ref, files("1.0.0"))
    assert lower(site, deployment) == ["dangerous: The bundle claims version 1.0.0, lower than 1.2.0 of revision 2"]
