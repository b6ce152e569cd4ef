"""The services that other tests rely on really answer, refuse what they should refuse, and are gone afterwards."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import dj_database_url
import playwright.sync_api as pw
import psycopg
import pytest
import redis as redis_client
import urllib3

from tests.support.folders import ROOT
from tests.support.servers.http import GIT_ENV, Authority, FileServer, GitServer, Reply
from tests.support.servers.postgresql import Postgres
from tests.support.servers.process import Server, ServiceFailed, answers_on, free_port, free_ports, is_free, wait_until
from tests.support.servers.registry import Registry, digest_of, layer_of


def test_postgres_runs_as_somebody_who_is_not_root_and_makes_fresh_databases(postgres: Postgres) -> None:
    first, second = postgres.fresh_database(), postgres.fresh_database()
    with psycopg.connect(first) as connection:
        connection.execute("CREATE TABLE only_here (id int)")
    with psycopg.connect(second) as connection:
        row = connection.execute("SELECT to_regclass('only_here'), usesuper FROM pg_user").fetchone()
    assert row == (None, True)


def test_a_fresh_databases_url_is_one_that_django_reads(postgres: Postgres) -> None:
    settings = dj_database_url.parse(postgres.fresh_database())
    assert (settings["ENGINE"], settings["USER"]) == ("django.db.backends.postgresql", "postgres")


def test_redis_keeps_what_it_is_given(redis: str) -> None:
    with redis_client.Redis.from_url(redis) as client:
        client.rpush("queue", "first", "second")
        assert client.lpop("queue") == b"first"
        assert client.delete("queue") == 1


def test_the_registry_serves_a_pushed_image_by_the_returned_digest(registry: Registry) -> None:
    digest = registry.push("team/app:v1", {"manifests/a.yaml": "kind: ConfigMap\n"}, labels={"a": "b"})
    manifest = registry.manifest("team/app", digest)
    assert digest_of(manifest) == digest
    assert registry.manifest("team/app", "v1") == manifest
    layer = json.loads(manifest)["layers"][0]
    served = urllib3.request("GET", f"{registry.url}/v2/team/app/blobs/{layer['digest']}").data
    assert served == layer_of({"manifests/a.yaml": "kind: ConfigMap\n"})


def test_a_tag_can_be_moved_and_a_manifest_list_names_its_platforms(registry: Registry) -> None:
    old = registry.push("team/moved:v1", {"a": "1"})
    new = registry.push("team/moved", {"a": "2"}, layers=[layer_of({"b": "3"})], tag="v1")
    assert old != new
    index = registry.push_index("team/moved:all", {"linux/amd64": old, "linux/arm64": new})
    named = json.loads(registry.manifest("team/moved", index))["manifests"]
    assert [(entry["platform"]["architecture"], entry["digest"]) for entry in named] == [("amd64", old), ("arm64", new)]


def test_a_tampered_blob_is_served_as_if_nothing_had_happened(registry: Registry) -> None:
    blob = registry.push_blob("team/tampered", b"reviewed", "application/octet-stream")
    registry.tamper(blob.digest, b"replaced")
    assert urllib3.request("GET", f"{registry.url}/v2/team/tampered/blobs/{blob.digest}").data == b"replaced"


def test_the_registry_with_auth_refuses_strangers(registry_with_auth: Registry) -> None:
    registry_with_auth.push("team/secret:v1", {"a": "1"})
    url = f"{registry_with_auth.url}/v2/team/secret/manifests/v1"
    stranger = urllib3.request("GET", url)
    assert (stranger.status, stranger.headers["WWW-Authenticate"]) == (401, 'Basic realm="registry"')


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], env=GIT_ENV, capture_output=True, text=True, check=False)


def test_git_serves_branches_tags_and_exact_commits(git_server: GitServer, tmp_path: Path) -> None:
    repository = git_server.repository("served")
    first = repository.commit({"manifests/a.yaml": "one\n"})
    second = repository.commit({"manifests/ä b.yaml": b"two\n"})
    side = repository.commit({"c": "three\n"}, branch="side")
    repository.tag("v1", first)
    repository.tag("v2", second, message="the second")
    refs = _git("ls-remote", repository.url).stdout
    for line in (f"{second}\trefs/heads/main", f"{side}\trefs/heads/side", f"{first}\trefs/tags/v1"):
        assert line in refs
    assert f"{second}\trefs/tags/v2^{{}}" in refs
    assert _git("init", "--quiet", str(tmp_path)).returncode == 0
    assert _git("-C", str(tmp_path), "fetch", "--depth=1", repository.url, first).returncode == 0
    assert _git("-C", str(tmp_path), "show", "FETCH_HEAD:manifests/a.yaml").stdout == "one\n"
    assert "manifests/a.yaml" not in _git("-C", str(repository.path), "ls-tree", "-r", "--name-only", second).stdout


def test_git_with_auth_refuses_strangers(git_server_with_auth: GitServer) -> None:
    repository = git_server_with_auth.repository("secret")
    repository.commit({"a": "1"})
    assert _git("ls-remote", repository.url).returncode != 0
    invited = repository.url.replace("http://", "http://puller:open%20sesame@")
    assert "refs/heads/main" in _git("ls-remote", invited).stdout


def test_the_http_server_serves_the_same_over_http_and_over_tls_of_its_own_authority(
    http_server: FileServer, authority: Authority, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("from a folder")
    http_server.serve_folder(tmp_path, "/files")
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    with urllib.request.urlopen(f"{http_server.https_url}/files/sub/a.txt", context=context) as answer:
        assert answer.read() == b"from a folder"
    with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
        urllib.request.urlopen(f"{http_server.https_url}/files/sub/a.txt")


def test_the_http_server_redirects_streams_and_remembers_what_it_was_asked(http_server: FileServer) -> None:
    http_server.forget()
    http_server.serve_reply("/endless", Reply(b"x" * 1000 for _ in range(10)))
    start = http_server.serve("/old", status=302, headers={"Location": "/endless"})
    request = urllib.request.Request(start, headers={"Authorization": "Bearer 1"})
    with urllib.request.urlopen(request) as answer:
        assert len(answer.read()) == 10_000
    assert [(asked.path, asked.headers.get("authorization")) for asked in http_server.asked] == [
        ("/old", "Bearer 1"),
        ("/endless", "Bearer 1"),
    ]


def test_chromium_runs_the_pages_script(page: pw.Page, http_server: FileServer) -> None:
    body = b"<!doctype html><title>before</title><script>document.title = 'after'</script>"
    page.goto(http_server.serve("/page", body, headers={"Content-Type": "text/html"}))
    assert page.title() == "after"


def test_ports_are_different_and_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(is_free(port) for port in ports)


@pytest.mark.parametrize(
    ("code", "seconds", "words"),
    [
        ("raise SystemExit('cannot find my file')", 60, "cannot find my file"),
        ("import time; time.sleep(600)", 1, "not within"),
    ],
    ids=["dies", "never answers"],
)
def test_a_server_that_does_not_start_fails_with_the_end_of_its_log(
    tmp_path: Path, code: str, seconds: float, words: str
) -> None:
    server = Server("broken", [sys.executable, "-c", code], tmp_path / "log")
    with pytest.raises(ServiceFailed, match=words):
        server.wait(lambda: False, seconds)
    server.stop()
    assert not server.is_running()


STARTS_A_SERVER = """
import sys, time
from pathlib import Path
from tests.support.servers.process import Server
print(Server("sleeper", [sys.executable, "-c", "import time; time.sleep(3600)"], Path(sys.argv[1])).pid, flush=True)
{then}
"""


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("then", "end"),
    [
        ("", lambda popen: popen.wait()),
        ("raise ValueError", lambda popen: popen.wait()),
        ("time.sleep(3600)", lambda popen: popen.terminate()),
        ("time.sleep(3600)", lambda popen: popen.kill()),
    ],
    ids=["ends", "fails", "is told to stop", "is killed"],
)
def test_a_server_does_not_outlive_who_started_it(
    tmp_path: Path, then: str, end: Callable[[subprocess.Popen[str]], object]
) -> None:
    command = [sys.executable, "-c", STARTS_A_SERVER.format(then=then), str(tmp_path / "log")]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        end(starter)
    wait_until(lambda: not _is_alive(pid), "the end of the server", 60)


def test_a_stopped_server_frees_its_port(tmp_path: Path) -> None:
    port = free_port()
    code = f"import socket, time; held = socket.create_server(('127.0.0.1', {port})); time.sleep(3600)"
    server = Server("listener", [sys.executable, "-c", code], tmp_path / "log")
    server.wait(lambda: answers_on(port), seconds=60)
    server.stop()
    assert is_free(port)
