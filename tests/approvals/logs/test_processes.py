"""Whole processes, as they are shipped: whatever goes wrong in them, all that they print is JSON, one object a line."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as redis_client

from tests.support.folders import ROOT
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled
from tests.support.servers import migrated
from tests.support.servers.process import Options, Server, answers_on, free_port, wait_until

SECONDS = 120.0
CANARY = "canary-0123456789-0123456789-0123456789"
SECRETS = {
    "PRATIQUE_SECRET_KEY": f"key-{CANARY}-of-some-length",
    "PRATIQUE_METRICS_TOKEN": f"metrics-{CANARY}",
    "PRATIQUE_SLACK_SIGNING_SECRET": f"slack-{CANARY}",
    "PRATIQUE_DECISION_WEBHOOK_SECRET": "whsec_" + base64.b64encode(CANARY.encode()).decode(),
}
MANAGE = [sys.executable, ROOT / "manage.py"]
CELERY = [sys.executable, "-m", "celery", "--app", "approvals.project.celery"]
GUNICORN = [sys.executable, "-m", "gunicorn", "--config", "python:approvals.project.gunicorn"]


class Place:
    """A folder with a database of its own, and processes that work on it."""

    def __init__(self, folder: Path, redis: str) -> None:
        self.folder, self.redis, self.servers = folder, redis, list[Server]()
        self.database = folder / "db.sqlite3"
        (folder / "content").mkdir()
        migrated.make({**os.environ, **self.environment})

    @property
    def environment(self) -> dict[str, str]:
        return {
            **SECRETS,
            "PYTHONPATH": str(ROOT),
            "PRATIQUE_DATABASE_URL": f"sqlite:///{self.database}",
            "PRATIQUE_CONTENT_DIR": str(self.folder / "content"),
            "PRATIQUE_REDIS_URL": self.redis,
            "PRATIQUE_CLUSTER_TIMEOUT_SECONDS": "2",
            "PRATIQUE_LOG_FORMAT": "json",
            # Its usual port may be another worker's of this run.
            "PRATIQUE_PROBE_ADDRESS": "",
        }

    def manage(self, *words: object) -> None:
        command = [str(word) for word in (*MANAGE, *words)]
        subprocess.run(command, env={**os.environ, **self.environment}, cwd=self.folder, check=True)

    def start(self, name: str, *command: object, **more: str) -> Server:
        options = Options(env={**self.environment, **more})
        server = Server(name, [str(word) for word in command], self.folder / f"{name}.log", options)
        self.servers.append(server)
        return server

    def register(self, name: str, kubeconfig: str) -> None:
        path = self.folder / f"{name}.yaml"
        path.write_text(kubeconfig)
        with contextlib.suppress(subprocess.CalledProcessError):  # it is registered also where it does not answer
            self.manage("register_cluster", name, "--kubeconfig", path)


@pytest.fixture
def place(tmp_path: Path, redis: str) -> Iterator[Place]:
    found = Place(tmp_path, redis)
    yield found
    for server in found.servers:
        server.stop()


def lines_of(server: Server) -> list[dict[str, Any]]:
    """All that it printed; fails at what is no JSON object, and at a secret."""
    text = server.log.read_text(errors="strict")
    assert CANARY not in text, [one for one in text.splitlines() if CANARY in one]
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            pytest.fail(f"{server.name} printed what is no JSON: {line!r}")
    assert all(isinstance(one, dict) and one.get("process") == server.name for one in found)
    return found


def told_by(server: Server) -> list[dict[str, Any]]:
    """What it has told so far, in whole lines."""
    return [json.loads(line) for line in server.log.read_text().splitlines() if line.endswith("}")]


def has_told(server: Server, event: str, **facts: object) -> bool:
    wanted = {"event": event, **facts}
    return any(all(one.get(key) == value for key, value in wanted.items()) for one in told_by(server))


def crashes(server: Server) -> int:
    """How often the task about a delivery has crashed."""
    found = [one for one in told_by(server) if one["event"] == "task failed"]
    return sum(one.get("name") == "approvals.act_on_delivery" for one in found)


def ask(port: int, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=scaled(SECONDS))
    connection.putrequest(method, path, skip_host="Host" in headers)
    form = {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))} if body else {}
    for name, value in {**form, **headers}.items():
        connection.putheader(name, value.encode() if isinstance(value, str) else value)
    connection.endheaders(body.encode() if body else None)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.services
def test_S24_the_web_process_prints_json_alone_whatever_it_is_asked(place: Place) -> None:
    port, own = free_port(), free_port()
    serve = [*GUNICORN, "approvals.project.wsgi:application", "--bind", f"127.0.0.1:{port}"]
    serve += ["--workers", "2", "--threads", "2"]
    web = place.start("web", *serve, PRATIQUE_METRICS_ADDRESS=f"127.0.0.1:{own}")
    web.wait(lambda: answers_on(port) and answers_on(own), SECONDS)
    query = f"?code={CANARY}&next=/x"
    bearer = {"Authorization": f"Bearer {CANARY}"}
    asked = [
        ask(port, "GET", f"/nothing{query}", **{"User-Agent": "x\u202ey"})[0],
        ask(port, "GET", "/", **{"User-Agent": "x\x1b[31m"})[0],
        ask(port, "GET", "/a%0a%7b%22event%22%3a1%7d%e2%80%ae%1b%5b2J", Referer=f"http://x/{query}")[0],
        ask(port, "POST", f"/sign-in{query}", f"with=password&username={CANARY}&password={CANARY}")[0],
        ask(port, "POST", f"/admin/login/{query}", f"username={CANARY}&password={CANARY}")[0],
        ask(port, "GET", "/api/v1/requests", **bearer)[0],
        ask(port, "GET", "/metrics", **bearer)[0],
        ask(port, "POST", f"/chat/slack/decisions{query}", f"payload={CANARY}")[0],
        ask(port, "GET", "/", Host="elsewhere.example")[0],
    ]
    assert asked == [404, 400, 404, 403, 404, 401, 404, 401, 400]
    with sqlite3.connect(place.database) as database:
        database.execute("ALTER TABLE approvals_apitoken RENAME TO elsewhere")
    assert ask(port, "GET", f"/api/v1/requests{query}", **bearer)[0] == 500
    metrics = SECRETS["PRATIQUE_METRICS_TOKEN"]
    for where in (port, own):
        status, body = ask(where, "GET", "/metrics", Authorization=f"Bearer {metrics}")
        assert status == 200
        # Two processes answered: whichever is asked tells of all.
        assert sum(_samples(body, "pratique_http_requests_total{")) >= len(asked) - 1
        assert CANARY not in body
    os.kill(_worker_of(web), signal.SIGKILL)
    wait_until(lambda: sum(one["event"].startswith("Booting") for one in lines_of(web)) == 3, "a new worker", SECONDS)
    web.stop()
    told = lines_of(web)
    answered = [one for one in told if one["event"] == "request answered"]
    assert {"GET", "POST"} == {one["method"] for one in answered}
    assert all("?" not in one["path"] and one["request_id"] and one["milliseconds"] >= 0 for one in answered)
    failed = [one for one in told if one["logger"] == "django.request"]
    assert [one["status_code"] for one in failed] == [500]


def _samples(body: str, name: str) -> list[float]:
    return [float(line.rpartition(" ")[2]) for line in body.splitlines() if line.startswith(name)]


def _worker_of(web: Server) -> int:
    children = Path(f"/proc/{web.pid}/task/{web.pid}/children").read_text().split()
    return int(children[0])


@pytest.mark.thorough
@pytest.mark.services
def test_worker_and_beat_print_json_alone(place: Place, own_sandbox: Endpoint) -> None:
    place.register("box", own_sandbox.kubeconfig("admin"))
    place.register("dead", _elsewhere(own_sandbox))
    ports = {"worker": free_port(), "beat": free_port()}
    beat = place.start(
        "beat",
        *(*CELERY, "beat", "--loglevel", "INFO", "--schedule", place.folder / "beat"),
        PRATIQUE_METRICS_ADDRESS=f"127.0.0.1:{ports['beat']}",
    )
    worker = place.start(
        "worker",
        *(*CELERY, "worker", "--pool", "threads", "--concurrency", "2", "--loglevel", "INFO"),
        PRATIQUE_METRICS_ADDRESS=f"127.0.0.1:{ports['worker']}",
    )
    for name, server in (("beat", beat), ("worker", worker)):
        server.wait(lambda name=name: answers_on(ports[name]), SECONDS)
    for task, argument in (("approvals.act_on_delivery", 12345), ("approvals.nobody_knows", CANARY)):
        _send(place, task, argument)
    wait_until(lambda: crashes(worker) >= 1, "a crash", SECONDS)
    with redis_client.Redis.from_url(place.redis) as client:
        client.lpush("celery", json.dumps({"body": "no\nbase64", "headers": {}, "properties": {}}))
    # What nobody can read has the worker connect anew: a task that it had not begun by then would come an hour later.
    wait_until(lambda: any("Connection to broker lost" in one["event"] for one in told_by(worker)), "a loss", SECONDS)
    _send(place, "approvals.act_on_delivery", 12345)
    wait_until(lambda: crashes(worker) > 1, "a crash afterwards", SECONDS)
    wait_until(lambda: has_told(worker, "task done", name="approvals.sweep"), "a sweep", SECONDS)
    bearer = {"Authorization": f"Bearer {SECRETS['PRATIQUE_METRICS_TOKEN']}"}
    crash = 'pratique_tasks_total{outcome="crashed",task="approvals.act_on_delivery"}'

    def metrics() -> str:
        return ask(ports["worker"], "GET", "/metrics", **bearer)[1]

    wait_until(lambda: sum(_samples(metrics(), crash)) == crashes(worker), "each crash is counted", SECONDS)
    of_worker = metrics()
    assert not _samples(of_worker, "pratique_database_up")
    _, of_beat = ask(ports["beat"], "GET", "/metrics", **bearer)
    assert _samples(of_beat, "pratique_database_up") == _samples(of_beat, "pratique_queue_up") == [1.0]
    worker.stop()
    beat.stop()
    told = lines_of(worker)
    assert any("DoesNotExist" in one.get("exception", "") for one in told)
    assert any("shutdown" in one["event"] for one in told), "what the worker says when it is stopped"
    assert lines_of(beat)


def _send(place: Place, task: str, argument: object) -> None:
    program = f"from approvals.project.celery import app; app.send_task({task!r}, args=[{argument!r}])"
    subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **place.environment}, cwd=place.folder, check=True
    )


def _elsewhere(endpoint: Endpoint) -> str:
    return endpoint.kubeconfig("admin").replace(endpoint.server, f"https://127.0.0.1:{free_port()}")


@pytest.mark.thorough
@pytest.mark.services
def test_the_watch_prints_json_alone(place: Place, own_sandbox: Endpoint) -> None:
    """Also of a cluster that is away, and of one that does not know us."""
    place.register("dead", _elsewhere(own_sandbox))
    strangers = own_sandbox.kubeconfig("admin").replace(own_sandbox.tokens["admin"], CANARY)
    place.register("strangers", strangers)
    with sqlite3.connect(place.database) as database:
        assert database.execute("SELECT count(*) FROM approvals_cluster").fetchone() == (2,)
    port = free_port()
    watch = place.start("watch", *MANAGE, "watch", PRATIQUE_METRICS_ADDRESS=f"127.0.0.1:{port}")
    watch.wait(lambda: answers_on(port), SECONDS)
    wait_until(lambda: has_told(watch, "cluster trouble", cluster="dead"), "word of the dead cluster", SECONDS)
    wait_until(lambda: has_told(watch, "cluster trouble", cluster="strangers"), "word of the strangers", SECONDS)
    bearer = {"Authorization": f"Bearer {SECRETS['PRATIQUE_METRICS_TOKEN']}"}
    _, body = ask(port, "GET", "/metrics", **bearer)
    watch.stop()
    lines_of(watch)
    assert _samples(body, 'pratique_watch_breaks_total{cluster="dead"}')[0] >= 1
    assert sum(_samples(body, 'pratique_api_calls_total{cluster="dead",outcome="no_answer"')) >= 1
    assert sum(_samples(body, 'pratique_api_calls_total{cluster="strangers",outcome="refused"')) >= 1


@pytest.mark.parametrize(
    "command",
    [
        pytest.param([*MANAGE, "watch"], id="watch"),
        pytest.param([*CELERY, "worker", "--pool", "threads"], id="worker", marks=pytest.mark.thorough),
        pytest.param([*CELERY, "beat"], id="beat", marks=pytest.mark.thorough),
        pytest.param([*GUNICORN, "approvals.project.wsgi:application", "--bind", "127.0.0.1:0"], id="web"),
    ],
)
def test_a_service_that_cannot_start_says_so_in_json(command: list[object], tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PRATIQUE_APPLY_MINUTES": "soon", **SECRETS}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=scaled(SECONDS),
        check=False,
    )
    assert done.returncode != 0
    told = [json.loads(line) for line in (done.stdout + done.stderr).splitlines()]
    assert any("PRATIQUE_APPLY_MINUTES" in str(one) for one in told)
