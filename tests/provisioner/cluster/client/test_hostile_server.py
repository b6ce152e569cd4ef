"""An API server that lies, floods, stalls or redirects: every call ends, in one of our own errors."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ssl import TLSVersion
from typing import Any

import pytest

from provisioner import errors
from provisioner.cluster.client import transport
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.client.discovery import from_aggregated, from_legacy
from provisioner.sandbox.sandbox import self_signed, server_context
from provisioner.values import Identity, ObjectRef
from tests.support.patience import scaled

MAPS = {"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["get", "list"]}
NAMESPACES = {"name": "namespaces", "kind": "Namespace", "namespaced": False, "verbs": ["get"]}
DISCOVERY: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [MAPS, NAMESPACES]},
}
REF = ObjectRef("", "v1", "ConfigMap", "a", "b")

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


class Server:
    """Serves discovery as old servers do, and for everything else whatever the test says."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.answer: Answer = lambda handler: send(handler, 200, {})
        self.seen: list[tuple[str, dict[str, list[str]]]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                headers = {key.lower(): self.headers.get_all(key) or [] for key in self.headers}
                outer.seen.append((self.path, headers))
                if self.path in DISCOVERY:
                    send(self, 200, DISCOVERY[self.path])
                else:
                    outer.answer(self)

            def do_PATCH(self) -> None:
                self.do_GET()

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.http = http.server.ThreadingHTTPServer((host, 0), Handler)
        self.http.daemon_threads = True
        self.ca_pem, key = self_signed()
        self.http.socket = server_context(self.ca_pem, key).wrap_socket(self.http.socket, server_side=True)
        self.url = f"https://{host}:{self.http.server_address[1]}"

    def cluster(self, address: str = "", more: dict[str, str] | None = None, **options: Any) -> ClusterClient:
        authority = {"certificate-authority-data": base64.b64encode(self.ca_pem.encode()).decode()}
        config = {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": address or self.url, **authority, **(more or {})}}],
            "users": [{"name": "a", "user": {"token": "s3cret"}}],
        }
        return ClusterClient.connect(config, **{"timeout_seconds": scaled(60.0), **options})


def send(handler: http.server.BaseHTTPRequestHandler, status: int, body: Any, **headers: str) -> None:
    encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(encoded)))
    for key, value in headers.items():
        handler.send_header(key.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(encoded)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()


def test_a_redirect_is_not_followed_with_our_credentials(server: Server):
    other = Server()
    thread = threading.Thread(target=other.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    server.answer = lambda handler: send(handler, 307, b"", Location=f"{other.url}/stolen")
    with pytest.raises(errors.ClusterError, match="307"):
        server.cluster().get(REF)
    other.http.shutdown()
    other.http.server_close()
    assert other.seen == []


def test_a_server_below_a_path_is_met_there(server: Server):
    server.answer = lambda handler: send(handler, 200, {"gitVersion": "v1.36.3"})
    cluster = server.cluster(f"{server.url}/k8s/clusters/c-1/")
    assert cluster.version() == "v1.36.3"
    cluster.close()
    assert cluster.version() == "v1.36.3"
    assert {path for path, _ in server.seen} == {"/k8s/clusters/c-1/version"}


class Proxy(socketserver.ThreadingTCPServer):
    """Tunnels one connection after another to where it is asked to, and remembers what it could read."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Tunnel)
        self.heard: list[bytes] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Tunnel(socketserver.BaseRequestHandler):
    server: Proxy

    def handle(self) -> None:
        asked = self.request.recv(65536)
        self.server.heard.append(asked)
        host, _, port = asked.split()[1].decode().rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            threading.Thread(target=self._pass_on, args=(there, self.request), daemon=True).start()
            self._pass_on(self.request, there, heard=True)

    def _pass_on(self, of: socket.socket, to: socket.socket, *, heard: bool = False) -> None:
        try:
            while chunk := of.recv(65536):
                if heard:
                    self.server.heard.append(chunk)
                to.sendall(chunk)
        except OSError:
            return


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as made:
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield made
        made.shutdown()


def test_a_proxy_of_a_trusted_kubeconfig_only_tunnels(server: Server, proxy: Proxy):
    server.answer = lambda handler: send(handler, 200, {"gitVersion": "v1.36.3"})
    behind = server.cluster(more={"proxy-url": proxy.url}, trusted=True)
    assert behind.version() == "v1.36.3"
    assert proxy.heard[0].startswith(f"CONNECT {server.url.removeprefix('https://')} ".encode())
    assert b"s3cret" not in b"".join(proxy.heard)


PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")


def test_S19_the_environment_sends_a_registered_cluster_to_no_proxy(server: Server, proxy: Proxy, monkeypatch):
    for name in PROXIES:
        monkeypatch.setenv(name, proxy.url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    server.answer = lambda handler: send(handler, 200, {"gitVersion": "v1.36.3"})
    assert server.cluster().version() == "v1.36.3"
    assert proxy.heard == []
    assert server.cluster(trusted=True).version() == "v1.36.3"
    assert proxy.heard != []


def test_S19_the_environment_does_not_choose_whom_a_registered_cluster_believes(server: Server, tmp_path, monkeypatch):
    (tmp_path / "ca.pem").write_text(server.ca_pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    without = {"certificate-authority-data": ""}
    with pytest.raises(errors.Unreachable, match="certificate verify failed"):
        server.cluster(more=without).version()
    server.answer = lambda handler: send(handler, 200, {"gitVersion": "v1.36.3"})
    assert server.cluster(more=without, trusted=True).version() == "v1.36.3"


def test_S19_the_environment_names_no_other_kubeconfig(server: Server, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "other"))
    (tmp_path / "other").write_text("current-context: [")
    server.answer = lambda handler: send(handler, 200, {"gitVersion": "v1.36.3"})
    assert server.cluster().version() == "v1.36.3"


def test_S19_a_server_with_another_authority_gets_no_credentials(server: Server):
    stranger = base64.b64encode(self_signed()[0].encode()).decode()
    for trusted in (False, True):
        with pytest.raises(errors.Unreachable, match="certificate verify failed"):
            server.cluster(more={"certificate-authority-data": stranger}, trusted=trusted).version()
    assert server.seen == []


def test_S19_a_server_with_another_name_gets_no_credentials(server: Server):
    with pytest.raises(errors.Unreachable, match="certificate verify failed"):
        server.cluster(more={"tls-server-name": "other.example"}).version()
    server.answer = lambda handler: send(handler, 200, {"gitVersion": "v1.36.3"})
    assert server.cluster(more={"tls-server-name": "localhost"}).version() == "v1.36.3"
    elsewhere = Server("127.0.0.2")  # which its certificate does not name
    threading.Thread(target=elsewhere.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    with pytest.raises(errors.Unreachable, match="certificate verify failed"):
        elsewhere.cluster().version()
    elsewhere.http.shutdown()
    elsewhere.http.server_close()
    assert elsewhere.seen == []


def test_S19_old_versions_of_tls_are_refused(server: Server):
    assert server.cluster()._transport._manager.connection_pool_kw["ssl_context"].minimum_version >= TLSVersion.TLSv1_2


def test_a_server_that_never_answers_is_unreachable(server: Server):
    is_over, answered = threading.Event(), list[bool]()
    server.answer = lambda handler: answered.append(is_over.wait(600))
    cluster = server.cluster(timeout_seconds=1.0)
    cluster.served()
    with pytest.raises(errors.Unreachable):
        cluster.get(REF)
    assert answered == [], "it was not waited for"
    is_over.set()


def test_an_answer_that_breaks_off_is_unreachable(server: Server):
    def cut(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"kind":')
        handler.close_connection = True

    server.answer = cut
    with pytest.raises(errors.Unreachable, match="broke off"):
        server.cluster().get(REF)


def test_an_answer_past_the_limit_is_refused(server: Server, monkeypatch):
    monkeypatch.setattr(transport, "MAX_RESPONSE_BYTES", 1000)
    server.answer = lambda handler: send(handler, 200, {"data": "x" * 2000})
    with pytest.raises(errors.ClusterError, match="larger than 1000 bytes"):
        server.cluster().get(REF)


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'"a"', b"{", b"\xff\xfe"])
def test_an_answer_that_is_no_json_object_is_an_error(server: Server, body):
    server.answer = lambda handler: send(handler, 200, body)
    with pytest.raises(errors.ClusterError):
        server.cluster().get(REF)


def test_a_404_of_the_path_is_an_unknown_kind_and_not_an_absent_object(server: Server):
    server.answer = lambda handler: send(handler, 404, b"404 page not found")
    with pytest.raises(errors.UnknownKind):
        server.cluster().get(REF)


def test_warnings_are_kept_once_each(server: Server):
    def warn(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for text in ('299 - "first"', '299 - "say \\"no\\"", 299 - "third"', '299 - "first"'):
            handler.send_header("Warning", text)
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        handler.wfile.write(b"{}")

    server.answer = warn
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "a"}}
    assert server.cluster().apply(obj, field_manager="m").warnings == ("first", 'say "no"', "third")


def test_apply_is_strict_and_never_forced(server: Server):
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "a"}}
    server.cluster(timeout_seconds=10.0).apply(obj, field_manager="m")
    path, headers = server.seen[-1]
    # The server gives up when we do: a write that we no longer wait for does not come through later.
    asked = "fieldManager=m&fieldValidation=Strict&force=false&timeout=10s"
    assert path == f"/api/v1/namespaces/a/configmaps/b?{asked}"
    assert headers["content-type"] == ["application/apply-patch+yaml"]


def test_each_group_is_impersonated_in_a_header_of_its_own(server: Server):
    server.cluster().acting_as(Identity("alice", ("a", "b, c"), "uid")).get(REF)
    _, headers = server.seen[-1]
    assert headers["impersonate-user"] == ["alice"]
    assert headers["impersonate-group"] == ["a", "b, c"]
    assert "impersonate-uid" not in headers


def page(items: list[str], carry_on: str = "", version: str = "7") -> dict[str, Any]:
    objects = [{"metadata": {"name": name, "uid": name}} for name in items]
    return {"kind": "List", "metadata": {"resourceVersion": version, "continue": carry_on}, "items": objects}


EXPIRED = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}


def test_a_list_that_expires_midway_starts_again_and_repeats_nothing(server: Server):
    answers: list[tuple[int, Any]] = [(200, page(["a", "b"], "x")), (410, EXPIRED), (200, page(["a", "b"], "y"))]
    answers.append((200, page(["c"])))
    server.answer = lambda handler: send(handler, *answers.pop(0))
    cluster = server.cluster()
    maps = cluster.resource_of("", "v1", "ConfigMap")
    assert maps is not None
    assert [obj["metadata"]["name"] for obj in cluster.list(maps, "a", page=2)] == ["a", "b", "c"]


def test_a_list_that_always_expires_ends_with_an_error(server: Server):
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        is_first = "continue=" not in handler.path
        send(handler, 200 if is_first else 410, page(["a"], "x") if is_first else EXPIRED)

    server.answer = answer
    cluster = server.cluster()
    maps = cluster.resource_of("", "v1", "ConfigMap")
    assert maps is not None
    with pytest.raises(errors.Expired):
        list(cluster.list(maps, "a"))


@pytest.mark.parametrize(
    ("event", "error"),
    [
        pytest.param({"type": "ERROR", "object": EXPIRED}, errors.Expired, id="expired"),
        pytest.param({"type": "NONSENSE", "object": {}}, errors.ClusterError, id="an unknown type"),
        pytest.param({"type": "ADDED", "object": 7}, errors.ClusterError, id="no object"),
    ],
)
def test_a_watch_that_says_something_wrong_ends_with_an_error(server: Server, event, error):
    server.answer = lambda handler: send(handler, 200, json.dumps(event).encode() + b"\n")
    cluster = server.cluster()
    maps = cluster.resource_of("", "v1", "ConfigMap")
    assert maps is not None
    with pytest.raises(error):
        list(cluster.watch(maps, resource_version="1", timeout_seconds=1))


def test_discovery_is_read_once_and_again_when_forgotten(server: Server):
    cluster = server.cluster()
    cluster.resources()
    cluster.resources()
    assert sum(path == "/apis" for path, _ in server.seen) == 1
    cluster.forget_discovery()
    cluster.resources()
    assert sum(path == "/apis" for path, _ in server.seen) == 2


def test_a_group_whose_server_is_down_is_unknown_and_not_absent(server: Server, monkeypatch):
    groups = [{"name": "metrics.k8s.io", "versions": [{"version": "v1beta1"}]}]
    monkeypatch.setitem(DISCOVERY, "/apis", {"kind": "APIGroupList", "groups": groups})
    server.answer = lambda handler: send(handler, 503, b"down")
    cluster = server.cluster()
    assert cluster.resource_of("", "v1", "ConfigMap") is not None
    with pytest.raises(errors.Unreachable, match=r"metrics\.k8s\.io"):
        cluster.resource_of("metrics.k8s.io", "v1beta1", "PodMetrics")


def test_both_forms_of_discovery_say_the_same():
    resources = [
        {"name": "widgets", "kind": "Widget", "namespaced": True, "verbs": ["get"], "singularName": "widget"}
        | {"shortNames": ["wd"]},
        {"name": "widgets/status", "kind": "Widget", "namespaced": True, "verbs": ["get"]},
    ]
    legacy = from_legacy([{"groupVersion": "example.com/v1", "resources": resources}])
    entry = {
        "resource": "widgets",
        "responseKind": {"kind": "Widget"},
        "scope": "Namespaced",
        "verbs": ["get"],
        "singularResource": "widget",
        "shortNames": ["wd"],
        "subresources": [{"subresource": "status"}],
    }
    versions = [{"version": "v1", "resources": [entry], "freshness": "Current"}]
    aggregated = from_aggregated([{"items": [{"metadata": {"name": "example.com"}, "versions": versions}]}])
    assert legacy.resources == aggregated.resources
    assert legacy.resources[0].other_names == {"widget", "wd"}
    assert aggregated.of_kind("example.com", "", "Widget") == legacy.of_kind("example.com", "v1", "Widget")


def test_a_stale_group_of_aggregated_discovery_is_unknown():
    versions = [{"version": "v1", "resources": [], "freshness": "Stale"}]
    served = from_aggregated([{"items": [{"metadata": {"name": "example.com"}, "versions": versions}]}])
    assert served.is_unknown("example.com", "v1")
    assert served.is_unknown("example.com", "")
    assert not served.is_unknown("", "v1")


def test_many_calls_end_together_however_slow_the_server_is(server: Server):
    """Each call has its own time; a question of many lists has one for all of them."""
    is_quick, answered = threading.Event(), list[bool]()
    is_quick.set()

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        answered.append(is_quick.wait(600))
        send(handler, 200, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "b", "namespace": "a"}})

    server.answer = answer
    cluster = server.cluster()
    assert cluster.get(REF)
    who = Identity("system:serviceaccount:a:b")
    assert cluster.until(time.monotonic() + scaled(60)).acting_as(who).get(REF)
    is_quick.clear()
    began = time.monotonic()
    bounded = cluster.until(began + 0.5).acting_as(who)
    with pytest.raises(errors.OutOfTime, match="no answer within"):
        bounded.get(REF)
    assert len(answered) == 2, "the third answer was not waited for"
    is_quick.set()
    with pytest.raises(errors.OutOfTime, match="not asked"):
        bounded.get(REF)
    assert cluster.get(REF), "the others go on"
    with pytest.raises(errors.OutOfTime):
        cluster.until(began).until(began + 1000).get(REF)


def test_discovery_is_one_of_the_questions_that_end_together(server: Server):
    """It stays with what it has read, and asks no server when the time is over."""
    cluster = server.cluster()
    over = cluster.until(time.monotonic())
    with pytest.raises(errors.OutOfTime, match="not asked"):
        over.resources()
    assert server.seen == []
    found = cluster.resources()
    assert over.resources() == found, "it is known by then"
    over.forget_discovery()
    with pytest.raises(errors.OutOfTime):
        over.resources()


def test_who_waits_for_another_reading_of_discovery_does_so_within_their_time(server: Server, monkeypatch):
    began, may_end = threading.Event(), threading.Event()
    monkeypatch.delitem(DISCOVERY, "/apis")

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        began.set()
        assert may_end.wait(scaled(60.0))
        send(handler, 200, {"kind": "APIGroupList", "groups": []})

    server.answer = answer
    cluster = server.cluster()
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(cluster.resources)
        try:
            assert began.wait(scaled(60.0))
            with pytest.raises(errors.OutOfTime, match="which kinds the cluster serves"):
                cluster.until(time.monotonic() + 0.2).resources()
        finally:
            may_end.set()
        assert reading.result()


@pytest.mark.parametrize("is_bounded", [True, False])
def test_an_answer_that_comes_drop_by_drop_ends(server: Server, is_bounded: bool, monkeypatch):
    monkeypatch.setattr(transport, "_MOST_TIMEOUTS", 1)
    is_over, drops = threading.Event(), list[int]()

    def drip(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        with contextlib.suppress(OSError):
            while not is_over.wait(0.05) and len(drops) < 6000:
                drops.append(handler.wfile.write(b" "))

    server.answer = drip
    cluster = server.cluster(timeout_seconds=scaled(60.0) if is_bounded else 1.0)
    cluster.served()
    with pytest.raises(errors.OutOfTime if is_bounded else errors.Unreachable):
        (cluster.until(time.monotonic() + 0.5) if is_bounded else cluster).get(REF)
    is_over.set()
    assert 0 < len(drops) < 6000
